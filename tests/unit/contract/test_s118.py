"""S118: a leaf of the carry is no array."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from core.contract.subject import ScanCall
from tests.unit.contract.scan_support import clean, kinds, mended, run
from tests.unit.contract.scan_support import only as only_call
from tests.unit.contract.two_languages import line_of, names, only, silent

CASES = {
    "report": """def step(carry, x):
    h, act = carry
    h = act(h + x)
    return (h, act), h
init = (jnp.array(0.0), jnp.tanh)
carry, ys = lax.scan(step, init, jnp.ones(3))
""",
    "first-of-three": """def cell(state, u):
    f, h, n = state
    h = f(h + u)
    return (f, h, n + 1), h
squash = lambda v: jnp.tanh(v)
init = (squash, jnp.array(0.0), 0)
(f, h, n), ys = lax.scan(cell, init, jnp.ones(3))
""",
    "dict": """def run(xs):
    def step(c, x):
        h = c["act"](c["h"] + x)
        return {"h": h, "act": c["act"]}, h

    final, ys = lax.scan(step, {"h": 0.0, "act": jnp.tanh}, xs)
    return ys
ys = run(jnp.ones(3))
""",
    "text": """def step(c, x):
    h, mode = c
    h = jnp.tanh(h + x) if mode == "tanh" else h + x
    return (h, mode), h

carry, ys = lax.scan(step, (0.0, "tanh"), jnp.ones(3))
h, mode = carry
""",
    "nested-scan": """def outer(c, row):
    def inner(c, x):
        h, f = c
        return (f(h + x), f), f(h + x)
    (h, _), ys = lax.scan(inner, (c, jnp.tanh), row)
    return h, ys
_, ys = lax.scan(outer, 0.0, jnp.ones((1, 3)))
ys = ys[0]
""",
    "class-under-vmap": """class Cell:
    def __call__(self, c, x):
        h, act = c
        h = act(h + x)
        return (h, act), h
ys = jax.vmap(lambda xs: lax.scan(Cell(), (0.0, jnp.tanh), xs)[1])(jnp.ones((1, 3)))[0]
""",
    "lambda": """
ys = lax.scan(lambda c, x: ((c[0], c[0](c[1] + x)), c[0](c[1] + x)), (jnp.tanh, 0.0), jnp.ones(3))[1]
""",
    "jitted": """@partial(jax.jit, static_argnames="n")
def go(x, n):
    step = lambda c, x: ((c[0](c[1] + x), c[0]), c[0](c[1] + x)) if False else ((c[0], c[0](c[1] + x)), c[0](c[1] + x))
    return lax.scan(step, (jnp.tanh, 0.0), x, length=n)[1]
ys = go(jnp.ones(3), n=3)
""",
}
LINES = {
    "report": 5,
    "first-of-three": 6,
    "dict": 6,
    "text": 6,
    "nested-scan": 5,
    "class-under-vmap": 6,
    "lambda": 2,
    "jitted": 4,
}
TANH = [0.7615942, 0.9426808, 0.95974606]


@pytest.mark.parametrize("case", CASES)
def test_the_leaf_is_named_and_every_fix_gives_the_right_values(case: str) -> None:
    violation, sources = only(CASES[case], "S118")
    assert line_of(violation) == LINES[case]
    assert sources
    for source in sources:
        assert np.allclose(names(source)["ys"], TANH, atol=1e-6), source


@pytest.mark.parametrize("static", [False, True], ids=["arrays", "with-a-name"])
def test_a_dataclass_is_registered(static: bool) -> None:
    field, value = ("    name: str\n", ', "a"') if static else ("", "")
    text = (
        "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass State:\n    pos: jax.Array\n" + field +
        "def step(s, x):\n    return dataclasses.replace(s, pos=s.pos + x), s.pos\n"
        f"final, ys = lax.scan(step, State(jnp.zeros(2){value}), jnp.ones((3, 2)))\n"
    )  # fmt: skip
    violation, sources = only(text, "S118")
    assert "State" in violation.message
    assert names(sources[0])["final"].pos.tolist() == [3.0, 3.0]


def test_what_changes_is_not_taken_out() -> None:
    text = "def step(c, x):\n    seen, t = c\n    return (seen | {1}, t + x), t\nlax.scan(step, (set(), 0.0), jnp.ones(3))\n"
    violation, sources = only(text, "S118")
    assert "set" in violation.message
    assert sources == []


def test_what_the_step_returns() -> None:
    violation, _ = only('def step(c, x):\n    return "done", x\nlax.scan(step, 0.0, jnp.ones(3))\n', "S118")
    assert line_of(violation) == 2
    assert violation.because is not None
    assert violation.because.text == "init set float32[] here"


def test_a_call_is_mended_by_a_wrapper() -> None:
    call = ScanCall(lambda c, x: ((c[0], c[0](c[1] + x)), c[1]), (jnp.tanh, 0.0), jnp.ones(3))
    assert only_call(call, "S118").path == "carry[0]"
    assert kinds(call, "S118") == ["init_partial"]
    (_, final), _ = run(mended(call, "S118", "init_partial"))
    assert float(final) == pytest.approx(TANH[-1])


def test_pytrees_without_leaves_are_fine() -> None:
    clean(
        ScanCall(
            lambda c, x: ((c[0], c[0](c[1] + x), None), c[1]), (jax.tree_util.Partial(jnp.sin), 0.0, None), jnp.ones(3)
        )
    )
    silent("final, ys = lax.scan(lambda c, x: ((c[0], c[1] + x), x), (None, 0.0), jnp.ones(3))\n", "S118")


@pytest.mark.parametrize("leaf", [1, True, 2.5, np.float32(1), np.zeros(2), jax.random.key(0)], ids=str)
def test_numbers_and_arrays_are_leaves(leaf: object) -> None:
    clean(ScanCall(lambda c, x: (c, None), leaf, None, 3))
