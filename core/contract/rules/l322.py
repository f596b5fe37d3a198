"""An initializer factory is passed uncalled.

**What.** `nnx.initializers.normal` is no initializer: called, it returns one. Passed as it is, it is itself called with
``(key, shape, dtype)``. `normal`, `uniform` and `zeros_init` refuse that at once; `lecun_normal` and its like take the
key for an axis and return a function, which then stands where a weight or a carry should be.

**Why.** Flax calls what it is given for ``carry_init``, ``kernel_init`` and the like once, with a key and a shape.

**Bad**

    h = cell.initialize_carry((2, 3), nnx.Rngs(0), carry_init=nnx.initializers.normal)

**Good**

    h = cell.initialize_carry((2, 3), nnx.Rngs(0), carry_init=nnx.initializers.normal(0.1))

`nnx.initializers.zeros` and `ones` are initializers themselves, and are passed uncalled.

Source: jax.nn.initializers: "Returns: An initializer function".
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flax import nnx
from jax import tree_util

from core.base.avals import aval_of
from core.base.text import fill
from core.base.violation import Severity
from core.contract.fates import function_of
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called, ScriptRecord
from core.contract.source import FUNCTIONS

UNCALLED = "{keyword} is {text}, which returns an initializer when it is called; it is passed uncalled."
CALLED_AS_ONE = "{text} makes an initializer; here it is given the key and the shape that the initializer takes."
CALL_FIRST = "{text}()"
TITLE = "Call it: {text}"
CLAIM = "How many of the arrays that this call made are functions instead."
WHY = (
    "What is given for carry_init, kernel_init and the like is called once, with (key, shape, dtype), and must return "
    "an array. A factory returns the initializer instead."
)
#: Where JAX keeps its initializers and their factories.
HOMES = frozenset({"jax.nn.initializers", "jax._src.nn.initializers", nnx.initializers.zeros_init.__module__})
#: The names under which they are imported.
PUBLIC = ("flax.nnx.initializers.", "jax.nn.initializers.", "flax.linen.initializers.")
#: What an initializer takes first.
TAKES = ["key", "shape"]
#: Arguments for factories that do not do without.
NEEDED = {"constant": "0.0", "variance_scaling": '1.0, "fan_in", "truncated_normal"'}


def check(facts: ScriptFacts) -> Iterator[Finding]:
    """One finding for each argument of a call of Flax that is a factory."""
    said: set[tuple[ast.Call, str]] = set()
    for call in facts.record.calls:
        for keyword, value in _given(call):
            if not keyword.endswith("_init") or (call.node, keyword) in said or not callable(value):
                continue
            if _of_flax(call.func) and is_factory(facts, value):
                said.add((call.node, keyword))
                yield _finding(facts, call, keyword, value)
        if (call.node, "") not in said and _given_a_shape(call) and is_factory(facts, call.func):
            said.add((call.node, ""))
            yield _called_as_one(facts, call)


def _given_a_shape(call: Called) -> bool:
    """Whether it was called as an initializer is: with a key and a shape."""
    key = aval_of(call.argument(0, "key"))
    shape = call.argument(1, "shape")
    keyed = key is not None and (key.dtype.startswith("key<") or (key.dtype, key.shape) == ("uint32", (2,)))
    return keyed and isinstance(shape, tuple) and all(isinstance(size, int) for size in shape)


def _called_as_one(facts: ScriptFacts, call: Called) -> Finding:
    """A factory that was given what its initializer takes."""
    text = facts.source.text_of(call.node.func)
    raises = call.error is not None
    fixed = fill(CALL_FIRST, text=text)
    return Finding(
        message=fill(CALLED_AS_ONE, text=text),
        place=facts.span(call.node),
        repairs=(facts.rewrite(fill(TITLE, text=fixed), call.node.func, fixed),),
        severity=Severity.ERROR if raises or facts.record.failure is not None else Severity.WARNING,
        silent=not raises and facts.record.failure is None,
    )


def _given(call: Called) -> Iterator[tuple[str, Any]]:
    """The arguments of a call by the names that its function has for them."""
    if any(callable(value) for value in call.args):
        yield from zip(_first(call.func, len(call.args)), call.args, strict=False)
    yield from call.kwargs.items()


def _of_flax(func: Any) -> bool:
    """Whether what was called is Flax's own: a class that the script only extends counts where it takes Flax's place."""
    own: Any = (
        inspect.getattr_static(func, "__init__", func) if isinstance(func, type) else getattr(func, "__func__", func)
    )
    return str(getattr(inspect.unwrap(own), "__module__", "")).startswith("flax.")


def is_factory(facts: ScriptFacts, value: Any) -> bool:
    """Whether calling this returns an initializer: one of JAX's factories, or a function of the script that is one."""
    while isinstance(value, functools.partial):
        value = value.func
    inner = inspect.unwrap(value)
    if getattr(inner, "__module__", None) in HOMES:
        return "." not in getattr(inner, "__qualname__", "") and _first(inner) != TAKES
    function = function_of(facts, value)
    if function is None or len(function.args.args) > 1:
        return False
    returned = facts.source.all_returned(function)
    return bool(returned) and all(_makes(facts, function, node) for node in returned)


