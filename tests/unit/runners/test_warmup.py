from __future__ import annotations

import subprocess
import sys
import textwrap
import threading

import pytest

from core.runners import warmup
from core.runners.scan import run_call


@pytest.fixture
def fresh(monkeypatch):
    """As in a new process, and without freezing the test's own heap."""
    froze = []
    monkeypatch.setattr(warmup, "_done", threading.Event())
    monkeypatch.setattr(warmup.gc, "freeze", lambda: froze.append(True))
    return froze


def test_it_does_the_work_once_and_in_order(fresh):
    jobs = []
    assert warmup.warm_up(lambda: jobs.append("cell"), lambda: jobs.append(len(fresh)))
    assert jobs == ["cell", 0]  # frozen after the jobs
    assert fresh == [True]
    assert not warmup.warm_up(lambda: jobs.append("again"))
    assert (jobs, fresh) == (["cell", 0], [True])


def test_afterwards_the_opening_scan_compiles_nothing(fresh):
    warmup.warm_up()
    result = run_call(warmup.opening_call())
    assert not result.compiled
    assert (result.final, result.ys.tolist()) == (6, [1, 3, 6])


def test_threads_wait_and_only_one_does_it(fresh):
    barrier, did = threading.Barrier(5), []

    def run():
        barrier.wait()
        did.append(warmup.warm_up())

    threads = [threading.Thread(target=run) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(did) == [False] * 4 + [True]


def test_a_failing_job_leaves_it_to_be_done_again(fresh):
    def fails():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        warmup.warm_up(fails)
    assert fresh == []
    assert warmup.warm_up()


def test_in_a_real_process_the_heap_is_frozen():
    program = """
        import gc
        from core.runners.warmup import warm_up
        before = gc.get_freeze_count()
        assert warm_up()
        assert gc.get_freeze_count() > before + 50_000, gc.get_freeze_count()
        print("frozen")
    """
    out = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120)
    assert out.stdout.strip() == "frozen", out.stderr
