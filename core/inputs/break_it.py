"""The "Break it" row: each button sets the page up so that one real mistake happens, in one click."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.base.violation import FieldEdit
from core.inputs.fields import Value
from core.inputs.scan_fields import follow, opening


@dataclass(frozen=True, slots=True)
class BreakIt:
    """One mistake: its id, the words on the button, what it does, and the inputs that make it."""

    id: str
    label: str
    help: str
    values: Mapping[str, Value]


BREAK_IT = (
    BreakIt("grow", "let the carry grow", "The step appends x to the carry instead of adding it.", {"step": "grows"}),
    BreakIt(
        "int_init",
        "int init",
        "init is a whole number of type int32, and the step adds floats to it.",
        {"step": "running_sum", "init": "0", "init_dtype": "int32", "init_weak": False},
    ),
    BreakIt(
        "rows",
        "a list of rows",
        "xs is a Python list of the steps instead of one array: JAX scans its columns.",
        {"step": "distance", "as_list": True, "axes": "time"},
    ),
    BreakIt(
        "batch_major",
        "batch-major",
        "xs has the examples first: the scan walks over examples instead of time.",
        {
            "step": "running_sum",
            "source": "generate",
            "generator": "ramp",
            "length": 5,
            "batch": 2,
            "features": 3,
            "axes": "batch",
        },
    ),
)


def break_edit(mistake: BreakIt, values: Mapping[str, Value]) -> FieldEdit:
    """The edit from these values: everything as by default, then the mistake. Undoing it brings everything back."""
    broken = follow(opening(str(mistake.values["step"])), mistake.values)
    return FieldEdit({name: value for name, value in broken.items() if values.get(name) != value})
