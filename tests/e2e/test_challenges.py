"""Challenges in the browser: a learner answers one of each kind by hand, and a class shares a room."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from core.challenges.challenge import Challenge, Kind, Side
from core.challenges.fields import challenges_of
from core.challenges.grading import answer_text, broken_codes, title_of
from core.doctor import grade_job, job

type OpenPage = Callable[..., Page]

LONG = 120_000
PREDICT, FIX, SPOT = (next(one for one in challenges_of("easy") if one.kind is kind) for kind in Kind)
SIDEWAYS = """() => {
  const of = (e) => e.scrollWidth - e.clientWidth;
  return Math.max(of(document.documentElement), of(document.querySelector('[data-testid=stMain]')));
}"""
#: Every text in code, in a table or in a field that is smaller than 20 pixels on the screen.
SMALL = """() => [...document.querySelectorAll('.stMainBlockContainer :is(pre, code, td, th, input, .cm-line)')]
    .filter((e) => e.checkVisibility() && e.getBoundingClientRect().width && !e.closest('[aria-hidden=true]'))
    .map((e) => [parseFloat(getComputedStyle(e).fontSize) * e.currentCSSZoom, e.tagName, e.textContent.slice(0, 30)])
    .filter(([size]) => size < 19.9)"""


def answers(challenge: Challenge) -> list[str]:
    """The right answers to a "predict", found by running it."""
    run = grade_job.read(json.loads(json.dumps(job.handle(challenge.requests()[0]))))
    return [answer_text(ask, run) for ask in challenge.asks]


def code_of(challenge: Challenge) -> str:
    """What is wrong with the wrong one of a "spot", found by checking it."""
    run = grade_job.read(json.loads(json.dumps(job.handle(challenge.requests()[0]))))
    return next(code for code in broken_codes(run) if code in challenge.options)


def strip(page: Page) -> Locator:
    return page.locator(".cl-strip")


def check(page: Page) -> None:
    page.locator(".st-key-challenges_check").get_by_role("button", name="Check").first.click()


def predict(page: Page, texts: list[str]) -> None:
    for number, text in enumerate(texts):
        page.locator("[data-testid=stForm]").get_by_role("textbox").nth(number).fill(text)
    check(page)


def spot(page: Page, side: Side, code: str) -> None:
    form = page.locator("[data-testid=stForm]")
    form.get_by_text(side.value.capitalize(), exact=True).click()
    form.get_by_text(f"{title_of(code)} · {code}", exact=True).click()
    check(page)


def test_a_learner_answers_one_of_each_kind_and_takes_the_sheet_along(open_page: OpenPage):
    page = open_page("/challenges?s=easy&seed=7")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("heading", name=PREDICT.title)).to_be_visible(timeout=LONG)

    predict(page, ["98765", answers(PREDICT)[1]])
    expect(strip(page)).to_contain_text("Not right yet", timeout=LONG)
    page.get_by_role("button", name="Hint 1 of").click()
    expect(page.locator(".cl-challenge-hint")).to_have_count(1, timeout=LONG)
    predict(page, answers(PREDICT))
    expect(page.locator(".cl-challenge-solved")).to_have_text("Right, at try 2.", timeout=LONG)

    page.get_by_role("button", name="All challenges").click()
    page.get_by_role("button", name=FIX.title).click()
    expect(page.locator(".cm-content")).to_contain_text("import jax", timeout=LONG)
    first = page.locator(".cm-line").first
    first.click()
    page.keyboard.press("ControlOrMeta+Home")
    page.keyboard.type("# looked at")
    page.keyboard.press("Enter")
    page.keyboard.press("Control+Enter")
    expect(page.locator("section.cl-card").first).to_be_visible(timeout=LONG)
    expect(strip(page)).to_contain_text("Not right yet")
    page.get_by_role("button", name="Start again").first.click()
    expect(page.locator(".cm-content")).not_to_contain_text("looked at", timeout=LONG)
    page.locator(".cm-content").click()
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.insert_text(FIX.other)
    page.keyboard.press("Control+Enter")
    expect(page.locator(".cl-challenge-solved")).to_have_text("Right, at try 2.", timeout=LONG)
    expect(page.locator(".st-key-challenges_outcome_right .cl-diff")).to_be_visible()
    expect(page.get_by_role("link", name="Open in Doctor")).to_be_visible()

    page.get_by_role("button", name="All challenges").click()
    page.get_by_role("button", name=SPOT.title).click()
    expect(page.locator(".cl-numbered")).to_have_count(2, timeout=LONG)
    spot(page, SPOT.side(7), code_of(SPOT))
    expect(page.locator(".cl-challenge-solved")).to_have_text("Right, at the first try.", timeout=LONG)

    page.get_by_role("button", name="All challenges").click()
    expect(page.locator(".st-key-challenges_progress")).to_contain_text("3 of", timeout=LONG)
    with page.expect_download() as download:
        page.locator(".st-key-challenges_sheet_csv button").first.click()
    rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8"))))
    assert [(row["challenge"], row["result"], row["tries"]) for row in rows] == [
        (PREDICT.key, "right", "2"),
        (FIX.key, "right", "2"),
        (SPOT.key, "right", "1"),
    ]
    assert {row["seed"] for row in rows} == {"7"}
    assert "98765" not in str(rows)
    page.locator(".st-key-challenges_export button").first.click()
    with page.expect_download() as download:
        page.locator(".st-key-challenges_export_json button").first.click()
    found = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert [one["challenge"] for one in found["results"]] == [PREDICT.key, FIX.key, SPOT.key]


def test_two_learners_share_a_room_and_a_third_one_in_another_sees_nothing_of_it(open_page: OpenPage):
    codes = []
    for _ in range(2):
        teacher = open_page("/challenges?s=easy&seed=7")
        teacher.get_by_role("button", name="Open a class tally").click()
        expect(teacher.locator(".cl-room strong")).to_have_text(re.compile(r"\w{4}"), timeout=LONG)
        codes.append(teacher.locator(".cl-room strong").inner_text())
        expect(teacher.locator("code", has_text=f"/challenges?s=easy&seed=7&t={codes[-1]}").first).to_be_visible()
    path = f"/challenges?c={SPOT.number}&seed=7"
    learners = [open_page(f"{path}&t={code}") for code in (codes[0], codes[0], codes[1])]
    silent = open_page(f"{path}&t={codes[0]}")
    for page, side in zip([*learners, silent], [*Side, Side.LEFT, Side.LEFT], strict=True):
        box = page.get_by_role("checkbox")
        expect(box).not_to_be_checked()
        expect(page.locator(".st-key-challenges_answers")).to_contain_text("once you have answered yourself")
        if page is not silent:
            page.locator(".st-key-challenges_take_part label").click()
            expect(page.locator(".st-key-challenges_tally_notice")).to_contain_text("On.", timeout=LONG)
        spot(page, side, SPOT.options[0])
        expect(page.locator(".cl-bars, .st-key-challenges_answers .cl-quiet").first).to_be_visible(timeout=LONG)
    # They hear of one another by themselves.
    for page in (learners[0], learners[1], silent):
        expect(page.locator(".st-key-challenges_answers caption")).to_have_text("2 answers", timeout=LONG)
    expect(learners[2].locator(".st-key-challenges_answers caption")).to_have_text("1 answer", timeout=LONG)
    expect(silent.locator(".st-key-challenges_answers")).to_contain_text("not counted")

    screen = open_page(f"{path}&t={codes[0]}&present=1", width=1366, height=768)
    expect(screen.locator(".st-key-challenges_answers caption")).to_have_text("2 answers", timeout=LONG)
    expect(screen.get_by_role("checkbox")).to_have_count(0)
    assert screen.evaluate(SIDEWAYS) <= 0
    assert screen.evaluate(SMALL) == []


def test_after_a_reload_the_tab_knows_what_was_counted_and_nothing_is_counted_twice(open_page: OpenPage):
    teacher = open_page("/challenges")
    teacher.get_by_role("button", name="Open a class tally").click()
    expect(teacher.locator(".cl-room strong")).to_have_text(re.compile(r"\w{4}"), timeout=LONG)
    path = f"/challenges?c={SPOT.number}&seed=7&t={teacher.locator('.cl-room strong').inner_text()}"

    def take_part(page: Page) -> None:
        page.locator(".st-key-challenges_take_part label").click()
        expect(page.locator(".st-key-challenges_tally_notice")).to_contain_text("On.", timeout=LONG)

    page = open_page(path)
    take_part(page)
    spot(page, Side.LEFT, SPOT.options[0])
    caption = page.locator(".st-key-challenges_answers caption")
    expect(caption).to_have_text("1 answer", timeout=LONG)
    page.reload()
    take_part(page)
    spot(page, Side.RIGHT, SPOT.options[1])
    expect(page.locator(".st-key-challenges_answers")).to_contain_text("is counted", timeout=LONG)
    expect(caption).to_have_text("1 answer", timeout=LONG)
    other = open_page(path)  # somebody else's browser
    take_part(other)
    spot(other, Side.LEFT, SPOT.options[0])
    expect(other.locator(".st-key-challenges_answers caption")).to_have_text("2 answers", timeout=LONG)


def test_the_keyboard_alone_answers_a_challenge(open_page: OpenPage):
    page = open_page(f"/challenges?c={PREDICT.number}")
    expect(page.get_by_role("heading", name=PREDICT.title)).to_be_visible(timeout=LONG)
    page.locator("[data-testid=stForm]").get_by_role("textbox").first.focus()
    for text in answers(PREDICT):
        page.keyboard.type(text)
        page.keyboard.press("Tab")
    expect(page.locator(".st-key-challenges_check button").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".cl-challenge-solved")).to_be_visible(timeout=LONG)
    button = page.get_by_role("button", name="Next challenge")
    for _ in range(25):
        page.keyboard.press("Tab")
        if button.evaluate("(one) => one === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=challenges_of("all")[1].title)).to_be_visible(timeout=LONG)


@pytest.mark.parametrize(
    "query", ["", f"?c={PREDICT.number}", f"?c={FIX.number}", f"?c={SPOT.number}", "?s=more&seed=3"]
)
def test_a_telephone_needs_no_sideways_scroll(open_page: OpenPage, query: str):
    page = open_page(f"/challenges{query}", width=360, height=780)
    expect(strip(page)).to_contain_text(re.compile("hallenge"), timeout=LONG)
    assert page.evaluate(SIDEWAYS) <= 0
