import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from core.base.outcome import Outcome
from core.contract.engine import check
from core.contract.facts import run_trial
from core.contract.rule import Repair
from core.contract.subject import MISSING
from core.inputs.cell_bench import CellBench, repaired
from core.inputs.cell_fields import BFLOAT16, FIELDS, NO_RNGS, NONE, ONE_ARRAY, SWAPPED, SWITCHES, TIME_AXIS, TOO_WIDE
from core.inputs.cell_inputs import CellInputs, build
from core.inputs.cell_numbers import read_rows, written
from core.inputs.cell_page import look_at
from core.inputs.cell_source import source, source_changes
from core.inputs.parse import UnreadableError
from core.runners.cache import count_compiles

ALL = ("LSTMCell", "OptimizedLSTMCell", "GRUCell", "SimpleCell")
#: Each switch: what JAX does (the exception's name, or None), and the rule that speaks.
SAID = {
    "no_cell_rngs": ("TypeError", "L307"),
    "no_carry_rngs": ("ValueError", "L306"),
    "time_axis": (None, "L308"),
    "wrong_batch": ("TypeError", "L303"),
    "batch_1": (None, "L303"),
    "one_array": (None, "L301"),
    "swapped": (None, "L302"),
    "wrong_width": ("TypeError", "L304"),
    "bfloat16": (None, "L314"),
    "input_width": ("TypeError", "L305"),
}


def switched(name, **others):
    switch = next(s for s in SWITCHES if s.id == name)
    drawn = {"carry": "normal"} if name == "swapped" else {}
    return replace(CellInputs(), **{switch.field: switch.value, **drawn, **others})


def step_of(inputs):
    return run_trial(build(inputs).trial).steps[0]


# --- fields and trial -------------------------------------------------------------------------------------------------


def test_the_fields_are_the_inputs_and_have_the_same_defaults():
    assert FIELDS.defaults() == CellInputs().values
    assert CellInputs.of(FIELDS.defaults()) == CellInputs()


def test_the_default_is_the_case_of_the_guide():
    look = look_at(CellInputs())
    cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
    carry = cell.initialize_carry((2, 3), rngs=nnx.Rngs(1))
    new_carry, output = cell(carry, jnp.ones((2, 3)))
    assert look.report.outcome is Outcome.OK
    assert not look.report.violations
    assert [a.shape for a in look.step.after] == [(2, 4), (2, 4)]
    for got, want in zip((*look.step.after, look.step.output), (*new_carry, output), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    assert look.step.finite


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("seed", [0, 5])
def test_parameters_are_those_of_the_real_cell_with_that_seed(name, seed):
    event = step_of(CellInputs(cell=name, seed=seed))
    real = getattr(nnx, name)(3, 4, rngs=nnx.Rngs(seed))
    pairs = zip(jax.tree.leaves(nnx.state(event.cell)), jax.tree.leaves(nnx.state(real)), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("name", ALL)
def test_a_normal_carry_is_what_initialize_carry_draws_with_that_seed(name):
    event = step_of(CellInputs(cell=name, carry="normal", carry_seed=3))
    real = getattr(nnx, name)(3, 4, rngs=nnx.Rngs(0))
    want = real.initialize_carry((2, 3), rngs=nnx.Rngs(3), carry_init=nnx.initializers.normal(1.0))
    assert jax.tree.all(jax.tree.map(np.array_equal, event.carry, want))


def test_noise_has_a_seed_of_its_own():
    one, two, again = (np.asarray(step_of(CellInputs(input="noise", input_seed=s)).inputs) for s in (1, 2, 1))
    assert not np.array_equal(one, two)
    assert np.array_equal(one, again)


def test_typed_numbers_are_the_carry_and_the_input():
    inputs = CellInputs(
        carry="typed",
        carry_c="1 2 3 4\n5 6 7 8",
        carry_h="[[0,0,0,0],[.5,.5,.5,.5]]",
        input="paste",
        numbers="1,2,3\n4,5,6",
    )
    event = step_of(inputs)
    assert event.carry[0].tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert event.carry[1].tolist() == [[0] * 4, [0.5] * 4]
    assert event.inputs.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert not run_trial(build(inputs).trial).carries, "a typed carry is not initialised first"


def test_a_gru_has_one_typed_part():
    event = step_of(CellInputs(cell="GRUCell", carry="typed", carry_c="no number", carry_h="1 2 3 4\n5 6 7 8"))
    assert event.carry.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]


def test_every_role_of_the_trial_has_a_place_on_the_page():
    roles = build(CellInputs()).trial.places.by_role
    assert {"cell", "cell_rngs", "carry_shape", "carry_rngs", "carry", "input"} <= set(roles)
    assert all(place.key.startswith("lstm_") for place in roles.values())
    assert build(CellInputs(input="paste", numbers="1 2 3")).trial.places.find("input").key == "lstm_numbers"


# --- typed numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "table", "want"),
    [
        ("1, 2, 3", False, [[1, 2, 3]]),
        ("1, 2, 3", True, [[1], [2], [3]]),
        ("1\n2", False, [[1], [2]]),
        ("[1, 2]", False, [1, 2]),
        ("[[1, 2]]", True, [[1, 2]]),
        ("1 2\n3 4", False, [[1, 2], [3, 4]]),
        ("ones(2, 2)", False, [[1, 1], [1, 1]]),
        ("−1; 1e3", False, [[-1, 1000]]),
    ],
)
def test_a_line_is_an_example(text, table, want):
    assert read_rows(text, table=table).tolist() == want


