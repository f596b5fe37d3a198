"""What is wrong with the seq_lengths of a recurrent layer's call (L310), and what `nnx.RNN` makes of it.

Measured on Flax 0.12.10: the final carry is ``carries[lengths - 1, arange(B)]``. Index -1 is the last step, an index
below -T the first, one above T - 1 the last; a scalar or one entry is spread over the batch; ``(B, 1)`` and ``(B, B)``
give a carry ``(B, B, H)``. Without `return_carry`, and not reversed, the lengths are never looked at.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import tree_util

from core.base.avals import aval_of
from core.base.violation import TextEdit
from core.contract.cell_proof import host
from core.contract.fates import Fate, fate_of
from core.contract.layer_calls import (
    again,
    behind_statement,
    carry_leaves,
    facts_of_script,
    option,
    place_of_target,
    runs_once,
    shape,
    with_option,
)
from core.contract.masks import Numbers, Run, behind, farthest, is_mask, known, number_of, numbers, run_numbered, runs
from core.contract.script_facts import ScriptFacts
from core.contract.unused import loads


class Kind(enum.Enum):
    """What is wrong."""

    EMPTY = enum.auto()
    NEGATIVE = enum.auto()
    ABOVE = enum.auto()
    #: Above T, of an input that was cut to T: what the script says.
    CUT = enum.auto()
    TURNED = enum.auto()
    ONE = enum.auto()
    MAYBE_ONE = enum.auto()
    AXES = enum.auto()
    FLAGS = enum.auto()
    TYPE = enum.auto()
    COUNT = enum.auto()


@dataclass(frozen=True, slots=True, eq=False)
class Fault:
    """One call whose lengths are none.

    Attributes:
        run: the call.
        kind: what is wrong.
        node: the expression of the lengths.
        number: which of the layers' calls it is.
        names: what the message says.
        source: of one length for all: the array that it was taken from.
        mask: whether the lengths are a mask.
    """

    run: Run
    kind: Kind
    node: ast.expr
    number: int
    names: dict[str, Any] = field(default_factory=dict)
    source: ast.expr | None = None
    mask: bool = False


class Maker(Protocol):
    """Makes the fault of one call."""

    def __call__(self, kind: Kind, source: ast.expr | None = None, mask: bool = False, **names: Any) -> Fault:
        """The fault, with what its message says besides B and T."""
        ...


def faults(facts: ScriptFacts) -> Iterator[Fault]:
    """The faults of a script, at most one for each call of a layer."""
    for run in runs_once(facts):
        fault = _fault(facts, run)
        if fault is not None:
            yield fault


def _fault(facts: ScriptFacts, run: Run) -> Fault | None:
    node, given = run.lengths_node, run.lengths
    if node is None or given is None or not read(run):
        return None
    number = number_of(facts, run)

    def made(kind: Kind, source: ast.expr | None = None, mask: bool = False, **names: Any) -> Fault:
        return Fault(run, kind, node, number, {"batch": run.batch, "steps": run.steps, **names}, source, mask)

    aval = aval_of(given)
    raised = run.call.error is not None
    if aval is None or isinstance(given, bool | float):
        words = type(given).__name__ if aval is None else str(aval)
        return made(Kind.TYPE, type=words) if raised else None
    dims, kind = aval.shape, np.dtype(aval.dtype).kind if aval.dtype != "bfloat16" else "f"
    if len(dims) == 2 and raised and kind in "biuf":
        return made(Kind.COUNT, type=aval, mask=set(dims) == {run.batch, run.steps})
    if kind not in "biu":
        return made(Kind.TYPE, type=aval) if raised else None
    if raised:
        wrong = len(dims) > 1 or (dims not in ((run.batch,), (1,)) and not (dims == () and not _turned(run)))
        return made(Kind.COUNT, type=aval) if wrong else None
    if len(dims) > 1:
        returned = aval_of(carry_leaves(run.call)[0]) if carry_leaves(run.call) else None
        square = is_mask(known(facts, node, dims, run.call.order))
        return None if returned is None else made(Kind.AXES, type=aval, carry=returned, mask=square)
    if dims == (run.batch,) and kind == "b":
        return made(Kind.FLAGS, type=aval)
    values = known(facts, node, dims, run.call.order)
    if dims != (run.batch,):
        return _one_for_all(facts, run, made, aval)
    return None if values is None else _of_values(facts, run, made, values)


def read(run: Run) -> bool:
    """Whether the layer looks at its lengths at all."""
    return run.returns or _turned(run)


def _turned(run: Run) -> bool:
    return bool(option(run.call, "reverse")) or isinstance(run.call.func, nnx.Bidirectional)


def _of_values(facts: ScriptFacts, run: Run, made: Maker, values: Numbers) -> Fault | None:
    """What the numbers say: negative first, then above T, then 0."""
    carried = run.returns and carry_used(facts, run)
    low, high = int(values.argmin()), int(values.argmax())
    if values[low] < 0 and carried:
        length = int(values[low])
        return made(Kind.NEGATIVE, example=low, length=length, step=max(run.steps + length - 1, 0))
    if values[high] > run.steps and (carried or _turned(run)):
        cut = Kind.CUT if _was_cut(facts, run, int(values[high])) else Kind.ABOVE
        return made(Kind.TURNED if _turned(run) else cut, example=high, length=int(values[high]))
    empty = np.flatnonzero(values == 0)
    if empty.size and carried and run.steps > 0 and not told_apart(facts, values):
        return made(Kind.EMPTY, example=int(empty[0]), last=run.steps - 1)
    return None


def _was_cut(facts: ScriptFacts, run: Run, length: int) -> bool:
    """Whether a call's input was cut out of one that had so many steps."""
    for made in behind(facts, run.inputs):
        dims = shape(facts.value(made.node)) if aval_of(facts.value(made.node)) is not None else ()
        if len(dims) >= 2 and dims[1 - run.time] == run.batch and dims[run.time] >= length:
            return True
    return False


