"""What the playground does not run (X603), as findings of a script: refusals before it ran, and while it ran.

The rule stands here and not among the others while the catalogue has no page for it: a rule of that code there comes
first.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.base.places import Span
from core.base.violation import Severity
from core.contract.rule import Finding, Jax, Rule, Stage
from core.contract.script_facts import ScriptFacts

WHY = "A limit of ours, not of Python or JAX: other people share this machine, so a script names only what is offered here."


def check(facts: ScriptFacts) -> Iterator[Finding]:
    """One finding for each place."""
    for span, text in facts.record.refused:
        yield Finding(message=_sentence(text), place=span, silent=False)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def refusal_of(error: BaseException) -> str | None:
    """The sentence of a refusal that the sandbox raised; None for every other exception."""
    try:
        from core.sandbox.refusals import NotHere
    except ImportError:
        return None
    return error.text if isinstance(error, NotHere) else None


def refused(span: Span, error: BaseException) -> tuple[tuple[Span, str], ...]:
    """A refusal while the script ran, at its place."""
    text = refusal_of(error)
    return () if text is None else ((span, text),)


RULE = Rule(
    code="X603",
    name="not-run-here",
    title="The playground does not run this",
    severity=Severity.LIMIT,
    jax=Jax.SILENT,
    stage=Stage.LIMIT,
    why=WHY,
    check=check,
    on=frozenset({"script"}),
)
