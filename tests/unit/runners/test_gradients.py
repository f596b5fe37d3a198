"""The map of gradients through time: against another differentiation, at the ends of float32's range, with masks."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import lax

from core.base.sequences import Masking, Slip
from core.contract.subject import SequenceTrial
from core.runners import gradient_check, gradients
from core.runners.cache import count_compiles
from core.runners.gradient_source import GRADIENT_PROGRAMS, NoMapError, example_of
from core.runners.gradients import check_memory, memory_map

KINDS = ("LSTMCell", "OptimizedLSTMCell", "GRUCell", "SimpleCell")
PAIRS = KINDS[:2]


def trial(kind="LSTMCell", length=7, features=2, hidden=5, batch=2, seed=3, **changes) -> SequenceTrial:
    data = np.random.default_rng(seed).normal(size=(batch, length, features)).astype(np.float32)
    return SequenceTrial(kind, data, "BTF", hidden, seed, **changes)


def jacobians(kind, xs, hidden, seed, weights=None, valid=None):
    """∂(part after step s)/∂xs, (T, H, T, F), by `jax.jacrev` of a plain scan over the cell that Flax builds."""
    cell = getattr(nnx, kind)(xs.shape[1], hidden, rngs=nnx.Rngs(seed))
    for name in ("hi", "hf", "hg", "ho") if kind == "LSTMCell" else ("dense_h",):
        layer = getattr(cell, name)
        layer.kernel[...] = layer.kernel[...] * (weights or {}).get("recurrent_scale", 1.0)
    bias = (weights or {}).get("forget_bias", 0.0)
    if kind == "LSTMCell":
        cell.hf.bias[...] = cell.hf.bias[...] + bias
    if kind == "OptimizedLSTMCell":
        cell.dense_h.bias[...] = cell.dense_h.bias[...].at[hidden : 2 * hidden].add(bias)
    valid = np.ones(len(xs), bool) if valid is None else valid
    zero = jnp.zeros(hidden)

    def states(xs):
        def step(carry, at):
            x, counts = at
            new = jax.tree.map(lambda n, o: jnp.where(counts, n, o), cell(carry, x)[0], carry)
            return new, new if kind in PAIRS else (new,)

        return lax.scan(step, (zero, zero) if kind in PAIRS else zero, (xs, valid))[1]

    return jax.jit(jax.jacrev(states))(jnp.asarray(xs))


def close(got, want) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def norms(jacobian):
    return np.linalg.norm(np.asarray(jacobian, np.float64).transpose(0, 2, 1, 3), axis=(2, 3))


# --- values ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [{}, {"forget_bias": 1.5, "recurrent_scale": 0.7}], ids=["plain", "changed"])
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_jacobian_of_a_plain_scan(kind, weights):
    one = trial(kind, weights=weights)
    for example in (0, 1):
        got = memory_map(one, example)
        want = jacobians(kind, one.inputs[example], 5, 3, weights)
        close(got.h, norms(want[-1]))
        assert (got.c is None) == (kind not in PAIRS)
        if got.c is not None:
            close(got.c, norms(want[0]))
        assert got.kind == kind


def test_a_forget_bias_opens_the_gate_and_c_remembers():
    shut, open_ = (memory_map(trial(length=30, weights={"forget_bias": b}), 0) for b in (-4.0, 4.0))
    assert shut.last_c[0] < 1e-15
    assert open_.last_c[0] > 0.1
    assert memory_map(trial("GRUCell", weights={"forget_bias": 3.0}), 0).h == pytest.approx(
        memory_map(trial("GRUCell"), 0).h
    ), "a cell without a forget gate has none to open"


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_read_yet_is_exactly_0_and_a_row_knows_nothing_of_what_comes_later(kind):
    whole = memory_map(trial(kind), 0)
    assert (whole.h[np.triu_indices(7, 1)] == 0).all()
    assert (np.diagonal(whole.h) > 0).all()
    other = trial(kind)
    other.inputs[:, 5:] += 1
    changed = memory_map(other, 0)
    assert (changed.h[:5] == whole.h[:5]).all()
    assert (changed.h[5:] != whole.h[5:]).any()
    short = memory_map(replace(other, inputs=other.inputs[:, :4]), 0)
    close(short.h, whole.h[:4, :4])


def test_one_step():
    got = memory_map(trial(length=1), 0)
    assert got.h.shape == (1, 1)
    assert got.last_h[0] == got.h[0, 0] > 0


# --- the range of float32 -------------------------------------------------------------------------------------------


def test_what_vanishes_below_float32_keeps_its_digits():
    """0.05^127 is 6e-166: float32 ends at 1e-45, and its square at 1e-23."""
    one = trial("SimpleCell", length=128, hidden=8, weights={"recurrent_scale": 0.05})
    got = memory_map(one, 0)
    assert 0 < got.last_h[0] < 1e-160
    assert (got.h[np.tril_indices(128)] > 0).all()
    assert (got.vanished, got.exploded) == (0, 0)
    source = example_of(one, 0)
    (want,) = gradient_check.difference_rows(source, gradients._mapped(source)[1])
    np.testing.assert_allclose(got.last_h, want, rtol=1e-4)
    plain = np.asarray(jacobians("SimpleCell", one.inputs[0], 8, 3, one.weights)[-1][-1])
    assert (plain[:, 0] == 0).all(), "float32 alone says 0 there"


def test_what_explodes_beyond_float32_keeps_its_digits():
    one = trial("SimpleCell", length=256, hidden=64, batch=1, weights={"recurrent_scale": 4.0})
    one.inputs[:] *= 0.1
    got = memory_map(one, 0)
    assert got.last_h.max() > 1e39
    assert np.isfinite(got.h).all()
    checked = check_memory(one, 0, got)
    assert checked.finite.within
    assert checked.grad.within
    assert checked.beyond > 0


def test_a_shut_forget_gate_makes_c_vanish():
    got = memory_map(trial(length=128, weights={"forget_bias": -4.0}), 0)
    assert 0 < got.last_c[0] < 1e-60
    assert check_memory(trial(length=128, weights={"forget_bias": -4.0}), 0, got).finite.within


def test_what_even_float64_cannot_hold_is_counted_and_a_true_0_is_not():
    one = trial("SimpleCell", length=300, hidden=4, weights={"recurrent_scale": 0.05})
    got = memory_map(one, 0)
    assert got.last_h[0] == 0
    assert got.vanished > 0
    none = memory_map(trial("SimpleCell", weights={"recurrent_scale": 0.0}), 0)
    assert (none.h == np.diag(np.diagonal(none.h))).all()
    assert none.vanished == 0


@pytest.mark.parametrize("size", [1e-30, 1e-22, 1.0, 1e25])
def test_a_norm_is_taken_of_scaled_numbers(size):
    tangents = (np.array([[[3.0, 4.0]], [[0.0, 0.0]]]) * size).astype(np.float32)
    np.testing.assert_allclose(gradients._norm(jnp.asarray(tangents)), [5 * size, 0], rtol=1e-6)


@pytest.mark.parametrize("power", [-100, -33, -20, 0, 20, 33, 100])
def test_rescaling_is_exact(power):
    tangents = np.ldexp(np.array([[[1.5, -0.75]]], np.float32), power)
    (moved,), exponents = gradients._rescaled((jnp.asarray(tangents),), jnp.zeros(1, jnp.int32))
    assert (np.ldexp(np.asarray(moved, np.float64), int(exponents[0])) == tangents.astype(np.float64)).all()
    assert 2.0**-64 < np.abs(moved).max() < 2.0**64


def test_what_is_not_finite_is_not_hidden():
    one = trial()
    one.inputs[0, 3] = np.nan
    got = memory_map(one, 0)
    assert np.isfinite(got.h[:3]).all()
    assert np.isnan(got.h[3:][np.tril_indices(4)[0], np.tril_indices(4)[1]]).all()
    assert (got.h[np.triu_indices(7, 1)] == 0).all()
    assert np.isfinite(memory_map(one, 1).h).all()
    assert check_memory(one, 0, got).finite.within


# --- masks, lengths, direction, init --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_masked_step_moves_nothing(kind):
    mask = np.ones((2, 7), bool)
    mask[0, [0, 3, 6]] = False
    got = memory_map(trial(kind, masking=Masking.MASK, mask=mask), 0)
    close(got.h, norms(jacobians(kind, trial(kind).inputs[0], 5, 3, valid=mask[0])[-1]))
    assert (got.h[:, [0, 3, 6]] == 0).all()
    assert (got.h[3] == got.h[2]).all()
    close(memory_map(trial(kind, masking=Masking.MASK, mask=mask), 1).h, memory_map(trial(kind), 1).h)


def test_beyond_its_length_an_example_is_left_alone():
    got = memory_map(trial(masking=Masking.LENGTHS, lengths=(4, 7)), 0)
    alone = memory_map(replace(trial(), inputs=trial().inputs[:, :4]), 0)
    close(got.last_h[:4], alone.last_h)
    assert (got.last_h[4:] == 0).all()
    assert check_memory(trial(masking=Masking.LENGTHS, lengths=(4, 7)), 0, got).finite.within


def test_reverse_visits_the_valid_steps_from_the_last():
    backwards = trial(reverse=True)
    flipped = replace(backwards, reverse=False, inputs=backwards.inputs[:, ::-1])
    close(memory_map(backwards, 0).h, memory_map(flipped, 0).h)
    some = trial(reverse=True, masking=Masking.LENGTHS, lengths=(4, 7))
    close(memory_map(some, 0).last_h[:4], memory_map(replace(flipped, inputs=some.inputs[:, 3::-1]), 0).last_h)


def test_data_are_taken_as_the_layer_reads_them():
    one = trial(batch=3)
    turned = replace(one, inputs=one.inputs.swapaxes(0, 1), axes="TBF", time_major=True)
    assert (memory_map(one, 2).h == memory_map(turned, 2).h).all()
    misread = replace(one, time_major=True)
    assert memory_map(misread, 0).h.shape == (3, 3)


def test_init_is_where_it_starts():
    init = (np.full((2, 5), 0.5, np.float32), np.full((2, 5), -0.5, np.float32))
    assert (memory_map(trial(init=init), 0).h != memory_map(trial(), 0).h).any()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bidirectional": True}, "choose one direction"),
        ({"slips": frozenset({Slip.UNPACKED})}, "unpacked"),
        ({"previous": np.zeros((2, 3, 2), np.float32)}, "init"),
        ({"masking": Masking.LENGTHS, "lengths": (0, 7)}, "is 0"),
        ({"masking": Masking.LENGTHS, "lengths": (8, 7)}, "is 8"),
        ({"masking": Masking.LENGTHS, "lengths": (2.0, 7)}, "is 2.0"),
        ({"masking": Masking.LENGTHS, "lengths": (True, 7)}, "is True"),
        ({"masking": Masking.LENGTHS, "lengths": (7,)}, "1 lengths"),
        ({"masking": Masking.MASK, "mask": np.ones((7, 2), bool)}, "(7, 2)"),
        ({"length": 0}, "no steps"),
        ({"length": 512, "features": 128, "hidden": 256}, "billion"),
    ],
)
def test_what_has_no_map_says_why(changes, words):
    with pytest.raises(NoMapError) as said:
        memory_map(trial(**changes), 0)
    assert words in str(said.value)


# --- programs -------------------------------------------------------------------------------------------------------


def test_sliders_compile_nothing():
    one = trial(length=9, hidden=6)
    first = memory_map(one, 0)
    check_memory(one, 0, first)
    mask = np.ones((2, 9), bool)
    mask[:, 4] = False
    others = [
        replace(one, weights={"forget_bias": 2.0, "recurrent_scale": 0.3}),
        replace(one, inputs=one.inputs * 2),
        replace(one, masking=Masking.MASK, mask=mask),
        replace(one, masking=Masking.LENGTHS, lengths=(3, 9)),
        replace(one, init=tuple(np.ones((2, 6), np.float32) for _ in range(2))),
        replace(one, reverse=True),
    ]
    with count_compiles() as compiles:
        for other in others:
            got = memory_map(other, 1)
            assert not got.compiled
            check_memory(other, 1, got)
    assert compiles.count == 0


def test_the_map_is_one_program_of_its_own_store():
    one = trial(length=11, hidden=3)
    memory_map(replace(one, inputs=one.inputs[:, :10]), 0)  # the parameters are built
    before = GRADIENT_PROGRAMS.stats.compiles
    with count_compiles() as compiles:
        got = memory_map(one, 0)
    assert got.compiled
    assert (compiles.count, GRADIENT_PROGRAMS.stats.compiles - before) == (1, 1)


# --- checks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.05, 1.0, 4.0])
@pytest.mark.parametrize("kind", KINDS)
def test_both_checks_agree(kind, scale):
    one = trial(kind, length=64, hidden=16, weights={"recurrent_scale": scale})
    checked = check_memory(one, 0, memory_map(one, 0))
    assert checked.grad.within
    assert checked.finite.within
    assert checked.trajectory.within
    assert checked.beyond == 0
    assert 1e-6 < checked.step < 1e-5


def test_both_checks_see_a_map_that_is_wrong():
    one = trial()
    good = memory_map(one, 0)
    bad = replace(good, h=good.h * (1 + 1e-3))
    checked = check_memory(one, 0, bad)
    assert not checked.grad.within
    assert not checked.finite.within
    assert checked.trajectory.within
    shifted = replace(one, seed=4)
    assert not check_memory(shifted, 0, good).grad.within


def test_differences_are_those_of_whole_runs_where_these_can_be_seen():
    """No rescaling, no following: plain central differences of the formulas, run from beginning to end."""
    from core.runners.cell_formulas import formula_step
    from core.runners.layers import weights_of

    source = example_of(trial(length=6), 0)
    weights = weights_of(source.cell)

    def last(xs):
        parts = tuple(p[None].astype(np.float64) for p in source.carry)
        for x in xs:
            parts = formula_step(source.kind, weights, parts, x[None], np.float64).carry
        return np.stack([p[0] for p in parts])

    xs, step = source.xs.astype(np.float64), 1e-6
    want = np.zeros((2, 6))
    for t in range(6):
        columns = []
        for f in range(2):
            move = np.zeros_like(xs)
            move[t, f] = step
            columns.append((last(xs + move) - last(xs - move)) / (2 * step))
        want[:, t] = np.linalg.norm(np.stack(columns, -1), axis=(1, 2))
    got = gradient_check.difference_rows(source, gradients._mapped(source)[1])
    np.testing.assert_allclose(np.stack(got), want, rtol=1e-5)
