import json
import math
import re

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from core.base.avals import Aval, LeafType
from core.plots.cell import Faults, cell_payload, example_index, number_rows
from core.plots.cell_equations import bracketed, brief, columns, equations, exact, fields_of, signed, spelled
from core.plots.cell_svg import PICTURES
from core.plots.cell_tables import agreement, check_rows, shape_rows
from core.runners.cell_formulas import KINDS, gate_weights
from core.runners.cells import run_step

ALL = tuple(KINDS)


def stepped(name="LSTMCell", features=3, hidden=4, batch=2, x=None, carry=None):
    cell = KINDS[name].cell(features, hidden, rngs=nnx.Rngs(0))
    if carry is None:
        carry = cell.initialize_carry((batch, features), rngs=nnx.Rngs(1), carry_init=nnx.initializers.normal(1.0))
    if x is None:
        x = jnp.asarray(np.random.default_rng(0).standard_normal((batch, features)), jnp.float32)
    step = run_step(cell, carry, x)
    return step, gate_weights(step.kind, cell)


# --- equations --------------------------------------------------------------------------------------------------------


def value_of(text):
    """An expression of the page as Python reads it."""
    text = text.replace("−", "-").replace("·", "*").replace("∞", "inf").replace("NaN", "nan")
    text = re.sub(r"(\d)e-(\d)", r"\1e-\2", text)
    names = {"σ": lambda z: 1 / (1 + math.exp(-z)), "tanh": math.tanh, "inf": math.inf, "nan": math.nan}
    return eval(text, {"__builtins__": {}}, names)


def parts_of(numbers):
    return [part.strip() for part in numbers.split("=") if part.strip()]


def filled(step, example=(0,)):
    texts = columns(step, example)
    for unit in range(step.output.shape[-1]):
        for equation in equations(step.kind):
            yield unit, equation, re.sub(r"\{([^}]+)\}", lambda m, u=unit: texts[m[1]][u], equation.numbers)


@pytest.mark.parametrize("name", ALL)
def test_every_equation_recomputes_to_the_value_shown(name):
    step, _ = stepped(name)
    for _, equation, numbers in filled(step, (1,)):
        values = [value_of(part) for part in parts_of(numbers)]
        assert len(values) >= 3, equation
        for value in values:
            assert value == pytest.approx(values[-1], rel=1e-5, abs=1e-6), numbers


@pytest.mark.parametrize("name", ALL)
def test_the_last_number_of_an_equation_is_the_very_value(name):
    step, _ = stepped(name)
    gates = {gate.name: gate.value for gate in step.gates}
    after = {f"{part}′": values for part, values in zip(step.kind.parts, step.after, strict=True)}
    for unit, equation, numbers in filled(step, (1,)):
        shown = np.float32(parts_of(numbers)[-1].replace("−", "-"))
        assert shown == {**gates, **after}[equation.slot][1, unit]


@pytest.mark.parametrize("name", ALL)
def test_every_field_of_a_template_has_a_text_for_each_unit(name):
    step, _ = stepped(name)
    texts = columns(step, (0,))
    wanted = {field for equation in equations(step.kind) for field in fields_of(equation.numbers)}
    assert set(texts) == wanted
    assert {len(column) for column in texts.values()} == {4}


def test_a_carry_of_bfloat16_is_written_as_it_is():
    c = jnp.full((2, 4), 1 / 3, jnp.bfloat16)
    step, _ = stepped(carry=(c, c))
    assert set(columns(step, (0,))["(c)"]) == {"0.33398438"}


@pytest.mark.parametrize("name", ALL)
def test_products_are_written_out_and_add_up(name):
    step, weights = stepped(name)
    lines = spelled(step, weights, (1,))
    assert len(lines) == 2 * len(step.gates)
    for line, (gate, share) in zip(lines, [(g, s) for g in step.gates for s in ("from_x", "from_h")], strict=True):
        for unit, text in enumerate(line["texts"]):
            assert value_of(text) == pytest.approx(getattr(gate, share)[1, unit], rel=1e-5, abs=1e-6)


def test_products_with_too_many_terms_are_not_written_out():
    step, weights = stepped(features=9)
    assert spelled(step, weights, (0,)) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (-0.5, "−0.5"),
        (np.float32(0.1), "0.1"),
        (np.float32(1 / 3), "0.33333334"),
        (1e-7, "1e−7"),
        (-2.5e9, "−2.5e+9"),
        (np.nan, "NaN"),
        (np.inf, "∞"),
        (-np.inf, "−∞"),
    ],
)
def test_numbers_are_written_exactly(value, text):
    assert exact(value) == text


def test_a_number_reads_back_to_the_same_bits():
    values = np.random.default_rng(0).standard_normal(500).astype(np.float32) * np.float32(10) ** np.arange(
        -25, 25
    ).repeat(10)
    assert all(np.float32(exact(v).replace("−", "-")) == v for v in values.astype(np.float32))


def test_factors_and_terms_keep_their_sign():
    assert bracketed(-2) == "(−2)"
    assert bracketed(2) == "2"
    assert signed(-2) == "− 2"
    assert signed(2) == "+ 2"
    assert signed(-0.0) == "− 0"


