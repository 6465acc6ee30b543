"""Two documents of a query side by side: the answers that count, and those of offline judges. Pure."""

from dataclasses import replace

import pytest

from judges.domain.verdicts import STRICT, Unparsed
from judges.offline.judges import ASSESSORS, UniformLexicon, compare_documents
from judges.prompts.answers.formats import PairPreference, parse_answer
from judges.records import Inputs

STATED = Inputs(
    "What does a mapping map?",
    ("A mapping object maps hashable values to arbitrary objects.",),
    "Mapping Types",
    "A mapping object maps hashable values to arbitrary objects. Mappings are mutable objects.",
)
UNRELATED = replace(
    STATED, title="Assert", document="Assert statements insert debugging assertions. They are optional."
)


def parse(verdict: str) -> str:
    answer = f'{{"reason": "It says it outright.", "preference": {verdict}}}'
    return PairPreference.model_validate_json(parse_answer("prefer", answer, STRICT, {}).reason).preference


@pytest.mark.parametrize("word", ["A", "B", "equal", "both bad"])
def test_a_preference_is_one_of_four_words(word: str) -> None:
    assert parse(f'"{word}"') == word


@pytest.mark.parametrize("verdict", ['"a"', '"A or B"', '"neither"', '"both_bad"', '""', "1", "null", "true"])
def test_any_other_word_is_no_preference(verdict: str) -> None:
    with pytest.raises(Unparsed, match="\"preference\": Input should be 'A', 'B', 'equal' or 'both bad'"):
        parse(verdict)


@pytest.mark.parametrize("model", ASSESSORS)
def test_every_offline_judge_prefers_the_stated_answer_in_both_orders_and_calls_two_unrelated_texts_bad(model):
    def compare(first: Inputs, second: Inputs) -> object:
        return compare_documents(model, first, second, UniformLexicon())["preference"]

    assert (compare(STATED, UNRELATED), compare(UNRELATED, STATED)) == ("A", "B")
    assert (compare(STATED, STATED), compare(UNRELATED, UNRELATED)) == ("equal", "both bad")
