"""The left side of the Scan page: step, sequence, init, and the rare inputs under More."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.base.text import fill
from core.inputs.generate import GENERATORS, formula_of, generator_of
from core.inputs.preset import init_leaves, takes_numbers
from core.inputs.scan_check import Checked
from core.steps.library import STEPS, UNGUARDED
from core.steps.step import XKind
from pages.widgets.array_editor import array_editor
from pages.widgets.cards import inline
from pages.widgets.code import step_code
from pages.widgets.controls import Controls
from pages.widgets.frame import section

STEP, SEQUENCE, INIT, SCAN, MORE = "Step", "Sequence xs", "Init", "Scan", "More"
MORE_LABEL = "More: weak type, unroll, length, xs as a list"
CARRY_IS, X_IS = "carry: {text}", "x: {text}"
_MORE_OPEN = "scan:more_open"
SOURCES = {"table": "table", "paste": "text", "generate": "generator"}
AXES = {"unsaid": "not said", "time": "time first: (T, B, F)", "batch": "batch first: (B, T, F)"}
PASTE_HINT = "1, 2, 3   or a line a step   or [[1, 2], [3, 4]]"
TABLE_HINT = "Edit the cells; nan and inf are numbers too. A longer T adds zeros; what a shorter one cuts comes back."
FAULTY = "✗ {title} (breaks {code})"
UNGUARDED_STEP = "{title} (only its gradient breaks {code})"
NO_XS = "This step takes no xs: the scan is as long as its length says."
KEYS_XS = "xs holds one PRNG key for each step, drawn from the seed; JAX writes its type `key<fry>[]`."
FROM = "from"
T, B, F = "length T", "batch B", "features F"
SIZES_HINT = "0: no such axis"
LIST_HINT = "Hand xs over as a Python list of its rows instead of one array."
WEAK = "weak: a Python number"
WEAK_HINT = "A Python number has no dtype of its own: the step decides."
LENGTH_HINT = "Empty: as long as xs."
UNROLL_HINT = "How many steps one turn of the compiled loop does."


def step_panel(controls: Controls, checked: Checked) -> None:
    """The step: choice, code, formula in words, its parameters."""
    section(fill(STEP), ask="scan_step")
    with st.container(border=True, key="scan_step_panel"):
        titles = {
            name: step.title
            if not step.right
            else fill(UNGUARDED_STEP if step in UNGUARDED else FAULTY, title=step.title, code=step.breaks)
            for name, step in STEPS.items()
        }
        controls.choice("step", titles, hidden=True)
        step = checked.step
        step_code(step.code)
        st.html(_described(step.formula, step.carry_doc, step.x_doc))
        for param in step.params:
            controls.slider(f"param_{param.name}", param.step, hint=param.doc)


def _described(formula: str, carry: str, x: str) -> str:
    return (
        f'<p class="cl-formula"><b>{inline(formula)}</b></p>'
        f'<p class="cl-quiet"><span class="cl-role-c">{inline(fill(CARRY_IS, text=carry))}</span> · '
        f'<span class="cl-role-x">{inline(fill(X_IS, text=x))}</span></p>'
    )


def sequence_panel(controls: Controls, checked: Checked) -> None:
    """xs: a table, text, or a generator; its dtype and what its axes mean."""
    section(fill(SEQUENCE), ask="scan_xs")
    kind, values = checked.step.x, checked.values
    with st.container(border=True, key="scan_sequence_panel"):
        if kind is XKind.NONE:
            st.caption(fill(NO_XS))
            controls.text("length_argument")
            controls.under("numbers")
            return
        if kind is XKind.KEY:
            st.caption(fill(KEYS_XS))
            left, right = st.columns(2, gap="xsmall")
            with left:
                controls.whole("length", fill(T))
            with right:
                controls.whole("seed")
            controls.under("numbers")
            return
        _numbers(controls, str(values["source"]))


def _numbers(controls: Controls, source: str) -> None:
    left, middle, right = st.columns([1.1, 0.8, 1.1], gap="xsmall")
    with left:
        controls.choice("source", SOURCES, fill(FROM))
    with middle:
        controls.whole("length", fill(T))
    with right:
        controls.choice("dtype", label=fill("dtype"))
    if source != "generate":
        controls.state.hide("generator", "batch", "features", "seed")
    if source == "table":
        array_editor(controls.state)
        st.caption(fill(TABLE_HINT))
    elif source == "paste":
        controls.area("numbers", placeholder=fill(PASTE_HINT), marks=False)
        st.caption(fill(PASTE_HINT))
    else:
        _generator(controls)
    if source != "table" or "\n" in str(controls.state.values["numbers"]):
        controls.choice("axes", AXES)
    controls.under("numbers", "generator", "table")


def _generator(controls: Controls) -> None:
    controls.choice("generator", {g.id: g.label for g in GENERATORS}, marks=False)
    left, middle, right = st.columns(3, gap="xsmall")
    with left:
        controls.whole("batch", fill(B), hint=fill(SIZES_HINT))
    with middle:
        controls.whole("features", fill(F), hint=fill(SIZES_HINT))
    values: Any = controls.state.values
    if generator_of(values["generator"]).seeded:
        with right:
            controls.whole("seed")
    else:
        controls.state.hide("seed")
    first = values["axes"] == "batch"
    st.caption(formula_of(values["generator"], values["batch"], values["features"], batch_first=first))


def init_panel(controls: Controls, checked: Checked) -> None:
    """Init, leaf by leaf."""
    section(fill(INIT))
    with st.container(border=True, key="scan_init_panel"):
        for leaf in init_leaves(checked.step):
            left, right = st.columns([1.25, 1], gap="xsmall")
            with left:
                controls.text(leaf.name, leaf.label)
            with right:
                controls.choice(f"{leaf.name}_dtype", label=fill("dtype"))


def scan_panel(controls: Controls, checked: Checked) -> None:
    """Reverse, and the rare inputs: weak, unroll, length, a list."""
    section(fill(SCAN))
    names = ["length_argument", "unroll", "as_list", *(f"{leaf.name}_weak" for leaf in init_leaves(checked.step))]
    marked = any(controls.marks.get(controls.state.key(name)) for name in names)
    with st.container(border=True, key="scan_scan_panel"):
        controls.flag("reverse")
        # Only ever opened from here: what one types in it must not close it.
        opened = bool(st.session_state.get(_MORE_OPEN)) or marked or _not_default(controls, names)
        st.session_state[_MORE_OPEN] = opened
        with st.expander(fill(MORE_LABEL), expanded=opened):
            left, right = st.columns(2, gap="xsmall")
            with left:
                controls.text("unroll", hint=fill(UNROLL_HINT))
            if checked.step.x is not XKind.NONE:
                with right:
                    controls.text("length_argument", placeholder=fill("from xs"), hint=fill(LENGTH_HINT))
            if takes_numbers(checked.step):
                controls.flag("as_list", hint=fill(LIST_HINT))
            for leaf in init_leaves(checked.step):
                controls.flag(f"{leaf.name}_weak", f"{leaf.label}, {fill(WEAK)}", hint=fill(WEAK_HINT))


def _not_default(controls: Controls, names: list[str]) -> bool:
    values, table = controls.state.values, controls.state.table
    return any(values[name] != table.field(name).default for name in names)
