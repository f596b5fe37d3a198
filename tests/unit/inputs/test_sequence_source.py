"""The program is the page: it runs by itself, gives the same numbers, and the Doctor judges it the same way."""

import contextlib
import io
from dataclasses import replace

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.base.outcome import Outcome
from core.base.sequences import Slip
from core.doctor.check import check_script
from core.inputs.sequence_breaks import SWITCHES, edit_of
from core.inputs.sequence_fields import DIRECTIONS, MASKINGS, PADDINGS, SLIPS, SOURCES, TYPED
from core.inputs.sequence_follow import follow
from core.inputs.sequence_inputs import SequenceInputs
from core.inputs.sequence_padding import written_lengths, written_mask
from core.inputs.sequence_page import look_at
from core.inputs.sequence_source import source, source_changes
from core.runners.cell_formulas import KINDS

OPENING = SequenceInputs()
#: One small shape: what is compiled for one example serves the next.
B, T, F, H = 2, 4, 2, 3
SMALL = replace(OPENING, batch=B, length=T, in_features=F, hidden_features=H, lengths="4, 2")


def run_text(text, *, jit=True):
    """Its names and what it printed. Without jit a scan is a Python loop: nothing is compiled for four steps."""
    names, said = {}, io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.nullcontext() if jit else jax.disable_jit():
        exec(text, names)
    return names, said.getvalue()


def same(inputs, *, jit=False):
    """Run both: the same exception, or the same data, outputs and final carry. Gives the look."""
    look = look_at(inputs)
    if look.raised is not None:
        with pytest.raises(type(look.raised.error)):
            run_text(look.program)
        return look
    names, said = run_text(look.program, jit=jit or not look.trial.length)  # JAX has no loop over nothing
    assert "final carry:" in said
    np.testing.assert_array_equal(names["x"], look.trial.inputs)
    if Slip.UNPACKED in inputs.slips:
        rows = np.stack([names["carry"], names["ys"]])
        np.testing.assert_allclose(rows, look.result.outputs.swapaxes(0, 1), rtol=1e-5, atol=1e-6)
        return look
    ys = names["ys"] if inputs.time_major else names["ys"].swapaxes(0, 1)
    np.testing.assert_allclose(ys, look.result.outputs, rtol=1e-5, atol=1e-6)
    got = jax.tree.leaves(names["carry"])
    want = [part for direction in look.result.directions for part in direction.final]
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    return look


def test_the_opening_reads_as_one_would_write_it():
    assert source(OPENING) == (
        "import jax\nimport jax.numpy as jnp\nimport numpy as np\nfrom flax import nnx\n\n"
        "b, t, f = np.ogrid[:3, :8, :3]\n"
        "x = np.sin(2 * np.pi * t / 16 + (3 * b + f) * np.pi / 4)\n"
        "x[1, 5:] = 0.0  # padding\n"
        "x[2, 3:] = 0.0  # padding\n"
        "x = jnp.asarray(x, jnp.float32)  # (B, T, F)\n\n"
        "lengths = jnp.array([8, 5, 3])\n\n"
        "cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))\n\n"
        "rnn = nnx.RNN(cell)\n"
        "carry, ys = rnn(x, seq_lengths=lengths, return_carry=True)\n\n"
        'print("final carry:", carry)\nprint("outputs:", ys.shape)\n'
    )


@pytest.mark.parametrize("masking", MASKINGS)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("keep_order", [False, True])
def test_each_way_through_the_sequence(masking, direction, keep_order):
    inputs = replace(SMALL, masking=masking, direction=direction, keep_order=keep_order, init="normal")
    same(inputs, jit=not keep_order)


@pytest.mark.parametrize("cell", KINDS)
@pytest.mark.parametrize("init", ["zeros", "normal", "left over"])
def test_each_cell_from_each_start(cell, init):
    same(replace(SMALL, cell=cell, init=init, seed=3, source="noise"))


@pytest.mark.parametrize("source_", [s for s in SOURCES if s != TYPED])
@pytest.mark.parametrize("axes", ["BTF", "TBF"])
def test_each_kind_of_data_in_each_order(source_, axes):
    for padding in PADDINGS:
        inputs = replace(SMALL, source=source_, padding=padding, axes=axes, time_major=axes == "TBF", data_seed=4)
        names, _ = run_text(source(inputs).split("\n\ncell")[0])
        np.testing.assert_array_equal(names["x"], look_at(inputs).trial.inputs)
        holes = replace(inputs, masking="mask", mask="1011, 0110")
        names, _ = run_text(source(holes).split("\n\ncell")[0])
        np.testing.assert_array_equal(names["x"], look_at(holes).trial.inputs)
        assert np.array_equal(names["mask"], look_at(holes).trial.mask)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("masking", MASKINGS)
def test_a_cell_built_in_the_step_gives_the_same_numbers(direction, masking):
    init = "left over" if masking == "mask" else "zeros"
    same(replace(SMALL, slip="built_in_step", direction=direction, masking=masking, init=init))


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda s: s.id)
def test_a_switch_in_code_does_what_the_page_does(switch):
    look = same(SequenceInputs.of({**SMALL.values, **edit_of(SMALL, switch)}))
    assert look.report.codes == (switch.code,)


