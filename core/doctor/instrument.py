"""A script of somebody who is trusted, made ready to run in this process with a probe on every expression.

For tests and for the command line where there is no sandbox. The sandbox's own compiler does the same for scripts that
nobody trusts; both give a `Program`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import CodeType
from typing import Any, Protocol

from core.base.places import Span
from core.contract.source import Source

#: What the transformed script calls with the number of an expression and its value.
PROBE = "_probe_"


class Hooks(Protocol):
    """What a program reports to while it runs."""

    def probe(self, number: int, value: Any) -> Any:
        """Expression `number` gave `value`; returns it."""

    def write(self, text: str) -> Any:
        """The script printed this."""

    @property
    def replace(self) -> Mapping[str, Any]:
        """Functions to be used in the place of public ones, by name: ``{"jax.lax.scan": …}``."""

    @property
    def abstract(self) -> bool:
        """Whether nothing is computed, so that prints and assertions have nothing to look at."""


class Program(Protocol):
    """A script that is ready to run.

    Attributes:
        spans: the place of each expression that reports, by number.
        statements: its code, one object a statement of the module (or one for all of them), to be executed in order.
        names: the global names to execute them in.
    """

    spans: tuple[Span, ...]
    statements: tuple[CodeType, ...]
    names: dict[str, Any]

    def close(self) -> None:
        """To be called when nothing will run the script's functions any more."""


class Prepare(Protocol):
    """Makes a program of a script: `trusted`, or the sandbox's."""

    def __call__(self, source: Source, hooks: Hooks) -> Program:
        """The program. Raises SyntaxError or `Refused`."""


class Refused(Exception):
    """The script holds something that is not run here (X603). `found` are places with what to write instead."""

    def __init__(self, found: tuple[tuple[Span, str], ...]) -> None:
        super().__init__(found)
        self.found = found


class Trusted:
    """A program without walls: plain Python with a probe."""

    def __init__(self, source: Source, hooks: Hooks) -> None:
        instrument = _Instrument(source)
        tree: ast.Module = ast.fix_missing_locations(instrument.visit(ast.parse(source.text, source.filename)))
        self.spans = tuple(instrument.spans)
        self.statements = tuple(_compile(tree, source.filename))
        self.names: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__, PROBE: hooks.probe}

    def close(self) -> None:
        """Nothing to take back: a trusted script may change what it likes."""


def trusted(source: Source, hooks: Hooks) -> Program:
    """The program of a script that may do anything; `patched` puts the replacements in place."""
    return Trusted(source, hooks)


def _compile(tree: ast.Module, filename: str) -> Iterator[CodeType]:
    future = any(isinstance(n, ast.ImportFrom) and n.module == "__future__" for n in tree.body)
    bodies = [tree.body] if future else [[statement] for statement in tree.body]
    for body in bodies:
        module = ast.Module(body, tree.type_ignores)
        yield compile(module, filename, "exec", dont_inherit=True)


@contextmanager
def patched(replace: Mapping[str, Any]) -> Iterator[None]:
    """Public functions replaced in their modules for as long as this is open (this whole process sees it)."""
    before = []
    for public, function in replace.items():
        module, _, name = public.rpartition(".")
        holder = sys.modules[module]
        before.append((holder, name, getattr(holder, name)))
        setattr(holder, name, function)
    try:
        yield
    finally:
        for holder, name, function in reversed(before):
            setattr(holder, name, function)


class _Instrument(ast.NodeTransformer):
    """Wraps each expression that has a value worth knowing in a call of the probe, at the same place."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.spans: list[Span] = []

    def _probed(self, node: Any) -> Any:
        span = self._source.span(node)
        inner: Any = self.generic_visit(node)
        self.spans.append(span)
        number = ast.Constant(len(self.spans) - 1)
        call = ast.Call(ast.Name(PROBE, ast.Load()), [number, inner], [])
        for part in (call, call.func, number):
            ast.copy_location(part, node)
        return call

    def _loaded(self, node: Any) -> Any:
        return self._probed(node) if isinstance(node.ctx, ast.Load) else self.generic_visit(node)

    visit_Call = visit_BinOp = visit_UnaryOp = visit_Compare = visit_BoolOp = visit_IfExp = visit_Lambda = _probed
    visit_Attribute = visit_Subscript = _loaded

    def visit_Name(self, node: ast.Name) -> Any:
        return node if node.id.startswith("__") else self._loaded(node)

    # What Python reads as a pattern or evaluates as an annotation stays as it is.
    def visit_match_case(self, node: ast.match_case) -> Any:
        node.guard = self.visit(node.guard) if node.guard is not None else None
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        node.target = self.visit(node.target)
        node.value = self.visit(node.value) if node.value is not None else None
        return node

    def visit_arg(self, node: ast.arg) -> Any:
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        returns, node.returns = node.returns, None
        types, node.type_params = node.type_params, []
        self.generic_visit(node)
        node.returns, node.type_params = returns, types
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        types, node.type_params = node.type_params, []
        self.generic_visit(node)
        node.type_params = types
        return node

    def visit_TypeAlias(self, node: ast.TypeAlias) -> Any:
        return node
