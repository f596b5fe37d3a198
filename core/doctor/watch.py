"""What stands in for `jax.lax.scan` while a script runs: the real one, with a look at the call before it.

A call is checked through the stages that compute nothing. When it is clean and no trace is under way, the real scan
runs with the new carry of each step stacked beside ys (as `core.runners.scan` does, at the exact length): the script
gets the values it would have got, and the Doctor the whole trajectory without a second program.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any

import jax
from flax import nnx
from jax import tree_util
from jax.extend import source_info_util

import core
from core.base.avals import aval_of
from core.base.limits import LIMITS
from core.base.places import Places
from core.base.results import ScanResult
from core.base.violation import Severity
from core.contract import engine
from core.contract.engine import Diagnosis, Found
from core.contract.facts import ScanFacts, scan_facts
from core.contract.record import CellEvents, recording
from core.contract.rule import Jax, Measure, Rule, Stage
from core.contract.script_record import ScanSite
from core.contract.source import Function, code_of
from core.contract.subject import ScanCall
from core.contract.trace import Raised
from core.doctor import nnx_scan
from core.doctor.axes import axes_of
from core.doctor.cost import OverBudget, over_budget
from core.doctor.locate import OURS, SIGNATURE, cell_places, scan_arguments, scan_places
from core.doctor.recorder import Recorder, flush
from core.doctor.still import undisturbed
from core.runners.memo import one_check
from core.runners.scan import pair_of, result_of

#: Our own frames are none of the script's: JAX leaves them out of what it says of leaked tracers.
source_info_util.register_exclusion(str(Path(core.__file__).parent))
#: How often a call of the same place, step and types is checked anew (a Python loop around a scan).
CHECKS = 3


@dataclass(slots=True, eq=False)
class Look:
    """What was found out about one scan of the run.

    Attributes:
        diagnosis: findings of the stages it got through.
        numbers: by rule code and path, the number of each finding that can be proved.
        measured: what the caller asked to be measured on this scan.
        result: the trajectory; None when it was traced, too large, or never ran.
    """

    diagnosis: Diagnosis
    numbers: dict[tuple[str, str], float | None] = field(default_factory=dict)
    measured: float | None = None
    result: ScanResult | None = None


class ScanWatch:
    """Replaces `jax.lax.scan` for one run."""

    def __init__(
        self,
        recorder: Recorder,
        events: CellEvents,
        rules: tuple[Rule, ...],
        measures: Mapping[int | str, Measure],
        budget: int | None = None,
        *,
        proofs: bool = True,
    ) -> None:
        self.real: Callable[..., Any] = jax.lax.scan
        self.looks: list[Look] = []
        #: By identity of an exception, the scan it came out of first, and whether out of its step.
        self.raised: dict[int, tuple[BaseException, int]] = {}
        self._recorder = recorder
        self._events = events
        self._rules = rules
        self._measures = measures
        self._budget = budget
        self._proofs = proofs
        self._kept = 0
        self._checked: dict[Any, tuple[int, int]] = {}
        self._wrapped: dict[int, tuple[Any, Any]] = {}

    def scan(self, *args: Any, **kwargs: Any) -> Any:
        """``lax.scan`` as the script calls it."""
        frame = _caller(sys._getframe(1))
        if self._recorder.muted or frame is None or frame.f_code.co_filename != self._recorder.source.filename:
            return self.real(*args, **kwargs)
        hidden = {k: v for k, v in kwargs.items() if k.startswith("_")}
        named = {("step" if k == "f" else k): v for k, v in kwargs.items() if k not in hidden}
        try:
            bound = SIGNATURE.bind(*args, **named)
        except TypeError:
            return self.real(*args, **kwargs)
        bound.apply_defaults()
        with one_check():
            return self._look(frame, bound.arguments, hidden)

    # --- one call ---------------------------------------------------------------------------------------------------

    def _look(self, frame: FrameType, given: dict[str, Any], hidden: dict[str, Any]) -> Any:
        recorder = self._recorder
        node = recorder.source.call_at(frame)
        options = {k: given[k] for k in ("length", "reverse", "unroll")} | hidden

        def plain(step: Any = given["step"]) -> Any:
            return self.real(step, given["init"], given["xs"], **options)

        known = self._known(node, given["step"], given)
        if known is not None:
            return self._run(None, known, plain)
        source = recorder.source
        name = None if node is None else source.dotted(node.func)
        arguments = scan_arguments(node) if node is not None and name and name.endswith("scan") else {}
        places = scan_places(source, node, given)
        site = self._site(node, given, places, source.function(given["step"]), arguments)
        look = Look(self._diagnose(site, engine.BEFORE_RUN))
        self.looks.append(look)
        self._afford(site, look)
        if not _clean(look) or not recorder.valued or not self._small_enough(site.facts):
            try:
                out = self._run(site, site.index, plain)
            except Exception:  # one step of it may still be taken, to prove what JAX says nothing of
                self._measure(site, look)
                raise
        elif given["unroll"] == 1 and type(given["unroll"]) is int:
            final, (ys, carries) = self._run(site, site.index, lambda: plain(self._stacking(given["step"])))
            out = final, ys
            flush()  # prints of the script's own must not come while its output is muted
            with recorder.mute():
                site.facts.__dict__["run"] = result_of(site.call, carries, ys)
            self._finish(site, look)
        else:  # another output would move the last bits of an unrolled loop
            out = self._run(site, site.index, plain)
            self._finish(site, look)
        return self._done(site, look, out)

    def _afford(self, site: ScanSite, look: Look) -> None:
        """Raises `OverBudget` before what would cost too much."""
        found = over_budget(site.facts, self._budget) if self._recorder.valued and _clean(look) else None
        if found is not None:
            look.diagnosis = replace(look.diagnosis, found=(*look.diagnosis.found, found), reached=Stage.LIMIT)
            raise OverBudget

    def _small_enough(self, facts: ScanFacts) -> bool:
        """Whether all its carries may be kept beside those of the scans before it."""
        count = kept_elements(facts)
        if self._kept + count > LIMITS["kept"].value:
            return False
        self._kept += count
        return True

    def _finish(self, site: ScanSite, look: Look) -> None:
        """The rules that want the trajectory."""
        flush()
        look.diagnosis = self._diagnose(site, (Stage.RUN,), look.diagnosis)
        result = site.facts.run
        look.result = None if isinstance(result, Raised) else result

    def _done(self, site: ScanSite, look: Look, out: Any) -> Any:
        """A scan that returned broke no rule that JAX raises at: such a finding would be ours to regret."""
        site.result = out
        if look.diagnosis.error is not None or any(_raises(f) for f in look.diagnosis.found):
            kept = tuple(f for f in look.diagnosis.found if not _raises(f))
            look.diagnosis = replace(look.diagnosis, found=kept, error=None)
        self._measure(site, look)
        return out

    # --- nnx.scan ---------------------------------------------------------------------------------------------------

    def nnx_scan(self) -> Callable[..., Any]:
        """``nnx.scan`` as the script calls it."""
        return nnx_scan.wrapping(nnx.scan, self._nnx_once)

    def _nnx_once(self, *call: Any) -> Any:
        with one_check():
            return self._nnx(*call)

    def _nnx(self, made: Any, function: Any, options: dict[str, Any], args: Any, kwargs: Any) -> Any:
        recorder = self._recorder
        frame = _caller(sys._getframe(3))
        outside = recorder.muted or frame is None or frame.f_code.co_filename != recorder.source.filename
        described = None if outside or kwargs else nnx_scan.describe(function, options, args)
        if described is None or frame is None:
            return made(*args, **kwargs)
        source = recorder.source
        node = source.call_at(frame)
        given = {name: getattr(described, name) for name in SIGNATURE.parameters}
        known = self._known(node, function, given)
        if known is not None:
            return self._run(None, known, lambda: made(*args))
        definition = source.function(function)
        arguments = nnx_scan.arguments_of(described, node, len(args))
        places = nnx_scan.places_of(source, described, node, definition, arguments)
        site = self._site(node, given, places, definition, arguments)
        site.changed = described.changed
        look = Look(self._diagnose(site, engine.BEFORE_RUN))
        self.looks.append(look)
        self._afford(site, look)
        out = self._run(site, site.index, lambda: made(*args))
        pair = (out[described.out], out[1 - described.out])
        if _clean(look) and recorder.valued and not described.modules and self._small_enough(site.facts):
            self._finish(site, look)
        self._done(site, look, pair)
        return out

    # --- one site ---------------------------------------------------------------------------------------------------

    def _known(self, node: ast.Call | None, step: Any, given: dict[str, Any]) -> int | None:
        """The scan that stands for this call in the record, when calls of its place, step and types were checked enough."""
        leaves, tree = tree_util.tree_flatten((given["init"], given["xs"]))
        types = tuple((aval_of(leaf), type(leaf).__name__) for leaf in leaves)
        options = tuple(repr(given[k]) for k in ("length", "reverse", "unroll"))
        key = node, code_of(step), types, tree, options, self._recorder.traced
        count, index = self._checked.get(key, (0, len(self._recorder.record.scans)))
        self._checked[key] = count + 1, index
        return index if count >= CHECKS else None

    def _site(
        self,
        node: ast.Call | None,
        given: dict[str, Any],
        places: Places,
        step: Function | None,
        arguments: dict[str, ast.expr],
    ) -> ScanSite:
        recorder, events = self._recorder, self._events
        source = recorder.source
        call = ScanCall(
            **given,
            places=places,
            axes=axes_of(source, arguments.get("xs"), given["xs"]),
            earlier=CellEvents(list(events.builds), list(events.carries), list(events.steps)),
            locate=lambda: cell_places(source),
        )
        site = ScanSite(
            len(recorder.record.scans),
            node,
            call,
            scan_facts(call),
            step,
            recorder.traced,
            arguments,
            recorder.scan,
            order=recorder.tick(),
        )
        recorder.record.scans.append(site)
        return site

    def _diagnose(self, site: ScanSite, stages: tuple[Stage, ...], before: Diagnosis | None = None) -> Diagnosis:
        recorder = self._recorder
        names, step = recorder.names, site.call.step
        with recorder.mute(), undisturbed(names, step, filename=recorder.source.filename), recording(CellEvents()):
            return engine.diagnose_facts(site.facts, self._rules, stages, before)

    # --- the real scan ----------------------------------------------------------------------------------------------

    def _run(self, site: ScanSite | None, index: int, real: Callable[[], Any]) -> Any:
        """The real call; `index` is the scan that stands for it in the record."""
        recorder = self._recorder
        recorder.inside.append(index)
        try:
            with recording(CellEvents()):
                return real()
        except Exception as error:
            if site is not None:
                site.error = error
                self.raised.setdefault(id(error), (error, site.index))
            raise
        finally:
            recorder.inside.pop()

    def _stacking(self, step: Any) -> Any:
        """The step with its new carry beside y; the same one for the same step, so that JAX traces it as often."""
        if id(step) not in self._wrapped:

            @wraps(step, updated=())
            def stacking(carry: Any, x: Any) -> Any:
                new, y = pair_of(step(carry, x))
                return new, (y, new)

            self._wrapped[id(step)] = (step, stacking)
        return self._wrapped[id(step)][1]

    # --- proofs -----------------------------------------------------------------------------------------------------

    def _measure(self, site: ScanSite, look: Look) -> None:
        """The numbers of the findings that can be proved, and those asked for, while the step's globals are as they were."""
        found = [f for f in look.diagnosis.found if self._proofs and f.finding.measure is not None]
        asked = self._measures.get(site.index)
        if not self._recorder.valued or (not found and asked is None):
            return
        recorder = self._recorder
        names, step = recorder.names, site.call.step
        with recorder.mute(), undisturbed(names, step, filename=recorder.source.filename), recording(CellEvents()):
            for one in found:
                if one.finding.measure is not None:
                    look.numbers[one.key] = engine.number_of(one.finding.measure, site.call)
            if asked is not None:
                look.measured = engine.number_of(asked, site.call)


