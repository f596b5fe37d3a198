"""A report as Markdown."""

from __future__ import annotations

from dataclasses import replace

from core.report.markdown import write_markdown
from core.report.model import Name, Status
from tests.unit.report.made import report, with_status


def test_it_begins_with_the_verdict_and_ends_with_what_it_does_not_prove():
    lines = write_markdown(report()).splitlines()
    assert lines[0] == "# Contract report: A scan: Running sum"
    assert lines[2].startswith("**PASS**")
    assert [line for line in lines if line.startswith("## ")][-1] == "## What this does not prove"
    assert lines[-1] == "- It was run on one set of inputs."


def test_a_failing_criterion_is_named_in_the_first_lines():
    text = write_markdown(with_status({Name.KEYS: Status.FAIL}))
    assert "**FAIL**: 1 of 15 criteria failed: Every subkey is used once." in text


def test_what_somebody_wrote_cannot_change_the_table_or_become_html():
    text = write_markdown(replace(report(), title="# a | b <script>`x`\n\n| c |"))
    assert "<script>" not in text
    assert text.splitlines()[0] == r"# Contract report: \# a \| b \<script\>\`x\` \| c \|"
    rows = [line for line in text.splitlines() if line.startswith("| Eager = jit")]
    assert rows == [r"| Eager = jit | pass | largest difference: 0 | 0 | a \| b \<b\> |"]


def test_every_row_of_a_table_has_the_columns_of_its_head():
    width = 0
    for line in write_markdown(report()).splitlines():
        cells = line.replace("\\|", "").count("|") if line.startswith("|") else 0
        assert not cells or not width or cells == width, line
        width = cells


def test_values_hashes_seeds_streams_versions_and_load_are_all_there():
    text = write_markdown(report())
    for part in ("`" + "0" * 64 + "`", "nnx.LSTMCell", "0.12.10", "0.50, 0.40, 0.30", "0123456789abcdef", "| 7 |"):
        assert part in text
