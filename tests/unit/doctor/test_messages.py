"""Each message is raised anew by the installed JAX and Flax; the table has to know it without the script."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from flax import nnx
from jax import lax

from core.contract.rule import all_rules
from core.doctor.messages import TABLE, code_of_message

KNOWN = {rule.code for rule in all_rules()}


def cell() -> nnx.LSTMCell:
    return nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))


RAISERS: list[tuple[str, Callable[[], object]]] = [
    ("S101", lambda: lax.scan(lambda c, x: c + x, 0.0, jnp.ones(3))),
    ("S102", lambda: lax.scan(lambda c, x: ((c[0], x), x), (0.0, None), jnp.ones(3))),
    ("S103", lambda: lax.scan(lambda c, x: (jnp.append(c, x), x), jnp.ones(2), jnp.ones(3))),
    ("S104", lambda: lax.scan(lambda c, x: (c + x, x), jnp.zeros((), int), jnp.ones(3))),
    ("S106", lambda: lax.scan(lambda c, x: (c + x, x), 0.0, 1.0)),
    ("S106", lambda: lax.scan(lambda c, x: (c + x, x), 0.0, jnp.array(3))),
    ("S107", lambda: lax.scan(lambda c, x: (c, x), 0.0, (jnp.ones(3), jnp.ones(4)))),
    ("S108", lambda: lax.scan(lambda c, x: (c, x), 0.0, jnp.ones(3), length=4)),
    ("S109", lambda: lax.scan(lambda c, x: (c, x), 0.0, None)),
    ("S110", lambda: lax.scan(lambda c, x: (c, x), 0.0, [1.0, 2.0])),
    ("S118", lambda: lax.scan(lambda c, x: (c, x), "a", jnp.ones(3))),
    ("P201", lambda: jax.jit(lambda n: 1 if n > 0 else 2)(3)),
    ("P202", lambda: jax.jit(lambda n: float(n))(3)),
    ("P202", lambda: jax.jit(lambda n: range(n))(3)),
    ("P202", lambda: jax.jit(lambda n: jnp.ones(5)[:n])(3)),
    ("P205", lambda: jnp.ones(3).__setitem__(0, 1)),
    ("P209", lambda: jax.jit(lambda n: lax.scan(lambda c, x: (c, c), 0.0, None, length=n))(3)),
    ("P209", lambda: jax.jit(lambda n: jnp.zeros(n))(3)),
    ("L301", lambda: cell()(jnp.zeros((3, 4)), jnp.ones((3, 3)))),
    ("L305", lambda: cell()(cell().initialize_carry((2, 5), nnx.Rngs(0)), jnp.ones((2, 5)))),
    ("L303", lambda: cell()((jnp.zeros((3, 4)),) * 2, jnp.ones((2, 3)))),
    ("L306", lambda: cell().initialize_carry((2, 3))),
    ("L306", lambda: cell().initialize_carry((2, 3), 0)),
    ("L307", lambda: nnx.LSTMCell(3, 4)),
    ("L307", lambda: nnx.LSTMCell(3, 4, rngs=0)),
]
EXISTING = [(code, raiser) for code, raiser in RAISERS if code in KNOWN]


@pytest.mark.parametrize(("code", "raiser"), EXISTING, ids=[code for code, _ in EXISTING])
def test_what_is_raised_today_is_known(code: str, raiser: Callable[[], object]) -> None:
    with pytest.raises(Exception) as raised:
        raiser()
    last = "".join(traceback.format_exception_only(raised.value))
    whole = "".join(traceback.format_exception(raised.value))
    for text in (last, whole, f"Help!\n\n{last}"):
        match = code_of_message(text)
        assert match is not None, last
        assert match.rule.code == code
        assert code in match.text


def test_a_guess_says_that_it_is_one() -> None:
    sure = code_of_message("TypeError: scan body output must be a pair, got float32[5].")
    guess = code_of_message("ValueError: too many values to unpack (expected 2)")
    assert sure is not None
    assert guess is not None
    assert sure.sure
    assert not guess.sure
    assert sure.text != guess.text
    assert "Paste the script" in guess.text


def test_our_own_code_is_taken_at_its_word() -> None:
    match = code_of_message("error S104  carry-dtype-changes\ncarry goes in as int32[]")
    assert match is not None
    assert match.rule.code == "S104"
    assert match.sure


def test_what_nobody_knows() -> None:
    assert code_of_message("KeyError: 'weights'") is None
    assert code_of_message("hello") is None


def test_no_row_is_hidden_by_an_earlier_one() -> None:
    for i, row in enumerate(TABLE):
        for earlier in TABLE[:i]:
            covers = all(any(w in word for word in row.words) for w in earlier.words)
            assert not (covers and earlier.type in ("", row.type) and not earlier.pattern), (earlier, row)