@pytest.mark.parametrize(
    "values",
    [
        {"numbers": "[[[1, 2], [nan, 4]], [[5, inf], [−7, 8e-9]]]", "padding": "noise"},
        {"numbers": "1, 2\n3, 4\n5, 6"},
        {"numbers": "1, 2, 3", "axes": "TBF", "time_major": True},
        {"numbers": "full((2, 3, 2), nan)"},
        {"numbers": "zeros(2, 0, 2)", "lengths": ""},
        {"numbers": "[[[1e39, 0]]]"},
    ],
)
def test_typed_numbers_are_in_the_program(values):
    same(SequenceInputs.of(follow(SMALL.values, {"source": "typed", **values})))


def test_a_typed_carry_is_in_the_program():
    inputs = replace(SMALL, init="typed", init_c="1 2 3\n4 5 nan", init_h="zeros(2, 3)")
    for direction in DIRECTIONS:
        same(replace(inputs, direction=direction))
    same(replace(inputs, cell="GRUCell", init_h="1 2 3\n4 5 6", masking="mask"))


@pytest.mark.parametrize("masking", MASKINGS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_no_steps_and_one_example(masking, direction):
    same(replace(SMALL, length=0, lengths="", masking=masking, direction=direction, init="normal"))
    same(replace(SMALL, batch=1, lengths="3", masking=masking, direction=direction))


@pytest.mark.parametrize("lengths", ["4, 0", "9, 2", "4, -1", "4, 2.5", "4", "4, 2, 1"])
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_bad_lengths_do_in_code_what_they_do_on_the_page(lengths, direction):
    same(replace(SMALL, lengths=lengths, direction=direction, source="noise", padding="as it is"))


@pytest.mark.parametrize("masking", MASKINGS)
def test_a_wrong_axis_order_does_in_code_what_it_does_on_the_page(masking):
    same(replace(SMALL, time_major=True, masking=masking))
    same(replace(SMALL, axes="TBF", masking=masking, slip="built_in_step", lengths="", batch=T))


def test_many_examples_have_a_loop_and_a_long_mask_its_rows():
    many = SequenceInputs.of(follow(OPENING.values, {"batch": 12, "length": 6}))
    assert "for example, n in enumerate([" in same(many).program
    assert 'rows = [\n    "' in same(replace(many, masking="mask", mask=written_mask(np.tri(12, 6)))).program


INPUTS = st.fixed_dictionaries(
    {
        "cell": st.sampled_from(list(KINDS)),
        "source": st.sampled_from([s for s in SOURCES if s != TYPED]),
        "padding": st.sampled_from(PADDINGS),
        "axes": st.sampled_from(["BTF", "TBF"]),
        "direction": st.sampled_from(DIRECTIONS),
        "keep_order": st.booleans(),
        "unroll": st.sampled_from([1, 1, 3]),
        "masking": st.sampled_from(MASKINGS),
        "lengths": st.just("") | st.lists(st.integers(0, T + 1), min_size=B, max_size=B).map(written_lengths),
        "mask": st.just("")
        | st.lists(st.lists(st.booleans(), min_size=T, max_size=T), min_size=B, max_size=B).map(written_mask),
        "init": st.sampled_from(["zeros", "normal", "left over"]),
        "slip": st.sampled_from(SLIPS),
        "seed": st.integers(0, 3),
    }
)


@given(INPUTS, st.booleans())
@settings(max_examples=12)
def test_any_inputs_and_their_program_agree(values, misread):
    inputs = replace(SMALL, **values)
    right = inputs.axes == "TBF"
    # A layer that is misread may raise in one way or another: the page and the program then raise the same.
    same(replace(inputs, time_major=right != (misread and inputs.slip == "none")))


# --- the Doctor ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda s: s.id)
def test_the_doctor_says_of_the_program_what_the_page_says(switch):
    inputs = SequenceInputs.of({**OPENING.values, **edit_of(OPENING, switch)})
    report = check_script(source(inputs)).report
    assert switch.code in report.codes
    assert {v.code for v in report.violations if v.severity.breaks} <= {switch.code}
    assert report.error is None


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"masking": "mask", "mask": "11011111, 11111000, 01110000"},
        {"direction": "bidirectional", "masking": "mask", "init": "normal"},
        {"direction": "reverse", "keep_order": True, "axes": "TBF", "time_major": True, "padding": "noise"},
        {"cell": "GRUCell", "source": "noise", "padding": "nan", "direction": "bidirectional", "unroll": 4},
    ],
)
def test_the_doctor_finds_nothing_in_a_right_program(values):
    inputs = replace(OPENING, **values)
    assert look_at(inputs).report.outcome is Outcome.OK
    report = check_script(source(inputs)).report
    assert report.outcome is Outcome.OK
    assert report.error is None


# --- a card's difference ------------------------------------------------------------------------------------------------


def test_the_changes_between_two_programs_are_whole_lines():
    assert source_changes(replace(OPENING, masking="none"), OPENING) == (
        ("−", "carry, ys = rnn(x, return_carry=True)"),
        ("+", "carry, ys = rnn(x, seq_lengths=lengths, return_carry=True)"),
    )
    assert source_changes(OPENING, OPENING) == ()
    assert source_changes(replace(OPENING, lengths="x"), OPENING) == ()


@pytest.mark.parametrize("values", [{"lengths": "x"}, {"hidden_features": 0}, {"source": "typed"}])
def test_there_is_no_program_for_what_cannot_be_read(values):
    assert source(replace(OPENING, **values)) == ""
