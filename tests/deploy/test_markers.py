"""Nothing of anybody's is written anywhere: uploads, answers, rooms and class links, beside what `test_site` types.

A mark that is made anew for each run is planted in every kind of input. Then all that the server wrote is searched for it:
its output, its measures, its home and its folder for temporary files, and whatever is newer in the tree of the project.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import secrets
import socket
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from core.challenges.challenge import Kind
from core.challenges.fields import challenges_of
from core.doctor.link import pack
from tests.support.serving import READY, ROOT, Running, app, free_port, get, wait_until

SLOW = 90_000
#: In every planted mark. Made anew, so that no file of the project has it.
MARK = f"qz{secrets.token_hex(6)}qz"
FIX, PREDICT = (next(one for one in challenges_of("all") if one.kind is kind) for kind in (Kind.FIX, Kind.PREDICT))
#: What a test run itself leaves in the tree.
LEFT_BY_TESTS = ("test-results", ".git", ".pytest_cache", ".hypothesis", ".ruff_cache", ".mypy_cache")


@dataclass(frozen=True)
class Server:
    """A server, and all places that it may write to."""

    running: Running
    metrics: int
    folder: Path
    began: float

    @property
    def url(self) -> str:
        """What people open."""
        return f"http://127.0.0.1:{self.running.port}"

    def written(self) -> dict[str, bytes]:
        """All that it wrote, by where."""
        found = {"measures": get(self.metrics, "/metrics")[2]}
        places = [
            *files_below(self.folder),
            *(p for p in files_below(ROOT) if p.parts[len(ROOT.parts)] not in LEFT_BY_TESTS),
        ]
        for path in places:
            try:
                if path.is_relative_to(self.folder) or path.stat().st_mtime >= self.began:
                    found[str(path)] = str(path).encode() + b"\n" + path.read_bytes()
            except OSError:  # another test's, gone meanwhile
                continue
        return found


def files_below(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def lines_with(mark: str, written: dict[str, bytes]) -> list[str]:
    """Where the mark stands, with the line."""
    return [
        f"{place}: {line[:200]!r}"
        for place, data in written.items()
        for line in data.splitlines()
        if mark.lower().encode() in line.lower()
    ]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The app with a home and a folder for temporary files of its own, so that all it writes is found."""
    folder, metrics, began = tmp_path_factory.mktemp("written"), free_port(), time.time()
    for name in ("home", "tmp"):
        (folder / name).mkdir()
    more = {
        "CARRY_LAB_METRICS_PORT": str(metrics),
        "CARRY_LAB_SPARES": "1",
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
    }
    with app(folder / "server.log", more) as started:
        yield Server(started, metrics, folder, began)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1300, "height": 900})
    yield context.new_page()
    context.close()


def ready(page: Page) -> None:
    page.wait_for_timeout(150)
    page.wait_for_selector(READY, timeout=SLOW)


def opened(page: Page, server: Server, path: str) -> Page:
    page.goto(server.url + path)
    ready(page)
    return page


# --- files that carry the mark --------------------------------------------------------------------------------------


def files(folder: Path, mark: str) -> list[Path]:
    """Files whose names and contents have the mark: nearly right ones, and some that are none."""
    header = {
        "__metadata__": {"format": mark, "page": mark, mark: mark, "carry_lab": json.dumps({"note": mark})},
        f"params/{mark}": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
    }
    raw = json.dumps(header).encode()
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr(f"{mark}.txt", mark)
    npz = io.BytesIO()
    np.savez(npz, **{mark: np.zeros(3)})
    notebook = {
        "nbformat": 4, "nbformat_minor": 5, "metadata": {"title": mark},
        "cells": [{"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "execution_count": None,
                   "source": f"{mark} = 1\nraise ValueError('{mark}')\n"}],
    }  # fmt: skip
    contents = {
        "safetensors": len(raw).to_bytes(8, "little") + raw + b"\0\0\0\0",
        "bad.safetensors": mark.encode() * 50,
        "zip.safetensors": zipped.getvalue(),
        "npz.safetensors": npz.getvalue(),
        "json": json.dumps({mark: [mark]}).encode(),
        "py": f"import {mark}\nprint('{mark}')\n".encode(),
        "ipynb": json.dumps(notebook).encode(),
        "bad.ipynb": b"{" + mark.encode(),
        "md": f"```python\n{mark}\n```\n".encode(),
    }
    made = []
    for ending, data in contents.items():
        path = folder / f"{mark}.{ending}"
        path.write_bytes(data)
        made.append(path)
    return made


