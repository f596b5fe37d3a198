"""Ordinary programs run in the step language as they do in plain Python: same values, same output, same exception."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.escapes import ordinary_nets, ordinary_python, ordinary_scan
from tests.escapes.support import Ran, assert_same, job, run_here, run_plain

# A library that warns about what a script does names the guard's frame.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
HERE = Path(__file__).parent
ORDINARY = ordinary_scan.PROGRAMS | ordinary_nets.PROGRAMS | ordinary_python.PROGRAMS
REPORTS = {r["id"]: r for r in json.loads((HERE / "reports_source.json").read_text())}
GUIDES = {name: (HERE / f"{name}.py").read_text() for name in ("guide_scan", "guide_lstm")}


def assert_same_run(here: Ran, plain: Ran) -> None:
    assert not here.refusals, here.refusals
    assert type(here.error) is type(plain.error), (here.error, plain.error)
    assert here.text == plain.text
    for name, value in plain.names.items():
        assert name in here.names or name.startswith("__") or name == "annotations", name
        if name in here.names and not name.startswith("__"):
            assert_same(here.names[name], value, name)


@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_program_runs_unchanged(name: str) -> None:
    plain = run_plain(ORDINARY[name])
    assert plain.error is None, plain.error
    with job() as guards:
        here = run_here(ORDINARY[name], guards)
        if here.error is not None:
            raise here.error
        assert_same_run(here, plain)


def test_there_are_at_least_forty_and_all_differ() -> None:
    assert len(set(ORDINARY.values())) == len(ORDINARY) >= 40


@pytest.mark.parametrize("name", GUIDES)
def test_the_guides_run_unchanged(name: str) -> None:
    plain = run_plain(GUIDES[name])
    assert plain.error is None
    with job() as guards:
        assert_same_run(run_here(GUIDES[name], guards), plain)


@pytest.mark.parametrize("kind", ["source", "fixed_source"])
@pytest.mark.parametrize("name", REPORTS)
def test_a_report_runs_as_in_plain_python(name: str, kind: str) -> None:
    source: Any = REPORTS[name][kind]
    with job() as guards:
        assert_same_run(run_here(source, guards), run_plain(source))
