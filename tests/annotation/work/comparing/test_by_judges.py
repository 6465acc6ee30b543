"""Judges compare two documents: both orders, failures by name, limits, and nothing asked twice."""

from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from actions.services import Actor
from annotation.agreement.proportions import clopper_pearson
from annotation.home.inbox.selectors import list_ended
from annotation.models import AuditEntry, Role
from annotation.models.comparisons import ComparisonSet, Preference
from annotation.models.judged_comparisons import ComparisonJudging, JudgedComparison
from annotation.work.comparing.by_judges.judging import COMPARISON_JUDGINGS
from annotation.work.comparing.by_judges.selectors import comparing_judges, describe_judging
from annotation.work.comparing.selectors import describe_results, outcomes_of
from annotation.work.comparing.services import delete_set, end_set
from corpus.collections.removal import delete_collection
from corpus.errors import BadInput
from jobs.models import JobState
from judges.costs.ledger import ledger_rows
from judges.models import Campaign
from judges.models.retrieval import RetrievalCall
from judges.panels.offline_panel import ensure_offline
from tests.annotation.work.comparing.judged_scene import (
    GOOD,
    answer,
    begin,
    judged,
    make_set,
    preferences_of,
    prefers,
    vote,
    work,
)
from tests.called import call
from tests.engine_parts import make_judge
from tests.factories import client_of, make_member
from tests.modelserver.fixtures import LocalModels
from tests.reading import hidden_fields

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def maps(settings: Any, tmp_path: Path, model_server: LocalModels) -> ComparisonSet:
    settings.VAR, settings.RETRY_SECONDS = tmp_path, 0.01
    for name in ("steady", "biased"):
        make_judge(model_server, name)
    model_server.script(steady=prefers(GOOD), biased=answer("A"))
    return make_set()


def test_each_judge_sees_both_orders_and_prefers_what_it_says_in_both(maps, model_server):
    judging = judged(maps, "steady")
    assert (judging.state, judging.done, judging.total) == (JobState.READY, 5, 5)
    assert preferences_of(maps, "steady@1") == {1: "first", 2: "second", 3: "first", 4: "equal", 5: "equal"}
    calls = RetrievalCall.objects.filter(campaign=judging.campaign)
    assert sorted(calls.values_list("role", "sample", "outcome")) == [
        ("prefer", n, "labelled") for n in (0,) * 5 + (1,) * 5
    ]
    assert len({request["user"] for request in model_server.requests()}) == 10
    rows = Preference.objects.select_related("call").order_by("comparison__seq")
    assert all(row.call and row.call.sample == 0 and row.call.tokens_in and row.call.cost for row in rows)
    (entry,) = ledger_rows(Campaign.objects.get(pk=judging.campaign or 0))
    assert (entry.role, entry.calls) == ("prefer", 10) and entry.cost > 0
    assert {row.kind for row in outcomes_of(maps)} == {"judge"}


def test_a_judge_that_goes_by_the_place_counts_as_equal_and_judges_are_held_against_the_majority_of_people(maps):
    judged(maps, "steady", "biased")
    assert set(preferences_of(maps, "biased@1").values()) == {"equal"}
    orders = JudgedComparison.objects.filter(assessor__name="biased@1").values_list("forward", "backward")
    assert set(orders) == {("first", "second")}
    for person in ("alice", "bob"):
        vote(maps, person, {1: "first", 2: "first", 3: "first"})
    vote(maps, "charlie", {1: "second", 4: "equal"})
    # Without a majority, a comparison does not count.
    vote(maps, "alice", {5: "first"})
    vote(maps, "bob", {5: "second"})
    biased, steady = comparing_judges(maps)
    assert (biased.flips.value, biased.flips.n, steady.flips.value) == (1.0, 5, 0.0)
    assert biased.flips.low == pytest.approx(0.478, abs=1e-3) and steady.flips.high == pytest.approx(0.522, abs=1e-3)
    assert (steady.agreement.value, steady.agreement.n) == (0.75, 4)
    assert (steady.agreement.low, steady.agreement.high) == tuple(clopper_pearson(3, 4))


@pytest.mark.parametrize(
    ("bad", "outcome"), [({"text": '{"reason": "", "preference": "a"}'}, "unparsed"), ({"fault": "refused"}, "refused")]
)
def test_what_is_no_verdict_is_a_failure_by_name_and_no_preference(maps, model_server, bad, outcome):
    model_server.script(steady=[{**bad, "contains": "clause of a loop", "also": "insert debugging"}, *prefers(GOOD)])
    judging = judged(maps, "steady")
    assert (judging.state, judging.done) == (JobState.READY, 5)
    assert 5 not in preferences_of(maps, "steady@1") and len(preferences_of(maps, "steady@1")) == 4
    row = JudgedComparison.objects.get(comparison__seq=5)
    assert row.problem.startswith(f"{outcome}: ") and (row.forward, row.backward) == ("", "")
    (steady,) = comparing_judges(maps)
    assert steady.unanswered == {outcome: 1} and steady.flips.n == 4
    # The other order would be paid for in vain.
    assert not RetrievalCall.objects.filter(sample=1, topic__startswith=f"{row.comparison_id} ").exists()


def test_a_limit_stops_it_and_resuming_asks_only_for_the_rest(maps: ComparisonSet, model_server: LocalModels) -> None:
    judging = begin(maps, "steady", max_calls=4)
    assert work(judging, stopped=lambda: True).state == JobState.WAITING, "a worker that ends gives it back"
    work(judging)
    assert judging.state == JobState.FAILED and judging.error.startswith("Stopped by")
    assert len(model_server.requests()) == 4 and judging.done < 5
    resumed = judged(maps, "steady", max_calls=100)
    assert (resumed.pk, resumed.state, resumed.done) == (judging.pk, JobState.READY, 5)
    prompts = [request["user"] for request in model_server.requests()]
    assert len(prompts) == len(set(prompts)) == 10


