"""Runs the attempts and attacks as plain Python in two worker processes: behind the walls, and, as a control, without.

Started by test_in_worker.py with the tokens on standard input; prints one line of JSON for each process. It is a fork
server as the pool's is: everything imported, one thread, an open file, a secret in its environment.

An attempt of attempts.py gets at its own process: there the key is planted, where the other tests plant the marker.
Whoever has the key (`seen`, `got`, what was printed) has the interpreter, and goes on to `Reach` for what lies outside:
the marker itself, which is in no memory of this process. So each says which of two things it did: `inside`, and `outside`.
What `ONLY_IN_THE_LANGUAGE` names attacks objects of ours that plain Python does not have: it runs in the step language
with its guard off.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import io
import json
import os
import pickle
import platform
import signal
import socket
import subprocess
import sys
import time
import traceback
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flax.nnx as nnx
import jax
import jax.numpy as jnp
import numpy as np
import optax  # noqa: F401  # imported before the fork, as in the pool's
import pytest
from flax.nnx import graphlib

from core.sandbox import walls
from core.sandbox.facade import environment
from core.sandbox.guards import Guards
from core.sandbox.libc import call
from core.sandbox.output import Output
from core.sandbox.policy import Compiled, compile_script
from tests.escapes.attempts import ATTEMPTS
from tests.escapes.direct import DIRECT, NUMBERS, Direct
from tests.escapes.guards_off import switch_off

#: Our own objects, or our own functions in the place of Python's.
ONLY_IN_THE_LANGUAGE = frozenset(
    "facade_namespace_table facade_config_inside facade_environ_inside fstring_lambda setting_that_names_a_path".split()
)
KEY = "key-of-this-process-" + "k" * 20
WORKED = "it-worked"
_NUMBER = {"x86_64": 0, "aarch64": 1}.get(platform.machine(), 0)

Tokens = dict[str, str]


class Unpickled:
    """Pickles to a lookup of the key."""

    def __reduce__(self) -> Any:
        return eval, ("__planted__",)


class Reach:
    """All the ways out, each by itself. What a way gave is kept as text; an error means that it is closed."""

    WAYS = ("file", "environ", "memory", "write", "tcp", "udp", "unix", "abstract", "program", "fork", "signal")

    def __init__(self, tokens: Tokens, ways: tuple[str, ...]) -> None:
        self.t = tokens
        self.ways = ways
        self.found: dict[str, str] = {}

    def __call__(self) -> None:
        for name in self.ways:
            with contextlib.suppress(OSError):
                self.found[name] = str(getattr(self, name)())

    def file(self) -> str:
        return Path(self.t["FILE"]).read_text()

    def environ(self) -> str:
        return Path(f"/proc/{self.t['PID']}/environ").read_bytes().decode(errors="replace")

    def memory(self) -> str:
        with Path(f"/proc/{self.t['PID']}/mem").open("rb", 0) as memory:
            memory.seek(int(self.t["REMOTE"]))
            return memory.read(99).decode(errors="replace")

    def write(self) -> str:
        Path(self.t["OUT"]).write_text("x")
        return WORKED

    def tcp(self) -> str:
        socket.create_connection(("127.0.0.1", int(self.t["TCP"])), timeout=5).close()
        return WORKED

    def udp(self) -> str:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"x", ("127.0.0.1", int(self.t["UDP"])))
        return WORKED

    def unix(self) -> str:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.t["UNIX"])
        return WORKED

    def abstract(self) -> str:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect("\0" + self.t["ABSTRACT"])
        return WORKED

    def program(self) -> str:
        return subprocess.check_output(["cat", self.t["FILE"]], text=True)

    def fork(self) -> str:
        pid = os.fork()
        if not pid:
            os._exit(0)
        os.waitpid(pid, 0)
        return WORKED

    def signal(self) -> str:
        os.kill(int(self.t["PID"]), signal.SIGUSR1)
        return WORKED


class Seen(list[Any]):
    """Reaches out there and then, on the thread that appends to it: a callback's may be one of JAX's."""

    def __init__(self, reach: Reach) -> None:
        super().__init__()
        self.reach = reach

    def append(self, value: Any) -> None:
        super().append(value)
        self.reach()


class PlantedClass:
    """A class of a library, as a script finds it."""

    def __lt__(self, other: object) -> bool:
        return False


class Planted:
    """The key, everywhere in this process that an attempt may look for it."""

    def __init__(self, tokens: Tokens) -> None:
        self.ways = Reach.WAYS
        self.memory = ctypes.create_string_buffer(KEY.encode(), len(KEY))
        for _ in range(1000):  # arrays of objects made of bytes give back references that they never took
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(KEY))
        builtins.__planted__ = KEY
        sys.modules["planted"] = types.ModuleType(KEY)
        nnx.planted_module = types.ModuleType(KEY)
        jnp.linspace.__globals__["planted_name"] = KEY
        own = {
            "MARKER": KEY,
            "CODES": ", ".join(str(n) for n in KEY.encode()),
            "ADDRESS": str(ctypes.addressof(self.memory)),
            "LEN": str(len(KEY)),
            "ID": str(id(KEY)),
            "WORKED": WORKED,
        }
        self.tokens = tokens | own

    def names(self, seen: Seen) -> dict[str, Any]:
        builtins.seen = seen
        return {
            "__name__": "__main__",
            "seen": seen,
            "planted_class": type("PlantedClass", (PlantedClass,), {}),
            "first_byte": np.frombuffer(self.memory, np.uint8)[:1],
            "planted_rule": lambda primals, tangents: (primals[0], primals[0] * 0 + 7321.5),
            "planted_flatten": lambda value: ((), KEY),
            "planted_unflatten": lambda aux, parts: None,
            "planted_static": graphlib.StaticElem,
            "planted_list": [KEY],
            "__planted_list__": [KEY],
            "ctypes": ctypes,
            "c": ctypes.CDLL(None, use_errno=True),
            "raw": lambda name, *values: call(NUMBERS[name][_NUMBER], *values),
            "checked": checked,
        }

    def fill(self, source: str) -> str:
        for token, value in self.tokens.items():
            source = source.replace(f"@{token}@", value)
        return source


def execute(source: str, names: dict[str, Any], guard: str = "") -> None:
    """Plain Python; with a guard named, the step language without it."""
    if not guard:
        exec(compile(source, "<script>", "exec", dont_inherit=True), names)
        return
    with pytest.MonkeyPatch.context() as patch:
        switch_off(guard, patch)
        compiled = compile_script(source)
        assert isinstance(compiled, Compiled), compiled
        guards = Guards()
        here = environment(guards, out=Output())
        here["__builtins__"]["__planted__"] = KEY
        before = jax.config.jax_compilation_cache_dir
        jax.config.update("jax_compilation_cache_dir", KEY)
        try:
            for statement in compiled.statements:
                exec(statement, here)
            names["got"] = here.get("got")
        finally:
            jax.config.update("jax_compilation_cache_dir", before)
            guards.close()  # it takes the names away


def checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def run(planted: Planted, source: str, after: str = "", guard: str = "") -> dict[str, Any]:
    """What became of one script: whether it got the key, what it got from outside, and its exception."""
    reach = Reach(planted.tokens, planted.ways)
    seen, stdout, error = Seen(reach), io.StringIO(), ""
    names = planted.names(seen)
    for text in (source, after) if after else (source,):
        try:
            with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(io.StringIO()):
                execute(planted.fill(text), names, guard)
                jax.effects_barrier()
        except (Exception, SystemExit) as raised:
            error = f"{type(raised).__name__}: {raised}"[:200]
    got = names.get("got")
    got = got.decode(errors="replace") if isinstance(got, bytes) else str(got)
    texts = [got, stdout.getvalue(), *map(str, seen)]
    inside = any(KEY in text for text in texts)
    if inside:
        reach()
    out = Path(planted.tokens["OUT"])
    left = list(out.parent.glob(out.name + "*"))
    for path in left:
        _remove(path)
    outside = reach.found | {"got": got[:400]} | ({"left": ", ".join(p.name for p in left)} if left else {})
    return {"inside": inside, "outside": outside, "error": error}


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        for child in path.iterdir():
            _remove(child)
        path.rmdir()
    else:
        path.unlink()


def compute() -> list[float]:
    """Most of what scripts make JAX do, as numbers: compile, threads, lazy imports, x64, callbacks, linear algebra."""
    cell = nnx.LSTMCell(3, 5, rngs=nnx.Rngs(0))
    carry, xs = cell.initialize_carry((2, 3), nnx.Rngs(0)), jnp.linspace(-1, 1, 36).reshape(6, 2, 3)
    scan = jax.jit(lambda c, xs: jax.lax.scan(lambda c, x: cell(c, x), c, xs))
    matrix = jnp.sin(jnp.arange(36.0)).reshape(6, 6)
    with jax.enable_x64(True):
        wide = float(jnp.sum(jnp.linspace(0, 1, 7, dtype=jnp.float64) ** 3))
    values = [
        scan(carry, xs)[1].sum(),
        jax.grad(lambda xs: scan(carry, xs)[1].sum())(xs).sum(),
        jax.vmap(jnp.sort)(matrix)[:, 0].sum(),
        jnp.abs(jnp.fft.fft(matrix[0])).sum(),
        jnp.linalg.eigvalsh(matrix @ matrix.T).sum(),
        jnp.linalg.svd(matrix, compute_uv=False).sum(),
        jnp.linalg.inv(matrix + 9 * jnp.eye(6)).sum(),
        jax.random.normal(jax.random.key(1), (9,)).sum(),
        (jnp.ones((300, 300)) @ jnp.ones((300, 300))).sum(),
        jax.pure_callback(lambda v: v * 2, jnp.ones(3), jnp.ones(3)).sum(),
        jax.scipy.special.gammaln(matrix[0] + 3).sum(),
        np.linalg.svd(np.asarray(matrix))[1].sum(),
        np.fft.fft(np.asarray(matrix[0])).real.sum(),
        nnx.RNN(cell)(xs).sum(),
    ]
    try:
        jax.lax.scan(lambda c, x: (jnp.concatenate([c, x[None]]), c), jnp.zeros(1), jnp.zeros(3))
    except TypeError as error:  # on its way JAX looks at files and at the working directory
        wide += len(traceback.format_exception(error)) > 1
    return [*map(float, values), wide]


def work(tokens: Tokens, channel: int, behind: bool) -> dict[str, Any]:
    rows = walls.enforce(keep_fds=(channel,), memory_bytes=1_500_000_000).rows if behind else ()
    warnings.simplefilter("ignore")
    start = time.process_time()
    told: dict[str, Any] = {"rows": [list(row) for row in rows], "numbers": compute()}
    planted = Planted(tokens)
    if not behind:
        # Each way has one control; after that the first one is enough, and forks and programs would take minutes.
        told["ways"] = run(planted, "seen.append(__planted__)")
        planted.ways = Reach.WAYS[:1]
    ours = [a for a in ATTEMPTS if a.id in ONLY_IN_THE_LANGUAGE]
    told["attempts"] = {a.id: run(planted, a.source, a.after) for a in ATTEMPTS if a not in ours}
    # After the others: the step language closes some of Flax's doors for good.
    told["attempts"] |= {a.id: run(planted, a.source, a.after, a.guard) for a in ours}
    told["direct"] = {d.id: run(planted, d.source) for d in DIRECT if not d.dies}
    told["seconds"] = time.process_time() - start
    return told


def work_and_die(tokens: Tokens, channel: int, behind: bool, attack: Direct) -> dict[str, Any]:
    os.dup2(channel, 1)
    if behind:
        walls.enforce(keep_fds=(channel,), memory_bytes=1_500_000_000)
    return run(Planted(tokens), attack.source)


def forked(job: Callable[[int], dict[str, Any]]) -> tuple[str, int]:
    """What a child wrote, and its wait status (a negative signal, or its exit code)."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read)
        try:
            told = json.dumps(job(write)).encode()
            while told:
                told = told[os.write(write, told) :]
        except BaseException as error:
            os.write(write, f"{type(error).__name__}: {error}".encode())
            os._exit(1)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read().decode(errors="replace")
    return text, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main() -> None:
    tokens: Tokens = json.loads(sys.stdin.readline())
    signals: list[int] = []
    signal.signal(signal.SIGUSR1, lambda number, _: signals.append(number))
    os.dup2(os.open(tokens["FILE"], os.O_RDONLY), 150)  # left open, as by a library
    np.save(tokens["NPY_NUMBERS"], np.arange(3))
    with Path(tokens["PICKLE"]).open("wb") as out:
        pickle.dump(Unpickled(), out)
    for line in sys.stdin:
        behind = line.strip() == "behind"
        text, code = forked(lambda channel, behind=behind: work(tokens, channel, behind))
        dead = {
            d.id: forked(lambda channel, d=d, behind=behind: work_and_die(tokens, channel, behind, d))
            for d in DIRECT
            if d.dies
        }
        print(json.dumps({"text": text, "code": code, "dead": dead, "signals": len(signals)}), flush=True)
        signals.clear()


if __name__ == "__main__":
    main()
