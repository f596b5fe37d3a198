"""Who asks which stream of keys, in which order: the n-th key of a stream is ``fold_in(key(seed), n)``.

`nnx.RngStream` and `nnx.Rngs` are wrapped once per process; a wrapper does nothing unless a log is set in the current
context, so that one session's log never sees another's keys.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

import flax
import jax
import numpy as np
from flax import nnx

from core.base.limits import LIMITS
from core.base.text import fill
from core.report.model import Asked, Criterion, Name, Status
from core.runners import initial
from core.runners.scan import is_key

#: Frames of Flax looked through for the module that is being built.
_DEPTH: Final = 40
_FLAX: Final = str(Path(flax.__file__).parent)
#: Hexadecimal digits of a key's hash that tell it from others.
DIGITS: Final = 16

NO_KEYS = "No key is drawn from."
ONCE = "{count} keys, each used once."
TWICE = (
    "The key that {first} got from “{stream}” (request {count}) is the very key that {other} got from “{others}”{more}."
)
MORE = ", and {count} more are used again"
SCRIPT = "the script"
CLASS, METHOD = "nnx.{name}", "nnx.{name}.initialize_carry"
CARRY: Final = "initialize_carry"
#: Initialisers that draw nothing.
_ZEROS: Final = (jax.nn.initializers.zeros, initial.zeros)


@dataclass(slots=True)
class Log:
    """What was asked for while it was set. `cut`: there was more than is kept."""

    asked: list[Asked] = field(default_factory=list)
    cut: bool = False
    named: dict[int, str] = field(default_factory=dict)

    def add(self, stream: str, count: int, by: str, key: Any, *, drawn: bool = True) -> None:
        """One key that was got. A traced one has no data, and is left out: it is asked for once, when it is traced."""
        if isinstance(key, jax.core.Tracer):
            return
        if len(self.asked) >= LIMITS["report_keys"].value:
            self.cut = True
            return
        self.asked.append(Asked(len(self.asked), stream[:60], count, by[:60], print_of(key), drawn))


def print_of(key: Any) -> str:
    """The first digits of the hash of a key's data."""
    raw = jax.random.key_data(key) if is_key(key.dtype) else key
    return hashlib.sha256(np.asarray(raw).tobytes()).hexdigest()[:DIGITS]


_log: ContextVar[Log | None] = ContextVar("report_asked", default=None)


@contextmanager
def asking(log: Log) -> Iterator[Log]:
    """Keep in `log` every key that a stream of NNX gives in this context."""
    _install()
    token = _log.set(log)
    try:
        yield log
    finally:
        _log.reset(token)
        log.named.clear()


@functools.cache
def _install() -> None:
    """Wrap the two classes, once per process."""
    stream_call: Any = nnx.RngStream.__call__
    rngs: Any = nnx.Rngs

    @functools.wraps(stream_call)
    def call(self: Any) -> Any:
        log = _log.get()
        if log is None:
            return stream_call(self)
        count = self.count[...]
        key = stream_call(self)
        if not isinstance(count, jax.core.Tracer) and np.ndim(count) == 0:
            by, drawn = _builder()
            log.add(log.named.pop(id(self), str(self.tag)), int(count), by, key, drawn=drawn)
        return key

    def naming(method: Any) -> Any:
        @functools.wraps(method)
        def found(self: Any, name: str) -> Any:
            stream = method(self, name)
            log = _log.get()
            if log is not None and isinstance(stream, nnx.RngStream):
                # A name without a stream of its own falls back to "default".
                log.named[id(stream)] = name if stream.tag == name else f"{name} ({stream.tag})"
            return stream

        return found

    setattr(nnx.RngStream, "__call__", call)  # noqa: B010  # mypy: a method is no attribute to be assigned
    rngs.__getattr__ = naming(rngs.__getattr__)
    rngs.__getitem__ = naming(rngs.__getitem__)


def _builder() -> tuple[str, bool]:
    """The outermost module of Flax that is at work, else the script; and whether numbers are drawn with the key.

    Zeros take a key and draw nothing with it. What Flax calls these things inside is looked at, and where it calls them
    otherwise the key counts as drawn from.
    """
    found, drawn = "", True
    frame: FrameType | None = sys._getframe(2)
    for _ in range(_DEPTH):
        if frame is None:
            break
        if frame.f_code.co_filename.startswith(_FLAX):
            known = frame.f_locals
            owner = known.get("self")
            carry = frame.f_code.co_name == CARRY
            if isinstance(owner, nnx.Module):
                found = fill(METHOD if carry else CLASS, name=type(owner).__name__)
            if (carry and known.get("carry_init") in _ZEROS) or (
                "kernel_key" in known and known.get("bias_init") in _ZEROS
            ):
                drawn = False
        frame = frame.f_back
    return found or fill(SCRIPT), drawn


# --- the criterion --------------------------------------------------------------------------------------------------


def keys_criterion(asked: Sequence[Asked], more: int = 0, detail: str = "") -> Criterion:
    """`KEYS`: of all keys that numbers were drawn with, none twice.

    Args:
        asked: the requests.
        more: uses too many that were found in another way.
        detail: where those are.
    """
    first: dict[str, Asked] = {}
    again: list[tuple[Asked, Asked]] = []
    for one in asked:
        if not one.drawn:
            continue
        if one.key in first:
            again.append((first[one.key], one))
        else:
            first[one.key] = one
    bad = len(again) + more
    if again:
        old, new = again[0]
        others = fill(MORE, count=len(again) - 1) if len(again) > 1 else ""
        said = fill(
            TWICE, first=old.by, stream=old.stream, count=old.count, other=new.by, others=new.stream, more=others
        )
        detail = " ".join(filter(None, (said, detail)))
    if bad:
        return Criterion(Name.KEYS, Status.FAIL, float(bad), "0", detail)
    if not first:
        return Criterion(Name.KEYS, Status.NOT_APPLICABLE, detail=detail or fill(NO_KEYS))
    return Criterion(Name.KEYS, Status.PASS, 0.0, "0", detail or fill(ONCE, count=len(first)))
