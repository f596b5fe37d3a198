"""Trees one node at a time: differences, words, fitting one into the other."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.contract import trees


class Pair(NamedTuple):
    a: Any
    b: Any


TREES = st.recursive(
    st.sampled_from([0.0, 1, None]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.tuples(inner, inner),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
        st.builds(Pair, inner, inner),
    ),
    max_leaves=6,
)


@given(TREES, TREES)
def test_there_is_a_difference_exactly_where_jax_sees_another_structure(one: Any, other: Any) -> None:
    same = jax.tree.structure(one) == jax.tree.structure(other)
    assert (not list(trees.differences(one, other, "carry"))) is same


@given(TREES)
def test_every_node_is_found_at_its_path_and_put_back(tree: Any) -> None:
    def walk(node: Any, path: str) -> None:
        assert trees.find(tree, "carry", path) is node or trees.find(tree, "carry", path) == node
        changed = trees.at(tree, "carry", path, lambda _: "new")
        assert trees.find(changed, "carry", path) == "new"
        for key, child in trees.node_of(node).children.items():
            walk(child, path + str(key))

    walk(tree, "carry")


@given(TREES, TREES)
def test_what_was_fitted_has_the_structure_it_was_fitted_to(old: Any, new: Any) -> None:
    assert jax.tree.structure(trees.fit(old, new)) == jax.tree.structure(old)


@given(TREES)
def test_fitting_into_its_own_structure_changes_nothing(tree: Any) -> None:
    assert trees.fit(tree, tree) == tree


def test_a_path_that_is_not_there() -> None:
    with pytest.raises(KeyError):
        trees.find((1.0, 2.0), "carry", "carry[2]")
    assert trees.at((1.0, 2.0), "carry", "carry[2]", lambda _: 0) == (1.0, 2.0)
    ten = tuple(range(11))
    assert trees.find(ten, "carry", "carry[10]") == 10  # not carry[1]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (jnp.zeros((2, 3)), "float32[2,3]"),
        (1.0, "float32[]"),
        (None, "None"),
        ((), "an empty tuple"),
        ([1, 2], "a list of 2"),
        ({"b": 1, "a": 2}, "a dict with the keys 'a', 'b'"),
        (OrderedDict(b=1), "a OrderedDict with the keys 'b'"),
        (Pair(1, 2), "a Pair of 2"),
        ("text", "str"),
    ],
)
def test_words(value: Any, words: str) -> None:
    assert trees.describe(value) == words


@pytest.mark.parametrize(
    ("old", "new", "fitted"),
    [
        ([1, 2], (3, 4), [3, 4]),
        (Pair(1, 2), (3, 4), Pair(3, 4)),
        ({"a": 1, "b": 2}, {"a": 3}, {"a": 3, "b": 2}),
        ({"a": 1}, {"a": 3, "b": 4}, {"a": 3}),
        ({"a": 1.0, "b": 2.0}, {"a": 3.0, "c": 4.0}, {"a": 3.0, "b": 4.0}),
        ({"a": 1.0, "b": 2.0}, {"a": 3.0, "c": 4}, {"a": 3.0, "b": 2.0}),
        ({"a": 1, "b": 2}, (3, 4), {"a": 1, "b": 2}),
        ((1, 2), (3,), (3, 2)),
        ((1, (2, 3)), (4, None), (4, (2, 3))),
        ((1, None), (2, 3), (2, None)),
        (1, (2, 3), 1),
    ],
)
def test_fit(old: Any, new: Any, fitted: Any) -> None:
    assert trees.fit(old, new) == fitted


def test_extend_fills_with_zeros_of_the_types_that_came_out() -> None:
    new = {"n": jax.ShapeDtypeStruct((), "int32"), "m": (jax.ShapeDtypeStruct((2,), "bfloat16"),)}
    made = trees.extend({"n": 5}, new)
    assert made["n"] == 5
    assert (made["m"][0].dtype, made["m"][0].tolist()) == (jnp.bfloat16, [0.0, 0.0])
    assert trees.extend(None, new["n"]) == 0
    with pytest.raises(TypeError):
        trees.extend(5.0, (new["n"],))
    with pytest.raises(TypeError):
        trees.extend(None, jax.random.key(0))


def test_same_leaves_looks_past_weak_types_only() -> None:
    assert trees.same_leaves((1.0,), (jnp.zeros(()),))
    assert not trees.same_leaves((1.0,), [1.0])
    assert not trees.same_leaves((1.0,), (1,))
    assert not trees.same_leaves((1.0,), (jnp.zeros(1),))
