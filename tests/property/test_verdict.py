"""The engine's verdict is what `lax.scan` really does, over shapes, dtypes, trees, steps, sequences and odd arguments.

Each example is one call, run for real (executed, not only traced) and checked. JAX raises if and only if the report
says so; and what these rules cover is explained by a rule, never shown raw.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from jax import lax, tree_util

from core.base.outcome import Outcome, Report
from core.base.violation import FieldEdit, Severity
from core.contract.engine import Attempt, CallBench, check
from core.contract.rule import Repair
from core.contract.subject import ScanCall

DTYPES = ("float32", "int32", "bool", "bfloat16", "float16", "int8")


class Two(NamedTuple):
    first: Any
    second: Any


class StepRaised(Exception):
    """The step's own exception: what it is about, no rule of the carry or of xs has to know."""


# --- leaves and trees -----------------------------------------------------------------------------------------------

SHAPES = st.sampled_from([(), (1,), (2,), (2, 3), (1, 2), (0,)])
NUMBERS = st.sampled_from([0, 1, 0.0, 1.5, True])


@st.composite
def arrays(draw: st.DrawFn, leading: tuple[int, ...] = ()) -> Any:
    """A strong array of ones or zeros, of JAX or of NumPy; or a weak one."""
    shape, dtype = (*leading, *draw(SHAPES)), jnp.dtype(draw(st.sampled_from(DTYPES)))
    make = draw(st.sampled_from([np.zeros, np.ones]))
    match draw(st.integers(0, 3)):
        case 0:
            return make(shape, dtype)
        case 1:
            return lax.full(shape, 1.0)  # weak float
        case _:
            return jnp.asarray(make(shape, dtype))


LEAVES = st.one_of(NUMBERS, arrays(), arrays())
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner),
        st.tuples(inner, inner),
        st.lists(inner, min_size=1, max_size=2),
        st.dictionaries(st.sampled_from("ab"), inner, min_size=1, max_size=2),
        st.builds(Two, inner, inner),
        st.tuples(inner, st.sampled_from([None, (), {}])),
    ),
    max_leaves=4,
)
INITS = st.one_of(LEAVES, TREES, TREES, st.sampled_from([None, (), {}, {"a": None}]))


# --- steps ----------------------------------------------------------------------------------------------------------


def summed(x: Any) -> Any:
    """One number of an x of any structure; 1 where there is none."""
    return sum((jnp.sum(leaf) for leaf in tree_util.tree_leaves(x)), start=1)


DTYPE_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "add x": lambda leaf, x: leaf + summed(x),
    "add an int": lambda leaf, x: leaf + 1,
    "add a float": lambda leaf, x: leaf + 0.5,
    "double": lambda leaf, x: leaf * 2,
    "compare": lambda leaf, x: leaf > 0,
    "the carry's own dtype": lambda leaf, x: (leaf + 1).astype(jnp.asarray(leaf).dtype),
    "forget": lambda leaf, x: 0,
    **{f"as {dtype}": (lambda leaf, x, dtype=dtype: jnp.asarray(leaf).astype(dtype)) for dtype in DTYPES},
}
SHAPE_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "append": lambda leaf, x: jnp.append(leaf, 1.0),
    "append the same": lambda leaf, x: jnp.concatenate([jnp.ravel(leaf)] * 2),
    "add an axis": lambda leaf, x: jnp.asarray(leaf)[None],
    "drop axes of 1": lambda leaf, x: jnp.squeeze(leaf),
    "flatten": lambda leaf, x: jnp.ravel(leaf),
    "sum": lambda leaf, x: jnp.sum(leaf),
    "broadcast": lambda leaf, x: leaf + jnp.zeros((2, 1), jnp.asarray(leaf).dtype),
}
LEAF_OPS = DTYPE_OPS | SHAPE_OPS
TREE_OPS: dict[str, Callable[[Any], Any]] = {
    "list": lambda tree: list(tree) if isinstance(tree, tuple | list) else [tree],
    "tuple": lambda tree: tuple(tree) if isinstance(tree, tuple | list) else (tree,),
    "named": lambda tree: Two(*tree) if isinstance(tree, tuple | list) and len(tree) == 2 else tree,
    "swap": lambda tree: tree[::-1] if type(tree) in (tuple, list) else tree,
    "drop": lambda tree: tree[:-1] if type(tree) in (tuple, list) else None,
    "grow": lambda tree: (*tree, jnp.zeros(())) if type(tree) is tuple else tree,
    "lose a key": lambda tree: dict(list(tree.items())[1:]) if type(tree) is dict else tree,
    "add a key": lambda tree: {**tree, "z": jnp.zeros(2)} if type(tree) is dict else tree,
    "none": lambda tree: None,
    "fill": lambda tree: tree_util.tree_map(lambda n: 1.0 if n is None else n, tree, is_leaf=lambda n: n is None),
}
RETURNS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "pair": lambda new, old, x: (new, old),
    "pair with no y": lambda new, old, x: (new, None),
    "list": lambda new, old, x: [new, summed(x)],
    "swapped": lambda new, old, x: (summed(x), new),
    "alone": lambda new, old, x: new,
    "nothing": lambda new, old, x: None,
    "three": lambda new, old, x: (new, summed(x), 1),
    "one": lambda new, old, x: (new,),
    "dict": lambda new, old, x: {"carry": new, "y": summed(x)},
    "named": lambda new, old, x: Two(new, summed(x)),
    "stacked": lambda new, old, x: jnp.stack([summed(x), summed(x)]),
    "text beside": lambda new, old, x: (new, "text"),
}
#: Forms that most examples have, so that other faults are reached.
PLAIN = ("pair", "pair with no y", "list")