def test_a_brief_number_has_three_digits():
    assert [brief(v) for v in (0.123456, -12.345, 1e-9, np.nan)] == ["0.123", "−12.3", "1e−9", "NaN"]


# --- pictures ---------------------------------------------------------------------------------------------------------

CASES = [(name, size) for name in ALL for size in ("wide", "narrow")]


def inside(point, picture):
    return 0 <= point[0] <= picture.width and 0 <= point[1] <= picture.height


@pytest.mark.parametrize(("name", "size"), CASES)
def test_everything_stands_inside_the_picture(name, size):
    picture = PICTURES[name][size]
    for box in picture.boxes:
        assert inside((box.x, box.y), picture)
        assert inside((box.x + box.width, box.y + box.height), picture)
    for wire in picture.wires:
        assert all(inside(point, picture) for point in wire.points)
    assert all(inside((o.x, o.y), picture) for o in picture.operators)


@pytest.mark.parametrize(("name", "size"), CASES)
def test_no_two_boxes_overlap(name, size):
    boxes = PICTURES[name][size].boxes
    for i, a in enumerate(boxes):
        for b in boxes[i + 1 :]:
            apart = a.x + a.width <= b.x or b.x + b.width <= a.x or a.y + a.height <= b.y or b.y + b.height <= a.y
            assert apart, (a.slot, b.slot)


@pytest.mark.parametrize(("name", "size"), CASES)
def test_wires_run_straight_and_through_no_box(name, size):
    picture = PICTURES[name][size]
    for wire in picture.wires:
        for (x1, y1), (x2, y2) in zip(wire.points, wire.points[1:], strict=False):
            assert x1 == x2 or y1 == y2
            for box in picture.boxes:
                crosses = (
                    max(x1, x2) > box.x + 1
                    and min(x1, x2) < box.x + box.width - 1
                    and max(y1, y2) > box.y + 1
                    and min(y1, y2) < box.y + box.height - 1
                )
                assert not crosses, (wire, box.slot)


@pytest.mark.parametrize(("name", "size"), CASES)
def test_every_arrow_points_at_a_box_or_an_operator(name, size):
    picture = PICTURES[name][size]

    def touches(point):
        x, y = point
        at_box = any(b.x - 1 <= x <= b.x + b.width + 1 and b.y - 1 <= y <= b.y + b.height + 1 for b in picture.boxes)
        at_operator = any(math.hypot(x - o.x, y - o.y) <= 24 for o in picture.operators)
        return at_box or at_operator

    assert all(touches(wire.points[-1]) for wire in picture.wires if not wire.open)


@pytest.mark.parametrize(("name", "size"), CASES)
def test_the_picture_has_every_part_once(name, size):
    kind = KINDS[name]
    slots = sorted(box.slot for box in PICTURES[name][size].boxes)
    gates = [gate.name for gate in kind.gates if gate.name != "h′"]
    assert slots == sorted([*kind.parts, *(f"{part}′" for part in kind.parts), *gates, "x", "y"])


@pytest.mark.parametrize("size", ["wide", "narrow"])
def test_c_runs_above_h(size):
    y = {box.slot: box.y for box in PICTURES["LSTMCell"][size].boxes}
    assert y["c"] < y["h"]
    assert y["c′"] < y["h′"]


# --- payload ----------------------------------------------------------------------------------------------------------


def test_the_payload_is_json_also_with_numbers_that_are_not_finite():
    step, weights = stepped(x=jnp.asarray([[1.0, jnp.nan, 3.0], [jnp.inf, 0.0, 1.0]]))
    text = json.dumps(cell_payload("LSTMCell", step, weights), allow_nan=False)
    again = json.loads(text)
    assert again["series"]["x"]["values"] == [1.0, None, 3.0]
    assert again["series"]["x"]["texts"][1] == "NaN"


def test_the_payload_of_the_widest_cell_is_bounded():
    step, weights = stepped(features=128, hidden=256, batch=2)
    assert len(json.dumps(cell_payload("LSTMCell", step, weights))) < 250_000


def test_bars_are_the_values_of_the_chosen_example():
    step, weights = stepped()
    payload = cell_payload("LSTMCell", step, weights, example=1, unit=2)
    for gate in step.gates:
        np.testing.assert_allclose(payload["series"][gate.name]["values"], gate.value[1], rtol=1e-4)
        assert (payload["series"][gate.name]["low"], payload["series"][gate.name]["high"]) == (
            (-1, 1) if gate.name == "g" else (0, 1)
        )
    np.testing.assert_allclose(payload["series"]["c′"]["values"], step.after[0][1], rtol=1e-4)
    np.testing.assert_allclose(payload["series"]["x"]["values"], step.inputs[1], rtol=1e-4)
    assert payload["unit"] == 2
    assert payload["example"] == "example 1"


def test_both_carries_share_a_scale_that_holds_them():
    step, _ = stepped(carry=(jnp.full((2, 4), 50.0), jnp.zeros((2, 4))))
    series = cell_payload("LSTMCell", step, None)["series"]
    assert series["c"]["high"] == series["c′"]["high"] == 50.0
    assert series["h"]["high"] == 1.0


