"""The Scan page's inputs as one frozen value: from the page's fields, and to the call that is checked.

The field table depends on the step: each leaf of its init and each of its parameters is a field of its own. Numbers are
kept as the text that was typed, so that a link carries them and a message can name the place of a bad one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from core.base.avals import abstract
from core.base.limits import LIMITS
from core.base.places import Field, Places
from core.base.text import fill
from core.base.violation import FieldEdit
from core.contract.subject import ScanCall
from core.inputs.cells import cell_problem, split_cells
from core.inputs.fields import Value
from core.inputs.generate import generate
from core.inputs.parse import (
    DOES_NOT_FIT,
    Numbers,
    UnreadableError,
    numpy_dtype,
    parse_leaf,
    parse_sequence,
    place_in,
    to_array,
)
from core.inputs.preset import (
    InitLeaf,
    init_leaves,
    init_tree,
    step_of,
    takes_numbers,
)
from core.inputs.scan_fields import LABEL_INIT_DTYPE, LABELS, PAGE, layout, step_params, too_many
from core.steps.library import right_of
from core.steps.step import Step, XKind, step_keys, x_aval

ONLY_NUMBERS_ARE_WEAK = "Only a single number can be weak (a Python number): a list of numbers makes a strong array."
BELOW_ZERO = "{label} must be 0 or more."
WEAK_TOO_LARGE = "A Python number becomes int32 here, and {value} does not fit it ({low} to {high})."
ONLY_PYTHON_TYPES_ARE_WEAK = "Python has no {dtype}: only float32, int32 and bool can be weak."


@dataclass(frozen=True, slots=True)
class InitText:
    """One leaf of init as it was typed."""

    leaf: InitLeaf
    text: str
    dtype: str
    weak: bool


@dataclass(frozen=True, slots=True)
class ScanInputs:
    """Everything that stands in the inputs of the Scan page; equal inputs make equal calls.

    Attributes:
        step: the preset.
        params: (name, value) of its parameters, in their order.
        source: where xs comes from; the fields of the other sources keep their values.
        numbers: typed or pasted text.
        generator, length, features, batch, seed: of a generated sequence; 0 features or batch is no such axis.
        axes: what was said of the axes: nothing, time first, or batch first.
        dtype: of xs.
        as_list: xs is handed over as a Python list of its rows.
        init: leaf by leaf.
        reverse: as given.
        unroll, length_argument: as typed; empty is not given.
    """

    step: Step
    params: tuple[tuple[str, float], ...]
    source: str
    numbers: str
    generator: str
    length: int
    features: int
    batch: int
    axes: str
    dtype: str
    as_list: bool
    seed: int
    init: tuple[InitText, ...]
    reverse: bool
    unroll: str
    length_argument: str


@dataclass(frozen=True, slots=True)
class Mend:
    """A button under an input that puts it right: the input's field, the words on it, what it sets."""

    field: str
    title: str
    edit: FieldEdit


@dataclass(frozen=True, slots=True, eq=False)
class Built:
    """The call that some inputs mean, or why they mean none.

    Attributes:
        call: None when an input could not be read.
        problems: (field name, sentence) of each input that could not.
        hints: (field name, sentence) of each input that is not used as it stands.
        mends: what puts inputs right that could be read and that the step cannot take.
        misfit: the problems are of that kind.
    """

    call: ScanCall | None
    problems: tuple[tuple[str, str], ...] = ()
    hints: tuple[tuple[str, str], ...] = ()
    mends: tuple[Mend, ...] = ()
    misfit: bool = False


def from_values(values: Mapping[str, Value]) -> ScanInputs:
    """The inputs that complete values of the page's fields mean."""
    given: Any = values  # each field's kind says its type; `FieldTable.complete` has made sure
    step = step_of(given["step"])
    return ScanInputs(
        step=step,
        params=tuple(step_params(step, given).items()),
        init=tuple(
            InitText(leaf, given[leaf.name], given[f"{leaf.name}_dtype"], given[f"{leaf.name}_weak"])
            for leaf in init_leaves(step)
        ),
        **{name: given[name] for name in LABELS if name != "step"},
    )


# --- the call -------------------------------------------------------------------------------------------------------


