"""The lines of Python that put a file's parameters into a cell: load it by name, check its hash, replace them."""

from __future__ import annotations

from typing import Final

from core.base.text import fill
from core.weights.cell import CellWeights
from core.weights.document import PARAMS

FILE: Final = "carry-lab-weights-{short}.safetensors"
IMPORTS: Final = "import hashlib\nimport json\n\nfrom safetensors.numpy import load_file"
IMPORT: Final = "from safetensors.numpy import load_file"
LOAD: Final = 'weights = load_file("{file}")'
CHECK: Final = '''\
def digest(arrays):
    """SHA-256 over arrays: name, dtype, shape and bytes of each, by name."""
    sha = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        head = json.dumps([name, array.dtype.name, list(array.shape)]).encode()
        sha.update(len(head).to_bytes(8, "little") + head + array.tobytes())
    return sha.hexdigest()


own = {{n.removeprefix("{section}/"): a for n, a in weights.items() if n.startswith("{section}/")}}
if digest(own) != "{digest}":
    raise AssertionError("{file} holds other weights than the page's")'''
PUT: Final = """\
state = nnx.state({cell})
for path, parameter in nnx.to_flat_state(state):
    name = "{section}/{cell}." + ".".join(path)
    parameter[...] = jnp.asarray(weights[name])
nnx.update({cell}, state)"""


def file_name(digest: str) -> str:
    """The name of the file of the parameters with this hash."""
    return fill(FILE, short=digest[:8])


def load_line(weights: CellWeights) -> str:
    """``weights = load_file("…")``."""
    return fill(LOAD, file=file_name(weights.digest))


def check_lines(weights: CellWeights) -> str:
    """The check that the file holds these very parameters."""
    return fill(CHECK, section=PARAMS, digest=weights.digest, file=file_name(weights.digest))


def put_lines(cell: str) -> str:
    """The parameters of one cell of the file into the variable of the same name."""
    return fill(PUT, section=PARAMS, cell=cell)
