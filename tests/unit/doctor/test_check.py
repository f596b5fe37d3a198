from __future__ import annotations

import pytest

from core.base.outcome import Outcome
from core.base.places import Span
from core.base.violation import Severity
from core.doctor.check import Checkup, Terms, check_script, examine
from core.doctor.sandboxed import sandboxed

HEAD = "import jax, jax.numpy as jnp\nfrom flax import nnx\nfrom jax import lax\n"
STEP = "def step(c, x):\n    return c + x, c\n"


def look(body: str, **options: object) -> Checkup:
    checkup = check_script(HEAD + body, fixes=False, **options)  # type: ignore[arg-type]
    assert checkup.run is None or not checkup.run.problems
    return checkup


def code(checkup: Checkup, number: int = 0, *, because: bool = False) -> str:
    """What stands at a violation's place."""
    violation = checkup.report.violations[number]
    place = violation.because.place if because and violation.because else violation.place
    assert isinstance(place, Span)
    line = checkup.given.text.split("\n")[place.line - 1]
    return line[place.col : place.end_col if place.end_line == place.line else len(line)]


# --- places (DESIGN.md section 3) -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "want", "place", "because"),
    [
        ("def step(c, x):\n    return c + x\nlax.scan(step, 0.0, jnp.ones(3))\n", "S101", "c + x", None),
        ("def step(c, x):\n    a, b = c\n    return (a, b + 1, x), x\ninit = (0.0, 0.0)\nlax.scan(step, init, jnp.ones(3))\n", "S102", "(a, b + 1, x)", "(0.0, 0.0)"),
        ("def step(c, x):\n    return {'h': c['h'] @ jnp.ones((2, 3))}, x\nlax.scan(step, {'h': jnp.zeros(2)}, jnp.ones(3))\n", "S103", "c['h'] @ jnp.ones((2, 3))", "jnp.zeros(2)"),
        ("def step(c, x):\n    new = c + x\n    return new, c\nh0 = jnp.zeros((), int)\ninit = h0\nlax.scan(step, init, jnp.ones(3))\n", "S104", "new", "jnp.zeros((), int)"),
        (STEP + "init = 0\nlax.scan(step, init, jnp.array([100, 100], jnp.int8))\n", "S105", "0", None),
        (STEP + "xs = 3.0\nlax.scan(step, 0.0, xs)\n", "S106", "xs", "3.0"),
        ("def step(c, x):\n    return c, x\na = jnp.ones(3)\nlax.scan(step, 0.0, (a, jnp.ones(4)))\n", "S107", "jnp.ones(4)", None),
        (STEP + "xs = jnp.ones(4)\nn = 3\nlax.scan(step, 0.0, xs, length=n)\n", "S108", "n", None),
        (STEP + "xs = [1.0, 2.0]\nlax.scan(step, 0.0, xs)\n", "S110", "xs", None),
        ("cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))\nh = jnp.ones((2, 4))\ncell(h, jnp.ones((2, 3)))\n", "L301", "h", None),
        ("cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))\nc = jnp.zeros((2, 5))\ncell((c, c), jnp.ones((2, 3)))\n", "L304", "(c, c)", None),
        ("cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))\nc = cell.initialize_carry((2, 5), nnx.Rngs(0))\ncell(c, inputs=jnp.ones((2, 5)))\n", "L305", "jnp.ones((2, 5))", "nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))"),
        ("cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))\nc = cell.initialize_carry((2, 3))\n", "L306", "cell.initialize_carry((2, 3))", None),
        ("cell = nnx.LSTMCell(3, 4, rngs=0)\n", "L307", "nnx.LSTMCell(3, 4, rngs=0)", None),
        ("rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)))\nx = jnp.ones((2, 5, 7))\nrnn(x)\n", "L305", "x", None),
    ],
)  # fmt: skip
def test_the_place_is_the_smallest_expression(body: str, want: str, place: str, because: str | None) -> None:
    checkup = look(body)
    assert checkup.report.violations[0].code == want
    assert code(checkup) == place
    if because is not None:
        assert code(checkup, because=True) == because


def test_places_under_prompts_are_those_of_what_was_pasted() -> None:
    text = (
        ">>> import jax, jax.numpy as jnp\n>>> def step(c, x):\n...     return c + x, c\n...\n"
        ">>> jax.lax.scan(step, jnp.int32(0), jnp.ones(3))\nTraceback (most recent call last):\nTypeError: no\n"
    )
    checkup = check_script(text)
    assert checkup.report.codes == ("S104",)
    assert code(checkup) == "c + x"
    assert ">>>" not in checkup.sources[0][0]


# --- once each ------------------------------------------------------------------------------------------------------


def test_the_same_fault_at_the_same_place_is_told_once() -> None:
    body = (
        "def run(x):\n    try:\n        return lax.scan(lambda c, x: (c + x, c), jnp.int32(0), x)\n    except TypeError:\n        return None\n"
        "for n in (3, 4, 5):\n    run(jnp.ones(n))\n"
    )
    checkup = look(body)
    assert checkup.run is not None
    assert len(checkup.run.record.scans) == 3
    assert checkup.report.codes == ("S104",)


