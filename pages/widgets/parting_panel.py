"""The divergence finder's panel: "Find where the paths part", path by path in a worker, and "Simplify".

    parting_panel("scan", dict(values), lambda: of_scan(values))     # a preset, by the Scan page's field values
    parting_of_layer("sequence", inputs.run, look.trial)             # a layer
    parting_of_training("gradients", inputs, spec)                   # one update of a model

- `page`: first part of every key: ``<page>_parting_paths``, ``…_run``, ``…_cancel``, ``…_simplify``, and the containers
  ``<page>_parting`` and ``<page>_parting_stale``.
- `token`: what the computation was made of (frozen inputs, a mapping of values): compared by ``==``, to say when a
  result is of other inputs.
- `build`: makes the computation as plain data (`core.doctor.parting_job.of_scan`, `of_layer`), called on a click alone.

Draw it where nothing comes after that must not wait: a run of the page looks at what the worker has, and never waits
longer than a moment. All runs are in this session's own worker: each path has its turn in the queue, its own seconds,
and an outcome of its own; Cancel ends the one that runs and takes back the rest.
"""

from __future__ import annotations

import html
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import streamlit as st

from core.base.limits import LIMITS
from core.base.parting import Comparison, Lever, Path, StageCheck, Try, next_try
from core.base.text import fill
from core.base.training import TrainingSpec
from core.contract.subject import SequenceTrial
from core.doctor import parting_job
from core.doctor.wire import Unreadable
from core.plots.parting_table import (
    PATH_WORDS,
    headline,
    left_out_lines,
    simplified,
    table_rows,
    tolerance_line,
    try_rows,
    try_words,
)
from core.runners.parting import REFERENCE, USUAL
from core.runners.parting_layer import Layered
from core.sandbox.pool_ticket import Done, Stopped, StopReason
from pages.widgets.doctor_backend import Ticket, seat
from pages.widgets.tables import table_html

FIND, CANCEL, SIMPLIFY = "Find where the paths part", "Cancel", "Simplify"
PATHS = "Compare eager with"
INTRO = (
    "The same computation, run in several ways and compared stage by stage: tree structure first, then every leaf. "
    "Eager is the reference."
)
RUNNING = "Running {what} ({done} of {all})."
BUILDING = "Building what is to be run."
TRYING = "Simplifying: {what}."
QUEUED = "Number {place} in the queue for a worker."
SIMPLIFY_HINT = "Run again with the smallest sizes, one layer, no dropout and no jit, and put them back one at a time."
STALE = "This is of the inputs before."
STAGE, RERUN = "stage", "rerun"
CHOOSE = "Choose one way at least."
#: Why a path gave nothing, by the pool's reason.
STOPPED: Final = {
    StopReason.TIME: "{path}: stopped after {seconds} s, the time of one path. A shorter sequence takes less.",
    StopReason.MEMORY: "{path}: stopped at {memory} MB, the memory of one worker. Smaller sizes take less.",
    StopReason.DIED: "{path}: its worker broke off and has been replaced. Try again.",
    StopReason.OUTPUT: "{path}: its answer was larger than is taken.",
    StopReason.CANCELLED: "{path}: cancelled.",
    StopReason.BUSY: "{path}: all workers and the queue are full. Try again in a moment.",
    None: "{path}: the worker's answer could not be read. Try again.",
}
TOO_LARGE = "These data are more than a worker is sent ({limit} bytes). Smaller sizes can be compared."

#: Every path but the reference.
ALL_PATHS: Final = tuple(path for path in Path if path is not REFERENCE)
#: Seconds between two looks at a job, how long a look is, and how long the page waits at once.
TICK, STAY, MOMENT = 0.15, 0.25, 0.3


