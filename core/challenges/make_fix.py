"""Templates of generated "fix it" challenges: a broken script, and the same script mended in one way."""

from __future__ import annotations

from typing import Final

from core.base.text import fill
from core.challenges.challenge import Level
from core.challenges.words import STORIES, Draw, Made, Make, array, filled, halves, other_halves

INT_TITLE, INT_STORY = (
    "A {thing} in whole numbers",
    "What comes in has halves, and JAX refuses. Mend the script: `kept` is to hold the {thing} after each {moment}, `{thing}` the last one.",
)
INT_HINTS = (
    "The carry must keep its dtype. Compare what it begins with, and what a step returns.",
    "Begin with the dtype that the step returns. Rounding the sum would throw the halves away.",
)
INT_WHY = "`init` sets the contract. int32 and float32 make float32, so the carry has to begin as a float."
PAIR_TITLE, PAIR_STORY = (
    "The step of a {thing}",
    "Each {moment} changes the {thing}. `kept` is to hold it after each of them, `{thing}` at the end. Mend the step.",
)
PAIR_HINTS = ("How many things must a step return?", "First the carry of the next step, then what is kept of this one.")
PAIR_WHY = "A step returns a pair, `(carry, y)`."
SUM = """
import jax
import jax.numpy as jnp

$what = $numbers


def step($thing, $what):
    $thing = $rule
    return $returned


$thing, kept = jax.lax.scan(step, $start, $what)
"""

ROW_TITLE, ROW_STORY = (
    "{count} in a row",
    "There are {count} of them, side by side, and each has its own {thing}; all begin with {start}. The carry does not know that yet. Mend the script: `{thing}` is to hold each one at the end, `sums` their sum after each step.",
)
ROW_HINTS = (
    "Compare the shape of the carry before the first step with the one that the step returns.",
    "A number and a row make a row. Let the carry begin as a row.",
)
ROW_WHY = "`init` sets the contract, and the first step broadcasts it to another shape. A carry keeps its shape."
ROW = """
import jax
import jax.numpy as jnp

$what = $numbers


def step($thing, $what):
    $thing = $rule
    return $thing, $thing.sum()


$thing, sums = jax.lax.scan(step, $start, $what)
"""

IF_TITLE, IF_STORY = (
    "A {thing} with a limit",
    "When the {thing} holds more than {most}, it is emptied down to {rest}. JAX cannot answer the question that the step asks. Mend it: `kept` is to hold the {thing} after each {moment}, `{thing}` the last one.",
)
IF_HINTS = (
    "While the step is traced, the carry has a shape and a dtype, and no value yet.",
    "Compute both cases, and choose: `jnp.where(condition, yes, no)`.",
)
IF_WHY = "The step is traced once for all values, so a choice that depends on one must be part of the program."
IF = """
import jax
import jax.numpy as jnp

$what = $numbers


def step($thing, $what):
    $thing = $thing + $what
$choice
    return $thing, $thing


$thing, kept = jax.lax.scan(step, 0.0, $what)
"""

KEY_TITLE, KEY_STORY = (
    "Two things about a {thing}",
    "The carry `state` holds the {thing} and a count of the steps, and the step loses one of them. Mend it, so that `state` holds both at the end, under the same names. (`kept` is in order: the {thing} after each {moment}.)",
)
KEY_HINTS = (
    "What goes in as the carry must come out with the same structure.",
    "There are two keys in `state`. Each {moment} makes the count one larger.",
)
KEY_WHY = "The carry's structure is part of the contract: every key goes in, and every key comes out."
KEY = """
import jax
import jax.numpy as jnp

$what = $numbers


def step(state, $what):
    $thing = $rule
    return $returned, $thing


state = {"$thing": $start, "count": 0}
state, kept = jax.lax.scan(step, state, $what)
"""

LOG_TITLE, LOG_STORY = (
    "The diary of a {thing}",
    "`diary` is to hold the {thing} after each {moment}, `{thing}` the last one. JAX is silent, and the diary has one entry, which is no number. Mend the script.",
)
LOG_HINTS = (
    "How often is the Python code of a step run?",
    "What is to be kept of each step is returned by it: the scan stacks it.",
)
LOG_WHY = "A step is traced once, and a side effect happens that once. What is returned is kept for every step."
LOG_BAD = """
import jax
import jax.numpy as jnp

$what = $numbers
diary = []


def step($thing, $what):
    $thing = $rule
    diary.append($thing)
    return $thing, None


$thing, _ = jax.lax.scan(step, $start, $what)
"""
LOG_GOOD = """
import jax
import jax.numpy as jnp

$what = $numbers


def step($thing, $what):
    $thing = $rule
    return $thing, $thing


$thing, diary = jax.lax.scan(step, $start, $what)
"""

