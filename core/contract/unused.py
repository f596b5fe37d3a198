"""Arrays that a script makes and does nothing with but show them: a name is dead when all that it leads to is dead."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from jax import tree_util

from core.contract.fates import META, SHOWS, Fate, bound_first, fate_of, function_of, function_parameters
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called, ScanSite
from core.contract.source import FUNCTIONS, Function
from core.contract.trace import StepTrace

SCAN = "jax.lax.scan"
#: How many names are followed from one to the next.
DEPTH = 6


@dataclass(slots=True, eq=False)
class Dead:
    """A name, and whether anything is done with it.

    Attributes:
        name: itself.
        value: the expression that it is bound to; of a parameter, what was given for it.
        scope: the function, or the module, that it belongs to.
        known_as: with the scope in which it can be read, each name that it has.
        used: whether anything is done with it.
    """

    name: str
    value: ast.expr
    scope: ast.AST
    known_as: list[tuple[ast.AST, str]] = field(default_factory=list)
    used: bool = True


def named(facts: ScriptFacts) -> list[Dead]:
    """Every name of the script, assigned or a parameter, with what it holds; whether it is dead is asked by `is_dead`."""
    return facts.once(_named)


def is_dead(facts: ScriptFacts, one: Dead) -> bool:
    """Whether the value of a name goes nowhere; its other names are known afterwards."""
    if not one.known_as:
        one.used = _used(facts, one, one.scope, one.name, DEPTH)
    return not one.used


def _named(facts: ScriptFacts) -> list[Dead]:
    assigned = [(target, s.value) for s in facts.nodes(ast.Assign) for target in s.targets]
    out = [Dead(t.id, value, facts.source.scope(t)) for t, value in assigned if isinstance(t, ast.Name)]
    return [*out, *_parameters(facts)]


def _parameters(facts: ScriptFacts) -> Iterator[Dead]:
    """Parameters of functions that were called outside of every trace, with what was given for them there."""
    known: set[tuple[ast.AST, str]] = set()
    for call in facts.record.calls:
        function = None if call.traced else function_of(facts, call.func)
        if function is None:
            continue
        for argument in (*call.node.args, *(k.value for k in call.node.keywords)):
            name = None if isinstance(argument, ast.Starred) else parameter(call, function, argument)
            if name is not None and (function, name) not in known:
                known.add((function, name))
                yield Dead(name, argument, function)


def _used(facts: ScriptFacts, dead: Dead, scope: ast.AST, name: str, depth: int) -> bool:
    """Whether anything but showing is done with what a name holds."""
    dead.known_as.append((scope, name))
    if depth == 0:
        return True
    return any(_use_of(facts, dead, load, depth) for load in loads(facts, scope, name))


def loads(facts: ScriptFacts, scope: ast.AST, name: str) -> Iterator[ast.Name]:
    """Where a name of a scope is read."""
    for node in ast.walk(scope):
        if not isinstance(node, ast.Name) or node.id != name or not isinstance(node.ctx, ast.Load):
            continue
        if not any(name in function_parameters(f) for f in _between(facts, node, scope)):
            yield node


def _between(facts: ScriptFacts, node: ast.AST, scope: ast.AST) -> Iterator[Function]:
    """The functions around a node, up to a scope."""
    here = facts.source.scope(node)
    while here is not scope and isinstance(here, FUNCTIONS):
        yield here
        here = facts.source.scope(here)


def _use_of(facts: ScriptFacts, dead: Dead, load: ast.Name, depth: int) -> bool:
    fate = fate_of(facts, load)
    if fate is Fate.SHOWN:
        return mixed(facts, load)
    if fate is Fate.NAMED:
        statement = facts.source.statement(load)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        names = [t for t in targets if isinstance(t, ast.Name)]
        if not names or len(names) != len(targets):
            return True
        return any(_used(facts, dead, facts.source.scope(t), t.id, depth - 1) for t in names)
    call, argument = _argument(facts, load)
    if call is None or argument is None:
        return True
    if fate is Fate.PASSED and argument is load:
        return _used_inside(facts, dead, call, argument, depth)
    return not _unread_by_scan(facts, call, load)


def mixed(facts: ScriptFacts, load: ast.Name) -> bool:
    """Whether what is shown was computed with other values too: then it is a result. What is asserted is none."""
    here: ast.AST = load
    mixed = False
    while True:
        parent = facts.source.parents.get(here)
        if isinstance(parent, ast.Assert) or (isinstance(parent, ast.Attribute) and parent.attr in META):
            return False
        if parent is None or isinstance(parent, ast.stmt | ast.FormattedValue):
            return mixed
        if isinstance(parent, ast.Call) and _shows(facts, parent):
            return mixed
        if isinstance(parent, ast.BinOp | ast.Compare) or (isinstance(parent, ast.Subscript) and here is parent.slice):
            others = [n for n in ast.iter_child_nodes(parent) if n is not here]
            mixed = mixed or any(isinstance(n, ast.expr) and not isinstance(n, ast.Constant) for n in others)
        elif isinstance(parent, ast.Call) and here is not parent.func:
            mixed = mixed or len(parent.args) + len(parent.keywords) > 1
        here = parent


def _shows(facts: ScriptFacts, call: ast.Call) -> bool:
    return any(made.name in SHOWS for made in facts.calls_at(call))


def _argument(facts: ScriptFacts, load: ast.Name) -> tuple[ast.Call | None, ast.expr | None]:
    """The nearest call around a read, and which of its arguments the read is in."""
    here: ast.AST = load
    while True:
        parent = facts.source.parents.get(here)
        if isinstance(parent, ast.Call) and here is not parent.func:
            return parent, here if isinstance(here, ast.expr) else None
        if isinstance(parent, ast.keyword):
            around = facts.source.parents.get(parent)
            return (around if isinstance(around, ast.Call) else None), parent.value
        if parent is None or isinstance(parent, ast.stmt):
            return None, None
        here = parent


def _used_inside(facts: ScriptFacts, dead: Dead, call: ast.Call, argument: ast.expr, depth: int) -> bool:
    """Whether the function that gets it does anything with it."""
    made = next((c for c in facts.calls_at(call) if function_of(facts, c.func) is not None), None)
    function = None if made is None else function_of(facts, made.func)
    name = None if made is None or function is None else parameter(made, function, argument)
    return name is None or function is None or _used(facts, dead, function, name, depth - 1)


def parameter(call: Called, function: Function, argument: ast.expr) -> str | None:
    """The name that an argument has inside."""
    keyword = next((k.arg for k in call.node.keywords if k.value is argument), None)
    names = function_parameters(function)
    if keyword is not None:
        return keyword if keyword in names else None
    if any(isinstance(a, ast.Starred) for a in call.node.args):
        return None
    index = call.node.args.index(argument) + (1 if bound_first(call, function) else 0)
    return names[index] if index < len(names) else None


def _unread_by_scan(facts: ScriptFacts, call: ast.Call, load: ast.Name) -> bool:
    """Whether a read is an element of a scan's xs that its step does not look at."""
    for site in (s for s in facts.scans if s.node is call):
        xs = site.arguments.get("xs")
        elements = xs.elts if isinstance(xs, ast.Tuple | ast.List) else []
        index = next((i for i, element in enumerate(elements) if load in ast.walk(element)), None)
        if index is not None:
            return not _reads(site, index)
    return False


def _reads(site: ScanSite, index: int) -> bool:
    """Whether the step's program uses a leaf of element `index` of x."""
    trace = site.facts.trace
    if not isinstance(trace, StepTrace) or not isinstance(trace.x_in, tuple | list):
        return True
    program: Any = trace.jaxpr.jaxpr
    read = {id(v) for equation in program.eqns for v in equation.invars} | {id(v) for v in program.outvars}
    before = len(tree_util.tree_leaves((trace.carry_in, tuple(trace.x_in[:index]))))
    count = len(tree_util.tree_leaves(trace.x_in[index]))
    return any(id(v) in read for v in program.invars[before : before + count])
