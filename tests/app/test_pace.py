"""A stream of new sizes through AppTest: its session waits, with a word and its input kept, and nobody else does."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.base.bucket import Bucket
from core.base.measures import SLOWED
from core.runners.cache import clear_all

ROOT = Path(__file__).resolve().parents[2]
SLOWED_WORDS = "new ones are slowed"
#: Page -> an input whose every value is a new size.
PAGES = {
    "lstm": "batch",
    "sequence": "batch",
    "gradients": "length",
}


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def opened(page: str = "") -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    at.run()
    if page:
        at.switch_page(f"pages/views/{page}.py")
    return ran(at)


def ran(at: AppTest) -> AppTest:
    at.run()
    assert not at.exception
    assert not at.error, [e.value for e in at.error]
    return at


def with_tokens(at: AppTest, count: int, clock: Clock) -> Bucket:
    """The session's bucket, with so many tokens and a clock of ours."""
    bucket = at.session_state["pace"].bucket = Bucket(count, 1, clock)
    return bucket


def html_of(at: AppTest) -> list[str]:
    return [element.proto.body for element in at.get("html")]


def strip(at: AppTest) -> str:
    (found,) = [body for body in html_of(at) if 'class="cl-strip' in body]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", found))


def waits(at: AppTest) -> bool:
    return any(SLOWED_WORDS in body for body in html_of(at))


def setter(at: AppTest, key: str) -> Callable[[int], object]:
    kinds = (at.number_input, at.slider)
    return next(one for kind in kinds for one in kind if one.key == key).set_value


def to(at: AppTest, page: str, value: int) -> AppTest:
    setter(at, f"{page}_{PAGES[page]}")(value)
    return ran(at)


@pytest.mark.parametrize("page", PAGES)
def test_a_burst_of_new_sizes_waits_with_a_word_and_runs_by_itself(page: str) -> None:
    clock, at, other = Clock(), opened(page), opened(page)
    bucket = with_tokens(at, 6, clock)
    before = SLOWED.total(page=page)
    to(at, page, 39)
    assert not waits(at)  # what has begun is brought to its end
    bucket.take(5)
    to(at, page, 40)
    assert waits(at)
    assert strip(at).split()[1] == "Waiting"
    assert SLOWED.total(page=page) == before + 1
    # Somebody else, at the same time, has a new size of their own.
    to(other, page, 41)
    assert not waits(other)
    # A size seen before runs at once, and so do values.
    to(at, page, 39)
    assert not waits(at)
    # A later change takes the place of the one that waits, and nothing is lost.
    to(at, page, 42)
    to(at, page, 43)
    assert waits(at)
    clock.time += 60
    ran(at)
    assert not waits(at)
    assert "Waiting" not in strip(at)
    assert at.session_state[f"{page}:values"][PAGES[page]] == 43


def test_a_scan_of_new_shapes_waits_too() -> None:
    clear_all()
    clock, at = Clock(), opened()
    bucket = with_tokens(at, 1, clock)
    at.session_state["scan_numbers"] = "1, 2, 3, 4, 5, 6, 7, 8, 9"  # as an edited cell comes in
    ran(at)
    bucket.take(2)
    at.session_state["scan_numbers"] = ", ".join(map(str, range(20)))
    ran(at)
    assert waits(at)
    assert "Waiting" in strip(at)
    clock.time += 60
    ran(at)
    assert not waits(at)
    assert "final carry 190" in strip(at)


def test_the_page_that_somebody_opens_first_does_not_wait() -> None:
    clock, at = Clock(), opened()
    with_tokens(at, 1, clock).take(2)
    clear_all()
    at.switch_page("pages/views/sequence.py")
    ran(at)
    assert not waits(at)
    assert "Contract" in strip(at)


def test_whoever_moves_values_pays_nothing() -> None:
    # A cell that an earlier test kept would be shown without the programs that draw one, and these would come now.
    clear_all()
    at = opened("lstm")
    ran(at)
    bucket = with_tokens(at, 5, Clock())
    at.number_input(key="lstm_seed").set_value(3)
    ran(at)
    assert bucket.tokens == 5