def _one_for_all(facts: ScriptFacts, run: Run, made: Maker, aval: Any) -> Fault | None:
    """One length for all examples: a warning where it was taken out of one for each."""
    node = run.lengths_node
    if run.batch < 2 or node is None or not run.returns or not carry_used(facts, run):
        return None
    got = facts.source.text_of(node)
    value = numbers(run.lengths) if aval.shape or not isinstance(run.lengths, int) else np.asarray(run.lengths)
    for one in behind(facts, node):
        if one.node is node:
            continue
        array = numbers(facts.value(one.node))
        if array is None or array.shape != (run.batch,) or array.dtype.kind not in "iu":
            continue
        if array.min() < 1 or array.max() > run.steps or array.min() == array.max():
            continue
        where = one.here
        if where is None or (value is not None and not np.isin(value, array).all()):
            continue
        return made(Kind.ONE, source=where, got=got, name=facts.source.text_of(where))
    if value is not None and value.size and int(value.reshape(-1)[0]) >= run.steps:
        return None  # every example is as long as the input
    return made(Kind.MAYBE_ONE, got=got)


# --- what becomes of the carry --------------------------------------------------------------------------------------


def carry_used(facts: ScriptFacts, run: Run) -> bool:
    """Whether the script does anything with the final carry: ``_, ys = rnn(…)`` does not."""
    target = place_of_target(facts, run)
    if target is None:
        return True
    names = [n.id for n in ast.walk(target[1][0]) if isinstance(n, ast.Name)]
    scope = facts.source.scope(run.call.node)
    return any(any(True for _ in loads(facts, scope, name)) for name in names)


#: Comparisons with a constant that tell 0 from the counts above it.
APART = {(ast.Gt, 0), (ast.Eq, 0), (ast.NotEq, 0), (ast.GtE, 1), (ast.Lt, 1), (ast.LtE, 0)}
MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE}


def told_apart(facts: ScriptFacts, values: Numbers) -> bool:
    """Whether the script tells empty sequences from others itself (``lengths > 0``), and not only to show it."""
    return any(True for _ in _apart(facts)) or any(True for _ in _weighed(facts, values))


