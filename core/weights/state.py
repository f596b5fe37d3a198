"""The state of any NNX module in parts: parameters, batch statistics, RNG state, optimizer state, each on its own.

Why apart: parameters are shared and compared, batch statistics belong to the data they were taken from, keys and their
counts decide which noise comes next, and moments of an optimizer belong to one training run. Whoever wants the
parameters must not get a stranger's dropout, and whoever goes on training needs all four. So each is a section of the
file with a hash and a check of its own, and restoring one leaves the others as they are.

    data = save_state(model, forward, optimizer=opt_state)
    stored = load_state(data)                     # size, format, schema, paths, finite, hashes
    restore(model, stored, "params", forward)     # against the module, then the control forward on a copy; then in place
    opt_state = restore_optimizer(opt_state, stored)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import tree_util

from core.base.text import fill
from core.base.tolerance import EXACT, Tolerance, difference
from core.weights import control
from core.weights.container import Container, read, short, write
from core.weights.document import (
    BATCH_STATS,
    CONTROL,
    FORMAT,
    NAME,
    OPTIMIZER,
    PARAMS,
    RNG,
    SECTIONS,
    VERSION,
    Document,
    check_finite,
    check_hash,
    check_hashes,
    check_leaves,
    check_seal,
    digest,
    document_of,
    leaves_of,
    sealed,
    section_arrays,
    typed,
    versions,
)
from core.weights.refusal import Stage, WeightsRefused

type Array = np.ndarray[Any, Any]
#: What is run for control: the module's outputs, any tree of arrays, for inputs of the caller's choice.
type Forward = Callable[[Any], Any]

#: Which Variables of a module are which section's.
FILTERS: Final[Mapping[str, Any]] = {PARAMS: nnx.Param, BATCH_STATS: nnx.BatchStat, RNG: nnx.RngState}

NO_SECTION = "The file has no section “{section}”; it has {names}."
NO_SUCH_SECTION = "{section} is no section; they are {names}."
UNSORTED = "{leaf} is a {variable}: no section is for it, so the state would not be whole."
MISSING = "{leaf} is missing from the file; the module needs it as {want}."
NOT_OURS = "{leaf} is in the file, and the module has none such."
OTHER_TYPE = "{leaf} is {got} in the file, and {want} in the module."
NO_CONTROL = "Unverified: the file has no control forward."
OUTPUT_TREE = "The control forward gives {got} arrays, and the file has {want}."
NO_OUTPUT = "The file's control has no {leaf}, so this part of it cannot be verified."
APART = "The control forward gives other numbers: {leaf} is {largest} apart, where {tolerance} is allowed ({backend})."
OVERFLOWS = "The control forward is not finite at {leaf}, so it would tell nothing."


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """One part of a state.

    Attributes:
        leaves: arrays by path; a key is kept as its data, uint32.
        variables: the type of each leaf's Variable; of a key with its implementation.
        digest: SHA-256 over the leaves.
    """

    leaves: Mapping[str, Array]
    variables: Mapping[str, str]
    digest: str


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """A file's sections, checked by themselves: nothing is known yet of the module they are for."""

    sections: Mapping[str, Section]
    control: Mapping[str, Array]
    tolerance: Mapping[str, Tolerance]
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)


# --- taking apart ---------------------------------------------------------------------------------------------------


def sections_of(module: Any, optimizer: Any = None) -> dict[str, Section]:
    """The sections that a module, and its optimizer if it is given, have anything in.

    Args:
        module: any NNX module.
        optimizer: an `nnx.Optimizer`, or the state of an optax optimizer.

    Raises:
        ValueError: the module has a Variable that belongs to none of them.
    """
    for path, variable in nnx.to_flat_state(nnx.state(module)):
        if not isinstance(variable, tuple(FILTERS.values())):
            name = ".".join(map(str, path))
            raise ValueError(fill(UNSORTED, leaf=name, variable=type(variable).__name__))
    out = {}
    for name, kind in FILTERS.items():
        flat = nnx.to_flat_state(nnx.state(module, kind))
        out[name] = _section({".".join(map(str, path)): variable for path, variable in flat})
    if optimizer is not None:
        out[OPTIMIZER] = _section(_optimizer_leaves(optimizer))
    return {name: section for name, section in out.items() if section.leaves}


def _section(named: Mapping[str, Any]) -> Section:
    leaves, variables = {}, {}
    for path, variable in named.items():
        value = variable[...] if isinstance(variable, nnx.Variable) else variable
        kind = type(variable).__name__ if isinstance(variable, nnx.Variable) else "array"
        if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            kind, value = f"{kind} {jax.random.key_impl(value)}", jax.random.key_data(value)
        leaves[path], variables[path] = np.array(value), kind
    return Section(leaves, variables, digest(leaves))


