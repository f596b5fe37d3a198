"""The recurrent cells as NumPy formulas, written from their published equations: an opinion that shares no code with JAX.

Equations and where they come from:

- LSTM: i = σ(x·W_ii + h·W_hi + b_hi), f, o likewise, g = tanh(x·W_ig + h·W_hg + b_hg), c′ = f ⊙ c + i ⊙ g,
  h′ = o ⊙ tanh(c′). Docstring of `flax.nnx.LSTMCell`; Hochreiter and Schmidhuber 1997, with the forget gate of Gers,
  Schmidhuber and Cummins 2000. `OptimizedLSTMCell` is the same with the four kernels side by side.
- GRU: r = σ(x·W_ir + b_ir + h·W_hr), z likewise, n = tanh(x·W_in + b_in + r ⊙ (h·W_hn)), h′ = (1 − z) ⊙ n + z ⊙ h.
  Docstring of `flax.nnx.GRUCell`; Cho et al. 2014 (arXiv:1406.1078), with r applied after the product. The docstring
  also has b_hn: the cell has no such parameter.
- Simple: h′ = tanh(x·W_i + b_i + h·W_h). Docstring of `flax.nnx.SimpleCell`; Elman 1990.

Everything is computed in float32; a carry of a smaller dtype is widened first, as the cell does it. Finite differences
ask for float64.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from flax import nnx

type Array = np.ndarray[Any, Any]
type Curve = Literal["sigmoid", "tanh"]


@dataclass(frozen=True, slots=True)
class GateSpec:
    """One gate of a cell.

    Attributes:
        name: its letter in the equations.
        curve: the function that ends it.
        layers: attributes of the cell that hold its input kernel and its recurrent kernel.
        column: which of the blocks side by side in those kernels is its own.
    """

    name: str
    curve: Curve
    layers: tuple[str, str]
    column: int = 0


@dataclass(frozen=True, slots=True)
class CellKind:
    """A cell of NNX: its class, the parts of its carry in order, its gates in the order the cell works them out.

    Attributes:
        blocks: how many gates lie side by side in one kernel.
    """

    name: str
    cell: type[Any]
    parts: tuple[str, ...]
    gates: tuple[GateSpec, ...]
    blocks: int = 1

    @property
    def pair(self) -> bool:
        """Whether the carry is the pair (c, h)."""
        return len(self.parts) == 2


_LSTM_CURVES: Final[tuple[tuple[str, Curve], ...]] = (
    ("i", "sigmoid"),
    ("f", "sigmoid"),
    ("g", "tanh"),
    ("o", "sigmoid"),
)
_DENSE: Final = ("dense_i", "dense_h")
#: An attribute cannot be called `if`, hence `if_`.
_LSTM_LAYERS: Final = {"i": ("ii", "hi"), "f": ("if_", "hf"), "g": ("ig", "hg"), "o": ("io", "ho")}

KINDS: Final[Mapping[str, CellKind]] = {
    kind.name: kind
    for kind in (
        CellKind(
            "LSTMCell",
            nnx.LSTMCell,
            ("c", "h"),
            tuple(GateSpec(name, curve, _LSTM_LAYERS[name]) for name, curve in _LSTM_CURVES),
        ),
        CellKind(
            "OptimizedLSTMCell",
            nnx.OptimizedLSTMCell,
            ("c", "h"),
            tuple(GateSpec(name, curve, _DENSE, at) for at, (name, curve) in enumerate(_LSTM_CURVES)),
            blocks=4,
        ),
        CellKind(
            "GRUCell",
            nnx.GRUCell,
            ("h",),
            (
                GateSpec("r", "sigmoid", _DENSE, 0),
                GateSpec("z", "sigmoid", _DENSE, 1),
                GateSpec("n", "tanh", _DENSE, 2),
            ),
            blocks=3,
        ),
        CellKind("SimpleCell", nnx.SimpleCell, ("h",), (GateSpec("h′", "tanh", _DENSE),)),
    )
}


@dataclass(frozen=True, slots=True, eq=False)
class GateWeights:
    """One gate's parameters: `kernel_x` (F, H), `kernel_h` (H, H), `bias` (H,); NumPy, or tracers in a program."""

    kernel_x: Any
    kernel_h: Any
    bias: Any


