"""L309, L312, L313, L317, L319 and S114 on the Sequence page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from flax import nnx

from core.base.places import Field, Places
from core.base.sequences import Slip
from core.base.violation import Severity
from core.contract.engine import CallBench, check, fix_all
from core.runners.cell_formulas import KINDS
from tests.unit.contract.sequence_support import (
    HOLES,
    LENGTHS,
    MASK,
    PREFIX,
    RAGGED,
    clean,
    mended,
    note,
    only,
    raised,
    really,
    silent,
    slip,
    some,
    trial,
)

REVERSE, BOTH = {"reverse": True, "keep_order": True}, {"bidirectional": True}
WAYS = list(zip(KINDS, ({}, REVERSE, BOTH, REVERSE), strict=True))
AXES = ("BTF", "TBF")


def misread(axes: str = "BTF", **changes: Any) -> Any:
    return trial(axes=axes, **{"time_major": axes == "BTF", **changes})


# --- L309 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "way"), WAYS)
@pytest.mark.parametrize("axes", AXES)
def test_the_batch_is_taken_for_time(axes: str, kind: str, way: dict[str, bool]) -> None:
    bad = misread(axes, kind=kind, **way)
    violation = silent(bad, "L309")
    assert "it walks over the 3 examples, and takes the 5 steps for examples." in violation.message.replace(
        "the layer walks", "it walks"
    )
    assert violation.place == Field("sequence_time_major", "time_major")
    assert violation.because is not None
    assert violation.because.place == Field("sequence_axes", "axes")
    assert len(violation.fixes) == 2
    told, turned = mended(bad, "L309", "time_major"), mended(bad, "L309", "axes")
    assert told.time_major == (axes == "TBF")
    assert turned.axes != axes
    np.testing.assert_array_equal(turned.inputs, bad.inputs.swapaxes(0, 1))
    clean(told)
    clean(turned)


def test_the_proof_is_another_example_that_moves() -> None:
    bad = misread()
    violation = silent(bad, "L309")
    data = bad.inputs.copy()
    data[0] += np.float32(0.1)
    apart = np.abs(np.asarray(really(replace(bad, inputs=data))[1]) - np.asarray(really(bad)[1]))[1]
    assert violation.proof is not None
    assert violation.proof.before == pytest.approx(apart.max(), rel=1e-4)
    assert "Example 0 was changed by 0.1" in violation.proof.claim


def test_a_reversed_layer_goes_from_the_last_example_to_the_first() -> None:
    violation = silent(misread(**REVERSE), "L309")
    assert violation.proof is not None
    assert violation.proof.claim.startswith("Example 2 was changed by 0.1 at each step and example 1 was watched")


def test_one_example_is_proven_by_the_steps_walked() -> None:
    violation = silent(trial((1, 5, 2, 4), time_major=True), "L309")
    assert violation.proof is not None
    assert (violation.proof.before, violation.proof.after, violation.proof.expected) == (1, 5, 5)


def test_the_time_is_given_when_it_is_one_step() -> None:
    violation = silent(trial((3, 1, 2, 4), time_major=True), "L309")
    assert "takes the one step for examples" in violation.message


def test_one_number_is_read_the_same_either_way() -> None:
    assert note(trial((1, 1, 2, 4), time_major=True), "L309").severity is Severity.NOTE


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize(
    "given",
    [
        {"masking": LENGTHS, "lengths": RAGGED},
        {"init": (some(3, 4), some(3, 4, seed=1))},
    ],
)
def test_where_nothing_fits_it_raises_and_that_is_all_that_is_said(axes: str, given: dict[str, Any]) -> None:
    violation = raised(misread(axes, **given), "L309")
    assert len(violation.fixes) == 2
    assert violation.proof is None


def test_a_mask_is_turned_with_the_data_and_no_fault_of_its_own() -> None:
    bad = misread(masking=MASK, mask=HOLES)
    assert [fix.title for fix in only(bad, "L309").fixes]


def test_square_data_are_misread_too() -> None:
    """B = T: no shape tells, and the page knows."""
    silent(trial((4, 4, 2, 3), time_major=True), "L309")
    silent(trial((4, 4, 2, 3), time_major=True, masking=LENGTHS, lengths=(4, 3, 2, 1)), "L309")


@pytest.mark.parametrize("axes", AXES)
def test_data_that_are_read_as_they_are(axes: str) -> None:
    clean(trial(axes=axes))
    clean(trial(axes=axes, masking=LENGTHS, lengths=RAGGED))


def test_what_else_is_wrong_is_said_beside_it_and_all_is_mended_together() -> None:
    bad = misread(lengths=RAGGED, previous=some(3, 5, 2, seed=3))
    report = check(bad)
    assert [v.code for v in report.broken] == ["L309", "L311", "L317"]
    assert report.broken[0].fixes[0].remaining == ("L311", "L317")
    assert fix_all(bad, CallBench(bad)) is not None


# --- L312 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "way"), WAYS)
def test_a_mask_along_the_units(kind: str, way: dict[str, bool]) -> None:
    bad = slip(Slip.FEATURE_MASK, sizes=(3, 5, 2, 3), masking=MASK, mask=HOLES, kind=kind, **way)
    violation = silent(bad, "L312")
    assert violation.message == (
        "The mask of a step, (3,), meets the carry (3, 3) without an axis for the units: unit j of every example is kept "
        "or moved as the mask of example j says."
    )
    assert violation.place == Field("sequence_slip", "slip")
    right = mended(bad, "L312", "slip")
    assert not right.slips
    clean(right)


def test_the_proof_is_a_mask_of_another_example() -> None:
    bad = slip(Slip.FEATURE_MASK, sizes=(3, 5, 2, 3), masking=MASK, mask=HOLES)
    turned = HOLES.copy()
    turned[0] = ~turned[0]
    pairs = zip(really(bad)[0], really(replace(bad, mask=turned))[0], strict=True)
    apart = max(np.abs(np.asarray(a) - np.asarray(b))[1:].max() for a, b in pairs)
    proof = silent(bad, "L312").proof
    assert proof is not None
    assert proof.before == pytest.approx(apart, rel=1e-4)


@pytest.mark.parametrize("hidden", [4, 1])
def test_a_mask_that_does_not_fit_the_units_raises(hidden: int) -> None:
    bad = slip(Slip.FEATURE_MASK, sizes=(3, 5, 2, hidden), masking=MASK, mask=HOLES)
    violation = raised(bad, "L312")
    assert violation.message.startswith(f"The mask of a step, (3,), does not fit the carry (3, {hidden})")
    clean(mended(bad, "L312", "slip"))


def test_a_mask_that_is_on_everywhere_is_in_the_wrong_place_all_the_same() -> None:
    silent(slip(Slip.FEATURE_MASK, sizes=(3, 5, 2, 3), masking=MASK, mask=np.ones((3, 5), bool)), "L312")


def test_one_example_has_a_mask_of_one() -> None:
    clean(slip(Slip.FEATURE_MASK, sizes=(1, 5, 2, 4), masking=MASK, mask=HOLES[:1]))
    clean(slip(Slip.FEATURE_MASK, sizes=(1, 5, 2, 1), masking=MASK, mask=HOLES[:1]))


def test_a_mask_with_an_axis_for_the_units() -> None:
    clean(trial((3, 5, 2, 3), masking=MASK, mask=HOLES))


# --- L313 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "way"), WAYS)
def test_a_cell_is_built_in_the_step(kind: str, way: dict[str, bool]) -> None:
    bad = slip(Slip.BUILT_IN_STEP, kind=kind, **way)
    violation = silent(bad, "L313")
    assert violation.message == (
        f"{kind} is built inside the step: its weights are new in each trace and gone after it, so nothing can learn them."
    )
    cells = 2 if way.get("bidirectional") else 1
    state = nnx.state(KINDS[kind].cell(2, 4, rngs=nnx.Rngs(0)), nnx.Param)
    size = cells * sum(np.size(leaf) for leaf in jax.tree.leaves(state))
    assert violation.proof is not None
    assert (violation.proof.before, violation.proof.after, violation.proof.expected) == (0, size, size)
    clean(mended(bad, "L313", "slip"))


# --- L317 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "way"), WAYS)
def test_the_carry_of_another_sequence_is_init(kind: str, way: dict[str, bool]) -> None:
    bad = trial(kind=kind, previous=some(3, 5, 2, seed=3), **way)
    violation = silent(bad, "L317")
    assert ("c and h" if KINDS[kind].pair else "left in h") in violation.message
    assert violation.place == Field("sequence_init", "init")
    right = mended(bad, "L317", "init")
    assert right.previous is None
    clean(right)


def test_the_proof_changes_the_sequence_before() -> None:
    bad = trial(previous=some(3, 5, 2, seed=3))
    other = replace(bad, previous=some(3, 5, 2, seed=3) + np.float32(0.1))
    pairs = zip(really(bad)[0], really(other)[0], strict=True)
    proof = silent(bad, "L317").proof
    assert proof is not None
    assert proof.before == pytest.approx(max(np.abs(np.asarray(a - b)).max() for a, b in pairs), rel=1e-4)


def test_a_long_sequence_forgets_and_its_outputs_are_watched() -> None:
    bad = trial((2, 200, 2, 4), kind="GRUCell", previous=some(2, 200, 2, seed=3))
    proof = only(bad, "L317").proof
    assert proof is not None
    assert proof.claim.endswith("largest move of its outputs.")
    assert proof.before > 0
    assert proof.after == 0


def test_a_carry_that_is_given_is_no_left_over() -> None:
    clean(trial(init=(some(3, 4), some(3, 4, seed=1))))


# --- L319 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "way"), WAYS)
def test_two_examples_are_unpacked_as_carry_and_outputs(kind: str, way: dict[str, bool]) -> None:
    bad = slip(Slip.UNPACKED, sizes=(2, 5, 3, 4), kind=kind, **way)
    violation = silent(bad, "L319")
    assert "carry is the outputs of example 0, and ys those of example 1" in violation.message
    assert violation.proof is not None
    assert (violation.proof.before, violation.proof.after, violation.proof.expected) == (1, 2, 2)
    right = mended(bad, "L319", "slip")
    assert right.return_carry
    assert not right.slips
    clean(right)


def test_two_steps_are_unpacked_where_time_is_first() -> None:
    violation = silent(slip(Slip.UNPACKED, sizes=(3, 2, 3, 4), axes="TBF"), "L319")
    assert "their first axis, time: carry is the outputs of step 0, and ys those of step 1" in violation.message
    assert violation.proof is not None
    assert violation.proof.claim == "The data have 2 steps; this many of them are in ys."


@pytest.mark.parametrize("batch", [1, 3])
def test_any_other_batch_raises(batch: int) -> None:
    bad = slip(Slip.UNPACKED, sizes=(batch, 5, 3, 4))
    violation = raised(bad, "L319")
    assert violation.jax_said is not None
    assert violation.jax_said.startswith("ValueError")
    assert f"float32[{batch},5,4]" in violation.message
    clean(mended(bad, "L319", "slip"))


def test_the_outputs_alone_are_a_fine_thing_to_ask_for() -> None:
    clean(trial((2, 5, 3, 4), return_carry=False))


def test_a_scan_with_a_mask_returns_its_carry_in_any_case() -> None:
    clean(slip(Slip.UNPACKED, masking=MASK, mask=HOLES))


def test_lengths_of_0_are_said_beside_it() -> None:
    report = check(slip(Slip.UNPACKED, sizes=(2, 5, 3, 4), masking=LENGTHS, lengths=(5, 0)))
    assert sorted(v.code for v in report.broken) == ["L310", "L319"]
    assert all(v.fixes for v in report.broken)


# --- S114 -----------------------------------------------------------------------------------------------------------


def test_outputs_come_in_the_order_of_visits() -> None:
    it = trial(reverse=True)
    violation = note(it, "S114")
    assert "output 0 belongs to t = 4" in violation.message
    assert violation.fixes
    clean(mended(it, "S114", "keep_order"))


def test_with_lengths_each_example_has_an_order_of_its_own() -> None:
    violation = note(trial(reverse=True, masking=LENGTHS, lengths=RAGGED), "S114")
    assert "output 0 of example 1 belongs to t = 2" in violation.message


def test_no_note_where_the_order_is_kept() -> None:
    clean(trial(reverse=True, keep_order=True))
    clean(trial(bidirectional=True))
    clean(trial((3, 1, 2, 4), reverse=True))


# --- places -----------------------------------------------------------------------------------------------------------


def test_places_are_the_inputs_of_the_page() -> None:
    field = Field("sequence_time_major", "is time first?")
    assert only(misread(places=Places({"time_major": field})), "L309").place == field


def test_the_prefix_mask_is_a_mask_like_any_other() -> None:
    clean(trial(masking=MASK, mask=PREFIX))
