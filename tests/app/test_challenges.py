"""The Challenges page through AppTest, always from app.py; jobs are done in this process, by the worker's own handler.

Right answers are asked of the programs, as the page does: none is written down here. The editor is the plain text area.

Longer than 500 lines because it is one page: three kinds of challenges, their sheet, their links, and the class around them.
"""

from __future__ import annotations

import csv
import html
import io
import json
import re
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from core.base.limits import Limit
from core.challenges.challenge import Challenge, Kind, Side
from core.challenges.fields import FIELDS, LINK, SEEDS, SETS, challenge_at, challenges_of, short_link
from core.challenges.generate import MORE, template_of
from core.challenges.grading import answer_text, broken_codes
from core.challenges.sheet import COLUMNS, Attempt, as_csv, as_json
from core.doctor import grade_job, job
from core.inputs.fields import VERSION, VERSION_NAME
from core.sandbox import timeup
from core.sandbox.pool_ticket import Done, Stopped, StopReason
from pages.widgets import challenge_backend, challenge_check, challenge_tally, doctor_backend, editor, voted
from pages.widgets.challenge_said import diff_html

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 120
PREDICT, FIX, SPOT = (next(one for one in challenges_of("all") if one.kind is kind) for kind in Kind)
HOSTILE = (
    "a" * 10_240,
    "9" * 400,
    "\x00",
    "\ufffd",
    "<script>alert(1)</script>",
    "{limit.__class__}",
    "-1",
    "nan",
    "%2531",
)


@cache
def graded(text: str, names: tuple[str, ...], swap: str) -> str:
    """What the worker's handler says, as the text that travels."""
    return json.dumps(job.handle(grade_job.request(text, names, swap)))


class Ticket:
    """Of a job that is over; `late`: as often as it says that it is not yet."""

    place = 0

    def __init__(self, result: Any, late: int = 0) -> None:
        self.result, self.late = result, late
        self.cancelled = False

    def wait(self, seconds: float) -> bool:
        self.late -= 1
        return self.late < 0 or self.cancelled

    def cancel(self) -> None:
        self.cancelled = True
        self.result = Stopped(StopReason.CANCELLED)


class InProcess:
    """The pool's part. `instead`: what to give for a learner's script, or for all; `late`: how late."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.tickets: list[Ticket] = []
        self.ours = {text for one in challenges_of("all") for text in (one.program, one.other)}
        self.instead: Any = None
        self.instead_of_ours: Any = None
        self.late = self.late_ours = self.place_ours = 0

    def reserve(self, session: str) -> None: ...

    def release(self, session: str) -> None: ...

    def close(self) -> None: ...

    def submit(self, session: str, request: dict[str, Any]) -> Ticket:
        self.asked.append(request)
        ours = request["text"] in self.ours
        instead = self.instead_of_ours if ours else self.instead
        if instead is None:
            instead = Done(json.loads(graded(request["text"], tuple(request["names"]), request["swap"])))
        ticket = Ticket(instead, self.late_ours if ours else self.late)
        ticket.place = self.place_ours if ours else 0
        self.tickets.append(ticket)
        return ticket


@pytest.fixture
def pool(monkeypatch):
    made = InProcess()
    monkeypatch.setattr(doctor_backend, "start", lambda: made)
    # The worker's alarm rings in a main thread, and AppTest runs the page in another one.
    monkeypatch.setattr(timeup, "arm", lambda seconds: None)
    monkeypatch.setattr(editor, "_code", None)
    monkeypatch.setattr(editor, "_why_not", "this is a test")
    monkeypatch.setattr(challenge_check, "MOMENT", 0.0)
    forget()
    yield made
    forget()


def forget() -> None:
    """What the page keeps for the process; not the warm-up, which costs a second."""
    for kept in (doctor_backend.backend, challenge_backend.shared, challenge_tally.rooms):
        kept.clear()


# --- steps ----------------------------------------------------------------------------------------------------------


def opened(query: dict[str, Any] | None = None) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT)
    at.run()
    for name, value in (query or {}).items():
        at.query_params[name] = str(value)
    at.switch_page("pages/views/challenges.py")
    return ran(at)


def ran(at: AppTest) -> AppTest:
    at.run()
    assert not at.exception
    assert not at.error, [one.value for one in at.error]
    return at


def pressed(at: AppTest, key: str) -> AppTest:
    at.button(key=key).click()
    return ran(at)


def bodies(at: AppTest) -> list[str]:
    """What was written as HTML, without the page's own style sheet."""
    return [one.proto.body for one in at.get("html") if "/* Challenges:" not in one.proto.body]


