"""Repairs of side effects: out of the step as y, in the carry, printed by JAX, computed outside of the trace."""

from __future__ import annotations

import ast

from core.base.violation import TextEdit
from core.contract.p_effects import Effect
from core.contract.p_print import debug_print
from core.contract.p_routes import as_y, in_carry
from core.contract.p_text import Ink, either, proposals, rest_of
from core.contract.rule import Repair
from core.contract.script_facts import ScriptFacts

TITLE_Y = "Return it as y and read ys after the scan"
TITLE_CARRY = "Keep it in the carry"
TITLE_PRINT = "Print with jax.debug.print, at every step"
TITLE_OUTSIDE = "Compute the cached value outside of the trace"
BARRIER = "jax.effects_barrier"


def repairs_of(facts: ScriptFacts, effect: Effect) -> tuple[Repair, ...]:
    """What may mend an effect."""
    if effect.kind == "print":
        return either(
            facts,
            TITLE_PRINT,
            lambda ink: _printed(ink, effect, barrier=True, ordered=True),
            lambda ink: _printed(ink, effect, barrier=False, ordered=True),
            lambda ink: _printed(ink, effect, barrier=False, ordered=False),
        )
    if effect.kind == "cached":
        return proposals(facts, (TITLE_OUTSIDE, lambda ink: _outside(ink, effect)))
    return proposals(facts, (TITLE_Y, lambda ink: as_y(ink, effect)), (TITLE_CARRY, lambda ink: in_carry(ink, effect)))


def _printed(ink: Ink, effect: Effect, *, barrier: bool, ordered: bool) -> list[TextEdit]:
    """The print, and after a scan that is not traced itself the wait for its last line."""
    if not isinstance(effect.node, ast.Call):
        return []
    edits = debug_print(ink, effect.node, ordered=ordered)
    if not barrier or not edits:
        return edits
    site = None if effect.scan is None else ink.facts.scans[effect.scan]
    while site is not None and site.parent is not None:
        site = ink.facts.scans[site.parent]
    statement = None if site is None or site.node is None or site.traced else ink.source.statement(site.node)
    if not isinstance(statement, ast.Assign | ast.Expr) or _waits(ink, statement):
        return []
    return [*edits, ink.after(statement, f"{ink.name(BARRIER)}()")]


def _waits(ink: Ink, statement: ast.stmt) -> bool:
    """Whether the next statement waits for prints already."""
    following = rest_of(ink.source, statement)[:1]
    call = following[0].value if following and isinstance(following[0], ast.Expr) else None
    return isinstance(call, ast.Call) and ink.source.dotted(call.func) == BARRIER


def _outside(ink: Ink, effect: Effect) -> list[TextEdit]:
    """The body of the memoised function under ``jax.ensure_compile_time_eval()``."""
    name = effect.holder.id if isinstance(effect.holder, ast.Name) else ""
    made = [n for n in ink.facts.nodes(ast.FunctionDef) if n.name == name]
    if len(made) != 1:
        return []
    body = made[0].body
    if ast.get_docstring(made[0]) is not None:
        body = body[1:]
    if not body:
        return []
    pad = ink.pad(body[0])
    text = ink.block(body, pad + "    ")
    return [TextEdit(ink.span_of(body), f"with {ink.name('jax.ensure_compile_time_eval')}():\n{text}")]
