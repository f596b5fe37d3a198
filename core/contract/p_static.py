"""A jitted function's argument that Python must know: made static, where the calls give it a plain Python value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from core.base.text import fill
from core.base.violation import TextEdit
from core.contract.p_text import Ink
from core.contract.p_traced import is_traced
from core.contract.rule import Repair
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Failure
from core.contract.source import Function, parameters
from core.contract.subject import MISSING

TITLE_STATIC = "Make {name} a static argument of {function}"
JIT = "jax.jit"
PARTIAL = ("functools.partial",)


def static_argument(facts: ScriptFacts, failure: Failure, node: ast.AST) -> Iterator[Repair]:
    """Repairs that make one argument static: of the jitted function in which it failed, given as a Python value."""
    for outer, inner in zip(failure.frames, failure.frames[1:], strict=False):
        function, call = inner.function, outer.node
        if function is None or not isinstance(call, ast.Call) or isinstance(function, ast.Lambda):
            continue
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and is_traced(facts, n)}
        for name in [a.arg for a in parameters(function) if a.arg in names]:
            given = _given(function, call, name)
            value = MISSING if given is None else facts.value(given, MISSING)
            if not isinstance(value, bool | int | str):
                continue
            ink = Ink(facts)
            edits = _edits(ink, function, name)
            if edits:
                yield ink.repair(fill(TITLE_STATIC, name=name, function=function.name), *edits)


def _given(function: Function, call: ast.Call, name: str) -> ast.expr | None:
    """The expression that a call gives for a parameter."""
    names = [a.arg for a in parameters(function)]
    keyword = next((k.value for k in call.keywords if k.arg == name), None)
    position = names.index(name)
    if keyword is not None or any(isinstance(a, ast.Starred) for a in call.args):
        return keyword
    return call.args[position] if position < len(call.args) else None


def _edits(ink: Ink, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> list[TextEdit]:
    source = ink.source
    static = f'static_argnames=("{name}",)'
    for decorator in function.decorator_list:
        if source.dotted(decorator) == JIT:
            return [ink.put(decorator, f"{ink.name('functools.partial')}({ink.text(decorator)}, {static})")]
        if isinstance(decorator, ast.Call) and _jits(ink, decorator):
            return _with(ink, decorator, name, static)
    for call in ink.facts.nodes(ast.Call):
        named = call.args and isinstance(call.args[0], ast.Name) and call.args[0].id == function.name
        if named and source.dotted(call.func) == JIT:
            return _with(ink, call, name, static)
    return []


def _jits(ink: Ink, call: ast.Call) -> bool:
    public = ink.source.dotted(call.func)
    return public == JIT or (public in PARTIAL and bool(call.args) and ink.source.dotted(call.args[0]) == JIT)


def _with(ink: Ink, call: ast.Call, name: str, static: str) -> list[TextEdit]:
    given = next((k for k in call.keywords if k.arg in ("static_argnames", "static_argnums")), None)
    if given is None:
        text = ink.text(call)
        inner = text[:-1].rstrip().rstrip(",")
        return [ink.put(call, f"{inner}, {static})" if not inner.endswith("(") else f"{inner}{static})")]
    if given.arg == "static_argnames" and isinstance(given.value, ast.Tuple | ast.List):
        names = [*(ink.text(e) for e in given.value.elts), f'"{name}"']
        return [ink.put(given.value, f"({', '.join(names)})")]
    return []
