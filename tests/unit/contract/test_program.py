"""Reading and replaying a step's program."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from core.base.jaxprs import made_floats
from core.contract.program import before_cut, cut_backs, meets, operations, reached, reads
from core.contract.replay import Birth, Given, origins


def program(step: Any, *args: Any) -> Any:
    return jax.make_jaxpr(step)(*args)


def test_operations_are_those_of_called_programs_too() -> None:
    made = program(
        lambda a, b: jnp.where(a > 0, jax.nn.softplus(b), jax.lax.cond(a > 1, jnp.sin, jnp.cos, b)), 1.0, 2.0
    )
    assert {"gt", "select_n", "log1p", "cond", "sin", "cos"} <= operations(made)
    assert "jit" not in operations(made)
    assert "custom_jvp_call" not in operations(made)


def test_reads() -> None:
    made = program(lambda a, b, c, d: (jax.jit(lambda p, q: p)(a, b), d), 1.0, 2.0, 3.0, 4.0)
    assert reads(made) == (True, False, False, True)


def test_meets() -> None:
    vector, matrix = jnp.ones(3), jnp.ones((4, 3))
    assert meets(program(lambda w, x: x * w, 2.0, vector), 0) == {3}
    assert meets(program(lambda w, x: jnp.sum(x) * w, 2.0, vector), 0) == frozenset()
    assert meets(program(lambda w, x: x + jnp.full((4, 3), w), 2.0, matrix), 0) == {3, 4}
    assert meets(program(lambda w, x: x @ w, vector, matrix), 0) == {3, 4}
    assert meets(program(lambda w, x: x * w, vector, vector), 0) == frozenset()  # element by element: nothing is spread
    assert meets(program(lambda w, x: (x, w * jnp.ones(3)), 2.0, vector), 0) == frozenset()


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_cut_backs() -> None:
    buffer = jnp.zeros(2, int)
    made = program(lambda b, x: (x, b.at[0].set(x)), buffer, 1.5)
    (cut,) = cut_backs(made)
    assert (cut.wide, cut.narrow, cut.output) == ("float32", "int32", 1)
    assert np.asarray(before_cut(made, [buffer, 2.5], (cut,))[0]).tolist() == [2.5, 0.0]
    assert cut_backs(program(lambda b, x: b.at[0].set(x.astype(int)), buffer, jnp.float32(1.5))) == ()
    assert cut_backs(program(lambda b, x: b.at[0].set(x), jnp.zeros(2), 1.5)) == ()


def births(step: Any, *args: Any) -> list[Any]:
    return [o for output in origins(program(step, *args), [jnp.asarray(a) for a in args]) for o in output]


def test_where_a_value_was_born() -> None:
    (birth,) = births(lambda a, b: jax.jit(jnp.divide)(a, b) + 1, 1.0, 0.0)
    assert isinstance(birth, Birth)
    assert (birth.operation, birth.inputs, birth.output, birth.live) == ("div", (1.0, 0.0), np.inf, True)
    assert births(lambda a, b: a + b, 1.0, jnp.inf) == [Given(1)]
    assert births(lambda a: jnp.where(a > 0, a, -jnp.inf), -1.0) == [Given(None)]
    assert births(lambda a: jnp.where(a > 0, jnp.log(a), 0.0), -1.0) == []  # not chosen
    (dead,) = births(lambda a: a + jnp.log(jnp.array(0.0)), 1.0)
    assert isinstance(dead, Birth)
    assert not dead.live
    found = births(lambda a, b: a - b, jnp.inf, jnp.inf)
    assert [o.of_infinity for o in found if isinstance(o, Birth)] == [True]


def test_a_print_is_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    def step(a: Any) -> Any:
        jax.debug.print("a = {a}", a=a)
        return jnp.log(a)

    assert births(step, 0.0)
    jax.effects_barrier()
    assert capsys.readouterr().out == ""


def test_the_floats_that_a_program_computes_in() -> None:
    def made(step: Any, *args: Any) -> frozenset[str]:
        return made_floats(jax.make_jaxpr(step)(*args))

    narrow = jnp.ones(3, jnp.bfloat16)
    assert made(lambda x: x.astype(jnp.float32) * 2, narrow) == {"float32"}  # it only comes in
    assert made(lambda x: x.reshape(3, 1), narrow) == frozenset()
    assert made(jax.jit(lambda x: (x.astype(jnp.bfloat16) * 2).astype(jnp.float32)), jnp.ones(3)) == {
        "bfloat16",
        "float32",
    }


def test_what_an_operation_reaches() -> None:
    def step(a: Any, b: Any, c: Any, x: Any) -> Any:
        return a + x, b ^ x, jnp.where(b > 0, c + 1, c), b + c

    program = jax.make_jaxpr(step)(1, 2, 3, 4)
    xor: Any = lambda eqn: eqn.primitive.name == "xor"  # noqa: E731
    assert reached(program, xor, 3) == (False, True, False, True)  # a choice by b is not made of b
    assert reached(program, xor, 0) == (False, True, False, False)  # in one step
    later = jax.make_jaxpr(lambda a, b: (a ^ 1, a + b))(1, 2)
    assert reached(later, xor, 2) == (True, True)
