"""Thirty problems that people reported in public: the fault at its line, a fix that works, nothing on the right script.

The codes whose rules are not written yet are left out here; each comes in by itself when its rule does.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.base.outcome import Outcome
from core.contract.rule import all_rules
from core.doctor.check import check_script
from core.doctor.instrument import Prepare, trusted
from core.doctor.report import as_json
from core.doctor.sandboxed import sandboxed
from tests.unit.doctor.variants import VARIANTS, as_it_is, renamed

REPORTS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "public_reports.json").read_text(encoding="utf-8"))
KNOWN = {rule.code for rule in all_rules()}
#: nnx.RNN(reverse=True) is a case of S114 that its rule does not look at yet.
LATER = {"rnn-reverse-flips-outputs"}
COVERED = [r for r in REPORTS if KNOWN & set(r["expect"]["codes"]) and r["id"] not in LATER]
#: Raised, and a fix is mechanical: one of those shown must pass the report's own check.
MECHANICAL = {
    "lstm-bf16-carry-f32-cell",
    "reward-scalar-becomes-length-1",
    "aux-none-then-array",
    "xs-is-python-list-of-ints",
    "carry-without-batch-axis",
    "step-returns-one-array",
    "weak-int-init-takes-int8",
}

BY_REPORT = pytest.mark.parametrize("report", COVERED, ids=lambda r: r["id"])
BY_ALL = pytest.mark.parametrize("report", REPORTS, ids=lambda r: r["id"])
BY_VARIANT = pytest.mark.parametrize(("variant", "shift"), VARIANTS, ids=lambda v: getattr(v, "__name__", ""))
BY_LANGUAGE = pytest.mark.parametrize("prepare", [trusted, sandboxed], ids=["python", "sandbox"])


def passes(source: str, check: str) -> bool:
    """Whether a script's result passes a report's own assertions."""
    import jax

    names: dict[str, Any] = {"__name__": "__main__"}
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(source, names)
            jax.effects_barrier()
        exec(check, {**names, "_out": out.getvalue()})
    except Exception:
        return False
    finally:
        jax.config.update("jax_enable_x64", False)
    return True


@BY_VARIANT
@BY_REPORT
def test_the_fault_is_named_at_its_line(report: dict[str, Any], variant: Callable[[str], str], shift: int) -> None:
    found = as_json(check_script(variant(report["source"]), fixes=False))
    at = [(v["code"], v["line"]) for v in found["violations"]]
    wanted = [(code, report["expect"]["line"] + shift) for code in report["expect"]["codes"]]
    assert set(at) & set(wanted), f"{at}, {found['error']}"


@BY_ALL
@BY_VARIANT
def test_the_right_script_breaks_nothing(report: dict[str, Any], variant: Callable[[str], str], shift: int) -> None:
    checkup = check_script(variant(report["fixed_source"]), fixes=False)
    assert checkup.report.outcome is Outcome.OK, (checkup.report.error, checkup.report.broken)
    assert checkup.run is not None
    assert not checkup.run.problems


@BY_LANGUAGE
@BY_REPORT
def test_both_languages_say_the_same(report: dict[str, Any], prepare: Prepare) -> None:
    if prepare is trusted:
        assert passes(report["fixed_source"], report["check"]), "the report's own check fails on its own fix"
        return
    here, there = (as_json(check_script(report["source"], prepare=p, fixes=False)) for p in (trusted, sandboxed))
    assert here == there


@pytest.mark.parametrize("variant", [as_it_is, renamed], ids=["as_it_is", "renamed"])
@pytest.mark.parametrize("report", [r for r in COVERED if r["id"] in MECHANICAL], ids=lambda r: r["id"])
def test_a_verified_fix_passes_the_reports_check(report: dict[str, Any], variant: Callable[[str], str]) -> None:
    checkup = check_script(variant(report["source"]))
    fixed = [source for sources in checkup.sources for source in sources]
    assert fixed, "no fix was verified"
    check = report["check"]
    if variant is renamed:
        check = renamed(report["source"] + "\n" + check).split("\n")[-1]
    assert any(passes(source, check) for source in fixed), fixed


def test_every_mechanical_report_is_here() -> None:
    assert {r["id"] for r in REPORTS} >= MECHANICAL
    assert len(REPORTS) == 30
