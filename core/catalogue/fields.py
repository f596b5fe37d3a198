"""What a link to the catalogue says: which code, in as few characters as can be read out from a projector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from core.inputs.fields import FieldTable, InputField, Kind

PAGE: Final = "catalogue"
FIELDS: Final = FieldTable(PAGE, (InputField("code", "c", Kind.TEXT, "", "the code", max_chars=8),))
#: The same by the word that people type: ``/catalogue?code=S104``.
_IN_FULL: Final = FieldTable(PAGE, (replace(FIELDS.field("code"), url="code"),))


def link_fields(params: Mapping[str, str]) -> FieldTable:
    """The table for what a link says: ``c=S104``, as the page writes it, or ``code=S104``."""
    return _IN_FULL if "code" in params and "c" not in params else FIELDS
