"""Uses of keys that a script makes itself, each known by its key object: what draws from it, what splits it.

`fold_in` is no use: it is made for taking many keys from one.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

import jax

from core.contract.rngs import is_key
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called
from core.contract.source import FUNCTIONS
from core.contract.subject import MISSING

RANDOM = "jax.random."
SPLIT = "jax.random.split"
#: Functions of `jax.random` that take a key and do not use it up.
FREE = frozenset(
    RANDOM + n for n in "fold_in key PRNGKey key_data key_impl wrap_key_data clone default_prng_impl".split()
)
#: Functions that are called with one key for two arrays on purpose: to reorder both alike.
UNISON = frozenset(RANDOM + n for n in "permutation choice shuffle".split())
LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.AsyncFor)


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """One use of a key.

    Attributes:
        call: the call that used it, or that of a function of the script in which it was used.
        key: the key's expression in that call.
        ident: what tells this key from others.
        name: the public name of what used it; of a function of the script None.
        run: number of the run of the function that the call stands in.
    """

    call: Called
    key: ast.expr
    ident: tuple[Any, ...]
    name: str | None
    run: int

    @property
    def splits(self) -> bool:
        """Whether it only makes new keys."""
        return self.name == SPLIT

    @property
    def drawn(self) -> tuple[Any, ...]:
        """What is drawn: the function, and the type of the result. Two uses with the same draw the same numbers."""
        result = self.call.result
        return self.name, getattr(result, "shape", None), str(getattr(result, "dtype", None))


def uses_of(facts: ScriptFacts) -> dict[tuple[Any, ...], list[Use]]:
    """Every key that is used more than once in one run of one function, with those uses in order."""
    groups: dict[tuple[Any, ...], list[Use]] = {}
    ends = _ends(facts)
    for call in facts.calls_of(RANDOM):
        key = _key_of(call)
        if call.name in FREE or key is None or call.result is MISSING:
            continue
        node, value = key
        for where, given, name in _places(facts, call, node, value, ends):
            scope = facts.source.scope(where.node)
            run = sum(1 for order in ends.get(scope, ()) if order < where.order)
            ident = (scope, run, *_identity(facts, where, given, value))
            groups.setdefault(ident, []).append(Use(where, given, ident, name, run))
    return {ident: distinct for ident, uses in groups.items() if len(distinct := _distinct(uses)) > 1}


def _distinct(uses: list[Use]) -> list[Use]:
    """Uses at different places; of one place those that a Python loop repeats outside of a trace."""
    kept: list[Use] = []
    for use in uses:
        same = [k for k in kept if k.call.node is use.call.node]
        if not same or (not use.call.traced and use.call not in [k.call for k in same]):
            kept.append(use)
    return kept


def looped(facts: ScriptFacts, node: ast.AST) -> ast.AST | None:
    """The Python loop or comprehension around a node, inside its function."""
    here = facts.source.parents.get(node)
    while here is not None and not isinstance(here, (*FUNCTIONS, *LOOPS)):
        here = facts.source.parents.get(here)
    return here if isinstance(here, LOOPS) else None


def _key_of(call: Called) -> tuple[ast.expr, Any] | None:
    value, node = call.argument(0, "key", MISSING), call.argument_node(0, "key")
    return (node, value) if node is not None and value is not MISSING and is_key(value) else None


def _identity(facts: ScriptFacts, call: Called, node: ast.expr, value: Any) -> tuple[Any, ...]:
    """The very object; of an item of an array of keys, the array and the index (each access makes a new object)."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        before = [seen for seen in facts.seen(node.value) if seen.order < call.order]
        if before:
            return id(before[-1].value), node.slice.value
    return (id(value),)


def _ends(facts: ScriptFacts) -> dict[ast.AST, list[int]]:
    """By function of the script, when its runs ended, as far as the script called it itself."""
    out: dict[ast.AST, list[int]] = {}
    for call in facts.record.calls:
        function = facts.source.function(call.func) if callable(call.func) else None
        if function is not None:
            out.setdefault(function, []).append(call.order)
    return out


def _places(
    facts: ScriptFacts, call: Called, node: ast.expr, value: Any, ends: dict[ast.AST, list[int]]
) -> list[tuple[Called, ast.expr, str | None]]:
    """The use itself, and the calls of the script's functions that brought a traced key there."""
    out: list[tuple[Called, ast.expr, str | None]] = [(call, node, call.name)]
    if not isinstance(value, jax.core.Tracer):
        return out
    here = call
    while True:
        function = facts.source.scope(here.node)
        order = min((o for o in ends.get(function, ()) if o > here.order), default=None)
        caller = next((c for c in facts.record.calls if c.order == order), None)
        if caller is None or caller.scan != call.scan:
            return out
        given = _given(caller, value)
        if given is None:
            return out
        out.append((caller, given, None))
        here = caller


def _given(call: Called, value: Any) -> ast.expr | None:
    """The argument that is this very key."""
    for node, one in zip(call.node.args, call.args, strict=False):
        if one is value:
            return node
    return next((k.value for k in call.node.keywords if k.arg and call.kwargs.get(k.arg) is value), None)
