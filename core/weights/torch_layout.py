"""PyTorch's recurrent layers: how their state dict lies, read into Flax's layout and written back.

Equations, from the documentation of `torch.nn.LSTM` and `torch.nn.LSTMCell`
(https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html):

    i = σ(W_ii x + b_ii + W_hi h + b_hi)      f, o likewise      g = tanh(W_ig x + b_ig + W_hg h + b_hg)
    c′ = f ⊙ c + i ⊙ g                        h′ = o ⊙ tanh(c′)

``weight_ih`` is (W_ii|W_if|W_ig|W_io), of shape (4·H, F): the gates in the order i, f, g, o, one below the other, and each
W applied from the left. Flax multiplies from the right, so each kernel is the transpose; and it has one bias per gate,
the sum of PyTorch's two. And of `torch.nn.GRU` (https://docs.pytorch.org/docs/stable/generated/torch.nn.GRU.html):

    r, z = σ(W x + b_i + W h + b_h)           n = tanh(W_in x + b_in + r ⊙ (W_hn h + b_hn))      h′ = (1 − z) ⊙ n + z ⊙ h

with (W_ir|W_iz|W_in). `flax.nnx.GRUCell` has no b_hn inside the bracket that r multiplies: no b_in makes up for it, since
r changes. So a GRU is read where b_hn is zero, and refused where it is not.

What was read is accepted when the equations above, in NumPy, in float64 and with both biases apart, agree with the Flax
cell on seeded data. PyTorch itself is not needed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import jax
import numpy as np

from core.base.limits import LIMITS
from core.base.text import fill
from core.base.tolerance import difference
from core.runners.cell_formulas import KINDS, CellKind
from core.weights import control
from core.weights.architecture import ONE, TWO, Architecture
from core.weights.cell import CellWeights, LeafRow, Origin, weights_of
from core.weights.container import short, write
from core.weights.document import check_finite, typed
from core.weights.refusal import Stage, WeightsRefused

type Array = np.ndarray[Any, Any]

_NAME: Final = re.compile(r"(weight|bias)_(ih|hh|hr)(?:_l([0-9]{1,3})(_reverse)?)?")
_GATES: Final[Mapping[int, tuple[str, ...]]] = {4: ("i", "f", "g", "o"), 3: ("r", "z", "n")}
_FAMILIES: Final[Mapping[int, str]] = {4: "LSTM", 3: "GRU", 1: "RNN"}
#: The one tensor with all gates of a PyTorch layer that each of ours is part of.
_W_IH, _W_HH, _B_IH, _B_HH = "weight_ih", "weight_hh", "bias_ih", "bias_hh"
_NARROW: Final = ("float16", "bfloat16")

OTHERS = "This looks like a PyTorch state dict, and {leaf} is no part of one LSTM or GRU layer. Save that layer alone."
MANY_LAYERS = "{leaf} is of layer {layer}: the file has several layers, and here there is one. Save one layer alone."
PROJECTION = "{leaf} projects h to another width (proj_size); Flax's cells have no projection."
MIXED = "{leaf}: the file holds parameters of more than one layer ({first} is of another)."
INCOMPLETE = "{leaf} is missing: a PyTorch layer has weight_ih and weight_hh, and either both biases or none."
NO_FORWARD = "The file has {leaf} and no forward direction to it."
WRONG_AXES = "{leaf} has shape {got}: {want} axes are needed."
WRONG_ROWS = "{leaf} has shape {got}. Its rows should be 4 times its {hidden} columns (LSTM), or 3 times (GRU)."
WRONG_SHAPE = "{leaf} has shape {got}; with weight_hh of shape {hh} it should be {want}."
PLAIN_RNN = (
    "{leaf} has as many rows as columns: a plain RNN. A state dict does not say whether it uses tanh or relu, so it is not "
    "read."
)
OTHER_FAMILY = (
    "The file holds a PyTorch {family} ({leaf} has {rows} rows for {hidden} units), and the cell here is {kind}."
)
WRONG_DTYPE = "{leaf} is {got}; float32 is read, and float16 and bfloat16 widened to it. float64 would be rounded."
TOO_WIDE = "{leaf} is for {name} = {got}; {limit} is the most here."
B_HN = (
    "{leaf} is not zero in its last {hidden} rows, b_hn (largest {largest}). PyTorch adds b_hn before the reset gate "
    "multiplies; flax.nnx.GRUCell has no such bias, and no other parameter can stand for it."
)
DISAGREES = (
    "Read into Flax's layout, the parameters do not compute what PyTorch's equations say: {leaf} is {largest} apart, where "
    "{tolerance} is allowed."
)
TRANSPOSED = "transposed"
ADDED = "the two biases added"
NO_BIAS = "zeros: the layer was made with bias=False"
NOTHING = "none"
ROWS = "{tensor}[{begin}:{end}]"
BOTH = "{first} + {second}"
GATES = "{source}, {gates}"
WIDENED = "widened from {dtype}"
PART = "{change}; {more}"
NOT_WRITTEN = "Only an LSTM or a GRU has a PyTorch layer with the same parameters."


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """One direction: its tensors by short name, and the names that the file has for them."""

    tensors: Mapping[str, Array]
    names: Mapping[str, str]

    @property
    def biased(self) -> bool:
        return _B_IH in self.tensors

    @property
    def hidden(self) -> int:
        return int(self.tensors[_W_HH].shape[1])

    @property
    def blocks(self) -> int:
        return int(self.tensors[_W_HH].shape[0]) // self.hidden


def is_torch(tensors: Mapping[str, Array]) -> bool:
    """Whether the names are those of a recurrent layer of PyTorch, if only in part."""
    return any(_NAME.fullmatch(name.rpartition(".")[2]) for name in tensors)


# --- reading --------------------------------------------------------------------------------------------------------


def load_torch(tensors: Mapping[str, Array], kind: str) -> CellWeights:
    """The parameters of one layer, or of its two directions, for a cell of this kind.

    Args:
        tensors: of the file, by name.
        kind: ``LSTMCell``, ``OptimizedLSTMCell`` or ``GRUCell``.

    Raises:
        WeightsRefused: the names, shapes, dtypes or numbers are not those of such a layer; several layers, a projection,
            a GRU with a b_hn; or the equations disagree with the cell.
    """
    layers = _layers(tensors)
    cells = TWO if len(layers) == 2 else ONE
    for layer in layers:
        _check_shapes(layer, layers[0])
    first = layers[0]
    _check_family(first, KINDS[kind])
    features = int(first.tensors[_W_IH].shape[1])
    for name, got, limit in (("in_features", features, "features"), ("hidden_features", first.hidden, "hidden")):
        if not 1 <= got <= LIMITS[limit].value:
            leaf = first.names[_W_IH if name == "in_features" else _W_HH]
            raise WeightsRefused(Stage.LEAVES, TOO_WIDE, leaf, name=name, got=got, limit=LIMITS[limit].value)
    check_finite(tensors)
    architecture = Architecture(kind, features, first.hidden, cells)
    wide: dict[str, Array] = {}
    rows: list[LeafRow] = []
    kept: dict[str, Array] = {}
    for cell, layer in zip(cells, layers, strict=True):
        if layer.blocks == 3 and layer.biased:
            _check_b_hn(layer)
        made, told = _converted(KINDS[kind], cell, layer)
        wide |= made
        rows += told
        kept |= {f"{cell}.{name}": layer.tensors[name] for name in (_B_IH, _B_HH) if layer.biased}
    largest = max(_check_equations(architecture, cell, layer, wide) for cell, layer in zip(cells, layers, strict=True))
    with np.errstate(over="ignore"):  # what is too large for float32 is refused as not finite
        leaves = {path: array.astype(np.float32) for path, array in wide.items()}
    weights = weights_of(architecture, leaves, origin=Origin.TORCH)
    return CellWeights(
        architecture,
        weights.leaves,
        weights.digest,
        weights.control,
        None,
        Origin.TORCH,
        weights.versions,
        tuple(rows),
        kept,
        largest,
    )


def _layers(tensors: Mapping[str, Array]) -> list[_Layer]:
    """The forward direction, and the backward one where there is one."""
    found: dict[str, dict[str, str]] = {}
    prefixes: dict[str, tuple[str, str | None]] = {}
    for name in tensors:
        prefix, _, last = name.rpartition(".")
        match = _NAME.fullmatch(last)
        if match is None:
            raise WeightsRefused(Stage.LEAVES, OTHERS, short(name))
        what, which, layer, backwards = match.groups()
        if which == "hr":
            raise WeightsRefused(Stage.LEAVES, PROJECTION, short(name))
        if layer not in (None, "0"):
            raise WeightsRefused(Stage.LEAVES, MANY_LAYERS, short(name), layer=layer)
        if prefixes and (prefix, layer) not in prefixes.values():
            raise WeightsRefused(Stage.LEAVES, MIXED, short(name), first=short(next(iter(prefixes))))
        prefixes[name] = (prefix, layer)
        found.setdefault("reverse" if backwards else "forward", {})[f"{what}_{which}"] = name
    if "forward" not in found:
        raise WeightsRefused(Stage.LEAVES, NO_FORWARD, short(next(iter(found["reverse"].values()))))
    out = []
    for way in ("forward", "reverse"):
        if way not in found:
            continue
        names = found[way]
        biased = _B_IH in names or _B_HH in names or any(_B_IH in other for other in found.values())
        for name in (_W_IH, _W_HH, *((_B_IH, _B_HH) if biased else ())):
            if name not in names:
                raise WeightsRefused(Stage.LEAVES, INCOMPLETE, f"{name} ({way})" if len(found) > 1 else name)
        out.append(_Layer({short_name: tensors[name] for short_name, name in names.items()}, names))
    return out


def _check_shapes(layer: _Layer, first: _Layer) -> None:
    for name, array in layer.tensors.items():
        axes = 1 if name.startswith("bias") else 2
        if array.ndim != axes:
            raise WeightsRefused(Stage.LEAVES, WRONG_AXES, short(layer.names[name]), got=array.shape, want=axes)
        if array.dtype.name not in ("float32", *_NARROW):
            raise WeightsRefused(Stage.LEAVES, WRONG_DTYPE, short(layer.names[name]), got=array.dtype.name)
    recurrent = layer.tensors[_W_HH]
    rows, hidden = recurrent.shape
    if hidden == 0 or rows % hidden or rows // hidden not in _FAMILIES:
        raise WeightsRefused(Stage.LEAVES, WRONG_ROWS, short(layer.names[_W_HH]), got=recurrent.shape, hidden=hidden)
    if rows == hidden:
        raise WeightsRefused(Stage.LEAVES, PLAIN_RNN, short(layer.names[_W_HH]))
    features = first.tensors[_W_IH].shape[1]
    same = first.tensors[_W_HH].shape
    wanted = {_W_HH: same, _W_IH: (rows, features), _B_IH: (rows,), _B_HH: (rows,)}
    for name, array in layer.tensors.items():
        if array.shape != wanted[name]:
            raise WeightsRefused(
                Stage.LEAVES, WRONG_SHAPE, short(layer.names[name]), got=array.shape, want=wanted[name], hh=same
            )


def _check_family(layer: _Layer, kind: CellKind) -> None:
    if tuple(gate.name for gate in kind.gates) != _GATES[layer.blocks]:
        raise WeightsRefused(
            Stage.LEAVES,
            OTHER_FAMILY,
            short(layer.names[_W_HH]),
            family=_FAMILIES[layer.blocks],
            rows=layer.tensors[_W_HH].shape[0],
            hidden=layer.hidden,
            kind=kind.name,
        )


def _check_b_hn(layer: _Layer) -> None:
    last = layer.tensors[_B_HH][2 * layer.hidden :]
    if np.any(last != 0):
        largest = float(np.abs(last.astype(np.float64)).max())
        raise WeightsRefused(
            Stage.LEAVES, B_HN, short(layer.names[_B_HH]), hidden=layer.hidden, largest=f"{largest:.3g}"
        )


def _converted(kind: CellKind, cell: str, layer: _Layer) -> tuple[dict[str, Array], list[LeafRow]]:
    """The parameters by path, not rounded yet, and a row for each that says where it comes from."""
    leaves: dict[str, Array] = {}
    rows = []
    wide = {name: array.astype(np.float64) for name, array in layer.tensors.items()}
    total = layer.blocks * layer.hidden
    bias = wide[_B_IH] + wide[_B_HH] if layer.biased else np.zeros(total)
    for gate, block in _blocks(kind):
        span = slice(block.start * layer.hidden, block.stop * layer.hidden)
        x, h = kind_layers(kind, gate)
        where = _where(layer, span)
        gates = " ".join(kind.gates[at].name for at in block)
        for name, tensor in ((x, _W_IH), (h, _W_HH)):
            path = f"{cell}.{name}.kernel"
            leaves[path] = np.ascontiguousarray(wide[tensor][span].T)
            source = fill(GATES, source=where[tensor], gates=gates)
            rows.append(_row(path, leaves[path], source, fill(TRANSPOSED), layer, tensor))
        path = f"{cell}.{_biased_layer(kind, x, h)}.bias"
        leaves[path] = np.array(bias[span])
        if layer.biased:
            both = fill(BOTH, first=where[_B_IH], second=where[_B_HH])
            source = fill(GATES, source=both, gates=gates)
            rows.append(_row(path, leaves[path], source, fill(ADDED), layer, _B_IH))
        else:
            rows.append(LeafRow(path, typed("float32", leaves[path].shape), fill(NOTHING), fill(NO_BIAS)))
    return leaves, rows


def _row(path: str, made: Array, source: str, change: str, layer: _Layer, tensor: str) -> LeafRow:
    dtype = layer.tensors[tensor].dtype.name
    if dtype in _NARROW:
        change = fill(PART, change=change, more=fill(WIDENED, dtype=dtype))
    return LeafRow(path, typed("float32", made.shape), source, change)


def _blocks(kind: CellKind) -> list[tuple[str, range]]:
    """For each kernel of ours: its first gate, and which gates of PyTorch's tensor it holds, in that order."""
    if kind.blocks > 1:
        return [(kind.gates[0].name, range(kind.blocks))]
    return [(gate.name, range(at, at + 1)) for at, gate in enumerate(kind.gates)]


