"""The Sequence page's inputs: fields, the trial they mean, what follows what, bad input."""

import itertools
from dataclasses import fields, replace

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st

from core.base.outcome import Outcome
from core.base.sequences import Masking, Slip
from core.inputs.sequence_breaks import edit_of, switch_of
from core.inputs.sequence_data import FORMULAS
from core.inputs.sequence_fields import FIELDS, PADDINGS, SOURCES, TYPED, sequence_fields, sequence_link_fields
from core.inputs.sequence_follow import clicked, follow
from core.inputs.sequence_inputs import SequenceInputs, build
from core.inputs.sequence_padding import read_lengths
from core.inputs.sequence_page import check_slowly, look_at
from core.inputs.sequence_words import explains
from core.runners.cache import count_compiles

OPENING = SequenceInputs()


def edited(inputs, **values):
    """What the page has after a change by hand."""
    return SequenceInputs.of(follow(inputs.values, values))


# --- fields and trial -------------------------------------------------------------------------------------------------


def test_the_fields_are_the_inputs_and_have_the_same_defaults():
    assert FIELDS.defaults() == SequenceInputs().values
    assert SequenceInputs.of(FIELDS.defaults()) == OPENING
    urls = [field.url for field in FIELDS.fields]
    assert len(set(urls)) == len(urls)
    assert max(map(len, urls)) <= 7


def test_the_page_opens_with_a_ragged_batch_and_a_contract_that_is_kept():
    look = look_at(OPENING)
    assert look.report.outcome is Outcome.OK
    assert not look.report.violations
    assert look.numpy.within
    assert look.trial.lengths == (8, 5, 3)
    assert look.trial.masking is Masking.LENGTHS
    rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)))
    carry, ys = rnn(look.trial.inputs, seq_lengths=jnp.array([8, 5, 3]), return_carry=True)
    np.testing.assert_allclose(look.result.outputs.swapaxes(0, 1), ys, rtol=1e-5, atol=1e-6)
    for got, want in zip(look.result.forward.final, carry, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_link_carries_only_what_differs_and_lengths_follow_its_sizes():
    values = edited(OPENING, batch=2, length=4).values
    assert values["lengths"] == "4, 1"
    link = sequence_fields(values).to_link(values).params
    assert link == {"v": "1", "B": "2", "T": "4"}
    assert sequence_link_fields(link).from_link(link).values == values
    assert sequence_link_fields({"B": "x", "T": "4"}).field("lengths").default == "4, 2, 1"


@pytest.mark.parametrize("source", [s for s in SOURCES if s != TYPED])
@pytest.mark.parametrize("padding", PADDINGS)
def test_the_same_data_stand_in_either_order_of_axes(source, padding):
    inputs = replace(OPENING, source=source, padding=padding)
    other = replace(inputs, axes="TBF", time_major=True)
    one, two = build(inputs).trial.inputs, build(other).trial.inputs
    assert one.shape == (3, 8, 3)
    assert one.dtype == np.float32
    assert np.array_equal(one, two.swapaxes(0, 1), equal_nan=True)


def test_data_can_be_recognised():
    sine, ramp, impulse = (
        build(replace(OPENING, source=s, lengths="")).trial.inputs for s in ("sine", "ramp", "impulse")
    )
    b, t, f = 2, 5, 1
    assert sine[b, t, f] == pytest.approx(np.sin(2 * np.pi * t / 16 + (3 * b + f) * np.pi / 4))
    assert ramp[b, t, f] == pytest.approx(0.1 * (t + 1) + 0.5 * b - 0.25 * f)
    assert impulse[:, 0].min() == 1
    assert not impulse[:, 1:].any()
    assert set(FORMULAS) == set(SOURCES) - {TYPED}


def test_a_longer_sequence_of_noise_begins_with_the_shorter_one():
    short, long = (build(replace(OPENING, source="noise", length=n, lengths="")).trial.inputs for n in (4, 9))
    assert np.array_equal(long[:, :4], short)


def test_what_is_in_the_padding_is_chosen():
    def rest(padding, **others):
        return build(replace(OPENING, padding=padding, **others)).trial.inputs[2, 3:]

    full = build(replace(OPENING, lengths="")).trial.inputs
    assert not rest("zeros").any()
    assert np.isnan(rest("nan")).all()
    assert np.array_equal(rest("repeat last"), np.repeat(full[2, 2:3], 5, axis=0))
    assert np.array_equal(rest("as it is"), full[2, 3:])
    noise = rest("noise")
    assert noise.std() > 0.3
    assert not np.array_equal(noise, full[2, 3:])
    assert np.array_equal(build(replace(OPENING, padding="nan")).trial.inputs[2, :3], full[2, :3])


def test_holes_of_a_mask_are_filled_too():
    inputs = replace(OPENING, masking="mask", mask="11011111, 11111111, 01111111", padding="repeat last")
    full = build(replace(OPENING, lengths="")).trial.inputs
    got = build(inputs).trial.inputs
    assert np.array_equal(got[0, 2], full[0, 1])
    assert np.array_equal(got[2, 0], full[2, 0]), "nothing stands before the first step"


@pytest.mark.parametrize(
    ("masking", "mask", "lengths", "rows"),
    [
        ("lengths", "", (8, 5, 3), None),
        ("lengths", "11111110, 11111000, 11100000", (8, 5, 3), None),
        ("none", "", (8, 5, 3), None),
        ("none", "11111110, 11111000, 11100000", None, 15),
        ("mask", "", None, 16),
        ("mask", "11111110, 11111000, 11100000", None, 15),
    ],
)
def test_either_lengths_or_mask_say_what_is_padding(masking, mask, lengths, rows):
    trial = build(replace(OPENING, masking=masking, mask=mask)).trial
    assert trial.lengths == lengths
    assert (None if trial.mask is None else int(trial.mask.sum())) == rows
    assert trial.masking == masking


def test_an_initial_carry_is_drawn_typed_or_left_over():
    normal = build(replace(OPENING, init="normal", init_seed=3)).trial.init
    assert [part.shape for part in normal] == [(3, 4), (3, 4)]
    assert not np.array_equal(*normal)
    typed = build(
        replace(OPENING, cell="GRUCell", init="typed", init_c="no number", init_h="1 2 3 4\n5 6 7 8\n9 0 1 2")
    )
    assert typed.trial.init[0].tolist() == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 0, 1, 2]]
    left = build(replace(OPENING, init="left over")).trial
    assert left.init is None
    assert left.previous.shape == left.inputs.shape


