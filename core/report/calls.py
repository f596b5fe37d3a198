"""What a report says of one call of `lax.scan`, of a preset or of a script: inputs, shapes, keys, negatives, time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, tree_util

from core.base.jaxprs import equations
from core.base.limits import LIMITS
from core.base.results import ScanResult
from core.base.text import fill
from core.contract.facts import ScanFacts
from core.contract.subject import ScanCall
from core.contract.trace import Raised
from core.inputs.scan_check import NEW_CARRY, YS, LeafRow, leaf_rows
from core.report.arrays import host_of, inputs_of
from core.report.case import RAISED, Leaf, negative, no_matter, not_run, shapes, type_text
from core.report.measure import Timed
from core.report.model import Criterion, Input, Name, Negative, Status
from core.runners.reference import loop_check
from core.runners.scan import is_key

LONGER = "{what}lax.scan is told one step more than xs has."
WIDER = "{what}The carry gains an axis in the step: its type has to stay."
NO_LENGTH = "{what}lax.scan is given neither xs nor a length."
TIMED = "{what}lax.scan over T = {length} steps, jitted"
LOOPED = "The step in a Python loop without jit, {steps} of {length} steps."
LOOP_OFF = "{path} at t = {t} is the first that differs."
LOOP_RAISED = "{type} was raised in the loop."
LOOP_SHAPE = "The shapes differ."
REUSED = "In the step a key is used more than once, or is the same at every step (jax.debug_key_reuse)."
SPLIT = "{count} of the keys in xs come more than once."
ONE_A_STEP = "{count} keys in xs, one a step; in the step each is used once (jax.debug_key_reuse)."
ONCE = "In the step no key is used twice (jax.debug_key_reuse)."
NO_KEYS = "No key goes in, and none is drawn from in the step."
#: Steps that are run to see whether a key is used again.
_FEW: Final = 2


def call_inputs(call: ScanCall, prefix: str = "", *, values: bool = False) -> Iterator[Input]:
    """Arrays of init, xs and the step's parameters."""
    yield from inputs_of(f"{prefix}init", call.init, values=values)
    yield from inputs_of(f"{prefix}xs", call.xs, call.axes.get("xs", ""), values=values)
    yield from inputs_of(f"{prefix}params", dict(call.params), values=values)


def call_shapes(facts: ScanFacts, result: ScanResult | None, prefix: str = "") -> Criterion:
    """`SHAPES`: the new carry has the types of init, and ys T of each y."""
    if result is not None:
        return shapes(call_leaves(facts, result, prefix))
    rows = [row for row in leaf_rows(facts) if row.role in (NEW_CARRY, YS)]
    if any(row.broken for row in rows):
        held = {leaf.path: leaf for leaf in facts.carry_in}
        return shapes(Leaf(prefix + row.path, str(row.type), _wanted(row, held)) for row in rows)
    error = facts.jax
    return not_run(Name.SHAPES, fill(RAISED, type=error.type if error is not None else ""))


def _wanted(row: LeafRow, held: dict[str, Any]) -> str:
    if not row.broken:
        return str(row.type)
    want = held.get(row.path)
    return str(want) if want is not None else "—"


def call_leaves(facts: ScanFacts, result: ScanResult, prefix: str = "") -> Iterator[Leaf]:
    """What came out of a scan, against the types of init and of one y."""
    for held, series in zip(facts.carry_in, result.carries, strict=True):
        if held.aval is not None and not held.aval.dtype.startswith("key<"):
            got = type_text(series.values.shape[1:], series.values.dtype.name)
            yield Leaf(prefix + held.path, got, type_text(held.aval.shape, held.aval.dtype))
    trace = facts.trace
    types = () if isinstance(trace, Raised) else trace.y_types()
    for y, leaf in zip(types, tree_util.tree_leaves(result.ys), strict=True):
        if y.aval is not None and not y.aval.dtype.startswith("key<"):
            want = type_text((result.length, *y.aval.shape), y.aval.dtype)
            yield Leaf(f"{prefix}ys{y.path.removeprefix('y')}", type_text(leaf.shape, leaf.dtype.name), want)


def call_loop(call: ScanCall, result: ScanResult) -> Criterion:
    """`LOOP`: the step in a Python loop."""
    found = loop_check(call, result)
    said = fill(LOOPED, steps=found.steps, length=found.length)
    leaves = (*found.carries, *found.ys)
    bound = max((leaf.tolerance for leaf in leaves), key=lambda t: (t.rtol, t.atol)).text if leaves else "exact"
    if found.ok:
        return Criterion(Name.LOOP, Status.PASS, found.largest, bound, said)
    if found.error is not None:
        off = fill(LOOP_RAISED, type=found.error.type)
    elif found.first is not None:
        off = fill(LOOP_OFF, path=found.first[1], t=found.first[0])
    else:
        off = fill(LOOP_SHAPE)
    return Criterion(Name.LOOP, Status.FAIL, found.largest, bound, f"{said} {off}")


