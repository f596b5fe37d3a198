"""The panel "Weights" of the LSTM and the Sequence page through AppTest, always from app.py."""

from __future__ import annotations

import html
import io
import pickle
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.weights.architecture import TWO
from core.weights.cell import cell_file
from core.weights.container import write
from core.weights.torch_layout import torch_file
from pages.widgets import weights_state
from tests.unit.weights.support import changed, drawn, of_seed

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 120


def opened(page: str, query: dict[str, str] | None = None) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT)
    at.run()
    for name, value in (query or {}).items():
        at.query_params[name] = value
    at.switch_page(f"pages/views/{page}.py")
    return ran(at)


def ran(at: AppTest) -> AppTest:
    at.run()
    assert not at.exception
    assert not at.error, [e.value for e in at.error]
    return at


def text_of(fragment: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", fragment.replace("<wbr>", "")))).strip()


def said(at: AppTest) -> str:
    """All small texts of the page: marks and quiet lines."""
    bodies = [e.proto.body for e in at.get("html")]
    return " | ".join(text_of(b) for b in bodies if 'class="cl-mark' in b or 'class="cl-quiet"' in b)


def tables(at: AppTest) -> str:
    return " | ".join(text_of(e.proto.body) for e in at.get("html") if 'class="cl-table' in e.proto.body)


def load(at: AppTest, data: bytes, name: str = "some.safetensors") -> AppTest:
    (box,) = [one for one in at.get("file_uploader") if one.proto.label.startswith("Load a")]
    box.set_value((name, data, "application/octet-stream"))
    return ran(at)


def press(at: AppTest, key: str) -> AppTest:
    at.button(key=key).click()
    return ran(at)


def output(at: AppTest) -> np.ndarray:
    """The step's output as the page's last look has it."""
    return at.session_state["lstm:last"].step.output


def tampered(data: bytes) -> bytes:
    def nudge(array):
        array.view(np.uint32)[0, 0] ^= 1
        return array

    return changed(data, "params/cell.ii.kernel", nudge)


@pytest.fixture
def at() -> AppTest:
    return opened("lstm")


def test_a_file_is_taken_used_and_named_by_its_hash(at):
    weights, before = drawn(), output(at)
    load(at, cell_file(weights))
    assert f"some.safetensors was taken: LSTMCell, F = 3, H = 4, hash {weights.short}" in said(at)
    assert f"Weights from a file, hash {weights.short}: the parameter seed is not used." in said(at)
    assert not np.array_equal(output(at), before)
    assert at.session_state["lstm:values"]["weights"] == weights.in_link
    assert at.session_state["lstm:last"].step.numpy.within


def test_nothing_of_the_numbers_is_in_the_link(at):
    load(at, cell_file(drawn()))
    assert {name: at.query_params[name] for name in at.query_params} == {"v": "1", "w": drawn().in_link}


def test_a_refused_file_says_check_leaf_and_reason_and_changes_nothing(at):
    before = output(at)
    load(at, tampered(cell_file(drawn())), "broken.safetensors")
    assert "broken.safetensors was refused at “hash”: The arrays of “params” were changed" in said(at)
    assert "Nothing was changed." in said(at)
    assert np.array_equal(output(at), before)
    assert at.button(key="lstm_weights_roll_back").disabled


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.pkl", bytes(20_000_000))
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (pickle.dumps({"weight_ih": [1.0]}), "This is a pickle"),
        (zipped(), "This is a zip archive"),
        (cell_file(drawn())[:-20], "cut short"),
        (write({"kernel": np.ones((2, 2), np.float32)}, {}), "Unverified"),
        (cell_file(drawn(cells=TWO)), "the Sequence page takes both"),
        (b"\0" * 40, "not the JSON of a safetensors file"),
        (write({"a": np.ones((1,) * 20, np.float32)}, {}), "a has 20 axes"),
    ],
    ids=["pickle", "zip", "short", "foreign", "two cells", "zeros", "axes"],
)
def test_bad_files_are_named(at, data, words):
    load(at, data, "model.pt")
    assert f"{words}" in said(at)
    assert "Nothing was changed." in said(at)


def test_a_fault_of_ours_is_a_sentence_and_changes_nothing(at, monkeypatch, caplog):
    def fails(*_):
        raise ValueError("secret 0.125")

    before = output(at)
    monkeypatch.setattr(weights_state, "load_cell", fails)
    load(at, cell_file(drawn()))
    assert "Carry Lab failed here, not you. Nothing was changed. (ValueError)" in said(at)
    assert np.array_equal(output(at), before)
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text


def test_rolling_back_and_forth(at):
    seeds, first, second = output(at), drawn(seed=1), drawn(seed=2)
    load(at, cell_file(first))
    with_first = output(at)
    load(at, cell_file(second))
    with_second = output(at)
    press(at, "lstm_weights_roll_back")
    assert np.array_equal(output(at), with_first)
    assert f"Rolled back to the weights {first.short}; its control forward was run again" in said(at)
    press(at, "lstm_weights_roll_back")
    assert np.array_equal(output(at), with_second)
    press(at, "lstm_weights_to_seed")
    assert np.array_equal(output(at), seeds)
    assert "Back to the seed's parameters." in said(at)
    press(at, "lstm_weights_roll_back")
    assert np.array_equal(output(at), with_second)


