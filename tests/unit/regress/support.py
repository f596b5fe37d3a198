"""Baselines to take apart: a small one of a scan, made once, and a way to change what a file says."""

from __future__ import annotations

import json
from functools import cache

from core.regress.file import NAME, _canonical, _seal, to_bytes
from core.regress.record import record
from core.regress.state import page_state, values_of_link
from core.weights.container import read, write


@cache
def recorded(link="step=running_variance", page="scan", **asked):
    """The baseline of a link, and its file."""
    baseline = record(page_state(page), values_of_link(page, link), **asked)
    return baseline, to_bytes(baseline)


def changed(data, change, *, tensors=None, sealed=True):
    """The file after `change(document)`, with a hash that fits again unless `sealed` is False."""
    container = read(data, "baseline_bytes", "baseline_header")
    document = json.loads(container.metadata[NAME])
    change(document)
    if sealed:
        document["sha256"] = _seal(document)
    return write(dict(container.tensors) if tensors is None else tensors, {NAME: _canonical(document)})
