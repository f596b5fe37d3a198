"""The launcher and the search for a Python: what people see when something stands in the way."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _load() -> ModuleType:
    """deploy/run.py as a module: a script, in no package."""
    spec = importlib.util.spec_from_file_location("carry_lab_run", ROOT / "deploy" / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


run = _load()


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which somebody listens."""
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        yield busy.getsockname()[1]


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_taken_port_gets_one_sentence_and_no_server(taken: int, host: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run.main(["--port", str(taken), "--host", host]) == 1
    told = capfd.readouterr()
    assert told.out == ""
    sentence = told.err.strip()
    assert sentence.startswith(f"Port {taken} is already in use")
    assert "\n" not in sentence
    proposed = int(sentence.removesuffix(".").rpartition("PORT=")[2])
    assert proposed != taken
    run.check_free(host, proposed)


@pytest.mark.parametrize("port", ["", "abc", "0", "-1", "65536", "1e3", "8501x", "٣", "9" * 5000])
def test_a_bad_port_gets_one_sentence(port: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run.main(["--port=" + port]) == 1
    assert capfd.readouterr().err.startswith("PORT must be a whole number from 1 to 65535")


@pytest.mark.parametrize("port", ["1", "8501", "65535"])
def test_a_good_port_is_taken_as_it_is(port: str) -> None:
    assert run.parse_port(port) == int(port)


@pytest.mark.parametrize("host", ["203.0.113.9", "no-such-name.invalid"])
def test_an_address_of_another_machine_gets_one_sentence(host: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run.main(["--port", "8501", "--host", host]) == 1
    assert capfd.readouterr().err.startswith(f"HOST={host} is no address of this machine")


def test_host_from_the_environment_counts_only_if_it_is_an_address() -> None:
    assert run.host_from(None, "x86_64-conda-linux-gnu") == "127.0.0.1"
    assert run.host_from(None, "0.0.0.0") == "0.0.0.0"
    assert run.host_from("0.0.0.0", "x86_64-conda-linux-gnu") == "0.0.0.0"
    assert run.host_from(None, None) == "127.0.0.1"


def test_room_addresses_leave_out_what_nobody_in_the_room_can_reach() -> None:
    own = [
        run.Address("lo", "127.0.0.1"),
        run.Address("docker0", "172.17.0.1"),
        run.Address("wlan0", "192.168.1.20"),
        run.Address("eth0", "10.0.0.5"),
        run.Address("eth1", "169.254.3.3"),
    ]
    assert run.room_addresses(own, "10.0.0.5") == ["10.0.0.5", "192.168.1.20"]


def test_room_addresses_without_a_route_to_the_internet() -> None:
    own = [run.Address("lo", "127.0.0.1"), run.Address("wlan0", "192.168.43.7")]
    assert run.room_addresses(own, None) == ["192.168.43.7"]
    assert run.room_addresses(own[:1], None) == []


def _modules(lines: list[str], *, half_blocks: bool) -> list[list[int]]:
    """The black (1) and white (0) modules that a terminal would paint."""
    rows: list[list[int]] = []
    for line in lines:
        if half_blocks:
            glyphs = line.removeprefix("\x1b[38;5;16;48;5;231m").removesuffix("\x1b[0m")
            rows.append([int(glyph in "▀█") for glyph in glyphs])
            rows.append([int(glyph in "▄█") for glyph in glyphs])
        else:
            cells = line.removesuffix("\x1b[0m").split("m  ")
            rows.append([int(cell == "\x1b[48;5;16") for cell in cells if cell])
    return rows


@pytest.mark.parametrize("half_blocks", [True, False])
def test_the_qr_code_has_the_modules_of_the_address(half_blocks: bool) -> None:
    import segno

    url = "http://192.168.1.20:8501"
    wanted = [[int(module) for module in row] for row in segno.make(url, micro=False).matrix_iter(border=4)]
    painted = _modules(run.qr_lines(url, half_blocks=half_blocks), half_blocks=half_blocks)
    assert painted[: len(wanted)] == wanted
    assert all(not any(row) for row in painted[len(wanted) :])


def test_the_room_banner_names_the_address_and_falls_back_to_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_own_addresses", lambda: [run.Address("wlan0", "192.168.1.20")])
    monkeypatch.setattr(run, "_routed_ip", lambda: None)
    shown = run.banner("0.0.0.0", 8501, encoding="utf-8")
    assert "http://192.168.1.20:8501" in shown
    assert "▀" in shown
    assert run.banner("0.0.0.0", 8501, encoding="latin-1").isascii()


def test_the_room_banner_without_a_network_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_own_addresses", lambda: [run.Address("lo", "127.0.0.1")])
    monkeypatch.setattr(run, "_routed_ip", lambda: None)
    assert "this machine only: http://localhost:8501" in run.banner("0.0.0.0", 8501, encoding="utf-8")


def test_the_plain_banner_opens_nothing_to_the_room() -> None:
    shown = run.banner("127.0.0.1", 8502, encoding="utf-8")
    assert "http://localhost:8502" in shown
    assert "\x1b" not in shown


def test_a_logged_exception_keeps_its_place_and_loses_its_text() -> None:
    before = logging.getLogRecordFactory()
    sink = io.StringIO()
    log = logging.Logger("probe")
    log.addHandler(logging.StreamHandler(sink))
    try:
        run.keep_values_out_of_logs()
        try:
            float("typed by a visitor")
        except ValueError:
            log.exception("Uncaught app execution")
    finally:
        logging.setLogRecordFactory(before)
    told = sink.getvalue()
    assert "typed by a visitor" not in told.replace('float("typed by a visitor")', "")
    assert "ValueError" in told
    assert "test_run_script.py" in told
    assert "Traceback" in told


def test_what_a_package_puts_into_its_sentences_is_not_logged_but_numbers_and_our_own_are() -> None:
    before, sink = logging.getLogRecordFactory(), io.StringIO()
    handler = logging.StreamHandler(sink)
    theirs, ours = logging.getLogger("streamlit.test_of_logs"), logging.getLogger("core.test_of_logs")
    for log in (theirs, ours):
        log.addHandler(handler)
    try:
        run.keep_values_out_of_logs()
        theirs.warning("origin=%s, %d bytes, %r", "https://typed.example", 12, ValueError("typed"))
        theirs.warning("named %(what)s", {"what": "typed"})
        ours.error("%s in %s", "ValueError", "core/place.py")
    finally:
        logging.setLogRecordFactory(before)
        for log in (theirs, ours):
            log.removeHandler(handler)
    assert sink.getvalue().splitlines() == [
        "origin=…, 12 bytes, '…'", "named …", "ValueError in core/place.py",
    ]  # fmt: skip


def test_a_server_whose_output_nobody_reads_can_still_print() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    stream = run.PatientStream(os.fdopen(writing, "w", buffering=1))
    with pytest.raises(BrokenPipeError):
        stream._stream.write("the bare stream fails\n")
    assert stream.write("Stopping\n") == len("Stopping\n")
    stream.flush()
    with contextlib.suppress(BrokenPipeError):
        stream.close()


def _executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def _find(*folders: Path, what: str = "python") -> subprocess.CompletedProcess[str]:
    """deploy/find_python.sh with those folders, and the few tools it needs, on PATH."""
    tools = folders[0].parent / "tools"
    tools.mkdir(exist_ok=True)
    for name in ("tr", "sh"):
        place = next(p for p in ("/usr/bin", "/bin") if Path(p, name).exists())
        (tools / name).symlink_to(Path(place, name))
    path = os.pathsep.join(map(str, [*folders, tools]))
    script = str(ROOT / "deploy" / "find_python.sh")
    return subprocess.run(["/bin/sh", script, what], env={"PATH": path}, capture_output=True, text=True, timeout=60)


BROKEN_SHIM = "#!/bin/sh\necho 'pyenv: python3.12: command not found' >&2\nexit 127\n"
GOOD = f"#!/bin/sh\nexec '{sys.executable}' \"$@\"\n"
#: Starts, and says that it is too old for the probe.
OLD = "#!/bin/sh\nexit 1\n"


def test_a_shim_that_does_not_start_is_passed_over(tmp_path: Path) -> None:
    _executable(tmp_path / "shims" / "python3.12", BROKEN_SHIM)
    _executable(tmp_path / "shims" / "python3", BROKEN_SHIM)
    _executable(tmp_path / "real" / "python3.12", GOOD)
    found = _find(tmp_path / "shims", tmp_path / "real")
    assert (found.returncode, found.stderr) == (0, "")
    assert Path(found.stdout.strip()).samefile(sys.executable)


def test_an_old_python3_is_passed_over_for_a_newer_name(tmp_path: Path) -> None:
    _executable(tmp_path / "bin" / "python3", OLD)
    _executable(tmp_path / "bin" / "python3.14", GOOD)
    assert _find(tmp_path / "bin").returncode == 0


def test_uv_brings_a_python_where_none_is_on_the_path(tmp_path: Path) -> None:
    _executable(tmp_path / "bin" / "python3", OLD)
    _executable(tmp_path / "bin" / "uv", f"#!/bin/sh\n[ \"$1\" = --version ] || echo '{sys.executable}'\n")
    found = _find(tmp_path / "bin")
    assert found.stdout.strip() == sys.executable


def test_a_uv_that_does_not_start_is_none(tmp_path: Path) -> None:
    _executable(tmp_path / "bin" / "uv", BROKEN_SHIM)
    assert _find(tmp_path / "bin", what="uv").stdout == ""


def test_no_python_gets_one_sentence(tmp_path: Path) -> None:
    _executable(tmp_path / "bin" / "python3.12", BROKEN_SHIM)
    found = _find(tmp_path / "bin")
    assert found.returncode == 1
    assert found.stdout == ""
    assert "needs Python 3.12 or newer" in found.stderr
    assert found.stderr.strip().count("\n") == 0
