"""Which of a script's arrays have time first and which the batch, as far as it says so itself (L309).

Said by names: a shape written with names, ``(T, B, F)``, in a call, in ``T, B, F = x.shape``, in a comparison, in a
comment behind the assignment; or the array's own name, ``x_tbf``. Said by what made it: a scan over a cell stacks its
outputs along time, a layer returns the order that it was told, ``arange(T) < lengths[:, None]`` has the batch first.
What is known of one array goes on to what is made of it: exchanged axes, layers, sums. Sizes alone say nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
from flax import nnx
from jax import tree_util

from core.base.avals import aval_of
from core.base.text import fill
from core.contract.fates import given_as
from core.contract.layer_calls import option
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called, ScanSite, Seen
from core.contract.steps import steps_of
from core.contract.subject import MISSING

TIME, BATCH = "T", "B"
SHAPED = "its shape is written as {text} here"
NAMED = "its name, {text}, says so"
NOTED = "the comment says {text} here"
SCANNED = "a scan stacked it along its steps here"
WALKED = "this scan walks along its first axis"
RETURNED = "a layer that takes {first} first returned it here"
COMPARED = "the lengths are laid along its {axis} axis here"
TURNED = ", and its axes are exchanged later"
STACKED = "the outputs of one step after another were stacked here"
FIRST = {TIME: "time", BATCH: "the batch"}
AXES = {BATCH: "first", TIME: "second"}

#: Parts of names of sizes.
SAYS_TIME = frozenset({"t", "time", "times", "timesteps", "timestep", "steps", "seq", "seqlen", "length", "len", "maxlen",
                       "horizon", "frames", "tokens", "words", "chars", "characters", "ticks"})  # fmt: skip
SAYS_BATCH = frozenset({"b", "batch", "batchsize", "bs", "bsz", "examples", "minibatch"})
#: Names of arrays that spell their axes.
TIME_FIRST, BATCH_FIRST = re.compile(r"^tb[fdhcei]?$"), re.compile(r"^bt[fdhcei]?$")
COMMENT = re.compile(r"#[^(\[]*[(\[]\s*([A-Za-z_]+)\s*,\s*([A-Za-z_]+)\s*[,)\]]")
ELEMENTWISE = ("jax.nn.", "flax.nnx.", "optax.")
SAME = frozenset(
    f"jax.numpy.{n}" for n in ("tanh", "exp", "log", "sin", "cos", "abs", "sqrt", "square", "clip", "where", "asarray",
                               "array", "zeros_like", "ones_like", "full_like", "maximum", "minimum", "add", "multiply",
                               "subtract", "divide", "float32", "concatenate", "dot", "matmul", "nan_to_num", "copy")
) | {"Array.astype", "numpy.asarray", "jax.device_put", "jax.random.normal", "jax.lax.stop_gradient"}  # fmt: skip
TURNS = frozenset({"swapaxes", "moveaxis", "transpose"})


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """What the first axis of an array is (TIME or BATCH; the second is the other one), and what says so.

    Attributes:
        first: the axis.
        node: the expression that says so.
        text: how it says so.
        told: whether the script says it; False for what a layer merely took it for.
        taken: whether a layer that took it so is all that says it.
    """

    first: str
    node: ast.expr | ast.stmt
    text: str
    told: bool = True
    taken: bool = False

    @property
    def turned(self) -> Order:
        """The same with the two axes exchanged."""
        text = self.text if self.text.endswith(TURNED) else self.text + TURNED
        # A layer along one axis and the next along the other is a way to read a picture: what one took says little then.
        return replace(self, first=BATCH if self.first == TIME else TIME, text=text, told=self.told and not self.taken)


class Orders:
    """The orders of a script's arrays, by identity. Made once by `orders_of`."""

    def __init__(self, facts: ScriptFacts) -> None:
        self._facts = facts
        self._known: dict[int, Order | None] = {}
        self._kept: list[Any] = []
        self._given: dict[ast.Name, list[ast.expr]] = {}
        for value, order in _declared(facts):
            self._set(value, order)
        for event in _events(facts):
            if isinstance(event, Called):
                self._call(event)
            else:
                self._seen(event)

    def of(self, value: Any) -> Order | None:
        """The order of this very array; None where the script does not say, or contradicts itself."""
        return self._known.get(id(value))

    def _set(self, value: Any, order: Order | None) -> None:
        aval = aval_of(value)
        if aval is None or len(aval.shape) < 2 or order is None:
            return
        if id(value) not in self._known:
            self._kept.append(value)
            self._known[id(value)] = order
            return
        before = self._known[id(value)]
        if order.text == WALKED:
            return  # what is said of the array itself counts for more than what one scan takes it for
        if before is not None and before.first != order.first and before.told and order.told:
            self._known[id(value)] = None

    # --- what is made of what is known ------------------------------------------------------------------------------

    def _call(self, call: Called) -> None:
        result, func = call.result, call.func
        if result is MISSING or call.error is not None:
            return
        if isinstance(func, nnx.RNN | nnx.Bidirectional):
            self._layer(call)
            return
        operands = [a for a in (*call.args, *call.kwargs.values()) if aval_of(a) is not None]
        operands += [] if call.receiver is None else [call.receiver]
        known = [(a, o) for a in operands if (o := self.of(a)) is not None]
        if not known or aval_of(result) is None:
            return
        name = (call.name or "").rpartition(".")[2]
        if name in TURNS:
            value, order = known[0]
            aval = aval_of(value)
            self._set(result, None if aval is None else _permuted(order, name, call, value, len(aval.shape)))
            return
        self._same(result, known, sure=(call.name or "") in SAME or (call.name or "").startswith(ELEMENTWISE))

    def _layer(self, call: Called) -> None:
        inputs, result = call.argument(0, "inputs"), call.result
        outputs = result[1] if option(call, "return_carry") and isinstance(result, tuple) else result
        first = TIME if option(call, "time_major") else BATCH
        before = self.of(inputs)
        if before is None or not before.told:
            before = Order(first, call.node, fill(RETURNED, first=FIRST[first]), taken=True)
        elif before.first != first:  # said of this layer already: its outputs are not held against the next one
            before = replace(before, told=False)
        self._set(outputs, before)

    def _seen(self, seen: Seen) -> None:
        node, facts = seen.node, self._facts
        if self.of(seen.value) is not None or aval_of(seen.value) is None:
            return
        if isinstance(node, ast.Name):
            if isinstance(seen.value, jax.core.Tracer):
                for argument in self._arguments(node):
                    outer = facts.value(argument)
                    order = self.of(outer)
                    if order is not None and _front(outer) == _front(seen.value):
                        self._set(seen.value, order)
                        return
            return
        parts = [node.left, node.right] if isinstance(node, ast.BinOp) else []
        if isinstance(node, ast.Subscript) and _keeps_front(node.slice):
            parts = [node.value]
        if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
            value = _before(facts, node.value, seen)
            aval, order = aval_of(value), self.of(value)
            if node.attr == "T" and order is not None and aval is not None and len(aval.shape) == 2:
                self._set(seen.value, order.turned)
            return
        values = [_before(facts, part, seen) for part in parts]
        known = [(v, o) for v in values if v is not None and (o := self.of(v)) is not None]
        self._same(seen.value, known, sure=True)

    def _arguments(self, name: ast.Name) -> list[ast.expr]:
        """What was given for a parameter, looked up once for each place that reads it."""
        if name not in self._given:
            self._given[name] = [argument for _, argument in given_as(self._facts, name)]
        return self._given[name]

    def _same(self, result: Any, known: list[tuple[Any, Order]], *, sure: bool) -> None:
        front = _front(result)
        kept = [o for value, o in known if _front(value) == front and len(front) == 2]
        if kept and len({o.first for o in kept}) == 1 and (sure or front[0] != front[1]):
            self._set(result, next((o for o in kept if o.told), kept[0]))


