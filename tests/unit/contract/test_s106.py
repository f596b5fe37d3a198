"""S106: xs without a leading axis."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from core.base.places import Field, Places, Span
from core.contract.subject import ScanCall
from tests.unit.contract.scan_support import clean, kinds, mended, only, run

XS = jnp.array([1.0, 2.0, 3.0])


def add(total: Any, x: Any) -> Any:
    return total + x, total


def count(total: Any, _: Any) -> Any:
    return total + 1, total


class Counter:
    def step(self, total: Any, _: Any) -> Any:
        return total + 1, total

    def __call__(self, total: Any, _: Any) -> Any:
        return total + 1, total


@pytest.mark.parametrize(
    ("xs", "got"),
    [
        (3, "int32[]"),
        (2.5, "float32[]"),
        (True, "bool[]"),
        (np.float32(2), "float32[]"),
        (jnp.array(3), "int32[]"),
        (jnp.zeros(()), "float32[]"),
    ],
)
def test_a_number_or_an_array_without_axes(xs: Any, got: str) -> None:
    violation = only(ScanCall(add, 0.0, xs), "S106")
    assert violation.message == f"xs is {got}: it has no leading axis to scan over."
    assert violation.path == "xs"
    assert [str(t) for t in violation.got] == [got]


def test_a_key_is_one_thing_until_it_is_split() -> None:
    only(ScanCall(lambda c, key: (c + jax.random.normal(key), c), 0.0, jax.random.key(0)), "S106")


@pytest.mark.parametrize("xs", ["text", {1, 2}, object()])
def test_what_is_no_array_at_all(xs: Any) -> None:
    violation = only(ScanCall(count, 0.0, xs), "S106")
    assert violation.message.startswith(f"xs is a {type(xs).__name__}, which is no array")
    assert violation.fixes == ()


def test_a_range_becomes_an_array() -> None:
    call = ScanCall(add, 0, range(5))
    only(call, "S106")
    final, ys = run(mended(call, "S106", "xs_array"))
    assert final == 10
    assert ys.tolist() == [0, 0, 1, 3, 6]


@pytest.mark.parametrize(
    ("step", "number"),
    [
        *((count, 5), (Counter(), 5), (Counter().step, 5), (jax.jit(count), 5), (partial(count), 5)),
        *((count, np.int64(5)), (count, jnp.array(5))),
    ],
)
def test_a_whole_number_was_meant_as_length(step: Any, number: Any) -> None:
    call = ScanCall(step, 0.0, number)
    assert kinds(call, "S106") == ["length", "xs_leading"]
    fixed = mended(call, "S106", "length")
    assert fixed.xs is None
    final, ys = run(fixed)
    assert final == 5.0
    assert ys.shape == (5,)


@pytest.mark.parametrize(("step", "number"), [(add, 5), (count, 0), (count, -5), (count, 2.0), (count, True)])
def test_but_not_where_the_step_wants_x_or_the_number_is_no_count(step: Any, number: Any) -> None:
    assert kinds(ScanCall(step, 0.0, number), "S106") == ["xs_leading"]


def test_one_value_becomes_a_sequence_of_one() -> None:
    final, ys = run(mended(ScanCall(add, 1.0, 2.5), "S106", "xs_leading"))
    assert final == 3.5
    assert ys.tolist() == [1.0]


def test_a_constant_beside_a_sequence_is_repeated() -> None:
    def step(c: Any, x: Any) -> Any:
        return c + x["v"] * x["k"], c

    call = ScanCall(step, 0.0, {"v": XS, "k": 0.5})
    violation = only(call, "S106")
    assert violation.path == "xs['k']"
    final, _ = run(mended(call, "S106", "xs_leading"))
    assert final == 3.0


def test_a_constant_beside_sequences_of_different_lengths() -> None:
    from core.contract.engine import check

    call = ScanCall(lambda c, x: (c, c), 0.0, {"a": XS, "b": jnp.ones(2), "k": 0.5})
    with pytest.raises(Exception):
        run(call)
    report = check(call)
    assert sorted(v.code for v in report.broken) == ["S106", "S107"]
    by_code = {v.code: v for v in report.broken}
    assert by_code["S106"].fixes == ()  # repeated how often?


@pytest.mark.parametrize(
    "xs",
    [XS, jnp.ones((3, 0)), np.arange(3), (XS, None), {"a": XS, "b": ()}, jax.random.split(jax.random.key(0), 3)],
)
def test_a_leading_axis_is_no_fault(xs: Any) -> None:
    clean(ScanCall(count, 0.0, xs))


def test_place() -> None:
    places = Places({"xs:xs['k']": Field("k", "k"), "xs": Field("scan_source", "xs")})
    assert only(ScanCall(count, 0.0, {"v": XS, "k": 2.0}, places=places), "S106").place == Field("k", "k")
    assert only(ScanCall(count, 0.0, 2.0, places=places), "S106").place == Field("scan_source", "xs")


def test_place_in_a_script_is_the_argument_and_because_its_binding() -> None:
    argument, bound = Span(5, 20, 5, 22), Span(3, 10, 3, 13)
    by_role = {"xs": argument, "xs_bound": Span(3, 0, 3, 20), "xs:xs['k']": bound, "xs_bound:xs['k']": bound}
    call = ScanCall(count, 0.0, {"v": XS, "k": 2.0}, places=Places(by_role))
    violation = only(call, "S106")
    assert violation.place == argument
    assert violation.because is not None
    assert violation.because.place == bound

    written = Span(5, 25, 5, 28)  # in the argument itself: the leaf is the smallest expression
    by_role = {"xs": Span(5, 20, 5, 40), "xs:xs['k']": written, "xs_bound:xs['k']": written}
    violation = only(ScanCall(count, 0.0, {"v": XS, "k": 2.0}, places=Places(by_role)), "S106")
    assert violation.place == written
    assert violation.because is None
