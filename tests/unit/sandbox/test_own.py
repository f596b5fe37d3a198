"""Our versions of library functions do what the real ones do, for what a script needs of them."""

from __future__ import annotations

import gc
import threading
import weakref

import flax.serialization
import jax
import pytest
from flax import nnx
from flax.nnx import graphlib, variablelib
from jax._src import tree_util

from core.sandbox.output import Output
from core.sandbox.refusals import NotHere, RefusedUse
from tests.unit.sandbox.sandbox_support import Job, run


def test_output_keeps_what_fits() -> None:
    out = Output(limit=10)
    for _ in range(5):
        out.write("abcd")
    assert out.text == "abcdabcdab"
    assert out.cut
    small = Output()
    small.write("x")
    assert not small.cut


def test_output_takes_text_from_many_threads() -> None:
    out = Output(limit=1000)
    threads = [threading.Thread(target=lambda: [out.write("ab") for _ in range(100)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(out.text) == 1000
    assert out.cut


def test_a_flood_of_prints_is_cut() -> None:
    with Job("for i in range(30_000):\n    print('0123456789')") as job:
        out = job.run().out
    assert len(out.text) == 65_536
    assert out.cut


def test_print_as_python_prints() -> None:
    with Job(
        "import sys\nprint(1, 'a', sep='-', end='!')\nprint()\nprint(*[1, 2], file=sys.stderr, flush=True)\nsys.stdout.write('w')"
    ) as job:
        assert job.run().out.text == "1-a!\n1 2\nw"
    with pytest.raises(TypeError, match="sep must be None or a string, not int"):
        run("print(1, sep=2)")
    with pytest.raises(RefusedUse):
        run("class F:\n    def write(self, t): pass\nprint(1, file=F())")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("jax.debug.print('x {}', jnp.ones(2))", "x [1. 1.]\n"),
        ("jax.debug.print('{a} {b:.1f}', a=1, b=2.55)", "1 2.5\n"),
        ("jax.debug.print('{name}: {x}', name='loss', x=jnp.float32(3))", "loss: 3.0\n"),
        ("jax.debug.print('plain')", "plain\n"),
        ("jax.jit(lambda v: jax.debug.print('in jit {v}', v=v))(1)", "in jit 1\n"),
        ("jax.debug.print(ordered=True)('twice {x}', x=1)", "twice 1\n"),
        ("jax.debug.print('{d}', d={'a': 1})", "{'a': Array(1, dtype=int32, weak_type=True)}\n"),
    ],
)
def test_debug_print_of_plain_fields(line: str, text: str) -> None:
    with Job(f"import jax, jax.numpy as jnp\n{line}\njax.effects_barrier()") as job:
        out = job.run().out.text
    assert out == text or line.endswith("{'a': 1})")


@pytest.mark.parametrize("field", ["{x.shape}", "{x[0]}", "{0.T}", "{x:{x.ndim}}", "{x!r:{y[0]}}"])
def test_debug_print_reads_no_parts(field: str) -> None:
    with pytest.raises(RefusedUse, match=r"a field of jax.debug.print names a value"):
        run(f"import jax, jax.numpy as jnp\njax.debug.print({field!r}, jnp.ones(2), x=jnp.ones(2), y=[1])")


def test_debug_print_finds_values_that_no_field_names() -> None:
    with pytest.raises(ValueError, match="Unused keyword arguments"):
        run("import jax\njax.debug.print('1.0', x=1)")
    with pytest.raises(ValueError, match="Unused positional arguments"):
        run("import jax\njax.debug.print('1.0', 2)")


def test_jaxprs_are_text() -> None:
    names = run(
        "import jax\nt = jax.make_jaxpr(lambda x: x + 1)(1.0)\np, s = jax.make_jaxpr(lambda x: x, return_shape=True)(1.0)\ntext = str(t)"
    )
    assert "add" in names["text"]
    assert names["s"].shape == ()


def test_wraps_keeps_the_name_and_the_signature() -> None:
    names = run(
        """
        import functools, jax
        def deco(f):
            @functools.wraps(f)
            def inner(*a, **k): return f(*a, **k)
            return inner
        @deco
        def power(x, n):
            "Powers."
            return x ** n
        result = power.__name__, power.__doc__, jax.jit(power, static_argnames="n")(2.0, n=3)
        """
    )
    assert names["result"][:2] == ("power", "Powers.")
    assert float(names["result"][2]) == 8.0


@pytest.mark.parametrize(
    "line",
    [
        "dataclass(nnx.Rngs)",
        "struct.dataclass(nnx.Rngs)",
        "nnx.dataclass(nnx.Linear)",
        "total_ordering(nnx.Linear)",
        "jax.tree_util.register_pytree_node(str, len, len)",
        "jax.tree_util.register_pytree_node_class(nnx.Rngs)",
        "jax.tree_util.register_static(nnx.Rngs)",
        "jax.tree_util.register_dataclass(nnx.Rngs, [], [])",
        "jax.tree_util.register_pytree_with_keys(str, len, len)",
        "jax.tree_util.register_pytree_with_keys_class(str)",
        "asdict(nnx.split(nnx.Dict())[0])",
        "fields(nnx.GraphDef)",
        "wraps(len, updated=('__globals__',))",
    ],
)
def test_registrations_and_decorators_take_the_script_s_own_classes_only(line: str) -> None:
    head = "import jax\nfrom flax import nnx, struct\nfrom dataclasses import dataclass, asdict, fields\nfrom functools import total_ordering, wraps\n"
    with pytest.raises((NotHere, TypeError)) as error:
        run(head + line)
    assert isinstance(error.value, NotHere) or line.startswith("fields")


def test_dataclasses_are_taken_apart_as_python_does_it() -> None:
    names = run(
        """
        from dataclasses import dataclass, asdict, astuple, field
        from typing import NamedTuple
        class N(NamedTuple):
            a: int
        @dataclass
        class Inner:
            x: int
            y: list = field(default_factory=lambda: [1])
        @dataclass
        class Outer:
            i: Inner
            n: N
            d: dict
        o = Outer(Inner(1), N(2), {"k": Inner(3)})
        result = asdict(o), astuple(o), asdict(o, dict_factory=lambda kv: [k for k, _ in kv])
        same = asdict(o)["i"]["y"] is o.i.y
        """
    )
    inner = {"x": 1, "y": [1]}
    assert names["result"][0] == {"i": inner, "n": (2,), "d": {"k": {"x": 3, "y": [1]}}}
    assert names["result"][1] == ((1, [1]), (2,), {"k": (3, [1])})
    assert names["result"][2] == ["i", "n", "d"]
    assert not names["same"]


# --- after the job --------------------------------------------------------------------------------------------------

CLASSES = """
import jax, jax.numpy as jnp
from flax import nnx, struct
from dataclasses import dataclass
big = jnp.ones(1000)
class M(nnx.Module):
    def __init__(self): self.x = big
class V(nnx.Variable): pass
@struct.dataclass
class S:
    x: jax.Array
    def go(self): return big
@jax.tree_util.register_pytree_node_class
class T:
    def __init__(self, x): self.x = x
    def tree_flatten(self): return (self.x,), big
    @classmethod
    def tree_unflatten(cls, aux, parts): return cls(*parts)
class U: pass
jax.tree_util.register_pytree_node(U, lambda u: ((), big), lambda aux, parts: U())
held = [jax.tree.map(lambda v: v, o) for o in (M(), S(big), T(big), U())]
m = M(); m.sow("my_own_name", "s", 1.0)
"""


@pytest.mark.filterwarnings("ignore")
def test_nothing_of_a_script_lives_on() -> None:
    job = Job(CLASSES).run()
    made = list(job.guards.made)
    assert {c.__name__ for c in made} == {"M", "V", "S", "T", "U"}
    assert "my_own_name" in variablelib.VariableTypeCache
    array, function = weakref.ref(job.names["big"]), weakref.ref(job.names["S"].go)
    job.close()
    del job
    gc.collect()
    assert array() is None
    assert function() is None
    registries = (tree_util._registry, graphlib.GRAPH_REGISTRY, flax.serialization._STATE_DICT_REGISTRY)
    assert not any(c in registry for c in made for registry in registries)
    assert "my_own_name" not in variablelib.VariableTypeCache
    assert not any(
        not n.startswith("__") and callable(v) for c in made for n, v in vars(c).items() if "_pytree" not in n
    )


def test_the_same_class_can_be_registered_by_the_next_job() -> None:
    for _ in range(2):
        with Job(CLASSES) as job:
            assert len(job.run().names["held"]) == 4


def test_a_rule_for_a_function_of_ours_stays_with_it() -> None:
    names = run(
        """
        import jax
        @jax.custom_jvp
        def f(x): return x
        f.defjvp(lambda p, t: (p[0], 5.0 * t[0]))
        g = jax.grad(f)(1.0)
        h = jax.grad(jax.nn.relu)(1.0)
        refused = hasattr(jax.nn.relu, "defjvp"), hasattr(f, "defjvp")
        """
    )
    assert (float(names["g"]), float(names["h"]), names["refused"]) == (5.0, 1.0, (False, True))
    assert nnx.relu is jax.nn.relu
