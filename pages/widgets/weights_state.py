"""The parameters that a session has from a file: which are used, what a file that was given became, and the way back.

They live in this session's state and nowhere else. The page's state (and so its link) names them by their hash alone:
whoever opens the link elsewhere is told that they are not there.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import streamlit as st

from core.base.text import fill
from core.base.violation import FieldEdit, Severity
from core.inputs import cell_fields
from core.inputs.fields import Value
from core.inputs.sequence_fields import BIDIRECTIONAL, FORWARD
from core.weights.architecture import ONE, TWO, Architecture, expected
from core.weights.cell import CellWeights, Origin, weights_of_seed
from core.weights.container import short
from core.weights.load import check_types, load_cell
from core.weights.refusal import Stage, WeightsRefused
from core.weights.shelf import Shelf
from pages.widgets.cards import Mark
from pages.widgets.state import PageState

USED = "Weights from a file, hash {hash}: the parameter seed is not used."
UNSIZED = (
    "Weights {hash} are for {theirs}, and the page asks for {ours}: they do not fit, so the seed's parameters are used."
)
OTHER = "the file is for {theirs}, and the page has {ours}."
ABSENT = (
    "The link names weights {hash}, which are not here: a link carries their hash alone. The seed's are used. Load the "
    "file under Weights."
)
TAKEN = "{name} was taken: {text}, hash {hash}. {checks}"
OURS = (
    "Size, format, schema, paths, shapes, dtypes, finite and hash are right, and the control forward gives what the file "
    "says (largest difference {apart})."
)
TORCH = (
    "Read from PyTorch's layout. PyTorch's own equations, in NumPy with both biases apart, agree with the Flax cell on "
    "seeded data (largest difference {apart}). Such a file has no hash and no control forward of its own."
)
REFUSED = "{name} was refused at “{stage}”: {reason} Nothing was changed."
FAILED = "Carry Lab failed here, not you. Nothing was changed. ({kind})"
NOT_KEPT = "The set before does not pass its control forward any more: {reason} Nothing was changed."
ROLLED = "Rolled back to {what}; its control forward was run again (largest difference {apart})."
TO_SEED = "Back to the seed's parameters."
SEEDS, FILES = "the parameters of seed {seed}", "the weights {hash}"
FITTED = "the page was set to {text}, as weights {hash} need it"
HALF = "{leaf} is {dtype} in the file, and the cells of this page keep float32."
ONE_CELL = "The file holds two cells, forward and backward. This page has one; the Sequence page takes both."

_LOG = logging.getLogger("carry_lab")


class Inputs(Protocol):
    """What both pages' inputs say of parameters."""

    @property
    def architecture(self) -> Architecture: ...  # noqa: D102
    @property
    def used(self) -> CellWeights | None: ...  # noqa: D102
    @property
    def seed(self) -> int: ...  # noqa: D102
    @property
    def weights(self) -> str: ...  # noqa: D102
    @property
    def file(self) -> CellWeights | None: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Said:
    """What became of the last thing that was done here.

    Attributes:
        text: a sentence.
        good: it was done.
        waiting: parameters that passed every check, and wait for the page to have their sizes.
    """

    text: str
    good: bool
    waiting: CellWeights | None = None


def shelf_of(page: str) -> Shelf:
    """The sets of this session for this page."""
    shelf: Shelf | None = st.session_state.get(f"{page}:weights_shelf")
    return shelf if shelf is not None else Shelf()


def file_for(page: str, values: Mapping[str, Value]) -> CellWeights | None:
    """The set that the page's state names by its hash; None when it names none, or one that is not here."""
    return shelf_of(page).find(str(values["weights"]))


def said_of(page: str) -> Said | None:
    """What became of the last file, or of the last step back."""
    said: Said | None = st.session_state.get(f"{page}:weights_said")
    return said


def uploader_key(page: str) -> str:
    """The key of the box that takes a file: another one after each file, so that the same file can be given again."""
    return f"{page}_weights_file_{st.session_state.get(f'{page}:weights_count', 0)}"


def weights_marks(inputs: Inputs) -> list[Mark]:
    """What stands beside the seed: which parameters are used, and why not those that are asked for."""
    used, file = inputs.used, inputs.file
    if used is not None:
        return [Mark(Severity.NOTE, fill(USED, hash=used.short))]
    if file is not None:
        text = fill(UNSIZED, hash=file.short, theirs=file.architecture.text, ours=inputs.architecture.text)
        return [Mark(Severity.WARNING, text)]
    if inputs.weights:
        return [Mark(Severity.WARNING, fill(ABSENT, hash=short(inputs.weights)[:16]))]
    return []


def running(inputs: Inputs) -> CellWeights:
    """The parameters that the page runs with now, as a set that can be kept.

    Raises:
        WeightsRefused: they, or what they compute, are not finite.
    """
    return inputs.used or weights_of_seed(inputs.architecture, inputs.seed)


# --- for on_change and on_click -------------------------------------------------------------------------------------


