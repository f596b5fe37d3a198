"""Code as people read it here: names in the colour of their role, carry, x or y."""

from __future__ import annotations

import html
import io
import keyword
import re
import tokenize

import streamlit as st

from core.plots.player_code import code_roles

_LETTER = {"carry": "c", "x": "x", "y": "y"}


def step_code(source: str, *, numbered: bool = False) -> None:
    """A step's source; the names of its carry, x and y in the colours of the diagram. `numbered`: with line numbers."""
    code, css = _coloured(source), ""
    if numbered:
        code, css = _numbered(code), " cl-numbered"
    st.html(f'<pre class="cl-code-block{css}"><code>{code}</code></pre>')


def _numbered(code: str) -> str:
    """A span for each line, which the style sheet numbers: numbers are no text, and are not copied with it."""
    out, tag = [], ""
    for line in code.split("\n"):
        whole = tag + line
        tag = (re.findall(r"<span[^>]*>|</span>", whole) or [""])[-1].removeprefix("</span>")
        out.append(f'<span class="cl-line">{whole}{"</span>" if tag else ""}</span>')
    return "".join(out)


def _coloured(source: str) -> str:
    roles = code_roles(source)
    marks = {(line, column): role for line, column, role in roles.marks}
    lines = source.splitlines()
    out, at = [], (1, 0)
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.start == token.end or token.type in (tokenize.NEWLINE, tokenize.NL):
                continue  # `_between` brings the line breaks
            out.append(html.escape(_between(lines, at, token.start)))
            text, at = html.escape(token.string), token.end
            role = marks.get((token.start[0] - 1, token.start[1]), roles.names.get(token.string))
            if token.type == tokenize.NAME and role in _LETTER:
                text = f'<span class="cl-role-{_LETTER[role]}">{text}</span>'
            elif token.type == tokenize.NAME and keyword.iskeyword(token.string):
                text = f'<span class="cl-keyword">{text}</span>'
            elif token.type in (tokenize.STRING, tokenize.COMMENT):
                text = f'<span class="cl-quiet-code">{text}</span>'
            out.append(text)
    except (tokenize.TokenError, SyntaxError):
        return html.escape(source)
    return "".join(out).rstrip()


def _between(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    """The blanks between two tokens."""
    if start[0] == end[0]:
        return lines[start[0] - 1][start[1] : end[1]] if start[0] <= len(lines) else ""
    gap = [lines[start[0] - 1][start[1] :]] if start[0] <= len(lines) else []
    gap += lines[start[0] : end[0] - 1]
    return "\n".join([*gap, lines[end[0] - 1][: end[1]]]) if end[0] <= len(lines) else ""
