"""The paths of layers and of a model trained on them: agreement of all cells, and planted partings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from flax import nnx

from core.base.parting import Lever, Path, Stage, found_lever
from core.base.sequences import Masking, Slip
from core.base.training import TrainingSpec
from core.contract.subject import SequenceTrial
from core.runners import parting_model
from core.runners.cell_formulas import KINDS
from core.runners.parting import checks, compare, run, simplify
from core.runners.parting_layer import Layered
from core.runners.parting_model import Training
from core.runners.sequence import run_sequence
from core.runners.training import task, train_once

T, B, F, H = 5, 3, 2, 4
HERE = tuple(path for path in Path if path is not Path.BACKEND)
INPUTS = np.random.default_rng(0).normal(size=(B, T, F)).astype(np.float32)
TARGETS = np.random.default_rng(1).normal(size=(B, 2)).astype(np.float32)
LENGTHS = (5, 2, 3)
MASK = np.asarray([[1, 1, 0, 1, 1], [1, 0, 0, 1, 0], [0, 1, 1, 1, 1]], bool)


def trial(**changes) -> SequenceTrial:
    return SequenceTrial(**{"kind": "LSTMCell", "inputs": INPUTS, "axes": "BTF", "hidden_features": H, **changes})


def training(**changes) -> Training:
    return Training(**{"targets": TARGETS, "rate": 0.3, **changes})


KNOWN = {
    "lengths": {"masking": Masking.LENGTHS, "lengths": LENGTHS},
    "lengths, from the end": {"masking": Masking.LENGTHS, "lengths": LENGTHS, "reverse": True},
    "a mask with holes": {"masking": Masking.MASK, "mask": MASK},
    "a mask, both ways": {"masking": Masking.MASK, "mask": MASK, "bidirectional": True},
    "time first, kept order": {
        "inputs": INPUTS.swapaxes(0, 1).copy(),
        "axes": "TBF",
        "time_major": True,
        "masking": Masking.LENGTHS,
        "lengths": LENGTHS,
        "reverse": True,
        "keep_order": True,
    },
}


# --- agreement ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_cell_agrees_on_all_paths_when_padding_is_known(kind):
    found = compare(Layered(trial(kind=kind, **KNOWN["lengths"])), HERE)
    assert found.first is None, found.first
    assert {check.path for check in found.checks} == set(HERE) - {Path.EAGER}
    assert {check.stage for check in found.checks} == {Stage.DATA, Stage.STATE, Stage.SHAPES, Stage.FORWARD}


@pytest.mark.parametrize("name", [name for name in KNOWN if name != "lengths"])
def test_layers_agree_on_all_paths_when_padding_is_known(name):
    found = compare(Layered(trial(kind="GRUCell", **KNOWN[name])), HERE)
    assert found.first is None, found.first


@pytest.mark.parametrize(("layers", "paths"), [(1, (Path.LOOP, Path.PADDED, Path.FLOAT64)), (2, (Path.JIT, Path.VMAP))])
def test_layers_in_training_agree_at_every_stage(layers, paths):
    found = compare(Layered(trial(kind="SimpleCell", **KNOWN["lengths"]), layers, training()), paths)
    assert found.first is None, found.first
    assert {check.stage for check in found.checks} == set(Stage)


@pytest.mark.parametrize("changes", [{}, KNOWN["lengths, from the end"], {"bidirectional": True}])
def test_eager_is_what_the_layer_of_the_page_gives(changes):
    of = trial(kind="GRUCell", weights={"recurrent_scale": 0.5}, **changes)
    got, want = run(Layered(of), Path.EAGER).stages[Stage.FORWARD], run_sequence(of)
    np.testing.assert_allclose(got["ys"], want.outputs, rtol=1e-5, atol=1e-6)
    name = "forward " if of.bidirectional else ""
    np.testing.assert_allclose(got[f"{name}final carry"], want.forward.final[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("changes", [{}, {"train": False}, {"optimizer": "adam", "rate": 0.5}])
def test_a_model_in_training_is_that_of_the_gradients_page(changes):
    spec = TrainingSpec(*task(4, 6, 3), kind="SimpleCell", hidden_features=5, **changes)
    got, want = run(Layered.of_training(spec), Path.EAGER).stages, train_once(spec)
    assert got[Stage.LOSS]["loss"] == pytest.approx(want.loss_before, rel=1e-5)
    norms = {leaf.path: leaf.norm for leaf in want.gradients}
    for module, layers in got[Stage.GRADIENTS]["grad"].items():
        flat = {f"{module}.{a}.{b}": v for a, bs in layers.items() if isinstance(bs, dict) for b, v in bs.items()}
        flat |= {f"{module}.{a}": v for a, v in layers.items() if not isinstance(v, dict)}
        for path, values in flat.items():
            assert float(np.linalg.norm(values)) == pytest.approx(norms.pop(path), rel=1e-4)
    assert not norms


# --- partings -------------------------------------------------------------------------------------------------------


def test_padding_without_a_mask_parts_at_the_final_carry_and_nowhere_before():
    found = compare(Layered(trial(kind="GRUCell")), (Path.PADDED,))
    check = found.first
    assert (check.path, check.stage, check.parted.leaf, check.parted.t) == (
        Path.PADDED, Stage.FORWARD, "final carry", None
    )  # fmt: skip
    carries = run(Layered(trial(kind="GRUCell")), Path.PADDED).stages[Stage.FORWARD]
    np.testing.assert_allclose(carries["ys"], run_sequence(trial(kind="GRUCell")).outputs, rtol=1e-5, atol=1e-6)


def test_a_layer_from_the_end_reads_unknown_padding_first():
    begun = trial(kind="GRUCell", reverse=True, init=(np.ones((B, H), np.float32),))
    check = compare(Layered(begun), (Path.PADDED,)).first
    assert (check.stage, check.parted.leaf, check.parted.t) == (Stage.FORWARD, "carry", 0)
    # From zeros, with biases of zero, zeros leave a GRU where it is.
    assert compare(Layered(replace(begun, init=None)), (Path.PADDED,)).first is None


def test_a_batch_taken_for_time_parts_when_each_example_is_run_alone():
    check = compare(Layered(trial(kind="GRUCell", time_major=True)), (Path.VMAP,)).first
    assert check.path is Path.VMAP
    assert compare(Layered(trial(kind="GRUCell")), (Path.VMAP,)).first is None


def test_a_mask_along_the_features_parts_when_each_example_is_run_alone():
    square = {"hidden_features": B, **KNOWN["a mask with holes"]}
    check = compare(Layered(trial(**square, slips=frozenset({Slip.FEATURE_MASK}))), (Path.VMAP,)).first
    assert (check.stage, check.parted.leaf, check.parted.t) == (Stage.FORWARD, "carry[0]", 0)
    assert compare(Layered(trial(**square)), (Path.VMAP,)).first is None


def test_a_stream_that_is_asked_in_the_step_is_asked_once_in_a_scan():
    model = Layered(trial(kind="SimpleCell"), training=training(ask_in_step=True))
    check = compare(model, (Path.LOOP, Path.JIT)).first
    assert (check.path, check.stage) == (Path.LOOP, Stage.KEYS)
    assert (check.parted.leaf, check.parted.got, check.parted.want) == ("times asked['dropout']", str(T), "1")


def test_streams_that_are_asked_in_another_order_part_at_the_keys(monkeypatch):
    model = Layered(trial(kind="SimpleCell"), 2, training())
    want = run(model, Path.EAGER)
    keys = parting_model.Runner.keys
    monkeypatch.setattr(parting_model.Runner, "keys", lambda self, steps: keys(self, steps)[::-1])
    found = [check for check in checks(run(model, Path.JIT), want) if not check.ok]
    assert (found[0].stage, found[0].parted.leaf, found[0].parted.t) == (Stage.KEYS, "keys[0]", 0)


def test_another_mode_is_named_before_the_values_that_it_changes():
    want = run(Layered(trial(kind="SimpleCell"), training=training()), Path.EAGER)
    got = run(Layered(trial(kind="SimpleCell"), training=training(train=False, rate=0.3)), Path.JIT)
    stages = [check.stage for check in checks(got, want) if not check.ok]
    assert Stage.MODE in stages
    assert Stage.FORWARD in stages
    (mode,) = [check for check in checks(got, want) if check.stage is Stage.MODE]
    assert {mode.parted.got, mode.parted.want} <= {"train", "eval", "drops", "keeps all"}


def test_another_type_of_state_is_named(monkeypatch):
    model = Layered(trial(kind="SimpleCell"))
    want = run(model, Path.EAGER)
    merged = parting_model.Runner._merged

    def planted(self, name, state):
        cell = merged(self, name, state)
        cell.dense_h.kernel = nnx.BatchStat(cell.dense_h.kernel[...])
        return cell

    monkeypatch.setattr(parting_model.Runner, "_merged", planted)
    found = [check for check in checks(run(model, Path.JIT), want) if not check.ok]
    assert [check.stage for check in found] == [Stage.STATE]
    parted = found[0].parted
    assert (parted.leaf, parted.got, parted.want) == ("state['cell.dense_h.kernel']", "BatchStat", "Param")


def test_a_nan_in_the_data_is_the_same_nan_everywhere():
    inputs = INPUTS.copy()
    inputs[1, 2, 0] = np.nan
    model = Layered(trial(kind="SimpleCell", inputs=inputs, **KNOWN["lengths"]), training=training())
    found = compare(model, (Path.LOOP, Path.JIT))
    assert found.first is None, found.first


@pytest.mark.parametrize("changes", [{}, {"reverse": True}, {"bidirectional": True}])
def test_no_step_at_all_agrees(changes):
    found = compare(Layered(trial(kind="SimpleCell", inputs=INPUTS[:, :0], **changes)), HERE)
    assert found.first is None, found.first


def test_a_length_of_zero_returns_the_last_padded_carry_and_so_parts_when_more_is_padded():
    zero = trial(kind="SimpleCell", masking=Masking.LENGTHS, lengths=(0, 2, 3))
    check = compare(Layered(zero), (Path.PADDED,)).first
    assert (check.stage, check.parted.leaf, check.parted.index[0]) == (Stage.FORWARD, "final carry", 0)


@pytest.mark.parametrize(
    ("changes", "above", "stage"),
    [
        ({"masking": Masking.LENGTHS, "lengths": (1.5, 2, 3)}, None, Stage.FORWARD),
        ({"unroll": -1}, None, Stage.FORWARD),
        ({"hidden_features": -1}, None, Stage.DATA),
        ({}, training(stream_seed=None), Stage.KEYS),
    ],
)
def test_what_the_layer_raises_is_the_outcome(changes, above, stage):
    found = compare(Layered(trial(**changes), training=above), (Path.JIT,))
    assert found.first.path is Path.EAGER
    assert found.first.stage is stage
    assert found.first.error.type


# --- Simplify -------------------------------------------------------------------------------------------------------


def test_simplify_says_that_padding_needs_nothing_else():
    model = Layered(trial(), 2, training(rate=0.0))
    tried = simplify(model, Path.PADDED)
    assert len(tried) == 1
    assert tried[0].parted.stage is Stage.FORWARD
    assert found_lever(model.levers, tried) is None


def test_simplify_finds_the_batch_behind_a_mask_along_the_features():
    model = Layered(
        trial(kind="SimpleCell", hidden_features=B, slips=frozenset({Slip.FEATURE_MASK}), **KNOWN["a mask with holes"])
    )
    tried = simplify(model, Path.VMAP)
    assert found_lever(model.levers, tried) in {Lever.BATCH, Lever.HIDDEN}
    assert tried[-1].small != frozenset(model.levers)


def test_simplify_finds_jit_behind_a_stream_that_is_asked_in_the_step():
    model = Layered(trial(kind="SimpleCell"), training=training(ask_in_step=True))
    tried = simplify(model, Path.LOOP)
    # Asked in a scan without jit, which is a loop too, it is asked T times on both paths: jit has to come back.
    assert found_lever(model.levers, tried) is Lever.JIT


def test_everything_small_is_small():
    model = Layered(trial(**KNOWN["a mask with holes"], init=(np.ones((B, H), np.float32),) * 2), 2, training())
    small = model.simplified(frozenset(Lever))
    assert small.trial.inputs.shape == (1, 1, 1)
    assert small.trial.mask.shape == (1, 1)
    assert [part.shape for part in small.trial.init] == [(1, 1), (1, 1)]
    assert (small.layers, small.training.rate, small.jit) == (1, 0.0, False)
    assert small.levers == ()
    assert compare(small, (Path.LOOP,)).first is None
    assert replace(small, jit=True).levers == (Lever.JIT,)