def orders_of(facts: ScriptFacts) -> Orders:
    """The orders of these facts."""
    return facts.once(Orders)


# --- what the script says -------------------------------------------------------------------------------------------


def _declared(facts: ScriptFacts) -> Iterator[tuple[Any, Order]]:
    yield from _shapes(facts)
    yield from _unpacked(facts)
    yield from _names(facts)
    yield from _comments(facts)
    yield from _masks(facts)
    yield from _scans(facts)
    yield from _stacks(facts)


def _shapes(facts: ScriptFacts) -> Iterator[tuple[Any, Order]]:
    """``normal(key, (T, B, F))``, ``x.reshape(B, T, F)``; ``x.shape == (T, B, F)``."""
    for call in facts.record.calls:
        aval = None if call.result is MISSING else aval_of(call.result)
        if aval is None or len(aval.shape) < 2:
            continue
        shapes = [a.elts for a in call.node.args if isinstance(a, ast.Tuple | ast.List)]
        shapes += [k.value.elts for k in call.node.keywords if isinstance(k.value, ast.Tuple | ast.List)]
        if (call.name or "").endswith("reshape"):
            shapes += [list(call.node.args[i:]) for i in (0, 1)]
        for elements in shapes:
            first = _spelled(elements)
            if first is not None and len(elements) == len(aval.shape):
                yield call.result, Order(first, call.node, fill(SHAPED, text=_written(elements)))
                break
    for node in facts.nodes(ast.Compare):
        if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq):
            continue
        for side, other in ((node.left, node.comparators[0]), (node.comparators[0], node.left)):
            if isinstance(side, ast.Attribute) and side.attr == "shape" and isinstance(other, ast.Tuple):
                first = _spelled(other.elts)
                for seen in facts.seen(side.value) if first is not None else ():
                    yield seen.value, Order(str(first), node, fill(SHAPED, text=_written(other.elts)))


