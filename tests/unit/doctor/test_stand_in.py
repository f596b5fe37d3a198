"""Stand-ins: what a script needs and does not have is made up, and the rest is checked."""

import pytest

from core.base.outcome import Outcome
from core.doctor.check import check_script
from core.doctor.sandboxed import sandboxed
from core.doctor.stand_in import DTYPES, apply, stand_ins_of

SCAN = "final, ys = jax.lax.scan(lambda c, x: (c + x.sum(), c), 0.0, xs)\n"


def checked(text):
    return check_script(text, prepare=sandboxed, fixes=False)


def mended(text, shape=(4, 3), dtype="float32", seed=7):
    """Every offer taken, one after the other."""
    for _ in range(6):
        checkup = checked(text)
        offers = stand_ins_of(checkup)
        if not offers:
            return text, checkup
        text = apply(checkup.given.script, offers[0], shape, dtype, seed)
    raise AssertionError(text)


@pytest.mark.parametrize(
    "head",
    [
        "import jax\nfrom mydata import xs\n",
        "import jax\nimport mydata\nxs = mydata.load('train')['x']\n",
        "import jax\nimport mydata as d\nxs = d.train.x\n",
        "import jax\nimport numpy as np\nxs = np.load('weights.npy')\n",
        "import jax\nimport pandas as pd\nxs = pd.read_csv('a.csv').values\n",
        "import jax\n",
        "from mydata import other, xs\nimport jax\n",
    ],
)
def test_what_is_missing_is_offered_and_the_rest_runs(head):
    text, checkup = mended(head + SCAN)
    assert checkup.report.outcome is Outcome.OK, (text, checkup.report)
    assert "jax.random.normal(jax.random.key(7), (4, 3), 'float32')" in text
    assert checkup.run.record.scans[0].facts.length == 4


def test_a_name_of_an_earlier_cell_is_set_before_the_statement_that_needs_it():
    text = (
        "import jax\n\ndef run():\n    return jax.lax.scan(lambda c, x: (c + x.sum(), c), 0.0, data)\n\nout = run()\n"
    )
    text, checkup = mended(text)
    assert checkup.report.outcome is Outcome.OK, (text, checkup.report)


def test_a_step_that_nothing_calls_is_scanned():
    text = "import jax.numpy as jnp\n\ndef cell(carry, x):\n    carry = carry + jnp.tanh(x)\n    return carry, carry\n"
    (offer,) = stand_ins_of(checked(text))
    assert offer.name == "cell"
    text, checkup = mended(text)
    assert checkup.run.record.scans[0].facts.length == 4
    assert checkup.report.outcome is Outcome.OK


def test_a_script_that_has_all_it_needs_gets_no_offer():
    assert stand_ins_of(checked("import jax\nimport jax.numpy as jnp\nxs = jnp.ones((4, 3))\n" + SCAN)) == ()
    assert stand_ins_of(checked("def helper(a, b):\n    return a + b\n")) == ()
    assert stand_ins_of(checked("import os\n")) == ()


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_that_is_offered_works(dtype):
    text, checkup = mended("import jax\nfrom d import xs\ny = xs.sum()\n", dtype=dtype)
    assert checkup.report.error is None, text
    assert str(checkup.run.record.names["xs"].dtype) == dtype


def test_another_dtype_or_shape_is_refused():
    checkup = checked("import jax\nfrom d import xs\n")
    (offer,) = stand_ins_of(checkup)
    for shape, dtype in (((2,), "object"), ((-1,), "float32")):
        with pytest.raises(ValueError):
            apply(checkup.given.script, offer, shape, dtype, 0)


