"""A command line as a process: what it prints in a terminal of any encoding, and what happens where nobody reads it."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable

from core.base.text import fill

NOT_PRINTED = "What was found cannot be printed ({reason})."


def run(main: Callable[[], int], unusable: int) -> int:
    """The exit status of `main`, whose output stands where it goes when this returns.

    A letter that the terminal does not have is printed as its escape: a check is not to fail on an arrow.

    Args:
        main: the command.
        unusable: the status where the output cannot be written: closed early (``| head``), or a full disk.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        status = main()
        sys.stdout.flush()
    except OSError as error:
        # Nothing more can be written there, and Python would try again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            sys.stderr.write(fill(NOT_PRINTED, reason=error.strerror or type(error).__name__) + "\n")
        return unusable
    return status
