"""The model that is trained, and the four pure functions of one update: forward, loss, gradient, update.

Dropout has a named stream of its own, so that building the cell takes nothing from it. A stream must not be asked inside
a scan: the question is asked once, when the step is traced, and every step would drop the same numbers (R401, R404). So
one key is drawn for a forward pass, split into T, and they ride along as xs.

Source: Srivastava, Hinton, Krizhevsky, Sutskever and Salakhutdinov 2014, with the scaling by 1/(1 − rate) of
`flax.nnx.Dropout`, whose numbers these are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax import lax

from core.runners.cell_formulas import CellKind
from core.runners.cells import parts_of
from core.runners.gradient_source import packed
from core.runners.initial import kernel, zeros
from core.runners.layers import rngs_after

#: The stream that dropout draws from.
STREAM: Final = "dropout"
#: By name: what makes an optimizer of a learning rate.
OPTIMIZERS: Final[Mapping[str, Callable[[Any], optax.GradientTransformation]]] = {
    "sgd": optax.sgd,
    "adam": optax.adam,
}


class DropoutCell(nnx.Module):
    """A cell with dropout on what it reads.

    Args:
        cell: any recurrent cell of NNX.
        deterministic: the mode. ``model.train()`` and ``model.eval()`` set it, as for Flax's own layers.
    """

    def __init__(self, cell: Any, *, deterministic: bool = False) -> None:
        self.cell = cell
        self.deterministic = deterministic

    def __call__(self, carry: Any, x: Any, *, keep: Any = 1.0, key: Any = None) -> tuple[Any, Any]:
        """One step.

        Args:
            carry: of the cell.
            x: (…, F).
            keep: the share that is kept, 1 − rate; it may be traced, so that moving it compiles nothing.
            key: of this step.

        Raises:
            ValueError: what `nnx.Dropout` raises that is to drop and has no rngs.
        """
        result: tuple[Any, Any] = self.cell(carry, x if self.deterministic else dropped(x, keep, key))
        return result


def dropped(x: Any, keep: Any, key: Any) -> Any:
    """``nnx.Dropout(1 − keep)(x, rngs=key)`` with a rate that may be traced.

    Raises:
        ValueError: there is no key; Flax's own layer raises it.
    """
    if key is None:
        nnx.Dropout(0.5, rng_collection=STREAM)(x)
    return jnp.where(jax.random.bernoulli(key, keep, x.shape), x / keep, jnp.zeros_like(x))


class SequenceModel(nnx.Module):
    """A cell over the sequence, and a linear readout of its last hidden state.

    Args:
        kind: of the cell.
        cell: built.
        outputs: O.
        seed: of the cell's parameters; the readout takes the keys that follow the cell's.
    """

    def __init__(self, kind: CellKind, cell: Any, outputs: int, *, seed: int) -> None:
        self.kind = kind
        self.steps = DropoutCell(cell)
        rngs = rngs_after(kind.name, seed)
        self.readout = nnx.Linear(cell.hidden_features, outputs, kernel_init=kernel, bias_init=zeros, rngs=rngs)

    def __call__(self, inputs: Any, *, keep: Any = 1.0, key: Any = None) -> Any:
        """Predictions.

        Args:
            inputs: (B, T, F).
            keep: 1 − the rate of dropout.
            key: one for the whole pass; it is split into T.

        Returns:
            (B, O).

        Raises:
            ValueError: in training mode, without a key.
        """
        over_time = jnp.swapaxes(inputs, 0, 1)
        length, batch, _ = over_time.shape
        keys = None if key is None else jax.random.split(key, length)
        nothing = jnp.zeros((batch, self.readout.in_features), inputs.dtype)

        def step(carry: Any, at: Any) -> Any:
            x, of_step = at
            return self.steps(carry, x, keep=keep, key=of_step)[0], None

        carry = packed(self.kind, (nothing,) * len(self.kind.parts))
        final, _ = lax.scan(step, carry, (over_time, keys))
        return self.readout(parts_of(self.kind, final)[-1])


# --- one update, as pure functions ----------------------------------------------------------------------------------


def forward(graph: Any, params: Any, inputs: Any, keep: Any = 1.0, key: Any = None) -> Any:
    """Predictions (B, O) of the model that `graph` describes (its mode is part of it), with these parameters."""
    return nnx.merge(graph, params)(inputs, keep=keep, key=key)


def loss(graph: Any, params: Any, inputs: Any, targets: Any, keep: Any = 1.0, key: Any = None) -> Any:
    """The mean of (prediction − target)² over examples and outputs."""
    return jnp.mean(jnp.square(forward(graph, params, inputs, keep, key) - targets))


def gradient(graph: Any, params: Any, inputs: Any, targets: Any, keep: Any = 1.0, key: Any = None) -> tuple[Any, Any]:
    """The loss, and its gradient with respect to the parameters, in their structure."""
    return jax.value_and_grad(loss, argnums=1)(graph, params, inputs, targets, keep, key)


def update(optimizer: str, learning_rate: Any, params: Any, gradients: Any, state: Any) -> tuple[Any, Any]:
    """Parameters and the optimizer's state after one update; `state` is from `OPTIMIZERS[optimizer](rate).init`.

    Raises:
        KeyError: there is no such optimizer.
    """
    changes, state = OPTIMIZERS[optimizer](learning_rate).update(gradients, state, params)
    return optax.apply_updates(params, changes), state
