"""A training run saved, broken and restored part by part, in a real browser."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, expect

SLOW = 60_000
RUN = "/gradients?v=1&of=training&opt=adam&n=5"


def panel(page: Page):
    return page.locator(".st-key-gradients_run_panel")


def went_on(page: Page) -> str:
    """What comes of the state in use: loss before and after."""
    text = panel(page).get_by_text("Going on from here")
    expect(text).to_have_count(1, timeout=SLOW)
    return text.inner_text()


def goes_on_as(page: Page, text: str) -> None:
    """Waits until that is what comes of the state in use.

    Asked of the panel: while a rerun is under way, the paragraph before it stands beside the new one.
    """
    expect(panel(page)).to_contain_text(text, timeout=SLOW)
    expect(panel(page).get_by_text("Going on from here")).to_have_text([text], timeout=SLOW)


def give(page: Page, path: Path) -> None:
    panel(page).locator("input[type=file]").set_input_files(path)


def parts(page: Page):
    """The rows of the table of parts: name, arrays, numbers, hash, from."""
    return panel(page).locator("table").first.locator("tbody tr")


def choose(page: Page, optimizer: str) -> None:
    box = page.locator(".st-key-gradients_optimizer input")
    box.click()
    box.fill(optimizer)
    page.get_by_role("option", name=optimizer, exact=True).click()


def test_a_run_is_saved_broken_and_restored_part_by_part(open_page, tmp_path):
    page = open_page(RUN, height=1400)
    uninterrupted = went_on(page)
    expect(parts(page)).to_have_count(4)
    expect(parts(page).nth(1)).to_contain_text("this model has no batch norm")
    with page.expect_download(timeout=SLOW) as waiting:
        panel(page).get_by_role("button", name="Save (.safetensors)").click()
    saved = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(saved)

    # Break: another seed is another run.
    seed = page.locator(".st-key-gradients_seed input")
    seed.fill("7")
    seed.press("Enter")
    expect(page).to_have_url(re.compile("seed=7|s=7"), timeout=SLOW)
    expect(panel(page)).not_to_contain_text(uninterrupted, timeout=SLOW)

    # A damaged part is refused with its reason, the others are offered.
    data = bytearray(saved.read_bytes())
    data[-3] ^= 1
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(data)
    before = went_on(page)
    give(page, damaged)
    expect(panel(page).locator(".cl-no").first).to_be_visible(timeout=SLOW)
    assert went_on(page) == before

    # Restore the moments alone: the parameters are still those of seed 7.
    give(page, saved)
    expect(panel(page).get_by_text(re.compile(r"^✓ fits"))).to_have_count(3, timeout=SLOW)
    for name in ("parameters", "RNG state"):
        panel(page).get_by_role("button", name=name, exact=True).click()
    panel(page).get_by_role("button", name="Restore optimizer state").click()
    expect(parts(page).nth(3)).to_contain_text(saved.name, timeout=SLOW)
    expect(parts(page).nth(0)).to_contain_text("this run, after update 5")

    # Restore all: the run goes on as if nothing had been. Another data seed would not: the data are the page's.
    give(page, saved)
    panel(page).get_by_role("button", name="Restore parameters, RNG state, optimizer state").click()
    goes_on_as(page, uninterrupted)
    assert "Restored from" in panel(page).inner_text()

    # The way back, and back to the page's own run.
    panel(page).get_by_role("button", name="Roll back").click()
    expect(panel(page).get_by_text("its control was run again")).to_be_visible(timeout=SLOW)
    expect(parts(page).nth(0)).to_contain_text("this run, after update 5")
    panel(page).get_by_role("button", name="Back to this run").click()
    expect(parts(page).nth(3)).to_contain_text("this run, after update 5", timeout=SLOW)
    goes_on_as(page, before)


def test_a_file_of_something_else_changes_nothing(open_page, tmp_path):
    page = open_page(RUN, width=360, scheme="dark")
    before = went_on(page)
    for name, content in (
        ("run.pkl", b"\x80\x04\x95."),
        ("run.zip", b"PK\x03\x04" + bytes(64)),
        ("run.safetensors", bytes(64)),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        give(page, path)
        expect(panel(page).get_by_text(f"{name} was refused at")).to_be_visible(timeout=SLOW)
        assert went_on(page) == before
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_state_of_another_size_is_kept_aside(open_page, tmp_path):
    page = open_page(RUN, height=1400)
    first = went_on(page)
    with page.expect_download(timeout=SLOW) as waiting:
        panel(page).get_by_role("button", name="Save (.safetensors)").click()
    saved = tmp_path / "run.safetensors"
    waiting.value.save_as(saved)
    give(page, saved)
    panel(page).get_by_role("button", name="Restore ").click()
    expect(parts(page).nth(0)).to_contain_text("run.safetensors", timeout=SLOW)
    choose(page, "sgd")
    expect(panel(page).get_by_text("The state in use is of another run")).to_be_visible(timeout=SLOW)
    expect(parts(page).nth(3)).to_contain_text("sgd keeps nothing")
    choose(page, "adam")
    expect(parts(page).nth(0)).to_contain_text("run.safetensors", timeout=SLOW)
    goes_on_as(page, first)
