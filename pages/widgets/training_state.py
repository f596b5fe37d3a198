"""The panel "Model and optimizer state" of the Gradients page's training view: save a run, restore it part by part, go on.

    training_state_panel(view, inputs.updates)

What is restored lives in this session and is used by this panel alone: the panels above it are the run from the seed,
which the link tells. A part of a file that must not be used is refused with its reason; the others can still be taken.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import streamlit as st

from core.base.limits import LIMITS
from core.base.text import fill
from core.base.violation import Severity
from core.inputs.gradient_fields import CELL_NAMES, PAGE
from core.inputs.gradient_training import TrainingView
from core.weights.container import short
from core.weights.document import BATCH_STATS, OPTIMIZER, PARAMS, RNG, SECTIONS
from core.weights.refusal import WeightsRefused
from core.weights.training import Held, Offer, fits, go_on, held_of, read_run, recheck, run_file, with_parts
from pages.widgets.cards import Mark, draw_marks
from pages.widgets.frame import section
from pages.widgets.tables import table_html

TITLE, HINT = "Model and optimizer state", "save a run, restore it part by part"
INTRO = (
    "What a run needs to go on, in four parts that are saved, checked and restored each by itself. What is restored is "
    "used by this panel alone and stays in this session; the panels above show the run from the seed, and the link tells that."
)
NAMES: Final[Mapping[str, str]] = {
    PARAMS: "parameters",
    BATCH_STATS: "batch statistics",
    RNG: "RNG state",
    OPTIMIZER: "optimizer state",
}
WHY_NONE: Final[Mapping[str, str]] = {
    BATCH_STATS: "none: this model has no batch norm",
    RNG: "none: no rngs are given",
    OPTIMIZER: "none: {optimizer} keeps nothing between two updates",
}
FROM_RUN, FROM_FILE = "this run, after update {count}", "{name}"
HEAD = ("part", "arrays", "numbers", "hash", "from")
FILE_HEAD = ("part", "in the file", "check")
ONE, MANY = "{count} array", "{count} arrays"
NOTHING, NO_HASH = "—", ""
FITS = "fits; its control gives what the file says (largest difference {apart})"
SAVE, SAVE_HELP = (
    "Save (.safetensors)",
    "The parts in use with paths, shapes, dtypes and versions, a SHA-256 each, and a control: predictions on a small input, "
    "the next key of the stream, and the predictions after one more update.",
)
TOO_LARGE = "This state takes {size} MB, and at most {limit} MB are read back. A smaller model can be saved."
NOT_FINITE = "This run cannot be saved: {reason}"
LOAD = "Load a run (.safetensors)"
LOAD_HELP = (
    "Saved here. At most {limit} MB. Size, format, schema, paths and the description's hash are checked for the file as a "
    "whole; finite, hash, fit and control for each part. Nothing is unpickled."
)
REFUSED = "{name} was refused at “{stage}”: {reason} Nothing was changed."
FILE_SAYS = "{name}: nothing is changed until you restore a part."
RESTORE = "Restore {what}"
CHOOSE, NONE_FITS = "Parts to restore", "No part of this file fits this run: nothing can be restored."
RESTORED = "Restored from {name}: {parts}. The control of the whole was run."
PUT_REFUSED = "Not restored: {reason} Nothing was changed."
BACK, BACK_HELP, NO_BACK = (
    "Roll back",
    "To the state before. Its control is run again first.",
    "Nothing was restored before.",
)
BACK_DONE = "Rolled back; its control was run again (largest difference {apart})."
BACK_REFUSED = "The state before does not pass its control any more: {reason} Nothing was changed."
RESET, RESET_HELP = "Back to this run", "The state of the run above, after its last update."
RESET_DONE = "Back to the run above."
UNFIT = (
    "The state in use is of another run ({theirs}), and the page has {ours}: shown is the page's own run. The other is "
    "kept: put the inputs back, or go back to this run."
)
RUN_WORDS = "{cell} {features} → {hidden}, {optimizer}"
GO_ON = "Going on from here: loss {before} → {after} over {count} more updates by {optimizer}, with the data and inputs of the page."
NUMBERS = "The losses from here on, as a table"
DOWNLOAD, FILE_NAME, PICTURE = (
    "application/octet-stream",
    "carry-lab-run-{hash}.safetensors",
    "carry-lab-training-from-here",
)
_MB: Final = 1024 * 1024
_RUN, _SAID, _OFFER, _COUNT, _OWN, _ON = (
    f"{PAGE}:run_{what}" for what in ("state", "said", "offer", "count", "own", "went_on")
)


@dataclass(frozen=True, slots=True, eq=False)
class _InUse:
    """A run, and where each of its parts is from.

    Attributes:
        held: the run.
        sources: by part, in words.
        previous: what was used before.
    """

    held: Held
    sources: Mapping[str, str]
    previous: _InUse | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Given:
    """A file that was given: its name, and what it offers."""

    name: str
    offers: tuple[Offer, ...]


@st.fragment
def training_state_panel(view: TrainingView, updates: int) -> None:
    """The panel. `updates`: how many were made above, and are made from here on."""
    section(fill(TITLE), hint=fill(HINT))
    with st.container(border=True, key=f"{PAGE}_run_panel", gap="small"):
        st.html(f'<p class="cl-quiet">{html.escape(fill(INTRO))}</p>')
        try:
            own = _own(view, updates)
        except WeightsRefused as reason:
            _mark(fill(NOT_FINITE, reason=reason))
            return
        kept: _InUse | None = st.session_state.get(_RUN)
        used = kept if kept is not None and fits(view.spec, kept.held) else own
        if kept is not None and used is own:
            text = fill(UNFIT, theirs=_words(kept.held), ours=_words(own.held))
            draw_marks({"": [Mark(Severity.WARNING, text)]}, "")
        _parts(used)
        _buttons(used, kept, own)
        _went_on(view, used, updates)
        _load(used, own)


def _own(view: TrainingView, updates: int) -> _InUse:
    """The page's own run after its updates; taken apart once."""
    found = st.session_state.get(_OWN)
    if found is None or found[0] is not view:
        held = held_of(view.after)
        source = fill(FROM_RUN, count=updates)
        found = (view, _InUse(held, dict.fromkeys(SECTIONS, source)))
        st.session_state[_OWN] = found
    own: _InUse = found[1]
    return own


