"""Edits of a cell's carry, of its input, of `initialize_carry` and of the build."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from flax import nnx
from jax import tree_util

from core.base.avals import aval_of, path_name
from core.base.violation import TextEdit
from core.contract.script_record import Called
from core.contract.trace import same_structure
from core.doctor.edits import Desk, Edits, Maker
from core.doctor.edits_init import init_like_mended, keys_of, mended_call, on_carry, on_node
from core.doctor.edits_step import NEW, through_name
from core.doctor.edits_xs import xs_like_mended
from core.doctor.leaves import Around, CastTo, Change, Shaped, Written, access, edit_node, rebuilt
from core.doctor.pen import Pen

NNX = "flax.nnx"
INITIALIZE = "initialize_carry"

type ByPart = Callable[[Any], Change | None]


# --- the carry ------------------------------------------------------------------------------------------------------


def _on_argument(desk: Desk, change_of: ByPart) -> Iterator[Edits | None]:
    """Change the arrays of the carry that a cell is given at the finding's place: by what each of them is."""
    node = desk.node
    if node is None:
        return
    values = [s.value for s in desk.record.seen if s.node is node]
    value = values[0] if values else None
    if isinstance(node, ast.Tuple):
        value = tuple(_first_value(desk, e) for e in node.elts)
    if not isinstance(value, tuple | list):
        change = change_of(value)
        if change is not None:
            yield from on_node(desk, node, change)
        return
    changes = {f"carry[{i}]": c for i, v in enumerate(value) if (c := change_of(v)) is not None}
    bound = desk.source.resolve(node)
    if isinstance(bound, ast.Tuple | ast.List) and len(bound.elts) == len(value):
        parts = [(c, bound.elts[i], v) for i, v in enumerate(value) if (c := changes.get(f"carry[{i}]"))]
        for look in (desk.source.resolve, lambda part: part):
            yield tuple(edit_node(desk.pen, change, look(part), v) for change, part, v in parts)
    text = rebuilt(desk.pen, desk.pen.atom(node), tuple(value), "carry", changes)
    yield None if text is None or not changes else (desk.pen.replace(node, text),)


