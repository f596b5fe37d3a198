"""Our versions of what the built-ins and the standard library offer: no lookups by name, no files, nothing shared."""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import functools
import random
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum, Flag, IntEnum, IntFlag, StrEnum
from typing import Any, ClassVar, Final, NamedTuple, NoReturn

from core.base.text import fill
from core.sandbox.guards import Guards
from core.sandbox.kinds import Kind, StandIn
from core.sandbox.objects import exact
from core.sandbox.output import Output
from core.sandbox.refusals import RefusedAttribute, RefusedName, RefusedUse
from core.sandbox.words import is_dunder

NOT_BUILT_IN = "{name} is not available in the playground: {reason}"
OWN_CLASSES = "{name} works here on classes that the script itself defines"
OWN_FUNCTIONS = "{name} works here on functions that the script itself defines"
OWN_VALUES = "{name} works here on dataclasses of the script"
NO_DATACLASS = "{name}() should be called on dataclass instances"
NO_ENUM_CALL = "{name}(…) makes a class from text; write `class Name({name})` with its members"
PLAIN_WRAPS = "assigned= and updated= of functools.wraps are not available here"
NO_THREE = "type() takes one argument here; write a class statement"
WRONG_FILE = "print(file=…) takes sys.stdout or sys.stderr here"
WARNED = "{kind}: {message}\n"
NOT_STR = "{name} must be None or a string, not {kind}"

FILES: Final = "a script has no files; write the values into the script"
EVALUATES: Final = "it runs text as code; write the code"
REACHES: Final = "it reaches into the interpreter; use the names themselves"
RAW: Final = "it reads raw memory; use arrays"
TERMINAL: Final = "there is no terminal; write the values into the script"

#: Built-ins that a script does not get, with the reason.
DENIED_BUILTINS: Final[Mapping[str, str]] = {
    "open": FILES, "input": TERMINAL, "breakpoint": TERMINAL, "help": TERMINAL, "copyright": TERMINAL,
    "credits": TERMINAL, "license": TERMINAL,
    "eval": EVALUATES, "exec": EVALUATES, "compile": EVALUATES,
    "globals": REACHES, "locals": REACHES, "aiter": "there is no async code", "anext": "there is no async code",
    "memoryview": RAW,
}  # fmt: skip
PLAIN_BUILTINS: Final = (
    "abs all any ascii bin bool bytearray bytes callable chr classmethod complex dict divmod enumerate filter float "
    "format frozenset hash hex id int isinstance issubclass iter len list map max min next object oct ord pow property "
    "range repr reversed round set slice sorted staticmethod str sum super tuple zip Ellipsis NotImplemented"
).split()
_RANDOM: Final = (
    "betavariate choice choices expovariate gammavariate gauss getrandbits lognormvariate normalvariate paretovariate "
    "randbytes randint random randrange sample seed shuffle triangular uniform vonmisesvariate weibullvariate"
).split()


class Stream(StandIn):
    """`sys.stdout` and `sys.stderr`: both are the script's output."""

    OFFERS: ClassVar[frozenset[str]] = frozenset({"write", "flush"})

    def __init__(self, out: Output) -> None:
        self._out = out

    def write(self, text: str) -> int:
        """Write; returns the number of characters, as a file does."""
        self._out.write(str.__str__(text))
        return len(text)

    def flush(self) -> None:
        """Nothing waits."""


class Environ(dict[str, str]):
    """`os.environ`: empty, and the script's own; asking JAX for 64 bits through it works as it does elsewhere."""

    def __init__(self, set_x64: Callable[[bool], None]) -> None:
        super().__init__()
        self._set_x64 = set_x64

    def __setitem__(self, key: str, value: str) -> None:
        super().__setitem__(key, value)
        if key == "JAX_ENABLE_X64":
            self._set_x64(str(value).lower() in ("1", "true", "t", "yes", "y", "on"))


