"""A checkup as JSON (schema 1 of DESIGN.md section 5), as text for a terminal, and as Markdown for an issue."""

from __future__ import annotations

import platform
from functools import cache
from importlib import metadata
from typing import Any

import jax
import numpy as np
from jax import tree_util

from core.base.avals import LeafType, aval_of, path_name
from core.base.outcome import RawError
from core.base.places import Span
from core.base.violation import Violation
from core.contract.script_record import ScanSite
from core.contract.trace import Raised
from core.doctor.check import Checkup

SCHEMA = 1
#: A final carry of more numbers than this is not written out: its type stands in the scan's `carry`.
WRITTEN = 10_000


def as_json(checkup: Checkup) -> dict[str, Any]:
    """The report of schema 1: plain lists, dicts, strings and numbers (NaN and infinities are strings)."""
    report, run = checkup.report, checkup.run
    return {
        "schema": SCHEMA,
        "outcome": str(report.outcome),
        "error": _error(report.error),
        "versions": versions(),
        "stdout": "" if run is None else run.record.stdout,
        "scans": [] if run is None else [_scan(site, checkup) for site in run.record.scans],
        "violations": [
            _violation(violation, sources)
            for violation, sources in zip(report.violations, checkup.sources, strict=True)
        ],
    }


@cache
def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def versions() -> dict[str, str]:
    """Of Python and of what is taught."""
    known = {name: _version(name) for name in ("jax", "jaxlib", "flax", "numpy")}
    return {"python": platform.python_version(), **known}


def _error(error: RawError | None) -> dict[str, Any] | None:
    if error is None:
        return None
    place = error.place if isinstance(error.place, Span) else None
    return {
        "type": error.type,
        "message": error.message,
        "line": None if place is None else place.line,
        "col": None if place is None else place.col,
    }


def _violation(violation: Violation, sources: list[str]) -> dict[str, Any]:
    place = violation.place if isinstance(violation.place, Span) else None
    return {
        "code": violation.code,
        "severity": str(violation.severity),
        "message": violation.message,
        "line": None if place is None else place.line,
        "col": None if place is None else place.col,
        "end_line": None if place is None else place.end_line,
        "end_col": None if place is None else place.end_col,
        "expected": _leaves(violation.expected),
        "got": _leaves(violation.got),
        "why": violation.why,
        "jax_said": violation.jax_said,
        "fixes": [
            {"title": fix.title, "source": source, "verified": True}
            for fix, source in zip(violation.fixes, sources, strict=False)
        ],
    }


def _leaves(leaves: tuple[LeafType, ...]) -> dict[str, str]:
    return {leaf.path: str(leaf) for leaf in leaves}


# --- scans ----------------------------------------------------------------------------------------------------------


def _scan(site: ScanSite, checkup: Checkup) -> dict[str, Any]:
    facts = site.facts
    place = checkup.given.place(facts.places.find("scan"))
    final: dict[str, Any] = {}
    if site.result is not None and not site.traced:
        flat, _ = tree_util.tree_flatten_with_path(site.result[0])
        final = {path_name("carry", path): plain(leaf) for path, leaf in flat}
    return {
        "line": place.line if isinstance(place, Span) else None,
        "length": facts.length,
        "carry": _leaves(facts.carry_in),
        "ys": ys_types(site),
        "final": final,
    }


def ys_types(site: ScanSite) -> dict[str, str]:
    """Type of each leaf of ys, with its leading axis; of a scan that raised, as far as its step was traced."""
    if site.result is not None:
        flat, _ = tree_util.tree_flatten_with_path(site.result[1])
        return {path_name("ys", path): str(LeafType("", aval_of(leaf), type(leaf).__name__)) for path, leaf in flat}
    trace, length = site.facts.trace, site.facts.length
    if isinstance(trace, Raised) or length is None:
        return {}
    out = {}
    for leaf in trace.y_types():
        if leaf.aval is not None:
            stacked = type(leaf.aval)((length, *leaf.aval.shape), leaf.aval.dtype)
            out["ys" + leaf.path.removeprefix("y")] = str(stacked)
    return out


def plain(value: Any) -> Any:
    """An array as nested lists; NaN and infinities as strings; a PRNG key as its raw data; None when too large."""
    aval = aval_of(value)
    if aval is not None and aval.dtype.startswith("key<"):
        value = jax.random.key_data(value)
    array = np.asarray(value)
    if array.size > WRITTEN:
        return None
    if array.dtype.name == "bfloat16" or array.dtype.kind == "V":
        array = array.astype(np.float32)
    return _plain(array.tolist())


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    if isinstance(value, complex):
        return [_plain(value.real), _plain(value.imag)]
    return value
