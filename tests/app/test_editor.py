"""The code editor's Python side: what it believes of the browser, and the text area that stands in for it."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.base.avals import LeafType
from core.base.outcome import Outcome, RawError, Report
from core.base.places import Because, Field, Span
from core.base.violation import Severity, Violation
from pages.widgets import editor
from pages.widgets.annotated import annotated_html
from pages.widgets.diagnostic import Diagnostic, diagnostics_of
from tests.support.editor import write_code

DEMO = Path(__file__).resolve().parents[1] / "support" / "editor_demo.py"
SHORT = "a = 1\nb = BAD(a)\n"


def opened(case: str = "short") -> AppTest:
    at = AppTest.from_file(str(DEMO), default_timeout=60)
    at.query_params["case"] = case
    return ran(at)


def ran(at: AppTest) -> AppTest:
    at.run()
    assert not at.exception
    return at


def seen(at: AppTest) -> dict:
    return json.loads(at.code[0].value)


@pytest.fixture
def no_editor(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where it could not be built."""
    monkeypatch.setattr(editor, "_code", None)
    monkeypatch.setattr(editor, "_why_not", "there is no Node.js")


# --- what the browser sends -----------------------------------------------------------------------------------------


def test_what_the_browser_sends_arrives() -> None:
    if editor.editor_available():
        pytest.skip("test_editor_build.py says whether it must be there")
    at = opened()
    assert seen(at) == {"text": SHORT, "revision": 0, "run": 0, "cursor": [1, 0]}
    ran(write_code(at, "demo", "q = BAD\r\n", run=7))
    assert seen(at) == {"text": "q = BAD\n", "revision": 0, "run": 7, "cursor": [1, 0]}


@pytest.mark.parametrize(
    ("edit", "text", "run", "cursor"),
    [
        (None, "old", 0, (1, 0)),
        ("new", "old", 0, (1, 0)),
        ({"text": "new", "revision": 4, "run": 2, "cursor": [3, 1]}, "new", 2, (3, 1)),
        ({"text": "new", "revision": 3, "run": 2, "cursor": [3, 1]}, "old", 2, (1, 0)),  # of an older document
        ({"text": "new", "revision": 5, "run": 0}, "old", 0, (1, 0)),
        ({"text": ["new"], "revision": 4, "run": 1}, "old", 1, (1, 0)),
        ({"text": "new", "revision": 4, "run": "2", "cursor": [-1, 0]}, "new", 0, (1, 0)),
        ({"text": "new", "revision": 4, "run": True, "cursor": [1]}, "new", 0, (1, 0)),
        ({"text": "n" * 1_000_005, "revision": 4}, "n" * 1_000_000, 0, (1, 0)),
    ],
)
def test_nothing_that_is_sent_is_believed_unseen(edit, text, run, cursor) -> None:
    event = editor._event(edit, "old", 4)
    assert (event.text, event.revision, event.run, event.cursor) == (text, 4, run, cursor)


def test_every_word_of_the_editor_is_a_text_of_python() -> None:
    sources = "".join(p.read_text("utf-8") for p in (Path(editor.__file__).parent / "src").glob("*.js"))
    used = set(re.findall(r"words\.(\w+)", sources)) | set(re.findall(r'word: [^}]*?"(\w+)"', sources))
    used |= {"no_cells", "not_text"}  # chosen between
    assert used == set(editor.TEXTS)


# --- the stand-in ---------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_editor")
def test_without_a_bundle_a_text_area_stands_in() -> None:
    at = opened()
    assert editor.editor_available() == "there is no Node.js"
    assert at.text_area(key="demo").value == SHORT
    (code,) = [body for body in bodies(at) if "cl-annotated" in body]
    assert {"X001", "float32[2,4]"} <= set(re.findall(r"[\w\[\],]+", code))


@pytest.mark.usefixtures("no_editor")
def test_the_text_area_takes_a_new_text_only_with_a_new_revision() -> None:
    at = opened()
    ran(write_code(at, "demo", "q = BAD\n"))
    assert at.text_area(key="demo").value == "q = BAD\n"
    at.run()
    assert at.text_area(key="demo").value == "q = BAD\n"
    at.button[0].click()  # Apply
    ran(at)
    assert at.text_area(key="demo").value == "q = GOOD\n"
    assert seen(at)["revision"] == 1


