"""A disk that is full while programs are kept on it: pages go on, and the next start finds whole programs or none."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from core.base.program_folder import VARIABLE
from tests.support.loop import run_apart
from tests.support.serving import app
from tests.support.session import Session

NO_ROOT = "A disk of a few kilobytes can be mounted by root only."
KILOBYTES = 256


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A disk of that size, this user's alone."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0:
        pytest.skip(NO_ROOT)
    mount, unmount = shutil.which("mount"), shutil.which("umount")
    if mount is None or unmount is None:
        pytest.skip(NO_ROOT)
    how = ["-t", "tmpfs", "-o", f"size={KILOBYTES}k,mode=0700", "tmpfs", str(disk)]
    if subprocess.run([mount, *how], capture_output=True, check=False).returncode:
        pytest.skip(NO_ROOT)
    yield disk
    subprocess.run([unmount, "-l", str(disk)], capture_output=True, check=False)


def moves(port: int, sizes: range) -> list[list[str]]:
    """What a person is shown who asks for sizes that were never compiled: exceptions, by size."""

    async def one() -> list[list[str]]:
        async with Session(f"http://127.0.0.1:{port}", "lstm") as session:
            out = [(await session.rerun()).exceptions]
            for size in sizes:
                run = await session.change(session.find("lstm_hidden_features"), size)
                assert any("LSTM" in text for text in run.text)
                out.append(run.exceptions)
            return out

    return run_apart(one())


def test_a_full_disk_for_programs_costs_nothing_but_a_compile(tiny: Path, tmp_path: Path) -> None:
    settings = {VARIABLE: str(tiny), "CARRY_LAB_SPARES": "1"}
    with app(tmp_path / "one.log", settings) as one:
        assert not any(moves(one.port, range(5, 9)))
        filler = tiny / "filler"
        with filler.open("wb", buffering=0) as out, suppress(OSError):
            while out.write(bytes(4096)):
                pass
        assert shutil.disk_usage(tiny).free == 0
        assert not any(moves(one.port, range(9, 13)))
        assert "Traceback" not in one.said
        assert "No space" not in one.said
    assert not list(tiny.glob("*.part"))
    # The next start reads what is there, on the same full disk.
    with app(tmp_path / "two.log", settings) as two:
        assert not any(moves(two.port, range(5, 7)))
        assert "Traceback" not in two.said
