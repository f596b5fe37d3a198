"""The Scan page's program runs by itself and gives the page's numbers, for every preset and whatever stands in the inputs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from core.export.document import script
from core.export.scan_program import scan_document
from core.inputs.break_it import BREAK_IT, break_edit
from core.inputs.generate import GENERATORS
from core.inputs.parse import DTYPES
from core.inputs.scan_check import evaluate
from core.inputs.scan_fields import follow, opening
from core.steps.library import STEPS
from tests.unit.export.export_support import assert_same, cells_of, run_code, run_parts


def checked_of(step="running_sum", **edits):
    return evaluate(follow(opening(step), edits))


def agrees(checked):
    """Its script ends by itself, with the page's numbers; or raises what the page says, and says so."""
    document = scan_document(checked)
    names, said, test = run_parts(document)
    if checked.result is None:
        assert document.raises
        assert f"raised, as it must: {document.raises}" in test
        assert "final" not in names
    else:
        assert not document.raises
        assert_same((names["final"], names["ys"]), (checked.result.final, checked.result.ys))
        assert said.startswith("final carry: ")
    return document, test


@pytest.mark.parametrize("step", STEPS)
def test_every_preset(step):
    checked = checked_of(step)
    document, _ = agrees(checked)
    assert document.codes == tuple(dict.fromkeys(v.code for v in checked.report.broken))
    code = cells_of(document)
    assert [cell for cell in code if cell not in script(document)] == []
    assert code[1:] == [part.code.strip("\n") for part in (*document.parts, document.negative)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("generator", [g.id for g in GENERATORS])
def test_every_made_sequence(generator, dtype):
    made = {"source": "generate", "generator": generator, "dtype": dtype, "seed": 3}
    for sizes in (
        {"length": 4},
        {"length": 3, "features": 2},
        {"length": 3, "batch": 2, "features": 2, "axes": "batch"},
    ):
        checked = checked_of(**made, **sizes)
        document = scan_document(checked)
        names, _ = run_code(*(part.code for part in document.parts[:3]))
        assert_same(names["xs"], checked.built.call.xs)
    if dtype == "float32" or generator == "ramp":  # the others run the same programs
        agrees(checked)


@pytest.mark.parametrize(
    "edits",
    [
        {"numbers": "1, nan, -inf, 3"},
        {"numbers": "[[1, 2], [3, 4.5]]", "reverse": True},
        {"numbers": "", "length": 0},
        {"numbers": "1, 2, 3", "dtype": "bfloat16", "unroll": "2"},
        {"numbers": "true, false", "dtype": "bool"},
        {"numbers": "3000000000, 1", "dtype": "int32"},
        {"numbers": "1, 2, 3", "length_argument": "3"},
        {"numbers": "1, 2, 3", "length_argument": "4"},
        {"numbers": "1, 2, 3", "length_argument": "3.0"},
        {"numbers": "1, 2, 3", "unroll": "True"},
        {"numbers": "1, 2, 3", "as_list": True},
        {"numbers": "1, 2, 3", "as_list": True, "dtype": "int32"},
        {"numbers": ", ".join(["0.1", "0.25"] * 250)},
        {"init": "zeros(12)", "init_weak": False},
        {"init": "inf"},
        {"init": "2", "init_dtype": "int32", "init_weak": True},
        {"source": "generate", "generator": "noise", "length": 5, "as_list": True},
        {"source": "generate", "generator": "ramp", "length": 5, "features": 2, "as_list": True},
    ],
    ids=lambda edits: " ".join(f"{k}={str(v)[:18]}" for k, v in edits.items()),
)
def test_whatever_stands_in_the_inputs(edits):
    checked = checked_of(**edits)
    assert checked.report is not None
    agrees(checked)


@pytest.mark.parametrize("mistake", BREAK_IT, ids=lambda mistake: mistake.id)
def test_what_is_broken_by_a_button_behaves_as_the_page_says(mistake):
    checked = evaluate(follow(opening("running_sum"), {}) | dict(break_edit(mistake, opening("running_sum")).values))
    document, test = agrees(checked)
    assert document.codes
    if not document.raises:
        assert "with the fix:" in test


def test_the_notebook_runs():
    run_code(*cells_of(scan_document(checked_of())))
    run_code(*cells_of(scan_document(checked_of("grows"))))


def test_no_program_of_what_cannot_be_read_or_is_over_a_limit():
    assert scan_document(checked_of(numbers="1, x")) is None
    assert scan_document(checked_of(source="generate", length=10**6)) is None


def test_a_parameter_is_in_it():
    document = scan_document(checked_of("exponential_average", param_decay=0.5))
    assert "exponential_average(carry, x, decay=0.5)" in script(document)


@pytest.mark.parametrize("step", ["random_walk", "grows"])
def test_it_runs_in_a_process_of_its_own(step, tmp_path):
    checked = checked_of(step)
    file = tmp_path / "carry-lab-scan.py"
    file.write_text(script(scan_document(checked)), encoding="utf-8")
    done = subprocess.run([sys.executable, "-I", str(file)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("must have equal types, but they differ:\n")
    if checked.result is not None:
        first = done.stdout.split("\n")[0].removeprefix("final carry: ")
        assert float(first) == pytest.approx(float(checked.result.final))
