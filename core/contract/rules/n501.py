"""A value that is not finite.

**What.** NaN or infinity appears in the carry or in ys. It may have come in with xs or with init, or it was born in the
step: a division by zero, the log of zero or less, ∞ − ∞, a number too large for its dtype.

**Why.** A scan feeds each carry to the next step, so one NaN poisons everything that follows, and JAX says nothing.

**Bad**

    def step(carry, x):
        return carry + jnp.log(x), carry        # x = 0: -inf from there on

**Good**

    def step(carry, x):
        return carry + jnp.log(jnp.where(x > 0, x, 1.0)), carry

Born in the step it is a warning, with the operation and the numbers that made it (the step's program is replayed there,
equation by equation). A note where it came in with xs, init or a constant, or where the step writes it down itself:
−∞ is a fine start of a running maximum; or where the step tests the growing number's size and ys stay finite (an escape
time). What came in and never reaches the carry or ys is no fault at all.

Source: IEEE 754; JAX documentation, "Debugging NaNs".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import tree_util

from core.base.avals import LeafType, path_name
from core.base.jaxprs import equations
from core.base.places import Place
from core.base.results import ScanResult, Series
from core.base.text import fill
from core.base.violation import Severity
from core.contract import sequence_values
from core.contract.carry import return_place
from core.contract.facts import CellFacts, ScanFacts, run_trial
from core.contract.precision import largest, ran
from core.contract.program import depends
from core.contract.replay import Birth, Given, not_finite, origins
from core.contract.rule import Finding, Jax, Measure, Rule, Stage
from core.contract.sequence_facts import SequenceFacts
from core.contract.subject import CellTrial, ScanCall
from core.contract.trace import StepTrace
from core.contract.weak import harms
from core.contract.wording import element, show
from core.runners.scan import run_call, to_device

BORN = "{where} becomes {value} at t = {t}. It is born in the step: {cause}, and all that went in was finite.{top}"
OF_INFINITY = "{where} becomes {value} at t = {t}. It is born in the step, of an infinity: {cause}."
ESCAPES = (
    "{where} becomes {value} at t = {t}: {cause}. The step itself tests how large it is, and nothing in ys is NaN or "
    "infinite."
)
OF_CONSTANT = "{where} is {value} at t = {t}: {cause}, whatever the carry and x are."
WRITTEN = "{where} is {value} at t = {t}: it is written so in the step."
UNKNOWN = "{where} becomes {value} at t = {t}, and all that went into that step was finite."
CAME = (
    "{source} is {value}, and from t = {t} on it is in {where}: {count} of the {total} numbers that come out of the scan "
    "are NaN or infinite."
)
CAUSE = "{operation}({numbers}) is {output}"
CAUSE_ALONE = "{operation} gives {output}"
TOP = " The largest {dtype} is {top}."
CELL_CAME = "{source} holds {value}, so {where} of the new carry and output is not finite."
CELL_BORN = "{where} becomes {value} in this step, and carry, input and parameters were finite."
CLAIM = "The scan was run and what came out was counted: this many numbers of the carry and of ys are NaN or infinite."
CLAIM_CELL = "The step was run and what came out was counted: this many numbers are NaN or infinite."
WHY = (
    "Each carry is fed to the next step: one value that is not finite poisons all that follow, and JAX raises nothing."
)
PARAMETERS = "a parameter of the cell"
CONSTANT = "a constant of the step"

#: Operations whose infinity means that a number grew too large for its dtype.
GROWS = frozenset("add sub mul exp exp2 expm1 pow integer_pow dot_general reduce_sum cumsum square sinh cosh".split())


@dataclass(frozen=True, slots=True, eq=False)
class _Spot:
    """The first element of one output that is not finite, and where that came from."""

    position: int
    leaf: LeafType
    index: tuple[int, ...]
    value: float
    origins: frozenset[Any]

    @property
    def where(self) -> str:
        """The element in words."""
        return element(self.leaf.path, self.index)


def check(facts: ScanFacts | CellFacts | SequenceFacts) -> Iterator[Finding]:
    """At most one finding: the first birth, else where the first one came in."""
    if isinstance(facts, SequenceFacts):
        yield from sequence_values.not_finite(facts)
        return
    yield from _scan(facts) if isinstance(facts, ScanFacts) else _cell(facts)


# --- a scan ---------------------------------------------------------------------------------------------------------


def _scan(facts: ScanFacts) -> Iterator[Finding]:
    result = ran(facts)
    if result is None or not isinstance(facts.trace, StepTrace):
        return
    positions = _positions(result)
    if not positions:
        return
    spots = [spot for p in positions for spot in _spots(facts, facts.trace, result, p)]
    claimed = facts.once(harms)  # a narrowed init that overflowed is S105's
    if any(spot.leaf.path in claimed for spot in spots):
        return
    births = [(spot, o) for spot in spots for o in spot.origins if isinstance(o, Birth)]
    living = next(((spot, birth) for spot, birth in births if birth.live), None)
    if living is not None and _escapes(facts.trace, result, living[0]):
        yield _note(facts, fill(ESCAPES, **_fields(result, living[0]), cause=_cause(living[1])), living[0])
        return
    if living is not None:
        yield _born(facts, result, *living)
        return
    spot = spots[0]
    given = next((o for o in spot.origins if isinstance(o, Given) and o.argument is not None), None)
    if given is not None and given.argument is not None:
        yield _came(facts, result, spot, given.argument)
    elif births:
        yield _note(facts, fill(OF_CONSTANT, **_fields(result, births[0][0]), cause=_cause(births[0][1])), spot)
    elif spot.origins:
        yield _note(facts, fill(WRITTEN, **_fields(result, spot)), spot)
    else:
        yield _warning(facts, fill(UNKNOWN, **_fields(result, spot)), spot)


#: Operations that make a magnitude, to be compared with a bound.
MAGNITUDE = frozenset("abs square integer_pow mul add sqrt".split())
BOUNDS = frozenset("lt le gt ge".split())


def _escapes(trace: StepTrace, result: ScanResult, spot: _Spot) -> bool:
    """Whether the step counts on this leaf growing without end: it compares its magnitude with a bound; ys stay finite.

    So does the escape time of z² + c.
    """
    paths = [s.path for s in result.carries]
    if spot.leaf.path not in paths or not result.ys_series or any(_wild(s).any() for s in result.ys_series):
        return False
    fed, _ = depends(trace.jaxpr, {paths.index(spot.leaf.path)})
    made = {v: e.primitive.name for e in equations(trace.jaxpr) for v in e.outvars}
    for eqn in (e for e in equations(trace.jaxpr) if e.primitive.name in BOUNDS and id(e) in fed):
        bound = [v for v in eqn.invars if hasattr(v, "val") and np.ndim(v.val) == 0 and v.val > 0]
        if bound and any(not hasattr(v, "val") and made.get(v) in MAGNITUDE for v in eqn.invars):
            return True
    return False


def _positions(result: ScanResult) -> list[int]:
    """Steps worth a replay: the first with anything not finite, the first with NaN, the first out of finite inputs."""
    out = [_any(result.carries, _wild, 1), _any(result.ys_series, _wild)]
    bad = np.logical_or(*out)
    nan = np.logical_or(_any(result.carries, _nan, 1), _any(result.ys_series, _nan))
    clean = ~np.logical_or(_any(result.carries, _wild, 0, -1), _any(result.xs, _wild))
    firsts = [int(np.argmax(marks)) for marks in (bad, nan, bad & clean) if marks.any()]
    return sorted(set(firsts))


def _any(series: tuple[Series, ...], test: Any, start: int = 0, stop: int | None = None) -> Any:
    """Per step, whether any number of any of these leaves passes the test."""
    marks = [test(s).reshape(len(s.values), -1).any(axis=1)[start:stop] for s in series]
    return np.logical_or.reduce(marks) if marks else np.zeros((), bool)


def _inexact(series: Series) -> bool:
    return bool(jnp.issubdtype(series.values.dtype, np.inexact))


def _wild(series: Series) -> np.ndarray[Any, Any]:
    return ~np.isfinite(series.values) if _inexact(series) else np.zeros(series.values.shape, bool)


def _nan(series: Series) -> np.ndarray[Any, Any]:
    return np.isnan(series.values) if _inexact(series) else np.zeros(series.values.shape, bool)


def _spots(facts: ScanFacts, trace: StepTrace, result: ScanResult, position: int) -> list[_Spot]:
    """The outputs of this step that are not finite, with their origins by a replay of the step's program."""
    likes = (*tree_util.tree_leaves(facts.call.init), *tree_util.tree_leaves(facts.call.xs))
    inputs = [s.values[position] for s in (*result.carries, *result.xs)]
    outputs = [s.values[position + 1] for s in result.carries] + [s.values[position] for s in result.ys_series]
    types = [s.type for s in (*result.carries, *result.ys_series)]
    try:
        found = origins(trace.jaxpr, [to_device(v, like) for v, like in zip(inputs, likes, strict=True)])
    except Exception:  # noqa: BLE001  # a program that cannot be replayed (an effect in it) is only not explained
        found = [frozenset()] * len(outputs)
    spots = []
    for leaf, value, where_from in zip(types, outputs, found, strict=True):
        bad = not_finite(value) if not str(leaf).startswith("key") else np.zeros((), bool)
        if bad.any():
            index = tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
            spots.append(_Spot(position, leaf, index, float(np.real(value[index])), where_from))
    return spots


