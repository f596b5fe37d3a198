"""Attributes, items, writes, calls and classes, by the type of the object."""

from __future__ import annotations

import collections
import functools
import types
from typing import Any

import flax
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from core.sandbox.facade import environment, library_tables
from core.sandbox.guards import Guards
from core.sandbox.harden import harden
from core.sandbox.kinds import Kind, Text
from core.sandbox.offered import offered
from core.sandbox.output import Output
from core.sandbox.refusals import NotHere, RefusedAttribute, RefusedUse
from tests.unit.sandbox.sandbox_support import run


@pytest.fixture
def guards() -> Any:
    made = Guards()
    environment(made, out=Output())
    yield made
    made.close()


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (jnp.ones(3), "sum"),
        (np.ones(3), "tolist"),
        (np.float32(1), "item"),
        ("a", "upper"),
        ([1], "append"),
        ({}, "items"),
        (1.5, "is_integer"),
        (collections.Counter("a"), "most_common"),
        (functools.partial(len), "func"),
        (jax.tree.structure((1, 2)), "num_leaves"),
        (np.dtype("f4"), "itemsize"),
        (jnp.finfo(jnp.float32), "eps"),
        (ValueError("x"), "args"),
        (property(len), "setter"),
        (jnp.float32, "dtype"),
        (jnp.add, "reduce"),
        (optax.adam(1.0), "init"),
        (jax.ShapeDtypeStruct((2,), jnp.float32), "shape"),
        (int, "from_bytes"),
        (nnx.LSTMCell, "initialize_carry"),
    ],
)
def test_plain_attributes_are_read_as_ever(guards: Guards, value: Any, name: str) -> None:
    assert guards.get(value, name) == getattr(value, name)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (jnp.ones(3), "unsafe_buffer_pointer"),
        (jnp.ones(3), "addressable_shards"),
        (jnp.ones(3), "sharding"),
        (jnp.ones(3), "traceback"),
        (np.ones(3), "base"),
        (np.ones(3), "ctypes"),
        (np.ones(3), "data"),
        (np.ones(3), "flags"),
        (np.ones(3), "tofile"),
        (np.ones(3), "setflags"),
        (jax.jit(len), "lower"),
        (jax.jit(len), "trace"),
        (jax.nn.relu, "defjvp"),
        ((i for i in ()), "gi_frame"),
        (np.random.default_rng(0), "bit_generator"),
        (jax.tree.structure(1), "serialize_using_proto"),
        (nnx.LSTMCell, "mro"),
        (np.random.Generator, "power"),
        (AttributeError("x"), "obj"),
        (OSError("x"), "filename"),
        (functools.lru_cache(len), "__wrapped__"),
        (len, "__self__"),
        (len, "__call__"),
        (types.SimpleNamespace(a=1), "__dict__"),
    ],
)
def test_what_is_not_offered_is_refused_and_hasattr_says_no(guards: Guards, value: Any, name: str) -> None:
    assert hasattr(value, name)
    with pytest.raises(RefusedAttribute):
        guards.get(value, name)
    assert not guards.hasattr(value, name)
    assert guards.getattr(value, name, "default") == "default"


@pytest.mark.parametrize("value", [(1, 2), "a", jnp.ones(2), np.ones(2), 3, len, nnx.LSTMCell, collections.deque()])
def test_what_is_not_there_is_told_in_python_s_words(guards: Guards, value: Any) -> None:
    with pytest.raises(AttributeError) as ours:
        guards.get(value, "no_such_thing")
    with pytest.raises(AttributeError):
        value.no_such_thing  # noqa: B018
    assert not isinstance(ours.value, NotHere)
    assert "has no attribute 'no_such_thing'" in str(ours.value)


def test_names_are_read_once(guards: Guards) -> None:
    class Fickle(str):
        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return hash("shape")

    with pytest.raises(AttributeError):
        guards.get(len, Fickle("__self__"))
    with pytest.raises(TypeError):
        guards.get(len, 3)  # type: ignore[arg-type]


