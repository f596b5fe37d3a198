"""L307: a cell is built without an nnx.Rngs."""

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
        (MISSING, "was built with no rngs; it wants rngs=nnx.Rngs(…)."),
        (None, "was built with no rngs; it wants rngs=nnx.Rngs(…)."),
        (7, "was built with the number 7; it wants rngs=nnx.Rngs(…)."),
        (KEYS[0], "was built with a PRNG key; it wants rngs=nnx.Rngs(…)."),
        (KEYS[1], "was built with a PRNG key; it wants rngs=nnx.Rngs(…)."),
        (lambda: nnx.Rngs(0).params, "was built with one stream of an nnx.Rngs; it wants rngs=nnx.Rngs(…)."),
        (
            lambda: nnx.Rngs(carry=0),
            "was built with an nnx.Rngs that has neither a stream named params nor a default one.",
        ),
        (nnx.Rngs, "was built with a value of type PytreeMeta; it wants rngs=nnx.Rngs(…)."),
    ],
)
def test_what_is_no_rngs(cell: type, given: Any, words: str) -> None:
    subject = trial(cell, rngs=given)
    violation = raised(subject, "L307")
    assert violation.message.partition(" value of type")[0] == f"{cell.__name__} {words}".partition(" value of type")[0]
    clean(mended(subject, "L307", "cell_rngs"), notes=())


@pytest.mark.parametrize("given", [7, *KEYS])
def test_the_fix_draws_from_what_was_given(given: Any) -> None:
    subject = trial(rngs=given)
    raised(subject, "L307")
    right = run(trial(rngs=lambda: nnx.Rngs(7)))
    np.testing.assert_array_equal(run(mended(subject, "L307", "cell_rngs"))[1], right[1])


def test_the_place_on_a_page() -> None:
    places = Places({"cell_rngs": Field("lstm_seed", "seed")})
    assert raised(trial(rngs=MISSING, places=places), "L307").place == Field("lstm_seed", "seed")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("nnx.GRUCell(3, 4)", "GRUCell was built with no rngs"),
        ("nnx.LSTMCell(3, 4, rngs=jax.random.key(0))", "LSTMCell was built with a PRNG key"),
        ("nnx.SimpleCell(3, 4, nnx.Rngs(0))", "SimpleCell was given its rngs by position"),
        ("nnx.LSTMCell(3, 4, rng=nnx.Rngs(0))", "LSTMCell was built with no rngs"),
    ],
)
def test_the_place_in_a_script(call: str, words: str) -> None:
    captured = capture(f"import jax\nfrom flax import nnx\ncell = {call}\n")
    assert captured.error is not None
    (violation,) = captured.violations()
    assert violation.code == "L307"
    assert violation.message.startswith(words)
    assert captured.source.lines[2][violation.place.col : violation.place.end_col] == call


# --- near misses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(
    "given",
    [
        lambda: nnx.Rngs(0),
        lambda: nnx.Rngs(params=3),
        lambda: nnx.Rngs(params=0, carry=3),
        lambda: nnx.Rngs(jax.random.key(3)),
        lambda: nnx.Rngs(default=3),
    ],
    ids=["default", "params alone", "named", "of a key", "default by name"],
)
def test_what_can_be_drawn_from(cell: type, given: Any) -> None:
    clean(trial(cell, rngs=given), notes=())


def test_another_error_of_the_build_is_not_its() -> None:
    captured = capture("from flax import nnx\ncell = nnx.LSTMCell(3, -4, rngs=nnx.Rngs(0))\n")
    assert captured.error is not None
    with pytest.raises(AssertionError, match="no rule explains this"):
        captured.violations()


def test_a_cell_in_a_module_of_the_script() -> None:
    captured = capture(
        "import jax.numpy as jnp\n"
        "from flax import nnx\n"
        "class Model(nnx.Module):\n"
        "    def __init__(self, rngs):\n"
        "        self.cell = nnx.GRUCell(3, 4, rngs=rngs)\n"
        "model = Model(nnx.Rngs(0))\n"
        "h, y = model.cell(jnp.zeros((2, 4)), jnp.ones((2, 3)))\n"
    )
    assert captured.error is None
    assert captured.violations() == []