def address(at: AppTest) -> dict[str, str]:
    return {name: value[0] if isinstance(value, list) else value for name, value in dict(at.query_params).items()}


def said(at: AppTest) -> str:
    text = re.sub(r"(?s)<style>.*?</style>", " ", " | ".join(bodies(at)))
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text)))


def strip(at: AppTest) -> str:
    (found,) = [body for body in bodies(at) if 'class="cl-strip' in body]
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", found))).strip()


def keys(at: AppTest) -> set[str]:
    return {button.key for button in at.button if button.key}


def answers(challenge: Challenge) -> list[str]:
    """The right answers to a "predict"."""
    run = run_of(challenge.program, challenge)
    return [answer_text(ask, run) for ask in challenge.asks]


def run_of(text: str, challenge: Challenge) -> grade_job.Graded:
    return grade_job.read(json.loads(graded(text, challenge.names, challenge.swap)))


def predicted(at: AppTest, challenge: Challenge, texts: list[str]) -> AppTest:
    for field, text in enumerate(texts):
        at.text_input(key=f"challenges_answer_{challenge.key}_{field}").set_value(text)
    return pressed(at, "challenges_check")


def chosen(at: AppTest, challenge: Challenge, side: Side | None, code: str | None) -> AppTest:
    at.radio(key=f"challenges_side_{challenge.key}").set_value(side)
    at.radio(key=f"challenges_why_{challenge.key}").set_value(code)
    return pressed(at, "challenges_check")


def typed(at: AppTest, challenge: Challenge, text: str) -> AppTest:
    at.text_area(key=f"challenges_code_{challenge.key}").set_value(text)
    return pressed(at, "challenges_check")


def sheet(at: AppTest) -> list[dict[str, str]]:
    """What the sheet of this session would hold now."""
    return list(csv.DictReader(io.StringIO(as_csv(attempts(at)).decode())))


def attempts(at: AppTest) -> list[Attempt]:
    """What the session remembers of tries."""
    name = "challenges:attempts"
    return list(at.session_state[name].values()) if name in at.session_state else []


# --- the list -------------------------------------------------------------------------------------------------------


def test_the_list_says_kind_level_and_state_of_each_and_has_one_primary_button(pool):
    at = opened()
    every = challenges_of("all")
    assert {f"challenges_open_{one.number}" for one in every} <= keys(at)
    assert f"{len(every)} challenges 0 of {len(every)} solved" in strip(at)
    rows = [body for body in bodies(at) if "cl-challenge-about" in body]
    assert len(rows) == len(every)
    assert all("not tried" in row for row in rows)
    assert sum(f">{Kind.SPOT.text}<" in row for row in rows) == sum(one.kind is Kind.SPOT for one in every)
    for level in ("easy", "medium", "hard"):
        assert f'class="cl-section">{level} ' in " ".join(bodies(at))
    assert [button.key for button in at.button if button.proto.type == "primary"] == ["challenges_start"]
    assert not at.query_params


def test_a_set_is_chosen_and_start_opens_its_first(pool):
    at = opened()
    at.selectbox(key="challenges_set").set_value(str(Kind.FIX))
    ran(at)
    assert {f"challenges_open_{one.number}" for one in challenges_of(Kind.FIX)} == {
        key for key in keys(at) if key.startswith("challenges_open_")
    }
    pressed(at, "challenges_start")
    assert challenges_of(Kind.FIX)[0].title in said(at)
    assert address(at)["c"] == str(challenges_of(Kind.FIX)[0].number)


# --- predict --------------------------------------------------------------------------------------------------------


def test_a_right_prediction_is_said_so_explained_and_leads_on(pool):
    at = opened({"c": PREDICT.number})
    assert "Not answered yet" in strip(at)
    assert [button.key for button in at.button if button.proto.type == "primary"] == ["challenges_check"]
    predicted(at, PREDICT, answers(PREDICT))
    assert strip(at).startswith("✓ Right")
    assert "Right, at the first try." in said(at)
    assert PREDICT.why in [one.value for one in at.markdown]
    assert [button.key for button in at.button if button.proto.type == "primary"] == ["challenges_onward_next"]
    pressed(at, "challenges_onward_next")
    assert challenges_of("all")[1].title in said(at)
    pressed(at, "challenges_all")
    assert "✓ solved, 1 try" in said(at)


def test_a_wrong_prediction_is_said_at_its_field_and_nothing_typed_is_lost(pool):
    at = opened({"c": PREDICT.number})
    right = answers(PREDICT)
    predicted(at, PREDICT, [right[0], "12345"])
    assert "Not right yet" in strip(at)
    assert "1 of 2 right" in said(at)
    assert at.text_input(key=f"challenges_answer_{PREDICT.key}_1").value == "12345"
    assert PREDICT.why not in [one.value for one in at.markdown]
    predicted(at, PREDICT, right)
    assert "Right, at try 2." in said(at)


