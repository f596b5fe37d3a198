"""The pool from outside: whose worker answers, what stops it and how soon, turns, ends, and that nothing is left."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.sandbox.channel import TooLong
from core.sandbox.pool import Done, Pool, Stopped, StopReason, Ticket, from_limits
from core.sandbox.pool_queue import FairQueue

HANDLER = "tests.support.pool_handler"
#: Short times, so that what is stopped is stopped soon; memory that a fresh worker's own pages leave room in.
BOUNDS = replace(from_limits(), running=2, spares=2, seconds=2.5, alarm=2.0, memory=450_000_000, workers=6)
LONG = 60.0
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    pool = Pool(HANDLER, bounds=BOUNDS)
    yield pool
    pool.close()


@pytest.fixture
def session(pool: Pool, request: pytest.FixtureRequest) -> Iterator[str]:
    name = request.node.name
    yield name
    pool.release(name)


def ask(pool: Pool, session: str, wish: str, **request: Any) -> Ticket:
    return pool.submit(session, {"wish": wish, **request})


def answer(ticket: Ticket) -> dict[str, Any]:
    assert ticket.wait(LONG)
    assert isinstance(ticket.result, Done), ticket.result
    return ticket.result.answer


def stopped(ticket: Ticket) -> Stopped:
    assert ticket.wait(LONG)
    assert isinstance(ticket.result, Stopped), ticket.result
    return ticket.result


def until(true: Callable[[], bool], seconds: float = LONG) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return true()


# --- whose worker ----------------------------------------------------------------------------------------------------


def test_a_warmed_worker_answers(pool: Pool, session: str) -> None:
    found = answer(ask(pool, session, "echo", text="c₀ → c₁ \ud83d"))
    assert (found["text"], found["warmed"]) == ("c₀ → c₁ \ud83d", 1)
    assert found["pid"] != os.getpid()


def test_a_session_keeps_its_worker_and_nobody_else_meets_it(pool: Pool, session: str) -> None:
    first = answer(ask(pool, session, "keep", name="one"))
    second = answer(ask(pool, session, "keep", name="two"))
    other = answer(ask(pool, session + "'", "keep", name="three"))
    pool.release(session)
    later = answer(ask(pool, session + "'", "keep", name="four"))
    fresh = answer(ask(pool, session, "keep", name="five"))
    pool.release(session + "'")
    assert second == {"pid": first["pid"], "before": {"one": True}}
    assert later == {"pid": other["pid"], "before": {"three": True}}
    assert (other["before"], fresh["before"]) == ({}, {})
    assert len({first["pid"], other["pid"], fresh["pid"]}) == 3


def test_a_reserved_worker_is_there_before_anybody_asks(pool: Pool, session: str) -> None:
    pool.reserve(session)
    assert until(lambda: pool.status().reserved >= 1 and pool.status().spare >= BOUNDS.spares)
    started = time.monotonic()
    answer(ask(pool, session, "echo"))
    assert time.monotonic() - started < 0.5


def test_with_no_room_a_clean_reserved_worker_goes_to_whoever_asks_and_then_the_one_longest_quiet() -> None:
    with_three = Pool(HANDLER, bounds=replace(BOUNDS, workers=3, spares=1))
    try:
        pids = [answer(ask(with_three, name, "keep", name=name))["pid"] for name in "abc"]
        answer(ask(with_three, "a", "keep", name="a"))  # b is now the quietest
        assert answer(ask(with_three, "d", "keep", name="d"))["before"] == {}
        assert answer(ask(with_three, "a", "keep", name="a")) == {"pid": pids[0], "before": {"a": True}}
        assert answer(ask(with_three, "b", "keep", name="b"))["before"] == {}
        assert len(with_three._crew) <= 3
    finally:
        with_three.close()


def test_a_worker_that_says_so_is_replaced(pool: Pool, session: str) -> None:
    found = answer(ask(pool, session, "retire"))
    assert "retire" not in found
    assert answer(ask(pool, session, "echo"))["pid"] != found["pid"]


# --- what stops it ---------------------------------------------------------------------------------------------------


def test_a_script_that_never_ends_stops_itself_before_it_is_killed(pool: Pool, session: str) -> None:
    result = stopped(ask(pool, session, "script", text="x = 1\nwhile True:\n    x += 1\n"))
    assert (result.reason, result.line) == (StopReason.TIME, None)  # the handler let the alarm through
    assert BOUNDS.alarm - 0.1 <= result.seconds < BOUNDS.seconds + 1.5


CATCHER = """
def forever():
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
while True:
    try:
        forever()
    except BaseException:
        pass
