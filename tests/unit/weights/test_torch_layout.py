"""PyTorch's layout both ways, against its equations as the documentation has them, written out here by gate."""

from __future__ import annotations

import numpy as np
import pytest
from flax import nnx

from core.runners.cell_formulas import KINDS
from core.weights import torch_layout
from core.weights.architecture import ONE, TWO
from core.weights.cell import Origin, cell_file
from core.weights.container import read, write
from core.weights.load import load_cell
from core.weights.refusal import Stage, WeightsRefused
from core.weights.torch_layout import torch_file, torch_tensors
from tests.unit.weights.support import drawn, of_seed, refused

F, H = 3, 4
LSTMS = ("LSTMCell", "OptimizedLSTMCell")


def state_dict(gates=4, tail="", seed=0, features=F, hidden=H, dtype=np.float32, prefix=""):
    """What `module.state_dict()` holds: `torch.nn.LSTMCell` without a tail, `torch.nn.LSTM` with ``_l0``."""
    rng = np.random.default_rng(seed)
    shapes = {
        "weight_ih": (gates * hidden, features),
        "weight_hh": (gates * hidden, hidden),
        "bias_ih": (gates * hidden,),
        "bias_hh": (gates * hidden,),
    }
    tensors = {f"{prefix}{n}{tail}": rng.uniform(-0.7, 0.7, s).astype(dtype) for n, s in shapes.items()}
    if gates == 3:
        tensors[f"{prefix}bias_hh{tail}"][2 * hidden :] = 0
    return tensors


def both_ways(**how):
    return state_dict(tail="_l0", **how) | state_dict(tail="_l0_reverse", seed=1, **how)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def by_the_documentation(tensors, c, h, x):
    """One step of torch.nn.LSTMCell: each W and b of the page cut out by its name."""
    names = ("i", "f", "g", "o")
    w_i = dict(zip(names, np.split(tensors["weight_ih"].astype(np.float64), 4), strict=True))
    w_h = dict(zip(names, np.split(tensors["weight_hh"].astype(np.float64), 4), strict=True))
    b_i = dict(zip(names, np.split(tensors["bias_ih"].astype(np.float64), 4), strict=True))
    b_h = dict(zip(names, np.split(tensors["bias_hh"].astype(np.float64), 4), strict=True))
    pre = {n: (w_i[n] @ x + b_i[n]) + (w_h[n] @ h + b_h[n]) for n in names}
    new_c = sigmoid(pre["f"]) * c + sigmoid(pre["i"]) * np.tanh(pre["g"])
    return new_c, sigmoid(pre["o"]) * np.tanh(new_c)


def flax_cell(weights, cell="cell"):
    made = KINDS[weights.architecture.cell].cell(F, H, rngs=nnx.Rngs(0))
    ours = weights.of_cell(cell)
    flat = nnx.to_flat_state(nnx.state(made))
    nnx.update(made, nnx.from_flat_state([(p, v.replace(ours[".".join(p)])) for p, v in flat]))
    return made