def upload_everywhere(page: Page, given: list[Path]) -> int:
    """Puts each file into each box for files of the page; how many boxes there were."""
    page.wait_for_function("() => !document.querySelector('[data-testid=stSkeleton]')", timeout=SLOW)
    page.locator("input[type=file]").first.wait_for(state="attached", timeout=SLOW)
    boxes = page.locator("input[type=file]").count()
    for number in range(boxes):
        for path in given:
            # What was taken may have been put away, and the boxes drawn anew.
            box = page.locator("input[type=file]").nth(min(number, page.locator("input[type=file]").count() - 1))
            box.set_input_files(path, timeout=SLOW)
            ready(page)
    return boxes


# --- the test -------------------------------------------------------------------------------------------------------


def test_the_search_finds_what_is_written(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.bin").write_bytes(b"\0\xff" + MARK.upper().encode() + b"\n")
    data = {str(path): path.read_bytes() for path in files_below(tmp_path)}
    assert len(lines_with(MARK, data)) == 1
    assert lines_with(MARK, {"x": b"nothing"}) == []


def test_no_mark_in_uploads_answers_rooms_or_links_is_written_anywhere(
    server: Server, page: Page, tmp_path: Path
) -> None:
    given = files(tmp_path, f"{MARK}file")
    # Boxes for files: parameters, baselines, the state of a training, scripts and notebooks.
    boxes = {}
    for path in ("/", "/lstm", "/sequence", "/gradients?of=cells", "/gradients?of=training"):
        opened(page, server, path)
        boxes[path] = upload_everywhere(page, [one for one in given if one.suffix in {".safetensors", ".json"}])
    assert boxes["/"] >= 1
    assert boxes["/lstm"] >= 2
    assert boxes["/sequence"] >= 2
    assert boxes["/gradients?of=training"] >= 1
    for one in given:
        if one.suffix in {".py", ".ipynb", ".md"}:
            opened(page, server, "/doctor")
            page.get_by_role("button", name="Open", exact=False).first.click(timeout=SLOW)
            page.locator("input[type=file]").first.set_input_files(one, timeout=SLOW)
            ready(page)
    # Links of a class, and of everything that links can say since.
    link, room = f"{MARK}link", f"{MARK}room"
    for path in (
        f"/?hide={link},scan_{link}&lock={link}&present={link}&lesson={link}",
        f"/lessons?n={link}&lesson=1.{link}",
        f"/lstm?lesson=3.{link}&hide=lstm_{link}&w={link}&nums={link}",
        f"/sequence?w={link}&cell={link}",
        f"/gradients?of=training&model={link}&opt={link}",
        f"/challenges?s={link}&seed={link}&c={link}&t={room}",
        f"/challenges?t=ABCD-{room}",
        f"/status?{link}={link}&again={link}",
        f"/catalogue?code={link}&{link}",
    ):
        opened(page, server, path)
    # Answers to challenges: what is predicted, and a script that is mended.
    opened(page, server, f"/challenges?c={PREDICT.number}")
    for box in page.locator("[data-testid=stForm] input[type=text]").all():
        box.fill(f"{MARK}answer")
    page.locator(".st-key-challenges_check button").first.click()
    ready(page)
    opened(page, server, f"/challenges?c={FIX.number}")
    typed_into_editor(page, f"{MARK}fix = 1\nraise ValueError('{MARK}fix')\n")
    page.locator(".st-key-challenges_check button").first.click()
    expect(page.locator(".st-key-verdict")).not_to_contain_text("Checking", timeout=SLOW)
    ready(page)
    # A room of a class: its code as it is typed, and what a tab says it had counted.
    opened(page, server, "/challenges")
    code = page.locator(".st-key-challenges_tally input")
    code.fill(f"{MARK[:4]}-{MARK[4:9]}")
    code.press("Enter")
    ready(page)
    page.get_by_role("button", name="Open a class tally").click()
    expect(page.locator(".cl-room strong")).to_have_text(re.compile(r"\w{4}"), timeout=SLOW)
    key = page.locator(".cl-room strong").inner_text()
    learner = page.context.new_page()
    learner.add_init_script(
        f"sessionStorage.setItem('carry-lab-counted', JSON.stringify({{{key}: ['{MARK}tab'], '{MARK}tab': ['1']}}))"
    )
    opened(learner, server, f"/challenges?c={PREDICT.number}&t={key}")
    learner.locator(".st-key-challenges_take_part label").click()
    expect(learner.locator(".st-key-challenges_tally_notice")).to_contain_text("On.", timeout=SLOW)
    ready(learner)
    # What a report is told of its data; a declared word that is none.
    opened(page, server, "/")
    page.locator(".st-key-scan_export button").first.click()
    page.get_by_role("button", name="Report", exact=True).last.click()
    box = page.get_by_role("dialog", name="Contract report")
    box.get_by_text("What the data should be (optional)").click()
    for field in box.locator("input[type=text]").all():
        if field.get_attribute("role") != "combobox":
            field.fill(f"{MARK}declared")
            field.press("Tab")
    box.get_by_role("button", name="Make the report").click()
    page.wait_for_timeout(500)
    ready(page)
    # A script by link, that leaves the mark in every way that a worker could.
    opened(page, server, f"/doctor?s={pack(f'{MARK}s = 1' + chr(10) + f'print({MARK}s, {MARK!r}); 1/0')}")
    page.locator(".st-key-doctor_run button").click(timeout=SLOW)
    expect(page.locator(".st-key-verdict")).to_contain_text("raised", timeout=SLOW)
    strange_requests(server)
    opened(page, server, "/status")
    shown = page.locator("[data-testid=stApp]").inner_text()

    written = server.written()
    assert "carry_lab_seconds_count" in written["measures"].decode()
    assert server.running.said  # the log is where we look
    assert any(place.endswith("server.log") for place in written)
    assert lines_with(MARK, written) == []
    assert MARK not in shown.lower()
    assert "Traceback" not in server.running.said
    # Parts of the room's code that were typed, and the room that was opened, are nobody's business either.
    assert not re.search(rf"\b{key}\b", server.running.said)


def typed_into_editor(page: Page, text: str) -> None:
    """Replaces what is in the editor, or in the plain text area that stands in for it."""
    editor = page.locator(".cm-content, [data-testid=stMain] textarea").first
    editor.wait_for(timeout=SLOW)
    editor.click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)
    page.wait_for_timeout(800)
    ready(page)


