"""The Sequence page through AppTest, always from app.py."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.inputs.sequence_breaks import SWITCHES
from pages.widgets.sequence_grid import _MODULES, joined_modules

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 120


def opened(query: dict[str, str] | None = None) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT)
    at.run()
    for name, value in (query or {}).items():
        at.query_params[name] = value
    at.switch_page("pages/views/sequence.py")
    return ran(at)


def ran(at: AppTest) -> AppTest:
    at.run()
    assert not at.exception
    assert not at.error, [e.value for e in at.error]
    return at


@pytest.fixture
def at() -> AppTest:
    return opened()


def text_of(fragment: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", fragment)).strip()


def blocks(at: AppTest, mark: str) -> list[str]:
    return [text_of(e.proto.body) for e in at.get("html") if mark in e.proto.body]


def strip(at: AppTest) -> str:
    (found,) = blocks(at, 'class="cl-strip')
    return found


def cards(at: AppTest) -> str:
    return " | ".join(blocks(at, '<section class="cl-card'))


def marks(at: AppTest) -> str:
    return " | ".join(blocks(at, 'class="cl-mark'))


def grid(at: AppTest) -> dict:
    (found,) = [one for one in at.get("bidi_component") if not one.proto.id.endswith(("_copy_link", "keep_focus"))]
    return json.loads(found.proto.json)


def figure(at: AppTest) -> dict:
    (found,) = at.get("plotly_chart")
    return json.loads(found.proto.spec)


def equations(at: AppTest) -> str:
    (found,) = blocks(at, 'class="cl-equations"')
    return found


def number(at: AppTest, name: str, value: int) -> AppTest:
    at.number_input(key=f"sequence_{name}").set_value(value)
    return ran(at)


def choose(at: AppTest, name: str, value: str) -> AppTest:
    (group,) = [g for g in at.get("button_group") if g.key == f"sequence_{name}"]
    group.set_value(value)
    return ran(at)


def press(at: AppTest, key: str) -> AppTest:
    at.button(key=key).click()
    return ran(at)


# --- opening ----------------------------------------------------------------------------------------------------------


def test_opens_on_a_ragged_batch_that_is_kept(at):
    assert strip(at).startswith("✓ Contract kept")
    assert "LSTMCell over (B=3, T=8, F=3) → ys (3, 8, 4), final c, h (3, 4) · all finite · equals the NumPy" in strip(
        at
    )
    assert not cards(at)
    assert not marks(at)
    drawn = grid(at)
    assert [row["states"] for row in drawn["rows"]] == ["11111111", "11111000", "11100000"]
    assert drawn["scan"] == "right"
    assert drawn["editable"]


def test_the_equations_equal_the_plot(at):
    said = equations(at)
    assert said.count("✓") == 2
    assert "✗" not in said
    shown = re.search(r"c′ equals the plotted c at t = 5: (−?[\d.]+)", said)
    assert shown is not None
    bold = next(t for t in figure(at)["data"] if t.get("yaxis") == "y2" and t.get("marker"))
    assert bold["y"][5] == pytest.approx(float(shown[1].replace("−", "-")), rel=1e-5)


def test_the_panels_beneath_say_what_padding_does(at):
    text = " | ".join(blocks(at, 'class="cl-table cl-masks'))
    assert "moved by up to" in text
    checks = " | ".join(blocks(at, 'class="cl-table cl-checks'))
    assert "the layer of Flax itself, no jit" in checks
    assert "padding filled with NaN bit-equal ✓" in checks
    assert "✗" not in checks


def test_the_program_stands_there(at):
    code = next(c.value for c in at.get("code") if "nnx" in c.value)
    assert "nnx.RNN(cell" in code
    compile(code, "program", "exec")


# --- choosing ---------------------------------------------------------------------------------------------------------


def test_another_point_has_other_equations(at):
    before = equations(at)
    after = equations(number(at, "t", 2))
    assert after != before
    assert "makes carry 2" in after
    assert "t = 0 is the initial carry" in equations(number(at, "t", 0))


def test_heatmap_and_lines(at):
    at = choose(at, "view", "heatmap")
    assert {t["type"] for t in figure(at)["data"]} >= {"heatmap", "scatter"}
    assert at.query_params["view"] in ("heatmap", ["heatmap"])


def test_what_is_chosen_comes_into_range_of_a_smaller_run(at):
    number(at, "t", 8)
    at = number(at, "length", 4)
    assert at.number_input(key="sequence_t").value == 4
    assert "LSTMCell over (B=3, T=4" in strip(at)
    at = number(at, "length", 8)
    assert at.number_input(key="sequence_t").value == 8, "it comes back with its room"
    at = number(number(at, "length", 4), "t", 2)
    assert number(at, "length", 8).number_input(key="sequence_t").value == 2, "unless another was chosen"


def test_both_directions_of_a_bidirectional_layer(at):
    at = choose(at, "direction", "bidirectional")
    assert grid(at)["scan"] == "both"
    first = figure(at)["data"]
    at = choose(at, "side", "backward")
    assert figure(at)["data"] != first
    assert equations(at).count("✓") == 2
    assert at.query_params["side"] in ("backward", ["backward"])


def test_a_link_opens_at_the_direction_that_was_looked_at():
    forward, backward = (opened({"dir": "bidirectional", **link}) for link in ({}, {"side": "backward"}))
    assert figure(backward)["data"] != figure(forward)["data"]
    assert not blocks(backward, "cl-refused")


@pytest.mark.parametrize("cell", ["GRUCell", "SimpleCell", "OptimizedLSTMCell"])
def test_every_cell(at, cell):
    at.selectbox(key="sequence_cell").set_value(cell)
    at = ran(at)
    assert strip(at).startswith("✓ Contract kept")
    assert "✗" not in equations(at)


@pytest.mark.parametrize(("kind", "name"), [("seed", "seed 1"), ("hidden", "H = 8"), ("cell", "GRUCell")])
def test_a_second_run_is_dashed_with_a_table(at, kind, name):
    at = choose(at, "compare", kind)
    assert any(t.get("line", {}).get("dash") == "dash" for t in figure(at)["data"] if t.get("yaxis") in ("y2", "y3"))
    assert any(f"Against {name}" in text for text in blocks(at, "cl-section"))


# --- breaking ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda s: s.id)
def test_break_it_gives_its_code_and_has_a_way_back(at, switch):
    before = strip(at)
    at = press(at, f"sequence_break_{switch.id}")
    assert not strip(at).startswith("✓ Contract kept LSTM")
    assert switch.code in cards(at) + " ".join(e.label for e in at.expander)
    at = press(at, f"sequence_break_{switch.id}")
    assert strip(at).startswith("✓ Contract kept")
    if switch.id not in ("feature_mask", "unpacked"):  # their sizes stay as they were set
        assert strip(at).split(" · ")[0] == before.split(" · ")[0]


def test_wrong_axis_order_is_drawn_down_the_batch_and_mended(at):
    at = press(at, "sequence_break_axis_order")
    drawn = grid(at)
    assert drawn["misread"]
    assert drawn["scan"] == "down"
    assert figure(at)["layout"]["xaxis"]["title"]["text"].startswith("what the layer takes for t")
    at = press(at, "sequence_apply_1_0")
    assert strip(at).startswith("✓ Contract kept")
    assert not grid(at)["misread"]


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "value"), [("hidden_features", 0), ("batch", -1), ("length", -2), ("in_features", 0)])
def test_a_size_that_is_none_leaves_the_last_result_stale(at, name, value):
    at = number(at, name, value)
    assert "Stale" in strip(at)
    assert marks(at)
    assert grid(at)["stale"]
    assert not grid(at)["editable"]
    assert figure(at)["data"]


@pytest.mark.parametrize("text", ["1101", "abc", "11111111, 111", "2"])
def test_a_mask_of_a_wrong_shape_is_said_at_its_place(text):
    at = opened({"how": "mask", "mask": text})
    assert "Stale" in strip(at)
    assert marks(at)


@pytest.mark.parametrize("text", ["8, 5, 0", "8, 5, 99", "8, 5, -1", "8, 5, 2.5", "8", "8, 5, x", ""])
def test_no_lengths_crash_the_page(text):
    at = opened({"len": text})
    assert strip(at)


@pytest.mark.parametrize("length", [0, 1, 200])
def test_short_and_long_sequences(at, length):
    at = number(at, "length", length)
    assert strip(at).startswith("✓ Contract kept")
    assert grid(at)["reduced"] == (length > 64)


def test_over_a_limit_keeps_the_last_result(at):
    at = number(at, "hidden_features", 100_000)
    assert "Over a limit" in strip(at)
    assert grid(at)["stale"]


def test_nan_in_padding_that_counts_is_found(at):
    at = press(at, "sequence_break_not_masked")
    at.selectbox(key="sequence_padding").set_value("nan")
    at = ran(at)
    assert "not finite" in strip(at)
    assert any("not finite" in a["text"] for a in figure(at)["layout"]["annotations"])


# --- widget -----------------------------------------------------------------------------------------------------------


def test_the_modules_join_into_one():
    widget = ROOT / "pages" / "widgets" / "sequence_grid"
    assert {name for name in _MODULES if not name.startswith("..")} == {path.name for path in widget.glob("*.js")}
    joined = joined_modules()
    assert not re.search(r"^import ", joined, re.MULTILINE)
    assert len(re.findall(r"^export ", joined, re.MULTILINE)) == 1
    declared = re.findall(r"^(?:async )?(?:const|let|class|function) (\w+)", joined, re.MULTILINE)
    assert len(declared) == len(set(declared))


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda switch: switch.id)
def test_a_second_click_takes_back_all_that_the_first_one_brought(at, switch):
    before = dict(at.query_params)
    press(at, f"sequence_break_{switch.id}")
    assert dict(at.query_params) != before
    press(at, f"sequence_break_{switch.id}")
    assert dict(at.query_params) == before
