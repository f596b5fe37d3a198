"""Ordinary programs: the Python around the arrays.

Longer than 500 lines because it is data: one program after the other.
"""

from __future__ import annotations

PROGRAMS: dict[str, str] = {}

PROGRAMS["main_guard"] = '''
"""Sums a sequence."""
import jax
import jax.numpy as jnp

__author__ = "me"
N: int = 4

def main(n: int = N) -> None:
    total, _ = jax.lax.scan(lambda c, x: (c + x, None), 0, jnp.arange(n))
    print("total", total)

if __name__ == "__main__":
    main()
'''

PROGRAMS["timing_decorator"] = '''
import functools, time
import jax, jax.numpy as jnp

calls = {}

def timed(label=None):
    def outer(fn):
        @functools.wraps(fn)
        def inner(*args, **kwargs):
            t = time.perf_counter()
            out = fn(*args, **kwargs)
            calls.setdefault(label or fn.__name__, []).append(time.perf_counter() - t)
            return out
        return inner
    return outer

@timed("matmul")
@jax.jit
def f(x, *, scale=1.0):
    """Scaled square."""
    return scale * x @ x

@timed()
def g(x, **kw):
    return f(x, **kw)

print(g(jnp.eye(2), scale=2.0), list(calls), g.__name__, g.__doc__, all(len(v) == 1 for v in calls.values()))
calls.clear()
'''

PROGRAMS["closures_nonlocal_global"] = """
counter = 0

def bump():
    global counter
    counter += 1
    return counter

def make():
    n = 10
    def inc(by=1):
        nonlocal n
        n += by
        return n
    return inc

inc = make()
inc(); inc(5)
fs = [lambda k=k: k * k for k in range(4)]
fs[0].note = "first"
print(bump(), bump(), inc(0), [f() for f in fs], fs[0].note)
"""

PROGRAMS["match_statements"] = """
import jax.numpy as jnp

def describe(cmd):
    match cmd:
        case []:
            return "nothing"
        case ["go", direction]:
            return f"go {direction}"
        case ["move", *steps] if len(steps) > 1:
            return "moves " + ",".join(map(str, steps))
        case {"op": "add", "args": [a, b], **rest}:
            return f"{a + b} {sorted(rest)}"
        case int(n) | float(n):
            return f"number {n}"
        case None | True | False:
            return "constant"
        case "quit" | "exit":
            return "bye"
        case str():
            return "text"
        case (x, y) as pair:
            return f"pair {pair}"
        case _:
            return "?"

for c in ([], ["go", "up"], ["move", 1, 2], {"op": "add", "args": [1, 2], "z": 0}, 3, 2.5, None, "exit", "hi", (1, 2), {7}):
    print(describe(c))
"""

PROGRAMS["comprehensions"] = """
import jax.numpy as jnp
rows = [[i * j for j in range(3)] for i in range(4)]
flat = {(i, j): v for i, row in enumerate(rows) for j, v in enumerate(row) if v % 2 == 0}
odd = {v for row in rows for v in row if v % 2}
best = max(rows, key=sum)
total = sum(x * x for row in rows for x in row)
ordered = sorted(flat.items(), key=lambda kv: (-kv[1], kv[0]))[:2]
a, *mid, z = range(6)
(first, second), *others = zip("abc", [1, 2, 3])
if (n := len(odd)) >= 1 and 0 < n <= 10:
    print(n, best, total, ordered, a, mid, z, first, second, others)
M = jnp.array(rows)
print(M[..., 1], M[1:, ::2], M[-1, None].shape, any(v > 5 for v in M.ravel()), list(reversed([1, 2])))
x = y = 3; x, y = y + 1, x
del rows[0][1:]
print(x, y, rows[0], [*mid, *others], {**{"a": 1}, "b": 2}, not [], 1 if x else 2)
"""

