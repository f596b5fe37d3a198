"""The file: it reads back as it was, and whatever is changed in it, or is another file, is refused with a reason."""

from __future__ import annotations

import io
import json
import pickle
import zipfile

import jsonschema
import numpy as np
import pytest

from core.base.limits import LIMITS
from core.regress.case import TooLargeError
from core.regress.compare import check
from core.regress.file import NAME, UnreadableError, from_bytes, to_bytes
from core.regress.record import record
from core.regress.schema import SCHEMA
from core.regress.state import page_state, values_of_link
from core.weights.architecture import Architecture
from core.weights.cell import weights_of_seed
from core.weights.container import read, write
from tests.unit.regress.support import changed, recorded


def refused(data):
    with pytest.raises(UnreadableError) as caught:
        from_bytes(data)
    return str(caught.value)


def test_a_file_reads_back_to_the_same():
    baseline, data = recorded()
    again = from_bytes(data)
    assert to_bytes(again) == data
    assert [case.values for case in again.cases] == [case.values for case in baseline.cases]


def test_what_the_file_says_is_json_by_the_published_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    _, data = recorded()
    document = json.loads(read(data, "baseline_bytes", "baseline_header").metadata[NAME])
    jsonschema.validate(document, SCHEMA)
    assert set(document["versions"]) >= {"carry-lab", "python", "jax", "jaxlib", "flax", "numpy", "platform"}
    assert set(document["tolerance"]) == {"cpu", "gpu", "tpu"}
    assert document["tolerance"]["cpu"]["float32"] == [1e-5, 1e-6]


def test_the_same_numbers_stand_in_it_once():
    _, data = recorded("cell=SimpleCell", "sequence")
    tensors = read(data, "baseline_bytes", "baseline_header").tensors
    distinct = {(a.dtype.name, a.shape, a.tobytes()) for a in tensors.values()}
    assert len(distinct) == len(tensors)


def test_half_size_floats_come_back_bit_for_bit():
    values = values_of_link("scan", "step=exponential_average&dt=bfloat16")
    baseline = record(page_state("scan"), values)
    verdict = check(from_bytes(to_bytes(baseline)))
    assert verdict.same
    assert all(one.same_bits for one in verdict.checks)
    assert any(one.dtype == "bfloat16" for one in verdict.checks)


