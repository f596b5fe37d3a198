"""What a script may define: which classes it may build on, and annotations that no library can evaluate."""

from __future__ import annotations

import abc
import collections.abc
import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Collection
from typing import Any, Final

import flax.struct
from flax import linen, nnx

from core.base.text import fill
from core.sandbox.kinds import Kind, can_be_base
from core.sandbox.refusals import RefusedUse
from core.sandbox.words import is_dunder

NO_BASE = "a class cannot be built on {base} here; write a plain class, a dataclass, a NamedTuple or an nnx.Module"
NO_OVERRIDE = "{name} is an inner part of {base} that a class may not replace here; choose another name"
NO_TEXT_METHOD = "a class built on str may not replace {name} here; keep the text in an attribute"
NO_MEMBERS = "an Enum without members can be called to make classes; give it members"

#: Library classes that a script may build classes on.
BASES: Final = (
    object, dict, list, set, tuple, str, int, float, frozenset, typing.Generic, typing.Protocol,
)  # fmt: skip
_ABSTRACT: Final = frozenset({abc.ABC, *(getattr(collections.abc, n) for n in collections.abc.__all__)})
_TYPED: Final = (typing.NamedTuple, typing.TypedDict)
#: Methods of `str` that say what the text is; how it is printed is a class's own affair.
_TEXT: Final = frozenset(vars(str)) - frozenset(
    f"__{n}__" for n in "doc new repr str format getattribute sizeof getnewargs add mul rmul mod rmod".split()
)
#: And these with everything that is built on them.
FAMILIES: Final = (BaseException, nnx.Pytree, nnx.Variable, linen.Module, flax.struct.PyTreeNode)


def check_bases(bases: tuple[Any, ...], body: Any, made: Collection[type]) -> None:
    """Refuse bases of a class statement that are none of the above, or whose inner methods would be replaced.

    Args:
        bases: as written.
        body: the function that runs the class's body.
        made: the script's own classes.
    """
    origins = [_check_base(base, made) for base in bases]
    # An own class that is built on a library's was looked at when it was made; a plain one may have changed since.
    classes = {
        c for o in origins if isinstance(o, type) for c in o.__mro__ if c in made and not issubclass(c, FAMILIES)
    }
    own = {name for c in classes for name in vars(c)}
    for origin in origins:
        for name in (*body.__code__.co_names, *own):
            if isinstance(origin, type) and is_inner(origin, name, made):
                raise RefusedUse(fill(NO_OVERRIDE, name=name, base=origin.__name__))


def _check_base(base: Any, made: Collection[type]) -> Any:
    origin: Any = typing.get_origin(base) or base
    if any(base is t for t in _TYPED) or (type(origin) is Kind and can_be_base(origin)):
        return origin
    if not isinstance(origin, type):
        raise RefusedUse(fill(NO_BASE, base=repr(base)))
    if not (origin in made or origin in BASES or origin in _ABSTRACT or issubclass(origin, FAMILIES)):
        raise RefusedUse(fill(NO_BASE, base=origin.__name__))
    return origin


def is_inner(cls: type, name: str, made: Collection[type]) -> bool:
    """Whether a name is one that a library keeps for itself in the classes it brings to this one.

    Flax rebuilds objects by such methods, from names that they give: who replaces one sets any attribute.
    """
    if not name.startswith("_") or is_dunder(name):
        return False
    return any(name in vars(c) for c in cls.__mro__ if c not in made and issubclass(c, FAMILIES))


def finish(cls: type) -> None:
    """Look at a class that was just made: an enumeration has members, text is what it says, `__exit__` gets no frames."""
    if issubclass(cls, enum.Enum) and not cls.__members__:
        raise RefusedUse(fill(NO_MEMBERS))
    if issubclass(cls, str):
        _check_text(cls)
    leave = vars(cls).get("__exit__")
    if isinstance(leave, types.FunctionType):
        cls.__exit__ = without_traceback(leave)  # type: ignore[attr-defined]


def _check_text(cls: type) -> None:
    """Refuse text that compares or reads differently from what it holds: libraries look attributes up by such names."""
    for base in cls.__mro__[: cls.__mro__.index(str)]:
        changed = _TEXT & vars(base).keys()
        if changed:
            raise RefusedUse(fill(NO_TEXT_METHOD, name=min(changed)))


def without_traceback(leave: Callable[..., Any]) -> Callable[..., Any]:
    """`__exit__` that is told of the error and not of its frames."""

    def __exit__(self: Any, kind: Any, error: Any, _: Any) -> Any:
        return leave(self, kind, error, None)

    return __exit__


def has_string(value: Any, depth: int = 0) -> bool:
    """Whether an annotation carries a string (or a forward reference) that a library would evaluate."""
    if isinstance(value, str | bytes | typing.ForwardRef) or depth > 16:
        return True
    origin = typing.get_origin(value)
    if origin is typing.Literal:
        return False
    if isinstance(value, dataclasses.InitVar):
        return has_string(value.type, depth + 1)
    parts = (value.__origin__,) if origin is typing.Annotated else getattr(value, "__args__", ())
    parts = value if isinstance(value, list | tuple) else parts
    return isinstance(parts, list | tuple) and any(has_string(p, depth + 1) for p in parts)
