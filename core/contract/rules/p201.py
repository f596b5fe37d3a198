"""A Python `if` (or `while`, `and`, `max`, …) on a traced value.

**What.** Python asks a traced value whether it is true: in `if`, `while`, `and`, `or`, `not`, `assert`, a conditional
expression, `in`, `0 < x < 3`, `max`, `min`, `sorted`, `any`, `all` or `bool`. It raises.

**Why.** A step is traced once, before there is any number: the carry and x are known by shape and dtype alone. Both
branches must be in the program, and the choice between them too: `jnp.where`, `lax.cond`, `lax.while_loop`.

**Bad**

    def step(c, x):
        if c > 3:
            c = c - 3
        return c + x, c

**Good**

    def step(c, x):
        c = jnp.where(c > 3, c - 3, c)
        return c + x, c

`if` on a Python bool, on a shape or on `x is None` is fine: those are known while tracing.

Source: JAX documentation, "Control flow and logical operators with JIT"; jax.errors.TracerBoolConversionError.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import jax

from core.base.text import fill
from core.base.violation import Severity, TextEdit
from core.contract import p_branches
from core.contract.p_static import static_argument
from core.contract.p_tests import asked, is_boolean, predicate, several, whole_test
from core.contract.p_text import Ink, proposals
from core.contract.p_traced import because, dead_operands, in_trace, tracers_in, type_of
from core.contract.rule import Finding, Jax, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Failure
from core.contract.subject import MISSING

MESSAGE = "Python's {word} needs to know whether `{code}` is true, but it is traced ({type}): it has no value yet."
UNTYPED = "Python's {word} needs to know whether `{code}` is true, but it is traced: it has no value yet."
SEVERAL = "Python's {word} needs to know which of its arguments are true, but they are traced: they have no values yet."
MATCHED = "Python's match compares with `{code}`, but what it matches is traced: it has no value yet."
COMPARES = "Python's {word} compares its arguments, but they are traced ({type}): they have no values yet."
MANY = "Python's {word} needs one truth value, but `{code}` is traced and holds {size} of them ({type})."
WHY = (
    "A step is traced once, before there are numbers. Both branches must be in the program, and so must the choice: "
    "jnp.where, lax.cond or lax.while_loop, not Python's own."
)
TITLE_WHERE = "Choose with jnp.where"
TITLE_COND = "Choose with lax.cond"
TITLE_LOOP = "Loop with lax.while_loop"
TITLE_LOGIC = "Combine with JAX's logical operators"
TITLE_TWIN = "Use {twin}"
TITLE_PRINT = "Print the condition at every step instead"

WORDS = {ast.If: "if", ast.While: "while", ast.Assert: "assert", ast.IfExp: "if … else", ast.comprehension: "if"}
#: Functions that compare or ask for truth, with their twin for two arguments and for one.
TWINS = {
    "max": ("jax.numpy.maximum", "jax.numpy.max"),
    "min": ("jax.numpy.minimum", "jax.numpy.min"),
    "sorted": ("", "jax.numpy.sort"),
    "any": ("", "jax.numpy.any"),
    "all": ("", "jax.numpy.all"),
}


def check(facts: ScriptFacts) -> Iterator[Finding]:
    """The failure, when Python asked a living tracer for its truth."""
    failure = facts.failure
    if failure is None or failure.node is None or not _asks(facts, failure) or dead_operands(facts, failure):
        return
    node = asked(facts, failure.node)
    yield Finding(
        message=_message(facts, node),
        place=facts.span(node),
        because=because(facts, failure),
        repairs=(*_repairs(facts, node), *static_argument(facts, failure, node)),
    )


def _asks(facts: ScriptFacts, failure: Failure) -> bool:
    if isinstance(failure.error, jax.errors.TracerBoolConversionError):
        return True
    if not isinstance(failure.error, ValueError) or failure.node is None or not in_trace(facts, failure):
        return False
    node = asked(facts, failure.node)
    aval = type_of(facts.value(node, MISSING))
    if aval is not None and aval.size != 1:
        return whole_test(facts, node)[1] is not None or isinstance(facts.source.parents.get(node), ast.BoolOp)
    name = _function(facts, node)
    values = [v for o in failure.operands for v in tracers_in(o.value)]
    return name in (*TWINS, "bool") and any(a is not None and a.size != 1 for a in map(type_of, values))


def _function(facts: ScriptFacts, node: ast.expr) -> str:
    """The name of Python's own function that a call calls; "" for anything else."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and facts.source.is_builtin(node.func.id):
        return node.func.id
    return ""


def _message(facts: ScriptFacts, node: ast.expr) -> str:
    code = facts.source.text_of(node)
    aval = type_of(facts.value(node, MISSING))
    name = _function(facts, node)
    if name in ("max", "min", "sorted") or (isinstance(node, ast.Call) and aval is None and not name):
        types = [str(a) for a in (type_of(t) for part in ast.walk(node) if isinstance(part, ast.expr)
                                  for t in tracers_in(facts.value(part, MISSING))) if a is not None]  # fmt: skip
        word = name or facts.source.text_of(node.func) if isinstance(node, ast.Call) else name
        return fill(COMPARES, word=word, type=", ".join(dict.fromkeys(types)) or "?")
    word = _word(facts, node)
    if name in ("any", "all"):
        return fill(SEVERAL, word=name)
    if isinstance(facts.source.parents.get(node), ast.MatchValue | ast.MatchSingleton):
        return fill(MATCHED, code=code)
    if aval is None:
        return fill(UNTYPED, word=word, code=code)
    return fill(MESSAGE if aval.size == 1 else MANY, word=word, code=code, type=aval, size=aval.size)


