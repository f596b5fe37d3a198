"""Safetensors with bounds: what a file may be is settled before its own parser sees it, and again by that parser.

The format (https://github.com/huggingface/safetensors, "Format"): 8 bytes, the length N of the header as an unsigned
little-endian number; N bytes of JSON, ``{name: {"dtype", "shape", "data_offsets": [begin, end]}, "__metadata__": {text:
text}}``; then the bytes of the tensors, without gaps. So a file can hold numbers and text, and nothing that runs.

What the package does not bound, or takes silently, is checked here: the size of the file and of its header, the depth of
the JSON, how many tensors there are, and names that stand there twice (of which a JSON parser takes the last).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import ml_dtypes
import numpy as np
import safetensors
import safetensors.numpy

from core.base.limits import LIMITS
from core.base.text import fill
from core.weights.refusal import Stage, WeightsRefused

type Array = np.ndarray[Any, Any]

#: Types of a file, and their NumPy types. A few others exist (complex numbers, 8-bit floats): they are refused by name.
DTYPES: Final[Mapping[str, Any]] = {
    "F64": np.dtype(np.float64),
    "F32": np.dtype(np.float32),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "I64": np.dtype(np.int64),
    "I32": np.dtype(np.int32),
    "I16": np.dtype(np.int16),
    "I8": np.dtype(np.int8),
    "U64": np.dtype(np.uint64),
    "U32": np.dtype(np.uint32),
    "U16": np.dtype(np.uint16),
    "U8": np.dtype(np.uint8),
    "BOOL": np.dtype(np.bool_),
}

#: What a file begins with that is something else.
_PICKLE: Final = tuple(bytes((0x80, protocol)) for protocol in range(2, 6))
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_PACKED: Final = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf")
_NUMPY: Final = (b"\x93NUMPY",)
_HDF5: Final = (b"\x89HDF\r\n\x1a\n",)
_METADATA: Final = "__metadata__"
_LENGTH_BYTES: Final = 8
#: Characters of a file's own words that are said back.
_SHOWN: Final = 60

EMPTY = "The file is empty."
TOO_LARGE = "The file has {size} bytes; {limit} are read at most."
A_PICKLE = (
    "This is a pickle (PyTorch's old .pt is one). Opening a pickle runs what is in it, so it is never opened here. In "
    "PyTorch, save with safetensors.torch.save_file(model.state_dict(), …)."
)
A_ZIP = (
    "This is a zip archive (PyTorch's .pt and .pth, Keras' .keras and NumPy's .npz are), and nothing is unpacked here. In "
    "PyTorch, save with safetensors.torch.save_file(model.state_dict(), …)."
)
PACKED = "This is a compressed file, and nothing is unpacked here. Give the .safetensors file itself."
A_NUMPY, AN_HDF5 = "This is a NumPy file, not safetensors.", "This is an HDF5 file, not safetensors."
TOO_SHORT = "This is no safetensors file: it has {size} bytes, and 8 are needed for the length of its header alone."
HEADER_LONG = (
    "This is no safetensors file: its header would have {length} bytes by its first 8; {limit} are read at most."
)
TRUNCATED_HEADER = "The file is cut short: its header has {length} bytes by its own count, and {rest} follow."
NO_JSON = "The header is not the JSON of a safetensors file: {reason}."
NOT_UTF8 = "it is not UTF-8 at byte {at}"
NO_OBJECT = "it is not one object of names"
TOO_DEEP = "it is nested more than {limit} deep"
TWICE = "“{name}” stands in it twice"
NOT_FINITE_JSON = "it holds {word}, which is no JSON number"
NOT_PARSED = "{why} at character {at}"
LONG_NUMBER = "a number in it has too many digits"
TOO_LARGE_NUMBER = "a number in it is larger than any floating-point number"
TOO_MANY = "The file names {count} tensors; {limit} are read at most."
BAD_METADATA = "The header's metadata must be text by name."
BAD_ENTRY = "The header says of {leaf} something else than dtype, shape and data_offsets."
BAD_DTYPE = "{leaf} has dtype {dtype}, which is not read here."
BAD_AXES = "{leaf} has {count} axes; {limit} are read at most."
BAD_OFFSETS = (
    "{leaf} should take {want} bytes by its shape {shape} and dtype {dtype}; its offsets {begin} to {end} say {got}."
)
OUTSIDE = "The file is cut short: {leaf} ends at byte {end} of the data, and there are {size}."
LEFT_OVER = "{count} bytes of data belong to no tensor."
OVERLAP = "{leaf} begins at byte {begin} of the data, and {want} was its turn: tensors overlap, or leave a gap."
PARSER = "The file cannot be read as safetensors: {reason}."


@dataclass(frozen=True, slots=True, eq=False)
class Container:
    """What a file holds: arrays by name, read-only and in the order of their bytes, and its metadata."""

    tensors: Mapping[str, Array]
    metadata: Mapping[str, str]


def write(tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> bytes:
    """The file. `read` gives back the same arrays, bit for bit.

    Args:
        tensors: NumPy arrays of `DTYPES`, by name.
        metadata: text by name.

    Raises:
        ValueError: an array of another type, or no array at all.
    """
    if not tensors:
        raise ValueError("no arrays")
    for name, array in tensors.items():
        if array.dtype not in DTYPES.values():
            raise ValueError(f"{name} has dtype {array.dtype}")
    whole = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in tensors.items()}
    return safetensors.numpy.save(whole, dict(metadata) or None)


def read(data: bytes, limit: str = "weights_bytes", header_limit: str = "weights_header") -> Container:
    """Read a file within its bounds.

    Args:
        data: the bytes of the file.
        limit: the row of `core.base.limits` that bounds them.
        header_limit: the row that bounds its header.

    Raises:
        WeightsRefused: at `Stage.SIZE` or `Stage.FORMAT`.
    """
    most = LIMITS[limit].value
    if not data:
        raise WeightsRefused(Stage.SIZE, EMPTY)
    if len(data) > most:
        # A pickle or an archive is told as what it is, however large: nobody should cut it down to try again.
        _refuse_others(data)
        raise WeightsRefused(Stage.SIZE, TOO_LARGE, size=len(data), limit=most)
    header = _header(data, LIMITS[header_limit].value)
    metadata = header.pop(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise WeightsRefused(Stage.FORMAT, BAD_METADATA)
    names = _check_entries(header, len(data) - _begins(data))
    try:
        raw = dict(safetensors.deserialize(data))  # type: ignore[no-untyped-call]
    except safetensors.SafetensorError as error:
        raise WeightsRefused(Stage.FORMAT, PARSER, reason=short(str(error))) from None
    tensors = {}
    for name in names:
        array = np.frombuffer(raw[name]["data"], DTYPES[raw[name]["dtype"]]).reshape(raw[name]["shape"])
        array.flags.writeable = False
        tensors[name] = array
    return Container(tensors, metadata)


def parse_json(text: str) -> Any:
    """JSON within the bounds of a header: no deeper than the limit, no name twice, no NaN.

    Raises:
        WeightsRefused: at `Stage.FORMAT`.
    """
    depth = deepest = 0
    quoted = skipped = False
    for letter in text:
        if quoted:
            if skipped:
                skipped = False
            elif letter == "\\":
                skipped = True
            elif letter == '"':
                quoted = False
        elif letter == '"':
            quoted = True
        else:
            depth += (letter in "[{") - (letter in "]}")
            deepest = max(deepest, depth)
    if deepest > LIMITS["weights_depth"].value:
        raise _no_json(TOO_DEEP, limit=LIMITS["weights_depth"].value)
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise _no_json(NOT_PARSED, why=error.msg, at=error.pos) from None
    except WeightsRefused:
        raise
    except ValueError:
        raise _no_json(LONG_NUMBER) from None


# --- header ---------------------------------------------------------------------------------------------------------


def _begins(data: bytes) -> int:
    """Where the tensors' bytes begin."""
    return _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")


