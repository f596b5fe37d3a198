"""seccomp: the system calls that a warmed-up worker makes are let through; every other one "is not implemented".

A list of what is allowed, so that a call which a later kernel adds is refused too. ENOSYS is what the C library expects of
a call that is not there (it then takes the older one: `clone` for `clone3`, whose flags a filter cannot read). Found by
tracing JAX 0.11.2 and Flax 0.12.10 behind it: scans, gradients, sort, FFT, linear algebra, threads, callbacks, lazy imports.

Needs PyPI `pyseccomp` and the library it drives, libseccomp2; without them the wall is reported as not in force.
"""

from __future__ import annotations

import errno
import functools
import importlib
import os
from typing import Any, Final

#: Numbers of linux/sched.h, linux/mman.h, linux/fcntl.h, asm-generic/ioctls.h; the same on x86_64 and aarch64.
_CLONE_THREAD: Final = 0x00010000
_CLONE_NEW: Final = 0x7E020080  # every namespace
_MAP_KIND, _MAP_PRIVATE = 0x0F, 0x02
_MAP_UNCOUNTED: Final = 0x100 | 0x40000  # growing downwards, huge pages: not counted by RLIMIT_DATA
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_PR_SET_NAME, _PR_SET_VMA = 15, 0x53564D41
_FCNTL: Final = (1, 2, 3)  # F_GETFD, F_SETFD, F_GETFL: never who gets a signal
_TCGETS, _FIOCLEX = 0x5401, 0x5451

#: Whatever their arguments. They reach this process alone, or files that are open or that Landlock lets it name.
_ALLOWED: Final = """
    brk munmap mprotect mremap madvise membarrier mbind get_mempolicy
    futex futex_time64 set_robust_list rseq sched_yield sched_getaffinity sched_getparam sched_getscheduler
    sched_get_priority_max sched_get_priority_min getcpu
    rt_sigaction rt_sigprocmask rt_sigreturn sigreturn restart_syscall sigaltstack rt_sigsuspend rt_sigtimedwait
    rt_sigpending pause setitimer getitimer alarm
    read readv pread64 write writev close lseek _llseek poll ppoll ppoll_time64 select pselect6 pselect6_time64
    fstat fstat64 stat stat64 lstat lstat64 newfstatat fstatat64 statx access faccessat faccessat2 readlink readlinkat
    getdents64 getcwd
    clock_gettime clock_gettime64 clock_getres clock_getres_time64 clock_nanosleep clock_nanosleep_time64 nanosleep
    gettimeofday time times getrusage
    getpid gettid getppid getuid geteuid getgid getegid getresuid getresgid getrlimit uname sysinfo getrandom
    exit exit_group
""".split()


@functools.cache
def library() -> Any:
    """The module `pyseccomp`. It looks for its library by starting programs: once, and before any wall stands.

    Raises:
        OSError: it or libseccomp2 is not on this machine; the text says which.
    """
    try:
        return importlib.import_module("pyseccomp")
    except (ImportError, RuntimeError) as error:
        raise OSError(str(error)) from error


def load() -> None:
    """Install the filter, for all threads of this process and for good. No new privileges must have been set before.

    Raises:
        OSError: pyseccomp or libseccomp2 is missing, or the kernel refuses.
    """
    seccomp = library()
    rules = seccomp.SyscallFilter(seccomp.ERRNO(errno.ENOSYS))
    rules.set_attr(seccomp.Attr.CTL_TSYNC, 1)
    rules.set_attr(seccomp.Attr.ACT_BADARCH, seccomp.KILL_PROCESS)  # 32-bit calls have other numbers

    def allow(name: str, *conditions: Any) -> None:
        number = seccomp.resolve_syscall(seccomp.Arch.NATIVE, name)
        if number >= 0:  # negative: not on this architecture
            rules.add_rule(seccomp.ALLOW, number, *conditions)

    def equal(at: int, value: int) -> Any:
        return seccomp.Arg(at, seccomp.EQ, value)

    def masked(at: int, mask: int, value: int) -> Any:
        return seccomp.Arg(at, seccomp.MASKED_EQ, mask, value)

    for name in _ALLOWED:
        allow(name)
    allow("open", masked(1, _WRITING, 0))
    allow("openat", masked(2, _WRITING, 0))
    allow("clone", masked(0, _CLONE_THREAD | _CLONE_NEW, _CLONE_THREAD))
    # Shared memory is not counted by RLIMIT_DATA either, and there is nobody to share it with.
    allow("mmap", masked(3, _MAP_KIND | _MAP_UNCOUNTED, _MAP_PRIVATE))
    for name in ("kill", "tgkill", "rt_tgsigqueueinfo"):
        allow(name, equal(0, os.getpid()))
    allow("prlimit64", equal(0, 0), equal(2, 0))  # read one's own
    for option in (_PR_SET_NAME, _PR_SET_VMA):
        allow("prctl", equal(0, option))
    for command in _FCNTL:
        allow("fcntl", equal(1, command))
    for request in (_TCGETS, _FIOCLEX):
        allow("ioctl", equal(1, request))
    rules.load()
