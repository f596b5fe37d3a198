"""The contract of the data as somebody declares it, and what the data themselves say to it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import jax.numpy as jnp
import numpy as np

from core.base.limits import LIMITS
from core.base.text import fill
from core.inputs.parse import DTYPES
from core.report.model import Criterion, Declared, Name, Status

type Array = np.ndarray[Any, Any]

#: What can be declared, by the names in `Declared`; and the words beside it.
FIELDS: Final[Mapping[str, str]] = {
    "axes": "Axis order",
    "features": "Feature names",
    "dtype": "dtype",
    "low": "Lowest value",
    "high": "Highest value",
    "target": "What the target means",
}
LETTERS: Final = "TBFH"
#: Characters of one text.
_MOST: Final = LIMITS["report_declared"].value

NO_LETTERS = "Use each of the letters T, B, F, H once at most, in the order of the axes: TBF."
NO_DTYPE = "There is no dtype “{value}” here. Take one of: {known}."
NO_NUMBER = "That is no number."
UPSIDE_DOWN = "The lowest value is above the highest."
TOO_LONG = "At most {limit} characters."

NOT_DECLARED = "Nothing of it was declared."
NO_RANGE = "No range was declared."
NOTHING = "There are no numbers to look at."
FITS = "{what}."
DATA_ARE, AXES_ARE = "{path} is {type}", "({axes})"
AXES_OFF = "{path} has {got} axes, and {want} were declared ({axes})"
FEATURES_OFF = "{path} has {got} features, and {want} names were declared"
FEATURES_NOWHERE = "feature names were declared, and no axis F"
DTYPE_OFF = "{path} is {got}, and {want} was declared"
INSIDE = "All {count} lie in {low} to {high}."
OUTSIDE = "{bad} of {count} values lie outside {low} to {high}, NaN among them counted; the first at index {index}."
ANY = "anything"


class DeclaredError(ValueError):
    """Something that cannot be declared: the field, and a sentence for whoever declared it."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field, self.text = field, text


def read_declared(given: Mapping[str, str]) -> Declared:
    """What somebody declared, from texts by the names of `FIELDS`; an empty text declares nothing.

    Raises:
        DeclaredError: one of them cannot be read.
    """
    texts = {name: str(given.get(name, "")).strip() for name in FIELDS}
    for name, text in texts.items():
        if len(text) > _MOST:
            raise DeclaredError(name, fill(TOO_LONG, limit=_MOST))
    axes = "".join(c for c in texts["axes"].upper() if c not in " ,()")
    if len(set(axes)) != len(axes) or set(axes) - set(LETTERS):
        raise DeclaredError("axes", fill(NO_LETTERS))
    if texts["dtype"] and texts["dtype"] not in DTYPES:
        raise DeclaredError("dtype", fill(NO_DTYPE, value=texts["dtype"][:40], known=", ".join(DTYPES)))
    low, high = _number("low", texts["low"]), _number("high", texts["high"])
    if low is not None and high is not None and low > high:
        raise DeclaredError("low", fill(UPSIDE_DOWN))
    features = tuple(name.strip() for name in texts["features"].split(",") if name.strip())
    yours = tuple(name for name in FIELDS if texts[name])
    return Declared(axes, features, texts["dtype"], low, high, texts["target"], yours)


def _number(field: str, text: str) -> float | None:
    if not text:
        return None
    try:
        number = float(text.replace("−", "-"))
    except ValueError:
        raise DeclaredError(field, fill(NO_NUMBER)) from None
    if math.isnan(number):
        raise DeclaredError(field, fill(NO_NUMBER))
    return number


def with_known(declared: Declared, known: Declared) -> Declared:
    """What was declared, and for the rest what the page knows."""
    out = replace(known, yours=declared.yours)
    return replace(out, **{name: getattr(declared, name) for name in declared.yours})


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """The data that the contract is of.

    Attributes:
        path: their name.
        values: the array, on the host; None where it was never made.
        shape, dtype: of it.
        valid: which of its steps count, broadcastable to its shape without the last axis; None where all do.
    """

    path: str
    values: Array | None
    shape: tuple[int, ...]
    dtype: str
    valid: Array | None = None


