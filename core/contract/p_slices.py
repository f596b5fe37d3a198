"""Slices and masks whose length is not known while tracing: the length when it can be derived, else a sum over all."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from core.base.violation import TextEdit
from core.contract.p_text import Ink
from core.contract.p_traced import is_traced

type Monomial = tuple[str, ...]
#: An integer polynomial in the names of an expression: coefficients by monomial.
type Polynomial = dict[Monomial, int]

#: How many assignments are followed.
HOPS = 8
#: By reduction, what an element that does not count is replaced by.
NEUTRAL = {"sum": "0", "prod": "1", "max": "-{inf}", "min": "{inf}", "any": "False", "all": "True"}
#: Reductions that leave elements out by themselves.
LEAVES_OUT = frozenset({"mean", "std", "var", "sum", "prod", "any", "all"})


# --- lengths --------------------------------------------------------------------------------------------------------


def polynomial(ink: Ink, node: ast.expr, hops: int = HOPS) -> Polynomial | None:
    """An index as a polynomial in what it is made of; None for what is no sum or product of whole numbers and names."""
    if isinstance(node, ast.Constant):
        return _plain({(): node.value}) if type(node.value) is int else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        inner = polynomial(ink, node.operand, hops)
        sign = -1 if isinstance(node.op, ast.USub) else 1
        return None if inner is None else {k: sign * v for k, v in inner.items()}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
        one, two = polynomial(ink, node.left, hops), polynomial(ink, node.right, hops)
        return None if one is None or two is None else _combined(one, two, node.op)
    if isinstance(node, ast.Name) and hops and is_traced(ink.facts, node):
        made = ink.source.bound(node)
        if isinstance(made, ast.BinOp | ast.Name):
            return polynomial(ink, made, hops - 1)
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call):
        return {(ink.text(node),): 1}
    return None


def _combined(one: Polynomial, two: Polynomial, op: ast.operator) -> Polynomial:
    if isinstance(op, ast.Mult):
        out: Polynomial = {}
        for a, m in one.items():
            for b, n in two.items():
                key = tuple(sorted((*a, *b)))
                out[key] = out.get(key, 0) + m * n
        return _plain(out)
    sign = -1 if isinstance(op, ast.Sub) else 1
    return _plain({k: one.get(k, 0) + sign * two.get(k, 0) for k in {**one, **two}})


def _plain(value: Polynomial) -> Polynomial:
    return {k: v for k, v in value.items() if v}


def length_of(ink: Ink, part: ast.Slice) -> str | None:
    """The length of ``lower:upper`` as text, where the two differ by what is not traced; else None."""
    if part.lower is None or part.upper is None or part.step is not None:
        return None
    lower, upper = polynomial(ink, part.lower), polynomial(ink, part.upper)
    if lower is None or upper is None:
        return None
    length = _combined(upper, lower, ast.Sub())
    traced = {
        ink.text(n)
        for n in ink.facts.nodes(ast.Name, ast.Attribute, ast.Subscript, ast.Call)
        if is_traced(ink.facts, n)
    }
    if not length or any(atom in traced for key in length for atom in key):
        return None
    text = " + ".join(_term(key, n) for key, n in sorted(length.items(), key=lambda i: (not i[0], i[0])))
    return text.replace("+ -", "- ")


def _term(key: Monomial, count: int) -> str:
    names = " * ".join(key)
    if not key:
        return str(count)
    return names if count == 1 else f"-{names}" if count == -1 else f"{count} * {names}"


# --- a slice --------------------------------------------------------------------------------------------------------


def dynamic_slice(ink: Ink, node: ast.Subscript) -> list[TextEdit]:
    """``x[i:i + 3]`` as ``jax.lax.dynamic_slice_in_dim(x, i, 3)``, along any axis, with other indices behind it."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    text, rest, found = ink.argument(node.value), [], 0
    for axis, part in enumerate(parts):
        moved = isinstance(part, ast.Slice) and any(_traced_in(ink, b) for b in (part.lower, part.upper))
        if moved and isinstance(part, ast.Slice) and part.lower is not None:
            size = length_of(ink, part)
            if size is None:
                return []
            where = f", axis={axis}" if axis else ""
            cut = ink.name("jax.lax.dynamic_slice_in_dim")
            text = f"{cut}({text}, {ink.argument(part.lower)}, {size}{where})"
            rest.append(":")
            found += 1
        elif moved or (isinstance(part, ast.Constant) and part.value in (None, ...)):
            return []
        else:
            rest.append(ink.text(part))
    if not found:
        return []
    tail = "" if all(r == ":" for r in rest) else f"[{', '.join(rest)}]"
    return [ink.put(node, text + tail)]


def _traced_in(ink: Ink, node: ast.expr | None) -> bool:
    return node is not None and any(is_traced(ink.facts, n) for n in ast.walk(node))


