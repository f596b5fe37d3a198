"""R403: parameters and carry are drawn from one stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flax import nnx

from core.base.violation import Severity
from core.contract.engine import check
from tests.support.capture import capture
from tests.unit.contract.cell_support import CELLS, clean, note, run, trial


class Random(nnx.LSTMCell):
    """A carry that is drawn."""

    def initialize_carry(self, input_shape: Any, rngs: Any = None, carry_init: Any = None) -> Any:
        return super().initialize_carry(input_shape, rngs, nnx.initializers.normal(1.0))


@pytest.mark.parametrize("cell", CELLS)
def test_one_rngs_for_both(cell: type) -> None:
    rngs = nnx.Rngs(0)
    violation = note(trial(cell, rngs=rngs, carry_rngs=rngs), "R403")
    assert "zeros, so only the stream's count moves" in violation.message
    assert violation.severity is Severity.NOTE
    assert violation.silent


def test_the_count_moves_though_the_carry_is_zeros() -> None:
    rngs = nnx.Rngs(0)
    cell = nnx.GRUCell(3, 4, rngs=rngs)
    before = int(rngs.default.count.get_value())
    assert not np.asarray(cell.initialize_carry((2, 3), rngs)).any()
    assert int(rngs.default.count.get_value()) == before + 1


def test_a_random_carry_from_the_same_stream() -> None:
    rngs = nnx.Rngs(0)
    subject = trial(Random, rngs=rngs, carry_rngs=rngs)
    assert "drawn from the stream that drew the parameters" in note(subject, "R403").message


def test_a_random_carry_from_the_same_keys() -> None:
    violation = note(trial(Random, rngs=lambda: nnx.Rngs(3), carry_rngs=lambda: nnx.Rngs(3)), "R403")
    assert (
        violation.message
        == "The carry is drawn from the keys that drew the parameters of Random: two nnx.Rngs of one seed."
    )


def test_the_dependence_is_real() -> None:
    """What the note says: a cell that draws more starts from another carry, when both draw from one stream."""

    def start(cell: type, rngs: nnx.Rngs) -> Any:
        return np.asarray(cell(3, 4, rngs=rngs).initialize_carry((2, 3), rngs, nnx.initializers.normal(1.0))[0])

    together = [start(cell, nnx.Rngs(0)) for cell in (nnx.LSTMCell, nnx.OptimizedLSTMCell)]
    apart = [start(cell, nnx.Rngs(params=0, carry=1)) for cell in (nnx.LSTMCell, nnx.OptimizedLSTMCell)]
    assert np.abs(together[0] - together[1]).max() > 0.1
    np.testing.assert_array_equal(apart[0], apart[1])


# --- near misses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", [*CELLS, Random])
@pytest.mark.parametrize(
    "streams",
    [{"params": 0, "carry": 1}, {"default": 0, "carry": 1}, {"default": 0, "params": 1}],
    ids=["both named", "carry named", "params named"],
)
def test_streams_of_their_own(cell: type, streams: dict[str, int]) -> None:
    rngs = nnx.Rngs(**streams)
    clean(trial(cell, rngs=rngs, carry_rngs=rngs), notes=())


@pytest.mark.parametrize("cell", CELLS)
def test_two_rngs_of_one_seed_and_a_carry_of_zeros(cell: type) -> None:
    clean(trial(cell, rngs=lambda: nnx.Rngs(0), carry_rngs=lambda: nnx.Rngs(0)), notes=())


def test_two_seeds_and_a_random_carry() -> None:
    clean(trial(Random, rngs=lambda: nnx.Rngs(0), carry_rngs=lambda: nnx.Rngs(1)), notes=())


def test_a_stream_that_is_named_in_the_call() -> None:
    rngs = nnx.Rngs(0)
    clean(trial(rngs=rngs, carry_rngs=rngs.carry), notes=())


def test_an_rngs_of_another_cell() -> None:
    rngs = nnx.Rngs(0)
    nnx.LSTMCell(3, 4, rngs=rngs)
    clean(trial(rngs=lambda: nnx.Rngs(5), carry_rngs=rngs), notes=())


# --- a script -------------------------------------------------------------------------------------------------------


def test_in_a_script() -> None:
    captured = capture(
        "from flax import nnx\n"
        "streams = nnx.Rngs(0)\n"
        "cell = nnx.LSTMCell(3, 4, rngs=streams)\n"
        "a = cell.initialize_carry((2, 3), streams)\n"
        "b = [cell.initialize_carry((2, 3), streams) for _ in range(3)]\n"
    )
    found = captured.violations()
    assert [(v.code, v.place.line, v.because.place.line) for v in found] == [("R403", 4, 3), ("R403", 5, 3)]
    assert captured.source.lines[3][found[0].place.col : found[0].place.end_col] == "streams"


def test_it_breaks_nothing() -> None:
    rngs = nnx.Rngs(0)
    subject = trial(rngs=rngs, carry_rngs=rngs)
    run(subject)
    assert check(subject).broken == ()
