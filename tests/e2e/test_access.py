"""Access: axe-core on every page in light and dark, keyboard alone, narrow screens, zoom, spacing, projector, pictures.

axe-core comes with the package `axe-playwright-python`: no request leaves the machine. What is measured in the browser
stands in tests/support/access.js. A page is opened once and asked everything that can be asked of it.

Longer than 500 lines because one table of pages and states serves every question.
"""

from __future__ import annotations

import ast
import os
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Locator, Page, expect

from pages.widgets.editor import editor_available

ROOT = Path(__file__).resolve().parents[2]
ASKED = (ROOT / "tests" / "support" / "access.js").read_text(encoding="utf-8")
SLOW = 60_000
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], "resultTypes": ["violations"]}
READY = "[data-testid=stApp][data-test-script-state=notRunning]"
PHONE, DESKTOP = {"width": 360, "height": 780}, {"width": 1280, "height": 900}
#: A window of 1280 x 900 at 200 %.
ZOOMED = {"width": 640, "height": 450}
PROJECTOR = {"width": 1280, "height": 720}
#: Pixels of code and numbers on a projector.
SMALLEST = 20
#: Contrast of what shows the focus (WCAG 1.4.11).
RING = 3
NO_EDITOR = bool(editor_available()) and not os.environ.get("CI")


@dataclass(frozen=True)
class Theirs:
    """What Streamlit itself renders against a rule: the rule, the elements by Streamlit's own test ids, and why."""

    rule: str
    selector: str
    why: str


STREAMLITS = (
    Theirs(
        "list",
        '[data-testid="stSidebarNavItems"]',
        "st.navigation with groups puts a div for each group between the ul and its items",
    ),
    Theirs(
        "listitem",
        '[data-testid="stSidebarNavItems"] > div > li',
        "the same div: the items of a group are not children of the ul",
    ),
)


@dataclass(frozen=True)
class Visit:
    """A page in one state: its address, what is pressed there, what the strip says then, its plots by key."""

    path: str
    press: str = ""
    says: str = ""
    plots: tuple[str, ...] = ()


