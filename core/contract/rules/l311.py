"""Padding steps move the carry.

**What.** A batch of sequences of different lengths is padded to one length. Without ``seq_lengths``, or a mask in the
step, the cell takes the padding for input: the final carry of a short sequence is that of its padding.

**Why.** A cell computes with zeros as with any other numbers: its biases and its gates move the carry.

**Bad**

    lengths = jnp.array([2, 4])
    carry, ys = rnn(x)

**Good**

    lengths = jnp.array([2, 4])
    carry, ys = rnn(x, seq_lengths=lengths)

A warning where the script has an array of lengths, or a mask, and does nothing with it. Zeros at the end of a sequence
prove nothing.

Source: flax.nnx.RNN, argument `seq_lengths`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, tree_util

from core.base.avals import aval_of
from core.base.places import Because, Span
from core.base.text import fill
from core.base.violation import Severity, TextEdit
from core.contract import sequence_masks
from core.contract.masks import Numbers, Run, farthest, final_carry, known, number_of, numbers, run_numbered, runs
from core.contract.padding import Unused, unused
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import ScanSite, ScriptRecord, Seen
from core.contract.sequence_facts import SequenceFacts
from core.contract.source import FUNCTIONS

MOVES = (
    "{count} steps of {call} are padding, as {name} says, and they move the carry like all others: {name} is not used."
)
MAY = "If {name} is how long each sequence is, {count} steps of {call} are padding and move the carry: it is not used."
TITLE_LENGTHS = "Say how long each sequence is: seq_lengths={text}"
TITLE_LAST = "Take each sequence's own last output"
TITLE_MASK = "Keep the carry where a step is padding"
BECAUSE = "{name} says which steps are padding"
CARRY = "Three more steps of padding move the final carry by this much; they must not move it at all."
LAST = "The output that is taken for each sequence, compared with that of its last step: largest difference."
COUNT = "Padding steps that reach the carry."
WHY = "A cell takes padding for input unless it is told how long each sequence is, or where to keep its carry."
#: How many steps of padding are added, and the longest sequence that a proof runs over.
MORE, LONG = 3, 4096
SCAN_FIX = """def {name}(carry, inputs):
    {on}, x = inputs
    new, y = {step}(carry, x)
    keep = {keep}
    return {jax}.tree.map(lambda n, o: {jnp}.where(keep[:, None], n, o), new, carry), y"""


def check(facts: ScriptFacts | SequenceFacts) -> Iterator[Finding]:
    """One finding for each call of a layer, or scan over a cell, that leaves lengths or a mask unused."""
    if isinstance(facts, SequenceFacts):
        yield from sequence_masks.padding(facts)
        return
    said: set[ast.AST] = set()
    for run in runs(facts):
        if run.lengths is None and run.call.node not in said and run.call.error is None and run.steps > 1:
            said.add(run.call.node)
            yield from _layer(facts, run)
    for site in facts.scans:
        if site.node is not None and site.node not in said and site.result is not None:
            said.add(site.node)
            yield from _scan(facts, site)


# --- nnx.RNN --------------------------------------------------------------------------------------------------------


def _layer(facts: ScriptFacts, run: Run) -> Iterator[Finding]:
    aval = aval_of(run.call.argument(0, "inputs"))
    inputs = None if aval is None else known(facts, run.inputs, aval.shape)
    rows = None if inputs is None else np.moveaxis(inputs, run.time, 1)
    one = unused(facts, run.batch, run.steps, rows, run.inputs)
    if one is None:
        return
    last = _last_outputs(facts, run)
    number = number_of(facts, run)
    repairs: tuple[Repair, ...] = ()
    measure = Measure(COUNT, Reached(number, int((~one.rows).sum())))
    if run.returns or last is None:
        repairs = tuple(_lengths(facts, run, one))
        if _moves(Longer(number, run.time), facts):
            measure = Measure(CARRY, Longer(number, run.time))
    else:
        span = facts.span(last.node)
        taken = Taken(span, one.rows.sum(1).tolist(), run.time)
        repairs = tuple(_own_last(facts, run, last, one))
        measure = Measure(LAST, taken) if _moves(taken, facts) else measure
    outward = run.returns or last is not None or "reverse" in run.call.kwargs or not hasattr(run.call.func, "cell")
    yield _finding(facts, run.call.node, one, repairs, measure, warn=outward)


def _finding(
    facts: ScriptFacts, call: ast.Call, one: Unused, repairs: tuple[Repair, ...], measure: Measure, *, warn: bool
) -> Finding:
    name = one.dead.name
    text = facts.source.text_of(call.func)
    severity = Severity.WARNING if one.sure and warn else Severity.NOTE
    return Finding(
        message=fill(MOVES if one.sure else MAY, count=int((~one.rows).sum()), call=text, name=name),
        place=facts.span(call),
        because=Because(facts.span(one.dead.value), fill(BECAUSE, name=name)),
        repairs=repairs,
        measure=measure if severity is Severity.WARNING else None,
        severity=severity,
        silent=True,
        path=name,
    )


def _name_at(facts: ScriptFacts, one: Unused, place: ast.AST) -> str | None:
    """What the array is called at a place; None where it cannot be read there."""
    scopes = [*facts.source.enclosing(place), facts.source.tree]
    known_as = [(scopes.index(scope), name) for scope, name in one.dead.known_as if scope in scopes]
    return min(known_as)[1] if known_as else None


def _as_lengths(facts: ScriptFacts, one: Unused, name: str) -> str | None:
    """The text of the lengths: the array itself, or the sum of a mask."""
    if one.axis is not None:
        cast = "" if one.array.dtype.kind in "biu" else ".astype(int)"
        return f"{name}.sum(axis={one.axis}){cast}"
    module = facts.spelled("jax.numpy")
    listed = isinstance(one.dead.value, ast.List | ast.Tuple | ast.ListComp) or isinstance(
        facts.value(one.dead.value), list
    )
    return name if not listed else None if module is None else f"{module}.array({name})"


def _lengths(facts: ScriptFacts, run: Run, one: Unused) -> Iterator[Repair]:
    name = _name_at(facts, one, run.call.node)
    text = None if name is None else _as_lengths(facts, one, name)
    if text is None:
        return
    source, call = facts.source, run.call.node
    given = next((k for k in call.keywords if k.arg == "seq_lengths"), None)
    if given is not None:
        edit = TextEdit(facts.span(given.value), text)
    else:
        last = max([*call.args, *(k.value for k in call.keywords)], key=lambda n: (n.end_lineno, n.end_col_offset))
        end = source.span(last)
        after = Span(end.end_line, end.end_col, end.end_line, end.end_col)
        edit = TextEdit(after, f", seq_lengths={text}")
    yield facts.rewrites(fill(TITLE_LENGTHS, text=text), edit)


def _moves(measure: Any, facts: ScriptFacts) -> bool:
    try:
        return float(measure(facts.record)) > 0
    except Exception:  # noqa: BLE001  # what cannot be run again is counted
        return False


# --- the last output ------------------------------------------------------------------------------------------------


def _last_outputs(facts: ScriptFacts, run: Run) -> Seen | None:
    """Where the output of the last step is taken out of what a layer returned: ``ys[:, -1]``."""
    result = run.call.result
    ys = result[1] if isinstance(result, tuple) and len(result) == 2 else result
    for seen in facts.record.seen:
        node = seen.node
        if isinstance(node, ast.Subscript) and facts.value(node.value) is ys and _is_last(node.slice, run.time):
            return seen
    return None


def _is_last(index: ast.expr, time: int) -> bool:
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    if len(parts) <= time or not all(isinstance(p, ast.Slice) and p.lower is p.upper is None for p in parts[:time]):
        return False
    last = parts[time]
    return isinstance(last, ast.UnaryOp) and isinstance(last.op, ast.USub) and ast.unparse(last.operand) == "1"


def _own_last(facts: ScriptFacts, run: Run, last: Seen, one: Unused) -> Iterator[Repair]:
    node = last.node
    name, module = _name_at(facts, one, node), facts.spelled("jax.numpy")
    text = None if name is None else _as_lengths(facts, one, name)
    if text is None or module is None or not isinstance(node, ast.Subscript):
        return
    ys = facts.source.text_of(node.value)
    rows = f"{module}.arange({ys}.shape[{1 - run.time}])"
    index = f"{rows}, {text} - 1" if run.time else f"{text} - 1, {rows}"
    yield facts.rewrite(fill(TITLE_LAST), node.slice, index)


# --- lax.scan -------------------------------------------------------------------------------------------------------


def _scan(facts: ScriptFacts, site: ScanSite) -> Iterator[Finding]:
    """A scan whose step hands a leaf of x to a cell and puts the cell's new carry out as it is."""
    from core.contract.steps import steps_of

    use = next((u for s, u in steps_of(facts) if s is site and u.event.error is None), None)
    length = site.facts.length
    if use is None or use.batch is None or len(use.batch) != 1 or length is None or length < 2:
        return
    if not use.slot and not all(part.slot for part in use.parts):
        return
    leaf = site.facts.xs_types[0].aval if len(site.facts.xs_types) == 1 else None
    xs = site.arguments.get("xs")
    values = numbers(site.call.xs)
    if values is None and xs is not None and leaf is not None:
        values = known(facts, xs, leaf.shape)
    rows = np.moveaxis(values, 0, 1) if values is not None and values.ndim == 3 else None
    one = unused(facts, use.batch[0], length, rows, xs)
    if one is None or site.node is None:
        return
    number = facts.scans.index(site)
    measure = Measure(COUNT, Reached(number, int((~one.rows).sum()), scan=True))
    if _moves(LongerScan(number), facts):
        measure = Measure(CARRY, LongerScan(number))
    yield _finding(facts, site.node, one, tuple(_masked(facts, site, one, length)), measure, warn=True)


