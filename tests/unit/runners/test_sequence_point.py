"""One point: the numbers of the step that made it recompute to what is shown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.base.sequences import Masking
from core.runners.cell_formulas import KINDS
from core.runners.sequence import run_sequence
from core.runners.sequence_point import point
from tests.unit.runners.sequence_trials import CLOSE, B, H, T, trial

MASK = np.array([[1, 0, 1, 1, 0], [1, 1, 1, 1, 1], [0, 0, 1, 0, 0]], bool)


def curve(name, z):
    return np.tanh(z) if name == "tanh" else 1 / (1 + np.exp(-z.astype(np.float64)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "way",
    [
        {},
        {"reverse": True, "masking": Masking.LENGTHS, "lengths": (5, 2, 1)},
        {"bidirectional": True},
        {"masking": Masking.MASK, "mask": MASK},
        {"weights": {"forget_bias": 1.0, "recurrent_scale": 1.5}},
        {"axes": "BTF", "time_major": True},
    ],
    ids=repr,
)
def test_every_point_recomputes(kind, way):
    given = trial(kind, **way)
    result = run_sequence(given)
    for side, direction in enumerate(result.directions):
        length, batch = direction.order.shape
        for position in range(1, length + 1):
            for example in range(batch):
                made = point(given, result, example, position, side)
                assert made.shown.within
                assert made.t == direction.order[position - 1, example]
                assert made.kept.all() == (way.get("masking") != Masking.MASK or MASK[example, made.t])
                for gate in made.gates:
                    shown = direction.gates[gate.name][position - 1, example]
                    np.testing.assert_allclose(curve(gate.curve, gate.pre)[0], shown, **CLOSE)
                    if gate.name != "n":
                        np.testing.assert_allclose(gate.from_x + gate.from_h + gate.bias, gate.pre, **CLOSE)
                if made.kept.all():
                    for part, carries in zip(made.after, direction.carries, strict=True):
                        np.testing.assert_allclose(part[0], carries[position, example], **CLOSE)


def test_the_share_of_h_in_a_gru_counts_as_much_as_r_lets_it():
    given = trial("GRUCell", init=(np.ones((B, H), np.float32),))
    gates = {gate.name: gate for gate in point(given, run_sequence(given), 0, 1).gates}
    n = gates["n"]
    np.testing.assert_allclose(n.from_x + gates["r"].value * n.from_h + n.bias, n.pre, **CLOSE)


def test_a_shown_value_that_is_wrong_is_told():
    given = trial()
    result = run_sequence(given)
    direction = result.forward
    gates = {**direction.gates, "o": direction.gates["o"] + np.float32(1e-3)}
    wrong = replace(result, forward=replace(direction, gates=gates))
    shown = point(given, wrong, 1, 3).shown
    assert not shown.within
    assert shown.largest == pytest.approx(1e-3, rel=1e-2)


def test_an_output_that_is_not_a_number_is_explained_too():
    given = trial("GRUCell")
    inputs = given.inputs.copy()
    inputs[1, 2, 0] = np.nan
    given = replace(given, inputs=inputs)
    made = point(given, run_sequence(given), 1, 3)
    assert made.shown.within
    assert np.isnan(made.output).all()


@pytest.mark.parametrize(("example", "position", "side"), [(0, 0, 0), (0, T + 1, 0), (B, 1, 0), (0, 1, 1), (0, -1, 0)])
def test_there_is_no_such_point(example, position, side):
    given = trial("GRUCell")
    with pytest.raises(IndexError):
        point(given, run_sequence(given), example, position, side)