def build(inputs: ScanInputs) -> Built:
    """The call that the inputs mean. Nothing of an asked-for size is allocated: over the limit of elements a leaf is an
    abstract value, of which rule X601 speaks.
    """
    step = inputs.step
    problems: list[tuple[str, str]] = []
    hints: list[tuple[str, str]] = []
    array: Any = None
    problems += [(name, fill(BELOW_ZERO, label=fill(LABELS[name]))) for name in _below_zero(inputs)]
    try:
        array = None if problems else _xs(inputs)
        if inputs.as_list and array is not None:
            _check_list(array)
    except UnreadableError as problem:
        problems.append(("generator" if inputs.source == "generate" else "numbers", str(problem)))
    leaves = []
    for typed in inputs.init:
        try:
            value, hint = _init_leaf(typed)
        except UnreadableError as problem:
            problems.append((typed.leaf.name, str(problem)))
            continue
        leaves.append(value)
        if hint:
            hints.append((f"{typed.leaf.name}_weak", hint))
    if problems:
        return Built(None, tuple(problems), tuple(hints))
    call = ScanCall(
        step=step.fn,
        init=init_tree(step, leaves),
        xs=_handed_over(array, as_list=inputs.as_list),
        length=read_argument(inputs.length_argument, empty=None),
        reverse=inputs.reverse,
        unroll=read_argument(inputs.unroll, empty=1),
        params=step.arguments(step, x_aval(array) if takes_numbers(step) else None, dict(inputs.params)),
        axes=_axes(inputs, array),
        right_step=right_of(step).fn if step.right else None,
        places=places(inputs),
    )
    return Built(call, (), tuple(hints))


def _below_zero(inputs: ScanInputs) -> tuple[str, ...]:
    """The sizes that count and are no sizes."""
    if inputs.step.x is XKind.NONE:
        return ()
    generated = takes_numbers(inputs.step) and inputs.source == "generate"
    names = ("length", "batch", "features") if generated else ("length",)
    return tuple(name for name in names if getattr(inputs, name) < 0)


def _xs(inputs: ScanInputs) -> Any:
    """One array (or its abstract value), keys, or None."""
    match inputs.step.x:
        case XKind.NONE:
            return None
        case XKind.KEY:
            most = LIMITS["length"].value
            keys = step_keys(inputs.seed, min(inputs.length, most))
            return keys if inputs.length <= most else abstract((inputs.length,), keys.dtype)
        case _:
            return _generated(inputs) if inputs.source == "generate" else _typed(inputs)


def _check_list(array: Any) -> None:
    """Python numbers become int32, and JAX raises where they do not fit: it cuts arrays only.

    Raises:
        UnreadableError: a number that does not fit; the message has its place.
    """
    if not isinstance(array, np.ndarray) or array.dtype != np.int64:
        return
    info = np.iinfo(np.int32)
    index = tuple(int(i) for i in np.argwhere((array < info.min) | (array > info.max))[0])
    reason = fill(DOES_NOT_FIT, value=int(array[index]), dtype="int32", low=info.min, high=info.max)
    raise UnreadableError(place_in(index, reason, steps=True))


def _handed_over(array: Any, *, as_list: bool) -> Any:
    """Xs as it is given to `lax.scan`. A list is what people have in hand: of Python numbers, or of array rows."""
    if not as_list or not isinstance(array, np.ndarray) or array.ndim == 0:
        return array
    return array.tolist() if array.ndim == 1 else list(array)


def _generated(inputs: ScanInputs) -> Any:
    columns = tuple(n for n in (inputs.batch, inputs.features) if n)
    values = generate(inputs.generator, inputs.length, columns, inputs.dtype, inputs.seed)
    shape = layout(inputs.length, inputs.batch, inputs.features, inputs.axes)
    if isinstance(values, jax.ShapeDtypeStruct):
        return abstract(shape, values.dtype)
    return np.ascontiguousarray(values.swapaxes(0, 1)) if inputs.axes == "batch" and inputs.batch else values


def _typed(inputs: ScanInputs) -> Any:
    cells = split_cells(inputs.numbers) if inputs.source == "table" else None
    problem = cell_problem(cells) if cells is not None else ""
    if problem:
        raise UnreadableError(problem)
    numbers = parse_sequence(inputs.numbers)
    if numbers.shape and too_many(inputs.length, numbers.shape):
        return abstract((inputs.length, *numbers.shape[1:]), numpy_dtype(inputs.dtype))
    return _array(numbers, inputs.dtype, steps=True)


