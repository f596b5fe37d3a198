"""What a browser brings along that comes back: after a server's death, or from another replica, its tab is still open.

Streamlit gives it a new session, whose first run has the browser's widgets with it; but it hands a widget's value out only
once the widget was drawn, and by then the link has spoken. The link is older than what was just typed, or the same. So
the values are read before, from what the browser sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamlit.runtime.scriptrunner import get_script_run_ctx


def brought(keys: Iterable[str]) -> dict[str, Any]:
    """By widget key what the browser sent for it with this run; without those for which it sent nothing.

    A choice comes by the words of its option. Lists, tables and files are left out: they keep their edits themselves.
    """
    context = get_script_run_ctx()
    if context is None:
        return {}
    wanted = set(keys)
    found: dict[str, Any] = {}
    for state in context.session_state.get_widget_states():
        # "$$ID-<hash>-<key>": a key of ours has no hyphen in it.
        key = state.id.rpartition("-")[2]
        kind = state.WhichOneof("value")
        if key in wanted and kind in ("bool_value", "double_value", "int_value", "string_value"):
            found[key] = getattr(state, kind)
        elif key in wanted and kind == "double_array_value" and len(state.double_array_value.data) == 1:
            found[key] = state.double_array_value.data[0]
    return found