def builtin_names(guards: Guards, out: Output) -> dict[str, Any]:
    """What a script may name without importing it."""
    import builtins

    names = {name: getattr(builtins, name) for name in PLAIN_BUILTINS}
    names |= {n: v for n, v in vars(builtins).items() if isinstance(v, type) and issubclass(v, BaseException)}
    names |= {name: _refuser(name, reason) for name, reason in DENIED_BUILTINS.items()}
    streams = Stream(out)
    names |= {
        "getattr": guards.getattr, "setattr": guards.setattr, "hasattr": guards.hasattr, "delattr": guards.delattr,
        "vars": _one(guards.vars, "vars"), "dir": _one(guards.dir, "dir"), "print": _printer(streams),
        "type": Kind(type, call=_one(guards.type_of, "type")), "exit": _leave, "quit": _leave,
    }  # fmt: skip
    return {name: _function(value) for name, value in names.items()}


def standard_names(guards: Guards, out: Output, set_x64: Callable[[bool], None]) -> dict[str, Any]:
    """Names of the standard library that are ours, by dotted name."""
    generator, environ, stream = random.Random(), Environ(set_x64), Stream(out)  # noqa: S311 - a script's own dice
    found: dict[str, Any] = {f"random.{n}": _function(getattr(generator, n)) for n in _RANDOM}
    found |= {
        "functools.wraps": _wraps(guards), "functools.update_wrapper": _update_wrapper(guards),
        "functools.total_ordering": own_class(guards, functools.total_ordering, "total_ordering"),
        "operator.attrgetter": _attrgetter(guards), "operator.methodcaller": _methodcaller(guards),
        "dataclasses.dataclass": own_decorator(guards, dataclasses.dataclass, "dataclass"),
        "collections.namedtuple": _namedtuple(guards),
        **{f"enum.{cls.__name__}": _enumeration(cls) for cls in (Enum, IntEnum, StrEnum, Flag, IntFlag)},
        "abc.abstractmethod": _abstract(guards),
        "os.environ": environ, "os.getenv": lambda key, default=None: environ.get(key, default),
        "sys.stdout": stream, "sys.stderr": stream, "sys.exit": _leave, "sys.argv": ["script.py"],
        "sys.version": sys.version, "sys.maxsize": sys.maxsize, "sys.platform": sys.platform,
        "sys.version_info": _Version(*sys.version_info), "sys.float_info": _Floats(*sys.float_info),
        "warnings.warn": _warner(out), "warnings.filterwarnings": _nothing, "warnings.simplefilter": _nothing,
        "warnings.catch_warnings": _no_warnings,
    }  # fmt: skip
    for function in (dataclasses.fields, dataclasses.replace, _asdict(guards), _astuple(guards)):
        found[f"dataclasses.{function.__name__}"] = _own_values(guards, function)
    return found


# --- built-ins ------------------------------------------------------------------------------------------------------


def _function(value: Any) -> Any:
    """A bound method of ours as a plain function: a script may hold it, and `copy.deepcopy` must not copy its owner."""
    if not isinstance(value, types.MethodType | types.BuiltinMethodType) or value.__self__ is None:
        return value
    if isinstance(value.__self__, types.ModuleType):
        return value

    def function(*args: Any, **keywords: Any) -> Any:
        return value(*args, **keywords)

    function.__name__ = function.__qualname__ = value.__name__
    return function


def _refuser(name: str, reason: str) -> Callable[..., NoReturn]:
    def refused(*_: object, **__: object) -> NoReturn:
        raise RefusedName(fill(NOT_BUILT_IN, name=name, reason=reason))

    refused.__name__ = refused.__qualname__ = name
    return refused


def _one(function: Callable[[Any], Any], name: str) -> Callable[..., Any]:
    def one(*values: Any) -> Any:
        if len(values) != 1:
            raise RefusedUse(fill(NO_THREE) if name == "type" else fill(NOT_BUILT_IN, name=f"{name}()", reason=REACHES))
        return function(values[0])

    one.__name__ = one.__qualname__ = name
    return one


def _leave(code: Any = None) -> NoReturn:
    raise SystemExit(code)


def _printer(stream: Stream) -> Callable[..., None]:
    def print_(
        *values: Any,
        sep: str | None = " ",
        end: str | None = "\n",
        file: Any = None,
        flush: bool = False,  # noqa: ARG001
    ) -> None:
        for name, value in (("sep", sep), ("end", end)):
            if not isinstance(value, str | None):
                raise TypeError(fill(NOT_STR, name=name, kind=type(value).__name__))
        if not isinstance(file, Stream | None):
            raise RefusedUse(fill(WRONG_FILE))
        between, last = " " if sep is None else sep, "\n" if end is None else end
        stream.write(between.join(str(v) for v in values) + last)

    print_.__name__ = print_.__qualname__ = "print"
    return print_


