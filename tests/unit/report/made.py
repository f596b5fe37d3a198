"""A report for tests, made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from core.report.model import (
    Asked,
    ContractReport,
    Criterion,
    Declared,
    Input,
    Latency,
    Machine,
    Name,
    Negative,
    Seed,
    Setting,
    Status,
    UsedTolerance,
    Versions,
)


def report() -> ContractReport:
    """One that passes."""
    return ContractReport(
        made="2026-12-01T04:00:00+00:00",
        page="scan",
        title="A scan: Running sum",
        about="c′ = c + x, y = c′",
        versions=Versions("3.12.1", "0.11.2", "0.11.2", "0.12.10", "2.5.0"),
        machine=Machine("Linux", "A | processor", 2, 2, (0.5, 0.4, 0.3), (), "cpu", "cpu", False),
        settings=(Setting("step", "running_sum"),),
        inputs=(Input("xs", (3,), "float32", "T", "0" * 64), Input("init", (), "float32", "", "", (0.0, float("nan")))),
        contract=Declared("T", ("litres",), "float32", 0.0, float("inf"), "", ("low", "features")),
        seeds=(Seed("xs", 7, "numpy"),),
        asked=(Asked(0, "params (default)", 0, "nnx.LSTMCell", "0123456789abcdef"),),
        asked_cut=False,
        tolerances=(UsedTolerance("float32", 1e-5, 1e-6),),
        criteria=tuple(Criterion(name, Status.PASS, 0.0, "0", "a | b <b>") for name in Name),
        negatives=(Negative("The carry gains an axis.", "TypeError", "TypeError"),),
        latency=Latency("a scan", 30, 3, 1.0, 2.0, 3.0, 4.0, 5.0),
        latency_missing="",
        not_proved=("It was run on one set of inputs.",),
    )


def with_status(statuses: Mapping[Name, Status]) -> ContractReport:
    """The same, with other ends of some criteria."""
    one = report()
    criteria = tuple(replace(c, status=statuses.get(c.name, c.status)) for c in one.criteria)
    return replace(one, criteria=criteria)
