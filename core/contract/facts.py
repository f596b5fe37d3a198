"""What is known of a subject. Each fact is worked out once, when a rule first asks for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax import lax, tree_util

from core.base.avals import Aval, LeafType, abstract, aval_of, leaf_types
from core.base.results import ScanResult
from core.base.training import TrainingSpec
from core.contract.record import CELLS, BuildEvent, CellEvents, recording
from core.contract.sequence_facts import SequenceFacts
from core.contract.subject import MISSING, CellLog, CellTrial, FreshRngs, ScanCall, SequenceTrial, Subject
from core.contract.trace import Raised, StepTrace, same_structure, slice_aval, struct_of, trace_step
from core.contract.training_facts import TrainingFacts

if TYPE_CHECKING:
    from core.contract.script_facts import ScriptFacts


class ScanFacts:
    """Facts about a `ScanCall`."""

    on = "scan"

    def __init__(self, call: ScanCall) -> None:
        self.call = call
        self.places = call.places
        self._once: dict[Callable[[ScanFacts], Any], Any] = {}

    def once[T](self, work: Callable[[ScanFacts], T]) -> T:
        """What `work(self)` gives, worked out once: for what several rules ask of the same facts."""
        if work not in self._once:
            self._once[work] = work(self)
        result: T = self._once[work]
        return result

    @property
    def subject(self) -> Subject:
        """What these facts are about."""
        return self.call

    # --- inputs -----------------------------------------------------------------------------------------------------

    @cached_property
    def init_types(self) -> tuple[LeafType, ...]:
        """Leaves of init, rooted at ``carry``."""
        return leaf_types(self.call.init, "carry")

    @cached_property
    def xs_types(self) -> tuple[LeafType, ...]:
        """Leaves of xs, rooted at ``xs``."""
        return leaf_types(self.call.xs, "xs")

    @cached_property
    def leading(self) -> tuple[int | None, ...]:
        """The leading length of each xs leaf; None for one without an axis."""
        return tuple(t.aval.shape[0] if t.aval is not None and t.aval.shape else None for t in self.xs_types)

    @cached_property
    def length(self) -> int | None:
        """T as `lax.scan` takes it (`int()` of what was given); None when the inputs do not settle it."""
        known = {n for n in self.leading if n is not None}
        if None in self.leading or len(known) > 1:
            return None
        if self.call.length is None:
            return known.pop() if known else None
        try:
            length = int(self.call.length)
        except (TypeError, ValueError, OverflowError, jax.errors.ConcretizationTypeError):
            return None
        return length if length >= 0 and known <= {length} else None

    @cached_property
    def x_types(self) -> tuple[LeafType, ...]:
        """Leaves of one x, rooted at ``x``. Only where every xs leaf has a leading axis."""
        return tuple(
            LeafType("x" + t.path.removeprefix("xs"), slice_aval(t.aval) if t.aval and t.aval.shape else None, t.kind)
            for t in self.xs_types
        )

    # --- trace ------------------------------------------------------------------------------------------------------

    def _structs(self, *, promoted: tuple[Any, ...] | None = None) -> tuple[Any, Any]:
        leaves, tree = tree_util.tree_flatten(self.call.init)
        dtypes = promoted or (None,) * len(leaves)
        init = tree_util.tree_unflatten(tree, [struct_of(v, dtype=d) for v, d in zip(leaves, dtypes, strict=True)])
        xs, x_tree = tree_util.tree_flatten(self.call.xs)
        avals: list[Any] = [jax.typeof(v) for v in xs]
        return init, tree_util.tree_unflatten(x_tree, [abstract(a.shape[1:], a.dtype, weak=a.weak_type) for a in avals])

    @cached_property
    def first_trace(self) -> StepTrace | Raised:
        """The step traced with init as it was given: weak leaves still weak."""
        try:
            carry, x = self._structs()
        except (TypeError, OverflowError) as error:
            return Raised(error)
        return trace_step(self.call.body, carry, x, self.call.locate)

    @cached_property
    def promoted(self) -> tuple[Any, ...] | None:
        """The dtype that `lax.scan` gives each weak init leaf whose type changes in the first trace.

        One entry a leaf, None where it stays; None as a whole when nothing is promoted. This is JAX's own rule: one
        pass, `result_type` of the leaf and of what the step returned.
        """
        trace = self.first_trace
        if isinstance(trace, Raised) or trace.pair is None:
            return None
        leaves, returned = tree_util.tree_leaves(self.call.init), tree_util.tree_leaves(trace.pair[0])
        if not same_structure(self.call.init, trace.pair[0]):
            return None
        out: list[Any] = []
        for before, after in zip(leaves, returned, strict=True):
            a, b = aval_of(before), aval_of(after)
            changes = a is not None and b is not None and a.weak and (a.shape, a.dtype) != (b.shape, b.dtype)
            out.append(jax.numpy.result_type(before, jax.typeof(after)) if changes else None)
        return tuple(out) if any(d is not None for d in out) else None

    @cached_property
    def trace(self) -> StepTrace | Raised:
        """The trace that counts: after the one promotion of weak leaves, as in `lax.scan`."""
        if self.promoted is None:
            return self.first_trace
        carry, x = self._structs(promoted=self.promoted)
        return trace_step(self.call.body, carry, x, self.call.locate)

    @cached_property
    def carry_in(self) -> tuple[LeafType, ...]:
        """Types that the scan holds the carry to: init's, after the one promotion of weak leaves."""
        dtypes = self.promoted or (None,) * len(self.init_types)
        return tuple(
            t if d is None or t.aval is None else LeafType(t.path, Aval(t.aval.shape, str(d)), t.kind)
            for t, d in zip(self.init_types, dtypes, strict=True)
        )

    @property
    def cells(self) -> CellEvents:
        """Cells used inside the step."""
        return self.trace.events

    @cached_property
    def jax(self) -> Raised | None:
        """What the real `lax.scan` raises on this call before anything is computed; None when it raises nothing.

        A length or unroll that is no ordinary count gets past the trace and may fail on the way to a program, so then
        the scan is lowered too. An array as unroll is called without an outer trace, which would make a tracer of it:
        no version of JAX takes one, so nothing is computed.
        """
        if self._agrees():
            return None
        call = self.call
        kwargs = {"length": call.length, "reverse": call.reverse, "unroll": call.unroll}
        scan = partial(lax.scan, call.unshared_body, call.init, call.xs, **kwargs)
        try:
            if isinstance(call.unroll, jax.Array | np.ndarray):
                scan()
            else:
                with np.errstate(over="ignore"):  # JAX casts init with NumPy: 1e300 is infinite in float32 (N504)
                    jax.eval_shape(lambda: scan())
            if not all(n is None or (type(n) in (int, bool) and 0 <= n < 2**31) for n in (call.length, call.unroll)):
                jax.jit(lambda: scan()).lower()
        except Exception as error:  # noqa: BLE001  # what a learner's code raises is a fact here
            return Raised(error)
        return None

    def _agrees(self) -> bool:
        """Whether the trace shows that all `lax.scan` compares agrees: then it need not be asked, which traces again.

        Only the plain case is answered; whatever is unusual about a call is asked of JAX.
        """
        call, trace = self.call, self.trace
        usual = type(call.reverse) is bool and type(call.unroll) is int and call.unroll > 0
        counted = type(call.length) in (int, type(None)) and 0 < (self.length or 0) < 2**31
        if not usual or not counted or not isinstance(trace, StepTrace) or trace.pair is None or trace.jaxpr.effects:
            return False
        if not same_structure(call.init, trace.pair[0]) or any(t.aval is None for t in trace.types):
            return False
        count = len(self.init_types)
        before, after = trace.jaxpr.in_avals[:count], trace.jaxpr.out_avals[:count]
        return all(a.strip_weak_type() == b.strip_weak_type() for a, b in zip(before, after, strict=True))

    # --- run --------------------------------------------------------------------------------------------------------

    @cached_property
    def run(self) -> ScanResult | Raised:
        """The scan, run for real with its whole trajectory. Asked for only when the stages before were clean."""
        from core.runners.scan import run_call

        try:
            result: ScanResult = run_call(self.call)
            return result
        except Exception as error:  # noqa: BLE001  # what a learner's code raises is a fact here
            return Raised(error)


