"""A gradient that is not finite, through a value that is.

**What.** The value is fine, its gradient is NaN or infinite: the branch of a `where` that is not taken is differentiated
too, and 0 times its infinite derivative is NaN; the norm and the root have no derivative at 0.

**Why.** Reverse mode multiplies the derivatives of all operations, also of those whose result was not chosen.

**Bad**

    y = jnp.where(x > 0, jnp.log(x), 0.0)

**Good**

    safe = jnp.where(x > 0, x, 1.0)         # guard what goes in as well
    y = jnp.where(x > 0, jnp.log(safe), 0.0)

Looked for only where gradients are taken, by a script or through a scan of the Gradients page. In a script the whole
program of the gradient is carried out operation by operation, steps of scans included: the place is the expression whose
derivative is the first that is not finite.

Source: JAX documentation, "Gradients contain NaN where using where"; jax-ml/jax#1052.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
from flax import nnx
from jax import tree_util

from core.base.places import Because
from core.base.text import fill
from core.base.violation import Severity
from core.contract import scan_gradient
from core.contract.facts import ScanFacts
from core.contract.grads import Born, births
from core.contract.grads_edit import repairs, selecting
from core.contract.origin import record_of
from core.contract.replay import not_finite
from core.contract.rule import Finding, Jax, Measure, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called, Held, ScriptRecord
from core.contract.subject import MISSING, Subject
from core.contract.wording import show

BORN = "The gradient through {text} is {value}, though the value is finite: in the program of the gradient, {cause}."
CAUSE = "{operation}({numbers}) is {output}"
CAUSE_ALONE = "{operation} gives {output}"
MASKED = " The where chooses among values; the branch that it does not take is differentiated all the same."
BECAUSE = "the gradient is taken here"
CLAIM = "The gradient was computed and its numbers were counted: this many are NaN or infinite."
WHY = (
    "Reverse mode multiplies the derivatives of all operations, also of those whose result was not chosen: 0 times an "
    "infinite derivative is NaN."
)
#: What takes gradients.
GRADS = (
    *(f"jax.{n}" for n in "grad value_and_grad vjp jacrev jacfwd jacobian hessian jvp linearize".split()),
    *(f"flax.nnx.{n}" for n in "grad value_and_grad vjp jvp".split()),
)
#: How many calls of a script are carried out once more.
TRIED = 4


@dataclass(frozen=True, slots=True, eq=False)
class _Wild:
    """A call of the script that gave a gradient that is not finite, and where that was born."""

    call: Called
    born: Born
    path: str


def check(facts: ScanFacts | ScriptFacts) -> Iterator[Finding]:
    """One finding for each expression that such a gradient was born in; of a page's scan, one."""
    if isinstance(facts, ScanFacts):
        yield from scan_gradient.check(facts)
        return
    said = set()
    for wild in facts.once(_found):
        place = wild.born.place
        node = None if place is None else facts.source.expression(place)
        if place is None or node is None or place in said:
            continue
        said.add(place)
        yield _finding(facts, wild, node)


def _finding(facts: ScriptFacts, wild: _Wild, node: ast.expr) -> Finding:
    born = wild.born
    numbers = ", ".join(show(n) for n in born.inputs)
    cause = fill(CAUSE if numbers else CAUSE_ALONE, operation=born.operation, numbers=numbers, output=show(born.output))
    leaves = [v for v in _gave(facts.record, wild.call) if not_finite(v).any()]
    value = "NaN" if any(bool(jax.numpy.isnan(v).any()) for v in leaves) else "infinite"
    message = fill(BORN, text=facts.source.text_of(node), value=value, cause=cause)
    if selecting(facts, node) is not None:
        message += fill(MASKED)
    return Finding(
        message=message,
        place=born.place,
        because=Because(facts.span(wild.call.node), BECAUSE),
        repairs=tuple(repairs(facts, node)),
        measure=Measure(CLAIM, _count(facts, wild.call)),
        path=wild.path,
    )


# --- which gradients ------------------------------------------------------------------------------------------------


def _found(facts: ScriptFacts) -> list[_Wild]:
    if facts.record.abstract or next(facts.calls_of(*GRADS), None) is None:
        return []
    out: list[_Wild] = []
    tried = 0
    done: list[Any] = []
    known: dict[int, tuple[Any, bool]] = {}
    for call in facts.record.calls:
        if not _repeatable(call):
            continue
        gave = _gave(facts.record, call)
        wild = [v for v in gave if _wild(v, known)]
        if not wild or any(v is d for v in wild for d in done):
            continue
        if any(_wild(v, known) for v in _floats(_given(facts.record, call))):
            continue  # it came in
        done += wild
        tried += 1
        if tried > TRIED:
            break
        born = _born(facts, call)
        if born is not None:
            out.append(_Wild(call, born, _path(facts, call)))
    return out


def _wild(value: Any, known: dict[int, tuple[Any, bool]]) -> bool:
    """Whether an array has a number that is not finite; asked once of each (`known` keeps it alive meanwhile)."""
    if id(value) not in known:
        known[id(value)] = value, bool(not_finite(value).any())
    return known[id(value)][1]


def _repeatable(call: Called) -> bool:
    """Whether a call can be made once more: it was made outside of all traces, and all that it was given is known."""
    if call.traced or call.scan is not None or not callable(call.func) or call.error is not None:
        return False
    return not any(v is MISSING for v in (*call.args, *call.kwargs.values()))


def _modules(call: Called) -> list[Any]:
    return [v for v in (*call.args, *call.kwargs.values()) if isinstance(v, nnx.Module | nnx.Optimizer)]


