"""The capture itself: what it sees of a script, where it says things stand, and that it leaves nothing behind."""

from __future__ import annotations

from typing import Any

import jax
import pytest

from core.base.places import Span
from core.contract.record import _recorder
from tests.support.capture import Captured, capture


def text(captured: Captured, place: Any) -> str:
    """The source that a place covers, on one line."""
    assert isinstance(place, Span)
    assert place.line == place.end_line
    return captured.source.lines[place.line - 1][place.col : place.end_col]


def roles(captured: Captured, *names: str) -> list[str]:
    (call,) = captured.calls
    return [text(captured, call.places.find(name)) for name in names]


SCRIPT = """\
import jax, jax.numpy as jnp
from jax import lax
from jax.lax import scan as fold
start = {"n": 0, "ä": jnp.zeros(2)}
def step(state, x):
    return {"n": state["n"] + 1, "ä": state["ä"] + x}, x
data = jnp.ones((3, 2))
"""


@pytest.mark.parametrize(
    "call",
    [
        "jax.lax.scan(step, start, data)",
        "lax.scan(step, start, data)",
        "fold(step, start, data)",
        "fold(f=step, init=start, xs=data)",
        "jax.lax.scan(step, start,\n    data)",
    ],
)
def test_a_scan_is_seen_however_it_is_called(call: str) -> None:
    captured = capture(SCRIPT + f"final, ys = {call}\n")
    assert captured.error is None
    assert len(captured.calls) == len(captured.returned) == 1
    assert captured.returned[0] is not captured.calls[0].init
    assert roles(captured, "xs", "xs_bound", "init", "step") == [
        "data",
        "jnp.ones((3, 2))",
        '{"n": 0, "ä": jnp.zeros(2)}',
        "def step(state, x):",
    ]


def test_parts_by_path_and_columns_in_characters() -> None:
    captured = capture(SCRIPT + "fold(step, start, data)\n")
    assert roles(captured, "init:carry['ä']", "return:carry['n']", "return:carry['ä']", "return:y") == [
        "jnp.zeros(2)",
        'state["n"] + 1',
        'state["ä"] + x',
        "x",
    ]
    assert roles(captured, "return:carry['unknown']") == ['{"n": state["n"] + 1, "ä": state["ä"] + x}, x']


def test_a_name_is_followed_to_what_was_last_assigned_to_it_before() -> None:
    captured = capture(
        "import jax, jax.numpy as jnp\n"
        "init = 5.0\n"
        "init = other = 0.0\n"
        "again = other\n"
        "jax.lax.scan(lambda total, x: (total + x, None), again, jnp.ones(3), reverse=True)\n"
        "other = init = 7.0\n"
    )
    assert roles(captured, "init", "reverse", "return", "xs") == ["0.0", "True", "(total + x, None)", "jnp.ones(3)"]
    assert captured.calls[0].places.find("init") == Span(3, 15, 3, 18)


def test_scopes_and_parameters() -> None:
    captured = capture(
        "import jax, jax.numpy as jnp\n"
        "init = 1.0\n"
        "def run(xs):\n"
        "    init = 0.0\n"
        "    def step(total, x):\n"
        "        new = (total + x, x)\n"
        "        return new\n"
        "    return jax.lax.scan(step, init, xs)\n"
        "run(jnp.ones(3))\n"
    )
    assert roles(captured, "init", "xs", "xs_bound", "return", "return:carry") == [
        "0.0",
        "xs",
        "xs",
        "new",
        "total + x",
    ]
    assert captured.calls[0].places.find("init") == Span(4, 11, 4, 14)


