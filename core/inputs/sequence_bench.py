"""Repairs of a layer carried out on the Sequence page's own inputs: what a rule proposes -> an edit of the inputs.

The kinds of repair are listed in `core.contract.sequence_padding`. What the engine verifies is built from the edited
inputs: the button does exactly what was checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from core.base.sequences import Masking, Slip
from core.base.text import fill
from core.base.violation import FieldEdit
from core.contract.engine import Attempt
from core.contract.rule import Repair
from core.inputs.fields import changed
from core.inputs.parse import Numbers, UnreadableError, format_leaf, format_number
from core.inputs.sequence_data import read_batch, typed_array, typed_shape
from core.inputs.sequence_fields import MASK, NONE, TYPED, ZEROS
from core.inputs.sequence_follow import Values, follow
from core.inputs.sequence_inputs import SequenceInputs, build
from core.inputs.sequence_padding import is_given, steps_of, written_lengths, written_mask

FULL = "full(({shape}), {value})"


class SequenceBench:
    """Carries out repairs on the inputs of the Sequence page, as an `engine.Bench`."""

    def __init__(self, inputs: SequenceInputs) -> None:
        self._inputs = inputs

    def attempt(self, repairs: tuple[Repair, ...]) -> Attempt | None:
        """The trial of the edited inputs, and the edit; None when the inputs cannot say it, or say it already."""
        before = self._inputs.values
        values = before
        for repair in repairs:
            edit = edit_for(repair, SequenceInputs.of(values, self._inputs.file))
            if edit is None:
                return None
            values = follow(values, edit)
            if any(values[name] != value for name, value in edit.items()):
                return None  # an input could not have that value: the edit would not do what it says
        names = changed(before, values, values)
        trial = build(SequenceInputs.of(values, self._inputs.file)).trial if names else None
        return None if trial is None else Attempt(trial, FieldEdit({name: values[name] for name in names}))


def edit_for(repair: Repair, inputs: SequenceInputs) -> Values | None:
    """The new values of the page's inputs that carry this repair out; None when they cannot."""
    translate = _BY_KIND.get(repair.kind)
    return None if translate is None else translate(inputs, repair.value)


def _flag(name: str) -> Callable[[SequenceInputs, Any], Values | None]:
    return lambda _, value: {name: bool(value)}


def _unroll(_: SequenceInputs, value: Any) -> Values | None:
    return {"unroll": int(value)}


def _axes(inputs: SequenceInputs, value: Any) -> Values | None:
    """Data that are made get the other order; typed ones are written down anew."""
    if inputs.source != TYPED or inputs.axes == value:
        return {"axes": str(value)}
    try:
        numbers = read_batch(inputs.numbers, inputs.axes)
        array = typed_array(numbers, inputs.axes)
    except UnreadableError:
        return None
    if len(numbers.shape) != 3:  # rows are the steps of one example in either order
        return {"axes": str(value)}
    if numbers.filled:
        shape = numbers.shape
        return {"axes": str(value), "numbers": _filled(numbers, (shape[1], shape[0], shape[2]))}
    return None if array is None else {"axes": str(value), "numbers": format_leaf(array.swapaxes(0, 1))}


def _filled(numbers: Numbers, shape: tuple[int, ...]) -> str:
    return fill(FULL, shape=", ".join(map(str, shape)), value=format_number(numbers.nested))


def _lengths(_: SequenceInputs, value: Any) -> Values | None:
    return {"lengths": written_lengths(value), "lengths_typed": ""}


def _masking(_: SequenceInputs, value: Any) -> Values | None:
    return {"masking": str(Masking(value))}


def _mask(inputs: SequenceInputs, value: Any) -> Values | None:
    """The step gets this mask; it need not be written where the lengths mean the same one."""
    rows = np.asarray(value, bool)
    edit: Values = {"masking": MASK}
    if inputs.slips & {Slip.SUMMED_MASK, Slip.UNPACKED}:
        edit["slip"] = NONE
    same = not is_given(inputs.mask) and np.array_equal(steps_of(inputs.lengths, *rows.shape), rows)
    return edit if same else edit | {"mask": written_mask(rows), "mask_typed": ""}


def _slip(_: SequenceInputs, __: Any) -> Values | None:
    return {"slip": NONE}


def _init(_: SequenceInputs, value: Any) -> Values | None:
    return {"init": ZEROS} if value == "zeros" else None


def _hidden(inputs: SequenceInputs, value: Any) -> Values | None:
    return {"hidden_features": int(value)} if inputs.init != TYPED else None


def _size(name: str, axis: str) -> Callable[[SequenceInputs, Any], Values | None]:
    """T, B or F brought down to its limit: the number that data are made with, or typed numbers cut."""

    def translate(inputs: SequenceInputs, value: Any) -> Values | None:
        return {name: int(value)} if inputs.source != TYPED else _cut(inputs, axis, int(value))

    return translate


def _cut(inputs: SequenceInputs, axis: str, size: int) -> Values | None:
    try:
        numbers = read_batch(inputs.numbers, inputs.axes)
        array = typed_array(numbers, inputs.axes)
    except UnreadableError:
        return None
    shape = list(typed_shape(numbers, inputs.axes))
    at = inputs.axes.index(axis)
    shape[at] = min(shape[at], size)
    if numbers.filled:
        return {"numbers": _filled(numbers, tuple(shape))}
    return None if array is None else {"numbers": format_leaf(array[tuple(slice(n) for n in shape)])}


_BY_KIND: Final[Mapping[str, Callable[[SequenceInputs, Any], Values | None]]] = {
    "time_major": _flag("time_major"),
    "keep_order": _flag("keep_order"),
    "axes": _axes,
    "lengths": _lengths,
    "masking": _masking,
    "mask": _mask,
    "slip": _slip,
    "init": _init,
    "unroll": _unroll,
    "size_hidden": _hidden,
    "size_length": _size("length", "T"),
    "size_batch": _size("batch", "B"),
    "size_features": _size("in_features", "F"),
}
