"""Two replicas behind the real proxy: what others are refused, what is written down of people, and a replica that dies.

Nobody's input may come into anything that is written: a mark is planted in every kind of input, and all that the two
servers, the proxy and the measures say is searched for it.
"""

from __future__ import annotations

import re
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from core.doctor.link import pack
from tests.bench.load_client import Load, foreign, run
from tests.support.loop import run_apart
from tests.support.serving import FAILED, READY, Running, app, free_port, get, healthy, proxy, wait_until

SLOW = 90_000
RESULTS = Path(__file__).resolve().parents[2] / "test-results" / "deploy"
#: In every planted mark; by chance it stands nowhere.
MARK = "qzmarkqz"
CONNECTED = "[data-testid=stApp][data-test-connection-state=CONNECTED][data-test-script-state=notRunning]"
PAGES = ("/", "/lstm", "/sequence", "/gradients", "/doctor?v=1&e=one_array_for_the_pair", "/catalogue?v=1&code=S104")
#: A page remembers that it lost its server, and when it has one again. If a run was under way it is run anew; else the page
#: stands as it was, and its next input is the new session's first run.
WATCH_CONNECTION = """() => {
    const app = document.querySelector('[data-testid=stApp]');
    window.lost = window.back = false;
    const look = () => {
        const connected = app.dataset.testConnectionState === 'CONNECTED';
        window.lost = window.lost || !connected;
        window.back = window.lost && connected;
    };
    new MutationObserver(look).observe(app, {attributes: true});
}"""
BACK_AGAIN = "() => window.back"
#: Seconds in which the people of a replica that died are to be back.
BACK = 5.0


@dataclass(frozen=True)
class Site:
    """The proxy, and the replicas with the ports of their measures."""

    front: Running
    replicas: tuple[Running, ...]
    measures: tuple[int, ...]

    @property
    def url(self) -> str:
        """What people open."""
        return f"http://127.0.0.1:{self.front.port}"

    def written(self) -> str:
        """All that was written anywhere, and what the measures say, of every replica that still lives."""
        logs = [running.said for running in (self.front, *self.replicas)]
        alive = [p for p, one in zip(self.measures, self.replicas, strict=True) if one.process.poll() is None]
        return "\n".join([*logs, *(get(port, "/metrics")[2].decode() for port in alive)])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Two replicas with few workers, and the proxy before them."""
    folder = tmp_path_factory.mktemp("site")
    measures = free_port(), free_port()
    settings = [{"CARRY_LAB_SPARES": "1", "CARRY_LAB_METRICS_PORT": str(port)} for port in measures]
    with (
        app(folder / "one.log", settings[0]) as one,
        app(folder / "two.log", settings[1]) as two,
        proxy(folder, [one.port, two.port]) as front,
    ):
        assert wait_until(lambda: healthy(front.port), 30), front.said
        yield Site(front, (one, two), measures)


@pytest.fixture
def context(browser: Browser, request: pytest.FixtureRequest) -> Iterator[BrowserContext]:
    """A browser of somebody's own."""
    made = browser.new_context()
    yield made
    if request.node.stash.get(FAILED, False):
        RESULTS.mkdir(parents=True, exist_ok=True)
        for page in made.pages:
            page.screenshot(path=RESULTS / f"{request.node.name}.png", full_page=True)
    made.close()


def opened(context: BrowserContext, url: str) -> Page:
    page = context.new_page()
    page.goto(url)
    page.wait_for_selector(READY, timeout=SLOW)
    return page


# --- what is refused, and what is said to a browser ------------------------------------------------------------------


def test_the_health_endpoint_says_well(site: Site) -> None:
    for port in (site.front.port, *(one.port for one in site.replicas)):
        assert get(port, "/_stcore/health")[0] == 200


def test_the_front_end_is_sent_small_and_with_the_headers_of_a_careful_site(site: Site) -> None:
    status, headers, body = get(site.front.port, "/", {"Accept-Encoding": "gzip"})
    assert status == 200
    assert headers["Content-Encoding"] == "gzip"
    assert len(body) < 10_000
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "frame-ancestors 'self'" in headers["Content-Security-Policy"]
    assert "default-src 'self'" in headers["Content-Security-Policy"]
    assert headers["Server"] is None
    cookie = next(value for value in headers.get_all("Set-Cookie") if value.startswith("carry-lab="))
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert not any(str(one.port) in cookie for one in site.replicas)


