#!/bin/sh
# proxy.sh: makes sure that there is HAProxy, which the tests of deploy/proxy start.
#
# Found on PATH or in /usr/sbin it is used as it is; else installed by apt when root. Without it those tests are skipped
# at a desk, and fail in CI.
set -eu

NO_PROXY='The tests of deploy/proxy need HAProxy and found none: install it (Debian: apt-get install haproxy).\n'

PATH=$PATH:/usr/sbin:/usr/local/sbin

there() {
    haproxy -v </dev/null >/dev/null 2>&1
}

there && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo 'Installing HAProxy with apt-get.'
    # The package would start the service with a configuration of its own.
    DEBIAN_FRONTEND=noninteractive apt-get update -qq </dev/null &&
        DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends haproxy openssl </dev/null >/dev/null || true
    there && exit 0
fi
printf "$NO_PROXY" >&2
[ "${CI:-}" != true ] || exit 1
