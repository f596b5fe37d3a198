"""A teacher's file: read as it is meant, and refused with file, line and reason where it is none."""

from __future__ import annotations

import pytest

from core.challenges import loader
from core.challenges.challenge import Ask, Kind, Level, What
from core.challenges.loader import ChallengeError, read_challenge, reviewed

PREDICT = """---
title: A title
kind: predict
level: 2
docs: jax.lax.scan; JAX: pytrees
ask: shape of ys; value of carry[0]
see: S104
---
What it is about.

And what is asked.

```python program
import jax

carry, ys = (1, 2), 3
```

## Hint
One `thing`.

## Hint
Another one,
over two lines.

## Why
Because.
"""
FIX = """---
title: A title
kind: fix
level: 1
docs: jax.lax.scan
results: a, b
swap: rain = [2.0]
swap: sun = [3.0]
---
What is broken.
```python program
rain = [1.0]
sun = [1.0]
```
```python other
rain = [1.0]
sun = [1.0]
a = b = 1
```
## Hint
One.
## Hint
Two.
## Hint
Three.
## Why
Because.
"""
SPOT = FIX.replace("kind: fix", "kind: spot").replace(
    "results: a, b\nswap: rain = [2.0]\nswap: sun = [3.0]", "options: P204, R401, S105"
)
NAME = "07-a-title.md"


def test_a_predict_is_read():
    one = read_challenge(PREDICT, NAME)
    assert (one.key, one.number, one.kind, one.level, one.title) == ("7", 7, Kind.PREDICT, Level.MEDIUM, "A title")
    assert one.story == "What it is about.\n\nAnd what is asked."
    assert one.program == "import jax\n\ncarry, ys = (1, 2), 3\n"
    assert one.other == ""
    assert one.asks == (Ask(What.SHAPE, "ys"), Ask(What.VALUE, "carry", "[0]"))
    assert one.hints == ("One `thing`.", "Another one,\nover two lines.")
    assert (one.why, one.see) == ("Because.", "S104")
    assert [document.title for document in one.documents] == ["jax.lax.scan", "JAX: pytrees"]
    assert one.names == ("ys", "carry")
    assert len(one.requests()) == 1


def test_a_fix_is_read():
    one = read_challenge(FIX, NAME)
    assert one.results == ("a", "b")
    assert one.swap == "rain = [2.0]\nsun = [3.0]"
    assert [request["text"] for request in one.requests()] == [one.program, one.other]
    assert one.attempt("x = 1") == {**one.requests()[1], "text": "x = 1"}
    assert [request["swap"] for request in one.requests()] == ["", one.swap]
    assert len(one.hints) == 3


def test_a_spot_is_read_and_wants_proofs():
    one = read_challenge(SPOT, NAME)
    assert one.options == ("P204", "R401", "S105")
    assert all(request["proofs"] for request in one.requests())
    assert not any(request["proofs"] for request in read_challenge(FIX, NAME).requests())


