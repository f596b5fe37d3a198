"""The divergence finder's requests and answers: there and back as JSON, and nothing else is read."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

from core.base.outcome import RawError
from core.base.parting import Lever, Parted, Path, Stage, StageCheck
from core.base.sequences import Masking, Slip
from core.base.tolerance import Tolerance
from core.contract.subject import SequenceTrial
from core.doctor import job, parting_job
from core.doctor.parting_job import Answer, Bench, computation_of, of_layer, of_scan, read, request
from core.doctor.wire import Unreadable
from core.inputs.scan_fields import opening
from core.runners.parting import compare
from core.runners.parting_layer import Layered
from core.runners.parting_model import Training
from core.runners.parting_scan import Scanned

INPUTS = np.random.default_rng(0).normal(size=(2, 3, 2)).astype(np.float32)


def over_json(data):
    return json.loads(json.dumps(data, allow_nan=False))


def asked(of, path, small=frozenset()) -> Answer:
    return read(over_json(Bench().handle(over_json(request(of, path, small)))))


def test_a_layer_comes_back_as_it_was():
    trial = SequenceTrial(
        kind="GRUCell",
        inputs=np.where(INPUTS > 1, np.nan, INPUTS),
        axes="BTF",
        hidden_features=3,
        seed=5,
        time_major=False,
        reverse=True,
        keep_order=True,
        unroll=2.5,
        masking=Masking.LENGTHS,
        lengths=(3, 2.5, -1, "two", np.int64(2), float("nan")),
        mask=np.asarray([[1, 0, 1], [1, 1, 0]], bool),
        init=(np.ones((2, 3), np.float32),),
        previous=INPUTS.astype(np.float16),
        slips=frozenset({Slip.SUMMED_MASK}),
        weights={"forget_bias": 1.5},
    )
    training = Training(INPUTS[:, 0], rate=0.25, train=False, stream_seed=None, optimizer="adam", ask_in_step=True)
    back = computation_of(over_json(of_layer(Layered(trial, 2, training))))
    assert isinstance(back, Layered)
    assert back.layers == 2
    for name in ("kind", "axes", "seed", "reverse", "keep_order", "unroll", "masking", "slips", "weights"):
        assert getattr(back.trial, name) == getattr(trial, name), name
    for name in ("inputs", "mask", "previous"):
        got, want = getattr(back.trial, name), getattr(trial, name)
        np.testing.assert_array_equal(got, want)
        assert got.dtype == want.dtype
    np.testing.assert_array_equal(back.trial.init[0], trial.init[0])
    assert back.trial.lengths[:5] == (3, 2.5, -1, "two", 2)
    assert np.isnan(back.trial.lengths[5])
    assert back.training.stream_seed is None
    assert (back.training.rate, back.training.train, back.training.ask_in_step) == (0.25, False, True)


def test_a_scan_is_made_of_the_fields_of_its_page():
    back = computation_of(over_json(of_scan(opening("logistic_map"), differentiate=True)))
    assert isinstance(back, Scanned)
    assert back.differentiate
    assert back.length == int(opening("logistic_map")["length_argument"])


def test_what_is_found_in_a_worker_is_what_is_found_here():
    of = of_scan(opening("logistic_map"))
    here = compare(computation_of(of), (Path.FLOAT64,))
    there = asked(of, Path.FLOAT64)
    assert there.checks == here.checks
    assert there.levers == (Lever.LENGTH, Lever.JIT)
    small = asked(of, Path.FLOAT64, frozenset({Lever.LENGTH}))
    assert all(check.ok for check in small.checks)
    assert small.levers == there.levers


@pytest.mark.parametrize("change", [{"of": "script"}, {"trial": None}, {"layers": "many"}])
def test_what_is_no_computation_of_ours_is_not_run(change):
    of = over_json(of_layer(Layered(SequenceTrial("SimpleCell", INPUTS, "BTF", 2)))) | change
    with pytest.raises((ValueError, TypeError)):
        Bench().handle(request(of, Path.JIT))


def test_building_says_nothing_even_where_it_raises():
    fine = SequenceTrial("SimpleCell", INPUTS, "BTF", 2)
    broken = SequenceTrial("SimpleCell", INPUTS, "BTF", -2)
    for trial in (fine, broken):
        answer = asked(of_layer(Layered(trial, 1, Training(INPUTS[:, 0]))), None)
        assert answer.checks == ()
        assert answer.left_out == ""
    assert asked(of_layer(Layered(broken)), Path.EAGER).checks[0].error is not None


def test_the_worker_takes_the_request_among_its_others():
    asked_of = over_json(request(of_scan(opening("running_sum")), Path.JIT))
    assert read(over_json(job.handle(asked_of))).checks


def test_the_reference_runs_once_for_one_computation(monkeypatch):
    ran, bench, of = [], Bench(), of_scan(opening("running_sum"))
    real = parting_job.run
    monkeypatch.setattr(parting_job, "run", lambda computation, path: ran.append(path) or real(computation, path))
    for path in (Path.EAGER, Path.LOOP, Path.JIT):
        bench.handle(request(of, path))
    assert ran == [Path.EAGER, Path.LOOP, Path.JIT]
    bench.handle(request(of_scan(opening("product")), Path.JIT))
    assert ran[3:] == [Path.EAGER, Path.JIT]


def test_a_path_that_is_left_out_has_its_reason_and_what_raises_its_error():
    assert "backend" in asked(of_scan(opening("running_sum")), Path.BACKEND).left_out
    broken = asked(of_scan(opening("grows")), Path.JIT)
    assert broken.checks[0].path is Path.EAGER
    assert broken.checks[0].error.type == "TypeError"


# --- reading --------------------------------------------------------------------------------------------------------

FULL = Answer(
    (
        StageCheck(Path.LOOP, Stage.DATA, 3, 0.0, Tolerance(0.0, 0.0)),
        StageCheck(
            Path.FLOAT64, Stage.FORWARD, 2, float("inf"), Tolerance(1e-5, 1e-6),
            parted=Parted("ys", 4, (1, 2), "nan", "0.5", rounding=True),
        ),
        StageCheck(Path.JIT, Stage.LOSS, error=RawError("TypeError", "no")),
    ),
    "",
    (Lever.LENGTH, Lever.JIT),
)  # fmt: skip


def test_an_answer_comes_back_as_it_was():
    assert read(over_json(parting_job._sent(FULL))) == FULL


def test_long_texts_are_cut_and_still_read():
    long = Answer((StageCheck(Path.JIT, Stage.LOSS, error=RawError("E" * 9_000, "x" * 90_000)),))
    (check,) = read(over_json(parting_job._sent(long))).checks
    assert len(check.error.message) == parting_job.MESSAGE


WRONG = {
    ("checks",): ["all", None, {}, [1], [{}], [{}] * 500],
    ("left_out",): [None, 3, "x" * 5_000, "\ud800"],
    ("levers",): [["Q"], "T", [1], ["T"] * 50],
    ("checks", 0, "path"): ["soon", 3, None],
    ("checks", 0, "stage"): ["later", []],
    ("checks", 0, "leaves"): [-1, 1.5, True, "3", 1 << 60],
    ("checks", 0, "largest"): ["many", None, True, []],
    ("checks", 0, "tolerance"): [[1], [1, 2, 3], "0", [None, None]],
    ("checks", 1, "parted"): [[], "ys", ["ys", 4, [1], "a", "b"], ["ys", -1, [], "a", "b", False]],
    ("checks", 1, "parted", 2): [[-1], ["a"], list(range(99)), 3],
    ("checks", 1, "parted", 5): [1, None],
    ("checks", 2, "error"): [["TypeError"], [1, 2], {}],
}


@pytest.mark.parametrize(
    ("place", "value"),
    [(place, value) for place, values in WRONG.items() for value in values],
    ids=lambda v: repr(v)[:40],
)
def test_nothing_else_is_read(place, value):
    sent = copy.deepcopy(over_json(parting_job._sent(FULL)))
    at = sent
    for step in place[:-1]:
        at = at[step]
    at[place[-1]] = value
    with pytest.raises(Unreadable):
        read(sent)


@pytest.mark.parametrize("sent", [None, [], "answer", {}, {"checks": []}])
def test_what_is_no_answer_is_unreadable(sent):
    with pytest.raises(Unreadable):
        read(sent)
