"""Facts about a layer over sequences: its result, or what it raised, worked out when a rule first asks.

Roles of its places are the names of the page's inputs: ``axes``, ``time_major``, ``direction``, ``keep_order``,
``unroll``, ``masking``, ``lengths``, ``mask``, ``init``, ``slip``, ``source``, ``length``, ``batch``, ``in_features``,
``hidden_features``.
"""

from __future__ import annotations

from functools import cached_property

from core.base.sequences import Array, Masking, SequenceResult, Slip
from core.contract.record import CellEvents
from core.contract.subject import SequenceTrial, Subject
from core.contract.trace import Raised
from core.runners.memo import once
from core.runners.sequence_read import masking_of


class SequenceFacts:
    """Facts about a `SequenceTrial`."""

    on = "sequence"

    def __init__(self, trial: SequenceTrial) -> None:
        self.trial = trial
        self.places = trial.places
        #: Cells that were recorded one by one: none, the layer is asked as a whole.
        self.cells = CellEvents()

    @property
    def subject(self) -> Subject:
        """What these facts are about."""
        return self.trial

    @cached_property
    def run(self) -> SequenceResult | Raised:
        """The layer, run for real; the exception where it raised one. Not to be asked for over a limit."""
        return outcome(self.trial)

    @property
    def result(self) -> SequenceResult | None:
        """The run where there is one."""
        run = self.run
        return None if isinstance(run, Raised) else run

    @cached_property
    def jax(self) -> Raised | None:
        """What the layer raised, or taking apart what it returned: ``carry, ys = rnn(x)`` without its carry."""
        return raised(self.trial)


def outcome(trial: SequenceTrial) -> SequenceResult | Raised:
    """What running a trial gives; within one check it is run once."""
    return once(("sequence outcome",), (trial,), lambda: _outcome(trial))


def _outcome(trial: SequenceTrial) -> SequenceResult | Raised:
    from core.runners.sequence import run_sequence

    try:
        result: SequenceResult = run_sequence(trial)
        return result
    except Exception as error:  # noqa: BLE001  # what a layer raises is a fact here
        return Raised(error)


def ran(trial: SequenceTrial) -> SequenceResult:
    """The result of a trial.

    Raises:
        ValueError: it raised: then nothing of it can be measured.
    """
    run = outcome(trial)
    if isinstance(run, Raised):
        raise ValueError("the layer raised")
    return run


def raised(trial: SequenceTrial) -> Raised | None:
    """What a trial raises, its layer or the line that takes its value apart; None when nothing does."""
    run = outcome(trial)
    if isinstance(run, Raised):
        return run
    if not unpacks(trial):
        return None
    try:
        _carry, _ys = returned(trial, run)
    except ValueError as error:
        return Raised(error)
    return None


def unpacks(trial: SequenceTrial) -> bool:
    """Whether the outputs alone are taken apart as (carry, ys). A masked scan has its carry in any case."""
    return Slip.UNPACKED in trial.slips and masking_of(trial) is not Masking.MASK


def returned(trial: SequenceTrial, result: SequenceResult) -> Array:
    """The outputs with the axes in the order in which the layer returns them: as it was told they come in."""
    return result.outputs if trial.time_major else result.outputs.swapaxes(0, 1)
