"""Scripts take turns at the interpreter, nobody waits for ever, and a compilation holds nobody up."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import jax.numpy as jnp
import pytest

from core.base.turn import TURNS, Turns
from core.runners.cache import Programs

LONG = 30.0


class Together:
    """How many are at work at once."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.now -= 1


def test_one_script_at_a_time() -> None:
    turns, together = Turns(LONG), Together()

    def script(_: int) -> None:
        with turns.turn(), together:
            threading.Event().wait(0.01)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(script, range(16)))
    assert together.most == 1


def test_who_has_waited_long_enough_goes_on_beside_the_one_before() -> None:
    turns, went = Turns(0.01), threading.Event()

    def other() -> None:
        with turns.turn():
            went.set()

    with turns.turn():
        thread = threading.Thread(target=other)
        thread.start()
        assert went.wait(LONG)
        thread.join()
    # Who never had the turn did not give it back either: it is there once, not twice.
    assert turns._free.acquire(blocking=False)
    assert not turns._free.acquire(blocking=False)
    turns._free.release()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_script_that_breaks_off_gives_its_turn_back(error: type[BaseException]) -> None:
    turns = Turns(LONG)
    with pytest.raises(error), turns.turn():
        raise error
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: _has(turns)).result(LONG)


def _has(turns: Turns) -> bool:
    with turns.turn():
        return turns._mine.has


def test_a_turn_within_a_turn_is_the_same_one() -> None:
    turns = Turns(LONG)
    with turns.turn():
        with turns.turn():
            pass
        assert turns._mine.has
    assert not turns._mine.has


def test_while_one_is_away_another_has_the_turn_and_then_it_comes_back() -> None:
    turns = Turns(LONG)
    with ThreadPoolExecutor(1) as pool, turns.turn():
        with turns.away():
            assert pool.submit(_has, turns).result(LONG)
        assert turns._mine.has
        later = pool.submit(_has, turns)
        assert not later.done()
    assert later.result(LONG)


def test_away_without_a_turn_takes_none() -> None:
    turns = Turns(LONG)
    with turns.away():
        pass
    assert _has(turns)


def test_others_have_their_turn_while_a_program_is_compiled() -> None:
    seen: list[bool] = []

    def traced(x: object) -> object:
        with ThreadPoolExecutor(1) as pool:
            seen.append(pool.submit(_has, TURNS).result(LONG))
        return x

    with TURNS.turn():
        Programs(2).get(("a test of turns",), traced, (jnp.zeros(3),))
        assert TURNS._mine.has
    assert seen == [True]
