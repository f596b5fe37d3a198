"""An index out of bounds.

**What.** An element is read, written or sliced at an index that its axis does not have. Python and NumPy raise an
IndexError; JAX says nothing: a read takes the nearest element, a write vanishes, `jnp.take` gives NaN (of whole numbers,
the smallest there is), a dynamic slice is moved until it fits.

**Why.** A program that runs on an accelerator cannot raise in the middle. What happens outside is a rule instead, and
`mode=` chooses it.

**Bad**

    x = jnp.array([1., 2., 3.])
    x[3]                                  # 3.0
    x.at[3].set(9.)                       # unchanged
    jnp.take(x, 3)                        # nan

**Good**

    x[-1]
    x.at[3].get(mode="fill", fill_value=0.)

Negative indices count from the end, and are fine as far as they go. Indices that a step or a jitted function computes
are checked with the numbers that they had. A `mode=` that is written out says what is meant; so does a `where` or a
branch around the read, and a `where` that makes the index of a write.

Source: JAX documentation, "Common gotchas", out-of-bounds indexing; `jax.numpy.ndarray.at`; run on JAX 0.11.2.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from core.base.text import fill
from core.base.violation import Severity, TextEdit
from core.contract.index_trace import traced_anew
from core.contract.indexing import Kind, Outside, at_of, known_outside, traced_uses, uses
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import ScriptRecord

AXIS = "{expression} uses index {index}{step}, and the axis has {size} entries (0 to {last}): "
CLAMPED = "JAX reads entry {taken} instead."
FILLED = "JAX gives {filler} instead."
DROPPED = "JAX writes nothing there."
WINDOW = "{expression} takes {window} entries from {index} on{step}, and the axis has {size}: JAX moves it to begin at {taken}."
AT_STEP = " at step {step}"
NAN = "NaN"
SMALLEST = "the smallest whole number of its type"
TRUE = "True"
WHY = "JAX raises at no index: outside, a read takes the nearest entry and a write is dropped, unless `mode` says otherwise."
CLAIM = "So many of the indices used here lie outside of their axis, with no mode that says what is meant."
TITLE_LAST = "Take the last entry: index -1"
TITLE_CLIP = 'Say that the nearest entry is meant: mode="clip"'
TITLE_FILL = 'Read NaN outside: mode="fill"'
TITLE_DROP = 'Say that writes outside are dropped: mode="drop"'


def check(facts: ScriptFacts) -> Iterator[Finding]:
    """A finding for each expression that used an index out of bounds."""
    for one in facts.once(_all_outside):
        yield Finding(
            message=_message(facts, one),
            place=facts.span(one.node),
            repairs=tuple(_repairs(facts, one)),
            measure=Measure(CLAIM, partial(_count, facts, facts.source.text_of(one.node))),
            severity=Severity.WARNING,
            silent=True,
        )


def _all_outside(facts: ScriptFacts) -> list[Outside]:
    found = uses(facts)
    out = {node: known_outside(facts, node, kind) for node, kind in found}
    if not facts.record.abstract:
        rest = {node: kind for node, kind in found if out[node] is None}
        traced = list(traced_uses(facts, list(rest.items())))
        for one in traced_anew(facts, traced, rest) if traced else ():
            out[one.node] = out[one.node] or one
    return [one for one in out.values() if one is not None]


def _count(known: ScriptFacts, text: str, record: ScriptRecord) -> float:
    """Indices outside at expressions of this text, in the script as it was found or in a mended one."""
    facts = known if record is known.record else ScriptFacts(record)
    return float(sum(one.count for one in facts.once(_all_outside) if facts.source.text_of(one.node) == text))


def _message(facts: ScriptFacts, one: Outside) -> str:
    step = "" if one.step is None else fill(AT_STEP, step=one.step)
    last = one.size - one.window
    index = one.index + one.size if one.index < 0 <= one.index + one.size else one.index
    fields = {
        "expression": facts.source.text_of(one.node),
        "index": one.index,
        "step": step,
        "size": one.size,
        "last": one.size - 1,
        "window": one.window,
        "taken": min(max(index, 0), last),
    }
    if one.kind is Kind.MOVED:
        return fill(WINDOW, **fields)
    effect = {Kind.CLAMPED: CLAMPED, Kind.FILLED: FILLED, Kind.DROPPED: DROPPED}[one.kind]
    return fill(AXIS, **fields) + fill(effect, filler=_filler(facts, one.node), **fields)


def _filler(facts: ScriptFacts, node: ast.expr) -> str:
    aval = facts.aval(node)
    dtype = "float32" if aval is None else aval.dtype
    return fill(TRUE if dtype == "bool" else SMALLEST if dtype.startswith("int") else NAN)


def _repairs(facts: ScriptFacts, one: Outside) -> Iterator[Repair]:
    """The last entry, where the index is one too far as written; else the mode that JAX uses, written out."""
    node = one.node
    if one.kind is Kind.MOVED:
        return
    if isinstance(node, ast.Subscript):
        if isinstance(node.slice, ast.Constant) and one.index == one.size:
            yield facts.rewrite(TITLE_LAST, node.slice, "-1")
        base, index = facts.source.text_of(node.value), facts.source.text_of(node.slice)
        for title, mode in ((TITLE_CLIP, '"clip"'), (TITLE_FILL, '"fill"')):
            yield facts.rewrite(title, node, f"{base}.at[{index}].get(mode={mode})")
        return
    if not isinstance(node, ast.Call):
        return
    read = one.kind is Kind.FILLED or (at_of(node) is not None and one.kind is Kind.CLAMPED)
    modes = ((TITLE_CLIP, '"clip"'), (TITLE_FILL, '"fill"')) if read else ((TITLE_DROP, '"drop"'),)
    for title, mode in modes if at_of(node) is not None or one.kind is Kind.FILLED else ():
        end = facts.span(node)
        comma = ", " if node.args or node.keywords else ""
        spot = type(end)(end.end_line, end.end_col - 1, end.end_line, end.end_col - 1)
        yield facts.rewrites(title, TextEdit(spot, f"{comma}mode={mode}"))


RULE = Rule(
    code="P206",
    name="index-out-of-bounds",
    title="An index out of bounds",
    severity=Severity.WARNING,
    jax=Jax.SILENT,
    stage=Stage.RUN,
    why=WHY,
    check=check,
    on=frozenset({"script"}),
)
