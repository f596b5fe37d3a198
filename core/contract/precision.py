"""What a narrow dtype lost, element by element: motion that vanished, whole numbers that wrapped.

Rounding alone is no fault: every float32 sum rounds, and clean programs are full of float64 arrays that became
float32. What counts here is a carry that *lost its motion*. The thresholds, and what each of them keeps out:

- a step is *unresolved* when the increment it made is off by more than a quarter of the increment that 64 bits make
  from the very same carry (below two units in the last place). Keeps out chaotic maps: they leave their 64-bit path,
  but every single step of theirs is resolved.
- `RUN` such steps one after the other. Keeps out a lone rounding at a turning point.
- the carry's displacement is off by more than a tenth of the whole way that 64 bits travel. Keeps out everything that
  converges: an average at rest stops moving in float32 too, but it has come all the way before.
- and off by at least one unit in the last place. Keeps out a start at the fixed point, where all motion is noise. Where
  init itself was given as float64, less counts too (float64 would have kept it), if 64 bits move on steadily: one last
  jump onto a fixed point is no motion.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import tree_util

from core.base.jaxprs import EXACT, equations
from core.base.results import ScanResult, Series
from core.contract.facts import ScanFacts
from core.contract.program import depends, operations, reached
from core.contract.trace import Raised, StepTrace
from core.runners.wide import wide_path, wide_steps

type Array = np.ndarray[Any, Any]

#: Unresolved steps in a row (all of them, where there are fewer).
RUN = 3
#: Relative error of one increment from which a step counts as unresolved.
UNRESOLVED = 0.25
#: Part of the whole way that must be missing.
MISSING_WAY = 0.1
#: Off by this part of the carry is enough where init was given as float64: far above the noise of float64 itself.
ASKED_OFF = 1e-10
#: An increment of at most this many units in the last place makes a leaf worth the look in 64 bits.
SUSPECT_ULPS = 4.0

#: Operations on whole numbers that are used to mix bits: wrapping is what they are for.
MIXING = frozenset("xor shift_left shift_right_logical shift_right_arithmetic population_count clz".split())
#: Operations that draw random bits: 64 bits draw others, so nothing can be compared.
RANDOM = ("random_", "threefry", "rng_")
#: A whole number beyond this, out of one step in 64 bits, is a mark (`iinfo(dtype).max`), not a result: a product of two
#: int32 numbers is never larger.
MARK = 1 << 62
#: A whole-number factor from which a product is taken for a generator of pseudo-random numbers.
MIXING_FACTOR = 1 << 16
#: An odd whole-number factor of the carry from which a recurrence is taken for a hash, which wraps on purpose.
HASH_FACTOR = 31


@dataclass(frozen=True, slots=True, eq=False)
class Lost:
    """One element of a carry leaf that lost its motion.

    Attributes:
        path, index: the leaf and the element in it.
        position: of the first of the unresolved steps.
        steps: how many steps are unresolved.
        stood: the carry there.
        wanted, made: the increment in 64 bits, and the one that was made.
        final, wide_final: the element at the end, here and in 64 bits.
    """

    path: str
    index: tuple[int, ...]
    position: int
    steps: int
    stood: float
    wanted: float
    made: float
    final: float
    wide_final: float


@dataclass(frozen=True, slots=True, eq=False)
class Wrapped:
    """One whole number that did not fit.

    Attributes:
        path, index: leaf (of the carry or of y) and element.
        position: of the first step where it happens.
        exact, got: what it should be, and what the narrow dtype made of it.
        dtype: the narrow dtype.
        count: how many numbers of this leaf did not fit.
        outside: False when `exact` itself would fit, and only a number on the way to it did not.
        hashed: the leaf looks like a hash (31 times itself plus something), which wraps on purpose.
    """

    path: str
    index: tuple[int, ...]
    position: int
    exact: int
    got: int
    dtype: str
    count: int
    outside: bool
    hashed: bool = False


def ran(facts: ScanFacts) -> ScanResult | None:
    """The result, where the scan ran over at least one step; None otherwise."""
    if facts.jax is not None or isinstance(facts.run, Raised) or facts.run.length == 0:
        return None
    return facts.run


def dtype_of(series: Series) -> str:
    """The dtype name of a leaf of a result."""
    return series.type.aval.dtype if series.type.aval is not None else ""


def is_float(dtype: str) -> bool:
    """Whether these are real floating-point numbers."""
    return dtype.startswith(("float", "bfloat"))


def is_int(dtype: str) -> bool:
    """Whether these are whole numbers (not truth values)."""
    return dtype.startswith(("int", "uint"))


def largest(dtype: str) -> float:
    """The largest finite number of a floating-point dtype."""
    info: Any = jnp.finfo(dtype)  # type: ignore[no-untyped-call]
    return float(info.max)


def bounds(dtype: str) -> tuple[int, int]:
    """The smallest and the largest number of an integer dtype."""
    info: Any = jnp.iinfo(dtype)  # type: ignore[no-untyped-call]
    return int(info.min), int(info.max)


def ulp(values: Array, dtype: str) -> Array:
    """One unit in the last place of each value, as float64; 0 at 0."""
    size = np.abs(values.astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.floor(np.log2(np.where(np.isfinite(size), size, 0.0)))
    info: Any = jnp.finfo(dtype)  # type: ignore[no-untyped-call]
    unit: Array = np.where(exponent > -1000, np.exp2(np.maximum(exponent, -1000)), 0.0) * float(info.eps)
    return unit


# --- motion ---------------------------------------------------------------------------------------------------------


def lost_motion(facts: ScanFacts) -> tuple[Lost, ...]:
    """Float leaves of the carry that lost their motion, at most one element each (the one that lost most)."""
    result = ran(facts)
    if result is None or not isinstance(facts.trace, StepTrace):
        return ()
    used = operations(facts.trace.jaxpr)
    suspects = [i for i, series in enumerate(result.carries) if is_float(dtype_of(series)) and _stalls(series)]
    if not suspects or used <= EXACT or any(name.startswith(RANDOM) for name in used):
        return ()
    given = tree_util.tree_leaves(facts.call.init)
    asked = [is_host_float64(leaf) for leaf in given]
    program = facts.trace.jaxpr
    try:
        path = wide_path(facts.call, result, program).carries
        suspects = [i for i in suspects if _goes_elsewhere(result.carries[i], path[i], asked[i]).any()]
        if not suspects:  # all of it comes to rest where 64 bits do: its steps need no look
            return ()
        steps = wide_steps(facts.call, result, program).carries
    except Exception:  # noqa: BLE001  # a step that does not run in 64 bits cannot be compared
        return ()
    found = (_lost(result.carries[i], steps[i], path[i], asked[i]) for i in suspects)
    return tuple(f for f in found if f is not None)


def _stalls(series: Series) -> bool:
    """Whether some element moves by next to nothing for `RUN` steps on end, away from 0."""
    values = series.values.astype(np.float64)
    with np.errstate(invalid="ignore"):
        moves = np.abs(np.diff(values, axis=0))
    unit = ulp(series.values[:-1], dtype_of(series))
    return bool(_in_a_row((moves <= SUSPECT_ULPS * unit) & (unit > 0)).any())


def _in_a_row(marks: Array) -> Array:
    """Per element, whether `RUN` marks (or all, where there are fewer) stand one after the other along axis 0."""
    need = min(RUN, len(marks))
    streak = np.zeros(marks.shape[1:], int)
    best = streak.copy()
    for row in marks:
        streak = np.where(row, streak + 1, 0)
        best = np.maximum(best, streak)
    return best >= need


def is_host_float64(leaf: Any) -> bool:
    """Whether a leaf was explicitly given as float64 by the host: NumPy's, not a Python number."""
    return isinstance(leaf, np.ndarray | np.generic) and leaf.dtype == np.float64