@pytest.mark.parametrize(("asked", "got"), [(-1, 0), (0, 0), (3, 3), (99, 3)])
def test_a_unit_out_of_range_is_brought_back(asked, got):
    step, _ = stepped()
    assert cell_payload("LSTMCell", step, None, unit=asked)["unit"] == got


def test_an_output_with_a_time_axis_has_one_row_for_each_place():
    step, _ = stepped(carry=(jnp.zeros((5, 2, 4)),) * 2)
    assert example_index(step, 3) == (1, 1)
    assert example_index(step, 99) == (4, 1)
    payload = cell_payload("LSTMCell", step, None, example=3)
    assert payload["example"] == "row [1, 1] of the output (5, 2, 4)"


def test_without_a_step_there_are_letters_types_and_the_broken_place():
    given = {"c": LeafType("carry[0]", Aval((2, 5), "float32"))}
    payload = cell_payload("LSTMCell", None, None, faults=Faults({"c": "L304"}, {"x": "L303"}), given=given)
    assert payload["units"] == 0
    assert payload["types"] == {"c": "float32[2,5]"}
    assert (payload["broken"], payload["flagged"]) == ({"c": "L304"}, {"x": "L303"})
    assert [e["slot"] for e in payload["equations"]] == ["i", "f", "g", "o", "c′", "h′"]


@pytest.mark.parametrize("name", ALL)
def test_every_box_of_the_picture_has_its_numbers(name):
    step, weights = stepped(name)
    payload = cell_payload(name, step, weights)
    assert {box.slot for box in PICTURES[name]["wide"].boxes} == set(payload["series"])
    slots = {o.slot for size in ("wide", "narrow") for o in PICTURES[name][size].operators if o.slot}
    assert slots <= set(payload["notes"])


@pytest.mark.parametrize("name", ALL)
def test_the_table_has_a_row_for_each_unit(name):
    step, _ = stepped(name)
    rows = number_rows(step, 1)
    assert rows["unit"] == [0, 1, 2, 3]
    assert {len(column) for column in rows.values()} == {4}
    assert np.float32(rows["h′"][2].replace("−", "-")) == step.output[1, 2]


# --- tables -----------------------------------------------------------------------------------------------------------


def test_shapes_have_their_axes_by_letter():
    step, _ = stepped()
    rows = {row.path: (row.type, row.axes) for row in shape_rows(step)}
    assert rows["carry[0]"] == ("float32[2,4]", "(B=2, H=4)")
    assert rows["x"] == ("float32[2,3]", "(B=2, F=3)")
    assert rows["new_carry[1]"] == ("float32[2,4]", "(B=2, H=4)")
    assert rows["output"] == ("float32[2,4]", "(B=2, H=4)")
    assert rows["cell.ii.kernel"] == ("float32[3,4]", "(F=3, H=4)")
    assert rows["cell.if_.kernel"] == ("float32[3,4]", "(F=3, H=4)")
    assert rows["cell.hf.kernel"] == ("float32[4,4]", "(H=4, H=4)")
    assert rows["cell.ho.bias"] == ("float32[4]", "(H=4)")
    assert len(rows) == 2 + 1 + 2 + 1 + 12


@pytest.mark.parametrize(
    ("name", "kernel", "bias"),
    [
        ("OptimizedLSTMCell", ("float32[3,16]", "(F=3, 4·H=16)"), ("cell.dense_h.bias", "(4·H=16)")),
        ("GRUCell", ("float32[3,12]", "(F=3, 3·H=12)"), ("cell.dense_i.bias", "(3·H=12)")),
        ("SimpleCell", ("float32[3,4]", "(F=3, H=4)"), ("cell.dense_i.bias", "(H=4)")),
    ],
)
def test_kernels_side_by_side_say_so(name, kernel, bias):
    step, _ = stepped(name)
    rows = {row.path: (row.type, row.axes) for row in shape_rows(step)}
    assert rows["cell.dense_i.kernel"] == kernel
    assert rows[bias[0]][1] == bias[1]


def test_one_array_and_a_time_axis_show_in_the_table():
    step, _ = stepped(carry=jnp.ones((2, 4)))
    assert [(r.path, r.axes) for r in shape_rows(step) if r.word == "carry"] == [("carry", "(B=2, H=4)")]
    step, _ = stepped(carry=(jnp.zeros((5, 2, 4)),) * 2)
    assert [r.axes for r in shape_rows(step) if r.word == "output"] == ["(T=5, B=2, H=4)"]


def test_checks_say_difference_and_verdict():
    step, _ = stepped()
    rows = check_rows(step)
    assert [row.agrees for row in rows] == [True, True, True]
    assert [float(row.result.replace("−", "-")) for row in rows] == pytest.approx(
        [d.largest for d in (step.numpy, step.eager, step.vmap)], rel=1e-2
    )
    assert agreement(step) == "equals the NumPy formula"
    step, _ = stepped(carry=(jnp.zeros((1, 4)),) * 2)
    assert check_rows(step)[2].agrees is None
