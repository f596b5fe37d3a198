"""Journeys on the Scan page in a real browser."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, WebSocket, expect

ROOT = Path(__file__).resolve().parents[2]
#: The README's pictures: every run makes them; they are put in their place only when asked, so that a test run changes no file.
PICTURES = ROOT / "pages" / "assets" if os.environ.get("UPDATE_SCREENSHOTS") else ROOT / "test-results" / "e2e"

CHART = ".st-key-scan_trajectory .js-plotly-plot"


def strip(page: Page):
    return page.locator(".st-key-verdict .cl-strip")


def wait_plotted(page: Page, expected: list[float]) -> None:
    page.wait_for_function(
        """([selector, expected]) => {
            const chart = document.querySelector(selector);
            return chart && chart.data && JSON.stringify(Array.from(chart.data[0].y)) === JSON.stringify(expected);
        }""",
        arg=[CHART, expected],
    )


def sideways(page: Page) -> tuple[int, int]:
    return tuple(
        page.evaluate(
            "() => { const m = document.querySelector('[data-testid=stMain]'); return [m.scrollWidth, m.clientWidth]; }"
        )
    )


def edit_cell(page: Page, column: int, row: int, text: str) -> None:
    """Type into a cell of the table; column 0 is the name of the row."""
    canvas = page.locator(".st-key-scan_table canvas").first
    canvas.scroll_into_view_if_needed()
    cell = page.get_by_test_id(f"glide-cell-{column}-{row}").first
    expect(cell).to_be_attached()
    box = canvas.bounding_box()
    # The accessible table inside the canvas says what is where, but not where on the screen: columns share the width.
    columns = page.locator(".st-key-scan_table canvas table thead th").count()
    first = 60.0
    width = (box["width"] - first) / (columns - 1)
    height = box["height"] / 2
    # From another cell: a click on the one that is selected already opens it.
    page.mouse.click(box["x"] + first / 2, box["y"] + height * (row + 1.5))
    page.mouse.click(box["x"] + first + width * (column - 0.5), box["y"] + height * (row + 1.5))
    page.keyboard.press("Enter")
    editor = page.locator("#portal textarea, #portal input").first
    expect(editor).to_be_visible()
    editor.fill(text)
    editor.press("Enter")


# --- main job -------------------------------------------------------------------------------------------------------


def test_opens_on_a_run_scan_with_its_plot(open_page):
    page = open_page()
    expect(strip(page)).to_contain_text("Contract kept")
    expect(strip(page)).to_contain_text("final carry 6 · ys [1, 3, 6] · equals the loop")
    wait_plotted(page, [0, 1, 3, 6])
    expect(page.get_by_text("A scan runs one step over a sequence")).to_be_visible()
    expect(page.get_by_role("button", name="Play")).to_be_visible()


def test_editing_a_number_moves_plot_verdict_and_address(open_page):
    page = open_page()
    wait_plotted(page, [0, 1, 3, 6])
    edit_cell(page, 3, 0, "30")
    expect(strip(page)).to_contain_text("final carry 33 · ys [1, 3, 33]")
    wait_plotted(page, [0, 1, 3, 33])
    edit_cell(page, 1, 0, "nope")
    expect(strip(page)).to_contain_text("Stale")
    expect(page.get_by_text("At t = 0: “nope” is no number.")).to_be_visible()
    wait_plotted(page, [0, 1, 3, 33])
    edit_cell(page, 1, 0, "-1")
    expect(strip(page)).to_contain_text("final carry 31")
    wait_plotted(page, [0, -1, 1, 31])
    page.wait_for_url(re.compile(r"v=1.*x=-1"))


def test_a_link_carries_the_state_to_another_session(open_page):
    first = open_page()
    first.get_by_label("init", exact=True).fill("5")
    first.get_by_label("init", exact=True).press("Enter")
    expect(strip(first)).to_contain_text("final carry 11")
    first.wait_for_url(re.compile("init=5"))
    second = open_page(first.url.removeprefix(re.match(r"https?://[^/]+", first.url).group()))
    expect(strip(second)).to_contain_text("final carry 11")
    expect(second.get_by_label("init", exact=True)).to_have_value("5")


def test_break_it_then_apply_then_kept(open_page):
    page = open_page()
    page.get_by_role("button", name="int init").click()
    expect(strip(page)).to_contain_text("Contract broken: 1 error")
    card = page.locator(".st-key-violations .cl-card").first
    expect(card).to_contain_text("S104")
    expect(page.locator(".st-key-scan_step_panel .cl-mark")).to_contain_text("S104")
    expect(page.locator(".st-key-scan_init_panel .cl-mark")).to_contain_text("S104 init set int32[] here")
    page.get_by_role("button", name="Apply: Make init's carry float32").click()
    expect(strip(page)).to_contain_text("Contract kept")
    expect(strip(page)).to_contain_text("final carry 6")
    expect(page.locator(".st-key-violations .cl-card.cl-error")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(strip(page)).to_contain_text("Contract broken: 1 error")


def test_a_silent_fault_in_two_clicks(open_page):
    page = open_page()
    page.get_by_role("button", name="batch-major").click()
    card = page.locator(".st-key-violations .cl-card").first
    expect(card).to_contain_text("JAX is silent")
    expect(card).to_contain_text("JAX: no error. Carry Lab: wrong, because this number moved.")
    expect(card).to_be_in_viewport()
    page.get_by_role("button", name="Put it back").click()
    expect(strip(page)).to_contain_text("final carry 6")


def test_a_paste_that_cannot_be_read_keeps_everything_else(open_page):
    page = open_page()
    page.get_by_label("init", exact=True).fill("2")
    page.get_by_label("init", exact=True).press("Enter")
    expect(strip(page)).to_contain_text("final carry 8")
    page.get_by_role("combobox", name=re.compile("from")).click()
    page.get_by_role("option", name="text").click()
    area = page.get_by_label("xs", exact=True)
    area.fill("1, 2\n3, 🙂")
    area.press("Control+Enter")
    expect(page.get_by_text("Row 2, column 2, character 4: “🙂” is no number.")).to_be_visible()
    expect(strip(page)).to_contain_text("Stale")
    expect(page.get_by_label("init", exact=True)).to_have_value("2")
    wait_plotted(page, [2, 3, 5, 8])
    area.fill("1, 2\n3, 4")
    area.press("Control+Enter")
    expect(strip(page)).not_to_contain_text("Stale")


def test_a_five_megabyte_paste_gets_an_inline_message(open_page):
    page = open_page()
    page.get_by_role("combobox", name=re.compile("from")).click()
    page.get_by_role("option", name="text").click()
    area = page.get_by_label("xs", exact=True)
    area.fill("1," * 2_600_000)
    area.press("Control+Enter")
    expect(page.get_by_text("The text has 5200000 characters, at most 1000000 are read.")).to_be_visible(timeout=30_000)
    wait_plotted(page, [0, 1, 3, 6])


# --- player ---------------------------------------------------------------------------------------------------------


def test_play_moves_t_with_no_rerun(open_page):
    page = open_page("/", reduced_motion=False)
    slider = page.get_by_role("slider", name="t", exact=True)
    expect(slider).to_have_value("0")
    expect(strip(page)).to_contain_text("equals the loop")
    sent: list[str | bytes] = []

    def watch(socket: WebSocket) -> None:
        socket.on("framesent", lambda frame: sent.append(frame))

    page.on("websocket", watch)
    page.reload()
    expect(strip(page)).to_contain_text("equals the loop")
    expect(slider).to_be_visible()
    page.wait_for_timeout(500)  # what the page sends by itself after loading
    before = len(sent)
    assert before > 0, "the socket is not seen, so silence would prove nothing"
    page.get_by_role("button", name="Play").click()
    expect(slider).to_have_value("3", timeout=15_000)
    page.get_by_role("button", name="Step back").click()
    expect(slider).to_have_value("2")
    expect(page.locator(".st-key-scan_player [aria-live=polite]").last).to_contain_text(
        "step 1: c₁ = 1, x₁ = 2 → c₂ = 3, y₁ = 3"
    )
    assert len(sent) == before


# --- look -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_scrolls_sideways_on_a_phone(open_page, scheme):
    page = open_page(width=360, height=740, scheme=scheme)
    expect(strip(page)).to_contain_text("Contract kept")
    scroll, client = sideways(page)
    assert scroll <= client
    page.get_by_role("button", name="batch-major").click()
    expect(page.locator(".st-key-violations .cl-card").first).to_contain_text("S115")
    scroll, client = sideways(page)
    assert scroll <= client


@pytest.mark.parametrize(("scheme", "background"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(15, 20, 26)")])
def test_light_and_dark_follow_the_system(open_page, scheme, background):
    page = open_page(scheme=scheme, width=1400)
    expect(strip(page)).to_contain_text("Contract kept")
    expect(page.locator(".stApp")).to_have_css("background-color", background)
    assert contrast(page, ".cl-strip .cl-words") >= 4.5
    page.get_by_role("button", name="let the carry grow").click()
    expect(strip(page)).to_contain_text("Contract broken")
    for selector in (".cl-strip .cl-words", ".cl-card .cl-code", ".cl-card .cl-why", ".cl-diff del", ".cl-diff ins"):
        assert contrast(page, selector) >= 4.5, selector


def contrast(page: Page, selector: str) -> float:
    """WCAG contrast of a text on the nearest background that is not transparent."""
    return page.locator(selector).first.evaluate(
        """node => {
            const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
            const rgb = colour => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour;
                canvas.fillRect(0, 0, 1, 1); return Array.from(canvas.getImageData(0, 0, 1, 1).data); };
            const light = c => c.slice(0, 3).map(v => v / 255)
                .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
                .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
            let back = node;
            while (back && rgb(getComputedStyle(back).backgroundColor)[3] < 255) back = back.parentElement;
            const pair = [light(rgb(getComputedStyle(node).color)), light(rgb(getComputedStyle(back).backgroundColor))];
            return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
        }"""
    )


def test_the_verdict_stays_in_view(open_page):
    page = open_page(height=600)
    expect(strip(page)).to_be_in_viewport()
    page.get_by_text("Final carry and ys").scroll_into_view_if_needed()
    expect(page.get_by_text("Final carry and ys")).to_be_in_viewport()
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop") > 300
    expect(strip(page)).to_be_in_viewport()
    assert strip(page).bounding_box()["y"] < 40


@pytest.mark.parametrize(
    ("path", "name", "said"), [("/", "scan.png", "equals the loop"), ("/lstm", "lstm.png", "LSTMCell")]
)
def test_pictures_for_the_readme(open_page, path, name, said):
    page = open_page(path, width=1400, height=900)
    expect(page.locator(".st-key-verdict")).to_contain_text(said)
    page.wait_for_timeout(1000)  # charts fade in
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / name)
    assert (PICTURES / name).stat().st_size > 30_000