def kind_layers(kind: CellKind, gate: str) -> tuple[str, str]:
    """The attributes of a cell that hold a gate's input kernel and recurrent kernel."""
    return next(spec.layers for spec in kind.gates if spec.name == gate)


def _biased_layer(kind: CellKind, x: str, h: str) -> str:
    """Which of the two has the bias: the recurrent one in an LSTM, the input one in a GRU."""
    return h if kind.pair else x


def _where(layer: _Layer, span: slice) -> dict[str, str]:
    """The rows of each of PyTorch's tensors, as Python writes a slice; all of them are not counted."""
    if span == slice(0, layer.blocks * layer.hidden):
        return dict(layer.names)
    return {name: fill(ROWS, tensor=full, begin=span.start, end=span.stop) for name, full in layer.names.items()}


def _check_equations(architecture: Architecture, cell: str, layer: _Layer, leaves: Mapping[str, Array]) -> float:
    """PyTorch's equations on the file's own tensors against the Flax cell on what was read; the largest difference.

    Both in float64, the sum of the two biases too: in float32 large weights are apart by their roundings alone, more than
    the tolerance (measured), and a right file would be refused.
    """
    arrays = {path: array.astype(np.float64) for path, array in control.given(architecture).items()}
    with jax.enable_x64(True):
        got = control.outcome(architecture, leaves, arrays)
    parts = KINDS[architecture.cell].parts
    carry = tuple(arrays[f"{cell}.{control.INIT}.{part}"] for part in parts)
    final, ys = torch_forward(layer.tensors, carry, arrays[f"{cell}.{control.INPUT}"])
    wanted = {f"{cell}.{control.FINAL}.{part}": value for part, value in zip(parts, final, strict=True)}
    wanted[f"{cell}.{control.OUTPUT}"] = ys
    tolerance, largest = control.TOLERANCES[control.backend()], 0.0
    for path, want in wanted.items():
        apart = difference(got[path], want, tolerance)
        if not apart.within:
            raise WeightsRefused(
                Stage.CONTROL, DISAGREES, path, largest=f"{apart.largest:.3g}", tolerance=tolerance.text
            )
        largest = max(largest, apart.largest)
    return largest


