"""The model whose paths are compared: recurrent layers, and above them what trains them in `core.runners.training`.

Dropout on what each cell reads, a readout of the last hidden state, a mean squared error, one update by optax: the pure
functions of `core.runners.training_model`, for more than one layer too. Every key comes from a named stream: one for a
layer, split into T. What is dropped is drawn before the layers run, in 32 bits, and rides along as xs: a mapped example
has its own rows of it, and 64 bits do not draw other numbers (``bernoulli`` with a float64 probability does).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import tree_util

from core.base.sequences import Slip
from core.contract.subject import SequenceTrial
from core.runners.cache import PROGRAMS
from core.runners.cell_formulas import KINDS
from core.runners.initial import kernel, zeros
from core.runners.layers import cells_of, rngs_after
from core.runners.parting import Log
from core.runners.parting_walk import at, stack, walk
from core.runners.sequence import carry_of, hold
from core.runners.training_model import OPTIMIZERS, STREAM, update

type Array = np.ndarray[Any, Any]

TRAIN, EVAL, DROPS, KEEPS = "train", "eval", "drops", "keeps all"
MODEL, DROPOUT, READOUT, CELL = "model", "dropout", "readout", "cell"
FORWARD, BACKWARD = "forward", "backward"


@dataclass(frozen=True, eq=False)
class Training:
    """What stands above the layers when they are trained.

    Attributes:
        targets: (B, O).
        rate: of dropout, 0 ≤ rate < 1.
        train: the mode: dropout drops in training alone.
        stream: name of the stream that dropout draws from.
        stream_seed: of it; None where no rngs were given: a model that is to drop raises then, as Flax's own layer.
        optimizer, learning_rate: of the one update, a name in `core.runners.training_model.OPTIMIZERS`.
        ask_in_step: a mistake that is made on purpose: the stream is asked inside the step. A scan asks once, when it is
            traced, and uses that one mask at every step; a loop asks T times (R401).
    """

    targets: Array
    rate: float = 0.0
    train: bool = True
    stream: str = STREAM
    stream_seed: int | None = 0
    optimizer: str = "sgd"
    learning_rate: float = 0.1
    ask_in_step: bool = False

    @property
    def drops(self) -> bool:
        """Whether anything is dropped."""
        return self.train and self.rate > 0


class Streams:
    """Named streams of keys: the n-th key is ``fold_in(key(seed), n)``, as `nnx.RngStream` derives it.

    Not Flax's own, which must not be asked inside a scan: here that is a mistake which can be made, and seen.
    """

    def __init__(self, seeds: Mapping[str, int], log: Log | None) -> None:
        self._seeds, self._counts, self._log = seeds, dict.fromkeys(seeds, 0), log

    def ask(self, name: str) -> Any:
        """The next key of a stream."""
        count = self._counts[name]
        self._counts[name] += 1
        if self._log is not None:
            self._log.asked.append(name)
        return jax.random.fold_in(jax.random.key(self._seeds[name]), count)


@dataclass(frozen=True, slots=True)
class Way:
    """One direction of one layer: its name in paths, the name of its cell, and whether it reads backwards."""

    name: str
    cell: str
    layer: int
    backward: bool


def ways(trial: SequenceTrial, layers: int) -> tuple[Way, ...]:
    """All of them, in the order in which they run."""
    out = []
    for layer in range(layers):
        prefix = f"layer {layer + 1} " if layers > 1 else ""
        cell = f"cell_{layer}" if layers > 1 else CELL
        if trial.bidirectional:
            out.append(Way(f"{prefix}{FORWARD} ", f"{FORWARD}_{layer}" if layers > 1 else FORWARD, layer, False))
            out.append(Way(f"{prefix}{BACKWARD} ", f"{BACKWARD}_{layer}" if layers > 1 else BACKWARD, layer, True))
        else:
            out.append(Way(prefix, cell, layer, trial.reverse))
    return tuple(out)


@dataclass(frozen=True, eq=False)
class Model:
    """The built modules, split: `graphs` by name, and their `state`, by name an `nnx.State`."""

    graphs: Mapping[str, Any]
    state: dict[str, Any]


def built(trial: SequenceTrial, layers: int, training: Training | None) -> Model:
    """Build the cells (seed, + 1 for a backward one, + 2 for each further layer) and the readout (where the first cell ended).

    Raises:
        whatever Flax raises on these sizes.
    """
    hidden = trial.hidden_features
    both = 2 if trial.bidirectional else 1
    modules: dict[str, Any] = {}
    for layer in range(layers):
        width = int(trial.inputs.shape[-1]) if layer == 0 else both * hidden
        stand_in = replace(trial, inputs=np.zeros((1, 1, width), np.float32), seed=trial.seed + 2 * layer)
        names = [way.cell for way in ways(trial, layers) if way.layer == layer]
        modules |= {name: parts.cell() for name, parts in zip(names, cells_of(stand_in), strict=True)}
    if training is not None:
        outputs = int(training.targets.shape[-1])
        rngs = rngs_after(trial.kind, trial.seed)
        modules[READOUT] = nnx.Linear(both * hidden, outputs, kernel_init=kernel, bias_init=zeros, rngs=rngs)
    split = {name: nnx.split(module) for name, module in modules.items()}
    return Model(
        {name: graph for name, (graph, _) in split.items()}, {name: state for name, (_, state) in split.items()}
    )


@dataclass(frozen=True, eq=False)
class Runner:
    """The model run over data by one driver.

    Attributes:
        trial, layers, training: what is run.
        graphs: of `Model`.
        valid: T before anything was padded.
        loop: a Python loop; otherwise a scan with `unroll`.
        log: where the first run writes; None for silence.
    """

    trial: SequenceTrial
    layers: int
    training: Training | None
    graphs: Mapping[str, Any]
    valid: int
    loop: bool = False
    unroll: Any = 1
    log: Log | None = None

    def streams(self) -> Streams:
        """Fresh ones."""
        training = self.training
        given = training is not None and training.stream_seed is not None
        return Streams({training.stream: training.stream_seed} if given else {}, self.log)  # type: ignore[union-attr,dict-item]

    def keys(self, steps: int) -> tuple[Any, ...]:
        """For each layer (steps,) keys; none where nothing is dropped, or where the step asks for itself.

        Raises:
            ValueError: something is to be dropped, and no rngs were given: what `nnx.Dropout` raises.
        """
        training = self.training
        if training is None or not training.drops:
            return ()
        if training.stream_seed is None:
            nnx.Dropout(training.rate, rng_collection=training.stream)(np.zeros(1, np.float32))
        if training.ask_in_step:
            return ()
        streams = self.streams()
        return tuple(jax.random.split(streams.ask(training.stream), steps) for _ in range(self.layers))

    def kept(self, keys: tuple[Any, ...], batch: int) -> tuple[Any, ...]:
        """For each layer (steps, batch, F) bool: the numbers that are not dropped, as `training_model.dropped` draws."""
        trial, training = self.trial, self.training
        both = 2 if trial.bidirectional else 1
        out = []
        for layer, of_layer in enumerate(keys):
            width = int(trial.inputs.shape[-1]) if layer == 0 else both * trial.hidden_features
            keep = 1.0 - np.float32(0 if training is None else training.rate)
            draw = partial(_drawn, (batch, width))
            program, _ = PROGRAMS.get(("parting kept", batch, width), draw, (of_layer, keep))
            out.append(program(of_layer, keep))
        return tuple(out)

    def forward(self, state: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
        """All layers. By root: `carry` of each way (visiting order), `final carry` of each, `ys` of the last layer.

        Args:
            state: by name an `nnx.State`.
            data: ``xs`` (T, B, F); where there are any ``lengths`` (B,), ``mask`` (T, B),
                ``kept``; and ``init``, the parts of each direction.
        """
        streams = self.streams()
        xs: Any = data["xs"]
        out: dict[str, Any] = {}
        merged = {name: self._merged(name, state) for name in self.graphs}
        if self.log is not None:
            self._note(merged)
        for layer in range(self.layers):
            sides = []
            for way in (w for w in ways(self.trial, self.layers) if w.layer == layer):
                final, carries, ys = self._way(way, merged[way.cell], xs, data, streams)
                out[f"{way.name}carry"], out[f"{way.name}final carry"] = carries, final
                sides.append(ys)
            if len(sides) == 1:
                xs = sides[0]
            elif isinstance(sides[0], list):
                xs = [jnp.concatenate(pair, axis=-1) for pair in zip(*sides, strict=True)]
            else:
                xs = jnp.concatenate(sides, axis=-1)
        out["ys"] = xs
        return out

    def trained(self, state: Mapping[str, Any], data: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The loss, a number, and what `forward` gives: one program does both, and its gradient gives both."""
        out = self.forward(state, data)
        kind = KINDS[self.trial.kind]
        last = [way for way in ways(self.trial, self.layers) if way.layer == self.layers - 1]
        states = [out[f"{way.name}final carry"] for way in last]
        hidden = jnp.concatenate([final[-1] if kind.pair else final for final in states], axis=-1)
        prediction = self._merged(READOUT, state)(hidden)
        return jnp.mean((prediction - data["targets"]) ** 2), out

    def _merged(self, name: str, state: Mapping[str, Any]) -> Any:
        """A module with these parameters. Where 64 bits are on, none is told to compute in 32: its arguments decide."""
        module = nnx.merge(self.graphs[name], state[name])
        if jax.config.jax_enable_x64:
            for _, each in nnx.iter_modules(module):
                part: Any = each
                if getattr(part, "dtype", None) in (jnp.float32, np.float32):
                    part.dtype = None
        return module

    def _way(self, way: Way, cell: Any, xs: Any, data: Mapping[str, Any], streams: Streams) -> tuple[Any, Any, Any]:
        kind, hidden = KINDS[self.trial.kind], self.trial.hidden_features
        steps = len(xs)
        batch, dtype = (xs[0].shape[0], xs[0].dtype) if isinstance(xs, list) else (xs.shape[1], xs.dtype)
        lengths = data.get("lengths")
        side = int(way.backward and self.trial.bidirectional)
        nothing = tuple(jnp.zeros((batch, hidden), dtype) for _ in kind.parts)
        parts = data["init"][side] if way.layer == 0 else nothing
        kept = data["kept"][way.layer] if data.get("kept") else None
        rows = {name: v for name, v in (("x", xs), ("mask", data.get("mask")), ("kept", kept)) if v is not None}
        order = _order(lengths, self.valid, steps, batch) if way.backward else None
        if order is not None:
            rows = {name: _taken(value, order) for name, value in rows.items()}
        each: Any = rows
        if self.loop and steps:
            each = [{name: v[t] if isinstance(v, list) else at(v, t) for name, v in rows.items()} for t in range(steps)]
        final, carries, ys = walk(
            self._step(cell, streams), carry_of(kind, parts), each, length=steps, loop=self.loop, unroll=self.unroll
        )
        if lengths is not None:
            carries = stack(carries)
            final = tree_util.tree_map(lambda part: jnp.asarray(part)[lengths - 1, jnp.arange(batch)], carries)
        if order is not None and (self.trial.bidirectional or self.trial.keep_order or way.layer < self.layers - 1):
            ys = _taken(ys, order)
        return final, carries, ys

    def _step(self, cell: Any, streams: Streams) -> Callable[[Any, Any], Any]:
        training, slips = self.training, self.trial.slips

        def step(carry: Any, row: Mapping[str, Any]) -> tuple[Any, Any]:
            x = row["x"]
            if training is not None and training.drops:
                keep = 1.0 - np.float32(training.rate)
                asks = training.ask_in_step
                drawn = jax.random.bernoulli(streams.ask(training.stream), keep, x.shape) if asks else row["kept"]
                x = jnp.where(drawn, x / keep, jnp.zeros_like(x))
            new, y = cell(carry, x)
            if "mask" in row:
                new = hold(carry, new, row["mask"], Slip.FEATURE_MASK in slips)
            return new, y

        return step

    def _note(self, merged: Mapping[str, Any]) -> None:
        log, training = self.log, self.training
        if log is None:
            return
        if training is not None:
            log.modes = {MODEL: TRAIN if training.train else EVAL, DROPOUT: DROPS if training.drops else KEEPS}
        for name, module in merged.items():
            for path, variable in nnx.to_flat_state(nnx.state(module)):
                log.types[".".join((name, *map(str, path)))] = type(variable).__name__


