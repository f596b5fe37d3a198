"""The Scan page's field table, and what follows what in it.

The table depends on the step and on xs: each leaf of init and each parameter is a field of its own, and init opens as
the step wants it for such an x. Numbers are kept as the text that was typed, so that a link carries them and a message
can name the place of a bad one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from core.base.avals import Aval
from core.base.limits import LIMITS
from core.base.text import fill
from core.inputs.fields import FieldTable, InputField, Kind, Value
from core.inputs.generate import GENERATORS
from core.inputs.parse import DTYPES, UnreadableError, format_sequence, parse_leaf, parse_sequence
from core.inputs.preset import (
    LeafText,
    init_leaves,
    init_opening_texts,
    init_texts,
    opening_numbers,
    opening_width,
    step_of,
    takes_numbers,
)
from core.steps.library import DEFAULT, STEPS
from core.steps.step import Step, XKind

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


def scan_fields(values: Mapping[str, object]) -> FieldTable:
    """The table for some values: of their step, with the init that this step starts from for such an xs.

    What is missing counts as by default. Where xs cannot be read (or is over a limit), an init that followed it
    stays the default: nothing may jump while a number is being mended.
    """
    step = step_of(values.get("step", DEFAULT.id))
    fixed = _fixed_table(step.id)
    complete = fixed.complete(values)
    return FieldTable(PAGE, (*fixed.fields, *_init_fields(step, complete, values)))


def opening(step: str) -> dict[str, Value]:
    """All values as the page opens with this step."""
    return dict(_opening(step)) if step in STEPS else scan_fields({"step": step}).complete({"step": step})


@functools.cache
def _opening(step: str) -> dict[str, Value]:
    """Of a step of the library: a page asks for it at every one of its "Break it" buttons."""
    return scan_fields({"step": step}).complete({"step": step})


def scan_link_fields(params: Mapping[str, str]) -> FieldTable:
    """The table for what a link says."""
    fixed = _fixed_table(step_of(params.get("step", DEFAULT.id)).id)
    return scan_fields(fixed.from_link(params).values)


@functools.cache
def _fixed_table(step: str) -> FieldTable:
    """The fields of a step of the library that follow from nothing but the step."""
    found = step_of(step)
    return FieldTable(PAGE, (*_fixed_fields(found), *_param_fields(found)))


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
        _whole("features", "F", opening_width(step), MOST),
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
    limit = LIMITS["length"].value if name == "length" else None
    if name == "seed":
        return InputField(name, url, Kind.WHOLE, default, fill(LABELS[name]), low=0, high=high)
    # A size below 0 reaches the page, which says so under it; the control itself would say nothing.
    return InputField(name, url, Kind.WHOLE, default, fill(LABELS[name]), low=-MOST, high=high, least=0, limit=limit)


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
    if texts is None:
        texts = _likely_texts(step, complete, [given.get(leaf.name) for leaf in leaves])
    for leaf, opened in zip(leaves, texts, strict=True):
        url = "init" if leaf.name == "init" else "i." + leaf.name.removeprefix("init_")
        text, dtype, weak = opened.text, opened.dtype, opened.weak
        dtype_label, weak_label = fill(LABEL_INIT_DTYPE, label=leaf.label), fill(LABEL_INIT_WEAK, label=leaf.label)
        yield InputField(leaf.name, url, Kind.TEXT, str(text), leaf.label, max_chars=LIMITS["url_text"].value)
        yield InputField(f"{leaf.name}_dtype", f"{url}.dt", Kind.CHOICE, str(dtype), dtype_label, options=DTYPES)
        yield InputField(f"{leaf.name}_weak", f"{url}.weak", Kind.FLAG, bool(weak), weak_label)


def _opening_texts(step: Step, complete: Mapping[str, Value]) -> tuple[LeafText, ...] | None:
    """The step's own init for the xs that these values mean; None where that is not known or over a limit."""
    x = x_type(step, complete)
    if x is None and takes_numbers(step):
        return None
    if x is not None and x.size > LIMITS["elements"].value:
        return None
    return init_texts(step, x, step_params(step, complete))


def _likely_texts(step: Step, complete: Mapping[str, Value], given: Sequence[object]) -> tuple[LeafText, ...]:
    """The step's own init where x is not known: for an x that what stands in init may have been opened for.

    So an init that followed xs stays while xs is being mended, and one that was typed is known as such; for what
    stands nowhere (a link says nothing of it), the x that the step opens with.
    """
    params, dtype = step_params(step, complete), str(complete["dtype"])
    first = init_opening_texts(step, params)
    likely = [first, *(init_texts(step, Aval(shape, dtype), params) for shape in _shapes_of(given))]
    out = []
    for index, text in enumerate(given):
        same = [texts[index] for texts in likely if texts[index].text == text]
        out.append(same[0] if same else first[index])
    return tuple(out)


