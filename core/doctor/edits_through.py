"""The pair (c, h) carried through a step that kept h alone: in init, in what the step returns, and where h is used.

``_, out = cell(h, x)`` in a step throws the new carry away, and ``return (out, n), out`` carries h where the pair belongs.
A pair made anew at every step would only hide that: c must be in the carry.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from jax import tree_util

from core.base.places import Span
from core.base.violation import TextEdit
from core.contract import trees
from core.contract.script_record import ScanSite
from core.contract.source import Function, child_of
from core.contract.trace import StepTrace
from core.doctor.edits import Desk, Edits, Maker
from core.doctor.edits_init import keys_of
from core.doctor.edits_step import through_name
from core.doctor.leaves import Change, Written, access, rebuilt
from core.doctor.pen import Pen, body_indent

NEW = tree_util.SequenceKey(0)
#: Position of h in the pair.
H = "[1]"

type Keys = tuple[Any, ...]


def carry_through(desk: Desk) -> Iterator[Edits | None]:
    """Init's leaf becomes the pair; what the cell returns for its carry is what the step returns there."""
    site, node = desk.site, desk.at(desk.repair.value) or desk.node
    call = None if node is None else _call_of(desk, node)
    keys = None if site is None else keys_of(site.call.init, "carry", desk.repair.path)
    if site is None or site.step is None or node is None or call is None or keys is None:
        return
    new = _new_carry(desk, site.step, call)
    if new is None:
        return
    returns = list(_returns(desk, site.step, call, keys, new))
    if not returns:
        return
    taken = [new.inline] if new.inline is not None else []
    taken += [part for _, part in returns if part is not None]
    edits = [edit for made, _ in returns for edit in made]
    edits += new.edits if all(part is not new.inline for _, part in returns) else new.before
    edits += [desk.pen.replace(use, f"{desk.pen.atom(use)}{H}") for use in _uses(desk, site.step, node, taken)]
    later = [desk.pen.replace(use, f"{desk.pen.atom(use)}{H}") for use in _later(desk, site, keys)]
    for init in _inits(desk, site, keys):
        yield (*init, *edits, *later)
        if later:
            yield (*init, *edits)


def _call_of(desk: Desk, node: ast.expr) -> ast.Call | None:
    """The cell's call that a node is the carry argument of."""
    parent = desk.source.parents.get(node)
    if isinstance(parent, ast.keyword):
        parent = desk.source.parents.get(parent)
    return parent if isinstance(parent, ast.Call) and node is not parent.func else None


def part_of(desk: Desk, node: ast.expr, keys: Keys) -> ast.expr | None:
    """The expression at a path of a literal; also of a NamedTuple that is built by position."""
    for key in keys:
        whole = desk.source.resolve(node)
        inner = child_of(whole, key)
        name = getattr(key, "name", None)
        if inner is None and isinstance(whole, ast.Call) and isinstance(whole.func, ast.Name) and name is not None:
            fields = getattr(desk.record.names.get(whole.func.id), "_fields", ())
            plain = not any(isinstance(a, ast.Starred) for a in whole.args)
            at = fields.index(name) if name in fields else len(whole.args)
            inner = whole.args[at] if plain and at < len(whole.args) else None
        if inner is None:
            return None
        node = inner
    return node


# --- the cell's new carry -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _New:
    """How the cell's new carry is called in the step.

    Attributes:
        text: the expression for it.
        edits: what gives it that name; without the last of them (`before`) where the output itself is written anew.
        inline: ``cell(h, x)[1]``, where the output is taken so.
    """

    text: str
    edits: tuple[TextEdit, ...] = ()
    before: tuple[TextEdit, ...] = ()
    inline: ast.expr | None = None


