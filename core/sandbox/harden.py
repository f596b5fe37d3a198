"""Closes, once per process, the places where Flax takes attribute names from data.

`nnx.Dict({"__array_interface__": …})` sets an attribute of that name and NumPy believes it: it reads any memory. Variables
hand out their metadata as attributes, a State its keys. No name that Python or NumPy gives a meaning to is let through;
nothing else changes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from flax import nnx
from jax.extend import source_info_util

import core
from core.base.text import fill
from core.sandbox.refusals import RefusedAttribute
from core.sandbox.words import REFUSED_ATTRIBUTE, is_dunder

#: What Flax itself sets on modules (`nnx.capture`).
_FLAX: Final = frozenset({"__captures__"})


@functools.cache
def harden() -> None:
    """Wrap the three methods, and keep our own frames out of what JAX tells of a script's. Once, before the first one."""
    source_info_util.register_exclusion(str(Path(core.__file__).parent))
    nnx.Pytree.__setattr__ = _refusing_dunders(nnx.Pytree.__setattr__)  # type: ignore[method-assign]
    nnx.Variable.__getattr__ = _only_found(nnx.Variable.__getattr__, _metadata)  # type: ignore[method-assign]
    nnx.State.__getattr__ = _only_found(nnx.State.__getattr__, _keys)  # type: ignore[method-assign]


def _refusing_dunders(setter: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(setter)
    def __setattr__(self: Any, name: str, value: Any) -> None:
        if is_dunder(name) and name not in _FLAX:
            raise RefusedAttribute(fill(REFUSED_ATTRIBUTE, name=name))
        setter(self, name, value)

    return __setattr__


def _only_found(getter: Callable[..., Any], data: Callable[[Any], Any]) -> Callable[..., Any]:
    @functools.wraps(getter)
    def __getattr__(self: Any, name: str) -> Any:
        if is_dunder(name) and name in data(self):
            raise AttributeError(name)
        return getter(self, name)

    return __getattr__


def _metadata(variable: Any) -> Any:
    return object.__getattribute__(variable, "_var_metadata")


def _keys(state: Any) -> Any:
    return vars(state).get("_mapping", ())
