"""What is said around a challenge: hints in steps, and once it is over what is right, why, and where that can be seen."""

from __future__ import annotations

import difflib
import html
from collections.abc import Iterable, Sequence
from urllib.parse import parse_qsl

import streamlit as st

from core.base.text import fill
from core.catalogue import fields as catalogue
from core.challenges.challenge import Challenge, Kind
from core.challenges.fields import SETS, challenges_of, neighbours
from core.challenges.generate import MORE
from core.challenges.grading import answer_text, broken_codes, proof_text, title_of
from core.doctor.grade_job import Graded
from core.doctor.link import FIELDS as DOCTOR_FIELDS
from core.doctor.link import SCRIPT
from core.inputs.fields import VERSION, VERSION_NAME
from pages.widgets import challenge_progress as progress
from pages.widgets.cards import inline
from pages.widgets.challenge_answer import SIDES, said_html
from pages.widgets.challenge_backend import answers_of
from pages.widgets.challenge_check import QUEUED_OURS
from pages.widgets.classroom import classroom
from pages.widgets.frame import section
from pages.widgets.state import PageState

HINT = "Hint {number} of {count}"
NO_MORE_HINTS = "No more hints"
GIVE_UP, GIVE_UP_SAYS = "Show the answer", "It then counts as not solved."
RIGHT_ONE, RIGHT_MORE = "Right, at the first try.", "Right, at try {tries}."
SHOWN = "This is the answer."
DOCUMENTS = "The documentation speaks of it here:"
WHY = "Why"
ANSWER = "{ask} is {answer}"
SPOTTED = "{side} is silently wrong: {code}, {title}."
MENDED, MENDED_HINT = "One way to mend it", "another one that gives the same is as good"
WORKING = "Working out the answer in a worker."
SEE_CODE, SEE_PAGE = "{code} in the catalogue", "See it on the {page} page"
IN_DOCTOR = "Open in Doctor"
NEXT, BACK, PREVIOUS, ONWARD = "Next challenge", "All challenges", "Previous", "Next"
HOME = "Back to challenge {number}"
PLACE, PLACE_MORE = "{place} of {count} in “{set}”", "number {place} of seed {seed}"
ANOTHER, ANOTHER_SAYS = (
    "Another like this",
    "The same kind of task, made anew with other numbers. There is always one more.",
)
DOCTOR = "pages/views/doctor.py"
#: Name in a `see` -> script and title.
PAGES = {
    "": ("pages/views/scan.py", "Scan"),
    "scan": ("pages/views/scan.py", "Scan"),
    "lstm": ("pages/views/lstm.py", "LSTM cell"),
    "sequence": ("pages/views/sequence.py", "Sequence"),
    "gradients": ("pages/views/gradients.py", "Gradients"),
}
#: Seconds between two looks at an answer that is still being worked out.
_LOOK = 0.4
_WATCHED = "challenges:answer_watched"


def ways(state: PageState, challenge: Challenge) -> None:
    """Back to all, to the one before, to the one after."""
    name = str(state.values["set"])
    before, after = neighbours(name, challenge.number)
    home = progress.home() if name == MORE else None
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="challenges_ways"):
        if home is not None:
            words = fill(HOME, number=home[1])
            go(state, words, home[1], "challenges_home", icon=":material/arrow_back:", to=home[0])
        else:
            go(state, fill(BACK), 0, "challenges_all", icon=":material/arrow_back:")
        st.space("stretch")
        if before:
            go(state, fill(PREVIOUS), before, "challenges_previous", icon=":material/chevron_left:")
        if after:
            go(state, fill(ONWARD), after, "challenges_next", icon=":material/chevron_right:")


def go(
    state: PageState,
    label: str,
    number: int,
    key: str,
    *,
    icon: str | None = None,
    primary: bool = False,
    to: str | None = None,
) -> None:
    """A button to a challenge, or with 0 to all of them. `to`: of another set than the one that is chosen."""
    st.button(
        label,
        key=key,
        on_click=_go,
        args=(state, number, str(state.values["set"]) if to is None else to),
        type="primary" if primary else "tertiary",
        icon=icon,
    )


def _go(state: PageState, number: int, name: str) -> None:
    if name != MORE or not number:
        progress.set_home(None)
    state.write({**state.values, "set": name, "challenge": number})


