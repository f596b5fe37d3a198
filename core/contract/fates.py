"""What becomes of a value in a script: printed, looked at, handed to a layer, returned, given to a cell again.

The way is followed upwards in the tree, from the expression that reads the value to the statement or call that takes
it. Nothing is run; what a call is, the record says.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from typing import Any

import jax
from flax import nnx

from core.contract.record import CELLS
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called
from core.contract.source import FUNCTIONS, Function, code_of, parameters


class Fate(enum.Enum):
    """Where a value ends up."""

    #: Printed, logged, asserted, asked for its shape, or thrown away.
    SHOWN = enum.auto()
    #: Handed to a cell as its carry, or put together with its other half.
    CARRY = enum.auto()
    #: Goes through weights: a layer, a matrix product.
    LAYER = enum.auto()
    #: Returned by a function of the script.
    RETURNED = enum.auto()
    #: The step's y.
    OUTPUT = enum.auto()
    #: Bound to a name.
    NAMED = enum.auto()
    #: Handed to a function of the script, where it has another name.
    PASSED = enum.auto()
    #: Anything else that computes with it.
    USED = enum.auto()


META = frozenset({"shape", "dtype", "ndim", "size", "nbytes", "sharding", "weak_type", "aval", "itemsize"})
#: Calls that show a value, or keep it to be shown.
SHOWS = frozenset(
    {"builtins.print", "jax.debug.print", "builtins.type", "builtins.len", "builtins.isinstance", "builtins.repr",
     "jax.numpy.shape", "jax.numpy.ndim", "jax.typeof", "list.append", "builtins.str", "builtins.id",
     "flax.nnx.display", "numpy.testing.assert_allclose", "jax.debug.visualize_array_sharding"}
)  # fmt: skip
#: Products with weights.
PRODUCTS = frozenset(
    f"jax.numpy.{n}" for n in ("dot", "matmul", "einsum", "tensordot", "vdot", "inner", "vecmat", "matvec")
) | frozenset({"jax.lax.dot", "jax.lax.dot_general", "Array.dot"})


def fate_of(facts: ScriptFacts, node: ast.expr, partner: Any = None) -> Fate:
    """What becomes of the value that `node` reads.

    Args:
        facts: of the script.
        node: the expression.
        partner: ``partner(expression) -> bool``: whether an expression holds the other half of the pair, so that a
            display or call with both keeps the pair.
    """
    source = facts.source
    here: ast.AST = node
    while True:
        parent = source.parents.get(here)
        if isinstance(parent, ast.Attribute):
            if parent.attr in META:
                return Fate.SHOWN
        elif isinstance(parent, ast.keyword):
            pass
        elif isinstance(parent, ast.Call):
            fate = None if here is parent.func else _in_call(facts, parent, here, partner)
            if fate is not None:
                return fate
        elif isinstance(parent, ast.Tuple | ast.List | ast.Set | ast.Dict):
            fate = _in_display(facts, parent, here, partner)
            if fate is not None:
                return fate
        elif isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.MatMult):
            return Fate.LAYER
        elif isinstance(parent, ast.Subscript):
            if here is parent.slice:
                return Fate.USED
        elif isinstance(parent, ast.FormattedValue | ast.JoinedStr | ast.Assert | ast.Expr):
            return Fate.SHOWN
        elif isinstance(parent, ast.Return):
            return _returned(facts, parent, parent.value, here)
        elif isinstance(parent, ast.Lambda):
            return _returned(facts, parent, parent.body, here)
        elif isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr):
            return Fate.NAMED
        elif isinstance(parent, ast.stmt) or parent is None:
            return Fate.USED
        here = parent


def _in_call(facts: ScriptFacts, call: ast.Call, here: ast.AST, partner: Any) -> Fate | None:
    """The fate of an argument; None when the result stands for it and is followed on."""
    made = facts.calls_at(call)
    name = next((c.name for c in made if c.name is not None), None) or facts.source.dotted(call.func)
    func = next((c.func for c in made if c.func is not None), None)
    if isinstance(func, CELLS):
        return Fate.CARRY if here in call.args[:1] or _keyword(call, here) == "carry" else Fate.LAYER
    if isinstance(func, nnx.RNN | nnx.Bidirectional):
        return Fate.CARRY if _keyword(call, here) == "initial_carry" else Fate.LAYER
    if name in SHOWS:
        return Fate.SHOWN
    if partner is not None and any(
        partner(a) for a in (*call.args, *(k.value for k in call.keywords)) if a is not here
    ):
        return Fate.CARRY
    if name == "jax.lax.scan":
        return Fate.CARRY if here in call.args[1:2] or _keyword(call, here) == "init" else Fate.USED
    if name in PRODUCTS:
        return Fate.LAYER
    if function_of(facts, func) is not None:
        return Fate.PASSED
    if isinstance(func, nnx.Module):
        return Fate.LAYER
    return None


def _keyword(call: ast.Call, here: ast.AST) -> str | None:
    return next((k.arg for k in call.keywords if here in (k, k.value)), None)


def _in_display(facts: ScriptFacts, display: ast.expr, here: ast.AST, partner: Any) -> Fate | None:
    """The fate of an element; None when the display stands for it."""
    around = facts.source.parents.get(display)
    if isinstance(display, ast.Tuple) and isinstance(around, ast.Return | ast.Lambda) and len(display.elts) == 2:
        function = _function(facts, around)
        if function is not None and function in facts.steps:
            return Fate.CARRY if here is display.elts[0] else Fate.OUTPUT
    elements = display.values if isinstance(display, ast.Dict) else getattr(display, "elts", [])
    if partner is not None and any(partner(e) for e in elements if e is not here):
        return Fate.CARRY
    return None


def _function(facts: ScriptFacts, node: ast.AST) -> Function | None:
    if isinstance(node, ast.Lambda):
        return node
    scope = facts.source.scope(node)
    return scope if isinstance(scope, FUNCTIONS) else None


def _returned(facts: ScriptFacts, around: ast.AST, value: ast.AST | None, here: ast.AST) -> Fate:
    function = _function(facts, around)
    if function is not None and function in facts.steps and isinstance(value, ast.Tuple) and len(value.elts) == 2:
        return Fate.CARRY if here is value.elts[0] else Fate.OUTPUT
    return Fate.RETURNED


def given_as(facts: ScriptFacts, name: ast.Name) -> Iterator[tuple[Called, ast.expr]]:
    """For a name that is a parameter: the calls of the function in the script, each with the argument it got."""
    for function in facts.source.enclosing(name):
        for i, parameter in enumerate(function_parameters(function)):
            if parameter == name.id:
                yield from _arguments(facts, function, i, parameter)
                return


def function_parameters(function: Function) -> list[str]:
    """Names of the positional parameters and then of the keyword ones."""
    given = function.args
    return [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def _arguments(facts: ScriptFacts, function: Function, index: int, name: str) -> Iterator[tuple[Called, ast.expr]]:
    for call in facts.record.calls:
        if function_of(facts, call.func) is function:
            shift = 1 if bound_first(call, function) else 0
            node = call.argument_node(index - shift, name) if index >= shift else None
            if node is not None:
                yield call, node


def bound_first(call: Called, function: Function) -> bool:
    """Whether the first parameter is the object itself: a method, or the call of an instance."""
    first = next((a.arg for a in parameters(function)), None)
    return first == "self" and not (call.node.args and isinstance(call.func, type))


class _Functions:
    """Definitions by code object: looking one up walks the whole tree."""

    def __init__(self, facts: ScriptFacts) -> None:
        self._source = facts.source
        self._known: dict[Any, Function | None] = {}

    def of(self, func: Any) -> Function | None:
        code = code_of(func) if callable(func) and not isinstance(func, type) else None
        if code is None or code.co_filename != self._source.filename:
            return None
        if code not in self._known:
            self._known[code] = self._source.function(func)
        return self._known[code]


def function_of(facts: ScriptFacts, func: Any) -> Function | None:
    """The definition of what was called, when it is in the script; wrappers (`jax.jit`, `partial`) are seen through."""
    return facts.once(_Functions).of(func)


def concrete(value: Any) -> bool:
    """Whether a value has numbers to look at."""
    return isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer)
