"""What is known of one update of a model, and what L318 says of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from core.base.text import fill
from core.base.training import TrainingSpec, TrainingStep
from core.base.violation import Severity
from core.contract.record import CellEvents
from core.contract.rule import Finding, Measure, Repair
from core.contract.trace import Raised

NO_RNGS = (
    "The dropout layer is in training mode, drops {rate} of what the cell reads, and was given no rngs to draw from."
)
TITLE_RNGS = 'Give it rngs with the stream "{stream}"'
TITLE_EVAL = "Switch to use: model.eval()"
CLAIM = "One update was made: 1 when it came to an end, 0 when it raised."


class TrainingFacts:
    """Facts about a `TrainingSpec`."""

    on = "training"

    def __init__(self, spec: TrainingSpec) -> None:
        self.spec = spec
        self.places = spec.places
        #: Cells that were recorded one by one: none, the update is made as a whole.
        self.cells = CellEvents()

    @property
    def subject(self) -> TrainingSpec:
        """What these facts are about."""
        return self.spec

    @cached_property
    def run(self) -> TrainingStep | Raised:
        """The update, made for real."""
        from core.runners.training import train_once

        try:
            step: TrainingStep = train_once(self.spec)
            return step
        except Exception as error:  # noqa: BLE001  # what a layer raises is a fact here
            return Raised(error)

    @property
    def jax(self) -> Raised | None:
        """What it raised, if it did."""
        return self.run if isinstance(self.run, Raised) else None


def check(facts: TrainingFacts) -> Iterator[Finding]:
    """L318: something is to be dropped, and there is nothing to draw from."""
    spec = facts.spec
    if not spec.drops or spec.dropout_seed is not None or facts.jax is None:
        return
    from core.runners.training_model import STREAM

    yield Finding(
        message=fill(NO_RNGS, rate=f"{spec.rate:.0%}"),
        place=facts.places.find("rngs", "mode", "rate"),
        repairs=(
            Repair("rngs", fill(TITLE_RNGS, stream=STREAM), lambda s: replace(s, dropout_seed=0)),
            Repair("mode", fill(TITLE_EVAL), lambda s: replace(s, train=False)),
        ),
        measure=Measure(CLAIM, _finished, 1.0),
        severity=Severity.ERROR,
        silent=False,
    )


def _finished(spec: TrainingSpec) -> float:
    return float(not isinstance(TrainingFacts(spec).run, Raised))
