"""The few calls of the C library that Python has no function for, each with its error as an OSError."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import sys
from typing import Any, Final

#: linux/prctl.h
PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4
PR_SET_NO_NEW_PRIVS: Final = 38
_CAPABILITY_VERSION_3: Final = 0x20080522


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> None:
    """Set one property of this process.

    Raises:
        OSError: the kernel refuses it or does not know it (also where there is no ``prctl``).
    """
    _checked(_function("prctl")(ctypes.c_int(option), *(ctypes.c_ulong(n) for n in (value, 0, 0, 0))))


def call(number: int, *values: Any) -> int:
    """A system call by its number; whole numbers are passed as C longs, everything else as ctypes has it.

    Raises:
        OSError: it returned an error.
    """
    function = _function("syscall")
    function.restype = ctypes.c_long
    return _checked(function(ctypes.c_long(number), *(ctypes.c_long(v) if isinstance(v, int) else v for v in values)))


def drop_capabilities() -> None:
    """Give up every capability of this thread, for good.

    Raises:
        OSError: the kernel refuses (it does not, for giving up).
    """
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _checked(_function("capset")(header, (ctypes.c_uint32 * 6)()))


def _function(name: str) -> Any:
    if sys.platform != "linux":  # the numbers mean something else there
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    try:
        return getattr(_libc(), name)
    except AttributeError as error:
        raise OSError(name) from error


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
