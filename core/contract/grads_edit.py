"""Edits that keep a gradient finite and the value as it is: the guarded operand, the safe root and the safe norm."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from core.base.text import fill
from core.base.violation import TextEdit
from core.contract.keys_edit import Spelling, free_names
from core.contract.rule import Repair
from core.contract.script_facts import ScriptFacts

WHERE, ANY, NORM = "jax.numpy.where", "jax.numpy.any", "jax.numpy.linalg.norm"
TITLE_GUARD = "Guard what goes into {what} as well"
TITLE_ROOT = "Take the root only where it is greater than 0"
TITLE_NORM = "Take the norm only where it is not 0"
TITLE_ANGLE = "Take the angle only where there is one"
#: By function: which argument is dangerous, and a number that is safe there.
OPERANDS = {
    **{f"jax.numpy.{n}": (0, "1.0") for n in "log log2 log10 sqrt cbrt reciprocal power float_power arccosh".split()},
    **{f"jax.lax.{n}": (0, "1.0") for n in "log sqrt rsqrt cbrt pow".split()},
    **{f"jax.numpy.{n}": (0, "0.0") for n in "log1p arccos arcsin arctanh exp exp2 expm1 tan acos asin atanh".split()},
    **{f"jax.lax.{n}": (0, "0.0") for n in "exp log1p acos asin atanh".split()},
    **{f"jax.numpy.{n}": (1, "1.0") for n in "divide true_divide arctan2 atan2".split()},
    "jax.lax.div": (1, "1.0"), NORM: (0, "1.0"), "jax.nn.standardize": (0, "1.0"),
}  # fmt: skip
ROOTS = frozenset({"jax.numpy.sqrt", "jax.lax.sqrt"})
ANGLES = frozenset({"jax.numpy.arctan2", "jax.numpy.atan2"})
SELECTS = frozenset({WHERE, "jax.lax.select"})
#: How many names are followed from a branch to what it was made of.
HOPS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """A `where` whose branch holds an expression: its condition, and whether it is the branch for true."""

    call: ast.Call
    condition: ast.expr
    when: bool


def repairs(facts: ScriptFacts, node: ast.expr) -> Iterator[Repair]:
    """What may mend the gradient through an expression."""
    chosen = selecting(facts, node)
    spelling = Spelling(facts)
    if chosen is not None:
        operand = _operand(facts, node)
        if operand is not None:
            part, safe = operand
            text, condition = facts.source.text_of(part), facts.source.text_of(chosen.condition)
            one, other = (text, safe) if chosen.when else (safe, text)
            guarded = f"{_where(spelling)}({condition}, {one}, {other})"
            what = facts.source.text_of(node.func) if isinstance(node, ast.Call) else facts.source.text_of(node)
            yield facts.rewrite(fill(TITLE_GUARD, what=what), part, guarded)
            return
    yield from _alone(facts, node, spelling)


def selecting(facts: ScriptFacts, node: ast.expr) -> Chosen | None:
    """The `where` (or `select`) that takes this expression in one of its branches, also through names."""
    scope = facts.source.scope(node)
    for call in facts.nodes(ast.Call):
        if facts.source.dotted(call.func) not in SELECTS or len(call.args) < 3:
            continue
        if facts.source.scope(call) is not scope:
            continue
        for i in (1, 2):
            if _holds(facts, call.args[i], node, HOPS):
                return Chosen(call, call.args[0], i == 1)
    return None


def _holds(facts: ScriptFacts, branch: ast.expr, node: ast.expr, hops: int) -> bool:
    inside = list(ast.walk(branch))
    if any(n is node for n in inside):
        return True
    if not hops:
        return False
    names = (facts.source.bound(n) for n in inside if isinstance(n, ast.Name))
    return any(_holds(facts, value, node, hops - 1) for value in names if value is not None)


def _operand(facts: ScriptFacts, node: ast.expr) -> tuple[ast.expr, str] | None:
    """The part of an expression that must be kept from its dangerous values, and a safe one."""
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod):
            return node.right, "1.0"
        return (node.left, "1.0") if isinstance(node.op, ast.Pow) else None
    if not isinstance(node, ast.Call):
        return None
    known = OPERANDS.get(facts.source.dotted(node.func) or "")
    if known is None or len(node.args) <= known[0]:
        return None
    return node.args[known[0]], known[1]


def _alone(facts: ScriptFacts, node: ast.expr, spelling: Spelling) -> Iterator[Repair]:
    """Without a `where`: a root, a norm or an angle at 0."""
    name = facts.source.dotted(node.func) if isinstance(node, ast.Call) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant):
        tail = f" ** {facts.source.text_of(node.right)}"
        yield from _root(facts, node, node.left, lambda safe: f"{safe}{tail}", spelling)
    if not isinstance(node, ast.Call) or not node.args:
        return
    if name in ROOTS:
        function = facts.source.text_of(node.func)
        yield from _root(facts, node, node.args[0], lambda safe: f"{function}({safe})", spelling)
    elif name == NORM:
        yield from _norm(facts, node, spelling)
    elif name in ANGLES and len(node.args) == 2:
        y, x = map(facts.source.text_of, node.args)
        none = f"({y} == 0) & ({x} == 0)"
        where = _where(spelling)
        angle = f"{facts.source.text_of(node.func)}({y}, {where}({none}, 1.0, {x}))"
        yield facts.rewrite(fill(TITLE_ANGLE), node, f"{where}({none}, 0.0, {angle})")


def _root(
    facts: ScriptFacts, node: ast.expr, of: ast.expr, root: Callable[[str], str], spelling: Spelling
) -> Iterator[Repair]:
    where, text = _where(spelling), facts.source.text_of(of)
    statement, scope = facts.source.statement(node), facts.source.scope(node)
    before: tuple[TextEdit, ...] = ()
    if not isinstance(of, ast.Name) and statement is not None and not isinstance(scope, ast.Lambda):
        (name,) = free_names(scope, "square")
        before, text = (facts.insert_before(statement, f"{name} = {text}"),), name
    elif not isinstance(of, ast.Name | ast.Attribute | ast.Subscript | ast.Call):
        text = f"({text})"
    safe = f"{where}({text} > 0, {text}, 1.0)"
    edit = TextEdit(facts.span(node), f"{where}({text} > 0, {root(safe)}, 0.0)")
    yield facts.rewrites(fill(TITLE_ROOT), *before, edit)


def _norm(facts: ScriptFacts, node: ast.Call, spelling: Spelling) -> Iterator[Repair]:
    """The norm of ones where the vector is 0, and 0 in its place."""
    of, rest = node.args[0], [facts.source.text_of(a) for a in node.args[1:]]
    options = {k.arg: facts.source.text_of(k.value) for k in node.keywords if k.arg is not None}
    axis = options.get("axis") or (rest[1] if len(rest) > 1 else None)
    keep = options.get("keepdims") or (rest[2] if len(rest) > 2 else None)
    where, some, text = _where(spelling), spelling.of(ANY), facts.source.text_of(of)
    along = "" if axis is None else f", axis={axis}"
    inner = f"{some}({text} != 0{along}{', keepdims=True' if axis is not None else ''})"
    outer = f"{some}({text} != 0{along}{'' if keep is None else f', keepdims={keep}'})"
    more = "".join(f", {a}" for a in rest) + "".join(f", {k}={v}" for k, v in options.items())
    norm = f"{facts.source.text_of(node.func)}({where}({inner}, {text}, 1.0){more})"
    yield facts.rewrite(fill(TITLE_NORM), node, f"{where}({outer}, {norm}, 0.0)")


def _where(spelling: Spelling) -> str:
    return spelling.of(WHERE)
