"""A report as JSON, checked against its published schema when it is written and when it is read back."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

import jsonschema  # type: ignore[import-untyped]

from core.base.limits import LIMITS
from core.base.text import fill
from core.inputs.fields import shorten
from core.report.model import SCHEMA, ContractReport, IncompleteReportError
from core.report.plain import NotPlainError, plain, read

KIND: Final = "contract report"
SCHEMA_FILE: Final = Path(__file__).with_name("schema.json")

TOO_LONG = "The file has {count:,} bytes, and {limit:,} are read."
NO_JSON = "This is no JSON: {reason}, line {line}."
NO_TEXT = "This is no text in UTF-8."
OTHER_SCHEMA = "The report is of schema {got}, and {want} is read here."
INVALID = "This is no report of schema {schema}: at {path} {reason}."
AT_THE_TOP = "its top level"
REFUSED = "This is no report: {reason}."
OTHER_VERDICT = "its verdict is not that of its criteria"


class UnreadableReportError(ValueError):
    """A file that is no report; the message says why, for a reader."""


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of a report (draft 2020-12)."""
    loaded: dict[str, Any] = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    return loaded


@cache
def _validator() -> Any:
    jsonschema.Draft202012Validator.check_schema(schema())
    return jsonschema.Draft202012Validator(schema())


def to_json(report: ContractReport) -> dict[str, Any]:
    """The report as plain data.

    Raises:
        UnreadableReportError: it does not fit the schema.
    """
    data = {"schema": SCHEMA, "kind": KIND, "verdict": str(report.verdict), **plain(report)}
    _validate(data)
    return data


def write_json(report: ContractReport) -> str:
    """The report as a text of JSON."""
    return json.dumps(to_json(report), ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def read_json(raw: str | bytes) -> ContractReport:
    """The report in a file.

    Raises:
        UnreadableReportError: it is too long, no JSON, of another schema, does not fit it, or lacks what it must carry.
    """
    limit = LIMITS["report_bytes"].value
    if len(raw) > limit:
        raise UnreadableReportError(fill(TOO_LONG, count=len(raw), limit=limit))
    try:
        data = json.loads(raw, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise UnreadableReportError(fill(NO_JSON, reason=error.msg, line=error.lineno)) from None
    except UnicodeDecodeError:
        raise UnreadableReportError(fill(NO_TEXT)) from None
    except (RecursionError, ValueError) as error:
        raise UnreadableReportError(fill(NO_JSON, reason=type(error).__name__, line=1)) from None
    if isinstance(data, dict) and data.get("schema") != SCHEMA and "schema" in data:
        raise UnreadableReportError(fill(OTHER_SCHEMA, got=shorten(str(data["schema"]), 40), want=SCHEMA))
    _validate(data)
    body = {name: value for name, value in data.items() if name not in ("schema", "kind", "verdict")}
    try:
        report = read(ContractReport, body)
    except (NotPlainError, IncompleteReportError) as error:
        raise UnreadableReportError(fill(REFUSED, reason=error)) from None
    if data["verdict"] != report.verdict:
        raise UnreadableReportError(fill(REFUSED, reason=fill(OTHER_VERDICT)))
    return report


def _no_constant(name: str) -> Any:
    """Python's own NaN and Infinity are no JSON."""
    raise ValueError(name)


def _validate(data: Any) -> None:
    try:
        error = jsonschema.exceptions.best_match(_validator().iter_errors(data))
    except RecursionError:
        raise UnreadableReportError(
            fill(INVALID, schema=SCHEMA, path=fill(AT_THE_TOP), reason="it is too deep")
        ) from None
    if error is None:
        return
    path = "/".join(str(part) for part in error.absolute_path) or fill(AT_THE_TOP)
    reason = f"“{error.validator}” does not hold"
    raise UnreadableReportError(fill(INVALID, schema=SCHEMA, path=path, reason=reason)) from None
