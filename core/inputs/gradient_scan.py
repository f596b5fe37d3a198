"""The gradient of a scan of the Scan page: with respect to init and xs, and N502 where it is not finite behind a value."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from core.base.outcome import Report
from core.base.places import Field, Places
from core.base.scan_gradients import ScanGradient, Target
from core.base.text import fill
from core.base.violation import FieldEdit
from core.contract.engine import Attempt, examine
from core.contract.rule import Repair
from core.contract.subject import ScanCall
from core.inputs.fields import Value
from core.inputs.gradient_fields import FIELDS, FINAL
from core.inputs.gradient_inputs import GradientInputs, Problem
from core.inputs.preset import step_of, takes_numbers
from core.inputs.scan_fields import follow, opening
from core.inputs.scan_inputs import build, from_values
from core.runners.scan_gradients import NoGradientError, scan_gradient
from core.steps.library import STEPS
from core.steps.step import Step

DOES_NOT_RUN: Final = "The step does not take these numbers: JAX raises {type}."
#: The mark of a line that goes.
MINUS: Final = "−"
#: The field of this page that each role of a call stands at.
_ROLES: Final = {"step": "preset", "scan": "preset", "init": "preset", "xs": "xs"}
#: Notes that are about numbers that are not finite.
_ABOUT: Final = frozenset({"N501", "N502", "N505"})


@dataclass(frozen=True, slots=True, eq=False)
class ScanView:
    """A scan whose gradient was taken.

    Attributes:
        step: the preset.
        call: the call that was differentiated.
        gradient: of the sum of the final carry or of ys.
    """

    step: Step
    call: ScanCall
    gradient: ScanGradient


@dataclass(frozen=True, slots=True, eq=False)
class ScanReading:
    """What became of the inputs: a gradient with the contract's verdict, or what is wrong with them."""

    view: ScanView | None = None
    report: Report | None = None
    problems: tuple[Problem, ...] = ()


class ScanGradientBench:
    """Carries repairs out on this page's inputs: the one they can say is to take the guarded twin of a step."""

    def __init__(self, inputs: GradientInputs) -> None:
        self._inputs = inputs

    def attempt(self, repairs: tuple[Repair, ...]) -> Attempt | None:
        """The call of the edited inputs; None when a repair has no input here."""
        step = step_of(self._inputs.preset)
        if not step.right or any(repair.kind != "step" for repair in repairs):
            return None
        edit: dict[str, Value] = {"preset": step.right}
        call, _ = call_of(replace(self._inputs, preset=step.right))
        return None if call is None else Attempt(call, FieldEdit(edit))


def target_of(inputs: GradientInputs) -> Target:
    """What is summed and differentiated."""
    return Target.FINAL if inputs.target == FINAL else Target.YS


def scan_values(inputs: GradientInputs) -> Mapping[str, Value]:
    """The Scan page's inputs that these mean: the step as it opens, with the numbers that were typed here."""
    values = opening(inputs.preset)
    if inputs.xs.strip() and takes_numbers(step_of(inputs.preset)):
        return follow(values, {"source": "paste", "numbers": inputs.xs})
    return values


def call_of(inputs: GradientInputs) -> tuple[ScanCall | None, tuple[Problem, ...]]:
    """The call that these inputs mean, places on this page; or why they mean none."""
    built = build(from_values(scan_values(inputs)))
    if built.call is None:
        return None, tuple(Problem("xs", text) for _, text in built.problems)
    places = {role: Field(FIELDS.key(name), FIELDS.field(name).label) for role, name in _ROLES.items()}
    return replace(built.call, gradient=target_of(inputs), places=Places(places)), ()


def read_scan(inputs: GradientInputs) -> ScanReading:
    """Check and differentiate. Never raises for anything that stands in the inputs."""
    call, problems = call_of(inputs)
    if call is None:
        return ScanReading(problems=problems)
    report, _ = examine(call, ScanGradientBench(inputs))
    # What is worth a note on the Scan page (what ys hold, say) is about no gradient.
    report = replace(report, violations=tuple(v for v in report.violations if v.severity.breaks or v.code in _ABOUT))
    try:
        gradient = scan_gradient(call, target_of(inputs))
    except NoGradientError as error:
        return ScanReading(problems=(Problem("target", str(error)),))
    except Exception as error:  # noqa: BLE001  # numbers of a shape that the step does not take: JAX says so
        return ScanReading(problems=(Problem("xs", fill(DOES_NOT_RUN, type=type(error).__name__)),))
    return ScanReading(ScanView(step_of(inputs.preset), call, gradient), report)


def code_changes(edit: FieldEdit, before: str) -> tuple[tuple[str, str], ...]:
    """The lines of a step's code that an edit of the preset changes: ``("−", line)`` goes, ``("+", line)`` comes."""
    name = str(edit.values.get("preset", ""))
    if name not in STEPS or before not in STEPS:
        return ()
    old, new = STEPS[before].code.splitlines(), STEPS[name].code.splitlines()
    out: list[tuple[str, str]] = []
    for what, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what == "equal":
            out += [(" ", line) for line in old[i:j]]
        else:
            out += [(MINUS, line) for line in old[i:j]] + [("+", line) for line in new[k:m]]
    return tuple(out)