PROGRAMS["formatting"] = """
import jax.numpy as jnp, numpy as np
x = jnp.array([1.5, 2.25]); name = "loss"
print(f"{name!r:>8}|{x[0]:.3f}|{x.mean():>10.4f}|{x.shape}|{3 + 4 = }")
print("{:>6} {:<6}| {name}".format("a", "b", name=name), "{0.shape} {1[k]} {0.dtype}".format(x, {"k": 7}))
print("%s has %d of %5.2f %%" % (name, 3, 99.5), "%(a)s" % {"a": 1}, str(x), repr(name))
print("{x}".format_map({"x": 1}), " ".join(map("{:02d}".format, range(3))), f"{'nested ' + name:^14}|", f"{2**10:,}", sep=" ~ ", end="!\\n")
np.set_printoptions(precision=2, suppress=True)
print(np.array([1.23456, 1e-9]), format(3.14159, ".2f"), "a,b".split(","), "x".join("abc"), name.upper().title())
width = 9
print(f"{x.sum():{width}.2f}", f"{jnp.pi:.3}", f"{True!s}", "é漢".encode().decode())
"""

PROGRAMS["exceptions"] = """
import jax, jax.numpy as jnp

class ShapeError(ValueError):
    def __init__(self, got, want):
        super().__init__(f"got {got}, want {want}")
        self.got, self.want = got, want

def check(x, want):
    if x.shape != want:
        raise ShapeError(x.shape, want)
    return x

try:
    check(jnp.ones(3), (4,))
except ShapeError as e:
    print("caught", e, e.got, e.args)
else:
    print("no")
finally:
    print("always")

try:
    jax.lax.scan(lambda c, x: (c, c, c), 0.0, jnp.ones(2))
except (TypeError, ValueError) as err:
    print(type(err).__name__)

try:
    try:
        {}["missing"]
    except KeyError as k:
        raise RuntimeError("outer") from k
except RuntimeError as r:
    print(r, isinstance(r, Exception))

def safe(f, *a):
    try:
        return f(*a)
    except Exception as e:
        return f"{type(e).__name__}: {e}"

print(safe(lambda: 1 / 0), safe(int, "x"), safe(lambda: [][1]), safe(lambda: jnp.ones((2,)) @ jnp.ones((3,)))[:9])
print(hasattr(jnp, "ones"), hasattr(jnp, "no_such"), getattr(jnp, "no_such", "default"))
"""

PROGRAMS["context_managers"] = """
from contextlib import contextmanager, nullcontext, suppress
import jax, jax.numpy as jnp

class Section:
    depth = 0
    def __init__(self, name):
        self.name = name
    def __enter__(self):
        Section.depth += 1
        print("  " * Section.depth + "enter", self.name)
        return self
    def __exit__(self, kind, error, tb):
        print("  " * Section.depth + "leave", self.name, kind is None)
        Section.depth -= 1
        return kind is ZeroDivisionError

with Section("a") as a, Section("b"):
    1 / 0

@contextmanager
def scaled(k):
    print("in")
    try:
        yield k * 2
    finally:
        print("out")

with scaled(3) as v, nullcontext(5) as w, suppress(KeyError):
    print(v + w)
    {}["x"]
with jax.disable_jit(), jax.named_scope("block"):
    print(jnp.sum(jnp.arange(4)))
"""

PROGRAMS["generators"] = """
def batches(n, size):
    for i in range(0, n, size):
        yield range(i, min(i + size, n))

def chained():
    got = yield from batches(5, 2)
    return got

def averager():
    total, n, avg = 0.0, 0, None
    while True:
        x = yield avg
        if x is None:
            return total
        total += x; n += 1
        avg = total / n

g = averager(); next(g)
print([list(b) for b in chained()], g.send(2.0), g.send(4.0))
try:
    g.send(None)
except StopIteration as stop:
    print("returned", stop.value)
it = iter([1, 2, 3])
print(next(it), next(it), list(it), next(it, "end"), list(map(lambda a, b: a * b, [1, 2], [3, 4])), list(filter(None, [0, 1])))
"""

