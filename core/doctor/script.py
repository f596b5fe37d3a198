"""Runs a script under recorders: its scans, its cells, its calls, what it raised and where, what it printed.

    run = run_script(Source(text))                       # trusted: tests, and the command line without a sandbox
    run = run_script(Source(text), prepare=environment)  # the sandbox's, inside a worker

`prepare` makes a `Program` of a source (see `instrument`): code that reports each expression to the hooks, to be
executed in names that the program brings. Nothing is shared between two runs but JAX itself.
"""

from __future__ import annotations

import ast
import contextlib
import dis
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import jax

from core.base.places import Places, Span
from core.base.results import ScanResult
from core.base.violation import Severity
from core.contract import engine
from core.contract.engine import Diagnosis, Found
from core.contract.facts import LogFacts
from core.contract.record import CellEvents, recording
from core.contract.rule import Measure, Rule, Stage, all_rules
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import TIME, Failure, ScriptRecord, Stopped
from core.contract.source import Source
from core.contract.subject import MISSING, CellLog
from core.doctor.cost import OverBudget
from core.doctor.cycles import forget_cycles
from core.doctor.instrument import Prepare, Program, Refused, patched, trusted
from core.doctor.leaks import leaks_of
from core.doctor.locate import cell_places, frames_of, innermost, operands_of
from core.doctor.loops import LoopWatch
from core.doctor.no_values import needs_values
from core.doctor.recorder import Output, Recorder, flush
from core.doctor.refused import out_of_memory, refused
from core.doctor.watch import Look, ScanWatch, guarded
from core.runners.memo import one_check
from core.sandbox.timeup import TimeUp

type Measures = Mapping[int | str, Measure]

#: Stages of a script's own rules: all of them are known once it has ended.
ALL = (*engine.BEFORE_RUN, Stage.RUN)
#: Stands for a rule among the problems of a run whose time was over before all rules had been asked.
CONCLUSION = "conclusion"
#: Stands there for the search for values that leaked out of a trace.
LEAKS = "leaks"
SCAN, NNX_SCAN = "jax.lax.scan", "flax.nnx.scan"
#: Rules about the sizes of a page: a script's are bounded by what a run may cost.
NOT_OF_SCRIPTS = frozenset({"X601"})


def rules_for_scripts() -> tuple[Rule, ...]:
    """The rules that are about scripts and what they do."""
    return tuple(rule for rule in all_rules() if rule.code not in NOT_OF_SCRIPTS)


@dataclass(slots=True, eq=False)
class ScriptRun:
    """A script that ran, and what the rules say of it.

    Attributes:
        record: what it did.
        looks: one for each scan of the record.
        log: findings about cells outside scans; None when there were none.
        script: findings of the rules on ``script``.
        numbers: by rule code and path, the number of each finding of `log` and `script` that can be proved.
        measured: by ``log`` and ``script``, what the caller asked to be measured.
        problems: rules of ours that failed, by code: they are no news for the learner.
        skipped: in an abstract run, lines of statements that need values.
        program: what ran; to be closed when its objects are not needed any more (`Checkup.close`).
    """

    record: ScriptRecord
    looks: list[Look] = field(default_factory=list)
    log: Diagnosis | None = None
    script: Diagnosis | None = None
    numbers: dict[tuple[str, str], float | None] = field(default_factory=dict)
    measured: dict[str, float | None] = field(default_factory=dict)
    problems: list[tuple[str, Exception]] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    program: Program | None = None

    @property
    def results(self) -> list[ScanResult | None]:
        """The trajectory of each scan, where it is known."""
        return [look.result for look in self.looks]


