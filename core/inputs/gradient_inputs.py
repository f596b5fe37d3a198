"""The Gradients page's inputs -> the layers whose derivatives are taken: what is drawn is of exactly what stands there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np

from core.base.limits import LIMITS
from core.base.places import Field, Places
from core.base.text import fill
from core.contract.subject import SequenceTrial
from core.inputs.fields import Value
from core.inputs.generate import generate
from core.inputs.gradient_fields import CELL_NAMES, CELLS, FIELDS, FINAL, GIVEN, OPENING_STEP, TRAIN, TYPED
from core.inputs.parse import UnreadableError, parse_sequence, to_array
from core.runners.cell_formulas import KINDS
from core.runners.gradient_source import TOO_MUCH, map_work

type Array = np.ndarray[Any, Any]

NO_STEPS = "T is 0: there is no step, so there is nothing to differentiate."
NEGATIVE_STEPS = "T is {value}: a sequence has 1 step or more."
TOO_SMALL = "{label} must be 1 or more; {value} is no size."
OVER = "{label} is {value:,}, more than the limit of {limit:,} {unit}."
NO_NUMBERS = "There are no numbers here: give a line for each step. T is 0, so there is nothing to differentiate."
AXES = "The numbers have {axes} axes: give a line for each step, with one number for each feature."
NOT_FINITE = (
    "x holds a value that is not finite, first at t = {t}. From there on no state is a number, and neither is its "
    "derivative: those stand as gaps."
)
#: The inputs that say what is merely looked at.
LOOKED_AT: Final[Mapping[str, Value]] = {"row": 0, "map_cell": "LSTMCell", "map_part": "h"}


@dataclass(frozen=True, slots=True)
class GradientInputs:
    """Every input of the page, by the names of `FIELDS`."""

    of: str = CELLS
    length: int = 50
    hidden_features: int = 16
    in_features: int = 3
    seed: int = 0
    source: str = "noise"
    data_seed: int = 0
    numbers: str = ""
    forget_bias: float = 0.0
    recurrent_scale: float = 1.0
    row: int = 0
    map_cell: str = "LSTMCell"
    map_part: str = "h"
    preset: str = OPENING_STEP
    xs: str = ""
    target: str = FINAL
    model: str = "LSTMCell"
    train_length: int = 8
    batch: int = 16
    rate: float = 0.2
    mode: str = TRAIN
    rngs: str = GIVEN
    dropout_seed: int = 1
    optimizer: str = "sgd"
    learning_rate: float = 0.1
    updates: int = 20

    @classmethod
    def of_values(cls, values: Mapping[str, Value]) -> GradientInputs:
        """From the page's state."""
        return cls(**{f.name: values[f.name] for f in fields(cls) if f.name in values})  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Problem:
    """An input that cannot be used (or, as a `hint`, one that is used and needs a word): field name and sentence."""

    field: str
    text: str
    limit: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """The inputs read: data (T, F) float32 with one trial per cell, or what is wrong with them."""

    data: Array | None
    trials: tuple[SequenceTrial, ...] = ()
    problems: tuple[Problem, ...] = ()
    hints: tuple[Problem, ...] = ()


def build(inputs: GradientInputs) -> Reading:
    """The layers that these inputs mean, one for each of `CELL_NAMES`, over the same data."""
    problems = list(_sizes(inputs))
    typed: Array | None = None
    if inputs.source == TYPED:
        try:
            typed = typed_steps(inputs.numbers)
        except UnreadableError as error:
            problems.append(Problem("numbers", str(error)))
    if problems:
        return Reading(None, problems=tuple(problems))
    length, features = typed.shape if typed is not None else (inputs.length, inputs.in_features)
    problems = list(_limits(inputs, length, features))
    if problems:
        return Reading(None, problems=tuple(problems))
    data = typed if typed is not None else _made(inputs)
    weights = {"forget_bias": float(inputs.forget_bias), "recurrent_scale": float(inputs.recurrent_scale)}
    trials = tuple(trial(inputs, name, data, weights) for name in CELL_NAMES)
    return Reading(data, trials, hints=tuple(_hints(inputs, data)))


