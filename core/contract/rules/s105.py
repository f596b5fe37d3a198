"""A weak init changes its dtype.

**What.** Init is a Python number, or an array made of one (`jnp.array(0)`): JAX calls its type weak, and `lax.scan`
lets the step decide. `0` with float32 xs is scanned as float32, which is harmless. `0` with int8 xs is scanned as int8
and wraps at 127, `0.0` with bfloat16 xs stops counting at 256, and both are silent. A leaf that is fed from another
weak leaf raises: promotion happens once, and that leaf would have needed it a pass later.

**Why.** Init sets the contract only when its type is strong. A weak init leaves it to xs, and the carry is then no
wider than one element of xs, though it holds a total of all of them.

**Bad**

    jax.lax.scan(lambda total, x: (total + x, total), 0, jnp.array([100, 100, 100], jnp.int8))   # 44

**Good**

    jax.lax.scan(lambda total, x: (total + x, total), jnp.int32(0), jnp.array([100, 100, 100], jnp.int8))   # 300

Severity: a note where only the name of the dtype changes; a warning where the narrow dtype did harm to the learner's
own numbers, which is found by running each step in 64 bits beside it; an error where JAX raises.

Source: jax.lax.scan (`_promote_weak_typed_input`); JAX documentation, "Type promotion semantics", weak types.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jax import tree_util

from core.base.avals import LeafType
from core.base.places import Because, Place
from core.base.text import fill
from core.base.violation import Severity
from core.contract import repairs
from core.contract.carry import carry_pairs, named, return_place
from core.contract.facts import ScanFacts
from core.contract.precision import Lost, Wrapped
from core.contract.repairs_xs import init_dtypes
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.subject import ScanCall
from core.contract.trace import Raised
from core.contract.weak import Harm, Promotion, changed_value, harms, holds, promotions, runs, settled, with_dtypes
from core.contract.wording import element, show, show_as
from core.runners.scan import run_call

NOTE = "{path} starts as a weak {before} and is scanned as {after}: the step decides, not init."
WRAPPED = "{path} starts as a weak {before}, takes {after} from the step and wraps at t = {t}: {exact} becomes {got}."
STALLS = (
    "{path} starts as a weak {before}, takes {after} from the step and stops counting at t = {t}: {stood} + {wanted} "
    "stays {stays}, and it ends at {final} instead of {exact}."
)
OVERFLOWED = (
    "{path} starts as a weak {before}, takes {after} from the step and overflows at t = {t}: {exact} becomes {got}."
)
CHANGED = (
    "{path} starts from {value} and takes {after} from the step, which has no {value}: the scan starts from {got}."
)
LATE = (
    "{path} starts as a weak {expected} and comes out as {got}: lax.scan promotes weak leaves of init once, and this "
    "one needed it a pass later, after the leaf it is fed from."
)
RAISES = "{path} starts as a weak {expected} and comes out as {got}: promoting init does not make the two equal."
BECAUSE = "the step returns {after} here, and a weak init gives way"
BECAUSE_INIT = "init is {given} here, weakly typed"
CLAIM = "The scan was run again from {path} as strong {wide}; this is the largest difference between the two carries."
CLAIM_START = "Init was compared with what the scan starts from; this is the largest difference in {path}."
WHY = (
    "A weak init leaves its dtype to the step: the carry is then no wider than one element of xs. A strong one decides."
)


def check(facts: ScanFacts) -> Iterator[Finding]:
    """A finding for each weak leaf of init whose dtype name changes."""
    if facts.jax is not None:
        yield from _raised(facts)
        return
    found = facts.once(harms)
    for promotion in facts.once(promotions):
        harm, change = found.get(promotion.path), changed_value(promotion)
        if harm is not None:
            yield _warning(facts, promotion, _harmed(facts, promotion, harm), _measure(promotion))
        elif change is not None:
            value, got = change
            text = fill(CHANGED, path=named(facts, promotion.path), value=value, after=promotion.after.dtype, got=got)
            yield _warning(facts, promotion, text, _measure_start(promotion))
        else:
            yield _note(facts, promotion)


# --- silent ---------------------------------------------------------------------------------------------------------


def _place(facts: ScanFacts, path: str) -> Place | None:
    return facts.places.find(f"init_dtype:{path}", f"init:{path}", "scan")


def _because(facts: ScanFacts, promotion: Promotion) -> Because:
    return Because(return_place(facts, promotion.path), fill(BECAUSE, after=promotion.after))


def _note(facts: ScanFacts, promotion: Promotion) -> Finding:
    strong = promotion.wide if promotion.narrower else promotion.after.dtype
    return Finding(
        message=fill(NOTE, path=named(facts, promotion.path), before=promotion.before, after=promotion.after),
        place=_place(facts, promotion.path),
        because=_because(facts, promotion),
        repairs=(repairs.init_dtype(promotion.path, strong),),
        severity=Severity.NOTE,
        path=promotion.path,
    )


def _warning(facts: ScanFacts, promotion: Promotion, message: str, measure: Measure) -> Finding:
    fits = holds(promotion.value, promotion.wide)  # a wider dtype that does not hold init either mends nothing
    return Finding(
        message=message,
        place=_place(facts, promotion.path),
        because=_because(facts, promotion),
        expected=(LeafType(promotion.path, promotion.before),),
        got=(LeafType(promotion.path, promotion.after),),
        repairs=(repairs.init_dtype(promotion.path, promotion.wide),) if fits else (),
        measure=measure,
        severity=Severity.WARNING,
        silent=True,
        path=promotion.path,
    )


def _harmed(facts: ScanFacts, promotion: Promotion, harm: Harm) -> str:
    fields = {
        "path": named(facts, element(promotion.path, harm.index)),
        "before": promotion.before.dtype,
        "after": promotion.after.dtype,
        "t": _t(facts, harm.position),
    }
    if isinstance(harm, Lost):
        dtype = promotion.after.dtype
        numbers = {"stood": harm.stood, "stays": harm.stood + harm.made, "final": harm.final}
        exact = {"wanted": show(harm.wanted), "exact": show(harm.wide_final)}
        return fill(STALLS, **fields, **{k: show_as(v, dtype) for k, v in numbers.items()}, **exact)
    template = WRAPPED if isinstance(harm, Wrapped) else OVERFLOWED
    return fill(template, **fields, exact=show(harm.exact), got=show(harm.got))


def _t(facts: ScanFacts, position: int) -> int:
    """The t that was visited at this position."""
    return position if isinstance(facts.run, Raised) else facts.run.order[position]


def _measure(promotion: Promotion) -> Measure:
    wide = promotion.wide

    def apart(call: ScanCall) -> float:
        other = run_call(with_dtypes(call, {promotion.path: wide}))
        here = run_call(call)
        pairs = zip(here.carries, other.carries, strict=True)
        one, two = next((a, b) for a, b in pairs if a.path == promotion.path)
        return float(np.abs(one.values.astype(np.float64) - two.values.astype(np.float64)).max())

    return Measure(fill(CLAIM, path=promotion.path, wide=wide), apart)


def _measure_start(promotion: Promotion) -> Measure:
    given = np.asarray(promotion.value).astype(np.float64)

    def off(call: ScanCall) -> float:
        series = next(s for s in run_call(call).carries if s.path == promotion.path)
        return float(np.abs(series.values[0].astype(np.float64) - given).max())

    return Measure(fill(CLAIM_START, path=promotion.path), off)


# --- raised ---------------------------------------------------------------------------------------------------------


def _raised(facts: ScanFacts) -> Iterator[Finding]:
    """The weak leaves that come out as another dtype even after the one promotion."""
    weak = [
        (given, held, back)
        for given, held, back in carry_pairs(facts)
        if given.aval and held.aval and back.aval and given.aval.weak and held.aval.dtype != back.aval.dtype
    ]
    if not weak:
        return
    dtypes = settled(facts.call)
    for given, held, back in weak:
        late = dtypes is not None and given.path in dtypes
        yield Finding(
            message=fill(LATE if late else RAISES, path=named(facts, given.path), expected=held, got=back),
            place=_place(facts, given.path),
            because=Because(return_place(facts, given.path), fill(BECAUSE, after=back)),
            expected=(held,),
            got=(back,),
            repairs=tuple(_mends(facts, given, held, back, dtypes if late else None)),
            severity=Severity.ERROR,
            silent=False,
            path=given.path,
        )


def _mends(
    facts: ScanFacts, given: LeafType, held: LeafType, back: LeafType, dtypes: dict[str, str] | None
) -> Iterator[Repair]:
    """The one leaf where that is enough, else all that need it; the step's cast where no dtype of init settles it."""
    yield from repairs.right_step(facts.call)
    if dtypes is not None:
        one = {given.path: dtypes[given.path]}
        if runs(with_dtypes(facts.call, one)):
            yield repairs.init_dtype(given.path, dtypes[given.path])
        elif len(dtypes) > 1:
            yield init_dtypes(dtypes)
        return
    if back.aval is not None and held.aval is not None:
        leaves = tree_util.tree_leaves(facts.call.init)
        value = leaves[[t.path for t in facts.init_types].index(given.path)]
        if "key" not in back.aval.dtype and holds(value, back.aval.dtype):
            yield repairs.init_dtype(given.path, back.aval.dtype)
        yield repairs.step_cast(given.path, held.aval.dtype)


RULE = Rule(
    code="S105",
    name="weak-init-changes-dtype",
    title="A weak init changes its dtype",
    severity=Severity.NOTE,
    jax=Jax.BOTH,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    beats=frozenset({"S104"}),
)
