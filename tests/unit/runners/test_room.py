import jax.numpy as jnp

from core.runners.cache import PROGRAMS
from core.runners.room import keep_room


def _eager(sizes):
    for n in sizes:
        jnp.linspace(0.0, 1.0, n) * jnp.ones(n)


def test_nothing_is_dropped_while_there_is_room():
    keep_room(0)
    assert keep_room(10_000) is False


def test_what_eager_operations_left_is_dropped_and_counted_anew():
    keep_room(0)
    _eager(range(101, 105))
    assert keep_room(3) is True
    assert keep_room(3) is False


def test_a_program_in_the_store_still_runs_afterwards():
    x = jnp.arange(7.0)
    program, _ = PROGRAMS.get(("test of room",), lambda a: a * 2, (x,))
    _eager(range(111, 114))
    assert keep_room(0) is True
    assert program(x).tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0]
    assert PROGRAMS.get(("test of room",), lambda a: a * 2, (x,))[1] is False
