"""Text for repairs of what a step must not do in Python: pieces of the learner's own code, put together anew.

Everything is made of the script's text as it is written (names, comments and breaks stay), in the names that it
imports. Whether the result is any good is found out by running it, never by its looks.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from core.base.places import Span
from core.base.violation import TextEdit
from core.contract.rule import Repair
from core.contract.script_facts import ScriptFacts
from core.contract.source import FUNCTIONS, Function, Source, parameters

type Texts = Mapping[ast.AST, str]

#: Expressions that take an attribute, an index or a call behind them as they stand.
ATOMS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.List, ast.Dict, ast.Set, ast.ListComp, ast.JoinedStr)
#: Names by which modules are commonly imported.
ALIASES = {"jax.numpy": "jnp"}
#: What ends a block early: code that does so is not moved into a function of its own.
LEAVING = (
    ast.Return,
    ast.Break,
    ast.Continue,
    ast.Yield,
    ast.YieldFrom,
    ast.Await,
    ast.Global,
    ast.Nonlocal,
    ast.Raise,
)
IMPORT, IMPORT_AS = "import {module}", "import {module} as {alias}"


class Ink:
    """Writes for one repair; `edits` adds the imports that its names need."""

    def __init__(self, facts: ScriptFacts) -> None:
        self.facts = facts
        self.source: Source = facts.source
        self._imports: dict[str, str] = {}
        self._given: set[str] = set()

    # --- names ------------------------------------------------------------------------------------------------------

    def name(self, public: str) -> str:
        """A public name as this script would write it (``jnp.where``); its module is imported if it is not yet."""
        own = self.source.name_of(public)
        if own is not None:
            return own
        module, _, rest = public.rpartition(".")
        module = "jax" if module.startswith("jax.") and module != "jax.numpy" else module
        alias = ALIASES.get(module, module)
        form = IMPORT if alias == module else IMPORT_AS
        self._imports[module] = form.format(module=module, alias=alias)
        return f"{alias}{public[len(module) :]}" if rest else public

    def free(self, scope: ast.AST, wanted: str) -> str:
        """A name like this one that nothing in a scope, and no earlier call of this, is called yet."""
        used = {n.id for n in ast.walk(scope) if isinstance(n, ast.Name)} | self._given
        used |= {a.arg for a in ast.walk(scope) if isinstance(a, ast.arg)} | set(self.source.imports)
        used |= {n.name for n in ast.walk(scope) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        while wanted in used:
            wanted += "_"
        self._given.add(wanted)
        return wanted

    # --- text -------------------------------------------------------------------------------------------------------

    def text(self, node: ast.AST, texts: Texts | None = None) -> str:
        """A node as it is written, with some of its parts written otherwise."""
        inner = [] if not texts else [(n, texts[n]) for n in _outermost(node, texts)]
        if inner and inner[0][0] is node:
            return inner[0][1]
        whole = ast.get_source_segment(self.source.text, node) or ast.unparse(node)
        if not inner:
            return whole
        starts = _offsets(self.source.text)
        base = _at(starts, self.source, node)[0]
        for part, new in sorted(inner, key=lambda p: _at(starts, self.source, p[0]), reverse=True):
            begin, end = (n - base for n in _at(starts, self.source, part))
            whole = whole[:begin] + new + whole[end:]
        return whole

    def argument(self, node: ast.expr, texts: Texts | None = None) -> str:
        """An expression as one argument of a call: a bare tuple and the like get parentheses."""
        text = self.text(node, texts)
        bare = isinstance(node, ast.Tuple) and not text.startswith("(")
        starred = isinstance(node, ast.NamedExpr | ast.Yield | ast.GeneratorExp) and not text.startswith("(")
        return f"({text})" if bare or starred else text

    def atom(self, node: ast.expr, texts: Texts | None = None) -> str:
        """An expression ready for a method, an index or an operator behind it."""
        text = self.argument(node, texts)
        number = isinstance(node, ast.Constant) and isinstance(node.value, int | float)
        plain = isinstance(node, ATOMS) or (isinstance(node, ast.Tuple) and text.startswith("(")) or number
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            plain = True
        return text if plain else f"({text})"

    def pad(self, node: ast.stmt) -> str:
        """The indentation of a statement; spaces to its column where it does not begin its line."""
        before = self.source.lines[node.lineno - 1][: self.source.span(node).col]
        return before if not before.strip() else before[: len(before) - len(before.lstrip())]

    def block(self, statements: Sequence[ast.stmt], pad: str, texts: Texts | None = None) -> str:
        """Statements at another indentation, comments between them kept; the first line carries it too."""
        first, last = statements[0], statements[-1]
        own = self.source.lines[first.lineno - 1][: self.source.span(first).col]
        if own.strip():  # `if c: a; b` on one line
            return "\n".join(pad + self.text(s, texts) for s in statements)
        holder = ast.Module(list(statements), [])
        holder.lineno, holder.col_offset = first.lineno, 0  # type: ignore[attr-defined]
        holder.end_lineno, holder.end_col_offset = last.end_lineno, last.end_col_offset  # type: ignore[attr-defined]
        lines = self.text(holder, texts).split("\n")
        return "\n".join(_moved(line, own, pad) for line in lines)

    # --- edits ------------------------------------------------------------------------------------------------------

    def put(self, node: ast.expr | ast.stmt | ast.keyword, text: str) -> TextEdit:
        """This text in the place of a node."""
        return TextEdit(self.source.span(node), text)

    def span_of(self, statements: Sequence[ast.stmt]) -> Span:
        """From the beginning of the first to the end of the last."""
        first, last = self.source.span(statements[0]), self.source.span(statements[-1])
        return Span(first.line, first.col, last.end_line, last.end_col)

    def after(self, statement: ast.stmt, text: str) -> TextEdit:
        """New lines behind a statement, at its indentation."""
        span, pad = self.source.span(statement), self.pad(statement)
        spot = Span(span.end_line, span.end_col, span.end_line, span.end_col)
        return TextEdit(spot, "".join(f"\n{pad}{line}" for line in text.split("\n")))

    def imports(self) -> tuple[TextEdit, ...]:
        """The imports that the names need, in lines behind the script's own."""
        if not self._imports:
            return ()
        body = self.source.tree.body
        own = [s for s in body if isinstance(s, ast.Import | ast.ImportFrom)]
        line = ((own[0].end_lineno or 0) + 1) if own else 1
        if not own and body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            line = (body[0].end_lineno or 0) + 1
        text = "".join(f"{line}\n" for line in self._imports.values())
        return (TextEdit(Span(line, 0, line, 0), text),)

    def repair(self, title: str, *edits: TextEdit, path: str = "") -> Repair:
        """The repair that makes these edits."""
        return self.facts.rewrites(title, *self.imports(), *edits, path=path)


