"""The code editor in a real browser, on a small page of its own (tests/support/editor_demo.py)."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from playwright.sync_api import Page, expect

from tests.support.editor_browser import content, give_file, marked, seen, text_of, told, wait_seen, write

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "tests" / "support" / "editor_demo.py"
PICTURES = ROOT / "test-results" / "e2e"
START_SECONDS = 60


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        connection.request("GET", "/_stcore/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


class DemoServer(SimpleNamespace):
    """The demo page, running: what `open_page` needs of a server."""

    def told_since(self, offset: int) -> str:
        """What it logged after the first `offset` bytes."""
        return self.log.read_bytes()[offset:].decode(errors="replace")


@pytest.fixture(scope="module")
def server() -> Iterator[DemoServer]:
    """In place of the app: the demo page."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    log = PICTURES / "editor-demo.log"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("STREAMLIT_")} | {"PYTHONPATH": str(ROOT)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", str(DEMO), f"--server.port={port}", "--server.address=127.0.0.1"],
            cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"the demo did not start:\n{log.read_text(errors='replace')}")
            time.sleep(0.1)
        yield DemoServer(url=f"http://127.0.0.1:{port}", log=log)
    finally:
        process.terminate()
        process.wait(timeout=10)


@pytest.fixture
def editor(open_page) -> Callable[..., Page]:
    """Opens the demo with one of its texts; the editor is there."""

    def opened(case: str = "short", **options) -> Page:
        page = open_page(f"/?case={case}", **options)
        expect(content(page)).to_be_visible(timeout=20_000)
        return page

    return opened


# --- text -----------------------------------------------------------------------------------------------------------


def test_typing_arrives_when_it_stops_without_leaving_the_editor(editor):
    page = editor("empty")
    expect(page.locator(".cm-placeholder")).to_have_text("Paste code here")
    content(page).click()
    page.keyboard.type("x = 1", delay=10)
    page.keyboard.press("Enter")
    page.keyboard.type("y = 'é😀'")
    told_now = wait_seen(page, "text", "x = 1\ny = 'é😀'")
    assert told_now["cursor"] == [2, 8]  # characters, not UTF-16 units
    assert told_now["run"] == 0
    expect(content(page)).to_be_focused()


def test_pasting_and_the_line_ends_of_windows(editor):
    page = editor("empty")
    write(page, "a = 1\r\nb = BAD\r\n")
    wait_seen(page, "text", "a = 1\nb = BAD\n")
    expect(page.locator(".cl-message")).to_have_count(1)
    assert marked(page, "error") == ["BAD"]


def test_ctrl_enter_runs_the_text_of_that_moment(editor):
    page = editor("empty")
    content(page).click()
    page.keyboard.type("a = 2")
    page.keyboard.press("Control+Enter")
    wait_seen(page, "text", "a = 2")
    first = seen(page)["run"]
    assert first > 0
    page.keyboard.press("Control+Enter")
    page.wait_for_function(
        "(n) => JSON.parse(document.querySelector('[data-testid=stCode]').innerText).run > n", arg=first
    )
    assert text_of(page) == "a = 2"  # no line was inserted


def test_a_slow_rerun_takes_no_typing_back_and_moves_no_mark(editor):
    page = editor("short")
    page.get_by_text("Slow").click()
    page.wait_for_timeout(300)
    content(page).click()
    page.keyboard.press("Control+Home")
    typed = "c1"
    page.keyboard.type(typed)
    # What was sent is answered a second later: by then there is more in the editor that Python has not seen.
    page.wait_for_timeout(900)
    for digit in "2345678901234567":
        page.keyboard.type(digit)
        typed += digit
        page.wait_for_timeout(100)
        assert text_of(page) == typed + "a = 1\nb = BAD(a)\n"
        assert marked(page, "error") == ["BAD"]
    wait_seen(page, "text", typed + "a = 1\nb = BAD(a)\n")
    assert text_of(page) == typed + "a = 1\nb = BAD(a)\n"


