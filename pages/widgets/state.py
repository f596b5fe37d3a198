"""The inputs of one page: session state, link and undo, all driven by the page's field table.

Values are kept under a name of our own besides the widgets' keys, because Streamlit forgets the state of a widget that
a run did not draw (another page, a closed section). Everything lives in this session's state and nowhere else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.base.text import fill
from core.base.violation import FieldEdit
from core.inputs.classroom import NAMES
from core.inputs.fields import FieldTable, InputField, Kind, Value, changed, repeated
from pages.widgets.brought import brought
from pages.widgets.classroom import classroom, tell_fields

APPLIED, UNDO = "Applied: {title}.", "Undo"
YES, NO = "on", "off"
EMPTY = "(empty)"

_ENTERED = "page:entered"
_CURRENT = "page:current"


def enter_page(url_path: str) -> None:
    """Called by the frame before a page runs: remembers whether the page was just opened (its link counts only then)."""
    st.session_state[_ENTERED] = st.session_state.get(_CURRENT) != url_path
    st.session_state[_CURRENT] = url_path


def known(page: str) -> bool:
    """Whether this session has been on the page, and so has inputs of its own there."""
    return f"{page}:values" in st.session_state


@dataclass(frozen=True, slots=True)
class Undo:
    """What the last button changed: a sentence that says so, the words on its undo button, the values before and after.

    `earlier`: what the button before it changed, when that is what an undo leads back to.
    """

    said: str
    button: str
    before: Mapping[str, Value]
    after: Mapping[str, Value]
    good: bool = True
    earlier: Undo | None = None


class PageState:
    """The inputs of one page in this session.

    Use: ``state = PageState("lstm", lambda given: LSTM_FIELDS); values = state.begin()`` once, at the top of the view,
    before any widget. Widgets are then drawn with ``key=state.key(name)`` and *without* a value.
    Buttons call ``state.edit(FieldEdit({...}), title)`` from ``on_click``.
    """

    def __init__(
        self,
        page: str,
        table_for: Callable[[Mapping[str, object]], FieldTable],
        *,
        link_table: Callable[[Mapping[str, str]], FieldTable] | None = None,
        follow: Callable[[Mapping[str, Value], Mapping[str, Value]], dict[str, Value]] | None = None,
    ) -> None:
        """The state of page `page`.

        Args:
            page: its name, the prefix of its widget keys.
            table_for: the field table for some values: it may depend on them.
            link_table: the same for what a link says; `table_for` where the two need not differ.
            follow: the values after an edit by hand, where one input follows another (T the typed numbers).
        """
        self.page = page
        self._table_for = table_for
        self._link_table = link_table or table_for
        self._follow = follow or (lambda before, edits: table_for({**before, **edits}).complete({**before, **edits}))
        self._memo: tuple[dict[str, Value], FieldTable] | None = None

    # --- reading ----------------------------------------------------------------------------------------------------

    @property
    def values(self) -> dict[str, Value]:
        """The value of every field, as of `begin` or the last edit."""
        return dict(st.session_state.get(self._name("values"), {}))

    @property
    def table(self) -> FieldTable:
        """The field table for the current values."""
        values = self.values
        if self._memo is None or self._memo[0] != values:
            self._memo = (values, self._table_for(values))
        return self._memo[1]

    @property
    def refused(self) -> tuple[str, ...]:
        """Sentences about what the link said and could not have; gone once something is changed."""
        return (*classroom().refused, *st.session_state.get(self._name("refused"), ()))

    @property
    def revision(self) -> int:
        """Counts the writes that did not come from a widget: part of the key of an editor that keeps edits itself."""
        return int(st.session_state.get(self._name("revision"), 0))

    @property
    def undo(self) -> Undo | None:
        """What the last button did, as long as nobody changed those inputs since."""
        undo: Undo | None = st.session_state.get(self._name("undo"))
        if undo is None or changed(self.values, undo.after, undo.after):
            return None
        return undo

    def key(self, name: str) -> str:
        """The stable widget key of a field."""
        return f"{self.page}_{name}"

    def begin(self) -> dict[str, Value]:
        """Settle the values of this run: from the link when the page was just opened with one, else from the widgets.

        Also gives every widget key its value, so that widgets need none. Never raises for what a link or widget holds.
        """
        known = self._name("values") in st.session_state
        entered = st.session_state.get(_ENTERED, True)
        params = _link_params()
        if params and (entered or not known):
            self._read_link(params)
            if not known:
                self._take_what_was_brought()
        elif not known:
            self._store(self._table_for({}).defaults())
            self._take_what_was_brought()
        else:
            # An address that lags behind (a run that was cut short never sent it) is written anew below; it is never
            # taken for the browser's Back, which looks the same from here: that would throw away what was just typed.
            self._take_from_widgets()
        st.session_state.pop(self._name("hidden"), None)  # this run says anew what it does not draw
        self._seed_widgets()
        self._write_link()
        tell_fields(self.page, self.table.fields)
        return self.values

    @property
    def link_problem(self) -> str:
        """A sentence when the state is too long for a link, else ""."""
        return self.table.to_link(self.values).problem

    def _read_link(self, params: Mapping[str, str]) -> None:
        read = self._link_table(params).from_link(params)
        self._store(self._follow(read.values, {}))
        counts = {name: len(st.query_params.get_all(name)) for name in params}
        st.session_state[self._name("refused")] = (*repeated(counts), *read.refused)

    def _take_what_was_brought(self) -> None:
        """In a session's first run here: a tab that was open before has newer values than its link."""
        values = self.values
        keys = {self.key(name): name for name in values if not self.locked(name)}
        told = {keys[key]: value for key, value in brought(keys).items()}
        given = {**values, **{name: self._as_field(name, value) for name, value in told.items()}}
        edits = {name: given[name] for name in changed(values, given, values)}
        if edits:
            self._store(self._follow(values, edits))

    def _as_field(self, name: str, value: Any) -> Value:
        """A value as the browser says it, as the field has it; the field's own where it cannot be one."""
        field, now = self.table.field(name), self.values[name]
        if field.kind is Kind.WHOLE and isinstance(value, float) and value.is_integer():
            value = int(value)
        read = self._table_for(self.values).complete({**self.values, name: value})[name]
        return now if field.kind is Kind.CHOICE and value not in field.options else read

    # --- writing ----------------------------------------------------------------------------------------------------

    def edit(self, edit: FieldEdit, title: str, said: str = APPLIED, undo: str = UNDO, *, good: bool = True) -> None:
        """For `on_click`: give these fields these values, exactly, and remember how to undo it.

        `said` and `undo` are the templates of the line that offers to undo it; `good`: it mends something.
        What was typed in the same moment counts first. An edit that changes nothing (a second click) is none; breaking
        what is broken on purpose already leaves the way back to what was there before the first time.
        """
        self._take_from_widgets()
        before, last = self.values, self.undo
        after = self._complete({**before, **edit.values})
        if after == before:
            return
        if not good:
            before, last = self._before_breaking(before, last), None
        self.write(after)
        touched = changed(before, after, sorted(set(before) | set(after)))
        st.session_state[self._name("undo")] = Undo(
            fill(said, title=title),
            fill(undo),
            {n: before[n] for n in touched if n in before},
            {n: after[n] for n in touched if n in after},
            good,
            last,
        )

    def _before_breaking(self, values: dict[str, Value], last: Undo | None) -> dict[str, Value]:
        """What was there before the first of the breaks that undoing leads back to; these values where there is none."""
        found = values
        while last is not None:
            found = {**found, **last.before}
            if not last.good:
                return self._complete(found)
            last = last.earlier
        return values

    def undo_last(self) -> None:
        """For `on_click`: what `edit` changed gets its values back."""
        self._take_from_widgets()
        undo = self.undo
        if undo is not None:
            self.write({**self.values, **undo.before})
            st.session_state[self._name("undo")] = undo.earlier

    def write(self, values: Mapping[str, object]) -> None:
        """Set all fields (what is missing or impossible gets its default), widgets included."""
        self._store(self._complete(values))
        st.session_state[self._name("revision")] = self.revision + 1
        st.session_state.pop(self._name("refused"), None)
        for name, value in self.values.items():
            st.session_state[self.key(name)] = value

    def set_quietly(self, name: str, value: Value) -> None:
        """Set one field from a widget that keeps its own edits (a table), without a new revision; not a locked one."""
        if self.locked(name):
            st.session_state[self._name("revision")] = self.revision + 1  # the widget must drop its edit
            return
        self._take_from_widgets()
        self._store(self._follow(self.values, {name: value}))
        for changed_name, new in self.values.items():
            st.session_state[self.key(changed_name)] = new
        self._write_link()  # in the middle of a run, the link of this run is written already

    def locked(self, name: str) -> bool:
        """Whether a teacher's link keeps this field as it is. Buttons that set it (a fix, a break) still do."""
        return self.key(name) in classroom().lock

    def hide(self, *names: str) -> None:
        """Say that this run draws no widget for these fields: they keep their values.

        Without it they would lose them: for a widget that a run does not draw, Streamlit goes back to what stood under
        its key before it was first drawn.
        """
        hidden = st.session_state.get(self._name("hidden"), frozenset())
        st.session_state[self._name("hidden")] = hidden | set(names)

    # --- showing ----------------------------------------------------------------------------------------------------

    def changes(self, edit: FieldEdit) -> tuple[tuple[str, str, str], ...]:
        """What an edit changes, for a reader: (label, old value, new value) of each input that differs."""
        before = self.values
        after = self._complete({**before, **edit.values})
        old, new = self.table, self._table_for(after)
        out = []
        for name in changed(before, after, dict.fromkeys([*after, *before])):
            field = new.field(name) if new.has(name) else old.field(name)
            out.append((field.label, shown(field, before.get(name)), shown(field, after.get(name))))
        return tuple(out)

    def _complete(self, values: Mapping[str, object]) -> dict[str, Value]:
        return self._table_for(values).complete(values)

    def _take_from_widgets(self) -> bool:
        """Take what was changed in the widgets since the last time; whether anything was."""
        values = self.values
        hidden = st.session_state.get(self._name("hidden"), frozenset())
        given: dict[str, Value] = {
            n: v if n in hidden or self.locked(n) else st.session_state.get(self.key(n), v) for n, v in values.items()
        }
        edits = {name: given[name] for name in changed(values, given, values)}
        if not edits:
            return False
        new = self._follow(values, edits)
        self._store(new)
        st.session_state.pop(self._name("refused"), None)
        if changed({**values, **edits}, new, new):
            # Something followed that no widget said: an editor that keeps edits itself must begin anew.
            st.session_state[self._name("revision")] = self.revision + 1
        return True

    def _seed_widgets(self) -> None:
        # Only where it differs: writing an equal value would make the browser drop what is being typed.
        for name, value in self.values.items():
            key = self.key(name)
            if key not in st.session_state or st.session_state[key] != value:
                st.session_state[key] = value

    def _write_link(self) -> None:
        params = self.table.to_link(self.values).params
        kept = {k: v for k, v in st.query_params.items() if k in _STREAMLIT_PARAMS} | classroom().params
        written = float(st.session_state.pop(self._name("written"), 0.0))
        new = dict(st.query_params) != {**kept, **params}
        if new or time.monotonic() - written < _CUT_SHORT:
            # A run that the next one cuts short never sends its address: right after a write it is sent once more.
            st.query_params.from_dict({**kept, **params})
        if new:
            st.session_state[self._name("written")] = time.monotonic()

    def _store(self, values: Mapping[str, Value]) -> None:
        st.session_state[self._name("values")] = dict(values)

    def _name(self, what: str) -> str:
        return f"{self.page}:{what}"


def _link_params() -> dict[str, str]:
    """What the address says of the page's inputs: without what Streamlit says there, and what is the class's."""
    return {k: v for k, v in st.query_params.items() if k not in _STREAMLIT_PARAMS and k not in NAMES}


#: Seconds after which a run has surely not been cut short by the next one.
_CUT_SHORT = 1.5
#: Query parameters that belong to Streamlit itself.
_STREAMLIT_PARAMS = frozenset({"embed", "embed_options"})


def shown(field: InputField, value: Value | None) -> str:
    """A value as a card writes it."""
    if value is None or value == "":
        return fill(EMPTY)
    if field.kind is Kind.FLAG:
        return fill(YES if value else NO)
    return str(value)