def _first_value(desk: Desk, node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    return next((s.value for s in desk.record.seen if s.node is node), None)


def carry_dtype(desk: Desk) -> Iterator[Edits | None]:
    """Cast parts of the carry."""
    yield from init_like_mended(desk)
    dtype = str(desk.repair.value)
    yield from _on_argument(desk, lambda v: CastTo(dtype) if _type(v) and _type(v) != dtype else None)


def _type(value: Any) -> str:
    aval = aval_of(value)
    return "" if aval is None else aval.dtype


def _shape(value: Any) -> tuple[int, ...] | None:
    aval = aval_of(value)
    return None if aval is None else aval.shape


def carry_batch(desk: Desk) -> Iterator[Edits | None]:
    """Give parts of the carry the batch axes of the input."""
    yield from init_like_mended(desk)
    batch = tuple(desk.repair.value)

    def change(value: Any) -> Change | None:
        shape = _shape(value)
        return Shaped((*batch, shape[-1])) if shape and shape[:-1] != batch else None

    yield from _on_argument(desk, change)


def carry_shape(desk: Desk) -> Iterator[Edits | None]:
    """Give parts of the carry the shape that fits, repeated or from zeros."""
    shape = tuple(desk.repair.value)
    mended = mended_call(desk)
    if mended is not None and desk.site is not None and same_structure(desk.site.call.init, mended.init):
        yield from init_like_mended(desk)
        flat = tree_util.tree_flatten_with_path(desk.site.call.init)[0]
        zeros = {
            path_name("carry", p): _zeros(desk, shape, old)
            for (p, old), new in zip(flat, tree_util.tree_leaves(mended.init), strict=True)
            if _shape(old) != _shape(new)
        }
        if zeros:
            yield from on_carry(desk, zeros)
    yield from _on_argument(desk, lambda v: Shaped(shape) if _shape(v) not in (None, shape) else None)
    yield from _on_argument(desk, lambda v: _zeros(desk, shape, v) if _shape(v) not in (None, shape) else None)


def _zeros(desk: Desk, shape: tuple[int, ...], like: Any) -> Change:
    return Written(desk.pen.zeros(shape, _type(like) or "float32"))


def carry_pair(desk: Desk) -> Iterator[Edits | None]:
    """Make the pair (c, h) of what was given."""
    templates = {
        "h": "({jnp.zeros_like}({x}), {x})",
        "stack": "({x}[0], {x}[1])",
        "tuple": "tuple({x})",
    }
    template = templates.get(str(desk.repair.value))
    if template is None:
        return
    change = _Pair(template)
    argument = desk.node if desk.site is None else desk.arguments.get("init")
    if isinstance(argument, ast.Name) and desk.repair.path == "carry":
        yield (desk.pen.replace(argument, change.text(desk.pen, desk.pen.text(argument), None)),)
    if desk.site is not None and keys_of(desk.site.call.init, "carry", desk.repair.path) is not None:
        yield from on_carry(desk, {desk.repair.path: change})
    node = desk.node
    if node is not None:
        yield from on_node(desk, node, change)


@dataclass(frozen=True, slots=True)
class _Pair:
    """A pair by a template; of a stack or a list that is written out, the tuple of its parts."""

    template: str

    def node(self, pen: Pen, node: ast.expr, value: Any) -> TextEdit | None:
        """``jnp.stack([c, h])`` and ``[c, h]`` become ``(c, h)``."""
        inner = node.args[0] if isinstance(node, ast.Call) and pen.maker(node) in _STACKS and node.args else node
        if isinstance(inner, ast.List | ast.Tuple) and len(inner.elts) == 2 and "zeros_like" not in self.template:
            return pen.replace(node, f"({', '.join(pen.text(e) for e in inner.elts)})")
        return None

    def text(self, pen: Pen, text: str, value: Any) -> str:
        """The template."""
        return Around(self.template).text(pen, text, value)


_STACKS = ("stack", "array", "asarray")


def carry_swap(desk: Desk) -> Iterator[Edits | None]:
    """Exchange c and h: in init, in what the step returns, or in the argument of a cell."""
    one, other = desk.repair.path, desk.repair.value
    if desk.site is None or other is None:
        if desk.node is not None:
            literal = desk.source.resolve(desk.node)
            yield _exchanged(desk, literal)
            yield from on_node(desk, desk.node, Around("({x}[1], {x}[0])"))
        return
    mended = mended_call(desk)
    if mended is not None and mended.step is not desk.site.call.step:
        yield from _swap_returned(desk, one, str(other))
        return
    init = desk.site.call.init
    keys = [keys_of(init, "carry", path) for path in (one, str(other))]
    argument = desk.arguments.get("init")
    if argument is None or None in keys:
        return
    bound = desk.source.resolve(argument)
    parts = [desk.source.whole_part(bound, k or ()) for k in keys]
    yield _swapped(desk, parts)
    if isinstance(argument, ast.Name):
        text = desk.pen.text(argument)
        ways = [text + "".join(access(k) for k in path or ()) for path in keys]
        changes: dict[str, Change] = {one: Written(ways[1]), str(other): Written(ways[0])}
        new = rebuilt(desk.pen, text, init, "carry", changes)
        yield None if new is None else (desk.pen.replace(argument, new),)


def _swap_returned(desk: Desk, one: str, other: str) -> Iterator[Edits | None]:
    site = desk.site
    if site is None or site.step is None:
        return
    keys = [keys_of(site.call.init, "carry", path) for path in (one, other)]
    for value in desk.source.all_returned(site.step):
        parts = [desk.source.whole_part(value, (NEW, *(k or ()))) for k in keys]
        if None not in parts:
            yield _swapped(desk, parts)
            continue
        ways = ["".join(access(k) for k in path or ()) for path in keys]
        changes: dict[str, Change] = {one: _Sibling(ways[0], ways[1]), other: _Sibling(ways[1], ways[0])}
        yield tuple(through_name(desk, value, changes))


@dataclass(frozen=True, slots=True)
class _Sibling:
    """The leaf at another path of the same tree."""

    mine: str
    theirs: str

    def node(self, pen: Pen, node: ast.expr, value: Any) -> TextEdit | None:
        """None: a leaf does not know the others."""
        return None

    def text(self, pen: Pen, text: str, value: Any) -> str:
        """The path of this leaf replaced by the other's."""
        return text.removesuffix(self.mine) + self.theirs


def _swapped(desk: Desk, parts: list[ast.expr | None]) -> Edits | None:
    a, b = parts
    if a is None or b is None:
        return None
    return desk.pen.replace(a, desk.pen.text(b)), desk.pen.replace(b, desk.pen.text(a))


def _exchanged(desk: Desk, node: ast.expr) -> Edits | None:
    if isinstance(node, ast.Tuple | ast.List) and len(node.elts) == 2:
        return _swapped(desk, list(node.elts))
    return None


# --- the input ------------------------------------------------------------------------------------------------------


def input_batch(desk: Desk) -> Iterator[Edits | None]:
    """Give the input the batch axes of the carry: in xs, or where the cell is called."""
    yield from xs_like_mended(desk)
    batch = tuple(desk.repair.value)
    node = desk.node
    shape = None if node is None else _shape(_first_value(desk, node))
    if node is not None and shape:
        yield from on_node(desk, node, Shaped((*batch, shape[-1])))


def input_width(desk: Desk) -> Iterator[Edits | None]:
    """Build the cell for the width of the input."""
    text = repr(desk.repair.value)
    for call in _builds(desk):
        yield tuple(desk.pen.argument(call, 0, "in_features", text))


def _builds(desk: Desk) -> Iterator[ast.Call]:
    """The build of the cell: where the finding says, else every build of the script."""
    because = desk.finding.because
    place = desk.at(because.place) if because is not None else None
    if isinstance(place, ast.Call):
        yield place
    for event in desk.record.events.builds:
        node = desk.at(event.site.find("cell_call", "cell")) if event.site is not None else None
        if isinstance(node, ast.Call) and node is not place:
            yield node


# --- initialize_carry and rngs --------------------------------------------------------------------------------------


def _initializations(desk: Desk) -> Iterator[ast.Call]:
    """Calls of `initialize_carry`: the one that the finding speaks of first, then the others."""
    because = desk.finding.because
    spoken = [desk.node, None if because is None else desk.at(because.place)]
    out: list[ast.Call] = []
    for node in spoken:
        here: ast.AST | None = node
        while here is not None and not isinstance(here, ast.stmt):
            if isinstance(here, ast.Call) and _initializes(here):
                out.append(here)
            here = desk.source.parents.get(here)
    calls: list[Called] = desk.record.calls
    out += [c.node for c in calls if _initializes(c.node)]
    yield from dict.fromkeys(out)


def _initializes(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == INITIALIZE


def input_shape(desk: Desk) -> Iterator[Edits | None]:
    """Initialise the carry for the shape of one input."""
    shape = tuple(desk.repair.value)
    for call in _initializations(desk):
        given = next((k.value for k in call.keywords if k.arg == "input_shape"), None)
        given = given or (call.args[0] if call.args else None)
        if isinstance(given, ast.Attribute) and given.attr == "shape":
            inner = _shape(_first_value(desk, given.value))
            for axis in range(1, len(inner or ())):
                if inner is not None and inner[axis:] == shape:
                    yield (desk.pen.replace(given, f"{desk.pen.text(given)}[{axis}:]"),)
        yield tuple(desk.pen.argument(call, 0, "input_shape", desk.pen.shape(shape)))


def _rngs(desk: Desk, given: ast.expr | None) -> str:
    """An `nnx.Rngs`: of the repair's seed, else around what was given."""
    if given is not None and isinstance(_first_value(desk, given), nnx.Rngs):
        return desk.pen.text(given)
    rngs = desk.pen.name(NNX, "Rngs")
    seed = desk.repair.value
    return f"{rngs}({seed})" if seed is not None or given is None else f"{rngs}({desk.pen.text(given)})"


def cell_rngs(desk: Desk) -> Iterator[Edits | None]:
    """Build the cell with an `nnx.Rngs` by keyword."""
    here: ast.AST | None = desk.node
    while here is not None and not isinstance(here, ast.Call):
        here = desk.source.parents.get(here)
    calls = [here] if isinstance(here, ast.Call) else []
    whole = desk.source.parents.get(here) if here is not None else None
    while whole is not None and not isinstance(whole, ast.stmt):
        calls += [whole] if isinstance(whole, ast.Call) else []
        whole = desk.source.parents.get(whole)
    for call in [*calls, *_builds(desk)]:
        keyword = next((k.value for k in call.keywords if k.arg == "rngs"), None)
        if keyword is None and len(call.args) > 2:
            yield (desk.pen.replace(call.args[2], f"rngs={_rngs(desk, call.args[2])}"),)
        else:
            yield tuple(desk.pen.argument(call, None, "rngs", _rngs(desk, keyword)))


def carry_rngs(desk: Desk) -> Iterator[Edits | None]:
    """Give `initialize_carry` an `nnx.Rngs`; or its two arguments in their order."""
    for call in _initializations(desk):
        keyword = next((k.value for k in call.keywords if k.arg == "rngs"), None)
        given = keyword or (call.args[1] if len(call.args) > 1 else None)
        yield tuple(desk.pen.argument(call, 1, "rngs", _rngs(desk, given)))
        if len(call.args) > 1:
            first, second = call.args[:2]
            swap = desk.pen.replace(first, desk.pen.text(second))
            yield swap, desk.pen.replace(second, desk.pen.text(first))
            yield swap, desk.pen.replace(second, _rngs(desk, first))


def carry_init(desk: Desk) -> Iterator[Edits | None]:
    """Step from what `initialize_carry` returns: in scripts it is written where the carry was bound."""
    node = desk.node
    call = None if node is None else desk.source.parents.get(node)
    if node is None or not isinstance(call, ast.Call) or len(call.args) < 2:
        return
    rngs = f"{desk.pen.name(NNX, 'Rngs')}(0)"
    text = f"{desk.pen.atom(call.func)}.{INITIALIZE}({desk.pen.atom(call.args[1])}.shape, {rngs})"
    yield from on_node(desk, node, Written(text))


MAKERS: dict[str, tuple[Maker, ...]] = {
    "carry_dtype": (carry_dtype,),
    "carry_batch": (carry_batch,),
    "carry_shape": (carry_shape,),
    "carry_pair": (carry_pair,),
    "carry_swap": (carry_swap,),
    "input_batch": (input_batch,),
    "input_width": (input_width,),
    "input_shape": (input_shape,),
    "cell_rngs": (cell_rngs,),
    "carry_rngs": (carry_rngs,),
    "carry_init": (carry_init,),
}