def test_two_leaves_are_two_messages_where_their_causes_are_two() -> None:
    body = "def step(c, x):\n    a, b = c\n    return (a + x, b + x), x\nlax.scan(step, (jnp.{}(0), jnp.{}(0)), jnp.ones(3))\n"
    assert look(body.format("int32", "bfloat16")).report.codes == ("S104", "S104")
    assert look(body.format("int32", "int32")).report.codes == ("S104",)


def test_one_root_cause_one_message() -> None:
    """A cell's carry without a batch: L303 alone, not S103 as well."""
    body = "cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))\nlax.scan(lambda h, x: cell(h, x), jnp.zeros(4), jnp.ones((5, 2, 3)))\n"
    assert look(body).report.codes == ("L303",)


def test_a_library_that_raises_is_explained_by_what_it_was_given() -> None:
    body = "rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)))\nh = jnp.zeros((2, 4), jnp.bfloat16)\nrnn(jnp.ones((2, 5, 3)), initial_carry=(h, h))\n"
    checkup = look(body)
    assert checkup.report.codes == ("L314",)
    assert checkup.report.violations[0].severity is Severity.ERROR
    assert not checkup.report.violations[0].silent
    assert checkup.report.outcome is Outcome.VIOLATIONS


# --- how it ends ----------------------------------------------------------------------------------------------------


def test_a_clean_script() -> None:
    assert look("c, ys = lax.scan(lambda c, x: (c + x, None), 0.0, jnp.ones(3))\n").report.outcome is Outcome.OK


def test_an_exception_that_no_rule_knows_is_shown_raw_at_its_place() -> None:
    checkup = look("a = jnp.ones((2, 3))\nb = jnp.ones((2, 3))\nc = a @ b\n")
    error = checkup.report.error
    assert checkup.report.outcome is Outcome.ERROR
    assert error is not None
    assert error.type == "TypeError"
    assert error.place == Span(6, 4, 6, 9)
    assert error.operands == ("a: float32[2,3]", "b: float32[2,3]")
    assert "site-packages" not in error.message


def test_an_exception_in_a_step_is_shown_in_the_step() -> None:
    checkup = look(
        "def step(c, x):\n    return c + jnp.ones((2, 3)) @ x, c\nlax.scan(step, jnp.zeros(2), jnp.ones((4, 5)))\n"
    )
    assert checkup.report.error is not None
    assert checkup.report.error.place == Span(5, 15, 5, 35)


def test_a_silent_fault_and_an_exception_are_both_told() -> None:
    body = "cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))\ncell(jnp.ones((2, 4)), jnp.ones((2, 3)))\nundefined\n"
    checkup = look(body)
    assert checkup.report.codes == ("L301",)
    assert checkup.report.error is not None
    assert checkup.report.error.type == "NameError"
    assert checkup.report.outcome is Outcome.ERROR


@pytest.mark.parametrize(
    ("text", "type_"),
    [("", "NoScript"), ("hello", "NoScript"), ("x = (", "SyntaxError"), ("def f(:\n  pass", "SyntaxError")],
)
def test_what_cannot_be_read(text: str, type_: str) -> None:
    checkup = check_script(text)
    assert checkup.report.outcome is Outcome.ERROR
    assert checkup.unread is not None
    assert checkup.unread.type == type_
    assert checkup.outcome is None


def test_the_place_of_a_syntax_error_is_in_characters() -> None:
    checkup = check_script("s = 'größe'\nx = 'ü' +* 2\n")
    assert checkup.unread is not None
    assert isinstance(checkup.unread.place, Span)
    assert (checkup.unread.place.line, checkup.unread.place.col) == (2, 9)


@pytest.mark.parametrize("text", ["import os\nos.system('true')\n", "open('/etc/passwd')\n", "import subprocess\n"])
def test_what_the_playground_does_not_run(text: str) -> None:
    checkup = examine(text, Terms(sandboxed))
    assert checkup.report.outcome is Outcome.LIMIT
    assert set(checkup.report.codes) == {"X603"}
    assert isinstance(checkup.report.violations[0].place, Span)
    assert checkup.report.error is None


def test_over_a_limit_the_types_are_still_checked() -> None:
    body = (
        "c, _ = lax.scan(lambda c, _: (c @ c, None), jnp.eye(50), None, length=10000)\n"
        "lax.scan(lambda c, x: (c + x, c), jnp.int32(0), c[0])\n"
    )
    checkup = check_script(HEAD + body, budget=10**6)
    assert checkup.report.codes == ("S104", "X601")
    assert checkup.report.outcome is Outcome.LIMIT
    assert [bool(s) for s in checkup.sources] == [True, False]


