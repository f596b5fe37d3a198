"""S115: batch-major xs."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from core.base.places import Field, Places
from core.base.violation import Severity
from core.contract.engine import check
from core.contract.subject import ScanCall
from tests.unit.contract.scan_support import clean, mended, only, run
from tests.unit.contract.silent_support import noted, quiet, warned

XS = jnp.arange(30.0).reshape(2, 5, 3)  # two examples, five steps, three features
BTF = {"xs": "BTF"}


def leak(c: Any, x: Any) -> Any:
    c = c * 0.5 + x
    return c, c * 1


def right(xs: Any) -> Any:
    """What each example by itself gives, by hand: (T, B, F)."""
    c, out = np.zeros(xs.shape[::2]), []
    for t in range(xs.shape[1]):
        c = c * 0.5 + np.asarray(xs[:, t])
        out.append(c)
    return np.stack(out)


def test_declared_and_silent() -> None:
    call = ScanCall(leak, jnp.zeros((5, 3)), XS, axes=BTF)
    assert run(call)[1].shape == (2, 5, 3)  # two steps
    violation = warned(call, "S115")
    assert violation.message.endswith("its 2 steps are examples, not time.")
    assert violation.proof is not None
    assert (violation.proof.before, violation.proof.after) == (0.5, 0.0)
    fixed = mended(call, "S115", "xs_axes")
    assert fixed.axes == {"xs": "TBF"}
    np.testing.assert_allclose(run(fixed)[1], right(XS), rtol=1e-6)


@pytest.mark.parametrize("reverse", [False, True])
def test_declared_with_one_number_a_step(reverse: bool) -> None:
    call = ScanCall(leak, jnp.zeros(5), XS[:, :, 0], axes={"xs": "BT"}, reverse=reverse)
    violation = warned(call, "S115")
    assert violation.proof is not None
    assert violation.proof.after == 0.0


def test_declared_by_leaf_and_whole_numbers() -> None:
    def step(c: Any, x: Any) -> Any:
        return c + x["a"] * x["b"], None

    xs = {"a": jnp.ones((2, 5), int), "b": jnp.ones((2, 5), int)}
    call = ScanCall(step, jnp.zeros(5, int), xs, axes={"xs['a']": "BT", "xs['b']": "BT"})
    warned(call, "S115")
    assert run(mended(call, "S115", "xs_axes"))[0].tolist() == [5, 5]


def test_declared_and_as_long_as_broad() -> None:
    call = ScanCall(leak, jnp.zeros((2, 3)), XS[:, :2], axes=BTF)
    warned(call, "S115")
    np.testing.assert_allclose(run(mended(call, "S115", "xs_axes"))[1], right(XS[:, :2]), rtol=1e-6)


def test_where_no_result_belongs_to_one_example_the_steps_are_counted() -> None:
    violation = warned(ScanCall(lambda c, x: (c + jnp.sum(x), None), 0.0, XS, axes=BTF), "S115")
    assert violation.proof is not None
    assert (violation.proof.before, violation.proof.after) == (2, 5)


def test_a_scan_that_carries_nothing_from_one_example_to_the_next() -> None:
    violation = noted(ScanCall(lambda c, x: (c + 1, jnp.sum(x)), 0.0, XS, axes=BTF), "S115")
    assert violation.severity is Severity.NOTE


def test_declared_and_raised() -> None:
    call = ScanCall(leak, jnp.zeros((2, 3)), XS, axes=BTF)
    only(call, "S115")
    np.testing.assert_allclose(run(mended(call, "S115", "xs_axes"))[1], right(XS), rtol=1e-6)


@pytest.mark.parametrize(
    ("xs", "init"), [(XS, jnp.zeros((2, 3))), (XS[:1], jnp.zeros((1, 3))), (XS[:, :, 0], jnp.zeros(2))]
)
def test_proven_by_sizes(xs: Any, init: Any) -> None:
    call = ScanCall(leak, init, xs)
    violation = only(call, "S115")
    assert f"carry has {xs.shape[0]} rows" in violation.message
    assert violation.fixes
    assert run(mended(call, "S115", "xs_axes"))[1].shape[0] == 5


def test_a_cell_in_the_step() -> None:
    cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
    init = cell.initialize_carry((2, 3), rngs=nnx.Rngs(1))
    call = ScanCall(lambda c, x: cell(c, x), init, XS)
    only(call, "S115")
    assert run(mended(call, "S115", "xs_axes"))[1].shape == (5, 2, 4)
    clean(ScanCall(lambda c, x: cell(c, x), init, jnp.moveaxis(XS, 1, 0)))


def test_equally_long_is_a_note() -> None:
    violation = noted(ScanCall(leak, jnp.zeros((2, 3)), XS[:, :2]), "S115")
    assert violation.severity is Severity.NOTE
    assert "no shape tells them apart" in violation.message


@pytest.mark.parametrize(
    ("init", "xs", "axes"),
    [
        (jnp.zeros((2, 3)), jnp.moveaxis(XS, 1, 0), {}),
        (jnp.zeros((2, 3)), jnp.moveaxis(XS, 1, 0), {"xs": "TBF"}),
        (jnp.zeros((2, 3)), XS[:, :2], {"xs": "TBF"}),  # said to be time-major
        (jnp.zeros(3), jnp.eye(3), {}),  # a square sequence of features
        (jnp.zeros(3), jnp.eye(3), {"xs": "TF"}),
        (jnp.zeros((5, 3)), XS, {}),  # nothing was declared, and it runs
        (jnp.zeros((4, 3)), jnp.ones((4, 4, 3)), {"xs": "TBF"}),
        (0.0, jnp.ones(4), {"xs": "BTF"}),  # letters for another rank
    ],
)
def test_near_misses(init: Any, xs: Any, axes: dict[str, str]) -> None:
    quiet(ScanCall(leak, init, xs, axes=axes), "S115")


def test_other_faults_stay_what_they_are() -> None:
    grows = ScanCall(lambda c, x: (jnp.append(c, x[0]), None), jnp.zeros(2), jnp.ones((2, 3)))
    only(grows, "S103")
    both = ScanCall(lambda c, x: (jnp.append(c, 1.0), None), jnp.zeros((2, 3)), XS, axes=BTF)
    assert [v.code for v in check(both).broken] == ["S103"]


def test_places() -> None:
    places = Places({"xs": Field("scan_source", "xs"), "init": Field("scan_init", "init")})
    violation = only(ScanCall(leak, jnp.zeros((2, 3)), XS, places=places), "S115")
    assert violation.place == Field("scan_source", "xs")
    assert violation.because is not None
    assert violation.because.place == Field("scan_init", "init")
