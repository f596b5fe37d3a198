"""What a pasted script may name: the globals that its code is executed in.

Wide on purpose: every public name of the modules in core/sandbox/names.py, less what that table denies with a reason, with
our own version where the real one would reach files, the compiler, the host or other people's settings (own_std, own_numpy,
own_jax). Modules are read-only namespaces, so nothing that a script does to them outlives it.

Use::

    compiled = compile_script(source)                  # refusals, or code
    guards, out = Guards(), Output()
    names = environment(guards, out=out, record=Recorder())
    try:
        for statement in compiled.statements:          # in a worker, behind its walls
            exec(statement, names)
    finally:
        guards.close()                                 # after everything that runs the script's functions again
"""

from __future__ import annotations

import functools
import importlib
import sys
import types
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from jax.extend.core import Primitive

from core.sandbox.guards import Guards
from core.sandbox.harden import harden
from core.sandbox.kinds import Kind, Namespace
from core.sandbox.names import EXTRA_DENIED, MODULE, PRIMITIVE, SPACES, Space
from core.sandbox.objects import covered
from core.sandbox.output import Output
from core.sandbox.own_jax import Config, jax_names
from core.sandbox.own_numpy import numpy_names
from core.sandbox.own_std import builtin_names, standard_names
from core.sandbox.undo import variable_names

#: Roots of modules that libraries may import while a script's frame is the nearest Python frame (JAX imports lazily).
_LIBRARY_ROOTS: Final = frozenset(
    "jax jaxlib flax optax numpy ml_dtypes scipy opt_einsum treescope rich msgpack typing_extensions encodings".split()
)


