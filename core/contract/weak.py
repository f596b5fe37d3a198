"""What becomes of a weakly typed init: the dtype that `lax.scan` gives it, and what that dtype then loses.

`lax.scan` promotes weak leaves once, to `result_type` of the leaf and of what the step returned, and only then holds
the carry to its type. So a plain `0` may become float32 (harmless), int8 (it wraps at 127) or bfloat16 (it stops
counting at 256), and a leaf that is fed from another weak leaf sees that leaf's promotion one pass too late.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, tree_util

from core.base.avals import Aval
from core.contract import repairs
from core.contract.carry import carry_pairs
from core.contract.facts import ScanFacts
from core.contract.precision import Lost, Wrapped, is_float, is_int, largest, lost_motion, ran, wrapped
from core.contract.subject import ScanCall
from core.runners.wide import wide_path


@dataclass(frozen=True, slots=True, eq=False)
class Promotion:
    """A weak leaf of init whose dtype name changed: from `before` to `after`; `value` is the leaf as it was given."""

    path: str
    leaf: int
    before: Aval
    after: Aval
    value: Any

    @property
    def wide(self) -> str:
        """The dtype that would have held it: its own, or the default float where a whole number became a float."""
        if is_int(self.before.dtype) and is_float(self.after.dtype):
            return str(jax.dtypes.canonicalize_dtype(float))
        return self.before.dtype

    @property
    def narrower(self) -> bool:
        """Whether the new dtype holds less than the one it came from (fewer bits, or a coarser float)."""
        size = jnp.dtype(self.after.dtype).itemsize
        return size < jnp.dtype(self.wide).itemsize and (is_int(self.after.dtype) or is_float(self.after.dtype))


@dataclass(frozen=True, slots=True, eq=False)
class Overflowed:
    """A narrowed float that became infinite at `position`, where float32 holds `exact`."""

    path: str
    index: tuple[int, ...]
    position: int
    exact: float
    got: float


type Harm = Wrapped | Lost | Overflowed


def promotions(facts: ScanFacts) -> tuple[Promotion, ...]:
    """The weak leaves whose dtype name `lax.scan` changed, in a scan that it takes."""
    if facts.jax is not None or facts.promoted is None:
        return ()
    leaves = tree_util.tree_leaves(facts.call.init)
    pairs = zip(facts.init_types, facts.carry_in, leaves, strict=True)
    return tuple(
        Promotion(given.path, number, given.aval, held.aval, leaf)
        for number, (given, held, leaf) in enumerate(pairs)
        if given.aval is not None and held.aval is not None and given.aval.dtype != held.aval.dtype
    )


def changed_value(promotion: Promotion) -> tuple[str, str] | None:
    """A whole number of init that its new dtype does not hold, and what became of it; None when all are held.

    Rounding of a float is no change of value: every Python float is rounded.
    """
    before = np.asarray(promotion.value)
    if not is_int(promotion.before.dtype):
        return None
    after = np.asarray(lax.convert_element_type(promotion.value, jnp.dtype(promotion.after.dtype)))
    kept = after.astype(np.complex128 if after.dtype.kind == "c" else np.float64) == before.astype(np.float64)
    if kept.all():
        return None
    at = np.unravel_index(int(np.argmin(kept)), kept.shape)
    return str(before[at]), str(after[at])


def harms(facts: ScanFacts) -> dict[str, Harm]:
    """What narrowing did to the learner's own numbers, by carry path; nothing for leaves that came to no harm."""
    narrowed = {p.path: p for p in promotions(facts) if p.narrower}
    if not narrowed or ran(facts) is None:
        return {}
    found: dict[str, Harm] = {}
    all_harms: tuple[Harm, ...] = (
        *facts.once(wrapped),
        *facts.once(lost_motion),
        *_overflows(facts, tuple(narrowed.values())),
    )
    for harm in all_harms:
        if harm.path in narrowed:
            found.setdefault(harm.path, harm)
    return found


def _overflows(facts: ScanFacts, narrowed: tuple[Promotion, ...]) -> tuple[Overflowed, ...]:
    """Narrowed floats that became infinite where the same scan in wide floats does not."""
    result = ran(facts)
    if result is None:
        return ()
    suspects = [p for p in narrowed if is_float(p.after.dtype) and np.isinf(_floats(result.carries[p.leaf])).any()]
    if not suspects:
        return ()
    try:
        path = wide_path(facts.call, result).carries
    except Exception:  # noqa: BLE001  # a step that insists on its narrow dtype cannot be compared
        return ()
    found = []
    for promotion in suspects:
        narrow, wide = _floats(result.carries[promotion.leaf]), path[promotion.leaf]
        bad = np.isinf(narrow) & (np.abs(wide) <= largest(promotion.wide))
        if bad.any():
            at = tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
            found.append(Overflowed(promotion.path, at[1:], max(at[0] - 1, 0), float(wide[at]), float(narrow[at])))
    return tuple(found)


def _floats(series: Any) -> np.ndarray[Any, Any]:
    values: np.ndarray[Any, Any] = series.values.astype(np.float64)
    return values


# --- a promotion that comes too late --------------------------------------------------------------------------------


def settled(call: ScanCall) -> dict[str, str] | None:
    """The strong dtypes, by carry path, with which the scan runs: promotion carried on until nothing changes.

    Returns:
        None when no such dtypes exist, or when what raises is not a weak leaf.
    """
    dtypes: dict[str, str] = {}
    for _ in range(len(tree_util.tree_leaves(call.init)) + 1):
        facts = ScanFacts(call)
        if facts.jax is None:
            return dtypes or None
        late = dict(_late(facts))
        if not late or late.items() <= dtypes.items():
            return None
        dtypes |= late
        call = with_dtypes(call, late)
    return None


def _late(facts: ScanFacts) -> list[tuple[str, str]]:
    """Carry leaves that are weak in init, or that promotion already reached, and that come out as another dtype."""
    out = []
    for given, held, back in carry_pairs(facts):
        if given.aval is None or held.aval is None or back.aval is None or held.aval.dtype == back.aval.dtype:
            continue
        if given.aval.weak:
            # two dtypes without a common one (a PRNG key) raise TypeError: then nothing settles
            try:
                out.append((given.path, str(jnp.promote_types(held.aval.dtype, back.aval.dtype))))
            except TypeError:
                return []
    return out


def with_dtypes(call: ScanCall, dtypes: dict[str, str]) -> ScanCall:
    """The call with these init leaves strongly typed."""
    for path, dtype in dtypes.items():
        mended = repairs.init_dtype(path, dtype).apply(call)
        call = mended if isinstance(mended, ScanCall) else call
    return call


def runs(call: ScanCall) -> bool:
    """Whether `lax.scan` takes this call."""
    return ScanFacts(call).jax is None


def holds(value: Any, dtype: str) -> bool:
    """Whether a dtype holds every number of a leaf: whole numbers exactly, floats up to rounding where it is a float."""
    before = np.asarray(value)
    after = np.asarray(lax.convert_element_type(value, jnp.dtype(dtype)))
    if before.dtype.kind == "f" and is_float(dtype):
        return bool((np.isfinite(after) == np.isfinite(before)).all())
    return bool((after.astype(np.float64) == before.astype(np.float64)).all())
