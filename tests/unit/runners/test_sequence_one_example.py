"""A batch of one step, read the wrong way: one example that JAX silently repeats for the rows of init, or of the lengths."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from core.base.sequences import Masking, Slip
from core.runners.sequence import call_layer, run_sequence
from core.runners.sequence_reference import against_numpy, sequence_checks
from tests.unit.runners.sequence_trials import CLOSE, numbers, trial

WAYS = {
    "forward": {},
    "reverse": {"reverse": True},
    "kept": {"reverse": True, "keep_order": True},
    "both": {"bidirectional": True},
}
INIT = (numbers(2, 1, seed=1), numbers(2, 1, seed=2))


def layer(given):
    """nnx.RNN or nnx.Bidirectional, written out once more."""
    common = {"time_major": given.time_major}
    cells = [nnx.LSTMCell(1, 1, rngs=nnx.Rngs(given.seed + side)) for side in (0, 1)]
    lengths = None if given.lengths is None else jnp.asarray(given.lengths)
    init = None if given.init is None else tuple(map(jnp.asarray, given.init))
    if given.bidirectional:
        both = nnx.Bidirectional(*(nnx.RNN(cell, **common) for cell in cells), time_major=True, return_carry=True)
        return both(jnp.asarray(given.inputs), initial_carry=init and (init, init), seq_lengths=lengths)
    one = nnx.RNN(cells[0], **common, return_carry=True, reverse=given.reverse, keep_order=given.keep_order)
    return one(jnp.asarray(given.inputs), initial_carry=init, seq_lengths=lengths)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("init", [None, INIT], ids=["zeros", "init"])
def test_it_is_repeated_as_the_layer_repeats_it_or_raises_with_it(way, init):
    for lengths in (None, (1, 2), (0, 0), (2,), (1, 2, 3)):
        masking = Masking.NONE if lengths is None else Masking.LENGTHS
        given = trial(
            shape=(2, 1, 1), hidden=1, time_major=True, masking=masking, lengths=lengths, init=init, **WAYS[way]
        )
        assert given.misread
        try:
            carry, outputs = layer(given)
        except Exception as error:
            with pytest.raises(type(error)):
                run_sequence(given)
            continue
        result = run_sequence(given)
        np.testing.assert_allclose(result.outputs, outputs, **CLOSE)
        got = [part for direction in result.directions for part in direction.final]
        for one, other in zip(got, jax.tree.leaves(carry), strict=True):
            np.testing.assert_allclose(one, other, **CLOSE)
        assert against_numpy(given, result).within
        assert sequence_checks(given, result).ok


@pytest.mark.parametrize("slips", [frozenset(), frozenset({Slip.FEATURE_MASK})], ids=["", "along features"])
@pytest.mark.parametrize("way", ["forward", "reverse", "both"])
def test_a_mask_of_one_example_is_repeated_too(way, slips):
    for hidden, bits in itertools.product((1, 3), ([[1], [0]], [[0], [1]])):
        init = (numbers(2, hidden, seed=1), numbers(2, hidden, seed=2))
        mask = np.asarray(bits, bool)
        given = trial(
            shape=(2, 1, 1), hidden=hidden, time_major=True, masking=Masking.MASK, mask=mask, init=init, slips=slips, **WAYS[way]
        )  # fmt: skip
        result = run_sequence(given)
        returned = call_layer(given)
        for direction, (carry, _) in zip(result.directions, returned if way == "both" else [returned], strict=True):
            for one, other in zip(direction.final, carry, strict=True):
                np.testing.assert_allclose(one, other, **CLOSE)
        assert against_numpy(given, result).within
        assert sequence_checks(given, result).ok
