"""What a worker is asked and answers, part by part, as plain data."""

from __future__ import annotations

import json

import pytest

from core.doctor.answer import Wish
from core.report import worker
from core.report.compose import UnmakeableError, compose
from core.report.model import IncompleteReportError, Name, Status, Verdict
from core.report.parts import CRITERIA, Part, Piece
from core.report.plain import NotPlainError, plain
from core.report.wanted import SCRIPT, Wanted, from_link

SCAN = Wanted("scan", from_link("scan", {}).values)


def asked_once(wanted, part):
    """As it goes over the wire."""
    return worker.read_piece(json.loads(json.dumps(worker.handle(worker.request(wanted, part)), allow_nan=False)))


def asked(wanted, part):
    """Again and again, until it is done."""
    piece = asked_once(wanted, part)
    while piece.more:
        piece = asked_once(wanted, part)
    return piece


def test_all_parts_of_a_page_make_a_report():
    pieces = {part: asked(SCAN, part) for part in Part}
    report = compose(pieces, (0.1, 0.2, 0.3))
    assert report.verdict is Verdict.PASS
    assert report.machine.load_before == (0.1, 0.2, 0.3)


def test_a_long_part_is_done_step_by_step_each_in_a_request_of_its_own():
    wanted = Wanted("gradients", from_link("gradients", {"T": "3", "hidden": "2"}).values)
    first = [asked_once(wanted, Part.GRADIENTS) for _ in range(5)]
    assert [one.more for one in first] == [True] * 4 + [False]  # what is looked at, then three cells
    assert [one.name for one in first[-1].criteria] == [Name.LOSS, Name.GRADIENTS]


def test_a_part_that_was_stopped_leaves_its_criteria_not_run():
    pieces: dict[Part, Piece | str] = {part: asked(SCAN, part) for part in (Part.GIVEN, Part.CHECKS)}
    pieces |= {Part.JIT: "It was stopped after 5 s.", Part.LATENCY: "It was stopped after 5 s."}
    report = compose(pieces, ())
    assert report.verdict is Verdict.INCOMPLETE
    assert report[Name.JIT].status is Status.NOT_RUN
    assert report[Name.JIT].detail == report.latency_missing == "It was stopped after 5 s."
    assert report[Name.VMAP].status is Status.NOT_RUN


def test_without_what_was_run_there_is_no_report():
    with pytest.raises(UnmakeableError, match="stopped"):
        compose({Part.GIVEN: "It was stopped."}, ())
    with pytest.raises(UnmakeableError):
        compose({}, ())


def test_a_worker_cannot_answer_for_another_part():
    pieces: dict[Part, Piece | str] = {part: asked(SCAN, part) for part in (Part.GIVEN, Part.CHECKS)}
    pieces[Part.JIT] = pieces[Part.CHECKS]
    with pytest.raises(IncompleteReportError):
        compose(pieces, ())


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(criteria=[{"name": "jit"}]),
        lambda d: d.update(problem=7),
        lambda d: d.pop("latency"),
        lambda d: d.update(more=[]),
        lambda d: d["criteria"][0].update(number="large"),
        lambda d: d["criteria"][0].update(detail="x" * 30_000),
    ],
)
def test_an_answer_that_is_none_is_refused(change):
    data = plain(asked(SCAN, Part.CHECKS))
    change(data)
    with pytest.raises(NotPlainError):
        worker.read_piece(data)


def test_what_cannot_be_read_is_a_problem_with_a_sentence():
    values = from_link("scan", {"from": "paste", "x": "1, two"}).values
    piece = asked(Wanted("scan", values), Part.GIVEN)
    assert "two" in piece.problem
    assert piece.given is None
    bad = asked(Wanted("scan", SCAN.values, declared={"axes": "TT"}), Part.GIVEN)
    assert bad.field == "axes"


def test_other_requests_are_the_doctors():
    answer = worker.handle({"wish": str(Wish.CHECK), "text": "print(1)"})
    assert answer["stdout"] == "1\n"


def test_a_stranger_s_script_runs_in_the_sandbox_s_language():
    piece = asked(Wanted(SCRIPT, text="import os\nos.system('true')"), Part.CHECKS)
    assert next(one for one in piece.criteria if one.name is Name.RULES).status is Status.FAIL


def test_values_are_hashed_unless_they_are_asked_for():
    text = json.dumps(plain(asked(SCAN, Part.GIVEN)))
    assert "[1.0, 2.0, 3.0]" not in text
    assert "1, 2, 3" not in text
    shown = asked(Wanted("scan", SCAN.values, with_values=True), Part.GIVEN)
    assert shown.given is not None
    assert shown.given.inputs[1].values == (1.0, 2.0, 3.0)


def test_the_parts_cover_all_criteria():
    assert {name for part in Part for name in CRITERIA[part]} == set(Name)
