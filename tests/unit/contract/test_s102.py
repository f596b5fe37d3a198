"""S102: the carry's structure changes."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pytest
from flax import struct

from core.base.places import Field, Places
from core.contract.subject import ScanCall
from tests.unit.contract.scan_support import clean, kinds, mended, only, run, several

XS = jnp.array([1.0, 2.0, 3.0])


class State(NamedTuple):
    mean: Any
    n: Any


@struct.dataclass
class Tagged:
    value: Any
    tag: str = struct.field(pytree_node=False)


def returning(new: Any) -> Any:
    return lambda carry, x: (new(carry, x) if callable(new) else new, x)


@pytest.mark.parametrize(
    ("init", "new", "path", "expected", "got"),
    [
        ((0.0, None), lambda s, x: (s[0] + x, x), "carry[1]", ["None"], ["float32[]"]),
        ((0.0, 1.0), lambda s, x: (s[0], None), "carry[1]", ["float32[]"], ["None"]),
        ((0.0, ()), lambda s, x: (s[0], None), "carry[1]", ["an empty tuple"], ["None"]),
        ([0.0, 1.0], lambda s, x: (s[0], x), "carry", ["a list of 2"], ["a tuple of 2"]),
        (State(0.0, 1.0), lambda s, x: (s.mean, x), "carry", ["a State of 2"], ["a tuple of 2"]),
        ({"n": 0.0}, lambda s, x: OrderedDict(n=x), "carry", None, None),
        ({"n": 0.0, "m": 1.0}, lambda s, x: {"n": x}, "carry", ["float32[]"], ["absent"]),
        ({"n": 0.0}, lambda s, x: {"n": x, "m": jnp.ones(2)}, "carry", ["absent"], ["float32[2]"]),
        ({"n": 0.0}, lambda s, x: {"k": x}, "carry", ["float32[]", "absent"], ["absent", "float32[]"]),
        ((0.0,), lambda s, x: (s[0], x), "carry", ["absent"], ["float32[]"]),
        ((0.0, 1.0), lambda s, x: (x,), "carry", ["float32[]"], ["absent"]),
        (0.0, lambda s, x: (s, x), "carry", ["float32[]"], ["a tuple of 2"]),
        ((0.0, (1.0, 2.0)), lambda s, x: (s[0], x), "carry[1]", ["a tuple of 2"], ["float32[]"]),
        ({"a": {"b": [0.0]}}, lambda s, x: {"a": {"b": [x, x]}}, "carry['a']['b']", ["absent"], ["float32[]"]),
        (Tagged(0.0, "x"), lambda s, x: Tagged(x, "y"), "carry", ["a Tagged of 1"], ["a Tagged of 1"]),
        (defaultdict(int, a=0.0), lambda s, x: defaultdict(float, a=x), "carry", None, None),
        (None, lambda s, x: x, "carry", ["None"], ["float32[]"]),
    ],
)
def test_says_which_node_differs(init: Any, new: Any, path: str, expected: Any, got: Any) -> None:
    violation = only(ScanCall(returning(new), init, XS), "S102")
    assert violation.path == path
    if expected is not None:
        assert [str(t) for t in violation.expected] == expected
        assert [str(t) for t in violation.got] == got


def test_each_node_that_differs_is_said_once() -> None:
    found = several(ScanCall(returning(lambda s, x: (s[0], x, x)), (0.0, None, None), XS), "S102")
    assert [v.path for v in found] == ["carry[1]", "carry[2]"]
    assert [fix.remaining for v in found for fix in v.fixes] == [("S102",), ("S102",)]


def test_the_learner_s_own_name_is_in_the_sentence() -> None:
    def step(total: Any, x: Any) -> Any:
        return {"n": total["n"], "last": x}, x

    violation = only(ScanCall(step, {"n": 0.0, "last": None}, XS), "S102")
    assert (
        violation.message == "carry['last'] (`total['last']` in the step) goes in as None and comes out as float32[]."
    )
    assert violation.because is not None
    assert violation.because.text == "init set None here"


@pytest.mark.parametrize(
    ("init", "new"),
    [
        ({"b": 0.0, "a": 1.0}, lambda s, x: {"a": s["a"], "b": s["b"] + x}),
        ((0.0, None), lambda s, x: (s[0] + x, None)),
        (((), {}), lambda s, x: ((), {})),
        (State(0.0, 1.0), lambda s, x: s._replace(mean=x)),
        (Tagged(0.0, "x"), lambda s, x: s.replace(value=x)),
        (None, lambda s, x: None),
    ],
)
def test_the_same_structure_is_no_fault(init: Any, new: Any) -> None:
    clean(ScanCall(returning(new), init, XS))


def test_the_public_report_of_none_and_then_an_array() -> None:
    # google/jaxopt#258
    def step(state: Any, x: Any) -> Any:
        w, _ = state
        err = x - w
        return (w + 0.5 * err, err), err

    call = ScanCall(step, (jnp.array(0.0), None), jnp.array([2.0, 2.0]))
    only(call, "S102")
    fixed = mended(call, "S102", "init_value")
    (w, aux), ys = run(fixed)
    assert ys.tolist() == [2.0, 1.0]
    assert w == 1.5
    assert aux == 1.0
    assert str(jax.typeof(fixed.init[1])) == "float32[]"  # strong: a weak zero could be promoted to another type


def test_a_lost_key_is_kept_from_the_incoming_carry() -> None:
    call = ScanCall(lambda s, x: ({"n": s["n"] + s["by"]}, x), {"n": 0.0, "by": 2.0}, XS)
    final, _ = run(mended(call, "S102", "step_keep"))
    assert {k: float(v) for k, v in final.items()} == {"n": 6.0, "by": 2.0}


def test_a_new_key_starts_from_zeros_or_is_dropped() -> None:
    call = ScanCall(lambda s, x: ({"n": s["n"] + x, "last": x}, None), {"n": 0.0}, XS)
    assert kinds(call, "S102") == ["init_value", "step_drop"]
    final, _ = run(mended(call, "S102", "init_value"))
    assert {k: float(v) for k, v in final.items()} == {"n": 6.0, "last": 3.0}
    final, _ = run(mended(call, "S102", "step_drop"))
    assert {k: float(v) for k, v in final.items()} == {"n": 6.0}


def test_a_renamed_key_gets_its_name_back() -> None:
    call = ScanCall(lambda s, x: ({"n": s["n"] + 1, "avg": s["mean"] + x}, None), {"n": 0.0, "mean": 0.0}, XS)
    final, _ = run(mended(call, "S102", "step_keep"))
    assert {k: float(v) for k, v in final.items()} == {"n": 3.0, "mean": 6.0}


def test_the_kind_of_a_sequence_is_mended_on_either_side() -> None:
    call = ScanCall(lambda s, x: ((s[0] + x, s[1] + 1), None), [0.0, 0.0], XS)
    assert kinds(call, "S102") == ["step_kind", "init_value"]
    final, _ = run(mended(call, "S102", "step_kind"))
    assert isinstance(final, list)
    assert [float(v) for v in final] == [6.0, 3.0]
    final, _ = run(mended(call, "S102", "init_value"))
    assert isinstance(final, tuple)
    assert [float(v) for v in final] == [6.0, 3.0]


def test_a_named_tuple_s_fields_are_kept_when_init_cannot_change() -> None:
    call = ScanCall(lambda s, x: ((s.mean + x, s.n + 1), None), State(0.0, 0.0), XS)
    assert kinds(call, "S102") == ["step_kind"]
    final, _ = run(mended(call, "S102", "step_kind"))
    assert (float(final.mean), float(final.n)) == (6.0, 3.0)


def test_the_new_carry_returned_alone() -> None:
    call = ScanCall(lambda s, x: (s[0] + x, s[1] + 1), (0.0, 0.0), XS)
    violation = only(call, "S102")
    assert "returns the new carry alone" in violation.message
    (total, count), ys = run(mended(call, "S102", "step_return"))
    assert (float(total), float(count)) == (6.0, 3.0)
    assert ys is None


def test_no_fix_for_what_grows_or_for_a_number_that_becomes_a_tuple() -> None:
    grows = ScanCall(lambda s, x: ([*s, x], x), [0.0], XS)
    assert kinds(grows, "S102") == ["step_drop"]  # zeros for the new entry would only move the fault one step on
    assert only(ScanCall(lambda s, x: ((s + x, s), x), 0.0, XS), "S102").fixes == ()
    keys = jax.random.split(jax.random.key(0), 3)
    assert only(ScanCall(lambda s, x: (x, None), None, keys), "S102").fixes == ()


@pytest.mark.parametrize("wrap", [jax.jit, lambda f: partial(f), lambda f: lambda *a: f(*a)])
def test_wrapped_steps(wrap: Any) -> None:
    def step(s: Any, x: Any) -> Any:
        return (s[0] + x, x), None

    call = ScanCall(wrap(step), (0.0, None), XS)
    only(call, "S102")
    run(mended(call, "S102", "init_value"))


def test_because_is_init_s_place() -> None:
    places = Places({"step": Field("scan_step", "step"), "init:carry[1]": Field("scan_init_last", "last")})
    violation = only(ScanCall(lambda s, x: ((s[0], x), x), (0.0, None), XS, places=places), "S102")
    assert violation.place == Field("scan_step", "step")
    assert violation.because is not None
    assert violation.because.place == Field("scan_init_last", "last")
