"""The guards that a transformed script goes through for attributes, items, writes, imports, annotations and classes.

Attributes are allowed by the *type* of the object: what core/sandbox/offered.py does not list does not exist for a
script, whatever its name. Objects of classes that the script itself defined are its own: everything its own code put
there is open to it, and of what they inherit only what the library type offers.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import operator
import types
from collections.abc import Callable, Mapping
from typing import Any, Final

import jax
import numpy as np
from flax import linen, nnx

from core.base.text import fill
from core.sandbox import offered
from core.sandbox.definitions import BASES, FAMILIES, check_bases, finish, has_string, is_inner
from core.sandbox.formats import GuardedFormatter, formatting
from core.sandbox.kinds import (
    Kind,
    LeftOut,
    Namespace,
    StandIn,
    class_of,
    denied_of,
    has_name,
    kind_for,
    name_of,
    table_of,
)
from core.sandbox.names import HINTS, PLOTTING
from core.sandbox.objects import (
    DEVICE,
    UNCALLABLE,
    covered,
    exact,
    has_value,
    instance_dict,
    is_text,
    kind_of,
    safe_view,
)
from core.sandbox.refusals import RefusedAttribute, RefusedImport, RefusedUse
from core.sandbox.undo import forget
from core.sandbox.words import FIELDS, METHODS, REFUSED_ATTRIBUTE, REFUSED_NAME, REFUSED_STRING_ANNOTATION, is_dunder

NO_ATTRIBUTE = "{name} of {kind} is not available in the playground"
NO_NAME = "{module} has {name}, but not in the playground: {reason}"
NO_WRITE = "{kind} cannot be changed from a script"
NO_MODULE = "the module {module} is not here; {instead}"
WHAT_IS_HERE = "the playground has jax, flax.nnx, optax, numpy and parts of the standard library"
NO_VARS = "vars() of {kind} is not available in the playground"

MISSING_ATTRIBUTE = "{kind} has no attribute '{name}'"
MISSING_NAME = "cannot import name '{name}' from '{module}'"

OPERATORS: Final[Mapping[str, Callable[[Any, Any], Any]]] = types.MappingProxyType({
    "Add": operator.iadd, "Sub": operator.isub, "Mult": operator.imul, "Div": operator.itruediv,
    "FloorDiv": operator.ifloordiv, "Mod": operator.imod, "Pow": operator.ipow, "MatMult": operator.imatmul,
    "BitOr": operator.ior, "BitAnd": operator.iand, "BitXor": operator.ixor,
    "LShift": operator.ilshift, "RShift": operator.irshift,
})  # fmt: skip
#: Operators that plain values and arrays may be asked for by their method's name.
#: Names that are looked at each time they are read: some objects get a version of ours, some values a cover.
_COVERED: Final = frozenset("format format_map view keywords device devices type var_type".split())
_OPERATOR_METHODS: Final = METHODS - {f"__{n}__" for n in "init call post_init setitem delitem enter exit".split()}
_NAMES: Final = frozenset({"__name__", "__qualname__", "__doc__"})
#: Values whose assignment Python or JAX refuses in its own, better words.
_IMMUTABLE: Final = (
    str, bytes, int, float, complex, tuple, frozenset, range, slice, type(None), types.GeneratorType, np.generic,
)  # fmt: skip
_CONTAINERS: Final = (list, dict, set, bytearray, collections.deque)
#: Objects of libraries that are a script's to change: it made them.
_HOLDERS: Final = (nnx.Pytree, nnx.Variable, nnx.State, linen.Variable)
#: Attributes of NumPy arrays that may be set; `dtype`, `strides` and `data` would change what the memory means.
_ARRAY_SETTABLE: Final = frozenset({"shape", "flat", "real", "imag"})
_PLAIN_CLASSES: Final = frozenset({
    bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, range, slice, type(None), object,
})  # fmt: skip

_SELF: Final[Any] = super.__dict__["__self__"]
_THIS: Final[Any] = super.__dict__["__thisclass__"]


class Guards:
    """One job's guards.

    Attributes:
        made: the classes that the script defined; their instances are its own.
        known: library classes that the facade offers by name (`type(x)` may give them).
        requests: settings that the script asked for (``jax_enable_x64``) and that were applied to the job.
    """

    def __init__(self) -> None:
        self.made: set[type] = set()
        self.known: frozenset[type] = frozenset()
        self.requests: dict[str, Any] = {}
        self.modules: Mapping[str, Namespace] = {}
        self.globals: dict[str, Any] = {}
        self._mine: dict[int, Any] = {}
        self._owned: dict[type, bool] = {}
        self._plain: dict[type, frozenset[str]] = {}
        self._settables: dict[tuple[type, str], bool] = {}
        self._closers: list[Callable[[], None]] = []

    # --- the job's end ----------------------------------------------------------------------------------------------

    def on_close(self, undo: Callable[[], None]) -> None:
        """Something to be undone when the job is over."""
        self._closers.append(undo)

    def close(self) -> None:
        """Undo settings and registrations, last first, and let go of what the script made. Its objects are dead then."""
        while self._closers:
            with contextlib.suppress(Exception):
                self._closers.pop()()
        self._mine.clear()
        self.globals.clear()
        forget(self.made)
        self.made.clear()
        for cache in (self._owned, self._plain, self._settables):
            cache.clear()

    def keep(self, obj: Any) -> Any:
        """Remember an object that this script made through the facade, so that it may configure it."""
        self._mine[id(obj)] = obj
        return obj

    def add(self, cls: type) -> None:
        """Take a class as the script's own."""
        self.made.add(cls)
        self._owned.clear()
        self._plain.clear()

    def mine(self, obj: Any) -> bool:
        """Whether `keep` was told of this very object."""
        return id(obj) in self._mine

    # --- reading ----------------------------------------------------------------------------------------------------

    def getattr(self, obj: Any, name: str, *default: Any) -> Any:
        """`obj.name`, if the object offers it to scripts.

        Raises:
            RefusedAttribute: it is there and not offered.
            AttributeError: it is not there, in Python's words.
        """
        try:
            return self.get(obj, name)
        except AttributeError:
            if default:
                return default[0]
            raise

    def get(self, obj: Any, name: str) -> Any:
        """`getattr` without a default."""
        cls = type(obj)
        if cls is Namespace:
            return self._member(obj, exact(name))
        if cls is LeftOut and not exact(name).startswith("_"):
            return obj
        # Nearly every read is one of these two: an attribute of the script's own object, a method of an array.
        public = type(name) is str and not name.startswith("_")
        if public and (name in self._plain.get(cls, ()) or (self._owned.get(cls) and name in instance_dict(obj))):
            return getattr(obj, name)
        return self._get(obj, exact(name))

    def _get(self, obj: Any, name: str) -> Any:
        if not self.readable(obj, name):
            raise self._missing(obj, name)
        if name == "__class__":
            return self.type_of(obj)
        if type(obj) is Kind:
            return getattr(class_of(obj), name)
        special = self._special(obj, name)
        if special is not None:
            return special
        cls = type(obj)
        if cls not in self._plain and not isinstance(obj, type | super) and not self.own(obj):
            self._plain[cls] = offered.offered(cls) - _COVERED
        return covered(getattr(obj, name))

    def _member(self, namespace: Namespace, name: str) -> Any:
        table = table_of(namespace)
        if name in table:
            return table[name]
        reason = denied_of(namespace).get(name)
        if reason is not None:
            raise RefusedAttribute(fill(NO_NAME, module=name_of(namespace), name=name, reason=reason))
        if is_dunder(name) or has_name(namespace, name):
            raise RefusedAttribute(fill(NO_ATTRIBUTE, name=name, kind=name_of(namespace)))
        raise AttributeError(fill(MISSING_ATTRIBUTE, kind=f"module '{name_of(namespace)}'", name=name))

    def _missing(self, obj: Any, name: str) -> AttributeError:
        if (is_dunder(name) and name not in METHODS) or self._exists(obj, name):
            return RefusedAttribute(fill(NO_ATTRIBUTE, name=name, kind=kind_of(obj)))
        kind = f"type object '{obj.__name__}'" if isinstance(obj, type) else f"'{type(obj).__name__}' object"
        return AttributeError(fill(MISSING_ATTRIBUTE, kind=kind, name=name))

    def _exists(self, obj: Any, name: str) -> bool:
        """Whether Python has the attribute, as far as that can be said without running anybody's code."""
        classes = [*type(obj).__mro__, *(obj.__mro__ if isinstance(obj, type) else ())]
        return name in instance_dict(obj) or any(name in vars(c) for c in classes)

    def readable(self, obj: Any, name: str) -> bool:
        """Whether a script may read this attribute of this object."""
        cls = type(obj)
        if cls is super:
            return self._inherited(obj, name)
        if is_dunder(name):
            return self._dunder(obj, name)
        if self.own(obj):
            return self._own_readable(obj, obj if isinstance(obj, type) else cls, name)
        # Most reads are of arrays, whose type says everything.
        return (not isinstance(obj, type) and name in offered.offered(cls)) or name in self.offered(obj)

    def offered(self, obj: Any) -> frozenset[str]:
        """All attributes that a library's object offers (a script's own objects: what they inherit from libraries)."""
        if isinstance(obj, StandIn):
            return type(obj).OFFERS
        if type(obj) is Kind or isinstance(obj, types.ModuleType):
            return frozenset()
        if isinstance(obj, type):
            return offered.class_attributes(obj)
        names = offered.offered(type(obj)) | offered.instance_attributes(obj)
        if self.mine(obj):
            names |= frozenset({"defjvp", "defjvps", "defvjp", "def_vmap"})
        if isinstance(obj, types.FunctionType) and obj.__globals__ is self.globals:
            names |= frozenset(n for n in vars(obj) if not n.startswith("_"))
        return names

    def own(self, obj: Any) -> bool:
        """Whether the object is of a class that the script defined, or is such a class."""
        cls = obj if isinstance(obj, type) else type(obj)
        found = self._owned.get(cls)
        if found is None:
            found = self._owned[cls] = any(c in self.made for c in cls.__mro__)
        return found

    def _dunder(self, obj: Any, name: str) -> bool:
        if name in _NAMES:
            return type(obj) is Kind or is_text(obj, name)
        if name == "__class__":
            return True
        if name not in METHODS:
            return False
        if isinstance(obj, type):
            return obj in self.made or issubclass(obj, FAMILIES) or obj in BASES
        plain = isinstance(obj, (*_IMMUTABLE, jax.Array, jax.core.Tracer, np.ndarray, np.generic, list, dict, set))
        return self.own(obj) or (plain and name in _OPERATOR_METHODS)

    def _own_readable(self, obj: Any, cls: type, name: str) -> bool:
        if name.startswith("_") and "__" in name[1:]:
            return self._private(cls, name)
        if name in instance_dict(obj):
            return True
        for base in cls.__mro__:
            if name in vars(base):
                return base in self.made or name in self.offered(obj)
        return not isinstance(obj, type) and name in self.offered(obj)

    def _private(self, cls: type, name: str) -> bool:
        """A private name of one of the script's own classes, as the compiler spells it."""
        return any(name.startswith(f"_{c.__name__.lstrip('_')}__") for c in cls.__mro__ if c in self.made)

    def _inherited(self, obj: Any, name: str) -> bool:
        """`super().name`: a method in double underscores that a class may define, or what the next class offers."""
        if is_dunder(name):
            return name in METHODS
        instance, this = _SELF.__get__(obj), _THIS.__get__(obj)
        cls = instance if isinstance(instance, type) else type(instance)
        mro = cls.__mro__
        for base in mro[mro.index(this) + 1 :]:
            if name in vars(base):
                return base in self.made or name in self.offered(instance)
        return False

    def _special(self, obj: Any, name: str) -> Any:
        """Attributes that a script gets in a version of ours; None when the real one is right."""
        obj = _SELF.__get__(obj) if type(obj) is super else obj
        if name in ("format", "format_map"):
            cls = obj if isinstance(obj, type) else type(obj)
            if issubclass(cls, str) and not any(name in vars(c) for c in cls.__mro__ if c in self.made):
                return self._formatter(obj, name)
        elif name == "view" and isinstance(obj, np.ndarray | np.generic):
            return safe_view(obj)
        elif name == "keywords" and isinstance(obj, functools.partial):
            return dict(obj.keywords)  # a library's partial is shared
        elif name == "device" and isinstance(obj, jax.Array | jax.core.Tracer):
            return DEVICE
        elif name == "devices" and isinstance(obj, jax.Array | jax.core.Tracer):
            return lambda: {DEVICE}
        return None

    def names(self, obj: Any) -> frozenset[str]:
        """Every attribute of an object that a script may read (for `dir`, and for the walk of the tests)."""
        if type(obj) is Namespace:
            return frozenset(table_of(obj))
        found = set(self.offered(obj)) | set(_NAMES)
        if self.own(obj):
            classes = obj.__mro__ if isinstance(obj, type) else type(obj).__mro__
            found |= {n for c in classes for n in vars(c)} | set(instance_dict(obj))
        return frozenset(n for n in found if self.readable(obj, n) and has_value(obj, n))

    def getitem(self, obj: Any, key: Any) -> Any:
        """`obj[key]`."""
        return obj[key]

    # --- writing ----------------------------------------------------------------------------------------------------

    def write(self, obj: Any, name: str | None = None) -> Any:
        """The object itself when a script may set that attribute (without a name: items), else a RefusedAttribute.

        What Python or JAX refuses in its own words (a tuple's item, an array's) is let through to them.
        """
        if self.writable(obj, name):
            return obj
        raise RefusedAttribute(fill(NO_WRITE, kind=kind_of(obj)))

    def writable(self, obj: Any, name: str | None = None) -> bool:
        """Whether a script may set the attribute `name` of the object, or its items."""
        if type(obj) is LeftOut:
            return True
        if isinstance(obj, type):
            return name is not None and obj in self.made and self._settable(obj, name)
        if self.own(obj):
            return name is None or self._settable(type(obj), name)
        if isinstance(obj, _IMMUTABLE):
            return True
        if name is None:
            holders = (jax.Array, jax.core.Tracer, np.ndarray, nnx.Pytree, nnx.Variable, nnx.State, jax.Ref)
            return isinstance(obj, (*_CONTAINERS, *holders)) or (isinstance(obj, StandIn) and type(obj).ITEMS)
        if isinstance(obj, jax.Array | jax.core.Tracer):
            return not self._exists(obj, name)
        if isinstance(obj, np.ndarray):
            return name in _ARRAY_SETTABLE
        if isinstance(obj, types.FunctionType):
            return obj.__globals__ is self.globals and not name.startswith("_")
        return isinstance(obj, (*_HOLDERS, types.SimpleNamespace)) and not name.startswith("_")

    def _settable(self, cls: type, name: str) -> bool:
        found = self._settables.get((cls, name))
        if found is None:
            found = self._settables[cls, name] = self._may_set(cls, name)
        return found

    def _may_set(self, cls: type, name: str) -> bool:
        if is_dunder(name) or name == FIELDS or (issubclass(cls, str) and name in vars(str)):
            return False
        if is_inner(cls, name, self.made):
            return False
        return not (name.startswith("_") and "__" in name[1:]) or self._private(cls, name)

    def inplace(self, name: str, left: Any, right: Any) -> Any:
        """`left op= right`: the new value."""
        return OPERATORS[name](left, right)

    # --- calls and definitions --------------------------------------------------------------------------------------

    def keywords(self, mapping: Any) -> dict[str, Any]:
        """`**mapping` of a call, as a dict of its own: no name that Python gives a meaning to.

        Libraries set what they get by keyword as attributes, and NumPy believes an ``__array_interface__``.
        """
        if not isinstance(mapping, Mapping) and not hasattr(type(mapping), "keys"):
            raise TypeError(f"argument after ** must be a mapping, not {type(mapping).__name__}")
        out = {exact(k) if isinstance(k, str) else k: v for k, v in {**mapping}.items()}
        for name in out:
            if isinstance(name, str) and is_dunder(name):
                raise RefusedUse(fill(REFUSED_NAME, name=name))
        return out

    def annotation(self, value: Any) -> Any:
        """An annotation, when it carries no string that a library would evaluate."""
        if has_string(value):
            raise RefusedUse(fill(REFUSED_STRING_ANNOTATION))
        return value

    def later(self, evaluate: Callable[[], Any]) -> Any:
        """An annotation under ``from __future__ import annotations``: what it means now, or `Any`."""
        try:
            return self.annotation(evaluate())
        except Exception:  # noqa: BLE001 - what it meant is unknown, whatever went wrong
            return Any

    def build_class(self, body: Any, name: str, *bases: Any, **keywords: Any) -> type:
        """`class name(*bases)`: made, and remembered as the script's own."""
        check_bases(bases, body, self.made)
        cls: type = __build_class__(body, name, *bases, **keywords)
        finish(cls)
        self.add(cls)
        return cls

    # --- imports ----------------------------------------------------------------------------------------------------

    def import_module(self, name: str, whole: bool) -> Any:
        """``import name`` (the top package), or ``import name as …`` (`whole`: the module itself)."""
        if name.partition(".")[0] in PLOTTING:
            return LeftOut()
        found = self._module(name)
        return found if whole else self._module(name.partition(".")[0])

    def import_from(self, module: str, name: str) -> Any:
        """``from module import name``."""
        if module.partition(".")[0] in PLOTTING:
            return LeftOut()
        namespace = self._module(module)
        try:
            return self.get(namespace, name)
        except RefusedAttribute as refused:
            raise RefusedImport(refused.text, f"{module}.{name}") from None
        except AttributeError:
            if f"{module}.{name}" in self.modules:
                return self.modules[f"{module}.{name}"]
            raise ImportError(fill(MISSING_NAME, name=name, module=module)) from None

    def _module(self, name: str) -> Namespace:
        if name in self.modules:
            return self.modules[name]
        parent = name
        while parent:
            parent, _, last = parent.rpartition(".")
            reason = denied_of(self.modules[parent]).get(last) if parent in self.modules else None
            if reason is not None:
                raise RefusedImport(fill(NO_NAME, module=parent, name=last, reason=reason), name)
        hint = HINTS.get(name, HINTS.get(name.partition(".")[0]))
        raise RefusedImport(
            fill(NO_MODULE, module=name, instead=hint if hint is not None else fill(WHAT_IS_HERE)), name
        )

    # --- the built-ins that look into objects -----------------------------------------------------------------------

    def hasattr(self, obj: Any, name: str) -> bool:
        """`hasattr`."""
        try:
            self.get(obj, name)
        except AttributeError:
            return False
        return True

    def setattr(self, obj: Any, name: str, value: Any) -> None:
        """`setattr`."""
        name = self._check_dynamic(name)
        setattr(self.write(obj, name), name, value)

    def delattr(self, obj: Any, name: str) -> None:
        """`delattr`."""
        name = self._check_dynamic(name)
        delattr(self.write(obj, name), name)

    def _check_dynamic(self, name: Any) -> str:
        text = exact(name)
        if is_dunder(text):
            raise RefusedAttribute(fill(REFUSED_ATTRIBUTE, name=text))
        return text

    def type_of(self, obj: Any) -> Any:
        """`type(obj)`: a class that the script knows, or a kind that can be compared and asked."""
        cls = type(obj)
        known = cls in _PLAIN_CLASSES or cls in self.made or cls in self.known or issubclass(cls, BaseException)
        return cls if known and not issubclass(cls, UNCALLABLE) else kind_for(cls)

    def vars(self, obj: Any) -> dict[str, Any]:
        """`vars(obj)` of the script's own objects and of modules of layers: a copy."""
        if self.own(obj) or isinstance(obj, nnx.Pytree | types.SimpleNamespace):
            return {n: v for n, v in instance_dict(obj).items() if self.readable(obj, n)}
        raise RefusedUse(fill(NO_VARS, kind=kind_of(obj)))

    def dir(self, obj: Any) -> list[str]:
        """`dir(obj)`: what is offered."""
        return sorted(self.names(obj))

    def _formatter(self, text: Any, name: str) -> Callable[..., str]:
        return formatting(text, name, GuardedFormatter(self.get, self.getitem))


__all__ = ["OPERATORS", "Guards"]
