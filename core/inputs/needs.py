"""What a preset step takes, held against the inputs: which of them does not fit, and the edit that puts it right.

Asked only where JAX raised and no rule knows why: what runs is no fault, and a rule says more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jax import tree_util

from core.base.avals import Aval, aval_of
from core.base.text import fill
from core.base.violation import FieldEdit
from core.contract import engine
from core.contract.subject import ScanCall
from core.inputs.fields import Value, changed
from core.inputs.parse import format_sequence, parse_sequence
from core.inputs.preset import init_leaves, init_texts, opening_numbers, opening_width, step_of, takes_numbers
from core.inputs.scan_fields import follow, step_params, x_type
from core.inputs.scan_inputs import Mend, build, from_values
from core.steps.step import Step, XKind

ROWS_OF = "This step takes rows of {width} numbers; x has shape {shape}."
ROWS = "This step takes rows of numbers; x has shape {shape}."
ONE_NUMBER = "This step takes one number at a time; x has shape {shape}."
INIT = "For an x of shape {x} this step takes an {label} of shape {want}; it has shape {got}."
INIT_ALONE = "This step takes an {label} of shape {want}; it has shape {got}."
SET_FEATURES = "Set F to {width}"
MAKE_ROWS = "Make each number a row"
OWN_NUMBERS = "Take the step's own sequence"
SET_INIT = "Set {label} to {text}"


@dataclass(frozen=True, slots=True)
class Misfit:
    """An input that the step cannot take: its field, a sentence, and the edit that was tried, None where none helps."""

    field: str
    sentence: str
    mend: Mend | None = None


def misfits(values: Mapping[str, Value], call: ScanCall) -> tuple[Misfit, ...]:
    """The inputs of this call that the preset cannot take, for a call that raised. x comes first: init follows it."""
    step = step_of(values["step"])
    x = x_type(step, values)
    if x is not None and not step.takes(x.shape):
        found = [_x_misfit(step, values, x)]
    else:
        found = list(_init_misfits(step, values, x, call))
    return tuple(replace(misfit, mend=_tried(values, misfit.mend)) for misfit in found)


def _x_misfit(step: Step, values: Mapping[str, Value], x: Aval) -> Misfit:
    kind = ONE_NUMBER if step.x is XKind.SCALAR else ROWS_OF if step.x_width else ROWS
    sentence = fill(kind, width=step.x_width, shape=x.shape)
    if values["source"] == "generate":
        width = opening_width(step)
        return Misfit("features", sentence, Mend("features", fill(SET_FEATURES, width=width), _edit(features=width)))
    rows = None if step.x_width or x.shape else _as_rows(str(values["numbers"]))
    title, edit = (
        (MAKE_ROWS, _edit(numbers=rows))
        if rows is not None
        else (OWN_NUMBERS, _edit(numbers=opening_numbers(step), length=step.length))
    )
    return Misfit("numbers", sentence, Mend("numbers", fill(title), edit))


def _as_rows(numbers: str) -> str | None:
    """Typed numbers with each of them a row of its own; None for what is no plain list of them."""
    parsed = parse_sequence(numbers)
    if parsed.filled or len(parsed.shape) != 1:
        return None
    return format_sequence(np.asarray(parsed.nested, dtype=object)[:, None])


def _init_misfits(step: Step, values: Mapping[str, Value], x: Aval | None, call: ScanCall) -> Iterator[Misfit]:
    params = step_params(step, values)
    want = tree_util.tree_leaves(step.init(x, params))
    for leaf, right, text, given in zip(
        init_leaves(step), want, init_texts(step, x, params), tree_util.tree_leaves(call.init), strict=True
    ):
        shape, got = np.shape(right), aval_of(given)
        if got is None or got.shape == shape:
            continue
        words = INIT if takes_numbers(step) and x is not None else INIT_ALONE
        sentence = fill(words, label=leaf.label, want=shape, got=got.shape, x=() if x is None else x.shape)
        edit: dict[str, Value] = {
            leaf.name: text.text,
            f"{leaf.name}_dtype": text.dtype,
            f"{leaf.name}_weak": text.weak,
        }
        yield Misfit(
            leaf.name, sentence, Mend(leaf.name, fill(SET_INIT, label=leaf.label, text=text.text), _edit(**edit))
        )


def _edit(**values: Value) -> FieldEdit:
    return FieldEdit(values)


def _tried(values: Mapping[str, Value], mend: Mend | None) -> Mend | None:
    """The button with all that follows its edit; None where the call would still raise for no known reason."""
    if mend is None:
        return None
    after = follow(values, dict[str, Any](mend.edit.values))
    call = build(from_values(after)).call
    if call is None or engine.diagnose(call).error is not None:
        return None
    return replace(mend, edit=FieldEdit({name: after[name] for name in changed(values, after, after)}))
