"""What is said of a baseline and of a check, on a page and in a terminal alike."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from core.base.parting import Stage
from core.base.text import fill
from core.base.tolerance import EXACT, Tolerance
from core.regress.baseline import Baseline
from core.regress.case import Became
from core.regress.compare import OUTCOME, LeafCheck, Place, Verdict
from core.regress.environment import TOLERANCE as OURS

SAME, MOVED = "Same", "Moved"
SAME_WORDS = "{cases} cases, {leaves} leaves: every one within the file's tolerance."
ALL_BITS = "All are equal to the last bit."
SOME_BITS = "{bits} of {leaves} are equal to the last bit; the largest difference is {largest} ({case}, {leaf})."
MOVED_WORDS = "{moved} of {all} comparisons, first at stage “{stage}”: case {case}, leaf {leaf}{where}."
MOVED_BY = "Then {then}, now {now}"
BY = "{text}: {apart} apart, {allowed} allowed."
PLAIN = "{text}."
AT_T, AT_VISIT, AT_INIT, AT_INDEX = ", t = {t}", ", visit {t}", ", init", ", index {index}"
TOLERANCE = "Tolerance, from the file, for {backend}: {each}; all else exact."
EACH = "{dtype} {text}"
WIDER = "That is wider than a recording here would have it ({each}): a move between the two is not seen."
VERSIONS_CHANGED = "Recorded with other versions: {each}."
CHANGE = "{name} {then} → {now}"
ABSENT = "none"
VERSIONS_SAME = "Versions are the same as then."
BACKENDS = "Recorded on {then}, checked on {now}: the tolerance is that of {now}."
NAN = "NaN in both at the same places, which counts as equal: {each}."
NAN_EACH = "{count} in {case}, {leaf}"
NAN_MORE = "{each}; and {count} leaves more"
RECORDED = "{cases} cases, {leaves} leaves, {size:,} bytes."
REPLACED = "Typed numbers are not in the file: seeded ones of the same shape and dtype stand for them ({names})."
OWN = "The numbers that were typed are in the file."
OF_FILE = "The parameters that were loaded from a file ({hash}) are in it."
NOTHING_TYPED = "Nothing in it was typed: data and parameters come from seeds and formulas."
LOSS = "The scalar that is differentiated: {loss}."
NO_LOSS = "Nothing here is differentiated: there are no floating-point numbers to sum."
WILD = "Not all of it is finite: {each}."
LEFT_OUT = "Cases that this state has no input for: {names}."
COLUMNS: Final = ("stage", "case", "leaf", "where", "then", "now", "largest difference", "allowed")
CASE_COLUMNS: Final = ("case", "what is special", "ends")
RUNS, FAILS, IS_REFUSED = "runs", "fails: {why}", "refused at {why}"
MORE = "Moved as well: {count} more."
#: Characters of a text that moved.
SHOWN = 160
#: Names of a list that are written out.
NAMED = 4
_WORDS: Final = {stage: str(stage) for stage in Stage} | {
    Stage.DATA: "data & parameters",
    Stage.STATE: "State types",
    Stage.SHAPES: "shapes & dtypes",
}


def stage_words(stage: Stage) -> str:
    """A stage as a reader knows it."""
    return fill(_WORDS[stage])


def number(value: float) -> str:
    """A difference: two digits."""
    return "∞" if math.isinf(value) else f"{value:.2g}"


def place_words(place: Place) -> str:
    """``, t = 3, index (0, 2)``; "" where a leaf is one thing."""
    words, rest = "", place.index
    if place.init:
        words, rest = fill(AT_INIT), place.index[1:]
    elif place.t is not None:
        words, rest = fill(AT_VISIT if place.visit else AT_T, t=place.t), place.index[1:]
    if rest:
        words += fill(AT_INDEX, index=f"({', '.join(map(str, rest))})" if len(rest) > 1 else rest[0])
    return words


# --- a check --------------------------------------------------------------------------------------------------------


def headline(verdict: Verdict) -> tuple[str, str]:
    """One word, and the sentences after it."""
    first = verdict.first
    if first is None:
        words = fill(SAME_WORDS, cases=verdict.cases, leaves=verdict.leaves)
        return fill(SAME), f"{words} {_bits(verdict)}"
    words = fill(
        MOVED_WORDS,
        moved=len(verdict.moved),
        all=len(verdict.checks),
        stage=stage_words(first.stage),
        case=first.case,
        leaf=first.leaf,
        where=place_words(first.place),
    )
    return fill(MOVED), f"{words} {_by(first)}"


def _bits(verdict: Verdict) -> str:
    compared = [check for check in verdict.checks if check.leaf != OUTCOME]
    bits, far = sum(check.same_bits for check in compared), verdict.farthest
    if bits == len(compared) or far is None:
        return fill(ALL_BITS) if bits == len(compared) else ""
    return fill(SOME_BITS, bits=bits, leaves=len(compared), largest=number(far.largest), case=far.case, leaf=far.leaf)


def _by(check: LeafCheck) -> str:
    then, now = apart(check.then, check.now)
    text = fill(MOVED_BY, then=then, now=now)
    if not check.place.index and math.isinf(check.largest):
        return fill(PLAIN, text=text)
    return fill(BY, text=text, apart=number(check.largest), allowed=number(check.allowed))


def apart(then: str, now: str) -> tuple[str, str]:
    """Two texts as they stand beside each other: of long ones, such as structures of trees, the part that differs."""
    if max(len(then), len(now)) <= SHOWN:
        return then, now
    same = next(
        (i for i, (one, two) in enumerate(zip(then, now, strict=False)) if one != two), min(len(then), len(now))
    )
    start = max(0, same - SHOWN // 4)
    one, two = (
        ("…" if start else "") + text[start : start + SHOWN] + ("…" if len(text) > start + SHOWN else "")
        for text in (then, now)
    )
    return one, two


def rows(verdict: Verdict, most: int) -> list[tuple[str, ...]]:
    """The table of what moved, first things first and so many rows at most, by `COLUMNS`."""
    return [
        (
            stage_words(check.stage),
            str(check.case),
            check.leaf,
            place_words(check.place).removeprefix(", "),
            *apart(check.then, check.now),
            "" if math.isinf(check.largest) and not check.place.index else number(check.largest),
            "" if not check.place.index and math.isinf(check.largest) else number(check.allowed),
        )
        for check in verdict.moved[:most]
    ]


def beside(baseline: Baseline, verdict: Verdict, most: int = 0) -> Iterator[str]:
    """What stands beside a verdict, always: versions, tolerance, NaN, and what the data are. `most`: as of `rows`."""
    if most and len(verdict.moved) > most:
        yield fill(MORE, count=len(verdict.moved) - most)
    if verdict.changes:
        each = ", ".join(
            fill(CHANGE, name=name, then=then or fill(ABSENT), now=now or fill(ABSENT))
            for name, then, now in verdict.changes
        )
        yield fill(VERSIONS_CHANGED, each=each)
    else:
        yield fill(VERSIONS_SAME)
    if verdict.backend != verdict.recorded_on:
        yield fill(BACKENDS, then=verdict.recorded_on, now=verdict.backend)
    # Only of dtypes that were compared.
    compared = (check for check in verdict.checks if check.tolerance != EXACT)
    # The widest of a dtype: cases may be computed in different ones.
    used = {
        one.dtype: one.tolerance for one in sorted(compared, key=lambda one: (one.tolerance.rtol, one.tolerance.atol))
    }
    each = ", ".join(fill(EACH, dtype=name, text=tolerance.text) for name, tolerance in used.items())
    if each:
        yield fill(TOLERANCE, backend=verdict.backend, each=each)
    wider = _wider(baseline, verdict)
    if wider:
        yield fill(WIDER, each=wider)
    found = [fill(NAN_EACH, count=one.nan, case=one.case, leaf=one.leaf) for one in verdict.nan]
    if found:
        said = "; ".join(found[:NAMED])
        more = len(found) - NAMED
        yield fill(NAN, each=said if more <= 0 else fill(NAN_MORE, each=said, count=more))
    yield data_words(baseline)
    if baseline.weights is not None:
        yield fill(OF_FILE, hash=baseline.weights.short)


def _wider(baseline: Baseline, verdict: Verdict) -> str:
    """The tolerances of a recording here, of the dtypes for which the file allows more; "" where it does for none.

    What a file says of itself goes: but nobody should have to know the table by heart to see that it was changed.
    """
    given, ours = baseline.tolerance.get(verdict.backend, {}), OURS.get(verdict.backend, {})
    own = {name: Tolerance(*ours.get(name, (0.0, 0.0))) for name in given}
    wide = [name for name, (rtol, atol) in given.items() if rtol > own[name].rtol or atol > own[name].atol]
    return ", ".join(fill(EACH, dtype=name, text=own[name].text) for name in wide)


# --- a recording ----------------------------------------------------------------------------------------------------


def data_words(baseline: Baseline) -> str:
    """Whether anybody's numbers are in the file."""
    if baseline.replaced:
        return fill(REPLACED, names=", ".join(baseline.replaced))
    return fill(OWN) if baseline.own else fill(NOTHING_TYPED)


