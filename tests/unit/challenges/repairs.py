"""Repairs of the "fix it" challenges as people may write them, and ways round the task: edits of the broken script.

An edit is a pair of texts, what is there and what is put in its place; a repair or cheat is one or more of them, or, where
there is more to it, a whole script.
"""

from __future__ import annotations

type Edits = tuple[tuple[str, str], ...]

#: By number: repairs that are as right as the one that the page shows.
HONEST: dict[int, dict[str, Edits | str]] = {
    4: {
        "float init": (("jnp.int32(0)", "0.0"),),
        "array init": (("jnp.int32(0)", "jnp.zeros(())"),),
        "weak init": (("jnp.int32(0)", "0"),),
        "dtype named": (("jnp.int32(0)", "jnp.zeros((), rises.dtype)"),),
        "cast before": (("jnp.int32(0)", "jnp.int32(0).astype(float)"),),
        "init renamed": (("height, track = ", "start = jnp.float32(0)\nheight, track = "), ("jnp.int32(0)", "start")),
        "under jit": (
            ("height, track = jax.lax.scan", "run = jax.jit(lambda: jax.lax.scan"),
            ("jnp.int32(0), rises)", "0.0, rises))\nheight, track = run()"),
        ),
        "fori_loop": """import jax
import jax.numpy as jnp

rises = jnp.array([0.5, 0.25, 0.5, 0.25])


def climb(t, state):
    height, track = state
    height = height + rises[t]
    return height, track.at[t].set(height)


height, track = jax.lax.fori_loop(0, len(rises), climb, (jnp.float32(0), jnp.zeros(len(rises))))
""",
    },
    5: {
        "names a y": (("    return speed\n", "    y = speed\n    return speed, y\n"),),
        "tuple": (("    return speed\n", "    return (speed, speed)\n"),),
        "lambda": (("jax.lax.scan(push,", "jax.lax.scan(lambda s, b: (push(s, b), push(s, b)),"),),
        "list of two steps": (("    return speed\n", "    new = speed\n    return new, 1.0 * new\n"),),
    },
    6: {
        "where of the gain": (
            (
                "    if room < 20.0:\n        room = room + 2.0\n",
                "    room = room + jnp.where(room < 20.0, 2.0, 0.0)\n",
            ),
        ),
        "arithmetic": (
            ("    if room < 20.0:\n        room = room + 2.0\n", "    room = room + 2.0 * (room < 20.0)\n"),
        ),
        "cond": (
            (
                "    if room < 20.0:\n        room = room + 2.0\n",
                "    room = jax.lax.cond(room < 20.0, lambda r: r + 2.0, lambda r: r, room)\n",
            ),
        ),
        "select": (
            (
                "    if room < 20.0:\n        room = room + 2.0\n",
                "    room = jax.lax.select(room < 20.0, room + 2.0, room)\n",
            ),
        ),
        "the other way round": (
            (
                "    if room < 20.0:\n        room = room + 2.0\n",
                "    room = jnp.where(room >= 20.0, room, room + 2.0)\n",
            ),
        ),
        "switch": (
            (
                "    if room < 20.0:\n        room = room + 2.0\n",
                "    room = jax.lax.switch((room < 20.0).astype(int), [lambda r: r, lambda r: r + 2.0], room)\n",
            ),
        ),
    },
    14: {
        "full": (("read, 0.0,", "read, jnp.full(2, 0.0),"),),
        "zeros of the row": (("read, 0.0,", "read, jnp.zeros(levels.shape[1]),"),),
        "zeros_like": (("read, 0.0,", "read, jnp.zeros_like(levels[0]),"),),
        "array": (("read, 0.0,", "read, jnp.array([0.0, 0.0]),"),),
        "broadcast": (("read, 0.0,", "read, jnp.broadcast_to(0.0, (2,)),"),),
    },
    15: {
        "copy and change": (
            (
                '    return {"passengers": passengers}, ',
                '    return {**state, "passengers": passengers, "stops": state["stops"] + 1}, ',
            ),
        ),
        "dict of names": (
            (
                '    return {"passengers": passengers}, ',
                '    stops = state["stops"] + 1\n    return dict(passengers=passengers, stops=stops), ',
            ),
        ),
        "the other order": (
            (
                '    return {"passengers": passengers}, ',
                '    return {"stops": state["stops"] + 1, "passengers": passengers}, ',
            ),
        ),
        "union": (
            (
                '    return {"passengers": passengers}, ',
                '    return state | {"passengers": passengers, "stops": state["stops"] + 1}, ',
            ),
        ),
        "strong count": (
            (
                '    return {"passengers": passengers}, ',
                '    return {"passengers": passengers, "stops": state["stops"] + 1}, ',
            ),
            ('"stops": 0}', '"stops": jnp.int32(0)}'),
        ),
    },
    16: {
        "pair of zeros": (("memory = jnp.zeros((2, 4))", "memory = (jnp.zeros((2, 4)), jnp.zeros((2, 4)))"),),
        "named": (("memory = jnp.zeros((2, 4))", "c = h = jnp.zeros((2, 4))\nmemory = c, h"),),
        "of the data": (
            ("memory = jnp.zeros((2, 4))", "memory = cell.initialize_carry(sound[0].shape, rngs=nnx.Rngs(7))"),
        ),
        "list not stacked": (
            ("memory = jnp.zeros((2, 4))", "memory = (jnp.zeros((2, 4)), jnp.zeros((2, 4)))"),
            ("outputs = jnp.stack(outputs)\n", ""),
        ),
        "as a scan": """import jax
import jax.numpy as jnp
from flax import nnx

cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
sound = 0.5 * jnp.ones((4, 2, 3))

memory, outputs = jax.lax.scan(lambda memory, moment: cell(memory, moment), (jnp.zeros((2, 4)), jnp.zeros((2, 4))), sound)
""",
        "as a layer": """import jax.numpy as jnp
from flax import nnx

cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
sound = 0.5 * jnp.ones((4, 2, 3))

memory, outputs = nnx.RNN(cell, time_major=True, return_carry=True)(sound)
""",
    },
    19: {
        "transpose": (("drift, state, readings)", "drift, state, readings.transpose(1, 0, 2))"),),
        "moveaxis": (("drift, state, readings)", "drift, state, jnp.moveaxis(readings, 1, 0))"),),
        "method": (("drift, state, readings)", "drift, state, readings.swapaxes(0, 1))"),),
        "where they are made": (
            ("reshape(boats, moments, numbers)", "reshape(boats, moments, numbers).swapaxes(0, 1)"),
        ),
        "bound anew": (("state = jnp.zeros(", "readings = jnp.swapaxes(readings, 0, 1)\nstate = jnp.zeros("),),
        "another name": (
            ("state = jnp.zeros(", "by_time = jnp.swapaxes(readings, 0, 1)\nstate = jnp.zeros("),
            ("state, readings)", "state, by_time)"),
        ),
        "vmap of a boat": (
            (
                "jax.lax.scan(drift, state, readings)",
                "jax.vmap(lambda s, r: jax.lax.scan(drift, s, r), out_axes=(0, 1))(state, readings)",
            ),
        ),
    },
    23: {
        "lengths by name": (("reader(words)", "reader(words, seq_lengths=lengths)"),),
        "lengths of a mask": (("reader(words)", "reader(words, seq_lengths=jnp.array(lengths, jnp.int32))"),),
        "asked in the call": (
            (", return_carry=True)", ")"),
            ("reader(words)", "reader(words, seq_lengths=lengths, return_carry=True)"),
        ),
        "outputs at the last word": (
            (
                "memory, outputs = reader(words)",
                "_, outputs = reader(words, seq_lengths=lengths)\nmemory = outputs[jnp.arange(2), lengths - 1]",
            ),
        ),
        "masked by hand": """import jax
import jax.numpy as jnp
from flax import nnx

cell = nnx.SimpleCell(1, 3, rngs=nnx.Rngs(4))
words = jnp.linspace(0.1, 0.8, 8).reshape(2, 4, 1)
lengths = jnp.array([2, 4])


def read(memory, moment):
    word, here = moment
    new, _ = cell(memory, word)
    return jnp.where(here[:, None], new, memory), None


present = jnp.arange(4)[:, None] < lengths
start = cell.initialize_carry((2, 1), rngs=nnx.Rngs(0))
memory, _ = jax.lax.scan(read, start, (jnp.swapaxes(words, 0, 1), present))
""",
    },
    24: {
        "safe before the root": (("jnp.sqrt(speed)", "jnp.sqrt(jnp.where(speed > 0.0, speed, 1.0))"),),
        "maximum": (("jnp.sqrt(speed)", "jnp.sqrt(jnp.maximum(speed, 1e-12))"),),
        "cond": (
            (
                "jnp.where(speed > 0.0, jnp.sqrt(speed), 0.0)",
                "jax.lax.cond(speed > 0.0, jnp.sqrt, lambda s: 0.0 * s, speed)",
            ),
        ),
        "its own slope": """import jax
import jax.numpy as jnp

speeds = jnp.array([4.0, 0.0, 1.0])


@jax.custom_jvp
def root(speed):
    return jnp.sqrt(speed)


@root.defjvp
def _(primals, tangents):
    (speed,), (moved,) = primals, tangents
    return root(speed), jnp.where(speed > 0.0, 0.5 / jnp.sqrt(jnp.where(speed > 0.0, speed, 1.0)), 0.0) * moved


def energy(speeds):
    total, _ = jax.lax.scan(lambda total, speed: (total + root(speed), None), 0.0, speeds)
    return total


slope = jax.grad(energy)(speeds)
""",
    },
    30: {
        "returned at once": (
            ("    tally.at[vote].add(1)\n    return tally, vote", "    return tally.at[vote].add(1), vote"),
        ),
        "set": (("    tally.at[vote].add(1)\n", "    tally = tally.at[vote].set(tally[vote] + 1)\n"),),
        "one hot": (("    tally.at[vote].add(1)\n", "    tally = tally + jax.nn.one_hot(vote, 3, dtype=int)\n"),),
        "compared": (("    tally.at[vote].add(1)\n", "    tally = tally + (jnp.arange(3) == vote)\n"),),
    },
}

