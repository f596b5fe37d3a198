"""The inputs of the LSTM cell page: one field table for state and link, and the table of its "Break it" switches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from core.base.limits import LIMITS
from core.base.text import fill
from core.inputs.fields import FieldTable, InputField, Kind
from core.runners.cell_formulas import KINDS

PAGE: Final = "lstm"
#: Seeds that `nnx.Rngs` takes as they are in 32-bit mode.
_TOP_SEED: Final = 2**31 - 1
_ANY_SIZE: Final = 10**12
#: How much typed text a link may carry for one input.
_TEXT: Final = LIMITS["link_text"].value

#: Values of the inputs that break something: they are read in links and on cards, so they are words.
NONE: Final = "right"
NO_RNGS: Final = "none given"
TIME_AXIS: Final = "(T, B, F)"
ONE_MORE: Final = "one example more"
ONE_EXAMPLE: Final = "one example"
ONE_ARRAY: Final = "one array"
SWAPPED: Final = "(h, c)"
TOO_WIDE: Final = "one unit too wide"
BFLOAT16: Final = "bfloat16"
EXTRA_FEATURE: Final = "one feature too wide"
CARRIES: Final = ("zeros", "normal", "typed")
INPUTS: Final = ("ones", "noise", "table", "paste")
#: The inputs whose numbers stand in the field `numbers`.
TYPED: Final = ("table", "paste")

FIELDS: Final = FieldTable(
    PAGE,
    (
        InputField("cell", "cell", Kind.CHOICE, "LSTMCell", "cell", tuple(KINDS)),
        # Sizes are as good as unbounded here: a bad one is said beside the input, not silently changed.
        InputField("in_features", "in", Kind.WHOLE, 3, "in_features", low=-_ANY_SIZE, high=_ANY_SIZE),
        InputField("hidden_features", "hidden", Kind.WHOLE, 4, "hidden_features", low=-_ANY_SIZE, high=_ANY_SIZE),
        InputField("batch", "batch", Kind.WHOLE, 2, "batch", low=-_ANY_SIZE, high=_ANY_SIZE),
        InputField("seed", "seed", Kind.WHOLE, 0, "parameter seed", low=0, high=_TOP_SEED),
        InputField("carry_seed", "cseed", Kind.WHOLE, 1, "carry seed", low=0, high=_TOP_SEED),
        InputField("carry", "carry", Kind.CHOICE, "zeros", "carry", CARRIES),
        InputField("carry_c", "c", Kind.TEXT, "", "c, a line an example", max_chars=_TEXT),
        InputField("carry_h", "h", Kind.TEXT, "", "h, a line an example", max_chars=_TEXT),
        InputField("input", "x", Kind.CHOICE, "ones", "input", INPUTS),
        InputField("input_seed", "xseed", Kind.WHOLE, 0, "noise seed", low=0, high=_TOP_SEED),
        InputField("numbers", "nums", Kind.TEXT, "", "x, a line an example", max_chars=_TEXT),
        InputField("break_cell", "bcell", Kind.CHOICE, NONE, "the cell's rngs", (NONE, NO_RNGS)),
        InputField(
            "break_init",
            "binit",
            Kind.CHOICE,
            NONE,
            "initialize_carry's arguments",
            (NONE, NO_RNGS, TIME_AXIS, ONE_MORE, ONE_EXAMPLE),
        ),
        InputField(
            "break_carry",
            "bcarry",
            Kind.CHOICE,
            NONE,
            "the carry handed to the cell",
            (NONE, ONE_ARRAY, SWAPPED, TOO_WIDE, BFLOAT16),
        ),
        InputField("break_input", "binput", Kind.CHOICE, NONE, "the input's width", (NONE, EXTRA_FEATURE)),
        InputField("example", "b", Kind.WHOLE, 0, "example", low=0),
        InputField("unit", "u", Kind.WHOLE, 0, "unit", low=0),
        # The hash of the parameters of a file: they themselves are in the session that loaded it, and nowhere else.
        InputField("weights", "w", Kind.TEXT, "", "weights from a file", max_chars=64),
    ),
)


@dataclass(frozen=True, slots=True)
class Switch:
    """One way to break the contract: what the button says, and the value that one input gets.

    Attributes:
        id: stable; the button's key is ``lstm_break_<id>``.
        line: the line of the program it breaks: ``cell``, ``init``, ``carry`` or ``input``.
        field, value: what it sets.
        label: on the button.
        help: the mistake in a sentence.
        needs_pair: only an LSTM's carry is a pair.
        needs_made: needs a carry or input that was made, not typed.
    """

    id: str
    line: str
    field: str
    value: str
    label: str
    help: str
    needs_pair: bool = False
    needs_made: bool = False


SWITCHES: Final = (
    Switch(
        "no_cell_rngs",
        "cell",
        "break_cell",
        NO_RNGS,
        "no rngs to the cell",
        "The cell is built without `rngs`: there is nothing to draw its parameters from.",
    ),
    Switch(
        "no_carry_rngs",
        "init",
        "break_init",
        NO_RNGS,
        "no rngs to initialize_carry",
        "Even a carry of zeros wants `rngs`.",
        needs_made=True,
    ),
    Switch(
        "time_axis",
        "init",
        "break_init",
        TIME_AXIS,
        "initialize_carry gets (T, B, F)",
        "The shape of the whole sequence where the shape of one step's input belongs.",
        needs_made=True,
    ),
    Switch(
        "wrong_batch",
        "init",
        "break_init",
        ONE_MORE,
        "wrong batch",
        "The carry is made for one more example than the input has.",
        needs_made=True,
    ),
    Switch(
        "batch_1",
        "init",
        "break_init",
        ONE_EXAMPLE,
        "batch 1",
        "The carry is made for one example and shared by all.",
        needs_made=True,
    ),
    Switch(
        "one_array",
        "carry",
        "break_carry",
        ONE_ARRAY,
        "one array for the pair",
        "h alone is handed over where the pair (c, h) belongs. With batch 2 it unpacks silently, with batch 3 JAX raises.",
        needs_pair=True,
    ),
    Switch(
        "swapped",
        "carry",
        "break_carry",
        SWAPPED,
        "(h, c) for (c, h)",
        "The two parts change places. Zeros would hide it, so the carry is drawn from a normal distribution.",
        needs_pair=True,
    ),
    Switch(
        "wrong_width",
        "carry",
        "break_carry",
        TOO_WIDE,
        "wrong carry width",
        "The carry has one unit more than `hidden_features`.",
        needs_made=True,
    ),
    Switch(
        "bfloat16",
        "carry",
        "break_carry",
        BFLOAT16,
        "bfloat16 carry",
        "The carry is narrower than what the cell computes in.",
    ),
    Switch(
        "input_width",
        "input",
        "break_input",
        EXTRA_FEATURE,
        "wrong input width",
        "The input has one feature more than `in_features`.",
        needs_made=True,
    ),
)

NO_PAIR = "The carry of a {cell} is one array: there is no pair to break."
NOT_CALLED = "The carry is made by hand, so initialize_carry is not called."
TYPED_CARRY = "The carry is typed: type another width into it."
TYPED_INPUT = "The input is typed: type another width into it."
ALREADY_ONE = "The batch is 1 already."


def not_offered(
    switch: Switch, *, cell: str, carry: str, input_source: str, batch: int, break_carry: str = NONE
) -> str:
    """Why this switch makes no sense with these inputs; "" when it does."""
    if switch.needs_pair and not KINDS[cell].pair:
        return fill(NO_PAIR, cell=cell)
    if switch.line == "init" and (carry == "typed" or break_carry == TOO_WIDE):
        return fill(NOT_CALLED)
    if switch.value == ONE_EXAMPLE and batch == 1:
        return fill(ALREADY_ONE)
    if switch.needs_made and switch.line == "carry" and carry == "typed":
        return fill(TYPED_CARRY)
    if switch.needs_made and switch.line == "input" and input_source in TYPED:
        return fill(TYPED_INPUT)
    return ""
