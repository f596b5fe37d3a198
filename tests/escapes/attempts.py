"""Attempts to leave the step language, as data: the public classes of them, one row each.

A script that gets out finds a planted marker and leaves it in `got` (or in the file `@OUT@`, or on the real standard
output, or for a later job to find: `after`). `guard` names what stops it: a test runs the script as it is and must see it
refused, and once more with that one guard off, when it must read the marker (tests/escapes/guards_off.py). Two names joined
by " + " are two walls, one behind the other.

Tokens: @FILE@ a file with the marker, @NPY@, @PICKLE@ the same as NumPy and pickled files, @OUT@ a path to write to, @MARKER@
its text, @CODES@ its characters as numbers, @ADDRESS@ and @ID@ where it lies in memory, @LEN@ its length. Where nothing can
be planted (a device's client) the script says the marker itself once it has what it reached for.

Longer than 500 lines because it is data: one attempt a row.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt."""

    id: str
    guard: str
    source: str
    after: str = ""


def _rows(guard: str, **sources: str) -> list[Attempt]:
    return [Attempt(name, guard, source.strip("\n")) for name, source in sources.items()]


GLOBALS = '["__builtins__"]["__planted__"]'
MEMORY = '{"data": (@ADDRESS@, True), "shape": (@LEN@,), "typestr": "|u1", "version": 3}'
READ = "got = bytes(list(np.asarray({obj})))"

ATTEMPTS: list[Attempt] = []

# --- dunder chains ---------------------------------------------------------------------------------------------------
ATTEMPTS += _rows(
    "attributes",
    dunder_subclasses=f"""
for c in ().__class__.__base__.__subclasses__():
    g = getattr(c.__init__, "__globals__", None)
    if g and isinstance(g.get("__builtins__"), dict):
        got = g{GLOBALS}
        break
""",
    dunder_mro=f"""
for c in type(1.0).__mro__[-1].__subclasses__():
    g = getattr(c.__init__, "__globals__", None)
    if g and isinstance(g.get("__builtins__"), dict):
        got = g{GLOBALS}
        break
""",
    function_globals=f"""
def f():
    pass
got = f.__globals__{GLOBALS}
""",
    lambda_globals=f"got = (lambda: 0).__globals__{GLOBALS}",
    method_function=f"""
class A:
    def m(self):
        pass
got = A().m.__func__.__globals__{GLOBALS}
""",
    init_of_a_class=f"""
from flax import nnx
got = nnx.LSTMCell.__init__.__globals__{GLOBALS}
""",
    class_dictionary=f"""
from flax import nnx
got = nnx.Linear.__dict__["__call__"].__globals__{GLOBALS}
""",
    builtin_self="got = len.__self__.__planted__",
    wrapped_of_a_jitted_function=f"""
import jax.numpy as jnp
got = jnp.matmul.__wrapped__.__globals__{GLOBALS}
""",
    object_getattribute=f"""
def f():
    pass
got = object.__getattribute__(f, "__globals__"){GLOBALS}
""",
    reduce_of_an_object=f"""
from flax import nnx
got = nnx.Rngs(0).__reduce_ex__(2)[0].__globals__{GLOBALS}
""",
    getattr_with_a_joined_name=f"""
def f():
    pass
got = getattr(f, "__glo" + "bals__"){GLOBALS}
""",
    getattr_with_a_default="""
def f():
    pass
got = getattr(f, "__globals__", {}).get("__builtins__", {}).get("__planted__") or f.nothing_of_the_kind
""",
    reduce_with_getattr=f"""
from functools import reduce
def f():
    pass
got = reduce(getattr, ["__globals__"], f){GLOBALS}
""",
    map_with_getattr=f"""
def f():
    pass
got = list(map(getattr, [f], ["__globals__"]))[0]{GLOBALS}
""",
    tree_map_with_getattr=f"""
import jax
def f():
    pass
got = jax.tree.map(getattr, [f], ["__globals__"])[0]{GLOBALS}
""",
    frompyfunc_with_getattr=f"""
import numpy as np
def f():
    pass
got = np.frompyfunc(getattr, 2, 1)(f, "__globals__"){GLOBALS}
""",
    full_width_letters=f"""
def f():
    pass
got = f.__ｇlobals__{GLOBALS}
""",
    super_getattribute=f"""
class A:
    def m(self):
        return super().__getattribute__("m").__func__.__globals__{GLOBALS}
got = A().m()
""",
    partial_function=f"""
from functools import partial
import jax.numpy as jnp
got = partial(jnp.linspace).func.__globals__{GLOBALS}
""",
    cache_wrapped=f"""
from functools import lru_cache
@lru_cache
def f():
    pass
got = f.__wrapped__.__globals__{GLOBALS}
""",
    property_fget=f"""
class A:
    @property
    def p(self):
        return 1
got = A.p.fget.__globals__{GLOBALS}
""",
    staticmethod_function=f"got = staticmethod(lambda: 0).__func__.__globals__{GLOBALS}",
    vectorize_pyfunc=f"""
import numpy as np
got = np.vectorize(lambda v: v).pyfunc.__globals__{GLOBALS}
""",
    jitted_inner_function=f"""
import jax
got = jax.jit(lambda x: x)._fun.__globals__{GLOBALS}
""",
    facade_namespace_table="""
import jax.numpy as jnp
if jnp._table:
    got = "@MARKER@"
""",
    facade_config_inside=f"""
import jax
got = jax.config._guards.get.__func__.__globals__{GLOBALS}
""",
    facade_environ_inside=f"""
import os
got = os.environ._set_x64.__globals__{GLOBALS}
""",
)

