"""The class tally: counts alone, bounded, exact under threads, and gone when it is over."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from core.base.limits import LIMITS
from core.challenges.challenge import Kind
from core.challenges.fields import CODE, OWNER
from core.challenges.grading import OTHER_SIDE, RIGHT, WRONG, choices_of
from core.challenges.loader import reviewed
from core.challenges.tally import LETTERS, Key, Tally

PREDICT = next(one for one in reviewed() if one.kind is Kind.PREDICT)
SPOT = next(one for one in reviewed() if one.kind is Kind.SPOT)


class Clock:
    """Time that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tally(clock: Clock) -> Tally:
    return Tally(clock)


def opened(tally: Tally) -> Key:
    key = tally.open()
    assert key is not None
    return key


def guest(key: Key) -> Key:
    return Key(key.code)


# --- keys -------------------------------------------------------------------------------------------------------------


def test_a_key_is_short_and_has_no_letter_that_is_mistaken_for_another(tally: Tally):
    keys = [opened(tally) for _ in range(40)]
    assert len({key.code for key in keys}) == 40
    for key in keys:
        assert len(key.code) == CODE
        assert len(key.owner) == OWNER
        assert set(key.code) <= set(LETTERS)
    assert not set("01IO") & set(LETTERS)


def test_a_key_is_read_as_people_type_it(tally: Tally):
    key = opened(tally)
    assert Key.of(str(key)) == key
    assert Key.of(f"  {key.code.lower()} ") == guest(key)
    assert str(guest(key)) == key.code
    assert tally.is_open(Key.of(key.code.lower()))


@pytest.mark.parametrize("text", ["", "-", "----", "A" * 1_000, "ÄÖ", "\ud83d", "A-\ud83d", "\0"])
def test_what_is_no_key_opens_nothing(tally: Tally, text: str):
    key = opened(tally)
    assert not tally.is_open(Key.of(text))
    assert not tally.owned(Key.of(text))
    assert not tally.owned(Key(key.code, text))
    assert not tally.vote(Key.of(text), PREDICT, RIGHT)


# --- counts -----------------------------------------------------------------------------------------------------------


def test_votes_are_counted_by_choice(tally: Tally):
    key = opened(tally)
    for choice in (RIGHT, WRONG, RIGHT):
        assert tally.vote(guest(key), PREDICT, choice)
    assert tally.vote(guest(key), SPOT, OTHER_SIDE)
    assert tally.counts(key)[PREDICT.key] == {RIGHT: 2, WRONG: 1}
    assert tally.counts(key)[SPOT.key] == {**dict.fromkeys(choices_of(SPOT), 0), OTHER_SIDE: 1}


def test_only_its_owner_closes_a_room(tally: Tally):
    key, other = opened(tally), opened(tally)
    tally.vote(guest(key), PREDICT, RIGHT)
    for stranger in (guest(key), Key(key.code, other.owner), Key(key.code, key.owner[:-1]), Key(key.code, "é")):
        assert not tally.owned(stranger)
        tally.close(stranger)
    assert tally.counts(key) == {PREDICT.key: {RIGHT: 1, WRONG: 0}}


def test_counts_are_for_those_who_have_the_code(tally: Tally):
    key, other = opened(tally), opened(tally)
    tally.vote(guest(key), PREDICT, RIGHT)
    assert tally.counts(guest(key)) == tally.counts(key)
    assert tally.counts(other) == tally.counts(Key("")) == tally.counts(Key(key.code[:-1])) == {}


@pytest.mark.parametrize("choice", ["", "sure", OTHER_SIDE, "S104", "<b>"])
def test_a_choice_that_there_is_not_is_not_counted(tally: Tally, choice: str):
    key = opened(tally)
    assert not tally.vote(guest(key), PREDICT, choice)
    assert tally.counts(key) == {}


def test_counts_are_a_copy(tally: Tally):
    key = opened(tally)
    tally.vote(guest(key), PREDICT, RIGHT)
    tally.counts(key)[PREDICT.key][RIGHT] = 99
    assert tally.counts(key)[PREDICT.key][RIGHT] == 1


