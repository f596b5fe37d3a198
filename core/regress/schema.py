"""The JSON Schema (draft 2020-12) of what a baseline file says in its metadata. Published as `python -m core.regress schema`."""

from __future__ import annotations

from typing import Any, Final

from core.base.limits import LIMITS
from core.base.parting import Stage
from core.regress.case import Became, CaseName, Rows
from core.regress.state import PAGES

FORMAT: Final = "carry-lab-baseline"
#: Raised whenever a reader of before would read it wrong.
VERSION: Final = 1
#: Characters of a text, of a typed input, and of a path.
_TEXT, _TYPED, _PATH = 400, LIMITS["baseline_text"].value, 400
#: Entries of a list or an object.
_MANY: Final = LIMITS["baseline_items"].value

type Json = dict[str, Any]

_HASH: Final[Json] = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_NAME: Final[Json] = {"type": "string", "pattern": "^[0-9]{1,6}$"}
_SHORT: Final[Json] = {"type": "string", "maxLength": _TEXT}
_VALUES: Final[Json] = {
    "type": "object",
    "maxProperties": 100,
    "additionalProperties": {
        "anyOf": [
            {"type": "string", "maxLength": _TYPED},
            {"type": "integer", "minimum": -(10**12), "maximum": 10**12},
            {"type": "number"},
            {"type": "boolean"},
        ]
    },
}
_WORDS: Final[Json] = {"type": "array", "maxItems": 100, "items": _SHORT}
_TOLERANCE: Final[Json] = {
    "type": "object",
    "maxProperties": 20,
    "additionalProperties": {
        "type": "array",
        "minItems": 2,
        "maxItems": 2,
        "items": {"type": "number", "minimum": 0, "maximum": 0.1},
    },
}
#: A leaf: its path, and the name of its tensor or, where it is a word, ``{"word": …}``.
_LEAF: Final[Json] = {
    "type": "array",
    "minItems": 2,
    "maxItems": 2,
    "prefixItems": [
        {"type": "string", "maxLength": _PATH},
        {
            "anyOf": [
                _NAME,
                {
                    "type": "object",
                    "required": ["word"],
                    "additionalProperties": False,
                    "properties": {"word": {"type": "string", "maxLength": 4_000}},
                },
            ]
        },
    ],
}
_TREES: Final[Json] = {
    "type": "object",
    "maxProperties": 100,
    "propertyNames": {"maxLength": _PATH},
    "additionalProperties": {
        "type": "object",
        "required": ["tree", "leaves"],
        "additionalProperties": False,
        "properties": {
            "tree": {"type": "string", "maxLength": 20_000},
            "leaves": {"type": "array", "maxItems": _MANY, "items": _LEAF},
        },
    },
}
_CASE: Final[Json] = {
    "type": "object",
    "required": ["name", "words", "edit", "became", "why", "stages", "rows", "backwards", "computed", "loss"],
    "additionalProperties": False,
    "properties": {
        "name": {"enum": [str(name) for name in CaseName]},
        "words": _SHORT,
        "edit": _VALUES,
        "became": {"enum": [str(how) for how in Became]},
        "why": _WORDS,
        "stages": {
            "type": "object",
            "additionalProperties": False,
            "properties": dict.fromkeys(map(str, Stage), _TREES),
        },
        "rows": {
            "type": "object",
            "maxProperties": 100,
            "additionalProperties": {"enum": [str(rows) for rows in Rows]},
        },
        "backwards": {"type": "integer", "minimum": 0, "maximum": 10**6},
        "computed": _WORDS,
        "loss": _SHORT,
    },
}
SCHEMA: Final[Json] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Carry Lab baseline",
    "type": "object",
    "required": ["format", "version", "page", "values", "data", "versions", "backend", "tolerance", "reason",
                 "tensors", "weights", "cases", "left_out", "sha256"],
    "additionalProperties": False,
    "properties": {
        "format": {"const": FORMAT},
        "version": {"const": VERSION},
        "page": {"enum": list(PAGES)},
        "values": _VALUES,
        "data": {
            "type": "object",
            "required": ["own", "seed", "replaced"],
            "additionalProperties": False,
            "properties": {
                "own": {"type": "boolean"},
                "seed": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
                "replaced": _WORDS,
            },
        },
        "versions": {"type": "object", "maxProperties": 40, "additionalProperties": _SHORT},
        "backend": _SHORT,
        "tolerance": {"type": "object", "minProperties": 1, "maxProperties": 10, "additionalProperties": _TOLERANCE},
        "reason": _SHORT,
        "tensors": {
            "type": "object",
            "maxProperties": _MANY,
            "propertyNames": _NAME,
            "additionalProperties": _HASH,
        },
        # A whole file of parameters (`core.weights`), as the bytes of a tensor; null where the state uses none.
        "weights": {"anyOf": [_NAME, {"type": "null"}]},
        "cases": {"type": "array", "minItems": 1, "maxItems": len(CaseName), "items": _CASE},
        "left_out": {"type": "array", "maxItems": len(CaseName), "items": {"enum": [str(name) for name in CaseName]}},
        "sha256": _HASH,
    },
}  # fmt: skip
