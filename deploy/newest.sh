#!/bin/sh
# newest.sh VENV: installs the newest releases of what core computes with into VENV, whatever the lock says.
# Once a day at most: the newest is what the index says today.
set -eu

# Flax 0.12 is what the catalogue is written for; the others follow without a pin.
NEWEST='jax jaxlib flax>=0.12.10,<0.13 ml_dtypes numpy plotly segno psutil optax RestrictedPython pyseccomp nbformat safetensors jsonschema prometheus_client'

here=$(cd "$(dirname "$0")" && pwd)
venv=$1
stamp=$venv/.newest
today="$(date +%Y-%m-%d) $NEWEST"
# A lock that was installed after the newest has put older versions back.
if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$today" ] || [ -n "$(find "$venv" -maxdepth 1 -name '.installed-*' -newer "$stamp")" ]; then
    # shellcheck disable=SC2086
    sh "$here/pip.sh" "$venv" --upgrade $NEWEST
    printf '%s\n' "$today" >"$stamp"
fi
"$venv/bin/python" -c 'from importlib.metadata import version as v; print("newest: jax", v("jax"), "jaxlib", v("jaxlib"), "flax", v("flax"), "numpy", v("numpy"))'
