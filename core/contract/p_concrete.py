"""What JAX does in the place of Python and NumPy: repairs of P202, by what needed the value."""

from __future__ import annotations

import ast
import math

import jax.numpy as jnp

from core.base.text import fill
from core.base.violation import TextEdit
from core.contract import p_slices
from core.contract.p_branches import for_statement
from core.contract.p_print import print_around
from core.contract.p_text import Ink, Writer, function_of, proposals
from core.contract.p_traced import is_traced
from core.contract.rule import Repair
from core.contract.script_facts import ScriptFacts
from core.contract.subject import MISSING

TITLE_NUMPY = "Use {twin}"
TITLE_ALL_NUMPY = "Use jax.numpy in this function"
TITLE_SLICE = "Take the slice with lax.dynamic_slice_in_dim"
TITLE_MASK = "Keep the length and leave out the rest"
TITLE_ARRAY = "Make an array of it, and index that"
TITLE_AT_BIRTH = "Make {name} an array where it is made"
TITLE_SWITCH = "Choose the function with lax.switch"
TITLE_CAST = "Stay in JAX: {cast}"
TITLE_DROP = "Leave {code} out"
TITLE_LOOP = "Loop with lax.fori_loop"
TITLE_PRINT = "Print with jax.debug.print"
TITLE_BUFFER = "Make {name} an array of JAX, updated with .at"

#: Functions of `math` that jax.numpy calls otherwise; those that give an int.
OTHERWISE = {"fabs": "abs", "pow": "power", "fmod": "fmod", "dist": "linalg.norm", "gamma": "", "lgamma": "", "erf": ""}
WHOLE = frozenset({"floor", "ceil", "trunc"})


def repairs_of(facts: ScriptFacts, node: ast.expr) -> tuple[Repair, ...]:
    """Repairs for the expression that needed a value, most natural first."""
    if isinstance(node, ast.Subscript):
        return _of_item(facts, node)
    if isinstance(node, ast.Call):
        return _of_call(facts, node)
    if isinstance(node, ast.FormattedValue | ast.BinOp):
        return proposals(facts, (TITLE_PRINT, lambda ink: print_around(ink, node)))
    return ()


# --- items ----------------------------------------------------------------------------------------------------------


def _of_item(facts: ScriptFacts, node: ast.Subscript) -> tuple[Repair, ...]:
    index = facts.aval(node.slice)
    holder = facts.value(node.value, MISSING)
    if isinstance(node.ctx, ast.Store):
        name = node.value.id if isinstance(node.value, ast.Name) else ""
        return proposals(facts, (fill(TITLE_BUFFER, name=name), lambda ink: _buffer(ink, node)))
    if any(True for _ in p_slices.slices_in(node.slice)):
        return proposals(
            facts,
            (TITLE_SLICE, lambda ink: p_slices.dynamic_slice(ink, node)),
            (TITLE_MASK, lambda ink: [] if p_slices.dynamic_slice(ink, node) else p_slices.masked_slice(ink, node)),
        )
    if index is not None and index.dtype == "bool" and index.shape:
        return proposals(facts, (TITLE_MASK, lambda ink: p_slices.masked(ink, node)))
    if isinstance(holder, list | tuple) and holder and all(callable(f) for f in holder):
        return proposals(facts, (TITLE_SWITCH, lambda ink: _switch(ink, node)))
    name = node.value.id if isinstance(node.value, ast.Name) else ""
    return proposals(
        facts,
        (TITLE_ARRAY, lambda ink: _array(ink, node, holder)),
        (fill(TITLE_AT_BIRTH, name=name), lambda ink: _at_birth(ink, node, holder)),
    )


def _index(ink: Ink, node: ast.expr) -> str:
    """An index that JAX takes: whole numbers as they are, truth values and floats as whole numbers."""
    aval = ink.facts.aval(node)
    text = ink.text(node)
    if aval is not None and not aval.dtype.startswith(("int", "uint")):
        return f"{ink.atom(node)}.astype(int)"
    return text


