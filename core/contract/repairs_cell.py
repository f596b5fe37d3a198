"""Repairs of a cell's carry, of its input, and of what it is built from.

Each mends a trial of the cell page, or the init or xs of a scan whose step uses the cell; of a plain script's record
there is nothing to mend without its source, so there it declines. As everywhere, the engine applies a repair and
checks again before anybody sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
from flax import nnx
from jax import tree_util

from core.base.avals import aval_of, path_name
from core.base.places import Place
from core.base.text import fill
from core.contract import trees
from core.contract.cells import CellUse, Part
from core.contract.mend import MendedStep
from core.contract.record import CellEvents, current, recording
from core.contract.rngs import is_key, is_seed, stream_of
from core.contract.rule import Repair
from core.contract.subject import MISSING, CellTrial, ScanCall, Subject

TITLE_PAIR = "Pass a pair: c from zeros, this array as h"
TITLE_THROUGH = "Carry (c, h) through the step"
TITLE_UNSTACK = "Pass the two halves as the pair (c, h)"
TITLE_TUPLE = "Make {path} the plain tuple (c, h)"
TITLE_CARRY_INIT = "Start from what initialize_carry returns"
TITLE_SWAP = "Put c first: (c, h)"
TITLE_SWAP_STEP = "Return c in the place of c, h in the place of h"
TITLE_BATCH = "Give each of the {count} examples its own copy of {label}"
TITLE_ZEROS = "Start {label} from zeros of shape {shape}"
TITLE_SHAPE = "Give {label} the shape {shape}, values repeated"
TITLE_AXES = "Give {label} the input's batch axes: {shape}"
TITLE_DTYPE = "Make {label} {dtype}"
TITLE_INPUT_SHAPE = "Give initialize_carry the input's shape {shape}"
TITLE_SHAPE_TUPLE = "Give initialize_carry the tuple {shape}"
TITLE_INPUT_BATCH = "Give each of the {count} examples its own copy of the input"
TITLE_IN_FEATURES = "Build the cell for this input: in_features={width}"
TITLE_CELL_RNGS = "Build the cell with rngs=nnx.Rngs({seed})"
TITLE_CARRY_RNGS = "Give initialize_carry rngs=nnx.Rngs({seed})"
TITLE_WRAP_CELL = "Wrap it for the cell: rngs=nnx.Rngs(…)"
TITLE_WRAP_CARRY = "Wrap it for initialize_carry: nnx.Rngs(…)"
TITLE_ORDER = "Give the shape first: initialize_carry(input_shape, rngs)"

type Change = Callable[[Any], Any]


def on_carry(trial: CellTrial, change: Change) -> CellTrial:
    """The trial with `change` made to the carry that it steps from."""
    given = trial.carry
    if given is MISSING:
        return replace(trial, carry=change)
    if callable(given):
        return replace(trial, carry=lambda first: change(given(first)))
    return replace(trial, carry=change(given))


def _on_node(path: str, change: Change) -> Callable[[Subject], Subject | None]:
    """Change the whole carry of a trial, or the node of a scan's init at `path`."""

    def apply(subject: Subject) -> Subject | None:
        if isinstance(subject, CellTrial):
            return on_carry(subject, change)
        if isinstance(subject, ScanCall):
            return replace(subject, init=trees.at(subject.init, "carry", path, change))
        return None

    return _or_decline(apply)


def _or_decline(apply: Callable[[Subject], Subject | None]) -> Callable[[Subject], Subject | None]:
    """None instead of an exception where the values do not allow the change (no broadcast, not two parts)."""

    def careful(subject: Subject) -> Subject | None:
        try:
            return apply(subject)
        except (TypeError, ValueError, IndexError):
            return None

    return careful


def _on_parts(parts: Sequence[Part], change: Change) -> Callable[[Subject], Subject | None]:
    """Change these parts of a trial's carry, or the leaves of a scan's init that they are."""
    paths = {part.path for part in parts}

    def mapped(tree: Any) -> Any:
        return tree_util.tree_map_with_path(lambda p, v: change(v) if path_name("carry", p) in paths else v, tree)

    def apply(subject: Subject) -> Subject | None:
        if isinstance(subject, CellTrial):
            return on_carry(subject, mapped)
        if isinstance(subject, ScanCall) and all(part.slot for part in parts):
            return replace(subject, init=mapped(subject.init))
        return None

    return _or_decline(apply)


# --- the pair -------------------------------------------------------------------------------------------------------


def pair_of_one(path: str) -> Repair:
    """One array becomes the pair of zeros and itself: what was kept is taken for the hidden state."""
    change: Change = lambda h: (jnp.zeros_like(h), h)  # noqa: E731
    return Repair("carry_pair", TITLE_PAIR, _on_node(path, change), path, "h")


