"""What the playground does not run, or runs no further: refusals and limits that show while a script runs (X602, X603)."""

from __future__ import annotations

import jax

from core.base.places import Span
from core.contract.script_record import MEMORY, Failure, Stopped

#: How XLA's status of an allocation that failed begins: a name of its protocol, not a sentence that changes.
EXHAUSTED = "RESOURCE_EXHAUSTED:"


def refusal_of(error: BaseException) -> str | None:
    """The sentence of a refusal that the sandbox raised; None for every other exception."""
    try:
        from core.sandbox.refusals import NotHere
    except ImportError:
        return None
    return error.text if isinstance(error, NotHere) else None


def refused(span: Span, error: BaseException) -> tuple[tuple[Span, str], ...]:
    """A refusal while the script ran, at its place."""
    text = refusal_of(error)
    return () if text is None else ((span, text),)


def out_of_memory(failure: Failure) -> Stopped | None:
    """The limit that an exception stands for when it says that there is no memory; None for every other exception."""
    error = failure.error
    exhausted = isinstance(error, jax.errors.JaxRuntimeError) and str(error).startswith(EXHAUSTED)
    return Stopped(MEMORY, failure.span) if exhausted or isinstance(error, MemoryError) else None
