"""The finder's words: one sentence first, a table, the tolerance, and what Simplify found."""

from __future__ import annotations

import pytest

from core.base.outcome import RawError
from core.base.parting import Comparison, Lever, Parted, Path, Stage, StageCheck, Try
from core.base.tolerance import Tolerance
from core.plots import parting_table as words

CLOSE = Tolerance(1e-5, 1e-6)
LEVERS = (Lever.LENGTH, Lever.BATCH, Lever.JIT)


def compared(*checks: StageCheck, **rest) -> Comparison:
    return Comparison(Path.EAGER, checks, **rest)


def parted(path=Path.JIT, stage=Stage.FORWARD, **changes) -> StageCheck:
    place = {"leaf": "ys", "t": 12, "index": (), "got": "0.4177", "want": "0.4123", **changes}
    return StageCheck(path, stage, 1, 0.0054, CLOSE, parted=Parted(**place))


def test_agreement_names_the_largest_difference_and_where_it_is():
    all_ = compared(StageCheck(Path.LOOP, Stage.FORWARD, 2, 3.14e-8), StageCheck(Path.JIT, Stage.LOSS, 1, 1e-9))
    assert words.headline(all_) == (
        "All paths agree. The largest difference is 3.1e−8, at forward (Python loop).",
    )  # fmt: skip
    assert words.headline(compared(StageCheck(Path.LOOP, Stage.FORWARD, 2))) == ("All paths agree to the last bit.",)
    assert words.headline(compared()) == ("Nothing was compared.",)


def test_a_parting_says_stage_leaf_t_and_both_values():
    assert words.headline(compared(parted(Path.FLOAT64))) == (
        "They part at forward, ys, t = 12: float32 0.4123, float64 0.4177.",
        words.OTHERWISE[Path.FLOAT64],
    )
    said, _ = words.headline(compared(parted(leaf="final carry[0]", t=None, index=(1, 3))))
    assert said == "They part at forward, final carry[0] at [1, 3]: eager 0.4123, jit 0.4177."


def test_rounding_and_an_optimizer_that_amplifies_it_are_said():
    assert words.headline(compared(parted(rounding=True)))[1] == words.ROUNDING
    agreed = StageCheck(Path.JIT, Stage.GRADIENTS, 3, 1e-9, CLOSE)
    assert "Adam" in words.headline(compared(agreed, parted(stage=Stage.UPDATE)))[1]
    both = compared(parted(stage=Stage.GRADIENTS), parted(stage=Stage.UPDATE))
    assert words.headline(both)[1] == words.OTHERWISE[Path.JIT]


def test_what_each_path_does_otherwise_is_known():
    assert set(words.OTHERWISE) == set(Path) - {Path.EAGER}
    assert set(words.PATH_WORDS) == set(Path)
    assert set(words.STAGE_WORDS) == set(Stage)
    assert set(words.LEVER_WORDS) == set(words.SMALL_WORDS) == set(Lever)


def test_errors_are_told_apart():
    error = RawError("TypeError", "carry\n  differs " + "x" * 500)
    (said,) = words.headline(compared(StageCheck(Path.EAGER, Stage.FORWARD, error=error)))
    assert said.startswith("The computation itself raises TypeError at forward")
    (said,) = words.headline(compared(StageCheck(Path.LOOP, Stage.FORWARD, error=error)))
    assert said.startswith("The Python loop path raises TypeError at forward: carry differs x")
    assert len(said) < 320


def test_the_table_has_a_row_a_stage_and_a_column_a_path():
    found = compared(
        StageCheck(Path.LOOP, Stage.DATA, 1),
        StageCheck(Path.LOOP, Stage.FORWARD, 1, 3e-8, CLOSE),
        StageCheck(Path.JIT, Stage.DATA, 1),
        StageCheck(Path.JIT, Stage.FORWARD, error=RawError("TypeError", "no")),
        parted(Path.LOOP, Stage.LOSS),
    )
    paths, rows, stages = words.table_rows(found)
    assert paths == ("Python loop", "jit")
    assert stages == ["data", "forward", "loss"]
    assert rows == [
        [("✓", True), ("✓", True)],
        [("✓ 3e−8", True), ("✗ TypeError", False)],
        [("✗ ys, t = 12", False), ("", None)],
    ]


def test_the_tolerance_is_stated():
    assert "rtol 1e-5, atol 1e-6" in words.tolerance_line(compared(parted()))
    exact = compared(StageCheck(Path.JIT, Stage.KEYS, 1, tolerance=Tolerance()))
    assert "Tolerance: exact." in words.tolerance_line(exact)
    assert words.tolerance_line(compared()) == ""
    two = compared(parted(), StageCheck(Path.JIT, Stage.LOSS, 1, tolerance=Tolerance(1e-3, 1e-3)))
    assert "forward rtol 1e-5" in words.tolerance_line(two)
    assert "loss rtol 0.001" in words.tolerance_line(two)


def test_what_is_left_out_has_its_reason():
    assert words.left_out_lines(compared(left_out=((Path.VMAP, "No batch."),))) == [
        "Left out: vmap over examples. No batch."
    ]


@pytest.mark.parametrize(("small_and_parted", "said"), [
    ([("TBj", True)], "They part even with T = 1, B = 1, no jit: nothing that was taken away is needed for it."),
    ([("TBj", False), ("Bj", True)], "It appears when the length T is put back, and with that alone."),
    ([("TBj", False), ("Bj", False), ("j", True), ("Tj", True)],
     "It appears when the batch B is put back, and with that alone."),
    ([("TBj", False), ("Bj", False), ("j", True), ("Tj", False)],
     "It appears when the batch B is put back, after the length T."),
    ([("TBj", False), ("Bj", False), ("j", True)], "It appears when the batch B is put back."),
    ([("TBj", False), ("Bj", False), ("j", False), ("", False)], words.NOT_AGAIN),
    ([("TBj", False)], words.STILL_LOOKING),
])  # fmt: skip
def test_simplify_in_one_sentence(small_and_parted, said):
    letters = {"T": Lever.LENGTH, "B": Lever.BATCH, "j": Lever.JIT}
    tried = tuple(
        Try(frozenset(letters[c] for c in small), parted() if bad else None) for small, bad in small_and_parted
    )
    assert words.simplified(LEVERS, tried) == said
    assert len(words.try_rows(LEVERS, tried)) == len(tried)


def test_each_rerun_says_what_it_did():
    tried = [
        Try(frozenset(LEVERS), None),
        Try(frozenset(LEVERS[1:]), None),
        Try(frozenset(LEVERS[2:]), parted()),
        Try(frozenset({Lever.LENGTH, Lever.JIT}), None),
    ]
    assert [row[0] for row in words.try_rows(LEVERS, tuple(tried))] == [
        "everything small: T = 1, B = 1, no jit",
        "the length T put back",
        "the batch B put back",
        "the batch B put back, all else small",
    ]
    assert words.simplified((), ()) == words.NO_LEVERS
