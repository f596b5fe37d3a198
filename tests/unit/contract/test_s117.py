"""S117: the pair is returned the wrong way round."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

from core.base.violation import Severity
from core.contract.engine import check
from core.contract.subject import ScanCall
from tests.unit.contract.scan_support import clean, mended, run
from tests.unit.contract.scan_support import only as only_call
from tests.unit.contract.two_languages import checked, line_of, names, only, silent

XS = jnp.arange(6.0).reshape(3, 2)

RAISED = {
    "y-of-another-shape": ("def step(h, x):\n    h = jnp.tanh(0.5 * h + x)\n    return h.sum(), h\n", "jnp.zeros(2)"),
    "none-first": ("def step(h, x):\n    return None, h + x\n", "jnp.zeros(2)"),
    "pair-of-two": (
        "def step(c, x):\n    p, v = c\n    v = v + x\n    p = p + v\n    return p, (p, v)\n",
        "(XS[0], XS[0])",
    ),
    "y-of-the-old-carry": ("def step(h, x):\n    y = h[0]\n    h = h + x\n    return y, h\n", "jnp.zeros(2)"),
    "lambda": ("step = lambda h, x: (h @ h, h + x)\n", "jnp.zeros(2)"),
    "helper": ("def cell(h, x):\n    return h.max(), h + x\nstep = lambda h, x: cell(h, x)\n", "jnp.zeros(2)"),
    "method": (
        "class M:\n    def go(self, h, x):\n        h = h + x\n        return h.sum(), h\nstep = M().go\n",
        "jnp.zeros(2)",
    ),
}


@pytest.mark.parametrize("case", RAISED.values(), ids=RAISED)
def test_what_raises_is_named_and_turned_round(case: tuple[str, str]) -> None:
    step, init = case
    text = f"XS = jnp.arange(6.0).reshape(3, 2)\n{step}final, ys = lax.scan(step, {init}, XS)\n"
    violation, sources = only(text, "S117")
    assert violation.severity is Severity.ERROR
    assert not violation.silent
    assert "float32" in str(violation.got[0]) or "None" in str(violation.got[0])
    left = names(sources[0])
    assert left["ys"] is None or left["ys"].shape[:1] == (3,)


NOT_SO = {
    "grows": "lambda c, x: (jnp.append(c, x[0]), c)",
    "broadcast": "lambda c, x: (c[:, None] + x, c)",
    "sum-of-the-new-one": "lambda c, x: ((lambda n: (n, n.sum(0)))(c + x[:, None]))",
    "x-as-y": "lambda c, x: (c.sum(), x)",
}


@pytest.mark.parametrize("step", NOT_SO.values(), ids=NOT_SO)
def test_a_carry_that_changes_its_shape_is_another_fault(step: str) -> None:
    call = ScanCall(eval(step, {"jnp": jnp}), jnp.zeros(2), XS)
    only_call(call, "S103")


def test_a_call_is_mended_without_a_source() -> None:
    call = ScanCall(lambda h, x: (h.sum(), h + x), jnp.zeros(2), XS)
    final, ys = run(mended(call, "S117", "step_swap"))
    assert final.tolist() == [6.0, 9.0]
    assert ys.shape == (3,)


def test_the_lstm_cell_whose_output_comes_first() -> None:
    text = (
        "from flax import nnx\ncell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))\ndef step(carry, x):\n"
        "    carry, y = cell(carry, x)\n    return y, carry\n"
        "final, ys = lax.scan(step, cell.initialize_carry((2, 3), nnx.Rngs(0)), jnp.ones((5, 2, 3)))\n"
    )
    violation, sources = only(text, "S117")
    assert line_of(violation) == 5
    assert names(sources[0])["ys"].shape == (5, 2, 4)


# --- JAX is silent --------------------------------------------------------------------------------------------------

BY_NAME = """def step(state, x):
    state = state + x
    y = 2.0 * x
    return y, state
