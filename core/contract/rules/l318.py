"""A stochastic layer is not told its mode, or has no rngs.

**What.** Dropout needs an `nnx.Rngs` while it drops, and `BatchNorm` wants one when it is built; without, they raise.
A new NNX module is in training mode: after training it goes on dropping units and taking the statistics of each batch
until ``model.eval()`` is called. Its answers are then random, or depend on who else is in the batch.

**Why.** Nothing but the script knows whether a call is training or use.

**Bad**

    train_step(model, optimizer, x, y)
    answer = model(x)

**Good**

    train_step(model, optimizer, x, y)
    model.eval()
    answer = model(x)

Source: flax.nnx.Dropout.__call__, "`deterministic` is False, but no `rngs` argument was provided"; flax.nnx.Module.eval.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flax import nnx

from core.base.places import Because
from core.base.text import fill
from core.base.violation import Severity
from core.contract import training_facts
from core.contract.modes import moved, says_mode, stochastic, updated, uses_after
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called, ScriptRecord
from core.contract.training_facts import TrainingFacts

NO_RNGS = "{text} drops units at random, and was given no rngs to draw from: not when it was built, not in this call."
NO_STREAM = "{text} draws from the stream {stream} of an nnx.Rngs that has neither that nor a default one."
BUILD = "{text} is built without rngs."
NOT_RNGS = "{text} is given {got} as rngs; it wants an nnx.Rngs."
NO_MODE = "{text} was never told whether this is training: {flag} is None."
TRAINS = "{text} is called after training and still in training mode: {layers} still {what}."
DROPS = "drops units at random"
BATCH = "takes the statistics of the batch"
BECAUSE = "it was built without rngs here"
TITLE_RNGS = "Build it with rngs={text}"
TITLE_WRAP = "Wrap it: rngs={text}"
TITLE_STREAM = "Give the nnx.Rngs that stream: {text}"
TITLE_FLAG = "Say so in the call: {flag}={value}"
TITLE_EVAL = "Switch it to use first: {text}.eval()"
CLAIM = "The same call again, or with another example of the batch changed: how far the answer moves."
WHY = "Dropout and batch statistics do one thing in training and another in use; only the script knows which is meant."
#: The layers, each with the argument that says its mode.
FLAGS: tuple[tuple[type, str], ...] = (
    (nnx.Dropout, "deterministic"),
    (nnx.BatchNorm, "use_running_average"),
    (nnx.MultiHeadAttention, "deterministic"),
)
LAYERS = tuple(layer for layer, _ in FLAGS)


def check(facts: TrainingFacts | ScriptFacts) -> Iterator[Finding]:
    """The layer that failed; else, calls after training in training mode."""
    if isinstance(facts, TrainingFacts):
        yield from training_facts.check(facts)
        return
    if facts.failure is not None:
        found = _failed(facts)
        if found is not None:
            yield found
        return
    order = updated(facts)
    if order is None or says_mode(facts):
        return
    said: set[int] = set()
    for call in uses_after(facts, order):
        layers = stochastic(call.func)
        if not layers or id(call.func) in said:
            continue
        said.add(id(call.func))
        yield _still_training(facts, call, layers)


# --- raised ---------------------------------------------------------------------------------------------------------


def _failed(facts: ScriptFacts) -> Finding | None:
    failure = facts.failure
    node = None if failure is None else failure.node
    call = next((c for c in reversed(facts.record.calls) if c.error is not None and c.node is node), None)
    if call is None:
        return None
    if isinstance(call.func, type) and issubclass(call.func, LAYERS):
        return _build(facts, call)
    if not isinstance(call.func, LAYERS):
        return None
    flag = next(name for layer, name in FLAGS if isinstance(call.func, layer))
    given = call.kwargs.get(flag)
    given = getattr(call.func, flag, None) if given is None else given
    text = facts.source.text_of(call.node.func)
    if given is None:
        return _error(facts, call.node, fill(NO_MODE, text=text, flag=flag), _said(facts, call, flag))
    if isinstance(call.func, nnx.Dropout) and not given:
        return _draws(facts, call, text)
    return None


def _draws(facts: ScriptFacts, call: Called, text: str) -> Finding | None:
    """Dropout that has nothing to draw from."""
    layer, rngs = call.func, call.kwargs.get("rngs")
    if rngs is None and layer.rngs is None:
        built = _built(facts, layer)
        repairs = () if built is None else tuple(_with_rngs(facts, built.node))
        because = None if built is None else Because(facts.span(built.node), fill(BECAUSE))
        return _error(facts, call.node, fill(NO_RNGS, text=text), repairs, because)
    if isinstance(rngs, nnx.Rngs) and layer.rng_collection not in rngs and "default" not in rngs:
        return _no_stream(facts, call.node, text, layer.rng_collection, rngs)
    return None


def _build(facts: ScriptFacts, call: Called) -> Finding | None:
    text = facts.source.text_of(call.node.func)
    rngs = call.kwargs.get("rngs")
    if isinstance(rngs, nnx.Rngs):
        stream = call.kwargs.get("rng_collection") or "dropout"
        if issubclass(call.func, nnx.Dropout) and stream not in rngs and "default" not in rngs:
            return _no_stream(facts, call.node, text, stream, rngs)
        return None
    if rngs is None:
        return _error(facts, call.node, fill(BUILD, text=text), tuple(_with_rngs(facts, call.node)))
    node = next((k.value for k in call.node.keywords if k.arg == "rngs"), None)
    name = facts.spelled("flax.nnx.Rngs")
    repairs: tuple[Repair, ...] = ()
    if node is not None and name is not None:
        wrapped = f"{name}({facts.source.text_of(node)})"
        repairs = (facts.rewrite(fill(TITLE_WRAP, text=wrapped), node, wrapped),)
    return _error(facts, call.node, fill(NOT_RNGS, text=text, got=type(rngs).__name__), repairs)


def _no_stream(facts: ScriptFacts, node: ast.Call, text: str, stream: str, rngs: nnx.Rngs) -> Finding:
    made = next((c for c in facts.record.calls if c.result is rngs), None)
    repairs: tuple[Repair, ...] = ()
    if made is not None:
        new = _plus(facts, made.node, f"{stream}=1")
        repairs = (facts.rewrite(fill(TITLE_STREAM, text=new), made.node, new),)
    return _error(facts, node, fill(NO_STREAM, text=text, stream=stream), repairs)


def _built(facts: ScriptFacts, layer: Any) -> Called | None:
    """The call that built a layer (the very object: under a transformation it is a copy), or the only one that could."""
    same = [c for c in facts.record.calls if c.result is layer]
    alike = [c for c in facts.record.calls if isinstance(c.func, type) and issubclass(c.func, type(layer))]
    nodes = list(dict.fromkeys(c.node for c in alike))
    return same[0] if same else alike[0] if len(nodes) == 1 else None


def _with_rngs(facts: ScriptFacts, node: ast.Call) -> Iterator[Repair]:
    """``rngs=`` in a build: a name there that holds an nnx.Rngs, else a new one."""
    names = [n for n in facts.nodes(ast.Name) if isinstance(facts.value(n), nnx.Rngs) and n.id.isidentifier()]
    scope = facts.source.scope(node)
    here = next((n.id for n in names if facts.source.scope(n) is scope), None)
    made = facts.spelled("flax.nnx.Rngs")
    text = here if here is not None or made is None else f"{made}(0)"
    given = next((k for k in node.keywords if k.arg == "rngs"), None)
    if text is not None and given is None:
        yield facts.rewrite(fill(TITLE_RNGS, text=text), node, _plus(facts, node, f"rngs={text}"))
    elif text is not None and given is not None:
        yield facts.rewrite(fill(TITLE_RNGS, text=text), given.value, text)


def _plus(facts: ScriptFacts, node: ast.Call, argument: str) -> str:
    """A call's text with one more argument."""
    text = facts.source.text_of(node)
    inner = text[: text.rindex(")")].rstrip()
    comma = "" if inner.endswith(("(", ",")) else ","
    return f"{inner}{comma}{'' if inner.endswith('(') else ' '}{argument})"


