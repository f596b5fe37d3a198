"""Two ways out of a step for what it put into the Python world: as y, read from ys; or in the carry, there and back.

Both change the step, its returns and the call of the scan together, and need all three to be written out.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from core.base.places import Span
from core.base.violation import TextEdit
from core.contract.p_effects import Effect
from core.contract.p_owners import owner_of
from core.contract.p_text import Ink, block_of
from core.contract.script_record import ScanSite
from core.contract.source import FUNCTIONS, Function, parameters

#: Names that a fix may give.
LOGGED, ROWS, FINAL = "logged", "rows", "final"


@dataclass(slots=True, eq=False)
class Road:
    """A scan whose step, returns and call are all written out.

    Attributes:
        step: the definition of the step.
        returns: its returned pairs.
        call: of the scan.
        statement: which that call stands in.
        carry, ys: what the two results are bound to; None where the call's result is not unpacked.
        init: the expression of init.
    """

    step: ast.FunctionDef
    returns: list[ast.Tuple]
    call: ast.Call
    statement: ast.stmt
    carry: ast.expr | None
    ys: ast.expr | None
    init: ast.expr


def road_of(ink: Ink, effect: Effect) -> Road | None:
    """The road that an effect can take; None when its code is not the scan's own step, or not all of it is written out."""
    if effect.scan is None:
        return None
    site: ScanSite = ink.facts.scans[effect.scan]
    step, init = site.step, site.arguments.get("init")
    if not isinstance(step, ast.FunctionDef) or step is not effect.function or site.node is None or init is None:
        return None
    if len({s.node for s in ink.facts.steps.get(step, []) if s.node is not None}) != 1:
        return None
    values = ink.source.all_returned(step)
    pairs = [v for v in values if isinstance(v, ast.Tuple) and len(v.elts) == 2]
    statement = ink.source.statement(site.node)
    if not pairs or len(pairs) != len(values) or statement is None or ink.source.scope(site.node) is step:
        return None
    carry, ys = ink.facts.targets(site)
    return Road(step, pairs, site.node, statement, carry, ys, init)


def unconditional(ink: Ink, effect: Effect) -> bool:
    """Whether the effect is a statement of the step's own body, so that it comes to pass at each step."""
    return block_of(ink.source, effect.statement) is getattr(effect.function, "body", None)


# --- as y -----------------------------------------------------------------------------------------------------------


def as_y(ink: Ink, effect: Effect) -> list[TextEdit]:
    """Return what was stored as y, and store it after the scan: a list gets all rows, a name the last one."""
    road = road_of(ink, effect)
    if road is None or effect.value is None or not unconditional(ink, effect) or _read_otherwise(effect):
        return []
    holder = outside_text(ink, road, effect)
    after = None if holder is None else _after(effect, holder)
    if holder is None or after is None:
        return []
    edits, name = _captured(ink, road, effect)
    if name is None:
        return []
    plain = all(isinstance(p.elts[1], ast.Constant) and p.elts[1].value is None for p in road.returns)
    for pair in road.returns:
        y = pair.elts[1]
        edits.append(ink.put(y, name if plain else f"({ink.argument(y)}, {name})"))
    rows = ink.free(ink.source.scope(road.call), ROWS)
    return [*edits, *_received(ink, road, rows, after, plain=plain)]


def _captured(ink: Ink, road: Road, effect: Effect) -> tuple[list[TextEdit], str | None]:
    """The edits that keep the stored value for the return, and its name there."""
    value, statement = effect.value, effect.statement
    if value is None:
        return [], None
    added = _added(effect)
    if added is not None:
        name = ink.free(road.step, LOGGED)
        undeclared = _undeclared(ink, road.step, effect.node.id) if isinstance(effect.node, ast.Name) else []
        return [*undeclared, ink.put(statement, f"{name} = {ink.text(added)}")], name
    if effect.kind == "name" and isinstance(effect.node, ast.Name):
        return _undeclared(ink, road.step, effect.node.id), effect.node.id
    stored_alone = effect.kind == "store" or (isinstance(statement, ast.Assign) and statement.targets[0] is effect.node)
    if not stored_alone or (effect.kind == "store" and not isinstance(statement, ast.Expr)):
        return [], None
    name = ink.free(road.step, LOGGED)
    if isinstance(value, ast.Name) and not _rebound_after(road.step, statement, value.id) and _others(ink, effect):
        return [_taken(ink, statement)], value.id
    return [ink.put(statement, f"{name} = {ink.text(value)}")], name


