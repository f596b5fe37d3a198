"""Every step of a cell that a script took, in scans and outside of them."""

from __future__ import annotations

from collections.abc import Iterator

from core.contract.cells import CellUse, cell_uses
from core.contract.facts import LogFacts
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import ScanSite
from core.contract.subject import CellLog


def steps_of(facts: ScriptFacts) -> tuple[tuple[ScanSite | None, CellUse], ...]:
    """Each step with the scan in whose step function it was taken (None: outside every scan), in order."""
    return facts.once(_steps)


def _steps(facts: ScriptFacts) -> tuple[tuple[ScanSite | None, CellUse], ...]:
    return tuple(_each(facts))


def _each(facts: ScriptFacts) -> Iterator[tuple[ScanSite | None, CellUse]]:
    for use in cell_uses(LogFacts(CellLog(facts.cells))):
        yield None, use
    for site in facts.scans:
        for use in cell_uses(site.facts):
            yield site, use