def data_of(path: str, leaf: Any, valid: Array | None = None) -> Data | None:
    """The data of one array; None where it is no array of numbers."""
    if leaf is None or not hasattr(leaf, "shape") or str(leaf.dtype).startswith("key<"):
        return None
    made = hasattr(leaf, "__array__")
    return Data(path, np.asarray(leaf) if made else None, tuple(leaf.shape), str(leaf.dtype), valid)


def check_declared(contract: Declared, data: Data | None) -> tuple[Criterion, Criterion]:
    """The criteria `DECLARED` and `RANGE`: what the data say to their contract."""
    if data is None:
        nothing = fill(NOTHING)
        return (
            Criterion(Name.DECLARED, Status.NOT_APPLICABLE, detail=nothing),
            Criterion(Name.RANGE, Status.NOT_APPLICABLE, detail=nothing),
        )
    return _fits(contract, data), _in_range(contract, data)


def _fits(contract: Declared, data: Data) -> Criterion:
    if not (contract.axes or contract.features or contract.dtype):
        return Criterion(Name.DECLARED, Status.NOT_APPLICABLE, detail=fill(NOT_DECLARED))
    off = []
    axes, names = contract.axes, contract.features
    if axes and len(axes) != len(data.shape):
        off.append(fill(AXES_OFF, path=data.path, got=len(data.shape), want=len(axes), axes=axes))
    if names and axes and "F" not in axes:
        off.append(fill(FEATURES_NOWHERE))
    elif names and len(axes) in (0, len(data.shape)):
        at = axes.index("F") if axes else len(data.shape) - 1
        got = data.shape[at] if data.shape else 0
        if got != len(names):
            off.append(fill(FEATURES_OFF, path=data.path, got=got, want=len(names)))
    if contract.dtype and contract.dtype != data.dtype:
        off.append(fill(DTYPE_OFF, path=data.path, got=data.dtype, want=contract.dtype))
    status = Status.FAIL if off else Status.PASS
    return Criterion(
        Name.DECLARED, status, float(len(off)), "0", fill(FITS, what="; ".join(off) or _is(data, axes, names))
    )


def _is(data: Data, axes: str, names: tuple[str, ...]) -> str:
    """What the data are."""
    sizes = ", ".join(f"{a}={n}" for a, n in zip(axes, data.shape, strict=True)) if axes else ""
    said = fill(DATA_ARE, path=data.path, type=f"{data.dtype}[{','.join(map(str, data.shape))}]")
    return ", ".join(filter(None, (said, fill(AXES_ARE, axes=sizes) if sizes else "", ", ".join(names))))


def _in_range(contract: Declared, data: Data) -> Criterion:
    if contract.low is None and contract.high is None:
        return Criterion(Name.RANGE, Status.NOT_APPLICABLE, detail=fill(NO_RANGE))
    if data.values is None:
        return Criterion(Name.RANGE, Status.NOT_RUN, detail=fill(NOTHING))
    if data.values.size == 0 or data.values.dtype.kind == "c":
        return Criterion(Name.RANGE, Status.NOT_APPLICABLE, detail=fill(NOTHING))
    low = -math.inf if contract.low is None else contract.low
    high = math.inf if contract.high is None else contract.high
    # A bound is rounded as the data are: 0.1 in float32 lies in a range that ends at 0.1.
    kind = data.values.dtype
    wide = data.values.astype(np.float64)
    if jnp.issubdtype(kind, jnp.floating):
        with np.errstate(over="ignore"):
            low, high = (float(np.asarray(bound).astype(kind)) for bound in (low, high))
    inside = (wide >= low) & (wide <= high)
    counted = np.ones(wide.shape, bool)
    if data.valid is not None:
        counted = np.broadcast_to(data.valid[..., None], wide.shape)
    bad = np.argwhere(~inside & counted)
    shown = {"low": _shown(contract.low), "high": _shown(contract.high), "count": int(counted.sum())}
    if not len(bad):
        return Criterion(Name.RANGE, Status.PASS, 0.0, "0", fill(INSIDE, **shown))
    detail = fill(OUTSIDE, bad=len(bad), index=tuple(bad[0].tolist()), **shown)
    return Criterion(Name.RANGE, Status.FAIL, float(len(bad)), "0", detail)


def _shown(bound: float | None) -> str:
    return fill(ANY) if bound is None else f"{bound:g}"