def _weighed(facts: ScriptFacts, lengths: Numbers) -> Iterator[ast.expr]:
    """Truth values and weights of the examples that are off for the empty ones alone: ``mask.any(1)``, ``weight``."""
    batch, some = len(lengths), lengths > 0
    found = [(s.node, s.value) for s in facts.record.seen] + [(c.node, c.result) for c in facts.record.calls]
    for node, value in found:
        aval = aval_of(value)
        if aval is None or aval.shape != (batch,) or isinstance(facts.source.parents.get(node), ast.Assign):
            continue
        if fate_of(facts, node) is Fate.SHOWN:
            continue
        array = numbers(value)
        if array is None:  # traced
            if aval.dtype == "bool" and _of_rows(facts, node, batch):
                yield node
        elif array.dtype == bool:
            if np.array_equal(array, some) or np.array_equal(array, ~some):
                yield node
        elif _times(facts, node) and np.array_equal(array != 0, some) and np.unique(array).size <= 2:
            yield node


def _of_rows(facts: ScriptFacts, node: ast.expr, batch: int) -> bool:
    """``mask.any(axis=1)``, ``lengths.astype(bool)``: what a trace makes of a whole row, or of a length."""
    made = facts.source.resolve(node)
    if not isinstance(made, ast.Call):
        return False
    name = (facts.source.dotted(made.func) or ast.unparse(made.func)).rpartition(".")[2]
    inner = made.func.value if isinstance(made.func, ast.Attribute) and name == "astype" else None
    whole = inner is not None and shape(facts.value(inner, ())) == (batch,)
    return name == "any" or whole


def _times(facts: ScriptFacts, node: ast.expr) -> bool:
    """Whether an expression is a factor, as it is or as a column."""
    parent = facts.source.parents.get(node)
    while isinstance(parent, ast.Subscript) and parent.value is node:
        node, parent = parent, facts.source.parents.get(parent)
    if isinstance(parent, ast.keyword):
        return parent.arg in ("weights", "where")
    return isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mult)


def _apart(facts: ScriptFacts) -> Iterator[ast.Compare]:
    given = [r for r in runs(facts) if r.lengths is not None]
    shapes = {(r.batch,) for r in given}
    for node in facts.nodes(ast.Compare):
        if len(node.ops) != 1 or fate_of(facts, node) is Fate.SHOWN:
            continue
        left, right, op = node.left, node.comparators[0], type(node.ops[0])
        if isinstance(left, ast.Constant):
            left, right, op = right, left, MIRRORED.get(op, op)
        if not isinstance(right, ast.Constant) or (op, right.value) not in APART:
            continue
        if shape(facts.value(left, ())) not in shapes and shape(facts.value(left, ()))[:1] not in shapes:
            continue
        aval = aval_of(facts.value(left))
        if aval is not None and np.dtype(aval.dtype).kind in "iu":
            yield node


# --- repairs --------------------------------------------------------------------------------------------------------


def repairs_of(facts: ScriptFacts, fault: Fault) -> Iterator[tuple[str, str, tuple[TextEdit, ...]]]:
    """Proposals: a kind (for its title), the text that the title shows, the edits."""
    run, node, jnp_ = fault.run, fault.node, facts.spelled("jax.numpy")
    text = facts.source.text_of(node)
    if fault.kind in (Kind.EMPTY, Kind.NEGATIVE):
        base = _less_one(facts, node)
        if base is not None:
            yield "base", base, (TextEdit(facts.span(node), base),)
    if fault.kind is Kind.EMPTY:
        edits = _kept(facts, run, text)
        if edits is not None:
            yield "keep_init", "", edits
    elif fault.kind in (Kind.ABOVE, Kind.CUT, Kind.TURNED) and jnp_ is not None:
        inputs = facts.source.text_of(run.inputs)
        steps = f"{inputs}.shape[{run.time}]" if isinstance(run.inputs, ast.Name | ast.Attribute) else str(run.steps)
        yield "cut", "", (TextEdit(facts.span(node), f"{jnp_}.minimum({text}, {steps})"),)
    elif fault.kind is Kind.ONE and fault.source is not None:
        each = facts.source.text_of(fault.source)
        yield "each", each, (TextEdit(facts.span(node), each),)
    elif fault.kind in (Kind.AXES, Kind.COUNT):
        yield from _flat(facts, fault, text)
    elif fault.kind is Kind.TYPE and jnp_ is not None:
        atom = text if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript) else f"({text})"
        listed = isinstance(fault.run.lengths, list | tuple)
        whole = f"{jnp_}.array({text}, int)" if listed else f"{atom}.astype(int)"
        if listed and all(isinstance(v, int) for v in fault.run.lengths):
            whole = f"{jnp_}.array({text})"
        edit = with_option(facts, run.call.node, "seq_lengths", whole)
        if edit is not None:
            yield "array", whole, (edit,)


