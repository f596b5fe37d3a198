"""The attempts once more, as plain Python in a process behind the walls: there the kernel refuses what they go out for.

The marker is in a file, in the server's environment and in its memory, nowhere in the worker. Each attempt and each attack
has its control in a second process without walls, where it gets the marker, leaves a file, or knocks at a door.

What stays inside its own process (most attempts) succeeds in both, and has then all of Python: behind the walls that
reaches no file, no environment, no memory of others, no network, no program and no process. How: tests/escapes/inside.py.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import platform
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.sandbox import landlock, walls
from core.sandbox.pool import Done, Pool, Stopped, StopReason, from_limits
from tests.escapes.attempts import ATTEMPTS
from tests.escapes.direct import DIRECT, Direct

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the walls are Linux's"),
    pytest.mark.timeout(300),  # the first test waits for both processes
]

ROOT = Path(__file__).parents[2]
WORKED = "it-worked"
#: An attempt with one of these reads or writes a file itself, before anything of its own process.
FILES = ("@FILE@", "@NPY", "@PICKLE@", "@SCRIPT@", "@OUT@")
WAYS = {"file", "environ", "memory", "write", "tcp", "udp", "unix", "abstract", "program", "fork", "signal"}
DOORS = ("tcp", "udp", "unix", "abstract", "signal")


@dataclasses.dataclass(frozen=True)
class Process:
    """What one of the two processes told, and what arrived at the server meanwhile."""

    told: dict[str, Any]
    dead: dict[str, tuple[str, int]]
    arrived: dict[str, int]
    signals: int
    secrets: tuple[str, ...]

    def outside(self, result: dict[str, Any]) -> set[str]:
        """By which ways a script got out: a marker in what it got, a call that worked, a file that was left."""
        return {
            way
            for way, text in result["outside"].items()
            if way == "left" or any(secret in text for secret in (*self.secrets, WORKED))
        }

    def of(self, attack: Direct) -> set[str]:
        """The same of an attack of direct.py. Of one that died what it printed counts."""
        if not attack.dies:
            return self.outside(self.told["direct"][attack.id])
        text, _ = self.dead[attack.id]
        return {"got"} if any(secret in text for secret in (*self.secrets, WORKED)) else set()


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Process]:
    """Both processes, `behind` and `open`, when they have tried everything."""
    folder = tmp_path_factory.mktemp("walls")
    files, outs, doors = folder / "files", folder / "outs", folder / "doors"
    for made in (files, files / "empty", outs, doors):
        made.mkdir()
    marker, other = f"planted-{secrets.token_hex(8)}", f"secret-{secrets.token_hex(8)}"
    (files / "file.txt").write_text(marker)
    (files / "script.txt").write_text(f"value = {marker!r}")
    np.save(files / "a.npy", np.array(marker))
    (outs / "link").symlink_to(files / "file.txt")
    own = {name: str(files / file) for name, file in _FILES.items()}
    own |= {"OUT": str(outs / "out"), "FOLDER": str(files), "LINK": str(outs / "link")}
    with (
        _started("tests.escapes.victim", str(doors), secret=marker) as victim,
        _started("tests.escapes.inside", secret=other, cwd=outs) as inside,
    ):
        _say(inside, json.dumps({name: str(value) for name, value in _hear(victim).items()} | own))
        done = {}
        for name in ("behind", "open"):
            _say(inside, name)
            ran = _hear(inside)
            _say(victim, "and now?")
            assert ran["code"] == 0, ran["text"]
            told = json.loads(ran["text"])
            done[name] = Process(told, ran["dead"], _hear(victim), ran["signals"], (marker, other))
    return done


_FILES = {"FILE": "file.txt", "SCRIPT": "script.txt", "NPY": "a.npy", "NPY_NUMBERS": "b.npy", "PICKLE": "c.npy"}


def _started(module: str, *arguments: str, secret: str, cwd: Path = ROOT) -> subprocess.Popen[str]:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "CARRY_LAB_PLANTED": secret}
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.Popen(command, env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _say(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def _hear(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    told: dict[str, Any] = json.loads(process.stdout.readline())
    return told


@pytest.fixture
def behind(processes: dict[str, Process]) -> Process:
    """The process behind the walls, where the machine has those that matter."""
    process = processes["behind"]
    standing = {name: in_force for name, in_force, _ in process.told["rows"]}
    if not (standing[walls.FILES] and standing[walls.CALLS]):
        pytest.skip("this machine offers no Landlock or no libseccomp2")
    return process


@pytest.fixture
def control(processes: dict[str, Process]) -> Process:
    """The process without."""
    return processes["open"]


# --- what stands -----------------------------------------------------------------------------------------------------


def test_the_walls_that_this_machine_has_are_in_force(processes: dict[str, Process]) -> None:
    standing = {name: in_force for name, in_force, _ in processes["behind"].told["rows"]}
    try:
        abi = landlock.abi()
    except OSError:
        abi = 0
    library = subprocess.run([sys.executable, "-c", "import pyseccomp"], capture_output=True, check=False)
    assert standing[walls.FILES] == (abi >= 1)
    assert standing[walls.NETWORK] == (abi >= landlock.TCP)
    assert standing[walls.SCOPE] == (abi >= landlock.SCOPES)
    assert standing[walls.CALLS] == (library.returncode == 0)
    always = {walls.PRIVILEGES, walls.TRACING, walls.ENVIRONMENT, walls.DESCRIPTORS, walls.DIRECTORY, walls.MEMORY}
    assert all(standing[name] for name in always | {walls.SIZES, walls.PARENT})


def test_jax_computes_the_same_behind_the_walls(behind: Process, control: Process) -> None:
    """Compiled scan, gradient, vmap, sort, FFT, linear algebra, x64, random, callback, threads, lazy imports."""
    assert behind.told["numbers"] == control.told["numbers"]
    assert len(control.told["numbers"]) == 15


# --- the attempts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda a: a.id)
def test_an_attempt_reaches_nothing_outside(attempt: Any, behind: Process, control: Process) -> None:
    result, before = behind.told["attempts"][attempt.id], control.told["attempts"][attempt.id]
    assert behind.outside(result) == set(), result
    # The control: the same text, without the walls, gets out.
    assert control.outside(before), before
    if not any(token in attempt.source + attempt.after for token in FILES):
        # And it was not stopped by something else: inside its own process it did the same.
        assert result["inside"] == before["inside"], result


def test_there_is_a_result_for_every_attempt(processes: dict[str, Process]) -> None:
    for process in processes.values():
        assert set(process.told["attempts"]) == {a.id for a in ATTEMPTS}


def test_each_way_out_has_its_control(control: Process) -> None:
    missing = WAYS - control.outside(control.told["ways"])
    if os.geteuid() != 0:
        missing -= {"memory"}  # yama may forbid it to siblings
    assert missing == set()


def test_nothing_arrived_at_the_server(behind: Process, control: Process) -> None:
    """Seen from the other side: no connection, no datagram, no signal, from anything that was tried."""
    assert (behind.arrived, behind.signals) == ({}, 0)
    assert all(control.arrived[door] for door in DOORS)
    assert control.signals


# --- direct attacks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attack", DIRECT, ids=lambda a: a.id)
def test_an_attack_on_the_walls_gets_nothing(attack: Direct, behind: Process) -> None:
    assert behind.of(attack) == set()
    if attack.dies:
        text, code = behind.dead[attack.id]
        # Either it was refused and told so, or the kernel ended it (SIGSYS: calls of another architecture).
        assert code == -31 or json.loads(text)["outside"]["got"] == "None"


@pytest.mark.parametrize("attack", DIRECT, ids=lambda a: a.id)
def test_the_same_attack_succeeds_without_walls(attack: Direct, control: Process) -> None:
    if attack.needs == "x86_64" and platform.machine() != "x86_64":
        pytest.skip("machine code of x86_64")
    if attack.needs == "root" and os.geteuid() != 0:
        pytest.skip("only root could do it")
    if attack.needs == "kernel" and not control.of(attack):
        pytest.skip("this kernel does not do it for anybody")
    assert control.of(attack)


def test_there_are_many_and_all_differ() -> None:
    assert len({a.id for a in DIRECT}) == len({a.source for a in DIRECT}) == len(DIRECT) >= 100


# --- through the pool ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    """Real workers with a handler that runs whatever it is sent."""
    one = Pool("tests.support.pool_handler", bounds=dataclasses.replace(from_limits(), running=1, spares=1))
    yield one
    one.close()


class Bomb:
    """Whoever unpickles it makes a folder."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (self.path,)


