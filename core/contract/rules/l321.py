"""A mask with holes is summed into seq_lengths.

**What.** ``seq_lengths=mask.sum(1)`` counts the steps that are on. If the mask switches off a step in the middle (or
pads at the front), the first n steps are not those n: the RNN runs the step that is off, and stops too early.

**Why.** A length can only say "the first n steps".

**Bad**

    mask = jnp.array([[True, False, True, True]])
    carry, ys = rnn(x, seq_lengths=mask.sum(1))

**Good**

    def step(h, inputs):
        x_t, keep = inputs
        new, y = cell(h, x_t)
        return jnp.where(keep[:, None], new, h), y

    carry, ys = jax.lax.scan(step, h, (jnp.swapaxes(x, 0, 1), mask.T))

Source: flax.nnx.RNN, argument `seq_lengths`; flax.nnx.nn.recurrent._select_last_carry, "last_idx = seq_lengths - 1".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.base.places import Because
from core.base.text import fill
from core.base.violation import Severity, TextEdit
from core.contract import sequence_masks
from core.contract.cell_proof import NOISE
from core.contract.masks import (
    GATHERS,
    Made,
    Numbers,
    Run,
    axis_of,
    behind,
    farthest,
    final_carry,
    holes,
    is_mask,
    masked_carry,
    number_of,
    numbers,
    run_numbered,
    runs,
)
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import ScriptRecord
from core.contract.sequence_facts import SequenceFacts

HOLE = (
    "seq_lengths is the sum of a mask with a hole: step {step} of example {example} is off and one after it is on. The "
    "RNN takes the first {count} steps, that one too."
)
BECAUSE = "the mask comes from here"
TITLE = "Move the steps that are off behind the others (ys then come in that order)"
CARRY = "The final carry, compared with that of the same cell when it skips the steps that are off: largest difference."
COUNT = "Steps that the mask switches off and that are run all the same."
WHY = "seq_lengths can only say how many steps from the first one are to be run."
SUMS = frozenset({"sum", "count_nonzero"})
ORDER = "order"


@dataclass(frozen=True, slots=True, eq=False)
class Summed:
    """A mask behind the seq_lengths of a run: the nearest one, and the one that this was sorted from."""

    made: Made
    mask: Numbers
    axis: int

    @property
    def rows(self) -> Numbers:
        """``(B, T)``."""
        return np.moveaxis(self.mask.astype(bool), self.axis, 1)


def check(facts: ScriptFacts | SequenceFacts) -> Iterator[Finding]:
    """One finding for each call that sums a mask with a hole."""
    if isinstance(facts, SequenceFacts):
        yield from sequence_masks.summed_mask(facts)
        return
    said: set[ast.Call] = set()
    for run in runs(facts):
        summed = _summed(facts, run)
        if run.call.node in said or summed is None:
            continue
        off = holes(summed.mask, summed.axis)
        if off and run.lengths_node is not None:
            said.add(run.call.node)
            yield _finding(facts, run, summed, off[0])


def _summed(facts: ScriptFacts, run: Run, *, first: bool = False) -> Summed | None:
    """The nearest mask behind seq_lengths whose sum they are; the farthest one of its size when `first`."""
    node = run.lengths_node
    if node is None or run.lengths is None:
        return None
    lengths, found = numbers(run.lengths), None
    for made in behind(facts, node):
        value = facts.value(made.node)
        array = numbers(value)
        if array is None and isinstance(made.node, ast.Call) and facts.source.dotted(made.node.func) in GATHERS:
            return None  # under a trace nobody knows in what order the steps are
        axis = axis_of(array, run) if array is not None and is_mask(array) else None
        if array is None or axis is None or not _adds_up(facts, array, axis, lengths):
            continue
        found = Summed(made, array, axis)
        if not first:
            return found
    return found


def _adds_up(facts: ScriptFacts, mask: Numbers, axis: int, lengths: Numbers | None) -> bool:
    """Whether the lengths are this mask's sum; under a trace, whether something is summed on the way."""
    if lengths is not None:
        return lengths.shape == (mask.shape[1 - axis],) and bool((mask.sum(axis) == lengths).all())
    return any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in SUMS
        for n in ast.walk(facts.source.tree)
    )


