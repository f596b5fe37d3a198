"""Edits about what rides in the carry: a leaf taken out of it or wrapped, the pair turned round, a total made of a leaf."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from jax import tree_util

from core.base.avals import aval_of
from core.base.places import Span
from core.base.violation import TextEdit
from core.contract import trees
from core.contract.source import Function, parameters
from core.doctor.edits import Desk, Edits, Maker
from core.doctor.edits_init import keys_of
from core.doctor.leaves import access
from core.doctor.pen import body_indent

NEW = tree_util.SequenceKey(0)


def _step(desk: Desk) -> Function | None:
    return None if desk.site is None else desk.site.step


def _carry_name(step: Function) -> str | None:
    """The name of the step's first parameter (behind `self` of a method)."""
    return next((a.arg for a in parameters(step) if a.arg != "self"), None)


# --- the pair -------------------------------------------------------------------------------------------------------


def step_swap(desk: Desk) -> Iterator[Edits | None]:
    """``return y, new`` becomes ``return new, y``; ``return f(x)`` is taken apart first."""
    step = _step(desk)
    if step is None:
        return
    edits: list[TextEdit] = []
    for value in desk.source.all_returned(step):
        pair = desk.source.resolve(value)
        if isinstance(pair, ast.Tuple | ast.List) and len(pair.elts) == 2:
            one, two = pair.elts
            edits += [desk.pen.replace(one, desk.source.text_of(two)), desk.pen.replace(two, desk.source.text_of(one))]
            continue
        statement = desk.source.statement(value)
        if not isinstance(statement, ast.Return):
            edits.append(desk.pen.replace(value, f"{desk.pen.atom(value)}[::-1]"))
            continue
        y, new = desk.pen.free(step, "y", "new_carry")
        pad = body_indent(desk.source, step, value)
        text = f"{y}, {new} = {desk.source.text_of(value)}\n{pad}return {new}, {y}"
        edits.append(desk.pen.replace(statement, text))
    yield tuple(edits)


# --- a total --------------------------------------------------------------------------------------------------------


def step_add(desk: Desk) -> Iterator[Edits | None]:
    """What is returned for a leaf is added to what came in for it, by the name that stands for that in the step."""
    step, site = _step(desk), desk.site
    name = None if step is None else _carry_name(step)
    if step is None or site is None or name is None:
        return
    keys = keys_of(site.call.init, "carry", desk.repair.path) or ()
    for come_in in (*_unpacked(desk, step, name, keys), name + "".join(access(key) for key in keys)):
        edits: list[TextEdit] = []
        for value in desk.source.all_returned(step):
            part = desk.source.whole_part(value, (NEW, *keys))
            if part is None:
                return
            made = desk.source.resolve(part)
            edits.append(desk.pen.replace(made, f"{come_in} + {desk.pen.atom(made)}"))
        yield tuple(edits)


def _unpacked(desk: Desk, step: Function, name: str, keys: tuple[Any, ...]) -> Iterator[str]:
    """The name that the step itself gave to a part of its carry: ``pos, penalty = state``."""
    if isinstance(step, ast.Lambda) or not keys:
        return
    for target in (t for _, t in _unpackings(desk, step, name)):
        part = desk.source.whole_part(target, keys)
        if isinstance(part, ast.Name):
            yield part.id


def _unpackings(desk: Desk, scope: ast.AST, name: str) -> Iterator[tuple[ast.Assign, ast.Tuple | ast.List]]:
    """Statements ``a, b = name`` in a scope, with their targets."""
    for node in desk.source.within(scope):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.Name):
            target = node.targets[0]
            if node.value.id == name and isinstance(target, ast.Tuple | ast.List):
                yield node, target


# --- what is no array -----------------------------------------------------------------------------------------------