def _fields(result: ScanResult, spot: _Spot) -> dict[str, object]:
    return {"where": spot.where, "value": show(spot.value), "t": result.order[spot.position]}


def _cause(birth: Birth) -> str:
    numbers = ", ".join(show(n) for n in birth.inputs)
    template = CAUSE if numbers else CAUSE_ALONE
    return fill(template, operation=birth.operation, numbers=numbers, output=show(birth.output))


def _born(facts: ScanFacts, result: ScanResult, spot: _Spot, birth: Birth) -> Finding:
    if birth.of_infinity:
        return _warning(facts, fill(OF_INFINITY, **_fields(result, spot), cause=_cause(birth)), spot)
    dtype = spot.leaf.aval.dtype if spot.leaf.aval is not None else ""
    grew = np.isinf(birth.output) and birth.operation in GROWS and dtype.startswith(("float", "bfloat"))
    top = fill(TOP, dtype=dtype, top=show(largest(dtype))) if grew else ""
    return _warning(facts, fill(BORN, **_fields(result, spot), cause=_cause(birth), top=top), spot)


def _warning(facts: ScanFacts, message: str, spot: _Spot) -> Finding:
    return Finding(
        message=message,
        place=return_place(facts, spot.leaf.path),
        got=(spot.leaf,),
        measure=Measure(CLAIM, _count),
        severity=Severity.WARNING,
        path=spot.leaf.path,
    )


