"""A carry left over from another sequence is used as init.

**What.** The final carry of one run goes into the next one as its initial carry, and the next one is over other data.
The second sequence then begins with what the cell remembers of the first.

**Why.** A carry is the memory of the sequence that it was made from. Another sequence begins with none.

**Bad**

    carry, ys_a = rnn(a)
    carry, ys_b = rnn(b, initial_carry=carry)

**Good**

    carry_a, ys_a = rnn(a)
    carry_b, ys_b = rnn(b)

A note, for nobody can see whether `b` goes on where `a` ends. Nothing is said of pieces of one array, of the items of one
list, of what a decoder gets from an encoder, or where a name says that the data go on (``chunk``, ``warmup``, ``prompt``).

Source: flax.nnx.RNN, argument `initial_carry`; jax.lax.scan, argument `init`.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.base.places import Because
from core.base.text import fill
from core.base.violation import Severity, TextEdit
from core.contract import sequence_rules
from core.contract.layer_calls import Kept, measured, without_option
from core.contract.left_over import LeftOver, Remembers, left_over, number_of
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import ScanSite
from core.contract.sequence_facts import SequenceFacts

SAID = (
    "{second} begins with the carry in which the run over {first} ended: what the cell remembers of {first} goes into its "
    "results. If {second} is another sequence, it begins with none."
)
BECAUSE = "the carry was left here"
CLAIM = "Every number of the first sequence was changed by 0.1; this is how far the final carry of the second moves."
TITLE_FRESH = "Begin without a carry"
TITLE_ZEROS = "Begin from zeros"
WHY = "A carry is the memory of one sequence: another sequence starts from an initial carry of its own."


def check(facts: ScriptFacts | SequenceFacts) -> Iterator[Finding]:
    """One note for each run that begins with what a run over other data left."""
    if isinstance(facts, SequenceFacts):
        yield from sequence_rules.left_over(facts)
        return
    for one in left_over(facts):
        yield _finding(facts, one)


def _finding(facts: ScriptFacts, one: LeftOver) -> Finding:
    number = number_of(facts, one)
    measure = Kept(Remembers(number))
    place = one.second.given_node if one.second.given_node is not None else one.second.node
    return Finding(
        message=fill(SAID, first=facts.source.text_of(one.first.data), second=facts.source.text_of(one.second.data)),
        place=facts.span(place),
        because=Because(facts.span(one.first.node), BECAUSE),
        repairs=tuple(_fresh(facts, one)),
        measure=Measure(CLAIM, measure) if measured(measure, facts) > 0 else None,
        severity=Severity.NOTE,
        silent=True,
        path=f"left over:{number}",
    )


def _fresh(facts: ScriptFacts, one: LeftOver) -> Iterator[Repair]:
    node, jax = one.second.given_node, facts.spelled("jax")
    if not isinstance(one.second.source, ScanSite):
        edit = without_option(facts, one.second.node, "initial_carry")
        if edit is not None:
            yield facts.rewrites(fill(TITLE_FRESH), edit)
        return
    module = facts.spelled("jax.numpy")
    if node is not None and jax is not None and module is not None:
        text = facts.source.text_of(node)
        zeros = (
            f"{jax}.tree.map({module}.zeros_like, {text})"
            if len(one.second.given) > 1
            else f"{module}.zeros_like({text})"
        )
        yield facts.rewrites(fill(TITLE_ZEROS), TextEdit(facts.span(node), zeros))


RULE = Rule(
    code="L317",
    name="carry-of-another-sequence",
    title="A carry left over from another sequence",
    severity=Severity.NOTE,
    jax=Jax.SILENT,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script", "sequence"}),
)