PROGRAMS["operators"] = """
import math
class Vec:
    def __init__(self, *v): self.v = tuple(v)
    def __add__(self, o): return Vec(*(a + b for a, b in zip(self.v, o.v)))
    def __mul__(self, k): return Vec(*(k * a for a in self.v))
    __rmul__ = __mul__
    def __matmul__(self, o): return sum(a * b for a, b in zip(self.v, o.v))
    def __eq__(self, o): return isinstance(o, Vec) and self.v == o.v
    def __hash__(self): return hash(self.v)
    def __lt__(self, o): return abs(self) < abs(o)
    def __abs__(self): return math.sqrt(self @ self)
    def __len__(self): return len(self.v)
    def __getitem__(self, i): return self.v[i]
    def __iter__(self): return iter(self.v)
    def __contains__(self, x): return x in self.v
    def __neg__(self): return -1 * self
    def __iadd__(self, o): self.v = (self + o).v; return self
    def __bool__(self): return any(self.v)
    def __repr__(self): return f"{self.__class__.__name__}{self.v}"
    def __call__(self, i): return self[i]
    def __setitem__(self, i, x): self.v = self.v[:i] + (x,) + self.v[i + 1:]
    def __format__(self, spec): return "<" + ",".join(format(a, spec) for a in self) + ">"

a, b = Vec(1, 2), Vec(3, 4)
c = a
c += b
c[0] = 9
print(a + b, 2 * a, a @ b, a == Vec(9, 6), abs(b), len(a), b[1], list(a), 4 in b, -a, sorted([b, Vec(1, 1)]), bool(Vec(0, 0)), a(1), f"{b:.1f}", {b: 1}[Vec(3, 4)])
"""

PROGRAMS["classes"] = """
from abc import ABC, abstractmethod
import functools

class Shape(ABC):
    count = 0
    def __init__(self, name):
        type(self).count += 1
        self._name = name
    @abstractmethod
    def area(self): ...
    @property
    def name(self):
        return self._name
    @name.setter
    def name(self, v):
        self._name = v.strip()
    @classmethod
    def unit(cls):
        return cls(1)
    @staticmethod
    def double(x):
        return 2 * x
    def describe(self):
        return f"{self.name}: {self.area()}"

class Square(Shape):
    def __init__(self, side):
        super().__init__("square")
        self.side = side
    def area(self):
        return self.side ** 2
    def describe(self):
        return super().describe().upper()

class Big(Square):
    def __init__(self, side):
        Square.__init__(self, side * 10)

@functools.total_ordering
class Version:
    def __init__(self, v): self.v = v
    def __eq__(self, o): return self.v == o.v
    def __lt__(self, o): return self.v < o.v

s = Square.unit(); s.name = "  sq "
big = Big(2)
try:
    Shape("x")
except TypeError as e:
    print("abstract")
print(s.describe(), big.area(), Shape.double(3), isinstance(big, Shape), issubclass(Big, Square), Square.count, big.count, Version(1) >= Version(0))
print(sorted(vars(s)), hasattr(s, "area"), getattr(s, "nope", None), type(s).__name__, s.__class__ is Square, callable(s.area))
setattr(s, "side", 3); delattr(s, "_name")
print(s.side, hasattr(s, "_name"))
"""

PROGRAMS["enum_dispatch"] = """
from enum import Enum, IntEnum, auto
import jax, jax.numpy as jnp

class Act(Enum):
    RELU = "relu"
    TANH = "tanh"
    def apply(self, x):
        return {Act.RELU: jax.nn.relu, Act.TANH: jnp.tanh}[self](x)

class Level(IntEnum):
    LOW = auto()
    HIGH = auto()

print([a.name for a in Act], Act("tanh"), Act["RELU"].value, Act.TANH.apply(jnp.array(0.5)), Level.HIGH > Level.LOW, Level(1))
"""

