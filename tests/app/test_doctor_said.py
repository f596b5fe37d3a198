"""What the strip and the buttons say where the usual words would be wrong."""

import re

import pytest

from core.base.outcome import Outcome, Report
from core.base.violation import Fix, Severity, Violation
from core.contract.rule import all_rules
from core.contract.rules import x602
from core.contract.script_record import TIME
from core.doctor import job
from core.doctor.answer import Answer, Request, Wish
from core.doctor.gallery import BROKEN
from core.doctor.prep import Kind
from core.doctor.wire import from_wire
from core.sandbox.pool_ticket import StopReason
from pages.widgets.cards import checked, page_of, rule_of
from pages.widgets.doctor_check import Halt, Look
from pages.widgets.doctor_strip import verdict_of
from pages.widgets.verdict import State

HEAD = "import jax\nimport jax.numpy as jnp\nfrom flax import nnx\n"
CELL = "cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))\ncarry = cell.initialize_carry((2, 3), rngs=nnx.Rngs(1))\n"


def check(text, wish=Wish.CHECK):
    desk = job.Desk()
    answer = from_wire(desk.handle(Request(wish, text)))
    desk.close()
    return answer


def verdict(text):
    answer = check(HEAD + text)
    return answer, verdict_of(Look(answer.script, answer), answer.report)


@pytest.mark.parametrize("text", ["print(jnp.ones(3).sum())\n", "def step(c, x):\n    return c, x\n", CELL])
def test_where_nothing_with_a_carry_ran_no_contract_was_kept(text):
    answer, said = verdict(text)
    assert answer.report.outcome is Outcome.OK
    assert said.state is State.UNCHECKED
    assert said.words == "Nothing to check: no scan or cell ran"


@pytest.mark.parametrize(
    "text",
    [
        "jax.lax.scan(lambda c, x: (c + x, c), 0.0, jnp.ones(3))\n",
        "jax.jit(lambda xs: jax.lax.scan(lambda c, x: (c + x, c), 0.0, xs))(jnp.ones(3))\n",
        "jax.lax.fori_loop(0, 3, lambda i, c: c + 1.0, 0.0)\n",
        CELL + "carry, h = cell(carry, jnp.ones((2, 3)))\n",
    ],
)
def test_a_scan_a_loop_or_one_step_of_a_cell_is_something_to_check(text):
    answer, said = verdict(text)
    assert answer.report.outcome is Outcome.OK
    assert said.state in (State.KEPT, State.NOTES)
    assert not said.words


def test_other_faults_count_where_no_scan_ran():
    answer, said = verdict("x = jnp.arange(3.0)\nprint(x[3])\n")
    assert answer.idle
    assert answer.report.codes == ("P206",)
    assert said.state is State.WARNED


def violation(path=""):
    return Violation("P201", "p", Severity.ERROR, False, "m", None, "w", path=path)


@pytest.mark.parametrize(
    ("path", "remaining", "said"),
    [
        ("", (), "P201 gone"),
        ("", ("S104",), "P201 gone, S104 remains"),
        ("", ("P201",), "this P201 gone, another P201 remains"),
        ("", ("P201", "S104"), "this P201 gone, another P201, S104 remain"),
        ("carry[0]", ("P201",), "P201 at carry[0] gone, P201 remains"),
    ],
)
def test_a_button_says_what_is_gone_and_what_remains(path, remaining, said):
    assert checked(Fix("t", None, remaining), violation(path)) == said


def answered():
    return Answer(Wish.SHAPES, Kind.SCRIPT, "x", Report(Outcome.OK, ()))


@pytest.mark.parametrize("answer", [None, answered()])
@pytest.mark.parametrize("wish", [Wish.SHAPES, Wish.CHECK])
@pytest.mark.parametrize("reason", [StopReason.TIME, StopReason.MEMORY, StopReason.CANCELLED])
def test_a_stop_is_told_without_contradiction(answer, wish, reason):
    said = verdict_of(Look("x", answer, halt=Halt("x", wish, reason)), answer and answer.report)
    whole = f"{said.words} {said.summary} {said.program}"
    assert "nothing was run yet" not in whole
    timed = reason is not StopReason.CANCELLED
    assert ("was stopped" in whole) == timed
    assert ("nothing was run" in whole) == (timed and wish is Wish.SHAPES)


def test_a_script_whose_shapes_took_too_long_did_not_run():
    assert "ran for all the time" in x602.message(TIME)
    said = x602.message(TIME, shapes=True)
    assert "ran" not in said.split()
    assert not any(c.isdigit() for c in said)  # whoever stopped it, and when


def test_names_with_underscores_stay_whole_on_a_page():
    page = page_of(rule_of("L301"))
    assert "`flax.nnx.LSTMCell.__call__`" in page
    for rule in all_rules():
        outside = re.sub(r"^ {4}.*$", "", page_of(rule), flags=re.MULTILINE)
        assert "__" not in re.sub(r"(`+)[^`]+\1", "", outside), rule.code


@pytest.mark.parametrize("example", BROKEN, ids=lambda example: example.name)
def test_each_broken_example_has_its_fault_and_a_fix_that_works(example):
    answer = check(example.text, Wish.FIXES)
    at = answer.report.codes.index(example.code)
    assert answer.sources[at]
    assert answer.report.violations[at].silent == example.silent
