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
from core.inputs.scan_check import INIT, NEW_CARRY, YS, Checked, LeafRow, X, Y
from core.plots.player import FlowMark, Follow, LeafSeries, Place, player_payload
from core.plots.player_values import leaf_texts

FINAL_CARRY = "final carry {value}"
ONE_YS = "ys {value}"
NO_YS = "no ys"
SEPARATOR = " · "
RAW_LABEL = "JAX raised {type} in the step"
#: Elements of a value that the strip shows, the most first; characters of a value and of all leaves.
_SHOWN, _SHORT, _LONG = (6, 4, 3), 30, 64
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
    follow = [Follow(chart)]
    mark = flow_mark(checked.report)
    if checked.result is None:
        types = {role: _first(checked.leaves, role) for role in (INIT, X, NEW_CARRY, YS)}
        return player_payload(
            length=_length(checked),
            paths=_paths(checked),
            reverse=checked.built.call is not None and bool(checked.built.call.reverse),
            init_type=types[INIT],
            xs_type=_xs_type(checked),
            ys_type=types[YS],
            final_type=types[NEW_CARRY],
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
        flagged=mark,
        follow=follow,
    )


def _leaf(series: Series, axes: str = "") -> LeafSeries:
    return LeafSeries(series.path, str(series.type), axes, series.values)


def _first(leaves: Sequence[LeafRow], role: str) -> str:
    return next((str(row.type) for row in leaves if row.role == role), "")


def _length(checked: Checked) -> int:
    call = checked.built.call
    shape = call.xs.shape if call is not None and hasattr(call.xs, "shape") else ()
    if shape:
        return int(shape[0])
    length = None if call is None else call.length
    return length if isinstance(length, int) and length > 0 else 0


def _paths(checked: Checked) -> dict[str, list[str]]:
    """The leaves of a scan that did not run, by role; a role of which nothing is known is left out."""
    by_role = {role: [row.path for row in checked.leaves if row.role == role] for role in (INIT, NEW_CARRY, Y)}
    paths = {"carry": by_role[INIT]}
    if checked.built.call is not None and checked.built.call.xs is None:
        paths["x"] = []
    if by_role[NEW_CARRY]:  # the step could be traced: no y is known to be none
        paths["y"] = by_role[Y]
    return paths


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
        return FlowMark(_where(worst), worst.message.replace("`", ""), worst.code)  # plain text in the picture
    if report.outcome is Outcome.ERROR and report.error is not None:
        return FlowMark("step", fill(RAW_LABEL, type=report.error.type), "")
    return None


def _where(violation: Violation) -> Place:
    if violation.severity is Severity.LIMIT:
        return "length"
    return _WHERE.get(violation.code, "step")


# --- words ----------------------------------------------------------------------------------------------------------


def summary(result: ScanResult, names: Mapping[str, str]) -> str:
    """The result in a few words: ``final carry 6 · ys [1, 3, 6]``; `names` are those of carry leaves by path."""
    final = _joined([(names.get(s.path, s.path), _short(s.values[-1], s.type)) for s in result.carries])
    ys = _joined([(s.path.removeprefix("y").strip("[]'"), _short(*_stacked(s, result))) for s in result.ys_series])
    return SEPARATOR.join([fill(FINAL_CARRY, value=final), fill(ONE_YS, value=ys) if ys else fill(NO_YS)])


def _joined(leaves: list[tuple[str, str]]) -> str:
    if len(leaves) == 1:
        return leaves[0][1]
    parts = [f"{name} {value}" for name, value in leaves]
    while len(parts) > 1 and len(", ".join(parts)) > _LONG:  # whole leaves: a number is never cut
        parts = [*parts[:-2], "…"] if parts[-1] == "…" else [*parts[:-1], "…"]
    return ", ".join(parts)


def _stacked(series: Series, result: ScanResult) -> tuple[Any, LeafType]:
    """The values of a ys leaf in the order of xs, and its stacked type."""
    aval = series.type.aval
    kind = LeafType("ys", Aval((result.length, *(aval.shape if aval else ())), aval.dtype if aval else ""))
    return series.values[::-1] if result.reverse else series.values, kind


def _short(value: Any, kind: LeafType) -> str:
    """The value where it is short: numbers, or a vector's first few; else the type."""
    array = np.asarray(value)
    if is_key(kind) or array.ndim > 1:
        return str(kind)
    texts = (leaf_texts(array[None], shown).values(shown)[0] for shown in _SHOWN)
    return next((text for text in texts if len(text) <= _SHORT), str(kind))


def full(value: Any) -> str:
    """A value written out; the middle left out where it is long."""
    array = np.asarray(value)
    if array.dtype.kind not in "biu":
        array = array.astype(np.float64)
    return np.array2string(
        array,
        threshold=_FULL,
        edgeitems=4,
        separator=", ",
        max_line_width=10**6,  # the page wraps numbers in a row, and scrolls rows of a matrix
        formatter={"float_kind": lambda number: f"{number:.7g}"},
    )


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
        values, kind = _stacked(series, result)
        rows.append(
            ("ys", "ys" + series.path.removeprefix("y"), str(kind), str(kind) if is_key(kind) else full(values))
        )
    return rows