def _array(ink: Ink, node: ast.Subscript, holder: object) -> list[TextEdit]:
    """``values[i]`` as ``jnp.asarray(values)[i]``; of a dict whose keys are 0, 1, 2, … of its values."""
    inner = ink.argument(node.value)
    if isinstance(holder, dict):
        if list(holder) != list(range(len(holder))):
            return []
        inner = f"list({ink.atom(node.value)}.values())"
    elif isinstance(holder, str):
        return []
    return [ink.put(node, f"{ink.name('jax.numpy.asarray')}({inner})[{_index(ink, node.slice)}]")]


def _at_birth(ink: Ink, node: ast.Subscript, holder: object) -> list[TextEdit]:
    """``prices = [1.0, 2.0]`` as ``prices = jnp.array([1.0, 2.0])``."""
    if not isinstance(node.value, ast.Name) or isinstance(holder, dict | str):
        return []
    made = ink.source.bound(node.value)
    if not isinstance(made, ast.List | ast.Tuple | ast.ListComp | ast.Call) or isinstance(ink.facts.value(made), str):
        return []
    if isinstance(made, ast.Tuple) and not ink.text(made).startswith("("):
        return []
    if ink.facts.aval(node.slice) is None or _index(ink, node.slice) != ink.text(node.slice):
        return []
    public = ink.source.dotted(made.func) if isinstance(made, ast.Call) else None
    if public is not None and public.startswith("numpy.") and isinstance(made, ast.Call):
        twin = _twin_of(public)
        return [] if twin is None else [ink.put(made.func, ink.name(twin))]
    return [ink.put(made, f"{ink.name('jax.numpy.array')}({ink.argument(made)})")]


def _switch(ink: Ink, node: ast.Subscript) -> list[TextEdit]:
    """``functions[i](x)`` as ``jax.lax.switch(i, functions, x)``."""
    call = ink.source.parents.get(node)
    if not isinstance(call, ast.Call) or call.func is not node or call.keywords:
        return []
    given = "".join(f", {ink.argument(a)}" for a in call.args)
    return [
        ink.put(call, f"{ink.name('jax.lax.switch')}({_index(ink, node.slice)}, {ink.argument(node.value)}{given})")
    ]


def _buffer(ink: Ink, node: ast.Subscript) -> list[TextEdit]:
    """``buf = np.zeros(3)`` and ``buf[0] = c`` as an array of JAX and ``buf = buf.at[0].set(c)``, in one function."""
    statement = ink.source.statement(node)
    if not isinstance(node.value, ast.Name) or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return []
    made = ink.source.bound(node.value)
    if not isinstance(made, ast.Call) or ink.source.scope(made) is not ink.source.scope(node):
        return []
    twin = _twin_of(ink.source.dotted(made.func) or "")
    if twin is None:
        return []
    name = node.value.id
    return [
        ink.put(made.func, ink.name(twin)),
        ink.put(statement, f"{name} = {name}.at[{ink.text(node.slice)}].set({ink.argument(statement.value)})"),
    ]


# --- calls ----------------------------------------------------------------------------------------------------------


def _of_call(facts: ScriptFacts, node: ast.Call) -> tuple[Repair, ...]:
    name = _public(facts, node)
    if name == "builtins.range":
        loop = facts.source.parents.get(node)
        return proposals(facts, (TITLE_LOOP, lambda ink: _looped(ink, node))) if isinstance(loop, ast.For) else ()
    if name in CASTS:
        cast = CASTS[name]
        shown = fill(TITLE_CAST, cast=f".astype({cast})")
        out: list[tuple[str, Writer]] = [(shown, lambda ink: _cast(ink, node, cast))]
        around = facts.source.parents.get(node)
        if isinstance(around, ast.Call) and _public(facts, around) == "builtins.range":
            out.insert(0, (TITLE_LOOP, lambda ink: _looped(ink, around)))
        return proposals(facts, *out)
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("item", "tolist") and not node.args:
        method = node.func
        return proposals(facts, (fill(TITLE_DROP, code=f".{method.attr}()"), lambda ink: _dropped(ink, node, method)))
    if name == "str.format":
        return proposals(facts, (TITLE_PRINT, lambda ink: print_around(ink, node)))
    if name.startswith("math."):
        return _of_math(facts, node, name.removeprefix("math."))
    twin = _twin_of(name)
    if twin is None:
        return ()
    return proposals(
        facts,
        (TITLE_ALL_NUMPY, lambda ink: _all_numpy(ink, node)),
        (_use(twin), lambda ink: _renamed(ink, node, twin)),
    )


