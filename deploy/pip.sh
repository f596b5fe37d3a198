#!/bin/sh
# pip.sh VENV ARGUMENT...: `pip install ARGUMENT...` into the virtual environment VENV and nowhere else.
# uv does it several times faster where there is one; pip, which knows this machine's own mirrors, is always there.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
python=$1/bin/python
shift

# A progress display for people, only errors for logs.
uv_quiet=--quiet
pip_quiet=-qq
if [ -t 1 ]; then
    uv_quiet=
    pip_quiet=
fi

# A user's settings must not send packages elsewhere.
unset PIP_TARGET PIP_PREFIX PIP_ROOT PYTHONPATH PYTHONHOME
export PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

uv=$("$here/find_python.sh" uv)
# shellcheck disable=SC2086
if [ -n "$uv" ] && "$uv" pip install $uv_quiet --python "$python" "$@"; then
    exit 0
fi
# shellcheck disable=SC2086
exec "$python" -I -m pip install $pip_quiet "$@"
