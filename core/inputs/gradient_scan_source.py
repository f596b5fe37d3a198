"""The gradient of a scan as a program in Python, which runs by itself."""

from __future__ import annotations

from typing import Final

from core.base.scan_gradients import Target
from core.base.text import fill
from core.inputs.gradient_scan import ScanView
from core.inputs.literals import TooLongError, parameter_text, tree_text

#: Arrays with more elements are not written out; then there is no program.
WRITTEN: Final = 400

PROGRAM: Final = '''import jax
import jax.numpy as jnp


{step}


def number(init, xs):
    """The sum of {what}: what is differentiated."""
    final, ys = jax.lax.scan({body}, init, xs{length})
    leaves = [leaf for leaf in jax.tree.leaves({of}) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    return sum(jnp.sum(leaf) for leaf in leaves)


init = {init}
xs = {xs}
value, (by_init, by_xs) = jax.value_and_grad(number, argnums=(0, 1), allow_int=True)(init, xs)
print(value)
print(by_init)
print(by_xs)
'''
BODY: Final = "lambda carry, x: {name}(carry, x, {params})"
WHAT: Final = {Target.FINAL: ("the final carry", "final"), Target.YS: ("ys", "ys")}


def scan_source(view: ScanView, most: int | None = WRITTEN) -> str:
    """The program; "" where an array in it has more than `most` elements (None: any number of them)."""
    call = view.call
    name = view.step.fn.__name__
    try:
        params = ", ".join(f"{key}={parameter_text(value, most)}" for key, value in call.params.items())
        what, of = WHAT[view.gradient.target]
        return fill(
            PROGRAM,
            step=view.step.code.strip(),
            what=what,
            body=fill(BODY, name=name, params=params) if params else name,
            length=f", length={call.length}" if call.length is not None else "",
            of=of,
            init=tree_text(call.init, most),
            xs=tree_text(call.xs, most),
        )
    except TooLongError:
        return ""