def _flat(facts: ScriptFacts, fault: Fault, text: str) -> Iterator[tuple[str, str, tuple[TextEdit, ...]]]:
    run, node = fault.run, fault.node
    dims = shape(run.lengths)
    atom = text if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript) else f"({text})"
    aval = aval_of(run.lengths)
    if fault.mask and len(dims) == 2:
        axis = run.time if dims[0] == dims[1] or dims == _sizes(run) else 1 - run.time
        cast = "" if aval is not None and np.dtype(aval.dtype).kind in "biu" else ".astype(int)"
        whole = f"{atom}.sum(axis={axis}){cast}"
        yield "sum", whole, (TextEdit(facts.span(node), whole),)
    elif len(dims) == 2 and 1 in dims and int(np.prod(dims)) == run.batch:
        whole = f"{atom}[:, 0]" if dims[1] == 1 else f"{atom}[0]"
        yield "flat", whole, (TextEdit(facts.span(node), whole),)


def _sizes(run: Run) -> tuple[int, int]:
    """The input's first two axes."""
    return (run.batch, run.steps) if run.time == 1 else (run.steps, run.batch)


def _less_one(facts: ScriptFacts, node: ast.expr) -> str | None:
    """``lengths`` of ``lengths - 1``: an index was made of it, which the layer makes itself."""
    made = facts.source.resolve(node)
    one = isinstance(made, ast.BinOp) and isinstance(made.op, ast.Sub) and isinstance(made.right, ast.Constant)
    if not one or not isinstance(made, ast.BinOp) or made.right.value != 1:  # type: ignore[attr-defined]
        return None
    if facts.source.scope(made) is not facts.source.scope(node) and isinstance(made.left, ast.Name):
        return None
    return facts.source.text_of(made.left)


def _kept(facts: ScriptFacts, run: Run, text: str) -> tuple[TextEdit, ...] | None:
    """A line behind the call that puts the initial carry where a length is 0."""
    target, jnp_, jax_ = place_of_target(facts, run), facts.spelled("jax.numpy"), facts.spelled("jax")
    if target is None or jnp_ is None or isinstance(run.call.func, nnx.Bidirectional) or len(run.features) != 1:
        return None
    statement, (carry, *_) = target
    names = [n.id for n in ast.walk(carry) if isinstance(n, ast.Name)]
    given = next((k.value for k in run.call.node.keywords if k.arg == "initial_carry"), None)
    started = run.call.kwargs.get("initial_carry")
    leaves = carry_leaves(run.call)
    init = None if given is None or started is None else facts.source.text_of(given)
    if init is None and not _zeros(run):
        return None
    if isinstance(given, ast.Name) and given.id in names:
        return None  # it has been bound anew by then
    atom = text if isinstance(run.lengths_node, ast.Name | ast.Attribute | ast.Call | ast.Subscript) else f"({text})"
    some = f"({atom} > 0)[:, None]"
    if isinstance(carry, ast.Name) and len(leaves) == 1 and not isinstance(run.call.result[0], tuple | list):
        line = f"{carry.id} = {jnp_}.where({some}, {carry.id}, {'0.0' if init is None else init})"
    elif isinstance(carry, ast.Name) and jax_ is not None and init is not None:
        line = (
            f"{carry.id} = {jax_}.tree.map(lambda last, first: {jnp_}.where({some}, last, first), {carry.id}, {init})"
        )
    elif isinstance(carry, ast.Name) and jax_ is not None:
        line = f"{carry.id} = {jax_}.tree.map(lambda last: {jnp_}.where({some}, last, 0.0), {carry.id})"
    elif isinstance(carry, ast.Tuple | ast.List) and len(names) == len(carry.elts) == 2 and init is None:
        parts = ", ".join(f"{jnp_}.where({some}, {name}, 0.0)" for name in names)
        line = f"{', '.join(names)} = {parts}"
    else:
        return None
    return (behind_statement(facts, statement, line),)


