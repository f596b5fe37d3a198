"""Where a challenge is answered: fields for what is predicted, two programs to choose from, an editor for what is broken."""

from __future__ import annotations

import ast
import html
from collections.abc import Callable

import streamlit as st

from core.base.text import fill
from core.base.violation import Severity
from core.challenges.challenge import Ask, Challenge, Kind, Side, What
from core.challenges.grading import title_of
from pages.widgets import challenge_check as check
from pages.widgets import challenge_progress as progress
from pages.widgets.cards import Mark, draw_marks, escape, inline, violation_cards
from pages.widgets.challenge_check import Chosen, Script, Typed
from pages.widgets.challenge_progress import Last
from pages.widgets.code import step_code
from pages.widgets.diagnostic import diagnostics_of
from pages.widgets.editor import code_editor, editor_available, editor_event
from pages.widgets.frame import section
from pages.widgets.state import PageState

CHECK, CHECK_KEYS = "Check", "Check :small[Ctrl+Enter]"
CANCEL, ONCE_MORE = "Cancel", "Try again"
AGAIN, AGAIN_SAYS = "Start again", "Puts the broken script back."
PROGRAM, SCRIPT_HERE, ANSWER_HERE, CHECK_HERE = "The program", "The script", "Your answer", "What the check says"
SIDES = {Side.LEFT: "Left", Side.RIGHT: "Right"}
IS_WRONG, IS_RIGHT = "{side}: silently wrong", "{side}: in order"
WHICH, WHY = "Which one is silently wrong?", "Why?"
OPTION = "{title} · {code}"
ASK, ASK_ROLE = "{what} of `{of}`", "{what} of `{of}` ({role})"
FINAL_CARRY, YS = "final carry", "ys"
EXAMPLES = {
    What.SHAPE: "such as (3, 2), or () for one number",
    What.DTYPE: "such as float32",
    What.VALUE: "such as 6 or [1, 3, 6]",
}
SOME_RIGHT = "{right} of {all} right. Think again, or take a hint."
NONE_RIGHT = "Not right yet. Think again, or take a hint."
NOT_RIGHT = "Not right yet."
STILL_BROKEN = ("Not right yet: one thing is still broken.", "Not right yet: {count} things are still broken.")
AT_LIMIT = "Not right yet: the script ran into a limit of Carry Lab."
RAISES = "Not right yet: the script stops with an error."
NOT_READ = "This cannot be run, so it is not counted."
STALE = "This is of the script before your last edit."
NOT_CHECKED = "Not checked yet. Mend the script and check it: it runs in a worker, with other data as well."
NO_EDITOR = "This is a plain text area: {reason}."
_HEIGHT = 560
_RUNS = "challenges:runs"


def listen(challenge: Challenge, seed: int) -> None:
    """Before anything is drawn: take what the editor has sent."""
    if challenge.kind is not Kind.FIX or progress.attempt(challenge, seed).over:
        return
    script = progress.script(challenge)
    event = editor_event(script.text, key=_editor(challenge), revision=script.revision)
    if event.text != script.text:
        progress.typed(challenge, event.text)
    known: dict[str, int] = st.session_state.setdefault(_RUNS, {})
    if event.run > known.get(challenge.key, 0):
        known[challenge.key] = event.run
        check.start(challenge, seed, Script(event.text))


def answer(state: PageState, challenge: Challenge, seed: int, below: Callable[[], None]) -> None:
    """Draw the program and what is asked of it; `below` draws what stands under the answer: hints, and the outcome."""
    match challenge.kind:
        case Kind.PREDICT:
            _predict(challenge, seed, below)
        case Kind.SPOT:
            _spot(challenge, seed, below)
        case Kind.FIX:
            _fix(state, challenge, seed, below)


def _over(challenge: Challenge, seed: int) -> bool:
    return progress.attempt(challenge, seed).over


def _under_way(challenge: Challenge, seed: int) -> None:
    """How far the check is, and beside it what calls it off; or why the last one gave nothing."""
    if check.under_way(challenge):
        with st.container(horizontal=True, gap="small", vertical_alignment="center", key="challenges_under_way"):
            st.button(
                fill(CANCEL),
                key="challenges_cancel",
                on_click=check.cancel,
                args=(challenge,),
                icon=":material/stop_circle:",
            )
            check.progress_line()
        return
    nothing = check.said(challenge)
    if nothing is None:
        return
    draw_marks({"": [Mark(Severity.NOTE, nothing.text)]}, "")
    if nothing.answer is not None:
        st.button(
            fill(ONCE_MORE),
            key="challenges_once_more",
            on_click=check.ask,
            args=(challenge, seed, lambda: _again(challenge, nothing)),
            icon=":material/refresh:",
        )


