"""Templates of generated "predict" challenges. No answer is made here: it is what the program gives."""

from __future__ import annotations

from typing import Final

from core.base.text import fill
from core.challenges.challenge import Ask, Level, What
from core.challenges.words import STORIES, Draw, Made, Make, array, filled, halves

TOTAL_TITLE, TOTAL_STORY = (
    "What the {thing} holds",
    "Each {moment} brings some {what}. What do `{thing}` and `kept` hold?",
)
TOTAL_HINTS = (
    "Go through it by hand, one {moment} after the other, from {start}.",
    "`{thing}` is the carry after the last step; `kept` holds the second thing that each step returns.",
)
TOTAL_REVERSED = "The scan begins at the last of the {what}, and still puts each output where its input stands."
TOTAL_WHY = (
    "The final carry is what the last step returned; the outputs are stacked, one for each input, in their order."
)
TOTAL = """
import jax
import jax.numpy as jnp


def step($thing, $what):
    new = $rule
    return new, $out


$what = $numbers
$thing, kept = jax.lax.scan(step, $start, $what$more)
"""

SHAPES_TITLE, SHAPES_STORY = "Shapes of a {thing}", "What shape do the final carry and the stacked outputs have?"
SHAPES_HINTS = (
    "The leading axis of what is scanned is time: one step sees one row.",
    "The carry keeps its shape. One output has the shape that the step returns, and there is one for each step.",
)
SHAPES_WHY = (
    "The scan takes the leading axis away from each input, and puts one of the same length in front of each output. "
    "The carry has the shape of its first value."
)
SHAPES = """
import jax
import jax.numpy as jnp


def step($thing, row):
    $thing = $rule
    return $thing, $out


rows = jnp.ones(($steps, $width))
$thing, outputs = jax.lax.scan(step, jnp.zeros($width), rows)
"""

TYPES_TITLE, TYPES_STORY = "Types of a {thing}", "What dtype do the final carry and the outputs have?"
TYPES_HINTS = (
    "A plain Python number has a weak type: it takes on the type of what it meets. An array's type is strong.",
    "What does the last line of the step make of the sum: the same type, a truth value, or another number?",
)
TYPES_WHY = (
    "A weak type gives way to a strong one; two equal strong ones stay. A comparison gives bool, and a division of "
    "whole numbers gives float32."
)
TYPES = """
import jax
import jax.numpy as jnp


def step($thing, $what):
    $thing = $thing + $what
    return $thing, $out


$what = jnp.array([1, 2, 3], jnp.$dtype)
$thing, outputs = jax.lax.scan(step, $start, $what)
"""

CELL_TITLE, CELL_STORY = "The carry of {cell}", "A cell of Flax reads a sequence, time first. Which shapes come out?"
CELL_HINTS = (
    "The carry of an LSTM is a pair `(c, h)`; GRU and simple cells carry one array, `h`.",
    "Each of these arrays has one row for each example, and one column for each hidden feature.",
    "The scan stacks the output of each step in front: time, batch, hidden features.",
)
CELL_WHY = "A carry is `(batch, hidden_features)`, whatever the width of the input; the outputs are `(time, batch, hidden_features)`."
CELL = """
import jax
import jax.numpy as jnp
from flax import nnx

cell = nnx.$cell($features, $hidden, rngs=nnx.Rngs(0))
xs = jnp.ones(($steps, $batch, $features))


def step(carry, x):
    carry, h = cell(carry, x)
    return carry, h


start = cell.initialize_carry(($batch, $features), rngs=nnx.Rngs(1))
carry, outputs = jax.lax.scan(step, start, xs)
"""

CLAMP_TITLE, CLAMP_STORY = (
    "Beyond the last {moment}",
    "Each entry is compared with one that comes later. What does JAX read where there is none?",
)
CLAMP_HINTS = (
    "JAX raises at no index, neither here nor under `jit`.",
    "A read outside takes the nearest entry that there is: the last one.",
)
CLAMP_WHY = "An index out of bounds is clamped when it is read, so the last entries are compared with the last one."
CLAMP = """
import jax
import jax.numpy as jnp

$what = $numbers


def step($moment, _):
    later = $what[$moment + $ahead] - $what[$moment]
    return $moment + 1, later


$moment, changes = jax.lax.scan(step, 0, length=$steps)
"""

PAIR_TITLE, PAIR_STORY = (
    "A {thing} and a counter",
    "The carry is a pair. What is in it at the end, and what was put out?",
)
PAIR_HINTS = (
    "Follow both parts of the carry through the first two steps.",
    "Inside the step, `{thing}` and `count` are what came in: what is put out is computed from these.",
)
PAIR_WHY = "A carry may be any pytree. Each leaf is handed on by its place, and keeps its shape and dtype."
PAIR = """
import jax
import jax.numpy as jnp


def step(carry, $what):
    $thing, count = carry
    return ($thing + $what, count + $by), $out


$what = $numbers
($thing, count), outputs = jax.lax.scan(step, ($start, jnp.int32($first)), $what)
"""

