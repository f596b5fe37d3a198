"""The divergence finder on the Scan page through AppTest; paths are run in this process, by the worker's own handler."""

from __future__ import annotations

import json
import re
from pathlib import Path as File
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.base.parting import Path
from core.doctor import parting_job
from core.sandbox.pool_ticket import Done, Stopped, StopReason
from pages.widgets import doctor_backend, parting_panel

ROOT = File(__file__).resolve().parents[2]


class Given:
    """A ticket: over at once, or after so many looks."""

    def __init__(self, result: Any, late: int = 0, place: int = 0) -> None:
        self.result, self.late, self.place, self.cancelled = result, late, place, False

    def wait(self, seconds: float) -> bool:
        self.late -= 1
        return self.late < 0

    def cancel(self) -> None:
        self.cancelled = True


class InProcess:
    """The pool's part. `instead`: results by path; `late`: looks until one is over, and its place in the queue."""

    def __init__(self) -> None:
        self.benches: dict[str, parting_job.Bench] = {}
        self.asked: list[tuple[str, str, list[str]]] = []
        self.instead: dict[str, Any] = {}
        self.late: dict[str, tuple[int, int]] = {}
        self.tickets: list[Given] = []
        self.refuse = False

    def reserve(self, session: str) -> None:
        pass

    def release(self, session: str) -> None:
        pass

    def close(self) -> None:
        pass

    def submit(self, session: str, request: dict[str, Any]) -> Given:
        if self.refuse:
            raise ValueError
        path = request["path"]
        self.asked.append((session, path, request["small"]))
        late = self.late.get(path, (0, 0))
        if path in self.instead:
            result = self.instead[path]
            if isinstance(result, Stopped) and result.reason is StopReason.REPLACED:
                del self.instead[path]  # once: by what another panel asked in between
        else:
            bench = self.benches.setdefault(session, parting_job.Bench())
            result = Done(json.loads(json.dumps(bench.handle(json.loads(json.dumps(request, allow_nan=False))))))
        self.tickets.append(Given(result, *late))
        return self.tickets[-1]


@pytest.fixture
def pool(monkeypatch):
    made = InProcess()
    monkeypatch.setattr(doctor_backend, "start", lambda: made)
    doctor_backend.backend.clear()
    yield made
    doctor_backend.backend.clear()


def opened(**query: str) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    for name, value in query.items():
        at.query_params[name] = value
    return ran(at)


def ran(at: AppTest) -> AppTest:
    at.run()
    assert not at.exception
    assert not at.error, [e.value for e in at.error]
    return at


def pressed(at: AppTest, key: str) -> AppTest:
    at.button(key=key).click()
    return ran(at)


def choose(at: AppTest, *paths: Path) -> AppTest:
    at.button_group(key="scan_parting_paths").set_value(list(paths))
    return ran(at)


def says(at: AppTest) -> str:
    bodies = [e.proto.body for e in at.get("html")] + [c.value for c in at.caption]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", " | ".join(bodies)))


def keys(at: AppTest) -> set[str]:
    return {button.key for button in at.button if button.key}


def test_the_usual_paths_of_the_opening_scan_agree(pool):
    at = pressed(opened(), "scan_parting_run")
    assert "All paths agree to the last bit." in says(at)
    assert [path for _, path, _ in pool.asked] == ["", "eager", "loop", "jit"]
    assert "scan_parting_simplify" not in keys(at)
    assert "scan_parting_cancel" not in keys(at)


def test_nothing_is_run_before_it_is_asked_for(pool):
    opened()
    assert not pool.asked


def test_a_chaotic_map_parts_in_64_bits_and_simplify_names_the_length(pool):
    at = opened(step="logistic_map")
    choose(at, Path.FLOAT64)
    pressed(at, "scan_parting_run")
    found = re.search(r"They part at forward, carry, t = (\d+): float32 (\S+), float64 (\S+)\.", says(at))
    assert found, says(at)
    assert abs(float(found[2]) - float(found[3])) > 1e-6 + 1e-5 * abs(float(found[2]))
    assert "rtol 1e-5, atol 1e-6" in says(at)
    pressed(at, "scan_parting_simplify")
    assert "It appears when the length T is put back, and with that alone." in says(at)


def test_padding_without_a_mask_parts_at_the_final_carry(pool):
    at = opened(step="exponential_average")
    choose(at, Path.PADDED, Path.VMAP)
    pressed(at, "scan_parting_run")
    assert "They part at forward, final carry: eager " in says(at)
    assert "Left out: vmap over examples. It is not said which axis of xs is the batch." in says(at)


def test_a_change_of_the_inputs_makes_it_stale_until_it_is_run_again(pool):
    at = pressed(opened(), "scan_parting_run")
    at.number_input(key="scan_length").set_value(5)
    ran(at)
    assert parting_panel.STALE in says(at)
    pressed(at, "scan_parting_run")
    assert parting_panel.STALE not in says(at)


@pytest.mark.parametrize(("reason", "words"), [
    (StopReason.TIME, "jit: stopped after 5 s"),
    (StopReason.MEMORY, "jit: stopped at"),
    (StopReason.DIED, "jit: its worker broke off"),
    (StopReason.BUSY, "jit: all workers and the queue are full"),
    (StopReason.OUTPUT, "jit: its answer was larger"),
])  # fmt: skip
def test_a_path_that_was_stopped_has_an_outcome_and_the_others_their_results(pool, reason, words):
    pool.instead["jit"] = Stopped(reason)
    at = pressed(opened(), "scan_parting_run")
    assert words in says(at)
    assert "All paths agree to the last bit." in says(at)


