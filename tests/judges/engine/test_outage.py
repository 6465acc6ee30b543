"""An account or a document in trouble: what waits, fails, is refused or asked again, and that every campaign ends.

Which refusals there are stands in tests/judges/providers/test_behaviours.py, what each SDK makes of faults in
test_providers.py there.
"""

import json
import time
from collections import Counter
from typing import Any

import pytest
from django.db import connection

from judges.campaigns.selectors import campaign_status
from judges.models import Attempt, Campaign, JudgeVersion, Work
from tests.called import call
from tests.engine_parts import begin, collection_of, judge, make_judge, make_panel, scene, state_of, sums_up
from tests.fault_rig import CALLS, COUNTS, left, note
from tests.instances import until
from tests.modelserver.fixtures import KEY, KEY_ENV, LocalModels
from tests.stages import first_slow

PAIRS = 300
OUTAGE = ("503", "drop", "500")
YES = {"*": {"verdict": "yes", "latency": 0.05}}


def answered(models: LocalModels) -> int:
    return sum(request["status"] == 200 for request in models.requests())


def down_for(seconds: float, models: LocalModels, fault: str) -> None:
    """All of the account's calls fail from now on, for so long."""
    models.script({"*": {"fault": fault}})
    time.sleep(seconds)
    models.script(YES)


def ends_whole(campaign: Campaign, models: LocalModels) -> None:
    until(lambda: state_of(campaign) == "finished")
    found = campaign_status(campaign.collection, campaign)
    assert (found["failed"], found["labelled"], found["paused_because"]) == (0, PAIRS, None) and sums_up(found)
    assert answered(models) == PAIRS * CALLS, "no answer was bought twice"
    assert Attempt.objects.filter(counts=True).count() == PAIRS * CALLS


@pytest.mark.weekly
@pytest.mark.parametrize("fault", OUTAGE)
def test_an_outage_in_the_middle_fails_no_pair(models: LocalModels, fault: str) -> None:
    """Five seconds: the circuit opens twice."""
    models.script(YES)
    make_panel(models)
    campaign = begin(collection_of(PAIRS))
    until(lambda: answered(models) > PAIRS)
    down_for(5, models, fault)
    failing = [one for one in models.requests() if one["status"] != 200]
    assert 20 <= len(failing) < 20 + 2 * 128 + 10, "the circuit is open: what was out failed, and a try now and then"
    ends_whole(campaign, models)


@pytest.mark.slow
def test_a_slow_account_with_few_places_fails_no_pair_either(models: LocalModels) -> None:
    """Two calls at a time: a call's four tries are over before twenty errors have opened the circuit."""
    collection = scene(models, 12, max_concurrency=2)
    models.script({"*": {"fault": "503", "times": 22}})
    done = judge(check=True)
    assert (done.json["failed"], done.json["labelled"]) == (0, 12)
    assert Work.objects.filter(pair__collection=collection, attempt_base__gt=0).exists(), "their tries count anew"


@pytest.mark.parametrize(("times", "failed", "errors"), [(4, 0, 4), (99, 1, 8)])
def test_a_pair_that_waited_out_an_outage_is_tried_again(models, times, failed, errors):
    """The others are answered before it is claimed again; a document that always fails has failed then."""
    scene(models, 10, max_concurrency=4)
    document = {"contains": "mapping number 9 ", "fault": "503", "times": times, "latency": 0.1}
    outage = {"fault": "503", "times": 12, "latency": 0.1}
    models.script({"*": [document, {"verdict": "yes", "times": 6}, outage, {"verdict": "yes"}]})
    done = judge("--policy", "single")
    assert (done.json["failed"], done.json["labelled"]) == (failed, 10 - failed), done.err
    assert Attempt.objects.filter(outcome="error", pair__query__text__contains="number 9 ").count() == errors


def two_accounts(models: LocalModels) -> None:
    """v3 has an account of its own, in Anthropic's wire format."""
    make_panel(models)
    own = {"provider": "anthropic", "base_url": models.anthropic}
    JudgeVersion.objects.filter(name="v3").update(model="v3", **own)


@pytest.mark.parametrize("fault", first_slow(["404", "401", "403"]))
def test_a_dead_key_pauses_the_campaign_and_says_which_account_and_why(models: LocalModels, fault: str) -> None:
    collection_of(PAIRS)
    two_accounts(models)
    script = {"v3": [{"verdict": "yes", "times": 40, "latency": 0.05}, {"fault": fault, "latency": 0.05}], **YES}
    models.script(script)
    done = judge()
    assert (done.code, done.json["state"], done.json["failed"]) == (3, "paused", 0)
    requests = models.requests()
    refused = min(one["answered"] for one in requests if one["status"] == int(fault))
    after = [one for one in requests if one["arrived"] > refused]
    assert sum(one["model"] == "v3" for one in after) <= 60, "of 300: what was on its way arrives"
    assert len(after) <= 100, "the others stop as well, of 2,100: what was on its way arrives"
    because = done.json["paused_because"]
    for word in ("v3", "anthropic", models.anthropic, KEY_ENV, fault):
        assert word in because and word in done.err
    assert f"paused: {because}" in done.err and "campaign books resume" in done.err
    assert KEY not in done.err
    told = call("status", "books")
    assert f"paused: {because}" in told.out
    again = judge()
    assert again.code == 2 and because in again.err
    models.script(YES)
    assert call("campaign", "books", "resume", "--json").json["paused_because"] is None
    until(lambda: state_of(Campaign.objects.get()) == "finished")
    found = call("status", "books", "--json").json
    assert (found["labelled"], found["failed"], found["paused_because"]) == (PAIRS, 0, None)
    assert answered(models) == PAIRS * CALLS, "no answer was bought twice"


