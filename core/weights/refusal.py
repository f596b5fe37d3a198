"""Why a file of parameters is not taken: the check it failed at, the leaf, and a sentence with the numbers."""

from __future__ import annotations

import enum

from core.base.text import fill


class Stage(enum.StrEnum):
    """The checks, in the order in which they are made. Nothing of a file is used before all of them hold."""

    SIZE = "size"
    FORMAT = "file format"
    SCHEMA = "schema"
    LEAVES = "paths, shapes and dtypes"
    FINITE = "finite"
    HASH = "hash"
    CONTROL = "control forward"


class WeightsRefused(ValueError):  # a refusal is an answer, not a fault of ours
    """A file that is not taken.

    Attributes:
        stage: the check that it failed.
        leaf: the tensor at fault; "" where it is the file as a whole.
    """

    def __init__(self, stage: Stage, template: str, leaf: str = "", /, **fields: object) -> None:
        super().__init__(fill(template, leaf=leaf, **fields))
        self.stage = stage
        self.leaf = leaf
