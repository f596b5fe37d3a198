"""Whatever somebody pastes, there is an answer that can be read."""

import json

import pytest

from core.base.outcome import Outcome
from core.contract.trace import SAID, Raised
from core.doctor import job
from core.doctor.answer import Request, Wish
from core.doctor.check import examine
from core.doctor.cycles import is_cyclic
from core.doctor.wire import from_wire

JAX = "import jax, jax.numpy as jnp\nimport numpy as np\nfrom flax import nnx\n"


def ask(wish, text):
    desk = job.Desk()
    try:
        sent = json.dumps(desk.handle(Request(wish, text)), allow_nan=False)
    finally:
        desk.close()
    return from_wire(json.loads(sent))


# --- what parses and does not compile ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "col"),
    [
        ("x = 1\nreturn 5\n", 2, 0),
        ("for i in range(2):\n    pass\nbreak\n", 3, 0),
        ("def f(a, a):\n    return a\n", 1, 9),
        ("def f():\n    x = 1\n    global x\n", 3, 4),
        ("s = '😀😀'; f(a=1, a=2)\n", 1, 17),
        ("*a, *b = [1]\n", 1, 0),
        ("x = 1\nfrom __future__ import annotations\n", 2, 0),
        ("match [1, 2]:\n    case [a, a]:\n        pass\n", 2, 13),
    ],
)
@pytest.mark.parametrize("wish", Wish)
def test_what_python_refuses_to_compile_is_shown_at_its_place(wish, text, line, col):
    answer = ask(wish, text)
    assert answer.report.outcome is Outcome.ERROR
    assert answer.report.error.type == "SyntaxError"
    assert (answer.report.error.place.line, answer.report.error.place.col) == (line, col)


def test_a_text_between_two_statements_is_no_docstring():
    assert ask(Wish.CHECK, '"""first"""\nx = 1\n"""second"""\nprint(__doc__)\n').stdout == "first\n"


def test_a_line_separator_in_a_string_moves_no_place():
    text = JAX + "t = 'a\u2028b\x1cc'\ny = jnp.ones(3) + jnp.ones(4)\n"
    error = ask(Wish.CHECK, text).report.error
    assert (error.place.line, error.place.col) == (5, 4)
    assert error.operands == ("jnp.ones(3): float32[3]", "jnp.ones(4): float32[4]")


# --- what a script may raise ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wish", [Wish.SHAPES, Wish.CHECK])
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("raise KeyboardInterrupt\n", "KeyboardInterrupt"),
        ("raise GeneratorExit\n", "GeneratorExit"),
        ("class E(BaseException): pass\nraise E('no')\n", "E"),
        ("raise BaseExceptionGroup('x', [KeyboardInterrupt()])\n", "BaseExceptionGroup"),
        ("class E(Exception):\n    def __str__(self): raise ValueError('no')\nraise E()\n", "E"),
        ("class E(Exception):\n    def __str__(self): return 5\nraise E()\n", "E"),
        ("raise ValueError('x' * 5_000_000)\n", "ValueError"),
        ("raise ValueError('\\ud800')\n", "ValueError"),
    ],
)
def test_any_exception_is_shown(wish, text, kind):
    answer = ask(wish, text)
    assert answer.report.error.type == kind
    assert answer.report.error.place.line == text.count("\n")
    assert len(answer.report.error.message) <= SAID + 1


