"""Numbers as the scan player writes them: short, honest, the same on every page.

The browser gets ready-made strings: formatting there would need each dtype's rules a second time, and JSON has no
NaN. A value is cut to its first few elements by one pattern per leaf, because a leaf has the same shape at every t.
"""

from __future__ import annotations

from typing import Any

import numpy as np

MINUS = "\u2212"
ELLIPSIS = "\u2026"

#: Whole numbers up to here are written out: 10946 must not become 1.095e4 in a Fibonacci scan.
_WHOLE = 1_000_000


def short_number(value: Any) -> str:
    """One number in at most 4 significant digits, whole numbers below a million in full.

    Args:
        value: a NumPy scalar of any dtype (bool, integer, float, bfloat16, complex).

    Returns:
        Text with a true minus sign, such as ``−0.6931``, ``10946``, ``1.235e−5``, ``NaN``, ``−inf``, ``True``.
    """
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (complex, np.complexfloating)):
        real, imag = short_number(value.real), short_number(value.imag)
        return f"{real}{'' if imag.startswith(MINUS) else '+'}{imag}j"
    if isinstance(value, (int, np.integer)) and abs(int(value)) < _WHOLE:
        return str(int(value)).replace("-", MINUS)
    return _short_float(float(value))


def _short_float(number: float) -> str:
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "inf" if number > 0 else f"{MINUS}inf"
    if number.is_integer() and abs(number) < _WHOLE:
        return f"{number:.0f}".replace("-", MINUS)
    digits, mark, power = f"{number:.4g}".partition("e")
    return (digits + (f"e{int(power)}" if mark else "")).replace("-", MINUS)


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


def value_texts(values: np.ndarray[Any, Any], shown: int) -> list[str]:
    """Each position's value of one leaf as text.

    Args:
        values: array with a leading axis of positions; the rest is the leaf's shape.
        shown: how many elements of a value are written before ``…``.

    Returns:
        One text per position: ``6`` for a scalar, ``[1, 2, …]`` or ``[[1, 2], …]`` for arrays.
    """
    pattern, taken = _pattern(values.shape[1:], shown)
    rows = values.reshape(values.shape[0], -1)[:, taken] if taken else [()] * values.shape[0]
    return [pattern % tuple(short_number(element) for element in row) for row in rows]
