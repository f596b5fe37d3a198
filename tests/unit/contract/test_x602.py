"""X602: out of time or memory."""

from core.base.outcome import Outcome
from core.base.places import Span
from core.base.violation import Severity
from core.doctor.check import Terms, check_script, examine
from core.doctor.instrument import trusted
from core.doctor.sandboxed import sandboxed
from core.sandbox import timeup

HEAD = "import jax\nimport jax.numpy as jnp\nimport numpy as np\n"
SCAN = "final, ys = jax.lax.scan(lambda c, x: (jnp.zeros(3), x), 0.0, jnp.ones(4))\n"


def test_x602_an_array_beyond_all_memory_is_a_limit_at_its_expression():
    text = HEAD + "a = 2 * jnp.zeros((10**6, 10**6))\n"
    for prepare in (trusted, sandboxed):
        report = check_script(text, prepare=prepare).report
        assert report.codes == ("X602",)
        assert report.outcome is Outcome.LIMIT
        assert report.error is None
        assert report.violations[0].severity is Severity.LIMIT
        assert report.violations[0].place == Span(4, 8, 4, 33)


def test_x602_numpy_and_python_run_out_of_memory_too():
    for made in ("np.zeros((10**7, 10**7))", "[0] * 10**15"):
        report = check_script(HEAD + f"a = {made}\n").report
        assert report.codes == ("X602",), made


def test_x602_shapes_are_checked_all_the_same():
    report = check_script(HEAD + "a = jnp.zeros((10**6, 10**6))\n" + SCAN, prepare=sandboxed).report
    assert set(report.codes) == {"X602", "S103"}
    assert report.outcome is Outcome.LIMIT


def test_x602_a_loop_that_never_ends_is_stopped_at_its_line_and_keeps_what_it_printed():
    text = HEAD + SCAN.replace("jnp.zeros(3)", "c + x") + "print('before')\nn = 0\nwhile True:\n    n = n + 1\n"
    timeup.arm(1.5)
    try:
        checkup = examine(text, Terms(sandboxed, again=lambda: timeup.arm(0.2)))
    finally:
        timeup.arm(0)
    assert checkup.report.codes[-1] != "S103"
    x602 = next(v for v in checkup.report.violations if v.code == "X602")
    assert x602.place.line in (7, 8)
    assert checkup.run.record.stdout == "before\n"


def test_x602_is_no_exception_that_a_script_may_catch():
    text = HEAD + "n = 0\ntry:\n    while True:\n        n = n + 1\nexcept Exception:\n    print('caught')\n"
    timeup.arm(0.7)
    try:
        checkup = examine(text, Terms(sandboxed, again=lambda: timeup.arm(0.2)))
    finally:
        timeup.arm(0)
    assert checkup.report.codes == ("X602",)
    assert checkup.run.record.stdout == ""


def test_x602_an_ordinary_error_and_a_large_but_honest_array_are_none():
    assert "X602" not in check_script(HEAD + "raise RuntimeError('RESOURCE')\n").report.codes
    large = HEAD + "a = jnp.zeros((1000, 1000))\n" + SCAN.replace("jnp.zeros(3)", "c + x")
    assert check_script(large).report.codes == ()
