"""Takes the classes of a script that is over out of the registries of JAX and Flax."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

from core.sandbox.words import METHODS, is_dunder


def forget(classes: Iterable[type]) -> None:
    """Unregister classes where a registry can forget, and empty them where it cannot (JAX's C++ registries).

    What is left of a class is its name: no function of it, so nothing that its functions could reach.
    """
    registries = _registries()
    for cls in classes:
        for registry in registries:
            with contextlib.suppress(KeyError):
                del registry[cls]
        _empty(cls)


def _registries() -> list[Any]:
    """Every dict from class to functions; private, since no library has a public way to unregister."""
    from flax import serialization
    from flax.nnx import graphlib, pytreelib, variablelib
    from jax._src import tree_util

    names = variablelib.VariableTypeCache
    return [
        tree_util._registry,
        graphlib.GRAPH_REGISTRY,
        graphlib.PYTREE_REGISTRY,
        serialization._STATE_DICT_REGISTRY,
        _AsDict(pytreelib.DATA_REGISTRY),
        _ByValue(names),
    ]


class _AsDict:
    """A set as something to delete from."""

    def __init__(self, members: set[type]) -> None:
        self._members = members

    def __delitem__(self, cls: type) -> None:
        self._members.remove(cls)


class _ByValue:
    """A table from name to class, to delete from by class."""

    def __init__(self, table: dict[Any, Any]) -> None:
        self._table = table

    def __delitem__(self, cls: type) -> None:
        for name in [n for n, c in self._table.items() if c is cls]:
            del self._table[name]


def _empty(cls: type) -> None:
    for name in list(vars(cls)):
        if not is_dunder(name) or name in METHODS:
            with contextlib.suppress(Exception):
                type.__delattr__(cls, name)


def variable_names() -> Callable[[], None]:
    """Something to call at the end: takes out the names of variable types that were registered since now.

    `Module.sow("name", …)` registers a type for a name that it does not know.
    """
    from flax.nnx import variablelib

    table = variablelib.VariableTypeCache
    before = frozenset(table)

    def undo() -> None:
        for name in [n for n in table if n not in before]:
            del table[name]

    return undo