#: Each page, green and broken, with cards, fixes and folds open.
VISITS = {
    "scan": Visit("/", says="Contract kept", plots=("scan_trajectory",)),
    "scan-broken": Visit("/?v=1&step=grows", says="Contract broken"),
    "lstm": Visit("/lstm", says="Contract kept"),
    "lstm-broken": Visit("/lstm", press=".st-key-lstm_break .stButton button", says="Contract broken"),
    "sequence": Visit("/sequence", says="Contract kept", plots=("sequence_chart",)),
    "sequence-broken": Visit(
        "/sequence", press=".st-key-sequence_break .stButton button", says="silent", plots=("sequence_chart",)
    ),
    "gradients": Visit("/gradients", plots=("gradients_curves", "gradients_map")),
    "gradients-of-a-preset": Visit("/gradients?v=1&of=preset", plots=("gradients_bars",)),
    "gradients-of-a-preset-broken": Visit(
        "/gradients?v=1&of=preset",
        press=".st-key-gradients_break .stButton button",
        says="broken",
        plots=("gradients_bars",),
    ),
    "gradients-of-training": Visit("/gradients?v=1&of=training", plots=("gradients_loss",)),
    "doctor": Visit("/doctor"),
    "doctor-kept": Visit("/doctor?e=guide_scan", says="ran in a worker", plots=("doctor_trajectory",)),
    "doctor-broken": Visit("/doctor?v=1&e=one_array_for_the_pair", says="Contract broken"),
    "catalogue": Visit("/catalogue"),
    "catalogue-entry": Visit("/catalogue?v=1&code=S104"),
    "lessons": Visit("/lessons"),
    "lesson-text": Visit("/lessons?n=3"),
    "lesson-rail": Visit("/?lesson=4", plots=("scan_trajectory",)),
    "challenges": Visit("/challenges"),
    "challenge-predict": Visit("/challenges?c=1"),
    "challenge-fix": Visit("/challenges?c=4"),
    "challenge-spot": Visit("/challenges?c=7"),
    "status": Visit("/status"),
}
#: Each page once and each view and kind of it; cards are in tests/e2e/test_classroom.py too.
PROJECTED = tuple(
    name for name in VISITS if name not in {"scan-broken", "lstm-broken", "sequence", "doctor", "catalogue"}
)
#: Those with a kind of control that no other one has: there every stop of Tab is looked at.
RINGED = (
    "scan-broken",
    "lstm-broken",
    "sequence",
    "gradients-of-training",
    "doctor-broken",
    "lesson-rail",
    "challenge-predict",
)
#: page -> the button of what opens over it, at its widest.
POPOVERS = {
    "scan": ".st-key-scan_export button",
    "doctor-broken": ".st-key-doctor_export button",
    "doctor": ".st-key-doctor_open button",
}
#: Of a plot: its words, and whether the next fold after it says "as a table" and holds a table with rows.
PLOTS = """() => [...document.querySelectorAll('[data-testid="stPlotlyChart"]')].map((plot) => {
    const after = [...document.querySelectorAll('[data-testid="stExpander"] details')].find(
        (fold) => plot.compareDocumentPosition(fold) & Node.DOCUMENT_POSITION_FOLLOWING);
    const box = plot.closest('[class*="st-key-"]');
    return {
        key: [...box.classList].find((name) => name.startsWith('st-key-')).slice(7),
        role: plot.getAttribute('role'), words: plot.getAttribute('aria-label') ?? '',
        fold: after?.querySelector('summary').innerText ?? '',
        rows: Number(
            after?.querySelector('[data-testid="stDataFrame"] [aria-rowcount]')?.getAttribute('aria-rowcount') ?? 0),
    };
})"""
#: Pictures of ours that nobody is told about.
UNTOLD = """() => {
    const all = function* (root) {
        for (const e of root.querySelectorAll('*')) { yield e; if (e.shadowRoot) yield* all(e.shadowRoot); }
    };
    const words = (e) => (e.getAttribute('aria-label') ?? '') + ['aria-labelledby', 'aria-describedby'].flatMap(
        (name) => (e.getAttribute(name) ?? '').split(' ')
    ).map((id) => id && e.getRootNode().getElementById(id)?.textContent).join(' ').trim();
    return [...all(document.querySelector('[data-testid="stMain"]'))].filter((e) => e.matches('svg, img, canvas')
        && !e.closest('[data-testid="stPlotlyChart"], [data-testid="stDataFrame"], [aria-hidden="true"]')
        && e.getBoundingClientRect().width > 80 && e.getBoundingClientRect().height > 50
        && !(e.getAttribute('role') === 'img' && words(e).length > 20)
    ).map((e) => e.outerHTML.slice(0, 200));
}"""
CHROME = ", ".join(
    f"[data-testid={name}]" for name in ("stSidebar", "stHeader", "stToolbar", "stDecoration", "stStatusWidget")
)


def rested(page: Page, still: int = 150) -> None:
    """Nothing runs, and what follows a run (a plot, a second look) is there too."""
    for _ in range(2):
        page.wait_for_selector(READY, timeout=SLOW)
        page.wait_for_function(
            "() => !document.querySelector('[data-testid=stSkeleton], [data-stale=true]')", timeout=SLOW
        )
        page.wait_for_timeout(still)


def asked(page: Page, name: str, *arguments: Any) -> Any:
    """The answer of one of the functions of access.js."""
    if not page.evaluate("() => Boolean(window.access)"):
        page.evaluate(ASKED)
    return page.evaluate("([name, given]) => window.access[name](...given)", [name, list(arguments)])


def strip(page: Page) -> Locator:
    return page.locator(".st-key-verdict .cl-strip")


