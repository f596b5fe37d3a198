"""A side effect in the step happens while tracing, not at each step.

**What.** The step appends to a list, writes into a dict, sets an attribute or a global name, counts, or prints a traced
value. It runs once (or twice), not T times, and what is stored or printed is a placeholder, no number.

**Why.** Python runs the step's body only to write the program down; the scan itself runs without Python. What has to
leave each step leaves as y and is stacked in ys; what has to be counted is in the carry; what has to be printed is
printed by the program: `jax.debug.print`.

**Bad**

    log = []
    def step(c, x):
        c = c + x
        log.append(c)
        return c, None
    carry, ys = jax.lax.scan(step, 0.0, xs)

**Good**

    def step(c, x):
        c = c + x
        return c, c
    carry, ys = jax.lax.scan(step, 0.0, xs)
    log = list(ys)

Printing a shape is fine, and so is a list that the step makes for itself, a note of what was traced, or a memo of
things that are no traced values. Code that also runs without being traced gets a note: there it does what it says.

Source: JAX documentation, "Stateful computations" and "Pure functions".
"""

from __future__ import annotations

from collections.abc import Iterator

from core.base.text import fill
from core.base.violation import Severity
from core.contract.p_effects import Effect, effects_of, path_of
from core.contract.p_repairs import repairs_of
from core.contract.p_uses import leaks
from core.contract.rule import Finding, Jax, Measure, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import ScriptRecord

PRINTS = "`{code}` runs {times} while {step} is traced, not at each of the {steps} steps: it prints a placeholder."
STORES = "`{code}` runs {times} while {step} is traced, not at each of the {steps} steps: it stores a placeholder."
COUNTS = "`{code}` counts {times}, while {step} is traced, not at each of the {steps} steps."
PRINTS_TRACED = "`{code}` runs while {step} is traced, not when it is called again: it prints a placeholder, no number."
STORES_TRACED = "`{code}` runs while {step} is traced, not when it is called again: it stores a placeholder, no number."
COUNTS_TRACED = "`{code}` counts how often {step} is traced, not how often it runs."
TIMES = {1: "once", 2: "twice"}
TIMES_MORE = "{count} times"
STEP = "the step"
CLAIM = "The scan made {steps} steps; this is how many of them `{code}` did not run at."
WHY = (
    "Python runs the step's body only while it is traced; the scan itself runs without Python. What leaves each step "
    "leaves as y, what is counted is in the carry, and jax.debug.print prints."
)


def check(facts: ScriptFacts) -> Iterator[Finding]:
    """One finding for each effect whose value is not used afterwards (that is P203's)."""
    for effect, use in facts.once(leaks):
        if use is None and effect.kind != "cached" and not _fails_there(facts, effect):
            yield _finding(facts, effect)


def _fails_there(facts: ScriptFacts, effect: Effect) -> bool:
    """Whether the script ended in that very statement: then it has another problem."""
    failure = facts.record.failure
    statement = effect.statement
    inside = failure is not None and statement.lineno <= failure.span.line <= (statement.end_lineno or statement.lineno)
    return inside and effect.kind != "print"


def _finding(facts: ScriptFacts, effect: Effect) -> Finding:
    steps = _steps(facts, effect)
    many = steps is not None and steps != effect.times
    code = _code(facts, effect)
    scanned = {"print": PRINTS, "count": COUNTS}.get(effect.kind, STORES)
    traced = {"print": PRINTS_TRACED, "count": COUNTS_TRACED}.get(effect.kind, STORES_TRACED)
    return Finding(
        message=fill(
            scanned if many else traced,
            code=code,
            step=getattr(effect.function, "name", STEP),
            steps=steps,
            times=TIMES.get(effect.times) or fill(TIMES_MORE, count=effect.times),
        ),
        place=facts.span(effect.node),
        repairs=repairs_of(facts, effect),
        severity=_severity(effect),
        silent=True,
        path=path_of(facts, effect),
        measure=Measure(fill(CLAIM, steps=steps, code=code), lambda record: _missed(record, code)) if many else None,
    )


def _steps(facts: ScriptFacts, effect: Effect) -> int | None:
    return None if effect.scan is None else facts.scans[effect.scan].facts.length


def _severity(effect: Effect) -> Severity:
    """A note where the same code also runs plainly, and for a count of traces outside of loops: those may be meant."""
    if effect.eager or (effect.kind == "count" and effect.scan is None):
        return Severity.NOTE
    return Severity.WARNING


def _code(facts: ScriptFacts, effect: Effect) -> str:
    """The effect as it is written: a call, or a whole assignment."""
    whole = effect.kind in ("name", "attribute", "item", "count")
    return facts.source.text_of(effect.statement if whole else effect.node)


def _missed(record: ScriptRecord, code: str) -> float:
    """The steps at which code that is written like this did not run; 0 when no side effect is written like this."""
    facts = ScriptFacts(record)
    found = [(_steps(facts, e), e.times) for e in facts.once(effects_of) if _code(facts, e) == code]
    return float(sum(max(steps - times, 0) for steps, times in found if steps is not None))


RULE = Rule(
    code="P204",
    name="side-effect-in-the-step",
    title="A side effect in the step happens once",
    severity=Severity.WARNING,
    jax=Jax.SILENT,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script"}),
)
