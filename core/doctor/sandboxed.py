"""The sandbox's step language as a `Prepare`: scripts that nobody trusts, run under our recorders.

The language alone is no wall. The command line runs a person's own file; the pages run this inside a worker, behind
the kernel's walls (`core.sandbox.walls`).
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any

from core.base.places import Span
from core.contract.source import Source
from core.doctor.instrument import Hooks, Program, Refused
from core.sandbox.facade import environment
from core.sandbox.guards import Guards
from core.sandbox.output import Output
from core.sandbox.policy import Compiled, compile_script


class Sandboxed:
    """A compiled script with its guarded names."""

    def __init__(self, compiled: Compiled, hooks: Hooks) -> None:
        self._guards = Guards()
        self.spans: tuple[Span, ...] = compiled.spans
        self.statements: tuple[CodeType, ...] = compiled.statements
        self.names: dict[str, Any] = environment(
            self._guards,
            out=_Printed(hooks.write),
            record=_Watched(hooks),
            probe=hooks.probe,
            values=not hooks.abstract,
        )

    def close(self) -> None:
        """Take back what the script registered with libraries."""
        self._guards.close()


def sandboxed(source: Source, hooks: Hooks) -> Program:
    """The program of a script in the step language.

    Raises:
        Refused: something in it is not run here.
        SyntaxError: it does not parse.
    """
    compiled = compile_script(source.text)
    if not isinstance(compiled, Compiled):
        raise Refused(tuple((refusal.span, refusal.text) for refusal in compiled))
    return Sandboxed(compiled, hooks)


class _Watched:
    """The facade's recorder: hands watched functions to our hooks."""

    def __init__(self, hooks: Hooks) -> None:
        self._replace = dict(hooks.replace)
        self.watched = frozenset(self._replace)

    def call(self, name: str, function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """The replacement's call."""
        return self._replace[name](*args, **keywords)


class _Printed(Output):
    """What a script prints goes to the recorder's output, which may be mute and has a limit of its own."""

    def __init__(self, write: Callable[[str], Any]) -> None:
        super().__init__()
        self._write_on = write

    def write(self, text: str) -> None:
        """Hand it on."""
        self._write_on(text)
