"""The same program as a notebook (nbformat 4): Markdown cells that explain, code cells, the negative test at its end."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from core.base.text import fill
from core.export.document import NEGATIVE, Document, Part

TITLE: Final = "# {title}\n\n{about}"
_LANGUAGE: Final = {"name": "python"}
_KERNEL: Final = {"name": "python3", "display_name": "Python 3", "language": "python"}


def notebook(document: Document) -> str:
    """The notebook as JSON text; it holds no outputs.

    Its code cells, one after the other in one namespace, are the script's program.
    """
    nbformat: Any = import_module("nbformat")  # 0.2 s, which only whoever exports a notebook should wait for

    cells: list[Any] = []

    def markdown(text: str) -> None:
        cells.append(nbformat.v4.new_markdown_cell(text, id=f"cell-{len(cells)}"))

    def code(text: str) -> None:
        cells.append(nbformat.v4.new_code_cell(text.strip("\n"), id=f"cell-{len(cells)}"))

    head, *rest = document.head.split("\n", 1)
    markdown(fill(TITLE, title=head, about="\n".join(f"{line}  " for line in rest[0].split("\n"))))
    if document.first:
        code(document.first)
    code(document.check)
    negative = Part(fill(NEGATIVE, text=document.negative.text), document.negative.code)
    for part in (*document.parts, negative):
        if part.text:
            markdown(part.text)
        code(part.code)
    made = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": _KERNEL, "language_info": _LANGUAGE})
    nbformat.validate(made)
    return str(nbformat.writes(made))
