"""The inputs of the Sequence page: one field table for state and link, and the table of its "Break it" switches.

The table depends on B and T in one thing: lengths that nobody typed are those of a ragged batch of that size, so that
moving a slider never makes a length that is longer than the sequence. `core.inputs.sequence_follow` does the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from core.base.limits import LIMITS
from core.inputs.fields import FieldTable, InputField, Kind, RefusedError, Value
from core.inputs.sequence_padding import default_lengths
from core.runners.cell_formulas import KINDS

PAGE: Final = "sequence"
#: Seeds that `nnx.Rngs` takes as they are in 32-bit mode; one less, for a backward cell has the next seed.
_TOP_SEED: Final = 2**31 - 2
_ANY_SIZE: Final = 10**12

#: Values of choices: they are read in links and on cards, so they are words.
NONE: Final = "none"
#: How the data are made.
NOISE, SINE, RAMP, IMPULSE, TYPED = "noise", "sine", "ramp", "impulse", "typed"
SOURCES: Final = (SINE, RAMP, IMPULSE, NOISE, TYPED)
#: What stands in steps that are padding.
ZEROS, REPEAT, NAN, KEPT = "zeros", "repeat last", "nan", "as it is"
PADDINGS: Final = (ZEROS, REPEAT, NOISE, NAN, KEPT)
BTF, TBF = "BTF", "TBF"
FORWARD, REVERSE, BIDIRECTIONAL = "forward", "reverse", "bidirectional"
DIRECTIONS: Final = (FORWARD, REVERSE, BIDIRECTIONAL)
LENGTHS, MASK = "lengths", "mask"
MASKINGS: Final = (NONE, LENGTHS, MASK)
NORMAL, LEFT_OVER = "normal", "left over"
INITS: Final = (ZEROS, NORMAL, TYPED, LEFT_OVER)
FEATURE_MASK, BUILT_IN_STEP, UNPACKED, SUMMED_MASK = "feature_mask", "built_in_step", "unpacked", "summed_mask"
SLIPS: Final = (NONE, FEATURE_MASK, BUILT_IN_STEP, UNPACKED, SUMMED_MASK)
SEED, HIDDEN, CELL = "seed", "hidden", "cell"
COMPARES: Final = (NONE, SEED, HIDDEN, CELL)
LINES, HEATMAP = "lines", "heatmap"
VIEWS: Final = (LINES, HEATMAP)
#: Which layer of a bidirectional one is looked at.
BACKWARD: Final = "backward"
SIDES: Final = (FORWARD, BACKWARD)

#: The sizes that the page opens with.
_BATCH, _LENGTH, _FEATURES, _HIDDEN = 3, 8, 3, 4


def _choice(name: str, url: str, options: tuple[str, ...], default: str, label: str) -> InputField:
    return InputField(name, url, Kind.CHOICE, default, label, options)


def _size(name: str, url: str, default: int, label: str, limit: str) -> InputField:
    # Sizes are as good as unbounded here: a bad one is said beside the input, not silently changed.
    most = LIMITS[limit].value
    return InputField(name, url, Kind.WHOLE, default, label, low=-_ANY_SIZE, high=_ANY_SIZE, limit=most)


def _seed(name: str, url: str, default: int, label: str) -> InputField:
    return InputField(name, url, Kind.WHOLE, default, label, low=0, high=_TOP_SEED)


def _text(name: str, url: str, default: str, label: str) -> InputField:
    return InputField(name, url, Kind.TEXT, default, label, max_chars=LIMITS["url_text"].value)


def _table(lengths: str) -> FieldTable:
    return FieldTable(
        PAGE,
        (
            _choice("cell", "cell", tuple(KINDS), "LSTMCell", "cell"),
            _size("hidden_features", "hidden", _HIDDEN, "hidden_features", "hidden"),
            _seed("seed", "seed", 0, "parameter seed"),
            _choice("source", "x", SOURCES, SINE, "data"),
            _seed("data_seed", "xseed", 0, "data seed"),
            _size("batch", "B", _BATCH, "batch B", "batch"),
            _size("length", "T", _LENGTH, "length T", "length"),
            _size("in_features", "F", _FEATURES, "in_features F", "features"),
            _text("numbers", "nums", "", "numbers"),
            _choice("padding", "pad", PADDINGS, ZEROS, "in the padding"),
            _choice("axes", "axes", (BTF, TBF), BTF, "axes of the data"),
            InputField("time_major", "tm", Kind.FLAG, False, "time_major"),
            _choice("direction", "dir", DIRECTIONS, FORWARD, "direction"),
            InputField("keep_order", "keep", Kind.FLAG, False, "keep_order"),
            InputField("unroll", "unroll", Kind.WHOLE, 1, "unroll", low=-_ANY_SIZE, high=_ANY_SIZE),
            _choice("masking", "how", MASKINGS, LENGTHS, "padding is told by"),
            _text("lengths", "len", lengths, "seq_lengths"),
            _text("lengths_typed", "len0", "", "seq_lengths as typed"),
            _text("mask", "mask", "", "mask, a row an example"),
            _text("mask_typed", "mask0", "", "mask as typed"),
            _choice("init", "init", INITS, ZEROS, "initial carry"),
            _seed("init_seed", "iseed", 1, "carry seed"),
            _text("init_c", "c", "", "c, a line an example"),
            _text("init_h", "h", "", "h, a line an example"),
            _choice("slip", "slip", SLIPS, NONE, "how the layer is called"),
            InputField("example", "b", Kind.WHOLE, 1, "example", low=0, high=_ANY_SIZE),
            InputField("unit", "u", Kind.WHOLE, 0, "unit", low=0, high=_ANY_SIZE),
            InputField("t", "t", Kind.WHOLE, 5, "t", low=0, high=_ANY_SIZE),
            _choice("compare", "vs", COMPARES, NONE, "compare with"),
            _seed("compare_seed", "vseed", 1, "the other seed"),
            _size("compare_hidden", "vhidden", 8, "the other hidden_features", "hidden"),
            _choice("compare_cell", "vcell", tuple(KINDS), "GRUCell", "the other cell"),
            _choice("view", "view", VIEWS, LINES, "view"),
            _choice("side", "side", SIDES, FORWARD, "direction that is drawn"),
            # The hash of the parameters of a file: they themselves are in the session that loaded it, and nowhere else.
            InputField("weights", "w", Kind.TEXT, "", "weights from a file", max_chars=64),
        ),
    )


#: The table as the page opens.
FIELDS: Final = _table(default_lengths(_BATCH, _LENGTH))
#: Fields that are merely looked at: another value of these is the same run.
LOOKED_AT: Final = frozenset({"example", "unit", "t", "view", "side"})
#: Other fields that the run does not depend on: what it is compared with, and what is kept to come back.
BESIDE: Final = frozenset({"compare", "compare_seed", "compare_hidden", "compare_cell", "lengths_typed", "mask_typed"})


def sequence_fields(values: Mapping[str, object]) -> FieldTable:
    """The table for some values: lengths that nobody typed are made from B and T."""
    return _table(default_lengths(_whole(values, "batch"), _whole(values, "length")))


def sequence_link_fields(params: Mapping[str, str]) -> FieldTable:
    """The table for what a link says."""
    values: dict[str, Value] = {}
    for name in ("batch", "length"):
        field = FIELDS.field(name)
        try:
            values[name] = field.parse(params[field.url])
        except (KeyError, RefusedError):
            continue
    return sequence_fields(values)


def _whole(values: Mapping[str, object], name: str) -> int:
    field = FIELDS.field(name)
    value = values.get(name, field.default)
    return value if isinstance(value, int) and not isinstance(value, bool) else int(field.default)
