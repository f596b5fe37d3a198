"""S111: the empty sequence, a note."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from core.base.outcome import Outcome
from core.base.places import Field, Places
from core.base.violation import Severity
from core.contract.engine import check
from core.contract.subject import ScanCall
from tests.unit.contract.scan_support import clean, run


def add(c: Any, x: Any) -> Any:
    return c + jnp.sum(x), c


class Add:
    def __call__(self, c: Any, x: Any) -> Any:
        return add(c, x)


def count(c: Any, _: Any) -> Any:
    return c + 1, c


@pytest.mark.parametrize("step", [add, Add(), Add().__call__, jax.jit(add), lambda *a: add(*a)])
@pytest.mark.parametrize("xs", [jnp.ones(0), jnp.ones((0, 3))])
@pytest.mark.parametrize("length", [None, 0])
def test_empty_xs(step: Any, xs: Any, length: Any) -> None:
    call = ScanCall(step, 2.5, xs, length=length)
    final, ys = run(call)
    assert final == 2.5
    assert ys.shape == (0,)
    report = clean(call)
    assert report.codes == ("S111",)
    note = report.notes[0]
    assert note.severity is Severity.NOTE
    assert note.silent
    assert note.message.startswith(f"xs is empty, {jax.typeof(xs).str_short()}: ")


def test_length_0_without_xs() -> None:
    report = clean(ScanCall(count, 2.5, None, length=0))
    assert report.codes == ("S111",)
    assert "length is 0" in report.notes[0].message


def test_the_step_is_traced_all_the_same() -> None:
    call = ScanCall(lambda c, x: (jnp.append(c, x), c), jnp.zeros(2), jnp.ones(0))
    with pytest.raises(TypeError):
        run(call)
    report = check(call)
    assert report.outcome is Outcome.VIOLATIONS
    assert report.codes == ("S103", "S111")


@pytest.mark.parametrize(
    ("xs", "length"), [(jnp.ones(1), None), (jnp.ones((1, 0)), None), (None, 1), (jnp.ones((3, 0)), 3)]
)
def test_a_step_is_a_step(xs: Any, length: Any) -> None:
    assert "S111" not in clean(ScanCall(lambda c, x: (c + 1, c), 0.0, xs, length=length)).codes


def test_a_length_that_is_bent_to_0_is_another_rule_s() -> None:
    call = ScanCall(count, 0.0, None, length=0.5)
    run(call)
    assert check(call).codes == ("S116",)


def test_place() -> None:
    places = Places({"length": Field("scan_length", "length"), "xs": Field("scan_source", "xs")})
    assert check(ScanCall(add, 0.0, jnp.ones(0), places=places)).notes[0].place == Field("scan_source", "xs")
    assert check(ScanCall(count, 0.0, length=0, places=places)).notes[0].place == Field("scan_length", "length")
