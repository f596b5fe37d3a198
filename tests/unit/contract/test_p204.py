"""P204: what a step does to the Python world happens while it is traced, not at each step."""

from __future__ import annotations

from typing import Any

import pytest

from core.base.violation import Severity
from core.doctor.instrument import trusted
from tests.unit.contract.p_support import BOTH, broken, check, mended, silent

RUN = "carry, ys = lax.scan(step, 0.0, jnp.arange(5.0))"

#: The script, the code at the place, and what a right fix gives (None: no fix is mechanical).
EFFECTS: dict[str, tuple[str, str, str | None]] = {
    "append": (
        f"log = []\ndef step(c, x):\n    c = c + x\n    log.append(c)\n    return c, None\n{RUN}\nprint(carry, len(log))",
        "log.append(c)",
        "assert [float(v) for v in log] == [0.0, 1.0, 3.0, 6.0, 10.0]",
    ),
    "append before": (
        f"log = ['start']\ndef step(c, x):\n    log.append(c)\n    c = c + x\n    return c, None\n{RUN}",
        "log.append(c)",
        "assert log[0] == 'start' and [float(v) for v in log[1:]] == [0.0, 0.0, 1.0, 3.0, 6.0]",
    ),
    "append beside a y": (
        f"seen = []\ndef step(c, x):\n    seen.append(c * x)\n    return c + x, c\n{RUN}",
        "seen.append(c * x)",
        "assert [float(v) for v in seen] == [0.0, 0.0, 2.0, 9.0, 24.0] and ys.tolist() == [0.0, 0.0, 1.0, 3.0, 6.0]",
    ),
    "append of a pair": (
        "log = []\ndef step(c, x):\n    log.append((c, x))\n    return c + x, None\ncarry, _ = lax.scan(step, 0.0, jnp.arange(3.0))",
        "log.append((c, x))",
        "assert [(float(a), float(b)) for a, b in log] == [(0.0, 0.0), (0.0, 1.0), (1.0, 2.0)]",
    ),
    "in a function": (
        "def run(xs):\n    trace = []\n    def step(c, x):\n        trace.append(c)\n        return c + x, None\n"
        "    final = lax.scan(step, 0.0, xs)[0]\n    return final, trace\nfinal, trace = run(jnp.arange(4.0))",
        "trace.append(c)",
        "assert float(final) == 6.0 and [float(v) for v in trace] == [0.0, 0.0, 1.0, 3.0]",
    ),
    "a return": (
        "def run(log, xs):\n    def step(c, x):\n        log.append(x)\n        return c + x, None\n    return lax.scan(step, 0.0, xs)\n"
        "out = []\nfinal, ys = run(out, jnp.arange(3.0))",
        "log.append(x)",
        "assert ys is None and [float(v) for v in out] == [0.0, 1.0, 2.0]",
    ),
    "a list of an object": (
        "class Sim:\n    def __init__(self):\n        self.history = []\n    def step(self, c, x):\n        self.history.append(c)\n"
        "        return c + x, None\n    def run(self, xs):\n        carry, _ = lax.scan(self.step, 0.0, xs)\n        return carry\n"
        "sim = Sim()\nfinal = sim.run(jnp.arange(3.0))",
        "self.history.append(c)",
        "assert [float(v) for v in sim.history] == [0.0, 0.0, 1.0]",
    ),
    "a default": (
        f"def step(c, x, log=[]):\n    log.append(c)\n    return c + x, None\n{RUN}",
        "log.append(c)",
        None,
    ),
    "a partial": (
        "log = []\ndef step(store, c, x):\n    store.append(c)\n    return c + x, None\ncarry, _ = lax.scan(partial(step, log), 0.0, jnp.arange(3.0))",
        "store.append(c)",
        None,
    ),
    "a lambda": (
        "log = []\ncarry, _ = lax.scan(lambda c, x: (c + x, log.append(c)), 0.0, jnp.arange(3.0))",
        "log.append(c)",
        None,
    ),
    "a helper": (
        f"log = []\ndef note(v):\n    log.append(v)\ndef step(c, x):\n    note(c + x)\n    return c + x, None\n{RUN}",
        "log.append(v)",
        None,
    ),
    "jit": (
        "log = []\n@jax.jit\ndef f(x):\n    log.append(x)\n    return 2 * x\nf(1.0)\nf(2.0)",
        "log.append(x)",
        None,
    ),
    "vmap": ("log = []\nout = jax.vmap(lambda x: (log.append(x), 2 * x)[1])(jnp.arange(3.0))", "log.append(x)", None),
    "fori_loop": (
        "log = []\ndef body(i, c):\n    log.append(c)\n    return c + 1.0\nout = lax.fori_loop(0, 4, body, 0.0)",
        "log.append(c)",
        None,
    ),
    "while_loop": (
        "log = []\ndef body(c):\n    log.append(c)\n    return c + 1.0\nout = lax.while_loop(lambda c: c < 4, body, 0.0)",
        "log.append(c)",
        None,
    ),
    "nested": (
        "def outer(c, row):\n    log = []\n    def inner(d, x):\n        log.append(d)\n        return d + x, None\n"
        "    d, _ = lax.scan(inner, c, row)\n    return d, d\ncarry, ys = lax.scan(outer, 0.0, jnp.ones((2, 3)))",
        "log.append(d)",
        "assert ys.tolist() == [3.0, 6.0]",
    ),
    "dict": (
        f"cache = {{}}\ndef step(c, x):\n    h = jnp.tanh(c + x)\n    cache['h'] = h\n    return h, None\n{RUN}",
        "cache['h']",
        "assert cache['h'] == carry",
    ),
    "a list that grows by +": (
        f"losses = []\ndef step(c, x):\n    global losses\n    losses = losses + [c]\n    return c + x, None\n{RUN}",
        "losses",
        "assert [float(v) for v in losses] == [0.0, 0.0, 1.0, 3.0, 6.0]",
    ),
    "a list that grows by +=": (
        f"losses = []\ndef step(c, x):\n    global losses\n    losses += [c * x]\n    return c + x, c\n{RUN}",
        "losses",
        "assert [float(v) for v in losses] == [0.0, 0.0, 2.0, 9.0, 24.0]",
    ),
    "a list that the step reads": (
        f"last = []\ndef step(c, x):\n    last.append(x)\n    return c + sum(last), c\n{RUN}",
        "last.append(x)",
        None,
    ),
    "setdefault": (
        f"cache = {{}}\ndef step(c, x):\n    cache.setdefault('h', []).append(c)\n    return c + x, None\n{RUN}",
        "cache.setdefault('h', []).append(c)",
        None,
    ),
    "update": (
        f"cache = {{}}\ndef step(c, x):\n    cache.update(h=c)\n    return c + x, None\n{RUN}",
        "cache.update(h=c)",
        None,
    ),
    "global": (
        f"last = None\ndef step(c, x):\n    global last\n    last = c * x\n    return c + x, None\n{RUN}",
        "last",
        "assert float(last) == 24.0",
    ),
    "nonlocal": (
        "def main():\n    last = 0.0\n    def step(c, x):\n        nonlocal last\n        last = c + x\n        return c + x, None\n"
        "    carry, _ = lax.scan(step, 0.0, jnp.arange(4.0))\n    return carry\nout = main()",
        "last",
        "assert float(out) == 6.0",
    ),
    "attribute": (
        "class Cell:\n    last = None\n    def __call__(self, c, x):\n        self.last = c\n        return c + x, None\n"
        "cell = Cell()\ncarry, ys = lax.scan(cell, 0.0, jnp.arange(3.0))",
        "self.last",
        None,
    ),
    "count": (
        f"n = 0\ndef step(c, x):\n    global n\n    n += 1\n    return c + x, None\n{RUN}\nprint(n)",
        "n",
        "assert int(n) == 5",
    ),
    "count in a dict": (
        f"stats = {{'steps': 0}}\ndef step(c, x):\n    stats['steps'] += 1\n    return c + x, None\n{RUN}\nprint(stats)",
        "stats['steps']",
        "assert int(stats['steps']) == 5",
    ),
    "count of an object": (
        "class Env:\n    def __init__(self):\n        self.t = 0\n    def step(self, c, x):\n        self.t = self.t + 1\n"
        "        return c + x, None\nenv = Env()\ncarry, _ = lax.scan(env.step, 0.0, jnp.arange(4.0))\nprint(env.t)",
        "self.t",
        "assert int(env.t) == 4",
    ),
    "print": (
        "def step(c, i):\n    print('iteration', i)\n    return c + i, c\ncarry, ys = lax.scan(step, 0, jnp.arange(4))\nprint('done')",
        "print('iteration', i)",
        "assert _out.splitlines() == ['iteration 0', 'iteration 1', 'iteration 2', 'iteration 3', 'done']",
    ),
    "print of a format": (
        "def step(c, x):\n    print(f'{x.shape} c={c} {{ok}}', 'x: {}'.format(x), sep=' | ')\n    return c + x, c\n"
        "carry, ys = lax.scan(step, 0.0, jnp.arange(2.0))",
        "print(f'{x.shape} c={c} {{ok}}', 'x: {}'.format(x), sep=' | ')",
        "assert _out.splitlines() == ['() c=0.0 {ok} | x: 0.0', '() c=0.0 {ok} | x: 1.0']",
    ),
    "print of a text": (
        "def step(c, x):\n    message = 'c is ' + str(c)\n    print(message)\n    return c + x, c\ncarry, ys = lax.scan(step, 0.0, jnp.arange(2.0))",
        "print(message)",
        None,
    ),
    "print in a nested scan": (
        "def outer(c, row):\n    def inner(d, x):\n        print('d', d)\n        return d + x, None\n    return lax.scan(inner, c, row)[0], None\n"
        "carry, _ = lax.scan(outer, 0.0, jnp.ones((2, 2)))",
        "print('d', d)",
        "assert _out.splitlines() == ['d 0.0', 'd 1.0', 'd 2.0', 'd 3.0']",
    ),
    "print under vmap": (
        "def one(x):\n    print('x =', x)\n    return 2 * x\nout = jax.vmap(one)(jnp.arange(3.0))",
        "print('x =', x)",
        "assert sorted(_out.splitlines()) == ['x = 0.0', 'x = 1.0', 'x = 2.0']",
    ),
    "print under jit": (
        "@jax.jit\ndef f(x):\n    print(x)\n    return x\nf(1.0)\nf(2.0)",
        "print(x)",
        "assert _out.splitlines() == ['1.0', '2.0']",
    ),
}


