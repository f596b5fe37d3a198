#!/bin/sh
# lock.sh: compiles requirements.txt, requirements-test.txt and deploy/requirements-node.txt from pyproject.toml, for every system and Python >= 3.12.
# Keeps what is locked where it still fits; `make lock UPGRADE=--upgrade` takes the newest of everything.
set -eu

NO_UV='Compiling the locks needs uv: install it (https://docs.astral.sh/uv/), then run this again.'

cd "$(dirname "$0")/.."
uv=$(sh deploy/find_python.sh uv)
if [ -z "$uv" ]; then
    printf '%s\n' "$NO_UV" >&2
    exit 1
fi
compile() {
    # shellcheck disable=SC2086
    "$uv" pip compile --quiet --universal --python-version 3.12 --generate-hashes --no-emit-index-url \
        --custom-compile-command 'make lock' ${UPGRADE:-} "$@"
}
compile pyproject.toml --output-file requirements.txt
compile --group test --constraints requirements.txt --output-file requirements-test.txt
compile --group node --output-file deploy/requirements-node.txt
