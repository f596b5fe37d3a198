"""The code editor on a page of its own, with a checker that anybody can follow: for the browser tests.

The words BAD, ODD, OVER and HMM are an error, a warning, a limit and a note; a line ``a = …`` gets a shape, with the
part that BAD is about in it. What Python knows of the editor is shown below it as JSON.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator

import streamlit as st

from core.base.places import Span
from core.base.violation import Severity
from pages.widgets.editor import Diagnostic, code_editor, editor_event
from pages.widgets.frame import page_style

WORDS = {"BAD": Severity.ERROR, "ODD": Severity.WARNING, "OVER": Severity.LIMIT, "HMM": Severity.NOTE}
CASES = {
    "empty": "",
    "short": "a = 1\nb = BAD(a)\n",
    "wide": 'x = "😀漢字", BAD\n\ty = ODD\nz = "é" + HMM\n',
    "script": """import jax, jax.numpy as jnp
from flax import nnx
cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))

def step(state, x):
    (h, n) = state
    _, out = cell(h, x)
    n = n + 0.5
    return (out, n), out

init = (jnp.zeros((2, 4)), jnp.int32(0))
final, ys = jax.lax.scan(step, init, jnp.ones((7, 2, 3)))
""",
}
#: What the Doctor says of `script`, for pictures.
SCRIPT_FAULTS = (
    Diagnostic(
        Span(7, 18, 7, 19),
        Severity.WARNING,
        "One array where an LSTM carry is the pair `(c, h)`. Batch is 2, so it unpacks by rows: example 0 plays c, "
        "example 1 plays h, for everybody. JAX says nothing.",
        code="L301",
        number=1,
    ),
    Diagnostic(
        Span(9, 17, 9, 18),
        Severity.ERROR,
        "`carry[1]` leaves as float32[]; init made it int32[] on line 11.",
        code="S104",
        number=2,
        differs="float32[]",
        because=Span(11, 27, 11, 39),
        because_text="init sets the contract here: `int32[]`.",
    ),
)
SCRIPT_SHAPES = (
    (3, "in 3, hidden 4"),
    (5, "state (float32[2,4], int32[]) · x float32[2,3]"),
    (6, "h float32[2,4] · n int32[]"),
    (7, "out float32[2,4]"),
    (8, "n float32[]"),
    (9, "carry (float32[2,4], float32[])"),
    (11, "(float32[2,4], int32[])"),
    (12, "xs (T=7, B=2, F=3)"),
)


def checked(text: str) -> Iterator[Diagnostic]:
    """The faults of a text."""
    number = 0
    for line, code in enumerate(text.split("\n"), 1):
        for found in re.finditer("|".join(WORDS), code):
            number += 1
            span = Span(line, found.start(), line, found.end())
            message = f"`{found[0]}` <img src=x onerror=\"document.title='hacked'\"> stands here."
            yield Diagnostic(span, WORDS[found[0]], message, code=f"X{number:03}", number=number, differs="int32[]")


def shapes(text: str) -> Iterator[tuple[int, str]]:
    """The shapes of a text."""
    for line, code in enumerate(text.split("\n"), 1):
        if found := re.match(r"\s*(\w+) =", code):
            yield line, f"{found[1]} float32[2,4] · {'int32[]' if 'BAD' in code else 'bool[]'}"


def mend() -> None:
    """For the button: BAD becomes GOOD in what is in the editor now, which may be newer than what was drawn."""
    now = editor_event(st.session_state["text"], key="demo", revision=st.session_state["revision"])
    st.session_state["text"], st.session_state["revision"] = now.text.replace("BAD", "GOOD"), now.revision + 1


st.set_page_config(layout="wide")
page_style()
st.header("The code editor")  # below Streamlit's own bar, which would take the clicks
case = st.query_params.get("case", "short")
state = st.session_state
state.setdefault("text", CASES[case])
state.setdefault("revision", 0)
if state.setdefault("page", "Editor") == "Editor":
    plain = st.query_params.get("plain") == "1"
    event = editor_event(state["text"], key="demo", revision=state["revision"], plain=plain)
    state["text"] = event.text
    if state.get("slow"):
        time.sleep(1.0)
    # On demand the page is told of a text only when it is drawn once more, as by a check in another process.
    waiting = bool(state.get("later")) and state.get("checked") != event.text
    state["checked"] = event.text
    mock = event.text == CASES["script"]
    code_editor(
        event.text,
        key="demo",
        revision=event.revision,
        diagnostics=None if waiting else SCRIPT_FAULTS if mock else tuple(checked(event.text)),
        shapes=SCRIPT_SHAPES if mock else tuple(shapes(event.text)),
        placeholder="Paste code here",
        plain=plain,
    )
    with st.container(horizontal=True):
        st.button("Apply", on_click=mend)
        st.button("Rerun")
        st.checkbox("Slow", key="slow")
        st.checkbox("Later", key="later")
    told = {"text": event.text, "revision": event.revision, "run": event.run, "cursor": event.cursor}
    st.code(json.dumps(told), language=None)
st.segmented_control("Page", ["Editor", "Other"], key="page")
