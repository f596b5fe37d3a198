"""A script's own Python state, put back as it was: our looks at a step must leave no mark on the script.

The check traces a step more often than JAX does. A step that appends to a list, counts in a global or splits a global
key would do so once more each time, and the script would print other numbers than under plain Python. So the state
that such a step can reach is noted before a look and restored after it: the script's global names, its containers, the
cells of its closures, the attributes of its own objects.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from core.base.limits import LIMITS

#: How many objects are looked at; a script with more of them has its oldest restored.
OBJECTS = LIMITS["objects"].value
#: NumPy arrays of at most this many bytes are copied.
ARRAY_BYTES = 1 << 18

#: What cannot change and leads nowhere: most of what there is.
PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None), types.BuiltinFunctionType})

type Undo = Callable[[], None]


@contextmanager
def undisturbed(names: MutableMapping[str, Any], *more: Any, filename: str) -> Iterator[None]:
    """While open, changes to the state that `names` and `more` lead to are taken back when it closes.

    Args:
        names: the script's global names.
        more: further objects (a step with its closure).
        filename: of the script: only its own functions and classes are walked into.
    """
    undo = _snapshot([names, *more], filename)
    try:
        yield
    finally:
        for back in undo:
            back()


def _snapshot(roots: list[Any], filename: str) -> list[Undo]:
    undo: list[Undo] = []
    done: set[int] = set()
    todo = deque(roots)
    while todo and len(done) < OBJECTS:
        obj = todo.popleft()
        if id(obj) in done:
            continue
        done.add(id(obj))
        back, inner = _note(obj, filename)
        undo += back
        todo.extend(inner)
    return undo


def _note(obj: Any, filename: str) -> tuple[list[Undo], list[Any]]:
    """How to put one object back, and what it leads to."""
    if type(obj) in PLAIN:
        return [], []
    if isinstance(obj, dict):
        return [_mapping(obj, dict(obj))], list(obj.values())
    if isinstance(obj, list | deque):
        return [_sequence(obj, list(obj))], list(obj)
    if isinstance(obj, set):
        return [_set(obj, set(obj))], []
    if isinstance(obj, tuple):
        return [], list(obj)
    if isinstance(obj, np.ndarray):
        small = obj.nbytes <= ARRAY_BYTES and obj.flags.writeable and obj.dtype != object
        return ([_array(obj, obj.copy())] if small else []), []
    if isinstance(obj, types.FunctionType):
        return _function(obj, filename)
    if isinstance(obj, types.MethodType):
        return [], [obj.__self__, obj.__func__]
    if isinstance(obj, type) and obj.__module__ == "__main__":
        return [_class(obj, dict(vars(obj)))], [v for k, v in vars(obj).items() if not k.startswith("__")]
    if callable(getattr(type(obj), "cache_info", None)) and callable(getattr(type(obj), "cache_clear", None)):
        return [_memo(obj, obj.cache_info().currsize)], []
    cls = obj if isinstance(obj, type) else type(obj)
    if cls.__module__ == "__main__" and isinstance(getattr(obj, "__dict__", None), dict):
        return _note(obj.__dict__, filename)
    inner = [v for v in (getattr(obj, "__wrapped__", None), getattr(obj, "func", None)) if callable(v)]
    return [], inner


def _function(function: types.FunctionType, filename: str) -> tuple[list[Undo], list[Any]]:
    if function.__code__.co_filename != filename:
        wrapped = getattr(function, "__wrapped__", None)
        return [], [wrapped] if wrapped is not None else []
    undo, inner = _note(function.__dict__, filename)
    inner += function.__defaults__ or ()
    for cell in function.__closure__ or ():
        try:
            content = cell.cell_contents
        except ValueError:
            continue  # not assigned yet
        undo.append(_cell(cell, content))
        inner.append(content)
    return undo, inner


def _mapping(obj: MutableMapping[Any, Any], before: dict[Any, Any]) -> Undo:
    def back() -> None:
        if len(obj) != len(before) or any(obj.get(k, obj) is not v for k, v in before.items()):
            obj.clear()
            obj.update(before)

    return back


def _class(cls: type, before: dict[str, Any]) -> Undo:
    """Attributes of a class of the script; what Python itself keeps there is left alone."""

    def back() -> None:
        now = dict(vars(cls))
        for name in now.keys() - before.keys():
            delattr(cls, name)
        for name, value in before.items():
            if now.get(name, back) is not value and not name.startswith("__"):
                setattr(cls, name, value)

    return back


def _memo(function: Any, size: int) -> Undo:
    """A memoised function forgets all when a look taught it something: what that was must not be met again."""

    def back() -> None:
        if function.cache_info().currsize != size:
            function.cache_clear()

    return back


def _sequence(obj: Any, before: list[Any]) -> Undo:
    def back() -> None:
        if len(obj) != len(before) or any(a is not b for a, b in zip(obj, before, strict=True)):
            obj.clear()
            obj.extend(before)

    return back


def _set(obj: set[Any], before: set[Any]) -> Undo:
    def back() -> None:
        if obj != before:
            obj.clear()
            obj.update(before)

    return back


def _array(obj: np.ndarray[Any, Any], before: np.ndarray[Any, Any]) -> Undo:
    def back() -> None:
        obj[...] = before

    return back


def _cell(cell: Any, before: Any) -> Undo:
    def back() -> None:
        cell.cell_contents = before

    return back
