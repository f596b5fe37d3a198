"""The "Break it" row of the Sequence page: each button makes one real mistake, and another click takes it back."""

from __future__ import annotations

import streamlit as st

from core.base.text import fill
from core.base.violation import FieldEdit
from core.inputs.fields import Value, changed
from core.inputs.sequence_breaks import SWITCHES, Switch, edit_of, is_on, offered
from core.inputs.sequence_inputs import SequenceInputs
from pages.widgets.cards import escape
from pages.widgets.frame import section
from pages.widgets.state import PageState

TITLE = "Break it"
HINT = "each does the real wrong thing; another click takes it back"
ON = "✓ {label}"
#: The fields that say which point is looked at.
POINT = ("example", "unit", "t")
BROKEN, TAKEN_BACK = "Broken on purpose: {title}.", "Taken back: {title}."


def break_row(state: PageState, inputs: SequenceInputs) -> None:
    """A button for each mistake; one that cannot be made with these inputs says why."""
    section(fill(TITLE), hint=fill(HINT))
    with st.container(horizontal=True, gap="small", key=f"{state.page}_break"):
        for switch in SWITCHES:
            _button(state, inputs, switch)


def _button(state: PageState, inputs: SequenceInputs, switch: Switch) -> None:
    on, why_not = is_on(switch, inputs), offered(switch, inputs)
    label = fill(switch.label)
    st.button(
        escape(fill(ON, label=label) if on else label),
        key=f"{state.page}_break_{switch.id}",
        help=why_not or fill(switch.help),
        disabled=bool(why_not),
        on_click=_click,
        args=(state, switch),
    )


def _click(state: PageState, switch: Switch) -> None:
    """Make the mistake, or take it back with all that it brought along (H = B, a batch of two, noise in the padding)."""
    inputs = SequenceInputs.of(state.values)
    on = is_on(switch, inputs)
    made: dict[str, tuple[dict[str, Value], dict[str, Value]]] = st.session_state.setdefault(f"{state.page}:made", {})
    edit, before = dict(edit_of(inputs, switch)), state.values
    if on and switch.id in made:
        was, became = made.pop(switch.id)
        edit |= {name: value for name, value in was.items() if name in POINT or before.get(name) == became.get(name)}
    state.edit(FieldEdit(edit), fill(switch.label), TAKEN_BACK if on else BROKEN, good=on)
    if not on:
        after = state.values
        names = changed(before, after, before)
        made[switch.id] = ({name: before[name] for name in names}, {name: after[name] for name in names})
        # Where fewer steps are read, the point that is looked at is brought into them: it goes back to where it was.
        made[switch.id][0].update({name: before[name] for name in POINT})
