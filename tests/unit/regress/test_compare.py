"""A check: what moved is named by stage, case, leaf and t; NaN, versions and the tolerance are said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.base.parting import Stage
from core.base.tolerance import Tolerance
from core.regress import compare as comparing
from core.regress import environment, words
from core.regress.baseline import Flat, NoToleranceError
from core.regress.case import Became, CaseName
from core.regress.compare import OUTCOME, Checker, check, compare
from core.regress.file import from_bytes, to_bytes
from core.regress.words import beside, headline, rows
from tests.unit.regress.support import changed, recorded

FLOAT32 = {"float32": Tolerance(1e-5, 1e-6)}


def moved(case, stage, root, change, which=0):
    """The case with one leaf changed."""
    tree = case.stages[stage][root]
    leaves = list(tree.leaves)
    path, array = leaves[which]
    leaves[which] = (path, change(np.array(array)))
    return replace(
        case, stages={**case.stages, stage: {**case.stages[stage], root: Flat(tree.structure, tuple(leaves))}}
    )


def standard():
    baseline, _ = recorded()
    return baseline.cases[0]


def only(case, got, tolerances=FLOAT32):
    found = [one for one in compare(case, got, tolerances) if one.moved]
    assert len(found) == 1
    return found[0]


def test_the_same_is_the_same_to_the_last_bit():
    baseline, data = recorded()
    verdict = check(from_bytes(data))
    assert verdict.same
    assert verdict.cases == 7
    assert verdict.leaves == sum(case.count for case in baseline.cases)
    assert all(one.same_bits for one in verdict.checks)
    word, words = headline(verdict)
    assert word == "Same"
    assert "7 cases" in words
    assert "All are equal to the last bit." in words
    assert any("Versions are the same" in line for line in beside(baseline, verdict))


def test_a_value_that_moved_is_named_with_its_t():
    def change(values):
        values[4] += 1e-3
        return values

    found = only(standard(), moved(standard(), Stage.FORWARD, "carry", change, which=1))
    assert (found.stage, found.leaf, found.place.t) == (Stage.FORWARD, "carry[1]", 3)
    assert found.largest == pytest.approx(1e-3, rel=1e-3)
    assert found.allowed == pytest.approx(1e-6 + 1e-5 * abs(float(found.then)), rel=1e-6)

    def first(values):
        values[0] = 9.0
        return values

    assert only(standard(), moved(standard(), Stage.FORWARD, "carry", first, which=1)).place.init


def test_a_reversed_scan_names_the_t_that_was_read():
    baseline, _ = recorded("step=running_sum&rev=1")
    case = baseline.cases[0]

    def change(values):
        values[1] += 1
        return values

    found = only(case, moved(case, Stage.FORWARD, "carry", change))
    assert found.place.t == len(dict(case.stages[Stage.DATA]["xs"].leaves)["xs"]) - 1


def test_what_is_within_the_tolerance_of_the_file_did_not_move_and_its_distance_is_said():
    def change(values):
        return values * np.float32(1 + 4e-6)

    got = moved(standard(), Stage.FORWARD, "ys", change)
    found = compare(standard(), got, FLOAT32)
    assert not any(one.moved for one in found)
    assert any(one.largest > 0 for one in found)
    assert any(one.moved for one in compare(standard(), got, {"float32": Tolerance(1e-7, 1e-9)}))


def test_whole_numbers_are_exact():
    found = only(
        standard(), moved(standard(), Stage.FORWARD, "carry", lambda a: a + 1, which=0), {"float32": Tolerance(1, 9)}
    )
    assert found.leaf == "carry[0]"
    assert found.tolerance == Tolerance()


@pytest.mark.parametrize(
    ("change", "now"),
    [
        (lambda a: a[:-1], "float32[8]"),
        (lambda a: a.astype(np.float16), "float16[9]"),
        (lambda a: a[None], "float32[1,9]"),
    ],
)
def test_another_shape_or_dtype_is_a_stage_of_its_own(change, now):
    found = only(standard(), moved(standard(), Stage.FORWARD, "carry", change, which=1))
    assert (found.stage, found.leaf, found.then, found.now) == (Stage.SHAPES, "carry[1]", "float32[9]", now)


def test_another_tree_is_named_by_its_structure():
    case = standard()
    tree = case.stages[Stage.FORWARD]["carry"]
    other = Flat("[*, *, *]", tree.leaves)
    got = replace(case, stages={**case.stages, Stage.FORWARD: {**case.stages[Stage.FORWARD], "carry": other}})
    found = only(case, got)
    assert (found.stage, found.leaf, found.then, found.now) == (Stage.SHAPES, "carry", "(*, *, *)", "[*, *, *]")
    without = {root: tree for root, tree in case.stages[Stage.FORWARD].items() if root != "ys"}
    found = only(case, replace(case, stages={**case.stages, Stage.FORWARD: without}))
    assert (found.leaf, found.now) == ("ys", "nothing")


def test_nan_at_the_same_place_is_equal_and_said_and_a_new_one_has_moved():
    baseline, data = recorded("step=entropy_unguarded")
    verdict = check(from_bytes(data))
    assert verdict.same
    assert verdict.nan
    assert any("NaN in both at the same places" in line for line in beside(baseline, verdict))

    def change(values):
        values[2] = np.nan
        return values

    found = only(standard(), moved(standard(), Stage.FORWARD, "carry", change, which=1))
    assert (found.now, found.largest) == ("nan", np.inf)


def test_the_first_stage_comes_first_then_the_case():
    baseline, data = recorded("cell=SimpleCell", "lstm")
    other = from_bytes(data)
    # Parameters of another seed: everything after them moves, and what is named is that.
    verdict = check(
        replace(other, cases=tuple(replace(case, values={**case.values, "seed": 5}) for case in other.cases))
    )
    assert not verdict.same
    first = verdict.first
    assert (first.stage, first.case) == (Stage.DATA, CaseName.STANDARD)
    assert first.leaf.startswith("weights['dense_")
    assert {Stage.DATA, Stage.FORWARD, Stage.LOSS, Stage.GRADIENTS} <= {one.stage for one in verdict.moved}
    word, words = headline(verdict)
    assert word == "Moved"
    assert "data & parameters" in words
    assert rows(verdict, 5)[0][:2] == ("data & parameters", "standard")
    assert list(beside(baseline, verdict))


def test_a_case_that_should_fail_and_runs_has_moved_and_so_has_one_that_does_not_run_any_more():
    baseline, _ = recorded()
    invalid, ran = baseline.cases[-1], baseline.cases[0]
    assert (invalid.became, invalid.why) == (Became.BROKEN, ("S108",))
    found = only(invalid, replace(ran, name=invalid.name))
    assert (found.stage, found.leaf, found.then, found.now) == (Stage.SHAPES, OUTCOME, "fails with S108", "runs")
    found = only(invalid, replace(invalid, why=("S109",)))
    assert (found.then, found.now) == ("fails with S108", "fails with S109")
    found = only(ran, replace(invalid, name=ran.name))
    assert (found.then, found.now) == ("runs", "fails with S108")
    found = only(ran, replace(ran, became=Became.REFUSED, why=("numbers",), stages={}))
    assert (found.stage, found.now) == (Stage.DATA, "is refused at numbers")


def test_another_scalar_is_no_loss_that_moved_a_little():
    found = only(standard(), replace(standard(), loss="the sum of ys"))
    assert (found.stage, found.leaf) == (Stage.LOSS, "loss")


def test_a_loss_that_moved_is_found():
    found = only(standard(), moved(standard(), Stage.LOSS, "loss", lambda a: a * np.float32(1.001)))
    assert (found.stage, found.leaf) == (Stage.LOSS, "loss")


def test_other_versions_are_said_beside_the_verdict():
    _, data = recorded()

    def older(document):
        document["versions"]["jax"] = "0.4.2"
        del document["versions"]["flax"]

    other = from_bytes(changed(data, older))
    verdict = check(other)
    assert verdict.same
    assert [name for name, _, _ in verdict.changes] == ["jax", "flax"]
    assert any("jax 0.4.2 →" in line and "flax none →" in line for line in beside(other, verdict))


def test_the_tolerance_is_that_of_the_backend_that_checks(monkeypatch):
    _, data = recorded()
    baseline = from_bytes(data)
    monkeypatch.setattr(comparing, "backend", lambda: "gpu")
    verdict = check(baseline)
    assert {one.tolerance for one in verdict.checks if one.dtype == "float32"} == {Tolerance(1e-3, 1e-3)}
    assert any("Recorded on cpu, checked on gpu" in line for line in beside(baseline, verdict))
    monkeypatch.setattr(comparing, "backend", lambda: "abacus")
    with pytest.raises(NoToleranceError, match="abacus"):
        Checker(baseline)


def test_the_table_of_tolerances_is_not_wider_than_the_pages():
    assert environment.TOLERANCE["cpu"]["float32"] == (1e-5, 1e-6)
    assert "int32" not in environment.TOLERANCE["cpu"]


def test_a_file_that_was_written_again_says_the_same():
    baseline, data = recorded()
    assert to_bytes(from_bytes(to_bytes(baseline))) == data


def test_a_case_that_is_computed_in_fewer_bits_now_is_not_let_off_for_it():
    """The tolerance of a file is that of then."""
    baseline, _ = recorded()
    want = baseline.cases[0]
    stage, root = Stage.FORWARD, "ys"
    tree = want.stages[stage][root]
    (path, leaf), *rest = tree.leaves
    moved = replace(tree, leaves=((path, leaf + np.float32(1e-3)), *rest))
    got = replace(
        want,
        computed=want.computed | {"bfloat16"},
        stages={**want.stages, stage: {**want.stages[stage], root: moved}},
    )
    found = compare(want, got, baseline.tolerances("cpu"))
    assert [(one.stage, one.leaf) for one in found if one.moved] == [(stage, path)]


def test_a_file_that_allows_more_than_a_recording_here_is_said_to():
    baseline, _ = recorded()
    wide = replace(baseline, tolerance={**baseline.tolerance, "cpu": {"float32": (1e-2, 1e-2)}})
    said = "\n".join(beside(wide, check(wide)))
    assert "wider than a recording here would have it (float32 rtol 1e-5, atol 1e-6)" in said
    assert "wider" not in "\n".join(beside(baseline, check(baseline)))


def test_of_long_texts_the_part_that_differs_is_shown():
    then, now = "{" + "a" * 5_000 + "then" + "b" * 5_000, "{" + "a" * 5_000 + "now" + "b" * 5_000
    one, two = words.apart(then, now)
    assert max(len(one), len(two)) <= words.SHOWN + 2
    assert "athenb" in one
    assert "anowb" in two
    assert words.apart("float32[2]", "float32[3]") == ("float32[2]", "float32[3]")
    assert words.apart("x" * 300, "") == ("x" * words.SHOWN + "…", "")
