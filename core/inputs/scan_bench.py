"""Fixes on the Scan page: a rule's repair becomes an edit of the page's inputs, and the call is built from those.

So what is verified is the very thing that the Apply button does. Most repairs are read off the mended call: what its
init and xs hold is written back as the text that a person would type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from jax import tree_util

from core.base.avals import aval_of, path_name
from core.base.limits import LIMITS
from core.base.violation import FieldEdit
from core.contract.engine import Attempt
from core.contract.rule import Repair
from core.contract.subject import ScanCall
from core.contract.trace import same_structure
from core.inputs.fields import Value, changed
from core.inputs.parse import DTYPES, format_sequence
from core.inputs.preset import leaf_text, step_of, takes_numbers
from core.inputs.scan_fields import follow
from core.inputs.scan_inputs import build, from_values
from core.steps.step import XKind

type Values = Mapping[str, Value]
type Edit = dict[str, Value]


class ScanBench:
    """Carries repairs out on the inputs of the Scan page."""

    def __init__(self, values: Values) -> None:
        """`values`: complete and settled values of the page's fields."""
        self._values = dict(values)

    def attempt(self, repairs: tuple[Repair, ...]) -> Attempt | None:
        """The call of the edited inputs; None when a repair has no input here, or the edit changes nothing."""
        values: dict[str, Value] = dict(self._values)
        for repair in repairs:
            edit = edit_for(repair, values)
            if edit is None:
                return None
            values = follow(values, edit)
            if any(values[name] != value for name, value in edit.items()):
                return None  # a field could not have that value: the edit would not do what it says
        names = changed(self._values, values, values)
        call = build(from_values(values)).call if names else None
        return None if call is None else Attempt(call, FieldEdit({name: values[name] for name in names}))


def edit_for(repair: Repair, values: Values) -> Edit | None:
    """The new values of the page's fields that carry this repair out; None when the page has no such input."""
    translate = _BY_KIND.get(repair.kind)
    return None if translate is None else translate(repair, values)


# --- arguments and choices ------------------------------------------------------------------------------------------


def _step(_: Repair, values: Values) -> Edit | None:
    step = step_of(values["step"])
    return {"step": step.right} if step.right else None


def _argument(name: str) -> Callable[[Repair, Values], Edit | None]:
    def translate(repair: Repair, _: Values) -> Edit | None:
        return {name: "" if repair.value is None else str(repair.value)}

    return translate


def _reverse(repair: Repair, _: Values) -> Edit | None:
    return {"reverse": bool(repair.value)}


def _size(name: str) -> Callable[[Repair, Values], Edit | None]:
    """T, B or F brought down to its limit, where it is an input that counts and is over it."""

    def translate(repair: Repair, values: Values) -> Edit | None:
        step, size = step_of(values["step"]), int(repair.value)
        if name == "length" and step.x is XKind.NONE:
            return {"length_argument": str(size)}
        counts = name == "length" or (values["source"] == "generate" and takes_numbers(step))
        return {name: size} if counts and int(values[name]) > size else None

    return translate


def _xs_dtype(repair: Repair, _: Values) -> Edit | None:
    return {"dtype": str(repair.value)} if repair.value in DTYPES else None


def _xs_array(_: Repair, values: Values) -> Edit | None:
    return {"as_list": False} if values["as_list"] else None


# --- read off the mended call ---------------------------------------------------------------------------------------


def _mended(repair: Repair, values: Values) -> tuple[ScanCall, ScanCall] | None:
    """The call as it stands and as the repair makes it."""
    before = build(from_values(values)).call
    after = None if before is None else repair.apply(before)
    return (before, after) if before is not None and isinstance(after, ScanCall) else None


def _init(repair: Repair, values: Values) -> Edit | None:
    calls = _mended(repair, values)
    return None if calls is None else _init_edit(*calls, values)


