"""Which draws of random numbers in a step's program depend on what changes from step to step, and which do not.

The program is the jaxpr of the abstract trace, so typed keys, raw keys, keys in a carry of any shape, jitted helpers and
inner loops are all the same to it: what a key depends on is followed from equation to equation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from core.base.jaxprs import bind, equations, parts_of
from core.base.places import Span
from core.contract.origin import opened, spans_of, split_scan
from core.contract.source import Source

#: Operations that draw from a key (their first input).
DRAWS = frozenset({"random_bits", "random_gamma", "threefry2x32"})
#: Operations that make new keys of one.
MAKES = frozenset({"random_split", "random_fold_in"})
#: Where the consts of a condition and of a body stand among the inputs of a `while`.
_COND, _BODY = "cond_nconsts", "body_nconsts"


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """What is known of one value of a program.

    Attributes:
        deps: positions of the program's inputs that it depends on.
        first: of a key, the expression in which it, or the key that it was made of, was used first.
    """

    deps: frozenset[int] = frozenset()
    first: Span | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """One draw.

    Attributes:
        place: the expression that draws.
        used: the expression that used the key first: `place` itself, or the `split` that its key comes out of.
        deps: positions of the program's inputs that its key depends on.
        through: the expressions that were being evaluated then, innermost first, as far as they are known.
    """

    place: Span
    used: Span
    deps: frozenset[int]
    through: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """A program's draws, and what each of its outputs is; `same`, for outputs that are an input as it came, says which."""

    draws: tuple[Draw, ...]
    outputs: tuple[Value, ...]
    same: tuple[int | None, ...]

    def still(self, carried: int, start: int = 0) -> frozenset[int]:
        """Of the `carried` inputs from `start` on, which the first outputs are fed back to: those that stay the same.

        One that is overwritten with a constant counts: it is the same from the second step on.
        """
        feeds = ((start + i, self.same[i], self.outputs[i].deps) for i in range(carried))
        return frozenset(i for i, same, deps in feeds if same == i or not deps)


def draws_at_all(program: Any) -> bool:
    """Whether there is any draw in a program: a cheap question, to be asked first."""
    return any(eqn.primitive.name in DRAWS for eqn in equations(program))


def flow_of(program: Any, source: Source) -> Flow:
    """The flow of keys through a closed jaxpr."""
    jaxpr, _ = parts_of(program)
    inputs = [Value(frozenset({i})) for i in range(len(jaxpr.invars))]
    walk = _Walk(source)
    outputs = walk.run(jaxpr, [Value() for _ in jaxpr.constvars], inputs, None)
    at = {id(v): i for i, v in enumerate(inputs)}
    return Flow(tuple(walk.draws), tuple(outputs), tuple(at.get(id(v)) for v in outputs))