# --- functools, operator, collections, abc --------------------------------------------------------------------------


def _update_wrapper(guards: Guards) -> Callable[..., Any]:
    def update_wrapper(wrapper: Any, wrapped: Any, *rest: Any, **keywords: Any) -> Any:
        """`functools.update_wrapper` for the script's own functions: the name, the text and the signature."""
        if rest or keywords:
            raise RefusedUse(fill(PLAIN_WRAPS))
        if isinstance(wrapper, types.FunctionType) and wrapper.__globals__ is guards.globals:
            for name in ("__name__", "__qualname__", "__doc__"):
                value = getattr(wrapped, name, None)
                if isinstance(value, str):
                    setattr(wrapper, name, value)
            if isinstance(wrapped, types.FunctionType):
                vars(wrapper).update({n: v for n, v in vars(wrapped).items() if not n.startswith("_")})
            if callable(wrapped):
                wrapper.__wrapped__ = wrapped  # type: ignore[attr-defined]  # read by inspect.signature
        return wrapper

    return update_wrapper


def _wraps(guards: Guards) -> Callable[..., Any]:
    update = _update_wrapper(guards)

    def wraps(wrapped: Any, *rest: Any, **keywords: Any) -> Callable[[Any], Any]:
        if rest or keywords:
            raise RefusedUse(fill(PLAIN_WRAPS))
        return lambda wrapper: update(wrapper, wrapped)

    return wraps


