"""Traced indices with the numbers they really had: a program run once more, its indices taken down on the way.

A step (or a jitted function) is a program whose gathers, scatters and dynamic slices have their index as an operand. It is
interpreted under `jit` with the script's own arguments; what comes out are those operands, one array for each place in the
script, stacked over the steps where it is in a scan. Loops with an open end and branches are left closed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, tree_util
from jax._src import source_info_util  # the only way from an equation to the line that made it

from core.base.jaxprs import bind, equations, inner, nested, parts_of
from core.base.limits import LIMITS
from core.base.places import Span
from core.base.results import ScanResult
from core.contract.indexing import Kind, Outside
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called, ScanSite
from core.contract.subject import MISSING
from core.contract.trace import StepTrace

INDEXING = frozenset({"gather", "dynamic_slice", "dynamic_update_slice"})
type Places = dict[ast.expr, Kind]


@dataclass(frozen=True, slots=True, eq=False)
class _Spot:
    """One indexing equation: its place in the script, and by component the length of the axis and of the window."""

    node: ast.expr
    kind: Kind
    sizes: tuple[int, ...]
    windows: tuple[int, ...]
    depth: int


def indexes(eqn: Any) -> bool:
    """Whether an equation uses an index."""
    name: str = eqn.primitive.name
    return name in INDEXING or name.startswith("scatter")


def outside_in_scan(facts: ScriptFacts, site: ScanSite, places: Places) -> list[Outside]:
    """Indices out of bounds in the steps of a scan that was not traced itself."""
    trace = site.facts.trace
    if not isinstance(trace, StepTrace) or trace.pair is None or not any(map(indexes, equations(trace.jaxpr))):
        return []
    carried = len(site.facts.init_types)
    walk = _Walk(facts, places)
    jaxpr, consts = parts_of(trace.jaxpr)
    stacked = _stacked(site)
    if stacked is not None:
        # The carry of every step is known: all steps at once, op by op, which JAX has compiled before. A program of its
        # own would be compiled at every check.
        leaves, order = stacked
        kept = jax.vmap(lambda args: walk.run(jaxpr, consts, args, 1, only=_needed(jaxpr))[1])(leaves)
        return walk.outside(kept, order)

    def body(carry: list[Any], x: Any) -> Any:
        outs, kept = walk.run(jaxpr, consts, [*carry, *tree_util.tree_leaves(x)], 1)
        return outs[:carried], kept

    leaves = tree_util.tree_leaves(site.call.init)
    types = [t.aval.dtype if t.aval is not None else "" for t in site.facts.carry_in]
    init = [
        v if t.startswith("key") else lax.convert_element_type(v, jnp.dtype(t))
        for v, t in zip(leaves, types, strict=True)
    ]
    call = site.call
    _, kept = jax.jit(lambda i, xs: lax.scan(body, i, xs, site.facts.length, bool(call.reverse)))(init, call.xs)
    steps = range(site.facts.length or 0)
    return walk.outside(kept, steps, backwards=bool(call.reverse))


def _stacked(site: ScanSite) -> tuple[list[Any], tuple[int, ...]] | None:
    """The carry's leaves that came into each step and the x's leaves, in the order of the visits, with their t's."""
    result = site.facts.__dict__.get("run")
    if not isinstance(result, ScanResult) or not result.length:
        return None
    types = [series.type for series in result.carries]
    xs = tree_util.tree_leaves(site.call.xs)
    if any(str(t).startswith("key") for t in (*types, *(jax.typeof(x).dtype for x in xs))):
        return None
    order = np.asarray(result.order)
    carries = [jnp.asarray(series.values[:-1]) for series in result.carries]
    return [*carries, *(jnp.asarray(np.asarray(x)[order]) for x in xs)], tuple(int(t) for t in order)


def _needed(jaxpr: Any) -> frozenset[int]:
    """The `id` of each equation that an index is computed by; of those that only use one, theirs too."""
    wanted: set[Any] = set()
    out: set[int] = set()
    for eqn in reversed(jaxpr.eqns):
        inside = any(map(indexes, nested(eqn)))
        used = wanted & set(eqn.outvars)
        if indexes(eqn) and not used:
            operands = eqn.invars[1:]
        elif used or inside:
            operands = eqn.invars
        else:
            continue
        out.add(id(eqn))
        wanted |= {v for v in operands if not hasattr(v, "val")}
    return frozenset(out)


