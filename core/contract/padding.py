"""Lengths and masks that belong to a padded sequence and are not used (L311): which they are, and what shows it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from core.contract.feeding import only_feeds
from core.contract.masks import Numbers, holes, numbers
from core.contract.script_facts import ScriptFacts
from core.contract.unused import Dead, is_dead, loads, named

#: Parts of names that say lengths, or mask.
SAYS_LENGTHS = frozenset({"len", "lens", "length", "lengths", "seqlen", "seqlens", "sizes", "valid"})
SAYS_MASK = frozenset({"mask", "masks", "valid", "pad", "padding", "keep", "is"})


@dataclass(frozen=True, slots=True, eq=False)
class Unused:
    """An array that says which steps are padding, and that nothing is done with.

    Attributes:
        dead: its name.
        rows: which steps count, ``(B, T)``.
        array: itself.
        axis: of a mask, the axis of the steps; None for lengths.
        sure: whether anything but its shape and range says that it is meant so.
    """

    dead: Dead
    rows: Numbers
    array: Numbers
    axis: int | None
    sure: bool


def unused(
    facts: ScriptFacts, batch: int, steps: int, inputs: Numbers | None, given: ast.expr | None = None
) -> Unused | None:
    """The likeliest array of that kind for a sequence.

    Args:
        facts: of the script.
        batch: B.
        steps: T.
        inputs: the sequence's numbers ``(B, T, …)``, where they are known.
        given: the expression that stands for it: to make it is no use of lengths.
    """
    found = [u for one in named(facts) for u in _as_padding(facts, one, batch, steps, inputs, given)]
    return max(found, key=lambda u: (u.sure, u.axis is None), default=None)


def _as_padding(
    facts: ScriptFacts, dead: Dead, batch: int, steps: int, inputs: Numbers | None, given: ast.expr | None
) -> Iterator[Unused]:
    array = _array(facts, dead)
    if array is None or array.size == 0:
        return
    if array.shape == (batch,) and array.dtype.kind in "iu":
        if array.min() < 0 or array.max() > steps or array.min() == steps:
            return
        rows = np.arange(steps) < array[:, None]
        if not is_dead(facts, dead) and not _fed(facts, dead, given, inputs, rows):
            return
        sure = padded(inputs, rows) or _says(dead, SAYS_LENGTHS)
        if sure or array.max() == steps:
            yield Unused(dead, rows, array, None, sure)
    elif array.ndim == 2 and array.shape in ((batch, steps), (steps, batch)):
        axis = 1 if array.shape == (batch, steps) else 0
        if not np.isin(array, (0, 1)).all() or array.all() or not array.any():
            return
        rows = np.moveaxis(array.astype(bool), axis, 1)
        if not is_dead(facts, dead) and not _fed(facts, dead, given, inputs, rows):
            return
        prefix = not holes(rows, 1) and bool(rows[:, 0].all())
        if array.dtype == bool or (prefix and (padded(inputs, rows) or _says(dead, SAYS_MASK))):
            yield Unused(dead, rows, array, axis, sure=True)


def _fed(facts: ScriptFacts, dead: Dead, given: ast.expr | None, inputs: Numbers | None, rows: Numbers) -> bool:
    """Whether it only went into making the sequence, which is padded just where it says."""
    return given is not None and padded(inputs, rows) and only_feeds(facts, dead.scope, dead.name, given)


def _array(facts: ScriptFacts, dead: Dead) -> Numbers | None:
    """The numbers of what a name is bound to: written out, made, or as they are read."""
    try:
        return numbers(ast.literal_eval(dead.value))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        made = facts.value(dead.value)
    if made is None:  # a list's own value is not seen where it is made in plain Python
        made = next((facts.value(load) for load in loads(facts, dead.scope, dead.name)), None)
    return numbers(made)


def _says(dead: Dead, words: frozenset[str]) -> bool:
    return any(part.lower() in words for _, name in dead.known_as for part in re.split(r"[_\d]+", name))


def padded(inputs: Numbers | None, rows: Numbers) -> bool:
    """Whether a sequence holds one and the same filler at every step that does not count, and not at the last that does."""
    if inputs is None or inputs.shape[:2] != rows.shape or rows.all():
        return False
    filler = inputs[~rows]
    if not (filler == filler[:1]).all():
        return False
    ends = [inputs[b, row.nonzero()[0][-1]] for b, row in enumerate(rows) if row.any() and not row.all()]
    return any(not (end == filler[0]).all() for end in ends)