def test_several_things_that_are_missing_are_offered_at_once():
    text = (
        "import jax\nfrom mydata import xs, other\nimport numpy as np\nimport pandas as pd\n"
        "w = np.load('w.npy')\nv = np.loadtxt('v.txt')\nd = pd.read_csv('a.csv').values\n" + SCAN
    )
    offers = stand_ins_of(checked(text))
    assert [one.name for one in offers] == ["xs", "other", "w.npy", "v.txt", "pd.read_csv('a.csv').values"]
    assert [one.span.line for one in offers] == [2, 2, 5, 6, 7]
    text, checkup = mended(text)
    assert checkup.report.outcome is Outcome.OK, (text, checkup.report)


def test_another_name_for_a_function_that_reads_files_is_seen_through():
    text = "from numpy import load as fetch\nimport jax.numpy as jnp\nimport torch\na = jnp.load('a.npy')\nb = torch.load('b.pt')\n"
    names = [one.name for one in stand_ins_of(checked(text))]
    assert names == ["fetch", "a.npy", "torch.load('b.pt')"]


def test_what_a_script_can_do_without_is_not_offered():
    text = (
        "import numpy as np\ntry:\n    from fast import step\nexcept ImportError:\n    step = None\n"
        "x = np.load('x.npy')\nnp.save('y.npy', x)\nclass Box:\n    def load(self, name):\n        return name\n"
        "box = Box()\ny = box.load('z.npy')\n"
    )
    assert [one.name for one in stand_ins_of(checked(text))] == ["x.npy"]


def test_a_script_that_ends_for_another_reason_gets_no_offers():
    text = "import numpy as np\nx = np.ones(3) + np.ones(4)\ny = np.load('y.npy')\n"
    assert stand_ins_of(checked(text)) == ()


def test_plotting_is_left_out_and_needs_no_stand_in():
    text = (
        "import jax, jax.numpy as jnp\nimport numpy as np\nimport matplotlib.pyplot as plt\nfrom matplotlib import cm\n"
        "xs = np.load('train.npy')\nfinal, ys = jax.lax.scan(lambda c, x: (c + x.sum(), c), 0.0, xs)\n"
        "fig, ax = plt.subplots()\nax.plot(ys, color=cm.viridis(0.3))\nplt.rcParams['figure.figsize'] = (3, 3)\n"
        "with plt.style.context('dark'):\n    plt.show()\n"
    )
    assert [offer.name for offer in stand_ins_of(checked(text))] == ["train.npy"]
    text, checkup = mended(text)
    assert checkup.report.outcome is Outcome.OK, checkup.report


def test_what_lists_files_or_asks_a_person_gets_no_array():
    for text in ("import os\nx = os.listdir('/')\n", "x = input('who? ')\n"):
        assert stand_ins_of(checked(text)) == ()


MODULE = """from flax import nnx

class Model(nnx.Module):
    def __init__(self, {takes}):
        self.inner = nnx.Linear(3, 2, rngs=rngs)

    def __call__(self, inputs, scale=1.0):
        return self.inner(inputs) * scale
"""


@pytest.mark.parametrize("end", ["", "m = Model(rngs=nnx.Rngs(3))\n"])
@pytest.mark.parametrize("takes", ["rngs", "*, rngs: nnx.Rngs"])
def test_a_module_that_nothing_calls_is_given_an_input(takes, end):
    script = MODULE.format(takes=takes) + end
    (offer,) = stand_ins_of(checked(script))
    assert offer.name == "Model"
    text, checkup = mended(script)
    assert checkup.report.outcome is Outcome.OK, (text, checkup.report)
    assert checkup.run.record.names["out"].shape == (4, 2)


def test_a_module_that_is_called_or_wants_more_gets_no_input():
    called = (
        MODULE.format(takes="rngs") + "import jax.numpy as jnp\nm = Model(rngs=nnx.Rngs(0))\ny = m(jnp.ones((2, 3)))\n"
    )
    handed = MODULE.format(takes="rngs") + "m = Model(rngs=nnx.Rngs(0))\nprint(nnx.state(m))\n"
    more = MODULE.format(takes="width, rngs")
    for text in (called, handed, more, "class Plain:\n    def __call__(self, x):\n        return x\n"):
        assert stand_ins_of(checked(text)) == ()
