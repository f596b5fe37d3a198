"""What is run with a file's parameters uses them everywhere: the step, its checks, the equations, the script, the worker."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from flax import nnx

from core.doctor import parting_job
from core.export.cell_program import cell_document
from core.export.document import script
from core.export.sequence_program import sequence_document
from core.inputs import cell_page, sequence_page
from core.inputs.cell_inputs import CellInputs
from core.inputs.sequence_compare import compared
from core.inputs.sequence_fields import BIDIRECTIONAL, BUILT_IN_STEP, HIDDEN, SEED
from core.inputs.sequence_inputs import SequenceInputs
from core.inputs.sequence_inputs import build as build_sequence
from core.runners.cell_formulas import KINDS, formula_step, gate_weights
from core.runners.layers import parameters
from core.runners.parting_layer import Layered
from core.weights.architecture import TWO
from core.weights.cell import cell_file, with_weights
from core.weights.script import file_name
from tests.unit.weights.support import drawn, of_seed


def cell_inputs(weights, **how):
    return CellInputs(weights=weights.in_link, file=weights, **how)


def sequence_inputs(weights, **how):
    return SequenceInputs(weights=weights.in_link, file=weights, **how)


# --- one step -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_step_its_equations_and_its_checks_use_them(kind):
    weights = drawn(kind)
    look = cell_page.look_at(cell_inputs(weights, cell=kind, carry="normal", input="noise"))
    plain = cell_page.look_at(CellInputs(cell=kind, carry="normal", input="noise"))
    assert not np.allclose(look.step.output, plain.step.output)
    assert all(one.within for one in (look.step.numpy, look.step.eager, look.step.vmap))
    assert not look.report.broken
    biases = np.concatenate([look.weights[g.name].bias for g in KINDS[kind].gates])
    wanted = np.concatenate([a for p, a in weights.leaves.items() if p.endswith("bias")])
    assert sorted(biases.tolist()) == sorted(wanted.tolist())


def test_a_seeds_own_parameters_from_a_file_give_the_seeds_numbers():
    look = cell_page.look_at(cell_inputs(of_seed(seed=5), input="noise"))
    assert np.array_equal(look.step.output, cell_page.look_at(CellInputs(seed=5, input="noise")).step.output)


@pytest.mark.parametrize(
    "change", [{"cell": "GRUCell"}, {"hidden_features": 5}, {"in_features": 2}, {"weights": ""}, {"weights": "0" * 16}]
)
def test_they_are_used_only_where_they_fit_and_are_named(change):
    inputs = replace(cell_inputs(drawn()), **change)
    assert inputs.used is None
    plain = cell_page.look_at(replace(inputs, file=None, weights=""))
    assert np.array_equal(cell_page.look_at(inputs).step.output, plain.step.output)


def test_fixes_are_tried_with_them():
    weights = drawn()
    look = cell_page.look_at(cell_inputs(weights, break_init="one example more", carry="normal"))
    (violation,) = look.report.broken
    assert violation.fixes
    edit = violation.fixes[0].edit.values
    assert "file" not in edit
    assert "weights" not in edit


def test_a_cell_without_rngs_is_still_what_is_wrong():
    look = cell_page.look_at(cell_inputs(drawn(), break_cell="none given"))
    assert [v.code for v in look.report.broken] == ["L307"]
    assert "load_file" not in look.program


def test_inputs_with_other_parameters_are_other_inputs():
    assert cell_inputs(drawn(seed=1)) != cell_inputs(drawn(seed=2))
    assert cell_inputs(drawn(seed=1)) == cell_inputs(drawn(seed=1))
    assert "file" not in cell_inputs(drawn()).values
    json.dumps(cell_inputs(drawn()).values)
    json.dumps(sequence_inputs(drawn()).values)


# --- a layer --------------------------------------------------------------------------------------------------------


def by_hand(weights, x, cell):
    """The last h of one example, by the NumPy formulas."""
    kind = KINDS[weights.architecture.cell]
    made = kind.cell(3, 4, rngs=nnx.Rngs(0))
    one = replace(
        weights,
        architecture=replace(weights.architecture, cells=("cell",)),
        leaves={f"cell.{path}": array for path, array in weights.of_cell(cell).items()},
    )
    own = gate_weights(kind, with_weights(made, one))
    carry = (np.zeros((1, 4), np.float32),) * 2
    for row in x:
        carry = formula_step(kind, own, carry, row[None]).carry
    return carry[1][0]


def test_a_layer_runs_with_them():
    weights = drawn()
    look = sequence_page.look_at(sequence_inputs(weights))
    assert look.numpy.within
    assert not look.report.broken
    want = by_hand(weights, look.trial.inputs[0], "cell")
    np.testing.assert_allclose(look.result.forward.final[1][0], want, rtol=1e-5, atol=1e-6)


def test_a_bidirectional_layer_gives_each_direction_its_own():
    weights = drawn(cells=TWO)
    look = sequence_page.look_at(sequence_inputs(weights, direction=BIDIRECTIONAL))
    assert look.numpy.within
    want = by_hand(weights, look.trial.inputs[0][::-1], "backward")
    np.testing.assert_allclose(look.result.backward.final[1][0], want, rtol=1e-5, atol=1e-6)
    forward, backward = parameters(look.trial)
    assert np.array_equal(forward["f"].bias, weights.leaves["forward.hf.bias"])
    assert np.array_equal(backward["f"].bias, weights.leaves["backward.hf.bias"])


def test_flaxs_own_layer_agrees():
    look = sequence_page.look_at(sequence_inputs(drawn()))
    checks = sequence_page.check_slowly(look)
    assert checks.ok


def test_one_cell_is_no_bidirectional_layer_and_a_cell_in_the_step_draws_its_own():
    weights = drawn()
    assert sequence_inputs(weights, direction=BIDIRECTIONAL).used is None
    assert sequence_inputs(weights, slip=BUILT_IN_STEP).used is None
    assert build_sequence(sequence_inputs(weights, slip=BUILT_IN_STEP)).trial.given is None


def test_the_run_to_compare_with_has_a_seeds_parameters():
    weights = drawn()
    for which in (SEED, HIDDEN):
        inputs = sequence_inputs(weights, compare=which, compare_seed=0)
        other = compared(inputs, sequence_page.look_at(inputs).result)
        assert other.inputs.used is None
        assert other.trial.given is None


def test_the_worker_of_the_parting_paths_gets_them():
    trial = build_sequence(sequence_inputs(drawn(cells=TWO), direction=BIDIRECTIONAL)).trial
    sent = json.loads(json.dumps(parting_job.of_layer(Layered(trial))))
    got = parting_job.computation_of(sent).trial
    for ours, theirs in zip(trial.given, got.given, strict=True):
        assert {p: a.tobytes() for p, a in ours.items()} == {p: a.tobytes() for p, a in theirs.items()}
    assert parameters(got)[1]["f"].bias.tolist() == parameters(trial)[1]["f"].bias.tolist()


# --- scripts --------------------------------------------------------------------------------------------------------


def run(code, folder, monkeypatch):
    monkeypatch.chdir(folder)
    space = {"__name__": "__main__"}
    exec(compile(code, "exported.py", "exec"), space)
    return space


def test_the_exported_step_loads_the_file_and_gives_the_pages_numbers(tmp_path, monkeypatch):
    weights = drawn()
    look = cell_page.look_at(cell_inputs(weights, input="noise"))
    code = script(cell_document(look))
    assert "safetensors" in code.split("\n\n")[0]
    (tmp_path / file_name(weights.digest)).write_bytes(cell_file(weights))
    space = run(code, tmp_path, monkeypatch)
    np.testing.assert_allclose(space["output"], look.step.output, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("cells", [("cell",), TWO])
def test_the_exported_layer_loads_the_file_and_gives_the_pages_numbers(cells, tmp_path, monkeypatch):
    weights = drawn(cells=cells)
    how = {"direction": BIDIRECTIONAL} if cells == TWO else {"masking": "mask"}
    look = sequence_page.look_at(sequence_inputs(weights, **how))
    (tmp_path / file_name(weights.digest)).write_bytes(cell_file(weights))
    space = run(look.program, tmp_path, monkeypatch)
    np.testing.assert_allclose(space["ys"], np.swapaxes(look.result.outputs, 0, 1), rtol=1e-5, atol=1e-6)
    assert sequence_document(look).packages == ("safetensors",)


def test_an_exported_script_refuses_other_weights_under_that_name(tmp_path, monkeypatch):
    weights = drawn()
    (tmp_path / file_name(weights.digest)).write_bytes(cell_file(drawn(seed=8)))
    code = script(cell_document(cell_page.look_at(cell_inputs(weights))))
    with pytest.raises(AssertionError, match="holds other weights"):
        run(code, tmp_path, monkeypatch)


def test_the_panels_program_is_python_that_runs(tmp_path, monkeypatch):
    weights = drawn()
    look = cell_page.look_at(cell_inputs(weights))
    (tmp_path / file_name(weights.digest)).write_bytes(cell_file(weights))
    space = run(look.program, tmp_path, monkeypatch)
    np.testing.assert_allclose(space["output"], look.step.output, rtol=1e-5, atol=1e-6)
