"""Runs a few lines in a job of their own."""

from __future__ import annotations

import textwrap
from typing import Any

from core.sandbox.facade import Recorder, environment
from core.sandbox.guards import Guards
from core.sandbox.output import Output
from core.sandbox.policy import Compiled, compile_script
from core.sandbox.probe import Probe
from core.sandbox.refusals import Refusal


def compiled(source: str) -> Compiled:
    """The compiled script; fails when it is refused."""
    result = compile_script(textwrap.dedent(source).strip("\n"))
    assert isinstance(result, Compiled), result
    return result


def refused(source: str) -> tuple[Refusal, ...]:
    """The refusals; fails when there are none."""
    result = compile_script(textwrap.dedent(source).strip("\n"))
    assert not isinstance(result, Compiled)
    return result


class Job:
    """A script that ran: its names, its output, its guards (open until `close`)."""

    def __init__(self, source: str, *, record: Recorder | None = None, values: bool = True) -> None:
        self.compiled = compiled(source)
        self.guards, self.out, self.probe = Guards(), Output(), Probe()
        self.names = environment(self.guards, out=self.out, record=record, probe=self.probe, values=values)

    def run(self) -> Job:
        for statement in self.compiled.statements:
            exec(statement, self.names)
        return self

    def close(self) -> None:
        self.guards.close()

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def run(source: str, **options: Any) -> dict[str, Any]:
    """The names that a script leaves."""
    with Job(source, **options) as job:
        return dict(job.run().names)