TO_EVERY_DESCRIPTOR = """
import os
data = bytes.fromhex("{data}")
for fd in range(300):
    try:
        os.write(fd, data)
    except OSError:
        pass
"""


def garbage(folder: Path) -> dict[str, bytes]:
    """What a worker may send: pickles as multiprocessing frames them, and as our frames; noise; frames without end."""
    bomb = pickle.dumps(Bomb(str(folder / "unpickled")))
    return {
        "pickle": bomb,
        "pickle framed": len(bomb).to_bytes(4, "big") + bomb,
        "noise": bytes(range(1, 256)) * 3,
        "no JSON": (4).to_bytes(4, "big") + b"\xff\xfe{}",
        "no object": (2).to_bytes(4, "big") + b"[]",
        "no end": (1 << 30).to_bytes(4, "big") + b"{",
        "walls again": _framed({"ready": [["Files", True, "all is well"]]}),
    }


def _framed(message: Any) -> bytes:
    body = json.dumps(message).encode()
    return len(body).to_bytes(4, "big") + body


@pytest.mark.parametrize("kind", sorted(garbage(Path())))
def test_garbage_on_every_descriptor_is_a_broken_worker_and_nothing_more(pool: Pool, kind: str, tmp_path: Path) -> None:
    text = TO_EVERY_DESCRIPTOR.format(data=garbage(tmp_path)[kind].hex())
    ticket = pool.submit("stranger", {"wish": "script", "text": text})
    assert ticket.wait(60)
    assert isinstance(ticket.result, Stopped)
    assert ticket.result.reason is StopReason.DIED
    assert list(tmp_path.iterdir()) == []  # nobody unpickled it
    other = pool.submit("neighbour", {"wish": "echo", "text": "still here"})
    assert other.wait(60)
    assert isinstance(other.result, Done)
    assert other.result.answer["text"] == "still here"


