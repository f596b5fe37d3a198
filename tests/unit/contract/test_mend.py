"""A mended step: the learner's own signature, equal when it is the same mend, and what each mend returns."""

from __future__ import annotations

import inspect
from typing import Any

import jax
import jax.numpy as jnp

from core.contract.carry import own_name
from core.contract.mend import AsTuple, Cast, Gather, MendedStep, OnCarry, Reshape, WithY
from core.contract.subject import ScanCall


def scaled(total: Any, x: Any, *, by: float) -> Any:
    """A learner's step."""
    return total + by * x


def test_it_keeps_the_step_s_signature() -> None:
    step = MendedStep(scaled, WithY(repeat=False))
    assert inspect.signature(step) == inspect.signature(scaled)
    assert own_name(step) == "total"
    assert ScanCall(step, 0.0, params={"by": 3.0}).body(1.0, 2.0) == (7.0, None)


def test_equal_mends_are_one_key() -> None:
    one, two = MendedStep(scaled, WithY(repeat=False)), MendedStep(scaled, WithY(repeat=False))
    assert one == two
    assert len({one, two, MendedStep(scaled, WithY(repeat=True)), MendedStep(lambda c, x: c, WithY(repeat=False))}) == 3
    assert MendedStep(scaled, OnCarry("carry", Cast("int32"))) == MendedStep(scaled, OnCarry("carry", Cast("int32")))
    assert MendedStep(scaled, OnCarry("carry", Cast("int32"))) != MendedStep(scaled, OnCarry("carry", Cast("int8")))


def test_a_step_without_a_hash_can_be_mended() -> None:
    class Step:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, carry: Any, x: Any) -> Any:
            return carry + x

    step = MendedStep(Step(), WithY(repeat=False))
    final, _ = jax.lax.scan(step, 0.0, jnp.ones(3))
    assert final == 3.0


def test_what_each_mend_returns() -> None:
    assert WithY(repeat=True)(0, 1) == (1, 1)
    assert WithY(repeat=False)(0, 1) == (1, None)
    assert Gather(None)(0, (1, 2, 3)) == (1, (2, 3))
    assert Gather(2)((0, 0), (1, 2, 3)) == ((1, 2), 3)
    assert Gather(2)([0, 0], (1, 2, 3, 4)) == ([1, 2], (3, 4))
    assert AsTuple(1)(0, {"a": 1, "b": 2}) == (2, 1)
    new, y = OnCarry("carry['n']", Cast("int32"))({"n": 0, "m": 0}, ({"n": 2.5, "m": 1.5}, "y"))
    assert (new["n"].dtype, int(new["n"]), new["m"], y) == (jnp.int32, 2, 1.5, "y")
    new, _ = OnCarry("carry", Reshape((1, 2)))(None, (jnp.ones(2), None))
    assert new.shape == (1, 2)