@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 1), (2, 3), (4,)])
def test_what_is_written_is_read_back(shape, table):
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    values.flat[0] = np.nan
    assert np.array_equal(read_rows(written(values, table=table), table=table), values, equal_nan=True)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("1, 2\n3, x", "Row 2"),
        ("1, 2\n3", "Row 2"),
        ("", "line for each"),
        ("1, 🙂", "column 2"),
        ("[[1, 2], [3]]", "Row 2"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(text, place):
    with pytest.raises(UnreadableError, match=place):
        read_rows(text)
    look = look_at(CellInputs(input="paste", numbers=text))
    assert look.report is None
    assert [(p.field, place in p.text) for p in look.problems] == [("numbers", True)]


def test_too_many_typed_numbers_are_refused():
    look = look_at(CellInputs(input="paste", numbers="1 " * 20_001))
    assert "20000" in look.problems[0].text.replace(",", "")


@pytest.mark.parametrize("name", ["in_features", "hidden_features", "batch"])
@pytest.mark.parametrize("value", [0, -1, -(10**9)])
def test_a_size_below_one_is_said_at_its_input(name, value):
    look = look_at(replace(CellInputs(), **{name: value}))
    assert look.report is None
    assert [p.field for p in look.problems] == [name]
    assert str(value) in look.problems[0].text


def test_all_problems_are_said_at_once():
    look = look_at(CellInputs(batch=0, carry="typed", carry_c="x", carry_h="1", input="paste", numbers="?"))
    assert {p.field for p in look.problems} == {"batch", "carry_c", "numbers"}


# --- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "limit"),
    [
        ("hidden_features", 257, "hidden"),
        ("in_features", 129, "features"),
        ("batch", 65, "batch"),
        ("hidden_features", 10**9, "hidden"),
        ("in_features", 10**12, "features"),
        ("batch", 10**9, "batch"),
    ],
)
def test_over_a_limit_nothing_is_computed(name, value, limit):
    with count_compiles() as compiles:
        look = look_at(replace(CellInputs(), **{name: value}))
    assert compiles.count == 0
    assert look.report.outcome is Outcome.LIMIT
    assert look.step is None
    assert "X601" in look.report.codes
    said = [v for v in look.report.violations if f"`CARRY_LAB_{limit.upper()}`" in v.why]
    assert [v.place.key for v in said] == [f"lstm_{name}"]