def arrived(open_page, name: str, *, present: bool = False, **how: Any) -> Page:
    """The page in its state, with all its folds open."""
    visit = VISITS[name]
    path = visit.path if not present else f"{visit.path}{'&' if '?' in visit.path else '?'}present=1"
    page = open_page(path, reduced_motion=True, **how)
    rested(page)
    if visit.press:
        page.locator(visit.press).first.click()
        page.mouse.move(0, 0)  # no tooltip lies on the page
    if visit.says:
        expect(strip(page)).to_contain_text(visit.says, timeout=SLOW)
    rested(page)
    asked(page, "unfold")
    rested(page)
    return page


def theirs(page: Page, rule: str, target: list[Any]) -> Theirs | None:
    """Which of Streamlit's own faults a node is; a path into a shadow root (ours) never is one."""
    if len(target) != 1 or not isinstance(target[0], str):
        return None
    one = "([node, theirs]) => document.querySelector(node)?.matches(theirs) ?? false"
    return next((k for k in STREAMLITS if k.rule == rule and page.evaluate(one, [target[0], k.selector])), None)


def found_by_axe(page: Page) -> list[tuple[str, Any]]:
    if not page.evaluate("() => Boolean(window.axe)"):
        page.evaluate(AXE_SCRIPT)
    found = page.evaluate("(rules) => axe.run(rules)", RULES)["violations"]
    return [(violation["id"], node) for violation in found for node in violation["nodes"]]


def violations(page: Page) -> list[str]:
    """What axe finds in what we render, in words."""
    return [
        f"{rule}: {node['target']} {node['html'][:200]} {node['failureSummary']}"
        for rule, node in found_by_axe(page)
        if theirs(page, rule, node["target"]) is None
    ]


def darken(page: Page) -> None:
    """The system turns dark while the page is open."""
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    page.wait_for_function("() => getComputedStyle(document.querySelector('.stApp')).colorScheme === 'dark'")
    rested(page)


def fits(page: Page, but: str = "") -> None:
    """Nothing scrolls sideways, is cut off, or lies on anything else."""
    assert asked(page, "sideways") <= 0
    assert asked(page, "cut", but) == []
    assert asked(page, "overlapping") == []
    assert asked(page, "covered") == []


# --- every page -----------------------------------------------------------------------------------------------------


def test_every_page_of_the_app_is_asked() -> None:
    tree = ast.parse((ROOT / "app.py").read_text(encoding="utf-8"))
    (found,) = (
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PAGES"
    )
    paths = {f"/{path}" for group in ast.literal_eval(found).values() for _, _, path in group}
    assert {urlsplit(visit.path).path for visit in VISITS.values()} == paths


@pytest.mark.parametrize("name", VISITS)
def test_a_page_can_be_read_by_everybody(open_page, name: str) -> None:
    """WCAG in light and dark, words and a table for each plot, a phone, 200 %, wider spacing: in one visit."""
    page = arrived(open_page, name)
    assert page.evaluate("() => document.documentElement.lang") == "en"
    assert page.title()
    assert violations(page) == []
    assert page.locator("[tabindex]:not([tabindex='0'], [tabindex='-1'])").count() == 0, "an order of Tab of its own"
    assert page.evaluate(UNTOLD) == []
    plots = page.evaluate(PLOTS)
    assert tuple(plot["key"] for plot in plots) == VISITS[name].plots
    for plot in plots:
        assert plot["role"] in {"img", "figure"}
        assert len(plot["words"]) > 40
        assert re.search(r"\d", plot["words"]), "the words say what is seen"
        assert "as a table" in plot["fold"]
        assert plot["rows"] > 1, "with a head and a row at the least"
    for window in (ZOOMED, PHONE):
        page.set_viewport_size(window)
        rested(page)
        fits(page)
    assert violations(page) == []
    darken(page)
    page.set_viewport_size({**DESKTOP, "width": DESKTOP["width"] - 10})
    rested(page)
    assert violations(page) == []
    # WCAG 1.4.12, of texts. What is drawn is a picture: its words and numbers stand beside it too.
    asked(page, "spaced")
    page.set_viewport_size(DESKTOP)
    rested(page)
    fits(page, but="svg")


