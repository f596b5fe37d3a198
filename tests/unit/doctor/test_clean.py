"""A warning that is wrong costs trust: clean programs of many kinds, and each does what it does without us."""

from __future__ import annotations

import contextlib
import io

import jax
import pytest

from core.base.outcome import Outcome
from core.doctor.check import Terms, examine
from core.doctor.instrument import Prepare, trusted
from core.doctor.sandboxed import sandboxed
from tests.unit.doctor.clean import CLEAN
from tests.unit.doctor.clean_near import NEAR

PROGRAMS = CLEAN | NEAR
BY_NAME = pytest.mark.parametrize("name", PROGRAMS)


def printed(text: str) -> str:
    """What plain Python prints."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(text, "plain", "exec"), {"__name__": "__main__"})
            jax.effects_barrier()
    finally:
        jax.config.update("jax_enable_x64", False)
    return out.getvalue()


@BY_NAME
@pytest.mark.parametrize("prepare", [trusted, sandboxed], ids=["python", "sandbox"])
def test_nothing_is_found_and_nothing_is_changed(name: str, prepare: Prepare) -> None:
    checkup = examine(PROGRAMS[name], Terms(prepare))
    run = checkup.run
    assert run is not None
    assert checkup.report.outcome is Outcome.OK, (checkup.report.error, checkup.report.broken)
    assert not run.problems
    assert run.record.stdout == printed(PROGRAMS[name])
    checkup.close()


@BY_NAME
def test_without_values_nothing_is_found_either(name: str) -> None:
    checkup = examine(PROGRAMS[name], abstract=True)
    assert not checkup.report.broken, checkup.report.broken
    assert checkup.report.error is None, checkup.report.error
    assert checkup.run is not None
    assert not checkup.run.problems
