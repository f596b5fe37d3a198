"""What a worker does with one request: the check of a script, as plain data both ways.

    handle({"wish": "check", "text": "…"})      ->  an answer of `core.doctor.wire`, as a dict

A worker belongs to one session; what it keeps between two requests (the checkup whose fixes may be asked for next) is
that session's own. After a script that was stopped in the middle, of which nobody knows what it left half done, the
answer says ``retire``, and the worker is replaced.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from core.base.limits import LIMITS
from core.base.outcome import Outcome, Report
from core.base.text import fill
from core.base.violation import Severity, Violation
from core.contract.rule import all_rules
from core.contract.script_record import TIME
from core.doctor import grade_job, parting_job
from core.doctor.answer import LINK, Answer, LineShape, Request, ScanPanel, Wish
from core.doctor.check import Checkup, Terms, examine, with_fixes
from core.doctor.edits import makers
from core.doctor.gallery import EXAMPLES
from core.doctor.issue import as_issue
from core.doctor.messages import code_of_message
from core.doctor.panels import panels_of
from core.doctor.prep import Kind, Prepared, prepared
from core.doctor.sandboxed import sandboxed
from core.doctor.script import ScriptRun
from core.doctor.shapes import shapes_by_line
from core.doctor.stand_in import stand_ins_of
from core.doctor.wire import to_wire
from core.sandbox import timeup
from core.sandbox.timeup import TimeUp

#: Seconds that a script gets whose own time was over, to have its shapes checked.
MORE = 0.7
#: Seconds that its answer may take to be put together then.
SHORT = 0.2
#: Stands for a rule among the problems of a run, where a part of its answer could not be made.
ANSWER = "answer"
TOO_LONG = "The script has {asked} characters; {allowed} are read. Leave out what is not needed to show the fault."
#: A clean script of the usual kind: running it once compiles and traces what nearly every script needs.
WARM = """
import jax
import jax.numpy as jnp
from flax import nnx

cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))

def step(carry, x):
    carry, h = cell(carry, x)
    return carry, h

init = cell.initialize_carry((2, 3), rngs=nnx.Rngs(1))
final, ys = jax.lax.scan(step, init, jax.random.normal(jax.random.key(0), (5, 2, 3)))
total, sums = jax.lax.scan(lambda c, x: (c + x, c + x), 0.0, jnp.arange(4.0))
print(ys.shape, total)
"""


def handle(request: dict[str, Any]) -> dict[str, Any]:
    """Do what is asked.

    Args:
        request: ``wish`` (see `Wish`) and ``text``; or one of `core.doctor.parting_job` or `core.doctor.grade_job`.

    Raises:
        ValueError, KeyError: it is no request.
    """
    if request["wish"] == parting_job.WISH:
        return parting_job.handle(request)
    if request["wish"] == grade_job.WISH:
        given = prepared(str(request["text"]))
        if len(given.script) > LIMITS["script_text"].value:
            return grade_job.sent(to_wire(_too_long(given, Wish.CHECK)))
        return grade_job.handle(request, _terms(), answer_of)
    return _DESK.handle(Request(Wish(request["wish"]), str(request["text"])))


def preload() -> None:
    """What every worker would import and trace again, done once in the process that they are forked from.

    An abstract pass starts no backend and no thread, which could not be forked.
    """
    makers()  # imports what writes edits
    examine(WARM, _terms(), abstract=True).close()


def warm() -> None:
    """Make the first real request as quick as the later ones."""
    desk = Desk()
    for wish in (Wish.SHAPES, Wish.CHECK, Wish.FIXES):
        desk.handle(Request(wish, WARM))
    desk.close()


def stock() -> None:
    """Compile what many will run: the examples, whose sizes people keep when they change a script."""
    desk = Desk()
    for example in EXAMPLES.values():
        for wish in (Wish.CHECK, Wish.FIXES):
            desk.handle(Request(wish, example.text))
    desk.close()


class Desk:
    """One worker's own: it remembers the script that was checked last."""

    def __init__(self) -> None:
        self._text: str | None = None
        self._checkup: Checkup | None = None

    def handle(self, request: Request) -> dict[str, Any]:
        """One request; the answer as plain data."""
        start = time.perf_counter()
        given = prepared(request.text)
        if len(given.script) > LIMITS["script_text"].value:
            return to_wire(_too_long(given, request.wish))
        retire = False
        fixed = False
        try:
            if request.wish is Wish.SHAPES:
                checkup = examine(request.text, _terms(), abstract=True)
            elif request.wish is Wish.CHECK:
                checkup = self._check(request.text)
            else:
                checkup, fixed = with_fixes(self._last(request.text)), True
                self._checkup = checkup
        except TimeUp:  # in our own part of the work
            if request.wish is Wish.SHAPES:
                raise
            timeup.arm(MORE)
            checkup, retire = examine(request.text, _terms(), abstract=True), True
            checkup.cut = request.wish is Wish.FIXES
        retire = retire or _was_stopped(checkup)
        timeup.arm(SHORT if retire else MORE)  # our own work, and short; but a step that never ends may be traced in it
        answer = answer_of(checkup, request.wish, fixed=fixed, milliseconds=1e3 * (time.perf_counter() - start))
        timeup.arm(0)
        if request.wish is Wish.SHAPES:
            checkup.close()
        return to_wire(answer) | ({"retire": True} if retire else {})

    def _check(self, text: str) -> Checkup:
        self.close()
        self._checkup = examine(text, _terms())
        self._text = text
        return self._checkup

    def _last(self, text: str) -> Checkup:
        if self._checkup is None or self._text != text:
            return self._check(text)
        return self._checkup

    def close(self) -> None:
        """Forget the last script, and take back what it left in libraries."""
        if self._checkup is not None:
            self._checkup.close()
        self._checkup = self._text = None


