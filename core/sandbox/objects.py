"""Small questions about objects in a script's hands, and the few that are changed before it gets them."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any, Final

import jax
import numpy as np

from core.base.text import fill
from core.sandbox.kinds import Kind, Namespace, Text, kind_for, name_of
from core.sandbox.refusals import RefusedUse

NO_OBJECT_VIEW = "bytes cannot be viewed as Python objects"
NO_VIEW_TYPE = "view takes a dtype here"
NOT_A_NAME = "attribute name must be string"

#: Classes that are not called by a script even if it finds one: they build objects from raw memory or code.
UNCALLABLE: Final = (
    np.ndarray,
    np.void,
    jax.Array,
    jax.core.Tracer,
    types.FunctionType,
    types.CodeType,
    types.ModuleType,
)


def exact(name: Any) -> str:
    """A name as plain text: a subclass of `str` may compare and hash differently each time it is asked."""
    if not isinstance(name, str):
        raise TypeError(NOT_A_NAME)
    text: str = str.__str__(name)
    return text


def kind_of(obj: Any) -> str:
    """What a message calls the object: its type, without a module path."""
    if isinstance(obj, Namespace):
        return name_of(obj)
    return f"class {obj.__name__}" if isinstance(obj, type) else type(obj).__name__


def covered(value: Any) -> Any:
    """A value as a script may hold it: classes that build from raw memory or code become kinds, wherever they are found.

    The scalar classes of ml_dtypes (0.6.0) bring the process down when they are called with a word; JAX's do not.
    """
    if not isinstance(value, type):
        return value
    if value.__module__ == "ml_dtypes":
        return getattr(jax.numpy, value.__name__, kind_for(value))
    return kind_for(value) if issubclass(value, UNCALLABLE) and value is not jax.Array else value


#: What a script gets for a device: there is one.
DEVICE: Final = Text("TFRT_CPU_0", shown="CpuDevice(id=0)")


def instance_dict(obj: Any) -> Mapping[str, Any]:
    """What an object itself holds, read without running anybody's code; nothing of a class."""
    if isinstance(obj, type):
        return {}
    try:
        found: Any = object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return {}
    return found if isinstance(found, dict) else {}


def has_value(obj: Any, name: str) -> bool:
    """Whether reading the attribute works at all at all."""
    try:
        getattr(obj, name)
    except Exception:  # noqa: BLE001 - properties may raise anything
        return False
    return True


def is_text(obj: Any, name: str) -> bool:
    """Whether an attribute is a string, or None (a missing ``__doc__``)."""
    try:
        return isinstance(getattr(obj, name, 0), str | None)
    except Exception:  # noqa: BLE001 - half-made objects of libraries recurse
        return False


def safe_view(array: Any) -> Callable[..., Any]:
    """`array.view` of dtypes only, and never of Python objects."""

    def view(dtype: Any = None) -> Any:
        if dtype is None:
            return array.view()
        if type(dtype) is Kind or (isinstance(dtype, type) and issubclass(dtype, np.ndarray)):
            raise RefusedUse(fill(NO_VIEW_TYPE))
        wanted = np.dtype(dtype)
        if wanted.hasobject or array.dtype.hasobject:
            raise RefusedUse(fill(NO_OBJECT_VIEW))
        return array.view(wanted)

    return view