def _note(facts: ScanFacts, message: str, spot: _Spot) -> Finding:
    return Finding(
        message=message,
        place=return_place(facts, spot.leaf.path),
        got=(spot.leaf,),
        severity=Severity.NOTE,
        path=spot.leaf.path,
    )


def _came(facts: ScanFacts, result: ScanResult, spot: _Spot, argument: int) -> Finding:
    """It came in with init or with xs (what stands in the carry of the first such step came with init)."""
    count = len(result.carries)
    from_init = argument < count
    series = result.carries[argument] if from_init else result.xs[argument - count]
    bad = _wild(series)[spot.position]
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
    value = series.values[(spot.position, *index)]
    leaf = facts.init_types[argument] if from_init else facts.xs_types[argument - count]
    path, place = leaf.path, _source_place(facts, leaf.path, from_init)
    at = index if from_init else (result.order[spot.position], *index)
    outputs = [s.values[1:] for s in result.carries] + [s.values for s in result.ys_series]
    total = sum(v.size for v in outputs)
    source = fill(INIT if from_init else XS, leaf=element(path, at))
    return Finding(
        message=fill(
            CAME,
            source=source,
            value=show(np.real(value)),
            t=result.order[spot.position],
            where=spot.where,
            count=int(_count_in(result)),
            total=total,
        ),
        place=place,
        got=(leaf,),
        severity=Severity.NOTE,
        path=path,
    )


INIT = "init's {leaf}"
XS = "{leaf}"


def _source_place(facts: ScanFacts, path: str, from_init: bool) -> Place | None:
    roles = (f"init:{path}",) if from_init else (f"xs_bound:{path}", f"xs:{path}")
    return facts.places.find(*roles, "scan")


def _count(call: ScanCall) -> float:
    return _count_in(run_call(call))


def _count_in(result: ScanResult) -> float:
    carries = sum(int(_wild(s)[1:].sum()) for s in result.carries)
    return float(carries + sum(int(_wild(s).sum()) for s in result.ys_series))


# --- a cell ---------------------------------------------------------------------------------------------------------


def _cell(facts: CellFacts) -> Iterator[Finding]:
    event = facts.cells.steps[-1] if facts.cells.steps else None
    if event is None or event.error is not None:
        return
    after = _first_wild(event.result[0], "carry") or _first_wild(event.result[1], "output")
    if after is None:
        return
    where, value = after
    given = (
        ("carry", "carry", _first_wild(event.carry, "carry")),
        ("input", "input", _first_wild(event.inputs, "input")),
        ("cell", PARAMETERS, _first_wild(nnx.state(event.cell), "")),
    )
    for role, name, wild in given:
        if wild is not None:
            source = wild[0] if role != "cell" else name
            yield Finding(
                message=fill(CELL_CAME, source=source, value=wild[1], where=where),
                place=facts.places.find(role, "cell"),
                severity=Severity.NOTE,
            )
            return
    yield Finding(
        message=fill(CELL_BORN, where=where, value=value),
        place=facts.places.find("input", "cell"),
        measure=Measure(CLAIM_CELL, _count_cell),
        severity=Severity.WARNING,
    )


def _count_cell(trial: CellTrial) -> float:
    leaves = tree_util.tree_leaves(run_trial(trial).steps[-1].result)
    return float(sum(int((~np.isfinite(np.asarray(leaf))).sum()) for leaf in leaves))


def _first_wild(tree: Any, root: str) -> tuple[str, str] | None:
    """The first element that is not finite, and its value; None when all are finite."""
    for path, leaf in tree_util.tree_flatten_with_path(tree)[0]:
        if not hasattr(leaf, "dtype") or not jnp.issubdtype(leaf.dtype, np.inexact):
            continue
        array = np.asarray(leaf)
        bad = ~np.isfinite(array)
        if bad.any():
            index = tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
            return element(path_name(root, path), index), show(array[index])
    return None


RULE = Rule(
    code="N501",
    name="value-not-finite",
    title="A value that is not finite",
    severity=Severity.WARNING,
    jax=Jax.SILENT,
    stage=Stage.RUN,
    why=WHY,
    check=check,
    on=frozenset({"scan", "cell", "sequence"}),
)
