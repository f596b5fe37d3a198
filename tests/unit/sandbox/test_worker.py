"""One worker's parts, in this process: frames, the answer whatever happens, the alarm, the compiled programs it keeps."""

from __future__ import annotations

import itertools
import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from core.sandbox import channel, timeup, worker
from core.sandbox.compile_cache import Layered
from core.sandbox.timeup import TimeUp
from core.sandbox.words import FILENAME

LIMIT = 10_000


# --- frames ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def ends() -> Any:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


@pytest.mark.parametrize(
    "message", [{}, {"a": [1, 2.5, None, True]}, {"text": "c₀ \ud83d \x00"}, {"deep": {"er": "x" * 5000}}]
)
def test_a_message_comes_back_as_it_was(ends: Any, message: dict[str, Any]) -> None:
    ours, theirs = ends
    frame = channel.pack(message, LIMIT)
    for piece in itertools.batched(frame, 1_000):
        theirs.sendall(bytes(piece))
    theirs.sendall(frame)
    assert list(channel.Inbox(LIMIT).read(ours)) == [message, message]
    ours.sendall(frame)
    assert channel.receive(theirs.fileno(), LIMIT) == message


def test_half_a_frame_holds_up_nobody(ends: Any) -> None:
    ours, theirs = ends
    inbox = channel.Inbox(LIMIT)
    frame = channel.pack({"a": 1}, LIMIT)
    for piece in (frame[:2], frame[2:7]):
        theirs.sendall(piece)
        assert list(inbox.read(ours)) == []
    theirs.sendall(frame[7:])
    assert list(inbox.read(ours)) == [{"a": 1}]
    assert inbox.open
    theirs.close()
    assert (list(inbox.read(ours)), inbox.open) == ([], False)


def body(text: bytes) -> bytes:
    return len(text).to_bytes(4, "big") + text


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff", body(b"null"), body(b"[1]"), body(b"{"), body(b"\xff"), body(b'{"a": NaN}'),
        body(b'{"a": -Infinity}'), body(b"[" * 9_000), body(b'{"a":' + b"9" * 9_000 + b"}"),
        body(b"\x80\x04N."), (LIMIT + 1).to_bytes(4, "big"),
    ],
)  # fmt: skip
def test_what_is_no_frame_is_garbage(ends: Any, data: bytes) -> None:
    ours, theirs = ends
    theirs.sendall(data)
    with pytest.raises(channel.Garbage):
        list(channel.Inbox(LIMIT).read(ours))


def test_a_flood_is_not_read_beyond_the_limit(ends: Any) -> None:
    ours, theirs = ends
    theirs.setblocking(False)
    sent = theirs.send(body(b'{"a":1}') * 20_000)
    inbox = channel.Inbox(1_000)
    first = list(inbox.read(ours))
    assert 0 < len(first) * 11 <= sent
    assert len(inbox._data) < 11


def test_nan_and_what_is_too_long_are_not_packed() -> None:
    with pytest.raises(ValueError, match="JSON"):
        channel.pack({"a": float("nan")}, LIMIT)
    with pytest.raises(channel.TooLong) as caught:
        channel.pack({"a": "é" * 5_000}, LIMIT)
    assert caught.value.size > LIMIT


# --- the answer, whatever happens ------------------------------------------------------------------------------------


def answered(handle: Any, alarm: float = 5.0) -> dict[str, Any]:
    frame = worker._answer(handle, {"alarm": alarm, "request": {}}, LIMIT)
    return channel.unpack(frame[channel.HEADER :])


def raising(error: BaseException) -> Any:
    def handle(request: dict[str, Any]) -> dict[str, Any]:
        raise error

    return handle


def test_an_answer_and_its_wish_to_be_replaced() -> None:
    assert answered(lambda _: {"a": 1}) == {"answer": {"a": 1}, "retire": False}
    assert answered(lambda _: {"a": 1, "retire": True}) == {"answer": {"a": 1}, "retire": True}


@pytest.mark.parametrize(
    ("handle", "said"),
    [(raising(TimeUp()), {"time": True}), (raising(MemoryError()), {"memory": True}), (lambda _: {"a": "x" * LIMIT}, {"long": 0})],
)  # fmt: skip
def test_limits_are_told(handle: Any, said: dict[str, Any]) -> None:
    assert answered(handle).keys() == said.keys()


@pytest.mark.parametrize(
    "error", [KeyError("secret"), SystemExit("secret"), KeyboardInterrupt(), RecursionError("secret")]
)
def test_a_failure_of_ours_is_told_without_its_text(error: BaseException) -> None:
    said = answered(raising(error))
    assert said["failed"] == type(error).__name__
    assert any(place.startswith("core/sandbox/worker.py:") for place in said["at"])
    assert "secret" not in json.dumps(said)


