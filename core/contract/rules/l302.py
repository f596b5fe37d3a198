"""c and h change places: (h, c) where the cell takes (c, h).

**What.** What left a cell as c comes back to it as h, and h as c: in the carry that a step returns, in init, between
two calls, or from an encoder to its decoder. Both have the same shape and dtype, so nothing is raised. A carry that is kept as (h, c) throughout
and turned round before each call is legal, and is no finding.

**Why.** The first part is the cell state, which is unbounded and is only ever scaled and added to; the second is the
hidden state, which goes through the recurrent weights.

**Bad**

    def step(carry, x):
        (c, h), y = cell(carry, x)
        return (h, c), y

**Good**

    def step(carry, x):
        (c, h), y = cell(carry, x)
        return (c, h), y

A note only while both hold the same numbers, as the zeros of `initialize_carry` do: then the swap moves nothing yet.

Source: flax.nnx.LSTMCell.__call__, "c, h = carry" and "return (new_c, new_h), new_h".
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import lax

from core.base.places import Because, Place
from core.base.text import fill
from core.base.violation import Severity, TextEdit
from core.contract import repairs_cell, trees
from core.contract.cell_proof import again, concrete_step, farthest
from core.contract.cells import CellUse, carries_before, carry_place, cell_uses, given_value, place_of
from core.contract.facts import Facts, ScanFacts, facts_of, run_trial
from core.contract.handed_on import Handed, Moved, handed_on, number_of
from core.contract.record import CarryEvent, StepEvent
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.subject import CellTrial, ScanCall, Subject
from core.contract.trace import StepTrace

GIVEN = "{path} is (h, c): what {cell} takes as c left {source} as h, and what it takes as h left it as c."
RETURNED = (
    "The step returns h in {one} and c in {other}, but {cell} takes {one} as c and {other} as h at the next step."
)
SAME = "{path} is (h, c) where {cell} takes (c, h). Both hold the same numbers, so nothing moves yet."
BECAUSE = "(c, h) comes from here"
TAKEN = "the cell takes (c, h) here"
CLAIM_SCAN = "The final carry, compared with the same scan where c stays c and h stays h: largest difference."
CLAIM_HANDED = "The result, compared with the same call on (c, h): largest difference."
CLAIM_STEP = "h after this step, compared with the same step on (c, h): largest difference."
WHY = (
    "The first part of the carry is the cell state c, scaled and added to; the second is the hidden state h, which "
    "goes through the recurrent weights. The cell tells them apart by their order alone."
)
INITIALIZE = "initialize_carry"
BEFORE = "the {cell} before it"
CELL = "the cell"


@dataclass(frozen=True, slots=True, eq=False)
class Swap:
    """One exchange: where, and how it is undone."""

    use: CellUse
    message: str
    place: Place | None
    because: Because
    repairs: tuple[Repair, ...]
    same: bool = False
    path: str = ""


def check(facts: Facts | ScriptFacts) -> Iterator[Finding]:
    """One finding for each place where c and h are exchanged."""
    if isinstance(facts, ScriptFacts):
        for handed in handed_on(facts):
            yield _handed(facts, handed)
        return
    for swap in _swaps(facts):
        measure = None
        if not swap.same:
            claim = CLAIM_SCAN if isinstance(facts, ScanFacts) else CLAIM_STEP
            measure = Measure(claim, _moved(swap.use.index))
        yield Finding(
            message=swap.message,
            place=swap.place,
            because=swap.because,
            repairs=swap.repairs,
            measure=measure,
            severity=Severity.NOTE if swap.same else Severity.WARNING,
            silent=True,
            path=swap.path,
        )


def _swaps(facts: Facts) -> Iterator[Swap]:
    uses = [use for use in cell_uses(facts) if use.event.wants_pair and len(use.parts) == 2]
    for use in uses:
        yield from _given(facts, use)
    if isinstance(facts, ScanFacts):
        yield from _returned(facts, uses)


def _given(facts: Facts, use: CellUse) -> Iterator[Swap]:
    """The pair that this step was given is another pair the wrong way round."""
    first, second = (given_value(facts, part) for part in use.parts)
    for event, (c, h) in _pairs_before(facts, use):
        if first is h and second is c and c is not h:
            same = _equal(c, h)
            source = INITIALIZE if isinstance(event, CarryEvent) else CELL
            text = fill(SAME if same else GIVEN, path=use.path, cell=use.cell_name, source=source)
            because = Because(place_of(facts, event, "carry_shape", "call"), BECAUSE)
            yield Swap(use, text, carry_place(facts, use), because, _undo(use), same, use.path)
            return


def _undo(use: CellUse) -> tuple[Repair, ...]:
    one, other = use.parts
    if one.slot and other.slot:
        return (repairs_cell.swap_slots(one.path, other.path),)
    return () if one.slot or other.slot else (repairs_cell.swap(use.path),)


def _pairs_before(facts: Facts, use: CellUse) -> Iterator[tuple[CarryEvent | StepEvent, tuple[Any, Any]]]:
    """Every (c, h) that a cell made before this step, the nearest first."""
    events: list[Any] = [*carries_before(facts)]
    if isinstance(facts, ScanFacts) and facts.call.earlier is not None:
        events += facts.call.earlier.steps
    events += facts.cells.steps[: use.index]
    for event in reversed(events):
        made = event.result[0] if isinstance(event, StepEvent) and event.result is not None else event.result
        if isinstance(made, tuple) and len(made) == 2:
            yield event, made


def _returned(facts: ScanFacts, uses: list[CellUse]) -> Iterator[Swap]:
    """The step's new carry has a cell's new h where c is read at the next step, and its new c where h is."""
    if not isinstance(facts.trace, StepTrace) or facts.trace.pair is None:
        return
    for use in uses:
        one, other = use.parts
        if not (one.slot and other.slot):
            continue
        try:
            back = [trees.find(facts.trace.pair[0], "carry", part.path) for part in use.parts]
        except KeyError:
            continue
        for source in uses:
            if source.event.result is None:
                continue
            new_c, new_h = source.event.result[0]
            if back[0] is new_h and back[1] is new_c:
                text = fill(RETURNED, one=one.path, other=other.path, cell=use.cell_name)
                place = facts.places.find(f"return:{use.path}", f"return:{one.path}", "return", "step", "scan")
                because = Because(carry_place(facts, use), TAKEN)
                yield Swap(
                    use, text, place, because, (repairs_cell.swap_returned(one.path, other.path),), path=one.path
                )
                return


def _handed(facts: ScriptFacts, one: Handed) -> Finding:
    """What a scan, a layer or a function made goes on as another's carry."""
    edits: tuple[TextEdit, ...] = ()
    if isinstance(one.node, ast.Tuple | ast.List) and len(one.node.elts) == 2:
        first, second = one.node.elts
        texts = [facts.source.text_of(part) for part in (first, second)]
        edits = TextEdit(facts.span(first), texts[1]), TextEdit(facts.span(second), texts[0])
    because = None if one.pair.node is None else Because(facts.span(one.pair.node), BECAUSE)
    taker = one.taker
    return Finding(
        message=fill(GIVEN, path=one.path, cell=one.cell, source=fill(BEFORE, cell=one.pair.cell)),
        place=facts.span(one.node) if one.node is not None else _at(facts, taker),
        because=because,
        repairs=(facts.rewrites(repairs_cell.TITLE_SWAP, *edits, path=one.path),) if edits else (),
        measure=Measure(
            CLAIM_STEP if isinstance(taker, StepEvent) else CLAIM_HANDED, Moved(number_of(facts, one), type(taker))
        ),
        severity=Severity.WARNING,
        silent=True,
        path=one.path,
    )