#: By number: what gets round the task, and a text that the answer must say.
CHEATS: dict[int, dict[str, tuple[Edits | str, str]]] = {
    4: {
        "cast back": ((("height = height + rise\n", "height = (height + rise).astype(jnp.int32)\n"),), "`height`"),
        "typed in": (
            "import jax\nimport jax.numpy as jnp\nrises = jnp.array([0.5, 0.25, 0.5, 0.25])\n"
            "_ = jax.lax.scan(lambda c, x: (c, x), 0.0, rises)\nheight = jnp.float32(1.5)\ntrack = jnp.array([0.5, 0.75, 1.25, 1.5])\n",
            "With other data in `rises`",
        ),
        "emptied": ("import jax\nimport jax.numpy as jnp\nrises = jnp.array([0.5, 0.25, 0.5, 0.25])\n", "no scan"),
        "without a scan": (
            "import jax.numpy as jnp\nrises = jnp.array([0.5, 0.25, 0.5, 0.25])\ntrack = jnp.cumsum(rises)\nheight = track[-1]\n",
            "no scan",
        ),
        "other data": ((("jnp.int32(0)", "0.0"), ("[0.5, 0.25, 0.5, 0.25]", "[1.0, 1.0, 1.0, 1.0]")), "`height`"),
        "whole data": ((("[0.5, 0.25, 0.5, 0.25]", "[1, 2, 3, 4]"),), "`height`"),
        "data gone": (
            "import jax\nimport jax.numpy as jnp\n\nheight, track = jax.lax.scan(lambda h, r: (h + r, h + r), 0.0, jnp.array([0.5, 0.25, 0.5, 0.25]))\n",
            "Leave `rises = …`",
        ),
    },
    5: {
        "old one kept": ((("    return speed\n", "    return speed, by\n"),), "`log`"),
        "nothing kept": ((("    return speed\n", "    return speed, None\n"),), "`log`"),
        "typed in": (
            (
                ("    return speed\n", "    return speed, speed\n"),
                (
                    "speed, log = jax.lax.scan(push, 0.0, pushes)",
                    "jax.lax.scan(push, 0.0, pushes)\nspeed, log = jnp.float32(2.0), jnp.array([4.0, 4.0, 2.0])",
                ),
            ),
            "With other data in `pushes`",
        ),
        "carry lost": ((("    return speed\n", "    return by, speed\n"),), "S117"),
    },
    6: {
        "no question": ((("    if room < 20.0:\n        room = room + 2.0\n", ""),), "`room`"),
        "always warm": ((("    if room < 20.0:\n        room = room + 2.0\n", "    room = room + 2.0\n"),), "`room`"),
        "for these data": (
            (
                (
                    "    if room < 20.0:\n        room = room + 2.0\n",
                    "    room = room + jnp.where(out != 8.0, 2.0, 0.0)\n",
                ),
            ),
            "With other data in `outside`",
        ),
        "a loop of Python": (
            "import jax.numpy as jnp\noutside = jnp.array([10.0, 14.0, 24.0, 8.0])\nroom, temperatures = 19.0, []\nfor out in outside:\n"
            "    if room < 20.0:\n        room = room + 2.0\n    room = room + 0.25 * (out - room)\n    temperatures.append(room)\n",
            "no scan",
        ),
    },
    14: {
        "one number kept": ((("jnp.maximum(peak, level)", "jnp.maximum(peak, level).max()"),), "`peak`"),
        "never smaller": ((("read, 0.0,", "read, jnp.full(2, 3.0),"),), "`peak`"),
        "the last one": (
            (("jnp.maximum(peak, level)", "level"), ("read, 0.0,", "read, jnp.zeros(2),")),
            "`peak`",
        ),
        "typed in": (
            (
                ("read, 0.0,", "read, jnp.zeros(2),"),
                ("peak, highest = ", "_ = "),
                ("levels)\n", "levels)\npeak, highest = jnp.array([3.0, 2.5]), jnp.array([2.0, 3.0, 3.0])\n"),
            ),
            "With other data in `levels`",
        ),
    },
    15: {
        "smaller state": ((('"passengers": 0.0, "stops": 0}', '"passengers": 0.0}'),), "`state`"),
        "never counted": (
            (
                (
                    '    return {"passengers": passengers}, ',
                    '    return {"passengers": passengers, "stops": state["stops"]}, ',
                ),
            ),
            "`state`",
        ),
        "three stops": (
            (
                (
                    '    return {"passengers": passengers}, ',
                    '    return {"passengers": passengers, "stops": jnp.maximum(state["stops"], 3)}, ',
                ),
            ),
            "With other data in `boarding`",
        ),
    },
    16: {
        "wrong zeros": (
            (("memory = jnp.zeros((2, 4))", "memory = (jnp.ones((2, 4)), jnp.zeros((2, 4)))"),),
            "`memory`",
        ),
        "not the cell": (
            "import jax.numpy as jnp\nsound = 0.5 * jnp.ones((4, 2, 3))\nmemory = (jnp.zeros((2, 4)), jnp.zeros((2, 4)))\noutputs = jnp.zeros((4, 2, 4))\n",
            "The cell reads nothing",
        ),
        "one batch of each": ((("jnp.zeros((2, 4))", "jnp.zeros((2, 1, 4))"),), ""),
        "seen only at first": (
            (
                ("memory = jnp.zeros((2, 4))", "memory = (jnp.zeros((2, 4)), jnp.zeros((2, 4)))"),
                ("in sound:", "in 0.5 * jnp.ones((4, 2, 3)):"),
            ),
            "With other data in `sound`",
        ),
    },
    19: {
        "another scan": ((("drift, state, readings)", "drift, state, readings[0][:, None] + 0 * state)"),), "`state`"),
        "reshaped": (
            (("drift, state, readings)", "drift, state, readings.reshape(moments, boats, numbers))"),),
            "`state`",
        ),
        "carry of the wrong shape": ((("jnp.zeros((boats, numbers))", "jnp.zeros((moments, numbers))"),), ""),
    },
    23: {
        "these lengths": ((("reader(words)", "reader(words, seq_lengths=jnp.array([2, 4]))"),), ""),
        "all of it": ((("reader(words)", "reader(words, seq_lengths=jnp.array([4, 4]))"),), ""),
        "lengths from the end": ((("reader(words)", "reader(words, seq_lengths=lengths[::-1])"),), "`memory`"),
    },
    24: {
        "hidden at the end": (
            (("slope = jax.grad(energy)(speeds)", "slope = jnp.nan_to_num(jax.grad(energy)(speeds))"),),
            "N502",
        ),
        "without the zero": ((("[4.0, 0.0, 1.0]", "[4.0, 1.0, 1.0]"),), "`slope`"),
        "a line instead": ((("jnp.sqrt(speed)", "speed"),), "`slope`"),
        "typed in": (
            (("slope = jax.grad(energy)(speeds)", "energy(speeds)\nslope = jnp.array([0.25, 0.0, 0.5])"),),
            "With other data in `speeds`",
        ),
    },
    30: {
        "counted twice": ((("    tally.at[vote].add(1)\n", "    tally = tally.at[vote].add(2)\n"),), "`tally`"),
        "typed in": (
            (("    tally.at[vote].add(1)\n", ""), ("votes)\n", "votes)\ntally = jnp.array([1, 1, 2])\n")),
            "With other data in `votes`",
        ),
        "line gone": ((("    tally.at[vote].add(1)\n", ""),), "`tally`"),
    },
}


def edited(program: str, edits: Edits | str) -> str:
    """The program after these edits; each of them must have its place."""
    if isinstance(edits, str):
        return edits
    for old, new in edits:
        assert old in program, old
        program = program.replace(old, new, 1)
    return program