def test_every_byte_that_is_flipped_is_noticed():
    _, data = recorded()
    rng = np.random.default_rng(0)
    places = {*rng.integers(0, len(data), 60).tolist(), 0, 7, 8, 9, len(data) - 1, len(data) // 2}
    for place in places:
        broken = bytearray(data)
        broken[place] ^= 1
        assert refused(bytes(broken))


def test_every_end_that_is_cut_off_is_noticed():
    _, data = recorded()
    for length in (0, 1, 7, 8, 100, len(data) // 2, len(data) - 1):
        assert refused(data[:length])
    assert refused(data + b"\0")


def test_another_number_in_a_leaf_is_noticed():
    _, data = recorded()
    tensors = {name: np.array(a) for name, a in read(data, "baseline_bytes", "baseline_header").tensors.items()}
    name = next(n for n, a in tensors.items() if a.dtype == np.float32 and a.size)
    tensors[name].flat[0] += 1
    assert "was changed after it was recorded" in refused(changed(data, lambda document: None, tensors=tensors))


def test_another_shape_or_dtype_of_a_leaf_is_noticed():
    _, data = recorded()
    held = read(data, "baseline_bytes", "baseline_header").tensors
    name = next(n for n, a in held.items() if a.dtype == np.float32 and a.size > 1)
    for other in (held[name].reshape(1, *held[name].shape), held[name].view(np.int32)):
        assert "was changed" in refused(changed(data, lambda document: None, tensors={**held, name: other}))


def test_a_leaf_that_is_missing_or_belongs_to_nothing_is_noticed():
    _, data = recorded()
    held = dict(read(data, "baseline_bytes", "baseline_header").tensors)
    more = {**held, "999": np.zeros(3, np.float32)}
    assert "belong to no leaf" in refused(changed(data, lambda document: None, tensors=more))
    held.pop("0")
    assert "not in it" in refused(changed(data, lambda document: None, tensors=held))


def widen(document):
    document["tolerance"]["cpu"]["float32"] = [0.1, 0.1]


def test_a_tolerance_that_was_widened_is_noticed():
    _, data = recorded()
    assert "was changed after it was recorded" in refused(changed(data, widen, sealed=False))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d.update(version=2), "format version 2, and version 1 is read here"),
        (lambda d: d.update(version=True), "format version True"),
        (lambda d: d.update(format="carry-lab-weights"), "a baseline is “carry-lab-baseline”"),
        (lambda d: d.pop("cases"), "'cases' is a required property"),
        (lambda d: d.update(extra=1), "extra"),
        (lambda d: d.update(page="doctor"), "page"),
        (lambda d: d["cases"][0]["stages"].update(dreams={}), "dreams"),
        (lambda d: d["tolerance"]["cpu"].update(float32=[9, 9]), "tolerance.cpu.float32"),
        (lambda d: d["values"].update(step="no_such_step"), "do not hold together: step"),
        (lambda d: d["values"].update(colour="red"), "colour"),
        (lambda d: d["values"].update(seed=True), "seed"),
        (lambda d: d["cases"][1].update(name="standard"), "twice"),
        (lambda d: d["cases"].pop(0), "no case “standard”"),
        (lambda d: d.update(weights="0"), "refused"),
    ],
)
def test_what_is_not_by_the_schema_or_no_state_of_a_page_is_refused(change, says):
    _, data = recorded()
    assert says in refused(changed(data, change))


def test_what_is_no_json_is_refused():
    _, data = recorded()
    held = dict(read(data, "baseline_bytes", "baseline_header").tensors)
    for text in ("", "{", "[" * 100, '{"a": NaN}', '{"a": 1, "a": 2}', "[]", "7", '"baseline"'):
        assert refused(write(held, {NAME: text}))
    assert "no baseline" in refused(write(held, {"something": "else"}))


def test_a_file_of_weights_is_no_baseline():
    from core.weights.cell import cell_file

    assert "no baseline" in refused(cell_file(weights_of_seed(Architecture("SimpleCell", 2, 3), 0)))


class Bomb:
    def __reduce__(self):
        raise AssertionError


def test_other_kinds_of_file_are_told_as_what_they_are(tmp_path):
    assert "This is a pickle" in refused(pickle.dumps({"a": np.zeros(3)}, protocol=4))
    # It would write this file if it were ever opened.
    told = tmp_path / "opened"
    attack = f"cbuiltins\nexec\n(S'open({str(told)!r}, \"w\")'\ntR."
    assert refused(attack.encode())
    assert refused(b"\x80\x04" + attack.encode())
    assert not told.exists()
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", b"\0" * 20_000_000)
    assert "nothing is unpacked" in refused(bomb.getvalue())
    buffer = io.BytesIO()
    np.savez_compressed(buffer, a=np.zeros(1_000_000))
    assert "nothing is unpacked" in refused(buffer.getvalue())


def test_a_file_over_the_limit_is_refused_by_its_size():
    limit = LIMITS["baseline_bytes"].value
    assert f"{limit}" in refused(b"\0" * (limit + 1))
    huge = (2**60).to_bytes(8, "little") + b"{" + b" " * 100
    assert "header" in refused(huge)


def test_what_would_be_too_large_is_not_written(monkeypatch):
    baseline, _ = recorded()
    monkeypatch.setitem(LIMITS, "baseline_bytes", type(LIMITS["baseline_bytes"])("baseline_bytes", 1000, "bytes", "x"))
    with pytest.raises(TooLargeError, match="more than 1,000"):
        to_bytes(baseline)