# --- frames and exceptions -------------------------------------------------------------------------------------------
ATTEMPTS += _rows(
    "attributes",
    generator_frame=f"""
g = (x for x in [1])
got = g.gi_frame.f_globals{GLOBALS}
""",
    generator_code="""
def g():
    yield 1
if g().gi_code.co_names is not None:
    got = "@MARKER@"
""",
    generator_yieldfrom=f"""
def inner():
    yield 1
def outer():
    yield from inner()
o = outer()
next(o)
got = o.gi_yieldfrom.gi_frame.f_globals{GLOBALS}
""",
    traceback_frame=f"""
try:
    1 / 0
except ZeroDivisionError as e:
    got = e.__traceback__.tb_frame.f_globals{GLOBALS}
""",
    traceback_of_a_cause=f"""
try:
    try:
        1 / 0
    except ZeroDivisionError as e:
        raise ValueError("x") from e
except ValueError as v:
    got = v.__cause__.__traceback__.tb_frame.f_globals{GLOBALS}
""",
    attribute_error_obj=f"""
def f():
    pass
try:
    f.nope
except AttributeError as e:
    got = e.obj.__globals__{GLOBALS}
""",
    error_that_carries_a_function=f"""
import jax.numpy as jnp
class E(Exception):
    pass
try:
    raise E(jnp.linspace)
except E as e:
    got = e.args[0].__globals__{GLOBALS}
""",
    frame_of_a_library=f"""
import jax
try:
    jax.lax.scan(lambda c, x: (c, x, x), 0.0, jax.numpy.ones(2))
except TypeError as e:
    t = e.__traceback__
    while t.tb_next:
        t = t.tb_next
    got = t.tb_frame.f_globals{GLOBALS}
""",
)
ATTEMPTS += _rows(
    "tracebacks + attributes",
    exit_gets_a_traceback=f"""
class C:
    def __enter__(self):
        return self
    def __exit__(self, kind, error, tb):
        self.frame = tb.tb_frame
        return True
c = C()
with c:
    1 / 0
got = c.frame.f_globals{GLOBALS}
""",
)
ATTEMPTS += _rows(
    "real:jax.make_jaxpr + attributes",
    jaxpr_source_info="""
import jax
made = jax.make_jaxpr(lambda x: x + 1)(1.0)
if made.eqns[0].source_info.traceback.frames:
    got = "@MARKER@"
""",
)
ATTEMPTS += _rows(
    "real:sys._getframe + attributes",
    sys_getframe=f"""
import sys
got = sys._getframe().f_globals{GLOBALS}
""",
)

# --- string formatting -----------------------------------------------------------------------------------------------
FIELD = "__globals__[__builtins__][__planted__]"
ATTEMPTS += _rows(
    "format",
    format_field=f"""
def f():
    pass
got = "{{0.{FIELD}}}".format(f)
""",
    format_named_field=f"""
def f():
    pass
got = "{{f.{FIELD}}}".format(f=f)
""",
    format_map=f"""
def f():
    pass
got = "{{f.{FIELD}}}".format_map({{"f": f}})
""",
    format_unbound=f"""
def f():
    pass
got = str.format("{{0.{FIELD}}}", f)
""",
    format_through_map=f"""
def f():
    pass
got = list(map(str.format, ["{{0.{FIELD}}}"], [f]))[0]
""",
    format_of_a_subclass=f"""
class S(str):
    pass
def f():
    pass
got = S("{{0.{FIELD}}}").format(f)
""",
    format_by_super=f"""
class S(str):
    def go(self, f):
        return super().format(f)
def f():
    pass
got = S("{{0.{FIELD}}}").go(f)
""",
    format_of_numpy_text=f"""
import numpy as np
def f():
    pass
got = np.str_("{{0.{FIELD}}}").format(f)
""",
    format_in_a_nested_specification=f"""
def f():
    pass
try:
    got = "{{0:{{1.{FIELD}}}}}".format(1, f)
except ValueError as e:
    got = str(e)
""",
)
ATTEMPTS += _rows(
    "attributes",
    fstring_field="""
def f():
    pass
got = f"{f.__globals__['__builtins__']['__planted__']}"
""",
    fstring_lambda="""
got = f"{(lambda: (lambda g: g)(print).__globals__['__builtins__']['__planted__'])()}"
""",
    fstring_nested_specification="""
def f():
    pass
got = f"{'':{'x' if f.__globals__ else ''}>1}" and f"{getattr(f, '__globals__')['__builtins__']['__planted__']!s}"
""",
)
ATTEMPTS += _rows(
    "real:jax.debug.print",
    debug_print_field=f"""
import jax
def f():
    pass
jax.debug.print("{{f.{FIELD}}}", f=f)
jax.effects_barrier()
""",
    debug_print_two_calls=f"""
import jax
def f():
    pass
jax.debug.print(ordered=True)("{{0.{FIELD}}}", f)
jax.effects_barrier()
""",
)

