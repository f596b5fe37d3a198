"""Every rule is unique, documented, exemplified, tested, and really says what its catalogue page shows.

A rule's folder (`core/catalogue/examples/<CODE>/`, for the catalogue shows them) holds `bad.py` and `good.py`, plain
scripts that run by themselves (`bad.py` as far as it gets), `expected.txt`, what Carry Lab says of `bad.py`, and, where
that raises, `jax.txt`, what JAX says: reviewed by a person, and written anew with

    CARRY_LAB_UPDATE_SNAPSHOTS=1 python -m pytest tests/catalogue
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from core.base.places import Place, Span
from core.base.violation import Severity, Violation
from core.catalogue.entries import EXAMPLES
from core.contract.rule import Rule, all_rules
from core.contract.source import Source
from core.doctor.check import Checkup, check_script
from core.doctor.fixes import Outcome
from core.doctor.sandboxed import sandboxed
from tests.support.capture import Captured, capture

ROOT = Path(__file__).resolve().parents[2]
UPDATE = "CARRY_LAB_UPDATE_SNAPSHOTS"
RULES = pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
SECTIONS = ("**What.**", "**Why.**", "**Bad**", "**Good**", "Source: ")


# --- the catalogue --------------------------------------------------------------------------------------------------


def test_codes_and_names_are_unique() -> None:
    rules = all_rules()
    for field in ("code", "name", "title"):
        values = [getattr(rule, field) for rule in rules]
        assert len(set(values)) == len(values), f"{field} is given twice"


def test_every_folder_belongs_to_a_rule() -> None:
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir() and not path.name.startswith(("_", "."))}
    assert folders == {rule.code for rule in all_rules()}


@RULES
def test_a_rule_has_its_own_file_and_its_page(rule: Rule) -> None:
    assert re.fullmatch(r"[SPLRNX]\d{3}", rule.code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)
    assert (ROOT / "core" / "contract" / "rules" / f"{rule.code.lower()}.py").is_file()
    assert rule.title
    assert not rule.title.endswith(".")
    assert rule.why.strip().endswith((".", "}"))
    missing = [section for section in SECTIONS if section not in rule.page]
    assert not missing, f"{rule.code} has no {missing}"
    places = [rule.page.index(section) for section in SECTIONS]
    assert places == sorted(places), "the sections are in another order than everywhere else"


@RULES
def test_a_rule_beats_only_rules_that_exist(rule: Rule) -> None:
    assert rule.beats <= {other.code for other in all_rules()}
    assert rule.code not in rule.beats


@RULES
def test_a_rule_has_unit_tests(rule: Rule) -> None:
    path = ROOT / "tests" / "unit" / "contract" / f"test_{rule.code.lower()}.py"
    assert path.is_file(), f"{path} is missing"
    text = path.read_text(encoding="utf-8")
    assert len(re.findall(r"^def test_", text, re.MULTILINE)) >= 3
    assert rule.code in text


# --- the examples ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Checked:
    """An example of a rule about whole scripts: checked as the Doctor does, in the step language."""

    checkup: Checkup

    @property
    def source(self) -> Source:
        return self._outcome.run.record.source

    @property
    def error(self) -> BaseException | None:
        """What the script raised. A refusal of ours is nothing that JAX or Python raises."""
        record = self._outcome.run.record
        return None if record.failure is None or record.refused else record.failure.error

    @property
    def _outcome(self) -> Outcome:
        assert self.checkup.outcome is not None, self.checkup.unread
        assert not self._problems, self._problems
        return self.checkup.outcome

    @property
    def _problems(self) -> list[tuple[str, Exception]]:
        return [] if self.checkup.run is None else self.checkup.run.problems

    def subjects(self) -> list[object]:
        """All that it did and that can be checked."""
        record = self._outcome.run.record
        return [*record.scans, *record.calls]

    def violations(self) -> list[Violation]:
        return list(self.checkup.report.violations)


def example(rule: Rule, name: str) -> Captured | Checked:
    """A script of the rule's folder, run."""
    text = (EXAMPLES / rule.code / f"{name}.py").read_text(encoding="utf-8")
    return Checked(check_script(text, prepare=sandboxed)) if "script" in rule.on else capture(text)


@RULES
def test_the_bad_example_breaks_this_rule_and_no_other(rule: Rule) -> None:
    captured = example(rule, "bad")
    found = captured.violations()
    mine = [v for v in found if v.code == rule.code]
    assert mine, f"nothing of {rule.code} in {[(v.code, v.message) for v in found]}"
    others = [v for v in found if v.code != rule.code and v.severity is not Severity.NOTE]
    assert not others, [(v.code, v.message) for v in others]
    raised = any(not v.silent and v.severity is Severity.ERROR for v in mine)
    assert (captured.error is not None) is raised, f"the script raised {captured.error!r}"
    compare(EXAMPLES / rule.code / "expected.txt", "\n\n".join(render(v, captured) for v in mine) + "\n")
    if captured.error is not None and rule.severity is not Severity.LIMIT:
        compare(EXAMPLES / rule.code / "jax.txt", message(captured.error))


@RULES
def test_the_good_example_breaks_nothing(rule: Rule) -> None:
    captured = example(rule, "good")
    assert captured.error is None, repr(captured.error)
    assert captured.subjects(), "there is neither a scan nor a cell in it"
    found = captured.violations()
    assert not [(v.code, v.message) for v in found if v.severity is not Severity.NOTE or v.code == rule.code]


# --- snapshots ------------------------------------------------------------------------------------------------------


def compare(path: Path, text: str) -> None:
    """The text against the reviewed one; written down instead when asked for."""
    if os.environ.get(UPDATE):
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), f"{path} is missing: look at what is said, then run with {UPDATE}=1"
    assert text == path.read_text(encoding="utf-8")


def message(error: BaseException) -> str:
    """What JAX or Python says, without addresses of memory, which are another every time."""
    return re.sub(r" at 0x[0-9a-f]+", "", f"{type(error).__name__}: {error}").rstrip() + "\n"


def render(violation: Violation, captured: Captured | Checked) -> str:
    """All that a card would say, as text. Numbers of a proof to three digits: the rest is a machine's own."""
    lines = [
        f"{violation.code} {violation.name}: {violation.severity}, JAX {'is silent' if violation.silent else 'raises'}",
        violation.message,
        f"at {where(violation.place, captured)}",
    ]
    if violation.because is not None:
        lines.append(f"because {violation.because.text}, {where(violation.because.place, captured)}")
    lines += [f"expected {leaf.path}: {leaf}" for leaf in violation.expected]
    lines += [f"got {leaf.path}: {leaf}" for leaf in violation.got]
    lines.append(f"why {violation.why}")
    for fix in violation.fixes:
        lines.append(f"fix {fix.title}" + (f" (remains: {', '.join(fix.remaining)})" if fix.remaining else ""))
    if violation.proof is not None:
        proof = violation.proof
        after = "" if proof.after is None else f", fixed {proof.after:.3g}"
        lines.append(f"proof {proof.claim} {proof.before:.3g}{after}, expected {proof.expected:.3g}")
    return "\n".join(lines)


def where(place: Place | None, captured: Captured | Checked) -> str:
    """``line 5: init``, the code itself as far as it stands on one line."""
    if not isinstance(place, Span):
        return "no place"
    line = captured.source.lines[place.line - 1]
    end = place.end_col if place.end_line == place.line else len(line)
    return f"line {place.line}: {line[place.col : end]}"
