"""Every number that limits anything, in one table. Each can be set by an environment variable of the process."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

#: "max 100000", or microseconds of CPU time that a container may use in so many.
_CPU_QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")
#: Bytes of memory that a container may use, or "max".
_MEMORY_MAX: Final = Path("/sys/fs/cgroup/memory.max")
#: Bytes: with less there is one worker at a time, and a smaller one.
_ROOMY: Final = 2_000_000_000
_PREFIX: Final = "CARRY_LAB_"
#: Of an override: whatever counts it must hold it.
_DIGITS: Final = 15


@dataclass(frozen=True, slots=True)
class Limit:
    """One budget: its value, its unit, and why it is that number. Overridden by ``CARRY_LAB_<NAME>``."""

    name: str
    value: int
    unit: str
    why: str
    default: int | None = None  # what it would be, where the environment says something else

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return f"{_PREFIX}{self.name.upper()}"


def _cores() -> int:
    """Cores that this process may use (a container's quota included), at least 1."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        quota, period = _CPU_QUOTA.read_text().split()
        cores = min(cores, max(1, int(quota) // int(period)))
    return cores


def _small() -> bool:
    """Whether this machine, or the container we are in, has little memory: 1 GB at a free host of Streamlit apps."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):
        memory = min(memory, int(_MEMORY_MAX.read_text()))
    return memory < _ROOMY


_SMALL: Final = _small()

_TABLE = (
    Limit("length", 512, "steps", "T on a page: the plot stays readable and a Python loop stays quick"),
    Limit("hidden", 256, "units", "hidden_features of a cell"),
    Limit("batch", 64, "examples", "B of a cell or a sequence"),
    Limit("features", 128, "features", "F of an input"),
    Limit("axes", 4, "axes", "of one typed array"),
    Limit("elements", 262_144, "elements", "in any one array: init, xs, ys, the carry over time"),
    Limit("typed_numbers", 20_000, "numbers", "typed or pasted into one input"),
    Limit("typed_text", 1_000_000, "characters", "read from one paste before its numbers are counted"),
    Limit("programs", 32, "programs", "compiled and kept: without an end to them, a process dies of its memory maps"),
    Limit("gradient_programs", 24, "programs", "of derivatives, compiled at their exact length and kept beside those"),
    Limit("kept_programs", 4_000, "programs", "kept on disk for the next start, where a folder is named: 20 kB each"),
    Limit(
        "compile_burst",
        750,
        "programs",
        "compiled at a stretch for one session: 40 sizes of a cell, a key held for 30 s",
    ),
    Limit("compile_refill", 2, "programs a second", "that it may have more: half a core of the longest ones, for ever"),
    Limit("turn_wait", 250, "ms", "that a page's script waits for the one before it, then both go on side by side"),
    Limit("collect_every", 5, "seconds", "between two collections of garbage, which hold everybody up for some 30 ms"),
    Limit("kept_cells", 32, "cells", "whose parameters are kept, 1.6 MB at most: building one takes as long as a run"),
    Limit("kept_seed", 1_000, "seeds", "from 0 on, whose cells may be kept; that of any other is made anew each time"),
    Limit(
        "map_work", 20_000_000_000, "multiplications", "of one map of gradients through time: half a second, measured"
    ),
    Limit("eager_programs", 5_000, "programs", "of operations run without jit, before JAX's own caches are dropped"),
    Limit(
        "unroll", 32, "steps", "copies of the step in one program: 16 compile in 0.3 s, 128 in 3 to 8, 512 in a minute"
    ),
    Limit("check_steps", 64, "steps", "of the Python loop beside the result unless all are asked for"),
    Limit("kept", 16_777_216, "elements", "of the carries over time of a script's scans, kept to be drawn"),
    Limit("drawn_steps", 2_048, "steps", "of one scan of a script, drawn beside each other"),
    Limit("drawn_scans", 12, "scans", "of one script, drawn one below the other"),
    Limit("work", 4_000_000_000, "numbers", "computed by one scan in a script: some seconds on one core"),
    Limit("worker_seconds", 5, "s", "of one script on one core, from its own start: the queue takes none of it"),
    Limit(
        "worker_memory",
        400 if _SMALL else 1_500,
        "MB",
        "of one worker: half a page's arrays, and XLA's own needs while it compiles",
    ),
    Limit("script_output", 65_536, "characters", "of what a script prints"),
    Limit("script_text", 20_000, "characters", "of a script: some 500 lines; what is longer is no minimal example"),
    Limit("worker_files", 64, "files", "that a worker may have open: its channel, and the library it reads just now"),
    Limit(
        "worker_threads", 512, "threads", "of one worker where they can be counted for it alone; JAX starts 6 a core"
    ),
    Limit("worker_alarm", 4_000, "ms", "after which a worker stops its script itself, so that shapes are still told"),
    Limit("worker_start", 60, "s", "for a worker to be made and warmed (0.6 measured), before it is given up"),
    Limit(
        "running",
        1 if _SMALL else _cores(),
        "workers",
        "computing at the same time: one a core, so that 5 s are 5 s of a core",
    ),
    Limit(
        "workers",
        1 if _SMALL else 64,
        "workers",
        "alive at the same time: a class of 50, each with one of their own, and spares",
    ),
    Limit("spares", 1 if _SMALL else 2, "workers", "warmed for whoever comes next"),
    Limit("worker_room", 150, "MB", "wanted free before another worker is made: it has 80 of its own, warmed"),
    Limit("memory_kept", 100 if _SMALL else 500, "MB", "of the machine that workers leave to the pages"),
    Limit("worker_idle", 1_200, "s", "after which a worker that nobody asks anything is let go"),
    Limit(
        "worker_idle_memory",
        300 if _SMALL else 600,
        "MB",
        "that a worker may hold between two scripts: more is somebody's left-overs",
    ),
    Limit("worker_jobs", 200, "requests", "that one worker answers: programs pile up, and memory maps with them"),
    Limit("queue", 200, "requests", "waiting at the same time; with more, the newest are turned away"),
    Limit("request_bytes", 4_194_304, "bytes", "of one request: `typed_text` characters, in UTF-8"),
    Limit("answer_bytes", 16_777_216, "bytes", "of one answer: what a browser can be sent, and JSON read in 0.2 s"),
    Limit("answer_items", 20_000, "items", "of any one list in an answer: a worker may have been taken over"),
    Limit("answer_text", 1_000_000, "characters", "of any one text in an answer"),
    Limit("answer_numbers", 4_194_304, "numbers", "of any one array in an answer"),
    Limit("fixes_shown", 3, "fixes", "of one fault: the best ones"),
    Limit("fixes_tried", 10, "edits", "tried for one fault; each checks the whole script again"),
    Limit("fixes_together", 6, "fixes", "put together by “Apply all”"),
    Limit("kept_evaluations", 8, "values", "of one expression of a script, kept to be shown"),
    Limit("kept_calls", 64, "calls", "of one call in a script, kept to be looked at by rules"),
    Limit("loop_evaluations", 10_000, "values", "of one expression, after which a loop runs at its own speed"),
    Limit("latest_values", 100_000, "values", "of a script held at a time, to put its calls together"),
    Limit("held_bytes", 134_217_728, "bytes", "of large arrays of a script held for that"),
    Limit("objects", 20_000, "objects", "of a script searched for tracers that leaked, or put back as they were"),
    Limit("graded_numbers", 4_096, "numbers", "of one result of a challenge that are compared"),
    Limit("player_bytes", 300_000, "bytes", "of one scan sent to a browser for its player, with every rerun"),
    Limit("link_text", 4_000, "characters", "of one typed input in a link"),
    Limit("class_keys", 32, "controls", "that one link may hide, and that it may lock"),
    Limit("url_text", 8_192, "characters", "of state in a link"),
    Limit("weights_bytes", 4_194_304, "bytes", "of a file of parameters: both cells of the widest layer are 3.2 MB"),
    Limit("weights_header", 131_072, "bytes", "of its header: names, shapes and versions of some hundred arrays"),
    Limit("weights_depth", 12, "levels", "of nested JSON in its header; ours has 6"),
    Limit("weights_axes", 8, "axes", "of an array in it; NumPy has 64 at most"),
    Limit("weights_leaves", 512, "arrays", "in it: both cells have 24, and a control forward some more"),
    Limit("report_least_runs", 30, "runs", "timed for a report: with fewer there is no 90th percentile to speak of"),
    Limit("report_runs", 200, "runs", "timed for a report at most: a 99th percentile with two runs above it"),
    Limit("report_warm_up", 3, "runs", "that a report does before it times any"),
    Limit(
        "report_latency", 2_000, "ms", "of timed runs in one report of a page: the rest of a worker's seconds compiles"
    ),
    Limit(
        "report_latency_alone",
        60_000,
        "ms",
        "of timed runs in a report from the command line, which nobody waits behind",
    ),
    Limit("report_scans", 4, "scans", "of one script that a report looks at, from the first on"),
    Limit("report_text", 20_000, "characters", "of one text in a part of a report that a worker sends"),
    Limit("report_items", 100_000, "items", "of one list in it"),
    Limit("report_declared", 500, "characters", "of one declared field of a report"),
    Limit("report_keys", 256, "requests", "for keys that a report lists one by one"),
    Limit("report_inputs", 256, "arrays", "that a report lists by shape, dtype and hash"),
    Limit("report_values", 20_000, "numbers", "that a report writes out when it is asked for values"),
    Limit("report_source", 16_777_216, "bytes", "of a script or notebook that a report is made of"),
    Limit("report_bytes", 4_194_304, "bytes", "of a report that is read back"),
    Limit("baseline_numbers", 65_536, "numbers", "in one array of a baseline: it is a small set, kept in a repository"),
    Limit("baseline_bytes", 2_097_152, "bytes", "of a baseline's file, and of one that is given to be compared with"),
    Limit("baseline_text", 400_000, "characters", "of one typed input in it"),
    Limit("baseline_items", 2_000, "entries", "of a list or an object in its header"),
    Limit("baseline_header", 524_288, "bytes", "of its header: its settings, and each leaf by path with a hash"),
    Limit("challenge_answers", 400, "runs", "of challenges of ours, kept for everybody: some kB each"),
    Limit("challenge_made", 40, "runs", "of challenges made from a seed, kept by the session they were made for"),
    Limit("challenge_kept", 100, "challenges", "of which a session keeps scripts and last answers"),
    Limit("challenge_wait", 60, "s", "after which nobody waits longer for what a program of ours gives"),
    Limit("tally_rooms", 64, "rooms", "in which answers of a class are counted, at the same time"),
    Limit("tally_opened", 6, "rooms", "that one session may open, one after the other: a teacher's day"),
    Limit(
        "tally_left",
        300,
        "s",
        "without a vote and without its owner's browser, after which a room may give way: a reload is sooner back",
    ),
    Limit("tally_challenges", 200, "challenges", "counted in one room"),
    Limit(
        "tally_session", 60, "challenges", "for which one session is counted in a room: more than a class goes through"
    ),
    Limit("tally_votes", 2_000, "votes", "counted for one challenge in one room: far beyond any class"),
    Limit("tally_seconds", 14_400, "s", "after which a room is gone: a long workshop"),
    Limit("tally_quiet", 3_600, "s", "without a vote, after which a room may give way to a new one"),
    Limit(
        "tally_empty", 900, "s", "the same for a room that nobody has voted in: opened before a class, or by mistake"
    ),
)


def read_limits(environ: Mapping[str, str]) -> dict[str, Limit]:
    """The table with the overrides of an environment put in.

    Raises:
        ValueError: an override is not a positive whole number; the message names the variable, not its value.
    """
    out = {}
    for limit in _TABLE:
        key = limit.variable
        if key in environ:
            text = environ[key].strip()
            if not (text.isascii() and text.isdecimal() and text.strip("0")):
                raise ValueError(f"{key} must be a positive whole number")
            if len(text) > _DIGITS:
                raise ValueError(f"{key} must be a positive whole number of at most {_DIGITS} digits")
            limit = replace(limit, value=int(text), default=limit.value)
        out[limit.name] = limit
    return out


def unknown_variables(environ: Mapping[str, str], known: Iterable[str] = ()) -> tuple[tuple[str, str], ...]:
    """Variables that look like ours and are none, most likely misspelt: each with the nearest of ours, or "".

    Args:
        environ: the environment; its values are not looked at.
        known: our variables beside those of the table.
    """
    ours = {limit.variable for limit in _TABLE} | set(known)
    strange = sorted(name for name in environ if name.startswith(_PREFIX) and name not in ours)
    endings = {name.removeprefix(_PREFIX): name for name in ours}
    near = {name: difflib.get_close_matches(name.removeprefix(_PREFIX), endings, 1) for name in strange}
    return tuple((name, endings[found[0]] if found else "") for name, found in near.items())


LIMITS: Mapping[str, Limit] = read_limits(os.environ)
