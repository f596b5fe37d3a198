"""Over a limit of Carry Lab.

**What.** More steps, elements, units or examples than Carry Lab runs: the limit is ours, not JAX's. It says which
limit, what was asked for and how much is allowed. Nothing is computed and no array is made to find out.

**Why.** The limits keep every check quick, and a plot of a million steps shows nothing. Who runs Carry Lab may raise
each of them: with `CARRY_LAB_LENGTH=2000` in its environment, 2,000 steps are allowed.

**Bad**

    jax.lax.scan(step, jnp.zeros(512), None, length=512)    # 513 carries of 512 numbers: 262,656

**Good**

    jax.lax.scan(step, jnp.zeros(256), None, length=512)

The number of steps, of hidden units, of examples and of features is limited where those are inputs of a page; what
counts everywhere is the number of elements of any one array: init, xs, ys, and the carry over time.

Source: `core/base/limits.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from core.base.avals import Aval, LeafType, aval_of, leaf_types
from core.base.limits import LIMITS
from core.base.places import Field, Place
from core.base.text import fill
from core.base.violation import Severity
from core.contract.counts import is_int
from core.contract.facts import CellFacts, ScanFacts
from core.contract.repairs import set_unroll
from core.contract.rule import Finding, Jax, Repair, Rule, Stage
from core.contract.sequence_facts import SequenceFacts
from core.contract.sequence_padding import place as input_of
from core.contract.sequence_padding import set_size
from core.contract.subject import MISSING
from core.contract.trace import Raised
from core.runners.cell_formulas import KINDS

SIZE = "{what} = {asked} is over the limit of {allowed} {unit}."
MESSAGE = "{what} would be {asked} {unit}, over the limit of {allowed}."
STEPS = "T"
UNROLLED = "The unrolled part of the scan"
OVER_TIME = "{path} over time, {count} × {type},"
ARRAY = "{path}, {type},"
KERNEL = "A kernel of the cell, {rows} × {columns},"
HIDDEN, IN, BATCH = "hidden_features", "in_features", "B"
_SIZES = frozenset({STEPS, HIDDEN, IN, BATCH})
OUTPUTS = "The outputs, {type},"
DATA = "The data, {type},"
CARRY = "The initialised carry, {shape} × {hidden},"
WHY = "A limit of Carry Lab, not of JAX: it keeps every check quick. Nothing was computed."
WHY_RAISE = (
    "A limit of Carry Lab, not of JAX: it keeps every check quick, and `{variable}` raises it. Nothing was computed."
)
TITLE_SET = "Set {what} to {size}"


@dataclass(frozen=True, slots=True)
class _Asked:
    """Something that was asked for: how much of which limit's unit. `derived`: it follows from other sizes."""

    limit: str
    what: str
    asked: int
    place: Place | None
    path: str = ""
    derived: bool = False
    repairs: tuple[Repair, ...] = ()

    @property
    def over(self) -> bool:
        """Whether it is more than allowed."""
        return self.asked > LIMITS[self.limit].value


def check(facts: ScanFacts | CellFacts | SequenceFacts) -> Iterator[Finding]:
    """A finding for each limit, at the first thing over it; what only follows from a size already named is left out."""
    told: set[str] = set()
    for asked in _asked(facts):
        if asked.over and asked.limit not in told and not (told and asked.derived):
            told.add(asked.limit)
            limit = LIMITS[asked.limit]
            yield Finding(
                message=fill(
                    SIZE if asked.what in _SIZES else MESSAGE,
                    what=asked.what,
                    asked=f"{asked.asked:,}",
                    unit=limit.unit,
                    allowed=f"{limit.value:,}",
                ),
                place=asked.place,
                repairs=asked.repairs,
                why=fill(WHY_RAISE, variable=limit.variable),
                path=asked.path,
            )


def _asked(facts: ScanFacts | CellFacts | SequenceFacts) -> Iterator[_Asked]:
    if isinstance(facts, SequenceFacts):
        return _sequence(facts)
    return _scan(facts) if isinstance(facts, ScanFacts) else _cell(facts)


# --- a scan ---------------------------------------------------------------------------------------------------------


def _scan(facts: ScanFacts) -> Iterator[_Asked]:
    find = facts.places.find
    steps = facts.length
    place = find("length", "xs", "scan") if facts.call.length is not None else find("xs", "length", "scan")
    if steps is not None and isinstance(place, Field):
        yield _Asked("length", STEPS, steps, place, repairs=(_set_size("length", STEPS),))
    for leaf in facts.init_types:
        yield from _array(leaf, find(f"init:{leaf.path}", "init", "scan"))
    for leaf in facts.xs_types:
        for asked in _array(leaf, find(f"xs:{leaf.path}", "xs", "scan")):
            yield replace(asked, derived=True, repairs=(_set_size("batch", "batch"), _set_size("features", "features")))
    if steps is None:
        return
    if isinstance(place, Field):
        yield _Asked("unroll", UNROLLED, _copies(facts.call.unroll, steps), find("unroll", "scan"), derived=True)
    for leaf in facts.init_types:
        yield from _over_time(leaf, steps + 1, place)
    trace = facts.trace
    if not isinstance(trace, Raised):
        for leaf in trace.y_types():
            yield from _over_time(LeafType("ys" + leaf.path.removeprefix("y"), leaf.aval, leaf.kind), steps, place)


def _set_size(limit: str, what: str) -> Repair:
    """Bring a size down to its limit. The sizes are inputs of a page: nothing else knows what to do about them."""
    size = LIMITS[limit].value
    return Repair(f"size_{limit}", fill(TITLE_SET, what=what, size=size), lambda _: None, "", size)


