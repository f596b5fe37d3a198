"""One update through a scan: loss before, gradient by parameter, loss after; and the losses of several in a row.

One compiled call works out all of it. Data, parameters, rate, learning rate and key are its arguments: moving a slider
compiles nothing, another size, cell, mode or optimizer does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from flax import nnx
from jax import tree_util

from core.base.avals import aval_of
from core.base.training import LeafNorm, TrainingSpec, TrainingStep
from core.runners.gradient_source import GRADIENT_PROGRAMS
from core.runners.layers import parts_of_cell
from core.runners.room import keep_room
from core.runners.training_model import OPTIMIZERS, STREAM, SequenceModel, forward, gradient, loss, update

type Array = np.ndarray[Any, Any]

TRAIN, EVAL = "train", "eval"


def task(batch: int, length: int, features: int, seed: int = 0) -> tuple[Array, Array]:
    """Data to train on: noise (B, T, F), and as target (B, 1) what the first feature of the first step was."""
    inputs = np.random.default_rng(seed).normal(size=(batch, length, features)).astype(np.float32)
    return inputs, np.ascontiguousarray(inputs[:, 0, :1])


def train_once(spec: TrainingSpec) -> TrainingStep:
    """One update.

    Args:
        spec: what is trained, how, and in which mode.

    Returns:
        losses, gradient norms, and which streams were asked how often.

    Raises:
        ValueError: something is to be dropped and there are no rngs: what `nnx.Dropout` raises (rule L318).
        KeyError: no such cell, no such optimizer.
        whatever Flax and JAX raise on these sizes.
    """
    return Trainer.of(spec).step()


def losses(spec: TrainingSpec, updates: int) -> Array:
    """(updates + 1,) float64: the loss before each update and after the last, each with the numbers that it dropped.

    Every update asks the stream for a key of its own. Raises as `train_once`.
    """
    return Trainer.of(spec).go_on(updates)


@dataclass(slots=True, eq=False)
class Trainer:
    """A model under way: what one update hands on to the next.

    Attributes:
        graph, tree, paths: structure of the model in its mode, and of its parameters.
        state_tree: of the optimizer's state.
        params, state: leaves.
        rngs: None where none were given.
    """

    spec: TrainingSpec
    graph: Any
    tree: Any
    paths: tuple[str, ...]
    state_tree: Any
    params: tuple[Any, ...]
    state: tuple[Any, ...]
    rngs: nnx.Rngs | None

    @classmethod
    def of(cls, spec: TrainingSpec) -> Trainer:
        """Build the model and the optimizer's state."""
        keep_room()
        parts = parts_of_cell(spec.kind, int(spec.inputs.shape[-1]), spec.hidden_features, spec.seed)
        model = SequenceModel(parts.kind, parts.cell(), int(spec.targets.shape[-1]), seed=spec.seed)
        # A rate of 0 drops nothing and needs no key, in training too: so does Flax's own layer.
        set_mode: Any = model.train if spec.drops else model.eval  # untyped in Flax
        set_mode()
        graph, state = nnx.split(model)
        params, tree = tree_util.tree_flatten(state)
        flat, _ = tree_util.tree_flatten_with_path(nnx.to_pure_dict(state))
        names = [".".join(str(part.key) for part in path) for path, _ in flat]
        starts, state_tree = _first_state(spec, tree, tuple(params))
        rngs = None if spec.dropout_seed is None else nnx.Rngs(**{STREAM: spec.dropout_seed})
        paths = tuple(name.removeprefix("steps.") for name in names)
        return cls(spec, graph, tree, paths, state_tree, tuple(params), starts, rngs)

    def go_on(self, updates: int) -> Array:
        """(updates + 1,) float64: as `losses`, from here on."""
        steps = [self.step() for _ in range(updates)]
        return np.array([*(one.loss_before for one in steps), *(one.loss_after for one in steps[-1:])])

    def model(self) -> SequenceModel:
        """The model as it is now, in its mode: a copy."""
        made: SequenceModel = nnx.merge(self.graph, tree_util.tree_unflatten(self.tree, self.params))
        return made

    def moments(self) -> Any:
        """The state of the optimizer as it is now, in optax's structure."""
        return tree_util.tree_unflatten(self.state_tree, self.state)

    def put(self, model: SequenceModel, moments: Any, rngs: nnx.Rngs | None) -> None:
        """Go on from these; of the structure that `model` and `moments` gave."""
        self.params = tuple(tree_util.tree_leaves(nnx.split(model)[1]))
        self.state = tuple(tree_util.tree_leaves(moments))
        self.rngs = rngs

    def step(self) -> TrainingStep:
        """One update; the next one begins where it ended."""
        spec = self.spec
        args = (
            self.params,
            self.state,
            np.asarray(spec.inputs, np.float32),
            np.asarray(spec.targets, np.float32),
            np.float32(1.0 - spec.rate),
            np.float32(spec.learning_rate),
            self._key(),
        )
        program, compiled = GRADIENT_PROGRAMS.get(
            ("training", spec.kind, spec.optimizer, spec.drops), self._program(), args
        )
        self.params, self.state, numbers = program(*args)
        before, after, gradients, predictions = jax.device_get(numbers)
        leaves = [
            LeafNorm(path, type_, float(np.linalg.norm(g.astype(np.float64).ravel())), bool(np.isfinite(g).all()))
            for path, g in zip(self.paths, gradients, strict=True)
            if (type_ := aval_of(g)) is not None
        ]
        return TrainingStep(
            mode=TRAIN if spec.train else EVAL,
            loss_before=float(before),
            loss_after=float(after),
            gradients=tuple(sorted(leaves, key=lambda leaf: leaf.path.startswith("readout"))),
            draws={STREAM: 0 if self.rngs is None else int(self.rngs[STREAM].count[...])},
            predictions=predictions,
            compiled=compiled,
        )

    def _key(self) -> Any:
        """One key of the stream, where something is dropped. Without rngs Flax's own layer says so."""
        if not self.spec.drops:
            return None
        if self.rngs is None:
            nnx.Dropout(self.spec.rate, rng_collection=STREAM)(np.zeros(1, np.float32))
        return None if self.rngs is None else self.rngs[STREAM]()

    def _program(self) -> Callable[..., Any]:
        graph, tree, state_tree, optimizer = self.graph, self.tree, self.state_tree, self.spec.optimizer

        def program(params: Any, state: Any, inputs: Any, targets: Any, keep: Any, learning_rate: Any, key: Any) -> Any:
            old = tree_util.tree_unflatten(tree, params)
            before, gradients = gradient(graph, old, inputs, targets, keep, key)
            new, state = update(optimizer, learning_rate, old, gradients, tree_util.tree_unflatten(state_tree, state))
            after = loss(graph, new, inputs, targets, keep, key)
            numbers = before, after, tuple(tree_util.tree_leaves(gradients)), forward(graph, old, inputs, keep, key)
            return tuple(tree_util.tree_leaves(new)), tuple(tree_util.tree_leaves(state)), numbers

        return program


def _first_state(spec: TrainingSpec, tree: Any, params: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
    """The optimizer's state before the first update: leaves and structure."""
    start = OPTIMIZERS[spec.optimizer](0.0).init

    def leaves(params: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(tree_util.tree_leaves(start(tree_util.tree_unflatten(tree, params))))

    program, _ = GRADIENT_PROGRAMS.get(("optimizer", spec.kind, spec.optimizer), leaves, (params,))
    structure = jax.eval_shape(lambda p: start(tree_util.tree_unflatten(tree, p)), params)
    return program(params), tree_util.tree_structure(structure)
