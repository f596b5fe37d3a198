"""The step language: what is refused, where, with which sentence; and that the transformation changes no meaning."""

from __future__ import annotations

import ast

import pytest
from RestrictedPython.transformer import RestrictingNodeTransformer

from core.base.places import Span
from core.sandbox.policy import Policy, compile_script
from core.sandbox.reporting import Reporting
from core.sandbox.words import METHODS
from tests.unit.sandbox.sandbox_support import compiled, refused, run


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("x.__globals__", "__globals__ reaches into the interpreter"),
        ("x.__class__ = y", "__class__ reaches into the interpreter"),
        ("del x.__dict__", "__dict__ reaches into the interpreter"),
        ("x.__dict__ += 1", "__dict__ reaches into the interpreter"),
        ("__builtins__", "the name __builtins__ is reserved"),
        ("_getattr_ = 1", "without an underscore at both ends"),
        ("def f(_probe_): pass", "without an underscore at both ends"),
        ("lambda _write_: 1", "without an underscore at both ends"),
        ("try:\n    pass\nexcept ValueError as _probe_:\n    pass", "without an underscore at both ends"),
        ("f(__class__=1)", "the name __class__ is reserved"),
        ("class A:\n    def __getattr__(self, n): pass", "a class may not define __getattr__"),
        ("class A:\n    __slots__ = ('__dict__',)", "the name __slots__ is reserved"),
        ("class A:\n    __slots__ = names", "the name __slots__ is reserved"),
        ("class A(tuple):\n    _fields = ()", "the name _fields belongs to named tuples"),
        ("class A(tuple):\n    def _fields(self): pass", "the name _fields belongs to named tuples"),
        ("class A(metaclass=B): pass", "the class keyword metaclass"),
        ("class A(**k): pass", "the class keyword **"),
        ("x: 'int' = 1", "write the type without quotes"),
        ("def f(x: list['A']) -> 'A': pass", "write the type without quotes"),
        ("from jax import *", "import the names you use"),
        ("from . import a", "import by a full name"),
        ("async def f(): pass", "async code does not run in the playground; write a plain function"),
        ("async def f():\n    await g()", "async code"),
        ("try:\n    pass\nexcept* ValueError:\n    pass", "except* does not run"),
        ("type A = int", "a type statement does not run"),
        ("def f[T](x): pass", "a type parameter does not run"),
        ("class A[T]: pass", "a type parameter does not run"),
        ("match x:\n    case A(b=1): pass", "a class pattern reads attributes"),
        ("match x:\n    case A(b): pass", "a class pattern reads attributes"),
        ("int = A\nmatch x:\n    case int(b): pass", "a class pattern reads attributes"),
        ("match x:\n    case a.b: pass", "a dotted name in a pattern"),
        ("match x:\n    case {a.b: 1}: pass", "a dotted name in a pattern"),
    ],
)
def test_it_is_refused_with_what_to_write_instead(source: str, text: str) -> None:
    assert text in " / ".join(r.text for r in refused(source))


def test_all_refusals_are_told_in_order() -> None:
    found = refused("a = x.__code__\nb = __builtins__\nc = y.__dict__")
    assert [r.span.line for r in found] == [1, 2, 3]


def test_a_place_counts_characters() -> None:
    (found,) = refused('s = "héé漢"; y = s.__dict__')
    assert found.span == Span(1, 16, 1, 26)


def test_what_does_not_parse_is_python_s_own_error() -> None:
    with pytest.raises(SyntaxError) as error:
        compile_script("x = (1,")
    assert error.value.lineno == 1


@pytest.mark.parametrize(
    "source", ["(" * 5000 + ")" * 5000, "x" + ".a" * 20_000, "-" * 9_000 + "1", "a" + "+a" * 9_000]
)
def test_deep_nesting_is_refused_and_never_crashes(source: str) -> None:
    try:
        result = compile_script(source)
    except SyntaxError:
        return
    assert isinstance(result, tuple)
    assert "nested too deeply" in result[0].text


def _node_types() -> list[type[ast.AST]]:
    found: list[type[ast.AST]] = []
    todo: list[type[ast.AST]] = [ast.stmt, ast.expr, ast.pattern, ast.type_param, ast.excepthandler, ast.mod]
    while todo:
        for cls in todo.pop().__subclasses__():
            todo.append(cls)
            if cls.__module__ == "ast" and not cls.__subclasses__():
                found.append(cls)
    return found


