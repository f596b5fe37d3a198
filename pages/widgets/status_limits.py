"""The table of limits as this process has it."""

from __future__ import annotations

import html
import re

import streamlit as st

from core.base.limits import LIMITS, Limit
from core.base.text import fill
from pages.widgets.frame import section
from pages.widgets.tables import table_html

TITLE, HINT = "Limits", "each can be set by an environment variable: {prefix} and its name; set here: {count}"
PREFIX = "CARRY_LAB_"
HEAD = ("limit", "value", "unit", "set by", "why")
DEFAULT, SET = "default", "{variable} (default {value:,})"

_QUOTED = re.compile(r"`([^`]+)`")


def limits_table() -> None:
    """Every limit: name, value, unit, why, and whether the environment says it."""
    count = sum(limit.default is not None for limit in LIMITS.values())
    section(fill(TITLE), hint=fill(HINT, prefix=PREFIX, count=count))
    with st.container(key="status_limits"):
        st.html(table_html(HEAD, map(_row, LIMITS.values())))


def _row(limit: Limit) -> list[str]:
    by = fill(DEFAULT) if limit.default is None else fill(SET, variable=limit.variable, value=limit.default)
    why = _QUOTED.sub(r"<code>\1</code>", html.escape(limit.why))
    return [*map(html.escape, (limit.name, f"{limit.value:,}", limit.unit, by)), why]