def _drawn(shape: tuple[int, int], keys: Any, keep: Any) -> Any:
    """(steps, batch, F) bool, each step by its own key."""
    return jax.vmap(lambda key: jax.random.bernoulli(key, keep, shape))(keys)


def _order(lengths: Any, valid: int, steps: int, batch: int) -> Any:
    """(T, B): what is read at each position when it is read backwards, as `flax.nnx.RNN` flips a sequence.

    With lengths each example has its own: its valid steps from the last to the first, then its padding. Steps beyond
    `valid` were added to it and stay at the end. Without lengths nobody knows of padding: it is read first.
    """
    if lengths is None:
        return jnp.broadcast_to(jnp.arange(steps)[::-1, None], (steps, batch))
    flipped = (jnp.arange(valid)[::-1, None] + lengths[None]) % valid
    return jnp.concatenate([flipped, jnp.broadcast_to(jnp.arange(valid, steps)[:, None], (steps - valid, batch))])


def _taken(rows: Any, order: Any) -> Any:
    """(T, B, …) in another order along T, each example by its own."""
    stacked = stack(rows)
    taken = jnp.asarray(stacked)[order, jnp.arange(order.shape[1])[None]]
    return list(taken) if isinstance(rows, list) else taken


def updated(training: Training, state: Any, gradients: Any) -> tuple[Any, Any]:
    """One update by optax: the new parameters and the optimizer's new state."""
    start = OPTIMIZERS[training.optimizer](training.learning_rate).init(state)
    return update(training.optimizer, training.learning_rate, state, gradients, start)
