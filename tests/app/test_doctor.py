"""The Doctor page through AppTest, always from app.py; jobs are done in this process, by the worker's own handler.

The editor is the plain text area here: AppTest runs no JavaScript.

Longer than 500 lines because it is one page, walked from its opening to its last bad input.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.base.limits import LIMITS
from core.doctor.answer import Request, Wish
from core.doctor.gallery import BROKEN, EXAMPLES, GUIDES
from core.doctor.job import Desk
from core.doctor.link import pack, unpack
from core.sandbox import timeup
from core.sandbox.pool_ticket import Done, Stopped, StopReason
from pages.widgets import doctor_backend, doctor_check, editor
from pages.widgets.doctor_export import report_json
from pages.widgets.doctor_open import read_file

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 60
RAIN = EXAMPLES["rain_in_whole_litres"].text
#: The same fault in a script that is none of ours.
BROKEN_SUM = """import jax
import jax.numpy as jnp

def add(total, x):
    total = total + x
    return total, total

final, ys = jax.lax.scan(add, jnp.int32(0), jnp.array([0.5, 1.5]))
print(final)
"""
CLEAN_SUM = BROKEN_SUM.replace("jnp.int32(0)", "0.0")


class Finished:
    """A ticket of a job that is over; `late`: as often as it says that it is not yet."""

    def __init__(self, result: Any, place: int = 0, late: int = 0) -> None:
        self.result, self.place, self.late = result, place, late
        self.cancelled = False

    def wait(self, seconds: float) -> bool:
        self.late -= 1
        return self.late < 0 or self.cancelled

    def cancel(self) -> None:
        self.cancelled = True
        self.result = Stopped(StopReason.CANCELLED)


class InProcess:
    """The pool's part, played in this process. `asked`: all requests; `answers`: what to give instead, by wish."""

    def __init__(self) -> None:
        self.desks: dict[str, Desk] = {}
        self.asked: list[tuple[str, str, str]] = []
        self.reserved: list[str] = []
        self.released: list[str] = []
        self.instead: dict[str, Any] = {}
        self.late: dict[str, tuple[int, int]] = {}

    def reserve(self, session: str) -> None:
        self.reserved.append(session)

    def submit(self, session: str, request: dict[str, Any]) -> Finished:
        wish, text = request["wish"], request["text"]
        self.asked.append((session, wish, text))
        place, late = self.late.get(wish, (0, 0))
        if wish in self.instead:
            instead = self.instead[wish]
            if isinstance(instead, Stopped) and instead.reason is StopReason.REPLACED:
                del self.instead[wish]  # once: by what another panel asked in between
            return Finished(instead, place, late)
        desk = self.desks.setdefault(session, Desk())
        answer = desk.handle(Request(Wish(wish), text))
        return Finished(Done(json.loads(json.dumps(answer))), place, late)

    def release(self, session: str) -> None:
        self.released.append(session)

    def close(self) -> None:
        for desk in self.desks.values():
            desk.close()

    @property
    def wishes(self) -> list[str]:
        return [wish for _, wish, _ in self.asked]


@pytest.fixture
def pool(monkeypatch):
    made = InProcess()
    monkeypatch.setattr(doctor_backend, "start", lambda: made)
    # The worker's alarm rings in a main thread, and AppTest runs the page in another one.
    monkeypatch.setattr(timeup, "arm", lambda seconds: None)
    monkeypatch.setattr(editor, "_code", None)
    monkeypatch.setattr(editor, "_why_not", "this is a test")
    forget()
    yield made
    forget()


def forget() -> None:
    """What the page keeps for the process; not the warm-up, which costs a second."""
    doctor_backend.backend.clear()
    doctor_backend.prepared.clear()


def opened(query: dict[str, str] | None = None) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT)
    at.run()
    for name, value in (query or {}).items():
        at.query_params[name] = value
    at.switch_page("pages/views/doctor.py")
    return ran(at)


