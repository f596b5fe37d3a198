"""Each kind of repair as text: applied to the script, run again, and exactly this line changed."""

from __future__ import annotations

import difflib

import pytest

from core.doctor.check import check_script

HEAD = "import jax, jax.numpy as jnp\nfrom flax import nnx\nfrom jax import lax\n"
LSTM = "cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))\n"
STEP = "def step(c, x):\n    return c + x, c\n"

#: code, script, and the new text of the changed lines of one of its verified fixes.
CASES: dict[str, tuple[str, str, list[str]]] = {
    # init_dtype
    "dtype-argument": ("S104", STEP + "lax.scan(step, jnp.zeros(2, int), jnp.ones((3, 2)))", ["lax.scan(step, jnp.zeros(2, jnp.float32), jnp.ones((3, 2)))"]),
    "dtype-keyword": ("S104", STEP + "lax.scan(step, jnp.zeros(2, dtype=int), jnp.ones((3, 2)))", ["lax.scan(step, jnp.zeros(2, dtype=jnp.float32), jnp.ones((3, 2)))"]),
    "dtype-constructor": ("S104", STEP + "lax.scan(step, jnp.int32(0), jnp.ones(3))", ["lax.scan(step, jnp.float32(0), jnp.ones(3))"]),
    "dtype-astype": ("S104", STEP + "i = jnp.arange(2).astype(jnp.int32)\nlax.scan(step, i, jnp.ones((3, 2)))", ["i = jnp.arange(2).astype(jnp.float32)"]),
    "dtype-of-a-sum": ("S104", STEP + "a = jnp.arange(2)\nlax.scan(step, a + 1, jnp.ones((3, 2)))", ["lax.scan(step, (a + 1).astype(jnp.float32), jnp.ones((3, 2)))"]),
    "dtype-in-a-made-tuple": (
        "S104",
        "def make():\n    return jnp.zeros(2, int) + 0, jnp.zeros(2)\ndef step(c, x):\n    return (c[0] + x, c[1]), x\ninit = make()\nlax.scan(step, init, jnp.ones((3, 2)))",
        ["lax.scan(step, (init[0].astype(jnp.float32), init[1]), jnp.ones((3, 2)))"],
    ),
    "dtype-in-a-made-dict": (
        "S104",
        "def make():\n    return {'a': jnp.zeros(2, int) + 0}\ndef step(c, x):\n    return {'a': c['a'] + x}, x\ninit = make()\nlax.scan(step, init, jnp.ones((3, 2)))",
        ["lax.scan(step, {**init, 'a': init['a'].astype(jnp.float32)}, jnp.ones((3, 2)))"],
    ),
    "dtype-in-a-named-tuple": (
        "S104",
        "from typing import NamedTuple\nclass S(NamedTuple):\n    n: jax.Array\ndef make():\n    return S(jnp.zeros((), int) + 0)\ndef step(s, x):\n    return S(s.n + x), x\ns0 = make()\nlax.scan(step, s0, jnp.ones(3))",
        ["lax.scan(step, s0._replace(n=s0.n.astype(jnp.float32)), jnp.ones(3))"],
    ),
    "weak-number": ("S105", STEP + "init = 0\nlax.scan(step, init, jnp.array([100, 100], jnp.int8))", ["init = jnp.int32(0)"]),
    # step_cast
    "cast-what-is-returned": (
        "S104",
        "w = jnp.ones(2)\ndef step(h, x):\n    return h * w + x, h\nlax.scan(step, jnp.zeros(2, jnp.bfloat16), jnp.ones((3, 2)))",
        ["    return (h * w + x).astype(jnp.bfloat16), h"],
    ),
    "cast-what-a-call-returns": (
        "S104",
        "w = jnp.ones(2)\ndef inner(h, x):\n    return h * w + x, h\ndef step(h, x):\n    return inner(h, x)\nlax.scan(step, jnp.zeros(2, jnp.bfloat16), jnp.ones((3, 2)))",
        ["    new_carry, y = inner(h, x)", "    return new_carry.astype(jnp.bfloat16), y"],
    ),
    # shape
    "init-shape": ("S103", STEP + "lax.scan(step, 0.0, jnp.ones((3, 2)))", ["lax.scan(step, jnp.zeros((2,)), jnp.ones((3, 2)))"]),
    "init-shape-argument": ("S103", STEP + "lax.scan(step, jnp.zeros(1), jnp.ones((3, 4)))", ["lax.scan(step, jnp.zeros((4,)), jnp.ones((3, 4)))"]),
    "keepdims": (
        "S103",
        "def step(c, x):\n    c = c + jnp.sum(x, keepdims=True)\n    return c, c\nlax.scan(step, jnp.array(0.0), jnp.ones((3, 2)))",
        ["    return jnp.reshape(c, ()), c"],
    ),
    "keepdims-left-out": (
        "S103",
        "def step(c, x):\n    total = jnp.sum(c + x, keepdims=True)\n    return total, total\nlax.scan(step, jnp.array(0.0), jnp.ones((3, 2)))",
        ["    total = jnp.sum(c + x)"],
    ),
    "reshape-what-is-returned": (
        "S103",
        "def step(c, x):\n    return c[None] + x, c\nlax.scan(step, jnp.zeros(2), jnp.ones((3, 2)))",
        ["    return jnp.reshape(c[None] + x, (2,)), c"],
    ),
    # structure
    "none-becomes-zeros": ("S102", "def step(c, x):\n    return (c[0] + x, x), x\nlax.scan(step, (0.0, None), jnp.ones((3, 2))[:, 0])", ["lax.scan(step, (0.0, jnp.array(0.0)), jnp.ones((3, 2))[:, 0])"]),
    "keep-a-key": ("S102", "def step(s, x):\n    return {'a': s['a'] + x}, x\nlax.scan(step, {'a': 0.0, 'b': 1.0}, jnp.ones(3))", ["    return {'a': s['a'] + x, 'b': s['b']}, x"]),
    "rename-a-key": ("S102", "def step(s, x):\n    return {'total': s['a'] + x}, x\nlax.scan(step, {'a': 0.0}, jnp.ones(3))", ["    return {'a': s['a'] + x}, x"]),
    "drop-a-key": ("S102", "def step(s, x):\n    return {'a': s['a'] + x, 'n': x}, x\nlax.scan(step, {'a': 0.0}, jnp.ones(3))", ["    return {'a': s['a'] + x}, x"]),
    "a-key-more-in-init": ("S102", "def step(s, x):\n    return {'a': s['a'] + x, 'n': x}, x\nlax.scan(step, {'a': 0.0}, jnp.ones(3))", ["lax.scan(step, {'a': 0.0, 'n': jnp.array(0.0)}, jnp.ones(3))"]),
    "list-for-tuple": ("S102", "def step(s, x):\n    a, b = s\n    return [a + x, b], x\nlax.scan(step, (0.0, 0.0), jnp.ones(3))", ["    return (a + x, b), x"]),
    "carry-alone": ("S102", "def step(s, x):\n    a, b = s\n    return a + x, b\nlax.scan(step, (0.0, 0.0), jnp.ones(3))", ["    return (a + x, b), None"]),
    # the pair
    "no-y": ("S101", "def step(c, x):\n    return c + x\nlax.scan(step, 0.0, jnp.ones(3))", ["    return c + x, None"]),
    "twice": ("S101", "def step(c, x):\n    return c + x\nlax.scan(step, 0.0, jnp.ones(3))", ["    new_carry = c + x", "    return new_carry, new_carry"]),
    "lambda": ("S101", "lax.scan(lambda c, x: c + x, 0.0, jnp.ones(3))", ["lax.scan(lambda c, x: (c + x, None), 0.0, jnp.ones(3))"]),
    "missing-return": ("S101", "def step(c, x):\n    c = c + x\nlax.scan(step, 0.0, jnp.ones(3))", ["    return c, None"]),
    "three-things": ("S101", "def step(s, x):\n    a, b = s\n    return a + x, b, x\nlax.scan(step, (0.0, 0.0), jnp.ones(3))", ["    return (a + x, b), x"]),
    "dict-for-pair": ("S101", "def step(c, x):\n    return {'carry': c + x, 'y': x}\nlax.scan(step, 0.0, jnp.ones(3))", ["    return c + x, x"]),
    # xs, length, unroll
    "scalar-in-xs": ("S106", "def step(c, x):\n    return c + x[0] * x[1], c\nlax.scan(step, 0.0, (jnp.ones(3), 2.0))", ["lax.scan(step, 0.0, (jnp.ones(3), jnp.full(3, 2.0)))"]),
    "number-for-length": ("S106", "def step(c, _):\n    return c + 1, c\nlax.scan(step, 0, 5)", ["lax.scan(step, 0, None, length=5)"]),
    "cut-to-the-shortest": ("S107", "def step(c, x):\n    return c + x[0] + x[1], c\na, b = jnp.ones(4), jnp.ones(5)\nlax.scan(step, 0.0, (a, b))", ["a, b = jnp.ones(4), jnp.ones(5)[:4]"]),
    "length-from-xs": ("S108", STEP + "lax.scan(step, 0.0, jnp.ones(4), length=3)", ["lax.scan(step, 0.0, jnp.ones(4))"]),
    "length-by-position": ("S108", STEP + "lax.scan(step, 0.0, jnp.ones(4), 3, True)", ["lax.scan(step, 0.0, jnp.ones(4), None, True)"]),
    "cut-to-length": ("S108", STEP + "lax.scan(step, 0.0, jnp.ones(4), length=3)", ["lax.scan(step, 0.0, jnp.ones(4)[:3], length=3)"]),
    "nothing-to-scan": ("S109", "def step(c, _):\n    return c + 1.0, c\nlax.scan(step, 0.0, None)", ["lax.scan(step, 0.0, None, length=1)"]),
    "range": ("S110", STEP + "xs = list(range(5))\nlax.scan(step, 0, xs)", ["xs = jnp.arange(5)"]),
    "list-of-numbers": ("S110", STEP + "xs = [1.0, 2.5]\nlax.scan(step, 0.0, xs)", ["xs = jnp.asarray([1.0, 2.5])"]),
    "list-of-rows": ("S110", STEP + "rows = [jnp.ones(3), jnp.ones(3)]\nlax.scan(step, jnp.zeros(3), rows)", ["rows = jnp.stack([jnp.ones(3), jnp.ones(3)])"]),
    "negative-length": ("S116", "def step(c, _):\n    return c + 1.0, c\nlax.scan(step, 0.0, length=-3)", ["lax.scan(step, 0.0, length=3)"]),
    # cells
    "pair-of-one": ("L301", LSTM + "h = jnp.ones((2, 4))\ncarry, y = cell(h, jnp.ones((2, 3)))", ["carry, y = cell((jnp.zeros_like(h), h), jnp.ones((2, 3)))"]),
    "swapped-return": (
        "L302",
        LSTM + "c, h = cell.initialize_carry((2, 3), nnx.Rngs(0))\nh = h + 1.0\ndef step(carry, x):\n    (c, h), y = cell(carry, x)\n    return (h, c), y\nlax.scan(step, (c, h), jnp.ones((5, 2, 3)))",
        ["    return (c, h), y"],
    ),
    "swapped-init": (
        "L302",
        LSTM + "c, h = cell.initialize_carry((2, 3), nnx.Rngs(0))\nh = h + 1.0\n(c, h), y = cell((c, h), jnp.ones((2, 3)))\ndef step(carry, x):\n    return cell(carry, x)\nlax.scan(step, (h, c), jnp.ones((5, 2, 3)))",
        ["lax.scan(step, (c, h), jnp.ones((5, 2, 3)))"],
    ),
    "no-batch": ("L303", LSTM + "carry = (jnp.zeros(4), jnp.zeros(4))\nfor x in jnp.ones((5, 2, 3)):\n    carry, y = cell(carry, x)", ["carry = (jnp.zeros((2, 4)), jnp.zeros((2, 4)))"]),
    "wrong-width": ("L304", LSTM + "carry = (jnp.zeros((2, 5)), jnp.zeros((2, 5)))\ncell(carry, jnp.ones((2, 3)))", ["carry = (jnp.zeros((2, 4)), jnp.zeros((2, 4)))"]),
    "input-width": ("L305", LSTM + "carry = cell.initialize_carry((2, 5), nnx.Rngs(0))\ncell(carry, jnp.ones((2, 5)))", ["cell = nnx.LSTMCell(5, 4, rngs=nnx.Rngs(0))"]),
    "carry-without-rngs": ("L306", LSTM + "cell.initialize_carry((2, 3))", ["cell.initialize_carry((2, 3), rngs=nnx.Rngs(1))"]),
    "carry-with-a-key": ("L306", LSTM + "cell.initialize_carry((2, 3), jax.random.key(1))", ["cell.initialize_carry((2, 3), nnx.Rngs(jax.random.key(1)))"]),
    "shape-second": ("L306", LSTM + "cell.initialize_carry(nnx.Rngs(0), (2, 3))", ["cell.initialize_carry((2, 3), nnx.Rngs(0))"]),
    "cell-without-rngs": ("L307", "cell = nnx.LSTMCell(3, 4)", ["cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))"]),
    "cell-with-a-number": ("L307", "cell = nnx.LSTMCell(3, 4, rngs=0)", ["cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))"]),
    "rngs-by-position": ("L307", "cell = nnx.LSTMCell(3, 4, nnx.Rngs(0))", ["cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))"]),
    "shape-of-a-sequence": (
        "L308",
        LSTM + "x = jnp.ones((5, 2, 3))\ncarry = cell.initialize_carry(x.shape, nnx.Rngs(0))\ndef step(c, x):\n    return cell(c, x)\nlax.scan(step, carry, x)",
        ["carry = cell.initialize_carry(x.shape[1:], nnx.Rngs(0))"],
    ),
    "carry-dtype": ("L314", "cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))\nh = jnp.zeros((2, 4), jnp.float16)\nh, y = cell(h, jnp.ones((2, 3)))", ["h = jnp.zeros((2, 4), jnp.float32)"]),
    "cell-in-an-rnn": ("L305", "rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)))\ny = rnn(jnp.ones((2, 5, 7)))", ["rnn = nnx.RNN(nnx.LSTMCell(7, 4, rngs=nnx.Rngs(0)))"]),
    # in traces
    "under-jit": ("S104", "@jax.jit\ndef run(x):\n    return lax.scan(lambda c, x: (c + x, c), jnp.int32(0), x)\nrun(jnp.ones(3))", ["    return lax.scan(lambda c, x: (c + x, c), jnp.float32(0), x)"]),
    "under-vmap": (
        "S104",
        "def run(w):\n    def step(c, x):\n        return c * w + x, c\n    return lax.scan(step, jnp.int32(0), jnp.ones(3))\njax.vmap(run)(jnp.ones(2))",
        ["    return lax.scan(step, jnp.float32(0), jnp.ones(3))"],
    ),
    "nested": (
        "S104",
        "def outer(c, x):\n    def inner(d, y):\n        return d + y * 0.5, d\n    d, _ = lax.scan(inner, jnp.int32(0), x)\n    return c + d, d\nlax.scan(outer, 0.0, jnp.ones((3, 2)))",
        ["    d, _ = lax.scan(inner, jnp.float32(0), x)"],
    ),
}  # fmt: skip