def _masked(facts: ScriptFacts, site: ScanSite, one: Unused, length: int) -> Iterator[Repair]:
    """The step in a function that keeps the carry where a step is padding."""
    step, xs, call = site.arguments.get("step"), site.arguments.get("xs"), site.node
    np_name, jax_name = facts.spelled("jax.numpy"), facts.spelled("jax")
    statement = None if call is None else facts.source.statement(call)
    if step is None or xs is None or call is None or statement is None or np_name is None or jax_name is None:
        return
    name = _name_at(facts, one, call)
    if name is None or isinstance(facts.source.scope(call), ast.Lambda) or isinstance(statement, FUNCTIONS):
        return
    steps = f"{facts.source.text_of(xs)}.shape[0]" if isinstance(xs, ast.Name | ast.Attribute) else str(length)
    if one.axis is None:
        lengths = _as_lengths(facts, one, name)
        along, on, keep = f"{np_name}.arange({steps})", "t", f"t < {lengths}"
    else:
        turned = f"{np_name}.asarray({name})"
        along, on = (f"{turned}.T" if one.axis == 1 else turned), "on"
        keep = "on" if one.array.dtype == bool else "on > 0"
    taken = {n.id for n in facts.nodes(ast.Name)} | {n.name for n in facts.nodes(ast.FunctionDef)}
    masked = "masked"
    while masked in taken:
        masked += "_"
    text = facts.source.text_of(step)
    text = f"({text})" if isinstance(step, ast.Lambda) else text
    body = fill(SCAN_FIX, name=masked, on=on, step=text, keep=keep, jax=jax_name, jnp=np_name)
    yield facts.rewrites(
        fill(TITLE_MASK),
        facts.insert_before(statement, body),
        TextEdit(facts.span(step), masked),
        TextEdit(facts.span(xs), f"({along}, {facts.source.text_of(xs)})"),
    )