def bodies(at: AppTest) -> list[str]:
    return [element.proto.body for element in at.get("html")]


def rows(code: str) -> list[str]:
    """The lines as they are read: code, shapes, messages."""
    items = re.findall(r"<li [^>]*>(.*?)</li>", code, re.DOTALL)
    return [html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", item))).strip() for item in items]


def marked(code: str) -> list[str]:
    return [html.unescape(text) for text in re.findall(r'<span class="cl-squiggle[^>]*>(.*?)</span>', code)]


def test_annotated_code_has_shapes_and_messages_at_its_lines() -> None:
    faults = [
        Diagnostic(
            Span(2, 4, 2, 7), Severity.ERROR, "`carry[1]` is <b>bold</b>.", code="S104", number=1, differs="int32[]"
        ),
        Diagnostic(Span(2, 8, 2, 8), Severity.NOTE, "Look.", number=2),
    ]
    code = annotated_html("a = 1\nb = BAD(<a>)", diagnostics=faults, shapes=[(2, "b int32[]"), (1, "a <x>")])
    one, two = rows(code)
    assert one == "a = 1 a <x>"
    assert re.sub(r" +", " ", two) == "b = BAD ( < a>) b int32[] ✗ error ① S104 carry[1] is <b>bold</b>. ℹ note ② Look."
    assert marked(code) == ["BAD", "<"]
    assert '<b class="cl-error">int32[]</b>' in code
    assert not re.search("<b>bold|<a>", code)
    assert "cl-stale" not in re.sub(r"<style>.*?</style>", "", code, flags=re.DOTALL)


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        (Span(1, 0, 1, 3), ["abc"]),
        (Span(1, 1, 2, 1), ["bc😀"]),  # to the end of its line
        (Span(1, 4, 1, 4), ["😀"]),
        (Span(1, 99, 1, 99), ["😀"]),
        (Span(9, 0, 9, 1), []),  # the last line is empty
        (Span(0, -5, 0, -1), ["a"]),
    ],
)
def test_places_outside_the_text_are_taken_back(span: Span, expected: list[str]) -> None:
    assert marked(annotated_html("abc😀\n", diagnostics=[Diagnostic(span, Severity.ERROR, "x")])) == expected


def test_stale_code_says_so() -> None:
    code = annotated_html("a", diagnostics=[Diagnostic(Span(1, 0, 1, 1), Severity.ERROR, "x")], stale=True)
    assert "Of the text before the last edit" in code


# --- from a report --------------------------------------------------------------------------------------------------


def violation(code: str, place: Span | Field, **more) -> Violation:
    return Violation(code, code.lower(), Severity.ERROR, False, f"{code} says", place, "why", **more)


def test_diagnostics_are_numbered_as_the_cards_are() -> None:
    there, second = Span(1, 0, 1, 4), Span(3, 0, 3, 4)
    report = Report(
        Outcome.VIOLATIONS,
        (
            violation("L301", there, got=(LeafType("carry[0]", None, "float32[2,4]"),)),
            violation("S102", Field("scan_init", "init")),
            violation("S104", there, because=Because(second, "init"), got=(LeafType("carry[1]", None, "float32[]"),)),
        ),
    )
    one, two = diagnostics_of(report)
    # What a cell is given is not what its line computes: nothing in the shapes of that line is at fault.
    assert (one.number, one.code, one.span, one.because, one.differs) == (1, "L301", there, None, "")
    assert (two.number, two.code, two.because, two.because_text, two.differs) == (
        3,
        "S104",
        second,
        "init",
        "float32[]",
    )


def test_an_error_that_no_rule_explains_is_shown_at_its_place() -> None:
    raw = RawError("TypeError", "add got\nmore", Span(2, 0, 2, 4))
    (one,) = diagnostics_of(Report(Outcome.ERROR, (), error=raw))
    assert (one.message, one.number, one.code, one.span) == ("TypeError: add got", 0, "", Span(2, 0, 2, 4))
    assert diagnostics_of(None) == ()
