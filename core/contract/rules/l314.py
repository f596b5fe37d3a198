"""The dtype of the carry is not what the cell computes in.

**What.** A bfloat16 (or integer) carry goes into a cell with float32 weights, and a float32 carry comes out. A direct
call says nothing; a scan takes the new dtype for another carry and raises.

**Why.** A cell promotes its weights, its input and its carry to one dtype. The carry keeps its type only if it has
that dtype already.

**Bad**

    h = jnp.zeros((2, 4), jnp.bfloat16)
    carry, y = cell((h, h), jnp.ones((2, 3)))

**Good**

    h = jnp.zeros((2, 4))
    carry, y = cell((h, h), jnp.ones((2, 3)))

No finding: a float32 carry with bfloat16 inputs, a bfloat16 carry in a cell with ``dtype`` and ``param_dtype``
bfloat16, or a step that casts the new carry back on purpose.

Source: flax.nnx.nn.dtypes.promote_dtype.
"""

from __future__ import annotations

from collections.abc import Iterator

from jax import tree_util

from core.base.avals import Aval, aval_of
from core.base.text import fill
from core.base.violation import Severity
from core.contract import repairs_cell
from core.contract.cell_proof import parts_retyped
from core.contract.cells import (
    CellUse,
    Part,
    carry_place,
    cell_because,
    cell_uses,
    first_of_each,
    got_text,
    origin,
    slot_changes,
    types,
)
from core.contract.facts import Facts, ScanFacts
from core.contract.rule import Finding, Jax, Measure, Rule, Stage

MESSAGE = "{label}: {got} goes into {cell} and {dtype} comes back."
CLAIM = "This many arrays of the carry leave one step with another dtype than they came in with."
WHY = (
    "A cell promotes its weights, its input and its carry to one dtype: the carry keeps its type only if it has that "
    "dtype already."
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for each step whose carry comes back with another dtype."""
    for use in first_of_each(facts):
        faulty = retyped(use)
        if not faulty:
            continue
        parts = tuple(part for part, _ in faulty)
        raised = slot_changes(facts, (part.path for part in parts))
        if not raised and (isinstance(facts, ScanFacts) or _cast_back(facts, use)):
            continue
        yield _finding(facts, use, faulty, raised=raised)


def retyped(use: CellUse) -> tuple[tuple[Part, Aval], ...]:
    """The parts whose dtype changes in the step, with the type that comes back."""
    if use.event.result is None:
        return ()
    after = [aval_of(leaf) for leaf in tree_util.tree_leaves(use.event.result[0])]
    pairs = zip(use.parts, after, strict=False)
    return tuple((part, new) for part, new in pairs if new is not None and new.dtype != part.aval.dtype)


def _cast_back(facts: Facts, use: CellUse) -> bool:
    """Whether the script makes the carry this dtype again before the next step: then it means to keep it so."""
    given = {id(part.value) for part in use.parts}
    return any(
        later.event.cell is use.event.cell
        and any(p.aval.dtype == q.aval.dtype for p, q in zip(later.parts, use.parts, strict=False))
        and not given & {id(part.value) for part in later.parts}
        for later in cell_uses(facts)[use.index + 1 :]
    )


def _finding(facts: Facts, use: CellUse, faulty: tuple[tuple[Part, Aval], ...], *, raised: bool) -> Finding:
    parts = tuple(part for part, _ in faulty)
    dtype = faulty[0][1].dtype
    return Finding(
        message=fill(MESSAGE, label=use.label(parts), cell=use.cell_name, got=got_text(parts), dtype=dtype),
        place=carry_place(facts, use),
        because=origin(facts, parts[0]) or cell_because(facts, use),
        expected=types((part, Aval(part.aval.shape, new.dtype)) for part, new in faulty),
        got=types((part, part.aval) for part in parts),
        repairs=(repairs_cell.to_dtype(use, parts, dtype),),
        measure=None if raised else Measure(CLAIM, parts_retyped(use.index)),
        severity=Severity.ERROR if raised else Severity.WARNING,
        silent=not raised,
        path=parts[0].path if len(parts) == 1 else use.path,
        covers=tuple(part.path for part in parts),
    )


RULE = Rule(
    code="L314",
    name="carry-dtype-differs",
    title="The dtype of the carry is not what the cell computes in",
    severity=Severity.WARNING,
    jax=Jax.BOTH,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"cell", "scan", "log"}),
    beats=frozenset({"S104"}),
)
