"""Programs kept in a folder: whole or not at all, never too many, and no harm from a disk that is full."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from core.runners.kept_programs import KeptPrograms


def test_what_was_kept_is_found_by_the_next_process(tmp_path: Path) -> None:
    KeptPrograms(tmp_path, 10).put("key", b"program")
    assert KeptPrograms(tmp_path, 10).get("key") == b"program"
    assert KeptPrograms(tmp_path, 10).get("other") is None
    assert [file.name for file in tmp_path.iterdir()] == ["key-cache"]


def test_with_as_many_as_allowed_it_is_only_read(tmp_path: Path) -> None:
    KeptPrograms(tmp_path, 2).put("a", b"1")
    kept = KeptPrograms(tmp_path, 2)
    kept.put("b", b"2")
    kept.put("c", b"3")
    assert (kept.get("a"), kept.get("b"), kept.get("c")) == (b"1", b"2", None)


def test_a_full_disk_leaves_no_half_program_and_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(file: Path, data: bytes) -> int:
        with file.open("wb") as out:
            out.write(data[:3])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", half)
    kept = KeptPrograms(tmp_path, 10)
    kept.put("key", b"program")
    assert kept.get("key") is None
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    kept = KeptPrograms(folder, 10)
    folder.rmdir()
    kept.put("key", b"program")
    assert kept.get("key") is None
