"""What a class at the Doctor waits for: runs, second runs, verdicts, shapes, fixes, hostile scripts; beside the targets.

    python -m tests.bench.bench_doctor [part …]        # parts: first class warm hostile, by default all

or all benchmarks with ``make bench``. Everything goes through a pool with its walls, as on the page. Numbers are of this
machine and of what else it does: the load is printed beside them. Nothing here fails: what is missed is marked.
"""

from __future__ import annotations

import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import jax
import psutil
import pytest

from core.sandbox.pool import Bounds, Done, Pool, Stopped, Ticket, from_limits
from tests.bench.table import record
from tests.escapes import ordinary_nets, ordinary_scan
from tests.unit.doctor.clean import CLEAN

CATALOGUE = Path(__file__).resolve().parents[2] / "core" / "catalogue" / "examples"
PEOPLE, WITHIN, LONG = 40, 3.0, 120.0

#: Twenty lines, nothing wrong; `{h}` and `{t}` are sizes.
TWENTY = """
import jax
import jax.numpy as jnp
from flax import nnx

T, B, F, H = {t}, 2, 3, {h}
cell = nnx.LSTMCell(F, H, rngs=nnx.Rngs(0))
xs = jax.random.normal(jax.random.key(1), (T, B, F))
init = cell.initialize_carry((B, F), rngs=nnx.Rngs(2))


def step(carry, x):
    carry, h = cell(carry, x)
    return carry, h.mean()


(c, h), ys = jax.lax.scan(step, init, xs)
scale = jnp.linspace(0.5, 1.0, T)
total = (ys * scale).sum()
print(c.shape, h.shape, ys.shape)
print(total)
"""

HEAD = "import jax, jax.numpy as jnp\nfrom jax import lax\n"
HOSTILE = {
    "while True": "while True:\n    pass\n",
    "while True, caught": "while True:\n    try:\n        while True: pass\n    except BaseException: pass\n",
    "10**9 turns": "t = 0\nfor i in range(10**9):\n    t += i\n",
    "10**10 in one call": "print(sum(range(10**10)))\n",
    "zeros((10**6, 10**6))": HEAD + "print(jnp.zeros((10**6, 10**6)).sum())\n",
    "arrays until it bursts": HEAD + "kept = []\nwhile True:\n    kept.append(jnp.ones((2048, 2048)))\n",
    "lists until it bursts": "kept = []\nwhile True:\n    kept.append([0] * 100_000)\n",
    "compile bomb": HEAD + "def f(x):\n    for i in range(20_000):\n        x = jnp.sin(x) @ x + i\n    return x\n"
    "print(jax.jit(f)(jnp.ones((3, 3))))\n",
    "unrolled bomb": HEAD + "print(lax.scan(lambda c, x: (c + x, c), 0.0, jnp.ones(100_000), unroll=100_000))\n",
    "print flood": "while True:\n    print('x' * 1000)\n",
    "one long print": "print('x' * 10**9)\n",
    "deep recursion": "def f(n):\n    return f(n + 1)\nf(0)\n",
    "recursion through jax": HEAD + "def f(x):\n    return jax.vmap(f)(x[None])[0]\nf(jnp.ones(2))\n",
    "products of a minute": HEAD + "a = jnp.ones((6000, 6000))\nfor _ in range(1000):\n    a = a @ a\nprint(a)\n",
}  # fmt: skip


def scripts() -> list[str]:
    """Forty different ones: clean and broken, plain scans and networks."""
    clean = [*CLEAN.values(), *ordinary_scan.PROGRAMS.values(), *ordinary_nets.PROGRAMS.values()]
    broken = broken_scripts()
    return [*clean[:14], *clean[-12:], *broken[:14]][:PEOPLE]


def broken_scripts() -> list[str]:
    """The catalogue's bad examples."""
    return [file.read_text() for file in sorted(CATALOGUE.glob("[A-Z]*/bad.py"))]


# --- measuring -------------------------------------------------------------------------------------------------------


def report(what: str, times: list[float], target: float | None = None, note: str = "") -> None:
    """Median, 95th percentile and the worst, in ms, and whether the target for p95 is met."""
    p95 = statistics.quantiles(times, n=20, method="inclusive")[18] if len(times) > 1 else times[0]
    verdict = "" if target is None else f"  target p95 {target:7.0f}  {'met' if p95 <= target else 'MISSED'}"
    median, worst = statistics.median(times), max(times)
    print(f"{what:44}{median:8.0f}{p95:8.0f}{worst:8.0f}{verdict}{'  ' * bool(note)}{note}", flush=True)
    if target is not None:
        record(f"Doctor, {what.strip()}: p95", p95, "ms", target)


