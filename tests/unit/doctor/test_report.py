from __future__ import annotations

import json
from typing import Any

import jax
import pytest

from core.doctor.check import check_script
from core.doctor.issue import as_issue
from core.doctor.report import as_json, plain
from core.doctor.terminal import as_text

HEAD = "import jax, jax.numpy as jnp\nfrom flax import nnx\nfrom jax import lax\n"
FAULTY = HEAD + "def step(c, x):\n    return c + x, c\ninit = jnp.int32(0)\nlax.scan(step, init, jnp.ones(3))\n"
SILENT = (
    HEAD + "cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))\nh = jnp.ones((2, 4))\ncarry, y = cell(h, jnp.ones((2, 3)))\n"
)

TOP = {"schema", "outcome", "error", "versions", "stdout", "scans", "violations"}
SCAN = {"line", "length", "carry", "ys", "final"}
VIOLATION = {
    "code", "severity", "message", "line", "col", "end_line", "end_col", "expected", "got", "why", "jax_said", "fixes",
}  # fmt: skip


def check_schema(found: Any) -> None:
    """Schema 1 of DESIGN.md section 5, to the letter."""
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert set(found) == TOP
    assert found["schema"] == 1
    assert found["outcome"] in ("ok", "violations", "limit", "error")
    assert isinstance(found["stdout"], str)
    assert {"jax", "flax", "python"} <= set(found["versions"])
    assert all(isinstance(v, str) for v in found["versions"].values())
    if found["error"] is not None:
        assert set(found["error"]) == {"type", "message", "line", "col"}
    for scan in found["scans"]:
        assert set(scan) == SCAN
        assert all(isinstance(v, str) for v in (*scan["carry"].values(), *scan["ys"].values()))
    for violation in found["violations"]:
        assert set(violation) == VIOLATION
        assert violation["severity"] in ("error", "warning", "note", "limit")
        assert all(isinstance(v, str) for v in (*violation["expected"].values(), *violation["got"].values()))
        if violation["line"] is not None:
            assert violation["line"] >= 1
            assert violation["col"] >= 0
        for fix in violation["fixes"]:
            assert set(fix) == {"title", "source", "verified"}
            assert fix["verified"] is True


@pytest.mark.parametrize(
    "text",
    [
        FAULTY,
        SILENT,
        "",
        "x = (",
        "import jax.numpy as jnp\njnp.ones(2) + jnp.ones(3)\n",
        "def f():\n    raise ValueError('no place in a library')\nf()\n",
        HEAD + "lax.scan(lambda c, x: (c, x), {'a': jnp.nan, 'k': jax.random.key(0)}, jnp.ones(2))\n",
        HEAD
        + "lax.scan(lambda c, x: ((c[0] * 1j, c[1]), None), (jnp.array(1j), jnp.zeros(2, jnp.bfloat16)), jnp.ones(2))\n",
        HEAD + "jax.jit(lambda x: lax.scan(lambda c, x: (c + x, c), 0.0, x))(jnp.ones(3))\n",
        HEAD + "lax.scan(lambda c, x: (c, x), 0.0, jnp.ones((0, 2)))\n",
    ],
)
def test_the_schema(text: str) -> None:
    check_schema(as_json(check_script(text)))


def test_what_is_in_it() -> None:
    found = as_json(check_script(FAULTY))
    (violation,), (scan,) = found["violations"], found["scans"]
    assert (violation["code"], violation["line"], violation["col"], violation["end_col"]) == ("S104", 5, 11, 16)
    assert violation["expected"] == {"carry": "int32[]"}
    assert violation["got"] == {"carry": "float32[]"}
    assert violation["jax_said"].startswith("TypeError: scan body function")
    assert scan == {"line": 7, "length": 3, "carry": {"carry": "int32[]"}, "ys": {"ys": "int32[3]"}, "final": {}}
    fixed = violation["fixes"][0]["source"]
    assert as_json(check_script(fixed))["outcome"] == "ok"


def test_values_of_a_scan() -> None:
    script = HEAD + "lax.scan(lambda c, x: ({'h': c['h'] + x}, (x, -x)), {'h': jnp.zeros(2)}, jnp.ones((3, 2)))\n"
    (scan,) = as_json(check_script(script))["scans"]
    assert scan["carry"] == {"carry['h']": "float32[2]"}
    assert scan["ys"] == {"ys[0]": "float32[3,2]", "ys[1]": "float32[3,2]"}
    assert scan["final"] == {"carry['h']": [3.0, 3.0]}


def test_numbers_that_json_does_not_know_are_strings() -> None:
    import jax.numpy as jnp

    assert plain(jnp.array([1.0, jnp.nan, jnp.inf, -jnp.inf])) == [1.0, "nan", "inf", "-inf"]
    assert plain(jnp.array(2 + 3j)) == [2.0, 3.0]
    assert plain(jnp.array(True)) is True
    assert plain(jnp.zeros((200, 200))) is None