LENGTH_TITLE, LENGTH_STORY = (
    "One {moment} too many",
    "JAX refuses to count so far. Mend the call: all entries of `{what}` are to be scanned, and no more; `kept` is to hold the {thing} after each of them, `{thing}` the last one.",
)
LENGTH_HINTS = (
    "How many entries are there to scan over, and what does `length` say?",
    "Where there is something to scan over, its leading axis says how many steps there are.",
)
LENGTH_WHY = "`length` is only needed where nothing is scanned over; where both are there, they must agree."
LENGTH = """
import jax
import jax.numpy as jnp

$what = $numbers


def step($thing, $what):
    $thing = $rule
    return $thing, $thing


$thing, kept = jax.lax.scan(step, $start, $what$more)
"""

CELL_TITLE, CELL_STORY = (
    "A memory for two",
    "An LSTM cell reads {steps} moments of two signals. JAX is silent: this runs. But the memory is to begin as a pair of zeros, `(c, h)`, and it does not. Mend it: `memory` is to be the pair at the end, `heard` what the cell heard last.",
)
CELL_HINTS = (
    "The cell takes its carry apart: `c, h = carry`. What does that do to one array of two rows?",
    "`cell.initialize_carry` makes the pair; so does writing it.",
)
CELL_WHY = (
    "With two signals one array unpacks along the batch without an error: the first row becomes `c`, the second `h`."
)
CELL = """
import jax.numpy as jnp
from flax import nnx

cell = nnx.LSTMCell(3, $hidden, rngs=nnx.Rngs($seed))
signal = $level * jnp.ones(($steps, 2, 3))

memory = $memory
for moment in signal:
    memory, heard = cell(memory, moment)
"""


def _rule(draw: Draw, thing: str, what: str) -> str:
    return draw.choice((f"{thing} + {what}", f"0.5 * {thing} + {what}", f"{thing} - {what}", f"{thing} + 2.0 * {what}"))


def _swap(draw: Draw, what: str, numbers: list[float]) -> str:
    return f"{what} = {array(other_halves(draw, numbers))}"


def _whole(draw: Draw) -> Made:
    thing, what, moment = draw.choice(STORIES)
    numbers, first = [*halves(draw, draw.randint(2, 4)), 0.5], draw.randint(0, 5)
    words = {"thing": thing, "what": what, "numbers": array(numbers), "rule": _rule(draw, thing, what)}
    words["returned"] = f"{thing}, {thing}"
    return Made(
        title=fill(INT_TITLE, thing=thing),
        story=fill(INT_STORY, thing=thing, moment=moment),
        program=filled(SUM, start=f"jnp.int32({first})", **words),
        other=filled(SUM, start=f"jnp.float32({first})", **words),
        results=(thing, "kept"),
        swap=_swap(draw, what, numbers),
        hints=tuple(map(fill, INT_HINTS)),
        why=fill(INT_WHY),
        level=Level.EASY,
        docs=("JAX: type promotion", "jax.lax.scan"),
    )


def _no_pair(draw: Draw) -> Made:
    thing, what, moment = draw.choice(STORIES)
    numbers = halves(draw, draw.randint(3, 5))
    words = {"thing": thing, "what": what, "numbers": array(numbers), "rule": _rule(draw, thing, what)}
    words["start"] = str(float(draw.randint(0, 5)))
    return Made(
        title=fill(PAIR_TITLE, thing=thing),
        story=fill(PAIR_STORY, thing=thing, moment=moment),
        program=filled(SUM, returned=thing, **words),
        other=filled(SUM, returned=f"{thing}, {thing}", **words),
        results=(thing, "kept"),
        swap=_swap(draw, what, numbers),
        hints=tuple(map(fill, PAIR_HINTS)),
        why=fill(PAIR_WHY),
        level=Level.EASY,
    )


def _row(draw: Draw) -> Made:
    thing, what, _ = draw.choice(STORIES)
    count, steps, start = draw.randint(2, 4), draw.choice((5, 6)), float(draw.randint(0, 3))
    rows, others = ([halves(draw, count) for _ in range(steps)] for _ in range(2))
    rule = draw.choice((f"jnp.maximum({thing}, {what})", f"{thing} + {what}", f"0.5 * ({thing} + {what})"))
    words = {"thing": thing, "what": what, "numbers": f"jnp.array({rows})", "rule": rule}
    return Made(
        title=fill(ROW_TITLE, count=count),
        story=fill(ROW_STORY, count=count, thing=thing, start=start),
        program=filled(ROW, start=start, **words),
        other=filled(ROW, start=f"jnp.full({count}, {start})", **words),
        results=(thing, "sums"),
        swap=f"{what} = jnp.array({others})",
        hints=tuple(map(fill, ROW_HINTS)),
        why=fill(ROW_WHY),
        level=Level.MEDIUM,
        docs=("jax.lax.scan", "NumPy: broadcasting"),
    )