def _header(data: bytes, limit: int) -> dict[str, Any]:
    length = _begins(data) - _LENGTH_BYTES
    rest = len(data) - _LENGTH_BYTES
    if rest < 0 or length > limit or length > rest or data[_LENGTH_BYTES : _LENGTH_BYTES + 1] != b"{":
        _refuse_others(data)
    if rest < 0:
        raise WeightsRefused(Stage.FORMAT, TOO_SHORT, size=len(data))
    if length > limit:
        raise WeightsRefused(Stage.FORMAT, HEADER_LONG, length=length, limit=limit)
    if length > rest:
        raise WeightsRefused(Stage.FORMAT, TRUNCATED_HEADER, length=length, rest=rest)
    try:
        text = data[_LENGTH_BYTES : _LENGTH_BYTES + length].decode("utf-8")
    except UnicodeDecodeError as error:
        raise _no_json(NOT_UTF8, at=error.start) from None
    header = parse_json(text)
    if not isinstance(header, dict):
        raise _no_json(NO_OBJECT)
    return header


def _refuse_others(data: bytes) -> None:
    """Refuse what is known to be another kind of file, by its first bytes."""
    for starts, template in (
        (_ZIP, A_ZIP),
        (_PICKLE, A_PICKLE),
        (_PACKED, PACKED),
        (_NUMPY, A_NUMPY),
        (_HDF5, AN_HDF5),
    ):
        if data.startswith(starts):
            raise WeightsRefused(Stage.FORMAT, template)


