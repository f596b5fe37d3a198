"""The container: what its build takes along, what it may do, and that it runs like that, without Docker.

There is no Docker where these tests run. So its file is read here, and what it says is done by hand: the same command
as the same user without capabilities, every file system read-only but a small /tmp (`tests/support/container.sh`).
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from playwright.sync_api import Browser

from tests.support.serving import READY, Running, free_port, get, healthy, running

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
USER = "10001"


def instructions() -> list[tuple[str, str]]:
    """Those of the Dockerfile: (word, the rest), lines joined, comments gone."""
    text = re.sub(r"^\s*#.*\n", "", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = [line for line in re.sub(r"\\\n\s*", "", text).splitlines() if line.strip()]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def last(word: str) -> str:
    """What the last such instruction says."""
    return [rest for found, rest in instructions() if found == word][-1]


def ignored() -> list[str]:
    """The patterns of what the build does not get."""
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def is_in_context(path: str, patterns: list[str]) -> bool:
    """Whether the build gets this file: the last pattern that fits it or a folder above it decides (Docker's rule)."""
    parts = path.split("/")
    stems = ["/".join(parts[: i + 1]) for i in range(len(parts))]
    taken = True
    for pattern in patterns:
        plain = pattern.removeprefix("!")
        fits = any(
            fnmatch.fnmatchcase(stem, plain) or (plain.startswith("**/") and stem.split("/")[-1] == plain[3:])
            for stem in stems
        )
        if fits:
            taken = pattern.startswith("!")
    return taken


def test_the_known_words_only() -> None:
    known = {"FROM", "WORKDIR", "RUN", "COPY", "ENV", "USER", "EXPOSE", "HEALTHCHECK", "CMD"}
    assert {word for word, _ in instructions()} == known


def test_nobody_is_root_and_nothing_of_the_build_stays() -> None:
    words = [word for word, _ in instructions()]
    assert last("USER") == f"{USER}:{USER}"
    assert words.index("CMD") > words.index("USER") > [i for i, word in enumerate(words) if word in ("RUN", "COPY")][-1]
    final = instructions()[[i for i, word in enumerate(words) if word == "FROM"][-1] :]
    copied = [rest for word, rest in final if word == "COPY"]
    assert copied == ["--from=build /opt/venv /opt/venv", "--from=build /opt/carry-lab /opt/carry-lab"]


def test_packages_come_by_the_lock_alone() -> None:
    installs = [rest for word, rest in instructions() if word == "RUN" and "pip install" in rest]
    assert len(installs) == 1
    assert "--require-hashes -r requirements.txt" in installs[0]
    assert "--hash=sha256:" in (ROOT / "requirements.txt").read_text(encoding="utf-8")


def test_the_build_gets_what_runs_and_nothing_else() -> None:
    patterns = ignored()
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    tree = listed.stdout.splitlines() if listed.returncode == 0 else [str(f.relative_to(ROOT)) for f in ROOT.rglob("*")]
    taken = {path for path in tree if is_in_context(path, patterns)}
    product = {path for path in tree if path.split("/")[0] in ("core", "pages") and "__pycache__" not in path}
    assert product <= taken
    assert {path.split("/")[0] for path in taken} == {
        "app.py", "core", "pages", "deploy", "requirements.txt", ".streamlit", "LICENSE",
    }  # fmt: skip
    needed = {"deploy/run.py", "deploy/health.py", "deploy/pip.sh", "deploy/find_python.sh", ".streamlit/config.toml"}
    assert needed <= taken
    for secret in (".git/config", ".env", ".streamlit/secrets.toml", "tests/conftest.py", ".venv/bin/python"):
        assert not is_in_context(secret, patterns)
    assert not is_in_context("pages/widgets/editor/node_modules/esbuild/bin/esbuild", patterns)


def test_commands_name_files_that_are_there() -> None:
    health = json.loads(last("HEALTHCHECK").partition("CMD ")[2])
    command = json.loads(last("CMD"))
    assert [(ROOT / word).is_file() for word in (*health, *command) if word.endswith(".py")] == [True, True]
    assert last("EXPOSE") == health[-1] == command[command.index("--port") + 1]
    assert "--plain" in command


def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["carry-lab", "proxy"])
def test_a_service_can_do_no_more_than_it_needs(name: str) -> None:
    service = compose()["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["mem_limit"]
    assert "privileged" not in service
    assert "cap_add" not in service


def test_the_replicas_are_reached_by_the_proxy_alone() -> None:
    told = compose()
    app = told["services"]["carry-lab"]
    assert "ports" not in app
    assert app["networks"] == ["inside"]
    assert told["networks"]["inside"]["internal"] is True
    assert [one.split(":")[0] for one in app["tmpfs"]] == ["/tmp"]
    files = told["services"]["proxy"]["command"]
    assert [(DEPLOY / "proxy" / Path(word).name).is_file() for word in files if word.endswith(".cfg")] == [True, True]


def test_memory_is_enough_for_the_pages_and_the_workers_that_compute() -> None:
    from core.base.limits import LIMITS

    app = compose()["services"]["carry-lab"]
    running_at_once = int(app["environment"]["CARRY_LAB_RUNNING"])
    assert app["cpus"] == running_at_once
    assert int(app["mem_limit"].removesuffix("g")) * 1_000 >= 1_000 + running_at_once * LIMITS["worker_memory"].value


def test_health_is_an_exit_code() -> None:
    def code(port: int) -> int:
        return subprocess.run([sys.executable, "-I", "-S", str(DEPLOY / "health.py"), str(port)]).returncode

    assert code(free_port()) == 1


def can_be_contained() -> str:
    """Why this machine cannot do it, "" when it can."""
    if os.geteuid() != 0:
        return "needs root"
    if not (shutil.which("unshare") and shutil.which("setpriv")):
        return "needs util-linux"
    tried = subprocess.run(["unshare", "--mount", "--propagation", "private", "true"], capture_output=True)
    return "" if tried.returncode == 0 else "this machine lets nobody make a mount namespace"


@pytest.fixture(scope="module")
def contained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The app as the container runs it."""
    why_not = can_be_contained()
    if why_not:
        pytest.skip(why_not)
    port = free_port()
    command = json.loads(last("CMD"))
    assert command[0] == "/opt/venv/bin/python"
    command[0], command[command.index("0.0.0.0")], command[-1] = sys.executable, "127.0.0.1", str(port)
    wrapped = ["sh", str(ROOT / "tests" / "support" / "container.sh"), sys.executable, str(ROOT), *command]
    with running(wrapped, port, tmp_path_factory.mktemp("contained") / "app.log") as started:
        yield started


def test_it_runs_as_nobody_with_nothing_to_gain_and_nothing_to_write_on(contained: Running) -> None:
    status = Path(f"/proc/{contained.process.pid}/status").read_text()
    found = dict(re.findall(r"^(\w+):\s*(.*)$", status, flags=re.MULTILINE))
    assert set(found["Uid"].split()) == {USER}
    assert (found["CapEff"], found["CapBnd"], found["NoNewPrivs"]) == ("0" * 16, "0" * 16, "1")
    mounts = Path(f"/proc/{contained.process.pid}/mountinfo").read_text().splitlines()
    rows = [(line.split()[4], line.split()[5].split(",")[0]) for line in mounts]
    writable = {place for place, how in rows if how == "rw" and not place.startswith(("/dev", "/proc", "/sys"))}
    assert writable <= {"/tmp"}


def test_a_pasted_script_is_checked_behind_walls_there(contained: Running, browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{contained.port}/doctor?v=1&e=one_array_for_the_pair")
    page.get_by_text("L301").first.wait_for(timeout=90_000)
    page.goto(f"http://127.0.0.1:{contained.port}/status")
    page.wait_for_selector(READY, timeout=60_000)
    rows = page.locator(".st-key-status_walls tbody tr").all_inner_texts()
    context.close()
    stands = {row.split("\t")[0]: "✓" in row.split("\t")[1] for row in rows}
    # Whoever is no user but one can become none: the container's own limits stand for these two.
    assert {name for name, on in stands.items() if not on} <= {"Account", "Threads", *landlocks_missing()}
    assert stands["Privileges"]
    assert stands["System calls"]


def landlocks_missing() -> tuple[str, ...]:
    """The walls that Landlock puts up, where this kernel has none or an older one."""
    from core.sandbox import landlock

    try:
        version = landlock.abi()
    except OSError:
        return ("Files", "TCP", "Signals and abstract sockets")
    needs = (("Files", 1), ("TCP", landlock.TCP), ("Signals and abstract sockets", landlock.SCOPES))
    return tuple(name for name, since in needs if version < since)


def test_it_said_one_line_and_wrote_only_its_programs(contained: Running) -> None:
    assert healthy(contained.port)
    assert get(contained.port, "/_stcore/health")[0] == 200
    assert contained.said.strip() == f"Carry Lab is running on port {contained.port}."
    written = {file.name for file in Path(f"/proc/{contained.process.pid}/root/tmp").iterdir()}
    kept = {Path(path).parts[2] for path in (sys.prefix, sys.base_prefix, str(ROOT)) if path.startswith("/tmp/")}
    assert {re.sub(r"-programs-.*", "", name) for name in written - kept} <= {"carry-lab"}