def carry_through(path: str, place: Place | None) -> Repair:
    """A leaf of a scan's carry that is h alone becomes the pair, in init and in what the step returns for it.

    `place`: the carry argument of the cell whose h the step returns there; None where that is not known.
    """

    def apply(subject: Subject) -> Subject | None:
        if not isinstance(subject, ScanCall):
            return None
        init = trees.at(subject.init, "carry", path, lambda h: (jnp.zeros_like(h), h))
        return replace(subject, init=init, step=ThroughStep(subject.step, path))

    return Repair("carry_through", TITLE_THROUGH, _or_decline(apply), path, place)


@dataclass(frozen=True)
class ThroughStep:
    """A step whose new carry at `path` is the whole new carry of the cell that it gave the old one to.

    Nothing else of what it returns is touched; where the cell is not called with it, neither is that.
    """

    step: Callable[..., Any]
    path: str

    def __call__(self, carry: Any, x: Any, **params: Any) -> Any:
        """``(new carry, y)``."""
        heard = current()
        events = CellEvents() if heard is None else heard
        known = len(events.steps)
        with nullcontext() if heard is not None else recording(events):
            new, y = self.step(carry, x, **params)
        given = trees.find(carry, "carry", self.path)
        back = trees.find(new, "carry", self.path)
        mine = (e for e in events.steps[known:] if e.error is None and e.carry is given and e.result[1] is back)
        event = next(mine, None)
        if event is not None:
            new = trees.at(new, "carry", self.path, lambda _: event.result[0])
        return new, y

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """The step itself, for `inspect.signature`."""
        return self.step


def pair_of_halves(path: str) -> Repair:
    """A stacked array becomes the pair of its two halves."""
    return Repair("carry_pair", TITLE_UNSTACK, _on_node(path, lambda a: (a[0], a[1])), path, "stack")


def plain_tuple(path: str) -> Repair:
    """A list or another container of two becomes a tuple."""
    return Repair("carry_pair", fill(TITLE_TUPLE, path=path), _on_node(path, tuple), path, "tuple")


def from_initialize_carry() -> Repair:
    """A carry that was given is left out: the trial steps from the initialised one."""

    def apply(subject: Subject) -> Subject | None:
        if not isinstance(subject, CellTrial) or subject.carry is MISSING:
            return None
        return replace(subject, carry=MISSING)

    return Repair("carry_init", TITLE_CARRY_INIT, apply)


def swap(path: str) -> Repair:
    """The two parts change places."""
    return Repair("carry_swap", TITLE_SWAP, _on_node(path, lambda pair: (pair[1], pair[0])), path)


def swap_slots(one: str, other: str) -> Repair:
    """Two leaves of a scan's init change places."""
    exchange = Exchange(one, other)

    def apply(subject: Subject) -> Subject | None:
        return replace(subject, init=exchange.of(subject.init)) if isinstance(subject, ScanCall) else None

    return Repair("carry_swap", TITLE_SWAP, _or_decline(apply), one, other)


def swap_returned(one: str, other: str) -> Repair:
    """Two leaves of the new carry that a scan's step returns change places."""

    def apply(subject: Subject) -> Subject | None:
        if not isinstance(subject, ScanCall):
            return None
        return replace(subject, step=MendedStep(subject.step, Exchange(one, other)))

    return Repair("carry_swap", TITLE_SWAP_STEP, apply, one, other)


@dataclass(frozen=True, slots=True)
class Exchange:
    """The leaves at two paths of a carry change places; as a `Mend`, in what the step returns."""

    one: str
    other: str

    def of(self, carry: Any) -> Any:
        """The carry with the two exchanged."""
        a, b = (trees.find(carry, "carry", path) for path in (self.one, self.other))
        return trees.at(trees.at(carry, "carry", self.one, lambda _: b), "carry", self.other, lambda _: a)

    def __call__(self, carry: Any, returned: Any) -> Any:
        """``(new carry, y)`` with the two exchanged."""
        new, y = returned
        return self.of(new), y


# --- shape and dtype of the parts -----------------------------------------------------------------------------------


def to_batch(use: CellUse, parts: Sequence[Part], batch: tuple[int, ...], count: int) -> Repair:
    """Repeat parts over the batch axes of the input: every example starts from the same numbers, in its own row."""
    change: Change = lambda v: jnp.broadcast_to(v, (*batch, jnp.shape(v)[-1]))  # noqa: E731
    title = fill(TITLE_BATCH, count=count, label=use.label(parts))
    return Repair("carry_batch", title, _on_parts(parts, change), use.path, batch)


def to_axes(use: CellUse, parts: Sequence[Part], batch: tuple[int, ...]) -> Repair:
    """Give parts the batch axes of the input where only axes of length 1 differ: no value is repeated or lost."""
    shape = (*batch, use.hidden)
    title = fill(TITLE_AXES, label=use.label(parts), shape=shape)
    return Repair("carry_batch", title, _on_parts(parts, lambda v: jnp.reshape(v, shape)), use.path, batch)


def to_shape(use: CellUse, parts: Sequence[Part], shape: tuple[int, ...]) -> Repair:
    """Broadcast parts to the shape that fits."""
    title = fill(TITLE_SHAPE, label=use.label(parts), shape=shape)
    return Repair("carry_shape", title, _on_parts(parts, lambda v: jnp.broadcast_to(v, shape)), use.path, shape)


