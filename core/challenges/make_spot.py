"""Templates of generated "spot it" challenges: two programs, one of them silently wrong."""

from __future__ import annotations

from typing import Final

from core.base.text import fill
from core.challenges.challenge import Level
from core.challenges.words import STORIES, Draw, Made, Make, among, array, filled, halves

#: Codes that could be meant by one who means another: they are never offered together.
ALIKE: Final = (frozenset({"R401", "R402"}), frozenset({"P204", "R405"}), frozenset({"P207", "R405"}))
#: By code, where the documentation speaks of it.
DOCS: Final = {
    "L302": ("Flax: recurrent layers",),
    "P204": ("JAX: pure functions and state", "jax.lax.scan"),
    "P206": ("jax.numpy.ndarray.at",),
    "P207": ("jax.jit", "JAX: just-in-time compilation"),
    "R401": ("JAX: random numbers", "jax.random.split"),
    "R402": ("JAX: random numbers", "jax.random.split"),
    "R405": ("JAX: random numbers", "JAX: pure functions and state"),
    "S120": ("jax.lax.associative_scan",),
}
#: Codes of what JAX is silent about, to choose from.
SILENT: Final = ("L302", "L309", "L311", "N504", "P204", "P206", "P207", "R401", "R402", "R405", "S114", "S120")
STORY = "{meant} Both programs run, and JAX is silent. In one of them it goes wrong."

BOOK_TITLE = "What is written down of the {thing}"
BOOK_MEANT = "`kept` is to hold the {thing} after each {moment}."
BOOK_HINTS = (
    "How often is the Python code of a step run: once for each {moment}, or once?",
    "Ask each `kept` how many entries it has.",
)
BOOK_WHY = (
    "A step is traced once, and what it does besides returning happens that once. What is to be kept is returned."
)
BOOK = """
import jax
import jax.numpy as jnp

$what = $numbers
$before

def step($thing, $what):
    $thing = $thing + $what
$inside    return $thing, $out


$thing, $outputs = jax.lax.scan(step, $start, $what)
"""

KEY_TITLE = "Chance, {moment} by {moment}"
KEY_MEANT = "Each {moment} something comes in at random, independently of the others."
KEY_HINTS = (
    "A key is a value: the same key gives the same numbers.",
    "In which program does each {moment} have a key of its own?",
)
KEY_WHY = "One key for all steps draws the same number at each of them. Split it, and scan over the parts."
KEY_BAD = """
import jax
import jax.numpy as jnp

key = jax.random.key($seed)


def step($thing, _):
    $what = jax.random.$draw
    return $thing + $what, $what


$thing, kept = jax.lax.scan(step, $start, length=$steps)
"""
KEY_GOOD = """
import jax
import jax.numpy as jnp

keys = jax.random.split(jax.random.key($seed), $steps)


def step($thing, key):
    $what = jax.random.$draw
    return $thing + $what, $what


$thing, kept = jax.lax.scan(step, $start, keys)
"""

TWICE_TITLE = "Two at random"
TWICE_MEANT = "`left` and `right` are to be drawn at random, independently of each other."
TWICE_HINTS = (
    "Is there anything between the two draws that makes them different?",
    "Look at how often each key is asked for numbers.",
)
TWICE_WHY = "A key that was used is used up: asked again it gives the same numbers. Split it first."
TWICE = """
import jax

$keys
left, right = jax.random.$draw, jax.random.$again
apart = left - right
"""

NUMPY_TITLE = "Luck of a {thing}"
NUMPY_MEANT = "Each {moment} something comes in at random, independently of the others."
NUMPY_HINTS = (
    "When is NumPy asked: at each step, or when the step is traced?",
    "What NumPy returns inside the step is a plain number, a constant of the program.",
)
NUMPY_WHY = "The step is traced once, and NumPy draws once: that number comes at every step. Draw before the scan."
NUMPY_BAD = """
import jax
import jax.numpy as jnp
import numpy as np


def step($thing, _):
    $what = np.random.$draw
    return $thing + $what, $what


$thing, kept = jax.lax.scan(step, $start, length=$steps)
"""
NUMPY_GOOD = """
import jax
import jax.numpy as jnp
import numpy as np

$what = jnp.array([np.random.$draw for _ in range($steps)])


def step($thing, $what):
    return $thing + $what, $what


$thing, kept = jax.lax.scan(step, $start, $what)
"""

