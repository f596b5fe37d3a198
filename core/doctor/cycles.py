"""Values that hold themselves: a tree whose nodes know their parent, a list that was appended to itself.

JAX flattens none of them, and jaxlib's attempt uses up the whole process's stack allowance for good: they must never get
there from a look of ours. Flax's graphs may well have cycles (a module that knows its parent) and work all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from flax import nnx

from core.contract.script_record import ScriptRecord
from core.contract.subject import MISSING

_HOLDERS = (list, tuple, dict, nnx.Pytree)
#: Containers of one value that are looked at, and entries of one of them: a longer list is one of numbers.
NODES, ENTRIES = 256, 1_024


def is_cyclic(value: Any) -> bool:
    """Whether a container holds itself, at any depth; False for whatever is larger than is looked at."""
    if not isinstance(value, _HOLDERS):
        return False
    path: set[int] = set()  # of the containers that the one looked at is in
    done: set[int] = set()
    stack: list[tuple[Any, bool]] = [(value, False)]
    while stack and len(done) <= NODES:
        one, left = stack.pop()
        if left:
            path.discard(id(one))
            done.add(id(one))
        elif id(one) in path:
            return True
        elif id(one) not in done:
            path.add(id(one))
            stack.append((one, True))
            stack.extend((child, False) for child in _entries(one) if isinstance(child, _HOLDERS))
    return False


def _entries(value: Any) -> Iterable[Any]:
    """What is in it; read past methods of the script's own classes."""
    if isinstance(value, dict):
        return list(dict.values(value)) if dict.__len__(value) <= ENTRIES else ()
    if isinstance(value, list):
        return list.__getitem__(value, slice(None)) if list.__len__(value) <= ENTRIES else ()
    if isinstance(value, tuple):
        return tuple.__getitem__(value, slice(None)) if tuple.__len__(value) <= ENTRIES else ()
    return list(vars(value).values())


def forget_cycles(record: ScriptRecord) -> None:
    """Take what holds itself, now that the script has ended, for not seen: no rule could flatten it."""
    known: dict[int, bool] = {}

    def cyclic(value: Any) -> bool:
        if not isinstance(value, _HOLDERS):
            return False
        if id(value) not in known:
            known[id(value)] = is_cyclic(value)
        return known[id(value)]

    record.names = {name: value for name, value in record.names.items() if not cyclic(value)}
    record.seen[:] = [replace(one, value=MISSING) if cyclic(one.value) else one for one in record.seen]
    for number, call in enumerate(record.calls):
        if any(map(cyclic, (*call.args, *call.kwargs.values(), call.result, call.receiver))):
            record.calls[number] = replace(
                call,
                args=tuple(_not(cyclic, arg) for arg in call.args),
                kwargs={name: _not(cyclic, arg) for name, arg in call.kwargs.items()},
                result=_not(cyclic, call.result),
                receiver=None if cyclic(call.receiver) else call.receiver,
            )


def _not(cyclic: Callable[[Any], bool], value: Any) -> Any:
    return MISSING if cyclic(value) else value