def test_rolling_back_from_the_first_file_gives_the_seeds_parameters(at):
    before = output(at)
    load(at, cell_file(drawn()))
    press(at, "lstm_weights_roll_back")
    assert np.array_equal(output(at), before)
    assert "Rolled back to the parameters of seed 0" in said(at)
    assert at.session_state["lstm:values"]["weights"] == ""


def test_a_file_that_was_refused_after_a_good_one_leaves_the_good_one(at):
    load(at, cell_file(drawn()))
    before = output(at)
    load(at, tampered(cell_file(drawn(seed=2))))
    assert np.array_equal(output(at), before)
    assert drawn().short in said(at)
    press(at, "lstm_weights_roll_back")
    assert "seed 0" in said(at)


def test_another_size_names_the_leaf_and_offers_to_set_the_page(at):
    load(at, cell_file(drawn(hidden=6)))
    assert "params/cell.hf.bias is float32[6] in the file" in said(at) or "float32[3,6]" in said(at)
    assert at.session_state["lstm:values"]["hidden_features"] == 4
    press(at, "lstm_weights_fit")
    assert at.session_state["lstm:values"]["hidden_features"] == 6
    assert drawn(hidden=6).short in said(at)
    assert output(at).shape == (2, 6)


def test_another_cell_says_so_in_words(at):
    load(at, cell_file(drawn("GRUCell")))
    assert "the file is for GRUCell, F = 3, H = 4, and the page has LSTMCell, F = 3, H = 4" in said(at)
    press(at, "lstm_weights_fit")
    assert at.session_state["lstm:values"]["cell"] == "GRUCell"
    assert at.session_state["lstm:last"].step.numpy.within


def test_sizes_that_no_longer_fit_are_said_and_the_seeds_are_used(at):
    weights = drawn()
    load(at, cell_file(weights))
    at.number_input(key="lstm_hidden_features").set_value(5)
    ran(at)
    assert (
        f"Weights {weights.short} are for LSTMCell, F = 3, H = 4, and the page asks for LSTMCell, F = 3, H = 5"
        in said(at)
    )
    assert at.session_state["lstm:last"].inputs.used is None
    at.number_input(key="lstm_hidden_features").set_value(4)
    ran(at)
    assert at.session_state["lstm:last"].inputs.used == weights


def test_a_pytorch_file_shows_what_was_done_to_it(at):
    load(at, torch_file(drawn(), layer=False))
    assert "Read from PyTorch's layout" in said(at)
    assert "weight_ih[0:4], i transposed" in tables(at)
    assert "bias_ih[12:16] + bias_hh[12:16], o the two biases added" in tables(at)


def test_a_link_elsewhere_says_that_the_weights_are_not_there():
    at = opened("lstm", {"w": drawn().in_link})
    assert f"The link names weights {drawn().in_link}, which are not here" in said(at)
    assert at.session_state["lstm:last"].inputs.used is None


def test_two_sessions_do_not_share_them(at):
    load(at, cell_file(drawn()))
    other = opened("lstm", {"w": drawn().in_link})
    assert "which are not here" in said(other)


def test_a_mad_hash_in_a_link_is_said_back_harmlessly():
    at = opened("lstm", {"w": "<script>alert(1)"})
    assert "not here" in said(at)
    assert not [e for e in at.get("html") if "<script>alert" in e.proto.body]


def test_save_and_pytorch_are_offered_and_a_simple_cell_has_no_pytorch_layer(at):
    labels = {one.proto.label: one.proto.disabled for one in at.get("download_button")}
    assert labels["Save (.safetensors)"] is False
    assert labels["Save for PyTorch"] is False
    simple = opened("lstm", {"cell": "SimpleCell"})
    labels = {one.proto.label: one.proto.disabled for one in simple.get("download_button")}
    assert labels["Save for PyTorch"] is True


def test_inputs_that_build_no_cell_offer_nothing_to_save():
    at = opened("lstm")
    at.number_input(key="lstm_hidden_features").set_value(0)
    ran(at)
    labels = {one.proto.label: one.proto.disabled for one in at.get("download_button")}
    assert labels["Save (.safetensors)"] is True


# --- Sequence -------------------------------------------------------------------------------------------------------


def test_the_sequence_page_takes_both_directions():
    at = opened("sequence")
    weights = drawn(cells=TWO)
    load(at, cell_file(weights))
    assert "the file is for LSTMCell both ways" in said(at)
    press(at, "sequence_weights_fit")
    assert at.session_state["sequence:values"]["direction"] == "bidirectional"
    look = at.session_state["sequence:last"]
    assert look.inputs.used == weights
    assert look.numpy.within


def test_the_sequence_page_runs_with_a_file_and_comes_back():
    at = opened("sequence")
    before = at.session_state["sequence:last"].result.outputs
    load(at, cell_file(drawn()))
    assert not np.array_equal(at.session_state["sequence:last"].result.outputs, before)
    assert f"Weights from a file, hash {drawn().short}" in said(at)
    press(at, "sequence_weights_to_seed")
    assert np.array_equal(at.session_state["sequence:last"].result.outputs, before)


def test_the_seeds_own_file_is_a_file_too(at):
    before = output(at)
    load(at, cell_file(of_seed(seed=0)))
    assert np.array_equal(output(at), before)
    assert f"hash {of_seed(seed=0).short}" in said(at)
