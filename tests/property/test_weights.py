"""Files of parameters: whatever is in them comes back bit for bit, and whatever was changed is refused or changes nothing."""

from __future__ import annotations

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from core.runners.cell_formulas import KINDS
from core.weights.architecture import ONE, PARAM_DTYPES, TWO, Architecture, expected
from core.weights.cell import cell_file, weights_of
from core.weights.container import DTYPES, read, write
from core.weights.load import load_cell
from core.weights.refusal import Stage, WeightsRefused
from core.weights.torch_layout import torch_file

#: Few sizes: each is compiled once.
SIZES = ((1, 1), (3, 2), (2, 5))


def bits(values):
    return {path: (a.dtype.name, a.shape, a.tobytes()) for path, a in values.items()}


@st.composite
def sets(draw, kinds=tuple(KINDS), dtypes=PARAM_DTYPES):
    """Parameters of any size of number, negative zero and subnormals among them."""
    features, hidden = draw(st.sampled_from(SIZES))
    dtype = draw(st.sampled_from(dtypes))
    architecture = Architecture(
        draw(st.sampled_from(kinds)), features, hidden, draw(st.sampled_from((ONE, TWO))), dtype
    )
    floats = st.floats(-4, 4, width=32) | st.sampled_from((0.0, -0.0, 1e-40, 1e-7))
    leaves = {
        path: draw(arrays.arrays(np.float32, aval.shape, elements=floats)).astype(aval.dtype)
        for path, aval in expected(architecture).items()
    }
    return weights_of(architecture, leaves)


@given(sets())
def test_parameters_come_back_bit_for_bit(saved):
    found = load_cell(cell_file(saved))
    assert bits(found.leaves) == bits(saved.leaves)
    assert found == saved


@given(sets(kinds=("LSTMCell", "OptimizedLSTMCell", "GRUCell"), dtypes=("float32",)), st.booleans())
def test_pytorchs_layout_there_and_back_gives_the_same_numbers(saved, layer):
    found = load_cell(torch_file(saved, layer=layer), saved.architecture.cell)
    # Equal numbers: a sum of −0 and 0 is 0, which no equation can tell from −0.
    assert all(np.array_equal(found.leaves[path], saved.leaves[path]) for path in saved.leaves)
    assert {array.dtype.name for array in found.leaves.values()} == {"float32"}


@given(
    st.sampled_from(("LSTMCell", "OptimizedLSTMCell", "GRUCell")), st.integers(0, 1_000), st.sampled_from((1, 30, 300))
)
def test_large_weights_from_pytorch_are_right_in_spite_of_their_roundings(kind, seed, size):
    saved = weights_of(
        architecture := Architecture(kind, 2, 5),
        {
            path: np.random.default_rng(seed).uniform(-size, size, aval.shape).astype(np.float32)
            for path, aval in expected(architecture).items()
        },
    )
    found = load_cell(torch_file(saved, layer=False), kind)
    assert all(np.array_equal(found.leaves[path], saved.leaves[path]) for path in saved.leaves)


WHOLE = {}


@pytest.fixture(scope="module", autouse=True)
def _files():
    for kind in KINDS:
        architecture = Architecture(kind, 1, 1)
        leaves = {p: np.full(a.shape, 0.3, a.dtype) for p, a in expected(architecture).items()}
        saved = weights_of(architecture, leaves)
        WHOLE[kind] = saved, cell_file(saved)
    yield
    WHOLE.clear()


@given(st.sampled_from(tuple(KINDS)), st.data())
def test_any_one_byte_that_is_changed_is_refused_or_changes_nothing(kind, data):
    saved, whole = WHOLE[kind]
    at = data.draw(st.integers(0, len(whole) - 1))
    other = data.draw(st.integers(0, 255))
    assume(other != whole[at])
    try:
        found = load_cell(whole[:at] + bytes([other]) + whole[at + 1 :])
    except WeightsRefused:
        return
    assert bits(found.leaves) == bits(saved.leaves)
    assert bits(found.control.arrays) == bits(saved.control.arrays)
    assert found.architecture == saved.architecture
    assert found.seed == saved.seed


def test_every_byte_of_the_arrays_is_under_a_hash():
    _, whole = WHOLE["GRUCell"]
    begins = 8 + int.from_bytes(whole[:8], "little")
    for at in range(begins, len(whole)):
        with pytest.raises(WeightsRefused):
            load_cell(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])


@given(st.sampled_from(tuple(KINDS)), st.binary(max_size=30), st.data())
def test_bytes_that_are_cut_out_or_put_in_are_refused(kind, more, data):
    _, whole = WHOLE[kind]
    begin = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(begin, len(whole)))
    changed = whole[:begin] + more + whole[end:]
    assume(changed != whole)
    try:
        assert load_cell(changed) == WHOLE[kind][0]
    except WeightsRefused:
        return


@given(st.binary(max_size=300))
def test_no_bytes_raise_anything_but_a_refusal(data):
    with pytest.raises(WeightsRefused) as caught:
        load_cell(data)
    assert caught.value.stage in (Stage.SIZE, Stage.FORMAT, Stage.SCHEMA)


@given(st.text(max_size=200))
def test_no_header_raises_anything_but_a_refusal(text):
    header = text.encode("utf-8", "surrogatepass")
    with pytest.raises(WeightsRefused):
        load_cell(len(header).to_bytes(8, "little") + header)


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12).filter(
            lambda n: n != "__metadata__"
        ),
        st.sampled_from([np.dtype(d) for d in DTYPES.values()]).flatmap(
            lambda d: arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3).map(
                lambda s: np.arange(int(np.prod(s))).reshape(s).astype(d)
            )
        ),
        min_size=1,
        max_size=5,
    )
)
def test_any_arrays_come_back_from_the_container(tensors):
    assert bits(read(write(tensors, {})).tensors) == bits(tensors)