def test_two_tallies_share_nothing(clock: Clock):
    one, other = Tally(clock), Tally(clock)
    assert not other.is_open(opened(one))


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_a_flood_of_votes_ends_at_the_bound(tally: Tally):
    key = opened(tally)
    most = LIMITS["tally_votes"].value
    counted = sum(tally.vote(guest(key), PREDICT, (RIGHT, WRONG)[i % 2]) for i in range(most + 500))
    assert counted == most == sum(tally.counts(key)[PREDICT.key].values())
    assert tally.vote(guest(key), SPOT, OTHER_SIDE), "another challenge is another count"


def test_a_flood_of_challenges_ends_at_the_bound(tally: Tally):
    key = opened(tally)
    most = LIMITS["tally_challenges"].value
    counted = sum(tally.vote(guest(key), replace(PREDICT, key=f"more-0-{i}"), RIGHT) for i in range(most + 50))
    assert counted == most == len(tally.counts(key))
    assert tally.vote(guest(key), replace(PREDICT, key="more-0-0"), WRONG), "those that are there go on"


def test_a_flood_of_rooms_ends_at_the_bound_and_hurts_no_class(tally: Tally, clock: Clock):
    used = opened(tally)
    tally.vote(guest(used), PREDICT, RIGHT)
    while tally.open() is not None:
        pass
    clock.now += LIMITS["tally_empty"].value - 1
    assert tally.open() is None
    clock.now += 2
    flood = [tally.open() for _ in range(3 * LIMITS["tally_rooms"].value)]
    assert sum(key is not None for key in flood) == LIMITS["tally_rooms"].value - 1, "those that nobody used give way"
    assert tally.counts(used)[PREDICT.key][RIGHT] == 1


def test_when_all_are_taken_the_quietest_gives_way_after_an_hour(tally: Tally, clock: Clock):
    keys = [opened(tally) for _ in range(LIMITS["tally_rooms"].value)]
    for key in keys:
        tally.vote(guest(key), PREDICT, RIGHT)
        clock.now += 1
    tally.vote(guest(keys[0]), PREDICT, RIGHT)
    clock.now = 1_000 + LIMITS["tally_quiet"].value
    assert tally.open() is None
    clock.now += 2
    new = opened(tally)
    assert tally.is_open(new)
    assert not tally.is_open(keys[1])
    assert tally.is_open(keys[0])
    assert tally.is_open(keys[2])


# --- the end ----------------------------------------------------------------------------------------------------------


def test_a_closed_room_is_gone(tally: Tally):
    key = opened(tally)
    tally.vote(guest(key), PREDICT, RIGHT)
    tally.close(key)
    assert not tally.is_open(key)
    assert tally.counts(key) == {}
    assert not tally.vote(guest(key), PREDICT, RIGHT)
    assert tally.minutes_left(key) == 0
    tally.close(key)


def test_a_room_ends_by_itself(tally: Tally, clock: Clock):
    key = opened(tally)
    tally.vote(guest(key), PREDICT, RIGHT)
    seconds = LIMITS["tally_seconds"].value
    assert tally.minutes_left(key) == seconds // 60
    clock.now += seconds - 1
    assert tally.minutes_left(key) == 1
    assert tally.counts(key)
    clock.now += 1
    assert tally.minutes_left(key) == 0
    assert not tally.is_open(key)
    assert tally.counts(key) == {}
    assert tally._rooms == {}, "nothing of it is kept"


def test_a_vote_does_not_make_a_room_last_longer(tally: Tally, clock: Clock):
    key = opened(tally)
    for _ in range(10):
        clock.now += LIMITS["tally_seconds"].value / 10
        tally.vote(guest(key), PREDICT, RIGHT)
    assert not tally.is_open(key)


# --- threads ----------------------------------------------------------------------------------------------------------


