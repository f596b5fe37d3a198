#!/bin/sh
# container.sh PYTHON ROOT COMMAND...: runs COMMAND as the container of deploy/compose.yaml would, without Docker.
#
# In a mount namespace of its own: every file system read-only, /tmp a small one in memory from which nothing can be
# executed; then as user 10001 without capabilities, and none to be gained. Needs root and util-linux.
# PYTHON: the interpreter; its environment, its base and ROOT stay where they are and become readable for that user.
set -eu
if [ "${INSIDE_CONTAINER:-}" != yes ]; then
    INSIDE_CONTAINER=yes exec unshare --mount --propagation private -- sh "$0" "$@"
fi
python=$1 root=$2
shift 2

# Kept aside while what is above them is covered: /tmp, and a home that only root can enter.
# What lies in another of them comes with it: mounted before it, it would be hidden below it, and stay writable there.
kept=$("$python" -I -c '
import os, sys
places = set(map(os.path.realpath, (sys.prefix, sys.base_prefix, sys.argv[1])))
print("\n".join(sorted(p for p in places if not any(p.startswith(other + os.sep) for other in places))))
' "$root")
aside=/media
mount -t tmpfs -o mode=755 tmpfs $aside
number=0
for folder in $kept; do
    number=$((number + 1))
    mkdir "$aside/$number"
    mount --bind "$folder" "$aside/$number"
done
mount -t tmpfs -o size=256m,mode=1777,nosuid,nodev,noexec tmpfs /tmp
mount -t tmpfs -o mode=755 tmpfs /root
number=0
for folder in $kept; do
    number=$((number + 1))
    if [ ! -d "$folder" ]; then
        (umask 022 && mkdir -p "$folder")
    fi
    mount --bind "$aside/$number" "$folder"
done
# From here on nothing can be written but to /tmp, the devices, and the processes' own files.
awk '{ print $5 }' /proc/self/mountinfo | while read -r place; do
    case $place in
    /tmp | /dev | /dev/* | /proc | /proc/* | /sys | /sys/*) ;;
    *) mount -o remount,bind,ro "$place" 2>/dev/null || true ;;
    esac
done
cd "$root"
exec env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/tmp JAX_PLATFORMS=cpu PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 \
    setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all -- "$@"
