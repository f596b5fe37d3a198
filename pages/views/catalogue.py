"""The catalogue: every mistake that Carry Lab knows, with what is wrong, why, a fix, and what JAX says of it."""

import streamlit as st

from core.base.text import fill
from core.catalogue.entries import Entry, entries, entry_of
from core.catalogue.fields import FIELDS, PAGE, link_fields
from core.inputs.fields import REFUSED, shorten
from pages.widgets.cards import link_refusals
from pages.widgets.catalogue_entry import entry_page, jax_words
from pages.widgets.catalogue_list import results, search_box
from pages.widgets.frame import calm
from pages.widgets.state import PageState
from pages.widgets.verdict import State, Verdict, verdict_slot, verdict_strip

ALL = "{count} mistakes, each with a fix that was tried"
SILENT = "on {count} of them JAX says nothing, always or in some cases"
NO_CODE = "there is no such code"


def strip_of(entry: Entry | None) -> Verdict:
    """What the strip says: the page has nothing to check, so it names what is read."""
    if entry is None:
        known = entries()
        silent = fill(SILENT, count=sum(other.silent for other in known))
        return Verdict(State.UNCHECKED, words=fill(ALL, count=len(known)), summary=silent)
    return Verdict(State.UNCHECKED, words=entry.code, summary=f"{fill(entry.rule.title)} · {jax_words(entry)}")


def page() -> None:
    """A code, or all of them."""
    strip = verdict_slot()
    state = PageState(PAGE, lambda _: FIELDS, link_table=link_fields)
    code = str(state.begin()["code"])
    entry = entry_of(code)
    verdict_strip(strip, strip_of(entry))
    link_refusals(state)
    if entry is not None:
        entry_page(state, entry)
        return
    if code:
        st.warning(fill(REFUSED, label=FIELDS.field("code").label, value=shorten(code), reason=fill(NO_CODE)))
    results(state, search_box())


with calm("catalogue page"):
    page()
