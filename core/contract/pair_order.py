"""Which way round a step returns its pair: what the two parts of it are made of, and the other order tried.

A step that returns ``(y, carry)`` is told from one that returns ``(carry, y)`` by what depends on what. Equal
subexpressions count as one (``c + x`` written twice), so that a y computed from the new carry is seen as such.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from jax import tree_util

from core.base.avals import aval_of
from core.base.jaxprs import parts_of
from core.contract import trees
from core.contract.mend import MendedStep
from core.contract.subject import ScanCall
from core.contract.trace import StepTrace, unpack


@dataclass(frozen=True, slots=True)
class Swap:
    """A step that returned ``(y, new carry)``."""

    def __call__(self, carry: Any, returned: Any) -> Any:
        """``(new carry, y)``."""
        y, new = unpack(returned) or returned
        return new, y


def swapped(call: ScanCall) -> ScanCall:
    """The call with the two things that its step returns in the other order."""
    return replace(call, step=MendedStep(call.step, Swap()))


@dataclass(frozen=True, slots=True)
class Parts:
    """What the two parts of a step's pair are made of.

    Attributes:
        first_on_carry: the first depends on the carry that came in.
        first_through_second: it does so only through the second (it is made of it, or a part of it).
        second_on_carry, second_on_x: what the second depends on.
        second_on_first: the second is made of the first.
        second_changes: the second is not the carry as it came in.
        first_is_x: every leaf of the first is a leaf of x as it came in.
    """

    first_on_carry: bool
    first_through_second: bool
    second_on_carry: bool
    second_on_x: bool
    second_on_first: bool
    second_changes: bool
    first_is_x: bool


def parts(trace: StepTrace) -> Parts | None:
    """The parts of a traced step's pair; None when it returned none, or something in it is no array."""
    if trace.pair is None:
        return None
    first, second = (tree_util.tree_leaves(part) for part in trace.pair)
    if any(aval_of(leaf) is None for leaf in (*first, *second)):
        return None
    jaxpr, _ = parts_of(trace.jaxpr)
    graph = _Graph(jaxpr)
    count = len(tree_util.tree_leaves(trace.carry_in))
    carry, x = ({graph.number(v) for v in part} for part in (jaxpr.invars[:count], jaxpr.invars[count:]))
    ones = {graph.number(v) for v in jaxpr.outvars[: len(first)]}
    twos = [graph.number(v) for v in jaxpr.outvars[len(first) :]]
    below_two = graph.above(twos)
    kept = [graph.number(v) for v in jaxpr.invars[:count]] == twos
    return Parts(
        first_on_carry=bool(graph.above(ones) & carry),
        first_through_second=bool(ones) and not graph.above(ones, stop=set(twos) - carry) & carry,
        second_on_carry=bool(below_two & carry),
        second_on_x=bool(below_two & x),
        second_on_first=bool(below_two & (ones - set(twos) - carry - x)),
        second_changes=not kept,
        first_is_x=bool(ones) and ones <= x,
    )


def wrong_way_round(trace: StepTrace) -> bool:
    """Whether the second part is the updated carry by its types, and by what both are made of; the first is not.

    A carry that grows (``(c + x, c)``), a y that sums the new carry up (``(c, c.sum())``), x handed on as y: none of
    them is.
    """
    pair, made = trace.pair, parts(trace)
    if pair is None or made is None:
        return False
    if not trees.same_leaves(trace.carry_in, pair[1]) or trees.same_leaves(trace.carry_in, pair[0]):
        return False
    if not made.second_on_carry or not made.second_changes or made.second_on_first:
        return False
    whole = len(tree_util.tree_leaves(trace.carry_in)) > 1
    return not made.first_on_carry or made.first_through_second or made.second_on_x or whole


class _Graph:
    """The values of a program by number; two that are computed alike from the same have one number."""

    def __init__(self, jaxpr: Any) -> None:
        self._numbers: dict[Any, int] = {}
        self._made: dict[Any, int] = {}
        self._inputs: dict[int, tuple[int, ...]] = {}
        for eqn in jaxpr.eqns:
            given = tuple(self.number(v) for v in eqn.invars)
            what = eqn.primitive.name, given, _written(eqn.params)
            for place, out in enumerate(eqn.outvars):
                number = self._made.setdefault((*what, place), self._next())
                self._numbers[out] = number
                self._inputs[number] = given

    def _next(self) -> int:
        return len(self._numbers) + len(self._made)

    def number(self, atom: Any) -> int:
        """The number of a variable or a literal."""
        if hasattr(atom, "val"):
            return self._made.setdefault(("literal", repr(atom.val), str(atom.aval)), self._next())
        if atom not in self._numbers:
            self._numbers[atom] = self._next()
        return self._numbers[atom]

    def above(self, numbers: Any, stop: Any = frozenset()) -> set[int]:
        """These and all that they are made of; what is in `stop` is not opened."""
        done: set[int] = set()
        todo = [n for n in numbers if n not in stop]
        while todo:
            number = todo.pop()
            if number in done:
                continue
            done.add(number)
            todo += [n for n in self._inputs.get(number, ()) if n not in stop]
        return done


def _written(params: Any) -> tuple[tuple[str, Any], ...]:
    """Parameters of an equation so that equal ones compare equal; of programs in it, the very object."""
    return tuple(_parameters(params))


def _parameters(params: Any) -> Iterator[tuple[str, Any]]:
    for name, value in sorted(params.items()):
        opened = hasattr(value, "eqns") or hasattr(value, "jaxpr") or callable(value)
        yield name, id(value) if opened else repr(value)
