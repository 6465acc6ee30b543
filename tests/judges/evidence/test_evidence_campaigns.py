"""Contribution and evidence through the engine, with real workers against the local model server."""

import json
from collections import Counter

import pytest

from corpus.errors import BadInput
from corpus.evidence.targets import newest_targets, texts_of
from corpus.models import Item, Judgment, Label, Pair, Target
from judges.campaigns import configurations, lifecycle, selectors
from judges.campaigns import evidence_campaigns as campaigns
from judges.models import Attempt, Campaign, Work
from tests.called import call
from tests.conftest import Finished
from tests.engine_parts import FAST, collection_of, make_judge, pairs_of, sums_up
from tests.instances import until
from tests.judges.killing import kill, own_worker
from tests.modelserver.fixtures import LocalModels
from tests.repeated import repeated_beyond_flight

WRONG = "It maps 77 hashed values."
WRITE, LIST, MEASURE = "Write the contribution", "List the entities", "Measure the two texts"
SCORES = {
    "contribution_accuracy": 4, "contribution_coverage": 3, "evidence_faithfulness": 4, "evidence_self_contained": 3,
    "evidence_concision": 3, "language": 5,
}  # fmt: skip


def positives(count: int) -> list[Pair]:
    """So many pairs of the collection `books` that are labelled relevant, and one that is not."""
    collection = collection_of(count + 1)
    pairs = pairs_of(collection)
    for pair in pairs[:count]:
        Label.objects.create(pair=pair, grade=1, origin="people")
    Label.objects.create(pair=pairs[count], grade=0, origin="people")
    return pairs


def written(number: int = 0, text: str = "") -> dict[str, str]:
    """A writer's answer as the script takes it."""
    said = text or f"Mapping {number} takes values that can be hashed."
    return {"text": json.dumps({"contribution": "It says what the mapping maps.", "evidence": said})}


def write(*options: str) -> Finished:
    """`write_evidence books --wait --json`, served by the standing worker."""
    return call("write_evidence", "books", "--wait", "--json", *options)


def measured(**changes: int) -> dict[str, str]:
    return {"text": json.dumps({"note": "", **SCORES, **changes})}


def test_good_texts_become_targets_and_labels_stay(worker: object, model_server: LocalModels) -> None:
    pairs = positives(2)
    make_judge(model_server, "writer")
    make_judge(model_server, "measurer")
    model_server.script(
        {
            "writer": [{"contains": f"mapping number {n} ", **written(n)} for n in range(2)],
            "measurer": [
                {"contains": LIST, "text": json.dumps({"entities": ["Mapping 0", "values"]})},
                {"contains": MEASURE, **measured()},
            ],
        }
    )
    before = list(Label.objects.order_by("pk").values())
    done = write("--writer", "writer", "--measure", "measurer")
    assert done.code == 0, done.err
    status = done.json
    assert (status["policy"], status["written"], status["labelled"], status["labels"]) == ("evidence", 2, 2, {})
    assert status["calls"] == 2 * 3
    assert sums_up(status)
    assert list(Label.objects.order_by("pk").values()) == before
    assert not Judgment.objects.exists()
    assert not Item.objects.exists()
    targets = list(newest_targets(pairs[0].collection))
    assert [target.pair_id for target in targets] == [pair.pk for pair in pairs[:2]]
    first = targets[0]
    assert (first.kind, first.writer, first.version, first.good) == ("judge", "writer", 1, True)
    assert first.measures["judged"] == {"judge": "measurer", "as": "quality", "scores": SCORES, "given": SCORES}
    assert set(first.measures["rules"]["entities"]) == {"0", "Mapping 0", "values"}
    text = "<contribution>It says what the mapping maps.</contribution>\n<evidence>Mapping 0 takes values that can be "
    assert texts_of([first.pair_id])[first.pair_id] == f"{text}hashed.</evidence>"
    assert Counter(Attempt.objects.values_list("role", flat=True)) == {"write": 2, "entity": 2, "measure": 2}