def ran(at: AppTest) -> AppTest:
    at.run()
    assert not at.exception
    assert not at.error, at.error
    return at


def typed(at: AppTest, text: str) -> AppTest:
    at.text_area(key="doctor_code").set_value(text)
    return ran(at)


def pressed(at: AppTest, key: str) -> AppTest:
    at.button(key=key).click()
    return ran(at)


def html_of(at: AppTest) -> list[str]:
    return [element.proto.body for element in at.get("html")]


def text_of(fragment: str) -> str:
    from html import unescape

    fragment = re.sub(r"(?s)<style>.*?</style>", " ", fragment)
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", fragment)).strip())


def strip(at: AppTest) -> str:
    (found,) = [body for body in html_of(at) if 'class="cl-strip' in body]
    return text_of(found)


def cards(at: AppTest) -> list[str]:
    return [text_of(body) for body in html_of(at) if '<section class="cl-card' in body]


def said(at: AppTest) -> str:
    return " | ".join(text_of(body) for body in html_of(at))


def code(at: AppTest) -> str:
    return at.text_area(key="doctor_code").value


def labels(at: AppTest, words: str) -> list[str]:
    return [b.key for b in at.button if words in b.label]


# --- empty ----------------------------------------------------------------------------------------------------------


def test_opens_empty_and_says_the_three_ways_in(pool):
    at = opened()
    assert strip(at).startswith("○ Not checked yet Paste a script or an error, or try a broken one.")
    markdown = " ".join(m.value for m in at.markdown)
    assert "Paste code" in markdown
    assert "Paste an error" in markdown
    assert "Try a broken one" in said(at)
    assert len([b for b in at.button if (b.key or "").startswith("doctor_try_")]) == len(BROKEN)
    assert len(pool.reserved) == 1
    assert pool.asked == []
    assert not at.query_params


def test_navigation_leads_there(pool):
    at = opened()
    at.switch_page("pages/views/scan.py")
    ran(at)
    at.switch_page("pages/views/doctor.py")
    assert "Not checked yet" in strip(ran(at))


# --- shapes, run, fixes ---------------------------------------------------------------------------------------------


def test_typing_gives_shapes_and_runs_nothing(pool):
    at = typed(opened(), CLEAN_SUM)
    assert pool.wishes == ["shapes"]
    assert strip(at).startswith("≈ Shapes agree nothing was run yet")
    assert "total float32[]" in said(at)
    assert "Only its shapes were worked out" in said(at)
    assert not at.get("plotly_chart")


def test_typing_finds_what_raises_before_any_run(pool):
    at = typed(opened(), BROKEN_SUM)
    assert strip(at).startswith("✗ Contract broken: 1 error line 6 · from the shapes alone")
    assert "S104" in cards(at)[0]
    assert "Run tries fixes" in said(at)
    assert not labels(at, "Apply")


def test_run_gives_the_verdict_and_then_fixes(pool):
    at = pressed(typed(opened(), BROKEN_SUM), "doctor_run")
    assert pool.wishes == ["shapes", "check", "fixes"]
    assert len({session for session, _, _ in pool.asked}) == 1
    assert strip(at).startswith("✗ Contract broken: 1 error line 6 · ran in a worker")
    (card,) = cards(at)
    assert "① S104" in card
    assert "Line 8: init set int32[] here" in card
    assert "expected total" in card or "expected carry int32[] got carry float32[]" in card
    assert "What JAX said" in said(at)
    assert "− final, ys = jax.lax.scan(add, jnp.int32(0), jnp.array([0.5, 1.5]))" in said(at)
    assert "+ final, ys = jax.lax.scan(add, jnp.float32(0), jnp.array([0.5, 1.5]))" in said(at)


