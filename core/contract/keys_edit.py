"""How a script is rewritten so that each step gets a key of its own: pieces of text edits, tried by the Doctor.

Nothing here is sure to work: a key's name may mean something else where the scan is called, a step may be used twice.
The Doctor runs each edited script and shows only what holds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from core.base.places import Span
from core.base.violation import TextEdit
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import ScanSite
from core.contract.source import Function

type Edits = tuple[TextEdit, ...]

SPLIT, FOLD = "jax.random.split", "jax.random.fold_in"


def key_argument(call: ast.expr | None) -> ast.expr | None:
    """The key that a call of `jax.random` was given."""
    if not isinstance(call, ast.Call):
        return None
    named = next((k.value for k in call.keywords if k.arg == "key"), None)
    first = call.args[0] if call.args and not isinstance(call.args[0], ast.Starred) else None
    return named if named is not None else first


def inside(facts: ScriptFacts, node: ast.AST, function: Function | None) -> bool:
    """Whether a node stands in a function, or in one inside it."""
    return any(around is function for around in facts.source.enclosing(node))


def free_names(scope: ast.AST, *wanted: str) -> list[str]:
    """Names like these that nothing in a scope has yet."""
    used = {n.id for n in ast.walk(scope) if isinstance(n, ast.Name)}
    used |= {a.arg for a in ast.walk(scope) if isinstance(a, ast.arg)}
    out = []
    for name in wanted:
        while name in used:
            name += "_"
        used.add(name)
        out.append(name)
    return out


@dataclass(frozen=True, slots=True, eq=False)
class Spelling:
    """How the script writes public functions, and the import that it lacks."""

    facts: ScriptFacts

    def of(self, public: str) -> str:
        """A public name as the script would write it, else in full (see `imports`)."""
        return self.facts.spelled(public) or public

    def imports(self, *publics: str) -> Edits:
        """``import jax`` in front of the first import, where a name written in full needs it."""
        if all(self.facts.spelled(p) is not None for p in publics):
            return ()
        first = next((s for s in self.facts.source.tree.body if isinstance(s, ast.Import | ast.ImportFrom)), None)
        if first is None:
            return ()
        span = self.facts.span(first)
        return (TextEdit(Span(span.line, span.col, span.line, span.col), "import jax\n"),)


def replaced(facts: ScriptFacts, nodes: Iterable[ast.expr], text: str) -> Edits:
    """The same text in the place of each of these."""
    return tuple(TextEdit(facts.span(node), text) for node in dict.fromkeys(nodes))


# --- a key for each step --------------------------------------------------------------------------------------------


def x_parameter(step: Function) -> ast.arg | None:
    """The parameter of a step that takes x: the last one without a default."""
    plain = [*step.args.posonlyargs, *step.args.args]
    plain = plain[: len(plain) - len(step.args.defaults)]
    return plain[-1] if len(plain) >= 2 else None


def keys_through_xs(facts: ScriptFacts, site: ScanSite, keys: str, wanted: str) -> Iterator[tuple[str, Edits]]:
    """The name that a step knows its own key by, with the edits that bring it there.

    Args:
        facts: the script.
        site: its scan.
        keys: the text of an array of keys, one for each step, as it is to stand in the scan's call.
        wanted: the name it should have.
    """
    step, call = site.step, site.node
    x = None if step is None else x_parameter(step)
    if step is None or call is None or x is None:
        return
    (name,) = free_names(step, wanted)
    xs = site.arguments.get("xs")
    if site.call.xs is None:
        yield name, (*_set_xs(facts, call, xs, keys), TextEdit(facts.span(x), _annotated(name, x)))
        return
    if xs is None:
        return
    text = facts.source.text_of(xs)
    given = _set_xs(facts, call, xs, f"({text}, {keys})")
    if isinstance(step, ast.Lambda):
        uses = [n for n in ast.walk(step.body) if isinstance(n, ast.Name) and n.id == x.arg]
        yield f"{x.arg}[1]", (*given, *replaced(facts, uses, f"{x.arg}[0]"))
    else:
        first = next(s for s in step.body if not _docstring(s, step))
        yield name, (*given, facts.insert_before(first, f"{x.arg}, {name} = {x.arg}"))


def _annotated(name: str, x: ast.arg) -> str:
    return name if x.annotation is None else f"{name}: {ast.unparse(x.annotation)}"


def _docstring(statement: ast.stmt, step: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return constant and statement is step.body[0] and len(step.body) > 1


def _set_xs(facts: ScriptFacts, call: ast.Call, xs: ast.expr | None, text: str) -> Edits:
    if xs is not None:
        return (TextEdit(facts.span(xs), text),)
    last: ast.expr = max(
        (*call.args, *(k.value for k in call.keywords)), key=lambda n: (n.end_lineno, n.end_col_offset)
    )
    span = facts.span(last)
    return (TextEdit(Span(span.end_line, span.end_col, span.end_line, span.end_col), f", xs={text}"),)


def count_text(facts: ScriptFacts, site: ScanSite) -> str | None:
    """The number of steps as the script says it, else as a number."""
    length, xs = site.arguments.get("length"), site.arguments.get("xs")
    if isinstance(length, ast.Name | ast.Attribute | ast.Constant) and not _none(length):
        return facts.source.text_of(length)
    if isinstance(xs, ast.Name) and hasattr(site.call.xs, "shape"):
        return f"len({xs.id})"
    return None if site.facts.length is None else str(site.facts.length)


def _none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
