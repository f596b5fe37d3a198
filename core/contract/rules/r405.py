"""Random numbers of NumPy or Python, or the clock, in the step.

**What.** The step (or another traced function) calls `np.random`, Python's `random` or `time`. JAX traces it once: what
was drawn then is written into the program as a constant, and all steps use it.

**Why.** A traced function's Python runs once, at trace time; only operations on arrays run at every step.

**Bad**

    def step(position, _):
        position = position + np.random.normal()
        return position, position

**Good**

    def step(position, key):
        position = position + jax.random.normal(key)
        return position, position
    jax.lax.scan(step, 0.0, jax.random.split(jax.random.key(0), 4))

Drawn outside of the step and given to it, in xs or in init, such numbers are fine; so they are in a loop of Python.

Source: JAX documentation, "JAX - The Sharp Bits", pure functions; "Pseudorandom numbers".
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.base.places import Because
from core.base.text import fill
from core.base.violation import Severity, TextEdit
from core.contract import keys_edit
from core.contract.keys_edit import SPLIT, Spelling
from core.contract.origin import record_of
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called, LoopSite, ScanSite
from core.contract.source import Function
from core.contract.subject import MISSING, Subject

IN_STEP = "{call} runs once, while the step is traced: all {count} steps use the number that it gave then."
IN_BODY = "{call} runs once, while the loop's body is traced: every step uses the number that it gave then."
IN_JIT = "{call} runs once, while {function} is traced: later calls use the number that it gave then."
CLOCK = "{call} is read once, while {function} is traced: it tells when that was, not when a step runs."
BECAUSE = "the step is run from here"
CLAIM = "Steps, and values of {call} among them, were counted: this many steps use a number drawn for another step."
CLAIM_ONCE = "Runs of {call} in traced functions were counted: this many numbers are frozen in the program."
TITLE = "Draw with jax.random, from a key for each step"
WHY = "A traced function's Python runs once, at trace time: what it computes then is a constant of the program."
THE_STEP = "the step"
#: Names under which Python's and NumPy's numbers are drawn.
DRAWS = ("numpy.random.", "random.", "secrets.")
CLOCKS = ("time.time", "time.perf_counter", "time.monotonic", "time.process_time", "datetime.datetime.now")
#: Functions of these modules that draw nothing.
NO_DRAW = frozenset("seed default_rng key Generator RandomState SeedSequence Random SystemRandom getstate setstate "
                    "get_state set_state spawn shuffle jumped sleep".split())  # fmt: skip
#: How to draw the same with a key: by function, the template and the arguments' names with their defaults.
IN_JAX: dict[str, tuple[str, tuple[tuple[str, str | None], ...]]] = {
    "normal": ("{loc}{scale}jax.random.normal({key}{size})", (("loc", "0.0"), ("scale", "1.0"), ("size", None))),
    "standard_normal": ("jax.random.normal({key}{size})", (("size", None),)),
    "randn": ("jax.random.normal({key}{dims})", ()),
    "rand": ("jax.random.uniform({key}{dims})", ()),
    "random": ("jax.random.uniform({key}{size})", (("size", None),)),
    "random_sample": ("jax.random.uniform({key}{size})", (("size", None),)),
    "uniform": ("jax.random.uniform({key}{size}{low}{high})", (("low", "0.0"), ("high", "1.0"), ("size", None))),
    "gauss": ("{loc}{scale}jax.random.normal({key}{size})", (("loc", "0.0"), ("scale", "1.0"))),
    "normalvariate": ("{loc}{scale}jax.random.normal({key}{size})", (("loc", "0.0"), ("scale", "1.0"))),
}
#: Other names of those arguments.
ALSO = {"mu": "loc", "sigma": "scale", "a": "low", "b": "high", "d0": "size"}


@dataclass(frozen=True, slots=True, eq=False)
class _Frozen:
    """A call that was made while something was traced: in a scan's step, a loop's body, or a jitted function."""

    call: Called
    scan: ScanSite | None = None
    loop: LoopSite | None = None
    function: Function | None = None


def check(facts: ScriptFacts) -> Iterator[Finding]:
    """One finding for each such call expression."""
    for frozen in facts.once(_frozen):
        call = frozen.call
        name, text = call.name or "", facts.source.text_of(call.node.func)
        inside = THE_STEP if frozen.function is None else getattr(frozen.function, "name", "the function")
        if name.startswith(CLOCKS):
            message = fill(CLOCK, call=text, function=inside)
        elif frozen.scan is not None:
            message = fill(IN_STEP, call=text, count=frozen.scan.facts.length)
        else:
            message = fill(IN_BODY, call=text) if frozen.loop is not None else fill(IN_JIT, call=text, function=inside)
        site = frozen.scan or frozen.loop
        steps = frozen.scan is not None and not name.startswith(CLOCKS)
        yield Finding(
            message=message,
            place=facts.span(call.node),
            because=None if site is None or site.node is None else Because(facts.span(site.node), BECAUSE),
            repairs=() if frozen.scan is None else tuple(_repairs(facts, frozen, frozen.scan)),
            measure=Measure(fill(CLAIM if steps else CLAIM_ONCE, call=text), _count(frozen, steps)),
            path=text,
        )


def _frozen(facts: ScriptFacts) -> list[_Frozen]:
    out: dict[ast.Call, _Frozen] = {}
    jitted = _jitted(facts)
    for call in facts.record.calls:
        if call.node in out or not _draws(call) or not (call.traced or call.scan is not None):
            continue
        if call.scan is not None:
            scan = facts.scans[call.scan]
            if (scan.facts.length or 0) > 1:
                out[call.node] = _Frozen(call, scan=scan)
            continue
        around = list(facts.source.enclosing(call.node))
        loop = next((one for one in facts.record.loops if one.body in around), None)
        function = next((f for f in around if f in jitted), None)
        if loop is not None or function is not None:
            out[call.node] = _Frozen(call, loop=loop, function=function)
    return list(out.values())


def _draws(call: Called) -> bool:
    """Whether a call gives a number of NumPy's or Python's generators, or of the clock."""
    name = call.name or ""
    if call.error is not None or call.result is MISSING or call.result is None:
        return False
    if name.startswith(CLOCKS):
        return True
    drawn = name.startswith(DRAWS) or isinstance(call.receiver, random.Random)
    return drawn and name.rpartition(".")[2] not in NO_DRAW and _numbers(call.result)


def _numbers(value: Any) -> bool:
    return isinstance(value, int | float | np.ndarray | np.generic | list | str)


def _jitted(facts: ScriptFacts) -> frozenset[Function]:
    """Functions of the script that were called through `jit`: there the trace is kept for later calls."""
    out = set()
    for call in facts.record.calls:
        if callable(call.func) and hasattr(call.func, "lower") and not call.traced:
            function = facts.source.function(call.func)
            if function is not None:
                out.add(function)
    return frozenset(out)


def _count(frozen: _Frozen, steps: bool) -> Callable[[Subject], float]:
    name, scan = frozen.call.name, frozen.scan

    def of(subject: Subject) -> float:
        record = record_of(subject)
        same = [c for c in record.calls if c.name == name and _draws(c) and (c.traced or c.scan is not None)]
        if not steps or scan is None:
            return float(len(same))
        inside = [c for c in same if c.scan == scan.index]
        return float((record.scans[scan.index].facts.length or 1) - 1) if inside else 0.0

    return of


# --- repairs --------------------------------------------------------------------------------------------------------


def _repairs(facts: ScriptFacts, frozen: _Frozen, site: ScanSite) -> Iterator[Repair]:
    """Every such draw of the step from a key of its own."""
    nodes = [
        f.call.node for f in facts.once(_frozen) if f.scan is site and keys_edit.inside(facts, f.call.node, site.step)
    ]
    texts = [_in_jax(facts, node) for node in nodes]
    count = keys_edit.count_text(facts, site)
    if frozen.call.node not in nodes or count is None or any(t is None for t in texts):
        return
    spelling = Spelling(facts)
    seed = f"{spelling.of('jax.random.key')}(0)"
    several = len(nodes) > 1
    keys = f"{spelling.of(SPLIT)}({seed}, {f'({count}, {len(nodes)})' if several else count})"
    for name, edits in keys_edit.keys_through_xs(facts, site, keys, "step_key"):
        own = tuple(
            TextEdit(facts.span(node), (text or "").replace("{key}", f"{name}[{i}]" if several else name))
            for i, (node, text) in enumerate(zip(nodes, texts, strict=True))
        )
        yield facts.rewrites(fill(TITLE), *edits, *own, *spelling.imports(SPLIT))


def _in_jax(facts: ScriptFacts, node: ast.Call) -> str | None:
    """The same draw by `jax.random`, with ``{key}`` for the key; None where it is not known how."""
    name = next((c.name or "" for c in facts.calls_at(node)), "").rpartition(".")[2]
    known = IN_JAX.get(name)
    if known is None or any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
        return None
    template, names = known
    given = {n: facts.source.text_of(a) for (n, _), a in zip(names, node.args, strict=False)}
    given |= {ALSO.get(k.arg or "", k.arg or ""): facts.source.text_of(k.value) for k in node.keywords}
    if set(given) - {n for n, _ in names}:
        return None
    loc, scale = given.get("loc", "0.0"), given.get("scale", "1.0")
    low, high = given.get("low"), given.get("high")
    dims = "".join(f"{facts.source.text_of(a)}, " for a in node.args)
    size = given.get("size")
    shape = f"({dims.rstrip(', ')}{',' if len(node.args) == 1 else ''})" if "{dims}" in template and dims else size
    if shape is not None and isinstance(node_of(node, names, "size"), ast.Constant) and shape.isdigit():
        shape = f"({shape},)"
    text = template.format(
        key="{key}",
        size="" if shape is None else f", {shape}",
        dims="" if shape is None else f", {shape}",
        loc="" if loc in ("0", "0.0") else f"{loc} + ",
        scale="" if scale in ("1", "1.0") else f"{scale} * ",
        low="" if low is None else f", minval={low}",
        high="" if high is None else f", maxval={high}",
    )
    draw = Spelling(facts).of(f"jax.random.{'normal' if 'normal' in template else 'uniform'}")
    text = text.replace("jax.random.normal", draw).replace("jax.random.uniform", draw)
    plain = loc in ("0", "0.0") and scale in ("1", "1.0")
    return text if plain else f"({text})"


def node_of(call: ast.Call, names: tuple[tuple[str, str | None], ...], wanted: str) -> ast.expr | None:
    """The expression given for an argument."""
    for (name, _), node in zip(names, call.args, strict=False):
        if name == wanted:
            return node
    return next((k.value for k in call.keywords if k.arg == wanted), None)


RULE = Rule(
    code="R405",
    name="numpy-random-in-step",
    title="Random numbers of NumPy, or the clock, in the step",
    severity=Severity.WARNING,
    jax=Jax.SILENT,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script"}),
)
