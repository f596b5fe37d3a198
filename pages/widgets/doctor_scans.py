"""The scans of a script: the player, the carry over time, the values; the shapes alone where nothing ran."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

import streamlit as st

from core.base.results import ScanResult
from core.base.text import fill
from core.doctor.answer import ScanPanel
from core.plots.player import Follow, LeafSeries, player_payload
from pages.widgets.cards import inline
from pages.widgets.frame import section
from pages.widgets.player import scan_player
from pages.widgets.tables import role_html, table_html, values_table
from pages.widgets.trajectory_panel import trajectory_panel

ON_LINE, SOMEWHERE = "Scan on line {line}", "Scan over {length} steps"
UNKNOWN_LENGTH = "Scan"
AGAIN = "{name} ({count})"
STEPS, ONE_STEP = "{length} steps", "1 step"
TRAJECTORY = "Carry over time"
INIT_HINT, INIT_HINT_REVERSE = "t = 0 is init", "0 steps done is init"
RESULT = "Final carry and ys"
WHICH, THIS_SCAN = "Which scan", "This scan"
HEAD = ("", "leaf", "type")
_CHOSEN = "doctor_scan"
#: Names side by side; more go into a list.
_ABREAST = 4


def chosen_scan(panels: Sequence[ScanPanel]) -> int:
    """Which of the scans is drawn; 0 where there is no choice."""
    chosen = st.session_state.get(_CHOSEN)
    return chosen if isinstance(chosen, int) and 0 <= chosen < len(panels) else 0


def scan_panels(panels: Sequence[ScanPanel]) -> None:
    """The scans, one of them drawn: the player and the carry over time, or its shapes and why there are no values."""
    if not panels:
        return
    names = list(_names(panels))
    if len(panels) > 1:
        if st.session_state.get(_CHOSEN) not in range(len(panels)):
            st.session_state[_CHOSEN] = 0
        choose = st.segmented_control if len(panels) <= _ABREAST else st.selectbox
        choose(
            fill(WHICH),
            range(len(panels)),
            key=_CHOSEN,
            format_func=names.__getitem__,
            label_visibility="collapsed",
        )
    at = chosen_scan(panels)
    _panel(panels[at], names[at] if len(panels) == 1 else fill(THIS_SCAN))


def result_panel(panels: Sequence[ScanPanel]) -> None:
    """The final carry and ys of the scan that is drawn."""
    result = panels[chosen_scan(panels)].result if panels else None
    if result is not None:
        section(fill(RESULT))
        with st.container(border=True, key="doctor_result"):
            values_table(result)


def _names(panels: Sequence[ScanPanel]) -> Iterator[str]:
    seen: dict[str, int] = {}
    for panel in panels:
        name = scan_name(panel)
        seen[name] = seen.get(name, 0) + 1
        yield name if seen[name] == 1 else fill(AGAIN, name=name, count=seen[name])


def scan_name(panel: ScanPanel) -> str:
    """What a scan is called."""
    if panel.line is not None:
        return fill(ON_LINE, line=panel.line)
    return fill(UNKNOWN_LENGTH) if panel.length is None else fill(SOMEWHERE, length=panel.length)


def _panel(panel: ScanPanel, name: str) -> None:
    known = panel.length is not None and panel.line is not None
    length = fill(ONE_STEP if panel.length == 1 else STEPS, length=panel.length) if known else ""
    section(name, hint=length)
    result = panel.result
    if result is None:
        with st.container(border=True, key="doctor_scan_shapes"):
            st.html(f'<p class="cl-quiet">{inline(panel.reason)}</p>')
            _shapes(panel)
        return
    with st.container(key="doctor_flow"):
        scan_player(_played(result), key="doctor_player")
    section(fill(TRAJECTORY), hint=fill(INIT_HINT_REVERSE if result.reverse else INIT_HINT))
    with st.container(key="doctor_plot", gap="xsmall"):
        trajectory_panel(result, panel.names, page="doctor", narrow=True)


def _played(result: ScanResult) -> dict[str, object]:
    carries, xs, ys = (
        [LeafSeries(s.path, str(s.type), "", s.values) for s in series]
        for series in (result.carries, result.xs, result.ys_series)
    )
    return player_payload(
        length=result.length,
        carries=carries,
        xs=xs,
        ys=ys,
        reverse=result.reverse,
        follow=[Follow("doctor_trajectory")],
    )


def _shapes(panel: ScanPanel) -> None:
    rows = [
        (role_html(role) if n == 0 else "", html.escape(path), html.escape(kind))
        for role, leaves in (("init", panel.carry), ("xs", panel.xs), ("ys", panel.ys))
        for n, (path, kind) in enumerate(leaves.items())
    ]
    if rows:
        st.html(table_html(HEAD, rows))
