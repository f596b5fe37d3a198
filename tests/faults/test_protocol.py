"""What no browser sends: rubbish on the websocket, cut connections, crowds, floods, other people's origins."""

from __future__ import annotations

import asyncio
import http.client
import random
import socket
import struct
import time
from collections.abc import Awaitable, Callable

import psutil
import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.support.loop import run_apart
from tests.support.serving import Running, get, healthy, wait_until
from tests.support.session import Session

SIZES = {"random": 200, "huge": 21 * 2**20}


def url(served: Running) -> str:
    return f"http://127.0.0.1:{served.port}"


def works(served: Running) -> bool:
    """Whether somebody who comes now gets a page whose control moves its numbers."""

    async def one() -> bool:
        async with Session(url(served), "lstm") as session:
            await session.rerun()
            run = await session.change(session.find("lstm_carry_seed"), 7)
            return not run.exceptions and any("LSTM" in text for text in run.text)

    return run_apart(one())


def sends(served: Running, what: Callable[[Session], Awaitable[None]]) -> None:
    """Opens a page and does something to its connection; that it is closed for it is well."""

    async def one() -> None:
        async with Session(url(served), "lstm") as session:
            await session.rerun()
            try:
                await what(session)
                await asyncio.sleep(0.3)
            except ConnectionClosed:
                pass

    run_apart(one())


