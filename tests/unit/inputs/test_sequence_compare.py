"""Two runs beside each other, and the history of one as files that read back."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest

from core.inputs.sequence_compare import compared, difference_rows, other_inputs
from core.inputs.sequence_inputs import SequenceInputs
from core.inputs.sequence_page import check_slowly, look_at
from core.inputs.sequence_rows import carry_csv, header, history_npz

OPENING = SequenceInputs()


def beside(**values):
    inputs = replace(OPENING, **values)
    look = look_at(inputs)
    return look, compared(inputs, look.result)


# --- two runs ---------------------------------------------------------------------------------------------------------


def test_nothing_is_compared_unless_asked_for():
    look, comparison = beside()
    assert comparison is None
    assert other_inputs(look.inputs) is None


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"compare": "seed", "compare_seed": 7}, "seed 7"),
        ({"compare": "hidden", "compare_hidden": 6}, "H = 6"),
        ({"compare": "cell", "compare_cell": "GRUCell"}, "GRUCell"),
    ],
)
def test_the_second_run_is_the_first_one_with_one_input_changed(values, name):
    _, comparison = beside(**values)
    assert comparison.name == name
    other = look_at(comparison.inputs)
    assert np.array_equal(comparison.result.outputs, other.result.outputs)
    assert comparison.numpy.within
    assert not comparison.problems


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_the_largest_difference_is_where_the_table_says(direction):
    look, comparison = beside(compare="seed", compare_seed=1, direction=direction)
    names = [row.leaf for row in comparison.rows]
    own = ["c", "h", "final c", "final h", "gate i", "gate f", "gate g", "gate o"]
    both = [f"{way} {leaf}" for way in ("forward", "backward") for leaf in own]
    assert names == (own if direction == "forward" else both)
    for way, first, second in zip(
        ("forward", "backward"), look.result.directions, comparison.result.directions, strict=False
    ):
        rows = {row.leaf.removeprefix(f"{way} "): row for row in comparison.rows if len(names) == 8 or way in row.leaf}
        apart = np.abs(first.carries[1].astype(float) - second.carries[1])
        apart[1:][~first.valid] = 0
        row = rows["h"]
        assert row.largest == pytest.approx(apart.max())
        assert row.largest == pytest.approx(abs(row.values[0] - row.values[1]))
        place = (row.position, row.example, row.unit)
        assert (first.carries[1][place], second.carries[1][place]) == row.values
        assert row.t == first.order[row.position - 1, row.example]
        assert first.valid[row.position - 1, row.example], "what is computed in padding does not count"
        gate = rows["gate f"]
        assert first.gates["f"][gate.position, gate.example, gate.unit] == gate.values[0]
        assert rows["final c"].position is None


def test_the_same_run_differs_in_nothing():
    _, comparison = beside(compare="seed", compare_seed=0)
    assert all(row.largest == 0 for row in comparison.rows)


def test_other_sizes_are_compared_by_their_norms():
    look, comparison = beside(compare="hidden", compare_hidden=6)
    row = next(row for row in comparison.rows if row.leaf == "final h")
    norms = [np.linalg.norm(r.forward.final[1], axis=-1) for r in (look.result, comparison.result)]
    assert row.largest == pytest.approx(np.abs(norms[0] - norms[1]).max())
    assert row.unit is None
    assert row.shapes == ((3, 4), (3, 6))
    assert "4 and 6 units" in row.note


def test_another_cell_has_other_leaves():
    _, comparison = beside(compare="cell", compare_cell="GRUCell")
    rows = {row.leaf: row for row in comparison.rows}
    assert list(rows) == ["c", "h", "final h", "gates"]
    assert rows["c"].largest is None
    assert rows["c"].note == "GRUCell has no c"
    assert rows["h"].largest > 0
    assert rows["gates"].note == "LSTMCell has i, f, g, o; GRUCell has r, z, n"


def test_the_same_equations_in_another_cell_have_the_same_gates():
    _, comparison = beside(compare="cell", compare_cell="OptimizedLSTMCell")
    assert [row.leaf for row in comparison.rows][-4:] == ["gate i", "gate f", "gate g", "gate o"]


def test_a_value_that_is_not_finite_in_one_of_them_is_infinitely_far():
    look, comparison = beside(compare="seed")
    worse = comparison.result
    worse.forward.carries[0][2, 1, 3] = np.nan
    row = next(difference_rows(look.result, worse))
    assert (row.largest, row.position, row.example, row.unit) == (np.inf, 2, 1, 3)
    look.result.forward.carries[0][2, 1, 3] = np.nan
    assert np.isfinite(next(difference_rows(look.result, worse)).largest)


@pytest.mark.parametrize(
    ("values", "field", "said"),
    [
        ({"compare": "hidden", "compare_hidden": 0}, "compare_hidden", "0 is no size"),
        ({"compare": "hidden", "compare_hidden": 257}, "compare_hidden", "over the limit of 256"),
        ({"compare": "hidden", "compare_hidden": 10**12}, "compare_hidden", "over the limit of 256"),
        ({"compare": "hidden", "compare_hidden": 5, "masking": "mask", "slip": "feature_mask", "hidden_features": 3}, "compare_hidden", "raises"),
        ({"compare": "hidden", "compare_hidden": 5, "init": "typed", "init_c": "zeros(3, 4)", "init_h": "zeros(3, 4)"}, "compare_hidden", "(3, 5)"),
        ({"compare": "cell", "compare_cell": "LSTMCell", "cell": "GRUCell", "init": "typed", "init_h": "zeros(3, 4)"}, "compare_cell", "numbers"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_second_run_is_said_at_its_own_input(values, field, said):
    look, comparison = beside(**values)
    assert look.result is not None
    assert comparison.result is None
    assert not comparison.rows
    assert {problem.field for problem in comparison.problems} == {field}
    assert said in comparison.problems[0].text


def test_without_a_first_run_the_second_stands_alone():
    inputs = replace(OPENING, hidden_features=999, compare="hidden", compare_hidden=4)
    assert look_at(inputs).result is None
    comparison = compared(inputs, None)
    assert comparison.result is not None
    assert comparison.rows == ()


@pytest.mark.parametrize("length", [0, 1])
def test_short_sequences_are_compared_too(length):
    _, comparison = beside(length=length, lengths="", compare="seed")
    assert {row.leaf for row in comparison.rows} >= {"c", "final h", "gate o"}
    gate = next(row for row in comparison.rows if row.leaf == "gate o")
    assert (gate.largest is None) == (length == 0)
    start = comparison.rows[0]
    assert (start.position, start.largest) == (0, 0) if not length else start.position == 1


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [{}, {"direction": "bidirectional"}, {"cell": "GRUCell", "direction": "reverse"}])
def test_the_csv_reads_back_to_every_carry_with_init_at_position_0(values):
    look = look_at(replace(OPENING, init="normal", padding="nan", **values))
    rows = list(csv.DictReader(io.StringIO(carry_csv(look.result).decode())))
    parts = ("c", "h") if "cell" not in values else ("h",)
    assert tuple(rows[0]) == header(look.result)
    assert len(rows) == len(look.result.directions) * 3 * 9
    directions = dict(zip(("forward", "backward"), look.result.directions, strict=False))
    for row in rows:
        direction, example, position = directions[row["direction"]], int(row["example"]), int(row["position"])
        for part, carry in zip(parts, direction.carries, strict=True):
            got = np.array([row[f"{part}_{unit}"] for unit in range(4)], np.float32)
            assert np.array_equal(got, carry[position, example], equal_nan=True), "nine digits are exact"
        if position:
            assert int(row["t"]) == direction.order[position - 1, example]
            assert bool(int(row["valid"])) == direction.valid[position - 1, example]
        else:
            assert (row["t"], row["valid"]) == ("", "")


def test_the_npz_reads_back_without_pickles():
    inputs = replace(OPENING, init="normal")
    look = look_at(inputs)
    with np.load(io.BytesIO(history_npz(inputs, look.trial, look.result)), allow_pickle=False) as file:
        got = dict(file)
    assert np.array_equal(got["carry_c"][0], look.trial.init[0])
    assert np.array_equal(got["carry_h"], look.result.forward.carries[1])
    assert np.array_equal(got["outputs"], look.result.outputs)
    assert np.array_equal(got["inputs"], look.trial.inputs)
    assert got["lengths"].tolist() == [8, 5, 3]
    assert np.array_equal(got["valid"], look.result.forward.valid)
    assert {f"gates_{name}" for name in "ifgo"} <= set(got)
    assert str(got["axes"]) == "BTF"
    info = json.loads(str(got["info"]))
    assert SequenceInputs(**info["inputs"]) == inputs, "the inputs that made the numbers"
    assert {"jax", "flax", "numpy", "python"} == set(info["versions"])
    assert "mask" not in got


def test_the_npz_of_both_directions_and_of_a_mask():
    inputs = replace(OPENING, cell="SimpleCell", direction="bidirectional", masking="mask")
    look = look_at(inputs)
    with np.load(io.BytesIO(history_npz(inputs, look.trial, look.result)), allow_pickle=False) as file:
        got = dict(file)
    assert np.array_equal(got["backward_carry_h"], look.result.backward.carries[0])
    assert np.array_equal(got["backward_order"], look.result.backward.order)
    assert got["gates_h_new"].shape == (8, 3, 4)
    assert got["mask"].sum() == 16
    assert "lengths" not in got


# --- slow checks ------------------------------------------------------------------------------------------------------


def test_the_slow_checks_come_for_what_ran():
    checks = check_slowly(look_at(OPENING))
    assert checks is not None
    assert check_slowly(look_at(replace(OPENING, lengths="x"))) is None
