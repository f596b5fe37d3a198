"""A teacher's file: read as it is meant, and refused with file, line and reason where it is none."""

from __future__ import annotations

import pytest

from core.doctor.link import unpack
from core.lessons.loader import LessonError, read_lesson

GOOD = """---
title: A lesson
page: scan
link: T=3
minutes: 3
docs: jax.lax.scan; JAX: pytrees
---
What it is about.

## Do it
Set length T to 0.
It goes on here.

More to read, with `code`.

```python
>>> 1 + 1
2

```

check: field length == 0
check: kept
hint: In the panel.
link: T=0&x=

## Say it
How many steps?

ask: Steps
choice: 0
choice: 1
answer: 0
"""


def test_a_file_is_read():
    lesson = read_lesson(GOOD, "14-mine.md")
    assert (lesson.number, lesson.title, lesson.minutes, lesson.intro) == (14, "A lesson", 3, "What it is about.")
    assert [one.title for one in lesson.documents] == ["jax.lax.scan", "JAX: pytrees"]
    first, second = lesson.steps
    assert first.task == "Set length T to 0. It goes on here."
    assert first.more.startswith("More to read")
    assert first.code == (">>> 1 + 1\n2\n\n",)
    assert first.hint == "In the panel."
    assert first.setting.params == {"v": "1", "T": "0", "x": ""}
    assert second.opening == first.setting == second.setting
    assert second.question is not None
    assert second.question.choices == ("0", "1")
    assert second.done(None, "0")
    assert not second.done(None, "1")


def test_a_step_on_another_page_begins_there():
    lesson = read_lesson(GOOD + "\n## Elsewhere\nGo.\n\ncheck: code L301\nlink: lstm?bcarry=one array\n", "14-mine.md")
    assert lesson.steps[2].opening.page == lesson.steps[2].setting.page == "lstm"
    assert lesson.steps[2].opening.params == {"v": "1"}


def test_a_script_is_packed_and_not_shown():
    text = GOOD.replace("page: scan\nlink: T=3", "page: doctor").split("## Do it")[0]
    lesson = read_lesson(
        text + "```python opening\nx = 1\n```\n\n## Run\nRun it.\n\ncheck: ran\n\n```python solution\nx = 2\n```\n",
        "14-mine.md",
    )
    (step,) = lesson.steps
    assert (step.opening.script, step.setting.script) == ("x = 1\n", "x = 2\n")
    assert unpack(step.setting.params["s"]) == "x = 2\n"
    assert "x = 2" not in step.more
    assert "x = 1" not in lesson.intro
    assert step.code == lesson.code == ()


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("---\ntitle", "title", 1, "must begin with a header"),
        ("title: A lesson\n", "", 6, "no title"),
        ("title: A lesson", "title A lesson", 2, "a colon"),
        ("title: A lesson", "titel: A lesson", 2, "nothing that a header has"),
        ("page: scan", "page: skan", 3, "no page with controls"),
        ("link: T=3", "link: T=many", 4, "refuses this link"),
        ("link: T=3", "link: size=3", 4, "refuses this link"),
        ("minutes: 3", "minutes: soon", 5, "minutes must be"),
        ("docs: jax.lax.scan", "docs: jax.lax.skan", 6, "no page of documentation"),
        ("check: kept", "check: keept", 23, "is no check"),
        ("check: kept", "check: code S999", 23, "no code S999"),
        ("check: kept", "check: page skan", 23, "no page with controls"),
        ("field length", "field lenght", 22, "no field"),
        ("link: T=0&x=", "link: lstn?T=0", 25, "no page with controls"),
        ("check: field length == 0\ncheck: kept\n", "", 10, "needs a line check"),
        ("answer: 0", "answer: 2", 30, "an answer that is one of them"),
        ("ask: Steps\n", "", 30, "needs a line ask"),
        ("Set length T to 0.\nIt goes on here.\n\nMore to read, with `code`.\n\n", "", 10, "begin with a paragraph"),
        ("2\n\n```", "2\n\n", 16, "not closed"),
        ("```python\n", "```python solution\n", 16, "cannot stand here"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(old: str, new: str, line: int, reason: str):
    assert GOOD.count(old) >= 1
    with pytest.raises(LessonError, match=reason) as caught:
        read_lesson(GOOD.replace(old, new, 1), "14-mine.md")
    assert str(caught.value).startswith(f"14-mine.md, line {line}: "), caught.value


@pytest.mark.parametrize(
    ("text", "file", "reason"), [(GOOD, "mine.md", "number"), (GOOD.split("## ")[0], "14-a.md", "one step")]
)
def test_a_file_needs_a_number_and_a_step(text: str, file: str, reason: str):
    with pytest.raises(LessonError, match=reason):
        read_lesson(text, file)