@pytest.mark.parametrize("answer", [{}, {"checks": "all", "left_out": "", "levers": []}])
def test_an_answer_that_is_none_is_said_to_be_none(pool, answer):
    pool.instead["loop"] = Done(answer)
    at = pressed(opened(), "scan_parting_run")
    assert "Python loop: the worker's answer could not be read" in says(at)


def test_without_its_reference_nothing_more_is_run(pool):
    pool.instead["eager"] = Stopped(StopReason.TIME)
    at = pressed(opened(), "scan_parting_run")
    assert "eager: stopped after" in says(at)
    assert [path for _, path, _ in pool.asked] == ["", "eager"]


def test_after_a_stop_the_next_worker_is_told_all_again(pool):
    pool.instead["loop"] = Stopped(StopReason.TIME)
    at = pressed(opened(), "scan_parting_run")
    assert [path for _, path, _ in pool.asked] == ["", "eager", "loop", "", "eager", "jit"]
    assert "All paths agree to the last bit." in says(at)
    assert "Python loop: stopped after 5 s" in says(at)


def test_simplify_that_is_stopped_says_so_and_ends(pool):
    at = opened(step="logistic_map")
    choose(at, Path.FLOAT64)
    pressed(at, "scan_parting_run")
    pool.instead["float64"] = Stopped(StopReason.MEMORY)
    pressed(at, "scan_parting_simplify")
    assert "float64: stopped at" in says(at)
    assert pool.asked[-1][2] == ["T", "jit"]


def test_simplify_can_be_called_off(pool):
    at = opened(step="logistic_map")
    choose(at, Path.FLOAT64)
    pressed(at, "scan_parting_run")
    pool.late["eager"] = (50, 0)
    pressed(at, "scan_parting_simplify")
    assert "Simplifying: everything small: T = 1, no jit." in says(at)
    pressed(at, "scan_parting_cancel")
    assert says(at).count("cancelled.") == 1


def test_building_that_takes_too_long_is_said_and_ends_it(pool):
    pool.instead[""] = Stopped(StopReason.TIME)
    at = pressed(opened(), "scan_parting_run")
    assert "eager: stopped after" in says(at)
    assert [path for _, path, _ in pool.asked] == [""]


def test_progress_place_and_cancel(pool):
    pool.late["loop"] = (50, 3)
    at = pressed(opened(), "scan_parting_run")
    assert "Number 3 in the queue for a worker." in says(at)
    assert at.button(key="scan_parting_run").disabled
    pressed(at, "scan_parting_cancel")
    assert pool.tickets[-1].cancelled
    assert "Python loop: cancelled." in says(at)
    assert "jit: cancelled." in says(at)
    assert not at.button(key="scan_parting_run").disabled


def test_a_path_that_gave_way_to_another_panels_job_is_handed_in_again(pool):
    pool.instead["loop"] = Stopped(StopReason.REPLACED)
    at = pressed(opened(), "scan_parting_run")
    assert [path for _, path, _ in pool.asked].count("loop") == 2
    assert "Python loop:" not in says(at)  # no sentence that it was stopped
    assert not at.button(key="scan_parting_run").disabled


def test_what_is_over_the_limit_of_a_request_says_so(pool):
    pool.refuse = True
    at = pressed(opened(), "scan_parting_run")
    assert "These data are more than a worker is sent" in says(at)


def test_sessions_do_not_see_each_other(pool):
    one, two = opened(), opened(step="logistic_map")
    pressed(one, "scan_parting_run")
    assert "All paths agree" in says(one)
    assert "All paths agree" not in says(ran(two))
    pressed(two, "scan_parting_run")
    assert len({session for session, _, _ in pool.asked}) == 2


def other_pages() -> None:
    """A page of layers and one of training, as they draw the panel."""
    import numpy as np

    from core.base.training import TrainingSpec
    from core.contract.subject import SequenceTrial
    from pages.widgets.parting_panel import parting_of_layer, parting_of_training

    inputs = np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 3, 2)
    parting_of_layer("sequence", "these", SequenceTrial("SimpleCell", inputs, "BTF", 2))
    spec = TrainingSpec(inputs, inputs[:, 0], "SimpleCell", 2)
    parting_of_training("gradients", "these", spec)


def test_layers_and_models_have_the_panel_under_keys_of_their_own_page(pool):
    at = AppTest.from_function(other_pages, default_timeout=120)
    ran(at)
    assert {"sequence_parting_run", "gradients_parting_run"} <= keys(at)
    at.button_group(key="sequence_parting_paths").set_value([Path.PADDED])
    ran(at)
    pressed(at, "sequence_parting_run")
    assert "They part at forward, final carry" in says(at)
    assert "keys" not in [re.sub("<[^>]+>", "", cell) for cell in re.findall("<th[^>]*>.*?</th>", tables(at))]
    pressed(at, "gradients_parting_run")
    heads = [re.sub("<[^>]+>", "", cell) for cell in re.findall("<th[^>]*>.*?</th>", tables(at))]
    assert {"keys", "mode", "state types", "loss", "gradients", "update"} <= set(heads)


def tables(at: AppTest) -> str:
    return " ".join(e.proto.body for e in at.get("html") if "<table" in e.proto.body)


def test_a_job_that_is_called_off_while_it_is_waited_for_is_let_go():
    from pages.widgets.parting_panel import _advance, _Hunt

    class CalledOff:
        result = None

        def wait(self, seconds: float) -> bool:
            hunt.ticket = None  # another run of this session: its button was pressed
            return True

    hunt = _Hunt(token=None, of={}, waiting=[], all=1)
    hunt.ticket = CalledOff()
    _advance(hunt, 0.1)
    assert hunt.ticket is None
    assert not hunt.stopped
