"""What a preset step is: a pure function with everything a page shows and starts with."""

from __future__ import annotations

import ast
import enum
import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from core.base.avals import Aval
from core.base.limits import LIMITS

type Values = Mapping[str, float]


class XKind(enum.StrEnum):
    """What one x of a step is: nothing, a PRNG key, one number, a vector, or an array of any shape."""

    NONE = "none"
    KEY = "key"
    SCALAR = "scalar"
    VECTOR = "vector"
    ANY = "any"

    def takes(self, shape: tuple[int, ...]) -> bool:
        """Whether one x may have this shape."""
        match self:
            case XKind.NONE | XKind.KEY | XKind.SCALAR:
                return shape == ()
            case XKind.VECTOR:
                return len(shape) == 1
            case XKind.ANY:
                return True


@dataclass(frozen=True, slots=True)
class Param:
    """A number a learner may turn.

    Attributes:
        name: keyword of the step's function, or of a shape (`argument` False).
        label, doc: words beside it.
        default, low, high: closed bounds.
        step: how far one click moves it.
        whole: whether it is a whole number.
        argument: passed to the function; otherwise it only sizes init or the weights.
    """

    name: str
    label: str
    default: float
    low: float
    high: float
    step: float
    doc: str
    whole: bool = False
    argument: bool = True


def _numbers(step: Step, _x: Aval | None, values: Values) -> dict[str, Any]:
    """Parameters as they are: Python numbers, weak, so that they keep the dtype of the carry."""
    return {p.name: int(values[p.name]) if p.whole else values[p.name] for p in step.params if p.argument}


@dataclass(frozen=True, eq=False)
class Step:
    """One preset.

    Attributes:
        id: stable name, also in links.
        title, group: for the list.
        formula: one line of plain text, ``c′ = c + x, y = c′``.
        story: why one would use it; Markdown.
        carry_doc, x_doc, y_doc: what each is, with its shape.
        fn: ``fn(carry, x, **arguments) -> (carry, y)``, a module-level function.
        init: the opening init for one x of some type (None: no x) and values of the parameters. Python numbers in it
            are weak, NumPy arrays strong. Its type does not change in the step.
        xs: the opening sequence as nested tuples, time first; empty where x is a key or nothing.
        length: the opening T.
        x: what one x is.
        x_width: how many numbers a row x has, where the function counts on it; 0: as many as there are.
        batched: whether a row x may have axes of examples before it.
        dtype: of the opening xs.
        params: what may be turned.
        leaves: a short name for each carry leaf by its path.
        arguments: the keyword arguments of `fn`.
        right: for a faulty step, the id of the right one; "" for a right one.
        breaks: for a faulty step, the code of the rule it breaks (N502: only where gradients are taken).
    """

    id: str
    title: str
    group: str
    formula: str
    story: str
    carry_doc: str
    x_doc: str
    y_doc: str
    fn: Callable[..., Any]
    init: Callable[[Aval | None, Values], Any]
    xs: tuple[Any, ...] = ()
    length: int = 0
    x: XKind = XKind.ANY
    x_width: int = 0
    batched: bool = False
    dtype: str = "float32"
    params: tuple[Param, ...] = ()
    leaves: Mapping[str, str] = field(default_factory=dict)
    arguments: Callable[[Step, Aval | None, Values], dict[str, Any]] = _numbers
    right: str = ""
    breaks: str = ""

    @cached_property
    def code(self) -> str:
        """The function as people write it: its source without our type annotations."""
        return plain_source(self.fn)

    def takes(self, shape: tuple[int, ...]) -> bool:
        """Whether one x may have this shape."""
        if self.x is XKind.VECTOR and self.batched:
            shape = shape[-1:]
        return self.x.takes(shape) and self.x_width in (0, *shape[-1:])

    @property
    def needs_keys(self) -> bool:
        """Whether xs are PRNG keys, one a step."""
        return self.x is XKind.KEY

    @property
    def defaults(self) -> dict[str, float]:
        """The opening values of the parameters."""
        return {p.name: p.default for p in self.params}

    def opening_xs(self, seed: int = 0) -> Any:
        """The opening xs: an array of shape (T, …), T keys, or None."""
        if self.x is XKind.NONE:
            return None
        return step_keys(seed, self.length) if self.needs_keys else np.asarray(self.xs, jnp.dtype(self.dtype))


def x_aval(xs: Any) -> Aval | None:
    """The type of one x of an xs that is one array; None where there is no xs."""
    if xs is None:
        return None
    aval: Any = xs if isinstance(xs, jax.ShapeDtypeStruct) else jax.typeof(xs)
    return Aval(tuple(aval.shape[1:]), str(aval.dtype))


def step_keys(seed: int, length: int) -> Any:
    """The first `length` keys of ``jax.random.split(jax.random.key(seed), N)``, which are the same for every N.

    N is the limit of T here, so that moving the length compiles nothing.

    Raises:
        ValueError: `length` is over that limit.
    """
    most = LIMITS["length"].value
    if length > most:
        raise ValueError(length)
    data = np.asarray(jax.random.key_data(jax.random.split(jax.random.key(seed), most)))
    return jax.random.wrap_key_data(jax.device_put(data[:length]))


# --- init -----------------------------------------------------------------------------------------------------------


def number_dtype(x: Aval | None) -> Any:
    """The dtype in which values like x add up: floats keep theirs, bools and small ints count in int32."""
    dtype = jnp.dtype("float32" if x is None else x.dtype)
    return dtype if jnp.issubdtype(dtype, jnp.floating) else jnp.dtype("int32")


def float_dtype(x: Aval | None) -> Any:
    """The dtype in which values like x are averaged: floats keep theirs, everything else float32."""
    dtype = number_dtype(x)
    return dtype if jnp.issubdtype(dtype, jnp.floating) else jnp.dtype("float32")


def filled(value: float, x: Aval | None, dtype: Any) -> Any:
    """An init leaf in the shape of x: a Python float for one float32 number, as people write it, else a strong array."""
    shape = () if x is None else x.shape
    if shape == () and dtype == jnp.dtype("float32"):
        return float(value)
    return np.full(shape, value, dtype)


# --- source ---------------------------------------------------------------------------------------------------------


def plain_source(function: Callable[..., Any]) -> str:
    """The source of a function without the annotations of its signature: they are for our type checker."""
    source = textwrap.dedent(inspect.getsource(function)).encode()
    tree = ast.parse(source).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise TypeError(function)
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def at(line: int | None, col: int | None) -> int:
        return starts[(line or 1) - 1] + (col or 0)

    cuts = []
    for arg in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs):
        if arg.annotation is not None:
            name_end = at(arg.lineno, arg.col_offset) + len(arg.arg.encode())
            cuts.append((name_end, at(arg.annotation.end_lineno, arg.annotation.end_col_offset)))
    if tree.returns is not None:
        end = at(tree.returns.end_lineno, tree.returns.end_col_offset)
        cuts.append((source.rindex(b")", 0, at(tree.returns.lineno, tree.returns.col_offset)) + 1, end))
    for start, stop in sorted(cuts, reverse=True):
        source = source[:start] + source[stop:]
    # PEP 8 spaces the default of an annotated argument, and of a plain one not.
    head, colon, body = source.decode().partition(":\n")
    return head.replace(" = ", "=") + colon + body