@BOTH
@pytest.mark.parametrize("name", EFFECTS)
def test_it_is_found_where_it_is_written(name: str, prepare: Any) -> None:
    body, place, _ = EFFECTS[name]
    checkup = check(body, prepare)
    assert broken(checkup) == [("P204", place)]
    (violation,) = (v for v in checkup.report.violations if v.code == "P204")
    assert violation.silent
    assert checkup.report.error is None


@pytest.mark.parametrize("name", [name for name, (_, _, test) in EFFECTS.items() if test is not None])
def test_its_fixes_give_what_was_meant(name: str) -> None:
    body, _, test = EFFECTS[name]
    assert test is not None
    mended(body, "P204", test)


@pytest.mark.parametrize("name", ["append", "print", "count", "dict"])
def test_its_fixes_hold_in_the_sandbox(name: str) -> None:
    from core.doctor.sandboxed import sandboxed

    body, _, test = EFFECTS[name]
    assert test is not None
    mended(body, "P204", test, sandboxed)


def test_the_proof_counts_the_steps_that_left_nothing() -> None:
    (violation,) = check(EFFECTS["append"][0], fixes=True).report.broken
    assert violation.proof is not None
    assert (violation.proof.before, violation.proof.after, violation.proof.expected) == (4.0, 0.0, 0.0)


