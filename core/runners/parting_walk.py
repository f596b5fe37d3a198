"""How a step is repeated: by `lax.scan`, or by a plain Python loop. What the paths of a computation share, and differ in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, tree_util

from core.base.parting import Path
from core.runners.scan import is_key, pair_of, to_device, to_host
from core.runners.wide import widen

#: Steps that one turn of the compiled loop does on the unrolled path; another number where that was asked for already.
UNROLL: Final = (4, 3)

#: Why a path is left out.
ONE_BACKEND = "JAX sees no other backend than {platform} here."

type Step = Callable[[Any, Any], Any]


@contextmanager
def surroundings(path: Path, jit: bool) -> Iterator[None]:
    """What a path needs around it: 64 bits, another backend; and no jit at all where `jit` is False.

    64 bits are switched on for this thread and within this alone. Pages run that path in a worker.
    """
    with ExitStack() as stack:
        if path is Path.FLOAT64:
            stack.enter_context(jax.enable_x64(True))
        if path is Path.BACKEND:
            stack.enter_context(jax.default_device(jax.devices(other_backend())[0]))
        if not jit:
            stack.enter_context(jax.disable_jit())
        yield


def wide_tree(tree: Any) -> Any:
    """The leaves in 64 bits, from the numbers as they were given; PRNG keys and what has no wider dtype as they are."""

    def one(leaf: Any) -> Any:
        dtype = jax.typeof(leaf).dtype
        return leaf if is_key(dtype) else widen(leaf, str(dtype))

    return tree_util.tree_map(one, tree)


def walk(
    step: Step, carry: Any, xs: Any, *, length: int, loop: bool = False, unroll: Any = 1, reverse: bool = False
) -> tuple[Any, Any, Any]:
    """Repeat a step over xs with every carry kept.

    Args:
        step: ``step(carry, x) -> (carry, y)``.
        carry: of arrays, promoted already.
        xs: leaves (T, …), or in a loop a list of T trees.
        length: T.
        loop: a Python loop that calls the step T times, instead of a scan that calls it to trace it.
        unroll: as of `lax.scan`.
        reverse: as of `lax.scan`.

    Returns:
        the final carry, all new carries, all ys: stacked in the order of xs by a scan; lists in a loop.
    """
    if not loop or length == 0:

        def body(carry: Any, x: Any) -> Any:
            returned = step(carry, x)
            if type(returned) not in (tuple, list) or len(returned) != 2:
                return returned  # JAX says best what is wrong with it
            new, y = returned
            return new, (new, y)

        final, (carries, ys) = lax.scan(body, carry, xs, length=length, reverse=reverse, unroll=unroll)
        return final, carries, ys
    kept: list[Any] = [None] * length
    outputs: list[Any] = [None] * length
    for t in reversed(range(length)) if reverse else range(length):
        carry, outputs[t] = pair_of(step(carry, xs[t] if isinstance(xs, list) else at(xs, t)))
        kept[t] = carry
    return carry, kept, outputs


def at(tree: Any, t: int) -> Any:
    """Element t of every leaf. What is on the host is cut there: cutting a device array compiles for each t."""

    def one(leaf: Any) -> Any:
        if isinstance(leaf, np.ndarray):
            return jax.device_put(leaf[t])
        if isinstance(leaf, jax.core.Tracer) or getattr(leaf, "weak_type", False):
            return leaf[t]
        return to_device(to_host(leaf)[t], leaf)

    return tree_util.tree_map(one, tree)


def stack(kept: Any) -> Any:
    """The list of a loop as one tree with a leading axis of T; anything else as it is."""
    if not isinstance(kept, list):
        return kept

    def one(*leaves: Any) -> Any:
        traced = any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
        if traced or is_key(jax.typeof(leaves[0]).dtype):
            return jnp.stack(leaves)
        return np.stack([np.asarray(leaf) for leaf in leaves])  # compiles nothing

    return tree_util.tree_map(one, *kept)


def other_unroll(asked: Any, length: int) -> int:
    """The unroll of the unrolled path: not the one that was asked for."""
    return max(1, min(length, UNROLL[1] if asked == UNROLL[0] else UNROLL[0]))


def padded_length(length: int) -> int:
    """The length to which a data pipeline would pad it: the next power of two above it, at least one step more."""
    return 1 << length.bit_length()


def other_backend() -> str:
    """A platform beside the usual one that this process can compute on; "" where there is none."""
    usual = jax.devices()[0].platform
    if usual == "cpu":
        return ""
    try:
        return str(jax.devices("cpu")[0].platform)
    except RuntimeError:
        return ""
