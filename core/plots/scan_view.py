"""What the Scan page draws of one evaluation: the player's data, the summary in the strip, values in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from core.base.avals import Aval, LeafType
from core.base.outcome import Outcome, Report
from core.base.results import ScanResult, Series
from core.base.text import fill
from core.base.violation import Severity, Violation
from core.inputs.scan_check import INIT, NEW_CARRY, YS, Checked, LeafRow, X
from core.plots.player import FlowMark, Follow, LeafSeries, Place, player_payload
from core.plots.player_values import leaf_texts

FINAL_CARRY = "final carry {value}"
ONE_YS = "ys {value}"
NO_YS = "no ys"
SEPARATOR = " · "
RAW_LABEL = "JAX raised {type} in the step"
#: Elements of a value that the strip shows, and characters of the whole.
_SHOWN, _LONG = 6, 60
#: Elements of a value that the result panel writes out.
_FULL = 256

#: Where in the diagram a fault is drawn; a rule that is not named here is drawn at the input it is about.
_WHERE: Mapping[str, Place] = {
    "S101": "step",
    "S102": "carry",
    "S103": "carry",
    "S104": "carry",
    "S105": "carry",
    "S106": "xs",
    "S107": "xs",
    "S108": "length",
    "S109": "length",
    "S110": "xs",
    "S111": "length",
    "S112": "xs",
    "S115": "xs",
    "S116": "length",
}


# --- player ---------------------------------------------------------------------------------------------------------


def player_data(checked: Checked, *, chart: str) -> dict[str, Any]:
    """The payload of the player: the run, or, where nothing ran, the diagram with what breaks drawn broken.

    Args:
        checked: an evaluation that has a call.
        chart: key of the trajectory chart, which gets the player's cursor.
    """
    code, follow = checked.step.code, [Follow(chart)]
    mark = flow_mark(checked.report)
    if checked.result is None:
        types = {role: _first(checked.leaves, role) for role in (INIT, X, NEW_CARRY, YS)}
        return player_payload(
            length=_length(checked),
            init_type=types[INIT],
            xs_type=_xs_type(checked),
            ys_type=types[YS],
            final_type=types[NEW_CARRY],
            step_code=code,
            broken=mark or FlowMark("step", "", ""),
            follow=follow,
        )
    run = checked.result
    axes = {row.path: row.axes for row in checked.leaves if row.role == X}
    return player_payload(
        length=run.length,
        carries=[_leaf(s) for s in run.carries],
        xs=[_leaf(s, axes.get(s.path, "")) for s in run.xs],
        ys=[_leaf(s) for s in run.ys_series],
        reverse=run.reverse,
        step_code=code,
        flagged=mark,
        follow=follow,
    )


def _leaf(series: Series, axes: str = "") -> LeafSeries:
    return LeafSeries(series.path, str(series.type), axes, series.values)


def _first(leaves: Sequence[LeafRow], role: str) -> str:
    return next((str(row.type) for row in leaves if row.role == role), "")


def _length(checked: Checked) -> int:
    call = checked.built.call
    shape = np.shape(call.xs) if call is not None and hasattr(call.xs, "shape") else ()
    return min(int(shape[0]), 5) if shape else 0


def _xs_type(checked: Checked) -> str:
    """Xs as it was given: a list of arrays is written as such, for that is what is wrong with it."""
    call = checked.built.call
    xs: Any = None if call is None else call.xs
    if isinstance(xs, list) and xs:
        return f"list of {len(xs)}"
    if xs is None or not hasattr(xs, "dtype"):
        return ""
    return str(LeafType("xs", Aval(tuple(xs.shape), str(xs.dtype))))


def flow_mark(report: Report | None) -> FlowMark | None:
    """The worst fault as a mark in the diagram; None when nothing is broken."""
    if report is None:
        return None
    if report.broken:
        worst = report.broken[0]
        return FlowMark(_where(worst), worst.message, worst.code)
    if report.outcome is Outcome.ERROR and report.error is not None:
        return FlowMark("step", fill(RAW_LABEL, type=report.error.type), "")
    return None


def _where(violation: Violation) -> Place:
    if violation.severity is Severity.LIMIT:
        return "length"
    return _WHERE.get(violation.code, "step")


# --- words ----------------------------------------------------------------------------------------------------------


def summary(result: ScanResult) -> str:
    """The result in a few words: ``final carry 6 · ys [1, 3, 6]``."""
    final = _joined([(s.path, _short(s.values[-1], s.type)) for s in result.carries])
    ys = _joined([(s.path, _short_stacked(s, result)) for s in result.ys_series])
    return SEPARATOR.join([fill(FINAL_CARRY, value=final), fill(ONE_YS, value=ys) if ys else fill(NO_YS)])


def _joined(leaves: list[tuple[str, str]]) -> str:
    if len(leaves) == 1:
        return leaves[0][1]
    text = ", ".join(f"{path.partition('[')[1]}{path.partition('[')[2]} {value}" for path, value in leaves)
    return text if len(text) <= _LONG else text[: _LONG - 1] + "…"


def _short(value: Any, kind: LeafType) -> str:
    array = np.asarray(value)
    if is_key(kind) or array.size > _SHOWN:
        return str(kind)
    return leaf_texts(array[None], _SHOWN).values(_SHOWN)[0]


def _short_stacked(series: Series, result: ScanResult) -> str:
    values = series.values[::-1] if result.reverse else series.values
    kind = LeafType("ys", Aval(values.shape, series.type.aval.dtype if series.type.aval else ""))
    if is_key(kind) or values.ndim != 1:
        return str(kind)
    return leaf_texts(values[None], _SHOWN).values(_SHOWN)[0]


def full(value: Any) -> str:
    """A value written out, as NumPy prints it; the middle left out where it is long."""
    array = np.asarray(value)
    if str(array.dtype) in ("bfloat16", "float16"):
        array = array.astype(np.float32)
    return np.array2string(array, threshold=_FULL, edgeitems=4, separator=", ", max_line_width=100)


def is_key(kind: LeafType) -> bool:
    """Whether the leaf holds typed PRNG keys."""
    return kind.aval is not None and kind.aval.dtype.startswith("key<")


def result_rows(result: ScanResult) -> list[tuple[str, str, str, str]]:
    """(role, path, type, value) of each leaf of the final carry and of the stacked ys."""
    rows = []
    for series in result.carries:
        value = str(series.type) if is_key(series.type) else full(series.values[-1])
        rows.append(("final carry", series.path, str(series.type), value))
    for series in result.ys_series:
        values = series.values[::-1] if result.reverse else series.values
        aval = series.type.aval
        kind = LeafType("ys", Aval((result.length, *(aval.shape if aval else ())), aval.dtype if aval else ""))
        path = "ys" + series.path.removeprefix("y")
        rows.append(("ys", path, str(kind), str(kind) if is_key(kind) else full(values)))
    return rows