def test_no_vote_of_many_threads_is_lost_or_counted_twice(tally: Tally):
    key, threads, each = opened(tally), 16, 100
    start = threading.Barrier(threads)

    def vote(thread: int) -> int:
        start.wait()
        return sum(tally.vote(guest(key), PREDICT, (RIGHT, WRONG)[(thread + i) % 2]) for i in range(each))

    with ThreadPoolExecutor(threads) as pool:
        counted = sum(pool.map(vote, range(threads)))
    assert counted == threads * each
    assert tally.counts(key)[PREDICT.key] == {RIGHT: threads * each // 2, WRONG: threads * each // 2}


def test_many_threads_do_not_pass_the_bounds(tally: Tally):
    key, threads = opened(tally), 8
    start = threading.Barrier(threads)

    def flood(thread: int) -> tuple[int, int]:
        start.wait()
        votes = sum(tally.vote(guest(key), PREDICT, RIGHT) for _ in range(500))
        return votes, sum(tally.open() is not None for _ in range(40))

    with ThreadPoolExecutor(threads) as pool:
        done = list(pool.map(flood, range(threads)))
    assert sum(votes for votes, _ in done) == LIMITS["tally_votes"].value
    assert sum(rooms for _, rooms in done) == LIMITS["tally_rooms"].value - 1


def test_closing_while_others_vote_leaves_nothing(tally: Tally):
    key, threads = opened(tally), 8
    start = threading.Barrier(threads + 1)

    def vote(_: int) -> list[bool]:
        start.wait()
        return [tally.vote(guest(key), PREDICT, RIGHT) for _ in range(300)]

    with ThreadPoolExecutor(threads + 1) as pool:
        voting = [pool.submit(vote, n) for n in range(threads)]
        start.wait()
        tally.close(key)
        done = [one.result() for one in voting]
    assert tally.counts(key) == {}
    assert not tally.is_open(key)
    for votes in done:
        assert votes == sorted(votes, reverse=True), "once closed, it stays closed"


# --- nobody keeps all rooms -------------------------------------------------------------------------------------------


def filled(tally: Tally) -> list[Key]:
    keys = [opened(tally) for _ in range(LIMITS["tally_rooms"].value)]
    for key in keys:
        tally.vote(guest(key), PREDICT, RIGHT)
    assert tally.open() is None
    return keys


def test_a_room_whose_owner_has_gone_gives_way_sooner_and_the_others_stay(tally: Tally, clock: Clock):
    keys = filled(tally)
    tally.leave(keys[7])
    clock.now += LIMITS["tally_left"].value - 1
    assert tally.open() is None
    clock.now += 2
    assert tally.open() is not None
    assert [tally.is_open(key) for key in keys] == [key is not keys[7] for key in keys]


def test_an_owner_who_is_back_keeps_the_room_and_so_does_a_vote(tally: Tally, clock: Clock):
    keys = filled(tally)
    for key in keys[:3]:
        tally.leave(key)
    clock.now += LIMITS["tally_left"].value - 1
    tally.come(keys[0])
    tally.vote(guest(keys[1]), PREDICT, RIGHT)
    clock.now += 2
    assert tally.open() is not None
    assert tally.open() is None
    assert [tally.is_open(key) for key in keys[:3]] == [True, True, False]


def test_an_owner_in_two_windows_is_there_until_both_are_gone(tally: Tally, clock: Clock):
    keys = filled(tally)
    tally.come(keys[0])
    tally.leave(keys[0])
    clock.now += LIMITS["tally_left"].value + 1
    assert tally.open() is None
    tally.leave(keys[0])
    clock.now += LIMITS["tally_left"].value + 1
    assert tally.open() is not None


def test_nobody_but_its_owner_can_leave_a_room_for_them(tally: Tally, clock: Clock):
    keys = filled(tally)
    for key in keys:
        tally.leave(guest(key))
        tally.leave(Key(key.code, keys[0].owner if key is not keys[0] else keys[1].owner))
    clock.now += LIMITS["tally_left"].value + 1
    assert tally.open() is None


def test_a_room_without_its_owner_stays_as_long_as_there_is_place(tally: Tally, clock: Clock):
    key = opened(tally)
    tally.leave(key)
    clock.now += LIMITS["tally_left"].value + 1
    opened(tally)
    assert tally.is_open(key)