def test_apply_runs_again_and_undo_brings_it_back(pool):
    at = pressed(typed(opened(), BROKEN_SUM), "doctor_run")
    (key,) = labels(at, "Apply")
    at = pressed(at, key)
    assert code(at) == BROKEN_SUM.replace("jnp.int32(0)", "jnp.float32(0)")
    assert strip(at).startswith("✓ Contract kept")
    assert "final carry 2 · ys [0.5, 2] · ran in a worker" in strip(at)
    assert "2.0" in said(at)  # what it printed
    assert json.loads(at.get("plotly_chart")[0].proto.spec)["data"][0]["y"] == [0, 0.5, 2]
    at = pressed(at, "doctor_undo")
    assert code(at) == BROKEN_SUM
    assert strip(at).startswith("✗ Contract broken: 1 error line 6 · ran in a worker")
    assert [w for w in pool.wishes if w == "check"] == ["check"] * 3


def test_apply_all_of_two_faults(pool):
    at = pressed(opened(), "doctor_try_one_array_for_the_pair")
    assert strip(at).startswith("✗ Contract broken: 1 error, 1 warning lines 10 and 12")
    assert "S104 gone, L301 remains" in " ".join(b.label for b in at.button)
    at = pressed(at, "doctor_apply_all")
    assert strip(at).startswith("✓ Contract kept")
    assert at.button(key="doctor_undo")


def test_cards_come_before_their_fixes(pool, monkeypatch):
    pool.late["fixes"] = (0, 10**6)
    monkeypatch.setattr(doctor_check, "MOMENT", 0.0)
    at = pressed(typed(opened(), BROKEN_SUM), "doctor_run")
    assert pool.wishes[-1] == "fixes"
    assert "S104" in cards(at)[0]
    assert "Fixes are being tried" in said(at)
    assert "trying the fixes" in strip(at)
    assert at.button(key="doctor_cancel")


def test_an_edit_after_a_run_is_checked_by_its_shapes_alone(pool):
    at = pressed(typed(opened(), CLEAN_SUM), "doctor_run")
    assert at.get("plotly_chart")
    at = typed(at, CLEAN_SUM.replace("0.5, 1.5", "0.5, 1.5, 2.5"))
    assert pool.wishes[-1] == "shapes"
    assert strip(at).startswith("≈ Shapes agree")
    assert not at.get("plotly_chart")


def test_run_again_runs_again(pool):
    at = pressed(typed(opened(), CLEAN_SUM), "doctor_run")
    count = pool.wishes.count("check")
    pressed(at, "doctor_run")
    assert pool.wishes.count("check") == count + 1


@pytest.mark.parametrize("example", [*BROKEN, *GUIDES], ids=lambda example: example.name)
def test_an_example_shows_its_code_and_a_guide_is_clean(pool, example):
    at = pressed(opened(), f"doctor_{'open_example' if example.code else 'guide'}_{example.name}")
    assert code(at) == example.text
    assert dict(at.query_params) == {"v": "1", "e": example.name}
    if example.code:
        assert any(example.code in card for card in cards(at))
        assert not strip(at).startswith("✓")
        assert ("JAX is silent" in said(at)) is example.silent
    else:
        assert strip(at).startswith("✓ Contract kept")


def test_an_example_is_prepared_once_and_by_nobodys_worker(pool):
    first = opened({"e": "rain_in_whole_litres", "v": "1"})
    assert "S104" in cards(first)[0]
    asked = list(pool.asked)
    assert [w for _, w, _ in asked] == ["check", "fixes"]
    assert len({room for room, _, _ in asked}) == 1
    assert asked[0][0] not in pool.reserved
    assert pool.released == [asked[0][0]]
    second = opened({"e": "rain_in_whole_litres", "v": "1"})
    assert cards(second) == cards(first)
    assert pool.asked == asked


def test_a_class_that_opens_one_example_waits_for_one_job(pool, monkeypatch):
    monkeypatch.setattr(doctor_check, "MOMENT", 0.0)
    pool.late["check"] = (0, 5)
    one, two = (opened({"v": "1", "e": "rain_in_whole_litres"}) for _ in range(2))
    one = typed(one, CLEAN_SUM)  # the first one goes elsewhere
    for _ in range(6):
        two = ran(two)
    assert "S104" in cards(two)[0]
    assert [w for _, w, text in pool.asked if text == RAIN] == ["check", "fixes"]
    assert code(one) == CLEAN_SUM


