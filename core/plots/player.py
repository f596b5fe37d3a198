"""A scan result as the one JSON value that the scan player in the browser draws.

Play, step and scrub happen in the browser with no rerun, so everything it may show at any t is sent once, as text,
and the size of what is sent is bounded here: leaves per role, elements per value, and the whole.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any, Literal

import numpy as np

from core.base.limits import LIMITS
from core.base.text import fill
from core.plots.player_code import LOOP_NAMES, LoopLine, Tree, code_roles, loop_lines
from core.plots.player_values import LeafTexts, leaf_texts

VERSION = 1
#: Leaves drawn per role; the player says how many more there are.
MAX_LEAVES = 6
#: Elements of one value written out before an ellipsis.
MAX_SHOWN = 4
#: The payload as JSON, in bytes: it is sent with every rerun that changes it.
MAX_BYTES = LIMITS["player_bytes"].value
#: The longest array value that a chip of the diagram holds; longer ones are drawn as their type.
_CHIP_CHARACTERS = 9

Place = Literal["carry", "xs", "step", "init", "length"]
Axis = Literal["carry", "index"]

#: What the player says. Fields are filled in the browser: they change with t.
TEXT: Mapping[str, str] = {
    "flow_title": "Shape flow",
    "flow_aria": "Shape flow of a scan over {length} steps: init {init}, xs {xs}, ys {ys}, final carry {final}.",
    "loop_title": "The same as a Python loop",
    "loop_aria": "The equivalent Python loop; the current line is marked",
    "step_title": "The step",
    "init": "init",
    "final": "final carry",
    "xs": "xs",
    "ys": "ys",
    "none": "none",
    "step_box": "step {step}",
    "stacked": "stacked",
    "more_steps": "… {count} more",
    "more_leaves": "+{count} leaves",
    "one_more_leaf": "+1 leaf",
    "leaves_not_shown": "{count} more leaves are not shown here",
    "reverse": "reverse: from t = {first} down to t = 0; ys keep the order of xs",
    "slider": "t",
    "slider_reverse": "steps done",
    "slider_value": "t = {position} of {length}",
    "slider_value_reverse": "{position} of {length} steps done",
    "reset": "Reset",
    "back": "Step back",
    "play": "Play",
    "pause": "Pause",
    "forward": "Step forward",
    "at_init": "t = 0: the initial carry {carry}",
    "at_init_plain": "t = 0: the initial carry",
    "at_init_reverse": "0 steps done: the initial carry {carry}",
    "at_init_plain_reverse": "0 steps done: the initial carry",
    "at_step": "step {step}: {inputs} → {outputs}",
    "at_step_reverse": "step {step}, at t = {t}: {inputs} → {outputs}",
    "at_step_plain": "step {step}",
    "at_step_plain_reverse": "step {step}, at t = {t}",
    "at_end": "final carry {carry}",
    "at_end_plain": "the last step: its carry is the final carry",
    "no_steps": "no steps: the final carry is the initial carry",
    "types": "{inputs} → {outputs}",
    "not_run": "This scan does not run, so there are no values to play.",
    "appended": "{count} of {length}",
    "broken_mark": "✗",
    "flagged_mark": "⚠",
    "broken_aria": "Broken here: {label}",
    "flagged_aria": "Warning: {label}",
}


@dataclass(frozen=True, slots=True, eq=False)
class LeafSeries:
    """One leaf over time.

    Attributes:
        path: its pytree path from a named root, ``carry['mean']``.
        type: the type at one t, ``float32[2,4]``.
        axes: its axes by letter, ``(B=2, F=4)``; empty where unknown.
        values: leading axis of positions in visiting order (T for x and y, T + 1 for a carry, init first).
    """

    path: str
    type: str
    axes: str
    values: np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class FlowMark:
    """A place of the diagram that is drawn broken or flagged, the sentence beside it and the violation's code."""

    where: Place
    label: str
    code: str


@dataclass(frozen=True, slots=True)
class Follow:
    """A plotly chart that gets the player's cursor.

    Attributes:
        key: the Streamlit key of the container (or chart) it is in.
        axis: ``carry``: its x axis counts positions 0…T, where 0 is init; ``index``: it is t of xs or ys, 0…T-1.
    """

    key: str
    axis: Axis = "carry"


