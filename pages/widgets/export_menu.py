"""What stands beside the strip on every page: "Copy link", and "Export" with all that leaves the page as a file.

Files are made when they are asked for: each button has a function, which Streamlit calls at the click.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.base.text import fill
from core.export.document import Document, script
from core.export.notebook import notebook
from pages.widgets.chart_config import picture_format
from pages.widgets.copy_link import copy_link

EXPORT_LABEL = "Export"
SCRIPT_LABEL, NOTEBOOK_LABEL = "Script (.py)", "Notebook (.ipynb)"
SCRIPT_SAYS = "Runs by itself and prints the numbers of this page. It pins its versions and ends with a negative test."
NOTEBOOK_SAYS = "The same program in cells, with words between them."
SCRIPT_TYPE, NOTEBOOK_TYPE = "text/x-python", "application/x-ipynb+json"
CSV_LABEL, NPZ_LABEL = "Numbers (.csv)", "Numbers (.npz)"
CSV_TYPE, NPZ_TYPE = "text/csv", "application/octet-stream"
PICTURES = "The camera at the top right of a chart saves its picture."
NOTHING = "An input cannot be used as it stands, so there is no program of it."


@dataclass(frozen=True, slots=True)
class Offer:
    """A file in the menu.

    Attributes:
        name: the button's key is ``<page>_export_<name>``.
        label: on the button.
        file: its name.
        mime: its type.
        make: gives its content; None where it cannot be had now.
        says: a tooltip.
    """

    name: str
    label: str
    file: str
    mime: str
    make: Callable[[], str | bytes] | None
    says: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """Something in the menu that is no file by itself: it draws its own button.

    Attributes:
        draw: called where it stands.
        make: None where there is nothing to be had now.
    """

    draw: Callable[[], None]
    make: Callable[[], object] | None


def program_offers(stem: str, make: Callable[[], Document | None] | None) -> tuple[Offer, Offer]:
    """The program as script and as notebook. `make`: None where there is none."""

    def made(write: Callable[[Document], str]) -> Callable[[], str] | None:
        if make is None:
            return None

        def content() -> str:
            document = make()
            return "" if document is None else write(document)

        return content

    return (
        Offer("script", fill(SCRIPT_LABEL), f"{stem}.py", SCRIPT_TYPE, made(script), fill(SCRIPT_SAYS)),
        Offer("notebook", fill(NOTEBOOK_LABEL), f"{stem}.ipynb", NOTEBOOK_TYPE, made(notebook), fill(NOTEBOOK_SAYS)),
    )


def number_offers(
    stem: str, csv: Callable[[], bytes] | None, npz: Callable[[], bytes] | None, *, says: tuple[str, str] = ("", "")
) -> tuple[Offer, Offer]:
    """The numbers as CSV and npz; None where nothing ran."""
    return (
        Offer("csv", fill(CSV_LABEL), f"{stem}.csv", CSV_TYPE, csv, says[0]),
        Offer("npz", fill(NPZ_LABEL), f"{stem}.npz", NPZ_TYPE, npz, says[1]),
    )


def strip_menus(
    slot: DeltaGenerator,
    page: str,
    offers: Sequence[Offer | Item],
    *,
    before: Callable[[], None] | None = None,
    below: Callable[[], None] | None = None,
    link_says: str = "",
    link_problem: str = "",
    pictures: bool = True,
) -> None:
    """The row beside the strip.

    Args:
        slot: the second of `verdict.verdict_slots`.
        page: prefix of the keys: ``<page>_strip_menus``, ``<page>_copy_link``, ``<page>_export``.
        offers: the files, and what else draws itself.
        before: draws what else stands in the row, before the two.
        below: draws what else stands in the menu, below the files.
        link_says: see `copy_link`.
        link_problem: see `copy_link`.
        pictures: whether the page has charts.
    """
    with slot.container(
        horizontal=True,
        horizontal_alignment="right",
        vertical_alignment="center",
        key=f"{page}_strip_menus",
        gap="xsmall",
    ):
        if before is not None:
            before()
        copy_link(key=f"{page}_copy_link", says=link_says, problem=link_problem)
        with st.popover(fill(EXPORT_LABEL), icon=":material/download:", key=f"{page}_export"):
            for offer in offers:
                if isinstance(offer, Item):
                    offer.draw()
                else:
                    _button(page, offer)
            if below is None and not any(offer.make for offer in offers):
                st.caption(fill(NOTHING))
            elif pictures:
                picture_format()
                st.caption(fill(PICTURES))
            if below is not None:
                below()


def _button(page: str, offer: Offer) -> None:
    st.download_button(
        offer.label,
        offer.make or "",
        offer.file,
        offer.mime,
        key=f"{page}_export_{offer.name}",
        help=offer.says or None,
        on_click="ignore",
        disabled=offer.make is None,
        width="stretch",
    )
