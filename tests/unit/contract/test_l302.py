"""L302: c and h change places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flax import nnx

from core.contract.engine import check
from core.contract.record import CellEvents, recording
from core.contract.subject import CellLog, ScanCall
from tests.support.capture import capture
from tests.unit.contract.cell_support import (
    PAIR_CELLS,
    built,
    clean,
    mended,
    note,
    pair,
    run,
    silent,
    some,
    step_of,
    trial,
)

XS = some(5, 2, 3)


def swapped(carry: Any) -> Any:
    return carry[1], carry[0]


def randomly(cell: type) -> type:
    """The cell with a carry that is drawn."""

    class Random(cell):  # type: ignore[misc,valid-type]
        def initialize_carry(self, input_shape: Any, rngs: Any = None, carry_init: Any = None) -> Any:
            return super().initialize_carry(input_shape, rngs, nnx.initializers.normal(1.0))

    return Random


# --- a trial --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", PAIR_CELLS)
def test_a_random_carry_swapped(cell: type) -> None:
    subject = trial(randomly(cell), carry=swapped)
    violation = silent(subject, "L302")
    assert violation.proof is not None
    right = run(trial(randomly(cell)))[1]
    assert violation.proof.before == pytest.approx(float(np.abs(np.asarray(run(subject)[1] - right)).max()), rel=1e-5)
    np.testing.assert_array_equal(run(mended(subject, "L302", "carry_swap"))[1], right)


@pytest.mark.parametrize("cell", PAIR_CELLS)
def test_zeros_swapped_move_nothing_and_are_a_note(cell: type) -> None:
    subject = trial(cell, carry=swapped)
    violation = note(subject, "L302")
    assert "nothing moves yet" in violation.message
    assert violation.proof is None
    np.testing.assert_array_equal(run(subject)[1], run(trial(cell))[1])
    clean(mended(subject, "L302", "carry_swap"), notes=())


@pytest.mark.parametrize(
    "change",
    [
        lambda carry: carry,
        lambda carry: (carry[0], carry[1]),
        lambda carry: (carry[1], carry[1]),
        lambda carry: swapped(swapped(carry)),
        lambda carry: (carry[1] * 2, carry[0] * 2),
    ],
    ids=["as it is", "made anew", "h twice", "swapped twice", "other values"],
)
def test_what_is_no_exchange(change: Any) -> None:
    clean(trial(randomly(nnx.LSTMCell), carry=change), notes=())


def test_a_given_pair_says_nothing_of_its_order() -> None:
    c, h = pair(2, 4)
    clean(trial(carry=(h, c)), notes=())


# --- a scan ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", PAIR_CELLS)
def test_the_step_returns_h_and_c(cell: type) -> None:
    layer = built(cell)

    def step(carry: Any, x: Any) -> Any:
        (c, h), y = layer(carry, x)
        return (h, c), y

    call = ScanCall(step, pair(2, 4), XS)
    violation = silent(call, "L302")
    assert violation.message == (
        f"The step returns h in carry[0] and c in carry[1], but {cell.__name__} takes carry[0] as c and "
        "carry[1] as h at the next step."
    )
    right = run(ScanCall(step_of(layer), pair(2, 4), XS))
    final, ys = run(mended(call, "L302", "carry_swap"))
    np.testing.assert_array_equal(ys, right[1])
    np.testing.assert_array_equal(final[0], right[0][0])
    far = max(float(np.abs(np.asarray(a - b)).max()) for a, b in zip(run(call)[0], right[0], strict=True))
    assert violation.proof is not None
    assert violation.proof.before == pytest.approx(far, rel=1e-5)


def test_slots_of_a_dict() -> None:
    layer = built()

    def step(state: Any, x: Any) -> Any:
        (c, h), y = layer((state["c"], state["h"]), x)
        return {"c": h, "h": c, "n": state["n"] + 1}, y

    c, h = pair(2, 4)
    violation = silent(ScanCall(step, {"c": c, "h": h, "n": 0}, XS), "L302")
    assert "h in carry['c'] and c in carry['h']" in violation.message


def test_two_calls_in_one_step() -> None:
    one, two = built(), built(features=4)

    def step(carry: Any, x: Any) -> Any:
        (c, h), y = one(carry, x)
        (c, h), y = two((h, c), y)
        return (c, h), y

    violation = silent(ScanCall(step, pair(2, 4), XS), "L302")
    assert "what LSTMCell takes as c left the cell as h" in violation.message


@pytest.mark.parametrize(
    "step",
    [
        lambda layer, carry, x: (lambda new, y: ((new[1], new[0]), y))(*layer((carry[1], carry[0]), x)),
        lambda layer, carry, x: layer((carry[0], carry[1]), x),
        lambda layer, carry, x: (lambda new, y: ((new[1], new[1]), y))(*layer(carry, x)),
        lambda layer, carry, x: (lambda new, y: ((new[1] * 0.5, new[0] * 0.5), y))(*layer(carry, x)),
    ],
    ids=["kept as (h, c) throughout", "kept as (c, h)", "h in both", "scaled"],
)
def test_a_carry_that_is_not_exchanged(step: Any) -> None:
    layer = built()
    clean(ScanCall(lambda carry, x: step(layer, carry, x), pair(2, 4), XS), notes=())


def test_two_layers_keep_their_own() -> None:
    one, two = built(), built(features=4)

    def step(carry: Any, x: Any) -> Any:
        first, y = one(carry[0], x)
        second, y = two(carry[1], y)
        return (first, second), y

    clean(ScanCall(step, (pair(2, 4), pair(2, 4)), XS), notes=())


def test_init_from_a_pair_the_wrong_way_round() -> None:
    layer, earlier = built(), CellEvents()
    with recording(earlier):
        (c, h), _ = layer(pair(2, 4), some(2, 3))
    call = ScanCall(step_of(layer), (h, c), XS, earlier=earlier)
    violation = silent(call, "L302")
    assert violation.message == (
        "carry is (h, c): what LSTMCell takes as c left the cell as h, and what it takes as h left it as c."
    )
    np.testing.assert_array_equal(run(mended(call, "L302", "carry_swap"))[1], run(ScanCall(call.step, (c, h), XS))[1])
    clean(ScanCall(step_of(layer), (c, h), XS, earlier=earlier), notes=())


def test_init_of_zeros_the_wrong_way_round() -> None:
    layer, earlier = built(), CellEvents()
    with recording(earlier):
        c, h = layer.initialize_carry((2, 3), nnx.Rngs(1))
    note(ScanCall(step_of(layer), (h, c), XS, earlier=earlier), "L302")


# --- a script -------------------------------------------------------------------------------------------------------

SCRIPT = """\
import jax, jax.numpy as jnp
from flax import nnx
cell = nnx.{cell}(3, 4, rngs=nnx.Rngs(0))
c, h = cell.initialize_carry((2, 3), nnx.Rngs(1))
(c, h), y = cell((c, h), jnp.ones((2, 3)))
(c, h), y = cell({second}, jnp.ones((2, 3)))
"""


@pytest.mark.parametrize("cell", ["LSTMCell", "OptimizedLSTMCell"])
def test_two_calls_in_a_script(cell: str) -> None:
    captured = capture(SCRIPT.format(cell=cell, second="(h, c)"))
    (violation,) = captured.violations()
    assert (violation.code, violation.severity.value) == ("L302", "warning")
    assert captured.source.lines[5][violation.place.col : violation.place.end_col] == "(h, c)"
    assert violation.because.place.line == 5
    assert violation.proof.before > 0.01
    assert capture(SCRIPT.format(cell=cell, second="(c, h)")).violations() == []


def test_traced_values_in_a_script() -> None:
    captured = capture(
        SCRIPT.format(cell="LSTMCell", second="(c, h)") + "jax.jit(lambda c, h: cell((h, c), y[:, :3]))(c, h)\n"
    )
    assert captured.error is None
    assert captured.violations() == []


def test_a_log_of_nothing() -> None:
    assert check(CellLog(CellEvents())).violations == ()
