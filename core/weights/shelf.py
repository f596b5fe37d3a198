"""What a session runs with: the seed's own parameters or a file's, the set before them, and the way back.

A value, kept by its session and by nobody else. Nothing gets in that did not pass every check; and whatever comes back
is checked once more, by its control forward.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from core.weights.cell import CellWeights
from core.weights.load import recheck
from core.weights.refusal import Stage, WeightsRefused

NOTHING_BEFORE = "There is no set of parameters before this one."


@dataclass(frozen=True, slots=True)
class Shelf:
    """Two sets at most.

    Attributes:
        running: the file's parameters that are used; None for the seed's.
        previous: what ran before: to roll back to.
    """

    running: CellWeights | None = None
    previous: CellWeights | None = None

    def take(self, new: CellWeights, before: CellWeights) -> Shelf:
        """Run with `new`; `before`, what ran until now, is kept. Taking what runs already changes nothing."""
        return self if new == self.running else Shelf(new, before)

    def roll_back(self, now: CellWeights) -> Shelf:
        """Run with the previous set again, after its control forward was run once more; `now` becomes the previous one.

        Raises:
            WeightsRefused: there is none, or it no longer computes what it did. The shelf is as it was.
        """
        if self.previous is None:
            raise WeightsRefused(Stage.CONTROL, NOTHING_BEFORE)
        return Shelf(recheck(self.previous), now)

    def to_seed(self, now: CellWeights) -> Shelf:
        """Run with the seed's parameters; `now` can be rolled back to."""
        return replace(self, running=None, previous=now)

    def find(self, in_link: str) -> CellWeights | None:
        """The set with this hash; None when it is not here."""
        sets = (self.running, self.previous)
        return next((one for one in sets if one is not None and in_link and one.in_link == in_link), None)
