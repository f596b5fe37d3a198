from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.doctor.__main__ import main

HEAD = "import jax, jax.numpy as jnp\nfrom jax import lax\n"
CLEAN = HEAD + "print(lax.scan(lambda c, x: (c + x, c), 0.0, jnp.ones(3))[0])\n"
SCRIPTS = {
    "clean": (CLEAN, 0),
    "note": (HEAD + "c, ys = lax.scan(lambda c, x: (c + x, c + x), jnp.array(0.0), jnp.ones(3))\n", 0),
    "error": (HEAD + "lax.scan(lambda c, x: (c + x, c), jnp.int32(0), jnp.ones(3))\n", 1),
    "exception": ("x = 1 / 0\n", 1),
    "limit": ("import subprocess\n", 1),
    "unparsable": ("x = (\n", 2),
    "empty": ("", 2),
    "words": ("why?", 2),
}


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("form", ["text", "json"])
def test_exit_status(name: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, status = SCRIPTS[name]
    path = tmp_path / "my.py"
    path.write_text(text, encoding="utf-8")
    assert main([str(path), "--format", form]) == status
    out = capsys.readouterr().out
    if form == "json":
        assert json.loads(out)["schema"] == 1
    else:
        assert str(path) in out


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.py")]) == 2
    assert "none.py" in capsys.readouterr().err


def test_a_file_that_is_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "my.py"
    path.write_bytes(b"\xff\xfe\x00x")
    assert main([str(path)]) == 2
    assert "UTF-8" in capsys.readouterr().err


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(SCRIPTS["error"][0]))
    assert main(["-", "--no-fixes"]) == 1
    out = capsys.readouterr().out
    assert "S104" in out
    assert "fix" not in out


def test_a_pasted_error_leads_to_its_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("TypeError: scan body output must be a pair, got float32[5]."))
    assert main(["-"]) == 2
    assert "S101" in capsys.readouterr().out


def test_a_trusted_script_may_import_anything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "my.py"
    path.write_text("import os\nprint(os.sep)\n", encoding="utf-8")
    assert main([str(path), "--trust"]) == 0
    assert os.sep in capsys.readouterr().out


def test_as_a_program(tmp_path: Path) -> None:
    path = tmp_path / "my.py"
    path.write_text(SCRIPTS["error"][0], encoding="utf-8")
    command = [sys.executable, "-m", "core.doctor", str(path), "--format", "json"]
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert [v["code"] for v in json.loads(done.stdout)["violations"]] == ["S104"]
