"""Campaigns at servers whose models answer in every hostile way: a pair gets a label only where the rule says so."""

import pytest

from judges.models import Attempt, Campaign, JudgeVersion
from judges.presets import UNWRAPS
from tests.called import call
from tests.engine_parts import collection_of, judge, state_of
from tests.instances import until
from tests.judges.domain.test_unwrapping import ANSWERS, LETTERS
from tests.modelserver.fixtures import KEY_ENV, LocalModels
from tests.stages import first_quick


def make_judge(models: LocalModels, alike: str, unwrap: str) -> None:
    JudgeVersion.objects.create(
        name="judge",
        model="judge",
        provider=alike.partition("+")[0],
        base_url=f"{models.google}/{alike}/v1",
        api_key_env=KEY_ENV,
        parameters={"unwrap": unwrap} if unwrap != "none" else {},
        input_price=0.0,
        output_price=0.0,
    )


@pytest.mark.slow
@pytest.mark.parametrize("unwrap", first_quick(UNWRAPS))
def test_hostile_answers_become_labels_only_where_the_rule_says_so(models: LocalModels, unwrap: str) -> None:
    """Each pair has its own answer, given to the first question and to the repair alike."""
    collection_of(len(ANSWERS))
    make_judge(models, "ollama", unwrap)
    expected, script = {}, []
    for number, (text, letters) in enumerate(ANSWERS.values()):
        asks = {"contains": f"mapping number {number} map"}
        script.append({**asks, "text": text} if text else {**asks, "fault": "empty"})
        expected[f"What does mapping number {number} map?"] = letters[UNWRAPS.index(unwrap)]
    models.script({"judge": script})
    judge("--policy", "single", "--judges", "judge")
    while state_of(Campaign.objects.get()) == "paused":  # as often as twenty answers in a row could not be used
        call("campaign", "books", "resume")
        until(lambda: state_of(Campaign.objects.get()) != "running")
    done = call("status", "books", "--json")
    attempts = list(Attempt.objects.select_related("pair__query"))
    found = dict.fromkeys(expected, LETTERS[None])
    found |= {one.pair.query.text: LETTERS[one.verdict] for one in attempts if one.outcome == "labelled"}
    assert found == expected
    labels = sum(letter != "-" for letter in expected.values())
    assert (done.json["labelled"], done.json["failed"]) == (labels, len(ANSWERS) - labels)
    assert {one.outcome for one in attempts} <= {"labelled", "unparsed", "out_of_range"}
