"""What is imported is declared, and what is declared is locked."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
OWN = {"app", "core", "pages", "deploy"}


def _locked(name: str) -> dict[str, Version]:
    """What a lock pins."""
    pins = re.findall(r"^([a-z0-9-]+)==([^ ;\\]+)", (ROOT / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {package: Version(version) for package, version in pins}


def _third_party(source: str) -> set[str]:
    """The top-level packages that a source imports from elsewhere."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names - OWN - set(sys.stdlib_module_names)


def _product_files() -> list[Path]:
    return [ROOT / "app.py", *(file for top in ("core", "pages", "deploy") for file in (ROOT / top).rglob("*.py"))]


def test_every_import_is_a_declared_dependency() -> None:
    declared = {Requirement(text).name for text in PROJECT["project"]["dependencies"]}
    imported = {name: str(file) for file in _product_files() for name in _third_party(file.read_text(encoding="utf-8"))}
    assert "jax" in imported, "nothing found: this test looks at the wrong place"
    assert {name: file for name, file in imported.items() if name not in declared} == {}


def test_the_newest_versions_are_tried_with_all_that_core_imports() -> None:
    listed = re.search(r"^NEWEST='(.*)'$", (ROOT / "deploy" / "newest.sh").read_text(encoding="utf-8"), re.MULTILINE)
    assert listed is not None
    installed = {canonicalize_name(Requirement(name).name) for name in listed[1].split()} | set(
        _locked("requirements-test.txt")
    )
    imported = {
        name for file in (ROOT / "core").rglob("*.py") for name in _third_party(file.read_text(encoding="utf-8"))
    }
    assert "jax" in imported
    assert {name for name in imported if canonicalize_name(name) not in installed} == set()


def test_the_locks_fulfil_what_is_declared() -> None:
    for group, lock in (
        (PROJECT["project"]["dependencies"], "requirements.txt"),
        (PROJECT["dependency-groups"]["test"], "requirements-test.txt"),
    ):
        pins = _locked(lock)
        wanted = [Requirement(text) for text in group]
        missing = [str(need) for need in wanted if canonicalize_name(need.name) not in pins]
        assert missing == []
        assert [str(need) for need in wanted if pins[canonicalize_name(need.name)] not in need.specifier] == []


def test_the_two_locks_agree() -> None:
    run, test = _locked("requirements.txt"), _locked("requirements-test.txt")
    assert {name for name in run.keys() & test.keys() if run[name] != test[name]} == set()


def test_the_guides_versions_are_pinned() -> None:
    pins = _locked("requirements.txt")
    assert {name: str(pins[name]) for name in ("jax", "jaxlib", "flax")} == {
        "jax": "0.11.2", "jaxlib": "0.11.2", "flax": "0.12.10",
    }  # fmt: skip