def test_a_campaign_of_texts_is_not_the_collections_newest(worker: object, model_server: LocalModels) -> None:
    (pair, _) = positives(1)
    make_judge(model_server, "writer")
    model_server.script({"writer": written()})
    write("--writer", "writer")
    assert selectors.campaign_status(pair.collection)["campaign"] is None
    campaign = Campaign.objects.get()
    assert selectors.campaign_status(pair.collection, campaign)["written"] == 1
    again = write("--writer", "writer")
    assert (again.code, again.json["calls"]) == (0, 1)
    assert "nothing to do" in again.err or not Attempt.objects.filter(number__gt=1).exists()


def test_what_fails_is_written_once_more_and_told_why(worker: object, model_server: LocalModels) -> None:
    positives(1)
    make_judge(model_server, "writer")
    model_server.script({"writer": [{"contains": "Write both texts anew", **written()}, written(text=WRONG)]})
    status = write("--writer", "writer").json
    assert (status["written"], status["escalated"], status["calls"]) == (1, 0, 2)
    target = Target.objects.get()
    assert (target.good, target.measures["tries"]) == (True, 2)
    assert target.evidence == json.loads(written()["text"])["evidence"]
    second = model_server.requests()[-1]["user"]
    assert "document: “77”" in second and WRONG in second


def test_what_fails_twice_waits_for_a_person(worker: object, model_server: LocalModels) -> None:
    pair, _ = positives(1)
    make_judge(model_server, "writer")
    make_judge(model_server, "measurer")
    model_server.script(
        {
            "writer": written(),
            "measurer": [
                {"contains": LIST, "text": '{"entities": []}'},
                {"contains": MEASURE, **measured(evidence_self_contained=2)},
            ],
        }
    )
    status = write("--writer", "writer", "--measure", "measurer").json
    assert (status["written"], status["escalated"], status["open"]) == (0, 1, 1)
    assert status["escalations"] == {"evidence": 1}
    assert sums_up(status)
    item = Item.objects.get()
    assert (item.reason, item.state, item.overlap, item.campaign) == ("evidence", "open", 1, Campaign.objects.get().pk)
    target = Target.objects.get()
    assert not target.good
    assert target.measures["problems"] == ["the evidence cannot be understood without the document (2 of 5)"]
    assert not newest_targets(pair.collection).exists()
    idle = write("--writer", "writer", "--measure", "measurer", "--again")
    assert idle.code == 0, "what waits for a person is left to them"
    assert Target.objects.count() == 1


def test_an_answer_that_is_none_counts_as_a_try(worker: object, model_server: LocalModels) -> None:
    """Unreadable twice: to a person, without texts. Refused by the measurer: to a person too. No answer: failed."""
    positives(3)
    make_judge(model_server, "writer")
    make_judge(model_server, "measurer")
    model_server.script(
        {
            "writer": [
                {"contains": "mapping number 0 ", "fault": "garbage"},
                {"contains": "mapping number 2 ", "fault": "500"},
                written(1),
            ],
            "measurer": [{"contains": LIST, "text": '{"entities": []}'}, {"contains": MEASURE, "fault": "refused"}],
        }
    )
    done = write("--writer", "writer", "--measure", "measurer")
    assert done.code == 3
    assert (done.json["escalated"], done.json["failed"], done.json["written"]) == (2, 1, 0)
    empty, unmeasured = Target.objects.order_by("pair")
    assert (empty.contribution, empty.measures["problems"]) == ("", ["the writer's answer was unparsed"])
    assert unmeasured.measures["problems"] == ["no scores from measurer: its answer was refused"]
    assert Work.objects.get(state="failed").reason == "error"
    model_server.script(
        {"writer": written(2), "measurer": [{"contains": LIST, "text": '{"entities": []}'}, measured()]}
    )
    again = write("--writer", "writer", "--measure", "measurer", "--retry-failed")
    assert (again.code, again.json["written"], again.json["failed"]) == (0, 1, 0)


def test_paid_answers_are_not_paid_for_again(worker: object, model_server: LocalModels) -> None:
    positives(2)
    make_judge(model_server, "writer")
    model_server.script({"writer": [{"contains": f"mapping number {n} ", **written(n)} for n in range(2)]})
    write("--writer", "writer")
    before = len(model_server.requests())
    status = write("--writer", "writer", "--again").json
    assert (status["written"], status["calls"], status["calls_cached"]) == (2, 0, 2)
    assert len(model_server.requests()) == before
    assert Target.objects.count() == 4
    assert newest_targets().count() == 2


