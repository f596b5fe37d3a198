"""The report, made of its pieces."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from core.base.text import fill
from core.report.case import not_run
from core.report.machine import machine, versions
from core.report.model import ContractReport, Criterion, IncompleteReportError, Name
from core.report.parts import CRITERIA, Part, Piece

NOT_MADE = "It was not measured."

#: What no report proves, in words; the last lines of each.
NOT_PROVED: Final = (
    "It was run on one set of inputs. Other values, other lengths and other dtypes may behave otherwise.",
    "Ways that agree may agree on something wrong: eager, jit and vmap share the same code.",
    "An independent formula checks numbers, not whether this model is the right one for the task.",
    "A negative test shows that one wrong input is refused, not that every wrong input is.",
    "Finite gradients at these parameters say nothing of other parameters, nor of learning.",
    "Keys are compared by their value where they are asked for; what a library draws inside of a compiled program is not seen.",
    "Latencies are of this machine, under the load that is written here, on the data above; another device compiles another program.",
    "The declared range was checked against these data, and against no others.",
)


class UnmakeableError(ValueError):
    """There is no report: the message says why, for a reader. `field`: of what was declared, where that is the reason."""

    def __init__(self, text: str, field: str = "") -> None:
        super().__init__(text)
        self.field = field


def compose(pieces: Mapping[Part, Piece | str], before: tuple[float, ...]) -> ContractReport:
    """The whole report.

    Args:
        pieces: by part, what it gave, or why it gave nothing (a sentence).
        before: the machine's load when the first part was begun.

    Raises:
        UnmakeableError: what was run is not known, so that there is nothing to make a report of.
        IncompleteReportError: a piece lacks what it must carry.
    """
    first = pieces.get(Part.GIVEN, fill(NOT_MADE))
    if isinstance(first, str):
        raise UnmakeableError(first)
    if first.problem or first.given is None:
        raise UnmakeableError(first.problem or fill(NOT_MADE), first.field)
    given = first.given
    timed = pieces.get(Part.LATENCY, fill(NOT_MADE))
    latency, missing = (None, timed) if isinstance(timed, str) else (timed.latency, timed.latency_missing)
    return ContractReport(
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        page=given.page,
        title=given.title,
        about=given.about,
        versions=versions(),
        machine=machine(before),
        settings=given.settings,
        inputs=given.inputs,
        contract=given.contract,
        seeds=given.seeds,
        asked=given.asked,
        asked_cut=given.asked_cut,
        tolerances=given.tolerances,
        criteria=tuple(_criteria(pieces)),
        negatives=given.negatives,
        latency=latency,
        latency_missing="" if latency is not None else (missing or fill(NOT_MADE)),
        not_proved=tuple(fill(line) for line in NOT_PROVED),
    )


def _criteria(pieces: Mapping[Part, Piece | str]) -> list[Criterion]:
    found: dict[Name, Criterion] = {}
    for part, names in CRITERIA.items():
        piece = pieces.get(part, fill(NOT_MADE))
        if isinstance(piece, str):
            found |= {name: not_run(name, piece) for name in names}
            continue
        if piece.problem:
            found |= {name: not_run(name, piece.problem) for name in names}
            continue
        for one in piece.criteria:
            if one.name not in names or one.name in found:
                raise IncompleteReportError("a criterion of another part")
            found[one.name] = one
    if set(found) != set(Name):
        raise IncompleteReportError("a criterion is missing")
    return [found[name] for name in Name]