PROGRAMS["stdlib"] = """
import itertools as it, math, collections, operator, random, statistics, heapq, bisect, copy
from functools import reduce, lru_cache, cache, partial, cached_property
from collections import Counter, defaultdict, deque, OrderedDict

@lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

@cache
def square(n):
    return n * n

class Data:
    def __init__(self): self.reads = 0
    @cached_property
    def total(self):
        self.reads += 1
        return 42

d = Data(); d.total, d.total
words = Counter("abracadabra")
groups = defaultdict(list)
for w in ["apple", "bob", "avocado"]:
    groups[w[0]].append(w)
dq = deque([1, 2, 3], maxlen=3); dq.append(4)
h = [5, 1, 4]; heapq.heapify(h)
random.seed(3); r1 = random.random(); random.seed(3)
nested = {"a": [1, 2]}; deep = copy.deepcopy(nested); deep["a"].append(3)
print(fib(30), square(4), fib.cache_info().hits > 0, d.reads, words.most_common(2), dict(groups), list(dq), heapq.heappop(h), r1 == random.random())
print(list(it.islice(it.count(3), 2)), list(it.product("ab", [1])), list(it.accumulate([1, 2, 3])), reduce(operator.mul, [1, 2, 3, 4]), operator.itemgetter(1)([7, 8]), operator.attrgetter("reads")(d))
print(math.pi, math.isclose(0.1 + 0.2, 0.3), math.comb(5, 2), statistics.mean([1, 2, 3]), bisect.bisect([1, 3, 5], 4), nested, deep, list(it.chain.from_iterable([[1], [2]])))
od = OrderedDict(a=1); od["b"] = 2; od.move_to_end("a")
print(list(od), partial(pow, 2)(5), list(zip(*[(1, 2), (3, 4)])), divmod(7, 2), round(2.567, 1), bin(5), int("ff", 16), sum([[1], [2]], []))
"""

PROGRAMS["typing_everywhere"] = """
from __future__ import annotations
import typing
from typing import Any, Callable, ClassVar, Dict, Generic, List, Literal, Optional, Protocol, Tuple, TypeVar, Union, Annotated
from collections.abc import Iterable, Sequence
import jax
import jax.numpy as jnp
import numpy as np

T = TypeVar("T")
Pair = Tuple[T, T]
Step = Callable[[jax.Array, jax.Array], Tuple[jax.Array, jax.Array]]
Mode = Literal["train", "eval"]

class Sized(Protocol):
    def size(self) -> int: ...

class Stack(Generic[T]):
    limit: ClassVar[int] = 3
    items: list[T]
    def __init__(self, items: Iterable[T] = ()) -> None:
        self.items = list(items)
    def push(self, x: T) -> Stack[T]:
        self.items.append(x)
        return self
    def pop(self) -> Optional[T]:
        return self.items.pop() if self.items else None

def run(step: Step, init: Union[float, jax.Array], xs: Sequence[float] | np.ndarray, mode: Mode = "train") -> Any:
    scale: float = 2.0 if mode == "train" else 1.0
    out, _ = jax.lax.scan(step, init, scale * jnp.asarray(xs))
    return out

s: Stack[int] = Stack([1]).push(2)
table: Dict[str, List[int]] = {"a": [1]}
x: Annotated[int, "a note"] = typing.cast(int, 3)
print(run(lambda c, v: (c + v, v), 0.0, np.arange(3.0, dtype=np.float32)), s.pop(), s.items, table, x, Stack.limit)
"""

PROGRAMS["headers_people_paste"] = """
import os
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
os.environ.setdefault("JAX_PLATFORMS", "cpu")
import sys, warnings
warnings.filterwarnings("ignore")
import jax, jax.numpy as jnp, numpy as np, flax, optax
jax.config.update("jax_platform_name", "cpu")
try:
    import wandb
except ImportError:
    wandb = None
print(jax.__version__, flax.__version__, jax.default_backend(), len(jax.devices()), sys.version_info >= (3, 8))
key = jax.random.PRNGKey(0)
key, sub = jax.random.split(key)
x = jax.device_put(np.ones(3))
print(x.sum().block_until_ready(), os.environ.get("HOME_NOT_THERE"), sub.shape, file=sys.stdout)
"""

