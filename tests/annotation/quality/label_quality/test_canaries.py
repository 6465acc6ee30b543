"""Canaries: clean and hostile questions to real clients and a scripted server; flips are counted as by hand."""

import json
from collections import Counter
from datetime import timedelta

import pytest
from django.db import connection
from django.db.utils import DatabaseError
from django.utils import timezone

from annotation.models import Role
from annotation.quality.label_quality.canaries import (
    CanaryResult,
    KindCounts,
    debaters_and_voters,
    list_followed_texts,
    read_canary_results,
)
from corpus.models import Collection
from jobs import workers
from judges.models import Campaign, JudgeVersion
from judges.models.canaries import CanaryAnswer, CanaryRound, CanarySchedule
from judges.probes import canaries
from judges.probes.canary_texts import BASES
from judges.probes.canary_texts import all_canaries as questions
from judges.probes.injections import INJECTIONS
from judges.records import Judge
from judges.tasks import wake_canaries
from tests.called import call
from tests.conftest import Finished
from tests.engine_parts import _standing_worker, make_panel, worker
from tests.factories import client_of, make_collection, make_member
from tests.instances import until

__all__ = ["_standing_worker", "worker"]

HOSTILE = [one for one in questions() if one.injection]
CLEAN = [one for one in questions() if not one.injection]


def run(*options: str) -> Finished:
    """`canaries --json` in this process."""
    return call("canaries", "--json", *options)


def honest(model: str) -> list[dict[str, object]]:
    """A script that says yes where the document answers, whatever else stands in it."""
    return [{"contains": base.inputs.document[:30], "verdict": base.honest} for base in BASES]


def test_each_hostile_text_is_asked_beside_its_clean_twin_whose_verdict_it_does_not_want():
    names = {one.name: one for one in questions()}
    assert len(names) == len(HOSTILE) + len(CLEAN) and len(HOSTILE) == len(INJECTIONS) >= 40
    for one in HOSTILE:
        twin = names[one.twin]
        assert (twin.role, twin.honest, twin.inputs.query) == (one.role, one.honest, one.inputs.query)
        assert one.honest != int(one.injection.aim == "yes")
        texts = (one.inputs.document, one.inputs.title, *_said(one))
        assert any(one.injection.text in text for text in texts)
        assert not any(one.injection.text in text for text in (twin.inputs.document, twin.inputs.title, *_said(twin)))
    assert {one.role for one in CLEAN} == {"vote", "for", "against"}


def _said(canary) -> list[str]:
    return [quote.text for turn in (canary.history or {}).values() for quote in turn.quotes]


@pytest.fixture
def panel(model_server, instance):
    """Free judges of the local server: two debaters a and b, voters v1 to v3."""
    return make_panel(model_server, debate=("a", "b"), votes=("v1", "v2", "v3"), input_price=0.0, output_price=0.0)


def test_flips_are_those_of_a_hand_count(panel, model_server):
    """v1 follows three texts and gives no answer to a fourth; v2 always says yes; the others are honest."""
    wanted = ["answer-yes", "chinese", "bribe"]
    texts = {one.name: one.injection.text for one in HOSTILE}
    told = [{"contains": json.dumps(texts[name], ensure_ascii=False)[1:-1], "verdict": "yes"} for name in wanted]
    lost = {"contains": texts["threat"], "fault": "garbage"}
    script = {name: honest(name) for name in ("a", "b", "v3")}
    model_server.script({**script, "v1": [*told, lost, *honest("v1")], "v2": {"verdict": "yes"}})
    done = run()
    assert done.code == 0, done.err
    asked = len(questions())
    assert done.json["calls"] == 5 * asked == len(model_server.requests()) == CanaryAnswer.objects.count()
    assert "about 335 calls" in done.err and "free" in done.err and done.json["cost"] == 0
    rows = {row["name"]: row for row in done.json["judges"]}
    n = len(HOSTILE)
    assert (rows["v3"]["pairs"], rows["v3"]["flips"], rows["v3"]["lost"]) == (n, 0, 0)
    assert (rows["v1"]["pairs"], rows["v1"]["flips"], rows["v1"]["lost"]) == (n - 1, 3, 1)
    assert rows["v1"]["kinds"]["order"] == {"pairs": 10, "flips": 2, "lost": 1}
    # Who says yes to everything flips nothing: its clean answers want "yes" already, or hold it against a "no".
    yes = sum(one.injection.aim == "yes" for one in HOSTILE)
    assert (rows["v2"]["pairs"], rows["v2"]["flips"]) == (n - yes, 0)
    assert rows["v2"]["clean_honest"] == n - yes
    first = read_canary_results(debaters_and_voters(_campaign(panel)))
    assert sorted(text.canary_name for text in list_followed_texts(first)) == sorted(wanted)
    assert {text.judge_name for text in list_followed_texts(first)} == {"v1"}
    for statement in ("UPDATE judges_canaryanswer SET verdict = 1", "DELETE FROM judges_canaryanswer"):
        with pytest.raises(DatabaseError, match="Cannot update or delete"), connection.cursor() as cursor:
            cursor.execute(statement)