# --- what goes wrong ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (StopReason.TIME, "⊘ Out of time"),
        (StopReason.MEMORY, "⊘ Out of memory"),
        (StopReason.DIED, "✗ The worker broke off"),
        (StopReason.OUTPUT, "⊘ Too much to show"),
    ],
)
def test_a_stopped_run_still_has_its_shapes_and_its_text(pool, reason, words):
    pool.instead["check"] = Stopped(reason, 5.0, 5)
    at = pressed(typed(opened(), CLEAN_SUM), "doctor_run")
    assert strip(at).startswith(words)
    assert "total float32[]" in said(at)
    assert code(at) == CLEAN_SUM
    if reason in (StopReason.TIME, StopReason.MEMORY):
        assert "X602" in cards(at)[0]
        assert "line 5" in cards(at)[0]


def test_fixes_that_were_broken_off_leave_the_verdict(pool):
    pool.instead["fixes"] = Stopped(StopReason.TIME, 5.0)
    at = pressed(typed(opened(), BROKEN_SUM), "doctor_run")
    assert strip(at).startswith("✗ Contract broken: 1 error line 6 · ran in a worker")
    assert "no time to try its fixes" in said(at)
    assert not labels(at, "Apply")


def test_busy_can_be_tried_again(pool):
    pool.instead["check"] = Stopped(StopReason.BUSY)
    at = pressed(typed(opened(), CLEAN_SUM), "doctor_run")
    assert "Too many at once" in strip(at)
    pool.instead.clear()
    assert strip(pressed(at, "doctor_run")).startswith("✓ Contract kept")


@pytest.mark.parametrize("junk", [{}, {"wish": "check"}, [], "x", None, {"wish": "shapes", "kind": 3}])
def test_an_answer_that_is_none_is_said_calmly(pool, junk):
    pool.instead["check"] = Done(junk)
    at = pressed(typed(opened(), CLEAN_SUM), "doctor_run")
    assert "The worker's answer could not be read" in strip(at)
    assert code(at) == CLEAN_SUM


def test_an_answer_to_another_question_is_not_taken(pool):
    desk = Desk()
    pool.instead["check"] = Done(json.loads(json.dumps(desk.handle(Request(Wish.SHAPES, CLEAN_SUM)))))
    at = pressed(typed(opened(), CLEAN_SUM), "doctor_run")
    assert "could not be read" in strip(at)
    desk.close()


def test_cancel(pool, monkeypatch):
    pool.late["check"] = (3, 10**6)
    monkeypatch.setattr(doctor_check, "MOMENT", 0.0)
    at = typed(opened(), CLEAN_SUM)
    at = pressed(at, "doctor_run")
    assert "Running number 3 in the queue" in strip(at)
    at = pressed(at, "doctor_cancel")
    assert strip(at).startswith("○ Cancelled")
    assert code(at) == CLEAN_SUM
    pool.late.clear()
    assert strip(pressed(at, "doctor_run")).startswith("✓ Contract kept")


@pytest.mark.parametrize("wish", ["shapes", "check", "fixes"])
def test_a_job_that_gave_way_to_another_panels_is_handed_in_again(pool, wish):
    pool.instead[wish] = Stopped(StopReason.REPLACED)
    at = pressed(typed(opened(), BROKEN_SUM), "doctor_run")
    assert pool.instead == {}
    assert pool.wishes.count(wish) == 2
    assert "Contract broken: 1 error" in strip(at)


def test_run_does_not_wait_for_shapes_in_the_queue(pool, monkeypatch):
    monkeypatch.setattr(doctor_check, "MOMENT", 0.0)
    pool.late["shapes"] = (1, 10**6)
    at = typed(opened(), CLEAN_SUM)
    assert "number 1 in the queue" in strip(at)
    at = pressed(at, "doctor_run")
    assert strip(at).startswith("✓ Contract kept")


