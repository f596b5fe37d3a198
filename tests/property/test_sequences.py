"""Layers over sequences of any shape, direction, mask and lengths, against `nnx.RNN`, a loop over Flax's cell, and NumPy.

The oracle goes through each example on its own, with plain lists of the steps it reads: it knows nothing of padding to
powers of two, of flipped indices or of masks that are arrays.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from hypothesis import event, given, note, settings
from hypothesis import strategies as st

from core.base.sequences import Masking, SequenceResult
from core.contract.subject import SequenceTrial
from core.runners.cell_formulas import KINDS
from core.runners.sequence import run_sequence
from core.runners.sequence_compare import CheckName
from core.runners.sequence_reference import against_numpy, sequence_checks

#: The repository's tolerance of float32.
CLOSE = {"rtol": 1e-5, "atol": 1e-6}
#: Few sizes (F, H): every new one is compiled anew, here and by Flax.
SIZES = ((1, 1), (2, 3), (3, 2))
WAYS = ("forward", "reverse", "kept", "both")


def fewer(by: int) -> settings:
    """So many times fewer examples: each compiles several programs, since `nnx.RNN` without jit does so at every call."""
    return settings(max_examples=settings().max_examples // by)


@st.composite
def trials(draw: st.DrawFn, maskings: tuple[Masking, ...] = tuple(Masking), *, right: bool = False) -> SequenceTrial:
    """Any layer. `right`: the axes as the layer reads them, and lengths from 1 to T."""
    features, hidden = draw(st.sampled_from(SIZES))
    batch = draw(st.integers(1, 3))
    length = draw(st.integers(1, 9)) if right else draw(st.integers(0, 9))
    axes = draw(st.sampled_from(["BTF", "TBF"]))
    way = draw(st.sampled_from(WAYS))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = {"B": batch, "T": length, "F": features}
    inputs = random.normal(size=tuple(sizes[a] for a in axes)) * draw(st.sampled_from([0.5, 3.0]))
    masking = draw(st.sampled_from(maskings))
    low, high = (1, length) if right else (-2, length + 2)
    lengths = tuple(draw(st.integers(low, high)) for _ in range(batch))
    mask = random.random((batch, length)) < draw(st.sampled_from([0.0, 0.5, 0.8, 1.0]))
    kind = draw(st.sampled_from(list(KINDS)))
    init = tuple(random.normal(size=(batch, hidden)).astype(np.float32) for _ in KINDS[kind].parts)
    return SequenceTrial(
        kind=kind,
        inputs=inputs.astype(draw(st.sampled_from(["float32", "float16", "float64"]))),
        axes=axes,
        hidden_features=hidden,
        seed=draw(st.integers(0, 3)),
        time_major=(axes == "TBF") != (not right and draw(st.integers(0, 3)) == 0),
        reverse=way in ("reverse", "kept"),
        keep_order=way == "kept",
        bidirectional=way == "both",
        unroll=draw(st.sampled_from([1, 1, 2])),
        masking=masking,
        lengths=lengths if masking is Masking.LENGTHS or draw(st.booleans()) else None,
        mask=mask if masking is Masking.MASK or draw(st.booleans()) else None,
        init=init if draw(st.booleans()) else None,
    )


def flax_cell(trial: SequenceTrial, side: int) -> Any:
    cell = KINDS[trial.kind].cell
    return cell(trial.inputs.shape[-1], trial.hidden_features, rngs=nnx.Rngs(trial.seed + side))


def layer(trial: SequenceTrial) -> tuple[list[list[Any]], Any]:
    """`nnx.RNN` or `nnx.Bidirectional`: parts of the final carry of each direction, and the outputs, time-first."""
    common = {"time_major": trial.time_major, "unroll": trial.unroll}
    start = None
    if trial.init is not None:
        parts = tuple(map(jnp.asarray, trial.init))
        start = parts if KINDS[trial.kind].pair else parts[0]
    given_lengths = None if trial.masking is not Masking.LENGTHS else jnp.asarray(trial.lengths)
    if trial.bidirectional:
        cells = (nnx.RNN(flax_cell(trial, side), **common) for side in (0, 1))
        both = nnx.Bidirectional(*cells, time_major=trial.time_major, return_carry=True)
        start = None if start is None else (start, start)
        carries, outputs = both(jnp.asarray(trial.inputs), initial_carry=start, seq_lengths=given_lengths)
    else:
        one = nnx.RNN(
            flax_cell(trial, 0), **common, return_carry=True, reverse=trial.reverse, keep_order=trial.keep_order
        )
        carry, outputs = one(jnp.asarray(trial.inputs), initial_carry=start, seq_lengths=given_lengths)
        carries = (carry,)
    return [jax.tree.leaves(c) for c in carries], outputs if trial.time_major else outputs.swapaxes(0, 1)


def same(result: SequenceResult, finals: list[list[Any]], outputs: Any) -> None:
    np.testing.assert_allclose(result.outputs, outputs, **CLOSE)
    for direction, final in zip(result.directions, finals, strict=True):
        for got, want in zip(direction.final, final, strict=True):
            np.testing.assert_allclose(got, want, **CLOSE)


@given(trials((Masking.NONE, Masking.LENGTHS)))
@fewer(2)
def test_as_the_layer_of_flax(trial: SequenceTrial) -> None:
    note(repr(trial))
    try:
        finals, outputs = layer(trial)
    except Exception as error:
        event("both raise")
        try:
            run_sequence(trial)
        except type(error):
            return
        raise
    result = run_sequence(trial)
    same(result, finals, outputs)
    assert against_numpy(trial, result).within


def visits(trial: SequenceTrial, example: int, *, backwards: bool) -> list[int]:
    """The steps of one example in the order they are read."""
    steps = list(range(trial.length))
    if not backwards:
        return steps
    if trial.masking is Masking.LENGTHS and trial.lengths is not None:
        own, padding = steps[: trial.lengths[example]], steps[trial.lengths[example] :]
        return own[::-1] + padding[::-1]
    return steps[::-1]


@given(trials(right=True))
@fewer(4)
def test_as_a_loop_over_each_example_alone(trial: SequenceTrial) -> None:
    note(repr(trial))
    result = run_sequence(trial)
    kind = KINDS[trial.kind]
    data = trial.read.astype(np.float32)
    ways = (False, True) if trial.bidirectional else (trial.reverse,)
    for side, (direction, backwards) in enumerate(zip(result.directions, ways, strict=True)):
        cell = flax_cell(trial, side)
        for b in range(trial.batch):
            order = visits(trial, b, backwards=backwards)
            np.testing.assert_array_equal(direction.order[:, b], order)
            parts = [np.zeros((1, trial.hidden_features), np.float32) for _ in kind.parts]
            if trial.init is not None:
                parts = [part[b][None] for part in trial.init]
            final = parts
            for p, t in enumerate(order):
                new, y = cell(tuple(parts) if kind.pair else parts[0], data[t, b][None])
                np.testing.assert_allclose(direction.outputs[p, b], np.asarray(y)[0], **CLOSE)
                counts = trial.masking is not Masking.MASK or (trial.mask is not None and trial.mask[b, t])
                parts = [np.asarray(part) for part in jax.tree.leaves(new)] if counts else parts
                for got, want in zip(direction.carries, parts, strict=True):
                    np.testing.assert_allclose(got[p + 1, b], want[0], **CLOSE)
                told = trial.masking is Masking.LENGTHS and trial.lengths is not None
                final = parts if not told or (trial.lengths is not None and p < trial.lengths[b]) else final
            for got, want in zip(direction.final, final, strict=True):
                np.testing.assert_allclose(got[b], want[0], **CLOSE)


@given(trials((Masking.LENGTHS, Masking.MASK), right=True))
@fewer(4)
def test_padding_does_not_move_the_valid_part(trial: SequenceTrial) -> None:
    note(repr(trial))
    checks = sequence_checks(trial, run_sequence(trial), None)
    assert checks.ok
    for name in CheckName:
        assert checks[name].agrees is not False
    for name in (CheckName.LARGE, CheckName.NAN):
        assert checks[name].equal


@given(trials((Masking.NONE,), right=True), st.integers(1, 9))
@fewer(4)
def test_what_comes_later_changes_no_bit(trial: SequenceTrial, longer: int) -> None:
    """A longer sequence of the same power of two begins with the same numbers, to the last bit."""
    trial = replace(trial, reverse=False, bidirectional=False, time_major=trial.axes == "TBF")
    axis = trial.axes.index("T")
    more = np.resize(trial.inputs, [n + longer * (a == axis) for a, n in enumerate(trial.inputs.shape)])
    index = tuple(slice(0, trial.length) if a == axis else slice(None) for a in range(3))
    more[index] = trial.inputs
    short, long = run_sequence(trial), run_sequence(replace(trial, inputs=more, lengths=None, mask=None))
    if short.padded != long.padded:
        event("another power of two")
        np.testing.assert_allclose(short.outputs, long.outputs[: trial.length], **CLOSE)
        return
    event("the same power of two")
    np.testing.assert_array_equal(short.outputs, long.outputs[: trial.length])
    for a, b in zip(short.forward.carries, long.forward.carries, strict=True):
        np.testing.assert_array_equal(a, b[: trial.length + 1])
    for name, gate in short.forward.gates.items():
        np.testing.assert_array_equal(gate, long.forward.gates[name][: trial.length])
