"""What every test shares: Hypothesis profiles, the CPU backend, who runs where, a guard for the kernel's memory maps."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# One browser for every folder: two conftests with one each start two in a process, which Playwright refuses.
from tests.support.browsing import browser, pytest_runtest_makereport  # noqa: F401

# Before anything imports jax: the tests say the same on a machine with an accelerator.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

# A compile inside an example takes 0.1 s and more, so that no deadline and no "too slow" can be meant.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
#: CI: the same examples every time, no fewer than 200, nothing kept between runs.
settings.register_profile("ci", max_examples=200, derandomize=True, database=None, print_blob=True, **_COMMON)
#: The second, shorter run of CI (newest jax and flax).
settings.register_profile("short", max_examples=25, derandomize=True, database=None, print_blob=True, **_COMMON)
#: At the desk: fewer, and new ones each time.
settings.register_profile("dev", max_examples=25, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))

#: Every compiled program costs about 22 memory maps; at the kernel's 65,530 a process dies without a message.
_MAPS = Path("/proc/self/maps")
_TOO_MANY_MAPS = 30_000

#: The longest first, so that no core idles at the end.
_BROWSER, _PROPERTY = "tests/e2e/", "tests/property/"


#: Tests that wait for servers, browsers and sockets. Two cores run two of them and their servers at once, and what is
#: waited for may come a second late; such a test runs once more, and the summary counts it ("rerun").
_WAITING = (_BROWSER, "tests/deploy/", "tests/faults/")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests first, then property tests, then all others in their order."""
    for item in items:
        if item.nodeid.startswith(_WAITING):
            item.add_marker(pytest.mark.flaky(reruns=1))
    items.sort(key=lambda item: (not item.nodeid.startswith(_BROWSER), not item.nodeid.startswith(_PROPERTY)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Who runs where: all browser tests on one worker, each property test on its own, all others file by file.

    Not by --dist=loadgroup: pytest 9.2 no longer lets xdist 3.8 pass the groups on, and ignores them silently.
    """
    from xdist.scheduler import LoadScopeScheduling

    class OneBrowser(LoadScopeScheduling):
        """One server and one browser; files stay whole, so that what their fixtures made is made once."""

        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith(_BROWSER):
                return _BROWSER
            return nodeid if nodeid.startswith(_PROPERTY) else nodeid.split("::", 1)[0]

    # Keep the order above.
    config.option.loadscopereorder = False
    return OneBrowser(config, log)


@pytest.fixture(autouse=True)
def _room_for_programs() -> Iterator[None]:
    """Drops JAX's compiled programs before a long test process comes near the kernel's limit of memory maps."""
    yield
    jax = sys.modules.get("jax")
    if jax is not None and _MAPS.exists():
        with _MAPS.open("rb") as lines:
            count = sum(1 for _ in lines)
        if count > _TOO_MANY_MAPS:
            jax.clear_caches()


@pytest.fixture
def strict_promotion() -> Iterator[None]:
    """JAX refuses to mix dtypes or ranks implicitly while the test runs: for our own formulas, which must not rely on it.

    Not for everything: a learner's step may promote, and the product must then do what JAX does.
    """
    import jax

    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        yield
