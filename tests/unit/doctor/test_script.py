from __future__ import annotations

import ast
import contextlib
import io
from typing import Any

import jax
import numpy as np
import pytest

from core.base.places import Span
from core.contract.script_facts import ScriptFacts
from core.contract.source import Source
from core.contract.subject import MISSING
from core.contract.trace import Raised
from core.doctor.instrument import Prepare, trusted
from core.doctor.sandboxed import sandboxed
from core.doctor.script import ScriptRun, run_script

HEAD = "import jax, jax.numpy as jnp\nfrom flax import nnx\nfrom jax import lax\n"
BY_LANGUAGE = pytest.mark.parametrize("prepare", [trusted, sandboxed], ids=["python", "sandbox"])


def run(body: str, prepare: Prepare = trusted, **options: Any) -> ScriptRun:
    out = run_script(Source(HEAD + body), prepare=prepare, **options)
    assert not out.problems
    return out


def code_at(run: ScriptRun, span: Span) -> str:
    line = run.record.source.lines[span.line - 1]
    return line[span.col : span.end_col if span.end_line == span.line else len(line)]


# --- scans ----------------------------------------------------------------------------------------------------------


@BY_LANGUAGE
def test_a_scan_is_kept_with_its_trajectory(prepare: Prepare) -> None:
    out = run("c, ys = lax.scan(lambda c, x: (c + x, c), 1.0, jnp.arange(3.0))\nprint(c, ys)\n", prepare)
    (site,), (look,) = out.record.scans, out.looks
    assert look.result is not None
    assert look.result.carries[0].values.tolist() == [1.0, 1.0, 2.0, 4.0]
    assert np.asarray(site.result[0]) == 4.0
    assert np.asarray(site.result[1]).tolist() == [1.0, 1.0, 2.0]
    assert out.record.stdout == "4.0 [1. 1. 2.]\n"
    assert not site.traced


def test_a_trajectory_that_is_too_large_is_not_kept_and_the_scan_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    from core.base.limits import LIMITS, Limit
    from core.doctor import watch

    monkeypatch.setattr(watch, "LIMITS", {**LIMITS, "kept": Limit("kept", 10, "elements", "as a test")})
    out = run(
        "for i in range(2):\n    c, ys = lax.scan(lambda c, x: (c + x, c), 1.0, jnp.arange(5.0) + i)\nprint(c, ys.shape)\n"
    )
    assert [look.result is not None for look in out.looks] == [True, False]
    assert out.record.stdout == "16.0 (5,)\n"


def test_reversed_and_unrolled_scans_have_the_values_of_jax() -> None:
    body = (
        "def step(c, x):\n    return jnp.sin(c) + x, c\n"
        "xs = jnp.linspace(0.0, 1.0, 7)\n"
        "a = lax.scan(step, 0.5, xs, reverse=True)\nb = lax.scan(step, 0.5, xs, unroll=3)\n"
    )
    out = run(body)
    names: dict[str, Any] = {}
    exec(HEAD + body, names)
    for name, look in zip("ab", out.looks, strict=True):
        for mine, plain in zip(jax.tree.leaves(out.record.names[name]), jax.tree.leaves(names[name]), strict=True):
            assert np.array_equal(mine, plain)
        assert look.result is not None
        assert np.array_equal(look.result.final, names[name][0])
    assert out.looks[0].result is not None
    assert out.looks[0].result.order[0] == 6


@pytest.mark.parametrize(
    "use",
    ["jax.jit(run)(jnp.ones(2))", "jax.vmap(run)(jnp.ones((3, 2)))", "jax.grad(lambda w: run(w).sum())(jnp.ones(2))"],
)
def test_a_scan_in_a_trace_is_checked_while_its_tracers_live(use: str) -> None:
    body = (
        "def run(w):\n    scale = w * 2.0\n    def step(c, x):\n        return c + scale * x, c\n"
        f"    return lax.scan(step, jnp.zeros(2), jnp.ones((4, 2)))[0]\nprint({use})\n"
    )
    out = run(body)
    (site,), (look,) = out.record.scans, out.looks
    assert site.traced
    assert not isinstance(site.facts.trace, Raised)
    assert str(site.facts.carry_in[0]) == "float32[2]"
    assert not look.diagnosis.found
    assert look.result is None


