"""Two ways to run the same step disagree.

**What.** The scan and a plain Python loop over the same step give different values, beyond the tolerance of their
dtype. The rule says where they part first: two eager calls of one step, an eager and a jitted step, a jitted step and
the scan, or, every single step being equal, only the loop as a whole.

**Why.** A step must be a function of carry and x alone. `lax.scan` calls it once, to trace it; a loop calls it T times.
Whatever else it reads or draws (a counter, `np.random`, a list) is frozen in the scan.

**Bad**

    def step(carry, x):
        return carry + (2 * x if isinstance(x, jax.core.Tracer) else x), carry

**Good**

    def step(carry, x):
        return carry + x, carry

A warning where a single step disagrees by more than rounding can explain. A note where every single step agrees and the
loop as a whole does not: the step amplifies rounding (a chaotic map), and both results are as good. The tolerance is
the one that is shown beside every result: that of the least precise dtype the step computes in.

Source: jax.lax.scan, "the Python loop with the semantics of scan"; JAX documentation, "Pure functions".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import tree_util

from core.base.jaxprs import made_floats
from core.base.results import ScanResult
from core.base.text import fill
from core.base.tolerance import Difference, difference, tolerance_in
from core.base.violation import Severity
from core.contract.carry import return_place
from core.contract.facts import ScanFacts
from core.contract.precision import ran
from core.contract.rule import Finding, Jax, Measure, Rule, Stage
from core.contract.subject import ScanCall
from core.contract.trace import StepTrace
from core.contract.wording import element, show
from core.runners.reference import loop_check
from core.runners.scan import pair_of, run_call, to_device, to_host

type Array = np.ndarray[Any, Any]

AGAIN = "The step gives {one} and then {two} for {where} at t = {t}, called twice with the same carry and x."
EAGER_JIT = "{where} at t = {t} is {one} when the step runs by itself, and {two} when it is jitted."
JIT_SCAN = "{where} at t = {t} is {one} from the step alone, and {two} from the scan, out of the same carry and x."
LOOP = (
    "The loop and the scan part at t = {t} ({where}), by {largest} in all, though each single step agrees within "
    "{tolerance}: the step amplifies rounding, and one result is as good as the other."
)
RAISES = "The step runs in the scan and raises in a plain Python loop: {type}: {text}"
CLAIM = "Each step was run by itself from the scan's own carry; this is the largest difference from what the scan says."
WHY = "A step must depend on carry and x alone: the scan calls it once, to trace it, and a loop calls it at each t."


@dataclass(frozen=True, slots=True, eq=False)
class _Apart:
    """Where two ways to run one step part: template of its stage, leaf, element in words, t and the two values.

    `beyond_rounding`: the difference is more than the tolerance of the largest number in that step.
    """

    template: str
    path: str
    where: str
    t: int
    one: str
    two: str
    beyond_rounding: bool


def check(facts: ScanFacts) -> Iterator[Finding]:
    """At most one finding."""
    result = ran(facts)
    if result is None:
        return
    loop = loop_check(facts.call, result)
    if loop.ok:
        return
    if loop.error is not None:
        message = fill(RAISES, type=loop.error.type, text=loop.error.message)
        yield Finding(message=message, place=facts.places.find("step", "scan"), severity=Severity.NOTE)
        return
    computed = facts.once(_computed)
    apart = _single_steps(facts.call, result, loop.steps, computed)
    if apart is not None:
        fields = {"where": apart.where, "t": apart.t, "one": apart.one, "two": apart.two}
        yield Finding(
            message=fill(apart.template, **fields),
            place=return_place(facts, apart.path),
            measure=Measure(CLAIM, lambda call: _largest(call, run_call(call), loop.steps)),
            severity=Severity.WARNING if apart.beyond_rounding else Severity.NOTE,
        )
        return
    t, path = loop.first if loop.first is not None else (0, "carry")
    used = next(c.tolerance_text for c in (*loop.carries, *loop.ys) if c.path == path)
    message = fill(LOOP, t=t, where=path, largest=show(loop.largest), tolerance=used)
    yield Finding(message=message, place=return_place(facts, path), severity=Severity.NOTE, path=path)


def _computed(facts: ScanFacts) -> frozenset[str]:
    """The floating-point dtypes that the step computes in."""
    return made_floats(facts.trace.jaxpr) if isinstance(facts.trace, StepTrace) else frozenset()


def _difference(got: Array, want: Array, computed: frozenset[str]) -> Difference:
    """As far apart as the least precise dtype of the step allows."""
    return difference(got, want, tolerance_in(want.dtype, computed)[0])


def _single_steps(call: ScanCall, result: ScanResult, steps: int, computed: frozenset[str]) -> _Apart | None:
    """The first step whose value is not the same however that one step is run; None when all agree."""
    jitted = jax.jit(lambda carry, x: pair_of(call.body(carry, x)))
    for position in range(steps):
        carry, x = _arguments(call, result, position)
        eager = _leaves(pair_of(call.body(carry, x)))
        scanned = _scanned(result, position)
        if all(_difference(a, b, computed).within for a, b in zip(eager, scanned, strict=True)):
            continue
        again, jit = _leaves(pair_of(call.body(carry, x))), _leaves(jitted(carry, x))
        for template, one, two in ((AGAIN, eager, again), (EAGER_JIT, eager, jit), (JIT_SCAN, jit, scanned)):
            apart = _first(template, result, position, (one, two), computed)
            if apart is not None:
                return apart
    return None


def _arguments(call: ScanCall, result: ScanResult, position: int) -> tuple[Any, Any]:
    """Carry and x of one step, as the scan had them."""
    init, init_tree = tree_util.tree_flatten(call.init)
    xs, xs_tree = tree_util.tree_flatten(call.xs)
    carry = [to_device(s.values[position], leaf) for s, leaf in zip(result.carries, init, strict=True)]
    x = [to_device(s.values[position], leaf) for s, leaf in zip(result.xs, xs, strict=True)]
    return tree_util.tree_unflatten(init_tree, carry), tree_util.tree_unflatten(xs_tree, x)


def _leaves(pair: Any) -> list[Array]:
    return [to_host(leaf) for leaf in tree_util.tree_leaves(pair)]


def _scanned(result: ScanResult, position: int) -> list[Array]:
    carries = [s.values[position + 1] for s in result.carries]
    return carries + [s.values[position] for s in result.ys_series]


def _first(
    template: str, result: ScanResult, position: int, runs: tuple[list[Array], list[Array]], computed: frozenset[str]
) -> _Apart | None:
    """The first leaf beyond its tolerance between two runs of one step."""
    names = [s.path for s in (*result.carries, *result.ys_series)]
    for path, a, b in zip(names, *runs, strict=True):
        apart = _difference(a, b, computed)
        if apart.within:
            continue
        index = apart.first if apart.first is not None else ()
        values = (show(a[index]), show(b[index])) if a.shape == b.shape else (str(a.shape), str(b.shape))
        real = template == AGAIN or (not _rounds_to_whole(b, computed) and _beyond_rounding(apart, result, position))
        return _Apart(template, path, element(path, index), result.order[position], *values, real)
    return None


def _rounds_to_whole(leaf: Array, computed: frozenset[str]) -> bool:
    """Whether whole numbers (or truth values) come out of floats that are coarser than float32.

    One rounding more or less decides a whole unit there: the index of a largest logit, a quantised level.
    """
    return leaf.dtype.kind in "iub" and bool(tolerance_in(np.float32, computed)[1])


def _beyond_rounding(apart: Difference, result: ScanResult, position: int) -> bool:
    """Whether the difference exceeds the tolerance at the largest number of that step.

    A difference of two large numbers is small and keeps their rounding: that is no disagreement of the paths.
    """
    leaves = [s.values[position] for s in (*result.carries, *result.xs)] + _scanned(result, position)
    sizes = [np.abs(v[np.isfinite(v)]).max(initial=0) for v in leaves if v.dtype.kind in "fiu" and v.size]
    return apart.largest > apart.tolerance.atol + apart.tolerance.rtol * max((float(s) for s in sizes), default=0.0)


def _largest(call: ScanCall, result: ScanResult, steps: int) -> float:
    found = 0.0
    for position in range(min(steps, result.length)):
        alone = _leaves(pair_of(call.body(*_arguments(call, result, position))))
        pairs = zip(alone, _scanned(result, position), strict=True)
        found = max(found, *(difference(a, b).largest for a, b in pairs))
    return found


RULE = Rule(
    code="N503",
    name="paths-disagree",
    title="Two ways to run the same step disagree",
    severity=Severity.WARNING,
    jax=Jax.SILENT,
    stage=Stage.LATE,
    why=WHY,
    check=check,
)
