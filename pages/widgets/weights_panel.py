"""The panel "Weights" of the LSTM and the Sequence page: save, load, what is in the file, and the way back.

    weights_panel(state, inputs, ready=look.step is not None)

A file is checked before anything is changed; the verdict stands where the file was given. Parameters that are used stay
in this session: the link names their hash.
"""

from __future__ import annotations

import html
from collections.abc import Callable

import streamlit as st

from core.base.limits import LIMITS
from core.base.text import fill
from core.base.violation import Severity
from core.inputs import cell_fields
from core.runners.cell_formulas import KINDS
from core.weights.cell import CellWeights, Origin, cell_file, seed_digest
from core.weights.script import file_name
from core.weights.torch_layout import torch_file
from pages.widgets.cards import Mark, draw_marks
from pages.widgets.frame import section
from pages.widgets.state import PageState
from pages.widgets.tables import table_html
from pages.widgets.weights_state import (
    Inputs,
    Said,
    roll_back,
    running,
    said_of,
    shelf_of,
    take_file,
    take_waiting,
    to_seed,
    uploader_key,
    words,
)

TITLE, HINT = "Weights", "save them, load a file"
FROM_SEED = "In use: the parameters that nnx.Rngs({seed}) draws, hash {hash}."
FROM_FILE = "In use: weights from a file, hash {hash} ({text})."
MADE = "Made with {versions}."
SAVE, SAVE_TORCH = "Save (.safetensors)", "Save for PyTorch"
SAVE_HELP = (
    "Every parameter with its path, shape and dtype, the versions and the seed, a SHA-256, and a control forward: a small "
    "input and what these parameters make of it."
)
TORCH_HELP = (
    "The state dict of torch.nn.{module}: gates {gates}, transposed. PyTorch has two biases: bias_ih gets Flax's one, "
    "bias_hh zeros."
)
TORCH_SPLIT_HELP = "The state dict of torch.nn.{module}, with its two biases as they came."
NO_TORCH = "PyTorch's plain RNN may use tanh or relu, and a state dict does not say which."
NOT_READY = "These inputs build no cell, so there is nothing to save."
ROLL_BACK, ROLL_BACK_HELP = "Roll back", "To {what}. The control forward is run again first."
NO_WAY_BACK = "No other parameters were used before."
BACK, BACK_HELP, IS_SEED = "Back to the seed's", "The parameters that nnx.Rngs({seed}) draws.", "They are in use."
LOAD = "Load a .safetensors file"
LOAD_HELP = (
    "Saved here, or the state dict of a torch.nn.LSTM, LSTMCell or GRU saved by safetensors. At most {limit}. It is "
    "checked in this order: size, format, schema, paths with shapes and dtypes, finite, hash, control forward. Nothing "
    "is unpickled."
)
MEGABYTES = "{count} MB"
FIT = "Set the page to {text} and use it"
FIT_NAME = "The file"
TABLE, TABLE_TORCH = "The {count} arrays in use", "The {count} arrays in use, and what was done to PyTorch's"
HEAD, HEAD_TORCH = ("parameter", "type", "in the file"), ("parameter", "type", "PyTorch's, by gate", "change")
#: Text wraps in this table, where a column of the page is narrow.
WRAP = "white-space: normal"
DOWNLOAD = "application/octet-stream"
_MB = 1024 * 1024
_MODULES = {4: "LSTM", 3: "GRU"}


def weights_panel(state: PageState, inputs: Inputs, *, ready: bool) -> None:
    """The panel.

    Args:
        state: of the page.
        inputs: of the page, with the file's parameters attached.
        ready: whether the inputs build a cell.
    """
    digest = _digest(inputs) if ready or inputs.used is not None else ""
    section(fill(TITLE), hint=fill(HINT))
    with st.container(border=True, key=state.key("weights_panel"), gap="small"):
        st.html(f'<p class="cl-quiet">{html.escape(_in_use(inputs, digest))}</p>')
        with st.container(horizontal=True, gap="small", key=state.key("weights_buttons")):
            _save(state, inputs, digest, ready=ready)
            _back(state, inputs)
        if inputs.used is not None:
            _table(inputs.used)
        _load(state, inputs)
        _verdict(state, inputs, said_of(state.page))


