"""The Gradients page's strip: whether the derivatives hold when they are worked out otherwise."""

from __future__ import annotations

from core.base.text import fill
from core.inputs.gradient_measure import power_text
from core.inputs.gradient_page import GradientLook
from core.inputs.gradient_scan import ScanView
from core.plots.gradient_bars import NUMBER
from core.plots.player_values import short_number
from pages.widgets.gradient_cells import agree, tolerance_text
from pages.widgets.gradient_scan import scan_check_of
from pages.widgets.gradient_state import Shown, checks_of
from pages.widgets.verdict import State, Verdict, counted, state_of

UNREADABLE = "An input cannot be used. What is shown belongs to the last inputs that could be."
NEVER = "An input cannot be used, so there is nothing to show yet."
OVER = "{limit} What is shown belongs to the last inputs within the limits."
OVER_AT_ONCE = "{limit} Nothing was run, so there is nothing to show yet."
TIMING = "{program} · {ms} ms"
RAISED = "JAX raises {type}"
RAISED_STALE = "JAX raises {type}. What is shown below is the last update that ran."
SUM, WILD = "{number} = {value}", "{count} numbers of the gradient are not finite"
NO_ERROR = "JAX: no error"
EQUAL, NOT_EQUAL = "the gradient equals finite differences", "the gradient differs from finite differences"
LOSSES = "{mode}: loss {before} → {after}"
FINITE, NOT_FINITE = "every gradient finite", "not finite"
COMPILED, CACHED = "compiled", "cached"
AGREE, DISAGREE = "Gradients agree", "Gradients disagree"
WAITING = "Comparing"
MAPS = "{length} × {length} derivatives a cell"
BOTH = "{maps} · {compared}"
COMPARED = "equal to jax.grad and to finite differences, {tolerance}"
OTHERWISE = "not equal to jax.grad or to finite differences, {tolerance}: see below"
ROUNDED = "equal to jax.grad and to finite differences; the states themselves are further from NumPy's than {tolerance}: see below"


def verdict_of(now: Shown) -> Verdict:
    """The strip for one run of the page."""
    look = now.look
    if look.problems:
        return _refused(now)
    if look.cells is not None:
        return _cells(now, look)
    if look.raised is not None:
        summary = fill(RAISED_STALE if now.good else RAISED, type=look.raised.type)
        return Verdict(state_of(look.report), counted(look.report), summary)
    if look.scan is not None:
        return _scan(now, look, look.scan)
    return _training(now, look) if look.training is not None else Verdict(State.UNCHECKED)


def _scan(now: Shown, look: GradientLook, view: ScanView) -> Verdict:
    """Of a scan the contract, and what finite differences say."""
    gradient, check = view.gradient, scan_check_of(view)
    program = _timing(now, compiled=gradient.compiled)
    parts = [fill(SUM, number=NUMBER[gradient.target], value=short_number(gradient.value))]
    if gradient.wild:
        parts.append(fill(WILD, count=gradient.wild))
    broken = look.report is not None and bool(look.report.broken)
    if broken:
        parts.append(fill(NO_ERROR))
    elif check is not None:
        parts.append(fill(EQUAL if check.difference.within else NOT_EQUAL))
    summary = " · ".join(parts)
    if broken or check is None or gradient.wild:
        return Verdict(state_of(look.report), counted(look.report), summary, program)
    good = check.difference.within
    return Verdict(State.KEPT if good else State.BROKEN, "", summary, program, words=fill(AGREE if good else DISAGREE))


def _training(now: Shown, look: GradientLook) -> Verdict:
    view = look.training
    if view is None:
        return Verdict(State.UNCHECKED)
    step = view.step
    losses = fill(LOSSES, before=power_text(step.loss_before, 3), after=power_text(step.loss_after, 3), mode=step.mode)
    parts = [losses, fill(FINITE if step.finite else NOT_FINITE)]
    program = _timing(now, compiled=step.compiled)
    return Verdict(state_of(look.report), counted(look.report), " · ".join(parts), program)


def _timing(now: Shown, *, compiled: bool) -> str:
    return fill(TIMING, program=fill(COMPILED if compiled else CACHED), ms=f"{now.ms:.0f}")


def _refused(now: Shown) -> Verdict:
    limits = " ".join(problem.text for problem in now.look.problems if problem.limit)
    if limits:
        return Verdict(State.LIMIT, summary=fill(OVER if now.good else OVER_AT_ONCE, limit=limits))
    return Verdict(State.STALE if now.good else State.UNCHECKED, summary=fill(UNREADABLE if now.good else NEVER))


def _cells(now: Shown, look: GradientLook) -> Verdict:
    result = look.cells
    if result is None:
        return Verdict(State.UNCHECKED)
    program = _timing(now, compiled=result.compiled)
    maps = fill(MAPS, length=result.length)
    checks = checks_of(result)
    if checks is None:
        return Verdict(State.RUNNING, summary=maps, program=program, words=fill(WAITING))
    good = agree(checks)
    # The derivatives may agree where the states they are taken along do not: say which it is.
    states = not good and all(one.grad.within and one.finite.within for one in checks)
    said = COMPARED if good else ROUNDED if states else OTHERWISE
    compared = fill(said, tolerance=tolerance_text(checks[0].trajectory if states else checks[0].grad))
    summary = fill(BOTH, maps=maps, compared=compared)
    return Verdict(State.KEPT if good else State.BROKEN, "", summary, program, words=fill(AGREE if good else DISAGREE))
