"""Time-major data for a layer that takes the batch first, or the reverse.

**What.** `nnx.RNN` takes ``(B, T, F)`` unless it is told ``time_major=True``. Given ``(T, B, F)`` it takes the steps for
examples and walks along the batch: the carry goes from one example into the next. Any sizes will do, so nothing raises.

**Why.** A layer cannot see which axis is time. It is told by `time_major`, at the call or where it is built.

**Bad**

    x = jnp.ones((T, B, F))
    ys = nnx.RNN(cell)(x)

**Good**

    ys = nnx.RNN(cell)(x, time_major=True)

A warning where the script says which axis is which: a shape written with names, a name like ``x_tbf``, the outputs of a
scan over a cell, lengths or an initial carry that fit the other axis. Equal sizes prove nothing, and are no finding.

Source: flax.nnx.RNN, argument `time_major`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from jax import tree_util

from core.base.avals import aval_of
from core.base.places import Because
from core.base.text import fill
from core.base.violation import Severity, TextEdit
from core.contract import sequence_rules
from core.contract.axis_order import BATCH, FIRST, TIME, Order, orders_of
from core.contract.cell_proof import NOISE, host, nudged
from core.contract.fates import Fate, fate_of
from core.contract.layer_calls import Kept, again, facts_of_script, measured, runs_once, shape, with_option
from core.contract.masks import Run, known, number_of, run_numbered
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.sequence_facts import SequenceFacts

SAID = "{inputs} has {first} first, and {call} takes its first axis for {taken}: it walks along {walked}."
LENGTHS = (
    "seq_lengths has {count} entries, one for each example: {inputs} has {count} along its {axis} axis, which {call} takes "
    "for time."
)
CARRY = (
    "The initial carry has {count} rows, one for each example: {inputs} has {count} along its {axis} axis, which {call} "
    "takes for time."
)
MAYBE = (
    "{text} takes one example's outputs, all its steps: {call} takes the batch first. If time is first, it must be told "
    "time_major=True."
)
BECAUSE_LENGTHS = "the lengths are given here"
BECAUSE_CARRY = "the carry is given here"
TITLE_OPTION = "Say which axis is time: time_major={value}"
TITLE_TURN = "Exchange the first two axes of {inputs}"
LEAK = "One example was changed and the others watched; this is how far they move."
COUNT = "Examples that the layer visits one after the other, as if they were steps."
WHY = "nnx.RNN takes (B, T, F), and (T, B, F) only with time_major=True; no shape can tell it which one it is given."


@dataclass(frozen=True, slots=True, eq=False)
class Wrong:
    """A call that takes the batch for time.

    Attributes:
        run: the call, its `time` and `batch` as the layer takes them.
        because: what shows it.
        message: what is said.
        raised: whether the script ended there.
        carry: whether a carry's rows show it.
    """

    run: Run
    because: Because
    message: str
    raised: bool = False
    carry: bool = False


def check(facts: ScriptFacts | SequenceFacts) -> Iterator[Finding]:
    """One finding for each call of a layer that takes the batch for time."""
    if isinstance(facts, SequenceFacts):
        yield from sequence_rules.axis_order(facts)
        return
    for run in runs_once(facts):
        wrong = wrong_of(facts, run)
        if wrong is not None:
            yield _finding(facts, wrong)
        else:
            yield from _maybe(facts, run)


def wrong_of(facts: ScriptFacts, run: Run) -> Wrong | None:
    """What shows that a call takes the batch for time; None where nothing does."""
    names: dict[str, Any] = {
        "inputs": facts.source.text_of(run.inputs),
        "call": facts.source.text_of(run.call.node.func),
        "axis": "first" if run.time == 0 else "second",
        "count": run.steps,
    }
    order = orders_of(facts).of(run.call.argument(0, "inputs"))
    taken = TIME if run.time == 0 else BATCH
    if order is not None and order.told and order.first != taken:
        walked = FIRST[BATCH]
        message = fill(SAID, first=FIRST[order.first], taken=FIRST[taken], walked=walked, **names)
        return Wrong(run, Because(facts.span(order.node), order.text), message)
    if (order is not None and order.told) or run.steps == run.batch:
        return None
    raised = run.call.error is not None
    if run.lengths is not None and run.lengths_node is not None and shape_of(run.lengths) == (run.steps,):
        values = known(facts, run.lengths_node, (run.steps,), run.call.order)
        if (
            values is not None
            and values.dtype.kind in "iu"
            and values.size
            and values.min() >= 1
            and values.max() <= run.batch
        ):
            because = Because(facts.span(run.lengths_node), BECAUSE_LENGTHS)
            return Wrong(run, because, fill(LENGTHS, **names), raised)
    carry = run.call.kwargs.get("initial_carry")
    node = next((k.value for k in run.call.node.keywords if k.arg == "initial_carry"), None)
    rows = {shape_of(leaf)[:1] for leaf in tree_util.tree_leaves(carry)} if carry is not None else set()
    ranks = {len(shape_of(leaf)) for leaf in tree_util.tree_leaves(carry)} if carry is not None else set()
    if node is not None and raised and rows == {(run.steps,)} and ranks == {2}:
        return Wrong(run, Because(facts.span(node), BECAUSE_CARRY), fill(CARRY, **names), raised, carry=True)
    return None


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of an array; () for anything else."""
    aval = aval_of(value)
    return () if aval is None else aval.shape


