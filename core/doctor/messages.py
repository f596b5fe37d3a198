"""From a pasted error message, without its script, to the code it most likely belongs to.

The only place that reads message text: here the text *is* the input. A script is always diagnosed from structure. The
table holds what JAX 0.11.2 and Flax 0.12.10 say (tests raise each of them anew), and older words where they are known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from core.base.text import fill
from core.contract.rule import Rule, all_rules

SURE = "This message belongs to {code}: {title}."
GUESS = "This message most likely belongs to {code}: {title}. Paste the script to be sure."
NOTHING = "No rule is known by this message. Paste the script: it is the code that shows what is wrong."

#: A line that starts a message: the exception's type, and what it says.
LINE = re.compile(r"^\s*(?:[\w.]+\.)?(?P<type>\w*(?:Error|Exception))\s*(?::\s*(?P<text>.*))?$")
CODE = re.compile(r"\b(?P<code>[SPLRNX]\d{3})\b")


@dataclass(frozen=True, slots=True)
class Row:
    """One message: words that all stand in it, the type it is raised as ("" for any), a pattern, how sure the code is."""

    code: str
    words: tuple[str, ...]
    type: str = ""
    sure: bool = True
    pattern: str = ""


#: Tried in this order; the first row whose type and words fit wins.
TABLE = (
    Row("S101", ("scan body output must be a pair",)),
    Row("S102", ("scan body function", "same pytree structure")),
    Row("S103", ("scan body function", "equal types", "shapes do not match")),
    Row("S104", ("scan body function", "equal types", "dtypes do not match")),
    Row("S103", ("scan body function", "must have equal types"), sure=False),
    Row("S102", ("scan carry output and input must have same type structure",)),
    Row("S103", ("scan carry output and input must have identical types",), sure=False),
    Row("S110", ("no leading axis to scan over:",), "ValueError", sure=False, pattern=r"scan over: [^\s,]+, "),
    Row("S106", ("no leading axis to scan over",)),
    Row("S107", ("scan got values with different leading axis sizes",)),
    Row("S108", ("scan got `length` argument", "disagrees with leading axis sizes")),
    Row("S109", ("scan got no values to scan over",)),
    Row("P209", ("`length` argument to `scan`", "concrete")),
    Row("P209", ("shapes must be 1d sequences of concrete values",)),
    Row("P209", ("it arose in the jnp.arange argument",)),
    Row("P205", ("do not support in-place item assignment",)),
    Row("P205", ("object does not support item assignment",), sure=False),
    Row("P208", ("has been deleted",), "RuntimeError"),
    Row("P208", ("donated",), sure=False),
    Row("S118", ("is not a valid jax type",), sure=False),
    Row("P201", ("boolean conversion of traced array",)),
    Row("P201", (), "TracerBoolConversionError"),
    Row("P202", (), "TracerArrayConversionError"),
    Row("P202", (), "TracerIntegerConversionError"),
    Row("P202", (), "NonConcreteBooleanIndexError"),
    Row("P202", ("array slice indices must have static",)),
    Row("P202", ("the problem arose with the",)),
    Row("P202", ("abstract tracer value encountered where concrete value is expected",), sure=False),
    Row("P202", (), "ConcretizationTypeError", sure=False),
    Row("P203", (), "UnexpectedTracerError"),
    Row("P203", ("encountered an unexpected tracer",)),
    Row("R404", ("from a different trace level",)),
    Row("R404", (), "TraceContextError"),
    Row("L318", ("`deterministic` is false, but no `rngs`",)),
    Row("L318", ("use_running_average",), sure=False),
    Row("L306", ("rngs must be provided to initialize the cell carry",)),
    Row("L306", ("initialize_carry() missing", "rngs")),
    Row("L307", ("cell.__init__() missing", "'rngs'")),
    Row("L307", ("has no attribute 'params'",), "AttributeError"),
    Row("L307", ("has no attribute `params`",), "AttributeError"),
    Row("L307", ("cell.__init__() takes 3 positional arguments",)),
    Row("L306", ("unsupported operand type(s) for +: 'rngstream' and 'tuple'",)),
    Row("L306", ("'int' object is not callable",), "TypeError", sure=False),
    Row("L322", ("positional arguments but", "were given"), "TypeError", sure=False),
    Row("L320", ("unsupported operand type(s)", "'tuple'"), "TypeError", sure=False),
    Row("L301", ("to unpack (expected 2",), "ValueError", sure=False),
    Row("L305", ("dot_general requires contracting dimensions",), sure=False),
    Row("L303", ("got incompatible shapes for broadcasting",), sure=False),
    Row("S106", ("tuple index out of range",), "IndexError", sure=False),
)


@dataclass(frozen=True, slots=True)
class Match:
    """What a message most likely means. `sure`: nothing else says it."""

    rule: Rule
    sure: bool

    @property
    def text(self) -> str:
        """One sentence for the reader."""
        return fill(SURE if self.sure else GUESS, code=self.rule.code, title=self.rule.title)


def code_of_message(text: str) -> Match | None:
    """The code that a pasted message or traceback belongs to; None when no row fits.

    Our own messages name their code.
    """
    rules = {rule.code: rule for rule in all_rules()}
    named = CODE.search(text)
    if named is not None and named["code"] in rules:
        return Match(rules[named["code"]], True)
    kind, said = _last(text)
    for row in TABLE:
        fits = all(word in said for word in row.words) and (not row.type or row.type == kind)
        fits = fits and (not row.pattern or re.search(row.pattern, said) is not None)
        if fits and row.code in rules:
            return Match(rules[row.code], row.sure and bool(kind or row.words))
    return None


def _last(text: str) -> tuple[str, str]:
    """Type and words of the last exception in a text, in small letters; all of it when no line names one."""
    kind, start = "", 0
    lines = text.split("\n")
    for number, line in enumerate(lines):
        found = LINE.match(line)
        if found and not line.startswith(" "):
            kind, start = found["type"], number
    return kind, " ".join(" ".join(lines[start:]).split()).lower()
