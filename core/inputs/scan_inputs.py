"""The Scan page's inputs as one frozen value: from the page's fields, and to the call that is checked.

The field table depends on the step: each leaf of its init and each of its parameters is a field of its own. Numbers are
kept as the text that was typed, so that a link carries them and a message can name the place of a bad one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import jax
import numpy as np

from core.base.avals import Aval, abstract
from core.base.limits import LIMITS
from core.base.places import Field, Places
from core.base.text import fill
from core.contract.subject import ScanCall
from core.inputs.cells import cell_problem, split_cells
from core.inputs.fields import FieldTable, InputField, Kind, Value
from core.inputs.generate import GENERATORS, generate
from core.inputs.parse import (
    DTYPES,
    Numbers,
    UnreadableError,
    format_sequence,
    numpy_dtype,
    parse_leaf,
    parse_sequence,
    to_array,
)
from core.inputs.preset import (
    InitLeaf,
    LeafText,
    init_leaves,
    init_texts,
    init_tree,
    opening_numbers,
    step_of,
    takes_numbers,
)
from core.steps.library import DEFAULT, STEPS, right_of
from core.steps.step import Step, XKind, step_keys, x_aval

PAGE = "scan"
#: The most that a size can be asked for: far over every limit, so that the rules answer and not the control.
MOST: Final = 10**12
SOURCES = ("table", "paste", "generate")
AXES = ("unsaid", "time", "batch")

LABEL_INIT_DTYPE = "{label} dtype"
LABEL_INIT_WEAK = "{label} weak"
LABELS = {
    "step": "step",
    "source": "xs from",
    "numbers": "xs",
    "generator": "xs made by",
    "length": "length T",
    "features": "features F",
    "batch": "batch B",
    "axes": "axes of xs",
    "dtype": "xs dtype",
    "as_list": "xs as a Python list",
    "seed": "seed",
    "reverse": "reverse",
    "unroll": "unroll",
    "length_argument": "length",
}
ONLY_NUMBERS_ARE_WEAK = "Only a single number can be weak (a Python number): a list of numbers makes a strong array."
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


@dataclass(frozen=True, slots=True, eq=False)
class Built:
    """The call that some inputs mean, or why they mean none.

    Attributes:
        call: None when an input could not be read.
        problems: (field name, sentence) of each input that could not.
        hints: (field name, sentence) of each input that is not used as it stands.
    """

    call: ScanCall | None
    problems: tuple[tuple[str, str], ...] = ()
    hints: tuple[tuple[str, str], ...] = ()


# --- fields ---------------------------------------------------------------------------------------------------------


def scan_fields(values: Mapping[str, object]) -> FieldTable:
    """The table for some values: of their step, with the init that this step starts from for such an xs.

    What is missing counts as by default. Where xs cannot be read (or is over a limit), the init that stands there is
    taken for the default: nothing may jump while a number is being mended.
    """
    step = step_of(values.get("step", DEFAULT.id))
    fixed = FieldTable(PAGE, (*_fixed_fields(step), *_param_fields(step)))
    complete = fixed.complete(values)
    return FieldTable(PAGE, (*fixed.fields, *_init_fields(step, complete, values)))


def opening(step: str) -> dict[str, Value]:
    """All values as the page opens with this step."""
    return scan_fields({"step": step}).complete({"step": step})


def scan_link_fields(params: Mapping[str, str]) -> FieldTable:
    """The table for what a link says."""
    step = step_of(params.get("step", DEFAULT.id))
    fixed = FieldTable(PAGE, (*_fixed_fields(step), *_param_fields(step)))
    return scan_fields(fixed.from_link(params).values)


def _fixed_fields(step: Step) -> tuple[InputField, ...]:
    """The fields that any step has, with its defaults."""
    link = LIMITS["url_text"].value
    without_xs = step.x is XKind.NONE
    return (
        _choice("step", "step", tuple(STEPS), DEFAULT.id),
        _choice("source", "from", SOURCES, "table"),
        _text("numbers", "x", opening_numbers(step), link),
        _choice("generator", "gen", tuple(g.id for g in GENERATORS), "ramp"),
        _whole("length", "T", step.length, MOST),
        _whole("features", "F", 0, MOST),
        _whole("batch", "B", 0, MOST),
        _choice("axes", "axes", AXES, "unsaid"),
        _choice("dtype", "dt", DTYPES, step.dtype),
        _flag("as_list", "list"),
        _whole("seed", "seed", 0, 2**31 - 1),
        _flag("reverse", "rev"),
        _text("unroll", "unroll", "1", 40),
        _text("length_argument", "len", str(step.length) if without_xs else "", 40),
    )


def _choice(name: str, url: str, options: tuple[str, ...], default: str) -> InputField:
    return InputField(name, url, Kind.CHOICE, default, fill(LABELS[name]), options=options)


def _text(name: str, url: str, default: str, max_chars: int) -> InputField:
    return InputField(name, url, Kind.TEXT, default, fill(LABELS[name]), max_chars=max_chars)


def _whole(name: str, url: str, default: int, high: int) -> InputField:
    return InputField(name, url, Kind.WHOLE, default, fill(LABELS[name]), low=0, high=high)


def _flag(name: str, url: str) -> InputField:
    return InputField(name, url, Kind.FLAG, False, fill(LABELS[name]))


def _param_fields(step: Step) -> tuple[InputField, ...]:
    return tuple(
        InputField(
            f"param_{p.name}",
            f"p.{p.name}",
            Kind.WHOLE if p.whole else Kind.NUMBER,
            int(p.default) if p.whole else float(p.default),
            p.label,
            low=p.low,
            high=p.high,
        )
        for p in step.params
    )


def _init_fields(step: Step, complete: Mapping[str, Value], given: Mapping[str, object]) -> Iterator[InputField]:
    leaves = init_leaves(step)
    texts = _opening_texts(step, complete)
    for index, leaf in enumerate(leaves):
        url = "init" if leaf.name == "init" else "i." + leaf.name.removeprefix("init_")
        text, dtype, weak = (
            (texts[index].text, texts[index].dtype, texts[index].weak)
            if texts is not None
            else (
                given.get(leaf.name, ""),
                given.get(f"{leaf.name}_dtype", DTYPES[0]),
                given.get(f"{leaf.name}_weak", False),
            )
        )
        dtype_label, weak_label = fill(LABEL_INIT_DTYPE, label=leaf.label), fill(LABEL_INIT_WEAK, label=leaf.label)
        yield InputField(leaf.name, url, Kind.TEXT, str(text), leaf.label, max_chars=LIMITS["url_text"].value)
        yield InputField(f"{leaf.name}_dtype", f"{url}.dt", Kind.CHOICE, str(dtype), dtype_label, options=DTYPES)
        yield InputField(f"{leaf.name}_weak", f"{url}.weak", Kind.FLAG, bool(weak), weak_label)


def _opening_texts(step: Step, complete: Mapping[str, Value]) -> tuple[LeafText, ...] | None:
    """The step's own init for the xs that these values mean; None where that is not known or over a limit."""
    x = _x_type(step, complete)
    if x is None and takes_numbers(step):
        return None
    if x is not None and x.size > LIMITS["elements"].value:
        return None
    return init_texts(step, x, _params(step, complete))


