"""S110: a Python list as xs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from core.base.places import Field, Places
from core.base.violation import Severity
from core.contract.engine import check
from core.contract.subject import ScanCall
from core.doctor.check import check_script
from tests.unit.contract.scan_support import kinds, mended, only, run, several
from tests.unit.contract.silent_support import add, noted, quiet, warned

ROWS = [jnp.array([1.0, 2.0, 3.0]), jnp.array([4.0, 5.0, 6.0])]


def test_the_report_a_list_of_ints() -> None:
    call = ScanCall(lambda p, i: ((p[0] + 1, p[1] + i), i), (jnp.array(0), jnp.array(0)), list(range(5)))
    violation = only(call, "S110")
    assert violation.message.startswith("xs is a Python list of 5 numbers")
    final, ys = run(mended(call, "S110", "xs_array"))
    assert [int(v) for v in final] == [5, 10]
    assert ys.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("xs", "total"),
    [
        ([1.0, 2.5], 3.5),
        ([1, 2.5], 3.5),
        ((1, 2, 3), 6),
        ([True, False, True], 2),
        ([np.float32(1), np.float32(2)], 3),
        ([jnp.array(1.0), jnp.array(2.0)], 3),
        ([np.array(1), np.array(2)], 3),
    ],
)
def test_numbers(xs: Any, total: float) -> None:
    call = ScanCall(add, 0.0, xs)
    only(call, "S110")
    assert run(mended(call, "S110", "xs_array"))[0] == total


def test_rows_of_numbers() -> None:
    call = ScanCall(add, jnp.zeros(2), [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert "3 rows of numbers" in only(call, "S110").message
    assert run(mended(call, "S110", "xs_array"))[0].tolist() == [9.0, 12.0]


def test_keys() -> None:
    keys = [jax.random.key(i) for i in range(3)]
    call = ScanCall(lambda c, k: (c + jax.random.normal(k), None), 0.0, keys)
    only(call, "S110")
    assert run(mended(call, "S110", "xs_array"))[0] == pytest.approx(sum(float(jax.random.normal(k)) for k in keys))


def test_records_and_pairs() -> None:
    call = ScanCall(lambda c, x: (c + x["a"] * x["b"], c), 0.0, [{"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 4.0}])
    only(call, "S110")
    assert run(mended(call, "S110", "xs_array"))[0] == 14.0
    call = ScanCall(lambda c, x: (c + x[0] * x[1], c), 0.0, [(1, 2.0), (3, 4.0)])
    assert run(mended(call, "S110", "xs_array"))[0] == 14.0


def test_lists_inside_a_tuple_or_dict_are_sequences_of_their_own() -> None:
    call = ScanCall(lambda c, x: (c + x[0] * x[1], c), 0.0, ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]))
    assert [v.path for v in several(call, "S110")] == ["xs[0]", "xs[1]"]
    call = ScanCall(lambda c, x: (c + x["a"], c), 0.0, {"a": [1.0, 2.0]})
    assert only(call, "S110").path == "xs['a']"
    assert run(mended(call, "S110", "xs_array"))[0] == 3.0


def test_ragged_rows_and_numbers_too_large_have_no_fix() -> None:
    assert only(ScanCall(add, jnp.zeros(2), [[1.0, 2.0], [3.0]]), "S110").fixes == ()
    assert only(ScanCall(add, 0, [2**40, 1]), "S110").fixes == ()


@pytest.mark.parametrize("use", [lambda x: x, jnp.sum, lambda x: x * 2.0, jnp.tanh])
def test_the_step_wants_a_row(use: Any) -> None:
    call = ScanCall(lambda c, x: (c + use(x), None), jnp.zeros(3), ROWS)
    violation = only(call, "S110")
    assert "runs on one row" in violation.message
    after = run(mended(call, "S110", "xs_array"))[0]
    assert after.tolist() == (jnp.zeros(3) + use(ROWS[0]) + use(ROWS[1])).tolist()


def test_rows_read_in_part_scan_columns_silently() -> None:
    call = ScanCall(lambda c, x: (c + x[0], x), 0.0, ROWS)
    noted(call, "S110")  # y hands on all of x: two sequences side by side are as likely

    call = ScanCall(lambda c, x: (c + x[0], None), 0.0, ROWS)
    assert run(call)[0] == 6.0  # 1 + 2 + 3: three steps down the first row
    violation = noted(call, "S110")  # it may not need the second sequence
    assert "never reads x[1]" in violation.message
    assert violation.proof is not None
    assert (violation.proof.before, violation.proof.after) == (3, 2)
    assert run(mended(call, "S110", "xs_array"))[0] == 5.0  # 1 + 4


def test_as_many_rows_as_columns() -> None:
    call = ScanCall(lambda c, x: (c + x[0], None), 0.0, [jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])])
    violation = noted(call, "S110")
    assert violation.proof is not None
    assert violation.proof.before == 1.0  # step 0 sees 1, 3 instead of 1, 2
    assert run(mended(call, "S110", "xs_array"))[0] == 4.0


def test_what_else_proves_that_the_entries_are_steps() -> None:
    total: Any = lambda c, x: (c + sum(x), None)  # noqa: E731
    assert "declared TF" in warned(ScanCall(total, 0.0, ROWS, axes={"xs": "TF"}), "S110").message
    assert "length is 2" in only(ScanCall(total, 0.0, ROWS, length=2), "S110").message
    call = ScanCall(lambda c, x: (c + sum(x[0]) * x[1], None), 0.0, (ROWS, jnp.array([1.0, 2.0])))
    assert "the rest of xs has 2 steps" in only(call, "S110").message.lower()
    assert run(mended(call, "S110", "xs_array"))[0] == 36.0


def test_a_list_of_batches() -> None:
    pairs = [(jnp.ones(3), jnp.full(3, 2.0)), (jnp.ones(3), jnp.full(3, 3.0))]
    call = ScanCall(lambda c, x: (c + jnp.sum(x[0] * x[1]), None), 0.0, pairs)
    only(call, "S110")
    assert run(mended(call, "S110", "xs_array"))[0] == 15.0


def test_one_array_in_a_list() -> None:
    call = ScanCall(add, 0.0, [jnp.array([1.0, 2.0])])
    only(call, "S110")
    assert "xs_item" in kinds(call, "S110")
    assert run(mended(call, "S110", "xs_item"))[0] == 3.0
    quiet(ScanCall(lambda c, x: (c + x[0], None), 0.0, [jnp.array([1.0, 2.0])]), "S110")


def test_either_reading_runs() -> None:
    violation = noted(ScanCall(lambda c, x: (c + jnp.sum(jnp.asarray(x)), None), 0.0, ROWS), "S110")
    assert violation.severity is Severity.NOTE
    assert "side by side" in violation.message


def unpacked(c: Any, x: Any) -> Any:
    a, b = x
    return c + a * b, a


@pytest.mark.parametrize("xs", [ROWS, tuple(ROWS), (*ROWS[:1], jnp.arange(3)), {"a": ROWS[0], "b": ROWS[1]}])
def test_sequences_side_by_side_are_meant(xs: Any) -> None:
    step = unpacked if not isinstance(xs, dict) else (lambda c, x: (c + x["a"] * x["b"], None))
    quiet(ScanCall(step, 0.0, xs), "S110")


@pytest.mark.parametrize(
    ("step", "xs"),
    [
        (lambda c, x: (c + x[0], None), tuple(ROWS)),  # a tuple is never flagged
        (lambda c, x: (c + x[0] @ x[1], None), [jnp.ones((3, 2)), jnp.ones((3, 2))]),
        (lambda c, x: (c + x[1], None), [jnp.ones(3), jnp.arange(3)]),  # not of one dtype
        (add, jnp.stack(ROWS)[:, 0]),
        (lambda c, x: (c + 1, None), []),
    ],
)
def test_near_misses(step: Any, xs: Any) -> None:
    call = ScanCall(step, 0.0, xs, length=3 if xs == [] else None) if isinstance(xs, list) else ScanCall(step, 0.0, xs)
    run(call)
    assert "S110" not in {v.code for v in check(call).broken}


def test_a_text_and_a_single_number_are_not_its_business() -> None:
    for xs in ("abc", 5, ["a", "b"], (jnp.ones(3), 0.5)):
        assert {v.code for v in check(ScanCall(lambda c, x: (c, x), 0.0, xs)).violations} == {"S106"}


def test_places() -> None:
    places = Places({"xs": Field("scan_source", "xs"), "xs_bound": Field("elsewhere", "xs")})
    violation = only(ScanCall(add, 0, [1, 2], places=places), "S110")
    assert violation.place == Field("scan_source", "xs")
    assert violation.because is not None
    assert violation.because.place == Field("elsewhere", "xs")


@pytest.mark.parametrize("step", [lambda c, x: (c + x[0], None), lambda c, x: (c + x, None)], ids=["columns", "rows"])
def test_numpy_rows_beyond_32_bits_do_not_stop_the_rule(step: Any) -> None:
    """Stacking them without loss is impossible: that must neither raise nor hide that the step wants one row."""
    rows = [np.array([2**40, 1, 2]), np.array([3, 4, 5])]
    found = {(v.code, v.severity.value) for v in check(ScanCall(step, np.zeros((), np.int32), rows)).violations}
    assert ("N504", "warning") in found or ("S110", "error") in found, found


def test_a_script_with_rows_beyond_32_bits() -> None:
    head = "import jax, numpy as np\nrows = [np.array([2**40, 1, 2]), np.array([3, 4, 5])]\n"
    for step, code in (("c + x[0]", "N504"), ("c + x", "S110")):
        checkup = check_script(f"{head}jax.lax.scan(lambda c, x: ({step}, None), 0, rows)\n", fixes=False)
        assert code in {v.code for v in checkup.report.broken}
        assert checkup.run is not None
        assert not checkup.run.problems
