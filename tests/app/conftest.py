"""What every test of a page proves beside its own: plotly takes each figure that is drawn."""

from __future__ import annotations

import plotly.graph_objects as go
import pytest

from core.plots.drawn import Drawn


@pytest.fixture(autouse=True)
def _figures_are_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks what `core.plots.drawn` does not: each name and value of each figure."""
    take = Drawn.to_dict

    def checked(self: Drawn):
        figure = take(self)
        go.Figure(**figure)
        return figure

    monkeypatch.setattr(Drawn, "to_dict", checked)