def strange_requests(server: Server) -> None:
    """What no browser of ours would send: the mark as host, origin, agent, cookie, path and body."""
    port, mark = server.running.port, f"{MARK}raw"
    names = "Host User-Agent Referer X-Forwarded-For X-Forwarded-Host X-Real-IP Accept-Language".split()
    headers = {
        **dict.fromkeys(names, mark),
        "Cookie": f"_streamlit_xsrf={mark}; a={mark}",
        "Authorization": f"Bearer {mark}",
    }
    for path in (
        "/",
        f"/?{mark}={mark}",
        f"/lstm/{mark}?x={mark}",
        f"/_stcore/{mark}",
        f"/media/{mark}.png",
        f"/component/{mark}/x",
    ):
        get(port, path, headers)
        get(port, path, headers, "POST", mark.encode())
    form = {"Content-Type": f"multipart/form-data; boundary={mark}"}
    get(port, f"/_stcore/upload_file/{mark}/{mark}", form, "PUT", f"--{mark}\r\n\r\n{mark}\r\n--{mark}--\r\n".encode())
    for path in (f"/metrics?{mark}={mark}", f"/{mark}"):
        get(server.metrics, path, {"User-Agent": mark, "Host": mark})
    for host, origin in ((mark, f"http://127.0.0.1:{port}"), (f"127.0.0.1:{port}", f"https://{mark}.example")):
        with contextlib.suppress(InvalidStatus):
            connect(
                f"ws://127.0.0.1:{port}/_stcore/stream?{mark}", origin=origin, open_timeout=20, compression=None,
                subprotocols=["streamlit", mark], additional_headers={"X-Other": mark} | ({} if ":" in host else {"Host": host}),
            ).close()  # fmt: skip
    with socket.create_connection(("127.0.0.1", port), timeout=20) as raw:
        raw.sendall(f"GET /{mark} HTTP/1.1\r\nHost: {mark}\r\n{mark}\r\n\r\n".encode())
        raw.recv(1000)
    assert wait_until(lambda: get(port, "/_stcore/health")[0] == 200, 10)
