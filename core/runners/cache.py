"""One bounded store of compiled programs for the whole process, shared by every session.

Why bounded: each compiled scan costs about a megabyte and a score of memory maps, and a process dies at the kernel's
65,530 maps (measured: after some 2,500 shapes). Why a fresh `jax.jit` for every program: an executable of a *shared*
jitted function is only freed by that function's `clear_cache()`; the executable of a fresh one goes with its last
reference. And since sessions share it, a key holds only functions of this library and the types of arguments, never
anything a learner wrote: a step that is not from the library is compiled, used and dropped.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Final, NamedTuple

import jax
import jax.monitoring
from jax import tree_util

from core.base.bucket import Bucket
from core.base.limits import LIMITS
from core.base.measures import Part, timed
from core.base.turn import TURNS

#: JAX's own event around each compilation by the backend.
_COMPILE_EVENT: Final = "/jax/core/compile/backend_compile_duration"

#: Containers that may stand in a key: they belong to nobody.
_PLAIN_NODES: Final = frozenset({tuple, list, dict, type(None)})

#: A compiled program: takes the arguments it was compiled for.
type Compiled = Callable[..., Any]


# --- counting -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class CompileCount:
    """How many programs the backend compiled: read `count` inside or after the `with`."""

    count: int = 0


class _Counting(threading.local):
    """The counts open on this thread. Compilation happens on the thread that asks, so sessions do not mix."""

    def __init__(self) -> None:
        self.open: list[CompileCount] = []


_counting = _Counting()


def _on_duration(event: str, duration_secs: float, **kwargs: str | int) -> None:  # noqa: ARG001  # JAX names them
    if event == _COMPILE_EVENT:
        for counter in _counting.open:
            counter.count += 1


jax.monitoring.register_event_duration_secs_listener(_on_duration)


@contextmanager
def count_compiles() -> Iterator[CompileCount]:
    """Count what this thread makes the backend compile, eager operations included.

    Example:
        >>> with count_compiles() as compiles:
        ...     run_call(call)
        >>> compiles.count
        0
    """
    counter = CompileCount()
    _counting.open.append(counter)
    try:
        yield counter
    finally:
        _counting.open = [c for c in _counting.open if c is not counter]


# --- holding up -----------------------------------------------------------------------------------------------------


class SlowedError(BaseException):
    """A program is not there, and its session has no token to have it compiled: nothing was done, try again later.

    No `Exception`: whoever looks at what a step raises must not take it for the step's own.
    """


class _Gate(threading.local):
    """The bucket that this thread's compilations wait for; None where nothing holds them up."""

    bucket: Bucket | None = None


_gate = _Gate()


@contextmanager
def paced(bucket: Bucket) -> Iterator[None]:
    """Within this, on this thread, the first program that is to be compiled must find a token in the bucket.

    Only the first: work that has begun is brought to its end, and what it owes holds up the next one. Programs that are
    there already need none. It takes no tokens: pay with `Bucket.take` for what `count_compiles` has counted.

    Raises:
        SlowedError: there is no token; or, before anything is done, when the bucket is `overdrawn`.
    """
    if bucket.overdrawn:
        raise SlowedError
    before, _gate.bucket = _gate.bucket, bucket
    try:
        yield
    finally:
        _gate.bucket = before


def _pass_gate() -> None:
    bucket = _gate.bucket
    if bucket is None:
        return
    if bucket.wait > 0:
        raise SlowedError
    _gate.bucket = None


# --- keys -----------------------------------------------------------------------------------------------------------


def is_library(function: Any) -> bool:
    """Whether this is a module-level function of ours, found again under its own name: safe to keep in a shared key."""
    if not isinstance(function, FunctionType) or not function.__module__.startswith("core."):
        return False
    return getattr(sys.modules.get(function.__module__), function.__qualname__, None) is function


def _plain(tree: Any) -> bool:
    """Whether a tree definition is made of tuples, lists, dicts with short names, and None alone."""
    data = tree.node_data()
    if data is None:
        return True
    kind, keys = data
    if kind not in _PLAIN_NODES:
        return False
    if kind is dict and not all(isinstance(k, str) and k.isidentifier() and len(k) <= 32 for k in keys):
        return False
    return all(_plain(child) for child in tree.children())


def _ours(part: Any) -> bool:
    """Whether a part of a key is a constant, a library function, or a tuple of these."""
    if isinstance(part, tuple):
        return all(_ours(p) for p in part)
    return part is None or isinstance(part, (bool, int, str)) or is_library(part)


def _types(args: Any) -> tuple[Hashable, ...] | None:
    """Tree and types of the arguments as a key; None where the tree is not plain (it may hold a learner's class)."""
    leaves, tree = tree_util.tree_flatten(args)
    if not _plain(tree):
        return None
    avals: list[Any] = [leaf if isinstance(leaf, jax.ShapeDtypeStruct) else jax.typeof(leaf) for leaf in leaves]
    types = tuple((a.shape, a.dtype, bool(getattr(a, "weak_type", False))) for a in avals)
    return tree, types, bool(jax.config.jax_enable_x64)