# --- keys -----------------------------------------------------------------------------------------------------------


def call_keys(call: ScanCall) -> Criterion:
    """`KEYS`: the keys in xs differ, and the step uses none twice. Raises nothing for a call that ran."""
    given = [leaf for leaf in tree_util.tree_leaves((call.xs, call.init, dict(call.params))) if _is_key(leaf)]
    if not given and not _draws(call):
        return no_matter(Name.KEYS, fill(NO_KEYS))
    data = [host_of(leaf)[0] for leaf in tree_util.tree_leaves(call.xs) if _is_key(leaf)]
    rows = np.concatenate([one.reshape(-1, one.shape[-1]) for one in data]) if data else np.zeros((0, 2), np.uint32)
    again = len(rows) - len(np.unique(rows, axis=0))
    reused = _reuses(call)
    if again or reused:
        said = [fill(SPLIT, count=again)] if again else []
        said += [fill(REUSED)] if reused else []
        return Criterion(Name.KEYS, Status.FAIL, float(again + reused), "0", " ".join(said))
    return Criterion(Name.KEYS, Status.PASS, 0.0, "0", fill(ONE_A_STEP, count=len(rows)) if len(rows) else fill(ONCE))


def _is_key(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and is_key(leaf.dtype)


def _draws(call: ScanCall) -> bool:
    """Whether the step uses random numbers at all."""
    try:
        closed = jax.make_jaxpr(lambda i, x: _scan(call, i, x))(call.init, call.xs)
    except Exception:  # noqa: BLE001  # a call that ran traces; whatever else it is, no key is seen
        return False
    return any(eqn.primitive.name.startswith(("random_", "threefry")) for eqn in equations(closed))


def _reuses(call: ScanCall) -> bool:
    """Whether JAX's own tracking of typed keys finds one used again, over the first steps."""
    leaves = tree_util.tree_leaves(call.xs)
    short = call
    if leaves:
        few = min(_FEW, int(np.shape(leaves[0])[0]))
        xs = tree_util.tree_map(lambda leaf: leaf[:few], call.xs)
        short = replace(call, xs=xs, length=None if call.length is None else few)
    try:
        with jax.debug_key_reuse(True):
            jax.jit(lambda i, x: _scan(short, i, x))(short.init, short.xs)
    except jax.errors.KeyReuseError:
        return True
    except Exception:  # noqa: BLE001  # it ran as it was; the tracking itself has limits, and says nothing then
        return False
    return False


def _scan(call: ScanCall, init: Any, xs: Any) -> Any:
    return lax.scan(call.unshared_body, init, xs, length=call.length, reverse=bool(call.reverse), unroll=call.unroll)


# --- negatives and time ---------------------------------------------------------------------------------------------


def call_negatives(call: ScanCall, what: str = "") -> tuple[Negative, ...]:
    """Wrong uses of this very step and these very data. Nothing is computed: `lax.scan` looks at types first.

    Args:
        call: as it was made.
        what: said before each, ``Line 7: ``.
    """
    out = []
    length = next((np.shape(leaf)[0] for leaf in tree_util.tree_leaves(call.xs) if np.ndim(leaf)), None)
    if length is not None and not isinstance(call.xs, list):
        out.append(negative(fill(LONGER, what=what), "ValueError", lambda: _told(call, call.body, int(length) + 1)))
    if tree_util.tree_leaves(call.init):
        out.append(negative(fill(WIDER, what=what), "TypeError", lambda: _told(call, _widened(call), call.length)))
    if not out:
        out.append(negative(fill(NO_LENGTH, what=what), "ValueError", lambda: lax.scan(call.body, call.init, None)))
    return tuple(out)


def _widened(call: ScanCall) -> Any:
    def widened(carry: Any, x: Any) -> Any:
        try:
            new, y = call.body(carry, x)
        except Exception:  # noqa: BLE001  # a step that is broken itself: the carry gains its axis all the same
            new, y = carry, None
        same = str(tree_util.tree_structure(new)) == str(tree_util.tree_structure(carry))
        new = new if same else carry
        return tree_util.tree_map(lambda leaf: jnp.stack([leaf, leaf]), new), y

    return widened


def _told(call: ScanCall, body: Any, length: Any) -> Any:
    return jax.eval_shape(lambda: lax.scan(body, call.init, call.xs, length=length))


def call_timed(call: ScanCall, length: int, what: str = "") -> Timed:
    """The scan under jit, init and xs its arguments."""
    return Timed(fill(TIMED, what=what, length=length), lambda i, x: _scan(call, i, x), (call.init, call.xs))


def listed(inputs: Iterator[Input]) -> tuple[Input, ...]:
    """As many as a report lists."""
    most = LIMITS["report_inputs"].value
    return tuple(one for one, _ in zip(inputs, range(most), strict=False))
