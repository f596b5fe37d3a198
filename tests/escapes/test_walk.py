"""Nothing forbidden can be reached from any name of the facade, by any attribute, in any container, from any result."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from core.sandbox.facade import environment
from core.sandbox.guards import Guards
from core.sandbox.output import Output
from core.sandbox.policy import Compiled, compile_script
from tests.escapes.guards_off import switch_off
from tests.escapes.support import kept_settings
from tests.escapes.walk import Walk

pytestmark = pytest.mark.filterwarnings("ignore")

#: Objects of all kinds that ordinary work leaves in a script's hands.
WORK = """
import functools, collections, dataclasses, enum, itertools, contextlib, types
import jax, jax.numpy as jnp, numpy as np, optax
from flax import nnx, linen, struct
from typing import NamedTuple
class Pair(NamedTuple):
    a: jax.Array
    b: jax.Array
@dataclasses.dataclass
class Data:
    x: float = 1.0
@struct.dataclass
class Tree:
    x: jax.Array
class Color(enum.Enum):
    RED = 1
class Net(nnx.Module):
    def __init__(self, rngs):
        self.cell = nnx.LSTMCell(2, 3, rngs=rngs)
        self.drop = nnx.Dropout(0.1, rngs=rngs)
        self.norm = nnx.BatchNorm(2, rngs=rngs)
        self.items = nnx.List([nnx.Linear(2, 2, rngs=rngs)])
    def __call__(self, x):
        return x
class Old(linen.Module):
    @linen.compact
    def __call__(self, x):
        return linen.Dense(2)(x)
class Context:
    def __enter__(self): return self
    def __exit__(self, kind, error, tb):
        self.seen = (kind, error, tb)
        return True
context = Context()
with context:
    1 / 0
errors = []
for bad in (lambda: 1 / 0, lambda: {}["a"], lambda: [][0], lambda: int("x"), lambda: jnp.ones(2) @ jnp.ones(3), lambda: nnx.LSTMCell(1, 1),
            lambda: jax.lax.scan(lambda c, x: x, 0.0, jnp.ones(2)), lambda: jnp.ones(2).nothing, lambda: next(iter(())), lambda: "é".encode("ascii"),
            lambda: jax.jit(lambda v: int(v))(1.0), lambda: jax.jit(lambda v: 1 if v else 2)(1.0), lambda: np.linalg.inv(np.zeros((2, 2)))):
    try:
        bad()
    except Exception as e:
        errors.append(e)
