"""Stand-ins: arrays of random numbers for what a pasted script needs and does not have, so that the rest can be checked.

A script from somebody's desk reads files that are not here, imports modules of its own, uses names of an earlier cell of
a notebook, or defines a step that nothing calls. For each of these one array can stand in: shape, dtype and seed are the
learner's to choose, and the edited script says in a comment what is made up.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from core.base.places import Span
from core.base.text import fill
from core.base.violation import TextEdit
from core.contract.source import Source, parameters
from core.doctor.answer import StandIn
from core.doctor.check import Checkup
from core.doctor.pen import apply_edits
from core.sandbox.names import FILES, PLOTTING, SPACES

NO_MODULE = "`{name}` comes from `{module}`, which is not here."
NO_FILE = "`{name}` is a file that is not here."
NO_NAME = "`{name}` is used and never set."
NO_IMPORT = "`{name}` is used and never imported: `{line}`."
NO_CALL = "`{name}` is defined, and nothing scans it."
NOT_CALLED = "`{name}` is defined, and nothing is given to it."
MODULE = "flax.nnx.Module"
MAKE_IT = "\n\nmodel = {name}({rngs})\n"
RNGS = "rngs={nnx}.Rngs(0)"
CALL_IT = "\n\nx = {array}  # a stand-in\nout = {name}(x)\n"
MADE_UP = "  # a stand-in for {name}"
NORMAL = "jax.random.normal(jax.random.key({seed}), {shape}, {dtype!r})"
WHOLE = "jax.random.randint(jax.random.key({seed}), {shape}, 0, 10, {dtype!r})"
COIN = "jax.random.bernoulli(jax.random.key({seed}), 0.5, {shape})"
SCAN_IT = "\n\ninit = jax.numpy.zeros({inner}, {dtype!r})  # a stand-in\nxs = {array}  # a stand-in\nfinal, ys = jax.lax.scan({name}, init, xs)\n"
ASSIGN = "{name} = {array}{comment}\n"
#: Names that stand for the same module in nearly every script.
IMPORTS = {
    "jax": "import jax",
    "jnp": "import jax.numpy as jnp",
    "np": "import numpy as np",
    "nnx": "from flax import nnx",
    "lax": "from jax import lax",
    "optax": "import optax",
    "partial": "from functools import partial",
}
type Missing = ast.Import | ast.ImportFrom | ast.Call
#: dtypes that may be asked for.
DTYPES = ("float32", "bfloat16", "float16", "int32", "int8", "uint8", "bool")


def stand_ins_of(checkup: Checkup) -> tuple[StandIn, ...]:
    """What may be made up, in the order of the text; spans are those of the script, not of the paste."""
    if checkup.outcome is None:
        return ()
    record = checkup.outcome.run.record
    source = record.source
    found = [*_refused(source, [span for span, _ in record.refused])]
    if record.refused:  # one refusal ends a script: what else is missing would come one at a time
        found += [one for node in _missing(source) for one in _offers(source, node)]
    failure = record.failure
    if failure is not None and isinstance(failure.error, NameError) and isinstance(failure.node, ast.Name):
        found.append(_unset(failure.node.id, failure.span))
    if failure is None and not record.refused and record.stopped is None and not record.scans:
        found += [*_uncalled(source), *_uncalled_modules(source)]
    once = {(one.name, one.span): one for one in found}
    return tuple(sorted(once.values(), key=lambda one: (one.span.line, one.span.col)))


def _unset(name: str, span: Span) -> StandIn:
    """For a name that nothing sets; for one that everybody imports the import, which has neither shape nor dtype."""
    if name in IMPORTS:
        return StandIn(name, span, fill(NO_IMPORT, name=name, line=IMPORTS[name]), (), "")
    return StandIn(name, span, fill(NO_NAME, name=name))


def _refused(source: Source, places: list[Span]) -> Iterator[StandIn]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and not _reads_file(source, node):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Call) and any(_at(source, node, p) for p in places):
            yield from _offers(source, node)


def _offers(source: Source, node: Missing) -> Iterator[StandIn]:
    """What can stand in for an import, or for a call that reads a file."""
    if isinstance(node, ast.ImportFrom):
        for alias in node.names:
            name = alias.asname or alias.name
            yield StandIn(name, source.span(node), fill(NO_MODULE, name=name, module=node.module or "."))
    elif isinstance(node, ast.Import):
        yield from _of_modules(source, node)
    else:
        texts = (a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str))
        name = next(texts, "")
        if name:
            yield StandIn(name, source.span(node), fill(NO_FILE, name=name))


def _missing(source: Source) -> Iterator[Missing]:
    """Imports of what is not here, and calls for the contents of files, wherever they stand.

    Not what the script itself is ready to do without (in a ``try``), and no call that gives nothing (``np.save``).
    """
    here = {space.name for space in SPACES}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom):
            lost = node.level > 0 or (not _is_here(node.module or "", here) and node.module != "__future__")
        elif isinstance(node, ast.Import):
            lost = any(not _is_here(alias.name, here) for alias in node.names)
        elif isinstance(node, ast.Call):
            lost = _reads_file(source, node)
        else:
            continue
        if lost and not _in_try(source, node):
            yield node


def _is_here(module: str, here: set[str]) -> bool:
    """Whether a script may import it; of libraries that draw it gets what does nothing."""
    return module in here or module.partition(".")[0] in PLOTTING


def _reads_file(source: Source, call: ast.Call) -> bool:
    """Whether a call is of a function that is not here because there are no files, and something is done with its value."""
    parent = source.parents.get(call)
    if isinstance(parent, ast.Expr | ast.withitem):
        return False
    if isinstance(call.func, ast.Name) and call.func.id == "open":
        return source.bound(call.func) is None and "open" not in source.imports
    module, _, name = (source.dotted(call.func) or "").rpartition(".")
    if module == "os":  # what there is of files, not what is in them
        return False
    return any(space.name == module and space.denied.get(name) == FILES for space in SPACES)


def _in_try(source: Source, node: ast.AST) -> bool:
    here: ast.AST | None = node
    while here is not None and not isinstance(here, ast.Try):
        here = source.parents.get(here)
    return here is not None


def _at(source: Source, node: ast.stmt | ast.expr, place: Span) -> bool:
    """Whether a refusal's place is this node, a part of an import, or what a call calls."""
    span = source.span(node)
    if isinstance(node, ast.Call):
        return place in (span, source.span(node.func))
    starts = (span.line, span.col) <= (place.line, place.col)
    return starts and (place.end_line, place.end_col) <= (span.end_line, span.end_col)


