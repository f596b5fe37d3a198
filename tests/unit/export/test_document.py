"""The frame of every export: its head, its version check, and tests that really fail."""

from __future__ import annotations

import warnings
from dataclasses import replace

import pytest

from core.export.document import Document, Part, indented, must_raise, repaired, script
from tests.unit.export.export_support import cells_of, run_code

ONE = Document("carry-lab-x", "A title", "About it.", (Part("Words.", "a = 1"),), Part("b is 2.", "b = a + 1"))


def test_the_head_says_what_it_is_and_pins_what_runs():
    text = script(replace(ONE, seeds=("parameters 0",), codes=("S104",), raises="TypeError"))
    head = text.split("\n\n")[0]
    assert head.startswith("# A title\n# About it.\n# Made by Carry Lab on a CPU with: jax==")
    assert "# Seeds: parameters 0" in head
    assert "# Breaks S104. JAX raises TypeError." in head
    assert run_code(text)[0]["b"] == 2


def test_other_versions_are_warned_of():
    text = script(ONE)
    pinned = ONE.pins["jax"]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        exec(text.replace(f'"jax": "{pinned}"', '"jax": "0.1"'), {})
    assert [str(one.message) for one in found] == [
        f"made with jax 0.1, run with {pinned}: numbers and errors may differ"
    ]


def test_the_notebook_is_the_script():
    assert cells_of(ONE) == [ONE.check.strip(), "a = 1", "b = a + 1"]
    names, _ = run_code(*cells_of(ONE))
    assert names["b"] == 2


def test_what_must_raise_fails_loudly_when_it_does_not():
    _, said = run_code(must_raise("raise TypeError('no')", "TypeError"))
    assert said == "raised, as it must: TypeError: no\n"
    with pytest.raises(AssertionError, match="TypeError must be raised here, and None was"):
        run_code(must_raise("pass", "TypeError"))
    with pytest.raises(AssertionError, match="ValueError"):
        run_code(must_raise("raise ValueError", "TypeError"))


def test_a_fix_that_changes_nothing_fails_loudly():
    begin = "import jax\nimport numpy as np\nx = np.ones(3)"
    run_code(begin, repaired("t", "x", "x = x + 1").code)
    run_code(begin, repaired("t", "x", "x = x[None]").code)  # the shape counts too
    with pytest.raises(AssertionError, match="changes no number"):
        run_code(begin, repaired("t", "x", "x = x * 1").code)


def test_indenting_leaves_strings_as_they_are():
    code = 'x = """a\n  b\n"""\ny = f"""c\n{x}"""\n\nif x:\n    z = 1'
    names, _ = run_code("if True:\n" + indented(code))
    plain, _ = run_code(code)
    assert [names[n] for n in "xyz"] == [plain[n] for n in "xyz"]
