"""State of a module is changed inside a scan that does not carry it.

**What.** A module with state of its own (the random numbers of a dropout, the running mean of a batch norm, a counter in
an `nnx.Variable`) is used in the step. Under `jax.lax.scan` flax refuses that: the variable belongs to another trace.
Under `nnx.scan` with `in_axes=None` for the module nothing is raised: each step gets the state as it was before the
scan, so the dropout mask is the same at every step, and what the steps write is lost.

**Why.** A scan hands on its carry and nothing else. State that changes is a carry, whoever holds it.

**Bad**

    @nnx.scan(in_axes=(None, nnx.Carry, 0), out_axes=(nnx.Carry, 0))
    def run(model, h, x):
        h = jnp.tanh(model.dropout(x) + h)
        return h, h

**Good**

    @nnx.scan(in_axes=(nnx.StateAxes({nnx.RngState: nnx.Carry, ...: None}), nnx.Carry, 0), out_axes=(nnx.Carry, 0))
    def run(model, h, x):
        h = jnp.tanh(model.dropout(x) + h)
        return h, h

Modules whose state the step only reads (a Linear, a cell, a dropout with `deterministic=True`) are fine in either.

Source: flax.nnx.scan, flax.nnx.StateAxes; flax.errors.TraceContextError.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from flax import errors, nnx

from core.base.places import Because
from core.base.text import fill
from core.base.violation import Severity, TextEdit
from core.contract.keys_edit import free_names
from core.contract.origin import record_of
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Changed, Failure, ScanSite
from core.contract.subject import Subject

RAISED = "{text} changes the state of {name}, which was made outside of this scan: that state is no part of the carry."
RAISED_TRACE = "{text} changes the state of {name}, which was made outside of the function that is being traced."
SAME_NOISE = (
    "{text} counts its random numbers in {path}, and in_axes=None gives every step the same count: all steps draw the "
    "same numbers, and the count is as before after the scan."
)
LOST = "{text} writes to {path}, and in_axes=None gives every step the old value: what the steps write is lost."
BECAUSE = "the step is run from here"
CLAIM = "Variables that the step changes and that are as before after the scan were counted."
TITLE_AXES = "Carry {kind} from step to step"
TITLE_SCAN = "Carry {name} through nnx.scan"
WHY = "A scan hands on its carry and nothing else: state that changes from step to step must be part of it."


def check(facts: ScriptFacts) -> Iterator[Finding]:
    """The failure, when it is one of this kind; and each `nnx.scan` that drops what its steps write."""
    failure = facts.failure
    if failure is not None and isinstance(failure.error, errors.TraceContextError):
        yield _raised(facts, failure)
    said = set()
    for site in facts.scans:
        lost = [changed for changed in site.changed if changed.lost]
        if lost and site.node is not None and site.error is None and (site.facts.length or 0) > 1:
            finding = _lost(facts, site, site.node, lost[0])
            if finding.place not in said:
                said.add(finding.place)
                yield finding


# --- raised ---------------------------------------------------------------------------------------------------------


def _raised(facts: ScriptFacts, failure: Failure) -> Finding:
    node = failure.node
    holder = None if node is None else _holder(node)
    text = "\n".join(facts.source.lines[failure.span.line - 1 : failure.span.line]).strip()
    text = text if node is None else facts.source.text_of(node)
    name = text if holder is None else facts.source.text_of(holder)
    site = None if failure.scan is None else facts.scans[failure.scan]
    inside = None if site is None else next((f.node for f in failure.frames if f.function is site.step), None)
    used = None if inside is None else _holder(inside)
    call = None if site is None else site.node
    return Finding(
        message=fill(RAISED_TRACE if site is None else RAISED, text=text, name=name),
        place=failure.span,
        because=None if call is None else Because(facts.span(call), BECAUSE),
        repairs=() if site is None or used is None else tuple(_through_nnx(facts, site, used)),
        severity=Severity.ERROR,
        silent=False,
        path=name,
    )


def _holder(node: ast.expr) -> ast.expr | None:
    """The module (or variable) of a call ``drop(x)``, ``self.bn(x)``, ``m.count[...]``."""
    if isinstance(node, ast.Call):
        return node.func
    return node.value if isinstance(node, ast.Subscript | ast.Attribute) else node


def _through_nnx(facts: ScriptFacts, site: ScanSite, holder: ast.expr) -> Iterator[Repair]:
    """The module as part of the carry, in `nnx.scan`."""
    root, step, call = _root(holder), site.step, site.node
    module = facts.spelled("flax.nnx")
    if root is None or not isinstance(step, ast.FunctionDef) or call is None or module is None:
        return
    init, function = site.arguments.get("init"), site.arguments.get("step")
    returned = facts.source.all_returned(step)
    carry = next((a for a in (*step.args.posonlyargs, *step.args.args) if a.arg != "self"), None)
    if init is None or function is None or carry is None or root.id in {a.arg for a in step.args.args}:
        return
    parts = [v.elts[0] for v in returned if isinstance(v, ast.Tuple) and len(v.elts) == 2]
    if not parts or len(parts) != len(returned):
        return
    text = facts.source.text_of
    options = "".join(
        f", {k}={text(site.arguments[k])}" for k in ("length", "reverse", "unroll") if k in site.arguments
    )
    axes = f"in_axes=({module}.Carry, 0), out_axes=({module}.Carry, 0){options}"
    xs = "None" if "xs" not in site.arguments else text(site.arguments["xs"])
    made = f"{module}.scan({text(function)}, {axes})(({root.id}, {text(init)}), {xs})"
    edits = [facts.insert_before(step.body[0], f"{root.id}, {carry.arg} = {carry.arg}")]
    edits += [TextEdit(facts.span(part), f"({root.id}, {_tupled(facts, part)})") for part in parts]
    final, ys = facts.targets(site)
    statement = facts.source.statement(call)
    if final is not None and ys is not None:
        edits += [TextEdit(facts.span(final), f"(_, {text(final)})"), TextEdit(facts.span(call), made)]
    elif statement is not None and facts.source.scope(call) is facts.source.scope(statement):
        one, two = free_names(facts.source.scope(call), "final", "ys")
        edits += [facts.insert_before(statement, f"(_, {one}), {two} = {made}")]
        edits += [TextEdit(facts.span(call), f"({one}, {two})")]
    yield facts.rewrites(fill(TITLE_SCAN, name=root.id), *edits)


def _tupled(facts: ScriptFacts, node: ast.expr) -> str:
    text = facts.source.text_of(node)
    return f"({text})" if isinstance(node, ast.Tuple) and not text.startswith("(") else text


def _root(node: ast.expr) -> ast.Name | None:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node if isinstance(node, ast.Name) else None


# --- silent ---------------------------------------------------------------------------------------------------------


def _lost(facts: ScriptFacts, site: ScanSite, call: ast.Call, changed: Changed) -> Finding:
    place = _use(facts, site, changed) or call
    noise = issubclass(changed.type, nnx.RngState)
    text = facts.source.text_of(place.func if isinstance(place, ast.Call) else place)
    return Finding(
        message=fill(SAME_NOISE if noise else LOST, text=text, path=changed.path),
        place=facts.span(place),
        because=Because(facts.span(call), BECAUSE),
        repairs=tuple(_axes(facts, site)),
        measure=Measure(CLAIM, _count(site.index)),
        severity=Severity.WARNING,
        silent=True,
        path=changed.path,
    )


def _use(facts: ScriptFacts, site: ScanSite, changed: Changed) -> ast.expr | None:
    """The innermost call of a module that holds a variable of this kind, in the step; else where one is written to."""
    for call in facts.record.calls:
        if call.scan == site.index and isinstance(call.func, nnx.Module) and call.func is not None:
            types = {type(v) for _, v in nnx.to_flat_state(nnx.state(call.func))}
            if any(issubclass(t, changed.type) for t in types) or changed.type.__name__ in {t.__name__ for t in types}:
                return call.node
    name = changed.path.rpartition(".")[2]
    for node in facts.nodes(ast.Attribute):
        if node.attr == name and any(s.scan == site.index for s in facts.seen(node)):
            return node
    return None


def _axes(facts: ScriptFacts, site: ScanSite) -> Iterator[Repair]:
    """``nnx.StateAxes({nnx.RngState: nnx.Carry, ...: None})`` for the module."""
    module = facts.spelled("flax.nnx")
    if module is None:
        return
    lost = [c for c in site.changed if c.lost]
    position = lost[0].argument
    kinds = list(dict.fromkeys(_kind(module, c.type) for c in lost if c.argument == position))
    carried = ", ".join(f"{kind}: {module}.Carry" for kind in kinds)
    for call in facts.nodes(ast.Call):
        given = next((k.value for k in call.keywords if k.arg == "in_axes"), None)
        axes = None if given is None else facts.source.resolve(given)
        if not isinstance(axes, ast.Tuple) or position >= len(axes.elts):
            continue
        old = facts.source.resolve(axes.elts[position])
        title = fill(TITLE_AXES, kind=", ".join(kinds))
        if isinstance(old, ast.Constant) and old.value is None:
            yield facts.rewrite(title, axes.elts[position], f"{module}.StateAxes({{{carried}, ...: None}})")
        elif isinstance(old, ast.Call) and old.args and isinstance(old.args[0], ast.Dict) and old.args[0].keys:
            first = old.args[0].keys[0]
            if first is not None:
                start = facts.span(first)
                spot = type(start)(start.line, start.col, start.line, start.col)
                yield facts.rewrites(title, TextEdit(spot, f"{carried}, "))


def _kind(module: str, kind: type) -> str:
    """A variable's class as the script can write it."""
    if issubclass(kind, nnx.RngState):
        return f"{module}.RngState"
    return f"{module}.{kind.__name__}" if getattr(nnx, kind.__name__, None) is not None else kind.__name__


def _count(index: int) -> Callable[[Subject], float]:
    def of(subject: Subject) -> float:
        record = record_of(subject)
        return float(sum(1 for changed in record.scans[index].changed if changed.lost))

    return of


RULE = Rule(
    code="R404",
    name="module-state-changed-in-scan",
    title="State of a module is changed inside a scan that does not carry it",
    severity=Severity.ERROR,
    jax=Jax.BOTH,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script"}),
)