def _first(func: Any, count: int = 2) -> list[str]:
    try:
        return list(inspect.signature(func).parameters)[:count]
    except (TypeError, ValueError):
        return []


def _makes(facts: ScriptFacts, function: ast.AST, node: ast.expr) -> bool:
    """Whether a returned expression is a function of a key and a shape: one defined here, or what a factory made."""
    if isinstance(node, ast.Name):
        inner = next((n for n in facts.source.within(function) if isinstance(n, FUNCTIONS) and _is(n, node.id)), None)
        node = facts.source.resolve(node)
        if inner is not None:
            return len(inner.args.args) >= len(TAKES)
    if isinstance(node, ast.Lambda):
        return len(node.args.args) >= len(TAKES)
    if isinstance(node, ast.Call):
        name = facts.source.dotted(node.func) or ""
        return name.startswith(PUBLIC) and name.rpartition(".")[2] not in ("zeros", "ones")
    return False


def _is(function: ast.AST, name: str) -> bool:
    return getattr(function, "name", None) == name


def _finding(facts: ScriptFacts, call: Called, keyword: str, value: Any) -> Finding:
    names = _first(call.func, len(call.args))
    node = call.argument_node(names.index(keyword) if keyword in names else len(call.args), keyword)
    shown = keyword if node is None else facts.source.text_of(node)
    raises = facts.record.failure is not None
    span = facts.span(call.node)
    return Finding(
        message=fill(UNCALLED, keyword=keyword, text=shown),
        place=span,
        repairs=() if node is None else (_call_it(facts, node, value),),
        measure=None if raises else Measure(CLAIM, Functions(span.line, span.col)),
        severity=Severity.ERROR if raises else Severity.WARNING,
        silent=not raises,
    )


def _call_it(facts: ScriptFacts, node: ast.expr, value: Any) -> Repair:
    text = facts.source.text_of(node)
    text = f"({text})" if isinstance(node, ast.Lambda) else text
    name = getattr(value, "__name__", "") if getattr(value, "__module__", None) in HOMES else ""
    text = f"{text}({NEEDED.get(name, '')})"
    return facts.rewrite(fill(TITLE, text=text), node, text)


@dataclass(frozen=True, slots=True)
class Functions:
    """How many leaves of what the call at a place returned are functions."""

    line: int
    col: int

    def __call__(self, record: Any) -> float:
        """The number, in this run.

        Raises:
            ValueError: the call is not there.
        """
        if not isinstance(record, ScriptRecord):
            raise ValueError("there is no script")
        for call in record.calls:
            span = record.source.span(call.node)
            if (span.line, span.col) == (self.line, self.col):
                made = nnx.state(call.result) if isinstance(call.result, nnx.Module) else call.result
                return float(sum(inspect.isfunction(leaf) for leaf in tree_util.tree_leaves(made)))
        raise ValueError("there is no such call")


RULE = Rule(
    code="L322",
    name="initializer-factory-uncalled",
    title="An initializer factory is passed uncalled",
    severity=Severity.ERROR,
    jax=Jax.RAISES,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script"}),
    beats=frozenset({"L301", "L303", "L304", "S102", "S118"}),
)
