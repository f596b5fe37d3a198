"""Facts about a whole script: what rules on ``script`` ask for. All of it is in the record or in the tree.

    def check(facts: ScriptFacts) -> Iterator[Finding]:
        for call in facts.calls_of("numpy.random."):           # every np.random.… that the script called
            if call.scan is not None:                          # … while a step was being traced
                yield Finding(message=…, place=facts.span(call.node), repairs=(facts.rewrite(TITLE, call.node, "…"),))

A rule that wants the exception looks at `facts.failure`: it is None when a scan's or a cell's rule already explains it.
A text repair is made by `facts.rewrite` or `facts.rewrites`: the Doctor applies it, runs the whole edited script again,
and drops it unless the fault is gone and nothing new is broken.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from core.base.avals import Aval, aval_of
from core.base.places import Places, Span
from core.base.violation import TextEdit
from core.contract.record import CellEvents
from core.contract.rule import Repair
from core.contract.script_record import Called, Failure, Leak, ScanSite, ScriptRecord, Seen
from core.contract.source import FUNCTIONS, Function, Source
from core.contract.subject import Subject
from core.contract.trace import Raised


class ScriptFacts:
    """Facts about a `ScriptRecord`."""

    on = "script"

    def __init__(self, record: ScriptRecord) -> None:
        self.record = record
        self.source: Source = record.source
        self._once: dict[Callable[[ScriptFacts], Any], Any] = {}

    def once[T](self, work: Callable[[ScriptFacts], T]) -> T:
        """What `work(self)` gives, worked out once: for what several rules ask of the same facts."""
        if work not in self._once:
            self._once[work] = work(self)
        result: T = self._once[work]
        return result

    @property
    def subject(self) -> Subject:
        """What these facts are about."""
        return self.record

    # --- how it ended -----------------------------------------------------------------------------------------------

    @property
    def failure(self) -> Failure | None:
        """The exception that ended the script, unless a scan's or a cell's rule explains it already."""
        failure = self.record.failure
        return None if failure is None or failure.explained else failure

    @property
    def jax(self) -> Raised | None:
        """The same exception as `engine` wants it (`Violation.jax_said` is its text)."""
        return None if self.failure is None else Raised(self.failure.error)

    @cached_property
    def places(self) -> Places:
        """``scan``: where the script failed."""
        return Places({} if self.record.failure is None else {"scan": self.record.failure.span})

    @property
    def finished(self) -> bool:
        """Whether the script ran to its end."""
        return self.record.failure is None

    # --- what it did ------------------------------------------------------------------------------------------------

    @property
    def scans(self) -> list[ScanSite]:
        """Its scans, in the order of their calls; each with `ScanFacts`."""
        return self.record.scans

    @property
    def cells(self) -> CellEvents:
        """Cells outside scans (those inside are in each ``scan.facts.cells``)."""
        return self.record.events

    @property
    def leaks(self) -> tuple[Leak, ...]:
        """Tracers that outlived their traces."""
        return tuple(self.record.leaks)

    @property
    def names(self) -> dict[str, Any]:
        """What its global names stood for when it ended."""
        return dict(self.record.names)

    def calls_of(self, *names: str) -> Iterator[Called]:
        """Calls by public name, in order; a name that ends in a dot stands for all below it (``jax.random.``)."""
        for call in self.record.calls:
            if call.name is not None and any(
                call.name.startswith(n) if n.endswith(".") else call.name == n for n in names
            ):
                yield call

    @cached_property
    def _called(self) -> dict[ast.AST, list[Called]]:
        out: dict[ast.AST, list[Called]] = {}
        for call in self.record.calls:
            out.setdefault(call.node, []).append(call)
        return out

    def calls_at(self, node: ast.AST) -> list[Called]:
        """The calls that were made at one call expression."""
        return self._called.get(node, [])

    # --- values of expressions --------------------------------------------------------------------------------------

    @cached_property
    def _seen(self) -> dict[ast.AST, list[Seen]]:
        out: dict[ast.AST, list[Seen]] = {}
        for seen in self.record.seen:
            out.setdefault(seen.node, []).append(seen)
        return out

    def seen(self, node: ast.AST) -> list[Seen]:
        """The recorded evaluations of an expression, in order; constants and displays are not recorded."""
        return self._seen.get(node, [])

    def value(self, node: ast.AST, default: Any = None) -> Any:
        """The last recorded value of an expression (a constant's own); `default` when it was never evaluated."""
        if isinstance(node, ast.Constant):
            return node.value
        seen = self.seen(node)
        return seen[-1].value if seen else default

    def aval(self, node: ast.AST) -> Aval | None:
        """The type of an expression's last value; None when it is no array or was never evaluated."""
        if not isinstance(node, ast.Constant) and not self.seen(node):
            return None
        return aval_of(self.value(node))

    @cached_property
    def _first(self) -> dict[int, Seen]:
        out: dict[int, Seen] = {}
        for seen in self.record.seen:
            out.setdefault(id(seen.value), seen)
        return out

    def born(self, value: Any) -> Seen | None:
        """The evaluation that first gave this very object."""
        return self._first.get(id(value))

    def uses(self, value: Any) -> list[Seen]:
        """Every recorded evaluation that gave this very object, in order."""
        return [seen for seen in self.record.seen if seen.value is value]

    # --- the tree ---------------------------------------------------------------------------------------------------

    def span(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> Span:
        """Where a node stands."""
        return self.source.span(node)

    def nodes[N: ast.AST](self, *kinds: type[N]) -> Iterator[N]:
        """Every node of these kinds in the script."""
        yield from self.source.nodes(*kinds)

    @cached_property
    def steps(self) -> dict[Function, list[ScanSite]]:
        """The definitions of steps that are in the script, each with the scans that ran it."""
        out: dict[Function, list[ScanSite]] = {}
        for scan in self.scans:
            if scan.step is not None:
                out.setdefault(scan.step, []).append(scan)
        return out

    @cached_property
    def traced_functions(self) -> frozenset[Function]:
        """Functions of the script whose body ran while JAX was tracing: steps and what they call, jitted ones, …"""
        return frozenset(f for seen in self.record.seen if seen.traced for f in (self.source.scope(seen.node),)
                         if isinstance(f, FUNCTIONS))  # fmt: skip

    def targets(self, scan: ScanSite) -> tuple[ast.expr | None, ast.expr | None]:
        """What ``carry, ys = lax.scan(…)`` binds the two results to; (None, None) when it does not unpack them."""
        statement = self.source.statement(scan.node) if scan.node is not None else None
        if isinstance(statement, ast.Assign) and statement.value is scan.node and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Tuple | ast.List) and len(target.elts) == 2:
                return target.elts[0], target.elts[1]
        return None, None

    # --- repairs ----------------------------------------------------------------------------------------------------

    def rewrite(self, title: str, node: ast.expr | ast.stmt, text: str, path: str = "") -> Repair:
        """Replace one node by this text (a statement's new lines must carry their own indentation after the first)."""
        return self.rewrites(title, TextEdit(self.span(node), text), path=path)

    def rewrites(self, title: str, *edits: TextEdit, path: str = "") -> Repair:
        """Carry out several edits of the script's own text; their spans must not overlap. An empty span inserts."""
        return Repair("text", title, lambda _: None, path, edits)

    def insert_before(self, statement: ast.stmt, text: str) -> TextEdit:
        """A new line (or lines) with `statement`'s indentation in front of it; for `rewrites`."""
        span = self.span(statement)
        pad = self.source.lines[span.line - 1][: span.col]
        pad = pad if not pad.strip() else " " * span.col
        start = Span(span.line, span.col, span.line, span.col)
        return TextEdit(start, "".join(f"{line}\n{pad}" for line in text.split("\n")))

    def spelled(self, public: str) -> str | None:
        """How the script itself would write a public name (``jax.numpy.where`` as ``jnp.where``); None: not imported."""
        return self.source.name_of(public)
