"""What is worked out once within one check, and forgotten with it: results and programs of a learner's own step.

The shared store of programs (`core.runners.cache`) never keeps what a learner wrote. But one check runs the same call
again and again (the facts, each rule's proof, the rerun in 64 bits), and compiling is nearly all of its time. So a check
opens a memory of its own, on its own thread, in which things are known by the very objects they were made from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

#: By key: the objects of the key (held, so that no other object gets their id) and what was made.
_memory: ContextVar[dict[tuple[Any, ...], tuple[tuple[Any, ...], Any]] | None] = ContextVar("_memory", default=None)


@contextmanager
def one_check() -> Iterator[None]:
    """Within this, `once` remembers. A check within a check shares the memory of the outer one."""
    if _memory.get() is not None:
        yield
        return
    token = _memory.set({})
    try:
        yield
    finally:
        _memory.reset(token)


def once[T](name: tuple[Any, ...], objects: tuple[Any, ...], work: Callable[[], T]) -> T:
    """What `work()` gives: within one check worked out once for each name and objects, else every time.

    Args:
        name: hashable, compared by value: what is worked out, and its settings.
        objects: compared by identity: what it is worked out from. They must not be changed in place.
        work: whatever it raises is raised, and nothing is kept.
    """
    memory = _memory.get()
    if memory is None:
        return work()
    key = (name, *(id(o) for o in objects))
    if key not in memory:
        memory[key] = (objects, work())
    result: T = memory[key][1]
    return result