def refused(port: int, origin: str | None, host: str = "") -> bool:
    """Whether a websocket with this origin is refused."""
    try:
        with connect(
            f"ws://{host or '127.0.0.1'}:{port}/_stcore/stream",
            origin=origin, subprotocols=["streamlit"], open_timeout=20, compression=None,
        ):  # fmt: skip
            return False
    except InvalidStatus as answer:
        return answer.response.status_code == 403


def test_a_page_of_somebody_else_cannot_open_a_session(site: Site) -> None:
    for port in (site.front.port, site.replicas[0].port):
        start = time.monotonic()
        assert refused(port, "https://evil.example")
        # Without asking the internet what this machine is called there, for seconds.
        assert time.monotonic() - start < 1.0
        assert not refused(port, f"http://127.0.0.1:{port}")
        assert "Access-Control-Allow-Origin" not in get(port, "/_stcore/health", {"Origin": "https://evil.example"})[1]


def test_an_upload_without_the_token_or_too_large_is_refused(site: Site) -> None:
    path = "/_stcore/upload_file/some-session/some-file"
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    body = b'--x\r\nContent-Disposition: form-data; name="f"; filename="f.py"\r\n\r\nprint(1)\r\n--x--\r\n'
    for port in (site.front.port, site.replicas[0].port):
        assert get(port, path, form, "PUT", body)[0] == 403
    large = {"Content-Length": str(100 * 2**20), **form}
    with socket.create_connection(("127.0.0.1", site.front.port), timeout=20) as raw:
        lines = "".join(f"{name}: {value}\r\n" for name, value in large.items())
        raw.sendall(f"PUT {path} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n".encode())
        assert b" 413 " in raw.recv(200)


def test_the_measures_are_for_this_machine_only(site: Site) -> None:
    listening = Path("/proc/net/tcp").read_text().splitlines()[1:]
    rows = [line.split()[1] for line in listening if line.split()[3] == "0A"]
    for port in site.measures:
        assert f"0100007F:{port:04X}" in rows
        assert f"00000000:{port:04X}" not in rows


def test_every_page_works_under_the_proxys_policy(site: Site, context: BrowserContext) -> None:
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    for path in PAGES:
        page.goto(site.url + path)
        page.wait_for_selector(READY, timeout=SLOW)
        page.wait_for_function("() => !document.querySelector('[data-testid=stSkeleton]')", timeout=SLOW)
    assert [text for text in said if "Content Security Policy" in text or text.startswith("error")] == []


# --- nothing of anybody is written down ------------------------------------------------------------------------------

SCRIPTS = {
    "prints and raises": "print('{mark}')\nraise ValueError('{mark}')\n",
    "is no Python": "{mark} = = 1\n",
    "is refused": "import {mark}\nopen('/tmp/{mark}', 'w').write('{mark}')\n",
    "never ends": "{mark} = 1\nwhile True:\n    {mark} += 1\n",
    "recurses": "def {mark}(n):\n    return {mark}(n + 1)\n\n{mark}(0)\n",
    "breaks the contract": (
        "import jax\nimport jax.numpy as jnp\n\ndef step({mark}_c, {mark}_x):\n"
        "    return {mark}_c + 1.5, {mark}_x\n\njax.lax.scan(step, jnp.int32(0), jnp.arange(3, dtype=jnp.int32))\n"
    ),
}


def run_script(page: Page, site: Site, text: str) -> None:
    """Opens a link with this script and has it run to its end."""
    page.goto(f"{site.url}/doctor?v=1&s={pack(text)}")
    page.locator(".st-key-doctor_run button").click(timeout=SLOW)
    strip = page.locator(".st-key-verdict")
    expect(strip).to_contain_text(re.compile("worker|Over a limit|cannot|not allowed|line|refuse", re.I), timeout=SLOW)
    expect(strip).not_to_contain_text("Running", timeout=SLOW)
    page.wait_for_selector(READY, timeout=SLOW)


