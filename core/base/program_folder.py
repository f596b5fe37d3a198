"""Where compiled programs are kept from one start of a server to the next, if somebody names a folder for them.

Whoever can write there makes the server run what he wrote: it must be this user's folder alone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

VARIABLE: Final = "CARRY_LAB_COMPILE_CACHE"
NO_FOLDER: Final = f"{VARIABLE} must name a folder that this user can read, or a new one in a folder that is there"
NOT_OURS: Final = f"{VARIABLE} must name a folder that belongs to this user and that nobody else can write to"


def program_folder(environ: Mapping[str, str]) -> Path | None:
    """The folder that an environment names, made if need be; None where it names none.

    Raises:
        ValueError: it can hold no programs; the message names the variable, not its value.
    """
    text = environ.get(VARIABLE, "").strip()
    if not text:
        return None
    folder = Path(text).absolute()
    try:
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        next(folder.iterdir(), None)
        state = folder.stat()
    except (OSError, ValueError) as problem:
        raise ValueError(NO_FOLDER) from problem
    if state.st_uid != os.geteuid() or state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ValueError(NOT_OURS)
    return folder
