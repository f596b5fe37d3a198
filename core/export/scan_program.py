"""The Scan page as a program: the preset's step as it stands, xs, init, the scan, and what it gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from core.base.outcome import Outcome
from core.base.text import fill
from core.contract.subject import ScanCall
from core.export.document import Document, Part, digits, fixes_of, import_lines, must_raise, repaired
from core.inputs.generate import PERIOD, generator_of
from core.inputs.literals import array_text, parameter_text, tree_text
from core.inputs.parse import numpy_dtype
from core.inputs.preset import takes_numbers
from core.inputs.scan_check import Checked, evaluate
from core.inputs.scan_fields import layout, scan_fields
from core.inputs.scan_inputs import ScanInputs, from_values
from core.steps.step import XKind

STEM: Final = "carry-lab-scan"
TITLE: Final = "A scan: {title}"
ABOUT: Final = "One step over a sequence of {length} steps, handing its carry along: {formula}"
IMPORTS_TEXT: Final = "What it needs."
STEP_TEXT: Final = "The step takes the carry and one x, and returns the new carry and one y."
XS_TEXT: Final = "xs: what the scan walks along, one x a step."
INIT_TEXT: Final = "init: the carry before the first step."
SCAN_TEXT: Final = "The scan. It returns the final carry, and the ys stacked along a new first axis."
SEED: Final = "xs {seed}"

LAMBDA: Final = "lambda carry, x: {name}(carry, x, {params})"
RUN: Final = "final, ys = {call}"
CALL: Final = "jax.lax.scan({arguments})"
PRINT: Final = 'print("final carry:", final)\nprint("ys:", ys)'
KEYS: Final = "xs = jax.random.split(jax.random.key({seed}), {length})"
GRID: Final = "t, j = np.arange({length})[:, None], np.arange({count})[None, :]"
FORMULAS: Final = {
    "ramp": "t + 1.0 + 10.0 * j",
    "ones": "np.ones(({length}, {count}))",
    "sine": "np.sin(2 * np.pi * t / {period} + j * np.pi / 4)",
    "impulse": "1.0 * (t == j)",
    "alternating": "1.0 - 2.0 * ((t + j) % 2)",
}
MADE: Final = "xs = ({formula}).reshape({shape})"
NOISE: Final = "xs = np.random.default_rng({seed}).standard_normal({shape})"
TURN: Final = "xs = xs.swapaxes(0, 1)  # examples first"
BOOLS: Final = "xs = jnp.asarray(xs > 0)"
WHOLE: Final = "xs = jnp.asarray(np.rint({values}), {dtype})"
FLOATS: Final = "xs = jnp.asarray(xs, {dtype})"
NUMBERS_LIST: Final = "xs = {array}.tolist()  # a Python list of numbers"
ROWS_LIST: Final = "xs = list({array})  # a Python list of rows"
ROWS_MADE: Final = "xs = list(np.asarray(xs))  # a Python list of rows"
NUMBERS_MADE: Final = "xs = np.asarray(xs).tolist()  # a Python list of numbers"

# --- negative tests
ITSELF: Final = "this program must raise {type}, as the page says."
WHOLE_INIT: Final = "an init of whole numbers must raise TypeError: the carry would come out as floats."
WIDER: Final = "a carry that gains an axis in the step must raise TypeError: its type has to stay."
WHOLE_CODE: Final = (
    "jax.lax.scan({body}, jax.tree.map(lambda leaf: jnp.asarray(leaf).astype(jnp.int32), init), xs{more})"
)
WIDER_CODE: Final = """\
def widened(carry, x):
    new, y = ({body})(carry, x)
    return jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), new), y