def _held(record: ScriptRecord, module: Any, order: int) -> Held | None:
    """What a module held before something that ended at `order`."""
    return next((h for h in reversed(record.held) if h.module is module and h.order < order), None)


def _given(record: ScriptRecord, call: Called) -> list[Any]:
    """All that went into a call, modules as they were then."""
    plain = [v for v in (*call.args, *call.kwargs.values()) if not isinstance(v, nnx.Module | nnx.Optimizer)]
    held = [_held(record, module, call.order) for module in _modules(call)]
    return [plain, [h.leaves for h in held if h is not None]]


def _gave(record: ScriptRecord, call: Called) -> list[Any]:
    """The arrays that came out of a call: its result, and what it left in the modules that it was given."""
    out = _floats(call.result)
    for module in _modules(call):
        after = next((h for h in record.held if h.module is module and h.order > call.order), None)
        out += _floats(after.leaves if after is not None else nnx.state(module))
    return out


def _floats(tree: Any) -> list[Any]:
    """The arrays of a pytree that have values."""
    try:
        leaves = tree_util.tree_leaves(tree)
    except (TypeError, ValueError):
        return []
    return [v for v in leaves if isinstance(v, jax.Array) and not isinstance(v, jax.core.Tracer)]


def _born(facts: ScriptFacts, call: Called) -> Born | None:
    """The birth, when it is one of the gradient; None where the value is not finite to begin with, or nothing is found."""
    if not _value_is_finite(facts, call):
        return None
    try:
        program = jax.make_jaxpr(lambda: _again(facts, call))()
        found = [b for b in births(program, [], facts.source) if b is not None]
    except Exception:  # noqa: BLE001  # a call that cannot be carried out once more is only not explained
        return None
    born = next((b for b in found if b.of_gradient), None)
    return born if born is not None and born.place is not None else None


def _again(facts: ScriptFacts, call: Called) -> list[Any]:
    """The same call once more; the pullback of a `vjp` together with the `vjp` that made it."""
    pulled = next((c for c in facts.calls_of("jax.vjp", "flax.nnx.vjp") if _pullback(c) is call.func), None)
    if pulled is not None and callable(pulled.func):
        primals = [_copied(facts.record, v, pulled.order) for v in pulled.args]
        return _arrays(pulled.func(*primals, **pulled.kwargs)[1](*call.args))
    args = [_copied(facts.record, v, call.order) for v in call.args]
    options = {k: _copied(facts.record, v, call.order) for k, v in call.kwargs.items()}
    result = call.func(*args, **options)
    modules = [v for v in (*args, *options.values()) if isinstance(v, nnx.Module | nnx.Optimizer)]
    return _arrays([result, [nnx.state(m) for m in modules]])


def _pullback(call: Called) -> Any:
    return call.result[1] if isinstance(call.result, tuple) and len(call.result) >= 2 else None


def _copied(record: ScriptRecord, value: Any, order: int) -> Any:
    """Of a module a copy as it was then, whose variables belong to the trace under way."""
    if not isinstance(value, nnx.Module | nnx.Optimizer):
        return value
    held = _held(record, value, order)
    if held is None:
        return nnx.merge(*nnx.split(value))
    return nnx.merge(held.graph, tree_util.tree_unflatten(held.tree, held.leaves))


def _arrays(tree: Any) -> list[Any]:
    return [v for v in tree_util.tree_leaves(tree) if isinstance(v, jax.Array)]


def _value_is_finite(facts: ScriptFacts, call: Called) -> bool:
    """Whether what was differentiated is finite there, as far as it can be told what that was."""
    function = call.func
    for _ in range(3):
        maker = next((c for c in facts.calls_of(*GRADS) if c.result is function and c.args), None)
        if maker is not None and callable(maker.args[0]):
            try:
                args = [_copied(facts.record, v, call.order) for v in call.args]
                values = _floats(maker.args[0](*args, **call.kwargs))
            except Exception:  # noqa: BLE001  # then nothing is known of it
                return True
            return not any(not_finite(v).any() for v in values)
        function = getattr(function, "__wrapped__", None)
    return True


def _path(facts: ScriptFacts, call: Called) -> str:
    """Of a scan the leaf that is not finite: N501 says of the same that it was born in the step."""
    site = next((s for s in facts.scans if s.node is call.node), None)
    if site is None or site.result is None:
        return _callee(call)
    for root, types, tree in (("carry", site.facts.init_types, site.result[0]), ("y", (), site.result[1])):
        leaves = tree_util.tree_leaves(tree)
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, jax.Array) and not_finite(leaf).any():
                return types[i].path if i < len(types) else root
    return "carry"


def _count(facts: ScriptFacts, call: Called) -> Callable[[Subject], float]:
    """How many numbers of what the same call gave are not finite."""
    name = _callee(call)
    number = [c for c in facts.record.calls if _callee(c) == name].index(call)

    def of(subject: Subject) -> float:
        record = record_of(subject)
        found = [c for c in record.calls if _callee(c) == name][number]
        return float(sum(int(not_finite(v).sum()) for v in _gave(record, found)))

    return of


def _callee(call: Called) -> str:
    """What is called, as it is written but for arguments: those are what a fix changes."""
    func = call.node.func
    return ast.unparse(func.func) + "(…)" if isinstance(func, ast.Call) else ast.unparse(func)


RULE = Rule(
    code="N502",
    name="gradient-not-finite",
    title="A gradient that is not finite, through a value that is",
    severity=Severity.WARNING,
    jax=Jax.SILENT,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"scan", "script"}),
    beats=frozenset({"N501"}),
)
