"""Repairs that only a script can have: they change its set-up, not one call.

A rule that knows a call alone proposes what can be done to that call. Where the whole script is there, there is more
to try; like all others these are shown only when the edited script was run and holds.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from core.base.places import Span
from core.base.violation import TextEdit
from core.contract.engine import Found
from core.contract.rule import Repair
from core.contract.script_record import ScriptRecord

TITLE_X64 = "Switch 64-bit numbers on for the whole script"
X64 = '{jax}config.update("jax_enable_x64", True)\n'


def repairs_of_scripts(found: Found, record: ScriptRecord) -> Iterator[Repair]:
    """What else may mend a fault, by its code."""
    make = BY_CODE.get(found.rule.code)
    if make is not None:
        yield from make(record)


def _x64(record: ScriptRecord) -> Iterator[Repair]:
    """64-bit mode, switched on behind the imports."""
    source = record.source
    jax = next((a for a, public in source.imports.items() if public == "jax"), None)
    imports = [s for s in source.tree.body if isinstance(s, ast.Import | ast.ImportFrom)]
    if record.x64 or jax is None or not imports:
        return
    line = max(s.end_lineno or s.lineno for s in imports) + 1
    edit = TextEdit(Span(line, 0, line, 0), X64.replace("{jax}", f"{jax}."))
    yield Repair("text", TITLE_X64, lambda _: None, "", (edit,))


BY_CODE: dict[str, Callable[[ScriptRecord], Iterator[Repair]]] = {"N504": _x64}