def _unpacked(facts: ScriptFacts) -> Iterator[tuple[Any, Order]]:
    """``T, B, F = x.shape``, ``B, T = x.shape[:2]``."""
    for statement in facts.nodes(ast.Assign):
        target, value = statement.targets[0], statement.value
        if isinstance(value, ast.Subscript) and ast.unparse(value.slice) == ":2":
            value = value.value
        if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Attribute) or value.attr != "shape":
            continue
        first = _spelled(target.elts)
        for seen in facts.seen(value.value) if first is not None else ():
            yield seen.value, Order(str(first), statement, fill(SHAPED, text=_written(target.elts)))


def _names(facts: ScriptFacts) -> Iterator[tuple[Any, Order]]:
    for node in facts.nodes(ast.Name):
        first = name_says(node.id)
        if first is not None and isinstance(node.ctx, ast.Load):
            for seen in facts.seen(node):
                yield seen.value, Order(first, node, fill(NAMED, text=node.id))


def name_says(name: str) -> str | None:
    """What a name says is first: ``x_tbf``, ``time_major_x``; None for most."""
    parts = [p.lower() for p in re.split(r"[_\d]+", name)]
    time = any(TIME_FIRST.match(p) for p in parts) or {"time", "major"} <= {*parts} or {"time", "first"} <= {*parts}
    batch = any(BATCH_FIRST.match(p) for p in parts) or {"batch", "major"} <= {*parts} or {"batch", "first"} <= {*parts}
    return None if time == batch else TIME if time else BATCH


def _comments(facts: ScriptFacts) -> Iterator[tuple[Any, Order]]:
    """``x = …  # (T, B, F)``."""
    for statement in facts.nodes(ast.Assign):
        line = facts.source.lines[(statement.end_lineno or statement.lineno) - 1]
        match = COMMENT.search(line, facts.span(statement).end_col)
        if match is None or not isinstance(statement.targets[0], ast.Name):
            continue
        one, other = _size_says(match[1]), _size_says(match[2])
        if one is not None and other is not None and one != other:
            for seen in facts.seen(statement.value):
                yield seen.value, Order(one, statement, fill(NOTED, text=f"({match[1]}, {match[2]}, …)"))


def _masks(facts: ScriptFacts) -> Iterator[tuple[Any, Order]]:
    """``arange(T) < lengths[:, None]`` has the batch first, ``arange(T)[:, None] < lengths`` time."""
    for node in facts.nodes(ast.Compare):
        if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
            continue
        for steps, lengths in ((node.left, node.comparators[0]), (node.comparators[0], node.left)):
            bare = steps.value if isinstance(steps, ast.Subscript) else steps
            if not isinstance(bare, ast.Call) or not (facts.source.dotted(bare.func) or "").endswith(".arange"):
                continue
            column = isinstance(lengths, ast.Subscript) and ast.unparse(lengths.slice) in (
                ":, None",
                "(slice(None), None)",
            )
            first = BATCH if column else TIME if _is_column(steps) and not isinstance(lengths, ast.Subscript) else None
            for seen in facts.seen(node) if first is not None else ():
                yield seen.value, Order(str(first), node, fill(COMPARED, axis=AXES[str(first)]))


def _is_column(node: ast.expr) -> bool:
    return isinstance(node, ast.Subscript) and ast.unparse(node.slice) == ":, None"


def _scans(facts: ScriptFacts) -> Iterator[tuple[Any, Order]]:
    """The ys of a scan, and the xs of a scan over a cell: time first, where the batch is behind it."""
    batches: dict[ScanSite, set[int]] = {}
    for site, use in steps_of(facts):
        if site is not None and use.batch is not None and len(use.batch) == 1:
            batches.setdefault(site, set()).add(use.batch[0])
    for site in facts.scans:
        if site.result is None or site.node is None:
            continue
        rows = batches.get(site, set())
        carried = {t.aval.shape for t in site.facts.carry_in if t.aval is not None and len(t.aval.shape) > 1}
        for leaf in tree_util.tree_leaves(site.result[1]):
            aval = aval_of(leaf)
            if aval is not None and len(aval.shape) > 2 and (aval.shape[1] in rows or aval.shape[1:] in carried):
                yield leaf, Order(TIME, site.node, fill(SCANNED))
        for leaf in tree_util.tree_leaves(site.call.xs) if rows else ():
            aval = aval_of(leaf)
            if aval is not None and len(aval.shape) > 2 and aval.shape[1] in rows:
                yield leaf, Order(TIME, site.node, fill(WALKED))


