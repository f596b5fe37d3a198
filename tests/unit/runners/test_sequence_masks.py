"""Layers with a mask, and the mistakes one can make with it."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from core.base.sequences import Masking, Slip
from core.runners.cell_formulas import KINDS
from core.runners.layers import built
from core.runners.sequence import hold, run_sequence
from core.runners.sequence_reference import against_numpy
from tests.unit.runners.sequence_trials import CLOSE, B, F, H, T, trial

# --- masks ----------------------------------------------------------------------------------------------------------


def masked_by_hand(given, backwards):
    """Each example on its own, step by step: a masked step gives its output and leaves the carry."""
    cell = built(given.kind, F, given.hidden_features, given.seed)
    outputs = np.zeros((T, B, given.hidden_features), np.float32)
    finals = []
    for b in range(B):
        h = jnp.zeros((1, given.hidden_features))
        carry = (h, h) if KINDS[given.kind].pair else h
        for t in reversed(range(T)) if backwards else range(T):
            new, y = cell(carry, jnp.asarray(given.inputs[b, t][None]))
            outputs[t, b] = y[0]
            carry = new if given.mask[b, t] else carry
        finals.append([np.asarray(part)[0] for part in jax.tree.leaves(carry)])
    return outputs, finals


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", [{}, {"reverse": True}, {"reverse": True, "keep_order": True}, {"bidirectional": True}])
def test_a_mask_with_holes(kind, way):
    mask = np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [0, 1, 0, 0, 1]], bool)
    given = trial(kind, masking=Masking.MASK, mask=mask, **way)
    result = run_sequence(given)
    assert against_numpy(given, result).within
    ways = (False, True) if given.bidirectional else (given.reverse,)
    for side, (direction, backwards) in enumerate(zip(result.directions, ways, strict=True)):
        outputs, finals = masked_by_hand(replace(given, seed=given.seed + side), backwards)
        shown = direction.outputs[::-1] if backwards else direction.outputs
        np.testing.assert_allclose(shown, outputs, **CLOSE)
        np.testing.assert_array_equal(direction.order[:, 0], np.arange(T)[::-1] if backwards else np.arange(T))
        for b, final in enumerate(finals):
            for got, want in zip(direction.final, final, strict=True):
                np.testing.assert_allclose(got[b], want, **CLOSE)
        for p in range(T):
            still = ~direction.valid[p]
            for part in direction.carries:
                np.testing.assert_array_equal(part[p + 1][still], part[p][still])


def test_a_mask_of_ones_changes_nothing_beyond_rounding():
    plain = run_sequence(trial())
    masked = run_sequence(trial(masking=Masking.MASK, mask=np.ones((B, T), bool)))
    np.testing.assert_allclose(masked.outputs, plain.outputs, **CLOSE)


@pytest.mark.parametrize("shape", [(B, T + 1), (B + 1, T), (B, 1), (T, B)])
def test_a_mask_of_a_wrong_shape_raises_as_the_scan_does(shape):
    given = trial("GRUCell", masking=Masking.MASK, mask=np.ones(shape, bool))
    cell = built("GRUCell", F, H, 0)

    def step(carry, x):
        new, y = cell(carry, x[0])
        return hold(carry, new, x[1]), y

    with pytest.raises(Exception) as theirs:  # any: the next line says that ours is the same
        lax.scan(step, jnp.zeros((B, H)), (jnp.asarray(given.inputs).swapaxes(0, 1), jnp.ones(shape, bool).T))
    with pytest.raises(theirs.type):
        run_sequence(given)


# --- mistakes on purpose --------------------------------------------------------------------------------------------


def test_a_mask_along_the_features():
    mask = np.random.default_rng(3).random((B, T)) < 0.5
    given = trial("GRUCell", hidden=B, masking=Masking.MASK, mask=mask, slips=frozenset({Slip.FEATURE_MASK}))
    result = run_sequence(given)
    assert against_numpy(given, result).within
    carries = result.forward.carries[0]
    for p in range(T):
        off = ~mask[:, p]  # unit u listens to the mask of example u
        np.testing.assert_array_equal(carries[p + 1][:, off], carries[p][:, off])
    right = run_sequence(replace(given, slips=frozenset()))
    assert np.abs(result.forward.final[0] - right.forward.final[0]).max() > 1e-3


@pytest.mark.parametrize("hidden", [H, 1])
def test_a_mask_along_features_that_are_not_so_many_raises(hidden):
    mask = np.ones((B, T), bool)
    given = trial("GRUCell", hidden=hidden, masking=Masking.MASK, mask=mask, slips=frozenset({Slip.FEATURE_MASK}))
    with pytest.raises((TypeError, ValueError)):
        run_sequence(given)


def test_a_mask_that_is_summed_comes_as_lengths():
    mask = np.array([[1, 0, 1, 1, 0], [1, 1, 1, 1, 1], [0, 0, 1, 0, 0]], bool)
    given = trial("GRUCell", masking=Masking.MASK, mask=mask, slips=frozenset({Slip.SUMMED_MASK}))
    result = run_sequence(given)
    summed = run_sequence(trial("GRUCell", masking=Masking.LENGTHS, lengths=(3, 5, 1)))
    np.testing.assert_array_equal(result.outputs, summed.outputs)
    np.testing.assert_array_equal(result.forward.final[0], summed.forward.final[0])
    np.testing.assert_array_equal(result.forward.valid, mask.T)


@pytest.mark.parametrize("slip", [Slip.BUILT_IN_STEP, Slip.UNPACKED])
def test_slips_that_change_no_number(slip):
    plain, slipped = run_sequence(trial()), run_sequence(trial(slips=frozenset({slip})))
    np.testing.assert_array_equal(plain.outputs, slipped.outputs)