def _said(facts: ScriptFacts, call: Called, flag: str) -> tuple[Repair, ...]:
    return tuple(
        facts.rewrite(fill(TITLE_FLAG, flag=flag, value=value), call.node, _plus(facts, call.node, f"{flag}={value}"))
        for value in (True, False)
    )


def _error(
    facts: ScriptFacts, node: ast.expr, message: str, repairs: tuple[Repair, ...], because: Because | None = None
) -> Finding:
    return Finding(
        message=message,
        place=facts.span(node),
        because=because,
        repairs=repairs,
        severity=Severity.ERROR,
        silent=False,
    )


# --- silent ---------------------------------------------------------------------------------------------------------


def _still_training(facts: ScriptFacts, call: Called, layers: list[Any]) -> Finding:
    text = facts.source.text_of(call.node.func)
    what = DROPS if any(isinstance(layer, nnx.Dropout) for layer in layers) else BATCH
    names = ", ".join(dict.fromkeys(type(layer).__name__ for layer in layers))
    measure, proven = Again(text), False
    try:
        proven = moved(call.func, call.args[0]) > 0
    except Exception:  # noqa: BLE001  # without a number it stays a note
        proven = False
    statement = facts.source.statement(call.node)
    repairs: tuple[Repair, ...] = ()
    if statement is not None:
        edit = facts.insert_before(statement, f"{text}.eval()")
        repairs = (facts.rewrites(fill(TITLE_EVAL, text=text), edit),)
    return Finding(
        message=fill(TRAINS, text=text, layers=names, what=fill(what)),
        place=facts.span(call.node),
        repairs=repairs,
        measure=Measure(CLAIM, measure) if proven else None,
        severity=Severity.WARNING if proven else Severity.NOTE,
        silent=True,
        path=text,
    )


@dataclass(frozen=True, slots=True)
class Again:
    """How far the answer of the first call of a module after training moves when that call is made again."""

    text: str

    def __call__(self, record: Any) -> float:
        """The number, in this run.

        Raises:
            ValueError: the call is not there.
        """
        if isinstance(record, ScriptRecord):
            facts = ScriptFacts(record)
            for call in uses_after(facts, updated(facts) or 0):
                if facts.source.text_of(call.node.func) == self.text:
                    return moved(call.func, call.args[0])
        raise ValueError("there is no such call")


RULE = Rule(
    code="L318",
    name="mode-or-rngs-not-given",
    title="A stochastic layer is not told its mode, or has no rngs",
    severity=Severity.ERROR,
    jax=Jax.BOTH,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script", "training"}),
)
