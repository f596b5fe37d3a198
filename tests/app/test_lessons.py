"""Lessons on the live pages; through AppTest, always from app.py."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.lessons.lesson import Lesson
from core.lessons.loader import lesson_of, lessons

ROOT = Path(__file__).resolve().parents[2]


def opened(query: dict[str, str], page: str | None = None) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    for name, value in query.items():
        at.query_params[name] = value
    if page is not None:
        at.switch_page(page)
    return ran(at)


def ran(one) -> AppTest:
    """Run the app, or what was done to one of its elements; nothing may fail."""
    at = one.run()
    assert not at.exception
    assert not at.error, [e.value for e in at.error]
    return at


def bodies(at: AppTest) -> str:
    return html.unescape(" ".join(element.proto.body for element in at.get("html")))


def said(at: AppTest) -> str:
    """What a reader sees of it, without the tags."""
    return re.sub(r"<style>.*?</style>|<[^>]+>", "", bodies(at), flags=re.DOTALL)


def words(at: AppTest) -> str:
    return " ".join(element.value for element in at.markdown)


def address(at: AppTest) -> dict[str, str]:
    return {name: value[0] if isinstance(value, list) else value for name, value in dict(at.query_params).items()}


def keys(at: AppTest) -> set[str]:
    return {button.key for button in at.button}


def visit(at: AppTest, script: str) -> AppTest:
    """By the navigation: its links carry nothing of the page before, not even what is the class's."""
    at.query_params.clear()
    at.switch_page(script)
    return ran(at)


def is_done(at: AppTest) -> bool:
    return "✓ Done" in bodies(at)


def test_without_a_lesson_there_is_no_rail():
    at = opened({})
    assert not any(key and key.startswith("lesson_") for key in keys(at))


def test_lesson_3_from_its_first_step_to_its_last():
    at = opened({"lesson": "3"})
    assert "Lesson 3 · Shape and dtype must stay" in said(at)
    assert "step 1 of 4" in said(at)
    assert not is_done(at)
    ran(at.selectbox(key="scan_step").set_value("gains_axis"))
    assert is_done(at)
    ran(at.button(key="lesson_next").click())
    assert "step 2 of 4" in said(at)
    assert address(at)["lesson"] == "3.2"
    assert at.selectbox(key="scan_step").value == "gains_axis"
    assert not is_done(at)
    ran(at.button(key="scan_apply_1_0").click())
    assert is_done(at)
    ran(at.button(key="lesson_next").click())
    assert not is_done(at)
    ran(at.button(key="scan_break_int_init").click())
    assert is_done(at)
    ran(at.button(key="lesson_next").click())
    assert not is_done(at)
    ran(at.button(key="scan_apply_1_0").click())
    assert "✓ Done: this was the last step" in said(at)
    assert "lesson_finish" in keys(at)


#: The Doctor's workers are started in tests/e2e.
WITHOUT_DOCTOR = [lesson for lesson in lessons() if {step.setting.page for step in lesson.steps} != {"doctor"}]


@pytest.mark.parametrize("lesson", WITHOUT_DOCTOR, ids=lambda lesson: str(lesson.number))
def test_a_step_opened_by_its_address_alone_is_set_up_as_it_begins(lesson: Lesson):
    number = next(n for n in (2, 1) if lesson.steps[n - 1].checks)
    step = lesson.steps[number - 1]
    script = {"scan": None, "lstm": "pages/views/lstm.py"}.get(step.setting.page, f"pages/views/{step.setting.page}.py")
    at = opened({"lesson": f"{lesson.number}.{number}"}, script)
    assert not is_done(at)
    ran(at.button(key="lesson_set_up").click())
    assert is_done(at)
    assert "Set up:" in bodies(at)


def test_setting_up_can_be_undone_and_a_step_begun_again():
    at = opened({"lesson": "3.2"})
    assert at.selectbox(key="scan_step").value == "gains_axis"
    ran(at.button(key="lesson_set_up").click())
    assert at.selectbox(key="scan_step").value == "running_sum"
    ran(at.button(key="scan_undo").click())
    assert at.selectbox(key="scan_step").value == "gains_axis"
    ran(at.selectbox(key="scan_step").set_value("product"))
    ran(at.button(key="lesson_again").click())
    assert at.selectbox(key="scan_step").value == "gains_axis"


def test_what_is_done_stays_done_and_is_counted_on_the_list():
    at = opened({"lesson": "3.2"})
    ran(at.button(key="lesson_set_up").click())
    ran(at.button(key="lesson_next").click())
    ran(at.button(key="lesson_back").click())
    assert is_done(at)
    visit(at, "pages/views/lessons.py")
    assert "1 of 4 done" in bodies(at)