def test_every_role_has_its_place_on_the_page():
    roles = build(OPENING).trial.places.by_role
    wanted = {"axes", "time_major", "direction", "keep_order", "unroll", "masking", "lengths", "mask", "init", "slip"}
    assert wanted | {"source", "length", "batch", "in_features", "hidden_features", "cell"} <= set(roles)
    assert all(place.key == f"sequence_{role}" for role, place in roles.items())
    typed = build(replace(OPENING, source="typed", numbers="1 2 3")).trial.places
    assert typed.find("batch").key == "sequence_numbers"


def test_what_is_only_looked_at_is_the_same_run():
    assert replace(OPENING, unit=3, t=2, view="heatmap", compare="seed").run == OPENING.run
    assert replace(OPENING, seed=1).run != OPENING.run


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lengths", ["8, 5, 0", "9, 5, 3", "8, −1, 3", "8, 2.5, 3", "8, 5", "8, 5, 3, 1", "1000000, 5, 3"]
)
def test_a_wrong_length_is_a_matter_of_rule_l310(lengths):
    look = look_at(replace(OPENING, lengths=lengths))
    assert set(look.report.codes) == {"L310"}
    assert all(v.place.key == "sequence_lengths" for v in look.report.violations)
    fixes = look.report.violations[0].fixes
    assert fixes
    for fix in fixes:
        after = look_at(replace(look.inputs, **fix.edit.values))
        assert after.report.outcome is Outcome.OK


@pytest.mark.parametrize(
    ("values", "field", "said"),
    [
        ({"lengths": "8, x, 3"}, "lengths", "Example 1"),
        (
            {"masking": "mask", "mask": "1111, 1, 1"},
            "mask",
            "The mask of example 0 has 4 steps, and the sequence has 8",
        ),
        ({"masking": "mask", "mask": "11111111"}, "mask", "3 examples"),
        ({"batch": 0}, "batch", "0 is no size"),
        ({"in_features": -3}, "in_features", "-3"),
        ({"hidden_features": 0}, "hidden_features", "0 is no size"),
        ({"length": -1}, "length", "-1 is no length"),
        ({"source": "typed", "numbers": ""}, "numbers", "no numbers"),
        ({"source": "typed", "numbers": "1, 2\n3, x"}, "numbers", "Row 2"),
        ({"source": "typed", "numbers": "[[[[1]]]]"}, "numbers", "4 axes"),
        ({"source": "typed", "numbers": "zeros(0, 3, 2)"}, "numbers", "no example"),
        ({"source": "typed", "numbers": "1 " * 20_001}, "numbers", "20000"),
        ({"init": "typed", "init_c": "1 2", "init_h": "zeros(3, 4)"}, "init_c", "(1, 2)"),
        ({"init": "typed", "init_c": "zeros(3, 4)", "init_h": "?"}, "init_h", "?"),
    ],
)
def test_what_cannot_be_read_is_said_at_its_input(values, field, said):
    look = look_at(replace(OPENING, **values))
    assert look.report is None
    assert [problem.field for problem in look.problems] == [field]
    assert said in look.problems[0].text


