"""The Doctor's script as a program: the text as it stands, what Carry Lab says of it, and a negative test."""

from __future__ import annotations

import ast
import re
from typing import Final

from core.base.outcome import Outcome, Report
from core.base.places import Span
from core.base.text import fill
from core.base.violation import Severity
from core.export.document import Document, Part, must_raise

STEM: Final = "carry-lab-doctor"
TITLE: Final = "A script from the Doctor"
ABOUT: Final = "{count} lines, as they stood in the editor."
NOT_RUN: Final = "Not checked yet."
FOUND: Final = "{code} {name}, line {line} of it: {message}"
FOUND_NOWHERE: Final = "{code} {name}: {message}"
UNREADABLE: Final = "Python cannot read this script, so it stands here line by line."
LINES: Final = "lines = [\n{lines}\n]"
COMPILE: Final = 'compile("\\n".join(lines), "script.py", "exec")'
SCRIPT_TEXT: Final = "The script."

ITSELF: Final = "this script must raise {type}, as the Doctor says."
WIDER: Final = (
    "a carry that gains an axis in the step must raise TypeError. It is so in any script: only the versions matter."
)
WIDER_CODE: Final = """\
import jax
import jax.numpy as jnp


def carry_lab_negative(carry, x):
    return jnp.stack([carry, carry]), x


"""
WIDER_CALL: Final = "jax.lax.scan(carry_lab_negative, 0.0, jnp.zeros(2))"
#: The class of an exception at the start of what was said of it.
_CLASS: Final = re.compile(r"(?:\w+\.)*(\w+):")


def script_document(text: str, report: Report | None) -> Document | None:
    """The program of a script.

    Args:
        text: the script.
        report: of this very text; None where nothing is known of it.

    Returns:
        None for an empty one. A script that Python cannot read stands in its file as a text that must not compile.
    """
    code = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    if not code.strip():
        return None
    try:
        tree = ast.parse(code)
    except Exception as error:  # noqa: BLE001  # a syntax error, or one of nesting or memory
        return _unreadable(code, type(error).__name__)
    about = [fill(ABOUT, count=code.count("\n") + 1), *(_said(report) if report is not None else [fill(NOT_RUN)])]
    first, rest = _apart(code, tree)
    # What it raises may be caught in it: then it ends by itself, and what follows it is the test.
    raised = "" if report is None or any(isinstance(node, ast.Try) for node in ast.walk(tree)) else raised_by(report)
    if raised:
        parts: tuple[Part, ...] = ()
        negative = Part(fill(ITSELF, type=raised), must_raise(rest, raised))
    else:
        parts = (Part(fill(SCRIPT_TEXT), rest),)
        negative = Part(fill(WIDER), fill(WIDER_CODE) + must_raise(fill(WIDER_CALL), "TypeError"))
    codes = tuple(dict.fromkeys(v.code for v in report.broken)) if report is not None else ()
    return Document(
        fill(STEM),
        fill(TITLE),
        "\n".join(about),
        parts,
        negative,
        codes=codes,
        raises=raised,
        packages=("optax",) if re.search(r"\boptax\b", code) else (),
        first=first,
    )


def _unreadable(code: str, kind: str) -> Document:
    lines = "\n".join(f"    {line!r}," for line in code.split("\n"))
    return Document(
        fill(STEM),
        fill(TITLE),
        fill(ABOUT, count=code.count("\n") + 1),
        (Part(fill(UNREADABLE), fill(LINES, lines=lines)),),
        Part(fill(ITSELF, type=kind), must_raise(fill(COMPILE), kind)),
        raises=kind,
    )


def _apart(code: str, tree: ast.Module) -> tuple[str, str]:
    """The lines of ``from __future__ import``, which must come before any other statement, and the rest."""
    lines = code.split("\n")
    first: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            span = slice(node.lineno - 1, node.end_lineno)
            first += lines[span]
            lines[span] = [""] * len(lines[span])
    return "\n".join(first), "\n".join(lines).strip("\n") if first else code


def raised_by(report: Report) -> str:
    """The class of what the script raised; "" where it raised nothing."""
    if report.error is not None:
        return report.error.type
    for violation in report.violations:
        if violation.severity is Severity.ERROR and not violation.silent:
            found = _CLASS.match(violation.jax_said or "")
            return found.group(1) if found else ""
    return ""


def _said(report: Report) -> list[str]:
    """A line for each fault."""
    if report.outcome is Outcome.ERROR and report.error is not None:
        return [f"{report.error.type}: {report.error.message.splitlines()[0] if report.error.message else ''}"]
    out = []
    for violation in report.violations:
        message = " ".join(violation.message.split())
        place = violation.place
        template, line = (FOUND, place.line) if isinstance(place, Span) else (FOUND_NOWHERE, 0)
        out.append(fill(template, code=violation.code, name=violation.name, line=line, message=message))
    return out