def test_a_nested_scan_knows_its_parent() -> None:
    out = run(
        "def outer(c, row):\n    d, _ = lax.scan(lambda d, x: (d + x, d), 0.0, row)\n    return c + d, d\n"
        "lax.scan(outer, 0.0, jnp.ones((3, 2)))\n"
    )
    outside, inside = out.record.scans
    assert outside.parent is None
    assert inside.parent == outside.index
    assert inside.traced


def test_scans_of_libraries_are_left_alone() -> None:
    out = run("rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)))\nprint(rnn(jnp.ones((2, 5, 3))).shape)\n")
    assert not out.record.scans
    assert out.record.events.steps


def test_a_scan_in_a_loop_is_looked_at_a_few_times_and_runs_every_time() -> None:
    out = run(
        "c = jnp.array(0.0)\nfor i in range(9):\n    c, _ = lax.scan(lambda c, x: (c + x, None), c, jnp.ones(2))\nprint(c)\n"
    )
    assert out.record.stdout == "18.0\n"
    assert 3 <= len(out.record.scans) <= 4  # the first carry is weakly typed, the next ones are not


@pytest.mark.parametrize(
    "call", ["lax.scan(f=step, init=0.0, xs=jnp.ones(3))", "scan2(0.0, jnp.ones(3))", "lax.scan(*args)"]
)
def test_other_ways_to_call_it(call: str) -> None:
    out = run(
        "from functools import partial\ndef step(c, x):\n    return c + x, c\n"
        f"scan2 = partial(lax.scan, step)\nargs = (step, 0.0, jnp.ones(3))\nprint({call}[0])\n"
    )
    assert out.record.stdout == "3.0\n"
    assert len(out.record.scans) == 1


def test_wrong_arguments_raise_as_in_jax() -> None:
    out = run("lax.scan(lambda c, x: (c, x), 0.0, jnp.ones(3), lengths=3)\n")
    assert isinstance(out.record.failure and out.record.failure.error, TypeError)
    assert not out.record.scans


# --- what a look leaves behind --------------------------------------------------------------------------------------


@BY_LANGUAGE
def test_our_looks_leave_no_mark(prepare: Prepare) -> None:
    """The step is traced by JAX once: it appends, counts and prints once, however often we look at it."""
    body = (
        "log, seen, n = [], {}, 0\n"
        "def make():\n    calls = 0\n    def step(c, x):\n        nonlocal calls\n        global n\n"
        "        calls += 1\n        n += 1\n        log.append(c)\n        seen[calls] = x\n        print('traced', calls)\n"
        "        return c + x, c\n    return step, lambda: calls\n"
        "step, count = make()\n"
        "lax.scan(step, 0.0, jnp.ones(3))\n"
        "print(len(log), len(seen), n, count())\n"
    )
    assert run(body, prepare).record.stdout == "traced 1\n1 1 1 1\n"


@BY_LANGUAGE
@pytest.mark.parametrize(
    "use",
    ["jax.jit(run)(0.0)", "jax.vmap(run)(jnp.ones(2))", "lax.scan(lambda c, x: (run(c), None), 0.0, None, length=2)"],
)
def test_our_looks_do_not_stand_in_for_a_trace_of_the_scripts_own(use: str, prepare: Prepare) -> None:
    body = (
        "log = []\n@jax.jit\ndef helper(c):\n    log.append(c)\n    print('helper')\n    return c + 1.0\n"
        "def step(c, x):\n    log.append(x)\n    print('traced')\n    return helper(c) + x, None\n"
        f"def run(c):\n    return lax.scan(step, c, jnp.ones(3))[0]\n{use}\nprint(len(log))\n"
    )
    out = run(body, prepare)
    plain: dict[str, Any] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(HEAD + body, plain)
    assert out.record.stdout == printed.getvalue()
    assert out.record.leaks