def torch_forward(tensors: Mapping[str, Array], carry: tuple[Array, ...], xs: Array) -> tuple[tuple[Array, ...], Array]:
    """PyTorch's equations, step by step, in float64, with the two biases apart.

    Args:
        tensors: ``weight_ih`` (G·H, F), ``weight_hh`` (G·H, H), and ``bias_ih``, ``bias_hh`` (G·H,) or neither.
        carry: (c, h) of an LSTM, (h,) of a GRU; each (B, H).
        xs: (T, B, F).

    Returns:
        the final carry, and every h, (T, B, H).
    """
    w = {name: np.asarray(array, np.float64) for name, array in tensors.items()}
    hidden = w[_W_HH].shape[1]
    rows = w[_W_HH].shape[0]
    b_ih, b_hh = (w.get(name, np.zeros(rows)) for name in (_B_IH, _B_HH))
    state = tuple(np.asarray(part, np.float64) for part in carry)
    ys = []
    for x in np.asarray(xs, np.float64):
        from_x = np.split(x @ w[_W_IH].T + b_ih, rows // hidden, axis=-1)
        from_h = np.split(state[-1] @ w[_W_HH].T + b_hh, rows // hidden, axis=-1)
        if rows == 4 * hidden:
            i, f, o = (_sigmoid(from_x[at] + from_h[at]) for at in (0, 1, 3))
            g = np.tanh(from_x[2] + from_h[2])
            c = f * state[0] + i * g
            state = (c, o * np.tanh(c))
        else:
            r, z = (_sigmoid(from_x[at] + from_h[at]) for at in (0, 1))
            n = np.tanh(from_x[2] + r * from_h[2])
            state = ((1 - z) * n + z * state[0],)
        ys.append(state[-1])
    return state, np.stack(ys)


def _sigmoid(value: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-value)))


