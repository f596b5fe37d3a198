"""The house keeps its shape: what stands where, how long a file may be, and which way nobody imports."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VIEW_LINES = 150
FILE_LINES = 500
#: A longer file says why in its first lines, in these words.
EXCUSE = "Longer than 500 lines because"

TOP_LEVEL = {
    "app.py", "pages", "core", "tests", "requirements.txt", ".streamlit",
    "README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md",
    "Makefile", "pyproject.toml", "requirements-test.txt", ".python-version", ".ci", "deploy",
    ".gitignore", ".gitattributes",
}  # fmt: skip
LEFT_BEHIND = {
    ".git", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".import_linter_cache", ".hypothesis",
    "test-results",
}  # fmt: skip


def _tracked() -> list[Path]:
    """Every file that is, or is about to be, in the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    if listed.returncode == 0:
        return [Path(name) for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]
    # No clone but an unpacked archive: everything but what tools leave behind.
    files = (file.relative_to(ROOT) for file in ROOT.rglob("*") if file.is_file())
    return [file for file in files if not (LEFT_BEHIND & set(file.parts) or file.parts[0].startswith(".venv"))]


def _python_files(*tops: str) -> list[Path]:
    return [file for file in _tracked() if file.suffix == ".py" and file.parts[0] in tops]


def _lines(file: Path) -> list[str]:
    return (ROOT / file).read_text(encoding="utf-8").splitlines()


def _imported(source: str) -> Iterator[str]:
    """The full name of every module that a source text imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def _page_paths(source: str) -> set[str]:
    """Every text in a source that names a Python file: what `st.Page` and `st.switch_page` are given."""
    texts = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    return {text for text in texts if isinstance(text, str) and text.endswith(".py") and " " not in text}


def test_only_known_names_at_the_top() -> None:
    assert {file.parts[0] for file in _tracked()} - TOP_LEVEL == set()


def test_page_scripts_live_in_views() -> None:
    # Streamlit 1.67 opens a flat pages/x.py past app.py on the first deep link of a fresh process.
    scripts = [file for file in _python_files("pages") if file.name != "__init__.py"]
    assert scripts, "no page found: this test looks at the wrong place"
    assert [str(file) for file in scripts if file.parts[1] not in ("views", "widgets")] == []


def test_navigation_names_views_that_exist() -> None:
    paths = _page_paths((ROOT / "app.py").read_text(encoding="utf-8"))
    views = {str(file) for file in _python_files("pages") if file.parts[1] == "views" and file.name != "__init__.py"}
    assert paths == views


def test_a_flat_page_would_be_seen() -> None:
    assert _page_paths("st.navigation([st.Page('pages/scan.py')])") == {"pages/scan.py"}


def test_views_are_short() -> None:
    views = [file for file in _python_files("pages") if file.parts[1] == "views"]
    assert {str(file): len(_lines(file)) for file in views if len(_lines(file)) > VIEW_LINES} == {}


def test_no_file_is_long_without_saying_why() -> None:
    files = _python_files("app.py", "pages", "core", "tests", "deploy")
    long = [file for file in files if len(_lines(file)) > FILE_LINES]
    assert [str(file) for file in long if EXCUSE not in "\n".join(_lines(file)[:20])] == []


def test_nobody_imports_app() -> None:
    importers = {
        str(file)
        for file in _python_files("core", "pages", "deploy")
        for name in _imported((ROOT / file).read_text(encoding="utf-8"))
        if name.split(".")[0] in {"app", "tests"}
    }
    assert importers == set()


def test_nothing_depends_on_the_shared_folder() -> None:
    # A user's clone has no ../shared.
    folder = "/work/" + "shared"
    readers = [
        str(file) for file in _tracked() if file.suffix in {".py", ".sh", ".toml"} and folder in "\n".join(_lines(file))
    ]
    assert readers == []