def test_too_long_a_text_is_kept_and_not_handed_in(pool):
    limit = LIMITS["script_text"].value
    text = CLEAN_SUM + "#" * limit
    at = typed(opened(), text)
    assert strip(at).startswith("⊘ Over a limit")
    assert f"{len(text):,} characters" in strip(at)
    assert code(at) == text
    assert pool.asked == []
    assert "the address does not carry it" in said(at) or dict(at.query_params)


def test_a_raw_error_has_its_place_and_its_operands(pool):
    text = "import jax.numpy as jnp\na = jnp.ones((3, 4))\nb = jnp.ones((3, 5))\nprint('so far')\nc = a @ b\n"
    at = pressed(typed(opened(), text), "doctor_run")
    assert strip(at).startswith("✗ It raised TypeError line 5 · no rule explains it")
    assert "operands: a: float32[3,4], b: float32[3,5]" in cards(at)[0]
    assert "so far" in said(at)


def test_a_script_that_cannot_be_read(pool):
    at = typed(opened(), "def step(c, x:\n    return c\n")
    assert strip(at).startswith("✗ Python cannot read this script line 1")
    assert "SyntaxError" in cards(at)[0]


def test_words_are_no_code(pool):
    at = typed(opened(), "my scan does not work, please help me with it")
    assert strip(at).startswith("○ Words, no code")


# --- pastes ---------------------------------------------------------------------------------------------------------


def test_prompts_are_taken_off_and_a_fix_is_of_the_code(pool):
    paste = "\n".join(f">>> {line}" if line else ">>>" for line in BROKEN_SUM.rstrip().split("\n"))
    paste = paste.replace(">>>     ", "...     ")
    at = pressed(typed(opened(), paste), "doctor_run")
    assert "Prompts were taken off" in said(at)
    assert "S104" in cards(at)[0]
    (key,) = labels(at, "Apply")
    at = pressed(at, key)
    assert "jnp.float32(0)" in code(at)
    assert ">>>" not in code(at)
    at = pressed(at, "doctor_undo")
    assert code(at) == paste


def test_a_pasted_notebook_is_checked_and_its_code_comes_into_the_editor(pool):
    cells = [{"cell_type": "code", "source": BROKEN_SUM.splitlines(keepends=True)}]
    at = typed(opened(), json.dumps({"cells": cells}))
    assert "1 code cells of a notebook" in said(at)
    assert "S104" in cards(at)[0]
    at = pressed(at, "doctor_cells")
    assert code(at).startswith("# cell 1\nimport jax")
    assert "S104" in cards(at)[0]


def test_an_error_text_alone_leads_to_its_code(pool):
    text = (
        "TypeError: scan body function carry input and carry output must have equal types, but they differ:\n"
        "The input carry component state[1] has type int32[] but the corresponding output carry component has type "
        "float32[], so the dtypes do not match.\n"
    )
    at = typed(opened(), text)
    assert strip(at).startswith("○ An error message, without its code This message belongs to S104")
    assert any(m.value.startswith("#### S104") for m in at.markdown)


def test_a_stand_in_is_put_in_and_taken_out(pool):
    text = "import jax\nimport jax.numpy as jnp\n\ndef step(c, x):\n    return c + x, c\n\nf, ys = jax.lax.scan(step, jnp.zeros(3), rain)\n"
    at = pressed(typed(opened(), text), "doctor_run")
    assert "rain is used and never set" in said(at)
    at.text_input(key="doctor_stand_in_shape_0").set_value("4, 3")
    at.button(key="doctor_stand_in_use_0").click()
    ran(at)
    assert "a stand-in for rain" in code(at)
    assert strip(at).startswith("✓ Contract kept")
    assert code(pressed(at, "doctor_undo")) == text


