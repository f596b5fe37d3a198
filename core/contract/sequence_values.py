"""What N501 says of a layer over sequences: the first value that is not finite, by direction, step, example, leaf, unit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from core.base.sequences import Array, Direction, Masking, SequenceResult
from core.base.text import fill
from core.base.violation import Severity
from core.contract.precision import largest
from core.contract.rule import Finding, Measure
from core.contract.sequence_facts import SequenceFacts, ran
from core.contract.sequence_padding import place
from core.contract.subject import SequenceTrial
from core.contract.wording import show
from core.runners.cell_formulas import KINDS
from core.runners.layers import parameters
from core.runners.sequence_read import masking_of

BORN = (
    "{leaf} of example {example} becomes {value} at unit {unit} in step {t}{way}. It is born there: x, the carry before "
    "it and the weights are finite.{gate}"
)
GATE = " The first gate that is not finite is {gate}. The largest number of x is {top} there; {dtype} ends at {end}."
CAME = (
    "{source} is {value}, and from step {t} on it is in {leaf} of example {example}{way}: {count} of the {total} numbers "
    "that come out are NaN or infinite."
)
X = "x at t = {t} of example {example}, feature {feature},"
INIT = "init's {leaf} of example {example}, unit {unit},"
INIT_BEGINS = INIT.partition("{")[0]
WEIGHT = "A weight of gate {gate}"
BACKWARD = " of the backward direction"
OUTPUT = "the output"
CLAIM = "The layer was run and what came out of steps that count was counted: this many numbers are NaN or infinite."
WHY = (
    "Each carry is fed to the next step: one value that is not finite poisons all that follow, and JAX raises nothing."
)


@dataclass(frozen=True, slots=True, eq=False)
class _Spot:
    """The first value of one example that is not finite: where it stands, and whether all that went in was finite."""

    backward: bool
    position: int
    example: int
    leaf: str
    unit: int
    value: float
    source: str
    source_value: float

    @property
    def born(self) -> bool:
        """Whether nothing that is not finite went into the step."""
        return not self.source


def not_finite(facts: SequenceFacts) -> Iterator[Finding]:
    """At most one finding: the first birth, else the first that came in."""
    trial, result = facts.trial, facts.result
    if result is None:
        return
    spots = [spot for at, way in enumerate(result.directions) for spot in _spots(trial, way, backward=bool(at))]
    if not spots:
        return
    first = min(spots, key=lambda s: (not s.born, s.backward, s.position, s.example))
    way = result.directions[int(first.backward)]
    t = int(way.order[first.position, first.example])
    fields = {
        "leaf": first.leaf,
        "example": t if trial.misread else first.example,
        "value": show(np.float32(first.value)),
        "unit": first.unit,
        "t": first.example if trial.misread else t,
        "way": BACKWARD if first.backward else "",
    }
    if first.born:
        yield Finding(
            message=fill(BORN, **fields, gate=_gate(trial, way, first, t)),
            place=place(facts, "source"),
            measure=Measure(CLAIM, count_not_finite),
            severity=Severity.WARNING,
            silent=True,
            why=WHY,
            path=first.leaf,
        )
        return
    count, total = _count(trial, result)
    came = {"source": first.source, "count": count, "total": total} | fields
    came["value"] = show(np.float32(first.source_value))
    role = "init" if first.position == 0 and first.source.startswith(INIT_BEGINS) else "source"
    yield Finding(
        message=fill(CAME, **came),
        place=place(facts, role),
        severity=Severity.NOTE,
        silent=True,
        why=WHY,
        path=first.leaf,
    )


def _counting(trial: SequenceTrial, way: Direction) -> Array:
    """(T, B): positions whose values count. What the layer is told is padding reaches nobody."""
    told = masking_of(trial) is not Masking.NONE
    return way.valid if told else np.ones_like(way.valid)


def _bad_steps(trial: SequenceTrial, way: Direction) -> Array:
    """(T, B): positions that count and leave anything not finite."""
    bad = ~np.isfinite(way.outputs).all(-1)
    for part in way.carries:
        bad |= ~np.isfinite(part[1:]).all(-1)
    counting: Array = bad & _counting(trial, way)
    return counting


def _spots(trial: SequenceTrial, way: Direction, *, backward: bool) -> Iterator[_Spot]:
    bad = _bad_steps(trial, way)
    for example in np.flatnonzero(bad.any(0)):
        yield _spot(trial, way, int(np.argmax(bad[:, example])), int(example), backward=backward)


def _spot(trial: SequenceTrial, way: Direction, position: int, example: int, *, backward: bool) -> _Spot:
    parts = KINDS[trial.kind].parts
    after = [(name, part[position + 1, example]) for name, part in zip(parts, way.carries, strict=True)]
    after.append((OUTPUT, way.outputs[position, example]))
    leaf, row = next((name, row) for name, row in after if not np.isfinite(row).all())
    unit = int(np.argmax(~np.isfinite(row)))
    source, value = _source(trial, way, position, example, backward=backward)
    return _Spot(backward, position, example, leaf, unit, float(row[unit]), source, value)


def _source(trial: SequenceTrial, way: Direction, position: int, example: int, *, backward: bool) -> tuple[str, float]:
    """What went into a step and is not finite, in words, and its value; "" when all is finite."""
    t = int(way.order[position, example])
    x = trial.read[t, example]
    if not np.isfinite(x).all():
        feature = int(np.argmax(~np.isfinite(x)))
        at = {"t": example, "example": t} if trial.misread else {"t": t, "example": example}
        return fill(X, **at, feature=feature), float(x[feature])
    for name, part in zip(KINDS[trial.kind].parts, way.carries, strict=True):
        row = part[position, example]
        if not np.isfinite(row).all():  # only init: of the carries of steps this is the first
            unit = int(np.argmax(~np.isfinite(row)))
            return fill(INIT, leaf=name, example=example, unit=unit), float(row[unit])
    for name, weights in parameters(trial)[int(backward)].items():
        for array in (weights.kernel_x, weights.kernel_h, weights.bias):
            wild = np.asarray(array)[~np.isfinite(np.asarray(array))]
            if wild.size:
                return fill(WEIGHT, gate=name), float(wild[0])
    return "", 0.0


def _gate(trial: SequenceTrial, way: Direction, spot: _Spot, t: int) -> str:
    bad = [name for name, values in way.gates.items() if not np.isfinite(values[spot.position, spot.example]).all()]
    if not bad:
        return ""
    dtype = str(way.outputs.dtype)
    top = np.abs(trial.read[t, spot.example]).max()
    return fill(GATE, gate=bad[0], top=show(top), dtype=dtype, end=show(largest(dtype)))


def _count(trial: SequenceTrial, result: SequenceResult) -> tuple[int, int]:
    """How many numbers of carries and outputs at steps that count are not finite, and of how many."""
    bad = total = 0
    for way in result.directions:
        counting = _counting(trial, way)
        for values in (*(part[1:] for part in way.carries), way.outputs):
            chosen = values[counting]
            bad += int((~np.isfinite(chosen)).sum())
            total += chosen.size
    return bad, total


def count_not_finite(trial: SequenceTrial) -> float:
    """The same count.

    Raises:
        ValueError: the layer raised.
    """
    return float(_count(trial, ran(trial))[0])
