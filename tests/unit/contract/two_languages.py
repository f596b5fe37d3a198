"""A script checked by the Doctor as plain Python and in the step language: both must say the same."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import jax

from core.base.outcome import Outcome
from core.base.violation import Severity, Violation
from core.doctor.check import Checkup, check_script
from core.doctor.instrument import trusted
from core.doctor.sandboxed import sandboxed

HEAD = """from functools import partial
import jax, jax.numpy as jnp
import numpy as np
from jax import lax
"""
#: Lines of HEAD: a script of a test begins below them.
ABOVE = HEAD.count("\n")


def checked(text: str, *, fixes: bool = True, both: bool = True) -> Checkup:
    """The checkup under Python, after making sure that the step language finds the same (unless not `both`)."""
    here = check_script(HEAD + text, prepare=trusted, fixes=fixes)
    there = check_script(HEAD + text, prepare=sandboxed, fixes=False) if both else here
    for one in (here, there):
        assert one.run is not None
        assert not one.run.problems, one.run.problems
    assert said(here) == said(there)
    return here


def said(checkup: Checkup) -> list[tuple[str, str, str]]:
    """Code, place and message of everything that was found, in order of the places."""
    return sorted((v.code, str(v.place), v.message) for v in checkup.report.violations)


def only(text: str, code: str) -> tuple[Violation, list[str]]:
    """The one violation of this code, with its verified fixed scripts; nothing else is more than a note."""
    checkup = checked(text)
    mine = [i for i, v in enumerate(checkup.report.violations) if v.code == code]
    assert len(mine) == 1, (checkup.report, checkup.run and checkup.run.problems)
    others = [v for v in checkup.report.violations if v.code != code and v.severity is not Severity.NOTE]
    assert not others, others
    return checkup.report.violations[mine[0]], checkup.sources[mine[0]]


def silent(text: str, code: str, *, both: bool = True) -> Checkup:
    """The checkup of a script in which nothing of this code is found, and nothing that is more than a note."""
    checkup = checked(text, fixes=False, both=both)
    assert checkup.report.outcome is Outcome.OK, checkup.report
    assert code not in {v.code for v in checkup.report.violations}
    return checkup


def line_of(violation: Violation) -> int:
    """The line in the test's own script, from 1."""
    return int(violation.place.line) - ABOVE  # type: ignore[union-attr]


def names(source: str) -> dict[str, Any]:
    """What a script leaves behind when plain Python runs it."""
    out: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(source, out)
    jax.effects_barrier()
    return out
