"""Thirty problems that people reported in public: the fault at its line, a fix that works, nothing on the right script.

Each is also told in other words (`VARIANTS`), in both languages, and through the worker's desk. A script is checked
once for all that is asserted of it.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from core.base.outcome import Outcome
from core.doctor import job
from core.doctor.answer import Answer, Request, Wish
from core.doctor.check import check_script
from core.doctor.instrument import trusted
from core.doctor.report import as_json
from core.doctor.sandboxed import sandboxed
from core.doctor.wire import from_wire
from core.sandbox import compile_cache
from tests.unit.doctor.sizes import SIZES
from tests.unit.doctor.variants import VARIANTS, Variant

REPORTS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "public_reports.json").read_text(encoding="utf-8"))
BY_ID = {report["id"]: report for report in REPORTS}
BY_NAME = {variant.name: variant for variant in VARIANTS}
#: The truth lies in what the person meant, so that no edit is the right one: at most a note is given.
WITHOUT_FIX = {"running-sum-over-wrong-axis", "constant-vector-rides-in-xs", "one-nan-poisons-the-rest"}
PREPARE = {"python": trusted, "sandbox": sandboxed}

EACH = pytest.mark.parametrize("name", BY_ID)
MECHANICAL = pytest.mark.parametrize("name", [name for name in BY_ID if name not in WITHOUT_FIX])
TOLD = pytest.mark.parametrize("variant", BY_NAME)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a checkup said: plain, so that what ran can be let go."""

    json: dict[str, Any]
    fixed: tuple[str, ...]
    problems: tuple[object, ...]

    @property
    def breaking(self) -> set[str]:
        """Codes of errors, warnings and limits."""
        return {v["code"] for v in self.json["violations"] if v["severity"] != "note"}


@functools.cache
def seen(name: str, variant: str, which: str = "source", language: str = "python", *, fixes: bool = False) -> Seen:
    checkup = check_script(BY_NAME[variant].source(BY_ID[name], which), prepare=PREPARE[language], fixes=fixes)
    run = checkup.run
    assert run is not None
    fixed = tuple(source for sources in checkup.sources for source in sources)
    told = Seen(as_json(checkup), fixed, tuple(run.problems))
    checkup.close()
    return told


def broken(name: str, variant: str) -> Seen:
    """The broken script with its fixes, where one is to be had."""
    return seen(name, variant, fixes=name not in WITHOUT_FIX)


class Printed(io.StringIO):
    """What a script printed, as a check asks for it while the script still runs."""

    def count(self, text: str) -> int:
        return self._now().count(text)

    def __contains__(self, text: str) -> bool:
        return text in self._now()

    def _now(self) -> str:
        import jax

        jax.effects_barrier()
        return self.getvalue()


def why_not(name: str, variant: Variant, fixed: str) -> str:
    """Why the result of a fixed script does not pass the report's own assertions; "" when it does."""
    import jax
    import jax.numpy as jnp
    from flax import nnx

    out = Printed()
    names: dict[str, Any] = {"__name__": "__main__", "_out": out, "jax": jax, "jnp": jnp, "nnx": nnx}
    try:
        with contextlib.redirect_stdout(out):
            exec(variant.with_check(BY_ID[name], fixed), names)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        jax.config.update("jax_enable_x64", False)
    return ""


def wanted(name: str, variant: Variant) -> set[tuple[str, int]]:
    expect = BY_ID[name]["expect"]
    return {(code, expect["line"] + variant.shift) for code in expect["codes"]}


@pytest.fixture(scope="module", autouse=True)
def _programs_are_compiled_once() -> Iterator[None]:
    """As in a worker: what one telling of a script compiled, the next finds. (A third of the time.)"""
    import jax
    from jax._src import compilation_cache

    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    names += ("jax_persistent_cache_min_entry_size_bytes",)
    before = {name: getattr(jax.config, name) for name in names}
    compile_cache.use(None)
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
    seen.cache_clear()


# --- the broken scripts ---------------------------------------------------------------------------------------------


@TOLD
@EACH
def test_the_fault_is_named_at_its_line_and_nothing_else(name: str, variant: str) -> None:
    said = broken(name, variant)
    at = {(v["code"], v["line"]) for v in said.json["violations"]}
    expected = wanted(name, BY_NAME[variant])
    assert not expected or at & expected, (at, said.json["error"])
    assert said.breaking <= set(BY_ID[name]["expect"]["codes"]), at
    assert said.json["error"] is None
    assert not said.problems


