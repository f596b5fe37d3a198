"""A command as a process: letters that a terminal lacks, output that cannot be written, and the status that is passed on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import sys
from core.base.terminal import run
def main():
    sys.stdout.write("a → b\\n" * 10_000)
    return 7
sys.exit(run(main, 2))
"""
ROOT = Path(__file__).parents[3]


def start(stdout, encoding="utf-8"):
    return subprocess.Popen(
        [sys.executable, "-c", CODE],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": encoding},
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize(("encoding", "printed"), [("utf-8", "a → b".encode()), ("ascii", b"a \\u2192 b")])
def test_a_letter_that_the_terminal_lacks_is_its_escape_and_the_status_stays(encoding, printed):
    process = start(subprocess.PIPE, encoding)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (7, b"")
    assert out.startswith(printed)


def test_a_reader_that_went_away_is_no_traceback():
    process = start(subprocess.PIPE)
    process.stdout.close()
    assert (process.wait(timeout=30), process.stderr.read()) == (2, b"")
    process.stderr.close()


def test_a_full_disk_is_said_in_words():
    with Path("/dev/full").open("wb") as full:
        process = start(full)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, b"No space left" in err, b"Traceback" in err) == (2, True, False)
