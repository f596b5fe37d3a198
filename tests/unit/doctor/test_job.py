"""A worker's job: a request in, an answer out, as JSON both ways."""

import json

import numpy as np
import pytest

from core.base.outcome import Outcome
from core.doctor import check, job
from core.doctor.answer import LINK, Request, Wish
from core.doctor.wire import from_wire
from core.sandbox.timeup import TimeUp

LSTM = """import jax
import jax.numpy as jnp
from flax import nnx

cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
init = cell.initialize_carry((2, 3), rngs=nnx.Rngs(1))
final, ys = jax.lax.scan(lambda carry, x: cell(carry, x), init, jnp.ones((5, 2, 3)))
print(ys.shape)
"""
INT = """import jax
import jax.numpy as jnp

def step(total, x):
    return total + x, total

final, ys = jax.lax.scan(step, jnp.int32(0), jnp.array([1.5, 2.5]))
"""


def ask(desk, wish, text):
    sent = json.dumps(desk.handle(Request(wish, text)), allow_nan=False)
    return from_wire(json.loads(sent))


@pytest.fixture
def desk():
    desk = job.Desk()
    yield desk
    desk.close()


def test_a_check_brings_values_shapes_and_output(desk):
    answer = ask(desk, Wish.CHECK, LSTM)
    assert answer.report.outcome is Outcome.OK
    assert answer.stdout == "(5, 2, 4)\n"
    assert ("ys", "float32[5,2,4]") in [(s.name, s.type) for s in answer.shapes]
    (panel,) = answer.scans
    assert panel.line == 7
    assert panel.length == 5
    assert dict(panel.names) == {"carry[0]": "c", "carry[1]": "h"}
    assert [s.values.shape for s in panel.result.carries] == [(6, 2, 4), (6, 2, 4)]
    assert panel.result.ys_series[0].values.shape == (5, 2, 4)


def test_values_arrive_as_they_were_computed(desk):
    text = "import jax, jax.numpy as jnp\nf, ys = jax.lax.scan(lambda c, x: (c * x, c), jnp.float32(1), jnp.array([2., jnp.nan, jnp.inf]))\n"
    (panel,) = ask(desk, Wish.CHECK, text).scans
    np.testing.assert_array_equal(panel.result.carries[0].values, np.array([1, 2, np.nan, np.nan], np.float32))


def test_bfloat16_and_keys_arrive_too(desk):
    text = (
        "import jax, jax.numpy as jnp\n"
        "f, ys = jax.lax.scan(lambda c, x: (c + x, jax.random.key(1)), jnp.bfloat16(1), jnp.ones(2, jnp.bfloat16))\n"
    )
    (panel,) = ask(desk, Wish.CHECK, text).scans
    assert panel.result.carries[0].values.tolist() == [1, 2, 3]
    assert str(panel.result.carries[0].type) == "bfloat16[]"
    assert panel.result.ys_series[0].values.dtype == np.uint32


def test_shapes_compute_nothing_and_find_what_raises(desk):
    answer = ask(desk, Wish.SHAPES, INT)
    assert answer.report.codes == ("S104",)
    assert answer.scans[0].result is None
    assert answer.scans[0].reason
    assert not answer.ran


def test_fixes_come_with_whole_sources_that_hold(desk):
    verdict = ask(desk, Wish.CHECK, INT)
    assert verdict.sources == ((),)
    assert not verdict.fixed
    answer = ask(desk, Wish.FIXES, INT)
    assert answer.fixed
    assert answer.sources[0]
    for source in answer.sources[0]:
        assert ask(job.Desk(), Wish.CHECK, source).report.outcome is Outcome.OK


def test_fixes_of_a_script_that_was_not_checked_before_are_found_all_the_same(desk):
    ask(desk, Wish.CHECK, LSTM)
    assert ask(desk, Wish.FIXES, INT).sources[0]


def test_a_statement_that_needs_values_does_not_end_the_abstract_pass(desk):
    text = INT.replace("final,", "assert float(jnp.ones(2).sum()) == 2.0\nn = int(jnp.ones(2).sum())\nfinal,")
    answer = ask(desk, Wish.SHAPES, text)
    assert answer.report.codes == ("S104",)
    assert answer.skipped == (8,)


