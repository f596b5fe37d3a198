"""What each step of a recurrent cell was given, part by part, and where every part comes from.

The rules of the L group look at the same few things in three places: a trial on the cell page, a cell inside a scan's
step (there the carry is traced, and a leaf of the scan's carry is known by identity), and a cell in a plain script.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from jax import tree_util

from core.base.avals import Aval, LeafType, aval_of, path_name
from core.base.places import Because, Place
from core.base.text import fill
from core.contract import trees
from core.contract.facts import Facts, ScanFacts
from core.contract.record import BuildEvent, CarryEvent, StepEvent
from core.contract.trace import StepTrace

LABEL_PART = "{path} ({name})"
LABEL_PAIR = "{path} (c and h)"
LABEL_TWO = "{one} (c) and {other} (h)"
FROM_INIT = "init made {path} {got} here"
FROM_CARRY = "initialize_carry made it {got} here"
FROM_INPUT = "the input is {got} here"
FROM_CELL = "the cell is built with in_features={features}, hidden_features={hidden} here"

#: Names of the parts of a carry that is a pair, in their order.
PAIR = ("c", "h")


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One array of a cell's carry.

    Attributes:
        name: ``c`` or ``h``.
        path: the leaf of the scan's carry that it is, or its place in the cell's own argument (``carry[0]``).
        value: the object itself.
        aval: its type; of a list that the cell makes an array of, the shape alone is right.
        slot: whether `path` is a leaf of the scan's carry.
    """

    name: str
    path: str
    value: Any
    aval: Aval
    slot: bool


@dataclass(frozen=True, slots=True, eq=False)
class CellUse:
    """One step of a cell.

    Attributes:
        event: what was recorded.
        index: its position among the steps of the same record.
        path: path of the whole carry that the cell was given (of its first leaf, when it was put together there).
        slot: whether that is a node of the scan's carry.
        parts: c and h, or h alone; empty when the carry is not of the kind that the cell wants.
        x: type of the input; None for what is no array.
    """

    event: StepEvent
    index: int
    path: str
    slot: bool
    parts: tuple[Part, ...]
    x: Aval | None

    @property
    def features(self) -> Any:
        """The cell's in_features."""
        return self.event.cell.in_features

    @property
    def hidden(self) -> Any:
        """The cell's hidden_features."""
        return self.event.cell.hidden_features

    @property
    def cell_name(self) -> str:
        """The cell's class, for messages."""
        return type(self.event.cell).__name__

    @property
    def batch(self) -> tuple[int, ...] | None:
        """The batch axes of the input: all but the last one."""
        return self.x.shape[:-1] if self.x is not None and self.x.shape else None

    def wanted(self, part: Part) -> Aval | None:
        """The type that this part has when it fits the input and the cell; None when the input does not tell."""
        return None if self.batch is None else Aval((*self.batch, self.hidden), part.aval.dtype)

    def label(self, parts: Iterable[Part]) -> str:
        """These parts in words: ``carry[1] (h)``, ``carry (c and h)``; the path alone where the carry is one array."""
        chosen = tuple(parts)
        if len(self.parts) == 1:
            return chosen[0].path
        if len(chosen) == 2 and _parent([part.path for part in chosen]) is None:
            return fill(LABEL_TWO, one=chosen[0].path, other=chosen[1].path)
        if len(chosen) == 2:
            return fill(LABEL_PAIR, path=self.path)
        return fill(LABEL_PART, path=chosen[0].path, name=chosen[0].name)


def shape_of(value: Any) -> tuple[int, ...] | None:
    """The shape of what a cell makes an array of: an array, or nested lists and tuples; None for anything else."""
    aval = aval_of(value)
    if aval is not None:
        return aval.shape
    if isinstance(value, list | tuple) and value:
        inner = shape_of(value[0])
        return None if inner is None else (len(value), *inner)
    return None


def arrayed(value: Any) -> Aval | None:
    """The type of what ``jnp.asarray`` would make of the value, without making it."""
    aval = aval_of(value)
    if aval is not None:
        return aval
    shape = shape_of(value)
    leaves = tree_util.tree_leaves(value)
    first = aval_of(leaves[0]) if leaves else None
    return None if shape is None or first is None else Aval(shape, first.dtype)


def cell_uses(facts: Facts) -> tuple[CellUse, ...]:
    """Every step of a cell in these facts, in order; a step whose arguments did not fit at all is left out."""
    slots, nodes = _slots(facts)
    return tuple(_use(i, event, slots, nodes) for i, event in enumerate(facts.cells.steps))


def _slots(facts: Facts) -> tuple[dict[int, str], dict[int, str]]:
    """Paths in the scan's carry by the identity of the traced leaf, and of the containers above them."""
    if not isinstance(facts, ScanFacts):
        return {}, {}
    flat = tree_util.tree_flatten_with_path(facts.trace.carry_in)[0]
    nodes: dict[int, str] = {}
    _walk(facts.trace.carry_in, "carry", nodes)
    return {id(leaf): path_name("carry", path) for path, leaf in flat}, nodes


def _walk(tree: Any, path: str, out: dict[int, str]) -> None:
    out[id(tree)] = path
    for key, child in trees.node_of(tree).children.items():
        _walk(child, path_name(path, (key,)), out)