def test_a_question_is_answered():
    at = opened({"lesson": "2"})
    at.pills(key="lesson_answer_2_1").set_value("0, 1, 3")
    ran(at)
    assert "Not quite" in bodies(at)
    assert not is_done(at)
    at.pills(key="lesson_answer_2_1").set_value("1, 3, 6")
    ran(at)
    assert is_done(at)


def test_a_link_that_says_how_the_page_is_keeps_it():
    at = opened({"lesson": "3.2", "v": "1", "step": "running_max"})
    assert at.selectbox(key="scan_step").value == "running_max"
    assert address(at)["lesson"] == "3.2"


def test_a_lesson_goes_along_with_hidden_and_locked_controls_in_presentation_mode():
    at = opened({"lesson": "3", "hide": "scan_sequence_panel", "lock": "scan_length", "present": "1"})
    assert ".st-key-scan_sequence_panel { display: none; }" in bodies(at)
    assert at.number_input(key="scan_length").disabled
    assert "step 1 of 4" in said(at)
    ran(at.button(key="lesson_set_up").click())
    assert is_done(at)
    assert {"lesson", "hide", "lock", "present"} <= set(address(at))


@pytest.mark.parametrize(
    ("given", "reason"), [("99", "no such lesson"), ("3.9", "no such lesson"), ("three", "must be a lesson")]
)
def test_an_unknown_lesson_is_refused_by_name(given: str, reason: str):
    at = opened({"lesson": given})
    assert f"“{given}”" in bodies(at)
    assert reason in bodies(at)
    assert "lesson" not in address(at)
    assert "lesson_next" not in keys(at)


def test_next_keeps_what_the_learner_made_where_the_step_is_done():
    at = opened({"lesson": "3"})
    ran(at.number_input(key="scan_length").set_value(5))
    ran(at.selectbox(key="scan_step").set_value("gains_axis"))
    assert is_done(at)
    ran(at.button(key="lesson_next").click())
    assert at.number_input(key="scan_length").value == 5
    assert at.selectbox(key="scan_step").value == "gains_axis"


def test_a_step_that_is_skipped_sets_up_the_next_one_with_a_way_back():
    at = opened({"lesson": "3"})
    ran(at.number_input(key="scan_length").set_value(5))
    ran(at.button(key="lesson_next").click())
    assert at.selectbox(key="scan_step").value == "gains_axis"
    assert not is_done(at)
    ran(at.button(key="scan_apply_1_0").click())
    assert is_done(at)
    at = opened({"lesson": "3"})
    ran(at.number_input(key="scan_length").set_value(5))
    ran(at.button(key="lesson_next").click())
    ran(at.button(key="scan_undo").click())
    assert at.number_input(key="scan_length").value == 5


def test_back_to_a_step_that_is_not_done_begins_it_anew():
    at = opened({"lesson": "3.2"})
    assert at.selectbox(key="scan_step").value == "gains_axis"
    ran(at.button(key="lesson_back").click())
    assert at.selectbox(key="scan_step").value == "running_sum"
    assert not is_done(at), "nobody has broken anything yet"


def test_a_step_is_never_done_by_what_the_step_before_left():
    # The learner mends 8.4, and meanwhile does what 8.5 will ask for: 8.5 begins with noise all the same.
    at = opened({"lesson": "8.4"}, "pages/views/sequence.py")
    ran(at.button(key="lesson_set_up").click())
    ran(at.selectbox(key="sequence_padding").set_value("zeros"))
    ran(at.button(key="lesson_next").click())
    assert "step 5 of 5" in said(at)
    assert at.selectbox(key="sequence_padding").value == "noise"
    assert not is_done(at)


def test_what_a_lesson_has_set_up_survives_a_look_at_another_page():
    at = opened({"lesson": "7.3"}, "pages/views/sequence.py")
    assert at.session_state["sequence:values"]["lengths"] == at.session_state["sequence_lengths"]
    ran(at.button(key="lesson_set_up").click())
    assert is_done(at)
    ran(at.button(key="lesson_next").click())
    made = dict(at.session_state["sequence:values"])
    visit(at, "pages/views/scan.py")
    assert "lesson_open" in keys(at)
    visit(at, "pages/views/sequence.py")
    assert dict(at.session_state["sequence:values"]) == made
    assert address(at)["lesson"] == "7.4"
    assert "L309" in bodies(at)
    assert not is_done(at)
    (fix,) = [one for one in at.button if one.key and one.key.startswith("sequence_apply_1_0")]
    ran(fix.click())
    assert is_done(at)


def test_a_lesson_opened_elsewhere_sets_up_its_page_when_somebody_comes_there():
    at = opened({"lesson": "12"}, "pages/views/lstm.py")
    assert "lesson_open" in keys(at)
    visit(at, "pages/views/scan.py")
    assert at.selectbox(key="scan_step").value == "running_max"