def _added(effect: Effect) -> ast.expr | None:
    """The element that ``log += [v]`` or ``log = log + [v]`` appends."""
    statement, value = effect.statement, effect.value
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        more: ast.expr | None = value
    elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        more = value.right if ast.unparse(value.left) == ast.unparse(effect.node) else None
    else:
        more = None
    return more.elts[0] if isinstance(more, ast.List) and len(more.elts) == 1 else None


def _read_otherwise(effect: Effect) -> bool:
    """Whether the step reads what is changed anywhere else: then it is a carry, not a log."""
    if effect.holder is None or (effect.kind == "name" and _added(effect) is None):
        return False
    spelled, own = ast.unparse(effect.holder), set(ast.walk(effect.statement))
    readable = (ast.Name, ast.Attribute, ast.Subscript)
    return any(
        isinstance(n, readable) and n not in own and ast.unparse(n) == spelled for n in ast.walk(effect.function)
    )


def _others(ink: Ink, effect: Effect) -> bool:
    """Whether something else is left in the block when the statement is gone."""
    return len(block_of(ink.source, effect.statement)) > 1


def _rebound_after(step: Function, statement: ast.stmt, name: str) -> bool:
    after = (n for n in ast.walk(step) if isinstance(n, ast.Name) and n.lineno > statement.lineno)
    return any(n.id == name and isinstance(n.ctx, ast.Store) for n in after)


def _taken(ink: Ink, statement: ast.stmt) -> TextEdit:
    """A statement taken out, with its line where it is alone on it."""
    span = ink.source.span(statement)
    line = ink.source.lines[span.line - 1]
    alone = not line[: span.col].strip() and not ink.source.lines[span.end_line - 1][span.end_col :].strip(" ;")
    if not alone:
        return TextEdit(span, "pass")
    return TextEdit(Span(span.line, 0, span.end_line + 1, 0), "")


def _undeclared(ink: Ink, step: Function, name: str) -> list[TextEdit]:
    """The step's ``global name`` taken out."""
    out = []
    for node in ink.source.within(step):
        if isinstance(node, ast.Global | ast.Nonlocal) and name in node.names:
            rest = [n for n in node.names if n != name]
            word = "global" if isinstance(node, ast.Global) else "nonlocal"
            out.append(ink.put(node, f"{word} {', '.join(rest)}") if rest else _taken(ink, node))
    return out


def _after(effect: Effect, holder: str) -> str | None:
    """What is done with the rows after the scan, with ``{rows}`` for them."""
    value = effect.value
    if effect.kind == "store":
        method = effect.node.func if isinstance(effect.node, ast.Call) else None
        if not isinstance(method, ast.Attribute) or method.attr != "append":
            return None
        if isinstance(value, ast.Tuple):
            return f"{holder}.extend(zip(*{{rows}}))"
        return None if isinstance(value, ast.Dict | ast.List) else f"{holder}.extend({{rows}})"
    if _added(effect) is not None:
        return f"{holder}.extend({{rows}})"
    if effect.kind in ("name", "attribute", "item") and not _read_before(effect):
        return f"{holder} = {{rows}}[-1]"
    return None


def _read_before(effect: Effect) -> bool:
    """Whether the step reads what it stores before it stores it: then it is a carry."""
    if isinstance(effect.statement, ast.AugAssign):
        return True
    spelled = ast.unparse(effect.node)
    value_nodes = set(ast.walk(effect.statement))
    for node in ast.walk(effect.function):
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Load):
            before = node.lineno < effect.statement.lineno or node in value_nodes
            if before and ast.unparse(node) == spelled:
                return True
    return False


def _received(ink: Ink, road: Road, rows: str, after: str, *, plain: bool) -> list[TextEdit]:
    """The call's results unpacked, and what comes after it."""
    statement = road.statement
    if road.carry is not None and road.ys is not None:
        target = road.ys
        if plain and isinstance(target, ast.Name) and target.id.strip("_"):
            return [ink.after(statement, after.format(rows=target.id))]
        new = rows if plain else f"({ink.text(target)}, {rows})"
        return [ink.put(target, new), ink.after(statement, after.format(rows=rows))]
    if not plain:
        return []
    return _hoisted(ink, road, rows, after)


