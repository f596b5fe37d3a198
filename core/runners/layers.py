"""Recurrent layers as a learner would build them: their cells, the parameters of these, and the layer of Flax itself.

A cell of a size never seen before is dear: the constructor of Flax runs its initialisers one by one, and each compiles
a program for each shape (some 350 ms). So the constructor is given initialisers that give the same numbers to the last
bit and compile next to nothing. And the parameters of small seeds are kept, a handful of cells, for whoever asks next:
building an LSTM cell takes as long as scanning it. A seed, two sizes and a name are all they are made from, and they
are the same for everybody.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import tree_util

from core.base.limits import LIMITS
from core.contract.subject import SequenceTrial
from core.runners.cache import on_clear
from core.runners.cell_formulas import KINDS, CellKind, GateWeights, gate_weights
from core.runners.initial import kernel, recurrent_kernel, zeros
from core.runners.recipe import Recipe, learn
from core.runners.room import keep_room

type Array = np.ndarray[Any, Any]

#: Names of the changes in `SequenceTrial.weights`.
FORGET_BIAS: Final = "forget_bias"
RECURRENT_SCALE: Final = "recurrent_scale"
#: Of one thread: both of a bidirectional layer, and those of the run that it is compared with.
LAST_CELLS: Final = 4


@dataclass(frozen=True, slots=True, eq=False)
class CellParts:
    """A cell taken apart: what a program is made from, and what it is given.

    Attributes:
        kind: which cell.
        graph, tree: its structure: `nnx.merge(graph, tree_util.tree_unflatten(tree, leaves))` is the cell.
        leaves: its parameters on the device, never written to.
        paths: of each leaf, ("hi", "kernel").
        size: F and H.
    """

    kind: CellKind
    graph: Any
    tree: Any
    leaves: tuple[Any, ...]
    paths: tuple[tuple[str, ...], ...]
    size: tuple[int, int]

    def cell(self, leaves: tuple[Any, ...] | None = None) -> Any:
        """A cell of its own, with these parameters or with others (tracers, in a program)."""
        return nnx.merge(self.graph, tree_util.tree_unflatten(self.tree, self.leaves if leaves is None else leaves))


def built(kind: str, in_features: int, hidden_features: int, seed: int) -> Any:
    """A fresh cell: ``nnx.<kind>(in_features, hidden_features, rngs=nnx.Rngs(seed))``, the same to the last bit.

    Raises:
        KeyError: there is no such kind.
        whatever Flax raises for these sizes or this seed.
    """
    return parts_of_cell(kind, in_features, hidden_features, seed).cell()


def parts_of_cell(kind: str, in_features: int, hidden_features: int, seed: int) -> CellParts:
    """The same cell, taken apart. Raises what `built` raises."""
    key = (kind, in_features, hidden_features, seed)
    known = all(type(part) is int for part in key[1:]) and 0 <= seed < LIMITS["kept_seed"].value
    if not known:
        return _of_this_thread(key)
    found = _kept.get(key)
    if found is None:
        _kept.put(key, found := _take_apart(*key))
    return found


class _Last(threading.local):
    """The last few cells of this thread alone: a page asks for its own three times, and nobody else can meet a seed here."""

    def __init__(self) -> None:
        self.cells: dict[tuple[Any, ...], CellParts] = {}
        self.weights: list[tuple[CellParts, dict[str, GateWeights]]] = []

    def clear(self) -> None:
        """Of this thread."""
        self.cells.clear()
        self.weights.clear()


_last = _Last()
on_clear(lambda: _last.clear())


def _of_this_thread(key: tuple[Any, ...]) -> CellParts:
    if not all(type(part) in (int, str) for part in key):
        return _take_apart(*key)
    cells = _last.cells
    if key not in cells:
        made = _take_apart(*key)
        while len(cells) >= LAST_CELLS:
            cells.pop(next(iter(cells)))
        cells[key] = made
    return cells[key]


def _take_apart(kind: str, in_features: Any, hidden_features: Any, seed: Any) -> CellParts:
    keep_room()
    plain = all(type(part) is int for part in (in_features, hidden_features, seed))
    recipe = _recipe(kind, in_features, hidden_features) if plain and jax.config.jax_threefry_partitionable else None
    if recipe is not None:
        size = (in_features, hidden_features)
        return CellParts(KINDS[kind], recipe.graph, recipe.tree, recipe.leaves(seed), recipe.paths, size)
    cell = KINDS[kind].cell(
        in_features,
        hidden_features,
        rngs=nnx.Rngs(seed),
        kernel_init=kernel,
        recurrent_kernel_init=recurrent_kernel,
        bias_init=zeros,
    )
    graph, state = nnx.split(cell)
    flat, tree = tree_util.tree_flatten(state)
    named, _ = tree_util.tree_flatten_with_path(nnx.to_pure_dict(state))
    paths = tuple(tuple(str(k.key) for k in path) for path, _ in named)
    return CellParts(KINDS[kind], graph, tree, tuple(flat), paths, (int(in_features), int(hidden_features)))


#: By kind and size; the sizes are somebody's, and the same for everybody.
_recipes: OrderedDict[tuple[str, int, int], Recipe | None] = OrderedDict()
_learning = threading.Lock()
on_clear(_recipes.clear)


def _recipe(kind: str, in_features: int, hidden_features: int) -> Recipe | None:
    key = (kind, in_features, hidden_features)
    with _learning:
        if key in _recipes:
            _recipes.move_to_end(key)
            return _recipes[key]
    made = learn(*key)
    with _learning:
        _recipes[key] = made
        while len(_recipes) > LIMITS["kept_cells"].value:
            _recipes.popitem(last=False)
    return made


def rngs_after(kind: str, seed: int) -> nnx.Rngs:
    """``rngs`` as a cell leaves it that was built with ``rngs = nnx.Rngs(seed)``: what else is built goes on there.

    A second ``nnx.Rngs(seed)`` would give its first kernel the very key of the cell's first one (R401).

    Raises:
        KeyError: there is no such kind.
        whatever Flax raises for this seed.
    """
    rngs = nnx.Rngs(seed)
    count = rngs["default"].count
    count[...] = jnp.asarray(_requests(kind), count[...].dtype)
    return rngs


@functools.cache
def _requests(kind: str) -> int:
    """How many keys a cell of this kind asks for while it is built, whatever its sizes."""
    rngs = nnx.Rngs(0)
    KINDS[kind].cell(1, 1, rngs=rngs)
    return int(rngs["default"].count[...])


class _Kept:
    """The cells that were asked for last, up to the limit ``kept_cells``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cells: OrderedDict[tuple[Any, ...], CellParts] = OrderedDict()

    def get(self, key: tuple[Any, ...]) -> CellParts | None:
        with self._lock:
            if key in self._cells:
                self._cells.move_to_end(key)
            return self._cells.get(key)

    def put(self, key: tuple[Any, ...], parts: CellParts) -> None:
        with self._lock:
            self._cells[key] = parts
            while len(self._cells) > LIMITS["kept_cells"].value:
                self._cells.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._cells.clear()


