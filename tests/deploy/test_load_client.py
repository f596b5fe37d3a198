"""The load client sees what it is there to see: values of others, exceptions on a page, sessions that break off.

The pages here are made for that, without JAX: one is sound, one shows everybody the first value that anybody sent, one
raises for one of its visitors.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.bench.load_client import Load, Outcome, foreign, main, percentile, run, unique_values
from tests.support.loop import run_apart
from tests.support.serving import free_port, running

TOP = """
import streamlit as st

value = st.number_input("value", 0.0, 1000.0, 0.0, key="moved")

@st.cache_resource
def shared():
    return []

"""
SOUND = TOP + 'st.markdown(f"value ({value})")\n'
#: What a page does that keeps a person's value in the process.
LEAKS = TOP + 'if value:\n    shared().append(value)\nst.markdown(f"value ({(shared() or [value])[0]})")\n'
#: Whoever comes second finds it broken; the first goes on.
RAISES_FOR_ONE = TOP + (
    'if "turn" not in st.session_state:\n    shared().append(1)\n    st.session_state.turn = len(shared())\n'
    'if st.session_state.turn == 2:\n    raise ValueError("this page is broken")\nst.markdown(f"value ({value})")\n'
)
PROBE = r"value \(([0-9.]+)\)"


@contextmanager
def page(folder: Path, text: str) -> Iterator[tuple[str, int]]:
    """A page with this script: where it is, and its process."""
    script, port = folder / "page.py", free_port()
    script.write_text(text)
    command = [
        *(sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(port)),
        *("--server.address", "127.0.0.1", "--server.headless", "true", "--server.fileWatcherType", "none"),
        *("--browser.gatherUsageStats", "false", "--client.showErrorDetails", "full"),
    ]
    with running(command, port, folder / "page.log") as started:
        yield f"http://127.0.0.1:{port}", started.process.pid


def loaded(folder: Path, text: str, sessions: int = 2, changes: int = 4) -> Outcome:
    with page(folder, text) as (url, pid):
        load = Load(
            url,
            "moved",
            PROBE,
            sessions=sessions,
            changes=changes,
            high=1000,
            digits=2,
            think=0.02,
            timeout=20,
            pid=pid,
        )
        return run_apart(run(load))


def test_sessions_that_get_their_own_values_back_are_all_well(tmp_path: Path) -> None:
    outcome = loaded(tmp_path, SOUND)
    assert (outcome.errors, outcome.wrong) == ([], [])
    assert (len(outcome.first), len(outcome.reruns)) == (2, 8)
    assert 0 < outcome.p(50) <= outcome.p(95)
    assert all(run.bytes > 0 and run.messages > 1 for run in outcome.reruns)
    before, most, after = outcome.memory
    assert most >= max(before, after) * 0.9 > 0
    assert outcome.cpu > 0


def test_a_value_of_somebody_else_is_found(tmp_path: Path) -> None:
    outcome = loaded(tmp_path, LEAKS)
    assert outcome.errors == []
    # All eight runs show one value: it is right in the one run that sent it.
    assert len(outcome.wrong) == 7
    assert {text.split()[1] for text in outcome.wrong} == {"0", "1"}


def test_a_page_that_raises_for_one_is_an_error_and_the_other_goes_on(tmp_path: Path) -> None:
    outcome = loaded(tmp_path, RAISES_FOR_ONE)
    [error] = outcome.errors
    assert "this page is broken" in error
    assert len(outcome.reruns) == 4
    assert outcome.wrong == []


def test_a_server_that_is_not_there_is_an_error_of_every_session() -> None:
    outcome = run_apart(run(Load(f"http://127.0.0.1:{free_port()}", "moved", PROBE, sessions=2, changes=1, timeout=2)))
    assert len(outcome.errors) == 2
    assert outcome.reruns == []


@pytest.mark.parametrize(("text", "status"), [(SOUND, 0), (LEAKS, 1)], ids=["sound", "leaks"])
def test_the_command_says_by_its_status_whether_all_was_well(tmp_path: Path, text: str, status: int) -> None:
    told = tmp_path / "told.json"
    options = "--widget moved --high 1000 --digits 2 --sessions 2 --changes 2 --think 0.02".split()
    # In a thread of its own: it runs a loop, and Playwright's may run in this one.
    with page(tmp_path, text) as (url, _), ThreadPoolExecutor(1) as thread:
        assert thread.submit(main, [url, *options, "--probe", PROBE, "--json", str(told)]).result() == status
    summary = json.loads(told.read_text())
    assert (summary["changes"], summary["expected_changes"], summary["errors"]) == (4, 4, 0)
    assert (summary["foreign_values"] > 0) is bool(status)


@pytest.mark.parametrize("url", ["http://192.0.2.1:8501", "http://0.0.0.0:8501"])
def test_no_other_machine_is_loaded(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([url, "--widget", "moved", "--probe", PROBE])
    assert "only this machine" in capsys.readouterr().err


def test_no_two_changes_have_the_same_value() -> None:
    values = unique_values(Load("", "", "", sessions=50, changes=20, low=0, high=1000, digits=2))
    assert [len(one) for one in values] == [20] * 50
    assert len({value for one in values for value in one}) == 1000
    with pytest.raises(ValueError, match="do not fit"):
        unique_values(Load("", "", "", sessions=50, changes=20, low=0, high=1, digits=2))


@pytest.mark.parametrize(
    ("shown", "is_foreign"),
    [([1.25], False), ([1.25, 1.25], False), ([], True), ([1.26], True), ([1.25, 7.0], True), ([1.2549], False)],
)
def test_only_the_value_that_was_sent_is_ones_own(shown: list[float], is_foreign: bool) -> None:
    assert foreign(shown, 1.25, 2) is is_foreign


def test_percentiles_are_values_that_were_measured() -> None:
    assert percentile([3.0, 1.0, 2.0], 50) == 2.0
    assert percentile([3.0, 1.0, 2.0], 100) == 3.0
    assert percentile([], 95) == 0.0