def test_a_key_that_is_not_set_pauses_before_anything_is_sent(models: LocalModels) -> None:
    scene(models, 40)
    make_judge(models, "lost", api_key_env="QUORUM_NO_SUCH_KEY")
    done = judge("--policy", "single", "--judges", "lost")
    assert (done.code, done.json["state"], done.json["failed"]) == (3, "paused", 0)
    assert "QUORUM_NO_SUCH_KEY" in done.json["paused_because"] and not models.requests()


DEAD = 5


@pytest.mark.parametrize("fault", first_slow(["500", "hang", "drop", "not-json", "garbage", "half"], 2))
def test_five_dead_documents_of_thirty_fail_and_the_campaign_ends(models: LocalModels, fault: str) -> None:
    scene(models, 30)
    JudgeVersion.objects.update(parameters={"timeout_s": 0.5})
    dead = [{"contains": f"mapping number {6 * n} ", "fault": fault} for n in range(DEAD)]
    models.script({"*": [*dead, {"verdict": "yes", "latency": 0.02}]})
    done = judge("--policy", "single")
    assert (done.code, done.json["state"]) == (3, "finished"), done.err
    assert (done.json["labelled"], done.json["failed"]) == (25, DEAD) and sums_up(done.json)
    assert Attempt.objects.exclude(outcome="labelled").count() <= 3 * 4 * DEAD, "nothing is paid for without end"
    assert all(work.error for work in Work.objects.filter(state="failed"))
    models.script({"*": {"verdict": "yes"}})
    again = judge("--policy", "single", "--retry-failed", check=True)
    assert (again.json["labelled"], again.json["failed"]) == (30, 0), "and they are tried anew when asked for"


@pytest.mark.slow
def test_documents_that_are_dead_and_the_last_ones_fail_too(models: LocalModels) -> None:
    """Nothing else is left that could show whether the account answers."""
    scene(models, 12, max_concurrency=2)
    dead = [{"contains": f"mapping number {11 - n} ", "fault": "500"} for n in range(DEAD)]
    models.script({"*": [*dead, {"verdict": "yes"}]})
    done = judge("--policy", "single")
    assert (done.code, done.json["state"]) == (3, "finished"), done.err
    assert (done.json["labelled"], done.json["failed"]) == (7, DEAD)
    assert Campaign.objects.get().paused_because == ""


FAULTY, TIMES = 12, 6


# What the engine makes of one faulty answer. Again: the same call is sent once more, since nothing usable came.
# Repaired: another call asks for the right form; the answer was paid for and is kept. Refused: the provider declines
# the call, that vote is missing, and the others decide.
FAULTS = {"drop": "again", "garbage": "repaired", "redirect": "refused", "schema": "repaired", "empty": "repaired"}
FAULTS |= dict.fromkeys(["hang", "drip", "half", "error-body", "not-json", "no-body", "huge", "503"], "again")
FAULTS |= {"other-model": ""}


@pytest.mark.slow
@pytest.mark.parametrize("fault", first_slow(FAULTS, 3))
def test_a_provider_that_misbehaves_costs_its_own_calls_and_nothing_else(models: LocalModels, fault: str) -> None:
    again, refused = FAULTS[fault] == "again", FAULTS[fault] == "refused"
    more = TIMES * (FAULTS[fault] in ("again", "repaired"))
    scene(models, FAULTY, debate=("a", "b"), votes=("v1", "v2", "v3", "v4", "v5"))
    JudgeVersion.objects.update(parameters={"timeout_s": 1.0})
    once = [{"contains": f"mapping number {n} ", "fault": fault, "times": 1, "verdict": "yes"} for n in range(TIMES)]
    models.script({"v3": [*once, {"verdict": "yes"}], "*": {"verdict": "yes"}})
    done = judge()
    assert done.code == 0, done.err
    assert done.json["labelled"] == FAULTY and sums_up(done.json)
    requests = models.requests()
    sent = Counter(request["sha256"] for request in requests)
    repeated = sum(times - 1 for times in sent.values())
    assert len(requests) == FAULTY * CALLS + more
    assert repeated == TIMES * again
    with connection.cursor() as cursor:
        cursor.execute(COUNTS, {"name": "books"})
        (counts,) = cursor.fetchone()
    outcome = left(counts, FAULTY * CALLS, paid_twice=repeated - TIMES * again, repeated=repeated)
    note(f"provider {fault}", outcome)
    assert outcome.holds, outcome
    missing = Attempt.objects.filter(judge__name="v3", counts=True, outcome="refused")
    assert missing.count() == TIMES * refused
    faulty = Attempt.objects.filter(judge__name="v3", counts=False)
    assert faulty.count() == more
    assert all(attempt.error for attempt in faulty)
    kept = Attempt.objects.filter(judge__name="v3", counts=True, outcome="labelled").count()
    assert kept == FAULTY - TIMES * refused, "and none of them became a verdict"


