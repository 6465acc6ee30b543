"""Reasons beside gold pairs are written by the configured models, where there are some (DREAM A.2, SPEC S7)."""

from typing import Any

import pytest
from django.test import Client

from annotation.care import gold, gold_reasons
from annotation.care.models import GoldPair, GoldSet
from annotation.models import Role
from annotation.tasks import write_gold_reasons
from judges import wakeups
from judges.models import Campaign
from judges.selectors import status
from tests.engine_parts import collection_of, make_panel
from tests.factories import make_member
from tests.modelserver.fixtures import KEY, KEY_ENV, LocalModels, _model_server_process, model_server

__all__ = ["_model_server_process", "model_server"]


def test_the_default_panels_debaters_write_them(
    instance: object, model_server: LocalModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A side that gives in keeps the offline reason: there is always one for each."""
    monkeypatch.setenv(KEY_ENV, KEY)
    books = collection_of(8)
    make_panel(model_server, debate=("d1", "d2"))
    model_server.script(
        d1={"verdict": "stance"}, d2=[{"verdict": "yes", "contains": "mapping number 0 "}, {"verdict": "stance"}]
    )
    made = gold.draw(collection=books, size=3, seed=1, spot=0, by=None)
    assert set(GoldPair.objects.values_list("written_by", flat=True)) == {"offline"}
    write_gold_reasons(made.pk)
    rows = list(GoldPair.objects.filter(gold_set=made).select_related("pair__query", "pair__document"))
    assert len(rows) == 8 and len(model_server.requests()) == 16
    for row in rows:
        gave_in = "number 0 " in row.pair.query.text
        assert row.written_by == ("a, offline" if gave_in else "a, b")
        reasons = {turn["side"]: turn["reason"] for turn in row.turns}
        assert reasons["for"] == "Scripted yes of A in round 1."
        assert gave_in or reasons["against"] == "Scripted no of B in round 1."
        for turn in row.turns:
            for quote in turn["quotes"]:
                assert row.pair.document.text[quote["start"] : quote["end"]] == quote["text"]
    assert status(books)["campaign"] is None, "it judges nothing"
    assert Campaign.objects.get().panel == "main, gold reasons"
    write_gold_reasons(made.pk)
    assert len(model_server.requests()) <= 16 + 2, "only what no model has written is asked again"


@pytest.mark.django_db
def test_without_a_model_the_offline_pair_writes(model_server: LocalModels) -> None:
    collection_of(8)
    assert gold_reasons.writers() is None


def admin(collection: Any) -> Client:
    client = Client()
    client.force_login(make_member(collection, "charlie", Role.ADMIN).user)
    return client


@pytest.mark.django_db(transaction=True)
def test_without_redis_a_sample_is_drawn_all_the_same(model_server: LocalModels, redis_is_away: None) -> None:
    books = collection_of(8)
    make_panel(model_server, debate=("d1", "d2"))
    drawn = admin(books).post(f"/c/{books.name}/gold/", {"size": 3, "seed": 1, "spot": 0})
    assert drawn.status_code == 302
    assert GoldSet.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_the_message_waits_in_the_queue_while_no_worker_lives(
    model_server: LocalModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(wakeups, "live_workers", list)
    monkeypatch.setattr(wakeups.messenger(), "send_task", lambda task, args, **_rest: sent.append((task, args)))
    books = collection_of(14)
    gold.draw(collection=books, size=1, seed=1, spot=0, by=None)
    assert sent == [], "no model is configured"
    make_panel(model_server, debate=("d1", "d2"))
    made = gold.draw(collection=books, size=1, seed=1, spot=0, by=None)
    assert sent == [("annotation.write_gold_reasons", [made.pk])]