def _hoisted(ink: Ink, road: Road, rows: str, after: str) -> list[TextEdit]:
    """A call whose result is used as a whole: unpacked in a line of its own in front of that."""
    statement, call = road.statement, road.call
    if not isinstance(statement, ast.Return | ast.Expr | ast.Assign):
        return []
    final, pad = ink.free(ink.source.scope(call), FINAL), ink.pad(statement)
    first = f"{final}, {rows} = {ink.text(call)}\n{pad}{after.format(rows=rows)}"
    if isinstance(statement, ast.Expr) and statement.value is call:
        return [ink.put(statement, first)]
    rest = ink.text(statement, {call: f"({final}, None)"})
    return [ink.put(statement, f"{first}\n{pad}{rest}")]


# --- in the carry ---------------------------------------------------------------------------------------------------


def in_carry(ink: Ink, effect: Effect) -> list[TextEdit]:
    """Carry what the step reads and writes: ``(init, value)`` in, ``(final, value)`` out."""
    road = road_of(ink, effect)
    if road is None or effect.kind not in ("name", "attribute", "item", "count", "array") or road.carry is None:
        return []
    holder = outside_text(ink, road, effect)
    names = [a.arg for a in parameters(road.step)]
    own = 1 if names and names[0] == "self" else 0
    if holder is None or len(names) <= own:
        return []
    carry = names[own]
    local, edits = _local(ink, road, effect)
    body = [s for s in road.step.body if not isinstance(s, ast.Global | ast.Nonlocal)]
    if ast.get_docstring(road.step) is not None:
        body = body[1:]
    if not body:
        return []
    edits.append(ink.facts.insert_before(body[0], f"{carry}, {local} = {carry}"))
    edits += [ink.put(pair.elts[0], f"({ink.argument(pair.elts[0])}, {local})") for pair in road.returns]
    edits.append(ink.put(road.init, f"({ink.argument(road.init)}, {holder})"))
    edits.append(ink.put(road.carry, f"({ink.text(road.carry)}, {holder})"))
    return edits


def _local(ink: Ink, road: Road, effect: Effect) -> tuple[str, list[TextEdit]]:
    """The name inside the step, and the edits that make it a local one there."""
    if isinstance(effect.node, ast.Name):
        return effect.node.id, _undeclared(ink, road.step, effect.node.id)
    spelled = ast.unparse(effect.node)
    wanted = effect.node.attr if isinstance(effect.node, ast.Attribute) else "value"
    if isinstance(effect.node, ast.Subscript) and isinstance(effect.node.slice, ast.Constant):
        key = effect.node.slice.value
        wanted = key if isinstance(key, str) and key.isidentifier() else wanted
    local = ink.free(road.step, wanted)
    same = [
        n for n in ast.walk(road.step) if isinstance(n, ast.Attribute | ast.Subscript) and ast.unparse(n) == spelled
    ]
    return local, [ink.put(n, local) for n in same]


def outside_text(ink: Ink, road: Road, effect: Effect) -> str | None:
    """How the scan's own scope writes what the effect changes; None when it means something else there."""
    holder = effect.holder
    if holder is None:
        return None
    base: ast.expr = holder
    while isinstance(base, ast.Attribute | ast.Subscript):
        if isinstance(base, ast.Subscript) and not isinstance(base.slice, ast.Constant):
            return None
        base = base.value
    if not isinstance(base, ast.Name):
        return None
    text = ink.text(holder)
    scope = ink.source.scope(road.call)
    outer = scope if isinstance(scope, FUNCTIONS) else None
    owner = owner_of(ink.facts, road.step, base.id)
    if owner is road.step:
        step = next((v for k, v in ink.facts.scans[effect.scan or 0].arguments.items() if k == "step"), None)
        bound = isinstance(step, ast.Attribute) and isinstance(step.value, ast.Name)
        first = parameters(road.step)[0].arg if parameters(road.step) else ""
        if bound and isinstance(step, ast.Attribute) and isinstance(step.value, ast.Name) and base.id == first:
            return step.value.id + text[len(base.id) :]
        return None
    seen_from = None if outer is None else owner_of(ink.facts, outer, base.id)
    if owner is not seen_from:
        return None
    if (
        isinstance(holder, ast.Name)
        and outer is not None
        and owner is not outer
        and not _may_write(ink, outer, base.id)
    ):
        return text if effect.kind == "store" else None
    return text


def _may_write(ink: Ink, function: Function, name: str) -> bool:
    return any(isinstance(n, ast.Global | ast.Nonlocal) and name in n.names for n in ink.source.within(function))
