"""A size depends on a traced argument.

**What.** The length of a scan, `unroll`, a shape, the end of an `arange`, the bounds of a slice: computed from an
argument of a jitted function, or from the carry or x of a step.

**Why.** Shapes are part of the program. Under `jit` an argument stands for any number of its type, so there is no
program yet that could have one size. What decides a size must be static (a Python number that the function is compiled
for, once for each value), or be read off a shape, which is known.

**Bad**

    @jax.jit
    def integrate(x, n):
        return jax.lax.scan(step, x, None, length=n)

    integrate(x0, 3)

**Good**

    @partial(jax.jit, static_argnames="n")
    def integrate(x, n):
        return jax.lax.scan(step, x, None, length=n)

Source: JAX documentation, "Just-in-time compilation", marking arguments as static; `jax.jit`, `static_argnums` and
`static_argnames`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
from jax import tree_util

from core.base.places import Because
from core.base.text import fill
from core.base.violation import Severity, TextEdit
from core.contract.jitted import with_static, wraps_jitted
from core.contract.rule import Finding, Jax, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Failure
from core.contract.source import FUNCTIONS, Function, parameters
from core.contract.subject import MISSING

IS_ARGUMENT = "{what} is {size}, an argument of the jitted {function}: it has no value while the program is made."
OF_JIT = (
    "{what} is {size}, and that comes from {param}, an argument of the jitted {function}: it has no value while the "
    "program is made."
)
OF_STEP = "{what} is {size}, and that comes from {param} of the step: no size can change from step to step."
OF_TRACE = "{what} is {size}, a traced value: it is not known while the program is made."
LENGTH = "The length of the scan"
UNROLL = "unroll of the scan"
BOUND = "A bound of the slice {slice}"
SIZE = "A size in {call}"
LAMBDA = "lambda"
BECAUSE = "{param} is traced here"
WHY = "Shapes are part of the program: what decides a size is static, a plain number, or is read off another shape."
TITLE_STATIC = "Make {params} static: the function is compiled for each value of it"
TITLE_SHAPE = "Read the size off {text} instead"

#: The arguments that are sizes, by public name: positions and keywords (position None: all of them).
_SHAPE = ((0, "shape"),)
_RANDOM = ((1, "shape"),)
SIZES: Mapping[str, tuple[tuple[int | None, str], ...]] = {
    "jax.lax.scan": ((3, "length"), (5, "unroll")),
    "flax.nnx.scan": ((None, "length"),),
    "jax.lax.map": ((None, "batch_size"),),
    **dict.fromkeys(("jax.numpy.zeros", "jax.numpy.ones", "jax.numpy.empty", "jax.numpy.full"), _SHAPE),
    **dict.fromkeys(("jax.numpy.zeros_like", "jax.numpy.ones_like", "jax.numpy.full_like"), ((None, "shape"),)),
    "jax.numpy.arange": ((0, "start"), (1, "stop"), (2, "step")),
    "jax.numpy.linspace": ((2, "num"),),
    "jax.numpy.logspace": ((2, "num"),),
    **dict.fromkeys(("jax.numpy.eye", "jax.numpy.tri"), ((0, "N"), (1, "M"))),
    "jax.numpy.identity": ((0, "n"),),
    "jax.numpy.reshape": ((1, "shape"),),
    "Array.reshape": ((None, "shape"),),
    "jax.numpy.resize": ((1, "new_shape"),),
    "jax.numpy.broadcast_to": ((1, "shape"),),
    "jax.lax.broadcast": ((1, "sizes"),),
    "jax.lax.iota": ((1, "size"),),
    "jax.lax.broadcasted_iota": ((1, "shape"),),
    "jax.lax.full": _SHAPE,
    "jax.numpy.tile": ((1, "reps"),),
    "jax.numpy.repeat": ((1, "repeats"), (3, "total_repeat_length")),
    "Array.repeat": ((0, "repeats"), (2, "total_repeat_length")),
    "jax.numpy.split": ((1, "indices_or_sections"),),
    "jax.numpy.array_split": ((1, "indices_or_sections"),),
    "jax.nn.one_hot": ((1, "num_classes"),),
    "jax.lax.top_k": ((1, "k"),),
    "jax.lax.dynamic_slice": ((2, "slice_sizes"),),
    "jax.lax.dynamic_slice_in_dim": ((2, "slice_size"),),
    "jax.random.split": ((1, "num"),),
    **{f"jax.random.{name}": _RANDOM for name in ("normal", "uniform", "bernoulli", "bits", "gumbel", "exponential")},
    "jax.random.randint": ((1, "shape"),),
    "jax.random.choice": ((2, "shape"),),
    "jax.random.categorical": ((3, "shape"),),
    "jax.ops.segment_sum": ((2, "num_segments"),),
}
#: How many calls are followed from where a size is used to where its value was given.
HOPS = 12


@dataclass(frozen=True, slots=True, eq=False)
class Size:
    """A size that is traced: its expression, what it is the size of, and the tracer."""

    node: ast.expr
    what: str
    slice: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """Where a traced size comes from: a parameter, of a function that is jitted, scanned or otherwise transformed.

    `call` is the call of the script that traced it, `given` the argument's expression there.
    """

    function: Function
    param: str
    jitted: bool
    stepped: bool
    call: ast.Call | None = None
    given: ast.expr | None = None
    func: Any = None


def check(facts: ScriptFacts) -> Iterator[Finding]:
    """One finding, when the script ended in an expression that takes a size, and that size is traced."""
    failure = facts.failure
    if failure is None or failure.node is None:
        return
    sizes = list(_sizes(facts, failure))
    if not sizes:
        return
    size, last = sizes[0], len(failure.frames) - 1
    origins = [o for one in sizes for o in _origins(facts, failure, one.node, last, HOPS)]
    if size.slice and not any(origin.jitted for origin in origins):
        return  # a slice that depends on the step's own values is no matter of what is static (P202)
    first = next((o for o in origins if o.jitted), origins[0] if origins else None)
    text = facts.source.text_of(size.node)
    yield Finding(
        message=_message(size, text, first),
        place=facts.span(size.node),
        because=_because(facts, first),
        repairs=tuple(_repairs(facts, size, origins)),
    )


def _message(size: Size, text: str, origin: Origin | None) -> str:
    if origin is None or not (origin.jitted or origin.stepped):
        return fill(OF_TRACE, what=size.what, size=text)
    name = fill(LAMBDA) if isinstance(origin.function, ast.Lambda) else origin.function.name
    template = OF_STEP if not origin.jitted else IS_ARGUMENT if text == origin.param else OF_JIT
    return fill(template, what=size.what, size=text, param=origin.param, function=name)


def _because(facts: ScriptFacts, origin: Origin | None) -> Because | None:
    if origin is None:
        return None
    given = next(a for a in parameters(origin.function) if a.arg == origin.param)
    return Because(facts.span(given), fill(BECAUSE, param=origin.param))


# --- the size -------------------------------------------------------------------------------------------------------


def _sizes(facts: ScriptFacts, failure: Failure) -> Iterator[Size]:
    node = failure.node
    if isinstance(node, ast.Subscript):
        for part in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
            if isinstance(part, ast.Slice):
                bounds = (b for b in (part.lower, part.upper, part.step) if b is not None and _traced(facts, b))
                yield from (Size(b, fill(BOUND, slice=facts.source.text_of(node)), slice=True) for b in bounds)
    call = next((c for c in reversed(facts.calls_at(node)) if c.error is not None), None) if node is not None else None
    if call is None or not isinstance(node, ast.Call):
        return
    for position, keyword in SIZES.get(call.name or "", ()):
        what = _what(facts, node, call.name or "", keyword)
        given = [call.argument_node(position, keyword)] if position is not None else list(node.args)
        given += [k.value for k in node.keywords if k.arg == keyword] if position is None else []
        for one in given:
            parts = one.elts if isinstance(one, ast.Tuple | ast.List) else [one] if one is not None else []
            yield from (Size(part, what) for part in parts if _traced(facts, part))


def _what(facts: ScriptFacts, node: ast.Call, name: str, keyword: str) -> str:
    if name.endswith(".scan"):
        return fill(LENGTH if keyword == "length" else UNROLL)
    return fill(SIZE, call=facts.source.text_of(node.func))


def _traced(facts: ScriptFacts, node: ast.expr) -> bool:
    """Whether the expression's last value holds a tracer."""
    if isinstance(node, ast.Tuple | ast.List):
        return any(_traced(facts, part) for part in node.elts)
    if isinstance(node, ast.Starred):
        return _traced(facts, node.value)
    value = facts.value(node, MISSING)
    return any(isinstance(leaf, jax.core.Tracer) for leaf in tree_util.tree_leaves(value))


