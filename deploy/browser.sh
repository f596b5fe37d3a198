#!/bin/sh
# browser.sh PYTHON: makes sure that the browser tests find a Chromium that really starts; exits 1 with one sentence if
# none can be had. Order: `chromium` on PATH; Debian's package, when root; Playwright's own build.
set -eu

NO_BROWSER='The browser tests need Chromium and found none: install it (Debian: apt-get install chromium), or let Playwright download one: %s -m playwright install chromium\n'

python=$1
as_root=no
[ "$(id -u)" = 0 ] && as_root=yes

starts() {
    [ -n "$1" ] && "$1" --version </dev/null >/dev/null 2>&1
}

on_path() {
    starts "$(command -v chromium || true)"
}

playwrights_own() {
    # shellcheck disable=SC2016
    starts "$("$python" -c 'from playwright.sync_api import sync_playwright as s
with s() as p: print(p.chromium.executable_path)' 2>/dev/null || true)"
}

on_path && exit 0
playwrights_own && exit 0
if [ $as_root = yes ] && command -v apt-get >/dev/null 2>&1; then
    echo 'Installing Chromium with apt-get.'
    # Fonts: without them headings are measured and photographed as empty boxes. On Ubuntu the package is an empty
    # hull around a snap, hence the check afterwards.
    if DEBIAN_FRONTEND=noninteractive apt-get update -qq </dev/null &&
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            chromium fonts-dejavu-core fonts-liberation fonts-noto-color-emoji </dev/null >/dev/null; then
        on_path && exit 0
    fi
fi
echo "Installing Playwright's own Chromium."
if [ $as_root = yes ] && command -v apt-get >/dev/null 2>&1; then
    "$python" -m playwright install --with-deps chromium || true
else
    "$python" -m playwright install chromium || true
fi
playwrights_own && exit 0
# shellcheck disable=SC2059
printf "$NO_BROWSER" "$python" >&2
exit 1
