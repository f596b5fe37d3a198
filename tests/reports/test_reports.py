"""Problems that people reported in public, as scripts: the fault is named at its line, and the right script is clean.

Each JSON file is one report: `source` (lines) with what is `expect`ed of it, `fixed_source`, and `check`, assertions
that a right result passes. `sizes` are replacements that make a script of other sizes; `mended` are kinds of repair
that lead to the right values though nobody touches the source. A file without `source` is about a rule that needs the
whole script, and is tested through the Doctor (tests/unit/doctor/test_reports.py): here its right script must be clean.
"""

from __future__ import annotations

import ast
import io
import json
import textwrap
import tokenize
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import pytest

from core.base.violation import Severity
from core.contract.engine import check as examine
from core.contract.engine import diagnose
from core.contract.subject import ScanCall
from tests.support.capture import Captured, capture

HERE = Path(__file__).parent
REPORTS = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(HERE.glob("*.json"))]
COVERED = [report for report in REPORTS if report["expect"]]

type Text = str
type Rewrite = Callable[[dict[str, Any], Text], Text]

# --- the same script, written differently ---------------------------------------------------------------------------


def as_it_is(report: dict[str, Any], text: Text) -> Text:
    return text


def renamed(report: dict[str, Any], text: Text) -> Text:
    """Every name that a script gives is another one, in the same lines; attributes and keywords stay."""
    names = _given("\n".join([*report["source"], *report["fixed_source"]]))
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    lines = text.split("\n")
    depth = 0
    changes = []
    for i, token in enumerate(tokens):
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
        before, after = tokens[i - 1].string if i else "", tokens[i + 1].string if i + 1 < len(tokens) else ""
        keyword = depth > 0 and after == "=" and before in ("(", ",")
        if token.type == tokenize.NAME and token.string in names and before != "." and not keyword:
            changes.append((token.start, token.string))
    for (line, column), name in reversed(changes):
        here = lines[line - 1]
        lines[line - 1] = here[:column] + f"my_{name}_" + here[column + len(name) :]
    return "\n".join(lines)


def _given(text: Text) -> set[str]:
    """Names that a script assigns, defines or takes as parameters; not what it imports."""
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
    return names


def resized(report: dict[str, Any], text: Text) -> Text:
    """Other sizes, as the report's own replacements say."""
    for old, new in report["sizes"]:
        text = text.replace(old, new)
    return text


def through_lax(report: dict[str, Any], text: Text) -> Text:
    return text.replace("jax.lax.scan(", "lax.scan(").replace("import jax,", "from jax import lax; import jax,", 1)


def by_name(report: dict[str, Any], text: Text) -> Text:
    return text.replace("jax.lax.scan(", "scan(").replace("import jax,", "from jax.lax import scan; import jax,", 1)


def in_a_function(report: dict[str, Any], text: Text) -> Text:
    """Everything in a function, one line further down; what it leaves is put where `check` looks for it."""
    body = textwrap.indent(text, "    ")
    return f"def main():\n{body}\n    return locals()\nglobals().update(main())\n"


REWRITES = [as_it_is, renamed, resized, through_lax, by_name, in_a_function]
BY_CASE = pytest.mark.parametrize("report", COVERED, ids=lambda report: report["id"])
BY_REWRITE = pytest.mark.parametrize("rewrite", REWRITES, ids=lambda rewrite: rewrite.__name__)


def source(report: dict[str, Any], which: str, rewrite: Rewrite = as_it_is) -> Text:
    return rewrite(report, "\n".join(report[which]))


def check(report: dict[str, Any], captured: Captured, rewrite: Rewrite = as_it_is, **changed: Any) -> None:
    """The report's own assertions, on what the script left."""
    test = report["check"] if rewrite is in_a_function else rewrite(report, report["check"])
    with captured.config():
        exec(test, {**captured.namespace, "_out": captured.stdout, **changed})


# --- what must hold -------------------------------------------------------------------------------------------------


@BY_CASE
@BY_REWRITE
def test_the_fault_is_named_at_its_line(report: dict[str, Any], rewrite: Rewrite) -> None:
    captured = capture(source(report, "source", rewrite))
    line = report["expect"]["line"] + (1 if rewrite is in_a_function else 0)
    found = captured.violations()
    said = [(v.code, getattr(v.place, "line", None), v.message) for v in found]
    assert any(v.code in report["expect"]["codes"] and v.place.line == line for v in found), said
    # One root cause, one message: nothing else is an error or a warning.
    others = {v.code for v in found if v.severity is not Severity.NOTE} - set(report["expect"]["codes"])
    assert not others, said
    assert (captured.error is None) is all(v.silent for v in found), said


@BY_CASE
@BY_REWRITE
def test_the_right_script_is_clean(report: dict[str, Any], rewrite: Rewrite) -> None:
    clean(report, rewrite)


@pytest.mark.parametrize("report", [r for r in REPORTS if not r["expect"]], ids=lambda report: report["id"])
def test_right_scripts_of_rules_on_scripts_are_clean(report: dict[str, Any]) -> None:
    clean(report, as_it_is)


def clean(report: dict[str, Any], rewrite: Rewrite) -> None:
    """It runs, its values are right, and neither an error nor a warning is found."""
    captured = capture(source(report, "fixed_source", rewrite))
    assert captured.error is None, repr(captured.error)
    assert captured.subjects() or captured.traced
    check(report, captured, rewrite)
    found = captured.violations()
    assert not [(v.code, v.message) for v in found if v.severity is not Severity.NOTE]


@pytest.mark.parametrize(
    ("report", "kind"),
    [(r, kind) for r in COVERED for kind in r["mended"]],
    ids=lambda value: value if isinstance(value, str) else value["id"],
)
def test_a_mended_call_gives_the_right_values(report: dict[str, Any], kind: str) -> None:
    captured = capture(source(report, "source"))
    (call,) = captured.calls
    titles = {fix.title for v in examine(call).violations for fix in v.fixes}
    repairs = [
        r for found in diagnose(call).found for r in found.finding.repairs if r.kind == kind and r.title in titles
    ]
    assert repairs, f"no verified {kind} among {titles}"
    passed = 0
    for repair in repairs:
        mended = repair.apply(call)
        assert isinstance(mended, ScanCall)
        carry, ys = jax.lax.scan(mended.body, mended.init, mended.xs, mended.length, mended.reverse, mended.unroll)
        if ys is not None:
            check(report, captured, carry=carry, ys=ys)
            passed += 1
    assert passed


def test_no_report_is_lost() -> None:
    assert len(COVERED) == 10
    assert len(REPORTS) == 30