def test_a_bad_shape_is_said(pool):
    text = "import jax\nf = jax.lax.scan(lambda c, x: (c, x), 0.0, rain)\n"
    at = pressed(typed(opened(), text), "doctor_run")
    at.text_input(key="doctor_stand_in_shape_0").set_value("a lot")
    at.button(key="doctor_stand_in_use_0").click()
    ran(at)
    assert any("A shape is whole numbers" in w.value for w in at.warning)
    assert code(at) == text


@pytest.mark.parametrize(
    ("name", "data", "text", "refusal"),
    [
        ("a.py", b"x = 1\r\n", "x = 1\n", ""),
        ("a.md", b"```python\nx = 1\n```\n", "```python\nx = 1\n```\n", ""),
        ("a.py", b"\xff\xfe\x00", "", "no text file"),
        ("a.ipynb", b"{", "", "no code cells"),
        ("a.ipynb", b'{"cells": [{"cell_type": "markdown", "source": "x"}]}', "", "no code cells"),
        (
            "a.ipynb",
            b'{"cells": [{"cell_type": "code", "source": ["x = 1\\n", "y = 2"]}]}',
            "# cell 1\nx = 1\ny = 2\n",
            "",
        ),
        ("a.ipynb", b"[" * 100_000, "", "no code cells"),
        ("a.py", b"#" * 20_001, "", "more than the 20,000"),
    ],
)
def test_files(name, data, text, refusal):
    found, why = read_file(name, data)
    assert found == text
    assert refusal in why
    assert bool(why) == bool(refusal)


def test_a_file_is_opened_and_is_not_run(pool):
    at = opened()
    at.file_uploader[0].set_value(("mine.py", CLEAN_SUM.encode(), "text/x-python"))
    ran(at)
    assert code(at) == CLEAN_SUM
    assert "Opened: mine.py." in said(at)
    assert pool.wishes == ["shapes"]


# --- step mode ------------------------------------------------------------------------------------------------------


def step_page(pool, step: str = "", init: str = "", xs: str = "") -> AppTest:
    at = opened()
    at.segmented_control(key="doctor_mode").set_value("step")
    ran(at)
    if step:
        at.text_area(key="doctor_step_code").set_value(step)
        ran(at)
    for name, text in (("doctor_init", init), ("doctor_xs", xs)):
        if text:
            at.text_input(key=name).set_value(text)
            ran(at)
    return at


def test_a_step_with_init_and_xs(pool):
    at = step_page(pool)
    assert strip(at).startswith("≈ Shapes agree")
    assert "float32[3]" in said(at)
    at = pressed(at, "doctor_run")
    assert "final carry 6 · ys [1, 3, 6]" in strip(at)
    assert "Scan over 3 steps" in said(at)


def test_faults_of_a_step_stand_at_their_fields_and_fixes_go_there(pool):
    at = pressed(step_page(pool, init="jnp.int32(0)"), "doctor_run")
    assert strip(at).startswith("✗ Contract broken: 1 error line 3")
    assert "line 3" in cards(at)[0]
    assert "(“init”)" in cards(at)[0]
    marks = [text_of(body) for body in html_of(at) if "cl-mark" in body]
    assert any("S104" in mark for mark in marks)
    assert "− init = jnp.int32(0)" in said(at)
    (key, *_) = labels(at, "Apply")
    at = pressed(at, key)
    assert at.text_input(key="doctor_init").value == "jnp.float32(0)"
    assert strip(at).startswith("✓ Contract kept")
    at = pressed(at, "doctor_undo")
    assert at.text_input(key="doctor_init").value == "jnp.int32(0)"


def test_a_step_from_a_link_stays_a_step_however_slow_its_answers_are(pool, monkeypatch):
    monkeypatch.setattr(doctor_check, "MOMENT", 0.0)
    pool.late |= {"shapes": (0, 2), "check": (0, 2), "fixes": (0, 2)}
    at = opened({"v": "1", "mode": "step", "init": "jnp.int32(0)"})
    for _ in range(3):
        ran(at)
    at = pressed(at, "doctor_run")
    for _ in range(6):
        ran(at)
    assert at.segmented_control(key="doctor_mode").value == "step"
    assert at.text_input(key="doctor_init").value == "jnp.int32(0)"
    assert strip(at).startswith("✗ Contract broken: 1 error line 3 · ran in a worker")