class _Walk:
    """Follows values through a program; `draws` grows while `quiet` is not set (a loop's body is walked several times)."""

    def __init__(self, source: Source) -> None:
        self.draws: list[Draw] = []
        self._source = source
        self._quiet = 0
        self._through: list[tuple[Span, ...]] = []

    def run(self, jaxpr: Any, consts: list[Value], inputs: list[Value], place: Span | None) -> list[Value]:
        env: dict[Any, Value] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *inputs), strict=True))

        def read(atom: Any) -> Value:
            return Value() if hasattr(atom, "val") else env[atom]

        for eqn in jaxpr.eqns:
            spans = spans_of(eqn, self._source)
            self._through.append(spans)
            outputs = self._step(eqn, [read(v) for v in eqn.invars], spans[0] if spans else place)
            self._through.pop()
            env.update(zip(eqn.outvars, outputs, strict=True))
        return [read(v) for v in jaxpr.outvars]

    def _step(self, eqn: Any, inputs: list[Value], here: Span | None) -> list[Value]:
        name = eqn.primitive.name
        called = opened(eqn)
        if called is not None:
            body, consts = called
            return self.run(body, [Value() for _ in consts], inputs, here)
        if name == "scan":
            return self._scan(eqn, inputs, here)
        if name == "while":
            return self._while(eqn, inputs, here)
        if name == "cond":
            return self._cond(eqn, inputs, here)
        if name in DRAWS and here is not None and not self._quiet:
            key = inputs[0]
            through = tuple(span for spans in reversed(self._through) for span in spans)
            self.draws.append(Draw(here, key.first or here, key.deps, through))
        both = joined(inputs)
        if name in MAKES:
            both = Value(both.deps, inputs[0].first or here)
        return [both] * len(eqn.outvars)

    def _scan(self, eqn: Any, inputs: list[Value], here: Span | None) -> list[Value]:
        body, closed = parts_of(eqn.params["jaxpr"])
        consts, carry, xs = split_scan(eqn, inputs)
        count = len(carry)
        none = [Value() for _ in closed]
        carry = self._settled(lambda c: self.run(body, none, [*consts, *c, *xs], here)[:count], carry)
        out = self.run(body, none, [*consts, *carry, *xs], here)
        return [*map(_either, carry, out[:count]), *out[count:]]

    def _while(self, eqn: Any, inputs: list[Value], here: Span | None) -> list[Value]:
        body, closed = parts_of(eqn.params["body_jaxpr"])
        tested, looped = eqn.params[_COND], eqn.params[_BODY]
        consts, carry = inputs[tested : tested + looped], inputs[tested + looped :]
        none = [Value() for _ in closed]
        carry = self._settled(lambda c: self.run(body, none, [*consts, *c], here), carry)
        return list(map(_either, carry, self.run(body, none, [*consts, *carry], here)))

    def _settled(self, body: Any, carry: list[Value]) -> list[Value]:
        """The carry with all that any number of steps may bring into it."""
        self._quiet += 1
        try:
            while True:
                grown = list(map(_either, carry, body(carry)))
                if all(
                    a.deps == b.deps and (a.first is None) == (b.first is None)
                    for a, b in zip(grown, carry, strict=True)
                ):
                    return carry
                carry = grown
        finally:
            self._quiet -= 1

    def _cond(self, eqn: Any, inputs: list[Value], here: Span | None) -> list[Value]:
        which, given = inputs[0], inputs[1:]
        outs = []
        for branch in eqn.params["branches"]:
            body, closed = parts_of(branch)
            outs.append(self.run(body, [Value() for _ in closed], given, here))
        return [v[0] if all(o is v[0] for o in v) else joined((which, *v)) for v in zip(*outs, strict=True)]


def joined(values: Iterable[Value]) -> Value:
    """What depends on all of these."""
    kept = tuple(values)
    deps: frozenset[int] = frozenset().union(*(v.deps for v in kept))
    return Value(deps, next((v.first for v in kept if v.first is not None), None))


def _either(one: Value, other: Value) -> Value:
    return one if one is other else joined((one, other))


# --- the numbers ----------------------------------------------------------------------------------------------------


def drawn(program: Any, args: list[Any]) -> tuple[list[Any], list[Any]]:
    """The bits of every draw that is not inside an inner loop, in order, and the outputs, of one run of a program."""
    jaxpr, consts = parts_of(program)
    bits: list[Any] = []
    outputs = _drawn(jaxpr, [*map(number_for, consts), *args], bits)
    return bits, outputs


def _drawn(jaxpr: Any, given: list[Any], bits: list[Any]) -> list[Any]:
    env: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), given, strict=True))

    def read(atom: Any) -> Any:
        return atom.val if hasattr(atom, "val") else env[atom]

    for eqn in (e for e in jaxpr.eqns if e.outvars):
        values = [read(v) for v in eqn.invars]
        called = opened(eqn)
        outputs = bind(eqn, values) if called is None else _drawn(called[0], [*called[1], *values], bits)
        if eqn.primitive.name in DRAWS:
            bits.append(np.asarray(outputs[0]))
        env.update(zip(eqn.outvars, outputs, strict=True))
    return [read(v) for v in jaxpr.outvars]


def number_for(value: Any) -> Any:
    """The value itself; for one that is still traced (its trace is over by now), numbers of its type."""
    if not isinstance(value, jax.core.Tracer):
        return value if hasattr(value, "dtype") else jax.numpy.asarray(value)
    if jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key):
        return jax.random.split(jax.random.key(0), value.shape) if value.shape else jax.random.key(0)
    return jax.numpy.zeros(value.shape, value.dtype)


def same_rows(value: Any) -> bool:
    """Whether all rows along the first axis of an array (of keys, too) are the same; False while it is traced."""
    if isinstance(value, jax.core.Tracer) or not hasattr(value, "dtype") or np.ndim(value) == 0:
        return False
    if jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    rows = np.asarray(value)
    return len(rows) > 0 and bool((rows == rows[:1]).all())
