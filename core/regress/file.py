"""A baseline as one safetensors file: arrays, and in its metadata JSON by our schema. Nothing in it can run.

Each distinct array stands in the file once, whatever leaves it belongs to, and has its SHA-256; so has the JSON itself,
the tolerance in it included. A hash finds what was damaged or changed by halves; it says nothing of who made the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from core.base.limits import LIMITS
from core.base.parting import Stage
from core.base.text import fill
from core.inputs.fields import Value
from core.regress.baseline import Baseline, Flat, Kept
from core.regress.case import Became, CaseName, Rows, TooLargeError
from core.regress.schema import FORMAT, SCHEMA, VERSION
from core.regress.state import BadLinkError, complete, page_state
from core.weights.cell import CellWeights, cell_file
from core.weights.container import parse_json, read, short, write
from core.weights.document import digest
from core.weights.load import load_cell
from core.weights.refusal import WeightsRefused
from core.weights.strict import unprintable, validator

type Array = np.ndarray[Any, Any]
type Json = dict[str, Any]

#: The name under which the JSON stands in the metadata.
NAME: Final = "carry_lab_baseline"
SUFFIX: Final = ".safetensors"
#: What begins a file that is something else: pickles, zip archives (PyTorch's .pt, NumPy's .npz) and other packed files.
_PICKLES: Final = tuple(bytes((0x80, protocol)) for protocol in range(2, 6))
_PACKED: Final = (
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"PK\x07\x08",
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7zXZ",
    b"\x28\xb5\x2f\xfd",
    b"7z\xbc\xaf",
)

A_PICKLE = "This is a pickle, whatever its name says. Opening one runs what is in it, so it is never opened here."
PACKED = "This is an archive or a compressed file, and nothing is unpacked here. Give the .safetensors file itself."
NO_BASELINE = "This is a safetensors file, but no baseline: its metadata has no “{name}”."
OTHER_FORMAT = "The file says that its format is “{got}”; a baseline is “{want}”."
OTHER_VERSION = "This baseline is of format version {got}, and version {want} is read here. Record it anew, or check it with the Carry Lab that made it."
NOT_BY_SCHEMA = "This baseline is not as its schema says, at {place}: {reason}."
UNPRINTABLE = "What this baseline says has a letter that cannot be shown, at {place}."
CHANGED = "What the file says was changed after it was recorded: its SHA-256 is {got}…, and it says {want}…."
ARRAY_CHANGED = "{leaf} was changed after it was recorded: its SHA-256 is {got}…, and the file says {want}…."
NOT_ALL = "The file has no case “{name}”, and does not say that its state has no input for it."
BOTH = "The file has the case “{name}”, and says that it was left out."
MISSING = "{leaf} is named in the file, and its numbers are not in it."
LEFT_OVER = "The file holds numbers that belong to no leaf: tensor {name}."
TWICE = "The case “{name}” stands in the file twice."
NO_STANDARD = "The file has no case “{name}”."
BAD_STATE = "The file does not say a state of the page: {reason}."
WEIGHTS = "the file of parameters in it"
BAD_WEIGHTS = "The parameters in this baseline are refused: {reason}"
OTHER_WEIGHTS = "The parameters in this baseline are not those that its settings name."
NO_JSON = "what it says is no JSON of an object"
TOO_LARGE = (
    "This baseline would have {size:,} bytes, more than {limit:,}. Take smaller sizes: fewer steps, examples or units."
)
NOT_KEPT = "A baseline of this state cannot be kept in a file that is read back: {reason}"
TOP = "its top"


class UnreadableError(ValueError):
    """A file that is no baseline which can be checked here; the message is for a reader."""


# --- writing --------------------------------------------------------------------------------------------------------


def to_bytes(baseline: Baseline) -> bytes:
    """The file.

    Raises:
        TooLargeError: it would be larger than what is read back.
    """
    arrays = _Arrays()
    document: Json = {
        "format": FORMAT,
        "version": VERSION,
        "page": baseline.page,
        "values": dict(baseline.values),
        "data": {"own": baseline.own, "seed": baseline.seed, "replaced": list(baseline.replaced)},
        "versions": dict(baseline.versions),
        "backend": baseline.backend,
        "tolerance": {
            backend: {dtype: list(pair) for dtype, pair in table.items()}
            for backend, table in baseline.tolerance.items()
        },
        "reason": baseline.reason,
        "cases": [_case(case, baseline.values, arrays) for case in baseline.cases],
        "left_out": [str(name) for name in baseline.left_out],
    }
    of_file = None if baseline.weights is None else np.frombuffer(cell_file(baseline.weights), np.uint8)
    document["weights"] = None if of_file is None else arrays.name(of_file)
    document["tensors"] = arrays.hashes
    text = _canonical({**document, "sha256": _seal(document)})
    data = write(arrays.by_name, {NAME: text})
    limit = LIMITS["baseline_bytes"].value
    if len(data) > limit:
        raise TooLargeError(fill(TOO_LARGE, size=len(data), limit=limit))
    try:
        from_bytes(data)  # whatever a reader would refuse is refused here, where it can still be helped
    except UnreadableError as error:
        raise TooLargeError(fill(NOT_KEPT, reason=error)) from None
    return data


class _Arrays:
    """The distinct arrays of a file, by their names in it."""

    def __init__(self) -> None:
        self.by_name: dict[str, Array] = {}
        self.hashes: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def name(self, array: Array) -> str:
        """The name of an array; the same for one with the same numbers, shape and dtype."""
        found = hash_of(array)
        if found not in self._names:
            name = self._names[found] = str(len(self._names))
            self.by_name[name], self.hashes[name] = array, found
        return self._names[found]


def hash_of(array: Array) -> str:
    """SHA-256 over dtype, shape and bytes."""
    return digest({"": array})


def _case(case: Kept, base: Mapping[str, Value], arrays: _Arrays) -> Json:
    return {
        "name": str(case.name),
        "words": case.words,
        "edit": {name: v for name, v in case.values.items() if name not in base or base[name] != v},
        "became": str(case.became),
        "why": list(case.why),
        "stages": {
            str(stage): {root: _tree(case.stages[stage][root], arrays) for root in sorted(case.stages[stage])}
            for stage in Stage
            if stage in case.stages
        },
        "rows": {root: str(rows) for root, rows in case.rows.items()},
        "backwards": case.backwards,
        "computed": sorted(case.computed),
        "loss": case.loss,
    }


def _tree(tree: Flat, arrays: _Arrays) -> Json:
    rows = [[path, {"word": leaf} if isinstance(leaf, str) else arrays.name(leaf)] for path, leaf in tree.leaves]
    return {"tree": tree.structure, "leaves": rows}


def _canonical(document: Json) -> str:
    return json.dumps(document, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def _seal(document: Json) -> str:
    rest = {name: value for name, value in document.items() if name != "sha256"}
    return hashlib.sha256(_canonical(rest).encode()).hexdigest()


# --- reading --------------------------------------------------------------------------------------------------------

_VALIDATOR: Final = validator(SCHEMA)
#: Where numbers stand that somebody typed.
_TYPED: Final = frozenset({"values", "edit"})


def from_bytes(data: bytes) -> Baseline:
    """The baseline in a file. Nothing is changed by it.

    Raises:
        UnreadableError: it is none that can be checked here: another kind of file, cut short, too large, of another
            version, not by the schema, or changed after it was recorded.
    """
    if data.startswith(_PICKLES):
        raise UnreadableError(fill(A_PICKLE))
    if data.startswith(_PACKED):
        raise UnreadableError(fill(PACKED))
    try:
        container = read(data, "baseline_bytes", "baseline_header")
        if NAME not in container.metadata:
            raise UnreadableError(fill(NO_BASELINE, name=NAME))
        document = parse_json(container.metadata[NAME])
    except WeightsRefused as error:
        raise UnreadableError(str(error)) from None
    _check(document)
    return _baseline(document, container.tensors)


def _check(document: Any) -> None:
    """Format, version, schema, and the hash over all of it: the version first, whose schema is its own."""
    if not isinstance(document, dict):
        raise UnreadableError(fill(NOT_BY_SCHEMA, place=TOP, reason=fill(NO_JSON)))
    got, version = document.get("format"), document.get("version")
    if got != FORMAT:
        raise UnreadableError(fill(OTHER_FORMAT, got=short(str(got)), want=FORMAT))
    if version != VERSION or isinstance(version, bool):
        raise UnreadableError(fill(OTHER_VERSION, got=short(str(version)), want=VERSION))
    error = next(iter(_VALIDATOR.iter_errors(document)), None)
    if error is not None:
        place = short(".".join(map(str, error.absolute_path))) or fill(TOP)
        raise UnreadableError(fill(NOT_BY_SCHEMA, place=place, reason=short(error.message)))
    where = unprintable(document, _TYPED)
    if where is not None:
        raise UnreadableError(fill(UNPRINTABLE, place=short(where)))
    sealed = _seal(document)
    if sealed != document["sha256"]:
        raise UnreadableError(fill(CHANGED, got=sealed[:8], want=document["sha256"][:8]))


def _baseline(document: Json, tensors: Mapping[str, Array]) -> Baseline:
    page = page_state(document["page"])
    try:
        values = complete(page, document["values"])
        cases = [
            _read_case(sent, complete(page, {**values, **sent["edit"]}), document["tensors"], tensors)
            for sent in document["cases"]
        ]
    except BadLinkError as error:
        raise UnreadableError(fill(BAD_STATE, reason=error)) from None
    names = [case.name for case in cases]
    for one in names:
        if names.count(one) > 1:
            raise UnreadableError(fill(TWICE, name=one))
    if CaseName.STANDARD not in names:
        raise UnreadableError(fill(NO_STANDARD, name=CaseName.STANDARD))
    _all_there(names, document["left_out"])
    for name in tensors:
        if name not in document["tensors"]:
            raise UnreadableError(fill(LEFT_OVER, name=short(name)))
    weights = _weights(document["weights"], document["tensors"], tensors)
    if values.get("weights", "") != ("" if weights is None else weights.in_link):
        raise UnreadableError(fill(OTHER_WEIGHTS))
    given = document["data"]
    return Baseline(
        page=document["page"],
        values=values,
        cases=tuple(cases),
        versions=document["versions"],
        backend=document["backend"],
        tolerance={
            backend: {dtype: (float(pair[0]), float(pair[1])) for dtype, pair in table.items()}
            for backend, table in document["tolerance"].items()
        },
        left_out=tuple(map(CaseName, document["left_out"])),
        seed=given["seed"],
        replaced=tuple(given["replaced"]),
        own=given["own"],
        reason=document["reason"],
        weights=weights,
    )


def _all_there(names: list[CaseName], left_out: list[str]) -> None:
    """Every case of the small set is in the file, or the file says that its state has no input for it.

    Raises:
        UnreadableError: one is missing: a check without it would look like a whole one.
    """
    for name in CaseName:
        if (name in names) == (name in left_out):
            raise UnreadableError(fill(BOTH if name in names else NOT_ALL, name=name))


def _weights(name: str | None, hashes: Mapping[str, str], tensors: Mapping[str, Array]) -> CellWeights | None:
    """The parameters in the file, after every check that a file of parameters has to pass."""
    if name is None:
        return None
    array = _array(fill(WEIGHTS), name, hashes, tensors)
    try:
        return load_cell(array.tobytes())
    except WeightsRefused as error:
        raise UnreadableError(fill(BAD_WEIGHTS, reason=error)) from None


def _array(where: str, name: str, hashes: Mapping[str, str], tensors: Mapping[str, Array]) -> Array:
    """An array of the file, by its name there, after its hash was checked."""
    if name not in tensors or name not in hashes:
        raise UnreadableError(fill(MISSING, leaf=short(where)))
    got = hash_of(tensors[name])
    if got != hashes[name]:
        raise UnreadableError(fill(ARRAY_CHANGED, leaf=short(where), got=got[:8], want=hashes[name][:8]))
    return tensors[name]


def _read_case(
    sent: Json, values: Mapping[str, Value], hashes: Mapping[str, str], tensors: Mapping[str, Array]
) -> Kept:
    def leaf(path: str, named: Any) -> tuple[str, Array | str]:
        if isinstance(named, dict):
            return path, str(named["word"])
        return path, _array(f"{sent['name']}: {path}", named, hashes, tensors)

    stages = {
        Stage(stage): {
            root: Flat(tree["tree"], tuple(leaf(*pair) for pair in tree["leaves"])) for root, tree in trees.items()
        }
        for stage, trees in sent["stages"].items()
    }
    return Kept(
        CaseName(sent["name"]),
        sent["words"],
        values,
        Became(sent["became"]),
        tuple(sent["why"]),
        stages,
        {root: Rows(rows) for root, rows in sent["rows"].items()},
        sent["backwards"],
        frozenset(sent["computed"]),
        sent["loss"],
    )
