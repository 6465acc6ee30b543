"""Ratings of search tools for grades: the tools' own, and those of a scale."""

import pytest

from annotation.exports.formats import FORMATS, RatingRule
from annotation.exports.options import ExportOptions
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
