"""A tracer leaks out of the step, and is used when its trace is over.

**What.** The step puts a traced value where it outlives the step: a global or nonlocal name (a key that it splits, say),
a list, a dict, an attribute, a memoised function's cache. Later something outside uses it.

**Why.** A traced value is a placeholder in one program. When the step has been traced there is nothing behind it: JAX
raises where it is used, perhaps many lines away, perhaps in the next scan. What has to leave the step leaves as y; what
has to come back at the next step is in the carry.

**Bad**

    def step(carry, _):
        global key
        key, sub = jax.random.split(key)
        return carry + jax.random.normal(sub), None

**Good**

    def step(carry, _):
        carry, key = carry
        key, sub = jax.random.split(key)
        return (carry + jax.random.normal(sub), key), None

A leaked value that nothing uses is P204: the side effect itself.

Source: JAX documentation, "JAX errors": UnexpectedTracerError.
"""

from __future__ import annotations

from collections.abc import Iterator

import jax

from core.base.places import Because
from core.base.text import fill
from core.base.violation import Severity
from core.contract.p_effects import Effect, path_of
from core.contract.p_repairs import repairs_of
from core.contract.p_traced import dead_operands
from core.contract.p_uses import Use, leaks
from core.contract.rule import Finding, Jax, Rule, Stage
from core.contract.script_facts import ScriptFacts

NAMED = "`{code}` keeps a traced value of {step} after its trace is over, and `{use}` uses it."
STORED = "`{code}` puts a traced value of {step} where it outlives its trace, and `{use}` uses it."
CACHED = "`{code}` was computed while {step} was traced, and its cache gives the same traced value to `{use}`."
UNKNOWN = "`{use}` uses a traced value whose trace is over."
BECAUSE = "it is used here"
STEP = "the step"
WHY = (
    "A traced value is a placeholder in one program; when its trace is over there is nothing behind it. What has to leave "
    "the step leaves as y, and what the next step needs is in the carry."
)


def check(facts: ScriptFacts) -> Iterator[Finding]:
    """Each leak that is used; and a use of a dead tracer that nothing explains."""
    raised = False
    for effect, use in facts.once(leaks):
        if use is not None:
            raised = raised or use.raises
            yield _finding(facts, effect, use)
    failure = facts.failure
    if failure is None or raised:
        return
    if isinstance(failure.error, jax.errors.UnexpectedTracerError) or dead_operands(facts, failure):
        node = failure.node
        text = facts.source.text_of(node) if node is not None else facts.source.lines[failure.span.line - 1].strip()
        found = {id(t) for t in dead_operands(facts, failure)}
        leak = next((k for k in facts.leaks if id(k.value) in found and k.span is not None), None)
        place = failure.span if leak is None else leak.span
        because = None if leak is None else Because(failure.span, BECAUSE)
        yield Finding(message=fill(UNKNOWN, use=text), place=place, because=because)


def _finding(facts: ScriptFacts, effect: Effect, use: Use) -> Finding:
    templates = {"name": NAMED, "attribute": NAMED, "item": NAMED, "cached": CACHED}
    return Finding(
        message=fill(
            templates.get(effect.kind, STORED),
            code=facts.source.text_of(effect.node),
            step=getattr(effect.function, "name", STEP),
            use=use.text,
        ),
        place=facts.span(effect.node),
        because=Because(use.span, BECAUSE),
        repairs=repairs_of(facts, effect),
        severity=Severity.ERROR if use.raises else Severity.WARNING,
        silent=not use.raises,
        path=path_of(facts, effect),
    )


RULE = Rule(
    code="P203",
    name="tracer-leaks-out-of-the-step",
    title="A traced value leaks out of the step and is used",
    severity=Severity.ERROR,
    jax=Jax.BOTH,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script"}),
)