def test_what_a_learner_made_of_a_page_stays_when_the_lesson_comes_to_it():
    at = opened({})
    ran(at.selectbox(key="scan_step").set_value("product"))
    visit(at, "pages/views/lessons.py")
    ran(at.button(key="lessons_read_12").click())
    visit(at, "pages/views/scan.py")
    assert at.selectbox(key="scan_step").value == "product"


def test_a_class_can_be_kept_on_a_step():
    at = opened({"lesson": "3.2", "lock": "lesson_rail"})
    for key in ("lesson_back", "lesson_next", "lesson_leave"):
        assert at.button(key=key).disabled
    assert not at.button(key="lesson_set_up").disabled
    at = opened({"lesson": "3.4", "lock": "lesson_rail"})
    assert at.button(key="lesson_finish").disabled


@pytest.mark.parametrize("key", ["lesson_rail", "lesson_set_up", "lesson_hint"])
def test_the_rail_and_its_help_can_be_hidden(key: str):
    at = opened({"lesson": "3", "hide": key})
    assert f".st-key-{key} {{ display: none; }}" in bodies(at)
    assert not at.warning


def test_on_another_page_the_rail_leads_to_its_own():
    at = opened({"lesson": "6"})
    assert "lesson_open" in keys(at)
    assert "lesson_set_up" not in keys(at)
    ran(at.button(key="lesson_open").click())
    assert "lesson_set_up" in keys(at)
    assert at.selectbox(key="lstm_cell").value == "LSTMCell"


def test_the_lesson_is_left():
    at = opened({"lesson": "3"})
    ran(at.button(key="lesson_leave").click())
    assert "lesson_next" not in keys(at)
    assert "lesson" not in address(at)


def test_the_teachers_link_holds_the_lesson():
    at = opened({"lesson": "3.2"})
    assert link(at) == "/?lesson=3.2"


def link(at: AppTest) -> str:
    """What the panel "For a class" offers; a test has no address of its own."""
    (found,) = [code.value for code in at.code if code.value.startswith(("/", "?"))]
    return found


def test_a_teacher_chooses_lesson_and_step_and_what_is_hidden_there():
    at = opened({})
    at.selectbox(key="class_lesson").set_value(6)
    ran(at)
    assert link(at) == "/lstm?lesson=6"
    at.selectbox(key="class_step").set_value(4)
    at.multiselect(key="class_hide").set_value(["lstm_break", "lesson_set_up"])
    at.multiselect(key="class_lock").set_value(["lstm_seed", "lesson_rail"])
    at.toggle(key="class_present").set_value(True)
    ran(at)
    assert link(at) == "/lstm?hide=lstm_break,lesson_set_up&lock=lstm_seed,lesson_rail&present=1&lesson=6.4"
    query = dict(pair.split("=") for pair in link(at).partition("?")[2].split("&"))
    class_ = opened(query, "pages/views/lstm.py")
    assert "step 4 of 5" in said(class_)
    assert "L302" in bodies(class_)
    assert class_.number_input(key="lstm_seed").disabled
    assert class_.button(key="lesson_next").disabled


def test_the_teachers_page_as_it_stands_goes_along_when_asked():
    at = opened({"lesson": "3"})
    ran(at.number_input(key="scan_length").set_value(5))
    assert link(at) == "/?lesson=3"
    at.toggle(key="class_as_it_is").set_value(True)
    ran(at)
    assert "T=5" in link(at)
    assert link(at).endswith("lesson=3")


@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: str(lesson.number))
def test_links_to_a_lesson_can_be_read_from_a_projector(lesson: Lesson):
    assert len(f"/lessons?n={lesson.number}") <= 40
    for at, step in enumerate(lesson.steps, 1):
        path = "" if step.opening.page == "scan" else step.opening.page
        assert len(f"/{path}?lesson={lesson.number}.{at}") <= 40


def test_the_list_names_all_and_opens_one():
    at = opened({}, "pages/views/lessons.py")
    assert {f"lessons_read_{lesson.number}" for lesson in lessons()} <= keys(at)
    ran(at.button(key="lessons_read_6").click())
    assert address(at)["n"] == "6"
    lesson = lesson_of(6)
    assert lesson is not None
    assert lesson.title in bodies(at)
    ran(at.button(key="lessons_begin").click())
    assert "Lesson 6" in bodies(at)
    assert "lesson_set_up" in keys(at)


def test_a_lesson_that_is_not_there_is_refused_on_the_list():
    at = opened({"n": "99"}, "pages/views/lessons.py")
    assert any("99" in warning.value and "no such lesson" in warning.value for warning in at.warning)
    assert "lessons_read_1" in keys(at)
