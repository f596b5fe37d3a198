"""The measures in Prometheus' text format (https://prometheus.io/docs/instrumenting/exposition_formats/), off by default.

CARRY_LAB_METRICS_PORT=9464     switches it on
CARRY_LAB_METRICS_HOST=0.0.0.0  for others than this machine; who may reach it is then the network's business
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client import GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR, CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from core.base.measures import BUCKETS, COUNTERS, TIMES, Reading, Spread, readings
from core.base.text import fill

PORT_VARIABLE: Final = "CARRY_LAB_METRICS_PORT"
HOST_VARIABLE: Final = "CARRY_LAB_METRICS_HOST"
LOOPBACK: Final = "127.0.0.1"

BAD_PORT = "{variable} must be a port from 1 to 65535"
BAD_HOST = "{variable} must be an address of this machine, such as 0.0.0.0"
NO_PORT = "The measures cannot be had on port {port}: {reason}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the measures can be had."""

    host: str
    port: int


def place_of(environ: Mapping[str, str]) -> Place | None:
    """Where the environment wants them; None where it does not.

    Raises:
        ValueError: a variable holds no port or no address; the message names the variable, not its value.
    """
    text = environ.get(PORT_VARIABLE, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= 65_535):
        raise ValueError(fill(BAD_PORT, variable=PORT_VARIABLE))
    try:
        host = str(ipaddress.ip_address(environ.get(HOST_VARIABLE, "").strip() or LOOPBACK))
    except ValueError:
        raise ValueError(fill(BAD_HOST, variable=HOST_VARIABLE)) from None
    return Place(host, int(text))


class Measures(Collector):
    """All of `core.base.measures`, and what is watched, at the moment it is asked."""

    def collect(self) -> Iterator[Metric]:
        """One family for each measure, in Prometheus' own objects."""
        times = HistogramMetricFamily(TIMES.name, TIMES.said, labels=TIMES.labels)
        for labels, spread in TIMES.values().items():
            times.add_metric(labels, buckets=_buckets(spread), sum_value=spread.sum)
        yield times
        for counter in COUNTERS:
            counts = CounterMetricFamily(counter.name, counter.said, labels=counter.labels)
            for labels, count in counter.values().items():
                counts.add_metric(labels, count)
            yield counts
        for reading in readings():
            yield _read(reading)


def _buckets(spread: Spread) -> list[tuple[str, float]]:
    """As Prometheus counts: each bucket with all below it."""
    below, out = 0, []
    for bound, count in zip((*map(str, BUCKETS), "+Inf"), spread.counts, strict=True):
        below += count
        out.append((bound, float(below)))
    return out


def _read(reading: Reading) -> Metric:
    labels = [reading.label] if reading.label else []
    family = (CounterMetricFamily if reading.grows else GaugeMetricFamily)(reading.name, reading.said, labels=labels)
    for value, number in reading.read().items():
        family.add_metric([value] if labels else [], number)
    return family


def registry() -> CollectorRegistry:
    """The measures, and what the package knows of any process: memory, processor time, open files, Python's version."""
    out = CollectorRegistry()
    for collector in (Measures(), PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR):
        out.register(collector)
    return out


_served: list[Place] = []


def served() -> Place | None:
    """Where the measures can be had; None when that is off."""
    return _served[-1] if _served else None


def serve(place: Place) -> None:
    """Answer requests for the measures from now on, in a thread of its own.

    Raises:
        ValueError: the port cannot be had; the message says why.
    """
    try:
        server, _ = start_http_server(place.port, addr=place.host, registry=registry())
    except OSError as problem:
        raise ValueError(fill(NO_PORT, port=place.port, reason=problem.strerror)) from None
    # Its own would print the address of whoever hung up in the middle.
    server.handle_error = _unheard  # type: ignore[assignment, method-assign]
    _served.append(place)


def _unheard(*_: object) -> None:
    pass
