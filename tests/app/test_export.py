"""Copy link and Export beside the strip of every page, through AppTest, always from app.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("scan", "lstm", "sequence", "gradients", "doctor")


def opened(page: str, **query: str) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    if page != "scan":
        at.run()
        at.switch_page(f"pages/views/{page}.py")
    for name, value in query.items():
        at.query_params[name] = value
    at.run()
    assert not at.exception
    assert not at.error, [e.value for e in at.error]
    return at


def buttons(at: AppTest, page: str) -> dict[str, bool]:
    """Which files the menu offers: name -> whether it can be had."""
    found = {button.key: button for button in at.get("download_button")}
    prefix = f"{page}_export_"
    return {key.removeprefix(prefix): not one.proto.disabled for key, one in found.items() if key.startswith(prefix)}


@pytest.mark.parametrize("page", PAGES)
def test_every_page_has_both_at_the_same_place(page):
    at = opened(page)
    assert {"script", "notebook"} <= set(buttons(at, page))
    assert sum(element.proto.id.endswith(f"-{page}_copy_link") for element in at.get("bidi_component")) == 1


@pytest.mark.parametrize("page", PAGES[:4])
def test_what_ran_can_be_had_as_program_and_as_numbers(page):
    assert buttons(opened(page), page) == {"script": True, "notebook": True, "csv": True, "npz": True}


def test_what_raises_is_a_program_without_numbers():
    assert buttons(opened("scan", step="grows"), "scan") == {
        "script": True,
        "notebook": True,
        "csv": False,
        "npz": False,
    }


def test_what_cannot_be_read_is_no_program():
    at = opened("scan", x="1, nothing", **{"from": "paste"})
    assert not any(buttons(at, "scan").values())
    assert any("there is no program of it" in caption.value for caption in at.caption)


def test_the_doctor_without_a_script_offers_nothing():
    assert not any(buttons(opened("doctor"), "doctor").values())
