"""The contract report in the "Export" menu, through AppTest, from app.py. The worker is this process itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.report import worker
from core.report.parts import Part
from core.report.wanted import SCRIPT, from_link
from core.sandbox.pool_ticket import Done, Stopped, StopReason
from pages.widgets import doctor_backend, report_panel

ROOT = Path(__file__).resolve().parents[2]
#: What the pool was asked in this test.
asked = []
#: Parts that are stopped instead of answered, by reason.
stopped = {}


class Ticket:
    place = 0

    def __init__(self, result):
        self.result = result

    def wait(self, seconds):
        return True

    def cancel(self):
        pass


class Pool:
    """Answers at once, as a worker would; requests are plain data."""

    def submit(self, session, request):
        request = json.loads(json.dumps(request))
        asked.append(request)
        reason = stopped.get(request.get("part"))
        if reason is StopReason.REPLACED:
            del stopped[request["part"]]  # once: by what another panel asked in between
        if reason is not None:
            return Ticket(Stopped(reason))
        answer = worker.handle(request)
        return Ticket(Done(json.loads(json.dumps(answer, allow_nan=False))))

    def reserve(self, session):
        pass

    def release(self, session):
        pass

    def status(self):
        raise NotImplementedError

    def close(self):
        pass


@pytest.fixture(autouse=True)
def _pool(monkeypatch):
    asked.clear()
    stopped.clear()
    monkeypatch.setattr(doctor_backend, "start", Pool)
    monkeypatch.setattr(report_panel, "seat", lambda: doctor_backend.Seat(Pool(), "me"))


def opened(page: str, **query: str) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    if page != "scan":
        at.run()
        at.switch_page(f"pages/views/{page}.py")
    for name, value in query.items():
        at.query_params[name] = value
    at.run()
    assert not at.exception
    return at


def button(at: AppTest, key: str):
    return next(one for one in at.button if one.key == key)


def text_of(at: AppTest) -> str:
    return "\n".join(str(one.proto.body) for one in at.get("html"))


@pytest.mark.parametrize("page", ["scan", "lstm", "sequence", "gradients", "doctor"])
def test_every_page_has_the_item_and_asks_nothing_until_it_is_clicked(page):
    at = opened(page)
    item = button(at, f"{page}_report")
    assert item.label == "Report"
    assert item.disabled is (page == "doctor")  # there is no script yet
    assert not [one for one in asked if one["wish"] == worker.WISH]
    assert not [one for one in at.button if one.key == f"{page}_report_make"]


def test_what_cannot_be_read_cannot_be_reported():
    assert button(opened("scan", x="1, nothing", **{"from": "paste"}), "scan_report").disabled


def dialog(page: str, text: str, values: dict, with_page: bool = True):
    """The dialog by itself: AppTest runs the whole page where a browser runs the dialog alone."""
    from core.report.wanted import Wanted
    from pages.widgets import report_panel

    report_panel._dialog(page, Wanted(page, values, text=text) if with_page else None)


def made(page: str = "scan", text: str = "", declared: dict[str, str] | None = None, **link: str) -> AppTest:
    """The dialog opened, filled in, and the report made."""
    values = {} if page == SCRIPT else from_link(page, link).values
    at = AppTest.from_function(dialog, args=(page, text, values), default_timeout=120).run()
    assert not at.exception
    assert not [one for one in asked if one["wish"] == worker.WISH]
    for name, value in (declared or {}).items():
        field = next(one for one in (*at.text_input, *at.selectbox) if one.key == f"{page}_report_{name}")
        field.set_value(value)
    button(at, f"{page}_report_make").click().run()
    assert not at.exception
    return at


def test_the_report_is_made_part_by_part_and_shown_in_place():
    at = made()
    assert list(dict.fromkeys(one["part"] for one in asked)) == [str(part) for part in Part]
    said = text_of(at)
    assert "PASS" in said
    assert "Every value lies in the declared range" in said
    assert "What this does not prove" in said
    files = {one.key for one in at.get("download_button")}
    assert files == {"scan_report_md", "scan_report_json"}
    assert not [one for one in at.button if one.key == "scan_report_cancel"]


def test_a_rerun_makes_nothing_anew():
    at = made()
    count = len(asked)
    at.run()
    assert len(asked) == count
    assert "PASS" in text_of(at)
    assert button(at, "scan_report_make").label == "Make it again"


def test_what_is_declared_is_checked():
    at = made(declared={"low": "0", "high": "2", "features": "litres"})
    said = text_of(at)
    assert "FAIL" in said
    assert "1 of 3 values lie outside 0 to 2" in said
    assert asked[0]["declared"]["high"] == "2"


def test_what_cannot_be_declared_is_said_at_its_place_and_nothing_is_asked():
    at = made(declared={"axes": "TT"})
    assert [one.value for one in at.error] == [
        "Use each of the letters T, B, F, H once at most, in the order of the axes: TBF."
    ]
    assert not asked
    assert next(one for one in at.text_input if one.key == "scan_report_axes").value == "TT"


def test_a_part_that_is_stopped_leaves_a_report_that_says_so():
    stopped["jit"] = StopReason.TIME
    at = made()
    said = text_of(at)
    assert "INCOMPLETE" in said
    assert "It was stopped after" in said
    assert {one.key for one in at.get("download_button")} == {"scan_report_md", "scan_report_json"}


def test_a_part_that_is_stopped_for_its_time_is_tried_once_more():
    stopped["jit"] = StopReason.TIME
    made()
    assert [one["part"] for one in asked].count("jit") == 1 + report_panel.RETRIES


def test_a_part_that_gave_way_to_another_panels_job_is_handed_in_again():
    stopped["jit"] = StopReason.REPLACED
    at = made()
    assert [one["part"] for one in asked].count("jit") == 2
    assert "INCOMPLETE" not in text_of(at)
    assert not at.error


def test_its_place_in_the_queue_is_said(monkeypatch):
    monkeypatch.setattr(Ticket, "place", 4)
    monkeypatch.setattr(Ticket, "wait", lambda self, seconds: False)
    at = made()
    # What a run shows while it waits is gone from its last state.
    assert "4 in the queue" in report_panel._progress(at.session_state["scan:report"])


def test_without_its_first_part_there_is_no_report_but_a_sentence():
    stopped["given"] = StopReason.BUSY
    at = made()
    assert [one.value for one in at.error] == ["All workers and the queue are full. Try again in a moment."]
    assert len(asked) == 1
    assert not at.get("download_button")


def test_an_answer_that_is_none_is_a_sentence(monkeypatch):
    monkeypatch.setattr(worker, "handle", lambda _request: {"nonsense": 1})
    at = made()
    assert [one.value for one in at.error] == ["The worker's answer could not be read. Try again."]


def test_a_script_has_a_report_too_and_its_words_are_no_html():
    at = made(SCRIPT, "# <script>alert(1)</script>\nimport jax\nprint(jax.lax.scan(lambda c, x: (c, x), 0.0, None, 3))")
    assert "<script>" not in text_of(at)
    assert "No rule of the catalogue is broken" in text_of(at)


def test_nothing_to_report_of_is_a_sentence():
    at = AppTest.from_function(dialog, args=("scan", "", {}, False), default_timeout=60).run()
    assert [one.value for one in at.caption] == [report_panel.NOTHING]