def test_sizes_that_are_too_much_are_not_recorded():
    with pytest.raises(TooLargeError, match="number of parameters"):
        record(page_state("lstm"), values_of_link("lstm", "hidden=256&in=128"))
    with pytest.raises(TooLargeError, match=r"B · T"):
        record(page_state("sequence"), values_of_link("sequence", "T=512&B=64&hidden=4&how=none"))


# --- parameters from a file -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("page", "direction"), [("lstm", ""), ("sequence", "&how=none")])
def test_parameters_from_a_file_are_kept_and_used_again(page, direction):
    weights = weights_of_seed(Architecture("SimpleCell", 3, 4), 7)
    values = values_of_link(page, f"cell=SimpleCell&w={weights.in_link}{direction}")
    baseline = record(page_state(page), values, file=weights)
    data = to_bytes(baseline)
    again = from_bytes(data)
    assert again.weights == weights
    assert check(again).same
    seeds = record(page_state(page), {**values, "weights": "", "seed": 7})
    from core.base.parting import Stage

    for case in (0, 1):
        got, want = (dict(b.cases[case].stages[Stage.LOSS]["loss"].leaves)["loss"] for b in (baseline, seeds))
        assert got == want


def test_parameters_that_the_settings_do_not_name_are_refused():
    weights = weights_of_seed(Architecture("SimpleCell", 3, 4), 7)
    values = values_of_link("lstm", f"cell=SimpleCell&w={weights.in_link}")
    data = to_bytes(record(page_state("lstm"), values, file=weights))

    def unname(document):
        document["values"]["weights"] = "0" * 16

    assert "not those that its settings name" in refused(changed(data, unname))


def test_a_file_of_parameters_that_is_not_in_use_is_not_in_the_baseline():
    weights = weights_of_seed(Architecture("SimpleCell", 2, 2), 7)
    values = values_of_link("lstm", f"cell=SimpleCell&w={weights.in_link}")
    baseline = record(page_state("lstm"), values, file=weights)
    assert baseline.weights is None
    assert baseline.values["weights"] == ""


def test_a_number_that_is_infinite_in_python_is_refused():
    """It passes the schema as a number, and cannot be written as JSON again for its hash."""
    container = read(recorded()[1], "baseline_bytes", "baseline_header")
    text = container.metadata[NAME].replace('"values":{', '"values":{"more":1e999,', 1)
    assert "larger than any" in refused(write(dict(container.tensors), {NAME: text}))


@pytest.mark.parametrize("letter", ["\x1b[2J", "\ud800", "\u202e"])
@pytest.mark.parametrize("place", ["reason", "backend"])
def test_a_letter_that_cannot_be_shown_is_refused_by_its_place(place, letter):
    said = refused(changed(recorded()[1], lambda document: document.update({place: letter})))
    assert said.isprintable()
    assert place in said


@pytest.mark.parametrize(
    ("page", "given"),
    [
        ("scan", {"source": "paste", "numbers": "1,\u00a02, 3"}),
        ("lstm", {"input": "paste", "numbers": "1, 2, 3\n4, 5,\u00a06"}),
    ],
)
def test_typed_blanks_and_lines_are_no_letters_that_cannot_be_shown(page, given):
    baseline = record(page_state(page), {**values_of_link(page, ""), **given}, own=True)
    assert from_bytes(to_bytes(baseline)).values["numbers"] == given["numbers"]


@pytest.mark.parametrize("seed", [1.0, 0.0])
def test_a_whole_number_with_a_point_is_none(seed):
    assert "data.seed" in refused(changed(recorded()[1], lambda document: document["data"].update(seed=seed)))


def test_a_case_cannot_be_taken_out_unsaid_nor_be_there_and_left_out():
    def shorter(document):
        document["cases"] = [case for case in document["cases"] if case["name"] != "zeros"]

    assert "no case “zeros”" in refused(changed(recorded()[1], shorter))
    both = changed(recorded()[1], lambda document: document.update(left_out=["zeros"]))
    assert "left out" in refused(both)
