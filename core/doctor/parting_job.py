"""The divergence finder in a worker: one path of a computation against its reference, as plain data both ways.

    handle({"wish": "parting", "of": {…}, "path": "jit", "small": []})  ->  {"checks": […], "levers": […], …}

One request runs one path, so that each has its own turn in the queue, its own seconds, and an outcome of its own; one
before them, without a path, builds. The worker keeps the computation it was asked about last, and what the reference left. Here 64 bits can be switched on
without anybody noticing, and a loop that takes long holds nobody up.

A computation travels as JSON: arrays as the bytes of a few known dtypes, everything else as numbers and words. Only
presets and layers of ours do; nothing that anybody wrote. The answer is read strictly all the same: the worker may have
run a stranger's script before.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from core.base.outcome import RawError
from core.base.parting import Lever, Parted, Path, Stage, StageCheck
from core.base.sequences import Masking, Slip
from core.base.tolerance import Tolerance
from core.contract.subject import SequenceTrial
from core.doctor.wire import Unreadable
from core.inputs.fields import Value
from core.inputs.scan_inputs import build, from_values
from core.runners.parting import REFERENCE, Computation, Record, checks, of_reference, run
from core.runners.parting_layer import Layered
from core.runners.parting_model import Training
from core.runners.parting_scan import Scanned

#: The kind of request.
WISH: Final = "parting"
SCAN, LAYER = "scan", "layer"
#: Characters of an exception's message that are sent; checks, and characters of a text, that are read.
MESSAGE, CHECKS, TEXT = 1_000, 100, 4_000

_TRIAL = ("kind", "axes", "hidden_features", "seed", "time_major", "reverse", "keep_order", "bidirectional",
          "return_carry", "unroll")  # fmt: skip
_TRAINING = ("rate", "train", "stream", "stream_seed", "optimizer", "learning_rate", "ask_in_step")


@dataclass(frozen=True, slots=True)
class Answer:
    """What one path's request found.

    Attributes:
        checks: of the path, or what the reference raised.
        left_out: why the path was not run; "" when it was.
        levers: what of the computation can be made smaller.
    """

    checks: tuple[StageCheck, ...]
    left_out: str = ""
    levers: tuple[Lever, ...] = ()


# --- asking ---------------------------------------------------------------------------------------------------------


def of_scan(values: Mapping[str, Value], *, differentiate: bool = False) -> dict[str, Any]:
    """The computation of the Scan page's complete field values; `differentiate`: with gradients (`Scanned`)."""
    return {
        "of": SCAN,
        "values": {name: _plain(value) for name, value in values.items()},
        "differentiate": differentiate,
    }


def of_layer(computation: Layered) -> dict[str, Any]:
    """A layer, or a model trained on layers."""
    trial, training = computation.trial, computation.training
    sent = {name: _plain(getattr(trial, name)) for name in _TRIAL} | {
        "inputs": _array(trial.inputs),
        "masking": str(trial.masking),
        "lengths": None if trial.lengths is None else [_plain(length) for length in trial.lengths],
        "mask": None if trial.mask is None else _array(np.asarray(trial.mask, bool)),
        "init": None if trial.init is None else [_array(part) for part in trial.init],
        "previous": None if trial.previous is None else _array(trial.previous),
        "slips": sorted(map(str, trial.slips)),
        "weights": {name: _plain(number) for name, number in trial.weights.items()},
        "given": None
        if trial.given is None
        else [{path: _array(leaf) for path, leaf in cell.items()} for cell in trial.given],
    }
    learned = None if training is None else {name: _plain(getattr(training, name)) for name in _TRAINING}
    if training is not None and learned is not None:
        learned["targets"] = _array(training.targets)
    return {"of": LAYER, "trial": sent, "layers": computation.layers, "training": learned}


