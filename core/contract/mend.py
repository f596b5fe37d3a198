"""A learner's step with its return value mended: what a repair of the step puts in its place.

They are objects, not closures, so that two mends of one step are equal, and the step keeps its own signature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import jax.numpy as jnp
from jax import lax

from core.contract import trees


class Mend(Protocol):
    """Makes of the incoming carry and the step's return value what the step should have returned."""

    def __call__(self, carry: Any, returned: Any) -> Any:
        """The mended return value."""


@dataclass(frozen=True, eq=False)
class MendedStep:
    """``step(carry, x, **params)`` with `mend` applied to what it returns."""

    step: Callable[..., Any]
    mend: Mend

    def __call__(self, carry: Any, x: Any, **params: Any) -> Any:
        """The step's mended return value."""
        return self.mend(carry, self.step(carry, x, **params))

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """The step itself, for `inspect.signature`: messages name the learner's own parameters."""
        return self.step

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MendedStep) and self.step is other.step and self.mend == other.mend

    def __hash__(self) -> int:
        return hash((id(self.step), self.mend))


@dataclass(frozen=True, slots=True)
class WithY:
    """A step that returned the new carry alone: `y` is nothing, or the new carry once more."""

    repeat: bool

    def __call__(self, carry: Any, returned: Any) -> Any:
        """``(new carry, None)`` or ``(new carry, new carry)``."""
        return returned, (returned if self.repeat else None)


@dataclass(frozen=True, slots=True)
class Gather:
    """A step that returned more than two things: the first `parts` are the carry, or the first one is (parts None)."""

    parts: int | None

    def __call__(self, carry: Any, returned: Any) -> Any:
        """``(new carry, y)``; y is a tuple when more than one thing is left."""
        items = list(trees.node_of(returned).children.values())
        if self.parts is None:
            new, rest = items[0], items[1:]
        else:
            keys = trees.node_of(carry).children
            new, rest = trees.node_of(carry).rebuild(dict(zip(keys, items, strict=False))), items[self.parts :]
        return new, (rest[0] if len(rest) == 1 else tuple(rest) or None)


@dataclass(frozen=True, slots=True)
class AsTuple:
    """A step whose pair is no tuple (a NamedTuple, a dict): child `first` is the carry, the other one y."""

    first: int

    def __call__(self, carry: Any, returned: Any) -> Any:
        """``(new carry, y)``."""
        items = list(trees.node_of(returned).children.values())
        return items[self.first], items[1 - self.first]


@dataclass(frozen=True, slots=True)
class OnCarry:
    """A change of the new carry's node at `path`, given the same node of the incoming one."""

    path: str
    change: Callable[[Any, Any], Any]

    def __call__(self, carry: Any, returned: Any) -> Any:
        """``(new carry, y)`` with that node changed."""
        new, y = returned
        old = trees.find(carry, "carry", self.path)
        return trees.at(new, "carry", self.path, partial(self.change, old)), y


@dataclass(frozen=True, slots=True)
class Cast:
    """Give a leaf this dtype, strongly."""

    dtype: str

    def __call__(self, old: Any, new: Any) -> Any:
        """`new` as `dtype`."""
        return lax.convert_element_type(new, jnp.dtype(self.dtype))


@dataclass(frozen=True, slots=True)
class Reshape:
    """Give a leaf this shape (of the same size)."""

    shape: tuple[int, ...]

    def __call__(self, old: Any, new: Any) -> Any:
        """`new` reshaped."""
        return jnp.reshape(new, self.shape)
