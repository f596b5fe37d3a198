"""Walks everything that a script can reach, breadth first: names, offered attributes, parts of containers, results of calls.

What counts as reached is what the guards give: a function of a library is reached, its `__globals__` is not. Whatever is
forbidden and turns up is reported with the path to it.
"""

from __future__ import annotations

import builtins
import collections
import contextlib
import ctypes
import functools
import gc
import importlib
import inspect
import io
import operator
import os
import pathlib
import pickle
import subprocess
import sys
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.experimental import io_callback

from core.sandbox.guards import Guards
from core.sandbox.kinds import Kind, Namespace, StandIn, table_of
from core.sandbox.output import Output

FORBIDDEN_TYPES: dict[str, tuple[type, ...]] = {
    "a module": (types.ModuleType,),
    "a frame": (types.FrameType,),
    "a code object": (types.CodeType,),
    "a traceback": (types.TracebackType,),
    "a file": (io.IOBase, os.DirEntry, pathlib.PurePath),
    "the sandbox itself": (Guards, Output),
    "a device or its client": (jax.Device, type(jax.devices()[0].client)),
    "memory": (memoryview, ctypes.Structure, ctypes.Array, type(np.zeros(1).ctypes)),
}
_FILES = "load save savez loadtxt savetxt genfromtxt fromfile fromregex memmap"
FORBIDDEN: dict[str, tuple[Any, ...]] = {
    "a file function": (
        open, io.open, *(f for f in vars(os).values() if callable(f) and not isinstance(f, type)),
        *(getattr(np, n) for n in _FILES.split()), jnp.load, jnp.save, jnp.savez, pickle.load, pickle.loads,
        subprocess.Popen, subprocess.run,
    ),
    "text run as code": (eval, exec, compile, __import__, importlib.import_module, typing.get_type_hints, np.bmat),
    "a lookup by name": (
        getattr, setattr, delattr, vars, globals, locals, operator.attrgetter, operator.methodcaller, sys._getframe,
        functools.singledispatch, functools.update_wrapper, functools.wraps, inspect.getattr_static, gc.get_objects,
        builtins.__build_class__, object.__getattribute__, object.__setattr__,
    ),
    "a host callback": (jax.pure_callback, io_callback, jax.debug.callback, jax.debug.print, jax.debug.breakpoint),
    "a compiler option": (jax.jit, jax.config, jax.make_jaxpr),
    "a registration": (
        jax.tree_util.register_pytree_node, jax.tree_util.register_dataclass, jax.tree_util.register_pytree_with_keys,
        jax.tree_util.register_static, jax.tree_util.default_registry,
    ),
    "a class that builds from raw memory": (np.ndarray, np.void, np.memmap, types.FunctionType, types.CodeType, type),
    "raw memory": (np.lib.stride_tricks.as_strided, ctypes.string_at, np.from_dlpack, jnp.from_dlpack),
}  # fmt: skip
#: Attributes of functions that would give everything away.
GIVEAWAYS = (
    "__globals__",
    "__code__",
    "__closure__",
    "__wrapped__",
    "__self__",
    "__func__",
    "__dict__",
    "__builtins__",
)
#: Shared containers a script could change; those of the job's own are named here.
OWN_CONTAINERS = ("sys.argv", "os.environ")
PARTS, SAME_TYPE, ENOUGH = 40, 3, 1
#: Not called: they wait.
WAITING = frozenset({"time.sleep"})

#: Types whose methods are the same for all that is built on them.
_FAMILIES = (
    np.generic,
    np.ndarray,
    jax.Array,
    jax.core.Tracer,
    nnx.Variable,
    nnx.Rngs,
    nnx.RngStream,
    bool,
    int,
    float,
)
_IDENTITIES = {id(f): what for what, functions in FORBIDDEN.items() for f in functions}


