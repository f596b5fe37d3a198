"""What each page of play offers in its "Export" menu."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial

from core.base.outcome import Outcome, Report
from core.base.text import fill
from core.export import cell_program, cell_rows, gradient_program, gradient_rows, scan_program, scan_rows
from core.export import sequence_program as sequence
from core.inputs.cell_page import CellLook
from core.inputs.gradient_page import GradientLook
from core.inputs.scan_check import Checked
from core.inputs.sequence_page import SequenceLook
from core.inputs.sequence_rows import carry_csv, history_npz
from core.report.wanted import GRADIENTS, LSTM, SCAN, SEQUENCE, Wanted
from pages.widgets.export_menu import Item, Offer, number_offers, program_offers
from pages.widgets.report_panel import report_item

SCAN_SAYS = ("A line for each step, from init on: carry, x, y.", "Carry with init, xs and ys, for np.load.")
CELL_SAYS = (
    "A line for each example and unit: carry, gates, output.",
    "The same with all parts and weights, for np.load.",
)
SEQUENCE_SAYS = (
    "A line for each example and t, from the initial carry on.",
    "Carries with the initial one, gates, outputs, data and mask, for np.load.",
)
GRADIENT_SAYS = ("What the view shows, as a table.", "The same with the data, for np.load.")


type Offers = tuple[Offer | Item, ...]


def scan_offers(checked: Checked) -> Offers:
    """Of the inputs as they stand."""
    stem, result = fill(scan_program.STEM), checked.result
    ready = checked.built.call is not None and _runs(checked.report)
    csv = None if result is None else partial(scan_rows.scan_csv, result)
    npz = None if result is None else partial(scan_rows.scan_npz, checked, result)
    return (
        *program_offers(stem, partial(scan_program.scan_document, checked) if ready else None),
        *number_offers(stem, csv, npz, says=SCAN_SAYS),
        report_offer(SCAN, (lambda: Wanted(SCAN, dict(checked.values))) if checked.built.call is not None else None),
    )


def cell_offers(look: CellLook) -> Offers:
    """Of the inputs as they stand."""
    stem, step, inputs = fill(cell_program.STEM), look.step, look.inputs
    ready = bool(look.program) and _runs(look.report)
    csv = None if step is None else partial(cell_rows.cell_csv, step)
    npz = None if step is None else partial(cell_rows.cell_npz, look, step)
    return (
        *program_offers(stem, partial(cell_program.cell_document, look) if ready else None),
        *number_offers(stem, csv, npz, says=CELL_SAYS),
        report_offer(LSTM, (lambda: Wanted(LSTM, inputs.values, file=inputs.file)) if look.program else None),
    )


def sequence_offers(look: SequenceLook) -> Offers:
    """Of the inputs as they stand."""
    stem, result, trial, inputs = fill(sequence.STEM), look.result, look.trial, look.inputs
    ready = bool(look.program) and _runs(look.report)
    csv = None if result is None else partial(carry_csv, result)
    npz = None if result is None or trial is None else partial(history_npz, look.inputs, trial, result)
    return (
        *program_offers(stem, partial(sequence.sequence_document, look) if ready else None),
        *number_offers(stem, csv, npz, says=SEQUENCE_SAYS),
        report_offer(SEQUENCE, (lambda: Wanted(SEQUENCE, inputs.values, file=inputs.file)) if look.program else None),
    )


def gradient_offers(look: GradientLook, row: int) -> Offers:
    """Of the inputs as they stand; `row` of the maps, 0 for the last."""
    stem = fill(gradient_program.STEM)
    values = {field.name: getattr(look.inputs, field.name) for field in fields(look.inputs)}
    ready = look.ran or look.raised is not None
    s = row if look.cells is None or 0 < row <= look.cells.length else look.cells.length
    csv = partial(gradient_rows.gradient_csv, look, s) if look.ran else None
    npz = partial(gradient_rows.gradient_npz, look) if look.ran else None
    return (
        *program_offers(stem, partial(gradient_program.gradient_document, look) if ready else None),
        *number_offers(stem, csv, npz, says=GRADIENT_SAYS),
        report_offer(GRADIENTS, (lambda: Wanted(GRADIENTS, values)) if ready else None),
    )


def report_offer(page: str, want: Callable[[], Wanted] | None) -> Item:
    """The contract report of a page."""
    return Item(partial(report_item, page, want), want)


def _runs(report: Report | None) -> bool:
    """Whether it was checked, and is not over a limit."""
    return report is not None and report.outcome is not Outcome.LIMIT