def player_payload(
    *,
    length: int,
    carries: Sequence[LeafSeries] = (),
    xs: Sequence[LeafSeries] = (),
    ys: Sequence[LeafSeries] = (),
    reverse: bool = False,
    init_type: str | None = None,
    xs_type: str | None = None,
    ys_type: str | None = None,
    final_type: str | None = None,
    paths: Mapping[str, Sequence[str]] | None = None,
    step_code: str | None = None,
    loop: Sequence[LoopLine] | None = None,
    broken: FlowMark | None = None,
    flagged: FlowMark | None = None,
    follow: Sequence[Follow] = (),
) -> dict[str, Any]:
    """Everything the player shows, JSON-able and below `MAX_BYTES` for scans within the pages' limits.

    Args:
        length: T. With `broken` it is the one that was asked for; 0 where that is not known.
        carries: the carry's leaves in visiting order; empty where there are none or nothing ran.
        xs: the leaves of xs likewise.
        ys: the leaves of ys likewise.
        reverse: position p visits t = T - 1 - p.
        init_type: the type written in the init box; by default the first leaf's. Needed when nothing ran.
        xs_type: the type written beside xs, stacked; by default made from the first leaf's.
        ys_type: the same for ys.
        final_type: the type written in the box of the final carry.
        paths: with `broken`, the paths of the leaves of ``carry``, ``x`` and ``y`` as far as they are known; one array
            for a role that is left out.
        step_code: the step function's source, shown above the loop.
        loop: the equivalent loop; by default written for these trees.
        broken: draw this place broken and no values.
        flagged: mark this place while values play.
        follow: the charts that get a cursor.

    Raises:
        ValueError: a leaf's leading axis does not fit `length`.
    """
    for role, leaves, expected in (("carry", carries, length + 1), ("xs", xs, length), ("ys", ys, length)):
        for leaf in leaves:
            if leaf.values.shape[:1] != (expected,):
                raise ValueError(f"{role} leaf {leaf.path} must have a leading axis of {expected}")
    roles = code_roles(step_code) if step_code is not None else None
    known = {**_ONE_ARRAY, **(paths or {})}
    if broken is None:
        known = {"carry": [s.path for s in carries], "x": [s.path for s in xs], "y": [s.path for s in ys]}
    if loop is None:
        trees = {role: _tree(leaves) for role, leaves in known.items()}
        # What breaks the scan is in the loop too: its last lines stay, although nothing got there.
        steps = length if broken is None else max(length, 1)
        loop = loop_lines(carry=trees["carry"], xs=trees["x"], ys=trees["y"], length=steps, reverse=reverse)
    payload: dict[str, Any] = {
        "version": VERSION,
        "T": length,
        "reverse": reverse,
        "order": [] if broken else list(range(length - 1, -1, -1)) if reverse else list(range(length)),
        "init_type": init_type if init_type is not None else _first_type(carries),
        "xs_type": xs_type if xs_type is not None else _first_type(xs, length),
        "ys_type": ys_type if ys_type is not None else _first_type(ys, length),
        "final_type": final_type if final_type is not None else _first_type(carries),
        "step_code": step_code,
        "loop": [{"text": line.text, "phase": line.phase} for line in loop],
        "names": {**LOOP_NAMES, **(roles.names if roles else {})},
        "marks": [list(mark) for mark in roles.marks] if roles else [],
        "broken": _mark(broken),
        "flagged": _mark(flagged),
        # Nothing ran: how many leaves there would be.
        "counts": {role: len(leaves) for role, leaves in known.items()},
        "follow": [{"key": item.key, "axis": item.axis} for item in follow],
        "text": {name: _translated(template) for name, template in TEXT.items()},
    }
    return payload | _bounded_values(
        {"carry": carries, "x": xs, "y": ys}, MAX_BYTES - len(json.dumps(payload)) - _SLACK
    )


#: Bytes kept for what the widget adds to the payload.
_SLACK = 1_000


def _bounded_values(roles: Mapping[str, Sequence[LeafSeries]], budget: int) -> dict[str, Any]:
    """The values as text: as many leaves and elements as fit the budget, always at least one leaf with one element."""
    sizes = [(MAX_LEAVES, shown) for shown in range(MAX_SHOWN, 0, -1)]
    sizes += [(leaves, 1) for leaves in range(MAX_LEAVES - 1, 0, -1)]
    written = {
        role: [leaf_texts(leaf.values, MAX_SHOWN) for leaf in series[:MAX_LEAVES]] for role, series in roles.items()
    }
    chips = {role: _chips(series) for role, series in roles.items()}
    values: dict[str, Any] = {}
    for leaves, shown in sizes:
        values = _values(roles, written, leaves, shown) | {"chips": chips}
        if len(json.dumps(values)) <= budget:
            break
    return values


def _values(
    roles: Mapping[str, Sequence[LeafSeries]], written: Mapping[str, Sequence[LeafTexts]], leaves: int, shown: int
) -> dict[str, Any]:
    return {
        "leaves": {
            role: [{"path": leaf.path, "type": leaf.type, "axes": leaf.axes} for leaf in series[:leaves]]
            for role, series in roles.items()
        },
        "hidden_leaves": {role: max(0, len(series) - leaves) for role, series in roles.items()},
        **{role: [texts.values(shown) for texts in leaf[:leaves]] for role, leaf in written.items()},
    }


def _chips(leaves: Sequence[LeafSeries]) -> list[str] | None:
    """What the diagram writes for a role: its first leaf's numbers where they are short at every t, else None.

    One answer for all t, so that boxes keep one width; None is drawn as the leaf's type.
    """
    if not leaves:
        return None
    texts = leaf_texts(leaves[0].values, MAX_SHOWN, chip=True).values(MAX_SHOWN)
    scalar = leaves[0].values.ndim == 1
    return texts if scalar or max(map(len, texts), default=0) <= _CHIP_CHARACTERS else None


def _first_type(leaves: Sequence[LeafSeries], length: int | None = None) -> str:
    """The first leaf's type, stacked along a leading axis when `length` is given; empty without leaves."""
    if not leaves:
        return ""
    head, _, dims = leaves[0].type.partition("[")
    if length is None or not dims:
        return leaves[0].type
    return f"{head}[{length}]" if dims == "]" else f"{head}[{length},{dims}"


#: Where nothing ran and nothing else is known: the scan over one array.
_ONE_ARRAY: Mapping[str, Sequence[str]] = {"carry": ("carry",), "x": ("x",), "y": ("y",)}


def _tree(paths: Sequence[str]) -> Tree:
    """One leaf at a bare root (``carry``, ``xs[t]``) is an array; a path below the root means a container."""
    if not paths:
        return "none"
    return "array" if len(paths) == 1 and paths[0].removesuffix("[t]").isidentifier() else "tree"


def _mark(mark: FlowMark | None) -> dict[str, str] | None:
    return None if mark is None else {"where": mark.where, "label": mark.label, "code": mark.code}


def _translated(template: str) -> str:
    """The template in the reader's language, its fields left open for the browser."""
    return fill(template, **{name: f"{{{name}}}" for _, name, _, _ in Formatter().parse(template) if name})
