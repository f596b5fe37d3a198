"""A file of parameters is taken after every check, in their order, or refused with the leaf and the numbers."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from flax import nnx

from core.runners.cell_formulas import KINDS
from core.weights import control, load
from core.weights.architecture import ONE, TWO, Architecture, expected
from core.weights.cell import Origin, cell_file, weights_of, weights_of_cell, weights_of_seed
from core.weights.container import read, write
from core.weights.document import NAME
from core.weights.load import load_cell, recheck
from core.weights.refusal import Stage, WeightsRefused
from tests.unit.weights.support import changed, closed, drawn, of_seed, opened, refused

RECORDED = Path(__file__).parent / "recorded"
II = "params/cell.ii.kernel"


# --- what is saved comes back ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [ONE, TWO])
@pytest.mark.parametrize("kind", KINDS)
def test_parameters_come_back_bit_for_bit_with_all_that_was_said_of_them(kind, cells):
    saved = of_seed(kind, cells=cells)
    found = load_cell(cell_file(saved))
    assert found == saved
    assert found.seed == 7
    assert found.origin is Origin.FILE
    assert found.versions["jax"] == jax.__version__
    assert found.digest == saved.digest
    assert {p: a.tobytes() for p, a in found.leaves.items()} == {p: a.tobytes() for p, a in saved.leaves.items()}
    assert {row.path for row in found.rows} == set(saved.leaves)


def test_the_saved_parameters_are_those_that_flax_draws():
    cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(7))
    saved = of_seed()
    for path, variable in nnx.to_flat_state(nnx.state(cell)):
        assert np.array_equal(saved.leaves[".".join(("cell", *path))], variable[...])
    assert weights_of_cell(cell) == saved


def test_a_backward_cell_is_saved_with_the_next_seed():
    saved = of_seed(cells=TWO)
    assert np.array_equal(saved.leaves["backward.ii.kernel"], of_seed(seed=8).leaves["cell.ii.kernel"])


@pytest.mark.parametrize("kind", KINDS)
def test_the_template_has_the_paths_and_types_of_the_real_cell(kind):
    cell = KINDS[kind].cell(5, 2, rngs=nnx.Rngs(0))
    flat = {".".join(("cell", *map(str, p))): v[...] for p, v in nnx.to_flat_state(nnx.state(cell))}
    want = expected(Architecture(kind, 5, 2))
    assert {p: (a.shape, a.dtype) for p, a in flat.items()} == {p: (a.shape, a.dtype) for p, a in want.items()}


def test_the_control_is_what_the_real_cell_gives():
    saved = drawn()
    cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
    state = nnx.state(cell)
    flat = [(p, v.replace(saved.leaves[".".join(("cell", *p))])) for p, v in nnx.to_flat_state(state)]
    nnx.update(cell, nnx.from_flat_state(flat))
    arrays = saved.control.arrays
    carry = arrays["cell.init.c"], arrays["cell.init.h"]
    for t in range(control.STEPS):
        carry, y = cell(carry, arrays["cell.x"][t])
        np.testing.assert_allclose(y, arrays["cell.ys"][t], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(carry[0], arrays["cell.final.c"], rtol=1e-5, atol=1e-6)
    assert not np.allclose(arrays["cell.final.c"], arrays["cell.final.h"])


def test_sets_are_equal_by_architecture_and_hash():
    assert of_seed() == of_seed()
    assert hash(of_seed()) == hash(of_seed())
    assert of_seed() != of_seed(seed=8)
    assert of_seed() != "of_seed"


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.safetensors")), ids=lambda p: p.stem)
def test_files_recorded_on_other_versions_are_read(path):
    found = load_cell(path.read_bytes())
    assert found.versions["jax"] == "0.11.2"
    assert found.apart <= 1e-5
    assert found.architecture.cell in path.stem


def test_a_file_of_each_cell_is_recorded():
    assert {path.stem.split("-")[0] for path in RECORDED.glob("*.safetensors")} == set(KINDS)


# --- each check -----------------------------------------------------------------------------------------------------


def test_the_checks_are_made_in_their_order(monkeypatch):
    made = []
    for name in ("read", "document_of", "check_leaves", "check_types", "check_finite", "check_hashes", "check"):
        real = getattr(load, name)
        monkeypatch.setattr(load, name, lambda *a, _name=name, _real=real: made.append(_name) or _real(*a))
    load_cell(cell_file(of_seed()))
    order = [
        "read",
        "document_of",
        "check_leaves",
        "check_types",
        "check_types",
        "check_finite",
        "check_hashes",
        "check",
    ]
    assert made == order


def test_a_foreign_file_is_unverified():
    error = refused(write({"encoder.kernel": np.ones((2, 2), np.float32)}, {}))
    assert error.stage is Stage.SCHEMA
    assert str(error).startswith("Unverified")
    assert "encoder.kernel" in str(error)


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_a_file_of_another_format_version_says_both(version):
    tensors, document = opened(cell_file(of_seed()))
    document["version"] = version
    error = refused(closed(tensors, document))
    assert error.stage is Stage.SCHEMA
    assert "version 1 is read here" in str(error)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.pop("seed"), "seed is missing"),
        (lambda d: d.update(seed="seven"), "at seed"),
        (lambda d: d.update(more=1), "more is not known"),
        (lambda d: d["sections"].update(other={}), "other is not known"),
        (lambda d: d["sections"]["params"].update(sha256="abc"), "sections.params.sha256"),
        (lambda d: d["architecture"].update(in_features=0), "architecture.in_features"),
        (lambda d: d["architecture"].update(cells=["cell", "cell"]), "architecture.cells"),
        (lambda d: d["architecture"].update(cell="ConvLSTM"), "ConvLSTM"),
        (lambda d: d["architecture"].update(hidden_features=100_000), "hidden_features = 100000; 256"),
        (lambda d: d.update(architecture=None), "some module"),
        (lambda d: d.update(control=None), "Unverified"),
        (lambda d: d.update(format="other"), "other"),
    ],
)
def test_a_description_that_is_not_by_its_schema_is_refused(change, said):
    tensors, document = opened(cell_file(of_seed()))
    change(document)
    error = refused(closed(tensors, document))
    assert error.stage is Stage.SCHEMA
    assert said in str(error)


def test_a_description_that_is_no_json_is_refused():
    tensors, _ = opened(cell_file(of_seed()))
    assert refused(write(tensors, {NAME: "{"})).stage is Stage.FORMAT
    assert refused(write(tensors, {NAME: "[]"})).stage is Stage.SCHEMA
    assert "twice" in str(refused(write(tensors, {NAME: '{"format": 1, "format": 1}'})))
    assert "nested" in str(refused(write(tensors, {NAME: "[" * 50 + "]" * 50})))


def test_a_leaf_of_another_shape_is_named_with_both():
    error = refused(changed(cell_file(of_seed()), II, lambda a: a.T.copy(), rehash=True))
    assert error.stage is Stage.LEAVES
    assert error.leaf == II
    assert "float32[4,3]" in str(error)
    assert "float32[3,4]" in str(error)


def test_a_leaf_of_another_shape_with_a_description_to_match_is_not_what_the_cell_needs():
    tensors, document = opened(cell_file(of_seed()))
    tensors[II] = tensors[II].T.copy()
    document["sections"]["params"]["leaves"]["cell.ii.kernel"]["shape"] = [4, 3]
    error = refused(closed(tensors, document, rehash=True))
    assert error.stage is Stage.LEAVES
    assert "LSTMCell, F = 3, H = 4" in str(error)
    assert "float32[4,3]" in str(error)


def test_a_leaf_of_another_dtype_is_named():
    error = refused(changed(cell_file(of_seed()), II, lambda a: a.astype(np.float64), rehash=True))
    assert error.stage is Stage.LEAVES
    assert "float64[3,4]" in str(error)


def test_a_leaf_that_is_missing_or_one_too_many_is_named():
    tensors, document = opened(cell_file(of_seed()))
    del tensors[II]
    assert II in str(refused(closed(tensors, document)))
    del document["sections"]["params"]["leaves"]["cell.ii.kernel"]
    assert f"{II} is missing" in str(refused(closed(tensors, document, rehash=True)))
    tensors, document = opened(cell_file(of_seed()))
    tensors["params/cell.extra"] = np.ones(2, np.float32)
    assert "not in its description" in str(refused(closed(tensors, document)))
    document["sections"]["params"]["leaves"]["cell.extra"] = {"shape": [2], "dtype": "float32", "variable": "Param"}
    assert "no parameter of" in str(refused(closed(tensors, document, rehash=True)))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_named_with_its_place(value):
    def spoil(array):
        array[1, 2] = value
        return array

    error = refused(changed(cell_file(of_seed()), II, spoil, rehash=True))
    assert error.stage is Stage.FINITE
    assert error.leaf == II
    assert "[1, 2]" in str(error)


def test_a_leaf_that_was_changed_by_its_last_bit_fails_its_hash():
    def nudge(array):
        array.view(np.uint32)[0, 0] ^= 1
        return array

    error = refused(changed(cell_file(of_seed()), II, nudge))
    assert error.stage is Stage.HASH
    assert error.leaf == "params"


def test_a_description_that_was_changed_fails_its_own_hash():
    tensors, document = opened(cell_file(of_seed()))
    document["seed"] = 8
    error = refused(closed(tensors, document, seal=False))
    assert error.stage is Stage.HASH
    assert "description" in str(error)


def test_parameters_with_new_hashes_fail_the_control_forward():
    error = refused(changed(cell_file(of_seed()), II, lambda a: a + np.float32(0.01), rehash=True))
    assert error.stage is Stage.CONTROL
    assert error.leaf.startswith("cell.")
    assert "rtol 1e-5, atol 1e-6 is allowed (cpu)" in str(error)


def test_swapped_gates_with_new_hashes_fail_the_control_forward():
    tensors, document = opened(cell_file(of_seed()))
    tensors["params/cell.ii.kernel"], tensors["params/cell.io.kernel"] = (
        tensors["params/cell.io.kernel"],
        tensors["params/cell.ii.kernel"],
    )
    assert refused(closed(tensors, document, rehash=True)).stage is Stage.CONTROL


def test_a_file_cannot_widen_its_own_tolerance():
    tensors, document = opened(changed(cell_file(of_seed()), II, lambda a: a + np.float32(0.01), rehash=True))
    document["control"]["tolerance"]["cpu"] = {"rtol": 0.1, "atol": 0.1}
    error = refused(closed(tensors, document))
    assert error.stage is Stage.CONTROL
    assert "no more than" in str(error)


def test_a_file_may_narrow_its_tolerance():
    tensors, document = opened(cell_file(of_seed()))
    document["control"]["tolerance"]["cpu"] = {"rtol": 0, "atol": 0}
    assert load_cell(closed(tensors, document)) == of_seed()


def test_parameters_whose_products_overflow_are_not_saved():
    leaves = {
        p: np.full_like(a, 3e38) * (1 - 2 * (np.arange(a.size).reshape(a.shape) % 2))
        for p, a in of_seed().leaves.items()
    }
    with pytest.raises(WeightsRefused) as caught:
        weights_of(of_seed().architecture, leaves)
    assert caught.value.stage is Stage.CONTROL


def test_nan_parameters_are_not_saved():
    leaves = {p: np.full_like(a, np.nan) for p, a in of_seed().leaves.items()}
    with pytest.raises(WeightsRefused) as caught:
        weights_of(of_seed().architecture, leaves)
    assert caught.value.stage is Stage.FINITE


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("kind", KINDS)
def test_parameters_kept_in_half_precision_come_back_as_they_are(kind, dtype):
    cell = KINDS[kind].cell(
        3, 4, param_dtype=dtype, recurrent_kernel_init=nnx.initializers.normal(0.3), rngs=nnx.Rngs(0)
    )
    saved = weights_of_cell(cell)
    assert saved.architecture.param_dtype == dtype
    found = load_cell(cell_file(saved))
    assert found == saved
    assert {a.dtype.name for a in found.leaves.values()} == {dtype}


def test_a_set_that_comes_back_is_checked_again():
    saved = load_cell(cell_file(of_seed()))
    assert recheck(saved) == saved
    spoilt = weights_of_seed(saved.architecture, 8)
    with pytest.raises(WeightsRefused) as caught:
        recheck(replace(saved, leaves=spoilt.leaves))
    assert caught.value.stage is Stage.CONTROL


def test_the_file_says_what_it_holds_in_plain_json():
    document = json.loads(read(cell_file(of_seed())).metadata[NAME])
    assert document["architecture"] == {
        "cell": "LSTMCell",
        "in_features": 3,
        "hidden_features": 4,
        "cells": ["cell"],
        "param_dtype": "float32",
    }
    leaf = document["sections"]["params"]["leaves"]["cell.ii.kernel"]
    assert leaf == {"shape": [3, 4], "dtype": "float32", "variable": "Param"}
    assert set(document["control"]["tolerance"]) == {"cpu", "gpu", "tpu"}


@pytest.mark.parametrize(("name", "size"), [("in_features", 3.0), ("hidden_features", 4.0)])
def test_a_size_that_is_no_whole_number_is_refused(name, size):
    """To JSON Schema 3.0 is an integer; to JAX it is no size."""
    tensors, document = opened(cell_file(of_seed()))
    document["architecture"][name] = size
    why = refused(closed(tensors, document))
    assert why.stage is Stage.SCHEMA
    assert name in str(why)


@pytest.mark.parametrize("text", ["\x1b[2J", "\ud800", "\u202e", "a\nb"])
def test_a_letter_that_cannot_be_shown_is_refused_by_its_place(text):
    tensors, document = opened(cell_file(of_seed()))
    document["versions"]["jax"] = text
    why = refused(closed(tensors, document))
    assert (why.stage, str(why).isprintable()) == (Stage.SCHEMA, True)
    assert "versions.jax" in str(why)


def test_a_signalling_nan_is_found_without_a_warning():
    tensors, document = opened(cell_file(of_seed()))
    bits = tensors[II].copy().view(np.uint32)
    bits[0, 0] = 0x7F800001
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert refused(closed({**tensors, II: bits.view(np.float32)}, document)).stage is Stage.FINITE