@dataclass(slots=True)
class _Hunt:
    """One click's work in this session: what is asked, what came, what is under way (None: the building before it)."""

    token: Any
    of: dict[str, Any]
    waiting: list[Path | None]
    all: int
    checks: list[StageCheck] = field(default_factory=list)
    left: list[tuple[Path, str]] = field(default_factory=list)
    stopped: list[tuple[Path, StopReason | None]] = field(default_factory=list)
    levers: tuple[Lever, ...] = ()
    tried: tuple[Try, ...] = ()
    simplifying: Path | None = None
    small: frozenset[Lever] = frozenset()
    now: Path | None = None
    ticket: Ticket | None = None
    too_large: bool = False

    @property
    def comparison(self) -> Comparison:
        """As far as it is known."""
        return Comparison(REFERENCE, tuple(self.checks), tuple(self.left))


def parting_panel(
    page: str, token: object, build: Callable[[], dict[str, Any]], *, paths: tuple[Path, ...] = ALL_PATHS
) -> None:
    """Button, choices, progress, result. See the module for the arguments.

    Args:
        page: the page's name.
        token: what `build` makes the computation of.
        build: the computation as plain data.
        paths: those that are offered, beside eager.
    """
    hunt: _Hunt | None = st.session_state.get(_name(page))
    if hunt is not None:
        _advance(hunt, MOMENT)
    with st.container(border=True, key=f"{page}_parting", gap="small"):
        st.html(f'<p class="cl-quiet">{html.escape(fill(INTRO))}</p>')
        st.pills(
            fill(PATHS),
            list(paths),
            selection_mode="multi",
            default=[path for path in USUAL if path in paths],
            format_func=lambda path: fill(PATH_WORDS[path]),
            key=f"{page}_parting_paths",
        )
        _buttons(page, token, build, hunt)
        if hunt is not None and hunt.ticket is not None:
            _watch(page)
        if hunt is not None:
            _shown(page, token, hunt)


def parting_of_layer(page: str, token: object, trial: SequenceTrial) -> None:
    """The panel for a layer that ran. `token`: the frozen inputs that the trial was made of."""
    parting_panel(page, token, lambda: parting_job.of_layer(Layered(trial)))


def parting_of_training(page: str, token: object, spec: TrainingSpec) -> None:
    """The panel for one update of a model: keys, mode, loss, gradients and update too."""
    parting_panel(page, token, lambda: parting_job.of_layer(Layered.of_training(spec)))


def _name(page: str) -> str:
    return f"{page}:parting"


def _buttons(page: str, token: object, build: Callable[[], dict[str, Any]], hunt: _Hunt | None) -> None:
    busy = hunt is not None and hunt.ticket is not None
    chosen = st.session_state.get(f"{page}_parting_paths", USUAL)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.button(
            fill(FIND),
            key=f"{page}_parting_run",
            icon=":material/call_split:",
            disabled=busy or not chosen,
            on_click=_start,
            args=(page, token, build),
        )
        if busy:
            st.button(
                fill(CANCEL),
                key=f"{page}_parting_cancel",
                icon=":material/stop_circle:",
                on_click=_cancel,
                args=(page,),
            )
        elif hunt is not None and _simplifiable(hunt) is not None and hunt.token == token:
            st.button(
                fill(SIMPLIFY),
                key=f"{page}_parting_simplify",
                help=fill(SIMPLIFY_HINT),
                on_click=_simplify,
                args=(page,),
            )
        elif not chosen:
            st.html(f'<span class="cl-quiet">{html.escape(fill(CHOOSE))}</span>')


# --- the work -------------------------------------------------------------------------------------------------------


def _start(page: str, token: object, build: Callable[[], dict[str, Any]]) -> None:
    chosen = [path for path in Path if path in st.session_state.get(f"{page}_parting_paths", USUAL)]
    waiting: list[Path | None] = [None, REFERENCE, *chosen]
    hunt = _Hunt(token, build(), waiting, len(waiting) - 1)
    st.session_state[_name(page)] = hunt
    _next(hunt)


