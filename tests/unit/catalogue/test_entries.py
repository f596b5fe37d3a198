"""Each rule has its page: texts, code, scripts, links, all from the rule's docstring and its folder."""

from __future__ import annotations

import ast
from urllib.parse import urlsplit

import pytest

from core.base.violation import Severity
from core.catalogue.documents import DOCUMENTS
from core.catalogue.entries import EXAMPLES, GROUPS, SAYS_NOTHING, Entry, entries, entry_of, find
from core.contract.rule import Jax, all_rules

ENTRIES = pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.code)


def test_every_rule_has_an_entry_in_the_order_of_codes():
    assert [entry.code for entry in entries()] == [rule.code for rule in all_rules()]


@ENTRIES
def test_an_entry_is_whole(entry: Entry):
    for text in (entry.summary, entry.what, entry.why, entry.bad, entry.good, entry.source):
        assert text
        assert "**" not in text.splitlines()[0]
    assert not entry.more.startswith("    ")
    assert entry.code[0] in GROUPS
    assert entry.bad != entry.good


@ENTRIES
def test_its_scripts_can_be_read_and_differ(entry: Entry):
    for script in (entry.bad_script, entry.good_script):
        ast.parse(script)
    assert any(line.startswith(("+", "-")) for line in entry.difference)


@ENTRIES
def test_it_says_what_jax_says_where_jax_raises(entry: Entry):
    if entry.rule.jax is Jax.RAISES:
        kind, _, text = entry.jax.partition(": ")
        assert kind.isidentifier()
        assert text
    if entry.rule.jax is Jax.SILENT and entry.rule.severity is not Severity.LIMIT and entry.code != "S115":
        assert entry.jax == SAYS_NOTHING
    assert "0x" not in entry.jax
    assert "Traceback" not in entry.jax


@ENTRIES
def test_it_links_the_official_documentation(entry: Entry):
    if entry.rule.severity is Severity.LIMIT:
        return  # what this place limits is told here and nowhere else
    assert entry.documents, f"no word of {entry.source!r} is in the table of documents"
    for document in entry.documents:
        parts = urlsplit(document.url)
        assert parts.scheme == "https"
        assert parts.hostname in {"docs.jax.dev", "flax.readthedocs.io", "numpy.org", "restrictedpython.readthedocs.io"}


def test_each_document_is_there_once_and_is_used():
    assert len({document.url for document in DOCUMENTS}) == len(DOCUMENTS)
    used = {document.url for entry in entries() for document in entry.documents}
    assert {document.url for document in DOCUMENTS} - used == set()


def test_a_code_is_found_however_it_is_written():
    assert entry_of(" s104 ") is entry_of("S104")
    assert entry_of("S104").rule.code == "S104"
    assert entry_of("S999") is None
    assert entry_of("") is None


def test_words_find_entries_and_titles_come_first():
    assert find("s104")[0].code == "S104"
    codes = [entry.code for entry in find("dtype carry")]
    assert {"S104", "L314"} <= set(codes)
    titles = ["dtype" in entry.rule.title and "carry" in entry.rule.title for entry in find("dtype carry")]
    assert titles == sorted(titles, reverse=True)
    assert find("no such words at all") == ()


def test_no_folder_is_left_over():
    assert {path.name for path in EXAMPLES.iterdir() if path.is_dir()} == {rule.code for rule in all_rules()}
