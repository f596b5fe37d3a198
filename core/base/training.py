"""One update of a recurrent model, as it is asked for and as it came out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from core.base.avals import Aval
from core.base.places import Places

type Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class TrainingSpec:
    """A cell scanned over sequences, dropout on what it reads, a linear readout of its last h, a mean squared error.

    Attributes:
        inputs: (B, T, F) float32.
        targets: (B, O) float32.
        kind: name of the cell.
        hidden_features: H.
        seed: of the parameters.
        rate: of dropout, from 0 up to but not 1: the share of numbers of x that are dropped at each step.
        train: the mode, said explicitly: dropout drops in training alone.
        dropout_seed: of the stream "dropout"; None where no rngs were given at all.
        optimizer: ``sgd`` or ``adam``.
        learning_rate: of it.
        places: where each role stands: ``mode``, ``rngs``, ``rate``.
    """

    inputs: Array
    targets: Array
    kind: str = "LSTMCell"
    hidden_features: int = 16
    seed: int = 0
    rate: float = 0.2
    train: bool = True
    dropout_seed: int | None = 1
    optimizer: str = "sgd"
    learning_rate: float = 0.1
    places: Places = field(default_factory=Places)

    @property
    def drops(self) -> bool:
        """Whether anything is dropped: then a key is needed."""
        return self.train and self.rate > 0


@dataclass(frozen=True, slots=True)
class LeafNorm:
    """The gradient of one parameter.

    Attributes:
        path: ``cell.hf.kernel``, ``readout.bias``.
        type: of the parameter.
        norm: Frobenius norm of the gradient, in float64.
        finite: whether every number of it is.
    """

    path: str
    type: Aval
    norm: float
    finite: bool


@dataclass(frozen=True, slots=True, eq=False)
class TrainingStep:
    """One update.

    Attributes:
        mode: ``train`` or ``eval``.
        loss_before, loss_after: with the parameters before and after it, on the same data and with the same numbers
            dropped, so that nothing but the parameters differs.
        gradients: per parameter, the cell's first.
        draws: how often each named stream was asked for a key. The one of a forward pass is split into T.
        predictions: (B, O) before the update.
        compiled: whether this call compiled.
    """

    mode: str
    loss_before: float
    loss_after: float
    gradients: tuple[LeafNorm, ...]
    draws: Mapping[str, int]
    predictions: Array
    compiled: bool

    @property
    def norm(self) -> float:
        """Of the whole gradient."""
        return float(np.sqrt(sum(leaf.norm**2 for leaf in self.gradients)))

    @property
    def finite(self) -> bool:
        """Whether both losses and every gradient are."""
        return bool(np.isfinite([self.loss_before, self.loss_after]).all()) and all(g.finite for g in self.gradients)
