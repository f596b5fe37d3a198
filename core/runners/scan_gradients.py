"""The gradient of a scan with respect to init and xs, and a check of it without any differentiation.

Reverse mode over `lax.scan` itself, at its exact length: padding would be differentiated too, and ``c·c·x`` or
``exp(c)·x`` make NaN of it. The step's parameters are arguments of the program, so that moving them compiles nothing; the
program of a step that is not from the library is not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, tree_util

from core.base.avals import LeafType, aval_of, path_name
from core.base.scan_gradients import LeafGradient, ScanGradient, Target, WildGradient
from core.base.text import fill
from core.contract.subject import ScanCall
from core.runners.gradient_source import GRADIENT_PROGRAMS
from core.runners.memo import once

type Array = np.ndarray[Any, Any]

NOTHING_SUMMED = "There is nothing to take a gradient of: {what} holds no floating-point number."
WHAT = {Target.FINAL: "the final carry", Target.YS: "ys"}


class NoGradientError(ValueError):
    """This scan has no gradient; the message says why, in words for a page."""


def is_floating(leaf: Any) -> bool:
    """Whether a leaf has a gradient: floating-point numbers do, Python floats among them."""
    return bool(jnp.issubdtype(jax.typeof(leaf).dtype, jnp.floating))


def scan_gradient(call: ScanCall, target: Target = Target.FINAL) -> ScanGradient:
    """The gradient of the sum of the final carry, or of ys, with respect to init and xs.

    Whole numbers, bools and PRNG keys have none, and are no part of the sum. `unroll` changes no value and is not used.
    Within one check (`core.runners.memo`) it is worked out once.

    Args:
        call: a call that `lax.scan` takes.
        target: what is summed.

    Raises:
        NoGradientError: the target holds no floating-point number.
        whatever `lax.scan` raises on this call.
    """
    return once(("scan gradient", target), (call,), lambda: _scan_gradient(call, target))


def _scan_gradient(call: ScanCall, target: Target) -> ScanGradient:
    flat, tree = tree_util.tree_flatten((call.init, call.xs))
    chosen = tuple(is_floating(leaf) for leaf in flat)
    params, constants = split_params(call)
    function = _program(call, tree, chosen, target, constants)
    moved = [leaf for leaf, wanted in zip(flat, chosen, strict=True) if wanted]
    held = [leaf for leaf, wanted in zip(flat, chosen, strict=True) if not wanted]
    key = None if constants else ("scan gradient", call.step, _length(call), bool(call.reverse), target.value, *chosen)
    args = (moved, held, params)
    with np.errstate(over="ignore"):  # 1e300 is infinite in float32: that is what JAX makes of it
        program, compiled = GRADIENT_PROGRAMS.get(key, function, args)
        value, gradients = jax.device_get(program(*args))
    given = iter(gradients)
    leaves = tuple(
        LeafGradient(role, type_, np.asarray(next(given)) if wanted else None)
        for (role, type_), wanted in zip(_leaves(call), chosen, strict=True)
    )
    length = call.length if call.length is not None else np.shape(tree_util.tree_leaves(call.xs)[0])[0]
    return ScanGradient(target, float(value), leaves, _first(leaves, bool(call.reverse)), int(length), compiled)


def _program(
    call: ScanCall, tree: Any, chosen: Sequence[bool], target: Target, constants: dict[str, Any]
) -> Callable[..., Any]:
    """``program(moved, held, params)``: the number and its gradient with respect to `moved`.

    Only the step and settings of the call stay in it, none of its numbers.
    """
    step, length, reverse = call.step, call.length, call.reverse

    def number(moved: Any, held: Any, params: Any) -> Any:
        parts = (iter(held), iter(moved))
        leaves = [next(parts[wanted]) for wanted in chosen]
        init, xs = tree_util.tree_unflatten(tree, leaves)

        def body(carry: Any, x: Any) -> Any:
            return step(carry, x, **constants, **params)

        final, ys = lax.scan(body, init, xs, length=length, reverse=reverse)
        return _sum(final if target is Target.FINAL else ys, target)

    return jax.value_and_grad(number)


def _sum(of: Any, target: Target) -> Any:
    leaves = [leaf for leaf in tree_util.tree_leaves(of) if is_floating(leaf)]
    if not leaves:
        raise NoGradientError(fill(NOTHING_SUMMED, what=WHAT[target]))
    # In float32 at least: a sum of many bfloat16 numbers would stand still at 256.
    return sum(jnp.sum(leaf.astype(jnp.promote_types(leaf.dtype, jnp.float32))) for leaf in leaves)


def split_params(call: ScanCall) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters of the step that are arguments of a program, and those that can only be constants of it (no arrays)."""
    arguments = {k: v for k, v in call.params.items() if all(aval_of(leaf) for leaf in tree_util.tree_leaves(v))}
    return arguments, {k: v for k, v in call.params.items() if k not in arguments}


def _length(call: ScanCall) -> int | None:
    """As part of a key: what was given, when it is a plain number (JAX raises at most others)."""
    return None if call.length is None else int(call.length)


def _leaves(call: ScanCall) -> list[tuple[str, LeafType]]:
    """Role and type of every leaf of init, then of xs."""
    out = []
    for role, of in (("init", call.init), ("xs", call.xs)):
        for path, leaf in tree_util.tree_flatten_with_path(of)[0]:
            out.append((role, LeafType(path_name(role, path), aval_of(leaf))))
    return out


def _first(leaves: Sequence[LeafGradient], reverse: bool) -> WildGradient | None:
    """Where the backward pass met the first number that is not finite."""
    found: list[tuple[int, WildGradient]] = []
    for leaf in leaves:
        if not leaf.wild or leaf.values is None:
            continue
        bad = ~np.isfinite(leaf.values.astype(np.float64))
        if leaf.role == "init":
            index = tuple(int(i) for i in np.argwhere(bad)[0])
            found.append((-1, WildGradient(leaf.type.path, None, index, float(leaf.values[index]))))
            continue
        steps = np.flatnonzero(bad.reshape(len(bad), -1).any(axis=1))
        t = int(steps[0] if reverse else steps[-1])
        index = tuple(int(i) for i in np.argwhere(bad[t])[0])
        position = len(bad) - 1 - t if reverse else t
        found.append((position, WildGradient(leaf.type.path, t, index, float(leaf.values[(t, *index)]))))
    return max(found, key=lambda one: one[0], default=(0, None))[1]