def _again(challenge: Challenge, nothing: check.Nothing) -> check.Answer:
    """What is to be checked once more: a script as it stands by now, else the very answer."""
    return _script(challenge) if nothing.answer is None or isinstance(nothing.answer, Script) else nothing.answer


# --- predict --------------------------------------------------------------------------------------------------------


def _predict(challenge: Challenge, seed: int, below: Callable[[], None]) -> None:
    left, right = st.columns([0.54, 0.46], gap="medium")
    with left:
        section(fill(PROGRAM))
        step_code(challenge.program, numbered=True)
    with right:
        section(fill(ANSWER_HERE))
        if not _over(challenge, seed):
            _fields(challenge, seed)
        below()


def _fields(challenge: Challenge, seed: int) -> None:
    last = progress.last(challenge)
    keys = [f"challenges_answer_{challenge.key}_{field}" for field in range(len(challenge.asks))]
    roles = roles_of(challenge.program)
    with st.form(f"challenges_form_{challenge.key}", border=False):
        for field, (one, key) in enumerate(zip(challenge.asks, keys, strict=True)):
            st.text_input(
                ask_label(one, roles.get(one.name, "")),
                key=key,
                placeholder=fill(EXAMPLES[one.what]),
                autocomplete="off",
                persist_state="session",
            )
            _under(last, field)
        with st.container(horizontal=True, gap="small"):
            st.form_submit_button(
                fill(CHECK),
                type="primary",
                key="challenges_check",
                disabled=check.under_way(challenge),
                on_click=check.ask,
                args=(challenge, seed, lambda: Typed(tuple(str(st.session_state.get(key) or "") for key in keys))),
            )
    _under_way(challenge, seed)
    if last is not None and last.grade.said and not last.grade.forms:
        _summary(sum(said.right for said in last.grade.said), len(last.grade.said))


def ask_label(one: Ask, role: str) -> str:
    """What is asked, as Markdown."""
    return fill(ASK_ROLE if role else ASK, what=one.what, of=one.of, role=role)


def roles_of(program: str) -> dict[str, str]:
    """The names to which a program gives what a scan returns, with what that is: the final carry, or ys."""
    roles: dict[str, str] = {}
    for node in ast.walk(ast.parse(program)):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
            continue
        scan = isinstance(node.value.func, ast.Attribute) and node.value.func.attr == "scan"
        for target in node.targets if scan else ():
            if isinstance(target, ast.Tuple) and len(target.elts) == 2:
                for name, role in zip(target.elts, (fill(FINAL_CARRY), fill(YS)), strict=True):
                    roles |= {part.id: role for part in ast.walk(name) if isinstance(part, ast.Name)}
    return roles


def _under(last: Last | None, field: int) -> None:
    """What was said of the last answer in a field, under it."""
    if last is None:
        return
    marks = [Mark(Severity.NOTE, text) for at, text in last.grade.forms if at == field]
    draw_marks({"": marks}, "")
    for said in last.grade.said:
        if said.field == field:
            st.html(said_html(said.right, said.text))


def _summary(right: int, count: int) -> None:
    words = fill(SOME_RIGHT, right=right, all=count) if right else fill(NONE_RIGHT)
    st.html(f'<p class="cl-challenge-summary" role="status">{html.escape(words)}</p>')


def said_html(right: bool, text: str) -> str:
    """A sentence with its sign, in the colour of right and wrong; backticks are code."""
    css, sign = ("cl-challenge-right", "✓") if right else ("cl-challenge-wrong", "✗")
    return f'<p class="cl-challenge-said {css}"><b aria-hidden="true">{sign}</b> {inline(text)}</p>'


# --- spot it --------------------------------------------------------------------------------------------------------


def _spot(challenge: Challenge, seed: int, below: Callable[[], None]) -> None:
    over, wrong = _over(challenge, seed), challenge.side(seed)
    for column, (side, text) in zip(st.columns(2, gap="medium"), challenge.shown(seed).items(), strict=True):
        with column:
            name = fill(SIDES[side])
            section(fill(IS_WRONG if side is wrong else IS_RIGHT, side=name) if over else name)
            step_code(text, numbered=True)
    section(fill(ANSWER_HERE))
    if not over:
        _choices(challenge, seed)
    below()


