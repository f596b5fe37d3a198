"""A traced value is made concrete: `int()`, `np.…`, `range()`, a list's index, a slice's length, a boolean mask.

**What.** Something needs a real number of Python, or a length, and gets a traced value: `int()`, `float()`, `.item()`,
`.tolist()`, `math.…`, `np.…`, `range()`, the index of a list or the key of a dict, a slice `x[i:i + 3]`, a boolean mask
`x[x > 0]`, a format such as `f"{c:.2f}"`. It raises.

**Why.** A step is traced once, before there are numbers, and every array in it has a fixed length. What NumPy and
Python do with numbers must be done by JAX with arrays: `jnp.…`, `lax.fori_loop`, `lax.dynamic_slice`, `jnp.where`.

**Bad**

    def step(total, x):
        total = total + x[x > 0].sum()
        return total, total

**Good**

    def step(total, x):
        total = total + jnp.where(x > 0, x, 0).sum()
        return total, total

`x.shape`, `x.ndim` and `len(x)` are fine: those are known while tracing.

Source: JAX documentation, "JAX errors": ConcretizationTypeError, TracerArrayConversionError,
TracerIntegerConversionError, NonConcreteBooleanIndexError.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import jax
import numpy as np

from core.base.text import fill
from core.base.violation import Severity
from core.contract.p_concrete import repairs_of
from core.contract.p_slices import slices_in
from core.contract.p_static import static_argument
from core.contract.p_traced import because, dead_operands, in_trace, statement_of, tracers_in, type_of
from core.contract.rule import Finding, Jax, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Failure
from core.contract.subject import MISSING

NUMBER = "`{what}` needs a real number, but `{code}` is traced ({type}): it has no value yet."
HOST = "{what} works on real arrays of the host, but `{code}` is traced ({type}): it has no values yet."
COUNT = "range needs to know how often to count, but `{code}` is traced ({type}): it has no value yet."
INDEX = "A Python {what} is indexed with a real number, but `{code}` is traced ({type}): it has no value yet."
KEY = "A Python {what} looks its keys up by their values, but `{code}` is traced ({type}): it has no value yet."
LENGTH = "The slice `{code}` begins or ends at a traced number: its length is not known while tracing."
MASK = "`{code}` has as many elements as the mask has True in it, and the mask is traced: that is not known yet."
FOUND = "`{code}` gives as many elements as it finds, and what it looks at is traced: that is not known yet."
FORMAT = "The format of `{code}` needs a real number, but it is traced ({type}): it has no value yet."
BUFFER = "A NumPy buffer keeps real numbers, but `{code}` is traced ({type}): it has no value yet."
REPEATED = "`{what}` needs to know how often to repeat, but `{code}` is traced ({type}): it has no value yet."
OTHER = "`{what}` needs a real value, but `{code}` is traced ({type}): it has no value yet."
WHY = (
    "A step is traced once, before there are numbers, and every array in it has a fixed length. What needs the numbers "
    "must be done by JAX in the program: jnp, lax.fori_loop, lax.dynamic_slice, jnp.where."
)

NEEDS_VALUES = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)
#: Functions of jax.numpy whose result is as long as what they find.
FINDERS = frozenset(
    "nonzero argwhere flatnonzero where unique unique_values unique_counts unique_inverse unique_all compress extract "
    "union1d intersect1d setdiff1d setxor1d delete repeat".split()
)
CONTAINERS = (list, tuple, range, str)


def check(facts: ScriptFacts) -> Iterator[Finding]:
    """The failure, when something needed the value of a living tracer."""
    failure = facts.failure
    if failure is None or isinstance(failure.error, jax.errors.TracerBoolConversionError):
        return
    if dead_operands(facts, failure) or not in_trace(facts, failure):
        return
    node = _place(facts, failure)
    message = None if node is None else _message(facts, failure, node)
    if node is None or message is None:
        return
    yield Finding(
        message=message,
        place=facts.span(node),
        because=because(facts, failure),
        repairs=(*repairs_of(facts, node), *static_argument(facts, failure, node)),
    )


def _place(facts: ScriptFacts, failure: Failure) -> ast.expr | None:
    """The expression that failed; of an assignment to an item, the item."""
    if failure.node is not None or not isinstance(failure.error, (*NEEDS_VALUES, TypeError, ValueError)):
        return failure.node
    statement = statement_of(facts, failure)
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Subscript):
        return statement.target
    formats = [n for n in facts.nodes(ast.FormattedValue) if facts.source.span(n) == failure.span]
    return formats[0] if formats else None


def _message(facts: ScriptFacts, failure: Failure, node: ast.expr) -> str | None:
    if isinstance(node, ast.Subscript):
        return _of_item(facts, failure, node)
    if isinstance(node, ast.FormattedValue):
        return _filled(facts, FORMAT, node.value) if _traced(facts, node.value) else None
    if isinstance(node, ast.Call):
        return _of_call(facts, failure, node)
    if isinstance(node, ast.BinOp):
        return _of_operator(facts, failure, node)
    if not isinstance(failure.error, NEEDS_VALUES):
        return None
    culprit = next((n for n in ast.walk(node) if isinstance(n, ast.expr) and _traced(facts, n)), None)
    return None if culprit is None else _filled(facts, OTHER, culprit, what=facts.source.text_of(node))


def _traced(facts: ScriptFacts, node: ast.AST) -> bool:
    return bool(tracers_in(facts.value(node, MISSING)))


def _filled(facts: ScriptFacts, template: str, culprit: ast.expr, **fields: object) -> str:
    """A message about a traced expression, with its type."""
    parts = [n for n in ast.walk(culprit) if isinstance(n, ast.expr)] if not _traced(facts, culprit) else [culprit]
    found = (t for n in parts for t in tracers_in(facts.value(n, MISSING)))
    types = dict.fromkeys(str(a) for a in map(type_of, found) if a is not None)
    return fill(template, code=facts.source.text_of(culprit), type=", ".join(types), **fields)


def _of_call(facts: ScriptFacts, failure: Failure, node: ast.Call) -> str | None:
    called = next(iter(facts.calls_at(node)[-1:]), None)
    name = called.name if called is not None and called.name is not None else ""
    inputs = [*node.args, *(k.value for k in node.keywords)]
    if isinstance(node.func, ast.Attribute):
        inputs = [*inputs, node.func.value]
    culprit = next((i for i in inputs if _held(facts, i)), None)
    if culprit is None:
        return None
    short = facts.source.text_of(node.func)
    needs = isinstance(failure.error, NEEDS_VALUES)
    if name == "builtins.range":
        return _filled(facts, COUNT, culprit) if needs else None
    if name.startswith("numpy.random."):
        return None
    if name.startswith(("numpy.", "ndarray.")) or short.startswith("np."):
        return (
            _filled(facts, HOST, culprit, what=short)
            if needs or isinstance(failure.error, TypeError | ValueError)
            else None
        )
    if name.startswith(("jax.numpy.", "Array.")):
        last = name.rpartition(".")[2]
        if last in FINDERS and needs:
            return fill(FOUND, code=facts.source.text_of(node))
        return _filled(facts, NUMBER, culprit, what=f".{last}()") if last in ("item", "tolist") else None
    if name.startswith("jax."):
        return None  # a size that JAX wants to know: P209's
    if name in ("str.format", "builtins.format"):
        return _filled(facts, FORMAT, culprit)
    if name in ("set.add", "set.discard", "set.remove", "dict.get", "dict.setdefault", "dict.pop", "builtins.hash"):
        return (
            _filled(facts, KEY, culprit, what=name.partition(".")[0]) if isinstance(failure.error, TypeError) else None
        )
    return _filled(facts, NUMBER, culprit, what=f"{short}()") if needs else None


def _held(facts: ScriptFacts, node: ast.expr) -> bool:
    """Whether an argument is, or is a list of, something traced."""
    if _traced(facts, node):
        return True
    parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else []
    return any(_held(facts, p) for p in parts)


def _of_item(facts: ScriptFacts, failure: Failure, node: ast.Subscript) -> str | None:
    holder, index = facts.value(node.value, MISSING), node.slice
    if isinstance(node.value, ast.Tuple | ast.List):
        holder = () if isinstance(node.value, ast.Tuple) else []
    if isinstance(failure.error, jax.errors.NonConcreteBooleanIndexError):
        return fill(MASK, code=facts.source.text_of(node))
    moved = [n for part in slices_in(index) for n in ast.walk(part) if _traced(facts, n)]
    if moved and isinstance(failure.error, (*NEEDS_VALUES, IndexError, TypeError)):
        return fill(LENGTH, code=facts.source.text_of(node))
    if isinstance(holder, np.ndarray) and not _traced(facts, index):
        statement = facts.source.statement(node)
        value = statement.value if isinstance(statement, ast.Assign | ast.AugAssign) else None
        stores = isinstance(node.ctx, ast.Store) and value is not None and _held(facts, value)
        return _filled(facts, BUFFER, value) if stores and value is not None else None
    if not _traced(facts, index):
        return None
    if isinstance(holder, np.ndarray):
        return _filled(facts, HOST, index, what="Indexing a NumPy array")
    if isinstance(holder, dict):
        return _filled(facts, KEY, index, what="dict")
    return _filled(facts, INDEX, index, what=type(holder).__name__) if isinstance(holder, CONTAINERS) else None


def _of_operator(facts: ScriptFacts, failure: Failure, node: ast.BinOp) -> str | None:
    """``[0.0] * n`` and ``"%d" % c``."""
    if not isinstance(failure.error, TypeError):
        return None
    for one, two in ((node.left, node.right), (node.right, node.left)):
        other = facts.value(one, MISSING)
        if not _held(facts, two):
            continue
        if isinstance(other, str) and isinstance(node.op, ast.Mod):
            return _filled(facts, FORMAT, two)
        if isinstance(node.op, ast.Mult) and (
            isinstance(other, list | tuple | str) or isinstance(one, ast.List | ast.Tuple)
        ):
            return _filled(facts, REPEATED, two, what=facts.source.text_of(node))
    return None


RULE = Rule(
    code="P202",
    name="traced-value-made-concrete",
    title="A traced value is made concrete",
    severity=Severity.ERROR,
    jax=Jax.RAISES,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script"}),
)
