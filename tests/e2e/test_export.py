"""What leaves a page by its menu, in a real browser: program, notebook, numbers, picture, link."""

from __future__ import annotations

import contextlib
import csv
import io
import subprocess
import sys

import nbformat
import pytest
from playwright.sync_api import expect

QUERY = "/?x=1%2C+2.5%2C+-4"
FINAL, YS = "-0.5", "[ 1.   3.5 -0.5]"


LABELS = {"script": "Script (.py)", "notebook": "Notebook (.ipynb)", "csv": "Numbers (.csv)"}


def button_of(page, name):
    """A button of the menu. By its role: Streamlit keeps a hidden copy of each beside it, for its tooltip."""
    return page.get_by_role("button", name=LABELS[name])


def taken(page, name, key="scan"):
    """What a button of the menu downloads: its file name and its content."""
    button = button_of(page, name)
    if not button.is_visible():
        page.locator(f".st-key-{key}_export button").first.click()
    with page.expect_download() as info:
        button.click()
    return info.value.suggested_filename, info.value.path().read_text(encoding="utf-8")


def test_script_notebook_and_numbers_of_the_scan_page_agree_with_it(open_page, tmp_path):
    page = open_page(QUERY)
    expect(page.locator(".cl-strip")).to_contain_text(f"final carry {FINAL} · ys [1, 3.5, {FINAL}]".replace("-", "−"))
    name, script = taken(page, "script")
    assert name == "carry-lab-scan.py"
    file = tmp_path / name
    file.write_text(script, encoding="utf-8")
    done = subprocess.run([sys.executable, "-I", str(file)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"final carry: {FINAL}\nys: {YS}\nraised, as it must: TypeError")
    name, text = taken(page, "notebook")
    assert name == "carry-lab-scan.ipynb"
    book = nbformat.reads(text, as_version=4)
    nbformat.validate(book)
    names, said = {}, io.StringIO()
    with contextlib.redirect_stdout(said):
        for cell in book.cells:
            if cell.cell_type == "code":
                exec(cell.source, names)
    assert said.getvalue() == done.stdout
    name, text = taken(page, "csv")
    assert [row["carry"] for row in csv.DictReader(io.StringIO(text))] == ["0", "1", "3.5", "-0.5"]


@pytest.mark.parametrize("page_name", ["lstm", "sequence", "gradients"])
def test_the_other_pages_hand_out_a_program_too(open_page, page_name):
    page = open_page(f"/{page_name}")
    name, script = taken(page, "script", page_name)
    assert name == f"carry-lab-{page_name}.py"
    compile(script, name, "exec")
    assert "# Negative test: " in script


@pytest.mark.parametrize("secure", [True, False], ids=["clipboard", "plain http"])
def test_the_link_that_is_copied_leads_back_here(open_page, secure):
    page = open_page(QUERY)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    if not secure:
        page.evaluate("Object.defineProperty(window, 'isSecureContext', { value: false })")
        page.evaluate("void (navigator.clipboard.writeText = () => { throw new Error('not here'); })")
    page.locator(".st-key-scan_copy_link button").click()
    expect(page.locator(".st-key-scan_copy_link .said")).to_have_text("copied")
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    again = open_page("/" + page.url.split("/")[-1])
    expect(again.locator(".cl-strip")).to_contain_text(f"final carry {FINAL}".replace("-", "−"))


def test_where_nothing_can_be_copied_the_link_stands_there_selected(open_page):
    page = open_page(QUERY)
    page.evaluate(
        "Object.defineProperty(window, 'isSecureContext', { value: false }); document.execCommand = () => false"
    )
    page.locator(".st-key-scan_copy_link button").click()
    field = page.locator(".st-key-scan_copy_link input")
    expect(field).to_have_value(page.url)
    expect(field).to_be_focused()


def test_a_chart_is_saved_as_a_picture_by_its_one_button(open_page):
    page = open_page(QUERY)
    chart = page.locator(".st-key-scan_trajectory")
    chart.hover()
    button = chart.locator(".modebar-btn")
    expect(button).to_have_count(1)
    with page.expect_download() as info:
        button.click()
    assert info.value.suggested_filename == "carry-lab-scan-carry.png"
    assert info.value.path().read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("path", ["/", "/lstm", "/doctor"])
def test_on_a_phone_the_strip_leaves_three_quarters_of_the_screen(open_page, path):
    page = open_page(path, width=360, height=640)
    key = path.strip("/") or "scan"
    strip = page.locator(".st-key-verdict").bounding_box()
    menus = page.locator(f".st-key-{key}_strip_menus").bounding_box()
    assert strip["height"] <= 160
    assert menus["y"] + menus["height"] <= strip["y"] + 2
    assert menus["x"] + menus["width"] <= 360
    page.locator(f".st-key-{key}_export button").first.click()
    expect(button_of(page, "script")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
