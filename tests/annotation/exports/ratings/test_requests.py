"""Requests of endpoints as search templates of `_rank_eval`."""

import json

import pytest

from annotation.exports.ratings.requests import read_template
from corpus.errors import BadOption

QUERY = 'the "best" tea {{k}}'


def test_the_body_is_the_template_with_the_depth_and_the_query_as_parameter():
    body = '{"query": {"match": {"text": "{{query}}"}}, "size": {{k}}, "_source": ["title"]}'
    template = read_template({"body": body, "path": "/shop/_search"}, 10)
    assert template.template == {
        "inline": {"query": {"match": {"text": "{{query}}"}}, "size": 10, "_source": ["title"]}
    }
    assert template.insert_query(QUERY) == {"query": QUERY}


def test_a_body_that_is_json_only_when_rendered_stays_a_text():
    body = '{"query": {"terms": {"text": [{{#words}}"{{.}}",{{/words}}""]}}, "size": {{ k }} }'
    template = read_template({"body": body}, 10)
    assert template.template == {"inline": body.replace("{{ k }}", "10")}
    assert template.insert_query("green  tea") == {"query": "green  tea", "words": ["green", "tea"]}


def test_values_of_all_queries_are_filled_in_as_texts_or_as_json():
    body = '{"query": {"multi_match": {"query": {{query}}, "fields": {{fields}}, "type": "{{type}}"}}, "size":{{{k}}}}'
    settings = {"body": body, "index": "shop", "parameters": {"fields": ["title^2", "text"], "type": 'best "fields"'}}
    template = read_template(settings, 10)
    query = {"query": "{{query}}", "fields": ["title^2", "text"], "type": 'best "fields"'}
    assert template.template == {"inline": {"query": {"multi_match": query}, "size": 10}}
    assert template.insert_query("tea") == {**settings["parameters"], "query": "tea"}


def test_a_stored_search_template_is_named_with_its_own_parameters():
    body = json.dumps({"id": "products", "params": {"q": "{{query}}", "filters": ["in {{query}}", 1], "n": 5}})
    template = read_template({"body": body, "path": "/shop/_search/template?pretty"}, 10)
    assert template.template == {"id": "products"}
    assert template.insert_query("tea") == {"q": "tea", "filters": ["in tea", 1], "n": 5}
    source = json.dumps({"source": '{"query": {{q}}}', "params": {"q": "{{query}}"}})
    assert read_template({"body": source, "path": "/_search/template"}, 10).template == {"inline": '{"query": {{q}}}'}


def test_without_an_endpoint_the_default_fields_are_searched_and_without_a_query_nothing():
    template = read_template({}, 10)
    assert template.template == {"inline": {"query": {"multi_match": {"query": "{{query}}"}}}}
    with pytest.raises(BadOption, match="query") as refusal:
        read_template({"body": '{"size": {{k}}}'}, 10)
    assert refusal.value.problems[0][0] == "endpoint"
