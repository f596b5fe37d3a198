"""The abstract trace of a step: what it returns, leaf by leaf, without computing anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
from jax import tree_util

from core.base.avals import Aval, LeafType, abstract, aval_of, path_name
from core.base.places import Places
from core.contract.record import CellEvents, recording

#: Characters of an exception's message that are kept, and what stands for the others.
SAID, CUT = 10_000, "…"


@dataclass(frozen=True, slots=True, eq=False)
class Raised:
    """An exception of the learner's step (or of JAX in it), with what was known when it was raised.

    Attributes:
        error: the exception itself.
        carry_in, x_in: the pytrees of tracers that the step was given; None when it never began.
        events: cells used until then; the one that raised is the last.
    """

    error: BaseException
    carry_in: Any = None
    x_in: Any = None
    events: CellEvents = field(default_factory=CellEvents)

    @property
    def type(self) -> str:
        """Its class name."""
        return type(self.error).__name__

    @property
    def text(self) -> str:
        """Its message without JAX's traceback hints; cut where it is long, "" where its own class cannot say it."""
        try:
            text = str(self.error)
        except Exception:  # noqa: BLE001  # a script's own `__str__` may do anything
            return ""
        text = text.split("\n--------------------\n", 1)[0].strip()
        return text if len(text) <= SAID else text[:SAID] + CUT


@dataclass(frozen=True, slots=True, eq=False)
class StepTrace:
    """What `step(carry, x)` returned under abstract values.

    Attributes:
        carry_in, x_in: the pytrees of tracers it was given.
        returned: its very return value, tracers at the leaves (dead by now: only identity and avals may be used).
        types: every leaf of `returned`, paths rooted at ``return``.
        sources: for each leaf path of `returned`, the input path whose traced variable it *is*, if any.
        jaxpr: the program, its outputs are the array leaves of `returned` in order.
        events: cells used inside.
    """

    carry_in: Any
    x_in: Any
    returned: Any
    types: tuple[LeafType, ...]
    sources: dict[str, str]
    jaxpr: Any
    events: CellEvents

    @property
    def pair(self) -> tuple[Any, Any] | None:
        """(new carry, y) when the step returned what `lax.scan` takes as a pair, else None."""
        parts = unpack(self.returned)
        return (parts[0], parts[1]) if parts is not None and len(parts) == 2 else None

    def carry_types(self) -> tuple[LeafType, ...]:
        """Leaves of the new carry, rooted at ``carry``; empty when there is no pair."""
        return _types(self.pair[0], "carry") if self.pair else ()

    def y_types(self) -> tuple[LeafType, ...]:
        """Leaves of one y, rooted at ``y``; empty when there is no pair."""
        return _types(self.pair[1], "y") if self.pair else ()


def unpack(tree: Any) -> tuple[Any, ...] | None:
    """The parts of what `lax.scan` unpacks: a tuple or a list, nothing else (no dict, no NamedTuple); else None."""
    return tuple(tree) if type(tree) in (tuple, list) else None


def same_structure(before: Any, after: Any) -> bool:
    """Whether two pytrees have the same containers, keys and static data, whatever their leaves."""
    one: Any = tree_util.tree_structure(before)
    return bool(one == tree_util.tree_structure(after))


def _types(tree: Any, root: str) -> tuple[LeafType, ...]:
    flat, _ = tree_util.tree_flatten_with_path(tree)
    return tuple(LeafType(path_name(root, p), aval_of(v), type(v).__name__) for p, v in flat)


def struct_of(value: Any, *, dtype: Any = None) -> jax.ShapeDtypeStruct:
    """The abstract value of an array-like leaf, weak type kept unless a dtype is forced. PRNG keys work too.

    Raises:
        TypeError: the value is nothing JAX takes as an array.
    """
    aval: Any = value if isinstance(value, jax.ShapeDtypeStruct) else jax.typeof(value)
    if dtype is not None:
        return abstract(aval.shape, dtype)
    return abstract(aval.shape, aval.dtype, weak=bool(getattr(aval, "weak_type", False)))


def trace_step(
    body: Callable[[Any, Any], Any], carry: Any, x: Any, locate: Callable[[], Places | None] | None = None
) -> StepTrace | Raised:
    """Trace ``body(carry, x)`` with trees of `ShapeDtypeStruct`; `locate` says where a cell is called.

    Nothing is computed and nothing is cached: a fresh function is traced each time. Any exception of the step is a
    value of this function, not an exception of it.
    """
    kept: dict[str, Any] = {}
    events = CellEvents(locate=locate)

    def probe(c: Any, x: Any) -> list[Any]:
        kept["in"] = (c, x)
        out = kept["out"] = body(c, x)
        kept["types"] = _types(out, "return")
        return [leaf for leaf in tree_util.tree_leaves(out) if aval_of(leaf) is not None]

    try:
        with recording(events):
            jaxpr = jax.make_jaxpr(probe)(carry, x)
    except Exception as error:  # noqa: BLE001  # what a learner's code raises is a fact here
        carry_in, x_in = kept.get("in", (None, None))
        return Raised(error, carry_in, x_in, events)
    carry_in, x_in = kept["in"]
    return StepTrace(carry_in, x_in, kept["out"], kept["types"], _sources(kept), jaxpr, events)


def _sources(kept: dict[str, Any]) -> dict[str, str]:
    carry, x = kept["in"]
    by_id = {id(leaf): path_name("carry", p) for p, leaf in tree_util.tree_flatten_with_path(carry)[0]}
    by_id |= {id(leaf): path_name("x", p) for p, leaf in tree_util.tree_flatten_with_path(x)[0]}
    out = tree_util.tree_flatten_with_path(kept["out"])[0]
    return {path_name("return", p): by_id[id(v)] for p, v in out if id(v) in by_id}


def slice_aval(aval: Aval) -> Aval:
    """What one step sees of an xs leaf: the leading axis gone, weak if the leaf is (``jnp.full(3, 2)`` is)."""
    return Aval(aval.shape[1:], aval.dtype, aval.weak)