def _new_carry(desk: Desk, step: Function, call: ast.Call) -> _New | None:
    source, pen = desk.source, desk.pen
    if source.scope(call) is not step:
        return None
    statement, parent = source.statement(call), source.parents.get(call)
    if isinstance(parent, ast.NamedExpr):
        return _New(f"{parent.target.id}[0]")
    if isinstance(parent, ast.Subscript) and _is_one(parent.slice):
        return _taken_apart(desk, step, call, parent)
    if not isinstance(statement, ast.Assign) or statement.value is not call or len(statement.targets) != 1:
        return None
    (target,) = statement.targets
    if isinstance(target, ast.Name):
        return _New(f"{target.id}[0]")
    if not isinstance(target, ast.Tuple | ast.List) or len(target.elts) != 2:
        return None
    first = target.elts[0]
    if isinstance(first, ast.Name):
        if not _dropped(first) and not _stored_after(desk, step, first.id, statement):
            return _New(first.id)
        (name,) = pen.free(step, "new")
        edits = [pen.replace(first, name)]
        if not _dropped(first):
            pad = body_indent(source, step, call)
            edits.append(pen.replace(call, f"{source.text_of(call)}\n{pad}{first.id} = {name}"))
        return _New(name, tuple(edits))
    if not isinstance(first, ast.Tuple | ast.List) or len(first.elts) != 2:
        return None
    names, renamed = [], []
    for part, wanted in zip(first.elts, ("c", "h"), strict=True):
        if not isinstance(part, ast.Name) or _stored_after(desk, step, part.id, statement):
            return None
        (name,) = pen.free(step, f"new_{wanted}") if _dropped(part) else (part.id,)
        names.append(name)
        renamed += [pen.replace(part, name)] if _dropped(part) else []
    return _New(f"({', '.join(names)})", tuple(renamed))


def _taken_apart(desk: Desk, step: Function, call: ast.Call, output: ast.Subscript) -> _New | None:
    """``cell(h, x)[1]``: in a lambda its other part; in a function both get a name first."""
    source, pen = desk.source, desk.pen
    text, statement = source.text_of(call), source.statement(call)
    if isinstance(step, ast.Lambda):
        return _New(f"{text}[0]", inline=output)
    if isinstance(statement, ast.Assign) and statement.value is output and isinstance(statement.targets[0], ast.Name):
        (name,) = pen.free(step, "new")
        target = ast.unparse(statement.targets[0])
        return _New(name, (pen.replace(statement, f"{name}, {target} = {text}"),))
    if not isinstance(statement, ast.Assign | ast.Return | ast.Expr):
        return None
    name, out = pen.free(step, "new", "out")
    start = source.span(statement)
    spot = Span(start.line, start.col, start.line, start.col)
    before = TextEdit(spot, f"{name}, {out} = {text}\n{body_indent(source, step, call)}")
    return _New(name, (before, pen.replace(output, out)), (before,), output)


def _is_one(node: ast.expr) -> bool:
    """Whether an index is the cell's output: 1, or -1 of two."""
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    constant = node.operand if isinstance(node, ast.UnaryOp) and negative else node
    return isinstance(constant, ast.Constant) and constant.value == 1 and constant.value is not True


def _dropped(node: ast.Name) -> bool:
    """Whether a name says that nobody wants the value."""
    return node.id.startswith("_")