@pytest.mark.parametrize("name", PROJECTED)
def test_on_a_projector_all_is_large_and_nothing_but_the_page_is_there(open_page, name: str) -> None:
    page = arrived(open_page, name, present=True, **PROJECTOR)
    assert asked(page, "small", SMALLEST) == []
    assert asked(page, "sideways") <= 0
    assert asked(page, "cut") == []
    assert [box.get_attribute("data-testid") for box in page.locator(CHROME).all() if box.is_visible()] == []
    assert page.locator("footer").count() == 0


def test_what_streamlit_is_excused_for_it_still_does(open_page) -> None:
    page = open_page("/", reduced_motion=True)
    rested(page)
    seen = {theirs(page, rule, node["target"]) for rule, node in found_by_axe(page)}
    assert seen - {None} == set(STREAMLITS)


@pytest.mark.parametrize("name", POPOVERS)
def test_what_opens_over_a_page_fits_a_phone(open_page, name: str) -> None:
    page = open_page(VISITS[name].path, **PHONE, reduced_motion=True)
    rested(page)
    page.locator(POPOVERS[name]).first.click()
    body = page.locator("[data-testid=stPopoverBody]")
    expect(body).to_be_visible()
    rested(page)
    box = body.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE["width"]
    assert asked(page, "sideways") <= 0
    assert violations(page) == []
    darken(page)
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(body).to_have_count(0)


# --- keyboard alone -------------------------------------------------------------------------------------------------


def tab_to(page: Page, selector: str, most: int = 150) -> None:
    """Press Tab until the focus is in there; what is out of reach fails."""
    for _ in range(most):
        if asked(page, "focused", selector):
            return
        page.keyboard.press("Tab")
    pytest.fail(f"Tab never reached {selector}")


def focus_comes_to(page: Page, selector: str) -> None:
    asked(page, "focused", selector)
    page.wait_for_function("(selector) => window.access.focused(selector)", arg=selector)


def test_scan_by_keyboard(open_page) -> None:
    page = open_page("/", reduced_motion=True)
    expect(strip(page)).to_contain_text("Contract kept", timeout=SLOW)
    rested(page)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to main content")).to_be_focused()
    page.keyboard.press("Enter")
    focus_comes_to(page, "main")
    tab_to(page, ".st-key-scan_step")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("step="), timeout=SLOW)
    expect(strip(page)).to_contain_text("Contract kept", timeout=SLOW)
    rested(page)
    tab_to(page, ".st-key-scan_output .stButton button")
    page.keyboard.press("Enter")
    expect(strip(page)).to_contain_text("Contract broken", timeout=SLOW)
    rested(page)
    tab_to(page, '[class*="st-key-scan_apply_"] button')
    page.keyboard.press("Space")
    expect(strip(page)).to_contain_text("Contract kept", timeout=SLOW)
    # The card has gone, and its button with it: the focus is where the change can be taken back.
    focus_comes_to(page, ".st-key-scan_undo")
    page.keyboard.press("Enter")
    expect(strip(page)).to_contain_text("Contract broken", timeout=SLOW)


def test_the_player_by_keyboard(open_page) -> None:
    page = open_page("/", reduced_motion=True)
    rested(page)
    player = page.locator(".scan-player")
    tab_to(page, ".scan-player input[type=range]")
    page.keyboard.press("ArrowRight")
    expect(player).to_have_attribute("data-t", "1")
    page.keyboard.press("End")
    expect(player).to_have_attribute("data-t", "3")
    tab_to(page, ".scan-player button.back")
    page.keyboard.press("Enter")
    expect(player).to_have_attribute("data-t", "2")
    tab_to(page, ".scan-player button.play")
    page.keyboard.press("Space")
    expect(player).to_have_attribute("data-t", "3", timeout=SLOW)
    expect(player).to_have_attribute("data-playing", "false")


def test_sequence_by_keyboard(open_page) -> None:
    page = open_page("/sequence", reduced_motion=True)
    expect(strip(page)).to_contain_text("Contract kept", timeout=SLOW)
    rested(page)
    tab_to(page, ".sequence-grid [data-row]")
    page.keyboard.press("ArrowRight")
    assert asked(page, "focused", '[data-row="0"][data-column="1"]')
    page.keyboard.press("Space")
    page.wait_for_url(re.compile("mask=10"), timeout=SLOW)
    focus_comes_to(page, '[data-row="0"][data-column="1"]')


