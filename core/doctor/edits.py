"""What a repair means in a script: candidates of text edits, the smallest and most natural first.

A rule says what is to be mended (`Repair.kind`, `path`, `value`); here that becomes edits of expressions, found by the
finding's place, by the scan's places and by the tree. Several candidates are made where one can not be sure: the Doctor
runs each edited script and keeps the first that does what it should.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from core.base.places import Place, Span
from core.base.violation import TextEdit
from core.contract.rule import Finding, Repair
from core.contract.script_record import ScanSite, ScriptRecord
from core.contract.source import Source
from core.doctor.pen import Pen

type Edits = tuple[TextEdit, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Desk:
    """All that an edit may look at.

    Attributes:
        pen: writes in the script's own names.
        repair, finding: what is to be mended.
        site: the scan that the finding is about; None when it is about a cell outside scans, or the script.
        record: what the script did.
    """

    pen: Pen
    repair: Repair
    finding: Finding
    site: ScanSite | None
    record: ScriptRecord

    @property
    def source(self) -> Source:
        """The script."""
        return self.pen.source

    @property
    def arguments(self) -> dict[str, ast.expr]:
        """The scan's arguments by name; empty where they are not written out."""
        return {} if self.site is None else dict(self.site.arguments)

    def at(self, place: Place | None) -> ast.expr | None:
        """The expression at a place."""
        return self.source.expression(place) if isinstance(place, Span) else None

    @property
    def node(self) -> ast.expr | None:
        """The expression at the finding's place."""
        return self.at(self.finding.place)


type Maker = Callable[[Desk], Iterator[Edits | None]]


def candidates(desk: Desk) -> Iterator[Edits]:
    """Edit sets that may carry out the repair; each with the imports that it needs. None for kinds that do not edit."""
    if desk.repair.kind == "text":
        if desk.repair.value:
            yield tuple(desk.repair.value)
        return
    if desk.repair.kind == "texts":  # several ways of one repair
        yield from desk.repair.value
        return
    for maker in makers().get(desk.repair.kind, ()):
        desk.pen.imports.clear()
        for edits in maker(desk):
            if edits:
                yield (*_imports(desk), *_distinct(edits))
            desk.pen.imports.clear()


def _distinct(edits: Edits) -> Edits:
    return tuple(dict.fromkeys(edits))


def _imports(desk: Desk) -> Edits:
    """The imports that an edit needs, in a line of their own behind the script's first import (or docstring)."""
    lines = list(desk.pen.imports.values())
    if not lines:
        return ()
    body = desk.source.tree.body
    imports = [s for s in body if isinstance(s, ast.Import | ast.ImportFrom)]
    text = "".join(f"{line}\n" for line in lines)
    if not imports:
        first = next((s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))), None)
        line = 1 if first is None else desk.source.span(first).line
        return (TextEdit(Span(line, 0, line, 0), text),)
    last = next((s for s in imports if not (isinstance(s, ast.ImportFrom) and s.module == "__future__")), imports[0])
    line = (last.end_lineno or last.lineno) + 1
    return (TextEdit(Span(line, 0, line, 0), text),)


def makers() -> dict[str, tuple[Maker, ...]]:
    """By kind of repair, what makes its edits."""
    from core.doctor import edits_carry, edits_cell, edits_init, edits_step, edits_through, edits_xs

    cells = edits_cell.MAKERS | edits_through.MAKERS
    return edits_init.MAKERS | edits_step.MAKERS | edits_xs.MAKERS | cells | edits_carry.MAKERS
