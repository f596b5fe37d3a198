"""S120: associative_scan with an operation that is not associative."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from core.base.violation import Severity
from core.contract.regroup import groupings_apart, left_to_right, off
from tests.unit.contract.two_languages import line_of, names, only, silent

BAD = {
    "mean": "ys = lax.associative_scan(lambda a, b: 0.9 * a + 0.1 * b, jnp.arange(4.0))\n",
    "difference-in-jit": (
        "def op(p, q):\n    return p - q\n@jax.jit\ndef run(xs):\n    return lax.associative_scan(op, xs)\n"
        "ys = run(jnp.arange(4.0))\n"
    ),
    "method": (
        "class Op:\n    def join(self, a, b):\n        return a / b\nxs = jnp.array([8.0, 2.0, 2.0, 4.0])\n"
        "ys = lax.associative_scan(Op().join, xs)\n"
    ),
    "partial": "def op(k, a, b):\n    return k * (a + b)\nys = lax.associative_scan(partial(op, 0.5), jnp.arange(4.0))\n",
}
LINES = {"mean": 1, "difference-in-jit": 5, "method": 5, "partial": 3}


@pytest.mark.parametrize("case", BAD)
def test_it_is_proved_on_the_scripts_own_numbers(case: str) -> None:
    violation, sources = only(BAD[case], "S120")
    assert violation.severity is Severity.WARNING
    assert violation.silent
    assert line_of(violation) == LINES[case]
    assert violation.proof is not None
    assert violation.proof.before > 0.1
    assert violation.proof.after in (0.0, None)
    before, after = names(_head(BAD[case]))["ys"], names(sources[0])["ys"]
    assert violation.proof.before == pytest.approx(
        float(np.abs(np.asarray(before) - np.asarray(after)).max()), rel=1e-5
    )


def _head(text: str) -> str:
    from tests.unit.contract.two_languages import HEAD

    return HEAD + text


def test_a_recurrence_with_its_factors_the_wrong_way() -> None:
    text = (
        "def op(l, r):\n    a, b = l\n    c, d = r\n    return a * c, a * b + d\n"
        "go = lambda a, b: lax.associative_scan(op, (a, b))\nys = jax.jit(go)(jnp.linspace(0.1, 0.9, 4), jnp.arange(4.0))\n"
    )
    violation, _ = only(text, "S120")
    assert line_of(violation) == 5


def test_three_elements_are_not_regrouped_yet() -> None:
    violation, _ = only("ys = lax.associative_scan(lambda a, b: a - b, jnp.arange(3.0))\n", "S120")
    assert violation.severity is Severity.NOTE


RIGHT = {
    "sum-that-cancels": "lax.associative_scan(jnp.add, jnp.array([1e8, -1e8, 1.0, 1e-3, 3e7, 5.0]))",
    "bfloat16": "lax.associative_scan(jnp.add, jnp.array([256.0, 1.0, 1.0, -3.0], jnp.bfloat16))",
    "cast-inside": "lax.associative_scan(lambda a, b: (a + b).astype(jnp.float32), jnp.array([1e8, -1e8, 1.0, 7.0]))",
    "products": "lax.associative_scan(jnp.matmul, jax.random.normal(jax.random.key(0), (4, 2, 2)))",
    "maximum": "lax.associative_scan(jnp.maximum, jnp.array([3.0, 1.0, 4.0, 1.0, 5.0]), reverse=True)",
    "last-valid": "lax.associative_scan(lambda a, b: jnp.where(b > 0, b, a), jnp.array([3.0, -1.0, 4.0, -1.0, -5.0]))",
    "wrapping-ints": "lax.associative_scan(jnp.multiply, jnp.arange(100000, 100005))",
    "two-elements": "lax.associative_scan(lambda a, b: a - b, jnp.arange(2.0))",
    "recurrence": (
        "lax.associative_scan(lambda l, r: (l[0] * r[0], r[0] * l[1] + r[1]), (jnp.linspace(0.1, 0.9, 4), jnp.arange(4.0)),"
        " reverse=True)"
    ),
    "overflow": "lax.associative_scan(jnp.multiply, jnp.array([1e30, 1e30, 1e-30, 1e-30]))",
    "other-axis": "lax.associative_scan(jnp.add, jnp.ones((3, 4)), axis=1)",
}


@pytest.mark.parametrize("call", RIGHT.values(), ids=RIGHT)
def test_rounding_is_no_fault(call: str) -> None:
    silent(f"ys = {call}\n", "S120", both=False)


def test_left_to_right_is_a_loop() -> None:
    xs = jnp.array([8.0, 2.0, 2.0, 4.0])
    assert left_to_right(jnp.divide, xs).tolist() == [8.0, 4.0, 2.0, 0.5]
    assert left_to_right(jnp.divide, xs, reverse=True).tolist() == [0.125, 1.0, 2.0, 4.0]
    assert off(jnp.add, xs) == 0.0
    apart = groupings_apart(jnp.divide, xs, 0)
    assert apart is not None
    assert (apart.first, apart.left, apart.right) == (0, 2.0, 8.0)
