"""One step of a recurrent cell with everything that happens inside it, and four ways of working it out beside each other.

The gates are the cell's own: its `gate_fn` and `activation_fn` are replaced, inside the traced program, by ones that
also keep what they got and gave. So the drawing shows what Flax computed, and the NumPy formula beside it is a second
opinion, not the source of the picture.

Parameters are arguments of the program: moving a seed or a number compiles nothing, a new size compiles two programs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import tree_util

from core.base.avals import LeafType, aval_of, leaf_types
from core.base.tolerance import Difference, difference
from core.runners.cache import PROGRAMS
from core.runners.cell_formulas import KINDS, CellKind, FormulaStep, formula_step, gate_weights

type Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Gate:
    """One gate of one step, each array (…, H) as the output.

    Attributes:
        name: its letter.
        curve: ``sigmoid`` or ``tanh``.
        from_x: x·W, its share of the input, without bias.
        from_h: h·W, its share of the hidden state, without bias.
        bias: (H,).
        pre: what goes into the curve. In a GRU's n the share of h is first multiplied by r.
        value: what comes out.
    """

    name: str
    curve: str
    from_x: Array
    from_h: Array
    bias: Array
    pre: Array
    value: Array


@dataclass(frozen=True, slots=True, eq=False)
class StepNumbers:
    """The numbers of one step.

    Attributes:
        kind: which cell.
        inputs: (…, F) as given.
        before: the parts of the carry as the cell took them, each broadcast to the shape of the output.
        after: the parts of the new carry.
        output: (…, H).
        gates: in the order of `kind.gates`.
    """

    kind: CellKind
    inputs: Array
    before: tuple[Array, ...]
    after: tuple[Array, ...]
    output: Array
    gates: tuple[Gate, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CellStep(StepNumbers):
    """One step that ran.

    Attributes:
        parameters, carry, new_carry, result: type of every parameter, part of the carry as given, part of the new
            carry, and output, under the paths ``cell.ii.kernel``, ``carry[0]``, ``new_carry[0]``, ``output``.
        numpy: the formula against the program; `eager`: the cell called without jit against it; `vmap`: the cell
            mapped over the batch against it, None where the carry has no batch of its own to map over.
        compiled: whether this call compiled anything.
    """

    parameters: tuple[LeafType, ...]
    carry: tuple[LeafType, ...]
    new_carry: tuple[LeafType, ...]
    result: LeafType
    numpy: Difference
    eager: Difference
    vmap: Difference | None
    compiled: bool

    @property
    def finite(self) -> bool:
        """Whether every number of the new carry and the output is finite."""
        return all(bool(np.isfinite(part.astype(np.float32)).all()) for part in (*self.after, self.output))

    @property
    def examples(self) -> tuple[int, ...]:
        """The leading axes of the output: (B,) when the contract is kept."""
        return tuple(self.output.shape[:-1])


def kind_of(cell: Any) -> CellKind:
    """The kind of a built cell.

    Raises:
        KeyError: it is none of `KINDS`.
    """
    return KINDS[type(cell).__name__]


def parts_of(kind: CellKind, carry: Any) -> tuple[Any, ...]:
    """The carry taken apart as the cell does it: ``c, h = carry`` iterates over whatever it is given."""
    return tuple(carry) if kind.pair else (carry,)


def run_step(cell: Any, carry: Any, inputs: Any) -> CellStep:
    """Step a cell once, by a compiled program, by itself, by vmap and by formula.

    Args:
        cell: a built NNX cell, one of `KINDS`.
        carry: what it takes for a carry: right, or wrong in a way that JAX is silent about.
        inputs: (B, F).

    Raises:
        whatever the cell raises.
    """
    kind = kind_of(cell)
    direct = cell(carry, inputs)
    graph, state = nnx.split(cell)
    leaves, tree = tree_util.tree_flatten(state)
    size = (kind.name, int(cell.in_features), int(cell.hidden_features))
    args = (tuple(leaves), carry, inputs)
    step, compiled = PROGRAMS.get(("cell step", *size), _step_program(kind, graph, tree), args)
    out = jax.device_get(step(*args))
    mapped, mapping = _mapped(kind, graph, tree, size, args)
    formula = formula_step(kind, gate_weights(kind, cell), tuple(map(np.asarray, parts_of(kind, carry))), inputs)
    after, output = parts_of(kind, out["carry"]), out["output"]
    return CellStep(
        kind=kind,
        inputs=np.asarray(inputs),
        before=tuple(np.broadcast_to(np.asarray(p), output.shape) for p in parts_of(kind, carry)),
        after=after,
        output=output,
        gates=tuple(_gate(spec.name, spec.curve, out, output.shape) for spec in kind.gates),
        parameters=_parameter_types(kind, state),
        carry=leaf_types(carry, "carry"),
        new_carry=leaf_types(direct[0], "new_carry"),
        result=LeafType("output", aval_of(direct[1])),
        numpy=apart(_formula_tree(formula), _program_tree(kind, out)),
        eager=apart(jax.device_get(direct), (out["carry"], output)),
        vmap=None if mapped is None else apart(mapped, (out["carry"], output)),
        compiled=compiled or mapping,
    )


def _gate(name: str, curve: str, out: dict[str, Any], shape: tuple[int, ...]) -> Gate:
    from_x, from_h, bias, pre, value = out["gates"][name]
    spread = [np.broadcast_to(a, shape) for a in (from_x, from_h, pre, value)]
    return Gate(name, curve, spread[0], spread[1], bias, spread[2], spread[3])


def _parameter_types(kind: CellKind, state: Any) -> tuple[LeafType, ...]:
    """Input kernels first, then the recurrent ones, each layer's kernel before its bias."""
    layers = list(dict.fromkeys([*(g.layers[0] for g in kind.gates), *(g.layers[1] for g in kind.gates)]))
    flat, _ = tree_util.tree_flatten_with_path(nnx.to_pure_dict(state))
    named = [(tuple(str(k.key) for k in path), leaf) for path, leaf in flat]
    named.sort(key=lambda one: (layers.index(one[0][0]), one[0][1] != "kernel"))
    return tuple(LeafType(".".join(("cell", *names)), aval_of(leaf)) for names, leaf in named)