def test_two_runs_share_nothing() -> None:
    body = "class Box:\n    n = 0\nBox.n += 1\nprint(Box.n)\n"
    assert [run(body).record.stdout for _ in range(2)] == ["1\n", "1\n"]


def test_64_bits_end_with_the_script() -> None:
    out = run(
        "jax.config.update('jax_enable_x64', True)\nc, _ = lax.scan(lambda c, x: (c + x, c), 0.0, jnp.ones(3))\nprint(c.dtype)\n"
    )
    assert out.record.stdout == "float64\n"
    assert out.record.x64
    assert not jax.config.jax_enable_x64  # type: ignore[attr-defined]


def test_the_real_scan_is_back_afterwards() -> None:
    real = jax.lax.scan
    run("raise ValueError('no')\n")
    assert jax.lax.scan is real


# --- what it raised -------------------------------------------------------------------------------------------------


@BY_LANGUAGE
@pytest.mark.parametrize(
    ("line", "place", "operands"),
    [
        (
            "y = jnp.ones(3) + jnp.ones(4)",
            "jnp.ones(3) + jnp.ones(4)",
            [("jnp.ones(3)", "float32[3]"), ("jnp.ones(4)", "float32[4]")],
        ),
        ("if x > 1: pass", "x > 1", [("x", "float32[]"), ("1", "int")]),
        ("y = 2.0 * float(x)", "float(x)", [("x", "float32[]")]),
        ("y = [1, 2][x]", "[1, 2][x]", [("[1, 2]", "[int, int]"), ("x", "float32[]")]),
        ("y = table[:n]", "table[:n]", [("table", "float32[3]"), (":n", "slice(None, int32[], None)")]),
    ],
)
def test_the_smallest_expression_that_failed(line: str, place: str, operands: list[Any], prepare: Prepare) -> None:
    body = f"table = jnp.ones(3)\ndef step(c, x):\n    n = jnp.int32(x)\n    {line}\n    return c, x\nlax.scan(step, 0.0, jnp.ones(3))\n"
    out = run(body, prepare)
    failure = out.record.failure
    assert failure is not None
    assert code_at(out, failure.span) == place
    assert [(o.text, o.type) for o in failure.operands] == operands
    assert failure.in_step
    assert failure.scan == 0
    assert len(failure.frames) == 2


def test_a_failure_in_the_module_has_its_place() -> None:
    out = run("x = 1\ny = x.nothing\n")
    assert out.record.failure is not None
    assert code_at(out, out.record.failure.span) == "x.nothing"
    assert out.record.failure.scan is None


def test_an_assertion_that_fails_is_a_failure() -> None:
    out = run("x = jnp.ones(2)\nassert x.sum() == 3, 'wrong'\n")
    assert out.record.failure is not None
    assert isinstance(out.record.failure.error, AssertionError)
    assert out.record.failure.span.line == 5


def test_a_script_that_leaves_early_has_not_failed() -> None:
    out = run("print(1)\nraise SystemExit\nprint(2)\n")
    assert out.record.failure is None
    assert out.record.stdout == "1\n"


def test_deep_recursion_is_a_failure_like_any_other() -> None:
    out = run("def f(n):\n    return f(n + 1)\nf(0)\n")
    assert out.record.failure is not None
    assert isinstance(out.record.failure.error, RecursionError)


# --- facts for rules ------------------------------------------------------------------------------------------------


