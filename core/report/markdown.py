"""A report as Markdown, for people: the verdict first, what it does not prove last."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from core.base.text import fill
from core.report.model import TITLES, UNITS, Asked, ContractReport, Criterion, Input, Status, Verdict

HEAD = "# Contract report: {title}"
VERDICTS: Final = {
    Verdict.PASS: "**PASS**: every criterion that applies passed ({passed} of {all}; {other} do not apply).",
    Verdict.FAIL: "**FAIL**: {failed} of {all} criteria failed: {names}.",
    Verdict.INCOMPLETE: "**INCOMPLETE**: nothing failed, and {missing} of {all} criteria could not be measured: {names}.",
}
MADE = "Made {made} by Carry Lab, schema 1."
WORDS: Final = {
    Status.PASS: "pass",
    Status.FAIL: "**FAIL**",
    Status.NOT_APPLICABLE: "not applicable",
    Status.NOT_RUN: "**not run**",
}
CRITERIA, CRITERION, RESULT, NUMBER, BOUND, DETAIL = (
    "Acceptance criteria",
    "Criterion",
    "Result",
    "Number",
    "Must be",
    "Detail",
)
RUN, PATH, SHAPE, AXES, HASH = "What was run", "Input", "Type", "Axes", "SHA-256"
NOT_MADE = "never made: over a limit"
HASHED = "SHA-256 of the elements as little-endian bytes in C order. Values are not written here."
WITH_VALUES = "SHA-256 of the elements as little-endian bytes in C order. The values stand in the JSON."
SETTINGS, SETTING, VALUE = "Settings", "Setting", "Value"
CONTRACT, DECLARED = "Declared contract", "Declared"
SAID, KNOWN, UNSAID = "by you", "by the page", "not declared"
ROWS: Final = {
    "axes": "axis order",
    "features": "feature names",
    "dtype": "dtype",
    "range": "range",
    "target": "what the target means",
}
RANGE = "{low} to {high}"
SEEDS, FEEDS, SEED, GENERATOR = "Seeds and streams", "Feeds", "Seed", "Generator"
NO_SEEDS = "No seed was used."
ORDER = (
    "Requests for keys, in the order in which they were made. The n-th key of a stream is `fold_in(key(seed), n)`: swap "
    "two constructions, and each gets the other's keys and so other weights."
)
ASKED_BY, STREAM, COUNT, KEY, DRAWN = "Asked by", "Stream", "Request", "Key (hash)", "Drawn from"
NUMBER_SIGN = "#"
YES, NO = "yes", "no: zeros"
MORE_ASKED = "More were made than are listed here."
TOLERANCES, TOLERANCE = "Tolerances", "abs(got − want) ≤ atol + rtol·abs(want)"
NEGATIVES, WRONG, EXPECTED, RAISED = "Negative tests", "What was wrong", "Must raise", "Raised"
NOTHING = "nothing"
LATENCY = "Latency"
LATENCY_OF = "Of {what}: {runs} runs after {warm_up} that were not counted, each until its result was ready."
MEDIAN, P90, P99, TRACE, COMPILE = "median", "p90", "p99", "tracing and lowering, once", "compiling, once"
NO_LATENCY = "Not measured: {reason}"
WHERE, PYTHON, PLATFORM, CPU, CORES, LOAD, DEVICE, X64 = (
    "Where", "Python", "platform", "processor", "cores", "load (1, 5, 15 min)", "device", "64-bit mode"
)  # fmt: skip
USABLE = "{cores}, of which this process may use {usable}"
LOADS = "{before} before, {after} after"
BACKEND = "{device} ({backend})"
ON, OFF, UNKNOWN = "on", "off", "unknown"
NOT_PROVED = "What this does not prove"
COUNTED = "{unit}: {number}"
MS = "{ms:.3g} ms"
#: Characters that mean something in a cell of a table, in text or in raw HTML.
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>|#~])")


def write_markdown(report: ContractReport) -> str:
    """The report as Markdown (CommonMark with tables), UTF-8."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: ContractReport) -> Iterator[str]:
    yield fill(HEAD, title=_plain(report.title))
    yield ""
    yield verdict_line(report)
    yield ""
    yield f"{_plain(report.about)} {fill(MADE, made=report.made)}"
    yield from _section(CRITERIA)
    yield from _table(
        (CRITERION, RESULT, NUMBER, BOUND, DETAIL),
        ((TITLES[c.name], WORDS[c.status], number_text(c), _plain(c.bound), _plain(c.detail)) for c in report.criteria),
    )
    yield from _section(NEGATIVES)
    yield from _table(
        (WRONG, EXPECTED, RAISED),
        ((_plain(n.what), _code(n.expected), _code(n.raised) if n.raised else fill(NOTHING)) for n in report.negatives),
    )
    yield from _section(LATENCY)
    yield from _latency(report)
    yield from _section(CONTRACT)
    yield from _contract(report)
    yield from _section(RUN)
    yield from _inputs(report.inputs)
    if report.settings:
        yield ""
        yield from _table((SETTING, VALUE), ((_plain(s.name), _plain(s.value)) for s in report.settings))
    yield from _section(SEEDS)
    yield from _seeds(report)
    yield from _section(TOLERANCES)
    yield from _table(
        ("dtype", fill(TOLERANCE)),
        (
            (_code(t.dtype), f"rtol {t.rtol:g}, atol {t.atol:g}" if t.rtol or t.atol else "exact")
            for t in report.tolerances
        ),
    )
    yield from _section(WHERE)
    yield from _where(report)
    yield from _section(NOT_PROVED)
    yield from (f"- {_plain(line)}" for line in report.not_proved)


