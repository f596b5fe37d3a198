"""Simplify's plan: what is tried next, and which lever it was."""

from __future__ import annotations

import itertools

import pytest

from core.base.parting import (
    Comparison,
    Lever,
    Parted,
    Path,
    Stage,
    StageCheck,
    Try,
    found_lever,
    next_try,
)

LEVERS = (Lever.LENGTH, Lever.BATCH, Lever.HIDDEN, Lever.JIT)
BAD = StageCheck(Path.JIT, Stage.FORWARD, parted=Parted("ys", 0, (), "1", "2"))


def play(levers: tuple[Lever, ...], parts) -> tuple[Try, ...]:
    """Simplify over a computation of which `parts(back)` says whether it parts with these put back."""
    tried: tuple[Try, ...] = ()
    while (small := next_try(levers, tried)) is not None:
        assert len(tried) < len(levers) + 3
        tried = (*tried, Try(small, BAD if parts(frozenset(levers) - small) else None))
    return tried


@pytest.mark.parametrize("needed", [s for n in (1, 2, 3) for s in itertools.combinations(LEVERS, n)])
def test_the_lever_that_completes_what_is_needed_is_found(needed):
    tried = play(LEVERS, lambda back: frozenset(needed) <= back)
    assert found_lever(LEVERS, tried) is max(needed, key=LEVERS.index)
    assert tried[0].small == frozenset(LEVERS)
    alone = frozenset(LEVERS) - {max(needed, key=LEVERS.index)}
    assert any(one.small == alone for one in tried)
    (said,) = {one.parted is not None for one in tried if one.small == alone}
    assert said == (len(needed) == 1)


def test_what_parts_with_everything_small_needs_nothing():
    tried = play(LEVERS, lambda back: True)
    assert len(tried) == 1
    assert found_lever(LEVERS, tried) is None


def test_what_never_parts_again_ends_with_everything_back():
    tried = play(LEVERS, lambda back: False)
    assert [len(one.small) for one in tried] == [4, 3, 2, 1, 0]
    assert found_lever(LEVERS, tried) is None


def test_without_levers_there_is_nothing_to_try():
    assert next_try((), ()) is None


def test_the_first_is_the_earliest_stage_and_then_the_first_path():
    late, early = StageCheck(Path.LOOP, Stage.LOSS, parted=BAD.parted), BAD
    assert Comparison(Path.EAGER, (late, early)).first is early
    assert Comparison(Path.EAGER, (StageCheck(Path.LOOP, Stage.DATA),)).first is None
