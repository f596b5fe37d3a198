"""Runs a script as plain Python and in the step language, and compares what is left of it."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from core.sandbox.facade import environment
from core.sandbox.guards import Guards
from core.sandbox.output import Output
from core.sandbox.policy import Compiled, compile_script
from core.sandbox.refusals import Refusal
from core.sandbox.words import FILENAME


@dataclass(slots=True)
class Ran:
    """How a script ended: its variables, its output, its exception, or the refusals that kept it from running."""

    names: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    error: BaseException | None = None
    refusals: tuple[Refusal, ...] = ()


def run_plain(source: str) -> Ran:
    """Plain Python, with JAX's settings put back."""
    names: dict[str, Any] = {"__name__": "__main__"}
    out, ran = io.StringIO(), Ran(names)
    with kept_settings(), contextlib.redirect_stdout(out):
        try:
            exec(compile(source, FILENAME, "exec", dont_inherit=True), names)
            jax.effects_barrier()
        except (Exception, SystemExit) as error:
            ran.error = error
    ran.text = out.getvalue()
    return ran


def run_here(source: str, guards: Guards | None = None, **options: Any) -> Ran:
    """The step language. The job is left open when the caller brings its guards."""
    compiled = compile_script(source)
    if not isinstance(compiled, Compiled):
        return Ran(refusals=compiled)
    own, out = guards or Guards(), Output()
    ran = Ran()
    try:
        names = environment(own, out=out, **options)
        try:
            for statement in compiled.statements:
                exec(statement, names)
            jax.effects_barrier()
        except (Exception, SystemExit) as error:
            ran.error = error
        ran.names, ran.text = dict(names), out.text
    finally:
        if guards is None:
            own.close()
    return ran


@contextlib.contextmanager
def job() -> Iterator[Guards]:
    """Guards that are closed at the end, and not before the values were looked at."""
    guards = Guards()
    try:
        yield guards
    finally:
        guards.close()


@contextlib.contextmanager
def kept_settings() -> Iterator[None]:
    """What scripts set, put back."""
    x64, options, errors = bool(jax.config.jax_enable_x64), np.get_printoptions(), np.geterr()
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", x64)
        np.set_printoptions(**options)
        np.seterr(**errors)


def assert_same(here: Any, plain: Any, name: str) -> None:
    """The same value, as far as values of two runs can be compared: functions and classes by their names."""
    if isinstance(plain, types.ModuleType) or name.startswith("__"):
        return
    if isinstance(plain, jax.core.Tracer):
        assert (here.shape, here.dtype) == (plain.shape, plain.dtype), name  # leaked: it has no value
    elif isinstance(plain, type):
        assert getattr(here, "__name__", repr(here)) in (plain.__name__, repr(plain)), name
    elif isinstance(plain, jax.Array | np.ndarray | np.generic):
        assert np.shape(here) == np.shape(plain), name
        assert here.dtype == plain.dtype, name
        if jax.dtypes.issubdtype(plain.dtype, jax.dtypes.prng_key):
            here, plain = jax.random.key_data(here), jax.random.key_data(plain)
        np.testing.assert_array_equal(np.asarray(here), np.asarray(plain), err_msg=name)
    elif isinstance(plain, dict):
        assert list(map(str, here)) == list(map(str, plain)), name
        for k, key in zip(here, plain, strict=True):
            assert_same(here[k], plain[key], f"{name}[{key!r}]")
    elif isinstance(plain, list | tuple):
        assert len(here) == len(plain), name
        for i, (a, b) in enumerate(zip(here, plain, strict=True)):
            assert_same(a, b, f"{name}[{i}]")
    elif isinstance(plain, int | float | complex | str | bytes | None):
        assert here == plain or (here != here and plain != plain), name
    elif dataclasses.is_dataclass(plain):
        for f in dataclasses.fields(plain):
            assert_same(getattr(here, f.name), getattr(plain, f.name), f"{name}.{f.name}")
    elif type(plain).__module__ == "__main__" and hasattr(plain, "__dict__"):
        assert type(here).__name__ == type(plain).__name__, name
