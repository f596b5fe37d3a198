"""Closes, once per process, the places where Flax takes attribute names from data.

`nnx.Dict({"__array_interface__": …})` sets an attribute of that name and NumPy believes it: it reads any memory.
`nnx.Dict()["__dict__"]` hands out the attributes themselves. Variables hand out their metadata as attributes, a State its
keys. No name that Python or NumPy gives a meaning to is let through; nothing else changes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from flax import linen, nnx
from jax.extend import source_info_util

import core
from core.base.text import fill
from core.sandbox.refusals import RefusedAttribute, RefusedUse
from core.sandbox.words import REFUSED_ATTRIBUTE, is_dunder

#: What Flax itself sets on modules (`nnx.capture`).
_FLAX: Final = frozenset({"__captures__"})


@functools.cache
def harden() -> None:
    """Wrap the methods, and keep our own frames out of what JAX tells of a script's. Once, before the first one."""
    source_info_util.register_exclusion(str(Path(core.__file__).parent))
    for cls, name, wrap in HARDENED:
        setattr(cls, name, wrap(getattr(cls, name)))


def _setattr(real: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(real)
    def __setattr__(self: Any, name: str, value: Any) -> None:
        if is_dunder(name) and name not in _FLAX:
            raise RefusedAttribute(fill(REFUSED_ATTRIBUTE, name=name))
        real(self, name, value)

    return __setattr__


def _variable_getattr(real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def __getattr__(self: Any, name: str) -> Any:
        if is_dunder(name):  # never from the metadata
            return getattr(object.__getattribute__(self, "_raw_value"), name)
        return real(self, name)

    return __getattr__


def _state_getattr(real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def __getattr__(self: Any, name: str) -> Any:
        if is_dunder(name):
            raise AttributeError(name)
        return real(self, name)

    return __getattr__


def _dict_getitem(real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def __getitem__(self: Any, key: Any) -> Any:
        """The real one reads any attribute by its name, ``__dict__`` too; its own entries are what is meant."""
        if isinstance(key, str) and (is_dunder(key) or key.startswith("_pytree__")):
            raise RefusedAttribute(fill(REFUSED_ATTRIBUTE, name=key))
        if not isinstance(key, str) or key not in vars(self):
            raise KeyError(key)
        return vars(self)[key]

    return __getitem__


def _list_element(real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def element(self: Any, key: int, *value: Any) -> Any:
        """The real one reads the attribute ``str(key)``, whatever a class built on int says that is."""
        return real(self, int.__index__(key), *value)

    return element


def _method_by_name(real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def call(self: Any, *args: Any, method: Any = None, **keywords: Any) -> Any:
        """A method may be given by its name; inner ones are not."""
        if isinstance(method, str) and method.startswith("_") and method != "__call__":
            raise RefusedUse(fill(REFUSED_ATTRIBUTE, name=method))
        return real(self, *args, method=method, **keywords)

    return call


#: Class, method, and what takes its place.
HARDENED: Final[tuple[tuple[type, str, Callable[[Any], Any]], ...]] = (
    (nnx.Pytree, "__setattr__", _setattr),
    (nnx.Variable, "__getattr__", _variable_getattr),
    (nnx.State, "__getattr__", _state_getattr),
    (nnx.Dict, "__getitem__", _dict_getitem),
    (linen.Module, "apply", _method_by_name),
    (linen.Module, "init_with_output", _method_by_name),
    (nnx.List, "_get_elem", _list_element),
    (nnx.List, "_set_elem", _list_element),
    (nnx.List, "_del_elem", _list_element),
)
