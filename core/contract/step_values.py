"""What the steps of a script's scans are given and hold, by identity: leaves of xs, carries, what cells gave (L312)."""

from __future__ import annotations

import ast
from typing import Any

import jax
from jax import tree_util

from core.contract.layer_calls import carry_leaves
from core.contract.masks import runs
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import ScanSite
from core.contract.source import Function, parameters
from core.contract.steps import steps_of


def scans_of(facts: ScriptFacts, node: ast.expr) -> set[int | None]:
    """The scans in whose steps an expression was evaluated; the parts of one that raised tell it too."""
    return {seen.scan for part in ast.walk(node) if isinstance(part, ast.expr) for seen in facts.seen(part)} - {None}


def cells_of(facts: ScriptFacts) -> dict[int, set[int | None]]:
    """By batch, the scans that step a cell with it."""
    out: dict[int, set[int | None]] = {}
    for site, use in steps_of(facts):
        if site is not None and use.batch is not None and len(use.batch) == 1:
            out.setdefault(use.batch[0], set()).add(site.index)
    return out


def held(facts: ScriptFacts) -> set[int]:
    """Identities of all that cells were given and gave as carries, and layers as final carries."""
    trees: list[Any] = [(e.carry, e.result) for e in facts.cells.steps]
    trees += [carry_leaves(run.call) for run in runs(facts)]
    return {id(leaf) for tree in trees for leaf in tree_util.tree_leaves(tree)}


def carried_in(facts: ScriptFacts) -> set[int]:
    """Identities of the leaves of carries that steps were given."""
    out: set[int] = set()
    for step, sites in facts.steps.items():
        name, scans = _parameter(step, 0), {site.index for site in sites}
        for read in facts.nodes(ast.Name):
            if read.id == name and _in(facts, read, step):
                seen = [s.value for s in facts.seen(read) if s.scan in scans]
                out |= {id(leaf) for value in seen for leaf in tree_util.tree_leaves(value)}
    return out


def leaf_of(facts: ScriptFacts, value: Any) -> tuple[ScanSite, int] | None:
    """The scan, and which leaf of its xs, a traced value is one step of."""
    if not isinstance(value, jax.core.Tracer):
        return None
    return facts.once(_leaves).get(id(value))


def _leaves(facts: ScriptFacts) -> dict[int, tuple[ScanSite, int]]:
    out: dict[int, tuple[ScanSite, int]] = {}
    for step, sites in facts.steps.items():
        name = _parameter(step, 1)
        reads = [n for n in facts.nodes(ast.Name) if n.id == name and _in(facts, n, step)]
        for site in sites:
            count = len(site.facts.xs_types)
            for read in reads:
                for seen in facts.seen(read):
                    leaves = tree_util.tree_leaves(seen.value)
                    if seen.scan == site.index and len(leaves) == count:
                        out |= {id(leaf): (site, i) for i, leaf in enumerate(leaves)}
    return out


def xs_leaf(site: ScanSite, index: int) -> Any:
    """A leaf of a scan's xs; None where there is none."""
    leaves = tree_util.tree_leaves(site.call.xs)
    return leaves[index] if index < len(leaves) else None


def written(facts: ScriptFacts, site: ScanSite, index: int) -> ast.expr | None:
    """The expression of a leaf of xs, where the call writes a flat tuple, or xs is the one leaf."""
    xs = site.arguments.get("xs")
    if xs is None:
        return None
    xs = xs if len(site.facts.xs_types) == 1 else facts.source.resolve(xs)
    if isinstance(xs, ast.Tuple | ast.List) and len(xs.elts) == len(site.facts.xs_types):
        return xs.elts[index]
    if isinstance(xs, ast.Dict) and len(xs.values) == len(site.facts.xs_types):
        keys = [k.value for k in xs.keys if isinstance(k, ast.Constant)]
        ordered = [xs.values[i] for i in sorted(range(len(keys)), key=lambda i: str(keys[i]))]
        return ordered[index] if len(keys) == len(xs.values) else None
    return xs if len(site.facts.xs_types) == 1 else None


def _parameter(step: Function, index: int) -> str | None:
    names = [a.arg for a in parameters(step) if a.arg != "self"]
    return names[index] if len(names) > index else None


def _in(facts: ScriptFacts, node: ast.AST, step: Function) -> bool:
    return any(f is step for f in facts.source.enclosing(node))
