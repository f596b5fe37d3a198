"""N501: a value that is not finite."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from core.base.places import Field, Places
from core.base.violation import Severity
from core.contract.engine import check
from core.contract.subject import CellTrial, ScanCall
from tests.unit.contract.scan_support import run
from tests.unit.contract.silent_support import add, noted, quiet, warned

NAN, INF = jnp.nan, jnp.inf


def test_the_report_one_nan_poisons_the_rest() -> None:
    call = ScanCall(add, 0.0, jnp.array([1.0, 2.0, NAN, 3.0, 4.0]))
    assert np.isnan(run(call)[0])
    violation = noted(call, "N501")
    assert violation.severity is Severity.NOTE
    assert violation.path == "xs"
    assert violation.message == (
        "xs at [2] is nan, and from t = 2 on it is in carry: 6 of the 10 numbers that come out of the scan are NaN or "
        "infinite."
    )


def test_a_nan_that_is_left_out_is_no_fault() -> None:
    step: Any = lambda c, x: (c + jnp.where(jnp.isnan(x), 0.0, x), None)  # noqa: E731
    call = ScanCall(step, 0.0, jnp.array([1.0, NAN, 3.0]))
    assert run(call)[0] == 4.0
    quiet(call, "N501")


@pytest.mark.parametrize(
    ("step", "init", "xs", "t", "cause"),
    [
        (lambda c, x: (c + jnp.log(x), None), 0.0, [1.0, 0.0, 2.0], 1, "log(0) is -inf"),
        (lambda c, x: (c + jnp.log(x), None), 0.0, [1.0, 2.0, -1.0], 2, "log(-1) is nan"),
        (lambda c, x: (c / x, None), 1.0, [1.0, 0.0], 1, "div(1, 0) is inf"),
        (lambda c, x: (c / x, None), 0.0, [0.0, 1.0], 0, "div(0, 0) is nan"),
        (lambda c, x: (c + jnp.sqrt(x), None), 0.0, [1.0, -4.0], 1, "sqrt(-4) is nan"),
        (lambda c, x: (jnp.exp(c) + x, None), 0.0, [60.0, 40.0, 1.0], 2, "exp("),
        (lambda c, x: (c * x, None), 1.0, [10.0] * 40, 38, "mul(1e+38, 10) is inf"),
        (lambda c, x: (jax.jit(jnp.divide)(c, x), None), 1.0, [0.0], 0, "div(1, 0) is inf"),
        (lambda c, x: (c + x, jnp.arccos(c + x)), 0.0, [0.5, 1.0], 1, "acos(1.5) is nan"),
    ],
)
def test_born_in_the_step(step: Any, init: Any, xs: list[float], t: int, cause: str) -> None:
    call = ScanCall(step, init, jnp.array(xs))
    final, ys = run(call)
    assert not np.isfinite(final) or not np.isfinite(ys).all()
    violation = warned(call, "N501")
    assert f"at t = {t}." in violation.message
    assert cause in violation.message


def test_too_large_for_its_dtype() -> None:
    for dtype, xs, top in ((jnp.float16, [60000.0, 60000.0], "65504"), (jnp.bfloat16, [3e38, 3e38], "3.389531e+38")):
        message = warned(ScanCall(add, dtype(0), jnp.array(xs, dtype)), "N501").message
        assert f"The largest {jnp.dtype(dtype).name} is {top}." in message


def test_the_unit_and_the_order_of_visits() -> None:
    xs = jnp.array([[1.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    assert (
        "carry at [1] becomes -inf at t = 1"
        in warned(ScanCall(lambda c, x: (c + jnp.log(x), None), jnp.zeros(2), xs), "N501").message
    )
    call = ScanCall(lambda c, x: (c / x, None), 1.0, jnp.array([1.0, 0.0, 0.0, 2.0]), reverse=True)
    assert "at t = 2." in warned(call, "N501").message
    tree = ScanCall(lambda c, x: ({"a": c["a"] + x, "b": c["b"] / x}, None), {"a": 0.0, "b": 1.0}, jnp.array([0.0]))
    assert warned(tree, "N501").path == "carry['b']"


def test_nan_born_of_infinities() -> None:
    call = ScanCall(lambda c, x: (c - x, None), -INF, jnp.array([1.0, -INF, 2.0]))
    violation = warned(call, "N501")
    assert "sub(-inf, -inf) is nan" in violation.message
    assert "at t = 1." in violation.message

    def logsumexp(c: Any, x: Any) -> Any:  # without the usual guard
        top = jnp.maximum(c, x)
        return jnp.log(jnp.exp(c - top) + jnp.exp(x - top)) + top, None

    assert "of an infinity" in warned(ScanCall(logsumexp, -INF, jnp.array([-INF, 3.0])), "N501").message


def test_with_keys_in_xs() -> None:
    keys = jax.random.split(jax.random.key(0), 3)
    call = ScanCall(lambda c, k: (c / (c - c) + jax.random.normal(k), None), 1.0, keys)
    assert "div(1, 0) is inf" in warned(call, "N501").message


def test_it_came_in_with_init() -> None:
    assert noted(ScanCall(add, NAN, jnp.ones(3)), "N501").message.startswith("init's carry is nan")
    call = ScanCall(lambda c, x: (c + x, None), jnp.array([0.0, INF]), jnp.ones((2, 2)))
    assert "init's carry at [1] is inf" in noted(call, "N501").message


LOG_MATRIX = np.array([[0.5, 0.5], [0.0, 1.0]])


@pytest.mark.parametrize(
    ("step", "init", "xs"),
    [
        (lambda c, x: (jnp.maximum(c, x), None), -INF, jnp.array([1.0, 3.0, 2.0])),  # a running maximum
        (lambda c, x: (jnp.minimum(c, x), None), np.float32(np.inf), jnp.array([1.0, 3.0])),
        (lambda c, x: (jnp.logaddexp(c, x), None), -INF, jnp.array([1.0, 3.0])),
        (lambda c, x: (c + jnp.where(x > 0, jnp.log(x), 0.0), None), 0.0, jnp.array([1.0, 0.0, -1.0])),
        (lambda c, x: (c + jnp.where(x == 0, 0.0, 1 / x), None), 0.0, jnp.array([1.0, 0.0])),
        (lambda c, x: (c + x, None), 0, jnp.array([1, 2])),
        (lambda c, x: (c + jnp.max(jnp.where(x > 0, x, -jnp.inf)), None), 0.0, jnp.array([[1.0, -1.0]])),
        (lambda c, x: (c + 1, None), 0.0, jnp.array([NAN, INF])),  # never used
    ],
)
def test_near_misses(step: Any, init: Any, xs: Any) -> None:
    quiet(ScanCall(step, init, xs), "N501")


@pytest.mark.parametrize(
    ("step", "init", "xs"),
    [
        (lambda c, x: (c + x, jnp.where(x > 1.5, x, -jnp.inf)), 0.0, jnp.array([1.0, 2.0])),  # written so
        (
            lambda c, x: (jnp.max(c[:, None] + jnp.log(LOG_MATRIX), axis=0) + x, None),
            np.zeros(2, np.float32) - np.array([np.inf, 0], np.float32),
            jnp.zeros((3, 2)),
        ),
        (lambda c, x: (jnp.maximum(c, x), c), -INF, jnp.array([1.0, 3.0])),  # y begins with init
        (lambda c, x: (c + x, c + jnp.log(jnp.array(0.0)) * 1), 0.0, jnp.ones(2)),  # the log of a constant
    ],
)
def test_infinities_that_are_known_of_are_notes(step: Any, init: Any, xs: Any) -> None:
    noted(ScanCall(step, init, xs), "N501")


def rngs() -> nnx.Rngs:
    return nnx.Rngs(0)


def trial(inputs: Any, carry: Any = None, **kwargs: Any) -> CellTrial:
    given = {} if carry is None else {"carry": carry}
    return CellTrial(nnx.SimpleCell, 3, 4, rngs, (2, 3), rngs, inputs, **given, **kwargs)


def test_a_cell() -> None:
    ones = jnp.ones((2, 3))
    assert check(trial(ones)).codes == ()
    report = check(trial(ones.at[0, 1].set(NAN)))
    assert [(v.code, v.severity) for v in report.violations] == [("N501", Severity.NOTE)]
    assert report.violations[0].message.startswith("input at [0, 1] holds nan")
    report = check(trial(ones, carry=lambda c: c.at[1, 2].set(NAN)))
    assert report.violations[0].message.startswith("carry at [1, 2] holds nan")

    def weights(cell: Any) -> Any:
        cell.dense_i.kernel[...] = jnp.full((3, 4), NAN)
        return cell

    assert "a parameter of the cell" in check(trial(ones, edit_cell=weights)).violations[0].message

    def large(cell: Any) -> Any:
        cell.dense_i.kernel[...] = jnp.full((3, 4), 3e38)
        cell.dense_h.kernel[...] = jnp.full((4, 4), -3e38)
        return cell

    report = check(trial(ones * 2, carry=lambda c: c + 2.0, edit_cell=large))  # ∞ − ∞ before the tanh
    assert [(v.code, v.severity) for v in report.violations] == [("N501", Severity.WARNING)]
    assert report.violations[0].proof is not None
    assert report.violations[0].proof.before > 0


def test_places() -> None:
    places = Places(
        {"xs": Field("scan_source", "xs"), "step": Field("scan_step", "step"), "init": Field("scan_init", "init")}
    )
    log: Any = lambda c, x: (c + jnp.log(x), None)  # noqa: E731
    assert warned(ScanCall(log, 0.0, jnp.zeros(2), places=places), "N501").place == Field("scan_step", "step")
    assert noted(ScanCall(add, 0.0, jnp.array([NAN]), places=places), "N501").place == Field("scan_source", "xs")
    assert noted(ScanCall(add, NAN, jnp.ones(1), places=places), "N501").place == Field("scan_init", "init")


def escape(z: Any, _: Any) -> Any:
    z = z * z + 0.5
    return z, jnp.abs(z) < 2


def test_an_escape_time_is_a_note() -> None:
    violation = noted(ScanCall(escape, 0.0, None, length=40), "N501")
    assert "tests how large it is" in violation.message
    noted(ScanCall(escape, jnp.zeros(3, complex), None, length=40), "N501")
    assert warned(ScanCall(lambda z, _: (z * z + 0.5, z > 0), 0.0, None, length=40), "N501").fixes == ()
    assert warned(ScanCall(lambda z, _: (z * z + 0.5, (z, abs(z) < 2)), 0.0, None, length=40), "N501").proof


def test_the_place_is_the_returned_leaf() -> None:
    places = Places({"step": Field("def", ""), "return": Field("pair", ""), "return:carry": Field("leaf", "")})
    assert warned(
        ScanCall(lambda c, x: (c + jnp.log(x), None), 0.0, jnp.zeros(2), places=places), "N501"
    ).place == Field("leaf", "")
