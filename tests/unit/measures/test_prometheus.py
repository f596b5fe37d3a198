"""The measures as Prometheus reads them, and where they can be had."""

from __future__ import annotations

import socket
import urllib.request

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from core.base import measures
from core.base.measures import BUCKETS, Counter, Reading, Times
from core.measures import prometheus
from core.measures.prometheus import Place, place_of, registry, serve


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> tuple[Times, Counter]:
    """Measures of this test alone."""
    times, counter = Times("t_seconds", "Some.", page=("scan",)), Counter("t_faults", "Some.", code=("S101",))
    monkeypatch.setattr(prometheus, "TIMES", times)
    monkeypatch.setattr(prometheus, "COUNTERS", (counter,))
    monkeypatch.setattr(measures, "_readings", {})
    monkeypatch.setattr(prometheus, "_served", [])
    return times, counter


def said() -> dict[str, float]:
    """Every sample by its name and labels."""
    families = text_string_to_metric_families(generate_latest(registry()).decode())
    return {f"{s.name}{sorted(s.labels.items())}": s.value for family in families for s in family.samples}


def test_counts_and_times_read_back_as_they_were_recorded(fresh: tuple[Times, Counter]) -> None:
    times, counter = fresh
    for seconds in (0.001, 0.3, 100.0):
        times.observe(seconds, page="scan")
    counter.add(code="S101")
    counter.add(code="typed by a visitor")
    found = said()
    assert found["t_faults_total[('code', 'S101')]"] == 1
    assert found["t_faults_total[('code', 'other')]"] == 1
    below = [found[f"t_seconds_bucket[('le', '{bound}'), ('page', 'scan')]"] for bound in (*BUCKETS, "+Inf")]
    assert below == [1] * 6 + [2] * 5 + [3]
    assert found["t_seconds_count[('page', 'scan')]"] == 3
    assert found["t_seconds_sum[('page', 'scan')]"] == pytest.approx(100.301)
    assert "visitor" not in "".join(found)


def test_what_others_keep_is_read_when_it_is_asked_for(fresh: tuple[Times, Counter]) -> None:
    now = {"a": 1.0}
    measures.watch(Reading("t_kept", "Some.", "of", lambda: now))
    measures.watch(Reading("t_made", "Some.", "", lambda: {"": 7}, grows=True))
    assert (said()["t_kept[('of', 'a')]"], said()["t_made_total[]"]) == (1, 7)
    now["a"] = 5.0
    assert said()["t_kept[('of', 'a')]"] == 5


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({}, None),
        ({"CARRY_LAB_METRICS_PORT": " "}, None),
        ({"CARRY_LAB_METRICS_HOST": "0.0.0.0"}, None),
        ({"CARRY_LAB_METRICS_PORT": "9464"}, Place("127.0.0.1", 9464)),
        ({"CARRY_LAB_METRICS_PORT": "9464", "CARRY_LAB_METRICS_HOST": "0.0.0.0"}, Place("0.0.0.0", 9464)),
    ],
)
def test_off_by_default_and_for_this_machine_unless_told_otherwise(
    environ: dict[str, str], place: Place | None
) -> None:
    assert place_of(environ) == place


@pytest.mark.parametrize("port", ["0", "65536", "-1", "many", "9" * 5000, "٣"])
def test_a_wrong_port_is_named_by_its_variable_alone(port: str) -> None:
    with pytest.raises(ValueError, match="CARRY_LAB_METRICS_PORT must be") as caught:
        place_of({"CARRY_LAB_METRICS_PORT": port})
    assert len(str(caught.value)) < 80


def test_a_wrong_host_is_named_by_its_variable_alone() -> None:
    with pytest.raises(ValueError, match="CARRY_LAB_METRICS_HOST must be") as caught:
        place_of({"CARRY_LAB_METRICS_PORT": "9464", "CARRY_LAB_METRICS_HOST": "secret.example"})
    assert "secret" not in str(caught.value)


def test_it_is_served_and_a_taken_port_gets_a_sentence(fresh: tuple[Times, Counter]) -> None:
    fresh[1].add(code="S101")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    assert prometheus.served() is None
    serve(Place("127.0.0.1", port))
    assert prometheus.served() == Place("127.0.0.1", port)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        assert 't_faults_total{code="S101"} 1.0' in answer.read().decode()
    with pytest.raises(ValueError, match=f"cannot be had on port {port}: Address already in use"):
        serve(Place("127.0.0.1", port))