def verdict_line(report: ContractReport) -> str:
    """The verdict in a sentence of Markdown."""
    bad = Status.FAIL if report.verdict is Verdict.FAIL else Status.NOT_RUN
    names = "; ".join(fill(TITLES[one.name]) for one in report.criteria if one.status is bad)
    count = {status: sum(one.status is status for one in report.criteria) for status in Status}
    return fill(
        VERDICTS[report.verdict],
        passed=count[Status.PASS],
        failed=count[Status.FAIL],
        missing=count[Status.NOT_RUN],
        other=count[Status.NOT_APPLICABLE],
        all=len(report.criteria),
        names=names,
    )


def number_text(one: Criterion) -> str:
    """What was counted or measured, and the number; "" where nothing was."""
    if one.number is None:
        return ""
    return fill(COUNTED, unit=fill(UNITS[one.name]), number=f"{one.number:.4g}")


def _section(title: str) -> Iterator[str]:
    yield ""
    yield f"## {fill(title)}"
    yield ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table whose cells are Markdown already."""
    yield "| " + " | ".join(fill(one) for one in head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def _line(text: str) -> str:
    """On one line, every letter of it one that is shown: none moves a cursor or turns the letters after it around."""
    return "".join(letter if letter.isprintable() else "·" for letter in " ".join(text.split()))


def _plain(text: str) -> str:
    """Text that means nothing but itself, on one line."""
    return _SPECIAL.sub(r"\\\1", _line(text))


def _code(text: str) -> str:
    """As code: nothing in it means anything; a bar would end the cell, a backtick the code."""
    return "`" + _line(text).replace("`", "'").replace("|", "\\|") + "`"


def _latency(report: ContractReport) -> Iterator[str]:
    one = report.latency
    if one is None:
        yield fill(NO_LATENCY, reason=_plain(report.latency_missing))
        return
    yield fill(LATENCY_OF, what=_plain(one.what), runs=one.runs, warm_up=one.warm_up)
    yield ""
    times = (one.median_ms, one.p90_ms, one.p99_ms, one.trace_ms, one.compile_ms)
    yield from _table((MEDIAN, P90, P99, TRACE, COMPILE), [tuple(fill(MS, ms=ms) for ms in times)])


def _contract(report: ContractReport) -> Iterator[str]:
    said = report.contract
    bounds = ["−∞" if said.low is None else f"{said.low:g}", "∞" if said.high is None else f"{said.high:g}"]
    none = said.low is None and said.high is None
    values = {
        "axes": said.axes,
        "features": ", ".join(said.features),
        "dtype": said.dtype,
        "range": "" if none else fill(RANGE, low=bounds[0], high=bounds[1]),
        "target": said.target,
    }
    yours = {"range" if name in ("low", "high") else name for name in said.yours}
    rows = []
    for name, words in ROWS.items():
        value = values[name]
        by = fill(SAID if name in yours else KNOWN) if value else ""
        rows.append((fill(words), _plain(value) or fill(UNSAID), by))
    yield from _table((CONTRACT, VALUE, DECLARED), rows)


def _inputs(inputs: Sequence[Input]) -> Iterator[str]:
    yield from _table(
        (PATH, SHAPE, AXES, HASH),
        (
            (
                _code(one.path),
                _code(f"{one.dtype}[{','.join(map(str, one.shape))}]"),
                one.axes,
                _code(one.sha256) if one.sha256 else fill(NOT_MADE),
            )
            for one in inputs
        ),
    )
    yield ""
    yield fill(WITH_VALUES if any(one.values is not None for one in inputs) else HASHED)


def _seeds(report: ContractReport) -> Iterator[str]:
    if report.seeds:
        yield from _table((FEEDS, SEED, GENERATOR), ((_plain(s.what), str(s.seed), s.generator) for s in report.seeds))
    elif not report.asked:
        yield fill(NO_SEEDS)
    if report.asked:
        yield ""
        yield fill(ORDER)
        yield ""
        yield from _table((NUMBER_SIGN, ASKED_BY, STREAM, COUNT, KEY, DRAWN), map(_asked, report.asked))
    if report.asked_cut:
        yield ""
        yield fill(MORE_ASKED)


def _asked(one: Asked) -> tuple[str, ...]:
    return (
        str(one.order),
        _plain(one.by),
        _plain(one.stream),
        str(one.count),
        _code(one.key),
        fill(YES if one.drawn else NO),
    )


def _where(report: ContractReport) -> Iterator[str]:
    versions, machine = report.versions, report.machine
    loads = [
        ", ".join(f"{one:.2f}" for one in load) or fill(UNKNOWN) for load in (machine.load_before, machine.load_after)
    ]
    rows = [
        (PYTHON, versions.python),
        *((name, getattr(versions, name)) for name in ("jax", "jaxlib", "flax", "numpy")),
        (PLATFORM, machine.platform),
        (CPU, machine.cpu or fill(UNKNOWN)),
        (CORES, fill(USABLE, cores=machine.cores, usable=machine.usable)),
        (LOAD, fill(LOADS, before=loads[0], after=loads[1])),
        (DEVICE, fill(BACKEND, device=machine.device, backend=machine.backend)),
        (X64, fill(ON if machine.x64 else OFF)),
    ]
    yield from _table((WHERE, VALUE), ((fill(name), _plain(value)) for name, value in rows))
