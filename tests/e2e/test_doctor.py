"""Journeys on the Doctor page in a real browser, with real workers."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from pages.widgets.editor import editor_available

if editor_available() and not os.environ.get("CI"):  # in CI they fail: a missing bundle is a missing step
    pytest.skip(f"the code editor is not here: {editor_available()}", allow_module_level=True)

ROOT = Path(__file__).resolve().parents[2]
#: As in test_scan.py: every run makes the README's picture; it is put in its place only when asked.
PICTURES = ROOT / "pages" / "assets" if os.environ.get("UPDATE_SCREENSHOTS") else ROOT / "test-results" / "e2e"
#: What a worker may take on a machine that does other things, too.
SLOW = 30_000
BROKEN_SUM = """import jax
import jax.numpy as jnp

def add(total, x):
    total = total + x
    return total, total

final, ys = jax.lax.scan(add, jnp.int32(0), jnp.array([0.5, 1.5]))
print(final)
"""
FOREVER = "n = 0\nwhile True:\n    n = n + 1\n"


def strip(page: Page):
    return page.locator(".st-key-verdict .cl-strip")


def content(page: Page):
    return page.locator(".st-key-doctor_code .cm-content")


def paste(page: Page, text: str) -> None:
    content(page).click()
    page.keyboard.insert_text(text)


def sideways(page: Page) -> tuple[int, int]:
    return tuple(
        page.evaluate(
            "() => { const m = document.querySelector('[data-testid=stMain]'); return [m.scrollWidth, m.clientWidth]; }"
        )
    )


def test_paste_squiggle_run_apply_undo(open_page):
    page = open_page("/doctor")
    expect(strip(page)).to_contain_text("Not checked yet")
    paste(page, BROKEN_SUM)
    # While typing rests: shapes and what raises, nothing was run.
    expect(strip(page)).to_contain_text("from the shapes alone", timeout=SLOW)
    expect(page.locator(".st-key-doctor_code")).to_contain_text("S104")
    expect(page.locator(".st-key-doctor_code")).to_contain_text("x float32[]")
    expect(page.locator(".st-key-violations .cl-card").first).to_contain_text("line 6")
    page.keyboard.press("Control+Enter")
    expect(strip(page)).to_contain_text("ran in a worker", timeout=SLOW)
    expect(strip(page)).to_contain_text("Contract broken: 1 error")
    apply = page.get_by_role("button", name=re.compile("^Apply: .*float32"))
    apply.click(timeout=SLOW)
    expect(strip(page)).to_contain_text("Contract kept", timeout=SLOW)
    expect(strip(page)).to_contain_text("final carry 2")
    expect(content(page)).to_contain_text("jnp.float32(0)")
    expect(page.locator(".st-key-doctor_trajectory .js-plotly-plot")).to_be_visible(timeout=SLOW)
    page.get_by_role("button", name="Undo").click()
    expect(strip(page)).to_contain_text("Contract broken: 1 error", timeout=SLOW)
    expect(content(page)).to_contain_text("jnp.int32(0)")
    page.wait_for_url(re.compile(r"v=1.*s="))


def test_a_link_is_not_run_until_somebody_says_so(open_page):
    first = open_page("/doctor")
    paste(first, "print('hello from ' + 'a link')\n")
    first.wait_for_url(re.compile("s="), timeout=SLOW)
    second = open_page(first.url.removeprefix(re.match(r"https?://[^/]+", first.url).group()))
    expect(strip(second)).to_contain_text("nothing was run yet", timeout=SLOW)
    expect(second.get_by_text("hello from a link")).to_have_count(0)
    second.get_by_role("button", name="Run", exact=False).first.click()
    expect(second.get_by_text("hello from a link")).to_be_visible(timeout=SLOW)


def test_a_step_from_a_link_is_run_and_mended_in_its_fields(open_page):
    page = open_page("/doctor?v=1&mode=step&init=jnp.int32(0)")
    # At once, while its shapes may still be worked out: no field may lose what the link said.
    page.locator(".st-key-doctor_run button").click()
    expect(strip(page)).to_contain_text("ran in a worker", timeout=SLOW)
    init = page.get_by_label("init", exact=True)
    expect(init).to_have_value("jnp.int32(0)")
    expect(page.locator(".st-key-doctor_left .stHtml .cl-mark")).to_contain_text("S104")
    page.get_by_role("button", name=re.compile("^Apply: .*float32")).click(timeout=SLOW)
    expect(strip(page)).to_contain_text("Contract kept", timeout=SLOW)
    expect(init).to_have_value("jnp.float32(0)")


def test_the_editor_is_left_by_keyboard(open_page):
    page = open_page("/doctor")
    content(page).click()
    inside = "() => !!document.activeElement.closest?.('.cm-editor') || !!document.activeElement.shadowRoot?.activeElement?.closest('.cm-editor')"
    assert page.evaluate(inside)
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    page.wait_for_function(f"() => !({inside})()")


def test_a_loop_without_end_is_stopped_and_nobody_else_waits(open_page):
    page, other = open_page("/doctor"), open_page("/doctor")
    paste(page, FOREVER)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("button", name="Cancel")).to_be_visible(timeout=SLOW)
    paste(other, "import jax.numpy as jnp\nprint(jnp.arange(3).sum() + 40)\n")
    other.keyboard.press("Control+Enter")
    expect(other.get_by_text("43", exact=True)).to_be_visible(timeout=SLOW)
    expect(page.locator(".st-key-violations .cl-card").first).to_contain_text("X602", timeout=SLOW)
    expect(content(page)).to_contain_text("while True:")


def test_cancel_ends_a_run(open_page):
    page = open_page("/doctor")
    paste(page, FOREVER)
    page.keyboard.press("Control+Enter")
    page.get_by_role("button", name="Cancel").click(timeout=SLOW)
    expect(strip(page)).to_contain_text("Cancelled", timeout=SLOW)
    expect(content(page)).to_contain_text("while True:")


def test_a_broken_one_in_one_click(open_page):
    page = open_page("/doctor", scheme="dark")
    page.locator(".st-key-doctor_try_rain_in_whole_litres button").click()
    expect(strip(page)).to_contain_text("Contract broken: 1 error", timeout=SLOW)
    expect(page.locator(".st-key-violations")).to_contain_text("S104")
    page.get_by_role("button", name=re.compile("^Apply: .*float32")).click(timeout=SLOW)
    expect(strip(page)).to_contain_text("Contract kept", timeout=SLOW)


def test_narrow_screens_scroll_down_only(open_page):
    page = open_page("/doctor?v=1&e=one_array_for_the_pair", width=360, height=780)
    expect(strip(page)).to_contain_text("1 error, 1 warning", timeout=SLOW)
    wide, seen = sideways(page)
    assert wide <= seen
    # What is wrong comes after the code and before the pictures.
    tops = page.evaluate(
        """() => ['doctor_left', 'violations', 'doctor_pictures'].map(
            (key) => document.querySelector('.st-key-' + key).getBoundingClientRect().top)"""
    )
    assert tops == sorted(tops)


def test_a_verdict_is_dimmed_at_the_first_key_that_makes_it_old(open_page):
    page = open_page("/doctor")
    paste(page, BROKEN_SUM.replace("int32(0)", "float32(0)"))
    page.keyboard.press("Control+Enter")
    expect(strip(page)).to_contain_text("Contract kept", timeout=SLOW)
    expect(strip(page)).to_have_css("opacity", "1")
    page.keyboard.type("#")  # far shorter than the pause after which it is checked
    expect(strip(page)).to_have_css("opacity", "0.55")
    expect(strip(page)).to_contain_text("Shapes agree", timeout=SLOW)
    expect(strip(page)).to_have_css("opacity", "1")


def test_picture_for_the_readme(open_page):
    page = open_page("/doctor?e=one_array_for_the_pair", width=1400, height=900)
    expect(strip(page)).to_contain_text("Contract broken: 1 error, 1 warning", timeout=SLOW)
    expect(page.get_by_role("button", name=re.compile("^Apply: ")).first).to_be_visible(timeout=SLOW)
    page.wait_for_timeout(1000)  # what is drawn fades in
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / "doctor.png")
    assert (PICTURES / "doctor.png").stat().st_size > 30_000
