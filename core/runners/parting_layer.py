"""A recurrent layer over sequences as a computation whose paths are compared, with a model trained on it where asked for.

Padding is done as a data pipeline does it: zeros after the last step, lengths as they were, the mask False there. With
lengths or a mask the valid part and the final carry agree; without either the final carry is that of another sequence,
and a layer that runs from the end reads the padding first.

Mapped over examples, each one is handed over by itself, cut along its *true* batch axis: a layer that takes the batch
for time gives another result then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import tree_util

from core.base.parting import Lever, Path, Stage
from core.base.sequences import Masking
from core.base.text import fill
from core.base.training import TrainingSpec
from core.contract.subject import SequenceTrial
from core.runners.parting import REFERENCE, Log, Trees
from core.runners.parting_model import Model, Runner, Training, built, updated, ways
from core.runners.parting_walk import (
    ONE_BACKEND,
    other_backend,
    other_unroll,
    padded_length,
    stack,
    surroundings,
    wide_tree,
)
from core.runners.sequence import starts_of
from core.runners.sequence_read import canonical, lengths_given, masking_of

type Array = np.ndarray[Any, Any]

XS, YS, LOSS, GRAD, PARAMS, OPTIMIZER, WEIGHTS = "xs", "ys", "loss", "grad", "params", "optimizer", "weights"
ASKED, ORDER, KEYS, KEPT, MODE, STATE = "times asked", "order", "keys", "kept", "mode", "state"
#: Asks of a stream whose names are written out.
NAMED = 32


@dataclass(frozen=True)
class Layered:
    """Layers over a batch of sequences, and what is trained on them.

    Attributes:
        trial: the first layer; further ones read what it gives, with the same settings. Of its `slips` those count
            that change what a layer computes (`core.runners.sequence`).
        layers: how many, 1 or more.
        training: readout, loss, gradients and update; None for the layers alone.
        jit: False runs everything step by step, operation by operation (`jax.disable_jit`).
    """

    trial: SequenceTrial
    layers: int = 1
    training: Training | None = None
    jit: bool = True

    @property
    def steps(self) -> int:
        """T as the layer reads it."""
        return int(self.trial.read.shape[0])

    @cached_property
    def timed(self) -> frozenset[str]:
        """Roots with steps, in visiting order; ys in the order in which the layer returns them."""
        return frozenset((XS, YS, "mask", KEYS, KEPT, *(f"{way.name}carry" for way in ways(self.trial, self.layers))))

    @property
    def backwards(self) -> int:
        """Every step is named by when it is visited."""
        return 0

    @property
    def computed(self) -> frozenset[str]:
        """Cells compute in the wider dtype of parameters (float32) and inputs."""
        return frozenset()

    def reason(self, path: Path) -> str:
        """Why it is left out."""
        if path is Path.BACKEND and not other_backend():
            return fill(ONE_BACKEND, platform=jax.devices()[0].platform)
        return ""

    @classmethod
    def of_training(cls, spec: TrainingSpec) -> Layered:
        """One update as the Gradients page makes it (`core.runners.training.train_once`)."""
        training = Training(
            targets=spec.targets,
            rate=spec.rate,
            train=spec.train,
            stream_seed=spec.dropout_seed,
            optimizer=spec.optimizer,
            learning_rate=spec.learning_rate,
        )
        trial = SequenceTrial(spec.kind, np.asarray(spec.inputs, np.float32), "BTF", spec.hidden_features, spec.seed)
        return cls(trial, training=training)

    # --- simplifying ------------------------------------------------------------------------------------------------

    @property
    def levers(self) -> tuple[Lever, ...]:
        """What is larger than it must be."""
        trial, training = self.trial, self.training
        has = {
            Lever.LENGTH: trial.length > 1,
            Lever.BATCH: trial.batch > 1,
            Lever.FEATURES: trial.inputs.shape[-1] > 1,
            Lever.HIDDEN: trial.hidden_features > 1,
            Lever.LAYERS: self.layers > 1,
            Lever.DROPOUT: training is not None and training.drops,
            Lever.JIT: self.jit,
        }
        return tuple(lever for lever in Lever if has[lever])

    def simplified(self, small: frozenset[Lever]) -> Layered:
        """The first step, example, feature and unit; one layer; nothing dropped; no jit."""
        trial, training = self.trial, self.training
        if Lever.LENGTH in small:
            trial = replace(
                trial,
                inputs=_first(trial.inputs, trial.axes.index("T")),
                lengths=trial.lengths and tuple(_at_most(length, 1) for length in trial.lengths),
                mask=None if trial.mask is None else _first(trial.mask, 1),
            )
        if Lever.BATCH in small:
            trial = replace(
                trial,
                inputs=_first(trial.inputs, trial.axes.index("B")),
                lengths=trial.lengths and trial.lengths[:1],
                mask=None if trial.mask is None else _first(trial.mask, 0),
                init=trial.init and tuple(_first(part, 0) for part in trial.init),
                previous=None if trial.previous is None else _first(trial.previous, trial.axes.index("B")),
            )
            training = None if training is None else replace(training, targets=_first(training.targets, 0))
        if Lever.FEATURES in small:
            previous = None if trial.previous is None else _first(trial.previous, -1)
            trial = replace(trial, inputs=_first(trial.inputs, -1), previous=previous)
        if Lever.HIDDEN in small:
            init = trial.init and tuple(_first(part, -1) for part in trial.init)
            trial = replace(trial, hidden_features=1, init=init)
        if Lever.DROPOUT in small and training is not None:
            training = replace(training, rate=0.0)
        layers = 1 if Lever.LAYERS in small else self.layers
        return Layered(trial, layers, training, self.jit and Lever.JIT not in small)

    # --- running ----------------------------------------------------------------------------------------------------

    def stages(self, path: Path, log: Log) -> Iterator[tuple[Stage, Trees]]:
        """Run it."""
        model, data = self._model, self._data(path)
        runner = self._runner(model, path, log)
        log.at = Stage.KEYS
        keys = runner.keys(len(data["xs"]))
        if keys:
            data["kept"] = runner.kept(keys, data["xs"].shape[1])
        with surroundings(path, self.jit):
            state: dict[str, Any] = model.state
            if path is Path.FLOAT64:
                data, state = wide_tree(data), wide_tree(state)
            yield Stage.DATA, self._shown(data, state)
            log.at = Stage.FORWARD
            if self.training is not None:
                log.at = Stage.GRADIENTS
            loss, out, gradients = self._run(runner, path, state, data)
            if self.training is not None:
                yield Stage.KEYS, self._asked(keys, data, log)
                yield Stage.MODE, {MODE: log.modes}
            yield Stage.STATE, {STATE: log.types}
            yield Stage.FORWARD, out
            if self.training is not None:
                yield Stage.LOSS, {LOSS: loss}
                yield Stage.GRADIENTS, {GRAD: _plain(gradients)}
                log.at = Stage.UPDATE
                update = partial(updated, self.training)
                after, optimizer = (jax.jit(update) if path is Path.JIT else update)(state, gradients)
                yield Stage.UPDATE, {PARAMS: _plain(after), OPTIMIZER: _plain(optimizer)}

    @cached_property
    def _model(self) -> Model:
        return built(self.trial, self.layers, self.training)

    def prepare(self) -> None:
        """Build, draw and update once, for nothing: most of what a first run of new sizes compiles.

        Raises:
            what every path raises then.
        """
        model = self._model
        runner = self._runner(model, REFERENCE, Log())
        runner.kept(runner.keys(self.steps), int(self.trial.read.shape[1]))
        if self.training is not None:
            updated(self.training, model.state, model.state)

    def _runner(self, model: Model, path: Path, log: Log) -> Runner:
        unroll = self.trial.unroll
        return Runner(
            self.trial,
            self.layers,
            self.training,
            model.graphs,
            self.steps,
            loop=path is Path.LOOP,
            unroll=other_unroll(unroll, self.steps) if path is Path.UNROLLED else unroll,
            log=log,
        )

    def _data(self, path: Path) -> dict[str, Any]:
        """What the layer reads, time-first and on the host."""
        trial = self.trial
        data: dict[str, Any] = {"xs": canonical(trial.read), "init": starts_of(trial, int(trial.read.shape[1]))}
        given = lengths_given(trial)
        if given is not None:
            data["lengths"] = np.asarray(jnp.asarray(given))
        if masking_of(trial) is Masking.MASK:
            mask = np.asarray(trial.mask, bool)
            data["mask"] = mask if trial.misread else mask.swapaxes(0, 1)
        if self.training is not None:
            data["targets"] = canonical(self.training.targets)
        if path is Path.PADDED:
            more = padded_length(self.steps) - self.steps
            for name in ("xs", "mask"):
                if name in data:
                    rows = data[name]
                    data[name] = np.concatenate([rows, np.zeros((more, *rows.shape[1:]), rows.dtype)])
        return data

    def _shown(self, data: Mapping[str, Any], state: Mapping[str, Any]) -> Trees:
        """The data of this path, without what was padded."""
        timed = {name: rows[: self.steps] for name, rows in data.items() if name in {"xs", "mask"}}
        init = data["init"] if self.trial.bidirectional else data["init"][0]
        rest = {name: values for name, values in data.items() if name != "kept"}
        return {**rest, **timed, "init": init, WEIGHTS: _plain(state)}

    def _asked(self, keys: tuple[Any, ...], data: Mapping[str, Any], log: Log) -> Trees:
        """How often each stream was asked, in which order, the keys of each layer, and what they keep."""
        times = {name: np.int32(log.asked.count(name)) for name in sorted(set(log.asked))}
        order = ", ".join(log.asked[:NAMED])
        cut = [tuple(rows[: self.steps] for rows in layers) for layers in (keys, data.get("kept", ()))]
        return {ASKED: times, ORDER: order, KEYS: cut[0], KEPT: cut[1]}

    # --- by path ----------------------------------------------------------------------------------------------------

    def _run(self, runner: Runner, path: Path, state: dict[str, Any], data: dict[str, Any]) -> tuple[Any, Trees, Any]:
        """Loss, outputs and gradients; of layers alone the outputs. One program gives all."""
        forward: Any = runner.forward if self.training is None else runner.trained
        if path is Path.VMAP:
            forward = self._mapped(forward)
        run: Any = forward if self.training is None else jax.value_and_grad(forward, has_aux=True)
        made = (jax.jit(run) if path is Path.JIT else run)(state, data)
        (loss, out), gradients = ((None, made), None) if self.training is None else made
        out = {root: tree_util.tree_map(np.asarray, stack(tree)) for root, tree in out.items()}
        if path is Path.VMAP:
            out = {root: tree_util.tree_map(self._joined(root), tree) for root, tree in out.items()}
        return loss, {root: self._valid(root, path, data, tree) for root, tree in out.items()}, gradients

    def _mapped(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """The same, each example by itself; the loss is the mean of theirs."""

        def mapped(state: dict[str, Any], data: dict[str, Any]) -> Any:
            own, axes = self._own(data), self._axes(data)
            made = jax.vmap(lambda one: forward(state, self._one(data, one)), in_axes=(axes,))(own)
            return made if self.training is None else (made[0].mean(), made[1])

        return mapped

    def _valid(self, root: str, path: Path, data: Mapping[str, Any], tree: Any) -> Any:
        """Without the steps that were added."""
        if path is not Path.PADDED or root not in self.timed:
            return tree
        backward = any(way.backward and way.name == root.removesuffix("carry") for way in ways(self.trial, self.layers))
        visited = backward or (root == YS and self.trial.reverse and not self._in_order)
        if visited and "lengths" not in data:  # nobody knows of padding: it is read first
            return tree_util.tree_map(lambda leaf: leaf[leaf.shape[0] - self.steps :], tree)
        return tree_util.tree_map(lambda leaf: leaf[: self.steps], tree)

    @property
    def _in_order(self) -> bool:
        return self.trial.bidirectional or self.trial.keep_order

    # --- example by example -----------------------------------------------------------------------------------------

    @property
    def _batch_axis(self) -> int:
        """Where the true batch stands in what the layer reads."""
        return 0 if self.trial.misread else 1

    def _axes(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Where the examples are in each of what is cut into examples."""
        at = self._batch_axis
        axes = {
            "xs": at,
            "mask": at,
            "kept": at,
            "lengths": 0,
            "targets": 0,
            **({} if self.trial.misread else {"init": 0}),
        }
        return {name: axis for name, axis in axes.items() if name in data}

    def _own(self, data: Mapping[str, Any]) -> dict[str, Any]:
        return {name: tree_util.tree_map(jnp.asarray, data[name]) for name in self._axes(data)}

    def _one(self, data: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
        """The data of one example, with an axis of one for its batch."""
        axes = self._axes(data)
        cut = {
            name: tree_util.tree_map(lambda leaf, at=axes[name]: jnp.expand_dims(leaf, at), tree)
            for name, tree in own.items()
        }
        return {**data, **cut}

    def _joined(self, root: str) -> Any:
        """The results of the examples, (B, …, 1, …), side by side along their batch."""
        at = self._batch_axis if root in self.timed else 0
        return lambda made: np.concatenate(list(made), axis=at)


def _first(values: Array, axis: int) -> Array:
    return np.take(values, [0], axis=axis) if values.shape[axis] else values


def _at_most(length: Any, most: int) -> Any:
    """A length cut to what is left; anything that is no number stays what it is."""
    return min(length, most) if isinstance(length, int | float) and not isinstance(length, bool) else length


def _plain(tree: Any) -> Any:
    """Every `nnx.State` in a tree as a dict of arrays, so that paths read ``['cell']['hi']['kernel']``."""

    def is_state(node: Any) -> bool:
        return isinstance(node, nnx.State)

    def plain(node: Any) -> Any:
        return nnx.to_pure_dict(node) if is_state(node) else node

    return tree_util.tree_map(plain, tree, is_leaf=is_state)
