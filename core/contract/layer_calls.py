"""What the rules about calls of recurrent layers share: options written into a call, lines behind it, runs made again.

Everything here is about one call of `nnx.RNN` or `nnx.Bidirectional` in a script (`masks.Run`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from flax import nnx
from jax import tree_util

from core.base.places import Span
from core.base.violation import TextEdit
from core.contract.masks import Run, runs
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called, ScriptRecord
from core.contract.source import FUNCTIONS
from core.contract.subject import MISSING

#: The longest sequence that a proof runs over.
LONG = 4096


def with_option(facts: ScriptFacts, call: ast.Call, name: str, text: str) -> TextEdit | None:
    """The edit that gives a call this keyword, or another value for it; None where the call has ``**options``."""
    given = next((k for k in call.keywords if k.arg == name), None)
    if given is not None:
        return TextEdit(facts.span(given.value), text)
    parts: list[ast.expr] = [*call.args, *(k.value for k in call.keywords)]
    if not parts or any(k.arg is None for k in call.keywords):
        return None
    span = facts.span(max(parts, key=lambda n: (n.end_lineno or 0, n.end_col_offset or 0)))
    return TextEdit(Span(span.end_line, span.end_col, span.end_line, span.end_col), f", {name}={text}")


def without_option(facts: ScriptFacts, call: ast.Call, name: str) -> TextEdit | None:
    """The edit that takes a keyword out of a call, with the comma before it; None where it is not written there."""
    given = next((k for k in call.keywords if k.arg == name), None)
    parts: list[ast.expr | ast.keyword] = sorted([*call.args, *call.keywords], key=lambda n: (n.lineno, n.col_offset))
    if given is None or parts.index(given) == 0:
        return None
    before, here = facts.span(parts[parts.index(given) - 1]), facts.span(given)
    return TextEdit(Span(before.end_line, before.end_col, here.end_line, here.end_col), "")


def behind_statement(facts: ScriptFacts, statement: ast.stmt, text: str) -> TextEdit:
    """A new line with `statement`'s indentation behind it; for `ScriptFacts.rewrites`."""
    span = facts.span(statement)
    pad = facts.source.lines[span.line - 1][: span.col]
    pad = pad if not pad.strip() else " " * span.col
    end = Span(span.end_line, span.end_col, span.end_line, span.end_col)
    if pad.strip() or facts.source.lines[span.line - 1][: span.col].strip():
        return TextEdit(end, f"; {text}")  # it shares its line with what stands before it
    return TextEdit(end, f"\n{pad}{text}")


def runs_once(facts: ScriptFacts) -> Iterator[Run]:
    """The first run of each call of a layer in the text."""
    said: set[ast.AST] = set()
    for run in runs(facts):
        if run.call.node not in said:
            said.add(run.call.node)
            yield run


def option(call: Called, name: str) -> Any:
    """An option of a layer's call: what was given for it, else the layer's own."""
    given = call.kwargs.get(name)
    return getattr(call.func, name, None) if given is None or given is MISSING else given


def traced(*values: Any) -> bool:
    """Whether a value, or a leaf of it, or the state of a module, is traced."""
    for value in values:
        tree = nnx.state(value) if isinstance(value, nnx.Module) else value
        if any(isinstance(leaf, jax.core.Tracer) for leaf in tree_util.tree_leaves(tree)):
            return True
    return False


def again(call: Called, inputs: Any = None, **options: Any) -> tuple[Any, Any]:
    """(final carry, outputs) of a layer's call made once more, with another input or other options.

    Raises:
        ValueError: its values are traced, or not known.
    """
    given = call.argument(0, "inputs") if inputs is None else inputs
    if given is not MISSING and max(shape(given), default=0) > LONG:
        raise ValueError("it is too long to be run again")
    kwargs = {k: v for k, v in call.kwargs.items() if k not in ("inputs", "return_carry")} | options
    if given is MISSING or any(v is MISSING for v in kwargs.values()) or traced(given, kwargs, call.func):
        raise ValueError("its values are not known")
    carry, outputs = call.func(given, **kwargs, return_carry=True)
    return carry, outputs


def facts_of_script(record: Any) -> ScriptFacts:
    """Facts of the subject of a proof.

    Raises:
        ValueError: it is no script.
    """
    if not isinstance(record, ScriptRecord):
        raise ValueError("there is no script")
    return record.once(ScriptFacts)


@dataclass(frozen=True, slots=True)
class Kept:
    """A number of a script that is worked out once for each run of it: a rule asks before it offers it as a proof."""

    work: Callable[[ScriptRecord], float]

    def __call__(self, record: Any) -> float:
        """The number.

        Raises:
            ValueError: it is no script, or the number cannot be had.
        """
        return facts_of_script(record).record.once(self.work)


def measured(measure: Any, facts: ScriptFacts) -> float:
    """A number of a script; 0 where it cannot be had."""
    try:
        return float(measure(facts.record))
    except Exception:  # noqa: BLE001  # what cannot be run again proves nothing
        return 0.0


def carry_leaves(call: Called) -> list[Any]:
    """The arrays of the final carry that a call returned; none where it returned none."""
    result = call.result
    if not option(call, "return_carry") or not isinstance(result, tuple) or len(result) != 2:
        return []
    return tree_util.tree_leaves(result[0])


def shape(value: Any) -> tuple[int, ...]:
    """The shape of anything array-like."""
    return tuple(int(n) for n in np.shape(value))


def place_of_target(facts: ScriptFacts, run: Run) -> tuple[ast.Assign, list[ast.expr]] | None:
    """The assignment that unpacks what a call returned, with its targets; None where that is not what happens."""
    statement = facts.source.statement(run.call.node)
    if not isinstance(statement, ast.Assign) or statement.value is not run.call.node or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    return (statement, target.elts) if isinstance(target, ast.Tuple | ast.List) else None


def in_function(facts: ScriptFacts, node: ast.AST) -> bool:
    """Whether a node stands in a function of the script."""
    return isinstance(facts.source.scope(node), FUNCTIONS)
