"""The checks of a layer: they agree with what is right, find what is wrong, and say what padding does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.base.sequences import Masking, Slip
from core.base.tolerance import tolerance_of
from core.runners.cache import count_compiles
from core.runners.cell_formulas import KINDS
from core.runners.sequence import run_sequence
from core.runners.sequence_compare import CheckName, is_rounding
from core.runners.sequence_padding import NO_PADDING
from core.runners.sequence_reference import (
    MASK_ONLY,
    NO_FREE_MASK,
    against_numpy,
    numpy_rounding,
    sequence_checks,
)
from tests.unit.runners.sequence_trials import B, H, T, trial

MASK = np.array([[1, 0, 1, 1, 0], [1, 1, 1, 1, 1], [0, 0, 1, 0, 0]], bool)
COMPUTING = [name for name in CheckName if not name.about_padding]
PADDING = [name for name in CheckName if name.about_padding]


def checked(given, steps=None):
    return sequence_checks(given, run_sequence(given), steps)


def tampered(result, **changes):
    """With arrays of the forward direction changed, and outputs that follow it."""
    direction = replace(result.forward, **changes)
    return replace(result, forward=direction, outputs=direction.outputs)


def bumped(values, index, by=1e-2):
    out = np.array(values)
    out[index] += by
    return out


# --- what agrees ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", [{}, {"reverse": True}, {"reverse": True, "keep_order": True}, {"bidirectional": True}])
def test_lengths_keep_padding_out(kind, way):
    checks = checked(trial(kind, masking=Masking.LENGTHS, lengths=(5, 2, 1), **way))
    assert [check.name for check in checks.checks] == list(CheckName)
    assert checks.ok
    assert checks.complete
    assert all(check.agrees for check in checks.checks if check.name is not CheckName.SCAN)
    assert checks[CheckName.SCAN].reason == MASK_ONLY
    assert checks[CheckName.LARGE].equal
    assert checks[CheckName.NAN].equal
    assert all(check.tolerance == tolerance_of("float32") for check in checks.checks if check.agrees)
    assert checks.unmasked is not None
    assert checks.moved is not None
    assert not checks.moved.within


@pytest.mark.parametrize("way", [{}, {"reverse": True}, {"reverse": True, "keep_order": True}, {"bidirectional": True}])
def test_so_does_a_mask_with_holes(way):
    checks = checked(trial("LSTMCell", masking=Masking.MASK, mask=MASK, **way))
    assert checks.ok
    assert all(check.agrees for check in checks.checks if check.name is not CheckName.LAYER)
    assert checks[CheckName.LAYER].agrees is None
    assert checks[CheckName.LAYER].reason == NO_FREE_MASK


def test_without_padding_there_is_nothing_to_change():
    checks = checked(trial("GRUCell", masking=Masking.LENGTHS, lengths=(5, 5, 5)))
    assert checks[CheckName.LARGE].reason == checks[CheckName.NAN].reason == NO_PADDING
    assert checks[CheckName.LARGE].agrees is None
    assert checks[CheckName.ALONE].agrees
    assert checks.moved is not None
    assert checks.moved.within


def test_a_layer_that_is_told_nothing_has_no_other_to_compare_with():
    checks = checked(trial("GRUCell"))
    assert checks.unmasked is None
    assert checks.moved is None


def test_wrong_axes_left_over_init_and_time_major():
    for given in (
        trial("GRUCell", axes="BTF", time_major=True),
        trial("GRUCell", axes="TBF", bidirectional=True),
        trial("GRUCell", previous=trial(seed=5).inputs),
        trial("GRUCell", weights={"recurrent_scale": 1.5}),
        trial("GRUCell", return_carry=False, masking=Masking.LENGTHS, lengths=(2.5, 1, 1)),
    ):
        assert checked(given).ok


def test_no_steps():
    checks = checked(trial("LSTMCell", shape=(B, 0, 2)))
    assert checks.ok
    assert checks.length == checks.steps == 0


# --- what padding does when nothing keeps it out --------------------------------------------------------------------


def test_lengths_that_are_not_told():
    checks = checked(trial("LSTMCell", lengths=(5, 2, 1)))
    assert checks.ok
    assert [checks[name].agrees for name in PADDING] == [False] * len(PADDING)
    end = checks[CheckName.END]
    assert end.first is not None
    assert (end.first.leaf, end.first.t, end.first.example) == ("final[0]", None, 1)
    assert checks[CheckName.NAN].largest == np.inf
    assert 0.01 < checks[CheckName.LARGE].largest < np.inf


def test_backwards_even_the_outputs_move():
    checks = checked(trial("GRUCell", lengths=(5, 2, 1), reverse=True))
    first = checks[CheckName.LARGE].first
    assert first is not None
    assert (first.leaf, first.t, first.example) == ("ys", 1, 1)


def test_a_length_of_zero_returns_the_last_padded_carry():
    checks = checked(trial("GRUCell", masking=Masking.LENGTHS, lengths=(5, 0, 1)))
    assert checks.ok
    for name in PADDING:
        place = checks[name].first
        assert checks[name].agrees is False
        assert place is not None
        assert place.example == 1


@pytest.mark.parametrize(("slip", "hidden"), [(Slip.SUMMED_MASK, H), (Slip.FEATURE_MASK, B)])
def test_mistakes_with_a_mask_are_computed_as_they_are_and_let_padding_in(slip, hidden):
    checks = checked(trial("GRUCell", hidden=hidden, masking=Masking.MASK, mask=MASK, slips=frozenset({slip})))
    assert checks.ok
    assert checks[CheckName.ALONE].agrees is False
    assert checks[CheckName.LARGE].agrees is False


# --- what is wrong is found -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("leaf", ["carries", "outputs", "gates", "final", "init", "merged"])
def test_the_formulas_find_a_number_that_is_off(leaf):
    given = trial("LSTMCell", masking=Masking.LENGTHS, lengths=(5, 2, 1))
    result = run_sequence(given)
    forward = result.forward
    at = (3, 1, 2)
    wrong = {
        "carries": lambda: tampered(result, carries=(bumped(forward.carries[0], at), forward.carries[1])),
        "outputs": lambda: tampered(result, outputs=bumped(forward.outputs, at)),
        "gates": lambda: tampered(result, gates={**forward.gates, "f": bumped(forward.gates["f"], at)}),
        "final": lambda: tampered(result, final=(forward.final[0], bumped(forward.final[1], (1, 2)))),
        "init": lambda: tampered(result, carries=(bumped(forward.carries[0], (0, 0, 0)), forward.carries[1])),
        "merged": lambda: replace(result, outputs=bumped(result.outputs, at)),
    }[leaf]()
    assert against_numpy(given, result).within
    found = against_numpy(given, wrong)
    assert not found.within
    assert found.largest == pytest.approx(1e-2, rel=0.5)


@pytest.mark.parametrize("way", [{"reverse": True, "keep_order": True}, {"bidirectional": True}])
def test_the_formulas_find_outputs_in_the_wrong_order(way):
    given = trial("GRUCell", **way)
    result = run_sequence(given)
    assert not against_numpy(given, replace(result, outputs=result.outputs[::-1])).within


@pytest.mark.parametrize("name", COMPUTING)
def test_each_way_names_the_place(name):
    masking = {"masking": Masking.MASK, "mask": MASK} if name is CheckName.SCAN else {}
    given = trial("GRUCell", reverse=True, **masking)
    result = run_sequence(given)
    wrong = tampered(result, outputs=bumped(result.forward.outputs, (3, 1, 2)))
    check = sequence_checks(given, wrong, None)[name]
    assert check.agrees is False
    assert check.largest == pytest.approx(1e-2, rel=1e-2)
    assert check.first is not None
    assert (check.first.leaf, check.first.t, check.first.example, check.first.unit) == ("ys", T - 1 - 3, 1, 2)
    assert float(check.first.got) == pytest.approx(float(check.first.want) + 1e-2, abs=1e-5)


@pytest.mark.parametrize("name", [CheckName.LOOP, CheckName.FORMULAS])
def test_a_carry_is_named_by_the_step_that_made_it(name):
    given = trial("LSTMCell")
    result = run_sequence(given)
    carries = result.forward.carries
    off = sequence_checks(given, tampered(result, carries=(bumped(carries[0], (2, 0, 1)), carries[1])), None)[name]
    assert off.first is not None
    assert (off.first.leaf, off.first.t) == ("carry[0]", 1)
    init = sequence_checks(given, tampered(result, carries=(bumped(carries[0], (0, 0, 1)), carries[1])), None)[name]
    assert init.first is not None
    assert init.first.t == -1


def test_the_backward_direction_is_named():
    given = trial("GRUCell", bidirectional=True)
    result = run_sequence(given)
    assert result.backward is not None
    backward = replace(result.backward, outputs=bumped(result.backward.outputs, (4, 0, 0)))
    first = sequence_checks(given, replace(result, backward=backward), None)[CheckName.LOOP].first
    assert first is not None
    assert (first.backward, first.t) == (True, 0)


def test_another_final_carry_is_found_by_the_layer_and_by_the_end():
    given = trial("GRUCell", masking=Masking.LENGTHS, lengths=(5, 2, 1))
    result = run_sequence(given)
    last = tuple(part[-1] for part in result.forward.carries)
    checks = sequence_checks(given, tampered(result, final=last), None)
    assert checks[CheckName.LAYER].agrees is False
    assert checks[CheckName.END].agrees is False
    assert not checks.ok


# --- beyond the tolerance by rounding -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_large_inputs_are_rounded_by_more_than_the_tolerance_and_that_is_said(kind):
    given = trial(kind, shape=(4, 200, 8), hidden=64)
    given = replace(given, inputs=given.inputs * 100)
    result = run_sequence(given)
    found, rounding = against_numpy(given, result), numpy_rounding(given, result)
    assert rounding > tolerance_of("float32").atol
    # Which of them it is depends on how the machine's NumPy multiplies.
    assert found.within or is_rounding(found.largest, rounding)
    # The smallest output, where the tolerance is tightest, moved by twice the rounding.
    outputs = result.forward.outputs
    near = tampered(
        result, outputs=bumped(outputs, np.unravel_index(np.abs(outputs).argmin(), outputs.shape), 2 * rounding)
    )
    checks = sequence_checks(given, near, 1)
    formulas = checks[CheckName.FORMULAS]
    assert formulas.agrees is False
    assert formulas.tolerance == tolerance_of("float32")
    assert formulas.only_rounding
    assert checks.ok


def test_a_bug_among_large_numbers_is_no_rounding():
    given = trial("LSTMCell", shape=(B, 30, 8), hidden=16)
    given = replace(given, inputs=given.inputs * 1000)
    result = run_sequence(given)
    wrong = tampered(result, outputs=bumped(result.forward.outputs, (3, 1, 2)))
    assert not is_rounding(against_numpy(given, wrong).largest, numpy_rounding(given, wrong))
    checks = sequence_checks(given, wrong, None)
    assert not checks[CheckName.FORMULAS].only_rounding
    assert not checks.ok


def test_nan_for_a_number_is_no_rounding():
    given = trial("GRUCell")
    result = run_sequence(given)
    checks = sequence_checks(given, tampered(result, outputs=bumped(result.forward.outputs, (3, 1, 2), np.nan)), None)
    assert checks[CheckName.LOOP].largest == np.inf
    assert not checks[CheckName.LOOP].only_rounding
    assert not checks.ok


# --- what it costs --------------------------------------------------------------------------------------------------


def test_the_loop_is_short_unless_all_is_asked_for():
    given = trial("SimpleCell", shape=(1, 70, 1), hidden=1)
    result = run_sequence(given)
    checks = sequence_checks(given, result)
    assert (checks.steps, checks[CheckName.LOOP].steps, checks.complete) == (64, 64, False)
    assert checks[CheckName.FORMULAS].steps == checks[CheckName.LAYER].steps == 70
    late = tampered(result, outputs=bumped(result.forward.outputs, (68, 0, 0)))
    assert sequence_checks(given, late)[CheckName.LOOP].agrees
    assert not sequence_checks(given, late)[CheckName.FORMULAS].agrees
    everything = sequence_checks(given, late, None)
    assert everything.complete
    assert not everything[CheckName.LOOP].agrees


def test_the_formulas_compile_nothing():
    given = trial("LSTMCell", bidirectional=True, masking=Masking.LENGTHS, lengths=(5, 2, 1))
    result = run_sequence(given)
    with count_compiles() as compiles:
        against_numpy(given, result)
    assert compiles.count == 0


def test_padding_compiles_one_program_at_most():
    given = trial("LSTMCell", masking=Masking.LENGTHS, lengths=(5, 2, 1))
    result = run_sequence(given)
    sequence_checks(given, result, 1)
    with count_compiles() as compiles:
        sequence_checks(replace(given, lengths=(4, 3, 2)), run_sequence(replace(given, lengths=(4, 3, 2))), 1)
    # That of the layer itself, which compiles its scan anew each time it is called without jit.
    assert compiles.count <= 1
