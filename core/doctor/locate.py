"""Places in a script: of a scan and its arguments, of a cell's call, of the expression that failed, of a leak.

The places are those of DESIGN.md section 3: S101 the return expression; S102 to S104 the returned leaf; S105 and S118
init's binding; S106 to S110 the scan's argument; the L codes the cell's argument or its call; the P codes the smallest
expression that failed.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FrameType, TracebackType
from typing import Any

from jax import tree_util

from core.base.avals import aval_of, path_name
from core.base.places import Place, Places, Span
from core.contract.script_record import Frame, Operand
from core.contract.source import FUNCTIONS, Function, Source
from core.contract.subject import MISSING
from core.sandbox.kinds import Namespace

#: The arguments of `lax.scan` by the names we use.
SIGNATURE = inspect.Signature(
    [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
        for name, default in (
            ("step", inspect.Parameter.empty),
            ("init", inspect.Parameter.empty),
            ("xs", None),
            ("length", None),
            ("reverse", False),
            ("unroll", 1),
        )
    ]
)
#: Our own modules that stand between a line of the script and what it called.
OURS = ("core.contract.record", "core.doctor.", "core.sandbox.")
#: Modules of Flax that stand between the line that builds a module or calls it and its own methods.
BUILDERS = ("flax.nnx.pytreelib", "flax.nnx.module", "flax.nnx.object", "flax.nnx.graphlib", "functools")


# --- a scan ---------------------------------------------------------------------------------------------------------


def scan_arguments(call: ast.Call) -> dict[str, ast.expr]:
    """The expressions of a scan's arguments by our names; empty when they are not written out (``*args``)."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return {}
    out: dict[str, ast.expr] = dict(zip(SIGNATURE.parameters, call.args, strict=False))
    out |= {("step" if k.arg == "f" else k.arg): k.value for k in call.keywords if k.arg is not None}
    return out


def scan_places(source: Source, call: ast.Call | None, given: Mapping[str, Any]) -> Places:
    """Places of a scan by role.

    ``scan`` is the call; ``xs``, ``length``, ``reverse``, ``unroll`` its arguments; ``init`` the expression that was
    last assigned to the name given for it, ``init_argument`` that name, ``xs_bound`` the same of xs; deeper paths are
    parts of those. ``step`` is the definition's first line, ``return`` what it returns.
    """
    out: dict[str, Place] = {}
    function = source.function(given["step"])
    if function is not None:
        _step_places(out, source, function, given["init"])
    if call is None:
        return Places(out)
    out["scan"] = source.span(call)
    name = source.dotted(call.func)
    arguments = scan_arguments(call) if name is not None and name.rpartition(".")[2] == "scan" else {}
    for role, node in arguments.items():
        out.setdefault(role, source.span(node))
    if "xs" in arguments:
        bound = source.resolve(arguments["xs"])
        out["xs:xs"], out["xs_bound"] = out["xs"], source.span(bound)
        pytree_places(out, source, arguments["xs"], given["xs"], "xs", "xs")
        pytree_places(out, source, bound, given["xs"], "xs_bound", "xs")
    if "init" in arguments:
        bound = source.resolve(arguments["init"])
        out["init"], out["init_argument"] = source.span(bound), source.span(arguments["init"])
        pytree_places(out, source, bound, given["init"], "init", "carry")
    return Places(out)


def pytree_places(out: dict[str, Place], source: Source, node: ast.expr, value: Any, role: str, root: str) -> None:
    """A place for every node of a pytree below its root, by path."""
    for path, _ in tree_util.tree_flatten_with_path(value, is_leaf=lambda v: v is None)[0]:
        for depth in range(1, len(path) + 1):
            here = path[:depth]
            out[f"{role}:{path_name(root, here)}"] = source.span(source.part(node, here))


def _step_places(out: dict[str, Place], source: Source, function: Function, init: Any) -> None:
    out["step"] = source.head(function)
    value = source.returned(function)
    if value is None:
        return
    out["return"] = source.span(value)
    new = source.part(value, (tree_util.SequenceKey(0),))
    out["return:carry"] = source.span(new)
    if new is not value:
        pytree_places(out, source, new, init, "return", "carry")
        out["return:y"] = source.span(source.part(value, (tree_util.SequenceKey(1),)))


# --- a cell ---------------------------------------------------------------------------------------------------------


def script_frame(source: Source, frame: FrameType | None) -> tuple[FrameType | None, bool]:
    """The nearest frame of the script, and whether nothing but our own and Flax's builders stands in between."""
    direct = True
    while frame is not None and frame.f_code.co_filename != source.filename:
        module = frame.f_globals.get("__name__", "")
        direct = direct and module.startswith((*OURS, *BUILDERS))
        frame = frame.f_back
    return frame, direct


