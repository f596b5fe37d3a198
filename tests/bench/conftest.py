"""Prints the table of a run of the benchmarks at its end, and writes `results.json`."""

from __future__ import annotations

import pytest

from tests.bench.table import line, machine, rows, write


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table, with the machine that it was measured on."""
    found = rows()
    if not found:
        return
    terminalreporter.section("what was promised and what was measured")
    terminalreporter.write_line(machine())
    terminalreporter.write_line(f"{'':72}{'measured':>11}     {'limit':>9}")
    for row in found:
        terminalreporter.write_line(line(row), red=not row.ok)
    write()