def _caller(frame: FrameType | None) -> FrameType | None:
    """The nearest frame that is not ours: who really called."""
    while frame is not None and frame.f_globals.get("__name__", "").startswith(OURS):
        frame = frame.f_back
    return frame


def _clean(look: Look) -> bool:
    """Whether nothing stands against running it."""
    return look.diagnosis.reached is Stage.RUN and look.diagnosis.error is None


def _raises(found: Found) -> bool:
    """Whether a finding says that JAX raises."""
    return found.severity is Severity.ERROR and found.finding.silent is not True and found.rule.jax is not Jax.SILENT


def kept_elements(facts: ScanFacts) -> int:
    """How many elements all its carries have, init included."""
    carried = sum(t.aval.size for t in facts.carry_in if t.aval is not None)
    return carried * ((facts.length or 0) + 1)


def guarded(rules: Iterable[Rule], problems: list[tuple[str, Exception]]) -> tuple[Rule, ...]:
    """The rules, made so that one that fails is left out of the check, and noted, instead of ending it.

    A rule that wants the values of a traced scan has none to look at: that is no problem of the rule's.
    """

    def safe(rule: Rule) -> Rule:
        def check(facts: Any) -> list[Any]:
            found = []
            try:
                found += list(rule.check(facts))
            except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError) as error:
                if not any(isinstance(v, jax.core.Tracer) for v in _leaves(facts)):
                    problems.append((rule.code, error))
            except Exception as error:  # noqa: BLE001  # a mistake of ours must not hide what the other rules found
                problems.append((rule.code, error))
            return found

        return replace(rule, check=check)

    return tuple(safe(rule) for rule in rules)


def _leaves(facts: Any) -> list[Any]:
    if isinstance(facts, ScanFacts):
        return tree_util.tree_leaves((facts.call.init, facts.call.xs))
    return [leaf for step in facts.cells.steps for leaf in tree_util.tree_leaves((step.carry, step.inputs))]
