"""Repairs of a key that is the same at every step: a key for each step through xs, a split at each step, a fold."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import jax
import numpy as np
from jax import tree_util

from core.base.text import fill
from core.base.violation import TextEdit
from core.contract import keys_edit
from core.contract.keys_edit import FOLD, SPLIT, Spelling, key_argument
from core.contract.keys_same import Body, Same
from core.contract.rngs import is_key
from core.contract.rule import Repair
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import LoopSite, ScanSite

TITLE_XS = "Split the key before the scan and give each step its own"
TITLE_CARRY = "Split the key at every step and hand on the new one"
TITLE_FOLD = "Fold the step's number into the key"
TITLE_ROWS = "Split the key into one for each step"
_NO_USE = frozenset({"jax.random.key", "jax.random.PRNGKey", "jax.random.key_data"})
#: Functions that make one array of keys of one key, all alike.
REPEATS = frozenset(
    {"jax.numpy.stack", "jax.numpy.tile", "jax.numpy.repeat", "jax.numpy.broadcast_to", "jax.numpy.array"}
)


def repairs_of(facts: ScriptFacts, same: Same, key: ast.expr | None) -> Iterator[Repair]:
    """What may give each step a key of its own; `key` is the key where it is used first."""
    body = same.body
    key = None if key is None else _in_step(facts, same, key)
    if key is None or body.function is None:
        return
    deps = same.deps
    if deps & body.rows:
        yield from _rows(facts, body)
    elif deps:
        yield from _split_in_step(facts, body, key)
    else:
        yield from _fold(facts, body, key)
        if isinstance(body.site, ScanSite):
            yield from _through_xs(facts, body, body.site, key)


def _uses(facts: ScriptFacts, body: Body, key: ast.expr) -> list[ast.expr]:
    """The arguments, written like this one, of all calls in the step that use such a key first."""
    text = ast.unparse(key)
    spans = {d.used for d in body.flow.draws if d.deps <= body.still}
    nodes = [key, *(key_argument(facts.source.expression(span)) for span in spans)]
    mine = [n for n in nodes if n is not None and ast.unparse(n) == text and keys_edit.inside(facts, n, body.function)]
    return sorted(dict.fromkeys(mine), key=lambda n: (n.lineno, n.col_offset))


def _in_step(facts: ScriptFacts, same: Same, key: ast.expr) -> ast.expr | None:
    """The key as the step itself writes it: its own argument, or what it gives to a function that draws for it."""
    function = same.body.function
    if keys_edit.inside(facts, key, function):
        return key
    for span in (s for i in same.draws for s in same.body.flow.draws[i].through):
        call = facts.source.expression(span)
        if isinstance(call, ast.Call) and keys_edit.inside(facts, call, function):
            given = [*call.args, *(k.value for k in call.keywords)]
            return next((a for a in given if not isinstance(a, ast.Starred) and is_key(facts.value(a))), None)
    return None


def _fold(facts: ScriptFacts, body: Body, key: ast.expr) -> Iterator[Repair]:
    """``fold_in(key, t)``, where the step has a whole number of its own."""
    counter = _counter(body)
    if counter is None or _rebinding(body, key) is not None:
        return
    spelling = Spelling(facts)
    fold = spelling.of(FOLD)
    one = f"{fold}({facts.source.text_of(key)}, {counter})"
    texts = (one if i == 0 else f"{fold}({one}, {i})" for i in range(len(_uses(facts, body, key))))
    swaps = [TextEdit(facts.span(n), text) for n, text in zip(_uses(facts, body, key), texts, strict=True)]
    yield facts.rewrites(fill(TITLE_FOLD), *swaps, *spelling.imports(FOLD))


def _counter(body: Body) -> str | None:
    function = body.function
    if function is None:
        return None
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    if isinstance(body.site, LoopSite):
        return names[-2] if len(body.site.inputs) == 2 and len(names) >= 2 else None
    leaves = tree_util.tree_leaves(body.site.call.xs)
    x = keys_edit.x_parameter(function)
    if x is None or len(leaves) != 1 or body.site.call.xs is not leaves[0] or isinstance(leaves[0], jax.core.Tracer):
        return None
    rows = np.asarray(leaves[0]) if hasattr(leaves[0], "dtype") and leaves[0].ndim == 1 else np.zeros(0)
    return x.arg if rows.dtype.kind in "iu" and len(np.unique(rows)) == len(rows) > 0 else None


def _through_xs(facts: ScriptFacts, body: Body, site: ScanSite, key: ast.expr) -> Iterator[Repair]:
    """The key split outside, one for each step among xs."""
    count = keys_edit.count_text(facts, site)
    if count is None or body.function is None or site.node is None:
        return
    spelling, text = Spelling(facts), facts.source.text_of(key)
    split = spelling.of(SPLIT)
    rebinding = _rebinding(body, key)
    again = isinstance(key, ast.Name) and _used_elsewhere(facts, body, key)
    statement = facts.source.statement(site.node)
    (scan_key,) = keys_edit.free_names(facts.source.tree, "scan_key")
    before: tuple[TextEdit, ...] = ()
    uses = _uses(facts, body, key)
    count = count if len(uses) == 1 else f"({count}, {len(uses)})"
    keys = f"{split}({text}, {count})"
    if again and statement is not None:
        before = (facts.insert_before(statement, f"{text}, {scan_key} = {split}({text})"),)
        keys = f"{split}({scan_key}, {count})"
    for name, edits in keys_edit.keys_through_xs(facts, site, keys, "step_key"):
        if rebinding is not None:
            own: tuple[TextEdit, ...] = (TextEdit(facts.span(rebinding), f"{text} = {name}"),)
        elif stored := _stored(body, key):
            inside = [*uses, *(n for n in stored if n not in uses)]
            own = tuple(TextEdit(facts.span(n), name) for n in inside)
        else:
            names = [name] if len(uses) == 1 else [f"{name}[{i}]" for i in range(len(uses))]
            own = tuple(TextEdit(facts.span(n), mine) for n, mine in zip(uses, names, strict=True))
        yield facts.rewrites(fill(TITLE_XS), *before, *edits, *own, *spelling.imports(SPLIT))


def _rebinding(body: Body, key: ast.expr) -> ast.stmt | None:
    """The ``global key`` (or ``nonlocal``) of a step that assigns to the key it closes over."""
    if not isinstance(key, ast.Name) or body.function is None:
        return None
    for node in ast.walk(body.function):
        if isinstance(node, ast.Global | ast.Nonlocal) and node.names == [key.id]:
            return node
    return None


def _stored(body: Body, key: ast.expr) -> list[ast.expr]:
    """Where a step assigns to what it reads the key from: ``self.key, sub = split(self.key)``."""
    if isinstance(key, ast.Name) or body.function is None:
        return []
    text = ast.unparse(key)
    found = [
        n for n in ast.walk(body.function) if isinstance(n, ast.Attribute | ast.Subscript) and ast.unparse(n) == text
    ]
    return list(found) if any(isinstance(n.ctx, ast.Store) for n in found) else []


def _used_elsewhere(facts: ScriptFacts, body: Body, key: ast.Name) -> bool:
    """Whether a call outside of the step takes a key by the same name."""
    for call in facts.calls_of("jax.random."):
        given = key_argument(call.node)
        inside = keys_edit.inside(facts, call.node, body.function)
        if not inside and isinstance(given, ast.Name) and given.id == key.id and call.name not in (FOLD, *_NO_USE):
            return True
    return False


def _split_in_step(facts: ScriptFacts, body: Body, key: ast.expr) -> Iterator[Repair]:
    """``key, sub = split(key)`` at each step; the new key goes on in the carry."""
    spelling, text = Spelling(facts), facts.source.text_of(key)
    split = spelling.of(SPLIT)
    function = body.function
    uses = [n for n in _uses(facts, body, key) if facts.source.scope(n) is function]
    statements = [s for s in map(facts.source.statement, uses) if s is not None]
    if not uses or not isinstance(function, ast.FunctionDef):
        return
    subs = keys_edit.free_names(function, *(f"draw_key_{i}" if len(uses) > 1 else "draw_key" for i in range(len(uses))))
    uses.sort(key=lambda n: (n.lineno, n.col_offset))
    first = min(statements, key=lambda s: s.lineno)
    count = f", {len(uses) + 1}" if len(uses) > 1 else ""
    swaps = [TextEdit(facts.span(n), sub) for n, sub in zip(uses, subs, strict=True)]
    if isinstance(key, ast.Name):
        line = f"{text}, {', '.join(subs)} = {split}({text}{count})"
        yield facts.rewrites(fill(TITLE_CARRY), facts.insert_before(first, line), *swaps, *spelling.imports(SPLIT))
        return
    (new,) = keys_edit.free_names(function, "new_key")
    line = f"{new}, {', '.join(subs)} = {split}({text}{count})"
    handed = [n for r in facts.source.all_returned(function) for n in ast.walk(r)
              if isinstance(n, ast.expr) and ast.unparse(n) == ast.unparse(key)]  # fmt: skip
    if handed:
        back = keys_edit.replaced(facts, handed, new)
        yield facts.rewrites(
            fill(TITLE_CARRY), facts.insert_before(first, line), *swaps, *back, *spelling.imports(SPLIT)
        )


def _rows(facts: ScriptFacts, body: Body) -> Iterator[Repair]:
    """Where xs is one key repeated: `split` instead."""
    site = body.site
    if not isinstance(site, ScanSite) or "xs" not in site.arguments:
        return
    spelling, count = Spelling(facts), site.facts.length
    whole = facts.source.resolve(site.arguments["xs"])
    for node in ast.walk(whole):
        made = facts.source.resolve(node) if isinstance(node, ast.Name) else node
        if not isinstance(made, ast.Call) or facts.source.dotted(made.func) not in REPEATS or not made.args:
            continue
        key = next((n for n in ast.walk(made.args[0]) if isinstance(n, ast.expr) and is_key(facts.value(n))), None)
        if key is not None:
            text = f"{spelling.of(SPLIT)}({facts.source.text_of(key)}, {count})"
            yield facts.rewrites(fill(TITLE_ROWS), TextEdit(facts.span(made), text), *spelling.imports(SPLIT))
            return
