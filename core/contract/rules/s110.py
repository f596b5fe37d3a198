"""A Python list as xs.

**What.** xs is a list with one entry for each step: numbers, rows of numbers, arrays, pairs. To JAX a list is a pytree,
and each entry is a sequence of its own. A list of numbers raises (a number has no axis). A list of array rows does not:
`[row0, row1]` with rows of three scans three steps, and x is a list with one *column*.

**Why.** A scan walks along the leading axis of arrays, not along a list: time must be an axis.

**Bad**

    rows = [jnp.array([1., 2., 3.]), jnp.array([4., 5., 6.])]
    jax.lax.scan(lambda carry, x: (carry + x[0], None), 0., rows)    # three steps: 1 + 2 + 3

**Good**

    jax.lax.scan(lambda carry, x: (carry + x[0], None), 0., jnp.stack(rows))    # two steps: 1 + 4

When is a list of arrays not meant? A tuple of sequences that the step takes apart is the clean idiom, and never
flagged; nor is a list that the step takes apart into its entries, for a row would not come apart that way. It is an
error where the step (or `length`, or another leaf of xs) only fits the rows; a warning where it runs and the declared
axes say that the entries are steps; a note where both readings run, also where the step reads some entries and never
others (it may not need them).

Source: JAX documentation, "Pytrees"; jax.lax.scan, argument `xs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import tree_util

from core.base.avals import LeafType, aval_of, leaf_types, path_name
from core.base.places import Because
from core.base.text import fill
from core.base.violation import Severity
from core.contract import trees
from core.contract.facts import ScanFacts
from core.contract.program import reads
from core.contract.repairs_xs import is_scalar, only_numbers, stacked, xs_item, xs_stack
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.sequence import whole_length
from core.contract.subject import ScanCall
from core.contract.trace import Raised
from core.runners.scan import run_call

NUMBERS = (
    "{path} is a Python {kind} of {count} {entries}: JAX sees {leaves} separate values, none with an axis to scan."
)
ROWS = (
    "{path} is a Python list of arrays ({count} of {kind}): JAX scans them side by side over their {steps} entries, "
    "and x is a list of {count}, one entry of each. {evidence}"
)
STEP_WANTS_ROW = "The step runs on one row and not on such a list."
LENGTH_IS_ROWS = "length is {length}, the number of arrays."
OTHERS_ARE_ROWS = "The rest of xs has {length} steps, the number of arrays."
AXES_SAY_ROWS = "Its axes were declared {axes}: the arrays are the steps."
SOME_UNREAD = (
    "The step never reads x{unread}: that is right where it is not needed, and wrong where x was taken for one row; then "
    "it must be one array of {count} steps."
)
EITHER = "That is right for {count} sequences side by side. If each array is one step, it must be one array of {count} steps."
NUMBER = "numbers"
KEY = "PRNG keys"
ROW = "rows of numbers"
STEPS = "{path} is given as {count} steps; this is how many steps the scan takes."
FIRST = "{path} is given as rows; this is how far what step 0 sees is from row 0."
WHY = "A scan walks along the leading axis of arrays. A list is a pytree: each of its entries is a sequence of its own."
BECAUSE = "{path} is made a list here"
ONE_ARRAY = "one array of {count} steps"


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A list in xs whose entries look like steps: arrays of one shape and dtype, or pytrees of such."""

    path: str
    entries: list[Any]
    columns: int

    @property
    def count(self) -> int:
        """How many entries."""
        return len(self.entries)


def check(facts: ScanFacts) -> Iterator[Finding]:
    """A finding for each outermost list (of numbers: tuple too) in xs that stands for a sequence."""
    for path, node in _lists(facts.call.xs, "xs"):
        if only_numbers(node) or _records(node):
            yield _numbers(facts, path, node)
        elif isinstance(node, list):
            rows = _rows(path, node)
            if rows is not None:
                yield from _arrays(facts, rows)


