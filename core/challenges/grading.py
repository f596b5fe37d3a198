"""Whether an answer is right: told by what running the programs gives, never by an answer that was written down.

A learner's answer to "predict" is compared with the program's own values; a mended script with the contract (what the
Doctor finds in it) and with the values that the reference solution has, on the data shown and on others; of two programs the
wrong one is the one in which a code is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import jax.numpy as jnp
import numpy as np

from core.base.outcome import Outcome
from core.base.text import fill
from core.base.tolerance import Tolerance, difference, tolerance_of
from core.base.violation import Severity
from core.challenges.challenge import Ask, Challenge, Kind, Side, What
from core.challenges.reading import FormError, read_dtype, read_shape, read_value
from core.contract.rule import all_rules
from core.doctor.check import NO_SCRIPT
from core.doctor.grade_job import Again, Graded, Leaf, Values
from core.inputs.fields import shorten
from core.inputs.parse import format_leaf

RIGHT_ASK, WRONG_ASK = "`{ask}`: right.", "`{ask}`: not `{given}`. {compared}"
MORE_AXES, FEWER_AXES = "It has more axes than that.", "It has fewer axes than that."
OTHER_SIZE = "The number of axes is right. Compared one by one, axis {axis} is the first of another size."
OTHER_SORT = "It is another one of the {sort}."
OTHER_KIND = "It is of another kind: not {sort}."
SORTS: Final = {"b": "truth values", "i": "whole numbers", "f": "floats", "c": "complex numbers"}
OTHER_COUNT = "Compared were shapes first: yours is {given}, the program's is {want}."
OTHER_NUMBER = "The program gives another number."
OTHER_ENTRY = "Compared number by number, entry {at} is the first that differs."
ROUNDED = "That is close: give all digits."
RIGHT_SIDE, WRONG_SIDE = "The program: right.", "The program on the {side} is in order. Look at the other one."
RIGHT_WHY, WRONG_WHY = "The reason: right.", "Not {code}: the check of that program finds something else."
PROOF = "The number that shows it: {claim} It is {before}; with nothing wrong it is {expected}."
STOPPED = "The script was stopped at a limit, so there is nothing to compare."
UNREAD = "This cannot be run: {message}. It was not counted."
NO_TIME = (
    "There was no time to check all of it: the machine was busy. Nothing is counted, and your script is as it was."
)
UNCHANGED = "The script is as it was in the beginning, so this was not counted."
RAISED = "The script stops with {type}: {message}"
FOUND = "Still there: {code}, {title}."
GONE = "There is no scan in it any more. Mend the program so that a scan does the work."
GONE_CELL = "The cell reads nothing any more. Mend the program so that the cell does the work."
NO_NAME = "`{name}` is not there, or is no array."
OTHER_VALUE = "`{name}` is {got}; that is not right yet."
OTHER_VALUES = "`{name}` has the right shape, but its values are not right yet."
OTHER_SHAPE = "`{name}` has the shape {got}; it must have {want}."
NOTHING = "`{name}` is empty; it must have the shape {want}."
DATA_LOST = "Leave `{name} = …` as it is, at the top: the check puts other data there."
DATA_STOPS = "With other data in `{name}` the script stops."
DATA_DIFFERS = "With other data in `{name}` this is not right: {results}. It must be computed from the data."
CLEAN = "The contract is kept, and the values are right, with other data as well."
TRUE, FALSE = "True", "False"
#: Characters of a value that are said back, and of a message; numbers of a result that are.
_SHOWN, _FEW = 80, 12
#: What is off by no more than this was rounded by hand.
_CLOSE: Final = Tolerance(rtol=5e-3, atol=5e-3)
#: The codes of what is not run here, and of what ran out of time.
_NOT_RUN, _OUT_OF_TIME = "X603", "X602"
#: Kinds of error that a text has which is no script.
_UNREAD: Final = frozenset({"SyntaxError", "IndentationError", "TabError", NO_SCRIPT})

#: What a class tally counts, beside the codes of a "spot".
RIGHT, WRONG, OTHER_SIDE = "right", "wrong", "other"


@dataclass(frozen=True, slots=True)
class Said:
    """One part of the answer: whether it is right, and a sentence (Markdown). `field`: which input it is about."""

    right: bool
    text: str
    field: int = 0


@dataclass(frozen=True, slots=True)
class Grade:
    """What became of an answer.

    Attributes:
        right: all of it is.
        said: sentences, in the order of the inputs.
        forms: by input, what is wrong with the form of an answer; then nothing was graded, and no try is counted.
        choice: what a class tally counts; "" where nothing was graded.
        void: there was no answer in it, such as a script that cannot be read; no try is counted either.
        unread: it is void because nothing could be run: what the check found says why, at its place.
        cut: it is void because there was no time to check all of it.
    """

    right: bool = False
    said: tuple[Said, ...] = ()
    forms: tuple[tuple[int, str], ...] = ()
    choice: str = ""
    void: bool = False
    unread: bool = False
    cut: bool = False

    @property
    def counted(self) -> bool:
        """Whether it was a try."""
        return not self.forms and not self.void

    @classmethod
    def stopped(cls, sentence: str) -> Grade:
        """A script that was stopped from outside, and so gave no answer."""
        return cls(False, (Said(False, sentence),), choice=WRONG)


class UnanswerableError(ValueError):
    """A program of ours does not give what is asked of it."""


@cache
def _titles() -> dict[str, str]:
    return {rule.code: rule.title for rule in all_rules()}


def title_of(code: str) -> str:
    """What a code is about, for a reader; "" for none that is known."""
    return fill(_titles().get(code, ""))


# --- predict --------------------------------------------------------------------------------------------------------


def leaf_of(ask: Ask, values: Values) -> Leaf:
    """The leaf that is asked about.

    Raises:
        UnanswerableError: there is none.
    """
    for leaf in values.get(ask.name) or ():
        if leaf.path == ask.path:
            return leaf
    raise UnanswerableError(str(ask))


def answer_text(ask: Ask, run: Graded) -> str:
    """The right answer, as it would be typed."""
    leaf = leaf_of(ask, run.values)
    match ask.what:
        case What.SHAPE:
            return str(leaf.values.shape)
        case What.DTYPE:
            return leaf.dtype
        case What.VALUE:
            return value_text(leaf)


def value_text(leaf: Leaf, most: int = 1_000) -> str:
    """A value as people type it."""
    text = format_leaf(leaf.values) if leaf.values.size or leaf.values.ndim < 2 else str(leaf.values.shape)
    if leaf.values.dtype == np.bool_:
        text = text.replace("true", fill(TRUE)).replace("false", fill(FALSE))
    return text if len(text) <= most else f"{text[:most]}…"


def grade_predict(challenge: Challenge, answers: Sequence[str], run: Graded) -> Grade:
    """Grade what was typed.

    Args:
        challenge: a "predict".
        answers: one text for each of its asks.
        run: what its program gave.
    """
    said, forms = [], []
    for field, (ask, text) in enumerate(zip(challenge.asks, answers, strict=True)):
        try:
            compared = _compared(ask, text, leaf_of(ask, run.values))
        except FormError as error:
            forms.append((field, str(error)))
            continue
        given = shorten(" ".join(text.replace("`", "").split()), _SHOWN)
        words = fill(WRONG_ASK if compared else RIGHT_ASK, ask=ask, given=given, compared=compared)
        said.append(Said(not compared, words, field))
    if forms:
        return Grade(forms=tuple(forms))
    right = all(one.right for one in said)
    return Grade(right, tuple(said), choice=RIGHT if right else WRONG)


def _compared(ask: Ask, text: str, leaf: Leaf) -> str:
    """What is different about an answer, in a sentence; "" for a right one."""
    match ask.what:
        case What.SHAPE:
            return _compared_shape(read_shape(text), leaf.values.shape)
        case What.DTYPE:
            return _compared_dtype(read_dtype(text), leaf.dtype)
        case What.VALUE:
            return _compared_value(read_value(text), leaf)


def _compared_shape(given: tuple[int, ...], want: tuple[int, ...]) -> str:
    if given == want:
        return ""
    if len(given) != len(want):
        return fill(MORE_AXES if len(given) < len(want) else FEWER_AXES)
    return fill(OTHER_SIZE, axis=next(axis for axis, size in enumerate(given) if size != want[axis]))


def _compared_dtype(given: str, want: str) -> str:
    if given == want:
        return ""
    sort = _sort(given)
    return fill(OTHER_SORT if sort == _sort(want) else OTHER_KIND, sort=fill(SORTS[sort]))


def _sort(dtype: str) -> str:
    kind = jnp.dtype(dtype).kind
    return {"u": "i", "V": "f"}.get(kind, kind)  # to NumPy, what it does not know itself is raw bytes


def _compared_value(given: np.ndarray[Any, Any], leaf: Leaf) -> str:
    want = leaf.values.astype(np.float64)
    if given.shape != want.shape:
        return fill(OTHER_COUNT, given=given.shape, want=want.shape)
    found = difference(given, want, tolerance_of(leaf.dtype))
    if found.within:
        return ""
    if difference(given, want, _CLOSE).within and leaf.values.dtype.kind == "f":
        return fill(ROUNDED)
    at = found.first or ()
    return fill(OTHER_ENTRY, at=list(at) if len(at) > 1 else at[0]) if at else fill(OTHER_NUMBER)


# --- fix it ---------------------------------------------------------------------------------------------------------


def broken_codes(run: Graded) -> tuple[str, ...]:
    """The codes of what is broken, without the notes, each once."""
    return tuple(dict.fromkeys(violation.code for violation in run.answer.report.broken))


def grade_fix(challenge: Challenge, run: Graded, want: Graded) -> Grade:
    """Grade a mended script.

    Args:
        challenge: a "fix".
        run: what the learner's script did, of the same request as `want`.
        want: what the reference solution did.
    """
    unread = _unread(run)
    if unread:
        return Grade(said=(Said(False, fill(UNREAD, message=unread)),), void=True, unread=True)
    if not run.whole and run.answer.report.outcome is not Outcome.LIMIT:
        return Grade(said=(Said(False, fill(NO_TIME)),), void=True, cut=True)
    said = tuple(Said(False, text) for text in _wrong(challenge, run, want))
    if not said:
        return Grade(True, (Said(True, fill(CLEAN)),), choice=RIGHT)
    if run.answer.script.strip() == challenge.program.strip():  # somebody reads first what the check says
        return Grade(said=(*said, Said(False, fill(UNCHANGED))), void=True)
    return Grade(False, said, choice=WRONG)


def out_of_time(run: Graded) -> bool:
    """Whether it was stopped at the limit of a worker's time: by a loop that never ends, or by a busy machine."""
    return any(one.code == _OUT_OF_TIME for one in run.answer.report.violations)


