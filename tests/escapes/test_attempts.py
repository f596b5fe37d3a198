"""No attempt gets out; each would, were its one guard off. The attempts are data: tests/escapes/attempts.py."""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import io
import pickle
import sys
import types
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.nnx import graphlib

from core.sandbox.facade import environment
from core.sandbox.guards import Guards
from core.sandbox.output import Output
from core.sandbox.policy import Compiled, compile_script
from core.sandbox.refusals import NotHere
from tests.escapes.attempts import ATTEMPTS, NAMED_ROUTES, Attempt
from tests.escapes.guards_off import switch_off
from tests.escapes.support import Ran, kept_settings

pytestmark = pytest.mark.filterwarnings("ignore")

MARKER = "planted-marker-7f3a91"


class PlantedClass:
    """A class of a library, as a script finds it."""

    def __lt__(self, other: object) -> bool:
        return False


class Unpickled:
    """Pickles to a lookup of the marker."""

    def __reduce__(self) -> Any:
        return eval, ("__planted__",)


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The marker, everywhere that an attempt may look for it; the tokens of the sources with their values."""
    seen: list[Any] = []
    monkeypatch.setattr(builtins, "__planted__", MARKER, raising=False)
    monkeypatch.setattr(builtins, "seen", seen, raising=False)
    monkeypatch.setitem(sys.modules, "planted", types.ModuleType(MARKER))
    monkeypatch.setattr(sys.modules["flax.nnx"], "planted_module", types.ModuleType(MARKER), raising=False)
    monkeypatch.setitem(jnp.linspace.__globals__, "planted_name", MARKER)
    monkeypatch.setitem(sys.modules["core.sandbox.guards"].__dict__, "planted_list", [MARKER])
    monkeypatch.setenv("CARRY_LAB_PLANTED", MARKER)
    memory = ctypes.create_string_buffer(MARKER.encode(), len(MARKER))
    files = {name: tmp_path / f"{name.lower()}.txt" for name in ("FILE", "OUT", "SCRIPT")}
    files |= {"NPY": tmp_path / "a.npy", "NPY_NUMBERS": tmp_path / "b.npy", "PICKLE": tmp_path / "c.npy"}
    files["FILE"].write_text(MARKER)
    files["SCRIPT"].write_text(f"value = {MARKER!r}")
    np.save(files["NPY"], np.array(MARKER))
    np.save(files["NPY_NUMBERS"], np.arange(3))
    with files["PICKLE"].open("wb") as out:
        pickle.dump(Unpickled(), out)
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / MARKER))
    tokens = {name: str(path) for name, path in files.items()} | {
        "MARKER": MARKER,
        "CODES": ", ".join(str(c) for c in MARKER.encode()),
        "ADDRESS": str(ctypes.addressof(memory)),
        "LEN": str(len(MARKER)),
        "ID": str(id(MARKER)),
    }
    names = {
        "seen": seen,
        "planted_class": type("PlantedClass", (PlantedClass,), {}),
        "first_byte": np.frombuffer(memory, np.uint8)[:1],
        "memory": memory,
        "planted_rule": lambda primals, tangents: (primals[0], primals[0] * 0 + 7321.5),
        "planted_flatten": lambda value: ((), MARKER),
        "planted_unflatten": lambda aux, parts: None,
        "planted_static": graphlib.StaticElem,
        "__planted_list__": [MARKER],
    }
    with kept_settings():
        yield tokens, names, files["OUT"]
    jax.config.update("jax_compilation_cache_dir", before)


def run(source: str, tokens: dict[str, str], names: dict[str, Any]) -> Ran:
    """Run an attempt in a job of its own. What it found is in its names, in `seen`, or in its text."""
    for token, value in tokens.items():
        source = source.replace(f"@{token}@", value)
    compiled = compile_script(source)
    if not isinstance(compiled, Compiled):
        return Ran(refusals=compiled)
    guards, out, stdout = Guards(), Output(), io.StringIO()
    here = environment(guards, out=out)
    here |= {n: v for n, v in names.items() if n != "memory"}
    here["__builtins__"]["__planted__"] = MARKER
    ran = Ran()
    try:
        with contextlib.redirect_stdout(stdout):
            for statement in compiled.statements:
                exec(statement, here)
    except Exception as error:
        ran.error = error
    ran.names, ran.text = {"got": here.get("got"), "seen": list(names["seen"])}, stdout.getvalue()
    guards.close()
    return ran


def found(ran: Ran, out: Path) -> bool:
    """Whether the marker came out: as a value, on the real standard output, or in a file."""
    got = ran.names.get("got")
    got = got.decode(errors="replace") if isinstance(got, bytes) else str(got)
    files = [p.read_bytes() for p in out.parent.glob("out*") if p.is_file()]
    written = any(MARKER.encode(code) in text for text in files for code in ("ascii", "utf-32-le"))
    dumped = out.is_dir() and any(out.iterdir())
    seen = MARKER in str(ran.names.get("seen", ""))
    return MARKER in got or MARKER in ran.text or seen or written or dumped


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda a: a.id)
def test_an_attempt_is_refused(attempt: Attempt, planted: Any) -> None:
    tokens, names, out = planted
    ran = run(attempt.source, tokens, names)
    assert ran.refusals or isinstance(ran.error, NotHere | AttributeError), ran.error
    assert not found(ran, out)
    if attempt.after:
        assert not found(run(attempt.after, tokens, names), out)


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda a: a.id)
def test_the_same_attempt_succeeds_without_its_guard(
    attempt: Attempt, planted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens, names, out = planted
    with monkeypatch.context() as patch:
        switch_off(attempt.guard, patch)
        ran = run(attempt.source, tokens, names)
        if attempt.after:
            assert ran.error is None, ran.error
            # The damage is done: a later job, with all its guards, finds it.
            patch.setattr("core.sandbox.facade.job_tables", _TABLES)
            ran = run(attempt.after, tokens, names)
    assert found(ran, out), (ran.refusals, ran.error)


_TABLES = sys.modules["core.sandbox.facade"].job_tables


def test_there_are_at_least_eighty_and_all_differ() -> None:
    assert len({a.id for a in ATTEMPTS}) == len(ATTEMPTS)
    assert len({a.source for a in ATTEMPTS}) >= 80


def test_the_routes_of_the_facts_are_all_there() -> None:
    assert set(NAMED_ROUTES.values()) <= {a.id for a in ATTEMPTS}
    assert {route[0] for route in NAMED_ROUTES} == set("12345678")
