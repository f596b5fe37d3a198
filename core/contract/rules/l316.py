"""c is taken for h, or the cell's arguments change places.

**What.** An LSTM's carry is ``(c, h)`` in this order, and what the cell puts out is h. ``carry[0]`` is the cell state,
which no gate has limited. And a cell takes its carry first and its input second, while `nnx.RNN` takes the input
first: where both are of one width, ``cell(x, h)`` runs.

**Why.** Both states have one shape and dtype, and so may carry and input, so nothing can raise.

**Bad**

    carry, ys = jax.lax.scan(step, init, xs)
    hidden = carry[0]

**Good**

    carry, ys = jax.lax.scan(step, init, xs)
    hidden = carry[1]

A note only, unless the script itself says what was meant: a name for c that says h; a value that only a carry can be
where the input belongs. To print c, to ask for its shape, or to use it beside h is no finding.

Source: flax.nnx.LSTMCell.__call__, "return (new_c, new_h), new_h"; flax.nnx.RNNCellBase.__call__(carry, inputs).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from core.base.places import Because
from core.base.text import fill
from core.base.violation import Severity, TextEdit
from core.contract.fates import Fate
from core.contract.rule import Finding, Jax, Measure, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.states import states_of
from core.contract.swapped import Arrivals, Moved, Sure, Swapped, swapped
from core.contract.taken import (
    OUTWARD,
    SAYS_C,
    SAYS_H,
    SERIOUS,
    Distance,
    Read,
    distance,
    goes_on,
    reads,
    says,
    to_hidden,
)

NAMED = "{name} is the cell state c of {cell}: the carry is (c, h), and h is its other part."
OUTPUT = "{name} is the cell state c of {cell}, and it goes on as the output; what the cell puts out is h, which goes nowhere."
KEPT = "{name} is the cell state c of {cell}; its h, which is what the cell puts out, is not taken from this carry."
BECAUSE = "(c, h) comes from here"
TITLE_HIDDEN = "Take h: {text}"
TITLE_NAMES = "Take h, the other part of the carry"
DISTANCE = "{name}, compared with the h of the same step: largest difference."
ORDER = "{call} gets {first} as its carry and {second} as its input: the carry comes first."
PROVEN = "{call} gets {second}, its own carry, as the input and {first} as the carry: the carry comes first."
ZEROS = "{call} gets {second}, which is all zeros, as its input and {first} as its carry: the carry comes first."
TITLE_ORDER = "Give the carry first: {text}"
MOVED = "h of this step, compared with the same step with the carry first: largest difference."
ARRIVALS = "Steps in which the cell's carry arrives as its input."
WHY = (
    "A cell is called as cell(carry, inputs), the carry of an LSTM is (c, h), and what it puts out is h. Shapes and "
    "dtypes agree, so order alone tells them apart."
)


def check(facts: ScriptFacts) -> Iterator[Finding]:
    """One finding for each place where c is taken for h, and for each call with its arguments exchanged."""
    if states_of(facts).pairs:
        yield from _taken(facts)
    for one in swapped(facts):
        yield _exchanged(facts, one)


# --- c for h --------------------------------------------------------------------------------------------------------


def _taken(facts: ScriptFacts) -> Iterator[Finding]:
    states, said = states_of(facts), set()
    for read in reads(facts):
        template = _template(facts, read)
        statement = facts.source.statement(read.node)
        if template is None or (statement, read.family) in said:
            continue
        said.add((statement, read.family))
        name = read.target.id if read.target is not None else facts.source.text_of(read.node)
        pair = states.pair(read.family)
        severity, measure = Severity.NOTE, None
        if template is NAMED and read.target is not None and not _only_carried(read):
            try:
                distance(states, read.value)
                severity = Severity.WARNING
                measure = Measure(fill(DISTANCE, name=name), Distance(read.target.lineno, name))
            except ValueError:
                pass  # under a trace there is no number to prove it with
        edits = to_hidden(facts, read)
        finding = Finding(
            message=fill(template, name=name, cell=pair.cell),
            place=facts.span(read.node),
            because=None if pair.node is None else Because(facts.span(pair.node), fill(BECAUSE)),
            measure=measure,
            severity=severity,
            silent=True,
            path=name,
        )
        if edits:
            finding = replace(finding, repairs=(facts.rewrites(_title(edits), *edits),))
        yield finding


def _only_carried(read: Read) -> bool:
    """Whether c goes back into a cell and nowhere else: then its name is wrong and nothing more."""
    return Fate.CARRY in read.fates and not read.fates & SERIOUS


def _template(facts: ScriptFacts, read: Read) -> str | None:
    """What is said of this read; None when it may well be meant."""
    name = read.target.id if read.target is not None else ""
    is_h, is_c = says(name, SAYS_H), says(name, SAYS_C)
    if is_h and not is_c:
        return NAMED
    if Fate.CARRY in read.fates or goes_on(facts, read.family):
        return None
    if read.fates & OUTWARD:
        return None if is_c and not read.fates & {Fate.LAYER} else OUTPUT
    return KEPT if name and not is_c and name.strip("_") else None


def _title(edits: tuple[TextEdit, ...]) -> str:
    return fill(TITLE_HIDDEN, text=edits[0].text) if len(edits) == 1 and "." in edits[0].text else fill(TITLE_NAMES)


# --- arguments ------------------------------------------------------------------------------------------------------


def _exchanged(facts: ScriptFacts, one: Swapped) -> Finding:
    first, second = (facts.source.text_of(node) for node in (one.carry, one.inputs))
    called = facts.source.text_of(one.call.func)
    template = {Sure.ZEROS: ZEROS, Sure.NAMED: ZEROS, Sure.PROVEN: PROVEN, Sure.RAISED: ORDER}[one.sure]
    title = fill(TITLE_ORDER, text=_short(called, second, first))
    edits = TextEdit(facts.span(one.carry), second), TextEdit(facts.span(one.inputs), first)
    severity = {Sure.ZEROS: Severity.NOTE, Sure.RAISED: Severity.ERROR}.get(one.sure, Severity.WARNING)
    return Finding(
        message=fill(template, call=called, first=first, second=second),
        place=facts.span(one.carry),
        repairs=(facts.rewrites(title, *edits),),
        measure=None if one.sure is Sure.RAISED else _measure(facts, one, second),
        severity=severity,
        silent=severity is not Severity.ERROR,
        path=one.use.path,
        covers=(*(part.path for part in one.use.parts), "carry", "inputs"),
    )


def _short(*texts: str) -> str:
    call, first, second = texts
    return f"{call}({first}, {second})"


def _measure(facts: ScriptFacts, one: Swapped, carry: str) -> Measure:
    """By the cell's own numbers; where they are traced, by counting."""
    span = facts.span(one.call)
    moved = Moved(span.line, span.col, carry)
    try:
        moved(facts.record)
    except Exception:  # noqa: BLE001  # a step that cannot be taken again is counted instead
        return Measure(ARRIVALS, Arrivals(span.line, span.col))
    return Measure(MOVED, moved)


RULE = Rule(
    code="L316",
    name="c-taken-for-h",
    title="c taken for h, or the cell's arguments swapped",
    severity=Severity.NOTE,
    jax=Jax.SILENT,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script"}),
    beats=frozenset({"L301", "L303", "L304", "L305", "S102", "S103", "S104"}),
)