def _finding(facts: ScriptFacts, wrong: Wrong) -> Finding:
    run = wrong.run
    number = number_of(facts, run)
    measure = None
    if not wrong.raised:
        leak = Kept(Moved(number))
        measure = Measure(LEAK, leak) if measured(leak, facts) > 0 else Measure(COUNT, Visited(number))
    return Finding(
        message=wrong.message,
        place=facts.span(run.inputs),
        because=wrong.because,
        repairs=tuple(_repairs(facts, run)),
        measure=measure,
        severity=Severity.ERROR if wrong.raised else Severity.WARNING,
        silent=not wrong.raised,
        path="carry" if wrong.carry else f"seq_lengths:{number}",
        covers=("carry[0]", "carry[1]") if wrong.carry else (),
    )


def _repairs(facts: ScriptFacts, run: Run) -> Iterator[Repair]:
    """`time_major` at the call, or the axes exchanged: that first, where the script takes steps along the other axis."""
    value = "False" if run.time == 0 else "True"
    edit = with_option(facts, run.call.node, "time_major", value)
    option = [] if edit is None else [facts.rewrites(fill(TITLE_OPTION, value=value), edit)]
    jnp, text = facts.spelled("jax.numpy"), facts.source.text_of(run.inputs)
    turn = []
    if jnp is not None:
        turned = TextEdit(facts.span(run.inputs), f"{jnp}.swapaxes({text}, 0, 1)")
        turn = [facts.rewrites(fill(TITLE_TURN, inputs=text), turned)]
    last = any(True for _ in _picked(facts, run, run.time))
    yield from (*turn, *option) if last else (*option, *turn)


def _picked(facts: ScriptFacts, run: Run, axis: int) -> Iterator[ast.Subscript]:
    """Where one entry along an axis is taken out of what a layer returned: ``ys[:, -1]``, ``ys[-1]``."""
    result = run.call.result
    ys = result[1] if run.returns and isinstance(result, tuple) else result
    for node in facts.nodes(ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        whole = all(isinstance(p, ast.Slice) and p.lower is p.upper is None for p in parts[:axis])
        if whole and len(parts) > axis and _is_last(parts[axis]) and any(s.value is ys for s in facts.seen(node.value)):
            yield node


def _is_last(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and ast.unparse(node.operand) == "1"


def _maybe(facts: ScriptFacts, run: Run) -> Iterator[Finding]:
    """A note where the last entry of the batch goes through weights, as the last step would."""
    if run.time == 0 or run.call.error is not None or orders_of(facts).of(run.call.argument(0, "inputs")) is not None:
        return
    node = next((n for n in _picked(facts, run, 0) if fate_of(facts, n) is Fate.LAYER), None)
    if node is not None:
        yield Finding(
            message=fill(MAYBE, text=facts.source.text_of(node), call=facts.source.text_of(run.call.node.func)),
            place=facts.span(run.inputs),
            severity=Severity.NOTE,
            silent=True,
            path=f"maybe:{number_of(facts, run)}",
        )


# --- the numbers ----------------------------------------------------------------------------------------------------


def _truth(facts: ScriptFacts, run: Run) -> int:
    """Which axis of a call's input is the batch."""
    order: Order | None = orders_of(facts).of(run.call.argument(0, "inputs"))
    if order is not None and order.told:
        return 0 if order.first == BATCH else 1
    return run.time if wrong_of(facts, run) is not None else 1 - run.time


def _entry(array: Any, axis: int, index: int) -> Any:
    """One entry of an array along an axis, as a view."""
    return array[(slice(None),) * axis + (slice(index, index + 1),)]


@dataclass(frozen=True, slots=True)
class Moved:
    """How far the outputs of other examples move when the data of the first, or of the last one, are changed."""

    number: int

    def __call__(self, record: Any) -> float:
        """The number, in this run.

        Raises:
            ValueError: the call is not there, or its values are traced.
        """
        facts = facts_of_script(record)
        run = run_numbered(facts, self.number)
        axis, inputs = _truth(facts, run), run.call.argument(0, "inputs")
        count, best = shape(inputs)[axis], 0.0
        options = {} if wrong_of(facts, run) is None or run.lengths is None else {"seq_lengths": None}
        before = np.moveaxis(host(again(run.call, **options)[1]), axis, 0)
        for example in dict.fromkeys((0, count - 1)):
            if best > NOISE:
                break  # the layer runs forward, and the first one visited moves the others
            changed = nudged(inputs, partial(_entry, axis=axis, index=example))
            after = np.moveaxis(host(again(run.call, changed, **options)[1]), axis, 0)
            others = np.arange(count) != example
            best = max(best, float(np.abs(before[others] - after[others]).max(initial=0.0)))
        return best if best > NOISE else 0.0


@dataclass(frozen=True, slots=True)
class Visited:
    """How many examples are taken for steps: none once the layer is told which axis is time."""

    number: int

    def __call__(self, record: Any) -> float:
        """The number, in this run.

        Raises:
            ValueError: the call is not there.
        """
        facts = facts_of_script(record)
        run = run_numbered(facts, self.number)
        return float(run.steps) if wrong_of(facts, run) is not None else 0.0


RULE = Rule(
    code="L309",
    name="time-major-unsaid",
    title="Time-major data for a batch-major layer, or the reverse",
    severity=Severity.WARNING,
    jax=Jax.SILENT,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script", "sequence"}),
    beats=frozenset({"L303", "L310", "S102", "S103"}),
)
