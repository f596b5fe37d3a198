"""What a whole script did when it ran: its scans, its calls, the values of its expressions, what it raised.

The Doctor's runner (`core.doctor.script`) fills a `ScriptRecord`; rules on ``script`` read it through `ScriptFacts`.
Values are the very objects. A tracer is dead once its trace is over: only its identity and its aval may be used then.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from core.base.places import Span
from core.contract.record import CellEvents
from core.contract.source import Function, Source

if TYPE_CHECKING:
    from core.contract.facts import ScanFacts
    from core.contract.subject import ScanCall


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """One evaluation of one expression.

    Attributes:
        node: the expression (a name, attribute, item, call, operator or comparison) in the script's own tree.
        value: the very object it gave; of a large array, once many are held, a `jax.ShapeDtypeStruct` of its type.
        order: a running number over all evaluations of the run: what came first.
        scan: index of the innermost scan whose step was being traced then; None outside every step.
        traced: whether any JAX trace was under way (a step, a jitted function, `vmap`, `grad`).
    """

    node: ast.expr
    value: Any
    order: int
    scan: int | None = None
    traced: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Called:
    """One call that the script itself made.

    Attributes:
        node: the call in the tree.
        name: the public name of what was called, aliases followed (``jax.numpy.take``, ``jax.random.normal``,
            ``builtins.print``, ``flax.nnx.RNN``); of a method its class and name (``list.append``, ``Array.sum``); of
            a function of the script its own name; of an instance of a class ``<class>.__call__``
            (``flax.nnx.RNN.__call__``); None when nothing is known of it.
        func: the object that was called; None when the probe did not see it.
        args, kwargs: the values given, as far as they were seen; MISSING for one that was not (``*args`` end the list).
        result: what it gave; MISSING when it raised.
        error: what it raised, for the call in which the script ended.
        receiver: of a method the object it is of, else None.
        order, scan, traced: as in `Seen`; `order` is that of its end.
    """

    node: ast.Call
    name: str | None
    func: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    result: Any
    order: int
    scan: int | None = None
    traced: bool = False
    error: BaseException | None = None
    receiver: Any = None

    def argument(self, position: int, keyword: str, default: Any = None) -> Any:
        """An argument's value by position or keyword; `default` when it was not given."""
        if position < len(self.args):
            return self.args[position]
        return self.kwargs.get(keyword, default)

    def argument_node(self, position: int, keyword: str) -> ast.expr | None:
        """An argument's expression by position or keyword; None when it was not given (or is in ``*args``)."""
        plain = self.node.args[: position + 1]
        if len(plain) > position and not any(isinstance(a, ast.Starred) for a in plain):
            return plain[position]
        return next((k.value for k in self.node.keywords if k.arg == keyword), None)


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of the script in a traceback.

    Attributes:
        span: the smallest expression or statement that was being executed.
        node: that expression; None when it is a statement.
        function: the function it is in; None for the module.
    """

    span: Span
    node: ast.expr | None
    function: Function | None


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    """A part of the expression that failed: its text as written, its type in words, the object itself."""

    node: ast.expr
    text: str
    type: str
    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """The exception that ended the script.

    Attributes:
        error: itself.
        frames: the script's own frames, outermost first; never empty. The last is where it failed.
        operands: what the failing expression was made of.
        scan: index of the scan call that it came out of; None when it was raised outside of every scan.
        in_step: whether it was raised in the step of that scan (not by the scan's own checks).
        explained: whether a rule already says why (of a scan or of a cell): then script rules have nothing to add.
    """

    error: BaseException
    frames: tuple[Frame, ...]
    operands: tuple[Operand, ...] = ()
    scan: int | None = None
    in_step: bool = False
    explained: bool = False

    @property
    def span(self) -> Span:
        """The place: the smallest expression that failed."""
        return self.frames[-1].span

    @property
    def node(self) -> ast.expr | None:
        """The smallest expression that failed; None when a statement did."""
        return self.frames[-1].node


#: Reasons of a `Stopped`.
TIME, MEMORY = "time", "memory"


@dataclass(frozen=True, slots=True)
class Stopped:
    """What ended the script before its time.

    Attributes:
        reason: TIME or MEMORY.
        span: what was being executed then; None when that is not known.
    """

    reason: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Changed:
    """A variable of a module that the step of an `nnx.scan` changes.

    Attributes:
        argument: position of the module among the function's arguments.
        path: of the variable in the module: ``rngs.count``.
        type: the variable's class.
        lost: whether the scan drops the change: the variable is given to every step as it was (axis None).
    """

    argument: int
    path: str
    type: type
    lost: bool


@dataclass(slots=True, eq=False)
class ScanSite:
    """One call of `lax.scan`, or of a function under `nnx.scan`, that the script made (one that a library makes is none).

    Attributes:
        index: its position among the scans of the run.
        node: the call in the tree; None when it is not in the script's text (``partial(lax.scan, …)`` called by JAX).
        call: as it was made, with its places.
        facts: worked out at the time of the call, inside the trace that it was made in.
        step: the definition of the step, when it is in the script.
        traced: whether init, xs or what the step closes over were traced (no values then, only types).
        arguments: its arguments' expressions by name (``init``, ``xs``, …), as far as they are written out.
        parent: index of the scan in whose step it was made.
        result: ``(final carry, ys)``; None when it raised or never returned.
        error: what it raised.
        order: as in `Seen`, when it was called.
        changed: of an `nnx.scan`, the variables that its step changes.
    """

    index: int
    node: ast.Call | None
    call: ScanCall
    facts: ScanFacts
    step: Function | None
    traced: bool
    arguments: Mapping[str, ast.expr] = field(default_factory=dict)
    parent: int | None = None
    result: Any = None
    error: BaseException | None = None
    order: int = 0
    changed: Sequence[Changed] = ()


@dataclass(frozen=True, slots=True, eq=False)
class LoopSite:
    """One call of `lax.fori_loop` or `lax.while_loop` that the script made.

    Attributes:
        node: the call in the tree.
        body: the definition of its body, when it is in the script.
        jaxpr: the body's program; its inputs are the leaves of `inputs`, its outputs those of the new carry.
        inputs: ``(lower, init)`` of a `fori_loop`, ``(init,)`` of a `while_loop`.
        length: how many steps it takes; None where that is not known.
        traced: whether a trace was under way when it was called.
        scan: index of the scan in whose step it was called; None outside every step.
        order: as in `Seen`, when it was called.
    """

    node: ast.Call
    body: Function | None
    jaxpr: Any
    inputs: tuple[Any, ...]
    length: int | None
    traced: bool
    scan: int | None = None
    order: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """What a module held when it was given to a call: the call may change it.

    Attributes:
        module: the module (or optimizer) itself.
        graph: its structure, as `nnx.split` gives it.
        leaves, tree: its state, flattened: arrays do not change.
        order: as in `Seen`.
    """

    module: Any
    graph: Any
    leaves: tuple[Any, ...]
    tree: Any
    order: int


@dataclass(frozen=True, slots=True, eq=False)
class Leak:
    """A tracer that outlived its trace: it is still held by something of the script when that is over.

    Attributes:
        path: how the script reaches it: ``key``, ``log[0]``, ``cache['h']``, ``model.last``.
        root: the global name it is held by.
        value: the dead tracer.
        holder: the container it is in (a list, a dict, an object); None when the name itself is bound to it.
        stored: the expression or statement that put it there, when it could be told; its span is `span`.
        born: the expression that first gave this tracer.
        used: the first expression outside the trace that used it; None when nothing did.
    """

    path: str
    root: str
    value: Any
    holder: Any = None
    stored: ast.AST | None = None
    span: Span | None = None
    born: Seen | None = None
    used: Seen | None = None


@dataclass(slots=True, eq=False)
class ScriptRecord:
    """A script that ran (subject of the rules on ``script``).

    Attributes:
        source: text and tree.
        scans: in the order of their calls.
        loops: its `fori_loop` and `while_loop` calls, of one place the first few.
        held: what modules held when they were given to calls outside of all traces, the first few times.
        seen: evaluations of expressions, in order; of one expression in one frame the first few only.
        calls: calls the script made, in the order of their ends.
        events: cells that were built, initialised or stepped, outside scans and in the real trace of steps outside
            `lax.scan` (in a jitted function, say).
        failure: what ended it; None when it ran to its end.
        names: what its global names stood for when it ended.
        stdout: what it printed; `stdout_cut`: there was more than is kept.
        leaks: tracers that outlived their traces.
        abstract: whether it ran under an outer trace, where nothing is computed (`traced` then means a trace inside).
        x64: whether it had switched 64-bit mode on when it ended.
        refused: what the playground does not run of it: places, and what to write instead.
        stopped: the limit of time or memory that it ran into; None when it did not.
    """

    source: Source
    scans: list[ScanSite] = field(default_factory=list)
    loops: list[LoopSite] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    calls: list[Called] = field(default_factory=list)
    events: CellEvents = field(default_factory=CellEvents)
    failure: Failure | None = None
    names: Mapping[str, Any] = field(default_factory=dict)
    stdout: str = ""
    stdout_cut: bool = False
    leaks: Sequence[Leak] = ()
    abstract: bool = False
    x64: bool = False
    refused: Sequence[tuple[Span, str]] = ()
    stopped: Stopped | None = None
    _once: dict[Callable[[ScriptRecord], Any], Any] = field(default_factory=dict, repr=False)

    def once[T](self, work: Callable[[ScriptRecord], T]) -> T:
        """What `work(self)` gives, worked out once: for what is asked of a script that has ended."""
        if work not in self._once:
            self._once[work] = work(self)
        result: T = self._once[work]
        return result
