"""An address is the state of a page: reading it gives back every value, and so the same numbers and the same plots.

And whatever else stands in an address gives a sentence and the defaults, on every page, never an exception.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs, urlencode

import jax
import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from core.base.limits import LIMITS
from core.catalogue import fields as catalogue_fields
from core.challenges import fields as challenge_fields
from core.doctor import link as doctor_link
from core.inputs import cell_fields, gradient_fields, scan_fields, sequence_breaks, sequence_fields, sequence_follow
from core.inputs.break_it import BREAK_IT
from core.inputs.cell_inputs import CellInputs
from core.inputs.cell_page import look_at as look_at_cell
from core.inputs.fields import FieldTable, InputField, Kind, Read, Value
from core.inputs.generate import GENERATORS
from core.inputs.gradient_inputs import GradientInputs
from core.inputs.gradient_page import look_at as look_at_gradients
from core.inputs.scan_check import evaluate
from core.inputs.sequence_inputs import SequenceInputs
from core.inputs.sequence_page import look_at as look_at_sequence
from core.lessons import fields as lesson_fields
from core.plots.cell import cell_payload
from core.plots.gradient_bars import gradient_bars
from core.plots.gradient_curves import memory_curves
from core.plots.gradient_loss import loss_curve
from core.plots.scan_view import player_data
from core.plots.sequence_view import Chosen, sequence_view
from core.plots.trajectory import trajectory
from core.steps.library import STEPS

type Values = dict[str, Value]


@dataclasses.dataclass(frozen=True)
class Page:
    """A page as `PageState` drives it: its table for some values, that for a link, what follows an edit."""

    table: Callable[[Mapping[str, object]], FieldTable]
    link_table: Callable[[Mapping[str, str]], FieldTable]
    follow: Callable[[Mapping[str, Value], Mapping[str, Value]], Values]
    name: str

    def opened(self, params: Mapping[str, str]) -> tuple[Values, Read]:
        """What the page makes of an address, as `PageState` does."""
        read = self.link_table(params).from_link(params)
        return self.follow(read.values, {}), read

    def written(self, values: Values) -> str:
        """The address's query of a state."""
        link = self.table(values).to_link(values)
        if link.problem:  # said on the page; then the address carries nothing
            assert not link.params
            reject()
        return urlencode(link.params)


def plain(table: FieldTable, name: str) -> Page:
    return Page(lambda _: table, lambda _: table, lambda before, edits: table.complete({**before, **edits}), name)


SCAN = Page(scan_fields.scan_fields, scan_fields.scan_link_fields, scan_fields.follow, "")
SEQUENCE = Page(
    sequence_fields.sequence_fields, sequence_fields.sequence_link_fields, sequence_follow.follow, "sequence"
)
LSTM, GRADIENTS = plain(cell_fields.FIELDS, "lstm"), plain(gradient_fields.FIELDS, "gradients")
DOCTOR, CATALOGUE = plain(doctor_link.FIELDS, "doctor"), plain(catalogue_fields.FIELDS, "catalogue")
CATALOGUE = dataclasses.replace(CATALOGUE, link_table=catalogue_fields.link_fields)
LESSONS, CHALLENGES = plain(lesson_fields.FIELDS, "lessons"), plain(challenge_fields.FIELDS, "challenges")
PAGES = (SCAN, LSTM, SEQUENCE, GRADIENTS, DOCTOR, CATALOGUE, LESSONS, CHALLENGES)


def parsed(query: str) -> dict[str, str]:
    """An address's query as Streamlit hands it over: the last of each name."""
    return {name: texts[-1] for name, texts in parse_qs(query, keep_blank_values=True).items()}


# --- states that a page can be in -----------------------------------------------------------------------------------

#: What a browser can send: no half characters.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
NUMBERS = st.sampled_from(["1, 2, 3", "0.5 nan inf", "1,2\n3,4", "[[1., 2.], [3., 4.]]", "", "1e-7", "zeros(3)", "５"])


def value_of(field: InputField) -> st.SearchStrategy[Value]:
    """Any value that the field's control can give; sizes below 0 are answered by the page, and no link has them."""
    low = field.low if field.least is None else field.least
    match field.kind:
        case Kind.CHOICE:
            return st.sampled_from(field.options)
        case Kind.FLAG:
            return st.booleans()
        case Kind.WHOLE:
            small = st.integers(int(max(low or 0, -3)), int(min(9, field.high or 9)))
            return small | st.integers(
                None if low is None else int(low), None if field.high is None else int(field.high)
            )
        case Kind.NUMBER:
            steps = st.integers(0, 60).map(lambda n: (low or 0.0) + n * 0.1).filter(lambda x: x <= (field.high or 1))
            return steps | st.floats(low, field.high, allow_nan=False, allow_infinity=False)
        case Kind.TEXT:
            return (NUMBERS | TEXTS).filter(lambda text: len(text) <= field.max_chars)