@pytest.mark.parametrize("node", _node_types(), ids=lambda n: n.__name__)
def test_no_node_is_treated_by_a_visitor_that_is_not_ours(node: type[ast.AST]) -> None:
    """Either our policy names the node, or RestrictedPython's default refuses it."""
    name = f"visit_{node.__name__}"
    ours = name in vars(Policy) or name in vars(Reporting)
    theirs = name in vars(RestrictingNodeTransformer)
    deprecated = node.__name__ in ("Num", "Str", "Bytes", "NameConstant", "Ellipsis", "Index", "ExtSlice", "Suite")
    refusing = node.__name__ in ("Expression", "Interactive", "FunctionType", "TypeIgnore")
    if theirs and not ours and not deprecated and not refusing:
        policy = Policy([""], ast.Module([], []))
        getattr(policy, name)(node())
        assert policy.refusals, node.__name__


def test_methods_that_a_class_may_define_are_called_by_operators_only() -> None:
    """None of them is asked for by attribute lookup, pickling, the buffer protocols or class creation."""
    behind = "getattr getattribute setattr delattr new del class_getitem init_subclass set_name get set delete reduce "
    behind += "reduce_ex getstate setstate copy deepcopy array array_interface array_struct array_ufunc array_function "
    behind += "jax_array dlpack buffer index_ instancecheck subclasscheck prepare mro_entries class dict slots"
    assert METHODS.isdisjoint(f"__{name}__" for name in behind.split())


# --- meaning --------------------------------------------------------------------------------------------------------


def test_augmented_assignment_evaluates_in_python_s_order_and_once() -> None:
    source = """
    log = []
    class A:
        n = 1
        def __init__(self):
            self.n = 10
    def at(name, value):
        log.append(name)
        return value
    a, d = A(), {"k": 1}
    def changes():
        a.n = 100
        d["k"] = 100
        log.append("value")
        return 1
    at("holder", a).n += changes()
    at("holder", d)[at("key", "k")] += changes()
    x = 5
    x += (x := 7)
    result = (a.n, d["k"], x, log)
    """
    names = run(source)
    plain: dict[str, object] = {}
    import textwrap

    exec(textwrap.dedent(source), plain)
    assert names["result"] == plain["result"]
    assert not [n for n in names if n.startswith("_t")]


def test_private_names_are_spelled_as_python_spells_them() -> None:
    names = run(
        """
        class A:
            __kept = 3
            def __init__(self):
                self.__x = 1
            def bump(self):
                self.__x += 1
                return self.__x, A.__kept, self.__helper()
            def __helper(self):
                return "helped"
        class B(A):
            def __init__(self):
                super().__init__()
                self.__x = 50
            def mine(self):
                return self.__x
        b = B()
        result = b.bump(), b.mine()
        __, _ = 1, 2
        """
    )
    assert names["result"] == ((2, 3, "helped"), 50)


def test_assertions_and_prints_wait_for_values() -> None:
    source = "ran = []\nprint(ran.append('printed'))\nassert ran.append('asserted') is None"
    assert run(source)["ran"] == ["printed", "asserted"]
    assert run(source, values=False)["ran"] == []


def test_annotations_under_the_future_import_mean_what_they_can() -> None:
    names = run(
        """
        from __future__ import annotations
        from typing import NamedTuple
        import jax
        class State(NamedTuple):
            x: jax.Array
            again: State
            known: int = 0
        def f(s: State, t: Unknown) -> Unknown: return s.known
        result = f(State(1, 2), 3)
        """
    )
    assert names["result"] == 0


def test_what_is_shown_are_values_that_are_assigned_returned_or_received() -> None:
    found = compiled("def f(a, *, b=1):\n    c, (d, e) = a\n    c.x = 1\n    return c\ny = z = f(1)\ny += 2\nf(3)")
    shown = {(s.line, s.names) for s in found.shown}
    assert shown == {(1, ("a", "b")), (2, ("c", ("d", "e"))), (3, "c.x"), (4, None), (5, "z"), (6, "y")}
