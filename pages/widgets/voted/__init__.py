"""What a tab of a browser has had counted in a room, kept by the tab itself: after a reload nothing is counted twice.

A components.v2 widget without a face. A room must not know who voted, and a new session knows nothing of the one before.
So the browser's session storage has it: the room's code and the numbers of challenges, no name and no mark of a person. It
ends with the tab; who opens another one, or clears it, is counted again, and nothing could tell without knowing people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import streamlit as st

_mount = st.components.v2.component(
    "carry_lab.voted", html="<span></span>", js=(Path(__file__).parent / "voted.js").read_text(encoding="utf-8")
)


def voted_here(room: str, counted: Iterable[str], *, most: int, key: str, on_counted: Callable[[], None]) -> None:
    """Once a page, where answers are counted; takes no room (style.css).

    Args:
        room: the room's code.
        counted: keys of the challenges for which this session was counted in it.
        most: so many are kept for a room.
        key: the widget's key. Where the tab knows of more, its session state holds ``{"counted": …}``, read by `told`.
        on_counted: called then, before the rerun.
    """
    _mount(data={"room": room, "counted": list(counted), "most": most}, key=key, on_counted_change=on_counted)


def told(key: str, room: str, most: int) -> tuple[str, ...]:
    """The challenges that the tab says were counted in a room: what a browser sends may be anything, and is bounded."""
    state = st.session_state.get(key)
    found = state.get("counted") if isinstance(state, dict) else getattr(state, "counted", None)
    if not isinstance(found, dict) or found.get("room") != room or not isinstance(found.get("counted"), list):
        return ()
    return tuple(one for one in found["counted"][:most] if isinstance(one, str) and len(one) <= 40)