NEXT_TITLE = "From one {moment} to the next"
NEXT_MEANT = "`changes` is to hold by how much it changes from one {moment} to the next."
NEXT_HINTS = (
    "How many differences are there between {count} numbers?",
    "JAX raises at no index: a read outside takes the nearest entry.",
)
NEXT_WHY = (
    "The last step reads an entry that is not there, and JAX reads the last one instead: a difference of zero too many."
)
NEXT = """
import jax
import jax.numpy as jnp

$what = $numbers


def step($moment, _):
    return $moment + 1, $what[$moment + 1] - $what[$moment]


$moment, changes = jax.lax.scan(step, 0, length=$steps)
"""

SWAP_TITLE = "Handed on by an LSTM"
SWAP_MEANT = "An LSTM cell reads a sequence, time first."
SWAP_HINTS = (
    "The programs differ in one line. What does a step hand on?",
    "The cell takes its carry apart by order: `c` first.",
)
SWAP_WHY = "`c` and `h` have one shape and one dtype, so nothing complains when they change places. The numbers do."
SWAP = """
import jax
import jax.numpy as jnp
from flax import nnx

cell = nnx.LSTMCell(3, $hidden, rngs=nnx.Rngs($seed))
xs = jnp.linspace(-1.0, $top, $count).reshape($steps, $batch, 3)


def step(carry, x):
    (c, h), y = cell(carry, x)
    return ($first, $second), y


start = cell.initialize_carry(($batch, 3), rngs=nnx.Rngs(1))
carry, ys = jax.lax.scan(step, start, xs)
"""

GLOBAL_TITLE = "A factor that changes"
GLOBAL_MEANT = "`before` is to be the sum with the first factor, `after` the one with the second."
GLOBAL_HINTS = (
    "The second call has arguments of the same types. Is the function traced again?",
    "A trace keeps the value that a global had.",
)
GLOBAL_WHY = (
    "A jitted function is traced once for each type of its arguments; a global is a constant of that trace. Pass it."
)
GLOBAL_BAD = """
import jax
import jax.numpy as jnp

factor = $first


@jax.jit
def total($what):
    return jax.lax.scan(lambda sum, n: (sum + factor * n, None), 0.0, $what)[0]


$what = $numbers
before = total($what)
factor = $second
after = total($what)
"""
GLOBAL_GOOD = """
import jax
import jax.numpy as jnp


@jax.jit
def total($what, factor):
    return jax.lax.scan(lambda sum, n: (sum + factor * n, None), 0.0, $what)[0]


$what = $numbers
before = total($what, $first)
after = total($what, $second)
"""

GROUP_TITLE = "Combined in any order"
GROUP_MEANT = "Numbers are combined with `associative_scan`, which may group them as it likes."
GROUP_HINTS = (
    "`associative_scan` may group as it likes. Try three numbers: first the first two, or first the last two.",
    "Which of the two operations gives the same both times?",
)
GROUP_WHY = "`associative_scan` may regroup, so the operation must be associative. `lax.scan` keeps the order."
GROUP = """
import jax
import jax.numpy as jnp

$what = $numbers
kept = jax.lax.associative_scan(lambda a, b: $rule, $what)
"""


def _made(
    draw: Draw,
    code: str,
    texts: tuple[str, str],
    programs: tuple[str, str],
    hints: tuple[str, ...],
    why: str,
    level: Level,
) -> Made:
    title, meant = texts
    bad, good = programs
    return Made(
        title=title,
        story=fill(STORY, meant=meant),
        program=bad,
        other=good,
        hints=hints,
        why=fill(why),
        level=level,
        docs=DOCS[code],
        options=among(draw, code, tuple(one for one in SILENT if {one, code} not in ALIKE)),
    )


def _book(draw: Draw) -> Made:
    thing, what, moment = draw.choice(STORIES)
    words = {"thing": thing, "what": what, "start": float(draw.randint(0, 5))}
    words["numbers"] = array(halves(draw, draw.randint(3, 5)))
    append = f"    kept.append({thing})\n"
    bad = filled(BOOK, before="kept = []\n", inside=append, out="None", outputs="_", **words)
    good = filled(BOOK, before="", inside="", out=thing, outputs="kept", **words)
    hints = tuple(fill(hint, moment=moment) for hint in BOOK_HINTS)
    texts = (fill(BOOK_TITLE, thing=thing), fill(BOOK_MEANT, thing=thing, moment=moment))
    return _made(draw, "P204", texts, (bad, good), hints, BOOK_WHY, Level.EASY)


