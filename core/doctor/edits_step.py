"""Edits of what a step returns: a leaf of the new carry cast, reshaped, kept, dropped; the pair itself put right."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from jax import tree_util

from core.base.violation import TextEdit
from core.contract import trees
from core.contract.source import Function, parameters
from core.doctor.edits import Desk, Edits, Maker
from core.doctor.edits_init import keys_of
from core.doctor.leaves import Around, CastTo, Change, access, edit_node, is_number, rebuilt
from core.doctor.pen import Pen, body_indent

NEW = tree_util.SequenceKey(0)
KINDS: dict[Any, str] = {tuple: "tuple({x})", list: "list({x})", dict: "dict({x})"}


def _returns(desk: Desk) -> list[ast.expr]:
    step = desk.site.step if desk.site is not None else None
    return [] if step is None else desk.source.all_returned(step)


def _carry_name(desk: Desk) -> str | None:
    """The name of the step's first parameter (behind `self` of a method)."""
    step = desk.site.step if desk.site is not None else None
    if step is None:
        return None
    names = [a.arg for a in parameters(step)]
    return next((n for n in names if n != "self"), None)


def _on_new_carry(desk: Desk, changes: dict[str, Change]) -> Iterator[Edits | None]:
    """Change nodes of the new carry in every return of the step."""
    if desk.site is None:
        return
    init, source, pen = desk.site.call.init, desk.source, desk.pen
    paths = {path: keys_of(init, "carry", path) for path in changes}
    if any(k is None for k in paths.values()):
        return
    direct: list[TextEdit] = []
    unpacked: list[TextEdit] = []
    for value in _returns(desk):
        for path, keys in paths.items():
            part = source.whole_part(value, (NEW, *(keys or ())))
            if part is None or (source.enclosing(part) and next(source.enclosing(part), None) is not desk.site.step):
                unpacked += through_name(desk, value, changes)
                break
            old = trees.find(init, "carry", path)
            direct.append(edit_node(pen, changes[path], part, old))
    if direct and not unpacked:
        yield tuple(direct)
    elif unpacked:
        yield (*direct, *unpacked)


def through_name(desk: Desk, value: ast.expr, changes: dict[str, Change]) -> list[TextEdit]:
    """``return f(x)`` becomes ``new, y = f(x)`` and ``return (new[0]…, new[1]), y``."""
    site, pen, source = desk.site, desk.pen, desk.source
    if site is None or site.step is None:
        return []
    new_part = source.whole_part(value, (NEW,))
    if new_part is not None and isinstance(new_part, ast.Name):
        text = rebuilt(pen, pen.atom(new_part), site.call.init, "carry", changes)
        return [] if text is None else [pen.replace(new_part, text)]
    statement = source.statement(value)
    if not isinstance(statement, ast.Return):
        return []
    new, y = pen.free(site.step, "new_carry", "y")
    text = rebuilt(pen, new, site.call.init, "carry", changes)
    if text is None:
        return []
    pad = body_indent(source, site.step, value)
    return [pen.replace(statement, f"{new}, {y} = {source.text_of(value)}\n{pad}return {text}, {y}")]


# --- leaves ---------------------------------------------------------------------------------------------------------


def step_cast(desk: Desk) -> Iterator[Edits | None]:
    """Cast a leaf of the new carry."""
    yield from _on_new_carry(desk, {desk.repair.path: _CastReturned(str(desk.repair.value))})


@dataclass(frozen=True, slots=True)
class _CastReturned:
    """A cast of what a step computed: behind it, never inside (its parts may be used elsewhere)."""

    dtype: str

    def node(self, pen: Pen, node: ast.expr, value: Any) -> TextEdit | None:
        """A number as written gets the dtype."""
        return CastTo(self.dtype).node(pen, node, value) if is_number(node) else None

    def text(self, pen: Pen, text: str, value: Any) -> str:
        """``x.astype(dtype)``: what a step computes is an array."""
        return f"{text}.astype({pen.dtype(self.dtype)})"


def step_shape(desk: Desk) -> Iterator[Edits | None]:
    """Reshape a leaf of the new carry."""
    shape = desk.pen.shape(desk.repair.value)
    yield _without_axis(desk)
    yield from _on_new_carry(desk, {desk.repair.path: Around(f"{{jnp.reshape}}({{x}}, {shape})")})


def _without_axis(desk: Desk) -> Edits | None:
    """Where the leaf is computed with an axis of length 1 kept or put on, that is left out: y is made of it too."""
    site, pen = desk.site, desk.pen
    keys = None if site is None else keys_of(site.call.init, "carry", desk.repair.path)
    edits: list[TextEdit] = []
    for value in _returns(desk):
        part = desk.source.whole_part(value, (NEW, *(keys or ())))
        made = None if part is None else desk.source.resolve(part)
        if isinstance(made, ast.Call):
            kept = next((k for k in made.keywords if k.arg == "keepdims"), None)
            if kept is not None:
                edits += pen.argument(made, None, "keepdims", None)
            elif pen.maker(made) in ("array", "asarray", "atleast_1d", "stack") and made.args:
                inner = made.args[0]
                one = isinstance(inner, ast.List | ast.Tuple) and len(inner.elts) == 1
                edits.append(pen.replace(made, pen.text(inner.elts[0] if one else inner)))  # type: ignore[attr-defined]
        elif isinstance(made, ast.Subscript) and isinstance(made.slice, ast.Constant) and made.slice.value is None:
            edits.append(pen.replace(made, pen.text(made.value)))
    return tuple(edits)