class Recorder(Protocol):
    """Sees the calls that a script makes of the functions it watches, by dotted name (``jax.lax.scan``)."""

    @property
    def watched(self) -> frozenset[str]:
        """The names to be told of, as `core.sandbox.names` spells them."""

    def call(self, name: str, function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Called in place of a watched function: call it, and return what it returns."""


class Unrecorded:
    """A recorder that watches nothing."""

    watched: frozenset[str] = frozenset()

    def call(self, name: str, function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """The call alone."""
        return function(*args, **keywords)


def environment(
    guards: Guards,
    *,
    out: Output,
    record: Recorder | None = None,
    probe: Callable[[int, Any], Any] | None = None,
    values: bool = True,
) -> dict[str, Any]:
    """The globals for `exec` of a compiled script.

    Args:
        guards: this job's; it learns the modules, the classes and the globals.
        out: takes what is printed.
        record: watches functions.
        probe: called with the number and the value of each expression; returns the value.
        values: False in an abstract pass: assertions and prints are skipped.
    """
    harden()
    record = record if record is not None else Unrecorded()
    tables = job_tables(guards, out)
    _watch(tables, record)
    guards.modules = _assemble(tables)
    guards.known = frozenset(v for t in tables.values() for v in t.values() if isinstance(v, type))
    guards.on_close(variable_names())
    builtins = builtin_names(guards, out)
    builtins["__build_class__"] = guards.build_class
    builtins["__import__"] = _library_import
    guards.globals = {
        "__name__": "__main__",
        "__doc__": None,
        "__builtins__": builtins,
        "_getattr_": guards.get,
        "_getitem_": guards.getitem,
        "_write_": guards.write,
        "_inplace_": guards.inplace,
        "_keywords_": guards.keywords,
        "_annotation_": guards.annotation,
        "_later_": guards.later,
        "_import_": guards.import_module,
        "_import_from_": guards.import_from,
        "_slice_": slice,
        "_probe_": probe if probe is not None else _unprobed,
        "_values_": values,
    }
    return guards.globals


def job_tables(guards: Guards, out: Output) -> dict[str, dict[str, Any]]:
    """Every module's names by its dotted name: the library's, and ours in their place."""
    tables = {name: dict(table) for name, (table, _) in library_tables().items()}
    config = Config(guards)

    def set_x64(on: bool) -> None:
        config.update("jax_enable_x64", on)

    own = standard_names(guards, out, set_x64) | numpy_names(guards) | jax_names(guards, out, config)
    for dotted, value in own.items():
        module, _, name = dotted.rpartition(".")
        tables[module][name] = value
    tables["flax.experimental.nnx"] = dict(tables["flax.nnx"])
    return tables


@functools.cache
def library_tables() -> Mapping[str, tuple[Mapping[str, Any], Mapping[str, str]]]:
    """What the real modules give: per module the offered names, and the denied ones with their reasons. Same for all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return types.MappingProxyType({space.name: _library_table(space) for space in SPACES})


def _library_table(space: Space) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    module = _module(space.source)
    denied = dict(space.denied) | dict(EXTRA_DENIED.get(space.name, {}))
    names = space.listed.split() if space.listed is not None else [n for n in dir(module) if not n.startswith("_")]
    table: dict[str, Any] = {}
    for name in names:
        if name in denied:
            continue
        value = getattr(module, name)
        if isinstance(value, types.ModuleType | types.SimpleNamespace):
            denied[name] = MODULE
        elif isinstance(value, Primitive):
            denied[name] = PRIMITIVE
        else:
            table[name] = covered(value)
    if space.name in ("jax", "numpy", "optax"):
        table["__version__"] = module.__version__
    return table, denied


def _module(dotted: str) -> types.ModuleType:
    """The module of that name; some (`flax.nnx.metrics`) are attributes of their parents only."""
    try:
        return importlib.import_module(dotted)
    except ModuleNotFoundError:
        parent, _, last = dotted.rpartition(".")
        found: types.ModuleType = getattr(_module(parent), last)
        return found


def _assemble(tables: Mapping[str, dict[str, Any]]) -> dict[str, Namespace]:
    """Namespaces, innermost first, each in its parent's table."""
    out: dict[str, Namespace] = {}
    exists = _existing()
    reasons = library_tables()
    for name in sorted(tables, key=_depth, reverse=True):
        table, denied = tables[name], reasons[name][1]
        if not denied.keys().isdisjoint(table):
            denied = {n: r for n, r in denied.items() if n not in table}
        out[name] = Namespace(name, table, denied, exists[name])
        parent, _, last = name.rpartition(".")
        if parent in tables:
            tables[parent][last] = out[name]
    return out


def _depth(name: str) -> int:
    return name.count(".")


@functools.cache
def _existing() -> Mapping[str, Callable[[str], bool]]:
    """By module, what says whether the real one has a name."""
    return types.MappingProxyType({space.name: functools.partial(_exists, space.source) for space in SPACES})


def _exists(module: str, name: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return hasattr(sys.modules.get(module), name)


def _watch(tables: dict[str, dict[str, Any]], record: Recorder) -> None:
    """Put a watched function's place in the recorder's hands, under every name the same function has."""
    wrappers: dict[int, Any] = {}
    for dotted in sorted(record.watched):
        module, _, name = dotted.rpartition(".")
        function = tables[module][name]
        wrappers[id(function)] = _watched(dotted, function, record)
    for table in tables.values() if wrappers else ():
        for name in [n for n, value in table.items() if id(value) in wrappers]:
            table[name] = wrappers[id(table[name])]


def _watched(dotted: str, function: Callable[..., Any], record: Recorder) -> Callable[..., Any]:
    def watched(*args: Any, **keywords: Any) -> Any:
        return record.call(dotted, function, args, keywords)

    watched.__name__ = watched.__qualname__ = dotted.rpartition(".")[2]
    return watched


def _unprobed(_: int, value: Any) -> Any:
    return value


def _library_import(name: str, *args: Any) -> Any:
    """`__import__` for libraries: a frame of the script may be the one whose built-ins an inner import uses."""
    if name.partition(".")[0] not in _LIBRARY_ROOTS and name not in sys.modules:
        raise ImportError(name)
    return __import__(name, *args)


__all__ = ["Kind", "Recorder", "Unrecorded", "environment", "job_tables", "library_tables"]
