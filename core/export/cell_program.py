"""The LSTM cell page as a program: the lines that the page shows, what they give, and a negative test."""

from __future__ import annotations

from typing import Any, Final

from core.base.outcome import Outcome
from core.base.text import fill
from core.export.document import Document, Part, digits, fixes_of, import_lines, must_raise, repaired
from core.inputs.cell_fields import NO_RNGS
from core.inputs.cell_inputs import CellInputs
from core.inputs.cell_page import CellLook, look_at
from core.inputs.cell_source import source
from core.runners.cell_formulas import KINDS
from core.weights import script

STEM: Final = "carry-lab-lstm"
TITLE: Final = "One step of an nnx.{cell}"
ABOUT: Final = "{features} features, {hidden} hidden units, a batch of {batch}."
IMPORTS_TEXT: Final = "What it needs."
CELL_TEXT: Final = "The cell, its carry, the input, and one step."
PRINT_TEXT: Final = "What the step gives."
SEED: Final = "{what} {seed}"
FROM_FILE: Final = "parameters from a file ({hash})"
WEIGHTS_TEXT: Final = (
    "The parameters, from a file that is saved on the page (Weights, Save), and the check of its hash."
)
#: More packages that a program with a file needs.
PACKAGES: Final = ("safetensors",)
PARAMETERS, CARRY, INPUT = "parameters", "carry", "input"
PRINT: Final = 'print("new carry:", new_carry)\nprint("output:", output)'
RESULT: Final = "(new_carry, output)"

ITSELF: Final = "this program must raise {type}, as the page says."
ONE_ARRAY: Final = "one array where the carry is a pair must raise ValueError: it does not unpack into two."
ONE_ARRAY_CODE: Final = "cell(carry[1], x)"
WIDER: Final = "an input with one feature too many must raise TypeError."
WIDER_CODE: Final = "cell(carry, jnp.ones(({batch}, {features})))"
#: Two examples of one array unpack into c and h without a word.
_UNPACKS: Final = 2


def cell_document(look: CellLook) -> Document | None:
    """The program of a look; None where an input could not be read, or is over a limit."""
    inputs, report = look.inputs, look.report
    program = source(inputs, None)
    if not program or report is None or report.outcome is Outcome.LIMIT:
        return None
    code, weights = _body(program), _weights(inputs)
    raised = "" if look.raised is None else look.raised.type
    if raised:
        parts: tuple[Part, ...] = weights
        negative = Part(fill(ITSELF, type=raised), must_raise(code, raised))
    else:
        parts = (*weights, Part(fill(CELL_TEXT), code), Part(fill(PRINT_TEXT), fill(PRINT)))
        negative = _negative(look)
    needed = import_lines("\n".join(part.code for part in (*parts, negative)))
    return Document(
        fill(STEM),
        fill(TITLE, cell=inputs.cell),
        fill(ABOUT, features=inputs.in_features, hidden=inputs.hidden_features, batch=inputs.batch),
        (Part(fill(IMPORTS_TEXT), needed), *parts),
        negative,
        seeds=tuple(_seeds(inputs)),
        codes=tuple(dict.fromkeys(v.code for v in report.broken)),
        raises=raised,
        packages=PACKAGES if weights else (),
    )


def _weights(inputs: CellInputs) -> tuple[Part, ...]:
    """The file of parameters, loaded and checked; nothing where they are a seed's."""
    used = None if inputs.break_cell == NO_RNGS else inputs.used
    if used is None:
        return ()
    code = "\n".join((script.IMPORTS, "", script.load_line(used), "", "", script.check_lines(used)))
    return (Part(fill(WEIGHTS_TEXT), code),)


def _body(program: str) -> str:
    """The program without its imports."""
    return program.split("\n\n", 1)[1].strip("\n")


def _seeds(inputs: CellInputs) -> list[str]:
    used = inputs.used
    seeds = [fill(SEED, what=fill(PARAMETERS), seed=inputs.seed) if used is None else fill(FROM_FILE, hash=used.short)]
    if not inputs.handmade:
        seeds.append(fill(SEED, what=fill(CARRY), seed=inputs.carry_seed))
    if inputs.input == "noise":
        seeds.append(fill(SEED, what=fill(INPUT), seed=inputs.input_seed))
    return seeds


def _numbers(look: CellLook) -> Any:
    return None if look.step is None else (look.step.after, look.step.output)


def _negative(look: CellLook) -> Part:
    """The fix changes the numbers, where the step is broken silently; else what must raise."""
    inputs = look.inputs
    for title, edit in fixes_of(look.report, look.all_fixed):
        values: dict[str, Any] = {**inputs.values, **edit.values}
        after = look_at(CellInputs.of(values, inputs.file))
        if after.step is not None and digits(_numbers(after)) != digits(_numbers(look)):
            return repaired(title, fill(RESULT), _body(source(after.inputs, None)))
    if KINDS[inputs.cell].pair and look.step is not None and _pair(look) and inputs.batch != _UNPACKS:
        return Part(fill(ONE_ARRAY), must_raise(fill(ONE_ARRAY_CODE), "ValueError"))
    wider = fill(WIDER_CODE, batch=inputs.batch, features=inputs.in_features + 1)
    return Part(fill(WIDER), must_raise(wider, "TypeError"))


def _pair(look: CellLook) -> bool:
    """Whether the carry that is handed over is a pair of arrays with an axis of examples each."""
    parts = look.step.carry if look.step is not None else ()
    return len(parts) == _UNPACKS and all(
        p.aval is not None and p.aval.shape[:1] == (look.inputs.batch,) for p in parts
    )