def test_prints_are_kept() -> None:
    assert as_json(check_script("print('größe')\n"))["stdout"] == "größe\n"


# --- the terminal ---------------------------------------------------------------------------------------------------


def carets(text: str, line: str) -> list[str]:
    """What is underlined in a line of the report."""
    lines = text.split("\n")
    out = []
    for number, shown in enumerate(lines):
        if shown.endswith(line) and "│" in shown:
            start = shown.index("│") + 2
            for mark in lines[number + 1 : number + 3]:
                found = [i for i, c in enumerate(mark) if c in "^-" and i >= start]
                if found and "│" in mark:
                    out.append(shown[found[0] : found[-1] + 1] if "^" in mark else shown[found[0] :][: mark.count("-")])
    return out


def test_carets_stand_under_the_exact_columns() -> None:
    text = as_text(check_script(FAULTY), "my.py")
    assert "my.py:5:12" in text
    assert carets(text, "    return c + x, c") == ["c + x"]
    assert carets(text, "init = jnp.int32(0)") == ["jnp.int32(0)"]
    assert "init set int32[] here" in text
    assert "-init = jnp.int32(0)" in text
    assert "+init = jnp.float32(0)" in text
    assert "contract broken, 1 error" in text


def test_carets_behind_wide_characters_and_tabs() -> None:
    script = (
        HEAD + "def step(c, x):\n\tw = '\u6f22\u5b57'; return c + x, c\nlax.scan(step, jnp.int32(0), jnp.ones(3))\n"
    )
    lines = as_text(check_script(script), "my.py").split("\n")
    at = next(i for i, line in enumerate(lines) if "return c + x, c" in line)
    start = lines[at].index("│") + 2
    before = lines[at][start : lines[at].index("c + x")]
    width = sum(2 if ord(c) > 0x3000 else 1 for c in before)
    assert lines[at + 1].index("^") - start == width
    assert lines[at + 1].count("^") == len("c + x")


def test_colours_only_where_asked_for() -> None:
    checkup = check_script(FAULTY)
    assert "\x1b[" not in as_text(checkup, "my.py")
    assert "\x1b[" in as_text(checkup, "my.py", colour=True)
    import re

    assert re.sub(r"\x1b\[[0-9;]*m", "", as_text(checkup, "my.py", colour=True)) == as_text(checkup, "my.py")


def test_a_silent_fault_says_so_and_shows_its_proof() -> None:
    text = as_text(check_script(SILENT), "my.py")
    assert "[JAX is silent]" in text
    assert "proof" in text
    assert "with the fix" in text


def test_a_clean_script_is_quiet() -> None:
    text = as_text(
        check_script(HEAD + "lax.scan(lambda c, x: (c + x, None), 0.0, jnp.ones(3))\nprint('hello')\n"), "my.py"
    )
    assert "contract kept" in text
    assert "scan of 3 steps" in text
    assert "hello" in text


# --- for an issue ---------------------------------------------------------------------------------------------------


def test_copy_as_issue() -> None:
    text = as_issue(check_script(SILENT), "http://localhost/doctor?x=1")
    assert text.count("```python") == 1
    assert SILENT in text
    for part in (
        "L301",
        "JAX raises nothing",
        "Proof:",
        "```diff",
        f"Versions: jax {jax.__version__}",
        "(http://localhost/doctor?x=1)",
    ):
        assert part in text
    assert "| 5 | `h` | `float32[2,4]` |" in text
    assert "{" not in text.replace(SILENT, "")


def test_an_issue_about_an_exception_and_about_nothing() -> None:
    text = as_issue(check_script("import jax.numpy as jnp\na = jnp.ones(2)\na + jnp.ones(3)\n"))
    assert "**TypeError** at line 3" in text
    assert "`a: float32[2]`" in text
    assert "contract kept" in as_issue(check_script("x = 1\n"))


def test_carets_in_an_issue_stand_under_what_was_pasted() -> None:
    text = ">>> import jax, jax.numpy as jnp\n>>> jax.lax.scan(lambda c, x: (c + x, c), jnp.int32(0), jnp.ones(3))\n"
    lines = as_issue(check_script(text)).split("\n")
    at = next(i for i, line in enumerate(lines) if set(line.strip()) == {"^"})
    start, end = lines[at].index("^"), lines[at].rindex("^") + 1
    assert lines[at - 1][start:end] == "c + x"
    shown = as_text(check_script(text), "my.py")
    assert carets(shown, text.split("\n")[1])[0] == "c + x"


def test_a_fence_in_the_script_does_not_close_the_fence() -> None:
    text = as_issue(check_script('s = """\n```\n"""\n'))
    assert text.count("````") == 2