def _in_use(inputs: Inputs, digest: str) -> str:
    used = inputs.used
    if used is not None:
        text = fill(FROM_FILE, hash=used.short, text=used.architecture.text)
        made = ", ".join(f"{name} {used.versions[name]}" for name in ("jax", "flax") if name in used.versions)
        return f"{text} {fill(MADE, versions=made)}" if used.origin is Origin.FILE else text
    return fill(FROM_SEED, seed=inputs.seed, hash=digest[:8]) if digest else fill(NOT_READY)


def _digest(inputs: Inputs) -> str:
    """Of the parameters in use."""
    return inputs.used.digest if inputs.used is not None else seed_digest(inputs.architecture, inputs.seed)


def _save(state: PageState, inputs: Inputs, digest: str, *, ready: bool) -> None:
    kind = KINDS[inputs.architecture.cell]
    layer = state.page != cell_fields.PAGE
    name = file_name(digest) if ready else ""
    _download(
        state, "weights_save", SAVE, name, (lambda: cell_file(running(inputs))) if ready else None, fill(SAVE_HELP)
    )
    if len(kind.gates) not in _MODULES:
        _download(state, "weights_torch", SAVE_TORCH, "", None, fill(NO_TORCH))
        return
    module = _MODULES[len(kind.gates)] + ("" if layer else "Cell")
    split = inputs.used is not None and bool(inputs.used.torch)
    gates = ", ".join(gate.name for gate in kind.gates)
    text = fill(TORCH_SPLIT_HELP if split else TORCH_HELP, module=module, gates=gates)
    make = (lambda: torch_file(running(inputs), layer=layer)) if ready else None
    _download(state, "weights_torch", SAVE_TORCH, name.replace("weights", "pytorch"), make, text)


def _download(state: PageState, key: str, label: str, name: str, make: Callable[[], bytes] | None, text: str) -> None:
    st.download_button(
        fill(label),
        make or b"",
        name,
        DOWNLOAD,
        key=state.key(key),
        help=text,
        on_click="ignore",
        disabled=make is None,
        icon=":material/download:",
    )


def _back(state: PageState, inputs: Inputs) -> None:
    previous = shelf_of(state.page).previous
    st.button(
        fill(ROLL_BACK),
        key=state.key("weights_roll_back"),
        icon=":material/undo:",
        disabled=previous is None,
        help=fill(NO_WAY_BACK) if previous is None else fill(ROLL_BACK_HELP, what=words(previous)),
        on_click=roll_back,
        args=(state, inputs),
    )
    st.button(
        fill(BACK),
        key=state.key("weights_to_seed"),
        disabled=not inputs.weights,
        help=fill(BACK_HELP, seed=inputs.seed) if inputs.weights else fill(IS_SEED),
        on_click=to_seed,
        args=(state, inputs),
    )


def _load(state: PageState, inputs: Inputs) -> None:
    limit = LIMITS["weights_bytes"].value
    st.file_uploader(
        fill(LOAD),
        key=uploader_key(state.page),
        max_upload_size=max(1, -(-limit // _MB)),
        help=fill(LOAD_HELP, limit=fill(MEGABYTES, count=f"{limit / _MB:g}")),
        on_change=take_file,
        args=(state, inputs),
    )


def _verdict(state: PageState, inputs: Inputs, said: Said | None) -> None:
    """What became of the file, beneath the box it was given to."""
    if said is None:
        return
    if said.good:
        st.html(f'<p class="cl-quiet" role="status"><span class="cl-ok">✓</span> {html.escape(said.text)}</p>')
        return
    draw_marks({"": [Mark(Severity.ERROR, said.text)]}, "")
    if said.waiting is not None:
        st.button(
            fill(FIT, text=said.waiting.architecture.text),
            key=state.key("weights_fit"),
            on_click=take_waiting,
            args=(state, inputs, fill(FIT_NAME)),
        )


def _table(weights: CellWeights) -> None:
    torch = weights.origin is Origin.TORCH
    rows = []
    for row in weights.rows:
        cells = [html.escape(row.path), html.escape(row.type), f'<span style="{WRAP}">{_breakable(row.source)}</span>']
        rows.append([*cells, f'<span style="{WRAP}">{html.escape(row.change)}</span>'] if torch else cells)
    with st.expander(fill(TABLE_TORCH if torch else TABLE, count=len(rows))):
        st.html(table_html(HEAD_TORCH if torch else HEAD, rows))


def _breakable(text: str) -> str:
    """Names that may be broken at their dots and underscores, where a phone needs it."""
    return html.escape(text).replace(".", ".<wbr>").replace("_", "_<wbr>")
