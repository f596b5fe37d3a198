"""Core is usable from a script, a notebook or a worker: a fresh interpreter proves that it never loads Streamlit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: Imports every module below core, then `extra`, and prints what was loaded of the names that must not be.
PROBE = """
import importlib, pkgutil, sys
import core
found = ["core"] + [m.name for m in pkgutil.walk_packages(core.__path__, "core.")]
for name in found:
    importlib.import_module(name)
{extra}
print(len(found), *sorted({{"streamlit", "pages", "app"}} & set(sys.modules)))
"""


def _loaded(extra: str = "") -> tuple[int, set[str]]:
    """How many core modules were imported, and which forbidden ones came with them."""
    run = subprocess.run(
        [sys.executable, "-c", PROBE.format(extra=extra)], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    count, *names = run.stdout.split()
    return int(count), set(names)


def test_core_imports_without_streamlit() -> None:
    count, names = _loaded()
    assert names == set()
    # core/doctor/examples holds scripts for the Doctor to run, no modules of ours.
    not_modules = {"__pycache__", "examples"}
    assert count == sum(1 for file in (ROOT / "core").rglob("*.py") if not not_modules & set(file.parts))


def test_the_probe_would_see_streamlit() -> None:
    # A stand-in, so that the proof also works where core is tested without Streamlit.
    _, names = _loaded("sys.modules['streamlit'] = sys")
    assert names == {"streamlit"}
