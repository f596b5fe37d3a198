"""A comparison of paths in words: one sentence first, then a table of stages by paths, then what Simplify found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from core.base.parting import Comparison, Lever, Parted, Path, Stage, StageCheck, Try, found_lever
from core.base.text import fill
from core.plots.player_values import ELLIPSIS, short_number

PATH_WORDS: Final[Mapping[Path, str]] = {
    Path.EAGER: "eager",
    Path.LOOP: "Python loop",
    Path.JIT: "jit",
    Path.VMAP: "vmap over examples",
    Path.PADDED: "padded",
    Path.UNROLLED: "unrolled",
    Path.FLOAT64: "float64",
    Path.BACKEND: "other backend",
}
STAGE_WORDS: Final[Mapping[Stage, str]] = {
    Stage.DATA: "data",
    Stage.KEYS: "keys",
    Stage.MODE: "mode",
    Stage.STATE: "state types",
    Stage.SHAPES: "shapes and dtypes",
    Stage.FORWARD: "forward",
    Stage.LOSS: "loss",
    Stage.GRADIENTS: "gradients",
    Stage.UPDATE: "update",
}
LEVER_WORDS: Final[Mapping[Lever, str]] = {
    Lever.LENGTH: "the length T",
    Lever.BATCH: "the batch B",
    Lever.FEATURES: "the features F",
    Lever.HIDDEN: "the hidden size H",
    Lever.LAYERS: "the number of layers",
    Lever.DROPOUT: "dropout",
    Lever.JIT: "jit",
}
SMALL_WORDS: Final[Mapping[Lever, str]] = {
    Lever.LENGTH: "T = 1",
    Lever.BATCH: "B = 1",
    Lever.FEATURES: "F = 1",
    Lever.HIDDEN: "H = 1",
    Lever.LAYERS: "one layer",
    Lever.DROPOUT: "no dropout",
    Lever.JIT: "no jit",
}

AGREE = "All paths agree. The largest difference is {largest}, at {stage} ({path})."
EXACT = "All paths agree to the last bit."
NOTHING = "Nothing was compared."
PART = "They part at {stage}, {place}: {reference} {want}, {path} {got}."
#: What a path does otherwise: a fact beside a parting, no diagnosis of it.
OTHERWISE: Final[Mapping[Path, str]] = {
    Path.LOOP: "A loop calls the step T times; a scan calls it once, to trace it.",
    Path.JIT: "jit compiles the whole as one program, which fuses and reorders operations.",
    Path.VMAP: "Mapped, each example is run alone, so that none can reach another.",
    Path.PADDED: "Padded, zeros come after the last step; without lengths or a mask they are taken for data.",
    Path.UNROLLED: "Unrolled, several steps are compiled as one, and operations are fused across them.",
    Path.FLOAT64: "64 bits keep 16 digits instead of 7, and random floats drawn in 64 bits are other ones.",
    Path.BACKEND: "Another device adds and multiplies in another order.",
}
NARROW = "float32"
PLACE_T, PLACE, AT = "{leaf}, t = {t}", "{leaf}", "{leaf} at [{index}]"
ROUNDING = (
    "The numbers of this leaf are large beside this one: the difference is no more than their rounding. "
    "It is beyond the tolerance all the same."
)
AMPLIFIED = (
    "All stages before it agree, so the update itself makes more of their rounding: Adam, for one, divides each "
    "gradient by its own size, however small it is."
)
RAISED = "The {path} path raises {type} at {stage}: {message}"
BROKEN = "The computation itself raises {type} at {stage}, so there is nothing to compare with: {message}"
HOLDS, PARTS, RAISES = "✓ {largest}", "✗ {place}", "✗ {type}"
SAME = "✓"
TOLERANCE = "Tolerance: {tolerance}. Beyond it paths part; it is never widened, and NaN equals NaN at the same place."
EACH = "{stage} {tolerance}"
LEFT_OUT = "Left out: {path}. {reason}"

EVEN_SMALL = "They part even with {small}: nothing that was taken away is needed for it."
NOT_AGAIN = "With everything put back they did not part again: what differs is not the same in every run."
APPEARS = "It appears when {lever} is put back"
ALONE, TOGETHER, FIRST = "{appears}, and with that alone.", "{appears}, after {before}.", "{appears}."
STILL_LOOKING = "Looking for what it takes."
NO_LEVERS = "It is as small as it can be already."
TRY_ALL, TRY_BACK, TRY_ALONE = "everything small: {small}", "{lever} put back", "{lever} put back, all else small"

#: Characters of an exception's message, and of a value, that a sentence holds.
_MESSAGE, _VALUE = 240, 60


def headline(comparison: Comparison) -> tuple[str, ...]:
    """What is to be said first: one sentence; where paths part, one more that helps to understand it."""
    first = comparison.first
    if first is None:
        checks = [c for c in comparison.checks if c.leaves]
        if not checks:
            return (fill(NOTHING),)
        most = max(checks, key=lambda c: c.largest)
        if most.largest == 0:
            return (fill(EXACT),)
        return (fill(AGREE, largest=_number(most.largest), stage=_stage(most), path=fill(PATH_WORDS[most.path])),)
    if first.error is not None:
        template = BROKEN if first.path is comparison.reference else RAISED
        fields = {"type": first.error.type, "stage": _stage(first), "message": _cut(first.error.message, _MESSAGE)}
        return (fill(template, path=fill(PATH_WORDS[first.path]), **fields),)
    parted = first.parted
    if parted is None:
        return ()
    said = fill(
        PART,
        stage=_stage(first),
        place=place_of(parted),
        reference=fill(NARROW if first.path is Path.FLOAT64 else PATH_WORDS[comparison.reference]),
        want=_cut(parted.want, _VALUE),
        path=fill(PATH_WORDS[first.path]),
        got=_cut(parted.got, _VALUE),
    )
    gradients = [c for c in comparison.checks if c.path is first.path and c.stage is Stage.GRADIENTS]
    if first.stage is Stage.UPDATE and gradients and all(check.ok for check in gradients):
        return said, fill(AMPLIFIED)
    return said, fill(ROUNDING if parted.rounding else OTHERWISE[first.path])


def place_of(parted: Parted) -> str:
    """The leaf, its index and t: ``carry[0] at [1, 3], t = 12``."""
    leaf = fill(AT, leaf=parted.leaf, index=", ".join(map(str, parted.index))) if parted.index else parted.leaf
    return fill(PLACE, leaf=leaf) if parted.t is None else fill(PLACE_T, leaf=leaf, t=parted.t)


def table_rows(comparison: Comparison) -> tuple[tuple[str, ...], list[list[tuple[str, bool | None]]], list[str]]:
    """Stages by paths.

    Returns:
        the paths in words; for each stage a row of (text, whether it agrees; None where nothing was compared); the
        stages in words.
    """
    paths = [p for p in Path if any(c.path is p for c in comparison.checks)]
    stages = [s for s in Stage if any(c.stage is s for c in comparison.checks)]
    found = {(c.stage, c.path): c for c in comparison.checks}
    rows = [[_cell(found.get((stage, path))) for path in paths] for stage in stages]
    return tuple(fill(PATH_WORDS[p]) for p in paths), rows, [fill(STAGE_WORDS[s]) for s in stages]


def tolerance_line(comparison: Comparison) -> str:
    """The tolerance: one where all stages have the same (exact ones aside), else that of each."""
    by_stage = {c.stage: c.tolerance for c in comparison.checks if c.tolerance is not None}
    known = [used for used in by_stage.values() if used is not None]
    if not known:
        return ""
    inexact = {used.text for used in known if used.rtol or used.atol}
    if len(inexact) <= 1:
        text = inexact.pop() if inexact else known[0].text
    else:
        text = "; ".join(fill(EACH, stage=fill(STAGE_WORDS[s]), tolerance=u.text) for s, u in by_stage.items() if u)
    return fill(TOLERANCE, tolerance=text)


def left_out_lines(comparison: Comparison) -> list[str]:
    """Each path that was not run, with its reason."""
    return [fill(LEFT_OUT, path=fill(PATH_WORDS[path]), reason=reason) for path, reason in comparison.left_out]


def simplified(levers: tuple[Lever, ...], tried: tuple[Try, ...], *, done: bool = True) -> str:
    """What Simplify found, a sentence. `done`: whether all reruns were made."""
    if not levers:
        return fill(NO_LEVERS)
    if tried and tried[0].parted is not None:
        return fill(EVEN_SMALL, small=small_words(levers))
    lever = found_lever(levers, tried)
    if lever is None:
        return fill(NOT_AGAIN) if done and tried and not tried[-1].small else fill(STILL_LOOKING)
    appears = fill(APPEARS, lever=fill(LEVER_WORDS[lever]))
    at = levers.index(lever)
    if at == 0:
        return fill(ALONE, appears=appears)
    alone = [one for one in tried if one.small == frozenset(levers) - {lever}]
    if not alone:
        return fill(FIRST, appears=appears)
    if alone[-1].parted is not None:
        return fill(ALONE, appears=appears)
    return fill(TOGETHER, appears=appears, before=", ".join(fill(LEVER_WORDS[one]) for one in levers[:at]))


def try_rows(levers: tuple[Lever, ...], tried: tuple[Try, ...]) -> list[tuple[str, str, bool]]:
    """Each rerun: what was put back, where they parted (or that they agree), whether they agree."""
    out = []
    for count, one in enumerate(tried):
        ok = one.parted is None
        out.append(
            (try_words(levers, one.small, count), fill(SAME) if one.parted is None else _cell(one.parted)[0], ok)
        )
    return out


def try_words(levers: tuple[Lever, ...], small: frozenset[Lever], count: int) -> str:
    """What the `count`-th rerun does."""
    if count == 0:
        return fill(TRY_ALL, small=small_words(levers))
    if len(small) == len(levers) - count:
        return fill(TRY_BACK, lever=fill(LEVER_WORDS[levers[count - 1]]))
    (lever,) = frozenset(levers) - small
    return fill(TRY_ALONE, lever=fill(LEVER_WORDS[lever]))


def small_words(levers: tuple[Lever, ...]) -> str:
    """``T = 1, one layer, no jit``."""
    return ", ".join(fill(SMALL_WORDS[lever]) for lever in levers)


def _cell(check: StageCheck | None) -> tuple[str, bool | None]:
    if check is None:
        return "", None
    if check.error is not None:
        return fill(RAISES, type=check.error.type), False
    if check.parted is not None:
        return fill(PARTS, place=place_of(check.parted)), False
    text = fill(HOLDS, largest=_number(check.largest)) if check.largest else fill(SAME)
    return text, True


def _stage(check: StageCheck) -> str:
    return fill(STAGE_WORDS[check.stage])


def _number(value: float) -> str:
    return short_number(np.float64(float(f"{value:.2g}")))


def _cut(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + ELLIPSIS
