"""The "Break it" row of the Sequence page: one mistake a button, each gives one code, and each has a way back.

A button may have to change more than one input, so that the mistake shows as it does at home: silently where JAX is
silent, and alone. What it changes is in `edit_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from core.base.limits import LIMITS
from core.base.text import fill
from core.inputs.fields import Value, changed
from core.inputs.parse import UnreadableError
from core.inputs.sequence_fields import (
    BTF,
    BUILT_IN_STEP,
    FEATURE_MASK,
    FORWARD,
    LEFT_OVER,
    LENGTHS,
    MASK,
    NOISE,
    NONE,
    REVERSE,
    SUMMED_MASK,
    TBF,
    TYPED,
    UNPACKED,
    ZEROS,
)
from core.inputs.sequence_follow import Values, follow
from core.inputs.sequence_inputs import Array, Known, SequenceInputs, read
from core.inputs.sequence_padding import (
    default_lengths,
    is_given,
    read_lengths,
    steps_of,
    written_lengths,
    written_mask,
)

#: Steps that an example must have, so that one between its first and its last can be switched off.
_HOLE = 3
_TWO = 2


@dataclass(frozen=True, slots=True)
class Switch:
    """One way to break the contract.

    Attributes:
        id: stable; the button's key is ``sequence_break_<id>``.
        field: the input that it is about, by name.
        value: what that input gets; "" where it depends on the others.
        code: the rule that speaks.
        label: on the button.
        help: the mistake in a sentence.
    """

    id: str
    field: str
    value: Value
    code: str
    label: str
    help: str


SWITCHES: Final = (
    Switch(
        "axis_order",
        "time_major",
        "",
        "L309",
        "wrong axis order",
        "time_major does not say what the data are: the layer walks over the examples instead of the steps. "
        "All examples get full length, for with lengths JAX would raise.",
    ),
    Switch(
        "not_masked",
        "masking",
        NONE,
        "L311",
        "padding not masked",
        "The layer is told neither lengths nor mask: padding moves the carry like any other step.",
    ),
    Switch(
        "zero_length",
        "lengths",
        "",
        "L310",
        "a length of 0",
        "The last example gets length 0. lengths − 1 is −1 then: the carry after the very last step of padding is returned. "
        "Zeros could hide it, so there is noise in the padding.",
    ),
    Switch(
        "feature_mask",
        "slip",
        FEATURE_MASK,
        "L312",
        "mask along the features",
        "The mask of a step, (B,), meets the carry, (B, H), without [:, None]. With H = B, which this sets, JAX is silent.",
    ),
    Switch(
        "built_in_step",
        "slip",
        BUILT_IN_STEP,
        "L313",
        "cell built in the step",
        "The cell is built inside the step: its weights are constants there, and nothing can learn them.",
    ),
    Switch(
        "left_over",
        "init",
        LEFT_OVER,
        "L317",
        "left-over carry",
        "The final carry of another sequence is taken for the initial one.",
    ),
    Switch(
        "unpacked",
        "slip",
        UNPACKED,
        "L319",
        "carry, ys = rnn(x)",
        "Without return_carry a layer returns its outputs alone. With two examples, which this sets, they unpack silently.",
    ),
    Switch(
        "summed_mask",
        "slip",
        SUMMED_MASK,
        "L321",
        "mask summed to lengths",
        "A mask with a hole is summed into seq_lengths: the number of steps is right, which steps they are is lost.",
    ),
    Switch(
        "no_order",
        "direction",
        REVERSE,
        "S114",
        "reverse, order not kept",
        "A reversed layer returns its outputs in the order of its visits unless keep_order is set.",
    ),
)

NO_PADDING = "No step is padding: make a length shorter than T."
NO_LENGTHS = "There are no lengths to make one of them 0."
ONE_EXAMPLE = "There is one example only: its mask fits every unit alike."
TOO_MANY = "The batch is larger than hidden_features may be."
TYPED_CARRY = "The initial carry is typed, and has its own width."
NO_ROOM = "No example has three steps, so that one between the others could be switched off."
NO_STEPS = "The sequence has no steps."
NO_EDIT = "This cannot be made with these inputs."


def switch_of(name: str) -> Switch:
    """The switch with this id.

    Raises:
        KeyError: there is none.
    """
    for switch in SWITCHES:
        if switch.id == name:
            return switch
    raise KeyError(name)


def offered(switch: Switch, inputs: SequenceInputs) -> str:
    """Why this switch makes no sense with these inputs; "" when it does, or when it is on."""
    if is_on(switch, inputs):
        return ""
    known, problems = read(inputs)
    if known is None or problems or not known.small:
        return fill(NO_EDIT)
    if not known.sizes[1]:
        return fill(NO_STEPS)
    why = _WHY_NOT.get(switch.id)
    return "" if why is None else why(inputs, known)


def is_on(switch: Switch, inputs: SequenceInputs) -> bool:
    """Whether these inputs make this mistake."""
    match switch.id:
        case "axis_order":
            return inputs.time_major == (inputs.axes == BTF)
        case "not_masked":
            return inputs.masking == NONE and not _full(inputs)
        case "zero_length":
            return inputs.masking == LENGTHS and 0 in _lengths(inputs)
        case "no_order":
            return inputs.direction == REVERSE and not inputs.keep_order
        case "left_over":
            return inputs.init == LEFT_OVER
        case _:
            return inputs.slip == switch.value and bool(inputs.slips)


def on(inputs: SequenceInputs) -> tuple[Switch, ...]:
    """The switches that are on."""
    return tuple(switch for switch in SWITCHES if is_on(switch, inputs))


def edit_of(inputs: SequenceInputs, switch: Switch) -> Values:
    """What a click sets: the mistake, or the way back where it is made already. Complete: what follows is in it."""
    edits = _BACK[switch.id](inputs) if is_on(switch, inputs) else _EDIT[switch.id](inputs)
    before = inputs.values
    after = follow(before, edits)
    return {name: after[name] for name in changed(before, after, before)}


# --- what is known ------------------------------------------------------------------------------------------------------


def _lengths(inputs: SequenceInputs) -> list[Value]:
    try:
        return list(read_lengths(inputs.lengths) or ())
    except UnreadableError:
        return []


def _sizes(inputs: SequenceInputs) -> tuple[int, int]:
    known, _ = read(inputs)
    return (inputs.batch, inputs.length) if known is None else known.sizes[:2]


def _full(inputs: SequenceInputs) -> bool:
    known, _ = read(inputs)
    return known is None or not known.small or bool(known.valid.all())


def _no_padding(_: SequenceInputs, known: Known) -> str:
    return fill(NO_PADDING) if known.valid.all() else ""


def _no_lengths(inputs: SequenceInputs, known: Known) -> str:
    return "" if len(_lengths(inputs)) == known.sizes[0] else fill(NO_LENGTHS)


def _no_features(inputs: SequenceInputs, known: Known) -> str:
    batch = known.sizes[0]
    if batch == 1:
        return fill(ONE_EXAMPLE)
    if inputs.init == TYPED and batch != inputs.hidden_features:
        return fill(TYPED_CARRY)
    return fill(TOO_MANY) if batch > LIMITS["hidden"].value else ""


def _no_hole(inputs: SequenceInputs, known: Known) -> str:
    return "" if _holed(inputs, known) is not None else fill(NO_ROOM)


def _no_two(inputs: SequenceInputs, known: Known) -> str:
    return fill(TYPED_CARRY) if inputs.init == TYPED and known.sizes[0] != _TWO and inputs.axes == BTF else ""


_WHY_NOT: Final[Mapping[str, Callable[[SequenceInputs, Known], str]]] = {
    "not_masked": _no_padding,
    "zero_length": _no_lengths,
    "feature_mask": _no_features,
    "unpacked": _no_two,
    "summed_mask": _no_hole,
}


def _holed(inputs: SequenceInputs, known: Known) -> Array | None:
    """The steps that count, with one switched off that has others before and after it; None where there is no room."""
    rows = known.mask if known.mask is not None else steps_of(inputs.lengths, *known.sizes[:2])
    rows = rows.copy()
    rows[~rows.any(1), 0] = True  # an example without any step would be another mistake, L310
    for row in rows:
        real = row.nonzero()[0]
        if len(real) and len(real) < real[-1] - real[0] + 1:
            return rows
    for row in rows:
        real = row.nonzero()[0]
        if len(real) >= _HOLE:
            row[real[1]] = False
            return rows
    return None


# --- edits --------------------------------------------------------------------------------------------------------------


def _axis_order(inputs: SequenceInputs) -> Values:
    return {"time_major": not inputs.time_major, "masking": LENGTHS, "lengths": "", "mask": ""}


def _axis_back(inputs: SequenceInputs) -> Values:
    given = {} if inputs.lengths.strip() else {"lengths": default_lengths(*_sizes(inputs))}
    return {"time_major": inputs.axes == TBF, **given}


def _not_masked(inputs: SequenceInputs) -> Values:
    """The layer is told nothing, of the same padding: a mask that did not count while lengths did must not count now."""
    other = inputs.masking == LENGTHS and is_given(inputs.mask)
    return {"masking": NONE, **({"mask": ""} if other else {})}


def _masked_again(inputs: SequenceInputs) -> Values:
    return {"masking": MASK if is_given(inputs.mask) else LENGTHS}


def _zero_length(inputs: SequenceInputs) -> Values:
    filled: Values = {"padding": NOISE} if inputs.padding == ZEROS else {}
    return {"masking": LENGTHS, "lengths": written_lengths([*_lengths(inputs)[:-1], 0]), **filled}  # type: ignore[list-item]


def _no_zeros(inputs: SequenceInputs) -> Values:
    usual = read_lengths(default_lengths(*_sizes(inputs))) or ()
    mended = [n if n != 0 else usual[b] if b < len(usual) else 1 for b, n in enumerate(_lengths(inputs))]
    return {"lengths": written_lengths(mended)}  # type: ignore[arg-type]  # numbers, as they were read


def _feature_mask(inputs: SequenceInputs) -> Values:
    return {"slip": FEATURE_MASK, "masking": MASK, "hidden_features": _sizes(inputs)[0]}


def _unpacked(inputs: SequenceInputs) -> Values:
    masking = {"masking": LENGTHS} if inputs.masking == MASK else {}
    batch = {"batch": _TWO} if inputs.source != TYPED and inputs.axes == BTF else {}
    return {"slip": UNPACKED, **masking, **batch}


def _summed_mask(inputs: SequenceInputs) -> Values:
    known, _ = read(inputs)
    holed = None if known is None else _holed(inputs, known)
    mask = {} if holed is None else {"mask": written_mask(holed)}
    return {"slip": SUMMED_MASK, "masking": LENGTHS, **mask}


def _always(values: Values) -> Callable[[SequenceInputs], Values]:
    return lambda _: dict(values)


_EDIT: Final[Mapping[str, Callable[[SequenceInputs], Values]]] = {
    "axis_order": _axis_order,
    "not_masked": _not_masked,
    "zero_length": _zero_length,
    "feature_mask": _feature_mask,
    "built_in_step": _always({"slip": BUILT_IN_STEP}),
    "left_over": _always({"init": LEFT_OVER}),
    "unpacked": _unpacked,
    "summed_mask": _summed_mask,
    "no_order": _always({"direction": REVERSE, "keep_order": False}),
}
_BACK: Final[Mapping[str, Callable[[SequenceInputs], Values]]] = {
    "axis_order": _axis_back,
    "not_masked": _masked_again,
    "zero_length": _no_zeros,
    "feature_mask": _always({"slip": NONE}),
    "built_in_step": _always({"slip": NONE}),
    "left_over": _always({"init": ZEROS}),
    "unpacked": _always({"slip": NONE}),
    "summed_mask": _always({"slip": NONE}),
    "no_order": _always({"direction": FORWARD}),
}
