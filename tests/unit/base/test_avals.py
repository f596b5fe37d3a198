"""Types of leaves are read from anything JAX takes as an array, and written as people write them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from core.base.avals import Aval, aval_of, leaf_types


@pytest.mark.parametrize(
    ("value", "text", "weak"),
    [
        (0.0, "float32[]", True),
        (0, "int32[]", True),
        (True, "bool[]", False),
        (jnp.zeros((2, 4)), "float32[2,4]", False),
        (np.zeros(3), "float32[3]", False),
        (jnp.zeros(2, jnp.bfloat16), "bfloat16[2]", False),
        (jax.random.key(0), "key<fry>[]", False),
        (jax.ShapeDtypeStruct((5,), jnp.int8), "int8[5]", False),
    ],
)
def test_array_likes_have_the_aval_that_jax_gives_them(value: object, text: str, weak: bool) -> None:
    aval = aval_of(value)
    assert aval is not None
    assert (str(aval), aval.weak) == (text, weak)


@pytest.mark.parametrize("value", ["text", jnp.tanh, {1, 2}, object()])
def test_what_jax_does_not_take_has_no_aval(value: object) -> None:
    assert aval_of(value) is None


def test_paths_are_those_of_keystr_and_none_is_no_leaf() -> None:
    tree = {"mean": (0.0, None), "n": jnp.zeros(2)}
    assert [str(t.path) for t in leaf_types(tree, "carry")] == ["carry['mean'][0]", "carry['n']"]


def test_a_leaf_that_is_no_array_shows_its_python_type() -> None:
    (leaf,) = leaf_types("text", "carry")
    assert (leaf.aval, str(leaf)) == (None, "str")


def test_an_aval_survives_the_way_through_jax_with_its_weak_type() -> None:
    aval = Aval((2, 3), "bfloat16", weak=True)
    assert aval_of(aval.struct()) == aval
    assert aval.size == 6
