"""The papers' own ways to ask for a vote (DREAM table 17, ERank figure 5), chosen by a judge's `prompt`."""

import json

import pytest

from corpus.models import Label
from corpus.rubric import RUBRICS, Rubric
from judges.models import Attempt
from judges.panels.judges_file import parse
from judges.prompts.render import GRADED_SCHEMAS, prompt_versions, relevant_grade, render_ballot
from judges.records import Inputs, Judge
from tests.engine_parts import collection_of, judge, make_panel
from tests.judges.panels.test_judges_file import text
from tests.modelserver.fixtures import LocalModels


def asked_by(rubric: str, **parameters: object):
    inputs = Inputs("What does a mapping map?", ("Keys to values.",), "Mappings", "A mapping.", RUBRICS[rubric])
    return render_ballot(inputs, Judge("one", "openai", "m", id=1, parameters=parameters))


@pytest.mark.parametrize("rubric", RUBRICS)
def test_the_verdict_only_prompt_has_the_definition_without_rules_and_asks_for_no_reason(rubric: str) -> None:
    prompt, schema = asked_by(rubric, prompt="verdict-only")
    definition = RUBRICS[rubric]
    assert prompt.system.count(definition.statement) == 1
    assert not [rule for rule in definition.rules if rule in prompt.system]
    assert list(schema["properties"]) == ["response"]
    assert prompt.name == "vote-verdict-only-answers"
    assert prompt.sha256 == prompt_versions(Rubric(rubric))[prompt.name][0]


@pytest.mark.parametrize("rubric", RUBRICS)
def test_the_chain_prompt_has_the_definition_two_anchors_and_no_limit_of_words(rubric: str) -> None:
    prompt, schema = asked_by(rubric, prompt="score-chain", scale="0-10", relevant_from=6)
    definition = RUBRICS[rubric]
    assert prompt.system.count(definition.statement) == 1
    assert not [rule for rule in definition.rules if rule in prompt.system]
    anchors = [line for line in prompt.system.splitlines() if line[:2] == "- " and line[2].isdigit()]
    assert [line.partition(":")[0] for line in anchors] == ["- 0", "- 10"]
    assert " words" not in prompt.system
    assert schema == GRADED_SCHEMAS[10]


def test_three_ways_to_ask_are_three_prompt_versions() -> None:
    ways = [{}, {"prompt": "verdict-only"}, {"prompt": "score-chain", "scale": "0-10"}, {"scale": "0-10"}]
    assert len({asked_by("sufficiency", **way)[0].sha256 for way in ways}) == len(ways)


def test_a_chain_has_room_for_as_many_tokens_as_erank_keeps() -> None:
    judges = [Judge("one", "openai", "m", id=1, parameters=way) for way in ({}, {"prompt": "score-chain"})]
    assert [one.max_output_tokens for one in judges] == [512, 2048]


def test_a_single_judge_is_asked_for_its_verdict_alone(worker: object, model_server: LocalModels) -> None:
    collection_of(2)
    make_panel(model_server, votes=("yes", "no", "no", "no", "no"), parameters={"prompt": "verdict-only"})
    assert judge("--policy", "single", check=True).json["labels"] == {"1": 2}
    said = [request for request in model_server.requests() if request["side"] == "vote"]
    assert len(said) == 2
    assert set(Attempt.objects.values_list("prompt__name", flat=True)) == {"vote-verdict-only-answers"}
    assert set(Attempt.objects.values_list("reason", flat=True)) == {""}
    assert Label.objects.filter(grade=1).count() == 2


SCALED = [('scale = "0-3"', 3), ('scale = "0-10"', 7), ('scale = "0-3"\nrelevant_from = 1', 1)]


@pytest.mark.parametrize(("lines", "grade"), SCALED)
def test_a_graded_vote_is_yes_from_the_grade_whose_text_says_relevant(lines: str, grade: int) -> None:
    entry = parse(text(judge=lines)).judges[0]
    assert entry.parameters["relevant_from"] == grade
    assert "relevant_from" not in parse(text()).judges[0].parameters
    assert json.dumps([relevant_grade(highest) for highest in (1, 3, 10)]) == "[1, 3, 7]"


def test_versions_that_were_stored_without_the_grade_keep_their_meaning() -> None:
    old = [Judge("one", "openai", "m", id=1, parameters={"scale": scale}).relevant_from for scale in ("0-3", "0-10")]
    assert old == [2, 5]
