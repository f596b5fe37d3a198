"""The Sequence page's "Break it" row, and repairs as edits of its fields."""

from dataclasses import replace

import numpy as np
import pytest

from core.base.outcome import Outcome
from core.base.violation import FieldEdit
from core.contract.rule import Repair
from core.contract.sequence_padding import set_axes, set_size, use_mask
from core.inputs.sequence_bench import SequenceBench
from core.inputs.sequence_breaks import SWITCHES, edit_of, is_on, offered, on, switch_of
from core.inputs.sequence_follow import follow
from core.inputs.sequence_inputs import SequenceInputs, build
from core.inputs.sequence_page import look_at
from core.runners.cell_formulas import KINDS

OPENING = SequenceInputs()
#: Switches whose mistake is a warning (else a note).
BREAKS = {s.id for s in SWITCHES} - {"no_order"}


def edited(inputs, **values):
    """What the page has after a change by hand."""
    return SequenceInputs.of(follow(inputs.values, values))


def broken(name, inputs=OPENING):
    return SequenceInputs.of({**inputs.values, **edit_of(inputs, switch_of(name))})


# --- the "Break it" row -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda s: s.id)
def test_a_switch_gives_its_one_code_silently_and_its_fix_mends_it(switch):
    assert offered(switch, OPENING) == ""
    inputs = broken(switch.id)
    assert [s.id for s in on(inputs)] == [switch.id]
    look = look_at(inputs)
    assert look.raised is None
    assert look.report.codes == (switch.code,)
    violation = look.report.violations[0]
    assert violation.silent
    assert violation.severity.breaks == (switch.id in BREAKS)
    assert violation.fixes
    for fix in violation.fixes:
        after = replace(inputs, **fix.edit.values)
        assert look_at(after).report.outcome is Outcome.OK
        assert not look_at(after).report.violations
    edits = [dict(fix.edit.values) for fix in violation.fixes]
    assert all(edits.count(edit) == 1 for edit in edits), "two buttons for one edit"
    back = replace(inputs, **edit_of(inputs, switch))
    assert not is_on(switch, back)
    assert not look_at(back).report.violations


@pytest.mark.parametrize("name", sorted(BREAKS))
def test_a_switch_has_a_proof_that_the_fix_mends(name):
    proof = look_at(broken(name)).report.violations[0].proof
    assert proof.before != pytest.approx(proof.expected, abs=1e-4)
    assert proof.after == pytest.approx(proof.expected, abs=1e-4)


@pytest.mark.parametrize("cell", [k for k in KINDS if k != "LSTMCell"])
@pytest.mark.parametrize("switch", SWITCHES, ids=lambda s: s.id)
def test_each_switch_breaks_each_cell(cell, switch):
    assert look_at(broken(switch.id, replace(OPENING, cell=cell))).report.codes == (switch.code,)


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda s: s.id)
@pytest.mark.parametrize(
    "others",
    [{"axes": "TBF", "time_major": True}, {"masking": "mask"}, {"direction": "bidirectional"}, {"init": "normal"}],
)
def test_each_switch_gives_its_code_with_other_inputs_too(switch, others):
    inputs = broken(switch.id, replace(OPENING, **others))
    assert switch.code in look_at(inputs).report.codes
    assert is_on(switch, inputs)


@pytest.mark.parametrize(
    ("name", "others", "why"),
    [
        ("not_masked", {"lengths": ""}, "No step is padding"),
        ("zero_length", {"lengths": ""}, "no lengths"),
        ("feature_mask", {"batch": 1}, "one example only"),
        ("summed_mask", {"length": 2}, "three steps"),
        ("not_masked", {"length": 0}, "no steps"),
        ("left_over", {"batch": 0}, "cannot be made"),
        ("feature_mask", {"init": "typed"}, "its own width"),
    ],
)
def test_a_switch_that_makes_no_sense_says_why(name, others, why):
    assert why in offered(switch_of(name), edited(OPENING, **others))


def test_the_mask_along_the_features_raises_where_h_is_not_b():
    look = look_at(edited(broken("feature_mask"), hidden_features=5))
    assert look.raised is not None
    assert look.result is None
    assert look.report.codes == ("L312",)


@pytest.mark.parametrize("mask", ["11111111, 11111111, 11111111", "1, 2", "٠١"])
def test_a_mask_that_did_not_count_is_not_what_the_layer_is_not_told(mask):
    """Told lengths, with a mask left from before: the padding that nobody masks is that of the lengths."""
    before = replace(OPENING, mask=mask)
    assert offered(switch_of("not_masked"), before) == ""
    after = broken("not_masked", before)
    assert is_on(switch_of("not_masked"), after)
    assert look_at(after).report.codes == ("L311",)
    assert look_at(after).trial.lengths == (8, 5, 3)


@pytest.mark.parametrize("others", [{"init": "normal"}, {"lengths": "1, 1"}], ids=["init", "lengths"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_one_step_read_as_one_example_is_said_and_never_crashes(direction, others):
    """B = 2, T = 1 read the wrong way is a batch of one, which JAX repeats for the two rows of init, or of the lengths."""
    inputs = replace(OPENING, batch=2, length=1, lengths="", time_major=True, direction=direction, keep_order=True)
    look = look_at(replace(inputs, **others))
    assert "L309" in look.report.codes
    assert (look.result is None) == (look.raised is not None)
    assert look.numpy is None or look.numpy.within


def test_two_faults_are_mended_together():
    inputs = replace(broken("left_over"), masking="none")
    look = look_at(inputs)
    assert set(look.report.codes) == {"L311", "L317"}
    assert look_at(replace(inputs, **look.all_fixed.edit.values)).report.outcome is Outcome.OK


# --- the bench --------------------------------------------------------------------------------------------------------


def test_the_bench_does_nothing_for_a_repair_it_cannot_say():
    bench = SequenceBench(OPENING)
    assert bench.attempt((Repair("weights", "", lambda trial: trial),)) is None
    assert bench.attempt((set_axes("BTF"),)) is None, "nothing would change"


def test_a_mask_that_the_lengths_mean_is_not_written_down():
    rows = build(replace(OPENING, masking="mask")).trial.mask
    inputs = replace(OPENING, masking="none")
    assert SequenceBench(inputs).attempt((use_mask(rows),)).edit == FieldEdit({"masking": "mask"})
    rows = rows.copy()
    rows[0, 1] = False
    attempt = SequenceBench(inputs).attempt((use_mask(rows),))
    assert attempt.edit.values["mask"].startswith("10111111, ")
    assert np.array_equal(attempt.subject.mask, rows)


@pytest.mark.parametrize(
    "numbers", ["[[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[1, 0], [0, 1]]]", "full((3, 2, 2), 2)", "1 2\n3 4\n5 6"]
)
def test_typed_data_are_turned_round_in_their_text(numbers):
    inputs = edited(OPENING, source="typed", numbers=numbers)
    attempt = SequenceBench(inputs).attempt((set_axes("TBF"),))
    assert attempt.subject.axes == "TBF"
    assert np.array_equal(attempt.subject.inputs, build(inputs).trial.inputs.swapaxes(0, 1))


@pytest.mark.parametrize(("limit", "axis", "shape"), [("batch", "B", (2, 2, 2)), ("length", "T", (3, 1, 2))])
def test_typed_data_are_cut_in_their_text(limit, axis, shape):
    inputs = edited(OPENING, source="typed", numbers="[[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[1, 0], [0, 1]]]")
    attempt = SequenceBench(inputs).attempt((set_size(limit, axis, axis, 2 if axis == "B" else 1),))
    assert attempt.subject.inputs.shape == shape