def _shapes_of(given: Sequence[object]) -> Iterator[tuple[int, ...]]:
    """Shapes of x that leaves with these texts may belong to: their own, or that of their rows."""
    for text in given:
        try:
            shape = parse_leaf(str(text)).shape
        except UnreadableError:
            continue
        if math.prod(shape) <= LIMITS["elements"].value:
            yield from (shape, shape[1:])


def x_type(step: Step, values: Mapping[str, Any]) -> Aval | None:
    """The type of one x, found without making the sequence."""
    if not takes_numbers(step):
        return None
    if values["source"] == "generate":
        if min(values["length"], values["batch"], values["features"]) < 0:
            return None
        shape = layout(values["length"], values["batch"], values["features"], values["axes"])
    else:
        shape = _typed_shape(values) or ()
        if not shape:
            return None
    return Aval(shape[1:], values["dtype"])


def layout(length: int, batch: int, features: int, axes: str) -> tuple[int, ...]:
    """The shape of a generated sequence."""
    front = (batch, length) if axes == "batch" and batch else (length, *((batch,) if batch else ()))
    return (*front, *((features,) if features else ()))


def step_params(step: Step, values: Mapping[str, Any]) -> dict[str, float]:
    """The values of the step's parameters by their own names."""
    return {p.name: values[f"param_{p.name}"] for p in step.params}


def settle(values: Mapping[str, Value], *, asked: bool = True) -> dict[str, Value]:
    """The same values with T as many as there are rows, where xs is typed: the numbers count, T follows them.

    `asked`: somebody may have asked for the T that stands there; else it only followed earlier numbers.
    """
    out = dict(values)
    shape = _typed_shape(values)
    # A T for which so many numbers cannot be typed stays as it was asked for: rule X601 answers it.
    # So does one below 0: it is said to be no length.
    if shape and not (asked and (int(out["length"]) < 0 or too_many(int(out["length"]), shape))):
        out["length"] = shape[0]
    return out


def too_many(length: int, shape: tuple[int, ...]) -> bool:
    """Whether a sequence of `length` rows like those of this shape holds more numbers than can be typed."""
    return length * max(math.prod(shape[1:]), 1) > LIMITS["typed_numbers"].value


def follow(before: Mapping[str, Value], edits: Mapping[str, Value]) -> dict[str, Value]:
    """The values after an edit: inputs that stand as the step opens them go on doing so.

    So init takes the shape of a wider xs, as long as nobody typed one; and with another step, everything that is still
    as the old one opens it, and all that belongs to the step itself, opens as the new one does.
    """
    old, merged = scan_fields(before), {**before, **edits}
    if "length" in edits and "numbers" not in edits and merged["source"] != "generate":
        merged["numbers"] = resized(str(merged["numbers"]), int(merged["length"]))[0]
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
    return settle(new.complete(merged), asked="length" in edits or "numbers" not in edits)


_XS = frozenset({"source", "numbers", "length", "dtype", "features", "batch", "axes", "as_list", "length_argument"})


def _typed_shape(values: Mapping[str, Value]) -> tuple[int, ...] | None:
    """The shape of the typed numbers; None when xs is not typed, or cannot be read."""
    if values["source"] == "generate" or not takes_numbers(step_of(values["step"])):
        return None
    try:
        return parse_sequence(str(values["numbers"])).shape
    except UnreadableError:
        return None


def resized(numbers: str, length: int, rest: Sequence[Any] = ()) -> tuple[str, tuple[Any, ...]]:
    """Typed numbers with `length` rows, and the rows that were cut off: those of `rest` come back, then come zeros.

    As they were when that cannot be.
    """
    if length < 0:
        return numbers, tuple(rest)
    try:
        parsed = parse_sequence(numbers)
    except UnreadableError:
        return numbers, ()
    typed: Any = parsed.nested
    whole = parsed.shape and not parsed.filled and not too_many(length, parsed.shape)
    if not whole or not isinstance(typed, list):
        return numbers, ()
    rows = [*typed, *(row for row in rest if not typed or np.shape(row) == parsed.shape[1:])]
    zero = np.zeros(np.shape(rows[0]) if rows else (), int).tolist()
    rows += [zero] * (length - len(rows))
    text = format_sequence(np.asarray(rows[:length], dtype=object)) if length else ""
    return text, tuple(rows[length:])
