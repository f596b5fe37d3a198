"""``python -m core.regress``: recorded in one process, checked in another; exit codes, and what is printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.regress.__main__ import main
from tests.unit.regress.support import changed, recorded

ROOT = Path(__file__).parents[3]


def run(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "core.regress", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done


def test_recorded_in_one_process_and_checked_in_another(tmp_path):
    file = tmp_path / "sum.safetensors"
    made = run("record", file, "--link", "step=running_sum&rev=1")
    assert made.returncode == 0, made.stderr
    assert "fails: S108" in made.stdout
    checked = run("check", file)
    assert checked.returncode == 0, checked.stdout
    assert "Same. 7 cases" in checked.stdout
    assert "float32 rtol 1e-5, atol 1e-6" in checked.stdout


def seed_moved(document):
    document["values"]["seed"] = 3
    for case in document["cases"]:
        case["edit"].pop("seed", None)


def test_what_moved_is_printed_with_exit_code_1(tmp_path, capsys):
    _, data = recorded("step=random_walk")
    file = tmp_path / "walk.safetensors"
    file.write_bytes(changed(data, seed_moved))
    assert main(["check", str(file)]) == 1
    said = capsys.readouterr().out
    assert "Moved." in said
    assert "first at stage “keys”: case standard, leaf keys" in said
    assert "largest difference" in said


def test_files_that_cannot_be_read_are_exit_code_2_each_with_its_reason(tmp_path, capsys):
    _, data = recorded()
    good, bad, none = tmp_path / "good", tmp_path / "bad", tmp_path / "none"
    good.write_bytes(data)
    bad.write_bytes(data[:-5])
    assert main(["check", str(good), str(bad), str(none)]) == 2
    said = capsys.readouterr()
    assert "Same." in said.out
    assert "cut short" in said.err
    assert f"{none}: cannot be read" in said.err
    assert main(["check", str(tmp_path)]) == 2


def test_recording_anew_needs_a_reason_and_keeps_it(tmp_path, capsys):
    file = tmp_path / "sum.safetensors"
    assert main(["record", str(file)]) == 0
    before = file.read_bytes()
    assert main(["record", str(file)]) == 2
    assert "--reason" in capsys.readouterr().err
    assert file.read_bytes() == before
    assert main(["record", str(file), "--reason", "the step was mended"]) == 0
    assert b"the step was mended" in file.read_bytes()


def test_what_cannot_be_recorded_leaves_the_old_file(tmp_path, capsys):
    file = tmp_path / "sum.safetensors"
    file.write_bytes(b"old")
    assert main(["record", str(file), "--link", "len=99", "--reason", "x"]) == 2
    assert "S108" in capsys.readouterr().err
    assert main(["record", str(file), "--link", "colour=red", "--reason", "x"]) == 2
    assert "colour" in capsys.readouterr().err
    assert file.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["sum.safetensors"]
    assert main(["record", str(tmp_path / "no" / "such" / "folder")]) == 2


def test_typed_numbers_stay_out_of_the_file_unless_that_is_asked_for(tmp_path, capsys):
    file = tmp_path / "typed"
    link = "from=paste&x=31.4159, 27.1828"
    assert main(["record", str(file), "--link", link]) == 0
    assert b"31.4159" not in file.read_bytes()
    assert "Typed numbers are not in the file" in capsys.readouterr().out
    assert main(["record", str(file), "--link", link, "--own-data", "--reason", "x"]) == 0
    assert b"31.4159" in file.read_bytes()
    assert "The numbers that were typed are in the file." in capsys.readouterr().out


def test_a_link_that_names_parameters_wants_their_file(tmp_path, capsys):
    assert main(["record", str(tmp_path / "x"), "--link", "lstm?w=0123456789abcdef"]) == 2
    assert "--weights" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [[], ["record"], ["check"], ["record", "f", "--page", "doctor"], ["record", "f", "--seed", "-1"]]
)
def test_bad_arguments_are_exit_code_2(arguments):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


def test_the_schema_is_printed(capsys):
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "Carry Lab baseline"


def test_names_that_no_file_can_have_and_links_that_are_none_are_exit_code_2(tmp_path, capsys):
    for arguments, said in (
        (["record", str(tmp_path / ("x" * 300))], "too long"),
        (["record", str(tmp_path / "x"), "--link", "http://[x"], "no address"),
        (
            ["record", str(tmp_path / "x"), "--link", "lstm?w=0123456789abcdef", "--weights", str(tmp_path / "none")],
            "none: cannot be read",
        ),
        (["record", str(tmp_path / "x"), "--weights", str(ROOT / "README.md")], "would not be used"),
    ):
        assert main(arguments) == 2
        assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_terminal_without_arrows_and_a_reader_that_went_away(tmp_path):
    file = next((ROOT / "tests" / "baselines").glob("scan-product*"))
    command = [sys.executable, "-m", "core.regress", "check", str(file)]
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=ROOT, env=ascii_only, capture_output=True, timeout=120, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, timeout=120, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (2, False)
    assert b"No space left" in done.stderr