def _unread(run: Graded) -> str:
    """Why nothing was run: it is no script, or is longer than is read; "" where it was."""
    report = run.answer.report
    if not run.values or any(one.code == _NOT_RUN for one in report.violations):  # too long to be read; or refused
        return " ".join(_limits(run)).rstrip(".")
    unread = report.error is not None and report.error.type in _UNREAD
    return report.error.message.strip().rstrip(".") if unread and report.error is not None else ""


def _wrong(challenge: Challenge, run: Graded, want: Graded) -> list[str]:
    """What is still wrong with it: the first kind of thing that is, for what comes after follows from it."""
    report = run.answer.report
    if report.outcome is Outcome.LIMIT:
        return _limits(run) or [fill(STOPPED)]
    if report.error is not None:
        first = report.error.message.strip().split("\n", 1)[0][:_SHOWN]
        return [fill(RAISED, type=report.error.type, message=first)]
    if report.broken:
        return list(dict.fromkeys(fill(FOUND, code=one.code, title=title_of(one.code)) for one in report.broken))
    return _no_scan(run, want) or _other_values(run.values, want.values) or _with_other_data(challenge, run, want)


def _limits(run: Graded) -> list[str]:
    return [one.message for one in run.answer.report.violations if one.severity is Severity.LIMIT]


