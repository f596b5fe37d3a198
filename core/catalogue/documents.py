"""Where the official documentation speaks of what a rule's ``Source:`` line names.

A rule names its source in words (``jax.lax.scan, argument `xs` ``; ``JAX documentation, "Pytrees"``). This table turns
the names into addresses, so that a new rule gets its links by naming what it was checked against.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_JAX = "https://docs.jax.dev/en/latest"
_FLAX = "https://flax.readthedocs.io/en/latest"


@dataclass(frozen=True, slots=True)
class Document:
    """A page of documentation: its title, its address, and the words in a source line that mean it."""

    title: str
    url: str
    words: tuple[str, ...]


def _jax_api(*names: str) -> tuple[Document, ...]:
    return tuple(Document(name, f"{_JAX}/_autosummary/{name}.html", (name,)) for name in names)


def _jax(title: str, page: str, *words: str) -> Document:
    return Document(f"JAX: {title}", f"{_JAX}/{page}.html", words)


def _flax(title: str, page: str, *words: str) -> Document:
    return Document(f"Flax: {title}", f"{_FLAX}/{page}.html", words)


_RECURRENT = "api_reference/flax.nnx/nn/recurrent"

#: In the order in which a page lists them.
DOCUMENTS: Final = (
    *_jax_api(
        "jax.lax.scan",
        "jax.lax.associative_scan",
        "jax.jit",
        "jax.numpy.nan_to_num",
        "jax.numpy.ndarray.at",
        "jax.numpy.where",
        "jax.random.split",
        "jax.random.fold_in",
    ),
    Document("jax.nn.initializers", f"{_JAX}/jax.nn.initializers.html", ("jax.nn.initializers",)),
    Document("jax.experimental.key_reuse", f"{_JAX}/jax.experimental.key_reuse.html", ("jax.experimental.key_reuse",)),
    _jax("pytrees", "101/pytrees", '"Pytrees"', '"Working with pytrees"'),
    _jax("random numbers", "101/random", '"Pseudorandom numbers"'),
    _jax("pure functions and state", "101/state", '"Stateful computations"', '"Pure functions"', "pure functions"),
    _jax("type promotion", "101/type_promotion", '"Type promotion semantics"'),
    _jax("default dtypes", "101/default_dtypes", '"Double (64bit) precision"'),
    _jax("errors", "errors", '"JAX errors"', "jax.errors."),
    _jax("control flow", "201/control-flow", '"Control flow and logical operators with JIT"'),
    _jax("just-in-time compilation", "201/jit", '"Just-in-time compilation"'),
    _jax("debugging", "201/debugging", '"Debugging NaNs"'),
    _jax("questions", "faq", '"Gradients contain NaN where using where"'),
    _flax(
        "recurrent layers", _RECURRENT, "flax.nnx.LSTMCell", "flax.nnx.GRUCell", "flax.nnx.RNN", "flax.nnx.nn.recurrent"
    ),
    _flax("Linear", "api_reference/flax.nnx/nn/linear", "flax.nnx.Linear"),
    _flax("Dropout", "api_reference/flax.nnx/nn/stochastic", "flax.nnx.Dropout"),
    _flax("dtypes", "api_reference/flax.nnx/nn/dtypes", "flax.nnx.nn.dtypes"),
    _flax("transforms", "api_reference/flax.nnx/transforms", "flax.nnx.scan", "flax.nnx.vmap", "flax.nnx.StateAxes"),
    _flax("random state", "api_reference/flax.nnx/rnglib", "flax.nnx.Rngs", "flax.nnx.split_rngs"),
    _flax("errors", "api_reference/flax.errors", "flax.errors."),
    _flax("bridge to Linen", "api_reference/flax.nnx/bridge", "flax.nnx.bridge", "flax.linen"),
    Document(
        "NumPy: broadcasting", "https://numpy.org/doc/stable/user/basics.broadcasting.html", ('numpy, "Broadcasting"',)
    ),
    Document("RestrictedPython", "https://restrictedpython.readthedocs.io/", ("the step language",)),
)


def documents_of(source: str) -> tuple[Document, ...]:
    """The pages that a rule's source line names.

    Args:
        source: what stands behind ``Source:`` in a rule's docstring.
    """
    plain = source.replace("`", "")
    return tuple(document for document in DOCUMENTS if any(word in plain for word in document.words))