def masked_slice(ink: Ink, node: ast.Subscript) -> list[TextEdit]:
    """``x[:n].sum()`` as a sum over all of x in which what is not below n does not count."""
    part = node.slice
    aval = ink.facts.aval(node.value)
    if not isinstance(part, ast.Slice) or part.step is not None or aval is None or not aval.shape:
        return []
    place = f"{ink.name('jax.numpy.arange')}({ink.atom(node.value)}.shape[0])"
    sides = []
    if part.lower is not None:
        sides.append(f"{place} >= {ink.atom(part.lower)}")
    if part.upper is not None:
        sides.append(f"{place} < {ink.atom(part.upper)}")
    if any(isinstance(b, ast.UnaryOp) for b in (part.lower, part.upper)):
        return []
    mask = sides[0] if len(sides) == 1 else " & ".join(f"({s})" for s in sides)
    if len(aval.shape) > 1:
        mask = f"({mask})[:{', None' * (len(aval.shape) - 1)}]"
    return _counted(ink, node, mask, len(aval.shape))


# --- a mask ---------------------------------------------------------------------------------------------------------


def masked(ink: Ink, node: ast.Subscript) -> list[TextEdit]:
    """``x[mask].sum()`` as ``jnp.where(mask, x, 0).sum()``: the same sum of as many elements as ever."""
    mask, whole = ink.facts.aval(node.slice), ink.facts.aval(node.value)
    if mask is None or whole is None or mask.dtype != "bool" or mask.shape != whole.shape[: len(mask.shape)]:
        return []
    text = ink.argument(node.slice)
    if len(mask.shape) < len(whole.shape):
        text = f"{ink.atom(node.slice)}[(...,{' None,' * (len(whole.shape) - len(mask.shape))})]"
    return _counted(ink, node, text, len(whole.shape))


@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    """Where elements are reduced: the call, the function's name, and whether it is a method of the array."""

    call: ast.expr
    name: str
    method: bool


def _counted(ink: Ink, node: ast.Subscript, mask: str, ndim: int) -> list[TextEdit]:
    """Edits that leave out what the mask does not hold, in every reduction that the elements go into."""
    statement = ink.source.statement(node)
    if isinstance(statement, ast.Assign) and statement.value is node and isinstance(statement.targets[0], ast.Name):
        name = statement.targets[0].id
        scope = ink.source.scope(node)
        loads = [n for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
        used = [reduction(ink, n, ndim) for n in loads]
    else:
        used = [reduction(ink, node, ndim)]
    names = {u.name for u in used if u is not None}
    if not used or any(u is None for u in used) or len(names) != 1:
        return []
    name = names.pop()
    if name == "size":
        calls = [u.call for u in used if u is not None]
        inside = not (isinstance(statement, ast.Assign) and statement.value is node)
        return [ink.put(calls[0], f"{ink.name('jax.numpy.sum')}({mask})")] if inside and ndim == 1 else []
    if name in NEUTRAL:
        fill = NEUTRAL[name].replace("{inf}", _extreme(ink, node))
        return [ink.put(node, f"{ink.name('jax.numpy.where')}({mask}, {ink.argument(node.value)}, {fill})")]
    edits = [ink.put(node, ink.text(node.value))]
    for use in used:
        call = use.call if use is not None else None
        if isinstance(call, ast.Call):
            given: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
            whole = ink.source.span(call)
            end = (whole.end_line, whole.end_col - 1)
            spot = type(whole)(*end, *end)
            edits.append(TextEdit(spot, f"where={mask}" if not given else f", where={mask}"))
    return edits


def _extreme(ink: Ink, node: ast.Subscript) -> str:
    aval = ink.facts.aval(node.value)
    if aval is not None and aval.dtype.startswith(("int", "uint")):
        return f"{ink.name('jax.numpy.iinfo')}({ink.name('jax.numpy.' + aval.dtype)}).max"
    return ink.name("jax.numpy.inf")


def reduction(ink: Ink, node: ast.expr, ndim: int) -> Reduced | None:
    """What reduces an expression to one number right where it stands; None when nothing does."""
    parents = ink.source.parents
    above = parents.get(node)
    if isinstance(above, ast.Attribute):
        call = parents.get(above)
        if above.attr == "size" and not (isinstance(call, ast.Call) and call.func is above):
            return Reduced(above, "size", True)
        if isinstance(call, ast.Call) and call.func is above and above.attr in NEUTRAL.keys() | LEAVES_OUT:
            return Reduced(call, above.attr, True) if not call.args and not call.keywords else None
        if above.attr == "shape" and isinstance(call, ast.Subscript):
            return Reduced(call, "size", True) if getattr(call.slice, "value", None) == 0 else None
        return None
    if (
        isinstance(above, ast.Call)
        and above.args
        and above.args[0] is node
        and len(above.args) == 1
        and not above.keywords
    ):
        if isinstance(above.func, ast.Name) and above.func.id == "len" and ink.source.is_builtin("len"):
            return Reduced(above, "size", False)
        module, _, name = (ink.source.dotted(above.func) or "").rpartition(".")
        if module == "jax.numpy" and name in NEUTRAL.keys() | LEAVES_OUT:
            return Reduced(above, name, False)
        if isinstance(above.func, ast.Name) and above.func.id == "sum" and ink.source.is_builtin("sum") and ndim == 1:
            return Reduced(above, "sum", False)
    return None


def slices_in(node: ast.expr) -> Iterator[ast.Slice]:
    """The slices of an index."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    yield from (p for p in parts if isinstance(p, ast.Slice))
