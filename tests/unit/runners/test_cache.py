from __future__ import annotations

import gc
import threading
import time
import weakref
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from core.base.bucket import Bucket
from core.runners import cache
from core.runners.cache import Programs, SlowedError, count_compiles, is_library, paced
from core.steps.accumulate import product, running_sum

MAPS = Path("/proc/self/maps")


def memory_maps() -> int:
    return MAPS.read_bytes().count(b"\n")


def adds(n: int = 0):
    return lambda x: x + n


def ones(n: int) -> np.ndarray:
    return np.ones(n, np.float32)


def test_the_same_key_and_types_compile_once():
    programs = Programs(4)
    first, new = programs.get(("add", 1), adds(1), (ones(3),))
    with count_compiles() as compiles:
        second, again = programs.get(("add", 1), adds(1), (2 * ones(3),))
        np.testing.assert_array_equal(second(2 * ones(3)), 3 * ones(3))
    assert (new, again, second is first, compiles.count) == (True, False, True, 0)
    assert programs.stats == (1, 1, 1, 0)


@pytest.mark.parametrize(
    "other",
    [
        (("add", 2), (ones(3),)),
        (("add", 1), (ones(4),)),
        (("add", 1), (ones(3).astype(np.int32),)),
        (("add", 1), ([ones(3)][0:1],)),
    ],
    ids=["key", "shape", "dtype", "tree"],
)
def test_key_shape_dtype_and_tree_tell_programs_apart(other):
    programs = Programs(4)
    programs.get(("add", 1), adds(1), (ones(3),))
    key, args = other
    _, new = programs.get(key, lambda x: jax.tree.map(lambda leaf: leaf + 1, x), args)
    assert new
    assert programs.stats.programs == 2


def test_a_weak_argument_is_another_type():
    programs = Programs(4)
    programs.get(("same",), lambda x: x, (1.0,))
    _, new = programs.get(("same",), lambda x: x, (np.float32(1.0),))
    assert new


def test_64_bits_are_another_program():
    programs = Programs(4)
    programs.get(("half",), lambda x: x / 3.0, (ones(1),))
    with jax.enable_x64(True):
        _, new = programs.get(("half",), lambda x: x / 3.0, (ones(1),))
    assert new


def test_the_least_recently_used_goes_first():
    programs = Programs(2)
    programs.get(("add", 1), adds(1), (ones(1),))
    programs.get(("add", 2), adds(2), (ones(1),))
    programs.get(("add", 1), adds(1), (ones(1),))
    programs.get(("add", 3), adds(3), (ones(1),))
    assert programs.get(("add", 1), adds(1), (ones(1),))[1] is False
    assert programs.get(("add", 2), adds(2), (ones(1),))[1] is True
    assert programs.stats.evictions == 2


def test_an_evicted_program_is_really_gone():
    programs = Programs(1)
    program, _ = programs.get(("add", 1), adds(1), (ones(1),))
    gone = weakref.ref(program)
    del program
    programs.get(("add", 2), adds(2), (ones(1),))
    gc.collect()
    assert gone() is None


@pytest.mark.skipif(not MAPS.exists(), reason="memory maps are counted on Linux")
def test_evicted_programs_give_their_memory_maps_back():
    def growth(limit: int) -> int:
        gc.collect()
        before, programs = memory_maps(), Programs(limit)
        for n in range(1, 31):
            programs.get(("sum", n), lambda x: jnp.sin(x).sum(), (ones(n),))
        gc.collect()
        return memory_maps() - before

    growth(1)
    assert growth(1) < growth(30) / 3


def test_a_hundred_shapes_stay_within_the_limit():
    programs = Programs(8)
    for n in range(1, 101):
        program, _ = programs.get(("add", 1), adds(1), (ones(n),))
        assert program(ones(n)).shape == (n,)
        assert programs.stats.programs <= 8
    assert programs.stats == (8, 0, 100, 92)


def test_what_a_learner_made_is_compiled_and_not_kept():
    programs = Programs(4)

    def step(x):
        return x + 1

    class Mine(tuple):
        __slots__ = ()

    jax.tree_util.register_pytree_node(Mine, lambda m: (tuple(m), None), lambda _, c: Mine(c))
    for key, args in (
        (("scan", step), (ones(2),)),
        (("scan", lambda x: x), (ones(2),)),
        (None, (ones(2),)),
        (("scan",), (Mine((ones(2),)),)),
        (("scan",), ({"my secret name": ones(2)},)),
    ):
        program, new = programs.get(key, lambda x: x, args)
        assert new
        assert jax.tree.structure(program(*args)) == jax.tree.structure(args[0])
    assert programs.stats.programs == 0
    assert programs.stats.compiles == 5


def test_only_functions_found_under_their_own_name_are_the_library_s():
    assert is_library(running_sum)
    impostor = lambda total, x: (total, x)  # noqa: E731
    impostor.__module__, impostor.__qualname__ = product.__module__, product.__qualname__
    assert not is_library(impostor)
    assert not is_library(lambda x: x)
    assert not is_library(jnp.add)
    assert not is_library(ones)