def test_apply_replaces_the_text_and_undo_takes_it_back(editor):
    page = editor("short")
    content(page).click()
    page.keyboard.press("Control+End")
    page.keyboard.type("c = 3")
    page.get_by_role("button", name="Apply").click()  # before the pause is over: leaving the editor sends the text
    wait_seen(page, "revision", 1)
    fixed = "a = 1\nb = GOOD(a)\nc = 3"
    wait_seen(page, "text", fixed)
    assert text_of(page) == fixed
    expect(page.locator(".cl-message")).to_have_count(0)
    content(page).click()
    page.keyboard.press("Control+z")
    wait_seen(page, "text", "a = 1\nb = BAD(a)\nc = 3")
    expect(page.locator(".cl-message")).to_have_count(1)
    page.keyboard.press("Control+z")
    wait_seen(page, "text", "a = 1\nb = BAD(a)\n")
    page.keyboard.press("Control+y")
    page.keyboard.press("Control+y")
    wait_seen(page, "text", fixed)
    page.get_by_role("button", name="Rerun").click()
    page.wait_for_timeout(500)
    assert text_of(page) == fixed


def test_another_page_and_back_keeps_text_and_history(editor):
    page = editor("short")
    content(page).click()
    page.keyboard.press("Control+End")
    page.keyboard.type("c = 3")
    page.get_by_text("Other", exact=True).click()
    expect(content(page)).to_have_count(0)
    page.get_by_text("Editor", exact=True).click()
    expect(content(page)).to_be_visible()
    wait_seen(page, "text", "a = 1\nb = BAD(a)\nc = 3")
    assert text_of(page) == "a = 1\nb = BAD(a)\nc = 3"
    content(page).click()
    page.keyboard.press("Control+z")
    wait_seen(page, "text", "a = 1\nb = BAD(a)\n")


def test_python_is_highlighted_indented_and_commented(editor):
    page = editor("empty")
    content(page).click()
    page.keyboard.type("def f(x):")
    page.keyboard.press("Enter")
    page.keyboard.type("return x")
    assert text_of(page) == "def f(x):\n    return x"
    expect(page.locator(".tok-keyword")).to_have_text(["def", "return"])
    page.keyboard.press("Control+/")
    assert text_of(page) == "def f(x):\n    # return x"


# --- faults and shapes ----------------------------------------------------------------------------------------------


def test_squiggles_stand_on_python_columns(editor):
    page = editor("wide")
    assert marked(page, "error") == ["BAD"]
    assert marked(page, "warning") == ["ODD"]
    assert marked(page, "note") == ["HMM"]
    expect(page.locator(".cl-message b")).to_have_text(["① X001", "② X002"])  # a note has none: good code looks calm
    page.locator(".cl-squiggle.cl-note").hover()
    expect(page.locator(".cl-tip")).to_contain_text("X003")
    expect(page.locator(".cl-mark")).to_have_text(["✗①", "⚠②", "ℹ③"])


def test_messages_stand_under_their_line_and_are_never_html(editor):
    page = editor("empty")
    write(page, "x = BAD + ODD\ny = OVER\nz = 1\n")
    expect(page.locator(".cl-message")).to_have_count(3)
    order = page.locator(".cm-content").evaluate(
        "(c) => [...c.children].map((e) => e.classList.contains('cm-line') ? 'line' : e.className.match(/cl-(error|warning|limit)/)[1])"
    )
    assert order == ["line", "error", "warning", "line", "limit", "line", "line"]
    expect(page.locator(".cl-message img")).to_have_count(0)
    expect(page.locator(".cl-message").first).to_contain_text("<img src=x onerror=")
    expect(page.locator(".cl-message code").first).to_have_text("BAD")
    assert page.title() != "hacked"
    expect(page.locator(".cl-message .cl-icon")).to_have_text(["✗", "⚠", "⊘"])
    page.locator(".cl-squiggle").first.hover()
    expect(page.locator(".cl-tip")).to_contain_text("X001")


def test_shapes_stand_at_the_right_with_the_differing_part_marked(editor):
    page = editor("script", width=1000)
    expect(page.locator(".cl-shape")).to_have_count(8)
    expect(page.locator(".cl-shape b")).to_have_text("float32[]")
    line = page.locator(".cm-line").nth(8)
    assert line.locator(".cl-shape").bounding_box()["y"] < line.bounding_box()["y"] + 8  # beside the code
    right = {round(box["x"] + box["width"]) for box in (s.bounding_box() for s in page.locator(".cl-shape").all())}
    assert len(right) == 1
    lefts = [
        round(page.locator(".cm-gutterElement", has_text=re.compile(f"^{n}$")).last.bounding_box()["y"])
        for n in (1, 8, 12)
    ]
    tops = [round(page.locator(".cm-line").nth(n).bounding_box()["y"]) for n in (0, 7, 11)]
    assert lefts == pytest.approx(tops, abs=3)  # the messages do not move the line numbers away