def outside_in_call(facts: ScriptFacts, call: Called, places: Places) -> list[Outside]:
    """Indices out of bounds in one call of a transformed function, which is traced once more for it."""
    if call.func is None or any(v is MISSING for v in (*call.args, *call.kwargs.values())):
        return []
    program = jax.make_jaxpr(lambda: call.func(*call.args, **call.kwargs))()
    if not any(map(indexes, equations(program))):
        return []
    walk = _Walk(facts, places)
    jaxpr, consts = parts_of(program)
    return walk.outside(jax.jit(lambda: walk.run(jaxpr, consts, [], 0)[1])())


class _Walk:
    """Interprets a program and keeps the indices it uses at places of the script."""

    def __init__(self, facts: ScriptFacts, places: Places) -> None:
        self._facts, self._places = facts, places
        self._spots: dict[int, _Spot] = {}

    def run(
        self,
        jaxpr: Any,
        consts: Any,
        args: list[Any],
        depth: int,
        within: ast.expr | None = None,
        only: frozenset[int] | None = None,
    ) -> Any:
        """Outputs, and the kept indices by number.

        Args:
            jaxpr: the open program.
            consts: its constants.
            args: what it is run on.
            depth: how many scans it is in.
            within: the script's call of a library function that this is the program of.
            only: the equations to carry out, by `id`; then there are no outputs.
        """
        env: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True))
        kept: dict[int, Any] = {}

        def read(atom: Any) -> Any:
            return atom.val if hasattr(atom, "val") else env.get(atom) if only is not None else env[atom]

        for eqn in jaxpr.eqns:
            if not eqn.outvars or (only is not None and id(eqn) not in only):
                continue  # a print of the learner's: it happens once, not once more for us
            values, opened = [read(v) for v in eqn.invars], inner(eqn)
            if indexes(eqn):
                self._keep(eqn, values, depth, within, kept)
                if any(v is None for v in values):
                    continue  # only its index was wanted
                outputs = bind(eqn, values)
            elif opened is not None:
                body, closed = parts_of(opened)
                node = within if within is not None else self._node(eqn)
                outputs, more = self.run(body, closed, values, depth, node if node in self._places else None)
                kept |= more
            elif eqn.primitive.name == "scan" and any(map(indexes, equations(eqn.params["jaxpr"]))):
                outputs, more = self._scan(eqn, values, depth)
                kept |= more
            else:
                outputs = bind(eqn, values)
            env.update(zip(eqn.outvars, outputs, strict=True))
        return ([] if only is not None else [read(v) for v in jaxpr.outvars]), kept

    def _scan(self, eqn: Any, values: list[Any], depth: int) -> Any:
        p = eqn.params
        consts, init, xs = (list(part) for part in p["ft_in"].update(values).unpack())
        carried = len(init)
        body, closed = parts_of(p["jaxpr"])

        def step(carry: list[Any], x: list[Any]) -> Any:
            outs, kept = self.run(body, closed, [*consts, *carry, *x], depth + 1)
            return outs[:carried], (outs[carried:], kept)

        final, (ys, kept) = lax.scan(step, init, xs, p["length"], p["reverse"])
        return [*final, *ys], kept

    def _node(self, eqn: Any) -> ast.expr | None:
        """The script's expression that made an equation."""
        source = self._facts.source
        frames: Any = source_info_util.user_frames(eqn.source_info.traceback)
        for frame in frames:
            if frame.file_name == source.filename and frame.end_line:
                start, end = (frame.start_line, frame.start_column), (frame.end_line, frame.end_column)
                return source.expression(Span(*_chars(source.lines, *start), *_chars(source.lines, *end)))
        return None

    def _keep(self, eqn: Any, values: list[Any], depth: int, within: ast.expr | None, kept: dict[int, Any]) -> None:
        node = within if within is not None else self._node(eqn)
        kind = None if node is None else self._places.get(node)
        if node is None or kind is None:
            return
        sizes, windows, index = _index(eqn, values)
        if sizes and index.size <= LIMITS["elements"].value:
            self._spots[len(self._spots)] = _Spot(node, kind, sizes, windows, depth)
            kept[len(self._spots) - 1] = index

    def outside(self, kept: dict[int, Any], steps: Sequence[int] = (), *, backwards: bool = False) -> list[Outside]:
        """What lies outside, for each place where it was met first.

        Args:
            kept: indices by number; of those in scans the first axis goes over steps.
            steps: the t's along that axis; of an inner scan's they are its own positions.
            backwards: they were visited from the last to the first.
        """
        out: dict[ast.expr, Outside] = {}
        for number, index in kept.items():
            spot = self._spots[number]
            found = _first(spot, np.asarray(index).astype(np.int64), steps, backwards)
            if found is not None:
                out.setdefault(spot.node, found)
        return list(out.values())


