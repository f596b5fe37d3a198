"""Small trials of layers over sequences, for the tests of what runs and checks them."""

from __future__ import annotations

import numpy as np

from core.contract.subject import SequenceTrial

B, T, F, H = 3, 5, 2, 4
#: The repository's tolerance of float32.
CLOSE = {"rtol": 1e-5, "atol": 1e-6}


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def trial(kind="LSTMCell", *, axes="BTF", shape=(B, T, F), hidden=H, seed=0, **changes):
    sizes = dict(zip("BTF", shape, strict=True))
    return SequenceTrial(
        kind,
        numbers(*(sizes[a] for a in axes), seed=seed),
        axes,
        hidden,
        time_major=changes.pop("time_major", axes == "TBF"),
        **changes,
    )
