"""A training run in a file: each part is saved, checked and restored by itself, and what is restored goes on as if nothing had been."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from core.base.training import TrainingSpec
from core.runners.training import Trainer, task
from core.weights.container import read, write
from core.weights.document import BATCH_STATS, NAME, OPTIMIZER, PARAMS, RNG, SECTIONS, digest, sealed
from core.weights.refusal import WeightsRefused
from core.weights.training import (
    IN_NEITHER,
    NEEDS_PARAMS,
    NOT_IN_FILE,
    fits,
    go_on,
    held_of,
    read_run,
    recheck,
    run_file,
    with_parts,
)


def asked(**changes):
    inputs, targets = task(4, 6, 3)
    usual = {"kind": "LSTMCell", "hidden_features": 5, "seed": 0, "optimizer": "adam", "learning_rate": 0.01}
    return TrainingSpec(inputs, targets, **{**usual, **changes})


def run(spec, updates=3):
    trainer = Trainer.of(spec)
    trainer.go_on(updates)
    return trainer


def by_name(offers):
    return {offer.name: offer for offer in offers}


def tampered(data, change):
    """The file with arrays and document changed, the description sealed again: made by somebody who knows how."""
    container = read(data)
    tensors = {name: np.array(array) for name, array in container.tensors.items()}
    document = json.loads(container.metadata[NAME])
    change(tensors, document)
    return write(tensors, {NAME: sealed({k: v for k, v in document.items() if k != "sha256"})})


@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell", "SimpleCell"])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("dropout_seed", [1, None])
def test_a_restored_run_goes_on_bit_for_bit(kind, optimizer, dropout_seed):
    spec = asked(kind=kind, optimizer=optimizer, dropout_seed=dropout_seed, train=dropout_seed is not None)
    trainer = run(spec)
    data = run_file(held_of(trainer))
    uninterrupted = trainer.go_on(3)
    other = replace(spec, seed=7, dropout_seed=dropout_seed and 9)
    broken = held_of(run(other, 1))
    assert not np.array_equal(go_on(other, broken, 3), uninterrupted)
    mended = with_parts(broken, read_run(data, broken), SECTIONS)
    assert np.array_equal(go_on(other, mended, 3), uninterrupted)


@pytest.mark.parametrize("name", [PARAMS, RNG, OPTIMIZER])
def test_one_part_is_restored_and_the_others_stay(name):
    data, mine = run_file(held_of(run(asked()))), held_of(run(asked(seed=7, dropout_seed=9), 1))
    after = with_parts(mine, read_run(data, mine), [name])
    changed = {part for part in mine.sections if after.sections[part].digest != mine.sections[part].digest}
    assert changed == {name}
    assert after.sections[name].digest == held_of(run(asked())).sections[name].digest


def test_what_a_model_has_not_is_said_not_refused():
    spec = asked(optimizer="sgd")
    held = held_of(run(spec))
    offers = by_name(read_run(run_file(held), held))
    assert (offers[BATCH_STATS].reason, offers[OPTIMIZER].reason) == (IN_NEITHER, IN_NEITHER)
    assert not offers[OPTIMIZER].refused
    assert offers[PARAMS].section is not None


def test_moments_are_nothing_for_an_optimizer_without_and_the_rest_can_be_taken():
    data, mine = run_file(held_of(run(asked()))), held_of(run(asked(optimizer="sgd", seed=7)))
    offers = by_name(read_run(data, mine))
    assert offers[OPTIMIZER].refused
    assert "this run has none" in offers[OPTIMIZER].reason
    assert offers[PARAMS].section is not None
    assert by_name(read_run(run_file(mine), held_of(run(asked()))))[OPTIMIZER].reason == NOT_IN_FILE


def test_another_size_refuses_parameters_and_moments_and_leaves_the_stream():
    data, mine = run_file(held_of(run(asked(hidden_features=4)))), held_of(run(asked()))
    offers = by_name(read_run(data, mine))
    assert offers[PARAMS].refused
    assert "float32[4" in offers[PARAMS].reason
    assert offers[OPTIMIZER].refused
    assert offers[RNG].section is not None


def test_moments_without_their_parameters_cannot_be_checked():
    mine = held_of(run(asked()))
    data = tampered(run_file(mine), lambda tensors, _: tensors[f"{PARAMS}/model.readout.bias"].fill(np.nan))
    offers = by_name(read_run(data, mine))
    assert "not finite" in offers[PARAMS].reason
    assert offers[OPTIMIZER].reason == NEEDS_PARAMS
    assert offers[RNG].section is not None


def _other_key(tensors, document):
    name = next(n for n in tensors if n.startswith(f"{RNG}/") and n.endswith("key"))
    tensors[name][0] += 1
    _resealed(tensors, document, RNG)


def _other_parameters(tensors, document):
    tensors[f"{PARAMS}/model.readout.bias"] += 0.5
    _resealed(tensors, document, PARAMS)


def _other_moments(tensors, document):
    for name in [n for n in tensors if n.startswith(f"{OPTIMIZER}/") and ".mu" in n]:
        tensors[name] += 1
    _resealed(tensors, document, OPTIMIZER)


def _resealed(tensors, document, part):
    arrays = {n.removeprefix(f"{part}/"): a for n, a in tensors.items() if n.startswith(f"{part}/")}
    document["sections"][part]["sha256"] = digest(arrays)


@pytest.mark.parametrize(
    ("part", "change"), [(RNG, _other_key), (PARAMS, _other_parameters), (OPTIMIZER, _other_moments)]
)
def test_a_part_with_a_right_hash_that_computes_something_else_is_refused_by_its_control(part, change):
    mine = held_of(run(asked()))
    offers = by_name(read_run(tampered(run_file(mine), change), mine))
    assert offers[part].refused
    assert "control" in offers[part].reason
    assert all(offers[name].section is not None for name in (RNG,) if name != part)


def test_one_byte_of_one_part_refuses_that_part_alone():
    mine = held_of(run(asked()))
    data = bytearray(run_file(mine))
    begins = 8 + int.from_bytes(data[:8], "little")
    found = set()
    for at in range(begins, len(data), 97):
        other = bytearray(data)
        other[at] ^= 1
        try:
            offers = by_name(read_run(bytes(other), mine))
        except WeightsRefused:
            continue  # a byte of the control itself: nothing can be verified any more
        broken = {name for name, offer in offers.items() if offer.refused}
        assert broken in ({PARAMS, OPTIMIZER}, {RNG}, {OPTIMIZER})
        found |= broken
    assert found >= {PARAMS, OPTIMIZER}


@pytest.mark.parametrize("data", [b"", b"\x80\x04\x95pickle", b"PK\x03\x04" + bytes(40), bytes(64)])
def test_what_is_no_such_file_is_refused_as_a_whole(data):
    with pytest.raises(WeightsRefused):
        read_run(data, held_of(run(asked())))


def test_a_truncated_file_is_refused_as_a_whole():
    mine = held_of(run(asked()))
    data = run_file(mine)
    for share in range(0, 100, 9):
        with pytest.raises(WeightsRefused):
            read_run(data[: len(data) * share // 100], mine)


def test_the_way_back_runs_the_control_again():
    held = held_of(run(asked()))
    assert recheck(held) == 0.0
    moved = replace(held, control={name: values + 1 for name, values in held.control.items()})
    with pytest.raises(WeightsRefused, match="does not compute"):
        recheck(moved)


def test_going_on_changes_nothing_that_is_held():
    spec = asked()
    held = held_of(run(spec))
    first = go_on(spec, held, 4)
    assert np.array_equal(first, go_on(spec, held, 4))
    assert recheck(held) == 0.0


def test_a_run_goes_on_where_cell_sizes_optimizer_and_streams_are_the_same():
    held = held_of(run(asked()))
    assert fits(asked(seed=5, learning_rate=0.3, rate=0.5), held)
    for change in ({"kind": "GRUCell"}, {"hidden_features": 6}, {"optimizer": "sgd"}, {"dropout_seed": None}):
        assert not fits(asked(**change), held)


def test_what_is_not_finite_is_not_saved():
    trainer = run(asked(learning_rate=float("inf")), 1)
    with pytest.raises(WeightsRefused):
        run_file(held_of(trainer))