def test_a_prefix_of_statements_ran_when_one_raises(desk):
    answer = ask(desk, Wish.CHECK, "import jax.numpy as jnp\nprint('a')\nx = jnp.ones(3) + jnp.ones(4)\nprint('b')\n")
    assert answer.stdout == "a\n"
    assert answer.report.error.place.line == 3


def test_error_text_leads_to_its_code(desk):
    said = "TypeError: scan body output must be a pair, got float32[5]."
    answer = ask(desk, Wish.CHECK, said)
    assert answer.matched is not None
    assert answer.matched[0] == "S101"


def test_output_is_cut_at_its_limit(desk):
    answer = ask(desk, Wish.CHECK, "for i in range(20000):\n    print(i, 'x' * 20)\n")
    assert answer.stdout_cut
    assert len(answer.stdout) <= 65_536


def test_the_issue_text_has_a_place_for_the_link(desk):
    assert LINK in ask(desk, Wish.CHECK, INT).issue


def test_what_is_no_request_raises():
    for request in ({}, {"wish": "run", "text": ""}, {"wish": "check"}):
        with pytest.raises((KeyError, ValueError)):
            job.handle(request)


def test_x64_is_told_and_ends_with_the_script(desk):
    text = "import jax\njax.config.update('jax_enable_x64', True)\nimport jax.numpy as jnp\nx = jnp.ones(3)\n"
    answer = ask(desk, Wish.CHECK, text)
    assert answer.x64
    assert ("x", "float64[3]") in [(s.name, s.type) for s in answer.shapes]
    assert ("x", "float32[3]") in [
        (s.name, s.type) for s in ask(desk, Wish.CHECK, "import jax.numpy as jnp\nx = jnp.ones(3)\n").shapes
    ]


def test_a_panel_of_a_scan_inside_a_trace_says_why_it_has_no_values(desk):
    text = "import jax, jax.numpy as jnp\ng = jax.grad(lambda w: jax.lax.scan(lambda c, x: (c * w + x, None), 0.0, jnp.ones(3))[0])(2.0)\n"
    (panel,) = ask(desk, Wish.CHECK, text).scans
    assert panel.result is None
    assert "trace" in panel.reason


def test_more_steps_than_are_drawn_have_types_only(desk):
    text = "import jax, jax.numpy as jnp\nf, ys = jax.lax.scan(lambda c, x: (c + x, c), 0.0, jnp.ones(5000))\n"
    (panel,) = ask(desk, Wish.CHECK, text).scans
    assert panel.result is None
    assert "5,000" in panel.reason


def test_a_script_that_is_too_long_is_not_read_whatever_is_in_it(desk):
    answer = ask(desk, Wish.CHECK, "x = (\n" * 5000)
    assert answer.report.codes == ("X601",)
    assert answer.report.outcome is Outcome.LIMIT
    assert "30,000" in answer.report.violations[0].message
    assert ask(desk, Wish.CHECK, "# " + "x" * 19_000 + "\nprint(1)\n").stdout == "1\n"


MANY = """import jax, jax.numpy as jnp
def step(carry, x):
    a, b = carry
    return (a + x, b + x), a
f, ys = jax.lax.scan(step, (jnp.int32(0), jnp.bfloat16(0)), jnp.ones(4))
"""


@pytest.mark.parametrize("after", [0, 1])
def test_that_the_alarm_cut_the_fixes_short_is_said(desk, monkeypatch, after):
    ask(desk, Wish.CHECK, MANY)
    runs, once = [], check.run_once

    def hurried(*args, **kwargs):
        runs.append(args)
        if len(runs) > after:
            raise TimeUp
        return once(*args, **kwargs)

    monkeypatch.setattr(check, "run_once", hurried)
    answer = ask(desk, Wish.FIXES, MANY)
    assert answer.fixed
    assert answer.cut
    assert sum(len(v.fixes) for v in answer.report.violations) == after
    assert len(answer.report.violations) == 2
    monkeypatch.undo()
    whole = ask(desk, Wish.FIXES, MANY)
    assert not whole.cut
    assert all(v.fixes for v in whole.report.violations)


def test_an_alarm_in_our_own_part_of_the_fixes_is_a_cut_too(desk, monkeypatch):
    def late(_):
        raise TimeUp

    ask(desk, Wish.CHECK, MANY)
    monkeypatch.setattr(job, "with_fixes", late)
    answer = ask(desk, Wish.FIXES, MANY)
    assert answer.cut
    assert not answer.fixed
    assert not ask(desk, Wish.CHECK, MANY).cut
