"""One table of limits; the environment overrides it, and a wrong override is refused without repeating its value."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from core.base.limits import read_limits, unknown_variables


def test_defaults_are_the_contract() -> None:
    limits = read_limits({})
    names = ("length", "hidden", "batch", "features", "elements", "typed_numbers")
    assert [limits[n].value for n in names] == [512, 256, 64, 128, 262_144, 20_000]


def test_every_limit_says_its_unit_and_why() -> None:
    assert all(limit.unit and limit.why for limit in read_limits({}).values())


def test_the_environment_overrides_one_limit_and_leaves_the_rest() -> None:
    limits = read_limits({"CARRY_LAB_LENGTH": "64"})
    assert (limits["length"].value, limits["hidden"].value) == (64, 256)


@pytest.mark.parametrize("text", ["0", "000", "-3", "many", "1e3", "", "٣", "²"])
def test_a_wrong_override_is_named_but_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match="CARRY_LAB_LENGTH must be a positive whole number") as caught:
        read_limits({"CARRY_LAB_LENGTH": text})
    assert not text or text not in str(caught.value)


def test_an_overridden_limit_remembers_what_it_would_be() -> None:
    limits = read_limits({"CARRY_LAB_LENGTH": " 64 "})
    assert (limits["length"].value, limits["length"].default, limits["hidden"].default) == (64, 512, None)


@pytest.mark.parametrize("text", ["1" * 16, "9" * 5_000])
def test_a_number_beyond_anything_is_named_but_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match="CARRY_LAB_LENGTH must be a positive whole number of at most 15 digits"):
        read_limits({"CARRY_LAB_LENGTH": text})


def test_every_limit_can_be_overridden_by_its_own_variable() -> None:
    names = list(read_limits({}))
    variables = [limit.variable for limit in read_limits({}).values()]
    assert len(set(variables)) == len(names)
    changed = read_limits(dict.fromkeys(variables, "7"))
    assert {changed[name].value for name in names} == {7}


def test_a_misspelt_variable_is_found_with_the_one_that_was_meant() -> None:
    environ = {"CARRY_LAB_LENGHT": "1", "CARRY_LAB_LENGTH": "1", "CARRY_LAB_METRICS_PORT": "1", "OTHER": "1"}
    assert unknown_variables(environ, ("CARRY_LAB_METRICS_PORT",)) == (("CARRY_LAB_LENGHT", "CARRY_LAB_LENGTH"),)
    assert unknown_variables({"CARRY_LAB_ZZZZZZ": "1"}) == (("CARRY_LAB_ZZZZZZ", ""),)


# --- each row is used -------------------------------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[3]


def asked_for(source: str) -> set[str]:
    """The rows that a module asks the table for.

    By name, ``LIMITS["length"]``; or where the name goes through a variable (``LIMITS[name]``), the words of the
    module that could stand in it; or handed on to such a module, ``limit="weights_bytes"``, ``read(data, "weights_bytes")``
    with a ``read`` of ours.
    """
    tree = ast.parse(source)
    lookups = [n.slice for n in ast.walk(tree) if isinstance(n, ast.Subscript) and ast.unparse(n.value) == "LIMITS"]
    handed = [k.value for k in ast.walk(tree) if isinstance(k, ast.keyword) and (k.arg or "").endswith("limit")]
    ours = {
        name.asname or name.name
        for n in ast.walk(tree)
        if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("core.")
        for name in n.names
    }
    calls = [
        n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in ours
    ]
    handed += [arg for call in calls for arg in call.args if isinstance(arg, ast.Constant)]
    indirect = any(not isinstance(one, ast.Constant) for one in lookups)
    places = [tree] if indirect else [*lookups, *handed]
    return {
        n.value for place in places for n in ast.walk(place) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    }


def everything_asked_for() -> set[str]:
    files = [path for folder in ("core", "pages", "deploy") for path in (ROOT / folder).rglob("*.py")]
    return set().union(*(asked_for(p.read_text(encoding="utf-8")) for p in files if p != ROOT / "core/base/limits.py"))


def test_every_row_of_the_table_limits_something_and_nothing_asks_for_a_row_that_is_not_there() -> None:
    rows = set(read_limits({}))
    asked = everything_asked_for()
    assert rows - asked == set()
    files = [path for folder in ("core", "pages") for path in (ROOT / folder).rglob("*.py")]
    direct = {name for p in files for name in re.findall(r'LIMITS\["(\w+)"\]', p.read_text(encoding="utf-8"))}
    assert direct - rows == set()


def test_a_row_that_nobody_asks_for_would_be_found() -> None:
    assert "length" not in asked_for('LIMITS["hidden"].value; print("length")')
    assert asked_for('LIMITS["a" if x else "b"].value') == {"a", "b"}
    assert "weights_header" in asked_for('read(limit="weights_header")')
    assert "weights_header" in asked_for('from core.weights.container import read\nread(data, "weights_header")')
    assert "weights_header" not in asked_for('read(data, "weights_header")')
    assert "no_such_row" not in everything_asked_for()


@pytest.mark.parametrize(
    ("row", "reads"),
    [
        ("compile_burst", "core.base.bucket:Bucket(now=lambda: 0.0).tokens"),
        ("script_output", "core.sandbox.output:OUTPUT_LIMIT"),
        ("answer_items", "core.doctor.wire:ITEMS"),
        ("queue", "core.sandbox.pool_bounds:from_limits().queue"),
        ("workers", "core.sandbox.pool_bounds:from_limits().workers"),
        ("class_keys", "core.inputs.classroom:MOST"),
    ],
)
def test_what_the_environment_says_is_what_holds(row: str, reads: str) -> None:
    """In a process of its own: the table is read once, at the start."""
    module, _, expression = reads.partition(":")
    name = re.match(r"\w+", expression)
    assert name is not None
    code = f"from {module} import {name[0]}; print(int({expression}))"
    environ = {**os.environ, f"CARRY_LAB_{row.upper()}": "7", "PYTHONPATH": str(ROOT)}
    said = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True).stdout
    assert said.strip() == "7"