def test_a_rule_that_fails_is_left_out_and_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    from core.contract import rule
    from core.doctor import script

    def broken(facts: object) -> None:
        raise RuntimeError("a mistake of ours")

    from dataclasses import replace

    rules = tuple(replace(r, check=broken) if r.code == "S113" else r for r in rule.all_rules())  # type: ignore[arg-type]
    monkeypatch.setattr(script, "all_rules", lambda: rules)
    checkup = check_script(
        HEAD + STEP + "lax.scan(step, jnp.int32(0), jnp.ones(3))\nlax.scan(step, 0.0, jnp.ones(3))\n"
    )
    assert "S104" in checkup.report.codes
    assert checkup.run is not None
    checkup = check_script(HEAD + STEP + "lax.scan(step, 0.0, jnp.ones(3))\n")
    assert checkup.run is not None
    assert [code for code, _ in checkup.run.problems] == ["S113"]
    assert checkup.report.outcome is Outcome.OK


# --- proofs ---------------------------------------------------------------------------------------------------------


def test_a_proof_has_its_number_before_and_after_the_fix() -> None:
    body = "cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))\ncarry = (jnp.zeros(4), jnp.zeros(4))\nfor x in jnp.ones((5, 2, 3)):\n    carry, y = cell(carry, x)\n"
    (violation,) = check_script(HEAD + body).report.violations
    assert violation.code == "L303"
    assert violation.proof is not None
    assert violation.proof.before != violation.proof.expected
    assert violation.proof.after == pytest.approx(violation.proof.expected)


def test_a_proof_of_a_scan_is_measured_when_it_is_called() -> None:
    """The step's global is another one afterwards."""
    body = (
        "scale = 1.0\ndef step(c, x):\n    return c + scale * x, c\n"
        "lax.scan(step, 0, jnp.array([100, 100], jnp.int8))\nscale = jnp.ones((7, 7))\n"
    )
    without = look(body.replace("scale * x", "x"))
    assert [v.code for v in without.report.broken] == ["S105"]
    assert without.report.broken[0].proof is not None
    assert without.report.broken[0].proof.before == 256.0


# --- axes -----------------------------------------------------------------------------------------------------------


def test_axes_that_the_script_names_prove_a_batch_major_scan() -> None:
    body = (
        "batch, seq_len, width = 4, 6, 3\nx = jax.random.normal(jax.random.key(0), (batch, seq_len, width))\n"
        "def step(h, x_t):\n    h = jnp.tanh(h + x_t)\n    return h, h\nh, hs = lax.scan(step, jnp.zeros((seq_len, width)), x)\n"
    )
    checkup = look(body)
    assert [v.code for v in checkup.report.broken] == ["S115"]
    right = body.replace(
        "lax.scan(step, jnp.zeros((seq_len, width)), x)", "lax.scan(step, jnp.zeros((batch, width)), x.swapaxes(0, 1))"
    )
    assert not look(right).report.broken


def test_axes_by_other_names_prove_nothing() -> None:
    body = (
        "rows, cols, width = 4, 6, 3\nx = jnp.ones((rows, cols, width))\n"
        "lax.scan(lambda h, x: (jnp.tanh(h + x), None), jnp.zeros((cols, width)), x)\n"
    )
    assert not look(body).report.broken


CAUGHT = """import jax
import jax.numpy as jnp

def grow(c, x):
    return jnp.append(c, x), c

try:
    jax.lax.scan(grow, jnp.zeros(1), jnp.ones(3))
except TypeError as error:
    {then}
print("on")
"""


def test_what_a_script_catches_itself_is_a_note():
    report = check_script(CAUGHT.format(then="print(type(error).__name__)"), fixes=False).report
    assert report.outcome is Outcome.OK
    assert report.codes == ("S103",)
    assert report.violations[0].severity is Severity.NOTE


def test_what_a_script_raises_again_in_other_words_is_an_error():
    report = check_script(CAUGHT.format(then="raise ValueError('mine') from error"), fixes=False).report
    assert report.outcome is not Outcome.OK
    assert report.violations[0].code == "S103"
    assert report.violations[0].severity is Severity.ERROR


@pytest.mark.parametrize(
    ("step", "xs", "codes"),
    [
        ("def step(c, x):\n    if x > 1:\n        c = c + x\n    return c, c", "[1.0, 2.0]", ("S110", "P201")),
        ("def step(c, x):\n    return c + 0.5", "jnp.ones(3)", ("S101", "S104")),
    ],
)
def test_a_fix_that_uncovers_the_next_fault_is_shown_and_both_together_run_clean(step, xs, codes):
    text = f"import jax\nimport jax.numpy as jnp\n\n{step}\n\nfinal, ys = jax.lax.scan(step, jnp.{'int32(0)' if 'S104' in codes else 'float32(0)'}, {xs})\n"
    checkup = check_script(text)
    assert checkup.report.codes == codes[:1]
    assert checkup.report.violations[0].fixes
    assert codes[1] in checkup.report.violations[0].fixes[0].remaining
    assert checkup.together is not None
    assert check_script(checkup.together.text, fixes=False).report.outcome is Outcome.OK