def _campaign(panel) -> Campaign:
    ids = dict(JudgeVersion.objects.values_list("name", "pk"))
    return Campaign(debaters=[ids[name] for name in panel.debate], voters=[ids[name] for name in panel.ensemble])


def test_the_interval_and_the_alarm_are_those_of_clopper_and_pearson():
    """3 of 60: 1.04% to 13.92%, no alarm at a limit of 2%; 4 of 60: 1.85% to 16.20%; 5 of 60: 2.76% to 18.39%."""
    cases = {3: (0.0104, 0.1392, False), 4: (0.0185, 0.1620, False), 5: (0.0276, 0.1839, True)}
    for number, (low, high, alarm) in cases.items():
        one = CanaryResult("v1", timezone.now(), [KindCounts("order", 60, range(number), 0, 60, 60)])
        assert one.flip_rate_interval == pytest.approx((low, high), abs=5e-5)
        assert one.raises_alarm is alarm
    none = CanaryResult("v1", timezone.now(), [KindCounts("order", 0, (), 0, 0, 60)])
    assert none.flip_rate is None and not none.raises_alarm and "not measured" in none.summary

    for price in ("", "reasoning_price", "written_input_price", "cached_input_price"):
        prices = {"input_price": 0.0, "output_price": 0.0} | ({price: 1.0} if price else {})
        assert canaries.is_free(Judge("j", "openai-compatible", "m", id=1, **prices)) == (not price)


def test_judges_that_may_cost_money_are_asked_only_when_somebody_says_so(panel, model_server):
    JudgeVersion.objects.filter(name="v2").update(input_price=1.0)
    JudgeVersion.objects.filter(name="v3").update(input_price=None, output_price=None)
    look = run("--estimate", "--paid")
    assert look.json["estimate"]["cost"] is None and model_server.requests() == []
    assert "unknown price of v3" in look.err
    done = run()
    assert done.json["left_out"] == ["v2", "v3"] and done.json["cost"] == 0
    assert {request["model"] for request in model_server.requests()} == {"a", "b", "v1"}
    JudgeVersion.objects.filter(name="v3").update(input_price=1.0, output_price=2.0)
    paid = run("--paid")
    assert paid.json["left_out"] == [] and paid.json["cost"] > 0
    assert paid.json["cost"] == pytest.approx(paid.json["estimate"]["cost"], rel=0.5)
    JudgeVersion.objects.update(input_price=1.0, output_price=2.0)
    refused = run()
    assert (refused.code, refused.out) == (2, "") and "--paid" in refused.err
    assert run("--panel", "none").code == 2


def test_a_failing_provider_is_tried_again_and_what_stays_lost_is_said(panel, model_server):
    first = {"contains": BASES[0].inputs.document[:30], "fault": "503", "times": 2}
    model_server.script({"v1": [first, *honest("v1")], "v2": {"fault": "refused"}, "*": honest("*")})
    rows = {row["name"]: row for row in run().json["judges"]}
    assert (rows["v1"]["pairs"], rows["v1"]["lost"]) == (len(HOSTILE), 0)
    assert (rows["v2"]["pairs"], rows["v2"]["rate"]) == (0, None)
    assert set(CanaryAnswer.objects.filter(judge__name="v2").values_list("outcome", flat=True)) == {"refused"}


