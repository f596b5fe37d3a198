"""L301: the carry of an LSTM is not the pair (c, h)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from core.base.places import Field, Places
from core.base.violation import Severity
from core.contract.engine import check
from core.contract.subject import CellTrial, ScanCall
from tests.support.capture import capture
from tests.unit.contract.cell_support import (
    ONE_CELLS,
    PAIR_CELLS,
    SIZES,
    built,
    clean,
    mended,
    note,
    pair,
    raised,
    run,
    silent,
    some,
    step_of,
    trial,
)


class Carry(NamedTuple):
    c: Any
    h: Any


# --- one array in a direct call -------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", PAIR_CELLS)
@pytest.mark.parametrize(("features", "hidden"), [(3, 4), (1, 2), (6, 1)])
def test_with_a_batch_of_two_it_unpacks_along_the_batch(cell: type, features: int, hidden: int) -> None:
    subject = trial(cell, (features, hidden, 2), carry=some(2, hidden))
    violation = silent(subject, "L301")
    name = cell.__name__
    assert violation.message == (
        f"carry is one array, float32[2,{hidden}], where {name} wants the pair (c, h): it unpacks along the batch, so "
        "example 0 plays c and example 1 plays h for everybody."
    )
    assert [(t.path, str(t)) for t in violation.expected] == [
        ("carry[0]", f"float32[2,{hidden}]"),
        ("carry[1]", f"float32[2,{hidden}]"),
    ]
    assert violation.proof is not None
    assert violation.proof.after == 0.0
    # What the message says is what Flax computes: row 0 is c and row 1 is h, for both examples.
    array = subject.carry
    (c, _), out = run(subject)
    explicit = cell(features, hidden, rngs=nnx.Rngs(0))(
        (jnp.tile(array[0], (2, 1)), jnp.tile(array[1], (2, 1))), subject.inputs
    )
    np.testing.assert_allclose(out, explicit[1], rtol=1e-6)
    np.testing.assert_allclose(c, explicit[0][0], rtol=1e-6)


@pytest.mark.parametrize("cell", PAIR_CELLS)
@pytest.mark.parametrize("batch", [1, 3, 7])
def test_with_any_other_batch_it_raises(cell: type, batch: int) -> None:
    subject = trial(cell, (3, 4, batch), carry=some(batch, 4))
    violation = raised(subject, "L301")
    assert violation.message == f"carry is one array, float32[{batch},4], where {cell.__name__} wants the pair (c, h)."
    fixed = mended(subject, "L301", "carry_pair", "h")
    (c, _), out = run(fixed)
    expected = built(cell)((jnp.zeros((batch, 4)), subject.carry), subject.inputs)
    np.testing.assert_allclose(out, expected[1], rtol=1e-6)
    assert c.shape == out.shape == (batch, 4)


def test_a_part_of_the_initialised_carry() -> None:
    violation = silent(trial(carry=lambda carry: carry[1]), "L301")
    assert [fix.title for fix in violation.fixes] == [
        "Pass a pair: c from zeros, this array as h",
        "Start from what initialize_carry returns",
    ]


def test_rows_that_are_no_batch() -> None:
    violation = silent(trial(sizes=(3, 4, 5), carry=some(2, 4)), "L301")
    assert "row 0 plays c and row 1 plays h for every example" in violation.message
    assert [fix.title for fix in violation.fixes] == ["Start from what initialize_carry returns"]


def test_one_array_with_two_batch_axes() -> None:
    silent(trial(carry=some(2, 5, 4), inputs=some(2, 5, 3)), "L301")


@pytest.mark.parametrize("shape", [(), (4,), (2,), (2, 1), (2, 6), (2, 3, 4)])
def test_arrays_whose_halves_fit_nothing_raise(shape: tuple[int, ...]) -> None:
    raised(trial(carry=some(*shape)), "L301")


def test_the_proof_is_what_flax_does() -> None:
    subject = trial(carry=some(2, 4))
    violation = silent(subject, "L301")
    cell = built()
    moved = subject.carry.at[0].add(0.1)
    by_hand = np.abs(np.asarray(cell(moved, subject.inputs)[1] - cell(subject.carry, subject.inputs)[1]))[1].max()
    assert violation.proof is not None
    assert violation.proof.before == pytest.approx(float(by_hand), rel=1e-3)
    assert violation.proof.claim.startswith("Example 0 of the carry changed by 0.1 moves h of example 1")


def test_the_places_of_a_page() -> None:
    places = Places({"carry": Field("lstm_carry", "carry"), "cell": Field("lstm_cell", "cell")})
    violation = silent(trial(carry=some(2, 4), places=places), "L301")
    assert violation.place == Field("lstm_carry", "carry")
    assert violation.because is not None
    assert violation.because.place == Field("lstm_cell", "cell")


# --- other things that are no pair ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("carry", "words"),
    [
        ((some(2, 4),) * 3, "carry is a tuple of 3 where"),
        ((some(2, 4),), "carry is a tuple of 1 where"),
        ({"c": some(2, 4), "h": some(2, 4)}, "carry is a dict with the keys 'c', 'h' where"),
        (None, "carry is None where"),
        (((some(2, 4), some(2, 4)), 0), "carry[0] is a tuple of 2, no array"),
        ((None, some(2, 4)), "carry[0] is None, no array"),
        ((some(2, 4), None), "carry[1] is None, no array"),
        (0.0, "carry is one array, float32[], where"),
    ],
)
@pytest.mark.parametrize("cell", PAIR_CELLS)
def test_no_pair_at_all(cell: type, carry: Any, words: str) -> None:
    subject = trial(cell, carry=carry)
    assert raised(subject, "L301").message.startswith(words)
    run(mended(subject, "L301", "carry_init"))


# --- a stack --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", SIZES)
def test_a_stacked_pair_has_the_right_values_and_is_a_note(sizes: tuple[int, int, int]) -> None:
    _, hidden, batch = sizes
    c, h = pair(batch, hidden)
    subject = trial(sizes=sizes, carry=jnp.stack([c, h]))
    violation = note(subject, "L301")
    assert "unpacks into the right c and h" in violation.message
    assert violation.proof is None
    right = run(trial(sizes=sizes, carry=(c, h)))
    for one, other in zip(jax.tree.leaves(run(subject)), jax.tree.leaves(right), strict=True):
        np.testing.assert_array_equal(one, other)
    clean(mended(subject, "L301", "carry_pair", "stack"), notes=())


def test_an_unbatched_stack_is_a_note_too() -> None:
    note(trial(carry=some(2, 4), inputs=some(3)), "L301")


# --- in a scan ------------------------------------------------------------------------------------------------------

XS = some(5, 2, 3)


@pytest.mark.parametrize("cell", PAIR_CELLS)
@pytest.mark.parametrize("batch", [2, 3])
def test_a_scan_refuses_the_pair_that_comes_back(cell: type, batch: int) -> None:
    call = ScanCall(step_of(built(cell)), jnp.zeros((batch, 4)), some(5, batch, 3))
    violation = raised(call, "L301")
    assert violation.path == "carry"
    _, ys = run(mended(call, "L301", "carry_pair", "h"))
    np.testing.assert_allclose(ys, run(ScanCall(call.step, (jnp.zeros((batch, 4)),) * 2, call.xs))[1])


def test_a_stack_a_list_and_a_named_tuple_in_a_scan() -> None:
    step = step_of(built())
    right = run(ScanCall(step, pair(2, 4), XS))[1]
    for init, kind in [
        (jnp.stack(pair(2, 4)), "stack"),
        (list(pair(2, 4)), "tuple"),
        (Carry(*pair(2, 4)), "tuple"),
    ]:
        call = ScanCall(step, init, XS)
        raised(call, "L301")
        np.testing.assert_allclose(run(mended(call, "L301", "carry_pair", kind))[1], right)


def test_a_scan_that_keeps_only_h_is_silent() -> None:
    cell = built()

    def step(state: Any, x: Any) -> Any:
        h, n = state
        _, out = cell(h, x)
        return (out, n + 1), out

    call = ScanCall(step, (some(2, 4), 0), XS)
    violation = silent(call, "L301")
    assert violation.path == "carry[0]"
    assert violation.proof is not None
    assert violation.proof.claim.startswith("x of example 0 changed by 0.1 moves h of example 1")
    nudged = XS.at[:, 0].add(0.1)
    by_hand = np.abs(np.asarray(run(ScanCall(step, call.init, nudged))[1] - run(call)[1]))[:, 1].max()
    assert violation.proof.before == pytest.approx(float(by_hand), rel=1e-3)


@pytest.mark.parametrize("cell", PAIR_CELLS)
@pytest.mark.parametrize("batch", [2, 3])
def test_the_pair_is_carried_through_such_a_step(cell: type, batch: int) -> None:
    made = built(cell)

    def step(state: Any, x: Any) -> Any:
        h, n = state
        _, out = made(h, x)
        return (out, n + 1), out

    h, xs = some(batch, 4), some(5, batch, 3)
    call = ScanCall(step, (h, 0), xs)
    violation = next(v for v in check(call).violations if v.code == "L301")
    assert [fix.title for fix in violation.fixes] == ["Carry (c, h) through the step"]
    assert violation.proof is None or violation.proof.after == 0
    (last, n), ys = run(mended(call, "L301", "carry_through"))
    right = run(ScanCall(lambda c, x: made(c, x), (jnp.zeros_like(h), h), xs))
    np.testing.assert_allclose(ys, right[1], rtol=1e-6)
    np.testing.assert_allclose(last[0], right[0][0], rtol=1e-6)
    assert int(n) == 5


def test_another_array_in_its_place_is_not_carried_through() -> None:
    cell = built()

    def step(h: Any, x: Any) -> Any:
        _, out = cell(h, x)
        return jnp.tanh(out), out

    violation = silent(ScanCall(step, some(2, 4), XS), "L301")
    assert violation.fixes == ()


def test_the_counter_beside_it_is_another_fault() -> None:
    cell = built()

    def step(state: Any, x: Any) -> Any:
        h, n = state
        _, out = cell(h, x)
        return (out, n + 0.5), out

    report = check(ScanCall(step, (some(2, 4), jnp.int32(0)), XS))
    assert {v.code: (v.severity, v.silent) for v in report.broken} == {
        "S104": (Severity.ERROR, False),
        "L301": (Severity.WARNING, True),
    }
    fix = next(v for v in report.broken if v.code == "S104").fixes[0]
    assert fix.remaining == ("L301",)


# --- near misses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", PAIR_CELLS)
@pytest.mark.parametrize(
    "carry",
    [pair(2, 4), list(pair(2, 4)), Carry(*pair(2, 4)), tuple(np.asarray(p) for p in pair(2, 4))],
    ids=["tuple", "list", "NamedTuple", "NumPy"],
)
def test_a_pair_of_any_kind_is_fine_in_a_direct_call(cell: type, carry: Any) -> None:
    clean(trial(cell, carry=carry), notes=())


@pytest.mark.parametrize("cell", ONE_CELLS)
@pytest.mark.parametrize("batch", [1, 2, 3])
def test_one_array_is_right_for_other_cells(cell: type, batch: int) -> None:
    clean(trial(cell, (3, 4, batch), carry=some(batch, 4)), notes=())


@pytest.mark.parametrize("cell", PAIR_CELLS)
def test_unbatched_and_several_batch_axes(cell: type) -> None:
    clean(trial(cell, carry=pair(4), inputs=some(3)), notes=())
    clean(trial(cell, carry=pair(2, 5, 4), inputs=some(2, 5, 3)), notes=())
    clean(trial(cell, sizes=(3, 4, 1)), notes=())


def test_scans_that_keep_the_structure() -> None:
    cell = built()
    stacked = ScanCall(lambda s, x: (jnp.stack(cell(s, x)[0]), None), jnp.stack(pair(2, 4)), XS)
    named = ScanCall(lambda s, x: (Carry(*cell(s, x)[0]), None), Carry(*pair(2, 4)), XS)
    listed = ScanCall(lambda s, x: (list(cell(s, x)[0]), None), list(pair(2, 4)), XS)
    nested = ScanCall(lambda s, x: ({"cell": cell(s["cell"], x)[0]}, None), {"cell": pair(2, 4)}, XS)
    for call in (stacked, named, listed, nested):
        clean(call, notes=())


def test_vmap_sees_one_example_at_a_time() -> None:
    cell = built()
    call = ScanCall(lambda s, x: jax.vmap(cell)(s, x), pair(2, 4), XS)
    clean(call, notes=())


# --- in a script ----------------------------------------------------------------------------------------------------


def test_a_script_is_told_the_argument() -> None:
    captured = capture(
        "import jax.numpy as jnp\n"
        "from flax import nnx\n"
        "layer = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))\n"
        "state = jnp.ones((2, 4))\n"
        "new, out = layer(state, jnp.ones((2, 3)))\n"
    )
    assert captured.error is None
    (violation,) = captured.violations()
    assert violation.code == "L301"
    assert captured.source.lines[4][violation.place.col : violation.place.end_col] == "state"
    assert (violation.place.line, violation.because.place.line) == (5, 3)
    assert violation.proof.before > 0


def test_a_trial_is_not_changed_by_its_check() -> None:
    subject = trial(carry=some(2, 4))
    before = np.array(subject.carry)
    check(subject)
    np.testing.assert_array_equal(before, subject.carry)
    assert isinstance(subject, CellTrial)
