"""How fast the Sequence page answers: from a click to the painted chart, in a browser, beside a bare Streamlit page.

    python -m pytest tests/bench/bench_sequence_page.py -p no:xdist -s -o python_files='bench_*.py'

The bare page has the same chart with the same traces, worked out before, one number input and nothing else. Both are
measured in one run, in turns; the target is less than twice the bare page. Two kinds of change are measured: `unit` looks
at another unit of the same run, `seed` runs the layer again with other parameters, with all rules and checks.
"""

from __future__ import annotations

import http.client
import pickle
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.bench.table import record

ROOT = Path(__file__).resolve().parents[2]
TARGET = 2.0
TIMES = 15
READY = "[data-testid=stApp][data-test-script-state=notRunning]"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
BARE = """
import pickle
from pathlib import Path
import streamlit as st

@st.cache_resource
def figures():
    return pickle.loads(Path(__file__).with_suffix(".pickle").read_bytes())

st.set_page_config(layout="wide")
unit = st.number_input("unit", 0, 3, key="bare_unit")
seed = st.number_input("seed", 0, 10_000, key="bare_seed")
st.plotly_chart(figures()[seed % len(figures())][unit], key="bare_chart", config={"displayModeBar": False})
"""
#: Clicks the step button and waits until the chart shows other numbers, and the frame with them is on its way.
MEASURE = """async ([input, chart, up]) => {
  const shown = () => JSON.stringify(document.querySelector(`.st-key-${chart} .js-plotly-plot`)?.data?.map((t) => t.y));
  const before = shown();
  const start = performance.now();
  document.querySelector(`.st-key-${input} [data-testid=stNumberInputStep${up ? "Up" : "Down"}]`).click();
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  for (let now = before; now === before || now === undefined; now = shown()) {
    await frame();
    if (performance.now() - start > 20000) throw new Error("the chart did not change");
  }
  await frame();
  return performance.now() - start;
}"""


def figures(seeds: int) -> list[list[dict]]:
    """The page's own figures by seed and unit, of what it opens with."""
    from core.inputs.sequence_inputs import SequenceInputs, build
    from core.plots.sequence_view import Chosen, sequence_view
    from core.runners.sequence import run_sequence

    out = []
    for seed in range(seeds):
        trial = build(SequenceInputs(seed=seed)).trial
        views = [sequence_view(run_sequence(trial), Chosen(1, 5, unit)).figure for unit in range(4)]
        for figure in views:
            figure["layout"]["template"] = "streamlit"
        out.append(views)
    return out


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def started(command: list[str], port: int) -> subprocess.Popen:
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
        try:
            connection.request("GET", "/_stcore/health")
            if connection.getresponse().status == 200:
                return process
        except OSError:
            time.sleep(0.1)
        finally:
            connection.close()
    process.terminate()
    raise RuntimeError("a server did not start")


def measured(page: Page, prefix: str, field: str, up: bool) -> float:
    page.wait_for_selector(READY)
    page.wait_for_timeout(400)  # the panels after the plot, and whatever else is still under way
    return float(page.evaluate(MEASURE, [f"{prefix}_{field}", f"{prefix}_chart", up]))


def test_the_page_answers_in_less_than_twice_a_bare_one() -> None:
    ports = free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        script = Path(folder) / "bare.py"
        script.write_text(BARE)
        script.with_suffix(".pickle").write_bytes(pickle.dumps(figures(TIMES + 2)))
        plain = ["--server.headless=true", "--server.fileWatcherType=none", "--browser.gatherUsageStats=false"]
        commands = (
            [sys.executable, str(ROOT / "deploy" / "run.py"), "--port", str(ports[0])],
            [sys.executable, "-m", "streamlit", "run", str(script), f"--server.port={ports[1]}", *plain],
        )
        servers = [started(command, port) for command, port in zip(commands, ports, strict=True)]
        try:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
            pages = {}
            for prefix, port, path in (("sequence", ports[0], "/sequence"), ("bare", ports[1], "/")):
                page = pages[prefix] = browser.new_page(viewport={"width": 1400, "height": 1000})
                page.goto(f"http://127.0.0.1:{port}{path}")
                page.wait_for_selector(f".st-key-{prefix}_chart .js-plotly-plot .scatterlayer", timeout=90_000)
            ratios = {field: _ratio(pages, field) for field in ("unit", "seed")}
            browser.close()
        finally:
            for server in servers:
                server.terminate()
                server.wait(timeout=20)
    for field, ratio in ratios.items():
        record(f"Sequence, {field}: from click to painted chart, of a bare page", ratio, "x", TARGET)


def _ratio(pages: dict[str, Page], field: str) -> float:
    """Median of the page over median of the bare one, in turns; the first two of each are not counted."""
    taken: dict[str, list[float]] = {prefix: [] for prefix in pages}
    for turn in range(TIMES + 2):
        for prefix, page in pages.items():
            page.bring_to_front()
            taken[prefix].append(measured(page, prefix, field, field == "seed" or turn % 2 == 0))
    own, bare = (sorted(taken[prefix][2:]) for prefix in ("sequence", "bare"))
    ratio, p95 = statistics.median(own) / statistics.median(bare), int(0.95 * (TIMES - 1))
    print(
        f"\n{field}: page p50 {statistics.median(own):.0f} p95 {own[p95]:.0f} ms, "
        f"bare p50 {statistics.median(bare):.0f} p95 {bare[p95]:.0f} ms, ratio {ratio:.2f} (target < {TARGET})"
    )
    return ratio