@pytest.mark.parametrize("what", ["nothing", "random bytes", "a cut message", "text", "a huge frame"])
def test_rubbish_on_the_websocket_harms_nobody(served: Running, what: str) -> None:
    rng = random.Random(0)

    async def rubbish(session: Session) -> None:
        whole = session.message().SerializeToString()
        sent: dict[str, bytes | str] = {
            "nothing": b"",
            "random bytes": rng.randbytes(200),
            "a cut message": whole[: len(whole) // 2],
            "text": "GET / HTTP/1.1",
            "a huge frame": bytes(21 * 2**20),
        }
        for _ in range(3):
            await session.socket.send(sent[what])

    sends(served, rubbish)
    assert works(served)


WRONG = {
    "a widget that is not there": lambda state: setattr(state, "id", "$$ID-0123-nowhere"),
    "a widget without an id": lambda state: setattr(state, "id", ""),
    "a text for a number": lambda state: setattr(state, "string_value", "\x00<b>é" * 50),
    "not a number": lambda state: setattr(state, "double_value", float("nan")),
    "infinity": lambda state: setattr(state, "double_value", float("inf")),
    "a number beyond all": lambda state: setattr(state, "double_value", 1.7e308),
    "a fraction for a whole": lambda state: setattr(state, "double_value", 2.5),
    "a negative size": lambda state: setattr(state, "double_value", -3.0),
    "numbers for a number": lambda state: state.double_array_value.data.extend([1.0, 2.0]),
    "a flag for a number": lambda state: setattr(state, "bool_value", True),
    "bytes for a number": lambda state: setattr(state, "bytes_value", b"\x80\x04\x95"),
    "json for a number": lambda state: setattr(state, "json_value", '{"__proto__": 1}'),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_widget_that_says_what_it_cannot_gets_no_traceback(served: Running, what: str) -> None:
    """The page says something calm, or keeps what it had; Streamlit's own refusal of a wrong type may end that run."""

    async def one() -> list[str]:
        async with Session(url(served), "lstm", timeout=20) as session:
            await session.rerun()
            state = WidgetState(id=session.find("lstm_batch").id)
            WRONG[what](state)
            message: BackMsg = session.message()
            message.rerun_script.widget_states.widgets.append(state)
            await session.socket.send(message.SerializeToString())
            await asyncio.sleep(0.5)
            return (await session.rerun()).exceptions

    shown = run_apart(one())
    assert not [text for text in shown if "Traceback" in text or "File " in text]
    assert works(served)


def test_a_connection_cut_in_the_middle_of_a_run_takes_nothing_along(served: Running) -> None:
    before = psutil.Process(served.process.pid).num_threads()

    async def cut() -> None:
        for _ in range(10):
            async with Session(url(served), "sequence") as session:
                await session.socket.send(session.message().SerializeToString())
                await session.socket.recv()
                # Not closed: torn, as when a laptop is shut.
                raw = session.socket.transport.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                session.socket.transport.abort()

    run_apart(cut())
    assert works(served)
    assert wait_until(lambda: psutil.Process(served.process.pid).num_threads() <= before + 4, 20)


def open_sessions(served: Running) -> int:
    text = get(served.port, "/_stcore/metrics")[2].decode()
    found = [line for line in text.splitlines() if line.startswith("active_sessions")]
    return int(float(found[0].split()[-1])) if found else 0


def crowd(served: Running, count: int) -> None:
    """So many people who open a page at once and leave."""

    async def one() -> None:
        async with Session(url(served), random.choice(["", "lstm", "status"]), timeout=120) as session:
            await session.rerun()

    async def all_of_them() -> None:
        await asyncio.gather(*(one() for _ in range(count)))

    run_apart(all_of_them())


def test_forty_people_who_come_and_go_leave_nothing_behind(served: Running) -> None:
    leaves_nothing(served, 40)


@pytest.mark.faults
def test_two_hundred_people_who_come_and_go_leave_nothing_behind(served: Running) -> None:
    leaves_nothing(served, 200)


def leaves_nothing(served: Running, count: int) -> None:
    process = psutil.Process(served.process.pid)
    crowd(served, count)  # what is made once is made
    threads, memory = process.num_threads(), process.memory_info().rss
    crowd(served, count)
    assert works(served)
    assert wait_until(lambda: process.num_threads() <= threads + 4, 30)
    grown = (process.memory_info().rss - memory) / 2**20
    assert grown < 40, f"{grown:.0f} MB more than after the first {count}"


def test_a_hundred_megabytes_are_turned_away_before_they_are_read(served: Running) -> None:
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    process = psutil.Process(served.process.pid)
    before = process.memory_info().rss
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    try:
        connection.putrequest("PUT", "/_stcore/upload_file/some-session/some-file")
        for name, value in {**form, "Content-Length": str(100 * 2**20)}.items():
            connection.putheader(name, value)
        connection.endheaders()
        try:
            for _ in range(100):
                connection.send(bytes(2**20))
        except OSError:
            pass  # it stopped listening
        else:
            assert connection.getresponse().status in (400, 403, 413)
    except (http.client.HTTPException, OSError):
        pass
    finally:
        connection.close()
    assert (process.memory_info().rss - before) / 2**20 < 60
    assert works(served)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1.evil.example"])
def test_a_page_of_somebody_else_cannot_open_a_session(served: Running, origin: str) -> None:
    with (
        pytest.raises(InvalidStatus) as answer,
        connect(
            f"ws://127.0.0.1:{served.port}/_stcore/stream",
            origin=origin,  # type: ignore[arg-type]  # a NewType of str
            subprotocols=["streamlit"],  # type: ignore[list-item]
            open_timeout=20,
        ),
    ):
        pass
    assert answer.value.response.status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:1", "", "a" * 5_000, "\x7f"])
def test_a_strange_host_gets_an_answer_and_no_traceback(served: Running, host: str) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as raw:
        raw.sendall(f"GET /_stcore/health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode("latin-1"))
        assert raw.recv(100).startswith(b"HTTP/1.1 ")
    assert host not in served.said or len(host) < 3


def test_people_who_send_a_byte_a_second_keep_nobody_waiting(served: Running) -> None:
    slow = [socket.create_connection(("127.0.0.1", served.port), timeout=20) for _ in range(60)]
    try:
        for one in slow:
            one.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-")
        start = time.monotonic()
        assert healthy(served.port)
        assert works(served)
        assert time.monotonic() - start < 20
    finally:
        for one in slow:
            one.close()