def _use(index: int, event: StepEvent, slots: dict[int, str], nodes: dict[int, str]) -> CellUse:
    carry = event.carry
    if event.wants_pair:
        values = tuple(carry) if isinstance(carry, tuple | list) and len(carry) == 2 else ()
        own = [path_name("carry", (tree_util.SequenceKey(i),)) for i in range(2)]
    else:
        values, own = ((carry,) if not isinstance(carry, tuple | list) else ()), ["carry"]
    names = PAIR if event.wants_pair else ("h",)
    parts: list[Part] = []
    for name, path, value in zip(names, own, values, strict=False):
        aval = aval_of(value) if name == "c" else arrayed(value)
        if aval is None:
            parts = []
            break
        parts.append(Part(name, slots.get(id(value), path), value, aval, id(value) in slots))
    node = nodes.get(id(carry))
    if node is None and parts and all(p.slot for p in parts):
        node = _parent([p.path for p in parts])
    # A pair put together in the step, of slots that have no container of their own, goes by its first slot.
    path = node or next((p.path for p in parts if p.slot), "carry")
    return CellUse(event, index, path, node is not None, tuple(parts), arrayed(event.inputs))


def _parent(paths: list[str]) -> str | None:
    """The path of the container whose children 0 and 1 these are; of one array, its own path."""
    if len(paths) == 1:
        return paths[0]
    root = paths[0].removesuffix("[0]")
    return root if paths == [f"{root}[0]", f"{root}[1]"] else None


# --- places ---------------------------------------------------------------------------------------------------------


def place_of(facts: Facts, event: BuildEvent | CarryEvent | StepEvent, *roles: str) -> Place | None:
    """Where a role of this call stands: in the script that made it, else on the page."""
    known = event.site.find(*roles) if event.site is not None else None
    return known or facts.places.find(*roles)


def carry_place(facts: Facts, use: CellUse) -> Place | None:
    """The cell's carry argument; on a page that has none, init or the step."""
    return place_of(facts, use.event, "carry", f"init:{use.path}", "step", "scan", "cell")


def input_place(facts: Facts, use: CellUse) -> Place | None:
    """The cell's input argument."""
    return place_of(facts, use.event, "input", "xs", "step", "scan", "cell")


def carries_before(facts: Facts) -> Iterator[CarryEvent]:
    """Every `initialize_carry` that these facts know of, also those before a scan in the same script."""
    yield from facts.cells.carries
    if isinstance(facts, ScanFacts) and facts.call.earlier is not None:
        yield from facts.call.earlier.carries


def carry_parts(event: CarryEvent) -> tuple[Any, ...]:
    """The arrays that an `initialize_carry` returned."""
    return event.result if isinstance(event.result, tuple) else (event.result,)


def given_value(facts: Facts, part: Part) -> Any:
    """The value behind a part: init's leaf where the part is a slot of the scan, else the part itself."""
    if part.slot and isinstance(facts, ScanFacts):
        return trees.find(facts.call.init, "carry", part.path)
    return part.value


def made_by(facts: Facts, part: Part) -> CarryEvent | None:
    """The `initialize_carry` whose very result this part is; None when it came from anywhere else."""
    value = given_value(facts, part)
    for event in carries_before(facts):
        if event.error is None and any(value is one for one in carry_parts(event)):
            return event
    return None


def origin(facts: Facts, part: Part) -> Because | None:
    """Where a part of the carry was made, as the second place of a violation."""
    event = made_by(facts, part)
    if event is not None:
        return Because(place_of(facts, event, "carry_shape"), fill(FROM_CARRY, got=part.aval))
    if part.slot and isinstance(facts, ScanFacts):
        place = facts.places.find(f"init:{part.path}", "init")
        return Because(place, fill(FROM_INIT, path=part.path, got=part.aval))
    return None


def input_because(facts: Facts, use: CellUse) -> Because:
    """The input, as the second place of a violation about the carry."""
    return Because(input_place(facts, use), fill(FROM_INPUT, got=use.x))


def cell_because(facts: Facts, use: CellUse) -> Because:
    """Where the cell was built, as the second place."""
    text = fill(FROM_CELL, features=use.features, hidden=use.hidden)
    earlier = facts.call.earlier if isinstance(facts, ScanFacts) else None
    builds = itertools.chain(facts.cells.builds, earlier.builds if earlier is not None else ())
    for event in builds:
        if event.cell is use.event.cell:
            return Because(place_of(facts, event, "cell"), text)
    return Because(facts.places.find("cell"), text)


# --- what happens to the parts --------------------------------------------------------------------------------------


def slot_changes(facts: Facts, paths: Iterable[str]) -> bool:
    """Whether the scan takes another type out of one of these leaves of its carry than it put in: it raises then."""
    if not isinstance(facts, ScanFacts) or not isinstance(facts.trace, StepTrace):
        return False
    before = {t.path: _kind(t.aval) for t in facts.carry_in}
    after = {t.path: _kind(t.aval) for t in facts.trace.carry_types()}
    return any(path in before and after.get(path) != before[path] for path in paths)


def _kind(aval: Aval | None) -> tuple[tuple[int, ...], str] | None:
    """What a scan compares: shape and dtype; a weak type may differ."""
    return None if aval is None else (aval.shape, aval.dtype)


def types(parts: Iterable[tuple[Part, Aval]]) -> tuple[LeafType, ...]:
    """Leaves for the table of expected and got."""
    return tuple(LeafType(part.path, aval) for part, aval in parts)


def got_text(parts: Iterable[Part]) -> str:
    """The types of these parts, each once: ``float32[4]``."""
    return ", ".join(dict.fromkeys(str(part.aval) for part in parts))


def first_of_each(facts: Facts) -> Iterator[CellUse]:
    """The uses, without those that repeat an earlier one (a Python loop: same cell, same place, same types)."""
    seen = set()
    for use in cell_uses(facts):
        shapes = tuple((p.path, p.aval.shape, p.aval.dtype) for p in use.parts)
        kind = (type(use.event.carry), aval_of(use.event.carry))
        key = (id(use.event.cell), carry_place(facts, use), use.x, shapes, kind, use.event.error is None)
        if key not in seen:
            seen.add(key)
            yield use
