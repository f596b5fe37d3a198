"""Linen where NNX is meant, or the two mixed.

**What.** A Linen module holds no weights: it is given them by ``init`` and ``apply``. Called like an NNX module it
raises, and so does a Linen cell given ``rngs`` or ``in_features``; an NNX module has neither ``init`` nor ``apply``. An
NNX layer built inside a Linen module runs, and its weights are in nobody's variables. And ``flax.experimental.nnx`` is
the old name of `flax.nnx`: it still works, with a line in the log.

**Why.** They are two libraries with the same names of layers: ``flax.linen`` keeps parameters apart, ``flax.nnx`` keeps
them in the object.

**Bad**

    from flax import linen as nn
    cell = nn.LSTMCell(3, 4, rngs=nnx.Rngs(0))

**Good**

    from flax import nnx
    cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))

Source: flax.linen.Module.apply; flax.nnx.bridge; flax.experimental.nnx.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flax import linen, nnx
from jax import tree_util

from core.base.avals import aval_of
from core.base.text import fill
from core.base.violation import Severity, TextEdit
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called, ScriptRecord
from core.contract.source import FUNCTIONS

OLD = "flax.experimental.nnx is the old name of flax.nnx: it still works, with a line in the log."
BUILT = "{text} is Linen's; it is given {what}, as NNX's is."
CALLED = "{text} is a Linen module: it holds no weights, so it is not called but applied: {text}.apply(variables, …)."
METHOD = "{text} is an NNX module: it holds its weights itself, so it has no {attr} and is called as it is."
WRONG = "{text} is NNX's; {what} is an argument of Linen's."
NO_NAME = "nnx has no {attr}: that is Linen's."
INSIDE = (
    "{text} is built inside the Linen module {owner}: its weights are in no variables of it, so nothing can learn them."
)
TITLE_IMPORT = "Import flax.nnx"
TITLE_NNX = "Use NNX's: {text}"
TITLE_CALL = "Call it: {text}"
TITLE_BRIDGE = "Make a Linen module of it: {text}"
CLAIM = "Numbers in the variables that init returns."
WHY = "flax.linen keeps parameters apart from its modules, flax.nnx keeps them in the module: names are alike, use is not."
OLD_NAME = "flax.experimental.nnx"
#: The attribute of `nnx.RNN` that holds its cell.
CELL = ".cell"
#: Where Linen has another name for the same layer.
SAME = {"Dense": "Linear"}
#: What only Linen's modules have.
METHODS = frozenset({"init", "apply", "bind", "unbind", "init_with_output", "tabulate"})
#: Arguments that only the other library's constructors have.
OF_NNX = frozenset({"rngs", "in_features", "hidden_features", "out_features"})
OF_LINEN = frozenset({"features", "parent", "name"})


def check(facts: ScriptFacts) -> Iterator[Finding]:
    """Old imports; the call that failed; NNX layers inside Linen modules."""
    yield from _old_imports(facts)
    if facts.failure is not None:
        found = _failed(facts)
        if found is not None:
            yield found
    yield from _inside(facts)


# --- imports --------------------------------------------------------------------------------------------------------


def _old_imports(facts: ScriptFacts) -> Iterator[Finding]:
    for node in facts.nodes(ast.Import, ast.ImportFrom):
        text = _new_import(node) if isinstance(node, ast.Import | ast.ImportFrom) else None
        if text is not None:
            yield Finding(
                message=fill(OLD),
                place=facts.span(node),
                repairs=(facts.rewrite(fill(TITLE_IMPORT), node, text),),
                severity=Severity.NOTE,
                silent=True,
                path=OLD_NAME,
            )


def _new_import(node: ast.Import | ast.ImportFrom) -> str | None:
    """The same import of `flax.nnx`; None when it is not of the old name, or of other things too."""
    names = [(a.name, a.asname) for a in node.names]
    if isinstance(node, ast.ImportFrom):
        if node.module == "flax.experimental" and [n for n, _ in names] == ["nnx"]:
            return ast.unparse(ast.ImportFrom("flax", node.names, 0))
        if node.module == OLD_NAME:
            return ast.unparse(ast.ImportFrom("flax.nnx", node.names, 0))
        return None
    if [n for n, _ in names] == [OLD_NAME] and names[0][1] is not None:
        return f"import flax.nnx as {names[0][1]}"
    return None


# --- what failed ----------------------------------------------------------------------------------------------------


def _failed(facts: ScriptFacts) -> Finding | None:
    failure = facts.failure
    node = None if failure is None else failure.node
    if isinstance(node, ast.Attribute):
        return _attribute(facts, node)
    call = next((c for c in reversed(facts.record.calls) if c.error is not None and c.node is node), None)
    if call is None:
        return None
    func = call.func
    if isinstance(func, type) and issubclass(func, linen.Module):
        return _built(facts, call, func)
    if isinstance(func, type) and issubclass(func, nnx.Module):
        return _of_nnx(facts, call, func)
    module = next((m for m in (func, call.receiver, getattr(func, "cell", None)) if _unbound(m)), None)
    return None if module is None else _called(facts, call, module)


def _unbound(module: Any) -> bool:
    return isinstance(module, linen.Module) and module.scope is None


def _attribute(facts: ScriptFacts, node: ast.Attribute) -> Finding | None:
    """``model.apply`` of an NNX module; ``nnx.Dense``."""
    value = facts.value(node.value)
    text = facts.source.text_of(node.value)
    if isinstance(value, nnx.Module) and node.attr in METHODS:
        repairs: tuple[Repair, ...] = ()
        around = facts.source.parents.get(node)
        if node.attr == "apply" and isinstance(around, ast.Call) and around.func is node and around.args:
            rest = [facts.source.text_of(a) for a in (*around.args[1:], *around.keywords)]  # type: ignore[arg-type]
            called = f"{text}({', '.join(rest)})"
            repairs = (facts.rewrite(fill(TITLE_CALL, text=called), around, called),)
        return _error(facts, node, fill(METHOD, text=text, attr=node.attr), repairs)
    if facts.source.dotted(node.value) == "flax.nnx" and hasattr(linen, node.attr) and not hasattr(nnx, node.attr):
        return _error(facts, node, fill(NO_NAME, attr=node.attr), ())
    return None


def _built(facts: ScriptFacts, call: Called, cls: type) -> Finding | None:
    """A Linen class that is given what NNX's takes."""
    given = sorted(OF_NNX & set(call.kwargs))
    streams = any(isinstance(v, nnx.Rngs) for v in (*call.args, *call.kwargs.values()))
    if not given and not streams:
        return None
    func = facts.source.text_of(call.node.func)
    return _error(facts, call.node, fill(BUILT, text=func, what=", ".join(given) or "an nnx.Rngs"),
                  tuple(_as_nnx(facts, call.node.func, cls)))  # fmt: skip


