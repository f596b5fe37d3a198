"""One update: the model and its mode, loss before and after, the gradient of every parameter, what the mode does."""

from __future__ import annotations

import html
from collections.abc import Mapping

import streamlit as st

from core.base.text import fill
from core.base.violation import FieldEdit
from core.inputs.gradient_fields import CELL_NAMES, EVAL, GIVEN, NO_RNGS, OPTIMIZERS, TRAIN
from core.inputs.gradient_inputs import GradientInputs
from core.inputs.gradient_measure import power_text
from core.inputs.gradient_training import ModeProof, TrainingView, mode_proof
from core.plots.drawn import drawn
from core.plots.gradient_loss import loss_curve, norm_rows
from pages.widgets.cards import Mark, draw_marks
from pages.widgets.chart_config import chart_config
from pages.widgets.classroom import presented
from pages.widgets.frame import section
from pages.widgets.gradient_controls import label_of, row, slider, whole
from pages.widgets.gradient_tiles import ROLE, headline_html, tile
from pages.widgets.state import PageState
from pages.widgets.tables import table_html

MODEL, MODE, UPDATE = "Model", "Dropout and mode", "Update"
INTRO = (
    "The model reads a sequence of noise and is to say what the first number was: it has to remember it. One update is "
    "four pure functions: forward, loss, gradient, optax update."
)
MODE_WORDS: Mapping[str, str] = {TRAIN: "train", EVAL: "eval"}
RNGS_WORDS: Mapping[str, str] = {GIVEN: "given", NO_RNGS: "none given"}
RATE_HELP = "The share of the numbers of x that are dropped at each step; the others grow by 1 / (1 − rate)."
MODE_HELP = "model.train() or model.eval(), said explicitly: dropout drops in training alone."
RNGS_HELP = "nnx.Rngs(dropout=seed): a stream of its own. One key is drawn for a forward pass and split into T."
BREAK, BREAK_LABEL = "Break it:", "train without rngs"
BREAK_HELP = "Dropout is to drop, and is given nothing to draw from."
BROKEN, BACK = "Broken on purpose: {title}.", "Put it back"
HEAD = "Loss {before} → {after}"
HEAD_WORDS = (
    "mean squared error before and after one update by {optimizer}, on the same data with the same numbers dropped"
)
NORM_TILE, DRAWS_TILE, SHARE_TILE = "gradient, norm", "stream “dropout”", "the loss"
PARAMETERS = "over {count} parameters"
DRAWN, NOT_DRAWN = "1 key drawn, split into {length}", "not asked: nothing is dropped"
DOWN, UP = "goes down by {share}", "goes up by {share}"
LOSSES, GRADIENTS, PROOF = "Loss over {count} updates", "Gradient of each parameter", "What the mode does"
NORM_HEAD = ("parameter", "type", "norm", "")
PROOF_HEAD = ("two forward passes on the same data", "predictions differ by", "")
EVAL_TWICE = "eval, with two different keys at hand: deterministic"
TRAIN_SAME = "train, twice with the same key"
TRAIN_OTHER = "train, with the keys of two seeds: random"
NUMBERS = "The numbers as a table"
_PROVED = "gradients:mode_proof"
FILE = "carry-lab-training"


def training_controls(state: PageState, inputs: GradientInputs, marks: Mapping[str, list[Mark]]) -> None:
    """Model, mode, update."""
    section(fill(MODE))
    with st.container(border=True, key="gradients_mode_panel"):
        st.segmented_control(
            label_of("mode"),
            tuple(MODE_WORDS),
            key=state.key("mode"),
            disabled=state.locked("mode"),
            format_func=lambda mode: fill(MODE_WORDS[mode]),
            required=True,
            help=fill(MODE_HELP),
        )
        draw_marks(marks, state.key("mode"))
        slider(state, marks, "rate", 0.05, fill(RATE_HELP))
        st.segmented_control(
            label_of("rngs"),
            tuple(RNGS_WORDS),
            key=state.key("rngs"),
            disabled=state.locked("rngs"),
            format_func=lambda rngs: fill(RNGS_WORDS[rngs]),
            required=True,
            help=fill(RNGS_HELP),
        )
        draw_marks(marks, state.key("rngs"))
        if inputs.rngs == GIVEN:
            whole(state, "dropout_seed")
    section(fill(UPDATE))
    with st.container(border=True, key="gradients_update_panel"):
        left, right = st.columns(2)
        with left:
            st.selectbox(
                label_of("optimizer"), OPTIMIZERS, key=state.key("optimizer"), disabled=state.locked("optimizer")
            )
        with right:
            st.number_input(
                label_of("learning_rate"),
                key=state.key("learning_rate"),
                disabled=state.locked("learning_rate"),
                min_value=0.0,
                max_value=10.0,
                format="%g",
            )
        slider(state, marks, "updates", 1, "")
    section(fill(MODEL))
    with st.container(border=True, key="gradients_model_panel"):
        st.selectbox(
            label_of("model"),
            tuple(CELL_NAMES),
            key=state.key("model"),
            disabled=state.locked("model"),
            format_func=lambda kind: CELL_NAMES[kind],
        )
        row(state, marks, ("train_length", "batch"), {})
        row(state, marks, ("in_features", "hidden_features"), {})
        row(state, marks, ("seed", "data_seed"), {})