@pytest.mark.parametrize("text", ["", "   ", "what?", "[1, [2", "9" * 5_000, "__import__('os')", "\U0001f600", "1e"])
def test_nonsense_is_answered_at_its_field_and_is_no_try(pool, text):
    at = opened({"c": PREDICT.number})
    predicted(at, PREDICT, [text, answers(PREDICT)[1]])
    assert "Not answered yet" in strip(at)
    assert any("cl-mark" in body for body in bodies(at))
    assert sheet(at) == []


def test_the_programs_of_a_challenge_run_once_for_everybody(pool):
    opened({"c": PREDICT.number})
    opened({"c": PREDICT.number})
    assert [one["text"] for one in pool.asked] == [PREDICT.program]


def test_labels_say_what_a_name_is_of_the_scan(pool):
    at = opened({"c": PREDICT.number})
    labels = [one.label for one in at.text_input]
    assert any("final carry" in label for label in labels)
    assert any("(ys)" in label for label in labels)


# --- spot it --------------------------------------------------------------------------------------------------------


def right_code(challenge: Challenge) -> str:
    return next(code for code in broken_codes(run_of(challenge.program, challenge)) if code in challenge.options)


def test_the_wrong_program_and_its_reason_are_found(pool):
    at = opened({"c": SPOT.number})
    side, code = SPOT.side(0), right_code(SPOT)
    chosen(at, SPOT, side, code)
    assert strip(at).startswith("✓ Right")
    words = "Left: silently wrong" if side is Side.LEFT else "Right: silently wrong"
    assert words in said(at)


def test_the_other_program_or_another_reason_is_not_right(pool):
    at = opened({"c": SPOT.number})
    side, code = SPOT.side(0), right_code(SPOT)
    other = next(one for one in Side if one is not side)
    chosen(at, SPOT, other, code)
    assert "is in order" in said(at)
    chosen(at, SPOT, side, next(one for one in SPOT.options if one != code))
    assert "Not right yet" in strip(at)
    assert sheet(at)[0]["tries"] == "2"


def test_a_choice_that_is_missing_is_asked_for(pool):
    at = opened({"c": SPOT.number})
    chosen(at, SPOT, None, None)
    assert "Choose one of the two." in said(at)
    assert "Choose a reason." in said(at)
    assert sheet(at) == []


def test_which_side_is_wrong_depends_on_the_seed_alone(pool):
    seeds = {side: next(seed for seed in range(99) if SPOT.side(seed) is side) for side in Side}
    for side, seed in seeds.items():
        at = opened({"c": SPOT.number, "seed": seed})
        chosen(at, SPOT, side, right_code(SPOT))
        assert strip(at).startswith("✓ Right")


# --- fix it ---------------------------------------------------------------------------------------------------------


def test_a_mended_script_is_right_and_is_shown_what_another_way_would_be(pool):
    at = opened({"c": FIX.number})
    typed(at, FIX, FIX.other + "\n# mended\n")
    assert strip(at).startswith("✓ Right")
    assert any("cl-diff" in body for body in bodies(at))
    assert at.text_area(key=f"challenges_code_{FIX.key}").disabled


def test_what_is_still_broken_has_a_card_and_the_script_can_be_put_back(pool):
    at = opened({"c": FIX.number})
    typed(at, FIX, FIX.program + "\n# looked at\n")
    assert "still broken" in said(at)
    broken = broken_codes(run_of(FIX.program, FIX))
    assert [one for body in bodies(at) if '<section class="cl-card' in body for one in broken if one in body]
    pressed(at, "challenges_again")
    assert at.text_area(key=f"challenges_code_{FIX.key}").value == FIX.program
    assert sheet(at)[0]["tries"] == "1"


def test_after_an_edit_the_page_says_that_the_cards_are_of_the_script_before(pool):
    at = opened({"c": FIX.number})
    typed(at, FIX, FIX.program + "\n# looked at\n")
    assert "before your last edit" not in said(at)
    at.text_area(key=f"challenges_code_{FIX.key}").set_value(FIX.program)
    ran(at)
    assert "before your last edit" in said(at)


def test_a_value_typed_in_instead_of_computed_is_not_right(pool):
    names = "\n".join(f"{name} = jnp.zeros(())" for name in FIX.results)
    at = opened({"c": FIX.number})
    typed(at, FIX, f"{FIX.other}\n{names}\n")
    assert "Not right yet" in strip(at)