_DESK = Desk()


def _too_long(given: Prepared, wish: Wish) -> Answer:
    """The answer to a script that is not read: X601, before anything is parsed."""
    rule = next(rule for rule in all_rules() if rule.code == "X601")
    limit = LIMITS["script_text"]
    violation = Violation(
        code=rule.code,
        name=rule.name,
        severity=Severity.LIMIT,
        silent=False,
        message=fill(TOO_LONG, asked=f"{len(given.script):,}", allowed=f"{limit.value:,}"),
        place=None,
        why=rule.why,
    )
    report = Report(Outcome.LIMIT, (violation,))
    return Answer(wish, given.kind, given.script, report, given.notes, sources=((),))


def _terms() -> Terms:
    return Terms(
        sandboxed,
        output=LIMITS["script_output"].value,
        budget=LIMITS["work"].value,
        again=lambda: timeup.arm(MORE),
    )


def _was_stopped(checkup: Checkup) -> bool:
    """Whether a run ended in the middle: out of memory is an exception like others, the alarm is not."""
    return any(run.record.stopped is not None and run.record.stopped.reason == TIME for run in checkup.runs)


def answer_of(checkup: Checkup, wish: Wish, *, fixed: bool = False, milliseconds: float = 0.0) -> Answer:
    """What the page is told of a checkup."""
    given, run = checkup.given, checkup.run
    shapes: tuple[LineShape, ...] = ()
    panels: tuple[ScanPanel, ...] = ()
    matched = None
    if run is not None:
        shapes = _part(run, lambda: _line_shapes(run), ())
        panels = _part(run, lambda: panels_of(checkup), ())
    if given.kind is Kind.ERROR:
        match = code_of_message(given.text)
        matched = None if match is None else (match.rule.code, match.text)
    issue = "" if wish is Wish.SHAPES else _part(run, lambda: as_issue(checkup, LINK), "")
    return Answer(
        wish=wish,
        kind=given.kind,
        script=given.script,
        report=checkup.report,
        notes=given.notes,
        sources=tuple(tuple(texts) for texts in checkup.sources),
        fixed=fixed,
        cut=checkup.cut,
        together=None if checkup.together is None else checkup.together.text,
        shapes=shapes,
        scans=panels,
        loops=0 if run is None else len(run.record.scans) + len(run.record.loops),
        cells=0 if run is None else len(run.record.events.steps),
        stdout="" if run is None else run.record.stdout,
        stdout_cut=run is not None and run.record.stdout_cut,
        skipped=() if run is None else tuple(dict.fromkeys(run.skipped)),
        stand_ins=_part(run, lambda: stand_ins_of(checkup), ()),
        matched=matched,
        x64=run is not None and run.record.x64,
        issue=issue,
        milliseconds=milliseconds,
    )


def _line_shapes(run: ScriptRun) -> tuple[LineShape, ...]:
    found = shapes_by_line(run.record)
    return tuple(LineShape(line, one.name, one.type) for line, all_ in found.items() for one in all_)


def _part[T](run: ScriptRun | None, make: Callable[[], T], nothing: T) -> T:
    """A part of the answer; `nothing` when its time is over, or when objects of the script's own come in its way."""
    try:
        return make()
    except TimeUp:
        return nothing
    except Exception as error:  # noqa: BLE001  # one part less is better than no answer
        if run is not None:
            run.problems.append((ANSWER, error))
        return nothing