def _missing(series: Series, path: Array) -> Array:
    """Per element, by how much the displacement is off at most."""
    narrow = series.values.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        missing: Array = np.abs((narrow - narrow[0]) - (path - path[0])).max(axis=0)
    return missing


def _goes_elsewhere(series: Series, path: Array, asked: bool) -> Array:
    """Per element, whether 64 bits go somewhere else by more than what keeps clean programs out (see the module)."""
    missing = _missing(series, path)
    with np.errstate(invalid="ignore", over="ignore"):
        moves = np.abs(np.diff(path, axis=0))
    unit = ulp(np.abs(series.values.astype(np.float64)).max(axis=0), dtype_of(series))
    # beyond the largest number it is a mark (`finfo(dtype).max`), or N501's
    held = np.abs(path).max(axis=0) <= largest(dtype_of(series))
    seen = missing >= unit
    if asked and dtype_of(series) == "float32":
        steady = (moves >= moves.max(axis=0) / 2).sum(axis=0) >= min(RUN, len(moves))
        seen |= steady & (missing >= ASKED_OFF * np.abs(path).max(axis=0))
    elsewhere: Array = (missing > MISSING_WAY * moves.sum(axis=0)) & seen & (unit > 0) & held
    return elsewhere


def _lost(series: Series, steps: Array, path: Array, asked: bool) -> Lost | None:
    narrow, missing = series.values.astype(np.float64), _missing(series, path)
    with np.errstate(invalid="ignore", over="ignore"):
        wanted, made = steps.astype(np.float64) - narrow[:-1], np.diff(narrow, axis=0)
        unresolved = (wanted != 0) & (np.abs(wanted - made) > UNRESOLVED * np.abs(wanted))
    bad = _in_a_row(unresolved) & _goes_elsewhere(series, path, asked)
    if not bad.any():
        return None
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(np.where(bad, missing, -1.0))), bad.shape))
    marks = unresolved[(slice(None), *index)]
    at = int(np.argmax(marks))
    here = (at, *index)
    return Lost(
        series.path,
        index,
        at,
        int(marks.sum()),
        float(narrow[here]),
        float(wanted[here]),
        float(made[here]),
        float(narrow[(-1, *index)]),
        float(path[(-1, *index)]),
    )


