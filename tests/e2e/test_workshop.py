"""A workshop from its first link to the last file: what issue 5 calls done, in its order."""

from __future__ import annotations

import csv
import io
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import nbformat
from playwright.sync_api import Page, expect

from tests.e2e.test_challenges import PREDICT, SPOT, answers, code_of, predict, spot
from tests.e2e.test_lessons import LONG, done, rail

type OpenPage = Callable[..., Page]

#: How many pixels of a projector the rail may take.
TALLEST = 90
NUMBER = re.compile(r"[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def numbers(text: str) -> list[float]:
    return [float(one.replace("−", "-")) for one in NUMBER.findall(text)]


def chosen(page: Page, key: str, option: str) -> None:
    page.locator(f".st-key-{key} input").fill(option)
    # Not before the list is that of what was typed: its rows change places under the mouse. And by its name: when the
    # answer to the pick before comes in between, the list is whole again and begins with "Select all".
    expect(page.get_by_role("option").first).to_have_text(option, timeout=LONG)
    page.get_by_role("option", name=option, exact=True).click()


def teachers_link(open_page: OpenPage) -> str:
    """Path and query of the link that the teacher makes: lesson 3, two controls hidden, for a projector."""
    page = open_page("/lstm")  # wherever the teacher is
    page.locator(".st-key-class_panel button").click()
    chosen(page, "class_lesson", "3 · Shape and dtype must stay")
    expect(page.locator("code", has_text="lesson=3")).to_be_visible(timeout=LONG)
    for control, key in (("xs from", "scan_source"), ("length T", "scan_length")):
        chosen(page, "class_hide", control)
        page.keyboard.press("Escape")  # the list stays open for another one
        expect(page.locator("code", has_text=key)).to_be_visible(timeout=LONG)
    page.locator(".st-key-class_present label").click()
    link = page.locator("code", has_text="present=1")
    expect(link).to_contain_text("lesson=3", timeout=LONG)
    address = urlsplit(link.inner_text().strip())
    assert address.path == "/"
    query = {name: texts[0] for name, texts in parse_qs(address.query).items()}
    assert query == {"hide": "scan_source,scan_length", "present": "1", "lesson": "3"}
    return f"{address.path}?{address.query}"


def printed_by(notebook: str, folder: Path) -> str:
    """What the cells of a notebook print, run in their order by a Python of their own."""
    book = nbformat.reads(notebook, as_version=4)
    nbformat.validate(book)
    file = folder / "cells.py"
    file.write_text("\n\n".join(cell.source for cell in book.cells if cell.cell_type == "code"), encoding="utf-8")
    ran = subprocess.run([sys.executable, "-I", str(file)], capture_output=True, text=True, timeout=240, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_workshop_from_the_teachers_link_to_the_notebook(open_page: OpenPage, tmp_path: Path):
    page = open_page(teachers_link(open_page), width=1366, height=768)
    strip = page.locator(".cl-strip")

    # The lesson is open, two controls are hidden, and nothing but the page is on the projector.
    expect(rail(page)).to_contain_text("step 1 of 4", timeout=LONG)
    box = rail(page).bounding_box()
    assert box is not None
    assert box["height"] <= TALLEST
    for key in ("scan_source", "scan_length"):
        expect(page.locator(f".st-key-{key}")).to_be_hidden()
    expect(page.locator(".st-key-scan_step")).to_be_visible()
    expect(page.locator("[data-testid=stSidebar]")).to_be_hidden()
    expect(rail(page).get_by_role("status")).not_to_contain_text("✓")

    # The carry is broken; the card says where, and what was expected.
    page.locator(".st-key-scan_step input").fill("Carry gains")
    page.get_by_role("option", name="Carry gains an axis").click()
    done(page)
    expect(strip).to_contain_text("Contract broken")
    card = page.locator("[class*=st-key-scan_card_error_]").first
    expect(card).to_contain_text("S103")
    expect(card).to_contain_text("goes in as float32[] and comes out as float32[1]")

    # The fix is applied, and the page says that it holds.
    rail(page).get_by_role("button", name="Next", exact=True).click()
    expect(rail(page)).to_contain_text("step 2 of 4", timeout=LONG)
    page.get_by_role("button", name="Apply: ").first.click()
    done(page)
    expect(strip).to_contain_text("Contract kept")
    shown = re.search(r"final carry (\S+) · ys \[([^\]]*)\]", strip.inner_text())
    assert shown is not None
    final, ys = shown.groups()

    # The notebook is taken along; it is a good one, runs, and says what the page says.
    page.locator(".st-key-scan_export button").first.click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Notebook (.ipynb)").click()
    printed = printed_by(Path(download.value.path()).read_text(encoding="utf-8"), tmp_path)
    said = dict(line.split(": ", 1) for line in printed.splitlines() if ": " in line)
    assert numbers(said["final carry"]) == numbers(final) == [6.0]
    assert numbers(said["ys"]) == numbers(ys) == [1.0, 3.0, 6.0]
    assert "raised, as it must" in printed

    # Two challenges are answered, in the same session.
    page.keyboard.press("Escape")
    page.locator(".st-key-class_leave button").click()
    page.get_by_role("link", name="Challenges", exact=True).click()
    page.get_by_role("button", name=PREDICT.title).click(timeout=LONG)
    expect(page.get_by_role("heading", name=PREDICT.title)).to_be_visible(timeout=LONG)
    predict(page, answers(PREDICT))
    expect(page.locator(".cl-challenge-solved")).to_have_text("Right, at the first try.", timeout=LONG)
    page.get_by_role("button", name="All challenges").click()
    page.get_by_role("button", name=SPOT.title).click(timeout=LONG)
    expect(page.locator(".cl-numbered")).to_have_count(2, timeout=LONG)
    spot(page, SPOT.side(0), code_of(SPOT))
    expect(page.locator(".cl-challenge-solved")).to_have_text("Right, at the first try.", timeout=LONG)

    # The sheet is taken along: what was tried, and nothing about who did.
    page.get_by_role("button", name="All challenges").click()
    with page.expect_download() as download:
        page.locator(".st-key-challenges_sheet_csv button").first.click()
    rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8"))))
    assert [(row["challenge"], row["result"], row["tries"]) for row in rows] == [
        (PREDICT.key, "right", "1"),
        (SPOT.key, "right", "1"),
    ]

    # What was learned is still there.
    page.get_by_role("link", name="Lessons", exact=True).click()
    expect(page.locator(".st-key-lessons_row_3")).to_contain_text("2 of 4 done", timeout=LONG)