net = Net(nnx.Rngs(0)); graphdef, state = nnx.split(net); opt = nnx.Optimizer(net, optax.adamw(1e-3), wrt=nnx.Param)
tx = optax.adam(1e-3); params = {"w": jnp.ones(2)}; opt_state = tx.init(params)
old = Old(); variables = old.init(jax.random.key(0), jnp.ones((1, 2)))
jitted = jax.jit(lambda v: v * 2); jitted(1.0); value, pull = jax.vjp(jitted, 1.0); _, push = jax.linearize(jitted, 1.0)
leaves, treedef = jax.tree.flatten(params); paths = jax.tree_util.tree_leaves_with_path(params); aval = jax.typeof(jnp.ones(2))
shape = jax.eval_shape(jitted, 1.0); ref = jax.new_ref(jnp.ones(2)); text = jax.make_jaxpr(jitted)(1.0); key = jax.random.key(0)
generator = (i for i in range(3)); gen = np.random.default_rng(0); legacy = np.random.RandomState(0); dtype = np.dtype("float32")
metrics = nnx.MultiMetric(loss=nnx.metrics.Average("loss")); rngs = nnx.Rngs(0, dropout=1); stream = rngs.params
rnn = nnx.RNN(nnx.GRUCell(2, 2, rngs=rngs)); bi = nnx.Bidirectional(rnn, rnn); seq = nnx.Sequential(nnx.relu, rnn); at = jnp.ones(3).at[0]
array = np.ones((2, 2)); scalar = np.float32(1); objects = np.array([jitted, None], dtype=object); device = jnp.ones(2).device; devices = jnp.ones(2).devices()
counter = collections.Counter("ab"); deque = collections.deque([1]); default = collections.defaultdict(list); partial = functools.partial(jnp.add, 1)
cached = functools.lru_cache(lambda v: v); space = types.SimpleNamespace(a=1); field = dataclasses.fields(Data)[0]; finfo = jnp.finfo(jnp.float32)
@jax.custom_vjp
def custom(x): return x
custom.defvjp(lambda x: (x, None), lambda r, g: (g,))
pair, data, tree, bound, prop = Pair(1, 2), Data(), Tree(jnp.ones(1)), net.__call__, property(lambda self: 1)
manager = contextlib.nullcontext(1); opened = jax.disable_jit(); named = jax.named_scope("a"); schedule = optax.cosine_decay_schedule(1.0, 3)
inject = optax.inject_hyperparams(optax.sgd)(learning_rate=0.1); injected = inject.init(params); lbfgs = optax.lbfgs().init(params)
metric_values = metrics.compute(); moved = jnp.histogram(jnp.ones(3)); eig = np.linalg.eigh(np.eye(2)); flat = nnx.to_flat_state(state); pure = nnx.to_pure_dict(state)
"""


def walk_facade(*, call: bool) -> Walk:
    guards = Guards()
    names = environment(guards, out=Output())
    built_in = {n: v for n, v in names["__builtins__"].items() if not n.startswith("__")}
    walk = Walk(guards, call=call).run(built_in | dict(guards.modules))
    guards.close()
    return walk


def test_no_name_and_no_attribute_reaches_anything_forbidden() -> None:
    walk = walk_facade(call=False)
    assert walk.found == []
    assert walk.visited > 2500


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_result_of_a_call_reaches_anything_forbidden() -> None:
    """Every callable is tried with sample arguments, in a trace, where nothing is computed."""
    walks: list[Walk] = []
    with kept_settings():
        jax.eval_shape(lambda: walks.append(walk_facade(call=True)))
    assert walks[0].found == []
    assert walks[0].called > 1500


def test_nothing_that_ordinary_work_makes_reaches_anything_forbidden() -> None:
    compiled = compile_script(WORK)
    assert isinstance(compiled, Compiled)
    guards = Guards()
    names = environment(guards, out=Output())
    for statement in compiled.statements:
        exec(statement, names)
    made = {n: v for n, v in names.items() if not n.startswith("_") and n not in ("jax", "jnp", "np", "optax", "nnx")}
    walk = Walk(guards, call=False)
    for name, value in made.items():
        walk._put(name, value, constant=False)
    walk.run({})
    guards.close()
    assert walk.found == []
    assert len(walk.types) > 60


@pytest.mark.parametrize(
    ("guard", "what"),
    [
        ("modules", "a module"),
        ("real:numpy.load", "a file function"),
        ("real:jax.pure_callback", "a host callback"),
        ("real:numpy.ndarray", "a class that builds from raw memory"),
        ("real:jax.jit", "a compiler option"),
        ("builtin:eval", "text run as code"),
        ("builtin:getattr", "a lookup by name"),
        ("real:numpy.sctypeDict", "a container that a script could change for others"),
    ],
)
def test_the_walk_finds_what_a_missing_guard_lets_through(
    guard: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch_off(guard, monkeypatch)
    assert any(found.startswith(what) for found in walk_facade(call=False).found)


def test_the_walk_finds_readable_globals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Guards, "readable", lambda self, obj, name: True)
    guards = Guards()
    environment(guards, out=Output())
    walk = Walk(guards, call=False)
    walk._check("f", np.linspace, True)
    guards.close()
    assert any(found.startswith("__globals__") for found in walk.found)
