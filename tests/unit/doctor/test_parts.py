"""The smaller parts: shapes beside lines, axis letters, state put back, `nnx.scan` described, costs counted."""

from __future__ import annotations

import ast
from collections import deque
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from core.contract.source import Source
from core.doctor import nnx_scan
from core.doctor.axes import axes_of
from core.doctor.cost import work
from core.doctor.script import run_script
from core.doctor.shapes import shapes_by_line
from core.doctor.still import undisturbed

HEAD = "import jax, jax.numpy as jnp\nfrom flax import nnx\nfrom jax import lax\n"


# --- shapes beside lines --------------------------------------------------------------------------------------------


def beside(body: str, **options: Any) -> dict[int, str]:
    record = run_script(Source(HEAD + body), **options).record
    return {
        line: ", ".join(f"{b.name} {b.type}".strip() for b in found) for line, found in shapes_by_line(record).items()
    }


def test_shapes_of_what_is_assigned_returned_and_received() -> None:
    body = (
        "def step(carry, x):\n    total, count = carry\n    total = total + x\n    return (total, count + 1), total\n"
        "init = (jnp.zeros(2), jnp.array(0))\ncarry, ys = lax.scan(step, init, jnp.ones((3, 2)))\nn = 3\nname = 'x'\n"
    )
    assert beside(body) == {
        4: "carry (float32[2], int32[]), x float32[2]",
        5: "total float32[2], count int32[]",
        6: "total float32[2]",
        7: "((float32[2], int32[]), float32[2])",
        8: "init (float32[2], int32[])",
        9: "carry (float32[2], int32[]), ys float32[3,2]",
    }


def test_shapes_without_values() -> None:
    assert beside("x = jnp.ones((10**5, 10**5))\ny = x @ x\n", abstract=True) == {
        4: "x float32[100000,100000]",
        5: "y float32[100000,100000]",
    }


def test_shapes_up_to_the_line_that_failed() -> None:
    assert beside("a = jnp.ones(2)\nb = a + jnp.ones(3)\nc = b\n") == {4: "a float32[2]"}


# --- axes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "letters"),
    [
        ("x = jnp.ones((B, T, F))\nscan(x)\n", {"xs": "BTF"}),
        ("x = jnp.ones(shape=(batch_size, seq_len))\nscan(x)\n", {"xs": "BT"}),
        ("x = jax.random.normal(key, (T, B, 3))\nscan(x)\n", {"xs": "TBF"}),
        ("x = y.reshape(B, T, -1)\nscan(x)\n", {"xs": "BTF"}),
        ("x = load()\nB, T, F = x.shape\nscan(x)\n", {"xs": "BTF"}),
        ("x = load()\nbatch, time, _ = x.shape\nscan(x)\n", {"xs": "BTF"}),
        ("x = jnp.ones((B, N, F))\nscan(x)\n", {}),
        ("x = jnp.ones((num_batches, T, F))\nscan(x)\n", {}),
        ("x = jnp.ones((B, T, F)).swapaxes(0, 1)\nscan(x)\n", {}),
        ("x = jnp.ones((B, T, F))\nx = jnp.swapaxes(x, 0, 1)\nscan(x)\n", {}),
        ("x = jnp.ones((B, T))\nscan(x)\n", {"xs": "BT"}),
        ("x = jnp.ones((2, 3, 4))\nscan(x)\n", {}),
    ],
)
def test_letters_that_a_script_gives(body: str, letters: dict[str, str]) -> None:
    source = Source(body)
    call = next(n for n in ast.walk(source.tree) if isinstance(n, ast.Call) and source.text_of(n.func) == "scan")
    rank = max((len(v) for v in letters.values()), default=3)
    assert axes_of(source, call.args[0], np.ones((2,) * rank)) == letters


# --- state put back -------------------------------------------------------------------------------------------------


class Own:
    pass


Own.__module__ = "__main__"  # as a class of a script


def test_everything_a_step_can_reach_is_put_back() -> None:
    own = Own()
    own.count = 0  # type: ignore[attr-defined]
    names: dict[str, Any] = {
        "log": [1], "seen": {"a": [1]}, "kinds": {1}, "queue": deque([1]), "buffer": np.zeros(2), "own": own, "n": 0,
    }  # fmt: skip
    text = "def make():\n    hidden = [0]\n    def step():\n        hidden.append(1)\n        return hidden\n    return step\nstep = make()\n"
    exec(compile(text, "<script>", "exec"), names)
    same = {k: names[k] for k in ("log", "seen", "own")}
    with undisturbed(names, filename="<script>"):
        names["log"].append(2)
        names["seen"]["a"].append(2)
        names["seen"]["b"] = 1
        names["kinds"].add(2)
        names["queue"].append(2)
        names["buffer"][0] = 7.0
        own.count = 5  # type: ignore[attr-defined]
        names["n"] = 1
        names["new"] = 1
        names["step"]()
    assert all(names[k] is v for k, v in same.items())
    assert names["log"] == [1]
    assert names["seen"] == {"a": [1]}
    assert names["kinds"] == {1}
    assert names["queue"] == deque([1])
    assert names["buffer"].tolist() == [0.0, 0.0]
    assert own.count == 0  # type: ignore[attr-defined]
    assert names["n"] == 0
    assert "new" not in names
    assert names["step"]() == [0, 1]


