"""A leaf of the carry is no array.

**What.** Init holds a function, a string, a set, an object of a plain class; or the step returns one where a leaf of
the new carry should be.

**Why.** The carry goes through a compiled loop: all of its leaves are arrays or numbers. What stays the same at every
step (an activation, a mode) belongs outside, where the step can name it. A dataclass has leaves only when JAX knows it.

**Bad**

    def step(carry, x):
        h, act = carry
        h = act(h + x)
        return (h, act), h

    jax.lax.scan(step, (0.0, jnp.tanh), xs)

**Good**

    def step(h, x):
        h = jnp.tanh(h + x)
        return h, h

    jax.lax.scan(step, 0.0, xs)

`jax.tree_util.Partial(f)` is a pytree without leaves: a function in it may ride in the carry. `None` has none either.

Source: JAX documentation, "Pytrees" and "Working with pytrees", custom pytree nodes; `jax.lax.scan`, argument `init`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from numbers import Number
from typing import Any

import numpy as np
from jax import tree_util

from core.base.avals import LeafType, aval_of, path_name
from core.base.places import Because
from core.base.text import fill
from core.base.violation import Severity
from core.contract import repairs
from core.contract.carry import init_because, named, return_place
from core.contract.facts import ScanFacts
from core.contract.rule import Finding, Jax, Repair, Rule, Stage
from core.contract.trace import Raised, same_structure

INIT = "{path} is {what}, not an array: a scan carries arrays and numbers alone."
RETURNED = "{path} comes out of the step as {what}, not as an array: a scan carries arrays and numbers alone."
FUNCTION = "a function ({name})"
DATACLASS = "an object of the dataclass {name}, which JAX does not know as a pytree"
STRING = "a string ({value})"
ARRAY = "a NumPy array of dtype {dtype}"
OTHER = "an object of type {name}"
WHY = "The carry goes through a compiled loop: every leaf of it is an array or a number."
TITLE_PARTIAL = "Wrap the function in jax.tree_util.Partial: it is no leaf then"
TITLE_OUT = "Take {path} out of the carry: the step names it instead"
TITLE_REGISTER = "Register {name} as a pytree"
KIND_FUNCTION = "function"
ONE_ARRAY = "an array or a number"
#: How much of a string is shown.
WIDTH = 20


def check(facts: ScanFacts) -> Iterator[Finding]:
    """A finding for each leaf of init that is no array; where there is none, for each such leaf that is returned."""
    found = False
    for path, leaf in tree_util.tree_flatten_with_path(facts.call.init)[0]:
        if _no_array(leaf):
            found = True
            yield _of_init(facts, path_name("carry", path), leaf)
    trace = facts.trace
    if found or isinstance(trace, Raised) or trace.pair is None or not same_structure(trace.carry_in, trace.pair[0]):
        return
    new = tree_util.tree_flatten_with_path(trace.pair[0])[0]
    for given, held, (path, leaf) in zip(facts.init_types, facts.carry_in, new, strict=True):
        if _no_array(leaf):
            yield _returned(facts, given, held, path_name("carry", path), leaf)


def _no_array(leaf: Any) -> bool:
    """Whether JAX takes this for no array; a number that is too large for it is another fault."""
    return aval_of(leaf) is None and not isinstance(leaf, Number | np.number)


def _of_init(facts: ScanFacts, path: str, leaf: Any) -> Finding:
    return Finding(
        message=fill(INIT, path=named(facts, path), what=_what(leaf)),
        place=facts.places.find(f"init:{path}", "init", "init_argument", "scan"),
        expected=(LeafType(path, None, ONE_ARRAY),),
        got=(LeafType(path, None, _kind(leaf)),),
        repairs=(*repairs.right_step(facts.call), *_repairs(path, leaf)),
        path=path,
    )


def _returned(facts: ScanFacts, given: LeafType, held: LeafType, path: str, leaf: Any) -> Finding:
    because: Because = init_because(facts, given, held)
    return Finding(
        message=fill(RETURNED, path=named(facts, path), what=_what(leaf)),
        place=return_place(facts, path),
        because=because,
        expected=(held,),
        got=(LeafType(path, None, _kind(leaf)),),
        repairs=repairs.right_step(facts.call),
        path=path,
    )


def _what(leaf: Any) -> str:
    if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
        return fill(DATACLASS, name=type(leaf).__name__)
    if isinstance(leaf, str):
        return fill(STRING, value=repr(leaf if len(leaf) <= WIDTH else leaf[:WIDTH] + "…"))
    if isinstance(leaf, np.ndarray):
        return fill(ARRAY, dtype=leaf.dtype)
    if callable(leaf):
        return fill(FUNCTION, name=getattr(leaf, "__name__", type(leaf).__name__))
    return fill(OTHER, name=type(leaf).__name__)


def _kind(leaf: Any) -> str:
    """Its type's name; of any kind of function ``function``."""
    return fill(KIND_FUNCTION) if callable(leaf) and not isinstance(leaf, type) else type(leaf).__name__


def _repairs(path: str, leaf: Any) -> Iterator[Repair]:
    """Out of the carry where it stays the same (running it tells); a function wrapped; a dataclass registered."""
    if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
        title = fill(TITLE_REGISTER, name=type(leaf).__name__)
        yield Repair("register_dataclass", title, lambda _: None, path, type(leaf).__name__)
    if path != "carry":
        yield Repair("carry_out", fill(TITLE_OUT, path=path), lambda _: None, path)
    if callable(leaf) and not isinstance(leaf, type):
        title = fill(TITLE_PARTIAL)
        wrap: Any = tree_util.Partial  # untyped in jax's stubs
        mend = repairs.init_value(path, title, lambda function: wrap(function))
        yield Repair("init_partial", title, mend.apply, path)


RULE = Rule(
    code="S118",
    name="carry-leaf-no-array",
    title="A leaf of the carry is no array",
    severity=Severity.ERROR,
    jax=Jax.RAISES,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
)
