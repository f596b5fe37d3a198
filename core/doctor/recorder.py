"""Takes down what a script does while it runs: the value of each expression, the calls it makes, its own scans.

A scan is looked at when it is called, before JAX runs it: later its tracers would be dead and the globals its step
reads may be others. Such a look is mute (nothing is recorded or printed) and leaves no mark on the script's state.
"""

from __future__ import annotations

import ast
import inspect
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import jax
import numpy as np
from flax import nnx
from jax._src import core as jax_core  # the only way to ask whether a trace is under way

from core.base.avals import abstract
from core.base.limits import LIMITS
from core.base.places import Span
from core.contract.script_record import Called, Held, ScriptRecord, Seen
from core.contract.source import Source
from core.contract.subject import MISSING

#: Part of the key of all that JAX caches by function: set while we look.
_make_context: Any = jax.make_user_context  # untyped in jax's stubs
LOOKING = _make_context(False)
#: How many evaluations of one expression, and calls of one call expression, are kept.
EVALUATIONS, CALLS = LIMITS["kept_evaluations"].value, LIMITS["kept_calls"].value
#: Evaluations of one expression after which a loop is left to run at its own speed.
MANY = LIMITS["loop_evaluations"].value
#: Arrays from this size on count as large, and so much of them is held in all (bytes).
LARGE, HELD = 1 << 18, LIMITS["held_bytes"].value
#: How many latest values are held for putting calls together.
LATEST = LIMITS["latest_values"].value
#: Public modules whose functions are known by the name they carry.
LIBRARIES = ("jax", "flax", "numpy", "optax", "builtins", "functools", "math", "itertools", "operator")
#: jax's array classes by the name they have for a reader.
ARRAY = "Array"
UPDATE = "Array.at"


class Output(io.TextIOBase):
    """Standard output of a script; silent while it is muted, cut at a limit of characters."""

    def __init__(self, limit: int | None = None) -> None:
        self._parts: list[str] = []
        self._size = 0
        self._limit = limit
        self.muted = False
        self.cut = False

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, text: str) -> int:
        """Keep what is printed."""
        if self.muted or self.cut:
            return len(text)
        if self._limit is not None and self._size + len(text) > self._limit:
            text, self.cut = text[: self._limit - self._size], True
        self._parts.append(text)
        self._size += len(text)
        return len(text)

    @property
    def text(self) -> str:
        """What was printed."""
        return "".join(self._parts)


