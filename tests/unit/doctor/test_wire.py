"""An answer on its way: it comes back the same, and what is no answer is refused whatever is wrong with it."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.doctor import job
from core.doctor.answer import Request, Wish
from core.doctor.wire import Unreadable, from_wire, to_wire

TEXT = """import jax
import jax.numpy as jnp
def step(total, x):
    return total + x, total
final, ys = jax.lax.scan(step, 0.0, jnp.array([1.5, 2.5]))
bad, _ = jax.lax.scan(step, jnp.int32(0), jnp.array([1.5, 2.5]))
"""


@pytest.fixture(scope="module")
def sent():
    desk = job.Desk()
    desk.handle(Request(Wish.CHECK, TEXT))
    data = desk.handle(Request(Wish.FIXES, TEXT))
    desk.close()
    return json.loads(json.dumps(data, allow_nan=False))


def test_an_answer_comes_back_the_same(sent):
    answer = from_wire(sent)
    again = from_wire(json.loads(json.dumps(to_wire(answer), allow_nan=False)))
    assert again.report == answer.report
    assert again.sources == answer.sources
    assert again.shapes == answer.shapes
    assert [p.result.carries[0].values.tolist() for p in again.scans if p.result] == [
        p.result.carries[0].values.tolist() for p in answer.scans if p.result
    ]
    assert answer.sources[0]
    assert not answer.cut


def test_that_fixes_were_cut_short_is_told_and_must_be_told(sent):
    assert from_wire(sent | {"cut": True}).cut
    for wrong in ({k: v for k, v in sent.items() if k != "cut"}, sent | {"cut": 1}, sent | {"cut": None}):
        with pytest.raises(Unreadable):
            from_wire(wrong)


@pytest.mark.parametrize("name", ["loops", "cells"])
def test_what_ran_is_counted_and_must_be_told(sent, name):
    assert (from_wire(sent).loops, from_wire(sent).cells) == (2, 0)
    assert not from_wire(sent).idle
    for wrong in ({k: v for k, v in sent.items() if k != name}, *(sent | {name: bad} for bad in (-1, None, True, 1.0))):
        with pytest.raises(Unreadable):
            from_wire(wrong)


def leaves(value, path=()):
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*path, index))


def put(data, path, value):
    if not path:
        return value
    data = copy.deepcopy(data)
    at = data
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = value
    return data


WRONG = [None, -1, 1e400, "x", [], {}, True, 10**30, [[]], {"a": 1}, "\x00" * 9]


def test_any_part_replaced_by_anything_is_read_or_refused_and_never_raises_something_else(sent):
    read = 0
    for path in leaves(sent):
        for value in WRONG:
            try:
                from_wire(put(sent, path, value))
                read += 1
            except Unreadable:
                pass
    assert read  # some of them are answers all the same: an empty list of notes, another sentence


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
        max_leaves=10,
    )
)
def test_whatever_json_is_sent_is_refused(data):
    with pytest.raises(Unreadable):
        from_wire(data)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("dtype", "object"),
        ("dtype", "O"),
        ("dtype", "V8"),
        ("shape", [1 << 40]),
        ("shape", [-1]),
        ("shape", []),
        ("bytes", "%%%"),
        ("bytes", "AAAA"),
    ],
)
def test_an_array_of_another_kind_or_size_than_it_says_is_refused(sent, field, value):
    path = ("scans", 0, "result", "carries", 0, field)
    with pytest.raises(Unreadable):
        from_wire(put(sent, path, value))


def test_as_many_sources_as_fixes(sent):
    with pytest.raises(Unreadable):
        from_wire(put(sent, ("sources",), []))