# --- the guards' own names -------------------------------------------------------------------------------------------
_EVALUATED = """
from flax import nnx
S = "seen.append(__planted__)"
{rebind}
class A(nnx.Module):
    x: S
"""
ATTEMPTS += _rows(
    "names",
    rebind_by_assignment=_EVALUATED.format(rebind="_annotation_ = lambda v: v"),
    rebind_by_definition=_EVALUATED.format(rebind="def _annotation_(v):\n    return v"),
    rebind_by_loop=_EVALUATED.format(rebind="for _annotation_ in [lambda v: v]:\n    pass"),
    rebind_by_walrus=_EVALUATED.format(rebind="(_annotation_ := lambda v: v)"),
    rebind_by_import=_EVALUATED.format(rebind="from copy import copy as _annotation_"),
    rebind_by_match=_EVALUATED.format(rebind="match (lambda v: v):\n    case _annotation_:\n        pass"),
    rebind_by_class=_EVALUATED.format(rebind="class _annotation_(str):\n    pass"),
    rebind_by_with=_EVALUATED.format(
        rebind="from contextlib import nullcontext\nwith nullcontext(lambda v: v) as _annotation_:\n    pass"
    ),
    rebind_by_global=_EVALUATED.format(
        rebind="def go():\n    global _annotation_\n    _annotation_ = lambda v: v\ngo()"
    ),
    rebind_by_argument="""
from flax import nnx
S = "seen.append(__planted__)"
def go(_annotation_):
    class A(nnx.Module):
        x: S
go(lambda v: v)
""",
    import_by_name='got = str(__import__("planted"))',
    builtins_by_name='got = __builtins__["__planted__"]',
    class_with_an_array_interface=f"""
import numpy as np
class A:
    __array_interface__ = {MEMORY}
{READ.format(obj="A()")}
""",
    method_getattr=f"""
import numpy as np
class A:
    def __getattr__(self, name):
        if name == "__array_interface__":
            return {MEMORY}
        raise AttributeError(name)
{READ.format(obj="A()")}
""",
    property_array_interface=f"""
import numpy as np
class A:
    @property
    def __array_interface__(self):
        return {MEMORY}
{READ.format(obj="A()")}
""",
    method_reduce="""
import copy
class A:
    def __reduce_ex__(self, protocol):
        return _library, ("planted",)
def _library(name):
    return str(__import__(name))
got = copy.copy(A())
""",
)

# --- annotations, patterns, keywords ---------------------------------------------------------------------------------
ATTEMPTS += _rows(
    "annotations",
    string_annotation_in_a_module="""
from flax import nnx
class A(nnx.Module):
    x: "seen.append(__planted__)"
""",
    string_annotation_inside_a_generic="""
from flax import nnx
class A(nnx.Module):
    x: list["seen.append(__planted__)"]
""",
    computed_annotation="""
from flax import nnx
S = "seen.append" + "(__planted__)"
class A(nnx.Module):
    x: S
""",
    annotation_in_a_union="""
from typing import Optional
from flax import nnx
S = "seen.append(__planted__)"
class A(nnx.Module):
    x: Optional[S]
""",
    string_subclass_annotation="""
from flax import nnx
class S(str):
    pass
T = S("seen.append(__planted__)")
class A(nnx.Module):
    x: T
""",
)
ATTEMPTS += _rows(
    "annotations + real:typing.get_type_hints",
    get_type_hints="""
from typing import get_type_hints
S = "seen.append(__planted__)"
def f(x: S):
    pass
get_type_hints(f)
""",
)
ATTEMPTS += _rows(
    "patterns",
    match_object_keyword=f"""
def f():
    pass
match f:
    case object(__globals__=g):
        got = g{GLOBALS}
""",
    match_generator_frame="""
g = (x for x in [1])
match g:
    case object(gi_frame=frame) if frame is not None:
        got = "@MARKER@"
""",
    match_dotted_value=f"""
def f():
    pass
class E:
    def __eq__(self, other):
        seen.append(other)
        return True
match E():
    case f.__globals__:
        got = seen[0]{GLOBALS}
""",
    match_mapping_key="""
import itertools
from flax import nnx
class D(dict):
    def get(self, key, default=None):
        seen.append(key)
        return 1
def f():
    pass
match D({1: 2}):
    case {f.__code__: _}:
        got = "@MARKER@" if seen else None
""",
)
ATTEMPTS += _rows(
    "keywords",
    simple_namespace=f"""
import numpy as np
from types import SimpleNamespace
s = SimpleNamespace(**{{"__array_interface__": {MEMORY}}})
{READ.format(obj="s")}
""",
    keyword_written_out=f"""
import numpy as np
from types import SimpleNamespace
s = SimpleNamespace(__array_interface__={MEMORY})
{READ.format(obj="s")}
""",
)
ATTEMPTS += _rows(
    "keywords + harden",
    variable_metadata=f"""
import numpy as np
from flax import nnx
p = nnx.Param(1.0, **{{"__array_interface__": {MEMORY}}})
{READ.format(obj="p")}
""",
    set_attributes_class="""
from flax import nnx
class Other(nnx.Module):
    pass
class Mine(nnx.Module):
    pass
m = Mine()
m.set_attributes(raise_if_not_found=False, **{"__class__": Other})
if isinstance(m, Other):
    got = "@MARKER@"
""",
)