def _finding(facts: ScriptFacts, run: Run, summed: Summed, off: tuple[int, int]) -> Finding:
    example, step = off
    count = int(summed.rows[example].sum())
    node = run.lengths_node or run.call.node
    source = facts.source.resolve(summed.made.node)
    return Finding(
        message=fill(HOLE, step=step, example=example, count=count),
        place=facts.span(node),
        because=Because(facts.span(source), fill(BECAUSE)),
        repairs=tuple(_sorted(facts, run, summed)),
        measure=_measure(facts, number_of(facts, run)),
        severity=Severity.WARNING,
        silent=True,
        path="seq_lengths",
    )


def _sorted(facts: ScriptFacts, run: Run, summed: Summed) -> Iterator[Repair]:
    """The steps that are off go behind the others: the first n are then those that count."""
    here, jnp = summed.made.here, facts.spelled("jax.numpy")
    statement = facts.source.statement(run.call.node)
    node = run.lengths_node
    if here is None or jnp is None or statement is None or node is None or len(run.features) != 1:
        return
    if facts.source.scope(statement) is not facts.source.scope(run.call.node):
        return
    name = ORDER
    while name in {n.id for n in facts.nodes(ast.Name)}:
        name += "_"
    mask, axis = facts.source.text_of(here), run.time
    if isinstance(facts.value(summed.made.node), list | tuple):
        mask = f"{jnp}.asarray({mask})"
    if summed.axis != axis:
        mask = f"{jnp}.swapaxes({mask}, 0, 1)"
    inputs = facts.source.text_of(run.inputs)
    cast = "" if summed.mask.dtype.kind in "biu" else ".astype(int)"
    yield facts.rewrites(
        fill(TITLE),
        facts.insert_before(statement, f"{name} = {jnp}.argsort({mask} == 0, axis={axis}, stable=True)"),
        TextEdit(facts.span(run.inputs), f"{jnp}.take_along_axis({inputs}, {name}[..., None], axis={axis})"),
        TextEdit(facts.span(node), f"{jnp}.take_along_axis({mask}, {name}, axis={axis}).sum(axis={axis}){cast}"),
    )


# --- the numbers ----------------------------------------------------------------------------------------------------


def _measure(facts: ScriptFacts, number: int) -> Measure:
    try:
        moved = Missed(number)(facts.record)
    except Exception:  # noqa: BLE001  # under a trace, or backwards, the steps are counted
        moved = 0.0
    return Measure(CARRY, Missed(number)) if moved > 0 else Measure(COUNT, Overrun(number))


@dataclass(frozen=True, slots=True)
class Missed:
    """How far the final carry of a call is from that of a cell that skips what the first mask says."""

    number: int

    def __call__(self, record: Any) -> float:
        """The number, in this run.

        Raises:
            ValueError: the call is not there, or it cannot be made again.
        """
        if not isinstance(record, ScriptRecord):
            raise ValueError("there is no script")
        facts = ScriptFacts(record)
        run = run_numbered(facts, self.number)
        first = _summed(facts, run, first=True)
        inputs = _before_gathers(facts, run)
        if first is None or run.call.kwargs.get("reverse"):
            raise ValueError("there is no mask")
        right = masked_carry(run.call.func, inputs, first.rows, run.time, run.call.kwargs.get("initial_carry"))
        moved = farthest(final_carry(run.call), right)
        return moved if moved > NOISE else 0.0


def _before_gathers(facts: ScriptFacts, run: Run) -> Any:
    node = run.inputs
    while isinstance(node, ast.Call) and facts.source.dotted(node.func) in GATHERS:
        node = node.args[0]
    return facts.value(node)


@dataclass(frozen=True, slots=True)
class Overrun:
    """How many steps that are off in the summed mask stand among the first n of a call."""

    number: int

    def __call__(self, record: Any) -> float:
        """The number, in this run.

        Raises:
            ValueError: the call is not there.
        """
        if not isinstance(record, ScriptRecord):
            raise ValueError("there is no script")
        facts = ScriptFacts(record)
        summed = _summed(facts, run_numbered(facts, self.number))
        if summed is None:
            return 0.0
        rows = summed.rows
        return float((~rows & (np.arange(rows.shape[1]) < rows.sum(1, keepdims=True))).sum())


RULE = Rule(
    code="L321",
    name="mask-with-holes-as-lengths",
    title="A mask with holes is summed into seq_lengths",
    severity=Severity.WARNING,
    jax=Jax.SILENT,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script", "sequence"}),
)
