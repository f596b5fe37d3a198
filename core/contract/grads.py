"""A program carried out equation by equation, loops included: where was a value that is not finite born?

As `core.contract.replay`, but for whole programs of a script: it goes into the steps of scans (only where something that
is not finite comes out of one) and into branches, and says which expression of the script each birth belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from core.base.jaxprs import bind, parts_of
from core.base.places import Span
from core.contract.origin import backwards, differentiating, opened, span_of, split_scan
from core.contract.replay import not_finite
from core.contract.source import Source


@dataclass(frozen=True, slots=True, eq=False)
class Born:
    """An operation that made a value that is not finite of values that were.

    Attributes:
        place: the expression of the script; None when it is not in it.
        operation: its name in JAX.
        inputs: what went in at the element where it happened, where that can be said.
        output: what came out there.
        of_gradient: whether it belongs to taking a gradient.
        of_backward: whether it belongs to the backward pass itself.
    """

    place: Span | None
    operation: str
    inputs: tuple[float, ...]
    output: float
    of_gradient: bool
    of_backward: bool


@dataclass(frozen=True, slots=True, eq=False)
class Hidden:
    """A place where values that are not finite are replaced because they are not.

    Attributes:
        place: the expression that replaces them.
        born: where they were born.
        count: how many there were.
    """

    place: Span
    born: Born
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class _Value:
    """A value, and where what is not finite in it came from (None: it is finite, or came in so).

    `tests` says that it tells which elements of another value are finite (or NaN, or infinite).
    """

    value: Any
    born: Born | None = None
    tests: bool = False


def births(program: Any, args: list[Any], source: Source) -> list[Born | None]:
    """For each output of a program run on `args`: where the first of what made it not finite was born."""
    jaxpr, consts = parts_of(program)
    walk = _Births(source)
    return [v.born for v in walk.run(jaxpr, [_Value(v) for v in (*consts, *args)], _Around())]


def hidden(program: Any, args: list[Any], source: Source) -> list[Hidden]:
    """Where a program run on `args` replaces values by whether they are finite, and some were not."""
    jaxpr, consts = parts_of(program)
    walk = _Births(source)
    walk.run(jaxpr, [_Value(v) for v in (*consts, *args)], _Around())
    return walk.hidden


@dataclass(frozen=True, slots=True)
class _Around:
    """What is known of the equations around a program: inside one of the gradient all is of the gradient."""

    place: Span | None = None
    of_gradient: bool = False
    of_backward: bool = False

    def inside(self, eqn: Any, source: Source) -> _Around:
        """The same for what an equation holds."""
        return _Around(
            span_of(eqn, source) or self.place,
            self.of_gradient or differentiating(eqn),
            self.of_backward or backwards(eqn),
        )


class _Births:
    def __init__(self, source: Source) -> None:
        self._source = source
        self.hidden: list[Hidden] = []

    def run(self, jaxpr: Any, given: list[_Value], around: _Around) -> list[_Value]:
        env: dict[Any, _Value] = dict(zip((*jaxpr.constvars, *jaxpr.invars), given, strict=True))

        def read(atom: Any) -> _Value:
            return _Value(atom.val) if hasattr(atom, "val") else env[atom]

        for eqn in jaxpr.eqns:
            if not eqn.outvars:
                continue
            here = around.inside(eqn, self._source)
            env.update(zip(eqn.outvars, self._step(eqn, [read(v) for v in eqn.invars], here), strict=True))
        return [read(v) for v in jaxpr.outvars]

    def _step(self, eqn: Any, inputs: list[_Value], here: _Around) -> list[_Value]:
        called = opened(eqn)
        if called is not None:
            return self.run(called[0], [*map(_Value, called[1]), *inputs], here)
        if eqn.primitive.name == "cond":
            body, consts = parts_of(eqn.params["branches"][_branch(eqn, inputs[0].value)])
            return self.run(body, [*map(_Value, consts), *inputs[1:]], here)
        values = bind(eqn, [v.value for v in inputs])
        tests = _tests(eqn, inputs)
        if tests:
            return [_Value(v, None, tests) for v in values]
        if eqn.primitive.name == "select_n" and inputs[0].tests and here.place is not None:
            self._hides(inputs, here.place)
        if not any(not_finite(v).any() for v in values):
            return [_Value(v) for v in values]
        if eqn.primitive.name == "scan" and not any(_wild(v) for v in inputs):
            born = self._in_scan(eqn, inputs, here)
            return [_Value(v, born if not_finite(v).any() else None) for v in values]
        return [_Value(v, self._origin(eqn, inputs, v, here)) for v in values]

    def _origin(self, eqn: Any, inputs: list[_Value], output: Any, here: _Around) -> Born | None:
        bad = not_finite(output)
        if not bad.any():
            return None
        if eqn.primitive.name == "select_n":
            which = np.asarray(inputs[0].value)
            cases = [c for i, c in enumerate(inputs[1:]) if (not_finite(c.value) & (which == i)).any()]
            return next((c.born for c in cases if c.born is not None), None)
        wild = [v for v in inputs if _wild(v)]
        if wild:
            return next((v.born for v in wild if v.born is not None), None)
        where = tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
        numbers = tuple(n for n in (_element(v.value, where, bad.shape) for v in inputs) if n is not None)
        value = float(np.real(np.asarray(output)[where]))
        return Born(here.place, eqn.primitive.name, numbers, value, here.of_gradient, here.of_backward)

    def _hides(self, inputs: list[_Value], place: Span) -> None:
        """A choice by whether values are finite: those that are not and are left out are hidden."""
        which = np.asarray(inputs[0].value)
        for i, case in enumerate(inputs[1:]):
            left_out = not_finite(case.value) & (which != i)
            if case.born is not None and left_out.any():
                self.hidden.append(Hidden(place, case.born, int(left_out.sum())))

    def _in_scan(self, eqn: Any, inputs: list[_Value], here: _Around) -> Born | None:
        """The first birth in the first step that anything not finite comes out of."""
        body, closed = parts_of(eqn.params["jaxpr"])
        consts, carry, xs = split_scan(eqn, [v.value for v in inputs])
        count, length = len(carry), int(eqn.params["length"])
        step = jax.jit(lambda *given: jax.core.eval_jaxpr(body, closed, *given))
        order = range(length - 1, -1, -1) if eqn.params["reverse"] else range(length)
        for t in order:
            given = [*consts, *carry, *(x[t] for x in xs)]
            out = step(*given)
            if any(not_finite(v).any() for v in out):
                found = self.run(body, [*map(_Value, closed), *map(_Value, given)], here)
                return next((v.born for v in found if v.born is not None), None)
            carry = out[:count]
        return None


#: What asks of numbers whether they are finite, and what combines such answers.
_ASKS, _COMBINES = (
    frozenset({"is_finite"}),
    frozenset("not and or convert_element_type broadcast_in_dim reshape".split()),
)


def _tests(eqn: Any, inputs: list[_Value]) -> bool:
    """Whether an operation tells which elements of its input are finite, NaN or infinite."""
    name = eqn.primitive.name
    if name in _ASKS:
        return True
    if name in ("ne", "eq"):
        one, other = eqn.invars
        infinite = any(hasattr(v, "val") and np.ndim(v.val) == 0 and np.isinf(float(v.val)) for v in eqn.invars)
        return one is other or infinite
    return name in _COMBINES and any(v.tests for v in inputs)


def _branch(eqn: Any, index: Any) -> int:
    return int(np.clip(int(index), 0, len(eqn.params["branches"]) - 1))


def _wild(value: _Value) -> bool:
    return hasattr(value.value, "dtype") and bool(not_finite(value.value).any())


def _element(value: Any, where: tuple[int, ...], shape: tuple[int, ...]) -> float | None:
    if not hasattr(value, "dtype") or jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key):
        return float(value) if isinstance(value, bool | int | float) else None
    array = np.asarray(value)
    if array.shape == shape:
        return float(np.real(array[where]))
    return float(np.real(array[()])) if array.shape == () else None
