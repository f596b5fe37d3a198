"""That there was no time to try all fixes is said where they would stand, and such an answer is kept for nobody else."""

from dataclasses import replace

import pytest

from core.doctor import job
from core.doctor.answer import Request, Wish
from core.doctor.gallery import EXAMPLES
from core.doctor.wire import from_wire
from pages.widgets import doctor_cards, doctor_check
from pages.widgets.doctor_check import Look

TEXT = "import jax, jax.numpy as jnp\njax.lax.scan(lambda c, x: (c + x, c), jnp.int32(0), jnp.ones(3))\n"


@pytest.fixture(scope="module")
def answer():
    desk = job.Desk()
    made = from_wire(desk.handle(Request(Wish.FIXES, TEXT)))
    desk.close()
    return made


def test_a_cut_is_said_and_nothing_else_is(answer):
    assert doctor_cards._waiting(Look(TEXT, answer)) == ""
    assert doctor_cards._waiting(Look(TEXT, replace(answer, cut=True))) == doctor_cards.FIXES_CUT
    assert doctor_cards._waiting(Look(TEXT, replace(answer, cut=True, fixed=False))) == doctor_cards.FIXES_CUT


@pytest.mark.parametrize("cut", [False, True])
def test_an_example_keeps_only_a_whole_answer(answer, cut, monkeypatch):
    kept = []

    class Prepared:
        def end(self, name, found):
            kept.append((name, found is not None))

    monkeypatch.setattr(doctor_check, "prepared", Prepared)
    example = next(iter(EXAMPLES.values()))
    doctor_check._keep(example, replace(answer, cut=cut, milliseconds=60_000.0))
    assert kept == [(example.name, not cut)]
