"""The contract report of a page: asked for in the "Export" menu, made part by part in this session's worker, shown in place.

    report_item("scan", lambda: Wanted(…))     # draws the menu's button; None where there is nothing to report of

The page itself never waits: the dialog has runs of its own, each a moment long, that follow each other while the worker
works. (One long run could not be called off: Streamlit lets a fragment's run end before it takes the next click in it.)
Each part has its turn in the queue, its own seconds and an outcome of its own; Cancel ends the one that runs and takes
back the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import streamlit as st
from streamlit.errors import StreamlitAPIException

from core.base.limits import LIMITS
from core.base.text import fill
from core.inputs.parse import DTYPES
from core.report.as_json import write_json
from core.report.compose import UnmakeableError, compose
from core.report.declared import FIELDS, DeclaredError, read_declared
from core.report.machine import load
from core.report.markdown import write_markdown
from core.report.model import ContractReport, IncompleteReportError
from core.report.parts import Part, Piece
from core.report.plain import NotPlainError
from core.report.wanted import Wanted
from core.report.worker import read_piece, request
from core.sandbox.pool_ticket import Done, Stopped, StopReason
from pages.widgets.doctor_backend import Ticket, seat
from pages.widgets.frame import calm
from pages.widgets.report_table import report_head, report_table

ITEM, TITLE = "Report", "Contract report"
ITEM_SAYS = (
    "What was run, and which promises held: versions, hashes, criteria with their numbers, a negative test, latency."
)
INTRO = (
    "What was run, on which versions and machine, and which promises held, each with its number. It takes some seconds, "
    "in a worker of your own."
)
NOTHING = "An input cannot be used as it stands, so there is nothing to report of."
DECLARE = "What the data should be (optional)"
DECLARE_SAYS = "What you declare is checked against the data. The page fills in what it knows by itself."
HINTS: Final = {
    "axes": "TBF",
    "features": "rain, wind",
    "dtype": "float32",
    "low": "0",
    "high": "100",
    "target": "rain of the next day, in mm",
}
VALUES, VALUES_SAYS = "Write the values too", "Without it inputs stand there by shape, dtype and hash alone."
MAKE, AGAIN, CANCEL, LOOK = "Make the report", "Make it again", "Cancel", "See how it goes"
MARKDOWN, JSON = "Report (.md)", "Report (.json)"
FILE = "carry-lab-report-{page}.{ending}"
RUNNING = "{what} ({done} of {all})"
QUEUED = "Number {place} in the queue for a worker."
PARTS: Final = {
    Part.GIVEN: "Running it, and what must raise",
    Part.CHECKS: "Checking the criteria",
    Part.GRADIENTS: "Looking at loss and gradients",
    Part.FORMULA: "Working it out by a formula of its own",
    Part.MODE: "Looking at train and eval",
    Part.EAGER: "Running it eagerly",
    Part.JIT: "Comparing eager with jit",
    Part.VMAP: "Comparing eager with vmap",
    Part.LATENCY: "Timing it, again and again",
}
CANCELLED = "Cancelled."
#: Why a part gave nothing, by the pool's reason.
STOPPED: Final = {
    StopReason.TIME: "It was stopped after {seconds} s, the time of one part. Smaller sizes take less, and so does a quieter server.",
    StopReason.MEMORY: "It was stopped at {memory} MB, the memory of one worker. Smaller sizes take less.",
    StopReason.DIED: "Its worker broke off and has been replaced. Try again.",
    StopReason.OUTPUT: "Its answer was larger than is taken.",
    StopReason.CANCELLED: "It was cancelled.",
    StopReason.BUSY: "All workers and the queue are full. Try again in a moment.",
    None: "The worker's answer could not be read. Try again.",
}
TOO_LARGE = "These inputs are more than a worker is sent ({limit:,} bytes). Smaller sizes can be reported."

#: The menu that the dialog is opened from would stay open above it. With a word beside it, the rule stands in the dialog
#: itself, and goes with it; alone it would be kept for the whole page.
_OVER_THE_MENU: Final = '<style>[data-testid="stPopoverBody"] { display: none; }</style><span hidden>.</span>'
#: Of one report.
RETRIES: Final = 2
#: How often a part is asked for again at most, which says each time that it is not done.
AGAINS: Final = 30
#: Seconds of one look at a job.
MOMENT: Final = 0.25


@dataclass(slots=True)
class _Making:
    """One click's work in this session.

    Attributes:
        wanted: of what.
        before: the machine's load when it was begun.
        waiting: parts that are to come; `now` with its `ticket` is under way.
        pieces: what came, or why nothing did; `again`: how often the part under way was asked for before.
        retries: how many parts that were stopped for their time may yet be asked for once more.
        report, problem: the end.
    """

    wanted: Wanted
    before: tuple[float, ...]
    waiting: list[Part] = field(default_factory=lambda: list(Part))
    now: Part | None = None
    ticket: Ticket | None = None
    pieces: dict[Part, Piece | str] = field(default_factory=dict)
    again: int = 0
    retries: int = RETRIES
    report: ContractReport | None = None
    problem: str = ""
    field: str = ""


def report_item(page: str, want: Callable[[], Wanted] | None) -> None:
    """The menu's button, which opens the dialog.

    Args:
        page: the page's name: ``<page>_report`` is the button's key, ``<page>_report_make``, ``…_cancel``, ``…_md``,
            ``…_json`` and ``<page>_report_<field>`` those in the dialog.
        want: of what, without anything declared; called on the click alone. None: there is nothing to report of.
    """
    if st.button(
        fill(ITEM),
        key=f"{page}_report",
        help=fill(ITEM_SAYS) if want is not None else fill(NOTHING),
        disabled=want is None,
        width="stretch",
    ):
        _open(page, want() if want is not None else None)


def _open(page: str, wanted: Wanted | None) -> None:
    st.dialog(fill(TITLE), width="large")(_dialog)(page, wanted)


def _dialog(page: str, wanted: Wanted | None) -> None:
    with calm(f"{page} report"):
        if wanted is None:
            st.caption(fill(NOTHING))
            return
        making: _Making | None = st.session_state.get(_name(page))
        mine = making is not None and _bare(making.wanted) == _bare(wanted)
        st.html(_OVER_THE_MENU)
        st.caption(fill(INTRO))
        _fields(page, making if mine else None)
        busy = mine and making is not None and making.ticket is not None
        with st.container(horizontal=True, gap="small", vertical_alignment="center", key=f"{page}_report_row"):
            st.button(
                fill(AGAIN if mine and making is not None and making.report is not None else MAKE),
                key=f"{page}_report_make",
                type="primary",
                on_click=_start,
                args=(page, wanted),
            )
            cancel = st.empty()
            if busy:
                cancel.button(fill(CANCEL), key=f"{page}_report_cancel", on_click=_cancel, args=(page,))
        if making is None or not mine:
            return
        bar = st.empty()
        if busy:
            # Drawn first: what a run says reaches the browser while it waits.
            bar.progress(len(making.pieces) / len(Part), text=_progress(making))
            _advance(making)
            _look_again(page, making)
            cancel.empty()
            bar.empty()
        _result(page, making)


def _bare(wanted: Wanted) -> Wanted:
    """Without what is declared in the dialog itself."""
    return replace(wanted, declared={}, with_values=False)


def _fields(page: str, making: _Making | None) -> None:
    """What is declared, with what is wrong with it under the field."""
    bad = making.field if making is not None else ""
    with st.expander(fill(DECLARE), expanded=bool(bad), key=f"{page}_report_declare"):
        st.caption(fill(DECLARE_SAYS))
        left, right = st.columns(2)
        for n, (name, label) in enumerate(FIELDS.items()):
            with left if n % 2 == 0 else right:
                key = f"{page}_report_{name}"
                if name == "dtype":
                    st.selectbox(fill(label), ("", *DTYPES), key=key)
                else:
                    st.text_input(
                        fill(label), key=key, placeholder=HINTS[name], max_chars=LIMITS["report_declared"].value
                    )
                if bad == name and making is not None:
                    st.error(making.problem)
        st.checkbox(fill(VALUES), key=f"{page}_report_values", help=fill(VALUES_SAYS))


# --- the work -------------------------------------------------------------------------------------------------------


def _name(page: str) -> str:
    return f"{page}:report"


def _start(page: str, wanted: Wanted) -> None:
    _cancel(page)
    given = {name: str(st.session_state.get(f"{page}_report_{name}") or "") for name in FIELDS}
    values = bool(st.session_state.get(f"{page}_report_values"))
    making = _Making(replace(wanted, declared=given, with_values=values), load())
    st.session_state[_name(page)] = making
    try:
        read_declared(given)
    except DeclaredError as error:
        making.problem, making.field, making.waiting = error.text, error.field, []
        return
    _next(making)


def _next(making: _Making) -> None:
    """Hand in the next part; compose when none is left."""
    if not making.waiting:
        making.now = making.ticket = None
        _end(making)
        return
    making.now = making.waiting.pop(0)
    mine = seat()
    try:
        making.ticket = mine.pool.submit(mine.session, request(making.wanted, making.now))
    except ValueError:  # over the limit of one request
        making.now, making.ticket, making.waiting = None, None, []
        making.problem = fill(TOO_LARGE, limit=LIMITS["request_bytes"].value)


def _advance(making: _Making) -> None:
    """Take what is there, and hand in the next, for a moment."""
    deadline = time.monotonic() + MOMENT
    while (ticket := making.ticket) is not None and ticket.wait(max(0.0, deadline - time.monotonic())):
        if making.ticket is not ticket:  # called off meanwhile
            return
        _take(making, ticket.result)


def _look_again(page: str, making: _Making) -> None:
    """Draw the dialog anew, what was clicked meanwhile first. In a run of the whole page that cannot be: then by a click."""
    try:
        st.rerun(scope="fragment")
    except StreamlitAPIException:
        if making.ticket is not None:
            st.button(fill(LOOK), key=f"{page}_report_look")


def _progress(making: _Making) -> str:
    ticket = making.ticket
    if ticket is not None and ticket.place > 0:
        return fill(QUEUED, place=ticket.place)
    what = fill(PARTS[making.now]) if making.now is not None else ""
    return fill(RUNNING, what=what, done=len(making.pieces) + 1, all=len(Part))


def _take(making: _Making, result: Any) -> None:
    """One result into the books."""
    piece: Piece | None = None
    if isinstance(result, Done):
        with suppress(NotPlainError):
            piece = read_piece(result.answer)
    if piece is not None and piece.more and making.now is not None and making.again < AGAINS:
        making.again += 1
        making.waiting.insert(0, making.now)
        _next(making)
        return
    if isinstance(result, Stopped) and result.reason is StopReason.REPLACED and making.now is not None:
        making.waiting.insert(0, making.now)  # by another panel's: this one queues again
        _next(making)
        return
    stopped = isinstance(result, Stopped) and result.reason is StopReason.TIME
    if stopped and making.retries and making.now is not None:  # the machine may have been busy just then
        making.retries -= 1
        making.waiting.insert(0, making.now)
        _next(making)
        return
    making.again = 0
    if making.now is not None:
        making.pieces[making.now] = piece if piece is not None else _why(result)
    if making.now is Part.GIVEN and (piece is None or piece.problem):
        making.waiting = []  # nothing is known of what was run
    _next(making)


def _why(result: Any) -> str:
    reason = result.reason if isinstance(result, Stopped) else None
    seconds, memory = LIMITS["worker_seconds"].value, LIMITS["worker_memory"].value
    return fill(STOPPED[reason], seconds=seconds, memory=memory)


def _end(making: _Making) -> None:
    try:
        making.report = compose(making.pieces, making.before)
    except UnmakeableError as error:
        making.problem, making.field = str(error), error.field
    except IncompleteReportError:
        making.problem = fill(STOPPED[None])


def _cancel(page: str) -> None:
    making: _Making | None = st.session_state.get(_name(page))
    if making is not None and making.ticket is not None:
        making.ticket.cancel()
        making.ticket = making.now = None
        making.waiting, making.problem = [], fill(CANCELLED)


# --- what is seen ---------------------------------------------------------------------------------------------------


def _result(page: str, making: _Making) -> None:
    if making.problem and not making.field:
        (st.caption if making.problem == fill(CANCELLED) else st.error)(making.problem)
    report = making.report
    if report is None:
        return
    report_head(report)
    with st.container(horizontal=True, gap="small", key=f"{page}_report_files"):
        for ending, label, mime, write in (
            ("md", MARKDOWN, "text/markdown", write_markdown),
            ("json", JSON, "application/json", write_json),
        ):
            st.download_button(
                fill(label),
                partial(write, report),
                fill(FILE, page=page, ending=ending),
                mime,
                key=f"{page}_report_{ending}",
                on_click="ignore",
                icon=":material/download:",
            )
    report_table(page, report)
