"""L306: initialize_carry is not given an nnx.Rngs."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from flax import nnx

from core.base.places import Field, Places
from core.contract.subject import MISSING
from tests.support.capture import capture
from tests.unit.contract.cell_support import CELLS, clean, mended, raised, run, trial

KEYS = [jax.random.key(7), jax.random.PRNGKey(7)]


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (MISSING, "was given no rngs; it wants an nnx.Rngs."),
        (None, "was given no rngs; it wants an nnx.Rngs."),
        (7, "was given the number 7; it wants an nnx.Rngs."),
        (KEYS[0], "was given a PRNG key; it wants an nnx.Rngs."),
        (KEYS[1], "was given a PRNG key; it wants an nnx.Rngs."),
        ({"carry": 1}, "was given a value of type dict; it wants an nnx.Rngs."),
        (lambda: nnx.Rngs(params=0), "was given an nnx.Rngs that has neither a stream named carry nor a default one."),
    ],
)
def test_what_is_no_rngs(cell: type, given: Any, words: str) -> None:
    subject = trial(cell, carry_rngs=given)
    violation = raised(subject, "L306")
    assert violation.message == f"initialize_carry {words}"
    clean(mended(subject, "L306", "carry_rngs"), notes=())


@pytest.mark.parametrize("given", [lambda: nnx.Rngs(7), lambda: nnx.Rngs(0).carry, 7, *KEYS])
@pytest.mark.parametrize("cell", CELLS)
def test_the_wrong_way_round(cell: type, given: Any) -> None:
    first = given() if callable(given) else given
    subject = trial(cell, input_shape=first, carry_rngs=(2, 3))
    violation = raised(subject, "L306")
    assert violation.message.endswith("first and the shape (2, 3) second: the shape comes first.")
    fixed = mended(subject, "L306", "carry_rngs")
    assert fixed.input_shape == (2, 3)
    assert run(fixed)[1].shape == (2, 4)


@pytest.mark.parametrize("given", [7, *KEYS])
def test_the_fix_draws_from_what_was_given(given: Any) -> None:
    class Random(nnx.GRUCell):
        def initialize_carry(self, input_shape: Any, rngs: Any = None, carry_init: Any = None) -> Any:
            return super().initialize_carry(input_shape, rngs, nnx.initializers.normal(1.0))

    subject = trial(Random, carry_rngs=given)
    raised(subject, "L306")
    right = trial(Random, carry_rngs=lambda: nnx.Rngs(7))
    np.testing.assert_allclose(run(mended(subject, "L306", "carry_rngs"))[1], run(right)[1])


def test_the_place_is_that_call() -> None:
    places = Places({"carry_rngs": Field("lstm_carry_rngs", "rngs of the carry")})
    assert raised(trial(carry_rngs=MISSING, places=places), "L306").place == Field(
        "lstm_carry_rngs", "rngs of the carry"
    )
    captured = capture(
        "from flax import nnx\ncell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))\nstate = cell.initialize_carry((2, 3))\n"
    )
    assert isinstance(captured.error, ValueError)
    (violation,) = captured.violations()
    assert captured.source.lines[2][violation.place.col : violation.place.end_col] == "cell.initialize_carry((2, 3))"


def test_inside_a_scan() -> None:
    captured = capture(
        "import jax, jax.numpy as jnp\n"
        "from flax import nnx\n"
        "cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))\n"
        "def step(n, x):\n"
        "    h, y = cell(cell.initialize_carry(x.shape, 0), x)\n"
        "    return n + 1, y\n"
        "jax.lax.scan(step, 0, jnp.ones((5, 2, 3)))\n"
    )
    (violation,) = captured.violations()
    assert (violation.code, violation.place.line) == ("L306", 5)


# --- near misses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(
    "given",
    [
        lambda: nnx.Rngs(0),
        lambda: nnx.Rngs(carry=3),
        lambda: nnx.Rngs(params=0, carry=3),
        lambda: nnx.Rngs(jax.random.key(3)),
        lambda: nnx.Rngs(3).carry,
    ],
    ids=["default", "carry alone", "named", "of a key", "a stream"],
)
def test_what_can_be_drawn_from(cell: type, given: Any) -> None:
    clean(trial(cell, carry_rngs=given), notes=())


@pytest.mark.filterwarnings("ignore:keep_rngs")
def test_a_cell_that_keeps_its_rngs_needs_none() -> None:
    class Keeps(nnx.LSTMCell):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, keep_rngs=True, **kwargs)

    clean(trial(Keeps, carry_rngs=MISSING), notes=())


def test_another_error_of_that_call_is_not_its() -> None:
    captured = capture(
        "from flax import nnx\n"
        "cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))\n"
        "cell.initialize_carry((2, 3), nnx.Rngs(1), carry_init=nnx.initializers.normal)\n"
    )
    assert isinstance(captured.error, TypeError)
    with pytest.raises(AssertionError, match="no rule explains this"):
        captured.violations()