@st.composite
def states(draw: st.DrawFn, page: Page, start: Values) -> Values:
    """The start, after up to three edits by hand of up to three fields each."""
    values = page.follow(start, {})
    for _ in range(draw(st.integers(0, 3))):
        fields = page.table(values).fields
        chosen = draw(st.lists(st.sampled_from(fields), min_size=1, max_size=3, unique_by=lambda field: field.name))
        values = page.follow(values, {field.name: draw(value_of(field)) for field in chosen})
    return values


def back(page: Page, values: Values) -> Values:
    """The values after a walk through the address, which must be the same."""
    query = page.written(values)
    got, read = page.opened(parsed(query))
    assert read.refused == (), read.refused
    assert got == values
    assert page.written(got) == query
    return got


@given(st.sampled_from(sorted(STEPS)), st.data())
def test_the_scan_pages_address_is_its_state(step: str, data: st.DataObject):
    back(SCAN, data.draw(states(SCAN, scan_fields.opening(step))))


@pytest.mark.parametrize(
    "page", [LSTM, SEQUENCE, GRADIENTS, CATALOGUE, LESSONS, CHALLENGES], ids=lambda page: page.name
)
@given(data=st.data())
def test_a_pages_address_is_its_state(page: Page, data: st.DataObject):
    back(page, data.draw(states(page, page.table({}).defaults())))


@given(
    mode=st.sampled_from([doctor_link.SCRIPT, doctor_link.STEP]),
    code=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=400).filter(lambda t: t.strip()),
    init=TEXTS,
    xs=TEXTS,
)
def test_the_doctors_address_is_what_is_checked(mode: str, code: str, init: str, xs: str):
    step = mode == doctor_link.STEP
    defaults = doctor_link.FIELDS.defaults()
    own = {"mode": mode, **({"step": code, "init": init, "xs": xs} if step else {"text": code})}
    back(DOCTOR, {**defaults, **own})
    # What belongs to the other mode is not checked, and does not travel.
    other = {"text": "import jax"} if step else {"step": "def other(): ...", "init": "3"}
    assert DOCTOR.written({**defaults, **own, **other}) == DOCTOR.written({**defaults, **own})


# --- the same numbers, the same plots -------------------------------------------------------------------------------


def same(one: Any, other: Any) -> bool:
    """Whether two results hold the same numbers to the last bit (NaN is NaN), the same words and the same structure."""
    if isinstance(one, jax.Array | np.ndarray | np.generic):
        a, b = np.asarray(one), np.asarray(other)
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(one, Mapping):
        return isinstance(other, Mapping) and list(one) == list(other) and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return isinstance(other, float) and (one == other or (math.isnan(one) and math.isnan(other)))
    return bool(one == other)


def test_same_tells_what_differs():
    assert same({"a": [np.array([1.0, np.nan]), math.nan]}, {"a": [np.array([1.0, np.nan]), math.nan]})
    assert not same(np.zeros(2, np.float32), np.zeros(2, np.float64))
    assert not same({"a": (1.0, 2.0)}, {"a": (1.0, 2.5)})
    assert not same(np.array([0.0]), np.array([-0.0]))


def scan_shown(values: Values) -> list[Any]:
    """All numbers and plots of the Scan page."""
    checked = evaluate(values)
    codes = [] if checked.report is None else [v.message for v in checked.report.violations]
    out: list[Any] = [codes, checked.built.problems, player_data(checked, chart="c") if checked.built.call else None]
    result = checked.result
    if result is not None:
        plot = trajectory(result.carries, checked.step.leaves, reverse=result.reverse)
        out += [[s.values for s in result.carries], jax.tree.leaves(result.ys), plot.figure, plot.table]
    return out


def cell_shown(values: Values) -> list[Any]:
    """All numbers and the drawing of the LSTM page."""
    look = look_at_cell(CellInputs.of(values))
    codes = [] if look.report is None else [v.message for v in look.report.violations]
    drawn = cell_payload(look.inputs.cell, look.step, look.weights, given=look.given)
    return [
        codes,
        [p.text for p in look.problems],
        look.program,
        drawn,
        None if look.step is None else look.step.output,
    ]