@dataclass(frozen=True)
class Step:
    """``step(carry, x)`` put together from the grammar: ops on single leaves, hops between them, tree ops, a return."""

    leaf_ops: tuple[tuple[int, str], ...]
    hops: tuple[tuple[int, int], ...]
    tree_ops: tuple[str, ...]
    returns: str

    def __call__(self, state: Any, x: Any) -> Any:
        try:
            return self.run(state, x)
        except Exception as error:
            raise StepRaised(str(error)) from error

    def run(self, state: Any, x: Any) -> Any:
        """What the grammar says, or whatever that raises."""
        leaves, structure = tree_util.tree_flatten(state)
        new = list(leaves)
        for index, name in self.leaf_ops if leaves else ():
            i = index % len(leaves)
            new[i] = LEAF_OPS[name](new[i], x)
        for to, source in self.hops if leaves else ():
            new[to % len(leaves)] = leaves[source % len(leaves)]
        tree = tree_util.tree_unflatten(structure, new)
        for name in self.tree_ops:
            tree = TREE_OPS[name](tree)
        return RETURNS[self.returns](tree, state, x)


INDEX = st.integers(0, 3)


@st.composite
def steps(draw: st.DrawFn, odd: str) -> Step:
    """A step that is odd in one respect, in all, or in none (then it keeps most carries as they are)."""

    def some(strategy: st.SearchStrategy[Any], *kinds: str) -> tuple[Any, ...]:
        return tuple(draw(st.lists(strategy, min_size=1, max_size=2))) if odd in (*kinds, "all") else ()

    calm = st.sampled_from(["the carry's own dtype", "double"])
    ops = {"dtype": DTYPE_OPS, "hops": DTYPE_OPS, "shape": SHAPE_OPS, "all": LEAF_OPS}.get(odd)
    leaf_ops = draw(st.lists(st.tuples(INDEX, st.sampled_from(sorted(ops)) if ops else calm), max_size=2))
    return Step(
        leaf_ops=tuple(leaf_ops),
        hops=some(st.tuples(INDEX, INDEX), "hops"),
        tree_ops=some(st.sampled_from(sorted(TREE_OPS)), "tree"),
        returns=draw(st.sampled_from(sorted(RETURNS) if odd in ("returns", "all") else PLAIN)),
    )


# --- xs, length, unroll ---------------------------------------------------------------------------------------------


@st.composite
def sequences(draw: st.DrawFn) -> Any:
    """xs in every form it is given in."""
    n, other = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    match draw(st.integers(0, 13)):
        case 0:
            return draw(NUMBERS)
        case 1:
            return draw(arrays())
        case 2:
            return draw(st.sampled_from([[1.0, 2.0], [1, 2, 3], (1.0, 2.0), [[1.0, 2.0], [3.0, 4.0]]]))
        case 3:
            return [draw(arrays((n,))) for _ in range(draw(st.integers(1, 3)))]
        case 4:
            return {"a": draw(arrays((n,))), "b": draw(arrays((other,)))}
        case 5:
            return (draw(arrays((n,))), draw(LEAVES))
        case 6:
            return draw(st.sampled_from([(), {}, (None,), {"a": ()}, range(3), "text", {1}]))
        case 7 | 8:
            return None
        case 9:
            return (draw(arrays((n,))), draw(arrays((n,))))
        case _:
            return draw(arrays((n,)))


LENGTHS = st.one_of(
    st.none(),
    st.none(),
    st.integers(0, 4),
    st.sampled_from([-1, 2.5, 2.0, 0.5, "3", "x", True, False, float("nan"), [3], np.int64(2), np.array([2]), 3 + 0j]),
)
#: No float that equals an int: JAX's caches take 2.0 for 2, so what it does depends on what ran before (see S116).
UNROLLS = st.one_of(
    st.just(1), st.just(1), st.sampled_from([0, 2, 5, True, False, np.int64(2), np.True_, -1, "2", None, [1], (2,)])
)