def gate_weights(kind: CellKind, cell: Any) -> dict[str, GateWeights]:
    """The parameters of a built cell, gate by gate."""
    out = {}
    for gate in kind.gates:
        layer_x, layer_h = (getattr(cell, name) for name in gate.layers)
        width = cell.hidden_features
        block = slice(gate.column * width, (gate.column + 1) * width)
        biased = layer_h if layer_h.bias is not None else layer_x
        kernel_x, kernel_h, bias = layer_x.kernel[...], layer_h.kernel[...], biased.bias[...]
        out[gate.name] = GateWeights(kernel_x[:, block], kernel_h[:, block], bias[block])
    return out


@dataclass(frozen=True, slots=True, eq=False)
class FormulaStep:
    """What the formulas give: gates by name, the new carry's parts in order, the output; of the dtype asked, (…, H)."""

    gates: Mapping[str, Array]
    carry: tuple[Array, ...]
    output: Array


def formula_step(
    kind: CellKind, weights: Mapping[str, GateWeights], carry: tuple[Array, ...], inputs: Array, dtype: Any = np.float32
) -> FormulaStep:
    """One step by the equations.

    Args:
        kind: which cell.
        weights: from `gate_weights`.
        carry: the parts in order, each (B, H) or anything that broadcasts with it.
        inputs: (B, F).
        dtype: of the whole computation: everything is cast to it first.

    Raises:
        ValueError: the shapes do not fit, as NumPy finds them.
    """
    w = {name: _cast(g, dtype) for name, g in weights.items()}
    parts = [np.asarray(part).astype(dtype, copy=False) for part in carry]
    x = np.asarray(inputs).astype(dtype, copy=False)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        match kind.name:
            case "LSTMCell" | "OptimizedLSTMCell":
                return _lstm(w, parts[0], parts[1], x)
            case "GRUCell":
                return _gru(w, parts[0], x)
            case "SimpleCell":
                return _simple(w, parts[0], x)
            case _:
                raise KeyError(kind.name)


def _lstm(w: Mapping[str, GateWeights], c: Array, h: Array, x: Array) -> FormulaStep:
    i = _sigmoid(x @ w["i"].kernel_x + h @ w["i"].kernel_h + w["i"].bias)
    f = _sigmoid(x @ w["f"].kernel_x + h @ w["f"].kernel_h + w["f"].bias)
    g = np.tanh(x @ w["g"].kernel_x + h @ w["g"].kernel_h + w["g"].bias)
    o = _sigmoid(x @ w["o"].kernel_x + h @ w["o"].kernel_h + w["o"].bias)
    new_c = f * c + i * g
    new_h = o * np.tanh(new_c)
    return FormulaStep({"i": i, "f": f, "g": g, "o": o}, (new_c, new_h), new_h)


def _gru(w: Mapping[str, GateWeights], h: Array, x: Array) -> FormulaStep:
    r = _sigmoid(x @ w["r"].kernel_x + w["r"].bias + h @ w["r"].kernel_h)
    z = _sigmoid(x @ w["z"].kernel_x + w["z"].bias + h @ w["z"].kernel_h)
    n = np.tanh(x @ w["n"].kernel_x + w["n"].bias + r * (h @ w["n"].kernel_h))
    new_h = (z.dtype.type(1) - z) * n + z * h
    return FormulaStep({"r": r, "z": z, "n": n}, (new_h,), new_h)


def _simple(w: Mapping[str, GateWeights], h: Array, x: Array) -> FormulaStep:
    only = w["h′"]
    new_h = np.tanh(x @ only.kernel_x + only.bias + h @ only.kernel_h)
    return FormulaStep({"h′": new_h}, (new_h,), new_h)


def _sigmoid(z: Array) -> Array:
    one = z.dtype.type(1)
    return np.asarray(one / (one + np.exp(-z)))


def _cast(weights: GateWeights, dtype: Any) -> GateWeights:
    return GateWeights(*(np.asarray(a, dtype) for a in (weights.kernel_x, weights.kernel_h, weights.bias)))
