"""Ratings of search tools for grades, the tools' own or those of a scale, and requests as templates of `_rank_eval`."""

import json

import pytest

from annotation.exports.formats import FORMATS, RatingRule
from annotation.exports.options import ExportOptions
from annotation.exports.ratings.requests import read_template
from annotation.exports.ratings.scales import choose_ratings, describe_ratings, read_scale
from corpus.errors import BadOption

SHARES, NUMBERS, QUEPID = RatingRule(is_share=True), RatingRule(), RatingRule(highest=3)


@pytest.mark.parametrize(
    ("rule", "grades", "scale", "ratings"),
    [
        (SHARES, 3, "", {0: 0.0, 1: 0.333, 2: 0.667, 3: 1.0}),
        (SHARES, 1, "", {0: 0.0, 1: 1.0}),
        (SHARES, 4, "", {0: 0.0, 1: 0.25, 2: 0.5, 3: 0.75, 4: 1.0}),
        (NUMBERS, 4, "", {0: 0, 1: 1, 2: 2, 3: 3, 4: 4}),
        (QUEPID, 3, "", {0: 0, 1: 1, 2: 2, 3: 3}),
        (QUEPID, 1, "", {0: 0, 1: 1}),
        (QUEPID, 4, "0=0,1=1,2=1,3=2,4=3", {0: 0, 1: 1, 2: 1, 3: 2, 4: 3}),
        (SHARES, 3, " 0=0, 1=0.33 ,2=0.67,3=1", {0: 0.0, 1: 0.33, 2: 0.67, 3: 1.0}),
        (SHARES, 1, "1=3,0=0", {0: 0.0, 1: 3.0}),
        (NUMBERS, 1, "0=0,1=3.0", {0: 0, 1: 3}),
    ],
)
def test_each_grade_has_the_tools_rating_or_that_of_the_scale(rule, grades, scale, ratings):
    found = choose_ratings(rule, grades, scale)
    assert found == ratings and list(found) == sorted(found)
    assert read_scale(describe_ratings(found)) == found


@pytest.mark.parametrize(
    ("rule", "grades", "scale", "words"),
    [
        (QUEPID, 4, "", "from 0 to 3 and the grades to 4"),
        (SHARES, 3, "0=0,1=1", "from 0 to 3"),
        (SHARES, 1, "0=0,1=1,2=2", "from 0 to 1"),
        (NUMBERS, 1, "0=0,1=0.5", "whole numbers"),
        (SHARES, 1, "0=1,1=0", "lower"),
        (SHARES, 1, "0=0,0=1", "once"),
        (SHARES, 1, "0=0;1=1", "once"),
        (SHARES, 1, "0=0,1=-1", "once"),
        (SHARES, 1, "0=0,1=nan", "once"),
    ],
)
def test_a_scale_that_does_not_fit_is_refused(rule, grades, scale, words):
    with pytest.raises(BadOption, match=words) as refusal:
        choose_ratings(rule, grades, scale)
    assert refusal.value.problems[0][0] == "scale"


def test_only_formats_of_search_tools_take_a_scale_and_only_rank_eval_an_endpoint():
    for name, form in FORMATS.items():
        options = {"scale": "0=0,1=1", "endpoint": "shop", "index": "products"}
        for option, value in options.items():
            takes = form.rates is not None and (option == "scale" or name == "rank-eval")
            if takes:
                assert getattr(ExportOptions(format=name, **{option: value}), option) == value
            else:
                with pytest.raises(BadOption, match=name):
                    ExportOptions(format=name, **{option: value})
    with pytest.raises(BadOption, match="prism"):
        ExportOptions(format="prism", scale="0=0,1=1")
    with pytest.raises(BadOption, match="once"):
        ExportOptions(format="srw", scale="high")


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
