"""Which values of a script are the cell state c and the hidden state h of an LSTM, by identity.

A cell's own result, the final carry and the outputs of a scan over a cell, and what `nnx.RNN` returns are known; a
jitted function's result is new arrays, so there the places in what it returns say which is which. Nothing is told from
names, shapes or numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flax import nnx
from jax import tree_util

from core.contract import trees
from core.contract.cells import cell_uses
from core.contract.fates import function_of
from core.contract.record import PAIR_CELLS
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called, ScanSite
from core.contract.source import Function
from core.contract.trace import StepTrace

C, H = "c", "h"


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """One (c, h) that a cell, or something around it, made.

    Attributes:
        c, h: the two arrays.
        node: the call that made them; None when it is not in the script.
        cell: the cell's class, for messages.
        family: pairs of one family hold the same two states, before and after a function's boundary.
    """

    c: Any
    h: Any
    node: ast.expr | None
    cell: str
    family: int


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """What a value is: ``c`` or ``h`` of a family of pairs; `series` says that it is one for each step."""

    kind: str
    family: int
    series: bool = False


class States:
    """The states that a script got hold of. Made once for all rules by `states_of`."""

    def __init__(self, facts: ScriptFacts) -> None:
        self._facts = facts
        self._known: dict[int, tuple[Any, State]] = {}
        self.pairs: list[Pair] = []
        self._families = 0
        for step in facts.cells.steps:
            if step.error is None and step.wants_pair and step.result is not None:
                site = step.site.find("call") if step.site is not None else None
                self._pair(step.result[0], _at(facts, site), type(step.cell).__name__, step.result[1])
        scans = sorted((s for s in facts.scans if s.result is not None), key=lambda s: s.order)
        for call in facts.record.calls:
            self._called(call)
        for scan in scans:
            self._scan(scan)
        for call in facts.record.calls:
            self._through(call)

    def of(self, value: Any) -> State | None:
        """What this very object is; None for anything else."""
        known = self._known.get(id(value))
        return known[1] if known is not None and known[0] is value else None

    def pair(self, family: int) -> Pair:
        """The family's first pair whose values are there."""
        return next(p for p in self.pairs if p.family == family)

    def hidden_of(self, value: Any) -> Any:
        """The h that belongs to a c or h: of the pair that this very object is in; None when there is none."""
        return next((p.h for p in self.pairs if p.c is value or p.h is value), None)

    def holds(self, value: Any, kind: str, family: int) -> bool:
        """Whether a value, or a leaf of it, is that state."""
        for leaf in _leaves(value):
            state = self.of(leaf)
            if state is not None and state.kind == kind and state.family == family:
                return True
        return False

    # --- where states come from -------------------------------------------------------------------------------------

    def _mark(self, value: Any, state: State) -> None:
        self._known.setdefault(id(value), (value, state))

    def _pair(self, carry: Any, node: ast.expr | None, cell: str, ys: Any = None, *, series: bool = False) -> None:
        if not isinstance(carry, tuple | list) or len(carry) != 2 or self.of(carry[0]) is not None:
            return
        self._families += 1
        self.pairs.append(Pair(carry[0], carry[1], node, cell, self._families))
        self._mark(carry[0], State(C, self._families))
        self._mark(carry[1], State(H, self._families))
        if ys is not None:
            self._mark(ys, State(H, self._families, series))

    def _called(self, call: Called) -> None:
        func, result = call.func, call.result
        if call.error is not None or not isinstance(result, tuple) or len(result) != 2:
            return
        if isinstance(func, PAIR_CELLS) and plain(func):
            self._pair(result[0], call.node, type(func).__name__, result[1])
        elif isinstance(func, nnx.RNN) and type(func).__call__ is nnx.RNN.__call__ and runs_pairs(func):
            self._pair(result[0], call.node, type(func.cell).__name__, result[1], series=True)
        elif isinstance(func, nnx.Bidirectional) and isinstance(result[0], tuple) and len(result[0]) == 2:
            layers: tuple[Any, ...] = (func.forward_rnn, func.backward_rnn)
            for rnn, carry in zip(layers, result[0], strict=True):
                if runs_pairs(rnn):
                    self._pair(carry, call.node, type(rnn.cell).__name__)

    def _scan(self, site: ScanSite) -> None:
        """The final carry, and ys, of a scan whose step hands slots of its carry to a cell as c and h."""
        if not isinstance(site.facts.trace, StepTrace) or site.facts.trace.pair is None:
            return
        y_paths = tree_util.tree_flatten_with_path(site.facts.trace.pair[1])[0]
        ys = tree_util.tree_leaves(site.result[1])
        for use in cell_uses(site.facts):
            if not use.event.wants_pair or len(use.parts) != 2 or not all(p.slot for p in use.parts):
                continue
            try:
                final = tuple(trees.find(site.result[0], "carry", part.path) for part in use.parts)
            except (KeyError, TypeError):
                continue
            self._pair(final, site.node, use.cell_name)
            state = self.of(final[0])
            if state is None or use.event.result is None or len(ys) != len(y_paths):
                continue
            (new_c, new_h), out = use.event.result
            for (_, y), leaf in zip(y_paths, ys, strict=True):
                if y is new_c or y is new_h or y is out:
                    self._mark(leaf, State(C if y is new_c else H, state.family, series=True))

    def _through(self, call: Called) -> None:
        """What a function of the script returned under a transformation: new arrays in the places of its own values."""
        function = function_of(self._facts, call.func)
        if function is None or call.error is not None:
            return
        outer = _leaves(call.result)
        if not outer or any(self.of(leaf) is not None for leaf in outer):
            return
        for inner in self._returned(function):
            if len(inner) != len(outer):
                continue
            pairs: dict[int, dict[str, Any]] = {}
            for leaf, state in zip(outer, inner, strict=True):
                if state is not None:
                    self._mark(leaf, state)
                    if not state.series:
                        pairs.setdefault(state.family, {})[state.kind] = leaf
            for family, parts in pairs.items():
                if len(parts) == 2:
                    known = self.pair(family)
                    self.pairs.append(Pair(parts[C], parts[H], known.node, known.cell, family))
            return

    def _returned(self, function: Function) -> Iterator[list[State | None]]:
        """For each expression that a function returns, the states of its leaves in order."""
        for expression in self._facts.source.all_returned(function):
            out = self._states(expression)
            if any(state is not None for state in out):
                yield out

    def _states(self, node: ast.expr) -> list[State | None]:
        if isinstance(node, ast.Tuple | ast.List) and not any(isinstance(e, ast.Starred) for e in node.elts):
            return [state for element in node.elts for state in self._states(element)]
        if isinstance(node, ast.Dict) and all(isinstance(k, ast.Constant) for k in node.keys):
            keyed = {k.value: v for k, v in zip(node.keys, node.values, strict=True) if isinstance(k, ast.Constant)}
            return [state for key in sorted(keyed, key=str) for state in self._states(keyed[key])]
        return [self.of(leaf) for leaf in _leaves(self._facts.value(node))]


def states_of(facts: ScriptFacts) -> States:
    """The states of these facts."""
    return facts.once(States)


def plain(cell: Any) -> bool:
    """Whether stepping this cell is what its known base class does, in the order that is known."""
    return any(type(cell).__call__ is known.__call__ for known in PAIR_CELLS)


def runs_pairs(rnn: Any) -> bool:
    """Whether an RNN runs a cell whose carry is the pair."""
    return isinstance(rnn, nnx.RNN) and isinstance(rnn.cell, PAIR_CELLS) and plain(rnn.cell)


def _leaves(value: Any) -> list[Any]:
    """The leaves of a pytree; a module or a function is one leaf."""
    return [] if isinstance(value, nnx.Module) else tree_util.tree_leaves(value)


def _at(facts: ScriptFacts, place: Any) -> ast.expr | None:
    return None if place is None else facts.source.expression(place)