def test_no_mark_that_somebody_types_is_written_anywhere(site: Site, context: BrowserContext, tmp_path: Path) -> None:
    mark = {name: f"{MARK}{name.replace(' ', '')}" for name in ("link", "class", "typed", "file", "header", "socket")}
    page = context.new_page()
    # Links, with what the pages know and what they do not; the address and the class's own parameters.
    link, room = mark["link"], mark["class"]
    for path in (
        f"/?v=1&step={link}&x={link}&init={link}&{link}={link}&hide={room}&lock=scan_{room}&lesson={room}&present={room}",
        f"/lstm?v=1&batch={link}&hide=lstm_{room}",
        f"/sequence?v=1&batch={link}",
        f"/gradients?v=1&of={link}",
        f"/catalogue?v=1&code={link}",
        f"/doctor?v=1&s={link}&e={link}&mode={link}",
        f"/doctor?v=1&mode=step&init={link}&xs={link}",
        f"/challenges?v=1&set={link}",
        f"/{link}?{link}#{link}",
    ):
        page.goto(site.url + path)
        page.wait_for_selector(READY, timeout=SLOW)
    # Typed: numbers and words where numbers are wanted, a search, an error message that was pasted.
    page.goto(f"{site.url}/?v=1&src=typed")
    page.wait_for_selector(READY, timeout=SLOW)
    for box in page.locator("[data-testid=stMain] :is(input[type=text], textarea):visible").all()[:6]:
        if box.is_editable() and box.get_attribute("role") != "combobox":
            box.fill(f"1, 2, {mark['typed']}")
            box.press("Tab")
            page.wait_for_selector(READY, timeout=SLOW)
    page.goto(f"{site.url}/catalogue")
    page.wait_for_selector(READY, timeout=SLOW)
    page.locator("textarea").first.fill(f"TypeError: {mark['typed']} scan body function carry input and carry output")
    page.locator("textarea").first.press("Control+Enter")
    page.wait_for_selector(READY, timeout=SLOW)
    # Scripts: every way in which one can end.
    for name, text in SCRIPTS.items():
        run_script(page, site, text.replace("{mark}", MARK + re.sub(r"\W", "", name)))
    # A file, by its name and by what is in it; a name that is no script's.
    page.goto(f"{site.url}/doctor")
    page.wait_for_selector(READY, timeout=SLOW)
    for name, content in (
        (f"{mark['file']}.py", f"print('{mark['file']}')\n"),
        (f"{mark['file']}.ipynb", mark["file"]),
    ):
        file = tmp_path / name
        file.write_text(content)
        page.get_by_role("button", name="Open", exact=False).first.click(timeout=SLOW)
        page.locator("input[type=file]").first.set_input_files(file, timeout=SLOW)
        page.wait_for_timeout(1_000)
        page.wait_for_selector(READY, timeout=SLOW)
        page.keyboard.press("Escape")
    # What no browser of ours would send.
    header = mark["header"]
    for port in (site.front.port, site.replicas[0].port):
        plain = {
            "User-Agent": header,
            "Referer": f"http://x/?{header}",
            "Cookie": f"a={header}",
            "X-Forwarded-For": header,
        }
        for path in (f"/?{header}", f"/lstm?v=1&{header}", f"/_stcore/upload_file/{header}/{header}"):
            get(port, path, plain, "PUT" if "upload" in path else "GET", header.encode())
        refused(port, f"https://{header}.example")
        with socket.create_connection(("127.0.0.1", port), timeout=20) as raw:
            raw.sendall(f"GET /?{header} HTTP/9.9 {header}\r\n{header}\r\n\r\n".encode())
            raw.recv(1000)
        with connect(
            f"ws://127.0.0.1:{port}/_stcore/stream?{mark['socket']}", subprotocols=["streamlit"], compression=None
        ) as stream:
            message = BackMsg()
            message.rerun_script.query_string = quote(mark["socket"])
            message.rerun_script.page_name = mark["socket"]
            message.rerun_script.widget_states.widgets.add(id=mark["socket"], string_value=mark["socket"])
            stream.send(message.SerializeToString())
            stream.recv(timeout=20)
            stream.send(mark["socket"].encode())  # no message at all
            stream.send(mark["socket"])  # and of the wrong kind
            time.sleep(0.5)
    # What the status page says of all that.
    page.goto(f"{site.url}/status")
    page.wait_for_selector(READY, timeout=SLOW)
    shown = page.locator("[data-testid=stApp]").inner_text()

    written = site.written()
    assert "carry_lab_seconds_count" in written
    assert "GET /doctor 200" in written
    assert "Limits".upper() in shown.upper()
    found = {line[:300] for line in (*written.splitlines(), *shown.splitlines()) if MARK in line.lower()}
    # An address that no page has is a path, and the proxy logs paths.
    path = f" GET /{mark['link']}"
    assert {line for line in found if path not in line or line.count(MARK) > 1} == set()
    # Nor whose they are.
    assert re.findall(r"127\.0\.0\.1", site.front.said) == []
    for name in ("Traceback", "HTTP_", "session_id"):
        assert name not in site.front.said


