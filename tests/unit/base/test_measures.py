"""Counts and times: what labels may say, how times are spread, what a run of a page leaves behind, and what it costs."""

from __future__ import annotations

import threading
import time

import pytest

from core.base import measures
from core.base.measures import BUCKETS, OTHER, Counter, Part, Spread, Times, on_page, page_here, timed


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Times:
    """The process's times, empty."""
    fresh = Times("seconds", "said", page=("scan", "lstm"), stage=[str(part) for part in Part])
    monkeypatch.setattr(measures, "TIMES", fresh)
    return fresh


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> Counter:
    fresh = Counter("cut", "said", page=("scan", "lstm"))
    monkeypatch.setattr(measures, "CUT", fresh)
    return fresh


def test_a_label_takes_its_own_words_and_counts_all_others_as_one() -> None:
    counter = Counter("faults", "said", code=("S101", "S102"))
    for word in ("S101", "S101", "a visitor's text", "another's", ""):
        counter.add(code=word)
    counter.add()
    assert counter.values() == {("S101",): 2, (OTHER,): 4}


def test_an_outer_module_says_the_words_that_only_it_knows() -> None:
    counter = Counter("faults", "said", code=())
    counter.add(code="S101")
    counter.allow("code", ("S101",))
    counter.add(code="S101")
    assert counter.values() == {(OTHER,): 1, ("S101",): 1}


def test_totals_are_over_all_other_labels() -> None:
    counter = Counter("checks", "said", page=("scan", "lstm"), outcome=("ok", "limit"))
    for page, outcome in (("scan", "ok"), ("scan", "limit"), ("lstm", "ok")):
        counter.add(page=page, outcome=outcome)
    assert (counter.total(), counter.total(page="scan"), counter.total(outcome="ok", page="scan")) == (3, 2, 1)


def test_nothing_is_lost_when_many_threads_count() -> None:
    counter = Counter("n", "said", page=("scan",))
    threads = [threading.Thread(target=lambda: [counter.add(page="scan") for _ in range(2_000)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.total() == 16_000


def test_a_time_falls_into_the_bucket_that_ends_at_or_above_it() -> None:
    times = Times("seconds", "said", page=("scan",))
    for seconds in (0.0, BUCKETS[0], BUCKETS[0] + 1e-6, 1e9):
        times.observe(seconds, page="scan")
    spread = times.values()[("scan",)]
    assert (spread.counts[0], spread.counts[1], spread.counts[-1], spread.count) == (2, 1, 1, 4)
    assert spread.sum == pytest.approx(BUCKETS[0] * 2 + 1e-6 + 1e9)


def test_a_share_of_times_lies_below_a_quantile() -> None:
    times = Times("seconds", "said", page=("scan",))
    for seconds in [0.03] * 90 + [0.3] * 10:
        times.observe(seconds, page="scan")
    spread = times.values()[("scan",)]
    half, most = spread.quantile(0.5), spread.quantile(0.95)
    assert half is not None
    assert most is not None
    assert 0.025 < half <= 0.05
    assert 0.2 < most <= 0.4
    assert Spread().quantile(0.5) is None
    assert (spread + spread).count == 200


def test_a_run_of_a_page_and_its_parts_are_timed_under_its_name(times: Times, cut: Counter) -> None:
    assert page_here() == OTHER
    with on_page("lstm"):
        assert page_here() == "lstm"
        with timed(Part.COMPILE):
            time.sleep(0.011)
    assert page_here() == OTHER
    found = times.values()
    assert set(found) == {("lstm", "page"), ("lstm", "compile")}
    assert all(spread.sum >= 0.011 for spread in found.values())
    assert cut.values() == {}


def test_a_run_that_is_cut_short_is_counted_and_not_timed(times: Times, cut: Counter) -> None:
    with pytest.raises(KeyboardInterrupt), on_page("scan"):
        raise KeyboardInterrupt
    assert cut.values() == {("scan",): 1}
    assert ("scan", "page") not in times.values()
    assert page_here() == OTHER


def test_a_page_of_one_thread_is_none_of_another(times: Times, cut: Counter) -> None:
    seen: list[str] = []
    with on_page("scan"):
        other = threading.Thread(target=lambda: seen.append(page_here()))
        other.start()
        other.join()
    assert seen == [OTHER]


def test_measuring_costs_less_than_50_microseconds_a_run(times: Times, cut: Counter) -> None:
    rounds = 2_000
    best = min(_seconds_of(rounds) for _ in range(5)) / rounds
    assert best < 50e-6


def _seconds_of(rounds: int) -> float:
    start = time.thread_time()  # what others do on this machine is not counted
    for _ in range(rounds):
        with on_page("scan"):
            with timed(Part.CHECK):
                pass
            with timed(Part.COMPILE):
                pass
        measures.CHECKS.add(page="scan", outcome="ok")
    return time.thread_time() - start
