"""The states of pages that baselines are made of: by page, its fields, its cases, and how one case is run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, urlsplit

from core.base.text import fill
from core.inputs import cell_fields, gradient_fields, sequence_fields
from core.inputs import scan_fields as scan
from core.inputs.classroom import NAMES
from core.inputs.fields import FieldTable, Value, shorten
from core.inputs.sequence_follow import follow
from core.regress import cases_cell, cases_gradient, cases_scan, cases_sequence
from core.regress.case import Case, CaseName, Made
from core.weights.cell import CellWeights

type Values = Mapping[str, Value]

#: The page of a link that names none.
DEFAULT: Final = scan.PAGE

NO_PAGE = "There is no page “{page}”: baselines are made of {pages}."
OTHER_PAGE = "The link is of the page “{got}”, not of “{want}”."
TWICE = "The link gives “{name}” more than once."
NO_LINK = "The link is no address: “{link}”."
NOT_COMPLETE = "the settings of the page do not hold together: {names}"


class BadLinkError(ValueError):
    """A link that does not say what it should; the message is for a reader."""


@dataclass(frozen=True, slots=True)
class PageState:
    """A page, as far as its baselines need it.

    Attributes:
        name: as in its address.
        table: its fields for some values.
        link_table: its fields for what a link says.
        settle: values as the page settles them after it has read a link.
        cases: the small set of a state.
        tidy: the values without typed numbers, or the name of a file of parameters, that nothing is made of.
        hidden: the values with typed numbers replaced by seeded ones, and the names of those fields.
        run: one case, with the file of parameters that it names.
        left_out: cases that a state has no inputs for.
    """

    name: str
    table: Callable[[Values], FieldTable]
    link_table: Callable[[Mapping[str, str]], FieldTable]
    cases: Callable[[Values], Iterator[Case]]
    tidy: Callable[[Values, CellWeights | None], dict[str, Value]]
    hidden: Callable[[Values, int], tuple[dict[str, Value], tuple[str, ...]]]
    run: Callable[[Values, CellWeights | None], Made]
    settle: Callable[[Values], Mapping[str, Value]] = dict
    left_out: Callable[[Values], tuple[CaseName, ...]] = lambda _: ()


def _same(table: FieldTable) -> Callable[[Any], FieldTable]:
    return lambda _: table


PAGES: Final[Mapping[str, PageState]] = {
    page.name: page
    for page in (
        PageState(
            scan.PAGE,
            scan.scan_fields,
            scan.scan_link_fields,
            cases_scan.cases,
            cases_scan.tidy,
            cases_scan.hidden,
            cases_scan.run,
            settle=lambda values: scan.follow(values, {}),
        ),
        PageState(
            cell_fields.PAGE,
            _same(cell_fields.FIELDS),
            _same(cell_fields.FIELDS),
            cases_cell.cases,
            cases_cell.tidy,
            cases_cell.hidden,
            cases_cell.run,
        ),
        PageState(
            sequence_fields.PAGE,
            sequence_fields.sequence_fields,
            sequence_fields.sequence_link_fields,
            cases_sequence.cases,
            cases_sequence.tidy,
            cases_sequence.hidden,
            cases_sequence.run,
            settle=lambda values: follow(values, {}),
        ),
        PageState(
            gradient_fields.PAGE,
            _same(gradient_fields.FIELDS),
            _same(gradient_fields.FIELDS),
            cases_gradient.cases,
            cases_gradient.tidy,
            cases_gradient.hidden,
            cases_gradient.run,
            left_out=cases_gradient.left_out,
        ),
    )
}


def page_state(name: str) -> PageState:
    """The page of that name.

    Raises:
        BadLinkError: there is none.
    """
    if name not in PAGES:
        raise BadLinkError(fill(NO_PAGE, page=name, pages=", ".join(PAGES)))
    return PAGES[name]


def page_of_link(link: str) -> str:
    """The page in an address, `scan` in one without a path; "" where only what stands behind ``?`` is given."""
    parts = _parts(link)
    return parts.path.strip("/").rpartition("/")[2] or (scan.PAGE if parts.netloc else "")


def _parts(link: str) -> SplitResult:
    """A link taken apart.

    Raises:
        BadLinkError: it is none (``http://[``).
    """
    try:
        return urlsplit(link if "?" in link or "://" in link else f"?{link}")
    except ValueError:
        raise BadLinkError(fill(NO_LINK, link=shorten(link))) from None


def values_of_link(page: str, link: str) -> dict[str, Value]:
    """The values that a page opens with from a link.

    Args:
        page: a name in `PAGES`; "" takes the one in the link's address.
        link: an address, or what stands in it behind ``?``; "" is the page as it opens.

    Raises:
        BadLinkError: the link is of another page, or says something that the page refuses: a baseline of another state
            than the one that was asked for would be worth nothing.
    """
    parts, name = _parts(link), page_of_link(link)
    if page and name and name != page:
        raise BadLinkError(fill(OTHER_PAGE, got=name, want=page))
    state = page_state(page or name or DEFAULT)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    # What a class's link, or Streamlit itself, says is about the page's looks.
    params = {name: text for name, text in pairs if name not in NAMES and not name.startswith("embed")}
    twice = [fill(TWICE, name=shorten(key)) for key in params if sum(other == key for other, _ in pairs) > 1]
    read = state.link_table(params).from_link(params)
    if read.refused or twice:
        raise BadLinkError(" ".join((*read.refused, *twice)))
    table = state.table(read.values)
    return dict(state.settle(table.complete(read.values)))


def complete(page: PageState, values: Mapping[str, object]) -> dict[str, Value]:
    """The values, checked: those that the page could have. A field that is not there has its default: it came later.

    Raises:
        BadLinkError: a field is unknown, or has a value that it cannot have.
    """
    table = page.table(values)  # type: ignore[arg-type]  # every table checks what it is given
    whole = table.complete(values)
    wrong = [name for name, value in values.items() if name not in whole or not _equal(whole[name], value)]
    if wrong:
        raise BadLinkError(
            fill(NOT_COMPLETE, names=", ".join(sorted(wrong, key=lambda name: (name not in whole, name))[:3]))
        )
    return whole


def _equal(one: object, two: object) -> bool:
    """1 and true are equal in Python, and no number of a page."""
    return one == two and isinstance(one, bool) == isinstance(two, bool)
