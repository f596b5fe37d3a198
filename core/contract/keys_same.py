"""Keys that are the same at every step of a scan or of a loop: where each is used first, and which draws come of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jax import tree_util

from core.base.places import Span
from core.contract.keys import Flow, draws_at_all, flow_of, same_rows
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import LoopSite, ScanSite
from core.contract.source import Function
from core.contract.trace import StepTrace


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """The program that runs at every step of a scan or a loop.

    Attributes:
        site: the scan, or the loop.
        flow: what its draws depend on.
        still: positions of its inputs that are the same at every step.
        rows: of these, the ones that come with xs.
        count: how many steps; None where that is not known.
        depth: how many scans it is inside of.
    """

    site: ScanSite | LoopSite
    flow: Flow
    still: frozenset[int]
    rows: frozenset[int]
    count: int | None
    depth: int

    @property
    def function(self) -> Function | None:
        """The step, or the body, in the script."""
        return self.site.step if isinstance(self.site, ScanSite) else self.site.body


@dataclass(frozen=True, slots=True, eq=False)
class Same:
    """A key that is the same at every step, where it is used first, and which draws come of it."""

    body: Body
    used: Span
    draws: tuple[int, ...]

    @property
    def deps(self) -> frozenset[int]:
        """Positions of the program's inputs that these draws depend on: all of them stay the same."""
        none: frozenset[int] = frozenset()
        return none.union(*(self.body.flow.draws[i].deps for i in self.draws))


def same_keys(facts: ScriptFacts) -> list[Same]:
    """All such keys in order. Innermost loops come first: what is said of them is not said of the loops around them."""
    out: list[Same] = []
    done: set[Span] = set()
    for body in sorted(bodies(facts), key=lambda b: -b.depth):
        by_place: dict[Span, list[int]] = {}
        for i, draw in enumerate(body.flow.draws):
            if draw.deps <= body.still and not {draw.place, draw.used} & done:
                by_place.setdefault(draw.used, []).append(i)
        out += [Same(body, used, tuple(draws)) for used, draws in by_place.items()]
        done |= {
            span for used, draws in by_place.items() for span in (used, *(body.flow.draws[i].place for i in draws))
        }
    return sorted(out, key=lambda s: (s.used.line, s.used.col))


def bodies(facts: ScriptFacts) -> Iterator[Body]:
    """What runs more than once: the steps of the script's scans, and the bodies of its loops."""
    for scan in facts.scans:
        count, trace = scan.facts.length, scan.facts.trace
        if not isinstance(trace, StepTrace) or trace.pair is None:
            continue
        if (count or 0) > 1 and draws_at_all(trace.jaxpr):
            carried = len(tree_util.tree_leaves(scan.call.init))
            rows = frozenset(carried + i for i, x in enumerate(tree_util.tree_leaves(scan.call.xs)) if same_rows(x))
            flow = flow_of(trace.jaxpr, facts.source)
            yield Body(scan, flow, flow.still(carried) | rows, rows, count, _depth(facts, scan.parent))
    for loop in facts.record.loops:
        if (loop.length is None or loop.length > 1) and draws_at_all(loop.jaxpr):
            flow = flow_of(loop.jaxpr, facts.source)
            still = flow.still(len(flow.outputs), len(loop.inputs) - 1)
            yield Body(loop, flow, still, frozenset(), loop.length, _depth(facts, loop.scan))


def _depth(facts: ScriptFacts, parent: int | None) -> int:
    depth = 0
    while parent is not None:
        depth, parent = depth + 1, facts.scans[parent].parent
    return depth
