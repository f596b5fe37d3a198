"""What the tests of the rules about cells in whole scripts share: a script is checked in both languages, one code speaks."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass
from typing import Any

import jax

from core.base.places import Span
from core.base.violation import Severity, Violation
from core.doctor.check import Checkup, Terms, check_script, examine
from core.doctor.instrument import Prepare, trusted
from core.doctor.sandboxed import sandboxed

HEAD = """\
import jax, jax.numpy as jnp
from jax import lax
from functools import partial
from flax import nnx
"""
WARNING, ERROR, NOTE = Severity.WARNING, Severity.ERROR, Severity.NOTE


@dataclass(frozen=True)
class Case:
    """A faulty script: what must be said of it, where, and whether a fix must hold.

    `at` is the text of the place, `severity` as in `Violation`; `check` are assertions that the fixed script passes.
    """

    text: str
    at: str
    severity: Severity
    fixed: bool = True
    check: str = ""


def look(text: str, prepare: Prepare = trusted, **options: Any) -> Checkup:
    """A check in which none of our rules failed."""
    checkup = check_script(text, prepare=prepare, **options)
    assert checkup.run is not None, checkup.unread
    assert not checkup.run.problems
    return checkup


def place_text(text: str, violation: Violation) -> str:
    """The code at a violation's place (its first line)."""
    assert isinstance(violation.place, Span)
    line = text.split("\n")[violation.place.line - 1]
    end = violation.place.end_col if violation.place.end_line == violation.place.line else len(line)
    return line[violation.place.col : end]


def told(case: Case, code: str) -> Violation:
    """The first thing said of a faulty script; checks all that a case promises, in both languages."""
    plain, walled = look(case.text), look(case.text, sandboxed, fixes=False)
    said = [(v.code, v.severity, v.message, v.place) for v in plain.report.violations]
    assert said == [(v.code, v.severity, v.message, v.place) for v in walled.report.violations]
    assert plain.report.error is None, plain.report.error
    assert {v.code for v in plain.report.broken} <= {code}, said
    index, violation = next((i, v) for i, v in enumerate(plain.report.violations) if v.code == code)
    assert violation.severity is case.severity, said
    assert place_text(case.text, violation) == case.at
    assert violation.silent is (case.severity is not ERROR)
    if case.severity is WARNING:
        assert violation.proof is not None
        assert violation.proof.before != violation.proof.expected
        if violation.fixes:
            assert violation.proof.after == violation.proof.expected
    assert bool(violation.fixes) is case.fixed, violation.fixes
    if case.fixed:
        source = plain.sources[index][0]
        assert source != case.text
        assert passes(source, case.check), source
    return violation


def passes(source: str, check: str) -> bool:
    """Whether plain Python runs a script, and assertions about what it leaves, to the end."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(source, names)
        exec(check, names)
        jax.effects_barrier()
    return True


def quiet(text: str, code: str) -> None:
    """Nothing is broken in a script, and this code has not even a note; without values neither."""
    for prepare in (trusted, sandboxed):
        checkup = look(text, prepare, fixes=False)
        assert checkup.report.error is None, checkup.report.error
        assert not checkup.report.broken, checkup.report.broken
        assert code not in checkup.report.codes, [v.message for v in checkup.report.violations if v.code == code]
    blind = examine(text, Terms(), abstract=True)
    assert blind.run is not None
    assert not blind.run.problems
    assert code not in [v.code for v in blind.report.broken]