def _zeros(run: Run) -> bool:
    """Whether the layer starts from zeros of its own."""
    cell: Any = getattr(run.call.func, "cell", None)
    aval = aval_of(run.call.argument(0, "inputs"))
    if aval is None or not hasattr(cell, "initialize_carry"):
        return False
    try:
        carry = cell.initialize_carry((1, *run.features), nnx.Rngs(0))
    except Exception:  # noqa: BLE001  # a cell of the script's own may do anything
        return False
    return all(not np.asarray(leaf).any() for leaf in tree_util.tree_leaves(carry))


# --- the numbers ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Off:
    """The number that shows a fault of the n-th call of a layer: 0 when its lengths are lengths."""

    number: int
    kind: Kind

    def __call__(self, record: Any) -> float:
        """The number, in this run.

        Raises:
            ValueError: the call is not there.
        """
        facts = facts_of_script(record)
        run = run_numbered(facts, self.number)
        node, values = run.lengths_node, numbers(run.lengths)
        if self.kind is Kind.AXES:
            leaves = carry_leaves(run.call)
            return float(max(np.ndim(leaves[0]) - 1 - len(run.features), 0)) if leaves else 0.0
        if values is None and node is not None:
            values = known(facts, node, shape(run.lengths), run.call.order)
        if self.kind is Kind.EMPTY:
            return _emptied(facts, run, values)
        if values is None:
            raise ValueError("the lengths are not known")
        if self.kind is Kind.ONE:
            return _ones(facts, run)
        if self.kind is Kind.NEGATIVE:
            return float((values < 0).sum())
        if self.kind is Kind.FLAGS:
            return float(values.size) if values.dtype == bool else 0.0
        return float(np.maximum(values.astype(np.int64) - run.steps, 0).sum())


def _emptied(facts: ScriptFacts, run: Run, values: Numbers | None) -> float:
    """How far the final carry of examples without a step is from what they began with; their number under a trace."""
    if values is None:
        raise ValueError("the lengths are not known")
    rows = np.flatnonzero(values == 0)
    if not rows.size:
        return 0.0
    kept = _chosen(facts, run)
    if kept is None and told_apart(facts, values):
        return 0.0
    final = kept if kept is not None else carry_leaves(run.call)
    try:
        begun = _begun(run)
        return max(
            float(np.abs(host(one)[rows] - host(first)[rows]).max(initial=0.0))
            for one, first in zip(final, begun, strict=True)
        )
    except (
        ValueError,
        IndexError,
        TypeError,
        jax.errors.ConcretizationTypeError,
        jax.errors.TracerArrayConversionError,
    ):
        return 0.0 if kept is not None else float(rows.size)


def _begun(run: Run) -> list[Any]:
    """The leaves of the carry that a call began with."""
    given = run.call.kwargs.get("initial_carry")
    if given is not None:
        return tree_util.tree_leaves(given)
    leaves = carry_leaves(run.call)
    if isinstance(run.call.func, nnx.RNN) and not _zeros(run):
        raise ValueError("it does not begin with zeros")
    return [jnp.zeros(np.shape(leaf), leaf.dtype) for leaf in leaves]


def _chosen(facts: ScriptFacts, run: Run) -> list[Any] | None:
    """What ``where`` made of the leaves of a final carry, in their order; None where there is none for each."""
    out = []
    for leaf in carry_leaves(run.call):
        made = next((c.result for c in facts.calls_of("jax.numpy.where") if any(a is leaf for a in c.args)), None)
        if made is None:
            return None
        out.append(made)
    return out or None


def _ones(facts: ScriptFacts, run: Run) -> float:
    """How far the final carry is from that at each example's own length."""
    fault = _fault(facts, run)
    if fault is None or fault.kind is not Kind.ONE or fault.source is None:
        return 0.0
    each = numbers(facts.value(fault.source))
    if each is None:
        raise ValueError("the lengths are not known")
    return farthest(again(run.call)[0], again(run.call, seq_lengths=jnp.asarray(each))[0])