def _simplify(page: str) -> None:
    hunt: _Hunt | None = st.session_state.get(_name(page))
    if hunt is not None:
        hunt.simplifying, hunt.tried = _simplifiable(hunt), ()
        _next(hunt)


def _simplifiable(hunt: _Hunt) -> Path | None:
    """The path whose parting can be simplified; None when there is none (a reference that raises has no other side)."""
    first = hunt.comparison.first
    return None if first is None or first.path is REFERENCE or not hunt.levers else first.path


def _cancel(page: str) -> None:
    hunt: _Hunt | None = st.session_state.get(_name(page))
    if hunt is None or hunt.ticket is None:
        return
    hunt.ticket.cancel()
    given_up = (hunt.simplifying,) if hunt.simplifying is not None else (hunt.now, *hunt.waiting)
    hunt.stopped += [(path, StopReason.CANCELLED) for path in given_up if path is not None]
    _end(hunt)


def _end(hunt: _Hunt) -> None:
    """Nothing more is to come."""
    hunt.waiting, hunt.ticket, hunt.now, hunt.simplifying, hunt.small = [], None, None, None, frozenset()


def _next(hunt: _Hunt) -> None:
    """Hand in what comes next; nothing when all is done."""
    if not hunt.waiting and hunt.simplifying is not None:
        small = next_try(hunt.levers, hunt.tried)
        if small is not None:
            hunt.small, hunt.waiting = small, [None, REFERENCE, hunt.simplifying]
    if not hunt.waiting:
        _end(hunt)
        return
    hunt.now = hunt.waiting.pop(0)
    mine = seat()
    try:
        hunt.ticket = mine.pool.submit(mine.session, parting_job.request(hunt.of, hunt.now, hunt.small))
    except ValueError:  # over the limit of one request
        hunt.too_large = True
        _end(hunt)


def _advance(hunt: _Hunt, seconds: float) -> None:
    """Take what is there, and hand in the next, for so long."""
    deadline = time.monotonic() + seconds
    while (ticket := hunt.ticket) is not None and ticket.wait(max(0.0, deadline - time.monotonic())):
        # Meanwhile another run of this session may have called it off, or handed in the next: then it is not ours.
        if hunt.ticket is not ticket:
            return
        _take(hunt, ticket.result)


def _take(hunt: _Hunt, result: Any) -> None:
    """One result into the books."""
    answer = None
    if (
        isinstance(result, Stopped) and result.reason is StopReason.REPLACED
    ):  # by another panel's: this one queues again
        hunt.waiting.insert(0, hunt.now)
        _next(hunt)
        return
    if isinstance(result, Done):
        with suppress(Unreadable):
            answer = parting_job.read(result.answer)
    if answer is None:
        _stopped(hunt, result.reason if isinstance(result, Stopped) else None)
    elif hunt.simplifying is not None:
        first = Comparison(REFERENCE, answer.checks).first
        if hunt.now is hunt.simplifying or first is not None:
            hunt.tried, hunt.waiting = (*hunt.tried, Try(hunt.small, first)), []
    else:
        hunt.levers = answer.levers
        hunt.checks += [check for check in answer.checks if check not in hunt.checks]
        if answer.left_out and hunt.now is not None:
            hunt.left.append((hunt.now, answer.left_out))
        if hunt.now is REFERENCE and any(check.error is not None for check in answer.checks):
            hunt.waiting = []
    _next(hunt)


def _stopped(hunt: _Hunt, reason: StopReason | None) -> None:
    """There is no answer: say so, and go on with the paths that are left, if there is anything to compare them with."""
    path = REFERENCE if hunt.now is None else hunt.now
    hunt.stopped.append((path if hunt.simplifying is None else hunt.simplifying, reason))
    if path is REFERENCE or hunt.simplifying is not None:
        hunt.waiting, hunt.simplifying = [], None
    elif hunt.waiting:  # its worker was replaced, and the next one knows nothing yet
        hunt.waiting = [None, REFERENCE, *hunt.waiting]


