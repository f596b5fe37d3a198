"""The Doctor's script as a program: what it holds is a stranger's text, taken as it stands."""

from __future__ import annotations

import pytest

from core.base.violation import Severity
from core.doctor.check import check_script
from core.doctor.gallery import EXAMPLES
from core.export.script_program import script_document
from tests.unit.export.export_support import cells_of, run_code, run_script


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=lambda example: example.name)
def test_our_own_scripts(example):
    report = check_script(example.text).report
    document = script_document(example.text, report)
    names, said = run_script(document)
    assert document.codes == tuple(dict.fromkeys(v.code for v in report.broken))
    assert bool(document.raises) == any(v.severity is Severity.ERROR and not v.silent for v in report.violations)
    assert f"raised, as it must: {document.raises or 'TypeError'}" in said
    assert ("carry_lab_negative" in names) == (not document.raises)
    run_code(*cells_of(document))


def test_an_error_that_no_rule_explains():
    text = "from __future__ import annotations\nx = '''a\n  b\n'''\nassert x == 'a\\n  b\\n'\nraise ValueError('no')"
    document = script_document(text, check_script(text).report)
    assert document.raises == "ValueError"
    assert document.first == "from __future__ import annotations"
    run_script(document)


@pytest.mark.parametrize("text", ["def f(:\n  pass", "  x = 1\n y", "x = '''", "x = 1\x00"])
def test_what_python_cannot_read_stands_in_it_and_must_not_compile(text):
    document = script_document(text, None)
    names, _ = run_script(document)
    assert "\n".join(names["lines"]) == text
    run_code(*cells_of(document))


def test_a_script_that_catches_its_own_exception_ends_by_itself():
    text = (
        "import jax\nimport jax.numpy as jnp\n\n\ndef step(c, x):\n    return c + 0.5, x\n\n\n"
        "try:\n    jax.lax.scan(step, jnp.zeros((), int), jnp.ones(3))\nexcept TypeError:\n    print('caught')\n"
    )
    document = script_document(text, check_script(text).report)
    assert document.raises == ""
    assert run_script(document)[1].startswith("caught\n")


def test_nothing_known_and_nothing_there():
    assert script_document(" \n", None) is None
    assert "Not checked yet." in script_document("x = 1", None).head
