"""What a link to the lessons says: which one, in as few characters as can be read out from a projector."""

from __future__ import annotations

from typing import Final

from core.inputs.fields import FieldTable, InputField, Kind

PAGE: Final = "lessons"
FIELDS: Final = FieldTable(PAGE, (InputField("number", "n", Kind.TEXT, "", "the lesson", max_chars=8),))