# --- what is seen ---------------------------------------------------------------------------------------------------

#: Set once the page is drawn: only then may a look take its time, and end in a rerun.
_WATCHED: Final = "{page}:parting_watched"


def _watch(page: str) -> None:
    """How the job goes, looked at again and again; the page runs again when something came."""
    st.session_state.pop(_WATCHED.format(page=page), None)
    st.fragment(_looked, run_every=TICK)(page)


def _looked(page: str) -> None:
    hunt: _Hunt | None = st.session_state.get(_name(page))
    if hunt is None:
        return
    st.html(f'<p class="cl-quiet" role="status">{html.escape(_progress(hunt))}</p>')
    watched = _WATCHED.format(page=page)
    if watched not in st.session_state:
        st.session_state[watched] = True
        return  # a part of the page's own run: begun anew here, it would lose the widgets that it has yet to draw
    before = (len(hunt.checks), len(hunt.tried), hunt.now)
    _advance(hunt, STAY)
    if hunt.ticket is None or before != (len(hunt.checks), len(hunt.tried), hunt.now):
        st.rerun()


def _progress(hunt: _Hunt) -> str:
    ticket = hunt.ticket
    if ticket is None:
        return ""
    place = ticket.place
    if place > 0:
        return fill(QUEUED, place=place)
    if hunt.simplifying is not None:
        return fill(TRYING, what=try_words(hunt.levers, hunt.small, len(hunt.tried)))
    if hunt.now is None:
        return fill(BUILDING)
    done = min(hunt.all, hunt.all - len(hunt.waiting))
    return fill(RUNNING, what=fill(PATH_WORDS[hunt.now]), done=max(1, done), all=hunt.all)


def _shown(page: str, token: object, hunt: _Hunt) -> None:
    stale = hunt.token != token
    with st.container(key=f"{page}_parting_stale" if stale else f"{page}_parting_result", gap="small"):
        if stale:
            st.caption(fill(STALE))
        _result(hunt)
        _simpler(hunt)


def _result(hunt: _Hunt) -> None:
    seconds, memory = LIMITS["worker_seconds"].value, LIMITS["worker_memory"].value
    if hunt.too_large:
        st.html(f"<p>{html.escape(fill(TOO_LARGE, limit=f'{LIMITS["request_bytes"].value:,}'))}</p>")
    comparison = hunt.comparison
    if comparison.checks and not (hunt.waiting and comparison.first is None):
        css = "cl-ok" if comparison.first is None else "cl-no"
        said, *more = headline(comparison)
        rest = "".join(f" {html.escape(text)}" for text in more)
        st.html(f'<p><span class="{css}">{html.escape(said)}</span>{rest}</p>')
    if comparison.checks:
        paths, rows, stages = table_rows(comparison)
        cells = ([html.escape(stage), *map(_mark, row)] for stage, row in zip(stages, rows, strict=True))
        st.html(table_html((STAGE, *paths), cells))
    lines = [tolerance_line(comparison)] if comparison.checks else []
    lines += left_out_lines(comparison)
    for path, reason in hunt.stopped:
        lines.append(fill(STOPPED[reason], path=fill(PATH_WORDS[path]), seconds=seconds, memory=memory))
    for line in filter(None, lines):
        st.caption(line)


def _simpler(hunt: _Hunt) -> None:
    if not hunt.tried:
        return
    st.html(f"<p><b>{html.escape(simplified(hunt.levers, hunt.tried, done=hunt.simplifying is None))}</b></p>")
    rows = ([html.escape(words), _mark((text, ok))] for words, text, ok in try_rows(hunt.levers, hunt.tried))
    st.html(table_html((RERUN, ""), rows))


def _mark(cell: tuple[str, bool | None]) -> str:
    text, ok = cell
    if ok is None:
        return ""
    return f'<span class="{"cl-ok" if ok else "cl-no"}">{html.escape(text[:1])}</span>{html.escape(text[1:])}'
