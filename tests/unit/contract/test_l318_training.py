"""L318 of one update on a page: dropout in training mode with nothing to draw from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.base.outcome import Outcome
from core.base.places import Field, Places
from core.base.training import TrainingSpec
from core.contract.engine import check
from core.runners.training import task

SPEC = TrainingSpec(*task(2, 4, 3), hidden_features=4)
RNGS = Field("gradients_rngs", "rngs")


def test_it_is_flagged_with_what_flax_said_and_two_ways_out():
    report = check(replace(SPEC, dropout_seed=None, places=Places({"rngs": RNGS})))
    (found,) = report.violations
    assert (found.code, found.silent, found.place) == ("L318", False, RNGS)
    assert found.jax_said is not None
    assert found.jax_said.startswith("ValueError")
    assert [fix.remaining for fix in found.fixes] == [(), ()]
    assert found.proof is not None
    assert (found.proof.before, found.proof.after) == (0, 1)


@pytest.mark.parametrize("changes", [{}, {"train": False, "dropout_seed": None}, {"rate": 0.0, "dropout_seed": None}])
def test_a_mode_that_was_said_and_rngs_where_they_are_needed(changes):
    report = check(replace(SPEC, **changes))
    assert (report.outcome, report.violations, report.error) == (Outcome.OK, (), None)


def test_another_mistake_is_shown_raw():
    report = check(replace(SPEC, kind="no such"))
    assert (report.outcome, report.violations) == (Outcome.ERROR, ())
    assert report.error is not None