def own_function(guards: Guards, decorator: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A decorator that marks the very function it is given: for the script's own functions only."""

    def decorate(function: Any) -> Any:
        if not (isinstance(function, types.FunctionType) and function.__globals__ is guards.globals):
            raise RefusedUse(fill(OWN_FUNCTIONS, name=name))
        return decorator(function)

    decorate.__name__ = decorate.__qualname__ = name
    return decorate


def own_class(guards: Guards, decorator: Callable[[Any], Any], name: str) -> Callable[[Any], Any]:
    """A class decorator that changes what it is given: for the script's own classes only."""

    def decorate(cls: Any) -> Any:
        if not (isinstance(cls, type) and cls in guards.made):
            raise RefusedUse(fill(OWN_CLASSES, name=name))
        result = decorator(cls)
        if isinstance(result, type):
            guards.add(result)
        return result

    decorate.__name__ = decorate.__qualname__ = name
    return decorate


def own_decorator(guards: Guards, decorator: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The same for decorators that are used with and without arguments (``@dataclass``, ``@dataclass(frozen=True)``)."""

    def decorate(cls: Any = None, /, **keywords: Any) -> Any:
        apply = own_class(guards, lambda c: decorator(c, **keywords), name)
        return apply if cls is None else apply(cls)

    decorate.__name__ = decorate.__qualname__ = name
    return decorate


def _own_values(guards: Guards, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def of_own(obj: Any, /, *args: Any, **changes: Any) -> Any:
        cls = obj if isinstance(obj, type) else type(obj)
        if not dataclasses.is_dataclass(cls):
            raise TypeError(fill(NO_DATACLASS, name=function.__name__))
        if not guards.own(obj) and not hasattr(cls, "_flax_dataclass"):
            raise RefusedUse(fill(OWN_VALUES, name=function.__name__))
        return function(obj, *args, **changes)

    return of_own


def _open_dataclass(guards: Guards, obj: Any) -> bool:
    cls = type(obj)
    return dataclasses.is_dataclass(cls) and (guards.own(obj) or hasattr(cls, "_flax_dataclass"))


def _asdict(guards: Guards) -> Callable[..., Any]:
    """`dataclasses.asdict` that goes into the script's own dataclasses alone."""

    def asdict(obj: Any, *, dict_factory: Callable[[list[tuple[str, Any]]], Any] = dict) -> Any:
        return _converted(guards, obj, lambda names, values: dict_factory(list(zip(names, values, strict=True))))

    return asdict


def _astuple(guards: Guards) -> Callable[..., Any]:
    """`dataclasses.astuple`, likewise."""

    def astuple(obj: Any, *, tuple_factory: Callable[[list[Any]], Any] = tuple) -> Any:
        return _converted(guards, obj, lambda _, values: tuple_factory(values))

    return astuple


def _converted(guards: Guards, obj: Any, make: Callable[[list[str], list[Any]], Any]) -> Any:
    if _open_dataclass(guards, obj):
        names = [f.name for f in dataclasses.fields(obj)]
        return make(names, [_converted(guards, getattr(obj, n), make) for n in names])
    if isinstance(obj, tuple) and hasattr(obj, "_fields"):
        return type(obj)(*[_converted(guards, v, make) for v in obj])
    if isinstance(obj, list | tuple):
        return type(obj)(_converted(guards, v, make) for v in obj)
    if type(obj) is dict:
        return {_converted(guards, k, make): _converted(guards, v, make) for k, v in obj.items()}
    return copy.deepcopy(obj)


def _attrgetter(guards: Guards) -> Callable[..., Any]:
    def attrgetter(*names: str) -> Callable[[Any], Any]:
        def one(obj: Any, dotted: str) -> Any:
            return functools.reduce(guards.get, dotted.split("."), obj)

        return lambda obj: one(obj, names[0]) if len(names) == 1 else tuple(one(obj, n) for n in names)

    return attrgetter


def _methodcaller(guards: Guards) -> Callable[..., Any]:
    def methodcaller(name: str, /, *args: Any, **keywords: Any) -> Callable[[Any], Any]:
        return lambda obj: guards.get(obj, name)(*args, **keywords)

    return methodcaller


#: Known by its results alone: the type checker wants literals for the arguments of the real one.
_NAMEDTUPLE: Final[Callable[..., type]] = vars(collections)["namedtuple"]


def _namedtuple(guards: Guards) -> Callable[..., type]:
    """`collections.namedtuple` without `module=` (a class says with it where it comes from)."""

    def make(typename: str, field_names: Any, *, rename: bool = False, defaults: Any = None) -> type:
        cls = _NAMEDTUPLE(typename, field_names, rename=rename, defaults=defaults, module="__main__")
        guards.add(cls)
        return cls

    make.__name__ = make.__qualname__ = "namedtuple"
    return make


def _enumeration(cls: type[Enum]) -> Kind:
    """A class to build enumerations on by a class statement: called, it makes a class out of a mapping."""

    def make(*_: object, **__: object) -> NoReturn:
        raise RefusedUse(fill(NO_ENUM_CALL, name=cls.__name__))

    return Kind(cls, call=make, bases=(cls,))


def _abstract(guards: Guards) -> Callable[[Any], Any]:
    def abstractmethod(function: Any) -> Any:
        own = isinstance(function, types.FunctionType) and function.__globals__ is guards.globals
        if own:
            function.__isabstractmethod__ = True
        return function

    return abstractmethod


# --- sys, warnings --------------------------------------------------------------------------------------------------


class _Version(NamedTuple):
    """`sys.version_info`."""

    major: int
    minor: int
    micro: int
    releaselevel: str
    serial: int


class _Floats(NamedTuple):
    """`sys.float_info`."""

    max: float
    max_exp: int
    max_10_exp: int
    min: float
    min_exp: int
    min_10_exp: int
    dig: int
    mant_dig: int
    epsilon: float
    radix: int
    rounds: int


def _nothing(*_: object, **__: object) -> None:
    """Filters of warnings are the whole process's; a script has none to hide."""


def _warner(out: Output) -> Callable[..., None]:
    def warn(message: Any, category: Any = UserWarning, **_: object) -> None:
        kind = type(message) if isinstance(message, Warning) else category
        out.write(fill(WARNED, kind=getattr(kind, "__name__", "Warning"), message=message))

    return warn


@contextlib.contextmanager
def _no_warnings(*_: object, **__: object) -> Iterator[list[Any]]:
    yield []


def checked_names(names: Iterable[Any]) -> tuple[str, ...]:
    """Field names as plain text, none in double underscores: a library reads attributes by the names it is given."""
    found = tuple(exact(name) for name in names)
    for name in found:
        if is_dunder(name):
            raise RefusedAttribute(fill(NOT_BUILT_IN, name=name, reason=REACHES))
    return found
