"""JSON is checked against its published schema, when it is written and when it is read back."""

from __future__ import annotations

import json

import pytest

from core.report.as_json import UnreadableReportError, read_json, schema, to_json, write_json
from core.report.model import Name, Status, Verdict
from core.report.plain import NotPlainError, plain, read
from core.report.wanted import PAGES, SCRIPT
from tests.unit.report.made import report, with_status


def tampered(change):
    data = json.loads(write_json(report()))
    change(data)
    return json.dumps(data)


def test_what_is_written_is_read_back_as_it_was():
    one = report()
    again = read_json(write_json(one))
    assert write_json(again) == write_json(one)
    assert again.criteria == one.criteria
    assert again.contract == one.contract
    assert again.verdict is Verdict.PASS


def test_the_schema_names_what_the_code_names():
    names = schema()["properties"]["criteria"]
    assert names["items"]["properties"]["name"]["enum"] == [str(name) for name in Name]
    assert names["items"]["properties"]["status"]["enum"] == [str(status) for status in Status]
    assert names["minItems"] == names["maxItems"] == len(Name)
    assert schema()["properties"]["verdict"]["enum"] == [str(verdict) for verdict in Verdict]
    assert schema()["properties"]["page"]["enum"] == [*PAGES, SCRIPT]


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["negatives"].clear(),
        lambda d: d.pop("negatives"),
        lambda d: d.pop("versions"),
        lambda d: d["versions"].pop("jaxlib"),
        lambda d: d["versions"].update(jax=""),
        lambda d: d["criteria"].pop(),
        lambda d: d["criteria"][0].update(name="keys"),
        lambda d: d["criteria"][0].update(status="good"),
        lambda d: d["latency"].update(runs=1),
        lambda d: d["inputs"][0].update(sha256="short"),
        lambda d: d.update(more=1),
        lambda d: d.update(not_proved=[]),
        lambda d: d.update(schema=2),
        lambda d: d.update(kind="letter"),
        lambda d: d.update(verdict="fail"),
        lambda d: d.update(title="\ud800"),
    ],
)
def test_a_report_that_was_changed_is_refused_with_a_sentence(change):
    with pytest.raises(UnreadableReportError) as refused:
        read_json(tampered(change))
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize("raw", ["", "{", "[]", "null", '"x"', '{"schema": NaN}', b"\xff\xfe\xff", "[" * 100_000])
def test_what_is_no_report_is_refused_with_a_sentence(raw):
    with pytest.raises(UnreadableReportError):
        read_json(raw)


def test_a_file_over_the_limit_is_not_read():
    with pytest.raises(UnreadableReportError, match="bytes"):
        read_json(" " * 4_194_305)


def test_numbers_that_are_not_finite_are_text():
    text = write_json(report())
    assert json.loads(text)["contract"]["high"] == "inf"
    assert "NaN" not in text


def test_a_failing_report_says_so():
    assert to_json(with_status({Name.KEYS: Status.FAIL}))["verdict"] == "fail"


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(asked_cut=0),
        lambda d: d.update(made=None),
        lambda d: d["seeds"][0].update(seed=1 << 60),
        lambda d: d["seeds"][0].update(seed=True),
        lambda d: d["machine"].pop("cpu"),
        lambda d: d.update(about="x" * 20_001),
    ],
)
def test_plain_data_of_other_kinds_are_not_read(change):
    from core.report.model import ContractReport

    data = plain(report())
    change(data)
    with pytest.raises(NotPlainError):
        read(ContractReport, data)
