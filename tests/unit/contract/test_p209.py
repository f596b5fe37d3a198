"""P209: a size depends on a traced argument."""

from __future__ import annotations

import pytest

from core.doctor.check import check_script
from core.doctor.sandboxed import sandboxed
from tests.unit.contract.two_languages import HEAD, line_of, names, only, silent

#: Script, the line of the size, and what `out` is once it is static.
MENDED = {
    "report": (
        "@jax.jit\ndef integrate(x, n):\n    return lax.scan(step, x, None, length=n)\ndef step(x, _):\n    x = x + 0.5 * x\n"
        "    return x, x\nout, ys = integrate(jnp.array(1.0), 3)\n",
        3,
        3.375,
    ),
    "unroll": (
        "def roll(x, u):\n    return lax.scan(lambda c, _: (0.5 * c, c), x, None, length=6, unroll=u)[0]\n"
        "out = jax.jit(roll)(64.0, 2)\n",
        2,
        1.0,
    ),
    "inside-a-step": (
        "def f(x, n):\n    def body(c, i):\n        return c + jnp.ones((n, 2)).sum() + i, None\n"
        "    return lax.scan(body, x, jnp.arange(3.0))[0]\ng = jax.jit(f)\nout = g(1.0, 3)\n",
        3,
        22.0,
    ),
    "method-slice": (
        "class M:\n    @partial(jax.jit, static_argnums=0)\n    def go(self, x, n):\n        m = 2 * n\n        return x[:m].sum()\n"
        "out = M().go(jnp.ones(8), 3)\n",
        5,
        6.0,
    ),
    "through-a-helper": (
        "def helper(n):\n    return jnp.arange(n).sum()\n@jax.jit\ndef f(count):\n    return helper(count * 2)\n"
        "out = f(jnp.int32(3))\n",
        2,
        15.0,
    ),
    "lambda": ("out = jax.jit(lambda x, n: x.reshape(n, -1))(jnp.ones(6), 2).sum()\n", 1, 6.0),
    "nnx": (
        "from flax import nnx\n@nnx.jit\ndef f(x, n):\n    return jnp.repeat(x, n).sum()\nout = f(jnp.ones(3), 2)\n",
        4,
        6.0,
    ),
    "one-more-name": (
        '@partial(jax.jit, static_argnames="a")\ndef f(x, a, n):\n    return jnp.linspace(0.0, x, n)[a]\nout = f(4.0, 1, 3)\n',
        3,
        2.0,
    ),
    "two-names": ("@jax.jit\ndef f(a, b):\n    return jnp.zeros((a, b)).size\nout = f(2, 3)\n", 3, 6.0),
    "random": (
        "@jax.jit\ndef f(key, n):\n    return jax.random.normal(key, (n,)).shape[0]\nout = f(jax.random.key(0), 4)\n",
        3,
        4.0,
    ),
    "in-a-function": (
        "def main():\n    @jax.jit\n    def go(x, n):\n        return lax.scan(lambda c, _: (2 * c, None), x, length=n)[0]\n"
        "    return go(1.0, 5)\nout = main()\n",
        4,
        32.0,
    ),
    "vmap-of-jit": (
        "def f(x, n):\n    return x + jnp.arange(n).sum()\nout = jax.vmap(jax.jit(f), in_axes=(0, None))(jnp.zeros(1), 3)[0]\n",
        2,
        3.0,
    ),
}


@pytest.mark.parametrize("case", MENDED)
def test_the_size_is_named_and_made_static(case: str) -> None:
    text, line, fixed = MENDED[case]
    violation, sources = only(text, "P209")
    assert not violation.silent
    assert line_of(violation) == line
    assert sources
    assert any(float(names(source)["out"]) == fixed for source in sources), sources


def test_functools_is_imported_where_it_is_not() -> None:
    text = "import jax, jax.numpy as jnp\n@jax.jit\ndef f(n):\n    return jnp.arange(n)\nout = f(3)\n"
    checkup = check_script(text, prepare=sandboxed)
    assert [v.code for v in checkup.report.violations] == ["P209"]
    (source,) = checkup.sources[0]
    assert source.startswith("import jax, jax.numpy as jnp\nfrom functools import partial\n")
    assert names(source)["out"].tolist() == [0, 1, 2]


def test_the_length_of_an_array_is_read_off_its_shape() -> None:
    text = (
        "rows = jnp.ones((5, 2))\n@jax.jit\ndef f(xs, n):\n    return lax.scan(lambda c, i: (c + xs[i].sum(), c), 0.0, jnp.arange(n))\n"
        "out, ys = f(rows, len(rows))\n"
    )
    _, sources = only(text, "P209")
    assert any("jnp.arange(xs.shape[0])" in source for source in sources)
    assert [float(names(source)["out"]) for source in sources] == [10.0, 10.0]


UNMENDED = {
    "x-of-the-step": ("lax.scan(lambda c, x: (c + jnp.arange(x).sum(), None), 0, jnp.arange(3))\n", "x of the step"),
    "carry-of-the-step": (
        "def step(n, _):\n    return n + jnp.zeros(n).size, None\nlax.scan(step, 1, None, 3)\n",
        "n of the step",
    ),
    "batched": ("jax.vmap(lambda n: jnp.arange(n))(jnp.array([3, 3]))\n", "a traced value"),
    "from-data": ("@jax.jit\ndef f(x):\n    return jnp.zeros(x.sum().astype(int))\nf(jnp.ones(3))\n", "comes from x"),
}


@pytest.mark.parametrize("case", UNMENDED)
def test_what_cannot_be_static_gets_no_fix(case: str) -> None:
    text, said = UNMENDED[case]
    violation, sources = only(text, "P209")
    assert said in violation.message
    assert sources == []


FINE = {
    "shape": "@jax.jit\ndef f(x, n):\n    return jnp.arange(x.shape[0]) + n\nout = f(jnp.ones(3), 3)\n",
    "static": '@partial(jax.jit, static_argnames="n")\ndef f(x, n):\n    return x + jnp.arange(n).sum()\nout = f(1.0, 3)\n',
    "closure": "n = 4\nout = jax.jit(lambda x: x + jnp.zeros(n))(1.0)\n",
    "fori": "out = jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c + i, 0))(4)\n",
    "dynamic-start": "out = jax.jit(lambda x, i: lax.dynamic_slice(x, (i,), (2,)))(jnp.ones(4), 1)\n",
    "values": "out = jax.jit(lambda x, n: jnp.full(3, n) + jnp.roll(x, n))(jnp.ones(3), 2)\n",
}


@pytest.mark.parametrize("text", FINE.values(), ids=FINE)
def test_sizes_that_are_known_are_fine(text: str) -> None:
    silent(text, "P209")


def test_a_slice_of_the_steps_own_values_is_left_to_another_rule() -> None:
    text = (
        "s = jnp.arange(5.0)\ndef step(c, i):\n    return c, s[i : i + 3].mean()\nlax.scan(step, 0.0, jnp.arange(3))\n"
    )
    codes = {v.code for v in check_script(HEAD + text, fixes=False).report.violations}
    assert "P209" not in codes