def changed(before: str, after: str) -> list[str]:
    lines = difflib.ndiff(before.split("\n"), after.split("\n"))
    return [line[2:] for line in lines if line.startswith("+ ")]


@pytest.mark.parametrize("name", CASES)
def test_the_fix_reads_like_this(name: str) -> None:
    code, body, want = CASES[name]
    script = HEAD + body + "\n"
    checkup = check_script(script)
    assert checkup.run is not None
    assert not checkup.run.problems
    pairs = zip(checkup.report.violations, checkup.sources, strict=True)
    offered = [changed(script, source) for violation, sources in pairs if violation.code == code for source in sources]
    assert want in offered, (checkup.report.codes, offered)


def test_names_that_are_not_imported_are_imported() -> None:
    script = "import jax.numpy\nfrom jax.lax import scan\nscan(lambda c, x: (c + x, c), jax.numpy.zeros((), int), jax.numpy.ones(3))\n"
    (violation,) = check_script(script, fixes=True).sources
    assert changed(script, violation[0]) == [
        "scan(lambda c, x: (c + x, c), jax.numpy.zeros((), jax.numpy.float32), jax.numpy.ones(3))"
    ]
    script = "import numpy as np\nfrom jax.lax import scan\nscan(lambda c, x: (c + x, c), np.zeros((), np.int32), np.ones(3, np.float32))\n"
    (violation,) = check_script(script, fixes=True).sources
    assert "import jax.numpy as jnp" in violation[0].split("\n")
    assert "jnp.float32" in violation[0]