def heading(state: PageState, challenge: Challenge) -> None:
    """Number, title, what is to be done, how hard; and the story."""
    name, seed = str(state.values["set"]), state.values["seed"]
    numbers = [one.number for one in challenges_of(name)]
    place = ""
    if name == MORE:
        place = fill(PLACE_MORE, place=challenge.number, seed=seed)
    elif challenge.number in numbers:
        place = fill(PLACE, place=numbers.index(challenge.number) + 1, count=len(numbers), set=fill(SETS[name]))
    st.html(
        f'<h1 class="cl-entry"><span class="cl-mono">{challenge.number}</span>{html.escape(challenge.title)}</h1>'
        f'<p class="cl-quiet">{kind_html(challenge)} {html.escape(challenge.level.text)} · {html.escape(place)}</p>'
    )
    st.markdown(challenge.story.replace("$", r"\$"))


def kind_html(challenge: Challenge) -> str:
    """What is to be done, as a label."""
    return f'<span class="cl-challenge-kind cl-challenge-{challenge.kind}">{html.escape(challenge.kind.text)}</span>'


def help_row(challenge: Challenge, seed: int) -> None:
    """Hints, one after the other, and in the end the answer."""
    now = progress.attempt(challenge, seed)
    count = len(challenge.hints)
    if now.over and not now.hints:
        return
    with st.container(key="challenges_hints", gap="xsmall"):
        for number, text in enumerate(challenge.hints[: now.hints], 1):
            head = html.escape(fill(HINT, number=number, count=count))
            st.html(f'<p class="cl-challenge-hint" role="status"><b>{head}</b> {inline(text)}</p>')
        if now.over:
            return
        with st.container(horizontal=True, gap="small", key="challenges_help"):
            more = now.hints < count
            st.button(
                fill(HINT, number=now.hints + 1, count=count) if more else fill(NO_MORE_HINTS),
                key="challenges_hint",
                on_click=progress.hint,
                args=(challenge, seed),
                disabled=not more,
                icon=":material/lightbulb:",
            )
            if now.tries or not more:
                st.button(
                    fill(GIVE_UP),
                    key="challenges_give_up",
                    on_click=progress.give_up,
                    args=(challenge, seed),
                    help=fill(GIVE_UP_SAYS),
                    type="tertiary",
                )


def outcome(state: PageState, challenge: Challenge, seed: int) -> None:
    """What is right, why, and where to see it; once the challenge is over."""
    now = progress.attempt(challenge, seed)
    if not now.over:
        return
    runs = answers_of(challenge).look(challenge)
    key = "challenges_outcome_shown" if now.shown else "challenges_outcome_right"
    with st.container(border=True, key=key, gap="small"):
        words = fill(SHOWN) if now.shown else fill(RIGHT_ONE if now.tries == 1 else RIGHT_MORE, tries=now.tries)
        css = "cl-challenge-shown" if now.shown else "cl-challenge-solved"
        st.html(f'<p class="{css}" role="status">{html.escape(words)}</p>')
        for text in _answers(challenge, runs or (), seed):
            st.html(said_html(True, text))
        if runs is None and challenge.kind is not Kind.FIX:
            _wait(challenge)
        section(fill(WHY))
        st.markdown(challenge.why.replace("$", r"\$"))
        st.html(documents_html(challenge))
        if challenge.kind is Kind.FIX:
            section(fill(MENDED), hint=fill(MENDED_HINT))
            st.html(diff_html(challenge.program, challenge.other))
        with st.container(horizontal=True, gap="small", vertical_alignment="center", key="challenges_onward"):
            _onward(state, challenge, seed)
        with st.container(horizontal=True, gap="small", vertical_alignment="center", key="challenges_see"):
            _see(challenge, runs or ())


@st.fragment(run_every=_LOOK)
def _wait(challenge: Challenge) -> None:
    """Until the workers have told what is right."""
    place = answers_of(challenge).place(challenge)
    words = fill(QUEUED_OURS, place=place) if place else fill(WORKING)
    st.html(f'<p class="cl-quiet" role="status">{html.escape(words)}</p>')
    if st.session_state.get(_WATCHED) != challenge.key:
        st.session_state[_WATCHED] = challenge.key
        return  # a part of the page's own run
    if answers_of(challenge).look(challenge) is not None:
        st.session_state.pop(_WATCHED, None)
        st.rerun()


