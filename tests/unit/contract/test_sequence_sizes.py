"""X601, S116 and S111 on the Sequence page, and the facts and stages behind them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from core.base.avals import abstract
from core.base.limits import LIMITS
from core.base.outcome import Outcome
from core.base.places import Field
from core.base.sequences import SequenceResult
from core.base.violation import Severity, Violation
from core.contract import sequence_facts
from core.contract.engine import check, diagnose, examine
from core.contract.facts import facts_of
from core.contract.rule import Stage
from core.contract.sequence_facts import SequenceFacts, ran
from core.contract.subject import SequenceTrial
from core.contract.trace import Raised
from tests.unit.contract.sequence_support import LENGTHS, RAGGED, clean, mended, raised, some, trial


def never(_: Any) -> Any:
    raise AssertionError("it was run")


def limited(it: SequenceTrial) -> Violation:
    report = check(it)
    assert report.outcome is Outcome.LIMIT
    assert [v.code for v in report.violations] == ["X601"], [v.message for v in report.violations]
    assert report.violations[0].severity is Severity.LIMIT
    return report.violations[0]


# --- X601 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "said", "place"),
    [
        ((1, 513, 1, 1), "T = 513 is over the limit of 512 steps.", "length"),
        ((65, 2, 1, 1), "B = 65 is over the limit of 64 examples.", "batch"),
        ((1, 2, 129, 1), "in_features = 129 is over the limit of 128 features.", "in_features"),
        ((1, 2, 1, 257), "hidden_features = 257 is over the limit of 256 units.", "hidden_features"),
    ],
)
@pytest.mark.parametrize("axes", ["BTF", "TBF"])
def test_each_size_is_limited(sizes: Any, said: str, place: str, axes: str) -> None:
    it = trial(sizes, axes=axes, kind="SimpleCell")
    violation = limited(it)
    assert violation.message == said
    assert violation.place == Field(f"sequence_{place}", place)
    right = mended(it, "X601", violation_kind(place))
    clean(right)


def violation_kind(place: str) -> str:
    return {"length": "size_length", "batch": "size_batch", "in_features": "size_features"}.get(place, "size_hidden")


def test_all_that_is_given_along_an_axis_is_cut_with_it() -> None:
    it = trial((65, 4, 2, 3), lengths=(4,) * 65, masking=LENGTHS, init=(some(65, 3), some(65, 3)))
    right = mended(it, "X601", "size_batch")
    assert (right.batch, len(right.lengths or ()), [len(part) for part in right.init or ()]) == (64, 64, [64, 64])
    clean(right)


@pytest.mark.parametrize(
    ("sizes", "both", "what", "fits"),
    [
        ((64, 512, 10, 1), False, "The data, float32[64,512,10],", 409),
        ((64, 512, 1, 8), False, "h over time, 513 × float32[64,8],", 511),
        ((64, 300, 1, 8), True, "The outputs, float32[64,300,16],", 256),
    ],
)
def test_no_array_has_more_elements_than_the_limit(sizes: Any, both: bool, what: str, fits: int) -> None:
    it = trial(sizes, kind="SimpleCell", bidirectional=both)
    violation = limited(it)
    assert violation.message.startswith(what)
    assert mended(it, "X601", "size_length").length == fits


def test_the_largest_sizes_are_allowed() -> None:
    assert diagnose_limit(trial((8, 512, 4, 63))) == ()
    assert diagnose_limit(trial((8, 512, 4, 64), kind="SimpleCell")) == ("X601",)  # 513 carries


def diagnose_limit(it: SequenceTrial) -> tuple[str, ...]:
    return tuple(f.rule.code for f in diagnose(it, [r for r in sequence_rules() if r.stage is Stage.LIMIT]).found)


def sequence_rules() -> list[Any]:
    from core.contract.rule import all_rules

    return [rule for rule in all_rules() if "sequence" in rule.on]


@pytest.mark.parametrize("unroll", [33, 0, True])
def test_a_program_of_many_copies_is_over_the_limit(unroll: Any) -> None:
    it = trial((2, 40, 2, 3), unroll=unroll)
    assert limited(it).message == (
        f"The unrolled part of the scan would be {33 if unroll == 33 else 40} steps, over the limit of 32."
    )
    clean(mended(it, "X601", "unroll"))


def test_an_unroll_above_t_is_only_t() -> None:
    clean(trial(unroll=64))
    clean(trial(unroll=0))


def test_over_a_limit_nothing_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data that do not exist at all, as a page gives them: only their shape is looked at."""
    monkeypatch.setattr(sequence_facts, "_outcome", never)
    it = replace(trial(), inputs=abstract((10**6, 10**6, 3), np.float32), lengths=(3,), masking=LENGTHS)
    report = check(it)
    assert report.outcome is Outcome.LIMIT
    assert {v.place.key for v in report.violations if isinstance(v.place, Field)} == {
        "sequence_length",
        "sequence_batch",
    }


# --- S116 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("unroll", "right"), [(-1, 1), (1.5, 2), ("3", 3), (None, 1), ([2], 2)])
def test_unroll_is_a_whole_number(unroll: Any, right: int) -> None:
    it = trial(unroll=unroll)
    violation = raised(it, "S116")
    assert violation.message == f"unroll is {unroll!r}, which is no whole number of at least 0."
    assert violation.place is None
    assert mended(it, "S116", "unroll").unroll == right


@pytest.mark.parametrize("unroll", [1, 2, 5, True, False])
def test_a_good_unroll(unroll: Any) -> None:
    clean(trial(unroll=unroll))


# --- facts and stages -------------------------------------------------------------------------------------------------


def test_the_facts_of_a_trial() -> None:
    it = trial()
    facts = facts_of(it)
    assert isinstance(facts, SequenceFacts)
    assert (facts.on, facts.trial, facts.subject, facts.jax) == ("sequence", it, it, None)
    assert isinstance(facts.run, SequenceResult)
    assert facts.result is not None


def test_what_the_layer_raises_is_a_fact() -> None:
    facts = facts_of(trial(masking=LENGTHS, lengths=(1, 2)))
    assert isinstance(facts, SequenceFacts)
    assert isinstance(facts.run, Raised)
    assert facts.result is None
    assert facts.jax is not None
    with pytest.raises(ValueError, match="the layer raised"):
        ran(facts.trial)


def test_a_page_draws_the_run_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    report, facts = examine(trial(masking=LENGTHS, lengths=RAGGED))
    assert report.outcome is Outcome.OK
    assert isinstance(facts, SequenceFacts)
    monkeypatch.setattr(sequence_facts, "_outcome", never)
    assert isinstance(facts.run, SequenceResult)


def test_what_no_rule_knows_is_said_as_it_is() -> None:
    """An init with another batch: no rule of this page speaks of it."""
    report = check(trial(init=(some(2, 4), some(2, 4))))
    assert report.outcome is Outcome.ERROR
    assert report.error is not None
    assert report.violations == ()


def test_every_rule_of_the_page() -> None:
    assert {rule.code for rule in sequence_rules()} == {
        "L309", "L310", "L311", "L312", "L313", "L317", "L319", "L321", "N501", "S111", "S114", "S116", "X601",
    }  # fmt: skip
    assert LIMITS["batch"].value == 64
