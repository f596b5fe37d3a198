from __future__ import annotations

import json

import pytest

from core.base.places import Field, Span
from core.doctor.prep import Kind, prepared

CODE = "import jax\n\ndef step(c, x):\n    return c, x\n"


def place(text: str, line: int, col: int, end_col: int) -> str:
    """What stands in the pasted text where the script has this place."""
    span = prepared(text).place(Span(line, col, line, end_col))
    assert isinstance(span, Span)
    return text.replace("\r\n", "\n").split("\n")[span.line - 1][span.col : span.end_col]


def test_a_plain_script_stays_as_it_is() -> None:
    given = prepared(CODE)
    assert (given.script, given.kind, given.notes) == (CODE, Kind.SCRIPT, ())


def test_prompts_are_taken_off_and_output_left_out() -> None:
    text = ">>> import jax\n>>> def f(c, x):\n...     return c, x\n...\n>>> f(1, 2)\n(1, 2)\n"
    given = prepared(text)
    assert given.script.split("\n") == ["import jax", "def f(c, x):", "    return c, x", "", "f(1, 2)", "", ""]
    assert place(text, 3, 11, 15) == "c, x"


def test_ipython_prompts() -> None:
    text = (
        "In [12]: def f(x):\n    ...:     return x + 1\n    ...: \n\nIn [13]: f(2)\nOut[13]: 3\n\nIn [14]: y = f(3)\n"
    )
    given = prepared(text)
    assert [line for line in given.script.split("\n") if line.strip()] == [
        "def f(x):",
        "    return x + 1",
        "f(2)",
        "y = f(3)",
    ]
    assert place(text, 8, 0, 1) == "y"


def test_fences() -> None:
    text = "My scan fails:\n\n```python\nx = 1\n```\nand then\n~~~ py\ny = x\n~~~\n```text\nnot code at all\n```\n"
    given = prepared(text)
    assert [line for line in given.script.split("\n") if line] == ["x = 1", "y = x"]
    assert place(text, 8, 4, 5) == "x"
    assert given.notes


def test_a_fence_that_is_indented_and_one_that_is_never_closed() -> None:
    text = "- like so:\n\n  ```python\n  x = 1\n  if x:\n      y = 2\n"
    given = prepared(text)
    assert given.kind is Kind.SCRIPT
    assert place(text, 6, 4, 5) == "y"


def test_a_docstring_with_a_fence_is_a_script() -> None:
    text = 'def f():\n    """Use it.\n\n    ```python\n    f()\n    ```\n    """\n    return 1\n'
    assert prepared(text).script == text


def test_magics_are_left_out_and_timed_statements_stay() -> None:
    text = "%matplotlib inline\n!pip install jax\nimport jax\nfor i in range(3):\n    %time f(i)\n    !ls\nx?\n"
    given = prepared(text)
    assert [line for line in given.script.split("\n") if line] == [
        "import jax",
        "for i in range(3):",
        "    f(i)",
        "    pass",
    ]
    assert [number for number, _ in given.magics] == [1, 2, 6, 7]
    assert place(text, 5, 4, 8) == "f(i)"


def test_a_modulo_at_the_beginning_of_a_line_is_no_magic() -> None:
    text = "x = (10\n% 3)\n"
    assert prepared(text).script == text


def test_form_fields_of_colab_are_comments() -> None:
    text = "#@title Run me\nn = 3 #@param {type: 'integer'}\n"
    assert prepared(text).script == text


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("\ufeffx = 1\r\ny = 2\r\n", "x = 1\ny = 2\n"),
        ("print(\u201chi\u201d)\nx = 1 \u2013 2", 'print("hi")\nx = 1 - 2'),
        ("x\u00a0=\u00a01", "x = 1"),
        ("x = 1\u200b + 2", "x = 1 + 2"),
        ("    x = 1\n    y = 2", "x = 1\ny = 2"),
        ("if True:\n\tx = 1\n        y = 2", "if True:\n        x = 1\n        y = 2"),
    ],
)
def test_characters_that_editors_put_in(text: str, script: str) -> None:
    given = prepared(text)
    assert given.script == script
    assert given.kind is Kind.SCRIPT


def test_quotes_inside_a_string_stay_where_the_text_parses() -> None:
    text = "print('\u201cquoted\u201d')\n"
    assert prepared(text).script == text


def test_columns_behind_a_tab_and_an_unseen_character() -> None:
    tabs = "if True:\n\tx = 1\n        y = 2"
    assert place(tabs, 2, 8, 9) == "x"
    assert place("x = 1\u200b + 2", 1, 8, 9) == "2"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", Kind.EMPTY),
        (" \n\t\n", Kind.EMPTY),
        ("# nothing yet\n", Kind.EMPTY),
        ("hello", Kind.TEXT),
        ("why does my scan not run?", Kind.TEXT),
        ("TypeError: scan body output must be a pair, got float32[5].", Kind.ERROR),
        ("Traceback (most recent call last):\n  File 'x', line 1\nValueError: no", Kind.ERROR),
        ("def step(c, x):\n    return (c, x\n", Kind.SCRIPT),
        ('{"cells": []}', Kind.EMPTY),
    ],
)
def test_what_it_is(text: str, kind: Kind) -> None:
    assert prepared(text).kind is kind


def test_a_notebook() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title"]},
        {"cell_type": "code", "source": ["%%time\n", "import jax\n", "x = 1"]},
        {"cell_type": "code", "source": "%%bash\nls"},
        {"cell_type": "code", "source": "y = x"},
    ]
    given = prepared(json.dumps({"cells": cells, "nbformat": 4}))
    assert given.kind is Kind.NOTEBOOK
    assert given.script.split("\n") == ["# cell 1", "", "import jax", "x = 1", "# cell 2", "y = x"]
    assert given.place(Span(4, 0, 4, 1)) == Span(4, 0, 4, 1)


def test_a_dict_is_no_notebook_and_a_field_is_no_span() -> None:
    assert prepared('{"a": 1}["a"]\n').kind is Kind.SCRIPT
    field = Field("scan_init", "init")
    assert prepared(CODE).place(field) is field
    assert prepared(CODE).place(None) is None