def _at(facts: ScriptFacts, taker: Any) -> Place | None:
    """Where the call is that takes a pair which the text does not show."""
    if isinstance(taker, StepEvent):
        return taker.site.find("call") if taker.site is not None else None
    return None if taker.node is None else facts.span(taker.node)


def _equal(c: Any, h: Any) -> bool:
    """Whether both hold the same numbers; traced ones are not known to."""
    if isinstance(c, jax.core.Tracer) or isinstance(h, jax.core.Tracer):
        return False
    return bool(np.array_equal(np.asarray(c), np.asarray(h)))


def _moved(index: int) -> Callable[[Subject], float]:
    """How far the result is from that of the same subject with every exchange undone."""

    def of(subject: Subject) -> float:
        if isinstance(subject, ScanCall):
            return farthest(_final(subject), _final(_put_right(subject)))
        if isinstance(subject, CellTrial):
            right = _put_right(subject)
            return farthest(*(run_trial(one).steps[0].result[1] for one in (subject, right)))
        event = concrete_step(subject, index)
        c, h = event.carry
        return farthest(again(event)[1], again(event, carry=(h, c))[1])

    return of


def _put_right(subject: Any) -> Any:
    for swap in _swaps(facts_of(subject)):
        for repair in swap.repairs:
            subject = repair.apply(subject)
    return subject


def _final(call: ScanCall) -> Any:
    return lax.scan(call.body, call.init, call.xs, call.length, call.reverse, call.unroll)[0]


RULE = Rule(
    code="L302",
    name="c-and-h-swapped",
    title="c and h change places",
    severity=Severity.WARNING,
    jax=Jax.SILENT,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"cell", "scan", "log", "script"}),
)
