"""Jitted functions of a script: which objects are such, how they were made in the text, and how to make more of it static."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from core.base.places import Span
from core.base.violation import TextEdit
from core.contract.script_facts import ScriptFacts
from core.contract.source import Function, parameters

JIT = frozenset({"jax.jit", "flax.nnx.jit"})
PARTIAL = "functools.partial"
#: How many wrappers of a function are looked through.
HOPS = 8


def is_jitted(func: Any) -> bool:
    """Whether an object is a function under `jax.jit` or `nnx.jit`: it can be lowered, and wraps another one."""
    return callable(func) and hasattr(func, "lower") and hasattr(func, "__wrapped__")


def wraps_jitted(func: Any) -> bool:
    """Whether a function is jitted, or a transformation of one that is (``jax.vmap(jax.jit(f))``)."""
    for _ in range(HOPS):
        if is_jitted(func):
            return True
        func = getattr(func, "__wrapped__", None)
    return False


def jits_of(facts: ScriptFacts, function: Function) -> Iterator[ast.expr]:
    """Where a function of the script is jitted: the decorator, or the call ``jax.jit(f, …)``."""
    source = facts.source
    for decorator in getattr(function, "decorator_list", []):
        if source.dotted(decorator) in JIT or _makes_jit(facts, decorator):
            yield decorator
    for call in facts.nodes(ast.Call):
        if source.dotted(call.func) in JIT and call.args:
            given = call.args[0]
            if given is function or (facts.seen(given) and source.function(facts.value(given)) is function):
                yield call


def _makes_jit(facts: ScriptFacts, node: ast.expr) -> bool:
    """``partial(jax.jit, …)`` or ``jax.jit(…)`` as a decorator."""
    if not isinstance(node, ast.Call):
        return False
    name = facts.source.dotted(node.func)
    return name in JIT or (name == PARTIAL and bool(node.args) and facts.source.dotted(node.args[0]) in JIT)


def with_static(facts: ScriptFacts, function: Function, names: tuple[str, ...]) -> tuple[TextEdit, ...] | None:
    """The edits that make these parameters static wherever the function is jitted; None when it is so nowhere."""
    edits: list[TextEdit] = []
    bare = False
    for jit in jits_of(facts, function):
        if isinstance(jit, ast.Call):
            edits.append(_more_static(facts, jit, function, names))
        else:
            bare = True
            partial = facts.spelled(PARTIAL) or "partial"
            text = f"{partial}({facts.source.text_of(jit)}, static_argnames={_names(names)})"
            edits.append(TextEdit(facts.span(jit), text))
    if bare and facts.spelled(PARTIAL) is None:
        edits.append(import_line(facts, "from functools import partial"))
    return tuple(edits) or None


def _names(names: tuple[str, ...]) -> str:
    return f'"{names[0]}"' if len(names) == 1 else "(" + ", ".join(f'"{name}"' for name in names) + ")"


def _more_static(facts: ScriptFacts, jit: ast.Call, function: Function, names: tuple[str, ...]) -> TextEdit:
    """More static arguments in a call that may have some already, by number where it names them so."""
    given = {k.arg: k.value for k in jit.keywords}
    if "static_argnums" in given:
        order = [a.arg for a in parameters(function)]
        return _extended(facts, given["static_argnums"], [str(order.index(name)) for name in names])
    if "static_argnames" in given:
        return _extended(facts, given["static_argnames"], [f'"{name}"' for name in names])
    inner: list[ast.expr | ast.keyword] = [*jit.args, *jit.keywords]
    last = max((facts.span(n) for n in inner), key=lambda s: (s.end_line, s.end_col), default=None)
    text = f"static_argnames={_names(names)}"
    if last is None:
        end = facts.span(jit)
        return TextEdit(Span(end.end_line, end.end_col - 1, end.end_line, end.end_col - 1), text)
    return TextEdit(Span(last.end_line, last.end_col, last.end_line, last.end_col), f", {text}")


def _extended(facts: ScriptFacts, node: ast.expr, more: list[str]) -> TextEdit:
    old = [facts.source.text_of(e) for e in node.elts] if isinstance(node, ast.Tuple | ast.List) else None
    parts = [*(old if old is not None else [facts.source.text_of(node)]), *more]
    return TextEdit(facts.span(node), f"({', '.join(parts)})")


def import_line(facts: ScriptFacts, line: str) -> TextEdit:
    """An import in a line of its own, behind the script's first imports (or at its top)."""
    body = facts.source.tree.body
    imports = [s for s in body if isinstance(s, ast.Import | ast.ImportFrom)]
    at = 1 if not imports else (imports[-1].end_lineno or imports[-1].lineno) + 1
    return TextEdit(Span(at, 0, at, 0), f"{line}\n")