def test_all_problems_are_said_at_once():
    look = look_at(replace(OPENING, lengths="x", hidden_features=4, init="typed", init_c="?", init_h="1"))
    assert {p.field for p in look.problems} == {"lengths", "init_c", "init_h"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hidden_features", 257),
        ("in_features", 129),
        ("batch", 65),
        ("length", 513),
        ("hidden_features", 10**12),
        ("in_features", 10**12),
        ("batch", 10**12),
        ("length", 10**12),
    ],
)
@pytest.mark.parametrize("init", ["zeros", "normal", "left over"])
def test_over_a_limit_nothing_is_made(name, value, init):
    inputs = edited(replace(OPENING, init=init), **{name: value})
    look = look_at(inputs)
    assert look.report.outcome is Outcome.LIMIT
    assert set(look.report.codes) == {"X601"}
    assert look.result is None
    assert check_slowly(look) is None
    assert f"sequence_{name}" in [v.place.key for v in look.report.violations]
    edits = [fix.edit.values for v in look.report.violations for fix in v.fixes]
    assert any("X601" not in look_at(replace(inputs, **edit)).report.codes for edit in edits)


def test_typed_numbers_over_a_limit_are_cut_by_a_fix():
    inputs = edited(OPENING, source="typed", numbers="full((100, 4, 2), 0.5)")
    look = look_at(inputs)
    assert look.report.outcome is Outcome.LIMIT
    edit = look.report.violations[0].fixes[0].edit.values
    assert edit["numbers"] == "full((64, 4, 2), 0.5)"
    assert look_at(replace(inputs, **edit)).trial.batch == 64


