"""Python's `if` as `jnp.where` or `lax.cond`: what both branches assign or return, chosen by a traced truth value."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from core.base.violation import TextEdit
from core.contract.p_tests import predicate
from core.contract.p_text import (
    Ink,
    block_of,
    known_before,
    leaves_early,
    rest_of,
    stored_names,
    used_after,
)
from core.contract.p_traced import is_traced
from core.contract.source import FUNCTIONS, Function

#: Names that the text of a fix may give.
CONDITION, TRUE, FALSE = "condition", "when_true", "otherwise"
#: What is known of an array while it is traced.
STATIC = frozenset("shape ndim dtype size".split())


# --- an expression --------------------------------------------------------------------------------------------------


def where_expression(ink: Ink, node: ast.IfExp) -> list[TextEdit]:
    """``a if test else b`` as ``jnp.where(test, a, b)``; an array for each part of a tuple."""
    text = _chosen(ink, predicate(ink, node.test), node.body, node.orelse, {}, {})
    return [] if text is None else [ink.put(node, text)]


def cond_expression(ink: Ink, node: ast.IfExp) -> list[TextEdit]:
    """The same as ``jax.lax.cond(test, lambda: a, lambda: b)``."""
    body, orelse = ink.argument(node.body), ink.argument(node.orelse)
    return [ink.put(node, f"{ink.name('jax.lax.cond')}({predicate(ink, node.test)}, lambda: {body}, lambda: {orelse})")]


def _chosen(ink: Ink, test: str, one: ast.expr, two: ast.expr, first: _Env, second: _Env) -> str | None:
    """One of two expressions, part by part where both are tuples; None where they cannot be chosen from."""
    pair = isinstance(one, ast.Tuple) and isinstance(two, ast.Tuple)
    if pair and isinstance(one, ast.Tuple) and isinstance(two, ast.Tuple):
        if len(one.elts) != len(two.elts) or any(isinstance(e, ast.Starred) for e in (*one.elts, *two.elts)):
            return None
        parts = [_chosen(ink, test, a, b, first, second) for a, b in zip(one.elts, two.elts, strict=True)]
        if any(p is None for p in parts):
            return None
        inner = ", ".join(p for p in parts if p is not None)
        return f"({inner},)" if len(parts) == 1 else f"({inner})"
    a, b = ink.argument(one, _texts(one, first)), ink.argument(two, _texts(two, second))
    if a == b:
        return a
    if isinstance(one, ast.Dict | ast.List) or isinstance(two, ast.Dict | ast.List):
        return None
    return f"{ink.name('jax.numpy.where')}({test}, {a}, {b})"


# --- a statement, by jnp.where --------------------------------------------------------------------------------------

type _Env = dict[str, str]


def where_statement(ink: Ink, node: ast.If) -> list[TextEdit]:
    """An `if` whose branches only assign, or only return, as assignments (a return) of ``jnp.where``."""
    rest = rest_of(ink.source, node)
    one, two = _ending(ink, node.body), _ending(ink, node.orelse or rest)
    if one is not None and two is not None:
        return _where_return(ink, node, rest if not node.orelse else [], one, two)
    first, second = _env(ink, node.body), _env(ink, node.orelse)
    if first is None or second is None:
        return []
    known, later = known_before(ink.source, node), used_after(ink.source, node)
    names = [n for n in dict.fromkeys((*first, *second)) if (n in first and n in second) or n in known]
    if not names or any(n in later for n in (*first, *second) if n not in names):
        return []
    test, setup = predicate(ink, node.test), ""
    if len(names) > 1:
        pad = ink.pad(node)
        name = ink.free(ink.source.scope(node), CONDITION)
        setup, test = f"{name} = {test}\n{pad}", name
    where = ink.name("jax.numpy.where")
    values = [f"{where}({test}, {first.get(n, n)}, {second.get(n, n)})" for n in names]
    return [ink.put(node, f"{setup}{', '.join(names)} = {', '.join(values)}")]


def _where_return(ink: Ink, node: ast.If, rest: list[ast.stmt], one: _End, two: _End) -> list[TextEdit]:
    test, setup = predicate(ink, node.test), ""
    value = one[1]
    if isinstance(value, ast.Tuple) and len(value.elts) > 1:
        name = ink.free(ink.source.scope(node), CONDITION)
        setup, test = f"{name} = {test}\n{ink.pad(node)}", name
    text = _chosen(ink, test, one[1], two[1], one[0], two[0])
    if text is None:
        return []
    bare = text[1:-1] if isinstance(value, ast.Tuple) and len(value.elts) > 1 else text
    return [TextEdit(ink.span_of([node, *rest]), f"{setup}return {bare}")]


type _End = tuple[_Env, ast.expr]


def _ending(ink: Ink, statements: Sequence[ast.stmt]) -> _End | None:
    """Assignments and then a return: the assigned names' values, and what is returned."""
    if not statements or not isinstance(statements[-1], ast.Return) or statements[-1].value is None:
        return None
    env = _env(ink, statements[:-1])
    return None if env is None else (env, statements[-1].value)