def _copies(unroll: Any, steps: int) -> int:
    """How many copies of the step stand in the program: 0 and True unroll all of it."""
    if isinstance(unroll, bool):
        return steps if unroll else 1
    return min(int(unroll) or steps, steps) if is_int(unroll) else 1


def _array(leaf: LeafType, place: Place | None) -> Iterator[_Asked]:
    if leaf.aval is not None:
        size = _product(leaf.aval.shape)
        yield _Asked("elements", fill(ARRAY, path=leaf.path, type=leaf), size, place, leaf.path)


def _over_time(leaf: LeafType, count: int, place: Place | None) -> Iterator[_Asked]:
    if leaf.aval is not None:
        what = fill(OVER_TIME, path=leaf.path, count=f"{count:,}", type=leaf)
        yield _Asked("elements", what, count * _product(leaf.aval.shape), place, leaf.path, derived=True)


def _product(shape: tuple[Any, ...]) -> int:
    """The number of elements, in Python's own whole numbers: it may be larger than any array."""
    size = 1
    for n in shape:
        size *= int(n)
    return size


# --- a cell ---------------------------------------------------------------------------------------------------------


def _cell(facts: CellFacts) -> Iterator[_Asked]:
    """Sizes as they were given: the cell is not built."""
    trial, find = facts.trial, facts.places.find
    given = (("hidden", HIDDEN, trial.hidden_features), ("features", IN, trial.in_features))
    sizes = {}
    for limit, argument, value in given:
        if is_int(value):
            sizes[limit] = int(value)
            yield _Asked(limit, argument, int(value), find(argument, "cell"))
    hidden = sizes.get("hidden", 0)
    for rows in (*sizes.values(),):
        what = fill(KERNEL, rows=f"{rows:,}", columns=f"{hidden:,}")
        yield _Asked("elements", what, rows * hidden, find("cell"), derived=True)
    inputs = aval_of(trial.inputs)
    if inputs is not None:
        place = find("input", "cell")
        if len(inputs.shape) > 1:
            seat = find("batch", "input", "cell")  # a page that makes the input has an input for its batch
            yield _Asked("batch", fill(ARRAY, path="inputs", type=inputs), int(inputs.shape[0]), seat)
        yield from _array(LeafType("inputs", inputs), place)
    yield from _carry(facts, hidden)


def _carry(facts: CellFacts, hidden: int) -> Iterator[_Asked]:
    trial, find = facts.trial, facts.places.find
    shape = trial.input_shape
    if isinstance(shape, tuple) and shape and all(is_int(n) for n in shape):
        what = fill(CARRY, shape=str(shape[:-1]), hidden=f"{hidden:,}")
        yield _Asked(
            "elements", what, _product(shape[:-1]) * hidden, find("carry_shape", "carry", "cell"), derived=True
        )
    if trial.carry is not MISSING and not callable(trial.carry):
        for leaf in leaf_types(trial.carry, "carry"):
            yield from _array(leaf, find("carry", "cell"))


# --- a layer over sequences -----------------------------------------------------------------------------------------


def _sequence(facts: SequenceFacts) -> Iterator[_Asked]:
    """The data may be abstract: their shape is all that is looked at."""
    trial, kind = facts.trial, KINDS[facts.trial.kind]
    steps, batch, features, hidden = trial.length, trial.batch, int(trial.inputs.shape[2]), int(trial.hidden_features)
    sizes = (
        ("length", STEPS, steps, "T", "length"),
        ("batch", BATCH, batch, "B", "batch"),
        ("features", IN, features, "F", "in_features"),
        ("hidden", HIDDEN, hidden, "H", HIDDEN),
    )
    for limit, what, asked, axis, role in sizes:
        cut = set_size(limit, what, axis, LIMITS[limit].value)
        yield _Asked(limit, what, asked, input_of(facts, role), repairs=(cut,))
    dtype, place = str(trial.inputs.dtype), input_of(facts, "length")
    ways = 2 if trial.bidirectional else 1
    room = LIMITS["elements"].value // max(batch, 1)
    fits = min(room // max(features, 1), room // max(hidden, 1) - 1, room // max(hidden * ways, 1))
    shorter = (set_size("length", STEPS, "T", fits),) if fits > 0 else ()
    data = fill(DATA, type=Aval(tuple(trial.inputs.shape), dtype))
    carry = LeafType(kind.parts[-1], Aval((batch, hidden), dtype))
    outputs = Aval((batch, steps, hidden * ways), dtype)
    arrays = (
        _Asked("elements", data, steps * batch * features, place),
        *_over_time(carry, steps + 1, place),
        _Asked("elements", fill(OUTPUTS, type=outputs), _product(outputs.shape), place),
    )
    yield from (replace(asked, path="", derived=True, repairs=shorter) for asked in arrays)
    for rows in (features, hidden):
        what = fill(KERNEL, rows=f"{rows:,}", columns=f"{kind.blocks * hidden:,}")
        yield _Asked("elements", what, rows * kind.blocks * hidden, input_of(facts, HIDDEN), derived=True)
    rolled, copies = (set_unroll(1),), _copies(trial.unroll, steps)
    yield _Asked("unroll", UNROLLED, copies, input_of(facts, "unroll"), derived=True, repairs=rolled)


RULE = Rule(
    code="X601",
    name="over-a-limit",
    title="Over a limit of Carry Lab",
    severity=Severity.LIMIT,
    jax=Jax.SILENT,
    stage=Stage.LIMIT,
    why=WHY,
    check=check,
    on=frozenset({"scan", "cell", "sequence"}),
)