BROKEN = {
    "no number in the name": ("title.md", PREDICT, "", "", 1, "must begin with the challenge's number"),
    "no header": (NAME, PREDICT, "---\ntitle", "title", 1, "header"),
    "header never closed": (NAME, PREDICT, "see: S104\n---\n", "see: S104\n", 1, "header"),
    "no colon": (NAME, PREDICT, "level: 2", "level 2", 4, "a name, a colon and a value"),
    "no value": (NAME, PREDICT, "level: 2", "level:", 4, "a name, a colon and a value"),
    "unknown name": (NAME, PREDICT, "level: 2", "leval: 2", 4, "leval"),
    "a name of another kind": (NAME, PREDICT, "see: S104", "swap: a = 1", 7, "swap"),
    "title missing": (NAME, PREDICT, "title: A title\n", "", 7, "no title"),
    "kind missing": (NAME, PREDICT, "kind: predict\n", "", 7, "no kind"),
    "level missing": (NAME, PREDICT, "level: 2\n", "", 7, "no level"),
    "docs missing": (NAME, PREDICT, "docs: jax.lax.scan; JAX: pytrees\n", "", 7, "no docs"),
    "ask missing": (NAME, PREDICT, "ask: shape of ys; value of carry[0]\n", "", 7, "no ask"),
    "results missing": (NAME, FIX, "results: a, b\n", "", 8, "no results"),
    "swap missing": (NAME, FIX, "swap: rain = [2.0]\nswap: sun = [3.0]\n", "", 7, "no swap"),
    "options missing": (NAME, SPOT, "options: P204, R401, S105\n", "", 6, "no options"),
    "kind unknown": (NAME, PREDICT, "kind: predict", "kind: guess", 3, "predict, fix or spot"),
    "level unknown": (NAME, PREDICT, "level: 2", "level: 4", 4, "1, 2 or 3"),
    "level twice as long": (NAME, PREDICT, "level: 2", "level: 22", 4, "1, 2 or 3"),
    "document unknown": (NAME, PREDICT, "JAX: pytrees", "JAX: trees", 5, "JAX: trees"),
    "ask unreadable": (NAME, PREDICT, "shape of ys", "size of ys", 6, "size of ys"),
    "ask of nothing": (NAME, PREDICT, "shape of ys", "shape of", 6, "asks nothing"),
    "see unknown": (NAME, PREDICT, "see: S104", "see: S999", 7, "see is a code"),
    "see no page": (NAME, PREDICT, "see: S104", "see: nowhere?a=1", 7, "see is a code"),
    "swap no assignment": (NAME, FIX, "swap: rain = [2.0]", "swap: rain", 7, "one assignment"),
    "swap no Python": (NAME, FIX, "swap: rain = [2.0]", "swap: rain = [", 7, "one assignment"),
    "swap of no data": (NAME, FIX, "swap: rain = [2.0]", "swap: snow = [2.0]", 7, "one assignment"),
    "code unknown": (NAME, SPOT, "R401", "R499", 6, "R499"),
    "too few options": (NAME, SPOT, "P204, R401, S105", "P204, R401", 6, "three options"),
    "ask of a name that there is not": (NAME, PREDICT, "shape of ys", "shape of zs", 6, "zs"),
    "result that there is not": (NAME, FIX, "results: a, b", "results: a, c", 6, "“c”"),
    "no Python": (NAME, PREDICT, "carry, ys = (1, 2), 3", "carry, ys = (1, 2), 3)", 16, "no Python"),
    "no story": (NAME, PREDICT, "What it is about.\n\nAnd what is asked.\n", "", 8, "no story"),
    "no program": (NAME, PREDICT, "```python program", "```python other", 8, "```python program"),
    "no other": (NAME, FIX, "```python other\nrain = [1.0]\nsun = [1.0]\na = b = 1\n```\n", "", 9, "```python other"),
    "another block": (NAME, PREDICT, "```python program", "```python", 13, "cannot stand here"),
    "the same block twice": (NAME, FIX, "```python other", "```python program", 15, "cannot stand here"),
    "block never closed": (NAME, PREDICT, "carry, ys = (1, 2), 3\n```\n", "carry, ys = (1, 2), 3\n", 13, "not closed"),
    "unknown section": (NAME, PREDICT, "## Why", "## Reason", 26, "## Hint or ## Why"),
    "one hint": (NAME, PREDICT, "## Hint\nOne `thing`.\n\n", "", 24, "two hints or three"),
    "an empty hint": (NAME, PREDICT, "One `thing`.\n", "", 26, "two hints or three"),
    "no why": (NAME, PREDICT, "\n## Why\nBecause.\n", "", 24, "## Why"),
    "two whys": (NAME, PREDICT, "Because.", "Because.\n## Why\nOf that.", 29, "## Why"),
    "empty": (NAME, PREDICT, PREDICT, "", 1, "header"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_wrong_is_said_with_file_and_line(case: str):
    file, text, old, new, line, says = BROKEN[case]
    assert old in text
    with pytest.raises(ChallengeError) as raised:
        read_challenge(text.replace(old, new, 1) if old else text, file)
    assert str(raised.value).startswith(f"{file}, line {line}: ")
    assert says in str(raised.value)


def test_two_files_with_one_number_are_refused(tmp_path, monkeypatch):
    for name in ("07-one.md", "07-two.md"):
        (tmp_path / name).write_text(PREDICT, encoding="utf-8")
    monkeypatch.setattr(loader, "DATA", tmp_path)
    with pytest.raises(ChallengeError, match=r"07-two.md, line 1: there is another challenge 7"):
        reviewed.__wrapped__()


def test_files_saved_on_windows_are_read(tmp_path, monkeypatch):
    (tmp_path / "07-a-title.md").write_bytes(b"\xef\xbb\xbf" + PREDICT.replace("\n", "\r\n").encode())
    monkeypatch.setattr(loader, "DATA", tmp_path)
    (one,) = reviewed.__wrapped__()
    assert one == read_challenge(PREDICT, NAME)
