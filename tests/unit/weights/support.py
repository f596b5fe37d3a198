"""Files of parameters, whole or changed on purpose, for the tests of this folder."""

from __future__ import annotations

import json

import numpy as np
import pytest

from core.weights.architecture import ONE, Architecture
from core.weights.cell import cell_file, weights_of, weights_of_seed
from core.weights.container import read, write
from core.weights.document import NAME, digest, sealed
from core.weights.load import load_cell
from core.weights.refusal import WeightsRefused

LSTM = Architecture("LSTMCell", 3, 4)


def of_seed(kind="LSTMCell", features=3, hidden=4, cells=ONE, seed=7):
    return weights_of_seed(Architecture(kind, features, hidden, cells), seed)


def drawn(kind="LSTMCell", features=3, hidden=4, cells=ONE, seed=7, scale=0.5):
    """Parameters with biases that are not zero, as no seed gives them."""
    base = of_seed(kind, features, hidden, cells, seed)
    rng = np.random.default_rng(seed)
    leaves = {p: (rng.standard_normal(a.shape) * scale).astype(a.dtype) for p, a in base.leaves.items()}
    return weights_of(base.architecture, leaves)


def refused(data, kind="LSTMCell"):
    with pytest.raises(WeightsRefused) as caught:
        load_cell(data, kind)
    return caught.value


def opened(data):
    """(tensors, document) of a file, to be changed."""
    container = read(data)
    return dict(container.tensors), json.loads(container.metadata[NAME])


def closed(tensors, document, *, seal=True, rehash=False):
    """The file of them: with its description's hash made anew, and with those of its sections if `rehash`."""
    if rehash:
        parts = {**document["sections"], "control": document["control"]}
        for name, section in parts.items():
            start = f"{name}/"
            own = {t.removeprefix(start): a for t, a in tensors.items() if t.startswith(start)}
            section["sha256"] = digest(own)
    return write(tensors, {NAME: sealed(document) if seal else json.dumps(document)})


def changed(data, tensor, change, **how):
    """The file with one array changed by a function of it."""
    tensors, document = opened(data)
    tensors[tensor] = change(np.array(tensors[tensor]))
    return closed(tensors, document, **how)


__all__ = ["LSTM", "cell_file", "changed", "closed", "drawn", "of_seed", "opened", "refused"]
