"""The scan player: shape flow, Play and the Python loop, moving in the browser with no rerun.

A components.v2 widget. Its JavaScript is several small ES modules that an editor understands as they are; Streamlit
takes one inline module, so they are joined here, once per process.

Streamlit sends a component's code again with every change of its data, ten times the size of the data. So there are
two components: one has all the code and no data, stays the same and is sent once a session; the other has the data
and a few lines that hand them over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamlit as st

_HERE = Path(__file__).parent
#: In the order of their imports: each file uses only files before it.
_MODULES = (
    "dom.js",
    "model.js",
    "code.js",
    "steptext.js",
    "flowparts.js",
    "flow.js",
    "flowbroken.js",
    "follow.js",
    "player.js",
)
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./\w+\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)


def joined_modules() -> str:
    """All files as one ES module: imports between them dropped, only the default export left, the styles a constant."""
    css = json.dumps((_HERE / "player.css").read_text(encoding="utf-8"))
    sources = ((_HERE / name).read_text(encoding="utf-8") for name in _MODULES)
    return "\n".join([f"const CSS = {css};", *(_EXPORT.sub("", _IMPORT.sub("", source)) for source in sources)])


_HAND_OVER = """
export default async function (component) {
  const slot = (globalThis.carryLabScanPlayer ??= { waiting: [] });
  if (!slot.mount) await new Promise((ready) => slot.waiting.push(ready));
  return slot.mount(component);
}
"""

_code = st.components.v2.component("carry_lab.scan_player_code", js=joined_modules())
_mount = st.components.v2.component("carry_lab.scan_player", html='<div class="scan-player"></div>', js=_HAND_OVER)


def scan_player(data: Mapping[str, Any], *, key: str) -> None:
    """Shows a scan.

    Args:
        data: what `core.plots.player.player_payload` returns.
        key: the widget's key; the browser remembers the position t under it.
    """
    with st.container(gap=None):
        _mount(data={**data, "key": key}, key=key)
        _code(key=f"{key}_code")
