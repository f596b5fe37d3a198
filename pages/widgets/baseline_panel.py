"""The panel "Baseline": record a small set of cases of the page's state, and compare with a file that was recorded.

    baseline_panel("lstm", inputs.values, file=inputs.file, ready=look.step is not None)

Keys: the containers ``<page>_baseline`` and ``<page>_baseline_verdict``; ``<page>_baseline_record``, ``…_own``,
``…_cancel``, ``…_save``, ``…_file_0``. Draw it where nothing comes after that must not wait: while something is under
way, one case is run between two looks.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from typing import Final

import streamlit as st

from core.base.limits import LIMITS
from core.base.text import fill
from core.base.violation import Severity
from core.inputs.fields import Value, shorten
from core.regress.baseline import Baseline
from core.regress.compare import Verdict
from core.regress.file import SUFFIX
from core.regress.state import PageState, page_state
from core.regress.words import CASE_COLUMNS, COLUMNS, beside, case_rows, headline, recorded, rows
from core.weights.cell import CellWeights
from pages.widgets.baseline_work import (
    Comparing,
    Desk,
    Recording,
    cancel,
    desk_of,
    go_on,
    start_comparing,
    start_recording,
)
from pages.widgets.cards import Mark, draw_marks
from pages.widgets.frame import section
from pages.widgets.tables import table_html

TITLE, HINT = "Baseline", "record now, compare later"
INTRO = (
    "Seven small cases of what stands on this page (as it is, one example, zeros, boundary values, sizes that all differ, "
    "an empty sequence, a shape that must fail), with outputs, carries, loss and gradients in one file. Compare with it "
    "after a change, on another machine, or with other versions."
)
RECORD, CANCEL, SAVE = "Record", "Cancel", "Save the baseline"
RECORD_HELP = "Runs the cases, one after the other. Nothing leaves the page until you save the file."
NOT_READY = "These inputs do not run, so there is nothing to record."
OWN = "Keep the numbers that I typed"
OWN_HELP = "Otherwise seeded numbers of the same shape and dtype stand for them in the file: {fields}."
COMPARE = "Compare with a file"
COMPARE_HELP = (
    "A baseline that was recorded here or by python -m core.regress, at most {limit} MB. Its own state is run again, "
    "whatever stands on this page. Nothing in it is unpickled, and nothing on this page is changed."
)
RECORDING, COMPARING, READING = (
    "Recording: {case} ({done} of {all}).",
    "Comparing: {case} ({done} of {all}).",
    "Reading the file.",
)
WAITING = "Number {place} in the queue: one case is run at a time, a case of each baseline in turn."
STALE = "This is of the inputs before."
STATE_OF = "What was compared is the state in the file, of the page {page}: {state}."
AS_OPENED, FIELD = "as it opens", "{label} = {value}"
NAMES: Final = {"scan": "Scan", "lstm": "LSTM cell", "sequence": "Sequence", "gradients": "Gradients"}
CASES = "The cases"
FILE = "carry-lab-{page}-baseline" + SUFFIX
MIME = "application/octet-stream"
#: Seconds between two cases: the browser's turn.
TICK = 0.1
#: Settings of a file's state that are written out, and characters of each.
_SETTINGS, _SHOWN = 6, 24
#: Rows of the table of what moved.
_ROWS = 10
_MB = 1024 * 1024


def baseline_panel(page: str, values: Mapping[str, Value], *, file: CellWeights | None = None, ready: bool) -> None:
    """The panel. See the module for the keys.

    Args:
        page: the page's name.
        values: of its fields, as they stand.
        file: parameters from a file, which they may name.
        ready: whether they run.
    """
    desk, state = desk_of(page), page_state(page)
    token = state.tidy(values, file)
    section(fill(TITLE), hint=fill(HINT))
    with st.container(border=True, key=f"{page}_baseline", gap="small"):
        st.html(f'<p class="cl-quiet">{html.escape(fill(INTRO))}</p>')
        _record_row(state, token, file, desk, ready=ready)
        if desk.now is not None:
            _watch(page, desk)
        if desk.recording is not None and not desk.recording.busy:
            _recorded(page, desk.recording, stale=desk.recording.token != token)
        _compare_box(page, desk)
        if desk.comparing is not None and not desk.comparing.busy:
            with st.container(key=f"{page}_baseline_verdict", gap="small"):
                _compared(desk.comparing)


# --- record ---------------------------------------------------------------------------------------------------------


def _record_row(
    state: PageState, values: Mapping[str, Value], file: CellWeights | None, desk: Desk, *, ready: bool
) -> None:
    page, busy = state.name, desk.now is not None
    own_key = f"{page}_baseline_own"
    typed = state.hidden(values, 0)[1] if ready else ()
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key=f"{page}_baseline_row"):
        st.button(
            fill(RECORD),
            key=f"{page}_baseline_record",
            icon=":material/radio_button_checked:",
            disabled=busy or not ready,
            help=fill(RECORD_HELP if ready else NOT_READY),
            on_click=start_recording,
            args=(page, values, file, own_key),
        )
        if busy:
            st.button(
                fill(CANCEL),
                key=f"{page}_baseline_cancel",
                icon=":material/stop_circle:",
                on_click=cancel,
                args=(page,),
            )
        elif typed:
            labels = [state.table(values).field(name).label for name in typed]
            st.checkbox(fill(OWN), key=own_key, help=fill(OWN_HELP, fields=", ".join(labels)))


def _recorded(page: str, work: Recording, *, stale: bool) -> None:
    if work.problem:
        draw_marks({"": [Mark(Severity.ERROR, work.problem)]}, "")
        return
    if work.baseline is None:
        return
    with st.container(key=f"{page}_baseline_stale" if stale else f"{page}_baseline_recorded", gap="small"):
        if stale:
            st.caption(fill(STALE))
        st.download_button(
            fill(SAVE),
            work.data,
            fill(FILE, page=page),
            MIME,
            key=f"{page}_baseline_save",
            on_click="ignore",
            icon=":material/download:",
        )
        _lines(recorded(work.baseline, len(work.data)))
        with st.expander(fill(CASES)):
            _table(CASE_COLUMNS, case_rows(work.baseline))


# --- compare --------------------------------------------------------------------------------------------------------


def _compare_box(page: str, desk: Desk) -> None:
    limit = LIMITS["baseline_bytes"].value
    key = f"{page}_baseline_file_{desk.taken}"
    st.file_uploader(
        fill(COMPARE),
        key=key,
        max_upload_size=max(1, -(-limit // _MB)),
        help=fill(COMPARE_HELP, limit=f"{limit / _MB:g}"),
        on_change=start_comparing,
        args=(page, key),
        disabled=desk.now is not None,
    )


def _compared(work: Comparing) -> None:
    if work.problem:
        draw_marks({"": [Mark(Severity.ERROR, work.problem)]}, "")
    elif work.verdict is not None and work.baseline is not None:
        _verdict(work.baseline, work.verdict)


def _verdict(baseline: Baseline, verdict: Verdict) -> None:
    word, words = headline(verdict)
    css = "cl-ok" if verdict.same else "cl-no"
    st.html(f'<p role="status"><span class="{css}">{html.escape(word)}</span> {html.escape(words)}</p>')
    if not verdict.same:
        _table(COLUMNS, rows(verdict, _ROWS))
    _lines((*beside(baseline, verdict, _ROWS), _state_of(baseline)))


def _state_of(baseline: Baseline) -> str:
    """The state that a file holds, by the fields that are not as the page opens."""
    table = page_state(baseline.page).table(baseline.values)
    params = table.to_link(baseline.values).params
    said = [
        fill(FIELD, label=field.label, value=shorten(params[field.url], _SHOWN))
        for field in table.fields
        if field.url in params
    ]
    more = "…" if len(said) > _SETTINGS else ""
    state = ", ".join(said[:_SETTINGS]) + more if said else fill(AS_OPENED)
    return fill(STATE_OF, page=fill(NAMES[baseline.page]), state=state)


# --- while it runs --------------------------------------------------------------------------------------------------


def _watch(page: str, desk: Desk) -> None:
    """How far it is, looked at again and again; the page runs again when it is over."""
    desk.watched = False
    st.fragment(_looked, run_every=TICK)(page)


def _looked(page: str) -> None:
    desk = desk_of(page)
    place = st.empty()
    _say(place, desk)
    if not desk.watched:
        desk.watched = True
        return  # a part of the page's own run: what it has yet to draw must not wait
    go_on(desk)
    _say(place, desk)
    if desk.now is None:
        st.rerun()


def _say(place: st.delta_generator.DeltaGenerator, desk: Desk) -> None:
    work = desk.now
    if work is None:
        return
    case, done, all_ = work.done
    text = fill(RECORDING if isinstance(work, Recording) else COMPARING, case=case, done=done, all=all_)
    if not case:
        text = fill(READING)
    if desk.place:
        text = fill(WAITING, place=desk.place)
    place.html(f'<p class="cl-quiet" role="status">{html.escape(text)}</p>')


def _table(columns: tuple[str, ...], lines: Iterable[tuple[str, ...]]) -> None:
    st.html(table_html(columns, [[html.escape(cell) for cell in line] for line in lines]))


def _lines(lines: Iterable[str]) -> None:
    st.html("".join(f'<p class="cl-quiet">{html.escape(line)}</p>' for line in lines))
