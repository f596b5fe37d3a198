"""Recording a baseline, case by case, so that whoever waits can see how far it is and nobody else has to wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from core.base.text import fill
from core.inputs.fields import Value
from core.regress.baseline import Baseline, Kept, kept
from core.regress.case import Became, CaseName
from core.regress.environment import TOLERANCE, backend, versions
from core.regress.state import PageState
from core.weights.cell import CellWeights

DOES_NOT_RUN = "This state does not run ({why}), so there is nothing to keep: a baseline is made of a state that runs."
DID_NOT_FAIL = "The case “{name}” ({words}) must fail, and it ran: there would be nothing to compare with."
#: The seed of numbers that stand for typed ones.
SEED: Final = 0


class NotRecordedError(ValueError):
    """There is no baseline of this state; the message says why, for a reader."""


class Recorder:
    """One baseline under way: ``while recorder.left: recorder.step()``, then `baseline`.

    Args:
        page: whose state.
        values: complete values of its fields.
        file: parameters from a file, which they may name. It is kept in the baseline.
        own: keep numbers that somebody typed; otherwise they are replaced by seeded ones of the same shape and dtype.
        seed: of those.
    """

    def __init__(
        self,
        page: PageState,
        values: Mapping[str, Value],
        *,
        file: CellWeights | None = None,
        own: bool = False,
        seed: int = SEED,
    ) -> None:
        self._page = page
        tidy = page.tidy(values, file)
        self._file = file if tidy.get("weights") else None
        self._values, self._replaced = (tidy, ()) if own else page.hidden(tidy, seed)
        self._own, self._seed = own, seed
        self._waiting = list(page.cases(self._values))
        self._kept: list[Kept] = []
        self.all = len(self._waiting)

    @property
    def left(self) -> int:
        """How many cases are still to be run."""
        return len(self._waiting)

    @property
    def now(self) -> CaseName:
        """The case that is next."""
        return self._waiting[0].name

    def step(self) -> None:
        """Run the next case.

        Raises:
            NotRecordedError: the state itself does not run, or what must fail does not.
            TooLargeError: it is more than a baseline may hold.
        """
        case = self._waiting.pop(0)
        made = self._page.run(case.values, self._file)
        if case.name is CaseName.STANDARD and made.became is not Became.RAN:
            raise NotRecordedError(fill(DOES_NOT_RUN, why=", ".join(made.why)))
        if case.name is CaseName.INVALID and made.became is Became.RAN:
            raise NotRecordedError(fill(DID_NOT_FAIL, name=case.name, words=case.words))
        self._kept.append(kept(case, made))

    def baseline(self, reason: str = "") -> Baseline:
        """What was recorded.

        Args:
            reason: why it is recorded anew.
        """
        return Baseline(
            self._page.name,
            self._values,
            tuple(self._kept),
            versions(),
            backend(),
            TOLERANCE,
            self._page.left_out(self._values),
            self._seed,
            self._replaced,
            self._own,
            reason,
            self._file,
        )


def record(
    page: PageState,
    values: Mapping[str, Value],
    *,
    file: CellWeights | None = None,
    own: bool = False,
    seed: int = SEED,
    reason: str = "",
) -> Baseline:
    """All of it at once. Raises what `Recorder.step` raises."""
    recorder = Recorder(page, values, file=file, own=own, seed=seed)
    while recorder.left:
        recorder.step()
    return recorder.baseline(reason)
