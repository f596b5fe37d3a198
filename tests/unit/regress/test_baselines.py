"""The project's own baselines, one for each cell and preset: what was recorded on the pinned versions holds on these.

`make test` checks them on the pinned versions, `make test-newest` the same files on the newest JAX and Flax 0.12. Measured
between JAX 0.11.2 with Flax 0.12.10 and JAX 0.12.0.1 with Flax 0.12.12 on a CPU: every scan equal to the last bit, cells
apart by 3.7e-9 and layers by 1.5e-7 at most, gradients and updates by 1.9e-6 (in a loss that is a sum of norms, and in a
parameter after an update with learning rate 10), where rtol 1e-5 allows more. So the tolerance is that of the pages.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from core.base.limits import LIMITS
from core.regress.case import CaseName
from core.regress.compare import check
from core.regress.environment import TOLERANCE
from core.regress.file import SUFFIX, UnreadableError, from_bytes
from core.regress.state import page_of_link, page_state, values_of_link
from core.regress.words import headline
from core.runners.cell_formulas import KINDS
from core.steps.library import PRESETS, UNGUARDED
from core.weights.container import read, write

FOLDER = Path(__file__).parents[2] / "baselines"
LINKS = dict(line.split(" ", 1) for line in (FOLDER / "links.txt").read_text(encoding="utf-8").splitlines())
ANEW = "Recording it anew needs a reason: see CONTRIBUTING, “Baselines”."


def test_there_is_one_for_each_cell_and_preset_and_none_too_many():
    wanted = {f"{page}-{cell}" for page in ("lstm", "sequence") for cell in KINDS}
    wanted |= {f"scan-{step.id}" for step in (*PRESETS, *UNGUARDED)}
    assert wanted <= set(LINKS)
    assert {path.name.removesuffix(SUFFIX) for path in FOLDER.glob(f"*{SUFFIX}")} == set(LINKS)


def test_they_are_small_and_their_tolerance_is_the_pages():
    sizes = [path.stat().st_size for path in FOLDER.glob(f"*{SUFFIX}")]
    assert sum(sizes) < 1_000_000
    for name in LINKS:
        baseline = from_bytes((FOLDER / f"{name}{SUFFIX}").read_bytes())
        assert baseline.tolerance == TOLERANCE
        assert baseline.backend == "cpu"
        assert len(baseline.cases) == len(CaseName)


@pytest.mark.parametrize("name", LINKS)
def test_nothing_moved(name):
    baseline = from_bytes((FOLDER / f"{name}{SUFFIX}").read_bytes())
    link = LINKS[name]
    page = page_state(page_of_link(link))
    assert (baseline.page, baseline.values) == (page.name, page.tidy(values_of_link("", link), None))
    verdict = check(baseline)
    assert verdict.same, f"{headline(verdict)[1]} {ANEW}"


def test_one_that_was_tampered_with_fails():
    data = (FOLDER / f"lstm-GRUCell{SUFFIX}").read_bytes()
    held = read(data, "baseline_bytes", "baseline_header")
    tensors = {name: np.array(array) for name, array in held.tensors.items()}
    name = next(name for name, array in tensors.items() if array.dtype == np.float32 and array.any())
    tensors[name].flat[np.flatnonzero(tensors[name])[0]] *= np.float32(1 + 1e-6)
    with pytest.raises(UnreadableError, match="was changed after it was recorded"):
        from_bytes(write(tensors, held.metadata))
    assert len(data) < LIMITS["baseline_bytes"].value


def test_another_seed_and_a_leaf_of_another_number_are_noticed():
    from dataclasses import replace

    baseline = from_bytes((FOLDER / f"lstm-SimpleCell{SUFFIX}").read_bytes())
    other = replace(baseline.cases[0], values={**baseline.cases[0].values, "seed": 1})
    verdict = check(replace(baseline, cases=(other,)))
    assert not verdict.same
    assert verdict.first.leaf.startswith("weights[")
