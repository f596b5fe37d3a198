"""A key is used twice.

**What.** One key draws twice, or draws and is split as well: `x = normal(key)` and then `key, sub = split(key)`.

**Why.** What comes out of one key is not independent: two draws of one type are the same numbers, of two types they are
made of the same bits, and the keys of a split are made of the bits that were drawn.

**Bad**

    noise = jax.random.normal(key, (3,))
    key, sub = jax.random.split(key)        # of a key that is used up

**Good**

    key, sub = jax.random.split(key)
    noise = jax.random.normal(sub, (3,))

Each run of a function is looked at alone: `init(key)` called twice makes the same model twice, and that may be meant. So
may two identical draws, or two splits (a note), and nothing is said where they are compared with each other, or where
one key reorders two arrays alike. `fold_in(key, 1)` and `fold_in(key, 2)` are two keys.

Source: JAX documentation, "Pseudorandom numbers"; jax.experimental.key_reuse.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import combinations
from typing import Any

from jax import tree_util

from core.base.places import Because
from core.base.text import fill
from core.base.violation import Severity, TextEdit
from core.contract.keys_edit import FOLD, SPLIT, Spelling, free_names
from core.contract.keys_uses import UNISON, Use, looped, uses_of
from core.contract.origin import record_of
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.subject import Subject

MIXED = "{key} is used here by {second}, but {first} has used it already: what comes out of the two is not independent."
SAME = "{key} is used here by {second}, but {first} has used it already: both draw the very same numbers."
SPLIT_TWICE = "{key} is split here once more: keys of the two splits that stand at the same place are the same key."
AGAIN = "{key} is used by {second} in every round of the loop: each round draws the very same numbers."
#: The path of a finding that no finding about a step speaks for.
ELSEWHERE = "{key}, outside of steps"
BECAUSE = "first used here"
CLAIM = "The script was run and the uses of each key were counted: this many came after the key's first."
TITLE_SPLIT = "Split {key} first and give each use its own key"
TITLE_FOLD = "Fold another number into {key} for the second use"
TITLE_ROUND = "Split {key} in every round"
WHY = (
    "A key is to be used once: draws of one key are made of the same bits, and the keys that it is split into are made "
    "of the bits that were drawn."
)
#: Functions that ask whether two arrays are alike.
COMPARES = ("allclose", "array_equal", "array_equiv", "isclose", "equal", "not_equal")


def check(facts: ScriptFacts) -> Iterator[Finding]:
    """One finding for each key that is used again."""
    said: set[ast.AST] = set()
    for uses in facts.once(uses_of).values():
        pair = _worst(facts, uses)
        if pair is None or pair[1].call.node in said:
            continue
        said.add(pair[1].call.node)
        yield _finding(facts, uses, *pair)


def _worst(facts: ScriptFacts, uses: list[Use]) -> tuple[Use, Use, Severity] | None:
    """The first pair of uses with the most to say against it."""
    found = [(one, two, said) for one, two in combinations(uses, 2) if (said := _severity(facts, one, two)) is not None]
    return min(found, key=lambda f: f[2].rank, default=None)


def _severity(facts: ScriptFacts, one: Use, two: Use) -> Severity | None:
    if one.call.node is two.call.node:
        loop = looped(facts, one.call.node)
        if loop is None or one.splits or one.name is None:
            return None
        return Severity.WARNING if _carries(facts, one) else Severity.NOTE
    if one.name is None and two.name is None:
        return Severity.NOTE if ast.unparse(one.call.node.func) == ast.unparse(two.call.node.func) else Severity.WARNING
    if one.name in UNISON and two.name in UNISON:
        return None
    if one.splits and two.splits:
        return Severity.NOTE
    if one.drawn != two.drawn:
        return Severity.WARNING
    if _compared(facts, one.call.result, two.call.result):
        return None
    together = facts.source.statement(one.call.node) is facts.source.statement(two.call.node)
    return Severity.WARNING if together else Severity.NOTE


def _carries(facts: ScriptFacts, use: Use) -> bool:
    """Whether a round builds on the rounds before it: what it draws is added to a name, or appended to a list."""
    statement = facts.source.statement(use.call.node)
    if isinstance(statement, ast.AugAssign):
        return True
    if isinstance(statement, ast.Assign):
        stored = {n.id for t in statement.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        return any(isinstance(n, ast.Name) and n.id in stored for n in ast.walk(statement.value))
    return False


def _compared(facts: ScriptFacts, one: Any, two: Any) -> bool:
    """Whether the script asks if the two are alike."""
    for node in facts.nodes(ast.Compare):
        values = [s.value for part in (node.left, *node.comparators) for s in facts.seen(part)]
        if any(v is one for v in values) and any(v is two for v in values):
            return True
    for call in facts.record.calls:
        if call.name is not None and any(call.name.endswith(name) for name in COMPARES):
            leaves = tree_util.tree_leaves((call.args, dict(call.kwargs)))
            if any(v is one for v in leaves) and any(v is two for v in leaves):
                return True
    return False


def _finding(facts: ScriptFacts, uses: list[Use], one: Use, two: Use, severity: Severity) -> Finding:
    key = facts.source.text_of(two.key)
    again = one.call.node is two.call.node
    template = AGAIN if again else SPLIT_TWICE if one.splits and two.splits else MIXED
    if not again and one.name is not None and one.drawn == two.drawn and not one.splits:
        template = SAME
    names = {"first": facts.source.text_of(one.call.node.func), "second": facts.source.text_of(two.call.node.func)}
    return Finding(
        message=fill(template, key=key, **names),
        place=facts.span(two.call.node),
        because=None if again else Because(facts.span(one.call.node), BECAUSE),
        repairs=tuple(_repairs(facts, uses, one, two)),
        measure=Measure(CLAIM, _count),
        severity=severity,
        path=key if _in_steps(facts, one, two) else fill(ELSEWHERE, key=key),
    )


def _in_steps(facts: ScriptFacts, *uses: Use) -> bool:
    """Whether a use stands in a step or a loop: if its key is the same at each step, that is the graver fault (R401)."""
    return any(
        looped(facts, use.call.node) is not None
        or any(function in facts.steps for function in facts.source.enclosing(use.call.node))
        for use in uses
    )


def _count(subject: Subject) -> float:
    record = record_of(subject)
    return float(sum(len(uses) - 1 for uses in uses_of(ScriptFacts(record)).values()))


# --- repairs --------------------------------------------------------------------------------------------------------


def _repairs(facts: ScriptFacts, uses: list[Use], one: Use, two: Use) -> Iterator[Repair]:
    spelling, key = Spelling(facts), facts.source.text_of(two.key)
    if one.call.node is two.call.node:
        yield from _each_round(facts, one, key)
        return
    nodes = list(dict.fromkeys(use.key for use in uses))
    first = facts.source.statement(min(nodes, key=lambda n: (n.lineno, n.col_offset)))
    if first is not None and isinstance(two.key, ast.Name) and all(ast.unparse(n) == key for n in nodes):
        scope = facts.source.scope(two.key)
        names = free_names(scope, *(["sub"] if len(nodes) == 2 else [f"sub_{i + 1}" for i in range(len(nodes) - 1)]))
        count = "" if len(nodes) == 2 else f", {len(nodes)}"
        line = f"{key}, {', '.join(names)} = {spelling.of(SPLIT)}({key}{count})"
        swaps = [TextEdit(facts.span(node), name) for node, name in zip(nodes, names, strict=False)]
        yield facts.rewrites(
            fill(TITLE_SPLIT, key=key), facts.insert_before(first, line), *swaps, *spelling.imports(SPLIT)
        )
    folded = [TextEdit(facts.span(node), f"{spelling.of(FOLD)}({key}, {i + 1})") for i, node in enumerate(nodes[1:])]
    yield facts.rewrites(fill(TITLE_FOLD, key=key), *folded, *spelling.imports(FOLD))


def _each_round(facts: ScriptFacts, use: Use, key: str) -> Iterator[Repair]:
    spelling, loop = Spelling(facts), looped(facts, use.call.node)
    statement = facts.source.statement(use.call.node)
    if isinstance(loop, ast.For | ast.While) and statement is not None and isinstance(use.key, ast.Name):
        (name,) = free_names(facts.source.scope(use.key), "sub")
        line = f"{key}, {name} = {spelling.of(SPLIT)}({key})"
        swap = TextEdit(facts.span(use.key), name)
        yield facts.rewrites(
            fill(TITLE_ROUND, key=key), facts.insert_before(statement, line), swap, *spelling.imports(SPLIT)
        )
    elif isinstance(loop, ast.ListComp | ast.GeneratorExp) and isinstance(loop.generators[0].target, ast.Name):
        target = loop.generators[0].target
        text = f"{spelling.of(FOLD)}({key}, {target.id})"
        yield facts.rewrites(fill(TITLE_ROUND, key=key), TextEdit(facts.span(use.key), text), *spelling.imports(FOLD))


RULE = Rule(
    code="R402",
    name="key-used-twice",
    title="A key is used twice",
    severity=Severity.WARNING,
    jax=Jax.SILENT,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script"}),
)
