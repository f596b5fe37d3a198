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

#: What Streamlit itself limits: its option, unit, and why. Its values stand in .streamlit/config.toml.
STREAMLITS = (
    ("server.maxUploadSize", "MB", "of one file that is given to a page, before its own limit is looked at"),
    ("server.maxMessageSize", "MB", "of one message between browser and server, both ways"),
)
BY_STREAMLIT = "config.toml, or {variable}"

_QUOTED = re.compile(r"`([^`]+)`")


def limits_table() -> None:
    """Every limit: name, value, unit, why, and whether the environment says it."""
    count = sum(limit.default is not None for limit in LIMITS.values())
    section(fill(TITLE), hint=fill(HINT, prefix=PREFIX, count=count))
    with st.container(key="status_limits"):
        st.html(table_html(HEAD, (*map(_row, LIMITS.values()), *map(_streamlits, STREAMLITS))))


def _streamlits(one: tuple[str, str, str]) -> list[str]:
    option, unit, why = one
    variable = "STREAMLIT_" + re.sub(r"(?<=[a-z])(?=[A-Z])|\.", "_", option).upper()
    return [*map(html.escape, (option, f"{st.get_option(option):,}", unit, fill(BY_STREAMLIT, variable=variable), why))]


def _row(limit: Limit) -> list[str]:
    by = fill(DEFAULT) if limit.default is None else fill(SET, variable=limit.variable, value=limit.default)
    why = _QUOTED.sub(r"<code>\1</code>", html.escape(limit.why))
    return [*map(html.escape, (limit.name, f"{limit.value:,}", limit.unit, by)), why]
