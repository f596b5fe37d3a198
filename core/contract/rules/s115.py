"""Batch-major xs.

**What.** xs has the batch first, `(B, T, F)`: the scan walks over the examples, and the carry takes what it learned
from one example into the next. It runs whenever the shapes happen to fit, and then nothing raises.

**Why.** A scan walks along the leading axis, whatever that axis means. Time must come first: `(T, B, F)`.

**Bad**

    xs = jnp.ones((2, 5, 3))                               # two examples, five steps
    jax.lax.scan(step, jnp.zeros((5, 3)), xs)              # two steps, each over a whole example

**Good**

    jax.lax.scan(step, jnp.zeros((2, 3)), jnp.moveaxis(xs, 1, 0))

What proves it: the axes were declared (``BTF``), and the proof is that a change of one example moves the next one; or
the scan raises, its carry has as many rows as the scanned axis is long, and with the first two axes exchanged it runs.
Where both axes are equally long nothing can be proved (clean programs have that too): a note, and only for xs of three
or more axes, since a square `(T, F)` sequence is ordinary.

Source: jax.lax.scan, argument `xs`; flax.nnx.RNN, argument `time_major`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import tree_util

from core.base.avals import path_name
from core.base.places import Because
from core.base.results import ScanResult
from core.base.text import fill
from core.base.violation import Severity
from core.contract.facts import ScanFacts
from core.contract.repairs import map_leaf
from core.contract.repairs_xs import letters_of, xs_axes
from core.contract.rule import Finding, Jax, Measure, Rule, Stage
from core.contract.subject import ScanCall
from core.runners.scan import run_call

DECLARED = "{path} is declared {letters}, and a scan walks over the first axis: its {steps} steps are {axis}, not time."
PROVEN = (
    "{path} is {type}: the scan takes its first axis, {first}, for time, but {carry} has {first} rows, so that is the "
    "batch. With time first, {shape}, it runs."
)
EQUAL = (
    "{path} is {type} and {carry} has {size} rows: time and batch are equally long, so no shape tells them apart. The "
    "scan takes the first axis for time."
)
TITLE_EQUAL = "Time or batch first?"
BECAUSE = "the carry has {size} rows here"
LEAK = "One example was changed and the next one watched; this is how far it moved."
STEPS = "{path} is {length} steps long; this is how many steps the scan takes."
AXES = {"B": "examples", "F": "features", "H": "hidden units"}
OTHER_AXIS = "entries of axis {letter}"
WHY = "A scan walks along the leading axis, whatever it means: xs must be time-major, (T, B, F)."


def check(facts: ScanFacts) -> Iterator[Finding]:
    """At most one finding: declared axes first, then sizes that prove it, then the ambiguous case."""
    wrong = {path: at for path, at in letters_of(facts.call).items() if "T" in at and at[0] != "T"}
    if wrong:
        yield from _declared(facts, wrong)
    elif facts.jax is not None:
        yield from _proven(facts)
    else:
        yield from _equal(facts)


# --- declared -------------------------------------------------------------------------------------------------------


def _declared(facts: ScanFacts, wrong: dict[str, str]) -> Iterator[Finding]:
    fix = xs_axes(wrong)
    mended = fix.apply(facts.call)
    runs = isinstance(mended, ScanCall) and ScanFacts(mended).jax is None
    if facts.jax is not None and not runs:
        return  # what raises is another fault
    path, letters = next(iter(wrong.items()))
    moves = None if facts.jax is not None else _tried(_leak, facts.call)
    measure = None
    if facts.jax is None:
        leaks = moves is not None and runs and _tried(_leak, mended) is not None
        measure = Measure(LEAK, _leak) if leaks else _count_steps(facts, path, letters)
    severity = Severity.ERROR if facts.jax is not None else Severity.NOTE if moves == 0 else Severity.WARNING
    axis = AXES.get(letters[0]) or fill(OTHER_AXIS, letter=letters[0])
    yield Finding(
        message=fill(DECLARED, path=path, letters=letters, steps=facts.length, axis=axis),
        place=facts.places.find(f"xs:{path}", "xs", "scan"),
        got=tuple(t for t in facts.xs_types if t.path in wrong),
        repairs=(fix,),
        measure=measure,
        severity=severity,
        silent=severity is not Severity.ERROR,
        covers=tuple(wrong),
    )


def _tried(measure: Callable[[ScanCall], float], call: Any) -> float | None:
    try:
        return measure(call)
    except Exception:  # noqa: BLE001  # not every scan has examples to watch
        return None


def _count_steps(facts: ScanFacts, path: str, letters: str) -> Measure:
    shape = next(t.aval.shape for t in facts.xs_types if t.path == path and t.aval is not None)
    length = shape[letters.index("T")]
    return Measure(fill(STEPS, path=path, length=length), lambda call: run_call(call).length, float(length))


def _leak(call: ScanCall) -> float:
    """How far the second example moves when the first one visited is changed by one (truth values: turned over).

    Raises:
        ValueError: there are not two examples, or no result belongs to one of them.
    """
    letters = letters_of(call)
    path = next((p for p, at in letters.items() if "B" in at and "T" in at), None)
    if path is None:
        raise ValueError("no batch is declared")
    axis, before = letters[path].index("B"), run_call(call)
    one, two = before.order[:2] if axis == 0 else (0, 1)
    changed = replace(call, xs=map_leaf(call.xs, "xs", path, lambda leaf: _changed(leaf, axis, one)))
    after = run_call(changed)
    watch = _second_step if axis == 0 else _second_row(_batch(call, path, axis))
    pairs = list(zip(watch(before, two), watch(after, two), strict=True))
    if not pairs:
        raise ValueError("no result belongs to one example")
    return max(float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0.0)) for a, b in pairs)


def _batch(call: ScanCall, path: str, axis: int) -> int:
    flat = tree_util.tree_flatten_with_path(call.xs)[0]
    return int(next(np.shape(leaf)[axis] for p, leaf in flat if path_name("xs", p) == path))


def _changed(leaf: Any, axis: int, example: int) -> Any:
    """The leaf with this example changed."""
    array = jnp.asarray(leaf)
    index = (slice(None),) * axis + (example,)
    if array.dtype == bool:
        return array.at[index].set(~array[index])
    return array.at[index].add(jnp.asarray(1, array.dtype))


def _second_step(result: ScanResult, t: int) -> list[np.ndarray[Any, Any]]:
    """Where the steps are the examples: everything that comes out of the second step."""
    position = result.order.index(t)
    return [s.values[position + 1] for s in result.carries] + [s.values[position] for s in result.ys_series]


def _second_row(batch: int) -> Callable[[ScanResult, int], list[np.ndarray[Any, Any]]]:
    """Where the batch is inside the steps: row 1 of everything that has as many rows as there are examples."""

    def rows(result: ScanResult, example: int) -> list[np.ndarray[Any, Any]]:
        series = (*result.carries, *result.ys_series)
        return [s.values[:, example] for s in series if s.values.ndim > 1 and s.values.shape[1] == batch]

    return rows


# --- proven by sizes ------------------------------------------------------------------------------------------------


def _proven(facts: ScanFacts) -> Iterator[Finding]:
    """The scan raises, its carry has as many rows as xs is long, and with the first two axes exchanged it runs."""
    shapes = [t.aval.shape if t.aval is not None else () for t in facts.xs_types]
    fronts = {shape[:2] for shape in shapes}
    if not shapes or any(len(shape) < 2 for shape in shapes) or len(fronts) != 1:
        return
    first, second = fronts.pop()
    carry = next((t for t in facts.init_types if t.aval and t.aval.shape[:1] == (first,)), None)
    if first == second or carry is None:
        return
    fix = xs_axes({t.path: "BTFGHIJ"[: len(s)] for t, s in zip(facts.xs_types, shapes, strict=True) if len(s) < 8})
    mended = fix.apply(facts.call)
    if not isinstance(mended, ScanCall) or mended.init is not facts.call.init or ScanFacts(mended).jax is not None:
        return
    leaf, shape = facts.xs_types[0], shapes[0]
    swapped = (second, first, *shape[2:])
    yield Finding(
        message=fill(PROVEN, path=leaf.path, type=leaf, first=first, carry=carry.path, shape=str(swapped)),
        place=facts.places.find(f"xs:{leaf.path}", "xs", "scan"),
        because=Because(facts.places.find(f"init:{carry.path}"), fill(BECAUSE, size=first)),
        got=facts.xs_types,
        repairs=(fix,),
        severity=Severity.ERROR,
        silent=False,
    )


# --- ambiguous ------------------------------------------------------------------------------------------------------


def _equal(facts: ScanFacts) -> Iterator[Finding]:
    known = letters_of(facts.call)
    for leaf in facts.xs_types:
        shape = leaf.aval.shape if leaf.aval is not None else ()
        if len(shape) < 3 or shape[0] != shape[1] or shape[0] < 2 or leaf.path in known:
            continue
        carry = next((t for t in facts.carry_in if t.aval and t.aval.shape[:1] == (shape[0],)), None)
        if carry is None:
            continue
        yield Finding(
            message=fill(EQUAL, path=leaf.path, type=leaf, carry=carry.path, size=shape[0]),
            place=facts.places.find(f"xs:{leaf.path}", "xs", "scan"),
            because=Because(facts.places.find(f"init:{carry.path}"), fill(BECAUSE, size=shape[0])),
            got=(leaf,),
            severity=Severity.NOTE,
            title=fill(TITLE_EQUAL),
        )
        return


RULE = Rule(
    code="S115",
    name="batch-major-xs",
    title="Batch-major xs",
    severity=Severity.WARNING,
    jax=Jax.SILENT,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    beats=frozenset({"S103", "L303"}),
)