#: What is odd about a call (something of its step, one of its arguments, everything, nothing), and how many examples of
#: it are tried in CI.
ODD_STEPS = {"dtype": 50, "hops": 30, "shape": 50, "tree": 40, "returns": 40}
ODD = ODD_STEPS | {"xs": 100, "length": 50, "unroll": 20, "all": 60, "none": 20}


@st.composite
def calls(draw: st.DrawFn, odd: str) -> ScanCall:
    """A call that is odd in one respect, in all, or in none."""

    def is_odd(what: str) -> bool:
        return odd in (what, "all")

    n = draw(st.integers(0, 3))
    xs = draw(sequences()) if is_odd("xs") else draw(st.one_of(arrays((n,)), arrays((n,)), st.none()))
    plain = None if is_odd("xs") and xs is not None else n if xs is None else draw(st.sampled_from([None, n]))
    length = draw(LENGTHS) if is_odd("length") else plain
    unroll = draw(UNROLLS) if is_odd("unroll") else 1
    init = draw(st.one_of(LEAVES, TREES) if odd in ODD_STEPS else INITS)
    return ScanCall(draw(steps(odd)), init, xs, length=length, reverse=draw(st.booleans()), unroll=unroll)


# --- the property ---------------------------------------------------------------------------------------------------


def raised_by_jax(call: ScanCall) -> Exception | None:
    """What the real scan raises, computed to the end."""
    try:
        jax.block_until_ready(
            lax.scan(call.step, call.init, call.xs, length=call.length, reverse=call.reverse, unroll=call.unroll)
        )
    except Exception as error:
        return error
    return None


def says_raised(report: Report) -> bool:
    """The verdict: JAX raises. A silent error (a wrong result) is none."""
    loud = any(v.severity is Severity.ERROR and not v.silent for v in report.violations)
    return report.outcome is Outcome.ERROR or loud


def share(odd: str) -> settings:
    """This profile's part of the examples."""
    return settings(max_examples=max(5, ODD[odd] * settings.default.max_examples // 200))


@pytest.mark.parametrize("odd", ODD)
def test_the_verdict_is_what_lax_scan_does(odd: str) -> None:
    share(odd)(given(calls(odd))(verdict))()


def verdict(call: ScanCall) -> None:
    """The property."""
    raised, report = raised_by_jax(call), check(call)
    event("raises" if raised else "runs")
    for code in report.codes:
        event(code)
    shown = (report.codes, report.error, raised)
    assert report.outcome is not Outcome.LIMIT, shown
    if raised is None:
        assert not says_raised(report), shown
        # A length of -1 without any y runs no step in silence; nothing else that runs is called an error.
        errors = {v.code for v in report.violations if v.severity is Severity.ERROR}
        assert errors <= {"S116"}, shown
        return
    assert says_raised(report), shown
    if report.outcome is Outcome.ERROR:
        # Raw is right only for what no rule of the carry, of xs or of a count is about.
        event("raw")
        assert isinstance(raised, StepRaised) or call.step.returns == "text beside", shown
    else:
        assert report.outcome is Outcome.VIOLATIONS, shown


class Numbered:
    """A bench that keeps what each repair made; a fix's edit is its number."""

    def __init__(self, call: ScanCall) -> None:
        self.call = call
        self.made: list[ScanCall] = []

    def attempt(self, repairs: tuple[Repair, ...]) -> Attempt | None:
        attempt = CallBench(self.call).attempt(repairs)
        if attempt is None:
            return None
        assert isinstance(attempt.subject, ScanCall)
        self.made.append(attempt.subject)
        return Attempt(attempt.subject, FieldEdit({"number": len(self.made) - 1}))


@pytest.mark.parametrize("odd", [odd for odd in ODD if odd != "none"])
def test_every_fix_mends_what_it_says_and_jax_runs_what_has_nothing_left(odd: str) -> None:
    settings(share(odd), max_examples=max(5, share(odd).max_examples // 2))(given(calls(odd))(fixes))()


def fixes(call: ScanCall) -> None:
    """The property."""
    bench = Numbered(call)
    for violation in check(call, bench=bench).violations:
        for fix in violation.fixes:
            event(f"{violation.code} {fix.title.split()[0]}")
            assert isinstance(fix.edit, FieldEdit)
            mended = bench.made[fix.edit.values["number"]]
            raised = raised_by_jax(mended)
            assert (raised is None) or fix.remaining, (violation.code, fix.title, raised)
            assert (violation.code, violation.path) not in {(v.code, v.path) for v in check(mended).violations}
