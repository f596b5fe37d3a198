"""The Sequence page's inputs -> one layer over a batch: what is checked is built from exactly what stands on the page.

Which steps are padding (the data's own truth) and what the layer is told of it are two things:

- ``masking = lengths``: the lengths say it, and the layer gets them.
- ``masking = mask``: the mask says it (where none is typed, the one that the lengths mean), and the step gets it.
- ``masking = none``: the layer gets neither. What is padding is still known, by the mask where one is typed, else by
  the lengths: so the page can say that padding moves the carry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import jax
import numpy as np

from core.base.avals import abstract
from core.base.limits import LIMITS
from core.base.places import Field, Places
from core.base.sequences import Masking, Slip
from core.base.text import fill
from core.contract.subject import SequenceTrial
from core.inputs.cell_inputs import TOO_SMALL, Problem
from core.inputs.cell_numbers import read_rows
from core.inputs.fields import Value
from core.inputs.parse import Number, Numbers, UnreadableError
from core.inputs.sequence_data import Sizes, make, padded, read_batch, shape_of, typed_array, typed_shape
from core.inputs.sequence_fields import (
    BESIDE,
    BIDIRECTIONAL,
    BTF,
    FEATURE_MASK,
    FIELDS,
    FORWARD,
    LEFT_OVER,
    LENGTHS,
    LINES,
    LOOKED_AT,
    MASK,
    NOISE,
    NONE,
    NORMAL,
    REVERSE,
    SINE,
    SUMMED_MASK,
    TYPED,
    UNPACKED,
    ZEROS,
)
from core.inputs.sequence_padding import is_given, read_lengths, read_mask, valid_steps
from core.runners.cell_formulas import KINDS
from core.weights.architecture import ONE, TWO, Architecture
from core.weights.cell import CellWeights

type Array = np.ndarray[Any, Any]

#: How far the other seeds are from the data's own: what fills the padding, and the sequence before this one.
FILLER_SEED, EARLIER_SEED = 1, 2

BELOW_ZERO = "{label} must be 0 or more; {value} is no length."
WRONG_INIT = "The typed {part} has shape {got}, and the layer needs {want}: a line for each example."


@dataclass(frozen=True, slots=True)
class SequenceInputs:
    """Every input of the page, by the names of `FIELDS`."""

    cell: str = "LSTMCell"
    hidden_features: int = 4
    seed: int = 0
    source: str = SINE
    data_seed: int = 0
    batch: int = 3
    length: int = 8
    in_features: int = 3
    numbers: str = ""
    padding: str = ZEROS
    axes: str = BTF
    time_major: bool = False
    direction: str = FORWARD
    keep_order: bool = False
    unroll: int = 1
    masking: str = LENGTHS
    lengths: str = "8, 5, 3"
    lengths_typed: str = ""
    mask: str = ""
    mask_typed: str = ""
    init: str = ZEROS
    init_seed: int = 1
    init_c: str = ""
    init_h: str = ""
    slip: str = NONE
    example: int = 1
    unit: int = 0
    t: int = 5
    compare: str = NONE
    compare_seed: int = 1
    compare_hidden: int = 8
    compare_cell: str = "GRUCell"
    view: str = LINES
    side: str = FORWARD
    weights: str = ""
    file: CellWeights | None = None

    @classmethod
    def of(cls, values: Mapping[str, Value], file: CellWeights | None = None) -> SequenceInputs:
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
        cells = TWO if self.direction == BIDIRECTIONAL else ONE
        return Architecture(self.cell, self.in_features, self.hidden_features, cells)

    @property
    def used(self) -> CellWeights | None:
        """The file's parameters, where the state names them and they are for this layer; else the seed's.

        A cell that is built inside the step draws its own from the seed, whatever there is.
        """
        file = self.file
        named = file is not None and self.weights == file.in_link and Slip.BUILT_IN_STEP not in self.slips
        return file if named and file.architecture == self.architecture else None  # type: ignore[union-attr]

    @property
    def run(self) -> SequenceInputs:
        """The inputs without what is merely looked at or compared with: what is equal in these is the same run."""
        plain = SequenceInputs()
        return replace(self, **{name: getattr(plain, name) for name in LOOKED_AT | BESIDE})

    @property
    def slips(self) -> frozenset[Slip]:
        """The mistake that is made on purpose, where it can be made with these inputs."""
        masked = self.masking == MASK
        summed = self.masking == LENGTHS and is_given(self.mask)
        possible = {FEATURE_MASK: masked, SUMMED_MASK: summed, UNPACKED: not masked}.get(self.slip, True)
        return frozenset({Slip(self.slip)}) if self.slip != NONE and possible else frozenset()

    @property
    def masked(self) -> bool:
        """Whether the mask, and not the lengths, says what is padding."""
        typed = is_given(self.mask)
        return self.masking == MASK or (typed and (self.masking == NONE or self.slip == SUMMED_MASK))


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """The typed inputs, read.

    Attributes:
        sizes: (B, T, F): of the typed numbers where the data are typed.
        numbers: the typed data; None where they are made.
        lengths: None where none are given, or where the mask counts.
        meant: the lengths that a mask comes from which is not typed.
        mask: (B, T) bool; None where the lengths count.
        init: the parts of a typed initial carry.
        small: sizes within the limits, so that arrays may be made.
    """

    sizes: Sizes
    numbers: Numbers | None = None
    lengths: tuple[Number, ...] | None = None
    meant: tuple[Number, ...] | None = None
    mask: Array | None = None
    init: tuple[Array, ...] | None = None

    @property
    def small(self) -> bool:
        """Whether arrays of these sizes may be made."""
        batch, length, features = self.sizes
        limits = LIMITS["batch"].value, LIMITS["length"].value, LIMITS["features"].value
        within = all(size <= limit for size, limit in zip(self.sizes, limits, strict=True))
        return within and batch * length * features <= LIMITS["elements"].value

    @property
    def valid(self) -> Array:
        """(B, T) bool: the steps that are no padding. Only where the sizes are small."""
        if self.mask is not None:
            return self.mask
        return valid_steps(self.lengths, self.sizes[0], self.sizes[1])


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """The inputs read: a trial, or what is wrong with them."""

    trial: SequenceTrial | None
    problems: tuple[Problem, ...] = ()
    known: Known | None = None


def build(inputs: SequenceInputs) -> Reading:
    """The trial that these inputs mean.

    Data over a limit stay abstract (a `jax.ShapeDtypeStruct`): rule X601 speaks of them, nothing is made.
    """
    known, problems = read(inputs)
    if known is None or problems:
        return Reading(None, tuple(problems), known)
    trial = SequenceTrial(
        kind=inputs.cell,
        inputs=_data(inputs, known),
        axes=inputs.axes,
        hidden_features=inputs.hidden_features,
        seed=inputs.seed,
        time_major=inputs.time_major,
        reverse=inputs.direction == REVERSE,
        keep_order=inputs.keep_order,
        bidirectional=inputs.direction == BIDIRECTIONAL,
        return_carry=Slip.UNPACKED not in inputs.slips,
        unroll=inputs.unroll,
        masking=Masking(inputs.masking),
        lengths=known.lengths,
        mask=known.mask,
        init=_init(inputs, known),
        previous=_previous(inputs, known),
        slips=inputs.slips,
        given=None if inputs.used is None else tuple(map(inputs.used.of_cell, inputs.used.architecture.cells)),
        places=places(inputs),
    )
    return Reading(trial, (), known)


def read(inputs: SequenceInputs) -> tuple[Known | None, list[Problem]]:
    """The typed inputs that count, read; what cannot be is said, all at once."""
    problems: list[Problem] = []
    known = _sizes(inputs, problems)
    if known is None:
        return None, problems
    batch = known.sizes[0]
    if known.small:
        known = _padding(inputs, known, problems)
    if inputs.init == TYPED and batch <= LIMITS["batch"].value and inputs.hidden_features <= LIMITS["hidden"].value:
        known = replace(known, init=_typed_init(inputs, batch, problems))
    return known, problems


def _sizes(inputs: SequenceInputs, problems: list[Problem]) -> Known | None:
    typed = inputs.source == TYPED
    named = ("hidden_features",) if typed else ("hidden_features", "batch", "in_features")
    for name in named:
        if getattr(inputs, name) < 1:
            text = fill(TOO_SMALL, label=FIELDS.field(name).label, value=getattr(inputs, name))
            problems.append(Problem(name, text))
    if not typed and inputs.length < 0:
        text = fill(BELOW_ZERO, label=FIELDS.field("length").label, value=inputs.length)
        problems.append(Problem("length", text))
    if not typed:
        return None if problems else Known((inputs.batch, inputs.length, inputs.in_features))
    try:
        numbers = read_batch(inputs.numbers, inputs.axes)
    except UnreadableError as error:
        problems.append(Problem("numbers", str(error)))
        return None
    shape = typed_shape(numbers, inputs.axes)
    if shape[inputs.axes.index("B")] < 1 or shape[2] < 1:
        problems.append(Problem("numbers", fill(NO_EXAMPLES, shape=shape, axes=", ".join(inputs.axes))))
        return None
    return Known(shape_of(shape, inputs.axes), numbers)


NO_EXAMPLES = "The numbers have shape {shape}, as ({axes}): there is no example, or no feature, in them."


def _padding(inputs: SequenceInputs, known: Known, problems: list[Problem]) -> Known:
    batch, length, _ = known.sizes
    lengths, mask = None, None
    typed = inputs.masked and is_given(inputs.mask)
    if not typed:
        try:
            lengths = read_lengths(inputs.lengths)
        except UnreadableError as error:
            problems.append(Problem("lengths", str(error)))
    if typed:
        try:
            mask = read_mask(inputs.mask, batch, length)
        except UnreadableError as error:
            problems.append(Problem("mask", str(error)))
    elif inputs.masked:
        mask = valid_steps(lengths, batch, length)
    told = None if inputs.masked else lengths
    return replace(known, lengths=told, meant=lengths if inputs.masked else None, mask=mask)


def _typed_init(inputs: SequenceInputs, batch: int, problems: list[Problem]) -> tuple[Array, ...] | None:
    out, want = [], (batch, inputs.hidden_features)
    for part in KINDS[inputs.cell].parts:
        try:
            array = read_rows(getattr(inputs, f"init_{part}"))
        except UnreadableError as error:
            problems.append(Problem(f"init_{part}", str(error)))
            continue
        if tuple(array.shape) != want:
            text = fill(WRONG_INIT, part=part, got=tuple(array.shape), want=want)
            problems.append(Problem(f"init_{part}", text))
        elif not isinstance(array, jax.ShapeDtypeStruct):
            out.append(np.asarray(array))
    return tuple(out) if len(out) == len(KINDS[inputs.cell].parts) else None


def places(inputs: SequenceInputs) -> Places:
    """Where each role of the trial stands on the page: a role is the name of its input."""
    roles = {field.name: field.name for field in FIELDS.fields}
    if inputs.source == TYPED:
        roles |= dict.fromkeys(("source", "batch", "length", "in_features"), "numbers")
    return Places({role: Field(FIELDS.key(name), FIELDS.field(name).label) for role, name in roles.items()})


# --- arrays ---------------------------------------------------------------------------------------------------------


def _data(inputs: SequenceInputs, known: Known) -> Any:
    shape = shape_of(known.sizes, inputs.axes)
    if not known.small:
        return abstract(shape, np.float32)
    if known.numbers is not None:
        typed = typed_array(known.numbers, inputs.axes)
        return abstract(shape, np.float32) if typed is None else typed
    data = make(inputs.source, known.sizes, inputs.axes, inputs.data_seed)
    filled = padded(data, known.valid, inputs.axes, inputs.padding, inputs.data_seed + FILLER_SEED)
    return np.ascontiguousarray(filled, np.float32)


def _init(inputs: SequenceInputs, known: Known) -> tuple[Array, ...] | None:
    if inputs.init == TYPED:
        return known.init
    size = known.sizes[0], inputs.hidden_features
    if inputs.init != NORMAL or size[0] > LIMITS["batch"].value or size[1] > LIMITS["hidden"].value:
        return None
    rng = np.random.default_rng(inputs.init_seed)
    return tuple(rng.standard_normal(size).astype(np.float32) for _ in KINDS[inputs.cell].parts)


def _previous(inputs: SequenceInputs, known: Known) -> Array | None:
    """Another sequence, whose final carry is taken for init: noise of the same sizes."""
    if inputs.init != LEFT_OVER or not known.small:
        return None
    values = make(NOISE, known.sizes, inputs.axes, inputs.data_seed + EARLIER_SEED)
    return np.ascontiguousarray(values, np.float32)
