"""One person, every page: from a change of a control to the changed plot in the browser, in turns with a bare page.

    python -m pytest tests/bench/bench_pages.py -p no:xdist -s -o python_files='bench_*.py'

The bare page has the same number of widgets of each kind and the same traces (`bare_page.py`). A change is timed in the
browser, from the click until other numbers are drawn and the frame with them is on its way.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.bench.bench_load import bare
from tests.bench.plan import plan_of
from tests.bench.table import record
from tests.support.browsing import CHROMIUM_FLAGS
from tests.support.loop import run_apart
from tests.support.serving import ROOT, free_port, running

TIMES, WARM = int(os.environ.get("BENCH_TIMES", "20")), 4
RATIO = 1.6


@dataclass(frozen=True, slots=True)
class Change:
    """A control of a page, and where what comes of it is drawn.

    Attributes:
        name: for the table.
        path: of the page.
        query: of the link.
        widget: key of the control: a number input, or a checkbox.
        values: that it is given when the page is read for the bare one.
        drawn: what is looked at: a chart, or a drawing.
    """

    name: str
    path: str
    query: str
    widget: str
    values: tuple[object, ...]
    drawn: str


CHANGES = (
    Change("Scan, reverse", "", "", "scan_reverse", (True, False, True), ".st-key-scan_output .js-plotly-plot"),
    Change("LSTM cell, parameter seed", "lstm", "", "lstm_seed", (1, 2, 3), ".st-key-lstm_output"),
    Change("Sequence, unit", "sequence", "", "sequence_unit", (1, 2, 3), ".st-key-sequence_chart .js-plotly-plot"),
    Change("Sequence, parameter seed", "sequence", "", "sequence_seed", (1, 2, 3), ".st-key-sequence_chart .js-plotly-plot"),
    Change("Gradients, parameter seed", "gradients", "", "gradients_seed", (1, 2, 3), ".st-key-gradients_curves .js-plotly-plot"),
    Change("Gradients of training, seed", "gradients", "of=training", "gradients_seed", (1, 2, 3), ".st-key-gradients_loss .js-plotly-plot"),
)  # fmt: skip
BARE = Change("bare", "", "", "number_0", (), ".st-key-chart_0 .js-plotly-plot")
#: Clicks, and waits until what is drawn is another thing. Components keep theirs in a shadow tree.
MEASURE = """async ([input, selector, up, plain]) => {
  const deep = (node) => [...node.childNodes].map((n) => n.nodeType === 3 ? n.data : (n.shadowRoot ? deep(n.shadowRoot) : '') + deep(n)).join('|');
  const shown = () => {
    const found = document.querySelector(selector);
    if (!found) return plain ? document.querySelector('.stMarkdown')?.innerText : undefined;
    return found.data ? JSON.stringify(found.data.map((t) => [t.y, t.z])) : deep(found);
  };
  const before = shown();
  const start = performance.now();
  const box = document.querySelector(`.st-key-${input}`);
  const step = box.querySelector(`[data-testid=stNumberInputStep${up ? "Up" : "Down"}]`);
  (step ?? box.querySelector("input")).click();
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  for (let now = before; now === before || now === undefined; now = shown()) {
    await frame();
    if (performance.now() - start > 20000) throw new Error("nothing changed");
  }
  await frame();
  return performance.now() - start;
}"""


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The app as `make run` starts it."""
    port = free_port()
    command = [sys.executable, str(ROOT / "deploy" / "run.py"), "--plain", "--port", str(port)]
    settings = {"CARRY_LAB_COMPILE_BURST": "1000000", "JAX_PLATFORMS": "cpu"}
    with running(command, port, tmp_path_factory.mktemp("pages") / "app.log", settings):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for both."""
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=shutil.which("chromium"), args=CHROMIUM_FLAGS)


def opened(chromium: Browser, url: str, change: Change) -> Page:
    page = chromium.new_page(viewport={"width": 1400, "height": 1000})
    page.goto(f"{url}/{change.path}?{change.query}")
    page.wait_for_selector(f".st-key-{change.widget}", timeout=90_000)
    page.wait_for_timeout(3_000)
    return page


def measured(page: Page, change: Change, turn: int) -> float:
    """Milliseconds of one change."""
    page.bring_to_front()
    page.wait_for_timeout(500)  # the panels after the plot, and whatever else is still under way
    return float(page.evaluate(MEASURE, [change.widget, change.drawn, turn % 2 == 0, change is BARE]))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("change", CHANGES, ids=[change.name for change in CHANGES])
def test_a_page(change: Change, ours: str, chromium: Browser, tmp_path: Path) -> None:
    plan = run_apart(plan_of(ours, change.path, change.widget, change.values, change.query))
    plan.widgets.setdefault("number_input", 1)
    plan = type(plan)(plan.widgets, plan.figures, "number_0")
    with bare(plan.write(tmp_path / "plan.json"), tmp_path) as (url, _):
        pages = {change: opened(chromium, ours, change), BARE: opened(chromium, url, BARE)}
        taken: dict[Change, list[float]] = {one: [] for one in pages}
        for turn in range(TIMES + WARM):
            for one, page in pages.items():
                taken[one].append(measured(page, one, turn))
        for page in pages.values():
            page.close()
    own, other = (sorted(taken[one][WARM:]) for one in (change, BARE))
    record(f"{change.name}: from the click to the changed plot, median", statistics.median(own), "ms")
    record(f"{change.name}: the same, p95", own[int(0.95 * (len(own) - 1))], "ms")
    record(f"{change.name}: the same of a bare page, median", statistics.median(other), "ms")
    ratio = statistics.median(own) / statistics.median(other)
    record(f"{change.name}: from the click to the changed plot, of a bare page", ratio, "x", RATIO)
