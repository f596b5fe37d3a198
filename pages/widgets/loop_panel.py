"""Beside the result: the same step in a plain Python loop, without jit. It comes after the plot, in a fragment."""

from __future__ import annotations

import html
from collections.abc import Iterator

import streamlit as st

from core.base.text import fill
from core.contract import engine
from core.inputs.scan_check import Checked
from core.plots.player_values import short_number
from core.runners.memo import one_check
from core.runners.reference import CHECK_STEPS, LeafCheck, LoopCheck, loop_check
from core.runners.scan import keep_run
from pages.widgets.scan_state import keep_late
from pages.widgets.tables import table_html

EQUALS, DIFFERS, PART = "equals the loop", "differs from the loop", "equals the loop for {steps} steps"
NO_ERROR = "JAX: no error"
LENGTH, SHAPE = "leading length", "shape of {path}"
FINAL, AFTER = "final {path}", "{path} after {steps} steps"
EVERY, APART = "every {path}", "{largest} apart"
TOLERANCE = "tolerance ({dtype})"
LARGEST = "largest difference"
STEPS, STEPS_VALUE = "steps compared", "{steps} of {length}"
RAISED = "The loop raised {type}: {message}"
SAME, OTHER = "{got} = {want}", "{got} ≠ {want}"
ALL = "Check all {length} steps"
HEAD = ("", "", "")

_KEPT = "scan:loop"


def loop_words(checked: Checked) -> str:
    """What the comparison said of this evaluation, for the strip; "" while there is none."""
    kept = st.session_state.get(_KEPT)
    if kept is None or kept[0] is not checked:
        return ""
    check: LoopCheck = kept[1]
    if not check.ok:
        return fill(DIFFERS)
    if checked.report is not None and checked.report.broken:
        return fill(NO_ERROR)  # the loop makes the same mistake: that it agrees would sound as if all were well
    return fill(EQUALS) if check.complete else fill(PART, steps=check.steps)


@st.fragment
def loop_panel(checked: Checked) -> None:
    """Compare and show. The first 64 steps, all of them when asked; kept for these inputs."""
    check = _compared(checked)
    if check is None:
        return
    if check.error is not None:
        st.html(f'<p class="cl-no">{html.escape(fill(RAISED, type=check.error.type, message=check.error.message))}</p>')
    st.html(table_html(HEAD, _rows(check)))
    if not check.complete:
        st.button(fill(ALL, length=check.length), key="scan_check_all", on_click=_compare, args=(checked, None))


def _compared(checked: Checked) -> LoopCheck | None:
    kept = st.session_state.get(_KEPT)
    if kept is None or kept[0] is not checked:
        late = _first_look(checked)
        if late is not None:
            st.session_state[_KEPT] = (late, st.session_state[_KEPT][1])
            st.rerun()
        kept = st.session_state.get(_KEPT)
    return None if kept is None else kept[1]


def _first_look(checked: Checked) -> Checked | None:
    """Compare, and ask the rules that wait for it; what they found, if anything."""
    call, result = checked.built.call, checked.result
    if call is None:
        return None
    with one_check():
        if result is not None:
            keep_run(call, result)  # the rules ask for the same run and the same loop
        _compare(checked, CHECK_STEPS)
        return keep_late(checked, engine.check_late(call))


def _compare(checked: Checked, steps: int | None) -> None:
    if checked.built.call is not None and checked.result is not None:
        st.session_state[_KEPT] = (checked, loop_check(checked.built.call, checked.result, steps))


def _rows(check: LoopCheck) -> Iterator[tuple[str, str, str]]:
    if check.ys:
        lengths = sorted({leaf.shape[0] for leaf in check.ys})
        yield _row(fill(LENGTH), _pair(", ".join(map(str, lengths)), str(check.length)), check.lengths_ok)
    for leaf in check.ys:
        path = "ys" + leaf.path.removeprefix("y")
        yield _row(
            fill(SHAPE, path=path),
            _pair(_type(leaf.dtype, leaf.shape), _type(leaf.loop_dtype, leaf.loop_shape)),
            leaf.shape_ok,
        )
    for leaf in check.end:
        name = fill(FINAL, path=leaf.path) if check.complete else fill(AFTER, path=leaf.path, steps=check.steps)
        yield _row(name, fill(APART, largest=short_number(leaf.largest)), leaf.ok)
    for leaf in check.ys:
        yield _row(fill(EVERY, path=leaf.path), fill(APART, largest=short_number(leaf.largest)), leaf.ok)
    yield _row(fill(LARGEST), short_number(check.largest), check.ok)
    yield from _tolerances((*check.end, *check.ys))
    yield _row(fill(STEPS), fill(STEPS_VALUE, steps=check.steps, length=check.length), None)


def _tolerances(leaves: tuple[LeafCheck, ...]) -> Iterator[tuple[str, str, str]]:
    for dtype, text in {leaf.dtype: leaf.tolerance_text for leaf in leaves}.items():
        yield _row(fill(TOLERANCE, dtype=dtype), text, None)


def _type(dtype: str, shape: tuple[int, ...]) -> str:
    return f"{dtype}[{','.join(map(str, shape))}]"


def _pair(got: str, want: str) -> str:
    return fill(SAME if got == want else OTHER, got=got, want=want)


def _row(name: str, value: str, ok: bool | None) -> tuple[str, str, str]:
    mark = "" if ok is None else '<span class="cl-ok">✓</span>' if ok else '<span class="cl-no">✗</span>'
    return html.escape(name), html.escape(value), mark
