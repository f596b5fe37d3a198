"""A page's state as a program in parts, and that program as a script of Python.

Each begins with what it is, the versions it was made with (and a check that says so where others run), and its seeds.
Each ends with one negative test: something that must raise, or a number that must not move; it fails loudly if not.
"""

from __future__ import annotations

import io
import textwrap
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Final

import jax
import numpy as np

from core.base.outcome import Report
from core.base.text import fill
from core.base.violation import FieldEdit, Fix

#: Packages whose versions are pinned, in this order; `Document.packages` adds to them.
PINNED: Final = ("jax", "jaxlib", "flax", "numpy")

HEAD: Final = "{title}\n{about}\nMade by Carry Lab on a CPU with: {pins}"
SEEDS: Final = "Seeds: {seeds}"
BREAKS: Final = "Breaks {codes}. {does}"
RAISES: Final = "JAX raises {type}."
SILENT: Final = "JAX raises nothing."
PIN: Final = "{name}=={version}"
CHECK: Final = """\
import importlib.metadata
import warnings

for package, pinned in {pins}.items():
    found = importlib.metadata.version(package)
    if found != pinned:
        warnings.warn(f"made with {{package}} {{pinned}}, run with {{found}}: numbers and errors may differ", stacklevel=1)
"""
MUST_RAISE: Final = """\
raised = None
try:
{code}
except Exception as error:
    raised = error
if type(raised).__name__ != "{type}":
    raise AssertionError(f"{type} must be raised here, and {{raised!r}} was") from raised
print("raised, as it must: {type}:", str(raised).split("\\n")[0])
"""
DIGITS: Final = '''\
def digits(tree):
    """Every number of a pytree, with the nesting that is its shape."""
    return repr([np.asarray(leaf).tolist() for leaf in jax.tree.leaves(tree)])
'''
NEGATIVE: Final = "Negative test: {text}"
REPAIRED: Final = "the program with Carry Lab's fix ({title}) must give other numbers than the one above."
DIFFERS: Final = """\
the_broken_one = digits({result})
{code}
if digits({result}) == the_broken_one:
    raise AssertionError("the fix changes no number")
print("with the fix:", {result})
"""
#: Columns of a comment.
_WIDTH: Final = 96


@dataclass(frozen=True, slots=True)
class Part:
    """Some lines of the program, and a sentence or two (Markdown) about them."""

    text: str
    code: str


@dataclass(frozen=True, slots=True)
class Document:
    """A program that runs by itself.

    Attributes:
        stem: of its file name, ``carry-lab-scan``.
        title: what it is, in a few words.
        about: a sentence.
        parts: the program, in order.
        negative: the negative test. Where the program itself raises, that it does.
        seeds: ``parameters 0``, in words.
        codes: what it breaks.
        raises: the exception that it raises when it is left alone; "" for none.
        packages: more packages to pin, by name.
        first: lines that have to come before all others (``from __future__ import …``).
    """

    stem: str
    title: str
    about: str
    parts: tuple[Part, ...]
    negative: Part
    seeds: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    raises: str = ""
    packages: tuple[str, ...] = ()
    first: str = ""

    @property
    def pins(self) -> Mapping[str, str]:
        """Versions by package."""
        return {name: metadata.version(name) for name in (*PINNED, *self.packages)}

    @property
    def head(self) -> str:
        """What it is, in lines of plain text."""
        pins = " ".join(fill(PIN, name=name, version=version) for name, version in self.pins.items())
        lines = [fill(HEAD, title=self.title, about=self.about, pins=pins)]
        if self.seeds:
            lines.append(fill(SEEDS, seeds=", ".join(self.seeds)))
        if self.codes:
            does = fill(RAISES, type=self.raises) if self.raises else fill(SILENT)
            lines.append(fill(BREAKS, codes=", ".join(self.codes), does=does))
        return "\n".join(lines)

    @property
    def check(self) -> str:
        """The lines that warn where other versions run."""
        return fill(CHECK, pins=_dict(self.pins))


def script(document: Document) -> str:
    """The program as a file of Python, UTF-8."""
    negative = Part(fill(NEGATIVE, text=document.negative.text), document.negative.code)
    code = [document.first, document.check.strip("\n"), *(_commented(p) for p in (*document.parts, negative))]
    return "\n\n".join([comment(document.head), *filter(None, code)]) + "\n"


def _commented(part: Part) -> str:
    code = part.code.strip("\n")
    # Two blank lines before a function at the margin, as people write it.
    return comment(part.text) + "\n" + code if part.text else code


def comment(text: str) -> str:
    """Text as comment lines."""
    lines = [line for one in text.split("\n") for line in textwrap.wrap(one, _WIDTH, break_on_hyphens=False) or [""]]
    return "\n".join(f"# {line}".rstrip() for line in lines)


def must_raise(code: str, kind: str) -> str:
    """The lines, and after them a failure unless they raised an exception of that class."""
    return fill(MUST_RAISE, code=indented(code.strip("\n")), type=kind)


def fixes_of(report: Report | None, at_once: Fix | None) -> Iterator[tuple[str, FieldEdit]]:
    """What mends a page's inputs, each with its title: the edit for everything at once first."""
    found = [fix for violation in (report.broken if report is not None else ()) for fix in violation.fixes]
    for fix in (*([] if at_once is None else [at_once]), *found):
        if isinstance(fix.edit, FieldEdit):
            yield fix.title, fix.edit


def repaired(title: str, result: str, code: str) -> Part:
    """A negative test of a program that is broken silently: with a fix its numbers are others.

    Args:
        title: of the fix.
        result: an expression of the program's numbers.
        code: the lines of the repaired program that make them anew.
    """
    lines = fill(DIFFERS, result=result, code=code.strip("\n"))
    return Part(fill(REPAIRED, title=title), fill(DIGITS) + "\n\n" + lines)


def digits(tree: Any) -> str:
    """What the program's own `DIGITS` gives: every number of a pytree, with the nesting that is its shape."""
    return repr([np.asarray(leaf).tolist() for leaf in jax.tree.leaves(tree)])


def indented(code: str) -> str:
    """Code one level deeper; lines inside a string that goes over several lines stay as they are.

    Raises:
        SyntaxError, tokenize.TokenError: Python cannot read it.
    """
    inside: set[int] = set()
    begun: list[int] = []
    for token in tokenize.generate_tokens(io.StringIO(code + "\n").readline):
        if token.type == tokenize.STRING:
            inside |= set(range(token.start[0] + 1, token.end[0] + 1))
        elif token.type == tokenize.FSTRING_START:
            begun.append(token.start[0])
        elif token.type == tokenize.FSTRING_END:
            inside |= set(range(begun.pop() + 1, token.end[0] + 1))
    lines = code.split("\n")
    return "\n".join(f"    {line}" if line.strip() and n not in inside else line for n, line in enumerate(lines, 1))


def import_lines(code: str, names: Iterable[str] = ()) -> str:
    """The imports that some lines need, of those that programs here use; `names` are needed in any case."""
    known = {
        "jax": "import jax",
        "jnp": "import jax.numpy as jnp",
        "np": "import numpy as np",
        "nnx": "from flax import nnx",
    }
    used = {token.string for token in tokenize.generate_tokens(io.StringIO(code + "\n").readline)} | set(names)
    return "\n".join(line for name, line in known.items() if name in used)


def _dict(pins: Mapping[str, str]) -> str:
    return "{" + ", ".join(f'"{name}": "{version}"' for name, version in pins.items()) + "}"
