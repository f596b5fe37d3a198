"""A teacher makes a link, a class opens it: hidden, locked, and large enough for a projector."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

type OpenPage = Callable[..., Page]


#: Every page, in a state that shows much of it.
PAGES = (
    "/", "/lstm", "/sequence", "/gradients", "/doctor?e=guide_scan", "/catalogue", "/catalogue?c=S104",
    "/lessons", "/lessons?n=3", "/?lesson=2", "/challenges", "/challenges?c=1",
)  # fmt: skip
SMALLEST = 20

#: Every text in code, in a table of numbers or in an input, smaller than so many pixels on the screen: (size, its text).
#: The zoom of the page counts: a rectangle is measured on the screen, a font size is not.
SMALL = """(smallest) => {
  const found = [];
  const seen = (element) => {
    for (const inner of element.querySelectorAll('*')) {
      if (inner.shadowRoot) seen(inner.shadowRoot);
      if (!inner.matches('code, pre, code *, input, textarea, .cl-value, .cl-types, td, .cm-line')) continue;
      const text = (inner.value ?? [...inner.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data).join('')).trim();
      const box = inner.getBoundingClientRect();
      if (!text || !box.width || !box.height || !/[\\d\\w]/.test(text) || !inner.checkVisibility()) continue;
      if (inner.closest('.cl-hidden, [hidden], [aria-hidden=true]')) continue;
      const size = parseFloat(getComputedStyle(inner).fontSize) * inner.currentCSSZoom;
      if (size < smallest - 0.1) found.push([Math.round(size * 10) / 10, `${inner.tagName}.${inner.className}`, text.slice(0, 40)]);
    }
  };
  seen(document.querySelector('.stMainBlockContainer'));
  return found;
}"""
#: By how many pixels the page is wider than the window.
SIDEWAYS = """() => {
  const of = (e) => e.scrollWidth - e.clientWidth;
  return Math.max(of(document.documentElement), of(document.querySelector('[data-testid=stMain]')));
}"""


def test_the_link_that_a_teacher_makes_opens_the_very_state(open_page: OpenPage, wait_ready: Callable[[Page], None]):
    teacher = open_page("/lstm")
    hidden = teacher.get_by_role("spinbutton", name="hidden_features")
    hidden.fill("5")
    hidden.press("Enter")
    teacher.wait_for_url(re.compile("hidden=5"))
    teacher.locator(".st-key-class_panel button").click()
    for key, option in (
        ("class_hide", "Input x (whole panel)"),
        ("class_hide", "batch"),
        ("class_lock", "parameter seed"),
    ):
        box = teacher.locator(f".st-key-{key} input")
        box.fill(option)
        teacher.get_by_role("option", name=option, exact=True).click()
        teacher.keyboard.press("Escape")
    teacher.locator(".st-key-class_present label").click()
    link = teacher.locator("code", has_text="present=1")
    expect(link).to_contain_text("lock=lstm_seed")
    address = urlsplit(link.inner_text().strip())
    assert address.path == "/lstm"
    # The teacher's own page stays as it is.
    expect(hidden).to_be_visible()

    pupil = open_page(f"{address.path}?{address.query}", width=1366, height=768)
    assert pupil.get_by_role("spinbutton", name="hidden_features").input_value() == "5"
    expect(pupil.locator(".st-key-lstm_batch")).to_be_hidden()
    expect(pupil.locator(".st-key-lstm_input_panel")).to_be_hidden()
    expect(pupil.get_by_role("heading", name="Input x")).to_be_hidden()
    expect(pupil.get_by_role("heading", name="Carry", exact=True)).to_be_visible()
    expect(pupil.get_by_role("spinbutton", name="parameter seed")).to_be_disabled()
    expect(pupil.get_by_role("spinbutton", name="hidden_features")).to_be_enabled()
    expect(pupil.locator("[data-testid=stSidebar]")).to_be_hidden()
    # What is hidden keeps its value, also through another page.
    assert "batch" not in urlsplit(pupil.url).query.replace("lstm_batch", "")
    pupil.locator(".st-key-class_leave button").click()
    expect(pupil.locator("[data-testid=stSidebar]")).to_be_visible()
    pupil.get_by_role("link", name="Scan", exact=True).click()
    pupil.wait_for_url(lambda url: urlsplit(url).path == "/")
    wait_ready(pupil)
    pupil.get_by_role("link", name="LSTM cell", exact=True).click()
    pupil.wait_for_url(re.compile("/lstm"))
    wait_ready(pupil)
    assert pupil.get_by_role("spinbutton", name="hidden_features").input_value() == "5"
    expect(pupil.locator(".st-key-lstm_batch")).to_be_hidden()
    expect(pupil.get_by_role("spinbutton", name="parameter seed")).to_be_disabled()


def test_a_locked_script_can_be_read_and_run_and_not_typed_into(open_page: OpenPage):
    page = open_page("/doctor?e=rain_in_whole_litres&lock=doctor_text")
    line = page.locator(".cm-line", has_text="scan").first
    expect(line).to_be_visible()
    before = page.locator(".cm-content").inner_text()
    line.click()
    page.keyboard.type("broken")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".cm-content")).to_have_attribute("aria-readonly", "true")
    assert page.locator(".cm-content").inner_text() == before
    # A fix is a button, and may.
    page.locator("[class*=st-key-doctor_card_] button", has_text="Apply").first.click()
    expect(page.locator(".cm-content")).not_to_have_text(before)


@pytest.mark.parametrize("width", [1366, 1920])
@pytest.mark.parametrize("path", PAGES)
def test_on_a_projector_code_and_numbers_are_large_and_nothing_scrolls_sideways(
    open_page: OpenPage, path: str, width: int
):
    page = open_page(f"{path}{'&' if '?' in path else '?'}present=1", width=width, height=768 if width < 1900 else 1080)
    page.wait_for_timeout(600)
    assert page.evaluate(SIDEWAYS) <= 0
    assert page.evaluate(SMALL, SMALLEST) == []
    page.locator(".st-key-class_leave button").click()
    expect(page.locator("[data-testid=stSidebar]")).to_be_visible()
    assert "present" not in page.url
