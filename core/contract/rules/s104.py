"""The carry's dtype changes inside the step.

**What.** A leaf of the new carry has another dtype than the same leaf of init, which is strongly typed:
`jnp.zeros(2, int)` with float x, a bfloat16 carry with float32 weights.

**Why.** A scan is one compiled loop: what goes in at step t must be what came out at t - 1, same shape, same dtype. Init
sets the contract; JAX promotes a weakly typed init (a Python number) by itself, a strong one it leaves as it is.

**Bad**

    jax.lax.scan(lambda carry, x: (carry + x, None), jnp.int32(0), jnp.ones(3))

**Good**

    jax.lax.scan(lambda carry, x: (carry + x, None), jnp.float32(0), jnp.ones(3))

Source: `jax.lax.scan`, "the loop-carried value carry must hold a fixed shape and dtype across all iterations (and not
just be consistent up to NumPy rank/shape broadcasting and dtype promotion rules, for example)".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from core.base.avals import LeafType
from core.base.text import fill
from core.base.violation import Severity
from core.contract import repairs, trees
from core.contract.carry import carry_pairs, init_because, named, return_place
from core.contract.facts import ScanFacts
from core.contract.repairs_xs import init_dtypes
from core.contract.rule import Finding, Jax, Repair, Rule, Stage

MESSAGE = "{path} goes in as {expected} and comes out as {got}: its dtype changes."
MESSAGE_ALL = "{paths} go in as {expected} and come out as {got}: their dtypes change."
WHY = "A scan is one compiled loop: what goes in at step t must be what came out at step t − 1, same shape, same dtype."


def check(facts: ScanFacts) -> Iterator[Finding]:
    """One finding for each leaf whose dtype differs, where the trees agree and init is strongly typed.

    Leaves that start from integers and come out as one float type have one cause, init: they are one finding.
    """
    groups = _of_integers(facts)
    grouped = {want.path for group in groups for _, want, _ in group}
    for group in groups:
        yield _all(facts, group)
    for given, want, have in carry_pairs(facts):
        if want.path in grouped:
            continue
        if want.aval is None or have.aval is None or want.aval.dtype == have.aval.dtype:
            continue
        if given.aval is not None and given.aval.weak:
            continue  # S105 says what becomes of a weak leaf
        yield Finding(
            message=fill(MESSAGE, path=named(facts, want.path), expected=want, got=have),
            place=return_place(facts, want.path),
            because=init_because(facts, given, want, f"init_dtype:{want.path}"),
            expected=(want,),
            got=(have,),
            repairs=(
                # The smallest edit first: another step takes its own init and xs along.
                *_repairs(want.path, want.aval.dtype, have.aval.dtype, trees.find(facts.call.init, "carry", want.path)),
                *repairs.right_step(facts.call),
            ),
            path=want.path,
        )


type _Leaf = tuple[LeafType, LeafType, LeafType]


def _of_integers(facts: ScanFacts) -> list[list[_Leaf]]:
    """Two or more leaves each whose strong integers or truth values come back as the same float type."""
    groups: dict[tuple[str, str], list[_Leaf]] = {}
    for given, want, have in carry_pairs(facts):
        if want.aval is None or have.aval is None or (given.aval is not None and given.aval.weak):
            continue
        whole = want.aval.dtype == "bool" or _is(want.aval.dtype, jnp.integer)
        if whole and _is(have.aval.dtype, jnp.inexact):
            groups.setdefault((want.aval.dtype, have.aval.dtype), []).append((given, want, have))
    return [group for group in groups.values() if len(group) > 1]


def _is(dtype: str, kind: Any) -> bool:
    try:
        return bool(jnp.issubdtype(jnp.dtype(dtype), kind))
    except TypeError:  # a PRNG key
        return False


def _all(facts: ScanFacts, group: list[_Leaf]) -> Finding:
    given, want, have = group[0]
    before, after = (leaf.aval.dtype if leaf.aval is not None else "" for leaf in (want, have))
    return Finding(
        message=fill(MESSAGE_ALL, paths=", ".join(w.path for _, w, _ in group), expected=before, got=after),
        place=return_place(facts, want.path),
        because=init_because(facts, given, want, f"init_dtype:{want.path}"),
        expected=tuple(w for _, w, _ in group),
        got=tuple(h for _, _, h in group),
        repairs=(init_dtypes({w.path: after for _, w, _ in group}), *repairs.right_step(facts.call)),
        path=want.path,
        covers=tuple(w.path for _, w, _ in group[1:]),
    )


def _repairs(path: str, want: str, have: str, value: Any) -> Iterator[Repair]:
    """First the one that loses nothing: the wider of the two dtypes is the carry's.

    A narrower float is offered after it (a bfloat16 carry is a choice); a float cut to an integer, or a complex number
    to its real part, is not.
    """
    try:
        wider = jnp.promote_types(want, have)
    except TypeError:  # a PRNG key
        return
    init = repairs.init_dtype(path, have)
    cast = repairs.step_cast(path, want)
    rounds = jnp.issubdtype(want, jnp.complexfloating) or (
        jnp.issubdtype(want, jnp.floating) and not jnp.issubdtype(have, jnp.complexfloating)
    )
    if wider == jnp.dtype(have):
        yield init
        if rounds:
            yield cast
    else:
        if rounds or wider == jnp.dtype(want):
            yield cast
        if _survives(value, have):
            yield init


def _survives(value: Any, dtype: str) -> bool:
    """Whether init's own numbers are the same in the other dtype; False where it has none yet."""
    if isinstance(value, jax.core.Tracer):
        return False
    array = np.asarray(value)
    return bool(np.array_equal(array, array.astype(jnp.dtype(dtype)).astype(array.dtype), equal_nan=True))


RULE = Rule(
    code="S104",
    name="carry-dtype-changes",
    title="The carry's dtype changes inside the step",
    severity=Severity.ERROR,
    jax=Jax.RAISES,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
)
