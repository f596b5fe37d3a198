"""The Scan page through AppTest, always from app.py.

Longer than 500 lines because it is one page, walked from its opening to its last bad input.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.base.limits import LIMITS
from core.steps.library import FAULTY, STEPS

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 60
#: Headings of what is drawn beside and below the plot.
LISTS = ["Against a Python loop, no jit", "Every leaf", "Final carry and ys"]


def opened(query: dict[str, str] | None = None) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT)
    for name, value in (query or {}).items():
        at.query_params[name] = value
    return ran(at)


def ran(at: AppTest) -> AppTest:
    at.run()
    assert not at.exception
    assert not [e for e in at.error if "failed" in e.value], at.error
    return at


@pytest.fixture
def at() -> AppTest:
    return opened()


def html_of(at: AppTest) -> list[str]:
    return [element.proto.body for element in at.get("html")]


def text_of(fragment: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", fragment)).strip()


def strip(at: AppTest) -> str:
    (found,) = [body for body in html_of(at) if 'class="cl-strip' in body]
    return text_of(found)


def cards(at: AppTest) -> list[str]:
    return [text_of(body) for body in html_of(at) if '<section class="cl-card' in body]


def marks(at: AppTest) -> str:
    return " | ".join(text_of(body) for body in html_of(at) if 'class="cl-mark' in body)


def plotted(at: AppTest) -> list[list[float]]:
    import json

    charts = at.get("plotly_chart")
    return [trace["y"] for chart in charts for trace in json.loads(chart.proto.spec)["data"] if "y" in trace]


def axes_of(at: AppTest) -> list[str]:
    import json

    return [json.loads(c.proto.spec)["layout"]["xaxis"]["title"]["text"] for c in at.get("plotly_chart")]


def button(at: AppTest, words: str):
    (found,) = [b for b in at.button if words in b.label]
    return found


# --- opening --------------------------------------------------------------------------------------------------------


def test_opens_on_the_running_sum_with_its_plot(at):
    assert strip(at).startswith("✓ Contract kept")
    assert "final carry 6 · ys [1, 3, 6] · equals the loop" in strip(at)
    assert "jax 0.11.2 · jaxlib 0.11.2 · flax 0.12.10 · cpu" in strip(at)
    assert at.text_input(key="scan_init").value == "0."
    assert plotted(at) == [[0, 1, 3, 6]]
    assert any("A scan runs one step over a sequence" in text_of(body) for body in html_of(at))
    assert not at.query_params


def test_navigation_has_only_what_exists(at):
    at.switch_page("pages/views/scan.py")
    assert "Contract kept" in strip(ran(at))


def test_every_preset_opens_without_a_broken_rule_and_equal_to_the_loop(at):
    for name, step in STEPS.items():
        at.selectbox(key="scan_step").set_value(name)
        ran(at)
        if step in FAULTY:
            assert strip(at).startswith("✗ Contract broken: 1 error"), name
            assert step.breaks in cards(at)[0]
        else:
            assert strip(at).startswith("✓ Contract kept"), (name, cards(at))
            assert "equals the loop" in strip(at), name


def test_an_edited_number_moves_plot_and_verdict(at):
    at.text_input(key="scan_init").set_value("10")
    ran(at)
    assert plotted(at) == [[10, 11, 13, 16]]
    assert "final carry 16" in strip(at)
    assert dict(at.query_params) == {"v": "1", "init": "10"}


def test_a_cell_of_the_table_is_edited():
    at = opened()
    # AppTest cannot click into a data editor: its state is what the browser would send.
    at.session_state["scan:values"] = {**at.session_state["scan:values"], "numbers": "1, 2, 30"}
    at.session_state["scan_numbers"] = "1, 2, 30"
    ran(at)
    assert "final carry 33" in strip(at)


def test_a_new_length_cuts_the_numbers_and_brings_them_back_or_adds_zeros(at):
    at.number_input(key="scan_length").set_value(5)
    ran(at)
    assert plotted(at) == [[0, 1, 3, 6, 6, 6]]
    at.number_input(key="scan_length").set_value(0)
    ran(at)
    assert "S111" in " ".join(cards(at))
    assert "final carry 0 · ys []" in strip(at)
    at.number_input(key="scan_length").set_value(3)
    assert plotted(ran(at)) == [[0, 1, 3, 6]]
    at.number_input(key="scan_length").set_value(2)
    ran(at)
    at.session_state["scan_numbers"] = "7, 2"  # as an edited cell comes in
    ran(at)
    at.number_input(key="scan_length").set_value(3)
    assert "final carry 12" in strip(ran(at))


def test_a_generator_with_features_takes_its_init_along(at):
    at.selectbox(key="scan_source").set_value("generate")
    ran(at)
    at.number_input(key="scan_features").set_value(3)
    ran(at)
    assert strip(at).startswith("✓ Contract kept")
    assert at.text_input(key="scan_init").value == "[0, 0, 0]"
    assert len(plotted(at)) == 3


def test_an_init_of_ones_own_stays_when_xs_changes(at):
    at.text_input(key="scan_init").set_value("5")
    ran(at)
    at.selectbox(key="scan_source").set_value("generate")
    ran(at)
    at.number_input(key="scan_features").set_value(3)
    ran(at)
    assert at.text_input(key="scan_init").value == "5"
    assert "S103" in cards(at)[0]


def test_reverse(at):
    at.checkbox(key="scan_reverse").set_value(True)
    ran(at)
    assert axes_of(at) == ["steps done"]
    assert any("0 steps done is init" in body for body in html_of(at))
    assert "ys [6, 5, 3]" in strip(at)
    assert "equals the loop" in strip(at)


# --- broken ---------------------------------------------------------------------------------------------------------


def test_beside_a_silent_fault_the_strip_does_not_say_that_the_loop_agrees(at):
    button(at, "a list of rows").click()
    ran(at)
    assert "Contract broken silently" in strip(at)
    assert "JAX: no error" in strip(at)
    assert "equals the loop" not in strip(at)


def test_break_it_then_put_it_back(at):
    for words, code in (
        ("let the carry grow", "S103"),
        ("int init", "S104"),
        ("a list of rows", "S110"),
        ("batch-major", "S115"),
    ):
        button(at, words).click()
        ran(at)
        assert re.match("(✗ Contract broken|⚠ Contract broken silently): 1 ", strip(at)), words
        assert code in cards(at)[0]
        button(at, "Put it back").click()
        ran(at)
        assert "final carry 6 · ys [1, 3, 6]" in strip(at)
        assert not at.query_params


def test_what_was_there_comes_back_however_often_one_breaks_it(at):
    at.text_input(key="scan_init").set_value("7")
    ran(at)
    for words in ("let the carry grow", "let the carry grow", "int init", "batch-major", "batch-major"):
        button(at, words).click()
        ran(at)
    button(at, "Put it back").click()
    assert "final carry 13" in strip(ran(at))
    assert at.text_input(key="scan_init").value == "7"
    assert not [b for b in at.button if "Put it back" in b.label]


def test_a_mended_break_can_still_be_put_back(at):
    at.text_input(key="scan_init").set_value("7")
    ran(at)
    button(at, "let the carry grow").click()
    ran(at)
    next(b for b in at.button if b.label.startswith("Apply: ")).click()
    ran(at)
    at.button(key="scan_undo").click()
    ran(at)
    button(at, "Put it back").click()
    assert "final carry 13" in strip(ran(at))


def test_what_is_typed_as_a_button_is_clicked_counts(at):
    at.text_input(key="scan_init").set_value("7")
    button(at, "batch-major").click()
    assert strip(ran(at)).startswith("⚠ Contract broken silently")
    button(at, "Put it back").click()
    assert "final carry 13" in strip(ran(at))


@pytest.mark.parametrize("words", ["a list of rows", "batch-major"])
def test_a_silent_fault_is_proved_with_a_number_that_moves(at, words):
    button(at, words).click()
    card = cards(ran(at))[0]
    assert "JAX is silent" in card
    assert "JAX: no error. Carry Lab: wrong, because this number moved." in card
    before, after = re.search(r"now (\S+) → after the fix (\S+)", card).groups()
    assert float(before) != float(after)


@pytest.mark.parametrize("words", ["let the carry grow", "int init", "a list of rows", "batch-major"])
def test_apply_does_what_was_verified_and_can_be_undone(at, words):
    button(at, words).click()
    ran(at)
    broken = strip(at)
    apply = next(b for b in at.button if b.label.startswith("Apply: "))
    assert re.search(r"\(checked: S\d+ gone\)", apply.label)
    apply.click()
    ran(at)
    assert strip(at).startswith("✓ Contract kept")
    assert not [c for c in cards(at) if "error" in c or "warning" in c]
    at.button(key="scan_undo").click()
    ran(at)
    assert strip(at).split(" · ")[0] == broken.split(" · ")[0]


def test_the_mark_stands_under_the_input_at_fault(at):
    button(at, "int init").click()
    assert "S104" in marks(ran(at)) or "S105" in marks(at)


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("scan_unroll", "-1", "S116"),
        ("scan_unroll", "'3'", "S116"),
        ("scan_length_argument", "4", "S108"),
        ("scan_length_argument", "-1", "S116"),
        ("scan_length_argument", "3.5", "S116"),
    ],
)
def test_rare_arguments_are_flagged_where_they_are_typed(at, key, value, code):
    at.text_input(key=key).set_value(value)
    ran(at)
    assert any(code in card for card in cards(at))
    assert code in marks(at)
    assert at.text_input(key=key).value == value


def test_apply_all_mends_two_faults_at_once(at):
    at.text_input(key="scan_length_argument").set_value("4")
    at.text_input(key="scan_unroll").set_value("-1")
    ran(at)
    assert strip(at).startswith("✗ Contract broken: 2 errors")
    assert [c.split(" ")[1] for c in cards(at)] == ["S108", "S116"]
    assert any("S108 gone, S116 remains" in b.label for b in at.button)
    at.button(key="scan_apply_all").click()
    assert strip(ran(at)).startswith("✓ Contract kept")
    assert (at.text_input(key="scan_length_argument").value, at.text_input(key="scan_unroll").value) == ("", "1")


def test_small_dtypes_and_weak_inits_run(at):
    for dtype in ("int32", "bfloat16", "float16", "int8", "float32"):
        at.selectbox(key="scan_dtype").set_value(dtype)
        ran(at)
        assert strip(at).startswith("✓ Contract kept"), (dtype, cards(at))
        assert "final carry 6" in strip(at)


def test_more_stays_open_while_one_works_in_it(at):
    def more():
        (found,) = [e for e in at.expander if e.label.startswith("More")]
        return found.proto.expanded

    assert not more()
    at.text_input(key="scan_unroll").set_value("2")
    ran(at)
    assert more()
    at.text_input(key="scan_unroll").set_value("1")
    ran(at)
    assert more()


def test_a_silent_fault_alone_is_amber_and_says_so(at):
    button(at, "batch-major").click()
    ran(at)
    assert strip(at).startswith("⚠ Contract broken silently: 1 warning")
    assert any('class="cl-strip cl-warned"' in body for body in html_of(at))


def test_broken_on_purpose_is_not_told_as_good_news(at):
    button(at, "int init").click()
    ran(at)
    assert any('class="cl-undone"' in body and "Broken on purpose" in body for body in html_of(at))
    next(b for b in at.button if b.label.startswith("Apply: ")).click()
    ran(at)
    assert any('class="cl-done"' in body and "Applied" in body for body in html_of(at))


def test_the_smallest_edit_comes_first():
    at = opened({"v": "1", "step": "to_float"})
    assert next(b for b in at.button if b.label.startswith("Apply: ")).label.startswith("Apply: Make init")


def test_time_and_batch_of_one_size_are_a_question():
    at = opened({"v": "1", "from": "generate", "T": "3", "B": "3", "F": "2"})
    assert any("S115 Time or batch first?" in e.label for e in at.expander)


def test_a_generator_says_its_formula_for_its_axes_and_shows_the_seed_where_it_counts(at):
    at.selectbox(key="scan_source").set_value("generate")
    ran(at)
    assert any(c.value == "x[t] = t + 1" for c in at.caption)
    assert not [n for n in at.number_input if n.key == "scan_seed"]
    at.selectbox(key="scan_generator").set_value("noise")
    ran(at)
    at.number_input(key="scan_seed").set_value(4)
    ran(at)
    at.selectbox(key="scan_generator").set_value("ramp")
    ran(at)
    at.selectbox(key="scan_generator").set_value("noise")
    ran(at)
    assert at.number_input(key="scan_seed").value == 4
    at.selectbox(key="scan_source").set_value("table")
    ran(at)
    at.selectbox(key="scan_source").set_value("generate")
    ran(at)
    assert at.selectbox(key="scan_generator").value == "noise"
    assert at.number_input(key="scan_seed").value == 4


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.fixture
def paste(at) -> AppTest:
    at.selectbox(key="scan_source").set_value("paste")
    return ran(at)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("1, two, 3", "Row 1, column 2, character 4: “two” is no number."),
        ("1, 2\n3", "Row 2: has 1 number, but the first one has 2."),
        ("1, 🙂, 3", "“🙂” is no number."),
        ("[1, 2", "a bracket is never closed."),
        ("1, " * 1_700_000, "at most 1000000 are read."),
        ("1, " * 20_001, "at most 20000 are read."),
        ("<script>alert(1)</script>", "is no number."),
    ],
)
def test_unreadable_text_is_said_at_its_place_and_the_last_result_stays(paste, typed, said):
    paste.text_area(key="scan_numbers").set_value(typed)
    ran(paste)
    assert strip(paste).startswith("◷ Stale")
    assert said in marks(paste).replace("&lt;", "<")
    assert plotted(paste) == [[0, 1, 3, 6]]
    assert paste.text_area(key="scan_numbers").value == typed
    assert paste.text_input(key="scan_init").value == "0."
    paste.text_area(key="scan_numbers").set_value("4, 5")
    assert "final carry 9" in strip(ran(paste))


def test_nothing_typed_is_the_empty_sequence(paste):
    paste.text_area(key="scan_numbers").set_value("")
    assert strip(ran(paste)).startswith("✓ Contract kept")
    assert "final carry 0" in strip(paste)


def test_nan_and_inf_are_numbers_and_n501_speaks(paste):
    paste.text_area(key="scan_numbers").set_value("1, nan, inf")
    ran(paste)
    assert strip(paste).startswith("✓ Contract kept, 2 notes")
    assert any("N501" in card for card in cards(paste))
    assert plotted(paste) == [[0, 1, None, None]]


@pytest.mark.parametrize("source", ["table", "generate"])
def test_a_billion_steps_are_over_a_limit_and_the_last_result_stays(at, source):
    at.selectbox(key="scan_source").set_value(source)
    ran(at)
    started = time.perf_counter()
    at.number_input(key="scan_length").set_value(10**9)
    ran(at)
    assert time.perf_counter() - started < 10
    assert strip(at).startswith("⊘ Over a limit")
    (card,) = [card for card in cards(at) if "X601" in card]
    assert "T = 1,000,000,000 is over the limit of 512 steps." in card
    assert "CARRY_LAB_LENGTH raises it" in card
    assert "JAX is silent" not in card
    assert plotted(at) == [[0, 1, 3, 6]]
    stale = [text_of(body) for body in html_of(at) if "stale: of the inputs before" in body]
    assert [words.split(" stale")[0] for words in stale] == LISTS
    button(at, "Set T to 512").click()
    ran(at)
    assert at.number_input(key="scan_length").value == 512
    assert strip(at).startswith("✓ Contract kept")
    at.number_input(key="scan_length").set_value(3)
    assert strip(ran(at)).startswith("✓ Contract kept")


def test_an_init_that_cannot_be_read(at):
    for typed in ("", "zero", "[1, [2]]", "nan🙂"):
        at.text_input(key="scan_init").set_value(typed)
        ran(at)
        assert strip(at).startswith("◷ Stale")
        assert marks(at)
        assert plotted(at) == [[0, 1, 3, 6]]


def test_what_a_step_cannot_take_has_a_button_at_its_input():
    at = opened({"step": "distance", "from": "generate", "F": "0"})
    assert "The step cannot take an input." in strip(at)
    assert "This step takes rows of 2 numbers; x has shape ()." in marks(at)
    assert not cards(at)
    button(at, "Set F to 2").click()
    assert strip(ran(at)).startswith("✓ Contract kept")
    assert at.number_input(key="scan_features").value == 2
    at.text_input(key="scan_init").set_value("[1, 2, 3")
    ran(at)
    assert "Set init" not in " ".join(b.label for b in at.button)


def test_a_step_of_rows_generates_rows(at):
    at.selectbox(key="scan_source").set_value("generate")
    ran(at)
    at.selectbox(key="scan_step").set_value("distance")
    assert strip(ran(at)).startswith("✓ Contract kept")


def test_a_size_below_zero_has_its_mark(at):
    at.selectbox(key="scan_source").set_value("generate")
    ran(at)
    at.number_input(key="scan_features").set_value(-4)
    assert strip(ran(at)).startswith("◷ Stale")
    assert "features F must be 0 or more." in marks(at)
    at.number_input(key="scan_features").set_value(2)
    assert strip(ran(at)).startswith("✓ Contract kept")


def test_numbers_after_an_enormous_paste_are_read(paste):
    paste.text_area(key="scan_numbers").set_value("zeros(1000000000)")
    assert strip(ran(paste)).startswith("⊘ Over a limit")
    paste.text_area(key="scan_numbers").set_value("1, 2, 3")
    assert "final carry 6" in strip(ran(paste))


def test_an_enormous_init_allocates_nothing(at):
    at.text_input(key="scan_init").set_value("zeros(1000000000)")
    assert strip(ran(at)).startswith("⊘ Over a limit")


# --- link -----------------------------------------------------------------------------------------------------------


def test_a_link_opens_what_it_says():
    at = opened({"v": "1", "step": "exponential_average", "x": "1, 1", "T": "2", "p.decay": "0.5", "rev": "1"})
    assert at.selectbox(key="scan_step").value == "exponential_average"
    assert at.slider(key="scan_param_decay").value == 0.5
    assert at.checkbox(key="scan_reverse").value is True
    assert "final carry 0.75" in strip(at)
    assert {"step", "x", "p.decay", "rev", "v"} <= set(at.query_params)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"step": "no_such_step"}, "step: the link says “no_such_step”"),
        ({"T": "ten"}, "length T: the link says “ten”"),
        ({"init": "x" * 9000}, "more than a link may hold"),
        ({"p.decay": "0.5"}, "“p.decay”, which this page does not have"),
        ({"evil": "![](http://x.example/a.png)"}, "“evil”, which this page does not have"),
        ({"seed": "-1"}, "must lie between"),
        ({"T": "-3"}, "it must lie between 0 and 512"),
        ({"v": "99"}, "another version"),
    ],
)
def test_a_bad_link_is_refused_by_name_and_the_default_stands(query, said):
    at = opened({"v": "1", **query})
    assert said in marks(at)
    assert "final carry 6" in strip(at)
    at.text_input(key="scan_init").set_value("1")
    assert said not in marks(ran(at))


def test_an_address_that_lags_behind_never_undoes_an_edit_and_is_written_anew(at):
    at.text_input(key="scan_init").set_value("1")
    ran(at)
    at.query_params = {}
    assert "final carry 7" in strip(ran(at))
    assert at.query_params["init"] in ("1", ["1"])


def test_an_old_address_that_comes_with_a_click_changes_nothing(at):
    button(at, "int init").click()
    broken = strip(ran(at))
    at.query_params = {}
    button(at, "int init").click()
    assert strip(ran(at)).split(" · ")[0] == broken.split(" · ")[0]
    button(at, "Put it back").click()
    assert "final carry 6" in strip(ran(at))


def test_a_name_given_twice_and_many_unknown_ones_are_said_in_a_line_each():
    at = opened({"init": ["1", "2"]} | {f"k{i}": "1" for i in range(300)})
    assert "“init” 2 times" in marks(at)
    assert "300 unknown settings in the link were ignored: k0, k1, k2 and others." in marks(at)
    assert "final carry 8" in strip(at)


def test_a_sequence_too_long_for_a_link_is_said(paste):
    paste.text_area(key="scan_numbers").set_value(", ".join(["1.0625"] * 500 + ["0.125"] * 12) + " " * 8000)
    ran(paste)
    assert str(LIMITS["url_text"].value) in marks(paste)
    assert "x" not in paste.query_params


# --- sessions -------------------------------------------------------------------------------------------------------


def test_two_sessions_share_nothing():
    one, two = opened(), opened()
    one.text_input(key="scan_init").set_value("100")
    ran(one)
    ran(two)
    assert "final carry 106" in strip(one)
    assert "final carry 6 " in strip(two)
    assert two.text_input(key="scan_init").value == "0."


def test_inputs_survive_another_page(at):
    at.text_input(key="scan_init").set_value("7")
    ran(at)
    at.switch_page("pages/views/lstm.py")
    ran(at)
    at.switch_page("pages/views/scan.py")
    ran(at)
    assert at.text_input(key="scan_init").value == "7"
    assert "final carry 13" in strip(at)


def test_a_rerun_that_changes_nothing_computes_nothing(at, monkeypatch):
    import pages.widgets.scan_state as scan_state

    def never(*_):
        raise AssertionError("evaluated again")

    monkeypatch.setattr(scan_state, "evaluate", never)
    ran(at)
    assert "final carry 6" in strip(at)


def test_an_exception_of_ours_is_a_calm_sentence_without_values(at, monkeypatch, caplog):
    import pages.widgets.scan_state as scan_state

    def fails(values):
        raise RuntimeError(values)

    monkeypatch.setattr(scan_state, "evaluate", fails)
    at.text_input(key="scan_init").set_value("123456")
    at.run()
    assert not at.exception
    assert "Carry Lab failed here" in at.error[0].value
    assert "123456" not in caplog.text
    assert "RuntimeError" in caplog.text