"""


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("x = 1\nsum(range(10**12))\n", {2}),  # one call of C, which hears no alarm
        (CATCHER, {4, 5, 6, 7, 8, 9, 10, 11, 12, 13}),
        ("import signal\nsignal.setitimer(signal.ITIMER_REAL, 0)\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\n"
         "while True: time.sleep(1)", {4}),
    ],
)  # fmt: skip
def test_whoever_does_not_stop_is_killed_at_the_limit_and_his_line_known(
    pool: Pool, session: str, text: str, lines: set[int]
) -> None:
    before = answer(ask(pool, session, "echo"))["pid"]
    ticket = ask(pool, session, "script", text=text)
    result = stopped(ticket)
    assert (result.reason, result.line in lines) == (StopReason.TIME, True), result
    assert BOUNDS.seconds <= result.seconds < BOUNDS.seconds + 1.5
    assert until(lambda: not psutil.pid_exists(before) or psutil.Process(before).status() == "zombie", 5)
    assert answer(ask(pool, session, "echo"))["pid"] != before


def test_too_much_memory_ends_the_worker_while_others_go_on(pool: Pool, session: str) -> None:
    hog = ask(pool, session, "hog", megabytes=4_000)
    mine = answer(ask(pool, session + "'", "echo", text="mine"))
    pool.release(session + "'")
    assert mine["text"] == "mine"
    assert stopped(hog).reason is StopReason.MEMORY


@pytest.mark.parametrize("wish", ["crash", "exit"])
def test_a_crash_is_told_and_the_next_request_has_a_fresh_worker(pool: Pool, session: str, wish: str) -> None:
    assert stopped(ask(pool, session, wish)).reason is StopReason.DIED
    answer(ask(pool, session, "echo"))


def test_our_own_failure_is_told_by_type_and_place_and_never_by_its_text(pool: Pool, session: str) -> None:
    assert stopped(ask(pool, session, "fail")).reason is StopReason.DIED
    last = pool.status().failed[-1]
    assert last.startswith("KeyError at ")
    assert "tests/support/pool_handler.py:" in last
    assert "secret" not in last


@pytest.mark.parametrize(
    "hex_", ["ffffffff", "00000004" + b"null".hex(), "00000002ff00", "00000007" + b'{"a":1}'.hex(), "0100ffff00"]
)
def test_garbage_ends_the_worker_at_once(pool: Pool, session: str, hex_: str) -> None:
    result = stopped(ask(pool, session, "raw", hex=hex_))
    assert result.reason in (StopReason.DIED, StopReason.TIME), result
    if hex_ != "0100ffff00":  # half a frame: nothing wrong yet, but it never ends
        assert (result.reason, result.seconds < BOUNDS.alarm) == (StopReason.DIED, True)


def test_an_answer_is_bounded_and_must_be_plain(pool: Pool, session: str) -> None:
    assert stopped(ask(pool, session, "long", size=17_000_000)).reason is StopReason.OUTPUT
    assert stopped(ask(pool, session, "nan")).reason is StopReason.DIED
    assert len(answer(ask(pool, session, "long", size=9_000_000))["text"]) == 9_000_000


def test_a_long_request_arrives_whole_and_a_longer_one_is_refused(pool: Pool, session: str) -> None:
    assert len(answer(ask(pool, session, "echo", text="é" * 1_000_000))["text"]) == 1_000_000
    with pytest.raises(TooLong):
        ask(pool, session, "echo", text="x" * 4_194_304)


# --- turns -----------------------------------------------------------------------------------------------------------


def test_no_more_run_than_may_and_waiting_takes_none_of_the_time(pool: Pool) -> None:
    names = [f"turn {i}" for i in range(5)]
    tickets = [ask(pool, name, "sleep", seconds=1.2) for name in names]
    places = [t.place for t in tickets]
    spans = [(a["start"], a["end"]) for a in map(answer, tickets)]  # 3.6 s in all, each under its own 2.0 s
    for name in names:
        pool.release(name)
    assert max(sum(s <= at < e for s, e in spans) for at, _ in spans) <= BOUNDS.running
    assert sorted(places)[-1] >= 3
    assert [t.place for t in tickets] == [0] * 5


def test_a_session_has_one_request_running_and_one_waiting_and_a_newer_one_replaces_that(
    pool: Pool, session: str
) -> None:
    first = ask(pool, session, "sleep", seconds=0.6)
    assert until(lambda: first.place == 0)
    older = ask(pool, session, "echo", text="older")
    assert older.place == 1  # though there is a free core: a session does not run two
    newer = ask(pool, session, "sleep", seconds=0.1)  # whatever it wishes
    assert stopped(older).reason is StopReason.REPLACED
    assert (newer.place, pool.status().queued) == (1, 1)
    newest = ask(pool, session, "echo", text="newest")
    assert stopped(newer).reason is StopReason.REPLACED
    assert answer(newest)["text"] == "newest"
    assert answer(first)
    assert newest.wait(0)


def test_what_is_replaced_keeps_its_place_and_nobody_elses(pool: Pool, session: str) -> None:
    busy = [ask(pool, f"{session}-{n}", "sleep", seconds=0.5) for n in range(BOUNDS.running)]
    assert until(lambda: all(ticket.place == 0 for ticket in busy))
    mine = ask(pool, session, "echo", text="1")
    other = ask(pool, f"{session}-other", "echo", text="other")
    mine = [ask(pool, session, "echo", text=str(n)) for n in range(20)][-1]
    assert [mine.place, other.place] == [1, 2]
    assert pool.status().queued == 2
    assert answer(other)["text"] == "other"
    assert answer(mine)["text"] == "19"
    for name in (*(f"{session}-{n}" for n in range(BOUNDS.running)), f"{session}-other"):
        pool.release(name)


def test_a_script_that_had_the_core_to_itself_is_told_from_one_that_had_to_share_it(pool: Pool, session: str) -> None:
    spun = ask(pool, session, "spin", seconds=0.6)
    spun.wait()
    slept = ask(pool, session, "sleep", seconds=0.6)
    slept.wait()
    assert isinstance(spun.result, Done)
    assert isinstance(slept.result, Done)
    assert slept.result.share < 0.3
    assert spun.result.share > 2 * slept.result.share


def test_cancelling_takes_it_out_of_the_queue_or_kills_its_worker(pool: Pool, session: str) -> None:
    running = ask(pool, session, "sleep", seconds=30)
    waiting = ask(pool, session, "echo")
    waiting.cancel()
    assert stopped(waiting).reason is StopReason.CANCELLED
    assert until(lambda: running.place == 0)
    running.cancel()
    running.cancel()
    assert stopped(running).reason is StopReason.CANCELLED
    assert answer(ask(pool, session, "echo"))


def test_releasing_a_session_ends_what_it_asked_for(pool: Pool, session: str) -> None:
    tickets = [ask(pool, session, "sleep", seconds=30)]
    assert until(lambda: tickets[0].place == 0)
    tickets.append(ask(pool, session, "echo"))
    pool.release(session)
    assert [stopped(t).reason for t in tickets] == [StopReason.CANCELLED] * 2


def test_a_full_queue_turns_away() -> None:
    small = Pool(HANDLER, bounds=replace(BOUNDS, queue=2))
    try:
        tickets = [ask(small, f"s{i}", "echo") for i in range(4)]  # nothing is warm yet: all of them wait
        assert [stopped(t).reason for t in tickets[2:]] == [StopReason.BUSY] * 2
    finally:
        small.close()
    assert [stopped(t).reason for t in tickets[:2]] == [StopReason.CANCELLED] * 2
    assert stopped(ask(small, "late", "echo")).reason is StopReason.CANCELLED


def test_many_threads_ask_at_once_and_each_gets_its_own_answer(pool: Pool) -> None:
    wrong: list[object] = []

    def person(name: str) -> None:
        for i in range(10):
            ticket = ask(pool, name, "echo", text=f"{name} {i}")
            ticket.wait(LONG)
            if not isinstance(ticket.result, Done) or ticket.result.answer["text"] != f"{name} {i}":
                wrong.append(ticket.result)
        pool.release(name)

    threads = [threading.Thread(target=person, args=(f"person {n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# --- ends ------------------------------------------------------------------------------------------------------------


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _family() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


@pytest.mark.skipif(sys.platform != "linux", reason="counts by /proc")
def test_nothing_is_left_of_hundreds_of_requests_and_of_workers_that_were_stopped(pool: Pool, session: str) -> None:
    def settled() -> bool:
        status = pool.status()
        return status.warming == status.running == status.kept == 0 and status.spare == BOUNDS.spares

    def counts() -> tuple[int, int, int]:
        gc.collect()
        return _descriptors(), len(_family()), threading.active_count()

    def round_of(stops: int) -> None:
        for i in range(100):
            answer(ask(pool, f"{session} {i % 3}", "echo", text="x" * 10_000))
        for i in range(stops):
            assert stopped(ask(pool, f"{session} {i % 3}", "exit"))
        for i in range(3):
            pool.release(f"{session} {i}")

    round_of(1)
    assert until(settled)
    before, memory = counts(), psutil.Process().memory_info().rss
    files = set(Path("/tmp").glob("carry-lab-*"))
    round_of(10)
    round_of(10)
    assert until(settled)
    assert until(lambda: counts() == before, 5), (counts(), before)
    assert [p.pid for p in _family() if p.status() == "zombie"] == []
    assert psutil.Process().memory_info().rss - memory < 20_000_000
    assert set(Path("/tmp").glob("carry-lab-*")) <= files


def test_closing_leaves_no_process_thread_or_folder() -> None:
    threads, processes = threading.active_count(), {p.pid for p in _family()}
    one = Pool(HANDLER, bounds=BOUNDS)
    answer(ask(one, "a", "echo"))
    folder = one._starter.server.folder  # type: ignore[union-attr]
    assert folder.exists()
    one.close()
    assert {p.pid for p in _family()} - processes == set()
    assert (threading.active_count(), folder.exists()) == (threads, False)


def test_the_pool_outlives_its_fork_server() -> None:
    one = Pool(HANDLER, bounds=replace(BOUNDS, seconds=20, alarm=19))
    try:
        first = answer(ask(one, "a", "echo"))["pid"]
        ticket = ask(one, "a", "sleep", seconds=0.6)
        assert until(lambda: one.status().running == 1)
        os.kill(one._starter.server._process.pid, signal.SIGKILL)  # type: ignore[union-attr]
        again = answer(ticket)["pid"]  # run again by a worker of the new one: it was not its fault
        assert again != first
        assert not psutil.pid_exists(first) or psutil.Process(first).status() == "zombie"
    finally:
        one.close()


SERVER = """
import os, sys, time
from core.sandbox.pool import Pool
pool = Pool("tests.support.pool_handler")
ticket = pool.submit("a", {"wish": "echo"})
ticket.wait(60)
pool.submit("b", {"wish": "spin", "seconds": 4})
print(pool._starter.server.folder, pool._starter.server._process.pid, *(w.process.pid for w in pool._crew), flush=True)
time.sleep(60)
"""


def test_when_the_server_is_killed_its_workers_end_and_their_folder_goes() -> None:
    server = subprocess.Popen([sys.executable, "-c", SERVER], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    folder, *pids = server.stdout.readline().split()  # type: ignore[union-attr]
    family = [int(pid) for pid in pids]
    assert all(psutil.pid_exists(pid) for pid in family)
    assert len(family) >= 2
    server.kill()
    server.wait()
    server.stdout.close()  # type: ignore[union-attr]
    assert until(lambda: not any(psutil.pid_exists(pid) for pid in family), 5)
    assert not Path(folder).exists()


# --- what a worker is told -------------------------------------------------------------------------------------------


def test_a_worker_knows_nothing_of_the_servers_environment_or_main_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN_OF_THE_SERVER", "secret")
    one = Pool(HANDLER, bounds=BOUNDS, walls=False)
    try:
        found = answer(ask(one, "a", "environment"))
    finally:
        one.close()
    assert "A_TOKEN_OF_THE_SERVER" not in found["names"]
    assert (found["modules"], found["main"]) == (True, "__main__")


def test_workers_that_cannot_be_made_are_told_about_and_nobody_waits_for_ever() -> None:
    one = Pool("tests.support.no_such_module", bounds=BOUNDS)
    try:
        result = stopped(ask(one, "a", "echo"))
        assert result.reason is StopReason.DIED
        assert one.status().trouble
    finally:
        one.close()


# --- the queue alone -------------------------------------------------------------------------------------------------


class _Desk:
    def place(self, ticket: Ticket) -> int:
        return 0

    def cancel(self, ticket: Ticket) -> None: ...


def ticket_of(session: str, wish: str) -> Ticket:
    return Ticket(_Desk(), session, wish, b"")


def test_places_are_the_order_in_which_requests_are_taken() -> None:
    queue = FairQueue()
    made = [ticket_of(s, w) for s, w in ("a1", "b1", "c1", "a2", "d1", "b2")]
    replaced = [queue.put(ticket) for ticket in made]
    assert replaced == [None, None, None, made[0], None, made[1]]
    assert len(queue) == 4
    waiting = [t for t in made if queue.place(t)]
    places = {queue.place(t): t for t in waiting}
    taken = []
    while queue.turns():
        taken.append(queue.take(queue.turns()[0]))
    assert [places[n] for n in range(1, len(waiting) + 1)] == taken
    assert [t.session + t.wish for t in taken] == ["a2", "b2", "c1", "d1"]
    assert queue.place(made[0]) == 0


def test_what_is_put_back_is_first() -> None:
    queue = FairQueue()
    first, second, third = ticket_of("a", "1"), ticket_of("b", "1"), ticket_of("a", "2")
    queue.put(first)
    queue.put(second)
    assert queue.take("a") is first
    queue.put(third)
    first.tries += 1  # its worker died by our own fault
    queue.put_back(first)
    assert [queue.place(t) for t in (first, second, third)] == [1, 2, 3]
    fourth = ticket_of("a", "3")
    assert queue.put(fourth) is third  # the one that waits, not the one that had its turn
    assert [queue.place(t) for t in (first, second, fourth)] == [1, 2, 3]
    assert queue.remove(first)
    assert not queue.remove(first)
    assert list(queue.drop("b")) == [second]
    assert len(queue) == 1
