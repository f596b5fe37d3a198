"""Every number that limits anything, in one table. Each can be set by an environment variable of the process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limit:
    """One budget: its value, its unit, and why it is that number. Overridden by ``CARRY_LAB_<NAME>``."""

    name: str
    value: int
    unit: str
    why: str

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return f"CARRY_LAB_{self.name.upper()}"


_TABLE = (
    Limit("length", 512, "steps", "T on a page: the plot stays readable and a Python loop stays quick"),
    Limit("hidden", 256, "units", "hidden_features of a cell"),
    Limit("batch", 64, "examples", "B of a cell or a sequence"),
    Limit("features", 128, "features", "F of an input"),
    Limit("elements", 262_144, "elements", "in any one array: init, xs, ys, the carry over time"),
    Limit("typed_numbers", 20_000, "numbers", "typed or pasted into one input"),
    Limit("typed_text", 1_000_000, "characters", "read from one paste before its numbers are counted"),
    Limit("programs", 32, "programs", "compiled and kept; FACTS: unbounded, a process dies of its memory maps"),
    Limit("eager_programs", 5_000, "programs", "of operations run without jit, before JAX's own caches are dropped"),
    Limit(
        "unroll", 32, "steps", "copies of the step in one program: 16 compile in 0.3 s, 128 in 3 to 8, 512 in a minute"
    ),
    Limit("check_steps", 64, "steps", "of the Python loop beside the result unless all are asked for"),
    Limit("kept", 16_777_216, "elements", "of the carries over time of a script's scans, kept to be drawn"),
    Limit("work", 4_000_000_000, "numbers", "computed by one scan in a script: some seconds on one core"),
    Limit("url_text", 8_192, "characters", "of state in a link"),
)


def read_limits(environ: Mapping[str, str]) -> dict[str, Limit]:
    """The table with the overrides of an environment put in.

    Raises:
        ValueError: an override is not a positive whole number; the message names the variable, not its value.
    """
    out = {}
    for limit in _TABLE:
        key = limit.variable
        if key in environ:
            text = environ[key].strip()
            if not text.isdecimal() or int(text) == 0:
                raise ValueError(f"{key} must be a positive whole number")
            limit = Limit(limit.name, int(text), limit.unit, limit.why)
        out[limit.name] = limit
    return out


LIMITS: Mapping[str, Limit] = read_limits(os.environ)
