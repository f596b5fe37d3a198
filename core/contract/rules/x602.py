"""Out of time or memory.

**What.** The script ran longer, or wanted more memory, than it may here. It was stopped; the line says where it was
then. Nobody else noticed, and what was printed until then is kept. Shapes are still checked, for they cost nothing.

**Why.** A limit of Carry Lab, not of JAX: one small machine serves a whole class. Who runs Carry Lab may raise both
(`CARRY_LAB_WORKER_SECONDS`, `CARRY_LAB_WORKER_MEMORY`).

**Bad**

    grid = jnp.zeros((1_000_000, 1_000_000))      # four terabytes

**Good**

    grid = jnp.zeros((1_000, 1_000))

A loop that never ends (`while True:`) and a Python loop of a billion turns end here too: `lax.scan`, `lax.fori_loop` and
`lax.while_loop` are compiled, and a thousand times quicker.

Source: DESIGN.md section 5, the last wall; `core/base/limits.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.base.limits import LIMITS
from core.base.text import fill
from core.base.violation import Severity
from core.contract.rule import Finding, Jax, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import MEMORY, TIME

MESSAGES = {
    TIME: "The script ran for all the time there is for it ({value} {unit}), and was stopped here.",
    MEMORY: "The script wanted more memory than there is for it ({value} {unit}), and was stopped here.",
}
#: Where nothing was to be computed: the script never ran, and how long tracing it took depends on who stopped it.
MESSAGES_SHAPES = {
    TIME: "Working out its shapes took more time than there is for it, and was stopped here.",
    MEMORY: "Working out its shapes wanted more memory than there is for it ({value} {unit}), and was stopped here.",
}
ROWS = {TIME: "worker_seconds", MEMORY: "worker_memory"}
WHY = "A limit of Carry Lab, not of JAX: one small machine serves a whole class. Shapes are checked all the same."
TITLES = {TIME: "Out of time", MEMORY: "Out of memory"}


def check(facts: ScriptFacts) -> Iterator[Finding]:
    """One finding, where the script was when it was stopped."""
    stopped = facts.record.stopped
    if stopped is not None:
        yield Finding(
            message=message(stopped.reason, shapes=facts.record.abstract),
            place=stopped.span,
            silent=False,
            title=TITLES[stopped.reason],
        )


def message(reason: str, *, shapes: bool = False) -> str:
    """What is said of a script that was stopped. `shapes`: only its shapes were asked for."""
    limit = LIMITS[ROWS[reason]]
    return fill((MESSAGES_SHAPES if shapes else MESSAGES)[reason], value=f"{limit.value:,}", unit=limit.unit)


RULE = Rule(
    code="X602",
    name="out-of-time-or-memory",
    title="Out of time or memory",
    severity=Severity.LIMIT,
    jax=Jax.SILENT,
    stage=Stage.LIMIT,
    why=WHY,
    check=check,
    on=frozenset({"script"}),
)
