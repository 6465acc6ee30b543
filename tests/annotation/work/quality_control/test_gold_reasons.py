"""Reasons beside gold pairs are written by the configured models, where there are some (DREAM A.2)."""

from typing import Any

import pytest
from django.utils import timezone

from annotation.models import Role
from annotation.models.quality_control import ArgumentsRequest, GoldArguments, GoldPair, GoldSet
from annotation.tasks import write_gold_reasons
from annotation.work.quality_control import attention_checks, gold, gold_reasons, qualification
from annotation.work.quality_control.explanations import unexplained_practice
from annotation.work.quality_control.matching import DebateForm
from annotation.work.quality_control.onboarding import explanations_of
from corpus.models import Assessor, Judgment, Pair
from jobs import background, leases, notifications, tasks
from jobs.models import BackgroundJob
from judges.campaigns.selectors import campaign_status
from judges.models import Campaign, JudgeVersion
from tests.engine_parts import collection_of, make_judge, make_panel
from tests.evidence import make_campaign
from tests.factories import make_member
from tests.modelserver.fixtures import KEY, KEY_ENV, LocalModels
from tests.queue_scene import signed_in


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Messages to workers, with what they carry."""
    messages: list[Any] = []
    sender = notifications.message_sender()
    monkeypatch.setattr(sender, "send_task", lambda task, args, **_rest: messages.append((task, args)))
    return messages


def request_of(made: GoldSet) -> ArgumentsRequest:
    return ArgumentsRequest.objects.get(gold_set=made)


def test_the_default_panels_debaters_argue_for_two_rounds(instance, model_server, key):
    """A side that gives in keeps the offline reason beside an expert's pair, and such arguments make no check."""
    books = collection_of(8)
    make_panel(model_server, debate=("d1", "d2"))
    model_server.script(
        d1={"verdict": "stance"}, d2=[{"verdict": "yes", "contains": "mapping number 0 "}, {"verdict": "stance"}]
    )
    made = gold.draw(collection=books, size=3, seed=1, spot=0, by=None)
    assert set(GoldPair.objects.values_list("written_by", flat=True)) == {"offline"}
    write_gold_reasons()
    rows = list(GoldPair.objects.filter(gold_set=made).select_related("pair__query", "pair__document"))
    assert len(rows) == 8 and len(model_server.requests()) == 7 * 4 + 2
    for row in rows:
        gave_in = "number 0 " in row.pair.query.text
        assert row.written_by == ("a, offline" if gave_in else "a, b")
        reasons = {turn["side"]: turn["reason"] for turn in row.turns}
        assert reasons["for"] == "Scripted yes of A in round 1."
        assert gave_in or reasons["against"] == "Scripted no of B in round 1."
        for turn in row.turns:
            for quote in turn["quotes"]:
                assert row.pair.document.text[quote["start"] : quote["end"]] == quote["text"]
        argued = attention_checks.arguments_of_models(row.pair, DebateForm(2))
        said = [(turn["round"], turn["side"], turn["verdict"], turn["reason"]) for turn in argued or []]
        assert said == ([] if gave_in else [
            (1, "for", 1, "Scripted yes of A in round 1."), (1, "against", 0, "Scripted no of B in round 1."),
            (2, "for", 1, "Scripted yes of A in round 2."), (2, "against", 0, "Scripted no of B in round 2."),
        ])  # fmt: skip
    ended = request_of(made)
    assert (ended.written, ended.lost) == (7, 1) and ended.ended_at is not None
    assert campaign_status(books)["campaign"] is None, "it judges nothing"
    assert Campaign.objects.get().panel == "main, gold reasons"
    background.enqueue(gold_reasons.WRITE, ended.pk)
    write_gold_reasons()
    assert len(model_server.requests()) == 7 * 4 + 2, "a request that ended is not done again"


def test_practice_pairs_without_a_reason_get_that_of_a_model(instance, model_server, key):
    books = collection_of(8)
    make_panel(model_server, debate=("d1", "d2"))
    model_server.script(d1={"verdict": "stance"}, d2={"verdict": "stance"})
    known = {pair: number % 2 for number, pair in enumerate(Pair.objects.values_list("pk", flat=True))}
    reference = Assessor.objects.create(collection=books, kind="reference", name="gold")
    for pair, grade in known.items():
        Judgment.objects.create(pair_id=pair, assessor=reference, step="import", grade=grade)
    qualification.make_test(collection=books, size=3, seed=1, by=None)
    assert len(unexplained_practice(books)) == gold_reasons.forecast_arguments(books, [], []).practice == 5
    assert gold_reasons.write_later(books, by=None)
    write_gold_reasons()
    assert unexplained_practice(books) == []
    for pair, (explanation,) in explanations_of(books, known).items():
        side, author = ("yes", "A") if known[pair] else ("no", "B")
        assert (explanation.text, explanation.by) == (f"Scripted {side} of {author} in round 1.", "a, b")


