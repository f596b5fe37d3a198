"""A script in a worker, checked, with the values of some of its names, twice: as it stands, and with other data in it.

    handle({"wish": "grade", "text": "…", "names": ["total"], "swap": "rain = jnp.array([2.0, 1.0])"}, …)

The second run takes what was typed in as an answer, instead of being computed, for what it is. A script is a stranger's, and
so is the answer of the worker that ran it: it is read strictly, and says nothing about anybody else's script.
"""

from __future__ import annotations

import ast
import base64
import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import jax
import numpy as np

from core.base.avals import aval_of, path_name
from core.contract.script_record import TIME
from core.doctor.answer import Answer, Wish
from core.doctor.check import Checkup, Terms, examine
from core.doctor.wire import DTYPES, Unreadable, from_wire, to_wire
from core.sandbox.timeup import TimeUp

#: The kind of request.
WISH: Final = "grade"
#: Names of one request; leaves of one value, elements of one leaf, characters of a path, that are sent and read.
NAMES, LEAVES, ELEMENTS, PATH = 16, 32, 4_096, 200

type MakeAnswer = Callable[[Checkup, Wish], Answer]


class Again(enum.StrEnum):
    """What became of the run with other data."""

    NONE = "none"  # nothing to be swapped
    RAN = "ran"
    LOST = "lost"  # the data are no single assignment at the top of the script any more
    STOPPED = "stopped"  # it raised, or was stopped


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """One leaf of a value. `path`: as `keystr` prints it; `dtype`: JAX's name; `values`: what has no NumPy type as float32."""

    path: str
    dtype: str
    values: np.ndarray[Any, Any]


#: The leaves of a name's value; None where the script has no such name, or it is no tree of arrays.
type Values = Mapping[str, tuple[Leaf, ...] | None]


@dataclass(frozen=True, slots=True, eq=False)
class Graded:
    """What a script did. `swapped`: the values with the other data, where `again` is `RAN`."""

    answer: Answer
    values: Values
    again: Again
    swapped: Values


def request(text: str, names: Iterable[str], swap: str = "") -> dict[str, Any]:
    """What the pool is handed. `swap`: assignments, one a line."""
    return {"wish": WISH, "text": text, "names": list(names), "swap": swap}


# --- in the worker --------------------------------------------------------------------------------------------------


def handle(asked: Mapping[str, Any], terms: Terms, make: MakeAnswer) -> dict[str, Any]:
    """Run a script once or twice; the answer as plain data.

    Args:
        asked: see `request`.
        terms: how scripts are run here.
        make: `core.doctor.job.answer_of`.

    Raises:
        ValueError, KeyError: it is no request.
    """
    names = [str(name) for name in asked["names"]][:NAMES]
    checkup = examine(str(asked["text"]), terms)
    try:
        retire = _was_stopped(checkup)
        answer = to_wire(make(checkup, Wish.CHECK))
        values, script = _values_of(checkup, names), checkup.given.script
    finally:
        checkup.close()
    again, swapped = Again.NONE, dict[str, Any]()
    if asked["swap"] and not retire and checkup.unread is None:
        again, swapped, retire = _swapped(script, str(asked["swap"]), names, terms)
    sent = {"answer": answer, "values": values, "again": str(again), "swapped": swapped}
    return sent | ({"retire": True} if retire else {})


def _swapped(script: str, swap: str, names: list[str], terms: Terms) -> tuple[Again, dict[str, Any], bool]:
    text = swapped(script, swap)
    if text is None:
        return Again.LOST, {}, False
    try:
        checkup = examine(text, terms)
    except TimeUp:
        return Again.STOPPED, {}, True
    try:
        run = checkup.run
        if run is None or run.record.failure is not None or run.record.stopped is not None:
            return Again.STOPPED, {}, _was_stopped(checkup)
        return Again.RAN, _values_of(checkup, names), False
    finally:
        checkup.close()


