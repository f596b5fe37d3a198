#!/bin/sh
# install.sh VENV LOCK...: makes the virtual environment VENV if need be and installs the LOCK files into it.
#
# Does nothing, in well under a second, when nothing changed. What was installed is remembered per lock in
# VENV/.installed-LOCK: the interpreter's identity, then the lock's text; compared as text, so no hashing tool is needed.
# Nothing outside VENV is ever written: the system's Python stays as it is. One exception, where root asks for it with
# apt: libseccomp2, a small library of the system without which the Doctor's workers lack one of their walls.
set -eu

NOT_OURS='%s is there, but it is no working virtual environment with Python 3.12 or newer: move it away or remove it, then run this again.\n'
NO_ENSUREPIP='%s cannot make a virtual environment because its venv or ensurepip module is missing: install it (Debian and Ubuntu: apt install python3-venv), then run this again.\n'
FAILED='The packages could not be installed into %s: see the message above; the first set-up needs a network and, since some packages are built per version, Python 3.12 to 3.14.\n'
MAKING='Making %s with %s\n'
NO_SECCOMP='The library libseccomp2 is not on this system: everything runs, but the workers that run pasted scripts stand behind one wall less (the status page says which). Debian and Ubuntu: apt install libseccomp2.\n'
INSTALLING='Installing %s into %s; the first time this takes a minute or two.\n'

here=$(cd "$(dirname "$0")" && pwd)
venv=$1
shift
python=$venv/bin/python
marker=$venv/.made-by-carry-lab

# What the installed packages depend on besides the lock: the interpreter, and the path that scripts in bin/ name.
identity() {
    "$python" -I -S -c 'import os, sys; v = sys.version_info; v < (3, 12) and sys.exit(1); print(sys.version, os.path.dirname(os.path.dirname(os.path.abspath(sys.executable))))' 2>/dev/null
}

# stamped LOCK IDENTITY: this very lock is already installed.
stamped() {
    { printf '%s\n' "$2"; cat "$1"; } | cmp -s - "$venv/.installed-$(basename "$1")"
}

now=$(identity) || now=
if [ -n "$now" ] && [ -f "$marker" ] && [ "$(cat "$marker")" = "$now" ]; then
    done=yes
    for lock in "$@"; do
        stamped "$lock" "$now" || done=no
    done
    [ $done = no ] || exit 0
else
    if [ -e "$venv" ] && [ -f "$marker" ]; then
        # Ours, and its Python is gone, too old, or the folder was moved: make it anew.
        rm -rf "$venv"
        now=
    fi
    if [ -z "$now" ]; then
        if [ -e "$venv" ]; then
            # Somebody else made it, and it does not work: not ours to delete.
            printf "$NOT_OURS" "$venv" >&2
            exit 1
        fi
        base=$("$here/find_python.sh")
        printf "$MAKING" "$venv" "$base"
        # The marker comes first, so that an interrupted set-up is known as ours and made anew.
        mkdir -p "$venv"
        printf 'unfinished\n' >"$marker"
        if "$base" -I -c 'import ensurepip, venv' 2>/dev/null; then
            "$base" -I -m venv "$venv"
        else
            uv=$("$here/find_python.sh" uv)
            if [ -z "$uv" ] || ! "$uv" venv --quiet --allow-existing --python "$base" "$venv"; then
                rm -rf "$venv"
                printf "$NO_ENSUREPIP" "$base" >&2
                exit 1
            fi
        fi
        now=$(identity)
    fi
    printf '%s\n' "$now" >"$marker"
fi

for lock in "$@"; do
    stamped "$lock" "$now" && continue
    printf "$INSTALLING" "$(basename "$lock")" "$venv"
    if ! sh "$here/pip.sh" "$venv" -r "$lock"; then
        printf "$FAILED" "$venv" >&2
        exit 1
    fi
    { printf '%s\n' "$now"; cat "$lock"; } >"$venv/.installed-$(basename "$lock")"
done

# Best effort, and never a reason to fail. Only a Linux has it; only a lock with pyseccomp wants it.
if [ "$(uname -s)" = Linux ] && cat "$@" | grep -q '^pyseccomp'; then
    found='import ctypes.util, sys; sys.exit(ctypes.util.find_library("seccomp") is None)'
    if ! "$python" -I -c "$found" 2>/dev/null; then
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
            { apt-get install -y --no-install-recommends libseccomp2 || { apt-get update && apt-get install -y --no-install-recommends libseccomp2; }; } >/dev/null 2>&1 </dev/null || true
        fi
        "$python" -I -c "$found" 2>/dev/null || printf "$NO_SECCOMP" >&2
    fi
fi