# --- where it comes from --------------------------------------------------------------------------------------------


def _origins(facts: ScriptFacts, failure: Failure, node: ast.expr, frame: int, hops: int) -> Iterator[Origin]:
    """The parameters that a traced expression is computed from, as far out as they are handed in."""
    for name in _names(facts, node):
        owner = _owner(facts, name)
        if owner is None:
            value = facts.source.bound(name)
            if value is not None and value is not node and hops:
                yield from _origins(facts, failure, value, frame, hops - 1)
            continue
        yield from _given(facts, failure, owner, name.id, frame, hops)


def _names(facts: ScriptFacts, node: ast.expr) -> Iterator[ast.Name]:
    """The names in an expression whose own value is traced; what is read off a shape is none."""
    if isinstance(node, ast.Name):
        if _traced(facts, node):
            yield node
        return
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield from _names(facts, node.func.value)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) and (
            isinstance(child, ast.Name) or not facts.seen(child) or _traced(facts, child)
        ):
            yield from _names(facts, child)


def _owner(facts: ScriptFacts, name: ast.Name) -> Function | None:
    """The function whose parameter a name is; None when it is assigned on the way."""
    scope = facts.source.scope(name)
    while isinstance(scope, FUNCTIONS):
        if any(line <= name.lineno for line, _ in facts.source.assigned(scope, name.id)):
            return None
        if any(a.arg == name.id for a in parameters(scope)):
            return scope
        scope = facts.source.scope(scope)
    return None