def test_an_edit_makes_everything_stale_until_the_next_check(editor):
    page = editor("short")
    page.get_by_text("Slow").click()
    page.wait_for_timeout(1500)
    content(page).click()
    page.keyboard.press("Control+Home")
    page.keyboard.press("Enter")
    expect(page.locator(".cl-message[data-stale]")).to_have_count(1)
    expect(page.locator(".cl-message")).to_contain_text("before the last edit")
    expect(page.locator(".cl-shape[data-stale]")).to_have_count(2)
    assert marked(page, "error") == ["BAD"]  # it moved with its line
    expect(page.locator(".cl-message[data-stale]")).to_have_count(0, timeout=10_000)
    expect(page.locator(".cl-message")).to_have_count(1)


def test_while_a_check_goes_on_the_last_one_stays_dimmed(editor):
    page = editor("short")
    page.get_by_text("Later").click()
    page.wait_for_timeout(500)
    content(page).click()
    page.keyboard.press("Control+End")
    page.keyboard.type("# GOOD")
    wait_seen(page, "text", "a = 1\nb = BAD(a)\n# GOOD")
    page.wait_for_timeout(300)
    expect(page.locator(".cl-message[data-stale]")).to_have_count(1)
    page.get_by_role("button", name="Rerun").click()
    expect(page.locator(".cl-message[data-stale]")).to_have_count(0)
    expect(page.locator(".cl-message")).to_have_count(1)


def test_the_cursor_stands_after_the_text_not_after_the_shape(editor):
    page = editor("short")
    content(page).click()
    page.keyboard.press("Control+Home")
    for _ in "a = 1":
        page.keyboard.press("ArrowRight")
    cursor, shape = page.locator(".cm-cursor-primary").bounding_box(), page.locator(".cl-shape").first.bounding_box()
    assert cursor["x"] < shape["x"] - 100
    page.keyboard.press("ArrowDown")
    page.keyboard.type("!")
    assert text_of(page) == "a = 1\nb = B!AD(a)\n"
    page.locator(".cl-shape").first.click()
    page.keyboard.type("2")
    assert text_of(page) == "a = 12\nb = B!AD(a)\n"


# --- keyboard and screen readers ------------------------------------------------------------------------------------