def _init_edit(before: ScanCall, after: ScanCall, values: Values) -> Edit | None:
    """Text, dtype and weakness of each init leaf that differs; None when the tree itself does."""
    old = tree_util.tree_flatten_with_path(before.init)[0]
    new = tree_util.tree_flatten_with_path(after.init)[0]
    if not same_structure(before.init, after.init):
        return None
    names = {typed.leaf.path: typed.leaf.name for typed in from_values(values).init}
    edit: Edit = {}
    for (path, was), (_, leaf) in zip(old, new, strict=True):
        if _same(was, leaf):
            continue
        name, aval = names.get(path_name("carry", path)), aval_of(leaf)
        if name is None or aval is None or aval.dtype not in DTYPES:
            return None
        typed = leaf_text(leaf)
        edit |= {name: typed.text, f"{name}_dtype": typed.dtype, f"{name}_weak": typed.weak}
    return edit


def _same(a: Any, b: Any) -> bool:
    return a is b or (aval_of(a) == aval_of(b) and np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True))


def _xs(repair: Repair, values: Values) -> Edit | None:
    calls = _mended(repair, values)
    if calls is None:
        return None
    init = _init_edit(*calls, values)
    xs = _xs_edit(calls[1], values)
    return None if init is None or xs is None else {**xs, **init, **_length_edit(*calls)}


def _xs_edit(after: ScanCall, values: Values) -> Edit | None:
    """The numbers of the mended xs, typed. Only for xs that is one array and few enough numbers."""
    if not takes_numbers(step_of(values["step"])) or aval_of(after.xs) is None:
        return None
    if isinstance(after.xs, jax.ShapeDtypeStruct) or np.size(after.xs) > LIMITS["typed_numbers"].value:
        return None
    array = np.asarray(after.xs)
    if str(array.dtype) not in DTYPES or not array.ndim:
        return None
    source = "paste" if array.ndim > 2 or values["source"] == "paste" else "table"
    return {
        "source": source,
        "numbers": format_sequence(array),
        "length": array.shape[0],
        "dtype": str(array.dtype),
        "as_list": False,
    }


def _length_edit(before: ScanCall, after: ScanCall) -> Edit:
    return (
        {} if before.length == after.length else {"length_argument": "" if after.length is None else str(after.length)}
    )


def _xs_leading(repair: Repair, values: Values) -> Edit | None:
    """Fewer steps: T is an input of its own where xs is generated or drawn, else the numbers are cut."""
    length = repair.value
    if not isinstance(length, int):
        return None
    if values["source"] == "generate" or step_of(values["step"]).x is XKind.KEY:
        if values["axes"] == "batch" and values["batch"]:
            return None
        edit: Edit = {"length": length}
        calls = _mended(repair, values) if length <= LIMITS["elements"].value else None
        return edit | (_length_edit(*calls) if calls else {})
    if int(values["length"]) > LIMITS["typed_numbers"].value:
        return {"length": length}
    return _xs(repair, values)


def _xs_axes(repair: Repair, values: Values) -> Edit | None:
    """Time first: another layout of the generator, or the typed numbers with their axes moved; init rebuilt for it."""
    calls = _mended(repair, values)
    init = None if calls is None else _init_edit(*calls, values)
    if calls is None or init is None:
        return None
    if values["source"] == "generate":
        return {"axes": "time", **init}
    xs = _xs_edit(calls[1], values)
    return None if xs is None else {**xs, "axes": "time", **init}


_BY_KIND: Mapping[str, Callable[[Repair, Values], Edit | None]] = {
    "step": _step,
    "init_dtype": _init,
    "init_dtypes": _init,
    "init_shape": _init,
    "init_value": _init,
    "xs_dtype": _xs_dtype,
    "xs_array": _xs_array,
    "xs_axes": _xs_axes,
    "xs_leading": _xs_leading,
    "xs_item": _xs,
    "xs_shape": _xs,
    "xs_value": _xs,
    **{f"size_{name}": _size(name) for name in ("length", "batch", "features")},
    "length": _argument("length_argument"),
    "unroll": _argument("unroll"),
    "reverse": _reverse,
}