def init_partial(desk: Desk) -> Iterator[Edits | None]:
    """The function in init wrapped in `jax.tree_util.Partial`, where it stands in the tree."""
    argument = desk.arguments.get("init")
    if argument is None or desk.site is None:
        return
    keys = keys_of(desk.site.call.init, "carry", desk.repair.path)
    node = desk.source.whole_part(desk.source.resolve(argument), keys or ())
    if node is not None:
        yield (desk.pen.replace(node, f"{desk.pen.name('jax.tree_util', 'Partial')}({desk.source.text_of(node)})"),)


def register_dataclass(desk: Desk) -> Iterator[Edits | None]:
    """The class made a pytree by a decorator; its fields that are no arrays are static."""
    if desk.site is None:
        return
    classes = [n for n in ast.walk(desk.source.tree) if isinstance(n, ast.ClassDef) and n.name == desk.repair.value]
    if len(classes) != 1:
        return
    (made,) = classes
    value = trees.find(desk.site.call.init, "carry", desk.repair.path)
    first = min([made.lineno, *(d.lineno for d in made.decorator_list)])
    line = desk.source.lines[first - 1]
    pad = line[: len(line) - len(line.lstrip())]
    register = desk.pen.name("jax.tree_util", "register_dataclass")
    arrays: list[str] = []
    static: list[str] = []
    for field in getattr(type(value), "__dataclass_fields__", {}):
        inner = tree_util.tree_leaves(getattr(value, field, None))
        (static if any(aval_of(leaf) is None for leaf in inner) else arrays).append(field)
    text = f"@{register}"
    if static:
        text = f"@{desk.pen.name('functools', 'partial')}({register}, data_fields={arrays!r}, meta_fields={static!r})"
    yield (TextEdit(Span(first, 0, first, 0), f"{pad}{text}\n"),)


def carry_out(desk: Desk) -> Iterator[Edits | None]:
    """A part of the carry that stays the same is taken out of init, of what the step takes apart and of what it returns.

    In the step, and behind the scan, what was made init's part stands for it.
    """
    step, site, argument = _step(desk), desk.site, desk.arguments.get("init")
    name = None if step is None else _carry_name(step)
    if step is None or site is None or argument is None or name is None:
        return
    keys = keys_of(site.call.init, "carry", desk.repair.path)
    literal = desk.source.resolve(argument)
    if keys is None or len(keys) != 1 or not isinstance(literal, ast.Tuple | ast.List | ast.Dict):
        return
    (key,) = keys
    leaf = desk.source.whole_part(literal, keys)
    if leaf is None or type(site.call.init) not in (tuple, list, dict):
        return
    out = _Out(desk, key, desk.source.text_of(leaf), len(site.call.init))
    edits = [out.smaller(literal)]
    for value in desk.source.all_returned(step):
        new = desk.source.whole_part(value, (NEW,))
        new = None if new is None else desk.source.resolve(new)
        kept = None if new is None else desk.source.whole_part(new, keys)
        if not isinstance(new, ast.Tuple | ast.List | ast.Dict) or kept is None:
            return
        if not _handed_on(desk, step, name, keys, kept):
            return
        edits.append(out.smaller(new))
    edits += out.uses(step, name, desk.source.within(step), inside=[*desk.source.all_returned(step)])
    yield (*edits, *_behind(desk, out))
    yield tuple(edits)