ATTEMPTS += _rows(
    "attributes + texts",
    name_that_is_a_string_of_its_own=f"""
class S(str):
    def __eq__(self, other):
        return other == "args" or super().__eq__(other)
    def __hash__(self):
        return super().__hash__()
def f():
    pass
got = getattr(f, S("__globals__")){GLOBALS}
""",
)
ATTEMPTS += _rows(
    "texts",
    keyword_that_lies_about_itself=f"""
import numpy as np
from types import SimpleNamespace
class S(str):
    def startswith(self, start):
        return False
s = SimpleNamespace(**{{S("__array_interface__"): {MEMORY}}})
{READ.format(obj="s")}
""",
)
ATTEMPTS += _rows(
    "fields",
    fields_of_a_tuple_of_its_own=f"""
import numpy as np, optax
from types import SimpleNamespace
class T(tuple):
    _fields = ("__setattr__",)
    def _asdict(self):
        return {{}}
t = T([1])
found = optax.tree_utils.tree_get_all_with_path(t, "__setattr__")
found[0][1]("__array_interface__", {MEMORY})
{READ.format(obj="t")}
""",
)

# --- attribute names out of data -------------------------------------------------------------------------------------
ATTEMPTS += _rows(
    "harden",
    nnx_dict_entry=f"""
import numpy as np
from flax import nnx
d = nnx.Dict({{"__array_interface__": {MEMORY}}})
{READ.format(obj="d")}
""",
    nnx_dict_entry_that_is_its_dictionary=f"""
import numpy as np
from flax import nnx
d = nnx.Dict()
d["__dict__"]["__array_interface__"] = {MEMORY}
{READ.format(obj="d")}
""",
    nnx_dict_entry_through_itemgetter=f"""
import numpy as np
from operator import itemgetter
from flax import nnx
d = nnx.Dict()
itemgetter("__dict__")(d).update({{"__array_interface__": {MEMORY}}})
{READ.format(obj="d")}
""",
    nnx_dict_get_method="""
from flax import nnx
got = nnx.Dict().get("__dict__", None) is not None and "@MARKER@" or nnx.Dict().nothing_of_the_kind
""",
    nnx_list_index_that_lies=f"""
import numpy as np
from flax import nnx
class I(int):
    def __str__(self):
        return "__dict__"
d = nnx.List([1])
d[I(0)].update({{"__array_interface__": {MEMORY}}})
{READ.format(obj="d")}
""",
    metadata_set_by_name=f"""
import numpy as np
from flax import nnx
p = nnx.Param(1.0)
p.set_metadata("__array_interface__", {MEMORY})
a = np.asarray(p)
got = bytes(list(a)) if a.ndim else p.nothing_of_the_kind
""",
    nnx_dict_item=f"""
import numpy as np
from flax import nnx
d = nnx.Dict()
d["__array_interface__"] = {MEMORY}
{READ.format(obj="d")}
""",
    nnx_update_attribute="""
from flax import nnx
class Other(nnx.Module):
    pass
m = nnx.Dict()
nnx.update(m, {"__class__": Other})
if isinstance(m, Other):
    got = "@MARKER@"
""",
)
ATTEMPTS += _rows(
    "writes",
    setattr_array_interface=f"""
import numpy as np
class A:
    pass
a = A()
setattr(a, "__array_interface__", {MEMORY})
{READ.format(obj="a")}
""",
    attribute_array_interface=f"""
import numpy as np
class A:
    pass
a = A()
a.__array_interface__ = {MEMORY}
{READ.format(obj="a")}
""",
    function_attribute=f"""
import numpy as np
def f():
    pass
f.__array_interface__ = {MEMORY}
{READ.format(obj="f")}
""",
    class_of_an_object="""
class A:
    pass
class B:
    pass
a = A()
a.__class__ = B
if isinstance(a, B):
    got = "@MARKER@"
""",
    code_of_a_function="""
def f():
    return 1
setattr(f, "__kwdefaults__", {"x": "@MARKER@"})
def g(*, x=2):
    return x
setattr(g, "__kwdefaults__", {"x": "@MARKER@"})
got = g()
""",
)

