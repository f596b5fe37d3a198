"""The Scan page through AppTest, always from app.py."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.base.limits import LIMITS
from core.steps.library import STEPS

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 60


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
        if step.right:
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


def test_a_new_length_repeats_or_cuts_the_numbers(at):
    at.number_input(key="scan_length").set_value(5)
    ran(at)
    assert plotted(at) == [[0, 1, 3, 6, 7, 9]]
    at.number_input(key="scan_length").set_value(0)
    ran(at)
    assert "S111" in " ".join(cards(at))
    assert "final carry 0 · ys []" in strip(at)


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
    assert "ys [6, 5, 3]" in strip(at)
    assert "equals the loop" in strip(at)


# --- broken ---------------------------------------------------------------------------------------------------------


def test_break_it_then_put_it_back(at):
    for words, code in (
        ("let the carry grow", "S103"),
        ("int init", "S104"),
        ("a list of rows", "S110"),
        ("batch-major", "S115"),
    ):
        button(at, words).click()
        ran(at)
        assert strip(at).startswith("✗ Contract broken: 1"), words
        assert code in cards(at)[0]
        button(at, "Put it back").click()
        ran(at)
        assert "final carry 6 · ys [1, 3, 6]" in strip(at)
        assert not at.query_params


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


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.fixture
def paste(at) -> AppTest:
    at.selectbox(key="scan_source").set_value("paste")
    return ran(at)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("1, two, 3", "Row 1, column 2, character 4: “two” is no number."),
        ("1, 2\n3", "Row 2: has 1 numbers, but the first one has 2."),
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
    assert "X601" in cards(at)[0]
    assert plotted(at) == [[0, 1, 3, 6]]
    at.number_input(key="scan_length").set_value(3)
    assert strip(ran(at)).startswith("✓ Contract kept")


def test_an_init_that_cannot_be_read(at):
    for typed in ("", "zero", "[1, [2]]", "nan🙂"):
        at.text_input(key="scan_init").set_value(typed)
        ran(at)
        assert strip(at).startswith("◷ Stale")
        assert marks(at)
        assert plotted(at) == [[0, 1, 3, 6]]


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
        ({"v": "99"}, "another version"),
    ],
)
def test_a_bad_link_is_refused_by_name_and_the_default_stands(query, said):
    at = opened({"v": "1", **query})
    assert said in marks(at)
    assert "final carry 6" in strip(at)
    at.text_input(key="scan_init").set_value("1")
    assert said not in marks(ran(at))


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