def _x_type(step: Step, values: Mapping[str, Any]) -> Aval | None:
    """The type of one x, found without making the sequence."""
    if not takes_numbers(step):
        return None
    if values["source"] == "generate":
        shape = _layout(values["length"], values["batch"], values["features"], values["axes"])
    else:
        shape = _typed_shape(values) or ()
        if not shape:
            return None
    return Aval(shape[1:], values["dtype"])


def _layout(length: int, batch: int, features: int, axes: str) -> tuple[int, ...]:
    """The shape of a generated sequence."""
    front = (batch, length) if axes == "batch" and batch else (length, *((batch,) if batch else ()))
    return (*front, *((features,) if features else ()))


def _params(step: Step, values: Mapping[str, Any]) -> dict[str, float]:
    return {p.name: values[f"param_{p.name}"] for p in step.params}


def from_values(values: Mapping[str, Value]) -> ScanInputs:
    """The inputs that complete values of the page's fields mean."""
    given: Any = values  # each field's kind says its type; `FieldTable.complete` has made sure
    step = step_of(given["step"])
    return ScanInputs(
        step=step,
        params=tuple(_params(step, given).items()),
        init=tuple(
            InitText(leaf, given[leaf.name], given[f"{leaf.name}_dtype"], given[f"{leaf.name}_weak"])
            for leaf in init_leaves(step)
        ),
        **{name: given[name] for name in LABELS if name != "step"},
    )


def settle(values: Mapping[str, Value]) -> dict[str, Value]:
    """The same values with T as many as there are rows, where xs is typed: the numbers count, T follows them."""
    out = dict(values)
    shape = _typed_shape(values)
    # A T for which so many numbers cannot be typed stays as it was asked for: rule X601 answers it.
    if shape and not _too_many(int(out["length"]), shape):
        out["length"] = shape[0]
    return out


def _too_many(length: int, shape: tuple[int, ...]) -> bool:
    return length * max(math.prod(shape[1:]), 1) > LIMITS["typed_numbers"].value


