"""What the names of masks say, and when a name alone can be believed (L312).

`alive` may be said of examples and of units. A name counts for what changes from step to step, and for what picks
between the new carry and the old one; only where it meets what a cell holds, and not where it was made in the size of
the units.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import jax

from core.contract.fates import PRODUCTS
from core.contract.masks import behind
from core.contract.record import CELLS
from core.contract.script_facts import ScriptFacts
from core.contract.step_values import carried_in, held
from core.contract.taken import target_of

#: Parts of names that say lengths; that mean examples and never units; that say a mask; that say it is one of units.
LENGTHS = frozenset({"len", "lens", "length", "lengths", "seqlen", "seqlens"})
EXAMPLES = frozenset(
    {"done", "dones", "reset", "resets", "terminal", "terminals", "terminated", "truncated", "episode", "finished",
     "valid", "pad", "pads", "padding", "padded", "alive", "ended"}
)  # fmt: skip
MASKS = frozenset({"mask", "masks", "keep", "valid", "on"})
UNITS = frozenset(
    {"feature", "features", "feat", "unit", "units", "hidden", "drop", "dropout", "zoneout", "channel", "channels",
     "neuron", "neurons", "weight", "weights", "dim", "dims", "gate", "lesion", "sparse", "sparsity", "prune", "delay",
     "delays", "period", "periods", "lag", "lags", "onset", "tau", "slot", "vocab", "vocabulary", "token", "key", "sensor",
     "action", "class"}
)  # fmt: skip
#: Sizes of units by name.
SIZES = frozenset({"h", "d", "hid", "size", "width"})
BATCHES = frozenset({"b", "batch", "bs", "bsz", "env", "envs", "n"})
#: Calls that make something else of an array.
BLANK = frozenset({"zeros_like", "ones_like", "full_like", "zeros", "ones", "full"})
DEEP = 6


def said(names: list[str]) -> set[str]:
    """The words of names, and those in the plural without their s."""
    words = {word.lower() for name in names for word in re.split(r"[_\d]+", name)}
    return words | {word[:-1] for word in words if word.endswith("s") and len(word) > 3}


def believed(facts: ScriptFacts, mask: ast.expr, meets: ast.expr) -> bool:
    """Whether the name of a mask that meets units there can be believed."""
    sides = _sides(meets, mask)
    if not any(_holds(facts, side) for side in sides):
        return False
    return _changes(facts, mask) or (_picks(facts, meets, sides) and not _sized_as_units(facts, mask))


def _sides(meets: ast.expr, mask: ast.expr) -> list[ast.expr]:
    """What a mask meets: the branches of ``where``, the other factor."""
    parts = list(meets.args) if isinstance(meets, ast.Call) else []
    if isinstance(meets, ast.BinOp):
        parts = [meets.left, meets.right]
    return [part for part in parts if part is not mask and not isinstance(part, ast.Starred)]


def _holds(facts: ScriptFacts, node: ast.expr, left: int = DEEP) -> bool:
    """Whether an expression is what a cell holds or gave, or is made of that without weights."""
    values: set[int] = facts.once(held) | facts.once(carried_in)
    if any(id(seen.value) in values for seen in facts.seen(node)):
        return True
    parts: list[ast.expr] = []
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
        parts = [node.left, node.right]
    elif isinstance(node, ast.UnaryOp):
        parts = [node.operand]
    elif isinstance(node, ast.Name):
        bound = target_of(facts, node)
        if bound is not None and any(isinstance(call.func, CELLS) for call in facts.calls_at(bound[1])):
            return True
        parts = [bound[1]] if bound is not None and isinstance(facts.source.parents.get(bound[0]), ast.Assign) else []
    elif isinstance(node, ast.Call):
        name = facts.source.dotted(node.func) or ""
        library = name.startswith(("jax.numpy.", "jax.nn.", "jax.lax.")) and name not in PRODUCTS
        parts = [a for a in node.args if library and name.rpartition(".")[2] not in BLANK]
    return left > 0 and any(_holds(facts, part, left - 1) for part in parts)


def _changes(facts: ScriptFacts, mask: ast.expr) -> bool:
    """Whether a mask is another one at each step: it is read from the xs or the carry, or made of what is."""
    todo, seen = [mask], set[ast.AST]()
    while todo and len(seen) < DEEP * DEEP:
        for name in _names(todo.pop(0)):
            if name in seen:
                continue
            seen.add(name)
            bound = target_of(facts, name)
            if bound is not None and isinstance(facts.source.parents.get(bound[0]), ast.Assign):
                todo.append(bound[1])
            elif _born_in_step(facts, name):
                return True
    return False


def _names(node: ast.expr) -> Iterator[ast.Name]:
    yield from (n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def _born_in_step(facts: ScriptFacts, name: ast.Name) -> bool:
    evaluations = facts.seen(name)
    for seen in evaluations:
        born = facts.born(seen.value) if isinstance(seen.value, jax.core.Tracer) else None
        if born is not None and born.scan is not None and born.scan == seen.scan:
            return True
    arrays = {id(s.value) for s in evaluations if s.scan is None and hasattr(s.value, "shape")}
    numbers = {s.value for s in evaluations if s.scan is None and type(s.value) is int}
    return len(arrays) > 1 or len(numbers) > 1


def _picks(facts: ScriptFacts, meets: ast.expr, sides: list[ast.expr]) -> bool:
    """``where(alive, new, h)``, ``alive * new + (1 - alive) * h``: between two things that a cell holds."""
    if isinstance(meets, ast.Call) and len(sides) == 2:
        return all(_holds(facts, side) for side in sides)
    around = facts.source.parents.get(meets)
    return (
        isinstance(around, ast.BinOp)
        and isinstance(around.op, ast.Add)
        and all(isinstance(side, ast.BinOp) and isinstance(side.op, ast.Mult) for side in (around.left, around.right))
    )


def _sized_as_units(facts: ScriptFacts, mask: ast.expr) -> bool:
    """Whether a mask was made in a size that a name says is that of the units."""
    names: list[str] = []
    for made in behind(facts, mask):
        if isinstance(made.node, ast.Attribute):
            names.append(made.node.attr)
        elif isinstance(made.node, ast.Name) and type(facts.value(made.node)) is int:
            names.append(made.node.id)
    words = said([re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name) for name in names])
    return bool(words & (SIZES | UNITS)) and not words & BATCHES