def _chars(lines: list[str], line: int, column: int) -> tuple[int, int]:
    """A line and a column in characters (Python counts bytes)."""
    text = lines[line - 1] if line <= len(lines) else ""
    return line, len(text.encode()[:column].decode(errors="ignore"))


def _first(spot: _Spot, index: Any, steps: Sequence[int], backwards: bool) -> Outside | None:
    """The first index outside: `index` has one component for each size in its last axis, steps in its first."""
    last = np.asarray(spot.sizes) - np.asarray(spot.windows)
    wrong = (index < 0) | (index > last)
    if not wrong.any():
        return None
    at = np.argwhere(wrong)[-1 if backwards else 0]
    axis = int(at[-1])
    step = None if not spot.depth else steps[int(at[0])] if steps else int(at[0])
    return Outside(
        spot.node, spot.kind, int(index[tuple(at)]), spot.sizes[axis], spot.windows[axis], int(wrong.sum()), step
    )


def _index(eqn: Any, values: list[Any]) -> tuple[tuple[int, ...], tuple[int, ...], Any]:
    """Lengths of the axes, lengths of the windows, and the index with one component for each in its last axis."""
    name, shape, p = eqn.primitive.name, tuple(eqn.invars[0].aval.shape), eqn.params
    if name == "gather":
        axes = p["dimension_numbers"].start_index_map
        return tuple(shape[a] for a in axes), tuple(p["slice_sizes"][a] for a in axes), values[1]
    if name.startswith("scatter"):
        numbers = p["dimension_numbers"]
        window = _windows(numbers, shape, eqn.invars[2].aval.shape)
        axes = numbers.scatter_dims_to_operand_dims
        return tuple(shape[a] for a in axes), tuple(window[a] for a in axes), values[1]
    update = name == "dynamic_update_slice"
    window = tuple(eqn.invars[1].aval.shape) if update else tuple(p["slice_sizes"])
    starts = values[2 if update else 1 :]
    return shape, window, jnp.stack([jnp.asarray(s, jnp.int32) for s in starts], -1) if starts else jnp.zeros(0)


def _windows(numbers: Any, shape: tuple[int, ...], updates: tuple[int, ...]) -> tuple[int, ...]:
    """How much of each axis one scattered update covers."""
    single = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    sizes = iter(updates[d] for d in numbers.update_window_dims)
    return tuple(1 if axis in single else next(sizes) for axis in range(len(shape)))


def traced_anew(facts: ScriptFacts, nodes: list[ast.expr], places: Places) -> list[Outside]:
    """Indices out of bounds at these expressions, in every scan and call that traced one of them."""
    sites, calls = dict[int, ScanSite](), dict[int, Called]()
    for node in nodes:
        item = [n for n in ast.walk(node) if isinstance(n, ast.expr)]
        for seen in (s for n in item for s in facts.seen(n)[:1] if s.traced):
            site = _outermost(facts, seen.scan)
            if site is not None and not site.traced:
                sites[site.index] = site
                continue
            call = next((c for c in facts.record.calls if c.order > seen.order and not c.traced), None)
            if call is not None and call.result is not MISSING:
                calls[id(call)] = call
    out: list[Outside] = []
    for one in sites.values():
        out += _quietly(lambda one=one: outside_in_scan(facts, one, places))  # type: ignore[misc]
    for other in calls.values():
        out += _quietly(lambda other=other: outside_in_call(facts, other, places))  # type: ignore[misc]
    return out


def _outermost(facts: ScriptFacts, scan: int | None) -> ScanSite | None:
    site = None if scan is None else facts.scans[scan]
    while site is not None and site.parent is not None:
        site = facts.scans[site.parent]
    return site


def _quietly(work: Callable[[], list[Outside]]) -> list[Outside]:
    """A second look at a program may fail (donated arguments, a function that counts its traces): then nothing is known."""
    try:
        return work()
    except Exception:  # noqa: BLE001
        return []
