"""A line by a clock that the test moves: turns, places, and who stops asking."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from core.base.line import Line


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def test_one_works_and_the_others_know_their_place() -> None:
    line = Line(3.0, Clock())
    assert [line.come(who) for who in "abc"] == [0, 1, 2]
    assert [line.come(who) for who in "cb"] == [2, 1]  # asking again changes nothing
    line.leave("a")
    assert [line.come(who) for who in "cb"] == [1, 0]


def test_whoever_has_more_to_do_stands_at_the_end() -> None:
    line, order = Line(3.0, Clock()), []
    left = dict.fromkeys("abc", 2)
    for who in "abc":
        line.come(who)
    line.leave("a")
    while left:
        for who in list(left):
            if line.come(who) == 0:
                order.append(who)
                left[who] -= 1
                line.leave(who)
                if not left[who]:
                    del left[who]
    assert order == ["b", "c", "a", "b", "c", "a"]


def test_who_stops_asking_loses_the_place_and_who_works_does_not() -> None:
    clock = Clock()
    line = Line(3.0, clock)
    for who in "abc":
        line.come(who)
    clock.time = 2.0
    line.come("c")
    clock.time = 4.0
    assert line.come("c") == 1  # b is gone, a works on
    line.leave("a")
    assert line.come("c") == 0
    assert line.come("b") == 1


def test_who_left_without_a_turn_takes_nobodys() -> None:
    line = Line(3.0, Clock())
    assert [line.come(who) for who in "ab"] == [0, 1]
    line.leave("b")
    assert line.come("c") == 1
    line.leave("a")
    assert line.come("c") == 0


def test_never_do_two_work_at_once() -> None:
    line, busy, most, lock = Line(60.0), [0], [0], threading.Lock()

    def work(who: int) -> None:
        done = 0
        while done < 20:
            if line.come(who) == 0:
                with lock:
                    busy[0] += 1
                    most[0] = max(most[0], busy[0])
                with lock:
                    busy[0] -= 1
                done += 1
                line.leave(who)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert most == [1]
