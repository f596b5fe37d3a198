"""Calls of a script that ask JAX for 64 bits by name and get 32: ``jnp.zeros(3, dtype=jnp.float64)``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called

#: Each 64-bit dtype and what JAX gives instead of it.
NARROW = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}
#: Below these a dtype argument is a request to JAX; a method is recognised by the array it is of.
ASKED_OF = ("jax.numpy.", "jax.random.", "jax.lax.")
ASTYPE = ".astype"
#: Modules whose names of dtypes are explicit.
MODULES = ("numpy", "jax.numpy")
TYPES = tuple((name, kind) for name in NARROW for kind in (getattr(np, name), getattr(jnp, name)))


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """One request: the argument, what it asks for, what came, and the call's name as it is written."""

    node: ast.expr
    wide: str
    got: str
    function: str


def asked(facts: ScriptFacts) -> list[Asked]:
    """The requests that were not met, one for each place. That 32 bits came proves that 64-bit mode was off then."""
    found: dict[ast.expr, Asked] = {}
    for call in facts.record.calls:
        if not _of_jax(call) or not isinstance(call.result, jax.Array | jax.ShapeDtypeStruct):
            continue
        got = str(call.result.dtype)
        for node, value in _arguments(call):
            wide = _explicit(facts, node, value)
            if wide is not None and NARROW[wide] == got:
                found.setdefault(node, Asked(node, wide, got, facts.source.text_of(call.node.func)))
    return list(found.values())


def _of_jax(call: Called) -> bool:
    if call.name is None:
        return False
    return call.name.startswith(ASKED_OF) or (call.name.endswith(ASTYPE) and isinstance(call.receiver, jax.Array))


def _arguments(call: Called) -> Iterator[tuple[ast.expr, Any]]:
    """Each argument's expression with its value, as far as they are written one by one."""
    if not any(isinstance(a, ast.Starred) for a in call.node.args):
        yield from zip(call.node.args, call.args, strict=False)
    yield from ((k.value, call.kwargs.get(k.arg)) for k in call.node.keywords if k.arg is not None)


def _explicit(facts: ScriptFacts, node: ast.expr, value: Any) -> str | None:
    """The 64-bit dtype that an argument names; None for Python's `float`, and for a dtype taken from an array."""
    named = next((name for name, kind in TYPES if value is kind), None)
    return named if named is not None else _written(facts, facts.source.resolve(node))


def _written(facts: ScriptFacts, node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) and node.value in NARROW else None
    if isinstance(node, ast.Call):
        made = facts.source.dotted(node.func) in {f"{m}.dtype" for m in MODULES}
        return _written(facts, facts.source.resolve(node.args[0])) if made and len(node.args) == 1 else None
    module, _, name = (facts.source.dotted(node) or "").rpartition(".")
    return name if module in MODULES and name in NARROW else None
