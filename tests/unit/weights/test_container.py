"""What is read as safetensors and what is not: bounds, other kinds of file, damage."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import zipfile

import ml_dtypes
import numpy as np
import pytest

from core.base.limits import LIMITS
from core.weights.container import DTYPES, parse_json, read, write
from core.weights.refusal import Stage, WeightsRefused


def arrays():
    return {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "half": np.ones(2, ml_dtypes.bfloat16),
        "count": np.array(3, np.uint32),
        "none": np.zeros((0, 3), np.float16),
    }


def file_of(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(shape=(2,), begin=0, end=8, dtype="F32"):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def refused(data):
    with pytest.raises(WeightsRefused) as caught:
        read(data)
    return caught.value


def test_arrays_of_every_dtype_come_back_bit_for_bit():
    given = {name: np.arange(4).astype(dtype).reshape(2, 2) for name, dtype in DTYPES.items()} | arrays()
    found = read(write(given, {"note": "π"}))
    assert found.metadata == {"note": "π"}
    assert set(found.tensors) == set(given)
    for name, array in given.items():
        assert found.tensors[name].dtype == array.dtype
        assert found.tensors[name].shape == array.shape
        assert found.tensors[name].tobytes() == array.tobytes()


def test_arrays_that_lie_otherwise_in_memory_are_written_in_their_own_order():
    turned = np.arange(6, dtype=np.float32).reshape(2, 3).T
    assert np.array_equal(read(write({"a": turned}, {})).tensors["a"], turned)


def test_what_was_read_cannot_be_written_to():
    array = read(write(arrays(), {})).tensors["a"]
    with pytest.raises(ValueError):
        array[0] = 1


def test_a_file_without_arrays_is_not_written():
    with pytest.raises(ValueError):
        write({}, {"note": "x"})


def test_an_array_that_is_no_number_is_not_written():
    with pytest.raises(ValueError):
        write({"a": np.array(["text"])}, {})


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_is_named_and_never_opened(protocol):
    class Bomb:
        def __reduce__(self):
            return pytest.fail, ("it was unpickled",)

    error = refused(pickle.dumps({"weight_ih": Bomb()}, protocol=protocol))
    assert error.stage is Stage.FORMAT
    assert "pickle" in str(error)


@pytest.mark.parametrize("protocol", [0, 1])
def test_an_old_pickle_is_no_safetensors_file(protocol):
    assert "no safetensors file" in str(refused(pickle.dumps({"weight_ih": [1.0] * 40}, protocol=protocol)))


def test_a_zip_is_named_and_never_unpacked_however_large_its_content(monkeypatch):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(50_000_000))
    monkeypatch.setattr(zipfile.ZipFile, "__init__", lambda *_: pytest.fail("it was opened"))
    assert len(packed.getvalue()) < 100_000
    assert "zip" in str(refused(packed.getvalue()))


def test_numpy_archives_gzip_and_npy_are_named():
    npz, npy = io.BytesIO(), io.BytesIO()
    np.savez(npz, a=np.ones(3))
    np.save(npy, np.ones(3))
    assert "zip" in str(refused(npz.getvalue()))
    assert "NumPy" in str(refused(npy.getvalue()))
    assert "compressed" in str(refused(gzip.compress(bytes(10_000_000))))


def test_a_file_whose_header_length_looks_like_a_pickle_is_read():
    # 0x0280 bytes of header begin as a pickle of protocol 2 does.
    header = {"__metadata__": {"note": ""}, "a": entry()}
    header["__metadata__"]["note"] = "x" * (0x0280 - len(json.dumps(header)))
    data = file_of(header, bytes(8))
    assert data.startswith(pickle.PROTO + b"\x02")
    assert read(data).tensors["a"].shape == (2,)


def test_an_empty_and_an_oversized_file_are_refused_by_their_size():
    assert refused(b"").stage is Stage.SIZE
    limit = LIMITS["weights_bytes"].value
    error = refused(file_of({"a": entry((limit // 4,), 0, limit)}, bytes(limit)))
    assert error.stage is Stage.SIZE
    assert str(limit) in str(error)


def test_a_file_cut_short_says_where():
    data = write(arrays(), {})
    for cut in range(1, len(data)):
        assert refused(data[:cut]).stage is Stage.FORMAT
    assert "cut short" in str(refused(data[:-1]))
    assert "cut short" in str(refused(data[:40]))


def test_bytes_after_the_end_are_refused():
    assert "belong to no tensor" in str(refused(write(arrays(), {}) + b"\0"))


def test_a_name_that_stands_twice_is_refused_where_a_parser_takes_the_last():
    text = (
        b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    )
    assert "“a” stands in it twice" in str(refused(file_of(text, bytes(8))))


def test_nesting_is_bounded_before_anything_is_parsed():
    deep = b'{"a":' + b"[" * 60_000 + b"]" * 60_000 + b"}"
    assert "nested" in str(refused(file_of(deep)))


def test_brackets_in_a_string_are_no_nesting():
    assert read(file_of({"__metadata__": {"note": '[{"\\"[[[[[[[[[[[[[[[[[[[['}})).metadata


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (b"[]", "safetensors"),
        (b"{", "JSON"),
        (b"{}}", "JSON"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "digits"),
        (b"{\xff}", "UTF-8"),
        ({"__metadata__": {"a": 1}}, "metadata"),
        ({"__metadata__": []}, "metadata"),
        ({"a": 1}, "dtype, shape and data_offsets"),
        ({"a": {**entry(), "more": 1}}, "dtype, shape and data_offsets"),
        ({"a": entry((-2,))}, "dtype, shape and data_offsets"),
        ({"a": entry((True,))}, "dtype, shape and data_offsets"),
        ({"a": entry((2.0,))}, "dtype, shape and data_offsets"),
        ({"a": entry(dtype="F8_E4M3")}, "F8_E4M3"),
        ({"a": entry((3,))}, "should take 12 bytes"),
        ({"a": entry((2**40, 2**40))}, "should take"),
        ({"a": entry(), "b": entry()}, "overlap"),
        ({"a": entry((1,), 4, 8)}, "gap"),
        ({"a": entry((4,), 0, 16)}, "cut short"),
    ],
)
def test_headers_that_are_wrong_are_refused_in_words(header, said):
    error = refused(file_of(header, bytes(8)))
    assert error.stage is Stage.FORMAT
    assert said in str(error)


def test_too_many_tensors_are_refused():
    count = LIMITS["weights_leaves"].value + 1
    header = {f"t{at}": entry((0,), 0, 0, "U8") for at in range(count)}
    assert str(count) in str(refused(file_of(header)))


def test_a_header_over_the_limit_is_refused_even_where_the_file_is_long_enough():
    long = b"{" + b" " * LIMITS["weights_header"].value + b"}"
    assert "header" in str(refused(file_of(long)))


def test_what_a_file_says_is_said_back_short_and_printable():
    name = "w\n\x1b[31m" + "x" * 5_000
    error = refused(file_of({name: 1}, bytes(8)))
    assert len(str(error)) < 200
    assert str(error).isprintable()


@pytest.mark.parametrize("axes", [9, 65, 5_000])
def test_more_axes_than_an_array_may_have_are_refused(axes):
    """NumPy raises a ValueError of its own at 65."""
    why = refused(file_of({"a": entry([1] * axes, 0, 4)}, bytes(4)))
    assert why.stage is Stage.FORMAT
    assert f"{axes} axes" in str(why)


@pytest.mark.parametrize("text", ["1e999", "-1e999", "[1e400]"])
def test_a_number_that_is_infinite_in_python_is_refused(text):
    with pytest.raises(WeightsRefused, match="larger than any"):
        parse_json(text)