def _optimizer_leaves(optimizer: Any) -> dict[str, Any]:
    if isinstance(optimizer, nnx.Optimizer):
        return {".".join(map(str, path)): v for path, v in nnx.to_flat_state(nnx.state(optimizer))}
    flat, _ = tree_util.tree_flatten_with_path(optimizer)
    return {tree_util.keystr(path): leaf for path, leaf in flat}


def save_state(module: Any, forward: Forward, *, optimizer: Any = None, seed: int | None = None) -> bytes:
    """The file of a module's whole state.

    Args:
        module: any NNX module.
        forward: run on a copy of it; what it gives is kept, to be compared when the file is used.
        optimizer: as in `sections_of`.
        seed: that the module was built from, if anybody knows.

    Raises:
        ValueError: as `sections_of`.
        WeightsRefused: parameters, statistics, moments or outputs that are not finite.
    """
    return file_of(sections_of(module, optimizer), _outputs(forward, nnx.clone(module)), seed)


def file_of(sections: Mapping[str, Section], outputs: Mapping[str, Array], seed: int | None) -> bytes:
    """The file of these sections, with the outputs of their control forward.

    Raises:
        WeightsRefused: something in them is not finite.
    """
    tensors = {f"{name}/{path}": a for name, section in sections.items() for path, a in section.leaves.items()}
    check_finite(tensors)
    for path, values in outputs.items():
        if values.dtype.kind not in "biu" and not np.isfinite(values.astype(np.float64)).all():
            raise WeightsRefused(Stage.CONTROL, OVERFLOWS, path)
    document = {
        "format": FORMAT,
        "version": VERSION,
        "versions": versions(),
        "seed": seed,
        "architecture": None,
        "sections": {
            name: {"sha256": section.digest, "leaves": leaves_of(section.leaves, section.variables)}
            for name, section in sections.items()
        },
        "control": {
            "seed": None,
            "backend": control.backend(),
            "tolerance": {n: {"rtol": t.rtol, "atol": t.atol} for n, t in control.TOLERANCES.items()},
            "sha256": digest(outputs),
            "leaves": leaves_of(outputs, {}),
        },
    }
    tensors |= {f"{CONTROL}/{path}": array for path, array in outputs.items()}
    return write(tensors, {NAME: sealed(document)})


def _outputs(forward: Forward, module: Any) -> dict[str, Array]:
    flat, _ = tree_util.tree_flatten_with_path(forward(module))
    return {f"output{tree_util.keystr(path)}": np.asarray(leaf) for path, leaf in flat}


# --- putting back ---------------------------------------------------------------------------------------------------


def load_state(data: bytes) -> Stored:
    """The sections of a file, after every check that needs no module.

    Raises:
        WeightsRefused: size, file format, schema, paths with shapes and dtypes, finite, hashes.
    """
    container = read(data)
    document = document_of(container)
    check_leaves(container, document)
    check_finite(container.tensors)
    check_hashes(container, document)
    return _stored(container, document)


def load_apart(data: bytes) -> tuple[Stored, dict[str, WeightsRefused]]:
    """The sections of a file, each with a verdict of its own: one that is damaged does not take the others with it.

    Returns:
        the file, and why a section of it cannot be used (not finite, another hash), by name.

    Raises:
        WeightsRefused: the file as a whole: size, file format, schema, paths with shapes and dtypes, its description's
            hash, its control.
    """
    container = read(data)
    document = document_of(container)
    check_leaves(container, document)
    check_seal(document)
    stored = _stored(container, document)
    refused: dict[str, WeightsRefused] = {}
    for name in (CONTROL, *stored.sections):
        try:
            check_finite(container.tensors, (f"{name}/",))
            check_hash(container, document, name)
        except WeightsRefused as reason:
            if name == CONTROL:
                raise
            refused[name] = reason
    return stored, refused


def _stored(container: Container, document: Document) -> Stored:
    said = document["control"]
    if said is None:
        raise WeightsRefused(Stage.SCHEMA, NO_CONTROL)
    sections = {
        name: Section(
            section_arrays(container, name),
            {path: leaf["variable"] for path, leaf in section["leaves"].items()},
            section["sha256"],
        )
        for name, section in document["sections"].items()
    }
    tolerance = {name: Tolerance(t["rtol"], t["atol"]) for name, t in said["tolerance"].items()}
    return Stored(sections, section_arrays(container, CONTROL), tolerance, document["seed"], document["versions"])


