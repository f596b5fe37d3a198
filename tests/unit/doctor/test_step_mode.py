"""A step, init and xs as one script, and back."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

from core.base.places import Field, Span
from core.doctor.check import check_script
from core.doctor.step_mode import PRELUDE, StepFields, compose, looks_whole, take_apart

ADD = "def add(total, x):\n    total = total + x\n    return total, total"


def fields(step: str = ADD, init: str = "0.", xs: str = "jnp.arange(3.)") -> StepFields:
    return StepFields(step, init, xs)


@pytest.mark.parametrize(
    ("init", "xs"),
    [
        ("0.", "jnp.arange(3.)"),
        ("0.  # the sum", "jnp.arange(3.)  # the numbers"),
        ("(\n    0.\n)", "jnp.arange(\n    3.,\n)"),
        ("0.", "jnp.arange(3.), length=3"),
    ],
)
def test_what_is_composed_runs_as_it_was_typed(init, xs):
    checkup = check_script(compose(fields(init=init, xs=xs)).text, fixes=False)
    assert [site.facts.length for site in checkup.run.record.scans] == [3]
    assert not checkup.report.broken
    checkup.close()


def test_a_tuple_without_parentheses_is_one_argument():
    step = "def f(c, x):\n    return c, x"
    checkup = check_script(compose(fields(step, "0., 1.", "jnp.arange(3.), jnp.arange(3.)")).text, fixes=False)
    (site,) = checkup.run.record.scans
    checkup.close()
    assert [leaf.path for leaf in site.facts.carry_in] == ["carry[0]", "carry[1]"]
    assert site.facts.length == 3


def test_an_empty_xs_is_none():
    checkup = check_script(compose(fields(step="def f(c, _):\n    return c, c", xs="")).text, fixes=False)
    assert "S109" in checkup.report.codes
    checkup.close()


@pytest.mark.parametrize(
    "step",
    [
        ADD,
        ADD.replace("add", "größe"),
        "def helper(a):\n    return a\n\n" + ADD,
        "add = lambda c, x: (c + x, c)",
        "from functools import partial\n\n@partial(jax.jit)\n" + ADD,
    ],
)
def test_the_last_function_is_scanned(step):
    checkup = check_script(compose(fields(step)).text, fixes=False)
    (site,) = checkup.run.record.scans
    assert site.facts.length == 3
    assert not checkup.report.broken, checkup.report
    checkup.close()


@pytest.mark.parametrize("init", ["0.", "jnp.zeros((2, 3))", "{'a': 1,\n 'b': 2}", "0.  # note"])
@pytest.mark.parametrize("xs", ["jnp.arange(3.)", "None, length=5", "(a, b)", "jnp.ones(\n    3\n)  # three"])
def test_there_and_back(init, xs):
    assert take_apart(compose(fields(init=init, xs=xs)).text) == fields(init=init, xs=xs)


def test_a_bare_tuple_comes_back_in_parentheses():
    assert take_apart(compose(fields(init="0., 1")).text) == fields(init="(0., 1)")


def test_imports_and_lines_that_a_fix_adds_become_part_of_the_step():
    text = compose(fields()).text
    head, mark, rest = text.partition("# the step\n")
    assert mark
    added = head + 'jax.config.update("jax_enable_x64", True)\n' + mark + rest
    back = take_apart(added.replace("final, ys = jax", "extra = 1\nfinal, ys = jax"))
    assert back is not None
    assert back.step.startswith('jax.config.update("jax_enable_x64", True)\ndef add')
    assert back.step.endswith("extra = 1")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("    # init\n", ""),
        lambda text: text.replace("    # xs\n", ""),
        lambda text: text.replace("# the step\n", ""),
        lambda text: text.replace("    add,\n", "    jax.checkpoint(add),\n"),
        lambda text: text + "print(final)\n",
        lambda _: "",
        lambda _: ADD,
    ],
)
def test_what_is_no_longer_made_of_fields_is_not_taken_apart(change):
    assert take_apart(change(compose(fields()).text)) is None


def test_places_come_back_to_their_fields():
    made = compose(fields(init="jnp.int32(0)"))
    lines = made.text.split("\n")
    labels = {name: Field(name, name) for name in ("init", "xs")}
    for number, line in enumerate(lines, 1):
        span = Span(number, 4, number, max(len(line), 5))
        place = made.place(span, labels)
        if "total" in line and "def" not in line:
            assert place == Span(number - len(PRELUDE) - 1, 4, number - len(PRELUDE) - 1, len(line))
        elif "int32" in line:
            assert place == Field("init", "init")
            assert made.span(span) == ("init", Span(1, 0, 1, len(line) - 4))
        elif "arange" in line:
            assert place == Field("xs", "xs")
        elif "jax.lax.scan" in line or number <= len(PRELUDE):
            assert place is None


def test_a_fault_of_init_is_at_init_and_its_fix_goes_there():
    made = compose(fields(init="jnp.int32(0)"))
    checkup = check_script(made.text)
    (violation,) = checkup.report.broken
    assert violation.code == "S104"
    because = violation.because
    assert because is not None
    assert made.span(because.place) == ("init", Span(1, 0, 1, 12))
    back = take_apart(checkup.sources[0][0])
    checkup.close()
    assert back == fields(init="jnp.float32(0)")
    assert jnp.float32(0).dtype == "float32"


@pytest.mark.parametrize(
    "code",
    [
        f"{ADD}\n\nfinal, ys = jax.lax.scan(add, 0., jnp.arange(3.))",
        f"{ADD}\r\nprint(lax.scan(add, 0., jnp.arange(3.)))",
        f"{ADD}\nfor _ in range(2): scan (add, 0., xs)",
    ],
)
def test_code_that_scans_by_itself_is_known_as_a_whole_script(code):
    assert looks_whole(code)


@pytest.mark.parametrize(
    "code",
    [
        ADD,
        "",
        "def step(c, x):\n    inner, ys = jax.lax.scan(add, c, x)\n    return inner, ys",
        "def scan(c, x):\n    return c, x",
        "# jax.lax.scan(add, 0., xs)\n" + ADD,
    ],
)
def test_a_step_with_a_scan_inside_it_is_a_step(code):
    assert not looks_whole(code)