def _handed_on(desk: Desk, step: Function, name: str, keys: tuple[Any, ...], node: ast.expr) -> bool:
    """Whether a returned part is the incoming one as it is: what changes from step to step cannot be left out."""
    text = desk.source.text_of(node)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        key = keys[0].idx if isinstance(keys[0], tree_util.SequenceKey) else getattr(keys[0], "key", None)
        return isinstance(node.value, ast.Name) and node.value.id == name and node.slice.value == key
    stores = [n for n in desk.source.within(step) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return text in _unpacked(desk, step, name, keys) and sum(n.id == text for n in stores) == 1


class _Out:
    """Takes one child out of tuples, lists and dicts of a known size, and out of what is done with them."""

    def __init__(self, desk: Desk, key: Any, leaf: str, size: int) -> None:
        self.desk, self.leaf, self.size = desk, leaf, size
        self.index = key.idx if isinstance(key, tree_util.SequenceKey) else None
        self.key = getattr(key, "key", None)

    def smaller(self, node: ast.Tuple | ast.List | ast.Dict) -> TextEdit:
        """A literal without the child; of two the other one alone."""
        return self.desk.pen.replace(node, self._without(node))

    def _without(self, node: ast.Tuple | ast.List | ast.Dict) -> str:
        text = self.desk.pen.text
        if isinstance(node, ast.Dict):
            kept = [
                f"{text(k)}: {text(v)}"
                for k, v in zip(node.keys, node.values, strict=True)
                if k is not None and not (isinstance(k, ast.Constant) and k.value == self.key)
            ]
            return "{" + ", ".join(kept) + "}"
        rest = [text(e) for i, e in enumerate(node.elts) if i != self.index]
        if isinstance(node, ast.List):
            return f"[{', '.join(rest)}]"
        return rest[0] if len(rest) == 1 else f"({', '.join(rest)})"

    def uses(self, scope: ast.AST, name: str, nodes: Iterable[ast.AST], inside: Iterable[ast.AST]) -> list[TextEdit]:
        """What is read of the container by its name: unpacked, or one child by its key."""
        done = {n for outer in inside for n in ast.walk(outer) if self._rewritten(n)}
        edits: list[TextEdit] = []
        for statement, target in _unpackings(self.desk, scope, name):
            if self.index is None or len(target.elts) != self.size:
                continue
            own = self.desk.source.text_of(target.elts[self.index])
            rest = self._without(ast.Tuple(target.elts, ast.Load()))
            apart = isinstance(target, ast.List)
            rest = f"[{rest}]" if apart and self.size == 2 else rest
            both = f"{rest} = {name}" if own == self.leaf else f"{rest}, {own} = {name}, {self.leaf}"
            edits.append(self.desk.pen.replace(statement, both))
        for node in nodes:
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == name:
                text = None if node in done else self._item(node)
                if text is not None:
                    edits.append(self.desk.pen.replace(node, text))
        return edits

    def _rewritten(self, node: ast.AST) -> bool:
        """Whether a use stands in a literal that is written anew (its text is kept as it was)."""
        return isinstance(node, ast.Subscript) and isinstance(self.desk.source.parents.get(node), ast.Tuple | ast.Dict)

    def _item(self, node: ast.Subscript) -> str | None:
        if not isinstance(node.slice, ast.Constant) or not isinstance(node.value, ast.Name):
            return None
        at = node.slice.value
        if at == (self.key if self.index is None else self.index):
            return self.leaf
        if self.index is None or not isinstance(at, int):
            return None
        if self.size == 2:
            return node.value.id
        return f"{node.value.id}[{at - 1}]" if at > self.index else None


def _behind(desk: Desk, out: _Out) -> list[TextEdit]:
    """The final carry, taken apart where the scan returns it or later by its name."""
    site = desk.site
    statement = None if site is None or site.node is None else desk.source.statement(site.node)
    if site is None or not isinstance(statement, ast.Assign) or statement.value is not site.node:
        return []
    target = statement.targets[0]
    if not isinstance(target, ast.Tuple | ast.List) or len(target.elts) != 2:
        return []
    carry = target.elts[0]
    if isinstance(carry, ast.Tuple | ast.List) and len(carry.elts) == out.size and out.index is not None:
        return [out.smaller(carry)]
    if not isinstance(carry, ast.Name):
        return []
    scope = desk.source.scope(statement)
    later = [n for n in desk.source.within(scope) if getattr(n, "lineno", 0) > statement.lineno]
    return out.uses(scope, carry.id, later, inside=())


MAKERS: dict[str, tuple[Maker, ...]] = {
    "step_swap": (step_swap,),
    "step_add": (step_add,),
    "init_partial": (init_partial,),
    "register_dataclass": (register_dataclass,),
    "carry_out": (carry_out,),
}