def scan_facts(call: ScanCall) -> ScanFacts:
    """The facts of a call; within one check always the same ones, so that a proof asks nothing twice."""
    from core.runners.memo import once

    return once(("facts",), (call,), lambda: ScanFacts(call))


class CellFacts:
    """Facts about a `CellTrial`: it is run once, eagerly, and each part's end is kept."""

    on = "cell"

    def __init__(self, trial: CellTrial) -> None:
        self.trial = trial
        self.places = trial.places

    @property
    def subject(self) -> Subject:
        """What these facts are about."""
        return self.trial

    @cached_property
    def cells(self) -> CellEvents:
        """One build, at most one initialised carry, at most one step; an event that raised is the last."""
        return run_trial(self.trial)

    @property
    def jax(self) -> Raised | None:
        """What the trial raised, if it did."""
        return _raised(self.cells)


class LogFacts:
    """Facts about a `CellLog`: the record itself."""

    on = "log"

    def __init__(self, log: CellLog) -> None:
        self.log = log
        self.places = log.places
        self.cells = log.events

    @property
    def subject(self) -> Subject:
        """What these facts are about."""
        return self.log

    @property
    def jax(self) -> Raised | None:
        """What the first cell that raised did raise."""
        return _raised(self.cells)


def _raised(cells: CellEvents) -> Raised | None:
    kept: tuple[Any, ...] = (*cells.builds, *cells.carries, *cells.steps, cells)
    return next((Raised(one.error) for one in kept if one.error is not None), None)


