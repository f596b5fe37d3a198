"""A folder for compiled programs must be the server's alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.base.program_folder import VARIABLE, program_folder


def test_none_is_named() -> None:
    assert program_folder({}) is None
    assert program_folder({VARIABLE: "  "}) is None


def test_a_new_folder_is_made_for_this_user_alone(tmp_path: Path) -> None:
    folder = program_folder({VARIABLE: str(tmp_path / "new")})
    assert folder == tmp_path / "new"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert program_folder({VARIABLE: str(folder)}) == folder


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(ValueError, match="nobody else can write to") as refused:
        program_folder({VARIABLE: str(tmp_path)})
    assert str(tmp_path) not in str(refused.value)


@pytest.mark.parametrize("name", ["missing/below", "file", "a\0b"])
def test_what_is_no_folder_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="must name a folder") as refused:
        program_folder({VARIABLE: str(tmp_path / name)})
    assert str(tmp_path) not in str(refused.value)
