"""The status page through AppTest, always from app.py."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import pages.widgets.doctor_backend as doctor_backend
from core.base import limits
from core.base.limits import read_limits
from core.base.measures import CHECKS, FAULTS, PAGES, TIMES, Part, Spread
from core.sandbox.pool_ticket import PoolStatus, StopReason

ROOT = Path(__file__).resolve().parents[2]
WALLS = (
    ("Files", True, "Landlock (ABI 7): reads libraries only."),
    ("TCP", False, "This kernel offers no Landlock here."),
)


class Pool:
    """A pool that only says how it is."""

    def __init__(self) -> None:
        self.now = PoolStatus(
            alive=True, limit=2, running=1, queued=3, spare=2, made=5, lost=2, memory=430_000_000,
            stopped={StopReason.TIME: 4}, walls=WALLS,
        )  # fmt: skip

    def status(self) -> PoolStatus:
        return self.now

    def close(self) -> None:
        pass


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    made = Pool()
    st.cache_resource.clear()
    monkeypatch.setattr(doctor_backend, "start", lambda: made)
    yield made
    st.cache_resource.clear()


def opened() -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    at.run()
    at.switch_page("pages/views/status.py")
    return ran(at)


def ran(at: AppTest) -> AppTest:
    at.run()
    assert not at.exception
    assert not at.error, [e.value for e in at.error]
    return at


def bodies(at: AppTest) -> list[str]:
    return [element.proto.body for element in at.get("html")]


def table(at: AppTest, head: str) -> list[list[str]]:
    """The rows of the table whose first column has this heading."""
    found = next(body for body in bodies(at) if "cl-table" in body and f'<th scope="col">{head}</th>' in body)
    rows = re.findall(r"<tr>(.*?)</tr>", found.split("<tbody>")[1])
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]
    return [[html.unescape(re.sub("<[^>]+>", "", cell)) for cell in row] for row in cells]


def number_of(cell: str) -> int:
    """A whole number as the page writes it: thousands apart."""
    return int(cell.replace(",", ""))


def strip(at: AppTest) -> str:
    return html.unescape(re.sub("<[^>]+>", " ", next(body for body in bodies(at) if "cl-strip" in body)))


def test_every_limit_is_shown_with_its_value_and_why(pool: Pool) -> None:
    rows = {row[0]: row for row in table(opened(), "limit")}
    known = read_limits({})
    streamlits = {"server.maxUploadSize", "server.maxMessageSize"}
    assert set(rows) == set(known) | streamlits
    assert rows["server.maxUploadSize"][1:4] == ["5", "MB", "config.toml, or STREAMLIT_SERVER_MAX_UPLOAD_SIZE"]
    assert rows["length"][1:4] == ["512", "steps", "default"]
    assert rows["length"][4] == known["length"].why


def test_a_limit_that_the_environment_sets_is_said_to_be(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = read_limits({"CARRY_LAB_LENGTH": "64"})
    monkeypatch.setattr("pages.widgets.status_limits.LIMITS", changed)
    assert limits.LIMITS["length"].value == 512
    rows = {row[0]: row for row in table(opened(), "limit")}
    assert rows["length"][1:4] == ["64", "steps", "CARRY_LAB_LENGTH (default 512)"]
    assert rows["hidden"][3] == "default"


def test_the_walls_and_the_workers_are_as_the_pool_says(pool: Pool) -> None:
    at = opened()
    walls = table(at, "wall")
    assert walls == [["Files", "✓ yes", WALLS[0][2]], ["TCP", "✗ no", WALLS[1][2]]]
    assert table(at, "computing") == [["1", "0", "2", "0", "0", "5", "2", "430 MB"]]
    assert table(at, "why") == [["stopped: the time was over", "4"]]
    assert "1 of 2 workers busy, waiting: 3" in strip(at)


def test_before_the_first_worker_and_without_any_it_says_so(pool: Pool) -> None:
    pool.now = PoolStatus(alive=False, limit=2, trouble="CannotStart")
    at = opened()
    assert "The first worker is being made" in " ".join(caption.value for caption in at.caption)
    assert "There are no workers: CannotStart." in [warning.value for warning in at.warning]
    assert "Not in order" in strip(at)


def scan_runs() -> int:
    """Runs of the Scan page so far in this process."""
    return TIMES.values().get(("scan", Part.PAGE), Spread()).count


def test_runs_and_faults_of_other_pages_are_counted_by_page_and_code(pool: Pool) -> None:
    runs, checks = scan_runs(), CHECKS.total(page="scan")
    faults = FAULTS.total(page="scan", code="S103")
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    at.query_params["v"], at.query_params["step"] = "1", "grows"
    ran(at)
    assert FAULTS.total(page="scan", code="S103") == faults + 1
    assert CHECKS.total(page="scan") == checks + 1
    assert scan_runs() == runs + 1
    at.switch_page("pages/views/status.py")
    ran(at)
    rows = {row[0]: row for row in table(at, "page")}
    assert number_of(rows["scan"][1]) == scan_runs()
    codes = {row[0]: row for row in table(at, "code")}
    assert codes["S103"][1] == "The carry's shape changes inside the step"
    assert number_of(codes["S103"][2]) == FAULTS.total(code="S103")


def test_what_an_address_says_is_not_repeated(pool: Pool) -> None:
    at = opened()
    at.query_params["anything"] = "qzmarkqz"
    ran(at)
    assert "qzmarkqz" not in " ".join(bodies(at))


def test_every_page_of_the_navigation_has_a_name_among_the_measures() -> None:
    source = (ROOT / "app.py").read_text(encoding="utf-8")
    found: dict[str, Any] = {}
    exec(re.search(r"^PAGES = \{.*?^\}", source, re.DOTALL | re.MULTILINE).group(), found)
    paths = [path for group in found["PAGES"].values() for _, _, path in group]
    assert "" in paths
    assert {path or PAGES[0] for path in paths} <= set(PAGES)