# --- structure ------------------------------------------------------------------------------------------------------


def step_keep(desk: Desk) -> Iterator[Edits | None]:
    """Give the new carry what it lacks, from the incoming one; or its old name back to a key that was renamed."""
    site, name = desk.site, _carry_name(desk)
    if site is None or name is None:
        return
    path = desk.repair.path
    keys = keys_of(site.call.init, "carry", path)
    old = trees.find(site.call.init, "carry", path)
    whole = name + "".join(access(k) for k in keys or ())
    renamed: list[TextEdit] = []
    added: list[TextEdit] = []
    replaced: list[TextEdit] = []
    for value in _returns(desk):
        part = desk.source.whole_part(value, (NEW, *(keys or ())))
        if part is None:
            return
        literal = desk.source.resolve(part)
        if isinstance(literal, ast.Dict) and isinstance(old, dict):
            have = [k.value for k in literal.keys if isinstance(k, ast.Constant)]
            lost = [k for k in old if k not in have]
            extra = [k for k in literal.keys if isinstance(k, ast.Constant) and k.value not in old]
            if len(lost) == 1 and len(extra) == 1:
                renamed.append(desk.pen.replace(extra[0], repr(lost[0])))
            added += _more_items(desk, literal, {k: f"{whole}[{k!r}]" for k in lost})
        elif isinstance(literal, ast.Tuple) and isinstance(old, tuple) and len(literal.elts) < len(old):
            rest = "".join(f", {whole}[{i}]" for i in range(len(literal.elts), len(old)))
            text = desk.source.text_of(literal)
            text = text[:-1].rstrip().rstrip(",") + rest + ")" if text.startswith("(") else f"({text}{rest})"
            added.append(desk.pen.replace(literal, text))
        replaced.append(desk.pen.replace(part, whole))
    yield tuple(renamed)
    yield tuple(added)
    yield tuple(replaced)


def _more_items(desk: Desk, literal: ast.Dict, items: dict[Any, str]) -> list[TextEdit]:
    if not items:
        return []
    text = desk.source.text_of(literal)
    more = ", ".join(f"{k!r}: {v}" for k, v in items.items())
    inner = text[1:-1].rstrip().rstrip(",")
    return [desk.pen.replace(literal, f"{{{inner}, {more}}}" if inner.strip() else f"{{{more}}}")]


def step_drop(desk: Desk) -> Iterator[Edits | None]:
    """Take out of the new carry what init does not have."""
    site = desk.site
    if site is None:
        return
    keys = keys_of(site.call.init, "carry", desk.repair.path)
    old = trees.find(site.call.init, "carry", desk.repair.path)
    edits = []
    for value in _returns(desk):
        part = desk.source.whole_part(value, (NEW, *(keys or ())))
        literal = None if part is None else desk.source.resolve(part)
        if isinstance(literal, ast.Dict) and isinstance(old, dict):
            kept = [
                f"{desk.source.text_of(k)}: {desk.source.text_of(v)}"
                for k, v in zip(literal.keys, literal.values, strict=True)
                if isinstance(k, ast.Constant) and k.value in old
            ]
            edits.append(desk.pen.replace(literal, "{" + ", ".join(kept) + "}"))
        elif isinstance(literal, ast.Tuple) and isinstance(old, tuple) and len(literal.elts) > len(old):
            kept = [desk.pen.text(e) for e in literal.elts[: len(old)]]
            edits.append(desk.pen.replace(literal, f"({', '.join(kept)}{',' if len(kept) == 1 else ''})"))
        else:
            return
    yield tuple(edits)


def step_kind(desk: Desk) -> Iterator[Edits | None]:
    """Return the container as the kind that init has: a tuple for a list, a NamedTuple for a tuple."""
    site = desk.site
    if site is None:
        return
    old = trees.find(site.call.init, "carry", desk.repair.path)
    kind = type(old)
    named = kind.__name__ in desk.record.names
    template = KINDS.get(kind) or (f"{kind.__name__}(*{{x}})" if named else None)
    if template is not None:
        yield from _on_new_carry(desk, {desk.repair.path: _Kind(kind, template)})


@dataclass(frozen=True, slots=True)
class _Kind:
    """A literal written as the other kind; anything else converted by `template`."""

    kind: type
    template: str

    def node(self, pen: Pen, node: ast.expr, value: Any) -> TextEdit | None:
        """``[a, b]`` becomes ``(a, b)``, and the other way round."""
        literal = pen.source.resolve(node)
        if not isinstance(literal, ast.Tuple | ast.List) or self.kind not in (tuple, list):
            return None
        inner = ", ".join(pen.text(e) for e in literal.elts)
        comma = "," if len(literal.elts) == 1 and self.kind is tuple else ""
        return pen.replace(literal, f"[{inner}]" if self.kind is list else f"({inner}{comma})")

    def text(self, pen: Pen, text: str, value: Any) -> str:
        """``tuple(x)``."""
        return Around(self.template).text(pen, text, value)


