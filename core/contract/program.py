"""A step's program (the jaxpr of its abstract trace) as the rules read it: which operations, on what, into what.

Calls of jitted and differentiated functions are opened: they are no operations of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Any

from core.base.jaxprs import bind, equations, inner, nested, parts_of


def operations(program: Any) -> frozenset[str]:
    """Names of all operations in a program."""
    return frozenset(eqn.primitive.name for eqn in equations(program))


def reads(program: Any) -> tuple[bool, ...]:
    """For each argument, whether anything that comes out depends on it."""
    jaxpr, _ = parts_of(program)
    needed = {v for v in jaxpr.outvars if not hasattr(v, "val")}
    for eqn in reversed(jaxpr.eqns):
        if needed & set(eqn.outvars) or eqn.effects:
            opened = inner(eqn)
            used = reads(opened) if opened is not None else (True,) * len(eqn.invars)
            needed |= {v for v, u in zip(eqn.invars, used, strict=True) if u and not hasattr(v, "val")}
    return tuple(v in needed for v in jaxpr.invars)


# --- which numbers an operation reaches -----------------------------------------------------------------------------


def reached(program: Any, marks: Callable[[Any], bool], carried: int) -> tuple[bool, ...]:
    """For each output of a step, whether the numbers of a marked operation are in it, in this step or a later one.

    A comparison ends the way: what is chosen by a number need not be made of it. Loops and branches count as one
    operation, marked when one in them is.

    Args:
        program: of a step whose first `carried` outputs are its first arguments at the next step.
        marks: whether an equation is marked.
        carried: how many leaves the carry has.
    """
    jaxpr, _ = parts_of(program)
    given = [False] * len(jaxpr.invars)
    while True:
        out = _reached(jaxpr, given, marks)
        again = [a or (i < carried and out[i]) for i, a in enumerate(given)]
        if again == given:
            return tuple(out)
        given = again


def _reached(jaxpr: Any, given: list[bool], marks: Callable[[Any], bool]) -> list[bool]:
    env: dict[Any, bool] = dict(zip(jaxpr.invars, given, strict=True))

    def read(atom: Any) -> bool:
        return not hasattr(atom, "val") and env.get(atom, False)

    for eqn in jaxpr.eqns:
        inputs, opened = [read(v) for v in eqn.invars], inner(eqn)
        if opened is not None:
            outputs = _reached(parts_of(opened)[0], inputs, marks)
        else:
            found = any(inputs) or any(marks(e) for e in (eqn, *nested(eqn)))
            outputs = [found and str(getattr(v.aval, "dtype", "")) != "bool" for v in eqn.outvars]
        env.update(zip(eqn.outvars, outputs, strict=True))
    return [read(v) for v in jaxpr.outvars]


def depends(program: Any, arguments: Container[int]) -> tuple[frozenset[int], tuple[bool, ...]]:
    """The `id` of each equation (those of opened calls too) that reads what depends on some arguments; which outputs do."""
    jaxpr, _ = parts_of(program)
    met: set[int] = set()
    out = _depends(jaxpr, [i in arguments for i, _ in enumerate(jaxpr.invars)], met)
    return frozenset(met), tuple(out)


def _depends(jaxpr: Any, given: list[bool], met: set[int]) -> list[bool]:
    env: dict[Any, bool] = dict(zip(jaxpr.invars, given, strict=True))

    def read(atom: Any) -> bool:
        return not hasattr(atom, "val") and env.get(atom, False)

    for eqn in jaxpr.eqns:
        inputs, opened = [read(v) for v in eqn.invars], inner(eqn)
        if any(inputs):
            met.add(id(eqn))
        outputs = _depends(parts_of(opened)[0], inputs, met) if opened is not None else [any(inputs)] * len(eqn.outvars)
        env.update(zip(eqn.outvars, outputs, strict=True))
    return [read(v) for v in jaxpr.outvars]


#: Operations that combine their operands element by element (or contract them).
_COMBINE = frozenset("add sub mul div max min pow atan2 dot_general select_n rem nextafter".split())


def meets(program: Any, argument: int) -> frozenset[int]:
    """The sizes of the axes that one argument is combined with.

    Only operations count in which one operand comes from this argument alone (a number spread over the other's shape,
    or a vector contracted with one) and the other one does not depend on it at all but on some other argument.
    """
    jaxpr, consts = parts_of(program)
    sources = [_Source() for _ in consts] + [_Source(i == argument, i != argument) for i, _ in enumerate(jaxpr.invars)]
    met: set[int] = set()
    _combine(jaxpr, sources, met, {})
    return frozenset(met)


@dataclass(frozen=True, slots=True)
class _Source:
    """Whether a value depends on the argument, and whether on any other one."""

    mine: bool = False
    others: bool = False


def _combine(jaxpr: Any, sources: list[_Source], met: set[int], small: dict[Any, int]) -> list[_Source]:
    """Follow the sources through a program. `small` keeps which values hold one number, spread over a shape."""
    env: dict[Any, _Source] = dict(zip((*jaxpr.constvars, *jaxpr.invars), sources, strict=True))

    def read(atom: Any) -> _Source:
        return _Source() if hasattr(atom, "val") else env[atom]

    for eqn in jaxpr.eqns:
        inputs = [read(v) for v in eqn.invars]
        opened = inner(eqn)
        if opened is not None:
            body, consts = parts_of(opened)
            small |= {v: _held(atom, small) for v, atom in zip(body.invars, eqn.invars, strict=True)}
            outputs = _combine(body, [*(_Source() for _ in consts), *inputs], met, small)
            small |= {v: _held(atom, small) for v, atom in zip(eqn.outvars, body.outvars, strict=True)}
        else:
            if eqn.primitive.name in _COMBINE:
                met |= _axes_met(eqn, inputs, small)
            if eqn.invars and all(_held(v, small) == 1 for v in eqn.invars):
                small |= dict.fromkeys(eqn.outvars, 1)  # one number spread, cast, scaled: still one number
            outputs = [_Source(any(s.mine for s in inputs), any(s.others for s in inputs))] * len(eqn.outvars)
        env.update(zip(eqn.outvars, outputs, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _held(atom: Any, small: dict[Any, int]) -> int:
    """How many numbers a value holds: 1 where it is one number, spread over a shape."""
    size = int(atom.aval.size) if hasattr(atom.aval, "size") else 1
    return size if hasattr(atom, "val") else small.get(atom, size)


def _axes_met(eqn: Any, inputs: list[_Source], small: dict[Any, int]) -> set[int]:
    met: set[int] = set()
    contracts = eqn.primitive.name == "dot_general" and bool(eqn.params["dimension_numbers"][0][0])
    for one, atom in zip(inputs, eqn.invars, strict=True):
        if not one.mine or one.others:
            continue
        spread = _held(atom, small) == 1
        for other, against in zip(inputs, eqn.invars, strict=True):
            if other.others and not other.mine and (spread or contracts):
                met |= set(against.aval.shape) - {1}
    return met


# --- what is cut on the way into a buffer ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class CutBack:
    """A write into a buffer of a narrower dtype: the buffer is widened, written to, and cut back.

    `.at[i].set(value)` does this by itself; a cast that the learner wrote is another thing, and is not found here.

    Attributes:
        eqn: the equation that cuts back.
        wide, narrow: the two dtypes.
        output: which output of the whole program it is; None when it is not one directly.
    """

    eqn: Any
    wide: str
    narrow: str
    output: int | None


def cut_backs(program: Any) -> tuple[CutBack, ...]:
    """Every such write at the top of a program."""
    jaxpr, _ = parts_of(program)
    made = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}

    def maker(atom: Any, name: str) -> Any | None:
        eqn = None if hasattr(atom, "val") else made.get(atom)
        return eqn if eqn is not None and eqn.primitive.name.startswith(name) else None

    found = []
    for eqn in jaxpr.eqns:
        scatter = maker(eqn.invars[0], "scatter") if eqn.primitive.name == "convert_element_type" else None
        widened = maker(scatter.invars[0], "convert_element_type") if scatter is not None else None
        if widened is None or widened.invars[0].aval.dtype != eqn.outvars[0].aval.dtype:
            continue
        at = [i for i, v in enumerate(jaxpr.outvars) if v is eqn.outvars[0]]
        wide, narrow = str(eqn.invars[0].aval.dtype), str(eqn.outvars[0].aval.dtype)
        found.append(CutBack(eqn, wide, narrow, at[0] if at else None))
    return tuple(found)


def before_cut(program: Any, args: list[Any], cuts: tuple[CutBack, ...]) -> list[Any]:
    """The buffers as they are before each cut, for one run of a program. It may be traced."""
    jaxpr, consts = parts_of(program)
    env: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True))

    def read(atom: Any) -> Any:
        return atom.val if hasattr(atom, "val") else env[atom]

    for eqn in (e for e in jaxpr.eqns if e.outvars):
        env.update(zip(eqn.outvars, bind(eqn, [read(v) for v in eqn.invars]), strict=True))
    return [read(cut.eqn.invars[0]) for cut in cuts]