@pytest.mark.parametrize("others", [{"break_carry": TOO_WIDE}, {"break_carry": BFLOAT16}, {"break_init": TIME_AXIS}])
def test_a_limit_speaks_first_when_something_is_broken_too(others):
    look = look_at(CellInputs(hidden_features=10**9, batch=10**6, **others))
    assert look.report.outcome is Outcome.LIMIT
    assert set(look.report.codes) == {"X601"}


def test_the_largest_cell_runs():
    look = look_at(CellInputs(cell="SimpleCell", in_features=128, hidden_features=256, batch=64, input="noise"))
    assert look.report.outcome is Outcome.OK
    assert look.step.output.shape == (64, 256)
    assert look.step.numpy.within


# --- switches ---------------------------------------------------------------------------------------------------------


def test_every_switch_is_spoken_of_here():
    assert {s.id for s in SWITCHES} == set(SAID)


@pytest.mark.parametrize("name", SAID)
def test_a_switch_does_the_real_wrong_thing(name):
    raises, code = SAID[name]
    inputs = switched(name)
    look = look_at(inputs)
    assert (look.raised.type if look.raised else None) == raises
    assert (look.step is None) == (raises is not None)
    assert look.report.codes == (code,)
    assert look.report.violations[0].silent == (raises is None)
    assert [s.id for s in inputs.switched] == [name]


@pytest.mark.parametrize("name", [n for n, (raises, _) in SAID.items() if raises is None])
def test_a_silent_switch_has_a_proof_that_the_fix_mends(name):
    proof = look_at(switched(name)).report.violations[0].proof
    assert proof.before != pytest.approx(proof.expected)
    assert proof.after == pytest.approx(proof.expected)


def test_one_array_raises_when_the_batch_is_not_two():
    look = look_at(switched("one_array", batch=3))
    assert look.raised.type == "ValueError"
    assert look.report.codes == ("L301",)
    assert not look.report.violations[0].silent


@pytest.mark.parametrize("name", SAID)
def test_every_fix_leads_to_a_clean_step(name):
    inputs = switched(name)
    report = look_at(inputs).report
    fixes = [fix for violation in report.violations for fix in violation.fixes]
    assert fixes
    for fix in fixes:
        after = look_at(replace(inputs, **fix.edit.values))
        assert after.report.outcome is Outcome.OK
        assert after.step is not None
    edits = [dict(fix.edit.values) for fix in fixes]
    assert all(edits.count(edit) == 1 for edit in edits), "two buttons for one edit"


@pytest.mark.parametrize("name", ["one_array", "swapped"])
@pytest.mark.parametrize("cell", ["GRUCell", "SimpleCell"])
def test_a_cell_without_a_pair_has_nothing_to_break_there(name, cell):
    inputs = switched(name, cell=cell)
    assert inputs.switched == ()
    assert look_at(inputs).report.outcome is Outcome.OK
    assert cell in inputs.offered(next(s for s in SWITCHES if s.id == name))


@pytest.mark.parametrize("cell", ["GRUCell", "SimpleCell"])
@pytest.mark.parametrize("name", [n for n in SAID if n not in ("one_array", "swapped")])
def test_the_other_switches_break_every_cell(name, cell):
    look = look_at(switched(name, cell=cell))
    assert SAID[name][1] in look.report.codes


def test_a_typed_carry_leaves_nothing_to_break_in_initialize_carry():
    inputs = CellInputs(carry="typed", carry_c="zeros(2, 4)", carry_h="zeros(2, 4)", break_init=NO_RNGS)
    assert inputs.switched == ()
    assert look_at(inputs).report.outcome is Outcome.OK
    init = [s for s in SWITCHES if s.line == "init"]
    assert all("not called" in inputs.offered(s) for s in init)


