"""A teacher's link around the pages: hidden, locked, presented; through AppTest, always from app.py."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.inputs import cell_fields, gradient_fields, scan_fields, sequence_fields
from core.inputs.class_panels import PANELS, controls
from core.inputs.classroom import MOST

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
    assert at.number_input(key="lstm_hidden_features").disabled
    assert not at.number_input(key="lstm_batch").disabled
    # A browser that sends it all the same: anybody can send anything over the websocket.
    at.session_state["lstm_hidden_features"] = before + 3
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


DECAYS = "exponential_average"
#: Every page of play, in states that draw different inputs: its file, its fields, the query, a control that is drawn.
STATES = (
    (None, scan_fields.scan_fields({}), {}, "scan_reverse"),
    (None, scan_fields.scan_fields({}), {"from": "paste"}, "scan_numbers"),
    (None, scan_fields.scan_fields({}), {"from": "generate", "gen": "noise"}, "scan_features"),
    (None, scan_fields.scan_fields({"step": DECAYS}), {"step": DECAYS}, "scan_param_decay"),
    ("lstm", cell_fields.FIELDS, {"carry": "typed", "x": "paste"}, "lstm_carry_c"),
    ("lstm", cell_fields.FIELDS, {"x": "noise"}, "lstm_input_seed"),
    ("sequence", sequence_fields.FIELDS, {"dir": "reverse", "init": "normal", "vs": "cell"}, "sequence_compare_cell"),
    ("sequence", sequence_fields.FIELDS, {"how": "mask", "init": "typed", "x": "typed"}, "sequence_mask"),
    ("gradients", gradient_fields.FIELDS, {"x": "typed"}, "gradients_forget_bias"),
    ("gradients", gradient_fields.FIELDS, {"of": "preset"}, "gradients_target"),
    ("gradients", gradient_fields.FIELDS, {"of": "training"}, "gradients_learning_rate"),
)


def drawn(at: AppTest) -> dict[str, bool]:
    """Whether each widget with a key is disabled."""
    nodes, found = [at.main], {}
    while nodes:
        node = nodes.pop()
        nodes += list(getattr(node, "children", {}).values())
        if getattr(node, "key", None) and hasattr(getattr(node, "proto", None), "disabled"):
            found[node.key] = node.proto.disabled
    return found


@pytest.mark.parametrize(("page", "table", "query", "one"), STATES, ids=lambda x: x if isinstance(x, str) else None)
def test_each_locked_control_is_disabled_and_no_other(page, table, query, one):
    keys = list(controls(page or "scan", table.fields))
    for locked in (keys[:MOST], keys[MOST:]):
        if not locked:
            continue
        params = {"v": "1", **query, "lock": ",".join(locked)}
        at = opened({} if page else params)
        if page:
            for name, value in params.items():
                at.query_params[name] = value
            at.switch_page(f"pages/views/{page}.py")
            ran(at)
        widgets = drawn(at)
        assert one in widgets
        wrong = {key: off for key, off in widgets.items() if key in keys and off != (key in locked)}
        # The seed of a carry of zeros draws nothing: it is off in any case.
        assert set(wrong) <= {"lstm_carry_seed"}


@pytest.mark.parametrize("lock", ["scan_numbers", "scan_length"])
def test_a_locked_table_takes_no_edit(lock):
    at = opened({"lock": lock})
    (table,) = [frame for frame in at.get("dataframe") if frame.proto.id.endswith("scan_table")]
    assert table.proto.disabled == (lock == "scan_numbers")


@pytest.mark.parametrize(
    "page", ["scan", "lstm", "sequence", "gradients", "doctor", "catalogue", "lessons", "challenges"]
)
def test_what_the_panel_offers_to_hide_is_on_the_page(page):
    at = opened({}, None if page == "scan" else f"pages/views/{page}.py")
    offered = at.multiselect(key="class_hide").options
    assert len(offered) == len(set(offered))
    assert all(f"{name} (whole panel)" in offered for name in PANELS[page].values())
    assert page in {"catalogue", "lessons"} or any("(whole panel)" not in option for option in offered)


def test_a_challenges_set_seed_and_tally_are_in_the_link_for_a_class_and_its_owners_part_is_not():
    at = opened({}, "pages/views/challenges.py")
    at.selectbox(key="challenges_set").set_value("fix")
    at.number_input(key="challenges_seed").set_value(7)
    ran(at)
    at.button(key="challenges_tally_open").click()
    ran(at)
    at.toggle(key="class_present").set_value(True)
    ran(at)
    (link,) = [one.value for one in at.code if "present=1" in one.value]
    query = dict(pair.split("=") for pair in link.partition("?")[2].split("&"))
    assert (query["s"], query["seed"]) == ("fix", "7")
    assert re.fullmatch(r"[A-Z0-9]{4}", query["t"])


def test_the_way_out_of_presentation_mode_cannot_be_hidden():
    at = opened({"present": "1", "hide": "class_leave"})
    assert "st-key-class_leave { display: none; }" not in bodies(at)
    assert "is no key of a control" in bodies(at)


def test_a_teacher_who_opens_the_link_again_finds_what_was_chosen():
    at = opened({"hide": "scan_step,lstm_batch", "lock": "scan_length"})
    assert at.multiselect(key="class_hide").value == ["scan_step"]
    assert at.multiselect(key="class_lock").value == ["scan_length"]
