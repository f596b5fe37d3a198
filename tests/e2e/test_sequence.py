"""The Sequence page in a real browser."""

from __future__ import annotations

import math
import re

import pytest
from playwright.sync_api import Locator, Page, expect

SLOW = 60_000
#: Where the point of a unit at a position stands on the page, by the chart's own axes.
PLACE = """(chart, wanted) => {
  const { xaxis, yaxis2 } = chart._fullLayout;
  for (const trace of chart.data) {
    const at = trace.yaxis === "y2" ? (trace.customdata ?? []).findIndex((p) => p && p[0] === wanted[0] && p[1] === wanted[1]) : -1;
    if (at >= 0) return [xaxis._offset + xaxis.d2p(trace.x[at]), yaxis2._offset + yaxis2.d2p(trace.y[at])];
  }
}"""


def strip(page: Page) -> Locator:
    return page.locator(".cl-strip")


def kept(page: Page) -> None:
    expect(strip(page)).to_contain_text("Contract kept", timeout=SLOW)


def cell(page: Page, row: int, column: int) -> Locator:
    return page.locator(f'.sequence-grid [data-row="{row}"][data-column="{column}"]')


def equations(page: Page) -> Locator:
    return page.locator(".st-key-sequence_equations")


def chart(page: Page) -> Locator:
    drawn = page.locator(".st-key-sequence_chart .js-plotly-plot")
    expect(drawn.locator(".scatterlayer").first).to_be_attached(timeout=SLOW)
    return drawn


def click_point(page: Page, t: int, unit: int) -> None:
    drawn = chart(page)
    drawn.scroll_into_view_if_needed()
    x, y = drawn.evaluate(PLACE, [t, unit])
    box = drawn.bounding_box()
    page.mouse.move(box["x"] + x, box["y"] + y)
    expect(drawn.locator(".hoverlayer .hovertext").first).to_be_visible()
    page.mouse.click(box["x"] + x, box["y"] + y)


def value_of(text: str) -> float:
    """A side of an equation, worked out from what is written."""
    code = text.replace("·", "*").replace("−", "-").replace("σ", "sigma")
    return float(eval(code, {"tanh": math.tanh, "sigma": lambda z: 1 / (1 + math.exp(-z))}))


def test_a_click_on_a_point_gives_equations_that_recompute(open_page) -> None:
    page = open_page("/sequence")
    kept(page)
    click_point(page, 3, 2)
    expect(equations(page)).to_contain_text("makes carry 3", timeout=SLOW)
    expect(page).to_have_url(re.compile(r"[?&]t=3.*u=2|u=2.*t=3"))
    expect(page.get_by_role("spinbutton", name="unit (0 to 3)")).to_have_value("2")
    for line in equations(page).locator(".cl-numbers").all_inner_texts():
        sides = [value_of(side) for side in line.split("=") if side.strip()]
        assert sides == pytest.approx([sides[-1]] * len(sides), rel=2e-5, abs=2e-6)
    expect(equations(page).locator(".cl-agreements .cl-ok")).to_have_count(2)
    shared = open_page("/sequence?" + page.url.partition("?")[2])
    expect(equations(shared)).to_contain_text("makes carry 3", timeout=SLOW)


def test_a_click_turns_a_step_into_padding_and_keys_do_too(open_page) -> None:
    page = open_page("/sequence")
    kept(page)
    cell(page, 0, 2).click()
    expect(page).to_have_url(re.compile(r"how=mask&mask=11011111"), timeout=SLOW)
    expect(cell(page, 0, 2)).to_have_class(re.compile("padding"))
    kept(page)
    cell(page, 1, -1).click()
    expect(page.get_by_role("spinbutton", name="example (0 to 2)")).to_have_value("1", timeout=SLOW)
    cell(page, 0, 2).focus()
    cell(page, 0, 2).press("ArrowRight")
    expect(cell(page, 0, 3)).to_be_focused()
    cell(page, 0, 3).press(" ")
    expect(page).to_have_url(re.compile(r"mask=11001111"), timeout=SLOW)
    expect(cell(page, 0, 3)).to_be_focused()


def test_wrong_axis_order_is_found_shown_and_mended(open_page) -> None:
    page = open_page("/sequence")
    kept(page)
    page.get_by_role("button", name="wrong axis order").click()
    expect(page.locator(".cl-card").first).to_contain_text("L309", timeout=SLOW)
    expect(strip(page)).to_contain_text("JAX: no error")
    expect(page.locator(".sequence-grid.misread .down")).to_be_attached()
    page.get_by_role("button", name=re.compile("^Apply: Set time_major")).click()
    kept(page)
    expect(page.locator(".sequence-grid.misread")).to_have_count(0)


def test_a_phone_scrolls_the_grid_and_never_the_page(open_page) -> None:
    page = open_page("/sequence?v=1&T=24", width=360)
    kept(page)
    chart(page)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    inside = page.locator(".sequence-grid .scroll")
    assert inside.evaluate("box => box.scrollWidth > box.clientWidth")