def to_zeros(use: CellUse, parts: Sequence[Part], shape: tuple[int, ...]) -> Repair:
    """Start parts from zeros of the shape that fits: for a carry made for other sizes."""

    def change(value: Any) -> Any:
        aval = aval_of(value)
        return jnp.zeros(shape, aval.dtype if aval is not None else None)

    title = fill(TITLE_ZEROS, label=use.label(parts), shape=shape)
    return Repair("carry_shape", title, _on_parts(parts, change), use.path, shape)


def to_dtype(use: CellUse, parts: Sequence[Part], dtype: str) -> Repair:
    """Cast parts to what the cell computes in."""
    title = fill(TITLE_DTYPE, label=use.label(parts), dtype=dtype)
    return Repair("carry_dtype", title, _on_parts(parts, lambda v: jnp.asarray(v, jnp.dtype(dtype))), use.path, dtype)


# --- input ----------------------------------------------------------------------------------------------------------


def input_to_batch(leaf: str | None, batch: tuple[int, ...], count: int) -> Repair:
    """Repeat the input over the batch axes of the carry; `leaf` is the leaf of x that a scan's cell takes as input."""

    def repeat(value: Any, lead: tuple[int, ...] = ()) -> Any:
        return jnp.broadcast_to(value, (*lead, *batch, jnp.shape(value)[-1]))

    def one(path: Any, value: Any) -> Any:
        if path_name("x", path) != leaf:
            return value
        steps, inner = jnp.shape(value)[:1], jnp.shape(value)[1:]
        missing = (1,) * (len(batch) + 1 - len(inner))
        return repeat(jnp.reshape(value, (*steps, *missing, *inner)), steps)

    def apply(subject: Subject) -> Subject | None:
        if isinstance(subject, CellTrial):
            return replace(subject, inputs=repeat(subject.inputs))
        if isinstance(subject, ScanCall) and leaf is not None:
            return replace(subject, xs=tree_util.tree_map_with_path(one, subject.xs))
        return None

    path = "" if leaf is None else "xs" + leaf.removeprefix("x")
    return Repair("input_batch", fill(TITLE_INPUT_BATCH, count=count), _or_decline(apply), path, batch)


def in_features(width: int) -> Repair:
    """Build the cell for the width that the input has."""

    def apply(subject: Subject) -> Subject | None:
        return replace(subject, in_features=width) if isinstance(subject, CellTrial) else None

    return Repair("input_width", fill(TITLE_IN_FEATURES, width=width), apply, "", width)


# --- initialize_carry and the build ---------------------------------------------------------------------------------


def input_shape(shape: tuple[int, ...], title: str = TITLE_INPUT_SHAPE) -> Repair:
    """Initialise the carry for this shape of an input."""

    def apply(subject: Subject) -> Subject | None:
        return replace(subject, input_shape=shape) if isinstance(subject, CellTrial) else None

    return Repair("input_shape", fill(title, shape=shape), apply, "", shape)


def cell_rngs(given: Any, seed: int) -> Repair:
    """Build the cell with an `nnx.Rngs`: of the seed or key that was given, else of `seed`."""
    fresh, title, value = _rngs(given, "params", seed, TITLE_CELL_RNGS, TITLE_WRAP_CELL)

    def apply(subject: Subject) -> Subject | None:
        return replace(subject, rngs=fresh) if isinstance(subject, CellTrial) else None

    return Repair("cell_rngs", title, apply, "", value)


def carry_rngs(given: Any, seed: int) -> Repair:
    """Give `initialize_carry` an `nnx.Rngs`: of the seed or key that was given, else of `seed`."""
    fresh, title, value = _rngs(given, "carry", seed, TITLE_CARRY_RNGS, TITLE_WRAP_CARRY)

    def apply(subject: Subject) -> Subject | None:
        return replace(subject, carry_rngs=fresh) if isinstance(subject, CellTrial) else None

    return Repair("carry_rngs", title, apply, "", value)


def shape_first(shape: tuple[int, ...], given: Any, seed: int) -> Repair:
    """Put the arguments of `initialize_carry` in their order."""
    fresh, _, value = _rngs(given, "carry", seed, TITLE_CARRY_RNGS, TITLE_WRAP_CARRY)

    def apply(subject: Subject) -> Subject | None:
        if not isinstance(subject, CellTrial):
            return None
        return replace(subject, input_shape=shape, carry_rngs=fresh)

    return Repair("carry_rngs", TITLE_ORDER, apply, "", value)


def _rngs(given: Any, stream: str, seed: int, title: str, wrap: str) -> tuple[Any, str, int | None]:
    """A function that makes a fresh Rngs (it counts its draws), the button's text, and the seed where it is one."""
    if stream_of(given, stream) is not None:
        return given, wrap, None
    if is_seed(given):
        return lambda: nnx.Rngs(given), fill(title, seed=given), given
    if is_key(given):
        return lambda: nnx.Rngs(given), wrap, None
    return lambda: nnx.Rngs(seed), fill(title, seed=seed), seed