def _lists(tree: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The outermost lists and tuples of xs; below a tuple of sequences, its parts are looked at one by one."""
    node = trees.node_of(tree)
    if node.kind is None or not node.children:
        return
    if type(tree) is list or (type(tree) is tuple and _flat_numbers(tree)):
        yield path, tree
        return
    for key, child in node.children.items():
        yield from _lists(child, path_name(path, (key,)))


def _flat_numbers(entries: tuple[Any, ...]) -> bool:
    """A tuple of numbers; one that mixes them with arrays has single leaves at fault (S106)."""
    return bool(entries) and all(is_scalar(entry) for entry in entries)


def _records(node: Any) -> bool:
    """A list of equal pytrees of numbers, such as ``[{"x": 1, "y": 2}, …]``."""
    if not isinstance(node, list) or not node or not isinstance(node[0], dict | tuple):
        return False
    leaves = tree_util.tree_leaves(node)
    return bool(leaves) and all(is_scalar(leaf) for leaf in leaves) and not _stacking_fails(node)


def _stacking_fails(rows: list[Any]) -> bool:
    try:
        stacked(rows)
    except (TypeError, ValueError, OverflowError):
        return True
    return False


def _because(facts: ScanFacts, path: str) -> Because | None:
    """Where the list was made, when that is another place."""
    bound, here = facts.places.find(f"xs_bound:{path}"), facts.places.find(f"xs:{path}", "xs")
    return Because(bound, fill(BECAUSE, path=path)) if bound is not None and bound != here else None


# --- numbers: JAX raises --------------------------------------------------------------------------------------------


def _numbers(facts: ScanFacts, path: str, node: Any) -> Finding:
    leaves = leaf_types(node, path)
    keys = all(leaf.aval is not None and leaf.aval.dtype.startswith("key") for leaf in leaves)
    entries = KEY if keys else NUMBER if all(is_scalar(entry) for entry in node) else ROW
    kind = type(node).__name__
    return Finding(
        message=fill(NUMBERS, path=path, kind=kind, count=len(node), entries=entries, leaves=len(leaves)),
        place=facts.places.find(f"xs:{path}", "xs", "scan"),
        because=_because(facts, path),
        expected=(LeafType(path, None, fill(ONE_ARRAY, count=len(node))),),
        got=(trees.shown(node, path),),
        repairs=(xs_stack(path, len(node)),),
        severity=Severity.ERROR,
        silent=False,
        path=path,
        covers=tuple(leaf.path for leaf in leaves),
    )


# --- arrays ---------------------------------------------------------------------------------------------------------


def _rows(path: str, node: list[Any]) -> Rows | None:
    """The list as rows: at least one entry, all of one structure and of arrays of the same types, with an axis."""
    types = [tuple((t.path, str(t)) for t in leaf_types(entry, "")) for entry in node]
    leaves = [aval_of(leaf) for leaf in tree_util.tree_leaves(node)]
    if not node or len(set(types)) != 1 or not leaves or any(a is None or not a.shape for a in leaves):
        return None
    columns = {a.shape[0] for a in leaves if a is not None}
    if len({tree_util.tree_structure(entry) for entry in node}) != 1 or len(columns) != 1:
        return None
    return Rows(path, node, columns.pop())


def _arrays(facts: ScanFacts, rows: Rows) -> Iterator[Finding]:
    as_rows = replace(facts.call, xs=trees.at(facts.call.xs, "xs", rows.path, _struct_rows))
    evidence, severity = _evidence(facts, rows, as_rows)
    if severity is None:
        return
    silent = severity is not Severity.ERROR
    yield Finding(
        message=fill(ROWS, path=rows.path, count=rows.count, kind=_kind(rows), steps=rows.columns, evidence=evidence),
        place=facts.places.find(f"xs:{rows.path}", "xs", "scan"),
        because=_because(facts, rows.path),
        expected=(LeafType(rows.path, None, fill(ONE_ARRAY, count=rows.count)),),
        got=leaf_types(rows.entries, rows.path),
        repairs=tuple(_repairs(rows)),
        measure=_measure(rows) if silent else None,
        severity=severity,
        silent=silent,
        path=rows.path,
        covers=tuple(leaf.path for leaf in leaf_types(rows.entries, rows.path)),
    )


def _kind(rows: Rows) -> str:
    """What one entry is: ``float32[3]``, or the types of its leaves."""
    return ", ".join(str(t) for t in leaf_types(rows.entries[0], ""))


def _repairs(rows: Rows) -> Iterator[Repair]:
    yield xs_stack(rows.path, rows.count)
    if rows.count == 1:
        yield xs_item(rows.path)


def _struct_rows(node: Any) -> Any:
    """The rows stacked, to be traced: of NumPy rows beyond 32 bits what JAX makes of them (N504 speaks of the loss)."""
    try:
        return stacked(node)
    except OverflowError:
        return tree_util.tree_map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *node)


def _evidence(facts: ScanFacts, rows: Rows, as_rows: ScanCall) -> tuple[str, Severity | None]:
    """What speaks for steps, and how surely."""
    length = whole_length(facts) if facts.call.length is not None else None
    if length == rows.count != rows.columns:
        return fill(LENGTH_IS_ROWS, length=length), Severity.ERROR
    others = _other_length(facts, rows)
    if others == rows.count != rows.columns:
        return fill(OTHERS_ARE_ROWS, length=others), Severity.ERROR
    traces, would = not isinstance(facts.trace, Raised), not isinstance(ScanFacts(as_rows).trace, Raised)
    if not traces:
        alone = rows.count == 1 and not isinstance(ScanFacts(_item(facts.call, rows)).trace, Raised)
        return fill(STEP_WANTS_ROW), (Severity.ERROR if would or alone else None)
    axes = facts.call.axes.get(rows.path, "")
    rank = {len(a.shape) for a in map(aval_of, tree_util.tree_leaves(rows.entries)) if a is not None}
    if axes.startswith("T") and rank == {len(axes) - 1}:
        return fill(AXES_SAY_ROWS, axes=axes), Severity.WARNING
    if not would:
        return "", None
    unread = _unread(facts, rows)
    if unread:
        return fill(SOME_UNREAD, unread=unread[0], count=rows.count), Severity.NOTE if rows.count > 1 else None
    return fill(EITHER, count=rows.count), Severity.NOTE if rows.count > 1 else None


def _item(call: ScanCall, rows: Rows) -> ScanCall:
    return replace(call, xs=trees.at(call.xs, "xs", rows.path, lambda node: node[0]))


def _other_length(facts: ScanFacts, rows: Rows) -> int | None:
    """The leading length that the rest of xs agrees on; None when there is no rest or it does not agree."""
    prefix = rows.path
    rest = {
        n
        for t, n in zip(facts.xs_types, facts.leading, strict=True)
        if not t.path.startswith((f"{prefix}[", f"{prefix}."))
    }
    return rest.pop() if len(rest) == 1 else None


def _unread(facts: ScanFacts, rows: Rows) -> list[str]:
    """The entries of x that the step never looks at, where it looks at others."""
    if isinstance(facts.trace, Raised):
        return []
    used = reads(facts.trace.jaxpr)
    carried = len(facts.init_types)
    paths = [t.path for t in facts.xs_types]
    mine = [p for p in paths if p.startswith(f"{rows.path}[")]
    unread = [p for p in mine if not used[carried + paths.index(p)]]
    return [p.removeprefix("xs") for p in unread] if 0 < len(unread) < len(mine) else []


def _measure(rows: Rows) -> Measure:
    """How many steps the scan takes; where both readings take as many, how far step 0 is from row 0."""
    if rows.count != rows.columns:
        return Measure(
            fill(STEPS, path=rows.path, count=rows.count), lambda call: run_call(call).length, float(rows.count)
        )
    first = [np.asarray(leaf, np.float64) for leaf in tree_util.tree_leaves(rows.entries[0])]

    def off(call: ScanCall) -> float:
        node = trees.find(call.xs, "xs", rows.path)
        seen = [jnp.ravel(leaf[0]) for leaf in tree_util.tree_leaves(node)]
        one, two = np.concatenate(seen).astype(np.float64), np.concatenate([f.ravel() for f in first])
        return float(np.abs(one - two).max())

    return Measure(fill(FIRST, path=rows.path), off)


RULE = Rule(
    code="S110",
    name="list-as-xs",
    title="A Python list as xs",
    severity=Severity.ERROR,
    jax=Jax.BOTH,
    stage=Stage.INPUT,
    why=WHY,
    check=check,
    beats=frozenset({"S106", "S107", "S108"}),
)
