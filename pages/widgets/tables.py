"""Small tables as HTML: a header row, one colour per role, monospaced where types and numbers stand."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

import streamlit as st

from core.base.results import ScanResult
from core.base.text import fill
from core.inputs.scan_check import INIT, NEW_CARRY, YS, Checked, LeafRow, X, Y
from core.plots.scan_view import result_rows

LEAF_HEAD = ("leaf", "path", "type", "axes", "weak")
RESULT_HEAD = ("", "path", "type", "value")
YES, NO = "yes", "no"
DIFFERS = "differs from init"
#: The name of the box in which a table scrolls, for who reads by ear and scrolls by arrow keys.
TABLE_NAME = "Table: {columns}"
PLAIN_TABLE = "Table"
MATRIX_NAME = "Matrix"
#: Characters of a row that fit wherever a value stands.
_SHORT = 24
_ROLE = {INIT: "c", NEW_CARRY: "c", X: "x", "xs": "x", Y: "y", YS: "y", "final carry": "c"}


def table_html(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are HTML already; without a header row where `head` is all empty."""
    top = "".join(f'<th scope="col">{html.escape(fill(word))}</th>' if word else "<td></td>" for word in head)
    top = f"<thead><tr>{top}</tr></thead>" if any(head) else ""
    body = "".join(
        f'<tr><th scope="row">{first}</th>' + "".join(f'<td class="cl-mono">{cell}</td>' for cell in cells) + "</tr>"
        for first, *cells in rows
    )
    return f'{scroll_box(head)}<table class="cl-table">{top}<tbody>{body}</tbody></table></div>'


def scroll_box(head: Sequence[str]) -> str:
    """The opening tag of the box around a table with these columns: it can be reached and scrolled by keyboard."""
    columns = ", ".join(fill(word) for word in head if word)
    name = html.escape(fill(TABLE_NAME, columns=columns) if columns else fill(PLAIN_TABLE), quote=True)
    return f'<div class="cl-scroll" tabindex="0" role="group" aria-label="{name}">'


def role_html(role: str) -> str:
    """A role in its colour."""
    return f'<span class="cl-role-{_ROLE.get(role, "c")}">{html.escape(fill(role))}</span>'


def leaf_table(checked: Checked) -> None:
    """Every leaf: path, shape and dtype, weak type, for init, x, new carry, y and stacked ys."""
    axes = any(row.axes for row in checked.leaves)
    head = [word for word in LEAF_HEAD if axes or word != "axes"]
    st.html(table_html(head, (_leaf(row, axes) for row in checked.leaves)))


def _leaf(row: LeafRow, axes: bool) -> list[str]:
    weak = row.type.aval is not None and row.type.aval.weak
    kind = html.escape(str(row.type))
    if row.broken:
        kind = f'<span class="cl-no">✗ {kind}</span> <small>{fill(DIFFERS)}</small>'
    cells = [role_html(row.role), html.escape(row.path), kind]
    return [*cells, *([html.escape(row.axes)] if axes else []), fill(YES if weak else NO)]


def value_html(value: str, *, alarm: bool = False) -> str:
    """A value written out. The rows of a matrix stay whole: where they may be too long, its box can be scrolled by keys."""
    css = f"cl-value{' cl-no' if alarm else ''}"
    if not value.startswith("[["):
        return f'<span class="{css}">{html.escape(value)}</span>'
    long = max(map(len, value.splitlines())) > _SHORT
    reach = f' tabindex="0" role="group" aria-label="{fill(MATRIX_NAME)}"' if long else ""
    return f'<span class="{css} cl-matrix"{reach}>{html.escape(value)}</span>'


def result_table(checked: Checked) -> None:
    """The final carry and ys, written out."""
    if checked.result is not None:
        values_table(checked.result)


def values_table(result: ScanResult) -> None:
    """The same of a result without a page's check."""
    rows = (
        [role_html(role), html.escape(path), html.escape(kind), value_html(value)]
        for role, path, kind, value in result_rows(result)
    )
    st.html(table_html(RESULT_HEAD, rows))
