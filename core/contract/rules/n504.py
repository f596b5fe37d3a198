"""Precision that is lost silently.

**What.** One of six kinds, each proved on the learner's own numbers:

- a number of the host does not arrive: an int64 above 2³¹ is cut to int32, a float64 above 3.4e38 becomes infinite;
- the differences within xs do not arrive: float64 time stamps 1.7e9 + t are all the same number in float32;
- the carry stops moving: `1 + 1e-8` stays 1 in float32, a float32 counter stays at 2²⁴, a bfloat16 one at 256;
- a whole number wraps: an int32 product or Fibonacci number above 2³¹, an int8 total above 127;
- `.at[i].set(1.5)` into an integer buffer keeps 1, one of 1e6 into a float16 buffer infinity;
- 64 bits are asked for by name in a script, `jnp.zeros(3, dtype=jnp.float64)`, and 32 come.

**Why.** JAX computes in 32 bits unless `jax_enable_x64` is set, and neither converting nor overflowing raises.

**Bad**

    jax.lax.scan(lambda t, dt: (t + dt, t), np.float64(1.0), np.full(1000, 1e-8))     # the clock stays at 1.0

**Good**

    jax.config.update("jax_enable_x64", True)     # before the first array is made

Rounding is no fault, and float64 arrays (every `np.linspace` is one) become float32 in every clean program. A lost
motion is therefore reported only where the same steps in 64 bits show that the increments vanish, and that the carry
would have gone somewhere else: `core/contract/precision.py` says which thresholds, and what each of them keeps out.
Unsigned numbers wrap by definition, and `31 * c + x` is how strings are hashed (both a note); a leaf in which bits are
mixed (a generator, a checksum) wraps on purpose (nothing).

Source: JAX documentation, "Double (64bit) precision" and "Type promotion semantics".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jax import tree_util

from core.base.avals import Aval, LeafType
from core.base.places import Because
from core.base.text import fill
from core.base.violation import Severity, TextEdit
from core.contract import repairs
from core.contract.asked_64 import NARROW, Asked, asked
from core.contract.buffers import Cut, cuts
from core.contract.facts import ScanFacts, scan_facts
from core.contract.hosts import Arrived, arrived, flattened
from core.contract.precision import Lost, Wrapped, is_host_float64, is_int, lost_motion, ran, wrapped
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.subject import ScanCall
from core.contract.trace import Raised
from core.contract.weak import harms
from core.contract.wording import element, show, show_as

NOT_ARRIVED = "{where} is {given} as {host} and reaches the step as {got}: {held} does not hold it."
FLAT = (
    "{path} was given as {host} and is scanned as {held}, in which most of its differences from step to step are lost: "
    "from {one} to {two} it is {given} and becomes {got}, and the result is off by {off}."
)
ASKED = (
    "{where} stops moving at t = {t}: {stood} + {wanted} is {stays} in {held}. float64 was asked for, in which it ends at "
    "{exact} instead of {final}; {steps} of the {total} steps are lost."
)
STALLS = (
    "{where} stops moving at t = {t}: {stood} + {wanted} is {stays} in {held}. In 64 bits it ends at {exact} instead of "
    "{final}; {steps} of the {total} steps are lost."
)
WRAPS = "{where} wraps at t = {t}: {exact} does not fit in {held} and becomes {got}."
ON_THE_WAY = (
    "{where} comes out as {got} at t = {t}, where whole numbers without end give {exact}: a number on the way to it does "
    "not fit in {held}."
)
INTO = "The {narrow} buffer {where} cannot keep what is written into it at t = {t}: the {wide} {exact} becomes {got}."
GIVEN_32 = "{function} is asked for {wide} and gives {got}: 64-bit mode is off."
TITLE_32 = "Ask for 32 bits, which is what it gives"
BUFFER = "in the step"
BECAUSE = "it was given as {host} here"
CLAIM_ARRIVED = "{path} was compared with what the step sees of it; this is the largest difference."
CLAIM_FLAT = "The scan was run again in 64 bits; this is the largest difference between the results."
CLAIM_LOST = "The scan was run again in 64 bits; this is how far apart {where} ends."
CLAIM_WRAPS = "Each step was run again in 64 bits; this many numbers of {path} do not fit."
CLAIM_INTO = "What is written was compared with what the buffer keeps; this is the largest difference."
WHY = "JAX computes in 32 bits unless jax_enable_x64 is set; neither a conversion nor an overflow raises."

#: Dtypes with a wider one that needs no 64 bits.
WIDER = {"int8": "int32", "int16": "int32", "uint8": "int32", "uint16": "int32", "float16": "float32"}
WIDER["bfloat16"] = "float32"


def check(facts: ScanFacts | ScriptFacts) -> Iterator[Finding]:
    """Findings of each kind, at most one for each leaf (of a script: each place); what a weak init did is S105's."""
    if isinstance(facts, ScriptFacts):
        yield from _asked_for(facts)
        return
    if ran(facts) is None:
        return
    told = set(facts.once(harms))
    for path, finding in _all(facts):
        if path not in told:
            told.add(path)
            yield finding