def ask(pool: Pool, session: str, wish: str, text: str) -> Ticket:
    return pool.submit(session, {"wish": wish, "text": text})


def ms(pool: Pool, session: str, wish: str, text: str) -> float:
    """How long a person waits for one answer. Whatever is none is said."""
    start = time.perf_counter()
    ticket = ask(pool, session, wish, text)
    assert ticket.wait(LONG)
    if not isinstance(ticket.result, Done):
        print(f"    NOT ANSWERED ({wish}): {ticket.result} {pool.status().failed}")
    return (time.perf_counter() - start) * 1e3


@contextmanager
def opened(bounds: Bounds | None = None) -> Iterator[Pool]:
    """A pool whose spares are warm."""
    pool = Pool(bounds=bounds)
    try:
        settle(pool)
        yield pool
    finally:
        pool.close()


def used(pool: Pool) -> float:
    """CPU seconds of the fork server, its workers that live, and those that ended."""
    server = pool._starter.server
    assert server is not None
    family = [psutil.Process(server._process.pid)]
    family += family[0].children()
    times = [process.cpu_times() for process in family]
    return sum(t.user + t.system for t in times) + times[0].children_user + times[0].children_system


def settle(pool: Pool) -> None:
    """Wait until nothing warms up and the folder of programs is filled."""
    quiet = 0
    while quiet < 5:
        status = pool.status()
        quiet = quiet + 1 if status.warming == 0 and status.spare and pool._filler is None else 0
        time.sleep(0.1)


def head(title: str) -> None:
    """The head of a table, with what the machine gives us while other things run on it."""
    share = statistics.median(share_of_a_core() for _ in range(5))
    said = f"(ms; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}: a busy process gets {share:.0%} of one)"
    print(f"\n{title:44}{'median':>8}{'p95':>8}{'worst':>8}   {said}", flush=True)


def share_of_a_core() -> float:
    """CPU time over wall-clock time of a busy loop; well under 1, and every time below is longer than it would be."""
    wall, cpu = time.perf_counter(), time.process_time()
    while time.process_time() - cpu < 0.1:
        pass
    return (time.process_time() - cpu) / (time.perf_counter() - wall)


# --- parts -----------------------------------------------------------------------------------------------------------


def first() -> None:
    """The first use after start: a page is opened while the server starts, and someone presses Run when it is there."""
    head("First use after start")
    for loading in (3.0, 5.0):
        began = time.perf_counter()
        pool = Pool()
        pool.reserve("a")
        time.sleep(loading)
        one = ms(pool, "a", "check", TWENTY.format(t=5, h=4))
        ready = time.perf_counter() - began
        two = [ms(pool, "a", "check", TWENTY.format(t=5, h=4)) for _ in range(5)]
        late = one - statistics.median(two)
        report(
            f"first run, {loading:.0f} s after the server's start", [one], 1000.0, f"{late:.0f} more than later ones"
        )
        pool.close()
        print(f"    answered {ready:.1f} s after the start")


def press(pool: Pool, texts: list[str], within: float) -> list[float]:
    """Everyone presses Run, one after the other within so many seconds; how long each waits."""
    waited, cpu = [0.0] * len(texts), used(pool)
    reasons: list[str] = []

    def person(i: int) -> None:
        start = time.perf_counter()
        ticket = ask(pool, f"person {i}", "check", texts[i])
        ticket.wait(LONG)
        waited[i] = (time.perf_counter() - start) * 1e3
        if isinstance(ticket.result, Stopped):
            reasons.append(f"{i}: {ticket.result.reason} after {ticket.result.seconds:.1f} s")

    threads = [threading.Thread(target=person, args=(i,)) for i in range(len(texts))]
    for thread in threads:
        thread.start()
        time.sleep(within / len(texts))
    for thread in threads:
        thread.join()
    cpu = used(pool) - cpu
    print(f"    {cpu:.0f} s of CPU: {cpu / os.cpu_count():.1f} s of this machine, if it had nothing else to do")
    if reasons:
        print(f"    NOT ANSWERED: {reasons}")
    return waited