def sequence_shown(values: Values) -> list[Any]:
    """All numbers and the plot of the Sequence page."""
    inputs = SequenceInputs.of(values)
    look = look_at_sequence(inputs.run)
    codes = [] if look.report is None else [v.message for v in look.report.violations]
    out: list[Any] = [codes, [p.text for p in look.problems], look.program]
    if look.result is not None:
        chosen = Chosen(inputs.example, inputs.t, inputs.unit).within(look.result)
        view = sequence_view(look.result, chosen, heatmap=inputs.view == sequence_fields.HEATMAP)
        out += [[d.outputs for d in look.result.directions], view.figure, view.table]
    return out


def gradients_shown(values: Values) -> list[Any]:
    """All numbers and plots of the Gradients page."""
    look = look_at_gradients(GradientInputs.of_values(values))
    out: list[Any] = [[p.text for p in look.problems]]
    if look.cells is not None:
        row = int(values["row"])
        s = (
            row if 0 < row <= look.cells.length else look.cells.length
        )  # as the page does: a shorter sequence has no such row
        out += [memory_curves(look.cells.maps, s).figure]
    if look.scan is not None:
        picture = gradient_bars(look.scan.gradient)
        out += [[leaf.values for leaf in look.scan.gradient.leaves], None if picture is None else picture.figure]
    if look.training is not None:
        out += [look.training.losses, loss_curve(look.training.losses, drops=look.training.spec.drops).figure]
    return out


def proved(page: Page, values: Values, shown: Callable[[Values], list[Any]]) -> None:
    """The page opened by its own address shows what was shown before."""
    assert same(shown(back(page, values)), shown(values))


@pytest.mark.parametrize("step", sorted(STEPS))
def test_a_presets_address_shows_the_same_numbers_and_plots(step: str):
    values = scan_fields.opening(step)
    proved(SCAN, values, scan_shown)
    proved(SCAN, scan_fields.follow(values, {"reverse": True, "seed": 7, "unroll": "2"}), scan_shown)


@pytest.mark.parametrize("mistake", BREAK_IT, ids=lambda mistake: mistake.id)
def test_a_broken_scans_address_shows_the_same(mistake: Any):
    values = scan_fields.follow(scan_fields.opening(str(mistake.values["step"])), mistake.values)
    proved(SCAN, values, scan_shown)
    assert len(f"/?{SCAN.written(values)}") <= 120


@settings(max_examples=30)
@given(data=st.data())
def test_a_generated_scans_address_shows_the_same(data: st.DataObject):
    step = data.draw(st.sampled_from(["running_sum", "running_variance", "exponential_average", "moving_window"]))
    edits = {
        "source": "generate",
        "generator": data.draw(st.sampled_from([g.id for g in GENERATORS])),
        "length": data.draw(st.sampled_from([0, 1, 5, 8])),
        "features": data.draw(st.sampled_from([0, 2])),
        "seed": data.draw(st.integers(0, 2**31 - 1)),
        "reverse": data.draw(st.booleans()),
    }
    proved(SCAN, scan_fields.follow(scan_fields.opening(step), edits), scan_shown)


@pytest.mark.parametrize("switch", cell_fields.SWITCHES, ids=lambda switch: switch.id)
def test_a_broken_cells_address_shows_the_same(switch: cell_fields.Switch):
    values = {**cell_fields.FIELDS.defaults(), switch.field: switch.value}
    proved(LSTM, values, cell_shown)
    assert len(f"/lstm?{LSTM.written(values)}") <= 120


@pytest.mark.parametrize("switch", sequence_breaks.SWITCHES, ids=lambda switch: switch.id)
def test_a_broken_layers_address_shows_the_same(switch: sequence_breaks.Switch):
    opening = sequence_fields.FIELDS.defaults()
    edits = sequence_breaks.edit_of(SequenceInputs.of(opening), switch)
    values = sequence_follow.follow({**opening, **edits}, {})
    proved(SEQUENCE, values, sequence_shown)
    assert len(f"/sequence?{SEQUENCE.written(values)}") <= 120


