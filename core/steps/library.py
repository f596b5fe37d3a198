"""All presets, by id."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from core.steps import accumulate, dynamics, faulty, memory, rows, slopes
from core.steps.step import Step

#: The right steps in the order of the list; the first is the opening one.
PRESETS: tuple[Step, ...] = (*accumulate.STEPS, *rows.STEPS, *memory.STEPS, *dynamics.STEPS, *slopes.STEPS)
#: Steps that are right as scans, and whose gradient is not finite: each has a guarded twin among the right ones.
UNGUARDED: tuple[Step, ...] = slopes.UNGUARDED
#: Steps that break a rule on purpose.
FAULTY: tuple[Step, ...] = faulty.STEPS

STEPS: Mapping[str, Step] = MappingProxyType({step.id: step for step in (*PRESETS, *UNGUARDED, *FAULTY)})
DEFAULT: Step = PRESETS[0]


def find_step(name: str) -> Step | None:
    """The preset of that id, right or faulty."""
    return STEPS.get(name)


def right_of(step: Step) -> Step:
    """The right one of a faulty or unguarded step; a right step itself."""
    return STEPS[step.right] if step.right else step
