"""What is checked: a call of `lax.scan`, a trial of a cell, a layer over sequences, one update, a script's cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final

from flax import nnx

from core.base.places import Places
from core.base.scan_gradients import Target
from core.base.sequences import Array, Masking, Slip
from core.base.training import TrainingSpec

if TYPE_CHECKING:
    from core.contract.record import CellEvents
    from core.contract.script_record import ScriptRecord


class _Missing:
    """The type of MISSING."""

    def __repr__(self) -> str:
        return "MISSING"


#: An argument that was not given at all (`None` would be a value).
MISSING: Final = _Missing()


@dataclass(frozen=True, slots=True)
class ScanCall:
    """One call ``lax.scan(step, init, xs, length, reverse, unroll)``, as it was made.

    Attributes:
        step: ``step(carry, x, **params) -> (new_carry, y)``.
        init: pytree, as the learner gave it (Python numbers stay Python numbers: they are weak).
        xs: pytree, None, or anything that was wrongly given for it.
        length, reverse, unroll: as given, whatever their type.
        params: keyword arguments of the step, passed to the compiled program as arguments so that moving them
            compiles nothing.
        axes: axis letters that the learner declared, by path: ``{"xs": "BTF"}``. Only what was said, never a guess.
        right_step: for a step that is known to be faulty (a "Break it" of a page), the right one with its init.
        gradient: gradients are taken through it: what is summed before it is differentiated, ``final`` or ``ys``; None
            where nobody takes any.
        places: where each role stands, in code or on a page.
        earlier: what happened to cells before this call in the same script (a carry that comes from
            ``initialize_carry`` is known by identity); None where there is no script.
        locate: says where the call of a cell stands that is being made right now (a frame walk in scripts).
    """

    step: Callable[..., Any]
    init: Any
    xs: Any = None
    length: Any = None
    reverse: Any = False
    unroll: Any = 1
    params: Mapping[str, Any] = field(default_factory=dict)
    axes: Mapping[str, str] = field(default_factory=dict)
    right_step: Callable[..., Any] | None = None
    gradient: Target | None = None
    places: Places = field(default_factory=Places)
    earlier: CellEvents | None = None
    locate: Callable[[], Places | None] | None = None

    @property
    def body(self) -> Callable[[Any, Any], Any]:
        """The step with its params bound: ``body(carry, x)``."""
        return partial(self.step, **self.params) if self.params else self.step

    @property
    def unshared_body(self) -> Callable[[Any, Any], Any]:
        """The body for a trial run with an `unroll` that is no int: a function of its own.

        JAX 0.11.2 keeps what it compiled by function and takes an unroll of 1.0 for 1: once the one failed, the other
        would fail too, in every later scan of this step.
        """
        body = self.body
        return body if isinstance(self.unroll, int) else wraps(body)(lambda carry, x: body(carry, x))


@dataclass(frozen=True, slots=True)
class FreshRngs:
    """A fresh ``nnx.Rngs(seed)`` at each call: it counts its draws. What a cell draws from it is known beforehand."""

    seed: int

    def __call__(self) -> nnx.Rngs:
        """The Rngs."""
        return nnx.Rngs(self.seed)


@dataclass(frozen=True, slots=True)
class CellTrial:
    """One cell, built, its carry initialised, stepped once: each argument as the learner would give it.

    Attributes:
        cell: the class, e.g. ``nnx.LSTMCell``.
        in_features, hidden_features: F and H.
        rngs: given to the cell as ``rngs=``: an ``nnx.Rngs``, a wrong thing, or MISSING. A fresh one is made for each
            run by calling it when it is a zero-argument function or a `FreshRngs` (an Rngs counts its draws).
        input_shape: first argument of ``initialize_carry``.
        carry_rngs: its ``rngs=``, as for `rngs`.
        carry: MISSING to step from the initialised carry; a pytree to use instead; or a function of the initialised
            carry (to swap it, to take one part, to cast it).
        inputs: the input of the step, ``(B, F)`` float.
        axes: declared axis letters by role, ``{"inputs": "BF", "input_shape": "TBF"}``.
        edit_cell: applied to the built cell before the step (weights typed by a learner); None for none.
        places: where each role stands.
    """

    cell: type
    in_features: Any
    hidden_features: Any
    rngs: Any
    input_shape: Any
    carry_rngs: Any
    inputs: Any
    carry: Any = MISSING
    axes: Mapping[str, str] = field(default_factory=dict)
    edit_cell: Callable[[Any], Any] | None = None
    places: Places = field(default_factory=Places)


@dataclass(frozen=True, slots=True)
class CellLog:
    """What a script did with cells outside its scans: builds, initialised carries and steps, in order.

    Attributes:
        events: the record; each event's `site` says where its call stands.
        places: where nothing better is known.
    """

    events: CellEvents
    places: Places = field(default_factory=Places)


@dataclass(frozen=True, slots=True, eq=False)
class SequenceTrial:
    """One recurrent layer over a batch of sequences, as a learner would call it: ``nnx.RNN(cell)(x, …)``, or a scan.

    Attributes:
        kind: name of the cell in `core.runners.cell_formulas.KINDS`.
        inputs: the data as they are handed over, three axes, floating point.
        axes: what their axes really are: ``BTF`` or ``TBF``.
        hidden_features: H.
        seed: of the cell's ``nnx.Rngs``; the backward cell of a bidirectional layer has `seed` + 1.
        time_major: what the layer is told; the contract is kept when it agrees with `axes`.
        reverse, keep_order, unroll: as of ``nnx.RNN``.
        bidirectional: ``nnx.Bidirectional``; `reverse` and `keep_order` count for nothing then.
        return_carry: whether the layer is asked for its carry.
        masking: how padding is told to the layer.
        lengths: one entry per example, as given, whatever its type; None when none were given.
        mask: (B, T) bool by the true axes, holes allowed; None when none was given.
        init: parts of the carry, each (B, H); None is zeros.
        previous: (…) another sequence in the same axes, whose final carry is taken for init; None for none.
        slips: mistakes that are made on purpose (a page's "Break it").
        weights: changes to the parameters, by name of the change: ``forget_bias`` (added to b_f), ``recurrent_scale``
            (factor of every recurrent kernel).
        given: parameters by path (``hi.kernel``) of each direction, to be used for those that `seed` draws; None for
            none. Where their shapes are not those of the layer's cells (a smaller one is tried), the seed's are used.
        places: where each role stands.
    """

    kind: str
    inputs: Array
    axes: str
    hidden_features: int
    seed: int = 0
    time_major: bool = False
    reverse: bool = False
    keep_order: bool = False
    bidirectional: bool = False
    return_carry: bool = True
    unroll: Any = 1
    masking: Masking = Masking.NONE
    lengths: tuple[Any, ...] | None = None
    mask: Array | None = None
    init: tuple[Array, ...] | None = None
    previous: Array | None = None
    slips: frozenset[Slip] = frozenset()
    weights: Mapping[str, float] = field(default_factory=dict)
    given: tuple[Mapping[str, Any], ...] | None = None
    places: Places = field(default_factory=Places)

    @property
    def misread(self) -> bool:
        """Whether the layer takes the batch for time."""
        return self.time_major != (self.axes == "TBF")

    @property
    def read(self) -> Array:
        """The data time-first as the layer reads them: (T, B, F), or (B, T, F) when they are misread."""
        return self.inputs if self.time_major else self.inputs.swapaxes(0, 1)

    @property
    def batch(self) -> int:
        """B by the true axes."""
        return int(self.inputs.shape[self.axes.index("B")])

    @property
    def length(self) -> int:
        """T by the true axes."""
        return int(self.inputs.shape[self.axes.index("T")])


type Subject = ScanCall | CellTrial | CellLog | SequenceTrial | TrainingSpec | ScriptRecord
