"""The player's modules are joined into one script: in order, with no name declared twice."""

import re
from pathlib import Path

from pages.widgets.player import _MODULES, joined_modules

WIDGET = Path(__file__).parents[2] / "pages" / "widgets" / "player"


def sources() -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(WIDGET.glob("*.js"))}


def test_the_modules_join_into_one() -> None:
    files = sources()
    assert set(_MODULES) == set(files)
    for position, name in enumerate(_MODULES):
        for used in re.findall(r'from "\./(\w+\.js)"', files[name]):
            assert used in _MODULES[:position], f"{name} uses {used}, which comes later"
    joined = joined_modules()
    assert not re.search(r"^import ", joined, re.MULTILINE)
    assert re.findall(r"^export .*", joined, re.MULTILINE) == ["export default function () {"]
    declared = re.findall(r"^(?:async )?(?:const|let|class|function) (\w+)", joined, re.MULTILINE)
    assert len(declared) == len(set(declared))