@BY_LANGUAGE
def test_calls_by_their_public_names(prepare: Prepare) -> None:
    body = (
        "import numpy as np\nfrom jax import random as jr\n"
        "key = jr.key(0)\nlog = []\n"
        "def step(c, x):\n    log.append(c)\n    print('x', x)\n    return c + jr.normal(key), np.pi * x\n"
        "lax.scan(step, 0.0, jnp.ones(3))\n"
        "y = jnp.take(jnp.arange(3), 7, axis=0)\nz = y.astype(float)\nw = jnp.zeros(3).at[0].set(1.0)\n"
        "cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))\nh = cell.initialize_carry((2, 3), nnx.Rngs(0))\nh, _ = cell(h, jnp.ones((2, 3)))\n"
    )
    facts = ScriptFacts(run(body, prepare).record)
    by = {call.name: call for call in facts.record.calls}
    assert {"jax.random.key", "jax.random.normal", "jax.lax.scan", "jax.numpy.take", "list.append"} <= set(by)
    assert {"builtins.print", "Array.astype", "Array.at.set", "flax.nnx.GRUCell"} <= set(by)
    assert {"flax.nnx.GRUCell.initialize_carry", "flax.nnx.GRUCell.__call__"} <= set(by)
    assert by["jax.random.normal"].scan == 0
    assert by["jax.random.normal"].traced
    assert by["jax.random.key"].scan is None
    assert by["list.append"].receiver is facts.names["log"]
    take = by["jax.numpy.take"]
    assert take.argument(1, "indices") == 7
    assert take.argument(2, "axis") == 0
    node = take.argument_node(1, "indices")
    assert node is not None
    assert facts.source.text_of(node) == "7"
    assert [c.name for c in facts.calls_of("jax.random.")] == ["jax.random.key", "jax.random.normal"]
    assert facts.source.returned(facts.scans[0].step) in list(ast.walk(facts.source.tree))  # type: ignore[arg-type]
    assert list(facts.steps) == [facts.scans[0].step]
    assert facts.scans[0].step in facts.traced_functions


def test_the_call_that_failed_is_there_too() -> None:
    facts = ScriptFacts(run("jnp.reshape(jnp.ones(3), (2, 2))\n").record)
    (call,) = facts.calls_of("jax.numpy.reshape")
    assert call.error is not None
    assert call.result is MISSING


def test_values_of_recursive_calls_are_not_mixed_up() -> None:
    facts = ScriptFacts(run("def fact(n):\n    return 1 if n == 0 else n * fact(n - 1)\nprint(fact(3))\n").record)
    calls = list(facts.calls_of("fact"))
    assert [(c.args[0], c.result) for c in calls] == [(0, 1), (1, 1), (2, 2), (3, 6)]


@BY_LANGUAGE
def test_large_arrays_are_not_kept_alive(prepare: Prepare) -> None:
    out = run("x = jnp.ones((2048, 2048))\nfor i in range(40):\n    x = x + 1.0\nprint(x[0, 0])\n", prepare)
    assert out.record.stdout == "41.0\n"
    kept = {id(s.value): s.value.nbytes for s in out.record.seen if isinstance(s.value, jax.Array)}
    assert sum(kept.values()) <= 2**28
    node = out.record.source.tree.body[4].body[0].value  # type: ignore[attr-defined]
    assert str(ScriptFacts(out.record).aval(node)) == "float32[2048,2048]"


def test_where_a_value_was_born_and_used() -> None:
    facts = ScriptFacts(run("a = jnp.ones(3)\nb = a\nc = b + 1\n").record)
    value = facts.names["a"]
    born = facts.born(value)
    assert born is not None
    assert facts.source.text_of(born.node) == "jnp.ones(3)"
    assert [facts.source.text_of(s.node) for s in facts.uses(value)] == ["jnp.ones(3)", "a", "b"]


