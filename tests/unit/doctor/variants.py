"""The same script, written differently: other names, other sizes, in a function or a method, through other imports."""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from collections.abc import Callable
from dataclasses import dataclass

from tests.unit.doctor.sizes import SIZES

type Rewrite = Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to write a report's script.

    Attributes:
        name: what is different.
        shift: by how many lines the script moves down.
        text: (id of the report, script) -> the script in other words.
        inside: the scope that holds the script is closed when it ends, so that a check belongs into it.
        names: whether the names that the script gives are others.
    """

    name: str
    shift: int
    text: Rewrite
    inside: bool = False
    names: bool = False

    def source(self, report: dict[str, str], which: str = "source") -> str:
        """A script of the report."""
        return self.text(report["id"], report[which])

    def with_check(self, report: dict[str, str], source: str) -> str:
        """A fixed script with the report's own assertions at its end; `_out` is what it printed."""
        check = report["check"]
        if self.names:
            check = renamed("", report["source"] + "\n" + check).split("\n")[-1]
        if self.text is resized:
            check = resized(report["id"], check)
        if not self.inside:
            return f"{source}\n{check}\n"
        assert source.count(END) == 1, source
        return re.sub(rf"( *){END}", lambda found: found[1] + check, source)


def as_it_is(_: str, text: str) -> str:
    return text


def renamed(_: str, text: str) -> str:
    """Every name that the script itself gives is another one of the same length or longer; the lines stay."""
    names = given_names(text)
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    lines = text.split("\n")
    changes, depth = [], 0
    for i, token in enumerate(tokens):
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
        before = tokens[i - 1].string if i else ""
        after = tokens[i + 1].string if i + 1 < len(tokens) else ""
        keyword = depth > 0 and after == "=" and before in ("(", ",")
        if token.type == tokenize.NAME and token.string in names and before != "." and not keyword:
            changes.append((token.start, token.string))
    for (line, column), name in reversed(changes):
        here = lines[line - 1]
        lines[line - 1] = here[:column] + f"my_{name}_" + here[column + len(name) :]
    return "\n".join(lines)


def given_names(text: str) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
    return names - {"_"}


def resized(report: str, text: str) -> str:
    """Other numbers of steps, of features, of a batch, in script and check alike; the lines stay."""
    for old, new in SIZES[report]:
        text = text.replace(old, new)
    return text


#: The last statement of what was put into a function: where a check may stand.
END = "return None"


def in_a_function(report: str, text: str) -> str:
    """Everything in a function, one line further down, with other imports; what was global is nonlocal there."""
    body = textwrap.indent(from_jax(report, text).replace("global ", "nonlocal "), "    ")
    return f"def main():\n{body}\n    {END}\nmain()\n"


def in_a_method(report: str, text: str) -> str:
    """Everything in a method of a class, two lines further down, and `scan` by its name."""
    body = textwrap.indent(by_name(report, text).replace("global ", "nonlocal "), "        ")
    return f"class Experiment:\n    def run(self):\n{body}\n        {END}\nExperiment().run()\n"


def by_name(_: str, text: str) -> str:
    """`scan` imported by its name."""
    return text.replace("jax.lax.scan(", "scan(").replace("import jax,", "from jax.lax import scan; import jax,", 1)


def from_jax(_: str, text: str) -> str:
    """`from jax import lax, numpy as jnp`, `import flax.nnx as nn`, `import numpy`; nothing is called `jax` or `np`."""
    first, _, rest = text.partition("\n")
    assert first == "import jax, jax.numpy as jnp"
    rest = (
        rest.replace("from flax import nnx", "import flax.nnx as nn")
        .replace("nnx.", "nn.")
        .replace("flax.nn.", "flax.nnx.")
    )
    rest = re.sub(r"\bnp\.", "numpy.", rest.replace("import numpy as np", "import numpy"))
    names = dict.fromkeys(re.findall(r"\bjax\.(\w+)", rest))
    rest = re.sub(r"\bjax\.(\w+)", r"\1", rest)
    return f"from jax import {', '.join([*names, 'numpy as jnp'])}\n{rest}"


VARIANTS = (
    Variant("as_it_is", 0, as_it_is),
    Variant("renamed", 0, renamed, names=True),
    Variant("resized", 0, resized),
    Variant("in_a_function", 1, in_a_function, inside=True),
    Variant("in_a_method", 2, in_a_method, inside=True),
)