def _limit(draw: Draw) -> Made:
    thing, what, moment = draw.choice(STORIES)
    numbers, most = halves(draw, draw.randint(4, 5), low=2), draw.randint(5, 8)  # 9 and more come in
    rest = float(draw.randint(0, 3))
    words = {"thing": thing, "what": what, "numbers": array(numbers)}
    bad = f"    if {thing} > {most}.0:\n        {thing} = {rest}"
    good = f"    {thing} = jnp.where({thing} > {most}.0, {rest}, {thing})"
    return Made(
        title=fill(IF_TITLE, thing=thing),
        story=fill(IF_STORY, thing=thing, most=most, rest=rest, moment=moment),
        program=filled(IF, choice=bad, **words),
        other=filled(IF, choice=good, **words),
        results=(thing, "kept"),
        swap=_swap(draw, what, numbers),
        hints=tuple(map(fill, IF_HINTS)),
        why=fill(IF_WHY),
        level=Level.EASY,
        docs=("JAX: control flow", "jax.numpy.where"),
    )


def _lost_key(draw: Draw) -> Made:
    thing, what, moment = draw.choice(STORIES)
    numbers = halves(draw, draw.randint(3, 5))
    rule = draw.choice(('state["{0}"] + {1}', '0.5 * state["{0}"] + {1}')).format(thing, what)
    words = {"thing": thing, "what": what, "numbers": array(numbers), "rule": rule}
    words["start"] = str(float(draw.randint(0, 5)))
    both = f'{{"{thing}": {thing}, "count": state["count"] + 1}}'
    return Made(
        title=fill(KEY_TITLE, thing=thing),
        story=fill(KEY_STORY, thing=thing, moment=moment),
        program=filled(KEY, returned=f'{{"{thing}": {thing}}}', **words),
        other=filled(KEY, returned=both, **words),
        results=("state", "kept"),
        swap=_swap(draw, what, numbers),
        hints=tuple(fill(hint, moment=moment) for hint in KEY_HINTS),
        why=fill(KEY_WHY),
        level=Level.MEDIUM,
        docs=("JAX: pytrees", "jax.lax.scan"),
    )


def _diary(draw: Draw) -> Made:
    thing, what, moment = draw.choice(STORIES)
    numbers = halves(draw, draw.randint(3, 5))
    words = {"thing": thing, "what": what, "numbers": array(numbers), "rule": _rule(draw, thing, what)}
    words["start"] = str(float(draw.randint(0, 5)))
    return Made(
        title=fill(LOG_TITLE, thing=thing),
        story=fill(LOG_STORY, thing=thing, moment=moment),
        program=filled(LOG_BAD, **words),
        other=filled(LOG_GOOD, **words),
        results=(thing, "diary"),
        swap=_swap(draw, what, numbers),
        hints=tuple(map(fill, LOG_HINTS)),
        why=fill(LOG_WHY),
        level=Level.MEDIUM,
        docs=("JAX: pure functions and state", "jax.lax.scan"),
    )


def _too_long(draw: Draw) -> Made:
    thing, what, moment = draw.choice(STORIES)
    numbers = halves(draw, draw.randint(3, 5))
    words = {"thing": thing, "what": what, "numbers": array(numbers), "rule": _rule(draw, thing, what)}
    words["start"] = str(float(draw.randint(0, 5)))
    wrong = len(numbers) + draw.randint(1, 2)
    return Made(
        title=fill(LENGTH_TITLE, moment=moment),
        story=fill(LENGTH_STORY, thing=thing, what=what),
        program=filled(LENGTH, more=f", length={wrong}", **words),
        other=filled(LENGTH, more="", **words),
        results=(thing, "kept"),
        swap=_swap(draw, what, numbers),
        hints=tuple(map(fill, LENGTH_HINTS)),
        why=fill(LENGTH_WHY),
        level=Level.EASY,
    )


def _one_array(draw: Draw) -> Made:
    hidden, steps = 4, draw.randint(3, 5)  # a cell as in the examples, which workers need not compile anew
    words = {"hidden": hidden, "steps": steps, "seed": draw.randint(0, 9), "level": draw.randint(1, 6) / 4}
    swap = f"signal = {draw.randint(7, 9) / 4} * jnp.ones(({steps}, 2, 3))"
    return Made(
        title=fill(CELL_TITLE),
        story=fill(CELL_STORY, steps=steps),
        program=filled(CELL, memory=f"jnp.zeros((2, {hidden}))", **words),
        other=filled(CELL, memory="cell.initialize_carry((2, 3), rngs=nnx.Rngs(0))", **words),
        results=("memory", "heard"),
        swap=swap,
        hints=tuple(map(fill, CELL_HINTS)),
        why=fill(CELL_WHY),
        level=Level.MEDIUM,
        docs=("Flax: recurrent layers",),
    )


TEMPLATES: Final[tuple[Make, ...]] = (_whole, _no_pair, _row, _limit, _lost_key, _diary, _too_long, _one_array)
