"""Challenges run as a worker runs them, in this process: the step language, and JSON both ways, without the walls."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from core.challenges.challenge import Challenge
from core.challenges.loader import reviewed
from core.doctor import job
from core.doctor.grade_job import Graded, read


def run(request: dict[str, Any]) -> Graded:
    """What a script did."""
    sent = json.loads(json.dumps(request))
    return read(json.loads(json.dumps(job.handle(sent), allow_nan=False)))


@cache
def runs_of(challenge: Challenge) -> tuple[Graded, ...]:
    """What the programs of a challenge give."""
    return tuple(run(request) for request in challenge.requests())


def numbered(number: int) -> Challenge:
    """The reviewed challenge with this number."""
    return next(one for one in reviewed() if one.number == number)