def test_four_agents_argue_where_four_debate_each_in_its_own_words(instance, model_server, key):
    books = collection_of(6)
    panel = make_panel(model_server, debate=("stance", "stance"))
    panel.debate = ["a", "a", "b", "b"]
    panel.save()
    gold.draw(collection=books, size=1, seed=1, spot=0, by=None)
    write_gold_reasons()
    for kept in GoldArguments.objects.all():
        assert (kept.couples, kept.rounds, kept.written_by) == (2, 2, "a, b")
        assert len({turn["reason"] for turn in kept.turns}) == len(kept.turns) == 8
    assert GoldArguments.objects.count() == 6


@pytest.mark.django_db
def test_the_debaters_of_the_last_campaign_write_before_those_of_the_panel(model_server: LocalModels) -> None:
    """What a check shows shall read like the debates around it."""
    books = collection_of(8)
    assert gold_reasons.find_writers(books) is None and not gold_reasons.write_later(books, by=None)
    make_panel(model_server)
    judges = [make_judge(model_server, name) for name in ("x", "y")]
    make_campaign(books, judges, policy="debate")
    found = gold_reasons.find_writers(books)
    assert found is not None and [judge.name for judge in found.debaters] == ["x", "y"]
    JudgeVersion.objects.filter(name="x").update(is_current=False)
    found = gold_reasons.find_writers(books)
    assert found is not None and [judge.name for judge in found.debaters] == ["a", "b"]


@pytest.mark.django_db(transaction=True)
def test_gold_drawn_while_redis_is_away_is_found_again_once_it_is_back(model_server, monkeypatch, sent):
    books = collection_of(8)
    make_panel(model_server, debate=("d1", "d2"))
    charlie = signed_in(make_member(books, "charlie", Role.ADMIN))
    page = charlie.get(f"/c/{books.name}/gold/").text
    assert "a, b write" in page and "55 pairs" in page and "about 220 calls" in page
    with monkeypatch.context() as away:
        away.setattr(notifications, "is_redis_unavailable", lambda: True)
        drawn = charlie.post(f"/c/{books.name}/gold/", {"size": 3, "seed": 1, "spot": 0})
        assert drawn.status_code == 302
    made = GoldSet.objects.get()
    assert sent == [], "nothing can be sent"
    notifications.redis_client().delete(notifications.redis_key("told", gold_reasons.WRITE))
    monkeypatch.setattr(tasks, "CHORES", [])
    for _ in range(2):  # what every worker does every few seconds
        tasks.look_for_jobs(["judge"])
    assert sent == [(gold_reasons.WRITE, [])], "once, not at every look"
    assert background.is_unfinished(gold_reasons.WRITE, request_of(made).pk)


@pytest.mark.django_db(transaction=True)
def test_the_message_waits_in_the_queue_while_no_worker_lives(model_server, monkeypatch, sent):
    monkeypatch.setattr("jobs.workers.live_workers", list)
    books = collection_of(14)
    gold.draw(collection=books, size=1, seed=1, spot=0, by=None)
    assert sent == [], "no model is configured"
    make_panel(model_server, debate=("d1", "d2"))
    made = gold.draw(collection=books, size=1, seed=1, spot=0, by=None)
    assert sent == [(gold_reasons.WRITE, [])] and background.is_unfinished(gold_reasons.WRITE, request_of(made).pk)


def test_two_workers_do_not_ask_for_the_same_twice(instance: object, model_server: LocalModels, key: None) -> None:
    books = collection_of(6)
    make_panel(model_server, debate=("stance", "stance"))
    made = gold.draw(collection=books, size=1, seed=1, spot=0, by=None)
    first = leases.claim(BackgroundJob, kind=gold_reasons.WRITE)
    assert first is not None and not gold_reasons.write_later(books, gold_set=made, by=None)
    write_gold_reasons()
    assert model_server.requests() == [], "its lease holds"
    BackgroundJob.objects.update(lease_until=timezone.now())
    write_gold_reasons()
    request = request_of(made)
    assert request.ended_at is not None and not gold_reasons.is_pending(request)
    assert len(model_server.requests()) == 6 * 4
