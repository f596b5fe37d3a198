"""The Gradients page as a program, for each of its views: what it shows, and a negative test."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from core.base.outcome import Outcome
from core.base.text import fill
from core.export.document import DIGITS, Document, Part, fixes_of, must_raise, repaired
from core.inputs.gradient_fields import CELLS, GIVEN, PRESET, TRAIN, TYPED
from core.inputs.gradient_inputs import GradientInputs
from core.inputs.gradient_page import GradientLook, look_at, program_of

STEM: Final = "carry-lab-gradients"
CELLS_TITLE: Final = "What three cells remember of their inputs"
CELLS_ABOUT: Final = "The norm of d h_s / d x_t for every state and every input, by forward mode."
SCAN_TITLE: Final = "The gradient of a scan: {title}"
SCAN_ABOUT: Final = "With respect to init and to xs, of the sum of {what}."
TRAINING_TITLE: Final = "One update of a model with an nnx.{cell}"
TRAINING_ABOUT: Final = "The loss before and after one step of {optimizer}, with dropout {rate:g}."
NUMPY: Final = "import numpy as np"
IMPORTS_TEXT: Final = "What it needs."
PROGRAM_TEXT: Final = "The program."
SEED: Final = "{what} {seed}"
PARAMETERS, DATA, DROPOUT = "parameters", "data", "dropout"

ITSELF: Final = "this program must raise {type}, as the page says."
FUTURE: Final = "no state depends on an input that comes after it: those derivatives must be exactly 0."
FUTURE_CODE: Final = """\
for name in maps:
    if jnp.triu(maps[name], 1).any():
        raise AssertionError(f"{{name}}: a state depends on a later input")
print("no state depends on a later input")
"""
WHOLE: Final = "data of whole numbers must raise TypeError: only floats have derivatives."
WHOLE_CODE: Final = "xs = jnp.ones((T, F), jnp.int32)\nmemory(lstm)"
NO_NUMBER: Final = "what is differentiated has to be one number: the gradient of anything else must raise TypeError."
NO_NUMBER_CODE: Final = "jax.grad(lambda init: [number(init, xs)])(init)"
NO_KEY: Final = "in training dropout has to be given a key: without one it must raise {type}."
NO_KEY_CODE: Final = "loss(params, None)"
IN_USE: Final = "without dropout the loss must not move, whatever key there is."
IN_USE_CODE: Final = """\
if digits(loss(params, jax.random.key(1))) != digits(loss(params, jax.random.key(2))):
    raise AssertionError("a key moved the loss")
print("two keys: the same loss")
"""
#: What Flax raises where dropout has no key.
_WITHOUT_KEY: Final = "ValueError"


def gradient_document(look: GradientLook) -> Document | None:
    """The program of a look; None where an input cannot be used, or is over a limit."""
    program, report = program_of(look, None), look.report
    if not program or (report is not None and report.outcome is Outcome.LIMIT):
        return None
    imports, body = _split(program)
    raised = "" if look.raised is None else look.raised.type
    if raised:
        parts: tuple[Part, ...] = ()
        negative = Part(fill(ITSELF, type=raised), must_raise(body, raised))
    else:
        parts, negative = (Part(fill(PROGRAM_TEXT), body),), _negative(look)
    if "np.asarray" in negative.code and NUMPY not in imports:
        imports += "\n" + NUMPY
    title, about = _titles(look)
    return Document(
        fill(STEM),
        title,
        about,
        (Part(fill(IMPORTS_TEXT), imports), *parts),
        negative,
        seeds=tuple(_seeds(look.inputs)),
        codes=tuple(dict.fromkeys(v.code for v in (report.broken if report is not None else ()))),
        raises=raised,
        packages=("optax",) if "import optax" in imports else (),
    )


def _split(program: str) -> tuple[str, str]:
    """The lines that import, and the rest."""
    lines = program.split("\n")
    count = next(n for n, line in enumerate(lines) if not line.startswith(("import ", "from ")))
    return "\n".join(lines[:count]), "\n".join(lines[count:]).strip("\n")


def _titles(look: GradientLook) -> tuple[str, str]:
    inputs = look.inputs
    if look.scan is not None:
        what = "the final carry" if inputs.target == "final" else "ys"
        return fill(SCAN_TITLE, title=look.scan.step.title), fill(SCAN_ABOUT, what=what)
    if inputs.of == CELLS:
        return fill(CELLS_TITLE), fill(CELLS_ABOUT)
    rate = inputs.rate if inputs.mode == TRAIN else 0.0
    return fill(TRAINING_TITLE, cell=inputs.model), fill(TRAINING_ABOUT, optimizer=inputs.optimizer, rate=rate)


def _seeds(inputs: GradientInputs) -> list[str]:
    if inputs.of == PRESET:
        return []
    seeds = [(PARAMETERS, inputs.seed)]
    if inputs.of != CELLS or inputs.source != TYPED:
        seeds.append((DATA, inputs.data_seed))
    if inputs.of != CELLS and _drops(inputs) and inputs.rngs == GIVEN:
        seeds.append((DROPOUT, inputs.dropout_seed))
    return [fill(SEED, what=fill(what), seed=seed) for what, seed in seeds]


def _drops(inputs: GradientInputs) -> bool:
    return inputs.mode == TRAIN and inputs.rate > 0


def _negative(look: GradientLook) -> Part:
    if look.cells is not None:
        if bool(np.isfinite(look.cells.data).all()):
            return Part(fill(FUTURE), fill(FUTURE_CODE))
        return Part(fill(WHOLE), must_raise(fill(WHOLE_CODE), "TypeError"))
    if look.scan is not None:
        return _repaired(look) or Part(fill(NO_NUMBER), must_raise(fill(NO_NUMBER_CODE), "TypeError"))
    if _drops(look.inputs):
        return Part(fill(NO_KEY, type=_WITHOUT_KEY), must_raise(fill(NO_KEY_CODE), _WITHOUT_KEY))
    return Part(fill(IN_USE), fill(DIGITS) + "\n\n" + fill(IN_USE_CODE))


def _repaired(look: GradientLook) -> Part | None:
    """With the guarded step the gradient is finite; None where it is so already, or there is no such step."""
    if look.scan is None or not look.scan.gradient.wild:
        return None
    for title, edit in fixes_of(look.report, None):
        after = look_at(replace(look.inputs, **edit.values))  # type: ignore[arg-type]  # values of those very fields
        if after.scan is not None and not after.scan.gradient.wild:
            return repaired(title, "(by_init, by_xs)", _split(program_of(after, None))[1])
    return None