class Walk:
    """One walk. `found` are the forbidden things, as "what: path"."""

    def __init__(self, guards: Guards, *, call: bool) -> None:
        self.guards, self.call = guards, call
        self.found: list[str] = []
        self.visited = 0
        self.called = 0
        self.types: set[type] = set()
        self._seen: set[int] = set()
        self._methods: set[tuple[type, str]] = set()
        self._kept: list[Any] = []  # ids stay taken while the walk lasts
        self._by_type: collections.Counter[type] = collections.Counter()
        self._queue: collections.deque[tuple[str, Any, bool]] = collections.deque()

    def run(self, roots: dict[str, Any]) -> Walk:
        """Walk from these names."""
        for name, value in roots.items():
            self._put(name, value, constant=True)
        while self._queue:
            path, value, constant = self._queue.popleft()
            self._visit(path, value, constant)
        return self

    def _put(self, path: str, value: Any, constant: bool) -> None:
        cls = type(value)
        if id(value) in self._seen:
            return
        plain = isinstance(value, type | types.FunctionType | types.BuiltinFunctionType | Namespace) or constant
        if not plain and self._by_type[cls] >= SAME_TYPE:
            self._check(path, value, constant)
            return
        self._by_type[cls] += 1
        self._seen.add(id(value))
        self._kept.append(value)
        self._queue.append((path, value, constant))

    def _visit(self, path: str, value: Any, constant: bool) -> None:
        self.visited += 1
        self.types.add(type(value))
        self._check(path, value, constant)
        if isinstance(value, str | bytes | int | float | complex | type(None)):
            return
        if isinstance(value, Namespace):
            for name, member in table_of(value).items():
                self._put(f"{path}.{name}", member, constant)
            return
        family = next((c for c in _FAMILIES if isinstance(value, c)), type(value))
        for name in self.guards.names(value):
            with contextlib.suppress(Exception):
                member = self.guards.get(value, name)
                # A method is tried once for all objects of a kind.
                if callable(member) and not isinstance(value, type) and (family, name) in self._methods:
                    self._check(f"{path}.{name}", member, constant)
                    continue
                self._methods.add((family, name))
                shared = constant and member is self.guards.get(value, name)
                self._put(f"{path}.{name}", member, shared)
        for key, part in _parts(value):
            self._put(f"{path}[{key}]", part, constant)
        if self.call and callable(value) and path not in WAITING and not _is_error(value) and path.count("(…)") < 2:
            self._call(path, value)

    def _check(self, path: str, value: Any, constant: bool) -> None:
        for what, kinds in FORBIDDEN_TYPES.items():
            if isinstance(value, kinds) and type(value) is not Kind:
                self.found.append(f"{what}: {path}")
        if id(value) in _IDENTITIES:
            self.found.append(f"{_IDENTITIES[id(value)]}: {path}")
        origin = typing.get_origin(value)
        if isinstance(origin, type) and callable(value) and issubclass(origin, np.ndarray | np.void | jax.Array):
            self.found.append(f"a class that builds from raw memory: {path}")
        if callable(value):
            for name in GIVEAWAYS:
                if self.guards.readable(value, name):
                    self.found.append(f"{name}: {path}")
        shared = isinstance(value, list | dict | set | bytearray | collections.deque | np.ndarray)
        if constant and shared and path not in OWN_CONTAINERS:
            self.found.append(f"a container that a script could change for others: {path}")

    def _call(self, path: str, function: Callable[..., Any]) -> None:
        worked = 0
        for arguments in _arguments():
            try:
                result = function(*arguments)
            except BaseException:
                continue
            self.called += 1
            self._put(f"{path}(…)", result, constant=False)
            worked += 1
            if worked == ENOUGH:
                return


def _is_error(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


def _parts(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, StandIn | Kind):
        return
    with contextlib.suppress(Exception):
        if isinstance(value, dict | types.MappingProxyType):
            yield from list(value.items())[:PARTS]
        elif isinstance(value, list | tuple | set | frozenset | collections.deque):
            yield from enumerate(list(value)[:PARTS])


def _arguments() -> list[tuple[Any, ...]]:
    """Samples that most functions take one of."""
    x, key = jnp.ones((2, 2)), jax.random.key(0)

    def f(v: Any) -> Any:
        return v * 2.0

    return [
        (x,), (x, x), (f,), (f, x), (), (2,), (2, 3), ("a",), ([x, x],), ((2, 2),), (key,), (x, 0),
        (lambda c, v: (c, v), 0.0, x), (1.0, 2.0, 3.0),
    ]  # fmt: skip


__all__ = ["FORBIDDEN", "FORBIDDEN_TYPES", "Walk"]
