"""The Gradients page through AppTest, always from app.py."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.inputs.gradient_fields import STEP_NAMES
from core.runners.cache import count_compiles

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 120
#: Small enough to be quick; the same for every test, so that programs are compiled once.
SMALL = {"v": "1", "T": "12", "hidden": "5", "in": "2"}


def opened(query: dict[str, str] | None = None) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT)
    at.run()
    for name, value in (SMALL if query is None else query).items():
        at.query_params[name] = value
    at.switch_page("pages/views/gradients.py")
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


def headline(at: AppTest) -> str:
    (found,) = blocks(at, 'class="cl-memory"')
    return found


def cards(at: AppTest) -> str:
    return " | ".join(blocks(at, '<section class="cl-card'))


def marks(at: AppTest) -> str:
    return " | ".join(blocks(at, 'class="cl-mark'))


def tables(at: AppTest) -> str:
    return " | ".join(blocks(at, 'class="cl-table'))


def figure(at: AppTest, number: int) -> dict:
    return json.loads(at.get("plotly_chart")[number].proto.spec)


def curve(at: AppTest, name: str) -> list:
    return next(trace["y"] for trace in figure(at, 0)["data"] if trace["name"] == name)


def number(at: AppTest, name: str, value: float) -> AppTest:
    at.number_input(key=f"gradients_{name}").set_value(value)
    return ran(at)


def slide(at: AppTest, name: str, value: float) -> AppTest:
    at.slider(key=f"gradients_{name}").set_value(value)
    return ran(at)


def choose(at: AppTest, name: str, value: str) -> AppTest:
    (group,) = [g for g in at.get("button_group") if g.key == f"gradients_{name}"]
    group.set_value(value)
    return ran(at)


def press(at: AppTest, key: str) -> AppTest:
    at.button(key=f"gradients_{key}").click()
    return ran(at)


# --- cells ------------------------------------------------------------------------------------------------------------


def test_opens_with_a_headline_curves_a_map_and_three_ways_that_agree():
    at = opened({})
    assert strip(at).startswith("✓ Gradients agree")
    assert "equal to jax.grad and to finite differences" in strip(at)
    assert headline(at).startswith("h₅₀ remembers x₀")
    for said in ("● LSTM 8.2·10⁻¹¹ vanishes: halves every 1.5 steps", "■ GRU", "◆ Simple"):
        assert said in headline(at)
    assert [trace["name"] for trace in figure(at, 0)["data"]] == ["LSTM h", "GRU h", "Simple h", "LSTM c"]
    assert figure(at, 0)["layout"]["yaxis"]["type"] == "log"
    assert len({trace["marker"]["symbol"] for trace in figure(at, 0)["data"]}) == 4
    assert figure(at, 1)["data"][0]["type"] == "heatmap"
    assert "finite differences, NumPy in float64" in tables(at)
    assert "✗" not in tables(at)
    assert not marks(at)
    alts = [chart.proto.alt for chart in at.get("plotly_chart")]
    assert "LSTM h: 8.2·10⁻¹¹ at t = 0" in alts[0]
    assert "Map of ‖∂h_s/∂x_t‖ of the LSTM" in alts[1]


def test_a_slider_moves_headline_and_curve_and_compiles_nothing(at):
    before, said = curve(at, "LSTM h"), headline(at)
    others = curve(at, "GRU h")
    with count_compiles() as compiles:
        slide(at, "forget_bias", 3.0)
    assert compiles.count == 0
    assert curve(at, "LSTM h")[0] > 10 * before[0]
    assert curve(at, "GRU h") == others
    assert headline(at) != said
    assert strip(at).startswith("✓ Gradients agree")
    assert dict(at.query_params.items())["fb"] == "3"


def test_the_buttons_let_it_vanish_and_explode(at):
    press(at, "try_explode")
    assert at.number_input(key="gradients_hidden_features").value == 16
    assert "explodes: doubles every" in headline(at)
    assert at.slider(key="gradients_recurrent_scale").value == 3.0
    press(at, "try_vanish")
    assert "explodes" not in headline(at)
    assert headline(at).count("vanishes") == 3
    press(at, "undo")
    assert at.slider(key="gradients_recurrent_scale").value == 3.0


def test_an_exact_zero_is_said_and_not_drawn_on_the_log_axis(at):
    slide(at, "recurrent_scale", 0.0)
    assert curve(at, "Simple h")[:11] == [None] * 11
    (zeros,) = [trace for trace in figure(at, 0)["data"] if trace["name"] == "exactly 0"]
    assert len(zeros["x"]) == 11
    assert any("Simple h: 11 of 12 values are exactly 0" in c.value for c in at.caption)


def test_a_click_on_t_chooses_the_state_after_that_step(at):
    at.session_state["gradients_curves"] = {"selection": {"points": [{"x": 6, "y": 0.1}]}}
    number(at, "row", 7)
    assert headline(at).startswith("h₇ remembers x₀")
    assert len(curve(at, "LSTM h")) == 7
    press(at, "last")
    assert headline(at).startswith("h₁₂ remembers x₀")


def test_a_row_that_is_gone_gives_way_to_the_last(at):
    number(at, "row", 11)
    number(at, "length", 8)
    assert headline(at).startswith("h₈ remembers x₀")
    assert at.number_input(key="gradients_row").value == 0
    assert headline(opened({**SMALL, "s": "99"})).startswith("h₁₂ remembers x₀")


def test_the_map_is_of_the_chosen_cell_and_part(at):
    lstm = figure(at, 1)["data"][0]["z"]
    choose(at, "map_part", "c")
    assert figure(at, 1)["data"][0]["z"] != lstm
    choose(at, "map_cell", "SimpleCell")
    assert not [g for g in at.get("button_group") if g.key == "gradients_map_part"]
    assert "Simple" in at.get("plotly_chart")[1].proto.alt


def test_the_link_carries_everything(at):
    slide(at, "forget_bias", -2.0)
    number(at, "row", 5)
    choose(at, "map_cell", "GRUCell")
    again = opened(dict(at.query_params.items()))
    assert headline(again) == headline(at)
    assert figure(again, 1) == figure(at, 1)


@pytest.mark.parametrize(
    ("name", "value", "said", "state"),
    [
        ("length", 0, "nothing to differentiate", "◷ Stale"),
        ("hidden_features", 0, "hidden_features must be 1 or more; 0 is no size", "◷ Stale"),
        ("in_features", -2, "in_features must be 1 or more", "◷ Stale"),
        ("length", 10**9, "limit of 512", "⊘ Over a limit"),
        ("hidden_features", 257, "limit of 256", "⊘ Over a limit"),
    ],
)
def test_bad_input_is_said_there_and_the_last_result_stays(at, name, value, said, state):
    good, picture = headline(at), figure(at, 0)
    number(at, name, value)
    assert said in marks(at)
    assert strip(at).startswith(state)
    assert headline(at) == good
    assert figure(at, 0) == picture
    assert at.number_input(key=f"gradients_{name}").value == value
    number(at, name, {"length": 12, "hidden_features": 5, "in_features": 2}[name])
    assert strip(at).startswith("✓")


@pytest.mark.parametrize("query", [{"T": "0"}, {"hidden": "0"}, {"T": "99999"}])
def test_a_first_visit_with_bad_input_has_nothing_to_show_and_says_so(query):
    at = opened({"v": "1", **query})
    assert "nothing to show yet" in strip(at)
    assert not at.get("plotly_chart")


def test_typed_data_with_nan_run_and_are_said(at):
    at.selectbox(key="gradients_source").set_value("typed")
    ran(at)
    assert headline(at).startswith("h₆ remembers x₀")
    at.text_area(key="gradients_numbers").set_value("1 2\nnan 0\n1 1")
    ran(at)
    assert "not finite, first at t = 1" in marks(at)
    assert "NaN" in headline(at)
    at.text_area(key="gradients_numbers").set_value("1 2\n3")
    ran(at)
    assert "Row 2" in marks(at)
    assert strip(at).startswith("◷ Stale")


def test_the_program_stands_there_and_leads_to_the_doctor(at):
    assert "jax.jacfwd(states)(xs)" in at.code[0].value
    (link,) = at.get("page_link")
    assert link.proto.label == "Open in Doctor"
    assert "s=" in link.proto.query_string


# --- a scan -----------------------------------------------------------------------------------------------------------


def test_steps_of_every_kind_open():
    at = opened({"v": "1", "of": "preset"})
    for step in (*STEP_NAMES[::4], "random_walk", "tanh_rnn", "fibonacci"):
        at.selectbox(key="gradients_preset").set_value(step)
        ran(at)
        assert strip(at)[0] in "✓⚠◷○", strip(at)


def test_a_gradient_that_is_not_finite_has_a_card_with_the_guard_as_a_fix():
    at = opened({"v": "1", "of": "preset"})
    assert strip(at).startswith("✓ Gradients agree")
    assert not cards(at)
    press(at, "break_roots_unguarded")
    assert strip(at).startswith("⚠ Contract broken silently")
    assert "Σc = 10" in strip(at)
    assert "N502" in cards(at)
    assert "JAX is silent" in cards(at)
    assert "now 2 → after the fix 0" in cards(at)
    assert any("+ safe = jnp.where(x &gt; 0, x, 1)" in b for b in blocks(at, 'class="cl-diff"')), blocks(at, "cl-diff")
    (wild,) = [t for t in figure(at, 0)["data"] if t["name"] == "not finite"]
    assert wild["x"] == [2, 4]
    assert "✗" in tables(at)
    (apply,) = [b for b in at.button if b.label.startswith("Apply:")]
    assert "N502 gone" in apply.label
    apply.click()
    ran(at)
    assert not cards(at)
    assert strip(at).startswith("✓ Gradients agree")
    assert "Σc = 10" in strip(at)
    assert at.selectbox(key="gradients_preset").value == "sum_of_roots"
    press(at, "undo")
    assert "N502" in cards(at)


def test_typed_numbers_of_a_scan_are_read_and_refused_in_place():
    at = opened({"v": "1", "of": "preset", "step": "sum_of_roots"})
    at.text_area(key="gradients_xs").set_value("4, 9, 25")
    ran(at)
    assert "Σc = 10" in strip(at)
    assert figure(at, 0)["data"][0]["x"] == [0, 1, 2]
    at.text_area(key="gradients_xs").set_value("4, nine")
    ran(at)
    assert "“nine” is no number" in marks(at)
    assert strip(at).startswith("◷ Stale")


def test_whole_numbers_have_no_gradient_and_that_is_said():
    at = opened({"v": "1", "of": "preset", "step": "fibonacci"})
    assert "holds no floating-point number" in marks(at)


# --- one update -------------------------------------------------------------------------------------------------------


def test_one_update_says_losses_norms_and_what_the_mode_does():
    at = opened({"v": "1", "of": "training", "hidden": "5"})
    assert strip(at).startswith("✓ Contract kept")
    assert headline(at).startswith("Loss ")
    assert "1 key drawn, split into 8" in headline(at)
    assert "cell.hf.kernel float32[5,5]" in tables(at)
    assert "eval, with two different keys at hand: deterministic 0 ✓" in tables(at)
    assert "random" in tables(at)
    assert "✗" not in tables(at)
    assert len(figure(at, 0)["data"][0]["y"]) == 21
    choose(at, "mode", "eval")
    assert "not asked: nothing is dropped" in headline(at)


def test_training_without_rngs_raises_l318_and_both_fixes_work():
    at = opened({"v": "1", "of": "training", "hidden": "5"})
    good = headline(at)
    press(at, "break_rngs")
    assert strip(at).startswith("✗ Contract broken")
    assert "JAX raises ValueError" in strip(at)
    assert "L318" in cards(at)
    assert "JAX: no error" not in cards(at)
    assert headline(at) == good
    first, second = [b for b in at.button if b.label.startswith("Apply:")]
    assert "rngs" in first.label
    assert "eval" in second.label
    second.click()
    ran(at)
    assert not cards(at)
    assert strip(at).startswith("✓ Contract kept")
    press(at, "undo")
    (first, _) = [b for b in at.button if b.label.startswith("Apply:")]
    first.click()
    ran(at)
    assert not cards(at)
    assert headline(at) == good


def test_a_loss_that_is_not_finite_is_said():
    at = opened({"v": "1", "of": "training", "hidden": "5", "lr": "10.0", "n": "60"})
    assert any("the loss is not finite" in c.value for c in at.caption)


def test_views_keep_their_own_inputs(at):
    slide(at, "forget_bias", 2.0)
    said = headline(at)
    choose(at, "of", "preset")
    choose(at, "of", "training")
    choose(at, "of", "cells")
    assert at.slider(key="gradients_forget_bias").value == 2.0
    assert headline(at) == said


def test_two_sessions_share_nothing():
    one, other = opened(), opened()
    slide(one, "forget_bias", 5.0)
    before = headline(other)
    ran(other)
    assert headline(other) == before
    assert headline(one) != before
