"""Runs a script of ours and takes down what it did with `jax.lax.scan` and with cells, each with its place.

For tests only: the script is trusted and runs in this process. `jax.lax.scan` is replaced while it runs, so it is seen
however it was imported; a scan that a library calls, and not the script, is left alone.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import jax
from jax import tree_util

from core.base.avals import path_name
from core.base.places import Place, Places
from core.base.violation import Violation
from core.contract import engine
from core.contract.record import CellEvents, recording
from core.contract.subject import CellLog, ScanCall
from tests.support.source import Source

FILENAME = "<script>"
SIGNATURE = inspect.Signature(
    [
        inspect.Parameter("step", inspect.Parameter.POSITIONAL_OR_KEYWORD),
        inspect.Parameter("init", inspect.Parameter.POSITIONAL_OR_KEYWORD),
        *(
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
            for name, default in (("xs", None), ("length", None), ("reverse", False), ("unroll", 1))
        ),
    ]
)
#: Frames of Flax that stand between the line that builds a module and its `__init__`.
BUILDERS = ("pytreelib.py", "module.py", "object.py")


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
    captured = Captured(Source(text, FILENAME))
    log = CellEvents(locate=lambda: cell_places(captured.source))
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
        places=Places(scan_places(source, frame, given)),
        earlier=earlier,
        locate=lambda: cell_places(source),
    )


# --- places ---------------------------------------------------------------------------------------------------------


def scan_places(source: Source, frame: FrameType, given: dict[str, Any]) -> dict[str, Place]:
    """Places of a scan by role.

    ``scan`` is the call; ``xs``, ``length``, ``reverse``, ``unroll`` its arguments; ``init`` the expression that was
    last assigned to the name given for it, ``xs_bound`` the same of xs; deeper paths are parts of those. ``step`` is
    the definition's first line, ``return`` what it returns.
    """
    out: dict[str, Place] = {}
    call = source.call_at(frame)
    if call is None:
        return out
    out["scan"] = source.span(call)
    arguments = dict(zip(SIGNATURE.parameters, call.args, strict=False))
    arguments |= {("step" if k.arg == "f" else k.arg): k.value for k in call.keywords if k.arg is not None}
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return out
    for role, node in arguments.items():
        out[str(role)] = source.span(node)
    if "xs" in arguments:
        bound = source.resolve(arguments["xs"])
        out["xs:xs"], out["xs_bound"] = out["xs"], source.span(bound)
        _parts(out, source, arguments["xs"], given["xs"], "xs", "xs")
        _parts(out, source, bound, given["xs"], "xs_bound", "xs")
    if "init" in arguments:
        bound = source.resolve(arguments["init"])
        out["init"] = source.span(bound)
        _parts(out, source, bound, given["init"], "init", "carry")
    function = source.function(given["step"])
    if function is not None:
        _step_places(out, source, function, given["init"])
    return out


def _parts(out: dict[str, Place], source: Source, node: Any, value: Any, role: str, root: str) -> None:
    """A place for every node of a pytree below its root, by path."""
    for path, _ in tree_util.tree_flatten_with_path(value, is_leaf=lambda v: v is None)[0]:
        for depth in range(1, len(path) + 1):
            here = path[:depth]
            out[f"{role}:{path_name(root, here)}"] = source.span(source.part(node, here))


def _step_places(out: dict[str, Place], source: Source, function: Any, init: Any) -> None:
    span = source.span(function)
    one_line = len(source.lines[span.line - 1]) if span.end_line > span.line else span.end_col
    out["step"] = type(span)(span.line, span.col, span.line, one_line)
    value = source.returned(function)
    if value is None:
        return
    out["return"] = source.span(value)
    new = source.part(value, (tree_util.SequenceKey(0),))
    out["return:carry"] = source.span(new)
    if new is not value:
        _parts(out, source, new, init, "return", "carry")
        out["return:y"] = source.span(source.part(value, (tree_util.SequenceKey(1),)))


def cell_places(source: Source) -> Places | None:
    """Places of the call of a cell that is being made right now: all roles of a build, an initialised carry, a step.

    When the script does not make the call itself (`lax.scan(cell, …)`, `nnx.RNN`) nothing is known of its arguments.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.endswith("record.py"):
        frame = frame.f_back
    while frame is not None and frame.f_code.co_filename.endswith(("record.py", *BUILDERS)):
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename != source.filename:
        return None
    call = source.call_at(frame)
    if call is None:
        return None
    whole = source.span(call)
    named = {k.arg: source.span(k.value) for k in call.keywords if k.arg is not None}
    first, second = ([source.span(a) for a in call.args] + [whole, whole])[:2]
    return Places(
        {
            "call": whole,
            "cell": whole,
            "cell_call": whole,
            "carry_call": whole,
            "carry": named.get("carry", first),
            "input": named.get("inputs", second),
            "carry_shape": named.get("input_shape", first),
            "carry_rngs": named.get("rngs", second),
            "cell_rngs": named.get("rngs", whole),
        }
    )