# --- text as code, and other built-ins -------------------------------------------------------------------------------
ATTEMPTS += _rows("builtin:eval", builtin_eval='got = eval("__planted__")')
ATTEMPTS += _rows("builtin:exec", builtin_exec='exec("seen.append(__planted__)")')
ATTEMPTS += _rows(
    "builtin:compile + builtin:exec", builtin_compile='exec(compile("seen.append(__planted__)", "x", "exec"))'
)
ATTEMPTS += _rows("builtin:globals", builtin_globals='got = globals()["__builtins__"]["__planted__"]')
ATTEMPTS += _rows("builtin:locals", builtin_locals='got = locals()["__builtins__"]["__planted__"]')
ATTEMPTS += _rows("builtin:vars", builtin_vars='got = vars()["__builtins__"]["__planted__"]')
ATTEMPTS += _rows(
    "builtin:open",
    builtin_open='got = "".join(open("@FILE@"))',
    decorator_that_opens="""
@"".join
@open
@(lambda cls: "@FILE@")
class got:
    pass
""",
    open_through_map='got = "".join(list(map(open, ["@FILE@"]))[0])',
    default_factory_that_opens="""
from dataclasses import dataclass, field
@dataclass
class A:
    f: object = field(default_factory=lambda: open("@FILE@"))
got = "".join(A().f)
""",
)
ATTEMPTS += _rows(
    "builtin:memoryview",
    builtin_memoryview="""
m = memoryview(b"x")
got = "@MARKER@"
""",
)
ATTEMPTS += _rows(
    "builtin:type",
    type_with_three_arguments=f"""
import numpy as np
A = type("A", (), {{"__array_interface__": {MEMORY}}})
{READ.format(obj="A()")}
""",
    metaclass_of_a_module=f"""
import numpy as np
from flax import nnx
A = type(nnx.Linear)("A", (nnx.Module,), {{"__array_interface__": property(lambda s: {MEMORY})}})
{READ.format(obj="A()")}
""",
)
ATTEMPTS += _rows(
    "builtin:type + classes",
    subclass_of_type="""
class M(type):
    pass
got = "@MARKER@"
""",
)
ATTEMPTS += _rows(
    "class keywords",
    metaclass_keyword="""
class A(metaclass=lambda name, bases, namespace: namespace):
    pass
if "__qualname__" in A:
    got = "@MARKER@"
""",
)
ATTEMPTS += _rows(
    "classes",
    subclass_of_partial="""
from functools import partial
class P(partial):
    pass
got = "@MARKER@"
""",
    enum_without_members=f"""
import numpy as np
from enum import Enum
class E(Enum):
    pass
X = E("X", {{"A": 1, "__array_interface__": {MEMORY}}})
{READ.format(obj="X")}
""",
)
# Flax rebuilds an object from what `_graph_node_flatten` of its class gives: names and values.
_FLATTEN = f"lambda self: ([('__array_interface__', planted_static({MEMORY}))], type(self))"
_REBUILT = f"""
copied = nnx.clone(M())
{READ.format(obj="copied")}
"""
ATTEMPTS += _rows(
    "inner",
    override_inside_of_a_module=f"""
import numpy as np
from flax import nnx
class M(nnx.Module):
    _graph_node_flatten = {_FLATTEN}
{_REBUILT}""",
    override_by_a_full_name=f"""
import jax, numpy as np
from flax import nnx
class M(nnx.Module):
    def _pytree__flatten(self):
        return (), ((), ("__array_interface__",), ({MEMORY},))
copied = jax.tree.map(lambda v: v, M())
{READ.format(obj="copied")}
""",
    override_in_a_mixin_later=f"""
import numpy as np
from flax import nnx
class Mixed:
    pass
class Parent(Mixed, nnx.Module):
    pass
Mixed._graph_node_flatten = {_FLATTEN}
class M(Parent):
    pass
{_REBUILT}""",
    override_by_a_mixin=f"""
import numpy as np
from flax import nnx
class Mixed:
    _graph_node_flatten = {_FLATTEN}
class M(Mixed, nnx.Module):
    pass
{_REBUILT}""",
    override_in_a_parent_later=f"""
import numpy as np
from flax import nnx
class Parent(nnx.Module):
    pass
Parent._graph_node_flatten = {_FLATTEN}
class M(Parent):
    pass
{_REBUILT}""",
)
ATTEMPTS += _rows(
    "class names + inner",
    private_names_that_are_flax_s=f"""
import jax, numpy as np
from flax import nnx
class pytree(nnx.Module):
    def __flatten(self):
        return (), ((), ("__array_interface__",), ({MEMORY},))
copied = jax.tree.map(lambda v: v, pytree())
{READ.format(obj="copied")}
""",
)
ATTEMPTS += _rows(
    "harden",
    linen_method_by_name="""
import numpy as np
import flax.linen as nn
class M(nn.Module):
    def __call__(self):
        return 1
m = M()
m.apply({}, method="_try_setup")
got = "@MARKER@"
""",
)
ATTEMPTS += _rows(
    "nodes + attributes",
    coroutine_frame=f"""
async def f():
    pass
c = f()
got = c.cr_frame.f_globals{GLOBALS}
c.close()
""",
)

