"""Typed numbers of the cell page: a line is an example, where a sequence would take it for a step."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from core.base.avals import abstract
from core.base.limits import LIMITS
from core.base.text import fill
from core.inputs.parse import UnreadableError, format_leaf, format_number, format_sequence, parse_sequence, to_array

NO_ROWS = "There are no numbers here: give a line for each example."


def read_rows(text: str, *, table: bool = False) -> Any:
    """Typed rows as float32: a line is an example, also when there is only one. Nested lists are taken as they are.

    Args:
        text: what was typed.
        table: it comes from the table, which writes examples of one feature each in one line.

    Returns:
        an array on the device, or its abstract value when it has more elements than any array may have.

    Raises:
        UnreadableError: with the place.
    """
    numbers = parse_sequence(text)
    if numbers.shape == (0,):
        raise UnreadableError(fill(NO_ROWS))
    if numbers.size > LIMITS["elements"].value:
        return abstract(numbers.shape, jnp.float32)
    array = to_array(numbers, "float32")
    if array.ndim == 1 and not numbers.filled and text.strip()[0] not in "[(":
        array = array.reshape(1, -1) if _lines(text) == 1 and not table else array.reshape(-1, 1)
    return jax.device_put(array)


def written(values: Any, *, table: bool = False) -> str:
    """Numbers as they are typed here; `read_rows` reads them back to the same array, of the table when `table`."""
    array = np.asarray(values).astype(np.float32)
    if table and array.ndim == 2 and array.shape[1] == 1:
        return format_sequence(array[:, 0])
    if array.ndim == 2 and array.shape[0] > 1:
        return "\n".join(", ".join(map(format_number, row)) for row in array)
    return format_leaf(array)


def _lines(text: str) -> int:
    return sum(1 for line in text.splitlines() if line.strip())