def test_what_was_not_changed_is_not_touched() -> None:
    class Picky(list[int]):
        def clear(self) -> None:
            raise AssertionError("touched")

    names: dict[str, Any] = {"log": Picky([1]), "loop": []}
    names["loop"].append(names["loop"])
    with undisturbed(names, filename="<script>"):
        pass
    assert names["log"] == [1]


# --- nnx.scan -------------------------------------------------------------------------------------------------------


def test_a_call_under_nnx_scan_in_the_words_of_lax_scan() -> None:
    def f(model: Any, x: Any, h: Any) -> Any:
        return x, h + x

    options = {"in_axes": (None, 1, nnx.Carry), "out_axes": (0, nnx.Carry), "reverse": True}
    described = nnx_scan.describe(f, options, (jnp.ones(2), jnp.ones((3, 4)), jnp.zeros(3)))
    assert described is not None
    assert (described.carry, described.scanned, described.out, described.reverse) == (2, (1,), 1, True)
    assert described.xs.shape == (4, 3)
    new, y = described.step(jnp.zeros(3), jnp.ones(3))
    assert new.tolist() == y.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("options", "args"),
    [
        ({"in_axes": nnx.Carry, "out_axes": nnx.Carry}, (1.0,)),
        ({"in_axes": (0, 0)}, (jnp.ones(3), jnp.ones(3))),
        ({"in_axes": (nnx.StateAxes({...: 0}), nnx.Carry)}, (nnx.Linear(2, 2, rngs=nnx.Rngs(0)), 1.0)),
        ({}, (1.0, jnp.ones(3), 2.0)),
    ],
)
def test_what_a_plain_scan_cannot_say_is_left_alone(options: dict[str, Any], args: tuple[Any, ...]) -> None:
    assert nnx_scan.describe(lambda *a: a, options, args) is None


@pytest.mark.parametrize(
    "body",
    [
        "@nnx.scan(in_axes=(nnx.Carry, 0), out_axes=(nnx.Carry, 0))\ndef run(c, x):\n    return c + x, x\nrun(jnp.int32(0), jnp.ones(3))\n",
        "def step(c, x):\n    return c + x, x\nnnx.scan(step)(jnp.int32(0), jnp.ones(3))\n",
        "class M(nnx.Module):\n    def __init__(self, rngs):\n        self.w = nnx.Linear(2, 2, rngs=rngs)\n"
        "    def __call__(self, c, x):\n        return self.w(c) + x, x\n"
        "model = M(nnx.Rngs(0))\nrun = nnx.scan(lambda m, c, x: m(c, x), in_axes=(None, nnx.Carry, 0), out_axes=(nnx.Carry, 0))\n"
        "run(model, jnp.zeros(2, jnp.bfloat16), jnp.ones((3, 2)))\n",
    ],
)
def test_a_carry_that_changes_its_dtype_under_nnx_scan(body: str) -> None:
    out = run_script(Source(HEAD + body))
    assert not out.problems
    assert [f.rule.code for look in out.looks for f in look.diagnosis.found] == ["S104"]
    assert out.record.failure is not None
    assert out.record.failure.explained


# --- cost -----------------------------------------------------------------------------------------------------------


def test_costs_are_counted_through_loops_and_products() -> None:
    def step(c: Any, x: Any) -> Any:
        inner, _ = jax.lax.scan(lambda d, _: (d + 1.0, None), c, None, length=10)
        return inner, None

    plain = work(jax.make_jaxpr(lambda a: a @ a)(jnp.ones((4, 4))))
    assert plain == 4 * 4 * 4
    looped = work(jax.make_jaxpr(lambda c: jax.lax.scan(step, c, None, length=5)[0])(jnp.ones(3)))
    assert looped == 5 * 10 * 3
    branches = jax.make_jaxpr(lambda c: jax.lax.cond(c.sum() > 0, lambda v: v + 1.0, lambda v: v, c))(jnp.ones(100))
    assert 100 <= work(branches) <= 110