# --- files -----------------------------------------------------------------------------------------------------------
for _name, _source in {
    "numpy.loadtxt": 'got = str(m.loadtxt("@FILE@", dtype=str))',
    "numpy.genfromtxt": 'got = str(m.genfromtxt("@FILE@", dtype=str))',
    "numpy.fromfile": 'got = bytes(list(m.fromfile("@FILE@", dtype=m.uint8)))',
    "numpy.fromregex": 'got = str(m.fromregex("@FILE@", "(.+)", [("a", "U60")]))',
    "numpy.memmap": 'got = bytes(list(m.memmap("@FILE@", dtype=m.uint8, mode="r")))',
    "numpy.load": 'got = str(m.load("@NPY@"))',
    "numpy.save": 'm.save("@OUT@", "@MARKER@")',
    "numpy.savez": 'm.savez("@OUT@", "@MARKER@")',
    "numpy.savetxt": 'm.savetxt("@OUT@", ["@MARKER@"], fmt="%s")',
    "jax.numpy.load": 'got = str(m.load("@NPY_NUMBERS@")) and "@MARKER@"',
    "jax.numpy.save": 'm.save("@OUT@", m.array([@CODES@], dtype=m.uint8))',
    "jax.numpy.savez": 'm.savez("@OUT@", m.array([@CODES@], dtype=m.uint8))',
}.items():
    _module = _name.rpartition(".")[0]
    # NumPy's C code opens a path by the built-in `open` of the calling frame.
    _wall = " + builtin:open" if _name == "numpy.fromfile" else ""
    ATTEMPTS.append(Attempt(_name.replace(".", "_"), f"real:{_name}{_wall}", f"import {_module} as m\n{_source}"))
ATTEMPTS += _rows(
    "attributes + builtin:open",
    array_tofile="""
import numpy as np
np.array([@CODES@], dtype=np.uint8).tofile("@OUT@")
""",
    array_tofile_through_tree_map="""
import jax, numpy as np
jax.tree.map(lambda a: a.tofile("@OUT@"), [np.array([@CODES@], dtype=np.uint8)])
""",
    array_dump="""
import numpy as np
np.array(["@MARKER@"]).dump("@OUT@")
""",
)
ATTEMPTS += _rows(
    "real:jax.jit",
    jit_compiler_options="""
import jax
jax.jit(lambda x: x * 2, compiler_options={"xla_dump_to": "@OUT@"})(1.0)
""",
    jit_compiler_options_through_partial="""
from functools import partial
import jax
@partial(jax.jit, **{"compiler_options": {"xla_dump_to": "@OUT@"}})
def f(x):
    return x * 3
f(1.0)
""",
)
ATTEMPTS += _rows(
    "real:numpy.load", pickled_object='import numpy as np\ngot = str(np.load("@PICKLE@", allow_pickle=True))'
)

# --- imports ---------------------------------------------------------------------------------------------------------
ATTEMPTS += _rows(
    "imports",
    import_pickle='import pickle\ngot = pickle.loads(b"cbuiltins\\n__planted__\\n.")',
    import_subprocess='import subprocess\ngot = subprocess.check_output(["cat", "@FILE@"])',
    import_io='import io\ngot = "".join(io.open("@FILE@"))',
    import_builtins='from builtins import open as o\ngot = "".join(o("@FILE@"))',
    import_importlib='import importlib\ngot = str(importlib.import_module("planted"))',
    import_linecache='import linecache\ngot = linecache.getline("@FILE@", 1)',
    import_codecs='import codecs\ngot = "".join(codecs.open("@FILE@", encoding="utf-8"))',
    import_fileinput='import fileinput\ngot = "".join(fileinput.input("@FILE@"))',
    import_shutil='import shutil\nshutil.copy("@FILE@", "@OUT@")',
    import_ctypes="import ctypes\ngot = ctypes.string_at(@ADDRESS@, @LEN@)",
    import_gc="""
import gc
got = [o["__planted__"] for o in gc.get_objects() if isinstance(o, dict) and "__planted__" in o]
""",
    import_inspect=f"""
import inspect
def f():
    pass
got = dict(inspect.getmembers(f))["__globals__"]{GLOBALS}
""",
    import_runpy='import runpy\ngot = str(runpy.run_path("@SCRIPT@")["value"])',
    import_code_of_this_project='from core.sandbox.facade import _library_import as i\ngot = str(i("planted"))',
    import_main="import __main__ as m\ngot = '@MARKER@'",
    import_inner_module="from jax._src import core\ngot = '@MARKER@'",
    import_in_a_function='def f():\n    import linecache as l\n    return l.getline("@FILE@", 1)\ngot = f()',
    import_of_a_callback="""
from jax.experimental import io_callback
import jax
io_callback(lambda v: seen.append(bytes(v.tolist()).decode()), None, jax.numpy.array([@CODES@], jax.numpy.uint8))
jax.effects_barrier()
""",
)
ATTEMPTS += _rows("real:os.popen", os_popen='import os\ngot = "".join(os.popen("cat @FILE@"))')
ATTEMPTS += _rows("real:os.environb", os_environb='import os\ngot = os.environb[b"CARRY_LAB_PLANTED"]')
ATTEMPTS += _rows("real:sys.modules", sys_modules='import sys\ngot = str(sys.modules["planted"])')
ATTEMPTS += _rows("modules", module_of_a_library="from flax import nnx\ngot = str(nnx.planted_module)")
ATTEMPTS += _rows("modules", module_imported_from="from flax.nnx import planted_module as m\ngot = str(m)")

