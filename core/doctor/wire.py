"""An `Answer` as JSON and back. What comes from a worker is read field by field, and nothing else is taken.

The worker ran a stranger's code, so its answer is a stranger's too: every kind, length and number is checked, arrays
come as plain bytes of a few known dtypes, and whatever does not fit raises `Unreadable`. Nothing is ever unpickled.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from core.base.avals import Aval, LeafType
from core.base.limits import LIMITS
from core.base.outcome import Outcome, RawError, Report
from core.base.places import Because, Place, Span
from core.base.results import ScanResult, Series
from core.base.violation import Fix, Proof, Severity, Violation
from core.doctor.answer import Answer, LineShape, ScanPanel, StandIn, Wish
from core.doctor.prep import Kind

#: dtypes that values travel in. What JAX has beyond NumPy (bfloat16, float8) travels as float32; keys as their data.
DTYPES = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
)
#: Items of any one list, characters of any one text, numbers of any one array that are read.
ITEMS, TEXT, NUMBERS = (LIMITS[name].value for name in ("answer_items", "answer_text", "answer_numbers"))
#: Where an array's bytes are, in base64; as many as its shape and dtype say.
BYTES = "bytes"


class Unreadable(ValueError):
    """What was sent is no answer."""


# --- writing --------------------------------------------------------------------------------------------------------


def to_wire(answer: Answer) -> dict[str, Any]:
    """The answer as what `json.dumps` takes (NaN and infinities are strings)."""
    sent: dict[str, Any] = _sendable({
        "wish": str(answer.wish),
        "kind": str(answer.kind),
        "script": answer.script,
        "report": {
            "outcome": str(answer.report.outcome),
            "violations": [_violation(v) for v in answer.report.violations],
            "error": None if answer.report.error is None else _raw(answer.report.error),
        },
        "notes": list(answer.notes),
        "sources": [list(texts) for texts in answer.sources],
        "fixed": answer.fixed,
        "cut": answer.cut,
        "together": answer.together,
        "shapes": [[s.line, s.name, s.type] for s in answer.shapes],
        "scans": [_panel(panel) for panel in answer.scans],
        "loops": answer.loops,
        "cells": answer.cells,
        "stdout": answer.stdout,
        "stdout_cut": answer.stdout_cut,
        "skipped": list(answer.skipped),
        "stand_ins": [[s.name, _span(s.span), s.reason, list(s.shape), s.dtype] for s in answer.stand_ins],
        "matched": None if answer.matched is None else list(answer.matched),
        "x64": answer.x64,
        "issue": answer.issue,
        "milliseconds": answer.milliseconds,
    })  # fmt: skip
    return sent


def _sendable(value: Any) -> Any:
    """The same, no text longer than is read, and ``?`` for half a surrogate pair: no browser can be sent one."""
    if isinstance(value, str):
        text = value if len(value) <= TEXT else value[: TEXT - 1] + "…"
        return text if text.isascii() else text.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_sendable(v) for v in value]
    if isinstance(value, dict):
        return {_sendable(k): v if k == BYTES else _sendable(v) for k, v in value.items()}
    return value


def _span(place: Place | None) -> list[int] | None:
    if not isinstance(place, Span):
        return None
    return [place.line, place.col, place.end_line, place.end_col]


def _raw(error: RawError) -> dict[str, Any]:
    return {
        "type": error.type,
        "message": error.message,
        "place": _span(error.place),
        "operands": list(error.operands),
    }


def _violation(violation: Violation) -> dict[str, Any]:
    proof, because = violation.proof, violation.because
    return {
        "code": violation.code,
        "name": violation.name,
        "severity": str(violation.severity),
        "silent": violation.silent,
        "message": violation.message,
        "place": _span(violation.place),
        "why": violation.why,
        "because": None if because is None else [_span(because.place), because.text],
        "expected": [_leaf(leaf) for leaf in violation.expected],
        "got": [_leaf(leaf) for leaf in violation.got],
        "fixes": [[fix.title, list(fix.remaining)] for fix in violation.fixes],
        "jax_said": violation.jax_said,
        "proof": None
        if proof is None
        else [proof.claim, _number(proof.before), _number(proof.after), _number(proof.expected)],
        "path": violation.path,
        "title": violation.title,
    }


def _number(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return str(float(value))


def _leaf(leaf: LeafType) -> list[Any]:
    aval = None if leaf.aval is None else [list(leaf.aval.shape), leaf.aval.dtype, leaf.aval.weak]
    return [leaf.path, aval, leaf.kind]


def _panel(panel: ScanPanel) -> dict[str, Any]:
    result = panel.result
    return {
        "line": panel.line,
        "length": panel.length,
        "carry": dict(panel.carry),
        "xs": dict(panel.xs),
        "ys": dict(panel.ys),
        "names": dict(panel.names),
        "reason": panel.reason,
        "result": None
        if result is None
        else {
            "length": result.length,
            "reverse": result.reverse,
            "carries": [_series(s) for s in result.carries],
            "xs": [_series(s) for s in result.xs],
            "ys": [_series(s) for s in result.ys_series],
        },
    }


def _series(series: Series) -> dict[str, Any]:
    values = np.asarray(series.values)
    if values.dtype.name not in DTYPES:
        values = values.astype(np.float32)
    little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    return {
        "leaf": _leaf(LeafType(series.path, series.type.aval, series.type.kind)),
        "dtype": values.dtype.name,
        "shape": list(values.shape),
        BYTES: base64.b64encode(little.tobytes()).decode("ascii"),
    }


# --- reading --------------------------------------------------------------------------------------------------------


def from_wire(data: object) -> Answer:
    """The answer in what a worker sent.

    Raises:
        Unreadable: it is none.
    """
    try:
        return _answer(_Read(data))
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Unreadable(type(error).__name__) from None


class _Read:
    """A JSON object whose fields are asked for by name and kind."""

    def __init__(self, data: object) -> None:
        if not isinstance(data, dict):
            raise TypeError
        self._data: dict[str, Any] = data

    def text(self, name: str) -> str:
        return _text(self._data[name])

    def maybe_text(self, name: str) -> str | None:
        value = self._data[name]
        return None if value is None else _text(value)

    def flag(self, name: str) -> bool:
        return _flag(self._data[name])

    def whole(self, name: str) -> int:
        return _whole(self._data[name])

    def count(self, name: str) -> int:
        value = self.whole(name)
        if value < 0:
            raise ValueError
        return value

    def maybe_whole(self, name: str) -> int | None:
        value = self._data[name]
        return None if value is None else _whole(value)

    def number(self, name: str) -> float:
        return _real(self._data[name])

    def packed(self, name: str, size: int) -> bytes:
        value = self._data[name]
        if not isinstance(value, str) or len(value) != 4 * -(-size // 3):
            raise TypeError
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error:
            raise ValueError from None

    def list[T](self, name: str, one: Callable[[Any], T]) -> tuple[T, ...]:
        return _list(self._data[name], one)

    def mapping(self, name: str) -> Mapping[str, str]:
        value = self._data[name]
        if not isinstance(value, dict) or len(value) > ITEMS:
            raise TypeError
        return {_text(k): _text(v) for k, v in value.items()}

    def inner(self, name: str) -> _Read:
        return _Read(self._data[name])

    def maybe[T](self, name: str, read: Callable[[Any], T]) -> T | None:
        value = self._data[name]
        return None if value is None else read(value)


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > TEXT:
        raise TypeError
    if not value.isascii():
        value.encode()  # half a surrogate pair is no text
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > 1 << 53:
        raise TypeError
    return value


def _real(value: object) -> float:
    if isinstance(value, str):
        if value not in {"nan", "inf", "-inf"}:
            raise ValueError
        return float(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError
    return float(value)


def _list[T](value: object, one: Callable[[Any], T]) -> tuple[T, ...]:
    if not isinstance(value, list) or len(value) > ITEMS:
        raise TypeError
    return tuple(one(v) for v in value)


def _parts(value: object, count: int) -> list[Any]:
    if not isinstance(value, list) or len(value) != count:
        raise TypeError
    return value


def _texts(value: object) -> tuple[str, ...]:
    return _list(value, _text)


def _answer(data: _Read) -> Answer:
    report = data.inner("report")
    violations = report.list("violations", _read_violation)
    answer = Answer(
        wish=Wish(data.text("wish")),
        kind=Kind(data.text("kind")),
        script=data.text("script"),
        report=Report(Outcome(report.text("outcome")), violations, report.maybe("error", _read_raw)),
        notes=data.list("notes", _text),
        sources=data.list("sources", _texts),
        fixed=data.flag("fixed"),
        cut=data.flag("cut"),
        together=data.maybe_text("together"),
        shapes=data.list("shapes", _read_shape),
        scans=data.list("scans", _read_panel),
        loops=data.count("loops"),
        cells=data.count("cells"),
        stdout=data.text("stdout"),
        stdout_cut=data.flag("stdout_cut"),
        skipped=data.list("skipped", _whole),
        stand_ins=data.list("stand_ins", _read_stand_in),
        matched=data.maybe("matched", _read_matched),
        x64=data.flag("x64"),
        issue=data.text("issue"),
        milliseconds=data.number("milliseconds"),
    )
    sizes = [len(v.fixes) for v in answer.report.violations]
    if [len(texts) for texts in answer.sources] != sizes:
        raise ValueError
    return answer


def _read_span(value: object) -> Span:
    line, col, end_line, end_col = (_whole(v) for v in _parts(value, 4))
    if min(line, col, end_line, end_col) < 0 or (end_line, end_col) < (line, col):
        raise ValueError
    return Span(line, col, end_line, end_col)


def _maybe_span(value: object) -> Span | None:
    return None if value is None else _read_span(value)


def _read_raw(value: object) -> RawError:
    data = _Read(value)
    return RawError(
        data.text("type"), data.text("message"), data.maybe("place", _read_span), data.list("operands", _text)
    )


def _read_violation(value: object) -> Violation:
    data = _Read(value)
    return Violation(
        code=data.text("code"),
        name=data.text("name"),
        severity=Severity(data.text("severity")),
        silent=data.flag("silent"),
        message=data.text("message"),
        place=data.maybe("place", _read_span),
        why=data.text("why"),
        because=data.maybe("because", _read_because),
        expected=data.list("expected", _read_leaf),
        got=data.list("got", _read_leaf),
        fixes=data.list("fixes", _read_fix),
        jax_said=data.maybe_text("jax_said"),
        proof=data.maybe("proof", _read_proof),
        path=data.text("path"),
        title=data.text("title"),
    )


def _read_because(value: object) -> Because:
    place, text = _parts(value, 2)
    return Because(_maybe_span(place), _text(text))


def _read_fix(value: object) -> Fix:
    title, remaining = _parts(value, 2)
    return Fix(_text(title), None, _texts(remaining))


def _read_proof(value: object) -> Proof:
    claim, before, after, expected = _parts(value, 4)
    return Proof(_text(claim), _real(before), None if after is None else _real(after), _real(expected))


def _read_leaf(value: object) -> LeafType:
    path, aval, kind = _parts(value, 3)
    return LeafType(_text(path), None if aval is None else _read_aval(aval), _text(kind))


def _read_aval(value: object) -> Aval:
    shape, dtype, weak = _parts(value, 3)
    return Aval(_sizes(shape), _text(dtype), _flag(weak))


def _sizes(value: object) -> tuple[int, ...]:
    sizes = _list(value, _whole)
    if len(sizes) > 64 or any(size < 0 for size in sizes):
        raise ValueError
    return sizes


def _read_shape(value: object) -> LineShape:
    line, name, kind = _parts(value, 3)
    return LineShape(_whole(line), _text(name), _text(kind))


def _read_stand_in(value: object) -> StandIn:
    name, span, reason, shape, dtype = _parts(value, 5)
    return StandIn(_text(name), _read_span(span), _text(reason), _sizes(shape), _text(dtype))


def _read_matched(value: object) -> tuple[str, str]:
    code, sentence = _parts(value, 2)
    return _text(code), _text(sentence)


def _read_panel(value: object) -> ScanPanel:
    data = _Read(value)
    return ScanPanel(
        line=data.maybe_whole("line"),
        length=data.maybe_whole("length"),
        carry=data.mapping("carry"),
        xs=data.mapping("xs"),
        ys=data.mapping("ys"),
        result=data.maybe("result", _read_result),
        reason=data.text("reason"),
        names=data.mapping("names"),
    )


def _read_result(value: object) -> ScanResult:
    data = _Read(value)
    length, reverse = data.whole("length"), data.flag("reverse")
    carries = data.list("carries", _read_series)
    xs, ys = data.list("xs", _read_series), data.list("ys", _read_series)
    if length < 0 or any(len(s.values) != length + 1 for s in carries) or any(len(s.values) != length for s in xs + ys):
        raise ValueError
    return ScanResult(
        final={s.path: s.values[-1] for s in carries},
        ys={s.path: s.values[::-1] if reverse else s.values for s in ys},
        carries=carries,
        xs=xs,
        ys_series=ys,
        length=length,
        padded=length,
        compiled=False,
        reverse=reverse,
    )


def _read_series(value: object) -> Series:
    data = _Read(value)
    dtype, shape = data.text("dtype"), data.list("shape", _whole)
    count = math.prod(shape)
    if dtype not in DTYPES or not shape or len(shape) > 32 or min(shape) < 0 or count > NUMBERS:
        raise ValueError
    raw = data.packed(BYTES, count * np.dtype(dtype).itemsize)
    values = np.frombuffer(raw, np.dtype(dtype).newbyteorder("<")).reshape(shape).astype(dtype)
    leaf = data.maybe("leaf", _read_leaf)
    if leaf is None:
        raise ValueError
    return Series(leaf.path, leaf, values)
