"""Generated sequences: their formulas, their bounds."""

import math

import jax
import numpy as np
import pytest

from core.base.limits import LIMITS
from core.inputs.generate import GENERATORS, formula_of, generate
from core.inputs.parse import DTYPES, UnreadableError, numpy_dtype

NAMES = [g.id for g in GENERATORS]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("ramp", [1, 2, 3, 4]),
        ("ones", [1, 1, 1, 1]),
        ("impulse", [1, 0, 0, 0]),
        ("alternating", [1, -1, 1, -1]),
        ("sine", [math.sin(2 * math.pi * t / 16) for t in range(4)]),
    ],
)
def test_formulas(name, values):
    np.testing.assert_allclose(generate(name, 4, (), "float32"), values, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [(), (3,), (2, 3)])
def test_shape_and_dtype(name, dtype, columns):
    array = generate(name, 5, columns, dtype, seed=1)
    assert array.shape == (5, *columns)
    assert array.dtype == numpy_dtype(dtype)


@pytest.mark.parametrize("name", NAMES)
def test_longer_begins_with_the_shorter(name):
    short, long = generate(name, 4, (2,), "float32", 3), generate(name, 9, (2,), "float32", 3)
    np.testing.assert_array_equal(long[:4], short)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "ones"])
def test_columns_differ_so_that_mixed_axes_show(name):
    array = generate(name, 6, (2,), "float32", 0)
    assert not np.array_equal(array[:, 0], array[:, 1])


def test_noise_is_its_seeds():
    first, again, other = (generate("noise", 8, (), "float32", seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("name", NAMES)
def test_empty(name):
    assert generate(name, 0, (3,), "float32").shape == (0, 3)


@pytest.mark.parametrize("name", NAMES)
def test_over_the_limit_nothing_is_allocated(name):
    huge = generate(name, 10**9, (), "float32")
    assert isinstance(huge, jax.ShapeDtypeStruct)
    assert huge.shape == (10**9,)
    most = LIMITS["elements"].value
    assert isinstance(generate(name, most, (), "float32"), np.ndarray)
    assert isinstance(generate(name, most + 1, (), "float32"), jax.ShapeDtypeStruct)


def test_what_does_not_fit_the_dtype_is_refused():
    assert generate("ramp", 127, (), "int8")[-1] == 127
    with pytest.raises(UnreadableError, match="does not fit int8: it reaches 128"):
        generate("ramp", 128, (), "int8")


@pytest.mark.parametrize(
    ("batch", "features", "batch_first", "text"),
    [
        (0, 0, False, "x[t] = t + 1"),
        (0, 3, False, "x[t, j] = t + 1 + 10·j"),
        (2, 0, False, "x[t, j] = t + 1 + 10·j"),
        (2, 0, True, "x[j, t] = t + 1 + 10·j"),
        (2, 3, False, "x[t, b, f] = t + 1 + 10·j, with j = 3·b + f"),
        (2, 3, True, "x[b, t, f] = t + 1 + 10·j, with j = 3·b + f"),
    ],
)
def test_the_formula_is_written_for_the_axes_that_there_are(batch, features, batch_first, text):
    assert formula_of("ramp", batch, features, batch_first=batch_first) == text


def test_the_formula_for_examples_and_features_is_what_is_generated():
    made = generate("ramp", 4, (2, 3), "float32")
    t, b, f = np.indices((4, 2, 3))
    np.testing.assert_array_equal(made, t + 1 + 10 * (3 * b + f))


def test_a_formula_without_columns_to_tell_apart_counts_none():
    assert formula_of("ones", 2, 3) == "x[t, b, f] = 1"
