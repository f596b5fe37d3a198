"""What the tests of rules on whole scripts share: a check, what it says of one code, and a fixed script that is run."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import jax

from core.base.places import Span
from core.base.violation import Severity, Violation
from core.doctor.check import Checkup, check_script
from core.doctor.instrument import Prepare, trusted
from core.doctor.sandboxed import sandboxed

HEAD = "import jax, jax.numpy as jnp\n"
NNX = HEAD + "from flax import nnx\n"
LANGUAGES: tuple[Prepare, ...] = (trusted, sandboxed)


def found(text: str, code: str, *, prepare: Prepare = trusted, fixes: bool = False) -> tuple[list[Violation], Checkup]:
    """What is said under this code. No other error or warning may be there, and no rule of ours may have failed."""
    checkup = check_script(text, prepare=prepare, fixes=fixes)
    assert checkup.run is not None, checkup.unread
    assert not checkup.run.problems
    others = [(v.code, v.message) for v in checkup.report.violations if v.code != code and v.severity.breaks]
    assert not others
    return [v for v in checkup.report.violations if v.code == code], checkup


def only(text: str, code: str, *, prepare: Prepare = trusted, fixes: bool = False) -> tuple[Violation, Checkup]:
    """The one thing that is said under this code."""
    violations, checkup = found(text, code, prepare=prepare, fixes=fixes)
    assert len(violations) == 1, [v.message for v in violations]
    return violations[0], checkup


def code_at(text: str, violation: Violation) -> str:
    """The code at a finding's place."""
    place = violation.place
    assert isinstance(place, Span)
    assert place.line == place.end_line
    return text.split("\n")[place.line - 1][place.col : place.end_col]


def silent(text: str, code: str) -> None:
    """Nothing of this code is an error or a warning, and no rule of ours failed."""
    violations, checkup = found(text, code)
    assert not [v.message for v in violations if v.severity is not Severity.NOTE]
    assert checkup.report.error is None


def fixed(text: str, code: str) -> tuple[str, Violation]:
    """The first fixed script; its fault is gone, and so says the proof where it is silent."""
    violation, checkup = only(text, code, fixes=True)
    number = list(checkup.report.violations).index(violation)
    assert checkup.sources[number], "no fix was verified"
    if violation.silent:
        assert violation.proof is not None
        assert violation.proof.before != violation.proof.expected
        assert violation.proof.after == violation.proof.expected
    return checkup.sources[number][0], violation


def ran(text: str) -> dict[str, Any]:
    """The global names that a script leaves, run as plain Python."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(text, names)
    jax.block_until_ready([v for v in names.values() if isinstance(v, jax.Array)])
    return names