def test_two_faults_can_be_mended_together():
    inputs = CellInputs(break_init=NO_RNGS, break_input="one feature too wide", break_carry=BFLOAT16)
    first = look_at(inputs)
    assert first.report.codes == ("L306",), "what comes later is not known yet"
    both = look_at(replace(inputs, break_init=NONE))
    assert set(both.report.codes) >= {"L305"}
    if both.all_fixed is not None:
        assert look_at(replace(inputs, break_init=NONE, **both.all_fixed.edit.values)).report.outcome is Outcome.OK


# --- bench: the button does what its title says -----------------------------------------------------------------------


def test_the_bench_does_nothing_for_a_repair_it_cannot_say():
    inputs = switched("one_array")
    assert CellBench(inputs).attempt((Repair("unroll", "", lambda trial: trial),)) is None
    assert repaired(inputs, Repair("carry_shape", "", lambda trial: None)) is None


def test_zeros_are_not_promised_where_a_drawn_carry_comes_back():
    """Turning the switch off gives the drawn pair, whose c is not zeros: only the other fix may be offered."""
    report = look_at(switched("one_array", carry="normal")).report
    titles = [fix.title for fix in report.violations[0].fixes]
    assert titles == ["Start from what initialize_carry returns"]


def test_a_typed_carry_is_mended_in_its_own_text():
    inputs = CellInputs(carry="typed", carry_c="1 2 3 4", carry_h="5 6 7 8")
    report = look_at(inputs).report
    assert report.codes == ("L303",)
    copies = [fix for fix in report.violations[0].fixes if "copy" in fix.title]
    assert copies
    after = step_of(replace(inputs, **copies[0].edit.values))
    assert after.carry[0].tolist() == [[1, 2, 3, 4]] * 2
    assert after.carry[1].tolist() == [[5, 6, 7, 8]] * 2


def test_a_pasted_input_of_another_width_gets_a_cell_of_that_width():
    inputs = CellInputs(input="paste", numbers="1 2 3 4 5\n6 7 8 9 0")
    report = look_at(inputs).report
    assert report.codes == ("L305",)
    assert report.violations[0].place.key == "lstm_numbers"
    assert dict(report.violations[0].fixes[0].edit.values) == {"in_features": 5}


def test_a_pasted_input_of_another_batch_gets_a_carry_of_that_batch():
    inputs = CellInputs(input="paste", numbers="1 2 3\n4 5 6\n7 8 9")
    report = look_at(inputs).report
    assert report.codes == ("L303",)
    assert {"batch": 3} in [dict(fix.edit.values) for fix in report.violations[0].fixes]


def test_a_typed_carry_of_another_width_starts_from_zeros():
    inputs = CellInputs(carry="typed", carry_c="zeros(2, 5)", carry_h="zeros(2, 5)")
    report = look_at(inputs).report
    assert report.codes == ("L304",)
    assert {"carry": "zeros"} in [dict(fix.edit.values) for fix in report.violations[0].fixes]


def test_the_rngs_are_given_with_the_seed_that_the_title_names():
    inputs = switched("no_cell_rngs", seed=9)
    fix = look_at(inputs).report.violations[0].fixes[0]
    after = replace(inputs, **fix.edit.values)
    assert f"Rngs({after.seed})" in fix.title
    assert build(after).trial.rngs is not MISSING


# --- the program shown is the program run -----------------------------------------------------------------------------


def run_text(text):
    names = {}
    exec(text, names)
    return names