def test_own_objects_are_open_and_what_they_inherit_is_not() -> None:
    names = run(
        """
        from flax import nnx
        class M(nnx.Module):
            def __init__(self): self._hidden, self.open = 1, 2
            def both(self): return self._hidden + self.open
        m = M()
        seen = m._hidden, m.open, m.both(), M.both is not None
        inner = [hasattr(m, n) for n in ("_pytree__state", "_pytree__nodes", "_setattr", "_graph_node_flatten", "__dict__")]
        """
    )
    assert names["seen"] == (1, 2, 3, True)
    assert names["inner"] == [False] * 5


def test_a_function_of_the_script_holds_attributes_and_a_library_s_does_not() -> None:
    names = run("def f(): pass\nf.calls = 1\nf.calls += 1\nresult = f.calls, hasattr(f, '_x')")
    assert names["result"] == (2, False)
    with pytest.raises(RefusedAttribute):
        run("import jax.numpy as jnp\njnp.linspace.calls = 1")


@pytest.mark.parametrize(
    "line",
    [
        "nnx.LSTMCell.initialize_carry = 1",
        "jnp.zeros = 1",
        "del jnp.zeros",
        "jax.config.x = 1",
        "np.dtype('f4').names = ()",
        "a.dtype = float",
        "a.strides = (0,)",
        "x.aval = 1",
        "jnp.add.reduce = 1",
        "ValueError('x').args = ()",
        "setattr(nnx.Linear, 'x', 1)",
        "delattr(nnx.Linear, 'x')",
        "d._pytree__nodes = {}",
        "optax.adam(1.0).init = 1",
        "type(a).x = 1",
    ],
)
def test_shared_objects_cannot_be_changed(line: str) -> None:
    imports = "import jax, jax.numpy as jnp, numpy as np, optax\nfrom flax import nnx\nx, a, d = jnp.ones(2), np.ones(2), nnx.Dict()\n"
    with pytest.raises(AttributeError):
        run(imports + line)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("(1, 2)[0] = 3", TypeError),
        ("jnp.ones(2)[0] = 3", TypeError),
        ("'ab'[0] = 'c'", TypeError),
        ("(1).real = 3", AttributeError),
        ("P(1).x = 2", AttributeError),
    ],
)
def test_what_python_and_jax_refuse_they_refuse_in_their_own_words(line: str, error: type[Exception]) -> None:
    head = "import jax.numpy as jnp\nfrom dataclasses import dataclass\n@dataclass(frozen=True)\nclass P:\n    x: int\n"
    with pytest.raises(error) as ours:
        run(head + line)
    assert not isinstance(ours.value, NotHere)


def test_a_mapping_of_keywords_is_read_once(guards: Guards) -> None:
    class Changing:
        reads = 0

        def keys(self) -> list[str]:
            Changing.reads += 1
            return ["x"] if Changing.reads == 1 else ["__class__"]

        def __getitem__(self, key: str) -> int:
            return 1

    assert guards.keywords(Changing()) == {"x": 1}
    with pytest.raises(RefusedUse):
        guards.keywords(Changing())
    with pytest.raises(TypeError, match="must be a mapping, not int"):
        guards.keywords(3)


def test_type_gives_known_classes_and_kinds_for_others(guards: Guards) -> None:
    assert guards.type_of(1) is int
    assert guards.type_of(nnx.Rngs(0)) is nnx.Rngs
    array = guards.type_of(np.ones(2))
    assert type(array) is Kind
    assert array is guards.type_of(np.zeros(3))
    assert isinstance(np.ones(1), array)
    assert not isinstance([], array)
    with pytest.raises(RefusedUse):
        array((2,))
    assert type(guards.type_of(type)) is Kind
    assert type(guards.type_of(lambda: 0)) is Kind


def test_kinds_stand_in_annotations_unions_and_comparisons() -> None:
    names = run(
        """
        import numpy as np, jax
        from typing import Optional, NamedTuple
        class S(NamedTuple):
            x: np.ndarray
            y: Optional[np.ndarray] = None
            z: np.ndarray | jax.Array | None = None
        def f(x: np.ndarray[int], y: jax.Array | np.ndarray): return x
        a = np.ones(2)
        result = isinstance(a, np.ndarray), isinstance(a, (list, np.ndarray)), type(a) is np.ndarray, type(a) == type(a)
        result += (isinstance(a, np.ndarray | jax.Array), f(S(a), 1).x is a, np.ndarray.__name__, type(a).__name__)
        """
    )
    assert names["result"] == (True, True, True, True, True, True, "ndarray", "ndarray")


