"""The data of the Sequence page as lines of Python: how they are made, what stands in the padding, and what says so."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from core.base.text import fill
from core.inputs.parse import Numbers, format_leaf, format_number, to_array
from core.inputs.sequence_data import PERIOD, Sizes, shape_of, typed_array, typed_shape
from core.inputs.sequence_fields import BTF, IMPULSE, KEPT, NAN, NOISE, NONE, RAMP, REPEAT, SINE
from core.inputs.sequence_inputs import FILLER_SEED, Known, SequenceInputs
from core.inputs.sequence_padding import is_given, valid_steps

#: Longer lines are broken at their brackets.
WIDTH: Final = 88
INDENT: Final = "    "
#: So many examples have a line each for their padding.
_EACH: Final = 8

GRID_BTF: Final = "b, t, f = np.ogrid[:{batch}, :{length}, :{features}]"
GRID_TBF: Final = "t, b, f = np.ogrid[:{length}, :{batch}, :{features}]"
SINE_LINE: Final = "x = np.sin(2 * np.pi * t / {period} + ({features} * b + f) * np.pi / 4)"
RAMP_LINE: Final = "x = 0.1 * (t + 1) + 0.5 * b - 0.25 * f"
ZEROS_LINE: Final = "x = np.zeros({shape})"
IMPULSE_BTF: Final = "x[:, :1] = 1.0"
IMPULSE_TBF: Final = "x[:1] = 1.0"
NOISE_LINE: Final = "x = np.random.default_rng({seed}).standard_normal(({length}, {batch}, {features})){turned}"
TURNED: Final = ".swapaxes(0, 1)"
TYPED_LINE: Final = "x = np.array({numbers})"
FULL_LINE: Final = "x = np.full({shape}, {value})"
DEVICE: Final = "x = jnp.asarray(x, jnp.float32)  # ({axes})"
FILLER: Final = "filler = {values}"
LOOP: Final = "for example, n in enumerate({numbers}):\n    {line}"
REPEATED: Final = (
    "last = np.maximum.accumulate(np.where(steps, np.arange({length}), 0), axis=1)\n"
    "x = np.take_along_axis(x, last{turned}[..., None], axis={axis})"
)
ROWS: Final = "rows = {rows}"
STEPS: Final = 'steps = np.array([[step == "1" for step in row] for row in rows])'
LENGTHS_LINE: Final = "lengths = jnp.array({numbers})"
MASK_STEPS: Final = "mask = jnp.asarray(steps)  # (B, T)"
MASK_ALL: Final = "mask = jnp.ones(({batch}, {length}), bool)"
MASK_LENGTHS: Final = "mask = jnp.arange({length}) < lengths[:, None]  # (B, T)"
PADDING: Final = "  # padding"


def call(function: str, arguments: Sequence[str]) -> str:
    """A call, its arguments on lines of their own where it is long."""
    line = f"{function}({', '.join(arguments)})"
    if len(line) <= WIDTH - len("carry, ys = "):
        return line
    return function + "(\n" + "".join(f"{INDENT}{argument},\n" for argument in arguments) + ")"


def literal(values: Any, module: str) -> str:
    """An array as nested lists that read back to it, with the module's nan and inf."""
    array = np.asarray(values)
    text = format_leaf(array).replace("nan", f"{module}.nan").replace("inf", f"{module}.inf")
    if len(text) <= WIDTH - 4 * len(INDENT) or array.ndim < 2:  # rows to break at
        return text
    rows = (f"{INDENT}{literal_line(row, module)},\n" for row in array)
    return "[\n" + "".join(rows) + "]"


def literal_line(values: Any, module: str) -> str:
    """The same on one line."""
    return format_leaf(np.asarray(values)).replace("nan", f"{module}.nan").replace("inf", f"{module}.inf")


# --- made ---------------------------------------------------------------------------------------------------------------


def _grid(sizes: Sizes, axes: str) -> str:
    batch, length, features = sizes
    return fill(GRID_BTF if axes == BTF else GRID_TBF, batch=batch, length=length, features=features)


def _sine(sizes: Sizes, axes: str, _: int) -> list[str]:
    return [_grid(sizes, axes), fill(SINE_LINE, period=PERIOD, features=sizes[2])]


def _ramp(sizes: Sizes, axes: str, _: int) -> list[str]:
    return [_grid(sizes, axes), fill(RAMP_LINE)]


def _impulse(sizes: Sizes, axes: str, _: int) -> list[str]:
    return [fill(ZEROS_LINE, shape=shape_of(sizes, axes)), fill(IMPULSE_BTF if axes == BTF else IMPULSE_TBF)]


def _noise(sizes: Sizes, axes: str, seed: int) -> list[str]:
    batch, length, features = sizes
    turned = TURNED if axes == BTF else ""
    return [fill(NOISE_LINE, seed=seed, length=length, batch=batch, features=features, turned=turned)]


#: By source: the lines that make x, as `sequence_data.make` does it.
MADE: Final[Mapping[str, Callable[[Sizes, str, int], list[str]]]] = {
    SINE: _sine,
    RAMP: _ramp,
    IMPULSE: _impulse,
    NOISE: _noise,
}