# --- whole numbers --------------------------------------------------------------------------------------------------


def wrapped(facts: ScanFacts) -> tuple[Wrapped, ...]:
    """Whole-number leaves of the carry and of y that wrapped, each with its first number that did not fit."""
    result = ran(facts)
    if result is None or not isinstance(facts.trace, StepTrace):
        return ()
    leaves, count, program = (*result.carries, *result.ys_series), len(result.carries), facts.trace.jaxpr
    whole = [i for i, series in enumerate(leaves) if is_int(dtype_of(series))]
    used = operations(program)
    if not whole or not used - EXACT or any(name.startswith(RANDOM) for name in used):
        return ()
    mixed = _mixed(program, count)
    whole = [i for i in whole if not mixed[i]]
    if not whole or not _near_the_edge(result, used):
        return ()
    try:
        steps = wide_steps(facts.call, result, program)
    except Exception:  # noqa: BLE001  # a step that does not run in 64 bits cannot be compared
        return ()
    exact = (*steps.carries, *steps.ys)
    pure = all(is_int(d) or d == "bool" for d in _dtypes(program))
    hashed = _hashed(program, count)
    found: list[Wrapped] = []
    for i in whole:
        got = leaves[i].values[1:] if i < count else leaves[i].values
        first = _wrapped(leaves[i], got, exact[i], pure)
        told = first is not None and any(f.position <= first.position for f in found)
        if first is not None and (i < count or not told):  # a y that wraps along with the carry is the same fault
            found.append(replace(first, hashed=hashed[i]))
    return tuple(found)


