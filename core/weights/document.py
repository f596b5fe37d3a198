"""What the metadata of our files say, its schema, and the hashes: over each section's arrays, and over the text itself.

    {"format": "carry-lab-weights", "version": 1, "versions": {…}, "seed": 0, "architecture": {…},
     "sections": {"params": {"sha256": "…", "leaves": {"cell.ii.kernel": {"shape": [3, 4], "dtype": "float32",
     "variable": "Param"}}}}, "control": {…}, "sha256": "…"}

The arrays of a section stand in the file under ``<section>/<path>``. A hash finds what was damaged or changed by halves;
it says nothing of who made the file.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any, Final

import jsonschema  # type: ignore[import-untyped]
import numpy as np

from core.base.text import fill
from core.weights.container import Container, parse_json, short
from core.weights.refusal import Stage, WeightsRefused
from core.weights.strict import unprintable, validator

type Array = np.ndarray[Any, Any]
type Document = dict[str, Any]

#: The name under which the document stands in the file's metadata.
NAME: Final = "carry_lab_weights"
FORMAT: Final = "carry-lab-weights"
#: Raised whenever a reader of before would read it wrong.
VERSION: Final = 1
PARAMS, BATCH_STATS, RNG, OPTIMIZER, CONTROL = "params", "batch_stats", "rng", "optimizer", "control"
SECTIONS: Final = (PARAMS, BATCH_STATS, RNG, OPTIMIZER)
#: Whose versions a file names.
PACKAGES: Final = ("jax", "jaxlib", "flax", "numpy", "safetensors")

UNVERIFIED = (
    "Unverified: this safetensors file has no description by Carry Lab (“{name}” in its metadata), so nothing says what "
    "its parameters should compute. Its tensors: {names}."
)
NO_TENSORS = "none"
NO_DOCUMENT = "The file's description is no object of names."
OTHER_FORMAT = "The file's description says format “{got}”; this is “{want}”."
OTHER_VERSION = "The file is of format version {got}; version {want} is read here."
UNPRINTABLE = "The file's description has a letter that cannot be shown, at {place}."
NOT_BY_SCHEMA = "The file's description is not as its schema says, at {place}: {reason}."
TOP = "its top"
WRONG_TYPE, MISSING, NOT_ONE_OF = "{got} is no {want}", "{names} is missing", "{got} is none of {want}"
UNKNOWN, NOT_MATCHED, OUT_OF_BOUNDS = "{names} is not known", "{got} has another form", "{got} is outside {want}"
OTHERWISE = "{got} is not what stands there"
DOCUMENT_HASH = "The file's description was changed: its SHA-256 begins with {got}, and it says {want}."
SECTION_HASH = "The arrays of “{leaf}” were changed: their SHA-256 begins with {got}, and the file says {want}."
NOT_HERE = "{leaf} is in the file's description, and not in the file."
NOT_NAMED = "{leaf} is in the file, and not in its description."
OTHER_TYPE = "{leaf} is {got} in the file, and {want} in its description."
NOT_FINITE = "{leaf} has {count} of {size} numbers that are not finite, the first at {at}: {value}."

_HASH: Final[Document] = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_COUNT: Final[Document] = {"type": "integer", "minimum": 0, "maximum": 2**48}
_LEAVES: Final[Document] = {
    "type": "object",
    "propertyNames": {"minLength": 1, "maxLength": 200},
    "additionalProperties": {
        "type": "object",
        "required": ["shape", "dtype", "variable"],
        "additionalProperties": False,
        "properties": {
            "shape": {"type": "array", "maxItems": 8, "items": _COUNT},
            "dtype": {"type": "string", "maxLength": 40},
            "variable": {"type": "string", "maxLength": 80},
        },
    },
}
_SECTION: Final[Document] = {
    "type": "object",
    "required": ["sha256", "leaves"],
    "additionalProperties": False,
    "properties": {"sha256": _HASH, "leaves": _LEAVES},
}
_TOLERANCE: Final[Document] = {
    "type": "object",
    "required": ["rtol", "atol"],
    "additionalProperties": False,
    "properties": {name: {"type": "number", "minimum": 0, "maximum": 0.1} for name in ("rtol", "atol")},
}
#: JSON Schema of the document, draft 2020-12.
SCHEMA: Final[Document] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Carry Lab weights",
    "type": "object",
    "required": ["format", "version", "versions", "seed", "architecture", "sections", "control", "sha256"],
    "additionalProperties": False,
    "properties": {
        "format": {"const": FORMAT},
        "version": {"const": VERSION},
        "versions": {
            "type": "object",
            "required": ["python", *PACKAGES],
            "additionalProperties": {"type": "string", "maxLength": 60},
        },
        "seed": {"type": ["integer", "null"], "minimum": 0, "maximum": 2**63 - 1},
        "architecture": {
            "type": ["object", "null"],
            "required": ["cell", "in_features", "hidden_features", "cells", "param_dtype"],
            "additionalProperties": False,
            "properties": {
                "cell": {"type": "string", "maxLength": 60},
                "in_features": {"type": "integer", "minimum": 1, "maximum": 2**31},
                "hidden_features": {"type": "integer", "minimum": 1, "maximum": 2**31},
                "cells": {"enum": [["cell"], ["forward", "backward"]]},
                "param_dtype": {"enum": ["float32", "bfloat16", "float16"]},
            },
        },
        "sections": {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": False,
            "properties": dict.fromkeys(SECTIONS, _SECTION),
        },
        "control": {
            "type": ["object", "null"],
            "required": ["seed", "backend", "tolerance", "sha256", "leaves"],
            "additionalProperties": False,
            "properties": {
                "seed": {"type": ["integer", "null"], "minimum": 0, "maximum": 2**63 - 1},
                "backend": {"enum": ["cpu", "gpu", "tpu"]},
                "tolerance": {
                    "type": "object",
                    "required": ["cpu", "gpu", "tpu"],
                    "additionalProperties": False,
                    "properties": dict.fromkeys(("cpu", "gpu", "tpu"), _TOLERANCE),
                },
                "sha256": _HASH,
                "leaves": _LEAVES,
            },
        },
        "sha256": _HASH,
    },
}
_validator: Final = validator(SCHEMA)


# --- making one -----------------------------------------------------------------------------------------------------


def versions() -> dict[str, str]:
    """Of Python and of the packages that made what is in a file."""
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}


def digest(tensors: Mapping[str, Array]) -> str:
    """SHA-256 over arrays: name, dtype, shape and bytes (little-endian) of each, by name."""
    sha = hashlib.sha256()
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        head = json.dumps([name, array.dtype.name, list(tensors[name].shape)], ensure_ascii=True)
        sha.update(len(head).to_bytes(8, "little") + head.encode() + array.tobytes())
    return sha.hexdigest()


def leaves_of(tensors: Mapping[str, Array], variables: Mapping[str, str]) -> Document:
    """Shape, dtype and type of Variable of each array."""
    return {
        path: {"shape": list(array.shape), "dtype": array.dtype.name, "variable": variables.get(path, "array")}
        for path, array in tensors.items()
    }


def sealed(document: Document) -> str:
    """The document as text, with its own hash."""
    return json.dumps({**document, "sha256": _own_hash(document)}, sort_keys=True, ensure_ascii=True)


def _own_hash(document: Document) -> str:
    rest = {name: value for name, value in document.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


# --- reading one ----------------------------------------------------------------------------------------------------


def document_of(container: Container) -> Document:
    """The document of a file, as its schema wants it. Its own hash is `check_hashes`' business.

    Raises:
        WeightsRefused: there is none, it is of another version, or not by the schema.
    """
    text = container.metadata.get(NAME)
    if text is None:
        names = ", ".join(short(name) for name in list(container.tensors)[:8]) or NO_TENSORS
        raise WeightsRefused(Stage.SCHEMA, UNVERIFIED, name=NAME, names=names)
    document = parse_json(text)
    if not isinstance(document, dict):
        raise WeightsRefused(Stage.SCHEMA, NO_DOCUMENT)
    if document.get("format") != FORMAT:
        raise WeightsRefused(Stage.SCHEMA, OTHER_FORMAT, got=short(str(document.get("format"))), want=FORMAT)
    if document.get("version") != VERSION:
        raise WeightsRefused(Stage.SCHEMA, OTHER_VERSION, got=short(str(document.get("version"))), want=VERSION)
    error = jsonschema.exceptions.best_match(_validator.iter_errors(document))
    if error is not None:
        place = short(".".join(map(str, error.absolute_path))) or TOP
        raise WeightsRefused(Stage.SCHEMA, NOT_BY_SCHEMA, place=place, reason=_reason(error))
    where = unprintable(document)
    if where is not None:
        raise WeightsRefused(Stage.SCHEMA, UNPRINTABLE, place=short(where))
    return document


def _reason(error: jsonschema.exceptions.ValidationError) -> str:
    got, want = short(json.dumps(error.instance)), short(json.dumps(error.validator_value))
    match error.validator:
        case "type":
            return fill(WRONG_TYPE, got=got, want=want)
        case "required":
            names = [name for name in error.validator_value if name not in error.instance]
            return fill(MISSING, names=", ".join(names))
        case "enum" | "const":
            return fill(NOT_ONE_OF, got=got, want=want)
        case "additionalProperties":
            known = error.schema.get("properties", {})
            names = [short(name) for name in error.instance if name not in known]
            return fill(UNKNOWN, names=", ".join(names[:4]))
        case "pattern":
            return fill(NOT_MATCHED, got=got)
        case "minimum" | "maximum":
            return fill(OUT_OF_BOUNDS, got=got, want=want)
        case _:
            return fill(OTHERWISE, got=got)


def section_arrays(container: Container, name: str) -> dict[str, Array]:
    """The arrays of a section (or of the control) by path."""
    start = f"{name}/"
    return {tensor.removeprefix(start): a for tensor, a in container.tensors.items() if tensor.startswith(start)}


def parts_of(document: Document) -> dict[str, Document]:
    """The sections, and the control where there is one, by the name under which their arrays stand."""
    control = {} if document["control"] is None else {CONTROL: document["control"]}
    return {**document["sections"], **control}


def check_leaves(container: Container, document: Document) -> None:
    """Each array of the file is in its description with this shape and dtype, and the other way round.

    Raises:
        WeightsRefused: at `Stage.LEAVES`.
    """
    named = {
        f"{part}/{path}": leaf
        for part, section in parts_of(document).items()
        for path, leaf in section["leaves"].items()
    }
    for tensor, leaf in named.items():
        array = container.tensors.get(tensor)
        if array is None:
            raise WeightsRefused(Stage.LEAVES, NOT_HERE, short(tensor))
        got, want = typed(array.dtype.name, array.shape), typed(leaf["dtype"], leaf["shape"])
        if got != want:
            raise WeightsRefused(Stage.LEAVES, OTHER_TYPE, short(tensor), got=got, want=want)
    for tensor in container.tensors:
        if tensor not in named:
            raise WeightsRefused(Stage.LEAVES, NOT_NAMED, short(tensor))


def check_finite(tensors: Mapping[str, Array], within: Iterable[str] | None = None) -> None:
    """Every floating-point number is finite.

    Args:
        tensors: by name.
        within: beginnings of the names that count; None for all.

    Raises:
        WeightsRefused: at `Stage.FINITE`.
    """
    for name, array in tensors.items():
        if within is not None and not name.startswith(tuple(within)):
            continue
        if array.dtype.kind in "biu":
            continue
        with np.errstate(invalid="ignore"):  # a signalling NaN is one of the numbers that are looked for
            bad = ~np.isfinite(array.astype(np.float64))
        if bad.any():
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            raise WeightsRefused(
                Stage.FINITE,
                NOT_FINITE,
                short(name),
                count=int(bad.sum()),
                size=array.size,
                at=list(at),
                value=float(array[at]),
            )


def check_hashes(container: Container, document: Document) -> None:
    """The arrays of each section, and the description itself, are what was saved.

    Raises:
        WeightsRefused: at `Stage.HASH`.
    """
    for name in parts_of(document):
        check_hash(container, document, name)
    check_seal(document)


def check_hash(container: Container, document: Document, name: str) -> None:
    """The arrays of one section, or of the control, are what was saved.

    Raises:
        WeightsRefused: at `Stage.HASH`.
    """
    got, want = digest(section_arrays(container, name)), parts_of(document)[name]["sha256"]
    if got != want:
        raise WeightsRefused(Stage.HASH, SECTION_HASH, name, got=got[:8], want=want[:8])


def check_seal(document: Document) -> None:
    """The description itself is what was saved.

    Raises:
        WeightsRefused: at `Stage.HASH`.
    """
    got = _own_hash(document)
    if got != document["sha256"]:
        raise WeightsRefused(Stage.HASH, DOCUMENT_HASH, got=got[:8], want=document["sha256"][:8])


def typed(dtype: str, shape: Iterable[int]) -> str:
    """``float32[3,4]``."""
    return f"{dtype}[{','.join(map(str, shape))}]"