# --- the numbers ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Longer:
    """How far the final carry of a layer's call moves when its input gets three more steps of zeros."""

    number: int
    time: int

    def __call__(self, record: Any) -> float:
        """The number, in this run.

        Raises:
            ValueError: the call is not there, or cannot be made again.
        """
        run = run_numbered(_facts(record), self.number)
        inputs = run.call.argument(0, "inputs")
        if run.steps > LONG:
            raise ValueError("it is too long to be run again")
        shape = list(np.shape(inputs))
        shape[self.time] = MORE
        more = jnp.concatenate([jnp.asarray(inputs), jnp.zeros(shape, inputs.dtype)], self.time)
        return farthest(final_carry(run.call), final_carry(run.call, more))


@dataclass(frozen=True, slots=True)
class LongerScan:
    """How far the final carry of a scan moves when its xs get three more steps of padding."""

    number: int

    def __call__(self, record: Any) -> float:
        """The number, in this run.

        Raises:
            ValueError: the scan is not there, or is traced.
        """
        site = _facts(record).scans[self.number]
        call = site.call
        if site.traced or (site.facts.length or 0) > LONG:
            raise ValueError("it cannot be run again")
        longer = replace(call, xs=tree_util.tree_map(_longer, call.xs), length=None)
        one, other = (lax.scan(c.body, c.init, c.xs, reverse=c.reverse)[0] for c in (call, longer))
        return farthest(one, other)


