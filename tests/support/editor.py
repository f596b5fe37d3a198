"""The code editor under AppTest, where no JavaScript runs: what the browser would send is put in its place."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from pages.widgets.editor import editor_available


def write_code(at: AppTest, key: str, text: str, *, revision: int = 0, run: int = 0) -> AppTest:
    """Types into the editor with this key, or into the text area that stands in for it; the caller runs the page.

    Args:
        at: the page.
        key: the editor's key.
        text: what is in it then.
        revision: the one it was drawn with.
        run: above 0 for a Ctrl+Enter, a higher number each time.
    """
    if editor_available():
        at.text_area(key=key).set_value(text)
    else:
        at.session_state[key] = {"edit": {"text": text, "revision": revision, "run": run, "cursor": [1, 0]}}
    return at
