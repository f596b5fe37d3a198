"""A bucket of tokens by a clock that the test moves: what it gives, what it owes, and when something may be compiled again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.base.bucket import Bucket
from core.base.limits import LIMITS


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def test_a_full_one_gives_at_once_and_holds_no_more_than_its_size() -> None:
    clock = Clock()
    bucket = Bucket(10, 2, clock)
    clock.time += 1_000
    assert (bucket.tokens, bucket.wait) == (10, 0)


def test_what_was_begun_may_leave_a_debt_and_the_next_waits_until_it_is_paid() -> None:
    clock = Clock()
    bucket = Bucket(10, 2, clock)
    bucket.take(17)
    assert bucket.wait == 4.0  # 7 owed and 1 wanted, 2 a second
    clock.time += 3.9
    assert bucket.wait > 0
    clock.time += 0.2
    assert bucket.wait == 0


def test_a_debt_never_grows_beyond_a_full_bucket() -> None:
    clock = Clock()
    bucket = Bucket(10, 2, clock)
    bucket.take(9)
    assert not bucket.overdrawn
    bucket.take(1_000_000)
    assert bucket.overdrawn
    assert bucket.wait == 5.5
    clock.time += 0.1
    assert not bucket.overdrawn


def test_a_clock_that_jumps_back_takes_nothing_and_gives_nothing() -> None:
    clock = Clock()
    bucket = Bucket(10, 2, clock)
    bucket.take(4)
    clock.time -= 50
    assert bucket.tokens == 6
    clock.time += 1
    assert bucket.tokens == 8


def test_its_size_is_that_of_the_table() -> None:
    clock = Clock()
    bucket = Bucket(now=clock)
    assert bucket.tokens == LIMITS["compile_burst"].value
    bucket.take(LIMITS["compile_burst"].value)
    clock.time += 1
    assert bucket.tokens == LIMITS["compile_refill"].value


@given(st.lists(st.tuples(st.floats(0, 20), st.integers(0, 40)), max_size=30))
def test_over_any_time_no_more_begins_than_its_size_and_what_came_back(work: list[tuple[float, int]]) -> None:
    clock = Clock()
    bucket, begun, start = Bucket(10, 2, clock), 0, clock.time
    for pause, count in work:
        clock.time += pause
        if bucket.wait == 0:
            assert begun <= 10 + 2 * (clock.time - start) + 1e-6
            bucket.take(min(count, 10))
            begun += min(count, 10)
