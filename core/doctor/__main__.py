"""The command line: ``python -m core.doctor FILE.py [--format text|json]``.

Exit status: 0 clean (notes allowed); 1 errors, warnings, limits or an exception; 2 the file could not be read or holds
no script. ``-`` reads standard input. Colours only in a terminal, and not when NO_COLOR is set.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from core.base.outcome import Outcome
from core.base.text import fill
from core.doctor.check import Checkup, check_script
from core.doctor.instrument import Prepare, trusted
from core.doctor.report import as_json
from core.doctor.terminal import as_text

PROGRAM = "python -m core.doctor"
DESCRIPTION = "Check a script that uses jax.lax.scan or Flax NNX cells: what breaks the contract, where, why, and fixes that work."
HELP_FILE = "a Python script, a notebook (.ipynb) or Markdown with fenced code; - for standard input"
HELP_FORMAT = "text for people, json for programs"
HELP_NO_FIXES = "give the verdict without trying fixes"
HELP_TRUST = "run the script as plain Python, without the sandbox's language"
NOT_READ = "{name}: {reason}"
NO_TEXT = "not text in UTF-8"
CLEAN, FAULTY, UNREAD = 0, 1, 2


def main(argv: list[str] | None = None) -> int:
    """Check one file and print the report."""
    parser = argparse.ArgumentParser(prog=PROGRAM, description=DESCRIPTION)
    parser.add_argument("file", metavar="FILE.py", help=HELP_FILE)
    parser.add_argument("--format", choices=("text", "json"), default="text", help=HELP_FORMAT)
    parser.add_argument("--no-fixes", action="store_true", help=HELP_NO_FIXES)
    parser.add_argument("--trust", action="store_true", help=HELP_TRUST)
    given = parser.parse_args(argv)
    try:
        text = sys.stdin.read() if given.file == "-" else Path(given.file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = fill(NO_TEXT) if isinstance(error, UnicodeDecodeError) else (error.strerror or str(error))
        sys.stderr.write(fill(NOT_READ, name=given.file, reason=reason) + "\n")
        return UNREAD
    prepare = trusted if given.trust else _prepare()
    if given.trust and given.file != "-":
        sys.path.insert(
            0, str(Path(given.file).resolve().parent)
        )  # as Python does: a script's own modules lie beside it
    checkup = check_script(text, prepare=prepare, fixes=not given.no_fixes)
    if given.format == "json":
        sys.stdout.write(json.dumps(as_json(checkup), ensure_ascii=False, allow_nan=False, indent=2) + "\n")
    else:
        sys.stdout.write(as_text(checkup, given.file, colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ))
    return status(checkup)


def status(checkup: Checkup) -> int:
    """The exit status of a checkup."""
    if checkup.outcome is None:
        return UNREAD
    return CLEAN if checkup.report.outcome is Outcome.OK else FAULTY


def _prepare() -> Prepare:
    """The sandbox's language where it is installed, else plain Python."""
    try:
        from core.doctor.sandboxed import sandboxed
    except ImportError:
        return trusted
    return sandboxed


if __name__ == "__main__":
    sys.exit(main())
