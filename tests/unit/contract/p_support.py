"""What the tests of the P rules share: a script checked in both languages, the code at a place, a fixed script run."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import jax
import pytest

from core.base.places import Span
from core.base.violation import Severity, Violation
from core.doctor.check import Checkup, check_script
from core.doctor.instrument import trusted
from core.doctor.sandboxed import sandboxed

HEAD = "import jax, jax.numpy as jnp\nimport numpy as np\nfrom functools import partial\nfrom jax import lax\n"
BOTH = pytest.mark.parametrize("prepare", [trusted, sandboxed], ids=["python", "sandbox"])


def script(body: str) -> str:
    return HEAD + body.strip("\n") + "\n"


def check(body: str, prepare: Any = trusted, *, fixes: bool = False) -> Checkup:
    checkup = check_script(script(body), prepare=prepare, fixes=fixes)
    assert checkup.run is not None, checkup.unread
    assert not checkup.run.problems, checkup.run.problems
    return checkup


def code_at(checkup: Checkup, violation: Violation) -> str:
    """The code that a violation is about."""
    span = violation.place
    assert isinstance(span, Span)
    lines = checkup.given.script.split("\n")[span.line - 1 : span.end_line]
    lines[-1] = lines[-1][: span.end_col]
    lines[0] = lines[0][span.col :]
    return "\n".join(lines)


def broken(checkup: Checkup) -> list[tuple[str, str]]:
    """Code of the rule and code at the place, of each error and warning."""
    return [(v.code, code_at(checkup, v)) for v in checkup.report.violations if v.severity is not Severity.NOTE]


def names_of(source: str) -> dict[str, Any]:
    """What a script leaves when plain Python runs it; what it prints is `_out`."""
    names: dict[str, Any] = {"__name__": "__main__"}
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(source, "fixed", "exec"), names)
        jax.effects_barrier()
    return {**names, "_out": out.getvalue()}


def mended(body: str, code: str, test: str, prepare: Any = trusted, *, together: bool = False) -> list[str]:
    """Every fixed script for a rule after which nothing remains; each passes the test.

    With `together`, the one with all fixes applied does.
    """
    checkup = check(body, prepare, fixes=True)
    if together:
        assert checkup.together is not None, checkup.sources
        sources = [checkup.together.text]
    else:
        pairs = zip(checkup.report.violations, checkup.sources, strict=True)
        whole = [(f, s) for v, sources in pairs if v.code == code for f, s in zip(v.fixes, sources, strict=True)]
        sources = [source for fix, source in whole if not fix.remaining]
    assert sources, (broken(checkup), checkup.report.error)
    for source in sources:
        exec(test, names_of(source))
    return sources


def silent(body: str, prepare: Any) -> None:
    """Neither error nor warning, and no exception that is not the script's own wish."""
    checkup = check(body, prepare)
    assert not broken(checkup), [v.message for v in checkup.report.violations]
    assert checkup.report.error is None, checkup.report.error
