from __future__ import annotations

import ast

import pytest
from jax import tree_util

from core.base.places import Span
from core.contract.source import Source


def names(source: Source, name: str) -> list[ast.Name]:
    found = [n for n in ast.walk(source.tree) if isinstance(n, ast.Name) and n.id == name]
    return sorted(found, key=lambda n: (n.lineno, n.col_offset))


def test_columns_are_characters() -> None:
    source = Source("s = 'größe'; x = s\n")
    assert source.span(names(source, "x")[0]) == Span(1, 13, 1, 14)


def test_lines_are_counted_as_python_counts_them() -> None:
    source = Source("s = '\u2028'; x = 1\ny = x\n")
    assert source.span(names(source, "y")[0]).line == 2
    assert source.lines[1] == "y = x"


def test_an_expression_is_found_by_its_place() -> None:
    source = Source("a = f(x + 1)\n")
    node = source.expression(Span(1, 6, 1, 11))
    assert isinstance(node, ast.BinOp)
    assert source.text_of(node) == "x + 1"
    assert source.expression(Span(1, 6, 1, 10)) is None


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("h = 0\ninit = h\nscan(init)\n", "0"),
        ("h = 0\nh = 1\nscan(h)\nh = 2\n", "1"),
        ("a, b = 1, 2\nscan(b)\n", "2"),
        ("h = 0\nh = f(h)\nscan(h)\n", "f(h)"),
        ("def run(h):\n    scan(h)\n", "h"),
        ("h = 0\ndef run():\n    scan(h)\n", "0"),
    ],
)
def test_what_a_name_stands_for(text: str, want: str) -> None:
    source = Source(text)
    call = next(n for n in ast.walk(source.tree) if isinstance(n, ast.Call) and source.text_of(n.func) == "scan")
    assert source.text_of(source.resolve(call.args[0])) == want


def test_parts_of_a_tree_by_path() -> None:
    source = Source("h = 0\ninit = ({'a': h}, [1, 2])\n")
    value = source.tree.body[1].value  # type: ignore[attr-defined]
    first, second = tree_util.SequenceKey(0), tree_util.SequenceKey(1)
    assert source.text_of(source.part(value, (first, tree_util.DictKey("a")))) == "h"
    assert source.text_of(source.part(value, (second, second))) == "2"
    assert source.whole_part(value, (first, tree_util.DictKey("b"))) is None
    assert source.text_of(source.part(value, (first, tree_util.DictKey("b")))) == "{'a': h}"


@pytest.mark.parametrize(
    ("text", "public"),
    [
        ("import jax.numpy as jnp\njnp.zeros(2)\n", "jax.numpy.zeros"),
        ("import jax\njax.lax.scan(f)\n", "jax.lax.scan"),
        ("from jax import lax\nlax.scan(f)\n", "jax.lax.scan"),
        ("from jax.lax import scan as s\ns(f)\n", "jax.lax.scan"),
        ("import jax\nscan = jax.lax.scan\nscan(f)\n", "jax.lax.scan"),
        ("from flax.experimental import nnx\nnnx.RNN(f)\n", "flax.nnx.RNN"),
        ("import jax\ndef g(jax):\n    jax.jit(f)\n", None),
        ("def scan(f):\n    pass\nscan(f)\n", None),
    ],
)
def test_public_names_behind_aliases(text: str, public: str | None) -> None:
    source = Source(text)
    call = next(n for n in ast.walk(source.tree) if isinstance(n, ast.Call))
    assert source.dotted(call.func) == public


def test_how_the_script_spells_a_public_name() -> None:
    source = Source("import jax\nimport jax.numpy as jnp\nfrom jax.random import split\n")
    assert source.name_of("jax.numpy.where") == "jnp.where"
    assert source.name_of("jax.lax.cond") == "jax.lax.cond"
    assert source.name_of("jax.random.split") == "split"
    assert source.name_of("numpy.stack") is None


def test_functions_on_one_line_are_told_apart() -> None:
    text = "f, g = (lambda c, x: (c, x)), (lambda c, x: (x, c))\n"
    source = Source(text)
    made: dict[str, object] = {}
    exec(compile(text, source.filename, "exec"), made)
    for name, want in (("f", "(c, x)"), ("g", "(x, c)")):
        function = source.function(made[name])
        assert function is not None
        returned = source.returned(function)
        assert returned is not None
        assert source.text_of(returned) == want


def test_a_function_of_another_file_is_none_of_ours() -> None:
    assert Source("x = 1\n").function(test_columns_are_characters) is None
