"""What people type for a shape, a dtype or a value is read as they mean it; what cannot be read is no wrong answer."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.challenges.reading import DTYPES, LONGEST, FormError, read_dtype, read_shape, read_value

SHAPES = {
    (3,): ["(3,)", "[3]", "3", "3,", " ( 3 , ) ", "(3)", "float32[3]", "f32[3]", "`(3,)`", "\u200b(3,)", "(3,).", "shape=(3,)"],
    (3, 2): ["(3, 2)", "(3,2)", "[3 2]", "3, 2", "3x2", "3 × 2", "3*2", "3 by 2", "3;2", "float32[3,2]", "(T=3, B=2)", "torch.Size([3, 2])"],
    (): ["()", "( )", "[]", "[ ]", "scalar", "a scalar", "Scalar", "float32[]", "f32[]"],
    (0, 3): ["(0, 3)", "bool[0,3]", "0 3"],
    (5, 2, 4): ["5 2 4", "(5 ,2,4)", "5x2x4"],
    (1,): ["(1,)", "[1]"],
}  # fmt: skip
NO_SHAPES = [
    "three",
    "nonsense",
    "(3]",
    "3.0",
    "-1",
    "(,)",
    "(3,,2)",
    "99999999999",
    "(3,2",
    "3,2)",
    "1,1,1,1,1,1,1,1,1",
    "float32",
    "()()",
    "3 2 a",
    "٣",
]
TYPES = {
    "float32": ["float32", "f32", "FLOAT32", "jnp.float32", "np.float32", "jax.numpy.float32", "float", "float 32", "fp32", "float32[3]", "f32[3, 2]",
                "dtype('float32')", "dtype=float32", "'float32'", "weak float32", "weakly typed float32", "float32 (weak)", "float32, weak_type=True", "float32.",
                "<class 'jax.numpy.float32'>"],
    "int32": ["int32", "i32", "int", "Integer", "numpy.dtype('int32')", "s32"],
    "int8": ["int8", "i8", "int 8"],
    "complex64": ["complex64", "c64", "complex", "complex[3]", "weak complex"],
    "complex128": ["complex128", "c128", "jnp.complex128"],
    "bool": ["bool", "boolean", "bool_", "jnp.bool_", "bool[0,3]"],
    "bfloat16": ["bfloat16", "bf16"],
    "float64": ["float64", "double"],
}  # fmt: skip
NO_TYPES = ["string", "32", "f4", "number", "(3,)", "weak", "int33", "float32 int32"]
VALUES = {
    (): (3.0, ["3", "3.0", " 3 ", "3.", "+3", "3e0", "6/2", "Array(3., dtype=float32)", "jnp.float32(3)", "total = 3", "(3)"]),
    (3,): (
        [1.0, 3.5, -6.0],
        ["[1, 3.5, -6]", "1 3.5 -6", "1, 3.5, -6", "(1, 3.5, -6)", "[ 1.   3.5 -6. ]", "[1.0, 3.5, −6.0]", "[1, 7/2, -6]", "1;3.5;-6",
         "Array([ 1. ,  3.5, -6. ], dtype=float32)", "jnp.array([1, 3.5, -6])", "array([1, 3.5, -6])", "ys = [1, 3.5, -6]", "[1, 3.5, -6]."],
    ),
    (2, 2): ([[1.0, 2.0], [3.0, 4.0]], ["[[1,2],[3,4]]", "[[1 2] [3 4]]", "[[1. 2.]\n [3. 4.]]", "((1, 2), (3, 4))"]),
    (2,): ([1.0, 0.0], ["[True, False]", "[True False]", "true, false", "[1, 0]"]),
    (1,): ([3.0], ["[3]", "(3,)", "3,"]),
    (0,): ([], ["[]"]),
}  # fmt: skip
NO_VALUES = [
    "abc",
    "six",
    "{1}",
    "[1, 3",
    "1]",
    "[1,[2,3]]",
    "1+2",
    "x",
    "jnp.zeros(3)",
    "zeros(99999,99999)",
    "zeros(1000000)",
    "1/0",
    "print(1)",
    "9" * 60,
]


@pytest.mark.parametrize(("want", "text"), [(want, text) for want, texts in SHAPES.items() for text in texts])
def test_a_shape_is_read_as_it_is_meant(want, text):
    assert read_shape(text) == want


@pytest.mark.parametrize(("want", "text"), [(want, text) for want, texts in TYPES.items() for text in texts])
def test_a_dtype_is_read_as_it_is_meant(want, text):
    assert read_dtype(text) == want


@pytest.mark.parametrize(
    ("shape", "want", "text"), [(shape, want, text) for shape, (want, texts) in VALUES.items() for text in texts]
)
def test_a_value_is_read_as_it_is_meant(shape, want, text):
    got = read_value(text)
    assert got.shape == shape
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, np.asarray(want, np.float64).reshape(shape))


def test_what_is_not_finite_is_a_value_too():
    np.testing.assert_array_equal(read_value("[nan, inf, -inf]"), [np.nan, np.inf, -np.inf])


@pytest.mark.parametrize(("read", "text"), [
    *((read_shape, text) for text in NO_SHAPES),
    *((read_dtype, text) for text in NO_TYPES),
    *((read_value, text) for text in NO_VALUES),
    *((read, text) for read in (read_shape, read_dtype, read_value) for text in ("", "  ", "\n", "`", "x" * (LONGEST + 1), "\0", "\ud83d", "?", "...")),
])  # fmt: skip
def test_what_cannot_be_read_is_said_and_how_it_is_written(read, text):
    with pytest.raises(FormError) as raised:
        read(text)
    said = str(raised.value)
    assert said == "Type an answer first." or ("such as" in said or "One is" in said)
    assert len(said) < 200
    assert said.isprintable()


@given(st.text(max_size=60))
def test_no_text_raises_anything_else(text):
    for read in (read_shape, read_dtype, read_value):
        with contextlib.suppress(FormError):
            read(text)


@given(st.lists(st.integers(0, 99), max_size=6).map(tuple))
def test_a_shape_as_python_and_jax_print_it_is_read_back(shape):
    assert read_shape(str(shape)) == shape
    assert read_shape(f"float32[{','.join(map(str, shape))}]") == shape
    assert read_shape(str(list(shape))) == shape


@given(st.lists(st.floats(-1e6, 1e6, width=32).map(lambda x: round(x, 3)), min_size=1, max_size=8))
def test_values_as_python_and_numpy_print_them_are_read_back(values):
    for text in (
        str(values),
        str(tuple(values)),
        " ".join(map(str, values)),
        np.array2string(np.array(values), precision=12, suppress_small=False),
    ):
        if len(text) <= LONGEST and not (len(values) == 1 and "," not in text and "[" not in text):
            np.testing.assert_allclose(read_value(text), values, rtol=1e-9)


@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_a_dtype_is_read_by_its_own_name(dtype):
    assert read_dtype(dtype) == read_dtype(f"jnp.{dtype}") == read_dtype(f"{dtype}[3,2]") == dtype


@pytest.mark.parametrize(
    "text", ["int8 (strong)", "strong int8", "strongly typed int8", "int8, strong type", "strongly-typed i8"]
)
def test_a_dtype_that_is_called_strong_is_read_as_a_weak_one_is(text: str):
    assert read_dtype(text) == "int8"