def a_class() -> None:
    """Forty people on two cores."""
    texts = scripts()
    assert len(set(texts)) == PEOPLE
    bounds = replace(from_limits(), running=2)
    head(f"{PEOPLE} people, 2 workers at a time")
    with opened(bounds) as pool:
        report("Run at once, no page open before", press(pool, texts, WITHIN), 10_000.0)
        settle(pool)
        print(f"    {pool.status().memory / 1e6:.0f} MB resident in {len(pool._crew)} workers")
        report("Run again, one every 0.5 s", press(pool, texts, PEOPLE * 0.5), 1_000.0)
        report("Run again, all within 3 s", press(pool, texts, WITHIN))
    with opened(bounds) as pool:
        began = time.perf_counter()
        for i in range(PEOPLE):
            pool.reserve(f"person {i}")
        while pool.status().reserved < PEOPLE:
            time.sleep(0.1)
        print(f"    {PEOPLE} pages opened at once have their workers after {time.perf_counter() - began:.1f} s")
        report("Run at once, pages open before", press(pool, texts, WITHIN), 10_000.0)
        report("Run again, one every 0.5 s", press(pool, texts, PEOPLE * 0.5), 1_000.0)


def plain(text: str) -> float:
    """The same script in plain Python, in a process with a warm JAX."""
    start = time.perf_counter()
    with redirect_stdout(StringIO()):
        exec(compile(text, "<plain>", "exec"), {"__name__": "__main__"})
    return (time.perf_counter() - start) * 1e3


def warm() -> None:
    """One person at work, alone."""
    head("One person, warm")
    text = TWENTY.format(t=5, h=4)
    with opened() as pool:
        verdicts, beside = [], []
        for i in range(25):  # in turns, so that both have the same noise
            verdicts.append(ms(pool, "a", "check", text))
            beside.append(plain(text))
            if i == 4:
                verdicts.clear()
                beside.clear()
        ratio = statistics.median(verdicts) / statistics.median(beside)
        report("the script in plain Python", beside)
        record("Doctor, a clean 20-line script, of plain Python with a warm JAX", ratio, "x", 2.0)
        report("verdict of a clean 20-line script", verdicts, 300.0, f"ratio {ratio:.2f} (target 2)")
        report("abstract pass", [ms(pool, "a", "shapes", text) for _ in range(25)], 60.0)
        fixes, unfixed = [], []
        for broken in broken_scripts():
            unfixed.append(ms(pool, "a", "check", broken))
            fixes.append(ms(pool, "a", "fixes", broken))
        report("check of a broken script never seen", unfixed)
        report("its fixes", fixes, 1_000.0)
        sizes = [ms(pool, "a", "check", TWENTY.format(t=7 + i, h=5 + i)) for i in range(15)]
        report("check with a size never seen", sizes, 1_000.0)
        shapes = [ms(pool, "a", "shapes", TWENTY.format(t=30 + i, h=40 + i)) for i in range(15)]
        report("abstract pass with a size never seen", shapes, 60.0)
        status = pool.status()
        print(f"    {status.made} workers made, {status.lost} lost, {status.memory / 1e6:.0f} MB resident in all")


def hostile() -> None:
    """What the worst scripts do to the one who sent them, and to somebody beside him."""
    head("Hostile scripts")
    with opened() as pool:
        beside: list[float] = []
        over = threading.Event()

        def somebody() -> None:
            while not over.is_set():
                beside.append(ms(pool, "somebody", "check", TWENTY.format(t=5, h=4)))
                time.sleep(0.3)

        thread = threading.Thread(target=somebody)
        thread.start()
        for name, text in HOSTILE.items():
            start = time.perf_counter()
            ticket = ask(pool, "hostile", "check", text)
            ticket.wait(LONG)
            taken = (time.perf_counter() - start) * 1e3
            report(f"  {name}", [taken], 7_000.0, ended(ticket))
        over.set()
        thread.join()
        report("somebody else's checks meanwhile", beside)
        before = pool.status()
        pool.release("hostile")
        settle(pool)
        after = pool.status()
        print(
            f"    {before.lost} workers lost; {after.memory / 1e6:.0f} MB resident in all {len(pool._crew)} afterwards"
        )


def ended(ticket: Ticket) -> str:
    """How it ended, in a word or two."""
    result = ticket.result
    if isinstance(result, Stopped):
        return f"stopped: {result.reason}, line {result.line}"
    assert isinstance(result, Done)
    found: Any = result.answer["report"]
    codes = [violation["code"] for violation in found["violations"]]
    return f"{found['outcome']} {codes} {(found['error'] or {}).get('type', '')}"


PARTS: dict[str, Callable[[], None]] = {"first": first, "class": a_class, "warm": warm, "hostile": hostile}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", PARTS)
def test_part(part: str) -> None:
    PARTS[part]()


def main() -> None:
    jax.config.update("jax_platforms", "cpu")
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()


if __name__ == "__main__":
    main()