CASTS = {"builtins.int": "int", "builtins.float": "float", "builtins.complex": "complex", "operator.index": "int"}


def _public(facts: ScriptFacts, node: ast.Call) -> str:
    called = facts.calls_at(node)
    if called and called[-1].name is not None:
        return called[-1].name
    if isinstance(node.func, ast.Name) and facts.source.is_builtin(node.func.id):
        return f"builtins.{node.func.id}"
    return facts.source.dotted(node.func) or ""


def _of_math(facts: ScriptFacts, node: ast.Call, name: str) -> tuple[Repair, ...]:
    twin, whole = _math_twin(name), name in WHOLE
    if twin is None:
        return ()
    return proposals(facts, (_use(twin), lambda ink: _renamed(ink, node, twin, whole=whole)))


def _use(twin: str) -> str:
    return fill(TITLE_NUMPY, twin=twin.replace("jax.numpy", "jnp"))


def _twin_of(public: str) -> str | None:
    """The function of jax.numpy with the same name as one of NumPy's; None when there is none."""
    if not public.startswith("numpy.") or public.startswith("numpy.random."):
        return None
    here: object = jnp
    for part in public.split(".")[1:]:
        here = getattr(here, part, None)
    return f"jax.{public}" if callable(here) else None


def _math_twin(name: str) -> str | None:
    public = OTHERWISE.get(name, name)
    return f"jax.numpy.{public}" if public and hasattr(math, name) and callable(getattr(jnp, public, None)) else None


def _renamed(ink: Ink, node: ast.Call, twin: str, *, whole: bool = False) -> list[TextEdit]:
    if not whole:
        return [ink.put(node.func, ink.name(twin))]
    inner = ", ".join(ink.argument(a) for a in node.args)
    return [ink.put(node, f"{ink.name(twin)}({inner}).astype(int)")]


def _all_numpy(ink: Ink, node: ast.Call) -> list[TextEdit]:
    """Every call of NumPy in this function that has to do with its own names, by jax.numpy; only when there are several."""
    function = function_of(ink.source, node)
    if function is None:
        return []
    own = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    own |= {a.arg for a in ast.walk(function) if isinstance(a, ast.arg)}
    edits = []
    for call in (n for n in ast.walk(function) if isinstance(n, ast.Call)):
        twin = _twin_of(ink.source.dotted(call.func) or "")
        names = {n.id for a in (*call.args, *call.keywords) for n in ast.walk(a) if isinstance(n, ast.Name)}
        if twin is not None and (names & own or call is node):
            edits.append(ink.put(call.func, ink.name(twin)))
    return edits if len(edits) > 1 else []


def _cast(ink: Ink, node: ast.Call, cast: str) -> list[TextEdit]:
    """``int(c)`` as ``c.astype(int)``."""
    if len(node.args) != 1 or node.keywords:
        return []
    arg = node.args[0]
    array = ink.facts.aval(arg)
    inner = ink.atom(arg)
    if array is not None and array.shape:
        inner = f"{inner}.reshape(())"
    return [ink.put(node, f"{inner}.astype({cast})")]


def _dropped(ink: Ink, node: ast.Call, method: ast.Attribute) -> list[TextEdit]:
    """``c.item()`` as ``c``."""
    aval = ink.facts.aval(method.value)
    text = ink.text(method.value)
    if method.attr == "item" and aval is not None and aval.shape:
        text = f"{ink.atom(method.value)}.reshape(())"
    return [ink.put(node, text)]


def _looped(ink: Ink, node: ast.Call) -> list[TextEdit]:
    """``for k in range(n)`` as ``lax.fori_loop``."""
    loop = ink.source.parents.get(node)
    if not isinstance(loop, ast.For) or loop.iter is not node or not 1 <= len(node.args) <= 2 or node.keywords:
        return []
    bounds = [_bound(ink, a) for a in node.args]
    return for_statement(ink, loop, (bounds[0] if len(bounds) == 2 else "0", bounds[-1]))


def _bound(ink: Ink, node: ast.expr) -> str:
    cast = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "int"
    if cast and isinstance(node, ast.Call) and len(node.args) == 1 and is_traced(ink.facts, node.args[0]):
        return f"{ink.atom(node.args[0])}.astype(int)"
    return ink.argument(node)
