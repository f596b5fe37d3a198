"""The width of the input is not the cell's in_features.

**What.** The last axis of what a cell is given as its input has another length than the one it was built for. It
raises, with two numbers and no name.

**Why.** The input weights have one row for each input feature, fixed when the cell is built.

**Bad**

    cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
    h, y = cell(jnp.zeros((2, 4)), jnp.ones((2, 5)))

**Good**

    cell = nnx.GRUCell(5, 4, rngs=nnx.Rngs(0))
    h, y = cell(jnp.zeros((2, 4)), jnp.ones((2, 5)))

Source: flax.nnx.Linear.__call__, a dot product over the last axis of the input.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.base.avals import Aval, LeafType
from core.base.text import fill
from core.base.violation import Severity
from core.contract import repairs_cell
from core.contract.cells import cell_because, first_of_each, input_place
from core.contract.facts import Facts
from core.contract.rule import Finding, Jax, Rule, Stage

MESSAGE = "The input is {got}: its last axis must be in_features, {features}."
NUMBER = "The input is {got}, one number without an axis: its last axis must be in_features, {features}."
WHY = (
    "The input weights have one row for each input feature, fixed when the cell is built: the last axis of x is "
    "in_features."
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for each step whose input has another width than the cell was built for."""
    for use in first_of_each(facts):
        if use.x is None or use.x.shape[-1:] == (use.features,) or use.event.error is None:
            continue
        shape = (*use.x.shape[:-1], use.features)
        yield Finding(
            message=fill(MESSAGE if use.x.shape else NUMBER, got=use.x, features=use.features),
            place=input_place(facts, use),
            because=cell_because(facts, use),
            expected=(LeafType("inputs", Aval(shape, use.x.dtype)),),
            got=(LeafType("inputs", use.x),),
            repairs=(repairs_cell.in_features(use.x.shape[-1]),) if use.x.shape else (),
            path="inputs",
        )


RULE = Rule(
    code="L305",
    name="input-width-differs",
    title="The width of the input is not in_features",
    severity=Severity.ERROR,
    jax=Jax.RAISES,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"cell", "scan", "log"}),
)
