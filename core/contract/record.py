"""Records what happens to recurrent cells: builds, `initialize_carry` calls and steps, inside a scan's trace too.

The methods of the four NNX cells are wrapped once per process; a wrapper does nothing unless a recorder is set in the
current context (`ContextVar`), so one session's recording never sees another's cells, and unrecorded calls cost one
lookup. Values are kept only as long as the recorder lives.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from flax import nnx

from core.base.places import Places
from core.contract.subject import MISSING

#: The cells that the rules know; a subclass records through its base's methods.
CELLS: tuple[type, ...] = (nnx.LSTMCell, nnx.OptimizedLSTMCell, nnx.GRUCell, nnx.SimpleCell)
#: Cells whose carry is the pair (c, h).
PAIR_CELLS: tuple[type, ...] = (nnx.LSTMCell, nnx.OptimizedLSTMCell)


@dataclass(frozen=True, slots=True, eq=False)
class BuildEvent:
    """A cell was built. `rngs` is what was given (MISSING: nothing); `error` what it raised.

    `surplus` are positional arguments beyond those that the cell takes: ``LSTMCell(3, 4, rngs)``, where rngs is
    keyword-only.
    """

    cell_type: type
    in_features: Any
    hidden_features: Any
    rngs: Any
    cell: Any = None
    error: BaseException | None = None
    site: Places | None = None
    surplus: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class CarryEvent:
    """`initialize_carry(input_shape, rngs)` was called on `cell`."""

    cell: Any
    input_shape: Any
    rngs: Any
    result: Any = None
    error: BaseException | None = None
    site: Places | None = None


@dataclass(frozen=True, slots=True, eq=False)
class StepEvent:
    """`cell(carry, inputs)` was called; `carry`, `inputs`, `result` are the very objects (tracers inside a scan)."""

    cell: Any
    carry: Any
    inputs: Any
    result: Any = None
    error: BaseException | None = None
    site: Places | None = None

    @property
    def wants_pair(self) -> bool:
        """Whether this cell's carry is the pair (c, h)."""
        return isinstance(self.cell, PAIR_CELLS)


@dataclass(slots=True)
class CellEvents:
    """What was recorded, in order."""

    builds: list[BuildEvent] = field(default_factory=list)
    carries: list[CarryEvent] = field(default_factory=list)
    steps: list[StepEvent] = field(default_factory=list)
    #: Says where a call and its arguments stand, by the roles of a cell (a frame walk in scripts); None on pages,
    #: whose places come from the subject.
    locate: Callable[[], Places | None] | None = None
    #: What was raised outside the cell's own methods (by a function that makes or edits its arguments).
    error: BaseException | None = None

    def site(self) -> Places | None:
        """The places of the call that is being recorded."""
        return self.locate() if self.locate else None


_recorder: ContextVar[CellEvents | None] = ContextVar("carry_lab_cell_events", default=None)


@contextmanager
def recording(events: CellEvents) -> Iterator[CellEvents]:
    """While open, cells used in this context report to `events`."""
    _install()
    token = _recorder.set(events)
    try:
        yield events
    finally:
        _recorder.reset(token)


def current() -> CellEvents | None:
    """Where cells report to in this context; None when nobody listens."""
    return _recorder.get()


def _observe(make: Callable[..., tuple[list[Any], Any]]) -> Callable[[Any], Any]:
    """A wrapper for a method: call it, then keep the event `make` builds from its arguments and its end."""

    def wrap(method: Any) -> Any:
        signature = inspect.signature(method)

        @functools.wraps(method)
        def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            events = _recorder.get()
            if events is None:
                return method(self, *args, **kwargs)
            given = _arguments(signature, args, kwargs)
            site = events.site()
            try:
                result = method(self, *args, **kwargs)
            except BaseException as error:
                kept, event = make(events, self, given, None, error, site)
                kept.append(event)
                raise
            kept, event = make(events, self, given, result, None, site)
            kept.append(event)
            return result

        return wrapped

    return wrap


def _arguments(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by name, also when the call does not fit the signature; positional ones too many are ``surplus``."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in signature.parameters.values() if p.kind in kinds][1:]
    return {**dict(zip(names, args, strict=False)), **kwargs, "surplus": args[len(names) :]}


def _build(events: CellEvents, cell: Any, given: dict[str, Any], _: Any, error: Any, site: Any) -> Any:
    args = (given.get("in_features"), given.get("hidden_features"), given.get("rngs", MISSING))
    return events.builds, BuildEvent(type(cell), *args, cell=cell, error=error, site=site, surplus=given["surplus"])


def _carry(events: CellEvents, cell: Any, given: dict[str, Any], result: Any, error: Any, site: Any) -> Any:
    args = (given.get("input_shape"), given.get("rngs", MISSING))
    return events.carries, CarryEvent(cell, *args, result=result, error=error, site=site)


def _step(events: CellEvents, cell: Any, given: dict[str, Any], result: Any, error: Any, site: Any) -> Any:
    args = (given.get("carry"), given.get("inputs"))
    return events.steps, StepEvent(cell, *args, result=result, error=error, site=site)


@functools.cache
def _install() -> None:
    """Wrap the cells' methods, once per process."""
    for cell in CELLS:
        for name, make in (("__init__", _build), ("initialize_carry", _carry), ("__call__", _step)):
            setattr(cell, name, _observe(make)(getattr(cell, name)))
