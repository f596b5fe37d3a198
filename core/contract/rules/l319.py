"""What an RNN returns is taken apart as a carry and outputs, without return_carry.

**What.** ``carry, ys = rnn(x)``: a layer returns its outputs alone unless it is told ``return_carry=True``. Python then
takes the outputs apart along their first axis, the batch: with two examples that raises nothing, and `carry` is the
outputs of example 0. The other way round, with ``return_carry=True``, the result is a pair and not the outputs; and its
first part is the carry, where PyTorch and Keras return the outputs first.

**Why.** Unpacking an array gives its rows. Only two rows fit two names, so whether it raises hangs on the batch.

**Bad**

    rnn = nnx.RNN(cell)
    carry, ys = rnn(x)                        # with a batch of 2: the outputs of example 0, and of example 1

**Good**

    carry, ys = rnn(x, return_carry=True)

A warning where a name, or what becomes of it, says that a carry is meant; a note where nothing says what is meant; no
finding for names like ``y0, y1``, which say that examples are.

Source: flax.nnx.RNN, argument `return_carry`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jax import tree_util

from core.base.avals import aval_of
from core.base.text import fill
from core.base.violation import Severity, TextEdit
from core.contract import sequence_built
from core.contract.layer_calls import facts_of_script, option, with_option
from core.contract.masks import Run, number_of, run_numbered, runs
from core.contract.pair_turned import Exchanged, righted, turned
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.sequence_facts import SequenceFacts
from core.contract.subject import MISSING
from core.contract.taken import says

SILENT = (
    "{call} returns its outputs {type} alone: taking them apart as {names} gives the rows of their first axis, {axis}. "
    "{first} is what comes out for {one} 0, and no carry."
)
RAISED = (
    "{call} returns its outputs {type} alone, and no carry: they cannot be taken apart as {names} along their first "
    "axis, {axis}."
)
PAIR = "{call} returns the pair (carry, outputs) here, because of return_carry=True: {text} takes it for the outputs."
TURNED = "{call} returns the carry first and the outputs second: {first} is the carry, and {second} {takes} the outputs {type}."
TAKES = {False: "is", True: "takes apart"}
EXCHANGED = "Names that hold the other part of the pair: they were counted."
TITLE_TURN = "Take the carry first: {text}"
CLAIM = "Rows of the outputs that a name was bound to as if they were the carry or all the outputs: they were counted."
TITLE_ASK = "Ask for the carry: return_carry=True"
TITLE_TAKE = "Take the outputs out of the pair"
WHY = "A layer returns (carry, outputs) when return_carry is set, and the outputs alone when it is not."
AXES = {0: ("the batch", "example"), 1: ("time", "step")}

#: Parts of names that say a carry, and outputs.
SAYS_CARRY = frozenset(
    {"carry", "carries", "state", "states", "h", "hn", "ht", "hid", "hidden", "c", "cell", "final", "last", "mem", "memory"}
)  # fmt: skip
SAYS_OUTPUTS = frozenset({"ys", "y", "out", "outs", "output", "outputs", "seq", "hs", "logits", "preds"})
#: Parts of names that say one of two examples.
SAYS_ROW = frozenset(
    {"first", "second", "one", "two", "left", "right", "pos", "neg", "positive", "negative", "anchor", "other", "a", "b",
     "real", "fake", "row", "example", "sample", "source", "target", "query", "key", "before", "after", "question", "answer",
     "candidate", "clean", "noisy", "student", "teacher", "old", "new", "premise", "hypothesis", "src", "tgt", "doc",
     "user", "item", "lhs", "rhs"}
)  # fmt: skip
#: What a library call makes of a pair is no array.
LIBRARY = ("jax.numpy.", "jax.nn.", "jax.lax.", "optax.", "numpy.", "flax.nnx.")


def check(facts: ScriptFacts | SequenceFacts) -> Iterator[Finding]:
    """One finding for each call of a layer whose result is taken for what it is not."""
    if isinstance(facts, SequenceFacts):
        yield from sequence_built.unpacked(facts)
        return
    said: set[ast.AST] = set()
    for statement in facts.nodes(ast.Assign):
        target = statement.targets[0]
        if len(statement.targets) != 1 or not isinstance(target, ast.Tuple | ast.List) or len(target.elts) != 2:
            continue
        if any(isinstance(e, ast.Starred) for e in target.elts):
            continue
        run = _array_of(facts, statement.value)
        if run is not None and run.call.node not in said:
            said.add(run.call.node)
            yield from _unpacked(facts, run, statement, target)
    yield from _turned(facts)
    yield from _pair(facts)


# --- taken apart ----------------------------------------------------------------------------------------------------


def _array_of(facts: ScriptFacts, node: ast.expr) -> Run | None:
    """The call of a layer whose outputs alone an expression gave: itself, or by the identity of what it returned."""
    value = facts.value(node, MISSING)
    for run in runs(facts):
        result = run.call.result
        if run.call.error is not None or result is MISSING or isinstance(result, tuple) or aval_of(result) is None:
            continue
        if result is value or run.call.node is node:
            return run
    return None


def _unpacked(facts: ScriptFacts, run: Run, statement: ast.Assign, target: ast.Tuple | ast.List) -> Iterator[Finding]:
    aval = aval_of(run.call.result)
    if aval is None or not aval.shape:
        return
    raised = aval.shape[0] != 2 or _failed_in(facts, statement)
    if raised and not _failed_in(facts, statement):
        return  # it was never reached, or what raised there was caught
    meant = _carry_meant(facts, target)
    if not raised and meant is None and _rows_meant(target):
        return
    first_axis = run.time == 0
    names = {
        "call": facts.source.text_of(run.call.node.func),
        "type": aval,
        "names": facts.source.text_of(target),
        "axis": AXES[int(first_axis)][0],
        "one": AXES[int(first_axis)][1],
        "first": facts.source.text_of(target.elts[0]),
    }
    carried = _given_on(facts, target.elts[0])
    raised_later = carried and _ended_with(facts, target.elts[0])
    severity = Severity.ERROR if raised or raised_later else Severity.WARNING if meant else Severity.NOTE
    ask = with_option(facts, run.call.node, "return_carry", "True")
    number = number_of(facts, run)
    yield Finding(
        message=fill(RAISED if raised else SILENT, **names),
        place=facts.span(run.call.node),
        repairs=() if ask is None else (facts.rewrites(fill(TITLE_ASK), ask),),
        measure=Measure(CLAIM, Rows(number)) if severity is Severity.WARNING else None,
        severity=severity,
        silent=not raised and not raised_later,
        path="carry" if carried else f"{facts.source.text_of(run.call.node.func)}:{number}",
        covers=("carry[0]", "carry[1]") if carried else (),
    )


def _failed_in(facts: ScriptFacts, statement: ast.stmt) -> bool:
    """Whether the script ended in this very assignment, outside of its value."""
    failure = facts.failure
    if failure is None or not isinstance(failure.error, ValueError | TypeError):
        return False
    span, whole = failure.span, facts.span(statement)
    inside = (whole.line, whole.col) <= (span.line, span.col) and (span.end_line, span.end_col) <= (
        whole.end_line,
        whole.end_col,
    )
    if not inside or not isinstance(statement, ast.Assign):
        return False
    return failure.node is not statement.value and not any(failure.node is n for n in ast.walk(statement.value))


def _carry_meant(facts: ScriptFacts, target: ast.Tuple | ast.List) -> bool | None:
    """True where names say that a carry and outputs are meant, or the first part is a pair; None where nothing does."""
    first, second = target.elts
    if isinstance(first, ast.Tuple | ast.List):
        return True
    if isinstance(first, ast.Name) and isinstance(second, ast.Name):
        one, two = first.id, second.id
        if re.sub(r"\d+$", "", one) == re.sub(r"\d+$", "", two) and one != two:
            return None
        if _alike(one, two):
            return True if _given_on(facts, first) else None
        if says(one, SAYS_CARRY) or (not one.strip("_") and says(two, SAYS_OUTPUTS)):
            return True
        if _given_on(facts, first):
            return True
    return None


def _values(facts: ScriptFacts, name: ast.expr) -> list[Any]:
    """What a name stood for where it was read."""
    if not isinstance(name, ast.Name):
        return []
    reads = [n for n in facts.nodes(ast.Name) if n.id == name.id and isinstance(n.ctx, ast.Load)]
    return [seen.value for read in reads for seen in facts.seen(read)]


def _ended_with(facts: ScriptFacts, name: ast.expr) -> bool:
    """Whether the script ended in a call that was given what a name is bound to."""
    failure = facts.record.failure
    node = None if failure is None else failure.node
    parts = [] if node is None else [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    return isinstance(name, ast.Name) and any(n.id == name.id for n in parts)


def _given_on(facts: ScriptFacts, name: ast.expr) -> bool:
    """Whether what a name is bound to is handed to a layer, a cell or a scan as a carry."""
    values = _values(facts, name)
    taken: list[Any] = [call.kwargs.get("initial_carry") for call in facts.record.calls]
    taken += [step.carry for step in facts.cells.steps]
    taken += [site.call.init for site in facts.scans]
    leaves = [leaf for carry in taken if carry is not None for leaf in tree_util.tree_leaves(carry)]
    return any(value is leaf for value in values for leaf in leaves)


def _rows_meant(target: ast.Tuple | ast.List) -> bool:
    """Whether the names say that the two rows are meant: ``y0, y1``, ``first, second``."""
    names = [e.id for e in target.elts if isinstance(e, ast.Name)]
    if len(names) != 2:
        return False
    stems = {re.sub(r"[_\d]+", "", name) for name in names}
    return len(stems) == 1 or all(says(name, SAYS_ROW) for name in names) or _alike(*names)


def _alike(one: str, other: str) -> bool:
    """Whether two names say two of one kind: ``y_clean, y_noisy``; ``h_a, h_b``."""
    first, second = (set(re.split(r"[_\d]+", name.lower())) for name in (one, other))
    rests = (first - second, second - first)
    return (
        bool((first & second) - {""}) and all(rests) and not any(rest & (SAYS_CARRY | SAYS_OUTPUTS) for rest in rests)
    )


# --- the pair, taken apart the wrong way round ----------------------------------------------------------------------


def _turned(facts: ScriptFacts) -> Iterator[Finding]:
    """``outputs, carry = rnn(x, return_carry=True)``."""
    for one in turned(facts):
        raised = _failed_in(facts, one.statement)
        later = not raised and any(_ended_with(facts, part) for part in (one.first, one.second))
        severity = Severity.ERROR if raised or later else Severity.WARNING if one.plain else Severity.NOTE
        edit, number = righted(facts, one), number_of(facts, one.run)
        yield Finding(
            message=fill(
                TURNED,
                call=facts.source.text_of(one.run.call.node.func),
                first=facts.source.text_of(one.first),
                second=facts.source.text_of(one.second),
                takes=TAKES[isinstance(one.second, ast.Tuple | ast.List)],
                type=aval_of(one.run.call.result[1]),
            ),
            place=facts.span(one.run.call.node),
            repairs=(facts.rewrites(fill(TITLE_TURN, text=edit.text), edit),),
            measure=Measure(EXCHANGED, Exchanged(number)) if severity is Severity.WARNING else None,
            severity=severity,
            silent=not raised and not later,
            path=f"{facts.source.text_of(one.run.call.node.func)}:{number}",
        )


# --- the pair, taken for the outputs --------------------------------------------------------------------------------


def _pair(facts: ScriptFacts) -> Iterator[Finding]:
    """Where the script ended because a pair was taken for an array."""
    failure = facts.failure
    if (
        failure is None
        or failure.node is None
        or not isinstance(failure.error, TypeError | AttributeError | ValueError)
    ):
        return
    for part in _taken(facts, failure.node):
        value = facts.value(part, MISSING)
        run = next((r for r in runs(facts) if value is not MISSING and r.call.result is value), None)
        if run is None or not isinstance(value, tuple) or not option(run.call, "return_carry"):
            continue
        yield Finding(
            message=fill(
                PAIR,
                call=facts.source.text_of(run.call.node.func),
                text=facts.source.text_of(failure.node),
            ),
            place=facts.span(failure.node),
            repairs=tuple(_outputs(facts, run)),
            severity=Severity.ERROR,
            silent=False,
            path=f"{facts.source.text_of(run.call.node.func)}:{number_of(facts, run)}",
        )
        return


def _taken(facts: ScriptFacts, node: ast.expr) -> Iterator[ast.expr]:
    """The parts of an expression that failed which must be arrays there."""
    if isinstance(node, ast.Attribute):
        yield node.value
    elif isinstance(node, ast.Subscript):
        if isinstance(node.slice, ast.Tuple):
            yield node.value
    elif isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    elif isinstance(node, ast.Call):
        made = facts.calls_at(node)
        if any((c.name or "").startswith(LIBRARY) for c in made):
            yield from (a for a in node.args if not isinstance(a, ast.Starred))
            yield from (k.value for k in node.keywords)


def _outputs(facts: ScriptFacts, run: Run) -> Iterator[Repair]:
    """``ys = rnn(x)`` as ``_, ys = rnn(x)``; where the call is no assignment, its item 1."""
    node = run.call.node
    statement = facts.source.statement(node)
    if isinstance(statement, ast.Assign) and statement.value is node and len(statement.targets) == 1:
        target = statement.targets[0]
        if isinstance(target, ast.Name):
            yield facts.rewrite(fill(TITLE_TAKE), target, f"_, {target.id}")
            return
    span = facts.span(node)
    end = type(span)(span.end_line, span.end_col, span.end_line, span.end_col)
    yield facts.rewrites(fill(TITLE_TAKE), TextEdit(end, "[1]"))


# --- the number -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rows:
    """How many rows of a layer's outputs were bound to two names as if they were the pair."""

    number: int

    def __call__(self, record: Any) -> float:
        """The number, in this run.

        Raises:
            ValueError: the call is not there.
        """
        facts = facts_of_script(record)
        result = run_numbered(facts, self.number).call.result
        aval = aval_of(result)
        return 0.0 if isinstance(result, tuple) or aval is None else float(aval.shape[0])


RULE = Rule(
    code="L319",
    name="unpacked-without-return-carry",
    title="A layer's outputs are taken apart as carry and outputs",
    severity=Severity.WARNING,
    jax=Jax.BOTH,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script", "sequence"}),
    beats=frozenset({"L301", "L303", "L309", "L304", "L320", "S102", "S103"}),
)