final, ys = lax.scan(step, 0.0, jnp.arange(5.0))
"""
OF_PARTS = """def run(xs):
    def body(carry, x):
        a, b = carry
        a = a + x
        b = 0.5 * b + a
        return (x, x), (a, b)
    return lax.scan(body, (0.0, 0.0), xs)
final, ys = run(jnp.arange(5.0))
"""


@pytest.mark.parametrize(("text", "line"), [(BY_NAME, 4), (OF_PARTS, 6)], ids=["one", "parts"])
def test_by_the_names_of_the_step(text: str, line: int) -> None:
    violation, sources = only(text, "S117")
    assert violation.severity is Severity.WARNING
    assert violation.silent
    assert line_of(violation) == line
    assert violation.proof is not None
    assert violation.proof.before == 0.0
    assert violation.proof.after == violation.proof.expected > 0.0
    final = names(sources[0])["final"]
    assert float(final[0] if isinstance(final, tuple) else final) == 10.0


@pytest.mark.parametrize(
    ("carry", "new", "named"),
    [
        ("state", "new_state", True),
        ("h", "h_next", True),
        ("h_prev", "h", True),
        ("h_t", "h_t1", True),
        ("s0", "s1", True),
        ("h", "hidden", False),
        ("c", "out", False),
        ("prev", "new", False),
    ],
)
def test_a_new_name_for_the_carry(carry: str, new: str, named: bool) -> None:
    """y is made of the new carry, so that both orders compute something: the names make it a note, or nothing does."""
    text = (
        f"def step({carry}, u):\n    {new} = 0.9 * {carry} + u\n    y = 2.0 * {new}\n    return y, {new}\n"
        "final, ys = lax.scan(step, 0.0, jnp.ones(4))\n"
    )
    checkup = checked(text)
    notes = [v for v in checkup.report.violations if v.code == "S117"]
    assert [v.severity for v in notes] == [Severity.NOTE] * named
    right = checked(text.replace(f"y, {new}", f"{new}, y"))
    assert not [v for v in right.report.violations if v.code == "S117"]


def test_in_a_jitted_function() -> None:
    text = BY_NAME.replace(
        "lax.scan(step, 0.0, jnp.arange(5.0))", "jax.jit(lambda v: lax.scan(step, 0.0, v))(jnp.ones(5))"
    )
    assert only(text, "S117")[0].severity is Severity.WARNING


def test_without_names_it_is_a_note() -> None:
    text = "final, ys = lax.scan(lambda c, x: (2.0 * x, c + x), 0.0, jnp.arange(5.0))\n"
    violation, sources = only(text, "S117")
    assert violation.severity is Severity.NOTE
    assert float(names(sources[0])["final"]) == 10.0


RIGHT = {
    "difference": "def step(prev, x):\n    return x, x - prev\n",
    "mean-of-two": "def step(prev, x):\n    return x, 0.5 * (x + prev)\n",
    "pre-activation": "def step(h, x):\n    pre = 0.5 * h + x\n    h = jnp.tanh(pre)\n    return h, pre\n",
    "old-carry": "def step(c, x):\n    return c + x, c\n",
    "same-twice": "def step(c, x):\n    c = c + x\n    return c, c\n",
    "decay": "def step(c, x):\n    new = 0.9 * c + x\n    return new, new * 2.0\n",
}


@pytest.mark.parametrize("step", RIGHT.values(), ids=RIGHT)
def test_right_steps_are_left_alone(step: str) -> None:
    silent(step + "final, ys = lax.scan(step, 0.0, jnp.arange(5.0))\n", "S117")


def test_a_clean_call_stays_clean() -> None:
    report = clean(ScanCall(lambda c, x: (c + x, c * 2), jnp.zeros(2), XS))
    assert not [v for v in report.violations if v.code == "S117"]
    assert check(ScanCall(lambda c, x: (c, x), 0.0, XS)).violations is not None
