"""The "Break it" row of the cell page, and what JAX and the contract say when something is broken."""

from __future__ import annotations

import html

import streamlit as st

from core.base.outcome import Report
from core.base.text import fill
from core.base.violation import FieldEdit, Violation
from core.contract.trace import Raised
from core.inputs.cell_fields import NONE, SWITCHES, Switch
from core.inputs.cell_inputs import CellInputs
from core.inputs.fields import Value
from core.runners.cells import CellStep
from pages.widgets.cards import escape, rule_of
from pages.widgets.frame import section
from pages.widgets.state import PageState

TITLE = "Break it"
HINT = "each does the real wrong thing; another click takes it back"
ON = "✓ {label}"
BROKEN, TAKEN_BACK = "Broken on purpose: {title}.", "Taken back: {title}."
TRY_BATCH = "Try it with batch {batch}"
JAX, CONTRACT = "JAX", "Contract"
NO_ERROR = "no error: it returns {result}"
RAISES = "{type}: {text}"
KEPT = "kept"
FOUND = "{code}, {title}"
SHOWN = 300


def break_row(state: PageState, inputs: CellInputs) -> None:
    """A button for each switch; one that makes no sense with these inputs says why instead."""
    section(fill(TITLE), hint=fill(HINT))
    on = inputs.switched
    with st.container(horizontal=True, gap="small", key=f"{state.page}_break"):
        for switch in SWITCHES:
            _button(state, inputs, switch, switch in on)
        if any(switch.id == "one_array" for switch in on):
            _other_batch(state, inputs)


def _button(state: PageState, inputs: CellInputs, switch: Switch, on: bool) -> None:
    why_not = inputs.offered(switch)
    label = fill(switch.label)
    st.button(
        escape(fill(ON, label=label) if on else label),
        key=f"{state.page}_break_{switch.id}",
        help=why_not or fill(switch.help),
        disabled=bool(why_not),
        on_click=state.edit,
        args=(FieldEdit(edit_of(inputs, switch)), label, TAKEN_BACK if on else BROKEN),
    )


def edit_of(inputs: CellInputs, switch: Switch) -> dict[str, Value]:
    """What a click sets: on, or off when it is on. Swapping zeros would show nothing, so it draws the carry."""
    if switch in inputs.switched:
        return {switch.field: NONE}
    drawn: dict[str, Value] = {"carry": "normal"} if switch.id == "swapped" and inputs.carry == "zeros" else {}
    return {switch.field: switch.value, **drawn}


def _other_batch(state: PageState, inputs: CellInputs) -> None:
    batch = 3 if inputs.batch == 2 else 2
    st.button(
        fill(TRY_BATCH, batch=batch),
        key=f"{state.page}_try_batch",
        type="tertiary",
        icon=":material/arrow_forward:",
        on_click=state.edit,
        args=(FieldEdit({"batch": batch}), fill(TRY_BATCH, batch=batch)),
    )


def says(report: Report, raised: Raised | None, step: CellStep | None) -> None:
    """Two lines: what JAX does with this, and what the contract says of it."""
    if raised is not None:
        jax, tone = fill(RAISES, type=raised.type, text=_short(raised.text)), "cl-no"
    elif step is not None:
        jax, tone = fill(NO_ERROR, result=step.result), "cl-ok"
    else:
        return
    broken = report.broken
    contract = "; ".join(fill(FOUND, code=v.code, title=_title(v)) for v in broken) if broken else fill(KEPT)
    rows = ((fill(JAX), jax, tone), (fill(CONTRACT), contract, "cl-no" if broken else "cl-ok"))
    body = "".join(
        f'<tr><th scope="row" style="width: 6rem">{name}</th><td class="{tone}" style="overflow-wrap: anywhere">{html.escape(text)}</td></tr>'
        for name, text, tone in rows
    )
    st.html(f'<table class="cl-table cl-says"><tbody>{body}</tbody></table>')


def _title(violation: Violation) -> str:
    rule = rule_of(violation.code)
    return violation.name if rule is None else rule.title


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
