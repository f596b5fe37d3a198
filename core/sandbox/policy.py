"""The step language: which Python a pasted script may be written in, and what it is turned into.

Everything Python 3.12 offers for ordinary numerical code is allowed; what could reach the interpreter, name the guards
or hand strings to a library that evaluates them is refused with a sentence that says what to write instead. What is
allowed is transformed: attributes, items, writes, imports, annotations and `**mappings` go through guards
(core/sandbox/guards.py), and each expression reports its value to the probe. The worker's walls are the security
border; this is the guide and the first wall.

Our own pipeline rather than `compile_restricted`: that one compiles with this module's future flags, which would turn
annotations into strings, and Flax evaluates string annotations with real builtins (FACTS.md). A node type that is not
named here is refused (RestrictedPython's default), so a new Python brings nothing in unseen.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

from core.base.places import Span
from core.base.text import fill
from core.sandbox.refusals import Refusal
from core.sandbox.reporting import Reporting, Shown, evaluated, header_of, locate, names_of, stored_names
from core.sandbox.words import (
    ANY_OTHER,
    ASKABLE,
    CLASS_KEYWORDS,
    FIELDS,
    FILENAME,
    INSTEAD,
    METHODS,
    READABLE,
    REFUSED_ATTRIBUTE,
    REFUSED_CLASS_KEYWORD,
    REFUSED_CLASS_NAME,
    REFUSED_CLASS_PATTERN,
    REFUSED_DEPTH,
    REFUSED_FIELDS,
    REFUSED_GUARD,
    REFUSED_METHOD,
    REFUSED_NAME,
    REFUSED_NODE,
    REFUSED_RELATIVE,
    REFUSED_STAR_IMPORT,
    REFUSED_STRING_ANNOTATION,
    REFUSED_VALUE_PATTERN,
    RESERVED_CLASSES,
    SELF_MATCHING,
    SETTABLE,
    TYPE_PARAMETER,
    is_dunder,
)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A script that may run.

    Attributes:
        statements: the code, one object a statement of the module, to be executed in order in the globals that
            `core.sandbox.facade.environment` makes: one that cannot be run can then be left out.
        tree: the script as it was parsed, untransformed.
        spans: `spans[k]` is the place of the expression that reports as number k to the probe.
        shown: the values that are assigned, returned, or received as arguments, in the order of the text.
    """

    statements: tuple[CodeType, ...]
    tree: ast.Module
    spans: tuple[Span, ...]
    shown: tuple[Shown, ...]


