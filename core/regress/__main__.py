"""``python -m core.regress record FILE [--page lstm] [--link "…"]`` and ``python -m core.regress check FILE…``.

Exit status: 0 the same (or recorded), 1 something moved, 2 a file or an argument that cannot be used, or output that
cannot be written.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from core.base.limits import LIMITS
from core.base.terminal import run
from core.base.text import fill
from core.inputs.fields import Value
from core.regress.baseline import NoToleranceError
from core.regress.case import TooLargeError
from core.regress.compare import check
from core.regress.file import UnreadableError, from_bytes, to_bytes
from core.regress.record import SEED, NotRecordedError, record
from core.regress.schema import SCHEMA
from core.regress.state import DEFAULT, PAGES, BadLinkError, page_of_link, page_state, values_of_link
from core.regress.words import CASE_COLUMNS, COLUMNS, beside, case_rows, headline, recorded, rows
from core.weights.cell import CellWeights
from core.weights.load import load_cell
from core.weights.refusal import WeightsRefused

SAME, MOVED, UNUSABLE = 0, 1, 2

THERE = "{file} is there already. Recording anew throws away what it says: give the reason, with --reason “…”."
LONG_REASON = "The reason has {count} characters; {limit} are kept at most."
NOT_READ = "{file}: cannot be read ({reason})."
NOT_WRITTEN = "{file}: cannot be written ({reason})."
WEIGHTS_WANTED = "The link names parameters from a file (w={name}): give the file, with --weights FILE."
NOT_WANTED = "The link names no parameters from a file (w=…), so {file} would not be used."
OTHER_WEIGHTS = "{file} holds the parameters {got}; the link names {want} (w=…)."
SAYS = "{file}: {text}"
VERDICT = "{file}: {word}. {words}"
WROTE = "{file}: recorded."
_REASON: Final = 400
#: Characters of a column, and rows of a table, in the terminal.
_WIDE, _ROWS = 44, 40


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit status."""
    asked = _parser().parse_args(arguments)
    if asked.command == "schema":
        _say(json.dumps(SCHEMA, indent=2))
        return SAME
    if asked.command == "record":
        return _record(asked)
    return max(_check(Path(name)) for name in asked.files)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m core.regress", description=__doc__.split("\n\n")[1])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("record", help="run a small set of cases of a page's state and keep what they give")
    one.add_argument("file", help="the .safetensors file to write")
    one.add_argument(
        "--page", choices=tuple(PAGES), default="", help="the page; by default the one in the link, or scan"
    )
    one.add_argument("--link", default="", help="the page's address, or what stands in it behind “?”")
    one.add_argument(
        "--own-data", action="store_true", help="keep numbers that were typed, instead of seeded ones of the same shape"
    )
    one.add_argument("--seed", type=_seed, default=SEED, help="of the numbers that stand for typed ones")
    one.add_argument("--weights", default="", help="the file of parameters that the link names (w=…)")
    one.add_argument("--reason", default="", help="why a file that is there is recorded anew; it is kept in the file")
    two = commands.add_parser("check", help="run the cases of a file again and compare")
    two.add_argument("files", nargs="+", metavar="file")
    commands.add_parser("schema", help="print the JSON Schema of a file's metadata")
    return parser


def _seed(text: str) -> int:
    if not text.isdecimal() or len(text) > 10 or int(text) >= 2**31:
        raise argparse.ArgumentTypeError("a whole number from 0 to 2147483647")
    return int(text)


def _record(asked: argparse.Namespace) -> int:
    path = Path(asked.file)
    if len(asked.reason) > _REASON:
        return _wrong(fill(LONG_REASON, count=len(asked.reason), limit=_REASON))
    try:
        if not asked.reason.strip() and _is_there(path):
            return _wrong(fill(THERE, file=path))
        values = values_of_link(asked.page, asked.link)
        page = page_state(asked.page or page_of_link(asked.link) or DEFAULT)
        file = _weights(asked.weights, values)
        baseline = record(page, values, file=file, own=asked.own_data, seed=asked.seed, reason=asked.reason.strip())
        data = to_bytes(baseline)
        _write(path, data)
    except _NotReadError as error:
        return _wrong(fill(NOT_READ, file=asked.weights, reason=error))
    except (BadLinkError, NotRecordedError, TooLargeError, WeightsRefused) as error:
        return _wrong(str(error))
    except OSError as error:
        return _wrong(fill(NOT_WRITTEN, file=path, reason=error.strerror or type(error).__name__))
    _say(fill(WROTE, file=path))
    _table(CASE_COLUMNS, case_rows(baseline))
    for line in recorded(baseline, len(data)):
        _say(line)
    return SAME


class _NotReadError(Exception):
    """The file of parameters cannot be read; the message says why."""


def _is_there(path: Path) -> bool:
    """Whether there is such a file. `Path.exists` raises where it cannot tell, such as for a name that is too long."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _weights(name: str, values: Mapping[str, Value]) -> CellWeights | None:
    """The file of parameters that the link names.

    Raises:
        BadLinkError: it names one that was not given, or another one.
        WeightsRefused: what was given is not taken.
        _NotReadError: it cannot be read.
    """
    named = values.get("weights", "")
    if not name:
        if named:
            raise BadLinkError(fill(WEIGHTS_WANTED, name=named))
        return None
    if not named:
        raise BadLinkError(fill(NOT_WANTED, file=name))
    try:
        with Path(name).open("rb") as file:
            data = file.read(LIMITS["weights_bytes"].value + 1)
    except OSError as error:
        raise _NotReadError(error.strerror or type(error).__name__) from None
    weights = load_cell(data, str(values.get("cell", "")))
    if weights.in_link != named:
        raise BadLinkError(fill(OTHER_WEIGHTS, file=name, got=weights.in_link, want=named))
    return weights


def _write(path: Path, data: bytes) -> None:
    """All of it or nothing: what was there stays until the new file is whole."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _check(path: Path) -> int:
    limit = LIMITS["baseline_bytes"].value
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        return _wrong(fill(NOT_READ, file=path, reason=error.strerror or type(error).__name__))
    try:
        baseline = from_bytes(data)
        verdict = check(baseline)
    except (UnreadableError, NoToleranceError, TooLargeError) as error:
        return _wrong(fill(SAYS, file=path, text=error))
    word, words = headline(verdict)
    _say(fill(VERDICT, file=path, word=word, words=words))
    if not verdict.same:
        _table(COLUMNS, rows(verdict, _ROWS))
    for line in beside(baseline, verdict, _ROWS):
        _say(f"  {line}")
    return SAME if verdict.same else MOVED


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


def _wrong(text: str) -> int:
    sys.stderr.write(text + "\n")
    return UNUSABLE


def _table(columns: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    cells = [[_cut(cell) for cell in line] for line in (columns, *lines)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    for line in cells:
        _say("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _cut(text: str) -> str:
    return text if len(text) <= _WIDE else text[: _WIDE - 1] + "…"


if __name__ == "__main__":
    sys.exit(run(main, UNUSABLE))
