"""Two runs beside each other: the same layer with another seed, another hidden size or another cell, and what differs.

Where the shapes agree, leaves are compared number by number. Where they do not (another number of units), the norms over
the units are; a part that one of the two does not have is said to be missing. Only steps that are no padding count:
what a layer computes in padding means nothing, and must not be the largest difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from core.base.sequences import Direction, SequenceResult
from core.base.text import fill
from core.base.tolerance import Difference
from core.contract.engine import diagnose_facts
from core.contract.facts import facts_of
from core.contract.rule import Stage
from core.contract.sequence_facts import outcome
from core.contract.subject import SequenceTrial
from core.contract.trace import Raised
from core.inputs.cell_inputs import Problem
from core.inputs.sequence_fields import CELL, HIDDEN, NONE, SEED
from core.inputs.sequence_inputs import SequenceInputs, build
from core.runners.cell_formulas import KINDS
from core.runners.memo import one_check
from core.runners.sequence_reference import against_numpy

type Array = np.ndarray[Any, Any]

#: What is compared with: the input of the second run, and the input that says its value.
OTHER: Final[Mapping[str, tuple[str, str]]] = {
    SEED: ("seed", "compare_seed"),
    HIDDEN: ("hidden_features", "compare_hidden"),
    CELL: ("cell", "compare_cell"),
}
NAMES: Final[Mapping[str, str]] = {
    SEED: "seed {value}",
    HIDDEN: "H = {value}",
    CELL: "{value}",
}
FORWARD, BACKWARD = "forward {leaf}", "backward {leaf}"
FINAL = "final {part}"
GATE = "gate {name}"
AT_START = "initial carry, example {example}"
AFTER = "after step t = {t}, example {example}"
AT_STEP = "step t = {t}, example {example}"
AT_END = "example {example}"
UNIT = "{place}, unit {unit}"
RAISED = "The other run raises {type}: {text}"
SHOWN = 160
GATES, GATES_OF, BOTH = "gates", "{cell} has {names}", "{one}; {other}"
NOT_THERE = "{cell} has no {leaf}"
NORMS = "{one} and {other} units: the norms over the units are compared"


@dataclass(frozen=True, slots=True)
class Row:
    """One leaf of both runs.

    Attributes:
        leaf: ``c``, ``h``, ``final c``, ``gate i``; with its direction where there are two.
        shapes: of the leaf in this run and in the other; None where it has none.
        largest: the largest absolute difference (of numbers, or of norms over the units) over steps that are no
            padding; inf where one is finite and the other is not. None where nothing can be compared.
        position: in visiting order, of the largest one; for a carry 0 is init. None for a final carry.
        t: of the data: the step read there, or the one after which the carry stands. None for init and a final carry.
        example, unit: of the largest one; `unit` is None where norms are compared.
        values: the two numbers (or norms) there.
        place: the same in words.
        note: why not number by number; "" when it is.
    """

    leaf: str
    shapes: tuple[tuple[int, ...] | None, tuple[int, ...] | None]
    largest: float | None = None
    position: int | None = None
    t: int | None = None
    example: int | None = None
    unit: int | None = None
    values: tuple[float, float] | None = None
    place: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """The second run and what differs.

    Attributes:
        inputs: those of the second run.
        name: what tells it from the first, for a legend: ``seed 1``, ``H = 8``, ``GRUCell``.
        problems: why there is no second run, each at the input that says so.
        trial, result: the second run.
        numpy: its own check against the NumPy formulas.
        rows: leaf by leaf; empty where one of the two runs is missing.
    """

    inputs: SequenceInputs
    name: str
    problems: tuple[Problem, ...] = ()
    trial: SequenceTrial | None = None
    result: SequenceResult | None = None
    numpy: Difference | None = None
    rows: tuple[Row, ...] = ()


def other_inputs(inputs: SequenceInputs) -> SequenceInputs | None:
    """The inputs of the second run; None when nothing is compared. Its parameters are a seed's, not a file's."""
    if inputs.compare == NONE:
        return None
    target, source = OTHER[inputs.compare]
    value: Any = getattr(inputs, source)
    return replace(inputs, **{target: value}, compare=NONE, weights="", file=None)


def compared(inputs: SequenceInputs, result: SequenceResult | None) -> Comparison | None:
    """The second run of these inputs, beside the first. Never raises for anything that stands in the inputs.

    Args:
        inputs: of the page.
        result: the first run; None where it has none.
    """
    other = other_inputs(inputs)
    if other is None:
        return None
    _, source = OTHER[inputs.compare]
    bare = Comparison(other, fill(NAMES[inputs.compare], value=getattr(inputs, source)))
    reading = build(other)
    if reading.trial is None:
        return replace(bare, problems=tuple(Problem(source, problem.text) for problem in reading.problems))
    with one_check():
        limits = diagnose_facts(facts_of(reading.trial), None, (Stage.LIMIT,)).found
        if limits:
            said = tuple(dict.fromkeys(found.finding.message for found in limits))
            return replace(bare, problems=tuple(Problem(source, text) for text in said))
        run = outcome(reading.trial)
        if isinstance(run, Raised):
            text = fill(RAISED, type=run.type, text=run.text[:SHOWN])
            return replace(bare, trial=reading.trial, problems=(Problem(source, text),))
        checked = against_numpy(reading.trial, run)
    rows = () if result is None else tuple(difference_rows(result, run))
    return replace(bare, trial=reading.trial, result=run, numpy=checked, rows=rows)


def difference_rows(one: SequenceResult, other: SequenceResult) -> Iterator[Row]:
    """Every leaf of two runs over the same data, in order: carries, final carries, gates; direction by direction."""
    pairs = list(zip(one.directions, other.directions, strict=True))
    for first, second, template in ((a, b, t) for (a, b), t in zip(pairs, (FORWARD, BACKWARD), strict=False)):
        name = template if len(pairs) > 1 else "{leaf}"
        for row in _direction_rows(one.kind, other.kind, first, second):
            yield replace(row, leaf=fill(name, leaf=row.leaf))


def _direction_rows(kind: str, other_kind: str, one: Direction, other: Direction) -> Iterator[Row]:
    kinds, pairs = (kind, other_kind), (one, other)
    parts = [dict(zip(KINDS[k].parts, d.carries, strict=True)) for k, d in zip(kinds, pairs, strict=True)]
    finals = [dict(zip(KINDS[k].parts, d.final, strict=True)) for k, d in zip(kinds, pairs, strict=True)]
    counted = np.concatenate([np.ones((1, one.valid.shape[1]), bool), one.valid])
    for part in dict.fromkeys([*parts[0], *parts[1]]):
        yield _row(part, kinds, (parts[0].get(part), parts[1].get(part)), counted, one.order, after=True)
    for part in (name for name in finals[0] if name in finals[1]):
        yield _row(fill(FINAL, part=part), kinds, (finals[0][part], finals[1][part]), None, one.order)
    names = [[gate.name for gate in KINDS[k].gates] for k in kinds]
    if names[0] != names[1]:
        own = [fill(GATES_OF, cell=k, names=", ".join(n)) for k, n in zip(kinds, names, strict=True)]
        yield Row(GATES, (None, None), note=fill(BOTH, one=own[0], other=own[1]))
        return
    for gate in names[0]:
        yield _row(fill(GATE, name=gate), kinds, (one.gates[gate], other.gates[gate]), one.valid, one.order)


def _row(
    leaf: str,
    kinds: tuple[str, str],
    arrays: tuple[Array | None, Array | None],
    counted: Array | None,
    order: Array,
    *,
    after: bool = False,
) -> Row:
    """One leaf: (T or T + 1, B, H) with the positions that count, or (B, H) with None."""
    one, other = arrays
    shapes = (None if one is None else one.shape, None if other is None else other.shape)
    if one is None or other is None:
        return Row(leaf, shapes, note=fill(NOT_THERE, cell=kinds[0 if one is None else 1], leaf=leaf))
    norms = one.shape[-1] != other.shape[-1]
    note = fill(NORMS, one=one.shape[-1], other=other.shape[-1]) if norms else ""
    a, b = (_norm(values) if norms else values.astype(np.float64) for values in (one, other))
    apart = _apart(a, b)
    if counted is not None:
        apart = np.where(counted if norms else counted[..., None], apart, -1.0)
    if not apart.size or apart.max() < 0:
        return Row(leaf, shapes, note=note)
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(apart)), apart.shape))
    unit = None if norms else index[-1]
    example = index[-1] if norms else index[-2]
    position = index[0] if counted is not None else None
    step = None if position is None else position - 1 if after else position
    t = int(order[step, example]) if step is not None and step >= 0 else None
    place = _place(position, t, example, after)
    return Row(
        leaf=leaf,
        shapes=shapes,
        largest=float(apart[index]),
        position=position,
        t=t,
        example=example,
        unit=unit,
        values=(float(a[index]), float(b[index])),
        place=place if unit is None else fill(UNIT, place=place, unit=unit),
        note=note,
    )


def _place(position: int | None, t: int | None, example: int, after: bool) -> str:
    if position is None:
        return fill(AT_END, example=example)
    if t is None:
        return fill(AT_START, example=example)
    return fill(AFTER if after else AT_STEP, t=t, example=example)


def _norm(values: Array) -> Array:
    return np.asarray(np.sqrt(np.square(values.astype(np.float64)).sum(-1)))


def _apart(a: Array, b: Array) -> Array:
    """|a − b|; 0 where both are the same, NaN and infinities too; inf where one is finite and the other is not."""
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.isfinite(a) & np.isfinite(b)
    with np.errstate(invalid="ignore"):
        apart = np.where(finite, np.abs(a - b), np.inf)
    return np.where(same, 0.0, apart)
