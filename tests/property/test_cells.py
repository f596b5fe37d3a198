"""The verdict on a cell against Flax itself and a NumPy oracle that computes every example on its own.

An error exactly where the direct call raises; a warning exactly where it runs and the result is not the oracle's, or
where shapes or dtypes prove that numbers are shared or the carry changes its type; a note or nothing otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from hypothesis import event, given
from hypothesis import strategies as st

from core.base.outcome import Outcome
from core.base.violation import Severity
from core.contract.engine import check
from core.contract.subject import CellTrial, ScanCall

PAIR = (nnx.LSTMCell, nnx.OptimizedLSTMCell)
CELLS = (*PAIR, nnx.GRUCell, nnx.SimpleCell)
DTYPES = ("float32", "bfloat16", "float16", "int32")
#: How the carry is given. The first are right.
FORMS = (
    "right", "list", "initialised", "zeros swapped", "drawn swapped", "one array", "stack", "three", "dict", "none",
    "no batch", "batch of one", "other batch", "c of width one", "c a number", "other width", "extra axis",
    "only h batched", "input of batch one", "unbatched", "other input width",
)  # fmt: skip
PAIR_ONLY = {"list", "zeros swapped", "drawn swapped", "one array", "stack", "three", "dict", "none", "c of width one"}
PAIR_ONLY |= {"c a number", "only h batched"}


@dataclass(frozen=True)
class Case:
    cell: type
    form: str
    sizes: tuple[int, int, int]
    dtype: str
    seed: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    cell = draw(st.sampled_from(CELLS))
    form = draw(st.sampled_from([f for f in FORMS if cell in PAIR or f not in PAIR_ONLY]))
    # Few sizes: each new shape is compiled anew. One of them has a batch of 2, one a batch as wide as everything.
    sizes = draw(st.sampled_from([(3, 4, 2), (2, 3, 5), (3, 3, 3), (4, 2, 1), (3, 1, 2), (2, 2, 2)]))
    dtype = draw(st.sampled_from(DTYPES)) if form == "right" else "float32"
    return Case(cell, form, sizes, dtype, draw(st.integers(0, 5)))


def numbers(case: Case, which: int, *shape: int) -> Any:
    """Numbers that differ, by seed."""
    values = np.random.default_rng((case.seed, which)).normal(size=shape) * 2
    return jnp.asarray(values, case.dtype if which < 2 else "float32")


class Drawn:
    """A cell of the case with a carry that is drawn."""

    @staticmethod
    def of(cell: type) -> type:
        def initialize_carry(self: Any, input_shape: Any, rngs: Any = None, carry_init: Any = None) -> Any:
            base: Any = cell
            return base.initialize_carry(self, input_shape, rngs, nnx.initializers.normal(1.0))

        return type("Drawn", (cell,), {"initialize_carry": initialize_carry})


def trial(case: Case) -> CellTrial:
    """The trial with its carry given in this form."""
    features, hidden, batch = case.sizes
    other = batch + 3
    # An LSTM gets (c, h), another cell h alone.
    lead = {"no batch": (), "batch of one": (1,), "other batch": (other,), "extra axis": (4, batch), "unbatched": ()}
    shape = (*lead.get(case.form, (batch,)), hidden + 2 if case.form == "other width" else hidden)
    c, h = numbers(case, 0, *shape), numbers(case, 1, *shape)
    swapped = lambda carry: (carry[1], carry[0])  # noqa: E731
    carry: Any = {
        "list": [c, h],
        "initialised": None,
        "zeros swapped": swapped,
        "drawn swapped": swapped,
        "one array": h,
        "stack": jnp.stack([c, h]),
        "three": (c, h, h),
        "dict": {"c": c, "h": h},
        "c of width one": (c[..., :1], h),
        "c a number": (0.25, h),
        "only h batched": (c[0], h),
    }.get(case.form, (c, h) if case.cell in PAIR else h)
    inputs = {
        "input of batch one": (1, features),
        "unbatched": (features,),
        "other input width": (batch, features + 1),
    }.get(case.form, (batch, features))
    given_carry = {} if case.form == "initialised" else {"carry": None if case.form == "none" else carry}
    return CellTrial(
        cell=Drawn.of(case.cell) if case.form == "drawn swapped" else case.cell,
        in_features=features,
        hidden_features=hidden,
        rngs=lambda: nnx.Rngs(case.seed),
        input_shape=(batch, features),
        carry_rngs=lambda: nnx.Rngs(case.seed + 1),
        inputs=numbers(case, 2, *inputs),
        **given_carry,
    )


def step(subject: CellTrial) -> tuple[Any, Any, Any]:
    """(cell, carry given, (new carry, h)) by Flax alone; whatever it raises."""
    cell = subject.cell(subject.in_features, subject.hidden_features, rngs=subject.rngs())
    first = cell.initialize_carry(subject.input_shape, rngs=subject.carry_rngs())
    missing = type(subject.carry).__name__ == "_Missing"
    carry = first if missing else subject.carry(first) if callable(subject.carry) else subject.carry
    return cell, carry, cell(carry, subject.inputs)


# --- the oracle -----------------------------------------------------------------------------------------------------


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def one_example(cell: Any, c: np.ndarray, h: np.ndarray, x: np.ndarray) -> np.ndarray:
    """h of one example after one step, from the equations, in float64."""
    read = lambda v: np.asarray(v.get_value(), np.float64)  # noqa: E731
    if isinstance(cell, nnx.SimpleCell):
        return np.tanh(x @ read(cell.dense_i.kernel) + read(cell.dense_i.bias) + h @ read(cell.dense_h.kernel))
    if isinstance(cell, nnx.GRUCell):
        xr, xz, xn = np.split(x @ read(cell.dense_i.kernel) + read(cell.dense_i.bias), 3)
        hr, hz, hn = np.split(h @ read(cell.dense_h.kernel), 3)
        z = sigmoid(xz + hz)
        return (1 - z) * np.tanh(xn + sigmoid(xr + hr) * hn) + z * h
    if isinstance(cell, nnx.OptimizedLSTMCell):
        gates = np.split(x @ read(cell.dense_i.kernel) + h @ read(cell.dense_h.kernel) + read(cell.dense_h.bias), 4)
    else:
        layers = [(getattr(cell, f"i{g if g != 'f' else 'f_'}"), getattr(cell, f"h{g}")) for g in "ifgo"]
        gates = [x @ read(a.kernel) + h @ read(b.kernel) + read(b.bias) for a, b in layers]
    i, f, g, o = gates
    return sigmoid(o) * np.tanh(sigmoid(f) * c + sigmoid(i) * np.tanh(g))


def meant(case: Case, cell: Any, subject: CellTrial) -> np.ndarray | None:
    """What was meant, example by example: row i of the carry with row i of the input; None where no rows are given."""
    _, hidden, batch = case.sizes
    zeros = np.zeros((batch, hidden))
    carry: Any = subject.carry
    if case.form in ("initialised", "zeros swapped"):
        c, h = zeros, zeros
    elif case.form == "drawn swapped":
        c, h = cell.initialize_carry(subject.input_shape, rngs=subject.carry_rngs())
    elif case.form == "one array":
        c, h = zeros, carry
    elif case.form in ("right", "list", "stack", "unbatched"):
        c, h = carry if case.cell in PAIR else (carry, carry)
    else:
        return None
    c, h, x = (np.asarray(jnp.asarray(v, "float32"), np.float64) for v in (c, h, subject.inputs))
    if case.form == "unbatched":
        return one_example(cell, c, h, x)
    return np.stack([one_example(cell, c[i], h[i], x[i]) for i in range(batch)])


def shared_or_retyped(case: Case, carry: Any, subject: CellTrial, new: Any) -> bool:
    """Whether shapes or dtypes alone prove it: fewer numbers than examples have units, or another dtype back."""
    parts = jax.tree.leaves(carry)
    hidden, x = subject.hidden_features, jnp.shape(subject.inputs)
    rows = np.size(new) // hidden if jnp.shape(new)[-1] == hidden else -1
    if case.form in ("stack", "one array"):
        return False
    return (
        any(np.size(part) != rows * hidden for part in parts)
        or int(np.prod(x[:-1])) != rows
        or any(jnp.asarray(part).dtype != new.dtype for part in parts)
    )


# --- properties -----------------------------------------------------------------------------------------------------


@given(cases())
def test_the_verdict_is_what_flax_and_the_oracle_say(case: Case) -> None:
    subject = trial(case)
    report = check(subject)
    codes = [(v.code, v.severity.value, v.message) for v in report.violations]
    try:
        cell, carry, (_, out) = step(subject)
    except Exception:
        event("raises")
        assert report.outcome is Outcome.VIOLATIONS, codes
        assert any(
            v.severity is Severity.ERROR and v.code.startswith("L") and not v.silent for v in report.violations
        ), codes
        assert all(v.proof is None for v in report.violations if v.severity is Severity.ERROR)
        return
    assert not any(v.severity is Severity.ERROR for v in report.violations), codes
    right = meant(case, cell, subject)
    differs = right is not None and not np.allclose(np.asarray(out, np.float64), right, rtol=1e-5, atol=1e-6)
    wrong = differs or shared_or_retyped(case, carry, subject, out)
    warnings = [v for v in report.violations if v.severity is Severity.WARNING]
    event("silent and wrong" if wrong else "right")
    assert bool(warnings) is wrong, (case, codes)
    assert len(warnings) <= 1, codes
    for violation in warnings:
        assert violation.silent
        assert violation.proof is not None
        assert violation.proof.before != violation.proof.expected
        assert violation.fixes
        assert violation.proof.after == violation.proof.expected


@given(cases())
def test_the_verdict_on_a_scan_is_what_lax_scan_does(case: Case) -> None:
    subject = trial(case)
    cell = subject.cell(subject.in_features, subject.hidden_features, rngs=subject.rngs())
    first = cell.initialize_carry(subject.input_shape, rngs=subject.carry_rngs())
    missing = type(subject.carry).__name__ == "_Missing"
    init = first if missing else subject.carry(first) if callable(subject.carry) else subject.carry
    call = ScanCall(lambda carry, x: cell(carry, x), init, jnp.stack([subject.inputs] * 3))
    report = check(call)
    codes = [(v.code, v.severity.value, v.message) for v in report.violations]
    try:
        jax.lax.scan(call.step, call.init, call.xs)
    except Exception:
        event("raises")
        errors = [v for v in report.violations if v.severity is Severity.ERROR]
        assert errors, codes
        # One root cause, one message: where the carry is a cell's, the rule about the cell speaks, and it alone.
        assert {v.code[0] for v in errors} == {"L"}, codes
        return
    event("runs")
    assert not any(v.severity is Severity.ERROR for v in report.violations), codes
    batches = {np.shape(part)[:-1] for part in jax.tree.leaves(init)} | {np.shape(subject.inputs)[:-1]}
    expected = {"L303"} if len(batches) > 1 and len({int(np.prod(b)) for b in batches}) > 1 else set()
    assert {v.code for v in report.violations if v.severity is Severity.WARNING} == expected, codes
