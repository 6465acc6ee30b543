"""Values are escaped by where they stand; what does not render says why."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark.search_endpoints.templates import render_body, render_path
from corpus.errors import BadInput

# PostgreSQL and JSON have no lone surrogates, and no option has a null character.
TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"))


@given(TEXTS, st.integers(1, 1000))
def test_any_query_stays_one_text_of_the_json(query, k):
    template = '{"q": "{{query}}", "n": {{k}}, "raw": {{{query}}}, "at": "{{k}} of {{query}}"}'
    body = json.loads(render_body(template, {"query": query, "k": k}))
    assert body == {"q": query, "n": k, "raw": query, "at": f"{k} of {query}"}


@given(TEXTS)
def test_a_text_within_a_text_is_escaped_twice(query):
    template = r'{"query": "{ Get(bm25: {query: \"{{query}}\", limit: {{k}}}) \"{{query}}\" }"}'
    graphql = json.loads(render_body(template, {"query": query, "k": 3}))["query"]
    inner = json.dumps(query, ensure_ascii=False)
    assert graphql == f"{{ Get(bm25: {{query: {inner}, limit: 3}}) {inner} }}"


def test_lists_sections_and_missing_values_render_as_in_mustache_and_are_quoted_in_a_path():
    template = '{"f": {{fields}}, "o": [{}{{#fields}}, "{{.}}^2"{{/fields}}]{{^filter}}, "all": true{{/filter}}}'
    body = json.loads(render_body(template, {"fields": ["a", "b"], "filter": None}))
    assert body == {"f": ["a", "b"], "o": [{}, "a^2", "b^2"], "all": True}
    values = {"query": "a b&c=d/é?#", "k": 5, "fields": ["title", "text"]}
    path = render_path("/s?q={{query}}&n={{k}}&in={{fields}}", values)
    assert path == "/s?q=a%20b%26c%3Dd%2F%C3%A9%3F%23&n=5&in=title%2Ctext"


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        ('{"q": "{{quer}}"}', "{{quer}}"),
        ('{"q": "{{#a}}x"}', "{{#a}}"),
        ('{"q": "{{query}"}', "}}"),
        ('{"q": {{query}}', "JSON"),
        ('{"q": "{{>/etc/passwd}}"}', "/etc/passwd"),
        ('{"q": {{=a=}} }', "tags"),
        ("<q>{{query}}</q>", "JSON"),
    ],
)
def test_a_template_that_does_not_render_says_why_in_one_line(template, sentence):
    with pytest.raises(BadInput) as refusal:
        render_body(template, {"query": "boots", "k": 1})
    assert sentence in str(refusal.value) and "\n" not in str(refusal.value)
