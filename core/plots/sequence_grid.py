"""The batch as the one JSON value that the grid in the browser draws: rows are examples, columns are t.

A cell says two things: whether the step is part of its sequence, and whether the layer counts it. Where the two differ
something is wrong, and the grid shows it there: padding that moves the carry, or real steps that are lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from core.base.sequences import Direction, Masking, SequenceResult, Slip
from core.base.text import fill
from core.contract.subject import SequenceTrial
from core.plots.sequence_axis import runs
from core.plots.sequence_view import LEFT, RIGHT, Chosen

type Array = np.ndarray[Any, Any]

VERSION: Final = 1
#: Cells that are drawn one by one; of a larger batch only the runs are drawn, and the drawing says so.
MAX_COLUMNS, MAX_ROWS = 64, 16

#: States of a cell: counted and real, padding that is left out, padding that is counted, a real step that is lost.
REAL, PADDING, COUNTED, LOST = "1", "0", "!", "?"

#: What the grid says; fields of the ones for a cell are filled in the browser.
TEXT: Final[Mapping[str, str]] = {
    "title": "The batch: {batch} examples, {length} steps",
    "cell": "example {example}, t = {t}: {state}",
    "nan": "{cell}; not a number in it",
    "choose": "example {example}, {length}: show it below",
    REAL: "part of the sequence",
    PADDING: "padding, left out",
    COUNTED: "padding, and the layer counts it",
    LOST: "a real step that the layer leaves out",
    "axis": "axis {number}",
    "toggle": "A click turns a step into padding or back; the layer is then given a mask. By keyboard: arrows, Space.",
    "fixed": "The data are typed, stale or locked, so their padding is set at the left.",
    "reduced": "{batch} × {length} cells are too many to draw one by one: each row shows where its real steps are. "
    "The mask can be typed at the left.",
}
SCANS_RIGHT: Final = "the layer scans axis {axis}, time: t = 0 first"
SCANS_LEFT: Final = "the layer scans axis {axis}, time, from the end"
SCANS_BOTH: Final = "two layers scan axis {axis}, time: one from each end"
SCANS_DOWN: Final = "the layer scans axis {axis}, the batch: it takes examples for steps"
OF: Final = "{count} of {length}"
NO_STEPS: Final = "no steps"


def grid_payload(
    trial: SequenceTrial,
    result: SequenceResult | None,
    chosen: Chosen,
    *,
    chart: str = "",
    editable: bool = True,
    stale: bool = False,
) -> dict[str, Any]:
    """What the grid needs.

    Args:
        trial: the layer and its batch; its data are there.
        result: its run, for the order in which steps are read; None when it raised.
        chosen: what is looked at, within the result.
        chart: key of the chart below, whose clicks choose a point.
        editable: whether a click turns a step over.
        stale: what is drawn belongs to earlier inputs.
    """
    batch, length = trial.batch, trial.length
    real, counted = real_steps(trial), counted_steps(trial)
    reduced = length > MAX_COLUMNS or batch > MAX_ROWS
    states = np.where(real, np.where(counted, REAL, LOST), np.where(counted, COUNTED, PADDING))
    levels = _levels(trial)
    rows = [
        {
            "length": _length_text(trial, real, b),
            "bad": _bad_length(trial, b),
            "wrong": bool((states[b] == LOST).any() or (states[b] == COUNTED).any()),
            **({"runs": _row_runs(states[b])} if reduced else {"states": "".join(states[b]), "levels": levels[b]}),
        }
        for b in range(batch)
    ]
    return {
        "version": VERSION,
        "text": {**TEXT, **{name: fill(TEXT[name], batch=batch, length=length) for name in ("title", "reduced")}},
        "left": LEFT,
        "right": RIGHT,
        "length": length,
        "batch": batch,
        "axes": {"B": trial.axes.index("B"), "T": trial.axes.index("T")},
        "scan": scan_of(trial),
        "misread": trial.misread,
        "scan_text": _scan_text(trial),
        "rows": rows,
        "used": [s for s in (REAL, PADDING, COUNTED, LOST) if bool((states == s).any())],
        "reduced": reduced,
        "editable": editable and not reduced and not stale,
        "stale": stale,
        "chosen": _chosen(trial, result, chosen),
        "chart": chart,
    }


def real_steps(trial: SequenceTrial) -> Array:
    """(B, T) bool: the steps that are part of their sequence, told or not."""
    batch, length = trial.batch, trial.length
    if trial.mask is not None:
        return np.asarray(trial.mask, bool)
    given = [*(trial.lengths or ())][:batch]
    ends = np.array([*map(float, given), *[float(length)] * (batch - len(given))])
    return np.asarray(np.arange(length)[None, :] < ends[:, None])


def counted_steps(trial: SequenceTrial) -> Array:
    """(B, T) bool: the steps that decide which carry is returned, with the mistakes that the layer makes."""
    batch, length = trial.batch, trial.length
    everything = np.ones((batch, length), bool)
    if trial.misread:
        return everything
    if Slip.SUMMED_MASK in trial.slips:
        return np.asarray(np.arange(length)[None, :] < real_steps(trial).sum(axis=1)[:, None])
    if trial.masking is Masking.MASK and trial.mask is not None:
        return np.asarray(trial.mask, bool)
    if trial.masking is Masking.LENGTHS and trial.lengths is not None:
        ends = [_returned(n, length) for n in [*trial.lengths][:batch]]
        ends += [length] * (batch - len(ends))
        return np.asarray(np.arange(length)[None, :] < np.array(ends)[:, None])
    return everything


def _returned(given: Any, length: int) -> int:
    """How many steps are behind the carry at index ``given − 1``: 0 means index −1, the last one."""
    count = int(given)
    return min(count, length) if count > 0 else max(count + length, 0)


def scan_of(trial: SequenceTrial) -> str:
    """Where the scan runs in the picture: ``right``, ``left``, ``both``; ``down``, ``up``, ``updown`` over the batch."""
    way = "both" if trial.bidirectional else "left" if trial.reverse else "right"
    return {"right": "down", "left": "up", "both": "updown"}[way] if trial.misread else way


def _scan_text(trial: SequenceTrial) -> str:
    words = {"right": SCANS_RIGHT, "left": SCANS_LEFT, "both": SCANS_BOTH}
    return fill(words.get(scan_of(trial), SCANS_DOWN), axis=0 if trial.time_major else 1)


def _length_text(trial: SequenceTrial, real: Array, example: int) -> str:
    length = trial.length
    if not length:
        return fill(NO_STEPS)
    if trial.mask is None and trial.lengths is not None and example < len(trial.lengths):
        return fill(OF, count=trial.lengths[example], length=length)
    return fill(OF, count=int(real[example].sum()), length=length)


def _bad_length(trial: SequenceTrial, example: int) -> bool:
    if trial.mask is not None or trial.lengths is None or example >= len(trial.lengths):
        return False
    value = float(trial.lengths[example])
    return not (value.is_integer() and 1 <= value <= trial.length)


def _levels(trial: SequenceTrial) -> list[str]:
    """Per example a digit for each step: how large its input is, 0 to 9; ``n`` where it is not finite."""
    data = trial.inputs if trial.axes == "BTF" else trial.inputs.swapaxes(0, 1)
    finite = np.isfinite(data)
    size = np.abs(np.where(finite, data, 0)).mean(axis=2) if data.shape[2] else np.zeros(data.shape[:2])
    top = float(size.max(initial=0.0)) or 1.0
    digits = np.clip((size / top * 9).round(), 0, 9).astype(int).astype(str)
    return ["".join(row) for row in np.where(finite.all(axis=2), digits, "n")]


def _row_runs(states: Array) -> list[list[Any]]:
    """Neighbours of one state joined: [first, one after the last, state]."""
    out = [[first, after, state] for state in (REAL, PADDING, COUNTED, LOST) for first, after in runs(states == state)]
    return sorted(out)


def _chosen(trial: SequenceTrial, result: SequenceResult | None, chosen: Chosen) -> dict[str, Any]:
    """The chosen example's row and the column that the chosen step read; the other way round when misread."""
    step = None
    if result is not None and chosen.position:
        direction: Direction = result.directions[chosen.side]
        step = int(direction.order[chosen.position - 1, chosen.example])
    return {"row": step, "column": chosen.example} if trial.misread else {"row": chosen.example, "column": step}
