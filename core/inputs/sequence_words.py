"""What the Sequence page says in sentences of what is set: each under its own input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from core.base.text import fill
from core.inputs.sequence_fields import (
    BIDIRECTIONAL,
    IMPULSE,
    KEPT,
    LEFT_OVER,
    LENGTHS,
    MASK,
    NAN,
    NOISE,
    REPEAT,
    REVERSE,
    TBF,
    TYPED,
    ZEROS,
)
from core.inputs.sequence_inputs import SequenceInputs, read

REVERSED = (
    "The layer runs from the last step to the first. Its outputs come in the order of its visits: output 0 belongs to "
    "the last step."
)
REVERSED_KEPT = (
    "The layer runs from the last step to the first; with keep_order its outputs are put back, so that output t belongs "
    "to step t. The carry is the one after step 0 in both cases."
)
REVERSED_LENGTHS = (
    "With seq_lengths each example runs from its own last step; its padding comes after that, and counts for nothing."
)
REVERSED_MASK = "With a mask it runs from the end of T: the padding comes first and keeps the carry as it is."
BOTH_WAYS = (
    "Two cells: one runs forward, the other from the end (its seed is one more). Their outputs stand side by side, "
    "2·H wide, in the order of time."
)
BY_LENGTHS = (
    "Every step is computed, padding too, and of all carries the one after step lengths − 1 is returned. Outputs in the "
    "padding are there, and mean nothing."
)
BY_MASK = (
    "The step keeps the old carry where the mask is 0, so a step that is off may be anywhere. nnx.RNN has no mask: this "
    "is a lax.scan with jnp.where in its step."
)
BY_NOTHING = "Every step counts, padding too: the carry that is returned is the one after the last column."
NO_LENGTHS = "No lengths are given, so every example has all T steps."
NO_STEPS = "T = 0: no step is run. The final carry is the initial one, and there are no outputs."
ONE_STEP = "T = 1: one step, as on the LSTM cell page."
TIME_FIRST = "The data are time-major, (T, B, F): the layer has to be told time_major=True."
IN_PADDING: Final[Mapping[str, str]] = {
    ZEROS: "Zeros in the padding look harmless, and still move a carry that is not zero.",
    REPEAT: "The last real step is repeated through the padding.",
    NOISE: "Noise in the padding: whatever it does, it must not reach the valid part.",
    NAN: "NaN in the padding: if one of them reaches a carry that counts, everything after it is NaN.",
    KEPT: "The formula goes on through the padding: only lengths or mask say where an example ends.",
}
IMPULSE_SAYS = "One impulse at t = 0: what is left of it later is what the layer remembers."
TYPED_SAYS = "Typed numbers stand as they are: B, T and F are theirs, and nothing is put into the padding."
LEFT_OVER_SAYS = "The carry starts where another sequence of noise, of the same size, ended."


def explains(inputs: SequenceInputs) -> dict[str, str]:
    """Short texts about what is set, by the name of the input that each belongs under.

    Keys that may be there: ``length``, ``axes``, ``direction``, ``masking``, ``padding``, ``source``, ``init``.
    """
    out: dict[str, str] = {}
    known, _ = read(inputs)
    length = inputs.length if known is None else known.sizes[1]
    if length in (0, 1):
        out["length"] = fill(ONE_STEP if length else NO_STEPS)
    if inputs.axes == TBF:
        out["axes"] = fill(TIME_FIRST)
    if inputs.direction == BIDIRECTIONAL:
        out["direction"] = fill(BOTH_WAYS)
    elif inputs.direction == REVERSE:
        said = [fill(REVERSED_KEPT if inputs.keep_order else REVERSED)]
        by = {LENGTHS: REVERSED_LENGTHS, MASK: REVERSED_MASK}.get(inputs.masking)
        out["direction"] = " ".join(said if by is None else [*said, fill(by)])
    given = known is None or known.lengths is not None or known.mask is not None or bool(inputs.lengths.strip())
    out["masking"] = fill({LENGTHS: BY_LENGTHS if given else NO_LENGTHS, MASK: BY_MASK}.get(inputs.masking, BY_NOTHING))
    if inputs.source == TYPED:
        out["source"] = fill(TYPED_SAYS)
    elif known is not None and known.small and not bool(known.valid.all()):
        out["padding"] = fill(IN_PADDING[inputs.padding])
    if inputs.source == IMPULSE:
        out["source"] = fill(IMPULSE_SAYS)
    if inputs.init == LEFT_OVER:
        out["init"] = fill(LEFT_OVER_SAYS)
    return out
