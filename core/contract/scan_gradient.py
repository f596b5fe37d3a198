"""N502 on a scan through which a page takes gradients: the value is finite, a number of the gradient is not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import tree_util

from core.base.results import ScanResult
from core.base.scan_gradients import ScanGradient, WildGradient
from core.base.text import fill
from core.contract import repairs
from core.contract.facts import ScanFacts
from core.contract.grads import Born, births
from core.contract.rule import Finding, Measure
from core.contract.source import Source
from core.contract.subject import ScanCall
from core.contract.trace import Raised
from core.contract.wording import element, show
from core.runners.scan import to_device
from core.runners.scan_gradients import is_floating, scan_gradient

AT_STEP = (
    "The gradient with respect to {leaf} at t = {t} is {value}, though the value is finite ({number}). Of its {total} "
    "numbers {count} are NaN or infinite; the backward pass met this one first."
)
AT_INIT = (
    "The gradient with respect to {leaf} is {value}, though the value is finite ({number}). Of its {total} numbers {count} "
    "are NaN or infinite."
)
CAUSE = " Differentiating step {t}, {operation}({numbers}) is {output}."
CAUSE_ALONE = " Differentiating step {t}, {operation} gives {output}."
NAN, INFINITE = "NaN", "infinite"
TITLE = "Guard what goes in as well: a second where"
CLAIM = "The gradient was computed and its numbers were counted: this many are NaN or infinite."


def check(facts: ScanFacts) -> Iterator[Finding]:
    """At most one: the first such number that the backward pass meets."""
    call = facts.call
    if call.gradient is None or isinstance(facts.trace, Raised) or facts.jax is not None:
        return
    try:
        found = scan_gradient(call, call.gradient)
    except Exception:  # noqa: BLE001  # a scan without a gradient has no gradient that is wrong
        return
    if found.behind_a_value and found.first is not None:
        yield _finding(facts, found, found.first)


def _finding(facts: ScanFacts, found: ScanGradient, first: WildGradient) -> Finding:
    message = fill(
        AT_INIT if first.t is None else AT_STEP,
        leaf=element(first.path, first.index),
        value=NAN if np.isnan(first.value) else INFINITE,
        number=show(found.value),
        count=found.wild,
        total=sum(0 if leaf.values is None else leaf.values.size for leaf in found.leaves),
        t=first.t,
    )
    return Finding(
        message=message + _cause(facts, first),
        place=facts.places.find("step", "return", "scan"),
        repairs=tuple(replace(one, title=fill(TITLE)) for one in repairs.right_step(facts.call)),
        measure=Measure(CLAIM, _count),
        path="gradient",
    )


def _count(call: ScanCall) -> float:
    return 0.0 if call.gradient is None else float(scan_gradient(call, call.gradient).wild)


# --- the operation --------------------------------------------------------------------------------------------------


def _cause(facts: ScanFacts, first: WildGradient) -> str:
    """The operation that made it, where the derivative of that one step, carried out by operations, shows it."""
    run = facts.run
    if isinstance(run, Raised):
        return ""
    t = run.order[0] if first.t is None else first.t
    try:
        born = _born(facts.call, run, t)
    except Exception:  # noqa: BLE001  # a step that cannot be carried out once more is only not explained
        return ""
    if born is None:
        return ""
    numbers = ", ".join(show(n) for n in born.inputs)
    return fill(
        CAUSE if numbers else CAUSE_ALONE,
        t=t,
        operation=born.operation,
        numbers=numbers,
        output=NAN if np.isnan(born.output) else show(born.output),
    )


def _born(call: ScanCall, run: ScanResult, t: int) -> Born | None:
    """The first such operation in the gradient of the sum of all that step t returns."""
    position = run.order.index(t)
    likes, tree = tree_util.tree_flatten((call.init, call.xs))
    read = [s.values[position] for s in (*run.carries, *run.xs)]
    given = [to_device(v, like) for v, like in zip(read, likes, strict=True)]
    chosen = [is_floating(leaf) for leaf in given]

    def number(moved: list[Any]) -> Any:
        ways = iter(moved)
        leaves = [next(ways) if wanted else leaf for leaf, wanted in zip(given, chosen, strict=True)]
        new = call.body(*tree_util.tree_unflatten(tree, leaves))
        return sum(jnp.sum(leaf) for leaf in tree_util.tree_leaves(new) if is_floating(leaf))

    moved = [leaf for leaf, wanted in zip(given, chosen, strict=True) if wanted]
    program = jax.make_jaxpr(jax.grad(number))(moved)
    return next((born for born in births(program, moved, Source("")) if born is not None), None)
