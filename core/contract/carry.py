"""What the rules of the carry share: its leaves in and out side by side, and how they are named."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from core.base.avals import LeafType
from core.base.places import Because, Place
from core.base.text import fill
from core.contract.facts import ScanFacts
from core.contract.trace import Raised, same_structure

NAMED = "{path} (`{own}` in the step)"
BECAUSE = "init set {expected} here"
BECAUSE_WEAK = "init set {given} here, weakly typed: the scan made it {expected}"


def carry_pairs(facts: ScanFacts) -> Iterator[tuple[LeafType, LeafType, LeafType]]:
    """Each carry leaf as init gave it, as the scan holds it, as the step returned it; nothing when the trees differ."""
    trace = facts.trace
    if isinstance(trace, Raised) or trace.pair is None or not same_structure(facts.call.init, trace.pair[0]):
        return
    yield from zip(facts.init_types, facts.carry_in, trace.carry_types(), strict=True)


def named(facts: ScanFacts, path: str) -> str:
    """A carry path for a sentence, with the learner's own name where the step's first parameter has another one."""
    own = own_name(facts.call.body)
    return path if own in (None, "carry") else fill(NAMED, path=path, own=f"{own}{path.removeprefix('carry')}")


def own_name(step: Callable[..., Any]) -> str | None:
    """The name of the step's first parameter; None when it has none worth saying (``_``, ``*args``)."""
    try:
        parameters = list(inspect.signature(step).parameters.values())
    except (TypeError, ValueError):
        return None
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if not parameters or parameters[0].kind not in positional or not parameters[0].name.strip("_"):
        return None
    return parameters[0].name


def return_place(facts: ScanFacts, path: str) -> Place | None:
    """Where the new carry's leaf is returned."""
    return facts.places.find(f"return:{path}", "return", "step", "scan")


def init_because(facts: ScanFacts, given: LeafType, held: LeafType, *roles: str) -> Because:
    """Init as the place where the expectation was set; `roles` are tried before ``init`` itself."""
    weak = given.aval is not None and held.aval is not None and given.aval.dtype != held.aval.dtype
    text = fill(BECAUSE_WEAK if weak else BECAUSE, given=given, expected=held)
    return Because(facts.places.find(*roles, f"init:{held.path}"), text)
