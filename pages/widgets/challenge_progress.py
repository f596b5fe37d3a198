"""What a session did with its challenges: tries, hints, the last answer, scripts under repair, votes. It ends with the session."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from core.base.limits import LIMITS
from core.base.outcome import Report
from core.challenges.challenge import Challenge
from core.challenges.fields import LAST
from core.challenges.generate import MORE, TURNS, generated, template_of
from core.challenges.grading import Grade
from core.challenges.sheet import Attempt

_ATTEMPTS, _LAST, _SCRIPTS, _VOTED = (f"challenges:{name}" for name in ("attempts", "last", "scripts", "voted"))
_HOME = "challenges:home"
#: Challenges of which a session keeps scripts and last answers.
_KEPT = LIMITS["challenge_kept"].value


@dataclass(frozen=True, slots=True)
class Last:
    """The last answer to a challenge.

    Attributes:
        grade: what became of it.
        report: of a script, what was found in it; None for other answers.
        text: the script.
    """

    grade: Grade
    report: Report | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Script:
    """A script under repair, and how often it was replaced by the page."""

    text: str
    revision: int = 0


def attempts() -> dict[str, Attempt]:
    """All that was tried, by the challenge's key, in the order of the first try."""
    found: dict[str, Attempt] = st.session_state.setdefault(_ATTEMPTS, {})
    return found


def attempt(challenge: Challenge, seed: int) -> Attempt:
    """What became of one."""
    return attempts().get(challenge.key) or Attempt.of(challenge, seed)


def keep(new: Attempt) -> None:
    """Remember it."""
    attempts()[new.key] = new


def answered(challenge: Challenge, seed: int, last: Last) -> None:
    """An answer was graded."""
    if last.grade.counted:
        keep(attempt(challenge, seed).tried(last.grade.right))
    _put(_LAST, challenge.key, last)


def hint(challenge: Challenge, seed: int) -> None:
    """For `on_click`: one hint more."""
    now = attempt(challenge, seed)
    keep(now.hinted(min(now.hints + 1, len(challenge.hints))))


def give_up(challenge: Challenge, seed: int) -> None:
    """For `on_click`: show the answer."""
    keep(attempt(challenge, seed).given_up())
    _last().pop(challenge.key, None)


def last(challenge: Challenge) -> Last | None:
    """The last answer; None before the first."""
    return _last().get(challenge.key)


def script(challenge: Challenge) -> Script:
    """The script as it stands."""
    found: dict[str, Script] = st.session_state.setdefault(_SCRIPTS, {})
    return found.get(challenge.key, Script(challenge.program))


def typed(challenge: Challenge, text: str) -> None:
    """What stands in the editor."""
    _put(_SCRIPTS, challenge.key, Script(text, script(challenge).revision))


def start_again(challenge: Challenge) -> None:
    """For `on_click`: the script as it was in the beginning."""
    _put(_SCRIPTS, challenge.key, Script(challenge.program, script(challenge).revision + 1))
    _last().pop(challenge.key, None)


def voted() -> dict[tuple[str, str], bool]:
    """Rooms and challenges in which this session has voted, once each, and whether the room had place for it."""
    found: dict[tuple[str, str], bool] = st.session_state.setdefault(_VOTED, {})
    return found


def home() -> tuple[str, int] | None:
    """The set and the challenge in it from which "Another like this" led away; None where it did not."""
    found: tuple[str, int] | None = st.session_state.get(_HOME)
    return found


def set_home(place: tuple[str, int] | None) -> None:
    """Remember where to go back to."""
    st.session_state[_HOME] = place


def another(challenge: Challenge, seed: int) -> int:
    """The number of a challenge made anew that is like this one, and not over yet; 0 where there is none.

    Of one that was made itself it is the next of the same template; of a reviewed one, of the same kind.
    """
    made = challenge.key.startswith(MORE)
    wanted = template_of(seed, challenge.number) if made else None
    for number in range(challenge.number + 1 if made else 1, LAST + 1):
        alike = (
            TURNS[(number - 1) % len(TURNS)] is challenge.kind
            if wanted is None
            else template_of(seed, number) == wanted
        )
        if alike and not attempt(generated(seed, number), seed).over:
            return number
    return 0


def _last() -> dict[str, Last]:
    found: dict[str, Last] = st.session_state.setdefault(_LAST, {})
    return found


def _put(name: str, key: str, value: object) -> None:
    """Keep it as the newest; the oldest goes when there are too many."""
    kept = st.session_state.setdefault(name, {})
    kept.pop(key, None)
    kept[key] = value
    while len(kept) > _KEPT:
        kept.pop(next(iter(kept)))
