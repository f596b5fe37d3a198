"""One app for the faults that it must outlive: what it wrote, its memory and its threads can be looked at."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.support.serving import Running, app

#: What Streamlit itself says of a message that is no protobuf, of a text, and of a widget's value of another type.
REFUSED = {"DecodeError", "KeyError", "ValueError", "TypeError", "IndexError", "OverflowError"}


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The app by its launcher, with two spare workers."""
    with app(tmp_path_factory.mktemp("faults") / "app.log", {"CARRY_LAB_SPARES": "2"}) as started:
        yield started


@pytest.fixture(autouse=True)
def _it_goes_on(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever was done to it, the app goes on; of what it cannot read it logs the kind and the place, no more."""
    yield
    if "served" in request.fixturenames:
        started: Running = request.getfixturevalue("served")
        assert started.process.poll() is None
        said = re.split(r"^Traceback \(without the text.*: (\w+)$", started.said, flags=re.MULTILINE)
        assert said[0].count("Traceback") == 0
        for kind, frames in zip(said[1::2], said[2::2], strict=True):
            inner = re.findall(r'^ *File "([^"]+)"', frames.split("\n\n")[0], re.MULTILINE)
            assert kind in REFUSED, frames
            assert "site-packages" in inner[-1], frames
