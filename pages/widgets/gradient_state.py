"""The Gradients page in one session: its last look, kept so that a rerun which changes nothing costs nothing."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from core.base.gradients import MemoryCheck
from core.base.violation import Severity
from core.inputs.gradient_fields import CELLS, FIELDS, GIVEN, PAGE, PRESET, TYPED
from core.inputs.gradient_inputs import GradientInputs
from core.inputs.gradient_page import CellsResult, GradientLook, check_cells, look_at, settled
from core.inputs.preset import step_of, takes_numbers
from pages.widgets.cards import Mark, field_marks
from pages.widgets.pace import paced
from pages.widgets.state import PageState

_NOW, _GOOD, _CHECKS = f"{PAGE}:now", f"{PAGE}:good", f"{PAGE}:checks"
_STYLE = Path(__file__).parent / "gradient_style.css"

#: The inputs that each view draws.
_CELLS_DRAWN = ("length", "hidden_features", "in_features", "seed", "source", "forget_bias", "recurrent_scale")
_TRAINING_DRAWN = (
    *("model", "train_length", "batch", "in_features", "hidden_features", "seed", "data_seed"),
    *("mode", "rate", "rngs", "optimizer", "learning_rate", "updates"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """What the page draws in this run.

    Attributes:
        look: what became of the inputs as they stand.
        good: what is drawn: that look, or the last one of the same view that ran; None where there is none.
        ms: how long the look took.
    """

    look: GradientLook
    good: GradientLook | None
    ms: float

    @property
    def stale(self) -> bool:
        """What is drawn is not of the inputs as they stand."""
        return self.good is not self.look


def known(inputs: GradientInputs) -> bool:
    """Whether the last look was at these very inputs."""
    kept = st.session_state.get(_NOW)
    return kept is not None and kept[0].inputs == settled(inputs)


def shown(inputs: GradientInputs) -> Shown:
    """The look at these inputs, made now or kept from the last run of this session."""
    if not known(inputs):
        start = time.perf_counter()
        waiting = GradientLook(settled(inputs))
        look = paced(lambda: look_at(inputs), lambda: waiting, first=_NOW not in st.session_state)
        if look is waiting:
            return Shown(look, st.session_state.get(_GOOD, {}).get(inputs.of), 0.0)
        st.session_state[_NOW] = (look, 1000 * (time.perf_counter() - start))
        if look.ran:
            st.session_state[_GOOD] = {**st.session_state.get(_GOOD, {}), inputs.of: look}
    look, ms = st.session_state[_NOW]
    return Shown(look, look if look.ran else st.session_state.get(_GOOD, {}).get(inputs.of), ms)


def checks_of(result: CellsResult) -> tuple[MemoryCheck, ...] | None:
    """The comparisons of these maps, where they were made; they come after the plot."""
    kept = st.session_state.get(_CHECKS)
    return kept[1] if kept is not None and kept[0] is result else None


def checked(result: CellsResult) -> tuple[MemoryCheck, ...]:
    """The comparisons of these maps, made now where they were not."""
    found = checks_of(result)
    if found is None:
        found = check_cells(result)
        st.session_state[_CHECKS] = (result, found)
    return found


def marks_of(look: GradientLook) -> dict[str, list[Mark]]:
    """What stands under each input."""
    marks = field_marks(look.report)
    for problem in look.problems:
        severity = Severity.LIMIT if problem.limit else Severity.ERROR
        marks.setdefault(f"{PAGE}_{problem.field}", []).append(Mark(severity, problem.text))
    for hint in look.hints:
        marks.setdefault(f"{PAGE}_{hint.field}", []).append(Mark(Severity.WARNING, hint.text))
    return marks


def hide_undrawn(state: PageState, inputs: GradientInputs, *, results: bool) -> None:
    """Say which inputs this view does not draw: they keep their values."""
    drawn = {"of"}
    if inputs.of == CELLS:
        drawn |= set(_CELLS_DRAWN) - ({"length", "in_features"} if inputs.source == TYPED else set())
        drawn |= {"numbers"} if inputs.source == TYPED else set()
        drawn |= {"data_seed"} if inputs.source == "noise" else set()
        drawn |= {"row", "map_cell"} if results else set()
        drawn |= {"map_part"} if results and inputs.map_cell == "LSTMCell" else set()
    elif inputs.of == PRESET:
        drawn |= {"preset", "target"}
        drawn |= {"xs"} if takes_numbers(step_of(inputs.preset)) else set()
    else:
        drawn |= set(_TRAINING_DRAWN)
        drawn |= {"dropout_seed"} if inputs.rngs == GIVEN else set()
    state.hide(*(field.name for field in FIELDS.fields if field.name not in drawn))


def gradient_style() -> None:
    """The rules of CSS that only this page needs."""
    st.html(_style())


@st.cache_resource(show_spinner=False)
def _style() -> str:
    return f"<style>{_STYLE.read_text(encoding='utf-8')}</style>"