# --- callbacks into the host -----------------------------------------------------------------------------------------
_CALL = "lambda v: seen.append(bytes(v.tolist()).decode())"
ATTEMPTS += _rows(
    "real:jax.pure_callback",
    pure_callback="""
import jax, jax.numpy as jnp
x = jnp.array([@CODES@], jnp.uint8)
jax.pure_callback(lambda v: (seen.append(bytes(v.tolist()).decode()), v)[1], x, x).block_until_ready()
""",
)
ATTEMPTS += _rows(
    "real:jax.debug.callback",
    debug_callback=f"""
import jax, jax.numpy as jnp
jax.debug.callback({_CALL}, jnp.array([@CODES@], jnp.uint8))
jax.effects_barrier()
""",
)
ATTEMPTS += _rows(
    "real:numpy.errstate",
    errstate_call="""
import numpy as np
with np.errstate(divide="call", call=lambda *a: seen.append("@MARKER@")):
    np.array([1.0]) / 0.0
""",
)

# --- raw memory ------------------------------------------------------------------------------------------------------
ATTEMPTS += _rows(
    "real:numpy.ndarray",
    ndarray_of_objects="""
import numpy as np
got = np.ndarray(1, object, np.array([@ID@], np.int64))[0]
""",
)
ATTEMPTS += _rows(
    "real:numpy.lib.stride_tricks.as_strided",
    as_strided="""
from numpy.lib.stride_tricks import as_strided
got = bytes(list(as_strided(first_byte, (@LEN@,), (1,))))
""",
)
ATTEMPTS += _rows(
    "real:numpy.frombuffer",
    frombuffer_of_objects="""
import numpy as np
objects = np.array([None], object)
np.frombuffer(objects, np.int64)[0] = @ID@
got = objects[0]
""",
    frombuffer_of_fields="""
import numpy as np
objects = np.array([(None,)], [("a", object)])
np.frombuffer(objects, np.int64)[0] = @ID@
got = objects[0]["a"]
""",
)
ATTEMPTS += _rows(
    "attributes",
    resize_under_a_view="""
import numpy as np
a = np.zeros(4)
view = a[:]
a.resize(1 << 20, refcheck=False)
got = "@MARKER@"
""",
)
ATTEMPTS += _rows(
    "real:enum.Enum",
    enum_made_by_a_call=f"""
import numpy as np
from enum import Enum
X = Enum("X", {{"A": 1, "__array_interface__": {MEMORY}}})
{READ.format(obj="X")}
""",
)
ATTEMPTS += _rows(
    "attributes",
    metadata_that_offers_names=f"""
from flax import nnx
class V(nnx.Variable):
    def get_metadata(self, *args):
        return {{"gi_frame": 1}}
got = V((x for x in [1])).gi_frame.f_globals{GLOBALS}
""",
    streams_that_offer_names="""
from flax import nnx
class R(nnx.Rngs):
    def __iter__(self):
        return iter(["_setattr"])
if R(0)._setattr:
    got = "@MARKER@"
""",
    devices_of_a_parameter="""
import jax.numpy as jnp
from flax import nnx
if nnx.Param(jnp.ones(2)).devices().pop().client:
    got = "@MARKER@"
""",
    trace_of_a_parameter="""
import jax
from flax import nnx
if nnx.Param(jax.jit(lambda x: x)).trace(1.0).jaxpr:
    got = "@MARKER@"
""",
    method_of_a_c_class_on_something_else="""
import numpy as np
if np.random.Generator.power:
    got = "@MARKER@"
""",
)
ATTEMPTS += _rows("attributes", array_base="got = bytes(list(first_byte.base))")
ATTEMPTS += _rows(
    "real:dataclasses.make_dataclass",
    make_dataclass=f"""
import numpy as np
from dataclasses import make_dataclass
A = make_dataclass("A", [], namespace={{"__array_interface__": {MEMORY}}})
{READ.format(obj="A()")}
""",
)
ATTEMPTS += _rows(
    "attributes",
    unsafe_buffer_pointer="""
import jax.numpy as jnp
if jnp.ones(2).unsafe_buffer_pointer():
    got = "@MARKER@"
""",
    device_client="""
import jax.numpy as jnp
if jnp.ones(2).devices().pop().client:
    got = "@MARKER@"
""",
    compiler_ir="""
import jax
if jax.jit(lambda x: x).lower(1.0).compiler_ir():
    got = "@MARKER@"
""",
    addressable_shard="""
import jax.numpy as jnp
if jnp.ones(2).addressable_shards[0].device:
    got = "@MARKER@"
""",
)