def swapped(script: str, swap: str) -> str | None:
    """The script with other data; None where one of them is no single assignment at its top level.

    Args:
        script: parses.
        swap: assignments to one name each.
    """
    new = {_target(node): ast.get_source_segment(swap, node.value) or "" for node in _assignments(swap)}
    lines = script.split("\n")
    found = [node for node in _assignments(script) if _target(node) in new]
    if sorted(_target(node) for node in found) != sorted(new):
        return None
    for node in sorted(found, key=lambda one: (one.value.lineno, one.value.col_offset), reverse=True):
        value = node.value
        first = lines[value.lineno - 1].encode()[: value.col_offset].decode()
        last = lines[(value.end_lineno or value.lineno) - 1].encode()[value.end_col_offset or 0 :].decode()
        lines[value.lineno - 1 : value.end_lineno] = [f"{first}({new[_target(node)]}){last}"]
    return "\n".join(lines)


def _assignments(text: str) -> list[ast.Assign]:
    return [
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    ]


def _target(node: ast.Assign) -> str:
    target = node.targets[0]
    return target.id if isinstance(target, ast.Name) else ""


def _was_stopped(checkup: Checkup) -> bool:
    return any(run.record.stopped is not None and run.record.stopped.reason == TIME for run in checkup.runs)


def _values_of(checkup: Checkup, names: list[str]) -> dict[str, Any]:
    known = {} if checkup.run is None else checkup.run.record.names
    return {name: _leaves(known[name]) if name in known else None for name in names}


def _leaves(value: Any) -> list[Any] | None:
    """The leaves of a value as plain data; None where it has too many, or one that is no array with values."""
    try:
        flat, _ = jax.tree_util.tree_flatten_with_path(value)
        if len(flat) > LEAVES:
            return None
        return [_leaf(path_name("", path), leaf) for path, leaf in flat]
    except Exception:  # noqa: BLE001  # objects of the script's own may do anything when they are read
        return None


def _leaf(path: str, leaf: Any) -> list[Any]:
    aval = aval_of(leaf)
    if aval is None or aval.size > ELEMENTS or len(path) > PATH:
        raise ValueError
    values = np.asarray(leaf)
    if values.dtype.name != aval.dtype or aval.dtype not in DTYPES:
        # A Python number has JAX's dtype; what has no NumPy type of its own travels as float32.
        values = values.astype(aval.dtype if aval.dtype in DTYPES else np.float32)
    raw = np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()
    return [path, aval.dtype, values.dtype.name, list(values.shape), base64.b64encode(raw).decode("ascii")]


# --- reading the answer ---------------------------------------------------------------------------------------------


def read(data: object) -> Graded:
    """What a worker sent.

    Raises:
        Unreadable: it is no such answer.
    """
    try:
        sent = _kind(data, dict)
        again = Again(_text(sent["again"]))
        return Graded(from_wire(sent["answer"]), _read_values(sent["values"]), again, _read_values(sent["swapped"]))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise Unreadable(type(error).__name__) from None


def _read_values(data: object) -> Values:
    sent = _kind(data, dict)
    if len(sent) > NAMES:
        raise ValueError
    return {_text(name): None if leaves is None else _read_leaves(leaves) for name, leaves in sent.items()}


def _read_leaves(data: object) -> tuple[Leaf, ...]:
    sent = _kind(data, list)
    if len(sent) > LEAVES:
        raise ValueError
    return tuple(_read_leaf(one) for one in sent)


def _read_leaf(data: object) -> Leaf:
    path, dtype, stored, shape, raw = _kind(data, list)
    if _text(stored) not in DTYPES:
        raise ValueError
    sizes = tuple(_size(size) for size in _kind(shape, list))
    kind = np.dtype(stored)
    count = int(np.prod(sizes, dtype=np.int64)) if len(sizes) <= 32 else ELEMENTS + 1
    if count > ELEMENTS:
        raise ValueError
    read = base64.b64decode(_kind(raw, str), validate=True)
    if len(read) != count * kind.itemsize:
        raise ValueError
    values = np.frombuffer(read, kind.newbyteorder("<")).reshape(sizes).astype(kind)
    return Leaf(_text(path), _text(dtype), values)


def _size(value: object) -> int:
    size: int = _kind(value, int)
    if not 0 <= size <= ELEMENTS:
        raise ValueError
    return size


def _text(value: object) -> str:
    text: str = _kind(value, str)
    if len(text) > PATH:
        raise ValueError
    text.encode()  # half a surrogate pair is no text
    return text


def _kind(value: object, kind: type[Any]) -> Any:
    if type(value) is not kind:
        raise TypeError
    return value
