"""What a page of ours draws, as a plan for the bare page: widgets by kind, and the figures of several of its states."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.session import Session

#: Kinds that `bare_page` makes. Components of our own have no counterpart: without them it is a harder comparison.
KINDS = (
    *("number_input", "text_input", "selectbox", "multiselect", "checkbox", "slider", "button", "download_button"),
    *("button_group", "file_uploader", "dataframe", "text_area"),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """For `bare_page`.

    Attributes:
        widgets: how many of each kind.
        figures: for each state of the page, its figures.
        moves: key of the widget of the bare page that is moved.
    """

    widgets: dict[str, int]
    figures: list[list[dict]]
    moves: str

    def write(self, path: Path) -> Path:
        """As a file."""
        told = {"widgets": self.widgets, "figures": self.figures, "moves": self.moves}
        path.write_text(json.dumps(told), encoding="utf-8")
        return path


async def plan_of(url: str, page: str, widget: str, values: Sequence[object], query: str = "") -> Plan:
    """Opens a page, moves one of its widgets through some values, and writes down what is drawn."""
    async with Session(url, page, query) as session:
        first = await session.rerun()
        found = session.find(widget)
        runs = [await session.change(found, value) for value in values]
    widgets = {kind: first.kinds[kind] for kind in KINDS if first.kinds[kind]}
    moves = "text_0" if found.kind == "text_input" else "number_0"
    widgets.setdefault("text_input" if found.kind == "text_input" else "number_input", 1)
    figures = [[json.loads(spec) for spec in (run.figures or first.figures)] for run in runs]
    return Plan(widgets, [one for one in figures if one], moves)
