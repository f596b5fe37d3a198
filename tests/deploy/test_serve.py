"""The server as it is really started: warm before anybody comes, and nothing left of it when it ends."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import pytest

from tests.bench.memory import Memory, children
from tests.support.loop import run_apart
from tests.support.serving import app, free_port, get, wait_until
from tests.support.session import Session

#: Seconds that the rest of the warm-up may take after the port answers, and in which everything must have ended.
WARM, GONE = 60.0, 10.0
#: Pages whose opening programs are compiled before anybody comes, and how each says that it compiled nothing.
OPENED = ("", "lstm")
CACHED = re.compile(r">\s*cached( for T = \d+)? · ")


def _programs(port: int) -> tuple[float, ...]:
    """How many programs were compiled so far, by the measures."""
    text = get(port, "/metrics")[2].decode()
    found = re.findall(r"^carry_lab_compiles_total(?:\{[^}]*\})? (\S+)$", text, re.MULTILINE)
    assert found, text
    return tuple(map(float, found))


async def _open(port: int, page: str) -> str:
    """What the first run of a session draws."""
    async with Session(f"http://127.0.0.1:{port}", page) as session:
        run = await session.rerun()
        assert not run.exceptions
        return " ".join(run.text)


def test_the_first_visitor_of_a_page_compiles_nothing(tmp_path: Path) -> None:
    measures = free_port()
    with app(tmp_path / "server.log", {"CARRY_LAB_METRICS_PORT": str(measures)}) as server:
        memory = Memory(server.process.pid)
        seen = [-1.0]

        def rests() -> bool:
            used, before = memory.cpu_seconds(), seen[0]
            seen[0] = used
            time.sleep(0.5)
            return memory.cpu_seconds() - used < 0.05 and used - before < 0.1

        assert wait_until(lambda: len(children(server.process.pid)) > 1, WARM)  # workers come with the rest
        assert wait_until(rests, WARM)
        before = _programs(measures)
        assert sum(before) > 0
        for page in OPENED:
            assert CACHED.search(run_apart(_open(server.port, page))), page
            assert _programs(measures) == before, page
        assert "Traceback" not in server.said


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_server_leaves_no_process_and_no_folder(tmp_path: Path, how: signal.Signals) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with app(tmp_path / "server.log", {"TMPDIR": str(scratch)}) as server:

        async def stop_while_somebody_is_there() -> list[int]:
            async with Session(f"http://127.0.0.1:{server.port}", "doctor") as session:
                await session.rerun()
                assert wait_until(lambda: len(children(server.process.pid)) >= 2, WARM)
                assert any(scratch.iterdir())  # what workers share is there: it is no wonder that it goes
                below = children(server.process.pid)
                server.process.send_signal(how)
                return below

        below = run_apart(stop_while_somebody_is_there())
        assert server.process.wait(GONE) == 0
        assert wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below), GONE)
        assert list(scratch.iterdir()) == []
        assert "Traceback" not in server.said


def test_a_second_start_finds_the_programs_of_the_first(tmp_path: Path) -> None:
    kept = tmp_path / "programs"
    setting = {"CARRY_LAB_COMPILE_CACHE": str(kept)}
    with app(tmp_path / "first.log", setting) as server:
        run_apart(_open(server.port, "lstm"))
    files = {file.name: file.stat().st_mtime_ns for file in kept.iterdir()}
    assert files
    assert not any(name.endswith(".part") for name in files)
    with app(tmp_path / "second.log", setting) as server:
        run_apart(_open(server.port, "lstm"))
    again = {file.name: file.stat().st_mtime_ns for file in kept.iterdir()}
    assert {name: again.get(name) for name in files} == files


def test_a_folder_that_others_may_write_to_is_refused_in_one_sentence(tmp_path: Path) -> None:
    open_to_all = tmp_path / "shared"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    with (
        pytest.raises(pytest.fail.Exception, match="belongs to this user and that nobody else can write to"),
        app(tmp_path / "server.log", {"CARRY_LAB_COMPILE_CACHE": str(open_to_all)}),
    ):
        pass