def test_the_pickle_of_the_test_is_a_real_one(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Bomb(str(tmp_path / "unpickled"))))
    assert (tmp_path / "unpickled").is_dir()


FROM_A_WORKER = {
    "file": "value = open({file!r}).read()",
    "environment": "import os\nvalue = dict(os.environ)",
    "the server's environment": "value = open('/proc/{server}/environ').read() and {marker!r}",
    "the server's memory": "value = open('/proc/{server}/maps').read() and {marker!r}",
    "socket": "import socket\nvalue = socket.socket() and {marker!r}",
    "program": "import subprocess\nvalue = subprocess.check_output(['cat', {file!r}], text=True)",
    "signal": "import os\nos.kill({server}, 0)\nvalue = {marker!r}",
    "callback": (
        "import jax, jax.numpy as jnp\nfound = []\n"
        "jax.pure_callback(lambda v: found.append(open({file!r}).read()) or v, jnp.ones(2), jnp.ones(2))\nvalue = found"
    ),
}


@pytest.mark.parametrize("attack", FROM_A_WORKER)
def test_a_real_worker_stands_behind_the_same_walls(
    pool: Pool, attack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behind: Process
) -> None:
    """The order of things in the worker is right too: a callback runs on a thread that JAX started in the warm-up."""
    marker = f"planted-{secrets.token_hex(8)}"
    monkeypatch.setenv("CARRY_LAB_PLANTED", marker)
    (tmp_path / "file.txt").write_text(marker)
    text = FROM_A_WORKER[attack].format(file=str(tmp_path / "file.txt"), server=os.getpid(), marker=marker)
    here: dict[str, Any] = {}
    exec(text, here)
    assert marker in str(here["value"])  # the control: here it works
    ticket = pool.submit(attack, {"wish": "script", "text": text})
    assert ticket.wait(60)
    assert marker not in str(ticket.result)
    if isinstance(ticket.result, Done):
        assert attack == "environment"
    pool.release(attack)
    standing = {name: in_force for name, in_force, _ in pool.status().walls}
    assert standing[walls.FILES]
    assert standing[walls.CALLS]
