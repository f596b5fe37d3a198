"""A training run at one moment: parameters, keys and moments, each a part that is saved, checked and restored by itself.

    held = held_of(trainer)                       # after some updates
    data = run_file(held)
    offers = read_run(data, held)                 # one per part, each with a verdict of its own
    held = with_parts(held, offers, ("params",))  # the others stay
    losses = go_on(spec, held, 8)

What a part computes is checked too, on a small seeded input: parameters by the predictions they make, the stream's state
by the key that it gives next, moments by the predictions after one more update with the file's own parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import jax
import numpy as np
from flax import nnx
from jax import tree_util

from core.base.text import fill
from core.base.training import TrainingSpec
from core.runners.gradient_source import GRADIENT_PROGRAMS
from core.runners.training import Trainer
from core.runners.training_model import STREAM, forward, gradient, update
from core.weights.document import BATCH_STATS, OPTIMIZER, PARAMS, RNG, SECTIONS
from core.weights.refusal import Stage, WeightsRefused
from core.weights.state import (
    Section,
    Stored,
    check_fits,
    check_outputs,
    file_of,
    load_apart,
    put,
    put_optimizer,
    sections_of,
)

type Array = np.ndarray[Any, Any]

#: Of the control: examples, steps and the seed of its data; the rate of its update.
BATCH, STEPS, SEED, RATE = 2, 3, 2_026, 0.1
PREDICTIONS, DRAWN, UPDATED = "predictions", "next_key", "predictions_after_an_update"
#: The output of the control that each part answers for.
ANSWERS_FOR: Final[Mapping[str, str]] = {PARAMS: PREDICTIONS, RNG: DRAWN, OPTIMIZER: UPDATED}

NOT_IN_FILE = "The file has none."
NOT_IN_MODEL = "The file has {count} arrays of it, and this run has none."
IN_NEITHER = "None in this model, and none in the file."
NOT_FINITE = "With these parts the control is not finite at {leaf}."
MOVED = "It does not compute what it did: {leaf} is {largest} apart."
NEEDS_PARAMS = "Moments are checked by an update of the file's own parameters, and those do not fit."


class _Whole(nnx.Module):
    """What of a run is in Variables: the model, and the stream that dropout draws from."""

    def __init__(self, model: Any, rngs: Any) -> None:
        self.model = model
        self.rngs = rngs


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A run at one moment.

    Attributes:
        spec: what is trained: its cell, sizes and optimizer say what fits.
        sections: by name, those that this run has anything in.
        control: what they compute.
    """

    spec: TrainingSpec
    sections: Mapping[str, Section]
    control: Mapping[str, Array]


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """What a file offers for one part of a run.

    Attributes:
        name: ``params``, ``batch_stats``, ``rng`` or ``optimizer``.
        section: to restore; None where there is nothing, or nothing that may be used.
        reason: why not; "" with a section.
        refused: the file has it and it must not be used; False where there simply is none.
        apart: largest difference of its control.
    """

    name: str
    section: Section | None = None
    reason: str = ""
    refused: bool = False
    apart: float = 0.0


def held_of(trainer: Trainer) -> Held:
    """The run as it is now; going on with the trainer changes nothing in it.

    Raises:
        WeightsRefused: what it computes is not finite.
    """
    rngs = None if trainer.rngs is None else nnx.clone(trainer.rngs)
    sections = sections_of(_Whole(trainer.model(), rngs), trainer.moments())
    return Held(trainer.spec, sections, _control(trainer.spec, sections, SECTIONS))


def run_file(held: Held) -> bytes:
    """The run as a safetensors file.

    Raises:
        WeightsRefused: something in it is not finite.
    """
    return file_of(held.sections, held.control, None)


def read_run(data: bytes, held: Held) -> tuple[Offer, ...]:
    """What a file has for each part of a run, after every check.

    Raises:
        WeightsRefused: the file as a whole.
    """
    stored, refused = load_apart(data)
    fits: dict[str, Section] = {}
    offers = {}
    for name in SECTIONS:
        got, want = stored.sections.get(name), held.sections.get(name)
        if got is None:
            offers[name] = Offer(name, reason=fill(NOT_IN_FILE if want is not None else IN_NEITHER))
        elif name in refused:
            offers[name] = Offer(name, reason=str(refused[name]), refused=True)
        elif want is None:
            offers[name] = Offer(name, reason=fill(NOT_IN_MODEL, count=len(got.leaves)), refused=True)
        else:
            try:
                check_fits(name, got, want)
                fits[name] = got
            except WeightsRefused as reason:
                offers[name] = Offer(name, reason=str(reason), refused=True)
    return tuple(offers[name] if name in offers else _verified(held.spec, stored, name, fits) for name in SECTIONS)