def _choices(challenge: Challenge, seed: int) -> None:
    last = progress.last(challenge)
    side_key, why_key = f"challenges_side_{challenge.key}", f"challenges_why_{challenge.key}"
    with st.form(f"challenges_form_{challenge.key}", border=False):
        which, why = st.columns([0.36, 0.64], gap="medium")
        with which:
            st.radio(
                fill(WHICH),
                list(Side),
                index=None,
                format_func=lambda one: fill(SIDES[one]),
                key=side_key,
                persist_state="session",
            )
            _under(last, 0)
        with why:
            st.radio(
                fill(WHY),
                challenge.options,
                index=None,
                format_func=lambda one: fill(OPTION, code=one, title=escape(title_of(one))),
                key=why_key,
                persist_state="session",
            )
            _under(last, 1)
        st.form_submit_button(
            fill(CHECK),
            type="primary",
            key="challenges_check",
            disabled=check.under_way(challenge),
            on_click=check.ask,
            args=(challenge, seed, lambda: _chosen(challenge, side_key, why_key)),
        )
    _under_way(challenge, seed)
    if last is not None and last.grade.said and not last.grade.forms:
        _summary(sum(said.right for said in last.grade.said), 2)


def _chosen(challenge: Challenge, side_key: str, why_key: str) -> Chosen:
    side, code = st.session_state.get(side_key), st.session_state.get(why_key)
    return Chosen(Side(side) if side in list(Side) else None, code if code in challenge.options else None)


# --- fix it ---------------------------------------------------------------------------------------------------------


def _editor(challenge: Challenge) -> str:
    return f"challenges_code_{challenge.key}"


def _fix(state: PageState, challenge: Challenge, seed: int, below: Callable[[], None]) -> None:
    script, last, over = progress.script(challenge), progress.last(challenge), _over(challenge, seed)
    left, right = st.columns([0.58, 0.42], gap="medium")
    with left.container(key="challenges_script", gap="small"):
        section(fill(SCRIPT_HERE))
        code_editor(
            script.text,
            key=_editor(challenge),
            revision=script.revision,
            diagnostics=diagnostics_of(None if last is None else last.report),
            checked=None if last is None else last.text,
            height=_HEIGHT,
            read_only=over,
        )
        if editor_available():
            st.caption(fill(NO_EDITOR, reason=editor_available()))
        if not over:
            _fix_row(challenge, seed)
    with right:
        section(fill(CHECK_HERE))
        if not over:
            _under_way(challenge, seed)
            if last is not None and not check.under_way(challenge):
                _found(state, last, changed=last.text != script.text)
            elif last is None and not check.under_way(challenge) and not check.said(challenge):
                st.html(f'<p class="cl-quiet">{html.escape(fill(NOT_CHECKED))}</p>')
        below()


def _fix_row(challenge: Challenge, seed: int) -> None:
    script, plain = progress.script(challenge), bool(editor_available())
    with st.container(horizontal=True, gap="small", key="challenges_fix_row"):
        st.button(
            fill(CHECK if plain else CHECK_KEYS),
            type="primary",
            key="challenges_check",
            shortcut="Ctrl+Enter" if plain else None,
            disabled=check.under_way(challenge),
            on_click=check.ask,
            args=(challenge, seed, lambda: _script(challenge)),
        )
        st.button(
            fill(AGAIN),
            key="challenges_again",
            on_click=progress.start_again,
            args=(challenge,),
            help=fill(AGAIN_SAYS),
            type="tertiary",
            icon=":material/restart_alt:",
            disabled=script.text == challenge.program or check.under_way(challenge),
        )


def _script(challenge: Challenge) -> Script:
    """What stands in the editor at this moment."""
    script = progress.script(challenge)
    return Script(editor_event(script.text, key=_editor(challenge), revision=script.revision).text)


def _found(state: PageState, last: Last, *, changed: bool) -> None:
    """What is still wrong with a script: a card for each thing, as in the Doctor; or a sentence on its values."""
    report, grade = last.report, last.grade
    if changed:
        st.html(f'<p class="cl-quiet">{html.escape(fill(STALE))}</p>')
    for _, text in grade.forms:
        draw_marks({"": [Mark(Severity.LIMIT, text)]}, "")
    cards = report is not None and bool(report.broken or report.error is not None)
    said = grade.said[-1:] if cards and grade.void else () if cards else grade.said
    if cards and grade.unread:  # its card says why, at its place: once is enough
        st.html(f'<p class="cl-challenge-summary" role="status">{html.escape(fill(NOT_READ))}</p>')
        said = ()
    elif grade.said:
        broken = report.broken if report is not None else ()
        count = sum(one.severity is not Severity.LIMIT for one in broken)
        rest = AT_LIMIT if broken else RAISES if cards else NOT_RIGHT
        words = fill(STILL_BROKEN[count != 1], count=count) if count else fill(rest)
        st.html(f'<p class="cl-challenge-summary" role="status">{html.escape(words)}</p>')
    for one in said:
        st.html(said_html(one.right, one.text))
    if cards:
        violation_cards(report, state, undo=False, primary=False, tell=False)
