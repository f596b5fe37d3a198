"""Where in a script an equation of its programs comes from, and what equations hold: for rules that read jaxprs.

JAX keeps with each equation the frames that were on the stack when it was traced, with exact columns. Inside a function
that JAX traces apart (its own jitted ones, kept from one script to the next) no frame of a script is among them: such an
equation stands where the call stands.
"""

from __future__ import annotations

from typing import Any

from jax._src import source_info_util  # the only way to ask an equation for its columns

from core.base.jaxprs import inner, parts_of
from core.base.places import Span
from core.contract.script_record import ScriptRecord
from core.contract.source import Source
from core.contract.subject import Subject

_frames_of: Any = source_info_util.user_frames


def record_of(subject: Subject) -> ScriptRecord:
    """The subject of a proof of a rule on ``script``.

    Raises:
        TypeError: it is another kind of subject (then there is no proof).
    """
    if isinstance(subject, ScriptRecord):
        return subject
    raise TypeError(type(subject))


def span_of(eqn: Any, source: Source) -> Span | None:
    """The expression of the script that made an equation; None when that is not known."""
    return next(iter(spans_of(eqn, source)), None)


def spans_of(eqn: Any, source: Source) -> tuple[Span, ...]:
    """The expressions of the script that were being evaluated when an equation was made, innermost first."""
    traceback = eqn.source_info.traceback
    if traceback is None:
        return ()
    return tuple(
        Span(
            frame.start_line,
            _chars(source, frame.start_line, frame.start_column),
            frame.end_line,
            _chars(source, frame.end_line, frame.end_column),
        )
        for frame in _frames_of(traceback)
        if frame.file_name == source.filename and 1 <= frame.start_line <= len(source.lines)
    )


def _chars(source: Source, line: int, column: int) -> int:
    """JAX counts bytes, as Python does; a Span counts characters."""
    text = source.lines[line - 1] if line <= len(source.lines) else ""
    return len(text.encode()[:column].decode(errors="ignore"))


def differentiating(eqn: Any) -> bool:
    """Whether an equation belongs to taking a gradient: the linear part, or what it keeps of the forward pass."""
    names = str(eqn.source_info.name_stack)
    return "jvp(" in names or "transpose(" in names


def backwards(eqn: Any) -> bool:
    """Whether an equation belongs to the backward pass."""
    return "transpose(" in str(eqn.source_info.name_stack)


def opened(eqn: Any) -> tuple[Any, tuple[Any, ...]] | None:
    """Jaxpr and constants of the program that an equation merely calls; None for an operation of its own."""
    called = inner(eqn)
    return None if called is None else parts_of(called)


def split_scan(eqn: Any, values: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """The inputs of a `scan` equation (or anything given for each) as constants, carry and xs."""
    consts, carry, xs = (list(part) for part in eqn.params["ft_in"].update(values).unpack())
    return consts, carry, xs
