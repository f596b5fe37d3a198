"""The Sequence page's program: its numbers are proved by tests of its source; here its frame and its negative tests."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest

from core.base.sequences import Slip
from core.export.sequence_program import sequence_document
from core.inputs.sequence_breaks import SWITCHES, edit_of
from core.inputs.sequence_fields import DIRECTIONS, MASKINGS
from core.inputs.sequence_inputs import SequenceInputs
from core.inputs.sequence_page import look_at
from tests.unit.export.export_support import cells_of, run_code, run_parts, run_script

OPENING = SequenceInputs()
SMALL = replace(OPENING, batch=2, length=4, in_features=2, hidden_features=3, lengths="4, 2")


def agrees(inputs, *, jit=False):
    """The final carry and the outputs are those of the page; the negative test holds."""
    look = look_at(inputs)
    document = sequence_document(look)
    names, said, test = run_parts(document, jit=jit)
    assert "final carry:" in said
    assert "ys:" in said
    if Slip.UNPACKED not in inputs.slips:
        ys = names["ys"] if inputs.time_major else names["ys"].swapaxes(0, 1)
        np.testing.assert_allclose(ys, look.result.outputs, rtol=1e-5, atol=1e-6)
        want = [part for direction in look.result.directions for part in direction.final]
        for one, other in zip(jax.tree.leaves(names["carry"]), want, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    return document, test


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("masking", MASKINGS)
def test_each_way_through_the_sequence(masking, direction):
    inputs = replace(SMALL, masking=masking, direction=direction, keep_order=direction == "reverse")
    document, said = agrees(inputs)
    assert ("with the fix:" in said) == (masking == "none")
    assert ("1000 in the padding: the same final carry" in said) == (masking != "none")
    assert document.codes == (("L311",) if masking == "none" else ())


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda switch: switch.id)
def test_every_switch(switch):
    document, said = agrees(SequenceInputs.of({**OPENING.values, **edit_of(OPENING, switch)}))
    assert document.codes == ((switch.code,) if switch.id != "no_order" else ())
    assert ("with the fix:" in said) == (switch.id not in {"built_in_step", "no_order"})


def test_a_batch_in_the_other_order_without_padding():
    document, _ = agrees(replace(SMALL, axes="TBF", time_major=True, masking="none", lengths="4, 4"))
    assert "feature too many" in document.negative.text
    agrees(replace(SMALL, axes="TBF", time_major=True, masking="mask"))


def test_what_raises_is_said_to():
    look = look_at(replace(SMALL, axes="TBF", lengths="4, 2"))
    assert look.raised is not None
    document = sequence_document(look)
    assert document.raises == look.raised.type
    _, said = run_script(document)
    assert said.startswith(f"raised, as it must: {look.raised.type}")


def test_a_padding_that_counts_fails_the_negative_test():
    document = sequence_document(look_at(SMALL))
    code = document.negative.code.replace("rnn(x, seq_lengths=lengths, return_carry=True)", "rnn(x, return_carry=True)")
    assert code != document.negative.code
    with pytest.raises(AssertionError, match="the padding moved the final carry"):
        run_code(*(part.code for part in document.parts), code, jit=False)


def test_the_notebook_runs():
    run_code(*cells_of(sequence_document(look_at(SMALL))), jit=False)


def test_no_program_of_what_cannot_be_read_or_is_over_a_limit():
    assert sequence_document(look_at(replace(SMALL, lengths="x"))) is None
    assert sequence_document(look_at(replace(SMALL, hidden_features=10**6))) is None
