"""X603: the playground does not run this."""

from core.base.outcome import Outcome
from core.base.places import Span
from core.doctor.check import check_script
from core.doctor.sandboxed import sandboxed

HEAD = "import jax\nimport jax.numpy as jnp\nimport numpy as np\n"


def report_of(text):
    return check_script(HEAD + text, prepare=sandboxed).report


def test_x603_an_import_that_is_not_offered_is_named_at_its_place():
    report = report_of("import subprocess\n")
    assert report.codes == ("X603",)
    assert report.outcome is Outcome.LIMIT
    assert report.violations[0].place.line == 4
    assert "subprocess" in report.violations[0].message


def test_x603_what_is_refused_while_it_runs_stands_at_its_expression():
    report = report_of("a = jnp.ones(3)\nb = np.load('x.npy')\n")
    assert report.codes == ("X603",)
    assert report.violations[0].place.line == 5


def test_x603_every_refused_place_is_told():
    report = report_of("def f(x: 'int'):\n    return x\ndef g(x: 'int'):\n    return x\n")
    assert report.codes == ("X603", "X603")
    assert [v.place.line for v in report.violations] == [4, 6]


def test_x603_an_attribute_that_does_not_exist_is_pythons_own_error():
    report = report_of("a = jnp.no_such_thing(3)\n")
    assert report.codes == ()
    assert report.error is not None
    assert report.error.type == "AttributeError"


def test_x603_ordinary_code_is_run():
    assert report_of("a = [x for x in range(3)]\nprint(f'{a}', jnp.asarray(a).sum())\n").violations == ()
    assert report_of("import numpy.random as r\nx = r.default_rng(0).normal(size=3)\n").violations == ()


def test_x603_a_place_is_the_smallest_expression():
    report = report_of("y = 1 + np.load('x.npy').sum()\n")
    assert report.violations[0].place in (Span(4, 8, 4, 24), Span(4, 8, 4, 15))
