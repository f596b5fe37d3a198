"""A script that is graded: its values, once as it stands and once with other data, and an answer that is read strictly."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from core.base.limits import LIMITS
from core.base.outcome import Outcome
from core.doctor import grade_job, job, script
from core.doctor.grade_job import AXES, ELEMENTS, LEAVES, NAMES, PATH, Again, Graded, read, request, swapped
from core.doctor.wire import Unreadable
from core.sandbox.pool import Done, Pool, from_limits
from core.sandbox.timeup import TimeUp

SUM = """import jax
import jax.numpy as jnp

rain = jnp.array([1.0, 2.0])
total, levels = jax.lax.scan(lambda t, r: (t + r, t + r), 0.0, rain)
"""
SWAP = "rain = jnp.array([10.0, 5.0, 1.0])"


def ask(text: str, names: list[str], swap: str = "", **more: Any) -> Graded:
    sent = json.loads(json.dumps(request(text, names, swap, **more)))
    return read(json.loads(json.dumps(job.handle(sent), allow_nan=False)))


def value(graded: Graded, name: str) -> Any:
    leaves = graded.values[name]
    assert leaves is not None
    return [(leaf.path, leaf.dtype, leaf.values.tolist()) for leaf in leaves]


# --- values -----------------------------------------------------------------------------------------------------------


def test_values_come_as_they_are_with_their_types():
    graded = ask(
        SUM + "pair = {'b': (jnp.int8(3), True), 'a': jnp.ones((1, 2), jnp.bfloat16)}\nn = 3\n",
        ["total", "levels", "pair", "n"],
    )
    assert graded.answer.report.outcome is Outcome.OK
    assert value(graded, "total") == [("", "float32", 3.0)]
    assert value(graded, "levels") == [("", "float32", [1.0, 3.0])]
    assert value(graded, "pair") == [
        ("['a']", "bfloat16", [[1.0, 1.0]]),
        ("['b'][0]", "int8", 3),
        ("['b'][1]", "bool", True),
    ]
    assert value(graded, "n") == [("", "int32", 3)]
    assert graded.again is Again.NONE
    assert graded.swapped == {}


@pytest.mark.parametrize("made", [
    "x = 'text'", "x = jax.random.key(0)", "x = lambda: 0", f"x = jnp.zeros({ELEMENTS + 1})", f"x = [0.0] * {LEAVES + 1}",
    "y = 1", "def x(): pass", f"x = {{'{'k' * (PATH + 1)}': 1.0}}",
])  # fmt: skip
def test_what_is_no_small_tree_of_arrays_is_none(made: str):
    assert ask(f"import jax\nimport jax.numpy as jnp\n{made}\n", ["x"]).values == {"x": None}


def test_infinities_and_nans_are_values():
    graded = ask("import jax.numpy as jnp\nx = jnp.array([jnp.nan, jnp.inf, -jnp.inf])\n", ["x"])
    np.testing.assert_array_equal(graded.values["x"][0].values, np.array([np.nan, np.inf, -np.inf], np.float32))


def test_none_and_an_empty_list_have_no_leaves():
    graded = ask("x, y = None, []\n", ["x", "y"])
    assert graded.values == {"x": (), "y": ()}


def test_a_script_that_cannot_be_read_has_no_values_and_says_why():
    graded = ask("x = (1,\n", ["x"], "x = 2")
    assert graded.answer.report.error.type == "SyntaxError"
    assert graded.values == {"x": None}
    assert graded.again is Again.NONE


def test_a_script_that_is_too_long_is_not_run():
    graded = ask("x = 1\n" + "#" * LIMITS["script_text"].value, ["x"])
    assert graded.answer.report.codes == ("X601",)
    assert graded.values == {}


def test_numbers_that_prove_a_fault_are_measured_when_they_are_asked_for():
    text = "import jax\nkey = jax.random.key(0)\na, b = jax.random.normal(key, (3,)), jax.random.normal(key, (3,))\n"
    (with_it,) = ask(text, ["a"], proofs=True).answer.report.broken
    (without,) = ask(text, ["a"]).answer.report.broken
    assert with_it.code == without.code == "R402"
    assert with_it.proof is not None
    assert without.proof is None


def test_nothing_of_one_script_is_met_by_the_next():
    ask(
        "import jax\nimport jax.numpy as jnp\njax.config.update('jax_enable_x64', True)\nsecret = jnp.float64(1.5)\n",
        ["secret"],
    )
    assert not jax.config.read("jax_enable_x64")
    assert ask("x = 1\n", ["secret", "x"]).values["secret"] is None


# --- other data -------------------------------------------------------------------------------------------------------


def test_the_second_run_has_the_other_data():
    graded = ask(SUM, ["total", "levels"], SWAP, first=SUM)
    assert graded.again is Again.RAN
    assert graded.whole
    assert graded.values["total"][0].values == 3.0
    assert graded.swapped["total"][0].values == 16.0
    assert graded.swapped["levels"][0].values.tolist() == [10.0, 15.0, 16.0]


def test_what_was_typed_in_stays_with_other_data():
    graded = ask(SUM + "total = jnp.float32(3.0)\n", ["total"], SWAP, first=SUM)
    assert graded.swapped["total"][0].values == 3.0


@pytest.mark.parametrize(("text", "again"), [
    (SUM.replace("rain = jnp.array([1.0, 2.0])", "if True:\n    rain = jnp.array([1.0, 2.0])"), Again.LOST),
    (SUM.replace("rain = jnp.array([1.0, 2.0])", "rain, _ = jnp.array([1.0, 2.0]), 0"), Again.LOST),
    (SUM.replace("rain", "water"), Again.LOST),
    (SUM + "rain.reshape(2, 1)\n", Again.STOPPED),
    (SUM + "undefined\n", Again.STOPPED),
])  # fmt: skip
def test_data_that_are_gone_or_do_not_fit_are_told(text: str, again: Again):
    graded = ask(text, ["total"], SWAP, first=SUM)
    assert graded.again is again
    assert graded.swapped == {}


@pytest.mark.parametrize(("script", "want"), [
    ("rain = [1, 2]\n", "rain = ([7])\n"),
    ("rain = [1,\n  2]  # two\n", "rain = ([7])  # two\n"),
    ("rain = turned([1, 2]).T\n", "rain = turned(([7])).T\n"),
    ("rain = [1,  2]\nrain = rain[::-1]\n", "rain = ([7])\nrain = rain[::-1]\n"),
    ("rain = [3, 4]\n", "rain = ([7])\n"),
    ("a = 'ä'; rain = [1, 2]; b = 1\n", "a = 'ä'; rain = ([7]); b = 1\n"),
    ("rain = [1, 2] + [1, 2]\n", "rain = ([7]) + ([7])\n"),
    ("sun = [1, 2]\nrain = [1, 2]\n", "sun = [1, 2]\nrain = ([7])\n"),
    ("rain = [3]\nrain = [4]\n", None),
    ("def f():\n    rain = [1, 2]\n", None),
    ("rain: list = [1, 2]\n", None),
    ("", None),
])  # fmt: skip
def test_other_data_go_where_the_first_ones_stand(script: str, want: str | None):
    assert swapped(script, "rain = [7]", "rain = [1, 2]\n") == want


def test_a_second_run_out_of_time_is_no_whole_answer(monkeypatch):
    real = grade_job.run_script

    def late(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("rules") == ():
            raise TimeUp
        return real(*args, **kwargs)

    monkeypatch.setattr(grade_job, "run_script", late)
    sent = job.handle(request(SUM, ["total"], SWAP, first=SUM))
    assert sent["retire"]
    graded = read(json.loads(json.dumps(sent)))
    assert (graded.again, graded.whole) == (Again.STOPPED, False)


def test_rules_that_were_not_asked_make_no_whole_answer(monkeypatch):
    def late(*args: Any, **kwargs: Any) -> None:
        raise TimeUp

    monkeypatch.setattr(script, "_conclude", late)
    assert not ask(SUM, ["total"]).whole


def test_two_names_are_swapped_at_once():
    text = "a, b = 0, 0\nx = [1]\ny = f(x, [2])\n"
    assert swapped(text, "x = [10]\ny = [20]", "x = [1]\ny = [2]\n") == "a, b = 0, 0\nx = ([10])\ny = f(x, ([20]))\n"
    assert swapped("x = [1]\n", "x = [10]\ny = [20]", "x = [1]\ny = [2]\n") is None


def test_code_that_is_nested_deeply_does_not_break_the_search():
    deep = "rain = " + "+".join(["1"] * 900) + "\n"
    assert swapped(deep, "rain = [7]", "rain = 2 + 1\n") == "rain = ([7])\n"
    assert swapped(deep, "rain = [7]", "rain = 1 + 1\n") == deep.replace("1+1", "([7])", 1)


# --- reading ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sent() -> dict[str, Any]:
    return json.loads(json.dumps(job.handle(request(SUM, ["total", "levels"], SWAP, first=SUM))))


def put(path: list[Any], new: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        at: Any = data
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = new

    return change


LEAF = ["values", "total", 0]


@pytest.mark.parametrize("change", [
    put(["again"], "maybe"), put(["again"], 1), put(["whole"], 1), put(["whole"], None), put(["values"], []), put(["swapped"], None), put(["answer"], {}),
    put(["values", "total"], {}), put(["values", "total"], [[]]), put(["values", "total"], [["", "float32"]]),
    put(["values"], {f"n{i}": None for i in range(NAMES + 1)}),
    put(["values", "total"], [["", "float32", "float32", [], "AACAPw=="]] * (LEAVES + 1)),
    put([*LEAF, 0], 3), put([*LEAF, 0], "x" * (PATH + 1)), put([*LEAF, 0], "\ud83d"),
    put([*LEAF, 1], "float33"), put([*LEAF, 1], "i4,f4"), put([*LEAF, 1], "f4"), put([*LEAF, 1], "O"), put([*LEAF, 1], ""),
    put([*LEAF, 2], "object"), put([*LEAF, 2], "bfloat16"), put([*LEAF, 2], "datetime64[s]"), put([*LEAF, 2], "V4"),
    put([*LEAF, 3], [1, 2]), put([*LEAF, 3], [-1]), put([*LEAF, 3], [True]), put([*LEAF, 3], [1.0]), put([*LEAF, 3], "()"),
    put([*LEAF, 3], [ELEMENTS + 1]), put([*LEAF, 3], [ELEMENTS] * 8), put([*LEAF, 3], [1] * (AXES + 1)), put([*LEAF, 3], [1 << 70, 0]),
    put([*LEAF, 4], ""), put([*LEAF, 4], "AAAA"), put([*LEAF, 4], "not base64!"), put([*LEAF, 4], None),
])  # fmt: skip
def test_an_answer_that_does_not_fit_is_not_read(sent: dict[str, Any], change: Callable[[dict[str, Any]], None]):
    data = copy.deepcopy(sent)
    change(data)
    with pytest.raises(Unreadable):
        read(data)


@pytest.mark.parametrize("data", [None, [], "", 1, {}, {"answer": None}])
def test_what_is_no_answer_is_not_read(data: object):
    with pytest.raises(Unreadable):
        read(data)


def test_it_reads_what_was_sent(sent: dict[str, Any]):
    graded = read(sent)
    assert value(graded, "levels") == [("", "float32", [1.0, 3.0])]


def test_more_names_than_there_may_be_are_left_out():
    assert len(ask("x = 1\n", [f"n{i}" for i in range(NAMES + 5)]).values) == NAMES


# --- a worker ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    pool = Pool(bounds=replace(from_limits(), running=1, spares=1))
    yield pool
    pool.close()


def test_a_worker_behind_its_walls_says_the_same(pool: Pool, sent: dict[str, Any]):
    ticket = pool.submit("one", request(SUM, ["total", "levels"], SWAP, first=SUM))
    assert ticket.wait(60.0)
    assert isinstance(ticket.result, Done), ticket.result
    got, want = read(ticket.result.answer), read(sent)
    for name in ("total", "levels"):
        for mine, other in ((got.values, want.values), (got.swapped, want.swapped)):
            assert [leaf.values.tolist() for leaf in mine[name]] == [leaf.values.tolist() for leaf in other[name]]
    assert got.answer.report == want.answer.report
    assert got.again is grade_job.Again.RAN
    pool.release("one")