def _key(draw: Draw) -> Made:
    thing, what, moment = draw.choice(STORIES)
    words = {"thing": thing, "what": what, "seed": draw.randint(0, 99), "steps": draw.randint(4, 8)}
    words |= {"start": "0.0", "draw": draw.choice(("normal(key)", "uniform(key)", "exponential(key)"))}
    hints = tuple(fill(hint, moment=moment) for hint in KEY_HINTS)
    bad, good = filled(KEY_BAD, **words), filled(KEY_GOOD, **words)
    texts = (fill(KEY_TITLE, moment=moment), fill(KEY_MEANT, moment=moment))
    return _made(draw, "R401", texts, (bad, good), hints, KEY_WHY, Level.EASY)


def _twice(draw: Draw) -> Made:
    kind, count, seed = draw.choice(("normal", "uniform")), draw.randint(3, 9), draw.randint(0, 99)
    first, second = f"{kind}(key, ({count},))", f"{kind}(other, ({count},))"
    bad = filled(TWICE, keys=f"key = jax.random.key({seed})", draw=first, again=first)
    good = filled(TWICE, keys=f"key, other = jax.random.split(jax.random.key({seed}))", draw=first, again=second)
    texts = (fill(TWICE_TITLE), fill(TWICE_MEANT))
    return _made(draw, "R402", texts, (bad, good), tuple(map(fill, TWICE_HINTS)), TWICE_WHY, Level.EASY)


def _numpy(draw: Draw) -> Made:
    thing, what, moment = draw.choice(STORIES)
    words = {"thing": thing, "what": what, "start": "0.0", "steps": draw.randint(4, 8)}
    words["draw"] = draw.choice(("uniform(0.0, 1.0)", "normal()", "exponential()"))
    bad, good = filled(NUMPY_BAD, **words), filled(NUMPY_GOOD, **words)
    hints = tuple(map(fill, NUMPY_HINTS))
    texts = (fill(NUMPY_TITLE, thing=thing), fill(NUMPY_MEANT, moment=moment))
    return _made(draw, "R405", texts, (bad, good), hints, NUMPY_WHY, Level.MEDIUM)


def _next(draw: Draw) -> Made:
    _, what, moment = draw.choice(STORIES)
    numbers = halves(draw, draw.randint(3, 6))
    words = {"what": what, "moment": moment, "numbers": array(numbers)}
    bad = filled(NEXT, steps=len(numbers), **words)
    good = filled(NEXT, steps=len(numbers) - 1, **words)
    hints = tuple(fill(hint, count=len(numbers)) for hint in NEXT_HINTS)
    texts = (fill(NEXT_TITLE, moment=moment), fill(NEXT_MEANT, moment=moment))
    return _made(draw, "P206", texts, (bad, good), hints, NEXT_WHY, Level.MEDIUM)


def _swapped(draw: Draw) -> Made:
    steps, batch = draw.randint(3, 6), draw.randint(2, 3)
    words = {"hidden": 4, "seed": draw.randint(0, 9), "steps": steps, "batch": batch}
    words |= {"count": steps * batch * 3}
    top = float(draw.randint(1, 3))
    bad = filled(SWAP, first="h", second="c", top=top, **words)
    good = filled(SWAP, first="c", second="h", top=top, **words)
    texts = (fill(SWAP_TITLE), fill(SWAP_MEANT))
    return _made(draw, "L302", texts, (bad, good), tuple(map(fill, SWAP_HINTS)), SWAP_WHY, Level.MEDIUM)


def _global(draw: Draw) -> Made:
    _, what, _ = draw.choice(STORIES)
    first, second = halves(draw, 2)
    words = {"what": what, "first": first, "second": second, "numbers": array(halves(draw, 3))}
    bad, good = filled(GLOBAL_BAD, **words), filled(GLOBAL_GOOD, **words)
    texts = (fill(GLOBAL_TITLE), fill(GLOBAL_MEANT))
    return _made(draw, "P207", texts, (bad, good), tuple(map(fill, GLOBAL_HINTS)), GLOBAL_WHY, Level.HARD)


def _group(draw: Draw) -> Made:
    _, what, _ = draw.choice(STORIES)
    words = {"what": what, "numbers": array(halves(draw, 4))}
    bad = filled(GROUP, rule=draw.choice(("a - b", "0.5 * (a + b)", "a - 2.0 * b")), **words)
    good = filled(GROUP, rule=draw.choice(("a + b", "jnp.maximum(a, b)", "jnp.minimum(a, b)", "a * b")), **words)
    texts = (fill(GROUP_TITLE), fill(GROUP_MEANT))
    return _made(draw, "S120", texts, (bad, good), tuple(map(fill, GROUP_HINTS)), GROUP_WHY, Level.HARD)


TEMPLATES: Final[tuple[Make, ...]] = (_book, _key, _twice, _numpy, _next, _swapped, _global, _group)
