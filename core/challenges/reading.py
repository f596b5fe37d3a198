"""What a learner types as an answer, read: a shape, a dtype, a value. A form that cannot be read is no wrong answer.

read_shape("3, 2")   ->  (3, 2)          also "(3, 2)", "[3 2]", "3x2", "float32[3,2]", "()", "scalar"
read_dtype("f32")    ->  "float32"       also "jnp.float32", "float", "float32[3]", "dtype('float32')", "weak float32"
read_value("[1, 3]") ->  array           also "1 3", "6.0", "7/4", "[[1, 2], [3, 4]]", "True", "Array([1., 3.], dtype=float32)"
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

import numpy as np

from core.base.text import fill
from core.inputs.fields import shorten
from core.inputs.parse import UnreadableError, parse_leaf

EMPTY = "Type an answer first."
NO_SHAPE = "“{text}” is no shape. A shape is whole numbers, such as (3, 2) or (5,), and () for a single number."
NO_DTYPE = "“{text}” is no dtype. One is float32, int32, bool, bfloat16, …"
NO_VALUE = "“{text}” is no value. Write a number, or a list of numbers such as [1, 3, 6]."
#: Characters of an answer that are read, and axes of a shape.
LONGEST, AXES = 400, 8

_SIZES: Final = re.compile(r"\d{1,9}")
_BETWEEN: Final = re.compile(r"\s*(?:[,;x×*]|\bby\b)\s*|\s+")
_SCALAR: Final = frozenset({"()", "[]", "scalar", "a scalar", "none", "no axes", "empty"})
#: What may stand before a shape: what it is of, or the library's own name for it.
_SHAPE_OF: Final = re.compile(r"^(?:\w+\.)?(?:shape|size)\s*[:=]?\s*(?=[(\[])|\b[a-z]\w*\s*=\s*(?=\d)")
_TYPED: Final = re.compile(r"[a-z]+\d*\s*(\[[^\[\]]*\])")  # float32[3,2]
#: What people write for a dtype, beside its own name. A Python number's type is what JAX makes of it by default.
_SHORT: Final = {
    "f64": "float64", "double": "float64", "f32": "float32", "float": "float32", "f16": "float16", "half": "float16",
    "fp32": "float32", "single": "float32", "s32": "int32", "s8": "int8", "c64": "complex64",
    "c128": "complex128", "complex": "complex64", "bf16": "bfloat16", "i64": "int64", "i32": "int32", "int": "int32", "integer": "int32", "i16": "int16",
    "i8": "int8", "u8": "uint8", "u16": "uint16", "u32": "uint32", "uint": "uint32", "boolean": "bool", "bool_": "bool",
}  # fmt: skip
DTYPES: Final = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 bfloat16 float16 float32 float64 complex64 complex128".split()
)


#: What JAX and NumPy print around values, and a dtype as a function.
_ARRAY: Final = re.compile(
    r"^(?:jnp\.|np\.)?(?:array|(?:bool_?|b?float|u?int)\d*)\((.*?)(?:,\s*(?:dtype\s*=\s*)?[a-z][\w.]*)?(?:,\s*weak_type=true)?\)$",
    re.IGNORECASE,
)
#: What people add to a dtype, and is not asked for: whether it is weak or strong.
_TYPING: Final = re.compile(
    r"^(?:weak|strong)(?:ly[ -]typed)?\s+|,?\s*\(?(?:weak|strong)(?:[ _]type)?(?:\s*=\s*true)?\)?$"
)
_FRACTION: Final = re.compile(r"(?<![\w.])([-+]?\d{1,9})\s*/\s*(\d{1,9})(?![\w.])")


class FormError(ValueError):
    """An answer that cannot be read; the message says what would be, for its reader."""


def read_shape(text: str) -> tuple[int, ...]:
    """The shape that is meant.

    Raises:
        FormError: none can be read.
    """
    plain = _SHAPE_OF.sub("", _plain(text).lower())
    typed = _TYPED.fullmatch(plain)
    inner = re.sub(r"\s+", "", typed[1]) if typed and not typed[1][1:-1].strip() else plain
    if re.sub(r"(?<=[(\[])\s+(?=[)\]])", "", inner) in _SCALAR:
        return ()
    parts = _BETWEEN.split(_unwrapped(typed[1] if typed else plain).removesuffix(",").strip())
    if len(parts) > AXES or not all(part.isascii() and _SIZES.fullmatch(part) for part in parts):
        raise FormError(fill(NO_SHAPE, text=shorten(text)))
    return tuple(int(part) for part in parts)


def read_dtype(text: str) -> str:
    """The dtype that is meant, by its full name.

    Raises:
        FormError: none can be read.
    """
    plain = _plain(text).lower()
    plain = re.sub(r"^<class '(.*)'>$", r"\1", plain)
    plain = re.sub(r"^(?:(?:np|numpy|jnp)\.)?dtype\s*[(=:]\s*(.*?)\)?$", r"\1", plain)
    plain = _TYPING.sub("", plain)
    plain = re.sub(r"^(?:jax\.numpy|jnp|np|numpy)\.", "", plain.strip(" '\"."))
    plain = re.sub(r"\s*\[[\d, ]*\]$", "", plain)  # float32[3,2]
    plain = re.sub(r"(?<=[a-z])[ -](?=\d)", "", plain)  # float 32
    name = _SHORT.get(plain, plain)
    if name not in DTYPES:
        raise FormError(fill(NO_DTYPE, text=shorten(text)))
    return name


def read_value(text: str) -> np.ndarray[Any, Any]:
    """The value that is meant, in double precision; True and False are 1 and 0.

    Raises:
        FormError: none can be read.
    """
    plain = re.sub(r"^[A-Za-z_]\w*\s*=\s*", "", _plain(text))  # jar = 15
    plain = _ARRAY.sub(r"\1", plain).strip()
    plain = re.sub(r"(?<!\w)([-+])\s+(?=[\d.])", r"\1", plain).replace(";", ",")
    plain = _FRACTION.sub(_divided, plain)
    # What NumPy prints has blanks between its numbers, and no commas.
    plain = re.sub(r"(?<=[\w.\])])\s+(?=[-+\w.\[(])", ", ", plain)
    if plain.startswith("(") and plain.endswith(")"):
        plain = f"[{plain[1:-1]}]" if "," in plain else plain[1:-1]
    if "," in plain and plain[0] in "-+.0123456789nitfNITF":  # numbers without brackets; no `zeros(2, 4)`
        plain = f"[{plain}]"
    try:
        read = parse_leaf(plain)
        if math.prod(read.shape) > LONGEST:
            raise FormError(fill(NO_VALUE, text=shorten(text)))
        return np.full(read.shape, read.nested, np.float64) if read.filled else np.asarray(read.nested, np.float64)
    except (UnreadableError, OverflowError, TypeError):
        raise FormError(fill(NO_VALUE, text=shorten(text))) from None


def _plain(text: str) -> str:
    """The text without what surrounds it.

    Raises:
        FormError: there is none, or more than anybody would type.
    """
    plain = re.sub(r"[\u200b-\u200f\u2060\ufeff]", "", text.replace("−", "-").replace("–", "-"))
    plain = plain.strip().strip("`“”").strip()
    plain = re.sub(r"(?<=[\])a-z])\.$", "", plain)  # the end of a sentence
    if not plain:
        raise FormError(fill(EMPTY))
    if len(plain) > LONGEST:
        raise FormError(fill(NO_VALUE, text=shorten(plain)))
    return plain


def _unwrapped(text: str) -> str:
    for opening, closing in ("()", "[]"):  # the one may stand within the other: Size([3, 2])
        if text.startswith(opening) and text.endswith(closing):
            text = text[1:-1].strip()
    return text


def _divided(found: re.Match[str]) -> str:
    below = int(found[2])
    return repr(int(found[1]) / below) if below else found[0]
