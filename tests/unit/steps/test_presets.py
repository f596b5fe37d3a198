"""Each preset against a formula of its own, in NumPy, and against the contract it is there to keep."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from core.base.avals import aval_of
from core.contract.subject import ScanCall
from core.runners.scan import run_call
from core.steps.library import DEFAULT, FAULTY, PRESETS, STEPS, UNGUARDED, find_step, right_of
from core.steps.step import Step, XKind, step_keys, x_aval

DTYPES = ("float32", "int32", "bool", "bfloat16", "float16", "int8")


def call_of(name: str, xs=None, length=None, **values) -> ScanCall:
    """The preset on its opening inputs, or on these."""
    step = STEPS[name]
    xs = step.opening_xs() if xs is None and step.x is not XKind.NONE else xs
    values = step.defaults | values
    aval = None if step.x in (XKind.NONE, XKind.KEY) else x_aval(xs)
    length = (length or step.length) if xs is None else None
    return ScanCall(step.fn, step.init(aval, values), xs, length, params=step.arguments(step, aval, values))


def run(name: str, xs=None, length=None, **values):
    return run_call(call_of(name, xs, length, **values))


def close(got, want) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


NOISE = np.random.default_rng(5).normal(size=(40,)).astype(np.float32)
WIDE = np.random.default_rng(6).normal(size=(20, 2, 3)).astype(np.float32)
BOTH = pytest.mark.parametrize("xs", [NOISE, WIDE], ids=["numbers", "arrays"])


# --- formulas -------------------------------------------------------------------------------------------------------


@BOTH
def test_running_sum_is_cumsum(xs):
    result = run("running_sum", xs)
    close(result.ys, np.cumsum(xs, axis=0))
    close(result.final, xs.sum(axis=0))


@BOTH
def test_running_max_is_accumulated_maximum(xs):
    np.testing.assert_array_equal(run("running_max", xs - 5).ys, np.maximum.accumulate(xs - 5))


@BOTH
def test_product_is_cumprod(xs):
    close(run("product", xs).ys, np.cumprod(xs, axis=0))


def test_product_of_the_opening_makes_factorials_and_int32_cannot_hold_13():
    assert run("product").ys.tolist() == [1, 2, 6, 24, 120, 720]
    whole = run("product", np.arange(1, 14, dtype=np.int32)).ys
    assert whole[11] == 479_001_600
    assert whole[12] != 6_227_020_800


@BOTH
def test_exponential_average_weighs_by_powers_of_the_decay(xs):
    d, t = 0.75, len(xs)
    powers = d ** np.subtract.outer(np.arange(t), np.arange(t)).clip(0)
    weights = np.tril(powers) * (1 - d)
    close(run("exponential_average", xs, decay=d).ys, np.tensordot(weights, xs, axes=1))


def test_horner_is_polyval():
    coefficients = np.array([2.0, -6.0, 2.0, -1.0])
    assert run("horner").final == np.polyval(coefficients, 3.0) == 5
    close(run("horner", at=-1.5).final, np.polyval(coefficients, -1.5))
    close(run("horner", WIDE[:4], at=0.5).final, np.polyval(WIDE[:4], 0.5))


def test_distance_is_the_sum_of_time_by_speed():
    rows = np.random.default_rng(1).normal(size=(12, 2)).astype(np.float32)
    close(run("distance", rows).ys, np.cumsum(rows[:, 0] * rows[:, 1]))


@BOTH
def test_count_positive_counts(xs):
    result = run("count_positive", xs)
    positive = np.cumsum(xs > 0, axis=0)
    np.testing.assert_array_equal(result.final["positive"], positive[-1])
    assert result.final["seen"] == len(xs)
    close(result.ys, (positive.T / np.arange(1, len(xs) + 1)).T)


@BOTH
def test_streak_counts_since_the_last_break(xs):
    want = np.zeros(xs.shape, int)
    for t in range(len(xs)):
        start = t
        while start >= 0 and (xs[start] > 0).any():
            want[t] += np.all(xs[start : t + 1] > 0, axis=0)
            start -= 1
    np.testing.assert_array_equal(run("streak", xs).ys, want)


@BOTH
@pytest.mark.parametrize("width", [1, 3, 7])
def test_moving_window_is_a_padded_sliding_window(xs, width):
    result = run("moving_window", xs, width=width)
    padded = np.concatenate([np.zeros((width - 1, *xs.shape[1:])), xs])
    close(result.ys, np.lib.stride_tricks.sliding_window_view(padded, width, axis=0).mean(axis=-1))
    np.testing.assert_array_equal(result.final, xs[-width:])


@BOTH
def test_running_variance_is_mean_and_var(xs):
    result = run("running_variance", xs)
    for t in (0, 4, len(xs) - 1):
        close(result.ys["mean"][t], xs[: t + 1].mean(axis=0))
        close(result.ys["variance"][t], xs[: t + 1].astype(np.float64).var(axis=0))


def test_running_variance_survives_numbers_far_from_zero_as_its_story_says():
    xs = (10_000 + NOISE).astype(np.float32)
    want = xs.astype(np.float64).var()
    assert abs(run("running_variance", xs).ys["variance"][-1] - want) / want < 0.01
    naive = np.float32(np.mean(xs * xs, dtype=np.float32)) - np.mean(xs, dtype=np.float32) ** 2
    assert abs(naive - want) / want > 1


def test_running_variance_of_the_opening():
    result = run("running_variance")
    assert (result.final[0], result.final[1], result.ys["variance"][-1]) == (8, 5, 4)


@BOTH
def test_kalman_is_the_weighted_least_squares_estimate(xs):
    """Without drift the posterior is the one of a Gaussian prior N(0, 1) and T measurements of variance r."""
    r = 0.5
    result = run("kalman", xs, drift=0.0, noise=r)
    for t in range(len(xs)):
        close(result.ys[t], xs[: t + 1].sum(axis=0) / r / (1 + (t + 1) / r))
    close(result.final[1], 1 / (1 + len(xs) / r))


def test_kalman_with_drift_reaches_the_riccati_fixed_point():
    q, r = 0.3, 2.0
    p = run("kalman", np.zeros(200, np.float32), drift=q, noise=r).final[1]
    prior = (q + np.sqrt(q * q + 4 * q * r)) / 2
    close(p, prior * r / (prior + r))


def test_fibonacci_is_binet_and_overflows_where_its_story_says():
    golden = (1 + 5**0.5) / 2
    result = run("fibonacci", length=48)
    assert result.ys[:47].tolist() == [round(golden**n / 5**0.5) for n in range(47)]
    assert result.ys[47] < 0


@BOTH
def test_leaky_integrator_is_a_sum_of_decaying_impulses(xs):
    tau, dt, t = 4.0, 0.5, len(xs)
    powers = (1 - dt / tau) ** np.subtract.outer(np.arange(t), np.arange(t)).clip(0)
    close(run("leaky_integrator", xs, tau=tau, dt=dt).ys, np.tensordot(np.tril(powers) * dt, xs, axes=1))


def test_leaky_integrator_falls_to_a_third_and_blows_up_as_its_words_say():
    impulse = np.zeros(51, np.float32)
    impulse[0] = 1
    after = run("leaky_integrator", impulse, tau=50.0).ys
    assert abs(after[50] / after[0] - np.exp(-1)) < 0.01
    assert abs(run("leaky_integrator", impulse, tau=0.4, dt=1.0).final) > 1e6


def test_logistic_map_at_four_is_the_doubling_of_an_angle():
    result = run("logistic_map", length=12, rate=4.0)
    angle = np.arcsin(np.sqrt(0.2))
    np.testing.assert_allclose(result.ys, np.sin(2.0 ** np.arange(1, 13) * angle) ** 2, rtol=2e-3, atol=2e-3)
    close(run("logistic_map", length=200, rate=2.5).final, 1 - 1 / 2.5)


def test_rotation_is_multiplication_by_a_complex_number():
    angles = NOISE[:20]
    result = run("rotation", angles)
    path = np.exp(1j * np.cumsum(angles))
    close(result.ys, np.stack([path.real, path.imag], axis=1))
    close(run("rotation").final, [np.cos(12 * 0.5236), np.sin(12 * 0.5236)])


def test_random_walk_adds_the_normals_of_its_keys():
    keys = step_keys(3, 20)
    draws = np.array([jax.random.normal(key) for key in keys])
    close(run("random_walk", keys, stride=0.5).ys, np.cumsum(0.5 * draws))
    assert len(np.unique(draws)) == 20


def test_gradient_descent_is_a_linear_recurrence():
    rate, momentum = 0.1, 0.8
    matrix = np.array([[1 - 2 * rate, momentum], [-2 * rate, momentum]])  # of (w − 3, velocity)
    states = [np.linalg.matrix_power(matrix, t) @ [-3, 0] for t in range(31)]
    result = run("gradient_descent")
    close(result.ys, [state[0] ** 2 for state in states[:30]])
    close(result.final, states[30] + [3, 0])


@pytest.mark.parametrize("hidden", [1, 4, 9])
def test_tanh_rnn_is_its_formula(hidden):
    call = call_of("tanh_rnn", WIDE[:, 0], hidden=hidden)
    w = {name: np.asarray(value, np.float64) for name, value in call.params.items()}
    assert {name: value.shape for name, value in w.items()} == {
        "w_in": (3, hidden),
        "w_rec": (hidden, hidden),
        "bias": (hidden,),
    }
    h, want = np.zeros(hidden), []
    for x in WIDE[:, 0]:
        h = np.tanh(w["w_in"].T @ x + w["w_rec"].T @ h + w["bias"])
        want.append(h)
    close(run_call(call).ys, want)


def test_tanh_rnn_takes_a_batch_too():
    step = STEPS["tanh_rnn"]
    aval = x_aval(WIDE)
    call = ScanCall(step.fn, step.init(aval, step.defaults), WIDE, params=step.arguments(step, aval, step.defaults))
    alone = run("tanh_rnn", WIDE[:, 1])
    close(run_call(call).ys[:, 1], alone.ys)


@BOTH
def test_sum_of_roots_is_a_cumsum(xs):
    want = np.cumsum(np.sqrt(np.where(xs > 0, xs, 0).astype(np.float64)), axis=0)
    close(run("sum_of_roots", xs).ys, want)


def test_path_length_is_a_sum_of_norms():
    moves = WIDE[:, 0] * (np.arange(20) % 3 > 0)[:, None]
    close(run("path_length", moves).ys, np.cumsum(np.linalg.norm(moves, axis=1)))


@BOTH
def test_entropy_is_its_formula(xs):
    p = np.abs(xs) * (xs > 0)
    logs = np.log2(p, out=np.zeros_like(p), where=p > 0)
    close(run("entropy", p).ys, -np.cumsum(p * logs, axis=0))


def test_entropy_of_two_fair_coins():
    assert run("entropy", np.full(4, 0.25, np.float32)).final == 2


@pytest.mark.parametrize("step", UNGUARDED, ids=lambda s: s.id)
def test_an_unguarded_step_has_the_values_of_its_right_twin(step: Step):
    for xs in (None, np.random.default_rng(2).normal(size=(9, 2)).astype(np.float32)):
        np.testing.assert_array_equal(run(step.id, xs).ys, run(step.right, xs).ys)
    assert (step.fn.__name__, step.breaks) == (step.id, "N502")
    assert right_of(step) in PRESETS


# --- the contract ---------------------------------------------------------------------------------------------------


SHAPES = {XKind.SCALAR: [()], XKind.VECTOR: [(3,)], XKind.ANY: [(), (3,), (2, 3)]}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("step", [s for s in PRESETS if s.x in SHAPES], ids=lambda s: s.id)
def test_init_keeps_its_type_for_every_x_the_step_takes(step: Step, dtype):
    for shape in SHAPES[step.x]:
        xs = np.ones((3, *shape)).astype(jnp.dtype(dtype))
        assert step.x.takes(shape)
        call = call_of(step.id, xs)
        body = lambda c, x: call.step(c, x, **call.params)  # noqa: E731, B023
        returned, _ = jax.eval_shape(body, call.init, jax.ShapeDtypeStruct(shape, jnp.dtype(dtype)))
        before, after = jax.tree.leaves(call.init), jax.tree.leaves(returned)
        assert jax.tree.structure(call.init) == jax.tree.structure(returned)
        assert [(v.shape, v.dtype) for v in map(aval_of, before)] == [(tuple(v.shape), str(v.dtype)) for v in after]


@pytest.mark.parametrize("step", PRESETS, ids=lambda s: s.id)
def test_the_opening_runs_and_everything_is_said(step: Step):
    result = run(step.id)
    assert result.length == step.length > 0
    assert all(np.isfinite(leaf.astype(np.float64)).all() for leaf in jax.tree.leaves((result.final, result.ys)))
    assert {s.path for s in result.carries} == set(step.leaves)
    assert all((step.title, step.group, step.formula, step.story, step.carry_doc, step.x_doc, step.y_doc))
    assert (step.right, step.breaks) == ("", "")
    for p in step.params:
        assert p.low <= p.default <= p.high
        assert p.label
        assert p.doc


@pytest.mark.parametrize("step", [s for s in PRESETS if s.params], ids=lambda s: s.id)
def test_every_parameter_moves_the_result(step: Step):
    before = jax.tree.leaves(run(step.id).ys)
    for p in step.params:
        value = p.low if p.default != p.low else p.high
        after = jax.tree.leaves(run(step.id, **{p.name: value}).ys)
        assert any(a.shape != b.shape or (a != b).any() for a, b in zip(before, after, strict=True))


def test_the_list():
    assert len(PRESETS) >= 14
    assert DEFAULT.id == "running_sum"
    assert len(STEPS) == len(PRESETS) + len(UNGUARDED) + len(FAULTY)
    assert find_step("kalman") is STEPS["kalman"]
    assert find_step("no such") is None
    assert len({s.title for s in STEPS.values()}) == len(STEPS)


# --- the faulty ones ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", FAULTY, ids=lambda s: s.id)
def test_a_faulty_step_raises_and_its_right_twin_runs_on_the_same_inputs(step: Step):
    call = call_of(step.id)
    with pytest.raises(TypeError):
        run_call(call)
    right = right_of(step)
    assert right.id == step.right
    assert right_of(right) is right
    run_call(replace(call, step=right.fn))
    assert step.fn.__name__ == step.id


def test_the_faulty_ones_cover_the_rules_of_the_carry():
    assert {step.breaks for step in FAULTY} >= {"S101", "S102", "S103", "S104"}
