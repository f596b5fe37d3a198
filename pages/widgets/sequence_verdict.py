"""The Sequence page's verdict: what the layer took and gave, and what JAX and the formulas say of it."""

from __future__ import annotations

import html

import numpy as np
import streamlit as st

from core.base.outcome import Outcome, Report
from core.base.sequences import SequenceResult
from core.base.text import fill
from core.contract.trace import Raised
from core.inputs.sequence_page import SequenceLook
from core.runners.cell_formulas import KINDS
from pages.widgets.cards import rule_of
from pages.widgets.verdict import State, Verdict, counted, state_of

UNREADABLE = "An input cannot be read: what is shown belongs to the last inputs that could be."
NEVER = "An input cannot be read, so there is nothing to show yet."
SUMMARY = "{cell} over (B={batch}, T={length}, F={features}) → ys {ys}, final {parts} {final} · {checks}"
NO_ERROR = "JAX: no error"
OVER = "{limit} Nothing was run; the result below is that of the last inputs within the limits."
OVER_AT_ONCE = "{limit} Nothing was run, so there is nothing to show yet."
RAISED = "JAX raises {type}"
FINITE, NOT_FINITE = "all finite", "not finite"
AGREES, DIFFERS = "equals the NumPy formulas", "differs from the NumPy formulas"
TIMING = "{program} for T = {padded} · {ms} ms"
TIMING_HINT = "The layer itself, run and read back. The rules and the checks took {check} ms more."
COMPILED, CACHED = "compiled", "cached"
JAX, CONTRACT = "JAX", "Contract"
RETURNS = "no error: it returns ys {ys}"
SAYS = "{type}: {text}"
KEPT = "kept"
FOUND = "{code}, {title}"
SHOWN = 300


def sequence_verdict(look: SequenceLook, good: SequenceLook | None) -> Verdict:
    """The strip for one look; `good` is the last one that ran."""
    if look.report is None or look.trial is None:
        return Verdict(State.STALE, summary=fill(UNREADABLE if good else NEVER))
    summary = program = hint = ""
    if look.report.outcome is Outcome.LIMIT:
        limit = " ".join(violation.message for violation in look.report.broken)
        summary = fill(OVER if good else OVER_AT_ONCE, limit=limit)
    elif look.raised is not None:
        summary = fill(RAISED, type=look.raised.type)
    elif look.result is not None:
        summary = _went(look, look.result)
        program = fill(
            TIMING,
            program=fill(COMPILED if look.result.compiled else CACHED),
            padded=look.result.padded,
            ms=round(look.run_ms),
        )
        hint = fill(TIMING_HINT, check=round(look.check_ms))
    return Verdict(state_of(look.report), counted(look.report), summary, program, hint)


def _went(look: SequenceLook, result: SequenceResult) -> str:
    """What went in and what came out. Beside a broken contract nothing that sounds as if all were well."""
    trial, broken = look.trial, bool(look.report and look.report.broken)
    assert trial is not None  # noqa: S101  # there is no result without a trial
    finite = not not_finite(result)
    checks = [] if finite and broken else [fill(FINITE if finite else NOT_FINITE)]
    if broken:
        checks.append(fill(NO_ERROR))
    elif look.numpy is not None:
        checks.append(fill(AGREES if look.numpy.within else DIFFERS))
    return fill(
        SUMMARY,
        cell=trial.kind,
        batch=trial.batch,
        length=trial.length,
        features=trial.inputs.shape[2],
        ys=ys_shape(result, time_major=trial.time_major),
        parts=", ".join(KINDS[result.kind].parts),
        final=result.forward.final[0].shape,
        checks=" · ".join(checks),
    )


def ys_shape(result: SequenceResult, *, time_major: bool) -> tuple[int, ...]:
    """The shape of ys as the layer returns them."""
    first, second, width = result.outputs.shape
    return (first, second, width) if time_major else (second, first, width)


def not_finite(result: SequenceResult) -> bool:
    """Whether a NaN or an infinity stands anywhere in carries or outputs."""
    arrays = [result.outputs, *(carry for d in result.directions for carry in d.carries)]
    return not all(bool(np.isfinite(a.astype(np.float32)).all()) for a in arrays)


def says(report: Report, raised: Raised | None, look: SequenceLook) -> None:
    """Two lines: what JAX does with this, and what the contract says of it."""
    if raised is not None:
        jax, tone = fill(SAYS, type=raised.type, text=_short(raised.text)), "cl-no"
    elif look.result is not None and look.trial is not None:
        jax, tone = fill(RETURNS, ys=ys_shape(look.result, time_major=look.trial.time_major)), "cl-ok"
    else:
        return
    broken = report.broken
    contract = "; ".join(fill(FOUND, code=v.code, title=_title(v.code, v.name)) for v in broken)
    rows = ((fill(JAX), jax, tone), (fill(CONTRACT), contract or fill(KEPT), "cl-no" if broken else "cl-ok"))
    body = "".join(
        f'<tr><th scope="row" style="width: 6rem">{name}</th><td class="{css}" style="overflow-wrap: anywhere">{html.escape(text)}</td></tr>'
        for name, text, css in rows
    )
    st.html(f'<table class="cl-table cl-says"><tbody>{body}</tbody></table>')


def _title(code: str, name: str) -> str:
    rule = rule_of(code)
    return name if rule is None else rule.title


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
