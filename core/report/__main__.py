"""The command line: ``python -m core.report WHAT [--markdown FILE] [--json FILE] …``.

Exit status: 0 every criterion that applies passed; 1 one failed; 2 there is nothing to make a report of, or a file could
not be read or written; 3 nothing failed, and a criterion that applies could not be measured.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from core.base.limits import LIMITS
from core.base.terminal import run
from core.base.text import fill
from core.doctor.check import Terms
from core.doctor.instrument import Prepare, trusted
from core.inputs.fields import shorten
from core.report.as_json import UnreadableReportError, read_json, write_json
from core.report.compose import UnmakeableError, compose
from core.report.declared import FIELDS
from core.report.machine import load
from core.report.markdown import write_markdown
from core.report.model import ContractReport, Verdict
from core.report.parts import Bench, Part, Piece
from core.report.wanted import PAGES, SCAN, SCRIPT, Wanted, from_link

PROGRAM: Final = "python -m core.report"
DESCRIPTION: Final = (
    "Make a contract report: what was run, on which versions and machine, which promises were made of it, and which of "
    "them held, each with its number."
)
EPILOG: Final = """\
examples:
  python -m core.report scan                              the Scan page as it opens, as Markdown
  python -m core.report 'lstm?hidden=8&batch=3'           the LSTM page with these inputs
  python -m core.report 'http://localhost:8501/sequence?v=1&T=12' --json report.json
  python -m core.report my_script.py --markdown report.md --json report.json
  python -m core.report scan --low 0 --high 10 --axes T --features litres
  python -m core.report --read report.json                check a report that was written before, and print it

exit status:
  0  every criterion that applies passed
  1  a criterion failed
  2  there is nothing to make a report of, or a file could not be read or written
  3  nothing failed, and a criterion that applies could not be measured
"""
HELP_WHAT: Final = (
    "a page with its inputs, as its address has them (scan, lstm, sequence or gradients, then ? and the query; a whole "
    "link does too), or a file: a Python script, a notebook (.ipynb), or Markdown with fenced code"
)
HELP_MARKDOWN: Final = "write Markdown to this file; - for standard output (so it is when no file is named at all)"
HELP_JSON: Final = "write JSON to this file; - for standard output"
HELP_VALUES: Final = "write the inputs' values too, not only their hashes"
HELP_TRUST: Final = "run a script as plain Python, without the sandbox's language"
HELP_LATENCY: Final = "seconds for the timed runs (default: {seconds:g})"
HELP_READ: Final = "read a report in JSON, check it against the schema and print it as Markdown"
HELP_DECLARED: Final = {
    "axes": "declare the axis order of the data: letters of T, B, F, H, such as TBF",
    "features": "declare a name for each feature, with commas between them",
    "dtype": "declare the dtype of the data, such as float32",
    "low": "declare the lowest value that the data may have",
    "high": "declare the highest value that the data may have",
    "target": "say what the target means",
}
WHAT: Final = "WHAT"
NO_PAGE = "{name}: there is no such page and no such file. Pages are {pages}."
NOT_READ = "{name}: {reason}"
NO_TEXT = "not text in UTF-8"
TWICE = "The link gives “{name}” more than once."
NO_LINK = "{name}: this is no address."
TOO_LONG = "more than {limit:,} bytes"
NO_SECONDS = "a number of seconds from 0 to 3600"
NOTHING = "Give a page or a file; --help says more."
DECLARED_BAD = "--{field}: {reason}"
PROGRESS = "{part} …"
#: Seconds of timed runs.
_LONGEST: Final = 3_600
PASSED, FAILED, UNMADE, INCOMPLETE = 0, 1, 2, 3
STATUS: Final = {Verdict.PASS: PASSED, Verdict.FAIL: FAILED, Verdict.INCOMPLETE: INCOMPLETE}
WORDS: Final = {
    Part.GIVEN: "what is run",
    Part.CHECKS: "criteria",
    Part.GRADIENTS: "loss and gradients",
    Part.FORMULA: "an independent formula",
    Part.MODE: "train and eval",
    Part.EAGER: "eager",
    Part.JIT: "eager and jit",
    Part.VMAP: "eager and vmap",
    Part.LATENCY: "latency",
}


def main(argv: list[str] | None = None) -> int:
    """Make one report."""
    given = _parser().parse_args(argv)
    if given.read is not None:
        return _again(given.read)
    if given.what is None:
        return _refuse(fill(NOTHING))
    try:
        wanted = wanted_of(given.what, {name: getattr(given, name) or "" for name in FIELDS}, values=given.values)
        report = make(wanted, trust=given.trust, seconds=given.latency, tell=_progress)
    except UnmakeableError as error:
        return _refuse(fill(DECLARED_BAD, field=error.field, reason=error) if error.field else str(error))
    return _write(report, given.markdown, given.json)


def wanted_of(what: str, declared: dict[str, str], *, values: bool = False) -> Wanted:
    """What a person asked for: a file, a page, a link.

    Raises:
        UnmakeableError: it is none of these, or something in it cannot be read.
    """
    try:
        parts = urlsplit(what)
    except ValueError:
        raise UnmakeableError(fill(NO_LINK, name=shorten(what))) from None
    name = parts.path.strip("/").rpartition("/")[2] if parts.scheme in ("http", "https") else parts.path.strip("/")
    page = name or (SCAN if parts.scheme or what.startswith(("/", "?")) else "")
    if page in PAGES and not (not parts.scheme and not parts.query and Path(what).is_file()):
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        read = from_link(page, dict(pairs))
        counts = Counter(key for key, _ in pairs)
        twice = [fill(TWICE, name=shorten(key)) for key, count in counts.items() if count > 1]
        if read.refused or twice:
            raise UnmakeableError("\n".join((*read.refused, *twice)))
        return Wanted(page, read.values, declared=declared, with_values=values)
    try:
        text = _bytes(what, LIMITS["report_source"].value).decode("utf-8-sig")
    except _TooLongError as error:
        raise UnmakeableError(fill(NOT_READ, name=what, reason=error)) from None
    except UnicodeDecodeError:
        raise UnmakeableError(fill(NOT_READ, name=what, reason=fill(NO_TEXT))) from None
    except FileNotFoundError:
        raise UnmakeableError(fill(NO_PAGE, name=what, pages=", ".join(PAGES))) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise UnmakeableError(fill(NOT_READ, name=what, reason=reason)) from None
    return Wanted(SCRIPT, text=text, declared=declared, with_values=values)


class _TooLongError(Exception):
    """There is more of it than is read; the message says how much is."""


def _bytes(name: str, limit: int) -> bytes:
    """What a file holds, or standard input for ``-``, and no more than is read of it.

    Raises:
        OSError: it cannot be read.
        _TooLongError: it is longer. A device or a pipe may have no end.
    """
    if name == "-":
        data = sys.stdin.buffer.read(limit + 1)
    else:
        with Path(name).open("rb") as file:
            data = file.read(limit + 1)
    if len(data) > limit:
        raise _TooLongError(fill(TOO_LONG, limit=limit))
    return data


def _seconds(text: str) -> float:
    """`argparse` names the option, and the text that is no number."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= _LONGEST:
        raise argparse.ArgumentTypeError(fill(NO_SECONDS))
    return seconds


