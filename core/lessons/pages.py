"""The pages that a lesson can be about: how each reads a link, and the address it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from core.doctor import link as doctor
from core.inputs import cell_fields, gradient_fields, scan_fields, sequence_fields, sequence_follow
from core.inputs.fields import FieldTable, Read, Value

type _Table = Callable[[Mapping[str, str]], FieldTable]
type _Follow = Callable[[Mapping[str, Value]], dict[str, Value]]


@dataclass(frozen=True, slots=True)
class LessonPage:
    """A page with live controls.

    Attributes:
        name: the prefix of its widgets' keys.
        title: as the navigation says it.
        script: of its view.
        table: the field table for what a link says.
        follow: what the page makes of a link's values before it shows them.
    """

    name: str
    title: str
    script: str
    table: _Table
    follow: _Follow

    def read(self, params: Mapping[str, str]) -> Read:
        """The values that the page has after it was opened with this link; what it refuses is in the answer."""
        read = self.table(params).from_link(params)
        return Read(self.follow(read.values), read.refused)


def _same(values: Mapping[str, Value]) -> dict[str, Value]:
    return dict(values)


PAGES: Final[Mapping[str, LessonPage]] = {
    page.name: page
    for page in (
        LessonPage(
            scan_fields.PAGE,
            "Scan",
            "pages/views/scan.py",
            scan_fields.scan_link_fields,
            lambda values: scan_fields.follow(values, {}),
        ),
        LessonPage(cell_fields.PAGE, "LSTM cell", "pages/views/lstm.py", lambda _: cell_fields.FIELDS, _same),
        LessonPage(
            sequence_fields.PAGE,
            "Sequence",
            "pages/views/sequence.py",
            sequence_fields.sequence_link_fields,
            lambda values: sequence_follow.follow(values, {}),
        ),
        LessonPage(
            gradient_fields.PAGE, "Gradients", "pages/views/gradients.py", lambda _: gradient_fields.FIELDS, _same
        ),
        LessonPage(doctor.PAGE, "Doctor", "pages/views/doctor.py", lambda _: doctor.FIELDS, _same),
    )
}
