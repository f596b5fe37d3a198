"""The Doctor's link: a script compressed, read back within bounds; and the gallery that links name."""

from __future__ import annotations

import ast
import base64
import random
import zlib

import pytest

from core.base.limits import LIMITS
from core.contract.rule import all_rules
from core.doctor.gallery import BROKEN, EXAMPLES, GUIDES, example_of
from core.doctor.link import DEFAULT_STEP, FIELDS, SCRIPT, STEP, pack, unpack
from core.inputs.fields import RefusedError

TEXT = "import jax\n\n# ∑ äöü 🙂\nprint('x' * 3)\n"


def packed(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@pytest.mark.parametrize("text", ["", "x", TEXT, TEXT * 50, "\n" * 20_000, "🙂" * 20_000])
def test_there_and_back(text):
    assert unpack(pack(text)) == text
    assert pack(text).replace("-", "").replace("_", "").isalnum()


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        ("", "not whole"),
        ("!", "not whole"),
        ("€uro", "not whole"),
        ("AAAA", "not whole"),
        (pack(TEXT)[:-6], "not whole"),
        (pack(TEXT)[:20] + "zz" + pack(TEXT)[22:], "not whole"),
        (packed(zlib.compress(b"\xff\xfe")), "not whole"),
        (packed(zlib.compress(TEXT.encode()) + b"more"), "not whole"),
        (packed(zlib.compress(b"#" * 20_001)), "more than 20000 characters"),
        (packed(zlib.compress(b"#" * 5_000_000)), "more than 20000 characters"),
        (packed(zlib.compress("🙂".encode() * 20_001)), "more than 20000 characters"),
        ("A" * (LIMITS["url_text"].value + 1), "more than a link may hold"),
    ],
)
def test_what_is_no_link_of_ours_is_refused(link, reason):
    with pytest.raises(RefusedError, match=reason):
        unpack(link)


def test_a_bomb_is_unpacked_no_further_than_a_script_may_be_long(monkeypatch):
    given: list[int] = []
    real = zlib.decompressobj

    class Watched:
        def __init__(self):
            self._inner = real()

        def decompress(self, data, most):
            out = self._inner.decompress(data, most)
            given.append(len(out))
            return out

        def __getattr__(self, name):
            return getattr(self._inner, name)

    monkeypatch.setattr(zlib, "decompressobj", Watched)
    with pytest.raises(RefusedError):
        unpack(packed(zlib.compress(b"\0" * 5_000_000, 9)))
    assert given == [4 * LIMITS["script_text"].value + 1]


def test_only_what_the_mode_shows_is_in_a_link():
    values = FIELDS.defaults() | {"text": TEXT}
    link = FIELDS.to_link(values).params
    assert set(link) == {"v", "s"}
    assert FIELDS.from_link(link).values == values
    values |= {"mode": STEP, "init": "1", "xs": "None, length=3"}
    link = FIELDS.to_link(values).params
    assert set(link) == {"v", "mode", "init", "xs"}
    back = FIELDS.from_link(link)
    assert back.values == values | {"text": ""}
    assert back.values["step"] == DEFAULT_STEP
    assert not back.refused


def test_an_empty_page_has_no_link_and_an_example_its_name():
    assert FIELDS.to_link(FIELDS.defaults()).params == {}
    for example in EXAMPLES.values():
        link = FIELDS.to_link(FIELDS.defaults() | {"text": example.text})
        assert link.params == {"v": "1", "e": example.name}
        assert FIELDS.from_link(link.params).values["text"] == example.text


def test_a_script_too_long_for_a_link_says_so():
    noise = random.Random(0)
    text = "".join(noise.choice("abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(19_000))
    link = FIELDS.to_link(FIELDS.defaults() | {"text": text})
    assert link.params == {}
    assert "the address does not carry it" in link.problem


def test_a_script_that_nobody_could_open_gets_no_link():
    link = FIELDS.to_link(FIELDS.defaults() | {"text": "#" * (LIMITS["script_text"].value + 1)})
    assert link.params == {}
    assert link.problem


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"s": "%%%"}, "The script"),
        ({"e": "nothing"}, "The example"),
        ({"mode": "other"}, "What is checked"),
        ({"text": "print(1)"}, "“text”"),
        ({"step": "print(1)"}, "“step”"),
    ],
)
def test_a_refusal_names_what_is_refused(params, words):
    read = FIELDS.from_link({"v": "1", **params})
    assert len(read.refused) == 1
    assert words in read.refused[0]
    assert read.values == FIELDS.defaults()
    assert read.values["mode"] == SCRIPT


# --- gallery --------------------------------------------------------------------------------------------------------


def test_the_gallery_is_whole():
    codes = {rule.code for rule in all_rules()}
    assert 8 <= len(BROKEN) <= 12
    assert {example.code for example in BROKEN} <= codes
    assert len({example.code for example in BROKEN}) == len(BROKEN)
    assert any(example.silent for example in BROKEN)
    for example in (*BROKEN, *GUIDES):
        ast.parse(example.text)
        assert example_of(example.text) == example
        assert example_of(example.text + "\n") is None