def run_script(
    source: Source,
    *,
    prepare: Prepare = trusted,
    rules: tuple[Rule, ...] | None = None,
    measures: Measures | None = None,
    abstract: bool = False,
    output: int | None = None,
    budget: int | None = None,
    proofs: bool = True,
) -> ScriptRun:
    """Run a script once and diagnose all that it did.

    Args:
        source: the script.
        prepare: how it is made ready to run.
        rules: all of them by default.
        measures: by index of a scan, or ``log`` or ``script``, a number to be measured on it while the script is there.
        abstract: run it under an outer trace, where nothing is computed and statements that need values are skipped.
        output: at most so many characters of what it prints are kept.
        budget: a scan that would compute more numbers than this is not run, and ends the script (X601).
        proofs: whether the numbers of what is found are measured; those of `measures` are in any case.

    Raises:
        Refused: it holds what is not run here; nothing ran.
    """
    problems: list[tuple[str, Exception]] = []
    chosen = guarded(rules_for_scripts() if rules is None else rules, problems)
    printed = Output(output)
    recorder = Recorder(source, printed)
    events = CellEvents(locate=lambda: None if recorder.muted else cell_places(source))
    record = recorder.record
    record.events, record.abstract = events, abstract
    recorder.abstract = printed.muted = abstract
    watch = ScanWatch(recorder, events, chosen, measures or {}, budget, proofs=proofs)
    recorder.replace = {SCAN: watch.scan, NNX_SCAN: watch.nnx_scan(), **LoopWatch(recorder).replace}
    run = ScriptRun(record, watch.looks, problems=problems)
    program = prepare(source, recorder)
    recorder.names = program.names
    with _x64_restored(record), recording(events), _captured(printed):
        with patched(recorder.replace) if prepare is trusted else contextlib.nullcontext():
            error = (_abstractly if abstract else _execute)(program, recorder, run)
        flush()
        record.names = {k: v for k, v in program.names.items() if not k.startswith("__") and k != "_probe_"}
        forget_cycles(record)
        record.stdout, record.stdout_cut = printed.text, printed.cut
        with recorder.mute(), recording(CellEvents()), one_check():  # steps that our proofs take are none of its own
            record.failure = None if error is None else _failure(recorder, watch, error)
            if record.failure is not None:
                record.refused = refused(record.failure.span, record.failure.error)
                record.stopped = record.stopped or out_of_memory(record.failure)
            try:
                try:
                    record.leaks = leaks_of(record)
                except Exception as failed:  # noqa: BLE001  # containers of the script's own may do anything when read
                    problems.append((LEAKS, failed))
                _conclude(run, chosen, measures or {}, proofs=proofs)
            except TimeUp as alarm:  # the script itself is through: what was found so far stands
                problems.append((CONCLUSION, RuntimeError(type(alarm).__name__)))
    recorder.muted = printed.muted = True  # what is measured on the script's functions later is no part of its run
    run.program = program
    return run


@contextmanager
def _captured(printed: Output) -> Iterator[None]:
    """What the script prints is kept; what it says on standard error, and warnings, would come once for each run of ours."""
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(Output(0)), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _x64_restored(record: ScriptRecord) -> Iterator[None]:
    config: Any = jax.config  # untyped in jax's stubs
    before = bool(config.read("jax_enable_x64"))
    try:
        yield
    finally:
        record.x64 = bool(config.read("jax_enable_x64"))
        config.update("jax_enable_x64", before)


# --- execution ------------------------------------------------------------------------------------------------------


def _execute(program: Program, recorder: Recorder, _: ScriptRun) -> BaseException | None:
    recorder.begin(program.spans)
    try:
        for statement in program.statements:
            exec(statement, program.names)  # noqa: S102  # running scripts is what this is for; see `Prepare`
    except (SystemExit, OverBudget):
        return None
    except TimeUp as alarm:
        recorder.record.stopped = _stopped(recorder, alarm)
        return None
    except BaseException as error:  # whatever a script raises is what we are here to explain
        if not _its_own(error, recorder):
            raise
        return error
    return None


def _abstractly(program: Program, recorder: Recorder, run: ScriptRun) -> BaseException | None:
    """Execute under an outer trace. A statement that needs a value is left out, and so is what needs its names."""
    ended: list[BaseException] = []

    def script() -> None:
        recorder.begin(program.spans)
        for statement in program.statements:
            try:
                exec(statement, program.names)  # noqa: S102
            except SystemExit:
                return
            except TimeUp as alarm:
                recorder.record.stopped = _stopped(recorder, alarm)
                return
            except BaseException as error:
                if not _its_own(error, recorder):
                    raise
                if not needs_values(recorder, error, skipped=bool(run.skipped)):
                    ended.append(error)
                    return
                run.skipped.append(min(line for _, _, line in statement.co_lines() if line))

    jax.make_jaxpr(script)()
    return ended[0] if ended else None


