"""What the step language does not run (X603): found before a script runs (`Refusal`) or while it runs (`NotHere`)."""

from __future__ import annotations

from dataclasses import dataclass

from core.base.places import Span


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something in the text of a script that is not run: where, and what to write instead."""

    span: Span
    text: str


class NotHere(Exception):
    """A refusal while a script runs; its text is a whole sentence for the reader. Also of a built-in type, below.

    A script that guards itself (``hasattr``, ``except ImportError``) sees what it would see where the thing is missing.
    """

    @property
    def text(self) -> str:
        """The sentence."""
        return str(self.args[0]) if self.args else ""


class RefusedAttribute(NotHere, AttributeError):
    """An attribute that exists and is not offered, or an object that may not be changed."""


class RefusedName(NotHere, NameError):
    """A built-in that is not offered."""


class RefusedUse(NotHere, TypeError):
    """A call that is not offered in this form."""


class RefusedImport(NotHere, ImportError):
    """A module, or a name of a module, that is not here. `module` is what was asked for (a stand-in may be offered)."""

    def __init__(self, text: str, module: str) -> None:
        super().__init__(text)
        self.module = module

    __str__ = NotHere.__str__