@pytest.mark.parametrize("tail", ["", "_l0"])
@pytest.mark.parametrize("kind", LSTMS)
def test_an_imported_lstm_computes_what_the_documentation_says(kind, tail):
    found = load_cell(write(state_dict(tail=tail), {}), kind)
    rng = np.random.default_rng(5)
    c, h, x = (rng.standard_normal(n).astype(np.float32) for n in (H, H, F))
    (new_c, new_h), y = flax_cell(found)((c, h), x)
    want_c, want_h = by_the_documentation(state_dict(), c, h, x)
    np.testing.assert_allclose(new_c, want_c, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(new_h, want_h, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(y, want_h, rtol=1e-5, atol=1e-6)


def test_an_imported_gru_computes_what_the_documentation_says():
    tensors = state_dict(gates=3)
    found = load_cell(write(tensors, {}), "GRUCell")
    rng = np.random.default_rng(5)
    h, x = (rng.standard_normal(n).astype(np.float32) for n in (H, F))
    w_ir, w_iz, w_in = np.split(tensors["weight_ih"], 3)
    w_hr, w_hz, w_hn = np.split(tensors["weight_hh"], 3)
    b_ir, b_iz, b_in = np.split(tensors["bias_ih"], 3)
    b_hr, b_hz, b_hn = np.split(tensors["bias_hh"], 3)
    r = sigmoid(w_ir @ x + b_ir + w_hr @ h + b_hr)
    z = sigmoid(w_iz @ x + b_iz + w_hz @ h + b_hz)
    n = np.tanh(w_in @ x + b_in + r * (w_hn @ h + b_hn))
    new_h, _ = flax_cell(found)(h, x)
    np.testing.assert_allclose(new_h, (1 - z) * n + z * h, rtol=1e-5, atol=1e-6)


def test_a_bidirectional_layer_has_its_two_cells():
    found = load_cell(write(both_ways(), {}))
    assert found.architecture.cells == TWO
    one = load_cell(write(state_dict(seed=1), {}))
    assert np.array_equal(found.leaves["backward.ii.kernel"], one.leaves["cell.ii.kernel"])
    assert "weight_ih_l0_reverse" in next(row.source for row in found.rows if row.path == "backward.ii.kernel")


def test_the_table_says_rows_gate_transposition_and_both_biases():
    rows = {row.path: row for row in load_cell(write(state_dict(tail="_l0"), {})).rows}
    assert rows["cell.if_.kernel"].source == "weight_ih_l0[4:8], f"
    assert rows["cell.if_.kernel"].change == "transposed"
    assert rows["cell.ho.bias"].source == "bias_ih_l0[12:16] + bias_hh_l0[12:16], o"
    assert rows["cell.ho.bias"].change == "the two biases added"
    assert rows["cell.ii.kernel"].type == "float32[3,4]"


def test_a_prefix_of_a_larger_model_is_taken_off_and_shown():
    found = load_cell(write(state_dict(tail="_l0", prefix="encoder.rnn."), {}))
    assert found == load_cell(write(state_dict(), {}))
    assert found.rows[0].source.startswith("encoder.rnn.weight_ih_l0")


def test_a_layer_without_biases_gets_zeros_and_says_so():
    tensors = {n: a for n, a in state_dict().items() if n.startswith("weight")}
    found = load_cell(write(tensors, {}))
    assert not found.leaves["cell.hf.bias"].any()
    assert "bias=False" in next(row.change for row in found.rows if row.path == "cell.hf.bias")


def test_half_precision_is_widened_exactly_and_said():
    found = load_cell(write(state_dict(dtype=np.float16), {}))
    assert np.array_equal(found.leaves["cell.ii.kernel"], state_dict(dtype=np.float16)["weight_ih"][:H].T)
    assert "widened from float16" in found.rows[0].change


# --- there and back -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*LSTMS, "GRUCell"])
@pytest.mark.parametrize("cells", [ONE, TWO])
def test_what_is_exported_comes_back_as_the_same_parameters(kind, cells):
    saved = drawn(kind, cells=cells)
    for layer in (True, False):
        assert load_cell(torch_file(saved, layer=layer), kind) == saved


@pytest.mark.parametrize("tensors", [state_dict(), both_ways()], ids=["one", "two"])
def test_a_pytorch_file_goes_back_with_its_two_biases_as_they_were(tensors):
    found = load_cell(write(tensors, {}))
    back = torch_tensors(found, layer=False)
    assert set(back) == set(tensors)
    assert {n: a.tobytes() for n, a in back.items()} == {
        n: np.ascontiguousarray(a).tobytes() for n, a in tensors.items()
    }


def test_one_bias_goes_to_bias_ih_and_zeros_to_bias_hh():
    saved = drawn()
    tensors = torch_tensors(saved, layer=False)
    assert np.array_equal(tensors["bias_ih"][H : 2 * H], saved.leaves["cell.hf.bias"])
    assert not tensors["bias_hh"].any()


def test_an_imported_set_that_is_saved_here_has_one_bias():
    found = load_cell(cell_file(load_cell(write(state_dict(), {}))))
    assert found.origin is Origin.FILE
    assert not found.torch


def test_lstm_and_optimized_lstm_are_the_same_pytorch_layer():
    plain = torch_tensors(load_cell(write(state_dict(), {}), "LSTMCell"), layer=True)
    wide = torch_tensors(load_cell(write(state_dict(), {}), "OptimizedLSTMCell"), layer=True)
    assert all(np.array_equal(plain[name], wide[name]) for name in plain)


def test_layer_and_cell_have_the_names_that_pytorch_gives_them():
    saved = of_seed()
    assert set(torch_tensors(saved, layer=False)) == {"weight_ih", "weight_hh", "bias_ih", "bias_hh"}
    assert set(torch_tensors(saved, layer=True)) == {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"}
    assert read(torch_file(saved, layer=True)).metadata == {"format": "pt"}


def test_a_simple_cell_has_no_such_layer():
    with pytest.raises(ValueError):
        torch_tensors(of_seed("SimpleCell"), layer=True)


# --- what is not taken ----------------------------------------------------------------------------------------------


def without(tensors, name):
    return {n: a for n, a in tensors.items() if n != name}


@pytest.mark.parametrize(
    ("tensors", "said"),
    [
        (state_dict(tail="_l0") | {"weight_ih_l1": np.ones((16, 4), np.float32)}, "layer 1"),
        (state_dict(tail="_l0") | {"weight_hr_l0": np.ones((2, 4), np.float32)}, "proj_size"),
        (state_dict() | {"fc.weight": np.ones((2, 4), np.float32)}, "fc.weight"),
        (state_dict(tail="_l0") | state_dict(prefix="b."), "more than one layer"),
        (without(state_dict(), "weight_hh"), "weight_hh is missing"),
        (without(state_dict(), "bias_hh"), "bias_hh is missing"),
        (state_dict(tail="_l0_reverse"), "no forward direction"),
        (without(both_ways(), "bias_ih_l0_reverse"), "bias_ih (reverse) is missing"),
        (state_dict() | {"weight_ih": np.ones(16, np.float32)}, "2 axes"),
        (state_dict() | {"weight_hh": np.ones((15, 4), np.float32)}, "(15, 4)"),
        (state_dict() | {"weight_ih": np.ones((12, 3), np.float32)}, "(16, 3)"),
        (state_dict() | {"bias_ih": np.ones(12, np.float32)}, "(16,)"),
        (state_dict(gates=1), "tanh or relu"),
        (state_dict(gates=3), "PyTorch GRU"),
        (state_dict(dtype=np.float64), "float64"),
        (state_dict(hidden=300, features=1), "hidden_features = 300"),
        (both_ways() | {"weight_ih_l0_reverse": np.ones((16, 5), np.float32)}, "(16, 3)"),
    ],
)
def test_other_layers_are_refused_by_name(tensors, said):
    error = refused(write(tensors, {}))
    assert error.stage is Stage.LEAVES
    assert said in str(error)


def test_an_lstm_is_refused_for_a_gru_and_a_simple_cell():
    for kind in ("GRUCell", "SimpleCell"):
        assert f"the cell here is {kind}" in str(refused(write(state_dict(), {}), kind))


def test_a_gru_with_b_hn_is_refused_with_the_reason_and_the_number():
    tensors = state_dict(gates=3)
    tensors["bias_hh"][2 * H + 1] = 0.25
    error = refused(write(tensors, {}), "GRUCell")
    assert error.leaf == "bias_hh"
    assert "0.25" in str(error)
    assert "reset gate" in str(error)


def test_a_nan_is_named():
    tensors = state_dict()
    tensors["bias_hh"][5] = np.nan
    error = refused(write(tensors, {}))
    assert error.stage is Stage.FINITE
    assert error.leaf == "bias_hh"


@pytest.mark.parametrize("order", [(0, 1, 3, 2), (1, 0, 2, 3), (3, 1, 2, 0)])
def test_gates_read_in_another_order_do_not_pass_the_equations(monkeypatch, order):
    real = torch_layout._blocks

    def wrong(kind):
        blocks = real(kind)
        return [(gate, blocks[at][1]) for (gate, _), at in zip(blocks, order, strict=True)]

    monkeypatch.setattr(torch_layout, "_blocks", wrong)
    with pytest.raises(WeightsRefused) as caught:
        load_cell(write(state_dict(), {}))
    assert caught.value.stage is Stage.CONTROL
    assert "PyTorch's equations" in str(caught.value)
