"""What stands in for `flax.nnx.scan` while a script runs: the real one, with the same look at it as at `lax.scan`.

A function under `nnx.scan` is a step with its arguments in another order: one of them is the carry, some are scanned,
modules and constants come along. Where that can be said from the public arguments (`in_axes`, `out_axes`) the call is
described as a call of `lax.scan` and checked as one; where it cannot (a state with an axis of its own), it just runs.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any

import jax.numpy as jnp
from flax import nnx
from jax import tree_util

from core.base.places import Place, Places
from core.contract.script_record import Changed
from core.contract.source import Function, Source
from core.doctor.locate import pytree_places

AXES = (nnx.Carry, 0)


@dataclass(frozen=True, slots=True, eq=False)
class Described:
    """A call under `nnx.scan`, said in the words of `lax.scan`.

    Attributes:
        step, init, xs, length, reverse, unroll: as `lax.scan` would take them.
        carry: position of the carry among the function's arguments.
        scanned: positions of the arguments that are scanned.
        out: position of the new carry in what the function returns.
        modules: whether modules come along (their state is no part of this description).
        changed: variables of modules that a trace of the step changed; empty until there was one.
    """

    step: Callable[[Any, Any], Any]
    init: Any
    xs: Any
    length: Any
    reverse: Any
    unroll: Any
    carry: int
    scanned: tuple[int, ...]
    out: int
    modules: bool
    changed: list[Changed]


def describe(function: Callable[..., Any], options: dict[str, Any], args: tuple[Any, ...]) -> Described | None:
    """The call as one of `lax.scan`; None when it has no carry of its own, or axes that a plain scan does not know."""
    ins, outs = options.get("in_axes", AXES), options.get("out_axes", AXES)
    if not isinstance(ins, tuple) or not isinstance(outs, tuple) or len(ins) != len(args):
        return None
    kinds = [_kind(axis, arg) for axis, arg in zip(ins, args, strict=True)]
    if None in kinds or kinds.count("carry") != 1 or sum(1 for a in outs if a is nnx.Carry) != 1 or len(outs) != 2:
        return None
    carry, out = kinds.index("carry"), next(i for i, a in enumerate(outs) if a is nnx.Carry)
    scanned = tuple(i for i, kind in enumerate(kinds) if kind == "scanned")
    moved = [_front(args[i], ins[i]) for i in scanned]
    if any(m is None for m in moved):
        return None
    xs = moved[0] if len(moved) == 1 else tuple(moved) if moved else None
    changed: dict[tuple[int, str], Changed] = {}

    def step(c: Any, x: Any) -> Any:
        given = [_fresh(arg) if kind == "module" else arg for arg, kind in zip(args, kinds, strict=True)]
        given[carry] = c
        for i, part in zip(scanned, (x,) if len(scanned) == 1 else (x or ()), strict=True):
            given[i] = part
        before = [(i, _variables(given[i])) for i, kind in enumerate(kinds) if kind == "module"]
        returned = function(*given)
        for i, variables in before:
            changed.update({(i, c.path): c for c in _changes(i, ins[i], variables, given[i])})
        known[:] = changed.values()
        if type(returned) is tuple and len(returned) == 2:
            return returned[out], returned[1 - out]
        return returned

    known: list[Changed] = []
    step.__signature__ = _signature(function, carry)  # type: ignore[attr-defined]  # the learner's name for the carry
    modules = "module" in kinds
    rest = {k: options.get(k, d) for k, d in (("length", None), ("reverse", False), ("unroll", 1))}
    return Described(
        step, args[carry], xs, **rest, carry=carry, scanned=scanned, out=out, modules=modules, changed=known
    )


def _kind(axis: Any, arg: Any) -> str | None:
    """What an argument is to the scan."""
    if axis is nnx.Carry:
        return None if isinstance(arg, nnx.Module) else "carry"
    if isinstance(arg, nnx.Module):
        axes = list(axis.values()) if isinstance(axis, nnx.StateAxes) else [axis]
        return "module" if all(a is None or a is nnx.Carry for a in axes) else None
    if axis is None:
        return "constant"
    return "scanned" if type(axis) is int else None


def _front(arg: Any, axis: int) -> Any:
    """The argument with its scanned axis first; None where it has no such axis."""
    if axis == 0:
        return arg
    try:
        return tree_util.tree_map(lambda leaf: jnp.moveaxis(leaf, axis, 0), arg)
    except (TypeError, ValueError):
        return None


def _fresh(module: Any) -> Any:
    """A copy whose variables belong to the trace under way, as under `nnx.scan`."""
    graph, state = nnx.split(module)
    leaves, tree = tree_util.tree_flatten(
        state
    )  # `merge` alone would keep the variables of the state, with their trace
    return nnx.merge(graph, tree_util.tree_unflatten(tree, leaves))


def _variables(module: Any) -> dict[str, Any]:
    """Raw values of a module's variables by path."""
    found = nnx.to_flat_state(nnx.state(module))
    return {".".join(map(str, path)): variable.get_raw_value() for path, variable in found}