def _array(numbers: Numbers, dtype: str, *, steps: bool = False) -> Any:
    if numbers.size > LIMITS["elements"].value:
        return abstract(numbers.shape, numpy_dtype(dtype))
    return to_array(numbers, dtype, steps=steps)


_PYTHON_TYPES: Mapping[str, Any] = {"float32": float, "int32": int, "bool": bool}


def _init_leaf(typed: InitText) -> tuple[Any, str]:
    """The leaf and a hint. A weak leaf is a Python number, as people write it."""
    numbers = parse_leaf(typed.text)
    if typed.weak and typed.dtype == "int32" and not numbers.shape:
        _check_python_int(numbers.nested)
    array = _array(numbers, typed.dtype)
    if not typed.weak:
        return array, ""
    if isinstance(numbers.nested, list) or numbers.shape:
        return array, fill(ONLY_NUMBERS_ARE_WEAK)
    if typed.dtype not in _PYTHON_TYPES:
        return array, fill(ONLY_PYTHON_TYPES_ARE_WEAK, dtype=typed.dtype)
    return _PYTHON_TYPES[typed.dtype](numbers.nested), ""


def _check_python_int(value: Any) -> None:
    """JAX cuts arrays without a word, and raises here.

    Raises:
        UnreadableError: it does not fit int32.
    """
    info = np.iinfo(np.int32)
    if isinstance(value, int) and not info.min <= value <= info.max:
        raise UnreadableError(fill(WEAK_TOO_LARGE, value=value, low=info.min, high=info.max))


_INT = re.compile(r"[+-]?\d{1,18}", re.A)
_FLOAT = re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+(\.\d*)?e[+-]?\d+|inf|nan)", re.A | re.I)
_WORDS: Mapping[str, Any] = {"None": None, "True": True, "False": False, "true": True, "false": False}


def read_argument(text: str, *, empty: Any) -> Any:
    """What a person means who types this for `length` or `unroll`: a number, None, True, else the text itself.

    Wrong types stay wrong: that is what the rules are for.
    """
    text = text.strip()
    if not text:
        return empty
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _axes(inputs: ScanInputs, xs: Any) -> dict[str, str]:
    """The letters that were said, where they fit the number of axes."""
    letters = {
        "time": {1: "T", 2: "TB" if _only_batch(inputs) else "TF", 3: "TBF"},
        "batch": {2: "BT", 3: "BTF"},
    }.get(inputs.axes, {})
    if inputs.axes == "batch" and inputs.source == "generate" and not inputs.batch:
        return {}  # what has no batch does not begin with it
    ndim = len(getattr(xs, "shape", ()))
    return {"xs": letters[ndim]} if ndim in letters else {}


def _only_batch(inputs: ScanInputs) -> bool:
    return inputs.source == "generate" and inputs.batch > 0 and inputs.features == 0


def places(inputs: ScanInputs) -> Places:
    """Which input of the page each role of the call came from."""
    step = Field(f"{PAGE}_step", fill(LABELS["step"]))
    xs_name = "generator" if inputs.source == "generate" else "numbers"
    xs = Field(f"{PAGE}_{xs_name}", "xs")
    by_role: dict[str, Any] = {"step": step, "return": step, "scan": step, "xs": xs}
    for role, name in (
        ("xs_dtype", "dtype"),
        ("length", "length_argument"),
        ("unroll", "unroll"),
        ("reverse", "reverse"),
    ):
        by_role[role] = Field(f"{PAGE}_{name}", fill(LABELS[name]))
    for typed in reversed(inputs.init):  # so that the first leaf is what the bare role means
        leaf, dtype = typed.leaf, fill(LABEL_INIT_DTYPE, label=typed.leaf.label)
        by_role[f"init:{leaf.path}"] = by_role["init"] = Field(f"{PAGE}_{leaf.name}", leaf.label)
        by_role[f"init_dtype:{leaf.path}"] = by_role["init_dtype"] = Field(f"{PAGE}_{leaf.name}_dtype", dtype)
    return Places(by_role)