def _its_own(error: BaseException, recorder: Recorder) -> bool:
    """Whether an exception is the script's: all of them are but a KeyboardInterrupt that no `raise` of it made."""
    if not isinstance(error, KeyboardInterrupt):
        return True
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    code = None if trace is None else trace.tb_frame.f_code
    if trace is None or code is None or code.co_filename != recorder.source.filename:
        return False
    return dis.opname[code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"


def _stopped(recorder: Recorder, alarm: TimeUp) -> Stopped:
    """Where the script was when its time was over."""
    frames = frames_of(recorder.source, alarm)
    return Stopped(TIME, frames[-1].span if frames else None)


# --- what it raised -------------------------------------------------------------------------------------------------


def _failure(recorder: Recorder, watch: ScanWatch, error: BaseException) -> Failure | None:
    source = recorder.source
    frames = frames_of(source, error)
    if not frames:
        return None
    frame = innermost(error, source.filename)
    node = frames[-1].node
    value_of = lambda part: recorder.latest(part, frame)  # noqa: E731
    _, scan = watch.raised.get(id(error), (error, None))
    site = None if scan is None else recorder.record.scans[scan]
    call = None if site is None or site.node is None else source.span(site.node)
    outer = next((i for i, f in enumerate(frames) if f.span == call), None)
    in_step = outer is not None and outer + 1 < len(frames)
    if frame is not None and isinstance(node, ast.Call):
        recorder.record.calls.append(recorder.called(node, frame, MISSING, error))
    return Failure(error, frames, operands_of(source, node, value_of), scan, in_step)


# --- findings -------------------------------------------------------------------------------------------------------


def _conclude(run: ScriptRun, rules: tuple[Rule, ...], measures: Measures, *, proofs: bool) -> None:
    """Diagnose the cells outside scans, then the script, which has nothing to add to what they explain."""
    record = run.record
    events = record.events
    if events.builds or events.carries or events.steps:
        facts = LogFacts(CellLog(events, Places()))
        run.log = engine.diagnose_facts(facts, rules, ALL)
    for site, look in zip(record.scans, run.looks, strict=False):
        if site.error is not None and not _ended_by(record.failure, site.error):
            kept = tuple(_caught(found) for found in look.diagnosis.found)
            look.diagnosis = replace(look.diagnosis, found=kept, error=None)
    if record.failure is not None:
        record.failure = _explained(run, record.failure)
    run.script = engine.diagnose_facts(ScriptFacts(record), rules, ALL)
    for name, diagnosis in (("log", run.log), ("script", run.script)):
        if diagnosis is None:
            continue
        subject = diagnosis.facts.subject
        for found in diagnosis.found if proofs else ():
            if found.finding.measure is not None:
                run.numbers[found.key] = engine.number_of(found.finding.measure, subject)
        if name in measures:
            run.measured[name] = engine.number_of(measures[name], subject)


def _ended_by(failure: Failure | None, error: BaseException) -> bool:
    """Whether the script ended by this exception, or by one that was raised for it."""
    at: BaseException | None = None if failure is None else failure.error
    passed: set[int] = set()
    while at is not None and id(at) not in passed:
        if at is error:
            return True
        passed.add(id(at))
        at = at.__cause__ or at.__context__
    return False


def _caught(found: Found) -> Found:
    """A fault whose exception the script itself caught: it is expected there, and worth a note."""
    if found.severity is not Severity.ERROR:
        return found
    return replace(found, finding=replace(found.finding, severity=Severity.NOTE))


def _explained(run: ScriptRun, failure: Failure) -> Failure:
    """The failure, marked when a finding about a scan or a cell says why it happened.

    A library that steps a cell (`nnx.RNN`) raises where a step alone would be silent: what was found in the very call
    that failed is then an error.
    """
    diagnoses = [] if failure.scan is None else [run.looks[failure.scan].diagnosis]
    cells = run.record.events
    kept: tuple[Any, ...] = (*cells.builds, *cells.carries, *cells.steps)
    if run.log is not None and any(event.error is failure.error for event in kept):
        diagnoses.append(run.log)
    if run.log is not None and failure.scan is None and isinstance(failure.node, ast.Call):
        run.log = replace(run.log, found=tuple(_raising(f, failure.span) for f in run.log.found))
        diagnoses.append(replace(run.log, found=tuple(f for f in run.log.found if _inside(f, failure.span))))
    explained = bool(run.record.refused or run.record.stopped) or any(
        f.severity is Severity.ERROR for d in diagnoses for f in d.found
    )
    return Failure(failure.error, failure.frames, failure.operands, failure.scan, failure.in_step, explained)


def _raising(found: Found, span: Span) -> Found:
    """A warning about a cell in the call that raised, as the error it is there."""
    if found.severity is not Severity.WARNING or not _inside(found, span):
        return found
    return replace(found, finding=replace(found.finding, severity=Severity.ERROR, silent=False, measure=None))


def _inside(found: Found, span: Span) -> bool:
    place = found.finding.place
    if not isinstance(place, Span):
        return False
    starts = (span.line, span.col) <= (place.line, place.col)
    return starts and (place.end_line, place.end_col) <= (span.end_line, span.end_col)


__all__ = ["Refused", "ScriptRun", "run_script"]