def test_another_job_with_the_same_judge_asks_only_the_other_one(maps, model_server):
    judged(maps, "steady")
    asked = len(model_server.requests())
    both = {"set": maps.number, "judges": ("steady", "biased")}
    estimate = COMPARISON_JUDGINGS.estimate_cost(maps.collection, both)
    assert estimate and estimate.calls.expected == 10
    second = judged(maps, "biased", "steady")
    assert (second.number, second.done, second.total) == (2, 10, 10)
    assert {request["model"] for request in model_server.requests()[asked:]} == {"biased"}
    assert Preference.objects.count() == 10
    assert begin(maps, "steady", "biased").pk == second.pk, "the same judges are the same job"


def test_a_provider_that_nobody_can_reach_leaves_no_preference_and_is_tried_again(maps, model_server):
    model_server.script(steady={"fault": "500"})
    judging = judged(maps, "steady")
    assert judging.state == JobState.FAILED and "5 of 5 got no response" in judging.error
    (ended,) = list_ended(maps.collection, make_member(maps.collection, "alice", Role.ADMIN).user, timezone.now())
    assert ended.address == "/c/maps/comparisons/judges/1/"
    assert not Preference.objects.exists() and not JudgedComparison.objects.exists()
    model_server.script(steady=prefers(GOOD))
    assert judged(maps, "steady").state == JobState.READY
    assert len(preferences_of(maps, "steady@1")) == 5


def test_offline_judges_compare_without_a_call_to_anybody_and_are_said_to_be_offline(maps, model_server):
    ensure_offline()
    judging = judged(maps, "offline-answers", "offline-bm25")
    assert judging.state == JobState.READY and not model_server.requests()
    assert preferences_of(maps, "offline-answers@1")[1] == "first"
    assert all(judge.is_offline and judge.flips.value == 0 for judge in comparing_judges(maps))
    assert describe_judging(judging)["cost"] == 0


def test_what_cannot_be_asked_is_refused_and_leaves_nothing(maps: ComparisonSet) -> None:
    for options, problem in (
        ({"set": 9}, "There is no set 9"),
        ({"judges": ("nobody",)}, "'nobody' is not a judge that writes text"),
        ({"judges": ("offline-rewriter",)}, "'offline-rewriter' is not"),
        ({"budget": -1.0}, "greater than 0"),
    ):
        with pytest.raises(BadInput, match=problem):
            COMPARISON_JUDGINGS.start_or_join(maps.collection, {"set": maps.number, "judges": ("steady",), **options})
    end_set(Actor("alice"), maps)
    with pytest.raises(BadInput, match="Set 1 has ended"):
        begin(maps, "steady")
    assert not ComparisonJudging.objects.exists()


def test_the_command_estimates_then_compares_and_prints_what_the_judges_did(maps, model_server):
    told = call("compare_by_judges", "maps", "--set", "1", "--judges", "steady,biased", "--estimate")
    assert "about 20 calls" in told.out and not model_server.requests() and not ComparisonJudging.objects.exists()
    judged(maps, "steady", "biased")
    done = call("compare_by_judges", "maps", "--set", "1", "--judges", "steady,biased", "--yes", "--json").json
    assert (done["state"], done["done"], done["calls"]) == ("ready", 10, 20)
    assert [(row["judge"], row["flips"]["value"]) for row in done["judges"]] == [("biased@1", 1.0), ("steady@1", 0.0)]


def test_an_admin_asks_judges_from_the_page_of_the_set_and_finds_their_figures_there(maps, model_server):
    client = client_of(make_member(maps.collection, "alice", Role.ADMIN))
    home = "/c/maps/comparisons/judges/"
    assert f'href="{home}?set=1"' in client.get("/c/maps/comparisons/1/").text
    form = client.get(f"{home}?set=1").text
    assert '<option value="1" selected>' in form and 'value="steady"' in form and 'value="offline-rewriter"' not in form
    estimate = client.post(f"{home}?set=1", {"set": "1", "judges": ["steady", "biased"]})
    assert 'name="confirm"' in estimate.text and not ComparisonJudging.objects.exists()
    started = client.post(f"{home}?set=1", {**hidden_fields(estimate), "judges": ["steady", "biased"], "confirm": "1"})
    assert started["Location"] == f"{home}1/"
    assert AuditEntry.objects.filter(act="comparisons.judges", details__number=1).count() == 1
    assert f'hx-get="{home}1/"' in client.get(f"{home}1/").text
    work(ComparisonJudging.objects.get())
    for page in (f"{home}1/", "/c/maps/comparisons/1/"):
        text = " ".join(client.get(page).text.split())
        assert "biased@1" in text and "100.0%" in text and "47.8% to 100.0%" in text
    # Sides say nothing of judges, who see both orders.
    assert describe_results(outcomes_of(maps))[1]["left"].value is None


def test_a_set_that_judges_have_answered_in_vain_is_deleted_with_its_collection_alone(maps, model_server):
    model_server.script(steady={"text": "no verdict"})
    judged(maps, "steady")
    assert not Preference.objects.exists()
    with pytest.raises(BadInput, match="has answers"):
        delete_set(Actor("alice"), maps)
    delete_collection(maps.collection)
    assert not JudgedComparison.objects.exists() and not ComparisonJudging.objects.exists()