def _no_scan(run: Graded, want: Graded) -> list[str]:
    """Whether what did the work is gone. Another kind of loop that JAX sees is as good: values are compared anyway."""
    if run.answer.loops or run.answer.cells or not (want.answer.loops or want.answer.cells):
        return []
    return [fill(GONE if want.answer.loops else GONE_CELL)]


def _other_values(values: Values, want: Values) -> list[str]:
    out = []
    for name, right in want.items():
        got = values.get(name)
        if right is None:
            raise UnanswerableError(name)
        if got is None:
            out.append(fill(NO_NAME, name=name))
        elif _types(_like(got, right)) != _types(right):
            template = OTHER_SHAPE if got else NOTHING
            out.append(fill(template, name=name, got=shorten(_types(got), _SHOWN), want=_types(right)))
        elif not _same(got, right):
            few = sum(leaf.values.size for leaf in got) <= _FEW
            shown = ", ".join(value_text(leaf, _SHOWN) for leaf in got) if few else ""
            out.append(fill(OTHER_VALUE if few else OTHER_VALUES, name=name, got=shown))
    return out


def _with_other_data(challenge: Challenge, run: Graded, want: Graded) -> list[str]:
    names = ", ".join(line.split("=", 1)[0].strip() for line in challenge.swap.splitlines() if line.strip())
    match run.again:
        case Again.NONE:
            return []
        case Again.LOST:
            return [fill(DATA_LOST, name=names)]
        case Again.STOPPED:
            return [fill(DATA_STOPS, name=names)]
        case Again.RAN:
            wrong = [f"`{name}`" for name, right in want.swapped.items() if not _same(run.swapped.get(name), right)]
            return [fill(DATA_DIFFERS, name=names, results=", ".join(wrong))] if wrong else []


