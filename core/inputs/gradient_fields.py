"""The inputs of the Gradients page: one field table for state and link, and what its buttons set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from core.base.limits import LIMITS
from core.inputs.fields import FieldTable, InputField, Kind, Value
from core.inputs.generate import GENERATORS
from core.steps.library import PRESETS, UNGUARDED

PAGE: Final = "gradients"
#: Seeds that `nnx.Rngs` takes as they are in 32-bit mode.
_TOP_SEED: Final = 2**31 - 1
_ANY_SIZE: Final = 10**12
#: How much typed text a link may carry for one input.
_TEXT: Final = LIMITS["link_text"].value

CELLS, PRESET, TRAINING = "cells", "preset", "training"
VIEWS: Final = (CELLS, PRESET, TRAINING)
#: The cells that are compared, in the order of their colours and markers; and their short names.
CELL_NAMES: Final[Mapping[str, str]] = {"LSTMCell": "LSTM", "GRUCell": "GRU", "SimpleCell": "Simple"}
TYPED: Final = "typed"
SOURCES: Final = (*(g.id for g in GENERATORS if g.id != "ramp"), TYPED)
FORGET: Final = (-4.0, 6.0)
SCALE: Final = (0.0, 4.0)

FINAL, YS = "final carry", "ys"
TRAIN, EVAL = "train", "eval"
GIVEN, NO_RNGS = "given", "none given"
OPTIMIZERS: Final = ("sgd", "adam")


#: The scans that can be chosen: right ones, and those whose gradient is not finite.
STEP_NAMES: Final = tuple(step.id for step in (*PRESETS, *UNGUARDED))
OPENING_STEP: Final = "exponential_average"


def _size(name: str, url: str, default: int, label: str) -> InputField:
    """Sizes are as good as unbounded here: a bad one is said beside the input, not silently changed."""
    return InputField(name, url, Kind.WHOLE, default, label, low=-_ANY_SIZE, high=_ANY_SIZE)


def _seed(name: str, url: str, default: int, label: str) -> InputField:
    return InputField(name, url, Kind.WHOLE, default, label, low=0, high=_TOP_SEED)


FIELDS: Final = FieldTable(
    PAGE,
    (
        InputField("of", "of", Kind.CHOICE, CELLS, "gradient of", VIEWS),
        # Cells, and the model that is trained.
        _size("length", "T", 50, "length T"),
        _size("hidden_features", "hidden", 16, "hidden_features"),
        _size("in_features", "in", 3, "in_features"),
        _seed("seed", "seed", 0, "parameter seed"),
        InputField("source", "x", Kind.CHOICE, "noise", "data", SOURCES),
        _seed("data_seed", "xseed", 0, "noise seed"),
        InputField("numbers", "nums", Kind.TEXT, "", "x, a line a step", max_chars=_TEXT),
        InputField("forget_bias", "fb", Kind.NUMBER, 0.0, "forget bias", low=FORGET[0], high=FORGET[1]),
        InputField("recurrent_scale", "rs", Kind.NUMBER, 1.0, "recurrent scale", low=SCALE[0], high=SCALE[1]),
        InputField("row", "s", Kind.WHOLE, 0, "state h after step", low=0, high=_ANY_SIZE),
        InputField("map_cell", "map", Kind.CHOICE, "LSTMCell", "map of", tuple(CELL_NAMES)),
        InputField("map_part", "part", Kind.CHOICE, "h", "state", ("h", "c")),
        # A scan of the Scan page.
        InputField("preset", "step", Kind.CHOICE, OPENING_STEP, "step", STEP_NAMES),
        InputField("xs", "xs", Kind.TEXT, "", "xs", max_chars=_TEXT),
        InputField("target", "by", Kind.CHOICE, FINAL, "sum of", (FINAL, YS)),
        # One update.
        InputField("model", "cell", Kind.CHOICE, "LSTMCell", "cell", tuple(CELL_NAMES)),
        _size("train_length", "steps", 8, "length T"),
        _size("batch", "batch", 16, "batch B"),
        InputField("rate", "drop", Kind.NUMBER, 0.2, "dropout rate", low=0.0, high=0.9),
        InputField("mode", "mode", Kind.CHOICE, TRAIN, "mode", (TRAIN, EVAL)),
        InputField("rngs", "rngs", Kind.CHOICE, GIVEN, "rngs of the dropout", (GIVEN, NO_RNGS)),
        _seed("dropout_seed", "dseed", 1, "dropout seed"),
        InputField("optimizer", "opt", Kind.CHOICE, "sgd", "optimizer", OPTIMIZERS),
        InputField("learning_rate", "lr", Kind.NUMBER, 0.1, "learning rate", low=0.0, high=10.0),
        InputField("updates", "n", Kind.WHOLE, 20, "updates", low=1, high=100),
    ),
)


@dataclass(frozen=True, slots=True)
class Trick:
    """A button that makes something be seen.

    Attributes:
        id: stable; its key is ``gradients_try_<id>``.
        label, help: words.
        values: what it sets.
        units: hidden_features that it needs at least.
    """

    id: str
    label: str
    help: str
    values: Mapping[str, Value]
    units: int = 0

    def edit(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """What it sets, beginning from these values."""
        few = int(values["hidden_features"]) < self.units
        return {**self.values, **({"hidden_features": self.units} if few else {})}


_STILL: Final[Mapping[str, Value]] = {"row": 0}
TRICKS: Final = (
    Trick(
        "vanish",
        "let it vanish",
        "A forget gate that is nearly closed, and weak recurrent kernels: every step multiplies by little.",
        {"forget_bias": -3.0, "recurrent_scale": 0.3, **_STILL},
    ),
    Trick(
        "explode",
        "let it explode",
        "Recurrent kernels three times as large: without gates every step multiplies by more than 1. (A cell of few units "
        "saturates instead, so it gets 16.)",
        {"forget_bias": 0.0, "recurrent_scale": 3.0, **_STILL},
        # Measured over seeds and data: with 16 units the simple cell explodes in 18 of 18 cases, with 8 in 7 of 18.
        units=16,
    ),
    Trick(
        "remember",
        "make it remember (forget bias 3)",
        "The LSTM's forget gate begins nearly open: c is handed on almost whole.",
        {"forget_bias": 3.0, "recurrent_scale": 1.0, **_STILL},
    ),
    Trick(
        "plain",
        "as Flax builds them",
        "Forget bias 0 and recurrent scale 1.",
        {"forget_bias": 0.0, "recurrent_scale": 1.0, **_STILL},
    ),
)
