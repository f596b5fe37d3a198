"""A handler for tests of the pool: it does what the request says, good or bad, as plain Python in the worker."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from typing import Any

from core.sandbox.words import FILENAME

#: How the first request is made quick: nothing to do here.
WARMED: list[float] = []
#: What a request left in the worker: shows whether another session meets the same process.
KEPT: dict[str, Any] = {}


def warm() -> None:
    WARMED.append(time.monotonic())


def handle(request: dict[str, Any]) -> dict[str, Any]:
    return globals()["do_" + request["wish"]](request)


def do_echo(request: dict[str, Any]) -> dict[str, Any]:
    return {"pid": os.getpid(), "text": request.get("text", ""), "warmed": len(WARMED)}


def do_keep(request: dict[str, Any]) -> dict[str, Any]:
    before = dict(KEPT)
    KEPT[request["name"]] = True
    return {"pid": os.getpid(), "before": before}


def do_sleep(request: dict[str, Any]) -> dict[str, Any]:
    start = time.monotonic()
    time.sleep(request["seconds"])
    return {"pid": os.getpid(), "start": start, "end": time.monotonic()}


def do_spin(request: dict[str, Any]) -> dict[str, Any]:
    """Computes for so many seconds of wall clock."""
    start = time.monotonic()
    while time.monotonic() < start + request["seconds"]:
        pass
    return {"pid": os.getpid(), "start": start, "end": time.monotonic()}


def do_script(request: dict[str, Any]) -> dict[str, Any]:
    """Runs a text as if it were a script, without its sandbox."""
    names: dict[str, Any] = {"time": time}
    exec(compile(request["text"], FILENAME, "exec"), names)
    return {"value": names.get("value")}


def do_hog(request: dict[str, Any]) -> dict[str, Any]:
    """Takes memory, 16 MB at a time, up to so many."""
    held = []
    for _ in range(request["megabytes"] // 16):
        held.append(bytearray(b"x" * (1 << 24)))
        time.sleep(0.005)
    return {"held": len(held)}


def do_crash(request: dict[str, Any]) -> dict[str, Any]:
    ctypes.string_at(0)
    return {}


def do_exit(request: dict[str, Any]) -> dict[str, Any]:
    os._exit(0)


def do_fail(request: dict[str, Any]) -> dict[str, Any]:
    raise KeyError("what the learner typed: secret")


def do_long(request: dict[str, Any]) -> dict[str, Any]:
    return {"text": "x" * request["size"]}


def do_nan(request: dict[str, Any]) -> dict[str, Any]:
    return {"value": float("nan")}


def do_retire(request: dict[str, Any]) -> dict[str, Any]:
    return {"pid": os.getpid(), "retire": True}


def do_raw(request: dict[str, Any]) -> dict[str, Any]:
    """Writes bytes of its own on the channel, as a script that broke out would."""
    for fd in range(3, 64):
        try:
            os.write(fd, bytes.fromhex(request["hex"]))
        except OSError:
            continue
    time.sleep(request.get("seconds", 5))
    return {}


def do_environment(request: dict[str, Any]) -> dict[str, Any]:
    return {"names": sorted(os.environ), "modules": "jax" in sys.modules, "main": sys.modules["__main__"].__name__}