type Writer = Callable[[Ink], Iterable[TextEdit] | None]


def proposals(facts: ScriptFacts, *writers: tuple[str, Writer]) -> tuple[Repair, ...]:
    """A repair of each writer that knows what to write; each begins with fresh ink."""
    return tuple(_proposals(facts, writers))


def _proposals(facts: ScriptFacts, writers: Iterable[tuple[str, Writer]]) -> Iterator[Repair]:
    for title, write in writers:
        ink = Ink(facts)
        edits = write(ink)
        if edits:
            yield ink.repair(title, *edits)


def either(facts: ScriptFacts, title: str, *writers: Writer) -> tuple[Repair, ...]:
    """One repair with several ways of writing it: the first that holds is shown."""
    ways = []
    for write in writers:
        ink = Ink(facts)
        edits = tuple(write(ink) or ())
        if edits and (*ink.imports(), *edits) not in ways:
            ways.append((*ink.imports(), *edits))
    return (Repair("texts", title, lambda _: None, "", tuple(ways)),) if ways else ()


# --- the tree -------------------------------------------------------------------------------------------------------


def stored_names(nodes: Iterable[ast.AST]) -> list[str]:
    """Names that some code assigns, in order, each once; not those of functions in it."""
    out: dict[str, None] = {}
    for node in nodes:
        for part in walk_here(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store | ast.Del):
                out.setdefault(part.id)
            elif isinstance(part, ast.FunctionDef | ast.ClassDef):
                out.setdefault(part.name)
    return list(out)