def trial(inputs: GradientInputs, kind: str, data: Array, weights: Mapping[str, float]) -> SequenceTrial:
    """One cell over one sequence of data (T, F), from a carry of zeros."""
    if kind != "LSTMCell":
        weights = {name: value for name, value in weights.items() if name != "forget_bias"}
    roles = {"hidden_features": "hidden_features", "inputs": data_field(inputs), "length": "length"}
    return SequenceTrial(
        kind,
        data[None],
        "BTF",
        inputs.hidden_features,
        inputs.seed,
        weights=weights,
        places=Places({role: Field(FIELDS.key(name), FIELDS.field(name).label) for role, name in roles.items()}),
    )


def data_field(inputs: GradientInputs) -> str:
    """The field that the data come from."""
    return "numbers" if inputs.source == TYPED else "source"


def typed_steps(text: str) -> Array:
    """Typed numbers as (T, F) float32: a line a step; one line of numbers is one feature over time.

    Raises:
        UnreadableError: with the place.
    """
    numbers = parse_sequence(text)
    if numbers.shape == (0,) or not numbers.size:
        raise UnreadableError(fill(NO_NUMBERS))
    if numbers.size > LIMITS["elements"].value:
        over = LIMITS["elements"]
        raise UnreadableError(fill(OVER, label="x", value=numbers.size, limit=over.value, unit=over.unit))
    array = to_array(numbers, "float32", steps=True)
    if array.ndim > 2:
        raise UnreadableError(fill(AXES, axes=array.ndim))
    return array.reshape(len(array), -1)


def _made(inputs: GradientInputs) -> Array:
    """Data by a formula: (T, F) float32."""
    return np.asarray(generate(inputs.source, inputs.length, (inputs.in_features,), "float32", inputs.data_seed))


def _sizes(inputs: GradientInputs) -> list[Problem]:
    """Sizes that are none."""
    names = ["hidden_features"] if inputs.source == TYPED else ["in_features", "hidden_features"]
    out = [
        Problem(name, fill(TOO_SMALL, label=FIELDS.field(name).label, value=getattr(inputs, name)))
        for name in names
        if getattr(inputs, name) < 1
    ]
    if inputs.source != TYPED and inputs.length < 1:
        out.append(Problem("length", fill(NEGATIVE_STEPS if inputs.length else NO_STEPS, value=inputs.length)))
    return out


def _limits(inputs: GradientInputs, length: int, features: int) -> list[Problem]:
    """Sizes that are too much, each by itself or together; said at the field that is to be made smaller."""
    typed = inputs.source == TYPED
    sizes = (
        ("numbers" if typed else "length", "length", "length T", length),
        ("numbers" if typed else "in_features", "features", "in_features", features),
        ("hidden_features", "hidden", "hidden_features", inputs.hidden_features),
    )
    out = []
    for field, name, label, value in sizes:
        limit = LIMITS[name]
        if value > limit.value:
            text = fill(OVER, label=label, value=value, limit=limit.value, unit=limit.unit)
            out.append(Problem(field, text, limit=True))
    work = max(map_work(KINDS[name], length, features, inputs.hidden_features) for name in CELL_NAMES)
    most = LIMITS["map_work"].value
    if not out and work > most:
        text = fill(TOO_MUCH, work=round(work / 1e9), limit=round(most / 1e9))
        out.append(Problem("numbers" if typed else "length", text, limit=True))
    return out


def _hints(inputs: GradientInputs, data: Array) -> list[Problem]:
    bad = np.flatnonzero(~np.isfinite(data).all(axis=1))
    return [Problem(data_field(inputs), fill(NOT_FINITE, t=int(bad[0])))] if bad.size else []