@pytest.mark.parametrize(
    "text", ["", "def (", "import os\nos.system('ls')", "1/0", "x" * 30_000, "# nothing\n", "\U0001f600"]
)
def test_any_text_as_a_script_is_answered_calmly_and_kept(pool, text):
    at = opened({"c": FIX.number})
    typed(at, FIX, text)
    assert not strip(at).startswith("✓")
    assert at.text_area(key=f"challenges_code_{FIX.key}").value == text


@pytest.mark.parametrize("reason", [StopReason.BUSY, StopReason.DIED, StopReason.CANCELLED])
def test_a_worker_that_is_lost_costs_nothing(pool, reason):
    pool.instead = Stopped(reason)
    at = opened({"c": FIX.number})
    typed(at, FIX, FIX.other + "\n")
    assert "Nothing is counted" in said(at)
    assert sheet(at) == []
    assert at.text_area(key=f"challenges_code_{FIX.key}").value == FIX.other + "\n"
    pool.instead = None
    pressed(at, "challenges_check")
    assert strip(at).startswith("✓ Right")
    assert sheet(at)[0]["tries"] == "1"


def test_a_script_that_takes_too_long_is_a_try(pool):
    pool.instead = Stopped(StopReason.TIME)
    at = opened({"c": FIX.number})
    typed(at, FIX, FIX.other + "\n")
    assert "stopped after" in said(at)
    assert sheet(at)[0]["tries"] == "1"


@pytest.mark.parametrize("alarm", [True, False], ids=["stopped by itself", "killed"])
def test_a_script_that_ran_out_of_time_on_a_busy_machine_is_no_try_and_can_be_tried_again(pool, alarm):
    late = Done(out_of_time(), share=0.3) if alarm else Stopped(StopReason.TIME, share=0.3)
    pool.instead = late
    at = opened({"c": FIX.number})
    typed(at, FIX, FIX.other + "\n")
    assert "the machine was busy with others" in said(at)
    assert "Nothing is counted" in said(at)
    assert sheet(at) == []
    pressed(at, "challenges_once_more")
    assert "busy with others" in said(at)
    pool.instead = None
    at.text_area(key=f"challenges_code_{FIX.key}").set_value(FIX.other + "\n\n")
    pressed(at, "challenges_once_more")
    assert strip(at).startswith("✓ Right")
    assert pool.asked[-1]["text"] == FIX.other + "\n\n"  # as it stands by now
    assert "challenges_once_more" not in keys(at)


def test_a_script_that_had_its_core_to_itself_and_ran_out_of_time_is_a_try(pool):
    pool.instead = Done(out_of_time(), share=0.98)
    at = opened({"c": FIX.number})
    typed(at, FIX, FIX.other + "\n")
    assert "challenges_once_more" not in keys(at)
    assert sheet(at)[0]["tries"] == "1"


def out_of_time() -> dict[str, Any]:
    """What the worker says of a script that its alarm has stopped."""
    found = json.loads(graded(FIX.program, tuple(FIX.results), FIX.swap))
    report = found["answer"]["report"]
    report["outcome"], report["error"], found["answer"]["script"] = "limit", None, FIX.other + "\n"
    limit = {"code": "X602", "name": "out_of_time", "severity": "limit", "message": "It was stopped after 4 s."}
    report["violations"] = [{**report["violations"][0], **limit, "fixes": []}]
    return found


def test_a_check_that_gave_way_to_another_request_is_handed_in_again(pool):
    pool.instead = Stopped(StopReason.REPLACED)
    at = opened({"c": FIX.number})
    typed(at, FIX, FIX.other + "\n")
    assert "Checking" in strip(at)
    pool.instead = None
    ran(at)
    ran(at)
    assert strip(at).startswith("✓ Right")


def test_our_programs_place_in_the_queue_is_said(pool):
    pool.late_ours, pool.place_ours = 10_000, 7
    at = opened({"c": PREDICT.number})
    predicted(at, PREDICT, answers(PREDICT))
    assert "number 7 in the queue" in said(at)


@pytest.mark.parametrize("text", ["def (", "import os\nos.system('ls')"])
def test_a_script_that_cannot_be_run_is_told_once(pool, text):
    at = opened({"c": FIX.number})
    typed(at, FIX, text)
    assert said(at).count("cannot be run") == 1
    cards = [body for body in bodies(at) if "<section class=" in body and "cl-card" in body]
    assert len(cards) == 1
    assert "the script stops" not in said(at)
    assert sheet(at) == []


