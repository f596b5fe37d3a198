"""What the tests of the rules on layers over sequences share: a trial, Flax itself as oracle, violations, verified fixes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import lax

from core.base.outcome import Outcome, Report
from core.base.sequences import Masking, Slip
from core.base.violation import Severity, Violation
from core.contract.engine import check, diagnose
from core.contract.subject import SequenceTrial
from core.runners.cell_formulas import KINDS

LENGTHS, MASK = Masking.LENGTHS, Masking.MASK
#: (B, T, F, H), all different.
SIZES = (3, 5, 2, 4)
RAGGED = (5, 3, 1)
#: Rows with a hole, with steps off at the end, and whole.
HOLES = np.array([[1, 0, 1, 1, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], bool)
PREFIX = np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0], [1, 1, 1, 1, 1]], bool)


def some(*shape: int, seed: int = 0) -> Any:
    """Numbers that differ from each other."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def trial(sizes: tuple[int, int, int, int] = SIZES, axes: str = "BTF", **changes: Any) -> SequenceTrial:
    """A trial that is right, with some arguments changed."""
    batch, steps, features, hidden = sizes
    data = some(batch, steps, features)
    given: dict[str, Any] = {
        "kind": "LSTMCell",
        "inputs": data if axes == "BTF" else np.ascontiguousarray(data.swapaxes(0, 1)),
        "axes": axes,
        "hidden_features": hidden,
        "time_major": axes == "TBF",
    }
    return SequenceTrial(**{**given, **changes})


def slip(*slips: Slip, sizes: tuple[int, int, int, int] = SIZES, **changes: Any) -> SequenceTrial:
    """A trial with mistakes made on purpose."""
    return trial(sizes, slips=frozenset(slips), return_carry=Slip.UNPACKED not in slips, **changes)


# --- Flax itself ------------------------------------------------------------------------------------------------------


def really(it: SequenceTrial) -> Any:
    """(carry, ys) as plain calls of Flax and JAX give them, in the layer's own axes; whatever they raise."""
    features = it.inputs.shape[2]
    seeds = (it.seed, it.seed + 1) if it.bidirectional else (it.seed,)
    cells = [_cell(it.kind, features, it.hidden_features, seed) for seed in seeds]
    starts = _starts(it, len(cells))
    if it.masking is MASK and Slip.SUMMED_MASK not in it.slips:
        return _scans(it, cells, starts)
    lengths = it.lengths if it.masking is LENGTHS else None
    if Slip.SUMMED_MASK in it.slips and it.mask is not None:
        lengths = it.mask.sum(1)
    given = {
        "seq_lengths": None if lengths is None else jnp.asarray(lengths),
        "return_carry": it.return_carry,
        "time_major": it.time_major,
    }
    x = jnp.asarray(it.inputs)
    if it.bidirectional:
        layer = nnx.Bidirectional(*(nnx.RNN(cell, unroll=it.unroll) for cell in cells))
        out = layer(x, initial_carry=None if starts[0] is None else tuple(starts), **given)
    else:
        layer = nnx.RNN(cells[0], unroll=it.unroll)
        out = layer(x, initial_carry=starts[0], reverse=it.reverse, keep_order=it.keep_order, **given)
    if Slip.UNPACKED in it.slips:
        carry, ys = out
        return carry, ys
    return out if it.return_carry else (None, out)


@cache
def _cell(kind: str, features: int, hidden: int, seed: int) -> Any:
    return KINDS[kind].cell(features, hidden, rngs=nnx.Rngs(seed))


def _starts(it: SequenceTrial, ways: int) -> list[Any]:
    if it.previous is not None:
        before = replace(it, inputs=it.previous, previous=None, masking=Masking.NONE, lengths=None, mask=None)
        carry = really(replace(before, slips=frozenset(), return_carry=True))[0]
        return list(carry) if ways == 2 else [carry]
    if it.init is None:
        return [None] * ways
    parts = tuple(jnp.asarray(part) for part in it.init)
    return [parts if KINDS[it.kind].pair else parts[0]] * ways


def _scans(it: SequenceTrial, cells: list[Any], starts: list[Any]) -> Any:
    xs = jnp.asarray(it.inputs if it.time_major else it.inputs.swapaxes(0, 1))
    mask = jnp.asarray(it.mask if it.misread else it.mask.T)  # type: ignore[union-attr]  # asked for with a mask only
    features_last = Slip.FEATURE_MASK in it.slips
    carries, outputs = [], []
    for at, (cell, start) in enumerate(zip(cells, starts, strict=True)):
        first = cell.initialize_carry(xs.shape[1:], nnx.Rngs(0)) if start is None else start

        def step(carry: Any, x: Any, cell: Any = cell) -> Any:
            new, y = cell(carry, x[0])
            keep = x[1] if features_last else x[1][:, None]
            return jax.tree.map(lambda n, o: jnp.where(keep, n, o), new, carry), y

        carry, ys = lax.scan(step, first, (xs, mask), reverse=at == 1 or it.reverse)
        carries.append(carry)
        outputs.append(ys)
    return (tuple(carries), jnp.concatenate(outputs, -1)) if it.bidirectional else (carries[0], outputs[0])


# --- what the check says ----------------------------------------------------------------------------------------------


def only(it: SequenceTrial, code: str) -> Violation:
    """The one violation of a trial."""
    report = check(it)
    assert report.outcome is Outcome.VIOLATIONS, (report.outcome, report.error)
    assert [v.code for v in report.broken] == [code], [(v.code, v.message) for v in report.violations]
    return report.broken[0]


def silent(it: SequenceTrial, code: str, *, proven: bool = True) -> Violation:
    """The one violation of a trial that Flax runs; with a number that proves it, and that is right once it is mended."""
    really(it)
    violation = only(it, code)
    assert violation.severity is Severity.WARNING
    assert violation.silent
    assert violation.jax_said is None
    assert violation.fixes
    if proven:
        assert violation.proof is not None
        assert violation.proof.before != violation.proof.expected
        assert violation.proof.after == violation.proof.expected
    return violation


def raised(it: SequenceTrial, code: str) -> Violation:
    """The one violation of a trial that Flax (or the line after it) raises at."""
    with pytest.raises(Exception):  # which one is Flax's affair
        really(it)
    violation = only(it, code)
    assert violation.severity is Severity.ERROR
    assert not violation.silent
    assert violation.jax_said
    assert violation.fixes
    return violation


def clean(it: SequenceTrial, *notes: str) -> Report:
    """The report of a trial that keeps the contract, with just these notes."""
    report = check(it)
    assert report.outcome is Outcome.OK, [(v.code, v.message) for v in report.violations]
    assert tuple(v.code for v in report.violations) == notes
    return report


def note(it: SequenceTrial, code: str) -> Violation:
    """The one note of a trial that keeps the contract."""
    violation = clean(it, code).violations[0]
    assert violation.severity is Severity.NOTE
    return violation


def mended(it: SequenceTrial, code: str, kind: str) -> SequenceTrial:
    """The trial after the rule's repair of this kind, which must be among its verified fixes."""
    titles = {fix.title for v in check(it).violations if v.code == code for fix in v.fixes}
    repairs = [
        repair
        for found in diagnose(it).found
        if found.rule.code == code
        for repair in found.finding.repairs
        if repair.kind == kind and repair.title in titles
    ]
    assert repairs, f"no verified {kind} among {titles}"
    after = repairs[0].apply(it)
    assert isinstance(after, SequenceTrial)
    return after
