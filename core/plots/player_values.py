"""Numbers as the scan player writes them: short, honest, the same on every page.

The browser gets ready-made strings: formatting there would need each dtype's rules a second time, and JSON has no
NaN. A value is cut to its first few elements by one pattern per leaf, because a leaf has the same shape at every t.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

MINUS = "\u2212"
ELLIPSIS = "\u2026"

#: Whole numbers up to here are written out: 10946 must not become 1.095e4 in a Fibonacci scan.
_WHOLE = 1_000_000

_CHIP_NUMBER = 6


def short_number(value: Any) -> str:
    """One number in at most 4 significant digits, whole numbers below a million in full.

    Args:
        value: a NumPy scalar of any dtype (bool, integer, float, bfloat16, complex).

    Returns:
        Text with a true minus sign, such as ``−0.6931``, ``10946``, ``1.235e−5``, ``NaN``, ``−inf``, ``True``.
    """
    return _texts(np.asarray(value).reshape(1), _short_float)[0]


def chip_number(value: Any) -> str:
    """The same for a chip of the diagram: 3 significant digits, 2 where those take more than six characters."""
    return _texts(np.asarray(value).reshape(1), _chip_float)[0]


def _texts(values: np.ndarray[Any, Any], write: Callable[[float], str]) -> list[str]:
    """Each element of a 1-D array, the way its dtype wants it; `write` is for what is not a small whole number.

    The dtype is looked at once and Python's own numbers do the rest: 512 steps of a few leaves are written on each rerun.
    """
    if values.dtype.kind == "b":
        return [str(element) for element in values.tolist()]
    if values.dtype.kind in "iu":
        return [_short_integer(element, write) for element in values.tolist()]
    if values.dtype.kind == "c":
        return [_short_complex(element, write) for element in values.tolist()]
    return [write(element) for element in values.astype(np.float64).tolist()]


def _short_integer(number: int, write: Callable[[float], str]) -> str:
    return str(number).replace("-", MINUS) if -_WHOLE < number < _WHOLE else write(float(number))


def _short_complex(number: complex, write: Callable[[float], str]) -> str:
    real, imag = write(number.real), write(number.imag)
    return f"{real}{'' if imag.startswith(MINUS) else '+'}{imag}j"


def _short_float(number: float) -> str:
    return _tidy(f"{number:.4g}", number)


def _chip_float(number: float) -> str:
    text = _tidy(f"{number:.3g}", number)
    return (
        text
        if len(text) <= _CHIP_NUMBER or len(text.removeprefix(MINUS)) <= _CHIP_NUMBER
        else _tidy(f"{number:.2g}", number)
    )


def _tidy(text: str, number: float) -> str:
    """Python's general format with a true minus, a short exponent, and none where a whole number can be written out."""
    if text == "nan":
        return "NaN"
    if "e" in text:
        if number.is_integer() and abs(number) < _WHOLE:
            text = f"{number:.0f}"
        else:
            mantissa, _, power = text.partition("e")
            text = f"{mantissa}e{int(power)}"
    return text.replace("-", MINUS)


def _pattern(shape: tuple[int, ...], shown: int) -> tuple[str, list[int]]:
    """How one value of this shape is written: a %-pattern in nested brackets and the flat index of each shown element."""
    taken: list[int] = []

    def block(dims: tuple[int, ...], start: int) -> str:
        if not dims:
            taken.append(start)
            return "%s"
        stride = int(np.prod(dims[1:], dtype=np.int64))
        parts: list[str] = []
        for row in range(dims[0]):
            if len(taken) >= shown or row >= shown:
                parts.append(ELLIPSIS)
                break
            parts.append(block(dims[1:], start + row * stride))
        return f"[{', '.join(parts)}]"

    return block(shape, 0), taken


@dataclass(frozen=True, slots=True)
class LeafTexts:
    """The first elements of a leaf at every position, written once; `values(shown)` puts as many as wanted in brackets."""

    shape: tuple[int, ...]
    rows: list[tuple[str, ...]]

    def values(self, shown: int) -> list[str]:
        """One text per position: ``6`` for a scalar, ``[1, 2, …]`` or ``[[1, 2], …]`` for arrays."""
        pattern, taken = _pattern(self.shape, shown)
        return [pattern % row[: len(taken)] for row in self.rows]


def leaf_texts(values: np.ndarray[Any, Any], shown: int, *, chip: bool = False) -> LeafTexts:
    """The elements of one leaf as text.

    Args:
        values: array with a leading axis of positions; the rest is the leaf's shape.
        shown: how many elements of a value may be asked for later.
        chip: as short as a chip of the diagram wants them.
    """
    shape = values.shape[1:]
    _, taken = _pattern(shape, shown)
    flat = values.reshape(values.shape[0], int(np.prod(shape, dtype=np.int64)))[:, taken]
    texts = _texts(flat.reshape(-1), _chip_float if chip else _short_float)
    width = len(taken)
    return LeafTexts(shape, [tuple(texts[row * width : (row + 1) * width]) for row in range(values.shape[0])])