@pytest.mark.parametrize(
    "edits",
    [
        *({**trick.values, "length": 12, "hidden_features": 4} for trick in gradient_fields.TRICKS),
        {"of": "preset"},
        {"of": "preset", "preset": "norm_unguarded"},
        {"of": "training", "updates": 3},
        {"of": "training", "rngs": "none given"},
    ],
    ids=str,
)
def test_a_gradients_address_shows_the_same(edits: Mapping[str, Value]):
    values = {**gradient_fields.FIELDS.defaults(), **edits}
    proved(GRADIENTS, values, gradients_shown)
    assert len(f"/gradients?{GRADIENTS.written(values)}") <= 120


#: What stays small in a drawn state, so that a page is worked out in no time.
SMALL = ("length", "hidden_features", "in_features", "batch", "train_length", "updates", "compare_hidden")


def small(page: Page, values: Values) -> Values:
    """The state with sizes of at most 6, whatever below."""
    sizes = {name: min(int(values[name]), 6) for name in SMALL if name in values}
    return page.follow(values, sizes)


@settings(max_examples=15)
@pytest.mark.parametrize(
    ("page", "shown"),
    [(LSTM, cell_shown), (SEQUENCE, sequence_shown), (GRADIENTS, gradients_shown)],
    ids=["lstm", "sequence", "gradients"],
)
@given(data=st.data())
def test_any_states_address_shows_the_same(page: Page, shown: Callable[[Values], list[Any]], data: st.DataObject):
    proved(page, small(page, data.draw(states(page, page.table({}).defaults()))), shown)


# --- short ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", sorted(STEPS))
def test_a_presets_address_can_be_read_from_a_projector(step: str):
    assert len(f"/?{SCAN.written(scan_fields.opening(step))}") <= 40


@given(st.floats(-4, 6), st.integers(0, 60))
def test_a_number_is_written_as_short_as_it_was_set(number: float, tenths: int):
    field = gradient_fields.FIELDS.field("forget_bias")
    kept = field.check(number)
    assert field.parse(field.format(kept)) == kept
    assert abs(kept - number) <= 1e-11 * abs(number)
    # A slider adds its steps up in binary.
    assert len(field.format(field.check(sum([0.1] * tenths)))) <= 3


def test_links_that_were_written_before_are_still_read():
    read = gradient_fields.FIELDS.from_link({"v": "1", "fb": "-3.0", "rs": "0.30000000000000004"})
    assert read.refused == ()
    assert (read.values["forget_bias"], read.values["recurrent_scale"]) == (-3.0, 0.3)


# --- whatever else stands in an address -----------------------------------------------------------------------------

HOSTILE = st.sampled_from(
    [
        "",
        " ",
        "\x00",
        "1\x00",
        "\ud800",
        "\u202e\u2066abc",
        "%2530",
        "%00",
        "9" * 10_000,
        "a" * 10_000,
        "-1",
        "1e999",
        "nan",
        "inf",
        "٣",
        "１",
        "1_0",
        "0x10",
        "<script>alert(1)</script>",
        "{0.__class__}",
        "../../etc/passwd",
        "[" * 3_000,
        "zeros(99999999999)",
        "'; DROP TABLE",
        "eJztwTEBAAAAwqD1T20ND6AAAAAAAAAAAAAA",
    ]
)
ANYTHING = HOSTILE | st.text(max_size=40) | st.integers().map(str) | st.floats().map(str)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name or "scan")
@given(data=st.data())
def test_anything_in_an_address_gives_a_sentence_and_the_defaults(page: Page, data: st.DataObject):
    fields = {field.url: field for field in page.table({}).fields}
    names = st.sampled_from([*fields, "v", "s", "e", "init", "i.mean", "p.rate"]) | TEXTS | HOSTILE
    params = data.draw(st.dictionaries(names, ANYTHING, max_size=6))
    values, read = page.opened(params)
    table = page.table(values)
    assert set(values) == {field.name for field in table.fields}
    assert table.complete(values) == values
    for sentence in read.refused:
        assert len(sentence) < 400
        assert sentence.isprintable()
    # What was refused is not half there: a field that is named in a sentence about it has its default.
    for url, field in fields.items():
        if url in params and any(sentence.startswith(f"{field.label}: the link says") for sentence in read.refused):
            assert read.values.get(field.name, field.default) == page.link_table(params).field(field.name).default
    # And the address that the page then writes is a good one, or too long and said to be.
    link = table.to_link(values)
    again, refused = page.opened(link.params)
    assert link.problem or refused.refused == ()
    assert sum(len(text) for text in link.params.values()) <= LIMITS["url_text"].value
    urlencode(link.params)
    assert set(again) >= set(page.table({}).defaults())
