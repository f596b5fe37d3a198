"""The playground does not run this.

**What.** The script names something that is not offered here: a file, the network, another process, an import that is
no part of JAX's world, a route into the interpreter. It says what to write instead where there is such a thing.

**Why.** A limit of ours, not of Python or JAX: other people share this machine. What is offered is wide (all that is
public in `jax`, `flax.nnx`, `optax`, and much of NumPy and the standard library), and on your own machine
`python -m core.doctor --trust FILE.py` checks a script as plain Python.

**Bad**

    weights = np.load("weights.npy")

**Good**

    weights = jax.random.normal(jax.random.key(0), (8, 3))     # a stand-in of the same shape

Source: DESIGN.md section 5, the step language; `core/sandbox/names.py`, each name with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.base.text import fill
from core.base.violation import Severity
from core.contract.rule import Finding, Jax, Rule, Stage
from core.contract.script_facts import ScriptFacts

SENTENCE = "{text}."
WHY = "A limit of ours, not of Python or JAX: other people share this machine, so a script names only what is offered here."


def check(facts: ScriptFacts) -> Iterator[Finding]:
    """One finding for each place that was refused, before the script ran or while it did."""
    for span, text in facts.record.refused:
        yield Finding(message=_sentence(text), place=span, silent=False)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else fill(SENTENCE, text=text)


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
