"""L310, L311 and L321 on the Sequence page: lengths and masks, and what they do to the carry."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from core.base.places import Field
from core.base.sequences import Masking, Slip
from core.contract.engine import check
from core.runners.cell_formulas import KINDS
from tests.unit.contract.sequence_support import (
    HOLES,
    LENGTHS,
    MASK,
    PREFIX,
    RAGGED,
    clean,
    mended,
    only,
    raised,
    really,
    silent,
    slip,
    some,
    trial,
)

T = 5
#: Each kind of cell, each way through the data.
REVERSE, BOTH = {"reverse": True, "keep_order": True}, {"bidirectional": True}
WAYS = list(zip(KINDS, ({}, REVERSE, BOTH, REVERSE), strict=True))


def told(lengths: Any, **changes: Any) -> Any:
    return trial(masking=LENGTHS, lengths=lengths, **changes)


def prefix(*lengths: int) -> Any:
    return np.arange(T) < np.array(lengths)[:, None]


# --- L310 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "way"), WAYS)
def test_a_length_of_0_returns_the_padded_carry(kind: str, way: dict[str, bool]) -> None:
    bad = told((5, 0, 3), kind=kind, **way)
    violation = silent(bad, "L310")
    assert violation.message == (
        "Example 1: length 0, so no step of it counts; JAX returns the carry after all 5 steps."
    )
    assert violation.place == Field("sequence_lengths", "lengths")
    assert violation.path == "seq_lengths[1]"
    assert violation.proof is not None
    assert violation.proof.claim.startswith("The carry returned for example 1,")
    right = mended(bad, "L310", "mask")
    assert right.masking is MASK
    np.testing.assert_array_equal(right.mask, prefix(5, 0, 3))
    clean(right)


def test_the_proof_of_a_length_of_0_is_the_padded_carry_itself() -> None:
    bad = told((5, 0, 3))
    violation = silent(bad, "L310")
    carry, _ = really(bad)
    assert violation.proof is not None
    assert violation.proof.before == pytest.approx(max(np.abs(part[1]).max() for part in carry), rel=1e-5)


def test_lengths_above_t_are_cut_without_a_word() -> None:
    violation = silent(told((9, 3, 7)), "L310")
    assert violation.message == ("Example 0: length 9 is above T = 5; JAX stops at 5 without a word. So is example 2.")
    assert violation.proof is not None
    assert violation.proof.claim == "Steps that the lengths ask for and the data do not have."
    assert violation.proof.before == 4 + 2
    assert mended(told((9, 3, 7)), "L310", "lengths").lengths == (5, 3, 5)


def test_above_t_a_reversed_layer_starts_in_the_middle_and_the_carry_moves() -> None:
    violation = silent(told((8, 3, 5), reverse=True, keep_order=True), "L310")
    assert violation.proof is not None
    assert violation.proof.claim.startswith("The carry returned for example 0,")


@pytest.mark.parametrize(("length", "taken"), [(-1, 4), (-3, 2), (-5, 1), (-20, 1)])
def test_a_negative_length_counts_from_the_end(length: int, taken: int) -> None:
    bad = told((5, length, 3))
    violation = silent(bad, "L310")
    assert f"returns the carry after {taken} of the 5 steps" in violation.message
    got, wanted = really(bad)[0], really(told((5, taken, 3)))[0]
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    clean(mended(bad, "L310", "lengths"))


@pytest.mark.parametrize(
    ("lengths", "said", "right"),
    [
        ((5, 2.5, 3), "Example 1: length 2.5 is no whole number; JAX raises.", (5, 2, 3)),
        ((5, 2.0, 3), "Example 1: length 2.0 is no whole number; JAX raises.", (5, 2, 3)),
        (("x", 2, 3), "Example 0: length x is no number; JAX raises.", (5, 2, 3)),
        ((5, 2, None), "Example 2: length None is no number; JAX raises.", (5, 2, 5)),
        ((5, float("nan"), 3), "Example 1: length nan is no number; JAX raises.", (5, 5, 3)),
        ((5, 2**31, 3), "Example 1: length 2147483648 is above T = 5, and too large for JAX to read.", (5, 5, 3)),
        ((4, 2), "There are 2 lengths for 3 examples; JAX raises.", (4, 2, 5)),
        ((4, 2, 3, 5), "There are 4 lengths for 3 examples; JAX raises.", (4, 2, 3)),
        ((), "There is no length for the 3 examples.", (5, 5, 5)),
        ((4, 9), "There are 2 lengths for 3 examples; JAX raises.", (4, 5, 5)),
    ],
)
def test_what_is_no_list_of_lengths_raises(lengths: Any, said: str, right: tuple[int, ...]) -> None:
    bad = told(lengths)
    violation = raised(bad, "L310")
    assert violation.message == said
    assert mended(bad, "L310", "lengths").lengths == right
    clean(mended(bad, "L310", "lengths"))


def test_one_length_is_used_for_all_without_a_word() -> None:
    violation = silent(told((4,)), "L310")
    assert violation.message == "There is 1 length, 4, for 3 examples; JAX uses it for each of them without a word."
    assert mended(told((4,)), "L310", "lengths").lengths == (4, 4, 4)


def test_a_single_example_has_a_single_length() -> None:
    clean(trial((1, 5, 2, 4), masking=LENGTHS, lengths=(3,)))


def test_each_kind_of_bad_length_is_one_message() -> None:
    report = check(told((0, -2, 9)))
    assert [v.code for v in report.broken] == ["L310"] * 3
    assert len({v.path for v in report.broken}) == 3
    assert all(v.fixes for v in report.broken)


def test_a_long_list_names_the_first_and_some_of_the_others() -> None:
    violation = only(trial((12, 5, 2, 4), masking=LENGTHS, lengths=(9,) * 12), "L310")
    assert violation.message.endswith("So are examples 1, 2, 3, 4, 5, 6, 7, 8, ….")


def test_lengths_that_are_not_used_are_bad_all_the_same() -> None:
    report = check(trial(lengths=(5, 9, 3)))
    assert [v.code for v in report.broken] == ["L310", "L311"]
    assert report.broken[0].message == (
        "Example 1: length 9 is no whole number from 0 to T = 5; the layer is not told."
    )


def test_a_mask_rules_where_there_is_one() -> None:
    clean(trial(masking=MASK, mask=prefix(5, 0, 3), lengths=(9, 0, 3)))


@pytest.mark.parametrize("lengths", [RAGGED, (5, 5, 5), (1, 1, 1), tuple(np.array(RAGGED))])
def test_good_lengths(lengths: Any) -> None:
    clean(told(lengths))
    clean(told(lengths, bidirectional=True))


def test_no_step_at_all() -> None:
    bad = trial((3, 0, 2, 4), masking=LENGTHS, lengths=(0, 0, 0))
    violation = raised(bad, "L310")
    assert violation.message == ("The data have no steps: there is no carry to choose by lengths, and JAX raises.")
    assert mended(bad, "L310", "masking").masking is Masking.NONE
    clean(mended(bad, "L310", "masking"), "S111")
    clean(trial((3, 0, 2, 4)), "S111")


# --- L311 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "way"), WAYS)
def test_lengths_that_the_layer_is_not_told(kind: str, way: dict[str, bool]) -> None:
    bad = trial(kind=kind, lengths=RAGGED, **way)
    violation = silent(bad, "L311")
    assert violation.message == (
        "6 of the 15 steps are padding, as the lengths say, and the layer is not told: they move the carry like all others."
    )
    assert violation.place == Field("sequence_masking", "masking")
    assert violation.because is not None
    assert violation.because.place == Field("sequence_lengths", "lengths")
    assert violation.proof is not None
    first = "The final carry, compared with" if way.get("reverse") else "Three more steps of padding"
    assert violation.proof.claim.startswith(first)
    right = mended(bad, "L311", "masking")
    assert right.masking is LENGTHS
    clean(right)


def test_the_proof_is_three_more_steps_of_zeros() -> None:
    bad = trial(lengths=RAGGED)
    violation = silent(bad, "L311")
    longer = replace(bad, inputs=np.concatenate([bad.inputs, np.zeros((3, 3, 2), np.float32)], 1))
    apart = [np.abs(a - b).max() for a, b in zip(really(bad)[0], really(longer)[0], strict=True)]
    assert violation.proof is not None
    assert violation.proof.before == pytest.approx(max(apart), rel=1e-5)


def test_a_mask_that_the_layer_is_not_told() -> None:
    bad = trial(mask=HOLES)
    violation = silent(bad, "L311")
    assert "as the mask says" in violation.message
    assert [fix.title for fix in violation.fixes] == ["Scan with the mask: a step that is off keeps the carry"]
    clean(mended(bad, "L311", "mask"))


def test_where_padding_moves_nothing_it_is_counted() -> None:
    """A batch of zeros leaves a carry of zeros where it is: the fault is there all the same."""
    violation = silent(trial(lengths=RAGGED, inputs=np.zeros((3, 5, 2), np.float32)), "L311")
    assert violation.proof is not None
    assert violation.proof.claim == "Padding steps that reach the carry."
    assert violation.proof.before == 6


def test_an_empty_example_wants_a_mask() -> None:
    bad = trial(lengths=(5, 0, 3))
    violation = silent(bad, "L311")
    assert [fix.title for fix in violation.fixes] == ["Scan with the mask: a step that is off keeps the carry"]


def test_nothing_is_padding() -> None:
    clean(trial(lengths=(5, 5, 5)))
    clean(trial(mask=np.ones((3, 5), bool)))
    clean(trial())


# --- L321 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "way"), WAYS)
def test_a_mask_with_a_hole_is_summed(kind: str, way: dict[str, bool]) -> None:
    bad = slip(Slip.SUMMED_MASK, masking=LENGTHS, mask=HOLES, kind=kind, **way)
    violation = silent(bad, "L321")
    assert violation.message == (
        "The mask is summed into seq_lengths, and it has a hole: step 1 of example 0 is off and one after it is on. The "
        "layer takes the first 3 steps, that one too."
    )
    assert violation.place == Field("sequence_slip", "slip")
    right = mended(bad, "L321", "mask")
    assert right.masking is MASK
    assert not right.slips
    clean(right)


def test_the_sum_of_a_mask_without_a_hole_is_a_length() -> None:
    clean(slip(Slip.SUMMED_MASK, masking=LENGTHS, mask=PREFIX))


def test_padding_in_front_is_a_hole() -> None:
    violation = silent(slip(Slip.SUMMED_MASK, masking=LENGTHS, mask=PREFIX[:, ::-1]), "L321")
    assert "step 0 of example 0 is off" in violation.message


def test_an_example_that_is_off_everywhere_sums_to_0() -> None:
    mask = PREFIX.copy()
    mask[1] = False
    bad = slip(Slip.SUMMED_MASK, masking=LENGTHS, mask=mask)
    violation = silent(bad, "L310")
    assert violation.message.startswith(
        "The mask of example 1 is off everywhere and its sum, 0, is given for a length;"
    )
    assert violation.place == Field("sequence_mask", "mask")
    clean(mended(bad, "L310", "mask"))


def test_numbers_of_a_summed_mask_of_zeros_are_counted() -> None:
    """Where no number moves, the steps that run all the same are counted."""
    bad = slip(Slip.SUMMED_MASK, masking=LENGTHS, mask=HOLES, inputs=np.zeros((3, 5, 2), np.float32))
    violation = silent(bad, "L321")
    assert violation.proof is not None
    assert violation.proof.claim == "Steps that the mask switches off and that are run all the same."
    assert violation.proof.before == 1


def test_two_faults_are_two_messages() -> None:
    report = check(trial(lengths=RAGGED, previous=some(3, 5, 2, seed=3)))
    assert sorted(v.code for v in report.broken) == ["L311", "L317"]
    assert all(v.fixes for v in report.broken)


@pytest.mark.parametrize("length", [0, -2])
def test_where_padding_moves_no_number_the_steps_are_counted(length: int) -> None:
    """A batch whose padding is zeros, from a carry of zeros."""
    data = some(3, 5, 2)
    data[1] = 0
    violation = silent(told((5, length, 3), inputs=data), "L310")
    assert violation.proof is not None
    assert violation.proof.claim == (
        "Steps that the carry returned for example 1 has run through, although none of them counts."
    )
    assert violation.proof.before == (5 if length == 0 else 3)


def test_one_button_mends_all_lengths() -> None:
    report = check(told((9, 2.5, -3)))
    assert [v.code for v in report.broken] == ["L310"] * 3
    assert {fix.title for v in report.broken for fix in v.fixes} == {"Set the lengths to 5, 2, 3"}


def test_a_layer_that_misses_its_mask_gets_it_without_another_slip() -> None:
    bad = slip(Slip.FEATURE_MASK, mask=HOLES)
    violation = silent(bad, "L311")
    assert violation.fixes
    clean(mended(bad, "L311", "mask"))
