"""The LSTM cell page's inputs -> one trial of a cell: what is checked is built from exactly what stands on the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import tree_util

from core.base.avals import abstract
from core.base.limits import LIMITS
from core.base.places import Field, Places
from core.base.text import fill
from core.contract.subject import MISSING, CellTrial, FreshRngs
from core.inputs import cell_fields
from core.inputs.cell_fields import (
    EXTRA_FEATURE,
    FIELDS,
    NO_RNGS,
    NONE,
    ONE_ARRAY,
    SWAPPED,
    SWITCHES,
    TOO_WIDE,
    TYPED,
    Switch,
    not_offered,
)
from core.inputs.cell_numbers import read_rows
from core.inputs.fields import Value
from core.inputs.generate import generate
from core.inputs.parse import UnreadableError
from core.runners.cell_formulas import KINDS
from core.weights.architecture import Architecture
from core.weights.cell import CellWeights, with_weights

type Array = np.ndarray[Any, Any]
#: An array, or its abstract value where it is over a limit and must not be made.
type MaybeArray = Any

#: Length of the sequence in the switch that hands (T, B, F) to `initialize_carry`.
STEPS: Final = 5
#: The spread of a carry drawn from a normal distribution: NNX's default of 0.01 could not be seen.
SPREAD: Final = 1.0

TOO_SMALL = "{label} must be 1 or more; {value} is no size."


@dataclass(frozen=True, slots=True)
class CellInputs:
    """Every input of the page, by the names of `FIELDS`."""

    cell: str = "LSTMCell"
    in_features: int = 3
    hidden_features: int = 4
    batch: int = 2
    seed: int = 0
    carry_seed: int = 1
    carry: str = "zeros"
    carry_c: str = ""
    carry_h: str = ""
    input: str = "ones"
    input_seed: int = 0
    numbers: str = ""
    break_cell: str = NONE
    break_init: str = NONE
    break_carry: str = NONE
    break_input: str = NONE
    example: int = 0
    unit: int = 0
    weights: str = ""
    file: CellWeights | None = None

    @classmethod
    def of(cls, values: Mapping[str, Value], file: CellWeights | None = None) -> CellInputs:
        """From the page's state, which has the hash of a file's parameters; they themselves come beside it."""
        named = {f.name: values[f.name] for f in fields(cls) if f.name in values}
        return cls(**named, file=file)  # type: ignore[arg-type]

    @property
    def values(self) -> dict[str, Value]:
        """As the page's state."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "file"}

    @property
    def architecture(self) -> Architecture:
        """What parameters must be for to be used here."""
        return Architecture(self.cell, self.in_features, self.hidden_features)

    @property
    def used(self) -> CellWeights | None:
        """The file's parameters, where the state names them and they are for this cell of these sizes; else the seed's."""
        file = self.file
        named = file is not None and self.weights == file.in_link
        return file if named and file.architecture == self.architecture else None  # type: ignore[union-attr]

    @property
    def handmade(self) -> bool:
        """Whether the carry is written down instead of coming from `initialize_carry`."""
        return self.carry == "typed" or self.break_carry == TOO_WIDE

    def offered(self, switch: Switch) -> str:
        """Why a switch makes no sense now; "" when it does."""
        return not_offered(
            switch,
            cell=self.cell,
            carry=self.carry,
            input_source=self.input,
            batch=self.batch,
            break_carry=self.break_carry,
        )

    @property
    def switched(self) -> tuple[Switch, ...]:
        """The switches that are on and make sense."""
        return tuple(s for s in SWITCHES if getattr(self, s.field) == s.value and not self.offered(s))


@dataclass(frozen=True, slots=True)
class Problem:
    """An input that cannot be used: its field name and a sentence with the place."""

    field: str
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """The inputs read: a trial, or what is wrong with them."""

    trial: CellTrial | None
    problems: tuple[Problem, ...] = ()


# --- inputs -> trial ------------------------------------------------------------------------------------------------


def build(inputs: CellInputs) -> Reading:
    """The trial that these inputs mean. Arrays over a limit stay abstract: rule X601 speaks of them, nothing is made."""
    problems = [
        Problem(name, fill(TOO_SMALL, label=FIELDS.field(name).label, value=getattr(inputs, name)))
        for name in ("in_features", "hidden_features", "batch")
        if getattr(inputs, name) < 1
    ]
    typed: dict[str, MaybeArray] = {}
    for name in _typed_fields(inputs):
        try:
            typed[name] = typed_rows(inputs, name)
        except UnreadableError as error:
            problems.append(Problem(name, str(error)))
    if problems:
        return Reading(None, tuple(problems))
    kind = KINDS[inputs.cell]
    shape = carry_input_shape(inputs)
    trial = CellTrial(
        cell=kind.cell,
        in_features=inputs.in_features,
        hidden_features=inputs.hidden_features,
        rngs=MISSING if inputs.break_cell == NO_RNGS else FreshRngs(inputs.seed),
        input_shape=shape,
        carry_rngs=MISSING if _init_break(inputs) == NO_RNGS else FreshRngs(inputs.carry_seed),
        inputs=_input(inputs, typed),
        carry=_carry(inputs, typed),
        axes={"inputs": "BF", "input_shape": "TBF" if len(shape) == 3 else "BF"},
        edit_cell=_edit(inputs),
        places=places(inputs),
    )
    return Reading(trial)


