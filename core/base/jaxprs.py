"""Reading a program of JAX (a jaxpr): its equations, those of called programs included, and carrying one of them out.

Calls of jitted and differentiated functions are opened: they are no operations of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

#: Operations that only call a program, and the parameter that holds it.
_CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "remat": "jaxpr",
    "checkpoint": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
}


def inner(eqn: Any) -> Any | None:
    """The program that an equation merely calls; None when it is an operation of its own."""
    name = _CALLS.get(eqn.primitive.name)
    return eqn.params.get(name) if name else None


def parts_of(program: Any) -> tuple[Any, tuple[Any, ...]]:
    """A (closed) jaxpr as its open part and its constants."""
    return getattr(program, "jaxpr", program), tuple(getattr(program, "consts", ()))


def equations(program: Any) -> Iterator[Any]:
    """Every equation, those of called programs, loops and branches included."""
    for eqn in parts_of(program)[0].eqns:
        if inner(eqn) is None:
            yield eqn
        yield from nested(eqn)


def nested(eqn: Any) -> Iterator[Any]:
    """The equations of the programs that an equation holds (a loop's body, the branches of a condition)."""
    for value in eqn.params.values():
        for part in value if isinstance(value, tuple | list) else (value,):
            if hasattr(part, "eqns") or hasattr(getattr(part, "jaxpr", None), "eqns"):
                yield from equations(part)


def bind(eqn: Any, values: list[Any]) -> list[Any]:
    """Carry out one equation on numbers (or tracers)."""
    bound: Any = eqn.primitive.get_bind_params(eqn.params)
    functions, params = bound if isinstance(bound, tuple) else ((), bound)
    made = eqn.primitive.bind(*functions, *values, **params)
    return list(made) if eqn.primitive.multiple_results else [made]


#: Operations that pass numbers on as they are: a step made of these alone loses nothing.
EXACT = frozenset(
    "max min select_n eq ne lt le gt ge and or not neg abs sign broadcast_in_dim reshape squeeze transpose slice rev "
    "concatenate dynamic_slice dynamic_update_slice gather scatter copy convert_element_type iota pad clamp sort "
    "argmax argmin reduce_max reduce_min stop_gradient expand_dims".split()
)


def made_floats(program: Any) -> frozenset[str]:
    """The floating-point dtypes that a program computes in: those of what its operations make.

    A leaf that only comes in, is moved or is cast to a wider dtype was rounded before the step began; every way to run
    the step sees the same numbers. A cast to a narrower dtype counts: XLA may leave that rounding out.
    """
    moves = EXACT - {"convert_element_type"}
    types = {
        str(v.aval.dtype)
        for eqn in equations(program)
        if eqn.primitive.name not in moves
        for v in eqn.outvars
        if hasattr(v.aval, "dtype")
    }
    return frozenset(t for t in types if t.startswith(("float", "bfloat", "complex")))
