"""The workers of the server: what they do, what ended their jobs, and which walls stand around each."""

from __future__ import annotations

import html

import streamlit as st

from core.base.text import fill
from core.sandbox.pool_ticket import PoolStatus, StopReason
from pages.widgets.frame import section
from pages.widgets.tables import table_html

WORKER_TITLE, WORKER_HINT = "Workers", "processes that run people’s scripts, one person’s each"
WORKER_HEAD = ("computing", "warming up", "free", "kept ready", "of a session", "made", "ended", "memory")
MEMORY = "{value:,} MB"
STOP_TITLE, STOP_HINT = "Jobs without an answer", "since the start"
STOP_HEAD = ("why", "how often")
STOPS = {
    StopReason.TIME: "stopped: the time was over",
    StopReason.MEMORY: "stopped: too much memory",
    StopReason.DIED: "the worker crashed",
    StopReason.OUTPUT: "the answer was too long",
    StopReason.CANCELLED: "called off",
    StopReason.REPLACED: "gave way to a newer one of the same session",
    StopReason.BUSY: "turned away: the queue was full",
}
WALL_TITLE, WALL_HINT = (
    "Walls around a worker",
    "{stand} of {count} stand here; a script must first get past the step language",
)
WALL_HEAD = ("wall", "stands", "what it holds, or why it is missing")
STANDS, MISSING = "✓ yes", "✗ no"
NO_WORKER = "The first worker is being made: look again in some seconds."
TROUBLE = "There are no workers: {reason}."
_MB = 1_000_000


def workers_table(pool: PoolStatus) -> None:
    """How many there are, and how jobs ended."""
    section(fill(WORKER_TITLE), hint=fill(WORKER_HINT))
    if pool.trouble:
        st.warning(fill(TROUBLE, reason=pool.trouble))
    counts = (pool.running, pool.warming, pool.spare, pool.reserved, pool.kept, pool.made, pool.lost)
    memory = fill(MEMORY, value=round(pool.memory / _MB))
    st.html(table_html(WORKER_HEAD, [[*(f"{count:,}" for count in counts), memory]]))
    if pool.stopped:
        section(fill(STOP_TITLE), hint=fill(STOP_HINT))
        rows = ([html.escape(fill(STOPS[reason])), f"{n:,}"] for reason, n in sorted(pool.stopped.items()))
        st.html(table_html(STOP_HEAD, rows))


def walls_table(pool: PoolStatus) -> None:
    """Each wall: whether it stands on this machine, and why not."""
    stand = sum(1 for _, on, _ in pool.walls if on)
    section(fill(WALL_TITLE), hint=fill(WALL_HINT, stand=stand, count=len(pool.walls)) if pool.walls else "")
    if not pool.walls:
        st.caption(fill(NO_WORKER))
        return
    rows = ([html.escape(name), fill(STANDS if on else MISSING), html.escape(why)] for name, on, why in pool.walls)
    with st.container(key="status_walls"):
        st.html(table_html(WALL_HEAD, rows))