"""


@dataclass(frozen=True, slots=True, eq=False)
class _Program:
    """The lines of a call: of its step, xs, init and the scan; `body` is what is scanned, `more` the further arguments."""

    step: str
    xs: str
    init: str
    scan: str
    body: str
    more: str


def scan_document(checked: Checked) -> Document | None:
    """The program of an evaluation; None where it has no call, or one over a limit."""
    call, report = checked.built.call, checked.report
    if call is None or report is None or report.outcome is Outcome.LIMIT:
        return None
    inputs = from_values(checked.values)
    program = _program(inputs, call)
    raised = _raised(call)
    scan = Part(fill(SCAN_TEXT), program.scan + "\n" + fill(PRINT))
    parts: tuple[Part, ...] = ()
    if raised:
        negative = Part(fill(ITSELF, type=raised), must_raise(program.scan, raised))
    else:
        parts, negative = (scan,), _negative(checked, program, call)
    body = [
        Part(fill(STEP_TEXT), program.step),
        Part(fill(XS_TEXT), program.xs),
        Part(fill(INIT_TEXT), program.init),
        *parts,
    ]
    code = "\n".join(part.code for part in (*body, negative))
    return Document(
        fill(STEM),
        fill(TITLE, title=inputs.step.title),
        fill(ABOUT, length=_length(call), formula=inputs.step.formula),
        (Part(fill(IMPORTS_TEXT), import_lines(code, ("jax",))), *body),
        negative,
        seeds=(fill(SEED, seed=inputs.seed),) if _seeded(inputs) else (),
        codes=tuple(dict.fromkeys(v.code for v in report.broken)),
        raises=raised,
    )


def _length(call: ScanCall) -> Any:
    leaves = jax.tree.leaves(call.xs)
    sizes = [leaf.shape[0] for leaf in leaves if np.ndim(leaf)]
    return sizes[0] if sizes else len(leaves) or call.length


def _seeded(inputs: ScanInputs) -> bool:
    if inputs.step.x is XKind.KEY:
        return True
    return takes_numbers(inputs.step) and inputs.source == "generate" and generator_of(inputs.generator).seeded


def _raised(call: ScanCall) -> str:
    """The class of what `lax.scan` raises on this call; "" for nothing. Nothing is computed."""
    try:
        jax.eval_shape(
            lambda: lax.scan(
                call.unshared_body, call.init, call.xs, length=call.length, reverse=call.reverse, unroll=call.unroll
            )
        )
    except Exception as error:  # noqa: BLE001  # whatever JAX or the step raises
        return type(error).__name__
    return ""


# --- the lines ------------------------------------------------------------------------------------------------------


def _program(inputs: ScanInputs, call: ScanCall) -> _Program:
    name = call.step.__name__
    params = ", ".join(f"{key}={parameter_text(value, None)}" for key, value in call.params.items())
    body = fill(LAMBDA, name=name, params=params) if params else name
    more = "".join(
        f", {key}={value!r}"
        for key, value, usual in (
            ("length", call.length, None),
            ("reverse", call.reverse, False),
            ("unroll", call.unroll, 1),
        )
        if value is not usual and (value != usual or type(value) is not type(usual))
    )
    scan = fill(RUN, call=fill(CALL, arguments=f"{body}, init, xs{more}"))
    return _Program(
        inputs.step.code.strip("\n"), "\n".join(_xs(inputs, call)), f"init = {_init(call.init)}", scan, body, more
    )


def _init(init: Any) -> str:
    return tree_text(init, None)


def _xs(inputs: ScanInputs, call: ScanCall) -> Iterator[str]:
    if call.xs is None:
        yield "xs = None"
    elif inputs.step.x is XKind.KEY:
        yield fill(KEYS, seed=inputs.seed, length=inputs.length)
    elif inputs.source == "generate":
        yield from _made(inputs)
    elif isinstance(call.xs, list):
        array = np.asarray(call.xs) if not call.xs or not hasattr(call.xs[0], "shape") else np.stack(call.xs)
        kind = numpy_dtype(inputs.dtype)
        if array.ndim == 1:
            array = array.astype(np.int64 if kind.kind == "i" else kind)
            yield fill(NUMBERS_LIST, array=array_text(array, None, "np"))
        else:
            yield fill(ROWS_LIST, array=array_text(array, None, "np"))
    else:
        yield f"xs = {array_text(call.xs, None)}"


def _made(inputs: ScanInputs) -> Iterator[str]:
    """A sequence by its formula, as `core.inputs.generate` makes it."""
    columns = tuple(n for n in (inputs.batch, inputs.features) if n)
    count = int(np.prod(columns, dtype=np.int64))
    shape = (inputs.length, *columns)
    if inputs.generator == "noise":
        yield fill(NOISE, seed=inputs.seed, shape=shape)
    else:
        formula = fill(FORMULAS[inputs.generator], length=inputs.length, count=count, period=PERIOD)
        if inputs.generator != "ones":
            yield fill(GRID, length=inputs.length, count=count)
        yield fill(MADE, formula=formula, shape=shape)
    if layout(inputs.length, inputs.batch, inputs.features, inputs.axes) != shape or (
        inputs.axes == "batch" and inputs.batch
    ):
        yield fill(TURN)
    yield _cast(inputs)
    if inputs.as_list:
        yield fill(ROWS_MADE if columns else NUMBERS_MADE)


def _cast(inputs: ScanInputs) -> str:
    kind = numpy_dtype(inputs.dtype)
    if kind.kind == "b":
        return fill(BOOLS)
    dtype = f"jnp.{inputs.dtype}"
    if kind.kind == "i":
        return fill(WHOLE, values="3 * xs" if inputs.generator == "noise" else "xs", dtype=dtype)
    return fill(FLOATS, dtype=dtype)


# --- the negative test ----------------------------------------------------------------------------------------------


def _negative(checked: Checked, program: _Program, call: ScanCall) -> Part:
    """The fix changes the numbers, where the program is broken silently; else what must raise. Each is tried first."""
    for title, edit in fixes_of(checked.report, checked.fix_all):
        values = {**checked.values, **edit.values}
        after = evaluate(scan_fields(values).complete(values))
        if after.result is None or after.built.call is None or checked.result is None:
            continue
        if digits((checked.result.final, checked.result.ys)) != digits((after.result.final, after.result.ys)):
            other = _program(from_values(after.values), after.built.call)
            changed = [new for old, new in zip(_lines(program), _lines(other), strict=True) if new != old]
            if changed[-1:] != [other.scan]:
                changed.append(other.scan)
            return repaired(title, "(final, ys)", "\n".join(changed))
    whole = jax.tree.map(lambda leaf: jnp.asarray(leaf).astype(jnp.int32), call.init) if _numeric(call.init) else None
    if whole is not None and _raised(replace(call, init=whole)) == "TypeError":
        return Part(fill(WHOLE_INIT), must_raise(fill(WHOLE_CODE, body=program.body, more=program.more), "TypeError"))
    wider = fill(CALL, arguments=f"widened, init, xs{program.more}")
    return Part(fill(WIDER), fill(WIDER_CODE, body=program.body) + must_raise(wider, "TypeError"))


def _lines(program: _Program) -> tuple[str, ...]:
    return program.step, program.xs, program.init, program.scan


def _numeric(tree: Any) -> bool:
    return all(not jnp.issubdtype(jax.typeof(leaf).dtype, jax.dtypes.prng_key) for leaf in jax.tree.leaves(tree))
