#!/bin/sh
# Prints the path of the first Python on PATH that really starts and is new enough; exits 1 with one sentence if none.
# With the argument "uv" it prints the first uv that really starts instead (and is silent if there is none).
#
# Why not `command -v`: a version manager leaves shims on PATH that exist and do not start (they print "command not
# found" for a version that is not selected here), and a good Python may stand behind such a shim, later on PATH.
set -eu

NO_PYTHON='Carry Lab needs Python 3.12 or newer and found none: install it from https://www.python.org/downloads/ (or install uv, https://docs.astral.sh/uv/), then run this again.'
PROBE='import sys; sys.exit(1) if sys.version_info < (3, 12) else print(sys.executable)'

# each_on_path NAME: every executable of that name on PATH, in order.
each_on_path() {
    printf '%s\n' "$PATH" | tr ':' '\n' | while IFS= read -r folder; do
        if [ -f "${folder:-.}/$1" ] && [ -x "${folder:-.}/$1" ]; then
            printf '%s\n' "${folder:-.}/$1"
        fi
    done
}

find_uv() {
    each_on_path uv | while IFS= read -r candidate; do
        if "$candidate" --version </dev/null >/dev/null 2>&1; then
            printf '%s\n' "$candidate"
            break
        fi
    done
}

find_python() {
    for name in python3.12 python3.13 python3.14 python3.15 python3.16 python3 python; do
        each_on_path "$name"
    done | while IFS= read -r candidate; do
        # -I: neither PYTHONPATH nor a user's site may decide whether an interpreter is fit.
        if found=$("$candidate" -I -c "$PROBE" </dev/null 2>/dev/null) && [ -n "$found" ]; then
            printf '%s\n' "$found"
            break
        fi
    done
}

if [ "${1:-python}" = uv ]; then
    find_uv
    exit 0
fi

python=$(find_python)
if [ -z "$python" ]; then
    uv=$(find_uv)
    if [ -n "$uv" ]; then
        # uv knows Pythons that are not on PATH, and can bring one; --system: never a virtual environment's.
        "$uv" python find --no-project --system '>=3.12' >/dev/null 2>&1 || "$uv" python install 3.12 >&2 || true
        python=$("$uv" python find --no-project --system '>=3.12' 2>/dev/null || true)
    fi
fi
if [ -z "$python" ]; then
    printf '%s\n' "$NO_PYTHON" >&2
    exit 1
fi
printf '%s\n' "$python"
