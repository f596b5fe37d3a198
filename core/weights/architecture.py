"""Which cells a file of parameters is for, and what parameters these have: their paths, shapes and dtypes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import jax
import numpy as np
from flax import nnx
from jax import tree_util

from core.base.avals import abstract
from core.base.text import fill
from core.runners.cell_formulas import KINDS

#: One cell of a page, or one step; and the two of a bidirectional layer.
ONE: Final = ("cell",)
TWO: Final = ("forward", "backward")
#: Types of parameters. Cells compute in float32 whatever they are kept in.
PARAM_DTYPES: Final = ("float32", "bfloat16", "float16")

WORDS = "{cell}, F = {features}, H = {hidden}"
BOTH_WAYS = "{cell} both ways, F = {features}, H = {hidden}"


@dataclass(frozen=True, slots=True)
class Architecture:
    """What must be the same on both sides.

    Attributes:
        cell: a name of `KINDS`.
        in_features, hidden_features: F and H.
        cells: `ONE` or `TWO`; the first part of every path.
        param_dtype: of every parameter.
    """

    cell: str
    in_features: int
    hidden_features: int
    cells: tuple[str, ...] = ONE
    param_dtype: str = "float32"

    @property
    def text(self) -> str:
        """For a reader."""
        both = self.cells == TWO
        return fill(
            BOTH_WAYS if both else WORDS, cell=self.cell, features=self.in_features, hidden=self.hidden_features
        )


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """One cell without its numbers: `nnx.merge(graph, tree_unflatten(tree, leaves))` is the cell.

    Attributes:
        paths: of each leaf, ``hi.kernel``.
        avals: shape and dtype of each.
    """

    graph: Any
    tree: Any
    paths: tuple[str, ...]
    avals: tuple[jax.ShapeDtypeStruct, ...]


def template(architecture: Architecture) -> Template:
    """One cell of these sizes, as Flax builds it; no number is drawn.

    Raises:
        KeyError: there is no such cell.
    """
    made = KINDS[architecture.cell].cell

    def build() -> Any:
        return made(
            architecture.in_features,
            architecture.hidden_features,
            param_dtype=np.dtype(architecture.param_dtype),
            # Nothing is drawn; and an orthogonal kernel cannot be drawn in a half-size dtype at all.
            kernel_init=nnx.initializers.zeros,
            recurrent_kernel_init=nnx.initializers.zeros,
            rngs=nnx.Rngs(0),
        )

    graph, state = nnx.split(nnx.eval_shape(build))
    leaves, tree = tree_util.tree_flatten(state)
    paths = tuple(".".join(map(str, path)) for path, _ in nnx.to_flat_state(state))
    return Template(graph, tree, paths, tuple(abstract(leaf.shape, leaf.dtype) for leaf in leaves))


def expected(architecture: Architecture) -> Mapping[str, jax.ShapeDtypeStruct]:
    """Every parameter of the architecture by path, ``cell.hi.kernel``, with its shape and dtype."""
    made = template(architecture)
    return {
        f"{cell}.{path}": aval for cell in architecture.cells for path, aval in zip(made.paths, made.avals, strict=True)
    }
