"""What a baseline was recorded with: versions, backend, the state of this project's own code; and its tolerances."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import jax

from core.base.tolerance import TOLERANCES

_CORE: Final = Path(__file__).resolve().parent.parent
#: Packages whose versions are part of a baseline.
PACKAGES: Final = ("jax", "jaxlib", "flax", "numpy")
#: Where numbers are computed: what else is in core draws, words or judges them.
_COMPUTES: Final = ("base", "steps", "runners", "inputs", "contract", "regress")

#: By backend and dtype: (rtol, atol). On CPUs those of every page (`core.base.tolerance`). Accelerators multiply float32 in fewer bits unless
#: they are told not to: theirs are the ones that JAX's own tests use for a TPU (`jax._src.public_test_util`), and are
#: not measured here.
_ACCELERATOR: Final[Mapping[str, tuple[float, float]]] = {"float32": (1e-3, 1e-3), "complex64": (1e-3, 1e-3)}
_CPU: Final = {name: (used.rtol, used.atol) for name, used in TOLERANCES.items()}
TOLERANCE: Final[Mapping[str, Mapping[str, tuple[float, float]]]] = {
    "cpu": _CPU,
    "gpu": {**_CPU, **_ACCELERATOR},
    "tpu": {**_CPU, **_ACCELERATOR},
}


def backend() -> str:
    """The platform that JAX computes on: ``cpu``, ``gpu``, ``tpu``."""
    return str(jax.default_backend())


def versions() -> dict[str, str]:
    """Of this project's code, of Python, of the packages that compute, and the platform."""
    return {
        "carry-lab": code_version(),
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in PACKAGES},
        "platform": f"{platform.system()} {platform.machine()}",
    }


@cache
def code_version() -> str:
    """A digest of the source that computes the numbers, as twelve hexadecimal digits.

    Not a number that somebody must remember to raise, and not Git's, which is not there where the app is installed.
    """
    digest = hashlib.sha256()
    for name in _COMPUTES:
        for path in sorted((_CORE / name).rglob("*.py")):
            digest.update(path.relative_to(_CORE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def changes(stored: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """(name, then, now) of every version that differs from those of a baseline."""
    now = versions()
    names = dict.fromkeys((*stored, *now))
    return tuple((n, str(stored.get(n, "")), now.get(n, "")) for n in names if str(stored.get(n, "")) != now.get(n, ""))
