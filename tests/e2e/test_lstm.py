"""The LSTM cell page in a real browser."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

ROOT = Path(__file__).resolve().parents[2]
READY = "[data-testid=stApp][data-test-script-state=notRunning]"
SLOW = 60_000


def strip(page: Page):
    return page.locator(".cl-strip")


def drawing(page: Page):
    return page.locator(".cell-drawing")


def equation(page: Page, slot: str):
    return drawing(page).locator(f'.equation[data-slot="{slot}"] .numbers')


def bars(page: Page, slot: str):
    return drawing(page).locator(f'.box[data-slot="{slot}"] .hit')


def number(page: Page, label: str, value: int) -> None:
    box = page.get_by_role("spinbutton", name=label)
    box.fill(str(value))
    box.press("Enter")


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def kept(page: Page) -> None:
    expect(strip(page)).to_contain_text("Contract kept", timeout=SLOW)


def fits(page: Page) -> bool:
    return page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@contextmanager
def fresh_server() -> Iterator[str]:
    """The app in a process of its own that no page has been asked of yet."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    environment = {k: v for k, v in os.environ.items() if k != "HOST" and not k.startswith("STREAMLIT_")}
    command = [sys.executable, str(ROOT / "deploy" / "run.py"), "--port", str(port)]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 90
        while not _healthy(port):
            assert process.poll() is None, "the app ended"
            assert time.monotonic() < deadline, "the app did not start"
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _healthy(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        connection.request("GET", "/_stcore/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def test_cold_deep_link_has_frame_and_config(browser: Browser) -> None:
    with fresh_server() as url:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page = context.new_page()
        page.goto(f"{url}/lstm")
        page.wait_for_selector(READY, timeout=SLOW)
        kept(page)
        expect(page).to_have_title(re.compile("Carry Lab|LSTM cell"))
        expect(page.get_by_role("link", name="Scan")).to_be_visible()
        expect(page.get_by_role("link", name="LSTM cell")).to_be_visible()
        expect(page.locator(".cl-name")).to_contain_text("Carry Lab")
        assert strip(page).bounding_box()["width"] > 800, "the wide layout of the page config"
        assert page.locator("[data-testid=stException]").count() == 0
        assert page.get_by_role("dialog").count() == 0, "Streamlit says Page not found"
        context.close()


def test_opens_on_the_case_of_the_guide(open_page) -> None:
    page = open_page("/lstm")
    kept(page)
    expect(strip(page)).to_contain_text(
        "carry in (2, 4), (2, 4) → new carry (2, 4), (2, 4), output (2, 4) · all finite"
    )
    expect(bars(page, "f")).to_have_count(4)
    expect(page.get_by_text("cell.ii.kernel")).to_be_visible()
    picture = drawing(page).get_by_role("img")
    expect(picture).to_have_accessible_name("One step of LSTMCell")


def test_another_hidden_size_changes_shapes_and_verdict(open_page) -> None:
    page = open_page("/lstm")
    number(page, "hidden_features", 6)
    expect(strip(page)).to_contain_text("output (2, 6)", timeout=SLOW)
    expect(bars(page, "o")).to_have_count(6)
    expect(page.get_by_text("float32[3,6]").first).to_be_visible()
    number(page, "hidden_features", 1000)
    expect(strip(page)).to_contain_text("Over a limit", timeout=SLOW)
    expect(drawing(page)).to_have_class(re.compile("stale"))
    number(page, "hidden_features", 4)
    kept(page)
    assert "hidden=" not in page.url


def test_a_click_on_a_unit_fills_the_equations_without_the_server(open_page) -> None:
    page = open_page("/lstm")
    kept(page)
    before = equation(page, "i").inner_text()
    page.context.set_offline(True)
    bars(page, "g").nth(2).click()
    expect(equation(page, "i")).not_to_have_text(before)
    expect(drawing(page)).to_have_attribute("data-unit", "2")
    expect(drawing(page).locator("h3")).to_contain_text("unit 2")
    expect(drawing(page).locator('.box[data-slot="f"] .bar.chosen')).to_have_count(1)
    page.context.set_offline(False)


def test_the_chosen_unit_comes_into_the_link_and_the_input(open_page) -> None:
    page = open_page("/lstm")
    bars(page, "g").nth(3).click()
    expect(page.get_by_role("spinbutton", name="unit")).to_have_value("3", timeout=SLOW)
    expect(page).to_have_url(re.compile(r"[?&]u=3"))
    shared = open_page("/lstm?" + page.url.partition("?")[2])
    expect(drawing(shared)).to_have_attribute("data-unit", "3")


def test_units_by_keyboard(open_page) -> None:
    page = open_page("/lstm")
    slider = drawing(page).get_by_role("slider", name="hidden unit")
    slider.focus()
    slider.press("ArrowRight")
    expect(drawing(page)).to_have_attribute("data-unit", "1")
    slider.press("End")
    expect(drawing(page)).to_have_attribute("data-unit", "3")
    expect(slider).to_have_attribute("aria-valuetext", "unit 3 (0 to 3)")


def test_break_it_and_mend_it(open_page) -> None:
    page = open_page("/lstm")
    press(page, "one array for the pair")
    expect(strip(page)).to_contain_text("Contract broken", timeout=SLOW)
    expect(page.locator(".cl-silent")).to_be_visible()
    expect(page.locator(".cl-says")).to_contain_text("no error: it returns float32[2,4]")
    expect(page.locator(".cl-proof")).to_contain_text("because this number moved")
    expect(drawing(page).locator(".box.flagged")).to_have_count(2)
    page.get_by_role("button", name=re.compile("Try it with batch 3")).click()
    expect(page.locator(".cl-says")).to_contain_text("ValueError", timeout=SLOW)
    expect(drawing(page)).to_contain_text("This step does not run")
    page.get_by_role("button", name=re.compile("^Apply")).first.click()
    kept(page)


def test_a_fault_is_marked_at_its_place(open_page) -> None:
    page = open_page("/lstm")
    press(page, "wrong input width")
    expect(strip(page)).to_contain_text("1 error", timeout=SLOW)
    expect(drawing(page).locator('.box.broken[data-slot="x"]')).to_have_count(1)
    expect(page.locator(".cl-mark").filter(has_text="L305").first).to_be_visible()


def test_what_cannot_be_read_is_said_and_the_last_result_stays(open_page) -> None:
    page = open_page("/lstm")
    page.get_by_role("radio", name="paste").or_(page.get_by_text("paste", exact=True)).first.click()
    box = page.get_by_role("textbox", name=re.compile("x, a line an example"))
    expect(box).to_be_visible(timeout=SLOW)
    box.fill("1, two, 3\n4, 5, 6")
    box.press("Control+Enter")
    expect(page.locator(".cl-mark").filter(has_text="Row 1, column 2")).to_be_visible(timeout=SLOW)
    expect(strip(page)).to_contain_text("Stale")
    expect(drawing(page)).to_have_class(re.compile("stale"))
    box.fill("1, 2, 3\n4, 5, 6")
    box.press("Control+Enter")
    kept(page)


def settled_box(page, locator) -> dict:
    """Where it stands once it no longer moves: what is drawn after it can still push a canvas without own nodes."""
    before = None
    for _ in range(40):
        box = locator.bounding_box()
        if box is not None and box == before:
            return box
        before = box
        page.wait_for_timeout(400)
    raise AssertionError("the table never came to rest")


def test_a_cell_of_the_table_is_edited(open_page) -> None:
    page = open_page("/lstm")
    page.get_by_text("table", exact=True).click()
    table = page.locator("[data-testid=stDataFrame]:visible").first
    expect(table).to_be_visible(timeout=SLOW)
    page.wait_for_selector(READY)
    frame = settled_box(page, table)
    page.mouse.click(frame["x"] + frame["width"] - 20, frame["y"] + frame["height"] - 15)
    page.keyboard.press("Enter")
    editor = page.locator("#portal textarea, #portal input").first
    expect(editor).to_be_visible()
    editor.fill("7")
    editor.press("Enter")
    expect(page).to_have_url(re.compile("nums=.*7"), timeout=SLOW)
    expect(strip(page)).to_contain_text("Contract kept")
    number(page, "example", 1)
    expect(drawing(page).locator('.box[data-slot="x"] .tip').nth(2).locator("title")).to_have_text("2: 7", timeout=SLOW)


def test_256_units_are_paged_and_chosen_in_the_overview(open_page) -> None:
    page = open_page("/lstm?v=1&hidden=256", wait=True)
    expect(strip(page)).to_contain_text("output (2, 256)", timeout=SLOW)
    expect(bars(page, "i")).to_have_count(16)
    overview = drawing(page).locator("svg.overview")
    frame = overview.bounding_box()
    overview.click(position={"x": frame["width"] - 1, "y": 20})
    expect(drawing(page)).to_have_attribute("data-unit", "255")
    expect(drawing(page).locator("output")).to_contain_text("units 240 to 255")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("cell", ["LSTMCell", "GRUCell", "SimpleCell"])
def test_nothing_sticks_out_on_a_phone(open_page, scheme: str, cell: str) -> None:
    page = open_page(f"/lstm?v=1&cell={cell}" if cell != "LSTMCell" else "/lstm", width=360, height=780, scheme=scheme)
    kept(page)
    drawing(page).scroll_into_view_if_needed()
    expect(drawing(page)).to_have_attribute("data-theme", scheme)
    assert fits(page)
    frame = drawing(page).bounding_box()
    assert frame["x"] >= 0
    assert frame["x"] + frame["width"] <= 360
    size = drawing(page).locator(".picture .value").first.evaluate("e => e.getBoundingClientRect().height")
    assert size >= 10, "numbers in the drawing can be read"


SILENT = {
    "one array": "bcarry=one+array",
    "batch 1": "binit=one+example",
    "(T, B, F)": "binit=(T,+B,+F)",
    "(h, c)": "bcarry=(h,+c)&carry=normal",
    "bfloat16": "bcarry=bfloat16",
}
#: What sticks out of its card, or of the page: in words, with how far. A table that has to be scrolled counts as well.
STICKING_OUT = """() => {
  const out = [], main = document.querySelector("[data-testid=stMain]"), area = document.querySelector(".st-key-lstm_output");
  if (main.scrollWidth > window.innerWidth) out.push(`page: ${main.scrollWidth} px`);
  const name = (e) => `${e.tagName}.${e.className.baseVal ?? e.className}: ${e.textContent.trim().slice(0, 60)}`;
  for (const e of area.querySelectorAll("*")) {
    if (e.closest("svg svg, defs, [data-testid=stDataFrame], [data-testid=stTooltipContent]")) continue;
    if (e.matches(".cl-scroll") && e.scrollWidth > e.clientWidth + 1) out.push(`scrolls: ${name(e)}`);
    const card = e.parentElement?.closest("[data-testid=stVerticalBlock]"), box = e.getBoundingClientRect();
    if (!card || box.width < 2) continue;
    const more = box.right - card.getBoundingClientRect().right;
    if (more > 1) out.push(`${Math.round(more)} px: ${name(e)}`);
  }
  return out;
}"""


@pytest.mark.parametrize("width", [1400, 360])
@pytest.mark.parametrize("name", SILENT)
def test_nothing_sticks_out_of_its_card_beside_a_silent_break(open_page, name: str, width: int) -> None:
    page = open_page(f"/lstm?v=1&{SILENT[name]}", width=width, height=900)
    expect(page.locator(".cl-says")).to_contain_text("no error: it returns", timeout=SLOW)
    expect(page.get_by_text("cell.ii.kernel").last).to_be_visible(timeout=SLOW)
    assert page.evaluate(STICKING_OUT) == []


def test_on_a_phone_the_result_comes_before_the_inputs(open_page) -> None:
    page = open_page("/lstm", width=360, height=780)
    kept(page)
    inputs = page.get_by_role("spinbutton", name="hidden_features").bounding_box()
    assert drawing(page).bounding_box()["y"] < inputs["y"]
    assert drawing(page).bounding_box()["y"] < 780, "the drawing begins on the first screen"


def test_the_program_is_broken_where_people_break_it(open_page) -> None:
    page = open_page("/lstm", width=1400)
    kept(page)
    code = page.locator("[data-testid=stCode] code")
    expect(code).to_contain_text("    (2, 3), rngs=nnx.Rngs(1)\n)")
    assert code.evaluate("e => getComputedStyle(e).whiteSpace") == "pre", "no line is wrapped to column 0"


def test_dark_has_light_letters_on_dark(open_page) -> None:
    page = open_page("/lstm", scheme="dark")
    kept(page)

    def lightness(expression: str) -> float:
        color = drawing(page).locator(".picture .value").first.evaluate(expression)
        red, green, blue = map(float, re.findall(r"[\d.]+", color)[:3])
        return (red + green + blue) / 3

    assert lightness("e => getComputedStyle(e).fill") > 150
    assert lightness("e => getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor") < 60
