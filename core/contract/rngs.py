"""What was given where an `nnx.Rngs` is wanted, and which stream a draw comes from."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from flax import nnx

from core.base.avals import aval_of
from core.base.text import fill
from core.contract.subject import MISSING

NOTHING = "no rngs"
KEY = "a PRNG key"
NUMBER = "the number {value}"
RNGS = "an nnx.Rngs"
STREAM = "one stream of an nnx.Rngs"
OTHER = "a value of type {kind}"
SHAPE = "the tuple {value}"


def describe(value: Any) -> str:
    """What was given for rngs, in words."""
    if value is MISSING or value is None:
        return fill(NOTHING)
    if isinstance(value, nnx.Rngs):
        return fill(RNGS)
    if isinstance(value, nnx.RngStream):
        return fill(STREAM)
    if is_key(value):
        return fill(KEY)
    if isinstance(value, int):
        return fill(NUMBER, value=value)
    return fill(SHAPE, value=value) if is_shape(value) else fill(OTHER, kind=type(value).__name__)


def is_key(value: Any) -> bool:
    """Whether the value is one PRNG key, of the new or of the old kind."""
    aval = aval_of(value)
    if aval is None:
        return False
    return (aval.dtype, aval.shape) == ("uint32", (2,)) or (aval.dtype.startswith("key<") and aval.shape == ())


def is_seed(value: Any) -> bool:
    """Whether the value is a plain whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_shape(value: Any) -> bool:
    """Whether the value is a tuple of whole numbers, as a shape is."""
    return isinstance(value, tuple) and all(isinstance(n, int | np.integer) and n >= 0 for n in value)


def stream_of(rngs: Any, name: str) -> nnx.RngStream | None:
    """The stream that a draw for `name` comes from: the named one, else ``default``; None when there is neither."""
    if not isinstance(rngs, nnx.Rngs):
        return None
    return rngs[name] if name in rngs or "default" in rngs else None


def key_data(stream: nnx.RngStream) -> bytes | None:
    """The seed key of a stream as bytes; None while it is traced."""
    key = stream.key.get_value()
    return None if isinstance(key, jax.core.Tracer) else np.asarray(jax.random.key_data(key)).tobytes()
