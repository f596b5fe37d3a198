"""Shapes beside the lines, and the place and operands of what failed."""

from __future__ import annotations

from typing import Any

import jax
import pytest

from core.base.avals import Aval
from core.base.places import Span
from core.sandbox.probe import Parts, failure, place_of, shapes_by_line
from tests.unit.sandbox.sandbox_support import Job

SCRIPT = '''
import jax
import jax.numpy as jnp
from typing import NamedTuple
class State(NamedTuple):
    w: jax.Array
    n: int
def step(state, x):
    """Sums."""
    (h, n) = state
    _, out = h, h + x
    n = n + 1
    return (out, n), out
init = (jnp.zeros((2, 4)), jnp.int32(0))
final, ys = jax.lax.scan(step, init, jnp.ones((7, 2, 4)))
s = State(jnp.ones(3), 2)
d = {"a": jnp.ones(2), "b": [1.0, jnp.int8(1)]}
n = 3
ys += 1
s.w
'''


def shapes(source: str) -> dict[int, list[str]]:
    with Job(source) as job:
        job.run()
        found = shapes_by_line(job.compiled, job.probe.records)
    return {line: [f"{b.name} {b.text}".strip() for b in beside] for line, beside in found.items()}


def test_shapes_by_line() -> None:
    assert shapes(SCRIPT) == {
        7: ["state (float32[2,4], int32[])", "x float32[2,4]"],
        9: ["h float32[2,4]", "n int32[]"],
        10: ["out float32[2,4]"],
        11: ["n int32[]"],
        12: ["((float32[2,4], int32[]), float32[2,4])"],
        13: ["init (float32[2,4], int32[])"],
        14: ["final (float32[2,4], int32[])", "ys float32[7,2,4]"],
        15: ["s State(w=float32[3], n=int)"],
        16: ["d {'a': float32[2], 'b': [float, int8[]]}"],
        18: ["ys float32[7,2,4]"],
    }


def test_the_last_value_of_a_line_counts() -> None:
    assert shapes("import jax.numpy as jnp\nfor n in (2, 5):\n    x = jnp.ones(n)")[3] == ["x float32[5]"]
    assert 3 not in shapes(
        "import jax.numpy as jnp\nfor v in (jnp.ones(2), None):\n    x = [v, v] if v is not None else (3,)"
    )


def test_large_containers_are_not_shown() -> None:
    assert shapes("import jax.numpy as jnp\nx = [jnp.ones(1)] * 50\ny = [jnp.ones(1)] * 3") == {
        3: ["y [float32[1], float32[1], float32[1]]"]
    }


def test_variables_dataclasses_and_keys() -> None:
    found = shapes(
        """
        import jax, jax.numpy as jnp
        from dataclasses import dataclass
        from flax import nnx
        @dataclass
        class P:
            x: jax.Array
            tag: str = "a"
        p = P(jnp.ones(2))
        v = nnx.Param(jnp.ones((2, 3)))
        k = jax.random.key(0)
        t = (jnp.ones(1),)
        """
    )
    assert [line[0] for line in found.values()] == [
        "p P(x=float32[2], tag=str)",
        "v float32[2,3]",
        "k key<fry>[]",
        "t (float32[1],)",
    ]


def test_only_shapes_are_kept() -> None:
    def kinds(shape: Any) -> set[type]:
        return (
            {type(shape)} | {k for _, p in shape.parts for k in kinds(p)} if isinstance(shape, Parts) else {type(shape)}
        )

    with Job(SCRIPT) as job:
        job.run()
        assert {k for r in job.probe.records.values() for k in kinds(r)} <= {Aval, Parts, str}


def fail(source: str) -> tuple[Any, list[str], BaseException]:
    with Job(source) as job:
        with pytest.raises(Exception) as error:
            job.run()
        lines = [source.splitlines()[i] for i in range(len(source.splitlines()))]
        found = failure(error.value, job.compiled, job.probe.records, lines)
    assert found is not None
    texts = [lines[s.line - 1][s.col : s.end_col] + " " + text for s, text in found.operands]
    return found.span, texts, error.value


def test_the_failing_expression_and_its_operands() -> None:
    source = "import jax.numpy as jnp\na = jnp.ones((2, 3))\nb = jnp.ones(4)\nc = 1.0 + (a + b).sum()"
    span, operands, error = fail(source)
    assert span == Span(4, 11, 4, 16)
    assert operands == ["a float32[2,3]", "b float32[4]"]
    assert isinstance(error, ValueError)


def test_a_failure_inside_a_traced_step() -> None:
    source = "import jax, jax.numpy as jnp\nw = jnp.ones((3, 4))\ndef step(h, x):\n    return jnp.tanh(h @ w + x), h\njax.lax.scan(step, jnp.ones(2), jnp.ones((5, 2)))"
    span, operands, _ = fail(source)
    assert span == Span(4, 20, 4, 25)
    assert operands == ["h float32[2]", "w float32[3,4]"]


def test_a_failure_in_a_call_names_its_arguments() -> None:
    source = "import jax.numpy as jnp\nx = jnp.ones((2, 3))\ny = jnp.concatenate([x, x.T], axis=0)"
    span, operands, _ = fail(source)
    assert span == Span(3, 4, 3, 37)
    assert operands == ["x float32[2,3]", "x.T float32[3,2]"]


def test_places_count_characters_and_go_over_lines() -> None:
    span, _, _ = fail("é = 'é漢'; z = é.nothing")
    assert span == Span(1, 14, 1, 23)
    span, _, _ = fail("x = (1 +\n     'a')")
    assert (span.line, span.end_line) == (1, 2)


def test_an_attribute_that_is_missing_or_refused_is_placed() -> None:
    assert fail("import jax.numpy as jnp\ny = jnp.zerox(3)")[0] == Span(2, 4, 2, 13)
    assert fail("import numpy as np\nnp.load('x')")[0] == Span(2, 0, 2, 7)
    assert fail("x = [1]\nx[3]")[0] == Span(2, 0, 2, 4)
    assert fail("x = {}\nx['a'] += 1")[0] == Span(2, 0, 2, 6)


def test_an_error_of_a_library_is_placed_at_the_script_s_line() -> None:
    source = (
        "from flax import nnx\nimport jax.numpy as jnp\nl = nnx.Linear(2, 3, rngs=nnx.Rngs(0))\ny = l(jnp.ones((4, 5)))"
    )
    span, operands, _ = fail(source)
    assert span == Span(4, 4, 4, 23)
    assert "jnp.ones((4, 5)) float32[4,5]" in operands


def test_no_script_frame_means_no_place() -> None:
    with pytest.raises(TypeError) as error:
        jax.numpy.ones(2) @ jax.numpy.ones(3)
    assert place_of(error.value.__traceback__, []) is None