def compile_script(source: str) -> Compiled | tuple[Refusal, ...]:
    """Parse, check, transform, compile.

    Raises:
        SyntaxError: the source does not parse, or does not compile (the caller shows it at its place).
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            tree = ast.parse(source, FILENAME)
            policy = Policy(_lines(source), tree)
            transformed = policy.visit(ast.parse(source, FILENAME))
            if policy.refusals:
                return tuple(sorted(policy.refusals, key=lambda r: (r.span.line, r.span.col)))
            compile(tree, FILENAME, "exec", dont_inherit=True)  # what Python refuses in the script as a whole
            ast.fix_missing_locations(transformed)
            statements = tuple(_compiled(transformed))
        except (RecursionError, MemoryError):
            return (Refusal(Span(1, 0, 1, 0), fill(REFUSED_DEPTH)),)
    return Compiled(statements, tree, tuple(policy.spans), tuple(policy.shown))


def _compiled(tree: ast.Module) -> Iterator[CodeType]:
    """The code of each statement. (No ``__future__`` import is left to change how another one is compiled.)"""
    for number, statement in enumerate(tree.body):
        if number and _is_text(statement):  # on its own it would be a docstring
            continue
        yield compile(ast.Module([statement], []), FILENAME, "exec", dont_inherit=True)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _lines(source: str) -> list[str]:
    """The lines of a text as Python counts them: `splitlines` breaks at more than line feeds."""
    return source.replace("\r\n", "\n").replace("\r", "\n").split("\n")


class Policy(Reporting):
    """The transformer. Methods are named by the AST node they decide about."""

    def __init__(self, lines: list[str], tree: ast.Module) -> None:
        super().__init__(lines)
        self._lazy_annotations = any(
            isinstance(n, ast.ImportFrom) and n.module == "__future__" and any(a.name == "annotations" for a in n.names)
            for n in tree.body
        )
        self._stored = stored_names(tree)
        self._temporaries = 0

    # --- refusals ---------------------------------------------------------------------------------------------------

    def not_allowed(self, node: ast.AST) -> None:
        """Refuse a node as a whole."""
        kind = type(node).__name__
        what, instead = INSTEAD.get(kind, (kind, ANY_OTHER))
        self.error(node, fill(REFUSED_NODE, what=what, instead=instead))

    def check_name(self, node: Any, name: str | None, allow_magic_methods: bool = False) -> None:
        """Refuse names that Python or the guards give a meaning to. Methods may be named anywhere (``__radd__ = …``)."""
        if name is None or name in METHODS or name in SETTABLE:
            return
        if is_dunder(name):
            if not (name in READABLE and isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)):
                self.error(node, fill(REFUSED_METHOD if allow_magic_methods else REFUSED_NAME, name=name))
        elif name.startswith("_") and name.endswith("_") and name.strip("_"):
            self.error(node, fill(REFUSED_GUARD, name=name))
        elif name == FIELDS and not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)):
            self.error(node, fill(REFUSED_FIELDS))

    def check_attribute(self, node: ast.AST, name: str, *, read: bool) -> None:
        """Refuse attributes in double underscores that no object offers, and writing any of them."""
        if is_dunder(name) and not (read and name in ASKABLE):
            self.error(node, fill(REFUSED_ATTRIBUTE, name=name))

    def check_keyword(self, keyword: ast.keyword) -> None:
        """Refuse ``name=`` in double underscores: libraries set what they get by keyword as attributes."""
        if keyword.arg is not None and is_dunder(keyword.arg):
            self.error(keyword, fill(REFUSED_NAME, name=keyword.arg))

    # --- what is plainly allowed ------------------------------------------------------------------------------------

    def _plain(self, node: Any) -> Any:
        return self.node_contents_visit(node)

    visit_Module = visit_Starred = visit_Load = visit_Store = visit_Del = _plain
    visit_Constant = visit_Tuple = visit_List = visit_Set = visit_Dict = visit_JoinedStr = visit_FormattedValue = _plain
    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_comprehension = _plain
    visit_IfExp = visit_NamedExpr = visit_Yield = visit_YieldFrom = visit_arguments = _plain
    visit_Delete = visit_Raise = visit_Pass = visit_Break = visit_Continue = _plain
    visit_If = visit_For = visit_While = visit_With = visit_withitem = visit_Try = _plain
    visit_Match = visit_match_case = visit_MatchSingleton = visit_MatchSequence = visit_MatchOr = _plain
    visit_And = visit_Or = visit_Not = visit_Invert = visit_UAdd = visit_USub = _plain
    visit_Add = visit_Sub = visit_Mult = visit_MatMult = visit_Div = visit_FloorDiv = visit_Mod = visit_Pow = _plain
    visit_LShift = visit_RShift = visit_BitOr = visit_BitXor = visit_BitAnd = _plain
    visit_Eq = visit_NotEq = visit_Lt = visit_LtE = visit_Gt = visit_GtE = _plain
    visit_Is = visit_IsNot = visit_In = visit_NotIn = visit_BoolOp = _plain

    # --- names, attributes, items -----------------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> Any:
        """A name; what is read reports to the probe."""
        self.check_name(node, node.id)
        return self._report(node, node) if isinstance(node.ctx, ast.Load) else node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """``a.b``: read through a guard, or the object asked whether it may be written."""
        reads = isinstance(node.ctx, ast.Load)
        self.check_attribute(node, node.attr, read=reads)
        value, name = self.visit(node.value), ast.Constant(self._mangled(node.attr))
        if reads:
            return self._report(node, self._call("_getattr_", node, value, name))
        return ast.copy_location(ast.Attribute(self._call("_write_", node, value, name), node.attr, node.ctx), node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        """``a[b]``."""
        value, index = self.visit(node.value), self.visit(node.slice)
        if isinstance(node.ctx, ast.Load):
            return self._report(node, self._call("_getitem_", node, value, index))
        return ast.copy_location(ast.Subscript(self._call("_write_", node, value), index, node.ctx), node)

    def visit_Slice(self, node: ast.Slice) -> Any:
        """``a:b:c`` as a call, since it becomes an argument of a guard."""
        parts = [self.visit(p) if p is not None else ast.Constant(None) for p in (node.lower, node.upper, node.step)]
        return self._call("_slice_", node, *parts)

    # --- expressions that report ------------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> Any:
        """A call; keywords may not carry names that Python gives a meaning to, not even inside ``**mapping``."""
        for keyword in node.keywords:
            self.check_keyword(keyword)
        return self._report(node, self.node_contents_visit(node))

    def visit_keyword(self, node: ast.keyword) -> Any:
        """``name=value`` or ``**mapping``."""
        node = self.node_contents_visit(node)
        if node.arg is None:
            node.value = self._call("_keywords_", node.value, node.value)
        return node

    def _reporting(self, node: Any) -> Any:
        return self._report(node, self.node_contents_visit(node))

    visit_BinOp = visit_Compare = visit_UnaryOp = _reporting

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        """A lambda; which function it made is reported, so that a rule can tell what a call was given."""
        self.check_function_argument_names(node)
        return self._report(node, self.node_contents_visit(node))

    # --- assignments ------------------------------------------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> Any:
        """An assignment: its value is shown beside the line."""
        value = self._shown(node, node.value, names_of(node.targets[-1]))
        node.targets = [self.visit(t) for t in node.targets]
        node.value = value
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """``name: type = value``."""
        annotation = self._annotation(node.annotation)
        value = self._shown(node, node.value, names_of(node.target)) if node.value is not None else None
        node.target, node.annotation, node.value = self.visit(node.target), annotation, value
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """``target op= value``, spelled out in Python's own order: holder, key, old value, value, operation, store."""
        operator, target = ast.Constant(type(node.op).__name__), node.target
        if isinstance(target, ast.Name):
            self.check_name(target, target.id)
            load: ast.expr = ast.copy_location(ast.Name(target.id, ast.Load()), target)
            statements: list[ast.stmt] = []
            store: ast.expr = target
        else:
            statements, load, store = self._place(target)
        new = self._report(
            node, self._call("_inplace_", node, operator, self._report(target, load), self.visit(node.value))
        )
        self.shown.append(Shown(node.lineno, len(self.spans) - 1, names_of(target)))
        temporaries = [s.targets[0] for s in statements if isinstance(s, ast.Assign)]
        statements.append(ast.Assign([store], new))
        if temporaries:
            gone: list[ast.expr] = [ast.Name(t.id, ast.Del()) for t in temporaries if isinstance(t, ast.Name)]
            statements.append(ast.Delete(gone))
        for statement in statements:
            locate(statement, node)
        return statements

    def _place(self, target: ast.Attribute | ast.Subscript) -> tuple[list[ast.stmt], ast.expr, ast.expr]:
        """Statements that evaluate the holder and the key once, an expression that loads, and one that stores."""
        holder = self._temporary()
        statements: list[ast.stmt] = [ast.Assign([ast.Name(holder, ast.Store())], self.visit(target.value))]
        if isinstance(target, ast.Attribute):
            self.check_attribute(target, target.attr, read=False)
            name = ast.Constant(self._mangled(target.attr))
            load = self._call("_getattr_", target, ast.Name(holder, ast.Load()), name)
            written = self._call("_write_", target, ast.Name(holder, ast.Load()), ast.Constant(name.value))
            return statements, load, ast.Attribute(written, target.attr, ast.Store())
        key = self._temporary()
        statements.append(ast.Assign([ast.Name(key, ast.Store())], self.visit(target.slice)))
        load = self._call("_getitem_", target, ast.Name(holder, ast.Load()), ast.Name(key, ast.Load()))
        written = self._call("_write_", target, ast.Name(holder, ast.Load()))
        return statements, load, ast.Subscript(written, ast.Name(key, ast.Load()), ast.Store())

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"_t{self._temporaries}_"

    # --- statements -------------------------------------------------------------------------------------------------

    def visit_Return(self, node: ast.Return) -> Any:
        """A return: its value is shown."""
        if node.value is not None:
            node.value = self._shown(node, node.value, None)
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        """An expression alone. A print needs values: it is skipped in an abstract pass (`_values_` is False)."""
        call = node.value
        prints = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print"
        node.value = self.visit(node.value)
        return self._when_values(node) if prints else node

    def visit_Assert(self, node: ast.Assert) -> Any:
        """An assertion needs values too."""
        checked: ast.Assert = self.node_contents_visit(node)
        return self._when_values(checked)

    def _when_values(self, node: ast.stmt) -> ast.stmt:
        guarded: ast.If = ast.If(ast.Name("_values_", ast.Load()), [node], [])
        return locate(guarded, node)

    def visit_Global(self, node: ast.Global) -> Any:
        """``global`` names."""
        for name in node.names:
            self.check_name(node, name)
        return node

    def visit_Nonlocal(self, node: ast.Nonlocal) -> Any:
        """``nonlocal`` names."""
        for name in node.names:
            self.check_name(node, name)
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> Any:
        """``except … as name``."""
        self.check_name(node, node.name)
        return self.node_contents_visit(node)

    # --- patterns ---------------------------------------------------------------------------------------------------

    def visit_MatchValue(self, node: ast.MatchValue) -> Any:
        """A literal; a dotted name would be read behind the guard."""
        if any(isinstance(part, ast.Attribute | ast.Name) for part in ast.walk(node.value)):
            self.error(node, fill(REFUSED_VALUE_PATTERN))
        return node

    def visit_MatchAs(self, node: ast.MatchAs) -> Any:
        """``pattern as name``, ``name`` or ``_``."""
        self.check_name(node, node.name)
        return self.node_contents_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> Any:
        """``*rest``."""
        self.check_name(node, node.name)
        return node

    def visit_MatchMapping(self, node: ast.MatchMapping) -> Any:
        """``{key: pattern, **rest}`` with literal keys."""
        self.check_name(node, node.rest)
        for key in node.keys:
            if any(isinstance(part, ast.Attribute | ast.Name) for part in ast.walk(key)):
                self.error(key, fill(REFUSED_VALUE_PATTERN))
        node.patterns = [self.visit(p) for p in node.patterns]
        return node

    def visit_MatchClass(self, node: ast.MatchClass) -> Any:
        """``int()`` asks for a type alone; ``int(n)`` binds the value itself; anything more reads attributes."""
        name = node.cls.id if isinstance(node.cls, ast.Name) else None
        own_value = name in SELF_MATCHING and name not in self._stored
        if name is None or node.kwd_patterns or len(node.patterns) > own_value:
            self.error(node, fill(REFUSED_CLASS_PATTERN))
            return node
        self.check_name(node.cls, name)
        node.patterns = [self.visit(p) for p in node.patterns]
        return node

    # --- definitions ------------------------------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """A function: its arguments are shown beside its first line."""
        self.check_name(node, node.name, allow_magic_methods=True)
        self.check_function_argument_names(node)
        self._type_params(node)
        returns = self._annotation(node.returns) if node.returns is not None else None
        node.returns = None
        names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        names = [n for n in names if n not in ("self", "cls")]
        node = self.node_contents_visit(node)
        node.returns = returns
        if names:
            values = ast.Tuple([ast.Name(n, ast.Load()) for n in names], ast.Load())
            head = ast.Expr(self._report(header_of(node), values))
            self.shown.append(Shown(node.lineno, len(self.spans) - 1, tuple(names)))
            node.body.insert(1 if ast.get_docstring(node, clean=False) is not None else 0, locate(head, node))
        return node

    def visit_arg(self, node: ast.arg) -> Any:
        """One argument of a definition."""
        if node.annotation is not None:
            node.annotation = self._annotation(node.annotation)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        """A class. Its name is part of how its private names are spelled, and may not spell those of a library."""
        self.check_name(node, node.name)
        if node.name.lstrip("_") in RESERVED_CLASSES:
            self.error(node, fill(REFUSED_CLASS_NAME, name=node.name))
        self._type_params(node)
        for keyword in node.keywords:
            if keyword.arg not in CLASS_KEYWORDS:
                self.error(node, fill(REFUSED_CLASS_KEYWORD, name=keyword.arg or "**"))
        node.bases = [self.visit(b) for b in node.bases]
        node.keywords = [self.visit(k) for k in node.keywords]
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        self._classes.append(node.name)
        body: list[ast.stmt] = []
        for statement in node.body:
            out = statement if _is_slots(statement) else self.visit(statement)
            body.extend(out if isinstance(out, list) else [out] if out is not None else [])
        self._classes.pop()
        node.body = body
        return node

    def _type_params(self, node: Any) -> None:
        if getattr(node, "type_params", None):
            what, instead = TYPE_PARAMETER
            self.error(node, fill(REFUSED_NODE, what=what, instead=instead))

    def _annotation(self, node: ast.expr) -> ast.expr:
        """An annotation: no string for a library to evaluate, and the value looked at once more by the guard."""
        for part in evaluated(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str | bytes):
                self.error(part, fill(REFUSED_STRING_ANNOTATION))
        self._quiet += 1
        value = self.visit(node)
        self._quiet -= 1
        if self._lazy_annotations:
            nothing = ast.arguments([], [], None, [], [], None, [])
            return self._call("_later_", node, locate(ast.Lambda(nothing, value), node))
        return self._call("_annotation_", node, value)

    # --- imports ----------------------------------------------------------------------------------------------------

    def visit_Import(self, node: ast.Import) -> Any:
        """``import a.b as c``: an assignment of what the guard gives."""
        out: list[ast.stmt] = []
        for alias in node.names:
            bound = alias.asname or alias.name.partition(".")[0]
            self.check_name(node, bound)
            call = self._call("_import_", alias, ast.Constant(alias.name), ast.Constant(alias.asname is not None))
            out.append(locate(ast.Assign([ast.Name(bound, ast.Store())], call), alias))
        return out

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        """``from a import b``. A ``__future__`` import is dropped: what is left of them is how annotations are read."""
        if node.module == "__future__":
            return None
        if node.level:
            self.error(node, fill(REFUSED_RELATIVE))
            return node
        out: list[ast.stmt] = []
        for alias in node.names:
            if alias.name == "*":
                self.error(node, fill(REFUSED_STAR_IMPORT))
                return node
            bound = alias.asname or alias.name
            self.check_name(node, bound)
            call = self._call("_import_from_", alias, ast.Constant(node.module or ""), ast.Constant(alias.name))
            out.append(locate(ast.Assign([ast.Name(bound, ast.Store())], call), alias))
        return out


def _is_slots(node: ast.stmt) -> bool:
    """``__slots__ = ("a", "b")``: plain names, written out."""
    if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple | ast.List)):
        return False
    names = [getattr(e, "value", None) for e in node.value.elts]
    plain = all(isinstance(n, str) and n.isidentifier() and not n.startswith("__") for n in names)
    return plain and [getattr(t, "id", None) for t in node.targets] == ["__slots__"]


__all__ = ["FILENAME", "METHODS", "Compiled", "Policy", "Refusal", "Shown", "compile_script", "is_dunder"]