MASK_TITLE, MASK_STORY = (
    "A {thing} that is closed at times",
    "A mask says at which of the steps the {thing} takes something in. What do `{thing}` and `kept` hold?",
)
MASK_HINTS = (
    "One step takes one entry of both arrays: an amount, and whether it counts.",
    "Where the mask is False, the step hands on the carry as it came, and still puts out something.",
)
MASK_WHY = (
    "A mask does not skip a step: each one is run. Where it is False the carry is kept, and the output repeats it."
)
MASK = """
import jax
import jax.numpy as jnp


def step($thing, moment):
    $what, is_open = moment
    $thing = jnp.where(is_open, $thing + $what, $thing)
    return $thing, $thing


$what = $numbers
is_open = jnp.array($mask)
$thing, kept = jax.lax.scan(step, $start, ($what, is_open))
"""

SLOPE_TITLE, SLOPE_STORY = (
    "What is left of a {thing}",
    "Each {moment} the {thing} is multiplied by {factor}, and something comes in. `slope` is the gradient of what is in it at the "
    "end, by what came in: how strongly does each entry count?",
)
SLOPE_HINTS = (
    "The last entry is added as it is: when it grows by 1, so does the end.",
    "On its way to the end, an entry is multiplied by {factor} once at each later step. The entries themselves do not matter.",
)
SLOPE_WHY = (
    "A gradient through a scan is multiplied at each step by the slope of that step. Over many steps it vanishes where the "
    "slope is smaller than 1, and explodes where it is larger."
)
SLOPE = """
import jax
import jax.numpy as jnp


def end($what):
    $thing, _ = jax.lax.scan(lambda $thing, one: ($factor * $thing + one, None), $start, $what)
    return $thing


slope = jax.grad(end)($numbers)
"""


def _total(draw: Draw) -> Made:
    thing, what, moment = draw.choice(STORIES)
    backwards = draw.random() < 0.4
    start = float(draw.randint(0, 6))
    rule = draw.choice((f"{thing} + {what}", f"{thing} + {what}", f"{thing} - {what}", f"0.5 * {thing} + {what}"))
    count = 3 if rule.startswith("0.5") else draw.randint(3, 4)  # three digits behind the point, no more
    hints = tuple(fill(hint, thing=thing, what=what, moment=moment, start=start) for hint in TOTAL_HINTS)
    program = filled(
        TOTAL,
        thing=thing,
        what=what,
        rule=rule,
        out=draw.choice(("new", "new", thing)),
        numbers=array(halves(draw, count)),
        start=start,
        more=", reverse=True" if backwards else "",
    )
    return Made(
        title=fill(TOTAL_TITLE, thing=thing),
        story=fill(TOTAL_STORY, thing=thing, what=what, moment=moment),
        program=program,
        hints=(*hints, fill(TOTAL_REVERSED, what=what)) if backwards else hints,
        why=fill(TOTAL_WHY),
        level=Level.MEDIUM if backwards else Level.EASY,
        asks=(Ask(What.VALUE, thing), Ask(What.VALUE, "kept")),
        see="S114" if backwards else "S113",
    )


def _shapes(draw: Draw) -> Made:
    thing, _, _ = draw.choice(STORIES)
    steps, width = draw.sample(range(2, 9), 2)
    program = filled(
        SHAPES,
        thing=thing,
        rule=draw.choice((f"{thing} + row", f"jnp.maximum({thing}, row)", f"0.5 * ({thing} + row)")),
        out=draw.choice(("row.sum()", "row", "row > 0.0", "row[:1]", f"jnp.stack([row, {thing}])", f"{thing}.max()")),
        steps=steps,
        width=width,
    )
    return Made(
        title=fill(SHAPES_TITLE, thing=thing),
        story=fill(SHAPES_STORY),
        program=program,
        hints=tuple(map(fill, SHAPES_HINTS)),
        why=fill(SHAPES_WHY),
        level=Level.EASY,
        asks=(Ask(What.SHAPE, thing), Ask(What.SHAPE, "outputs")),
        see="S106",
    )


def _types(draw: Draw) -> Made:
    thing, what, _ = draw.choice(STORIES)
    dtype = draw.choice(("int32", "float32", "int8", "bfloat16", "float16"))
    program = filled(
        TYPES,
        thing=thing,
        what=what,
        dtype=dtype,
        start=draw.choice(("0", f"jnp.{dtype}(0)")),
        out=draw.choice((f"{thing} > 2", f"{thing} / 2", thing, f"{thing}.astype(jnp.int32)", f"{thing} == {what}")),
    )
    return Made(
        title=fill(TYPES_TITLE, thing=thing),
        story=fill(TYPES_STORY),
        program=program,
        hints=tuple(map(fill, TYPES_HINTS)),
        why=fill(TYPES_WHY),
        level=Level.MEDIUM,
        asks=(Ask(What.DTYPE, thing), Ask(What.DTYPE, "outputs")),
        see="S105",
        docs=("JAX: type promotion", "jax.lax.scan"),
    )