def _stacks(facts: ScriptFacts) -> Iterator[tuple[Any, Order]]:
    """``jnp.stack(ys)`` of what a cell put out, one step after another."""
    made = {id(leaf): e for e in facts.cells.steps if e.result is not None for leaf in tree_util.tree_leaves(e.result)}

    def follows(one: Any, other: Any) -> bool:
        before, after = made.get(id(one)), made.get(id(other))
        if before is None or after is None:
            return False
        given = tree_util.tree_leaves(after.carry)
        return any(leaf is part for leaf in tree_util.tree_leaves(before.result[0]) for part in given)

    for call in facts.calls_of("jax.numpy.stack", "jax.numpy.array", "jax.numpy.asarray"):
        parts = call.argument(0, "arrays", ())
        axis = call.argument(1, "axis", 0) if call.name == "jax.numpy.stack" else 0
        if not isinstance(parts, list | tuple) or len(parts) < 2 or call.result is MISSING or axis not in (0, 1):
            continue
        dims = [aval_of(p) for p in parts]
        if all(map(follows, parts, parts[1:])) and all(d is not None and len(d.shape) == 2 for d in dims):
            yield call.result, Order(TIME if axis == 0 else BATCH, call.node, fill(STACKED))


# --- sizes by name --------------------------------------------------------------------------------------------------


def _spelled(elements: list[ast.expr]) -> str | None:
    """What comes first in ``(T, B, …)`` or ``(B, T, …)`` written with names; None for anything else."""
    if len(elements) < 2:
        return None
    one, other = (_size_says(name) for name in map(_name, elements[:2]))
    return one if one is not None and other is not None and one != other else None


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _size_says(name: str) -> str | None:
    parts = {p.lower() for p in re.split(r"[_\d]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))}
    time, batch = bool(parts & SAYS_TIME), bool(parts & SAYS_BATCH) or name == "N"
    return None if time == batch else TIME if time else BATCH


def _written(elements: list[ast.expr]) -> str:
    return f"({', '.join(ast.unparse(e) for e in elements)})"


# --- events ---------------------------------------------------------------------------------------------------------


def _events(facts: ScriptFacts) -> Iterator[Any]:
    """Calls, and what is made without one, in order."""
    events: list[Any] = [
        s for s in facts.record.seen if isinstance(s.node, ast.BinOp | ast.Subscript | ast.Name | ast.Attribute)
    ]
    events += facts.record.calls
    yield from sorted(events, key=lambda e: int(e.order))


def _before(facts: ScriptFacts, node: ast.expr, seen: Seen) -> Any:
    values = [s.value for s in facts.seen(node) if s.order < seen.order]
    return values[-1] if values else None


def _front(value: Any) -> tuple[int, ...]:
    aval = aval_of(value)
    return () if aval is None else aval.shape[:2]


def _keeps_front(index: ast.expr) -> bool:
    """Whether the first two axes are still there: ``[:, :5]``, ``[..., None]``, ``[2:]``."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    first = parts[0]
    if isinstance(first, ast.Constant) and first.value is Ellipsis:
        return len(parts) == 2
    return all(isinstance(p, ast.Slice) and (p.step is None or ast.unparse(p.step) == "-1") for p in parts[:2])


def _permuted(order: Order, name: str, call: Called, value: Any, rank: int) -> Order | None:
    """The order after exchanging axes; None where the first two are not those any more."""
    given = [a for a in call.args if a is not value]
    given += [v for k, v in call.kwargs.items() if k in ("axes", "axis1", "axis2", "source", "destination")]
    flat: list[Any] = [n for one in given for n in (one if isinstance(one, tuple | list) else (one,))]
    if not all(type(n) is int for n in flat):
        return None
    flat = [n % rank for n in flat]
    if name == "transpose":
        axes = flat or list(range(rank))[::-1]
    elif len(flat) != 2:
        return None
    elif name == "swapaxes":
        axes = list(range(rank))
        axes[flat[0]], axes[flat[1]] = axes[flat[1]], axes[flat[0]]
    else:
        axes = [a for a in range(rank) if a != flat[0]]
        axes.insert(flat[1], flat[0])
    return order if axes[:2] == [0, 1] else order.turned if axes[:2] == [1, 0] else None