def _check_entries(header: Mapping[str, Any], size: int) -> list[str]:
    """The tensors' names in the order of their bytes, after each entry was checked against the `size` of the data."""
    if len(header) > LIMITS["weights_leaves"].value:
        raise WeightsRefused(Stage.FORMAT, TOO_MANY, count=len(header), limit=LIMITS["weights_leaves"].value)
    places = []
    for name, entry in header.items():
        dtype, shape, (begin, end) = _entry(name, entry)
        if end > size:
            raise WeightsRefused(Stage.FORMAT, OUTSIDE, short(name), end=end, size=size)
        want = DTYPES[dtype].itemsize
        for axis in shape:
            want *= axis
        if want != end - begin:
            raise WeightsRefused(
                Stage.FORMAT,
                BAD_OFFSETS,
                short(name),
                want=want,
                got=end - begin,
                shape=tuple(shape),
                dtype=dtype,
                begin=begin,
                end=end,
            )
        places.append((begin, end, name))
    places.sort()
    turn = 0
    for begin, end, name in places:
        if begin != turn:
            raise WeightsRefused(Stage.FORMAT, OVERLAP, short(name), begin=begin, want=turn)
        turn = end
    if turn != size:
        raise WeightsRefused(Stage.FORMAT, LEFT_OVER, count=size - turn)
    return [name for _, _, name in places]


def _entry(name: str, entry: Any) -> tuple[str, list[int], tuple[int, int]]:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise WeightsRefused(Stage.FORMAT, BAD_ENTRY, short(name))
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not (isinstance(dtype, str) and _sizes(shape) and _sizes(offsets) and len(offsets) == 2):
        raise WeightsRefused(Stage.FORMAT, BAD_ENTRY, short(name))
    if dtype not in DTYPES:
        raise WeightsRefused(Stage.FORMAT, BAD_DTYPE, short(name), dtype=short(dtype))
    if len(shape) > LIMITS["weights_axes"].value:
        raise WeightsRefused(Stage.FORMAT, BAD_AXES, short(name), count=len(shape), limit=LIMITS["weights_axes"].value)
    return dtype, shape, (offsets[0], offsets[1])


def _sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(size) is int and 0 <= size < 2**48 for size in value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in pairs:
        if name in out:
            raise _no_json(TWICE, name=short(name))
        out[name] = value
    return out


def _finite(text: str) -> float:
    """``1e999`` is a number of JSON's grammar, and infinite in Python."""
    value = float(text)
    if not math.isfinite(value):
        raise _no_json(TOO_LARGE_NUMBER)
    return value


def _no_constant(word: str) -> Any:
    raise _no_json(NOT_FINITE_JSON, word=word)


def _no_json(template: str, **fields: object) -> WeightsRefused:
    return WeightsRefused(Stage.FORMAT, NO_JSON, reason=fill(template, **fields))


def short(text: str) -> str:
    """At most some characters of what a file says, all of them printable."""
    printable = "".join(c if c.isprintable() else "·" for c in text[:_SHOWN])
    return printable + ("…" if len(text) > _SHOWN else "")
