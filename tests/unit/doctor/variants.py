"""The same script, written differently: other names, in a function, through other imports."""

from __future__ import annotations

import ast
import io
import textwrap
import tokenize


def as_it_is(text: str) -> str:
    return text


def renamed(text: str) -> str:
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


def in_a_function(text: str) -> str:
    """Everything in a function, one line further down; what was global is nonlocal there."""
    body = textwrap.indent(text.replace("global ", "nonlocal "), "    ")
    return f"def main():\n{body}\n    return None\nmain()\n"


def by_name(text: str) -> str:
    """`scan` imported by its name."""
    return text.replace("jax.lax.scan(", "scan(").replace("import jax,", "from jax.lax import scan; import jax,", 1)


#: With by how many lines each moves the script down.
VARIANTS = ((as_it_is, 0), (renamed, 0), (in_a_function, 1), (by_name, 0))