def recorded(baseline: Baseline, size: int) -> Iterator[str]:
    """What is said of a baseline that was recorded."""
    leaves = sum(case.count for case in baseline.cases)
    yield fill(RECORDED, cases=len(baseline.cases), leaves=leaves, size=size)
    yield data_words(baseline)
    if baseline.weights is not None:
        yield fill(OF_FILE, hash=baseline.weights.short)
    loss = baseline.cases[0].loss
    yield fill(LOSS, loss=loss) if loss else fill(NO_LOSS)
    wild = [fill(NAN_EACH, count=count, case=case, leaf=leaf) for case, leaf, count in baseline.not_finite]
    if wild:
        said, more = "; ".join(wild[:NAMED]), len(wild) - NAMED
        yield fill(WILD, each=said if more <= 0 else fill(NAN_MORE, each=said, count=more))
    if baseline.left_out:
        yield fill(LEFT_OUT, names=", ".join(baseline.left_out))


def case_rows(baseline: Baseline) -> list[tuple[str, str, str]]:
    """The table of the cases, by `CASE_COLUMNS`."""
    ends = {Became.RAN: RUNS, Became.BROKEN: FAILS, Became.REFUSED: IS_REFUSED}
    return [(str(case.name), case.words, fill(ends[case.became], why=", ".join(case.why))) for case in baseline.cases]