# --- the pair -------------------------------------------------------------------------------------------------------


def step_return(desk: Desk) -> Iterator[Edits | None]:
    """Make a pair of what the step returns."""
    makers: dict[Any, Callable[[Desk, ast.expr], list[list[TextEdit]]]] = {
        "carry, None": _with_none,
        "carry, carry": _twice,
        "carry, (y, ...)": lambda d, v: _gathered(d, v, 1),
        "(carry...), y": lambda d, v: _gathered(d, v, None),
        "tuple": _as_tuple,
    }
    make = makers.get(desk.repair.value)
    step = desk.site.step if desk.site is not None else None
    if make is None or step is None:
        return
    if not _returns(desk):
        yield _missing_return(desk, step)
        return
    options = [make(desk, value) for value in _returns(desk)]
    for choice in zip(*options, strict=False):
        yield tuple(edit for edits in choice for edit in edits)


def _with_none(desk: Desk, value: ast.expr) -> list[list[TextEdit]]:
    return [[desk.pen.replace(value, _pair(desk, value, desk.pen.text(value), "None"))]]


def _twice(desk: Desk, value: ast.expr) -> list[list[TextEdit]]:
    text, step = desk.pen.text(value), desk.site.step if desk.site is not None else None
    statement = desk.source.statement(value)
    if isinstance(value, ast.Name) or not isinstance(statement, ast.Return) or step is None:
        return [[desk.pen.replace(value, _pair(desk, value, text, text))]]
    (new,) = desk.pen.free(step, "new_carry")
    pad = body_indent(desk.source, step, value)
    return [[desk.pen.replace(statement, f"{new} = {desk.source.text_of(value)}\n{pad}return {new}, {new}")]]


def _pair(desk: Desk, value: ast.expr, new: str, y: str) -> str:
    """``new, y``, in parentheses where it is a lambda's body."""
    return f"({new}, {y})" if isinstance(desk.source.parents.get(value), ast.Lambda) else f"{new}, {y}"


def _gathered(desk: Desk, value: ast.expr, carried: int | None) -> list[list[TextEdit]]:
    """The first `carried` parts (all but the last: None) are the new carry, what is left is y."""
    literal = desk.source.resolve(value)
    if not isinstance(literal, ast.Tuple | ast.List) or len(literal.elts) < 2:
        return []
    parts = [desk.pen.text(e) for e in literal.elts]
    counts = [carried] if carried is not None else [len(parts) - 1, *range(len(parts) - 2, 0, -1)]
    out = []
    for count in counts:
        group = [_group(parts[:count]), _group(parts[count:])]
        out.append([desk.pen.replace(literal, _pair(desk, literal, group[0], group[1]))])
    return out


def _group(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def _as_tuple(desk: Desk, value: ast.expr) -> list[list[TextEdit]]:
    """Two things in a dict, or in a call of a class, become a plain pair; in both orders."""
    literal = desk.source.resolve(value)
    if isinstance(literal, ast.Dict):
        parts = [desk.pen.text(v) for v in literal.values]
    elif isinstance(literal, ast.Call):
        parts = [desk.pen.text(a) for a in literal.args] + [desk.pen.text(k.value) for k in literal.keywords]
    else:
        parts = []
    if len(parts) != 2:
        return [[desk.pen.replace(value, f"tuple({desk.pen.text(value)})")]]
    orders = (parts, parts[::-1])
    return [[desk.pen.replace(literal, _pair(desk, literal, one, other))] for one, other in orders]


def _missing_return(desk: Desk, step: Function) -> Edits | None:
    """A step without a return gets one: its carry as it was last assigned, or what the last line made."""
    if isinstance(step, ast.Lambda):
        return None
    last, name = step.body[-1], _carry_name(desk)
    stores = [n.id for n in desk.source.within(step) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    if name not in stores:
        name = last.targets[0].id if isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Name) else None
    if name is None:
        return None
    bare = [n for n in desk.source.within(step) if isinstance(n, ast.Return)]
    y = "None" if desk.repair.value == "carry, None" else name
    if bare:
        return tuple(desk.pen.replace(node, f"return {name}, {y}") for node in bare)
    pad = body_indent(desk.source, step, last)
    end = desk.source.span(last)
    spot = type(end)(end.end_line, end.end_col, end.end_line, end.end_col)
    return (TextEdit(spot, f"\n{pad}return {name}, {y}"),)


MAKERS: dict[str, tuple[Maker, ...]] = {
    "step_cast": (step_cast,),
    "step_shape": (step_shape,),
    "step_keep": (step_keep,),
    "step_drop": (step_drop,),
    "step_kind": (step_kind,),
    "step_return": (step_return,),
}
