"""A browser tab's worth of Streamlit's protocol, without a browser: connect, run, move a widget, read what is drawn.

    async with Session("http://127.0.0.1:8501", page="lstm") as session:
        await session.rerun()
        run = await session.change(session.find("lstm_seed"), 7)
        run.seconds, run.text

Like the browser it sends the states of the widgets that it touched, the fragment that owns the one it moves, and the
hashes of the messages that it has kept. It sends no Origin, as nothing but a browser does.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self
from urllib.parse import urlsplit

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

#: Statuses that end a run; FINISHED_EARLY_FOR_RERUN is followed by another run.
DONE: Final = {
    ForwardMsg.FINISHED_SUCCESSFULLY,
    ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY,
    ForwardMsg.FINISHED_WITH_COMPILE_ERROR,
}
#: Elements with text, and the field that holds it.
TEXT_FIELDS: Final[Mapping[str, str]] = {
    "markdown": "body",
    "text": "body",
    "heading": "body",
    "alert": "body",
    "code": "code_text",
    "metric": "body",
    "html": "body",
    "json": "body",
}
#: Kinds of widget, and how a value is put into the state of one.
SETTERS: Final[Mapping[str, Callable[[Any, Any], None]]] = {
    "number_input": lambda state, value: setattr(state, "double_value", float(value)),
    "slider": lambda state, value: state.double_array_value.data.append(float(value)),
    "text_input": lambda state, value: setattr(state, "string_value", str(value)),
    "text_area": lambda state, value: setattr(state, "string_value", str(value)),
    "selectbox": lambda state, value: setattr(state, "string_value", str(value)),
    "radio": lambda state, value: setattr(state, "string_value", str(value)),
    "checkbox": lambda state, value: setattr(state, "bool_value", bool(value)),
}


class AppError(RuntimeError):
    """The app, rather than the transport, did something wrong."""


@dataclass(frozen=True, slots=True)
class Widget:
    """One that the page drew."""

    id: str
    kind: str
    label: str
    fragment_id: str

    def matches(self, wanted: str) -> bool:
        """Whether `wanted` is its label, its id or its key."""
        return wanted in (self.label, self.id) or self.id.endswith(f"-{wanted}")


@dataclass(slots=True)
class Run:
    """What one run of the script sent: how long it took, how much, texts, exceptions, kinds of elements, plotly's figures."""

    seconds: float = 0.0
    messages: int = 0
    bytes: int = 0
    text: list[str] = field(default_factory=list)
    exceptions: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    figures: list[str] = field(default_factory=list)


class Session:
    """One tab.

    Args:
        url: of the app, or of what stands before it.
        page: path of a page; "" for the first one.
        query: of the link, without "?".
        timeout: seconds, of the connection and of each run.
        headers: sent with the handshake: a cookie, an origin.
    """

    def __init__(
        self,
        url: str,
        page: str = "",
        query: str = "",
        timeout: float = 60.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        parts = urlsplit(url)
        scheme = "wss" if parts.scheme == "https" else "ws"
        self.stream = f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}/_stcore/stream"
        self._client_state: dict[str, str] = {"page_name": page, "query_string": query}
        self._timeout = timeout
        self._headers = dict(headers or {})
        self._ws: websockets.ClientConnection | None = None
        self._states: dict[str, WidgetState] = {}
        self._cache: dict[str, tuple[ForwardMsg, int]] = {}
        self._cache_age = 2
        self._runs = 0
        self.widgets: dict[str, Widget] = {}

    async def __aenter__(self) -> Self:
        self._ws = await websockets.connect(
            self.stream,
            subprotocols=["streamlit"],  # type: ignore[list-item]  # a NewType of str
            max_size=None,
            open_timeout=self._timeout,
            compression=None,
            ping_interval=None,
            additional_headers=self._headers,
        )
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.socket.close()

    @property
    def socket(self) -> websockets.ClientConnection:
        """The connection: for tests that send what no browser would."""
        if self._ws is None:
            raise RuntimeError("use it as a context")
        return self._ws

    def find(self, wanted: str) -> Widget:
        """The one widget with this label, id or key.

        Raises:
            AppError: there is none, or more than one.
        """
        found = [widget for widget in self.widgets.values() if widget.matches(wanted)]
        if len(found) != 1:
            seen = sorted({widget.label for widget in self.widgets.values()})
            raise AppError(f"{len(found)} widgets match {wanted!r}; the page has {seen}")
        return found[0]

    async def change(self, widget: Widget, value: object) -> Run:
        """Give a widget another value, and wait for what comes of it."""
        state = WidgetState(id=widget.id)
        SETTERS[widget.kind](state, value)
        self._states[widget.id] = state
        return await self.rerun(widget.fragment_id)

    async def rerun(self, fragment_id: str = "") -> Run:
        """Ask for a run, and read until it has ended.

        Raises:
            TimeoutError: it did not end in time.
        """
        message = self.message(fragment_id)
        self._runs += 1
        run = Run()
        start = time.perf_counter()
        await self.socket.send(message.SerializeToString())
        async with asyncio.timeout(self._timeout):
            while True:
                data = await self.socket.recv(decode=False)
                run.messages += 1
                run.bytes += len(data)
                if self._receive(ForwardMsg.FromString(data), run):
                    run.seconds = time.perf_counter() - start
                    break
        oldest = self._runs - self._cache_age
        self._cache = {name: entry for name, entry in self._cache.items() if entry[1] > oldest}
        return run

    def message(self, fragment_id: str = "") -> BackMsg:
        """What a browser sends to ask for a run."""
        message = BackMsg()
        message.rerun_script.CopyFrom(ClientState(fragment_id=fragment_id, **self._client_state))
        message.rerun_script.widget_states.widgets.extend(self._states.values())
        message.rerun_script.cached_message_hashes.extend(self._cache)
        return message

    def _receive(self, message: ForwardMsg, run: Run) -> bool:
        """Take one message; true when it ends the run."""
        kind = message.WhichOneof("type")
        if kind == "ref_hash":
            message, _ = self._cache[message.ref_hash]
            self._cache[message.hash] = (message, self._runs)
            kind = message.WhichOneof("type")
        elif message.metadata.cacheable and message.hash:
            self._cache[message.hash] = (message, self._runs)
        if kind == "new_session":
            self._cache_age = message.new_session.config.max_cached_message_age or self._cache_age
            self._client_state["page_script_hash"] = message.new_session.page_script_hash
        elif kind == "navigation":
            self._client_state["page_script_hash"] = message.navigation.page_script_hash
        elif kind == "page_info_changed":
            self._client_state["query_string"] = message.page_info_changed.query_string
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            self._element(message.delta.new_element, message.delta.fragment_id, run)
        elif kind == "session_event" and message.session_event.HasField("script_compilation_exception"):
            run.exceptions.append(message.session_event.script_compilation_exception.message)
        return kind == "script_finished" and message.script_finished in DONE

    def _element(self, element: Element, fragment_id: str, run: Run) -> None:
        kind = element.WhichOneof("type")
        if kind is None:
            return
        proto = getattr(element, kind)
        run.kinds[kind] += 1
        if kind == "plotly_chart":
            run.figures.append(proto.spec)
        if kind in SETTERS:
            self.widgets[proto.id] = Widget(proto.id, kind, proto.label, fragment_id)
        elif kind in TEXT_FIELDS:
            run.text.append(getattr(proto, TEXT_FIELDS[kind]))
        elif kind == "exception":
            run.exceptions.append(f"{proto.type}: {proto.message}")