def make(
    wanted: Wanted, *, trust: bool = False, seconds: float | None = None, tell: Callable[[Part], None] | None = None
) -> ContractReport:
    """All parts, one after the other, in this process.

    Args:
        wanted: of what.
        trust: run a script as plain Python.
        seconds: for the timed runs.
        tell: called before each part.

    Raises:
        UnmakeableError: there is nothing to make a report of.
    """
    before = load()
    budget = LIMITS["report_latency_alone"].value if seconds is None else 1000 * seconds
    bench = Bench(Terms(trusted if trust else _prepare(), proofs=False), budget)
    pieces: dict[Part, Piece | str] = {}
    try:
        for part in Part:
            if tell is not None:
                tell(part)
            pieces[part] = piece = bench.whole(wanted, part)
            if piece.problem:
                break
    finally:
        bench.close()
    return compose(pieces, before)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", metavar=WHAT, nargs="?", help=HELP_WHAT)
    parser.add_argument("--markdown", metavar="FILE", help=HELP_MARKDOWN)
    parser.add_argument("--json", metavar="FILE", help=HELP_JSON)
    for name in FIELDS:
        parser.add_argument(f"--{name}", metavar=name.upper(), help=HELP_DECLARED[name])
    parser.add_argument("--values", action="store_true", help=HELP_VALUES)
    parser.add_argument("--trust", action="store_true", help=HELP_TRUST)
    seconds = LIMITS["report_latency_alone"].value / 1000
    parser.add_argument("--latency", metavar="SECONDS", type=_seconds, help=HELP_LATENCY.format(seconds=seconds))
    parser.add_argument("--read", metavar="FILE", help=HELP_READ)
    return parser


def _progress(part: Part) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(fill(PROGRESS, part=fill(WORDS[part])) + "\n")


def _write(report: ContractReport, markdown: str | None, as_json: str | None) -> int:
    texts = []
    if markdown is not None or as_json is None:
        texts.append((markdown or "-", write_markdown(report)))
    if as_json is not None:
        texts.append((as_json, write_json(report)))
    for name, text in texts:
        try:
            if name == "-":
                sys.stdout.write(text)
            else:
                Path(name).write_text(text, encoding="utf-8")
        except OSError as error:
            return _refuse(fill(NOT_READ, name=name, reason=error.strerror or type(error).__name__))
    return STATUS[report.verdict]


def _again(name: str) -> int:
    """A report that was written before."""
    try:
        report = read_json(_bytes(name, LIMITS["report_bytes"].value))
    except OSError as error:
        return _refuse(fill(NOT_READ, name=name, reason=error.strerror or type(error).__name__))
    except (_TooLongError, UnreadableReportError) as error:
        return _refuse(fill(NOT_READ, name=name, reason=error))
    sys.stdout.write(write_markdown(report))
    return STATUS[report.verdict]


def _refuse(text: str) -> int:
    sys.stderr.write(text + "\n")
    return UNMADE


def _prepare() -> Prepare:
    """The sandbox's language where it is installed, else plain Python."""
    try:
        from core.doctor.sandboxed import sandboxed
    except ImportError:
        return trusted
    return sandboxed


if __name__ == "__main__":
    sys.exit(run(main, UNMADE))