def _verified(spec: TrainingSpec, stored: Stored, name: str, fits: Mapping[str, Section]) -> Offer:
    if name == OPTIMIZER and PARAMS not in fits:
        return Offer(name, reason=fill(NEEDS_PARAMS), refused=True)
    try:
        apart = check_outputs(stored, _control(spec, fits, (name,)))
    except WeightsRefused as reason:
        return Offer(name, reason=str(reason), refused=True)
    return Offer(name, fits[name], apart=apart)


def with_parts(held: Held, offers: Iterable[Offer], names: Iterable[str]) -> Held:
    """The run with some parts from a file, the others as they are.

    Raises:
        WeightsRefused: together they compute what is not finite.
    """
    chosen = {offer.name: offer.section for offer in offers if offer.name in set(names) and offer.section is not None}
    sections = {**held.sections, **chosen}
    control = _control(held.spec, sections, SECTIONS)
    for path, values in control.items():
        if not np.isfinite(values.astype(np.float64)).all():
            raise WeightsRefused(Stage.CONTROL, NOT_FINITE, path)
    return Held(held.spec, sections, control)


def recheck(held: Held) -> float:
    """Run the control of a run again; the largest difference, which is 0 where nothing is wrong.

    Raises:
        WeightsRefused: it computes something else than when it was kept.
    """
    again = _control(held.spec, held.sections, SECTIONS)
    largest = 0.0
    for path, then in held.control.items():
        apart = float(np.max(np.abs(again[path].astype(np.float64) - then.astype(np.float64)), initial=0.0))
        if not apart <= 1e-6:
            raise WeightsRefused(Stage.CONTROL, MOVED, path, largest=f"{apart:.3g}")
        largest = max(largest, apart)
    return largest


def go_on(spec: TrainingSpec, held: Held, updates: int) -> Array:
    """(updates + 1,) float64: the losses of a run that begins with these parts, on the data of `spec`.

    Args:
        spec: of the same cell, sizes, optimizer and streams as the run.
        held: where it begins.
        updates: at least 1.
    """
    trainer = _trainer(spec, held.sections)
    return trainer.go_on(updates)


def fits(spec: TrainingSpec, held: Held) -> bool:
    """Whether a run can go on with what `spec` asks for: the same cell, sizes, optimizer, and rngs given or not."""
    return _structure(spec) == _structure(held.spec)


def _structure(spec: TrainingSpec) -> tuple[object, ...]:
    sizes = (int(spec.inputs.shape[-1]), spec.hidden_features, int(spec.targets.shape[-1]))
    return (spec.kind, *sizes, spec.optimizer, spec.dropout_seed is None)


def _trainer(spec: TrainingSpec, sections: Mapping[str, Section]) -> Trainer:
    """A trainer with these parts, and its own where one is missing."""
    trainer = Trainer.of(spec)
    whole, moments = _Whole(trainer.model(), trainer.rngs), trainer.moments()
    for name in (PARAMS, BATCH_STATS, RNG):
        if name in sections:
            put(whole, name, sections[name])
    if OPTIMIZER in sections:
        moments = put_optimizer(moments, sections[OPTIMIZER])
    trainer.put(whole.model, moments, whole.rngs)
    return trainer


def _control(spec: TrainingSpec, sections: Mapping[str, Section], names: Iterable[str]) -> dict[str, Array]:
    """What some parts compute, by the name of the output."""
    trainer = _trainer(spec, sections)
    asked = {name for name in names if name in sections}
    out: dict[str, Array] = {}
    if asked & {PARAMS, OPTIMIZER}:
        rng = np.random.default_rng(SEED)
        inputs = rng.standard_normal((BATCH, STEPS, int(spec.inputs.shape[-1]))).astype(np.float32)
        targets = rng.standard_normal((BATCH, int(spec.targets.shape[-1]))).astype(np.float32)
        args = (trainer.params, trainer.state, inputs, targets)
        key = ("training control", spec.kind, spec.optimizer)
        program, _ = GRADIENT_PROGRAMS.get(key, _program(trainer, spec.optimizer), args)
        now, later = jax.device_get(program(*args))
        out |= {PREDICTIONS: now} if PARAMS in asked else {}
        out |= {UPDATED: later} if OPTIMIZER in asked else {}
    if RNG in asked and trainer.rngs is not None:
        out[DRAWN] = np.asarray(jax.random.key_data(nnx.clone(trainer.rngs)[STREAM]()))
    return out


def _program(trainer: Trainer, optimizer: str) -> Callable[..., Any]:
    """Predictions in use (nothing is dropped), and those after one update."""
    model = trainer.model()
    set_mode: Any = model.eval  # untyped in Flax
    set_mode()
    graph, tree, state_tree = nnx.split(model)[0], trainer.tree, trainer.state_tree

    def program(params: Any, state: Any, inputs: Any, targets: Any) -> Any:
        old = tree_util.tree_unflatten(tree, params)
        _, gradients = gradient(graph, old, inputs, targets)
        new, _ = update(optimizer, RATE, old, gradients, tree_util.tree_unflatten(state_tree, state))
        return forward(graph, old, inputs), forward(graph, new, inputs)

    return program
