"""What stands beneath the drawing of a cell: the shape of everything with its axis letters, and the checks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from core.base.avals import LeafType
from core.base.text import fill
from core.base.tolerance import Difference
from core.plots.cell_equations import brief
from core.runners.cells import CellStep

PARAMETER: Final = "parameter"
CARRY: Final = "carry"
NEW_CARRY: Final = "new carry"
OUTPUT: Final = "output"
INPUT: Final = "input"
AXIS: Final = "{letter}={size}"
BLOCKS: Final = "{blocks}·H"

AGREES, DIFFERS = "equals the NumPy formula", "differs from the NumPy formula"
NUMPY_CHECK: Final = "NumPy formula against the cell"
EAGER_CHECK: Final = "without jit against jit"
VMAP_CHECK: Final = "vmap over the batch against jit"
NO_BATCH: Final = "not made: the carry has no batch of its own to map over"
NOT_MADE: Final = "–"


@dataclass(frozen=True, slots=True)
class ShapeRow:
    """One array: its role (a word and the colour's name), path, type, and axes with letters (``(B=2, H=4)``)."""

    word: str
    role: str
    path: str
    type: str
    axes: str


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One comparison: what with what, the result, whether it is within tolerance (None: not made), and then why not."""

    name: str
    result: str
    agrees: bool | None
    why: str = ""


def shape_rows(step: CellStep) -> tuple[ShapeRow, ...]:
    """Carry, input, new carry and output, then every parameter."""
    parts = step.kind.parts
    one = len(step.carry) != len(parts)
    before = [
        ShapeRow(CARRY, "h" if one else parts[i], t.path, str(t), _axes(t, "BH")) for i, t in enumerate(step.carry)
    ]
    after = [ShapeRow(NEW_CARRY, p, t.path, str(t), _axes(t, "BH")) for p, t in zip(parts, step.new_carry, strict=True)]
    x = step.inputs
    given = ShapeRow(INPUT, "x", "x", f"{x.dtype}[{','.join(map(str, x.shape))}]", _letters(x.shape, "BF"))
    output = ShapeRow(OUTPUT, "y", step.result.path, str(step.result), _axes(step.result, "BH"))
    parameters = (ShapeRow(PARAMETER, "", t.path, str(t), _parameter_axes(step, t)) for t in step.parameters)
    return (*before, given, *after, output, *parameters)


def _axes(leaf: LeafType, letters: str) -> str:
    return "" if leaf.aval is None else _letters(leaf.aval.shape, letters)


def _letters(shape: tuple[int, ...], letters: str) -> str:
    """Letters from the last axis backwards; one more axis in front is time."""
    names = ("T" + letters)[-len(shape) :] if 0 < len(shape) <= len(letters) + 1 else ""
    return _joined(tuple(names), shape)


def _joined(names: tuple[str, ...], shape: tuple[int, ...]) -> str:
    axes = [fill(AXIS, letter=n, size=s) for n, s in zip(names, shape, strict=True)] if names else []
    return f"({', '.join(axes)})" if axes else ""


def _parameter_axes(step: CellStep, leaf: LeafType) -> str:
    if leaf.aval is None:
        return ""
    layer, _, part = leaf.path.removeprefix("cell.").partition(".")
    wide = fill(BLOCKS, blocks=step.kind.blocks) if step.kind.blocks > 1 else "H"
    first = "F" if re.fullmatch(r"i.|if_|dense_i", layer) else "H"
    return _joined((first, wide) if part == "kernel" else (wide,), leaf.aval.shape)


def check_rows(step: CellStep) -> tuple[CheckRow, ...]:
    """The step worked out in other ways."""
    return (
        _check(NUMPY_CHECK, step.numpy),
        _check(EAGER_CHECK, step.eager),
        CheckRow(VMAP_CHECK, NOT_MADE, None, fill(NO_BATCH)) if step.vmap is None else _check(VMAP_CHECK, step.vmap),
    )


def _check(name: str, difference: Difference) -> CheckRow:
    return CheckRow(name, brief(difference.largest), difference.within)


def agreement(step: CellStep) -> str:
    """The NumPy check in a few words."""
    return fill(AGREES if step.numpy.within else DIFFERS)