def _words(held: Held) -> str:
    spec = held.spec
    return fill(
        RUN_WORDS,
        cell=CELL_NAMES[spec.kind],
        features=spec.inputs.shape[-1],
        hidden=spec.hidden_features,
        optimizer=spec.optimizer,
    )


# --- what is seen ---------------------------------------------------------------------------------------------------


def _parts(used: _InUse) -> None:
    rows = []
    for name in SECTIONS:
        part = used.held.sections.get(name)
        if part is None:
            why = fill(WHY_NONE.get(name, NOTHING), optimizer=used.held.spec.optimizer)
            rows.append([NAMES[name], NOTHING, NOTHING, NO_HASH, _wrapped(why)])
        else:
            numbers = sum(array.size for array in part.leaves.values())
            source = _wrapped(used.sources[name])
            rows.append([NAMES[name], str(len(part.leaves)), f"{numbers:,}", part.digest[:8], source])
    st.html(table_html(HEAD, rows))


def _wrapped(text: str, sign: str = "") -> str:
    """A cell of words, which may break where the page is narrow."""
    return f'<span style="white-space: normal">{sign}{html.escape(text)}</span>'


def _buttons(used: _InUse, kept: _InUse | None, own: _InUse) -> None:
    limit = LIMITS["weights_bytes"].value
    data, problem = b"", ""
    try:
        data = run_file(used.held)
    except WeightsRefused as reason:
        problem = fill(NOT_FINITE, reason=reason)
    if len(data) > limit:
        data, problem = b"", fill(TOO_LARGE, size=f"{len(data) / _MB:.1f}", limit=f"{limit / _MB:g}")
    with st.container(horizontal=True, gap="small", key=f"{PAGE}_run_buttons"):
        st.download_button(
            fill(SAVE),
            data,
            fill(FILE_NAME, hash=used.held.sections[PARAMS].digest[:8]),
            DOWNLOAD,
            key=f"{PAGE}_run_save",
            help=problem or fill(SAVE_HELP),
            on_click="ignore",
            disabled=not data,
            icon=":material/download:",
        )
        previous = kept.previous if kept is not None else None
        st.button(
            fill(BACK),
            key=f"{PAGE}_run_back",
            icon=":material/undo:",
            disabled=previous is None,
            help=fill(BACK_HELP if previous is not None else NO_BACK),
            on_click=_roll_back,
        )
        st.button(
            fill(RESET),
            key=f"{PAGE}_run_reset",
            disabled=kept is None or kept.sources == own.sources,
            help=fill(RESET_HELP),
            on_click=_reset,
        )
    if problem:
        draw_marks({"": [Mark(Severity.LIMIT, problem)]}, "")


def _went_on(view: TrainingView, used: _InUse, updates: int) -> None:
    """What comes of the state in use."""
    found = st.session_state.get(_ON)
    if found is None or found[0] is not used.held or found[1] is not view:
        found = (used.held, view, go_on(view.spec, used.held, updates))
        st.session_state[_ON] = found
    losses = found[2]
    text = fill(
        GO_ON,
        before=f"{losses[0]:.6g}",
        after=f"{losses[-1]:.6g}",
        count=updates,
        optimizer=view.spec.optimizer,
    )
    st.html(f"<p>{html.escape(text)}</p>")
    table = st.expander(fill(NUMBERS), key=f"{PAGE}_run_losses", on_change="rerun")
    if table.open:
        rows = {"update": list(range(len(losses))), "loss": losses.tolist()}
        table.dataframe(rows, hide_index=True, height="content" if len(losses) <= 8 else 300)