def _changes(position: int, axis: Any, before: dict[str, Any], module: Any) -> Iterator[Changed]:
    """The variables whose value is another object now, each with the axis that the scan has for it."""
    for path, variable in nnx.to_flat_state(nnx.state(module)):
        name = ".".join(map(str, path))
        if name in before and variable.get_raw_value() is not before[name]:
            yield Changed(position, name, variable.type if hasattr(variable, "type") else type(variable),
                          _lost(axis, path, variable))  # fmt: skip


def _lost(axis: Any, path: Any, variable: Any) -> bool:
    """Whether a scan with this axis drops what a step writes into a variable: it is given to each step as it was."""
    if isinstance(axis, nnx.StateAxes):
        for given, own in dict(axis).items():
            if nnx.filterlib.to_predicate(given)(path, variable):
                return own is None
        return False
    return axis is None


def _signature(function: Callable[..., Any], carry: int) -> inspect.Signature:
    try:
        names = list(inspect.signature(function).parameters)
        name = names[carry] if carry < len(names) else "carry"
    except (TypeError, ValueError):
        name = "carry"
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([inspect.Parameter(name, kind), inspect.Parameter("x" if name != "x" else "x_", kind)])


def arguments_of(described: Described, call: ast.Call | None, given: int) -> dict[str, ast.expr]:
    """The expressions of init and xs in the script's call; `given` arguments reached the function (self is not written)."""
    if call is None or any(isinstance(a, ast.Starred) for a in call.args):
        return {}
    shift = given - len(call.args)
    wanted = {"init": described.carry} | ({"xs": described.scanned[0]} if len(described.scanned) == 1 else {})
    return {name: call.args[i - shift] for name, i in wanted.items() if 0 <= i - shift < len(call.args)}


def places_of(
    source: Source,
    described: Described,
    call: ast.Call | None,
    function: Function | None,
    arguments: dict[str, ast.expr],
) -> Places:
    """Places by the roles of a scan."""
    out: dict[str, Place] = {}
    if function is not None:
        out["step"] = source.head(function)
        value = source.returned(function)
        if value is not None:
            out["return"] = source.span(value)
            parts = [source.part(value, (tree_util.SequenceKey(i),)) for i in (described.out, 1 - described.out)]
            out["return:carry"] = source.span(parts[0])
            if parts[0] is not value:
                pytree_places(out, source, parts[0], described.init, "return", "carry")
                out["return:y"] = source.span(parts[1])
    if call is not None:
        out["scan"] = source.span(call)
    for role, root, value in (("init", "carry", described.init), ("xs", "xs", described.xs)):
        if role in arguments:
            bound = source.resolve(arguments[role])
            out[role] = source.span(bound if role == "init" else arguments[role])
            pytree_places(out, source, bound if role == "init" else arguments[role], value, role, root)
    return Places(out)


def wrapping(real: Callable[..., Any], look: Callable[..., Any]) -> Callable[..., Any]:
    """`nnx.scan` with `look(made, function, options, args, kwargs)` in the place of each call of what it makes."""

    def watched(made: Callable[..., Any], function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
        @wraps(made)
        def called(*args: Any, **kwargs: Any) -> Any:
            return look(made, function, options, args, kwargs)

        return called

    @wraps(real)
    def scan(*args: Any, **options: Any) -> Any:
        made = real(*args, **options)
        function = args[0] if args else options.get("f")
        if callable(function):
            return watched(made, function, options)
        return lambda f: watched(made(f), f, options)

    return scan
