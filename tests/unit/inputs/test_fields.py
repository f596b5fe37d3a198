"""The field table: what a link can carry, both ways, and what it is refused for."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.limits import LIMITS
from core.inputs.fields import FieldTable, InputField, Kind, RefusedError, repeated, shorten

TABLE = FieldTable(
    "page",
    (
        InputField("step", "step", Kind.CHOICE, "sum", "step", options=("sum", "max")),
        InputField("numbers", "x", Kind.TEXT, "1, 2", "numbers", max_chars=50_000),
        InputField("length", "T", Kind.WHOLE, 3, "length", low=0),
        InputField("decay", "p.decay", Kind.NUMBER, 0.5, "decay", low=0.0, high=1.0),
        InputField("reverse", "rev", Kind.FLAG, False, "reverse"),
    ),
)

VALUES = st.fixed_dictionaries(
    {
        "step": st.sampled_from(["sum", "max"]),
        "numbers": st.text(max_size=40),
        "length": st.integers(0, 10**12),
        "decay": st.floats(0, 1),
        "reverse": st.booleans(),
    }
)


def test_defaults_make_an_empty_link():
    assert TABLE.to_link(TABLE.defaults()).params == {}
    assert TABLE.from_link({}).values == TABLE.defaults()


@given(VALUES)
def test_a_link_reads_back_the_same(values):
    values = TABLE.complete(values)  # as a page keeps them
    link = TABLE.to_link(values)
    read = TABLE.from_link(link.params)
    assert not link.problem
    assert read.refused == ()
    assert read.values == values
    assert (link.params.get("v") == "1") == (values != TABLE.defaults())


def test_only_what_differs_is_written():
    assert TABLE.to_link(TABLE.defaults() | {"reverse": True}).params == {"v": "1", "rev": "1"}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("step", "product", "none of its choices"),
        ("T", "three", "no whole number"),
        ("T", "3.5", "no whole number"),
        ("T", "1_0", "no whole number"),
        ("T", "9" * 500, "no whole number"),
        ("T", "-1", "must be 0 or more"),
        ("p.decay", "1.5", "between 0.0 and 1.0"),
        ("p.decay", "nan", "no number"),
        ("p.decay", "", "no number"),
        ("rev", "yes", "0 or 1"),
        ("x", "1," * 9000, "more than a link may hold"),
    ],
)
def test_a_bad_value_is_refused_by_name_and_the_default_stands(name, text, said):
    read = TABLE.from_link({"v": "1", name: text, "ok": "1"} if name == "ok" else {"v": "1", name: text})
    label = next(f.label for f in TABLE.fields if f.url == name)
    assert read.values == TABLE.defaults()
    (message,) = read.refused
    assert message.startswith(f"{label}: ")
    assert said in message
    assert len(message) < 220


def test_the_good_values_of_a_bad_link_are_kept():
    read = TABLE.from_link({"v": "1", "T": "x", "rev": "1"})
    assert read.values == TABLE.defaults() | {"reverse": True}
    assert len(read.refused) == 1


def test_unknown_names_and_other_versions_are_said():
    read = TABLE.from_link({"v": "2", "evil\n<b>": "1", "rev": "1"})
    assert len(read.refused) == 2
    assert "another version (2)" in read.refused[0]
    assert "evil·<b>" in read.refused[1]
    assert read.values["reverse"] is True


def test_many_unknown_names_make_one_line():
    read = TABLE.from_link({f"k{i}": "1" for i in range(300)})
    assert read.refused == ("300 unknown settings in the link were ignored: k0, k1, k2 and others.",)
    assert TABLE.from_link({"a": "1", "b": "1"}).refused == ("2 unknown settings in the link were ignored: a, b.",)


def test_a_name_given_twice_is_said():
    assert repeated({"T": 2, "x": 1}) == ("The link gives “T” 2 times; the last one counts.",)


@given(st.dictionaries(st.text(max_size=12), st.text(max_size=50)))
def test_no_link_raises(params):
    read = TABLE.from_link(params)
    assert set(read.values) == {f.name for f in TABLE.fields}


def test_a_state_too_long_for_a_link_says_so_and_writes_nothing_half():
    link = TABLE.to_link(TABLE.defaults() | {"numbers": "1, " * 9000, "reverse": True})
    assert link.params == {}
    assert str(LIMITS["url_text"].value) in link.problem


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("length", 2.5),
        ("length", True),
        ("length", "3"),
        ("decay", math.inf),
        ("reverse", 1),
        ("numbers", 3),
        ("step", 3),
    ],
)
def test_values_of_another_type_are_refused(name, value):
    with pytest.raises(RefusedError):
        TABLE.field(name).check(value)
    assert TABLE.complete({name: value})[name] == TABLE.field(name).default


def test_complete_keeps_what_is_possible():
    assert TABLE.complete({"length": 7, "other": 1})["length"] == 7


def test_shorten_says_that_there_is_more():
    assert shorten("a" * 30) == "a" * 24 + "…"
    assert shorten("a\x00b") == "a·b"
