"""Our versions of what NumPy keeps in global state: the script's own dice, print options and error handling."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final

import jax
import numpy as np

from core.base.text import fill
from core.sandbox.guards import Guards
from core.sandbox.kinds import StandIn
from core.sandbox.refusals import RefusedUse

NO_OPTION = "the option {name} is not available here; there are {known}"
NO_MODE = "{name}={value} is not available here; there are ignore, warn and raise"
NO_BUFFER = "frombuffer takes bytes or an array of numbers here"
NO_TEXT = "text in square brackets after {name} reads variables by name; pass the arrays, or use np.concatenate"

_OPTIONS: Final = frozenset("precision threshold edgeitems linewidth suppress nanstr infstr sign floatmode".split())
_ERRORS: Final = frozenset("all divide over under invalid".split())
_MODES: Final = ("ignore", "warn", "raise")
#: Functions of `np.random` that draw from its global generator: here from one of the job's own.
LEGACY: Final = (
    "beta binomial bytes chisquare choice dirichlet exponential f gamma geometric gumbel hypergeometric laplace logistic "
    "lognormal logseries multinomial multivariate_normal negative_binomial noncentral_chisquare noncentral_f normal pareto "
    "permutation poisson power rand randint randn random random_sample rayleigh seed shuffle standard_cauchy "
    "standard_exponential standard_gamma standard_normal standard_t triangular uniform vonmises wald weibull zipf"
).split()
_ALIASES: Final = {"ranf": "random_sample", "sample": "random_sample", "random_integers": "randint"}


class Concatenation(StandIn):
    """`np.r_` and `np.c_`. With a string the real ones read the caller's variables by their names (np.bmat)."""

    OFFERS: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, real: Any, name: str) -> None:
        self._real, self._name = real, name

    def __getitem__(self, key: Any) -> Any:
        first = key[0] if isinstance(key, tuple) and key else key
        if isinstance(key, str) or (isinstance(first, str) and first in ("r", "c")):
            raise RefusedUse(fill(NO_TEXT, name=self._name))
        return self._real[key]

    def __len__(self) -> int:
        return 0


def numpy_names(guards: Guards) -> dict[str, Any]:
    """Names of NumPy that are ours, by dotted name; print options are those of `jax.numpy` too."""
    dice = np.random.RandomState()
    found: dict[str, Any] = {f"numpy.random.{n}": _drawn(getattr(dice, n), n) for n in LEGACY}
    found |= {f"numpy.random.{n}": found[f"numpy.random.{m}"] for n, m in _ALIASES.items()}
    found |= {
        "numpy.random.default_rng": np.random.default_rng,
        "numpy.r_": Concatenation(np.r_, "np.r_"),
        "numpy.c_": Concatenation(np.c_, "np.c_"),
        "numpy.frombuffer": _frombuffer(np.frombuffer),
        "jax.numpy.frombuffer": _frombuffer(jax.numpy.frombuffer),
        "numpy.seterr": _setter(guards, np.seterr, np.geterr, _check_errors, "numpy.seterr"),
        "numpy.errstate": _errstate,
    }
    for module in ("numpy", "jax.numpy"):
        setter = _setter(guards, np.set_printoptions, np.get_printoptions, _check_options, "numpy.set_printoptions")
        found |= {f"{module}.set_printoptions": setter, f"{module}.printoptions": _printoptions}
    return found


def _frombuffer(real: Callable[..., Any]) -> Callable[..., Any]:
    """`frombuffer` of bytes and of arrays of numbers: over an array of objects it would hand out (and take) pointers."""

    def frombuffer(buffer: Any, *args: Any, **keywords: Any) -> Any:
        plain = isinstance(buffer, bytes | bytearray)
        if not (plain or (isinstance(buffer, np.ndarray | np.generic) and not buffer.dtype.hasobject)):
            raise RefusedUse(fill(NO_BUFFER))
        return real(buffer, *args, **keywords)

    return frombuffer


def _drawn(draw: Callable[..., Any], name: str) -> Callable[..., Any]:
    def function(*args: Any, **keywords: Any) -> Any:
        return draw(*args, **keywords)

    function.__name__ = function.__qualname__ = name
    return function


def _check_options(options: Mapping[str, Any]) -> None:
    for name in options:
        if name not in _OPTIONS:
            raise RefusedUse(fill(NO_OPTION, name=name, known=", ".join(sorted(_OPTIONS))))


def _check_errors(errors: Mapping[str, Any]) -> None:
    for name, value in errors.items():
        if name not in _ERRORS:
            raise RefusedUse(fill(NO_OPTION, name=name, known=", ".join(sorted(_ERRORS))))
        if value not in (None, *_MODES):
            raise RefusedUse(fill(NO_MODE, name=name, value=value))


def _setter(
    guards: Guards, change: Callable[..., Any], read: Callable[[], Any], check: Callable[[Any], None], request: str
) -> Callable[..., Any]:
    """A function that sets something of NumPy's for the rest of the job."""

    def set_for_the_job(*args: Any, **values: Any) -> Any:
        if args:  # numpy names them in this order
            names = ("precision", "threshold", "edgeitems", "linewidth", "suppress") if "print" in request else ("all",)
            values = {**dict(zip(names, args, strict=False)), **values}
        check(values)
        if request not in guards.requests:
            before = dict(read())
            guards.on_close(lambda: change(**before))
        guards.requests[request] = {**guards.requests.get(request, {}), **values}
        return change(**values)

    return set_for_the_job


@contextlib.contextmanager
def _printoptions(**values: Any) -> Iterator[Any]:
    _check_options(values)
    with np.printoptions(**values) as options:
        yield options


def _errstate(**values: Any) -> Any:
    _check_errors(values)
    return np.errstate(**values)
