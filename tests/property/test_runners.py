"""The runner against `lax.scan` itself, bit for bit, and the loop against both: any shape, dtype, tree, length."""

from __future__ import annotations

from unittest import mock

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, note
from jax import lax

from core.contract.subject import ScanCall
from core.runners import scan
from core.runners.reference import loop_check
from core.runners.scan import padded_length, run_call

DTYPES = ("float32", "int32", "bool", "bfloat16", "float16", "int8")


def linear(c, x):
    return 0.5 * c + x


def squash(c, x):
    return jnp.tanh(c + 0.1 * x)


def larger(c, x):
    return jnp.maximum(c, x)


def either(c, x):
    return jnp.where(x > 0, x, c)


def mixed(c, x):
    return c * 0.9 + (1 - 0.9) * x


def keep(c, x):
    return c


OPERATIONS = (linear, squash, larger, either, mixed, keep)


@st.composite
def leaves(draw, leading: tuple[int, ...] = ()) -> np.ndarray:
    """An array with this leading shape and up to two small axes more, its numbers small and of every sign."""
    dtype = jnp.dtype(draw(st.sampled_from(DTYPES)))
    shape = (*leading, *draw(st.sampled_from([(), (1,), (3,), (2, 2), (0,)])))
    values = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).normal(size=shape) * 3
    return values.astype(dtype) if dtype.kind != "b" else values > 0


def trees(leaf: st.SearchStrategy) -> st.SearchStrategy:
    return st.one_of(
        leaf,
        st.none(),
        st.just(()),
        st.tuples(leaf, leaf),
        st.lists(leaf, min_size=1, max_size=2),
        st.fixed_dictionaries({"b": leaf, "a": st.tuples(leaf, st.none())}),
    )


@st.composite
def scans(draw) -> ScanCall:
    """A scan that keeps the contract: every carry leaf mixes in a number from xs and keeps its shape and dtype.

    Init leaves may be Python numbers, which are weak and stay or are promoted; one leaf of xs may be PRNG keys.
    """
    length = draw(st.integers(0, 40))
    xs = draw(trees(leaves((length,))))
    if draw(st.booleans()):
        xs = {"k": jax.random.split(jax.random.key(draw(st.integers(0, 9))), max(length, 1))[:length], "x": xs}
    python_numbers = st.one_of(st.floats(-3, 3, width=32), st.integers(-3, 3))
    init = draw(trees(st.one_of(leaves(), python_numbers)))
    operation = draw(st.sampled_from(OPERATIONS))
    shares = draw(st.booleans())

    def step(carry, x):
        parts = [jnp.float32(0)]
        for leaf in jax.tree.leaves(x):
            if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
                parts.append(jax.random.normal(leaf))
            else:
                parts.append(jnp.sum(leaf, dtype=jnp.float32))
        mixed_in = sum(parts)

        def advance(leaf):
            new = operation(leaf, mixed_in)
            weak = getattr(jax.typeof(leaf), "weak_type", False)
            return new if weak else new.astype(leaf.dtype)

        new = jax.tree.map(advance, carry)
        return new, (x, new if shares else None, {"sum": mixed_in})

    return ScanCall(
        step,
        init,
        xs,
        length if not jax.tree.leaves(xs) else draw(st.sampled_from([None, length])),
        draw(st.booleans()),
        draw(
            st.sampled_from([1, 1, 1, 2, 3, 7, *([True, 0] if length <= 12 else [])])
        ),  # 40 copies compile for seconds
    )


def raw(leaf) -> np.ndarray:
    leaf = jnp.asarray(leaf) if not isinstance(leaf, (np.ndarray, jax.Array)) else leaf
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.asarray(leaf)


def bits(leaf) -> tuple:
    array = raw(leaf)
    return array.shape, array.dtype.name, array.tobytes()


@pytest.mark.timeout(1200)  # about 0.4 s of compiling an example, alone on a core
@given(scans())
def test_values_are_bit_for_bit_those_of_lax_scan_although_the_length_was_padded(call):
    note(f"init {call.init!r}\nxs {jax.tree.map(jax.typeof, call.xs)}\nreverse {call.reverse} unroll {call.unroll}")
    want = lax.scan(call.step, call.init, call.xs, call.length, call.reverse, call.unroll)
    with mock.patch.object(scan, "is_library", return_value=True):
        result = run_call(call)
    assert jax.tree.structure((result.final, result.ys)) == jax.tree.structure(want)
    assert [bits(v) for v in jax.tree.leaves((result.final, result.ys))] == [bits(v) for v in jax.tree.leaves(want)]
    assert result.padded == padded_length(result.length)
    assert all(s.values.shape[0] == result.length + 1 for s in result.carries)
    assert [s.values[-1].tobytes() for s in result.carries] == [raw(v).tobytes() for v in jax.tree.leaves(want[0])]
    order = list(result.order)
    for series, leaf in zip(result.ys_series, jax.tree.leaves(want[1]), strict=True):
        assert series.values.tobytes() == raw(leaf)[order].tobytes()
    check = loop_check(call, result, 8)
    note(str(check))
    assert check.lengths_ok
    assert check.error is None
    assert all(leaf.shape_ok for leaf in (*check.ys, *check.carries))
    assert check.ok


@given(st.integers(1, 600), st.booleans(), st.sampled_from(DTYPES))
def test_padding_repeats_the_last_visited_element_and_keeps_the_rest(length, reverse, dtype):
    values = np.arange(length).astype(jnp.dtype(dtype))
    padded = scan._pad(values, padded_length(length), reverse)
    assert length <= len(padded) < 2 * length or length == 1
    assert len(padded) & (len(padded) - 1) == 0
    kept, filler = (padded[-length:], padded[:-length]) if reverse else (padded[:length], padded[length:])
    assert kept.tobytes() == values.tobytes()
    assert all(v == (values[0] if reverse else values[-1]) for v in filler)