def test_what_stopped_between_two_calls_goes_on_there(worker: object, model_server: LocalModels) -> None:
    """The budget ends after the text was written: it is measured later, and not written a second time."""
    positives(1)
    make_judge(model_server, "writer")
    make_judge(model_server, "measurer")
    model_server.script({"writer": written(), "measurer": [{"contains": LIST, "text": '{"entities": []}'}, measured()]})
    options = ["--writer", "writer", "--measure", "measurer"]
    stopped = write(*options, "--max-calls", "1")
    assert (stopped.code, stopped.json["state"], stopped.json["pending"]) == (3, "budget", 1)
    assert not Target.objects.exists()
    status = write(*options, "--max-calls", "9").json
    assert (status["written"], status["calls"]) == (1, 3)
    assert Counter(request["model"] for request in model_server.requests()) == {"writer": 1, "measurer": 2}


def test_the_same_model_measures_fidelity_to_teacher(instance: object, model_server: LocalModels) -> None:
    make_judge(model_server, "one", "same-model")
    make_judge(model_server, "other", "same-model")
    make_judge(model_server, "third", "another-model")
    assert campaigns.score_meaning(campaigns.writer_configuration("one", "other")) == "fidelity to teacher"
    assert campaigns.score_meaning(campaigns.writer_configuration("one", "third")) == "quality"
    assert campaigns.score_meaning(campaigns.writer_configuration("one")) == ""


def test_the_offline_pair_writes_and_measures(worker: object) -> None:
    pair, _ = positives(1)
    status = write("--writer", "offline-writer", "--measure", "offline-measurer").json
    assert (status["written"], status["cost"]) == (1, 0.0)
    target = newest_targets(pair.collection).get()
    assert target.evidence in pair.document.text
    assert target.measures["judged"]["judge"] == "offline-measurer"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--writer", "nobody"], "There is no judge 'nobody'"),
        (["--writer", "offline-writer", "--limit", "0"], "Enter a number greater than 0"),
        (["--writer", "offline-writer", "--workers", "99"], "from 1 to 64"),
    ],
)
def test_bad_input_changes_nothing(instance: object, options: list[str], words: str) -> None:
    collection_of(1)
    done = write(*options)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert not Campaign.objects.exists()


def test_judge_does_not_take_the_policy(instance: object) -> None:
    collection_of(1)
    with pytest.raises(BadInput):
        configurations.build_configuration(policy="evidence")


PAIRS = 16


@pytest.mark.weekly
def test_a_killed_worker_loses_no_text_and_pays_for_none_twice(manage, model_server, instance):
    collection = positives(PAIRS)[0].collection
    make_judge(model_server, "writer")
    make_judge(model_server, "measurer")
    slow = {"latency": 0.3}
    listed = {"contains": LIST, "text": '{"entities": ["hashable"]}', **slow}
    writers = [{"contains": f"mapping number {n} ", **written(n), **slow} for n in range(PAIRS)]
    model_server.script({"writer": writers, "measurer": [listed, {**measured(), **slow}]})
    own = own_worker(instance)
    wanted = campaigns.writer_configuration("writer", "measurer")
    campaign = lifecycle.start_campaign(collection=collection, configuration=wanted).campaign
    assert campaign is not None
    until(lambda: len(model_server.requests()) >= PAIRS)
    killed, dead = kill(own)
    assert 0 < Attempt.objects.count() < 3 * PAIRS
    options = ("--writer", "writer", "--measure", "measurer", "--wait", "--json", "--workers", 1)
    done = manage("write_evidence", "books", *options, environment=FAST)
    assert (done.json["campaign"], done.json["written"]) == (campaign.number, PAIRS) and sums_up(done.json)
    repeated, flying = repeated_beyond_flight(model_server.requests(), killed, dead)
    assert repeated == 0 and flying
    assert Attempt.objects.filter(counts=True).count() == 3 * PAIRS
    assert Target.objects.filter(good=True).count() == PAIRS
