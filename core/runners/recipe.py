"""How the parameters of a cell are drawn, learnt once from its constructor: which key, which initialiser, which shape, where.

Building a cell takes some 10 ms, nearly all of it bookkeeping of Flax's, and the same for every seed. So one cell of a
kind and size is built with initialisers that write down what they are asked for. For any other seed the same keys are
made in one program and handed to the same initialisers: the same numbers to the last bit (tested against the
constructor), in a quarter of the time. What cannot be learnt (a key that is none of the stream's) is built as before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import jax
import numpy as np
from flax import nnx
from jax import tree_util

from core.runners.cell_formulas import KINDS
from core.runners.initial import drawn_in_lengths, kernel, kernels, recurrent_kernel, recurrent_kernels, zeros

type Initialiser = Callable[..., Any]

#: Keys of the stream that are looked through for those that a constructor asked for; a cell asks for 16.
_MOST: Final = 64


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """Of a kind and size.

    Attributes:
        graph, tree: structure of the cell, as in `CellParts`.
        paths: of its leaves.
        draws: for each leaf its initialiser, which key of the stream it gets, and its shape.
    """

    graph: Any
    tree: Any
    paths: tuple[tuple[str, ...], ...]
    draws: tuple[tuple[Initialiser, int, tuple[int, ...]], ...]

    def leaves(self, seed: int) -> tuple[Any, ...]:
        """The parameters that ``rngs=nnx.Rngs(seed)`` gives, on the device.

        Raises:
            whatever `jax.random.key` raises for this seed.
        """
        start = jax.random.key(seed)
        leaves: list[Any] = [None] * len(self.draws)
        for draw, shape in dict.fromkeys((draw, shape) for draw, _, shape in self.draws):
            places = [i for i, (other, _, size) in enumerate(self.draws) if (other, size) == (draw, shape)]
            requests = tuple(self.draws[i][1] for i in places)
            for place, leaf in zip(places, _drawn(draw, start, requests, shape), strict=True):
                leaves[place] = leaf
        return tuple(leaves)


def _drawn(
    draw: Initialiser, start: Any, requests: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[Any, ...] | list[Any]:
    """What an initialiser draws for these requests to a stream."""
    if draw is zeros:
        return [draw(None, shape) for _ in requests]
    together = {kernel: kernels, recurrent_kernel: recurrent_kernels}.get(draw)
    if together is not None and drawn_in_lengths(shape, np.float32):
        return together(start, requests, (shape[0], shape[1]))
    keys = _stream(1 + max(requests))(start)
    return [draw(keys[at], shape) for at in requests]


def learn(kind: str, in_features: int, hidden_features: int) -> Recipe | None:
    """The recipe of a kind and size; None where it cannot be learnt.

    Raises:
        KeyError: there is no such kind.
        whatever Flax raises for these sizes.
    """
    asked: list[tuple[Initialiser, Any, tuple[int, ...]]] = []

    def noting(draw: Initialiser) -> Initialiser:
        def note(key: Any, shape: tuple[int, ...], dtype: Any = np.float32, **_: Any) -> Any:
            if np.dtype(dtype) != np.float32 or not all(type(size) is int and size > 0 for size in shape):
                return draw(key, shape, dtype)  # what it raises, it raises
            asked.append((draw, key, shape))
            return jax.device_put(np.full(shape, len(asked) - 1, np.float32))

        return note

    cell = KINDS[kind].cell(
        in_features,
        hidden_features,
        rngs=nnx.Rngs(0),
        kernel_init=noting(kernel),
        recurrent_kernel_init=noting(recurrent_kernel),
        bias_init=noting(zeros),
    )
    graph, state = nnx.split(cell)
    flat, tree = tree_util.tree_flatten(state)
    named, _ = tree_util.tree_flatten_with_path(nnx.to_pure_dict(state))
    paths = tuple(tuple(str(k.key) for k in path) for path, _ in named)
    stream = [tuple(data) for data in np.asarray(jax.random.key_data(_stream(_MOST)(jax.random.key(0)))).tolist()]
    draws = []
    for leaf in flat:
        number = np.unique(np.asarray(leaf))
        # Each leaf holds the number of the request that it came from: else it was made of more than one, or changed.
        if number.size != 1 or not 0 <= number[0] < len(asked) or asked[int(number[0])][2] != leaf.shape:
            return None
        draw, key, shape = asked[int(number[0])]
        data = tuple(np.asarray(jax.random.key_data(key)).tolist())
        if data not in stream:
            return None
        draws.append((draw, stream.index(data), shape))
    if len(draws) != len(asked):
        return None
    return Recipe(graph, tree, paths, tuple(draws))


def _stream(count: int) -> Callable[[Any], Any]:
    """The first keys that `nnx.RngStream` gives: each the stream's own with its number folded in."""

    def program(start: Any) -> Any:
        return jax.vmap(jax.random.fold_in, (None, 0))(start, np.arange(count, dtype=np.uint32))

    return program
