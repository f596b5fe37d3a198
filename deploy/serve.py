"""Carry Lab as an ASGI app with a lifespan: warm before the port answers, tidy after the last request.

`make run` starts it through deploy/run.py, which checks the port and prints the address; `streamlit run deploy/serve.py`
works too. Streamlit Community Cloud runs app.py itself: there the first visitor pays for the warm-up.

What comes when was measured (tests/bench/bench_start.py). Before the port answers: every module, and the programs of the
opening page, so that whoever is let in (a person, a proxy by the health endpoint) finds them. Some seconds later, beside
the open port: the workers, and what the other pages open with. With all of it before the port the first plot came three
times as late as a bare page's on two cores, like this less than twice.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import streamlit as st

ROOT = Path(__file__).resolve().parents[1]
# For `streamlit run deploy/serve.py`, which puts this folder there and not the one above.
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
LOG = logging.getLogger("carry_lab")
#: Seconds in which a browser that comes at once has drawn its first page.
FIRST_PAGE = 3.0


def start() -> None:
    """What nobody shall wait for."""
    from pages.widgets.warm_up import open_warm

    open_warm()


def go_on() -> None:
    """What the first visitor need not wait for. The workers first: they get ready in processes of their own meanwhile."""
    from pages.widgets.doctor_backend import backend
    from pages.widgets.warm_up import warm_rest

    try:
        backend()
        warm_rest()
    except Exception as problem:  # noqa: BLE001  # the pages work without it, slower: no reason to end the server
        LOG.error("%s while warming up", type(problem).__name__)


def stop() -> None:
    """The workers end with the server, and what they left in the temporary folder."""
    from pages.widgets.doctor_backend import backend

    backend.clear()


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """In threads of their own: signals are heard meanwhile."""
    await asyncio.to_thread(start)
    ending = asyncio.Event()

    async def rest() -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(ending.wait(), FIRST_PAGE)
        if not ending.is_set():
            await asyncio.to_thread(go_on)

    going_on = asyncio.create_task(rest())
    try:
        yield
    finally:
        ending.set()
        await going_on
        await asyncio.to_thread(stop)


app = st.App(ROOT / "app.py", lifespan=lifespan)
