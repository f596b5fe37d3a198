"""A layer that ran: what `nnx.RNN` gives, with every carry, in the order it was visited."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from flax.nnx.nn.recurrent import flip_sequences

from core.base.sequences import Masking, Slip
from core.runners.cache import clear_all, count_compiles
from core.runners.cell_formulas import KINDS
from core.runners.layers import built
from core.runners.memo import one_check
from core.runners.sequence import call_layer, run_sequence, run_steps
from core.runners.sequence_reference import against_numpy
from tests.unit.runners.sequence_trials import CLOSE, B, F, H, T, numbers, trial


def layer(given):
    """nnx.RNN or nnx.Bidirectional, written out here once more: (final by direction, outputs time-first)."""
    cells = [KINDS[given.kind].cell(given.inputs.shape[-1], given.hidden_features, rngs=nnx.Rngs(given.seed))]
    common = {"time_major": given.time_major, "unroll": given.unroll}
    lengths = None if given.masking is not Masking.LENGTHS else jnp.asarray(given.lengths)
    if given.bidirectional:
        cells.append(
            KINDS[given.kind].cell(given.inputs.shape[-1], given.hidden_features, rngs=nnx.Rngs(given.seed + 1))
        )
        rnn = nnx.Bidirectional(*(nnx.RNN(c, **common) for c in cells), time_major=given.time_major, return_carry=True)
    else:
        rnn = nnx.RNN(cells[0], **common, return_carry=True, reverse=given.reverse, keep_order=given.keep_order)
    carry, outputs = rnn(jnp.asarray(given.inputs), seq_lengths=lengths)
    finals = carry if given.bidirectional else (carry,)
    return [jax.tree.leaves(c) for c in finals], np.asarray(outputs if given.time_major else outputs.swapaxes(0, 1))


def agrees(given):
    result = run_sequence(given)
    finals, outputs = layer(given)
    np.testing.assert_allclose(result.outputs, outputs, **CLOSE)
    for direction, final in zip(result.directions, finals, strict=True):
        for got, want in zip(direction.final, final, strict=True):
            np.testing.assert_allclose(got, want, **CLOSE)
    assert against_numpy(given, result).within
    return result


# --- against the layer ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", [{}, {"reverse": True}, {"reverse": True, "keep_order": True}, {"bidirectional": True}])
@pytest.mark.parametrize("lengths", [None, (5, 2, 1)])
def test_every_cell_every_way(kind, way, lengths):
    masking = Masking.LENGTHS if lengths else Masking.NONE
    agrees(trial(kind, lengths=lengths, masking=masking, **way))


@pytest.mark.parametrize("way", [{}, {"reverse": True, "keep_order": True}, {"bidirectional": True}])
@pytest.mark.parametrize("lengths", [None, (5, 2, 1)])
def test_time_major(way, lengths):
    masking = Masking.LENGTHS if lengths else Masking.NONE
    agrees(trial("GRUCell", axes="TBF", lengths=lengths, masking=masking, **way))


@pytest.mark.parametrize("unroll", [2, 3, 100, 0, True, False, np.int64(2)])
def test_unroll_moves_no_value(unroll):
    agrees(trial("GRUCell", unroll=unroll, reverse=True))


@pytest.mark.parametrize("shape", [(1, 5, 2), (3, 1, 2), (3, 5, 1), (1, 1, 1)])
def test_sizes_of_one(shape):
    agrees(trial(shape=shape, hidden=1))


def test_half_precision_inputs():
    given = trial("LSTMCell")
    agrees(replace(given, inputs=given.inputs.astype(np.float16)))


def test_double_precision_on_the_host_is_single_to_jax():
    given = trial("GRUCell")
    result = agrees(replace(given, inputs=given.inputs.astype(np.float64)))
    assert result.outputs.dtype == np.float32


# --- what the wrong axis order does ---------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", ["BTF", "TBF"])
@pytest.mark.parametrize("way", [{}, {"bidirectional": True}])
def test_the_wrong_axis_order_runs_as_the_layer_reads_it(axes, way):
    given = trial("GRUCell", axes=axes, time_major=axes == "BTF", **way)
    assert given.misread
    result = agrees(given)
    assert result.outputs.shape[:2] == (B, T)
    assert result.length == B


def test_a_mask_is_misread_with_its_data():
    mask = np.random.default_rng(1).random((B, T)) < 0.6
    given = trial("GRUCell", axes="BTF", time_major=True, masking=Masking.MASK, mask=mask)
    np.testing.assert_array_equal(run_sequence(given).forward.valid, mask)


def test_lengths_are_misread_too_and_their_count_is_then_wrong():
    given = trial("GRUCell", axes="BTF", time_major=True, masking=Masking.LENGTHS, lengths=(5, 2, 1))
    with pytest.raises(ValueError, match="broadcast"):
        run_sequence(given)


# --- order, validity, the final carry -------------------------------------------------------------------------------


def test_positions_in_visiting_order():
    result = run_sequence(trial("GRUCell", reverse=True))
    np.testing.assert_array_equal(result.forward.order, np.broadcast_to(np.arange(T)[::-1, None], (T, B)))
    assert result.forward.valid.all()
    assert result.forward.carries[0].shape == (T + 1, B, H)
    np.testing.assert_array_equal(result.outputs, result.forward.outputs)


def test_reversed_with_lengths_each_example_turns_within_its_own():
    given = trial("GRUCell", reverse=True, masking=Masking.LENGTHS, lengths=(5, 2, 0))
    direction = run_sequence(given).forward
    np.testing.assert_array_equal(direction.order.T, [[4, 3, 2, 1, 0], [1, 0, 4, 3, 2], [4, 3, 2, 1, 0]])
    np.testing.assert_array_equal(direction.valid.T, [[1] * 5, [1, 1, 0, 0, 0], [0] * 5])


@pytest.mark.parametrize("lengths", [(5, 2, 1), (0, 9, -2), (-7, 5, 12), (3,)])
@pytest.mark.parametrize("time_major", [False, True])
def test_the_order_is_that_of_flip_sequences(lengths, time_major):
    given = trial(
        "GRUCell", axes="TBF" if time_major else "BTF", reverse=True, masking=Masking.LENGTHS, lengths=lengths
    )
    t = np.arange(T)[:, None, None] + np.zeros((T, B, 1), int)
    told = jnp.asarray(t if time_major else t.swapaxes(0, 1))
    flipped = np.asarray(flip_sequences(told, jnp.asarray(lengths), 1, time_major))
    np.testing.assert_array_equal(
        run_sequence(given).forward.order, (flipped if time_major else flipped.swapaxes(0, 1))[:, :, 0]
    )


def test_lengths_that_are_not_told_are_still_shown():
    result = run_sequence(trial("GRUCell", lengths=(5, 2, 1)))
    np.testing.assert_array_equal(result.forward.valid.sum(axis=0), [5, 2, 1])
    np.testing.assert_array_equal(result.forward.final[0], result.forward.carries[0][-1])
    backwards = run_sequence(trial("GRUCell", lengths=(5, 2, 1), reverse=True)).forward
    np.testing.assert_array_equal(backwards.order[:, 1], [4, 3, 2, 1, 0])
    np.testing.assert_array_equal(backwards.valid[:, 1], [0, 0, 0, 1, 1])


@pytest.mark.parametrize("lengths", [(2.5, 1, 1), ("a", "b", "c"), (1, 2), (None, 1, 2), (1, 2, 3, 4)])
def test_lengths_that_say_nothing_and_are_not_told(lengths):
    result = run_sequence(trial("GRUCell", lengths=lengths))
    assert result.forward.valid.shape == (T, B)


def test_the_carry_after_the_last_valid_step_is_returned():
    direction = run_sequence(trial(masking=Masking.LENGTHS, lengths=(5, 2, 1))).forward
    for part, carries in zip(direction.final, direction.carries, strict=True):
        np.testing.assert_array_equal(part, carries[[5, 2, 1], [0, 1, 2]])


# --- lengths as they are given --------------------------------------------------------------------------------------

ODD_LENGTHS = [
    (0, 0, 0), (6, 99, 2**31 - 1), (-1, -4, -(2**31)), (True, False, True), (2,), (1, 2), (1, 2, 3, 4), (1.0, 2.0, 3.0),
    (2.5, 1, 1), (2**31, 1, 1), (-(2**31) - 1, 1, 1), (2**70, 1, 1), ("1", "2", "3"), (None, 1, 1), (),
    ((1, 2, 3), (3, 2, 1)), ((1,), (2,), (3,)), (np.uint8(0), np.uint8(3), np.uint8(200)), (np.int64(2**40), 1, 1),
]  # fmt: skip


@pytest.mark.parametrize("lengths", ODD_LENGTHS, ids=repr)
@pytest.mark.parametrize("way", [{}, {"reverse": True}, {"bidirectional": True}, {"return_carry": False}], ids=repr)
def test_odd_lengths_do_what_the_layer_does(lengths, way):
    given = trial("SimpleCell", masking=Masking.LENGTHS, lengths=lengths, **way)
    try:
        want = call_layer(given)
    except Exception as error:  # whatever it is, ours must be the same
        with pytest.raises(type(error)):
            run_sequence(given)
        return
    result = run_sequence(given)
    carry, outputs = want if given.return_carry else (None, want)
    np.testing.assert_allclose(result.outputs, np.asarray(outputs).swapaxes(0, 1), **CLOSE)
    if given.return_carry:
        for direction, final in zip(result.directions, carry if given.bidirectional else (carry,), strict=True):
            np.testing.assert_allclose(direction.final[0], final, **CLOSE)


# --- no steps -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("masking", [Masking.NONE, Masking.MASK])
def test_no_steps(kind, masking):
    init = tuple(numbers(B, H, seed=i) for i, _ in enumerate(KINDS[kind].parts))
    given = trial(kind, shape=(B, 0, F), init=init, masking=masking, mask=np.ones((B, 0), bool))
    result = run_sequence(given)
    assert result.outputs.shape == (0, B, H)
    assert result.padded == 0
    assert {name: gate.shape for name, gate in result.forward.gates.items()} == {
        gate.name: (0, B, H) for gate in KINDS[kind].gates
    }
    for part, want in zip(result.forward.final, init, strict=True):
        np.testing.assert_array_equal(part, want)
    assert against_numpy(given, result).within


def test_no_steps_in_both_directions():
    assert run_sequence(trial(shape=(B, 0, F), bidirectional=True)).outputs.shape == (0, B, 2 * H)


def test_no_steps_are_traced_all_the_same():
    with pytest.raises(TypeError):
        run_sequence(trial(shape=(B, 0, F), init=(numbers(B, H + 1), numbers(B, H + 1))))


def test_no_steps_with_lengths_raise_as_the_layer_does():
    given = trial(shape=(B, 0, F), masking=Masking.LENGTHS, lengths=(0, 0, 0))
    with pytest.raises(TypeError):
        layer(given)
    with pytest.raises(TypeError):
        run_sequence(given)


# --- init -----------------------------------------------------------------------------------------------------------


def test_init_is_given_left_over_or_zeros():
    zeros = run_sequence(trial())
    assert not any(part[0].any() for part in zeros.forward.carries)
    init = (numbers(B, H, seed=1), numbers(B, H, seed=2))
    given = run_sequence(trial(init=init))
    for part, want in zip(given.forward.carries, init, strict=True):
        np.testing.assert_array_equal(part[0], want)
    before = trial(seed=5, shape=(B, 9, F)).inputs
    left = run_sequence(trial(previous=before))
    for part, want in zip(
        left.forward.carries, run_sequence(trial(seed=5, shape=(B, 9, F))).forward.final, strict=True
    ):
        np.testing.assert_array_equal(part[0], want)


def test_init_of_both_directions():
    one, two = (numbers(B, H, seed=1),), (numbers(B, H, seed=2),)
    shared = run_sequence(trial("GRUCell", bidirectional=True, init=one))
    np.testing.assert_array_equal(shared.forward.carries[0][0], one[0])
    assert shared.backward is not None
    np.testing.assert_array_equal(shared.backward.carries[0][0], one[0])
    own = run_sequence(trial("GRUCell", bidirectional=True, init=one + two))
    assert own.backward is not None
    np.testing.assert_array_equal(own.backward.carries[0][0], two[0])


def test_what_the_other_sequence_left_goes_to_each_direction():
    before = trial(seed=5).inputs
    left = run_sequence(trial("GRUCell", bidirectional=True, previous=before))
    first = run_sequence(trial("GRUCell", bidirectional=True, seed=5))
    for direction, earlier in zip(left.directions, first.directions, strict=True):
        np.testing.assert_array_equal(direction.carries[0][0], earlier.final[0])


@pytest.mark.parametrize(
    ("kind", "init"),
    [
        ("LSTMCell", (numbers(B, H),)),
        ("LSTMCell", (numbers(B, H), numbers(B, H), numbers(B, H))),
        ("LSTMCell", (numbers(1, H), numbers(1, H))),
        ("LSTMCell", (numbers(B, H + 1), numbers(B, H + 1))),
        ("LSTMCell", (numbers(B, H).astype(np.float16), numbers(B, H).astype(np.float16))),
        ("GRUCell", (numbers(B, H), numbers(B, H))),
        ("SimpleCell", (numbers(B + 1, H),)),
    ],
)
def test_init_of_a_wrong_kind_raises_what_the_layer_raises(kind, init):
    given = trial(kind, init=init)
    with pytest.raises(Exception) as theirs:  # any: the next line says that ours is the same
        call_layer(given)
    with pytest.raises(theirs.type):
        run_sequence(given)


def test_what_the_layer_refuses_is_not_compiled_and_leaves_nothing_behind():
    """Called without jit, a layer leaves a program with JAX each time: a score of memory maps for a wrong length."""

    def refused(length):
        return trial("LSTMCell", shape=(B, length, F), init=(numbers(B, H), numbers(B, H), numbers(B, H)))

    for _ in range(2):
        with count_compiles() as compiles:
            for length in (6, 7):
                with pytest.raises(Exception) as ours:  # any: the next line says that it is the layer's own
                    run_sequence(refused(length))
                with pytest.raises(ours.type):
                    jax.eval_shape(lambda: call_layer(refused(7)))
    assert compiles.count == 0


# --- numbers --------------------------------------------------------------------------------------------------------


def test_nan_and_infinity_pass_through():
    given = trial("GRUCell")
    inputs = given.inputs.copy()
    inputs[1, 2, 0], inputs[2, 4, 0] = np.nan, np.inf
    result = agrees(replace(given, inputs=inputs))
    assert np.isfinite(result.outputs[:2, 1]).all()
    assert np.isnan(result.outputs[2:, 1]).all()
    assert np.isfinite(result.outputs[:, 0]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_lengths_of_one_power_of_two_give_the_same_bits(kind):
    whole = run_sequence(trial(kind, shape=(2, 16, F)))
    for length in (9, 12, 15):
        given = trial(kind, shape=(2, 16, F))
        part = run_sequence(replace(given, inputs=given.inputs[:, :length]))
        assert part.padded == whole.padded == 16
        np.testing.assert_array_equal(part.outputs, whole.outputs[:length])
        for a, b in zip(part.forward.carries, whole.forward.carries, strict=True):
            np.testing.assert_array_equal(a, b[: length + 1])
        for name, gate in part.forward.gates.items():
            np.testing.assert_array_equal(gate, whole.forward.gates[name][:length])


def test_changed_weights_are_those_of_the_cell():
    given = trial(weights={"forget_bias": 1.0, "recurrent_scale": 1.5})
    result = run_sequence(given)
    carry, outputs = call_layer(given)
    np.testing.assert_allclose(result.outputs, np.asarray(outputs).swapaxes(0, 1), **CLOSE)
    np.testing.assert_allclose(result.forward.final[0], carry[0], **CLOSE)
    assert np.abs(result.outputs - run_sequence(trial()).outputs).max() > 1e-3


def test_some_steps_alone():
    given = trial("GRUCell", bidirectional=True)
    carries, outputs = run_steps(given, 1, (np.zeros((1, H), np.float32),), given.inputs[:1, :3].swapaxes(0, 1))
    cell = nnx.GRUCell(F, H, rngs=nnx.Rngs(1))
    h = jnp.zeros((1, H))
    for t in range(3):
        h, y = cell(h, jnp.asarray(given.inputs[:1, t]))
        np.testing.assert_allclose(outputs[t], y, **CLOSE)
    np.testing.assert_allclose(carries[0][-1], h, **CLOSE)
    none, _ = run_steps(given, 0, (np.ones((1, H), np.float32),), np.zeros((0, 1, F), np.float32))
    np.testing.assert_array_equal(none[0], np.ones((1, 1, H)))


# --- other nonsense -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hidden", [-1, 2.5])
def test_hidden_features_of_nonsense_raise_what_flax_raises(hidden):
    with pytest.raises(TypeError):
        run_sequence(trial(hidden=hidden))


def test_no_hidden_units_are_run_as_flax_does():
    assert run_sequence(trial("GRUCell", hidden=0)).outputs.shape == (T, B, 0)


@pytest.mark.parametrize("unroll", [-1, "3", None, 2.0])
def test_unroll_of_nonsense_raises_what_the_layer_raises(unroll):
    given = trial("GRUCell", unroll=unroll)
    with pytest.raises(Exception) as theirs:  # any: the next line says that ours is the same
        call_layer(given)
    with pytest.raises(theirs.type):
        run_sequence(given)


def test_an_unroll_that_only_an_empty_sequence_lets_pass():
    assert run_sequence(trial("GRUCell", shape=(B, 0, F), unroll=2.0)).length == 0


# --- programs -------------------------------------------------------------------------------------------------------


def test_a_sweep_of_lengths_compiles_ten_programs():
    built("GRUCell", F, 3, 0)
    with count_compiles() as compiles:
        for length in (*range(1, 18), 31, 33, 64, 65, 100, 128, 129, 200, 256, 257, 400, 512):
            run_sequence(trial("GRUCell", shape=(2, length, F), hidden=3))
    assert compiles.count == 10


def test_moving_anything_else_compiles_nothing():
    clear_all()  # or other tests would have pushed some program of these out
    given = trial(shape=(B, 8, F))
    mask = np.ones((B, 8), bool)
    run_sequence(given)
    run_sequence(replace(given, masking=Masking.MASK, mask=mask))
    mask = np.array(mask)
    mask[0, 3] = False
    others = [
        replace(given, seed=7),
        replace(given, seed=123_456),
        replace(given, inputs=given.inputs + 1),
        replace(given, inputs=given.inputs[:, :6]),
        replace(given, weights={"forget_bias": 2.0, "recurrent_scale": 0.5}),
        replace(given, init=(np.ones((B, H), np.float32), np.ones((B, H), np.float32))),
        replace(given, previous=given.inputs),
        replace(given, reverse=True, keep_order=True),
        replace(given, bidirectional=True),
        replace(given, masking=Masking.LENGTHS, lengths=(1, 2, 3)),
        replace(given, masking=Masking.LENGTHS, lengths=(0, -2, 99), reverse=True),
        replace(given, masking=Masking.MASK, mask=mask),
        replace(given, masking=Masking.MASK, mask=mask, reverse=True),
        replace(given, masking=Masking.MASK, mask=mask, slips=frozenset({Slip.SUMMED_MASK})),
    ]
    with count_compiles() as compiles:
        results = [run_sequence(other) for other in others]
    assert compiles.count == 0
    assert not any(result.compiled for result in results)


def test_a_new_hidden_size_compiles_two_programs():
    run_sequence(trial(hidden=21))
    with count_compiles() as compiles:
        result = run_sequence(trial(hidden=22))
    assert compiles.count == 2
    assert result.compiled


def test_within_one_check_it_runs_once():
    given = trial("GRUCell")
    with one_check():
        assert run_sequence(given) is run_sequence(given)
    assert run_sequence(given) is not run_sequence(given)