def test_an_answer_that_holds_itself_is_a_failure() -> None:
    loop: dict[str, Any] = {}
    loop["loop"] = loop
    assert answered(lambda _: loop)["failed"] == "ValueError"


def test_the_alarm_stops_a_handler_and_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(request: dict[str, Any]) -> dict[str, Any]:
        while True:
            pass

    start = time.monotonic()
    assert answered(endless, 0.1) == {"time": True}
    assert time.monotonic() - start < 1.0
    assert answered(lambda _: {}, 0.1) == {"answer": {}, "retire": False}
    time.sleep(0.15)  # nothing rings
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


# --- the alarm -------------------------------------------------------------------------------------------------------


def run(text: str, names: dict[str, Any] | None = None) -> None:
    exec(compile(text, FILENAME, "exec"), names if names is not None else {})


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # what scripts swallow, Python tells
@pytest.mark.parametrize(
    "text",
    [
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass\n",
        "def f():\n    try:\n        while True: pass\n    finally:\n        while True: pass\nf()\n",
        "def f():\n    while True:\n        try:\n            yield 1\n        except BaseException: pass\nfor _ in f(): pass\n",
        "import contextlib\nwith contextlib.suppress(BaseException):\n    while True: pass\nwhile True: pass\n",
        "class D:\n    def __del__(self):\n        while True: pass\nD()\nwhile True: pass\n",
    ],
)
def test_a_script_cannot_keep_the_alarm_off(text: str) -> None:
    start = time.monotonic()
    timeup.arm(0.1)
    try:
        with pytest.raises(TimeUp):
            run(text)
    finally:
        timeup.arm(0)
    assert time.monotonic() - start < 3.0


def test_our_own_code_is_left_alone_once_it_caught_the_alarm() -> None:
    timeup.arm(0.05)
    try:
        with pytest.raises(TimeUp):
            run("while True: pass")
        time.sleep(0.2)
        names: dict[str, Any] = {}
        with pytest.raises(TimeUp):  # but what is run of the script again, is not
            run("import time\nfor i in range(200): time.sleep(0.01)\n", names)
        assert names["i"] < 150
    finally:
        timeup.arm(0)


# --- a crash says where ----------------------------------------------------------------------------------------------


def test_a_report_of_a_stack_names_the_line_of_the_script_that_is_innermost(tmp_path: Path) -> None:
    from core.sandbox.pool_process import _SCRIPT_LINE

    text = "import faulthandler\ndef f():\n    faulthandler.dump_traceback(file=out)\ndef g():\n    f()\ng()\n"
    with (tmp_path / "out").open("w+") as out:
        run(text, {"out": out})
    found = _SCRIPT_LINE.search((tmp_path / "out").read_bytes())
    assert found is not None
    assert int(found[1]) == 3


# --- compiled programs -----------------------------------------------------------------------------------------------


def test_programs_are_read_from_the_folder_and_kept_in_memory_up_to_a_limit(tmp_path: Path) -> None:
    (tmp_path / "there-cache").write_bytes(b"program")
    cache = Layered(tmp_path, 100)
    assert (cache.get("there"), cache.get("else")) == (b"program", None)
    for i in range(10):
        cache.put(f"k{i}", bytes(20))
        assert cache.get("k0") is not None  # used, so that others go first
    cache.put("large", bytes(101))
    assert [k for k in (f"k{i}" for i in range(10)) if cache.get(k) is not None] == ["k0", "k6", "k7", "k8", "k9"]
    assert cache.get("large") is None
    assert [file.name for file in tmp_path.iterdir()] == ["there-cache"]
    assert Layered(None, 100).get("there") is None


COUNT = """
import sys, pathlib, jax, jax.numpy as jnp
from core.sandbox import compile_cache
hits = []
jax.monitoring.register_event_listener(lambda name, **_: hits.append(name) if name.endswith("cache_hits") else None)
folder = pathlib.Path(sys.argv[1])
(compile_cache.fill if sys.argv[2] == "fill" else compile_cache.use)(folder)
for _ in range(2):
    print(float(jax.jit(lambda x: jnp.tanh(x) * 3)(jnp.arange(4.0)).sum()))
    print(float(jax.jit(lambda x: jnp.tanh(x) * int(sys.argv[3]))(jnp.arange(5.0)).sum()))
print(len(hits), len(list(folder.glob("*-cache"))))
"""


def test_workers_use_what_was_filled_and_add_nothing_to_it(tmp_path: Path) -> None:
    def process(*arguments: str) -> tuple[int, int]:
        done = subprocess.run([sys.executable, "-c", COUNT, str(tmp_path), *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        hits, files = done.stdout.split()[-2:]
        return int(hits), int(files)

    _, files = process("fill", "4")
    assert files > 0
    hits, after = process("use", "4")
    again, unchanged = process("use", "5")
    assert (after, unchanged) == (files, files)
    assert hits >= files
    assert again >= files - 1  # the one program that is new is found the second time, in memory
