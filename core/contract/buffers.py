"""What an integer (or narrower) buffer in the carry cuts off the numbers that are written into it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import lax, tree_util

from core.contract.facts import ScanFacts
from core.contract.precision import is_float, ran
from core.contract.program import CutBack, before_cut, cut_backs
from core.contract.trace import StepTrace
from core.runners.scan import to_device


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """The first number that a buffer does not keep.

    Attributes:
        path, index: the carry leaf and the element; "" when the buffer is not a leaf of the carry by itself.
        position: the step.
        wide, narrow: dtype of what is written, and of the buffer.
        exact, got: the two numbers.
        off: the largest difference over all steps.
    """

    path: str
    index: tuple[int, ...]
    position: int
    wide: str
    narrow: str
    exact: float
    got: float
    off: float


def cuts(facts: ScanFacts) -> tuple[Cut, ...]:
    """Writes that lost something on the learner's numbers (2.0 into an integer buffer loses nothing, rounding neither)."""
    result = ran(facts)
    if result is None or not isinstance(facts.trace, StepTrace):
        return ()
    program = facts.trace.jaxpr
    writes = cut_backs(program)
    if not writes:
        return ()
    likes = (*tree_util.tree_leaves(facts.call.init), *tree_util.tree_leaves(facts.call.xs))
    seen = [s.values[:-1] for s in result.carries] + [s.values for s in result.xs]
    stacked = [to_device(v, like) for v, like in zip(seen, likes, strict=True)]
    try:
        buffers = jax.jit(lambda args: lax.map(lambda a: before_cut(program, a, writes), args))(stacked)
    except Exception:  # noqa: BLE001  # a program that cannot be replayed is not explained
        return ()
    paths = [t.path for t in facts.carry_in]
    found = (_cut(write, np.asarray(b), paths) for write, b in zip(writes, buffers, strict=True))
    return tuple(f for f in found if f is not None)


def _cut(write: CutBack, wide: np.ndarray[Any, Any], paths: list[str]) -> Cut | None:
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is what is looked for
        kept = np.asarray(lax.convert_element_type(wide, write.eqn.outvars[0].aval.dtype))
    one, two = wide.astype(np.float64), kept.astype(np.float64)
    # A narrower float rounds, which is no fault (a bfloat16 cache of float32 keys); what overflows is.
    lost = np.isinf(two) if is_float(write.narrow) else one != two
    bad = np.isfinite(one) & lost
    if not bad.any():
        return None
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
    path = paths[write.output] if write.output is not None and write.output < len(paths) else ""
    off = float(np.abs(one[bad] - two[bad]).max())
    return Cut(path, at[1:], at[0], write.wide, write.narrow, float(one[at]), float(two[at]), off)