def test_a_whole_script_among_the_steps_goes_over_at_a_button(pool):
    at = step_page(pool, CLEAN_SUM)
    assert "it is a whole script, not a step" in said(at)
    at = pressed(at, "doctor_as_script")
    assert at.segmented_control(key="doctor_mode").value == "script"
    assert code(at) == CLEAN_SUM
    assert not labels(at, "Check it as a whole script")


def test_an_unreadable_init_is_said_at_init(pool):
    at = step_page(pool, init="jnp.zeros((2")
    assert strip(at).startswith("✗ Python cannot read this script")


# --- links ----------------------------------------------------------------------------------------------------------


def test_a_link_carries_the_script_and_runs_nothing(pool):
    at = typed(opened(), CLEAN_SUM)
    link = dict(at.query_params)
    assert set(link) == {"v", "s"}
    value = link["s"][0] if isinstance(link["s"], list) else link["s"]
    assert unpack(value) == CLEAN_SUM
    other = opened({"v": "1", "s": value})
    assert code(other) == CLEAN_SUM
    assert strip(other).startswith("≈ Shapes agree")
    assert set(pool.wishes) == {"shapes"}


def test_a_link_carries_a_step(pool):
    at = step_page(pool, init="1.", xs="jnp.arange(4.)")
    link = {name: v[0] if isinstance(v, list) else v for name, v in dict(at.query_params).items()}
    other = opened(link)
    assert other.segmented_control(key="doctor_mode").value == "step"
    assert other.text_input(key="doctor_xs").value == "jnp.arange(4.)"


def bomb() -> str:
    return base64.urlsafe_b64encode(zlib.compress(b"#" * 4_000_000, 9)).decode().rstrip("=")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"s": "!!!"}, "it is not whole"),
        ({"s": pack(RAIN)[:-20]}, "it is not whole"),
        ({"s": "A" * 20_000}, "characters are more than a link may hold"),
        ({"s": bomb()}, "it holds more than 20000 characters"),
        ({"e": "no_such"}, "there is none of this name"),
        ({"mode": "sideways"}, "that is none of its choices"),
        ({"foo": "1"}, "which this page does not have"),
    ],
)
def test_a_bad_link_is_refused_by_name(pool, query, words):
    at = opened({"v": "1", **query})
    assert words in said(at)
    assert code(at) == ""
    assert pool.asked == []


# --- export ---------------------------------------------------------------------------------------------------------


def test_the_issue_has_the_link_and_the_verdict(pool):
    at = pressed(typed(opened(), BROKEN_SUM), "doctor_run")
    (issue,) = [c.value for c in at.code if c.value.startswith("### Carry Lab")]
    assert "S104" in issue
    assert "jnp.float32(0)" in issue
    assert "{{link}}" not in issue


def test_json_is_that_of_the_command_line():
    from core.doctor.check import check_script
    from core.doctor.job import answer_of
    from core.doctor.report import as_json

    checkup = check_script(BROKEN_SUM)
    answer = answer_of(checkup, Wish.FIXES, fixed=True)
    want, got = as_json(checkup), report_json(answer)
    checkup.close()
    assert json.loads(json.dumps(got)) == json.loads(json.dumps(want))


# --- isolation ------------------------------------------------------------------------------------------------------


def test_sessions_share_nothing(pool):
    one, two = opened(), opened()
    typed(one, CLEAN_SUM)
    ran(two)
    assert code(two) == ""
    typed(two, BROKEN_SUM)
    ran(one)
    assert code(one) == CLEAN_SUM
    rooms = {text: session for session, _, text in pool.asked}
    assert rooms[CLEAN_SUM] != rooms[BROKEN_SUM]
    assert len(set(pool.reserved)) == 2