def _env(ink: Ink, statements: Iterable[ast.stmt]) -> _Env | None:
    """What plain assignments make of names, in terms of the names before them; None for any other statement."""
    env: _Env = {}
    for statement in statements:
        if isinstance(statement, ast.Pass):
            continue
        if isinstance(statement, ast.If):
            if not _nested(ink, statement, env):
                return None
            continue
        pairs = _assigned(statement)
        if pairs is None:
            return None
        new = {}
        for name, value, operator in pairs:
            text = ink.argument(value, _texts(value, env))
            if operator is not None:
                text = f"{env.get(name, name)} {operator} {ink.atom(value, _texts(value, env))}"
            new[name] = text
        env |= new
    return env


def _nested(ink: Ink, node: ast.If, env: _Env) -> bool:
    """An `elif`, or an `if` inside a branch, as one more choice."""
    first, second = _env(ink, node.body), _env(ink, node.orelse)
    if first is None or second is None or env:
        return False
    test, where = predicate(ink, node.test), ink.name("jax.numpy.where")
    for name in dict.fromkeys((*first, *second)):
        env[name] = f"{where}({test}, {first.get(name, name)}, {second.get(name, name)})"
    return True


def _assigned(statement: ast.stmt) -> list[tuple[str, ast.expr, str | None]] | None:
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        sign = ast.unparse(ast.BinOp(ast.Name("a"), statement.op, ast.Name("b")))[2:-2]
        return [(statement.target.id, statement.value, sign)]
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        return [(statement.target.id, statement.value, None)] if isinstance(statement.target, ast.Name) else None
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Name):
        return [(target.id, value, None)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        names = [t.id for t in target.elts if isinstance(t, ast.Name)]
        return [(n, v, None) for n, v in zip(names, value.elts, strict=True)] if len(names) == len(value.elts) else None
    return None


def _texts(node: ast.expr, env: _Env) -> dict[ast.AST, str]:
    """What stands for the names of an expression."""
    found = [n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in env]
    return {n: env[n.id] if n is node or env[n.id].isidentifier() else f"({env[n.id]})" for n in found}


# --- a statement, by lax.cond ---------------------------------------------------------------------------------------


def cond_statement(ink: Ink, node: ast.If) -> list[TextEdit]:
    """An `if` as two functions and a ``lax.cond``; what follows a branch that returns becomes the other branch."""
    rest = rest_of(ink.source, node)
    returns = [isinstance(b[-1], ast.Return) if b else False for b in (node.body, node.orelse or rest)]
    if all(returns):
        whole: list[ast.stmt] = [node] if node.orelse else [node, *rest]
        return _cond(ink, node, node.body, node.orelse or rest, whole, returning=True)
    if any(returns[:1]) or leaves_early((*node.body, *node.orelse)):
        return []
    return _cond(ink, node, node.body, node.orelse, [node], returning=False)


def _cond(
    ink: Ink,
    node: ast.If,
    body: list[ast.stmt],
    orelse: list[ast.stmt],
    whole: list[ast.stmt],
    *,
    returning: bool,
) -> list[TextEdit]:
    cut = slice(None, -1) if returning else slice(None)
    if leaves_early((*body[cut], *orelse[cut])):
        return []
    scope, known = ink.source.scope(node), known_before(ink.source, node)
    one, two = stored_names(body), stored_names(orelse)
    later = set() if returning else used_after(ink.source, node)
    given = [n for n in dict.fromkeys((*one, *two)) if n in known]
    out = [n for n in dict.fromkeys((*one, *two)) if n in known or (n in one and n in two)]
    if any(n in later and n not in out for n in (*one, *two)):
        return []
    out = [n for n in out if n in known or n in later]
    if not out and not returning and not any(isinstance(s, ast.Expr) for s in (*body, *orelse)):
        return []  # nothing comes of either branch
    pad = ink.pad(node)
    names = [ink.free(scope, TRUE), ink.free(scope, FALSE)]
    back = "" if returning or not out else f"\n{pad}    return {', '.join(out)}"
    functions = []
    for name, statements in zip(names, (body, orelse), strict=True):
        inner = ink.block(statements, pad + "    ", _inner_choices(ink, statements, pad + "    ")) if statements else ""
        if not statements and not back:
            inner = f"{pad}    pass"
        functions.append(f"def {name}({', '.join(given)}):\n{inner}{back}".replace(":\n\n", ":\n"))
    call = f"{ink.name('jax.lax.cond')}({', '.join([predicate(ink, node.test), *names, *given])})"
    last = f"return {call}" if returning else f"{', '.join(out)} = {call}" if out else call
    text = f"\n{pad}".join([*functions, last])
    return [TextEdit(ink.span_of(whole), text)]


def _inner_choices(ink: Ink, statements: list[ast.stmt], pad: str) -> dict[ast.AST, str]:
    """Texts for the `if`s directly in a branch (an `elif` is one) whose tests are traced as well."""
    out: dict[ast.AST, str] = {}
    for inner in statements:
        if isinstance(inner, ast.If) and may_be_traced(ink, inner.test):
            own = ink.pad(inner) if not isinstance(ink.source.parents.get(inner), ast.If) else pad
            edits = where_statement(ink, inner) or cond_statement(ink, inner)
            if len(edits) == 1 and edits[0].span == ink.source.span(inner):
                out[inner] = edits[0].text.replace(f"\n{ink.pad(inner)}", f"\n{own}")
    return out


def may_be_traced(ink: Ink, test: ast.expr) -> bool:
    """Whether a test that was not evaluated is about something traced itself, not about its shape or whether it is None."""
    if isinstance(test, ast.Compare) and any(isinstance(op, ast.Is | ast.IsNot) for op in test.ops):
        return False
    if isinstance(test, ast.Attribute) and test.attr in STATIC:
        return False
    if (
        isinstance(test, ast.Call)
        and isinstance(test.func, ast.Name)
        and test.func.id in ("len", "isinstance", "hasattr")
    ):
        return False
    if isinstance(test, ast.Name):
        return is_traced(ink.facts, test) or any(
            is_traced(ink.facts, n)
            for n in ink.source.within(ink.source.scope(test))
            if isinstance(n, ast.Name) and n.id == test.id
        )
    return any(may_be_traced(ink, part) for part in ast.iter_child_nodes(test) if isinstance(part, ast.expr))


# --- loops ----------------------------------------------------------------------------------------------------------


def while_statement(ink: Ink, node: ast.While) -> list[TextEdit]:
    """A `while` as ``lax.while_loop``: what its body assigns is the carry."""
    carried = _carried(ink, node, node.body)
    if carried is None or not carried or node.orelse:
        return []
    scope, pad = ink.source.scope(node), ink.pad(node)
    names = [ink.free(scope, "unfinished"), ink.free(scope, "turn")]
    given, unpack = _unpacking(ink, scope, carried, pad)
    test = f"def {names[0]}({given}):\n{unpack}{pad}    return {predicate(ink, node.test)}"
    body = (
        f"def {names[1]}({given}):\n{unpack}{ink.block(node.body, pad + '    ')}\n{pad}    return {', '.join(carried)}"
    )
    call = f"{', '.join(carried)} = {ink.name('jax.lax.while_loop')}({names[0]}, {names[1]}, {_packed(carried)})"
    return [ink.put(node, f"\n{pad}".join([test, body, call]))]


def for_statement(ink: Ink, node: ast.For, bounds: tuple[str, str]) -> list[TextEdit]:
    """``for i in range(lower, upper)`` as ``lax.fori_loop``."""
    carried = _carried(ink, node, node.body)
    if carried is None or not carried or node.orelse or not isinstance(node.target, ast.Name):
        return []
    carried = [n for n in carried if n != node.target.id]
    if not carried or node.target.id in used_after(ink.source, node):
        return []
    scope, pad = ink.source.scope(node), ink.pad(node)
    turn = ink.free(scope, "turn")
    given, unpack = _unpacking(ink, scope, carried, pad)
    body = ink.block(node.body, pad + "    ")
    function = f"def {turn}({node.target.id}, {given}):\n{unpack}{body}\n{pad}    return {', '.join(carried)}"
    loop = f"{ink.name('jax.lax.fori_loop')}({bounds[0]}, {bounds[1]}, {turn}, {_packed(carried)})"
    return [ink.put(node, f"{function}\n{pad}{', '.join(carried)} = {loop}")]


def _carried(ink: Ink, node: ast.stmt, body: list[ast.stmt]) -> list[str] | None:
    """Names that a loop's body assigns and that have a value before it; None when it cannot be a function."""
    if leaves_early(body):
        return None
    known, later = known_before(ink.source, node), used_after(ink.source, node)
    names = stored_names(body)
    if any(n in later and n not in known for n in names):
        return None
    return [n for n in names if n in known]


def _unpacking(ink: Ink, scope: ast.AST, carried: list[str], pad: str) -> tuple[str, str]:
    """The parameter of a loop's function, and the line that takes it apart where it holds several things."""
    if len(carried) == 1:
        return carried[0], ""
    state = ink.free(scope, "state")
    return state, f"{pad}    {', '.join(carried)} = {state}\n"


def _packed(carried: list[str]) -> str:
    return carried[0] if len(carried) == 1 else f"({', '.join(carried)})"


def in_function(ink: Ink, node: ast.AST) -> Function | None:
    """The `def` that a node stands in; None for a lambda and for the module."""
    scope = ink.source.scope(node)
    return scope if isinstance(scope, FUNCTIONS) and not isinstance(scope, ast.Lambda) else None


__all__ = ["block_of", "cond_expression", "cond_statement", "for_statement", "where_expression", "where_statement",
           "while_statement"]  # fmt: skip