def follow(before: Mapping[str, Value], edits: Mapping[str, Value]) -> dict[str, Value]:
    """The values after an edit: inputs that stand as the step opens them go on doing so.

    So init takes the shape of a wider xs, as long as nobody typed one; and with another step, everything that is still
    as the old one opens it, and all that belongs to the step itself, opens as the new one does.
    """
    old, merged = scan_fields(before), {**before, **edits}
    if "length" in edits and "numbers" not in edits and merged["source"] != "generate":
        merged["numbers"] = resized(str(merged["numbers"]), int(merged["length"]))
        edits = {**edits, "numbers": merged["numbers"]}
    another = merged["step"] != before["step"]
    if another and takes_numbers(step_of(before["step"])) != takes_numbers(step_of(merged["step"])):
        merged |= {
            name: value for name, value in scan_fields({"step": merged["step"]}).defaults().items() if name in _XS
        }
        merged |= edits
    # Twice: what init opens with depends on the xs that the first pass settles.
    for _ in range(2):
        new = scan_fields(merged)
        for field in new.fields:
            own = field.name.startswith(("init", "param_"))
            known = old.has(field.name) and field.name in before
            untouched = known and before[field.name] == old.field(field.name).default
            if field.name not in edits and (untouched or not known or (own and another)):
                merged[field.name] = field.default
    return settle(new.complete(merged))


_XS = frozenset({"source", "numbers", "length", "dtype", "features", "batch", "axes", "as_list", "length_argument"})


def _typed_shape(values: Mapping[str, Value]) -> tuple[int, ...] | None:
    """The shape of the typed numbers; None when xs is not typed, or cannot be read."""
    if values["source"] == "generate" or not takes_numbers(step_of(values["step"])):
        return None
    try:
        return parse_sequence(str(values["numbers"])).shape
    except UnreadableError:
        return None


def resized(numbers: str, length: int) -> str:
    """Typed numbers with `length` rows: cut, or repeated from the start. As they were when that cannot be."""
    try:
        parsed = parse_sequence(numbers)
    except UnreadableError:
        return numbers
    if not parsed.shape or parsed.filled or _too_many(length, parsed.shape):
        return numbers
    rows: Any = parsed.nested if parsed.shape[0] else [1]
    return format_sequence(np.asarray([rows[i % len(rows)] for i in range(length)], dtype=object))


# --- the call -------------------------------------------------------------------------------------------------------


def build(inputs: ScanInputs) -> Built:
    """The call that the inputs mean. Nothing of an asked-for size is allocated: over the limit of elements a leaf is an
    abstract value, of which rule X601 speaks.
    """
    step = inputs.step
    problems: list[tuple[str, str]] = []
    hints: list[tuple[str, str]] = []
    array: Any = None
    try:
        array = _xs(inputs)
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


def _handed_over(array: Any, *, as_list: bool) -> Any:
    """Xs as it is given to `lax.scan`. A list is what people have in hand: of Python numbers, or of array rows."""
    if not as_list or not isinstance(array, np.ndarray) or array.ndim == 0:
        return array
    return array.tolist() if array.ndim == 1 else list(array)


def _generated(inputs: ScanInputs) -> Any:
    columns = tuple(n for n in (inputs.batch, inputs.features) if n)
    values = generate(inputs.generator, inputs.length, columns, inputs.dtype, inputs.seed)
    shape = _layout(inputs.length, inputs.batch, inputs.features, inputs.axes)
    if isinstance(values, jax.ShapeDtypeStruct):
        return abstract(shape, values.dtype)
    return values if values.shape == shape and inputs.axes != "batch" else np.ascontiguousarray(values.swapaxes(0, 1))


def _typed(inputs: ScanInputs) -> Any:
    cells = split_cells(inputs.numbers) if inputs.source == "table" else None
    problem = cell_problem(cells) if cells is not None else ""
    if problem:
        raise UnreadableError(problem)
    numbers = parse_sequence(inputs.numbers)
    if numbers.shape and _too_many(inputs.length, numbers.shape):
        return abstract((inputs.length, *numbers.shape[1:]), numpy_dtype(inputs.dtype))
    return _array(numbers, inputs.dtype)


def _array(numbers: Numbers, dtype: str) -> Any:
    if numbers.size > LIMITS["elements"].value:
        return abstract(numbers.shape, numpy_dtype(dtype))
    return to_array(numbers, dtype)


_PYTHON_TYPES: Mapping[str, Any] = {"float32": float, "int32": int, "bool": bool}


def _init_leaf(typed: InitText) -> tuple[Any, str]:
    """The leaf and a hint. A weak leaf is a Python number, as people write it."""
    numbers = parse_leaf(typed.text)
    array = _array(numbers, typed.dtype)
    if not typed.weak:
        return array, ""
    if isinstance(numbers.nested, list) or numbers.shape:
        return array, fill(ONLY_NUMBERS_ARE_WEAK)
    if typed.dtype not in _PYTHON_TYPES:
        return array, fill(ONLY_PYTHON_TYPES_ARE_WEAK, dtype=typed.dtype)
    return _PYTHON_TYPES[typed.dtype](numbers.nested), ""


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