def places(inputs: CellInputs) -> Places:
    """Where each role of the trial stands on the page."""
    roles = {
        "cell": "cell",
        "cell_rngs": "seed",
        "in_features": "in_features",
        "hidden_features": "hidden_features",
        "batch": "batch",
        # What initialize_carry was asked for is a matter of the carry: the batch input may be right all the while.
        "carry_shape": "carry",
        "carry_rngs": "carry_seed",
        "carry": "carry",
        "input": "input",
    }
    if inputs.input in TYPED:
        roles["input"] = roles["batch"] = "numbers"
    return Places({role: Field(FIELDS.key(name), FIELDS.field(name).label) for role, name in roles.items()})


def carry_input_shape(inputs: CellInputs) -> tuple[int, ...]:
    """What `initialize_carry` is given: (B, F), or what the switch makes of it."""
    batch, width = inputs.batch, inputs.in_features
    match _init_break(inputs):
        case cell_fields.TIME_AXIS:
            return STEPS, batch, width
        case cell_fields.ONE_MORE:
            return batch + 1, width
        case cell_fields.ONE_EXAMPLE:
            return 1, width
        case _:
            return batch, width


def _init_break(inputs: CellInputs) -> str:
    return NONE if inputs.handmade else inputs.break_init


def _typed_fields(inputs: CellInputs) -> list[str]:
    names = []
    if inputs.carry == "typed" and inputs.break_carry != TOO_WIDE:
        names += [f"carry_{part}" for part in KINDS[inputs.cell].parts]
    if inputs.input in TYPED:
        names.append("numbers")
    return names


def typed_rows(inputs: CellInputs, name: str) -> MaybeArray:
    """The numbers of one of the typed inputs, by its field's name.

    Raises:
        UnreadableError: with the place.
    """
    return read_rows(getattr(inputs, name), table=name == "numbers" and inputs.input == "table")


def _input(inputs: CellInputs, typed: Mapping[str, MaybeArray]) -> MaybeArray:
    if "numbers" in typed:
        return typed["numbers"]
    width = inputs.in_features + (inputs.break_input == EXTRA_FEATURE)
    over = inputs.batch > LIMITS["batch"].value or inputs.in_features > LIMITS["features"].value
    if over:
        return abstract((inputs.batch, width), jnp.float32)
    values = generate(inputs.input, inputs.batch, (width,), "float32", inputs.input_seed)
    return values if isinstance(values, jax.ShapeDtypeStruct) else jax.device_put(values)


def _carry(inputs: CellInputs, typed: Mapping[str, MaybeArray]) -> Any:
    kind = KINDS[inputs.cell]
    change = inputs.break_carry if kind.pair or inputs.break_carry not in (ONE_ARRAY, SWAPPED) else NONE
    if change == TOO_WIDE:
        shape = (inputs.batch, inputs.hidden_features + 1)
        over = shape[0] > LIMITS["batch"].value or shape[1] > LIMITS["hidden"].value
        part = abstract(shape, jnp.float32) if over else jax.device_put(np.zeros(shape, np.float32))
        return (part,) * 2 if kind.pair else part
    if inputs.carry == "typed":
        parts = tuple(typed[f"carry_{name}"] for name in kind.parts)
        return _changed(parts if kind.pair else parts[0], change=change)
    return MISSING if change == NONE else partial(_changed, change=change)


def _edit(inputs: CellInputs) -> Callable[[Any], Any] | None:
    """What is done to the built cell: the parameters of a file put in, another initialiser for its carry."""
    edits: list[Callable[[Any], Any]] = [] if inputs.used is None else [partial(with_weights, weights=inputs.used)]
    edits += [_draws_normal] if inputs.carry == "normal" else []
    if not edits:
        return None

    def edit(cell: Any) -> Any:
        for one in edits:
            cell = one(cell)
        return cell

    return edit


def _draws_normal(cell: Any) -> Any:
    """Makes the cell's own `initialize_carry` draw, as ``carry_init=nnx.initializers.normal(1.0)`` in that call does.

    The drawn parts are then what that very call returned, which is how the rules know c from h.
    """
    cell.carry_init = nnx.initializers.normal(SPREAD)
    return cell


def _changed(carry: Any, *, change: str) -> Any:
    """The carry as a switch hands it over."""
    match change:
        case cell_fields.ONE_ARRAY:
            return carry[1]
        case cell_fields.SWAPPED:
            return carry[1], carry[0]
        case cell_fields.BFLOAT16:
            return tree_util.tree_map(_to_bfloat16, carry)
        case _:
            return carry


def _to_bfloat16(part: Any) -> Any:
    if isinstance(part, jax.ShapeDtypeStruct):
        return abstract(part.shape, jnp.bfloat16)
    return part.astype(jnp.bfloat16)
