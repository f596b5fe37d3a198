"""The files of numbers: read back, they are the numbers of the page, from init on."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest

from core.export.cell_rows import cell_csv, cell_npz
from core.export.gradient_rows import gradient_csv, gradient_npz
from core.export.scan_rows import scan_csv, scan_npz
from core.inputs.cell_inputs import CellInputs
from core.inputs.cell_page import look_at
from core.inputs.gradient_inputs import GradientInputs
from core.inputs.gradient_page import look_at as gradients_of
from core.inputs.scan_check import evaluate
from core.inputs.scan_fields import follow, opening
from core.runners.cell_formulas import KINDS
from core.steps.library import STEPS


def table(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


def arrays(content: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return dict(file)


def test_a_scan_row_by_row():
    checked = evaluate(follow(opening("running_sum"), {"numbers": "1, 0.1, -3", "reverse": True}))
    assert scan_csv(checked.result) == (
        b"position,t,carry,x,y\n0,,0,,\n1,2,-3,-3,-3\n2,1,-2.9000001,0.100000001,-2.9000001\n3,0,-1.9000001,1,-1.9000001\n"
    )


@pytest.mark.parametrize("step", [name for name, step in STEPS.items() if not step.breaks])
def test_every_preset_reads_back(step):
    checked = evaluate(opening(step))
    result = checked.result
    found = arrays(scan_npz(checked, result))
    for one in (*result.carries, *result.xs, *result.ys_series):
        np.testing.assert_array_equal(found[one.path], one.values)
    np.testing.assert_array_equal(found["t"], result.order)
    assert json.loads(str(found["info"]))["inputs"]["step"] == step
    rows = table(scan_csv(result))
    assert len(rows) == result.length + 1
    first = result.carries[0]
    numbers = first.values.reshape(len(rows), -1)[:, 0].astype(float)
    name = next(column for column in rows[0] if column.startswith(first.path))
    np.testing.assert_array_equal(np.float32([row[name] for row in rows]), np.float32(numbers))


def test_numpy_alone_reads_a_bfloat16():
    checked = evaluate(follow(opening("running_sum"), {"dtype": "bfloat16"}))
    found = arrays(scan_npz(checked, checked.result))
    assert found["x"].dtype == np.float32
    assert json.loads(str(found["info"]))["dtypes"]["x"] == "bfloat16"
    np.testing.assert_array_equal(found["x"], checked.result.xs[0].values.astype(np.float32))


def test_a_scan_of_nothing():
    checked = evaluate(follow(opening("running_sum"), {"numbers": "", "length": 0}))
    assert scan_csv(checked.result) == b"position,t,carry,x,y\n0,,0,,\n"
    assert arrays(scan_npz(checked, checked.result))["y"].shape == (0,)


@pytest.mark.parametrize("cell", KINDS)
def test_a_cell_reads_back(cell):
    look = look_at(CellInputs(cell=cell, carry="normal", input="noise"))
    step = look.step
    found, rows = arrays(cell_npz(look, step)), table(cell_csv(step))
    assert len(rows) == step.output.size
    np.testing.assert_array_equal(np.float32([row["output"] for row in rows]), step.output.reshape(-1))
    np.testing.assert_array_equal(found["x"], step.inputs)
    for gate in step.gates:
        name = gate.name.replace("′", "_new")
        np.testing.assert_array_equal(found[name], gate.value)
        np.testing.assert_allclose(found["x"] @ found[f"weights_{name}_x"], gate.from_x, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(np.float32([row[f"{name}_pre"] for row in rows]), gate.pre.reshape(-1))


def test_the_views_of_gradients():
    cells = gradients_of(GradientInputs(length=4, hidden_features=3))
    assert len(table(gradient_csv(cells, 3))) == 3
    np.testing.assert_array_equal(arrays(gradient_npz(cells))["LSTM_h"], cells.cells.maps[0].h)
    scan = gradients_of(GradientInputs(of="preset", preset="running_sum"))
    rows = table(gradient_csv(scan, 0))
    assert [row["leaf"] for row in rows] == ["init", "xs", "xs", "xs"]
    assert {row["gradient"] for row in rows} == {"1"}
    assert float(arrays(gradient_npz(scan))["value"]) == scan.scan.gradient.value
    model = gradients_of(GradientInputs(of="training", train_length=3, batch=2, hidden_features=3, updates=2))
    assert [row["updates"] for row in table(gradient_csv(model, 0))] == ["0", "1", "2"]
    assert arrays(gradient_npz(model))["inputs"].shape == (2, 3, 3)
    assert gradient_csv(gradients_of(replace(GradientInputs(), length=0)), 0) == b""
