"""What a teacher's link can hide on each page: whole panels by their key, in plain words, and what a control is drawn as."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from core.base.text import fill
from core.inputs.fields import InputField

WHOLE_PANEL = "{name} (whole panel)"
#: A control whose label another one has, too.
WHICH = "{label} ({name})"
#: By page, in the order in which they stand on it. A key is a container's; it stays stable as a widget's does.
PANELS: Final[Mapping[str, Mapping[str, str]]] = {
    "scan": {
        "scan_step_panel": "Step",
        "scan_sequence_panel": "Sequence xs",
        "scan_init_panel": "Init",
        "scan_scan_panel": "Scan: reverse and More",
        "scan_intro": "Break it",
        "scan_flow": "The scan, step by step",
        "scan_plot": "Carry over time",
        "scan_loop": "Against a Python loop",
        "scan_leaves": "Every leaf",
        "scan_result": "Final carry and ys",
        "scan_parting": "Where paths part",
    },
    "lstm": {
        "lstm_cell_panel": "Cell",
        "lstm_carry_panel": "Carry",
        "lstm_input_panel": "Input x",
        "lstm_code_panel": "In code",
        "lstm_break": "Break it",
        "lstm_weights_panel": "Weights",
    },
    "sequence": {
        "sequence_card_cell": "Cell",
        "sequence_card_batch": "Batch x",
        "sequence_card_padding": "Padding",
        "sequence_card_layer": "Layer",
        "sequence_card_initial": "Initial carry",
        "sequence_card_compare": "Compare",
        "sequence_break": "Break it",
        "sequence_plot_card": "Grid and plot",
        "sequence_equations": "Equations",
        "sequence_checks_card": "Checks",
        "sequence_weights_panel": "Weights",
        "sequence_parting": "Where paths part",
    },
    "gradients": {
        "gradients_cell_panel": "Cells",
        "gradients_data_panel": "Data",
        "gradients_turn_panel": "Forget bias and recurrent scale",
        "gradients_tries": "Try it",
        "gradients_scan_panel": "Scan",
        "gradients_break": "Break it",
        "gradients_mode_panel": "Dropout and mode",
        "gradients_update_panel": "Update",
        "gradients_model_panel": "Model",
        "gradients_checks": "Checks",
        "gradients_parting": "Where paths part",
    },
    "doctor": {
        "doctor_toolbar": "Mode, Open and Run",
        "doctor_gallery": "Examples",
        "doctor_cards": "What is wrong, and fixes",
        "doctor_flow": "The scan, step by step",
        "doctor_plot": "Carry over time",
        "doctor_result": "Result",
    },
    "challenges": {
        "challenges_choice": "Set and seed",
        "challenges_progress": "Your progress",
        "challenges_class": "For a class",
        "challenges_class_answers": "How the class answered, all challenges",
        "challenges_hints": "Hints and “Show the answer”",
        "challenges_give_up": "Show the answer",
        "challenges_another": "Another like this",
        "challenges_see": "Open in Doctor, catalogue",
        "challenges_answers": "How the class answered",
    },
    "lessons": {
        "lessons_list": "List of lessons",
        "lessons_steps": "Steps",
        "lessons_documents": "Documentation",
    },
    "catalogue": {"catalogue_search": "Search", "catalogue_doctor": "Open in Doctor"},
}
#: What has another key than its field.
_DRAWN_AS: Final[Mapping[str, tuple[str, ...]]] = {
    "scan_numbers": ("scan_table_panel",),
    "lstm_numbers": ("lstm_table_panel",),
    "doctor_text": ("doctor_code", "doctor_code_plain"),
    "doctor_step": ("doctor_step_code", "doctor_step_code_plain"),
}
#: Fields without a control of their own: buttons set them, or they are kept to come back.
_NO_CONTROL: Final = frozenset(
    {
        *(f"lstm_break_{name}" for name in ("cell", "init", "carry", "input")),
        "lstm_weights",
        "sequence_weights",
        "sequence_slip",
        "sequence_lengths_typed",
        "sequence_mask_typed",
        "catalogue_code",
        "challenges_challenge",
        "lessons_number",
    }
)
#: What can be hidden and locked, beside a page's own, while a lesson is open on it.
LESSON_PANELS: Final[Mapping[str, str]] = {
    "lesson_rail": "The lesson (whole panel)",
    "lesson_set_up": "The lesson: Set it up",
    "lesson_hint": "The lesson: Hint",
}
LESSON_LOCKS: Final[Mapping[str, str]] = {"lesson_rail": "The lesson: stay on this step"}
#: The way out of presentation mode: no link may hide it.
KEPT: Final = "class_"


def drawn_as(key: str) -> tuple[str, ...]:
    """All keys under which a page draws what `key` names: what it shows is drawn under another one while it is stale."""
    return (key, f"{key}_stale", *_DRAWN_AS.get(key, ()))


def controls(page: str, fields: Iterable[InputField]) -> dict[str, str]:
    """The label of each control of a page, by key: what can be locked."""
    found = {f"{page}_{field.name}": field for field in fields if f"{page}_{field.name}" not in _NO_CONTROL}
    often = Counter(field.label for field in found.values())
    return {
        key: field.label if often[field.label] == 1 else fill(WHICH, label=field.label, name=field.name)
        for key, field in found.items()
    }


def hideable(page: str, fields: Iterable[InputField]) -> dict[str, str]:
    """What can be hidden on a page, by key: panels first, then controls."""
    panels = {key: fill(WHOLE_PANEL, name=fill(name)) for key, name in PANELS.get(page, {}).items()}
    return {**panels, **controls(page, fields)}