def _all(facts: ScanFacts) -> Iterator[tuple[str, Finding]]:
    for number in arrived(facts):
        yield number.path, _not_arrived(facts, number)
    for flat in flattened(facts):
        yield flat.path, _flat(facts, flat)
    for cut in facts.once(cuts):
        yield cut.path, _into(facts, cut)
    for lost in facts.once(lost_motion):
        yield lost.path, _stalls(facts, lost)
    for whole in facts.once(wrapped):
        yield whole.path, _wraps(facts, whole)


def _t(facts: ScanFacts, position: int) -> int:
    return position if isinstance(facts.run, Raised) else facts.run.order[position]


def _held(facts: ScanFacts, path: str) -> LeafType:
    """The leaf as the scan holds it, of the carry, of xs or of y."""
    trace = facts.trace
    ys = () if isinstance(trace, Raised) else trace.y_types()
    return next(t for t in (*facts.carry_in, *facts.xs_types, *ys) if t.path == path)


def _narrow(path: str, dtype: str) -> tuple[Repair, ...]:
    """The carry's leaf in a wider dtype, where there is one."""
    return (repairs.init_dtype(path, WIDER[dtype]),) if dtype in WIDER and path.startswith("carry") else ()


def _asked_for(facts: ScriptFacts) -> Iterator[Finding]:
    """Requests for 64 bits that were not met; a scan that loses numbers says the same with what it costs."""
    found = facts.once(asked)
    if not found or (not facts.record.abstract and any(_scan_tells(scan.facts) for scan in facts.scans)):
        return
    edits = tuple(TextEdit(facts.span(one.node), _plain(facts, one)) for one in found)
    for one in found:
        yield Finding(
            message=fill(GIVEN_32, function=one.function, wide=one.wide, got=one.got),
            place=facts.span(one.node),
            repairs=(facts.rewrites(TITLE_32, *edits),),
            # A whole number that fits loses nothing; one that does not is found where it wraps.
            severity=Severity.NOTE if "int" in one.wide else Severity.WARNING,
        )


def _scan_tells(facts: ScanFacts) -> bool:
    return any(finding.severity is not Severity.NOTE for finding in check(facts))


def _plain(facts: ScriptFacts, one: Asked) -> str:
    spelled = facts.spelled(f"jax.numpy.{NARROW[one.wide]}")
    return repr(one.got) if spelled is None else spelled


# --- what does not arrive -------------------------------------------------------------------------------------------


def _not_arrived(facts: ScanFacts, number: Arrived) -> Finding:
    path = number.path
    held = _held(facts, path)

    def off(call: ScanCall) -> float:
        return max((a.off for a in arrived(scan_facts(call)) if a.path == path), default=0.0)

    return Finding(
        message=fill(
            NOT_ARRIVED,
            where=element(path, number.index),
            given=number.given,
            host=number.host,
            got=number.got,
            held=number.held,
        ),
        place=_place_of(facts, path),
        expected=(_as(held, number.host),),
        got=(held,),
        measure=Measure(fill(CLAIM_ARRIVED, path=path), off),
        path=path,
    )


def _flat(facts: ScanFacts, flat: Any) -> Finding:
    path = flat.path
    held = _held(facts, path)

    def off(call: ScanCall) -> float:
        return max((f.off for f in flattened(scan_facts(call)) if f.path == path), default=0.0)

    fields = {name: show(getattr(flat, name)) for name in ("given", "got", "off")}
    return Finding(
        message=fill(FLAT, path=path, host=flat.host, held=flat.held, one=flat.one, two=flat.two, **fields),
        place=_place_of(facts, path),
        expected=(_as(held, flat.host),),
        got=(held,),
        measure=Measure(CLAIM_FLAT, off),
        path=path,
    )


def _as(held: LeafType, dtype: str) -> LeafType:
    return LeafType(held.path, None if held.aval is None else Aval(held.aval.shape, dtype), held.kind)


# --- what is lost on the way ----------------------------------------------------------------------------------------


