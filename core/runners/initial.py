"""Initialisers of NNX cells that compile next to nothing for a new size: the same numbers as Flax's own, to the last bit.

JAX draws the i-th number of an array from the key and i alone (``jax_threefry_partitionable``, the default), so that a
smaller array is the beginning of a larger one. Numbers are therefore drawn in a few lengths, and cut and shaped on the
host. What is left to compile for a new size is the QR decomposition of its recurrent kernel: 50 ms instead of 350.
The kernels of a cell that have one shape are drawn together (`kernels`, `recurrent_kernels`): what takes the time in a
small cell is not the numbers but the calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import initializers

from core.runners.cache import PROGRAMS

type Array = np.ndarray[Any, Any]

#: The smallest length that is drawn, and how many times as long the next one is, and so on.
_LEAST: Final = 1024
_NEXT: Final = 4

#: Standard deviation of a normal distribution cut off at −2 and 2, as `initializers.variance_scaling` has it.
_TRUNCATED_DEVIATION: Final = 0.87962566103423978


def kernel(key: Any, shape: tuple[int, ...], dtype: Any = np.float32, **_: Any) -> Any:
    """As ``initializers.lecun_normal()``, which every cell has for its input kernels (LeCun et al. 1998).

    Args:
        key: one typed key.
        shape: (F, …): fan-in first.
        dtype: of the parameters.
    """
    if not drawn_in_lengths(shape, dtype):
        return initializers.lecun_normal()(key, shape, dtype)
    deviation = np.sqrt(np.float32(1.0 / shape[0])) / np.float32(_TRUNCATED_DEVIATION)
    return jax.device_put(_draw("truncated", _truncated, key, shape) * deviation)


def recurrent_kernel(key: Any, shape: tuple[int, ...], dtype: Any = np.float32, **_: Any) -> Any:
    """As ``initializers.orthogonal()``, which every cell has for its recurrent kernels (Saxe et al. 2013).

    Args:
        key: one typed key.
        shape: (H, …).
        dtype: of the parameters.
    """
    if not drawn_in_lengths(shape, dtype):
        return initializers.orthogonal()(key, shape, dtype)
    rows, columns = shape
    drawn = _draw("normal", _normal, key, (max(rows, columns), min(rows, columns)))
    program, _compiled = PROGRAMS.get(("orthogonal", rows < columns), _orthogonal(rows < columns), (drawn,))
    return program(drawn)


def kernels(start: Any, requests: tuple[int, ...], shape: tuple[int, int]) -> tuple[Any, ...]:
    """`kernel` for several keys of one stream at once.

    Args:
        start: the key of the stream.
        requests: which of its keys, by number: `nnx.RngStream` folds the number of a request into its key.
        shape: (F, H) of each, float32.
    """
    deviation = np.sqrt(np.float32(1.0 / shape[0])) / np.float32(_TRUNCATED_DEVIATION)
    drawn = _draw_all("truncated", _truncated, start, requests, shape)
    return tuple(jax.device_put(numbers * deviation) for numbers in drawn)


def recurrent_kernels(start: Any, requests: tuple[int, ...], shape: tuple[int, int]) -> tuple[Any, ...]:
    """`recurrent_kernel` for several keys of one stream at once; arguments as of `kernels`."""
    rows, columns = shape
    drawn = _draw_all("normal", _normal, start, requests, (max(rows, columns), min(rows, columns)))
    key = ("orthogonal, together", rows < columns)
    program, _compiled = PROGRAMS.get(key, _orthogonals(rows < columns, len(requests)), (drawn,))
    out: tuple[Any, ...] = program(drawn)
    return out


def zeros(key: Any, shape: tuple[int, ...], dtype: Any = np.float32, **_: Any) -> Any:  # noqa: ARG001  # their protocol
    """As ``initializers.zeros_init()``; an array from the host compiles nothing."""
    return jax.device_put(np.zeros(shape, dtype))


def drawn_in_lengths(shape: tuple[int, ...], dtype: Any) -> bool:
    """Whether the numbers are the beginning of longer ones, and the shape is one that a cell should have."""
    sound = len(shape) == 2 and all(type(size) is int and size > 0 for size in shape)
    return sound and np.dtype(dtype) == np.float32 and bool(jax.config.jax_threefry_partitionable)


def _draw(name: str, draw: Callable[[Any, int], Any], key: Any, shape: tuple[int, ...]) -> Array:
    count, length = _lengths(shape)
    program, _compiled = PROGRAMS.get((name, length), lambda k: draw(k, length), (key,))
    return np.asarray(program(key))[:count].reshape(shape)


def _draw_all(
    name: str, draw: Callable[[Any, int], Any], start: Any, requests: tuple[int, ...], shape: tuple[int, ...]
) -> Array:
    """The numbers for each request, one shape after the other."""
    count, length = _lengths(shape)

    def program(key: Any) -> Any:
        return jax.vmap(lambda at: draw(jax.random.fold_in(key, at), length))(np.asarray(requests, np.uint32))

    compiled, _ = PROGRAMS.get((name, length, requests), program, (start,))
    return np.asarray(compiled(start))[:, :count].reshape(-1, *shape)


def _lengths(shape: tuple[int, ...]) -> tuple[int, int]:
    """How many numbers are wanted, and how many are drawn."""
    count, length = math.prod(shape), _LEAST
    while length < count:
        length *= _NEXT
    return count, length


def _truncated(key: Any, length: int) -> Any:
    return jax.random.truncated_normal(key, -2, 2, (length,), jnp.float32)


def _normal(key: Any, length: int) -> Any:
    return jax.random.normal(key, (length,), jnp.float32)


def _orthogonal(wide: bool) -> Callable[[Any], Any]:
    """Q of the numbers drawn, its signs made unique as `initializers.orthogonal` does; transposed where `wide`."""

    def program(drawn: Any) -> Any:
        q, r = jnp.linalg.qr(drawn)
        q = q * jnp.sign(jnp.diag(r))[None, :]
        return q.T if wide else q

    return program


def _orthogonals(wide: bool, count: int) -> Callable[[Any], tuple[Any, ...]]:
    """The same for each of so many matrices."""

    def program(drawn: Any) -> tuple[Any, ...]:
        return tuple(_orthogonal(wide)(drawn[at]) for at in range(count))

    return program