@pytest.mark.parametrize("masking", ["none", "lengths", "mask"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_no_steps_leave_init_as_the_final_carry(masking, direction):
    inputs = edited(replace(OPENING, init="normal", masking=masking, direction=direction), length=0)
    look = look_at(inputs)
    assert look.report.outcome is Outcome.OK
    assert look.raised is None
    assert look.result.outputs.shape[0] == 0
    for final, init in zip(look.result.forward.final, look.trial.init, strict=True):
        assert np.array_equal(final, init)
    assert "final carry is the initial one" in explains(inputs)["length"]


def test_nan_in_typed_data_is_run_and_said():
    look = look_at(edited(OPENING, source="typed", numbers="[[[1, nan], [2, 3], [4, 5]]]"))
    assert "N501" in look.report.codes
    assert np.isnan(look.result.outputs).any()


def test_nan_in_the_padding_reaches_nothing_that_counts():
    for masking in ("lengths", "mask"):
        look = look_at(replace(OPENING, padding="nan", masking=masking))
        assert look.report.outcome is Outcome.OK
        assert all(np.isfinite(part).all() for part in look.result.forward.final)


# --- what follows what ------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.sampled_from(["batch", "length"]), st.integers(0, 70)), max_size=6))
@settings(max_examples=30)
def test_no_slider_breaks_the_contract(moves):
    inputs = OPENING
    for name, value in moves:
        inputs = edited(inputs, **{name: max(value, 1) if name == "batch" else value})
        lengths = read_lengths(inputs.lengths)
        if inputs.batch <= 64 and inputs.length:
            assert len(lengths) == inputs.batch
            assert all(1 <= n <= inputs.length for n in lengths)
        else:
            assert lengths is None
        assert not build(inputs).problems


def test_typed_lengths_come_back_when_there_is_room_again():
    typed = edited(OPENING, lengths="7, 6, 2")
    short = edited(typed, length=4)
    assert short.lengths == "4, 4, 2"
    assert edited(short, length=8) == typed
    fewer = edited(typed, batch=1)
    assert fewer.lengths == "7"
    assert edited(fewer, batch=3) == typed
    again = edited(short, lengths="1, 1, 1")
    assert again.lengths_typed == ""
    assert edited(again, length=8).lengths == "1, 1, 1"


def test_a_mask_follows_too():
    masked = edited(OPENING, masking="mask", mask="11011111, 11111000, 11100000")
    short = edited(masked, length=3, batch=2)
    assert short.mask == "110, 111"
    assert not build(short).problems
    assert edited(short, length=8, batch=3).mask == masked.mask


def test_a_click_gives_the_layer_a_mask():
    after = replace(OPENING, **clicked(OPENING, 1, 2))
    trial = build(after).trial
    assert trial.masking is Masking.MASK
    assert trial.mask.sum() == 15
    assert not trial.mask[1, 2]
    again = replace(after, **clicked(after, 1, 2))
    assert build(again).trial.mask.sum() == 16
    summed = replace(OPENING, **edit_of(OPENING, switch_of("summed_mask")))
    assert replace(summed, **clicked(summed, 0, 0)).slips == {Slip.SUMMED_MASK}
    assert clicked(replace(OPENING, batch=10**9, length=10**9, lengths=""), 0, 0)["mask"] == ""


@pytest.mark.parametrize("axes", ["BTF", "TBF"])
def test_whoever_turns_to_typed_data_finds_those_that_were_there(axes):
    before = replace(OPENING, axes=axes, time_major=axes == "TBF", source="noise")
    after = edited(before, source="typed")
    assert np.array_equal(build(after).trial.inputs, build(before).trial.inputs)
    assert look_at(after).report.outcome is Outcome.OK


def test_typed_numbers_say_their_sizes():
    nested = edited(OPENING, source="typed", numbers="[[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[1, 1], [1, 1]]]")
    assert (nested.batch, nested.length, nested.in_features) == (3, 2, 2)
    rows = edited(nested, numbers="1, 2\n3, 4\n5, 6\n7, 8")
    assert (rows.batch, rows.length, rows.in_features) == (1, 4, 2)
    assert build(rows).trial.inputs.shape == (1, 4, 2)
    assert edited(rows, batch=9).batch == 1
    turned = edited(nested, axes="TBF")
    assert (turned.batch, turned.length) == (2, 3)
    assert build(turned).trial.inputs.shape == (3, 2, 2), "the numbers stand as they are; only what they mean changes"
    line = edited(OPENING, source="typed", numbers="1, 2, 3", axes="TBF", time_major=True)
    assert build(line).trial.inputs.shape == (3, 1, 1)


def test_a_typed_carry_begins_with_zeros_of_its_shape():
    typed = edited(OPENING, init="typed")
    assert look_at(typed).report.outcome is Outcome.OK
    assert look_at(edited(typed, batch=2, hidden_features=3)).report.outcome is Outcome.OK
    own = edited(typed, init_c="1 2 3 4\n1 2 3 4\n1 2 3 4")
    assert edited(own, batch=2).init_c == own.init_c
    assert build(edited(own, batch=2)).problems[0].field == "init_c"


# --- sentences --------------------------------------------------------------------------------------------------------


def test_what_is_set_is_explained_under_its_own_input():
    assert set(explains(OPENING)) == {"masking", "padding"}
    ways = itertools.product(("reverse", "bidirectional"), ("lengths", "mask", "none"), (True, False))
    for values in (dict(zip(("direction", "masking", "keep_order"), way, strict=True)) for way in ways):
        said = explains(replace(OPENING, **values))
        assert set(said) <= {f.name for f in fields(SequenceInputs)}
        assert said["direction"]
    assert set(explains(edited(OPENING, source="typed"))) == {"masking", "source"}
    assert explains(replace(OPENING, batch=0, lengths="x"))


# --- speed ------------------------------------------------------------------------------------------------------------


def test_moving_lengths_numbers_and_seeds_compiles_nothing():
    first = replace(OPENING, length=16, lengths="16, 9, 4")
    look_at(first)
    look_at(replace(first, seed=1, source="noise"))
    with count_compiles() as compiles:
        for lengths in ("16, 16, 16", "3, 9, 12"):
            look_at(replace(first, lengths=lengths, seed=1))
        look_at(replace(first, source="noise", data_seed=5, padding="noise"))
        look_at(edited(first, length=11))
    assert compiles.count == 0
