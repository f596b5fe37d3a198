"""The presets' steps as NumPy formulas in float64, written from their equations: they share no code with the steps.

Each step is worked out from the carry that the scan itself had before it, so that rounding does not add up and a chaotic
map is checked like any other. A preset that draws from a key has no formula: NumPy draws other numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from core.base.results import ScanResult
from core.base.text import fill
from core.base.tolerance import difference, tolerance_in
from core.contract.subject import ScanCall
from core.report.model import Criterion, Name, Status
from core.runners.reference import computed_floats

type Array = np.ndarray[Any, Any]
type Leaves = tuple[Any, ...]
#: ``formula(carry leaves, x, parameters) -> (new carry leaves, y leaves)``, leaves in the order of their tree.
type Formula = Callable[[Leaves, Any, Mapping[str, Any]], tuple[Leaves, Leaves]]

NO_FORMULA = "No independent formula is known of this step."
NO_STEPS = "There is no step to work out."
AGREES = "Each of {length} steps by a NumPy formula in float64, from the carry before it."
APART = "{path}, step {t}: the scan gives {got}, the formula {want}."
SHAPE = "{path}: the scan gives shape {got}, the formula {want}."


def _one(new: Any) -> tuple[Leaves, Leaves]:
    return (new,), (new,)


def _counter(c: Leaves, x: Any, _: Mapping[str, Any]) -> tuple[Leaves, Leaves]:
    positive, seen = c[0] + np.greater(x, 0), c[1] + 1
    return (positive, seen), (positive / seen,)


def _window(c: Leaves, x: Any, _: Mapping[str, Any]) -> tuple[Leaves, Leaves]:
    new = np.roll(c[0], -1, axis=0)
    new[-1] = x
    return (new,), (new.sum(axis=0) / len(new),)


def _welford(c: Leaves, x: Any, _: Mapping[str, Any]) -> tuple[Leaves, Leaves]:
    count = c[0] + 1
    mean = (c[1] * c[0] + x) / count
    squares = c[2] + (x - c[1]) * (x - mean)
    return (count, mean, squares), (mean, squares / count)


def _kalman(c: Leaves, x: Any, p: Mapping[str, Any]) -> tuple[Leaves, Leaves]:
    unsure = c[1] + p["drift"]
    mean = (c[0] * p["noise"] + x * unsure) / (unsure + p["noise"])
    return (mean, unsure * p["noise"] / (unsure + p["noise"])), (mean,)


def _rotation(c: Leaves, x: Any, _: Mapping[str, Any]) -> tuple[Leaves, Leaves]:
    turned = (c[0][0] + 1j * c[0][1]) * np.exp(1j * x)
    return _one(np.array([turned.real, turned.imag]))


def _downhill(c: Leaves, _: Any, p: Mapping[str, Any]) -> tuple[Leaves, Leaves]:
    velocity = p["momentum"] * c[1] - p["rate"] * 2 * (c[0] - 3)
    return (c[0] + velocity, velocity), ((c[0] - 3) ** 2,)


def _root(x: Any) -> Any:
    return np.where(np.greater(x, 0), np.abs(x) ** 0.5, 0.0)


def _surprise(p: Any) -> Any:
    positive = np.greater(p, 0)
    return np.where(positive, -p * np.log(np.where(positive, p, 1.0)) / np.log(2.0), 0.0)


FORMULAS: Final[Mapping[str, Formula]] = {
    "running_sum": lambda c, x, _: _one(c[0] + x),
    "running_max": lambda c, x, _: _one(np.where(np.greater(x, c[0]), x, c[0])),
    "product": lambda c, x, _: _one(c[0] * x),
    "exponential_average": lambda c, x, p: _one(c[0] + (1 - p["decay"]) * (x - c[0])),
    "horner": lambda c, x, p: _one(p["at"] * c[0] + x),
    "distance": lambda c, x, _: _one(c[0] + x[..., 0] * x[..., 1]),
    "count_positive": _counter,
    "streak": lambda c, x, _: _one((c[0] + 1) * np.greater(x, 0)),
    "moving_window": _window,
    "running_variance": _welford,
    "kalman": _kalman,
    "fibonacci": lambda c, _x, _p: ((c[1], c[0] + c[1]), (c[0],)),
    "leaky_integrator": lambda c, x, p: _one(c[0] * (1 - p["dt"] / p["tau"]) + p["dt"] * x),
    "logistic_map": lambda c, _x, p: _one(p["rate"] * (c[0] - c[0] * c[0])),
    "rotation": _rotation,
    "gradient_descent": _downhill,
    "tanh_rnn": lambda c, x, p: _one(np.tanh(np.dot(x, p["w_in"]) + np.dot(c[0], p["w_rec"]) + p["bias"])),
    "sum_of_roots": lambda c, x, _: _one(c[0] + _root(x)),
    "roots_unguarded": lambda c, x, _: _one(c[0] + _root(x)),
    "path_length": lambda c, x, _: _one(c[0] + np.linalg.norm(x)),
    "norm_unguarded": lambda c, x, _: _one(c[0] + np.linalg.norm(x)),
    "entropy": lambda c, x, _: _one(c[0] + _surprise(x)),
    "entropy_unguarded": lambda c, x, _: _one(c[0] + _surprise(x)),
}


def formula_criterion(preset: str, call: ScanCall, result: ScanResult) -> Criterion:
    """`FORMULA`: every step of a preset that ran, against its formula.

    Args:
        preset: id of the step.
        call: as it was made.
        result: what `lax.scan` gave for it.
    """
    formula = FORMULAS.get(preset)
    if formula is None:
        return Criterion(Name.FORMULA, Status.NOT_APPLICABLE, detail=fill(NO_FORMULA))
    if not result.length:
        return Criterion(Name.FORMULA, Status.NOT_APPLICABLE, detail=fill(NO_STEPS))
    computed = computed_floats(call, result)
    params = {name: np.asarray(value, np.float64) for name, value in call.params.items()}
    worst, bound, bad = 0.0, "", ""
    with np.errstate(all="ignore"):
        for position in range(result.length):
            carry = tuple(_wide(series.values[position]) for series in result.carries)
            x = _wide(result.xs[0].values[position]) if result.xs else None
            new, ys = formula(carry, x, params)
            got = [(s.path, s.values[position + 1]) for s in result.carries]
            got += [(s.path, s.values[position]) for s in result.ys_series]
            for (path, value), want in zip(got, (*new, *ys), strict=True):
                tolerance, _ = tolerance_in(value.dtype, computed)
                narrow = _narrow(want, value.dtype)
                apart = difference(value, narrow, tolerance)
                bound = bound if tolerance.text == "exact" and bound else tolerance.text
                worst = max(worst, apart.largest)
                if not apart.within and not bad:
                    bad = _place(path, result.order[position], value, narrow, apart.first)
    detail = bad or fill(AGREES, length=result.length)
    return Criterion(Name.FORMULA, Status.FAIL if bad else Status.PASS, worst, bound, detail)


def _place(path: str, t: int, got: Array, want: Array, index: tuple[int, ...] | None) -> str:
    if index is None:
        return fill(SHAPE, path=path, got=got.shape, want=np.shape(want))
    return fill(APART, path=path, t=t, got=got[index], want=want[index])


def _wide(values: Any) -> Array:
    """In float64 or int64, where nothing is rounded or wraps around."""
    array = np.asarray(values)
    return array.astype(np.int64 if array.dtype.kind in "iub" else np.float64)


def _narrow(values: Any, dtype: Any) -> Array:
    """Whole numbers wrap around as JAX's do; floats are rounded once, to what the leaf could hold at best."""
    array = np.asarray(values)
    return array.astype(np.int64).astype(dtype) if np.dtype(dtype).kind in "iu" else array.astype(dtype)