def _types(leaves: Sequence[Leaf]) -> str:
    """Shapes by leaf. The dtype is not asked for: values are compared, within the tolerance of both."""
    return ", ".join(f"{leaf.path} {leaf.values.shape}".strip() for leaf in leaves)


def _like(got: Sequence[Leaf], want: Sequence[Leaf]) -> Sequence[Leaf]:
    """A list of equal leaves as one array, where one array is wanted: to be kept step by step they may be in either."""
    in_order = all(leaf.path == f"[{index}]" for index, leaf in enumerate(got))
    alike = len({(leaf.dtype, leaf.values.shape) for leaf in got}) == 1
    if in_order and alike and [leaf.path for leaf in want] == [""]:
        return (Leaf("", got[0].dtype, np.stack([leaf.values for leaf in got])),)
    return got


def _same(got: Sequence[Leaf] | None, want: Sequence[Leaf] | None) -> bool:
    if got is None or want is None:
        return False
    got = _like(got, want)
    if _types(got) != _types(want):
        return False
    pairs = zip(got, want, strict=True)
    return all(difference(a.values, b.values, tolerance_of(a.dtype, b.dtype)).within for a, b in pairs)


# --- spot it --------------------------------------------------------------------------------------------------------


def answerable(challenge: Challenge, runs: Sequence[Graded]) -> bool:
    """Whether an answer can be graded by these runs; not so where a busy machine gave the check no time to end."""
    if not all(run.whole for run in runs):
        return False
    if challenge.kind is Kind.SPOT:
        return [bool(broken_codes(run)) for run in runs] == [True, False]
    asked = runs[-1]  # of a "fix" the one that is mended
    again = Again.RAN if challenge.swap else Again.NONE
    return asked.again is again and all(asked.values.get(name) is not None for name in challenge.names)


def proof_text(run: Graded) -> str:
    """The number that shows what is wrong with a program, and how it was measured; "" where none was."""
    for violation in run.answer.report.broken:
        proof = violation.proof
        if proof is not None:
            before, expected = (format(number, ".4g") for number in (proof.before, proof.expected))
            return fill(PROOF, claim=proof.claim, before=before, expected=expected)
    return ""


def grade_spot(challenge: Challenge, side: Side, code: str, runs: Sequence[Graded], seed: int) -> Grade:
    """Grade a choice between two programs, and of a reason.

    Args:
        challenge: a "spot".
        side: the one that was chosen.
        code: the reason that was chosen.
        runs: what its program and its other program did.
        seed: of the class; it says which stands where.
    """
    wrong = next((run for run in runs if broken_codes(run)), None)
    if wrong is None or all(broken_codes(run) for run in runs):
        raise UnanswerableError(challenge.key)
    at = challenge.side(seed) if wrong is runs[0] else next(one for one in Side if one is not challenge.side(seed))
    if side is not at:
        return Grade(False, (Said(False, fill(WRONG_SIDE, side=side)),), choice=OTHER_SIDE)
    right = code in broken_codes(wrong)
    said = [Said(True, fill(RIGHT_SIDE)), Said(right, fill(RIGHT_WHY if right else WRONG_WHY, code=code), 1)]
    if right and proof_text(wrong):
        said.append(Said(True, proof_text(wrong), 1))
    return Grade(right, tuple(said), choice=code)


def choices_of(challenge: Challenge) -> tuple[str, ...]:
    """All that a class tally can count of a challenge."""
    return (OTHER_SIDE, *challenge.options) if challenge.kind is Kind.SPOT else (RIGHT, WRONG)
