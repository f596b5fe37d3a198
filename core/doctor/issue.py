"""A checkup as Markdown, ready to be pasted into an issue: script, shapes, verdict, proof, fix, versions, link."""

from __future__ import annotations

import difflib

from core.base.places import Span
from core.base.text import fill
from core.base.violation import Violation
from core.doctor.check import Checkup
from core.doctor.report import versions
from core.doctor.shapes import shapes_by_line
from core.doctor.terminal import types_text, verdict

DOCUMENT = """{title}

**Script**

{script}

{sections}{versions}{link}"""
TITLE = "### Carry Lab: {verdict}"
SHAPES = "**Shapes**\n\n{table}\n\n"
SHAPES_HEAD = "| line | name | type |\n| ---: | --- | --- |\n"
SHAPES_ROW = "| {line} | {name} | `{type}` |"
RETURNED = "(returned)"
FAULT = "**{code} {name}** ({severity}{silent}) at line {line}\n\n{message}\n\n"
FAULT_NOWHERE = "**{code} {name}** ({severity}{silent})\n\n{message}\n\n"
SILENT = ", JAX raises nothing"
SAID = "JAX said: `{text}`\n\n"
PLACE = "```\n{line}\n{carets}\n```\n\n"
BECAUSE = "Second place, line {line}: {text}\n\n"
TYPES = "expected `{expected}`, got `{got}`\n\n"
WHY = "Why: {why}\n\n"
PROOF = "Proof: {claim} {before:.7g}, where {expected:.7g} keeps the contract.\n\n"
PROOF_FIXED = "Proof: {claim} {before:.7g}; with the fix {after:.7g}.\n\n"
FIX = "Fix, tried and run again: {title}\n\n```diff\n{diff}\n```\n\n"
ERROR = "**{type}** at line {line}\n\n```\n{message}\n```\n\n{operands}"
OPERANDS = "Operands: {operands}\n\n"
VERSIONS = "Versions: jax {jax}, jaxlib {jaxlib}, flax {flax}, numpy {numpy}, python {python}\n"
LINK = "\n[Open it in Carry Lab]({link})\n"
#: Backticks of a fence: one more than the longest run in what it holds.
TICK = "`"


def as_issue(checkup: Checkup, link: str = "") -> str:
    """The Markdown. `link` leads back to this script in the app; "" for none."""
    script = checkup.given.script
    report = checkup.report
    sections = ""
    if checkup.run is not None:
        rows = [
            fill(SHAPES_ROW, line=line, name=f"`{b.name}`" if b.name else fill(RETURNED), type=b.type)
            for line, found in shapes_by_line(checkup.run.record).items()
            for b in found
        ]
        if rows:
            sections += fill(SHAPES, table=fill(SHAPES_HEAD) + "\n".join(rows))
    if report.error is not None:
        place = report.error.place
        operands = fill(OPERANDS, operands=", ".join(f"`{o}`" for o in report.error.operands))
        sections += fill(
            ERROR,
            type=report.error.type,
            line=place.line if isinstance(place, Span) else "?",
            message=report.error.message,
            operands=operands if report.error.operands else "",
        )
    for violation, sources in zip(report.violations, checkup.sources, strict=True):
        sections += _violation(violation, sources, script, checkup.given.lines)
    return fill(
        DOCUMENT,
        title=fill(TITLE, verdict=verdict(checkup)),
        script=fenced(script),
        sections=sections,
        versions=fill(VERSIONS, **versions()),
        link=fill(LINK, link=link) if link else "",
    )


def _violation(violation: Violation, sources: list[str], script: str, lines: list[str]) -> str:
    place = violation.place
    out = fill(
        FAULT if isinstance(place, Span) else FAULT_NOWHERE,
        code=violation.code,
        name=violation.name,
        severity=str(violation.severity),
        silent=fill(SILENT) if violation.silent else "",
        line=place.line if isinstance(place, Span) else "",
        message=violation.message,
    )
    if isinstance(place, Span):
        line = lines[place.line - 1]
        end = place.end_col if place.end_line == place.line else len(line)
        out += fill(PLACE, line=line, carets=" " * place.col + "^" * max(1, end - place.col))
    if violation.because is not None and isinstance(violation.because.place, Span):
        out += fill(BECAUSE, line=violation.because.place.line, text=violation.because.text)
    if violation.expected or violation.got:
        out += fill(TYPES, expected=types_text(violation.expected), got=types_text(violation.got))
    out += fill(WHY, why=violation.why)
    if violation.jax_said:
        out += fill(SAID, text=violation.jax_said.split("\n")[0].replace("`", "'"))
    if violation.proof is not None:
        proof = violation.proof
        template = PROOF if proof.after is None else PROOF_FIXED
        out += fill(template, claim=proof.claim, before=proof.before, after=proof.after, expected=proof.expected)
    if violation.fixes and sources:
        diff = list(difflib.unified_diff(script.split("\n"), sources[0].split("\n"), lineterm="", n=1))[3:]
        out += fill(FIX, title=violation.fixes[0].title, diff="\n".join(diff))
    return out


def fenced(code: str) -> str:
    """Code in a fence that nothing in it closes."""
    runs = [len(part) for part in code.replace("\n", " ").split(" ") if part and set(part) == {TICK}]
    fence = TICK * max(3, *(n + 1 for n in runs), 3)
    return f"{fence}python\n{code}\n{fence}"