def test_super_reaches_what_a_class_may_use_and_nothing_else() -> None:
    with pytest.raises(AttributeError):
        run("class A(str):\n    def f(self): return super()._formatter\nA('x').f()")
    assert (
        run(
            "class A(list):\n    def push(self, x):\n        super().append(x)\n        return len(self)\nn = A().push(1)"
        )["n"]
        == 1
    )


def test_text_of_a_script_says_what_it_is() -> None:
    names = run(
        "from enum import Enum\nclass Mode(str, Enum):\n    A = 'a'\n    def __str__(self): return self.value\nx = Mode.A == 'a'"
    )
    assert names["x"] is True
    for body in ("def __eq__(self, o): return True", "def startswith(self, s): return False", "__hash__ = None"):
        with pytest.raises(RefusedUse, match="a class built on str may not replace"):
            run(f"class S(str):\n    {body}")
    with pytest.raises(RefusedUse, match="a class built on str may not replace"):
        run("class L:\n    def __eq__(self, o): return True\n    __hash__ = None\nclass S(L, str): pass")
    with pytest.raises(RefusedAttribute):
        run("class S(str): pass\nS.startswith = lambda self, s: False")
    with pytest.raises(RefusedAttribute):
        run("class T(tuple): pass\nT._fields = ('__setattr__',)")


def test_a_view_of_objects_is_refused() -> None:
    assert run("import numpy as np\nx = np.ones(2, np.float32).view(np.int32).dtype.name")["x"] == "int32"
    for line in ("np.zeros(1, 'V8').view(object)", "np.ones(1).view(np.ndarray)", "np.array([None]).view('i8')"):
        with pytest.raises(NotHere):
            run(f"import numpy as np\n{line}")


def test_device_and_devices_are_text() -> None:
    names = run("import jax, jax.numpy as jnp\nx = jnp.ones(2)\nd = (x.device, x.devices(), jax.devices())")
    assert all(type(v) is Text for v in (names["d"][0], *names["d"][1], *names["d"][2]))


def test_classes_of_libraries_that_answer_any_name_are_hardened() -> None:
    """Every class of the facade with a `__getattr__` of its own: names in double underscores do not come out of data."""
    harden()
    hardened = {nnx.Variable, nnx.State}
    # Their own code refuses or never has such names: streams, layers that are dataclasses, proxies of deprecations.
    # A custom derivative asks its function, a graph state its state.
    known = {nnx.Rngs, flax.linen.Module, jax.core.Tracer, nnx.GraphState}
    known |= {jax.custom_jvp, jax.custom_vjp, jax.custom_batching.custom_vmap}
    found = set()
    for table, _ in library_tables().values():
        for value in table.values():
            if isinstance(value, type):
                found |= {c for c in value.__mro__ if "__getattr__" in vars(c) and c.__module__ != "typing"}
    extra = {c for c in found - hardened - known if c.__module__.partition(".")[0] in ("flax", "jax", "optax", "numpy")}
    assert extra == set()


def test_the_table_of_types_has_no_row_that_another_hides() -> None:
    from core.sandbox.offered import table

    seen: list[Any] = []
    for kinds, _ in table():
        for kind in kinds if isinstance(kinds, tuple) else (kinds,):
            assert not any(issubclass(kind, earlier) for earlier in seen), kind
        seen += list(kinds) if isinstance(kinds, tuple) else [kinds]


@pytest.mark.parametrize(
    "value", ["", jnp.ones(2), np.ones(2), jnp.ones(2).at[0], jax.tree.structure(1), (i for i in ())]
)
def test_offered_attributes_exist_on_their_types(value: Any) -> None:
    assert {n for n in offered(type(value)) if not hasattr(type(value), n)} == set()
