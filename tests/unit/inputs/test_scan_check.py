"""One evaluation of the Scan page, and that each fix it offers does on the page what was verified."""

from __future__ import annotations

import pytest

from core.base.outcome import Outcome
from core.base.violation import FieldEdit, Severity
from core.contract.rule import Repair
from core.inputs.break_it import BREAK_IT, break_edit
from core.inputs.fields import Value
from core.inputs.scan_bench import ScanBench, edit_for
from core.inputs.scan_check import Checked, evaluate
from core.inputs.scan_fields import follow, opening, scan_fields
from core.steps.library import FAULTY, PRESETS

#: Inputs with one root cause each: (step, edits by hand, code).
FAULTS: list[tuple[str, dict[str, Value], str]] = [
    *((step.id, {}, step.breaks) for step in FAULTY),
    ("running_sum", {"init": "0", "init_dtype": "int32", "init_weak": False}, "S104"),
    ("running_sum", {"numbers": "1, 2\n3, 4", "init": "1."}, "S103"),
    ("running_sum", {"as_list": True}, "S110"),
    ("distance", {"as_list": True, "axes": "time"}, "S110"),
    ("running_sum", {"length_argument": "4"}, "S108"),
    ("running_sum", {"length_argument": "-1"}, "S116"),
    ("running_sum", {"unroll": "-2"}, "S116"),
    ("fibonacci", {"length_argument": ""}, "S109"),
    ("running_sum", {"source": "generate", "length": 5, "batch": 2, "features": 3, "axes": "batch"}, "S115"),
    (
        "running_sum",
        {"source": "paste", "numbers": "[[[1,2],[3,4]],[[5,6],[7,8]],[[9,8],[7,6]]]", "axes": "batch"},
        "S115",
    ),
    ("running_variance", {"init_mean": "0", "init_mean_dtype": "int32", "init_mean_weak": False}, "S104"),
]
IDS = [f"{step}-{code}-{'-'.join(edits) or 'opening'}" for step, edits, code in FAULTS]


def checked(step: str, edits: dict[str, Value]) -> Checked:
    return evaluate(follow(opening(step), edits))


def applied(values: dict[str, Value], edit: FieldEdit) -> dict[str, Value]:
    """As the page does it: exactly these fields, nothing follows."""
    merged = {**values, **edit.values}
    return scan_fields(merged).complete(merged)


@pytest.mark.parametrize(("step", "edits", "code"), FAULTS, ids=IDS)
def test_one_fault_one_message_and_every_fix_mends_it_on_the_page(step, edits, code):
    found = checked(step, edits)
    assert [v.code for v in found.report.broken] == [code]
    (violation,) = found.report.broken
    assert violation.fixes, "a fault of the page without a way back"
    for fix in violation.fixes:
        after = evaluate(applied(dict(found.values), fix.edit))
        assert code not in after.report.codes
        assert tuple(sorted({v.code for v in after.report.broken})) == fix.remaining
        assert after.result is not None or fix.remaining


@pytest.mark.parametrize("step", PRESETS, ids=[s.id for s in PRESETS])
def test_every_preset_keeps_the_contract(step):
    found = evaluate(opening(step.id))
    assert found.report.outcome is Outcome.OK
    assert found.result is not None
    assert found.result.length == step.length


@pytest.mark.parametrize("mistake", BREAK_IT, ids=[m.id for m in BREAK_IT])
def test_break_it_breaks_one_thing_from_wherever_the_page_stands(mistake):
    for start in ("running_sum", "kalman", "fibonacci", "random_walk"):
        values = follow(opening(start), {"reverse": True})
        broken = evaluate(applied(values, break_edit(mistake, values)))
        assert len(broken.report.broken) == 1
        assert broken.values["reverse"] is False


@pytest.mark.parametrize("name", ["rows", "batch_major"])
def test_the_silent_ones_have_a_proof_that_the_fix_settles(name):
    mistake = next(m for m in BREAK_IT if m.id == name)
    values = opening("running_sum")
    (violation,) = evaluate(applied(values, break_edit(mistake, values))).report.broken
    assert violation.silent
    assert violation.severity is Severity.WARNING
    assert violation.proof.before != violation.proof.expected
    assert violation.proof.after == violation.proof.expected


def test_several_faults_are_mended_at_once():
    found = checked("running_sum", {"length_argument": "4", "unroll": "-1"})
    assert {v.code for v in found.report.broken} == {"S108", "S116"}
    assert all(fix.remaining for v in found.report.broken for fix in v.fixes)
    after = evaluate(applied(dict(found.values), found.fix_all.edit))
    assert after.report.outcome is Outcome.OK


def test_over_a_limit_nothing_runs():
    found = checked("running_sum", {"source": "generate", "length": 10**9})
    assert found.report.outcome is Outcome.LIMIT
    assert found.result is None


def test_what_cannot_be_read_has_no_report():
    found = checked("running_sum", {"init": "x"})
    assert found.report is None
    assert found.built.problems


def test_the_leaf_table_has_every_role_and_marks_what_differs():
    roles = [row.role for row in checked("running_sum", {}).leaves]
    assert roles == ["init", "x", "new carry", "y", "ys"]
    assert str(checked("running_sum", {}).leaves[-1].type) == "float32[3]"
    broken = [row for row in evaluate(opening("grows")).leaves if row.broken]
    assert [(row.role, str(row.type)) for row in broken] == [("new carry", "float32[2]")]


def test_axes_by_letter_where_they_were_said():
    found = checked("running_sum", {"source": "generate", "batch": 2, "features": 3, "axes": "time"})
    assert next(row.axes for row in found.leaves if row.role == "x") == "(B=2, F=3)"
    assert next(row.axes for row in checked("running_sum", {}).leaves if row.role == "x") == ""


def test_a_repair_without_an_input_on_the_page_is_not_offered():
    values = opening("running_sum")
    unknown = Repair("step_cast", "Cast", lambda call: call, "carry", "float32")
    nothing = Repair("length", "As it is", lambda call: call, "", None)
    assert edit_for(unknown, values) is None
    assert ScanBench(values).attempt((unknown,)) is None
    assert ScanBench(values).attempt((nothing,)) is None
