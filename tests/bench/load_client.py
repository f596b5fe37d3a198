"""Many sessions at once against a running app, over the real protocol: how long each rerun takes, and whose values it shows.

    python -m tests.bench.load_client http://127.0.0.1:8501 --page lstm --widget lstm_seed --high 1000000 --digits 0 \
        --probe 'nnx\\.Rngs\\((\\d+)\\) draws' --sessions 50 --changes 15 --think 2

Each session has a websocket of its own, runs the script once, and then moves one widget again and again, to values that
no other session has. A change is timed from the request to the message that its run is over. After each change the
session's own value must stand in what was drawn: whatever else stands there is somebody else's.

Exit status: 0 all well, 1 failed sessions, other sessions' values, or exceptions on a page. Only this machine is loaded.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ipaddress
import json
import random
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.bench.memory import Memory
from tests.support.session import AppError, Run, Session


@dataclass(frozen=True, slots=True)
class Load:
    """What is to be done.

    Attributes:
        url: of the app.
        widget: label, key or id of a widget.
        probe: a regular expression; its first group, in what a run draws, is the value that the run used.
        page, query: of the link.
        sessions, changes: how many, and how many changes each.
        low, high, digits: values are from here, written with so many digits.
        think: seconds between two changes of a session, at random from half to one and a half of it; 0 pushes.
        ramp: seconds between two sessions at the start.
        timeout: seconds of one run.
        pid: of the server, for its memory and CPU.
    """

    url: str
    widget: str
    probe: str
    page: str = ""
    query: str = ""
    sessions: int = 10
    changes: int = 20
    low: float = 0.0
    high: float = 1.0
    digits: int = 4
    think: float = 0.5
    ramp: float = 0.02
    timeout: float = 60.0
    pid: int | None = None


@dataclass(slots=True)
class Outcome:
    """What came of it.

    Attributes:
        first: seconds of each session's first run.
        reruns: every change's run.
        wrong: sentences about values that were not the session's own.
        errors: sentences about sessions that broke off.
        seconds: of all changes together.
        memory: of the server in MB: before, at most, after.
        cpu: seconds of the server's processor, of the changes.
    """

    first: list[float] = field(default_factory=list)
    reruns: list[Run] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    seconds: float = 0.0
    memory: tuple[float, float, float] = (0.0, 0.0, 0.0)
    cpu: float = 0.0

    def p(self, share: float) -> float:
        """Milliseconds of a change at this percentile."""
        return 1e3 * percentile([run.seconds for run in self.reruns], share)


def percentile(values: Sequence[float], share: float) -> float:
    """That one of the values, sorted; 0 where there are none."""
    ordered = sorted(values)
    return ordered[round(share / 100 * (len(ordered) - 1))] if ordered else 0.0


def unique_values(load: Load) -> list[list[float]]:
    """For each session the values of its changes: none twice.

    Raises:
        ValueError: so many do not fit.
    """
    total = load.sessions * load.changes
    step = (load.high - load.low) / (total + 1)
    values = [round(load.low + step * (i + 1), load.digits) for i in range(total)]
    if len(set(values)) != total:
        raise ValueError(f"{total} values do not fit [{load.low}, {load.high}] at {load.digits} digits")
    random.Random(0).shuffle(values)
    return [values[i :: load.sessions] for i in range(load.sessions)]


def foreign(shown: Sequence[float], value: float, digits: int) -> bool:
    """Whether what is shown is not this value, and this alone."""
    return not shown or any(abs(one - value) > 0.5000001 * 10**-digits for one in shown)


async def drive(index: int, values: Sequence[float], load: Load, ready: asyncio.Barrier, outcome: Outcome) -> None:
    """One session from its first run to its last."""
    probe, rng = re.compile(load.probe), random.Random(index)
    try:
        async with contextlib.AsyncExitStack() as stack:
            try:
                session = await stack.enter_async_context(Session(load.url, load.page, load.query, load.timeout))
                first = await session.rerun()
                outcome.first.append(first.seconds)
                if first.exceptions:
                    raise AppError(first.exceptions[0])
            finally:  # a session that failed must not keep the others waiting
                await ready.wait()
            await asyncio.sleep(rng.uniform(0, load.think))
            for value in values:
                run = await session.change(session.find(load.widget), value)
                outcome.reruns.append(run)
                if run.exceptions:
                    raise AppError(run.exceptions[0])
                shown = [float(match) for text in run.text for match in probe.findall(text)]
                if foreign(shown, value, load.digits):
                    outcome.wrong.append(f"session {index} sent {value}, its page shows {shown}")
                await asyncio.sleep(load.think * rng.uniform(0.5, 1.5))
    except Exception as error:  # a session that fails is a result
        outcome.errors.append(f"session {index}: {type(error).__name__}: {error}")


async def run(load: Load) -> Outcome:
    """All of it."""
    outcome, memory = Outcome(), Memory(load.pid)
    before = memory.rss()
    sampler = asyncio.create_task(memory.sample())
    ready = asyncio.Barrier(load.sessions + 1)
    tasks = []
    for index, values in enumerate(unique_values(load)):
        tasks.append(asyncio.create_task(drive(index, values, load, ready, outcome)))
        await asyncio.sleep(load.ramp)
    await ready.wait()
    start, cpu = time.perf_counter(), memory.cpu_seconds()
    await asyncio.gather(*tasks)
    outcome.seconds = time.perf_counter() - start
    sampler.cancel()
    outcome.memory = (before, max(memory.samples, default=0.0), memory.rss())
    outcome.cpu = memory.cpu_seconds() - cpu
    return outcome


def summary(load: Load, outcome: Outcome) -> dict[str, Any]:
    """The outcome in numbers."""
    reruns = max(1, len(outcome.reruns))
    return {
        "sessions": load.sessions,
        "changes": len(outcome.reruns),
        "expected_changes": load.sessions * load.changes,
        "first_run_ms": {f"p{p}": round(1e3 * percentile(outcome.first, p), 1) for p in (50, 95, 100)},
        "rerun_ms": {f"p{p}": round(outcome.p(p), 1) for p in (50, 95, 99, 100)},
        "reruns_per_s": round(len(outcome.reruns) / max(outcome.seconds, 1e-9), 1),
        "kib_per_rerun": round(sum(one.bytes for one in outcome.reruns) / 1024 / reruns, 1),
        "foreign_values": len(outcome.wrong),
        "errors": len(outcome.errors),
        "samples": (outcome.errors + outcome.wrong)[:5],
        "server_mb": dict(zip(("before", "peak", "after"), map(round, outcome.memory), strict=True)),
        "server_cpu_s": round(outcome.cpu, 2),
    }


def _load_of(arguments: Sequence[str] | None) -> tuple[Load, str | None]:
    usual = asdict(Load("", "", ""))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--widget", required=True)
    parser.add_argument("--probe", required=True)
    for name, kind in (("page", str), ("query", str), ("sessions", int), ("changes", int), ("low", float)):
        parser.add_argument(f"--{name}", type=kind, default=usual[name])
    for name, kind in (("high", float), ("digits", int), ("think", float), ("ramp", float), ("timeout", float)):
        parser.add_argument(f"--{name}", type=kind, default=usual[name])
    parser.add_argument("--pid", type=int)
    parser.add_argument("--json")
    options = vars(parser.parse_args(arguments))
    host = urlsplit(options["url"]).hostname or ""
    if host != "localhost" and not ipaddress.ip_address(host).is_loopback:
        parser.error("only this machine may be loaded")
    path = options.pop("json")
    return Load(**options), path


def main(arguments: Sequence[str] | None = None) -> int:
    """From the command line."""
    load, path = _load_of(arguments)
    outcome = asyncio.run(run(load))
    text = json.dumps(summary(load, outcome), indent=2)
    print(text)
    if path:
        Path(path).write_text(text, encoding="utf-8")
    return int(bool(outcome.errors or outcome.wrong or len(outcome.reruns) < load.sessions * load.changes))


if __name__ == "__main__":
    sys.exit(main())