def test_an_answer_of_garbage_is_no_traceback(pool):
    pool.instead = Done({"answer": "?"})
    at = opened({"c": FIX.number})
    typed(at, FIX, FIX.other + "\n")
    assert "Nothing is counted" in said(at)


def test_workers_that_give_our_programs_no_answer_are_not_waited_for_without_end(pool, monkeypatch):
    pool.instead_of_ours = Stopped(StopReason.BUSY)
    monkeypatch.setattr(challenge_check, "PATIENCE", -1.0)
    at = opened({"c": PREDICT.number})
    predicted(at, PREDICT, ["1", "2"])
    assert "No worker was free" in said(at)
    assert at.text_input(key=f"challenges_answer_{PREDICT.key}_0").value == "1"
    assert sheet(at) == []


def test_a_check_under_way_is_said_and_can_be_called_off(pool):
    pool.late = 10_000
    at = opened({"c": FIX.number})
    typed(at, FIX, FIX.other + "\n")
    assert "Checking" in strip(at)
    assert "Running your script in a worker" in said(at)
    assert at.button(key="challenges_check").disabled
    pressed(at, "challenges_cancel")
    assert pool.tickets[-1].cancelled
    assert "Called off. Nothing is counted" in said(at)
    assert at.text_area(key=f"challenges_code_{FIX.key}").value == FIX.other + "\n"
    assert sheet(at) == []


def test_a_check_that_is_left_behind_is_called_off(pool):
    pool.late = 10_000
    at = opened({"c": FIX.number})
    typed(at, FIX, FIX.other + "\n")
    pressed(at, "challenges_next")
    assert [ticket.cancelled for ticket in pool.tickets].count(True) == 1
    assert "Checking" not in strip(at)


# --- hints, giving up, going on -------------------------------------------------------------------------------------


def test_hints_come_one_by_one_and_then_the_answer_can_be_shown(pool):
    at = opened({"c": PREDICT.number})
    assert "challenges_give_up" not in keys(at)
    for count in range(1, len(PREDICT.hints) + 1):
        pressed(at, "challenges_hint")
        assert len([body for body in bodies(at) if "cl-challenge-hint" in body]) == count
    assert at.button(key="challenges_hint").disabled
    pressed(at, "challenges_give_up")
    assert "Answer shown" in strip(at)
    assert all(answer in said(at) for answer in answers(PREDICT))
    assert "challenges_check" not in keys(at)
    (row,) = sheet(at)
    assert (row["result"], row["hints"], row["solution_shown"]) == ("wrong", str(len(PREDICT.hints)), "1")


def test_previous_and_next_go_through_the_set(pool):
    first, second = challenges_of("easy")[:2]
    at = opened({"s": "easy", "c": second.number})
    pressed(at, "challenges_previous")
    assert first.title in said(at)
    assert "challenges_previous" not in keys(at)
    pressed(at, "challenges_next")
    assert second.title in said(at)


def test_an_answer_half_typed_is_there_when_one_comes_back(pool):
    at = opened({"c": PREDICT.number})
    predicted(at, PREDICT, ["1", "2"])
    pressed(at, "challenges_next")
    pressed(at, "challenges_previous")
    assert at.text_input(key=f"challenges_answer_{PREDICT.key}_0").value == "1"


def test_a_script_under_repair_is_there_when_one_comes_back(pool):
    at = opened({"c": FIX.number})
    at.text_area(key=f"challenges_code_{FIX.key}").set_value("half done")
    ran(at)
    pressed(at, "challenges_next")
    pressed(at, "challenges_previous")
    assert at.text_area(key=f"challenges_code_{FIX.key}").value == "half done"


# --- without end ----------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_and_another_one_something_else(pool):
    titles = [said(opened({"s": MORE, "seed": seed})) for seed in (5, 5, 6)]
    assert titles[0] == titles[1]
    assert titles[0] != titles[2]
    at = opened({"s": MORE, "seed": 5, "c": 1})
    one = challenge_at(MORE, 5, 1)
    assert one is not None
    assert one.title in said(at)


def test_another_like_this_is_of_the_same_kind_and_leads_back(pool):
    at = opened({"c": PREDICT.number})
    predicted(at, PREDICT, answers(PREDICT))
    pressed(at, "challenges_another")
    number = int(address(at)["c"])
    one = challenge_at(MORE, 0, number)
    assert one is not None
    assert one.kind is PREDICT.kind
    assert one.title in said(at)
    predicted(at, one, answers(one))
    assert strip(at).startswith("✓ Right")
    pressed(at, "challenges_another")
    after = int(address(at)["c"])
    assert after > number
    assert template_of(0, after) == template_of(0, number)
    pressed(at, "challenges_home")
    assert PREDICT.title in said(at)
    assert [row["challenge"] for row in sheet(at)] == [PREDICT.key, one.key]


