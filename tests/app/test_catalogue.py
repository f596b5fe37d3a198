"""The catalogue through AppTest, always from app.py."""

from __future__ import annotations

import html
import re
from pathlib import Path

from streamlit.testing.v1 import AppTest

from core.catalogue.entries import entries

ROOT = Path(__file__).resolve().parents[2]
PASTED = """Traceback (most recent call last):
  File "train.py", line 12, in <module>
    final, ys = jax.lax.scan(step, jnp.int32(0), xs)
TypeError: scan body function carry input and carry output must have equal types, but they differ:

The input carry total has type int32[] but the corresponding output carry component has type float32[], so the dtypes do not match.
"""


def opened(query: dict[str, str] | None = None) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    at.run()
    for name, value in (query or {}).items():
        at.query_params[name] = value
    at.switch_page("pages/views/catalogue.py")
    return ran(at)


def ran(at: AppTest) -> AppTest:
    at.run()
    assert not at.exception
    assert not at.error, [e.value for e in at.error]
    return at


def strip(at: AppTest) -> str:
    bodies = [element.proto.body for element in at.get("html")]
    (body,) = [body for body in bodies if '<div class="cl-strip' in body]
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body)).strip())


def said(at: AppTest) -> str:
    texts = (
        [element.proto.body for element in at.get("html")]
        + [m.value for m in at.markdown]
        + [c.value for c in at.caption]
    )
    return " ".join(re.sub(r"<[^>]+>", " ", text) for text in texts)


def rows(at: AppTest) -> list[str]:
    return [
        button.key.removeprefix("catalogue_open_")
        for button in at.button
        if (button.key or "").startswith("catalogue_open_")
    ]


def test_all_codes_are_listed_once():
    at = opened()
    assert sorted(rows(at)) == [entry.code for entry in entries()]
    assert f"{len(entries())} mistakes" in strip(at)


def test_a_pasted_error_leads_to_its_code():
    at = opened()
    at.text_area(key="catalogue_search").set_value(PASTED)
    ran(at)
    assert "This message belongs to S104" in said(at)
    assert rows(at)[0] == "S104"
    at.button(key="catalogue_open_S104").click()
    ran(at)
    assert strip(at).startswith("○ S104 The carry's dtype changes inside the step · JAX raises")
    assert at.query_params["c"] in ("S104", ["S104"])


def test_words_find_codes_and_nonsense_finds_none():
    at = opened()
    at.text_area(key="catalogue_search").set_value("padding")
    ran(at)
    assert "L311" in rows(at)
    assert len(rows(at)) < 12
    at.text_area(key="catalogue_search").set_value("xyzzy")
    ran(at)
    assert rows(at) == []
    assert "No code speaks of this." in said(at)


def test_every_entry_can_be_walked_to_and_back():
    at = opened({"c": "S101"})
    for entry in entries()[entries().index(next(e for e in entries() if e.code == "S101")) : -1]:
        assert f" {entry.code} " in strip(at)
        at.button(key="catalogue_next").click()
        ran(at)
    assert f" {entries()[-1].code} " in strip(at)
    at.button(key="catalogue_all").click()
    ran(at)
    assert len(rows(at)) == len(entries())


def test_a_link_names_a_code_however_it_is_written_and_a_wrong_one_is_refused_by_name():
    assert strip(opened({"c": "n502"})).startswith("○ N502")
    at = opened({"c": "Z999"})
    assert len(rows(at)) == len(entries())
    assert any("Z999" in warning.value and "no such code" in warning.value for warning in at.warning)