def test_labels_come_from_closed_sets(site: Site, context: BrowserContext) -> None:
    from core.base.measures import COUNTERS, OTHER, PAGES, TIMES, Part
    from core.contract.rule import all_rules

    words = {
        "page": {*PAGES, OTHER},
        "stage": set(Part),
        "code": {rule.code for rule in all_rules()} | {OTHER},
        "outcome": {"ok", "violations", "limit", "error", OTHER},
    }
    assert {label for counter in (*COUNTERS, TIMES) for label in counter.labels} <= {*words, "what"}
    for path in ("/", "/doctor"):
        opened(context, site.url + path)
    text = "\n".join(get(port, "/metrics")[2].decode() for port in site.measures)
    seen = re.findall(r'(\w+)="([^"]*)"', text)
    assert {value for label, value in seen if label == "page"} > {"scan", "doctor"}
    assert {(label, value) for label, value in seen if label in words and value not in words[label]} == set()


# --- a class through the proxy ---------------------------------------------------------------------------------------


def test_people_through_the_proxy_see_their_own_values_alone(site: Site) -> None:
    probe = r"nnx\.Rngs\((\d+)\) draws"
    load = Load(site.url, "lstm_seed", probe, "lstm", sessions=8, changes=4, high=1000, digits=0, think=0.2)
    outcome = run_apart(run(load))
    assert outcome.errors == []
    assert outcome.wrong == []
    assert len(outcome.reruns) == load.sessions * load.changes


@pytest.mark.parametrize(
    ("shown", "is_foreign"), [([4.0], False), ([4.0, 4.0], False), ([], True), ([5.0], True), ([4.0, 5.0], True)]
)
def test_a_value_of_somebody_else_would_be_seen(shown: list[float], is_foreign: bool) -> None:
    assert foreign(shown, 4.0, 0) is is_foreign


# --- a replica dies --------------------------------------------------------------------------------------------------


def replica_of(site: Site, page: Page) -> Running:
    """Where the proxy sends whoever has the cookie of this page, as its log says."""
    [cookie] = [one["value"] for one in page.context.cookies() if one["name"] == "carry-lab"]
    before = len(site.front.said)
    assert get(site.front.port, "/_stcore/health", {"Cookie": f"carry-lab={cookie}"})[0] == 200
    line = r"GET /_stcore/health 200 .* replica(\d) --V"
    assert wait_until(lambda: re.search(line, site.front.said[before:]) is not None, 10)
    return site.replicas[int(re.findall(line, site.front.said[before:])[-1]) - 1]


def set_batch(page: Page, was: int, new: int) -> None:
    """Types another batch size on the LSTM page, once it shows the one before; and waits for the page to follow."""
    box = page.locator(".st-key-lstm_batch input").first
    expect(box).to_have_value(str(was), timeout=SLOW)
    box.fill(str(new))
    box.press("Enter")
    expect(page).to_have_url(re.compile(f"batch={new}"), timeout=SLOW)
    page.wait_for_selector(CONNECTED, timeout=SLOW)


def follows(page: Page, new: int) -> bool:
    """Whether the page follows what is typed. What is typed first begins the new session, which reads the link: it wins."""
    box = page.locator(".st-key-lstm_batch input").first
    for _ in range(6):
        box.fill(str(new))
        box.press("Enter")
        if wait_until(lambda: f"batch={new}" in page.evaluate("location.search"), 10):
            return True
    return False


def test_people_of_a_replica_that_dies_are_back_on_the_other_with_their_state(site: Site, browser: Browser) -> None:
    contexts = [browser.new_context() for _ in range(4)]
    try:
        pages = [opened(one, f"{site.url}/lstm?v=1&batch={number}") for number, one in enumerate(contexts, 2)]
        for number, page in enumerate(pages, 2):
            set_batch(page, number, number + 10)
        homes = [replica_of(site, page) for page in pages]
        assert {home.port for home in homes} == {one.port for one in site.replicas}, "everybody is on one replica"
        victim = homes[0]
        theirs = [(n, page) for n, (page, home) in enumerate(zip(pages, homes, strict=True), 2) if home is victim]

        for page in pages:
            page.evaluate(WATCH_CONNECTION)
        start = time.monotonic()
        victim.end(signal.SIGKILL)
        for _, page in theirs:
            page.wait_for_function(BACK_AGAIN, timeout=3_000 * BACK)
        took = time.monotonic() - start
        for number, page in theirs:
            assert f"batch={number + 10}" in page.url
            assert replica_of(site, page) is not victim
            expect(page.locator(".st-key-lstm_batch input").first).to_have_value(str(number + 10))
            assert follows(page, number + 20)
        assert took <= BACK
        for page, home in zip(pages, homes, strict=True):
            if home is not victim:
                assert page.evaluate("window.lost") is False
    finally:
        for one in contexts:
            one.close()
