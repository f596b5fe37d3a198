"""The small set: what each page's cases are, what they become, and that typed numbers do not leave the page unasked."""

from __future__ import annotations

import json

import numpy as np
import pytest

from core.base.parting import Stage
from core.inputs.cell_inputs import CellInputs, build
from core.inputs.parse import parse_leaf, parse_sequence, to_array
from core.inputs.scan_inputs import build as build_scan
from core.inputs.scan_inputs import from_values
from core.regress.case import Became, CaseName
from core.regress.data import boundary, leaf_text, rows_text, seeded
from core.regress.file import NAME, to_bytes
from core.regress.record import NotRecordedError, Recorder, record
from core.regress.state import BadLinkError, page_state, values_of_link
from core.runners.cells import run_step
from core.steps.library import PRESETS, UNGUARDED
from core.weights.container import read
from tests.unit.regress.support import recorded


def cases_of(page, link=""):
    return {case.name: case for case in page_state(page).cases(values_of_link(page, link))}


@pytest.mark.parametrize("step", [step.id for step in (*PRESETS, *UNGUARDED)])
def test_every_preset_has_all_seven_cases_with_sizes_that_differ(step):
    cases = cases_of("scan", f"step={step}")
    assert list(cases) == list(CaseName)
    uneven = build_scan(from_values(cases[CaseName.UNEVEN].values)).call
    shape = np.shape(uneven.xs)
    assert len(set(shape)) == len(shape)
    empty = build_scan(from_values(cases[CaseName.EMPTY].values)).call
    assert empty.length == 0 if empty.xs is None else len(empty.xs) == 0


@pytest.mark.parametrize(
    ("page", "link", "code"),
    [
        ("scan", "", "S108"),
        ("scan", "step=fibonacci", "S109"),
        ("lstm", "", "L305"),
        ("sequence", "cell=SimpleCell", "L310"),
    ],
)
def test_an_invalid_shape_fails_with_its_code(page, link, code):
    state = page_state(page)
    made = state.run(cases_of(page, link)[CaseName.INVALID].values, None)
    assert (made.became, made.why) == (Became.BROKEN, (code,))
    assert not made.stages


def test_views_that_refuse_a_shape_name_the_input():
    state = page_state("gradients")
    made = state.run(cases_of("gradients", "T=6&hidden=3")[CaseName.INVALID].values, None)
    assert (made.became, made.why) == (Became.REFUSED, ("numbers",))
    made = state.run(cases_of("gradients", "of=training")[CaseName.EMPTY].values, None)
    assert (made.became, made.why) == (Became.REFUSED, ("train_length",))


def test_a_state_that_does_not_run_is_not_recorded():
    with pytest.raises(NotRecordedError, match="S108"):
        record(page_state("scan"), values_of_link("scan", "len=9"))
    with pytest.raises(NotRecordedError, match="batch"):
        record(page_state("lstm"), values_of_link("lstm", "batch=0"))


def test_what_must_fail_and_does_not_is_not_recorded(monkeypatch):
    recorder = Recorder(page_state("scan"), values_of_link("scan", ""))
    recorder._waiting = [case for case in recorder._waiting if case.name is CaseName.STANDARD]
    recorder._waiting.append(type(recorder._waiting[0])(CaseName.INVALID, recorder._values, "nothing wrong"))
    recorder.step()
    with pytest.raises(NotRecordedError, match="must fail, and it ran"):
        recorder.step()


def test_values_of_a_cell_are_those_of_the_page_and_its_gradient_is_right():
    baseline, _ = recorded("cell=GRUCell", "lstm")
    standard = baseline.cases[0]
    leaf = dict(standard.stages[Stage.FORWARD]["output"].leaves)["output"]
    from core.contract.facts import facts_of

    event = facts_of(build(CellInputs(cell="GRUCell")).trial).cells.steps[0]
    np.testing.assert_allclose(leaf, run_step(event.cell, event.carry, event.inputs).output, rtol=1e-6)
    loss = dict(standard.stages[Stage.LOSS]["loss"].leaves)["loss"]
    np.testing.assert_allclose(loss, np.mean(np.square(leaf.astype(np.float64))), rtol=1e-6)
    # A bias moved by ±ε, in the loss's own terms: the gradient is what the loss does.
    found = dict(standard.stages[Stage.GRADIENTS]["grad"].leaves)["grad['weights']['dense_i']['bias']"]
    epsilon, losses = 1e-2, []
    for sign in (1, -1):
        cell = event.cell
        bias = cell.dense_i.bias[...]
        cell.dense_i.bias[...] = bias.at[0].add(sign * epsilon)
        losses.append(float((np.asarray(cell(event.carry, event.inputs)[1], np.float64) ** 2).mean()))
        cell.dense_i.bias[...] = bias
    np.testing.assert_allclose(found[0], (losses[0] - losses[1]) / (2 * epsilon), rtol=1e-2, atol=1e-5)


def test_the_loss_of_a_layer_is_the_stated_one():
    baseline, _ = recorded("cell=SimpleCell", "sequence")
    for case in baseline.cases[:5]:
        ys = dict(case.stages[Stage.FORWARD]["ys"].leaves)["ys"]
        loss = dict(case.stages[Stage.LOSS]["loss"].leaves)["loss"]
        np.testing.assert_allclose(loss, np.mean(np.square(ys.astype(np.float64))), rtol=1e-5)
    assert "mean of ys²" in baseline.cases[0].loss


