"""Runs a script of ours and takes down what it did with `jax.lax.scan` and with cells, each with its place.

For tests only: the script is trusted and runs in this process. `jax.lax.scan` is replaced while it runs, so it is seen
however it was imported; a scan that a library calls, and not the script, is left alone.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import Any

import jax
from jax import tree_util

from core.base.violation import Violation
from core.contract import engine
from core.contract.record import CellEvents, recording
from core.contract.source import FILENAME, Source
from core.contract.subject import CellLog, ScanCall
from core.doctor.locate import SIGNATURE, cell_places, scan_places


@dataclass(slots=True, eq=False)
class Captured:
    """A script that ran.

    Attributes:
        calls: its scans, in order, ready to be checked.
        returned: what each of them returned; the exception where it raised.
        log: what it did with cells outside its scans.
        error: what the script raised in the end.
        namespace, stdout: what it left behind.
        traced: how many scans were inside a traced function, where there are no values: they are not in `calls`.
        x64: whether it switched 64-bit mode on.
    """

    source: Source
    calls: list[ScanCall] = field(default_factory=list)
    returned: list[Any] = field(default_factory=list)
    log: CellLog = field(default_factory=lambda: CellLog(CellEvents()))
    error: BaseException | None = None
    namespace: dict[str, Any] = field(default_factory=dict)
    stdout: str = ""
    traced: int = 0
    x64: bool = False

    def subjects(self) -> list[ScanCall | CellLog]:
        """All that can be checked."""
        events = self.log.events
        used = events.builds or events.carries or events.steps
        return [*self.calls, *([self.log] if used else [])]

    @contextlib.contextmanager
    def config(self) -> Iterator[None]:
        """JAX set as the script left it."""
        before = bool(jax.config.read("jax_enable_x64"))
        jax.config.update("jax_enable_x64", self.x64)
        try:
            yield
        finally:
            jax.config.update("jax_enable_x64", before)

    def violations(self, rules: Any = None) -> list[Violation]:
        """What the engine finds in all subjects; the rules that wait until after a clean check too."""
        found: list[Violation] = []
        with self.config():
            for subject in self.subjects():
                report = engine.check(subject, rules=rules)
                if report.error is not None:
                    raise AssertionError(f"no rule explains this: {report.error}")
                found += report.violations
                if not report.broken:
                    found += engine.check_late(subject, rules=rules)
        return found


def capture(text: str) -> Captured:
    """Run a script and take down its scans and cells. Every patch is taken back, whatever the script does."""
    captured = Captured(Source(text))
    log = CellEvents(locate=partial(cell_places, captured.source))
    captured.log = CellLog(log)
    captured.namespace["__name__"] = "__main__"
    code = compile(text, FILENAME, "exec", dont_inherit=True)
    out, x64 = io.StringIO(), bool(jax.config.read("jax_enable_x64"))
    try:
        with recording(log), _patched(captured), contextlib.redirect_stdout(out):
            exec(code, captured.namespace)
    except Exception as error:
        captured.error = error
    finally:
        captured.x64 = bool(jax.config.read("jax_enable_x64"))
        jax.config.update("jax_enable_x64", x64)
        captured.stdout = out.getvalue()
    return captured


@contextlib.contextmanager
def _patched(captured: Captured) -> Iterator[None]:
    real = jax.lax.scan

    def scan(*args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        if frame.f_code.co_filename != FILENAME:
            return real(*args, **kwargs)
        named = {("step" if name == "f" else name): value for name, value in kwargs.items()}
        try:
            bound = SIGNATURE.bind(*args, **named)
        except TypeError:
            return real(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        if any(isinstance(leaf, jax.core.Tracer) for leaf in tree_util.tree_leaves((given["init"], given["xs"]))):
            captured.traced += 1
            return real(*args, **kwargs)
        captured.calls.append(_call(captured, frame, given))
        try:
            with recording(CellEvents()):
                result = real(*args, **kwargs)
        except Exception as error:
            captured.returned.append(error)
            raise
        captured.returned.append(result)
        return result

    jax.lax.scan = scan
    try:
        yield
    finally:
        jax.lax.scan = real


def _call(captured: Captured, frame: FrameType, given: dict[str, Any]) -> ScanCall:
    source, events = captured.source, captured.log.events
    earlier = CellEvents(list(events.builds), list(events.carries), list(events.steps))
    return ScanCall(
        **given,
        places=scan_places(source, source.call_at(frame), given),
        earlier=earlier,
        locate=partial(cell_places, source),
    )
