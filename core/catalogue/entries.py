"""An entry of the catalogue: what a rule's docstring says, its two example scripts, and what Carry Lab says of the bad one.

Nothing is written twice. The words are the rule's own docstring, the examples are the scripts that CI runs, and what is
said of them is the reviewed snapshot that CI compares.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from core.base.text import fill
from core.base.violation import Severity
from core.catalogue.documents import Document, documents_of
from core.contract.rule import Jax, Rule, all_rules

#: One folder per code: ``bad.py``, ``good.py``, ``expected.txt`` (what is said of ``bad.py``), and ``jax.txt`` where JAX
#: raises (what it says).
EXAMPLES: Final = Path(__file__).parent / "examples"

#: Groups by the first letter of a code, in the order of the page.
GROUPS: Final = {
    "S": "The scan and its carry",
    "L": "Cells and layers",
    "P": "Python under a trace",
    "R": "Keys and randomness",
    "N": "Numbers",
    "X": "Limits of this place",
}

_HEADS: Final = re.compile(r"^\*\*(?P<head>What|Why|Bad|Good)\.?\*\*[ ]?", re.MULTILINE)
SAYS_NOTHING = "JAX says nothing: the program runs."
NEVER_ASKED = "JAX is not asked: this place says no first."


@dataclass(frozen=True, slots=True)
class Entry:
    """One page.

    Attributes:
        rule: code, title, severity, what JAX does.
        summary: the first sentence of the docstring.
        what, why, more: its texts (Markdown); `more` stands behind the examples, "" when nothing does.
        bad, good: its excerpts of code.
        source: what it was checked against, in words.
        documents: the same as links.
        bad_script, good_script: whole scripts that run by themselves.
        said: what Carry Lab says of `bad_script`, a line per part.
        fixes: titles of the fixes that were tried on it and work.
        jax: what JAX says of it.
    """

    rule: Rule
    summary: str
    what: str
    why: str
    bad: str
    good: str
    more: str
    source: str
    documents: tuple[Document, ...]
    bad_script: str
    good_script: str
    said: tuple[str, ...]
    fixes: tuple[str, ...]
    jax: str

    @property
    def code(self) -> str:
        """The rule's code."""
        return self.rule.code

    @property
    def silent(self) -> bool:
        """Whether there are cases in which JAX raises nothing, where it could have been asked at all."""
        return self.rule.jax is not Jax.RAISES and self.rule.severity is not Severity.LIMIT

    @property
    def limit(self) -> bool:
        """Whether it is this place that says no, and not JAX."""
        return self.rule.severity is Severity.LIMIT

    @property
    def difference(self) -> tuple[str, ...]:
        """The way from the bad script to the good one, line by line, with two lines around each change."""
        lines = difflib.unified_diff(self.bad_script.splitlines(), self.good_script.splitlines(), lineterm="", n=2)
        return tuple(line for line in lines if not line.startswith(("---", "+++")))


@cache
def entries() -> tuple[Entry, ...]:
    """Every entry, by code."""
    return tuple(_entry(rule) for rule in all_rules())


def entry_of(code: str) -> Entry | None:
    """The entry of a code, however it is written; None when there is none."""
    wanted = code.strip().upper()
    return next((entry for entry in entries() if entry.code == wanted), None)


def find(words: str) -> tuple[Entry, ...]:
    """The entries that hold all these words, those with the words in code or title first.

    Args:
        words: separated by blanks; any case; a code is a word.
    """
    wanted = words.lower().split()
    found = [entry for entry in entries() if all(word in _haystack(entry) for word in wanted)]
    return tuple(sorted(found, key=lambda entry: not all(word in _head(entry) for word in wanted)))


def _head(entry: Entry) -> str:
    return f"{entry.code} {entry.rule.name} {entry.rule.title}".lower()


def _haystack(entry: Entry) -> str:
    return " ".join((_head(entry), entry.summary, entry.what, entry.why, entry.bad, entry.more, entry.jax)).lower()


# --- reading --------------------------------------------------------------------------------------------------------


def _entry(rule: Rule) -> Entry:
    page, source = _apart(rule.page)
    parts = _parts(page)
    good, more = _code_then_text(parts["Good"])
    said = _lines(rule.code, "expected.txt")
    source = " ".join(source.split())
    return Entry(
        rule=rule,
        summary=" ".join(parts[""].split()),
        what=parts["What"],
        why=parts["Why"],
        bad=_dedent(parts["Bad"]),
        good=good,
        more=more,
        source=source,
        documents=documents_of(source),
        bad_script=_text(rule.code, "bad.py"),
        good_script=_text(rule.code, "good.py"),
        said=said,
        fixes=tuple(dict.fromkeys(line.removeprefix("fix ") for line in said if line.startswith("fix "))),
        jax=_text(rule.code, "jax.txt").strip()
        or fill(NEVER_ASKED if rule.severity is Severity.LIMIT else SAYS_NOTHING),
    )


def _apart(page: str) -> tuple[str, str]:
    """The docstring without its source line, and the source."""
    text, _, source = page.partition("\nSource: ")
    return text, source


def _parts(page: str) -> dict[str, str]:
    """The texts under the heads of a docstring; what stands before the first under ""."""
    out, last, start = {"What": "", "Why": "", "Bad": "", "Good": ""}, "", 0
    for match in _HEADS.finditer(page):
        out[last] = page[start : match.start()].strip("\n")
        last, start = match["head"], match.end()
    out[last] = page[start:].strip("\n")
    return out


def _code_then_text(text: str) -> tuple[str, str]:
    """The indented code at the start of a text, and what comes behind it."""
    lines = text.split("\n")
    end = next((n for n, line in enumerate(lines) if line.strip() and not line.startswith("    ")), len(lines))
    return _dedent("\n".join(lines[:end])), "\n".join(lines[end:]).strip()


def _dedent(text: str) -> str:
    return "\n".join(line.removeprefix("    ") for line in text.strip("\n").split("\n")).strip()


def _text(code: str, name: str) -> str:
    path = EXAMPLES / code / name
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _lines(code: str, name: str) -> tuple[str, ...]:
    return tuple(line for line in _text(code, name).splitlines() if line)
