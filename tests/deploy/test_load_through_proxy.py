"""A class through the real proxy, and a replica that dies under it: its people are back on the other one by their links.

People are sessions of the load client's protocol, so that there can be many. What a browser does by itself when its
server is gone is proved in `test_site`.
"""

from __future__ import annotations

import asyncio
import re
import signal
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed, WebSocketException

from tests.bench.load_client import Load, foreign, run
from tests.support.loop import run_apart
from tests.support.serving import Running, app, get, healthy, proxy, wait_until
from tests.support.session import Session

#: Seconds in which the people of a replica that died are to be back.
BACK = 5.0
PEOPLE = 8
PROBE = r"nnx\.Rngs\((\d+)\) draws"
#: A websocket that has ended, as the proxy writes it down: on which replica it was.
SERVED = re.compile(r"/_stcore\S* 101 .*replica(\d)")

pytestmark = pytest.mark.timeout(240)


@dataclass(frozen=True)
class Site:
    """The proxy and what stands behind it."""

    front: Running
    replicas: tuple[Running, ...]

    @property
    def url(self) -> str:
        """What people open."""
        return f"http://127.0.0.1:{self.front.port}"

    def cookie(self) -> str:
        """What the proxy gives somebody who comes for the first time: it names a replica."""
        headers = get(self.front.port, "/")[1]
        [cookie] = [one.partition(";")[0] for one in headers.get_all("Set-Cookie") if one.startswith("carry-lab=")]
        return cookie

    def home(self, cookie: str) -> Running:
        """Where the proxy sends whoever has this cookie, as its log says."""
        before = len(self.front.said)
        assert get(self.front.port, "/_stcore/health", {"Cookie": cookie})[0] == 200
        line = re.compile(r"GET /_stcore/health 200 .* replica(\d) ")
        assert wait_until(lambda: line.search(self.front.said[before:]) is not None, 10)
        return self.replicas[int(line.findall(self.front.said[before:])[-1]) - 1]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Two replicas with few workers, and the proxy before them; one of them dies, so that every test has its own."""
    with (
        app(tmp_path / "one.log", {"CARRY_LAB_SPARES": "1"}) as one,
        app(tmp_path / "two.log", {"CARRY_LAB_SPARES": "1"}) as two,
        proxy(tmp_path, [one.port, two.port]) as front,
    ):
        assert wait_until(lambda: healthy(front.port), 30), front.said
        yield Site(front, (one, two))


def seed_shown(texts: list[str]) -> list[float]:
    return [float(found) for text in texts for found in re.findall(PROBE, text)]


@dataclass
class Person:
    """Somebody on the LSTM page with a seed of their own."""

    cookie: str
    seed: int
    session: Session

    @property
    def link(self) -> str:
        """The address that a browser would show: the page's state."""
        return self.session.message().rerun_script.query_string

    def again(self, site: Site) -> Session:
        """What a browser opens when it has lost its server: the same link, the same cookie."""
        return Session(site.url, "lstm", self.link, 20, {"Cookie": self.cookie})


async def people(site: Site, stack: AsyncExitStack) -> list[Person]:
    """They come, and each chooses another seed."""
    out = []
    for number in range(PEOPLE):
        cookie = await asyncio.to_thread(site.cookie)
        session = await stack.enter_async_context(Session(site.url, "lstm", "v=1", 30, {"Cookie": cookie}))
        assert (await session.rerun()).exceptions == []
        seed = 1000 + number
        changed = await session.change(session.find("lstm_seed"), seed)
        assert not foreign(seed_shown(changed.text), seed, 0)
        out.append(Person(cookie, seed, session))
    return out


async def returns(site: Site, person: Person) -> float:
    """Waits until the connection is gone, and comes back by the link; when the page shows the state again.

    Tries again as a browser does: what is refused meanwhile is not the end.
    """
    with suppress(ConnectionClosed):  # and nothing else: a connection that stays open is a TimeoutError here
        async with asyncio.timeout(4 * BACK):
            while True:
                await person.session.socket.recv()
    until = time.monotonic() + 4 * BACK
    while True:
        try:
            async with person.again(site) as session:
                seen = await session.rerun()
                assert seen.exceptions == []
                assert not foreign(seed_shown(seen.text), person.seed, 0)
                back = time.monotonic()
                # And it goes on from there.
                changed = await session.change(session.find("lstm_seed"), person.seed + 100)
                assert not foreign(seed_shown(changed.text), person.seed + 100, 0)
                return back
        except (OSError, WebSocketException):
            if time.monotonic() > until:
                raise
            await asyncio.sleep(0.2)


async def a_replica_dies(site: Site) -> tuple[float, int]:
    """Seconds until the last of its people was back, and how many they were."""
    async with AsyncExitStack() as stack:
        crowd = await people(site, stack)
        homes = [await asyncio.to_thread(site.home, one.cookie) for one in crowd]
        assert {home.port for home in homes} == {one.port for one in site.replicas}, "everybody is on one replica"
        assert all(f"seed={one.seed}" in one.link for one in crowd)
        victim = homes[0]
        lost = [one for one, home in zip(crowd, homes, strict=True) if home is victim]
        others = [one for one, home in zip(crowd, homes, strict=True) if home is not victim]
        start = time.monotonic()
        await asyncio.to_thread(victim.end, signal.SIGKILL)
        back = await asyncio.gather(*(returns(site, one) for one in lost))
        for one in others:  # on the connection that they had
            changed = await one.session.change(one.session.find("lstm_seed"), one.seed + 100)
            assert changed.exceptions == []
            assert not foreign(seed_shown(changed.text), one.seed + 100, 0)
        return max(back) - start, len(lost)


def test_a_class_goes_through_the_proxy_to_both_replicas_and_then_one_of_them_dies(site: Site) -> None:
    load = Load(
        site.url, "lstm_seed", PROBE, "lstm", sessions=PEOPLE, changes=4, high=1_000_000, digits=0, think=0.3
    )  # fmt: skip
    outcome = run_apart(run(load))
    assert (outcome.errors, outcome.wrong) == ([], [])
    assert len(outcome.reruns) == load.sessions * load.changes
    assert wait_until(lambda: len(SERVED.findall(site.front.said)) >= PEOPLE, 10), site.front.said
    assert set(SERVED.findall(site.front.said)) == {"1", "2"}

    took, lost = run_apart(a_replica_dies(site))
    print(f"{lost} of {PEOPLE} people were back after {took:.2f} s")
    assert lost > 0
    assert took <= BACK, f"{lost} people were back after {took:.1f} s"

    # What is left carries them all.
    outcome = run_apart(run(replace(load, changes=2)))
    assert (outcome.errors, outcome.wrong) == ([], [])
    assert len(outcome.reruns) == 2 * PEOPLE