def data_lines(inputs: SequenceInputs, known: Known) -> list[str]:
    """x, with its padding filled, on the device; ``rows`` and ``steps`` where a mask is written out."""
    device = fill(DEVICE, axes=", ".join(inputs.axes))
    if known.numbers is not None:
        made = [_typed(known.numbers, inputs.axes)]
        filled = list(_steps(known)) if _written_out(inputs, known) else []
        return [*made, *filled, device]
    made = MADE[inputs.source](known.sizes, inputs.axes, inputs.data_seed)
    written = list(_steps(known)) if _written_out(inputs, known) else []
    return [*made, *written, *_filled(inputs, known), device]


def _typed(numbers: Numbers, axes: str) -> str:
    if numbers.filled:
        value = format_number(to_array(Numbers((), numbers.nested), "float32")[()])
        value = f"np.{value}" if value[-1].isalpha() else value
        return fill(FULL_LINE, shape=typed_shape(numbers, axes), value=value.replace("np.-", "-np."))
    array = typed_array(numbers, axes)
    if array is None or not array.size:
        return fill(ZEROS_LINE, shape=typed_shape(numbers, axes))
    return fill(TYPED_LINE, numbers=literal(array, "np"))


# --- padding ------------------------------------------------------------------------------------------------------------


def _written_out(inputs: SequenceInputs, known: Known) -> bool:
    """Whether the mask is written row by row: typed, or no plain comparison with the lengths."""
    return known.mask is not None and not by_lengths(inputs, known) and not bool(known.mask.all())


def by_lengths(inputs: SequenceInputs, known: Known) -> bool:
    """Whether the mask is the one that the lengths mean, one for each example."""
    return known.mask is not None and not is_given(inputs.mask) and known.meant is not None and _one_each(known)


def _one_each(known: Known) -> bool:
    return known.meant is not None and len(known.meant) == known.sizes[0]


def _steps(known: Known) -> list[str]:
    texts = ["".join("1" if step else "0" for step in row) for row in np.asarray(known.mask).tolist()]
    listed = "[" + ", ".join(f'"{text}"' for text in texts) + "]"
    if len(listed) > WIDTH - len("rows = "):
        listed = "[\n" + "".join(f'{INDENT}"{text}",\n' for text in texts) + "]"
    return [fill(ROWS, rows=listed), STEPS]


def _filled(inputs: SequenceInputs, known: Known) -> list[str]:
    """The lines that put something else into the padding."""
    if inputs.padding == KEPT or not known.small or not math.prod(known.sizes) or bool(known.valid.all()):
        return []
    other = []
    if inputs.padding == NOISE:
        made = _noise(known.sizes, inputs.axes, inputs.data_seed + FILLER_SEED)
        other = [fill(FILLER, values=made[-1].removeprefix("x = "))]
    if _written_out(inputs, known):
        return other + _by_steps(inputs, known)
    counts = [int(row.sum()) for row in known.valid]
    short = [(b, n) for b, n in enumerate(counts) if n < known.sizes[1]]
    if len(short) <= _EACH:
        return other + [_by_length(inputs, b, n) + PADDING for b, n in short]
    line = _by_length(inputs, "example", "n")
    return [*other, fill(LOOP, numbers=counts, line=line) + PADDING]


def _by_length(inputs: SequenceInputs, example: int | str, n: int | str) -> str:
    """The line that fills one example's padding."""
    place = f"{example}, {n}:" if inputs.axes == BTF else f"{n}:, {example}"
    before = max(n - 1, 0) if isinstance(n, int) else f"max({n} - 1, 0)"
    last = f"{example}, {before}" if inputs.axes == BTF else f"{before}, {example}"
    values = {REPEAT: f"x[{last}]", NOISE: f"filler[{place}]", NAN: "np.nan"}.get(inputs.padding, "0.0")
    return f"x[{place}] = {values}"


def _by_steps(inputs: SequenceInputs, known: Known) -> list[str]:
    turned = "" if inputs.axes == BTF else ".T"
    if inputs.padding == REPEAT:
        return [fill(REPEATED, length=known.sizes[1], turned=turned, axis=inputs.axes.index("T"))]
    where = f"~steps{turned}"
    values = {NOISE: f"filler[{where}]", NAN: "np.nan"}.get(inputs.padding, "0.0")
    return [f"x[{where}] = {values}{PADDING}"]


# --- what is told -------------------------------------------------------------------------------------------------------


def telling_lines(inputs: SequenceInputs, known: Known) -> list[str]:
    """``lengths`` and ``mask``, where they are given, used or not."""
    batch, length, _ = known.sizes
    if known.mask is not None:
        if by_lengths(inputs, known):
            return [fill(LENGTHS_LINE, numbers=list(known.meant or ())), fill(MASK_LENGTHS, length=length)]
        whole = fill(MASK_ALL, batch=batch, length=length)
        return [fill(MASK_STEPS) if _written_out(inputs, known) else whole]
    padding = inputs.masking != NONE or (known.small and not bool(valid_steps(known.lengths, batch, length).all()))
    if known.lengths is None or not padding:
        return []
    return [fill(LENGTHS_LINE, numbers=list(known.lengths))]