_kept = _Kept()
on_clear(_kept.clear)


# --- of a trial -----------------------------------------------------------------------------------------------------


def seeds_of(trial: SequenceTrial) -> tuple[int, ...]:
    """Of the cell, or of the forward and the backward one."""
    return (trial.seed, trial.seed + 1) if trial.bidirectional else (trial.seed,)


def cells_of(trial: SequenceTrial) -> tuple[CellParts, ...]:
    """The cell of each direction: the seed's, or with the parameters that are given, and the trial's changes made.

    Raises:
        KeyError: no such kind of cell, or no such change.
        whatever Flax raises for these sizes.
    """
    features, hidden, seeds = trial.inputs.shape[-1], trial.hidden_features, seeds_of(trial)
    given = trial.given if trial.given is not None and len(trial.given) == len(seeds) else (None,) * len(seeds)
    built_parts = [parts_of_cell(trial.kind, features, hidden, seed) for seed in seeds]
    return tuple(_changed(_with(p, own), trial.weights) for p, own in zip(built_parts, given, strict=True))


def parameters(trial: SequenceTrial) -> list[dict[str, GateWeights]]:
    """The weights by gate of each direction, NumPy float32, with the trial's changes made. Raises as `cells_of`."""
    return [weights_of(parts) for parts in cells_of(trial)]