@pytest.mark.parametrize(
    ("step", "first_line"),
    [
        ("step", "def step(c, x):"),
        ("functools.partial(other, 2.0)", "def other(k, c, x):"),
        ("model.step", "    def step(self, c, x):"),
        ("model", "    def __call__(self, c, x):"),
        ("[lambda c, x: (c, x), lambda c, x: (x, c)][1]", "lambda c, x: (x, c)"),
    ],
)
def test_where_a_step_is_defined(step: str, first_line: str) -> None:
    captured = capture(
        "import functools, jax, jax.numpy as jnp\n"
        "def step(c, x):\n    return c + x, x\n"
        "def other(k, c, x):\n    return c + k * x, x\n"
        "class Model:\n"
        "    def step(self, c, x):\n        return c, x\n"
        "    def __call__(self, c, x):\n        return x, c\n"
        "model = Model()\n"
        f"jax.lax.scan({step}, 0.0, jnp.ones(3))\n"
    )
    assert captured.error is None
    (found,) = roles(captured, "step")
    assert found == first_line.strip() or first_line.strip().startswith(found)


# --- cells ----------------------------------------------------------------------------------------------------------

CELL = """\
import jax, jax.numpy as jnp
from flax import nnx
cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
h = cell.initialize_carry((2, 3), rngs=nnx.Rngs(1))
h, y = cell(h, jnp.ones((2, 3)))
"""


def test_cells_outside_a_scan_are_in_the_log_and_those_inside_are_not() -> None:
    captured = capture(CELL + "jax.lax.scan(lambda h, x: cell(h, x), h, jnp.ones((5, 2, 3)))\n")
    events = captured.log.events
    assert (len(events.builds), len(events.carries), len(events.steps)) == (1, 1, 1)
    build, carry, step = events.builds[0], events.carries[0], events.steps[0]
    assert text(captured, build.site.find("cell_rngs")) == "nnx.Rngs(0)"
    assert text(captured, carry.site.find("carry_shape")) == "(2, 3)"
    assert text(captured, carry.site.find("carry_rngs")) == "nnx.Rngs(1)"
    assert text(captured, step.site.find("carry")) == "h"
    assert text(captured, step.site.find("input")) == "jnp.ones((2, 3))"
    assert captured.calls[0].earlier.carries == events.carries
    assert [type(s).__name__ for s in captured.subjects()] == ["ScanCall", "CellLog"]


def test_a_cell_that_a_library_calls_stands_at_the_script_s_call_of_that_library() -> None:
    captured = capture(CELL + "jax.lax.scan(cell, h, jnp.ones((5, 2, 3)))\nnnx.RNN(cell)(jnp.ones((2, 5, 3)))\n")
    assert captured.error is None
    assert len(captured.calls) == 1  # that of nnx.RNN is not the script's
    sites = [event.site for event in captured.log.events.steps]
    assert sites[0] is not None
    assert sites[1:]
    line = CELL.count("\n") + 2
    assert {site.find("call").line for site in sites[1:]} == {line}


# --- the end --------------------------------------------------------------------------------------------------------


def test_output_and_exceptions_are_kept() -> None:
    captured = capture("print('here')\nraise KeyError('x')\n")
    assert captured.stdout == "here\n"
    assert isinstance(captured.error, KeyError)
    assert captured.subjects() == []


def test_what_the_scan_raised_is_kept() -> None:
    captured = capture("import jax\njax.lax.scan(lambda c, x: c, 0.0, None, length=3)\n")
    assert isinstance(captured.error, TypeError)
    assert captured.returned == [captured.error]


def test_a_scan_inside_a_traced_function_is_counted() -> None:
    captured = capture(
        "import jax, jax.numpy as jnp\n"
        "f = jax.jit(lambda xs: jax.lax.scan(lambda c, x: (c + x, None), 0.0, xs))\n"
        "f(jnp.ones(3))\n"
    )
    assert (captured.calls, captured.traced) == ([], 1)


@pytest.mark.parametrize("source", ["x = 1\n", "1 / 0\n", "import jax\njax.config.update('jax_enable_x64', True)\n"])
def test_nothing_is_left_behind(source: str) -> None:
    scan = jax.lax.scan
    captured = capture(source)
    assert jax.lax.scan is scan
    assert _recorder.get() is None
    assert jax.config.read("jax_enable_x64") is False
    assert captured.x64 is ("x64" in source)
    with captured.config():
        assert jax.config.read("jax_enable_x64") is captured.x64
    assert jax.config.read("jax_enable_x64") is False
