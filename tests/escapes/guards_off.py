"""Switches single guards off, for the controls: an attempt that one guard stops must succeed without it."""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import types
from typing import Any

import jax
import pytest
from flax import nnx

from core.sandbox import definitions, facade, guards, names, own_jax, policy
from core.sandbox.guards import Guards
from core.sandbox.harden import HARDENED, harden
from core.sandbox.kinds import Namespace, table_of
from core.sandbox.policy import Policy
from core.sandbox.words import CLASS_KEYWORDS


def switch_off(guard: str, patch: pytest.MonkeyPatch) -> None:
    """One guard, or two walls that stand one behind the other (joined by " + ")."""
    for one in guard.split(" + "):
        kind, _, name = one.partition(":")
        if kind == "real":
            _offer(name, _real(name), patch)
        elif kind == "builtin":
            _offer_builtin(name, patch)
        else:
            OFF[one](patch)


def _attributes(patch: pytest.MonkeyPatch) -> None:
    def get(self: Guards, obj: Any, name: str) -> Any:
        if type(obj) is Namespace and name in table_of(obj):
            return table_of(obj)[name]
        return getattr(obj, name)

    patch.setattr(Policy, "check_attribute", lambda *a, **k: None)
    patch.setattr(Guards, "get", get)


def _writes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Policy, "check_attribute", lambda *a, **k: None)
    patch.setattr(Guards, "writable", lambda *a: True)
    patch.setattr(Guards, "_check_dynamic", lambda self, name: name)
    # What is set on a library's class is put back after the test.
    for name in ("initialize_carry",):
        patch.setattr(nnx.LSTMCell, name, getattr(nnx.LSTMCell, name))


def _names(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Policy, "check_name", lambda *a, **k: None)


def _annotations(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(policy, "evaluated", lambda node: iter(()))
    patch.setattr(Guards, "annotation", lambda self, value: value)


def _patterns(patch: pytest.MonkeyPatch) -> None:
    for name in ("visit_MatchClass", "visit_MatchValue", "visit_MatchMapping"):
        patch.setattr(Policy, name, lambda self, node: node)


def _keywords(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Policy, "check_keyword", lambda *a: None)
    patch.setattr(Guards, "keywords", lambda self, mapping: mapping)


def _formats(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Guards, "_formatter", lambda self, text, name: getattr(text, name))


def _imports(patch: pytest.MonkeyPatch) -> None:
    def module(self: Guards, name: str) -> Namespace:
        if name in self.modules:
            return self.modules[name]
        return Namespace(name, vars(importlib.import_module(name)))

    patch.setattr(Guards, "_module", module)


def _classes(patch: pytest.MonkeyPatch) -> None:
    def build(self: Guards, body: Any, name: str, *bases: Any, **keywords: Any) -> type:
        cls: type = builtins.__build_class__(body, name, *bases, **keywords)
        self.add(cls)
        return cls

    patch.setattr(Guards, "build_class", build)


def _class_keywords(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(policy, "CLASS_KEYWORDS", CLASS_KEYWORDS | {"metaclass"})
    patch.setattr(Guards, "build_class", lambda self, *a, **k: builtins.__build_class__(*a, **k))


def _nodes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Policy, "visit_AsyncFunctionDef", ast.NodeTransformer.generic_visit)


def _harden(patch: pytest.MonkeyPatch) -> None:
    harden()
    for cls, name, _ in HARDENED:
        patch.setattr(cls, name, vars(cls)[name].__wrapped__)


def _modules(patch: pytest.MonkeyPatch) -> None:
    """Inner modules offered like any other name."""
    real = facade.library_tables()

    def tables() -> Any:
        out = {name: (dict(table), dict(denied)) for name, (table, denied) in real.items()}
        module = importlib.import_module("flax.nnx")
        out["flax.nnx"][0].update({n: v for n, v in vars(module).items() if isinstance(v, types.ModuleType)})
        return out

    patch.setattr(facade, "library_tables", tables)


def _settings(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(own_jax, "SETTINGS", own_jax.SETTINGS | {"jax_compilation_cache_dir"})


def _mine(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(jax.nn.relu, "jvp", jax.nn.relu.jvp)
    patch.setattr(Guards, "mine", lambda self, obj: True)


def _texts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(definitions, "_check_text", lambda cls: None)
    patch.setattr(guards, "exact", lambda name: name)
    patch.setattr(guards, "is_dunder", lambda name: name.startswith("__") and name.endswith("__"))


def _fields(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(policy, "FIELDS", "")


def _inner(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(definitions, "is_inner", lambda *a: False)
    patch.setattr(guards, "is_inner", lambda *a: False)


def _class_names(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(policy, "RESERVED_CLASSES", frozenset())


OFF = {
    "attributes": _attributes,
    "writes": _writes,
    "names": _names,
    "annotations": _annotations,
    "patterns": _patterns,
    "keywords": _keywords,
    "format": _formats,
    "imports": _imports,
    "classes": _classes,
    "class keywords": _class_keywords,
    "nodes": _nodes,
    "harden": _harden,
    "modules": _modules,
    "settings": _settings,
    "texts": _texts,
    "fields": _fields,
    "inner": _inner,
    "class names": _class_names,
    "mine": _mine,
    "tracebacks": lambda patch: patch.setattr(definitions, "without_traceback", lambda leave: leave),
}


def _real(dotted: str) -> Any:
    module, _, name = dotted.rpartition(".")
    source = next((s.source for s in names.SPACES if s.name == module), module)
    return getattr(importlib.import_module(source), name)


def _offer(dotted: str, value: Any, patch: pytest.MonkeyPatch) -> None:
    module, _, name = dotted.rpartition(".")
    real = facade.job_tables

    @functools.wraps(real)
    def tables(*args: Any) -> Any:
        out = real(*args)
        out[module][name] = value
        return out

    patch.setattr(facade, "job_tables", tables)


def _offer_builtin(name: str, patch: pytest.MonkeyPatch) -> None:
    real = facade.builtin_names

    @functools.wraps(real)
    def offered(*args: Any) -> Any:
        return real(*args) | {name: getattr(builtins, name)}

    patch.setattr(facade, "builtin_names", offered)


__all__ = ["OFF", "switch_off"]