def _of_nnx(facts: ScriptFacts, call: Called, cls: type) -> Finding | None:
    """An NNX class that is given what Linen's takes."""
    given = sorted(OF_LINEN & set(call.kwargs))
    if not given or not hasattr(linen, cls.__name__) or not cls.__module__.startswith("flax."):
        return None
    return _error(facts, call.node, fill(WRONG, text=facts.source.text_of(call.node.func), what=given[0]), ())


def _called(facts: ScriptFacts, call: Called, module: Any) -> Finding:
    """A Linen module that is called, or asked for a carry, like an NNX module."""
    build = next((c for c in facts.record.calls if c.result is module), None)
    repairs: tuple[Repair, ...] = ()
    width = _width(call)
    features = getattr(module, "features", None)
    name = facts.spelled("flax.nnx")
    known = SAME.get(type(module).__name__, type(module).__name__)
    if build is not None and width is not None and type(features) is int and name and hasattr(nnx, known):
        count = build.argument_node(0, "features")
        text = f"{name}.{known}({width}, {features if count is None else facts.source.text_of(count)}, rngs={name}.Rngs(0))"
        repairs = (facts.rewrite(fill(TITLE_NNX, text=text), build.node, text),)
    func = call.node.func
    owner = func.value if call.receiver is module and isinstance(func, ast.Attribute) else func
    inner = CELL if module is getattr(call.func, "cell", None) else ""
    return _error(facts, call.node, fill(CALLED, text=facts.source.text_of(owner) + inner), repairs)


