"""Repairs of a cell carried out on the page's own inputs: what a rule proposes -> an edit of the inputs, or nothing.

A repair says what it does in its title, and the button has to do that. So an edit is only offered when the step it leads
to starts from the same carry and input as the repair itself would; where a switch cannot say it, typed numbers can.
What is verified by the engine is built from the edited inputs: the button does exactly what was checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, Final

import jax
import numpy as np
from jax import tree_util

from core.base.avals import aval_of
from core.base.violation import FieldEdit
from core.contract.engine import Attempt
from core.contract.facts import run_trial
from core.contract.record import StepEvent
from core.contract.rule import Repair
from core.contract.subject import CellTrial
from core.contract.trace import same_structure
from core.inputs.cell_fields import NO_RNGS, NONE, TYPED
from core.inputs.cell_inputs import CellInputs, build
from core.inputs.cell_numbers import written
from core.inputs.fields import Value
from core.runners.cell_formulas import KINDS


class CellBench:
    """Carries out repairs on the inputs of the cell page, as an `engine.Bench`."""

    def __init__(self, inputs: CellInputs) -> None:
        self._inputs = inputs

    def attempt(self, repairs: tuple[Repair, ...]) -> Attempt | None:
        """The trial of the edited inputs, and the edit; None when the inputs cannot say it."""
        after: CellInputs | None = self._inputs
        for repair in repairs:
            after = None if after is None else repaired(after, repair)
        if after is None or after == self._inputs:
            return None
        trial = build(after).trial
        return None if trial is None else Attempt(trial, FieldEdit(difference(self._inputs, after)))


def difference(before: CellInputs, after: CellInputs) -> dict[str, Value]:
    """The inputs that differ, with their new values."""
    names = [f.name for f in fields(before)]
    return {name: getattr(after, name) for name in names if getattr(after, name) != getattr(before, name)}


def repaired(inputs: CellInputs, repair: Repair) -> CellInputs | None:
    """The inputs with one repair carried out; None when they cannot say it."""
    trial = build(inputs).trial
    if trial is None:
        return None
    if repair.kind in _DIRECT:
        return _DIRECT[repair.kind](inputs, repair.value)
    mended = repair.apply(trial)
    if not isinstance(mended, CellTrial):
        return None
    wanted = _step(mended)
    if wanted is None:
        return None
    for candidate in _candidates(inputs, repair, wanted):
        after = build(candidate).trial
        if candidate != inputs and after is not None and _says(after, wanted, exactly=repair.kind != "carry_dtype"):
            return candidate
    return None


def _step(trial: CellTrial) -> StepEvent | None:
    """The step that a trial gets to, whether or not it raises; None when it never gets there."""
    steps = run_trial(trial).steps
    return steps[0] if steps else None


def _says(trial: CellTrial, wanted: StepEvent, *, exactly: bool) -> bool:
    """Whether a trial steps from this carry and input: the same tree and types, and the same numbers if `exactly`."""
    got = _step(trial)
    if got is None:
        return False
    pairs = ((got.carry, wanted.carry), (got.inputs, wanted.inputs))
    return all(_same(a, b, exactly=exactly) for a, b in pairs)


def _same(a: Any, b: Any, *, exactly: bool) -> bool:
    if not same_structure(a, b):
        return False
    pairs = list(zip(tree_util.tree_leaves(a), tree_util.tree_leaves(b), strict=True))
    if any(aval_of(x) != aval_of(y) for x, y in pairs):
        return False
    return not exactly or all(np.array_equal(np.asarray(x), np.asarray(y), equal_nan=_floats(x)) for x, y in pairs)


def _floats(value: Any) -> bool:
    return bool(jax.numpy.issubdtype(value.dtype, np.floating))


# --- what the inputs can say ----------------------------------------------------------------------------------------


def _candidates(inputs: CellInputs, repair: Repair, wanted: StepEvent) -> Iterator[CellInputs]:
    """Edits that may say this repair, the smallest first."""
    if repair.kind.startswith("carry"):
        yield replace(inputs, break_carry=NONE)
        if not inputs.handmade:
            yield replace(inputs, break_init=NONE)
            yield replace(inputs, break_init=NONE, break_carry=NONE)
        yield replace(inputs, break_init=NONE, break_carry=NONE, carry="zeros")
        yield from _typed_carry(inputs, wanted)
    if repair.kind.startswith("input"):
        yield replace(inputs, break_input=NONE)
        yield from _typed_input(inputs, wanted)


def _typed_carry(inputs: CellInputs, wanted: StepEvent) -> Iterator[CellInputs]:
    """The carry written down, where it was typed before: what was made from a seed is not replaced by a wall of digits."""
    parts = KINDS[inputs.cell].parts
    values = wanted.carry if isinstance(wanted.carry, tuple) else (wanted.carry,)
    if inputs.carry == "typed" and len(values) == len(parts):
        texts = {f"carry_{name}": written(value) for name, value in zip(parts, values, strict=True)}
        yield replace(inputs, break_carry=NONE, **texts)  # type: ignore[arg-type]  # texts for two text fields


def _typed_input(inputs: CellInputs, wanted: StepEvent) -> Iterator[CellInputs]:
    if inputs.input in TYPED:
        yield replace(inputs, numbers=written(wanted.inputs, table=inputs.input == "table"))


# --- repairs that name the input they are about ---------------------------------------------------------------------


def _cell_rngs(inputs: CellInputs, seed: Any) -> CellInputs:
    return replace(inputs, break_cell=NONE, seed=seed if isinstance(seed, int) else inputs.seed)


def _carry_rngs(inputs: CellInputs, seed: Any) -> CellInputs:
    off = NONE if inputs.break_init == NO_RNGS else inputs.break_init
    return replace(inputs, break_init=off, carry_seed=seed if isinstance(seed, int) else inputs.carry_seed)


def _input_shape(inputs: CellInputs, shape: Any) -> CellInputs | None:
    """`initialize_carry` gets the input's shape: the switch off, and the batch that a typed input has."""
    if inputs.handmade or not isinstance(shape, tuple) or len(shape) != 2 or shape[0] < 1:
        return None
    return replace(inputs, break_init=NONE, batch=shape[0])


def _in_features(inputs: CellInputs, width: Any) -> CellInputs | None:
    """The cell is built for the width that the input has; one that is made has that width then by itself."""
    return replace(inputs, in_features=width, break_input=NONE) if isinstance(width, int) and width > 0 else None


_DIRECT: Final[Mapping[str, Callable[[CellInputs, Any], CellInputs | None]]] = {
    "cell_rngs": _cell_rngs,
    "carry_rngs": _carry_rngs,
    "input_shape": _input_shape,
    "input_width": _in_features,
}
