"""Hits of an answer by JMESPath: order, duplicates, what is missing, HTML, columns."""

from typing import Any

import jmespath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark.search_endpoints.hits import FieldPath, HitMapping, compile_path, describe_fields, describe_shape
from corpus.errors import BadOption

SETTINGS: dict[str, Any] = {"hits": "results[]", "id": "id", "title": "name", "text": ["name", "body"], "score": "s"}


def mapping(**settings: Any) -> HitMapping:
    return HitMapping({**SETTINGS, **settings})


def test_hits_keep_the_engines_order_and_what_is_missing_is_counted():
    rows = [
        {"id": 7, "name": "<h1>A</h1>", "body": "x &lt; y<br>z", "s": "1.5"},
        {"id": "b", "s": float("nan")},
        {"id": 7, "name": "again"},
        {"name": "no id"},
        {"id": "c", "body": ["one", "two"], "brand": {"name": "Acme", "since": 1900}},
    ]
    page = mapping(metadata={"brand": "brand.name", "none": "nothing"}).read({"results": rows})
    assert [hit.id for hit in page.hits] == ["7", "b", "c"]
    assert (page.hits[0].title, page.hits[0].text, page.hits[0].score) == ("A", "A\nx < y\nz", 1.5)
    assert (page.hits[1].text, page.hits[1].score) == ("", None)
    assert (page.hits[2].text, page.hits[2].metadata) == ("one\ntwo", {"brand": "Acme"})
    assert (page.duplicates, page.without_id, page.without_text) == (1, 1, 1)


def test_lists_are_hits_an_empty_one_is_an_answer_and_a_missing_one_a_mistake():
    assert mapping().read({"results": []}).hits == []
    with pytest.raises(BadOption) as refusal:
        mapping().read({"data": {"items": [], "total": 0}})
    ((option, sentence),) = refusal.value.problems
    assert option == "hits" and "data.items" in sentence
    columns = mapping(hits="{id: ids, body: documents}")
    page = columns.read({"ids": ["a", "b"], "documents": ["first", None]})
    assert [(hit.id, hit.text) for hit in page.hits] == [("a", "first"), ("b", "")]
    with pytest.raises(BadOption):
        columns.read({"ids": ["a"], "documents": []})


@pytest.mark.parametrize("score", ["high", True, [], 10**400, 1e999, "1e999"])
def test_what_is_no_finite_number_is_no_score(score):
    (hit,) = mapping().read({"results": [{"id": 1, "name": "n", "s": score}]}).hits
    assert hit.score is None


@pytest.mark.parametrize("identity", [None, "", "  ", True, {}, [], "x" * 256, "a\0b", "a b", "a\u3000b"])
def test_what_can_be_no_id_of_a_document_is_none(identity):
    page = mapping().read({"results": [{"id": identity, "name": "n"}]})
    assert (page.hits, page.without_id) == ([], 1)


def test_characters_that_postgresql_cannot_store_are_left_out():
    row = {"id": "a", "name": "a\0b", "body": "c\ud800d", "extra": {"k\0": "v\0"}}
    (hit,) = mapping(metadata={"extra": "extra"}).read({"results": [row]}).hits
    assert (hit.title, hit.text, hit.metadata) == ("ab", "ab\ncd", {"extra": {"k": "v"}})


@pytest.mark.parametrize(
    ("option", "path"),
    [("hits", "a["), ("id", "`"), ("text", ["a", "||"]), ("score", "nan("), ("title", "join(', ', id)")],
)
def test_what_is_no_jmespath_names_its_option(option, path):
    with pytest.raises(BadOption) as refusal:
        mapping(**{option: path}).read({"results": [{"id": 1}]})
    assert refusal.value.problems[0][0] == option


def test_the_shape_of_an_answer_has_names_and_no_values() -> None:
    shape = describe_shape({"took": 3, "results": [{"id": "secret"}], "more": None})
    assert "secret" not in str(shape) and list(shape) == ["took", "results", "more"]
    answer = {"a\0\ud800": {"b\udfff": 1}}  # whatever the names have in them
    assert describe_fields(answer) == ["a.b"] and list(describe_shape(answer)) == ["a"]


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner) | st.lists(inner, max_size=2),
)


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), VALUES)
def test_a_path_of_plain_fields_is_read_as_jmespath_reads_it(names, value):
    expression = ".".join(names)
    path = compile_path("id", expression)
    assert isinstance(path, FieldPath)
    assert path.search(value) == jmespath.search(expression, value)