def _of_modules(source: Source, node: ast.Import) -> Iterator[StandIn]:
    """Each expression that a module which is not here is used in: as long a chain of attributes and calls as there is."""
    names = {alias.asname or alias.name.partition(".")[0]: alias.name for alias in node.names}
    parents = {child: parent for parent in ast.walk(source.tree) for child in ast.iter_child_nodes(parent)}
    for name in (n for n in ast.walk(source.tree) if isinstance(n, ast.Name) and n.id in names):
        chain: ast.expr = name
        while True:
            parent = parents.get(chain)
            grows = isinstance(parent, ast.Attribute) or chain in (
                getattr(parent, "func", None),
                getattr(parent, "value", None) if isinstance(parent, ast.Subscript) else None,
            )
            if not grows or not isinstance(parent, ast.expr):
                break
            chain = parent
        if chain is not name:
            text = source.text_of(chain)
            yield StandIn(text, source.span(chain), fill(NO_MODULE, name=text, module=names[name.id]))


def _uncalled(source: Source) -> Iterator[StandIn]:
    """The last function of two arguments that returns a pair, where nothing calls it."""
    called = {n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    steps = [
        node
        for node in source.tree.body
        if isinstance(node, ast.FunctionDef) and len(parameters(node)) == 2 and node.name not in called
    ]
    for node in steps[-1:]:
        returns = [n.value for n in ast.walk(node) if isinstance(n, ast.Return)]
        if returns and all(isinstance(v, ast.Tuple) and len(v.elts) == 2 for v in returns):
            yield StandIn(node.name, source.span(node), fill(NO_CALL, name=node.name))


def _uncalled_modules(source: Source) -> Iterator[StandIn]:
    """The last class of the script on `nnx.Module` that takes one input, where nothing gives it one."""
    waiting = [
        node for node in source.tree.body if isinstance(node, ast.ClassDef) and _call_of(source, node) is not None
    ]
    for node in waiting[-1:]:
        yield StandIn(node.name, source.span(node), fill(NOT_CALLED, name=node.name))


def _call_of(source: Source, module: ast.ClassDef) -> str | None:
    """How its input gets to an instance, with ``{array}`` for it; None when it has one, or cannot be told."""
    base = next((b for b in module.bases if source.dotted(b) == MODULE), None)
    methods = {n.name: n for n in module.body if isinstance(n, ast.FunctionDef)}
    if base is None or "__call__" not in methods or len(_required(methods["__call__"])) != 1:
        return None
    made = [
        n.targets[0].id
        for n in source.tree.body
        if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name) and _makes(n.value, module.name)
    ]
    loads = [n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    if made:
        return None if made[-1] in loads else fill(CALL_IT, name=made[-1], array="{array}")
    wants = _required(methods["__init__"]) if "__init__" in methods else []
    if module.name in loads or not set(wants) <= {"rngs"}:
        return None
    rngs = fill(RNGS, nnx=source.text_of(base).removesuffix(".Module")) if wants else ""
    return fill(MAKE_IT, name=module.name, rngs=rngs) + fill(CALL_IT, name="model", array="{array}").lstrip("\n")


def _required(function: ast.FunctionDef) -> list[str]:
    """Its parameters without a default, but for the first."""
    a = function.args
    plain = [*a.posonlyargs, *a.args]
    plain = plain[1 : len(plain) - len(a.defaults)] if a.defaults else plain[1:]
    return [p.arg for p in plain] + [p.arg for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d is None]


def _makes(value: ast.expr, name: str) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == name


# --- putting one in -------------------------------------------------------------------------------------------------


def apply(script: str, stand_in: StandIn, shape: tuple[int, ...], dtype: str, seed: int) -> str:
    """The script with an array of random numbers in the place of what is missing.

    Args:
        script: `Answer.script`.
        stand_in: one of `Answer.stand_ins`.
        shape: of the array.
        dtype: one of `DTYPES`.
        seed: of its key.

    Raises:
        ValueError: no such dtype, or a shape that is none.
    """
    if stand_in.name in IMPORTS and not stand_in.dtype:
        return _with_import(script, IMPORTS[stand_in.name])
    if dtype not in DTYPES or any(size < 0 for size in shape):
        raise ValueError
    source = Source(script)
    array = _array(shape, dtype, seed)
    span, name = stand_in.span, stand_in.name
    comment = fill(MADE_UP, name=name)
    node = next(
        (n for n in ast.walk(source.tree) if isinstance(n, ast.stmt | ast.expr) and source.span(n) == span), None
    )
    if isinstance(node, ast.FunctionDef):
        text = script.rstrip("\n") + fill(SCAN_IT, name=name, array=array, inner=shape[1:], dtype=dtype)
    elif isinstance(node, ast.ClassDef):
        call = _call_of(source, node)
        if call is None:
            raise ValueError
        text = script.rstrip("\n") + fill(call, array=array)
    elif isinstance(node, ast.ImportFrom):
        others = [alias for alias in node.names if (alias.asname or alias.name) != name]
        rest = ast.unparse(ast.ImportFrom(node.module, others, node.level)) + "\n" if others else ""
        edit = TextEdit(span, (rest + fill(ASSIGN, name=name, array=array, comment=comment)).rstrip("\n"))
        text = _edited(script, edit)
    elif isinstance(node, ast.Name):
        line = next(s.lineno for s in source.tree.body if s.lineno <= span.line <= (s.end_lineno or s.lineno))
        edit = TextEdit(Span(line, 0, line, 0), fill(ASSIGN, name=name, array=array, comment=comment))
        text = _edited(script, edit)
    else:
        text = _edited(script, TextEdit(span, array), *_without_module(source, node))
    return text if _imports_jax(source, span.line) else _with_import(text, IMPORTS["jax"])


def _edited(script: str, *edits: TextEdit) -> str:
    text = apply_edits(script, edits)
    if text is None:
        raise ValueError
    return text


def _array(shape: tuple[int, ...], dtype: str, seed: int) -> str:
    template = COIN if dtype == "bool" else NORMAL if "float" in dtype else WHOLE
    return fill(template, seed=seed, shape=shape, dtype=dtype)


def _without_module(source: Source, chain: ast.AST | None) -> Iterator[TextEdit]:
    """The import taken away that nothing needs once the expression is gone."""
    root = chain
    while isinstance(root, ast.Attribute | ast.Call | ast.Subscript):
        root = root.func if isinstance(root, ast.Call) else root.value
    if not isinstance(root, ast.Name) or chain is None:
        return
    inside = set(ast.walk(chain))
    used = [n for n in ast.walk(source.tree) if isinstance(n, ast.Name) and n.id == root.id and n not in inside]
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import) and not used and len(node.names) == 1:
            alias = node.names[0]
            if (alias.asname or alias.name.partition(".")[0]) == root.id:
                yield TextEdit(source.span(node), IMPORTS["jax"])


def _imports_jax(source: Source, line: int) -> bool:
    """Whether the name `jax` is imported before a line."""
    imports = (n for n in source.tree.body if isinstance(n, ast.Import) and n.lineno < line)
    return any(a.asname is None and a.name.partition(".")[0] == "jax" for n in imports for a in n.names)


def _with_import(text: str, line: str) -> str:
    """The script with one more import, behind its docstring and ``__future__``."""
    first = 0
    for statement in ast.parse(text).body:
        docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not docstring and not future:
            break
        first = statement.end_lineno or statement.lineno
    lines = text.split("\n")
    return "\n".join([*lines[:first], line, *lines[first:]])