def _given(
    facts: ScriptFacts, failure: Failure, owner: Function, param: str, frame: int, hops: int
) -> Iterator[Origin]:
    """What the caller gave for a parameter: more names to follow, or the end of the way."""
    at = next((i for i in range(frame, -1, -1) if failure.frames[i].function is owner), None)
    if at is None or at == 0:
        return
    call = failure.frames[at - 1].node
    func = facts.value(call.func, None) if isinstance(call, ast.Call) else None
    if not isinstance(call, ast.Call):
        yield Origin(owner, param, False, False)
        return
    plain = facts.source.function(func) is owner
    given = _argument(call, owner, param, method=isinstance(call.func, ast.Attribute)) if plain else None
    if plain and wraps_jitted(func):
        yield Origin(owner, param, True, False, call, given, func)
    elif plain and given is not None and not hasattr(func, "__wrapped__") and hops:
        yield from _origins(facts, failure, given, at - 1, hops - 1)
    else:
        steps = any(site.node is call and site.step is owner for site in facts.scans)
        yield Origin(owner, param, False, steps, call)


def _argument(call: ast.Call, function: Function, param: str, *, method: bool) -> ast.expr | None:
    """The expression given for a parameter; `self` of a method is not among the arguments."""
    names = [a.arg for a in parameters(function)]
    if method and names and names[0] == "self":
        names = names[1:]
    if any(isinstance(a, ast.Starred) for a in call.args):
        return None
    by_position = dict(zip(names, call.args, strict=False))
    by_keyword = {k.arg: k.value for k in call.keywords}
    return by_position.get(param, by_keyword.get(param))


# --- repairs --------------------------------------------------------------------------------------------------------


def _repairs(facts: ScriptFacts, size: Size, origins: list[Origin]) -> Iterator[Repair]:
    """Every parameter in it made static; or the size read off the array that it is the size of."""
    jitted = [o for o in origins if o.jitted]
    if not jitted or len({id(o.function) for o in jitted}) != 1 or len(jitted) != len(origins):
        return
    params = tuple(dict.fromkeys(o.param for o in jitted))
    static = with_static(facts, jitted[0].function, params)
    if static is not None and not any(_is_data(facts, o) for o in jitted):
        plain = tuple(edit for o in jitted for edit in _as_int(facts, o))
        yield facts.rewrites(fill(TITLE_STATIC, params=", ".join(params)), *dict.fromkeys((*static, *plain)))
    if len(jitted) == 1:
        yield from _off_a_shape(facts, size, jitted[0])


def _is_data(facts: ScriptFacts, origin: Origin) -> bool:
    """Whether what was given for a parameter is an array with axes: that is never static."""
    value = None if origin.given is None else facts.value(origin.given, None)
    return bool(getattr(value, "shape", ()))


def _as_int(facts: ScriptFacts, origin: Origin) -> Iterator[TextEdit]:
    """An array given for what is to be static cannot be hashed: its number is given instead."""
    if origin.given is None:
        return
    value = facts.value(origin.given, None)
    if hasattr(value, "dtype") and not isinstance(value, jax.core.Tracer):
        yield TextEdit(facts.span(origin.given), f"int({facts.source.text_of(origin.given)})")


def _off_a_shape(facts: ScriptFacts, size: Size, origin: Origin) -> Iterator[Repair]:
    """``f(x, len(x))`` and ``f(x, x.shape[0])``: in the function, the size is that of its own x."""
    given, call = origin.given, origin.call
    if given is None or call is None:
        return
    given = facts.source.resolve(given)
    array, axis = _measured(facts, given)
    names = [n for n in _names(facts, size.node) if n.id == origin.param]
    if array is None or facts.source.scope(size.node) is not origin.function or not names:
        return
    for param in (a.arg for a in parameters(origin.function)):
        other = _argument(call, origin.function, param, method=isinstance(call.func, ast.Attribute))
        if isinstance(other, ast.Name) and other.id == array:
            text = f"{param}.shape[{axis}]"
            edits = (TextEdit(facts.span(name), text) for name in names)
            yield facts.rewrites(fill(TITLE_SHAPE, text=text), *edits)
            return


def _measured(facts: ScriptFacts, node: ast.expr) -> tuple[str | None, int]:
    """The array and the axis whose size an expression is."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "len" and facts.source.is_builtin("len"):
        if len(node.args) == 1 and isinstance(node.args[0], ast.Name):
            return node.args[0].id, 0
        return None, 0
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        axis = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if isinstance(node.value.value, ast.Name) and isinstance(axis, int):
            return node.value.value.id, axis
    return None, 0


RULE = Rule(
    code="P209",
    name="size-from-traced-argument",
    title="A size depends on a traced argument",
    severity=Severity.ERROR,
    jax=Jax.RAISES,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script"}),
    beats=frozenset({"P202"}),
)