def test_a_class_whose_set_is_fixed_stays_in_it(pool):
    at = opened({"s": "easy", "c": PREDICT.number, "lock": "challenges_set,challenges_seed"})
    predicted(at, PREDICT, answers(PREDICT))
    assert "challenges_another" not in keys(at)
    pressed(at, "challenges_all")
    assert at.selectbox(key="challenges_set").disabled
    assert at.number_input(key="challenges_seed").disabled


# --- the sheet ------------------------------------------------------------------------------------------------------


def test_the_sheet_says_what_was_tried_and_nothing_that_was_typed(pool):
    at = opened({"c": PREDICT.number, "seed": 7})
    predicted(at, PREDICT, ["98765", answers(PREDICT)[1]])
    pressed(at, "challenges_hint")
    predicted(at, PREDICT, answers(PREDICT))
    (row,) = sheet(at)
    assert tuple(row) == COLUMNS
    wanted = {"challenge": PREDICT.key, "kind": "predict", "tries": "2", "hints": "1", "result": "right", "seed": "7"}
    assert {name: row[name] for name in wanted} == wanted
    text = as_csv(attempts(at)).decode() + as_json(attempts(at)).decode()
    assert "98765" not in text
    (result,) = json.loads(as_json(attempts(at)))["results"]
    assert (result["challenge"], result["tries"], result["result"]) == (PREDICT.key, 2, "right")


def test_the_sheet_stands_beside_the_progress_once_there_is_something_in_it(pool):
    at = opened({"c": PREDICT.number})
    files = {one.proto.id.rsplit("-", 1)[-1]: one.proto.disabled for one in at.get("download_button")}
    assert {"challenges_export_csv", "challenges_export_json"} <= set(files)
    predicted(at, PREDICT, answers(PREDICT))
    pressed(at, "challenges_all")
    files = {one.proto.id.rsplit("-", 1)[-1]: one.proto.disabled for one in at.get("download_button")}
    assert files["challenges_sheet_csv"] is False
    assert files["challenges_sheet_json"] is False
    assert f"1 of {len(challenges_of('all'))} solved" in said(at)


def test_one_session_knows_nothing_of_another(pool):
    one, other = opened({"c": FIX.number}), opened({"c": FIX.number})
    typed(one, FIX, "mine = 1")
    ran(other)
    assert other.text_area(key=f"challenges_code_{FIX.key}").value == FIX.program
    assert sheet(other) == []


# --- links ----------------------------------------------------------------------------------------------------------


def test_every_link_for_a_class_is_short_enough_for_a_board_and_opens_the_same(pool):
    for name in SETS:
        for number in (0, 1):
            values = {**FIELDS.defaults(), "set": str(name), "seed": SEEDS, "tally": "ABCD"}
            # One challenge of a reviewed set is named without its set.
            values |= (
                {"challenge": number} if name == MORE else {"challenge": number, "set": "all" if number else str(name)}
            )
            link = short_link(values)
            assert len(link) <= LINK
            read = FIELDS.from_link(dict(parse_qsl(urlsplit(link).query)))
            assert read.values == values
            assert read.refused == ()


def test_the_address_carries_set_seed_and_challenge_and_opens_the_same_page(pool):
    at = opened({"s": "easy", "seed": 7})
    pressed(at, "challenges_start")
    query = address(at)
    assert query == {VERSION_NAME: VERSION, "s": "easy", "seed": "7", "c": str(challenges_of("easy")[0].number)}
    assert said(opened(query)) == said(at)


@pytest.mark.parametrize("value", HOSTILE)
def test_whatever_stands_in_the_address_is_named_and_the_defaults_are_used(pool, value):
    at = opened(dict.fromkeys(("s", "seed", "c", "t"), value))
    words = said(at) + " ".join(one.value for one in at.warning)
    assert [name for name in ("Set:", "Seed:", "Challenge:", "Room code:") if name not in words] == []
    assert f"{len(challenges_of('all'))} challenges" in strip(at)


def test_a_challenge_that_is_not_there_is_named(pool):
    at = opened({"c": 998})
    assert "998" in at.warning[0].value
    assert "challenges_start" in keys(at)


def test_panels_are_hidden_by_a_link_and_presentation_mode_is_kept(pool):
    at = opened({"c": PREDICT.number, "hide": "challenges_hints,challenges_class", "present": "1"})
    assert ".st-key-challenges_hints { display: none; }" in " ".join(bodies(at))
    assert not any("cannot be" in body for body in bodies(at))
    assert {"hide", "present"} <= set(at.query_params)


