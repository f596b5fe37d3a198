"""The LSTM cell page through AppTest, always from app.py."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.inputs.cell_fields import SWITCHES

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 120


def opened(query: dict[str, str] | None = None) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT)
    at.run()
    for name, value in (query or {}).items():
        at.query_params[name] = value
    at.switch_page("pages/views/lstm.py")
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
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", fragment.replace("<wbr>", ""))).strip()


def blocks(at: AppTest, mark: str) -> list[str]:
    return [text_of(e.proto.body) for e in at.get("html") if mark in e.proto.body]


def strip(at: AppTest) -> str:
    (found,) = blocks(at, 'class="cl-strip')
    return found


def cards(at: AppTest) -> str:
    return " | ".join(blocks(at, '<section class="cl-card'))


def marks(at: AppTest) -> str:
    return " | ".join(blocks(at, 'class="cl-mark'))


def says(at: AppTest) -> str:
    return " ".join(blocks(at, 'class="cl-table cl-says'))


def tables(at: AppTest) -> str:
    return " | ".join(blocks(at, 'class="cl-table'))


def drawings(at: AppTest) -> list:
    """Components of the page itself: beside the strip there is one that copies the link."""
    return [one for one in at.get("bidi_component") if not one.proto.id.endswith(("_copy_link", "keep_focus"))]


def drawing(at: AppTest) -> dict:
    (found,) = drawings(at)
    return json.loads(found.proto.json)


def number(at: AppTest, name: str, value: int) -> AppTest:
    at.number_input(key=f"lstm_{name}").set_value(value)
    return ran(at)


def choose(at: AppTest, name: str, value: str) -> AppTest:
    (group,) = [g for g in at.get("button_group") if g.key == f"lstm_{name}"]
    group.set_value(value)
    return ran(at)


def press(at: AppTest, key: str) -> AppTest:
    at.button(key=key).click()
    return ran(at)


# --- opening ----------------------------------------------------------------------------------------------------------


def test_opens_on_the_case_of_the_guide(at):
    assert strip(at).startswith("✓ Contract kept")
    assert (
        "LSTMCell: carry in (2, 4), (2, 4) → new carry (2, 4), (2, 4), output (2, 4) · all finite · equals the"
        in strip(at)
    )
    assert "equals the NumPy formula" in strip(at)
    assert "jax 0.11.2 · jaxlib 0.11.2 · flax 0.12.10 · cpu" in strip(at)
    assert not cards(at)
    assert not marks(at)
    payload = drawing(at)
    assert payload["units"] == 4
    assert payload["series"]["x"]["values"] == [1, 1, 1]
    assert payload["series"]["c"]["values"] == [0, 0, 0, 0]
    assert all(0 < value < 1 for value in payload["series"]["f"]["values"])


def test_shapes_and_checks_stand_beneath(at):
    text = tables(at)
    for said in ("carry[0] float32[2,4] (B=2, H=4)", "output float32[2,4] (B=2, H=4)", "x float32[2,3] (B=2, F=3)"):
        assert said in text
    assert "cell.ii.kernel float32[3,4] (F=3, H=4)" in text
    assert "NumPy formula against the cell" in text
    assert "vmap over the batch against jit 0 ✓" in text
    assert "rtol 1e-5, atol 1e-6" in text
    assert "✗" not in text


def test_the_program_stands_there(at):
    assert "cell = nnx.LSTMCell(\n    3, 4, rngs=nnx.Rngs(0)\n)\n" in at.code[0].value
    assert "carry = cell.initialize_carry(\n    (2, 3), rngs=nnx.Rngs(1)\n)\n" in at.code[0].value


# --- inputs -----------------------------------------------------------------------------------------------------------


def test_another_hidden_size_changes_shapes_and_drawing(at):
    number(at, "hidden_features", 5)
    assert "new carry (2, 5), (2, 5), output (2, 5)" in strip(at)
    assert drawing(at)["units"] == 5
    assert "cell.ii.kernel float32[3,5]" in tables(at)


@pytest.mark.parametrize(
    ("name", "gates", "opens"),
    [
        ("GRUCell", ["r", "z", "n"], "A GRU's carry is one array"),
        ("SimpleCell", [], "A simple cell's carry is one array"),
        ("OptimizedLSTMCell", list("ifgo"), "An LSTM's carry is the pair (c, h)"),
    ],
)
def test_the_other_cells(at, name, gates, opens):
    at.selectbox(key="lstm_cell").set_value(name)
    ran(at)
    assert strip(at).startswith("✓ Contract kept")
    assert name in strip(at)
    assert drawing(at)["gates"] == gates
    (intro,) = blocks(at, 'class="cl-quiet">A cell takes')
    assert opens in intro


def test_seeds_move_the_numbers(at):
    before = drawing(at)["series"]
    number(at, "seed", 1)
    assert drawing(at)["series"]["i"] != before["i"]
    choose(at, "carry", "normal")
    one = drawing(at)["series"]["c"]
    number(at, "carry_seed", 2)
    assert drawing(at)["series"]["c"] != one


def test_the_example_and_the_unit_are_chosen_by_number(at):
    choose(at, "input", "noise")
    first = drawing(at)
    number(at, "example", 1)
    number(at, "unit", 3)
    assert drawing(at)["series"]["x"] != first["series"]["x"]
    assert (drawing(at)["unit"], drawing(at)["example"]) == (3, "example 1")


def test_a_unit_that_is_gone_gives_way(at):
    number(at, "unit", 3)
    number(at, "hidden_features", 2)
    assert at.number_input(key="lstm_unit").value == 1
    assert drawing(at)["unit"] == 1


def test_typed_numbers_begin_with_zeros_and_are_stepped_from(at):
    choose(at, "carry", "typed")
    assert at.text_area(key="lstm_carry_c").value == "0, 0, 0, 0\n0, 0, 0, 0"
    at.text_area(key="lstm_carry_c").set_value("1 2 3 4\n5 6 7 8")
    ran(at)
    assert drawing(at)["series"]["c"]["values"] == [1, 2, 3, 4]
    assert strip(at).startswith("✓")


def test_pasted_numbers_are_the_input(at):
    choose(at, "input", "paste")
    assert at.text_area(key="lstm_numbers").value == "1, 1, 1\n1, 1, 1"
    at.text_area(key="lstm_numbers").set_value("0.5 0 -1\n2 3 4")
    ran(at)
    assert drawing(at)["series"]["x"]["values"] == [0.5, 0, -1]


def test_the_table_shows_what_was_there(at):
    choose(at, "input", "table")
    (frame,) = [d.value for d in at.dataframe if list(d.value.columns) == ["0", "1"]]
    assert frame.shape == (3, 2)
    choose(at, "input", "paste")
    at.text_area(key="lstm_numbers").set_value("7 8 9")
    choose(at, "input", "table")
    (frame,) = [d.value for d in at.dataframe if list(d.value.columns) == ["0"]]
    assert frame["0"].tolist() == ["7", "8", "9"]


def test_the_state_is_in_the_link_and_comes_back_from_it(at):
    number(at, "hidden_features", 6)
    press(at, "lstm_break_batch_1")
    params = dict(at.query_params.items())
    assert params["hidden"] == "6"
    again = opened(params)
    assert "(2, 6)" in strip(again)
    assert "L303" in cards(again)


def test_a_link_with_nonsense_is_refused_by_name():
    at = opened({"cell": "Transformer", "hidden": "many", "v": "1"})
    refused = marks(at)
    assert "Transformer" in refused
    assert "many" in refused
    assert strip(at).startswith("✓")


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place"),
    [("1, 2, x\n1, 2, 3", "Row 1, column 3"), ("1, 2, 3\n1, 2", "Row 2"), ("", "line for each"), ("1, 2, 🙂", "🙂")],
)
def test_what_cannot_be_read_is_said_there_and_the_last_result_stays(at, text, place):
    number(at, "hidden_features", 5)
    good = drawing(at)["series"]
    choose(at, "input", "paste")
    at.text_area(key="lstm_numbers").set_value(text)
    ran(at)
    assert place in marks(at)
    assert strip(at).startswith("◷ Stale")
    assert drawing(at)["stale"]
    assert drawing(at)["series"] == good
    assert at.number_input(key="lstm_hidden_features").value == 5
    at.text_area(key="lstm_numbers").set_value("1 2 3\n4 5 6")
    ran(at)
    assert strip(at).startswith("✓")
    assert not drawing(at)["stale"]


@pytest.mark.parametrize("value", [0, -3])
def test_a_size_that_is_none_is_said_at_its_input(at, value):
    number(at, "hidden_features", value)
    assert f"hidden_features must be 1 or more; {value} is no size" in marks(at)
    assert strip(at).startswith("◷ Stale")
    assert at.number_input(key="lstm_hidden_features").value == value


def test_a_first_visit_with_an_unreadable_link_has_nothing_to_show_and_says_so():
    at = opened({"hidden": "0", "v": "1"})
    assert "nothing to show yet" in strip(at)
    assert not drawings(at)


@pytest.mark.parametrize(("name", "value"), [("hidden_features", 10**9), ("batch", 65), ("in_features", 129)])
def test_over_a_limit_is_said_and_nothing_runs(at, name, value):
    number(at, name, value)
    assert strip(at).startswith("⊘ Over a limit")
    assert "limit of" in strip(at)
    assert "the result below is that of the last inputs within the limits" in strip(at)
    assert "X601" in cards(at)
    assert drawing(at)["stale"]


def test_a_first_visit_over_a_limit_says_that_there_is_no_result():
    at = opened({"hidden": "1000", "v": "1"})
    assert "there is nothing to show yet" in strip(at)
    assert "below" not in strip(at)


def test_numbers_that_are_not_finite_run_and_are_said(at):
    choose(at, "input", "paste")
    at.text_area(key="lstm_numbers").set_value("nan 1 1\n1 1 1")
    ran(at)
    assert "not finite" in strip(at)
    assert "no: c′, h′, y" in tables(at)


# --- break it ---------------------------------------------------------------------------------------------------------

SAID = {
    "no_cell_rngs": ("TypeError", "L307"),
    "no_carry_rngs": ("ValueError", "L306"),
    "time_axis": ("no error", "L308"),
    "wrong_batch": ("TypeError", "L303"),
    "batch_1": ("no error", "L303"),
    "one_array": ("no error", "L301"),
    "swapped": ("no error", "L302"),
    "wrong_width": ("TypeError", "L304"),
    "bfloat16": ("no error", "L314"),
    "input_width": ("TypeError", "L305"),
}


@pytest.mark.parametrize("name", [switch.id for switch in SWITCHES])
def test_each_switch_says_what_jax_does_and_what_the_contract_says(at, name):
    jax, code = SAID[name]
    press(at, f"lstm_break_{name}")
    assert strip(at).startswith("⚠ Contract broken silently" if jax == "no error" else "✗ Contract broken")
    assert f"JAX {jax}" in says(at)
    assert f"Contract {code}, " in says(at)
    assert code in cards(at)
    assert code in marks(at)
    silent = jax == "no error"
    assert ("JAX is silent" in cards(at)) == silent
    assert ("because this number moved" in cards(at)) == silent
    assert (drawing(at)["units"] == 0) != silent
    assert code in {**drawing(at)["broken"], **drawing(at)["flagged"]}.values()
    press(at, f"lstm_break_{name}")
    assert strip(at).startswith("✓ Contract kept")
    assert not cards(at)


WENT = {
    "batch_1": "carry in (1, 4), (1, 4) → new carry (2, 4), (2, 4), output (2, 4)",
    "one_array": "carry in: one array (2, 4) → new carry (2, 4), (2, 4), output (2, 4)",
    "time_axis": "carry in (5, 2, 4), (5, 2, 4) → new carry (5, 2, 4), (5, 2, 4), output (5, 2, 4)",
    "swapped": "carry in (2, 4), (2, 4) → new carry (2, 4), (2, 4), output (2, 4)",
}


@pytest.mark.parametrize("name", WENT)
def test_beside_a_silent_break_the_strip_says_what_went_in_and_nothing_reassuring(at, name):
    press(at, f"lstm_break_{name}")
    assert f"LSTMCell: {WENT[name]} · JAX: no error" in strip(at)
    assert "equals" not in strip(at)
    assert "all finite" not in strip(at)


FIXED = {
    "no_cell_rngs": ("− cell = nnx.LSTMCell(3, 4)", "+ cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))"),
    "wrong_width": ("− c = h = jnp.zeros((2, 5))", "+ carry = cell.initialize_carry((2, 3), rngs=nnx.Rngs(1))"),
    "batch_1": ("− carry = cell.initialize_carry((1, 3)", "+ carry = cell.initialize_carry((2, 3)"),
    "swapped": ("− carry = carry[1], carry[0] # (h, c)",),
}


@pytest.mark.parametrize("name", FIXED)
def test_a_fix_shows_the_lines_of_code_that_change(at, name):
    press(at, f"lstm_break_{name}")
    diff = " | ".join(blocks(at, 'class="cl-diff"'))
    for line in FIXED[name]:
        assert line in diff
    assert "right" not in diff


def test_what_is_wrong_with_the_carry_is_not_marked_at_the_batch(at):
    for name in ("swapped", "bfloat16", "batch_1"):
        press(at, f"lstm_break_{name}")
        assert "(“batch”)" not in cards(at)
        assert "comes from here" not in marks(at)
        assert "initialize_carry made it" not in marks(at)
        press(at, f"lstm_break_{name}")


def test_the_carry_seed_says_why_it_does_nothing_for_zeros(at):
    seed = at.number_input(key="lstm_carry_seed")
    assert seed.disabled
    assert "every seed gives the same zeros" in seed.help
    choose(at, "carry", "normal")
    assert not at.number_input(key="lstm_carry_seed").disabled


def test_a_comparison_that_is_not_made_says_why_beneath_its_name(at):
    press(at, "lstm_break_batch_1")
    assert "vmap over the batch against jit not made: the carry has no batch of its own to map over –" in tables(at)


def test_one_array_with_batch_three_raises(at):
    press(at, "lstm_break_one_array")
    press(at, "lstm_try_batch")
    assert at.number_input(key="lstm_batch").value == 3
    assert "JAX ValueError" in says(at)
    assert "JAX is silent" not in cards(at)


def test_a_fix_is_applied_and_can_be_undone(at):
    press(at, "lstm_break_one_array")
    (apply,) = [b for b in at.button if b.label.startswith("Apply:")]
    assert "L301 gone" in apply.label
    press(at, apply.key)
    assert strip(at).startswith("✓ Contract kept")
    press(at, "lstm_undo")
    assert "L301" in cards(at)


def test_a_switch_that_makes_no_sense_says_why(at):
    at.selectbox(key="lstm_cell").set_value("GRUCell")
    ran(at)
    button = at.button(key="lstm_break_one_array")
    assert button.disabled
    assert "GRUCell" in button.help
    choose(at, "carry", "typed")
    assert at.button(key="lstm_break_no_carry_rngs").disabled


def test_a_broken_switch_survives_a_change_of_cell_without_an_error(at):
    press(at, "lstm_break_one_array")
    at.selectbox(key="lstm_cell").set_value("SimpleCell")
    ran(at)
    assert strip(at).startswith("✓ Contract kept")


def test_two_sessions_share_nothing():
    one, other = opened(), opened()
    number(one, "hidden_features", 3)
    press(one, "lstm_break_batch_1")
    ran(other)
    assert "output (2, 4)" in strip(other)
    assert not cards(other)