def test_an_interrupt_that_the_script_did_not_raise_ends_us(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("core.doctor.recorder.Recorder.probe", interrupted)
    with pytest.raises(KeyboardInterrupt):
        examine("x = abs(1)\n")


def test_a_message_is_cut_and_never_raises():
    class Silent(Exception):
        def __str__(self):
            raise RuntimeError

    assert Raised(Silent()).text == ""
    assert len(Raised(ValueError("x" * 10**6)).text) == SAID + 1


@pytest.mark.parametrize("base", ["list", "dict"])
def test_containers_that_raise_when_they_are_read(base):
    text = (
        f"class C({base}):\n    def __iter__(self): raise ValueError\n    def items(self): raise ValueError\nc = C()\n"
    )
    assert ask(Wish.CHECK, text).report.outcome is Outcome.OK


def test_half_a_surrogate_pair_is_not_sent():
    assert ask(Wish.CHECK, "print('\\ud800 ok')\n").stdout == "? ok\n"


def test_as_many_numbers_as_are_drawn_can_be_read():
    text = JAX + "f, ys = jax.lax.scan(lambda c, x: (c * 0.9, c.sum()), jnp.ones(400, complex), None, length=500)\n"
    (panel,) = ask(Wish.CHECK, text).scans
    assert panel.result.carries[0].values.shape == (501, 400)


# --- values that hold themselves --------------------------------------------------------------------------------------

LIST = "a = [1]\na.append(a)\ndef f(v):\n    return v\nb = f(a)\nprint(len(b))\n"
TREE = """root = {'name': 'root', 'parent': None, 'children': []}
child = {'name': 'a', 'parent': root, 'children': []}
root['children'].append(child)
def depth(n):
    return 0 if n['parent'] is None else 1 + depth(n['parent'])
print(depth(child))
"""
MODULE = (
    JAX
    + """class Child(nnx.Module):
    def __init__(self, parent, rngs):
        self.parent = parent
        self.lin = nnx.Linear(2, 2, rngs=rngs)
class Parent(nnx.Module):
    def __init__(self, rngs):
        self.child = Child(self, rngs)
    def __call__(self, x):
        return self.child.lin(x)
m = Parent(nnx.Rngs(0))
f, ys = jax.lax.scan(lambda c, x: (m(c), c.sum()), jnp.ones((1, 2)), None, length=3)
"""
)


@pytest.mark.parametrize("text", [LIST, TREE, MODULE])
@pytest.mark.parametrize("wish", Wish)
def test_a_value_that_holds_itself_is_never_flattened(wish, text):
    assert ask(wish, text).report.outcome is Outcome.OK


def test_what_holds_itself():
    inner = {"a": [1, (2, 3)]}
    assert not is_cyclic([inner, inner])
    inner["b"] = [inner]
    assert is_cyclic([inner])
    assert not is_cyclic(3)


# --- what needs values ------------------------------------------------------------------------------------------------

NEEDS = (
    "y = jnp.dot(x, x).block_until_ready()",
    "line = f'{x.sum():.3f}'",
    "line = '{:.3f}'.format(x.sum())",
    "line = format(x.sum(), '.3f')",
    "n = jnp.int32(3)\nz = jnp.zeros(n)",
    "n = jnp.argmax(x)\ny = x[:n]",
    "a = np.zeros(3)\na[0] = x.sum()",
    "h = []\nfor v in x:\n    h.append(float(v))\nbest = min(h)",
    "d = {}\nd[int(x[0])] = 1\nv = d[3]",
    "try:\n    v = float(x.sum())\nexcept TypeError as e:\n    raise RuntimeError('no') from e",
)
BROKEN = (
    "y = jnp.ones(3) + jnp.ones(4)",
    "n = float(x.sum())\ny = jnp.ones(3) + jnp.ones(4)",
    "a, b = x",
    "y = x.summ()",
    "f = lambda a, b: a\ny = f(x)",
    "jax.lax.scan(lambda c, t: (c.block_until_ready(), None), x, x)",
)
FAULTS = (
    ("jax.lax.scan(lambda c, t: (c.astype(jnp.float16), None), x, x)", "S104"),
    ("v = float(x.sum())\njax.lax.scan(lambda c, t: (c, f'{t:.2f}'), x, x)", "P202"),
    ("@jax.jit\ndef f(n):\n    return jnp.zeros(n)\nf(3)", "P209"),
)


@pytest.mark.parametrize("line", NEEDS)
def test_honest_code_that_needs_values_is_no_fault_before_it_runs(line):
    text = f"{JAX}x = jnp.array([3., 1., 2.])\n{line}\n"
    assert ask(Wish.CHECK, text).report.outcome is Outcome.OK
    answer = ask(Wish.SHAPES, text)
    assert answer.report.outcome is Outcome.OK
    assert answer.skipped


@pytest.mark.parametrize("line", BROKEN)
def test_what_raises_with_values_raises_without_them(line):
    assert ask(Wish.SHAPES, f"{JAX}x = jnp.array([3., 1., 2.])\n{line}\n").report.error is not None


@pytest.mark.parametrize(("line", "code"), FAULTS)
def test_faults_are_found_without_values(line, code):
    assert code in ask(Wish.SHAPES, f"{JAX}x = jnp.array([3., 1., 2.])\n{line}\n").report.codes


# --- notebooks that are none, and long lists --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{"worksheets": [null, {"cells": 5}]}',
        '{"cells":' + "[" * 5_000,
        '{"cells":' + "[" * 4_000 + "]" * 4_000 + "}",
        '{"cells": [{"cell_type":"code","source":{"a":1}}, 5, null]}',
    ],
)
def test_a_broken_notebook_has_an_answer(text):
    assert ask(Wish.SHAPES, text).report.outcome in (Outcome.OK, Outcome.ERROR)


def test_a_list_of_thousands_as_xs_is_one_fault():
    answer = ask(Wish.SHAPES, JAX + "jax.lax.scan(lambda c, x: (c, x), 0., [1.] * 2000)\n")
    assert answer.report.codes == ("S110",)
