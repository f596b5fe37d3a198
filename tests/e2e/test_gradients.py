"""The Gradients page in a real browser."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

SLOW = 60_000
SMALL = "/gradients?v=1&T=20&hidden=8"


def strip(page: Page):
    return page.locator(".cl-strip")


def title(page: Page):
    return page.locator(".cl-memory-title")


def tile(page: Page, number: int):
    return page.locator(".cl-memory-tile").nth(number)


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).first.click()


def fits(page: Page) -> bool:
    return page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def first_of(page: Page, name: str) -> float:
    """The value at t = 0 of a curve, as plotly holds it."""
    return page.evaluate(
        "name => document.querySelector('.st-key-gradients_curves .js-plotly-plot').data.find(t => t.name === name).y[0]",
        name,
    )


def test_opens_on_a_headline_and_the_forget_bias_moves_it(open_page) -> None:
    page = open_page(SMALL)
    expect(title(page)).to_contain_text("h₂₀ remembers x₀", timeout=SLOW)
    expect(strip(page)).to_contain_text("Gradients agree", timeout=SLOW)
    expect(tile(page, 0)).to_contain_text("LSTM")
    expect(tile(page, 0)).to_contain_text("vanishes: halves every")
    before, said = first_of(page, "LSTM h"), tile(page, 0).inner_text()
    others = tile(page, 1).inner_text()
    slider = page.get_by_role("slider", name="forget bias")
    slider.focus()
    for _ in range(6):
        slider.press("ArrowRight")
    expect(tile(page, 0)).not_to_have_text(said, timeout=SLOW)
    expect(strip(page)).to_contain_text("Gradients agree", timeout=SLOW)
    expect(slider).to_have_value("3")
    page.wait_for_function(
        "before => document.querySelector('.st-key-gradients_curves .js-plotly-plot').data[0].y[0] > 10 * before",
        arg=before,
        timeout=SLOW,
    )
    assert tile(page, 1).inner_text() == others
    expect(page).to_have_url(re.compile("fb=3"), timeout=SLOW)


def test_a_click_on_a_curve_and_on_the_map_chooses_a_row(open_page) -> None:
    page = open_page(SMALL, height=1700)
    expect(title(page)).to_contain_text("h₂₀ remembers x₀", timeout=SLOW)
    expect(strip(page)).to_contain_text("Gradients agree", timeout=SLOW)
    point = page.locator(".st-key-gradients_curves .scatterlayer .trace").first.locator(".points path").nth(9)
    box = point.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(title(page)).to_contain_text("h₁₀ remembers x₀", timeout=SLOW)
    expect(page.get_by_role("spinbutton", name="state h after step s")).to_have_value("10")
    area = page.locator(".st-key-gradients_map .nsewdrag").first.bounding_box()
    # Row 15 of 20, column 3.
    x, y = area["x"] + area["width"] * 3.5 / 20, area["y"] + area["height"] * 14.5 / 20
    page.mouse.move(x, y)
    page.mouse.click(x, y)
    expect(title(page)).to_contain_text("h₁₅ remembers x₀", timeout=SLOW)
    press(page, "Back to h₂₀")
    expect(title(page)).to_contain_text("h₂₀ remembers x₀", timeout=SLOW)


def test_a_gradient_that_is_not_finite_is_guarded_with_one_click(open_page) -> None:
    page = open_page("/gradients?v=1&of=preset")
    expect(strip(page)).to_contain_text("Gradients agree", timeout=SLOW)
    press(page, "a root behind a where")
    expect(strip(page)).to_contain_text("Contract broken silently", timeout=SLOW)
    card = page.locator(".cl-card")
    expect(card).to_contain_text("N502")
    expect(card).to_contain_text("now 2 → after the fix 0")
    press(page, "Apply: Guard what goes in as well")
    expect(card).to_have_count(0, timeout=SLOW)
    expect(strip(page)).to_contain_text("Gradients agree", timeout=SLOW)
    expect(strip(page)).to_contain_text("Σc = 10")


def test_training_without_rngs_raises_and_is_mended(open_page) -> None:
    page = open_page("/gradients?v=1&of=training&hidden=5")
    expect(title(page)).to_contain_text("Loss", timeout=SLOW)
    press(page, "train without rngs")
    expect(strip(page)).to_contain_text("JAX raises ValueError", timeout=SLOW)
    expect(page.locator(".cl-card")).to_contain_text("L318")
    press(page, "Apply: Give it rngs")
    expect(page.locator(".cl-card")).to_have_count(0, timeout=SLOW)
    expect(strip(page)).to_contain_text("Contract kept", timeout=SLOW)
    expect(page.get_by_text("deterministic")).to_be_visible()


def test_it_fits_a_phone_in_the_dark(open_page) -> None:
    page = open_page(SMALL, width=360, height=800, scheme="dark")
    expect(title(page)).to_contain_text("h₂₀ remembers x₀", timeout=SLOW)
    assert fits(page)
    assert title(page).bounding_box()["y"] < 800, "the headline is seen without scrolling"
    for view in ("A scan", "One update"):
        page.get_by_role("radio", name=view).or_(page.get_by_role("button", name=view)).first.click()
        expect(title(page)).to_contain_text("Σc" if view == "A scan" else "Loss", timeout=SLOW)
        assert fits(page)


def test_the_program_opens_in_the_doctor(open_page) -> None:
    page = open_page("/gradients?v=1&of=preset&step=roots_unguarded")
    expect(page.locator(".cl-card")).to_contain_text("N502", timeout=SLOW)
    page.get_by_role("link", name="Open in Doctor").click()
    expect(page.locator("body")).to_contain_text("roots_unguarded", timeout=SLOW)
    expect(page.get_by_role("heading", name="Scan on line")).to_be_visible(timeout=SLOW)
    page.get_by_role("button", name="Run Ctrl+Enter").click()
    expect(page.locator("body")).to_contain_text("N502", timeout=SLOW)
