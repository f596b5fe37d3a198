"""The LSTM cell page's program gives the page's numbers for every cell and every "Break it" switch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.export.cell_program import cell_document
from core.inputs.cell_fields import SWITCHES
from core.inputs.cell_inputs import CellInputs
from core.inputs.cell_page import look_at
from core.runners.cell_formulas import KINDS
from tests.unit.export.export_support import assert_same, cells_of, run_code, run_parts


def agrees(inputs):
    """Its script ends by itself with the page's numbers, or with the exception that the page says."""
    look = look_at(inputs)
    document = cell_document(look)
    names, said, test = run_parts(document)
    if look.step is None:
        assert document.raises == look.raised.type
        assert f"raised, as it must: {look.raised.type}" in test
        return document, said
    assert said.startswith("new carry: ")
    after, output = look.step.after, look.step.output
    assert_same((names["new_carry"], names["output"]), (after if look.step.kind.pair else after[0], output))
    return document, said


@pytest.mark.parametrize("batch", [2, 3])
@pytest.mark.parametrize("cell", KINDS)
def test_every_cell(cell, batch):
    inputs = CellInputs(cell=cell, batch=batch, carry="normal", input="noise", input_seed=4)
    document, _ = agrees(inputs)
    assert document.seeds == ("parameters 0", "carry 1", "input 4")
    one_array = KINDS[cell].pair and batch == 3
    assert document.negative.text.startswith("one array where" if one_array else "an input with one feature too many")


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda switch: switch.id)
@pytest.mark.parametrize("cell", KINDS)
@pytest.mark.parametrize("batch", [2, 3])
def test_every_switch(switch, cell, batch):
    carry = "normal" if switch.id in {"swapped", "one_array", "batch_1", "bfloat16"} else "zeros"
    inputs = replace(CellInputs(cell=cell, batch=batch, carry=carry), **{switch.field: switch.value})
    if inputs.offered(switch):
        assert switch.needs_pair
        return
    document, _ = agrees(inputs)
    assert document.codes
    if not document.raises and switch.id in {"swapped", "time_axis", "one_array"}:
        assert document.negative.text.startswith("the program with Carry Lab's fix")


def test_typed_numbers_are_all_in_it():
    rows = "\n".join(", ".join(str(n / 8 + row) for n in range(40)) for row in range(3))
    agrees(CellInputs(in_features=40, batch=3, input="paste", numbers=rows))
    agrees(CellInputs(carry="typed", carry_c="1 2 3 4\n0 nan inf 0", carry_h="1 2 3 4\n5 6 7 8"))


def test_the_notebook_runs():
    run_code(*cells_of(cell_document(look_at(CellInputs()))))
    run_code(*cells_of(cell_document(look_at(CellInputs(break_cell="none given")))))


def test_no_program_of_what_cannot_be_read_or_is_over_a_limit():
    assert cell_document(look_at(CellInputs(input="paste", numbers="x"))) is None
    assert cell_document(look_at(CellInputs(hidden_features=10**6))) is None
