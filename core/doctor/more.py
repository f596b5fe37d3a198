"""Repairs that only a script can have: they change its set-up, not one call.

A rule that knows a call alone proposes what can be done to that call. Where the whole script is there, there is more
to try; like all others these are shown only when the edited script was run and holds.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator

from core.base.places import Span
from core.base.violation import TextEdit
from core.contract.engine import Found
from core.contract.rule import Repair
from core.contract.script_record import ScriptRecord

TITLE_X64 = "Switch 64-bit numbers on for the whole script"
X64 = '{jax}config.update("jax_enable_x64", True)\n'
IMPORT = "import jax\n"


def repairs_of_scripts(found: Found, record: ScriptRecord) -> Iterator[Repair]:
    """What else may mend a fault, by its code."""
    make = BY_CODE.get(found.rule.code)
    if make is not None:
        yield from make(record)


def _x64(record: ScriptRecord) -> Iterator[Repair]:
    """64-bit mode, switched on behind the first import, before any array is made."""
    source = record.source
    if record.x64:
        return
    body = list(itertools.dropwhile(_opening, source.tree.body))
    imports: list[ast.Import | ast.ImportFrom] = []
    for statement in body:
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            break
        imports.append(statement)
    bound = {alias.asname or alias.name.partition(".")[0] for s in imports for alias in s.names}
    jax = next((a for a, public in source.imports.items() if public == "jax" and a in bound), None)
    text = X64.replace("{jax}", f"{jax or 'jax'}.")
    if jax is None:  # imported within a function only, or known by other names: `from jax import numpy`
        text = IMPORT + text
    line = 1
    if imports:
        line = max(s.end_lineno or s.lineno for s in imports) + 1
    elif body:
        line = min(s.lineno for s in (body[0], *getattr(body[0], "decorator_list", ())))
    edit = TextEdit(Span(line, 0, line, 0), text)
    yield Repair("text", TITLE_X64, lambda _: None, "", (edit,))


def _opening(statement: ast.stmt) -> bool:
    """What may stand before a script's first import: its docstring and ``from __future__``."""
    if isinstance(statement, ast.ImportFrom):
        return statement.module == "__future__"
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


BY_CODE: dict[str, Callable[[ScriptRecord], Iterator[Repair]]] = {"N504": _x64}