def run_trial(trial: CellTrial, *, constructor: bool = False) -> CellEvents:
    """Build the cell, initialise its carry, step once; stops at the first exception, which its event keeps.

    Args:
        trial: what to run.
        constructor: whether the cell's own constructor must run (for who listens to what it asks its stream for);
            else a cell that is known to come out the same may stand for it.
    """
    events = CellEvents()
    try:
        with recording(events):
            cell = None if constructor else _known_cell(trial, events)
            if cell is None:
                cell = trial.cell(trial.in_features, trial.hidden_features, **_given(rngs=trial.rngs))
            if trial.edit_cell is not None:
                cell = trial.edit_cell(cell)
            carry = trial.carry
            if carry is MISSING or callable(carry):
                first = cell.initialize_carry(trial.input_shape, **_given(rngs=trial.carry_rngs))
                carry = first if carry is MISSING else carry(first)
            cell(carry, trial.inputs)
    except Exception as error:  # noqa: BLE001  # what a learner's code raises is a fact here
        if _raised(events) is None:
            events.error = error
    return events


def _known_cell(trial: CellTrial, events: CellEvents) -> Any:
    """The cell that the trial's constructor would give, to the last bit; None where only the constructor can tell.

    The constructor draws its parameters one by one, which takes longer than the step and all that is said of it.
    """
    sizes = (trial.in_features, trial.hidden_features)
    if trial.cell not in CELLS or not isinstance(trial.rngs, FreshRngs) or not all(type(n) is int for n in sizes):
        return None
    from core.runners.layers import parts_of_cell, rngs_after

    kind, seed = trial.cell.__name__, trial.rngs.seed
    try:
        with recording(CellEvents()):  # to learn how a cell is drawn, one may be built: that is nobody's event
            cell, rngs = parts_of_cell(kind, *sizes, seed).cell(), rngs_after(kind, seed)
    except Exception:  # noqa: BLE001  # the constructor raises it itself, where the record can see it
        return None
    events.builds.append(BuildEvent(trial.cell, *sizes, rngs, cell=cell))
    return cell


def _given(**kwargs: Any) -> dict[str, Any]:
    """Keyword arguments without the missing ones; a function makes a fresh value (an Rngs counts its draws)."""

    def fresh(value: Any) -> Any:
        return value() if isinstance(value, FreshRngs) or type(value).__name__ == "function" else value

    return {k: fresh(v) for k, v in kwargs.items() if v is not MISSING}


type Facts = ScanFacts | CellFacts | LogFacts | SequenceFacts | TrainingFacts | ScriptFacts


def facts_of(subject: Subject) -> Facts:
    """The facts of any kind of subject."""
    if isinstance(subject, ScanCall):
        return scan_facts(subject)
    if isinstance(subject, CellTrial):
        return CellFacts(subject)
    if isinstance(subject, CellLog):
        return LogFacts(subject)
    if isinstance(subject, SequenceTrial):
        return SequenceFacts(subject)
    if isinstance(subject, TrainingSpec):
        return TrainingFacts(subject)
    from core.contract.script_facts import ScriptFacts  # it is about scans and cells, and rests on their facts

    return ScriptFacts(subject)