def _onward(state: PageState, challenge: Challenge, seed: int) -> None:
    name = str(state.values["set"])
    _, after = neighbours(name, challenge.number)
    home = progress.home() if name == MORE else None
    if home is not None:
        go(state, fill(HOME, number=home[1]), home[1], "challenges_onward_next", primary=True, to=home[0])
    elif after:
        go(state, fill(NEXT), after, "challenges_onward_next", primary=True)
    else:
        go(state, fill(BACK), 0, "challenges_onward_next", primary=True)
    another = progress.another(challenge, seed)
    # A class whose teacher fixed the set stays in it.
    if another and (name == MORE or not state.locked("set")):
        st.button(
            fill(ANOTHER),
            key="challenges_another",
            on_click=_another,
            args=(state, challenge, another),
            icon=":material/casino:",
            help=fill(ANOTHER_SAYS),
        )


def _another(state: PageState, challenge: Challenge, number: int) -> None:
    if str(state.values["set"]) != MORE:
        progress.set_home((str(state.values["set"]), challenge.number))
    state.write({**state.values, "set": MORE, "challenge": number})


def _answers(challenge: Challenge, runs: Sequence[Graded], seed: int) -> Iterable[str]:
    """The right answer, in a sentence each."""
    if not runs:
        return
    if challenge.kind is Kind.PREDICT:
        for ask in challenge.asks:
            yield fill(ANSWER, ask=f"`{ask}`", answer=f"`{answer_text(ask, runs[0])}`")
    elif challenge.kind is Kind.SPOT:
        for code in broken_codes(runs[0]):
            side = fill(SIDES[challenge.side(seed)])
            yield fill(SPOTTED, side=side, code=code, title=title_of(code))
        if proof_text(runs[0]):
            yield proof_text(runs[0])


def documents_html(challenge: Challenge) -> str:
    """Where the official documentation speaks of it."""
    links = "".join(
        f'<li><a href="{html.escape(one.url)}" target="_blank" rel="noopener">{html.escape(one.title)}</a></li>'
        for one in challenge.documents
    )
    return f'<p class="cl-quiet">{html.escape(fill(DOCUMENTS))}</p><ul class="cl-list">{links}</ul>'


def diff_html(before: str, after: str) -> str:
    """A program and what it was before: lines that went, lines that came, and those beside them."""
    rows: list[str] = []
    for line in difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2):
        if line.startswith(("---", "+++")):
            continue
        mark, text = line[:1], html.escape(line[1:])
        if mark == "@":
            rows += [_GAP] if rows else []
        elif mark == "-":
            rows.append(f"<div><del>− {text}</del></div>")
        else:
            rows.append(f"<div><ins>+ {text}</ins></div>" if mark == "+" else f"<div>\u2007 {text}</div>")
    for end in (0, -1):  # blank lines at the ends say nothing
        while rows and rows[end] == _BLANK:
            rows.pop(end)
    return f'<div class="cl-diff">{"".join(rows)}</div>'


_GAP, _BLANK = "<div>…</div>", "<div>\u2007 </div>"


def _see(challenge: Challenge, runs: Iterable[Graded]) -> None:
    """Links: the program in the Doctor; the code in the catalogue, or the page in the state that shows it."""
    kept = classroom().params
    text = progress.script(challenge).text if challenge.kind is Kind.FIX else challenge.program
    link = DOCTOR_FIELDS.to_link({**DOCTOR_FIELDS.defaults(), "mode": SCRIPT, "text": text}).params
    if link:
        st.page_link(DOCTOR, label=fill(IN_DOCTOR), icon=":material/healing:", query_params={**link, **kept})
    page, mark, query = challenge.see.partition("?")
    if mark:
        script, title = PAGES[page]
        params = {VERSION_NAME: VERSION, **dict(parse_qsl(query)), **kept}
        st.page_link(script, label=fill(SEE_PAGE, page=title), icon=":material/open_in_new:", query_params=params)
    codes = [] if mark else [challenge.see] if challenge.see else [code for run in runs for code in broken_codes(run)]
    for code in codes[:1]:
        link = catalogue.FIELDS.to_link({"code": code}).params
        label = fill(SEE_CODE, code=code)
        st.page_link(
            "pages/views/catalogue.py", label=label, icon=":material/menu_book:", query_params={**link, **kept}
        )
