"""What the tests of the cell rules share: a trial, Flax itself as oracle, a rule's violation, a verified fix."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import lax

from core.base.outcome import Outcome, Report
from core.base.violation import Severity, Violation
from core.contract.engine import check, diagnose
from core.contract.subject import MISSING, CellTrial, ScanCall, Subject

PAIR_CELLS = [nnx.LSTMCell, nnx.OptimizedLSTMCell]
ONE_CELLS = [nnx.GRUCell, nnx.SimpleCell]
CELLS = [*PAIR_CELLS, *ONE_CELLS]
#: (F, H, B): names and sizes differ, so that no two axes are taken for each other.
SIZES = [(3, 4, 2), (5, 2, 7), (1, 6, 3)]


def some(*shape: int, seed: int = 0, dtype: Any = jnp.float32) -> jax.Array:
    """Numbers that differ from each other."""
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), dtype)


def pair(*shape: int, dtype: Any = jnp.float32) -> tuple[jax.Array, jax.Array]:
    """c and h that differ."""
    return some(*shape, seed=1, dtype=dtype), some(*shape, seed=2, dtype=dtype)


def trial(cell: type = nnx.LSTMCell, sizes: tuple[int, int, int] = (3, 4, 2), **changes: Any) -> CellTrial:
    """A trial that is right, with some arguments changed."""
    features, hidden, batch = sizes
    given: dict[str, Any] = {
        "cell": cell,
        "in_features": features,
        "hidden_features": hidden,
        "rngs": lambda: nnx.Rngs(0),
        "input_shape": (batch, features),
        "carry_rngs": lambda: nnx.Rngs(1),
        "inputs": some(batch, features),
    }
    return CellTrial(**{**given, **changes})


def really(subject: CellTrial) -> Any:
    """(new carry, h) as Flax gives them, by plain calls; whatever it raises."""
    cell = subject.cell(subject.in_features, subject.hidden_features, **_given(subject.rngs))
    if subject.edit_cell is not None:
        cell = subject.edit_cell(cell)
    carry = subject.carry
    if carry is MISSING or callable(carry):
        first = cell.initialize_carry(subject.input_shape, **_given(subject.carry_rngs))
        carry = first if carry is MISSING else carry(first)
    return cell(carry, subject.inputs)


def _given(rngs: Any) -> dict[str, Any]:
    if rngs is MISSING:
        return {}
    return {"rngs": rngs() if type(rngs) is type(lambda: 0) else rngs}


def scanned(call: ScanCall) -> Any:
    """What the real `lax.scan` returns."""
    return lax.scan(call.body, call.init, call.xs, call.length, call.reverse, call.unroll)


def run(subject: Subject) -> Any:
    """The subject, run by JAX and Flax alone."""
    assert isinstance(subject, CellTrial | ScanCall)
    return really(subject) if isinstance(subject, CellTrial) else scanned(subject)


def raised(subject: Subject, code: str) -> Violation:
    """The one violation of a subject that raises: nothing else is broken."""
    with pytest.raises(Exception):  # which one is Flax's affair
        run(subject)
    violation = _only(subject, code)
    assert violation.severity is Severity.ERROR
    assert not violation.silent
    assert violation.jax_said
    return violation


def silent(subject: Subject, code: str) -> Violation:
    """The one violation of a subject that runs: with a number that proves it, and is what it must be once mended."""
    run(subject)
    violation = _only(subject, code)
    assert violation.severity is Severity.WARNING
    assert violation.silent
    assert violation.jax_said is None
    proof = violation.proof
    assert proof is not None
    assert proof.before != proof.expected
    if violation.fixes:
        assert proof.after == proof.expected
    return violation


def _only(subject: Subject, code: str) -> Violation:
    report = check(subject)
    assert report.outcome is Outcome.VIOLATIONS
    assert [v.code for v in report.broken] == [code], [(v.code, v.message) for v in report.violations]
    return report.broken[0]


def note(subject: Subject, code: str) -> Violation:
    """The note of a subject that runs and keeps the contract."""
    found = [v for v in clean(subject).violations if v.code == code]
    assert [v.severity for v in found] == [Severity.NOTE]
    return found[0]


def clean(subject: Subject, *, notes: tuple[str, ...] | None = None) -> Report:
    """The report of a subject that runs and keeps the contract; `notes` are the codes of the L and R notes allowed."""
    run(subject)
    report = check(subject)
    assert report.outcome is Outcome.OK, [(v.code, v.message) for v in report.violations]
    if notes is not None:
        assert tuple(v.code for v in report.violations if v.code[0] in "LR") == notes
    return report


def mended(subject: Subject, code: str, kind: str, value: Any = MISSING) -> Any:
    """The subject after the rule's repair of this kind, which must be among its verified fixes."""
    titles = {fix.title for v in check(subject).violations if v.code == code for fix in v.fixes}
    repairs = [
        repair
        for found in diagnose(subject).found
        if found.rule.code == code
        for repair in found.finding.repairs
        if repair.kind == kind and repair.title in titles and (value is MISSING or repair.value == value)
    ]
    assert repairs, f"no verified {kind} among {titles}"
    return repairs[0].apply(subject)


def step_of(cell: Any) -> Any:
    """A scan's step that is the cell and nothing else."""
    return lambda carry, x: cell(carry, x)


def built(cell: type = nnx.LSTMCell, features: int = 3, hidden: int = 4, **kwargs: Any) -> Any:
    """A cell."""
    return cell(features, hidden, rngs=nnx.Rngs(0), **kwargs)