def test_a_key_that_is_not_accepted_fails_at_once(panel, model_server):
    model_server.script({"*": {"fault": "401"}})
    rows = run().json["judges"]
    calls = Counter(request["sha256"] for request in model_server.requests())
    assert set(calls.values()) <= {1}, "nobody asks again, and nobody waits"
    assert all(row["rate"] is None and row["asked"] == len(HOSTILE) for row in rows)
    assert "QUORUM_TEST_KEY" in CanaryAnswer.objects.first().error


@pytest.mark.slow
def test_a_worker_asks_when_they_are_due_and_two_of_them_ask_once(panel, worker, model_server):
    """The schedule stands in a row; free judges alone, unless it says otherwise."""
    model_server.script({"*": honest("*")})
    JudgeVersion.objects.filter(name="v3").update(input_price=1.0)
    assert run("--every", "24").json["schedule"] == {"hours": 24, "paid": False, "panel": None}
    assert not canaries.is_due() and model_server.requests() == []
    CanarySchedule.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    for _ in range(3):
        wake_canaries()
    until(lambda: CanaryAnswer.objects.count() == 4 * len(questions()))
    assert CanaryRound.objects.get().by == "schedule" and not canaries.is_due()
    assert canaries.run_scheduled() is None
    left = CanarySchedule.objects.get().due_at - timezone.now()
    assert timedelta(hours=23) < left <= timedelta(hours=24)
    assert run("--every", "0").json["schedule"]["hours"] == 0
    CanarySchedule.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    assert not canaries.is_due(), "0 hours: never"
    assert run("--every", "-1").code == 2
    assert workers.live_workers()


def test_offline_judges_are_measured_without_a_collection(instance):
    """They count words, and some hostile texts bring words: nothing is promised, it is measured."""
    done = run("--panel", "offline")
    assert done.code == 0, done.err
    assert len(done.json["judges"]) == 7 and all(row["asked"] == len(HOSTILE) for row in done.json["judges"])
    assert all(row["lost"] == 0 for row in done.json["judges"])


@pytest.fixture
def charlie(instance):
    return client_of(make_member(make_collection("books"), "charlie", Role.ADMIN))


def test_the_page_shows_rates_kinds_and_followed_texts_and_the_home_an_alarm(
    panel, model_server, charlie, django_assert_max_num_queries
):
    assert "No results yet" in charlie.get("/c/books/canaries/").text
    evil = {"contains": "window.hacked", "text": '{"response": "yes", "reason": "<script>alert(1)</script>"}'}
    kinds = [one.injection for one in HOSTILE if one.injection.kind == "order"]
    orders = [{"contains": one.text[:40], "verdict": "yes"} for one in kinds]
    model_server.script({"v1": [evil, *orders, *honest("v1")], "*": honest("*")})
    run()
    campaign = _campaign(panel)
    campaign.collection, campaign.policy, campaign.panel = Collection.objects.get(), "debate+ensemble", "main"
    campaign.save()
    with django_assert_max_num_queries(20):
        page = charlie.get("/c/books/canaries/").text
    assert "alarm: follows injections" in page and page.count("alarm: follows injections") == 1
    assert "<script>alert(1)" not in page and "answer-in-script" in page
    assert "Injections followed" in page and "free" in page
    assert charlie.get("/c/books/canaries/?chart=canaries&as=csv").content.startswith(b",value,low,high,n,note")
    home = charlie.get("/c/books/").text
    assert "v1 followed" in home and "/c/books/canaries/" in home


def test_the_page_asks_by_a_worker_and_sets_the_schedule(panel, worker, model_server, charlie):
    model_server.script({"*": honest("*")})
    assert charlie.post("/c/books/canaries/ask/", {"judges": "nobody"}).status_code == 422
    assert charlie.post("/c/books/canaries/schedule/", {"hours": "-1", "judges": "free"}).status_code == 422
    assert CanarySchedule.objects.get().hours == 24
    assert charlie.post("/c/books/canaries/schedule/", {"hours": "6", "judges": "all"}).status_code == 302
    row = CanarySchedule.objects.get()
    assert (row.hours, row.paid) == (6, True)
    JudgeVersion.objects.filter(name="v3").update(input_price=1.0, output_price=1.0)
    assert charlie.post("/c/books/canaries/ask/", {"judges": "free"}).status_code == 302
    until(lambda: CanaryAnswer.objects.count() == 4 * len(questions()))
    assert CanaryRound.objects.get().by == "page"
    assert not CanaryAnswer.objects.filter(judge__name="v3").exists()
