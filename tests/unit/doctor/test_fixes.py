"""A fix that does not work, or works by taking something away, never reaches anybody."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.base.places import Span
from core.base.violation import TextEdit
from core.contract.rule import all_rules
from core.doctor import fixes
from core.doctor.check import Checkup, check_script
from core.doctor.edits import Desk, Edits
from core.doctor.fixes import Spots, difference, removes, skips
from core.doctor.pen import apply_edits, merged
from core.doctor.report import as_json

KNOWN = {rule.code for rule in all_rules()}
REPORTS = json.loads((Path(__file__).parent / "public_reports.json").read_text(encoding="utf-8"))
FAULTY = [r["source"] for r in REPORTS if KNOWN & set(r["expect"]["codes"]) and not r["silent"]] + [
    "from flax import nnx\ncell = nnx.LSTMCell(3, 4)\n",
    "import jax.numpy as jnp\nfrom flax import nnx\ncell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))\n"
    "carry, y = cell(jnp.ones((2, 4)), jnp.ones((2, 3)))\n",
]

#: Those that JAX says nothing about: a fix has no exception to silence there, only the finding.
SILENT = {r["id"]: r["source"] for r in REPORTS if KNOWN & set(r["expect"]["codes"]) and r["silent"]}


def whole_lines(desk: Desk, first: int, last: int, text: str) -> TextEdit:
    return TextEdit(Span(first, 0, last, len(desk.source.lines[last - 1])), text)


def place(desk: Desk) -> Span:
    span = desk.finding.place
    assert isinstance(span, Span)
    return span


def same(desk: Desk) -> Iterator[Edits]:
    """Returns its input."""
    span = place(desk)
    node = desk.source.expression(span)
    yield (TextEdit(Span(span.line, span.col, span.line, span.col), ""),)
    if node is not None:
        yield (TextEdit(span, desk.source.text_of(node)),)


def deletes(desk: Desk) -> Iterator[Edits]:
    """Deletes the line of the fault, and every other line in turn."""
    for line in [place(desk).line, *range(1, len(desk.source.lines))]:
        yield (whole_lines(desk, line, line, ""),)


def comments(desk: Desk) -> Iterator[Edits]:
    """Comments lines out."""
    for line in [place(desk).line, *range(1, len(desk.source.lines))]:
        yield (TextEdit(Span(line, 0, line, 0), "# "),)


def passes_over(desk: Desk) -> Iterator[Edits]:
    """Puts `pass` where each statement of the module stood."""
    for statement in desk.source.tree.body:
        yield (TextEdit(desk.source.span(statement), "pass"),)


def never_runs(desk: Desk) -> Iterator[Edits]:
    """Puts each line of the module under `if False`."""
    for statement in desk.source.tree.body:
        if isinstance(statement, ast.Assign | ast.Expr):
            yield (TextEdit(desk.source.span(statement), f"if False: {desk.source.text_of(statement)}"),)


def swallows(desk: Desk) -> Iterator[Edits]:
    """Catches what is raised."""
    for statement in desk.source.tree.body:
        if isinstance(statement, ast.Assign | ast.Expr):
            text = desk.source.text_of(statement)
            yield (
                TextEdit(desk.source.span(statement), f"try:\n    {text}\nexcept Exception:\n    carry = ys = None"),
            )


def leaves_early(desk: Desk) -> Iterator[Edits]:
    """Ends the script before the fault."""
    for line in range(1, len(desk.source.lines)):
        yield (TextEdit(Span(line, 0, line, 0), "raise SystemExit\n"),)


def empties(desk: Desk) -> Iterator[Edits]:
    """Scans nothing, or carries nothing."""
    arguments = desk.arguments or dict(desk.record.scans[0].arguments)  # a fault of the script is about no scan
    for name, text in (("xs", "jnp.zeros((0,))"), ("init", "()"), ("xs", "None, length=0")):
        if name in arguments:
            yield (desk.pen.replace(arguments[name], text),)


def nonsense(desk: Desk) -> Iterator[Edits]:
    """Does not parse, or raises something else."""
    yield (TextEdit(place(desk), "((("),)
    yield (TextEdit(place(desk), "undefined_name"),)
    raise ValueError("a maker of edits that fails")


SABOTEURS = (same, deletes, comments, passes_over, never_runs, swallows, leaves_early, empties, nonsense)
PAIRS = [(s, source) for s in SABOTEURS for source in FAULTY if s is not empties or "scan(" in source]


@pytest.mark.parametrize(("saboteur", "source"), PAIRS, ids=lambda v: getattr(v, "__name__", ""))
def test_a_sabotaged_fixer_never_reaches_the_report(
    saboteur: Callable[[Desk], Iterator[Edits]], source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Edits] = []

    def sabotaged(desk: Desk) -> Iterator[Edits]:
        for edits in saboteur(desk):
            tried.append(edits)
            yield edits

    monkeypatch.setattr(fixes, "candidates", sabotaged)
    checkup = check_script(source)
    assert checkup.report.broken
    found = as_json(checkup)["violations"]
    assert tried or (saboteur is empties and not checkup.run.record.scans)  # type: ignore[union-attr]
    assert not any(violation["fixes"] for violation in found), checkup.sources
    assert checkup.together is None


@pytest.mark.parametrize("saboteur", [same, deletes, comments, passes_over, never_runs, leaves_early])
@pytest.mark.parametrize("name", SILENT)
def test_a_sabotaged_fixer_never_reaches_a_silent_fault(
    saboteur: Callable[[Desk], Iterator[Edits]], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fixes, "candidates", saboteur)
    checkup = check_script(SILENT[name])
    assert checkup.report.violations
    assert not any(violation.fixes for violation in checkup.report.violations), checkup.sources
    assert checkup.together is None


def test_the_same_scripts_do_get_fixes() -> None:
    """The control: without sabotage the very same scripts are fixed."""
    got = [any(check_script(source).sources) for source in FAULTY]
    assert sum(got) >= len(got) - 1


def test_a_fix_that_breaks_something_else_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "import jax, jax.numpy as jnp\ndef step(c, x):\n    return c + x, c\njax.lax.scan(step, jnp.zeros(2, int), jnp.ones((3, 2)))\n"

    def other(desk: Desk) -> Iterator[Edits]:
        yield (desk.pen.replace(desk.arguments["init"], "0.0"),)  # S103 instead of S104

    monkeypatch.setattr(fixes, "candidates", other)
    assert check_script(source).sources == [[]]


def test_an_assertion_of_the_script_decides_too() -> None:
    """The fix gets further, and what remains is said."""
    source = (
        "import jax, jax.numpy as jnp\ndef step(c, x):\n    return c + x, c\n"
        "c, ys = jax.lax.scan(step, jnp.int32(0), jnp.ones(3))\nassert c == 4\n"
    )
    (violation,) = check_script(source).report.violations
    assert violation.fixes[0].remaining == ("AssertionError",)


def test_getting_further_within_one_function_counts() -> None:
    source = (
        "import jax, jax.numpy as jnp\ndef main():\n    def step(c, x):\n        return c + x, c\n"
        "    c, ys = jax.lax.scan(step, jnp.int32(0), jnp.ones(3))\n    assert c == 4\nmain()\n"
    )
    (violation,) = check_script(source).report.violations
    assert violation.fixes[0].remaining == ("AssertionError",)


def test_every_fix_was_run() -> None:
    checkup: Checkup = check_script(FAULTY[0])
    assert len(checkup.runs) > 1
    for sources in checkup.sources:
        for text in sources:
            assert any(run.record.source.text == text for run in checkup.runs)


# --- texts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after", "is_removal"),
    [
        ("x = 1\ny = 2\n", False),
        ("x = 1\ny = 3\nz = 4\n", False),
        ("x = 1\n", True),
        ("x = 1\n# y = 2\n", True),
        ("x = 1\npass\n", True),
        ("x = 1\n'y = 2'\n", True),
        ("x = 1\ny\n", True),
        ("x = (\n", True),
    ],
)
def test_what_counts_as_taking_away(after: str, is_removal: bool) -> None:
    assert removes("x = 1\ny = 2\n", after) is is_removal


@pytest.mark.parametrize(
    ("after", "is_skip"),
    [
        ("x = 1\nif x: y = 2\n", False),
        ("x = 1\nif False: y = 2\n", True),
        ("x = 1\nwhile not True: y = 2\n", True),
        ("x = 1\ny = 2 if 0 else 3\n", True),
        ("x = 1\ny = 2 if x else 3\n", False),
        ("raise SystemExit\nx = 1\ny = 2\n", True),
        ("import sys\nx = 1\nsys.exit()\ny = 2\n", True),
        ("x = 1\nquit()\ny = 2\n", True),
        ("x = 1\nraise ValueError\ny = 2\n", True),
    ],
)
def test_what_counts_as_a_way_past_statements(after: str, is_skip: bool) -> None:
    assert skips("x = 1\ny = 2\n", after) is is_skip


def edit(line: int, col: int, end_line: int, end_col: int, text: str) -> TextEdit:
    return TextEdit(Span(line, col, end_line, end_col), text)


def test_edits_are_made_from_the_back_and_never_on_top_of_each_other() -> None:
    text = "a = 1\nb = größe\nc = 3\n"
    edits = (edit(3, 4, 3, 5, "33"), edit(1, 0, 1, 0, "import x\n"), edit(2, 4, 2, 9, "2"))
    assert apply_edits(text, edits) == "import x\na = 1\nb = 2\nc = 33\n"
    one = merged(text, edits)
    assert one is not None
    assert apply_edits(text, (one,)) == apply_edits(text, edits)
    assert apply_edits(text, (edit(1, 0, 1, 3, ""), edit(1, 2, 1, 5, ""))) is None
    assert merged(text, ()) is None


@pytest.mark.parametrize("after", ["abc", "abxc", "ac", "", "xabc", "abcx", "axxc\nq"])
def test_the_difference_of_two_texts_is_one_edit(after: str) -> None:
    assert apply_edits("abc", (difference("abc", after),)) == after


def test_places_are_the_same_before_and_after_an_edit() -> None:
    before = "a = 1\nb = 2\nc = 3\n"
    edits = (edit(1, 0, 1, 0, "import x\n"), edit(2, 4, 2, 5, "a +\\\n 22"))
    after = apply_edits(before, edits)
    assert after is not None
    spots = Spots(before, edits)
    spot = spots.after(after)
    last = Span(3, 0, 3, 1), Span(5, 0, 5, 1)
    assert after.split("\n")[4].startswith("c")
    assert spots.before(last[0]) == spot(last[1])
    inside = Span(2, 4, 2, 5), Span(4, 1, 4, 3)
    assert spots.before(inside[0]) == spot(inside[1])
    assert spots.before(Span(1, 0, 1, 1)) == spot(Span(2, 0, 2, 1))
    assert spots.before(None) == spot(None) == -1


def test_two_lists_of_edits_with_the_same_text_are_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Any] = []
    source = "import jax, jax.numpy as jnp\ndef step(c, x):\n    return c + x\njax.lax.scan(step, 0.0, jnp.ones(3))\n"
    from core.doctor import check

    once = check.run_once
    monkeypatch.setattr(check, "run_once", lambda s, *a, **k: (runs.append(s.text), once(s, *a, **k))[1])
    check_script(source)
    assert len(runs) == len(set(runs))


FLOATS = "import jax, jax.numpy as jnp\ndef step(c, x):\n    return c + x, c\njax.lax.scan(step, jnp.int32(0), jnp.ones(3))\n"


def test_a_rule_that_failed_in_the_edited_script_does_not_make_its_fault_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    from core.doctor import check

    once = check.run_once

    def failing(source: Any, *args: Any, **kwargs: Any) -> Any:
        outcome = once(source, *args, **kwargs)
        if source.text != FLOATS:
            outcome.run.problems.append(("S104", RuntimeError()))
        return outcome

    assert check_script(FLOATS).sources[0]
    monkeypatch.setattr(check, "run_once", failing)
    assert check_script(FLOATS).sources[0] == []


def test_an_edited_script_whose_rules_were_not_all_asked_is_no_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    from core.doctor import check
    from core.doctor.script import CONCLUSION

    once = check.run_once

    def hurried(source: Any, *args: Any, **kwargs: Any) -> Any:
        outcome = once(source, *args, **kwargs)
        if source.text != FLOATS:
            outcome.run.problems.append((CONCLUSION, RuntimeError()))
        return outcome

    assert not check_script(FLOATS).cut
    monkeypatch.setattr(check, "run_once", hurried)
    checkup = check_script(FLOATS)
    assert checkup.cut
    assert checkup.sources == [[]]


def test_only_what_is_shown_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof of a fault is measured on the script as it stands and on its first fix; nothing else of an edited one is."""
    from core.contract import engine

    measured: list[str] = []
    number = engine.number_of
    monkeypatch.setattr(engine, "number_of", lambda m, s: (measured.append(m.claim), number(m, s))[1])
    checkup = check_script(
        "import jax, jax.numpy as jnp\nfrom flax import nnx\ncell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))\n"
        "def step(state, x):\n    h, n = state\n    _, out = cell(h, x)\n    return (out, n + 0.5), out\n"
        "init = (jnp.zeros((2, 4)), jnp.int32(0))\nfinal, ys = jax.lax.scan(step, init, jnp.ones((7, 2, 3)))\n"
    )
    assert {v.code for v in checkup.report.violations} == {"S104", "L301"}
    assert checkup.together is not None
    assert len(measured) == 2
