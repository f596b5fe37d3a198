"""A script in a worker, checked, with the values of some of its names, twice: as it stands, and with other data in it.

    handle({"wish": "grade", "text": "…", "names": ["total"], "swap": "rain = jnp.array([2.0, 1.0])"}, …)

The second run takes what was typed in as an answer, instead of being computed, for what it is. A script is a stranger's, and
so is the answer of the worker that ran it: it is read strictly, and says nothing about anybody else's script.

Where the other data go: a script may do more with its data than the one that it was made of, such as turn an axis at once
(``rain = jnp.array([[1.0, 2.0]]).T``). So the expression of the first script is what is replaced, wherever it stands in an
assignment to that name; where it does not, the whole value of the one assignment to it.
"""

from __future__ import annotations

import ast
import base64
import enum
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from core.base.avals import aval_of, path_name
from core.base.limits import LIMITS
from core.contract.script_record import TIME
from core.contract.source import Source
from core.doctor.answer import Answer, Wish
from core.doctor.check import Checkup, Terms, examine
from core.doctor.instrument import Refused
from core.doctor.script import CONCLUSION, ScriptRun, run_script
from core.doctor.wire import DTYPES, Unreadable, from_wire, to_wire
from core.sandbox.timeup import TimeUp

#: The kind of request.
WISH: Final = "grade"
#: Names of one request; leaves of one value, axes and elements of one leaf, characters of a path, that are sent and read.
NAMES, LEAVES, AXES, ELEMENTS, PATH = 16, 32, 32, LIMITS["graded_numbers"].value, 200

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
    """What a script did.

    Attributes:
        answer: of its check.
        values: of the names that were asked for; empty where the script was not looked at.
        again: what became of the run with other data.
        swapped: the values with these, where `again` is `RAN`.
        whole: all rules were asked, and both runs ended by themselves: the time was enough.
    """

    answer: Answer
    values: Values
    again: Again
    swapped: Values
    whole: bool = True


def request(
    text: str, names: Iterable[str], swap: str = "", *, first: str = "", proofs: bool = False
) -> dict[str, Any]:
    """What the pool is handed.

    Args:
        text: the script.
        names: whose values are wanted.
        swap: assignments with other data, one a line; "" for no second run.
        first: the script that `text` was made of: it says which expressions are its data.
        proofs: whether the numbers that prove a fault are measured, which takes as long again as the run.
    """
    return {"wish": WISH, "text": text, "names": list(names), "swap": swap, "first": first, "proofs": proofs}


# --- in the worker --------------------------------------------------------------------------------------------------


def handle(asked: Mapping[str, Any], terms: Terms, make: MakeAnswer) -> dict[str, Any]:
    """Run a script once or twice; the answer as plain data.

    Args:
        asked: see `request`.
        terms: how scripts are run here; `proofs` is the request's.
        make: `core.doctor.job.answer_of`.

    Raises:
        ValueError, KeyError: it is no request.
    """
    names = [str(name) for name in asked["names"]][:NAMES]
    checkup = examine(str(asked["text"]), replace(terms, proofs=asked["proofs"] is True))  # no fixes will be asked for
    try:
        retire = _was_stopped(checkup)
        cut = retire or (checkup.run is not None and any(code == CONCLUSION for code, _ in checkup.run.problems))
        answer = to_wire(make(checkup, Wish.CHECK))
        values, script = _values_of(checkup.run, names), checkup.given.script
    finally:
        checkup.close()
    again, others = Again.NONE, dict[str, Any]()
    if asked["swap"] and not retire and checkup.unread is None:
        text = swapped(script, str(asked["swap"]), str(asked["first"]))
        again, others, retire = _run_swapped(text, names, terms)
    return sent(answer, values, again, others, whole=not (cut or retire)) | ({"retire": True} if retire else {})


def sent(
    answer: dict[str, Any],
    values: dict[str, Any] | None = None,
    again: Again = Again.NONE,
    others: dict[str, Any] | None = None,
    *,
    whole: bool = True,
) -> dict[str, Any]:
    """What a worker sends; the answer alone for a script that was not run."""
    return {"answer": answer, "values": values or {}, "again": str(again), "swapped": others or {}, "whole": whole}