def _word(facts: ScriptFacts, node: ast.expr) -> str:
    """What asked: ``if``, ``and``, ``in``, ``bool``."""
    name = _function(facts, node)
    if name:
        return name
    parent = facts.source.parents.get(node)
    if isinstance(parent, ast.BoolOp):
        return "and" if isinstance(parent.op, ast.And) else "or"
    if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
        return "not"
    asker = whole_test(facts, node)[1]
    if asker is not None and not (isinstance(node, ast.Compare) and len(node.ops) > 1):
        return WORDS[type(asker)]
    if isinstance(node, ast.Compare):
        return "in" if any(isinstance(op, ast.In | ast.NotIn) for op in node.ops) else "chained comparison"
    return "match" if isinstance(facts.source.statement(node), ast.Match) else "test"


# --- repairs --------------------------------------------------------------------------------------------------------


def _repairs(facts: ScriptFacts, node: ast.expr) -> tuple[Repair, ...]:
    name = _function(facts, node)
    if name in ("max", "min", "sorted") and isinstance(node, ast.Call):
        twin = (TWINS[name][0] if len(node.args) > 1 else "") or TWINS[name][1]
        title = fill(TITLE_TWIN, twin=twin.replace("jax.numpy", "jnp"))
        return proposals(facts, (title, lambda ink: _twin(ink, node, name)))
    whole, asker = whole_test(facts, node)
    if isinstance(asker, ast.If):
        return proposals(
            facts,
            (TITLE_WHERE, lambda ink: p_branches.where_statement(ink, asker)),
            (TITLE_COND, lambda ink: p_branches.cond_statement(ink, asker)),
        )
    if isinstance(asker, ast.IfExp):
        return proposals(
            facts,
            (TITLE_WHERE, lambda ink: p_branches.where_expression(ink, asker)),
            (TITLE_COND, lambda ink: p_branches.cond_expression(ink, asker)),
        )
    if isinstance(asker, ast.While):
        return proposals(facts, (TITLE_LOOP, lambda ink: p_branches.while_statement(ink, asker)))
    if isinstance(asker, ast.Assert):
        return proposals(facts, (TITLE_PRINT, lambda ink: _printed(ink, asker)))
    if asker is None:
        title = TITLE_LOGIC if not name else fill(TITLE_TWIN, twin=f"jnp.{name}") if name in TWINS else TITLE_LOGIC
        return proposals(facts, (title, lambda ink: _logical(ink, whole)))
    return ()


def _logical(ink: Ink, node: ast.expr) -> list[TextEdit]:
    """``a and b`` as a value: the same of truth values, and one of the two of anything else."""
    if isinstance(node, ast.BoolOp) and not is_boolean(ink.facts, node) and len(node.values) == 2:
        one, two = (ink.argument(v) for v in node.values)
        chosen = f"{two}, {one}" if isinstance(node.op, ast.And) else f"{one}, {two}"
        return [ink.put(node, f"{ink.name('jax.numpy.where')}({predicate(ink, node.values[0])}, {chosen})")]
    text = predicate(ink, node)
    if text == ink.text(node):
        return []
    inside = isinstance(
        ink.source.parents.get(node), ast.BinOp | ast.Compare | ast.UnaryOp | ast.Attribute | ast.Subscript
    )
    return [ink.put(node, f"({text})" if inside else text)]


def _twin(ink: Ink, node: ast.Call, name: str) -> list[TextEdit]:
    """``max(a, b, c)`` as ``jnp.maximum(jnp.maximum(a, b), c)``; ``max(list)`` as ``jnp.max(jnp.stack(list))``."""
    if any(isinstance(a, ast.Starred) for a in node.args) or not node.args:
        return []
    keywords = {k.arg: k.value for k in node.keywords}
    two, one = TWINS[name]
    if len(node.args) > 1 and two and not keywords:
        text = ink.argument(node.args[0])
        for arg in node.args[1:]:
            text = f"{ink.name(two)}({text}, {ink.argument(arg)})"
        return [ink.put(node, text)]
    if len(node.args) != 1 or set(keywords) - {"reverse"}:
        return []
    text = f"{ink.name(one)}({several(ink, node.args[0])})"
    backwards = keywords.get("reverse")
    if backwards is None:
        return [ink.put(node, text)]
    return [ink.put(node, f"{text}[::-1]")] if isinstance(backwards, ast.Constant) and backwards.value is True else []


def _printed(ink: Ink, node: ast.Assert) -> list[TextEdit]:
    label = ink.text(node.test).replace("{", "{{").replace("}", "}}").replace("\n", " ")
    quoted = repr(label + ": {}")
    return [ink.put(node, f"{ink.name('jax.debug.print')}({quoted}, {predicate(ink, node.test)})")]


RULE = Rule(
    code="P201",
    name="python-branch-on-traced-value",
    title="Python branches on a traced value",
    severity=Severity.ERROR,
    jax=Jax.RAISES,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script"}),
)
