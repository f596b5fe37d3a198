"""The Sequence page as a program: the one that the page shows, what it gives, and a negative test."""

from __future__ import annotations

from typing import Any, Final

from core.base.outcome import Outcome
from core.base.sequences import Masking, Slip
from core.base.text import fill
from core.export.cell_program import FROM_FILE, PACKAGES
from core.export.document import DIGITS, Document, Part, digits, fixes_of, must_raise, repaired
from core.inputs.sequence_fields import BIDIRECTIONAL, LEFT_OVER, NOISE, NORMAL, TYPED
from core.inputs.sequence_inputs import SequenceInputs, read
from core.inputs.sequence_page import SequenceLook, look_at
from core.inputs.sequence_source import paragraphs

STEM: Final = "carry-lab-sequence"
TITLE: Final = "An nnx.{cell} over a batch of sequences"
ABOUT: Final = "{batch} examples of {length} steps with {features} features, {hidden} hidden units, {direction}."
IMPORTS_TEXT: Final = "What it needs."
TEXTS: Final = (
    "The data, with their padding.",
    "Which steps are padding.",
    "The cell, and the initial carry where it is not zeros.",
    "The layer. It returns the final carry, and an output for each step.",
)
PRINT_TEXT: Final = "What the layer gives."
PRINT: Final = 'print("ys:", ys)'
SEED: Final = "{what} {seed}"
PARAMETERS, BACKWARD, DATA, CARRY = "parameters", "backward parameters", "data", "initial carry"

ITSELF: Final = "this program must raise {type}, as the page says."
PADDING: Final = "what stands in the padding must not move the final carry, not by the last bit."
PADDING_CODE: Final = """\
before = digits(carry)
valid = {valid}
x = jnp.where(valid{turn}[..., None], x, 1000.0)
{body}
if digits(carry) != before:
    raise AssertionError("the padding moved the final carry")
print("1000 in the padding: the same final carry")
"""
BY_LENGTHS: Final = "jnp.arange({length}) < lengths[:, None]  # (B, T)"
WIDER: Final = "data with one feature too many must raise TypeError."
WIDER_CODE: Final = "x = jnp.concatenate([x, jnp.ones_like(x[..., :1])], axis=-1)\n"


def sequence_document(look: SequenceLook) -> Document | None:
    """The program of a look; None where an input could not be read, or is over a limit."""
    inputs, report = look.inputs, look.report
    texts = _texts(inputs)
    if not texts or report is None or look.trial is None or report.outcome is Outcome.LIMIT:
        return None
    imports, *body, last = texts
    raised = "" if look.raised is None else look.raised.type
    if raised:
        parts: tuple[Part, ...] = ()
        negative = Part(fill(ITSELF, type=raised), must_raise("\n\n".join(filter(None, body)), raised))
    else:
        shown = [Part(fill(text), code) for text, code in zip(TEXTS, body, strict=True) if code]
        parts = (*shown, Part(fill(PRINT_TEXT), last + "\n" + fill(PRINT)))
        negative = _negative(look, body)
    known, _ = read(inputs)
    batch, length, features = known.sizes if known is not None else (0, 0, 0)
    return Document(
        fill(STEM),
        fill(TITLE, cell=inputs.cell),
        fill(
            ABOUT,
            batch=batch,
            length=length,
            features=features,
            hidden=inputs.hidden_features,
            direction=inputs.direction,
        ),
        (Part(fill(IMPORTS_TEXT), imports), *parts),
        negative,
        seeds=tuple(_seeds(inputs)),
        codes=tuple(dict.fromkeys(v.code for v in report.broken)),
        raises=raised,
        packages=() if inputs.used is None else PACKAGES,
    )


def _texts(inputs: SequenceInputs) -> list[str]:
    """The program's paragraphs: imports, data, what is told, cells, the layer, what is printed."""
    return ["\n".join(lines).strip("\n") for lines in paragraphs(inputs)]


def _seeds(inputs: SequenceInputs) -> list[str]:
    used = inputs.used
    seeds = [(PARAMETERS, inputs.seed)] if used is None else []
    if used is None and inputs.direction == BIDIRECTIONAL:
        seeds.append((BACKWARD, inputs.seed + 1))
    if inputs.source != TYPED and (NOISE in (inputs.source, inputs.padding) or inputs.init == LEFT_OVER):
        seeds.append((DATA, inputs.data_seed))
    if inputs.init == NORMAL:
        seeds.append((CARRY, inputs.init_seed))
    words = [fill(SEED, what=fill(what), seed=seed) for what, seed in seeds]
    return words if used is None else [fill(FROM_FILE, hash=used.short), *words]


def _numbers(look: SequenceLook) -> Any:
    result = look.result
    return None if result is None else ([one.final for one in result.directions], result.outputs)


def _negative(look: SequenceLook, body: list[str]) -> Part:
    """The fix changes the numbers, where the layer is broken silently; else padding moves nothing, or what must raise."""
    for title, edit in fixes_of(look.report, look.all_fixed):
        values: dict[str, Any] = {**look.inputs.values, **edit.values}
        after = look_at(SequenceInputs.of(values, look.inputs.file))
        moved = Slip.UNPACKED in look.inputs.slips or digits(_numbers(after)) != digits(_numbers(look))
        if after.result is not None and moved:
            other = _texts(after.inputs)[1:-1]
            changed = [new for old, new in zip(body, other, strict=True) if new != old and new]
            if changed[-1:] != other[-1:]:
                changed.append(other[-1])
            return repaired(title, "(carry, ys)", "\n\n".join(changed))
    return _padding(look, body) or Part(fill(WIDER), must_raise(fill(WIDER_CODE) + body[-1], "TypeError"))


def _padding(look: SequenceLook, body: list[str]) -> Part | None:
    """Other numbers in the padding move no carry; None where there is none, or the layer is not told."""
    trial, report = look.trial, look.report
    known, _ = read(look.inputs)
    if trial is None or known is None or report is None or report.broken or trial.misread or not known.small:
        return None
    if trial.slips or bool(known.valid.all()):
        return None
    told = body[1]
    if trial.masking is Masking.MASK and "mask = " in told:
        valid = "mask"
    elif trial.masking is Masking.LENGTHS and "lengths = " in told:
        valid = fill(BY_LENGTHS, length=known.sizes[1])
    else:
        return None
    turn = "" if look.inputs.axes == "BTF" else ".T"
    return Part(fill(PADDING), fill(DIGITS) + "\n\n" + fill(PADDING_CODE, valid=valid, turn=turn, body=body[-1]))
