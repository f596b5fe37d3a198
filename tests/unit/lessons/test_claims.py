"""Numbers that the lessons say, worked out anew: each with the words that say it."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from core.base.outcome import Outcome
from core.doctor.check import check_script
from core.doctor.gallery import EXAMPLES
from core.inputs import cell_page, gradient_page, sequence_page
from core.inputs.cell_inputs import CellInputs
from core.inputs.gradient_inputs import GradientInputs
from core.inputs.scan_check import evaluate
from core.inputs.sequence_inputs import SequenceInputs
from core.lessons.lesson import LessonStep
from core.lessons.loader import lesson_of
from core.lessons.pages import PAGES


def step(number: int, at: int) -> LessonStep:
    lesson = lesson_of(number)
    assert lesson is not None
    return lesson.steps[at - 1]


def said(number: int, at: int, *words: str) -> LessonStep:
    """The step, which says these words."""
    found = step(number, at)
    text = " ".join(f"{found.title} {found.task} {found.more} {found.hint}".split())
    for each in words:
        assert each in text, (each, text)
    return found


def values(one: LessonStep) -> dict[str, object]:
    return dict(PAGES[one.setting.page].read(one.setting.params).values)


def scan(one: LessonStep):
    result = evaluate(values(one)).result
    assert result is not None
    return result


def test_ys_has_an_entry_for_each_step_and_the_first_is_after_it():
    question = said(1, 3, "A new entry of xs is 0").question
    assert question is not None
    assert question.answer == str(len(scan(step(1, 3)).ys))
    question = said(2, 1, "init is 0 and xs is 1, 2, 3").question
    assert question is not None
    assert question.answer == ", ".join(f"{y:.0f}" for y in np.asarray(scan(step(2, 1)).ys))


def test_reverse_keeps_the_sum_and_the_places():
    forward, backward = (
        scan(step(1, 3)),
        scan(said(1, 4, "The final carry is the same sum", "the whole sum now stands first")),
    )
    assert float(forward.final) == float(backward.final) == 6 == float(np.asarray(backward.ys)[0])


def test_fibonacci_writes_out_a_number_of_the_carry_before():
    said(2, 4, "as it was before the step")
    result = scan(step(2, 4))
    ys = np.asarray(result.ys).tolist()
    assert ys == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]


def test_the_maximum_of_nothing():
    result = scan(said(12, 1, "the final carry is init: −inf"))
    assert float(result.final) == -math.inf
    assert len(result.ys) == 0


def test_green_on_a_short_sequence_and_infinite_on_a_longer_one():
    one = said(13, 1, "xs is 1e30 alone, and their product is green", "whose largest number is about 3.4e38")
    opening = evaluate(PAGES["scan"].read(one.opening.params).values)
    assert opening.report is not None
    assert opening.report.outcome is Outcome.OK
    assert not opening.report.broken
    assert opening.result is not None
    assert float(opening.result.final) == pytest.approx(1e30)
    assert float(scan(one).final) == math.inf
    assert f"{np.finfo(np.float32).max:.1e}" == "3.4e+38"
    assert float(scan(said(13, 2, "2 and 3 will do")).final) == 6


def test_green_and_two_short():
    one = said(13, 3, "xs is 1, 2, 3", "16777222", "is 16777220")
    assert int(scan(one).final) == 16777220
    assert 16777216 + 1 + 2 + 3 == 16777222
    assert int(scan(said(13, 4, "16777222", "up to 2147483647")).final) == 16777222
    assert np.iinfo(np.int32).max == 2147483647


def test_batch_major_takes_a_step_for_each_example():
    broken = scan(said(7, 1, "two steps", "a row for each time"))
    assert len(broken.ys) == 2
    assert np.asarray(broken.final).shape == (5, 3)
    assert len(scan(said(7, 2, "five steps")).ys) == 5


def test_a_pair_comes_apart_silently_with_two_examples():
    one = said(6, 1, "The batch is 2, and JAX says nothing")
    look = cell_page.look_at(CellInputs.of(values(one)))
    assert look.raised is None
    assert values(one)["batch"] == 2
    look = cell_page.look_at(CellInputs.of({**values(one), "batch": 3}))
    assert look.raised is not None
    swapped = CellInputs.of(values(step(6, 3)))
    assert cell_page.look_at(swapped).raised is None


def final(values: dict[str, object]) -> list[np.ndarray]:
    look = sequence_page.look_at(SequenceInputs.of(values).run)
    assert look.result is not None
    return [np.asarray(leaf) for leaf in look.result.forward.final]


def test_no_final_carry_moves_with_the_padding_when_the_layer_is_told():
    one = values(said(8, 5, "No final carry moves"))
    for masking in ("lengths", "mask"):
        told = {**one, "masking": masking}
        for a, b in zip(final({**told, "padding": "noise"}), final({**told, "padding": "zeros"}), strict=True):
            np.testing.assert_array_equal(a, b)
    untold = {**one, "masking": "none"}
    moved = zip(final({**untold, "padding": "noise"}), final({**untold, "padding": "zeros"}), strict=True)
    assert any(np.abs(a - b).max() > 1e-3 for a, b in moved)


def last_row(at: int, cell: str) -> np.ndarray:
    cells = gradient_page.look_at(GradientInputs.of_values(values(step(10, at)))).cells
    assert cells is not None
    return np.asarray(cells.map_of(cell).h)[-1]


def test_gradients_vanish_are_remembered_and_explode():
    said(10, 1, "every step multiplies by little", "almost as a straight line")
    said(10, 3, "The gates of an LSTM and a GRU hold against it", "The simple cell has none")
    vanished, kept = last_row(1, "LSTMCell"), last_row(2, "LSTMCell")
    assert vanished[0] < 1e-6 * vanished[-1]
    finite = np.log(vanished[vanished > 0].astype(np.float64))
    assert np.corrcoef(np.arange(len(finite)), finite)[0, 1] > 0.99  # “almost as a straight line”
    assert kept[0] > 1e3 * vanished[0]
    assert 1 / (1 + math.exp(-3)) == pytest.approx(0.95, abs=0.005)
    assert "about 95 %" in step(10, 2).task
    simple = last_row(3, "SimpleCell")
    assert simple[0] > 1e3 * simple[-1]
    for gated in ("LSTMCell", "GRUCell"):
        row = last_row(3, gated)
        assert row[0] < row[-1]


def test_the_silent_examples_are_silent_and_say_what_the_lesson_says():
    walk = check_script(EXAMPLES["same_noise_every_step"].text, fixes=False)
    assert walk.run is not None
    assert walk.run.record.failure is None
    said(9, 3, "“A random walk that walks straight”", "each of its eight strides")
    assert EXAMPLES["same_noise_every_step"].title == "A random walk that walks straight"
    said(11, 1, f"“{EXAMPLES['log_that_stays_empty'].title}”", "one entry for four years")
    said(11, 3, f"“{EXAMPLES['if_on_the_carry'].title}”")


def test_a_y_of_none_is_still_a_second_thing():
    said(1, 1, "even when `y` is `None`")
    final, ys = jax.lax.scan(lambda c, x: (c + x, None), 0.0, jnp.array([1.0, 2.0]))
    assert (float(final), ys) == (3.0, None)


def test_a_cast_inside_the_step_throws_digits_away_at_every_step():
    said(3, 4, "init gets the dtype that the step returns", "throw digits away at every step")
    xs = jnp.full(4, 0.5)
    cast = jax.lax.scan(lambda c, x: ((c + x).astype(jnp.int32), None), jnp.int32(0), xs)[0]
    assert (int(cast), float(jax.lax.scan(lambda c, x: (c + x, None), jnp.float32(0), xs)[0])) == (0, 2.0)
    assert scan(step(3, 4)).final.dtype == jnp.float32


def test_a_weak_init_is_a_float_from_the_start():
    said(4, 1, "gave it the dtype that the step returns. The carry is a float from the start.")
    _, seen = jax.lax.scan(lambda c, x: (c + x, c), 0, jnp.array([1.5, 2.5]))
    assert seen.dtype == jnp.float32
    said(4, 3, "Now it is right whether weak or not")
    for weak in (True, False):
        report = evaluate({**values(step(4, 2)), "init_dtype": "float32", "init_weak": weak}).report
        assert report is not None
        assert report.outcome is Outcome.OK


def test_one_array_is_taken_apart_along_the_batch():
    said(6, 1, "the first example is taken for c and the second for h")
    cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
    h, x = jax.random.normal(jax.random.key(1), (2, 4)), jnp.ones((2, 3))
    (c_one, h_one), _ = cell(h, x)
    (c_pair, h_pair), _ = cell((h[0], h[1]), x)
    np.testing.assert_array_equal(c_one, c_pair)
    np.testing.assert_array_equal(h_one, h_pair)


def test_a_swap_does_not_show_on_zeros():
    one = said(6, 3, "Both have one shape, so nothing can raise", "With a carry of zeros it would not show")
    shown = []
    for carry in ("zeros", "normal"):
        pair = []
        for wrong in (values(one)["break_carry"], values(step(6, 4))["break_carry"]):
            look = cell_page.look_at(CellInputs.of({**values(one), "carry": carry, "break_carry": wrong}))
            assert look.raised is None
            assert look.step is not None
            pair.append(np.asarray(look.step.output))
        shown.append(np.abs(pair[0] - pair[1]).max() > 1e-4)
    assert shown == [False, True]


def test_a_layer_of_flax_takes_axis_1_for_time():
    said(7, 3, "takes axis 1 for time, unless it is told `time_major`")
    rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)))
    x = jax.random.normal(jax.random.key(0), (2, 5, 3))
    np.testing.assert_allclose(rnn(x), jnp.swapaxes(rnn(jnp.swapaxes(x, 0, 1), time_major=True), 0, 1), rtol=1e-6)
    assert np.abs(np.asarray(rnn(x)) - np.asarray(rnn(x, time_major=True))).max() > 1e-3


def test_padding_moves_the_final_carry_and_not_the_valid_outputs():
    said(8, 1, "The outputs of the valid steps are right. The final carry of the short examples is not")
    cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
    rnn = nnx.RNN(cell, return_carry=True)
    x = jax.random.normal(jax.random.key(0), (2, 5, 3))
    lengths = jnp.array([5, 2])
    (untold, outputs), (told, right) = rnn(x), rnn(x, seq_lengths=lengths)
    np.testing.assert_allclose(outputs[1, :2], right[1, :2], rtol=1e-6)
    assert np.abs(np.asarray(untold[1][1]) - np.asarray(told[1][1])).max() > 1e-3
    np.testing.assert_allclose(untold[1][0], told[1][0], rtol=1e-6)  # the long one has no padding
    said(8, 3, "index −1 is the very last step of the padding")
    none, _ = rnn(x, seq_lengths=jnp.array([5, 0]))
    np.testing.assert_allclose(none[1][1], untold[1][1], rtol=1e-6)


def test_rngs_hand_out_a_fresh_key_each_time():
    lesson = lesson_of(9)
    assert lesson is not None
    assert "hands out a fresh key each time it is asked" in " ".join(lesson.intro.split())
    rngs = nnx.Rngs(0)
    assert bool(jax.random.normal(rngs.params()) != jax.random.normal(rngs.params()))


def test_the_walk_takes_the_same_stride_eight_times():
    said(9, 3, "each of its eight strides is the same")
    names: dict[str, object] = {}
    exec(EXAMPLES["same_noise_every_step"].text, names)
    strides = np.diff(np.asarray(names["track"]), axis=0, prepend=0)
    assert len(strides) == 8
    np.testing.assert_allclose(strides, np.broadcast_to(strides[0], strides.shape), rtol=1e-4)
    exec(step(9, 4).setting.script, names)
    strides = np.diff(np.asarray(names["track"]), axis=0, prepend=0)
    assert np.abs(strides - strides[0]).max() > 0.1


def test_the_value_is_right_and_the_slope_is_not_finite():
    said(10, 4, "The value is right, the gradient is not finite")
    looks = [gradient_page.look_at(GradientInputs.of_values(values(step(10, at)))) for at in (4, 5)]
    broken, mended = (look.scan for look in looks)
    assert broken is not None
    assert mended is not None
    assert float(broken.gradient.value) == float(mended.gradient.value)
    assert not all(np.isfinite(leaf.values).all() for leaf in broken.gradient.leaves)
    assert all(np.isfinite(leaf.values).all() for leaf in mended.gradient.leaves)


def test_a_step_is_called_while_it_is_compiled_and_as_a_rule_once():
    lesson = lesson_of(11)
    assert lesson is not None
    assert "calls your step while it compiles, as a rule once" in " ".join(lesson.intro.split())
    calls: list[object] = []

    def add(c: jax.Array, x: jax.Array) -> tuple[jax.Array, None]:
        calls.append(c)
        return c + x, None

    xs = jnp.arange(50.0)
    jax.lax.scan(add, 0.0, xs)
    assert len(calls) == 1
    jax.lax.scan(add, 0, xs)  # the exception: a weak init whose dtype changes
    assert len(calls) == 3


def test_where_computes_both_sides_and_cond_runs_one():
    said(11, 4, "`jnp.where` computes both sides", "`lax.cond` runs one of two functions")
    ran: list[str] = []

    def side(name: str, x: jax.Array) -> jax.Array:
        jax.debug.callback(lambda: ran.append(name))
        return x

    x = jnp.float32(1)
    jax.block_until_ready(jax.jit(lambda x: jnp.where(x > 0, side("yes", x), side("no", x)))(x))
    jax.effects_barrier()
    assert sorted(ran) == ["no", "yes"]
    ran.clear()
    jax.block_until_ready(
        jax.jit(lambda x: jax.lax.cond(x > 0, lambda x: side("yes", x), lambda x: side("no", x), x))(x)
    )
    jax.effects_barrier()
    assert ran == ["yes"]


def test_jit_keeps_the_rate():
    one = said(11, 5, "traced when `rate` was 0.02", "changes nothing in it")
    check = check_script(one.opening.script, fixes=False)
    assert check.run is not None
    first, second = check.run.record.stdout.splitlines()
    assert first == second
    check = check_script(one.setting.script, fixes=False)
    assert check.run is not None
    first, second = check.run.record.stdout.splitlines()
    assert first != second


def test_carry_lab_refuses_a_long_scan_before_it_runs_and_jax_does_not():
    one = said(12, 4, "Carry Lab refuses before anything is run", "JAX has no such limit")
    looked = evaluate(values(one))
    assert looked.result is None
    assert looked.report is not None
    assert looked.report.outcome is Outcome.LIMIT
    assert float(jax.lax.scan(lambda c, x: (c + x, None), 0.0, jnp.ones(100_000))[0]) == 100_000