@pytest.mark.skipif(NO_EDITOR, reason="the code editor is not here")
def test_doctor_by_keyboard(open_page) -> None:
    page = open_page("/doctor", reduced_motion=True)
    rested(page)
    tab_to(page, ".cm-content")
    page.keyboard.type("import jax, jax.numpy as jnp\n")
    page.keyboard.type("print(jax.lax.scan(lambda c, x: (c + x, c), jnp.int32(0), jnp.array([0.5, 1.5])))")
    page.keyboard.press("Control+Enter")
    expect(strip(page)).to_contain_text("ran in a worker", timeout=SLOW)
    expect(strip(page)).to_contain_text("Contract broken")
    expect(page.locator('[class*="st-key-doctor_apply_"] button').first).to_be_visible(timeout=SLOW)
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert not asked(page, "focused", ".cm-editor")
    tab_to(page, '[class*="st-key-doctor_apply_"] button')
    page.keyboard.press("Enter")
    expect(strip(page)).to_contain_text("Contract kept", timeout=SLOW)
    focus_comes_to(page, '[data-testid="stMain"] button')


def test_a_lesson_by_keyboard(open_page) -> None:
    page = open_page("/lessons?n=3", reduced_motion=True)
    rested(page)
    for name, text in (("Begin", "step 1 of"), ("Set it up", "✓ Done"), ("Next", "step 2 of")):
        button = page.get_by_role("button", name=name, exact=True).first
        for _ in range(150):
            page.keyboard.press("Tab")
            if button.evaluate("(button) => button === document.activeElement"):
                break
        expect(button).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator(".st-key-lesson_rail")).to_contain_text(text, timeout=SLOW)
        rested(page)


def test_the_menu_of_scripts_closes_on_a_pick(open_page) -> None:
    page = open_page("/doctor", reduced_motion=True)
    rested(page)
    page.locator(".st-key-doctor_open button").first.click()
    page.locator(".st-key-doctor_open_menu .stButton button").last.click()
    expect(page.locator("[data-testid=stPopoverBody]")).to_have_count(0, timeout=SLOW)
    expect(strip(page)).to_contain_text("ran in a worker", timeout=SLOW)


def test_why_opens_within_its_card(open_page) -> None:
    page = open_page(VISITS["scan-broken"].path, reduced_motion=True)
    why = page.locator('[class*="st-key-scan_why_"]').first
    tab_to(page, '[class*="st-key-scan_why_"] summary')
    page.keyboard.press("Enter")
    expect(why.get_by_text("Good")).to_be_visible()
    apply = page.locator('[class*="st-key-scan_apply_"] button').first
    assert apply.bounding_box()["y"] < why.bounding_box()["y"]  # nothing lies on it
    apply.click(trial=True)


def test_a_program_that_scrolls_is_a_stop_of_tab_and_one_that_does_not_is_none(open_page) -> None:
    page = open_page("/lstm", reduced_motion=True)
    rested(page)
    code = page.locator("[data-testid=stCode] pre").first
    assert code.evaluate("(pre) => getComputedStyle(pre.querySelector('code')).whiteSpace") == "pre", "lines stay whole"
    for width in (DESKTOP["width"], 2600):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(
            """(pre) => (pre.scrollWidth > pre.clientWidth || pre.scrollHeight > pre.clientHeight)
                === (pre.getAttribute('tabindex') === '0')""",
            arg=code.element_handle(),
        )
        if width == DESKTOP["width"]:
            assert code.get_attribute("tabindex") == "0"
            assert len(code.get_attribute("aria-label") or "") > 5
    assert code.get_attribute("tabindex") is None