# --- the class tally ------------------------------------------------------------------------------------------------


def teacher() -> tuple[AppTest, str]:
    at = opened()
    pressed(at, "challenges_tally_open")
    return at, address(at)["t"]


def counts(code: str) -> dict[str, dict[str, int]]:
    found = challenge_tally.rooms().counts(challenge_tally.Key.of(code))
    return {name: dict(of_one) for name, of_one in found.items()}


def test_a_tally_is_off_until_its_learner_ticks_it_and_says_what_leaves(pool):
    _, code = teacher()
    at = opened({"c": PREDICT.number, "t": code})
    box = at.checkbox(key="challenges_take_part")
    assert box.value is False
    assert "nothing leaves this session unless you tick the box" in said(at)
    assert "no name, no address, nothing you typed" in said(at)
    predicted(at, PREDICT, answers(PREDICT))
    assert counts(code) == {}
    assert "Your answer to this one is not counted." in said(at)


def test_without_a_room_there_is_nothing_to_tick(pool):
    at = opened({"c": PREDICT.number})
    assert not at.checkbox
    predicted(at, PREDICT, answers(PREDICT))
    assert "How the class answered" not in said(at)


def test_a_learner_is_counted_once_for_a_challenge_by_the_first_answer(pool):
    owner, code = teacher()
    at = opened({"c": PREDICT.number, "t": code.lower()})
    assert "You see how the class answered once you have answered yourself." in said(at)
    at.checkbox(key="challenges_take_part").check()
    ran(at)
    predicted(at, PREDICT, ["", ""])
    assert counts(code) == {}
    predicted(at, PREDICT, ["12345", "1"])
    predicted(at, PREDICT, answers(PREDICT))
    assert counts(code) == {PREDICT.key: {"right": 0, "wrong": 1}}
    assert "1 answer" in said(at)
    ran(owner)
    assert "1 answer" in said(owner)


def test_only_those_in_the_room_see_its_counts(pool):
    _, code = teacher()
    _, elsewhere = teacher()
    learners = [opened({"c": SPOT.number, "t": room}) for room in (code, code, elsewhere)]
    side, right = SPOT.side(0), right_code(SPOT)
    for at in learners:
        at.checkbox(key="challenges_take_part").check()
        ran(at)
        chosen(at, SPOT, side, right)
    ran(learners[0])
    assert "2 answers" in said(learners[0])
    assert "1 answer " in said(learners[2])
    assert counts(code)[SPOT.key][right] == 2
    assert counts(elsewhere)[SPOT.key][right] == 1


def test_counts_are_a_table_with_the_right_answer_marked_once_it_is_known(pool):
    _, code = teacher()
    at = opened({"c": SPOT.number, "t": code})
    at.checkbox(key="challenges_take_part").check()
    ran(at)
    chosen(at, SPOT, SPOT.side(0), right_code(SPOT))
    (table,) = [body for body in bodies(at) if 'class="cl-table cl-bars"' in body]
    assert table.count('<th scope="row">') == len(SPOT.options) + 1
    assert table.count("this is right") == 1
    assert "<caption>1 answer</caption>" in table


def test_on_a_projector_the_counts_are_shown_without_an_answer_and_there_is_nothing_to_tick(pool):
    _, code = teacher()
    at = opened({"c": PREDICT.number, "t": code, "present": "1"})
    assert "No answers yet." in said(at)
    assert code in said(at)
    assert not at.checkbox
    pressed(at, "challenges_all")
    assert any(link.value.endswith(f"/challenges?t={code}") for link in at.code)


def test_a_room_is_joined_by_its_code_typed_and_left_again(pool):
    _, code = teacher()
    at = opened()
    at.text_input(key="challenges_tally").set_value(f" {code.lower()} ")
    ran(at)
    assert address(at)["t"] == code
    at.checkbox(key="challenges_take_part").check()
    ran(at)
    pressed(at, "challenges_tally_leave")
    assert "t" not in at.query_params
    assert not at.checkbox


@pytest.mark.parametrize("text", ["AB", "ABCDE", "AB 1", "!!!!", "0O1I"])
def test_what_is_no_code_is_named_where_it_was_typed_and_kept(pool, text):
    at = opened()
    at.text_input(key="challenges_tally").set_value(text)
    ran(at)
    assert f"Room code: “{text}” is none" in said(at)
    assert at.text_input(key="challenges_tally").value == text


