"""What stands for modules, classes and objects that a script may know but not reach into."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, NoReturn

from core.base.text import fill
from core.sandbox.refusals import RefusedAttribute, RefusedUse

NO_WRITE = "{kind} cannot be changed from a script"
NO_CALL = "{kind} is not built by calling its class here; {instead}"
NO_COPY = "{kind} cannot be copied"
USE_A_FUNCTION = "use a function such as jnp.asarray or jnp.zeros"


class Namespace:
    """A module as a script sees it: exactly the names of one table, read-only.

    `denied` are names that the module has and a script does not get, each with the sentence that says why; `exists`
    says whether the module has a name at all, so that a misspelt one is told as Python tells it.
    """

    __slots__ = ("_denied", "_exists", "_name", "_table")

    def __init__(
        self,
        name: str,
        table: Mapping[str, Any],
        denied: Mapping[str, str] | None = None,
        exists: Callable[[str], bool] = lambda _: False,
    ) -> None:
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_table", types.MappingProxyType(dict(table)))
        object.__setattr__(self, "_denied", types.MappingProxyType(dict(denied or {})))
        object.__setattr__(self, "_exists", exists)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise RefusedAttribute(fill(NO_WRITE, kind=repr(self)))

    def __delattr__(self, name: str) -> NoReturn:
        raise RefusedAttribute(fill(NO_WRITE, kind=repr(self)))

    def __repr__(self) -> str:
        return f"<module '{name_of(self)}'>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise RefusedUse(fill(NO_COPY, kind=repr(self)))

    def __deepcopy__(self, memo: object) -> Namespace:
        return self


def name_of(namespace: Namespace) -> str:
    """A namespace's dotted name. (These four are for the facade and the guards; scripts cannot name them.)"""
    name: str = object.__getattribute__(namespace, "_name")
    return name


def table_of(namespace: Namespace) -> Mapping[str, Any]:
    """The names it offers."""
    table: Mapping[str, Any] = object.__getattribute__(namespace, "_table")
    return table


def denied_of(namespace: Namespace) -> Mapping[str, str]:
    """The names it does not offer, with the reasons."""
    denied: Mapping[str, str] = object.__getattribute__(namespace, "_denied")
    return denied


def has_name(namespace: Namespace, name: str) -> bool:
    """Whether the real module has this name."""
    exists: Callable[[str], bool] = object.__getattribute__(namespace, "_exists")
    return exists(name)


class LeftOut:
    """What stands for a plotting library: each of its names, and whatever a call of one gives, is the same nothing.

    A script that draws is checked all the same; a pair can be unpacked from it (``fig, ax = plt.subplots()``). The
    guards answer every attribute with itself.
    """

    __slots__ = ()

    def __call__(self, *_: Any, **__: Any) -> LeftOut:
        """Nothing is drawn."""
        return self

    def __getitem__(self, _: object) -> LeftOut:
        return self

    def __iter__(self) -> Iterator[LeftOut]:
        return iter((self, self))

    def __setitem__(self, _: object, __: object) -> None:
        """Nothing is kept: ``plt.rcParams["…"] = …``."""

    def __setattr__(self, _: str, __: object) -> None:
        """Nothing is kept."""

    def __enter__(self) -> LeftOut:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing was opened."""

    def __repr__(self) -> str:
        return "<plotting is left out>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise RefusedUse(fill(NO_COPY, kind=repr(self)))


class Kind:
    """A class that a script may ask about (``isinstance``, annotations, comparisons) and not build or subclass.

    `call` makes it callable after all, by a function of ours; `bases` are what stands for it among the bases of a class.
    """

    __slots__ = ("_bases", "_call", "_cls")

    def __init__(
        self, cls: Any, *, call: Callable[..., Any] | None = None, bases: tuple[type, ...] | None = None
    ) -> None:
        object.__setattr__(self, "_cls", cls)
        object.__setattr__(self, "_call", call)
        object.__setattr__(self, "_bases", bases)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Refused, unless there is a function of ours for it."""
        call = object.__getattribute__(self, "_call")
        if call is None:
            raise RefusedUse(fill(NO_CALL, kind=repr(self), instead=USE_A_FUNCTION))
        return call(*args, **keywords)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise RefusedAttribute(fill(NO_WRITE, kind=repr(self)))

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, class_of(self))

    def __subclasscheck__(self, subclass: type) -> bool:
        return issubclass(subclass, class_of(self))

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        own: tuple[type, ...] | None = object.__getattribute__(self, "_bases")
        if own is None:
            raise RefusedUse(fill(NO_CALL, kind=repr(self), instead=USE_A_FUNCTION))
        return own

    def __getitem__(self, parameters: object) -> Kind:
        """``np.ndarray[…]`` in an annotation: a generic alias of the class could be called, so it stays the kind."""
        return self

    def __or__(self, other: Any) -> Any:
        return class_of(self) | (class_of(other) if type(other) is Kind else other)

    def __ror__(self, other: Any) -> Any:
        return other | class_of(self)

    def __eq__(self, other: object) -> bool:
        return (class_of(other) if type(other) is Kind else other) is class_of(self)

    def __hash__(self) -> int:
        return hash(class_of(self))

    def __repr__(self) -> str:
        return repr(class_of(self))

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise RefusedUse(fill(NO_COPY, kind=repr(self)))

    def __deepcopy__(self, memo: object) -> Kind:
        return self


def class_of(kind: Kind) -> Any:
    """The class that a kind stands for."""
    return object.__getattribute__(kind, "_cls")


def can_be_base(kind: Kind) -> bool:
    """Whether a script may subclass it."""
    return object.__getattribute__(kind, "_bases") is not None


_KINDS: dict[type, Kind] = {}


def kind_for(cls: type) -> Kind:
    """The one kind of a library's class (the same object each time, since scripts compare with ``is``)."""
    return _KINDS.setdefault(cls, Kind(cls))


class StandIn:
    """An object of ours in a script's hands: it offers exactly the names in `OFFERS`."""

    OFFERS: ClassVar[frozenset[str]] = frozenset()
    #: Whether ``object[key] = value`` is offered.
    ITEMS: ClassVar[bool] = False

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise RefusedUse(fill(NO_COPY, kind=type(self).__name__))


class Text(StandIn):
    """Text in place of an object that would lead elsewhere (a jaxpr, a device): it can be printed and compared."""

    def __init__(self, text: str, shown: str | None = None) -> None:
        self._text = text
        self._shown = text if shown is None else shown

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._shown

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Text) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)
