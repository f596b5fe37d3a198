"""A learner goes through a lesson in the browser: by the controls of the page, not by a shortcut."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

type OpenPage = Callable[..., Page]

#: Pixels that the rail may take of a page of 1400 x 900, so that the plot stays in view.
TALLEST = 130
SIDEWAYS = """() => {
  const of = (e) => e.scrollWidth - e.clientWidth;
  return Math.max(of(document.documentElement), of(document.querySelector('[data-testid=stMain]')));
}"""
LONG = 60_000


def rail(page: Page) -> Locator:
    return page.locator(".st-key-lesson_rail")


def done(page: Page) -> None:
    expect(rail(page).get_by_role("status")).to_contain_text("✓ Done", timeout=LONG)


def at_step(page: Page, step: int, of: int = 4) -> None:
    expect(rail(page)).to_contain_text(f"step {step} of {of}", timeout=LONG)
    expect(rail(page).get_by_role("status")).not_to_contain_text("✓")


def onward(page: Page, step: int, of: int = 4) -> None:
    rail(page).get_by_role("button", name="Next", exact=True).click()
    at_step(page, step, of)


def test_lesson_3_is_learned_by_hand(open_page: OpenPage):
    page = open_page("/lessons?n=3", width=1400, height=900)
    page.get_by_role("button", name="Begin", exact=True).click()
    at_step(page, 1)
    box = rail(page).bounding_box()
    assert box is not None
    assert box["height"] <= TALLEST

    page.locator(".st-key-scan_step input").fill("Carry gains")
    page.get_by_role("option", name="Carry gains an axis").click()
    done(page)
    onward(page, 2)
    page.get_by_role("button", name="Apply: ").first.click()
    done(page)
    onward(page, 3)
    page.get_by_role("button", name="int init").click()
    done(page)
    onward(page, 4)
    page.get_by_role("button", name="Apply: ").first.click()
    done(page)
    expect(rail(page)).to_contain_text("this was the last step")
    rail(page).get_by_role("button", name="All lessons").click()
    expect(page.locator(".st-key-lessons_row_3")).to_contain_text("✓ done")
    expect(rail(page)).to_have_count(0)


def test_the_rail_in_the_doctor_sees_what_the_worker_found(open_page: OpenPage):
    page = open_page("/doctor?lesson=11.3")
    at_step(page, 3, 5)
    rail(page).get_by_role("button", name="Set it up").click()
    done(page)
    onward(page, 4, 5)
    rail(page).get_by_role("button", name="Set it up").click()
    done(page)
    # This step brings a script of its own, which is run at once; its fix is on the card.
    onward(page, 5, 5)
    expect(page.locator(".cm-content")).to_contain_text("rate = 0.02", timeout=LONG)
    page.get_by_role("button", name="Apply: Pass rate as an argument").first.click(timeout=LONG)
    done(page)


def test_a_telephone_shows_the_whole_rail(open_page: OpenPage):
    page = open_page("/lstm?lesson=6", width=360, height=800)
    expect(rail(page)).to_contain_text("step 1 of 5")
    assert page.evaluate(SIDEWAYS) <= 0
    for name in ("Hint", "Read on", "Set it up", "Back", "Next"):
        box = rail(page).get_by_role("button", name=name).bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360
    rail(page).get_by_role("button", name="Read on").click()
    expect(page.get_by_text("An LSTM carries two arrays")).to_be_visible()
