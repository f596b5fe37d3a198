"""Truth values of traced arrays: the expression in which Python asked for one, and the same asked of JAX."""

from __future__ import annotations

import ast

from core.contract.p_text import Ink, Texts
from core.contract.p_traced import is_traced, type_of
from core.contract.script_facts import ScriptFacts
from core.contract.subject import MISSING

#: Statements and expressions that ask for one truth value, with the field that holds it.
ASKS = {ast.If: "test", ast.While: "test", ast.Assert: "test", ast.IfExp: "test"}
LOGICAL = {ast.And: ("&", "jax.numpy.logical_and"), ast.Or: ("|", "jax.numpy.logical_or")}
#: Functions of Python that ask for the truth of several things, with their twin.
SEVERAL = {"any": "jax.numpy.any", "all": "jax.numpy.all"}


def asked(facts: ScriptFacts, node: ast.expr) -> ast.expr:
    """The smallest expression whose truth was asked for: an operand of ``and`` or ``not``, the test of a comprehension."""
    if isinstance(node, ast.BoolOp):
        seen = [(facts.seen(v)[-1].order, v) for v in node.values if facts.seen(v)]
        return asked(facts, max(seen, key=lambda s: s[0])[1]) if seen else node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return asked(facts, node.operand)
    if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        tests = [test for generator in node.generators for test in generator.ifs if is_traced(facts, test)]
        return asked(facts, tests[0]) if tests else node
    return node


def whole_test(facts: ScriptFacts, node: ast.expr) -> tuple[ast.expr, ast.AST | None]:
    """The whole expression of ``and``, ``or`` and ``not`` around a test, and what asks for its truth (None: nothing)."""
    parents, here = facts.source.parents, node
    while True:
        above = parents.get(here)
        if isinstance(above, ast.BoolOp) or (isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Not)):
            here = above
            continue
        if above is not None and getattr(above, ASKS.get(type(above), ""), None) is here:
            return here, above
        if isinstance(above, ast.comprehension) and any(test is here for test in above.ifs):
            return here, above
        return here, None


def predicate(ink: Ink, node: ast.expr, texts: Texts | None = None) -> str:
    """A test written so that JAX can trace it: ``a and b`` as ``(a) & (b)``, ``0 < x < 3`` as two comparisons."""
    if isinstance(node, ast.BoolOp):
        operator, function = LOGICAL[type(node.op)]
        if all(is_boolean(ink.facts, v) for v in node.values):
            return f" {operator} ".join(_operand(ink, v, texts) for v in node.values)
        out = predicate(ink, node.values[0], texts)
        for value in node.values[1:]:
            out = f"{ink.name(function)}({out}, {predicate(ink, value, texts)})"
        return out
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        if is_boolean(ink.facts, node.operand):
            return f"~{_operand(ink, node.operand, texts)}"
        return f"{ink.name('jax.numpy.logical_not')}({predicate(ink, node.operand, texts)})"
    if isinstance(node, ast.Compare):
        return _compared(ink, node, texts)
    if isinstance(node, ast.Call):
        return _called(ink, node, texts)
    return ink.argument(node, texts)


def _operand(ink: Ink, node: ast.expr, texts: Texts | None) -> str:
    text = predicate(ink, node, texts)
    simple = isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call) and not text.startswith("~")
    return text if simple else f"({text})"


def is_boolean(facts: ScriptFacts, node: ast.expr) -> bool:
    """Whether an expression gives an array of booleans; of one that was not evaluated, whether it compares."""
    if isinstance(node, ast.BoolOp):
        return all(is_boolean(facts, v) for v in node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return is_boolean(facts, node.operand)
    value = facts.value(node, MISSING)
    aval = type_of(value)
    if aval is not None:
        return aval.dtype == "bool"
    if isinstance(node, ast.Compare):
        return value is MISSING and not any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops)
    return False


def _compared(ink: Ink, node: ast.Compare, texts: Texts | None) -> str:
    operands = [node.left, *node.comparators]
    parts = []
    for i, op in enumerate(node.ops):
        if isinstance(op, ast.In | ast.NotIn):
            inside = f"{ink.name('jax.numpy.isin')}({ink.argument(operands[i], texts)}, {_array(ink, operands[i + 1], texts)})"
            parts.append(f"~{inside}" if isinstance(op, ast.NotIn) else inside)
            continue
        if len(node.ops) == 1:
            return ink.text(node, texts)
        middle = ast.Compare(operands[i], [op], [operands[i + 1]])
        parts.append(f"({_pair(ink, middle, texts)})")
    return parts[0] if len(parts) == 1 else " & ".join(parts)


def _pair(ink: Ink, node: ast.Compare, texts: Texts | None) -> str:
    sign = ast.unparse(ast.Compare(ast.Name("a"), node.ops, [ast.Name("b")]))[2:-2]
    return f"{ink.argument(node.left, texts)} {sign} {ink.argument(node.comparators[0], texts)}"


def _array(ink: Ink, node: ast.expr, texts: Texts | None) -> str:
    """A list or a range as an array; anything else as it is."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return f"{ink.name('jax.numpy.array')}([{', '.join(ink.argument(e, texts) for e in node.elts)}])"
    value = ink.facts.value(node)
    if isinstance(value, list | tuple | range):
        return f"{ink.name('jax.numpy.array')}({ink.argument(node, texts)})"
    if isinstance(value, set | frozenset | dict):
        return f"{ink.name('jax.numpy.array')}(list({ink.argument(node, texts)}))"
    return ink.argument(node, texts)


def _called(ink: Ink, node: ast.Call, texts: Texts | None) -> str:
    name = node.func.id if isinstance(node.func, ast.Name) and ink.source.is_builtin(node.func.id) else ""
    if len(node.args) != 1 or node.keywords or isinstance(node.args[0], ast.Starred):
        return ink.argument(node, texts)
    if name == "bool":
        return predicate(ink, node.args[0], texts)
    if name in SEVERAL:
        return f"{ink.name(SEVERAL[name])}({several(ink, node.args[0], texts)})"
    return ink.argument(node, texts)


def several(ink: Ink, node: ast.expr, texts: Texts | None = None) -> str:
    """A list of traced numbers, or a generator of them, as one array; an array as it is."""
    if isinstance(node, ast.GeneratorExp):
        text = ink.text(node, texts)
        inner = text[1:-1] if text.startswith("(") else text
        return f"{ink.name('jax.numpy.stack')}([{inner}])"
    if isinstance(node, ast.List | ast.Tuple):
        return f"{ink.name('jax.numpy.stack')}([{', '.join(ink.argument(e, texts) for e in node.elts)}])"
    if isinstance(ink.facts.value(node), list | tuple) or isinstance(node, ast.ListComp):
        return f"{ink.name('jax.numpy.stack')}({ink.argument(node, texts)})"
    return ink.argument(node, texts)
