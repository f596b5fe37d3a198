"""Once per process: compile what the first page shows, then freeze the heap.

A collection of garbage with JAX in the heap holds the interpreter for 60 to 80 ms; frozen objects are not visited, and
what is left takes a tenth of that (measured).
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

from core.contract.subject import ScanCall
from core.runners.reference import loop_check
from core.runners.scan import run_call
from core.steps.library import DEFAULT
from core.steps.step import x_aval

_lock = threading.Lock()
_done = threading.Event()


def warm_up(*more: Callable[[], object]) -> bool:
    """Compile the opening scan and its loop, do `more`, collect and freeze. Later calls return at once.

    Threads that call while it runs wait until it is done.

    Args:
        *more: what else the first pages need (cells, the first check of the engine): called once, in order.

    Returns:
        whether this call did the work.
    """
    with _lock:
        if _done.is_set():
            return False
        call = opening_call()
        loop_check(call, run_call(call))
        for job in more:
            job()
        gc.collect()
        gc.freeze()
        _done.set()
    return True


def opening_call() -> ScanCall:
    """The scan that the first page opens on: the running sum of 1, 2, 3 from 0."""
    xs, values = DEFAULT.opening_xs(), DEFAULT.defaults
    aval = x_aval(xs)
    return ScanCall(DEFAULT.fn, DEFAULT.init(aval, values), xs, params=DEFAULT.arguments(DEFAULT, aval, values))
