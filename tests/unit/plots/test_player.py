"""The scan player's payload: honest numbers, bounded size, a loop that really is the scan, and what the browser reads."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.plots import player
from core.plots.player import FlowMark, Follow, LeafSeries, player_payload
from core.plots.player_code import code_roles, loop_lines
from core.plots.player_values import chip_number, leaf_texts, short_number

WIDGET = Path(__file__).parents[3] / "pages" / "widgets" / "player"


def leaf(path: str, values: object, type: str = "float32[]", axes: str = "") -> LeafSeries:
    return LeafSeries(path, type, axes, np.asarray(values))


def running_sum(**more: object) -> dict:
    return player_payload(
        length=3,
        carries=[leaf("carry", np.float32([0, 1, 3, 6]))],
        xs=[leaf("xs[t]", np.float32([1, 2, 3]))],
        ys=[leaf("ys[t]", np.float32([1, 3, 6]))],
        **more,
    )


# ---- numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32(-0.6931472), "−0.6931"),
        (np.float32(0.1), "0.1"),
        (np.float32(10946), "10946"),
        (np.int32(-10946), "−10946"),
        (np.uint32(4_294_967_295), "4.295e9"),
        (np.float32(1.2345e-5), "1.234e−5"),
        (np.float32(1e30), "1e30"),
        (np.float32("nan"), "NaN"),
        (np.float32("inf"), "inf"),
        (np.float32("-inf"), "−inf"),
        (np.float32(-0.0), "−0"),
        (np.bool_(True), "True"),
        (np.int8(-128), "−128"),
        (np.float16(0.3333), "0.3333"),
        (ml_dtypes.bfloat16(0.25), "0.25"),
        (np.complex64(1 - 2j), "1−2j"),
    ],
)
def test_short_number(value: object, text: str) -> None:
    assert short_number(value) == text


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_short_number_is_within_four_digits_of_the_value(value: float) -> None:
    shown = float(short_number(np.float32(value)).replace("−", "-"))
    assert abs(shown - value) <= abs(value) * 5.1e-4


@given(st.floats(width=32))
def test_a_chip_number_fits_its_chip(value: float) -> None:
    assert len(chip_number(np.float32(value))) <= 8


def test_values_are_nested_like_the_array_and_cut_after_the_elements_asked_for() -> None:
    values = np.arange(16.0).reshape(2, 2, 4)
    assert leaf_texts(values, 4).values(4) == ["[[0, 1, 2, 3], …]", "[[8, 9, 10, 11], …]"]
    assert leaf_texts(values, 4).values(2) == ["[[0, 1, …], …]", "[[8, 9, …], …]"]
    assert leaf_texts(np.arange(3), 4).values(4) == ["0", "1", "2"]
    assert leaf_texts(np.zeros((2, 3)), 4).values(4) == ["[0, 0, 0]"] * 2
    assert leaf_texts(np.zeros((2, 0)), 4).values(4) == ["[]", "[]"]
    assert leaf_texts(np.zeros((0, 2)), 4).values(4) == []


# ---- the payload


def test_running_sum() -> None:
    data = running_sum()
    assert data["T"] == 3
    assert data["order"] == [0, 1, 2]
    assert (data["init_type"], data["xs_type"], data["ys_type"]) == ("float32[]", "float32[3]", "float32[3]")
    assert data["carry"] == [["0", "1", "3", "6"]]
    assert data["x"] == [["1", "2", "3"]]
    assert data["y"] == [["1", "3", "6"]]
    assert data["chips"]["carry"] == ["0", "1", "3", "6"]
    assert data["broken"] is None
    assert json.loads(json.dumps(data)) == data


def test_reverse_visits_from_the_end() -> None:
    assert running_sum(reverse=True)["order"] == [2, 1, 0]


def test_stacked_types_get_a_leading_axis() -> None:
    data = player_payload(
        length=5, carries=[leaf("carry", np.zeros(6))], xs=[leaf("xs[t]", np.zeros((5, 2)), "bool[2]")]
    )
    assert data["xs_type"] == "bool[5,2]"
    assert data["ys_type"] == ""


def test_wide_leaves_are_drawn_as_their_type_and_told_in_full_beside() -> None:
    wide = leaf("carry", np.full((4, 2, 4), 0.125), "float32[2,4]", "(B=2, F=4)")
    data = player_payload(length=3, carries=[wide])
    assert data["chips"]["carry"] is None
    assert data["carry"][0][0] == "[[0.125, 0.125, 0.125, 0.125], …]"
    assert data["leaves"]["carry"] == [{"path": "carry", "type": "float32[2,4]", "axes": "(B=2, F=4)"}]


def test_long_scalars_stay_numbers_in_their_chip() -> None:
    data = player_payload(length=1, carries=[leaf("carry", np.float32([-1.2345e-5, 1]))])
    assert data["chips"]["carry"] == ["−1.2e−5", "1"]


def test_a_leading_axis_that_does_not_fit_is_refused_by_its_path() -> None:
    with pytest.raises(ValueError, match=r"carry leaf carry\['m'\] must have a leading axis of 4"):
        player_payload(length=3, carries=[leaf("carry['m']", np.zeros(3))])


def test_marks_and_follow_reach_the_browser() -> None:
    mark = FlowMark("carry", "init float32[2] ≠ returned float32[3]", "S103")
    data = player_payload(
        length=0, init_type="float32[2]", xs_type="float32[4]", broken=mark, follow=[Follow("c", "index")]
    )
    assert data["broken"] == {"where": "carry", "label": "init float32[2] ≠ returned float32[3]", "code": "S103"}
    assert data["follow"] == [{"key": "c", "axis": "index"}]
    assert data["carry"] == []
    assert [line["phase"] for line in data["loop"]] == ["init", "for", "step", "append", "done"]
    assert running_sum(flagged=mark)["flagged"]["code"] == "S103"


@pytest.mark.parametrize("leaves", [1, 3, 6, 9])
@pytest.mark.parametrize("shape", [(), (4,), (64, 128)])
def test_the_payload_is_bounded(leaves: int, shape: tuple[int, ...]) -> None:
    steps = 512 if len(shape) < 2 else 32
    worst = -1.2345e-30
    series = [
        [leaf(f"{role}['{index}']", np.full((steps + extra, *shape), worst)) for index in range(leaves)]
        for role, extra in (("carry", 1), ("x", 0), ("y", 0))
    ]
    data = player_payload(length=steps, carries=series[0], xs=series[1], ys=series[2], step_code="# code\n" * 100)
    assert len(json.dumps(data)) < player.MAX_BYTES
    shown = len(data["carry"])
    assert 1 <= shown <= player.MAX_LEAVES
    assert data["hidden_leaves"]["carry"] == leaves - shown
    assert len(data["carry"][0]) == steps + 1


def test_few_leaves_keep_all_their_elements_at_full_length() -> None:
    vector = np.linspace(-3, 3, 513 * 4).reshape(513, 4)
    data = player_payload(
        length=512, carries=[leaf("carry", vector, "float32[4]")], xs=[leaf("xs[t]", vector[1:], "float32[4]")]
    )
    assert "…" not in data["carry"][0][0]


# ---- the code beside it

STEPS = {
    "array": (lambda c, x: (c * 0.5 + x, c - x), jnp.float32(1.0), jnp.arange(4.0)),
    "tree": (
        lambda c, x: ({"a": c["a"] + x["u"], "b": c["b"] * 2}, {"out": c["a"], "x": x["v"]}),
        {"a": jnp.float32(0.0), "b": jnp.int32(1)},
        {"u": jnp.arange(4.0), "v": jnp.ones((4, 2))},
    ),
    "none": (lambda c, x: (c * 2, None), jnp.float32(3.0), None),
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", ["array", "tree", "none"])
def test_the_loop_is_the_scan(kind: str, reverse: bool) -> None:
    step, init, xs = STEPS[kind]
    carry = "array" if kind == "none" else kind
    lines = loop_lines(carry=carry, xs=kind, ys=kind, length=4, reverse=reverse)
    scope = {"jax": jax, "jnp": jnp, "step": step, "init": init, "xs": xs}
    exec("\n".join(line.text for line in lines), scope)
    final, ys = jax.lax.scan(step, init, xs, length=4, reverse=reverse)
    assert jax.tree.structure(scope["ys"]) == jax.tree.structure(ys)
    for got, want in zip(jax.tree.leaves((scope["final"], scope["ys"])), jax.tree.leaves((final, ys)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_the_empty_loop_has_nothing_to_stack() -> None:
    lines = loop_lines(carry="array", xs="array", ys="array", length=0)
    scope = {"jnp": jnp, "step": None, "init": 2.0, "xs": jnp.zeros(0)}
    exec("\n".join(line.text for line in lines), scope)
    assert scope["final"] == 2.0


def test_the_loop_follows_the_trees() -> None:
    assert running_sum()["loop"][1] == {"text": "for x in xs:", "phase": "for"}
    tree = player_payload(length=1, carries=[leaf("carry['a']", np.zeros(2))], xs=[leaf("xs[t]['u']", np.zeros(1))])
    assert [line["phase"] for line in tree["loop"]] == ["init", "for", "for", "step", "append", "done"]


def test_roles_of_names() -> None:
    roles = code_roles("def step(c, x):\n    h, m = c\n    é = 1; new = h + x\n    return new, new\n")
    assert roles.names == {"c": "carry", "x": "x", "h": "carry", "m": "carry", "new": "carry"}
    assert roles.marks == ((3, 16, "y"),)


def test_roles_count_characters_not_bytes() -> None:
    assert code_roles("def step(c, x):\n    é = 'ü'; return c, c\n").marks == ((1, 23, "y"),)


@pytest.mark.parametrize("source", ["def step(:", "x = 1", "", "(" * 5000, "\0"])
def test_unreadable_code_has_no_roles(source: str) -> None:
    assert code_roles(source).names == {}


# ---- what the browser's side reads


def sources() -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(WIDGET.glob("*.js"))}


def test_the_browser_uses_each_text_and_no_other() -> None:
    code = "\n".join(sources().values())
    named = set(re.findall(r"\bdata\.text\.(\w+)", code))
    by_name = {"reset", "back", "forward", "play", "pause"}  # data.text[name]
    assert named | by_name == set(player.TEXT)


def test_the_browser_reads_only_what_the_payload_has() -> None:
    code = "\n".join(sources().values())
    read = set(re.findall(r"\bdata\.(\w+)", code)) - {"key"}
    assert read <= set(running_sum())
