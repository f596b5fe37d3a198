"""The code editor in a browser: what a test does to it, and what it reads off it."""

from __future__ import annotations

import json
import re
import time

from playwright.sync_api import Locator, Page, expect


def content(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Python code")


def text_of(page: Page) -> str:
    """What the editor shows, without messages and shapes."""
    return page.locator(".cm-content").evaluate(
        """(content) => [...content.querySelectorAll('.cm-line')].map((line) => {
            const copy = line.cloneNode(true);
            copy.querySelectorAll('.cl-shape').forEach((shape) => shape.remove());
            return copy.textContent;
        }).join('\\n')"""
    )


def seen(page: Page) -> dict:
    """What Python knows."""
    return json.loads(page.get_by_test_id("stCode").inner_text())


def wait_seen(page: Page, name: str, value: object) -> dict:
    deadline = time.monotonic() + 10
    while seen(page)[name] != value and time.monotonic() < deadline:
        page.wait_for_timeout(50)
    assert seen(page)[name] == value
    return seen(page)


def write(page: Page, text: str) -> None:
    """All new, as by a person who pastes."""
    content(page).click()
    page.keyboard.press("Control+a")
    page.evaluate(
        """(text) => {
            const host = [...document.querySelectorAll('*')].find((node) => node.shadowRoot?.querySelector('.cm-content'));
            const data = new DataTransfer();
            data.setData('text/plain', text);
            const paste = new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true, composed: true });
            host.shadowRoot.querySelector('.cm-content').dispatchEvent(paste);
        }""",
        text,
    )


def give_file(page: Page, name: str, text: str, how: str = "drop") -> None:
    """Drops or pastes a file."""
    page.evaluate(
        """([name, text, how]) => {
            const host = [...document.querySelectorAll('*')].find((node) => node.shadowRoot?.querySelector('.cm-content'));
            const data = new DataTransfer();
            data.items.add(new File([text], name));
            const options = { bubbles: true, cancelable: true, composed: true };
            const event = how === 'drop'
                ? new DragEvent('drop', { ...options, dataTransfer: data, clientX: 300, clientY: 200 })
                : new ClipboardEvent('paste', { ...options, clipboardData: data });
            host.shadowRoot.querySelector('.cm-content').dispatchEvent(event);
        }""",
        [name, text, how],
    )


def marked(page: Page, severity: str) -> list[str]:
    return page.locator(f".cl-squiggle.cl-{severity}").all_inner_texts()


def told(page: Page, words: str | re.Pattern[str]) -> None:
    expect(page.locator(".cl-live")).to_contain_text(words)
