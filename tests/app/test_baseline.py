"""The panel "Baseline" through AppTest. A browser runs a case between two looks; here the test does."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.base.line import Line
from core.regress.file import from_bytes
from pages.widgets import baseline_work
from pages.widgets.baseline_work import Comparing, go_on
from tests.unit.regress.support import changed, recorded

ROOT = Path(__file__).resolve().parents[2]
VIEWS = ("scan", "lstm", "sequence", "gradients")


def opened(page: str, **query: str) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    for name, value in query.items():
        at.query_params[name] = value
    at.run()
    if page != "scan":
        for name, value in query.items():
            at.query_params[name] = value
        at.switch_page(f"pages/views/{page}.py").run()
    assert not at.exception
    return at


def desk(at: AppTest, page: str):
    return at.session_state[f"{page}:baseline"]


def work_off(at: AppTest, page: str) -> AppTest:
    while desk(at, page).now is not None:
        assert go_on(desk(at, page)) == 0
    return at.run()


def given(at: AppTest, page: str, data: bytes) -> AppTest:
    desk(at, page).comparing = Comparing("given.safetensors", data)
    return work_off(at.run(), page)


def words(at: AppTest) -> str:
    return "\n".join(block.proto.body for block in at.get("html"))


def button(at: AppTest, page: str, name: str):
    return at.button(key=f"{page}_baseline_{name}")


@pytest.mark.parametrize("page", VIEWS)
def test_the_panel_is_there_and_nothing_is_run_unasked(page):
    at = opened(page, **({"T": "6", "hidden": "3"} if page == "gradients" else {}))
    assert not button(at, page, "record").disabled
    assert "Seven small cases" in words(at)
    assert desk(at, page).now is None


def test_recorded_and_compared_on_the_scan_page():
    at = opened("scan", step="running_variance")
    button(at, "scan", "record").click().run()
    assert "Recording: standard (1 of 7)." in words(at)
    assert button(at, "scan", "record").disabled
    work_off(at, "scan")
    assert "7 cases" in words(at)
    assert "Nothing in it was typed" in words(at)
    data = desk(at, "scan").recording.data
    assert from_bytes(data).values["step"] == "running_variance"
    given(at, "scan", data)
    assert "Same" in words(at)
    assert "Versions are the same as then." in words(at)
    assert "of the page Scan: step = running_variance." in words(at)
    # Something else on the page: what was recorded is of the inputs before, and says so.
    at.selectbox(key="scan_step").set_value("horner").run()
    assert [caption.value for caption in at.caption if "inputs before" in caption.value]


def test_what_moved_is_shown_with_its_stage():
    _, data = recorded("step=random_walk")

    def move(document):
        document["values"]["seed"] = 3

    at = given(opened("scan"), "scan", changed(data, move))
    assert "Moved" in words(at)
    assert "first at stage “keys”: case standard, leaf keys" in words(at)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b"\x80\x04N.", "This is a pickle"),
        (b"PK\x03\x04" + b"\0" * 99, "nothing is unpacked"),
        (b"\x10\0\0\0\0\0\0\0{}", "cut short"),
    ],
)
def test_what_cannot_be_read_is_said_and_nothing_is_changed(data, says):
    at = opened("scan", step="horner")
    before = dict(at.session_state["scan:values"])
    given(at, "scan", data)
    assert any(says in block for block in (words(at), *(m.value for m in at.markdown), *(e.value for e in at.error)))
    assert at.session_state["scan:values"] == before


def test_typed_numbers_are_kept_only_where_the_box_is_ticked():
    query = {"from": "paste", "x": "31.4159, 27.1828"}
    at = opened("scan", **query)
    button(at, "scan", "record").click().run()
    work_off(at, "scan")
    assert b"31.4159" not in desk(at, "scan").recording.data
    assert "Typed numbers are not in the file" in words(at)
    at.checkbox(key="scan_baseline_own").check().run()
    button(at, "scan", "record").click().run()
    work_off(at, "scan")
    assert b"31.4159" in desk(at, "scan").recording.data
    assert "The numbers that were typed are in the file." in words(at)


def test_a_state_that_does_not_run_cannot_be_recorded():
    at = opened("scan", len="99")
    assert button(at, "scan", "record").disabled


def test_a_recording_can_be_called_off():
    at = opened("scan")
    button(at, "scan", "record").click().run()
    button(at, "scan", "cancel").click().run()
    assert desk(at, "scan").now is None
    assert not button(at, "scan", "record").disabled


def test_one_case_at_a_time_in_the_whole_process_and_who_waits_sees_the_place(monkeypatch):
    monkeypatch.setattr(baseline_work, "_LINE", Line())
    at = opened("scan")
    assert baseline_work._LINE.come("somebody else") == 0
    button(at, "scan", "record").click().run()
    assert baseline_work._LINE.come("a third one") == 1
    mine = desk(at, "scan")
    before = mine.now.done
    assert go_on(mine) == 2
    assert mine.now.done == before
    at.run()
    assert "Number 2 in the queue" in words(at)
    baseline_work._LINE.leave("somebody else")
    baseline_work._LINE.leave("a third one")
    assert go_on(mine) == 0
    at.run()
    assert "Recording: " in words(at)
    assert mine.now.done != before


def test_a_fault_of_ours_ends_the_job_with_a_sentence(monkeypatch, caplog):
    at = opened("scan", **{"from": "paste", "x": "31.4159"})
    button(at, "scan", "record").click().run()

    def fails():
        raise RuntimeError("31.4159 is nobody's business")

    monkeypatch.setattr(desk(at, "scan").recording.recorder, "step", fails)
    work_off(at, "scan")
    assert desk(at, "scan").now is None
    assert "31.4159" not in caplog.text
    assert any("failed here, not you" in block for block in (words(at), *(m.value for m in at.markdown)))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"backend": "\ud800"}, "has a letter that cannot be shown, at backend"),
        ({"versions": {"jax": "<script>alert(1)</script>"}}, "jax &lt;script&gt;alert(1)&lt;/script&gt; →"),
        (
            {"tolerance": {"cpu": {"float32": [0.1, 0.1]}}},
            "wider than a recording here would have it (float32 rtol 1e-5",
        ),
    ],
)
def test_what_a_file_says_of_itself_is_shown_as_text_or_refused(change, says):
    _, data = recorded()
    at = given(opened("scan"), "scan", changed(data, lambda document: document.update(change)))
    assert not at.exception
    assert says in words(at)
    assert "<script" not in words(at)