def _cell(draw: Draw) -> Made:
    cell = draw.choice(("LSTMCell", "GRUCell", "SimpleCell"))
    batch, steps, features, hidden = draw.sample(range(2, 8), 4)
    program = filled(CELL, cell=cell, batch=batch, steps=steps, features=features, hidden=hidden)
    return Made(
        title=fill(CELL_TITLE, cell=cell),
        story=fill(CELL_STORY),
        program=program,
        hints=tuple(map(fill, CELL_HINTS)),
        why=fill(CELL_WHY),
        level=Level.MEDIUM,
        asks=(Ask(What.SHAPE, "carry", "[0]" if cell == "LSTMCell" else ""), Ask(What.SHAPE, "outputs")),
        see="L304",
        docs=("Flax: recurrent layers",),
    )


def _clamp(draw: Draw) -> Made:
    _, what, moment = draw.choice(STORIES)
    steps, ahead = draw.randint(3, 4), draw.randint(1, 2)
    program = filled(CLAMP, what=what, moment=moment, numbers=array(halves(draw, steps)), steps=steps, ahead=ahead)
    return Made(
        title=fill(CLAMP_TITLE, moment=moment),
        story=fill(CLAMP_STORY),
        program=program,
        hints=tuple(map(fill, CLAMP_HINTS)),
        why=fill(CLAMP_WHY),
        level=Level.HARD,
        asks=(Ask(What.VALUE, "changes"),),
        see="P206",
        docs=("jax.numpy.ndarray.at",),
    )


def _pair(draw: Draw) -> Made:
    thing, what, _ = draw.choice(STORIES)
    by, first = draw.randint(1, 3), draw.randint(0, 5)
    program = filled(
        PAIR,
        thing=thing,
        what=what,
        by=by,
        first=first,
        start=float(draw.randint(0, 4)),
        numbers=array(halves(draw, 3)),
        out=draw.choice((thing, "count", f"{thing} + {what}", f"{thing} * count")),
    )
    return Made(
        title=fill(PAIR_TITLE, thing=thing),
        story=fill(PAIR_STORY),
        program=program,
        hints=tuple(fill(hint, thing=thing) for hint in PAIR_HINTS),
        why=fill(PAIR_WHY),
        level=Level.MEDIUM,
        asks=(Ask(What.VALUE, thing), Ask(What.VALUE, "count"), Ask(What.VALUE, "outputs")),
        see="S102",
        docs=("JAX: pytrees", "jax.lax.scan"),
    )


def _mask(draw: Draw) -> Made:
    thing, what, _ = draw.choice(STORIES)
    count = draw.randint(4, 5)
    shut = draw.sample(range(1, count), draw.randint(1, 2))
    program = filled(
        MASK,
        thing=thing,
        what=what,
        numbers=array(halves(draw, count)),
        mask=[step not in shut for step in range(count)],
        start=float(draw.randint(0, 4)),
    )
    return Made(
        title=fill(MASK_TITLE, thing=thing),
        story=fill(MASK_STORY, thing=thing),
        program=program,
        hints=tuple(map(fill, MASK_HINTS)),
        why=fill(MASK_WHY),
        level=Level.EASY,
        asks=(Ask(What.VALUE, thing), Ask(What.VALUE, "kept")),
        see="L311",
        docs=("jax.numpy.where", "jax.lax.scan"),
    )


def _slope(draw: Draw) -> Made:
    thing, what, moment = draw.choice(STORIES)
    factor = draw.choice((0.5, 2.0, 3.0, 10.0, 0.1))
    words = {"thing": thing, "what": what, "factor": factor, "start": float(draw.randint(0, 4))}
    return Made(
        title=fill(SLOPE_TITLE, thing=thing),
        story=fill(SLOPE_STORY, thing=thing, moment=moment, factor=factor),
        program=filled(SLOPE, numbers=array(halves(draw, draw.randint(3, 4))), **words),
        hints=tuple(fill(hint, factor=factor) for hint in SLOPE_HINTS),
        why=fill(SLOPE_WHY),
        level=Level.HARD,
        asks=(Ask(What.VALUE, "slope"),),
        see="gradients?rs=0.5",
    )


TEMPLATES: Final[tuple[Make, ...]] = (_total, _shapes, _types, _cell, _clamp, _pair, _mask, _slope)
