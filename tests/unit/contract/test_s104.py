"""S104: the carry's dtype changes."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from core.base.places import Field, Places
from core.contract.subject import ScanCall
from tests.unit.contract.scan_support import clean, kinds, mended, only, run, several

XS = jnp.array([0.5, 1.0, 1.5])


class Model:
    def step(self, total: Any, x: Any) -> Any:
        return total + x, x

    def __call__(self, total: Any, x: Any) -> Any:
        return total + x, x


@pytest.mark.parametrize(
    ("init", "want"),
    [
        (jnp.int32(0), "int32[]"),
        (jnp.zeros((), int), "int32[]"),
        (np.int64(0), "int32[]"),
        (jnp.zeros(2, int), "int32[2]"),
        (jnp.bfloat16(0), "bfloat16[]"),
        (jnp.float16(0), "float16[]"),
        (jnp.zeros((2, 3), jnp.int8), "int8[2,3]"),
    ],
)
def test_a_strong_init_meets_float_x(init: Any, want: str) -> None:
    call = ScanCall(lambda n, x: (n + x, None), init, XS)
    violation = only(call, "S104")
    got = "float32" + want[want.index("[") :]
    assert violation.message == f"carry (`n` in the step) goes in as {want} and comes out as {got}: its dtype changes."
    assert violation.because is not None
    assert violation.because.text == f"init set {want} here"
    assert kinds(call, "S104")[0] == "init_dtype"
    final, _ = run(mended(call, "S104", "init_dtype"))
    assert final.dtype == jnp.float32
    assert bool(jnp.all(final == 3.0))


@pytest.mark.parametrize("step", [Model(), Model().step, jax.jit(Model().step), partial(Model.step, Model())])
def test_whatever_kind_of_callable(step: Any) -> None:
    call = ScanCall(step, jnp.int32(0), XS)
    only(call, "S104")
    assert run(mended(call, "S104", "init_dtype"))[0] == 3.0


def test_no_float_is_cut_to_an_integer() -> None:
    assert kinds(ScanCall(lambda c, x: (c + x, None), jnp.int32(0), XS), "S104") == ["init_dtype"]


def test_bfloat16_beside_float32_offers_both_the_wide_one_first() -> None:
    call = ScanCall(lambda c, x: (c + x, None), jnp.bfloat16(0), XS)
    assert kinds(call, "S104") == ["init_dtype", "step_cast"]
    assert run(mended(call, "S104", "step_cast"))[0].dtype == jnp.bfloat16
    assert run(mended(call, "S104", "init_dtype"))[0].dtype == jnp.float32


def test_a_narrower_return_is_cast_back() -> None:
    def step(c: Any, x: Any) -> Any:
        return jnp.round(c + x).astype(int), None

    call = ScanCall(step, jnp.float32(0.5), XS)
    assert kinds(call, "S104") == ["step_cast"]  # 0.5 as an int would be another number
    final, _ = run(mended(call, "S104", "step_cast"))
    assert final.dtype == jnp.float32
    whole = ScanCall(step, jnp.float32(2), XS)
    assert kinds(whole, "S104") == ["step_cast", "init_dtype"]
    assert run(mended(whole, "S104", "init_dtype"))[0].dtype == jnp.int32


def test_a_comparison_makes_a_bool() -> None:
    call = ScanCall(lambda c, x: (c > x, None), jnp.float32(0), XS)
    assert only(call, "S104").got[0].aval is not None
    assert run(mended(call, "S104", "step_cast"))[0].dtype == jnp.float32


def test_a_counter_turned_float_by_division() -> None:
    call = ScanCall(lambda s, x: ({"n": s["n"] / 2, "m": s["m"] + x}, x), {"n": jnp.int32(8), "m": 0.0}, XS)
    violation = only(call, "S104")
    assert violation.path == "carry['n']"
    final, _ = run(mended(call, "S104", "init_dtype"))
    assert final["n"] == 1.0


def test_each_leaf_is_said_for_itself_and_what_is_left_is_named() -> None:
    init = (jnp.int32(0), jnp.float16(0))
    call = ScanCall(lambda s, x: ((s[0] + x, s[1] + x), x), init, XS)
    found = several(call, "S104")
    assert [v.path for v in found] == ["carry[0]", "carry[1]"]
    assert {fix.remaining for v in found for fix in v.fixes} == {("S104",)}


def test_a_fix_that_would_move_the_fault_is_not_shown() -> None:
    # carry[1] takes what carry[0] was: making the first one float breaks the second one.
    call = ScanCall(lambda s, x: ((s[0] + x, s[0]), None), (jnp.int32(0), jnp.int32(0)), XS)
    assert only(call, "S104").fixes == ()


def test_a_strong_leaf_fed_from_a_weak_one_that_was_promoted() -> None:
    call = ScanCall(lambda s, x: ((s[0] + x, s[0]), None), (0, jnp.int32(0)), XS)
    violation = only(call, "S104")
    assert violation.path == "carry[1]"
    final, _ = run(mended(call, "S104", "init_dtype"))
    assert [float(v) for v in final] == [3.0, 1.5]


def test_a_key_has_no_other_dtype() -> None:
    step = lambda key, x: (jax.random.key_data(key)[0], x)  # noqa: E731
    with pytest.raises(Exception):
        run(ScanCall(step, jax.random.key(0), XS))
    assert only(ScanCall(step, jax.random.key(0), XS), "S104").fixes == ()


@pytest.mark.parametrize(
    ("init", "step"),
    [
        (0.0, lambda c, x: (c + x, x)),
        (jnp.float32(0), lambda c, x: (c + x, x)),
        (jnp.int32(0), lambda c, x: (c + 1, x)),
        (jnp.int32(0), lambda c, x: (c + x.astype(int), x)),
        (jnp.bfloat16(0), lambda c, x: ((c + x).astype(c.dtype), x)),
        (jnp.float32(0), lambda c, x: (c + 1, x)),
        (np.float32(0), lambda c, x: (c * 2.5, x)),
        (jnp.array(True), lambda c, x: (c & (x > 0), x)),
    ],
)
def test_the_same_dtype_is_no_fault(init: Any, step: Any) -> None:
    clean(ScanCall(step, init, XS))


def test_a_weak_init_is_not_this_rule_s() -> None:
    from core.contract.engine import check

    call = ScanCall(lambda c, x: (c + x, None), 0, XS)
    run(call)
    assert "S104" not in check(call).codes


def test_because_is_the_dtype_s_own_place() -> None:
    places = Places({"step": Field("s", "step"), "init": Field("i", "init"), "init_dtype": Field("d", "dtype")})
    violation = only(ScanCall(lambda c, x: (c + x, x), jnp.int32(0), XS, places=places), "S104")
    assert violation.place == Field("s", "step")
    assert violation.because is not None
    assert violation.because.place == Field("d", "dtype")


def test_leaves_that_begin_as_integers_are_one_fault() -> None:
    """All of a state that was written with whole numbers: one cause, one message, one fix."""

    def step(s: Any, x: Any) -> Any:
        return {"pos": s["pos"] + x, "vel": s["vel"] - x, "n": s["n"] + 1}, None

    call = ScanCall(step, {"pos": jnp.int32(0), "vel": jnp.int32(0), "n": jnp.int32(0)}, jnp.ones(3) / 2)
    violation = only(call, "S104")
    assert violation.message.startswith("carry['pos'], carry['vel'] go in as int32 and come out as float32")
    assert "carry['n']" not in violation.message
    assert run(mended(call, "S104", "init_dtypes"))[0]["pos"] == 1.5