def _width(call: Called) -> int | None:
    """The features of the input, or of the shape, that a call was given last."""
    for value in reversed((*call.args, *call.kwargs.values())):
        aval = aval_of(value)
        if aval is not None and aval.shape:
            return aval.shape[-1]
        if isinstance(value, tuple) and value and all(type(n) is int for n in value):
            return int(value[-1])
    return None


def _as_nnx(facts: ScriptFacts, func: ast.expr, cls: type) -> Iterator[Repair]:
    """The class of the same name of `flax.nnx`."""
    known, name = SAME.get(cls.__name__, cls.__name__), facts.spelled("flax.nnx")
    if name is not None and hasattr(nnx, known):
        text = f"{name}.{known}"
        yield facts.rewrite(fill(TITLE_NNX, text=text), func, text)


def _error(facts: ScriptFacts, node: ast.expr, message: str, repairs: tuple[Repair, ...]) -> Finding:
    return Finding(message=message, place=facts.span(node), repairs=repairs, severity=Severity.ERROR, silent=False)


# --- NNX inside Linen -----------------------------------------------------------------------------------------------


def _inside(facts: ScriptFacts) -> Iterator[Finding]:
    said: set[ast.Call] = set()
    for call in facts.record.calls:
        if call.node in said or not isinstance(call.result, nnx.Module) or not isinstance(call.func, type):
            continue
        owner = _linen_owner(facts, call.node)
        if owner is None or not (call.func.__module__.startswith("flax.nnx.nn")):
            continue
        said.add(call.node)
        size, before = _size(call.result), _in_variables(facts)
        yield Finding(
            message=fill(INSIDE, text=facts.source.text_of(call.node), owner=owner.name),
            place=facts.span(call.node),
            repairs=tuple(_bridged(facts, call)),
            measure=None if before is None else Measure(CLAIM, Variables(), float(before + size)),
            severity=Severity.NOTE if before is None else Severity.WARNING,
            silent=True,
            path=facts.source.text_of(call.node),
        )


def _linen_owner(facts: ScriptFacts, node: ast.AST) -> ast.ClassDef | None:
    """The class around a call when it is one of Linen's and the call is in a method of it."""
    here: ast.AST | None = facts.source.scope(node)
    while isinstance(here, FUNCTIONS):
        parent = facts.source.parents.get(here)
        if isinstance(parent, ast.ClassDef):
            return parent if any(facts.source.dotted(b) == "flax.linen.Module" for b in parent.bases) else None
        here = facts.source.scope(here)
    return None


def _bridged(facts: ScriptFacts, call: Called) -> Iterator[Repair]:
    name = facts.spelled("flax.nnx")
    if name is None:
        return
    rest = [facts.source.text_of(a) for a in call.node.args]
    rest += [f"{k.arg}={facts.source.text_of(k.value)}" for k in call.node.keywords if k.arg not in (None, "rngs")]
    text = f"{name}.bridge.to_linen({', '.join([facts.source.text_of(call.node.func), *rest])})"
    yield facts.rewrites(fill(TITLE_BRIDGE, text=text), TextEdit(facts.span(call.node), text))


def _size(tree: Any) -> int:
    leaves = tree_util.tree_leaves(nnx.state(tree, nnx.Param) if isinstance(tree, nnx.Module) else tree)
    return sum(aval.size for leaf in leaves if (aval := aval_of(leaf)) is not None)


def _in_variables(facts: ScriptFacts) -> int | None:
    """How many numbers the first ``init`` of a Linen module returned."""
    for call in facts.record.calls:
        named = isinstance(call.node.func, ast.Attribute) and call.node.func.attr == "init"
        if named and isinstance(call.receiver, linen.Module) and call.error is None:
            return _size(call.result)
    return None


@dataclass(frozen=True, slots=True)
class Variables:
    """How many numbers the first ``init`` of a Linen module returned."""

    def __call__(self, record: Any) -> float:
        """The number, in this run.

        Raises:
            ValueError: nothing is initialised.
        """
        size = _in_variables(ScriptFacts(record)) if isinstance(record, ScriptRecord) else None
        if size is None:
            raise ValueError("nothing is initialised")
        return float(size)


RULE = Rule(
    code="L315",
    name="linen-for-nnx",
    title="Linen where NNX is meant",
    severity=Severity.ERROR,
    jax=Jax.BOTH,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script"}),
)