def restore(module: Any, stored: Stored, section: str, forward: Forward) -> None:
    """Put one section into a module, in place; the others stay as they are.

    The control forward is run on a copy of the module with all sections of the file in it, since an output depends on
    statistics and keys too. Only when it agrees is anything of `module` touched.

    Args:
        module: of the same structure.
        stored: from `load_state`.
        section: ``params``, ``batch_stats`` or ``rng``.
        forward: the same function as when the file was made.

    Raises:
        ValueError: there is no such section in any file.
        WeightsRefused: the file has no such section, or the module other leaves, or the outputs differ.
    """
    if section not in FILTERS:
        raise ValueError(fill(NO_SUCH_SECTION, section=section, names=", ".join(FILTERS)))
    _present(stored, section)
    ours = sections_of(module)
    copy = nnx.clone(module)
    for name in FILTERS:
        if name in stored.sections or name in ours:
            check_fits(name, stored.sections.get(name), ours.get(name))
            put(copy, name, stored.sections[name])
    _check_control(stored, _outputs(forward, copy))
    put(module, section, stored.sections[section])


def restore_optimizer[T](optimizer: T, stored: Stored) -> T:
    """The optimizer with the file's state: an `nnx.Optimizer` is changed in place, of an optax state comes a new one.

    Raises:
        WeightsRefused: the file has none, or one of another structure.
    """
    _present(stored, OPTIMIZER)
    return put_optimizer(optimizer, stored.sections[OPTIMIZER])


def put_optimizer[T](optimizer: T, section: Section) -> T:
    """As `restore_optimizer`, from a section."""
    named = _optimizer_leaves(optimizer)
    check_fits(OPTIMIZER, section, _section(named))
    if isinstance(optimizer, nnx.Optimizer):
        flat = nnx.to_flat_state(nnx.state(optimizer))
        new = [(path, v.replace(_value(section, ".".join(map(str, path))))) for path, v in flat]
        nnx.update(optimizer, nnx.from_flat_state(new))
        return optimizer
    tree = tree_util.tree_structure(optimizer)
    restored: T = tree_util.tree_unflatten(tree, [_value(section, path) for path in named])
    return restored


def _present(stored: Stored, section: str) -> None:
    if section not in stored.sections:
        names = ", ".join(name for name in SECTIONS if name in stored.sections)
        raise WeightsRefused(Stage.SCHEMA, NO_SECTION, section=section, names=names)


def check_fits(name: str, got: Section | None, want: Section | None) -> None:
    """Paths, shapes, dtypes and types of Variable are the module's own.

    Raises:
        WeightsRefused: at `Stage.LEAVES`, with the first leaf that is not.
    """
    theirs, ours = (_types(section) for section in (got, want))
    for path, text in ours.items():
        if path not in theirs:
            raise WeightsRefused(Stage.LEAVES, MISSING, f"{name}/{path}", want=text)
        if theirs[path] != text:
            raise WeightsRefused(Stage.LEAVES, OTHER_TYPE, f"{name}/{path}", got=short(theirs[path]), want=text)
    for path in theirs:
        if path not in ours:
            raise WeightsRefused(Stage.LEAVES, NOT_OURS, short(f"{name}/{path}"))


def _types(section: Section | None) -> dict[str, str]:
    if section is None:
        return {}
    return {path: f"{section.variables[path]} {typed(a.dtype.name, a.shape)}" for path, a in section.leaves.items()}


def put(module: Any, name: str, section: Section) -> None:
    """A section that fits into a module, in place, unchecked."""
    flat = nnx.to_flat_state(nnx.state(module, FILTERS[name]))
    new = [(path, variable.replace(_value(section, ".".join(map(str, path))))) for path, variable in flat]
    nnx.update(module, nnx.from_flat_state(new))


def _value(section: Section, path: str) -> Any:
    """The leaf on the device, a key as a key again."""
    _, _, implementation = section.variables[path].partition(" ")
    data = jax.device_put(section.leaves[path])
    return jax.random.wrap_key_data(data, impl=implementation) if implementation else data


def _check_control(stored: Stored, outputs: Mapping[str, Array]) -> None:
    if set(outputs) != set(stored.control):
        raise WeightsRefused(Stage.CONTROL, OUTPUT_TREE, got=len(outputs), want=len(stored.control))
    check_outputs(stored, outputs)


def check_outputs(stored: Stored, outputs: Mapping[str, Array]) -> float:
    """Outputs of the control forward are those of the file, within its tolerance for this backend.

    Returns:
        the largest difference.

    Raises:
        WeightsRefused: at `Stage.CONTROL`: they are not, the file has none such, or it allows more than is accepted.
    """
    here = control.backend()
    tolerance = stored.tolerance[here]
    control.check_width(tolerance, here)
    largest = 0.0
    for path, got in outputs.items():
        if path not in stored.control:
            raise WeightsRefused(Stage.CONTROL, NO_OUTPUT, path)
        # Whole numbers (keys) are equal or they are not.
        apart = difference(got, stored.control[path], EXACT if got.dtype.kind in "biu" else tolerance)
        if not apart.within:
            raise WeightsRefused(
                Stage.CONTROL, APART, path, largest=f"{apart.largest:.3g}", tolerance=tolerance.text, backend=here
            )
        largest = max(largest, apart.largest)
    return largest
