"""Running an exported program as its reader does: from nothing, in order."""

from __future__ import annotations

import contextlib
import io
import warnings

import jax
import nbformat
import numpy as np

from core.export.document import Document, script
from core.export.notebook import notebook


def run_code(*cells: str, jit: bool = True, names: dict | None = None) -> tuple[dict, str]:
    """The names that some code leaves (or goes on with), and what it printed; warnings of other versions are errors."""
    names, said = {"__name__": "__main__"} if names is None else names, io.StringIO()
    jitted = contextlib.nullcontext() if jit else jax.disable_jit()
    with contextlib.redirect_stdout(said), jitted, warnings.catch_warnings():
        warnings.filterwarnings("error", message="made with")
        for cell in cells:
            exec(compile(cell, "<exported>", "exec"), names)
    return names, said.getvalue()


def run_script(document: Document, *, jit: bool = True) -> tuple[dict, str]:
    """The script of a document, run."""
    return run_code(script(document), jit=jit)


def run_parts(document: Document, *, jit: bool = True) -> tuple[dict, str, str]:
    """The names that the program leaves before its negative test, what it printed, and what that test printed."""
    names, said = run_code(document.first, document.check, *(part.code for part in document.parts), jit=jit)
    left = dict(names)
    _, test = run_code(document.negative.code, jit=jit, names=names)
    return left, said, test


def assert_same(got, want):
    """One structure, the same shapes and dtypes, and the numbers within what two programs of XLA may differ by."""
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        wide = [a.astype(np.float64) if a.dtype.kind not in "biu" else a for a in (one, other)]
        np.testing.assert_allclose(*wide, rtol=1e-2 if one.dtype.itemsize == 2 else 1e-5, atol=1e-6)


def cells_of(document: Document) -> list[str]:
    """The code cells of its notebook, which is valid and has words before each part."""
    made = nbformat.reads(notebook(document), as_version=4)
    nbformat.validate(made)
    assert made.nbformat == 4
    assert made.cells[0].cell_type == "markdown"
    assert made.cells[-2].cell_type == "markdown"
    assert made.cells[-2].source.startswith("Negative test: ")
    return [cell.source for cell in made.cells if cell.cell_type == "code"]
