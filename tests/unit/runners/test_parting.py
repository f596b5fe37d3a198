"""Comparing records leaf by leaf, and the paths of one scan: planted partings are found where they were planted."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

from core.base.outcome import RawError
from core.base.parting import Lever, Path, Stage, found_lever
from core.base.tolerance import TOLERANCES
from core.contract.subject import ScanCall
from core.runners.parting import REFERENCE, Record, checks, compare, run, simplify
from core.runners.parting_scan import Scanned
from core.steps.library import PRESETS
from core.steps.step import x_aval

XS = np.asarray([0.5, 1.5, -2.0, 0.25, 3.0], np.float32)


def record(path: Path = Path.JIT, failed=None, **stages) -> Record:
    return Record(path, {Stage(name): trees for name, trees in stages.items()}, failed, frozenset({"ys"}))


def first(got: Record, want: Record):
    found = [check for check in checks(got, want) if not check.ok]
    return found[0] if found else None


# --- leaf by leaf ---------------------------------------------------------------------------------------------------


def test_the_first_t_is_named_whichever_leaf_it_is_in():
    want = record(forward={"ys": {"a": np.zeros((4, 2), np.float32), "b": np.zeros(4, np.float32)}})
    a, b = np.zeros((4, 2), np.float32), np.zeros(4, np.float32)
    a[3, 1], b[2] = 1, 1
    check = first(record(forward={"ys": {"a": a, "b": b}}), want)
    assert (check.stage, check.parted.leaf, check.parted.t, check.parted.index) == (Stage.FORWARD, "ys['b']", 2, ())
    assert (check.parted.got, check.parted.want) == ("1.0", "0.0")


def test_a_leaf_without_steps_comes_after_those_with_them():
    want = record(forward={"final carry": np.zeros(2, np.float32), "ys": np.zeros(3, np.float32)})
    got = record(forward={"final carry": np.ones(2, np.float32), "ys": np.ones(3, np.float32)})
    assert first(got, want).parted.leaf == "ys"


def test_steps_that_run_from_the_end_are_named_by_the_t_they_read():
    want = replace(record(forward={"ys": np.zeros(5, np.float32)}), backwards=5)
    got = np.zeros(5, np.float32)
    got[1] = 1
    assert first(record(forward={"ys": got}), want).parted.t == 3


@pytest.mark.parametrize("other", [{"b": np.zeros(2)}, [np.zeros(2)], (np.zeros(2), np.zeros(2)), None])
def test_structure_comes_before_values(other):
    check = first(record(forward={"ys": other}), record(forward={"ys": {"a": np.zeros(2)}}))
    assert check.parted.leaf == "ys"
    assert "'a'" in check.parted.want


def test_a_root_that_is_missing_parts():
    assert first(record(loss={}), record(loss={"loss": np.float32(1)})).parted.got == "nothing"


def test_words_are_compared_as_words():
    check = first(record(state={"state": {"w": "BatchStat"}}), record(state={"state": {"w": "Param"}}))
    assert (check.stage, check.parted.leaf) == (Stage.STATE, "state['w']")
    assert (check.parted.got, check.parted.want) == ("BatchStat", "Param")


def test_nan_equals_nan_at_the_same_place_only():
    want = np.asarray([1, np.nan, np.inf, 2], np.float32)
    assert first(record(forward={"ys": want.copy()}), record(forward={"ys": want})) is None
    check = first(record(forward={"ys": np.asarray([1, 0, np.inf, np.nan], np.float32)}), record(forward={"ys": want}))
    assert (check.parted.t, check.parted.got, check.parted.want) == (1, "0.0", "nan")
    assert check.largest == np.inf


def test_shapes_and_dtypes_are_a_stage_before_the_values():
    check = first(record(forward={"ys": np.zeros(3, np.float16)}), record(forward={"ys": np.zeros(3, np.float32)}))
    assert (check.stage, check.parted.got, check.parted.want) == (Stage.SHAPES, "float16[3]", "float32[3]")
    wide = record(Path.FLOAT64, forward={"ys": np.zeros(3)})
    assert first(wide, record(forward={"ys": np.zeros(3, np.float32)})) is None


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_the_tolerance_is_that_of_the_dtype_and_no_wider(dtype):
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    used = TOLERANCES[dtype]
    want = np.asarray([1.0], kind)
    beyond = np.asarray([1.0 + 1.5 * (used.atol + used.rtol)]).astype(kind)
    if beyond[0] == want[0]:
        beyond = np.nextafter(want, np.asarray([2], kind))
    check = first(record(forward={"ys": beyond}), record(forward={"ys": want}))
    (all_,) = [
        c for c in checks(record(forward={"ys": want}), record(forward={"ys": want})) if c.stage is Stage.FORWARD
    ]
    assert all_.tolerance == used
    assert check is not None
    assert check.tolerance == used


def test_a_small_number_beside_large_ones_parts_and_is_said_to_be_rounding():
    want, got = np.asarray([1e4, 1e-3], np.float32), np.asarray([1e4, 2e-3], np.float32)
    parted = first(record(gradients={"grad": got}), record(gradients={"grad": want})).parted
    assert parted.rounding
    assert parted.index == (1,)
    alone = first(record(gradients={"grad": got[1:]}), record(gradients={"grad": want[1:]})).parted
    assert not alone.rounding


def test_errors_are_outcomes_and_are_compared_too():
    raised = (Stage.FORWARD, RawError("TypeError", "no"))
    whole, broken = record(data={"xs": XS}, forward={"ys": XS}), record(data={"xs": XS}, failed=raised)
    check = first(broken, whole)
    assert (check.stage, check.error) == (Stage.FORWARD, raised[1])
    assert first(broken, broken) is None  # the reference's own error is said once, by `compare`


# --- the paths of a scan --------------------------------------------------------------------------------------------


def preset_call(step) -> ScanCall:
    xs = step.opening_xs()
    return ScanCall(
        step.fn,
        step.init(x_aval(xs), step.defaults),
        xs,
        length=step.length if xs is None else None,
        params=step.arguments(step, x_aval(xs), step.defaults),
    )


@pytest.mark.parametrize("step", PRESETS, ids=lambda step: step.id)
def test_the_usual_paths_of_every_preset_agree(step):
    found = compare(Scanned(preset_call(step)))
    assert found.first is None, found.first
    assert {c.path for c in found.checks} == {Path.LOOP, Path.JIT}
    assert {c.stage for c in found.checks} == {Stage.DATA, Stage.SHAPES, Stage.FORWARD}


def test_a_chaotic_map_parts_between_float32_and_float64_at_the_t_that_numpy_finds():
    def step(c, x):
        c = 3.9 * c * (1 - c)
        return c, c

    found = compare(Scanned(ScanCall(step, 0.2, None, length=60)), (Path.FLOAT64,)).first
    narrow, wide, t = np.float32(0.2), 0.2, None
    for n in range(60):
        narrow = np.float32(3.9) * narrow * (np.float32(1) - narrow)
        wide = 3.9 * wide * (1 - wide)
        if abs(narrow - wide) > 1e-6 + 1e-5 * abs(narrow):
            t = n
            break
    assert (found.path, found.stage, found.parted.leaf) == (Path.FLOAT64, Stage.FORWARD, "carry")
    assert abs(found.parted.t - t) <= 1  # another order of the products rounds otherwise
    assert abs(float(found.parted.got) - float(found.parted.want)) > 1e-6


@pytest.mark.parametrize("reverse", [False, True])
def test_padding_without_a_mask_moves_the_final_carry_alone(reverse):
    def step(c, x):
        c = 0.5 * c + x
        return c, c

    call = ScanCall(step, np.float32(1), XS, reverse=reverse)
    found = compare(Scanned(call), (Path.PADDED,)).first
    if reverse:  # the padding is visited first
        assert (found.parted.leaf, found.parted.t) == ("carry", 4)
    else:
        assert (found.parted.leaf, found.parted.t) == ("final carry", None)
        assert float(found.parted.got) == pytest.approx(float(found.parted.want) * 0.5**3)


def test_padding_that_the_step_leaves_alone_agrees():
    call = ScanCall(lambda c, x: (c + x, c), np.float32(0), XS)
    assert compare(Scanned(call), (Path.PADDED,)).first is None


def test_a_step_that_counts_by_side_effect_parts_in_the_loop_at_its_second_step():
    calls = []

    def step(c, x):
        calls.append(x)
        return c + x, c * 0 + len(calls)

    found = compare(Scanned(ScanCall(step, np.float32(0), XS)), (Path.LOOP,)).first
    assert (found.path, found.stage, found.parted.leaf) == (Path.LOOP, Stage.FORWARD, "ys")


def test_numpy_random_numbers_are_frozen_in_the_scan():
    rng = np.random.default_rng(0)
    found = compare(Scanned(ScanCall(lambda c, x: (c + x, x + rng.normal()), np.float32(0), XS)), (Path.LOOP,)).first
    assert (found.path, found.parted.leaf, found.parted.t) == (Path.LOOP, "ys", 0)


def test_examples_that_are_mixed_part_when_they_are_mapped():
    xs = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
    axes = {"xs": "TBF"}
    alone = ScanCall(lambda c, x: (c + x, c * x), np.zeros((3, 2), np.float32), xs, axes=axes)
    assert compare(Scanned(alone), (Path.VMAP,)).first is None
    mixed = replace(alone, step=lambda c, x: (c + x - x.mean(axis=0), c))
    found = compare(Scanned(mixed), (Path.VMAP,)).first
    assert (found.path, found.stage, found.parted.leaf, found.parted.t) == (Path.VMAP, Stage.FORWARD, "carry", 0)


def test_what_examples_share_is_said_once():
    xs = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
    call = ScanCall(
        lambda c, x: ((c[0] + 1, c[1] + x), c[0]), (np.int32(0), np.zeros((3, 2), np.float32)), xs, axes={"xs": "TBF"}
    )
    assert compare(Scanned(call), (Path.VMAP,)).first is None


def test_a_batch_first_scan_parts_when_it_is_mapped_over_its_true_examples():
    xs = np.arange(24, dtype=np.float32).reshape(3, 4, 2)
    call = ScanCall(lambda c, x: (c + x, c), np.zeros((4, 2), np.float32), xs, axes={"xs": "BTF"})
    found = compare(Scanned(call), (Path.VMAP,)).first
    assert found is not None
    assert found.path is Path.VMAP


def test_gradients_that_are_nan_everywhere_agree_and_one_that_is_nan_on_one_path_parts():
    def root(c, x):
        c = c + jnp.where(x > 0, jnp.sqrt(x), 0.0)
        return c, c

    alike = compare(Scanned(ScanCall(root, np.float32(0), np.zeros(3, np.float32)), differentiate=True))
    assert alike.first is None
    assert any(c.stage is Stage.GRADIENTS and c.leaves for c in alike.checks)

    def sly(c, x):  # the same values; outside a scan its gradient is 0 · inf
        traced = type(x).__name__ == "DynamicJaxprTracer"
        return c + x + (0.0 if traced else jnp.where(x > 99, jnp.sqrt(x * 0), 0.0)), c

    found = compare(Scanned(ScanCall(sly, np.float32(0), XS), differentiate=True), (Path.LOOP,)).first
    assert (found.path, found.stage, found.parted.got) == (Path.LOOP, Stage.GRADIENTS, "nan")


def test_a_reference_that_raises_is_named_and_is_the_first():
    found = compare(Scanned(ScanCall(lambda c, x: (jnp.stack([c, c]), c), np.float32(0), XS)))
    assert found.first.path is REFERENCE
    assert (found.first.stage, found.first.error.type) == (Stage.FORWARD, "TypeError")


def test_a_loop_starts_from_init_as_an_array_and_not_as_a_python_number():
    call = ScanCall(lambda c, x: (c * 1.1 + x, c), 0.1, XS)
    loop = run(Scanned(call), Path.LOOP)
    assert loop.stages[Stage.FORWARD]["final carry"].dtype == np.float32
    slow = run(Scanned(call, jit=False), Path.EAGER)
    assert slow.stages[Stage.FORWARD]["final carry"].dtype == np.float32
    final, _ = lax.scan(call.step, call.init, call.xs)
    np.testing.assert_allclose(loop.stages[Stage.FORWARD]["final carry"], final, rtol=1e-5)


def test_64_bits_are_off_again_and_were_on():
    wide = run(Scanned(ScanCall(lambda c, x: (c + x, c), 0.0, XS)), Path.FLOAT64)
    assert wide.stages[Stage.FORWARD]["ys"].dtype == np.float64
    assert jnp.zeros(1).dtype == jnp.float32


def test_paths_that_cannot_be_run_are_left_out_with_a_reason():
    found = compare(Scanned(ScanCall(lambda c, x: (c + 1, c), 0, None, length=3)), tuple(Path))
    assert dict(found.left_out).keys() == {Path.VMAP, Path.PADDED, Path.BACKEND}
    assert all(reason.endswith(".") for _, reason in found.left_out)


@pytest.mark.parametrize("length", [0, 1])
def test_no_step_and_one_step(length):
    call = ScanCall(lambda c, x: (c + x, c), np.float32(0), XS[:length])
    assert compare(Scanned(call), (Path.LOOP, Path.JIT, Path.UNROLLED, Path.FLOAT64)).first is None


def test_simplify_names_the_length_and_tells_each_rerun():
    told = []
    scan = Scanned(ScanCall(lambda c, x: (3.9 * c * (1 - c), c), 0.2, None, length=40))
    tried = simplify(scan, Path.FLOAT64, tell=told.append)
    assert found_lever(scan.levers, tried) is Lever.LENGTH
    assert tuple(told) == tried
    assert scan.simplified(frozenset({Lever.LENGTH})).length == 1


def test_telling_may_end_a_comparison():
    class Enough(Exception):
        pass

    def tell(path):
        if path is Path.JIT:
            raise Enough

    with pytest.raises(Enough):
        compare(Scanned(ScanCall(lambda c, x: (c + x, c), np.float32(0), XS)), tell=tell)