def request(of: dict[str, Any], path: Path | None, small: frozenset[Lever] = frozenset()) -> dict[str, Any]:
    """What the pool is handed for one path; None only builds. `of`: from `of_scan` or `of_layer`; `small`: of Simplify."""
    return {
        "wish": WISH,
        "of": of,
        "path": "" if path is None else str(path),
        "small": [str(lever) for lever in Lever if lever in small],
    }


def _plain(value: Any) -> Any:
    """A number, a flag, a word or None as JSON takes it; JSON has no NaN."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _array(values: Any) -> dict[str, Any]:
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        array = array.astype(np.float32)
    raw = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
    return {"dtype": array.dtype.name, "shape": list(array.shape), "bytes": base64.b64encode(raw).decode("ascii")}


# --- in the worker --------------------------------------------------------------------------------------------------


class Bench:
    """One worker's own: what the reference left for the computation that was asked about last."""

    def __init__(self) -> None:
        self._of = ""
        self._whole: Computation | None = None
        self._now: Computation | None = None
        self._want: Record | None = None

    def handle(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Run one path; the answer as plain data.

        Raises:
            ValueError, KeyError, TypeError: it is no request of ours.
        """
        whole, computation = self._taken(asked)
        if not asked["path"]:
            with suppress(Exception):  # the paths raise it too, at its stage
                computation.prepare()
            return _sent(Answer((), "", whole.levers))
        path = Path(asked["path"])
        reason = computation.reason(path)
        if reason:
            return _sent(Answer((), reason, whole.levers))
        if self._want is None:
            self._want = run(computation, REFERENCE)
        want = self._want
        found = of_reference(want) if path is REFERENCE or want.failed is not None else ()
        if path is not REFERENCE:
            found = (*found, *checks(run(computation, path), want))
        return _sent(Answer(found, "", whole.levers))

    def _taken(self, asked: Mapping[str, Any]) -> tuple[Computation, Computation]:
        """The whole computation, and the one to run: the same as before when it was asked about last."""
        of = json.dumps([asked["of"], asked["small"]], sort_keys=True)
        if self._whole is None or self._now is None or self._of != of:
            self._whole = self._now = self._want = None  # the old goes before the new comes
            whole = computation_of(asked["of"])
            small = frozenset(Lever(name) for name in asked["small"])
            self._whole, self._now, self._of = whole, whole.simplified(small) if small else whole, of
        return self._whole, self._now


_BENCH: Final = Bench()


def handle(asked: Mapping[str, Any]) -> dict[str, Any]:
    """One request of this worker's session (`Bench.handle`)."""
    return _BENCH.handle(asked)


def computation_of(of: Mapping[str, Any]) -> Scanned | Layered:
    """The computation that was sent.

    Raises:
        ValueError, KeyError, TypeError: it is none of ours.
    """
    if of["of"] == SCAN:
        built = build(from_values({name: _value(value) for name, value in of["values"].items()}))
        if built.call is None:
            raise ValueError(SCAN)
        return Scanned(built.call, differentiate=bool(of["differentiate"]))
    if of["of"] != LAYER:
        raise ValueError(LAYER)
    sent, learned = of["trial"], of["training"]
    trial = SequenceTrial(
        **{name: _value(sent[name]) for name in _TRIAL},
        inputs=_values(sent["inputs"]),
        masking=Masking(sent["masking"]),
        lengths=None if sent["lengths"] is None else tuple(_value(length) for length in sent["lengths"]),
        mask=None if sent["mask"] is None else _values(sent["mask"]),
        init=None if sent["init"] is None else tuple(_values(part) for part in sent["init"]),
        previous=None if sent["previous"] is None else _values(sent["previous"]),
        slips=frozenset(Slip(name) for name in sent["slips"]),
        weights={name: _value(number) for name, number in sent["weights"].items()},
        given=None
        if sent["given"] is None
        else tuple({path: _values(leaf) for path, leaf in cell.items()} for cell in sent["given"]),
    )
    training = None
    if learned is not None:
        training = Training(targets=_values(learned["targets"]), **{n: _value(learned[n]) for n in _TRAINING})
    return Layered(trial, int(of["layers"]), training)


def _value(value: Any) -> Any:
    return float(value["float"]) if isinstance(value, dict) else value


def _values(sent: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    dtype = np.dtype(sent["dtype"])
    return np.frombuffer(base64.b64decode(sent["bytes"]), dtype.newbyteorder("<")).reshape(sent["shape"]).astype(dtype)


def _sent(answer: Answer) -> dict[str, Any]:
    return {
        "checks": [_check(check) for check in answer.checks],
        "left_out": answer.left_out,
        "levers": [str(lever) for lever in answer.levers],
    }


def _check(check: StageCheck) -> dict[str, Any]:
    parted, used, error = check.parted, check.tolerance, check.error
    return {
        "path": str(check.path),
        "stage": str(check.stage),
        "leaves": check.leaves,
        "largest": check.largest if math.isfinite(check.largest) else str(check.largest),
        "tolerance": None if used is None else [used.rtol, used.atol],
        "parted": None
        if parted is None
        else [
            parted.leaf[:TEXT],
            parted.t,
            [int(i) for i in parted.index],
            parted.got[:TEXT],
            parted.want[:TEXT],
            parted.rounding,
        ],
        "error": None if error is None else [error.type[:TEXT], error.message[:MESSAGE]],
    }


# --- reading the answer ---------------------------------------------------------------------------------------------


def read(data: object) -> Answer:
    """The answer in what a worker sent.

    Raises:
        Unreadable: it is none.
    """
    try:
        sent = _kind(data, dict)
        listed, levers = _kind(sent["checks"], list), _kind(sent["levers"], list)
        if len(listed) > CHECKS or len(levers) > len(Lever):
            raise ValueError
        found = tuple(_read_check(_kind(one, dict)) for one in listed)
        return Answer(found, _text(sent["left_out"]), tuple(Lever(_text(name)) for name in levers))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise Unreadable(type(error).__name__) from None


def _read_check(sent: dict[str, Any]) -> StageCheck:
    used, parted, error = sent["tolerance"], sent["parted"], sent["error"]
    return StageCheck(
        Path(_text(sent["path"])),
        Stage(_text(sent["stage"])),
        leaves=_whole(sent["leaves"]),
        largest=_real(sent["largest"]),
        tolerance=None if used is None else Tolerance(*(_real(number) for number in _parts(used, 2))),
        parted=None if parted is None else _read_parted(*_parts(parted, 6)),
        error=None if error is None else _read_error(*_parts(error, 2)),
    )


def _read_parted(leaf: Any, t: Any, index: Any, got: Any, want: Any, rounding: Any) -> Parted:
    axes = _kind(index, list)
    if len(axes) > 32:
        raise ValueError
    place = tuple(_whole(i) for i in axes)
    return Parted(
        _text(leaf), None if t is None else _whole(t), place, _text(got), _text(want), bool(_kind(rounding, bool))
    )


def _read_error(name: Any, message: Any) -> RawError:
    return RawError(_text(name), _text(message))


def _kind(value: Any, kind: type[Any]) -> Any:
    if type(value) is not kind:
        raise TypeError
    return value


def _text(value: Any) -> str:
    text: str = _kind(value, str)
    if len(text) > TEXT:
        raise ValueError
    text.encode()  # half a surrogate pair is no text
    return text


def _whole(value: Any) -> int:
    number: int = _kind(value, int)
    if not 0 <= number < 1 << 53:
        raise ValueError
    return number


def _real(value: Any) -> float:
    if isinstance(value, str):
        if value not in {"inf", "nan"}:
            raise ValueError
    elif isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return float(value)


def _parts(value: Any, count: int) -> list[Any]:
    parts: list[Any] = _kind(value, list)
    if len(parts) != count:
        raise ValueError
    return parts
