"""The command line: pages, links, scripts, exit status, files."""

from __future__ import annotations

import json

import pytest

from core.report.__main__ import FAILED, INCOMPLETE, PASSED, UNMADE, main
from core.report.as_json import read_json
from core.report.model import Name, Status, Verdict

STEP = """
import jax
import jax.numpy as jnp
final, ys = jax.lax.scan(lambda c, x: (c + x, c), 0.0, jnp.arange(3.0))
"""


def test_a_page_that_passes_writes_both_files_and_exits_with_0(tmp_path, capsys):
    files = tmp_path / "r.md", tmp_path / "r.json"
    argv = ["scan?axes=time", "--markdown", str(files[0]), "--json", str(files[1]), "--features", ""]
    assert main([*argv, "--latency", "1", "--low", "1", "--high", "3"]) == PASSED
    assert capsys.readouterr().out == ""
    report = read_json(files[1].read_bytes())
    assert report.verdict is Verdict.PASS
    assert report[Name.RANGE].status is Status.PASS
    assert report.contract.yours == ("low", "high")
    assert report.inputs[0].values is None
    assert report.latency is not None
    assert report.latency.runs >= 30
    assert files[0].read_text(encoding="utf-8").startswith("# Contract report")
    assert main(["--read", str(files[1])]) == PASSED
    assert capsys.readouterr().out == files[0].read_text(encoding="utf-8")


def test_a_criterion_that_fails_exits_with_1_and_is_named(capsys):
    assert main(["scan", "--high", "2", "--latency", "1"]) == FAILED
    assert "Every value lies in the declared range." in capsys.readouterr().out


def test_a_script_and_its_values(tmp_path, capsys):
    file = tmp_path / "step.py"
    file.write_text(STEP, encoding="utf-8")
    assert main([str(file), "--json", "-", "--values", "--latency", "1"]) == PASSED
    data = json.loads(capsys.readouterr().out)
    assert data["page"] == "script"
    assert [one["values"] for one in data["inputs"]] == [[0.0], [0.0, 1.0, 2.0]]


def test_a_whole_link_is_a_page(capsys):
    assert main(["http://localhost:8501/?v=1&step=grows", "--latency", "1"]) == FAILED
    out = capsys.readouterr().out
    assert "S103" in out
    assert "**not run**" in out


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "--help"),
        (["nowhere"], "no such page and no such file"),
        (["scan?step=nothing"], "none of its choices"),
        (["scan?from=paste&x=1,b"], "b"),
        (["scan", "--axes", "TT"], "--axes: Use each"),
        (["lstm?batch=0"], "must be 1 or more"),
        (["http://[x"], "no address"),
        (["scan?len=5&len=7"], "more than once"),
        (["--read", "nowhere.json"], "nowhere.json"),
    ],
)
def test_what_cannot_be_reported_exits_with_2_and_a_sentence(argv, said, capsys):
    assert main(argv) == UNMADE
    printed = capsys.readouterr()
    assert said in printed.err
    assert "Traceback" not in printed.err
    assert printed.out == ""


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"only words here, no code at all"])
def test_a_file_without_a_script_exits_with_2(tmp_path, content, capsys):
    file = tmp_path / "x.py"
    file.write_bytes(content)
    assert main([str(file)]) == UNMADE
    assert capsys.readouterr().err.strip()


def test_a_report_that_cannot_be_written_exits_with_2(tmp_path, capsys):
    assert main(["scan", "--latency", "1", "--json", str(tmp_path / "no" / "r.json")]) == UNMADE
    assert "r.json" in capsys.readouterr().err


def test_the_exit_statuses_differ():
    assert len({PASSED, FAILED, UNMADE, INCOMPLETE}) == 4


def test_help_says_what_each_status_means(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    for part in ("exit status", "a criterion failed", "--axes", "python -m core.report"):
        assert part in out


@pytest.mark.parametrize("seconds", ["nan", "-1", "inf", "x"])
def test_seconds_that_are_none_exit_with_2(seconds, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["scan", f"--latency={seconds}"])
    assert caught.value.code == UNMADE
    assert "number of seconds" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [["/dev/zero"], ["--read", "/dev/zero"]])
def test_a_file_without_an_end_is_read_to_the_limit(argv, capsys):
    assert main(argv) == UNMADE
    assert "/dev/zero: more than" in capsys.readouterr().err


def test_letters_that_cannot_be_shown_are_not_printed(tmp_path, capsys):
    file = tmp_path / "r.json"
    assert main(["scan", "--json", str(file), "--latency", "1"]) == PASSED
    data = json.loads(file.read_text(encoding="utf-8"))
    data["title"] = "\x1b[2Jtitle\u202e"
    file.write_text(json.dumps(data), encoding="utf-8")
    capsys.readouterr()
    main(["--read", str(file)])
    assert {c for c in capsys.readouterr().out if not c.isprintable()} == {"\n"}
    data["schema"] = "\x1b"
    file.write_text(json.dumps(data), encoding="utf-8")
    assert main(["--read", str(file)]) == UNMADE
    assert "\x1b" not in capsys.readouterr().err
