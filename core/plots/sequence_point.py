"""The equations of one chosen point with its numbers in, and whether they give the value that is plotted there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from core.base.sequences import SequenceResult
from core.base.text import fill
from core.base.tolerance import Difference, difference
from core.contract.subject import SequenceTrial
from core.plots.cell_equations import columns, equations, exact, spelled
from core.plots.sequence_view import Chosen
from core.runners.cell_formulas import KINDS, GateWeights
from core.runners.cells import StepNumbers
from core.runners.sequence_point import Point

type Array = np.ndarray[Any, Any]

INITIAL: Final = "t = 0 is the initial carry: no step made it. {values}"
GIVEN: Final = "{part} = {value}"
STEP: Final = "Step {step} reads x[{t}] of example {example} and makes carry {position}."
STEP_MISREAD: Final = "Step {step} reads what belongs to example {t}, and makes carry {position}."
KEPT: Final = "The mask is 0 there, so the layer keeps the carry that was: what the step made is left out."
EQUALS: Final = "{part}′ equals the plotted {part} at t = {position}: {value}"
APART: Final = "{part}′ is {largest} away from the plotted {part} at t = {position}: {value}"


@dataclass(frozen=True, slots=True)
class Line:
    """One equation: what it gives (a gate's letter, ``c′``, ``h′``), with letters, and with numbers."""

    slot: str
    symbols: str
    numbers: str


@dataclass(frozen=True, slots=True)
class Agreement:
    """Whether a part of the carry equals what is plotted, in words."""

    part: str
    text: str
    agrees: bool


@dataclass(frozen=True, slots=True)
class PointWords:
    """What stands beside the plot for the chosen point.

    Attributes:
        opening: which step it is.
        lines: the equations; empty for the initial carry.
        agreements: one for each part of the carry.
        spelled: products written out term by term, (symbols, numbers); empty where they are too long.
    """

    opening: str
    lines: tuple[Line, ...] = ()
    agreements: tuple[Agreement, ...] = ()
    spelled: tuple[tuple[str, str], ...] = ()


def point_words(
    trial: SequenceTrial,
    result: SequenceResult,
    chosen: Chosen,
    step: Point | None,
    weights: dict[str, GateWeights] | None = None,
) -> PointWords:
    """The words for a point.

    Args:
        trial: the layer.
        result: its run.
        chosen: the point, within the result.
        step: the step that made it, taken apart; None for the initial carry.
        weights: the cell's parameters by gate, for the products.
    """
    direction, parts = result.directions[chosen.side], KINDS[result.kind].parts
    plotted = {
        p: c[chosen.position, chosen.example, chosen.unit] for p, c in zip(parts, direction.carries, strict=True)
    }
    if step is None or not chosen.position:
        values = ", ".join(fill(GIVEN, part=part, value=exact(value)) for part, value in plotted.items())
        return PointWords(fill(INITIAL, values=values))
    opening = fill(
        STEP_MISREAD if trial.misread else STEP,
        step=chosen.position - 1,
        t=step.t,
        example=chosen.example,
        position=chosen.position,
    )
    one = of_unit(step, chosen.unit)
    texts = columns(one, (0,))
    lines = tuple(
        Line(e.slot, e.symbols, _filled(e.numbers, {name: column[0] for name, column in texts.items()}))
        for e in equations(step.kind)
    )
    products = tuple((s["symbols"], s["texts"][chosen.unit]) for s in spelled(step, weights, (0,))) if weights else ()
    if not step.kept[0, chosen.unit]:
        return PointWords(f"{opening} {fill(KEPT)}", lines, (), products)
    agreements = tuple(
        _agreement(part, value, difference(after[0], np.array([value])), chosen.position)
        for (part, value), after in zip(plotted.items(), one.after, strict=True)
    )
    return PointWords(opening, lines, agreements, products)


def of_unit(step: StepNumbers, unit: int) -> StepNumbers:
    """The step with one unit: every array (…, 1)."""

    def cut(values: Array) -> Array:
        return values[..., unit : unit + 1]

    gates = tuple(
        replace(
            g,
            from_x=cut(g.from_x),
            from_h=cut(g.from_h),
            bias=cut(g.bias),
            pre=cut(g.pre),
            value=cut(g.value),
        )
        for g in step.gates
    )
    return replace(
        step,
        before=tuple(map(cut, step.before)),
        after=tuple(map(cut, step.after)),
        output=cut(step.output),
        gates=gates,
    )


def _filled(numbers: str, texts: dict[str, str]) -> str:
    """The template's fields are names like ``+ig`` and ``(c)``, which `str.format` does not take."""
    head, *rest = numbers.split("{")
    return head + "".join(texts[name] + tail for name, _, tail in (part.partition("}") for part in rest))


def _agreement(part: str, plotted: Any, apart: Difference, position: int) -> Agreement:
    template = EQUALS if apart.within else APART
    largest = f"{apart.largest:.3g}"
    text = fill(template, part=part, position=position, value=exact(np.float32(plotted)), largest=largest)
    return Agreement(part, text, apart.within)
