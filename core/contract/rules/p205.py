"""An array is assigned to in place, or the result of `.at[…].set(…)` is thrown away.

**What.** `x[i] = v`, `x[i] += v` or `del x[i]` on an array of JAX: it raises. Or `x.at[i].set(v)` stands alone: it
raises nothing and changes nothing.

**Why.** Arrays of JAX never change. `.at[i].set(v)` gives a new array, and only a name bound to that has the new value.

**Bad**

    def step(buf, x):
        buf.at[0].set(x)
        return buf, buf.sum()

**Good**

    def step(buf, x):
        buf = buf.at[0].set(x)
        return buf, buf.sum()

`x += 1` is fine: it binds the name to a new array. So is `.at[…].get()`, and an update alone on the last line of a
session, which shows it.

Source: JAX documentation, jax.numpy.ndarray.at, and "JAX arrays are immutable" in "Sharp bits".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from core.base.text import fill
from core.base.violation import Severity, TextEdit
from core.contract.p_effects import Effect
from core.contract.p_owners import declared_outside, owner_of
from core.contract.p_routes import in_carry
from core.contract.p_text import Ink, Writer, function_of, proposals, used_after
from core.contract.p_traced import statement_of
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Failure, ScriptRecord
from core.contract.subject import MISSING

ASSIGNED = "`{code}` is assigned to in place, but `{name}` is an array of JAX ({type}): arrays of JAX never change."
THROWN = "`{code}` gives a new array that nothing keeps: `{name}` stays as it is."
CLAIM = "`{code}` was compared with `{name}`; this is the largest difference that is thrown away."
WHY = "Arrays of JAX never change: .at[…].set(…) gives a new array, and only a name bound to that has the new value."
TITLE_AT = "Write {name} = {name}.at[…].{method}(…)"
TITLE_CARRY = "Keep {name} in the carry, and write {name}.at[…].{method}(…)"
TITLE_KEEP = "Bind {name} to the result"

#: Operators of ``x[i] op= v`` and the method of ``x.at[i]`` that does the same.
METHODS = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.Pow: "power"}
#: Methods of arrays that change a NumPy array in place, and only give a new one here.
SORTS = frozenset({"Array.sort"})
UPDATES = "Array.at."


def check(facts: ScriptFacts) -> Iterator[Finding]:
    """The assignment in which the script ended, and every update alone in its statement."""
    failure = facts.failure
    if failure is not None and isinstance(failure.error, TypeError | AttributeError):
        yield from _assigned(facts, failure)
    for statement in facts.nodes(ast.Expr):
        if isinstance(statement.value, ast.Call):
            yield from _thrown(facts, statement, statement.value)


# --- in place -------------------------------------------------------------------------------------------------------


def _assigned(facts: ScriptFacts, failure: Failure) -> Iterator[Finding]:
    target = _target(facts, failure)
    if target is None or not _is_array(facts.value(target.value, MISSING)):
        return
    name = facts.source.text_of(target.value)
    yield Finding(
        message=fill(ASSIGNED, code=facts.source.text_of(target), name=name, type=facts.aval(target.value)),
        place=facts.span(target),
        repairs=_in_place(facts, target),
        silent=False,
    )


def _target(facts: ScriptFacts, failure: Failure) -> ast.Subscript | None:
    """The item that was assigned to or deleted."""
    node = failure.node
    if isinstance(node, ast.Subscript):
        return None if isinstance(node.ctx, ast.Load) else node
    statement = statement_of(facts, failure)
    if node is None and isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Subscript):
        return statement.target
    return None


def _is_array(value: Any) -> bool:
    return isinstance(value, jax.Array | jax.core.Tracer | jax.ShapeDtypeStruct) and not isinstance(value, np.ndarray)


def _in_place(facts: ScriptFacts, target: ast.Subscript) -> tuple[Repair, ...]:
    statement = facts.source.statement(target)
    method = METHODS.get(type(statement.op), "set") if isinstance(statement, ast.AugAssign) else "set"
    name = facts.source.text_of(_base(Ink(facts), target)[0])
    writers: list[tuple[str, Writer]] = [
        (fill(TITLE_AT, name=name, method=method), lambda ink: _updated(ink, target, statement)),
        (fill(TITLE_CARRY, name=name, method=method), lambda ink: _carried(ink, target, statement)),
    ]
    return proposals(facts, *writers)


def _updated(ink: Ink, target: ast.Subscript, statement: ast.stmt | None) -> list[TextEdit]:
    """``x[i] = v`` as ``x = x.at[i].set(v)``."""
    holder, index = _base(ink, target)
    name = ink.text(holder)
    if isinstance(statement, ast.Delete) and len(statement.targets) == 1 and holder is target.value:
        if isinstance(target.slice, ast.Tuple | ast.Slice):
            return []
        return [ink.put(statement, f"{name} = {ink.name('jax.numpy.delete')}({name}, {index}, axis=0)")]
    if isinstance(statement, ast.AugAssign) and statement.target is target:
        method, value = METHODS.get(type(statement.op)), ink.argument(statement.value)
        if method is None:
            sign = ast.unparse(ast.BinOp(ast.Name("a"), statement.op, ast.Name("b")))[2:-2]
            method, value = "set", f"{ink.text(target)} {sign} {ink.atom(statement.value)}"
        return [ink.put(statement, f"{name} = {ink.atom(holder)}.at[{index}].{method}({value})")]
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return []
    if statement.targets[0] is target:
        return [ink.put(statement, f"{name} = {ink.atom(holder)}.at[{index}].set({ink.argument(statement.value)})")]
    return _several(ink, statement)


def _several(ink: Ink, statement: ast.Assign) -> list[TextEdit]:
    """``x[i], x[j] = x[j], x[i]``: the values first, then one update after the other."""
    targets, values = statement.targets[0], statement.value
    if not isinstance(targets, ast.Tuple) or not isinstance(values, ast.Tuple) or len(targets.elts) != len(values.elts):
        return []
    if not all(isinstance(t, ast.Subscript) and isinstance(t.value, ast.Name) for t in targets.elts):
        return []
    scope, pad = ink.source.scope(statement), ink.pad(statement)
    names = [ink.free(scope, "value") for _ in values.elts]
    lines = [f"{', '.join(names)} = {', '.join(ink.argument(v) for v in values.elts)}"]
    for target, name in zip(targets.elts, names, strict=True):
        if isinstance(target, ast.Subscript):
            holder = ink.text(target.value)
            lines.append(f"{holder} = {holder}.at[{ink.text(target.slice)}].set({name})")
    return [ink.put(statement, f"\n{pad}".join(lines))]


def _base(ink: Ink, target: ast.Subscript) -> tuple[ast.expr, str]:
    """The array and the index: of ``x[i][j]`` the array is x and the index ``i, j`` (i is one number)."""
    holder, index = target.value, ink.text(target.slice)
    while isinstance(holder, ast.Subscript) and _is_array(ink.facts.value(holder.value, MISSING)):
        if isinstance(holder.slice, ast.Slice | ast.Tuple):
            break
        index = f"{ink.text(holder.slice)}, {index}"
        holder = holder.value
    return holder, index


def _carried(ink: Ink, target: ast.Subscript, statement: ast.stmt | None) -> list[TextEdit]:
    """The same for an array of the scope around the scan: the step cannot rebind that, so it is carried."""
    function = function_of(ink.source, target)
    if function is None or not isinstance(target.value, ast.Name) or statement is None:
        return []
    name = target.value
    if owner_of(ink.facts, function, name.id) is function and not declared_outside(ink.facts, function, name.id):
        return []
    seen = [s for n in ast.walk(statement) for s in ink.facts.seen(n) if s.traced]
    if not seen:
        return []
    effect = Effect("array", name, statement, function, name, None, (), seen[-1].scan, seen[-1].order)
    update, carry = _updated(ink, target, statement), in_carry(ink, effect)
    return [*carry, *update] if update and carry else []


# --- thrown away ----------------------------------------------------------------------------------------------------


def _thrown(facts: ScriptFacts, statement: ast.Expr, call: ast.Call) -> Iterator[Finding]:
    made = [c for c in facts.calls_at(call) if c.name is not None and c.result is not MISSING and _is_array(c.result)]
    name = made[-1].name if made else None
    updates = name is not None and name.startswith(UPDATES) and name != "Array.at.get"
    if not made or not (updates or name in SORTS) or not isinstance(call.func, ast.Attribute):
        return
    holder = _updated_array(call) if updates else call.func.value
    if holder is None:
        return
    text = facts.source.text_of(holder)
    code = facts.source.text_of(call)
    yield Finding(
        message=fill(THROWN, code=code, name=text),
        place=facts.span(call),
        repairs=proposals(
            facts,
            (fill(TITLE_KEEP, name=text), lambda ink: _kept(ink, statement, holder, text)),
            (
                fill(TITLE_CARRY, name=text, method=call.func.attr),
                lambda ink: _kept_in_carry(ink, statement, holder, text),
            ),
        ),
        severity=Severity.WARNING if _matters(facts, statement) else Severity.NOTE,
        silent=True,
        measure=Measure(fill(CLAIM, code=code, name=text), _difference),
    )


def _updated_array(call: ast.Call) -> ast.expr | None:
    """The array of ``x.at[i].set(v)``."""
    item = call.func.value if isinstance(call.func, ast.Attribute) else None
    at = item.value if isinstance(item, ast.Subscript) else None
    return at.value if isinstance(at, ast.Attribute) and at.attr == "at" else None


def _kept(ink: Ink, statement: ast.Expr, holder: ast.expr, text: str) -> list[TextEdit]:
    plain = isinstance(holder, ast.Name | ast.Attribute | ast.Subscript)
    if isinstance(holder, ast.Subscript) and _is_array(ink.facts.value(holder.value, MISSING)):
        return []
    return [ink.put(statement, f"{text} = {ink.text(statement.value)}")] if plain else []


def _kept_in_carry(ink: Ink, statement: ast.Expr, holder: ast.expr, text: str) -> list[TextEdit]:
    function = function_of(ink.source, statement)
    if function is None or not isinstance(holder, ast.Name) or owner_of(ink.facts, function, holder.id) is function:
        return []
    seen = [s for n in ast.walk(statement) for s in ink.facts.seen(n) if s.traced]
    if not seen:
        return []
    effect = Effect("array", holder, statement, function, holder, None, (), seen[-1].scan, seen[-1].order)
    carry = in_carry(ink, effect)
    return [*carry, *_kept(ink, statement, holder, text)] if carry else []


def _matters(facts: ScriptFacts, statement: ast.Expr) -> bool:
    """Whether the array is used afterwards, or in a function: alone at the end of a session an update is shown."""
    if function_of(facts.source, statement) is not None:
        return True
    call = statement.value
    holder = _updated_array(call) if isinstance(call, ast.Call) else None
    if holder is None and isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        holder = call.func.value
    base = holder
    while isinstance(base, ast.Attribute | ast.Subscript):
        base = base.value
    return isinstance(base, ast.Name) and base.id in used_after(facts.source, statement)


def _difference(record: ScriptRecord) -> float:
    """The largest difference between an update that is thrown away and the array it was made of."""
    facts = ScriptFacts(record)
    largest, known = 0.0, False
    found = False
    for statement in facts.nodes(ast.Expr):
        call = statement.value
        if not isinstance(call, ast.Call) or not any(True for _ in _thrown(facts, statement, call)):
            continue
        found = True
        holder = _updated_array(call) or (call.func.value if isinstance(call.func, ast.Attribute) else call)
        before, after = facts.value(holder, MISSING), facts.value(call, MISSING)
        if isinstance(before, jax.Array) and isinstance(after, jax.Array) and not isinstance(before, jax.core.Tracer):
            apart = np.abs(np.asarray(after, np.float64) - np.asarray(before, np.float64))
            largest, known = max(largest, float(apart.max(initial=0.0))), True
    if found and not known:
        raise ValueError("there are no values")
    return largest


RULE = Rule(
    code="P205",
    name="array-assigned-in-place",
    title="An array is assigned to in place, or an update is thrown away",
    severity=Severity.ERROR,
    jax=Jax.BOTH,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script"}),
)
