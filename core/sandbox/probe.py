"""What each expression of a script was: shapes beside the lines, and the operands of the one that failed.

The transformed script calls the probe with the number and the value of each expression. Only abstract values are kept
(shape, dtype, weak type), so that no array and no tracer lives longer for having been looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from types import TracebackType
from typing import Any, Final

import jax
import numpy as np
from flax import nnx

from core.base.avals import Aval
from core.base.places import Span
from core.sandbox.policy import Compiled
from core.sandbox.reporting import Target
from core.sandbox.words import FILENAME

#: Containers with more leaves than this are not shown.
MOST_LEAVES: Final = 12
_NUMBERS: Final = (bool, int, float, complex)
_SIMPLE: Final[tuple[type, ...]] = (str, bytes, type(None), type(lambda: None), type, slice, range)

#: What was seen of a value: an array's aval, a container's parts, or the name of a type that is neither.
type Shape = Aval | str | Parts


@dataclass(frozen=True, slots=True)
class Parts:
    """A container of arrays as it is written: ``(``, ``State(``, ``{`` and its parts with their names, if any."""

    opening: str
    parts: tuple[tuple[str, Shape], ...]
    closing: str

    def __str__(self) -> str:
        inside = ", ".join(name + str(part) for name, part in self.parts)
        comma = "," if self.opening == "(" and len(self.parts) == 1 else ""
        return f"{self.opening}{inside}{comma}{self.closing}"


@dataclass(frozen=True, slots=True)
class Beside:
    """What an editor shows beside one line: a name (empty for a returned value) and a shape such as ``float32[2,4]``."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Failure:
    """Where a script failed: the smallest expression, and its operands with what they were."""

    span: Span
    operands: tuple[tuple[Span, str], ...]


class Probe:
    """One run's records, by expression number; the last value of each counts."""

    def __init__(self) -> None:
        self.records: dict[int, Any] = {}
        self._readers: dict[type, Callable[[Any], Any] | None] = dict.fromkeys(_SIMPLE)
        self._readers.update((cls, _constant(cls.__name__)) for cls in _NUMBERS)

    def __call__(self, number: int, value: Any) -> Any:
        """Take the value's shape down and hand the value on. Runs for every expression: one lookup by type for most."""
        cls = type(value)
        try:
            reader = self._readers[cls]
        except KeyError:
            reader = self._readers[cls] = _reader(value)
        if reader is not None:
            self.records[number] = reader(value)
        return value


def _reader(value: Any) -> Callable[[Any], Any] | None:
    """What reads the shapes of values of this type; None when they have none."""
    if isinstance(value, jax.Array | jax.core.Tracer | np.ndarray | np.generic):
        return _aval
    if isinstance(value, _NUMBERS):
        return _constant(type(value).__name__)
    container = isinstance(value, tuple | list | dict | nnx.Variable | jax.ShapeDtypeStruct)
    return _shape if container or is_dataclass(type(value)) else None


def _constant(name: str) -> Callable[[Any], str]:
    return lambda _: name


class _Budget:
    """How many leaves are left."""

    def __init__(self) -> None:
        self.left = MOST_LEAVES

    def take(self) -> bool:
        """Whether there was one more."""
        self.left -= 1
        return self.left >= 0


def _aval(value: Any) -> Aval:
    """Of an array or tracer, read from its own abstract value (no trace, no copy)."""
    if isinstance(value, np.ndarray | np.generic):
        return Aval(tuple(value.shape), str(value.dtype))
    aval = value.aval
    return Aval(tuple(aval.shape), str(aval.dtype), bool(getattr(aval, "weak_type", False)))


def _shape(value: Any) -> Shape | None:
    """The shape of a container that holds an array somewhere; None for others, and for what is too large to show."""
    found = _any_shape(value, _Budget(), 0)
    return found if found is not None and _has_array(found) else None


def _any_shape(value: Any, budget: _Budget, depth: int) -> Shape | None:
    if depth > 6 or not budget.take():
        return None
    if isinstance(value, jax.Array | jax.core.Tracer | np.ndarray | np.generic):
        return _aval(value)
    if isinstance(value, jax.ShapeDtypeStruct):
        return Aval(tuple(value.shape), str(value.dtype), bool(value.weak_type))
    if isinstance(value, nnx.Variable):
        return _any_shape(value.get_raw_value(), budget, depth + 1)
    if isinstance(value, tuple | list | dict) or is_dataclass(type(value)):
        return _container(value, budget, depth)
    return type(value).__name__


def _container(value: Any, budget: _Budget, depth: int) -> Shape | None:
    cls, opening, closing = type(value), "(", ")"
    if isinstance(value, dict):
        opening, closing = "{", "}"
        labels, parts = [f"{key!r}: " if isinstance(key, str | int) else "…: " for key in value], list(value.values())
    elif isinstance(value, tuple) and hasattr(cls, "_fields"):
        opening = f"{cls.__name__}("
        labels, parts = [f"{name}=" for name in cls._fields], list(value)
    elif isinstance(value, tuple | list):
        opening, closing = ("[", "]") if isinstance(value, list) else ("(", ")")
        labels, parts = [""] * len(value), list(value)
    else:
        opening = f"{cls.__name__}("
        own = [f.name for f in fields(value) if f.name in getattr(value, "__dict__", {})]
        labels, parts = [f"{name}=" for name in own], [value.__dict__[name] for name in own]
    shapes = [_any_shape(part, budget, depth + 1) for part in parts[: MOST_LEAVES + 1]]
    if len(parts) > MOST_LEAVES or any(s is None for s in shapes):
        return None
    return Parts(opening, tuple((n, s) for n, s in zip(labels, shapes, strict=True) if s is not None), closing)


def _has_array(shape: Shape) -> bool:
    return isinstance(shape, Aval) or (isinstance(shape, Parts) and any(_has_array(p) for _, p in shape.parts))


# --- what is shown --------------------------------------------------------------------------------------------------


def shapes_by_line(compiled: Compiled, records: Mapping[int, Shape]) -> dict[int, tuple[Beside, ...]]:
    """Per line, the shapes of what it assigns, returns or (for a `def`) receives; of several values the last.

    Numbers alone are not shown; names that begin with an underscore neither.
    """
    out: dict[int, tuple[Beside, ...]] = {}
    for shown in compiled.shown:
        shape = records.get(shown.number)
        if shape is not None and _has_array(shape):
            beside = tuple(_beside(shown.names, shape))
            if beside:
                out[shown.line] = beside
    return out


def _beside(names: Target, shape: Shape) -> Iterator[Beside]:
    if isinstance(names, tuple) and isinstance(shape, Parts) and len(names) == len(shape.parts):
        for name, (_, part) in zip(names, shape.parts, strict=True):
            if name is not None and (_has_array(part) or isinstance(part, str)):
                yield from _beside(name, part)
    elif not isinstance(names, str):
        yield Beside("", str(shape))
    elif not names.startswith("_"):
        yield Beside(names, str(shape))


# --- where it failed ------------------------------------------------------------------------------------------------


def place_of(trace: TracebackType | None, lines: Sequence[str]) -> Span | None:
    """The expression that the innermost frame of the script was in, from the columns that Python 3.12 keeps."""
    found = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILENAME:
            found = trace
        trace = trace.tb_next
    if found is None:
        return None
    positions = list(found.tb_frame.f_code.co_positions())[found.tb_lasti // 2]
    line, end_line, col, end_col = positions
    if line is None:
        return Span(found.tb_lineno, 0, found.tb_lineno, 0)
    end_line = end_line or line
    return Span(line, _chars(lines, line, col or 0), end_line, _chars(lines, end_line, end_col or 0))


def failure(
    error: BaseException, compiled: Compiled, records: Mapping[int, Shape], lines: Sequence[str]
) -> Failure | None:
    """Where in the script an exception was raised, and what the parts of that expression were.

    Operands are the largest expressions inside the one that failed that have reported: left and right of an operator,
    the arguments of a call.
    """
    span = place_of(error.__traceback__, lines)
    if span is None:
        return None
    inside = [
        (s, k) for k, s in enumerate(compiled.spans) if records.get(k) is not None and s != span and _holds(span, s)
    ]
    operands = [(s, k) for s, k in inside if not any(o != s and _holds(o, s) for o, _ in inside)]
    unique = dict(sorted(operands, key=lambda pair: (pair[0].line, pair[0].col)))
    return Failure(span, tuple((s, str(records[k])) for s, k in unique.items()))


def _holds(outer: Span, inner: Span) -> bool:
    starts = (outer.line, outer.col) <= (inner.line, inner.col)
    return starts and (inner.end_line, inner.end_col) <= (outer.end_line, outer.end_col)


def _chars(lines: Sequence[str], line: int, offset: int) -> int:
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    return offset if text.isascii() else len(text.encode()[:offset].decode(errors="ignore"))


__all__ = ["Beside", "Failure", "Parts", "Probe", "Shape", "failure", "place_of", "shapes_by_line"]