def _stalls(facts: ScanFacts, lost: Lost) -> Finding:
    held = _held(facts, lost.path)
    dtype = held.aval.dtype if held.aval is not None else ""
    asked = _asked(facts, lost.path) if dtype == "float32" else None
    where = element(lost.path, lost.index)
    numbers = {"stood": lost.stood, "stays": lost.stood + lost.made, "final": lost.final}

    def apart(call: ScanCall) -> float:
        again = next((o for o in scan_facts(call).once(lost_motion) if o.path == lost.path), None)
        return 0.0 if again is None else abs(again.wide_final - again.final)

    return Finding(
        message=fill(
            STALLS if asked is None else ASKED,
            where=where,
            t=_t(facts, lost.position),
            held=dtype,
            wanted=show(lost.wanted),
            exact=f"{lost.wide_final:.12g}",
            steps=lost.steps,
            total=facts.length,
            **{name: show_as(value, dtype) for name, value in numbers.items()},
        ),
        place=_place_of(facts, lost.path),
        because=None if asked in (None, lost.path) else Because(_place_of(facts, asked), fill(BECAUSE, host="float64")),
        expected=() if asked is None else (_as(held, "float64"),),
        got=(held,),
        repairs=_narrow(lost.path, dtype),
        measure=Measure(fill(CLAIM_LOST, where=where), apart),
        path=lost.path,
    )


def _asked(facts: ScanFacts, path: str) -> str | None:
    """The leaf that was explicitly given as float64 by the host: init's own, else one of xs; None when none was."""
    given = zip(facts.init_types, tree_util.tree_leaves(facts.call.init), strict=True)
    if any(t.path == path and is_host_float64(leaf) for t, leaf in given):
        return path
    leaves = zip(facts.xs_types, tree_util.tree_leaves(facts.call.xs), strict=True)
    return next((t.path for t, leaf in leaves if is_host_float64(leaf)), None)


def _place_of(facts: ScanFacts, path: str) -> Any:
    """Where a leaf of init or of xs got its numbers."""
    if path.startswith("carry"):
        return facts.places.find(f"init_dtype:{path}", f"init:{path}", "scan")
    return facts.places.find(f"xs_bound:{path}", f"xs_dtype:{path}", f"xs:{path}", "scan")


def _wraps(facts: ScanFacts, number: Wrapped) -> Finding:
    path = number.path
    signed = not number.dtype.startswith("uint") and not number.hashed

    def count(call: ScanCall) -> float:
        return float(sum(w.count for w in scan_facts(call).once(wrapped) if w.path == path))

    return Finding(
        message=fill(
            WRAPS if number.outside else ON_THE_WAY,
            where=element(path, number.index),
            t=_t(facts, number.position),
            exact=number.exact,
            held=number.dtype,
            got=number.got,
        ),
        place=facts.places.find(*_wrap_roles(path)),
        got=(_held(facts, path),),
        repairs=_narrow(path, number.dtype),
        measure=Measure(fill(CLAIM_WRAPS, path=path), count) if signed else None,
        severity=Severity.WARNING if signed else Severity.NOTE,
        path=path,
    )


def _wrap_roles(path: str) -> tuple[str, ...]:
    if path.startswith("carry"):
        return (f"init_dtype:{path}", f"init:{path}", "scan")
    return ("return", "step", "scan")


def _into(facts: ScanFacts, cut: Cut) -> Finding:
    carry = cut.path.startswith("carry")
    wider = "float32" if not is_int(cut.wide) else cut.wide

    def off(call: ScanCall) -> float:
        return max((c.off for c in scan_facts(call).once(cuts) if c.path == cut.path), default=0.0)

    return Finding(
        message=fill(
            INTO,
            wide=cut.wide,
            narrow=cut.narrow,
            where=element(cut.path, cut.index) if carry else BUFFER,
            t=_t(facts, cut.position),
            exact=show(cut.exact),
            got=show(cut.got),
        ),
        place=facts.places.find(f"init_dtype:{cut.path}", f"init:{cut.path}", "step", "scan")
        if carry
        else facts.places.find("step", "scan"),
        repairs=(repairs.init_dtype(cut.path, wider),) if carry else (),
        measure=Measure(CLAIM_INTO, off),
        path=cut.path if carry else "",
    )


RULE = Rule(
    code="N504",
    name="precision-lost-silently",
    title="Precision is lost silently",
    severity=Severity.WARNING,
    jax=Jax.SILENT,
    stage=Stage.RUN,
    why=WHY,
    check=check,
    on=frozenset({"scan", "script"}),
    beats=frozenset({"N501"}),
)