PROGRAMS["numpy_side"] = """
import numpy as np
np.random.seed(0)
a = np.random.randn(4, 3)
b = np.random.RandomState(0).randn(4, 3)
rng = np.random.default_rng(1)
c = rng.integers(0, 10, size=5); rng.shuffle(c)
a[a < 0] = 0
a[0] += 1; a[:, 1] *= 2
m = np.ma if hasattr(np, "no") else None
z = np.zeros(3); z[1] = 5; z.fill(2); z.shape = (3, 1)
with np.errstate(divide="ignore", invalid="ignore"):
    q = np.array([1.0, 0.0]) / 0.0
print(a.shape, np.round(b.mean(), 4), c.tolist(), z.T, q, np.r_[0:3, 5], np.c_[[1, 2], [3, 4]], np.mgrid[0:2, 0:2].shape)
print(np.linalg.norm(a) > 0, np.fft.fft(np.ones(4)).real, np.einsum("ij,ij->i", a, a).shape, np.argsort([3, 1, 2]), np.where([True, False], 1, 2), np.float32(3).item(), np.arange(6).reshape(2, 3)[:, ::-1], np.newaxis is None)
print(np.vectorize(lambda v: v * 2)(np.arange(3)), np.concatenate([z, z]).size, np.unique([1, 1, 2], return_counts=True), isinstance(a, np.ndarray), type(a) is np.ndarray, a.dtype == np.float64, np.iinfo(np.int32).max)
"""

PROGRAMS["jnp_toolbox"] = """
import jax, jax.numpy as jnp
x = jnp.arange(12.0).reshape(3, 4)
y = x.at[0].set(-1).at[1, 2].add(10).at[:, 0].multiply(2)
idx = jnp.array([[0, 2], [1, 3], [3, 0]])
print(y, jnp.take_along_axis(x, idx, axis=1), x.at[0, 0].get(), y.at[2].min(0.0)[2])
print(jnp.einsum("ij,kj->ik", x, x), jnp.linalg.det(jnp.eye(3) * 2), jnp.linalg.solve(jnp.eye(2), jnp.ones(2)), jnp.fft.fft(jnp.ones(2)))
print(jnp.stack([x, x]).shape, jnp.where(x > 5, x, 0).sum(), jnp.cumsum(x, 1)[-1], jnp.sort(-x.ravel())[:2], jnp.pad(x, 1).shape, jnp.tile(x, (2, 1)).shape, jnp.outer(x[0], x[1]).shape, jnp.r_[1:3], jnp.add.reduce(x[0]))
print(x.T.shape, x.astype(jnp.int32).dtype, x.max(), x.argmin(), x.mean(0), x.std(), x.reshape(-1).shape, x[None].squeeze().shape, x.ndim, x.size, x.nbytes, jnp.dtype("float32").itemsize, jnp.clip(x, 2, 5).min(), jax.nn.softmax(x[0]).sum())
print(jnp.select([x < 2, x < 6], [0, 1], 2), jnp.interp(1.5, x[0], x[1]), jnp.searchsorted(x[0], 2.0), jnp.histogram(x, bins=3)[0], jnp.unravel_index(5, (3, 4)), jnp.vectorize(lambda v: v + 1)(x[0]), jnp.apply_along_axis(jnp.sum, 0, x), jnp.float32(3) + 1, jnp.isnan(x).any())
"""