@pytest.mark.parametrize(
    ("store", "path", "stored"),
    [
        ("log.append(c)", "log[0]", "log.append(c)"),
        ("cache['h'] = c", "cache['h']", "cache['h'] = c"),
        ("box.last = c", "box.last", "box.last = c"),
        ("last = c", "last", "last = c"),
    ],
)
def test_leaks_are_found_with_what_stored_them(store: str, path: str, stored: str) -> None:
    body = (
        "class Box:\n    pass\nlog, cache, box, last = [], {}, Box(), None\n"
        f"def step(c, x):\n    global last\n    {store}\n    return c + x, c\nlax.scan(step, 0.0, jnp.ones(3))\n"
    )
    (leak,) = ScriptFacts(run(body).record).leaks
    assert leak.path == path
    assert leak.used is None
    assert leak.span is not None
    assert leak.span.line == 9


def test_a_leak_that_is_used_knows_where() -> None:
    out = run(
        "last = None\ndef step(c, x):\n    global last\n    last = c\n    return c + x, c\nlax.scan(step, 0.0, jnp.ones(3))\nprint(last + 1)\n"
    )
    (leak,) = out.record.leaks
    assert leak.used is not None
    assert code_at(out, out.record.source.span(leak.used.node)) == "last"
    assert isinstance(out.record.failure and out.record.failure.error, jax.errors.UnexpectedTracerError)


def test_a_clean_script_leaks_nothing() -> None:
    assert not run(
        "f = jax.jit(lambda x: x + 1)\ny = f(2.0)\nlax.scan(lambda c, x: (c + x, c), 0.0, jnp.ones(3))\n"
    ).record.leaks


def test_targets_of_a_scan() -> None:
    facts = ScriptFacts(
        run(
            "final, ys = lax.scan(lambda c, x: (c, x), 0.0, jnp.ones(3))\nout = lax.scan(lambda c, x: (c, x), 0.0, jnp.ones(3))\n"
        ).record
    )
    names = [tuple(None if t is None else facts.source.text_of(t) for t in facts.targets(s)) for s in facts.scans]
    assert names == [("final", "ys"), (None, None)]


# --- without values -------------------------------------------------------------------------------------------------


@BY_LANGUAGE
def test_an_abstract_run_computes_nothing_and_prints_nothing(prepare: Prepare) -> None:
    out = run(
        "x = jnp.ones((200000, 200000))\ndef step(c, _):\n    return c @ x, None\n"
        "c, _ = lax.scan(step, x, None, length=10)\nprint(c.sum())\nassert c.sum() > 0\n",
        prepare,
        abstract=True,
    )
    assert out.record.failure is None
    assert out.record.stdout == ""
    assert str(out.record.scans[0].facts.carry_in[0]) == "float32[200000,200000]"


def test_an_abstract_run_skips_what_needs_values_and_goes_on() -> None:
    out = run(
        "n = float(jnp.ones(3).sum())\nm = n + 1\nlax.scan(lambda c, x: (c + x, c), jnp.int32(0), jnp.ones(3))\n",
        abstract=True,
    )
    assert out.skipped == [4, 5]
    assert [f.rule.code for f in out.looks[0].diagnosis.found] == ["S104"]


def test_an_abstract_run_still_sees_a_branch_on_a_traced_value() -> None:
    out = run(
        "def step(c, x):\n    if x > 0:\n        c = c + x\n    return c, c\nlax.scan(step, 0.0, jnp.ones(3))\n",
        abstract=True,
    )
    assert isinstance(out.record.failure and out.record.failure.error, jax.errors.TracerBoolConversionError)


def test_over_the_budget_the_rest_is_not_run() -> None:
    out = run(
        "print('before')\nlax.scan(lambda c, x: (c @ c, None), jnp.eye(50), None, length=1000)\nprint('after')\n",
        budget=10**6,
    )
    assert out.record.stdout == "before\n"
    assert [f.rule.code for f in out.looks[0].diagnosis.found] == ["X601"]
    assert out.record.failure is None


def test_a_scripts_own_except_does_not_catch_the_budget() -> None:
    out = run(
        "try:\n    lax.scan(lambda c, x: (c @ c, None), jnp.eye(50), None, length=1000)\nexcept Exception:\n    pass\nprint('after')\n",
        budget=10**6,
    )
    assert out.record.stdout == ""