def _mixed(program: Any, carried: int) -> list[bool]:
    """For each output, whether bits are mixed in it on purpose (a hash, a checksum, a generator), or in what it feeds.

    A test of some bits (`x & 1`) and a division (`x >> 1`) mix nothing.
    """
    outputs = list(reached(program, _mixes, carried))
    xors = {id(e) for e in equations(program) if e.primitive.name == "xor" and is_int(_dtype(e.outvars[0]))}
    for i in range(carried):
        if xors and xors & depends(program, {i})[0]:
            outputs[i] = True
    return outputs


def _mixes(eqn: Any) -> bool:
    """Whether an operation mixes bits."""
    name = eqn.primitive.name
    if not any(is_int(_dtype(v)) for v in eqn.invars):
        return False
    numbers = _numbers(eqn)
    if name == "shift_right_arithmetic":
        return not numbers
    if name == "and":
        return not any(n >= 0 for n in numbers)
    return name in MIXING or name == "or" or (name == "mul" and any(abs(n) >= MIXING_FACTOR for n in numbers))


def _hashed(program: Any, carried: int) -> list[bool]:
    """For each output, whether it is a recurrence as hashes are: the carry times an odd constant of 31 or more, plus some.

    A remainder of it wants the exact number (`16807 * c % 2147483647`), so that is none.
    """
    fed, _ = depends(program, range(carried))
    made = {v: e for e in equations(program) for v in e.outvars}

    def product(atom: Any) -> bool:
        eqn = None if hasattr(atom, "val") else made.get(atom)
        factors = () if eqn is None or eqn.primitive.name != "mul" or id(eqn) not in fed else _numbers(eqn)
        return any(n >= HASH_FACTOR and n % 2 for n in factors)

    def hashes(eqn: Any) -> bool:
        return eqn.primitive.name == "add" and is_int(_dtype(eqn.outvars[0])) and any(map(product, eqn.invars))

    def reduces(eqn: Any) -> bool:
        return eqn.primitive.name == "rem" and id(eqn) in fed

    pairs = zip(reached(program, hashes, carried), reached(program, reduces, carried), strict=True)
    return [hashed and not reduced for hashed, reduced in pairs]


def _numbers(eqn: Any) -> list[int]:
    """The whole numbers that are written into an operation."""
    return [int(v.val) for v in eqn.invars if hasattr(v, "val") and np.ndim(v.val) == 0 and is_int(_dtype(v))]


def _dtype(atom: Any) -> str:
    return str(getattr(atom.aval, "dtype", ""))


def _near_the_edge(result: ScanResult, used: frozenset[str]) -> bool:
    """Whether numbers got so large (or a product could) that a look in 64 bits is worth its price."""
    additive = used <= EXACT | {"add", "sub", "reduce_sum", "cumsum"}
    for series in (*result.carries, *result.xs, *result.ys_series):
        if not is_int(dtype_of(series)) or not series.values.size:
            continue
        _, top = bounds(dtype_of(series))
        edge = top // 4 if additive else int(top**0.5)
        low, high = int(series.values.min()), int(series.values.max())
        if max(high, -low) >= edge or (low == 0 and dtype_of(series).startswith("uint")):
            return True
    return False


def _dtypes(jaxpr: Any) -> set[str]:
    return {str(v.aval.dtype) for e in equations(jaxpr) for v in (*e.invars, *e.outvars) if hasattr(v.aval, "dtype")}


def _wrapped(series: Series, got: Array, exact: Array, pure: bool) -> Wrapped | None:
    """`pure`: no floats in the step, so that any difference is an overflow, also one on the way to the result."""
    if exact.dtype.kind not in "iu":
        return None
    least, most = bounds(dtype_of(series))
    bad = (exact < least) | (exact > most)
    if pure:
        bad |= exact != got.astype(np.int64)
    bad &= (exact <= MARK) & (exact >= -MARK)
    if not bad.any():
        return None
    here = tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
    number = int(exact[here])
    outside = not least <= number <= most
    name, count = dtype_of(series), int(bad.sum())
    return Wrapped(series.path, here[1:], here[0], number, int(got[here]), name, count, outside)