# --- focus seen, motion asked for -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "scheme"), [*((name, "light") for name in RINGED), ("scan-broken", "dark"), ("sequence", "dark")]
)
def test_the_focus_is_seen_at_every_stop(open_page, name: str, scheme: str) -> None:
    page = open_page(VISITS[name].path, scheme=scheme, reduced_motion=True)
    rested(page)
    if VISITS[name].press:
        page.locator(VISITS[name].press).first.click()
        expect(strip(page)).to_contain_text(VISITS[name].says, timeout=SLOW)
        rested(page)
        page.evaluate("() => document.activeElement?.blur()")
    unseen, stops = [], 0
    for _ in range(150):
        if asked(page, "typing"):
            page.keyboard.press("Escape")  # Tab is a character in the editor
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement === document.body"):
            break
        ring = asked(page, "ring")
        stops += 1
        if ring is not None and ring["contrast"] < RING:
            unseen.append(ring)
    assert stops > 10
    assert unseen == []


@pytest.mark.parametrize("path", ["/", "/lstm"])
def test_nothing_moves_for_who_asked_for_rest(open_page, path: str) -> None:
    page = open_page(path, reduced_motion=True)
    rested(page)
    if path == "/":
        page.get_by_role("button", name="Play").first.click()
        # Play goes from step to step, and shows no movement within one.
        expect(page.locator(".scan-player svg[data-phase]")).to_have_attribute("data-phase", "all")
    assert asked(page, "moving") == []


# --- pictures -------------------------------------------------------------------------------------------------------


def saved(page: Page, tmp_path: Path) -> Path:
    """The picture that plotly's own button saves, pressed by keyboard."""
    camera = page.locator("[data-testid=stPlotlyChart] .modebar-btn").first
    camera.focus()
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    return path


def test_the_picture_as_png_and_as_svg(open_page, tmp_path: Path) -> None:
    page = open_page("/", scheme="dark", reduced_motion=True)
    rested(page)
    png = saved(page, tmp_path)
    assert png.name == "carry-lab-scan-carry.png"
    content = png.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", content[16:24])
    assert width > 600
    assert height > 300
    # Opaque, so that its light words are read on any paper: decoded by the browser itself.
    darkest, lightest, alpha = page.evaluate(
        """async (bytes) => {
            const picture = await createImageBitmap(new Blob([new Uint8Array(bytes)], { type: 'image/png' }));
            const context = new OffscreenCanvas(picture.width, picture.height).getContext('2d');
            context.drawImage(picture, 0, 0);
            const { data } = context.getImageData(0, 0, picture.width, picture.height);
            let [low, high, alpha] = [255, 0, 255];
            for (let i = 0; i < data.length; i += 4) {
                [low, high] = [Math.min(low, data[i + 1]), Math.max(high, data[i + 1])];
                alpha = Math.min(alpha, data[i + 3]);
            }
            return [low, high, alpha];
        }""",
        list(content),
    )
    assert alpha == 255
    assert darkest < 40
    assert lightest > 200

    page.locator(".st-key-scan_export button").first.click()
    page.locator(".st-key-picture_format").get_by_role("radio", name="SVG").click()
    rested(page)
    page.keyboard.press("Escape")
    expect(page.locator("[data-testid=stPopoverBody]")).to_have_count(0)
    page.wait_for_function(
        "() => document.querySelector('.js-plotly-plot')._context.toImageButtonOptions.format === 'svg'"
    )
    svg = saved(page, tmp_path)
    assert svg.name == "carry-lab-scan-carry.svg"
    root = ElementTree.parse(svg).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    words = "".join(root.itertext())
    assert "carry" in words
    assert "float32[]" in words
    back = next(part for part in root.iter("{http://www.w3.org/2000/svg}rect"))
    assert "fill-opacity: 1" in back.get("style", "")

    # One choice for every chart of the session.
    page.get_by_role("link", name="Sequence", exact=True).click()
    page.wait_for_url(re.compile("/sequence"))
    expect(strip(page)).to_contain_text("Contract kept", timeout=SLOW)
    rested(page)
    assert saved(page, tmp_path).name == "carry-lab-sequence.svg"
