"""What a teacher's link says around a page's inputs: controls that are hidden or locked, and presentation mode.

These settings belong to the class, not to a page: they stay while somebody walks from page to page, and stand in every
address, so that a reload keeps them. Like everything in a link they are a stranger's: bounded, and refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from core.base.text import fill
from core.inputs.class_panels import KEPT
from core.inputs.fields import REFUSED, shorten

HIDE, LOCK, PRESENT = "hide", "lock", "present"
#: No page may use these names for a field of its own.
NAMES: Final = (HIDE, LOCK, PRESENT)

LABELS: Final[Mapping[str, str]] = {HIDE: "Hidden controls", LOCK: "Locked controls", PRESENT: "Presentation mode"}
NO_KEY = "“{key}” is no key of a control, such as scan_length"
TOO_MANY = "it names {count} controls, more than {limit}"
NO_FLAG = "it must be 0 or 1"
#: Controls that one link may name, each for hiding and locking.
MOST: Final = 32
_KEY: Final = re.compile(r"[a-z]+_[a-z0-9_]{1,38}")


@dataclass(frozen=True, slots=True)
class Classroom:
    """What is set for the class.

    Attributes:
        hide, lock: stable keys of controls (``scan_length``), in the order of the link.
        present: presentation mode.
        refused: a sentence for each thing that the link could not have.
    """

    hide: tuple[str, ...] = ()
    lock: tuple[str, ...] = ()
    present: bool = False
    refused: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def of_link(cls, params: Mapping[str, str]) -> Classroom:
        """What an address says. Never raises: what cannot be had is refused by name."""
        refused: list[str] = []
        hide, lock = (_keys(params.get(name, ""), name, refused) for name in (HIDE, LOCK))
        flag = params.get(PRESENT, "0")
        if flag not in {"0", "1"}:
            refused.append(_refusal(PRESENT, flag, fill(NO_FLAG)))
        return cls(hide, lock, flag == "1", tuple(refused))

    @property
    def params(self) -> dict[str, str]:
        """The same as an address says it; empty where nothing is set."""
        out = {HIDE: ",".join(self.hide), LOCK: ",".join(self.lock), PRESENT: "1" if self.present else ""}
        return {name: text for name, text in out.items() if text}

    def locks(self, keys: Iterable[str]) -> frozenset[str]:
        """Those of `keys` that are locked."""
        return frozenset(keys) & frozenset(self.lock)


def _keys(text: str, name: str, refused: list[str]) -> tuple[str, ...]:
    given = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if len(given) > MOST:
        refused.append(_refusal(name, text, fill(TOO_MANY, count=len(given), limit=MOST)))
        given = given[:MOST]
    bad = [key for key in given if not _KEY.fullmatch(key) or key.startswith(KEPT)]
    refused += [_refusal(name, text, fill(NO_KEY, key=shorten(key))) for key in bad[:1]]
    return tuple(key for key in given if key not in bad)


def _refusal(name: str, text: str, reason: str) -> str:
    return fill(REFUSED, label=fill(LABELS[name]), value=shorten(text), reason=reason)
