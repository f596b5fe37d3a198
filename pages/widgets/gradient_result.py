"""What the Gradients page shows of a good look: the plots of its view first, then all that stands below them."""

from __future__ import annotations

from functools import partial

from core.base.text import fill
from core.doctor.parting_job import of_scan
from core.inputs.gradient_fields import CELL_NAMES, PAGE
from core.inputs.gradient_inputs import GradientInputs
from core.inputs.gradient_page import GradientLook
from core.inputs.gradient_scan import scan_values
from pages.widgets import gradient_scan as scan
from pages.widgets import gradient_training as training
from pages.widgets.frame import section
from pages.widgets.gradient_cells import checks_panel, curves_panel, downloads, headline, map_panel, row_of
from pages.widgets.parting_panel import parting_of_layer, parting_of_training, parting_panel
from pages.widgets.state import PageState
from pages.widgets.training_state import training_state_panel

PARTING, PARTING_HINT = "Where paths part", "eager, loop, jit and more"
PARTING_CELL = "eager, loop, jit and more, of the {cell} over these data"


def plots(state: PageState, inputs: GradientInputs, good: GradientLook) -> None:
    """What one looks at: sent first."""
    if good.cells is not None:
        s = row_of(inputs, good.cells)
        headline(good.cells, s)
        curves_panel(state, good.cells, s)
        map_panel(state, inputs, good.cells, s)
    elif good.scan is not None:
        scan.scan_head(good.scan)
        scan.bars_panel(good.scan)
    elif good.training is not None:
        training.training_head(good.training)
        training.loss_panel(good.training)


def rest(inputs: GradientInputs, good: GradientLook) -> None:
    """Checks, files, and where ways of computing it part."""
    if good.cells is not None:
        downloads(good.cells, row_of(inputs, good.cells))
        checks_panel(good.cells)
        trial = good.cells.trial_of(inputs.map_cell)
        section(fill(PARTING), hint=fill(PARTING_CELL, cell=CELL_NAMES[inputs.map_cell]))
        parting_of_layer(PAGE, (good.inputs, inputs.map_cell), trial)
    elif good.scan is not None:
        scan.leaves_panel(good.scan)
        scan.scan_check_panel(good.scan)
        section(fill(PARTING), hint=fill(PARTING_HINT))
        parting_panel(PAGE, good.inputs, partial(of_scan, scan_values(good.inputs)))
    elif good.training is not None:
        training.norms_panel(good.training)
        training.proof_panel(good.training)
        training_state_panel(good.training, good.inputs.updates)
        section(fill(PARTING), hint=fill(PARTING_HINT))
        parting_of_training(PAGE, good.inputs, good.training.spec)