# --- reading variables by their names --------------------------------------------------------------------------------
ATTEMPTS += _rows("real:numpy.r_", numpy_r_with_text='import numpy as np\ngot = str(np.r_["planted_list"])')
ATTEMPTS += _rows("real:numpy.bmat", numpy_bmat='import numpy as np\ngot = str(np.bmat("__planted_list__"))')
ATTEMPTS += _rows(
    "real:operator.attrgetter",
    attrgetter=f"""
from operator import attrgetter
def f():
    pass
got = attrgetter("__globals__")(f){GLOBALS}
""",
)
ATTEMPTS += _rows(
    "real:operator.methodcaller",
    methodcaller=f"""
from operator import methodcaller
def f():
    pass
got = methodcaller("__getattribute__", "__globals__")(f){GLOBALS}
""",
)
ATTEMPTS += _rows(
    "real:functools.update_wrapper",
    update_wrapper_globals="""
from functools import update_wrapper
import jax.numpy as jnp
def mine():
    return planted_name
update_wrapper(mine, jnp.linspace, assigned=(), updated=("__globals__",))
got = mine()
""",
)
ATTEMPTS += _rows(
    "real:functools.wraps",
    wraps_globals="""
from functools import wraps
import jax.numpy as jnp
@wraps(jnp.linspace, assigned=(), updated=("__globals__",))
def mine():
    return planted_name
got = mine()
""",
)
ATTEMPTS += _rows(
    "real:jax.tree_util.register_dataclass",
    register_dataclass_by_names="""
import jax
class A:
    pass
jax.tree_util.register_dataclass(A, ["__class__"], [])
if jax.tree.leaves(A()):
    got = "@MARKER@"
""",
)
ATTEMPTS += _rows(
    "settings",
    setting_that_names_a_path='import jax\ngot = jax.config.read("jax_compilation_cache_dir")',
)

# --- what would outlive the job --------------------------------------------------------------------------------------
ATTEMPTS += [
    Attempt(
        "patch_a_cell",
        "writes",
        'from flax import nnx\nnnx.LSTMCell.initialize_carry = lambda *a, **k: "@MARKER@"',
        after="from flax import nnx\ngot = nnx.LSTMCell(1, 1, rngs=nnx.Rngs(0)).initialize_carry((1, 1), nnx.Rngs(0))",
    ),
    Attempt(
        "patch_a_cell_with_setattr",
        "writes",
        'from flax import nnx\nsetattr(nnx.LSTMCell, "initialize_carry", lambda *a, **k: "@MARKER@")',
        after="from flax import nnx\ngot = nnx.LSTMCell(1, 1, rngs=nnx.Rngs(0)).initialize_carry((1, 1), nnx.Rngs(0))",
    ),
    Attempt(
        "rule_for_a_shared_function",
        "mine",
        "import jax\njax.nn.relu.defjvp(planted_rule)",
        after="import jax\nif jax.jvp(jax.nn.relu, (1.0,), (1.0,))[1] == 7321.5:\n    got = '@MARKER@'",
    ),
    Attempt(
        "print_formatter",
        "real:numpy.set_printoptions",
        'import numpy as np\nnp.set_printoptions(formatter={"float_kind": lambda v: "@MARKER@"})',
        after="import numpy as np\ngot = str(np.array([1.5]))",
    ),
    Attempt(
        "registration_of_a_shared_class",
        "real:jax.tree_util.register_pytree_node",
        "import jax, numpy as np\njax.tree_util.register_pytree_node(np.random.SeedSequence, planted_flatten, planted_unflatten)",
        after="import jax, numpy as np\ngot = str(jax.tree.structure(np.random.SeedSequence(0)))",
    ),
    Attempt(
        "decorate_a_shared_class",
        "real:functools.total_ordering",
        "import functools, numpy as np\nfrom flax import nnx\nfunctools.total_ordering(planted_class)\ngot = '@MARKER@'",
    ),
]

NAMED_ROUTES = {
    "1 string annotation": "string_annotation_in_a_module",
    "2 update_wrapper": "update_wrapper_globals",
    "3 class pattern": "match_object_keyword",
    "4 debug.print": "debug_print_field",
    "5 make_dataclass": "make_dataclass",
    "6 compiler_options": "jit_compiler_options",
    "6 tofile through tree.map": "array_tofile_through_tree_map",
    "7 register_pytree_node": "registration_of_a_shared_class",
    "7 set_printoptions": "print_formatter",
    "7 patching a cell": "patch_a_cell",
    "8 AttributeError.obj": "attribute_error_obj",
    "8 set_attributes(__class__=)": "set_attributes_class",
    "8 Device.client": "device_client",
    "8 compiler_ir": "compiler_ir",
    "8 unsafe_buffer_pointer": "unsafe_buffer_pointer",
    "8 source_info.traceback": "jaxpr_source_info",
    "8 debug.callback": "debug_callback",
}
