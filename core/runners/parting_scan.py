"""One call of `lax.scan` as a computation whose paths are compared: data, shapes, values, and gradients where asked for.

Padding is done as a data pipeline does it: zeros after the last element. A plain scan has no mask, so that its ys agree
and its final carry is that of another sequence, unless the step leaves the carry alone where x is 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, tree_util

from core.base.jaxprs import made_floats
from core.base.parting import Lever, Path, Stage
from core.base.text import fill
from core.contract.subject import ScanCall
from core.runners.parting import Log, Trees
from core.runners.parting_walk import (
    ONE_BACKEND,
    at,
    other_backend,
    other_unroll,
    padded_length,
    stack,
    surroundings,
    walk,
    wide_tree,
)
from core.runners.scan import is_key, to_host

CARRY, YS, FINAL, INIT, XS, LOSS, GRAD_INIT, GRAD_XS = (
    "carry", "ys", "final carry", "init", "xs", "loss", "grad init", "grad xs"
)  # fmt: skip

NO_BATCH = "It is not said which axis of xs is the batch."
NO_NUMBERS = "xs holds no numbers that could be padded."


@dataclass(frozen=True)
class Scanned:
    """``lax.scan(step, init, xs, length, reverse, unroll)`` and, where asked for, a gradient through it.

    Attributes:
        call: the scan, one that `lax.scan` takes.
        differentiate: also compare the sum of all floating-point outputs (a loss for want of a better one) and its
            gradient with respect to the floating-point leaves of init and xs.
        jit: False runs everything step by step, operation by operation (`jax.disable_jit`).
    """

    call: ScanCall
    differentiate: bool = False
    jit: bool = True

    @cached_property
    def length(self) -> int:
        """T."""
        leaves = tree_util.tree_leaves(self.call.xs)
        return next(iter(np.shape(leaves[0])), 0) if leaves else int(self.call.length)

    @property
    def timed(self) -> frozenset[str]:
        """Roots with steps."""
        return frozenset((CARRY, YS, XS, GRAD_XS))

    @property
    def backwards(self) -> int:
        """T where the scan runs from the end."""
        return self.length if self.call.reverse else 0

    @cached_property
    def computed(self) -> frozenset[str]:
        """The floating-point dtypes that the step computes in; none where it does not trace."""
        if self.length == 0:
            return frozenset()
        try:
            body = self.call.body
            args = self._start(self.call.init), at(self.call.xs, 0)
            return made_floats(jax.make_jaxpr(lambda c, x: tree_util.tree_leaves(body(c, x)))(*args))
        except Exception:  # noqa: BLE001  # a step raises what it likes; then the dtypes of the leaves decide
            return frozenset()

    def reason(self, path: Path) -> str:
        """Why it is left out."""
        if path is Path.VMAP and self._batch_axis is None:
            return fill(NO_BATCH)
        if path is Path.PADDED and not self._can_pad:
            return fill(NO_NUMBERS)
        if path is Path.BACKEND and not other_backend():
            return fill(ONE_BACKEND, platform=jax.devices()[0].platform)
        return ""

    @property
    def levers(self) -> tuple[Lever, ...]:
        """The length, and jit."""
        return tuple(lever for lever, has in ((Lever.LENGTH, self.length > 1), (Lever.JIT, self.jit)) if has)

    def simplified(self, small: frozenset[Lever]) -> Scanned:
        """Of the first element alone, without jit."""
        call = self.call
        if Lever.LENGTH in small and self.length:
            first = tree_util.tree_map(lambda leaf: leaf[:1], call.xs)
            call = replace(call, xs=first, length=None if call.length is None else 1)
        return replace(self, call=call, jit=self.jit and Lever.JIT not in small)

    def prepare(self) -> None:
        """Nothing is built for a scan."""

    # --- running ----------------------------------------------------------------------------------------------------

    def stages(self, path: Path, log: Log) -> Iterator[tuple[Stage, Trees]]:
        """Run it."""
        with surroundings(path, self.jit):
            call = self._of(path)
            yield Stage.DATA, {INIT: call.init, XS: self._valid(path, self._visited(call.xs))}
            log.at = Stage.FORWARD
            yield Stage.FORWARD, self._forward(path, call)
            if self.differentiate:
                log.at = Stage.GRADIENTS
                loss, grad_init, grad_xs = self._gradients(path, call)
                yield Stage.LOSS, {LOSS: loss}
                yield Stage.GRADIENTS, {GRAD_INIT: grad_init, GRAD_XS: self._valid(path, grad_xs)}

    def _of(self, path: Path) -> ScanCall:
        """The call with its data on the host (a loop cuts them there), as this path takes them."""
        call = replace(self.call, xs=tree_util.tree_map(_cut_on_host, self.call.xs))
        if path is Path.FLOAT64:
            return replace(call, init=wide_tree(call.init), xs=wide_tree(call.xs))
        if path is Path.PADDED:
            more = padded_length(self.length) - self.length

            def pad(leaf: Any) -> Any:
                return np.concatenate([leaf, np.zeros((more, *leaf.shape[1:]), leaf.dtype)])

            length = None if call.length is None else self.length + more
            return replace(call, xs=tree_util.tree_map(pad, call.xs), length=length)
        if path is Path.UNROLLED:
            return replace(call, unroll=other_unroll(call.unroll, self.length))
        return call

    def _forward(self, path: Path, call: ScanCall) -> Trees:
        length = padded_length(self.length) if path is Path.PADDED else self.length
        if path is Path.VMAP:
            final, carries, ys = self._mapped(call)
        elif path is Path.JIT:
            final, carries, ys = jax.jit(lambda init, xs: _walked(call, init, xs, length))(call.init, call.xs)
        else:
            # Without jit a scan is a loop too.
            init = self._start(call.init) if path is Path.LOOP or not self.jit else call.init
            final, carries, ys = _walked(call, init, call.xs, length, loop=path is Path.LOOP)
        return {
            CARRY: self._valid(path, self._visited(stack(carries))),
            YS: self._valid(path, self._visited(stack(ys))),
            FINAL: final,
        }

    def _start(self, init: Any) -> Any:
        """Init as arrays of the dtypes that the scan promotes it to: a Python float in a loop would have 64 bits."""
        call = self.call
        kinds: Any = {"length": call.length, "reverse": bool(call.reverse)}
        promoted = jax.eval_shape(lambda i, x: lax.scan(call.body, i, x, **kinds)[0], init, call.xs)

        def one(leaf: Any, want: Any) -> Any:
            array = jax.device_put(leaf) if isinstance(leaf, np.ndarray | np.generic) else jnp.asarray(leaf)
            return array if is_key(want.dtype) or array.dtype == want.dtype else array.astype(want.dtype)

        with np.errstate(over="ignore"):
            return tree_util.tree_map(one, init, promoted)

    def _visited(self, tree: Any) -> Any:
        return tree_util.tree_map(lambda leaf: leaf[::-1], tree) if self.call.reverse else tree

    def _valid(self, path: Path, tree: Any) -> Any:
        """Without what was padded: in visiting order it comes last, or first where the scan runs from the end."""
        if path is not Path.PADDED:
            return tree
        n = self.length
        return tree_util.tree_map(lambda leaf: leaf[leaf.shape[0] - n :] if self.call.reverse else leaf[:n], tree)

    # --- gradients --------------------------------------------------------------------------------------------------

    def _gradients(self, path: Path, call: ScanCall) -> tuple[Any, Any, Any]:
        init = self._start(call.init)
        if path is Path.FLOAT64:
            init = call.init
        length = padded_length(self.length) if path is Path.PADDED else self.length
        leaves, tree = tree_util.tree_flatten((init, call.xs))
        smooth = [i for i, leaf in enumerate(leaves) if _is_float(leaf)]

        def loss(floats: list[Any]) -> Any:
            given = list(leaves)
            for i, leaf in zip(smooth, floats, strict=True):
                given[i] = leaf
            start, xs = tree_util.tree_unflatten(tree, given)
            final, _, ys = _walked(call, start, xs, length, loop=path is Path.LOOP)
            made = tree_util.tree_leaves((final, self._valid(path, self._visited(stack(ys)))))
            return sum((jnp.sum(leaf) for leaf in made if _is_float(leaf)), jnp.zeros(()))

        both = jax.value_and_grad(loss)
        value, found = (jax.jit(both) if path is Path.JIT else both)([jnp.asarray(leaves[i]) for i in smooth])
        filled: list[Any] = [None] * len(leaves)
        for i, grad in zip(smooth, found, strict=True):
            filled[i] = grad
        grad_init, grad_xs = tree_util.tree_unflatten(tree, filled)
        return value, grad_init, self._visited(grad_xs)

    # --- vmap and padding -------------------------------------------------------------------------------------------

    @property
    def _batch_axis(self) -> int | None:
        """The axis of xs that was said to be the batch; None where nothing was said, or several leaves are scanned."""
        letters = self.call.axes.get("xs", "")
        return letters.index("B") if "B" in letters[:2] and hasattr(self.call.xs, "ndim") else None

    @property
    def _can_pad(self) -> bool:
        leaves = tree_util.tree_leaves(self.call.xs)
        return bool(leaves) and all(hasattr(leaf, "ndim") and not is_key(jax.typeof(leaf).dtype) for leaf in leaves)

    def _mapped(self, call: ScanCall) -> tuple[Any, Any, Any]:
        """The scan of each example by itself, mapped; every example keeps an axis of one for its batch."""
        axis, xs = self._batch_axis, np.asarray(call.xs)
        if axis is None:
            raise ValueError(NO_BATCH)
        batch = xs.shape[axis]
        init, tree = tree_util.tree_flatten(self._start(call.init))
        own = [0 if leaf.ndim and leaf.shape[0] == batch else None for leaf in init]

        def one(parts: Any, x: Any) -> Any:
            start = [part if a is None else part[None] for part, a in zip(parts, own, strict=True)]
            x = jnp.expand_dims(x, axis)
            return _walked(call, tree_util.tree_unflatten(tree, start), x, x.shape[0])

        whole = jax.eval_shape(lambda i, x: _walked(call, i, x, self.length), tree_util.tree_unflatten(tree, init), xs)
        made = jax.vmap(one, in_axes=(own, axis))(init, jnp.asarray(xs))
        out: tuple[Any, Any, Any] = tree_util.tree_map(partial(_joined, batch), whole, made)
        return out


def _walked(call: ScanCall, init: Any, xs: Any, length: int, *, loop: bool = False) -> tuple[Any, Any, Any]:
    return walk(call.body, init, xs, length=length, loop=loop, unroll=call.unroll, reverse=bool(call.reverse))


def _cut_on_host(leaf: Any) -> Any:
    return leaf if is_key(jax.typeof(leaf).dtype) else to_host(leaf)


def _is_float(leaf: Any) -> bool:
    dtype = jax.typeof(leaf).dtype
    return not is_key(dtype) and bool(jnp.issubdtype(dtype, jnp.floating))


def _joined(batch: int, whole: Any, made: Any) -> Any:
    """The results of the examples, (B, …, 1, …), side by side as the whole has them.

    What the step shares between examples (a count) comes out B times alike, and is said once. What is neither is left
    as it is: the step mixes the examples, and the shapes say so.
    """
    for axis in range(len(whole.shape)):
        if whole.shape[axis] == batch and made.shape[1:] == (*whole.shape[:axis], 1, *whole.shape[axis + 1 :]):
            return jnp.moveaxis(jnp.squeeze(made, axis + 1), 0, axis)
    same = made.shape[1:] == whole.shape and bool((np.asarray(made) == np.asarray(made[:1])).all())
    return made[0] if same else made
