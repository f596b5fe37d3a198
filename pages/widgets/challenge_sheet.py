"""How far somebody is, in this session alone, and the result sheet of it to take along."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

import streamlit as st

from core.base.text import fill
from core.challenges.challenge import Challenge, Kind
from core.challenges.generate import MORE
from core.challenges.sheet import as_csv, as_json, rows
from pages.widgets import challenge_progress as progress
from pages.widgets.challenge_list import listed
from pages.widgets.export_menu import CSV_TYPE, Offer
from pages.widgets.frame import section
from pages.widgets.state import PageState

PROGRESS = "Your progress"
SOLVED_OF, SOLVED, OF = "{count} of {all} solved", "{count} solved", "{count} of {all}"
KEPT = "Kept in this session only: it is gone when the page is closed or reloaded. The sheet keeps it."
NOTHING = "The sheet is empty until you have tried something."
SHEET_CSV, SHEET_JSON = "Result sheet (.csv)", "Result sheet (.json)"
CSV, JSON = "Sheet (.csv)", "Sheet (.json)"
SHEET_SAYS = "What you tried, how often, with how many hints, and whether it was right. Nothing about you, and nothing you typed."
CSV_FILE, JSON_FILE, JSON_TYPE = "challenges.csv", "challenges.json", "application/json"

_BAR = '<span class="cl-track" aria-hidden="true"><i class="cl-bar cl-bar-right" style="width: {share}%"></i></span>'


def progress_card(state: PageState) -> None:
    """How many are solved, by kind, and the sheet beside it."""
    name, seed = str(state.values["set"]), int(state.values["seed"])
    found = listed(name, seed)
    solved = [one for one in found if progress.attempt(one, seed).right]
    section(fill(PROGRESS))
    with st.container(border=True, key="challenges_progress", gap="small"):
        share = 0 if name == MORE or not found else 100 * len(solved) / len(found)
        words = fill(SOLVED if name == MORE else SOLVED_OF, count=len(solved), all=len(found))
        bar = "" if name == MORE else _BAR.format(share=f"{share:.1f}")
        kinds = "".join(_kind(kind, found, solved, endless=name == MORE) for kind in Kind)
        st.html(
            f'<p class="cl-challenge-count">{html.escape(words)}</p>{bar}<ul class="cl-challenge-kinds">{kinds}</ul>'
        )
        tried = bool(rows(progress.attempts().values()))
        with st.container(horizontal=True, gap="small"):
            csv, json = _sheets()
            _download(fill(CSV), CSV_FILE, CSV_TYPE, "challenges_sheet_csv", csv if tried else None)
            _download(fill(JSON), JSON_FILE, JSON_TYPE, "challenges_sheet_json", json if tried else None)
        st.caption(fill(KEPT if tried else NOTHING))


def _kind(kind: Kind, found: Sequence[Challenge], solved: Sequence[Challenge], *, endless: bool) -> str:
    """A line of the list: a kind, and how many of it are solved; "" where the set has none of it."""
    count, whole = (sum(one.kind is kind for one in some) for some in (solved, found))
    if not whole:
        return ""
    words = fill(SOLVED if endless else OF, count=count, all=whole)
    return f"<li>{html.escape(kind.text)} <b>{html.escape(words)}</b></li>"


def _download(label: str, file: str, mime: str, key: str, make: Callable[[], bytes] | None) -> None:
    st.download_button(
        label,
        make or b"",
        file,
        mime,
        key=key,
        help=fill(SHEET_SAYS),
        icon=":material/download:",
        on_click="ignore",
        disabled=make is None,
    )


def sheet_offers() -> tuple[Offer, Offer]:
    """The result sheet as it stands, for the menu of exports."""
    csv, json = _sheets()
    return (
        Offer("csv", fill(SHEET_CSV), CSV_FILE, CSV_TYPE, csv, fill(SHEET_SAYS)),
        Offer("json", fill(SHEET_JSON), JSON_FILE, JSON_TYPE, json, fill(SHEET_SAYS)),
    )


def _sheets() -> tuple[Callable[[], bytes], Callable[[], bytes]]:
    """What writes the two. They are called at the click, outside of any run: no session is at hand there."""
    now = tuple(progress.attempts().values())
    return lambda: as_csv(now), lambda: as_json(now)