PROGRAMS["trees_and_transforms"] = """
import jax, jax.numpy as jnp
from jax import tree_util
from jax.flatten_util import ravel_pytree
from jax import grad, jit, vmap, jacfwd, jacrev, jvp, vjp, linearize, eval_shape, make_jaxpr
params = {"w": jnp.ones((2, 3)), "b": [jnp.zeros(3), 1.0], "n": None}
flat, unravel = ravel_pytree(params)
leaves, treedef = jax.tree.flatten(params)
named = {tree_util.keystr(p): jnp.shape(v) for p, v in tree_util.tree_leaves_with_path(params)}
print(flat.shape, treedef.num_leaves, named, jax.tree.map(lambda v: v * 2, params)["b"][1], jax.tree.structure(params) == treedef)
f = lambda x: jnp.sin(x).sum() * x[0]
x = jnp.array([0.1, 0.2])
y, pull = vjp(f, x)
lin, push = linearize(f, x)
print(jacfwd(grad(f))(x), jacrev(f)(x), jvp(f, (x,), (x,)), pull(1.0), push(x), vmap(grad(lambda v: v ** 2))(x), eval_shape(f, x).shape)
print(make_jaxpr(lambda a: a * 2 + 1)(1.0))
print(jax.tree.reduce(lambda a, b: a + jnp.sum(b), params, 0.0), jax.tree.leaves(params, is_leaf=lambda v: v is None)[-1].shape, jit(f)(x), jax.tree_util.Partial(jnp.add, 1)(2))
print(vmap(lambda a, b: a @ b, in_axes=(0, None))(jnp.ones((3, 2)), x).shape, vmap(vmap(lambda v: v + 1))(jnp.ones((2, 2))).sum(), jax.vmap(lambda d: d["a"] + 1)({"a": x}))
"""

PROGRAMS["jit_static"] = """
import jax, jax.numpy as jnp
from functools import partial

@partial(jax.jit, static_argnames=("n", "act"))
def power(x, n, act="none"):
    for _ in range(n):
        x = x * 2
    if act == "relu":
        x = jax.nn.relu(x)
    return x

@jax.jit
def where(x):
    return jnp.where(x > 0, x, -x)

class Model:
    def __init__(self, w): self.w = w
    @partial(jax.jit, static_argnums=0)
    def __call__(self, x): return self.w * x

fast = jax.jit(lambda x, k: x + k, static_argnums=(1,), donate_argnums=())
print(power(jnp.array(-1.0), 3), power(jnp.array(-1.0), n=2, act="relu"), where(-2.0), Model(3.0)(2.0), fast(1, 2))
shape = jax.eval_shape(power, jax.ShapeDtypeStruct((2,), jnp.float32), 1)
print(shape.shape, shape.dtype, power(jnp.ones(2), 1).shape)
"""

PROGRAMS["frozen_ordered_slots_dataclasses"] = """
from dataclasses import dataclass, field, astuple, fields, replace, FrozenInstanceError
@dataclass(frozen=True, order=True)
class Point:
    x: float
    y: float = 0.0
    tag: str = field(default="", compare=False)
    def __add__(self, o):
        return Point(self.x + o.x, self.y + o.y)

@dataclass(slots=True, kw_only=True)
class Run:
    lr: float
    tags: list = field(default_factory=list)
    def name(self): return f"lr{self.lr}"

p = Point(1, 2) + Point(3)
try:
    p.x = 5
except FrozenInstanceError:
    print("frozen")
r = Run(lr=0.1); r.lr = 0.2; r.tags.append("a")
match p:
    case (a, b): print("no")
    case _: print(p, astuple(p), [f.name for f in fields(Point)], replace(p, y=0), p > Point(0, 9), r.name(), r)
"""

PROGRAMS["everyday_text"] = '''
text = """3,1.5,a
4,2.5,b
"""
rows = []
for line in text.strip().splitlines():
    n, v, label = line.split(",")
    rows.append({"n": int(n), "v": float(v), "label": label})
rows.sort(key=lambda r: r["v"], reverse=True)
keys = set(rows[0]) & {"n", "v"} | {"label"}
print(rows, sorted(keys), [chr(ord(c) + 1) for c in "abc"], "b" in "abc", "abc".find("c"), "a-b".partition("-"))
i = 0
while True:
    i += 1
    if i % 2:
        continue
    if i > 6:
        break
else:
    print("never")
for j in range(3):
    pass
else:
    print("done", i, j)
assert isinstance(rows, list) and len(rows) == 2, "rows"
lookup = dict(zip("ab", range(2))); lookup |= {"c": 2}; lookup.pop("a")
print(lookup, list(lookup.values()), [r for r in rows if r["n"] > 3], tuple(i for i in (3, 2)), 7 // 2, -7 % 3, 2 ** -1, 5 & 3 | 8 ^ 1, ~5, 1 << 3, True and None or "x")
'''