def test_trees_are_kept_with_their_structure():
    baseline, _ = recorded()
    forward = baseline.cases[0].stages[Stage.FORWARD]
    assert forward["carry"].structure == "(*, *, *)"
    assert [path for path, _ in forward["carry"].leaves] == ["carry[0]", "carry[1]", "carry[2]"]
    keys, _ = recorded("step=random_walk")
    assert [path for path, _ in keys.cases[0].stages[Stage.KEYS]["keys"].leaves] == ["keys"]


# --- data -----------------------------------------------------------------------------------------------------------

SECRET = "31.4159, 27.1828, 16.1803"


@pytest.mark.parametrize(
    ("page", "link", "field"),
    [
        ("scan", f"from=paste&x={SECRET}", "numbers"),
        ("scan", f"from=paste&x={SECRET}&dt=bfloat16", "numbers"),
        ("scan", "init=31.4159&init.weak=1", "init"),
        ("lstm", f"x=paste&nums={SECRET}&batch=1", "numbers"),
        ("gradients", f"x=typed&nums={SECRET}&hidden=3", "numbers"),
        ("gradients", f"of=preset&xs={SECRET}", "xs"),
    ],
)
def test_typed_numbers_are_replaced_by_seeded_ones_of_the_same_shape(page, link, field):
    state, values = page_state(page), values_of_link(page, link)
    assert "31.4159" in str(values[field])
    hidden, names = state.hidden(state.tidy(values, None), 0)
    assert names == (field,)
    assert "31.4159" not in json.dumps(hidden)
    assert state.hidden(state.tidy(values, None), 0) == (hidden, names)
    assert state.hidden(state.tidy(values, None), 1)[0] != hidden
    made, own = state.run(hidden, None), state.run(values, None)
    shapes = [
        {
            root: [(np.shape(x), np.asarray(x).dtype) for x in _leaves(tree)]
            for root, tree in one.stages[Stage.DATA].items()
        }
        for one in (made, own)
    ]
    assert shapes[0] == shapes[1]


def _leaves(tree):
    from jax import tree_util

    return tree_util.tree_leaves(tree)


def test_typed_numbers_of_a_sequence_are_replaced_and_lengths_stay():
    link = "x=typed&nums=[[[31.4159, 1], [2, 3]], [[4, 5], [6, 7]]]&len=2, 1&hidden=3"
    state, values = page_state("sequence"), values_of_link("sequence", link)
    hidden, names = state.hidden(state.tidy(values, None), 0)
    assert names == ("numbers",)
    assert hidden["lengths"] == "2, 1"
    assert "31.4159" not in json.dumps(hidden)


def test_numbers_that_are_not_in_use_are_in_no_file():
    values = {**values_of_link("scan", f"from=paste&x={SECRET}"), "source": "generate", "generator": "ramp"}
    state = page_state("scan")
    baseline = record(state, values, own=True)
    assert b"31.4159" not in to_bytes(baseline)
    assert "31.4159" not in json.dumps(state.tidy(values, None))


def test_own_data_are_kept_when_that_is_asked_for():
    values = values_of_link("scan", f"from=paste&x={SECRET}")
    baseline = record(page_state("scan"), values, own=True)
    assert baseline.own
    assert not baseline.replaced
    assert SECRET in str(baseline.values["numbers"])
    data = to_bytes(record(page_state("scan"), values))
    assert b"31.4159" not in data
    said = json.loads(read(data, "baseline_bytes", "baseline_header").metadata[NAME])["data"]
    assert said == {"own": False, "seed": 0, "replaced": ["numbers"]}


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool", "bfloat16", "float16", "int8"])
def test_seeded_and_boundary_values_have_the_dtype(dtype):
    for values in (seeded((3, 4), dtype, 0), boundary((3, 4), dtype)):
        assert (values.dtype.name, values.shape) == (dtype, (3, 4))
    assert (seeded((5,), dtype, 0) == seeded((5,), dtype, 0)).all()


def test_boundary_values_are_typed_with_their_sign():
    for text, reader in (
        (rows_text(boundary((8, 2), "float32")), parse_sequence),
        (leaf_text(boundary((3,), "float32")), parse_leaf),
    ):
        array = to_array(reader(text), "float32")
        assert (array == boundary(array.shape, "float32")).all()
        assert np.signbit(array).tolist() == np.signbit(boundary(array.shape, "float32")).tolist()


@pytest.mark.parametrize(
    ("page", "link"),
    [
        ("scan", "from=generate&T=512&F=32"),
        ("sequence", "T=500&B=8&F=4&hidden=3"),
        ("gradients", "T=200&in=40&hidden=3"),
    ],
)
def test_of_large_data_few_boundary_values_are_written_out(page, link):
    values = cases_of(page, link)[CaseName.BOUNDARY].values
    assert parse_sequence(str(values["numbers"])).size <= 4_000
    assert page_state(page).run(values, None).became is Became.RAN


# --- links ----------------------------------------------------------------------------------------------------------


def test_an_address_says_page_and_state():
    values = values_of_link("", "http://example.org:8501/lstm?cell=GRUCell&hide=lstm_seed&embed=true")
    assert values["cell"] == "GRUCell"
    assert values_of_link("", "lstm?cell=GRUCell") == values_of_link("lstm", "cell=GRUCell")


@pytest.mark.parametrize(
    ("page", "link", "says"),
    [
        ("lstm", "cell=NoSuchCell", "choices"),
        ("lstm", "colour=red", "colour"),
        ("scan", "http://h/lstm?cell=GRUCell", "lstm"),
        ("", "doctor?s=x", "doctor"),
        ("lstm", "cell=GRUCell&cell=LSTMCell", "more than once"),
        ("scan", "http://[x", "no address"),
    ],
)
def test_a_link_that_the_page_refuses_is_refused(page, link, says):
    with pytest.raises(BadLinkError, match=says):
        values_of_link(page, link)
