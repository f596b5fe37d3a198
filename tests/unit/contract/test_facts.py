from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from core.contract.engine import check
from core.contract.facts import ScanFacts
from core.contract.subject import ScanCall


def test_a_weak_xs_is_weak_in_the_step_as_in_lax_scan() -> None:
    """``jnp.full(3, 2)`` is weak: it takes the carry's dtype, and JAX runs it."""
    call = ScanCall(lambda c, x: (c * x, x), jnp.int8(1), jnp.full(3, 2))
    final, _ = lax.scan(call.step, call.init, call.xs)
    assert final.dtype == jnp.int8
    assert "S104" not in check(call).codes
    assert [str(t) for t in ScanFacts(call).carry_in] == ["int8[]"]
    assert [t.aval.weak for t in ScanFacts(call).x_types if t.aval] == [True]


def test_a_strong_xs_and_keys_stay_strong() -> None:
    xs = {"k": jax.random.split(jax.random.key(0), 2), "x": np.ones(2, np.int32)}
    facts = ScanFacts(ScanCall(lambda c, x: (c + x["x"] * jax.random.normal(x["k"]), None), 0.0, xs))
    assert [(str(t), t.aval.weak) for t in facts.x_types if t.aval] == [("key<fry>[]", False), ("int32[]", False)]
    assert facts.jax is None