def test_tab_indents_and_escape_then_tab_leaves(editor):
    page = editor("empty")
    content(page).click()
    page.keyboard.press("Tab")
    page.keyboard.type("x")
    page.keyboard.press("Tab")
    assert text_of(page) == "    x   "
    expect(content(page)).to_be_focused()
    page.keyboard.press("Shift+Tab")
    assert text_of(page) == "x   "
    page.keyboard.press("Escape")
    told(page, "Tab leaves the editor now")
    page.wait_for_timeout(2500)  # CodeMirror's own patience is two seconds
    page.keyboard.press("Tab")
    expect(content(page)).not_to_be_focused()
    expect(page.get_by_role("button", name="Apply")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(content(page)).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("Shift+Tab")
    expect(content(page)).not_to_be_focused()
    assert text_of(page) == "x   "


def test_the_text_box_says_how_to_leave_and_faults_are_announced(editor):
    page = editor("wide")
    described = content(page).evaluate(
        "(box) => box.getRootNode().getElementById(box.getAttribute('aria-describedby')).textContent"
    )
    assert "press Escape, then Tab" in described
    told(page, "3 faults. Line 1: error X001.")
    content(page).click()
    page.keyboard.press("Control+Home")
    for words in ("Line 1: error X001", "Line 2: warning X002", "Line 3: note X003", "Line 1: error X001"):
        page.keyboard.press("F8")
        told(page, words)
    page.keyboard.press("Shift+F8")
    told(page, "Line 3: note X003")
    told(page, "On this line: z float32[2,4]")
    write(page, "x = 1")
    told(page, "No faults.")


# --- files and limits -----------------------------------------------------------------------------------------------


def test_a_file_comes_in_and_can_be_taken_back(editor):
    page = editor("short")
    for how in ("drop", "paste"):
        give_file(page, "model.py", "q = BAD\n", how)
        wait_seen(page, "text", "q = BAD\n")
        expect(page.locator(".cl-told")).to_contain_text("model.py is in the editor")
        page.keyboard.type("#")
        page.keyboard.press("Control+z")  # what was typed at once after it is a step of its own
        assert text_of(page) == "q = BAD\n"
        page.keyboard.press("Control+z")
        wait_seen(page, "text", "a = 1\nb = BAD(a)\n")


def test_of_a_notebook_the_code_cells_come_in(editor):
    page = editor("empty")
    cells = [
        {"cell_type": "markdown", "source": ["# Title"]},
        {"cell_type": "code", "source": ["a = 1\n", "b = 2"], "outputs": [{"data": {"image/png": "A" * 100_000}}]},
        {"cell_type": "code", "source": "c = BAD"},
    ]
    give_file(page, "work.ipynb", json.dumps({"cells": cells}))
    wait_seen(page, "text", "# cell 1\na = 1\nb = 2\n# cell 2\nc = BAD")


REFUSED = (
    ("huge.py", "x" * 1_000_001, "huge.py is too big: 977 KB"),
    ("photo.png", "x", "photo.png cannot be opened"),
    ("odd.py", "a\0b", "odd.py is no text file"),
    ("empty.ipynb", '{"cells": []}', "empty.ipynb is a notebook without code cells"),
)


def test_a_file_that_cannot_be_opened_changes_nothing(editor):
    page = editor("short")
    for name, text, words in REFUSED:
        give_file(page, name, text)
        expect(page.locator(".cl-told")).to_contain_text(words)
        assert text_of(page) == "a = 1\nb = BAD(a)\n"


def test_beyond_the_limit_it_says_so_and_loses_nothing(editor):
    page = editor("empty")
    text = "x = 1\n" * 3_400  # 20,400 characters
    write(page, text)
    expect(page.locator(".cl-count")).to_contain_text("20,400 characters")
    expect(page.locator(".cl-count")).to_contain_text("20,000")
    wait_seen(page, "text", text)
    page.keyboard.press("Control+z")
    wait_seen(page, "text", "")
    expect(page.locator(".cl-count")).to_have_text("")


# --- look -----------------------------------------------------------------------------------------------------------


def test_it_follows_the_theme_without_a_reload(editor):
    page = editor("script", scheme="light", width=1000)
    frame = page.locator(".cm-editor")
    light = re.compile(r"rgb\(2[2-5]\d, 2[2-5]\d, 2[2-5]\d\)")
    expect(frame).to_have_css("background-color", light)
    page.screenshot(path=PICTURES / "editor-light.png")
    page.emulate_media(color_scheme="dark")
    expect(frame).to_have_css("background-color", re.compile(r"rgb\([12]?\d, [12]?\d, [12]?\d\)"))
    expect(frame).to_have_css("color", light)
    page.screenshot(path=PICTURES / "editor-dark.png")


def test_on_a_phone_shapes_stand_under_the_code(editor):
    page = editor("script", width=360, height=760)
    page.screenshot(path=PICTURES / "editor-narrow.png")
    line = page.locator(".cm-line").nth(8)
    shape, box = line.locator(".cl-shape").bounding_box(), line.bounding_box()
    assert shape["y"] > box["y"] + 15
    assert shape["x"] >= box["x"]
    assert shape["x"] + shape["width"] <= 360
    # Up and down go from line to line, over shapes that stand between them.
    content(page).click()
    page.keyboard.press("Control+Home")
    page.keyboard.press("End")
    active = page.locator(".cm-lineNumbers .cm-activeLineGutter")
    for number in range(2, 14):
        before = active.inner_text()
        for _ in range(3):  # a long line is several lines on the screen
            page.keyboard.press("ArrowDown")
            if active.inner_text() != before:
                break
        assert active.inner_text() == str(number)
    scroller = page.locator(".cm-scroller").evaluate("(s) => [s.scrollWidth, s.clientWidth]")
    assert scroller[0] <= scroller[1]


def test_the_code_is_sent_once_and_not_with_every_change(editor, open_page):
    sizes: list[int] = []
    page = open_page("/?case=empty", wait=False)
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: sizes.append(len(frame))))
    page.reload()
    expect(content(page)).to_be_visible(timeout=20_000)
    assert max(sizes) > 300_000
    sizes.clear()
    content(page).click()
    page.keyboard.type("x = 1")
    wait_seen(page, "text", "x = 1")
    assert sum(sizes) < 60_000
