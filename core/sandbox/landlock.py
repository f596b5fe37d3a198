"""Landlock: the kernel itself refuses this thread, and every thread it starts, all files but the given ones.

By ctypes: PyPI `sandlock` 0.9 can confine a running process too, but only from ABI 6 on and without its network rules, and
its seccomp part needs a program of its own to start. Numbers are of linux/landlock.h; the calls have the same number on
every architecture. Each kernel takes what it knows:

====  ======  =====================================================================
ABI   kernel  adds
====  ======  =====================================================================
1     5.13    files: read, write, execute, make, remove
2     5.19    moving files between directories
3     6.2     truncating
4     6.7     TCP: bind, connect
5     6.10    ioctl of devices
6     6.12    abstract Unix sockets and signals stay inside
7     6.15    refusals can be kept out of the audit log, which a script could flood
8     7.0     threads that are already there
====  ======  =====================================================================
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from core.sandbox.libc import call

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3

#: The highest ABI these tables know.
NEWEST: Final = 8
TCP: Final = 4
SCOPES: Final = 6
ALL_THREADS: Final = 8

_FILE_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 5: 16}  # how many of the rights, from the lowest bit on, since which ABI
_TCP_RIGHTS: Final = 0b11  # bind, connect
_SCOPES: Final = 0b11  # abstract Unix sockets, signals
_QUIET, _TSYNC = 1 << 0, 1 << 3


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def abi() -> int:
    """The kernel's Landlock ABI, at most `NEWEST`.

    Raises:
        OSError: it has none, or it is switched off.
    """
    return min(call(_CREATE_RULESET, None, 0, _VERSION), NEWEST)


def restrict(read: Iterable[Path], version: int) -> None:
    """From here on this thread reads these files and what lies beneath these directories; nothing else.

    It writes, makes and executes nothing, and opens no TCP connection, as far as `version` goes. No new privileges must
    have been set before. Paths that do not exist are passed over.

    Args:
        read: what stays readable.
        version: an ABI that the kernel has, see `abi`.

    Raises:
        OSError: the kernel refuses.
    """
    handled = (1 << max(n for since, n in _FILE_RIGHTS.items() if since <= version)) - 1
    tcp, scopes = (_TCP_RIGHTS if version >= TCP else 0), (_SCOPES if version >= SCOPES else 0)
    attributes = _Ruleset(handled, tcp, scopes)
    size = 8 * (1 + (version >= TCP) + (version >= SCOPES))
    rules = call(_CREATE_RULESET, ctypes.byref(attributes), size, 0)
    try:
        for path in read:
            _allow(rules, path)
        call(_RESTRICT_SELF, rules, (_QUIET if version >= 7 else 0) | (_TSYNC if version >= ALL_THREADS else 0))
    finally:
        os.close(rules)


def _allow(rules: int, path: Path) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        is_directory = stat.S_ISDIR(os.fstat(opened).st_mode)
        rule = _Beneath(_READ_FILE | (_READ_DIR if is_directory else 0), opened)
        call(_ADD_RULE, rules, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(opened)