def loaded_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that some code reads, those of functions in it too."""
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)} | {
        n.target.id for node in nodes for n in ast.walk(node)
        if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)
    }  # fmt: skip


def walk_here(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what is in it, without what is in functions and comprehensions of its own."""
    yield node
    if isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return
    for child in ast.iter_child_nodes(node):
        yield from walk_here(child)


def leaves_early(statements: Iterable[ast.stmt]) -> bool:
    """Whether some code returns, breaks out, raises, or rebinds names of another scope."""
    return any(isinstance(part, LEAVING) for s in statements for part in walk_here(s))


def function_of(source: Source, node: ast.AST) -> Function | None:
    """The function that a node stands in (None: the module, or a class)."""
    return next(source.enclosing(node), None)


def block_of(source: Source, statement: ast.stmt) -> list[ast.stmt]:
    """The list of statements that one stands in."""
    parent = source.parents.get(statement)
    for field in ("body", "orelse", "finalbody"):
        found = getattr(parent, field, None)
        if isinstance(found, list) and any(s is statement for s in found):
            return found
    return [statement]


def rest_of(source: Source, statement: ast.stmt) -> list[ast.stmt]:
    """What follows a statement in its block."""
    block = block_of(source, statement)
    return block[next(i for i, s in enumerate(block) if s is statement) + 1 :]


def known_before(source: Source, statement: ast.stmt) -> set[str]:
    """Names of the function that a statement stands in which have a value before it: parameters, earlier assignments."""
    scope = source.scope(statement)
    known = {a.arg for a in parameters(scope)} if isinstance(scope, FUNCTIONS) else set()
    for node in source.within(scope):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.lineno < statement.lineno:
            known.add(node.id)
    return known


def used_after(source: Source, statement: ast.stmt) -> set[str]:
    """Names that the rest of its function reads (in a loop, all of the loop: the next turn comes after too)."""
    scope = source.scope(statement)
    end = statement.end_lineno or statement.lineno
    loop = next((p for p in _above(source, statement) if isinstance(p, ast.For | ast.While)), None)
    out = set()
    for node in ast.walk(scope):
        later = getattr(node, "lineno", 0) > end or (
            loop is not None and _within(node, loop) and not _within(node, statement)
        )
        if later and isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            out.add(node.id)
        elif later and isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            out.add(node.target.id)
    return out


def _above(source: Source, node: ast.AST) -> Iterator[ast.AST]:
    """What a node stands in, up to its function."""
    here = source.parents.get(node)
    while here is not None and not isinstance(here, FUNCTIONS):
        yield here
        here = source.parents.get(here)


def _within(node: ast.AST, whole: ast.AST) -> bool:
    if not hasattr(node, "lineno"):
        return False
    start, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
    outer = (whole.lineno, whole.col_offset), (whole.end_lineno, whole.end_col_offset)  # type: ignore[attr-defined]
    return bool(outer[0] <= start and end <= outer[1])


def _outermost(node: ast.AST, texts: Texts) -> Iterator[ast.AST]:
    if node in texts:
        yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from _outermost(child, texts)


def _moved(line: str, before: str, pad: str) -> str:
    if not line.strip():
        return line.strip()
    return pad + line[len(before) :] if line.startswith(before) else pad + line.lstrip()


def _offsets(text: str) -> list[int]:
    out = [0]
    for line in text.split("\n"):
        out.append(out[-1] + len(line) + 1)
    return out


def _at(starts: list[int], source: Source, node: ast.AST) -> tuple[int, int]:
    span = source.span(node)  # type: ignore[arg-type]  # whatever has a place
    return starts[span.line - 1] + span.col, starts[span.end_line - 1] + span.end_col
