"""What a link to the catalogue says: which code, in as few characters as can be read out from a projector."""

from __future__ import annotations

from typing import Final

from core.inputs.fields import FieldTable, InputField, Kind

PAGE: Final = "catalogue"
FIELDS: Final = FieldTable(PAGE, (InputField("code", "c", Kind.TEXT, "", "the code", max_chars=8),))
