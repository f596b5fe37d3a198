"""Every page's look, when its session has no token: nothing takes it for a fault of the step, and the next look is whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from core.base.bucket import Bucket
from core.inputs import cell_page, gradient_page, sequence_page
from core.inputs.cell_inputs import CellInputs
from core.inputs.gradient_fields import PRESET, TRAINING
from core.inputs.gradient_inputs import GradientInputs
from core.inputs.scan_check import evaluate
from core.inputs.scan_fields import opening
from core.inputs.sequence_inputs import SequenceInputs
from core.runners.cache import SlowedError, clear_all, paced

#: Sizes that no other test has, and what shows that a look at them ran.
LOOKS: dict[str, tuple[Callable[[], object], Callable[[object], bool]]] = {
    "scan": (
        lambda: evaluate({**opening("exponential_average"), "numbers": "1, 2, 3, 4, 5", "length": 5}),
        lambda look: look.result is not None,
    ),
    "lstm": (lambda: cell_page.look_at(replace(CellInputs(), hidden_features=23)), lambda look: look.step is not None),
    "a broken cell": (
        lambda: cell_page.look_at(replace(CellInputs(), hidden_features=23, break_carry="swapped")),
        lambda look: look.report is not None,
    ),
    "sequence": (
        lambda: sequence_page.look_at(replace(SequenceInputs(), hidden_features=23).run),
        lambda look: look.result is not None,
    ),
    "gradients": (lambda: gradient_page.look_at(replace(GradientInputs(), length=23)), lambda look: look.ran),
    "gradient of a scan": (lambda: gradient_page.look_at(replace(GradientInputs(), of=PRESET)), lambda look: look.ran),
    "training": (
        lambda: gradient_page.look_at(replace(GradientInputs(), of=TRAINING, batch=3)),
        lambda look: look.ran,
    ),
}


@pytest.mark.parametrize("name", LOOKS)
def test_a_look_without_a_token_is_broken_off_and_runs_whole_later(name: str) -> None:
    look, whole = LOOKS[name]
    clear_all()
    bucket = Bucket(1, 1, lambda: 0.0)
    bucket.take(1)
    with pytest.raises(SlowedError), paced(bucket):
        look()
    assert whole(look())
    with paced(bucket):  # what is compiled by now runs without one
        assert whole(look())