FLAGGED = {"code": "The caller does not have permission", "error": "Content violates usage guidelines. Team: 7"}


def refusal(status: int, body: Any, **more: Any) -> dict[str, Any]:
    return {"status": status, "body": body if isinstance(body, str) else json.dumps(body), **more}


def after_the_first(models: LocalModels, status: int) -> int:
    """Calls that left after the first refusal had arrived."""
    requests = models.requests()
    first = min(one["answered"] for one in requests if one["status"] == status)
    return sum(one["arrived"] > first for one in requests)


@pytest.mark.slow
def test_one_document_of_forty_that_is_refused_costs_one_vote(models: LocalModels) -> None:
    scene(models, 40, debate=())
    yes = {"verdict": "yes", "latency": 0.02}
    models.script({"*": yes})
    JudgeVersion.objects.filter(name="v3").update(model="v3")
    models.script({"v3": [refusal(403, FLAGGED, contains="mapping number 7 "), yes], "*": yes})
    done = judge("--policy", "ensemble", check=True)
    assert (done.json["labelled"], done.json["failed"]) == (40, 0) and sums_up(done.json)
    (attempt,) = Attempt.objects.filter(outcome="refused")
    assert (attempt.judge.name, attempt.status, attempt.counts, attempt.cost) == ("v3", 403, True, 0.0)
    assert len(models.requests()) == 200, "nothing was sent twice"


def said(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


# Refusals of everything, by an account or for what is in all documents: status, body, and words of the pause.
OF_ALL = {
    "spend limit": (400, said("You have reached your specified API usage limits."), "raise the limit"),
    "moderation": (403, FLAGGED, "take another judge"),
}


@pytest.mark.parametrize("case", first_slow(OF_ALL))
def test_a_judge_that_is_refused_whatever_it_asks_pauses_after_at_most_twenty_calls(models, case):
    status, body, words = OF_ALL[case]
    scene(models, 100, debate=())
    own = {"provider": "anthropic", "base_url": models.anthropic, "model": "v3"}
    JudgeVersion.objects.filter(name="v3").update(**own)
    yes = {"verdict": "yes", "latency": 0.05}
    models.script({"v3": refusal(status, body, latency=0.05), "*": yes})
    done = judge("--policy", "ensemble")
    assert (done.code, done.json["state"], done.json["failed"]) == (3, "paused", 0), done.err
    assert after_the_first(models, status) <= 20
    because = done.json["paused_because"]
    assert because.startswith(f"v3, account anthropic {models.anthropic}") and words in because, because
    # Once it is mended everything is judged, by all five.
    models.script({"*": yes})
    Campaign.objects.update(state="running", paused_because="", starts=5)
    assert judge("--policy", "ensemble", check=True).json["labelled"] == 100
    assert Attempt.objects.filter(judge__name="v3", counts=True, outcome="labelled").count() == 100


@pytest.mark.weekly
def test_an_account_that_reaches_its_limit_in_the_middle_pauses_within_twenty_calls(models: LocalModels) -> None:
    """With more than a hundred calls out: those that left before are no evidence that it answers."""
    scene(models, 300, debate=())
    limit = refusal(400, said("Your workspace may not ask more."), latency=0.05)
    models.script({"*": [{"verdict": "yes", "latency": 0.2, "times": 400}, limit]})
    done = judge("--policy", "ensemble")
    assert (done.code, done.json["state"], done.json["failed"]) == (3, "paused", 0)
    assert after_the_first(models, 400) <= 20
    assert "workspace" in done.json["paused_because"]
    assert not Attempt.objects.filter(counts=True).exclude(outcome="labelled").exists(), "nobody's vote is missing"


@pytest.mark.slow
def test_a_judge_that_fails_now_and_then_does_not_pause(models: LocalModels) -> None:
    scene(models, 100, debate=(), votes=("yes", "yes", "yes", "yes", "w3"))
    odd = [refusal(403, FLAGGED, every=7), {"fault": "garbage", "every": 3}, {"verdict": "yes", "latency": 0.02}]
    models.script({"w3": odd, "*": {"verdict": "yes", "latency": 0.02}})
    done = judge("--policy", "ensemble", check=True)
    assert (done.json["labelled"], done.json["failed"]) == (100, 0)