def _run_swapped(text: str | None, names: list[str], terms: Terms) -> tuple[Again, dict[str, Any], bool]:
    """What became of the run with other data, its values, and whether the worker is to be replaced."""
    if text is None:
        return Again.LOST, {}, False
    try:
        run = run_script(
            Source(text), prepare=terms.prepare, rules=(), output=terms.output, budget=terms.budget, proofs=False
        )
    except TimeUp:
        return Again.STOPPED, {}, True
    except (Refused, SyntaxError):  # what could be run before can be run now, unless the data were part of it
        return Again.STOPPED, {}, False
    try:
        if run.record.failure is not None or run.record.stopped is not None:
            return Again.STOPPED, {}, run.record.stopped is not None
        return Again.RAN, _values_of(run, names), False
    finally:
        if run.program is not None:
            run.program.close()


def swapped(script: str, swap: str, first: str = "") -> str | None:
    """The script with other data; None where one of them is not found.

    Args:
        script: parses.
        swap: assignments to one name each.
        first: the script that this one was made of; see the module.
    """
    texts = {_target(node): ast.get_source_segment(swap, node.value) or "" for node in _assignments(swap)}
    known = {_target(node): node.value for node in _assignments(first)}
    found: list[tuple[ast.expr, str]] = []
    for name, new in texts.items():
        given = [node.value for node in _assignments(script) if _target(node) == name]
        places = _places(given, known[name]) if name in known else []
        if not places and len(given) == 1:
            places = given
        if not places:
            return None
        found += [(place, new) for place in places]
    lines = script.split("\n")
    for node, new in sorted(found, key=lambda one: (one[0].lineno, one[0].col_offset), reverse=True):
        head = lines[node.lineno - 1].encode()[: node.col_offset].decode()
        tail = lines[(node.end_lineno or node.lineno) - 1].encode()[node.end_col_offset or 0 :].decode()
        lines[node.lineno - 1 : node.end_lineno] = [f"{head}({new}){tail}"]
    return "\n".join(lines)


def _places(values: Iterable[ast.expr], data: ast.expr) -> list[ast.expr]:
    """The parts of these expressions that are the same code as `data`."""
    parts = (part for value in values for part in ast.walk(value))
    return [part for part in parts if isinstance(part, ast.expr) and _same_code(part, data)]


def _same_code(one: ast.AST, other: ast.AST) -> bool:
    """Whether two trees are equal, told at the first difference and without recursion: a script may be nested deeply."""
    todo: list[tuple[Any, Any]] = [(one, other)]
    while todo:
        a, b = todo.pop()
        if type(a) is not type(b):
            return False
        if isinstance(a, ast.AST):
            todo += [(getattr(a, name, None), getattr(b, name, None)) for name in a._fields]
        elif isinstance(a, list):
            if len(a) != len(b):
                return False
            todo += zip(a, b, strict=True)
        elif a != b:
            return False
    return True


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


def _values_of(run: ScriptRun | None, names: list[str]) -> dict[str, Any]:
    known = {} if run is None else run.record.names
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
    if aval is None or aval.size > ELEMENTS or len(aval.shape) > AXES or len(path) > PATH:
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
        again, whole = Again(_text(sent["again"])), _kind(sent["whole"], bool)
        values, swapped = _read_values(sent["values"]), _read_values(sent["swapped"])
        return Graded(from_wire(sent["answer"]), values, again, swapped, whole)
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
    count = math.prod(sizes) if len(sizes) <= AXES else ELEMENTS + 1
    if count > ELEMENTS:
        raise ValueError
    read = base64.b64decode(_kind(raw, str), validate=True)
    if len(read) != count * kind.itemsize:
        raise ValueError
    values = np.frombuffer(read, kind.newbyteorder("<")).reshape(sizes).astype(kind)
    return Leaf(_text(path), _dtype(dtype), values)


def _dtype(value: object) -> str:
    """The name of a dtype that JAX knows by this name, and by no other."""
    name = _text(value)
    if jnp.dtype(name).name != name:
        raise ValueError
    return name


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