def cell_places(source: Source) -> Places | None:
    """Places of the call of a cell that is being made right now: all roles of a build, an initialised carry, a step.

    Where a library makes the call (`nnx.RNN`, ``lax.scan(cell, …)``), the script's call of that library stands for it,
    with its first argument for the input; inside a scan's step the scan's own places are better, so None there.
    """
    frame, direct = script_frame(source, sys._getframe(1))
    if frame is None:
        return None
    call = source.call_at(frame)
    if call is None:
        return None
    whole = source.span(call)
    named = {k.arg: source.span(k.value) for k in call.keywords if k.arg is not None}
    if not direct:
        if (source.dotted(call.func) or "").endswith("lax.scan"):
            return None
        first = source.span(call.args[0]) if call.args else whole
        carry = named.get("initial_carry", whole)
        roles = {"call": whole, "cell": whole, "scan": whole, "input": first, "carry": carry, "carry_shape": first}
        return Places({**roles, "carry_rngs": named.get("rngs", whole), "cell_rngs": named.get("rngs", whole)})
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


# --- an exception ---------------------------------------------------------------------------------------------------


def frames_of(source: Source, error: BaseException) -> tuple[Frame, ...]:
    """The script's own frames of a traceback, outermost first; neither JAX's nor ours."""
    out = []
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        span = source.at_frame(trace.tb_frame, trace.tb_lasti)
        if span is not None:
            node = source.expression(span)
            out.append(Frame(span, node, _function_around(source, node, span, trace.tb_frame)))
        elif trace.tb_frame.f_code.co_filename == source.filename:
            line = trace.tb_lineno
            width = len(source.lines[line - 1]) if 0 < line <= len(source.lines) else 0
            out.append(Frame(Span(line, 0, line, width), None, None))
        trace = trace.tb_next
    return tuple(out)


def innermost(error: BaseException, filename: str) -> FrameType | None:
    """The script's last frame in a traceback."""
    found, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename:
            found = trace.tb_frame
        trace = trace.tb_next
    return found


def _function_around(source: Source, node: ast.expr | None, span: Span, frame: FrameType) -> Function | None:
    if node is not None:
        scope = source.scope(node)
        return scope if isinstance(scope, FUNCTIONS) else None
    for function in source.functions:
        if function.lineno <= frame.f_code.co_firstlineno <= span.line <= (function.end_lineno or 0):
            return function
    return None


def operands_of(source: Source, node: ast.expr | None, value_of: Callable[[ast.expr], Any]) -> tuple[Operand, ...]:
    """The parts of an expression that failed, with the types of their values; `value_of` gives MISSING for unknown."""
    if node is None:
        return ()
    out = []
    for part in _operand_nodes(node):
        value = value_of(part)
        if value is not MISSING and not _is_code(value):
            out.append(Operand(part, source.text_of(part), type_text(value), value))
    return tuple(out)


def _operand_nodes(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    elif isinstance(node, ast.Compare):
        yield from (node.left, *node.comparators)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.BoolOp):
        yield from node.values
    elif isinstance(node, ast.Subscript):
        yield from (node.value, node.slice)
    elif isinstance(node, ast.Attribute):
        yield node.value
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            yield node.func.value
        yield from (a for a in node.args if not isinstance(a, ast.Starred))
        yield from (k.value for k in node.keywords)
    elif isinstance(node, ast.Name):
        yield node


def _is_code(value: Any) -> bool:
    """Modules, classes and functions: they say nothing about shapes."""
    return (
        isinstance(value, type | Namespace) or inspect.ismodule(value) or (callable(value) and aval_of(value) is None)
    )


#: How many children of a container are written out, and how deep.
SHOWN, DEPTH = 6, 3


def type_text(value: Any, depth: int = 0) -> str:
    """A value's type as it is written in messages: ``float32[2,4]``, ``(float32[4], int)``, ``dict``."""
    if isinstance(value, bool | int | float | complex | str) or value is None:
        return type(value).__name__ if value is not None else "None"
    if isinstance(value, slice):
        inner = ", ".join(type_text(v, depth + 1) for v in (value.start, value.stop, value.step))
        return f"slice({inner})"
    aval = aval_of(value)
    if aval is not None:
        return str(aval)
    if depth < DEPTH and isinstance(value, tuple | list) and 0 < len(value) <= SHOWN:
        inner = ", ".join(type_text(v, depth + 1) for v in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner},)" if len(value) == 1 else f"({inner})"
    if depth < DEPTH and isinstance(value, dict) and 0 < len(value) <= SHOWN:
        return "{" + ", ".join(f"{k!r}: {type_text(v, depth + 1)}" for k, v in value.items()) + "}"
    return type(value).__name__