def _longer(leaf: Any) -> Any:
    """A leaf of xs with more steps: a count goes on counting, everything else is filled with zeros (or False)."""
    array: Numbers = np.asarray(leaf)
    length = array.shape[0]
    if array.ndim == 1 and array.dtype.kind in "iu" and (array == np.arange(length)).all():
        return jnp.arange(length + MORE, dtype=array.dtype)
    return jnp.concatenate([jnp.asarray(leaf), jnp.zeros((MORE, *array.shape[1:]), array.dtype)])


@dataclass(frozen=True, slots=True)
class Taken:
    """How far what an expression takes out of the outputs is from the output of each sequence's own last step."""

    place: Span
    lengths: list[int]
    time: int

    def __call__(self, record: Any) -> float:
        """The number, in this run.

        Raises:
            ValueError: the expression is not there, or its values are traced.
        """
        facts = _facts(record)
        for seen in facts.record.seen:
            node = seen.node
            span = facts.span(node)
            if isinstance(node, ast.Subscript) and (span.line, span.col) == (self.place.line, self.place.col):
                ys = numbers(facts.value(node.value))
                if ys is None or isinstance(seen.value, jax.core.Tracer):
                    break
                rows = np.moveaxis(ys, self.time, 1)[np.arange(len(self.lengths)), np.array(self.lengths) - 1]
                return float(np.abs(rows - np.asarray(seen.value)).max(initial=0.0))
        raise ValueError("there is no such expression, or no numbers")


@dataclass(frozen=True, slots=True)
class Reached:
    """How many padding steps reach the carry of a layer's call, or of a scan: none once it is told of them."""

    number: int
    count: int
    scan: bool = False

    def __call__(self, record: Any) -> float:
        """The number, in this run.

        Raises:
            ValueError: the call is not there.
        """
        facts = _facts(record)
        if self.scan:
            found = any(True for _ in _scan(facts, facts.scans[self.number]))
        else:
            run = run_numbered(facts, self.number)
            found = run.lengths is None and any(True for _ in _layer(facts, run))
        return float(self.count if found else 0)


def _facts(record: Any) -> ScriptFacts:
    if not isinstance(record, ScriptRecord):
        raise ValueError("there is no script")
    return ScriptFacts(record)


RULE = Rule(
    code="L311",
    name="padding-moves-the-carry",
    title="Padding steps move the carry",
    severity=Severity.WARNING,
    jax=Jax.SILENT,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script", "sequence"}),
)