def test_two_effects_are_two_findings_and_one_way_out() -> None:
    body = "a, b = [], []\ndef step(c, x):\n    a.append(c)\n    b.append(x)\n    return c + x, None\ncarry, ys = lax.scan(step, 0.0, jnp.arange(3.0))"
    assert broken(check(body)) == [("P204", "a.append(c)"), ("P204", "b.append(x)")]
    mended(body, "P204", "assert len(a) == len(b) == 3", together=True)


def test_a_list_that_the_step_reads_is_no_log() -> None:
    assert check(EFFECTS["a list that the step reads"][0], fixes=True).sources[0] == []


def test_all_prints_wait_once() -> None:
    body = "def step(c, x):\n    print('c', c)\n    print(f'x {x}')\n    return c + x, c\ncarry, ys = lax.scan(step, 0.0, jnp.ones(2))"
    (source,) = mended(body, "P204", "assert _out.splitlines() == ['c 0.0', 'x 1.0', 'c 1.0', 'x 1.0']", together=True)
    assert source.count("effects_barrier") == 1


def test_code_that_also_runs_plainly_gets_a_note() -> None:
    body = (
        "log = []\ndef step(c, x):\n    log.append(c)\n    return c + x, None\n"
        "c = 0.0\nfor v in jnp.arange(3.0):\n    c, _ = step(c, v)\ncarry, _ = lax.scan(step, 0.0, jnp.arange(3.0))"
    )
    checkup = check(body)
    assert not broken(checkup)
    assert [v.severity for v in checkup.report.violations if v.code == "P204"] == [Severity.NOTE]