# --- writing --------------------------------------------------------------------------------------------------------


def torch_tensors(weights: CellWeights, *, layer: bool) -> dict[str, Array]:
    """The state dict of the PyTorch layer that computes the same.

    PyTorch has two biases where Flax has one: ``bias_ih`` gets it and ``bias_hh`` zeros, unless the parameters came from
    PyTorch: then each is what it was.

    Args:
        weights: of an LSTM or a GRU.
        layer: named as `torch.nn.LSTM` names them (``weight_ih_l0``), else as `torch.nn.LSTMCell`. Two cells are a
            bidirectional layer in any case (``…_l0_reverse``).

    Raises:
        ValueError: a plain recurrent cell.
    """
    kind = KINDS[weights.architecture.cell]
    if len(kind.gates) not in _GATES:
        raise ValueError(fill(NOT_WRITTEN))
    out: dict[str, Array] = {}
    for cell in weights.architecture.cells:
        ours = weights.of_cell(cell)
        x_kernels, h_kernels, biases = [], [], []
        for gate, _ in _blocks(kind):
            x, h = kind_layers(kind, gate)
            x_kernels.append(ours[f"{x}.kernel"].T)
            h_kernels.append(ours[f"{h}.kernel"].T)
            biases.append(ours[f"{_biased_layer(kind, x, h)}.bias"])
        bias = np.concatenate(biases)
        tail = ("_l0" if layer or weights.architecture.cells == TWO else "") + ("_reverse" if cell == TWO[1] else "")
        out |= {
            f"{_W_IH}{tail}": np.concatenate(x_kernels),
            f"{_W_HH}{tail}": np.concatenate(h_kernels),
            f"{_B_IH}{tail}": weights.torch.get(f"{cell}.{_B_IH}", bias),
            f"{_B_HH}{tail}": weights.torch.get(f"{cell}.{_B_HH}", np.zeros_like(bias)),
        }
    return out


def torch_file(weights: CellWeights, *, layer: bool) -> bytes:
    """The same as a safetensors file: ``module.load_state_dict(safetensors.torch.load_file(path))``. As `torch_tensors`."""
    return write(torch_tensors(weights, layer=layer), {"format": "pt"})
