"""Whether an exception of an abstract run comes of there being no values: a plain run would not raise it.

An abstract run shows while somebody types what is wrong with shapes. What it says wrongly costs trust, and Run comes
after it: where an exception may as well be owed to a value that is not there, the statement is left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FrameType
from typing import Any

import jax
import numpy as np

from core.contract.rules.p209 import SIZES
from core.contract.subject import MISSING
from core.doctor.cycles import is_cyclic
from core.doctor.locate import frames_of, innermost, operands_of
from core.doctor.recorder import ARRAY, LIBRARIES, Recorder

#: What JAX raises where a traced value would have to be known.
NEED_VALUES = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)
#: Exceptions that are followed to what they were raised from.
CHAIN = 8
#: What an array with values can be asked for, and a traced one cannot.
OF_ARRAYS = frozenset(
    "addressable_data addressable_shards block_until_ready copy_to_host_async delete device devices global_shards "
    "is_deleted is_fully_addressable is_ready on_device_size_in_bytes sharding".split()
)
#: Where numbers are written out.
FORMATS = ("format", "format_map")


def needs_values(recorder: Recorder, error: BaseException, *, skipped: bool) -> bool:
    """Whether a plain run might get further. `skipped`: whether something was left out before."""
    if skipped and (isinstance(error, NameError) or not _through_library(recorder, error)):
        return True  # a name, or an entry of a list, that what was left out would have made
    return any(_asks(recorder, one) for one in _chain(error)) or _valueless(recorder, error)


def _chain(error: BaseException) -> Iterator[BaseException]:
    one: BaseException | None = error
    for _ in range(CHAIN):
        if one is None:
            return
        yield one
        one = one.__cause__ or one.__context__


def _asks(recorder: Recorder, error: BaseException) -> bool:
    """Whether JAX says that it wants to know a value of the script's own level, not one of a step or a jitted function."""
    frame = innermost(error, recorder.source.filename)
    frames = frames_of(recorder.source, error)
    if not isinstance(error, NEED_VALUES) or frame is None or not frames:
        return False
    operands = operands_of(recorder.source, frames[-1].node, lambda node: recorder.latest(node, frame))
    return not any(_traced_inside(recorder, operand.value) for operand in operands)


def _valueless(recorder: Recorder, error: BaseException) -> bool:
    """Whether the failing expression does with a value that is not there what can be done with one that is."""
    frame = innermost(error, recorder.source.filename)
    frames = frames_of(recorder.source, error)
    if frame is None or not frames:
        return False
    node = frames[-1].node
    if isinstance(node, ast.Attribute) and isinstance(error, AttributeError):
        return _missing(recorder, recorder.latest(node.value, frame)) and node.attr in OF_ARRAYS
    if isinstance(node, ast.Subscript):
        held = recorder.latest(node.value, frame)
        stored = recorder.source.statement(node) if isinstance(held, np.ndarray) else None
        return _any_missing(recorder, stored or node.slice, frame)
    if isinstance(node, ast.FormattedValue | ast.JoinedStr):
        return _any_missing(recorder, node, frame) and not _through_library(recorder, error)
    if isinstance(node, ast.Call):
        called = recorder.called(node, frame, MISSING, error)
        name = (called.name or "").rpartition(".")[2]
        writes = name in FORMATS and not (called.name or "").startswith(ARRAY)
        sizes = called.name in SIZES and name != "scan"
        return (writes or sizes) and any(_any_missing(recorder, part, frame) for part in _given(node))
    return False


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _any_missing(recorder: Recorder, node: ast.AST, frame: FrameType) -> bool:
    """Whether an expression in it is an array without a value."""
    parts = (part for part in ast.walk(node) if isinstance(part, ast.expr))
    return any(_missing(recorder, recorder.latest(part, frame)) for part in parts)


def _missing(recorder: Recorder, value: Any) -> bool:
    return isinstance(value, jax.core.Tracer) and getattr(value, "_trace", None) is recorder.base


def _traced_inside(recorder: Recorder, value: Any) -> bool:
    """Whether there is a tracer in it that a plain run has too."""
    leaves = () if is_cyclic(value) else jax.tree_util.tree_leaves(value)
    return any(isinstance(leaf, jax.core.Tracer) and not _missing(recorder, leaf) for leaf in leaves)


def _through_library(recorder: Recorder, error: BaseException) -> bool:
    """Whether a library called the code that raised it (a step, a jitted function), or raised it in its own."""
    inside, trace = False, error.__traceback__
    while trace is not None:
        names = trace.tb_frame.f_globals
        if inside and str(names.get("__name__", "")).partition(".")[0] in LIBRARIES:
            return True
        inside = inside or trace.tb_frame.f_code.co_filename == recorder.source.filename
        trace = trace.tb_next
    return not inside