# --- programs -------------------------------------------------------------------------------------------------------


def _step_program(kind: CellKind, graph: Any, tree: Any) -> Callable[..., Any]:
    """``program(leaves, carry, inputs)``: new carry, output, and each gate's (from_x, from_h, bias, pre, value)."""

    def program(leaves: tuple[Any, ...], carry: Any, inputs: Any) -> dict[str, Any]:
        cell = nnx.merge(graph, tree_util.tree_unflatten(tree, leaves))
        kept = listen(kind, cell)
        new_carry, output = cell(carry, inputs)
        h = parts_of(kind, carry)[-1]
        gates = {}
        for name, w in gate_weights(kind, cell).items():
            wide = jnp.promote_types(jnp.result_type(h), w.kernel_h.dtype)
            gates[name] = (inputs @ w.kernel_x, h.astype(wide) @ w.kernel_h, w.bias, *kept[name])
        return {"carry": new_carry, "output": output, "gates": gates}

    return program


def listen(kind: CellKind, cell: Any) -> dict[str, tuple[Any, Any]]:
    """Make a cell's curves keep (what they got, what they gave) by gate; returns where they keep it.

    The cell calls each curve in the order of its gates; one more tanh of an LSTM, that of c′, belongs to no gate.
    """
    kept: dict[str, tuple[Any, Any]] = {}
    for curve, attribute in (("sigmoid", "gate_fn"), ("tanh", "activation_fn")):
        names = iter([gate.name for gate in kind.gates if gate.curve == curve])
        function = getattr(cell, attribute, None)
        if function is not None:
            setattr(cell, attribute, _keeping(function, names, kept))
    return kept


def _keeping(function: Callable[[Any], Any], names: Any, kept: dict[str, tuple[Any, Any]]) -> Callable[[Any], Any]:
    def curve(pre: Any) -> Any:
        value = function(pre)
        name = next(names, None)
        if name is not None:
            kept[name] = (pre, value)
        return value

    return curve


def _mapped(
    kind: CellKind, graph: Any, tree: Any, size: tuple[str, int, int], args: tuple[Any, Any, Any]
) -> tuple[Any, bool]:
    """(new carry, output) of the cell mapped over the batch, and whether it was compiled now.

    None where parts of the carry have no leading axis of the input's batch: then there is nothing to map over, which
    is what is wrong with them.
    """
    _, carry, inputs = args
    leaves = tree_util.tree_leaves(carry)
    rows = inputs.shape[0]
    if inputs.ndim != 2 or len(leaves) != len(kind.parts) or any(p.ndim != 2 or p.shape[0] != rows for p in leaves):
        return None, False

    def program(leaves: tuple[Any, ...], carry: Any, inputs: Any) -> Any:
        cell = nnx.merge(graph, tree_util.tree_unflatten(tree, leaves))
        return jax.vmap(lambda c, x: cell(c, x))(carry, inputs)

    mapped, compiled = PROGRAMS.get(("cell vmap", *size), program, args)
    return jax.device_get(mapped(*args)), compiled


# --- comparing ------------------------------------------------------------------------------------------------------


def apart(got: Any, want: Any) -> Difference:
    """How far two trees of arrays are apart: the leaf that is out of tolerance, else the one that is farthest."""
    pairs = zip(tree_util.tree_leaves(got), tree_util.tree_leaves(want), strict=True)
    return max((difference(a, b) for a, b in pairs), key=lambda d: (not d.within, d.largest))


def _formula_tree(step: FormulaStep) -> Any:
    return dict(step.gates), step.carry, step.output


def _program_tree(kind: CellKind, out: dict[str, Any]) -> Any:
    gates = {name: values[-1] for name, values in out["gates"].items()}
    return gates, parts_of(kind, out["carry"]), out["output"]
