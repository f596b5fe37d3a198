"""What follows what on the Sequence page, when an input is changed by hand.

- Lengths that nobody typed are made from B and T. Typed ones, and a mask, are cut when T gets shorter or B smaller, and
  come back with what was typed: it is kept beside them (`lengths_typed`, `mask_typed`) until they are typed anew.
- Typed data say B, T and F: these settle on the numbers. Whoever turns to typed data finds those that were there.
- Whoever turns to a typed initial carry finds zeros of its shape.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from core.base.limits import LIMITS
from core.inputs.cell_numbers import written
from core.inputs.fields import Value
from core.inputs.parse import format_leaf
from core.inputs.sequence_data import shape_of
from core.inputs.sequence_fields import LENGTHS, MASK, SUMMED_MASK, TYPED, sequence_fields
from core.inputs.sequence_inputs import SequenceInputs, build, read
from core.inputs.sequence_padding import default_lengths, fitted_lengths, fitted_mask, toggle

type Values = dict[str, Value]


def follow(before: Mapping[str, Value], edits: Mapping[str, Value]) -> Values:
    """The values after an edit.

    Args:
        before: complete values.
        edits: what was changed by hand.

    Returns:
        complete values; those in `edits` as they were given, but for sizes that typed numbers have otherwise.
    """
    values: Values = {**before, **edits}
    if values["source"] == TYPED:
        if before["source"] != TYPED and not str(values["numbers"]).strip():
            values["numbers"] = _numbers(before, values)
        values = settled(values)
    _fit(before, edits, values)
    _fill_init(before, values)
    return sequence_fields(values).complete(values)


def settled(values: Mapping[str, Value]) -> Values:
    """The values with B, T and F as the typed numbers have them; as they are where these cannot be read."""
    out = dict(values)
    if out["source"] == TYPED:
        known, _ = read(SequenceInputs.of(out))
        if known is not None:
            out |= dict(zip(("batch", "length", "in_features"), known.sizes, strict=True))
    return out


def clicked(inputs: SequenceInputs, example: int, t: int) -> Values:
    """What a click on a step of the grid sets: the mask with that step turned over, and that the layer gets it."""
    known, _ = read(inputs)
    batch, length = (inputs.batch, inputs.length) if known is None else known.sizes[:2]
    text = toggle(inputs.mask if inputs.masked else "", inputs.lengths, batch, length, example, t)
    summed = inputs.slip == SUMMED_MASK and inputs.masking == LENGTHS
    return {"mask": text, "mask_typed": "", "masking": LENGTHS if summed else MASK}


def _fit(before: Mapping[str, Value], edits: Mapping[str, Value], values: Values) -> None:
    """Lengths and mask for the B and T that stand there now."""
    for name in ("lengths", "mask"):
        if name in edits:
            values[f"{name}_typed"] = ""
    old, new = _sizes(before), _sizes(values)
    if old == new:
        return
    if "lengths" not in edits:
        text, typed = str(before["lengths"]), str(before["lengths_typed"])
        untouched = not typed and text == default_lengths(*old)
        fitted = fitted_lengths(text, typed, old, new, untouched=untouched)
        values["lengths"], values["lengths_typed"] = fitted
    if "mask" not in edits:
        values["mask"], values["mask_typed"] = fitted_mask(str(before["mask"]), str(before["mask_typed"]), new)


def _sizes(values: Mapping[str, Value]) -> tuple[int, int]:
    return int(values["batch"]), int(values["length"])


def _numbers(before: Mapping[str, Value], values: Mapping[str, Value]) -> str:
    """The data that were there, written down; a single zero where they are too many to be typed, or none."""
    trial = build(SequenceInputs.of({**before, "axes": values["axes"]})).trial
    if trial is None or not isinstance(trial.inputs, np.ndarray) or trial.inputs.size > LIMITS["typed_numbers"].value:
        return format_leaf(np.zeros(shape_of((1, 1, 1), str(values["axes"])), np.float32))
    return format_leaf(trial.inputs) if trial.inputs.size else ""


def _fill_init(before: Mapping[str, Value], values: Values) -> None:
    """Zeros for a typed carry that is empty, or that were zeros of the shape it had to have before."""
    if values["init"] != TYPED:
        return
    was, now = _zeros(before), _zeros(values)
    for name in ("init_c", "init_h"):
        text = str(values[name])
        if now and (not text.strip() or text == was):
            values[name] = now


def _zeros(values: Mapping[str, Value]) -> str:
    batch, hidden = int(values["batch"]), int(values["hidden_features"])
    if not (1 <= batch <= LIMITS["batch"].value and 1 <= hidden <= LIMITS["hidden"].value):
        return ""
    return written(np.zeros((batch, hidden)))