def weights_of(parts: CellParts) -> dict[str, GateWeights]:
    """The weights of a cell by gate, on the host; not to be written to."""
    kept = next((weights for one, weights in _last.weights if one is parts), None)
    if kept is None:
        kept = gate_weights(parts.kind, parts.cell(tuple(np.asarray(leaf) for leaf in parts.leaves)))
        _last.weights = [*_last.weights[1 - LAST_CELLS :], (parts, kept)]
    return kept


def _with(parts: CellParts, given: Mapping[str, Any] | None) -> CellParts:
    """The cell with these parameters for its own; itself where they are none, or not of its shapes and dtypes."""
    if given is None:
        return parts
    leaves = [given.get(".".join(path)) for path in parts.paths]
    for new, own in zip(leaves, parts.leaves, strict=True):
        if new is None or new.shape != own.shape or new.dtype != own.dtype:
            return parts
    return replace(parts, leaves=tuple(jax.device_put(leaf) for leaf in leaves))


def _changed(parts: CellParts, changes: Mapping[str, float]) -> CellParts:
    """With `forget_bias` added to b_f (a cell without a forget gate has none) and recurrent kernels scaled."""
    unknown = set(changes) - {FORGET_BIAS, RECURRENT_SCALE}
    if unknown:
        raise KeyError(*sorted(unknown))
    added = np.float32(changes.get(FORGET_BIAS, 0.0))
    scale = np.float32(changes.get(RECURRENT_SCALE, 1.0))
    if added == 0 and scale == 1:
        return parts
    kind, leaves = parts.kind, dict(zip(parts.paths, parts.leaves, strict=True))
    if scale != 1:
        for name in {gate.layers[1] for gate in kind.gates}:
            leaves[name, "kernel"] = jax.device_put(np.asarray(leaves[name, "kernel"]) * scale)
    for gate in kind.gates:
        if gate.name == "f" and added != 0:
            path = (gate.layers[1], "bias")
            bias = np.array(leaves[path])
            width = len(bias) // kind.blocks
            bias[gate.column * width : (gate.column + 1) * width] += added
            leaves[path] = jax.device_put(bias)
    return replace(parts, leaves=tuple(leaves[path] for path in parts.paths))


def layer_of(trial: SequenceTrial, leaves: tuple[tuple[Any, ...], ...] | None = None) -> Any:
    """The layer itself: ``nnx.RNN``, or ``nnx.Bidirectional`` of two of them. It knows of no mask.

    Args:
        trial: what it is a layer of.
        leaves: for each cell the parameters to use for its own (tracers, in a program).

    Raises:
        as `cells_of`.
    """
    parts = cells_of(trial)
    cells = [one.cell(own) for one, own in zip(parts, leaves or (None,) * len(parts), strict=True)]
    common = {"time_major": trial.time_major, "unroll": trial.unroll}
    if trial.bidirectional:
        forward, backward = (nnx.RNN(cell, **common) for cell in cells)
        return nnx.Bidirectional(forward, backward, time_major=trial.time_major, return_carry=trial.return_carry)
    return nnx.RNN(
        cells[0], **common, return_carry=trial.return_carry, reverse=trial.reverse, keep_order=trial.keep_order
    )
