"""What a report is asked for: of which page and inputs, or of which script, and what was declared of its data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from core.base.text import fill
from core.inputs import cell_fields, gradient_fields, sequence_fields
from core.inputs.fields import FieldTable, Kind, Read, Value
from core.inputs.scan_fields import scan_fields, scan_link_fields
from core.report.arrays import digest_text
from core.report.declared import FIELDS
from core.report.model import Setting
from core.weights.cell import CellWeights

SCAN, LSTM, SEQUENCE, GRADIENTS, SCRIPT = "scan", "lstm", "sequence", "gradients", "script"
PAGES: Final = (SCAN, LSTM, SEQUENCE, GRADIENTS)

#: Texts that are no data: arguments of `lax.scan`, the hash of a file.
_NO_DATA: Final = frozenset({"unroll", "length_argument", "weights"})

TEXT_HIDDEN = "{count} characters, SHA-256 {digest}"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for.

    Attributes:
        page: one of `PAGES`, or `SCRIPT`.
        values: the page's complete fields.
        text: the script.
        declared: texts by the names of `core.report.declared.FIELDS`.
        with_values: write the inputs out, not only their hashes.
        file: the parameters of a file that the values name by their hash.
    """

    page: str
    values: Mapping[str, Value] = field(default_factory=dict)
    text: str = ""
    declared: Mapping[str, str] = field(default_factory=dict)
    with_values: bool = False
    file: CellWeights | None = None


def table_of(page: str, values: Mapping[str, object]) -> FieldTable:
    """The fields of a page for some values.

    Raises:
        KeyError: there is no such page.
    """
    if page == SCAN:
        return scan_fields(values)
    if page == SEQUENCE:
        return sequence_fields.sequence_fields(values)
    return {LSTM: cell_fields.FIELDS, GRADIENTS: gradient_fields.FIELDS}[page]


def from_link(page: str, params: Mapping[str, str]) -> Read:
    """What a link of a page says: its fields' values, and what was refused.

    Raises:
        KeyError: there is no such page.
    """
    if page == SCAN:
        return scan_link_fields(params).from_link(params)
    if page == SEQUENCE:
        return sequence_fields.sequence_link_fields(params).from_link(params)
    return table_of(page, {}).from_link(params)


def settings_of(wanted: Wanted, unused: frozenset[str] = frozenset()) -> tuple[Setting, ...]:
    """The page's inputs, in their order. Typed text stands there as its length and hash, unless values are asked for."""
    out = []
    for one in table_of(wanted.page, wanted.values).fields:
        if one.name in unused or one.name not in wanted.values:
            continue
        value: Any = wanted.values[one.name]
        text = one.format(value)
        if one.kind is Kind.TEXT and text and one.name not in _NO_DATA and not wanted.with_values:
            text = fill(TEXT_HIDDEN, count=len(text), digest=digest_text(text))
        out.append(Setting(one.label, text))
    return tuple(out)


def known_fields(declared: Mapping[str, str]) -> dict[str, str]:
    """Those of the texts that can be declared."""
    return {name: str(declared[name]) for name in FIELDS if name in declared}