def test_a_room_that_is_not_open_counts_nothing_and_says_so(pool):
    at = opened({"c": PREDICT.number, "t": "ZZZZ"})
    assert "Room ZZZZ is not open" in said(at)
    assert not at.checkbox
    predicted(at, PREDICT, answers(PREDICT))
    assert strip(at).startswith("✓ Right")


def test_the_owners_part_never_stands_in_an_address_but_opens_the_room_elsewhere(pool):
    owner, code = teacher()
    assert "-" not in code
    (own,) = [one.value for one in owner.code if f"t={code}-" in one.value]
    full = dict(parse_qsl(urlsplit(own).query))["t"]
    elsewhere = opened({"t": full})
    assert address(elsewhere)["t"] == code
    pressed(elsewhere, "challenges_tally_close")
    assert not challenge_tally.rooms().is_open(challenge_tally.Key(code))
    ran(owner)
    assert f"Room {code} is not open" in said(owner)


def test_a_learner_cannot_close_a_room_and_its_owner_is_not_counted(pool):
    owner, code = teacher()
    at = opened({"t": code})
    assert "challenges_tally_close" not in keys(at)
    pressed(owner, "challenges_start")
    predicted(owner, PREDICT, answers(PREDICT))
    assert counts(code) == {}
    assert "your own answers are not counted" in said(owner)


def test_closing_a_room_deletes_its_counts(pool):
    owner, code = teacher()
    at = opened({"c": PREDICT.number, "t": code})
    at.checkbox(key="challenges_take_part").check()
    ran(at)
    predicted(at, PREDICT, ["1", "1"])
    assert counts(code)
    pressed(owner, "challenges_tally_close")
    assert counts(code) == {}
    ran(at)
    assert "How the class answered" not in said(at)


def test_one_session_cannot_fill_a_room(pool, monkeypatch):
    monkeypatch.setitem(challenge_tally.LIMITS, "tally_session", Limit("tally_session", 1, "", ""))
    _, code = teacher()
    at = opened({"c": PREDICT.number, "t": code})
    at.checkbox(key="challenges_take_part").check()
    ran(at)
    predicted(at, PREDICT, answers(PREDICT))
    pressed(at, "challenges_onward_next")
    second = challenges_of("all")[1]
    predicted(at, second, answers(second))
    assert list(counts(code)) == [PREDICT.key]
    assert "counts no more answers" in said(at)


def test_a_session_opens_few_rooms_and_is_told_so(pool, monkeypatch):
    monkeypatch.setitem(challenge_tally.LIMITS, "tally_opened", Limit("tally_opened", 2, "", ""))
    at = opened()
    for _ in range(2):
        pressed(at, "challenges_tally_open")
        pressed(at, "challenges_tally_close")
    pressed(at, "challenges_tally_open")
    assert "has opened 2 rooms, as many as it may" in said(at)
    assert "t" not in address(at)
    _, code = teacher()
    assert challenge_tally.rooms().is_open(challenge_tally.Key(code))


@pytest.mark.parametrize(
    ("state", "want"),
    [
        ({"counted": {"room": "ABCD", "counted": ["1", "4"]}}, ("1", "4")),
        ({"counted": {"room": "ABCE", "counted": ["1"]}}, ()),
        ({"counted": {"room": "ABCD", "counted": ["1", 2, None, "x" * 41, *"abc"]}}, ("1",)),
        ({"counted": {"room": "ABCD", "counted": "1"}}, ()),
        ({"counted": ["ABCD"]}, ()),
        ({"counted": None}, ()),
        ("nonsense", ()),
        (None, ()),
    ],
)
def test_what_a_browser_says_it_had_counted_is_read_strictly(monkeypatch, state, want):
    monkeypatch.setattr(voted.st, "session_state", {"key": state})
    assert voted.told("key", "ABCD", 4) == want


def test_when_all_rooms_are_taken_it_is_said(pool, monkeypatch):
    monkeypatch.setattr(challenge_tally.Tally, "open", lambda self: None)
    at = opened()
    pressed(at, "challenges_tally_open")
    assert "Too many rooms are open" in said(at)
    assert "t" not in address(at)


# --- parts ----------------------------------------------------------------------------------------------------------


def test_the_difference_of_two_programs_is_shown_and_escaped():
    shown = diff_html("a = 1\nb = 2\n", "a = 1\nb = '<b>'\n")
    assert "<del>− b = 2</del>" in shown
    assert (
        diff_html("\n\na\n", "\n\nb\n")
        == '<div class="cl-diff"><div><del>− a</del></div><div><ins>+ b</ins></div></div>'
    )
    assert "<ins>+ b = &#x27;&lt;b&gt;&#x27;</ins>" in shown