NEAR = {
    "a list of its own": "def step(c, x):\n    parts = []\n    for k in range(3):\n        parts.append(c + k)\n    return sum(parts) + x, c",
    "a dict of its own": "def step(c, x):\n    new = {}\n    new['c'] = c\n    new.update(x=x)\n    return new['c'] + new['x'], c",
    "a list of a helper": "def both(a, b):\n    out = []\n    out.append(a)\n    out.extend([b])\n    return out\ndef step(c, x):\n    return sum(both(c, x)), c",
    "a list handed to a helper": "def put(out, v):\n    out.append(v)\ndef step(c, x):\n    out = []\n    put(out, c)\n    put(out, x)\n    return sum(out), c",
    "an object of its own": "class Box:\n    pass\ndef step(c, x):\n    box = Box()\n    box.value = c\n    return box.value + x, c",
    "a builder": "class Sum:\n    def __init__(self):\n        self.total = 0.0\n    def add(self, v):\n        self.total = self.total + v\n"
    "def step(c, x):\n    s = Sum()\n    s.add(c)\n    s.add(x)\n    return s.total, c",
    "append outside": "log = []\nlog.append(jnp.ones(2))\ndef step(c, x):\n    return c + x + len(log), c\nlog.append(3)",
    "shapes": "shapes = []\nseen = set()\ndef step(c, x):\n    shapes.append(x.shape)\n    seen.add(str(c.dtype))\n    print('tracing', x.shape, x.dtype)\n    return c + x, c",
    "print of a format of shapes": "def step(c, x):\n    print(f'c has {c.shape}', 'and {}'.format(x.ndim))\n    return c + x, c",
    "print of a constant": "def step(c, x):\n    print('the step is traced')\n    return c + x, c",
    "memo": "memo = {}\ndef table(n):\n    if n not in memo:\n        memo[n] = np.arange(n)\n    return memo[n]\ndef step(c, x):\n    return c + x + table(3).sum(), c",
    "lru_cache": "from functools import lru_cache\n@lru_cache\ndef size(n):\n    return 2 * n\ndef step(c, x):\n    return c + x + size(3), c",
    "debug.print": "def step(c, x):\n    jax.debug.print('c {}', c)\n    return c + x, c",
    "a class of pytrees": "class Box:\n    def __init__(self, lo, hi):\n        self.lo, self.hi = lo, hi\n"
    "jax.tree_util.register_pytree_node(Box, lambda b: ((b.lo, b.hi), None), lambda _, c: Box(*c))\n"
    "print(lax.scan(lambda b, x: (Box(b.lo + x, b.hi), b.lo), Box(0.0, 1.0), jnp.arange(3.0)))\ndef step(c, x):\n    return c + x, c",
    "config": "depth = 0\nfor _ in range(3):\n    depth += 1\nclass Config:\n    layers = 2\nConfig.layers += 1\ndef step(c, x):\n    return c + x * depth, c",
    "a count of its own": "def step(c, x):\n    n = 0\n    for k in range(3):\n        n += 1\n    return c + n * x, c",
    "counter of layers": "def stack(v, layers):\n    used = 0\n    def layer(v):\n        nonlocal used\n        used += 1\n        return v * 0.5\n"
    "    for _ in range(layers):\n        v = layer(v)\n    return v + used\ndef step(c, x):\n    return stack(c, 2) + x, c",
    "called eagerly": "log = []\ndef watched(v):\n    if not isinstance(v, jax.core.Tracer):\n        log.append(float(v))\n    return v\nwatched(jnp.float32(1))\ndef step(c, x):\n    return watched(c) + x, c",
    "a local of the jitted function": "@jax.jit\ndef f(x):\n    outs = []\n    def keep(v):\n        outs.append(v)\n    for k in range(3):\n        keep(x * k)\n    return jnp.stack(outs)\nprint(f(2.0))\ndef step(c, x):\n    return c + x, c",
    "pop and sort": "order = [2, 1]\ndef step(c, x):\n    stack = [c, x]\n    top = stack.pop()\n    return c + top + sorted(order)[0], c",
}


@BOTH
@pytest.mark.parametrize("name", NEAR)
def test_what_stays_in_the_step_or_is_no_value_is_fine(name: str, prepare: Any) -> None:
    silent(f"{NEAR[name]}\nfinal, ys = lax.scan(step, 0.0, jnp.arange(3.0))", prepare)


def test_state_of_flax_is_not_ours_to_judge() -> None:
    silent(
        "from flax import nnx\nclass Count(nnx.Module):\n    def __init__(self):\n        self.n = nnx.Variable(jnp.array(0))\n"
        "    def __call__(self, x):\n        self.n.value += 1\n        return x\n"
        "m = Count()\n@nnx.jit\ndef f(m, x):\n    return m(x)\nf(m, 1.0)\nf(m, 2.0)\nassert m.n.value == 2",
        trusted,
    )
