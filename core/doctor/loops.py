"""What stands in for `jax.lax.fori_loop` and `while_loop` while a script runs: the real ones, with their bodies traced.

A body is traced once more, when it is called and under the same looks-only rules as a scan's step; what rules ask about
it is in its program.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import jax
from jax import tree_util

from core.contract.record import CellEvents, recording
from core.contract.script_record import LoopSite
from core.contract.trace import struct_of
from core.doctor.locate import OURS
from core.doctor.recorder import Recorder
from core.doctor.still import undisturbed

FORI, WHILE = "jax.lax.fori_loop", "jax.lax.while_loop"
#: Loops of one place that are kept.
KEPT = 3


class LoopWatch:
    """Replaces the two loops for one run."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._fori: Callable[..., Any] = jax.lax.fori_loop
        self._while: Callable[..., Any] = jax.lax.while_loop

    @property
    def replace(self) -> dict[str, Callable[..., Any]]:
        """The replacements by public name."""
        return {FORI: self.fori_loop, WHILE: self.while_loop}

    def fori_loop(self, *args: Any, **kwargs: Any) -> Any:
        """``lax.fori_loop`` as the script calls it."""
        given = dict(zip(("lower", "upper", "body_fun", "init_val"), args, strict=False)) | kwargs
        if len(given) >= 4:
            self._look(given["body_fun"], (given["lower"], given["init_val"]), _count(given), sys._getframe(1))
        return self._fori(*args, **kwargs)

    def while_loop(self, *args: Any, **kwargs: Any) -> Any:
        """``lax.while_loop`` as the script calls it."""
        given = dict(zip(("cond_fun", "body_fun", "init_val"), args, strict=False)) | kwargs
        if len(given) >= 3:
            self._look(given["body_fun"], (given["init_val"],), None, sys._getframe(1))
        return self._while(*args, **kwargs)

    def _look(self, body: Any, inputs: tuple[Any, ...], length: int | None, frame: FrameType | None) -> None:
        recorder = self._recorder
        while frame is not None and frame.f_globals.get("__name__", "").startswith(OURS):
            frame = frame.f_back
        source = recorder.source
        if recorder.muted or frame is None or frame.f_code.co_filename != source.filename:
            return
        node = source.call_at(frame)
        loops = recorder.record.loops
        if node is None or sum(1 for loop in loops if loop.node is node) >= KEPT:
            return
        names = recorder.names
        with recorder.mute(), undisturbed(names, body, filename=source.filename), recording(CellEvents()):
            try:
                jaxpr = jax.make_jaxpr(body)(*tree_util.tree_map(struct_of, inputs))
            except Exception:  # noqa: BLE001  # the real loop says what is wrong
                return
        order, traced, inside = recorder.tick(), recorder.traced, recorder.scan
        loops.append(LoopSite(node, source.function(body), jaxpr, inputs, length, traced, inside, order))


def _count(given: dict[str, Any]) -> int | None:
    """How many steps a `fori_loop` takes; None while its bounds are traced."""
    try:
        return max(0, int(given["upper"]) - int(given["lower"]))
    except (TypeError, ValueError, jax.errors.ConcretizationTypeError):
        return None