class Recorder:
    """One run's recorder: the hooks a `Program` reports to."""

    def __init__(self, source: Source, output: Output) -> None:
        self.source = source
        self.record = ScriptRecord(source)
        self.output = output
        self.names: dict[str, Any] = {}
        self.replace: dict[str, Any] = {}
        self.muted = False
        self.abstract = False
        #: Indices of the scans whose steps are being traced for real right now.
        self.inside: list[int] = []
        self.base: Any = None
        self._nodes: list[ast.expr | None] = []
        self._numbers: dict[ast.expr, int] = {}
        self._latest: dict[tuple[int, ast.expr], Any] = {}
        self._counts: list[int] = []
        self._order = 0
        self._held: dict[int, Any] = {}
        self._held_bytes = 0

    def begin(self, spans: tuple[Span, ...]) -> None:
        """The program's expressions by number. To be called before it runs, inside the outer trace if there is one."""
        self._nodes = [self.source.expression(span) for span in spans]
        self._counts = [0] * len(spans)
        self._numbers = {node: number for number, node in enumerate(self._nodes) if node is not None}
        self.base = current_trace()

    def write(self, text: str) -> None:
        """The script printed this."""
        self.output.write(text)

    @property
    def scan(self) -> int | None:
        """The innermost scan whose step is being traced."""
        return self.inside[-1] if self.inside else None

    @property
    def traced(self) -> bool:
        """Whether a trace of the script's own making is under way."""
        return current_trace() is not self.base

    @property
    def valued(self) -> bool:
        """Whether what is computed right now has values, to be looked at and kept."""
        return not self.abstract and not self.traced

    def tick(self) -> int:
        """The next running number."""
        self._order += 1
        return self._order

    @contextmanager
    def mute(self) -> Iterator[None]:
        """While open, nothing is recorded and nothing printed, and JAX keeps what it traces apart.

        A jitted function of the script that is first traced by a look of ours must be traced once more for the script
        itself: its Python runs then, and only then.
        """
        before = self.muted, self.output.muted
        self.muted = self.output.muted = True
        try:
            with LOOKING(True):
                yield
        finally:
            self.muted, self.output.muted = before

    # --- expressions ------------------------------------------------------------------------------------------------

    def probe(self, number: int, value: Any) -> Any:
        """Expression `number` gave `value`."""
        count = self._counts[number]
        if self.muted or count >= MANY:
            return value
        node = self._nodes[number]
        if node is None:
            return value
        self._counts[number] = count + 1
        frame = self.frame(sys._getframe(1))
        if len(self._latest) > LATEST:
            self._latest.clear()
        kept = self._light(value)
        self._latest[id(frame), node] = kept
        if count < EVALUATIONS and isinstance(value, nnx.Module | nnx.Optimizer):
            self._hold(node, value)
        if count < EVALUATIONS:
            self.record.seen.append(Seen(node, kept, self.tick(), self.scan, self.traced))
        if isinstance(node, ast.Call) and count < CALLS:
            self.record.calls.append(self.called(node, frame, kept))
        return value

    def _hold(self, node: ast.expr, value: Any) -> None:
        """A module that is about to be given to a call: what it holds now."""
        parent = self.source.parents.get(node)
        if isinstance(parent, ast.Call) and parent.func is not node and self.valued:
            with suppress(Exception):  # a module that cannot be split is nothing that a rule could run again
                graph, state = nnx.split(value)
                leaves, tree = jax.tree_util.tree_flatten(state)
                self.record.held.append(Held(value, graph, tuple(leaves), tree, self.tick()))

    def _light(self, value: Any) -> Any:
        """The value; of a large array its type alone once there are many, so that none lives on for having been seen."""
        if not isinstance(value, jax.Array | np.ndarray) or isinstance(value, jax.core.Tracer):
            return value
        if value.nbytes < LARGE or id(value) in self._held:
            return value
        if self._held_bytes + value.nbytes > HELD:
            return abstract(value.shape, value.dtype)
        self._held[id(value)] = value
        self._held_bytes += value.nbytes
        return value

    def frame(self, frame: FrameType | None) -> FrameType | None:
        """The nearest frame of the script."""
        while frame is not None and frame.f_code.co_filename != self.source.filename:
            frame = frame.f_back
        return frame

    def latest(self, node: ast.expr, frame: FrameType | None) -> Any:
        """The value an expression had last in this frame; of literals, what they are; else MISSING."""
        if isinstance(node, ast.Constant):
            return node.value
        known = self._latest.get((id(frame), node), MISSING)
        if known is not MISSING:
            return known if self._counts[self._numbers[node]] < MANY else MISSING
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            parts = [self.latest(e, frame) for e in node.elts]
            if any(p is MISSING for p in parts):
                return MISSING
            return tuple(parts) if isinstance(node, ast.Tuple) else parts
        if isinstance(node, ast.Dict) and all(isinstance(k, ast.Constant) for k in node.keys):
            keys = [k.value for k in node.keys if isinstance(k, ast.Constant)]
            values = [self.latest(v, frame) for v in node.values]
            return MISSING if any(v is MISSING for v in values) else dict(zip(keys, values, strict=True))
        if isinstance(node, ast.Slice):
            parts = [None if p is None else self.latest(p, frame) for p in (node.lower, node.upper, node.step)]
            return MISSING if any(p is MISSING for p in parts) else slice(*parts)
        return MISSING

    # --- calls ------------------------------------------------------------------------------------------------------

    def called(
        self, node: ast.Call, frame: FrameType | None, result: Any, error: BaseException | None = None
    ) -> Called:
        """The record of a call that this frame made."""
        func = self.latest(node.func, frame)
        receiver = self.latest(node.func.value, frame) if isinstance(node.func, ast.Attribute) else MISSING
        name = self._name(node, func, receiver)
        args: list[Any] = []
        for arg in node.args:
            if isinstance(arg, ast.Starred):
                break
            args.append(self.latest(arg, frame))
        return Called(
            node,
            name,
            None if func is MISSING else func,
            tuple(args),
            {k.arg: self.latest(k.value, frame) for k in node.keywords if k.arg is not None},
            result,
            self.tick(),
            self.scan,
            self.traced,
            error,
            None if receiver is MISSING or inspect.ismodule(receiver) else receiver,
        )

    def _name(self, node: ast.Call, func: Any, receiver: Any) -> str | None:
        public = self.source.dotted(node.func)
        if public is not None:
            return public
        if isinstance(node.func, ast.Name) and self.source.is_builtin(node.func.id):
            return f"builtins.{node.func.id}"
        if isinstance(node.func, ast.Attribute) and receiver is not MISSING and not inspect.ismodule(receiver):
            return f"{class_name(receiver)}.{node.func.attr}"
        return None if func is MISSING else object_name(func)


def current_trace() -> Any:
    """The trace under way; None outside all of them."""
    return None if jax_core.trace_state_clean() else jax_core.trace_ctx.trace


def class_name(value: Any) -> str:
    """A value's class for a method's name: ``Array``, ``list``, ``flax.nnx.LSTMCell``, the script's own class."""
    cls = value if isinstance(value, type) else type(value)
    if cls.__name__ == "_IndexUpdateRef":
        return UPDATE
    if isinstance(value, jax_core.Tracer) or cls.__name__ == "ArrayImpl":
        return ARRAY
    if cls.__module__.startswith("flax.nnx"):
        return f"flax.nnx.{cls.__name__}"
    return f"{cls.__module__}.{cls.__name__}" if cls.__module__.startswith(("numpy", "optax")) else cls.__name__


def object_name(func: Any) -> str | None:
    """A name for what was called, from the object alone."""
    if not isinstance(func, type) and isinstance(func, nnx.Module):
        return f"{class_name(func)}.__call__"
    inner = inspect.unwrap(func) if callable(func) and hasattr(func, "__wrapped__") else func
    name, module = getattr(inner, "__qualname__", None), getattr(inner, "__module__", None) or ""
    if name is None:
        return f"{type(func).__name__}.__call__"
    if module.partition(".")[0] in LIBRARIES:
        return f"{module}.{name}"
    return str(name).rpartition(".")[2] if "<lambda>" not in name else None


def flush() -> None:
    """Wait for prints that JAX makes from inside programs; what goes wrong in them was raised to the script already."""
    with suppress(Exception):
        barrier: Any = jax.effects_barrier  # untyped in jax's stubs
        barrier()
