"""What a scan would cost, counted in its program before it runs: numbers computed, over all its steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.base.limits import LIMITS
from core.base.text import fill
from core.contract.engine import Found
from core.contract.facts import ScanFacts
from core.contract.rule import Finding, all_rules
from core.contract.trace import StepTrace

MESSAGE = "The scan would compute about {asked} numbers; this playground's limit `{name}` is {allowed}."


class OverBudget(BaseException):
    """Ends a script whose next scan costs too much. No `Exception`: a script's own `except` is not to catch it."""


def over_budget(facts: ScanFacts, budget: int | None) -> Found | None:
    """The finding (X601) that a scan costs more than the budget; None when it does not, or when there is none."""
    length, trace = facts.length, facts.trace
    if budget is None or length is None or not isinstance(trace, StepTrace):
        return None
    cost = length * work(trace.jaxpr)
    rule = next((rule for rule in all_rules() if rule.code == "X601"), None)
    if cost <= budget or rule is None:
        return None
    message = fill(MESSAGE, asked=f"{cost:,}", name=LIMITS["work"].name, allowed=f"{budget:,}")
    return Found(rule, Finding(message, facts.places.find("length", "xs", "scan"), silent=False))


def work(program: Any) -> int:
    """Numbers that a program computes: the elements of every result, those of a matrix product once per term.

    Loops inside count as often as they run; of one whose length nobody knows (`while_loop`) a single round.
    """
    jaxpr = getattr(program, "jaxpr", program)
    return sum(_equation(eqn) for eqn in jaxpr.eqns)


def _equation(eqn: Any) -> int:
    own = sum(_size(v) for v in eqn.outvars)
    if eqn.primitive.name == "dot_general":
        (contracted, _), _ = eqn.params["dimension_numbers"]
        shape = eqn.invars[0].aval.shape
        own *= int(np.prod([shape[i] for i in contracted], dtype=np.int64)) if contracted else 1
    inner = [work(p) for p in _programs(eqn.params)]
    if not inner:
        return own
    if eqn.primitive.name == "cond":
        return max(inner)
    return sum(inner) * int(eqn.params.get("length", 1) if eqn.primitive.name == "scan" else 1)


def _programs(params: Any) -> list[Any]:
    """The programs among an equation's parameters."""
    values = (v for value in params.values() for v in (value if isinstance(value, tuple | list) else (value,)))
    return [value for value in values if hasattr(getattr(value, "jaxpr", value), "eqns")]


def _size(variable: Any) -> int:
    shape = getattr(variable.aval, "shape", ())
    return int(np.prod(shape, dtype=np.int64)) if shape else 1
