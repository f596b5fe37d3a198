"""From the fields of the Scan page to the call that is checked."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.inputs.fields import Value
from core.inputs.scan_fields import follow, opening, resized, scan_fields, scan_link_fields
from core.inputs.scan_inputs import build, from_values, read_argument
from core.steps.library import FAULTY, PRESETS, STEPS, UNGUARDED


def call_of(**edits: Value):
    values = follow(opening("running_sum"), edits)
    built = build(from_values(values))
    assert built.call is not None, built.problems
    return built.call


def problems_of(**edits: Value) -> dict[str, str]:
    return dict(build(from_values(follow(opening("running_sum"), edits))).problems)


def test_the_opening_call_is_the_guides():
    call = call_of()
    assert call.init == 0.0
    assert isinstance(call.init, float)
    np.testing.assert_array_equal(call.xs, np.array([1, 2, 3], np.float32))
    assert (call.length, call.reverse, call.unroll) == (None, False, 1)


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_every_step_opens_as_the_library_says(step):
    values = opening(step.id)
    call = build(from_values(values)).call
    xs = step.opening_xs()
    if step.needs_keys:
        np.testing.assert_array_equal(jax.random.key_data(call.xs), jax.random.key_data(xs))
    elif xs is None:
        assert call.xs is None
        assert call.length == step.length
    else:
        assert call.xs.dtype == xs.dtype
        np.testing.assert_array_equal(call.xs, xs)
    assert (call.right_step is None) == (step in PRESETS)
    assert (call.right_step is not None) == (step in (*FAULTY, *UNGUARDED))
    assert follow(values, {}) == values
    assert scan_fields(values).to_link({**values, "step": "running_sum"}).params == {}


@pytest.mark.parametrize("step", PRESETS, ids=[s.id for s in PRESETS])
def test_a_link_gives_the_same_call(step):
    values = opening(step.id)
    values = follow(values, {"reverse": True, "seed": 3} | ({"numbers": "1, 2\n3, 4"} if values["numbers"] else {}))
    link = scan_fields(values).to_link(values)
    read = scan_link_fields(link.params).from_link(link.params)
    assert read.refused == ()
    assert follow(read.values, {}) == values


@pytest.mark.parametrize(
    ("edits", "init"),
    [
        ({"numbers": "1, 2\n3, 4"}, [0, 0]),
        ({"source": "generate", "features": 3}, [0, 0, 0]),
        ({"source": "generate", "features": 3, "batch": 2}, np.zeros((2, 3))),
        ({"source": "generate", "features": 3, "batch": 2, "length": 5, "axes": "batch"}, np.zeros((5, 3))),
        ({"source": "generate", "batch": 2, "axes": "batch", "length": 5}, np.zeros(5)),
    ],
)
def test_an_untouched_init_takes_the_shape_of_x(edits, init):
    np.testing.assert_array_equal(call_of(**edits).init, init)


def test_an_init_of_ones_own_stays():
    values = follow(opening("running_sum"), {"init": "5"})
    values = follow(values, {"numbers": "1, 2\n3, 4"})
    assert values["init"] == "5"
    assert follow(values, {"step": "product"})["init"] == "[1, 1]"


def test_while_xs_cannot_be_read_init_does_not_jump():
    values = follow(opening("running_sum"), {"numbers": "1, 2\n3, 4"})
    bad = follow(values, {"numbers": "1, 2\n3, x"})
    assert bad["init"] == values["init"] == "[0, 0]"
    assert follow(bad, {"numbers": "1, 2\n3, 5"})["init"] == "[0, 0]"


def test_another_step_keeps_a_sequence_of_ones_own_and_nothing_else():
    values = follow(opening("running_sum"), {"numbers": "4, 5", "init": "7"})
    other = follow(values, {"step": "running_max"})
    assert (other["numbers"], other["length"], other["init"]) == ("4, 5", 2, "-inf")
    assert follow(opening("running_sum"), {"step": "running_max"})["numbers"] == opening("running_max")["numbers"]


@pytest.mark.parametrize("start", STEPS)
def test_from_any_step_to_any_other_and_every_value_is_possible(start):
    for end in STEPS:
        values = follow(opening(start), {"step": end})
        assert scan_fields(values).complete(values) == values
        assert build(from_values(values)).call is not None


def test_a_length_that_only_followed_the_numbers_goes_with_them():
    values = follow(opening("running_sum"), {"source": "paste", "numbers": "zeros(1000000000)"})
    assert values["length"] == 10**9
    assert follow(follow(values, {"numbers": "x"}), {"numbers": "1, 2, 3"})["length"] == 3
    assert follow(follow(values, {"numbers": "1, 2, 3"}), {"length": 10**9})["length"] == 10**9


@pytest.mark.parametrize("source", ["table", "paste", "generate"])
@pytest.mark.parametrize("name", ["length", "batch", "features"])
def test_a_size_below_zero_is_said_where_it_counts(source, name):
    values = follow(opening("running_sum"), {"source": source})
    below = follow(values, {name: -4})
    assert below[name] == -4
    counts = name == "length" or source == "generate"
    assert [p[0] for p in build(from_values(below)).problems] == ([name] if counts else [])
    again = follow(below, {name: values[name]})
    assert again == values


def test_a_number_of_keys_below_zero_is_said():
    values = follow(opening("random_walk"), {"length": -1})
    assert build(from_values(values)).problems == (("length", "length T must be 0 or more."),)


@pytest.mark.parametrize("typed", ["hello", "zeros(1000000)"])
def test_an_init_of_ones_own_is_still_there_after_xs_was_mended(typed):
    values = follow(follow(opening("running_sum"), {"init": "7"}), {"numbers": typed})
    assert values["init"] == "7"
    assert scan_fields(values).to_link(values).params["init"] == "7"
    assert follow(values, {"numbers": "1, 2\n3, 4"})["init"] == "7"


@pytest.mark.parametrize("step", [step.id for step in PRESETS if step.xs])
def test_an_init_that_followed_xs_goes_on_after_xs_was_mended(step):
    values = follow(opening(step), {"numbers": "1, 2\n3, 4"})
    bad = follow(values, {"numbers": "1, 2\n3, x"})
    names = [name for name in values if name.startswith("init")]
    assert [bad[name] for name in names] == [values[name] for name in names]
    wide = follow(bad, {"numbers": "1, 2, 3\n4, 5, 6"})
    straight = follow(opening(step), {"numbers": "1, 2, 3\n4, 5, 6"})
    assert [wide[name] for name in names] == [straight[name] for name in names]


@pytest.mark.parametrize("step", [step.id for step in PRESETS if step.xs])
def test_a_cold_link_with_unreadable_xs_has_that_one_problem(step):
    values = scan_link_fields({"step": step, "x": "hello"}).from_link({"step": step, "x": "hello"}).values
    (problem,) = build(from_values(follow(values, {}))).problems
    assert problem[0] == "numbers"


def test_a_link_over_the_limit_of_elements_is_over_the_limit_and_nothing_else():
    params = {"from": "generate", "T": "2", "F": "600", "B": "600"}
    values = follow(scan_link_fields(params).from_link(params).values, {})
    assert build(from_values(values)).call.xs.shape == (2, 600, 600)
    assert follow(values, {"features": 2, "batch": 0})["init"] == "[0, 0]"


def test_length_follows_the_numbers_and_the_numbers_the_length():
    assert follow(opening("running_sum"), {"numbers": "1, 2, 3, 4"})["length"] == 4
    assert follow(opening("running_sum"), {"length": 5})["numbers"] == "1, 2, 3, 0, 0"
    assert follow(opening("running_sum"), {"length": 0})["numbers"] in ("", "[]")
    assert call_of(length=0).xs.shape == (0,)
    assert follow(opening("distance"), {"length": 1})["numbers"] == "[[1, 10]]"


def test_a_length_that_cannot_be_typed_allocates_nothing():
    for source in ("table", "paste", "generate"):
        xs = call_of(source=source, length=10**9).xs
        assert isinstance(xs, jax.ShapeDtypeStruct)
        assert xs.shape == (10**9,)
    keys = build(from_values(follow(opening("random_walk"), {"length": 10**9}))).call.xs
    assert keys.shape == (10**9,)
    assert isinstance(call_of(init="zeros(1000000000)").init, jax.ShapeDtypeStruct)
    assert call_of(source="generate", features=10**9).xs.shape == (3, 10**9)


@pytest.mark.parametrize(
    ("edits", "letters"),
    [
        ({}, {}),
        ({"axes": "time"}, {"xs": "T"}),
        ({"numbers": "1, 2\n3, 4", "axes": "time"}, {"xs": "TF"}),
        ({"numbers": "1, 2\n3, 4", "axes": "batch"}, {"xs": "BT"}),
        ({"source": "generate", "batch": 2, "axes": "time"}, {"xs": "TB"}),
        ({"source": "generate", "batch": 2, "features": 3, "axes": "time"}, {"xs": "TBF"}),
        ({"source": "generate", "batch": 2, "features": 3, "axes": "batch"}, {"xs": "BTF"}),
        ({"source": "generate", "batch": 2, "features": 3}, {}),
    ],
)
def test_axes_are_what_was_said_and_no_guess(edits, letters):
    assert call_of(**edits).axes == letters


def test_a_batch_major_generator_is_the_same_numbers_transposed():
    time = call_of(source="generate", length=5, batch=2, features=3, axes="time").xs
    batch = call_of(source="generate", length=5, batch=2, features=3, axes="batch").xs
    assert batch.shape == (2, 5, 3)
    np.testing.assert_array_equal(batch, np.swapaxes(time, 0, 1))


def test_a_list_is_of_numbers_or_of_rows():
    assert call_of(as_list=True).xs == [1.0, 2.0, 3.0]
    rows = call_of(as_list=True, numbers="1, 2\n3, 4", axes="time")
    assert [type(row) for row in rows.xs] == [np.ndarray, np.ndarray]
    assert rows.axes == {"xs": "TF"}


@pytest.mark.parametrize(
    ("text", "dtype", "weak", "kind", "hint"),
    [
        ("0", "float32", True, float, False),
        ("0", "int32", True, int, False),
        ("1", "bool", True, bool, False),
        ("0", "float32", False, np.ndarray, False),
        ("0", "float16", True, np.ndarray, True),
        ("[0, 0]", "float32", True, np.ndarray, True),
    ],
)
def test_weak_means_a_python_number(text, dtype, weak, kind, hint):
    built = build(from_values(follow(opening("running_sum"), {"init": text, "init_dtype": dtype, "init_weak": weak})))
    assert type(built.call.init) is kind
    assert bool(built.hints) == hint


def test_a_python_float_is_what_was_typed_not_its_float32():
    assert call_of(init="0.1").init == 0.1


@pytest.mark.parametrize(
    ("edits", "field", "said"),
    [
        ({"numbers": "1, x"}, "numbers", "At t = 1: “x” is no number."),
        ({"numbers": "1, x", "source": "paste"}, "numbers", "Row 1, column 2, character 4"),
        ({"numbers": "1, 2\n3", "source": "paste"}, "numbers", "Row 2"),
        ({"init": ""}, "init", "Nothing is typed"),
        ({"init": "🙂"}, "init", "is no number"),
        ({"dtype": "int32", "numbers": "1.5", "source": "paste"}, "numbers", "is no whole number"),
        ({"source": "generate", "dtype": "int8", "length": 200}, "generator", "does not fit int8"),
    ],
)
def test_what_cannot_be_read_is_said_at_its_field(edits, field, said):
    assert said in problems_of(**edits)[field]


def test_two_fields_that_cannot_be_read_are_both_said():
    assert set(problems_of(numbers="x", init="y")) == {"numbers", "init"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", "empty"),
        (" 3 ", 3),
        ("-1", -1),
        ("3.5", 3.5),
        ("1e3", 1000.0),
        ("True", True),
        ("None", None),
        ("'3'", "3"),
        ("abc", "abc"),
        ("9" * 30, "9" * 30),
    ],
)
def test_arguments_stay_as_wrong_as_they_were_typed(text, value):
    read = read_argument(text, empty="empty")
    assert read == value
    assert type(read) is type(value)


@given(st.text(max_size=40))
def test_no_argument_text_raises(text):
    read_argument(text, empty=None)


def test_places_name_the_inputs_of_the_page():
    places = build(from_values(opening("running_variance"))).call.places
    assert places.find("init:carry[1]").key == "scan_init_mean"
    assert places.find("init_dtype:carry[0]").key == "scan_init_count_dtype"
    assert places.find("init").key == "scan_init_count"
    assert places.find("length").key == "scan_length_argument"
    assert places.find("xs:xs").key == "scan_numbers"
    assert build(from_values(opening("running_sum"))).call.places.find("init:carry").key == "scan_init"


def test_equal_inputs_are_equal():
    assert from_values(opening("kalman")) == from_values(opening("kalman"))
    assert from_values(opening("kalman")) != from_values(opening("fibonacci"))


@pytest.mark.parametrize(
    ("text", "length", "rest", "result", "cut"),
    [
        ("1, 2", 3, (), "1, 2, 0", ()),
        ("1, 2, 3", 1, (), "1", (2, 3)),
        ("1", 4, (2, 3), "1, 2, 3, 0", ()),
        ("1, 2, 3", 0, (4,), "", (1, 2, 3, 4)),
        ("", 2, (1, 2, 3), "1, 2", (3,)),
        ("", 1, (), "0", ()),
        ("1, 2\n3, 4", 1, (), "[[1, 2]]", ([3, 4],)),
        ("1, 2\n3, 4", 3, (), "1, 2\n3, 4\n0, 0", ()),
        ("1, 2\n3, 4", 3, (5,), "1, 2\n3, 4\n0, 0", ()),
        ("x", 3, (), "x", ()),
        ("zeros(2)", 3, (), "zeros(2)", ()),
    ],
)
def test_resized(text, length, rest, result, cut):
    assert resized(text, length, rest) == (result, cut)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"numbers": "1, 2, 3", "dtype": "bool"}, "At t = 1: 2 is neither"),
        ({"numbers": "1, 1\n0, 2", "dtype": "bool"}, "At t = 1, index 1: 2 is neither"),
    ],
)
def test_a_number_without_a_value_in_the_dtype_is_named_by_its_t(values, message):
    (problem,) = build(from_values(follow(opening("running_sum"), values))).problems
    assert problem[1].startswith(message)


@pytest.mark.parametrize(("features", "shape"), [(0, (4,)), (3, (4, 3))])
def test_a_generated_sequence_without_a_batch_has_time_first(features, shape):
    """Although batch first was said: there is no axis to come first."""
    values = {"source": "generate", "length": 4, "features": features, "axes": "batch"}
    call = build(from_values(follow(opening("running_sum"), values))).call
    assert call.xs.shape == shape
    assert not call.axes
