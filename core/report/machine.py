"""Where a report was made: versions, processor, cores, load. Asked of the process that writes it, not of a worker."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Final

import jax

from core.base.limits import LIMITS
from core.report.model import Machine, Versions

_CPU: Final = Path("/proc/cpuinfo")
#: What stands before a processor's name there, on x86 and on some Arm systems.
_NAMES: Final = ("model name", "Hardware", "cpu model", "Model")


def versions() -> Versions:
    """Of Python and of the packages as they are installed.

    Raises:
        IncompleteReportError: one of them has no version.
    """
    return Versions(platform.python_version(), *(_version(name) for name in ("jax", "jaxlib", "flax", "numpy")))


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def load() -> tuple[float, ...]:
    """Mean number of waiting processes over 1, 5 and 15 minutes; empty where the system does not tell."""
    try:
        return tuple(round(one, 2) for one in os.getloadavg())
    except (OSError, AttributeError):
        return ()


def machine(before: tuple[float, ...]) -> Machine:
    """This machine now. `before`: its load when the report was begun."""
    device = jax.devices()[0]
    return Machine(
        platform=platform.platform(),
        cpu=_cpu(),
        cores=os.cpu_count() or 1,
        usable=_usable(),
        load_before=before,
        load_after=load(),
        backend=jax.default_backend(),
        device=str(device.device_kind),
        x64=bool(jax.config.jax_enable_x64),
    )


def _usable() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), max(1, LIMITS["running"].value))
    return os.cpu_count() or 1


def _cpu() -> str:
    """The processor's own name, else its family."""
    try:
        lines = _CPU.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() in _NAMES and value.strip():
            return value.strip()
    return platform.processor() or platform.machine()
