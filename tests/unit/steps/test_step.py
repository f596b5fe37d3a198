from __future__ import annotations

import ast
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from core.base.limits import LIMITS
from core.runners.cache import count_compiles
from core.steps.library import STEPS
from core.steps.step import XKind, plain_source, step_keys, x_aval


@pytest.mark.parametrize("step", STEPS.values(), ids=lambda s: s.id)
def test_the_code_shown_is_the_function_without_annotations(step):
    """It stands alone with the usual imports, and does what the function does."""
    (function,) = ast.parse(step.code).body
    assert all(arg.annotation is None for arg in (*function.args.args, *function.args.kwonlyargs))
    assert function.returns is None
    (ours,) = ast.parse(inspect.getsource(step.fn)).body
    for arg in (*ours.args.args, *ours.args.kwonlyargs):
        arg.annotation = None
    ours.returns = None
    assert ast.dump(function) == ast.dump(ours)
    names = {"jnp": jnp, "jax": jax, "lax": lax}
    exec(compile(step.code, step.id, "exec"), names)
    assert names[step.fn.__name__].__kwdefaults__ == step.fn.__kwdefaults__
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    assert not used & set(vars(inspect.getmodule(step.fn))) - {"jnp", "jax", "lax"}


@pytest.mark.parametrize("step", STEPS.values(), ids=lambda s: s.id)
def test_parameters_shown_in_the_code_have_the_opening_values(step):
    for p in step.params:
        if p.argument:
            assert step.fn.__kwdefaults__[p.name] == p.default


def both_ways(ärger: int, x: int, *, über: float = 1.5) -> tuple[int, str]:
    """Not ASCII, as names may be."""
    label = "ä = b, c: int"
    return ärger + x + int(über), label


def test_source_with_other_letters_keeps_its_body():
    assert plain_source(both_ways) == (
        "def both_ways(ärger, x, *, über=1.5):\n"
        '    """Not ASCII, as names may be."""\n'
        '    label = "ä = b, c: int"\n'
        "    return ärger + x + int(über), label\n"
    )
    with pytest.raises(TypeError):
        plain_source(XKind)


def test_keys_are_those_that_people_split():
    for length in (1, 3, 20):
        want = jax.random.key_data(jax.random.split(jax.random.key(11), length))
        np.testing.assert_array_equal(jax.random.key_data(step_keys(11, length)), want)
    assert not np.array_equal(jax.random.key_data(step_keys(0, 2)), jax.random.key_data(step_keys(1, 2)))
    assert step_keys(0, 0).shape == (0,)
    with pytest.raises(ValueError):
        step_keys(0, LIMITS["length"].value + 1)


def test_another_seed_or_length_of_keys_compiles_nothing():
    step_keys(0, 5)
    with count_compiles() as compiles:
        step_keys(1, 5)
        step_keys(1, 77)
    assert compiles.count == 0


def test_what_one_x_is():
    assert str(x_aval(np.ones((4, 2), np.float64))) == "float32[2]"
    assert str(x_aval(jax.ShapeDtypeStruct((10**9, 3), jnp.int8))) == "int8[3]"
    assert x_aval(None) is None
    assert XKind.ANY.takes((2, 3))
    assert XKind.VECTOR.takes((3,))
    assert not XKind.VECTOR.takes(())
    assert not XKind.SCALAR.takes((1,))
