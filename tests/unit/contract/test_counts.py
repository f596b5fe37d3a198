"""What `lax.scan` makes of a length: the table is compared with the real one."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from core.contract.counts import Kind, count_of, is_int, is_number

VALUES = [
    *(
        (0, Kind.WHOLE),
        (3, Kind.WHOLE),
        (np.int8(3), Kind.WHOLE),
        (np.array(3), Kind.WHOLE),
        (jnp.array(3), Kind.WHOLE),
    ),
    *((3.0, Kind.SAME), (np.float32(3), Kind.SAME), (jnp.array(3.0), Kind.SAME), (1e2, Kind.SAME)),
    *((3.5, Kind.BENT), (0.5, Kind.BENT), (-0.5, Kind.BENT), ("3", Kind.BENT), (b"3", Kind.BENT), (" 3 ", Kind.BENT)),
    *((True, Kind.BENT), (False, Kind.BENT), (np.True_, Kind.BENT), (jnp.array(2.5), Kind.BENT)),
    *((-1, Kind.NEGATIVE), (-1.5, Kind.NEGATIVE), ("-1", Kind.NEGATIVE), (np.int64(-2), Kind.NEGATIVE)),
    *((None, Kind.NONE), ("", Kind.NONE), ("3.5", Kind.NONE), (float("nan"), Kind.NONE), (float("inf"), Kind.NONE)),
    *(([3], Kind.NONE), (np.array([3]), Kind.NONE), (1j, Kind.NONE), (object(), Kind.NONE), ({}, Kind.NONE)),
]


@pytest.mark.parametrize(("value", "kind"), VALUES)
def test_kinds(value: Any, kind: Kind) -> None:
    count = count_of(value)
    assert count.kind is kind
    assert (count.steps is None) == (kind is Kind.NONE)


@pytest.mark.parametrize(("value", "kind"), [v for v in VALUES if v[1] in (Kind.WHOLE, Kind.SAME, Kind.BENT)])
def test_steps_are_those_that_lax_scan_runs(value: Any, kind: Kind) -> None:
    steps, _ = lax.scan(lambda n, _: (n + 1, None), 0, None, length=value)
    assert count_of(value).steps == int(steps)


def test_a_traced_value_is_no_number_yet() -> None:
    seen: list[Kind] = []
    jax.make_jaxpr(lambda n: seen.append(count_of(n).kind))(3)
    assert seen == [Kind.ABSTRACT]


def test_an_object_that_raises_anything_is_no_count() -> None:
    class Odd:
        def __int__(self) -> int:
            raise RuntimeError("no")

    assert count_of(Odd()).kind is Kind.NONE


def test_numbers() -> None:
    assert [is_int(v) for v in (1, True, 1.0, np.int8(1), jnp.array([1]), "1", jax.random.key(0))] == [
        *(True, False, False, True, False, False, False)
    ]
    assert [is_number(v) for v in (1, True, 1.0, 1j, np.float16(1), np.complex64(1), jnp.ones(2), "1")] == [
        *(True, False, True, False, True, False, False, False)
    ]
