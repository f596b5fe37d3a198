"""Saving, breaking and restoring parameters in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from core.weights.cell import cell_file
from core.weights.load import load_cell
from tests.unit.weights.support import changed, drawn

SLOW = 60_000


def panel(page: Page, name: str):
    return page.locator(f".st-key-{name}_weights_panel")


def beside_the_seed(page: Page):
    return page.locator(".cl-mark", has_text="the parameter seed is not used")


def load(page: Page, name: str, path: Path) -> None:
    panel(page, name).locator("input[type=file]").set_input_files(path)


def spoilt(data: bytes) -> bytes:
    """The same file with the last bit of one number turned over."""

    def nudge(array):
        array.view(np.uint32)[0, 0] ^= 1
        return array

    return changed(data, "params/cell.ii.kernel", nudge)


@pytest.mark.parametrize("name", ["lstm", "sequence"])
def test_save_break_and_restore(name: str, open_page: Callable[..., Page], tmp_path: Path):
    page = open_page(f"/{name}")
    page.set_default_timeout(SLOW)
    box = panel(page, name)
    expect(box).to_contain_text("In use: the parameters that nnx.Rngs(0) draws", timeout=SLOW)

    # Save: the file is what the page runs with, and passes every check.
    with page.expect_download(timeout=SLOW) as waiting:
        box.get_by_role("button", name="Save (.safetensors)").click()
    saved = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(saved)
    seeds = load_cell(saved.read_bytes())
    assert saved.name == f"carry-lab-weights-{seeds.short}.safetensors"
    expect(box).to_contain_text(f"hash {seeds.short}", timeout=SLOW)

    # Another set is taken, and said beside the seed and in the link.
    other = drawn()
    given = tmp_path / "other.safetensors"
    given.write_bytes(cell_file(other))
    load(page, name, given)
    expect(box).to_contain_text(
        f"other.safetensors was taken: LSTMCell, F = 3, H = 4, hash {other.short}", timeout=SLOW
    )
    expect(beside_the_seed(page)).to_contain_text(f"hash {other.short}", timeout=SLOW)
    page.wait_for_url(f"**w={other.in_link}*", timeout=SLOW)

    # Break: a tampered file is refused at its place, and what runs stays.
    bad = tmp_path / "tampered.safetensors"
    bad.write_bytes(spoilt(saved.read_bytes()))
    load(page, name, bad)
    expect(box).to_contain_text("tampered.safetensors was refused at “hash”", timeout=SLOW)
    expect(box).to_contain_text("Nothing was changed.")
    expect(box).to_contain_text(f"In use: weights from a file, hash {other.short}")

    # Restore: the set before runs again, after its control forward.
    box.get_by_role("button", name="Roll back").click()
    expect(box).to_contain_text(
        "Rolled back to the parameters of seed 0; its control forward was run again", timeout=SLOW
    )
    expect(box).to_contain_text(f"In use: the parameters that nnx.Rngs(0) draws, hash {seeds.short}")
    expect(beside_the_seed(page)).to_have_count(0, timeout=SLOW)
    expect(page.locator(".cl-strip")).to_contain_text("Contract kept", timeout=SLOW)