def take_file(state: PageState, inputs: Inputs) -> None:
    """A file was given: every check, then use it; or say why not, and leave everything as it is."""
    page = state.page
    given = st.session_state.get(uploader_key(page))
    if given is None:
        return
    name = short(str(given.name))
    try:
        new = load_cell(given.getvalue(), inputs.architecture.cell)
        _check_page(page, new)
        if new.architecture != inputs.architecture:
            _say(page, Said(_unfitting(name, new, inputs), good=False, waiting=new))
        else:
            _use(state, new, inputs, fill(TAKEN, **_taken(name, new)))
    except WeightsRefused as refused:
        _say(page, Said(fill(REFUSED, name=name, stage=refused.stage, reason=refused), good=False))
    except Exception as error:  # noqa: BLE001  # no traceback may reach the browser, whatever a file holds
        kind = type(error).__name__
        _LOG.error("A file of parameters could not be checked: %s", kind)  # no value of the file
        _say(page, Said(fill(FAILED, kind=kind), good=False))
    _count(page)


def take_waiting(state: PageState, inputs: Inputs, name: str) -> None:
    """The page gets the sizes of the file that waits, and uses it."""
    said = said_of(state.page)
    if said is not None and said.waiting is not None:
        _use(state, said.waiting, inputs, fill(TAKEN, **_taken(name, said.waiting)))


def roll_back(state: PageState, inputs: Inputs) -> None:
    """The set before runs again, after its control forward was."""
    page = state.page
    try:
        now = running(inputs)
        shelf = shelf_of(page).roll_back(now)
    except WeightsRefused as refused:
        _say(page, Said(fill(NOT_KEPT, reason=refused), good=False))
        return
    back = shelf.running
    if back is None:  # never: it was just put there
        return
    _put(page, shelf if back.origin is not Origin.SEED else Shelf(None, now))
    _point(state, back, inputs)
    _say(page, Said(fill(ROLLED, what=words(back), apart=f"{back.apart:.2g}"), good=True))


def to_seed(state: PageState, inputs: Inputs) -> None:
    """The seed's parameters run; what ran can be rolled back to."""
    file = inputs.used or inputs.file
    if file is not None:
        _put(state.page, Shelf(None, file))
    state.set_quietly("weights", "")
    _say(state.page, Said(fill(TO_SEED), good=True))


def words(weights: CellWeights) -> str:
    """A set in a sentence."""
    if weights.origin is Origin.SEED:
        return fill(SEEDS, seed=weights.seed)
    return fill(FILES, hash=weights.short)


# --- behind them ----------------------------------------------------------------------------------------------------


def _check_page(page: str, new: CellWeights) -> None:
    """What no size of this page makes usable.

    Raises:
        WeightsRefused: kept in half precision, or two cells for a page of one.
    """
    if new.architecture.param_dtype != "float32":
        leaf = next(iter(new.leaves))
        raise WeightsRefused(Stage.LEAVES, HALF, leaf, dtype=new.architecture.param_dtype)
    if page == cell_fields.PAGE and new.architecture.cells != ONE:
        raise WeightsRefused(Stage.LEAVES, ONE_CELL)


def _unfitting(name: str, new: CellWeights, inputs: Inputs) -> str:
    """Why these do not fit the page as it stands: the first leaf at fault, with both shapes, where only sizes differ."""
    ours, theirs = inputs.architecture, new.architecture
    reason: object = fill(OTHER, theirs=theirs.text, ours=ours.text)
    if (ours.cell, ours.cells) == (theirs.cell, theirs.cells):
        try:
            check_types(new.leaves, expected(ours), ours.text, "params")
        except WeightsRefused as refused:
            reason = refused
    return fill(REFUSED, name=name, stage=Stage.LEAVES, reason=reason)


def _taken(name: str, new: CellWeights) -> dict[str, Any]:
    checks = TORCH if new.origin is Origin.TORCH else OURS
    return {
        "name": name,
        "text": new.architecture.text,
        "hash": new.short,
        "checks": fill(checks, apart=f"{new.apart:.2g}"),
    }


def _use(state: PageState, new: CellWeights, inputs: Inputs, text: str) -> None:
    _put(state.page, shelf_of(state.page).take(new, running(inputs)))
    _point(state, new, inputs)
    _say(state.page, Said(text, good=True))


def _point(state: PageState, weights: CellWeights, inputs: Inputs) -> None:
    """The page's state names these parameters, and has their sizes (which a reader can undo)."""
    seeds = weights.origin is Origin.SEED
    edit: dict[str, Value] = {} if weights.architecture == inputs.architecture else _sizes(state, weights.architecture)
    if seeds and weights.seed is not None and weights.seed != inputs.seed:
        edit["seed"] = weights.seed
    named = "" if seeds else weights.in_link
    if edit:
        title = fill(FITTED, text=weights.architecture.text, hash=weights.short)
        state.edit(FieldEdit({**edit, "weights": named}), title)
    else:
        state.set_quietly("weights", named)


def _sizes(state: PageState, architecture: Architecture) -> dict[str, Value]:
    """The inputs that say an architecture."""
    edit: dict[str, Value] = {
        "cell": architecture.cell,
        "in_features": architecture.in_features,
        "hidden_features": architecture.hidden_features,
    }
    if state.table.has("direction"):
        both, now = architecture.cells == TWO, state.values["direction"]
        if both != (now == BIDIRECTIONAL):
            edit["direction"] = BIDIRECTIONAL if both else FORWARD
    return edit


#: The page that has one cell, and the Sequence page's words for its directions.


def _put(page: str, shelf: Shelf) -> None:
    st.session_state[f"{page}:weights_shelf"] = shelf


def _say(page: str, said: Said) -> None:
    st.session_state[f"{page}:weights_said"] = said


def _count(page: str) -> None:
    st.session_state[f"{page}:weights_count"] = st.session_state.get(f"{page}:weights_count", 0) + 1