def _load(used: _InUse, own: _InUse) -> None:
    limit = LIMITS["weights_bytes"].value
    given: _Given | None = st.session_state.get(_OFFER)
    st.file_uploader(
        fill(LOAD),
        key=_uploader(),
        max_upload_size=max(1, -(-limit // _MB)),
        help=fill(LOAD_HELP, limit=f"{limit / _MB:g}"),
        on_change=_take,
        args=(own,),
    )
    said: tuple[bool, str] | None = st.session_state.get(_SAID)
    if said is not None:
        if said[0]:
            st.html(f'<p class="cl-quiet" role="status"><span class="cl-ok">✓</span> {html.escape(said[1])}</p>')
        else:
            _mark(said[1])
    if given is not None:
        _offered(given, used)


def _offered(given: _Given, used: _InUse) -> None:
    """Each part of the file with its verdict, and the choice of those that fit."""
    rows = []
    for offer in given.offers:
        if offer.section is not None:
            count = len(offer.section.leaves)
            what = fill(ONE if count == 1 else MANY, count=count)
            check = _wrapped(fill(FITS, apart=f"{offer.apart:.2g}"), '<span class="cl-ok">✓</span> ')
        else:
            what = NOTHING
            check = _wrapped(offer.reason, '<span class="cl-no">✗</span> ' if offer.refused else "")
        rows.append([NAMES[offer.name], what, check])
    st.html(f'<p class="cl-quiet">{html.escape(fill(FILE_SAYS, name=given.name))}</p>')
    st.html(table_html(FILE_HEAD, rows))
    fitting = [offer.name for offer in given.offers if offer.section is not None]
    if not fitting:
        st.caption(fill(NONE_FITS))
        return
    key = f"{PAGE}_run_parts_{st.session_state.get(_COUNT, 0)}"
    chosen = st.pills(
        fill(CHOOSE), fitting, selection_mode="multi", default=fitting, format_func=lambda name: NAMES[name], key=key
    )
    st.button(
        fill(RESTORE, what=", ".join(NAMES[name] for name in chosen) or NOTHING),
        key=f"{PAGE}_run_restore",
        icon=":material/settings_backup_restore:",
        disabled=not chosen,
        on_click=partial(_restore, given, tuple(chosen), used),
    )


def _mark(text: str) -> None:
    draw_marks({"": [Mark(Severity.ERROR, text)]}, "")


# --- what is done ---------------------------------------------------------------------------------------------------


def _uploader() -> str:
    """Another box after each file, so that the same file can be given again."""
    return f"{PAGE}_run_file_{st.session_state.get(_COUNT, 0)}"


def _say(text: str, *, good: bool) -> None:
    st.session_state[_SAID] = (good, text)


def _take(own: _InUse) -> None:
    """A file was given: what it offers to this run, or why it is refused as a whole."""
    given: Any = st.session_state.get(_uploader())
    if given is None:
        return
    name = short(str(given.name))
    st.session_state[_COUNT] = st.session_state.get(_COUNT, 0) + 1
    st.session_state[_SAID] = st.session_state[_OFFER] = None
    try:
        st.session_state[_OFFER] = _Given(name, read_run(given.getvalue(), own.held))
    except WeightsRefused as refused:
        _say(fill(REFUSED, name=name, stage=refused.stage, reason=refused), good=False)


def _restore(given: _Given, chosen: tuple[str, ...], used: _InUse) -> None:
    try:
        held = with_parts(used.held, given.offers, chosen)
    except WeightsRefused as reason:
        _say(fill(PUT_REFUSED, reason=reason), good=False)
        return
    sources = {**used.sources, **dict.fromkeys(chosen, fill(FROM_FILE, name=given.name))}
    # One step back is kept, as for a cell's parameters: not the way of a whole afternoon.
    before = _InUse(used.held, used.sources)
    st.session_state[_RUN] = _InUse(held, sources, before)
    st.session_state[_OFFER] = None
    _say(fill(RESTORED, name=given.name, parts=", ".join(NAMES[name] for name in chosen)), good=True)


def _roll_back() -> None:
    kept: _InUse | None = st.session_state.get(_RUN)
    if kept is None or kept.previous is None:
        return
    previous = kept.previous
    try:
        apart = recheck(previous.held)
    except WeightsRefused as reason:
        _say(fill(BACK_REFUSED, reason=reason), good=False)
        return
    st.session_state[_RUN] = _InUse(previous.held, previous.sources, _InUse(kept.held, kept.sources))
    _say(fill(BACK_DONE, apart=f"{apart:.2g}"), good=True)


def _reset() -> None:
    st.session_state[_RUN] = st.session_state[_OFFER] = None
    _say(fill(RESET_DONE), good=True)
