"""A step's program replayed equation by equation with the numbers of one step: where was a value born?

The program is the jaxpr of the abstract trace, so the learner's function is not called again. Calls of jitted and
differentiated functions are opened; loops and branches inside a step count as one operation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from core.base.jaxprs import bind, inner, parts_of


@dataclass(frozen=True, slots=True, eq=False)
class Birth:
    """An operation that made a value that is not finite of values that were.

    Attributes:
        operation: its name in JAX (``div``, ``log``).
        inputs: what went in at the element where it happened, where that can be said.
        output: what came out there.
        live: whether the operation depends on the carry or on x at all (the log of a constant does not).
        of_infinity: it made NaN of infinities (∞ - ∞, 0 · ∞).
    """

    operation: str
    inputs: tuple[float, ...]
    output: float
    live: bool
    of_infinity: bool


@dataclass(frozen=True, slots=True)
class Given:
    """A value that was not finite to begin with: an argument by position, or written into the step (None)."""

    argument: int | None


type Origin = Birth | Given

_NONE: frozenset[Any] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class _Value:
    """A value of the replay: whether it depends on the arguments, and where what is not finite in it came from."""

    value: Any
    live: bool = False
    origins: frozenset[Any] = _NONE


def origins(program: Any, args: list[Any]) -> list[frozenset[Origin]]:
    """For each output of a program run on `args`: where its values that are not finite came from (empty: all finite)."""
    jaxpr, consts = parts_of(program)
    given = [_source(c, False, None) for c in consts]
    given += [_source(arg, True, i) for i, arg in enumerate(args)]
    return [v.origins for v in _replay(jaxpr, given)]


def not_finite(value: Any) -> Any:
    """Where an array is NaN or infinite; all False for anything but floats."""
    if not jnp.issubdtype(jax.typeof(value).dtype, jnp.inexact):
        return np.zeros(np.shape(value), bool)
    return ~np.isfinite(np.asarray(value))


def _source(value: Any, live: bool, argument: int | None) -> _Value:
    return _Value(value, live, frozenset({Given(argument)}) if not_finite(value).any() else _NONE)


def _replay(jaxpr: Any, given: list[_Value]) -> list[_Value]:
    env: dict[Any, _Value] = dict(zip((*jaxpr.constvars, *jaxpr.invars), given, strict=True))

    def read(atom: Any) -> _Value:
        return _source(atom.val, False, None) if hasattr(atom, "val") else env[atom]

    for eqn in jaxpr.eqns:
        if not eqn.outvars:
            continue  # a print of the learner's: it happens once, not once more for us
        inputs = [read(v) for v in eqn.invars]
        opened = inner(eqn)
        if opened is not None:
            body, consts = parts_of(opened)
            outputs = _replay(body, [*(_source(c, False, None) for c in consts), *inputs])
        else:
            outputs = _operate(eqn, inputs)
        env.update(zip(eqn.outvars, outputs, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _operate(eqn: Any, inputs: list[_Value]) -> list[_Value]:
    values = bind(eqn, [v.value for v in inputs])
    live = any(v.live for v in inputs)
    return [_Value(value, live, _origins_of(eqn, inputs, value, live)) for value in values]


def _origins_of(eqn: Any, inputs: list[_Value], output: Any, live: bool) -> frozenset[Any]:
    bad = not_finite(output)
    if not bad.any():
        return _NONE
    if eqn.primitive.name == "select_n":
        return _chosen(inputs)
    before = frozenset[Any]().union(*(v.origins for v in inputs))
    born_nan = _has_nan(output) and not any(_has_nan(v.value) for v in inputs)
    if before and not born_nan:
        return before
    at = np.isnan(np.asarray(output)) if before else bad
    where = tuple(int(i) for i in np.unravel_index(int(np.argmax(at)), at.shape))
    numbers = tuple(n for n in (_element(v.value, where, at.shape) for v in inputs) if n is not None)
    birth = Birth(eqn.primitive.name, numbers, _real(np.asarray(output)[where]), live, bool(before))
    return before | {birth}


def _chosen(inputs: list[_Value]) -> frozenset[Any]:
    """Origins of the branches of a `select_n` whose chosen elements are not finite."""
    which = np.asarray(inputs[0].value)
    found: frozenset[Any] = _NONE
    for number, case in enumerate(inputs[1:]):
        if (not_finite(case.value) & (which == number)).any():
            found |= case.origins
    return found


def _has_nan(value: Any) -> bool:
    if not jnp.issubdtype(jax.typeof(value).dtype, jnp.inexact):
        return False
    return bool(np.isnan(np.asarray(value)).any())


def _element(value: Any, where: tuple[int, ...], shape: tuple[int, ...]) -> float | None:
    array = np.asarray(value)
    if array.shape == shape:
        return _real(array[where])
    return _real(array[()]) if array.shape == () else None


def _real(number: Any) -> float:
    return float(np.real(number))
