"""One code of the catalogue: what goes wrong, why, the bad and the good script, what JAX and Carry Lab say, where to read on."""

from __future__ import annotations

import html
import re

import streamlit as st

from core.base.text import fill
from core.catalogue.entries import Entry, entries
from core.contract.rule import Jax
from core.doctor.link import FIELDS as DOCTOR_FIELDS
from core.doctor.link import SCRIPT
from pages.widgets.frame import section
from pages.widgets.state import PageState

BY_US = "a limit of this place"
JAX_WORDS = {Jax.RAISES: "JAX raises", Jax.SILENT: "JAX is silent", Jax.BOTH: "JAX raises, or is silent"}
WHAT, WHY = "What goes wrong", "Why"
BAD, GOOD = "Bad", "Good"
SCRIPTS = "Both as whole scripts"
BAD_SCRIPT, GOOD_SCRIPT = "The bad one", "The good one"
OPEN_BAD, OPEN_GOOD = "Open the bad one in the Doctor", "Open the good one in the Doctor"
FIX, NO_FIX = "How to fix it", "No fix that works by itself: it depends on what was meant."
FIXES = "The Doctor offers, tried and checked:"
DIFFERENCE = "From the bad script to the good one:"
JAX_SAYS, WE_SAY = "What JAX says of the bad one", "What Carry Lab says of it"
READ_ON, CHECKED_AGAINST = "Read on", "Checked against: {source}"
BACK, PREVIOUS, NEXT = "All codes", "‹ {code}", "{code} ›"
DOCTOR = "pages/views/doctor.py"


def entry_page(state: PageState, entry: Entry) -> None:
    """The whole page of a code."""
    _ways(state, entry)
    left, right = st.columns([0.5, 0.5], gap="medium")
    with left.container(gap="small"):
        section(fill(WHAT))
        _text(entry.what)
        section(fill(WHY))
        _text(entry.why)
        if entry.more:
            _text(entry.more)
        section(fill(FIX))
        _fixes(entry)
    with right.container(gap="small"):
        for word, code in ((BAD, entry.bad), (GOOD, entry.good)):
            section(fill(word))
            st.code(code, language="python", wrap_lines=True)
        section(fill(JAX_SAYS))
        st.html(f'<pre class="cl-said" tabindex="0">{html.escape(entry.jax)}</pre>')
        section(fill(WE_SAY))
        st.html(_said(entry))
    _scripts(entry)
    section(fill(READ_ON))
    _documents(entry)


def heading(entry: Entry) -> str:
    """The title's line as HTML: code, title, what JAX does."""
    title = fill(entry.rule.title)
    head = f'<h1 class="cl-entry"><span class="cl-mono">{entry.code}</span>{html.escape(title)}</h1>'
    return head if entry.summary.rstrip(".") == title else f'{head}<p class="cl-quiet">{html.escape(entry.summary)}</p>'


def jax_words(entry: Entry) -> str:
    """What JAX does at it, in words."""
    return fill(BY_US if entry.limit else JAX_WORDS[entry.rule.jax])


def _ways(state: PageState, entry: Entry) -> None:
    codes = [other.code for other in entries()]
    at = codes.index(entry.code)
    with st.container(horizontal=True, gap="small", key="catalogue_ways"):
        _way(state, fill(BACK), "", "catalogue_all", ":material/arrow_back:")
        st.space("stretch")
        if at:
            _way(state, fill(PREVIOUS, code=codes[at - 1]), codes[at - 1], "catalogue_previous")
        if at + 1 < len(codes):
            _way(state, fill(NEXT, code=codes[at + 1]), codes[at + 1], "catalogue_next")
    st.html(heading(entry))


def _way(state: PageState, label: str, code: str, key: str, icon: str | None = None) -> None:
    st.button(label, key=key, on_click=state.write, args=({"code": code},), type="tertiary", icon=icon)


def _text(text: str) -> None:
    """Markdown of a docstring: double backticks are code as well, names with double underscores are not bold."""
    parts = re.split(r"(``[^`]+``|`[^`]+`|^ {4}.*$)", text, flags=re.MULTILINE)
    parts[::2] = [re.sub(r"[\w.]*__\w+__\w*", r"`\g<0>`", part).replace("$", r"\$") for part in parts[::2]]
    st.markdown("".join(parts))


def _fixes(entry: Entry) -> None:
    if entry.fixes:
        items = "".join(f"<li>{html.escape(title)}</li>" for title in entry.fixes)
        st.html(f'<p class="cl-quiet">{fill(FIXES)}</p><ul class="cl-list">{items}</ul>')
    else:
        st.html(f'<p class="cl-quiet">{fill(NO_FIX)}</p>')
    st.html(f'<p class="cl-quiet">{fill(DIFFERENCE)}</p><div class="cl-diff">{_difference(entry)}</div>')


def _difference(entry: Entry) -> str:
    tags = {"-": "del", "+": "ins"}
    lines = []
    for line in entry.difference:
        if line.startswith("@@"):
            lines.append("…")
            continue
        sign = {"-": "− ", "+": "+ "}.get(line[:1], "  ")
        body = html.escape(sign + line[1:])
        tag = tags.get(line[:1])
        lines.append(f"<{tag}>{body}</{tag}>" if tag else body)
    while lines and (lines[0] == "…" or not lines[0].strip()):
        lines.pop(0)
    return "\n".join(lines)


def _said(entry: Entry) -> str:
    """The snapshot: its first line names code and severity, the second is the message."""
    body = "\n".join(line for line in entry.said[1:] if not line.startswith("fix "))
    return f'<pre class="cl-said" tabindex="0">{html.escape(body)}</pre>'


def _scripts(entry: Entry) -> None:
    with st.expander(fill(SCRIPTS)):
        columns = st.columns(2, gap="medium")
        for column, title, text in (
            (columns[0], BAD_SCRIPT, entry.bad_script),
            (columns[1], GOOD_SCRIPT, entry.good_script),
        ):
            with column:
                st.caption(fill(title))
                st.code(text, language="python", wrap_lines=True)
    with st.container(horizontal=True, gap="small", key="catalogue_doctor"):
        for label, text in ((OPEN_BAD, entry.bad_script), (OPEN_GOOD, entry.good_script)):
            link = DOCTOR_FIELDS.to_link({**DOCTOR_FIELDS.defaults(), "mode": SCRIPT, "text": text})
            st.page_link(DOCTOR, label=fill(label), icon=":material/healing:", query_params=dict(link.params))


def _documents(entry: Entry) -> None:
    links = "".join(
        f'<li><a href="{document.url}" target="_blank" rel="noopener">{html.escape(document.title)}</a></li>'
        for document in entry.documents
    )
    source = re.sub(r"`+([^`]+)`+", r"<code>\1</code>", html.escape(fill(CHECKED_AGAINST, source=entry.source)))
    st.html(f'<ul class="cl-list">{links}</ul><p class="cl-quiet">{source}</p>')
