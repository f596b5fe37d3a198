"""The pair that a layer returns, taken apart the wrong way round: ``outputs, carry = rnn(x, return_carry=True)`` (L319).

Flax returns the carry first; PyTorch and Keras return the outputs first. What the names say is asked, and whether the
second part is itself taken apart as a pair.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flax import nnx

from core.base.avals import aval_of
from core.base.violation import TextEdit
from core.contract.layer_calls import facts_of_script
from core.contract.masks import Run, number_of, run_numbered, runs
from core.contract.script_facts import ScriptFacts
from core.contract.taken import says

#: Parts of names that say a carry, and outputs; single letters say little.
CARRIES = frozenset(
    {"carry", "carries", "state", "states", "hn", "ht", "cn", "hid", "hidden", "final", "last", "mem", "memory", "h", "c"}
)  # fmt: skip
OUTPUTS = frozenset({"ys", "out", "outs", "output", "outputs", "seq", "sequence", "hs", "logits", "preds", "y"})
#: Single letters, and what is said of all steps as well.
LETTERS = frozenset({"h", "c", "y", "states", "hidden"})


@dataclass(frozen=True, slots=True, eq=False)
class Turned:
    """A call whose pair is taken apart the wrong way round.

    Attributes:
        run: the call.
        statement: the assignment.
        first, second: what its parts are bound to.
        plain: whether names of more than one letter, or a pair of names, say so.
    """

    run: Run
    statement: ast.Assign
    first: ast.expr
    second: ast.expr
    plain: bool


def turned(facts: ScriptFacts) -> Iterator[Turned]:
    """All of a script, each assignment once."""
    said: set[ast.AST] = set()
    for run in runs(facts):
        statement = facts.source.statement(run.call.node)
        if not _carry_first(run) or statement in said:
            continue
        if not isinstance(statement, ast.Assign) or statement.value is not run.call.node or len(statement.targets) != 1:
            continue
        target = statement.targets[0]
        if not isinstance(target, ast.Tuple | ast.List) or len(target.elts) != 2:
            continue
        first, second = target.elts
        plain = _turned(first, second)
        if plain is not None:
            said.add(statement)
            yield Turned(run, statement, first, second, plain)


def _carry_first(run: Run) -> bool:
    """Whether a call gave (carry, outputs): a layer of the script's own may give them in another order."""
    result, inputs = run.call.result, aval_of(run.call.argument(0, "inputs"))
    if not isinstance(run.call.func, nnx.RNN) or not isinstance(result, tuple) or len(result) != 2 or inputs is None:
        return False
    outputs = aval_of(result[1])
    return outputs is not None and len(outputs.shape) > 2 and outputs.shape[:2] == inputs.shape[:2]


def _turned(first: ast.expr, second: ast.expr) -> bool | None:
    """True where it is plain, False where single letters say it, None where nothing does."""
    if not isinstance(first, ast.Name) or not says(first.id, OUTPUTS) or says(first.id, CARRIES):
        return None
    if isinstance(second, ast.Tuple | ast.List):
        return True if len(second.elts) == 2 else None
    if not isinstance(second, ast.Name) or not says(second.id, CARRIES) or says(second.id, OUTPUTS):
        return None
    return says(first.id, OUTPUTS - LETTERS) and says(second.id, CARRIES - LETTERS)


def righted(facts: ScriptFacts, one: Turned) -> TextEdit:
    """The targets with the carry first; of an LSTM's (h, c) with c first."""
    second = facts.source.text_of(one.second)
    if isinstance(one.second, ast.Tuple | ast.List):
        names = [facts.source.text_of(part) for part in one.second.elts]
        if says(names[0], frozenset({"h", "hn", "ht", "hidden"})) and says(
            names[1], frozenset({"c", "cn", "ct", "cell"})
        ):
            names.reverse()
        second = f"({', '.join(names)})"
    return TextEdit(facts.span(one.statement.targets[0]), f"{second}, {facts.source.text_of(one.first)}")


@dataclass(frozen=True, slots=True)
class Exchanged:
    """How many names hold the other part of the pair."""

    number: int

    def __call__(self, record: Any) -> float:
        """The number, in this run.

        Raises:
            ValueError: the call is not there.
        """
        facts = facts_of_script(record)
        node = run_numbered(facts, self.number).call.node
        return 2.0 if any(one.run.call.node is node for one in turned(facts)) else 0.0


__all__ = ["Exchanged", "Turned", "number_of", "righted", "turned"]