# --- the store ------------------------------------------------------------------------------------------------------


class Stats(NamedTuple):
    """Programs kept now, and since the start: answers from the store, compilations, evictions."""

    programs: int
    hits: int
    compiles: int
    evictions: int


class _Slot:
    """A place in the store: whoever made it compiles, everyone else waits for `ready`."""

    __slots__ = ("program", "ready")

    def __init__(self) -> None:
        self.ready = threading.Event()
        self.program: Compiled | None = None


class Programs:
    """A least-recently-used store of compiled programs, safe to use from many threads.

    Args:
        limit: how many are kept; the default is the limit ``programs``.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit if limit is not None else LIMITS["programs"].value
        self._lock = threading.Lock()
        self._slots: OrderedDict[Hashable, _Slot] = OrderedDict()
        self._hits = self._compiles = self._evictions = 0

    def get(
        self, key: tuple[Hashable, ...] | None, function: Callable[..., Any], args: tuple[Any, ...]
    ) -> tuple[Compiled, bool]:
        """The program of `function` for arguments of these types.

        Two threads that ask for the same program at once compile it once.

        Args:
            key: what `function` was made from: names, numbers and library functions. None, or a key or tree with
                anything else in it, means: compile, do not keep.
            function: compiled when the program is not there. It may be a fresh closure; only `key` and the types of
                `args` tell programs apart.
            args: arguments, or their `jax.ShapeDtypeStruct`. Their types decide, never their values.

        Returns:
            the program, and whether this call compiled it.

        Raises:
            SlowedError: within `paced`, where it would have to be compiled.
            whatever tracing `function` raises; nothing is kept then.
        """
        types = _types(args) if key is not None and _ours(key) else None
        if types is None:
            _pass_gate()
            program = _compile(function, args)
            with self._lock:
                self._compiles += 1
            return program, True
        return self._kept((key, types), function, args)

    def _kept(self, key: Hashable, function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Compiled, bool]:
        while True:
            with self._lock:
                slot = self._slots.get(key)
                if mine := slot is None:
                    _pass_gate()  # before anybody can wait for it
                    slot = self._slots[key] = _Slot()
                else:
                    self._slots.move_to_end(key)
            if mine:
                return self._fill(key, slot, function, args), True
            with TURNS.away():
                slot.ready.wait()
            if slot.program is not None:
                with self._lock:
                    self._hits += 1
                return slot.program, False
            # The thread that tried has failed and taken its slot away: this one gets its own exception.

    def _fill(self, key: Hashable, slot: _Slot, function: Callable[..., Any], args: tuple[Any, ...]) -> Compiled:
        try:
            program = slot.program = _compile(function, args)
        except BaseException:
            with self._lock:
                if self._slots.get(key) is slot:
                    del self._slots[key]
            raise
        finally:
            slot.ready.set()
        with self._lock:
            self._compiles += 1
            evicted = self._shrink()
        if evicted:
            _trim_heap()
        return program

    def _shrink(self) -> int:
        """Drop the least recently used programs over the limit. Ones being compiled stay: somebody waits for them."""
        over = len(self._slots) - self._limit
        old = [key for key, slot in self._slots.items() if slot.ready.is_set()][: max(over, 0)]
        for key in old:
            del self._slots[key]
        self._evictions += len(old)
        return len(old)

    def clear(self) -> None:
        """Forget every program."""
        with self._lock:
            self._slots.clear()
        _trim_heap()

    @property
    def stats(self) -> Stats:
        """Counts of now and since the start."""
        with self._lock:
            return Stats(len(self._slots), self._hits, self._compiles, self._evictions)


@timed(Part.COMPILE)
def _compile(function: Callable[..., Any], args: tuple[Any, ...]) -> Compiled:
    """Compile ahead of time through a jit of its own, so that the program is freed with its last reference."""
    with TURNS.away():
        return jax.jit(lambda *a: function(*a)).lower(*args).compile()


def _find_trim() -> Callable[[int], int] | None:
    """The `malloc_trim` of glibc, without which most of an evicted program's memory stays with the process."""
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none


_trim = _find_trim()


def _trim_heap() -> None:
    if _trim is not None:
        _trim(0)


#: The store that everything in this process shares.
PROGRAMS: Final = Programs()

_clearers: list[Callable[[], object]] = [PROGRAMS.clear]


def on_clear(clear: Callable[[], object]) -> None:
    """Register the clearer of another cache of this process, once, at import."""
    _clearers.append(clear)


def clear_all() -> None:
    """Empty every cache of this process that holds anything compiled or computed, JAX's own included."""
    for clear in _clearers:
        clear()
    jax.clear_caches()  # type: ignore[no-untyped-call]