def break_row(state: PageState) -> None:
    """One click to the mistake."""
    values = state.values
    edit: dict[str, object] = {"mode": TRAIN, "rngs": NO_RNGS}
    if not values["rate"]:
        edit["rate"] = 0.2
    with st.container(key="gradients_break", horizontal=True, vertical_alignment="center", gap="xsmall"):
        st.html(f'<p class="cl-intro"><b>{fill(BREAK)}</b></p>', width="content")
        st.button(
            fill(BREAK_LABEL),
            key="gradients_break_rngs",
            help=fill(BREAK_HELP),
            on_click=state.edit,
            args=(FieldEdit(edit), fill(BREAK_LABEL), BROKEN, BACK),
            kwargs={"good": False},
        )


def training_head(view: TrainingView) -> None:
    """Loss before and after, in words and numbers."""
    step = view.step
    title = fill(HEAD, before=power_text(step.loss_before, 3), after=power_text(step.loss_after, 3))
    words = fill(HEAD_WORDS, optimizer=view.spec.optimizer)
    drawn = step.draws.get("dropout", 0)
    tiles = (
        tile(fill(ROLE, role="h"), fill(SHARE_TILE), *_share(step.loss_before, step.loss_after)),
        tile(
            fill(ROLE, role="c"), fill(NORM_TILE), power_text(step.norm, 3), fill(PARAMETERS, count=len(step.gradients))
        ),
        tile(
            fill(ROLE, role="x"),
            fill(DRAWS_TILE),
            str(drawn),
            fill(DRAWN if drawn else NOT_DRAWN, length=view.spec.inputs.shape[1]),
        ),
    )
    headline_html(title, words, *tiles)


def _share(before: float, after: float) -> tuple[str, str]:
    """How the loss changes: as a percentage with its sign, and in words."""
    if not before or before != before or after != after:
        return power_text(after), ""
    share = (after - before) / before
    text = f"{abs(share):.1%}" if abs(share) < 10 else power_text(abs(share))
    return ("−" if share < 0 else "+") + text, fill(DOWN if share < 0 else UP, share=power_text(abs(after - before)))


def loss_panel(view: TrainingView) -> None:
    """The curve over a few updates."""
    picture = loss_curve(view.losses, drops=view.spec.drops)
    section(fill(LOSSES, count=len(view.losses) - 1))
    with st.container(border=True, key="gradients_loss_plot_card"):
        st.plotly_chart(
            drawn(presented(picture.figure)),
            key="gradients_loss",
            width="stretch",
            config=chart_config(fill(FILE)),
            alt=picture.alt,
        )
    for note in picture.notes:
        st.caption(note)
    table = st.expander(fill(NUMBERS), key="gradients_loss_table", on_change="rerun")
    if table.open:
        table.dataframe(picture.table, hide_index=True, height=300 if len(view.losses) > 8 else "content")


def norms_panel(view: TrainingView) -> None:
    """Every parameter, with a bar as long as its gradient is large."""
    section(fill(GRADIENTS))
    rows = (
        [
            html.escape(one.path),
            html.escape(one.type),
            one.norm if one.finite else f'<span class="cl-no">{one.norm}</span>',
            f'<span class="cl-norm" style="width: {100 * one.share:.1f}%"></span>',
        ]
        for one in norm_rows(view.step)
    )
    with st.container(border=True, key="gradients_norms"):
        st.html(table_html(NORM_HEAD, rows))


@st.fragment
def proof_panel(view: TrainingView) -> None:
    """Eval twice is the same, train with two keys is not: run, not claimed."""
    kept = st.session_state.get(_PROVED)
    if kept is None or kept[0] is not view:
        kept = (view, mode_proof(view.spec))
        st.session_state[_PROVED] = kept
    proof: ModeProof = kept[1]
    section(fill(PROOF))
    rows = (
        _proof(fill(EVAL_TWICE), proof.eval_twice, good=proof.eval_twice == 0),
        _proof(fill(TRAIN_SAME), proof.train_same, good=proof.train_same == 0),
        _proof(fill(TRAIN_OTHER), proof.train_other, good=proof.train_other > 0),
    )
    with st.container(border=True, key="gradients_proof"):
        st.html(table_html(PROOF_HEAD, rows))


def _proof(name: str, value: float, *, good: bool) -> list[str]:
    sign = '<span class="cl-ok">✓</span>' if good else '<span class="cl-no">✗</span>'
    return [html.escape(name), power_text(value, 3), sign]
