"""A teacher's link around the pages: hidden, locked, presented; through AppTest, always from app.py."""

from __future__ import annotations

import html
import re
from pathlib import Path

from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[2]


def opened(query: dict[str, str], page: str | None = None) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    for name, value in query.items():
        at.query_params[name] = value
    ran(at)
    if page is not None:
        at.switch_page(page)
        ran(at)
    return at


def ran(at: AppTest) -> AppTest:
    at.run()
    assert not at.exception
    assert not at.error, [e.value for e in at.error]
    return at


def bodies(at: AppTest) -> str:
    return html.unescape(" ".join(element.proto.body for element in at.get("html")))


def address(at: AppTest) -> dict[str, str]:
    return {name: value[0] if isinstance(value, list) else value for name, value in dict(at.query_params).items()}


def test_hidden_controls_keep_their_values_and_the_address_keeps_saying_it():
    at = opened({"hide": "scan_step,scan_length", "v": "1", "step": "running_max"})
    assert ".st-key-scan_step { display: none; }" in bodies(at)
    assert ".st-key-scan_length { display: none; }" in bodies(at)
    assert address(at)["hide"] == "scan_step,scan_length"
    ran(at)
    assert address(at)["hide"] == "scan_step,scan_length"


def test_what_a_class_is_set_to_goes_along_from_page_to_page():
    at = opened({"hide": "lstm_batch", "present": "1"}, "pages/views/lstm.py")
    assert ".st-key-lstm_batch { display: none; }" in bodies(at)
    assert address(at)["present"] == "1"
    assert address(at)["hide"] == "lstm_batch"


def test_a_locked_control_is_put_back_and_the_others_move():
    at = opened({"lock": "lstm_hidden_features"}, "pages/views/lstm.py")
    before = at.number_input(key="lstm_hidden_features").value
    at.number_input(key="lstm_hidden_features").set_value(before + 3)
    at.number_input(key="lstm_batch").set_value(5)
    ran(at)
    assert at.number_input(key="lstm_hidden_features").value == before
    assert at.number_input(key="lstm_batch").value == 5


def test_a_button_may_still_set_a_locked_control():
    at = opened({"lock": "lstm_break_carry"}, "pages/views/lstm.py")
    at.button(key="lstm_break_one_array").click()
    ran(at)
    assert "L301" in bodies(at)
    (apply,) = [button for button in at.button if button.label.startswith("Apply:")]
    apply.click()
    ran(at)
    assert "L301" not in bodies(at)


def test_a_bad_name_is_refused_by_name_and_the_good_ones_count():
    at = opened({"hide": "scan_length,DROP TABLE", "present": "maybe"})
    said = re.sub(r"<[^>]+>", " ", bodies(at))
    assert "“DROP TABLE” is no key of a control" in said
    assert "it must be 0 or 1" in said
    assert address(at)["hide"] == "scan_length"
    ran(at)
    assert "no key of a control" in bodies(at)


def test_presentation_mode_can_be_left():
    at = opened({"present": "1"})
    assert "zoom: 1.7" in bodies(at)
    at.button(key="class_leave").click()
    ran(at)
    assert "zoom: 1.7" not in bodies(at)
    assert "present" not in address(at)


def test_the_panel_makes_the_link_it_promises():
    at = opened({})
    at.multiselect(key="class_hide").set_value(["scan_length"])
    at.toggle(key="class_present").set_value(True)
    ran(at)
    (link,) = [code.value for code in at.code if "present=1" in code.value]
    assert "hide=scan_length" in link
    assert ".st-key-scan_length { display: none; }" not in bodies(at)