def _stored_after(desk: Desk, step: Function, name: str, statement: ast.stmt) -> bool:
    """Whether a name stands for something else later in the step."""
    names = (n for n in desk.source.within(step) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return any(n.id == name and n.lineno > (statement.end_lineno or statement.lineno) for n in names)


# --- what the step returns ------------------------------------------------------------------------------------------


def _returns(
    desk: Desk, step: Function, call: ast.Call, keys: Keys, new: _New
) -> Iterator[tuple[list[TextEdit], ast.expr | None]]:
    """Edits of each return, with the part that is replaced; nothing at all where one of them gives something else."""
    made: list[tuple[list[TextEdit], ast.expr | None]] = []
    known = desk.site is not None and isinstance(desk.site.facts.trace, StepTrace)  # then the rule saw that it is h
    for value in desk.source.all_returned(step):
        part = part_of(desk, value, (NEW, *keys))
        if part is not None and (known or _is_output(desk, part, call)):
            named = part.value if isinstance(part, ast.Subscript) else None
            text = f"{desk.pen.text(named)}[0]" if isinstance(named, ast.NamedExpr) else new.text
            made.append(([desk.pen.replace(part, text)], part))
        elif part is None and known:
            made.append((through_name(desk, value, {desk.repair.path: Written(new.text)}), None))
        else:
            return
    yield from made


def _is_output(desk: Desk, part: ast.expr, call: ast.Call) -> bool:
    """Whether a returned part is what this call of the cell put out, as far as names lead."""
    made = desk.source.resolve(part)
    if isinstance(made, ast.Subscript) and _is_one(made.slice):
        made = desk.source.resolve(made.value)
    return made is call


# --- where h is used ------------------------------------------------------------------------------------------------


def _uses(desk: Desk, step: Function, node: ast.expr, taken: Iterable[ast.expr]) -> list[ast.expr]:
    """What else in the step is the leaf that the cell was given: by the traced value, and by the same name."""
    source, seen = desk.source, desk.record.seen
    values = [s.value for s in seen if s.node is node]
    found = {s.node for s in seen if any(s.value is value for value in values)}
    text = source.text_of(node)
    for other in source.within(step):
        if isinstance(other, type(node)) and isinstance(other, ast.expr) and source.text_of(other) == text:
            same = not isinstance(other, ast.Name) or not isinstance(node, ast.Name)
            if same or source.bound(other) is source.bound(node):  # type: ignore[arg-type]  # both are names
                found.add(other)
    inside = {n for outer in taken for n in ast.walk(outer)} | {node, *_carries(desk)}
    return [n for n in found if n not in inside and step in source.enclosing(n) and _reads(desk, n)]


def _carries(desk: Desk) -> Iterator[ast.expr]:
    """What cells that want the pair are given for it in the step: that stays as it is written."""
    events = [] if desk.site is None else desk.site.facts.cells.steps
    for event in events:
        node = desk.at(event.site.find("carry")) if event.wants_pair and event.site is not None else None
        if node is not None:
            yield node


def _reads(desk: Desk, node: ast.expr) -> bool:
    """Whether a value is used there, not only given another name."""
    statement = desk.source.statement(node)
    plain = isinstance(node, ast.Name | ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Load)
    renamed = isinstance(statement, ast.Assign) and statement.value is node
    return plain and not (renamed and all(isinstance(t, ast.Name) for t in getattr(statement, "targets", ())))


def _later(desk: Desk, site: ScanSite, keys: Keys) -> list[ast.expr]:
    """What is read of the final carry's leaf behind the scan, but for what goes into another scan of this step."""
    source, found = desk.source, set()
    if site.result is not None:
        final = trees.find(site.result[0], "carry", desk.repair.path)
        found |= {s.node for s in desk.record.seen if s.value is final}
    statement = None if site.node is None else source.statement(site.node)
    if isinstance(statement, ast.Assign) and statement.value is site.node:
        target = part_of(desk, statement.targets[0], (NEW,))
        leaf = None if target is None else part_of(desk, target, keys)
        whole = target.id + "".join(access(k) for k in keys) if isinstance(target, ast.Name) else None
        text = leaf.id if isinstance(leaf, ast.Name) else whole
        scope = source.scope(statement)
        after = (n for n in source.within(scope) if getattr(n, "lineno", 0) > (statement.end_lineno or 0))
        found |= {n for n in after if isinstance(n, ast.expr) and text and ast.unparse(n) == text}
    starts = [s.arguments["init"] for s in _same_step(desk, site) if "init" in s.arguments]
    inside = {n for start in starts for n in ast.walk(start)}
    return [n for n in found if n not in inside and _reads(desk, n)]


# --- init -----------------------------------------------------------------------------------------------------------


def _same_step(desk: Desk, site: ScanSite) -> list[ScanSite]:
    """The scans of the script that take this step, each place once."""
    return list({s.node: s for s in desk.record.scans if s.step is site.step and s.node is not None}.values())


def _inits(desk: Desk, site: ScanSite, keys: Keys) -> Iterator[Edits]:
    """Ways to make init's leaf the pair, in every scan of this step that starts from one array."""
    ways = []
    sites = [site, *(s for s in _same_step(desk, site) if s.node is not site.node)]
    for one in sites:
        if not _goes_on(desk, one, sites, keys):
            own = [edits for edits in _ways(replace(desk, site=one), keys) if edits]
            if not own:
                return
            ways.append(own)
    for number in range(max(map(len, ways), default=0)):
        edits = [edit for own in ways for edit in own[min(number, len(own) - 1)]]
        yield tuple(dict.fromkeys(edits))


def _goes_on(desk: Desk, site: ScanSite, sites: list[ScanSite], keys: Keys) -> bool:
    """Whether a scan starts where another of the same step ended: its carry is the pair by itself then."""
    argument, path = site.arguments.get("init"), desk.repair.path
    made = None if argument is None else desk.source.resolve(argument)
    leaf = None if made is None else part_of(desk, made, keys)
    made_leaf = None if leaf is None else desk.source.resolve(leaf)
    value = trees.find(site.call.init, "carry", path)
    others = [other for other in sites if other is not site]
    ended = [trees.find(other.result[0], "carry", path) for other in others if other.result is not None]
    return any(value is end for end in ended) or any(node is o.node for o in others for node in (made, made_leaf))


def _ways(desk: Desk, keys: Keys) -> Iterator[Edits]:
    argument, source, pen, site = desk.arguments.get("init"), desk.source, desk.pen, desk.site
    if argument is None or site is None:
        return
    part = part_of(desk, source.resolve(argument), keys)
    inside = part is not None and (keys or part is argument)
    if part is not None and (inside or (pen.maker(part) == "zeros" and _used_once(desk, argument))):
        yield (pen.replace(part, _pair(pen, part)),)
    changes: dict[str, Change] = {desk.repair.path: _Pair()}
    statement = source.statement(argument)
    if isinstance(argument, ast.Name | ast.Attribute | ast.Subscript):
        new = rebuilt(pen, pen.text(argument), site.call.init, "carry", changes)
        yield () if new is None else (pen.replace(argument, new),)
    elif _simple(desk, statement, argument) and statement is not None:
        (name,) = pen.free(source.tree, "init")  # what a call makes is made once
        new = rebuilt(pen, name, site.call.init, "carry", changes)
        line = source.span(statement).line
        pad = " " * statement.col_offset
        first = TextEdit(Span(line, 0, line, 0), f"{pad}{name} = {source.text_of(argument)}\n")
        yield () if new is None else (first, pen.replace(argument, new))


def _simple(desk: Desk, statement: ast.stmt | None, node: ast.expr) -> bool:
    """Whether what a node computes may as well be computed in a line of its own before its statement."""
    plain = isinstance(statement, ast.Assign | ast.Return | ast.Expr)
    return plain and statement is not None and desk.source.scope(statement) is desk.source.scope(node)


def _used_once(desk: Desk, name: ast.expr) -> bool:
    """Whether nothing else in the script reads a name."""
    names = (n for n in ast.walk(desk.source.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    return isinstance(name, ast.Name) and sum(n.id == name.id for n in names) == 1


def _pair(pen: Pen, node: ast.expr) -> str:
    """``(jnp.zeros((2, 4)), jnp.zeros((2, 4)))`` of what is zeros already; else zeros like it, and itself."""
    text = pen.text(node)
    c = text if pen.maker(node) == "zeros" else f"{pen.jnp('zeros_like')}({text})"
    return f"({c}, {text})"


@dataclass(frozen=True, slots=True)
class _Pair:
    """The pair, around a leaf."""

    def node(self, pen: Pen, node: ast.expr, value: Any) -> TextEdit | None:
        """The leaf as it is written, made the pair."""
        return pen.replace(node, _pair(pen, node))

    def text(self, pen: Pen, text: str, value: Any) -> str:
        """Zeros like it, and itself."""
        return f"({pen.jnp('zeros_like')}({text}), {text})"


MAKERS: dict[str, tuple[Maker, ...]] = {"carry_through": (carry_through,)}