@TOLD
@MECHANICAL
def test_a_verified_fix_passes_the_reports_check(name: str, variant: str) -> None:
    fixed = broken(name, variant).fixed
    assert fixed, "no fix was verified"
    whys = [why_not(name, BY_NAME[variant], source) for source in fixed]
    assert "" in whys, (whys, fixed)


@TOLD
def test_enough_of_the_silent_ones_are_flagged(variant: str) -> None:
    """The issue's count: at least 12 of the 15 that JAX says nothing about."""
    silent = [r["id"] for r in REPORTS if r["silent"]]
    codes = {name: {v["code"] for v in broken(name, variant).json["violations"]} for name in silent}
    flagged = [name for name in silent if codes[name] & set(BY_ID[name]["expect"]["codes"])]
    assert len(silent) == 15
    assert len(flagged) >= 12


# --- the right ones -------------------------------------------------------------------------------------------------


@TOLD
@EACH
def test_the_right_script_breaks_nothing(name: str, variant: str) -> None:
    told = seen(name, variant, "fixed_source")
    assert told.json["outcome"] == str(Outcome.OK), told.json["error"] or told.json["violations"]
    assert not told.problems


@pytest.mark.parametrize("variant", ["as_it_is", "resized"])
@EACH
def test_the_checks_tell_right_from_wrong(name: str, variant: str) -> None:
    """The control: a report's assertions pass on its right script and fail on its broken one."""
    told = BY_NAME[variant]
    assert why_not(name, told, told.source(BY_ID[name], "fixed_source")) == ""
    assert why_not(name, told, told.source(BY_ID[name])) != ""


# --- the same everywhere --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["in_a_function", "in_a_method"])
@EACH
def test_both_languages_say_the_same(name: str, variant: str) -> None:
    assert verdict(broken(name, variant)) == verdict(seen(name, variant, language="sandbox"))
    here, there = (seen(name, variant, "fixed_source", language) for language in PREPARE)
    assert verdict(here) == verdict(there)


def verdict(told: Seen) -> dict[str, Any]:
    """All but the fixes."""
    return told.json | {"violations": [v | {"fixes": []} for v in told.json["violations"]]}


def test_our_own_frames_are_not_in_what_jax_said(tmp_path: Path) -> None:
    """In a process of its own, as plain Python: the step language hides them anyhow, once it was used."""
    path = tmp_path / "leak.py"
    path.write_text(BY_ID["global-key-split-inside-step"]["source"], encoding="utf-8")
    command = [sys.executable, "-m", "core.doctor", str(path), "--trust", "--format", "json"]
    out = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout
    (violation,) = json.loads(out)["violations"]
    assert "UnexpectedTracerError" in violation["jax_said"]
    assert "core" not in violation["jax_said"]


@pytest.fixture(scope="module")
def desk() -> Iterator[job.Desk]:
    kept = job.Desk()
    yield kept
    kept.close()


def ask(desk: job.Desk, wish: Wish, text: str) -> Answer:
    return from_wire(json.loads(json.dumps(desk.handle(Request(wish, text)), allow_nan=False)))


@EACH
def test_the_workers_desk_says_the_same(name: str, desk: job.Desk) -> None:
    report, plain = BY_ID[name], BY_NAME["as_it_is"]
    shown = ask(desk, Wish.CHECK, report["source"])
    fixed = ask(desk, Wish.FIXES, report["source"])
    said = broken(name, "as_it_is")
    for answer in (shown, fixed):
        at = [(v.code, str(v.severity), getattr(v.place, "line", None)) for v in answer.report.violations]
        assert at == [(v["code"], v["severity"], v["line"]) for v in said.json["violations"]]
    if name not in WITHOUT_FIX:
        assert tuple(source for sources in fixed.sources for source in sources) == said.fixed
    right = ask(desk, Wish.CHECK, plain.source(report, "fixed_source"))
    assert right.report.outcome is Outcome.OK


def test_every_rewrite_changes_every_script() -> None:
    assert len(REPORTS) == len(SIZES) == 30
    for variant in VARIANTS[1:]:
        for report in REPORTS:
            assert variant.source(report) != report["source"], (variant, report)
            assert variant.source(report, "fixed_source") != report["fixed_source"], (variant, report)