def test_names_in_use_are_not_taken() -> None:
    script = HEAD + (
        "w = jnp.ones(2)\ndef inner(h, x):\n    return h * w + x, h\ndef step(new_carry, y):\n    return inner(new_carry, y)\n"
        "lax.scan(step, jnp.zeros(2, jnp.bfloat16), jnp.ones((3, 2)))\n"
    )
    sources = [s for sources in check_script(script).sources for s in sources]
    assert any("new_carry_, y_ = inner(new_carry, y)" in s for s in sources)


def test_64_bits_are_switched_on_for_the_whole_script() -> None:
    script = (
        "import jax\nimport numpy as np\ninit = np.float64(1.0)\n"
        "c, ys = jax.lax.scan(lambda t, dt: (t + dt, t), init, np.full(1000, 1e-8))\n"
    )
    checkup = check_script(script)
    assert "N504" in checkup.report.codes
    changes = [changed(script, s) for sources in checkup.sources for s in sources]
    assert ['jax.config.update("jax_enable_x64", True)'] in changes
    assert [v.proof.after for v in checkup.report.violations if v.proof is not None] == [0.0]


def test_two_faults_are_fixed_together() -> None:
    script = HEAD + STEP + "lax.scan(step, jnp.int32(0), jnp.ones(3))\nlax.scan(step, 0.0, jnp.ones(4), length=3)\n"
    checkup = check_script(script)
    assert checkup.report.violations[0].fixes[0].remaining == ("S108",)
    assert checkup.together is not None
    again = check_script(checkup.together.text)
    assert not again.report.broken
    assert changed(script, checkup.together.text) == [
        "lax.scan(step, jnp.float32(0), jnp.ones(3))",
        "lax.scan(step, 0.0, jnp.ones(4))",
    ]