def test_a_failing_compilation_leaves_nothing_and_raises_for_everyone():
    programs = Programs(2)

    def wrong(x):
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            programs.get(("wrong",), wrong, (ones(1),))
    assert programs.stats == (0, 0, 0, 0)
    assert programs.get(("wrong",), lambda x: x, (ones(1),))[1] is True


def in_threads(count: int, work) -> list:
    barrier, out = threading.Barrier(count), []

    def run() -> None:
        barrier.wait()
        try:
            out.append(work())
        except Exception as error:  # handed to the test
            out.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return out


def test_threads_that_ask_for_the_same_program_compile_it_once():
    programs, traced = Programs(2), []

    def slow(x):
        traced.append(1)
        time.sleep(0.2)
        return x + 1

    out = in_threads(8, lambda: programs.get(("slow",), slow, (ones(2),)))
    assert len(traced) == 1
    assert sorted(new for _, new in out) == [False] * 7 + [True]
    assert len({id(program) for program, _ in out}) == 1


def test_threads_that_wait_for_a_failing_compilation_get_its_exception():
    programs = Programs(2)

    def slow(x):
        time.sleep(0.1)
        raise ZeroDivisionError

    out = in_threads(4, lambda: programs.get(("slow",), slow, (ones(2),)))
    assert [type(error) for error in out] == [ZeroDivisionError] * 4


def test_many_threads_with_many_programs_keep_the_limit():
    programs = Programs(3)

    def work():
        for n in (1, 2, 3, 4, 5):
            program, _ = programs.get(("add", n), adds(n), (ones(2),))
            np.testing.assert_array_equal(program(ones(2)), (1 + n) * ones(2))
        return True

    assert in_threads(6, work) == [True] * 6
    assert programs.stats.programs <= 3


def test_counting_sees_eager_operations_and_only_this_thread():
    with count_compiles() as outer:
        with count_compiles() as inner:
            jax.jit(lambda x: x * 3 + 1)(ones(11))
        in_threads(1, lambda: jax.jit(lambda x: x * 5 + 2)(ones(12)))
    assert inner.count >= 1
    assert outer.count == inner.count
    before = inner.count
    jax.jit(lambda x: x * 7)(ones(13))
    assert inner.count == before


def test_clearing_empties_every_registered_cache(monkeypatch):
    cleared = []
    monkeypatch.setattr(cache, "_clearers", [*cache._clearers])
    cache.on_clear(lambda: cleared.append(True))
    cache.PROGRAMS.get(("clear me",), lambda x: x, (ones(1),))
    cache.clear_all()
    assert cleared == [True]
    assert cache.PROGRAMS.stats.programs == 0


# --- holding up -----------------------------------------------------------------------------------------------------


def empty_bucket() -> Bucket:
    bucket = Bucket(2, 1, lambda: 0.0)
    bucket.take(2)
    return bucket


def test_without_a_token_a_new_program_is_not_compiled_and_nobody_waits_for_it() -> None:
    programs = Programs(4)
    with count_compiles() as compiles, pytest.raises(SlowedError), paced(empty_bucket()):
        programs.get(("add", 1), adds(1), (ones(3),))
    assert compiles.count == 0
    assert programs.stats == (0, 0, 0, 0)
    assert programs.get(("add", 1), adds(1), (ones(3),))[1] is True  # outside nothing is held up


def test_what_is_there_needs_no_token() -> None:
    programs = Programs(4)
    programs.get(("add", 1), adds(1), (ones(3),))
    with paced(empty_bucket()):
        program, new = programs.get(("add", 1), adds(1), (ones(3),))
    assert not new
    assert program(2 * ones(3)).tolist() == [3.0, 3.0, 3.0]


def test_what_may_not_be_kept_is_held_up_too() -> None:
    with pytest.raises(SlowedError), paced(empty_bucket()):
        Programs(4).get(None, adds(1), (ones(3),))


def test_what_has_begun_is_brought_to_its_end() -> None:
    programs, bucket = Programs(4), Bucket(1, 1, lambda: 0.0)
    with paced(bucket):
        programs.get(("add", 1), adds(1), (ones(3),))
        bucket.take(1)
        assert programs.get(("add", 2), adds(2), (ones(3),))[1] is True
    with pytest.raises(SlowedError), paced(bucket):
        programs.get(("add", 3), adds(3), (ones(3),))


def test_one_that_is_overdrawn_holds_up_everything() -> None:
    bucket, begun = empty_bucket(), []
    bucket.take(100)
    with pytest.raises(SlowedError), paced(bucket):
        begun.append(True)
    assert begun == []


def test_another_thread_is_not_held_up() -> None:
    programs, results = Programs(4), []
    with paced(empty_bucket()):
        other = threading.Thread(target=lambda: results.append(programs.get(("add", 1), adds(1), (ones(3),))[1]))
        other.start()
        other.join(60)
    assert results == [True]