@pytest.mark.parametrize("cell", ALL)
@pytest.mark.parametrize("carry", ["zeros", "normal"])
@pytest.mark.parametrize("given", ["ones", "noise"])
def test_the_program_gives_what_the_page_shows(cell, carry, given):
    inputs = CellInputs(cell=cell, carry=carry, input=given, seed=2, carry_seed=3, input_seed=4)
    names = run_text(source(inputs))
    step = look_at(inputs).step
    np.testing.assert_allclose(names["output"], step.output, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", SAID)
def test_the_program_of_a_switch_does_what_the_page_says(name):
    inputs = switched(name)
    look = look_at(inputs)
    if look.raised is not None:
        with pytest.raises(type(look.raised.error)):
            run_text(look.program)
    else:
        np.testing.assert_allclose(run_text(look.program)["output"], look.step.output, rtol=1e-5, atol=1e-6)


def test_the_program_of_typed_numbers():
    inputs = CellInputs(
        carry="typed", carry_c="1 nan 3 4\n5 6 7 8", carry_h="zeros(2, 4)", input="paste", numbers="1,2,inf\n4,5,-inf"
    )
    names = run_text(source(inputs))
    assert names["x"].tolist() == [[1, 2, math.inf], [4, 5, -math.inf]]
    np.testing.assert_allclose(names["output"], look_at(inputs).step.output, rtol=1e-5, atol=1e-6)


def test_long_calls_have_their_arguments_on_indented_lines():
    text = source(CellInputs(carry="normal", input="noise"))
    assert "carry = cell.initialize_carry(\n    (2, 3),\n    rngs=nnx.Rngs(1),\n    carry_init=" in text
    assert max(map(len, text.splitlines())) <= 50
    assert "x = jnp.ones((2, 3))\n" in source(CellInputs()), "what is short stays on its line"


def test_the_changes_between_two_programs_are_whole_statements():
    broken = replace(CellInputs(), break_carry=TOO_WIDE)
    assert source_changes(broken, CellInputs()) == (
        ("−", "c = h = jnp.zeros((2, 5))"),
        ("−", "carry = c, h"),
        ("+", "carry = cell.initialize_carry((2, 3), rngs=nnx.Rngs(1))"),
    )
    assert source_changes(CellInputs(), CellInputs()) == ()
    assert source_changes(CellInputs(input="paste", numbers="x"), CellInputs()) == ()


def test_a_program_with_many_typed_numbers_says_how_many():
    text = source(CellInputs(in_features=100, input="paste", numbers=written(np.ones((2, 100)))))
    assert "200 typed numbers" in text
    assert len(text) < 500


# --- values that are not finite ---------------------------------------------------------------------------------------


def test_nan_is_a_number_here_and_the_result_says_so():
    look = look_at(CellInputs(input="paste", numbers="1, nan, 3\n4, 5, 6"))
    assert look.report is not None
    assert look.step is not None
    assert not look.step.finite


# --- nothing is compiled for other values -----------------------------------------------------------------------------


def test_another_seed_number_or_unit_compiles_nothing():
    base = CellInputs(carry="normal", input="paste", numbers="1 2 3\n4 5 6")
    look_at(base)
    with count_compiles() as compiles:
        for seed in range(4):
            look_at(replace(base, seed=seed, carry_seed=seed + 9, numbers=f"{seed} 2 3\n4 5 6", unit=seed))
    assert compiles.count == 0


@pytest.mark.parametrize("name", ["one_array", "swapped", "batch_1"])
def test_a_broken_page_compiles_nothing_for_other_values(name):
    inputs = switched(name, carry="normal")
    look_at(inputs)
    with count_compiles() as compiles:
        look_at(replace(inputs, seed=5, carry_seed=7, input_seed=1))
    assert compiles.count == 0


def test_nothing_is_kept_of_one_session_for_another():
    """Equal inputs give equal trials that share no mutable thing: each makes its Rngs anew."""
    trial = build(CellInputs()).trial
    assert trial.rngs() is not trial.rngs()
    first, again = (check(trial) for _ in range(2))
    assert first.codes == again.codes == ()


def test_constants_that_break_are_words():
    assert {ONE_ARRAY, SWAPPED, TIME_AXIS} == {"one array", "(h, c)", "(T, B, F)"}
