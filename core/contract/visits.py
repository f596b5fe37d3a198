"""In which order a script's sequences stand: of time, or of the visits of a reversed `nnx.RNN`. By identity of values."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flax import nnx
from jax import tree_util

from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called
from core.contract.subject import MISSING

TIME, VISITS = "time", "visits"
FLIPS = frozenset({"jax.numpy.flip", "jax.numpy.flipud", "jax.lax.rev", "Array.flip"})


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """Of a sequence: its order, how many steps it has, its number of axes, and the RNN call that it comes out of."""

    kind: str
    steps: int
    axes: int
    origin: Called | None


@dataclass(slots=True, eq=False)
class Reversed:
    """A call of a reversed RNN that returns the order of its visits.

    Attributes:
        call: the call.
        mixed: the expression that puts its outputs beside a sequence in order of time; None when there is none.
        undone: whether the script turns its outputs round again.
    """

    call: Called
    mixed: ast.expr | None = None
    undone: bool = False


@dataclass(slots=True, eq=False)
class _Orders:
    """Orders by identity of arrays; `values` keeps them alive, so that an identity is never given twice."""

    known: dict[int, Order] = field(default_factory=dict)
    values: list[Any] = field(default_factory=list)

    def of(self, value: Any) -> Order | None:
        return self.known.get(id(value))

    def set(self, value: Any, order: Order) -> None:
        if id(value) not in self.known:
            self.values.append(value)
            self.known[id(value)] = order


def is_rnn(call: Called) -> bool:
    """Whether a call runs an `nnx.RNN`."""
    return isinstance(call.func, nnx.RNN) and call.result is not MISSING


def reverses(call: Called) -> bool:
    """Whether the RNN returned its outputs in the order in which it visited them, last step first."""

    def option(name: str) -> Any:
        given = call.kwargs.get(name)
        return getattr(call.func, name, False) if given is None or given is MISSING else given

    return bool(option("reverse")) and not bool(option("keep_order"))


def sequences(call: Called) -> tuple[Any, Any]:
    """Input and output sequence of an RNN call."""
    result = call.result
    given = call.kwargs.get("return_carry")
    pair = getattr(call.func, "return_carry", False) if given is None or given is MISSING else given
    if pair and isinstance(result, tuple) and len(result) == 2:
        result = result[1]
    return call.argument(0, "inputs"), result


def steps_of(call: Called) -> int:
    """How many steps an RNN call takes; 0 where that cannot be said."""
    inputs, _ = sequences(call)
    given = call.kwargs.get("time_major")
    first = getattr(call.func, "time_major", False) if given is None or given is MISSING else given
    shape = np.shape(inputs)
    axis = 0 if first else len(shape) - 1 - int(getattr(call.func.cell, "num_feature_axes", 1))
    return int(shape[axis]) if 0 <= axis < len(shape) else 0


def reversed_calls(facts: ScriptFacts) -> list[Reversed]:
    """Every reversed RNN call, with what the script does with its outputs."""
    found: dict[int, Reversed] = {}
    orders = _Orders()
    for event in _events(facts):
        if isinstance(event, Called) and is_rnn(event):
            inputs, outputs = sequences(event)
            _run(event, inputs, outputs, orders, found)
            continue
        node, operands, result = _operation(facts, event)
        known = [o for value in operands if (o := orders.of(value)) is not None]
        if not known or result is MISSING:
            continue
        kept = [o for o in known if _still(o, result)]
        visits = next((o for o in kept if o.kind == VISITS), None)
        if visits is None:
            if kept:
                orders.set(result, kept[0])
            continue
        one = found[id(visits.origin)]
        if _flips(facts, node):
            one.undone = True
            orders.set(result, Order(TIME, visits.steps, visits.axes, None))
        else:
            if any(o.kind == TIME for o in kept) and one.mixed is None:
                one.mixed = node
            orders.set(result, visits)
    return list(found.values())


def _run(call: Called, inputs: Any, outputs: Any, orders: _Orders, found: dict[int, Reversed]) -> None:
    steps = steps_of(call)
    if steps < 2:
        return
    axes = len(np.shape(inputs))
    before = orders.of(inputs) or Order(TIME, steps, axes, None)
    orders.set(inputs, before)
    turned = reverses(call)
    if turned and before.kind == TIME:
        found[id(call)] = Reversed(call)
        orders.set(outputs, Order(VISITS, steps, axes, call))
    elif turned:
        orders.set(outputs, Order(TIME, steps, axes, None))
    else:
        orders.set(outputs, before)


def _events(facts: ScriptFacts) -> Iterator[Any]:
    """Calls and operations in order."""
    events: list[Any] = [s for s in facts.record.seen if isinstance(s.node, ast.BinOp | ast.Subscript)]
    events += facts.record.calls
    yield from sorted(events, key=lambda e: int(e.order))


def _operation(facts: ScriptFacts, event: Any) -> tuple[ast.expr, list[Any], Any]:
    if isinstance(event, Called):
        receiver = [] if event.receiver is None else [event.receiver]
        leaves = tree_util.tree_leaves((event.args, dict(event.kwargs)), is_leaf=lambda v: v is MISSING)
        return event.node, [*receiver, *leaves], event.result
    parts = [event.node.left, event.node.right] if isinstance(event.node, ast.BinOp) else [event.node.value]
    before = [[s.value for s in facts.seen(part) if s.order < event.order] for part in parts]
    return event.node, [values[-1] for values in before if values], event.value


def _still(order: Order, result: Any) -> bool:
    """Whether the steps are still there: neither summed up nor picked from."""
    shape = getattr(result, "shape", None)
    return shape is not None and order.steps in shape and len(shape) >= order.axes


def _flips(facts: ScriptFacts, node: ast.expr) -> bool:
    """Whether an expression turns a sequence round."""
    if isinstance(node, ast.Call):
        names = {call.name for call in facts.calls_at(node)}
        return bool(names & FLIPS)
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return any(isinstance(p, ast.Slice) and p.step is not None and ast.unparse(p.step) == "-1" for p in parts)
    return False
