"""What a script may import: wide, with a reason for each name that is not there, and per job where it must be."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from flax import nnx

from core.sandbox import names, own_jax
from core.sandbox.facade import environment, job_tables, library_tables
from core.sandbox.guards import Guards
from core.sandbox.names import EXTRA_DENIED, SPACES
from core.sandbox.output import Output
from core.sandbox.own_std import DENIED_BUILTINS
from core.sandbox.refusals import NotHere, RefusedAttribute, RefusedImport, RefusedName, RefusedUse
from tests.unit.sandbox.sandbox_support import Job, run

TRANSFORMATIONS = (
    "jit grad value_and_grad vmap jacfwd jacrev hessian checkpoint remat eval_shape make_jaxpr vjp jvp linearize custom_jvp "
    "custom_vjp custom_gradient linear_transpose named_call named_scope ensure_compile_time_eval disable_jit device_get "
    "device_put block_until_ready closure_convert effects_barrier typeof jacobian"
).split()
NNX = (
    "Module Linear LSTMCell OptimizedLSTMCell GRUCell SimpleCell RNN Bidirectional scan jit grad value_and_grad vmap remat "
    "Optimizer Rngs Param Variable State Dropout BatchNorm LayerNorm Conv Embed MultiHeadAttention Sequential List Dict "
    "split merge state update clone pop eval_shape cond switch while_loop fori_loop Carry StateAxes split_rngs fork_rngs "
    "initializers metrics MultiMetric relu tanh sigmoid softmax"
).split()


@pytest.fixture(scope="module")
def tables() -> Any:
    guards = Guards()
    yield job_tables(guards, Output())
    guards.close()


@pytest.mark.parametrize(
    "module",
    ["jax.numpy", "jax.nn", "jax.random", "jax.lax", "jax.tree", "jax.tree_util", "jax.numpy.linalg", "optax", "numpy"],
)
def test_every_public_name_is_offered_or_denied_with_a_reason(module: str, tables: Any) -> None:
    public = {n for n in dir(importlib.import_module(module)) if not n.startswith("_")}
    denied = library_tables()[module][1]
    spaces = {s.name.rpartition(".")[2] for s in SPACES if s.name.rpartition(".")[0] == module}
    missing = public - set(tables[module]) - set(denied) - spaces
    assert missing == set()
    assert all(len(reason) > 10 for reason in denied.values())
    assert len(tables[module]) > 0.55 * len(public)


def test_transformations_and_layers_are_there(tables: Any) -> None:
    assert set(TRANSFORMATIONS) <= set(tables["jax"])
    spaces = {s.name.rpartition(".")[2] for s in SPACES}
    assert set(NNX) <= set(tables["flax.nnx"]) | spaces


def test_no_denied_name_is_stale() -> None:
    for space in SPACES:
        module = importlib.import_module("flax.nnx") if space.source == "flax.nnx.metrics" else None
        try:
            module = module or importlib.import_module(space.source)
        except ModuleNotFoundError:
            continue
        for name in {**space.denied, **EXTRA_DENIED.get(space.name, {})}:
            assert hasattr(module, name), f"{space.name}.{name}"
    assert {s.name for s in SPACES} >= set(EXTRA_DENIED)


def test_reasons_are_sentences_that_end_where_the_message_does() -> None:
    reasons = {v for n, v in vars(names).items() if n.isupper() and isinstance(v, str)} | set(DENIED_BUILTINS.values())
    for reason in reasons:
        assert not reason.endswith("."), reason
        assert reason[0].islower(), reason


@pytest.mark.parametrize(
    ("source", "kind", "text"),
    [
        ("import os\nos.system('ls')", RefusedAttribute, "a script has no files"),
        ("import subprocess", RefusedImport, "the module subprocess is not here"),
        ("from numpy import load", RefusedImport, "numpy has load, but not in the playground: a script has no files"),
        ("from jax.experimental import pallas", RefusedImport, "jax has experimental"),
        ("import jax\njax.pure_callback", RefusedAttribute, "it calls Python from inside a compiled program"),
        ("open('x')", RefusedName, "open is not available in the playground: a script has no files"),
        ("import jax\njax.jit(len, backend='cpu')", RefusedUse, "there is one device"),
        ("import jax\njax.config.update('jax_compilation_cache_dir', 'x')", RefusedUse, "jax_compilation_cache_dir"),
        ("import jax\njax.config.update('jax_platforms', 'gpu')", RefusedUse, "the CPU"),
        ("from jax import lax\nlax.scan_p", RefusedAttribute, "it is a primitive"),
        ("import jax\njax.interpreters", RefusedAttribute, "module of the library's inside"),
    ],
)
def test_what_is_not_here_says_why(source: str, kind: type[NotHere], text: str) -> None:
    with pytest.raises(kind) as refused:
        run(source)
    assert text in refused.value.text


def test_an_unknown_module_can_be_told_from_others() -> None:
    with pytest.raises(RefusedImport) as refused:
        run("import equinox.nn as enn")
    assert refused.value.module == "equinox.nn"
    assert isinstance(refused.value, ImportError)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("import jax.numpy as jnp\njnp.zerox(3)", AttributeError),
        ("from jax.numpy import zerox", ImportError),
        ("zerox", NameError),
        ("import jax\njax.config.update('jax_no_such', 1)", AttributeError),
        ("import jax\njax.jit(len, no_such=1)", TypeError),
        ("print(1, file=3, nope=1)", TypeError),
    ],
)
def test_a_slip_is_python_s_own_error(source: str, kind: type[Exception]) -> None:
    with pytest.raises(kind) as error:
        run(source)
    assert not isinstance(error.value, NotHere)


def test_one_function_is_one_object_by_all_its_names() -> None:
    names = run(
        "import jax, jax.lax as a\nfrom jax import lax\nfrom jax.lax import scan\n"
        "same = (jax.lax.scan is scan, a is lax, lax.scan is scan)\n"
    )
    assert names["same"] == (True, True, True)


class Watching:
    """A recorder for the test."""

    def __init__(self, *watched: str) -> None:
        self.watched = frozenset(watched)
        self.calls: list[tuple[str, int, list[str]]] = []

    def call(self, name: str, function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        self.calls.append((name, len(args), sorted(keywords)))
        return function(*args, **keywords)


def test_a_recorder_sees_the_calls_of_the_script_and_not_those_of_libraries() -> None:
    record = Watching("jax.lax.scan", "numpy.random.normal")
    run(
        """
        import jax, jax.numpy as jnp, numpy as np
        from flax import nnx
        from jax.lax import scan
        f = lambda c, x: (c + x, c)
        jax.lax.scan(f, 0.0, jnp.ones(2))
        scan(f, 0.0, xs=jnp.ones(2), reverse=True)
        nnx.RNN(nnx.GRUCell(1, 1, rngs=nnx.Rngs(0)))(jnp.ones((1, 2, 1)))
        np.random.normal(size=3)
        """,
        record=record,
    )
    scans = [c for c in record.calls if c[0] == "jax.lax.scan"]
    assert scans == [("jax.lax.scan", 3, []), ("jax.lax.scan", 2, ["reverse", "xs"])]
    assert record.calls[-1] == ("numpy.random.normal", 0, ["size"])


SUSPICIOUS = re.compile(
    r"^(compiler_options|backend|callback|file|fname|filename|path|allow_pickle|console\w*|output|cmd)$"
)


def test_no_offered_function_takes_a_file_a_callback_or_a_compiler_option(tables: Any) -> None:
    """By its signature; those of ours hide what they do not pass on, others are listed with the reason why they may."""
    # `output` is an array of the one and a word of the other.
    harmless = {"jax.lax.ragged_all_to_all", "jax.scipy.linalg.schur"}
    found = set()
    for module, table in tables.items():
        for name, value in table.items():
            if not callable(value) or f"{module}.{name}" in harmless:
                continue
            try:
                parameters = inspect.signature(value).parameters
            except (TypeError, ValueError):
                continue
            if any(SUSPICIOUS.match(p) for p in parameters):
                found.add(f"{module}.{name}")
    assert found == set()


# --- settings and state of the job ----------------------------------------------------------------------------------


def test_x64_is_asked_for_applied_and_taken_back() -> None:
    before = bool(jax.config.jax_enable_x64)
    with Job(
        "import jax, jax.numpy as jnp\njax.config.update('jax_enable_x64', True)\nd = jnp.ones(1).dtype.name"
    ) as job:
        assert job.run().names["d"] == "float64"
        assert job.guards.requests == {"jax_enable_x64": True}
        assert jax.config.jax_enable_x64
    assert bool(jax.config.jax_enable_x64) == before


def test_x64_by_the_environment_variable() -> None:
    with Job(
        "import os\nos.environ['JAX_ENABLE_X64'] = '1'\nimport jax.numpy as jnp\nd = jnp.ones(1).dtype.name"
    ) as job:
        assert job.run().names["d"] == "float64"
    assert not jax.config.jax_enable_x64


def test_print_options_and_error_handling_are_the_job_s() -> None:
    before, errors = np.get_printoptions(), np.geterr()
    source = (
        "import numpy as np\nnp.set_printoptions(precision=1)\nnp.seterr(divide='raise')\nprint(np.array([1.23456]))"
    )
    with Job(source) as job:
        assert job.run().out.text == "[1.2]\n"
    assert np.get_printoptions() == before
    assert np.geterr() == errors


def test_dice_are_the_job_s() -> None:
    np.random.seed(5)  # noqa: NPY002 - the generator that a script must not touch
    expected = np.random.RandomState(5).rand()
    assert run("import numpy as np\nnp.random.seed(0)\nx = np.random.rand()")["x"] == np.random.RandomState(0).rand()
    assert np.random.rand() == expected  # noqa: NPY002


def test_a_recorded_scan_inside_jit_is_the_script_s_own() -> None:
    record = Watching("jax.lax.scan")
    run(
        "import jax\nfrom jax import lax\nf = jax.jit(lambda x: lax.scan(lambda c, v: (c + v, c), 0.0, x))\nf(jax.numpy.ones(3))",
        record=record,
    )
    assert len(record.calls) == 1


def test_errors_of_jax_name_no_frame_of_ours() -> None:
    with (
        Job(
            """
        import jax, jax.numpy as jnp
        kept = []
        def step(c, x):
            kept.append(x[0])
            return c, x
        jax.lax.scan(step, 0.0, jnp.ones((2, 2)))
        kept[0] + 1
        """
        ) as job,
        pytest.raises(jax.errors.UnexpectedTracerError) as error,
    ):
        job.run()
    assert "<script>" in str(error.value)
    assert "core/sandbox" not in str(error.value)


def test_libraries_import_lazily_inside_a_script_s_call() -> None:
    """JAX's C++ code imports through the built-ins of the frame that called it."""
    guards = Guards()
    built_in = environment(guards, out=Output())["__builtins__"]
    assert built_in["__import__"]("jax.numpy").__name__ == "jax"
    with pytest.raises(ImportError):
        built_in["__import__"]("antigravity")
    guards.close()


def test_settings_that_are_offered_exist() -> None:
    assert {n for n in own_jax.SETTINGS | own_jax.IGNORED if n not in jax.config.values} == set()


def test_nnx_objects_of_the_script_work_in_its_transformations() -> None:
    names = run(
        """
        from flax import nnx
        import jax.numpy as jnp
        class A(nnx.Module):
            def __init__(self): self.w = nnx.Param(jnp.ones(2))
        g = nnx.grad(lambda m: (m.w ** 2).sum())(A())
        out = g.w[...]
        """
    )
    assert names["out"].tolist() == [2.0, 2.0]
    assert nnx.Module.__subclasses__()
