"""What each page would say of its inputs, worked out by core alone: for lessons, whose checks ask just that."""

from __future__ import annotations

from collections.abc import Mapping

from core.base.outcome import Outcome, Report
from core.doctor.check import check_script
from core.inputs import cell_page, gradient_page, sequence_page
from core.inputs.cell_inputs import CellInputs
from core.inputs.gradient_inputs import GradientInputs
from core.inputs.scan_check import evaluate
from core.inputs.sequence_inputs import SequenceInputs
from core.lessons.checks import PageFacts
from core.lessons.lesson import Setting
from core.lessons.pages import PAGES


def report_of(page: str, values: Mapping[str, object]) -> Report | None:
    match page:
        case "scan":
            return evaluate(values).report
        case "lstm":
            return cell_page.look_at(CellInputs.of(values)).report
        case "sequence":
            return sequence_page.look_at(SequenceInputs.of(values).run).report
        case "gradients":
            look = gradient_page.look_at(GradientInputs.of_values(values))
            return Report(Outcome.OK) if look.cells is not None else look.report
        case "doctor":
            text = str(values["text"])
            return check_script(text, fixes=False).report if text.strip() else None
    raise KeyError(page)


def facts_of(setting: Setting, before: PageFacts | None = None) -> PageFacts:
    """The facts of a page that was opened like this; `before`: what it said until then."""
    values = PAGES[setting.page].read(setting.params).values
    seen = before.seen if before is not None and before.page == setting.page else frozenset()
    return PageFacts.of_report(setting.page, values, report_of(setting.page, values), seen)
