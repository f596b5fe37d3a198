"""The Gradients page's programs: the maps, the gradient of a scan, one update; each with its negative test."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.export.gradient_program import gradient_document
from core.inputs.gradient_fields import CELL_NAMES
from core.inputs.gradient_inputs import GradientInputs
from core.inputs.gradient_page import look_at
from core.steps.library import PRESETS, UNGUARDED
from tests.unit.export.export_support import cells_of, run_code, run_parts, run_script

CELLS = GradientInputs(length=5, hidden_features=3, in_features=2)
MODEL = replace(CELLS, of="training", train_length=3, batch=2, updates=1)


@pytest.mark.parametrize(
    "edits",
    [{}, {"forget_bias": 2.0, "recurrent_scale": 1.5, "source": "typed", "numbers": "1 2\n3 4"}],
    ids=["opening", "weights, typed"],
)
def test_what_cells_remember(edits):
    look = look_at(replace(CELLS, **edits))
    document = gradient_document(look)
    names, said = run_script(document)
    assert said.endswith("no state depends on a later input\n")
    for one in look.cells.maps:
        np.testing.assert_allclose(names["maps"][CELL_NAMES[one.kind]], one.h, rtol=2e-4, atol=1e-9)


def test_more_typed_numbers_than_the_page_writes_out():
    rows = "\n".join(" ".join(str((n * 7 + t) % 5) for n in range(60)) for t in range(8))
    look = look_at(replace(CELLS, source="typed", numbers=rows))
    imports, program = (part.code for part in gradient_document(look).parts)
    names, _ = run_code(imports, program.split("\ndef memory")[0])
    np.testing.assert_array_equal(names["xs"], look.cells.data)


def test_data_that_are_not_finite_have_another_test():
    document = gradient_document(look_at(replace(CELLS, source="typed", numbers="1 2\nnan 4")))
    assert "whole numbers" in document.negative.text
    run_script(document)


@pytest.mark.parametrize("step", [*PRESETS, *UNGUARDED], ids=lambda step: step.id)
def test_the_gradient_of_every_preset(step):
    look = look_at(replace(CELLS, of="preset", preset=step.id))
    if look.scan is None:
        assert gradient_document(look) is None
        assert look.problems
        return
    document = gradient_document(look)
    names, _, test = run_parts(document)
    assert float(names["value"]) == pytest.approx(look.scan.gradient.value, rel=1e-4, abs=1e-6)
    assert document.codes == ((step.breaks,) if step.breaks else ())
    assert ("with the fix:" in test) == bool(step.breaks)


@pytest.mark.parametrize(
    ("edits", "test"),
    [
        ({}, "in training dropout has to be given a key"),
        ({"mode": "eval"}, "without dropout the loss must not move"),
        ({"rate": 0.0, "optimizer": "adam"}, "without dropout the loss must not move"),
        ({"model": "GRUCell"}, "in training dropout has to be given a key"),
    ],
)
def test_one_update(edits, test):
    look = look_at(replace(MODEL, **edits))
    document = gradient_document(look)
    assert document.negative.text.startswith(test)
    assert "optax" in document.pins
    names, _ = run_script(document)
    step = look.training.step
    assert [float(names["before"]), float(names["after"])] == pytest.approx(
        [step.loss_before, step.loss_after], rel=1e-4
    )


def test_without_rngs_it_raises_as_the_page_says():
    look = look_at(replace(MODEL, rngs="none given"))
    document = gradient_document(look)
    assert document.codes == ("L318",)
    assert document.raises == look.raised.type
    assert run_script(document)[1].startswith(f"raised, as it must: {look.raised.type}")


def test_a_later_input_that_counts_fails_the_negative_test():
    document = gradient_document(look_at(CELLS))
    names = "import jax.numpy as jnp\nmaps = {'LSTM': jnp.ones((2, 2))}"
    with pytest.raises(AssertionError, match="LSTM: a state depends on a later input"):
        run_code(names, document.negative.code)


def test_the_notebook_runs():
    run_code(*cells_of(gradient_document(look_at(MODEL))))


def test_no_program_of_what_cannot_be_used():
    assert gradient_document(look_at(replace(CELLS, length=0))) is None
    assert gradient_document(look_at(replace(MODEL, batch=0))) is None
